"""BPE-dropout: plain BPE without dropout, and with it exactly the paper's distribution."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitransformer.data.text.bpe_dropout import BPEDropout
from minitransformer.data.text.vocabulary import BLANK, EOS, UNK, Vocabulary

UNKNOWN = 99
IDS = {piece: 10 + i for i, piece in enumerate(["ab", "abc", "bc", "aba", "cab", "a", "b", "c"])}
PIECES = {i: piece for piece, i in IDS.items()}
TRAINED = Vocabulary.train(["anna bananen", "nanna an ab banne", "enna banana nenn"], 20)


@pytest.fixture
def dropout():
    return BPEDropout(IDS, UNKNOWN)


def cut(dropout, words, p=0.0, seed=0):
    """The words in pieces, as tuples of strings."""
    ids, counts = dropout(words, p, np.random.default_rng(seed))
    ends = np.cumsum([0, *counts])
    return [tuple(PIECES.get(i, "?") for i in ids[a:b].tolist()) for a, b in pairwise(ends)]


def distribution(pieces, p):
    """The probability of each outcome that Algorithm 1 of the paper gives from ``pieces`` on."""
    unions = [a + b for a, b in pairwise(pieces)]
    places = sorted(
        (i for i, u in enumerate(unions) if u in IDS), key=lambda i: (IDS[unions[i]], i)
    )
    outcomes = Counter({tuple(pieces): p ** len(places)})  # all are forbidden
    for skipped, i in enumerate(places):  # those before i are forbidden, and i is not
        merged = [*pieces[:i], unions[i], *pieces[i + 2 :]]
        for outcome, probability in distribution(merged, p).items():
            outcomes[outcome] += p**skipped * (1 - p) * probability
    return outcomes


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("word", ["ab", "abab", "abcab", "cabcaba"])
def test_outcomes_are_as_frequent_as_the_papers_algorithm_makes_them(dropout, word, p):
    draws = 40_000
    expected = distribution(list(word), p)
    assert sum(expected.values()) == pytest.approx(1)
    found = Counter(cut(dropout, [word] * draws, p))
    assert found.keys() <= expected.keys()
    for outcome, probability in expected.items():
        deviation = (probability * (1 - probability) / draws) ** 0.5
        assert abs(found[outcome] / draws - probability) <= 4.5 * deviation


@given(st.lists(st.text("abcne☃", min_size=1, max_size=30), max_size=20))
def test_without_dropout_it_is_the_bpe_of_sentencepiece(words):
    known = range(EOS + 1, len(TRAINED))
    dropout = BPEDropout(dict(zip(TRAINED.pieces(known), known, strict=True)), UNK)
    ids, _ = dropout([BLANK + word for word in words], 0.0, np.random.default_rng(0))
    assert ids.tolist() == TRAINED.encode(" ".join(words))


@pytest.mark.parametrize(("word", "pieces"), [
    ("abc", ("abc",)),  # ab is older than bc
    ("bca", ("bc", "a")),
    ("abab", ("ab", "ab")),  # no union of these is a piece
    ("caba", ("c", "aba")),  # after ab, aba is older than cab
    ("bbcc", ("b", "bc", "c")),
    ("a", ("a",)),
    ("x", ("?",)),
    ("axb", ("a", "?", "b")),
    ("xxaxxx", ("?", "a", "?")),
    ("abc" * 50, ("abc",) * 50),
])  # fmt: skip
def test_without_dropout_the_oldest_piece_is_merged_first(dropout, word, pieces):
    assert cut(dropout, [word]) == [pieces]


@given(st.lists(st.text("abc", min_size=1, max_size=12), max_size=30), st.floats(0, 0.9))
def test_words_come_back_in_their_order_whatever_their_lengths(words, p):
    assert ["".join(pieces) for pieces in cut(BPEDropout(IDS, UNKNOWN), words, p)] == words


def test_the_same_word_is_cut_in_different_ways_at_once(dropout):
    assert len(set(cut(dropout, ["abcab"] * 50, p=0.5))) > 3


def test_no_words_make_no_pieces(dropout):
    ids, counts = dropout([], 0.5, np.random.default_rng(0))
    assert len(ids) == len(counts) == 0
