import numpy as np
import pytest

from minitransformer.data.text.labelled import words_of
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.inference.labeller import Labeller
from minitransformer.models.registry import new_model
from minitransformer.models.tagger import TaggerConfig


@pytest.fixture
def tagger(runs):
    return runs["tag"]


def test_each_word_stands_in_a_line_with_its_label_and_probability(tagger, said):
    lines = [line.split("\t") for line in said("tag", tagger, "the dog sleeps.").out.splitlines()]
    assert [line[:2] for line in lines] == [["the", "D"], ["dog", "N"], ["sleeps", "V"], [".", "S"]]
    assert all(0.25 < float(probability) <= 1 for *_, probability in lines)


def test_a_sentence_has_one_label(runs, said):
    for verb, label in (("runs", "fast"), ("sleeps", "slow")):
        text = f"a cat {verb} ."
        *found, probability = said("tag", runs["tag sentences"], text).out.split("\t")
        assert found == [text, label]
        assert 0.5 < float(probability) <= 1


def test_the_label_of_a_sentence_is_read_where_it_begins(monkeypatch):
    vocabulary = Vocabulary.train(["a dog runs in the park."] * 9, 30)
    sizes = dict(d_model=4, num_heads=1, num_layers=1)
    labels = dict(labels="fast slow", labels_of="sentences")
    config = TaggerConfig.of_vocabulary(len(vocabulary), **sizes, **labels)
    labeller = Labeller(new_model(config), vocabulary)

    def logits(ids):
        said = np.zeros((*ids.shape, 3), np.float32)
        said[:, 0, 2] = said[:, 1:, 1] = 1
        return said

    monkeypatch.setattr(labeller, "logits", logits)
    ((text, label, probability),) = labeller.label("a dog runs")
    assert (text, label) == ("a dog runs", "slow")
    assert probability == pytest.approx(np.e / (1 + np.e))


def test_blanks_in_a_text_do_not_matter(tagger, said):
    expected = said("tag", tagger, "the dog sleeps.").out
    assert said("tag", tagger, "--whole", "the", "dog", "sleeps.").out == expected
    assert said("tag", tagger, "  the\tdog  sleeps.\n").out == expected


def test_what_stands_there_is_what_the_model_says(tagger):
    labeller = Labeller.load(tagger, "cpu")
    text = "the cat, sleeps."
    said = labeller.label(text)
    assert [word for word, *_ in said] == [word for word, _ in words_of(text)]
    ids = [2, *labeller.vocabulary.encode(text), 3]
    logits, _ = labeller.model.forward([ids])
    rows = logits[0][:, 1:]
    assert said[0].label == labeller.model.config.names[rows[1].argmax()]


def test_words_beyond_the_context_have_no_label(tagger, said):
    shown = said("tag", tagger, "the dog runs. " * 10)
    lines = shown.out.splitlines()
    assert (len(lines), lines[-1]) == (40, ".")
    without = sum("\t" not in line for line in lines)
    assert f"the last {without} words have no label" in shown.err


def test_a_long_sentence_still_has_its_label(runs, said):
    assert "\t" in said("tag", runs["tag sentences"], "the dog runs . " * 100).out


@pytest.mark.parametrize(
    ("old", "new"), [("\tS\n", "\tX\n"), ("\tS\n", "\tV\n"), ("the\tD", "the\tA")]
)
def test_a_text_that_has_other_labels_now_gives_no_scores(old, new, tagger, refused):
    """The same ids would stand for others."""
    path = tagger.parent / "data"
    content = path.read_text(encoding="utf-8")
    path.write_text(content.replace(old, new), encoding="utf-8")
    try:
        error = refused("evaluate", tagger)
    finally:
        path.write_text(content, encoding="utf-8")
    assert f"{tagger}: the training data have changed: they are " in error


def test_evaluating_it_gives_a_line_for_each_label(tagger, said):
    shown = said("evaluate", tagger).out.splitlines()
    rows = [line.split() for line in shown if line[:2] in ("D ", "N ", "V ", "S ")]
    assert [row[0] for row in rows] == ["D", "N", "S", "V"]
    assert all(row[-1] == "3" for row in rows)
