"""What the page makes of a text, going on with it or filling it, is what the package makes."""

import json
import math
import random
import unicodedata
from itertools import product

import numpy as np
import pytest
from in_node import ask, corpus, masked_vocabulary, node, small_model, small_vocabulary

from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.scored import ScoredVocabulary
from minitransformer.data.text.tokenizer import TokenizerVocabulary
from minitransformer.data.text.vocabulary import BLANK, EOS, GAP, MASK, Vocabulary
from minitransformer.decoding.sampling import sample, sampling_probabilities
from minitransformer.explorer.page import FOLDER, explorer_page
from minitransformer.inference.filler import Filler
from minitransformer.inference.generator import TextGenerator
from minitransformer.layers.softmax import softmax
from minitransformer.runs.checkpoint.file import CheckpointError

MOST = 40  # the context of the models
HOW = [
    dict(temperature=0.0),
    dict(temperature=1.0, seed=1),
    dict(temperature=0.7, top_k=5, seed=12345),
    dict(temperature=3.0, top_k=3, seed=2**32 - 1),
]
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
# Half of a pair of surrogates is no character.
WHOLE = [text for text in ODD if text.encode(errors="replace").decode() == text]


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


def characters(more=""):
    return CharacterVocabulary.train([*(text for pair in corpus()["train"] for text in pair), more])


def scored():
    """One that has pieces of text, of single bytes, and of the end of a character."""
    words = [piece.replace(BLANK, " ") for piece in small_vocabulary().pieces(range(4, 400))]
    pieces = [b"<unk>", b"<s>", b"</s>", *(b"<byte>" for _ in range(256)), b"\n", b"\xbc"]
    pieces += [word.encode() for word in words]
    return ScoredVocabulary(pieces, [-float(i % 97) for i in range(len(pieces))])


VOCABULARIES = {
    "subwords": small_vocabulary,
    "subwords and a mask": masked_vocabulary,
    "characters": characters,
    "characters and line ends": lambda: characters("\n"),
    "scored": scored,
}


@pytest.fixture(scope="module", params=VOCABULARIES.values(), ids=VOCABULARIES)
def generator(request):
    vocabulary = request.param()
    return TextGenerator(small_model(vocabulary, "language-model"), vocabulary)


def made(trained, **request):
    """What the page makes of the texts of a request, each a dict of text and choices."""
    return ask(explorer_page(trained.model, trained.vocabulary), **request)


def test_it_goes_on_as_the_generator_does(generator):
    prompts = ["", "Ein Mann", "Der Hund ist", ""]
    asked = [dict(text=prompt) | how for prompt, how in zip(prompts, HOW, strict=True)]
    found = made(generator, made=asked)["made"]
    for request, answer in zip(asked, found, strict=True):
        prompt, how = request["text"], {k: v for k, v in request.items() if k != "text"}
        said = generator.vocabulary.encode(prompt)
        assert answer["text"] == generator.generate(prompt, MOST - len(said), **how), request
        ids = [step["id"] for step in answer["steps"]]
        assert ids[: len(said)] == said
        assert [step["forced"] for step in answer["steps"]] == [
            i < len(said) for i in range(len(ids))
        ]
        ahead = [*generator.before(), *ids[:-1]]
        logits, _ = generator.model.forward(np.array([ahead]))
        for step, row in zip(answer["steps"], logits[0], strict=True):
            p, _ = softmax(row)
            assert step["probability"] == pytest.approx(p[step["id"]], rel=1e-9)
            never = generator.vocabulary.never
            drawn_with = how["temperature"], how.get("top_k", 0), 1.0, never
            chance = sampling_probabilities(row, *drawn_with)[step["id"]]
            assert step["chance"] == pytest.approx(chance, rel=1e-9)
            p[list(never)] = 0
            likeliest = np.argsort(-p, kind="stable")[:10]
            assert [c["id"] for c in step["candidates"]] == likeliest.tolist()
        rows = [np.log(step["probability"]) for step in answer["steps"]]
        assert answer["log_probabilities"] == pytest.approx(rows, rel=1e-9)


def test_it_goes_on_from_a_piece_that_is_forced(generator):
    a, b = generator.vocabulary.encode("Ein Mann")[:2]
    asked = dict(text="Der", forced=[dict(id=a), dict(id=b)])
    (answer,) = made(generator, made=[asked])["made"]
    ids = [step["id"] for step in answer["steps"]]
    assert ids[:2] == [a, b]
    assert [step["forced"] for step in answer["steps"]] == [True, True] + [False] * (len(ids) - 2)


