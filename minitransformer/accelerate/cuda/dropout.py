"""Dropout that keeps no mask: its kernels draw the bits of a mask where they need them.

What the bits are depends on nothing but the generator's key, the number of the draw and the place
of an entry (``counter_generator.py``), so that the backward draws them again.
"""

import math
from typing import NamedTuple

import numpy as np

from minitransformer.accelerate.cuda.kernels import launch
from minitransformer.accelerate.cuda.launches import elementwise, matrix
from minitransformer.core.backend import array_namespace
from minitransformer.core.counter_generator import CounterGenerator
from minitransformer.core.twins import Twin
from minitransformer.layers import dropout as reference_dropout
from minitransformer.layers import residual as reference_residual


class Draw(NamedTuple):
    """The last arguments of a kernel with dropout: which bits, and what to do with them."""

    key: int
    number: int
    threshold: int
    scale: float


KEEP_ALL = Draw(0, 0, 0, 1.0)


def next_draw(p, rng):
    """The Draw of the next mask, or KEEP_ALL.

    Raises:
        ValueError: p is outside [0, 1).
        TypeError: the generator is not one whose bits a kernel can draw.
    """
    reference_dropout.check_probability(p)
    if rng is None or p == 0:
        return KEEP_ALL
    if not isinstance(rng, CounterGenerator):
        raise TypeError(
            f"accelerated dropout needs a CounterGenerator and got a {type(rng).__name__}; "
            "take the one of Device.generator(seed), or leave accelerated()"
        )
    # u >= p for u a multiple of 2^-24, with p rounded to float32 as the comparison of arrays does
    threshold = math.ceil(float(np.float32(p)) * 2**24)
    return Draw(rng.key, rng.next_draw(), threshold, 1 / (1 - float(p)))


def dropout(x, p=0.0, rng=None):
    """As the reference."""
    draw = next_draw(p, rng)
    return (x, None) if draw is KEEP_ALL else (_masked(x, draw), draw)


def dropout_backward(dy, draw):
    """As the reference."""
    return dy if draw is None else _masked(dy, draw)


def residual(x, h, p=0.0, rng=None):
    """As the reference."""
    draw = next_draw(p, rng)
    if draw is KEEP_ALL:
        return x + h, None
    x, h, shape = matrix(x), matrix(h), x.shape
    z = array_namespace(x).empty(x.shape, x.dtype)
    launch("residual", *elementwise(*x.shape), x, h, z, *x.shape, *draw)
    return z.reshape(shape), draw


def residual_backward(dz, draw):
    """As the reference."""
    return dz, dropout_backward(dz, draw)


def _masked(x, draw):
    x, shape = matrix(x), x.shape
    y = array_namespace(x).empty(x.shape, x.dtype)
    launch("dropout", *elementwise(*x.shape), x, y, *x.shape, *draw)
    return y.reshape(shape)


reference_dropout.dropout.twins.setdefault("cupy", Twin(dropout, dropout_backward))
reference_residual.residual.twins.setdefault("cupy", Twin(residual, residual_backward))
