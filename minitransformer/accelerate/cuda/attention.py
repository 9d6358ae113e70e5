"""Attention with scale, mask, softmax and dropout in one launch, and heads copied once.

Heads are split into contiguous arrays (B, H, T, K), which the six matrix products of forward and
backward then read as they lie, transposed or not.
"""

import math

from minitransformer.accelerate.cuda.dropout import KEEP_ALL, next_draw
from minitransformer.accelerate.cuda.kernels import launch
from minitransformer.accelerate.cuda.launches import matrix, rowwise
from minitransformer.accelerate.cuda.matmul import matmul
from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import Twin
from minitransformer.layers import attention as reference
from minitransformer.layers.attention import merge_heads, split_heads
from minitransformer.layers.softmax import check_mask


def scaled_dot_product_attention(query, key, value, mask=None, p=0.0, rng=None):
    """As the reference."""
    draw = next_draw(p, rng)
    scale = 1 / math.sqrt(query.shape[-1])
    weights = matmul(query, key.swapaxes(-1, -2))  # (B, H, T, S), the scores as yet
    xp = array_namespace(weights)
    _, heads, length, width = shape = weights.shape
    strides = 0, 0, 0, 0
    if mask is not None:
        check_mask(mask, shape)
        mask = xp.ascontiguousarray(mask)
        strides = xp.broadcast_to(mask, shape).strides  # of booleans: bytes are entries
    dropped = None if draw is KEEP_ALL else xp.empty(shape, weights.dtype)
    rows = weights.size // width
    arguments = weights, dropped, mask, *strides, heads, length, rows, width, scale, *draw
    launch("softmax", *rowwise(rows, width), *arguments)
    if dropped is None:
        dropped = weights
    y = matmul(dropped, value)  # (B, H, T, K)
    return y, (query, key, value, scale, weights, dropped, draw)


def scaled_dot_product_attention_backward(dy, cache):
    """As the reference."""
    query, key, value, scale, weights, dropped, draw = cache
    dvalue = matmul(dropped.swapaxes(-1, -2), dy)  # (B, H, S, K)
    dscores = matmul(dy, value.swapaxes(-1, -2))  # (B, H, T, S), of the dropped weights as yet
    width = weights.shape[-1]
    rows = weights.size // width
    arguments = dscores, weights, rows, width, scale, *draw
    launch("softmax_backward", *rowwise(rows, width), *arguments)
    dkey = matmul(dscores.swapaxes(-1, -2), query)  # (B, H, S, K)
    dquery = matmul(dscores, key)  # (B, H, T, K)
    return dquery, dkey, dvalue


def scaled_dot_product_attention_weights(cache):
    """As the reference."""
    *_, dropped, _ = cache
    return dropped


def multi_head_attention(
    query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None
):
    """As the reference."""
    q, q_cache = _project(query, w_query, num_heads)  # (B, H, T, K)
    k, k_cache = _project(key, w_key, num_heads)  # (B, H, S, K)
    v, v_cache = _project(value, w_value, num_heads)  # (B, H, S, K)
    heads, attention_cache = scaled_dot_product_attention(q, k, v, mask, p, rng)  # (B, H, T, K)
    heads = matrix(merge_heads(heads))  # (tokens, D)
    y = matmul(heads, w_output).reshape(query.shape)
    return y, (num_heads, q_cache, k_cache, v_cache, attention_cache, heads, w_output)


def multi_head_attention_backward(dy, cache):
    """As the reference."""
    num_heads, q_cache, k_cache, v_cache, attention_cache, heads, w_output = cache
    dy, shape = matrix(dy), dy.shape
    dw_output = matmul(heads.T, dy)
    dheads = _split(matmul(dy, w_output.T).reshape(shape), num_heads)  # (B, H, T, K)
    dq, dk, dv = scaled_dot_product_attention_backward(dheads, attention_cache)
    dvalue, dw_value = _project_backward(dv, v_cache)
    dkey, dw_key = _project_backward(dk, k_cache)
    dquery, dw_query = _project_backward(dq, q_cache)
    return dquery, dkey, dvalue, dw_query, dw_key, dw_value, dw_output


def multi_head_attention_weights(cache):
    """As the reference."""
    *_, attention_cache, _, _ = cache
    return scaled_dot_product_attention_weights(attention_cache)


def _project(x, weight, num_heads):
    """The heads of x (B, T, D) times weight."""
    rows = matrix(x)  # (tokens, D)
    return _split(matmul(rows, weight).reshape(x.shape), num_heads), (rows, weight)


def _project_backward(dheads, cache):
    rows, weight = cache
    dy = merge_heads(dheads)  # (B, T, D)
    dy_rows = matrix(dy)  # (tokens, D)
    return matmul(dy_rows, weight.T).reshape(dy.shape), matmul(rows.T, dy_rows)


def _split(x, num_heads):
    """(B, T, D) as (B, H, T, K), contiguous."""
    return array_namespace(x).ascontiguousarray(split_heads(x, num_heads))


reference.scaled_dot_product_attention.twins.setdefault(
    "cupy",
    Twin(
        scaled_dot_product_attention,
        scaled_dot_product_attention_backward,
        scaled_dot_product_attention_weights,
    ),
)
reference.multi_head_attention.twins.setdefault(
    "cupy",
    Twin(multi_head_attention, multi_head_attention_backward, multi_head_attention_weights),
)
