"""Attention in tiles: exact, and no (T, S) array ever exists (Dao et al. 2022, FlashAttention).

    y_t = Σ_s exp(z_ts) v_s / Σ_s exp(z_ts)        z_ts = q_t · k_s / √d_k

Scores are made for a tile of queries and keys at a time, used, and forgotten. A softmax needs its
largest score and its sum before the first weight; both can be carried along (Milakov and Gimelshein
2018). After some tiles of keys a query has the largest score so far, m, the sum ℓ = Σ exp(z − m)
and the unfinished o = Σ exp(z − m) v. The next tile may have a larger score; then all of it is
brought to that one:

    m' = max(m, max z)    ℓ' = exp(m − m') ℓ + Σ exp(z − m')    o' = exp(m − m') o + Σ exp(z − m') v

At the end y = o / ℓ, which no order of tiles changes. Of the softmax one number a query is kept,
L = m + log ℓ, so that A_ts = exp(z_ts − L_t) is made again in one step when the backward needs it.

Derivation. The gradients are those of ``attention.py``, tile by tile. Only the row sum in dZ goes
over all tiles, and it is known beforehand from what the output is:

    δ_t = Σ_s dA_ts A_ts = Σ_s (dy_t · v_s) A_ts = dy_t · y_t
    dZ = A · (dY Vᵀ − δ)

Then dq_t is a sum over tiles of keys, dk_s and dv_s are sums over tiles of queries. Beyond inputs,
outputs and gradients memory holds a tile and L: it grows as n, not as n². In return the scores are
computed twice. On a GPU, where a tile stays in fast memory, it is the faster way, too.
"""

import math

from minitransformer.core.backend import array_namespace
from minitransformer.layers.masks import check_one_sequence
from minitransformer.layers.softmax import check_mask


def tiled_attention(query, key, value, size=128, causal=False, mask=None):
    """What :func:`scaled_dot_product_attention` computes, with memory for one tile of scores.

    Args:
        query: (B, H, T, K).
        key, value: (B, H, S, K).
        size: C, how many queries and how many keys a tile has; those at the ends may have fewer.
        causal: whether what comes after a query is hidden from it; tiles of it are passed over.
        mask: boolean, broadcasts to (B, 1, 1, S); False at padding. A query that is allowed
            nothing receives zeros.

    Returns:
        y (B, H, T, K) and the cache for the backward.

    Raises:
        TypeError: the mask is not boolean.
        ValueError: the mask does not broadcast, size is less than 1, or the attention is causal
            and there are not as many keys as queries.
    """
    if size < 1:
        raise ValueError(f"size={size} must be 1 or more")
    if causal:
        check_one_sequence(query, key)
    xp = array_namespace(query)
    if mask is not None:
        shape = (key.shape[0], 1, 1, key.shape[2])
        check_mask(mask, shape)
        mask = xp.broadcast_to(mask, shape)
    y = xp.zeros(query.shape, dtype=query.dtype)  # (B, H, T, K)
    log_total = xp.zeros((*query.shape[:3], 1), dtype=query.dtype)  # (B, H, T, 1), L
    for rows in tiles(query.shape[2], size):
        q = query[:, :, rows]  # (B, H, C, K)
        peak = xp.full((*q.shape[:3], 1), -xp.inf, dtype=q.dtype)  # (B, H, C, 1), m
        total = xp.zeros(peak.shape, dtype=q.dtype)  # (B, H, C, 1), ℓ
        average = xp.zeros(q.shape, dtype=q.dtype)  # (B, H, C, K), o
        for columns in tiles(key.shape[2], size, rows.stop if causal else None):
            scores = _scores(q, key, rows, columns, causal, mask)  # (B, H, C, C)
            new_peak = xp.maximum(peak, scores.max(axis=-1, keepdims=True))
            shift = xp.where(new_peak == -xp.inf, 0, new_peak)  # nothing allowed so far
            rescale = xp.exp(peak - shift)
            weights = xp.exp(scores - shift)  # (B, H, C, C)
            total = total * rescale + weights.sum(axis=-1, keepdims=True)
            average = average * rescale + weights @ value[:, :, columns]
            peak = new_peak
        total = xp.where(total == 0, 1, total)  # nothing was allowed at all: 0 / 1
        y[:, :, rows] = average / total
        log_total[:, :, rows] = shift + xp.log(total)
    return y, (query, key, value, size, causal, mask, y, log_total)


def tiled_attention_backward(dy, cache):
    """Gradients dquery (B, H, T, K), dkey and dvalue (B, H, S, K)."""
    query, key, value, size, causal, mask, y, log_total = cache
    xp = array_namespace(dy)
    scale = 1 / math.sqrt(query.shape[-1])
    dquery, dkey, dvalue = (xp.zeros(x.shape, dtype=x.dtype) for x in (query, key, value))
    for rows in tiles(query.shape[2], size):
        q, dy_rows = query[:, :, rows], dy[:, :, rows]  # (B, H, C, K)
        delta = (dy_rows * y[:, :, rows]).sum(axis=-1, keepdims=True)  # (B, H, C, 1)
        for columns in tiles(key.shape[2], size, rows.stop if causal else None):
            scores = _scores(q, key, rows, columns, causal, mask)
            weights = xp.exp(scores - log_total[:, :, rows])  # (B, H, C, C)
            dvalue[:, :, columns] += weights.swapaxes(-1, -2) @ dy_rows
            dweights = dy_rows @ value[:, :, columns].swapaxes(-1, -2)  # (B, H, C, C)
            dscores = weights * (dweights - delta) * scale
            dkey[:, :, columns] += dscores.swapaxes(-1, -2) @ q
            dquery[:, :, rows] += dscores @ key[:, :, columns]
    return dquery, dkey, dvalue


def tiles(length, size, end=None):
    """Slices of ``size`` positions, the last one shorter, of ``length`` positions or up to end."""
    stop = length if end is None else min(length, end)
    return [slice(start, min(start + size, length)) for start in range(0, stop, size)]


def _scores(q, key, rows, columns, causal, mask):
    """Scores of a tile (B, H, C, C), −∞ where nothing may be looked at."""
    xp = array_namespace(q)
    scores = q @ key[:, :, columns].swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]))
    if mask is not None:
        scores = xp.where(mask[..., columns], scores, -xp.inf)
    if causal and columns.stop > rows.start + 1:  # the tile reaches beyond its first query
        t, s = (xp.arange(x.stop)[x.start :] for x in (rows, columns))  # (C,)
        scores = xp.where(s <= t[:, None], scores, -xp.inf)
    return scores
