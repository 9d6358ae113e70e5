"""Solutions of lesson 06, positions."""

import numpy as np


def pairs_that_turn(length, d_model):
    """For D = 512 and 30 tokens, 43 of 256: five sixths of the features only creep.

    The condition is 2i/D ≤ log((T − 1) / 2π) / log 10000: of the logarithm of the wavelengths, the
    part that a sentence covers. Ten times as long a sentence makes another quarter of them turn.
    """
    frequency = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)  # (D/2,)
    return int(((length - 1) * frequency >= 2 * np.pi).sum())


def learned_positions(x, table):
    length = x.shape[1]
    return x + table[:length], (table.shape,)


def learned_positions_backward(dy, cache):
    """A position that no sentence reaches learns nothing: asked for later, its row is noise."""
    (shape,) = cache
    dtable = np.zeros(shape)
    dtable[: dy.shape[1]] = dy.sum(axis=0)  # the same row for each sentence
    return dy, dtable


def _turned(x, direction):
    length, width = x.shape[-2:]
    angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)  # (T, K/2)
    cos, sin = np.cos(angle), direction * np.sin(angle)
    even, odd = x[..., 0::2], x[..., 1::2]  # (B, H, T, K/2)
    turned = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)
    return turned.reshape(x.shape)


def rotary(x):
    """(R_t q) · (R_s k) = q · R_tᵀ R_s k = q · R_{s−t} k: the score knows the distance and no more.

    Every score does so, in each layer, and lengths stay what they are.
    """
    return _turned(x, 1), ()


def rotary_backward(dy, cache):
    """The transpose of a rotation is its inverse: turn back. Nothing has to be kept."""
    return _turned(dy, -1)
