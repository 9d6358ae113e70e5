"""Vocabularies of others: texts come back, and what stands for no text is none in a text."""

import json

import pytest
from gguf_file import MERGES, PIECES, SPECIAL, VOCABULARY

from minitransformer.data.text.tokenizer import TokenizerVocabulary


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
    vocabulary = TokenizerVocabulary.of_bytes(PIECES, MERGES, range(3), digits_alone=True)
    assert vocabulary.pieces(vocabulary.encode("12 ab")) == ["1", "2", "Ġab"]


def test_a_text_ends_where_one_of_its_ends_stands_and_others_are_nothing():
    ids = VOCABULARY.encode("ab")
    assert VOCABULARY.decode([1, *ids, 2, *ids]) == "ab"
    assert VOCABULARY.decode([*ids, 1, *ids, 0]) == "abab"
    assert VOCABULARY.never == (1,)
    assert VOCABULARY.special == {piece: i for i, piece in enumerate(SPECIAL)}


def test_texts_are_neither_cut_nor_filled_up():
    fields = json.loads(VOCABULARY.model)["tokenizer"]
    how = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    filled = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None}
    filled |= {"pad_id": 0, "pad_type_id": 0, "pad_token": SPECIAL[0]}
    vocabulary = TokenizerVocabulary(fields | {"truncation": how, "padding": filled}, [0], [0, 2])
    texts = ["", "abc ab c", "x" * 50]
    assert vocabulary.encode_all(texts) == VOCABULARY.encode_all(texts)
