import numpy as np


def entropy_of_target(vocabulary_size, smoothing):
    q = np.full(vocabulary_size, smoothing / vocabulary_size)
    q[0] += 1 - smoothing
    return np.exp(-(q * np.log(np.maximum(q, 1e-300))).sum())


LARGE = "±9000 || take no log of a probability"

WRONG = """
perplexity_at_the_floor
    entropy_of_target || counts the right word only
    + smoothing / vocabulary_size -> || counts the right word only
log_softmax
    z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        -> np.log(np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)) || $LARGE
    * dy.sum(axis=-1, keepdims=True) -> || sums to 1  # a target in place of dy
log_sum_exp_in_chunks
    lambda chunks: np.log(sum((np.exp(z).sum() for z in chunks))) || up to 9000
    * math.exp(peak - higher) -> || a larger score makes the sum so far smaller
    peak - higher -> higher - peak || of small scores
    continue -> pass || −∞ − (−∞) is NaN
    * math.exp(peak - higher) -> && max(peak, float(z.max())) -> float(z.max()) || of small scores
    -math.inf, 0.0 -> max(z.max() for z in chunks), 0.0 || raised ValueError  # twice
distillation
    u / temperature -> u || τ = 2.5
    (q * log_p) -> (np.exp(log_p) * log_q) || τ = 1
    q = np.exp(log_q) -> q, log_p = np.exp(log_q), np.log(np.exp(log_p)) || ±9000
    - q) * scale -> - q) * scale * len(q) || 3 is the batch size
    return dz, du -> return dz, None || WRONG  du: backward returned None
"""
