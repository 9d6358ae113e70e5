"""The vocabulary: text survives the way into ids and back, and randomness repeats itself."""

import contextlib
import io
import re
import time
import unicodedata
from string import ascii_letters
from types import SimpleNamespace

import numpy as np
import pytest
import sentencepiece
from elsewhere import in_a_process
from hypothesis import given
from hypothesis import strategies as st

from minitransformer.data.text.characters import save_vocabulary
from minitransformer.data.text.vocabulary import (
    BOS,
    EOS,
    LONG,
    MASK,
    PAD,
    REPLACEMENT,
    UNK,
    Vocabulary,
    VocabularyError,
    normalized,
)

TEXTS = [
    "Ein kleiner Hund läuft über die grüne Wiese.",
    "A little dog runs across the green meadow.",
    "Die Hündin schläft; der Hund läuft.",
    "The dog sleeps; the other dog runs.",
    f"0123456789 {ascii_letters} ÄÖÜäöüß .,;:!?'\"()/<>-",
]
SIZE = 120
ALPHABET = "".join(sorted(set("".join(TEXTS)) - {" "}))


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.train(TEXTS, SIZE)


def test_the_special_ids_come_first(vocabulary):
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert vocabulary.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert len(vocabulary) == SIZE


@given(st.lists(st.text(ALPHABET, min_size=1), max_size=8))
def test_text_survives_the_way_there_and_back(vocabulary, words):
    text = " ".join(words)
    assert vocabulary.decode(vocabulary.encode(text)) == text


@pytest.mark.parametrize(("text", "expected"), [
    ("Hund hund HUND", "Hund hund HUND"),
    ("  two  blanks ", "two blanks"),
    ("no\u00a0break", "no break"),
    ("tab\tand\nline", "tab and line"),
    ("über", "über"),
    ("u\u0308ber", "über"),
    ("a ☃ b", f"a {REPLACEMENT} b"),
    ("☃☄", REPLACEMENT),
    ("x☃☄y", f"x{REPLACEMENT}y"),
    ("", ""),
    (" \u00a0\n", ""),
    ("sentencepiece's own \u2581 and \u2585", "sentencepiece's own and"),
    ("nul\0byte", "nul byte"),
    ("half a pair \ud83d", "half a pair ?"),
], ids=ascii)  # fmt: skip
def test_what_text_becomes(vocabulary, text, expected):
    assert vocabulary.decode(vocabulary.encode(text)) == expected


@pytest.mark.parametrize("text", ["</s>", "<s>", "<pad>", "a </s> b <pad>", "<unk>"])
def test_text_that_spells_a_special_piece_is_text(vocabulary, text):
    ids = vocabulary.encode(text)
    assert {PAD, UNK, BOS, EOS}.isdisjoint(ids)
    assert vocabulary.decode(ids) == text


def test_ten_thousand_characters_without_a_blank_survive(vocabulary):
    text = (ALPHABET * 200)[:10_000]
    assert vocabulary.decode(vocabulary.encode(text)) == text


@given(st.text(f"{ALPHABET[:20]}☃☄   ", max_size=400), st.integers(0, 12))
def test_the_first_ids_are_those_of_the_whole_text(vocabulary, text, most):
    assert vocabulary.encode(text, most) == vocabulary.encode(text)[:most]


@given(st.text(f"{ALPHABET[:20]}☃☄   ", max_size=150), st.integers(0, 12))
def test_no_text_that_may_have_few_ids_is_told_to_have_more(vocabulary, text, most):
    if vocabulary.surely_has_more(text, most):
        fewest = min(len(ids) for ids in vocabulary.encode_all([text] * 20, 0.3, seed=0))
        assert min(fewest, len(vocabulary.encode(text))) > most


