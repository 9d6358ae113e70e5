"""Numeric gradients by central differences, the yardstick for those derived by hand.

    ∂L/∂x_i ≈ Σ (f(x + h e_i) − f(x − h e_i)) · dy / 2h        with L = Σ f(x) · dy

The truncation error falls as h², the rounding error grows as 1 / h; h near the cube root of the
float64 precision, 1e-5 of the size of x, leaves about 1e-10 of both. The outputs are subtracted
*before* they are summed: outputs that x_i does not touch then cancel exactly, and an entry with no
influence has gradient 0 and not some rounding noise.

No one step is right for all entries. Where the function bends sharply, as √x does near 0, it has to
be shorter; where outputs are large and rounding hides the slope, longer. :func:`refined_slope`
looks at the slope with steps of all lengths, at twenty times the cost, and says how far off its
result may be.
"""

import contextlib
from itertools import chain, islice, pairwise, tee

import numpy as np

from minitransformer.gradcheck.report import CheckError

STEP = 1e-5
SHORTEST = 1e-9  # a shorter one can only be needed near 0
BITS = 64  # of the last place of x, in the shortest step
EPS = np.finfo(np.float64).eps
GROWTH = 5**0.5  # of steps; not 2, for rounding then often repeats itself and looks like none
ORDERS = 4  # of Richardson's extrapolation: powers of h², or of h, that are removed
STILL = 1 / 32  # of the size of x: where such a step does not change the output, none does nearby
TOUCH = 0.37  # of the size of x: a long step, of a length that is no period
FAR = 16, 256, 4096  # times as long ones, which may show what rounding hides nearby
HALVINGS = 24  # to find where an output begins to change
BENDING = 4  # how much farther apart slopes, times the step, are with each step where it does
SMOOTH = 1e-6  # of what an output changes by, where it begins to change little by little
FIRST_LOOK = 7  # shortest steps, from whose scatter the rounding noise inside forward is told


def numeric_gradient(function, x, dy):
    """Gradient of ``sum(function(x) * dy)`` for every entry of x, one central difference each.

    An entry is NaN where the function is not defined on both sides.

    Args:
        function: from an array like x to an array like dy; where it is not defined it raises a
            CheckError.
        x: float64, any shape; not written to.
        dy: upstream gradient.
    """
    gradient = np.empty_like(x)
    for index in np.ndindex(x.shape):
        gradient[index] = slope_or_nan(function, x, index, dy, step_for(x[index]))
    return gradient


def slope(function, x, direction, dy, step):
    """Slope of ``sum(function(x) * dy)`` along ``direction``, one central difference.

    Args:
        direction: an array like x; or the index of an entry, a tuple, which alone is moved.
    """
    ahead, behind = moved(x, direction, step), moved(x, direction, -step)
    width = distance(ahead, behind, direction)  # 2 h, as it was rounded
    return float(((function(ahead) - function(behind)) * dy).sum() / width)


def slope_or_nan(function, x, direction, dy, step):
    """The :func:`slope`, or NaN where the function is not defined on both sides."""
    try:
        return slope(function, x, direction, dy, step)
    except CheckError:
        return np.nan


def one_sided_slopes(function, x, y, direction, dy, step):
    """The slopes just before and just after x, which differ at a kink; y is function(x)."""
    ahead, behind = moved(x, direction, step), moved(x, direction, -step)
    width = distance(ahead, behind, direction)  # 2 h, as it was rounded
    before = ((y - function(behind)) * dy).sum() / (width / 2)
    after = ((function(ahead) - y) * dy).sum() / (width / 2)
    return float(before), float(after)


def rounding(y, dy):
    """How far ``sum(y * dy)`` may be off because each y is rounded to its last bits."""
    return 2 * EPS * float(np.abs(y * dy).sum())


def refined_slope(function, x, direction, dy, size, enough=1e-9):
    """The slope, as exactly as it can be had, and a bound for its error.

    Richardson's extrapolation to a step of zero (Ridders 1982): from central differences with steps
    growing by √5 each column of the table removes one more power of h² from the error, and the next
    entries' distance says what is left of it. What rounding adds is seen from the outputs' sizes
    and, where forward rounds more inside, as ``(1e5 + tanh(x)) - 1e5`` does, from the scatter of
    the shortest steps. A longer step is believed as long as it agrees with the shorter ones.
    Where the shortest ones change nothing, the slope is too small for them to show it. Odd powers
    of h are removed, too, where that says more, as where the slope itself has a kink.

    Args:
        size: of the entry of x that is moved, or of all.
        enough: relative error at which to stop.

    Returns:
        slope, error: NaN and infinity where the function is not defined on both sides.
    """
    scale = _scale(size)
    here = function(x)
    touched = _touched(function, x, direction, here, [TOUCH * scale])
    best, error = _extrapolated(function, x, direction, touched * dy, size, enough)
    if rounding(here, ~touched * dy) > enough * abs(best) * scale:
        far = _touched(function, x, direction, here, [TOUCH * scale * by for by in FAR])
        if (far & ~touched).any():
            dy = (touched | far) * dy
            best, error = _extrapolated(function, x, direction, dy, size, enough)
    return best, error


