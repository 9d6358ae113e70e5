"""Numeric gradients by central differences, the yardstick for those derived by hand.

    ∂L/∂x_i ≈ Σ (f(x + h e_i) − f(x − h e_i)) · dy / 2h        with L = Σ f(x) · dy

The truncation error falls as h², the rounding error grows as 1 / h; h near the cube root of the
float64 precision, 1e-5, leaves about 1e-10 of both. The outputs are subtracted *before* they are
summed: outputs that x_i does not touch then cancel exactly, and an entry with no influence has
gradient 0 and not some rounding noise.
"""

import numpy as np


def numeric_gradient(function, x, dy, step=1e-5):
    """Gradient of ``sum(function(x) * dy)`` for every entry of x, one central difference each.

    Args:
        function: from an array like x to an array like dy.
        x: float64, any shape; not written to.
        dy: upstream gradient.
        step: h.
    """
    gradient = np.empty_like(x)
    for index in np.ndindex(x.shape):
        direction = np.zeros_like(x)
        direction[index] = 1
        gradient[index] = directional_derivative(function, x, direction, dy, step)
    return gradient


def directional_derivative(function, x, direction, dy, step=1e-5):
    """Slope of ``sum(function(x) * dy)`` along ``direction``, one central difference."""
    ahead = _frozen(x + step * direction)
    behind = _frozen(x - step * direction)
    return float(((function(ahead) - function(behind)) * dy).sum() / (2 * step))


def _frozen(array):
    array.flags.writeable = False
    return array
