import json

import pytest

from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.vocabulary import EOS, PAD, REPLACEMENT, UNK, VocabularyError


def test_the_same_texts_give_the_same_ids_in_whatever_order():
    one, other = (CharacterVocabulary.train(texts) for texts in (["ab", "c"], ["ca", "b"]))
    assert one.encode("abc") == other.encode("abc") == [4, 5, 6]
    assert one.model == other.model


def test_an_unknown_character_is_unk():
    vocabulary = CharacterVocabulary.train(["ab"])
    assert vocabulary.encode("aßb") == [4, UNK, 5]
    assert vocabulary.decode([4, UNK, 5]) == f"a{REPLACEMENT}b"


def test_text_ends_at_the_end_symbol():
    assert CharacterVocabulary("ab").decode([PAD, 4, EOS, 5]) == "a"


def test_pieces_can_be_looked_at():
    assert CharacterVocabulary("ab").pieces([3, 4, 5]) == ["</s>", "a", "b"]


def test_the_file_is_plain_json():
    assert json.loads(CharacterVocabulary("ab").model) == {"characters": "ab"}


def test_no_text_makes_no_vocabulary():
    with pytest.raises(VocabularyError, match="no text"):
        CharacterVocabulary.train(["", ""])
