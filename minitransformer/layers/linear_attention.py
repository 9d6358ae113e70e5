"""Linear attention (Katharopoulos et al. 2020): a kernel in place of the softmax.

    y_t = Σ_s (φ(q_t) · φ(k_s)) v_s / Σ_s φ(q_t) · φ(k_s)        φ(x) = elu(x) + 1

As the weight of a key is a product, not an exponential of one, the sum can be made first, over the
keys, for all queries at once: with Φ_k (S, K) and Φ_q (T, K)

    M = Φ_kᵀ V    n = Φ_kᵀ 1    y_t = φ(q_t) M / (φ(q_t) · n)

Time and memory grow as the length, not as its square. Where what comes after a query is hidden,
M and n are those of the keys so far: a recurrent network whose state is a matrix,

    M_t = M_{t−1} + φ(k_t)ᵀ v_t        n_t = n_{t−1} + φ(k_t)

Numerator and denominator are one product: with a column of ones beside the values, ṽ = (v, 1), the
sums are one M̃ = (M, n) and z_t = φ(q_t) M̃_t = (numerator, denominator).

Derivation. Of y = z_v / z_1:  dz_v = dy / z_1,  dz_1 = −dy · y / z_1. And z_t is a sum of products
of three, of which each is due the other two:

    z_t     = Σ_s (φ(q_t) · φ(k_s)) ṽ_s        dφ(k_s) = Σ_t (ṽ_s · dz_t) φ(q_t)
    dφ(q_t) = Σ_s (dz_t · ṽ_s) φ(k_s)          dṽ_s    = Σ_t (φ(k_s) · φ(q_t)) dz_t

Four times the same sum, so one function serves for all. Causal, those on the left go over s ≤ t,
from the first step on, those on the right over t ≥ s, from the last step back: backpropagation
through time, for which no state is kept. Finally φ'(x) = 1 above 0 and exp(x) = φ(x) below.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.layers.masks import check_one_sequence
from minitransformer.layers.softmax import check_mask


def linear_attention(query, key, value, causal=False, mask=None):
    """Each query's average of the values, weighted by φ(q) · φ(k).

    Args:
        query: (B, H, T, K).
        key, value: (B, H, S, K).
        causal: whether what comes after a query is hidden from it.
        mask: boolean, broadcasts to (B, 1, 1, S); False at padding. A query that is allowed
            nothing receives zeros, as does one all of whose φ(q) · φ(k) are too small for a number.

    Returns:
        y (B, H, T, K) and the cache for the backward.

    Raises:
        TypeError: the mask is not boolean.
        ValueError: the mask does not broadcast, or the attention is causal and there are not as
            many keys as queries.
    """
    if causal:
        check_one_sequence(query, key)
    xp = array_namespace(query)
    of_query, of_key = feature(query), feature(key)  # (B, H, T or S, K)
    if mask is not None:
        shape = (key.shape[0], 1, 1, key.shape[2])
        check_mask(mask, shape)
        mask = xp.broadcast_to(mask, shape).swapaxes(-1, -2)  # (B, 1, S, 1)
        of_key = of_key * mask  # adds nothing to either sum
    ones = xp.full((*value.shape[:3], 1), 1, dtype=value.dtype)
    value = xp.concatenate([value, ones], axis=-1)  # (B, H, S, K + 1)
    sums = up_to_each if causal else over_all
    z = sums(of_query, of_key, value)  # (B, H, T, K + 1)
    total = z[..., -1:]
    total = xp.where(total == 0, 1, total)  # nothing allowed: 0 / 1
    y = z[..., :-1] / total
    return y, (query, key, of_query, of_key, value, mask, sums, total, y)


def linear_attention_backward(dy, cache):
    """Gradients dquery (B, H, T, K), dkey and dvalue (B, H, S, K)."""
    query, key, of_query, of_key, value, mask, sums, total, y = cache
    dnumerator = dy / total  # (B, H, T, K)
    dtotal = -(dnumerator * y).sum(axis=-1, keepdims=True)  # (B, H, T, 1)
    dz = array_namespace(dy).concatenate([dnumerator, dtotal], axis=-1)  # (B, H, T, K + 1)
    dof_query = sums(dz, value, of_key)  # (B, H, T, K)
    dof_key = sums(value, dz, of_query, from_end=True)  # (B, H, S, K)
    dvalue = sums(of_key, of_query, dz, from_end=True)  # (B, H, S, K + 1)
    if mask is not None:
        dof_key = dof_key * mask
    dquery = feature_backward(dof_query, (query, of_query))
    dkey = feature_backward(dof_key, (key, of_key))
    return dquery, dkey, dvalue[..., :-1]


def over_all(asking, asked, summed, from_end=False):
    """For each t, Σ_s (asking_t · asked_s) summed_s over all s, from either end the same."""
    return asking @ (asked.swapaxes(-1, -2) @ summed)


def up_to_each(asking, asked, summed, from_end=False):
    """:func:`over_all` over s ≤ t alone, or over s ≥ t from the end."""
    xp = array_namespace(asking)
    y = xp.zeros((*asking.shape[:3], summed.shape[-1]), dtype=asking.dtype)
    state = 0
    for t in sorted(range(asking.shape[2]), reverse=from_end):
        state = state + asked[:, :, t, :, None] * summed[:, :, t, None]  # (B, H, K, K + 1)
        y[:, :, t] = (asking[:, :, t, None] @ state)[:, :, 0]
    return y


def feature(x):
    """φ(x) = elu(x) + 1: above 0 everywhere, x + 1 above 0 and exp(x) below."""
    xp = array_namespace(x)
    return xp.where(x > 0, x + 1, xp.exp(xp.where(x > 0, 0, x)))  # no exp of what is large


def feature_backward(dy, cache):
    """Gradient dx, of the shape of dy."""
    x, y = cache
    return dy * array_namespace(dy).where(x > 0, 1, y)
