"""Exercises of lesson 03, checking gradients. Check yours:  minitransformer check ex03"""

import numpy as np


def best_forward_step(unit_roundoff, value, second_derivative):
    """10 min. The step h at which the forward difference (f(x + h) − f(x)) / h is most accurate.

    Its error is at most  h |f''| / 2 + 2 u |f| / h.

    Args:
        unit_roundoff: u, 2⁻⁵³ in float64.
        value, second_derivative: |f| and |f''| at x, both positive.

    Returns:
        h, a number.

    Hint: the derivative of the error by h is zero there.
    """
    raise NotImplementedError


def gradient_by_differences(function, x, dy):
    """25 min. The gradient of Σ function(x) · dy by central differences, entry by entry.

    Args:
        function: from an array like x to an array like dy.
        x: float64, any shape. It is read-only: change a copy.
        dy: the upstream gradient, of the shape of function(x), which need not be that of x.

    Returns:
        the gradient, of the shape of x.

    Hint: np.ndindex(x.shape) yields every index. The order of subtracting and summing matters.
    """
    raise NotImplementedError


def complex_step(f, x):
    """25 min. The derivative of f at x to full precision, from a single evaluation.

    For a function that also takes complex numbers, with i² = −1:

        f(x + i h) = f(x) + i h f'(x) − h² f''(x) / 2 − …

    Args:
        f: from a complex number to a complex number, real for real ones.
        x: a real number.

    Returns:
        f'(x), a real number, right to 14 digits.

    Hint: which part of f(x + i h) holds f'? What limits how small h may be?
    """
    raise NotImplementedError


def backward_is_right(forward, backward, inputs):
    """45 min. Your own gradient checker: True for a right backward, False for a wrong one.

    Args:
        forward: forward(*inputs) -> (y, cache).
        backward: backward(dy, cache) -> a gradient for each input; a single one may come without a
            tuple around it.
        inputs: a tuple of float64 arrays, read-only.

    Returns:
        True or False.

    Hint: the work is in the choices: which dy, which step, which comparison, which tolerance?
    """
    raise NotImplementedError
