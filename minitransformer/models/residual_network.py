"""The residual network (He et al. 2016), and the plain one that it is compared with.

Deeper plain networks are worse, on the pictures they learn from, too, though more layers could do
no harm if they passed on what they are given. That is hard to learn for a stack of convolutions,
and to a block of ``residual_blocks.py`` it is F = 0.

Networks of the small form, for pictures of some thirty pixels, have 6 n + 2 layers:

    3 × 3 to 16 channels, norm, ReLU
    three stages of n blocks, of 16, 32 and 64 channels; the second and third halve the picture
    the mean over the picture, and a linear map

and those of the large form, for some two hundred pixels:

    7 × 7 with stride 2 to 64 channels, norm, ReLU; max pooling of 3 by 2
    four stages of blocks, of 64, 128, 256 and 512 channels; all but the first halve the picture
    the mean over the picture, and a linear map

With bottlenecks a stage has four times as many channels between its blocks. With pre-activation
there is one more norm and ReLU behind the last block. The first convolution has its norm and ReLU
all the same, and the first block its own: in He et al. 2016b they are one norm and one ReLU.

``B`` batch, ``Y`` rows, ``X`` columns, ``C`` channels; ``E``, ``Y'`` and ``X'`` channels,
rows and columns of what a block gives.
"""

from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import ClassVar

from minitransformer.core.errors import listed, require
from minitransformer.core.settings import at_most, one_of, positive
from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.layers.linear import Linear
from minitransformer.layers.pooling import (
    global_average_pooling,
    global_average_pooling_backward,
    max_pooling,
    max_pooling_backward,
)
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.models.convolution_norm import ConvolutionNorm
from minitransformer.models.picture_classifier import (
    FORMS,
    WIDEST,
    PictureClassifier,
    PictureConfig,
)
from minitransformer.models.residual_blocks import (
    KERNELS,
    SHORTCUTS,
    Block,
    convolutions,
    projects,
)

DEEPEST = 1202  # the deepest in the paper
FIRST = {"small": (3, 16, 1), "large": (7, 64, 2)}  # kernel size, channels and stride, by form
LARGE = {  # blocks of each stage, by depth
    "basic": {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)},
    "bottleneck": {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)},
}
EXPANSION = {"basic": 1, "bottleneck": 4}