def test_of_a_text_that_is_far_too_long_that_is_told(vocabulary):
    assert vocabulary.surely_has_more("a" * 1000, 10)
    assert vocabulary.surely_has_more("a " * 1000, 10)
    assert not vocabulary.surely_has_more("☃" * 1000, 1)  # a blank and one UNK
    assert not vocabulary.surely_has_more(" " * 1000, 0)
    for text in TEXTS:  # of which some pieces are words
        assert not vocabulary.surely_has_more(text, len(vocabulary.encode(text)))


@pytest.mark.parametrize("text", ["Hund " * 10**6, "Hund" * 10**6], ids=["text", "word"])
def test_of_a_line_of_megabytes_only_the_beginning_is_cut(vocabulary, text, monkeypatch):
    cut = []
    encode = vocabulary._processor.encode
    processor = SimpleNamespace(encode=lambda text: cut.append(len(text)) or encode(text))
    monkeypatch.setattr(vocabulary, "_processor", processor)
    assert vocabulary.encode(text, 10) == encode(text[:1000])[:10]
    assert max(cut) < 500


MARKS = "\u0301\u0323\u0327\u0308\u0f73\u0344\u0345"


@given(st.text(f"aeäâㅎ각\u1100\u1161\u11a8 {MARKS}", max_size=60))
def test_marks_put_in_order_make_the_same_text(text):
    repeated = "x\u0323\u0301 " * LONG + text
    assert normalized(repeated) == " ".join(unicodedata.normalize("NFC", repeated).split())


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0f73", "\u0344\u0323"], ids=ascii)
def test_100000_marks_on_a_letter_take_no_minute(vocabulary, marks):
    began = time.process_time()
    assert vocabulary.encode("a" + marks * 100_000)
    assert time.process_time() - began < 10


def test_a_word_of_the_training_text_takes_fewer_pieces_than_characters(vocabulary):
    assert len(vocabulary.encode("läuft")) < len("läuft")


@pytest.mark.parametrize(("ids", "ends"), [
    ([BOS, "Hund", EOS, PAD, PAD], "Hund"),
    (["Hund", EOS, "Hund"], "Hund"),
    ([PAD, "Hund", PAD, "Hund"], "Hund Hund"),
    ([EOS, "Hund"], ""),
    ([UNK], REPLACEMENT),
])  # fmt: skip
def test_decoding_stops_at_eos_and_passes_over_pad_and_bos(vocabulary, ids, ends):
    flat = [j for i in ids for j in (vocabulary.encode(i) if isinstance(i, str) else [i])]
    assert vocabulary.decode(flat) == ends
    assert vocabulary.decode(np.array(flat, np.int32)) == ends


# Learning


@pytest.mark.parametrize(("texts", "size", "rare"), [
    ([*TEXTS * 50, "żółć 漢字 ☃ \u0301"], 150, "żółć 漢字 ☃ \u0301"),
    (["kurz", "lang " * 1000 + "ź"], 16, "ź"),  # sentencepiece leaves out long texts by default
    (["kurz", "lang \u2585 ź"], 15, "ź"),
], ids=["once among many", "in a very long text", "beside a reserved sign"])  # fmt: skip
def test_every_character_of_the_texts_has_an_id(texts, size, rare):
    assert UNK not in Vocabulary.train(texts, size).encode(rare)


def test_the_same_texts_give_the_same_vocabulary(vocabulary):
    assert Vocabulary.train(iter(TEXTS), SIZE).model == vocabulary.model


@pytest.mark.parametrize(
    ("size", "words", "beyond"),
    [(8000, r"no more than (\d+) pieces, and 8000 ", 1), (20, r"need (\d+) .* asked for 20", -1)],
)
def test_a_size_that_cannot_be_is_refused_with_the_one_that_can(size, words, beyond):
    with pytest.raises(VocabularyError, match=words) as error:
        Vocabulary.train(TEXTS, size)
    possible = int(re.search(words, str(error.value))[1])
    assert len(Vocabulary.train(TEXTS, possible)) == possible
    with pytest.raises(VocabularyError):
        Vocabulary.train(TEXTS, possible + beyond)


