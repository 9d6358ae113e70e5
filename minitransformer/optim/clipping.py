"""Gradient clipping by the norm of the whole gradient (Pascanu, Mikolov and Bengio 2013)."""

import math

from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import twinned


@twinned
def gradient_norm(grad):
    """The Euclidean norm of the flat gradient of a model, 1-D.

    Returns:
        a scalar on its device: nothing waits for it.
    """
    return array_namespace(grad).sqrt(grad @ grad)


@twinned
def clip_scale(norm, max_norm):
    """What to multiply a gradient by so that its norm is at most ``max_norm``.

    Args:
        norm: of the gradient, a scalar on its device.
        max_norm: the largest norm that is left as it is; infinity leaves every gradient.

    Returns:
        1 up to ``max_norm``, 0 for infinity, which norms above 1.8e19 are in float32, and NaN for
        NaN; on the device.
    """
    if max_norm == math.inf:
        return 1.0
    return max_norm / array_namespace(norm).maximum(norm, max_norm)
