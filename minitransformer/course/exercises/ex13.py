"""Exercise 13, training for real: how each part is checked."""

from itertools import combinations

import numpy as np

from minitransformer.course.exercises.parts import check_gradients, expect, normal, part
from minitransformer.gradcheck import CheckError


@part(10)
def check_joined_perplexity(joined_perplexity):
    rng, hint = np.random.default_rng(13), "it is exp(sum of NLL / sum of tokens)"
    for parts in (1, 4):
        nll, counts = rng.uniform(1, 6, parts), rng.integers(10, 1000, parts)
        given = joined_perplexity(np.exp(nll), counts)
        expected = np.exp((nll * counts).sum() / counts.sum())
        expect(f"joined_perplexity of {parts} parts", given, expected, hint)


@part(25)
def check_epoch_order(epoch_order):
    count = 50
    arguments = [(seed, epoch, count) for seed in (0, 1, 2) for epoch in (0, 1, 2)]
    orders = {}
    for asked in arguments:
        order = epoch_order(*asked)
        try:
            orders[asked] = np.array(order, dtype=np.float64)
        except (TypeError, ValueError):
            raise CheckError(f"epoch_order returned {type(order).__name__}, no array") from None
        in_order, what = np.sort(orders[asked], axis=None), f"epoch_order{asked}, sorted"
        expect(what, in_order, np.arange(count), "each pair comes once")
    hint = "a resumed run has to get the same"
    for asked in reversed(arguments):  # as a resumed run might ask: nothing came before
        again = epoch_order(*asked)
        expect(f"epoch_order{asked}, asked for again,", again, orders[asked], hint)
    for first, second in combinations(arguments, 2):
        if np.array_equal(orders[first], orders[second]):
            raise CheckError(f"(seed, epoch) = {first[:2]} and {second[:2]} have the same order")


@part(45)
def check_clip_to_norm(forward, backward):
    (g,) = normal(13, (7,))
    norm = float(np.sqrt(g @ g))
    for limit in (0.6 * norm, 1.7 * norm):
        y, _ = forward.y_and_cache(g, limit)
        expect(f"y, ‖g‖ = {norm:.2f}, limit = {limit:.2f}", y, g * min(1, limit / norm))
        report = check_gradients(forward, backward, (g, limit))
        if not report.right:
            return report
    return report


@part(90)
def check_fewest_positions(fewest_positions):
    hint = "batches may have different numbers of sentences"
    for lengths, count, least in (
        ([7, 3, 5], 1, 21),
        ([7, 3, 5], 3, 15),
        ([9, 2, 8, 3], 2, 24),  # [2 3] [8 9]
        ([2, 2, 2, 2, 9], 2, 17),  # [2 2 2 2] [9]: batches of unequal size
        ([1, 4, 5, 6, 6, 20], 3, 45),  # [1] [4 5 6 6] [20]
        ([1, 3, 4, 5, 9, 10, 30], 3, 70),  # [1 3 4 5] [9 10] [30]
    ):
        fewest_positions.expect((np.array(lengths), count), least, hint)
