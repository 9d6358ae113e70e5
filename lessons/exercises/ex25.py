"""Exercises of lesson 25, one vector, or attention. Check yours:  minitransformer check ex25

Shapes: B batch, T steps of the decoder, S source positions, D and E widths of queries and keys.
"""

import numpy as np


def letters_that_fit(numbers, levels, letters):
    """10 min. The longest word that a state can hold, whatever learning makes of it.

    Args:
        numbers: in the state, each of which takes one of ``levels`` values.
        levels: 2 or more.
        letters: how many different ones there are, 2 or more.

    Returns:
        the largest length of which each word has a state of its own, an integer.

    Hint: count the states, and the words. Integers of Python are exact, logarithms are not.
    """
    raise NotImplementedError


def bilinear_attention(query, states, weight, mask):
    """45 min, with its backward. Attention between the two (Luong, Pham and Manning 2015).

        e_ts = q_t W h_s       A = softmax(e) over the source's tokens       c_t = Σ_s a_ts h_s

    Args:
        query: (B, T, D).
        states: of the encoder, (B, S, E).
        weight: W, (D, E).
        mask: boolean (B, S), True at tokens; padding gets the weight 0.

    Returns:
        c (B, T, E) and a tuple, the cache.
    """
    raise NotImplementedError


def bilinear_attention_backward(dcontext, cache):
    """Gradients dquery (B, T, D), dstates (B, S, E) and dweight (D, E).

    Hint: a state is a key and a value.
    """
    raise NotImplementedError
