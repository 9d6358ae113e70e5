"""Solutions of lesson 14, decoding."""

import heapq
import math
from collections import Counter

import numpy as np


def alpha_of_a_tie(log_p, length, other_log_p, other_length):
    """log P₁ / log P₂ = ((5 + n₁) / (5 + n₂))^α. Above this α the longer one wins."""
    return math.log(log_p / other_log_p) / math.log((5 + length) / (5 + other_length))


def nucleus(probabilities, p):
    order = np.argsort(-probabilities)
    falling = probabilities[order]
    before = np.cumsum(falling) - falling  # what the more probable words sum to
    kept = np.zeros_like(probabilities)
    inside = order[before < p]
    kept[inside] = probabilities[inside]
    return kept / kept.sum()


def exact_search(next_log_p, max_length):
    """Always continue the most probable prefix. The first finished one that comes out is the best:
    all others in the heap are less probable already, and can only become more so.
    """
    heap = [(0.0, ())]
    while heap:
        cost, prefix = heapq.heappop(heap)
        if prefix and prefix[-1] == 0:
            return prefix, -cost
        if len(prefix) < max_length:
            for word, log_p in enumerate(next_log_p(prefix)):
                heapq.heappush(heap, (cost - log_p, (*prefix, word)))
    raise ValueError(f"no sequence ends within max_length={max_length}")


def chrf(hypotheses, references):
    precisions, recalls = [], []
    for n in range(1, 7):
        matches = said = wanted = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours, theirs = _ngrams(hypothesis, n), _ngrams(reference, n)
            matches += (ours & theirs).total()
            said += ours.total()
            wanted += theirs.total()
        precisions.append(matches / said)
        recalls.append(matches / wanted)
    P, R = np.mean(precisions), np.mean(recalls)
    return 100 * 5 * P * R / (4 * P + R) if P + R else 0.0


def _ngrams(text, n):
    letters = "".join(text.split())
    return Counter(letters[i : i + n] for i in range(len(letters) - n + 1))
