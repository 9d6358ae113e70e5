"""Blocks of a residual network (He et al. 2016), and those with pre-activation (He et al. 2016b).

    y = ReLU(F(x) + x)           F: convolution, norm, ReLU, convolution, norm
    y = F(x) + x                 F: norm, ReLU, convolution, norm, ReLU, convolution

A bottleneck has three convolutions, 1 × 1, 3 × 3 and 1 × 1, the outer ones with four times as many
channels outside as inside. Every norm is a batch norm, and no convolution has a bias, as the norm
would take it off again.

Derivation. The sum hands its gradient on to both terms: dx = dz + ∂F/∂xᵀ dz. So the gradient of a
late block comes to an early one along a path on which nothing multiplies it, but for ReLUs.

Where a block has a stride or another number of channels, x does not fit F(x), and a shortcut
stands in for it:

    A    every second position of x, and channels of zeros
    B    a convolution of 1 × 1 with the stride of the block, and a norm
    C    as B, and so in all other blocks, too

In a bottleneck the 3 × 3 has the stride, as is usual today; in the paper, the first 1 × 1. With
pre-activation the norm and ReLU of a shortcut's convolution stand before it, and are its own; in
He et al. 2016b it shares with F the first norm and ReLU of its block.

``B`` batch, ``Y`` rows, ``X`` columns, ``C`` channels of x, ``E`` channels of y; Y' and X' are rows
and columns of y.
"""

from functools import partial

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module
from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.layers.convolution_2d import Convolution2d
from minitransformer.layers.relu import relu, relu_backward

WIDTHS = {"basic": (3, 3), "bottleneck": (1, 3, 1)}  # of the convolutions of a block, by its name
SHORTCUTS = "A", "B", "C", "none"


def steps(block, c_in, c_within, c_out, stride):
    """Of each convolution of F (width, channels it is given, channels it gives, stride)."""
    widths = WIDTHS[block]
    channels = [c_in, *[c_within] * (len(widths) - 1), c_out]
    strides = [stride if i == widths.index(3) else 1 for i in range(len(widths))]
    return list(zip(widths, channels[:-1], channels[1:], strides, strict=True))


def projects(shortcut, c_in, c_out, stride):
    """Whether such a shortcut of such a block is a convolution."""
    return shortcut == "C" or (shortcut == "B" and (c_in, 1) != (c_out, stride))


class ConvolutionNorm(Module):
    """A convolution, a norm, and a ReLU unless it is told otherwise."""

    def __init__(self, width, c_in, c_out, stride, rng, *, activated=True):
        self.convolution = _convolution(width, c_in, c_out, stride, rng)
        self.norm = BatchNorm(c_out)
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

    def __init__(self, width, c_in, c_out, stride, rng):
        self.norm = BatchNorm(c_in)
        self.convolution = _convolution(width, c_in, c_out, stride, rng)

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


def _convolution(width, c_in, c_out, stride, rng):
    padding = width // 2
    return Convolution2d(c_in, c_out, width, rng, stride=stride, padding=padding, bias=False)


class Identity(Module):
    """The shortcut of a block whose x fits F(x): x itself."""

    def forward(self, x, rng=None):
        return x, None

    def backward(self, dy, cache):
        return dy


class ZeroPadded(Module):
    """The shortcut A: x at one of so many positions each way, and zeros in channels it has not.

    Derivation. What is left out of x has gradient 0, and the zeros hand theirs to nobody.

    Args:
        c_out: E.
        stride: from one position that is taken to the next.
    """

    def __init__(self, c_out, stride):
        self.c_out = c_out
        self.stride = stride

    def forward(self, x, rng=None):
        """y (B, Y', X', E) from x (B, Y, X, C)."""
        taken = x[:, :: self.stride, :: self.stride]  # (B, Y', X', C)
        y = array_namespace(x).zeros((*taken.shape[:3], self.c_out), dtype=x.dtype)
        y[..., : x.shape[-1]] = taken
        return y, x.shape

    def backward(self, dy, cache):
        """Gradient dx (B, Y, X, C)."""
        x_shape = cache
        dx = array_namespace(dy).zeros(x_shape, dtype=dy.dtype)
        dx[:, :: self.stride, :: self.stride] = dy[..., : x_shape[-1]]
        return dx


class Block(Module):
    """F(x), and a shortcut unless ``config.shortcut`` is ``"none"``, as in a plain network.

    Args:
        config: the choices, a ResidualNetworkConfig.
        c_in, c_within, c_out: channels of x, between the convolutions of F, and of y.
        stride: of F.
        rng: NumPy generator for the weights.
    """

    def __init__(self, config, c_in, c_within, c_out, stride, rng):
        step = last_step = NormConvolution
        if not config.pre_activation:  # what is added has no ReLU yet
            step, last_step = ConvolutionNorm, partial(ConvolutionNorm, activated=False)
        *others, last = steps(config.block, c_in, c_within, c_out, stride)
        self.steps = [*(step(*sizes, rng) for sizes in others), last_step(*last, rng)]
        self.shortcut = None
        if projects(config.shortcut, c_in, c_out, stride):
            self.shortcut = last_step(1, c_in, c_out, stride, rng)
        elif config.shortcut != "none":
            fits = (c_in, 1) == (c_out, stride)
            self.shortcut = Identity() if fits else ZeroPadded(c_out, stride)
        self.pre_activation = config.pre_activation

    def forward(self, x, rng=None):
        """y (B, Y', X', E) from x (B, Y, X, C)."""
        z, caches = x, []
        for step in self.steps:
            z, cache = step.forward(z, rng)
            caches.append(cache)
        shortcut_cache = None
        if self.shortcut:
            past, shortcut_cache = self.shortcut.forward(x, rng)
            z = z + past
        y, relu_cache = (z, None) if self.pre_activation else relu(z)
        return y, (caches, shortcut_cache, relu_cache)

    def backward(self, dy, cache):
        """Gradient dx (B, Y, X, C)."""
        caches, shortcut_cache, relu_cache = cache
        dz = dy if self.pre_activation else relu_backward(dy, relu_cache)
        if self.shortcut:
            dpast = self.shortcut.backward(dz, shortcut_cache)
        for step, step_cache in zip(reversed(self.steps), reversed(caches), strict=True):
            dz = step.backward(dz, step_cache)
        return dz + dpast if self.shortcut else dz
