"""Vocabularies of others: texts come back, and what stands for no text is none in a text."""

import json
import pickle

import pytest
from gguf_file import MERGES, PIECES, SPECIAL

from minitransformer.data.text.characters import load_vocabulary, save_vocabulary
from minitransformer.data.text.tokenizer import TokenizerVocabulary
from minitransformer.data.text.vocabulary import VocabularyError


def of_bytes(**how):
    options = dict(begins=[0], ends=[0, 2]) | how
    return TokenizerVocabulary.of_bytes(PIECES, MERGES, range(len(SPECIAL)), **options)


VOCABULARY = of_bytes()
TEXTS = ["", "a", "abc  a\n\tb", "é日本", "12 ab", "<|im_end|>", "\x00\ufffe", "x" * 5000]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:9])
def test_every_text_comes_back(text):
    ids = VOCABULARY.encode(text)
    assert VOCABULARY.decode(ids) == text
    assert not set(ids) & {0, 1, 2}  # none of what stands for no text, whatever its letters
    assert VOCABULARY.encode_all([text, "a"]) == [ids, VOCABULARY.encode("a")]


def test_half_a_surrogate_pair_is_a_question_mark():
    assert VOCABULARY.decode(VOCABULARY.encode("a\udce4b")) == "a?b"


@pytest.mark.parametrize(("text", "pieces"), [
    ("abc", ["abc"]),  # learned first, ab; then ab and c
    ("ab ab", ["ab", "Ġab"]),  # the blank and a before a and b
    ("a12", ["a", "12"]),
    ("12", ["12"]),
    ("é", ["Ã", "©"]),
])  # fmt: skip
def test_the_pair_that_was_learned_first_is_joined_first(text, pieces):
    assert VOCABULARY.pieces(VOCABULARY.encode(text)) == pieces


def test_digits_can_be_pieces_each():
    vocabulary = of_bytes(digits_alone=True)
    assert vocabulary.pieces(vocabulary.encode("12 ab")) == ["1", "2", "Ġab"]


def test_a_text_ends_where_one_of_its_ends_stands_and_others_are_nothing():
    ids = VOCABULARY.encode("ab")
    assert VOCABULARY.decode([1, *ids, 2, *ids]) == "ab"
    assert VOCABULARY.decode([*ids, 1, *ids, 0]) == "abab"
    assert VOCABULARY.never == (1,)
    assert VOCABULARY.special == {piece: i for i, piece in enumerate(SPECIAL)}


def test_it_is_kept_in_a_file_and_sent_to_processes_whole(tmp_path):
    path = tmp_path / "vocabulary.model"
    save_vocabulary(path, VOCABULARY)
    for other in (load_vocabulary(path), pickle.loads(pickle.dumps(VOCABULARY))):
        assert isinstance(other, TokenizerVocabulary)
        assert (len(other), other.model) == (len(PIECES), VOCABULARY.model)
        assert other.encode_all(TEXTS) == VOCABULARY.encode_all(TEXTS)
        assert (other.begins, other.ends) == ((0,), (0, 2))


def changed(**fields):
    return json.dumps(json.loads(VOCABULARY.model) | fields).encode()


def test_texts_are_neither_cut_nor_filled_up():
    fields = json.loads(VOCABULARY.model)["tokenizer"]
    how = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    filled = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None}
    filled |= {"pad_id": 0, "pad_type_id": 0, "pad_token": SPECIAL[0]}
    vocabulary = TokenizerVocabulary(fields | {"truncation": how, "padding": filled}, [0], [0, 2])
    assert vocabulary.encode_all(TEXTS) == VOCABULARY.encode_all(TEXTS)


WITH_A_HOLE = json.loads(VOCABULARY.model)["tokenizer"]
WITH_A_HOLE["model"]["vocab"]["abc"] = 10**6


@pytest.mark.parametrize("content", [
    VOCABULARY.model[:-20],
    changed(tokenizer={}),
    changed(tokenizer=WITH_A_HOLE),
    changed(tokenizer={"model": {"type": "Magic"}}),
    changed(ends=[len(PIECES)]),
    changed(begins=[-1]),
    changed(begins=["a"]),
    changed(ends=7),
    VOCABULARY.model.replace(b'"begins"', b'"starts"'),
], ids=lambda content: content[-20:].decode())  # fmt: skip
def test_a_damaged_file_is_refused(content, tmp_path):
    path = tmp_path / "vocabulary.model"
    path.write_bytes(content)
    with pytest.raises(
        VocabularyError,
        match=r"no tokenizer|of this tokenizer|with a tokenizer|cannot begin or end",
    ):
        load_vocabulary(path)
