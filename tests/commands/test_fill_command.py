import copy

import numpy as np
import pytest

from minitransformer.core.errors import InputError
from minitransformer.data.text.vocabulary import BOS, EOS, MASK, UNK, Vocabulary, VocabularyError
from minitransformer.inference.filler import Filler


@pytest.fixture(scope="module")
def filler(runs):
    return Filler.load(runs["fill"], "cpu")


@pytest.fixture
def run(runs):
    return runs["fill"]


def test_a_gap_is_filled_by_what_stands_on_both_of_its_sides(filler):
    for text in ("a dog runs in the park.", "a cat sleeps in the park.", "two dogs run in the"):
        verb = text.split(" in ")[0].split()[-1]
        assert filler.fill(text.replace(verb, "___")).text == text
    assert filler.fill("a ___ runs in the park.").text == "a dog runs in the park."
    assert filler.fill("a ___ sleeps in the park.").text == "a cat sleeps in the park."
    assert filler.fill(f"a {'_' * 10_000} runs") == filler.fill("a ___ runs")  # of any length


def test_printed_are_the_text_and_the_likeliest_pieces(run, filler, said):
    out = said("fill", run, "a ___ sleeps in the park.", "--top", "3").out
    first, empty, *rows = out.rstrip("\n").split("\n")
    assert (first, empty) == ("a cat sleeps in the park.", "")
    expected = filler.fill("a ___ sleeps in the park.", top=3).gaps[0]
    assert rows == [f"{p:7.1%}  {piece}" for piece, p in expected]
    assert len(rows) == 3


def test_a_text_without_a_gap_is_named_and_the_others_are_filled(run, used):
    status, out, error = used("fill", "a ___ runs", "a dog runs", "two ___ run", run=run)
    assert status == 1
    assert error == (
        "minitransformer: text 2: there is no gap in 'a dog runs'; write ___ for what is left out\n"
    )
    _, first, _ = used("fill", "a ___ runs", run=run)
    _, third, _ = used("fill", "two ___ run", run=run)
    assert out == f"{first}\n\n\n{third}"


def test_of_several_gaps_each_has_its_list(run, said):
    out = said("fill", run, "a ___ sleeps in the ___.").out
    assert "\ngap 1\n" in out
    assert "\ngap 2\n" in out
    assert len(out.splitlines()) == 1 + 2 * (2 + 5)


def test_probabilities_are_those_of_the_model_among_the_pieces_that_may_stand_there(filler):
    model, vocabulary = filler.model, filler.vocabulary
    ids = [BOS, *vocabulary.encode("a"), MASK, *vocabulary.encode("runs"), EOS]
    logits, _ = model.forward(np.array([ids]))
    p = np.exp(logits[0, ids.index(MASK)].astype(float))
    pieces = vocabulary.pieces(range(len(vocabulary)))
    (gap,) = filler.fill("a ___ runs", top=1000).gaps
    words = [i for i, piece in enumerate(pieces) if piece.startswith("\u2581") and piece[1:]]
    assert dict(gap) == pytest.approx({pieces[i][1:]: p[i] / p[words].sum() for i in words})
    assert [p for _, p in gap] == sorted((p for _, p in gap), reverse=True)


def test_of_equally_likely_pieces_those_of_the_smaller_id_come_first(filler):
    alike = Filler(copy.deepcopy(filler.model), filler.vocabulary)
    weight = alike.model.output_projection.weight.data
    weight[0::2], weight[1::2] = 1, 2  # within each half all are equally likely
    (gap,) = alike.fill("a ___ runs", top=1000).gaps
    order = [(-p, filler.pieces.index(f"\u2581{piece}")) for piece, p in gap]
    assert order == sorted(order)
    assert len(order) > 16  # a sort that is not stable keeps the order of up to 16


@pytest.mark.parametrize("top", [0, -1, 2.5, "3", None])
def test_how_many_pieces_are_wanted_must_be_a_number_of_them(filler, top):
    with pytest.raises(InputError, match=f"top={top!r} must be a whole number, 1 or more"):
        filler.fill("a ___ runs", top)


def test_a_gap_within_a_word_takes_what_begins_none(filler):
    (gap,) = filler.fill("a dog___", top=1000).gaps
    pieces = filler.vocabulary.pieces(range(MASK + 1, len(filler.vocabulary)))
    assert {piece for piece, _ in gap} == {p for p in pieces if not p.startswith("\u2581")}
    assert filler.fill("a dog___").text == f"a dog{gap[0][0]}"
    assert sum(p for _, p in gap) == pytest.approx(1)


def test_all_that_stands_around_a_gap_stays_as_it_was_written(filler):
    text = "  a \u00a0 ____ <s> __  ☃.\n"
    filled = filler.fill(text).text
    before, after = text.split("____")
    assert filled.startswith(before)
    assert filled.endswith(after)
    assert filled == f"{before}{filler.fill(text).gaps[0][0][0]}{after}"


@pytest.mark.parametrize(("text", "says"), [
    *((text, "write ___ for what is left out") for text in ("a __ b", "<mask>")),
    *((f"a ___ {word * 60}", "takes 14 at once; give a") for word in ("dog ", "dog", "☃ ")),
    (f"{'a ' * 100_000}___", "pieces, and the model takes 14"),
    ("a " * 14 + "___", "the text has 15 pieces"),
], ids=range(7))  # fmt: skip
def test_a_text_without_a_gap_or_beyond_the_context_is_refused(text, says, filler):
    with pytest.raises(InputError, match=says):
        filler.fill(text)


def test_a_text_as_long_as_the_context_is_taken(filler):
    assert filler.vocabulary.encode("a" + " a" * 12 + " a") == filler.vocabulary.encode("a") * 14
    assert filler.fill("a " * 13 + "___").text.startswith("a " * 13)


def test_a_vocabulary_of_words_alone_fills_no_gap_within_one(filler, monkeypatch):
    monkeypatch.setitem(filler._may_stand, False, np.zeros(64, bool))
    with pytest.raises(ValueError, match="no piece that may stand in this gap"):
        filler.fill("a___")


def test_a_vocabulary_without_a_mask_is_refused(filler):
    other = Vocabulary.train(["a dog runs in the park."] * 9, 30)
    with pytest.raises(VocabularyError, match="has no mask"):
        Filler(filler.model, other)


def test_unknown_is_only_what_the_text_has(filler):
    assert filler.unknown("a ___ dog") == []
    assert UNK in filler.vocabulary.encode("ß")
