import pytest
from llama2c_file import ALL, ALL_SCORES, SPECIAL

from minitransformer.data.text.scored import ScoredVocabulary

VOCABULARY = ScoredVocabulary(ALL, ALL_SCORES)


def said(text):
    return VOCABULARY.pieces(VOCABULARY.encode(text))


@pytest.mark.parametrize(("text", "pieces"), [
    ("", []),
    ("a", [" a"]),
    ("ab", [" ab"]),  # first a and b, and then the blank and both
    ("abc", [" a", "bc"]),  # "bc" has the higher score than "ab", and leaves the a alone
    ("cab", [" ", "c", "ab"]),
    ("b  a", [" ", "b", " ", " a"]),  # " a" before two blanks
    ("é", [" ", "é"]),
    ("ü", [" ", "\\xc3", "\\xbc"]),  # which is no piece, and so its bytes
])  # fmt: skip
def test_of_two_neighbours_those_are_joined_whose_union_has_the_highest_score(text, pieces):
    assert said(text) == pieces


def test_of_equal_scores_the_first_neighbours_are_joined():
    pieces = [*SPECIAL, b"a", b"aa"]
    vocabulary = ScoredVocabulary(pieces, [0.0] * len(pieces))
    assert vocabulary.pieces(vocabulary.encode("aaa")) == ["\x20", "aa", "a"]


def test_a_piece_may_reach_from_one_word_into_the_next():
    pieces = [*SPECIAL, b" ", b"a", b"b", b"a b"]
    vocabulary = ScoredVocabulary(pieces, [0.0] * len(pieces))
    assert vocabulary.pieces(vocabulary.encode("a b")) == [" ", "a", " ", "b"]
    pieces[-1] = b"a "
    vocabulary = ScoredVocabulary([*pieces, b"a b"], [0.0] * (len(pieces) + 1))
    assert vocabulary.pieces(vocabulary.encode("a b")) == [" ", "a b"]


def test_a_text_ends_where_another_one_begins():
    ids = VOCABULARY.encode("ab")
    for end in (1, 2):
        assert VOCABULARY.decode([*ids, end, *ids]) == "ab"
    assert VOCABULARY.pieces([0, 1, 2, 13]) == ["<unk>", "<s>", "</s>", "\n"]
