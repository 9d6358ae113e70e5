"""Batch normalisation in few passes, most in place.

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
    rows, channels = _long_rows(x), len(gamma)  # (rows, X·C)
    count = x.size // channels
    mean = _of_channels(np.ones(len(rows), x.dtype) @ rows, channels) / count  # (C,)
    centred = rows - _along(rows, mean)  # (rows, X·C)
    variance = _of_channels(_column_products(centred, centred), channels) / count  # (C,)
    y, cache = _scaled(centred, gamma, beta, variance, epsilon)
    return (y.reshape(x.shape), mean, variance), cache


def batch_norm_backward(dy, cache):
    """As the reference."""
    centred, inverse_sigma, gamma = cache
    dx, dgamma, dbeta = running_norm_backward(dy, cache)
    count = dy.size // len(gamma)
    through_mean = gamma * inverse_sigma * dbeta / count  # (C,)
    through_sigma = gamma * inverse_sigma**2 * dgamma / count  # (C,)
    rows = dx.reshape(centred.shape)  # (rows, X·C)
    rows -= _along(rows, through_mean)
    rows -= centred * _along(rows, through_sigma)
    return dx, dgamma, dbeta


def running_norm(x, gamma, beta, mean, variance, epsilon=1e-5):
    """As the reference."""
    reference.check_width(x, gamma, beta)
    rows = _long_rows(x)
    centred = rows - _along(rows, mean)  # (rows, X·C)
    y, cache = _scaled(centred, gamma, beta, variance, epsilon)
    return y.reshape(x.shape), cache


def running_norm_backward(dy, cache):
    """As the reference."""
    centred, inverse_sigma, gamma = cache
    rows, channels = dy.reshape(centred.shape), len(gamma)  # (rows, X·C)
    dbeta = _of_channels(np.ones(len(rows), dy.dtype) @ rows, channels)  # (C,)
    dgamma = _of_channels(_column_products(rows, centred), channels) * inverse_sigma  # (C,)
    dx = rows * _along(rows, gamma * inverse_sigma)
    return dx.reshape(dy.shape), dgamma, dbeta


def _scaled(centred, gamma, beta, variance, epsilon):
    """y of rows x − μ, and the cache of both backwards."""
    inverse_sigma = 1 / np.sqrt(variance + float(epsilon))  # (C,)
    y = centred * _along(centred, gamma * inverse_sigma)
    y += _along(centred, beta)
    return y, (centred, inverse_sigma, gamma)


def _long_rows(x):
    """(..., X, C) as (rows, X·C), and (N, C) as it is."""
    return x.reshape(-1, x.shape[-2] * x.shape[-1]) if x.ndim > 2 else x.reshape(-1, x.shape[-1])


def _along(rows, of_channels):
    """What is given for each channel, as often as it stands in a row: (X·C,)."""
    return np.tile(of_channels, rows.shape[1] // len(of_channels))


def _of_channels(sums, channels):
    """Of sums (X·C,) those of each channel, (C,)."""
    return sums.reshape(-1, channels).sum(axis=0)


def _column_products(x, y):
    """The sum of x y over the rows, without x y itself."""
    return np.einsum("rc,rc->c", x, y)


reference.batch_norm.twins.setdefault("numpy", Twin(batch_norm, batch_norm_backward))
reference.running_norm.twins.setdefault("numpy", Twin(running_norm, running_norm_backward))
