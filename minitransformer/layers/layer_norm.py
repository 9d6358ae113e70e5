"""Layer normalisation over the last axis (section 3.1; Ba, Kiros and Hinton 2016).

    μ = mean(x)    σ = √(mean((x − μ)²) + ε)    x̂ = (x − μ) / σ    y = γ x̂ + β

Derivation. γ acts after the normalisation, so the gradient first passes it:  dx̂ = dy γ. Each x_j
moves x̂_j directly, and every x̂_i of its row through μ and through σ:

    ∂x̂_i/∂x_j = ([i = j] − 1/D − x̂_i x̂_j / D) / σ

    dx_j = Σ_i dx̂_i ∂x̂_i/∂x_j = (dx̂_j − mean(dx̂) − x̂_j mean(dx̂ x̂)) / σ

with the means over the row: dx̂ loses its components along the vectors 1 and x̂, because shifting
or rescaling a row changes nothing (up to ε). γ and β serve every row:

    dγ = Σ_rows dy x̂        dβ = Σ_rows dy
"""

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.core.twins import twinned


@twinned
def layer_norm(x, gamma, beta, epsilon=1e-5):
    """Each row brought to mean 0 and variance 1, then scaled by gamma and shifted by beta.

    Args:
        x: (..., D): of pictures (B, Y, X, C) each place is a row; as (B, Y·X·C) each picture is.
        gamma, beta: (D,).
        epsilon: added to the variance, so that a constant row gives beta and not NaN.

    Returns:
        y (..., D) and the cache for the backward.

    Raises:
        ValueError: gamma or beta is not as wide as x.
    """
    check_width(x, gamma, beta)
    xp = array_namespace(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)  # (..., 1)
    sigma = xp.sqrt(variance + float(epsilon))  # (..., 1)
    x_hat = centred / sigma
    return gamma * x_hat + beta, (x_hat, sigma, gamma)


@twinned
def layer_norm_backward(dy, cache):
    """Gradients dx (..., D), dgamma (D,), dbeta (D,)."""
    x_hat, sigma, gamma = cache
    rows = tuple(range(dy.ndim - 1))
    dbeta = dy.sum(axis=rows)  # (D,)
    dgamma = (dy * x_hat).sum(axis=rows)  # (D,)
    dx_hat = dy * gamma
    through_mean = dx_hat.mean(axis=-1, keepdims=True)  # (..., 1)
    through_sigma = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat - through_mean - through_sigma) / sigma
    return dx, dgamma, dbeta


def check_width(x, gamma, beta):
    """Raise unless gamma and beta have an entry for each feature of x."""
    if not x.shape[-1:] == gamma.shape == beta.shape:
        raise ValueError(
            f"x of shape {x.shape} needs gamma and beta of shape {x.shape[-1:]}; "
            f"theirs are {gamma.shape} and {beta.shape}"
        )


class LayerNorm(Module):
    """Layer normalisation with its own gain gamma (ones at first) and shift beta (zeros)."""

    def __init__(self, d_model, *, epsilon=1e-5):
        self.gamma = Parameter(np.ones(d_model, dtype=np.float32))
        self.beta = Parameter(np.zeros(d_model, dtype=np.float32))
        self.epsilon = epsilon

    def forward(self, x):
        return layer_norm(x, self.gamma.data, self.beta.data, self.epsilon)

    def backward(self, dy, cache):
        dx, dgamma, dbeta = layer_norm_backward(dy, cache)
        self.gamma.grad += dgamma
        self.beta.grad += dbeta
        return dx
