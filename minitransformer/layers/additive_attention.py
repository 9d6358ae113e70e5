"""Additive attention (Bahdanau, Cho and Bengio 2015).

    e_ts = vᵀ tanh(q_t W + k_s U)        A = softmax(e)        Y = A V

A small network with one hidden layer says how well a key matches a query, where the Transformer
has their product. With F the width of that layer and h_ts = tanh(q_t W + k_s U), (F,):

Derivation. A and Y are as in ``attention.py``: dA = dY Vᵀ, dV = Aᵀ dY, and de by the softmax. Then

    dv = Σ_ts de_ts h_ts        dz_ts = de_ts v · (1 − h_ts²)

where z_ts = q_t W + k_s U stands before the tanh. Each q_t W is added at every s, each k_s U at
every t:

    d(q_t W) = Σ_s dz_ts        d(k_s U) = Σ_t dz_ts

All h_ts are kept for the backward, B·T·S·F numbers: for 64 sentences of 20 tokens and F = 256,
26 MB in float32, where the dot product keeps B·T·S.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.layers.linear import Linear, glorot_uniform
from minitransformer.layers.softmax import softmax, softmax_backward


def additive_attention(query, key, value, v, mask=None):
    """Each query's average of the values, weighted by the score of its key.

    Queries and keys come already multiplied by W and U: a decoder that asks one query at a time,
    T = 1, has to do that only once for its keys.

    Args:
        query: q W, (B, T, F).
        key: k U, (B, S, F).
        value: (B, S, D).
        v: (F,).
        mask: boolean, broadcasts to (B, T, S); True where attention is allowed. A query that is
            allowed nothing receives zeros.

    Returns:
        y (B, T, D) and the cache for the backward.

    Raises:
        TypeError, ValueError: the mask is not boolean, or does not broadcast to (B, T, S).
    """
    hidden = array_namespace(query).tanh(query[:, :, None] + key[:, None])  # (B, T, S, F)
    scores = hidden @ v  # (B, T, S)
    weights, softmax_cache = softmax(scores, mask)
    y = weights @ value  # (B, T, D)
    return y, (hidden, value, v, softmax_cache, weights)


def additive_attention_backward(dy, cache):
    """Gradients dquery (B, T, F), dkey (B, S, F), dvalue (B, S, D) and dv (F,)."""
    hidden, value, v, softmax_cache, weights = cache
    dvalue = weights.swapaxes(-1, -2) @ dy  # (B, S, D)
    dweights = dy @ value.swapaxes(-1, -2)  # (B, T, S)
    dscores = softmax_backward(dweights, softmax_cache)
    dv = dscores.reshape(-1) @ hidden.reshape(-1, len(v))  # (F,)
    dz = dscores[..., None] * (v * (1 - hidden * hidden))  # (B, T, S, F)
    dkey = dz.sum(axis=1)  # (B, S, F)
    dquery = dz.sum(axis=2)  # (B, T, F)
    return dquery, dkey, dvalue, dv


class AdditiveAttention(Module):
    """Additive attention with its own weights; no biases, as in the formula.

    Args:
        d_query, d_key: widths of queries and of keys.
        d_attention: F, the width of the hidden layer.
        rng: NumPy generator for the weights.
    """

    def __init__(self, d_query, d_key, d_attention, rng):
        self.of_query = Linear(d_query, d_attention, rng, bias=False)
        self.of_key = Linear(d_key, d_attention, rng, bias=False)
        self.v = Parameter(glorot_uniform((d_attention, 1), rng)[:, 0])

    def forward(self, query, key, value, mask=None):
        """y (B, T, D) and the cache; query (B, T, d_query), key (B, S, d_key), value (B, S, D)."""
        q, q_cache = self.of_query.forward(query)  # (B, T, F)
        k, k_cache = self.of_key.forward(key)  # (B, S, F)
        y, attention_cache = additive_attention(q, k, value, self.v.data, mask)
        return y, (q_cache, k_cache, attention_cache)

    def backward(self, dy, cache):
        """Gradients dquery, dkey and dvalue."""
        q_cache, k_cache, attention_cache = cache
        dq, dk, dvalue, dv = additive_attention_backward(dy, attention_cache)
        self.v.grad += dv
        dkey = self.of_key.backward(dk, k_cache)
        dquery = self.of_query.backward(dq, q_cache)
        return dquery, dkey, dvalue

    def keys(self, key):
        """What keys (B, S, d_key) are compared by, (B, S, F), for :meth:`attend`."""
        return self.of_key.forward(key)[0]

    def attend(self, query, keys, value, mask=None):
        """:meth:`forward` at inference, of keys made before: y (B, T, D)."""
        q, _ = self.of_query.forward(query)  # (B, T, F)
        return additive_attention(q, keys, value, self.v.data, mask)[0]

    def weights(self, cache):
        """Where the queries looked, in the forward that gave the cache: (B, T, S)."""
        *_, (*_, weights) = cache
        return weights
