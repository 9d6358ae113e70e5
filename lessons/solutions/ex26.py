"""Solutions of lesson 26, what a layer remembers."""

import numpy as np


def recall_weights(keys, values, length):
    """The question and its pair have the score c, all others 0, and so does the question itself.

    All other words together have at most the weight (T − 1) e^−c. It is below 0.001 where c is
    log T + 7. So sharp attention over a longer text needs larger scores, but only by a logarithm.
    """
    words = keys * values + keys
    pair = np.arange(keys * values)
    w_query, w_key = np.zeros((2, words, keys))
    w_value = np.zeros((words, values))
    w_query[keys * values :] = np.eye(keys) * np.sqrt(keys) * (np.log(length) + 10)
    w_key[pair, pair // values] = 1
    w_value[pair, pair % values] = 1
    return w_query, w_key, w_value


def phi(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def dphi(x):
    return np.where(x > 0, 1.0, np.exp(np.minimum(x, 0)))


def linear_attention(query, key, value):
    """The state after t positions: (K, K) numbers in ``pairs``, K in ``sums``. It does not grow.

    Who decodes keeps the last one alone. Here all T are kept, as they are needed again for dquery;
    a loop over t would do with one at a time, and go backward by subtracting.
    """
    q, k = phi(query), phi(key)
    pairs = np.cumsum(k[..., :, None] * value[..., None, :], axis=2)  # (B, H, T, K, K)
    sums = np.cumsum(k, axis=2)  # (B, H, T, K)
    total = (q * sums).sum(axis=-1, keepdims=True)  # (B, H, T, 1)
    y = (q[..., None, :] @ pairs)[..., 0, :] / total
    return y, (query, key, value, pairs, sums, total, y)


def linear_attention_backward(dy, cache):
    """y = u / total with u_t = φ(q_t) pairs_t, so du = dy / total and dtotal = −dy · y / total."""
    query, key, value, pairs, sums, total, y = cache
    q, k = phi(query), phi(key)
    du = dy / total  # (B, H, T, K)
    dtotal = -(dy * y).sum(axis=-1, keepdims=True) / total  # (B, H, T, 1)
    dq = (pairs @ du[..., None])[..., 0] + sums * dtotal
    dpairs = _from_the_end(q[..., :, None] * du[..., None, :])  # (B, H, T, K, K)
    dsums = _from_the_end(q * dtotal)  # (B, H, T, K)
    dk = (dpairs @ value[..., None])[..., 0] + dsums
    dvalue = (k[..., None, :] @ dpairs)[..., 0, :]
    return dq * dphi(query), dk * dphi(key), dvalue


def _from_the_end(x):
    """Running sums along axis 2, of each position and all that come after it."""
    return np.flip(np.cumsum(np.flip(x, axis=2), axis=2), axis=2)
