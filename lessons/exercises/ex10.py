"""Exercises of lesson 10, residual connections. Check yours:  minitransformer check ex10

Shapes: B batch, T length, D width.
"""

import numpy as np


def branch_scale(num_blocks, v, growth):
    """10 min. The factor s of x + s · f(x) that lets the stream grow to a given mean square.

    Without LayerNorm each block multiplies the mean square of the stream by 1 + v, where v is that
    of f for an input of mean square 1. With a factor s before f, it is less.

    Args:
        num_blocks: n.
        v: as above.
        growth: what n blocks shall multiply the mean square of the stream by, above 1.

    Returns:
        s, a positive number.

    Hint: what does s do to v?
    """
    raise NotImplementedError


def gated_residual(x, h, alpha):
    """25 min, with its backward. z = x + α h with a learned number α (ReZero, Bachlechner 2020).

    Args:
        x, h: (B, T, D), the stream and what the sublayer returned.
        alpha: α, an array of shape ().

    Returns:
        z (B, T, D) and a tuple, the cache.
    """
    raise NotImplementedError


def gated_residual_backward(dz, cache):
    """Gradients dx (B, T, D), dh (B, T, D), dalpha ().

    Hint: how many entries of z does α serve? And what is dh in the first step, when α = 0?
    """
    raise NotImplementedError


def reversible_block(x1, x2, f, g):
    """45 min, with its backward. Two streams that correct each other in turn (Gomez et al. 2017).

        y1 = x1 + f(x2)        y2 = x2 + g(y1)

    Args:
        x1, x2: (B, T, D).
        f, g: sublayers, each a pair (forward, backward) with forward(x) -> (y, cache) and
            backward(dy, cache) -> dx.

    Returns:
        y1, y2, each (B, T, D). No cache.
    """
    raise NotImplementedError


def reversible_block_backward(y1, y2, dy1, dy2, f, g):
    """The inputs and their gradients, from the outputs alone: x1, x2, dx1, dx2, each (B, T, D).

    Hint: which of x1 and x2 can you compute first, from y1 and y2? Its sublayer's cache comes along
    with it. Then find all the uses of y1.
    """
    raise NotImplementedError
