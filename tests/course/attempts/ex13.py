from itertools import cycle

import numpy as np


def equal_sizes(lengths, count):
    return sum(len(part) * part[-1] for part in np.array_split(np.sort(lengths), count))


calls = cycle(range(9))  # for as many seeds and epochs as are asked for

WRONG = """
joined_perplexity
    lambda perplexities, counts: np.average(perplexities, weights=counts) || sum of NLL
    , weights=counts -> || sum of NLL
epoch_order
    ((seed, epoch)) -> (seed + epoch) || have the same order
    lambda seed, epoch, count: np.random.default_rng(next(calls)).permutation(count)
        || a resumed run has to get the same
    permutation(count) -> integers(0, count, count) || each pair comes once
clip_to_norm
    max(norm, limit) -> norm || y, ‖g‖
    g * (limit / max(norm, limit)) -> np.clip(g, -limit, limit) || y, ‖g‖
fewest_positions
    equal_sizes || different numbers of sentences
    np.sort(lengths) -> np.array(lengths) || should be
"""
