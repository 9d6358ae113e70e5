"""Solutions of lesson 08, scaled dot-product attention."""

import numpy as np


def score_of_itself(d_k):
    """q · q is a sum of d_k squares: its mean is d_k, its variance 2 d_k, its deviation √(2 d_k).

    Divided by √d_k, the mean is √d_k and the standard deviation √2. For d_k = 64 the score is
    8 ± 1.4, where every other is 0 ± 1: each position looks at itself and at hardly anything else.
    So queries and keys have a matrix each.
    """
    return np.sqrt(d_k), np.sqrt(2)


def packed_mask(segments):
    same = segments[:, :, None] == segments[:, None, :]  # (B, T, T)
    real = segments[:, :, None] != 0  # (B, T, 1); with ``same``, the key is real too
    position = np.arange(segments.shape[1])
    not_ahead = position[None, :] <= position[:, None]  # (T, T)
    return (same & real & not_ahead)[:, None]


def biased_attention(query, key, value, bias):
    scale = 1 / np.sqrt(query.shape[-1])
    z = query @ key.swapaxes(-1, -2) * scale + bias  # (B, H, T, S)
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    a = e / e.sum(axis=-1, keepdims=True)
    return a @ value, (query, key, value, a, scale)


def biased_attention_backward(dy, cache):
    """∂z/∂bias is 1, so dbias is dz; a bias serves every sentence of the batch, hence the sum.

    Not scaled: the bias is added after the division by √d_k.
    """
    query, key, value, a, scale = cache
    da = dy @ value.swapaxes(-1, -2)
    dz = a * (da - (a * da).sum(axis=-1, keepdims=True))  # (B, H, T, S)
    dquery = dz @ key * scale
    dkey = dz.swapaxes(-1, -2) @ query * scale
    return dquery, dkey, a.swapaxes(-1, -2) @ dy, dz.sum(axis=0)


def lean_attention(query, key, value):
    """A = exp(Z) / N = exp(Z − log N): one number a row, log N, is all that the softmax has to say.

    In a real kernel the scores do not exist as a whole in the forward either: blocks of keys come
    one after another, with the largest score and the sum so far. That, and this backward, is
    FlashAttention (Dao and others 2022).
    """
    z = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    peak = z.max(axis=-1, keepdims=True)
    log_sum = peak + np.log(np.exp(z - peak).sum(axis=-1, keepdims=True))  # (B, H, T, 1)
    y = np.exp(z - log_sum) @ value
    return y, (query, key, value, y, log_sum)


def lean_attention_backward(dy, cache):
    """rowsum(A · dA) = dy · y, as dA = dY Vᵀ and A V = Y. The price: one more product, Q Kᵀ."""
    query, key, value, y, log_sum = cache
    scale = 1 / np.sqrt(query.shape[-1])
    a = np.exp(query @ key.swapaxes(-1, -2) * scale - log_sum)  # (B, H, T, S), computed again
    dz = a * (dy @ value.swapaxes(-1, -2) - (dy * y).sum(axis=-1, keepdims=True)) * scale
    return dz @ key, dz.swapaxes(-1, -2) @ query, a.swapaxes(-1, -2) @ dy
