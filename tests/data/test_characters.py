import json

import pytest

from minitransformer.data.text.characters import (
    CharacterVocabulary,
    load_vocabulary,
    save_vocabulary,
)
from minitransformer.data.text.vocabulary import (
    EOS,
    PAD,
    REPLACEMENT,
    UNK,
    Vocabulary,
    VocabularyError,
)

TEXT = "def f(x):\n\treturn  x ** 2   # x²\n"


def test_a_text_comes_back_exactly_blanks_and_line_ends_too():
    vocabulary = CharacterVocabulary.train([TEXT])
    assert vocabulary.decode(vocabulary.encode(TEXT)) == TEXT
    assert len(vocabulary) == 4 + len(set(TEXT))


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


def test_a_file_brings_back_either_kind(tmp_path):
    path = tmp_path / "vocabulary.model"
    path.write_bytes(CharacterVocabulary.train([TEXT]).model)
    assert load_vocabulary(path).encode(TEXT) == CharacterVocabulary.train([TEXT]).encode(TEXT)
    subwords = Vocabulary.train(["a dog runs", "a cat sleeps"], 30)
    save_vocabulary(path, subwords)
    assert load_vocabulary(path).encode("a dog") == subwords.encode("a dog")


@pytest.mark.parametrize(
    "content", ['{"characters": 3}', '{"characters": "aa"}', '{"characters": ""}', "{", '{"a": 1}']
)
def test_a_damaged_file_is_refused(content, tmp_path):
    path = tmp_path / "vocabulary.model"
    path.write_text(content)
    with pytest.raises(VocabularyError, match="no vocabulary of minitransformer"):
        load_vocabulary(path)


def test_the_file_is_plain_json():
    assert json.loads(CharacterVocabulary("ab").model) == {"characters": "ab"}


def test_no_text_makes_no_vocabulary():
    with pytest.raises(VocabularyError, match="no text"):
        CharacterVocabulary.train(["", ""])
