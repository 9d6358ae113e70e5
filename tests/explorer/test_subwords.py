"""Text becomes the same ids in the page as in the package, and ids the same text."""

import random

import pytest
from in_node import ask, corpus, small_model

from minitransformer.data.text.vocabulary import EOS
from minitransformer.explorer.page import explorer_page

ODD = [
    "",
    " \t\n ",
    "  two  blanks\u00a0and \u3000 others\u2028between\x85lines\x1c ",
    "zero\u200bwidth\ufeff",
    "u\u0308ber U\u0308 und \u00fcber",
    "\u2581Hund \u2585 \0 a\u2581b",
    "日本語 日 本 x語y",
    "👩‍👩‍👧 🙂🙂 Hund🙂",
    "half a pair \ud83d and \ude00 of surrogates",
    "<s> </s> <unk> <pad>",
    "<script>alert(1)</script> & <b>",
    "Hund" * 2500,
    "Der Hund ist müde. " * 526,
    "a" * 10_000,
    "日" * 10_000,
    "a\u0301\u0323" * 3000,
]


@pytest.fixture(scope="module")
def page(vocabulary):
    return explorer_page(small_model(vocabulary), vocabulary)


def invented(vocabulary, seed):
    """Texts of pieces, their halves and characters that no piece has."""
    rng = random.Random(seed)
    parts = [*vocabulary.pieces(range(len(vocabulary))), *" \tßéÄ,.日🙂'\"<>&", "u\u0308"]
    return ["".join(rng.choices(parts, k=rng.randrange(1, 30))) for _ in range(300)]


def test_pieces_are_those_of_the_package(vocabulary, page):
    sentences = [text for pair in corpus()["validation"][:100] for text in pair]
    texts = [*sentences, *ODD, *invented(vocabulary, 0)]
    ids = ask(page, texts=texts)["ids"]
    wrong = [t for t, found in zip(texts, ids, strict=True) if found != vocabulary.encode(t)]
    assert wrong == []


def test_ids_are_decoded_as_the_package_does(vocabulary, page):
    rng = random.Random(0)
    blank = vocabulary.encode("日")[0]
    some = [0, 1, 2, 3, blank, *range(4, len(vocabulary))]
    ids = [rng.choices(some, k=rng.randrange(12)) for _ in range(300)]
    ids += [[i, j, k] for i in some[:8] for j in some[:8] for k in some[:8]]
    texts = ask(page, ids=ids)["texts"]
    wrong = [i for i, found in zip(ids, texts, strict=True) if found != vocabulary.decode(i)]
    assert wrong == []


def test_a_text_of_any_length_is_cut_to_what_the_model_takes(vocabulary, page):
    sources = ask(page, texts=ODD)["sources"]
    expected = [[*vocabulary.encode(text)[:39], EOS] for text in ODD]  # of 40 in all
    assert sources == expected
    asked = [dict(source=source, forced=[], off=[]) for source in sources]
    assert all(ask(page, translations=asked)["translations"])
