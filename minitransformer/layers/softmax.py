"""Softmax over the last axis, with a mask (section 3.2.1).

    w_i = exp(x_i) / Σ_j exp(x_j)

Derivation. ∂w_i/∂x_k = w_i ([i = k] − w_k), so

    dx_k = Σ_i dw_i w_i ([i = k] − w_k) = w_k (dw_k − Σ_i dw_i w_i)

in two passes, without ever forming the Jacobian. Subtracting the largest score of a row first
changes no weight and keeps exp from overflowing. Forbidden positions have score −∞ and weight 0; a
row with nothing allowed has all weights 0 by definition, and with them all gradients.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import twinned


@twinned
def softmax(x, mask=None):
    """Weights along the last axis that sum to 1, or are all 0 where the mask allows nothing.

    Args:
        x: scores (..., S).
        mask: boolean, of a shape that broadcasts to that of x; True where attention is allowed.

    Returns:
        weights (..., S) and the cache for the backward.

    Raises:
        TypeError: the mask is not boolean.
        ValueError: the mask does not broadcast to the shape of x.
    """
    xp = array_namespace(x)
    if mask is not None:
        check_mask(mask, x.shape)
        x = xp.where(mask, x, -xp.inf)
    peak = x.max(axis=-1, keepdims=True)  # (..., 1)
    peak = xp.where(peak == -xp.inf, 0, peak)  # nothing allowed: exp(-inf - 0) is 0, not NaN
    weights = xp.exp(x - peak)
    total = weights.sum(axis=-1, keepdims=True)  # (..., 1)
    weights /= xp.where(total == 0, 1, total)
    return weights, weights


@twinned
def softmax_backward(dweights, cache):
    """Gradient dx of the scores, of the shape of dweights."""
    weights = cache
    return weights * (dweights - (dweights * weights).sum(axis=-1, keepdims=True))


def check_mask(mask, shape):
    """Raise unless ``mask`` is boolean and broadcasts to ``shape``."""
    if mask.dtype != bool:
        raise TypeError(
            f"the mask must be boolean, True where attention is allowed; its dtype is {mask.dtype}"
        )
    sizes = zip(mask.shape, shape[len(shape) - mask.ndim :], strict=False)
    if mask.ndim > len(shape) or any(m not in (1, n) for m, n in sizes):
        raise ValueError(
            f"a mask of shape {mask.shape} does not broadcast to scores of shape {shape}"
        )
