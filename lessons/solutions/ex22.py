"""Solutions of lesson 22, a language model."""

import numpy as np


def bits_per_character(log_probabilities, pieces):
    """By the chain rule the sum is the logarithm of the probability of the whole text.

    So it is the sum that is divided, by the characters. The number of pieces does not matter.
    """
    nats = -np.sum(log_probabilities)
    return nats / np.log(2) / sum(len(piece) for piece in pieces)


def temperature_of(logits, perplexity):
    """The entropy grows with τ, from 0 to ln V, so halving an interval finds the place.

    We halve on the scale of log τ, as τ may be anything between 1e-6 and 1e6.
    """
    z = np.asarray(logits, dtype=np.float64)
    z = z - z.max()
    low, high = np.log(1e-6), np.log(1e6)
    for _ in range(100):
        middle = (low + high) / 2
        scaled = z / np.exp(middle)
        log_sum = np.log(np.exp(scaled).sum())
        entropy = log_sum - (np.exp(scaled - log_sum) * scaled).sum()  # −Σ p ln p
        if entropy < np.log(perplexity):
            low = middle
        else:
            high = middle
    return np.exp((low + high) / 2)


def induction_attention(ids):
    """s < t means s + 1 ≤ t: a position never looks ahead. It may look at itself, after "a a"."""
    same = ids[:, :, None] == ids[:, None, :]  # (B, T, T)
    earlier = np.tri(ids.shape[1], k=-1, dtype=bool)  # s < t
    weights = np.zeros(same.shape)
    weights[:, :, 1:] = (same & earlier)[:, :, :-1]  # s moves to s + 1
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.maximum(total, 1)


def attention_step(query, key, value, kept):
    """New row i is position S − t + i of the whole text: it may look at keys up to there.

    ``concatenate`` makes new arrays, so what was kept stays as it is. A faster cache writes into
    storage with room to grow, and has to be careful about who goes on from it.
    """
    if kept is not None:
        key = np.concatenate([kept[0], key], axis=1)  # (H, S, K)
        value = np.concatenate([kept[1], value], axis=1)
    new, total = query.shape[1], key.shape[1]
    position = np.arange(total - new, total)
    z = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])  # (H, t, S)
    z = np.where(np.arange(total) <= position[:, None], z, -np.inf)
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value, (key, value)
