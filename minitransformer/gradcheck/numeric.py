"""Numeric gradients by central differences, the yardstick for those derived by hand.

    ∂L/∂x_i ≈ Σ (f(x + h e_i) − f(x − h e_i)) · dy / 2h        with L = Σ f(x) · dy

The truncation error falls as h², the rounding error grows as 1 / h; h near the cube root of the
float64 precision, 1e-5 of the size of x, leaves about 1e-10 of both. The outputs are subtracted
*before* they are summed: outputs that x_i does not touch then cancel exactly, and an entry with no
influence has gradient 0 and not some rounding noise.

Where the function bends sharply, as √x does near 0, no one step is right for all entries. There
:func:`refined_slope` extrapolates from a series of steps, at twenty times the cost.
"""

import numpy as np

from minitransformer.gradcheck.report import CheckError

STEP = 1e-5


def numeric_gradient(function, x, dy):
    """Gradient of ``sum(function(x) * dy)`` for every entry of x, one central difference each.

    Args:
        function: from an array like x to an array like dy.
        x: float64, any shape; not written to.
        dy: upstream gradient.
    """
    gradient = np.empty_like(x)
    for index in np.ndindex(x.shape):
        gradient[index] = slope(function, x, one_entry(x, index), dy, step_for(x[index]))
    return gradient


def slope(function, x, direction, dy, step):
    """Slope of ``sum(function(x) * dy)`` along ``direction``, one central difference."""
    ahead, behind = _moved(x, step * direction), _moved(x, -step * direction)
    width = np.linalg.norm(ahead - behind) / np.linalg.norm(direction)  # 2 h, as it was rounded
    return float(((function(ahead) - function(behind)) * dy).sum() / width)


def one_sided_slopes(function, x, direction, dy, step):
    """The slopes just before and just after x, which differ at a kink."""
    here = function(x)
    before = ((here - function(_moved(x, -step * direction))) * dy).sum() / step
    after = ((function(_moved(x, step * direction)) - here) * dy).sum() / step
    return float(before), float(after)


def refined_slope(function, x, direction, dy, size, levels=14):
    """The slope by Richardson's extrapolation to a step of zero (Ridders 1982).

    From central differences with steps h, h/2, h/4, …, each column of the table removes one more
    power of h² from the error; the entry that differs least from its neighbours is the best.

    Args:
        size: of the entry of x that is moved; the first step is a thousandth of it, or of 1.
        levels: number of steps; those at which the function fails are passed over.
    """
    best, least = np.nan, np.inf
    row = []
    for level in range(levels):
        try:
            with np.errstate(all="ignore"):
                new = [slope(function, x, direction, dy, 100 * step_for(size) / 2**level)]
        except CheckError:  # so long a step leaves the place where the function is defined
            row = []
            continue
        for power, earlier in enumerate(row, start=1):
            new.append(new[-1] + (new[-1] - earlier) / (4**power - 1))
            error = max(abs(new[-1] - new[-2]), abs(new[-1] - earlier))
            if error < least:
                best, least = new[-1], error
        row = new
    return best


def step_for(size):
    """The step h for an entry of that size."""
    return STEP * max(1.0, abs(float(size)))


def one_entry(x, index):
    """The direction along which only ``x[index]`` changes."""
    direction = np.zeros_like(x)
    direction[index] = 1
    return direction


def _moved(x, by):
    moved = np.asarray(x + by)
    moved.flags.writeable = False
    return moved