@dataclass(frozen=True)
class ResidualNetworkConfig(PictureConfig):
    """The sizes and choices that make a residual network.

    Attributes:
        depth: layers on the way from the picture to the logits: of the small form 6 n + 2, with
            bottlenecks 9 n + 2; of the large form 18 or 34, with bottlenecks 50, 101 or 152.
        form: ``"small"``, for pictures of some thirty pixels, or ``"large"``, for two hundred.
        block: ``"basic"``, two convolutions, or ``"bottleneck"``, three.
        shortcut: ``"A"``, ``"B"`` or ``"C"``, or ``"none"`` for the plain network.
        pre_activation: whether norm and ReLU stand before the convolutions and not behind them.
        width_factor: how many times as many channels as in the paper.
    """

    kind: ClassVar[str] = "residual-network"
    begins_with: ClassVar[tuple] = (kind,)

    _: KW_ONLY
    depth: int = positive(20, at_most(DEEPEST))
    form: str = one_of(FORMS, "small")
    block: str = one_of(tuple(KERNELS), "basic")
    shortcut: str = one_of(SHORTCUTS, "A")
    pre_activation: bool = False
    width_factor: float = positive(1.0, at_most(WIDEST))

    def first(self):
        """Of the first convolution what :func:`convolutions` says of those of a block."""
        kernel_size, channels, stride = FIRST[self.form]
        return kernel_size, self.channels, max(1, round(channels * self.width_factor)), stride

    def stages(self):
        """Of each stage its blocks, of each block what :class:`Block` takes of sizes."""
        if self.form == "large":
            counts = LARGE[self.block][self.depth]
        else:
            counts = 3 * ((self.depth - 2) // self._layers_of_one_each(),)
        _, _, c_in, _ = self.first()
        c_within, stages = c_in, []
        for stage, count in enumerate(counts):
            c_out = c_within * EXPANSION[self.block]
            first = c_in, c_within, c_out, 2 if stage else 1
            stages.append([first, *(count - 1) * [(c_out, c_within, c_out, 1)]])
            c_in, c_within = c_out, 2 * c_within
        return stages

    def num_parameters(self):
        k, c_in, c_out, _ = self.first()
        count = (k**2 * c_in + 2) * c_out
        for c_in, c_within, c_out, stride in chain(*self.stages()):
            for k, before, after, _ in convolutions(self.block, c_in, c_within, c_out, stride):
                count += k**2 * before * after + 2 * (before if self.pre_activation else after)
            if projects(self.shortcut, c_in, c_out, stride):
                count += c_in * c_out + 2 * (c_in if self.pre_activation else c_out)
        return count + 2 * c_out * self.pre_activation + (c_out + 1) * self.num_classes

    def _layers_of_one_each(self):
        """How many layers one more block in each of three stages has."""
        return 3 * len(KERNELS[self.block])

    def __post_init__(self):
        super().__post_init__()
        step = self._layers_of_one_each()
        below = max(2, self.depth - (self.depth - 2) % step)
        depths = LARGE[self.block] if self.form == "large" else (below, below + step)
        depths = [depth for depth in depths if 2 < depth <= DEEPEST]
        require(
            self.depth in depths,
            f"depth={self.depth} is none of the form {self.form!r} with the block "
            f"{self.block!r}; choose {listed(depths)}",
        )


class ResidualNetwork(PictureClassifier):
    """Built from a ResidualNetworkConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = ResidualNetworkConfig

    def build(self, config, rng):
        self.first = ConvolutionNorm(*config.first(), rng)
        self.stages = [[Block(config, *sizes, rng) for sizes in stage] for stage in config.stages()]
        _, _, c_out, _ = config.stages()[-1][-1]
        self.norm = BatchNorm(c_out) if config.pre_activation else None
        self.head = Linear(c_out, config.num_classes, rng)

    def features(self, pictures, rng=None):
        """What the last block gives in the mean over the picture, (B, E)."""
        x, first_cache = self.first.forward(pictures, rng)
        x, pooling_cache = max_pooling(x, 3, 2, 1) if self._is_large() else (x, None)
        caches = []
        for block in self._blocks():
            x, cache = block.forward(x, rng)  # (B, Y', X', E)
            caches.append(cache)
        x, last_cache = self._activated(x, rng) if self.norm else (x, None)  # (B, Y', X', E)
        y, mean_cache = global_average_pooling(x)  # (B, E)
        return y, (first_cache, pooling_cache, caches, last_cache, mean_cache)

    def features_backward(self, dy, cache):
        first_cache, pooling_cache, caches, last_cache, mean_cache = cache
        dx = global_average_pooling_backward(dy, mean_cache)  # (B, Y', X', E)
        dx = self._activated_backward(dx, last_cache) if self.norm else dx
        for block, block_cache in zip(reversed(self._blocks()), reversed(caches), strict=True):
            dx = block.backward(dx, block_cache)
        dx = max_pooling_backward(dx, pooling_cache) if self._is_large() else dx
        return self.first.backward(dx, first_cache)  # (B, Y, X, C)

    def _activated(self, x, rng):
        x, norm_cache = self.norm.forward(x, rng)
        x, relu_cache = relu(x)
        return x, (norm_cache, relu_cache)

    def _activated_backward(self, dx, cache):
        norm_cache, relu_cache = cache
        dx = relu_backward(dx, relu_cache)
        return self.norm.backward(dx, norm_cache)

    def _blocks(self):
        return list(chain(*self.stages))

    def _is_large(self):
        return self.config.form == "large"
