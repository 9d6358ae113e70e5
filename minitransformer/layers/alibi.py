"""Attention with linear biases, ALiBi (Press, Smith and Lewis 2022): far away counts less.

    A = softmax(Q Kᵀ / √d_k − m_h |t − s|)        m_h = 2^(−8h/H), h = 1 … H

Nothing is added to the embeddings. Instead each score loses, for each position between query and
key, the slope m_h of its head: from a head that sees a few tokens, m_1, to one that sees hundreds,
m_H = 1/256. Distances longer than any in training are only more of the same, so a model goes on
beyond the length it was trained at. (Where H is no power of 2, the paper's program takes other
slopes than its formula, which stands here.)

Derivation. The bias has nothing to train and does not depend on Q, K or V. Added to Z it leaves dZ
as it is; it is felt in the weights A alone, with which the backward is that of ``attention.py``.
"""

import math

import numpy as np

from minitransformer.core.backend import array_namespace, like
from minitransformer.core.module import Module
from minitransformer.layers.attention import scaled_dot_product_attention_backward
from minitransformer.layers.dropout import dropout
from minitransformer.layers.softmax import softmax


def alibi_slopes(num_heads):
    """m_h of each head, (H,) float64 on the host."""
    return 2.0 ** (-8 * np.arange(1, num_heads + 1) / num_heads)


def alibi_bias(slopes, queries, keys):
    """What each score loses, (H, T, S), of so many queries and keys; the last ones are together.

    So they are where the keys of earlier positions were kept, as in decoding.
    """
    xp = array_namespace(slopes)
    distance = (xp.arange(queries) + (keys - queries))[:, None] - xp.arange(keys)  # (T, S)
    distance = xp.maximum(distance, -distance).astype(slopes.dtype)
    return -slopes[:, None, None] * distance  # (H, T, S)


def alibi_attention(query, key, value, slopes, mask=None, p=0.0, rng=None):
    """Scaled dot-product attention to what is near rather than to what is far.

    Args:
        query: (B, H, T, K).
        key, value: (B, H, S, K).
        slopes: (H,).
        mask, p, rng: as for :func:`scaled_dot_product_attention`.

    Returns:
        y (B, H, T, K) and the cache for the backward, that of attention.
    """
    scale = 1 / math.sqrt(query.shape[-1])
    bias = alibi_bias(slopes, query.shape[2], key.shape[2])  # (H, T, S)
    scores = query @ key.swapaxes(-1, -2) * scale + bias  # (B, H, T, S)
    weights, softmax_cache = softmax(scores, mask)
    weights, dropout_cache = dropout(weights, p, rng)
    y = weights @ value  # (B, H, T, K)
    return y, (query, key, value, scale, softmax_cache, dropout_cache, weights)


def alibi_attention_backward(dy, cache):
    """Gradients dquery (B, H, T, K), dkey and dvalue (B, H, S, K)."""
    return scaled_dot_product_attention_backward(dy, cache)


class Alibi(Module):
    """Attention with linear biases, whose slopes are made once.

    Args:
        num_heads: H.
    """

    def __init__(self, num_heads):
        self.slopes = alibi_slopes(num_heads).astype(np.float32)

    def constants_to(self, device=None, dtype=None):
        # Made anew, because widening float32 slopes to float64 would keep their rounding.
        slopes = alibi_slopes(len(self.slopes)).astype(dtype or self.slopes.dtype)
        self.slopes = like(slopes, self.slopes) if device is None else device.asarray(slopes)

    def forward(self, query, key, value, mask=None, p=0.0, rng=None):
        return alibi_attention(query, key, value, self.slopes, mask, p, rng)

    def backward(self, dy, cache):
        return alibi_attention_backward(dy, cache)
