"""Exercises of lesson 06, positions. Check yours:  minitransformer check ex06

Shapes: B batch, T length, D width (even), H heads, K width of a head (even).
"""

import numpy as np


def pairs_that_turn(length, d_model):
    """10 min. How many pairs of the encoding turn at least once within a sentence.

    Pair i turns by 10000^(−2i/D) radians with each step; a sentence of T tokens has T − 1 steps.

    Args:
        length: T, at least 2.
        d_model: D.

    Returns:
        how many of the D/2 pairs turn by 2π or more from the first token to the last.

    Hint: for which frequencies is (T − 1) · ω ≥ 2π?
    """
    raise NotImplementedError


def learned_positions(x, table):
    """25 min, with its backward. A table of positions that is a parameter.

    Args:
        x: (B, T, D).
        table: (M, D), M ≥ T: a row for each position.

    Returns:
        y (B, T, D), x plus the first T rows, and a tuple, the cache.
    """
    raise NotImplementedError


def learned_positions_backward(dy, cache):
    """Gradients dx (B, T, D), dtable (M, D).

    Hint: a row serves every sentence of the batch. What is the gradient of a row that serves none?
    """
    raise NotImplementedError


def rotary(x):
    """45 min, with its backward. Queries or keys, turned by their position (Su and others 2021).

    At position t, the pair (x_2i, x_2i+1) is a point in the plane. Turn it by the angle t · ω_i,
    counter-clockwise, with ω_i = 10000^(−2i/K):

        y_2i   = x_2i cos(t ω_i) − x_2i+1 sin(t ω_i)
        y_2i+1 = x_2i sin(t ω_i) + x_2i+1 cos(t ω_i)

    Args:
        x: (B, H, T, K), all heads alike.

    Returns:
        y (B, H, T, K) and a tuple, the cache.
    """
    raise NotImplementedError


def rotary_backward(dy, cache):
    """Gradient dx (B, H, T, K).

    Hint: y = R x, so dx = Rᵀ dy. What does the transpose of a rotation do?
    """
    raise NotImplementedError