def _extrapolated(function, x, direction, dy, size, enough):
    """As :func:`refined_slope`, with the rounding of all outputs."""
    slopes = _slopes(function, x, direction, dy, size)
    first = next(slopes, None)
    best, error = np.nan, np.inf
    if first and first[0] > _shortest(size):
        step, rounded, best = first
        hidden = _hidden_before(step, rounded, function, x, direction, dy, _scale(size))
        if hidden < np.inf:
            best, error = 0.0, hidden
        if step > STILL * _scale(size):
            return best, error
    slopes, again = tee(chain([first] if first else [], slopes))
    smooth, bound = _limit(_table(slopes, powers=2), best, error, enough)
    if enough * max(1, abs(smooth)) < bound < np.inf:
        bent, less = _limit(_table(again, powers=1), best, error, enough)
        if less < bound and abs(bent - smooth) <= less + bound:
            return bent, less
    return smooth, bound


def _limit(rows, best, error, enough):
    """The entry of a table that is known best, and a bound for its error, from those so far."""
    first = list(islice(rows, FIRST_LOOK))
    scatter = [
        max(abs(row[n] - earlier[n]) * first[i - n][0] for n in range(2, len(earlier)))
        for i, ((_, _, earlier), (_, _, row)) in enumerate(pairwise(first))
        if len(earlier) > 2
    ]
    if not scatter:
        return (best, error) if error < np.inf else (np.nan, np.inf)
    # What grows with each step is no rounding, but the function that bends; and rounding of few
    # samples may always be small by chance.
    bends = scatter[0] > 0 and all(later > BENDING * s for s, later in pairwise(scatter))
    inside = 10 * (scatter[0] if bends else max(scatter))
    earlier, steps = [], []
    for step, rounded, row in chain(first, rows):
        steps.append(step)
        for order in range(1, len(row)):
            left = max(abs(row[order] - near) for near in (row[order - 1], earlier[order - 1]))
            left = max([4 * left, *(abs(row[order] - near) for near in row[order + 1 :])])
            bound = left + 2 * max(rounded, inside) / steps[-1 - order]
            if abs(row[order] - best) > bound + error:
                return best, error
            if bound < error:
                best, error = row[order], bound
        if error <= enough * abs(best):
            break
        earlier = row
    return best, error


def _touched(function, x, direction, here, lengths):
    """Which outputs such steps change: the rounding of others does not matter. All, if none is."""
    touched = np.zeros(np.shape(here), bool)
    for by in lengths:
        for sign in (1, -1):
            with contextlib.suppress(CheckError):
                touched |= function(moved(x, direction, sign * by)) != here
    return touched if touched.any() else ~touched


def _hidden_before(step, rounded, function, x, direction, dy, scale):
    """Bound for a slope that shows with ``step``, and not with the next shorter one.

    So flat is ReLU up to its kink, from where it changes little by little; and whatever is hidden
    by rounding, where the first change that is seen is as large as the rounding inside forward.
    """

    def change(by):
        ahead, behind = (function(moved(x, direction, sign * by)) for sign in (1, -1))
        return np.abs((ahead - behind) * dy).sum()

    low, high = step / GROWTH, step
    try:
        first = change(high)
        for _ in range(HALVINGS):
            if first <= rounded:
                break
            middle = (low + high) / 2
            if nearer := change(middle):
                high, first = middle, nearer
            else:
                low = middle
        jumps = step > STILL * scale and first > SMOOTH * change(scale)
    except CheckError:
        return np.inf
    return 2 * (rounded + (0 if jumps else first)) / low


def _slopes(function, x, direction, dy, size):
    """Yield for growing steps (step, rounding of the outputs, slope).

    Starts where a step changes the output at all, or with the longest if none does, and ends where
    it is no longer defined.
    """
    step = _shortest(size)
    changes, unchanged = False, None
    while step < 2 * _scale(size):
        ahead, behind = moved(x, direction, step), moved(x, direction, -step)
        width = distance(ahead, behind, direction)
        try:
            ahead, behind = function(ahead), function(behind)
        except CheckError:
            break
        difference = ahead - behind
        rounded = rounding(np.maximum(np.abs(ahead), np.abs(behind)), dy)
        changes = changes or difference.any()
        if changes:
            yield step, rounded, float((difference * dy).sum() / width)
        else:
            unchanged = step, rounded, 0.0
        step *= GROWTH
    if unchanged and not changes:
        yield unchanged


def _table(slopes, powers):
    """Yield (step, rounding, slopes of growing order); each order removes the next of the powers.

    Args:
        powers: of h, 1, or of h², 2.
    """
    earlier = []
    for step, rounded, central in slopes:
        row = [central]
        for power, shorter in enumerate(earlier[:ORDERS], start=1):
            row.append(shorter + (shorter - row[-1]) / (GROWTH ** (powers * power) - 1))
        yield step, rounded, row
        earlier = row


def step_for(size):
    """The step h for an entry of that size."""
    return STEP * _scale(size)


def _shortest(size):
    """The shortest step for an entry of that size."""
    step = max(SHORTEST, BITS * EPS * _scale(size))
    return min(step, 1e-4 * abs(float(size))) if size else step


def _scale(size):
    return max(1.0, abs(float(size)))


def moved(x, direction, by):
    """x moved by so much along ``direction``, an array like x or the index of one entry."""
    if isinstance(direction, tuple):
        to = x.copy()
        to[direction] += by
    else:
        to = np.asarray(x + by * direction)
    to.flags.writeable = False
    return to


def distance(ahead, behind, direction):
    """How far two places on a line along ``direction`` are apart, in its lengths."""
    if isinstance(direction, tuple):
        return ahead[direction] - behind[direction]
    return np.linalg.norm(ahead - behind) / np.linalg.norm(direction)
