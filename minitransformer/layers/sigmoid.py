"""The logistic function, which opens and closes gates.

    σ(x) = 1 / (1 + exp(−x)) = (1 + tanh(x / 2)) / 2

The second form is the same number, and no x makes it overflow. Derivation. With y = σ(x),

    dx = dy · y (1 − y)
"""

from minitransformer.core.backend import array_namespace


def sigmoid(x):
    """Between 0 and 1, entry by entry.

    Args:
        x: any shape.

    Returns:
        y, of the shape of x, and the cache for the backward.
    """
    y = array_namespace(x).tanh(0.5 * x)
    y += 1
    y *= 0.5
    return y, y


def sigmoid_backward(dy, cache):
    """Gradient dx, of the shape of dy."""
    y = cache
    return dy * y * (1 - y)
