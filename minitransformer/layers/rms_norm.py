"""Normalisation by the root mean square of the last axis (Zhang and Sennrich 2019).

    ρ = √(mean(x²) + ε)    x̂ = x / ρ    y = γ x̂

It is layer normalisation without a mean that is taken off and without a shift: half of what is
worked out there, and it trains as well. Derivation, as in ``layer_norm.py``: first dx̂ = dy γ. Each
x_j moves x̂_j directly, and every x̂_i of its row through ρ:

    ∂x̂_i/∂x_j = ([i = j] − x̂_i x̂_j / D) / ρ

    dx_j = Σ_i dx̂_i ∂x̂_i/∂x_j = (dx̂_j − x̂_j mean(dx̂ x̂)) / ρ

dx̂ loses its component along x̂ alone, because rescaling a row changes nothing (up to ε), and
shifting it does. γ serves every row:  dγ = Σ_rows dy x̂.
"""

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.core.twins import twinned


@twinned
def rms_norm(x, gamma, epsilon=1e-5):
    """Each row brought to a mean square of 1, then scaled by gamma.

    Args:
        x: (..., D).
        gamma: (D,).
        epsilon: added to the mean square, so that a row of zeros gives zeros and not NaN.

    Returns:
        y (..., D) and the cache for the backward.

    Raises:
        ValueError: gamma is not as wide as x.
    """
    if x.shape[-1:] != gamma.shape:
        raise ValueError(
            f"x of shape {x.shape} needs a gamma of shape {x.shape[-1:]}; its shape is "
            f"{gamma.shape}"
        )
    xp = array_namespace(x)
    mean_square = (x * x).mean(axis=-1, keepdims=True)  # (..., 1)
    rho = xp.sqrt(mean_square + float(epsilon))  # (..., 1)
    x_hat = x / rho
    return gamma * x_hat, (x_hat, rho, gamma)


@twinned
def rms_norm_backward(dy, cache):
    """Gradients dx (..., D) and dgamma (D,)."""
    x_hat, rho, gamma = cache
    rows = tuple(range(dy.ndim - 1))
    dgamma = (dy * x_hat).sum(axis=rows)  # (D,)
    dx_hat = dy * gamma
    through_rho = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat - through_rho) / rho
    return dx, dgamma


class RMSNorm(Module):
    """Normalisation by the root mean square with its own gain gamma, ones at first."""

    def __init__(self, d_model, *, epsilon=1e-5):
        self.gamma = Parameter(np.ones(d_model, dtype=np.float32))
        self.epsilon = epsilon

    def forward(self, x):
        return rms_norm(x, self.gamma.data, self.epsilon)

    def backward(self, dy, cache):
        dx, dgamma = rms_norm_backward(dy, cache)
        self.gamma.grad += dgamma
        return dx
