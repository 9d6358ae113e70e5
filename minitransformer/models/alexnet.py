"""AlexNet (Krizhevsky, Sutskever and Hinton 2012): five convolutions and three linear maps.

    11 × 11 with stride 4 to 96 channels, ReLU, response norm, max pooling
     5 × 5            to 256 channels, ReLU, response norm, max pooling         two towers
     3 × 3            to 384 channels, ReLU
     3 × 3            to 384 channels, ReLU                                     two towers
     3 × 3            to 256 channels, ReLU, max pooling                        two towers
    twice a linear map to 4096, ReLU, dropout;  a linear map to the classes

Where there are two towers each sees its half of the channels only: in 2012 each was on a GPU of its
own. Each of these was new, or new at this size, and can be left out: ReLU in place of tanh, pooling
windows of 3 that stand 2 apart and so overlap, normalisation among near channels, dropout, towers.

Biases are 1 at first where that lets ReLUs see positive inputs: in the convolutions with towers and
in the linear maps but the last; elsewhere they are 0 (section 5). That goes with the paper's small
weights; where weights begin by the sizes of their layers, what passes has its size already.

With pictures of 227 × 227 × 3 and 1000 classes that makes 60,965,224 parameters. (The paper says
224, with which its sizes do not come out.) The small form, for pictures of some thirty pixels,
begins with 5 × 5, stride 1 and padding instead, and is this network otherwise.

``B`` batch, ``Y`` rows, ``X`` columns, ``C`` channels; ``E``, ``Y'`` and ``X'`` channels,
rows and columns of what a convolution gives, ``Y''`` and ``X''`` those that pooling leaves.
"""

import math
from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise
from typing import ClassVar

from minitransformer.core.errors import require
from minitransformer.core.module import Module
from minitransformer.core.settings import at_most, one_of, positive, share
from minitransformer.layers.convolution_2d import Convolution2d
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.first_weights import STARTS
from minitransformer.layers.linear import Linear
from minitransformer.layers.local_response_norm import (
    local_response_norm,
    local_response_norm_backward,
)
from minitransformer.layers.pooling import max_pooling, max_pooling_backward
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.tanh import tanh, tanh_backward
from minitransformer.models.picture_classifier import (
    FORMS,
    WIDEST,
    PictureClassifier,
    PictureConfig,
)

LEFT_OUT = "none", "third", "fourth", "hidden"
FIRST = {"small": (5, 1, 2), "large": (11, 4, 0)}  # kernel size, stride and padding, by form
NUM_HIDDEN = 4096
ACTIVATIONS = {"relu": (relu, relu_backward), "tanh": (tanh, tanh_backward)}


@dataclass(frozen=True)
class Sizes:
    """Of a convolution and what follows it.

    Attributes:
        c_in, c_out: channels that it is given and that it gives.
        kernel_size, stride, padding: of its windows.
        towers: how many groups of channels see nothing of one another.
        normed, pooled: whether normalisation and pooling follow.
        lifted: whether its biases are 1 at first in the paper.
    """

    c_in: int
    c_out: int
    kernel_size: int
    stride: int = 1
    padding: int = 0
    towers: int = 1
    normed: bool = False
    pooled: bool = False
    lifted: bool = False


