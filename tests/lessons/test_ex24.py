"""Plausible wrong answers to exercise 24 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of, verdicts

SOLUTION = functions_in(solution_of("ex24"))


def weighed(gradients, counts):
    return sum(c * g for g, c in zip(gradients, counts, strict=True))


def into_the_first(gradients, counts):
    gradients[0] *= counts[0]
    return gradients[0]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda gradients, counts: np.mean(gradients, axis=0), "has to weigh more"),
        (lambda gradients, counts: sum(gradients), "a sum of means is too large"),
        (lambda *given: weighed(*given), "divide by the labels of the whole batch"),
        (lambda *given: weighed(*given) / len(given[1]), "not by the number of shards"),
        (lambda *given: weighed(*given) / sum(given[1]) / len(given[1]), "divide once"),
        (lambda gradients, counts: sum(gradients) / sum(counts), "index"),
        (into_the_first, "read-only"),
        (lambda gradients, counts: None, "is its `return` missing"),
    ],
)
def test_a_wrong_gradient_of_the_batch_is_told_why(answer, says):
    assert says in only_wrong("ex24", "from_own_means", from_own_means=answer)


def statistics(mean_of, square_of, divide_by=lambda rows, P: rows):
    """The answer with other means, distances to be squared, or numbers to divide by."""

    def shared_statistics(shards, all_reduce):
        rows, *sums = all_reduce([np.append(len(x), mean_of(x)) for x in shards])
        mean = np.array(sums) / divide_by(rows, len(shards))
        squares = all_reduce([(square_of(x, mean) ** 2).sum(axis=0) for x in shards])
        return mean, squares / rows

    return shared_statistics


def sums(x):
    return x.sum(axis=0)


def from_all(x, mean):
    return x - mean


def from_own(x, mean):
    return x - x.mean(axis=0)


def then(change):
    """The solution, with what it returns changed."""
    return lambda shards, all_reduce: change(*SOLUTION["shared_statistics"](shards, all_reduce))


def in_one_pass(shards, all_reduce):
    rows, *total = all_reduce([np.append(len(x), x.sum(axis=0)) for x in shards])
    squares = all_reduce([(x**2).sum(axis=0) for x in shards])
    mean = np.array(total) / rows
    return mean, squares / rows - mean**2


def of_own_variances(shards, all_reduce):
    mean, _ = SOLUTION["shared_statistics"](shards, lambda parts: sum(parts))
    return mean, all_reduce([x.var(axis=0) for x in shards]) / len(shards)


def who_counts_all_rows(shards, all_reduce):
    rows = sum(len(x) for x in shards)
    mean = all_reduce([x.sum(axis=0) for x in shards]) / rows
    return mean, all_reduce([((x - mean) ** 2).sum(axis=0) for x in shards]) / rows


def in_three(shards, all_reduce):
    rows = all_reduce([np.array([len(x)]) for x in shards])
    mean = all_reduce([x.sum(axis=0) for x in shards]) / rows
    return mean, all_reduce([((x - mean) ** 2).sum(axis=0) for x in shards]) / rows


def at_once(shards, all_reduce):
    parts = [np.concatenate([[len(x)], x.sum(axis=0), (x**2).sum(axis=0)]) for x in shards]
    rows, *total = all_reduce(parts)
    mean, squares = np.reshape(total, (2, -1)) / rows
    return mean, squares - mean**2


def of_all_rows(shards, all_reduce):
    rows = np.concatenate(shards)
    return rows.mean(axis=0), rows.var(axis=0)


def of_one_process(shards, all_reduce):
    return all_reduce(shards[0]), all_reduce(shards[0])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            statistics(lambda x: x.mean(axis=0), from_all, lambda rows, P: P),
            "a process with more rows weighs more",
        ),
        (statistics(sums, from_all, lambda rows, P: P), "not by their number"),
        (statistics(sums, from_all, lambda rows, P: 1), "divide by the rows of all processes"),
        (statistics(sums, from_own), "not from that of the process's own"),
        (of_own_variances, "the process's own; and divide by the rows of all"),
        (then(lambda mean, variance: (mean, variance * 12 / 11)), "not by one less"),
        (then(lambda mean, variance: (mean, variance * 12)), "divide by the rows of all"),
        (then(lambda mean, variance: (mean, np.sqrt(variance))), "not its root"),
        (then(lambda mean, variance: variance), "must return mean and variance"),
        (in_one_pass, "small difference of large numbers"),
        (who_counts_all_rows, "cannot count the rows of the others"),
        (in_three, "was called 3 times"),
        (at_once, "arrays of 11 numbers"),
        (of_all_rows, "was not called"),
        (of_one_process, "needs 3 arrays of one shape"),
    ],
)
def test_wrong_statistics_are_told_what_is_wrong(answer, says):
    assert says in only_wrong("ex24", "shared_statistics", shared_statistics=answer)


def test_statistics_from_those_of_each_process_are_right():
    def shared_statistics(shards, all_reduce):
        rows, *total = all_reduce([np.append(len(x), x.sum(axis=0)) for x in shards])
        mean = np.array(total) / rows
        parts = [len(x) * (x.var(axis=0) + (x.mean(axis=0) - mean) ** 2) for x in shards]
        return mean, all_reduce(parts) / rows

    found = verdicts("ex24", shared_statistics=shared_statistics)
    assert found["shared_statistics"].status == "right"


def ring(sends, direction=-1, receives=None):
    """The answer that sends other chunks, or the other way."""

    def ring_round(p, r, P):
        to, source = (p + direction) % P, (p - direction) % P
        arrives = (receives or sends)(source if receives is None else p, r, P) % P
        return to, sends(p, r, P) % P, source, arrives

    return ring_round


def lost_in_the_second_half(p, r, P):
    return p + r + 1 if r < P - 1 else p + r + 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ring(lambda p, r, P: p - r, direction=1), "as in the lesson; here it sends to 2"),
        (ring(lambda p, r, P: p + r), "process 0 has chunk 2 of the sum and should have chunk 0"),
        (ring(lambda p, r, P: p + r + 2), "process 0 has chunk 1 of the sum"),
        (ring(lambda p, r, P: p + 1 + r, receives=lambda p, r, P: p + r), "expects chunk"),
        (ring(lambda p, r, P: p - r), "process 0 has no chunk of the sum"),
        (ring(lambda p, r, P: 0), "another chunk is sent on"),
        (ring(lost_in_the_second_half), "lacks chunk"),
        (lambda p, r, P: (p - 1, p + r + 1, p + 1, p + r + 2), "take them modulo P"),
        (lambda p, r, P: SOLUTION["ring_round"](p, r, P)[:2], "four whole numbers"),
        (lambda p, r, P: (0.5, 0, 0, 0), "four whole numbers; it returned (0.5, 0, 0, 0)"),
        (lambda p, r, P: (p, 0, (p + 1) % P, 0), "the process that 0 sends to"),
        (lambda p, r, P: ((p - 1) % P, 0, (p - 1) % P, 0), "the process that 0 receives from"),
    ],
)
def test_a_ring_that_turns_wrongly_is_told_where(answer, says):
    assert says in only_wrong("ex24", "ring_round", ring_round=answer)


def test_a_ring_in_two_halves_of_their_own_is_right():
    def ring_round(p, r, P):
        half, r = divmod(r, P - 1)
        first = (p + 1 + r, p + 2 + r) if half == 0 else (p + r, p + r + 1)
        return [(p - 1) % P, first[0] % P, (p + 1) % P, first[1] % P]

    assert verdicts("ex24", ring_round=ring_round)["ring_round"].status == "right"


def doubling(gradients, send):
    """Whole gradients, log₂ P times: as few rounds, and more numbers."""
    P, distance = len(gradients), 1
    held = [gradient.copy() for gradient in gradients]
    while distance < P:
        received = [send(p ^ distance, p, held[p ^ distance]) for p in range(P)]
        held = [mine + theirs for mine, theirs in zip(held, received, strict=True)]
        distance *= 2
    return held


def around_the_ring(gradients, send):
    P = len(gradients)
    held = [np.array_split(gradient.copy(), P) for gradient in gradients]
    for r in range(2 * (P - 1)):
        received = [send(p - 1 if p else P - 1, p, held[p - 1][(p - 1 - r) % P]) for p in range(P)]
        for p in range(P):
            chunk = held[p][(p - 1 - r) % P]
            chunk[:] = received[p] + (chunk if r < P - 1 else 0)
    return [np.concatenate(chunks) for chunks in held]


def without_the_way_back(gradients, send):
    """Each process has its own part of the sum, and of the others what it had."""
    total, P = sum(gradients), len(gradients)
    results = [gradient.copy() for gradient in gradients]
    for p, part in enumerate(np.array_split(np.arange(total.size), P)):
        results[p][part] = total[part]
    return results


def never_sent(gradients, send):
    return [sum(gradients)] * len(gradients)


def to_itself(gradients, send):
    return [send(p, p, gradient) for p, gradient in enumerate(gradients)]


def one_after_the_other(gradients, send):
    """Within a round the later processes send on what the earlier ones have just added."""
    P, distance = len(gradients), 1
    held = [gradient.copy() for gradient in gradients]
    while distance < P:
        for p in range(P):
            held[p] += send(p ^ distance, p, held[p ^ distance])
        distance *= 2
    return held


def both_keep_the_first_half(gradients, send):
    received = [send(1 - p, p, gradients[1 - p][12:]) for p in range(2)]
    return [
        np.append(mine[:12] + theirs, mine[12:])
        for mine, theirs in zip(gradients, received, strict=True)
    ]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (doubling, "only half of what is left is sent"),
        (around_the_ring, "process 0 has sent 14 times; 2 log₂ P is 6"),
        (without_the_way_back, "12 of 24 entries are not the sum"),
        (lambda gradients, send: [gradient.copy() for gradient in gradients], "its own gradient"),
        (never_sent, "has sent nothing"),
        (to_itself, "process 0 cannot send to 0"),
        (one_after_the_other, "in the same round"),
        (both_keep_the_first_half, "keep the same half"),
        (lambda gradients, send: sum(gradients), "must return a list of 2 arrays"),
        (lambda gradients, send: [send(0, 1, gradients)], "x must be a 1-D array"),
    ],
)
def test_a_wrong_all_reduce_is_told_why(answer, says):
    assert says in only_wrong("ex24", "halving_doubling", halving_doubling=answer)


def test_an_all_reduce_that_keeps_the_other_halves_is_right():
    """Any pieces will do, as long as they halve: here the even and the odd places."""

    def halving_doubling(gradients, send):
        P, n = len(gradients), gradients[0].size
        held, distances = [gradient.copy() for gradient in gradients], []
        places = [np.arange(n)] * P
        while 2 ** len(distances) < P:
            distances.append(2 ** len(distances))
            d = distances[-1]
            kept = [place[(p & d) // d :: 2] for p, place in enumerate(places)]
            received = [send(p ^ d, p, held[p ^ d][kept[p]]) for p in range(P)]
            for p in range(P):
                held[p][kept[p]] += received[p]
            places = kept
        for d in reversed(distances):
            received = [send(p ^ d, p, held[p ^ d][places[p ^ d]]) for p in range(P)]
            for p in range(P):
                held[p][places[p ^ d]] = received[p]
            places = [np.concatenate([places[p], places[p ^ d]]) for p in range(P)]
        return held

    found = verdicts("ex24", halving_doubling=halving_doubling)
    assert found["halving_doubling"].status == "right"
