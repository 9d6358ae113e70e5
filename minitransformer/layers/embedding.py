"""Token embedding and the output projection tied to it (section 3.4).

    embedding:    x = √D · E[ids]
    projection:   logits = x Eᵀ

Derivation. Looking a row up is a product with a one-hot matrix, so the gradient of E is a sum:
row v receives √D · dx of every position where token v stands, however often that is. A shared E is
one parameter; its gradient is the sum over all its uses, source, target and projection.
"""

import math

import numpy as np

from minitransformer.backend import array_namespace, scatter_add
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.module import Module, Parameter


def embedding(ids, weight):
    """√D · weight[ids].

    Args:
        ids: integers, any shape (...), each 0 ≤ id < V.
        weight: (V, D).

    Returns:
        x (..., D) and the cache for :func:`embedding_backward`.

    Raises:
        TypeError, ValueError: see :func:`check_token_ids`.
    """
    check_token_ids(ids, len(weight))
    scale = math.sqrt(weight.shape[1])
    return weight[ids] * scale, (ids, weight, scale)


def embedding_backward(dx, cache):
    """Gradient dweight (V, D). The ids have none."""
    ids, weight, scale = cache
    dweight = array_namespace(weight).zeros_like(weight)
    scatter_add(dweight, ids, dx * scale)
    return dweight


def check_token_ids(ids, vocabulary_size):
    """Raise unless ``ids`` are integers with 0 ≤ id < vocabulary_size.

    NumPy reads id −1 as the last row, CuPy wraps every id around: wrong numbers, no error. On a
    GPU this waits for the device.

    Raises:
        TypeError: the dtype is not an integer one.
        ValueError: an id is out of range.
    """
    if ids.dtype.kind not in "iu":
        raise TypeError(f"token ids must be integers; their dtype is {ids.dtype}")
    if ids.size == 0:
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= vocabulary_size:
        raise ValueError(
            f"token ids run from {low} to {high}, outside 0 <= id < {vocabulary_size}, "
            "the size of the vocabulary; was the text encoded with another vocabulary?"
        )


class Embedding(Module):
    """A table of V vectors of width D, drawn with variance 1/D so that √D · E has variance 1."""

    def __init__(self, vocabulary_size, d_model, rng):
        table = rng.normal(scale=1 / math.sqrt(d_model), size=(vocabulary_size, d_model))
        self.weight = Parameter(table.astype(np.float32))

    def forward(self, ids):
        return embedding(ids, self.weight.data)

    def backward(self, dx, cache):
        self.weight.grad += embedding_backward(dx, cache)


class OutputProjection(Module):
    """Logits x Eᵀ over the vocabulary, without a bias; ``weight`` may be that of an Embedding.

    Args:
        weight: Parameter of shape (V, D).
    """

    def __init__(self, weight):
        self.weight = weight

    def forward(self, x):
        return linear(x, self.weight.data.T)

    def backward(self, dlogits, cache):
        dx, dweight_transposed, _ = linear_backward(dlogits, cache)
        self.weight.grad += dweight_transposed.T
        return dx
