"""Exercises of lesson 17, making it fast. Check yours:  minitransformer check ex17

Rates are in operations a second, bandwidths in bytes a second, as in the lesson.
"""

import math

import numpy as np


def rows_to_be_busy(d_in, d_out, rate, bandwidth, itemsize):
    """25 min. From how many rows on a linear map is bound by arithmetic and not by memory.

    Y = X W with X (rows, d_in) and W (d_in, d_out). Each of the three crosses the memory once.

    Args:
        d_in, d_out: the widths.
        rate: P, operations a second.
        bandwidth: β, bytes a second.
        itemsize: bytes of a number.

    Returns:
        the rows at which both bounds are equal, a float, not rounded; math.inf if memory is the
        bound for any number of them.

    Hint: write down both times, and collect what has the factor `rows`.
    """
    raise NotImplementedError


def relu_dropout(x, keep, scale):
    """45 min, with its backward. ReLU and dropout in one, which keeps one array.

        y = max(0, x) · keep · scale

    Args:
        x: (B, T, F).
        keep: boolean (B, T, F), the dropout's mask.
        scale: a positive number, 1 / (1 − p).

    Returns:
        y (B, T, F), and a tuple, the cache: of arrays of this size y alone, which the next layer
        keeps anyway; numbers as you like.
    """
    raise NotImplementedError


def relu_dropout_backward(dy, cache):
    """Gradient dx (B, T, F).

    Hint: an entry of y that is 0 was dead, or dropped. Must the backward know which?
    """
    raise NotImplementedError


def streamed_average(blocks):
    """90 min. A softmax's weighted average, in one pass over scores that never all exist at once.

    This is what a fused attention kernel does for one query: blocks of keys and values come
    by, each is seen once, and only a few numbers are kept of those before.

    Args:
        blocks: an iterator of pairs: scores (n,) and values (n, K), with a different n each. Scores
            may be large (1000), and -inf where a position is forbidden; in every block, or in none.

    Returns:
        the average (K,): Σ softmax(all scores) · values, and zeros if all is forbidden.

    Hint: keep the largest score so far, and sums relative to it. What must happen to the sums
    when a larger score comes by?
    """
    raise NotImplementedError
