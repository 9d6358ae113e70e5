"""Exercise 13, training for real: how each part is checked."""

from itertools import product

import numpy as np

from minitransformer.course.exercises.parts import Part, expect, read_only, y_and_cache
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.pair import call


def check_joined_perplexity(joined_perplexity):
    rng = np.random.default_rng(13)
    for parts in (1, 4):
        nll, counts = rng.uniform(1, 6, parts), rng.integers(10, 1000, parts)
        expect(
            f"joined_perplexity of {parts} parts",
            call("joined_perplexity", joined_perplexity, read_only(np.exp(nll)), read_only(counts)),
            np.exp((nll * counts).sum() / counts.sum()),
            hint="it is exp(sum of NLL / sum of tokens)",
        )


def check_epoch_order(epoch_order):
    count = 50
    arguments = [(seed, epoch) for seed in (0, 1, 2) for epoch in (0, 1, 2)]
    orders = {}
    for seed, epoch in arguments:
        order = call("epoch_order", epoch_order, seed, epoch, count)
        try:
            orders[seed, epoch] = np.array(order, dtype=np.float64)
        except (TypeError, ValueError):
            raise CheckError(f"epoch_order returned {type(order).__name__}, no array") from None
        expect(
            f"epoch_order({seed}, {epoch}, {count}), sorted",
            np.sort(orders[seed, epoch], axis=None),
            np.arange(count),
            hint="each pair comes once",
        )
    for seed, epoch in reversed(arguments):  # as a resumed run might ask: nothing came before
        expect(
            f"epoch_order({seed}, {epoch}, {count}), asked for again,",
            call("epoch_order", epoch_order, seed, epoch, count),
            orders[seed, epoch],
            hint="a resumed run has to get the same",
        )
    for first, second in product(arguments, arguments):
        if first < second and np.array_equal(orders[first], orders[second]):
            raise CheckError(f"(seed, epoch) = {first} and {second} have the same order")


def check_clip_to_norm(forward, backward):
    rng = np.random.default_rng(13)
    g = rng.standard_normal(7)
    norm = np.sqrt(g @ g)
    for limit in (0.6 * norm, 1.7 * norm):
        y, _ = y_and_cache("clip_to_norm", forward, g, limit)
        expect(f"y, ‖g‖ = {norm:.2f}, limit = {limit:.2f}", y, g * min(1, limit / norm))
        report = check_pair(
            lambda g, limit=limit: forward(g, limit),
            lambda dy, cache: backward(dy, cache),
            (g,),
            names=("g",),
        )
        if not report.right:
            return report
    return report


def check_fewest_positions(fewest_positions):
    for lengths, count, least in (
        ([7, 3, 5], 1, 21),
        ([7, 3, 5], 3, 15),
        ([9, 2, 8, 3], 2, 24),  # [2 3] [8 9]
        ([2, 2, 2, 2, 9], 2, 17),  # [2 2 2 2] [9]: batches of unequal size
        ([1, 4, 5, 6, 6, 20], 3, 45),  # [1] [4 5 6 6] [20]
        ([1, 3, 4, 5, 9, 10, 30], 3, 70),  # [1 3 4 5] [9 10] [30]
    ):
        expect(
            f"fewest_positions({lengths}, {count})",
            call("fewest_positions", fewest_positions, read_only(lengths), count),
            least,
            hint="batches may have different numbers of sentences",
        )


PARTS = [
    Part(("joined_perplexity",), 10, check_joined_perplexity),
    Part(("epoch_order",), 25, check_epoch_order),
    Part(("clip_to_norm", "clip_to_norm_backward"), 45, check_clip_to_norm),
    Part(("fewest_positions",), 90, check_fewest_positions),
]
