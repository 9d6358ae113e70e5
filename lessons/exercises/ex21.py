"""Exercises of lesson 21, why self-attention. Check yours:  minitransformer check ex21

n and d as in the paper's table 1.
"""

import numpy as np


def crossing_length(d, gates):
    """10 min. The length from which on multi-head attention takes more than a recurrent layer.

    Multi-head attention multiplies each position by four (d, d) matrices, beside what section 2
    counts. A recurrent layer multiplies each position by two (d, d) matrices for each of its
    gates: the simple layer has 1, a GRU 3, an LSTM 4.

    Args:
        d: width.
        gates: how many, from 1.

    Returns:
        the n beyond which attention takes more multiply-adds, a number; 0 if it always does.

    Hint: both counts have a factor n d in common.
    """
    raise NotImplementedError


def distances_seen(layers, n):
    """25 min. Which distances the last position sees through a stack of causal layers.

    A layer (k, δ) sees k positions of what is below it: its own, and those δ, 2 δ, … (k − 1) δ
    before. So restricted attention with a causal window r is the layer (r + 1, 1).

    Args:
        layers: a list of pairs (k, δ), the lowest first.
        n: how many distances to tell of.

    Returns:
        boolean (n,): entry m is True if the last position of the top depends on the input m
        positions before it.

    Hint: what does a second layer see, if you know what each position of the first one sees?
    """
    raise NotImplementedError
