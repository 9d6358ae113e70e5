"""A convolution and its norm, in both orders: what networks of pictures are made of.

    y = ReLU(norm(x * w))        y = norm(x * w)        y = ReLU(norm(x)) * w, with pre-activation

The convolution has no bias, as the norm would take it off again.

``B`` batch, ``Y`` rows, ``X`` columns, ``C`` channels of x, ``E`` channels of y; Y' and X' are rows
and columns of y.
"""

from minitransformer.core.module import Module
from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.layers.convolution_2d import Convolution2d
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.relu import relu, relu_backward


class ChannelNorm(Module):
    """Layer normalisation of the channels at each position, where a batch norm would stand."""

    def __init__(self, channels):
        self.norm = LayerNorm(channels)

    def forward(self, x, rng=None):
        return self.norm.forward(x)

    def backward(self, dy, cache):
        return self.norm.backward(dy, cache)


NORMS = {"batch-norm": BatchNorm, "layer-norm": ChannelNorm}


class ConvolutionNorm(Module):
    """A convolution, a norm, and a ReLU unless it is told otherwise.

    Args:
        kernel_size, c_in, c_out, stride: of the convolution, whose padding keeps the size.
        rng: NumPy generator for the weights.
        activated: whether there is a ReLU.
        norm: a name in NORMS.
    """

    def __init__(self, kernel_size, c_in, c_out, stride, rng, *, activated=True, norm="batch-norm"):
        self.convolution = _convolution(kernel_size, c_in, c_out, stride, rng)
        self.norm = NORMS[norm](c_out)
        self.activated = activated

    def forward(self, x, rng=None):
        """y (B, Y', X', E) from x (B, Y, X, C)."""
        h, convolution_cache = self.convolution.forward(x)  # (B, Y', X', E)
        h, norm_cache = self.norm.forward(h, rng)
        y, relu_cache = relu(h) if self.activated else (h, None)
        return y, (convolution_cache, norm_cache, relu_cache)

    def backward(self, dy, cache):
        """Gradient dx (B, Y, X, C)."""
        convolution_cache, norm_cache, relu_cache = cache
        dh = relu_backward(dy, relu_cache) if self.activated else dy
        dh = self.norm.backward(dh, norm_cache)
        return self.convolution.backward(dh, convolution_cache)


class NormConvolution(Module):
    """A norm, a ReLU and a convolution: that with pre-activation."""

    def __init__(self, kernel_size, c_in, c_out, stride, rng):
        self.norm = BatchNorm(c_in)
        self.convolution = _convolution(kernel_size, c_in, c_out, stride, rng)

    def forward(self, x, rng=None):
        """y (B, Y', X', E) from x (B, Y, X, C)."""
        h, norm_cache = self.norm.forward(x, rng)
        h, relu_cache = relu(h)
        y, convolution_cache = self.convolution.forward(h)  # (B, Y', X', E)
        return y, (norm_cache, relu_cache, convolution_cache)

    def backward(self, dy, cache):
        """Gradient dx (B, Y, X, C)."""
        norm_cache, relu_cache, convolution_cache = cache
        dh = self.convolution.backward(dy, convolution_cache)
        dh = relu_backward(dh, relu_cache)
        return self.norm.backward(dh, norm_cache)


def _convolution(kernel_size, c_in, c_out, stride, rng):
    how = dict(stride=stride, padding=kernel_size // 2, bias=False)
    return Convolution2d(c_in, c_out, kernel_size, rng, **how)
