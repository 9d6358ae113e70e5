"""Pictures of three colours, which a tiny classifier tells apart after a few epochs."""

import io

import numpy as np

COLOURS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}


def coloured(name, seed=0):
    """A picture of a colour, with some noise on it: (16, 16, 3), uint8."""
    noise = np.random.default_rng(seed).integers(-40, 40, (16, 16, 3))
    return (np.array(COLOURS[name]) + noise).astype(np.uint8)


def pictures():
    """An .npz with some of each colour, as bytes."""
    file, names = io.BytesIO(), [*COLOURS] * 16
    labels = [[*COLOURS].index(name) for name in names]
    drawn = [coloured(name, seed) for seed, name in enumerate(names, start=1)]
    np.savez(file, pictures=drawn, labels=labels, classes=[*COLOURS])
    return file.getvalue()
