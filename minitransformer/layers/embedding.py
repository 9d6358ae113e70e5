"""Token embedding and the output projection tied to it (section 3.4).

    embedding:    x = √D · E[ids]              (or E[ids] itself, as in most models since)
    projection:   logits = x Eᵀ

Derivation. Looking a row up is a product with a one-hot matrix, so the gradient of E is a sum:
row v receives √D · dx of every position where token v stands, however often that is. The projection
is the linear map with W = Eᵀ, so dx = dlogits E and dE = dlogitsᵀ x. A shared E is one parameter;
its gradient is the sum over all its uses, source, target and projection.
"""

import math

import numpy as np

from minitransformer.core.backend import array_namespace, like, scatter_add
from minitransformer.core.module import Module, Parameter
from minitransformer.core.twins import twinned
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.token_ids import check_token_ids


@twinned
def embedding(ids, weight):
    """√D · weight[ids].

    Args:
        ids: integers, any shape (...), each 0 ≤ id < V; on the host or where the weight is.
        weight: (V, D).

    Returns:
        x (..., D) and the cache for :func:`embedding_backward`.

    Raises:
        TypeError, ValueError: see :func:`check_token_ids`.
    """
    check_token_ids(ids, len(weight))
    ids = like(ids, weight)
    scale = math.sqrt(weight.shape[1])
    x = weight[ids] * scale  # (..., D)
    return x, (ids, weight, scale)


@twinned
def embedding_backward(dx, cache):
    """Gradient dweight (V, D). The ids have none."""
    ids, weight, scale = cache
    dweight = array_namespace(weight).zeros_like(weight)  # (V, D)
    scatter_add(dweight, ids, dx * scale)
    return dweight


def unscaled_embedding(ids, weight):
    """weight[ids], and the cache for :func:`embedding_backward`, see :func:`embedding`."""
    check_token_ids(ids, len(weight))
    ids = like(ids, weight)
    return weight[ids], (ids, weight, 1.0)


def embedding_weight(vocabulary_size, d_model, rng):
    """A new Parameter (V, D), drawn with variance 1/D so that √D · E has variance 1."""
    table = rng.normal(scale=1 / math.sqrt(d_model), size=(vocabulary_size, d_model))
    return Parameter(table.astype(np.float32, copy=False))


class Embedding(Module):
    """Looks tokens up in a weight, which it may share.

    Args:
        weight: Parameter of shape (V, D).
        scaled: whether by √D.
    """

    def __init__(self, weight, *, scaled=True):
        self.weight = weight
        self.scaled = scaled

    def forward(self, ids):
        return (embedding if self.scaled else unscaled_embedding)(ids, self.weight.data)

    def backward(self, dx, cache):
        self.weight.grad += embedding_backward(dx, cache)


class OutputProjection(Module):
    """Logits x Eᵀ over the vocabulary, without a bias; the weight may be that of an Embedding.

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
