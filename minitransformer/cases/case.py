"""What a case is, and the sizes, ids and masks that the layers and models are checked on.

The sizes differ from one another, but for K = D / H, so that a diagnosis can tell them apart. Where
a feed-forward network is involved its ReLUs are kept away from their kinks by construction: all
|x W_1| < 0.9 and b_1 = ±1 (:func:`away_from_kinks`), so that a central difference never crosses
one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from minitransformer.data.text.batches import Batch
from minitransformer.gradcheck.check import check_pair
from minitransformer.gradcheck.modules import module_pair, moved_from_start
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.masks import causal_mask, padding_mask

B, T, S, D, H, K, F, V = 3, 4, 5, 6, 2, 3, 7, 11
SOURCE = np.array([[4, 7, 2, 9, 5], [3, 8, 7, 0, 0], [6, 1, 0, 0, 0]])  # (B, S), 0 is padding
TARGET = np.array([[1, 5, 9, 3], [1, 4, 4, 0], [1, 7, 0, 0]])  # (B, T)
LABELS = np.array([[5, 9, 3, 2], [4, 4, 2, 0], [7, 2, 0, 0]])  # (B, T)
BATCH = Batch(SOURCE, TARGET, LABELS)
SOURCE_MASK = padding_mask(SOURCE)  # (B, 1, 1, S)
TARGET_MASK = causal_mask(TARGET) & padding_mask(TARGET)  # (B, 1, T, T)
LONG = 9  # positions, more than a window covers
LONG_TOKENS = np.arange(LONG) < np.array([9, 5, 1])[:, None]  # (B, LONG), False at padding
LONG_MASK = LONG_TOKENS[:, None, None, :]  # (B, 1, 1, LONG)
NOTHING_ALLOWED = SOURCE_MASK & (np.arange(B) != 1)[:, None, None, None]  # no key for sentence 1
SOME_TOKENS = np.array([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0]], dtype=bool)  # (B, T)


@dataclass(frozen=True)
class Case:
    """One row of the table: what to check and on which inputs.

    Attributes:
        name: layer, then what is special about it.
        build: from a NumPy generator, the (forward, backward, inputs, names) of a pair.
        directions: as for :func:`check_pair`.
        tolerance: largest relative error called right.
    """

    name: str
    build: Callable
    directions: int | None = None
    tolerance: float = 1e-7

    def check(self, seed=0):
        """Check this case; returns a Report."""
        forward, backward, inputs, names = self.build(np.random.default_rng(seed))
        return check_pair(
            forward,
            backward,
            inputs,
            names=names,
            directions=self.directions,
            tolerance=self.tolerance,
            seed=seed,
        )


class HostGenerator:
    """Random numbers drawn on the host and copied: the same dropout mask on every device."""

    def __init__(self, xp, seed=0):
        self.xp = xp
        self.host = np.random.default_rng(seed)

    def random(self, shape, dtype):
        return self.xp.asarray(self.host.random(shape, dtype=dtype))

    def integers(self, high, size, dtype):
        return self.xp.asarray(self.host.integers(high, size=size, dtype=dtype))


def _drawn(rng, inputs):
    return tuple(rng.standard_normal(x) if isinstance(x, tuple) else x for x in inputs)


def pair(forward, backward, names, *inputs):
    """Build a pair; each input is a shape to draw from a normal distribution or is passed on."""
    return lambda rng: (forward, backward, _drawn(rng, inputs), names)


def module(make, *inputs):
    """Build the module ``make(rng)`` as a pair; inputs as for :func:`pair`.

    One whose ReLUs are elsewhere than in a FeedForward has ``away_from_kinks(*inputs)`` itself.
    """

    def build(rng):
        layer = away_from_kinks(moved_from_start(make(rng), rng))
        drawn = _drawn(rng, inputs)
        if hasattr(layer, "away_from_kinks"):
            layer.away_from_kinks(*drawn)
        return module_pair(layer, drawn)

    return build


def away_from_kinks(module):
    """Give every FeedForward below ``module`` b_1 = ±1 and a W_1 too small to reach the kink.

    By Cauchy and Schwarz |x w| ≤ |x| |w|. The columns of W_1 get length 0.9 / (5 √D); inputs here
    are standard normal draws or outputs of a LayerNorm with gains below 1.5 and shifts below 0.5,
    and no row of either is longer than 5 √D.
    """
    for _, layer in module.named_modules():
        if isinstance(layer, FeedForward):
            d_model, d_ff = layer.w_1.data.shape
            length = np.sqrt((layer.w_1.data**2).sum(axis=0))
            layer.w_1.data = layer.w_1.data * (0.9 / (5 * np.sqrt(d_model)) / length)
            layer.b_1.data = np.where(np.arange(d_ff) % 3, 1.0, -1.0)
    return module
