"""Plausible wrong answers to exercise 13 are told what is wrong with them."""

from itertools import combinations

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of, verdicts

from minitransformer.course.exercises.parts import RIGHT

SOLUTION = functions_in(solution_of("ex13"))


@pytest.mark.parametrize(
    "answer",
    [
        lambda perplexities, counts: np.average(perplexities, weights=counts),
        lambda perplexities, counts: np.exp(np.log(perplexities).mean()),  # counts forgotten
    ],
)
def test_a_mean_of_perplexities_is_wrong(answer):
    said = only_wrong("ex13", "joined_perplexity", joined_perplexity=answer)
    assert "sum of NLL" in said


def test_seeds_that_are_added_repeat_each_others_epochs():
    def added(seed, epoch, count):
        return np.random.default_rng(seed + epoch).permutation(count)

    said = only_wrong("ex13", "epoch_order", epoch_order=added)
    assert "have the same order" in said


def test_an_order_that_depends_on_those_before_cannot_be_repeated():
    rng = np.random.default_rng(0)
    said = only_wrong("ex13", "epoch_order", epoch_order=lambda s, e, count: rng.permutation(count))
    assert "a resumed run has to get the same" in said


def test_an_order_drawn_with_repetition_is_wrong():
    def drawn(seed, epoch, count):
        return np.random.default_rng((seed, epoch)).integers(0, count, count)

    assert "each pair comes once" in only_wrong("ex13", "epoch_order", epoch_order=drawn)


def test_a_clip_that_takes_its_norm_for_a_constant_is_wrong():
    def scaled(dy, cache):
        _, norm, limit = cache
        return dy * (limit / max(norm, limit))

    assert "dg" in only_wrong("ex13", "clip_to_norm", clip_to_norm_backward=scaled)


def test_a_clip_that_also_lengthens_or_clips_each_entry_is_wrong():
    def lengthened(g, limit):
        y, cache = SOLUTION["clip_to_norm"](g, limit)
        return y * (limit / np.sqrt(y @ y)), cache

    def by_entry(g, limit):
        return np.clip(g, -limit, limit), SOLUTION["clip_to_norm"](g, limit)[1]

    for answer in (lengthened, by_entry):
        assert "y, ‖g‖" in only_wrong("ex13", "clip_to_norm", clip_to_norm=answer)


def test_batches_of_one_size_are_not_the_best():
    def equal(lengths, count):
        return sum(len(part) * part[-1] for part in np.array_split(np.sort(lengths), count))

    said = only_wrong("ex13", "fewest_positions", fewest_positions=equal)
    assert "different numbers of sentences" in said


def test_batches_in_the_order_given_are_wrong():
    def unsorted(lengths, count):
        cuts = combinations(range(1, len(lengths)), count - 1)
        return min(sum(len(part) * max(part) for part in np.split(lengths, cut)) for cut in cuts)

    assert "should be" in only_wrong("ex13", "fewest_positions", fewest_positions=unsorted)


def test_trying_all_cuts_is_right_too():
    def tried(lengths, count):
        lengths = np.sort(lengths)
        cuts = combinations(range(1, len(lengths)), count - 1)
        return min(sum(len(part) * part[-1] for part in np.split(lengths, cut)) for cut in cuts)

    assert verdicts("ex13", fewest_positions=tried)["fewest_positions"].status == RIGHT
