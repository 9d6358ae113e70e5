"""LayerNorm in one launch, its backward in three.

The cache holds x and two numbers a row, in place of x̂: the forward then writes y and nothing else
of its size. dγ and dβ are sums over all rows, which no block sees: the second launch adds up some
rows at a time, the third what came of that.
"""

from minitransformer.accelerate.cuda.kernels import launch
from minitransformer.accelerate.cuda.launches import column_sums, matrix, partial_sums, rowwise
from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import Twin
from minitransformer.layers import layer_norm as reference


def layer_norm(x, gamma, beta, epsilon=1e-5):
    """As the reference."""
    reference.check_width(x, gamma, beta)
    x, shape = matrix(x), x.shape
    xp = array_namespace(x)
    y = xp.empty(x.shape, x.dtype)
    mean, inverse_sigma = xp.empty(len(x), x.dtype), xp.empty(len(x), x.dtype)
    arrays = x, gamma, beta, y, mean, inverse_sigma
    launch("layer_norm", *rowwise(*x.shape), *arrays, *x.shape, epsilon)
    return y.reshape(shape), (x, gamma, mean, inverse_sigma)


def layer_norm_backward(dy, cache):
    """As the reference."""
    x, gamma, mean, inverse_sigma = cache
    dy, shape = matrix(dy), dy.shape
    rows, width = dy.shape
    dx = array_namespace(dy).empty(dy.shape, dy.dtype)
    arrays = dy, x, gamma, mean, inverse_sigma, dx
    launch("layer_norm_backward", *rowwise(rows, width), *arrays, rows, width)
    arrays = dy, x, mean, inverse_sigma
    sums = column_sums(partial_sums("layer_norm_sums", arrays, rows, width, each=2))  # (2 D,)
    return dx.reshape(shape), sums[:width], sums[width:]


reference.layer_norm.twins.setdefault("cupy", Twin(layer_norm, layer_norm_backward))
