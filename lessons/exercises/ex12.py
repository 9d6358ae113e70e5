"""Exercises of lesson 12, learning. Check yours:  minitransformer check ex12

Shapes: B batch, T length, D width.
"""

import numpy as np

BETA_1, BETA_2, EPSILON = 0.9, 0.98, 1e-9


def warmup_for_peak(d_model, peak):
    """10 min. The steps of warm-up with which the paper's schedule peaks at a given learning rate.

    Args:
        d_model: D.
        peak: the largest learning rate.

    Returns:
        w, not rounded.

    Hint: in which step is the peak, and what is the learning rate there?
    """
    raise NotImplementedError


def decayed_adam_update(data, grad, m, v, learning_rate, t, decay):
    """25 min. A step of Adam with decoupled weight decay (Loshchilov and Hutter 2019), in place.

    As Adam's step, and in addition every parameter shrinks by the part learning_rate · decay of
    what it was before the step. The decay does not go through m and v.

    Args:
        data, grad, m, v: 1-D arrays of one length, θ, g and the two moments; grad stays as it is.
        learning_rate: η.
        t: number of this step, from 1.
        decay: λ.

    Hint: with g + λ θ in place of g, by what would λ θ be divided?
    """
    raise NotImplementedError


def drop_path(h, p, u):
    """25 min, with its backward. What a sublayer returns, dropped as a whole for some sentences.

    Sentence b is dropped where u[b] < p. Scaled so that the mean over many draws is h.

    Args:
        h: (B, T, D).
        p: probability of dropping a sentence's sublayer, 0 ≤ p < 1.
        u: (B,), drawn uniformly from 0 to 1; it has no gradient.

    Returns:
        y (B, T, D) and a tuple, the cache.
    """
    raise NotImplementedError


def drop_path_backward(dy, cache):
    """Gradient dh (B, T, D)."""
    raise NotImplementedError


def factored_second_moment(rows, columns, grad, beta):
    """45 min. Adam's v of a matrix, kept as a row and a column (Shazeer and Stern 2018).

    ``rows`` is the running mean, with β, of the means of g² along each row, ``columns`` of those
    along each column. v is the matrix of rank one that has just these row means and column means.

    Args:
        rows: (R,), before this step.
        columns: (C,), before this step; its mean is that of rows.
        grad: g, (R, C).
        beta: β.

    Returns:
        rows (R,) and columns (C,) after this step, as new arrays, and v (R, C), without a
        correction of bias.

    Hint: try v_ij = k · rows_i · columns_j. What are its row means? Which k makes them rows_i?
    """
    raise NotImplementedError
