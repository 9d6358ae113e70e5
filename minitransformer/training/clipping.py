"""Gradient clipping by the norm of the whole gradient (Pascanu, Mikolov and Bengio 2013)."""

import math

from minitransformer.backend import array_namespace


def clip_gradient(grad, max_norm):
    """Scale ``grad`` in place so that its norm is at most ``max_norm``; returns the norm before.

    Args:
        grad: the flat gradient of a model, 1-D.
        max_norm: the largest norm that is left as it is; infinity leaves every gradient.

    Returns:
        A scalar on the device: nothing waits for it.
    """
    xp = array_namespace(grad)
    norm = xp.sqrt(grad @ grad)
    if max_norm < math.inf:
        grad *= max_norm / xp.maximum(norm, max_norm)  # 1 up to max_norm, and NaN for NaN
    return norm
