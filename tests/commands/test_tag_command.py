import json

import pytest

from minitransformer.commands.cli import main
from minitransformer.data.text.labelled import words_of
from minitransformer.inference.labeller import Labeller

PARTS = {"the": "D", "a": "D", "dog": "N", "cat": "N", "runs": "V", "sleeps": "V", ".": "S"}
SENTENCES = [
    f"{d} {n} {v} ." for d in ("the", "a") for n in ("dog", "cat") for v in ("runs", "sleeps")
]
WORDS = "".join(
    "".join(f"{word}\t{PARTS[word]}\n" for word in sentence.split()) + "\n"
    for sentence in SENTENCES * 4
)
WHOLE = "".join(f"{'fast' if 'runs' in s else 'slow'}\t{s}\n" for s in SENTENCES * 4)
SIZES = ["--d-model", "16", "--num-heads", "2", "--d-ff", "32", "--num-layers", "1"]
SIZES += ["--max-length", "16", "--epochs", "20", "--batch-tokens", "64", "--warmup-steps", "10"]
SIZES += ["--peak-learning-rate", "1e-2", "--dropout", "0", "--vocabulary-size", "32"]


def trained(folder, content):
    path = folder / "labels.tsv"
    path.write_text(content, encoding="utf-8")
    command = ["train", "tagger", "--corpus", "labelled", "--labelled", path]
    assert main([*map(str, [*command, "--run-folder", folder / "run"]), *SIZES]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("words"), WORDS)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("sentences"), WHOLE)


def said(capsys, *arguments):
    capsys.readouterr()
    assert main(["tag", *map(str, arguments)]) == 0
    return capsys.readouterr()


def test_each_word_stands_in_a_line_with_its_label_and_probability(tagger, capsys):
    lines = [line.split("\t") for line in said(capsys, tagger, "the dog sleeps.").out.splitlines()]
    assert [line[:2] for line in lines] == [["the", "D"], ["dog", "N"], ["sleeps", "V"], [".", "S"]]
    assert all(0.25 < float(probability) <= 1 for *_, probability in lines)


def test_a_sentence_has_one_label(classifier, capsys):
    for verb, label in (("runs", "fast"), ("sleeps", "slow")):
        text, found, probability = said(capsys, classifier, f"a cat {verb} .").out.split("\t")
        assert (text, found) == (f"a cat {verb} .", label)
        assert 0.5 < float(probability) <= 1


def test_blanks_in_a_text_do_not_matter(tagger, capsys):
    expected = said(capsys, tagger, "the dog sleeps.").out
    assert said(capsys, tagger, "--whole", "the", "dog", "sleeps.").out == expected
    assert said(capsys, tagger, "  the\tdog  sleeps.\n").out == expected


def test_what_stands_there_is_what_the_model_says(tagger):
    labeller = Labeller.load(tagger, "cpu")
    text = "the cat, sleeps."
    said = labeller.label(text)
    assert [word for word, *_ in said] == [word for word, _ in words_of(text)]
    ids = [2, *labeller.vocabulary.encode(text), 3]
    logits, _ = labeller.model.forward([ids])
    rows = logits[0][:, 1:]
    assert said[0].label == labeller.model.config.names[rows[1].argmax()]


def test_words_beyond_the_context_have_no_label(tagger, capsys):
    shown = said(capsys, tagger, "the dog runs. " * 10)
    lines = shown.out.splitlines()
    assert len(lines) == 40
    last = lines[-1].split("\t")
    assert last == ["."]
    without = sum("\t" not in line for line in lines)
    assert f"the last {without} words have no label" in shown.err


def test_a_long_sentence_still_has_its_label(classifier, capsys):
    assert "\t" in said(capsys, classifier, "the dog runs . " * 100).out


@pytest.mark.parametrize(
    ("old", "new"), [("\tS\n", "\tX\n"), ("\tS\n", "\tV\n"), ("the\tD", "the\tA")]
)
def test_a_text_that_has_other_labels_now_gives_no_scores(old, new, tagger, capsys):
    """The same ids would stand for others."""
    path = tagger.parent / "labels.tsv"
    content = path.read_text(encoding="utf-8")
    path.write_text(content.replace(old, new), encoding="utf-8")
    try:
        assert main(["evaluate", str(tagger)]) == 1
    finally:
        path.write_text(content, encoding="utf-8")
    shown = capsys.readouterr()
    assert f"{tagger}: the training data have changed: they are " in shown.err
    assert shown.out == ""


def test_evaluating_it_gives_its_accuracy_and_a_line_for_each_label(tagger, capsys):
    assert main(["evaluate", str(tagger)]) == 0
    shown = capsys.readouterr().out
    entries = [json.loads(x) for x in (tagger / "metrics.jsonl").read_text().splitlines()]
    best = max(e["accuracy"] for e in entries if e["kind"] == "validation")
    assert f"accuracy            {best:8.4f}" in shown
    rows = [line.split() for line in shown.splitlines() if line[:2] in ("D ", "N ", "V ", "S ")]
    assert [row[0] for row in rows] == ["D", "N", "S", "V"]
    assert all(row[-1] == "3" for row in rows)
