"""Blocks of a residual network (He et al. 2016), and those with pre-activation (He et al. 2016b).

    y = ReLU(F(x) + x)           F: convolution, norm, ReLU, convolution, norm
    y = F(x) + x                 F: norm, ReLU, convolution, norm, ReLU, convolution

A bottleneck has three convolutions, 1 × 1, 3 × 3 and 1 × 1, the outer ones with four times as many
channels outside as inside.

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

from minitransformer.core.module import Module
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.zero_padded_shortcut import ZeroPaddedShortcut
from minitransformer.models.convolution_norm import ConvolutionNorm, NormConvolution

KERNELS = {"basic": (3, 3), "bottleneck": (1, 3, 1)}  # sizes, of each convolution of a block
SHORTCUTS = "A", "B", "C", "none"


def convolutions(block, c_in, c_within, c_out, stride):
    """Of each of F (size of the kernel, channels it is given, channels it gives, stride)."""
    sizes = KERNELS[block]
    channels = [c_in, *[c_within] * (len(sizes) - 1), c_out]
    strides = [stride if i == sizes.index(3) else 1 for i in range(len(sizes))]
    return list(zip(sizes, channels[:-1], channels[1:], strides, strict=True))


def projects(shortcut, c_in, c_out, stride):
    """Whether such a shortcut of such a block is a convolution."""
    return shortcut == "C" or (shortcut == "B" and (c_in, 1) != (c_out, stride))


class Identity(Module):
    """The shortcut of a block whose x fits F(x): x itself."""

    def forward(self, x, rng=None):
        return x, None

    def backward(self, dy, cache):
        return dy


class Block(Module):
    """F(x), and a shortcut unless ``config.shortcut`` is ``"none"``, as in a plain network.

    Args:
        config: the choices, a ResidualNetworkConfig.
        c_in, c_within, c_out: channels of x, between the convolutions of F, and of y.
        stride: of F.
        rng: NumPy generator for the weights.
    """

    def __init__(self, config, c_in, c_within, c_out, stride, rng):
        kind = last_kind = NormConvolution
        if not config.pre_activation:  # what is added has no ReLU yet
            kind, last_kind = ConvolutionNorm, partial(ConvolutionNorm, activated=False)
        *others, last = convolutions(config.block, c_in, c_within, c_out, stride)
        # Named in every stored model; each is a convolution with its norm.
        self.steps = [*(kind(*sizes, rng) for sizes in others), last_kind(*last, rng)]
        self.shortcut = None
        if projects(config.shortcut, c_in, c_out, stride):
            self.shortcut = last_kind(1, c_in, c_out, stride, rng)
        elif config.shortcut != "none":
            fits = (c_in, 1) == (c_out, stride)
            self.shortcut = Identity() if fits else ZeroPaddedShortcut(c_out, stride)
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
