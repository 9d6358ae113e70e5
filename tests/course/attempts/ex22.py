import numpy as np
from exercise_files import functions_in, solution_of

SHARED = "weights / np.maximum(total, 1)"
attention_step = functions_in(solution_of("ex22"))["attention_step"]


def changing(query, key, value, kept):
    """One list for all who go on from it."""
    kept = [] if kept is None else kept
    kept.append((key, value))
    before = [np.concatenate(arrays, axis=1) for arrays in zip(*kept[:-1], strict=True)]
    y, _ = attention_step(query, key, value, before or None)
    return y, kept


WRONG = """
bits_per_character
    / np.log(2) -> || a bit is ln 2
    sum(len(piece) for piece in pieces) -> len(pieces) || for each piece
    -np.sum -> np.sum || positive
temperature_of
    if entropy < -> if entropy / np.log(2) < || in bits
    np.exp((low -> np.exp(-(low || divided by τ
    z = z - z.max() -> pass || the largest logit is subtracted first
    lambda logits, perplexity: 0.0 || must be a positive number; it is 0.0
    lambda logits, perplexity: None || is its `return` missing
induction_attention
    [:, :, 1:] = (same & earlier)[:, :, :-1] -> [:] = same & earlier || not at the token itself
    k=-1 -> k=0 || must not look ahead
    $SHARED -> weights || sum to 1
    np.maximum(total, 1) -> total || not 0 / 0
    $SHARED -> 1.0 * (weights > 0) * (np.cumsum(weights, axis=-1) == total) || share the weight
    $SHARED -> ($SHARED)[0] || should have (2, 7, 7)
attention_step
    if kept is not None -> if False || may be looked at, too
    z = np.where(np.arange(total) <= position[:, None], z, -np.inf) -> pass || those after it
    np.arange(total - new, total) -> np.arange(new) || not position 0
    changing || was kept changed
    lambda query, key, value, kept: value || must return y and what to keep
"""
