r"""Linear map, y = x W + b (the projections of section 3.2.2 and both maps of section 3.3).

Derivation. For one row, y_j = Σ_i x_i W_ij + b_j, so

    ∂L/∂x_i  = Σ_j ∂L/∂y_j W_ij          dx = dy Wᵀ
    ∂L/∂W_ij = Σ_rows x_i ∂L/∂y_j        dW = xᵀ dy
    ∂L/∂b_j  = Σ_rows ∂L/∂y_j            db = column sums of dy

W and b serve every row, so their gradients are sums over the rows. All leading axes are flattened
into one, (tokens, features), which makes each product a single GEMM.
"""

import numpy as np

from minitransformer.core.module import Module, Parameter
from minitransformer.core.twins import twinned
from minitransformer.layers.first_weights import first_weight, glorot


@twinned
def linear(x, weight, bias=None):
    """y = x W + b.

    Args:
        x: (..., D_in).
        weight: (D_in, D_out).
        bias: (D_out,) or None for a map without one.

    Returns:
        y (..., D_out) and the cache for :func:`linear_backward`.

    Raises:
        ValueError: the last axis of x is not D_in.
    """
    d_in, d_out = weight.shape
    check_features(x, weight)
    y = x.reshape(-1, d_in) @ weight  # (tokens, D_out)
    if bias is not None:
        y += bias
    return y.reshape(*x.shape[:-1], d_out), (x, weight, bias)  # (..., D_out)


@twinned
def linear_backward(dy, cache):
    """Gradients dx (..., D_in), dweight (D_in, D_out) and dbias (D_out,), None without a bias."""
    x, weight, bias = cache
    d_in, d_out = weight.shape
    dy = dy.reshape(-1, d_out)  # (tokens, D_out)
    dbias = None if bias is None else dy.sum(axis=0)  # (D_out,)
    dweight = x.reshape(-1, d_in).T @ dy  # (D_in, D_out)
    dx = (dy @ weight.T).reshape(x.shape)  # (..., D_in)
    return dx, dweight, dbias


def check_features(x, weight):
    """Raise unless x has as many features as the weight has rows."""
    if x.shape[-1] != weight.shape[0]:
        raise ValueError(f"x of shape {x.shape} does not fit a weight of shape {weight.shape}")


class Linear(Module):
    """A linear map with its own weight and a bias of zeros.

    Args:
        d_in, d_out: widths of input and output.
        rng: NumPy generator for the weight.
        bias: whether there is one.
        start: how the weight is drawn, one of the STARTS in ``first_weights.py``.
    """

    def __init__(self, d_in, d_out, rng, *, bias=True, start="glorot"):
        self.weight = Parameter(first_weight(start, (d_in, d_out), d_in, d_out, rng))
        self.bias = Parameter(np.zeros(d_out, dtype=np.float32)) if bias else None

    def forward(self, x):
        bias = None if self.bias is None else self.bias.data
        return linear(x, self.weight.data, bias)

    def backward(self, dy, cache):
        dx, dweight, dbias = linear_backward(dy, cache)
        self.weight.grad += dweight
        if self.bias is not None:
            self.bias.grad += dbias
        return dx


def glorot_uniform(shape, rng):
    """Weights (D_in, D_out) drawn so that variance survives both directions: :func:`glorot`."""
    return glorot(shape, *shape, rng)
