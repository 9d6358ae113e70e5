"""What is done to pictures before a model sees them: changes by chance, and cuts.

Of a picture that is a little moved, mirrored or of another colour, the class is the same. A network
that never sees a picture twice in the same way learns that, and not the pictures by heart
(Krizhevsky, Sutskever and Hinton 2012, section 4.1). Each function takes a batch (B, Y, X, C) of
bytes and a NumPy generator, and returns another batch of bytes. For each picture it draws anew.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from minitransformer.core.errors import require


def random_crop(pictures, padding, rng):
    """Each picture moved by up to ``padding`` pixels: a part of its size, from anywhere in a frame.

    He et al. (2016) move theirs by 4; AlexNet's patches are parts of larger pictures.

    Args:
        padding: rows and columns of 0 that are added first, on each side.
    """
    padded = np.pad(pictures, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    rows, columns = rng.integers(0, 2 * padding + 1, (2, len(pictures)))  # (B,) each
    windows = sliding_window_view(padded, pictures.shape[1:3], axis=(1, 2))  # (B, ·, ·, C, Y, X)
    cut = windows[np.arange(len(pictures)), rows, columns]  # (B, C, Y, X)
    return np.ascontiguousarray(cut.transpose(0, 2, 3, 1))  # (B, Y, X, C)


def mirror(pictures, rng):
    """Left and right exchanged in each picture with probability ½."""
    chosen = rng.random(len(pictures)) < 0.5  # (B,)
    return np.where(chosen[:, None, None, None], pictures[:, :, ::-1], pictures)


def scale(pictures, most, rng):
    """Each picture made larger or smaller about its middle, in a frame of its own size.

    What leaves the frame is lost; what enters is 0. Between four pixels the values run linearly in
    both directions.

    Args:
        most: the largest factor; the smallest is 1 / most, and making larger as likely as smaller.
    """
    factors = np.exp(rng.uniform(-math.log(most), math.log(most), len(pictures)))  # (B,)
    scaled = _rows_apart(pictures.astype(np.int32), factors)
    scaled = _rows_apart(scaled.swapaxes(1, 2), factors).swapaxes(1, 2)
    return ((scaled + 2**15) >> 16).astype(np.uint8)  # both axes have multiplied by 2⁸


def colour(pictures, components, deviation, rng):
    """Each picture in light of another colour and brightness, such as pictures differ by.

    To all of its pixels Σᵢ αᵢ pᵢ is added, αᵢ from a normal distribution. AlexNet has αᵢ λᵢ pᵢ with
    pᵢ of length 1 and λᵢ the variance along it, but does not say of which scale; with the root of
    λᵢ, as here, nothing depends on it.

    Args:
        components: (C, C), the principal components pᵢ of the colours of all pixels, a row each, as
            long as the deviation along it: the ``components`` of PictureStatistics.
        deviation: of the αᵢ; 0.1 in the paper.
    """
    alphas = rng.normal(0.0, deviation, (len(pictures), len(components)))
    added = (alphas @ components).astype(np.float32)  # (B, C)
    return np.clip(np.rint(pictures + added[:, None, None, :]), 0, 255).astype(np.uint8)


def ten_crops(pictures, size):
    """The corners and the middle of each picture, and their mirror images.

    AlexNet's answer to a picture is the mean of its answers to these.

    Args:
        size: rows and columns of a part.

    Returns:
        the parts, (B, 10, rows, columns, C).
    """
    bottom, right = pictures.shape[1] - size[0], pictures.shape[2] - size[1]
    require(
        min(bottom, right) >= 0,
        f"no part of {size[0]} × {size[1]} can be cut out of pictures of "
        f"{pictures.shape[1]} × {pictures.shape[2]}",
    )
    places = [(0, 0), (0, right), (bottom, 0), (bottom, right), (bottom // 2, right // 2)]
    crops = np.stack([pictures[:, y : y + size[0], x : x + size[1]] for y, x in places], axis=1)
    return np.concatenate([crops, crops[..., ::-1, :]], axis=1)


def _rows_apart(pictures, factors):
    """2⁸ times the pictures, int32, with their rows farther apart by the factors."""
    count = pictures.shape[1]
    middle = (count - 1) / 2
    places = middle + (np.arange(count) - middle) / factors[:, None]  # (B, Y)
    places = np.floor(256 * places + 0.5).astype(np.int64)
    upper, share = places >> 8, places & 255

    def taken(rows, weight):
        there = (rows >= 0) & (rows < count)
        weight = np.where(there, weight, 0).astype(np.int32)[..., None, None]  # (B, Y, 1, 1)
        return pictures[np.arange(len(rows))[:, None], rows.clip(0, count - 1)] * weight

    return taken(upper, 256 - share) + taken(upper + 1, share)
