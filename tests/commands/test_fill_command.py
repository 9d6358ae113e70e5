import io
import json
import shutil

import numpy as np
import pytest

from minitransformer.commands.cli import main
from minitransformer.core.errors import InputError
from minitransformer.data.text.vocabulary import BOS, EOS, MASK, UNK, Vocabulary, VocabularyError
from minitransformer.inference.filler import Filler
from minitransformer.runs.checkpoint import RunError

TEXT = "".join(
    f"{who} {does} in the {where}.\n"
    for _ in range(12)
    for who, does in (("a dog", "runs"), ("a cat", "sleeps"), ("two dogs", "run"))
    for where in ("park", "house")
)
SIZES = ["--d-model", "32", "--num-heads", "2", "--d-ff", "64", "--num-layers", "2"]
SIZES += ["--max-length", "16", "--epochs", "25", "--batch-tokens", "128", "--warmup-steps", "10"]
SIZES += ["--peak-learning-rate", "1e-2", "--dropout", "0", "--vocabulary-size", "64"]


def trained(folder, *more):
    text = folder / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    run = folder / "bert run"
    options = ["--text", text, "--run-folder", run, *SIZES, *more]
    assert main(["train", "bert", *map(str, options)]) == 0
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def filler(run):
    return Filler.load(run, "cpu")


def said(capsys, *arguments):
    capsys.readouterr()
    assert main(["fill", *map(str, arguments)]) == 0
    return capsys.readouterr()


