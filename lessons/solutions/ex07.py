"""Solutions of lesson 07, layer normalisation."""

import numpy as np

EPSILON = 1e-5


def dx_when_scaled(dx, c):
    """x̂ is the same at c · x, and σ is c times as large; dx = (…) / σ.

    A layer that always feeds a normalisation therefore slows down as its weights grow: its output
    keeps its effect, and its gradient shrinks.
    """
    return dx / c


def lean_layer_norm(x, gamma, beta):
    centred = x - x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)  # (B, T, 1)
    y = gamma * centred / sigma + beta
    return y, (y, sigma, gamma, beta)


def lean_layer_norm_backward(dy, cache):
    """The price: where a gain is nearly 0, (y − β) / γ is mostly rounding error."""
    y, sigma, gamma, beta = cache
    x_hat = (y - beta) / gamma
    dx_hat = dy * gamma
    mean = dx_hat.mean(axis=-1, keepdims=True)
    overlap = (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat - mean - x_hat * overlap) / sigma
    return dx, (dy * x_hat).sum(axis=(0, 1)), dy.sum(axis=(0, 1))


def rms_norm(x, gamma):
    rms = np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPSILON)  # (B, T, 1)
    x_hat = x / rms
    return gamma * x_hat, (x_hat, rms, gamma)


def rms_norm_backward(dy, cache):
    """r² = mean(x²) + ε, so ∂r/∂x_j = x_j / (D r) = x̂_j / D, as for LayerNorm's σ. Hence

        ∂x̂_i/∂x_j = [i = j] / r − x_i / r² · x̂_j / D = ([i = j] − x̂_i x̂_j / D) / r

    and the term along 1 is gone with the mean.
    """
    x_hat, rms, gamma = cache
    dx_hat = dy * gamma
    dx = (dx_hat - x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)) / rms
    return dx, (dy * x_hat).sum(axis=(0, 1))


def masked_batch_norm(x, gamma, beta, valid):
    rows = x[valid]  # (N, D)
    centred = rows - rows.mean(axis=0)
    sigma = np.sqrt((centred**2).mean(axis=0) + EPSILON)  # (D,)
    x_hat = centred / sigma
    y = np.zeros_like(x)
    y[valid] = gamma * x_hat + beta
    return y, (x_hat, sigma, gamma, valid)


def masked_batch_norm_backward(dy, cache):
    """LayerNorm's closed form with the means down the columns: the formulas differ by an axis."""
    x_hat, sigma, gamma, valid = cache
    drows = dy[valid]  # (N, D)
    dx_hat = drows * gamma
    dx = np.zeros_like(dy)
    dx[valid] = (dx_hat - dx_hat.mean(axis=0) - x_hat * (dx_hat * x_hat).mean(axis=0)) / sigma
    return dx, (drows * x_hat).sum(axis=0), drows.sum(axis=0)
