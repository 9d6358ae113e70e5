"""Solutions of lesson 24, many machines."""

import numpy as np


def from_own_means(gradients, counts):
    """Shard k has divided by N_k in place of N, so its gradient is N / N_k times too large.

    The processes can do this without knowing each other's gradients: each multiplies its own by
    N_k / N, and the all-reduce adds.
    """
    N = sum(counts)
    return sum(gradient * (count / N) for gradient, count in zip(gradients, counts, strict=True))


def shared_statistics(shards, all_reduce):
    """First the mean, for which rows and sums are needed, and then the distances from it.

    One all-reduce of rows, Σ x and Σ x² would do in exact arithmetic. But mean(x²) − mean² is a
    small difference of large numbers (lesson 07).
    """
    rows, *sums = all_reduce([np.append(len(x), x.sum(axis=0)) for x in shards])
    mean = np.array(sums) / rows  # (D,)
    return mean, all_reduce([((x - mean) ** 2).sum(axis=0) for x in shards]) / rows


def ring_round(p, r, P):
    """In round P − 2 process p receives chunk p, and one chunk less in each round before.

    So it receives p + r + 2 and sends what it received in the round before, p + r + 1. The formula
    goes on through the second half: there each process first sends chunk p, which is complete, and
    then what has just arrived.
    """
    return (p - 1) % P, (p + r + 1) % P, (p + 1) % P, (p + r + 2) % P


def halving_doubling(gradients, send):
    """The pieces are n/2, n/4, …, n/P numbers long, together n (P − 1) / P, there and back.

    It takes 2 log₂ P (α) + 2 b (P − 1) / (P β): of the other three none is faster by this formula.
    But partners are far away from each other, so on a real network many messages may have to share
    a cable, where the ring needs only neighbours. And P has to be a power of 2.
    """
    P, n = len(gradients), gradients[0].size
    held = [gradient.copy() for gradient in gradients]
    start, length = [0] * P, n  # of the piece that each process is left with
    distances = [2**i for i in range(P.bit_length() - 1)]  # 1, 2, …, P / 2
    for distance in reversed(distances):
        length //= 2
        keeps = [start[p] + (length if p & distance else 0) for p in range(P)]
        received = [None] * P
        for p in range(P):
            gives = keeps[p ^ distance]  # both have had the same piece until now
            received[p ^ distance] = send(p, p ^ distance, held[p][gives : gives + length])
        for p in range(P):
            held[p][keeps[p] : keeps[p] + length] += received[p]
        start = keeps
    for distance in distances:
        received = [None] * P
        for p in range(P):
            piece = held[p][start[p] : start[p] + length]
            received[p ^ distance] = send(p, p ^ distance, piece)
        for p in range(P):
            other = start[p ^ distance]
            held[p][other : other + length] = received[p]
        start = [min(start[p], start[p ^ distance]) for p in range(P)]
        length *= 2
    return held
