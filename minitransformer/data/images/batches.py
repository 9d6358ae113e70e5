"""Batches of pictures: float32 as a model takes them, made when they are asked for.

An epoch is never in memory twice: it is the corpus, in bytes, and the batch of the moment.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class PictureBatch:
    """B pictures and what they show.

    Attributes:
        stored: (B, Y, X, C), float32, or bytes where there is something that normalises them.
        labels: (B,), int64.
        normalized: makes float32 of bytes, each time that they are asked for; or None.
    """

    stored: np.ndarray
    labels: np.ndarray
    normalized: Callable | None = None

    @property
    def pictures(self):
        """(B, Y, X, C), float32."""
        return self.normalized(self.stored) if self.normalized else self.stored

    @property
    def num_tokens(self):
        """How many pictures there are, of each of which one thing is to be said."""
        return len(self.labels)

    def split(self, count):
        """The pictures dealt out to ``count`` shards; the last are empty if there are fewer."""
        if count == 1:
            return [self]  # wherever its arrays are
        return [
            replace(self, stored=self.stored[i::count], labels=self.labels[i::count])
            for i in range(count)
        ]


def picture_batches(corpus, size, prepare, seed=None):
    """Yield the batches of an epoch, each picture in one.

    Args:
        corpus: Pictures.
        size: of a batch; the last may be smaller.
        prepare: a function of pictures (B, Y, X, C), uint8, and a generator, that changes them by
            what it draws, if it does, and makes them float32.
        seed: whole numbers, a tuple, that decide on the order and on what is drawn: for each batch
            anew, so that it is the same whatever was made of those before. Without one the order is
            that of the corpus, and the generator None.
    """
    order = np.arange(len(corpus))
    if seed is not None:
        np.random.default_rng(seed).shuffle(order)
    for start in range(0, len(order), size):
        some = corpus[order[start : start + size]]
        rng = None if seed is None else np.random.default_rng((*seed, start))
        yield PictureBatch(prepare(some.pictures, rng), some.labels)
