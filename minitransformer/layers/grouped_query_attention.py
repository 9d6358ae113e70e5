"""Grouped-query attention (Ainslie et al. 2023): several heads share their keys and values.

    head_i = Attention(Q W_i^Q, K W_g^K, V W_g^V)        g = ⌊i G / H⌋

Of H heads, each has queries of its own, but only G sets of keys and values there are: heads
0 … H/G − 1 look into the first, the next H/G into the second. G = H is multi-head attention, G = 1
multi-query attention (Shazeer 2019). What decoding keeps of each token becomes H/G times smaller.

Derivation. It is multi-head attention whose keys and values are repeated, k̃_i = k_g(i), and what is
used several times receives the sum of what its uses send:

    dk_g = Σ_{i in group g} dk̃_i        dv_g = Σ_{i in group g} dṽ_i

Repeated means 0 0 1 1, each H/G times in a row; tiled would be 0 1 0 1 and give each head other
keys. Both train; but weights trained one way are noise the other.
"""

from minitransformer.core.module import Parameter
from minitransformer.layers.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
from minitransformer.layers.linear import glorot_uniform, linear, linear_backward


def repeat_groups(x, num_heads):
    """(B, G, S, K) as (B, H, S, K): each group for the H/G heads in a row that share it."""
    return x.repeat(num_heads // x.shape[1], axis=1)


def repeat_groups_backward(dy, num_groups):
    """Gradient (B, G, S, K) of what was repeated: the sums over the heads of a group."""
    batch, _, length, head_width = dy.shape
    return dy.reshape(batch, num_groups, -1, length, head_width).sum(axis=2)


def grouped_query_attention(
    query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None
):
    """Multi-head attention in which w_key and w_value have fewer heads than w_query.

    Args:
        query: (B, T, D).
        key, value: (B, S, D); for self-attention the same array as query.
        w_query, w_output: (D, D).
        w_key, w_value: (D, G K), where G divides H.
        num_heads: H.
        mask, p, rng: as for :func:`scaled_dot_product_attention`.

    Returns:
        y (B, T, D) and the cache for the backward.
    """
    num_groups = w_key.shape[1] * num_heads // w_query.shape[1]
    q, q_cache = linear(query, w_query)  # (B, T, D)
    k, k_cache = linear(key, w_key)  # (B, S, G K)
    v, v_cache = linear(value, w_value)  # (B, S, G K)
    q = split_heads(q, num_heads)  # (B, H, T, K)
    k, v = (repeat_groups(split_heads(x, num_groups), num_heads) for x in (k, v))  # (B, H, S, K)
    heads, attention_cache = scaled_dot_product_attention(q, k, v, mask, p, rng)  # (B, H, T, K)
    y, output_cache = linear(merge_heads(heads), w_output)  # (B, T, D)
    return y, (num_heads, num_groups, q_cache, k_cache, v_cache, attention_cache, output_cache)


def grouped_query_attention_backward(dy, cache):
    """Gradients of the first seven arguments, each of its argument's shape."""
    num_heads, num_groups, q_cache, k_cache, v_cache, attention_cache, output_cache = cache
    dheads, dw_output, _ = linear_backward(dy, output_cache)  # (B, T, D)
    dheads = split_heads(dheads, num_heads)  # (B, H, T, K)
    dq, dk, dv = scaled_dot_product_attention_backward(dheads, attention_cache)
    dk, dv = (repeat_groups_backward(dx, num_groups) for dx in (dk, dv))  # (B, G, S, K)
    dq, dk, dv = (merge_heads(dx) for dx in (dq, dk, dv))  # (B, T, D) and (B, S, G K)
    dvalue, dw_value, _ = linear_backward(dv, v_cache)
    dkey, dw_key, _ = linear_backward(dk, k_cache)
    dquery, dw_query, _ = linear_backward(dq, q_cache)
    return dquery, dkey, dvalue, dw_query, dw_key, dw_value, dw_output


class GroupedQueryAttention(MultiHeadAttention):
    """Multi-head attention with keys and values for each group of heads, not for each head.

    In ``step`` and ``attend``, kept keys and values are those of the groups, (B, G, S, K).

    Args:
        d_model, num_heads, rng, p: as for :class:`MultiHeadAttention`.
        num_groups: G, a divisor of num_heads; 1 is multi-query attention.

    Raises:
        ValueError: num_heads does not divide d_model, or num_groups not num_heads.
    """

    def __init__(self, d_model, num_heads, num_groups, rng, *, p=0.0):
        if num_groups < 1 or num_heads % num_groups:
            divisors = [n for n in range(1, num_heads + 1) if num_heads % n == 0]
            raise ValueError(
                f"num_heads={num_heads} is not divisible by num_groups={num_groups}; choose one "
                f"of {', '.join(map(str, divisors))}"
            )
        super().__init__(d_model, num_heads, rng, p=p)
        width = d_model // num_heads * num_groups  # G K
        self.w_key = Parameter(glorot_uniform((d_model, width), rng))
        self.w_value = Parameter(glorot_uniform((d_model, width), rng))
        self.num_groups = num_groups

    def forward(self, query, key, value, mask=None, rng=None):
        w = (self.w_query.data, self.w_key.data, self.w_value.data, self.w_output.data)
        return grouped_query_attention(query, key, value, *w, self.num_heads, mask, self.p, rng)

    def backward(self, dy, cache):
        """Gradients dquery, dkey and dvalue; self-attention adds them up."""
        *dinputs, dw_query, dw_key, dw_value, dw_output = grouped_query_attention_backward(
            dy, cache
        )
        self.w_query.grad += dw_query
        self.w_key.grad += dw_key
        self.w_value.grad += dw_value
        self.w_output.grad += dw_output
        return tuple(dinputs)

    def keys_and_values(self, key, value):
        """What (B, S, D) each offers to queries: two arrays (B, G, S, K)."""
        key, _ = linear(key, self.w_key.data)
        value, _ = linear(value, self.w_value.data)
        return split_heads(key, self.num_groups), split_heads(value, self.num_groups)

    def attend(self, query, keys, values, mask=None):
        """:meth:`forward` at inference, of keys and values made before: y (B, T, D)."""
        keys, values = (repeat_groups(x, self.num_heads) for x in (keys, values))
        return super().attend(query, keys, values, mask)
