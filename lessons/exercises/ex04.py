"""Exercises of lesson 04, softmax and cross-entropy. Check yours:  minitransformer check ex04

Shapes: N rows, V words. Scores z may be anything between −10,000 and 10,000.
"""

import numpy as np


def perplexity_at_the_floor(vocabulary_size, smoothing):
    """10 min. The perplexity, exp(NLL), of a model whose smoothed loss is as low as possible.

    Args:
        vocabulary_size: V.
        smoothing: ε, 0 <= ε < 1.

    Returns:
        a number.

    Hint: what are its probabilities there? The NLL looks at one of them only.
    """
    raise NotImplementedError


def log_softmax(z):
    """25 min, with its backward. The logarithm of the softmax over the last axis.

    Args:
        z: (N, V).

    Returns:
        y (N, V), finite for all scores, and the cache for the backward.
    """
    raise NotImplementedError


def log_softmax_backward(dy, cache):
    """Gradient dz (N, V), for a dy that may be anything.

    Hint: ∂y_v/∂z_u is in section 4. There Σ_v q_v was 1; what stands in its place?
    """
    raise NotImplementedError


def log_sum_exp_in_chunks(chunks):
    """25 min. The logarithm of the sum of exp(z) over scores that come in portions.

    Args:
        chunks: an iterator of arrays (n,), n >= 1 and different from one to the next. It can be
            gone through only once, and all together they may not fit in memory: keep a few numbers,
            not the arrays. Scores may be −∞, forbidden; in a whole portion too, but not in all.

    Returns:
        a number, right to 12 digits.

    Hint: keep the largest score so far, and the sum relative to it. What becomes of that sum when a
    larger score comes? Beware of −∞ − (−∞).
    """
    raise NotImplementedError


def distillation(z, u, temperature):
    """45 min, with its backward. How far a pupil's words are from a teacher's (Hinton et al. 2015).

        p = softmax(z / τ)      q = softmax(u / τ)      loss = −mean over rows of Σ_v q_v log p_v

    Args:
        z: the pupil's scores (N, V).
        u: the teacher's scores (N, V).
        temperature: τ, a positive number.

    Returns:
        the loss, a number, finite for all scores; and the cache for the backward.
    """
    raise NotImplementedError


def distillation_backward(dloss, cache):
    """Gradients dz (N, V) and du (N, V), each times dloss, a number.

    Hint: for dz, section 4 holds for any q. For du, log p is a constant: what is dq, and what does
    a softmax make of it?
    """
    raise NotImplementedError
