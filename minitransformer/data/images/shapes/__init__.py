"""Shapes: small grey pictures of ten kinds, drawn by a seeded generator.

No two are alike: a shape has its own place, size, turn and brightness, darker or brighter than
what is behind it; a stripe may hide a part of it, a speck may lie beside it, and there is noise. A
network has to learn what makes a star a star, wherever it is.

Everything is worked out in whole numbers, from the raw bits of a generator that NumPy has promised
to keep as it is: the same seed gives the same bytes on every machine.

A shape is a question asked of points: is (u, v) inside? u runs to the right and v downwards from
its middle, in its own frame, and r is its radius, all in SUBPIXELS. The brightness of a
pixel is the share of GRID × GRID points in it that are inside.
"""

import math
from functools import lru_cache

import numpy as np

from minitransformer.data.images.pictures import Pictures

SIZES = {"train": 10_000, "validation": 1000, "test": 1000}
SIZE = 28  # pixels, of a side
SUBPIXELS = 36  # to a pixel
GRID = 3  # points in a pixel, to each side
TURNS = 60  # angles; a fifth of the circle is one of them
ONE = 1024  # the number 1 in the tables of cosine and sine
COSINE = np.array([round(ONE * math.cos(2 * math.pi * k / TURNS)) for k in range(TURNS)], np.int32)
SINE = np.roll(COSINE, TURNS // 4)
TOGETHER = 50  # pictures that are drawn at once, so that what they need stays in the cache


def _disc(u, v, r):
    return 4 * (u * u + v * v) <= 3 * r * r


def _ring(u, v, r):
    square = u * u + v * v
    return (8 * square <= 7 * r * r) & (4 * square >= r * r)


def _half_disc(u, v, r):
    v = v + r // 3  # its middle is not that of the circle
    return (u * u + v * v <= r * r) & (v >= 0)


def _crescent(u, v, r):
    hole = u - r // 2
    return (8 * (u * u + v * v) <= 7 * r * r) & (8 * (hole * hole + v * v) >= 5 * r * r)


def _square(u, v, r):
    return 4 * np.maximum(abs(u), abs(v)) <= 3 * r


def _frame(u, v, r):
    farthest = np.maximum(abs(u), abs(v))
    return (4 * farthest <= 3 * r) & (5 * farthest >= 2 * r)


def _triangle(u, v, r):
    return (2 * v <= r) & (97 * abs(u) <= 56 * (v + r))  # √3 is about 97 / 56


def _cross(u, v, r):
    u, v = abs(u), abs(v)
    return (4 * np.minimum(u, v) <= r) & (8 * np.maximum(u, v) <= 7 * r)


def _bar(u, v, r):
    return (abs(u) <= r) & (3 * abs(v) <= r)


def _star(u, v, r):
    """Within four or more of the five lines through its points, which pass cos 72° r by."""
    fifths = range(0, TURNS, TURNS // 5)
    within = [SINE[k] * u - COSINE[k] * v >= -int(COSINE[TURNS // 5]) * r for k in fifths]
    return np.add.reduce(within, dtype=np.int8) >= 4


KINDS = {
    "disc": _disc,
    "ring": _ring,
    "half disc": _half_disc,
    "crescent": _crescent,
    "square": _square,
    "frame": _frame,
    "triangle": _triangle,
    "cross": _cross,
    "bar": _bar,
    "star": _star,
}


@lru_cache(maxsize=1)  # it takes seconds, and may be asked for split by split
def shapes_corpus(seed=0):
    """The Pictures of "train", "validation" and "test", (N, 28, 28, 1), which cannot be written to.

    There are as many of each kind, in turns.
    """
    return {
        split: _pictures(size, np.random.PCG64((seed, number)))
        for number, (split, size) in enumerate(SIZES.items())
    }


def _pictures(count, bits):
    pictures = np.empty((count, SIZE, SIZE, 1), np.uint8)
    labels = np.arange(count) % len(KINDS)
    for start in range(0, count, TOGETHER * len(KINDS)):
        some = slice(start, start + TOGETHER * len(KINDS))
        for label, inside in enumerate(KINDS.values()):
            of_kind = pictures[some][label :: len(KINDS)]
            of_kind[..., 0] = _drawn(inside, len(of_kind), bits)
    pictures.flags.writeable = labels.flags.writeable = False
    return Pictures(pictures, labels, tuple(KINDS))


def _drawn(inside, count, bits):
    """``count`` pictures of a kind, (count, SIZE, SIZE) whole numbers from 0 to 255."""

    def draw(least, most):
        """A number for each picture, from ``least`` to ``most``; (count, 1, 1)."""
        return _whole(bits, (count, 1, 1), least, most)

    r = draw(7 * SUBPIXELS, 11 * SUBPIXELS)
    share = _share(inside, _frame_of(draw, r), r)  # of each pixel, in GRID² parts

    speck = 2 * SUBPIXELS
    specks = _share(_disc, _frame_of(draw, speck), speck)
    stripe = draw(SUBPIXELS // 2, SUBPIXELS) * draw(0, 1)  # half its width; every other has none
    hidden = _share(lambda u, v, r: abs(v) < r, _frame_of(draw, 6 * SUBPIXELS), stripe)

    behind, contrast = draw(0, 60), draw(100, 190)
    grey = GRID**2 * behind + contrast * share
    grey = grey + (_whole(bits, (count, 1, 1), 0, 120) - contrast // 2) * specks * (share == 0)
    grey = np.where(hidden > 0, GRID**2 * behind + hidden * draw(0, 60), grey) // GRID**2

    noise = _whole(bits, grey.shape, -128, 127) + _whole(bits, grey.shape, -128, 127)
    grey = np.clip(grey + noise * draw(0, 32) // 256, 0, 255)
    return np.where(draw(0, 1) == 1, 255 - grey, grey)  # a negative


def _whole(bits, shape, least, most):
    """Whole numbers, int32, each from ``least`` to ``most`` as likely as the others, or nearly."""
    raw = bits.random_raw(math.prod(shape)) >> np.uint64(33)
    return (raw % np.uint64(most - least + 1)).astype(np.int32).reshape(shape) + least


def _frame_of(draw, r):
    """Where something of radius r is, wholly within its picture, and how it is turned."""
    turn = draw(0, TURNS - 1)
    room = SIZE * SUBPIXELS - 2 * r
    x, y = (r + (draw(0, ONE) * room) // ONE for _ in range(2))
    return COSINE[turn], SINE[turn], x, y


def _share(inside, frame, r):
    """How many of the points of each pixel are inside, (count, SIZE, SIZE)."""
    cosine, sine, x, y = frame
    pixels = np.arange(0, SIZE * SUBPIXELS, SUBPIXELS, dtype=np.int32)
    share = np.zeros((), np.int32)
    for i, j in np.ndindex(GRID, GRID):
        right = pixels + (2 * j + 1) * SUBPIXELS // (2 * GRID) - x  # (count, 1, SIZE)
        down = (pixels + (2 * i + 1) * SUBPIXELS // (2 * GRID))[:, None] - y  # (count, SIZE, 1)
        u = (cosine * right + sine * down) // ONE  # (count, SIZE, SIZE)
        v = (cosine * down - sine * right) // ONE
        share = share + inside(u, v, r)
    return share
