"""Multi-head attention without copies of heads, with its scales in the weights.

    q = x_q (W^Q / √K)        y = Concat(heads) (scale · W^O)

The 1 / √K of the scores and the scale of the dropout move into two (D, D) matrices, which are
smaller than what they would have to multiply otherwise. Heads are views, (B, H, T, K) of an array
(B, T, D), both when read by a matrix product and when written by one. One product with the three
weights side by side is no faster than three.
"""

import math

import numpy as np

from minitransformer.accelerate.cpu.dropout import draw_mask
from minitransformer.core.twins import Twin
from minitransformer.layers import attention as reference
from minitransformer.layers.attention import split_heads
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.softmax import check_mask


def multi_head_attention(
    query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None
):
    """As the reference."""
    root = 1 / math.sqrt(w_query.shape[1] // num_heads)
    q, q_cache = linear(query, w_query * root)  # (B, T, D)
    k, k_cache = linear(key, w_key)  # (B, S, D)
    v, v_cache = linear(value, w_value)  # (B, S, D)
    q, k, v = (split_heads(x, num_heads) for x in (q, k, v))  # (B, H, T or S, K)

    scores = q @ k.swapaxes(-1, -2)  # (B, H, T, S)
    weights = _softmax(scores, mask)
    keep, scale = draw_mask(weights.shape, p, rng)
    dropped = weights if keep is None else weights * keep
    heads = np.empty(query.shape, q.dtype)  # (B, T, D)
    np.matmul(dropped, v, out=split_heads(heads, num_heads))
    y, output_cache = linear(heads, w_output * scale)  # (B, T, D)
    attention_cache = q, k, v, weights, keep, dropped
    scales = root, scale
    return y, (num_heads, scales, q_cache, k_cache, v_cache, attention_cache, output_cache)


def multi_head_attention_backward(dy, cache):
    """As the reference."""
    num_heads, scales, q_cache, k_cache, v_cache, attention_cache, output_cache = cache
    q, k, v, weights, keep, dropped = attention_cache
    dheads, dw_output, _ = linear_backward(dy, output_cache)  # (B, T, D)
    dheads = split_heads(dheads, num_heads)  # (B, H, T, K)

    dq, dk, dv = (np.empty(cache[0].shape, dy.dtype) for cache in (q_cache, k_cache, v_cache))
    np.matmul(dropped.swapaxes(-1, -2), dheads, out=split_heads(dv, num_heads))
    dweights = dheads @ v.swapaxes(-1, -2)  # (B, H, T, S)
    if keep is not None:
        dweights *= keep
    dscores = dweights  # in its place
    dscores -= np.vecdot(dweights, weights)[..., None]
    dscores *= weights
    np.matmul(dscores.swapaxes(-1, -2), q, out=split_heads(dk, num_heads))
    np.matmul(dscores, k, out=split_heads(dq, num_heads))

    dvalue, dw_value, _ = linear_backward(dv, v_cache)
    dkey, dw_key, _ = linear_backward(dk, k_cache)
    dquery, dw_query, _ = linear_backward(dq, q_cache)
    root, scale = scales
    dw_query *= root
    dw_output *= scale
    return dquery, dkey, dvalue, dw_query, dw_key, dw_value, dw_output


def multi_head_attention_weights(cache):
    """As the reference."""
    _, (_, scale), *_, (*_, dropped), _ = cache
    return dropped * scale


def _softmax(scores, mask):
    """Softmax over the last axis, in place of the scores where there is no mask."""
    if mask is not None:
        check_mask(mask, scores.shape)
        scores = np.where(mask, scores, scores.dtype.type(-np.inf))
    peak = scores.max(axis=-1, keepdims=True)  # (B, H, T, 1)
    peak[peak == -np.inf] = 0  # nothing allowed
    scores -= peak
    weights = np.exp(scores, out=scores)
    total = weights @ np.ones(weights.shape[-1], weights.dtype)  # (B, H, T)
    total[total == 0] = 1
    weights /= total[..., None]
    return weights


reference.multi_head_attention.twins.setdefault(
    "numpy",
    Twin(multi_head_attention, multi_head_attention_backward, multi_head_attention_weights),
)