def test_of_a_beginning_that_is_too_long_the_newer_half_is_read(generator):
    text = "Der Hund sieht den Mann. " * 20
    (answer,) = made(generator, made=[dict(text=text)])["made"]
    ids = generator.vocabulary.encode(text)[-MOST // 2 :]
    assert answer["cut"]
    assert (answer["start"], answer["prompt"]) == (ids[:1], ids[1:])
    logits, _ = generator.model.forward(np.array([ids]))
    row = logits[0, -1]
    row[list(generator.vocabulary.never)] = -np.inf
    assert answer["steps"][len(ids) - 1]["id"] == row.argmax()
    assert len(answer["steps"]) == MOST or answer["steps"][-1]["id"] in generator.vocabulary.ends


def draws_that_differ(folder=FOLDER):
    """The numbers of draws, and of seeds, at which modules in a folder differ from NumPy."""
    rng = np.random.default_rng(0)
    requests, expected = [], []
    for seed in range(40):
        logits = rng.normal(scale=3, size=30).round()  # some are equal
        how = dict(temperature=float(rng.choice([0, 0.3, 1, 2])), top_k=int(rng.choice([0, 1, 4])))
        uniform = np.random.default_rng(seed).random()
        requests.append(dict(logits=logits.tolist(), never=[0, 2], uniform=uniform) | how)
        p = sampling_probabilities(logits, **how, never=[0, 2])
        expected.append((p, sample(logits, np.random.default_rng(seed), **how, never=[0, 2])))
    assert len({drawn for _, drawn in expected}) > 10
    seeds = [0, 1, 42, 2**31, 2**32 - 1]
    page = explorer_page(small_model(small_vocabulary(), "language-model"), small_vocabulary())
    answer = ask(page, folder, draws=requests, seeds=seeds)
    draws = enumerate(zip(answer["draws"], expected, strict=True))
    numbers = zip(seeds, answer["uniform"], strict=True)
    return [
        i
        for i, (found, (p, drawn)) in draws
        if found["p"] != pytest.approx(p, rel=1e-12) or found["drawn"] != drawn
    ] + [seed for seed, found in numbers if found != np.random.default_rng(seed).random(5).tolist()]


def test_what_is_drawn_is_what_numpy_draws_and_numbers_of_a_seed_are_numpys_to_the_last_bit():
    assert draws_that_differ() == []


def test_texts_are_cut_and_put_together_as_the_package_does(generator):
    vocabulary, rng = generator.vocabulary, random.Random(0)
    odd = ODD if isinstance(vocabulary, Vocabulary) else WHOLE
    texts = [text for pair in corpus()["validation"][:50] for text in pair]
    texts += [
        *odd,
        *invented(small_vocabulary(), 1),
        *long_words(small_vocabulary(), 1),
        "ü€ 日x\n",
    ]
    if isinstance(vocabulary, ScoredVocabulary):  # with which the package takes its time
        texts = [text[:300] for text in texts]
    some = [*vocabulary.encode("日")[:1], *range(len(vocabulary))]
    ids = [rng.choices(some, k=rng.randrange(12)) for _ in range(300)]
    ids += map(list, product(some[:8], repeat=3))
    answer = made(generator, texts=texts, ids=ids)
    wrong = [t for t, i in zip(texts, answer["ids"], strict=True) if i != vocabulary.encode(t)]
    assert wrong == []
    wrong = [i for i, t in zip(ids, answer["texts"], strict=True) if t != vocabulary.decode(i)]
    assert wrong == []


PIECES = ["ab", "ba", "abab", "baba", "aa"]
MADE_WITH = {  # module, class, and what it is made with
    "subwords": ("subwords.js", "Vocabulary", ([""] * 4 + PIECES, 40)),
    "scored": ("scored.js", "ScoredVocabulary", (
        [""] * 259 + ["a", "b", *PIECES], [0.0] * 261 + [-float(i) for i in range(len(PIECES))],
    )),
}  # fmt: skip


@pytest.mark.parametrize("vocabulary_of", MADE_WITH.values(), ids=MADE_WITH)
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


def test_a_text_of_any_length_is_cut_to_what_the_model_takes(model, vocabulary):
    page = explorer_page(model, vocabulary)
    sources = ask(page, texts=ODD)["sources"]
    expected = [[*vocabulary.encode(text)[:39], EOS] for text in ODD]  # of 40 in all
    assert sources == expected
    asked = [dict(source=source, forced=[], off=[]) for source in sources]
    assert all(ask(page, translations=asked)["translations"])


def test_what_it_says_is_unknown_are_the_characters_that_the_package_does_not_know(generator):
    vocabulary = generator.vocabulary
    for text, found in zip(WHOLE, made(generator, texts=WHOLE)["unknown"], strict=True):
        if not isinstance(vocabulary, CharacterVocabulary):  # which takes a text as it is
            text = "".join(unicodedata.normalize("NFC", text).split())
        unknown = [c for c in dict.fromkeys(text) if vocabulary.unknown in vocabulary.encode(c)]
        assert found == ["⇥↵"["\t\n".index(c)] if c in "\t\n" else c for c in unknown]


@pytest.fixture(scope="module")
def filler():
    vocabulary = masked_vocabulary()
    return Filler(small_model(vocabulary, "masked-language-model"), vocabulary)


def with_gaps():
    rng = random.Random(0)
    texts = [
        "___",
        "Der ___ ist müde.",
        "a___ ___b ____ c______d",
        "___. ___",
        "日___日日 ___",
        "___" * 3,
    ]
    for german, _ in corpus()["validation"][:20]:
        words = german.split()[:12]
        words[rng.randrange(len(words))] = rng.choice(["___", "___,", "ge___", "un___lich"])
        texts.append(" ".join(words))
    return texts


def test_gaps_are_filled_as_the_filler_does(filler):
    texts = [text for text in with_gaps() if len(filler.vocabulary.encode_with_gaps(text)[0]) <= 38]
    assert len(texts) > 15
    found = made(filler, made=[dict(text=text) for text in texts])["made"]
    for text, answer in zip(texts, found, strict=True):
        filling = filler.fill(text, top=10)
        assert answer["text"] == filling.text
        for step, gap in zip(answer["steps"], filling.gaps, strict=True):
            pieces = filler.vocabulary.pieces([c["id"] for c in step["candidates"]])
            assert [piece.removeprefix(BLANK) for piece in pieces] == [piece for piece, _ in gap]
            shares = [c["probability"] for c in step["candidates"]]
            assert shares == pytest.approx([p for _, p in gap], rel=1e-9)
            assert answer["source"][step["position"]] == MASK
        rows = [np.log(step["probability"]) for step in answer["steps"]]
        assert answer["log_probabilities"] == pytest.approx(rows, rel=1e-9)


def test_a_text_with_gaps_is_cut_as_the_package_does(filler):
    texts = [
        *with_gaps(),
        *(f"{text[:60]}___{text[60:90]} ___" for text in ODD if text.isprintable()),
    ]
    found = made(filler, made=[dict(text=text) for text in texts])["made"]
    for text, answer in zip(texts, found, strict=True):
        ids, begins = filler.vocabulary.encode_with_gaps(text)
        assert answer["source"][1:-1] == ids, text
        assert answer["begins"] == begins
        assert answer["cut"] == (len(ids) > MOST - 2)
        assert answer["missing"] == ("note_cut" if answer["cut"] else None)


def test_another_piece_is_looked_at_in_one_gap_and_the_others_stay(filler):
    text = "Der ___ ist ___."
    (before,) = made(filler, made=[dict(text=text)])["made"]
    other = before["steps"][1]["candidates"][7]
    forced = [None, dict(id=other["id"])]
    (after,) = made(filler, made=[dict(text=text, forced=forced)])["made"]
    assert after["steps"][0] == before["steps"][0]
    assert after["steps"][1]["id"] == other["id"]
    assert after["steps"][1]["probability"] == other["probability"]
    assert after["log_probabilities"][1] == pytest.approx(np.log(other["probability"]), rel=1e-9)


def test_without_a_gap_there_is_nothing_to_fill(filler):
    (answer,) = made(filler, made=[dict(text="Der Hund ist müde.")])["made"]
    assert (answer["missing"], answer["steps"]) == ("note_empty", [])
    assert not GAP.search(answer["text"])


@pytest.mark.parametrize(("text", "missing"), [("The ___ is", "note_no_piece"), ("T___", None)])
def test_a_gap_in_which_no_piece_may_stand_is_not_filled(text, missing):
    smallest = Vocabulary.train(["The dog is red."] * 9, 18, mask=True)  # a piece a character
    filler = Filler(small_model(smallest, "masked-language-model"), smallest)
    (answer,) = made(filler, made=[dict(text=text)])["made"]
    assert (answer["missing"], answer["steps"] == []) == (missing, bool(missing))


def test_a_vocabulary_that_the_page_cannot_read_is_refused():
    foreign = TokenizerVocabulary.__new__(TokenizerVocabulary)
    foreign.pieces = lambda ids: ["x" for _ in ids]
    model = small_model(small_vocabulary(), "language-model")
    foreign.__class__ = type("Foreign", (TokenizerVocabulary,), {"__len__": lambda self: 400})
    with pytest.raises(CheckpointError, match="or pieces with scores as Llama's"):
        explorer_page(model, foreign)
