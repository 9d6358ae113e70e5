"""What a model has to know of the pictures it was trained on, to be given others.

    x = (picture − mean) / deviation

with the mean picture, and for each channel the deviation from it, of the pictures to train on: what
models take. Along the principal components of the colours, augmentation changes them.
"""

from dataclasses import dataclass

import numpy as np

SOME = 1000  # pictures whose squares are in memory at once


@dataclass(frozen=True, eq=False)
class PictureStatistics:
    """What is known of the pictures to train on.

    Attributes:
        classes: the names of theirs.
        mean: the mean picture, (Y, X, C), float32.
        deviation: of each channel, (C,), float32; 1 where nothing varies.
        components: the principal components of the colours of all pixels, a row each, as long as
            the deviation along it, (C, C).
    """

    classes: tuple[str, ...]
    mean: np.ndarray
    deviation: np.ndarray
    components: np.ndarray

    @classmethod
    def of(cls, corpus):
        """Those of Pictures. All sums are of whole numbers below 2⁵³, so that none is rounded."""
        pictures, channels = corpus.pictures, corpus.pictures.shape[3]
        count = len(pictures)
        mean = pictures.sum(axis=0, dtype=np.int64) / count  # (Y, X, C)
        products = np.zeros((channels, channels))
        for start in range(0, count, SOME):
            pixels = pictures[start : start + SOME].reshape(-1, channels).astype(np.float64)
            products += pixels.T @ pixels
        products /= pictures[..., 0].size
        variance = products.diagonal() - (mean**2).mean(axis=(0, 1))  # from the mean picture
        deviation = np.sqrt(np.where(variance > 0, variance, 1)).astype(np.float32)
        colour = mean.mean(axis=(0, 1))
        variances, directions = np.linalg.eigh(products - np.outer(colour, colour))
        components = directions.T * np.sqrt(variances.clip(0))[:, None]
        return cls(
            corpus.classes, mean.astype(np.float32), deviation.astype(np.float32), components
        )

    def normalized(self, pictures):
        """Pictures (B, Y, X, C) of bytes as models take them, float32."""
        x = np.subtract(pictures, self.mean, dtype=np.float32)
        x /= self.deviation
        return x