def test_of_the_pieces_that_are_needed_the_mask_is_one():
    with pytest.raises(VocabularyError, match=r"one for each .* and 4 special ones"):
        Vocabulary.train(TEXTS, 20)
    with pytest.raises(VocabularyError, match=r"one for each .* and 5 special ones"):
        Vocabulary.train(TEXTS, 20, mask=True)


@pytest.mark.parametrize(("texts", "size", "words"), [
    *((texts, SIZE, "no text to learn a vocabulary from") for texts in ([], ["", " "])),
    (TEXTS, 0, "a vocabulary of 0 pieces"),
    (TEXTS, 3, "of 3 pieces has no room for its special ones; ask for more"),
])  # fmt: skip
def test_nothing_to_learn_is_refused(texts, size, words):
    with pytest.raises(VocabularyError, match=words):
        Vocabulary.train(texts, size)


def test_learning_and_failing_print_nothing(capfd):
    vocabulary = Vocabulary.train(TEXTS, SIZE)
    vocabulary.encode_all(TEXTS, dropout=0.1, seed=0)
    with pytest.raises(VocabularyError):
        Vocabulary.train(TEXTS, 8000)
    with pytest.raises(VocabularyError):
        Vocabulary(b"junk")
    assert capfd.readouterr() == ("", "")


# What is left out


@pytest.fixture(scope="module")
def masked():
    return Vocabulary.train([*TEXTS, "<mask> _-ung"], SIZE, mask=True)


def test_a_vocabulary_has_a_mask_if_it_is_asked_for(vocabulary, masked):
    assert masked.has_mask
    assert masked.pieces([MASK]) == ["<mask>"]
    assert len(masked) == SIZE
    assert masked.decode([BOS, MASK, *masked.encode("Hund"), EOS]) == "Hund"
    assert not vocabulary.has_mask
    with pytest.raises(VocabularyError, match="has no mask"):
        vocabulary.encode_with_gaps("ein ___")


def test_a_piece_of_text_that_spells_the_mask_is_none():
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=file,
        model_type="bpe",
        vocab_size=SIZE,
        character_coverage=1.0,
        user_defined_symbols=["<mask>"],  # which texts are encoded to
        unk_surface=REPLACEMENT,
        minloglevel=2,
        **dict(pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS),
    )
    other = Vocabulary(file.getvalue())
    assert other.pieces([MASK]) == ["<mask>"]
    assert not other.has_mask


@pytest.mark.parametrize("text", ["<mask>", "a <mask>.", "</s><mask>"])
def test_no_text_is_encoded_to_the_mask(masked, text):
    for ids in (masked.encode(text), *masked.encode_all([text] * 9, 0.3, seed=0)):
        assert MASK not in ids
        assert masked.decode(ids) == text
    assert MASK not in masked.encode_with_gaps(text)[0]


@pytest.mark.parametrize(("text", "before", "after", "begins"), [
    ("Hund ___.", "Hund", ".", True),
    ("Hund ___ .", "Hund", " .", True),
    ("Hund  \u00a0___ Hund", "Hund", " Hund", True),
    ("___", "", "", True),
    ("  _____________Hund", "", "Hund", True),
    ("Hund___Hund", "Hund", "Hund", False),
    ("-___", "-", "", False),
    ("__ ___ __", "__", " __", True),
], ids=ascii)  # fmt: skip
def test_a_gap_is_one_mask_with_the_blank_before_it(masked, text, before, after, begins):
    ids, where = masked.encode_with_gaps(text)
    assert where == [begins]
    at = ids.index(MASK)
    assert ids[:at] == masked.encode(before)
    around = masked.pieces(ids[at + 1 :])
    assert "".join(around) == after.replace(" ", "\u2581")


