"""Exercises of lesson 07, layer normalisation. Check yours:  minitransformer check ex07

Shapes: B batch, T length, D width. EPSILON is added to a mean square before the root is taken.
"""

import numpy as np

EPSILON = 1e-5


def dx_when_scaled(dx, c):
    """10 min. The gradient at c · x, when dx is the one at x.

    LayerNorm with ε = 0 gives the same y for x and for c · x. What does its backward give, for the
    same dy?

    Args:
        dx: (B, T, D), what layer_norm_backward returns at x.
        c: a positive number.

    Returns:
        what it returns at c · x, (B, T, D).

    Hint: write down x̂ and σ at c · x, then look at the closed form.
    """
    raise NotImplementedError


def lean_layer_norm(x, gamma, beta):
    """25 min, with its backward. LayerNorm that keeps y for its backward, and not x̂.

    The next layer keeps y anyway, as its input; whoever keeps x̂ as well holds the same numbers
    twice.

    Args:
        x: (B, T, D).
        gamma, beta: (D,); gamma is nowhere 0.

    Returns:
        y (B, T, D), and a tuple, the cache: y, the row's σ (B, T, 1), gamma and beta, no more.
    """
    raise NotImplementedError


def lean_layer_norm_backward(dy, cache):
    """Gradients dx (B, T, D), dgamma (D,), dbeta (D,).

    Hint: get x̂ back from y first.
    """
    raise NotImplementedError


def rms_norm(x, gamma):
    """45 min, with its backward. RMSNorm (Zhang and Sennrich 2019): scale, and subtract no mean.

        r = √(mean(x²) + ε)      x̂ = x / r      y = γ x̂

    Args:
        x: (B, T, D).
        gamma: (D,).

    Returns:
        y (B, T, D) and a tuple, the cache.
    """
    raise NotImplementedError


def rms_norm_backward(dy, cache):
    """Gradients dx (B, T, D), dgamma (D,).

    Hint: derive ∂r/∂x_j first. Of LayerNorm's two mean terms one stays: which?
    """
    raise NotImplementedError


def masked_batch_norm(x, gamma, beta, valid):
    """90 min, with its backward. BatchNorm whose statistics are those of the real tokens alone.

    Each feature is brought to mean 0 and variance 1 over the N rows where valid is True; then γ and
    β apply as ever. y is 0 at padding.

    Args:
        x: (B, T, D).
        gamma, beta: (D,).
        valid: boolean (B, T), False at padding.

    Returns:
        y (B, T, D) and a tuple, the cache.
    """
    raise NotImplementedError


def masked_batch_norm_backward(dy, cache):
    """Gradients dx (B, T, D), dgamma (D,), dbeta (D,).

    dy may be anything at padding; nothing there has an influence, so dx is 0 there.

    Hint: x[valid] is (N, D). What is the closed form of LayerNorm for its transpose?
    """
    raise NotImplementedError
