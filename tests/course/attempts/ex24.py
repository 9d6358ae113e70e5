import numpy as np


def around_the_ring(gradients, send):
    P = len(gradients)
    held = [np.array_split(gradient.copy(), P) for gradient in gradients]
    for r in range(2 * (P - 1)):
        received = [send(p - 1 if p else P - 1, p, held[p - 1][(p - 1 - r) % P]) for p in range(P)]
        for p in range(P):
            chunk = held[p][(p - 1 - r) % P]
            chunk[:] = received[p] + (chunk if r < P - 1 else 0)
    return [np.concatenate(chunks) for chunks in held]


def in_two_halves_of_their_own(p, r, P):
    half, r = divmod(r, P - 1)
    first = (p + 1 + r, p + 2 + r) if half == 0 else (p + r, p + r + 1)
    return [(p - 1) % P, first[0] % P, (p + 1) % P, first[1] % P]


COUNTED = "all_reduce([np.append(len(x), x.sum(axis=0)) for x in shards])"
SUMMED = "all_reduce([x.sum(axis=0) for x in shards])"
MEAN = "np.array(sums) / rows"
SQUARES = "((x - mean) ** 2).sum(axis=0)"
KEEPS = "start[p] + (length if p & distance else 0)"
WHOLE = f"length //= 2 -> pass && {KEEPS} -> 0"  # gradients, as many times
TAKES = "held[p][gives : gives + length]"

WRONG = r"""
from_own_means
    count / N -> 1 / len(counts) || has to weigh more
    count / N -> 1 || a sum of means is too large
    count / N -> count || divide by the labels of the whole batch
    count / N -> count / len(counts) || not by the number of shards
    count / N -> count / N / len(counts) || divide once
    count / N -> 1 / N || index
    return -> gradients[0] *= counts[0]\n    return || read-only
    lambda gradients, counts: None || is its `return` missing
shared_statistics
    x.sum(axis=0)) for -> x.mean(axis=0)) for && $MEAN -> np.array(sums) / len(shards)
        || a process with more rows weighs more
    $MEAN -> np.array(sums) / len(shards) || not by their number
    $MEAN -> np.array(sums) || divide by the rows of all processes
    (x - mean) -> (x - x.mean(axis=0)) || not from that of the process's own
    $SQUARES for x in shards]) / rows -> x.var(axis=0) for x in shards]) / len(shards)
        || the process's own; and divide by the rows of all
    shards]) / rows -> shards]) / (rows - 1) || not by one less
    shards]) / rows -> shards]) || divide by the rows of all
    mean, all_reduce( -> mean, np.sqrt(all_reduce( && shards]) / rows -> shards]) / rows)
        || not its root
    return mean, -> return || must return mean and variance
    $SQUARES -> (x**2).sum(axis=0) && shards]) / rows -> shards]) / rows - mean**2
        || small difference of large numbers
    rows, *sums = $COUNTED -> rows, sums = sum(len(x) for x in shards), $SUMMED || of the others
    rows, *sums = $COUNTED -> rows, sums = all_reduce([np.array([len(x)]) for x in shards]), $SUMMED
        || was called 3 times
    x.sum(axis=0)) for -> [*x.sum(axis=0), *(x**2).sum(axis=0)]) for
        && $MEAN -> np.array(sums[:5]) / rows || arrays of 11 numbers
    $COUNTED -> [len(rows := np.concatenate(shards)), *rows.sum(axis=0)]
        && all_reduce([$SQUARES for x in shards]) -> 1 || was not called
    lambda shards, all_reduce: (all_reduce(shards[0]), all_reduce(shards[0])) || arrays of one shape
ring_round
    lambda p, r, P: ((p + 1) % P, (p - r) % P, (p - 1) % P, (p - 1 - r) % P) || here it sends to 2
    (p + r + 1) -> (p + r) && (p + r + 2) -> (p + r + 1) || 2 of the sum and should have chunk 0
    (p + r + 2) -> (p + r + 3) && (p + r + 1) -> (p + r + 2) || process 0 has chunk 1 of the sum
    (p + r + 2) -> (p + r) || expects chunk
    (p + r + 1) -> (p - r) && (p + r + 2) -> (p + 1 - r) || process 0 has no chunk of the sum
    (p + r + 1) % P -> 0 && (p + r + 2) % P -> 0 || another chunk is sent on
    return -> r += r >= P - 1\n    return || lacks chunk
    lambda p, r, P: (p - 1, p + r + 1, p + 1, p + r + 2) || take them modulo P
    , (p + 1) % P, (p + r + 2) % P -> || four whole numbers
    lambda p, r, P: (0.5, 0, 0, 0) || four whole numbers; it returned (0.5, 0, 0, 0)
    lambda p, r, P: (p, 0, (p + 1) % P, 0) || the process that 0 sends to
    lambda p, r, P: ((p - 1) % P, 0, (p - 1) % P, 0) || the process that 0 receives from
halving_doubling
    $WHOLE || only half of what is left is sent
    around_the_ring || process 0 has sent 14 times; 2 log₂ P is 6
    in distances: -> in []: || 12 of 24 entries are not the sum
    lambda gradients, send: [gradient.copy() for gradient in gradients] || its own gradient
    lambda gradients, send: [sum(gradients)] * len(gradients) || has sent nothing
    lambda gradients, send: [send(p, p, g) for p, g in enumerate(gradients)] || cannot send to 0
    $WHOLE && received[p ^ distance] = send(p, p ^ distance, $TAKES)
        -> held[p ^ distance] += send(p, p ^ distance, held[p])
        && held[p][keeps[p] : keeps[p] + length] += received[p] -> pass || in the same round
    $TAKES -> held[p][keeps[p] : keeps[p] + length] || keep the same half
    lambda gradients, send: sum(gradients) || must return a list of 2 arrays
    lambda gradients, send: [send(0, 1, gradients)] || x must be a 1-D array
"""
RIGHT = r"""
from_own_means
    N = sum(counts) -> N = sum(counts)\n    counts[:] = [n / N for n in counts]
        && (count / N) -> count
shared_statistics
    $SQUARES -> len(x) * (x.var(axis=0) + (x.mean(axis=0) - mean) ** 2)
ring_round
    in_two_halves_of_their_own
halving_doubling
    length if p & distance else 0 -> 0 if p & distance else length
    held = [gradient.copy() for gradient in gradients]
        -> order = np.r_[0:n:2, 1:n:2]\n    held = [gradient[order] for gradient in gradients]
        && return held -> return [total[np.argsort(order)] for total in held]
    length] = received[p] -> length], received[p][:] = received[p].copy(), 0  # it is its own
"""
