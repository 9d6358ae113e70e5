"""Sinusoidal positional encoding (section 3.5).

    PE[t, 2i]     = sin(t / 10000^(2i/D))
    PE[t, 2i + 1] = cos(t / 10000^(2i/D))

It is added to the embeddings and has nothing to train, so dx = dy.
"""

import numpy as np

from minitransformer.core.backend import like
from minitransformer.core.module import Module
from minitransformer.core.twins import twinned


@twinned
def sinusoidal_encoding(length, d_model):
    """The table PE, (length, d_model) float64 on the host; one wavelength for each pair of columns.

    Raises:
        ValueError: d_model is odd, so that a sine would lack its cosine.
    """
    if d_model % 2:
        raise ValueError(f"d_model={d_model} must be even: each sine has a cosine beside it")
    position = np.arange(length)[:, None]  # (T, 1)
    frequency = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)  # (D/2,)
    angle = position * frequency  # (T, D/2)
    pairs = np.stack([np.sin(angle), np.cos(angle)], axis=-1)  # (T, D/2, 2)
    return pairs.reshape(length, d_model)  # (T, D)


@twinned
def positional_encoding(x, table):
    """x (B, T, D) plus the first T rows of the table, (max_length, D).

    Returns:
        y (B, T, D) and None: the backward needs nothing.

    Raises:
        ValueError: T is more than the table has rows.
    """
    return x + rows(table, 0, x.shape[-2]), None


@twinned
def positional_encoding_backward(dy, cache):
    """Gradient dx, of the shape of dy."""
    return dy


def rows(table, start, count):
    """So many rows of a table (max_length, D).

    Raises:
        ValueError: it has too few.
    """
    check_length(start + count, len(table))
    return table[start : start + count]


def check_length(count, max_length):
    """Raise unless so many tokens are no more than the model allows."""
    if count > max_length:
        raise ValueError(
            f"a sequence of {count} tokens is longer than the {max_length} the model allows; "
            "shorten it or build the model with a larger max_length"
        )


class PositionalEncoding(Module):
    """Adds the sinusoidal table, made once for up to ``max_length`` positions."""

    def __init__(self, max_length, d_model):
        self.table = sinusoidal_encoding(max_length, d_model).astype(np.float32)

    def constants_to(self, device=None, dtype=None):
        # Made anew, because widening a float32 table to float64 would keep its rounding.
        table = sinusoidal_encoding(*self.table.shape).astype(dtype or self.table.dtype)
        self.table = like(table, self.table) if device is None else device.asarray(table)

    def forward(self, x):
        return positional_encoding(x, self.table)

    def backward(self, dy, cache):
        return positional_encoding_backward(dy, cache)

    def step(self, x, start):
        """:meth:`forward` of x (..., T, D) that follows ``start`` positions."""
        return x + rows(self.table, start, x.shape[-2])
