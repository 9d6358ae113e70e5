"""Exercises of lesson 02, backpropagation by hand. Check yours:  minitransformer check ex02

Shapes: N rows, B batch, T length, D width, F inner width.
"""

import numpy as np


def residual_chain_slope(slopes):
    """10 min. The slope of a chain of residual blocks of single numbers.

    Block k maps x to x + f_k(x). At the numbers that come along, f_k has the local slope slopes[k].
    How fast does the output of the last block move when the input of the first does?

    Args:
        slopes: a list of numbers, as many as there are blocks; there may be 60.

    Returns:
        a number: the sum over all paths, of which there are 2 to the power of len(slopes).

    Hint: what is the slope of one block? Of two?
    """
    raise NotImplementedError


def gram(x):
    """25 min, with its backward. All inner products of the rows of x with one another.

        y = x xᵀ        y_mn = Σ_i x_mi x_ni

    Args:
        x: (N, D).

    Returns:
        y (N, N) and the cache for the backward.
    """
    raise NotImplementedError


def gram_backward(dy, cache):
    """Gradient dx (N, D). dy need not be symmetric.

    Hint: x stands in two places. What is Δy when x moves by Δx? Bring Δx to stand alone on the
    right of ⟨ , ⟩; for two matrices of one shape, ⟨A, B⟩ = ⟨Aᵀ, Bᵀ⟩.
    """
    raise NotImplementedError


def two_layer_network(x, w_1, b_1, w_2, b_2):
    """45 min, with its backward. The feed-forward network and its input added at the end.

        y = x + max(0, x W_1 + b_1) W_2 + b_2

    In plain NumPy: the point is to write every line of the backward yourself.

    Args:
        x: (B, T, D).
        w_1, b_1: (D, F) and (F,).
        w_2, b_2: (F, D) and (D,).

    Returns:
        y (B, T, D) and the cache for the backward.
    """
    raise NotImplementedError


def two_layer_network_backward(dy, cache):
    """Gradients dx (B, T, D), dw_1 (D, F), db_1 (F,), dw_2 (F, D), db_2 (D,).

    Hint: draw the graph first. How many arrows leave x?
    """
    raise NotImplementedError


def gradients_of(tape, dy):
    """45 min. Backpropagation through any program that wrote down what it did.

    Args:
        tape: a list of (output, inputs, backward, cache), one for each call of a forward, in the
            order in which they ran. ``output`` is the name of what came out and ``inputs`` a tuple
            of the names of what went in. ``backward(dy, cache)`` returns a tuple, a gradient for
            each input. A name may be the input of several calls, or twice the input of one.
        dy: the gradient of the output of the last call, read-only.

    Returns:
        a dictionary: the gradient of every name on which the last output depends, itself included.

    Hint: what of a call whose output has got no gradient? And beware: a backward may return dy
    itself, even twice, so an array that is added to in place may be somebody else's.
    """
    raise NotImplementedError
