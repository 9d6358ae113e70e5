"""Gradient clipping by the norm of the whole gradient (Pascanu, Mikolov and Bengio 2013)."""

import math

from minitransformer.backend import array_namespace
from minitransformer.workers import ONE_WORKER


def gradient_norm(grad, workers=ONE_WORKER):
    """The Euclidean norm of a flat gradient, a scalar on its device: nothing waits for it.

    Args:
        grad: the flat gradient of a model, 1-D.
        workers: Workers that share the sum, a range of the gradient each.
    """
    squares = workers.map(lambda part: grad[part] @ grad[part], workers.ranges(len(grad)))
    return array_namespace(grad).sqrt(sum(squares[1:], squares[0]))


def clip_scale(norm, max_norm):
    """What to multiply a gradient by so that its norm is at most ``max_norm``.

    Args:
        norm: of the gradient, a scalar on its device.
        max_norm: the largest norm that is left as it is; infinity leaves every gradient.

    Returns:
        1 up to ``max_norm``, and NaN for NaN; on the device.
    """
    if max_norm == math.inf:
        return 1.0
    return max_norm / array_namespace(norm).maximum(norm, max_norm)
