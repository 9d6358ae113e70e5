"""Solutions of lesson 04, softmax and cross-entropy."""

import math

import numpy as np


def perplexity_at_the_floor(vocabulary_size, smoothing):
    """At the floor p = q, so p_t = 1 − ε + ε/V, and exp(−log p_t) = 1 / p_t.

    For ε = 0.1 that is 1.11. A surer model has a lower perplexity, and a higher loss: from there on
    the two point in opposite directions.
    """
    return 1 / (1 - smoothing + smoothing / vocabulary_size)


def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    y = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    return y, y


def log_softmax_backward(dy, cache):
    """dz_u = Σ_v dy_v ([u = v] − p_u) = dy_u − p_u Σ_v dy_v. For dy = −q this is p − q."""
    y = cache
    return dy - np.exp(y) * dy.sum(axis=-1, keepdims=True)


def log_sum_exp_in_chunks(chunks):
    """Σ exp(z − old) = exp(new − old) Σ exp(z − new): the sum is multiplied by exp(old − new)."""
    peak, total = -math.inf, 0.0  # the sum so far is total · exp(peak)
    for z in chunks:
        higher = max(peak, float(z.max()))
        if higher == -math.inf:
            continue  # nothing allowed so far
        total = total * math.exp(peak - higher) + np.exp(z - higher).sum()
        peak = higher
    return peak + math.log(total)


def distillation(z, u, temperature):
    log_p, _ = log_softmax(z / temperature)
    log_q, _ = log_softmax(u / temperature)
    q = np.exp(log_q)
    return -(q * log_p).sum() / len(z), (log_p, q, temperature)


def distillation_backward(dloss, cache):
    """dz = (p − q) / τN. For u: dq_v = −log p_v / N, and then the softmax's backward.

    du_v is positive where −log p_v is above its mean under q: the teacher would please the pupil by
    saying less of what the pupil finds unlikely. So nobody trains the teacher by this loss.
    """
    log_p, q, temperature = cache
    scale = dloss / (len(q) * temperature)
    dz = (np.exp(log_p) - q) * scale
    dq = -log_p
    du = q * (dq - (q * dq).sum(axis=-1, keepdims=True)) * scale
    return dz, du
