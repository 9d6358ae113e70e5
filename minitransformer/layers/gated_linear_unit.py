"""Gated linear unit (Dauphin et al. 2017): one half of the features opens and shuts the other.

    y = a · σ(b)        a, b = the two halves of x

Derivation. y is a product, so each factor receives dy times the other one; for σ and its derivative
see ``sigmoid.py``.

    da = dy σ(b)        db = dy a σ'(b)

Where the gate is open, σ ≈ 1, the gradient of a passes unchanged. In tanh(a) · σ(b), the gate of
earlier networks, tanh' would make it smaller at every layer.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.layers.sigmoid import sigmoid, sigmoid_backward


def gated_linear_unit(x):
    """The first half of the features, each times the sigmoid of its partner in the second.

    Args:
        x: (..., 2 D).

    Returns:
        y (..., D) and the cache for the backward.

    Raises:
        ValueError: x has an odd number of features.
    """
    if x.shape[-1] % 2:
        raise ValueError(f"x of shape {x.shape} has no two halves; its last axis must be even")
    d = x.shape[-1] // 2
    a, b = x[..., :d], x[..., d:]  # (..., D)
    gate, gate_cache = sigmoid(b)
    return a * gate, (a, gate, gate_cache)


def gated_linear_unit_backward(dy, cache):
    """Gradient dx (..., 2 D)."""
    a, gate, gate_cache = cache
    da = dy * gate
    db = sigmoid_backward(dy * a, gate_cache)
    return array_namespace(dy).concatenate([da, db], axis=-1)  # (..., 2 D)
