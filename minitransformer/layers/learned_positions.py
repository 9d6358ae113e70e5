"""Learned positional embeddings (Gehring et al. 2017; table 3, row E of the paper).

    y_t = x_t + P_t

P has a row for each position and is trained like any weight, where the sinusoids of
``positional_encoding.py`` are given. Derivation. A sum hands its gradient to both terms, and row t
serves position t of every sentence:

    dx = dy        dP_t = Σ_sentences dy_t

Rows beyond the longest sentence of a batch have gradient 0; a row that no sentence of the training
reaches stays as it was drawn.
"""

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.layers.positional_encoding import (
    positional_encoding,
    positional_encoding_backward,
    rows,
)


def learned_positions(x, table):
    """x (B, T, D) plus the first T rows of the table, (max_length, D).

    Returns:
        y (B, T, D) and the cache for the backward.

    Raises:
        ValueError: T is more than the table has rows.
    """
    y, encoding_cache = positional_encoding(x, table)
    return y, (encoding_cache, table)


def learned_positions_backward(dy, cache):
    """Gradients dx (B, T, D) and dtable (max_length, D)."""
    encoding_cache, table = cache
    dx = positional_encoding_backward(dy, encoding_cache)
    dtable = array_namespace(table).zeros_like(table)  # (max_length, D)
    dtable[: dy.shape[1]] = dy.sum(axis=0)
    return dx, dtable


class LearnedPositions(Module):
    """Adds its own table, which should begin as large as the words are.

    In Gehring et al. both have a deviation of 0.1.

    Args:
        max_length: how many positions there are.
        d_model: width D.
        rng: NumPy generator for the table.
        deviation: its standard deviation; 1 is that of words √D · E.
    """

    def __init__(self, max_length, d_model, rng, *, deviation=1.0):
        table = deviation * rng.standard_normal((max_length, d_model))
        self.table = Parameter(table.astype(np.float32, copy=False))

    def forward(self, x):
        return learned_positions(x, self.table.data)

    def backward(self, dy, cache):
        dx, dtable = learned_positions_backward(dy, cache)
        self.table.grad += dtable
        return dx

    def step(self, x, start):
        """:meth:`forward` of x (..., T, D) that follows ``start`` positions."""
        return x + rows(self.table.data, start, x.shape[-2])
