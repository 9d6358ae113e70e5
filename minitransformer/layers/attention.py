"""Scaled dot-product attention and multi-head attention (section 3.2).

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                                 (equation 1)
    MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O
                head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

Derivation of (1). With scores Z = Q Kᵀ / √d_k, weights A = softmax(Z) and output Y = A V, two
matrix products as in ``linear.py`` with a softmax between them:

    dA = dY Vᵀ          dV = Aᵀ dY
    dZ = A · (dA − row sums of dA · A)
    dQ = dZ K / √d_k    dK = dZᵀ Q / √d_k

Dropout of the weights, between A and V, is not in the paper but in most implementations.

The h matrices W_i^Q stand side by side in one W^Q (D, D), so all heads are one GEMM; splitting the
result into heads is only another view of it. In the shapes below K is the head width, d_k = D / h.
"""

import math

from minitransformer.core.errors import require_whole
from minitransformer.core.module import Module, Parameter
from minitransformer.core.twins import reads_weights, twinned
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.linear import glorot_uniform, linear, linear_backward
from minitransformer.layers.softmax import softmax, softmax_backward


@twinned
def scaled_dot_product_attention(query, key, value, mask=None, p=0.0, rng=None):
    """Each query's average of the values, weighted by how well its key matches (equation 1).

    Args:
        query: (B, H, T, K).
        key, value: (B, H, S, K).
        mask: boolean, broadcasts to (B, H, T, S); True where attention is allowed. A query that
            is allowed nothing receives zeros.
        p, rng: dropout of the weights, as for :func:`dropout`.

    Returns:
        y (B, H, T, K) and the cache for the backward.
    """
    scale = 1 / math.sqrt(query.shape[-1])
    scores = query @ key.swapaxes(-1, -2) * scale  # (B, H, T, S)
    weights, softmax_cache = softmax(scores, mask)
    weights, dropout_cache = dropout(weights, p, rng)
    y = weights @ value  # (B, H, T, K)
    return y, (query, key, value, scale, softmax_cache, dropout_cache, weights)


@twinned
def scaled_dot_product_attention_backward(dy, cache):
    """Gradients dquery (B, H, T, K), dkey and dvalue (B, H, S, K)."""
    query, key, value, scale, softmax_cache, dropout_cache, weights = cache
    dvalue = weights.swapaxes(-1, -2) @ dy  # (B, H, S, K)
    dweights = dy @ value.swapaxes(-1, -2)  # (B, H, T, S)
    dweights = dropout_backward(dweights, dropout_cache)
    dscores = softmax_backward(dweights, softmax_cache) * scale
    dkey = dscores.swapaxes(-1, -2) @ query  # (B, H, S, K)
    dquery = dscores @ key  # (B, H, T, K)
    return dquery, dkey, dvalue


@reads_weights
def scaled_dot_product_attention_weights(cache):
    """Where the queries looked: weights (B, H, T, S), after dropout, from the cache."""
    return cache[-1]


@twinned
def split_heads(x, num_heads):
    """(B, T, D) as (B, H, T, K), a view."""
    batch, length, d_model = x.shape
    return x.reshape(batch, length, num_heads, d_model // num_heads).swapaxes(1, 2)


@twinned
def merge_heads(x):
    """(B, H, T, K) as (B, T, D), contiguous: the inverse of :func:`split_heads`."""
    batch, num_heads, length, head_width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, num_heads * head_width)


@twinned
def multi_head_attention(
    query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None
):
    """Attention in ``num_heads`` subspaces at once; no biases, as in the paper's formula.

    Args:
        query: (B, T, D).
        key, value: (B, S, D); for self-attention the same array as query.
        w_query, w_key, w_value, w_output: (D, D).
        mask, p, rng: as for :func:`scaled_dot_product_attention`.

    Returns:
        y (B, T, D) and the cache for the backward.
    """
    q, q_cache = linear(query, w_query)  # (B, T, D)
    k, k_cache = linear(key, w_key)  # (B, S, D)
    v, v_cache = linear(value, w_value)  # (B, S, D)
    q, k, v = (split_heads(x, num_heads) for x in (q, k, v))  # (B, H, T or S, K)
    heads, attention_cache = scaled_dot_product_attention(q, k, v, mask, p, rng)  # (B, H, T, K)
    y, output_cache = linear(merge_heads(heads), w_output)  # (B, T, D)
    return y, (num_heads, q_cache, k_cache, v_cache, attention_cache, output_cache)


