"""Files of labels, and which piece of a sentence the label of a word is read at."""

import gzip

import pytest

from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.labelled import first_pieces, read_labelled, surface, words_of
from minitransformer.data.text.toy import labelled_toy_corpus, toy_corpus
from minitransformer.data.text.vocabulary import BLANK, BOS, EOS, UNK, Vocabulary, normalized


@pytest.fixture(scope="module")
def german():
    return [german for german, _ in toy_corpus()["validation"]]


@pytest.fixture(scope="module")
def vocabulary(german):
    return Vocabulary.train(german, 150)


def file_of(tmp_path, content):
    path = tmp_path / "labels.tsv"
    path.write_bytes(content.encode())
    return path


def test_of_words_a_blank_line_ends_a_sentence(tmp_path):
    path = file_of(tmp_path, "\nDer\tD\nHund\tN\n.\tS\n\n\nEr\tP\n\n")
    assert read_labelled(path) == [("Der Hund .", "D N S"), ("Er", "P")]


def test_without_blank_lines_each_line_is_a_sentence_behind_its_label(tmp_path):
    expected = [("Der Hund schläft.", "present"), ("Er hat  geschlafen.", "perfect")]
    path = file_of(tmp_path, "".join(f"{label}\t{text}\r\n" for text, label in expected))
    assert read_labelled(path) == [(" ".join(text.split()), label) for text, label in expected]
    packed = tmp_path / "labels.gz"
    packed.write_bytes(gzip.compress(path.read_bytes() + b"\n \n"))  # blank ones at the end
    assert read_labelled(packed) == read_labelled(path)


def test_an_empty_file_has_no_sentences(tmp_path):
    assert read_labelled(file_of(tmp_path, "\n \n")) == []


@pytest.mark.parametrize(("content", "number", "why"), [
    ("Der\tD\n\nHund\n", 3, "has blank lines"),
    ("Der\tD\n\nHund\tN\tX\n", 3, "has blank lines"),
    ("Der\tD\n\nder Hund\tN\n", 3, "has blank lines"),
    ("Der\tD\n\nHund\t\n", 3, "has blank lines"),
    ("present\tDer Hund schläft.\n\npresent\tEr schläft.\n", 1, "has blank lines"),
    ("present\tEr schläft.\nEr schläft.\n", 2, "has no blank line"),
    ("present\tEr schläft.\n\t\nEr\tpresent\n", 1, "has blank lines"),
    ("present tense\tEr schläft.\n", 1, "has no blank line"),
    ("present\t \n", 1, "has no blank line"),
])  # fmt: skip
def test_a_line_of_another_kind_is_refused_by_its_number(content, number, why, tmp_path):
    path = file_of(tmp_path, content)
    with pytest.raises(CorpusError, match=f"labels.tsv, line {number}: .*{why}"):
        read_labelled(path)


def test_signs_before_and_behind_a_word_are_words():
    words = [word for word, _ in words_of("„Ja“, (z.B. 3.5 %)... E-Mail don't -")]
    assert words == [
        *("„", "Ja", "“", ",", "(", "z.B", ".", "3.5", "%", ")", ".", ".", "."),
        *("E-Mail", "don't", "-"),
    ]
    assert words_of("") == []


def test_words_begin_where_they_stand():
    text = normalized("  „Ja“, (u\u0308ber)   3.5!")
    assert all(text.startswith(word, start) for word, start in words_of(text))
    assert text.startswith("über", dict(words_of(text))["über"])


def test_the_words_of_the_corpus_are_those_with_labels_and_make_its_sentences(german):
    for text, (words, _) in zip(german, labelled_toy_corpus("case")["validation"], strict=True):
        assert [word for word, _ in words_of(text)] == words.split()
        assert surface(words.split()) == (text, [start for _, start in words_of(text)])


def test_signs_stand_as_people_write_them():
    text, starts = surface(["Sie", "(", "oder", "er", ")", "sagt", ":", "„", "Ja", "!"])
    assert text == "Sie (oder er) sagt: „Ja!"
    assert [text[start] for start in starts] == list("S(oe)s:„J!")


def test_a_word_is_read_at_the_piece_that_holds_its_first_character(german, vocabulary):
    """However many pieces it has, and whether a blank stands before it."""
    several = 0
    for text in german:
        words = words_of(text)
        ids, places = first_pieces(vocabulary, text, [start for _, start in words], 100)
        assert ids == [BOS, *vocabulary.encode(text), EOS]
        pieces = vocabulary.pieces(ids)
        for (word, _), place in zip(words, places, strict=True):
            piece = pieces[place].removeprefix(BLANK)
            assert piece
            assert word.startswith(piece)
            several += word != piece
        assert len(set(places)) == len(places)
    assert several > 100


def test_unknown_characters_shift_no_label(vocabulary):
    text = normalized("Der 犬犬 schläft, 犬 und Ñandu.")
    ids, places = first_pieces(vocabulary, text, [start for _, start in words_of(text)], 100)
    pieces = vocabulary.pieces(ids)
    assert pieces[places[0]].startswith(f"{BLANK}D")
    assert ids[places[1]] == ids[places[4]] == ids[places[6]] == UNK
    assert pieces[places[3]] == ","
    assert pieces[places[2]].startswith(f"{BLANK}s")
    assert pieces[places[7]] == "."


def test_words_beyond_the_context_are_read_nowhere(vocabulary):
    text = "Der Hund schläft."
    starts = [start for _, start in words_of(text)]
    whole, places = first_pieces(vocabulary, text, starts, 100)
    for most in range(2, len(whole) + 1):
        ids, cut = first_pieces(vocabulary, text, starts, most)
        assert len(ids) == most
        assert ids[0] == BOS
        assert ids[-1] == EOS
        assert cut == [place if place < most - 1 else None for place in places]


def test_of_a_very_long_text_only_the_beginning_is_cut_into_pieces(vocabulary, monkeypatch):
    short, long = (" ".join(["Der 犬 Hund schläft."] * number) for number in (20, 10**4))
    starts = [start for _, start in words_of(long)]
    ids, places = first_pieces(vocabulary, short, starts[: 5 * 20], 30)
    read, located = [], vocabulary.located
    monkeypatch.setattr(vocabulary, "located", lambda text: read.append(text) or located(text))
    assert first_pieces(vocabulary, long, starts, 30) == (ids, places + [None] * 5 * (10**4 - 20))
    assert len(read[0]) < len(short)


def test_words_within_one_piece_share_its_place():
    vocabulary = Vocabulary.train(["Er ... ... ... geht ...", "..."] * 20, 20)
    ids, places = first_pieces(vocabulary, "Er ...", [0, 3, 4, 5], 100)
    assert BLANK + "..." in vocabulary.pieces(ids)
    assert len(set(places[1:])) == 1
