"""Solutions of lesson 13, training for real."""

import numpy as np


def joined_perplexity(perplexities, counts):
    """Sums of NLL may be added, so the logarithms are, each times its number of tokens. A mean of
    perplexities is larger: it gives too much weight to the parts that the model is bad at.
    """
    return np.exp(np.average(np.log(perplexities), weights=counts))


def epoch_order(seed, epoch, count):
    """A tuple as the seed mixes both numbers, as the package does. With seed + epoch, a run of seed
    1 would meet in epoch 1 what the run of seed 2 met in epoch 0: two runs meant to be independent
    would see the same data, shifted by one epoch.
    """
    return np.random.default_rng((seed, epoch)).permutation(count)


def clip_to_norm(g, limit):
    norm = np.sqrt(g @ g)
    return g * (limit / max(norm, limit)), (g, norm, limit)


def clip_to_norm_backward(dy, cache):
    """Where it is clipped, y = c ĝ with ĝ = g / ‖g‖. From d‖g‖ = ĝ · dg follows

        dy = c (dg / ‖g‖ - g (ĝ · dg) / ‖g‖²) = c / ‖g‖ · (dg - ĝ (ĝ · dg)).

    The matrix is symmetric, so the backward multiplies by the same. What points along g is lost:
    a longer g is cut to the same y.
    """
    g, norm, limit = cache
    if norm <= limit:
        return dy.copy()
    unit = g / norm
    return limit / norm * (dy - unit * (unit @ dy))


def fewest_positions(lengths, count):
    """In the best batches the sentences stand in order of length. Were a in a batch with a longer
    longest sentence than that of b, and a shorter than b, they could change places: neither longest
    sentence would grow. So the last batch is a run of the longest sentences, i to n, and

        best[k][n] = min over i of  best[k - 1][i] + (n - i) · l_n.
    """
    longest = np.sort(lengths)
    size = np.arange(len(longest) + 1)
    best = np.full(len(longest) + 1, np.inf)
    best[0] = 0
    for _ in range(count):
        last = [
            (best[:n] + (n - size[:n]) * longest[n - 1]).min() for n in range(1, len(longest) + 1)
        ]
        best = np.array([np.inf, *last])
    return int(best[-1])
