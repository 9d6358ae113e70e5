"""Text becomes the same ids in the page as in the package, and ids the same text."""

import json
import math
import random

import pytest
from in_node import ask, corpus, node, small_model

from minitransformer.data.text.vocabulary import EOS
from minitransformer.explorer.page import FOLDER, explorer_page

ODD = [
    "",
    " \t\n ",
    "  two  blanks\u00a0and \u3000 others\u2028between\x85lines\x1c ",
    "zero\u200bwidth\ufeff",
    "Hund\ufeff",
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


def long_words(vocabulary, seed):
    """Words of hundreds of letters, of the pieces of one that come often or of a few letters."""
    rng = random.Random(seed)
    pieces = [piece.strip("\u2581") for piece in vocabulary.pieces(range(4, len(vocabulary)))]
    alphabets = [pieces, *(rng.choices(pieces, k=rng.randrange(1, 6)) for _ in range(40))]
    return ["".join(rng.choices(alphabet, k=rng.randrange(200))) for alphabet in alphabets]


def test_pieces_are_those_of_the_package(vocabulary, page):
    sentences = [text for pair in corpus()["validation"][:100] for text in pair]
    texts = [*sentences, *ODD, *invented(vocabulary, 0), *long_words(vocabulary, 1)]
    ids = ask(page, texts=texts)["ids"]
    wrong = [t for t, found in zip(texts, ids, strict=True) if found != vocabulary.encode(t)]
    assert wrong == []


PIECES = ["ab", "ba", "abab", "baba", "aa"]
VOCABULARIES = {  # module, class, and what it is made with
    "subwords": ("subwords.js", "Vocabulary", ([""] * 4 + PIECES, 40)),
    "scored": ("scored.js", "ScoredVocabulary", (
        [""] * 259 + ["a", "b", *PIECES], [0.0] * 261 + [-float(i) for i in range(len(PIECES))],
    )),
}  # fmt: skip


@pytest.mark.parametrize("vocabulary_of", VOCABULARIES.values(), ids=VOCABULARIES)
def test_a_word_of_n_letters_takes_n_log_n_comparisons(vocabulary_of):
    """Each of at most 3 n pairs is once put into the heap and once taken out of it."""
    module, name, made_with = vocabulary_of
    n = 20_000
    script = f"""
        import {{ Heap }} from {json.dumps((FOLDER / "heap.js").as_uri())};
        import {{ {name} }} from {json.dumps((FOLDER / module).as_uri())};
        const [counts, push] = [{{ pushed: 0, compared: 0 }}, Heap.prototype.push];
        Heap.prototype.push = function (item) {{
          const compare = this.compare;
          if (counts.pushed++ === 0) {{
            this.compare = (a, b) => (counts.compared++, compare(a, b));
          }}
          push.call(this, item);
        }};
        const vocabulary = new {name}(...{json.dumps(made_with)});
        vocabulary.split(Array.from({{ length: {n} }}, (_, i) => "abaab"[i % 5]).join(""));
        console.log(JSON.stringify(counts));
    """
    counts = json.loads(node("--input-type=module", "--eval", script))
    assert n / 2 < counts["pushed"] < 3 * n
    assert counts["pushed"] < counts["compared"] < 3 * n * 3 * math.log2(3 * n)


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
