"""The feed-forward network with bias, ReLU and dropout in one launch, and no mask kept.

Where h > 0 the unit was both alive and kept: the backward reads both masks off h.
"""

from minitransformer.accelerate.cuda.dropout import next_draw
from minitransformer.accelerate.cuda.kernels import launch
from minitransformer.accelerate.cuda.launches import column_sums, elementwise, matrix, partial_sums
from minitransformer.accelerate.cuda.matmul import matmul
from minitransformer.core.twins import Twin
from minitransformer.layers import feed_forward as reference


def feed_forward(x, w_1, b_1, w_2, b_2, p=0.0, rng=None):
    """As the reference."""
    draw = next_draw(p, rng)
    x, shape = matrix(x), x.shape
    h = matmul(x, w_1)  # (tokens, F)
    launch("bias_relu_dropout", *elementwise(*h.shape), h, b_1, *h.shape, *draw)
    y = matmul(h, w_2)  # (tokens, D)
    y += b_2
    return y.reshape(shape), (x, w_1, h, w_2, draw.scale)


def feed_forward_backward(dy, cache):
    """As the reference."""
    x, w_1, h, w_2, scale = cache
    dy, shape = matrix(dy), dy.shape
    db_2 = column_sums(dy)
    dw_2 = matmul(h.T, dy)
    dh = matmul(dy, w_2.T)  # (tokens, F)
    db_1 = column_sums(partial_sums("relu_dropout_backward", (dh, h), *dh.shape, scale))
    dw_1 = matmul(x.T, dh)
    dx = matmul(dh, w_1.T).reshape(shape)
    return dx, dw_1, db_1, dw_2, db_2


reference.feed_forward.twins.setdefault("cupy", Twin(feed_forward, feed_forward_backward))