def problem(capsys, *arguments, command="fill"):
    capsys.readouterr()
    assert main([command, *map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_a_gap_is_filled_by_what_stands_on_both_of_its_sides(filler):
    for text in ("a dog runs in the park.", "a cat sleeps in the park.", "two dogs run in the"):
        verb = text.split(" in ")[0].split()[-1]
        assert filler.fill(text.replace(verb, "___")).text == text
    assert filler.fill("a ___ runs in the park.").text == "a dog runs in the park."
    assert filler.fill("a ___ sleeps in the park.").text == "a cat sleeps in the park."


def test_printed_are_the_text_and_the_likeliest_pieces(run, filler, capsys):
    out = said(capsys, run, "a ___ sleeps in the park.", "--top", "3").out
    first, empty, *rows = out.rstrip("\n").split("\n")
    assert (first, empty) == ("a cat sleeps in the park.", "")
    expected = filler.fill("a ___ sleeps in the park.", top=3).gaps[0]
    assert rows == [f"{p:7.1%}  {piece}" for piece, p in expected]
    assert len(rows) == 3


def test_a_sentence_may_be_piped_in(run, monkeypatch, capsys):
    expected = said(capsys, run, "a ___ sleeps in the park.").out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a ___ sleeps in the park.\n")))
    assert said(capsys, run).out == expected


def test_of_several_gaps_each_has_its_list(run, capsys):
    out = said(capsys, run, "a ___ sleeps in the ___.").out
    assert "\ngap 1\n" in out
    assert "\ngap 2\n" in out
    assert len(out.splitlines()) == 1 + 2 * (2 + 5)


def test_the_text_may_stand_without_quotes_and_behind_options(run, capsys):
    expected = said(capsys, run, "a ___ runs", "--top", "2").out
    for arguments in (["--top", "2", "a ___ runs"], ["a", "___", "runs", "--top", "2"]):
        assert said(capsys, run, *arguments).out == expected


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


@pytest.mark.parametrize("text", [[""], ["a dog runs"], ["a __ b"], [" "], ["<mask>"]])
def test_a_text_without_a_gap_is_refused(text, run, capsys):
    assert "write ___ for what is left out" in problem(capsys, run, *text)


@pytest.mark.parametrize("content", [b"", b"a dog runs\n"])
def test_nor_is_one_that_is_piped_in(content, run, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert "write ___ for what is left out" in problem(capsys, run)


@pytest.mark.parametrize("word", ["dog ", "dog", "☃ "])
def test_a_text_longer_than_the_context_is_refused(word, run, capsys):
    assert "the model takes 14 at once; give a shorter one" in problem(
        capsys, run, f"a ___ {word * 60}"
    )
    assert "pieces, and the model takes 14" in problem(capsys, run, f"{'a ' * 100_000}___")


def test_a_text_as_long_as_the_context_is_taken(filler, run, capsys):
    assert filler.vocabulary.encode("a" + " a" * 12 + " a") == filler.vocabulary.encode("a") * 14
    assert filler.fill("a " * 13 + "___").text.startswith("a " * 13)
    assert "the text has 15 pieces" in problem(capsys, run, "a " * 14 + "___")


def test_a_gap_of_any_length_is_one_piece(filler):
    expected = filler.fill("a ___ runs")
    assert filler.fill(f"a {'_' * 10_000} runs") == expected


def test_unknown_words_are_named_and_do_not_stop_it(run, capsys):
    shown = said(capsys, run, "ö ___ ßog___☃ sleeps")
    assert shown.err == "minitransformer: not in the model's vocabulary: 'ö', 'ßog', '☃'\n"
    assert shown.out.startswith("ö ")


def test_special_ids_never_fill_a_gap(filler):
    for text in ("___", "a___"):
        shown = [piece for piece, _ in filler.fill(text, top=1000).gaps[0]]
        assert not set(shown) & {"<pad>", "<unk>", "<s>", "</s>", "<mask>", ""}


def test_a_model_of_nan_is_refused(run):
    filler = Filler.load(run, "cpu")
    filler.model.flat.data[:] = np.nan
    with pytest.raises(FloatingPointError, match="the model gives NaN"):
        filler.fill("a ___")


def test_a_vocabulary_of_words_alone_fills_no_gap_within_one(filler, monkeypatch):
    monkeypatch.setitem(filler._may_stand, False, np.zeros(64, bool))
    with pytest.raises(ValueError, match="no piece that may stand in this gap"):
        filler.fill("a___")


@pytest.mark.parametrize("name", ["vocabulary.model", "config.json", "model.npz"])
def test_a_damaged_run_is_refused(name, run, tmp_path, capsys):
    damaged = shutil.copytree(run, tmp_path / "run")
    content = (damaged / name).read_bytes()
    (damaged / name).write_bytes(content[: len(content) // 2])
    assert str(damaged) in problem(capsys, damaged, "a ___")


def test_a_vocabulary_without_a_mask_is_refused(filler):
    other = Vocabulary.train(TEXT.split("\n"), 40)
    with pytest.raises(VocabularyError, match="has no mask"):
        Filler(filler.model, other)


def test_a_vocabulary_of_characters_is_refused(run, tmp_path, capsys):
    other = shutil.copytree(run, tmp_path / "run")
    shutil.rmtree(other / "checkpoints")
    (other / "vocabulary.model").write_text(json.dumps({"characters": "ab"}))
    assert str(other) in problem(capsys, other, "a ___")


def test_each_kind_of_run_says_which_command_is_for_it(run, run_folder, capsys):
    assert "was trained for translation; try it: minitransformer translate" in problem(
        capsys, run_folder, "a ___"
    )
    for command in ("translate", "generate"):
        message = problem(capsys, run, "a", command=command)
        assert "was trained for masked language modelling" in message
        assert f"try it: minitransformer fill '{run}'" in message


def test_a_run_of_another_kind_is_refused_in_python_too(run_folder):
    with pytest.raises(RunError, match="trained for 'translation', not to fill gaps"):
        Filler.load(run_folder)


def test_evaluating_it_gives_the_scores_of_its_last_validation(run, capsys):
    capsys.readouterr()
    assert main(["evaluate", str(run)]) == 0
    shown = capsys.readouterr().out
    entries = [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]
    best = min((e for e in entries if e["kind"] == "validation"), key=lambda e: e["perplexity"])
    for name in ("nll", "perplexity", "accuracy"):
        assert f"{name:<20}{best[name]:8.4f}" in shown


def test_info_and_the_end_of_a_training_know_it(run, tmp_path, capsys):
    assert main(["info", str(run)]) == 0
    assert "kind: masked-language-model" in capsys.readouterr().out
    trained(tmp_path, "--epochs", "1")
    assert "try it: minitransformer fill" in capsys.readouterr().err


def test_unknown_is_only_what_the_text_has(filler):
    assert filler.unknown("a ___ dog") == []
    assert UNK in filler.vocabulary.encode("ß")
