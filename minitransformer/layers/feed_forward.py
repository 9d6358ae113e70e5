"""Position-wise feed-forward network (section 3.3).

    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2                                      (equation 2)

with dropout after the ReLU, which the paper does not have. It is a chain of pairs, so its backward
is the chain reversed.
"""

import numpy as np

from minitransformer.core.module import Module, Parameter
from minitransformer.core.twins import twinned
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.linear import glorot_uniform, linear, linear_backward
from minitransformer.layers.relu import relu, relu_backward


@twinned
def feed_forward(x, w_1, b_1, w_2, b_2, p=0.0, rng=None):
    """The same two-layer network at every position.

    Args:
        x: (..., D).
        w_1, b_1: (D, F) and (F,).
        w_2, b_2: (F, D) and (D,).
        p, rng: dropout after the ReLU, as for :func:`dropout`.

    Returns:
        y (..., D) and the cache for the backward.
    """
    h, inner_cache = linear(x, w_1, b_1)  # (..., F)
    h, relu_cache = relu(h)
    h, dropout_cache = dropout(h, p, rng)
    y, outer_cache = linear(h, w_2, b_2)  # (..., D)
    return y, (inner_cache, relu_cache, dropout_cache, outer_cache)


@twinned
def feed_forward_backward(dy, cache):
    """Gradients of the first five arguments, each of its argument's shape."""
    inner_cache, relu_cache, dropout_cache, outer_cache = cache
    dh, dw_2, db_2 = linear_backward(dy, outer_cache)  # (..., F)
    dh = dropout_backward(dh, dropout_cache)
    dh = relu_backward(dh, relu_cache)
    dx, dw_1, db_1 = linear_backward(dh, inner_cache)  # (..., D)
    return dx, dw_1, db_1, dw_2, db_2


class FeedForward(Module):
    """The feed-forward network with its own weights and biases of zeros.

    Args:
        d_model: width D of inputs and outputs.
        d_ff: width F between the two maps.
        rng: NumPy generator for the weights.
        p: dropout probability after the ReLU.
    """

    def __init__(self, d_model, d_ff, rng, *, p=0.0):
        self.w_1 = Parameter(glorot_uniform((d_model, d_ff), rng))
        self.b_1 = Parameter(np.zeros(d_ff, dtype=np.float32))
        self.w_2 = Parameter(glorot_uniform((d_ff, d_model), rng))
        self.b_2 = Parameter(np.zeros(d_model, dtype=np.float32))
        self.p = p

    def forward(self, x, rng=None):
        w = (self.w_1.data, self.b_1.data, self.w_2.data, self.b_2.data)
        return feed_forward(x, *w, self.p, rng)

    def backward(self, dy, cache):
        dx, dw_1, db_1, dw_2, db_2 = feed_forward_backward(dy, cache)
        self.w_1.grad += dw_1
        self.b_1.grad += db_1
        self.w_2.grad += dw_2
        self.b_2.grad += db_2
        return dx