@twinned
def multi_head_attention_backward(dy, cache):
    """Gradients of the first seven arguments, each of its argument's shape."""
    num_heads, q_cache, k_cache, v_cache, attention_cache, output_cache = cache
    dheads, dw_output, _ = linear_backward(dy, output_cache)  # (B, T, D)
    dheads = split_heads(dheads, num_heads)  # (B, H, T, K)
    dq, dk, dv = scaled_dot_product_attention_backward(dheads, attention_cache)
    dq, dk, dv = (merge_heads(dx) for dx in (dq, dk, dv))  # (B, T or S, D)
    dvalue, dw_value, _ = linear_backward(dv, v_cache)
    dkey, dw_key, _ = linear_backward(dk, k_cache)
    dquery, dw_query, _ = linear_backward(dq, q_cache)
    return dquery, dkey, dvalue, dw_query, dw_key, dw_value, dw_output


@reads_weights
def multi_head_attention_weights(cache):
    """As those of :func:`scaled_dot_product_attention_weights`."""
    *_, attention_cache, _ = cache
    return scaled_dot_product_attention_weights(attention_cache)


class MultiHeadAttention(Module):
    """Multi-head attention with its own weights, drawn by :func:`glorot_uniform`.

    Args:
        d_model: width D of inputs and outputs.
        num_heads: H, a divisor of d_model.
        rng: NumPy generator for the weights.
        p: dropout probability of the attention weights.

    Raises:
        ValueError: num_heads is less than 1 or does not divide d_model.
    """

    def __init__(self, d_model, num_heads, rng, *, p=0.0):
        require_whole("num_heads", num_heads)
        if d_model % num_heads:
            below = d_model - d_model % num_heads
            near = " or ".join(str(d) for d in (below, below + num_heads) if d)
            raise ValueError(
                f"d_model={d_model} is not divisible by num_heads={num_heads}; choose {near}"
            )
        self.w_query = Parameter(glorot_uniform((d_model, d_model), rng))
        self.w_key = Parameter(glorot_uniform((d_model, d_model), rng))
        self.w_value = Parameter(glorot_uniform((d_model, d_model), rng))
        self.w_output = Parameter(glorot_uniform((d_model, d_model), rng))
        self.num_heads = num_heads
        self.p = p

    def forward(self, query, key, value, mask=None, rng=None):
        w = (self.w_query.data, self.w_key.data, self.w_value.data, self.w_output.data)
        return multi_head_attention(query, key, value, *w, self.num_heads, mask, self.p, rng)

    def backward(self, dy, cache):
        """Gradients dquery, dkey and dvalue; self-attention adds them up."""
        *dinputs, dw_query, dw_key, dw_value, dw_output = multi_head_attention_backward(dy, cache)
        self.w_query.grad += dw_query
        self.w_key.grad += dw_key
        self.w_value.grad += dw_value
        self.w_output.grad += dw_output
        return tuple(dinputs)

    def step(self, x, kept, mask=None):
        """:meth:`forward` at inference of positions that follow others, to those and themselves.

        Args:
            x: (B, T, D), the positions that are new.
            kept: where keys and values are kept: ``append`` takes those of x, (B, H, T, K) each,
                and returns them behind all before, (B, H, S, K).
            mask: broadcasts to (B, H, T, S).

        Returns:
            y (B, T, D).
        """
        keys, values = kept.append(*self.keys_and_values(x, x))
        return self.attend(x, keys, values, mask)

    def keys_and_values(self, key, value):
        """What (B, S, D) each offers to queries: two arrays (B, H, S, K)."""
        key, _ = linear(key, self.w_key.data)
        value, _ = linear(value, self.w_value.data)
        return split_heads(key, self.num_heads), split_heads(value, self.num_heads)

    def attend(self, query, keys, values, mask=None):
        """:meth:`forward` at inference, of keys and values made before: y (B, T, D)."""
        query, _ = linear(query, self.w_query.data)
        query = split_heads(query, self.num_heads)  # (B, H, T, K)
        heads, _ = scaled_dot_product_attention(query, keys, values, mask)
        y, _ = linear(merge_heads(heads), self.w_output.data)
        return y

    def weights(self, cache):
        """Where the queries looked, in the forward that gave the cache: (B, H, T, S)."""
        return multi_head_attention_weights(cache)
