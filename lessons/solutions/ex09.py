"""Solutions of lesson 09, many heads."""

import numpy as np

from minitransformer.layers.attention import (
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)


def multiplications(T, S, d_model, num_heads):
    """The number of heads does not matter: H heads of width D / H.

    For T = S, the scores and the average, 2 T² D, cost as much as the projections, 4 T D², at
    T = 2 D. With D = 512 that is 1024 tokens: attention over a sentence is mostly its projections.
    """
    projections = 2 * T * d_model**2 + 2 * S * d_model**2  # query and output, key and value
    return projections + 2 * T * S * d_model


def reordered_heads(w_query, w_key, w_value, w_output, num_heads, order):
    """Columns of W^Q, W^K and W^V, and rows of W^O. The output is a sum, in whatever order."""
    d_model = len(w_query)
    places = np.arange(d_model).reshape(num_heads, -1)[np.asarray(order)].ravel()  # (D,)
    return w_query[:, places], w_key[:, places], w_value[:, places], w_output[places]


def gated_heads(heads, gates, w_output):
    merged = merge_heads(gates[:, None, None] * heads)  # (B, T, D)
    return merged @ w_output, (heads, gates, w_output, merged)


def gated_heads_backward(dy, cache):
    """dgates at 1 is what Michel and others (2019) rank heads by."""
    heads, gates, w_output, merged = cache
    rows = dy.reshape(-1, dy.shape[-1])  # (tokens, D)
    dw_output = merged.reshape(rows.shape).T @ rows
    dgated = split_heads(dy @ w_output.T, len(gates))  # (B, H, T, K)
    return gates[:, None, None] * dgated, (dgated * heads).sum(axis=(0, 2, 3)), dw_output


def multi_query_attention(x, w_query, w_key, w_value, w_output, num_heads):
    q = split_heads(x @ w_query, num_heads)  # (B, H, T, K)
    k, v = ((x @ w)[:, None] for w in (w_key, w_value))  # (B, 1, T, K)
    heads, cache = scaled_dot_product_attention(q, k, v)
    merged = merge_heads(heads)
    return merged @ w_output, (x, w_query, w_key, w_value, w_output, num_heads, merged, cache)


def multi_query_attention_backward(dy, cache):
    """What is new: dk and dv come out with an axis of heads, and are summed over it."""
    x, w_query, w_key, w_value, w_output, num_heads, merged, attention_cache = cache
    dheads = split_heads(dy @ w_output.T, num_heads)
    dq, dk, dv = scaled_dot_product_attention_backward(dheads, attention_cache)
    dq, dk, dv = merge_heads(dq), dk.sum(axis=1), dv.sum(axis=1)  # (B, T, D), (B, T, K) twice
    dx = dq @ w_query.T + dk @ w_key.T + dv @ w_value.T

    def weight_gradient(a, db):
        return a.reshape(-1, a.shape[-1]).T @ db.reshape(-1, db.shape[-1])

    dweights = [weight_gradient(x, d) for d in (dq, dk, dv)]
    return dx, *dweights, weight_gradient(merged, dy)
