"""Text as nobody writes it: what comes out is as documented, and no line is lost or added.

Each seed makes a few texts; ``--fuzz SECONDS`` tries seeds for so long.
"""

import io
import random
import unicodedata
from itertools import groupby

import pytest
from tiny_translator import captions, train_once

from minitransformer.commands.cli import main
from minitransformer.data.text.batches import encode_pairs
from minitransformer.data.text.corpus import CorpusError, clean_for_training, read_parallel
from minitransformer.data.text.vocabulary import BLANK, REPLACEMENT, RESERVED
from minitransformer.inference.translator import Translator

WORDS = sorted({word for pair in captions() for text in pair for word in text.split()})
PARTS = [
    lambda rng: rng.choice(WORDS),
    lambda rng: " ",
    lambda rng: rng.choice(["\t", "\r", "\v", "\f", "\x1c", "\x85", "\xa0", "\u2028", "\u3000"]),
    lambda rng: chr(rng.randrange(32)).replace("\n", ""),
    lambda rng: "".join(rng.choices("\u0301\u0308\u0323\u0327\u0345\u0f73\u3099", k=9)),
    lambda rng: rng.choice(
        ["a\u0308", "ä", "ﬁ", "\u212b", "\u2126", "ᾳ", "각", "\u1112\u1161\u11ab"]
    ),
    lambda rng: chr(rng.randrange(0xD800, 0xE000)),  # half a surrogate pair
    lambda rng: rng.choice("\u200b\u200d\u202e\u2066\u2069\ufeff\ufffd\ufffe\x7f"),
    lambda rng: chr(rng.randrange(0xE000, 0xF900)),  # private use
    lambda rng: chr(rng.randrange(0x110000)),  # mostly unassigned
    lambda rng: rng.choice(RESERVED),
    lambda rng: rng.choice(["<s>", "</s>", "<pad>", "<unk>", BLANK * 3]),
    lambda rng: rng.choice(["Hund", "\u0323\u0301", "☃", "\xa0", "x"]) * rng.randrange(3000),
]


def hostile_text(rng):
    return "".join(rng.choice(PARTS)(rng) for _ in range(rng.randrange(12))).replace("\n", "")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    return train_once(tmp_path_factory)


@pytest.fixture(scope="module")
def translator(run_folder):
    return Translator.load(run_folder, "cpu")


def documented(text, known):
    """What encoding and decoding makes of a text, said in another way."""
    text = "".join(" " if c in RESERVED else "?" if "\ud800" <= c <= "\udfff" else c for c in text)
    text = " ".join(unicodedata.normalize("NFC", text).split())
    runs = groupby(text, key=lambda c: c == " " or c in known)
    return "".join("".join(run) if is_known else REPLACEMENT for is_known, run in runs)


def test_text_survives_the_vocabulary_as_documented(translator, fuzz_cases):
    vocabulary = translator.vocabulary
    known = set("".join(vocabulary.pieces(range(4, len(vocabulary)))))
    for seed in fuzz_cases(150):
        text = hostile_text(random.Random(seed))
        ids = vocabulary.encode(text)
        assert vocabulary.decode(ids) == documented(text, known), seed
        assert vocabulary.encode(text, 20) == ids[:20], seed
        if len(text) < 500:  # more take long
            (dropped,) = vocabulary.encode_all([text], dropout=0.3, seed=seed)
            assert vocabulary.decode(dropped) == documented(text, known), seed
        kept, _ = encode_pairs(vocabulary, [(text, text)], 20)
        assert kept == ([(ids, ids)] if len(ids) < 20 else []), seed


def test_a_corpus_keeps_its_lines_or_is_refused_with_one(tmp_path, fuzz_cases):
    for seed in fuzz_cases(60):
        rng = random.Random(seed)
        texts = [hostile_text(rng) for _ in range(rng.randrange(1, 8))]
        lines = [text.encode(errors="surrogatepass") for text in texts]
        bad = [i for i, text in enumerate(texts, 1) if any("\ud800" <= c < "\ue000" for c in text)]
        path = tmp_path / "text"
        path.write_bytes(b"\n".join([*lines, b""]))
        if bad:
            with pytest.raises(CorpusError, match=f"line {bad[0]}: byte 0xed is not UTF-8"):
                read_parallel(path, path)
        else:
            pairs = read_parallel(path, path)
            texts = [text.removesuffix("\r") for text in texts]
            texts[0] = texts[0].removeprefix("\ufeff")
            assert pairs == list(zip(texts, texts, strict=True)), seed
        if len(bad) < 2 and any(text.strip() for i, text in enumerate(texts, 1) if i not in bad):
            _, report = clean_for_training(read_parallel(path, path, strict=False))
            assert (report.read, report.not_utf8) == (len(texts), bad), seed


def test_every_line_is_answered_by_a_line(run_folder, fuzz_cases, monkeypatch, capsys):
    for seed in fuzz_cases(12):
        rng = random.Random(seed)
        texts = [hostile_text(rng) for _ in range(9)]
        lines = b"".join(text.encode(errors="surrogatepass") + b"\n" for text in texts)
        bad = [i for i, text in enumerate(texts, 1) if any("\ud800" <= c < "\ue000" for c in text)]
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
        status = main(["translate", str(run_folder), "--beam-size", "1", "--device", "cpu"])
        out, err = capsys.readouterr()
        assert status == (1 if bad else 0), seed
        assert out.count("\n") == len(out.splitlines()) == 9, seed
        assert [i for i in range(1, 10) if f"text {i}: byte" in err] == bad, seed
