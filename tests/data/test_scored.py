import pickle

import pytest
from llama2c_file import ALL, ALL_SCORES, SPECIAL

from minitransformer.data.text.characters import load_vocabulary, save_vocabulary
from minitransformer.data.text.scored import ScoredVocabulary
from minitransformer.data.text.vocabulary import VocabularyError

VOCABULARY = ScoredVocabulary(ALL, ALL_SCORES)
TEXTS = ["", "a", "ab", "abc", "b  a", " a", "a ", "é", "日本 a", "a\nb\t", "x" * 50, "\x00\x07"]


def said(text):
    return VOCABULARY.pieces(VOCABULARY.encode(text))


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_comes_back(text):
    assert VOCABULARY.decode(VOCABULARY.encode(text)) == text


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


def test_half_a_surrogate_pair_is_a_question_mark():
    assert VOCABULARY.decode(VOCABULARY.encode("a\ud800b")) == "a?b"


def test_a_text_ends_where_another_one_begins():
    ids = VOCABULARY.encode("ab")
    for end in (1, 2):
        assert VOCABULARY.decode([*ids, end, *ids]) == "ab"
    assert VOCABULARY.pieces([0, 1, 2, 13]) == ["<unk>", "<s>", "</s>", "\n"]


def test_it_is_kept_in_a_file_and_sent_to_processes_whole(tmp_path):
    path = tmp_path / "vocabulary.model"
    save_vocabulary(path, VOCABULARY)
    for other in (load_vocabulary(path), pickle.loads(pickle.dumps(VOCABULARY))):
        assert isinstance(other, ScoredVocabulary)
        assert other.model == VOCABULARY.model
        assert other.encode_all(TEXTS) == VOCABULARY.encode_all(TEXTS)


@pytest.mark.parametrize("harm", [
    lambda content: content[:-20],
    lambda content: content.replace(b'"scores"', b'"numbers"'),
    lambda content: content.replace(b"-10.0", b"null"),
    lambda content: content.replace(b"-10.0", b"NaN"),
    lambda content: content.replace(b', "ab"', b""),
    lambda content: content.replace(b'"ab"', b"7"),
])  # fmt: skip
def test_a_damaged_file_is_refused(harm, tmp_path):
    path = tmp_path / "vocabulary.model"
    path.write_bytes(harm(VOCABULARY.model))
    with pytest.raises(VocabularyError, match="vocabulary with scores"):
        load_vocabulary(path)
