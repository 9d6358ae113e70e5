"""What every vocabulary promises, whatever its pieces; another kind wants a row of ``EACH``."""

import json
import pickle

import pytest
from gguf_file import PIECES
from gguf_file import VOCABULARY as OF_BYTES
from llama2c_file import ALL, ALL_SCORES

from minitransformer.data.text.characters import (
    CharacterVocabulary,
    load_vocabulary,
    save_vocabulary,
)
from minitransformer.data.text.scored import ScoredVocabulary
from minitransformer.data.text.vocabulary import Vocabulary, VocabularyError

TEXTS = ["", "a", "ab", "abc  a\n\tb", " a", "a ", "é日本", "12 ab", "<|im_end|>", "x² \x00\ufffe"]
TEXTS += ["x" * 5000]
SCORED = ScoredVocabulary(ALL, ALL_SCORES)
EACH = {
    "characters": CharacterVocabulary.train(TEXTS),
    "subwords": Vocabulary.train(["a dog runs", "a cat sleeps?"], 30),
    "scored": SCORED,
    "of bytes": OF_BYTES,
}
each = pytest.mark.parametrize("vocabulary", EACH.values(), ids=EACH)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:9]))
@pytest.mark.parametrize("kind", ["characters", "scored", "of bytes"])
def test_every_text_comes_back(kind, text):
    vocabulary = EACH[kind]
    ids = vocabulary.encode(text)
    assert vocabulary.decode(ids) == text
    assert not set(ids) & {*vocabulary.never, *vocabulary.begins, *vocabulary.ends}


@pytest.mark.parametrize("kind", ["subwords", "scored", "of bytes"])
def test_half_a_surrogate_pair_is_a_question_mark(kind):
    assert EACH[kind].decode(EACH[kind].encode("a\udce4a")) == "a?a"


@each
def test_all_texts_at_once_are_the_same_as_one_by_one(vocabulary):
    assert vocabulary.encode_all(TEXTS) == [vocabulary.encode(text) for text in TEXTS]
    assert vocabulary.encode_all([]) == []


@each
def test_it_is_kept_in_a_file_and_sent_to_processes_whole(vocabulary, tmp_path):
    path = tmp_path / "vocabulary.model"
    save_vocabulary(path, vocabulary)
    for other in (load_vocabulary(path), pickle.loads(pickle.dumps(vocabulary))):
        assert type(other) is type(vocabulary)
        assert (len(other), other.model) == (len(vocabulary), vocabulary.model)
        assert (other.begins, other.ends) == (vocabulary.begins, vocabulary.ends)
        assert other.encode_all(TEXTS) == vocabulary.encode_all(TEXTS)


def changed(**fields):
    return json.dumps(json.loads(OF_BYTES.model) | fields).encode()


WITH_A_HOLE = json.loads(OF_BYTES.model)["tokenizer"]
WITH_A_HOLE["model"]["vocab"]["abc"] = 10**6
DAMAGED = {  # contents by what is said of them
    "this is no vocabulary of minitransformer": [
        *(b"", b"PK\x03\x04 a zip file", b"{", b'{"a": 1}', b'{"characters": 3}'),
        *(b'{"characters": "aa"}', b'{"characters": ""}'),
    ],
    "vocabulary with scores": [
        SCORED.model[:-20],
        *(SCORED.model.replace(*harm) for harm in (
            (b'"scores"', b'"numbers"'), (b"-10.0", b"null"), (b"-10.0", b"NaN"),
            (b', "ab"', b""), (b'"ab"', b"7"),
        )),
    ],
    "no vocabulary with a tokenizer": [
        OF_BYTES.model[:-20], changed(ends=7), OF_BYTES.model.replace(b'"begins"', b'"starts"'),
    ],
    "this is no tokenizer": [
        *(changed(tokenizer=tokenizer) for tokenizer in ({}, {"model": {"type": "Magic"}})),
    ],
    "of this tokenizer are not 0, 1": [changed(tokenizer=WITH_A_HOLE)],
    "cannot begin or end": [
        changed(ends=[len(PIECES)]), changed(begins=[-1]), changed(begins=["a"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [(content, said) for said, contents in DAMAGED.items() for content in contents],
    ids=lambda given: ascii(given[-20:]),
)
def test_a_damaged_file_is_refused(content, said, tmp_path):
    path = tmp_path / "vocabulary.model"
    path.write_bytes(content)
    with pytest.raises(VocabularyError, match=f"{path.name}: .*{said}"):
        load_vocabulary(path)
