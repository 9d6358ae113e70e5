"""Plausible wrong answers to exercise 05 are told what is wrong with them."""

import math
from itertools import pairwise

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex05"))


def last_one_wins(dx, ids, vocabulary_size):
    dweight = np.zeros((vocabulary_size, dx.shape[-1]))
    dweight[ids] += math.sqrt(dx.shape[-1]) * dx
    return dweight


@pytest.mark.parametrize(
    "answer", [last_one_wins, lambda *args: SOLUTION["scatter_by_product"](*args) / 2]
)
def test_a_scatter_that_loses_equal_ids_or_the_scale_is_told_so(answer):
    said = only_wrong("ex05", "scatter_by_product", scatter_by_product=answer)
    assert "factor √D, and for each id the sum" in said


def as_projection(dy, cache):
    x, weight, _ = cache
    return dy.reshape(-1, len(weight)).T @ x.reshape(-1, weight.shape[1])


def as_embedding(dy, cache):
    return SOLUTION["tied_bigram_backward"](dy, cache) - as_projection(dy, cache)


@pytest.mark.parametrize("answer", [as_projection, as_embedding])
def test_a_tied_gradient_with_one_use_forgotten_is_wrong(answer):
    said = only_wrong("ex05", "tied_bigram", tied_bigram_backward=answer)
    assert "WRONG  dweight" in said


def test_a_tied_bigram_without_its_scale_is_told_so():
    def unscaled(weight, ids):
        y, cache = SOLUTION["tied_bigram"](weight, ids)
        return y / 2, cache

    assert "√D · weight[ids]" in only_wrong("ex05", "tied_bigram", tied_bigram=unscaled)


def longest_first(word, vocabulary):
    pieces = []
    while word:
        end = next(n for n in range(len(word), 0, -1) if word[:n] in vocabulary)
        pieces.append(word[:end])
        word = word[end:]
    return pieces


def longest_last(word, vocabulary):
    reversed_pieces = {piece[::-1] for piece in vocabulary}
    return [piece[::-1] for piece in reversed(longest_first(word[::-1], reversed_pieces))]


def longest_anywhere(word, vocabulary):
    if not word:
        return []
    piece = max((piece for piece in vocabulary if piece in word), key=len)
    before, _, after = word.partition(piece)
    return [*longest_anywhere(before, vocabulary), piece, *longest_anywhere(after, vocabulary)]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (longest_first, "['abc', 'd', 'e']; 2 pieces are enough"),
        (longest_last, "2 pieces are enough"),
        (longest_anywhere, "2 pieces are enough"),
        (lambda word, vocabulary: list(word), "['a', 'b', 'c']; 2 pieces are enough"),
        (lambda word, vocabulary: [word], "does not make up the word of such pieces"),
        (lambda word, vocabulary: len(word), "expected a list of pieces"),
    ],
)
def test_a_greedy_cut_is_shown_a_shorter_one(answer, says):
    assert says in only_wrong("ex05", "fewest_pieces", fewest_pieces=answer)


def probabilities(chance, by=sorted):
    """The solution with another chance for merge number k of n, or another order of the merges."""

    def segmentation_probabilities(word, order, p):
        def after(pieces):
            unions = [left + right for left, right in pairwise(pieces)]
            possible = by((order[union], i) for i, union in enumerate(unions) if union in order)
            found = {pieces: p ** len(possible)}
            for k, (_, i) in enumerate(possible):
                merged = (*pieces[:i], unions[i], *pieces[i + 2 :])
                for result, value in after(merged).items():
                    share = chance(k, len(possible), p) * value
                    found[result] = found.get(result, 0) + share
            return found

        return after(tuple(word))

    return segmentation_probabilities


def right_chance(k, n, p):
    return p**k * (1 - p)


def test_the_tests_own_probabilities_are_right_without_a_flaw():
    with pytest.raises(AssertionError):
        only_wrong(
            "ex05",
            "segmentation_probabilities",
            segmentation_probabilities=probabilities(right_chance),
        )


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (probabilities(lambda k, n, p: (1 - p**n) / n), "tried in their order"),  # any, alike
        (probabilities(right_chance, by=list), "tried in their order"),  # from left to right
        (lambda word, order, p: {tuple(word): p, (word,): 1 - p}, "tried in their order"),
        (lambda word, order, p: {" ".join(word): 1.0}, "keys are tuples"),
        (lambda word, order, p: {("no",): 1.0}, "does not make up the word"),
    ],
)
def test_other_probabilities_are_told_which_word_they_fail_for(answer, says):
    said = only_wrong("ex05", "segmentation_probabilities", segmentation_probabilities=answer)
    assert says in said


def test_what_is_right_for_short_words_only_is_compared_with_draws():
    def short_only(word, order, p):
        found = SOLUTION["segmentation_probabilities"](word, order, p)
        return found if len(word) < 5 else {next(iter(found)): 1.0}

    said = only_wrong("ex05", "segmentation_probabilities", segmentation_probabilities=short_only)
    assert "of 20,000 draws it came" in said