@dataclass(frozen=True)
class AlexNetConfig(PictureConfig):
    """The sizes and choices that make an AlexNet.

    Attributes:
        form: ``"small"``, for pictures of some thirty pixels, or ``"large"``, for 227.
        width_factor: how many times as many channels and hidden units as in the paper.
        activation: ``"relu"`` or ``"tanh"``.
        overlapping: whether the windows of pooling overlap, 3 wide and 2 apart, or are 2 wide.
        response_norm: whether channels are normalised by those near them.
        towers: how many there are.
        dropout: the probability of dropping out, in the two hidden linear maps.
        start: how weights are drawn, a name in ``layers/first_weights.py``.
        lifted: whether biases are 1 at first where the paper has it so, or 0 everywhere.
        left_out: of the layers none, the ``"third"`` or the ``"fourth"`` convolution, or a
            ``"hidden"`` linear map, to see what each is worth.
    """

    kind: ClassVar[str] = "alexnet"
    begins_with: ClassVar[tuple] = (kind,)

    _: KW_ONLY
    form: str = one_of(FORMS, "small")
    width_factor: float = positive(1.0, at_most(WIDEST))
    activation: str = one_of(tuple(ACTIVATIONS), "relu")
    overlapping: bool = True
    response_norm: bool = True
    towers: int = 2
    dropout: float = share(0.5)
    start: str = one_of(tuple(STARTS), "fixed-0.01")
    lifted: bool = True
    left_out: str = one_of(LEFT_OUT, "none")

    def convolutions(self):
        """The Sizes of each."""
        first = FIRST[self.form]
        c_1, c_2, c_3, c_4, c_5 = map(self._wide, (96, 256, 384, 384, 256))
        before_linear = dict(padding=1, towers=self.towers, lifted=True)
        normed = dict(normed=self.response_norm, pooled=True)
        third, fourth = Sizes(c_2, c_3, 3, padding=1), Sizes(c_3, c_4, 3, **before_linear)
        if self.left_out == "third":
            fourth = replace(fourth, c_in=c_2)
        middle = {"third": [fourth], "fourth": [third]}.get(self.left_out, [third, fourth])
        return [
            Sizes(self.channels, c_1, *first, **normed),
            Sizes(c_1, c_2, 5, padding=2, towers=self.towers, lifted=True, **normed),
            *middle,
            Sizes(middle[-1].c_out, c_5, 3, **before_linear, pooled=True),
        ]

    def linear_maps(self):
        """What each is given, and last the number of classes."""
        hidden = self._wide(NUM_HIDDEN)
        count = 1 if self.left_out == "hidden" else 2
        return self._num_left(), *(count * [hidden]), self.num_classes

    @property
    def pooling(self):
        """Size and stride of the windows of pooling."""
        return (3, 2) if self.overlapping else (2, 2)

    def num_parameters(self):
        return sum(
            (s.kernel_size**2 * s.c_in // s.towers + 1) * s.c_out for s in self.convolutions()
        ) + sum((d_in + 1) * d_out for d_in, d_out in pairwise(self.linear_maps()))

    def _wide(self, channels):
        """So many times the width factor, and to be cut into towers."""
        return self.towers * max(1, round(channels * self.width_factor / self.towers))

    def _windows(self):
        """Size, stride and padding of those of each convolution and each pooling, in turn."""
        windows = []
        for sizes in self.convolutions():
            windows.append((sizes.kernel_size, sizes.stride, sizes.padding))
            windows += [(*self.pooling, 0)] * sizes.pooled
        return windows

    def _num_left(self):
        """How many numbers the last pooling leaves."""
        height, width = self.height, self.width
        for k, stride, padding in self._windows():
            height, width = ((side + 2 * padding - k) // stride + 1 for side in (height, width))
        return height * width * self.convolutions()[-1].c_out

    def _least_side(self):
        """How high and wide a picture must be for the last pooling to leave one position."""
        side = 1
        for k, stride, padding in reversed(self._windows()):
            side = (side - 1) * stride + k - 2 * padding
        return side

    def __post_init__(self):
        super().__post_init__()
        least = self._least_side()
        require(
            min(self.height, self.width) >= least,
            f"pictures of {self.height} × {self.width} are too small for form={self.form!r}: "
            f"pooling leaves nothing of them; choose some of {least} × {least} or more"
            + (", or form='small'" if self.form == "large" else ""),
        )


class ConvolutionPooling(Module):
    """A convolution, its activation, and where Sizes say so normalisation and pooling."""

    def __init__(self, config, sizes, rng):
        self.convolution = Convolution2d(
            sizes.c_in,
            sizes.c_out,
            sizes.kernel_size,
            rng,
            stride=sizes.stride,
            padding=sizes.padding,
            groups=sizes.towers,
            start=config.start,
        )
        self.activation = config.activation
        self.normed = sizes.normed
        self.pooling = config.pooling if sizes.pooled else None

    def forward(self, x):
        """y (B, Y'', X'', E) from x (B, Y, X, C)."""
        activate, _ = ACTIVATIONS[self.activation]
        x, convolution_cache = self.convolution.forward(x)  # (B, Y', X', E)
        x, activation_cache = activate(x)
        x, norm_cache = local_response_norm(x) if self.normed else (x, None)
        y, pooling_cache = max_pooling(x, *self.pooling) if self.pooling else (x, None)
        return y, (convolution_cache, activation_cache, norm_cache, pooling_cache)

    def backward(self, dy, cache):
        """Gradient dx (B, Y, X, C)."""
        _, activate_backward = ACTIVATIONS[self.activation]
        convolution_cache, activation_cache, norm_cache, pooling_cache = cache
        dx = max_pooling_backward(dy, pooling_cache) if self.pooling else dy
        dx = local_response_norm_backward(dx, norm_cache) if self.normed else dx
        dx = activate_backward(dx, activation_cache)
        return self.convolution.backward(dx, convolution_cache)


class Hidden(Module):
    """A linear map, its activation, and dropout."""

    def __init__(self, config, d_in, d_out, rng):
        self.linear = Linear(d_in, d_out, rng, start=config.start)
        self.activation = config.activation
        self.p = config.dropout

    def forward(self, x, rng=None):
        """y (B, D_out) from x (B, D_in)."""
        activate, _ = ACTIVATIONS[self.activation]
        x, linear_cache = self.linear.forward(x)  # (B, D_out)
        x, activation_cache = activate(x)
        y, dropout_cache = dropout(x, self.p, rng)
        return y, (linear_cache, activation_cache, dropout_cache)

    def backward(self, dy, cache):
        """Gradient dx (B, D_in)."""
        _, activate_backward = ACTIVATIONS[self.activation]
        linear_cache, activation_cache, dropout_cache = cache
        dx = dropout_backward(dy, dropout_cache)
        dx = activate_backward(dx, activation_cache)
        return self.linear.backward(dx, linear_cache)


class AlexNet(PictureClassifier):
    """Built from an AlexNetConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = AlexNetConfig

    def build(self, config, rng):
        self.convolutions = [
            ConvolutionPooling(config, sizes, rng) for sizes in config.convolutions()
        ]
        *hidden, last = pairwise(config.linear_maps())
        self.hidden = [Hidden(config, *of_map, rng) for of_map in hidden]
        self.head = Linear(*last, rng, start=config.start)
        lifted = [
            layer.convolution
            for layer, sizes in zip(self.convolutions, config.convolutions(), strict=True)
            if sizes.lifted
        ]
        if config.lifted:
            for layer in (*lifted, *(hidden.linear for hidden in self.hidden)):
                layer.bias.data[:] = 1

    def features(self, pictures, rng=None):
        """What the last hidden linear map gives, (B, D_out)."""
        x, caches, hidden_caches = pictures, [], []
        for convolution in self.convolutions:
            x, cache = convolution.forward(x)  # (B, Y'', X'', E)
            caches.append(cache)
        y = x.reshape(len(x), math.prod(x.shape[1:]))  # (B, Y'' X'' E)
        for hidden in self.hidden:
            y, cache = hidden.forward(y, rng)  # (B, D_out)
            hidden_caches.append(cache)
        return y, (caches, x.shape, hidden_caches)

    def features_backward(self, dy, cache):
        caches, x_shape, hidden_caches = cache
        for hidden, hidden_cache in zip(
            reversed(self.hidden), reversed(hidden_caches), strict=True
        ):
            dy = hidden.backward(dy, hidden_cache)
        dx = dy.reshape(x_shape)  # (B, Y'', X'', E)
        for convolution, its_cache in zip(
            reversed(self.convolutions), reversed(caches), strict=True
        ):
            dx = convolution.backward(dx, its_cache)
        return dx
