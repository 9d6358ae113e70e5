"""Low-rank adapters, LoRA (Hu et al. 2022): a trained weight stays, and what it lacks is learned.

    y = x W + b + (α/r) (x A) B        A (D_in, r), B (r, D_out), r small

W and b are frozen. Their correction (α/r) A B has rank r, and r (D_in + D_out) numbers to train in
place of D_in D_out. B is zeros at first, so that training starts at the model as it was; α/r keeps
the size of a step when r changes. After training :meth:`LowRankLinear.merged` adds it to W, and
inference costs what it did.

Derivation. Two maps as in ``linear.py``, one after the other. With h = x A and s = α/r:

    dB = s hᵀ dy        dh = s dy Bᵀ        dA = xᵀ dh        dx = dy Wᵀ + dh Aᵀ

The gradient of W is not worked out, but dx goes through it: layers before it may be trained. While
B is zero so is dA, and B alone moves; a start of A at zero as well would never be left.
"""

import numpy as np

from minitransformer.core.module import Module, Parameter
from minitransformer.core.parameter import Frozen
from minitransformer.layers.linear import glorot_uniform, linear


def low_rank_linear(x, weight, bias, a, b, scale):
    """A linear map and its correction, y = x W + bias + scale · (x A) B.

    Args:
        x: (..., D_in).
        weight: (D_in, D_out), frozen.
        bias: (D_out,), frozen, or None.
        a, b: (D_in, r) and (r, D_out).
        scale: α/r.

    Returns:
        y (..., D_out) and the cache for the backward.

    Raises:
        ValueError: the last axis of x is not D_in.
    """
    y, _ = linear(x, weight, bias)  # (..., D_out)
    h, _ = linear(x, a)  # (..., r)
    correction, _ = linear(h, b)  # (..., D_out)
    return y + scale * correction, (x, h, weight, a, b, scale)


def low_rank_linear_backward(dy, cache):
    """Gradients dx (..., D_in), da (D_in, r) and db (r, D_out)."""
    x, h, weight, a, b, scale = cache
    d_in, rank = a.shape
    dy = dy.reshape(-1, dy.shape[-1])  # (tokens, D_out)
    db = scale * (h.reshape(-1, rank).T @ dy)  # (r, D_out)
    dh = scale * (dy @ b.T)  # (tokens, r)
    da = x.reshape(-1, d_in).T @ dh  # (D_in, r)
    dx = dy @ weight.T + dh @ a.T  # (tokens, D_in)
    return dx.reshape(x.shape), da, db


class LowRankLinear(Module):
    """A linear layer that stays as it is, and a correction of it that is trained.

    Args:
        linear: the :class:`Linear` to adapt; its arrays are Frozen here.
        rank: r.
        rng: NumPy generator for A; B is zeros.
        alpha: α; r by itself, so that the correction counts as it is.

    Raises:
        ValueError: the rank is less than 1, or so large that nothing is saved.
    """

    def __init__(self, linear, rank, rng, *, alpha=None):
        d_in, d_out = linear.weight.data.shape
        most = (d_in * d_out - 1) // (d_in + d_out)
        if not 1 <= rank <= most:
            raise ValueError(
                f"rank={rank} of a correction of {d_in} x {d_out} must lie in 1 <= rank <= {most}; "
                "with more it has as many numbers as the weight itself"
            )
        self.weight = Frozen(linear.weight.data)
        self.bias = None if linear.bias is None else Frozen(linear.bias.data)
        self.a = Parameter(glorot_uniform((d_in, rank), rng))
        self.b = Parameter(np.zeros((rank, d_out), dtype=np.float32))
        self.scale = 1.0 if alpha is None else alpha / rank

    def forward(self, x):
        bias = None if self.bias is None else self.bias.data
        a, b = self.a.data, self.b.data
        return low_rank_linear(x, self.weight.data, bias, a, b, self.scale)

    def backward(self, dy, cache):
        dx, da, db = low_rank_linear_backward(dy, cache)
        self.a.grad += da
        self.b.grad += db
        return dx

    def merged(self):
        """One weight (D_in, D_out) in place of three: W + α/r A B."""
        return self.weight.data + self.scale * (self.a.data @ self.b.data)
