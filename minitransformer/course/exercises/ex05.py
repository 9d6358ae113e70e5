"""Exercise 05, tokens and embeddings: how each part is checked."""

import math
from collections import Counter

import numpy as np

from minitransformer.course.exercises.parts import expect, expect_pair, normal, part
from minitransformer.data.text.bpe_dropout import BPEDropout
from minitransformer.gradcheck import CheckError
from minitransformer.layers.embedding import embedding, embedding_backward

V, D = 9, 4
IDS = np.array([[2, 7, 2], [5, 2, 7]])  # (B, T)


@part(10)
def check_scatter_by_product(scatter_by_product):
    dx, weight = normal(5, (*IDS.shape, D), (V, D))
    expected = embedding_backward(dx, embedding(IDS, weight)[1])
    dweight = scatter_by_product(dx, IDS, V)
    hint = "has it the factor √D, and for each id the sum over all places where it stands?"
    expect("dweight", dweight, expected, hint)


@part(25)
def check_tied_bigram(forward, backward):
    (weight,) = normal(5, (V, D))
    expected = math.sqrt(D) * weight[IDS] @ weight.T
    return expect_pair(forward, backward, (weight, IDS), expected, "y is √D · weight[ids] weightᵀ")


@part(45)
def check_fewest_pieces(fewest_pieces):
    for word, longer, fewest in (
        ("abc", {"ab"}, 2),
        ("abcde", {"abc", "ab", "cde"}, 2),  # not the longest first
        ("abcde", {"abc", "abcd", "cde", "de"}, 2),
        ("abcdef", {"bcde", "abc", "def"}, 2),  # not the longest anywhere
        ("aaaaaaaaaaa", {"aa", "aaaa"}, 4),
        ("xyz", set(), 3),
    ):
        what = f"fewest_pieces({word!r}, the characters and {sorted(longer)})"
        vocabulary = longer | set(word)
        pieces = fewest_pieces(word, frozenset(vocabulary))
        if not isinstance(pieces, list | tuple) or any(not isinstance(x, str) for x in pieces):
            raise CheckError(f"{what} is {pieces!r}; expected a list of pieces")
        if "".join(pieces) != word or not vocabulary.issuperset(pieces):
            raise CheckError(
                f"{what} is {pieces!r}, which does not make up the word of such pieces"
            )
        if len(pieces) != fewest:
            raise CheckError(f"{what} is {pieces!r}; {fewest} pieces are enough")


@part(45)
def check_segmentation_probabilities(segmentation_probabilities):
    def check(word, order, p, expected):
        what = f"segmentation_probabilities({word!r}, {order}, {p})"
        given = _probabilities(what, segmentation_probabilities, word, order, p)
        for pieces in sorted(expected.keys() | given.keys()):
            name = f"{what}: {' '.join(pieces)}"
            expect(name, given.get(pieces, 0.0), expected.get(pieces, 0.0), HINT)

    for p in (0.25, 0.5):
        check("ab", {"ab": 1}, p, {("a", "b"): p, ("ab",): 1 - p})
        once = {("ab", "c"): 1 - p, ("a", "bc"): p * (1 - p), ("a", "b", "c"): p**2}
        check("abc", {"ab": 1, "bc": 2}, p, once)
        check("abc", {"ab": 2, "bc": 1}, p, _mirrored(once))
        q = 1 - p
        twice = {
            ("abab",): q**3 * (1 + p),
            ("ab", "ab"): p * q**2 * (1 + p),
            ("ab", "a", "b"): p * q,
            ("a", "b", "ab"): p**2 * q,
            ("a", "ba", "b"): p**2 * q,
            ("a", "b", "a", "b"): p**3,
        }
        check("abab", {"ab": 1, "abab": 2, "ba": 3}, p, twice)
    check("abc", {"ab": 1, "bc": 2, "abc": 3}, 0.0, {("abc",): 1.0})
    check("x", {"ab": 1}, 0.5, {("x",): 1.0})
    _compare_with_draws(segmentation_probabilities)


HINT = "are merges tried in their order, each with its own chance, and anew at every step?"


def _compare_with_draws(segmentation_probabilities):
    """A longer word, against how often the package draws each way to write it."""
    word, p, draws = "sleeping", 0.3, 20_000
    merges = ["in", "ee", "sl", "ing", "ep", "slee", "eep", "ping", "sleeping"]
    order = {piece: number for number, piece in enumerate(merges, start=1)}
    names = [*sorted(set(word)), *merges]
    ids = {piece: number for number, piece in enumerate(names, start=1)}
    drawn, counts = BPEDropout(ids, 0)([word] * draws, p, np.random.default_rng(5))
    ends = np.cumsum(counts)
    ways = Counter(
        tuple(names[i - 1] for i in drawn[end - count : end])
        for end, count in zip(ends, counts, strict=True)
    )
    what = f"segmentation_probabilities({word!r}, …, {p})"
    given = _probabilities(what, segmentation_probabilities, word, order, p)
    for pieces, times in ways.most_common(12):
        probability = given.get(pieces, 0.0)
        error = math.sqrt(times) / draws
        if not abs(probability - times / draws) < 5 * error:
            raise CheckError(
                f"{what}: {' '.join(pieces)} has the probability {probability:.4f}; of {draws:,} "
                f"draws it came {times:,} times, {times / draws:.4f} ± {error:.4f}"
            )


def _probabilities(what, segmentation_probabilities, word, order, p):
    given = segmentation_probabilities(word, dict(order), p)
    if not isinstance(given, dict) or any(not isinstance(pieces, tuple) for pieces in given):
        raise CheckError(f"{what} must return a dictionary whose keys are tuples of pieces")
    wrong = [pieces for pieces in given if "".join(map(str, pieces)) != word]
    if wrong:
        raise CheckError(f"{what} has the key {wrong[0]!r}, which does not make up the word")
    return given


def _mirrored(expected):
    """The same for the mirror image of the word, spelled with the same letters."""
    swap = str.maketrans("ac", "ca")
    return {
        tuple(piece[::-1].translate(swap) for piece in reversed(pieces)): probability
        for pieces, probability in expected.items()
    }
