"""Batch normalisation of each feature over all rows of a batch (Ioffe and Szegedy 2015).

    μ = mean(x)    σ = √(mean((x − μ)²) + ε)    x̂ = (x − μ) / σ    y = γ x̂ + β

with the means over all N rows: the sentences or examples of (B, C), all places of all pictures of
(B, Y, X, C). Layer normalisation has the same formula with the means over the other axis.

Derivation. Each x_n of a feature moves x̂_n directly, and every x̂_m of its column through μ and σ:

    ∂x̂_m/∂x_n = ([m = n] − 1/N − x̂_m x̂_n / N) / σ

γ and β serve all rows, so dγ = Σ_n dy_n x̂_n and dβ = Σ_n dy_n. And as γ is the same in the whole
column, it leaves the sums over m, which are then dβ and dγ themselves:

    dx_n = Σ_m γ dy_m ∂x̂_m/∂x_n = γ/σ (dy_n − dβ/N − x̂_n dγ/N)

So every row of a batch has a part in the gradient of every other. At inference μ and σ are what
the training has seen, constants, and each row is for itself:  dx = γ/σ dy.

What it has seen are running statistics, after each batch  s ← (1 − m) s + m s_batch  with momentum
m; the variance among them is the unbiased one, N/(N − 1) times that of the batch. A step that is
shared by shards norms each by its own rows, of which there are fewer than in the batch; the
running statistics after it are the mean of those that the shards arrived at, in their order.
"""

import math

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.core.parameter import Buffer
from minitransformer.core.twins import twinned
from minitransformer.layers.layer_norm import check_width


@twinned
def batch_norm(x, gamma, beta, epsilon=1e-5):
    """Each feature brought to mean 0 and variance 1, then scaled by gamma and shifted by beta.

    Args:
        x: (..., C).
        gamma, beta: (C,).
        epsilon: added to the variance, so that a constant feature gives beta and not NaN.

    Returns:
        (y, mean, variance), of shapes (..., C), (C,) and (C,), the variance being the mean square
        around the mean; and the cache for the backward.

    Raises:
        ValueError: gamma or beta is not as wide as x.
    """
    check_width(x, gamma, beta)
    rows = tuple(range(x.ndim - 1))
    mean = x.mean(axis=rows)  # (C,)
    centred = x - mean
    variance = (centred * centred).mean(axis=rows)  # (C,)
    sigma = array_namespace(x).sqrt(variance + float(epsilon))  # (C,)
    x_hat = centred / sigma
    return (gamma * x_hat + beta, mean, variance), (x_hat, sigma, gamma)


@twinned
def batch_norm_backward(dy, cache):
    """Gradients dx (..., C), dgamma (C,), dbeta (C,), of y; mean and variance have none."""
    x_hat, sigma, gamma = cache
    rows = tuple(range(dy.ndim - 1))
    count = math.prod(dy.shape[:-1])
    dbeta = dy.sum(axis=rows)  # (C,)
    dgamma = (dy * x_hat).sum(axis=rows)  # (C,)
    through_mean = dbeta / count  # (C,)
    through_sigma = x_hat * (dgamma / count)
    dx = (dy - through_mean - through_sigma) * (gamma / sigma)
    return dx, dgamma, dbeta


@twinned
def running_norm(x, gamma, beta, mean, variance, epsilon=1e-5):
    """As :func:`batch_norm`, by a mean (C,) and a variance (C,) that are given, and stay.

    Returns:
        y (..., C) and the cache for the backward.

    Raises:
        ValueError: as for :func:`batch_norm`.
    """
    check_width(x, gamma, beta)
    sigma = array_namespace(x).sqrt(variance + float(epsilon))  # (C,)
    x_hat = (x - mean) / sigma
    return gamma * x_hat + beta, (x_hat, sigma, gamma)


@twinned
def running_norm_backward(dy, cache):
    """Gradients dx (..., C), dgamma (C,), dbeta (C,)."""
    x_hat, sigma, gamma = cache
    rows = tuple(range(dy.ndim - 1))
    dbeta = dy.sum(axis=rows)  # (C,)
    dgamma = (dy * x_hat).sum(axis=rows)  # (C,)
    return dy * (gamma / sigma), dgamma, dbeta


class BatchNorm(Module):
    """Batch normalisation with its own gain gamma (ones at first) and shift beta (zeros).

    In training, that is with a generator, it norms by the batch and notes its statistics; without
    one by what it has noted. One row, as a shard of one example of (B, C) has, or none tells no
    variance: it is normed as at inference, in training too, and not noted.

    Args:
        channels: C, how many features or channels there are.
        epsilon: as for :func:`batch_norm`.
        momentum: the part that a batch has in the running statistics.

    Attributes:
        mean, variance: Buffers (C,), the running statistics, zeros and ones at first.
    """

    def __init__(self, channels, *, epsilon=1e-5, momentum=0.1):
        self.gamma = Parameter(np.ones(channels, dtype=np.float32))
        self.beta = Parameter(np.zeros(channels, dtype=np.float32))
        self.mean = Buffer(np.zeros(channels, dtype=np.float32))
        self.variance = Buffer(np.ones(channels, dtype=np.float32))
        self.epsilon = epsilon
        self.momentum = momentum

    def forward(self, x, rng=None):
        w = (self.gamma.data, self.beta.data)
        count = math.prod(x.shape[:-1])
        if rng is None or count <= 1:
            y, cache = running_norm(x, *w, self.mean.data, self.variance.data, self.epsilon)
            return y, (running_norm_backward, cache)
        (y, mean, variance), cache = batch_norm(x, *w, self.epsilon)
        self._note(self.mean, mean)
        self._note(self.variance, variance * (count / (count - 1)))
        return y, (batch_norm_backward, cache)

    def _note(self, running, of_batch):
        running.data = (1 - self.momentum) * running.data + self.momentum * of_batch

    def backward(self, dy, cache):
        the_backward, cache = cache
        dx, dgamma, dbeta = the_backward(dy, cache)
        self.gamma.grad += dgamma
        self.beta.grad += dbeta
        return dx
