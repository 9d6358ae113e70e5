"""Sigmoid linear unit, SiLU or Swish (Elfwing et al. 2018, Ramachandran et al. 2017).

    y = x σ(x)

A ReLU with its corner rounded off: x is a gate to itself. Derivation. The product rule, with σ' =
σ (1 − σ) of ``sigmoid.py``:

    dx = dy (σ + x σ') = dy (σ + y (1 − σ))

The slope is 0 at x ≈ −1.28, where y has its least value, −0.28; below, y climbs back to 0.
"""

from minitransformer.core.twins import twinned
from minitransformer.layers.sigmoid import sigmoid


@twinned
def silu(x):
    """Each entry times its own sigmoid.

    Args:
        x: any shape.

    Returns:
        y, of the shape of x, and the cache for the backward.
    """
    gate, _ = sigmoid(x)
    y = x * gate
    return y, (gate, y)


@twinned
def silu_backward(dy, cache):
    """Gradient dx, of the shape of dy."""
    gate, y = cache
    return dy * (gate + y * (1 - gate))