def test_gaps_of_a_word_are_told_apart(masked):
    ids, begins = masked.encode_with_gaps("___-___ Hund ___")
    assert ids.count(MASK) == 3
    assert begins == [True, False, True]
    assert ids[:3] == [MASK, ids[1], MASK]
    assert masked.pieces(ids[1:2]) == ["-"]


@given(st.text(f"{ALPHABET[:20]}☃☄   ", max_size=100))
def test_a_text_without_gaps_is_encoded_as_ever(masked, text):
    assert masked.encode_with_gaps(text) == (masked.encode(text), [])


# The file


def test_a_file_cut_off_anywhere_is_refused_or_complete_enough(tmp_path):
    whole = Vocabulary.train(["abab ab b"], 8)
    path = tmp_path / "vocabulary.model"
    complete = []
    for length in range(len(whole.model)):
        path.write_bytes(whole.model[:length])
        with contextlib.suppress(VocabularyError):
            complete.append(Vocabulary.load(path))
    assert len(complete) < 3  # where one of two empty tables of normalisation ends
    assert all(part.encode("b  abab\tc") == whole.encode("b  abab\tc") for part in complete)


def test_another_programs_model_is_refused(tmp_path):
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=file, vocab_size=100, minloglevel=2
    )
    path = tmp_path / "vocabulary.model"
    path.write_bytes(file.getvalue())
    with pytest.raises(VocabularyError, match=r"vocabulary\.model: this is no vocabulary"):
        Vocabulary.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        Vocabulary.load(tmp_path / "absent")


# BPE-dropout


def test_dropout_cuts_words_into_more_pieces_of_the_same_text(vocabulary):
    plain = vocabulary.encode_all(TEXTS)
    dropped = vocabulary.encode_all(TEXTS, dropout=0.5, seed=0)
    assert [vocabulary.decode(ids) for ids in dropped] == TEXTS
    assert sum(map(len, dropped)) > sum(map(len, plain))


def test_the_same_seed_cuts_the_same_way_and_another_one_differently(vocabulary):
    first, again, other = (vocabulary.encode_all(TEXTS, dropout=0.5, seed=s) for s in (1, 1, 2))
    assert first == again
    assert first != other
    rng = np.random.default_rng(1)
    begun, gone_on = (vocabulary.encode_all(TEXTS, dropout=0.5, seed=rng) for _ in range(2))
    assert first == begun != gone_on


def test_another_process_cuts_the_same_way(vocabulary, tmp_path):
    save_vocabulary(tmp_path / "vocabulary.model", vocabulary)
    code = (
        "import sys; from minitransformer.data.text.vocabulary import Vocabulary; "
        "v = Vocabulary.load(sys.argv[1]); print(v.encode_all(sys.argv[2:], dropout=0.5, seed=1))"
    )
    said = in_a_process(code, tmp_path / "vocabulary.model", *TEXTS, PYTHONUTF8="1")
    assert said == f"{vocabulary.encode_all(TEXTS, dropout=0.5, seed=1)}\n"


def test_dropout_keeps_empty_texts_and_their_places(vocabulary):
    ids = vocabulary.encode_all(["", "Hund", " ", "", "A dog", ""], dropout=0.5, seed=0)
    assert [vocabulary.decode(i) for i in ids] == ["", "Hund", "", "", "A dog", ""]
    assert vocabulary.encode_all(["", " "], dropout=0.5, seed=0) == [[], []]
    assert vocabulary.encode_all([], dropout=0.5, seed=0) == []


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5, float("nan")])
def test_a_dropout_that_is_no_probability_below_one_is_refused(vocabulary, dropout):
    with pytest.raises(ValueError, match="must lie in 0 <= dropout < 1"):
        vocabulary.encode_all(TEXTS, dropout=dropout, seed=0)


def test_dropout_without_a_seed_is_refused(vocabulary):
    with pytest.raises(ValueError, match="dropout needs a seed"):
        vocabulary.encode_all(TEXTS, dropout=0.1)
