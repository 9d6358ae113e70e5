"""A small network of convolutions, for a first try at pictures of some thirty pixels.

    three times:  3 × 3 convolution, norm, ReLU, max pooling of 2 by 2
    dropout, and a linear map of all that is left

The convolutions give F, 2 F and 2 F channels. Each pooling halves the picture, so that a window of
the third convolution covers 18 × 18 of its pixels, and its value stands for a part of the thing.

``B`` batch, ``Y`` rows, ``X`` columns, ``C`` channels, ``F`` features.
"""

import math
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import ClassVar

from minitransformer.core.errors import require
from minitransformer.core.settings import one_of, share
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.linear import Linear
from minitransformer.layers.pooling import max_pooling, max_pooling_backward
from minitransformer.models.convolution_norm import NORMS, ConvolutionNorm
from minitransformer.models.picture_classifier import PictureClassifier, PictureConfig

SMALLEST = 8  # pixels, of which three times half are one


@dataclass(frozen=True)
class SmallNetworkConfig(PictureConfig):
    """The sizes of a small network.

    Attributes:
        num_features: channels of the first convolution, F.
        dropout: the probability of dropping out what the linear map is given.
        normalisation: ``"batch-norm"``, or ``"layer-norm"`` of the channels at each position.
    """

    kind: ClassVar[str] = "small-network"
    begins_with: ClassVar[tuple] = (kind,)

    _: KW_ONLY
    num_features: int = 32
    dropout: float = share(0.2)
    normalisation: str = one_of(tuple(NORMS), "batch-norm")

    def channels_of_each(self):
        """The channels of the picture and of what each convolution gives."""
        return self.channels, self.num_features, 2 * self.num_features, 2 * self.num_features

    def num_left(self):
        """How many numbers the linear map is given."""
        return (self.height // 8) * (self.width // 8) * self.channels_of_each()[-1]

    def num_parameters(self):
        pairs = pairwise(self.channels_of_each())
        convolutions = sum((9 * c + 2) * e for c, e in pairs)
        return convolutions + (self.num_left() + 1) * self.num_classes

    def __post_init__(self):
        super().__post_init__()
        require(
            min(self.height, self.width) >= SMALLEST,
            f"pictures of {self.height} × {self.width} are too small to be halved three times; "
            f"choose some of {SMALLEST} × {SMALLEST} or more",
        )


class SmallNetwork(PictureClassifier):
    """Built from a SmallNetworkConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = SmallNetworkConfig

    def build(self, config, rng):
        pairs = pairwise(config.channels_of_each())
        self.convolutions = [
            ConvolutionNorm(3, *channels, 1, rng, norm=config.normalisation) for channels in pairs
        ]
        self.head = Linear(config.num_left(), config.num_classes, rng)

    def features(self, pictures, rng=None):
        """What is left of each picture, in one row, (B, Y/8 · X/8 · 2 F)."""
        x, caches = pictures, []
        for convolution in self.convolutions:
            x, convolution_cache = convolution.forward(x, rng)  # F or 2 F channels
            x, pooling_cache = max_pooling(x, 2)  # half as many rows and columns
            caches.append((convolution_cache, pooling_cache))
        y = x.reshape(len(x), math.prod(x.shape[1:]))  # (B, Y/8 · X/8 · 2 F)
        y, dropout_cache = dropout(y, self.config.dropout, rng)
        return y, (caches, x.shape, dropout_cache)

    def features_backward(self, dy, cache):
        caches, x_shape, dropout_cache = cache
        dx = dropout_backward(dy, dropout_cache).reshape(x_shape)  # (B, Y/8, X/8, 2 F)
        for convolution, (convolution_cache, pooling_cache) in zip(
            reversed(self.convolutions), reversed(caches), strict=True
        ):
            dx = max_pooling_backward(dx, pooling_cache)
            dx = convolution.backward(dx, convolution_cache)
        return dx
