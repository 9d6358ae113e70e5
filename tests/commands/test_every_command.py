"""What all commands promise that use a trained model, a row of ``USES`` for each.

Most give texts to it; ``texts`` of the others are names of ``files``.
And what ``evaluate`` and ``info`` say of its run, and every command of a run that there is not.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from minitransformer.commands.cli import COMMANDS, main
from minitransformer.commands.evaluate import OF_TASKS
from minitransformer.inference.classifier import Classifier
from minitransformer.inference.filler import Filler
from minitransformer.inference.generator import TextGenerator
from minitransformer.inference.labeller import Labeller
from minitransformer.inference.translator import Translator
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint, save_checkpoint


class Row(NamedTuple):
    """What a command is given, and what is said.

    Attributes:
        uses: the class of what it uses.
        between: what stands between two answers.
        texts: two of them, or names of files.
        strange: words with a character that nobody knows.
        named: what of them is named.
        beyond: what is said, or refused, of a text that is longer than the context.
        scores: what ``evaluate`` prints, as the last validation found it.
    """

    uses: type
    between: str
    texts: tuple
    strange: str
    named: str
    beyond: str
    scores: tuple


USES = {
    "translate": Row(
        *(Translator, "", ("ein Hund läuft", "wir"), "wir ☃ läuft", "'☃'"),
        "text 1 is too long for this model; its end was left out",
        (),
    ),
    "generate": Row(
        *(TextGenerator, "", ("a dog", "a"), "a ☃", "'☃'", ""),
        ("nll", "perplexity", "bits_per_character"),
    ),
    "fill": Row(
        *(Filler, "\n", ("a ___ runs.", "___ cat"), "a☃ ___", "'a☃'"),
        "pieces, and the model takes 14 at once; give a shorter one",
        ("nll", "perplexity", "accuracy"),
    ),
    "tag": Row(
        *(Labeller, "\n", ("a dog runs.", "a cat"), "a dog☃☃ runs", "'☃'"),
        "words have no label",
        ("nll", "accuracy"),
    ),
    "classify": Row(Classifier, "", ("red", "blue"), "", "", "", ("nll", "accuracy")),
}
OF_FILES = ["classify"]
OF_TEXTS = [name for name in USES if name not in OF_FILES]
of_texts = pytest.mark.parametrize("command", OF_TEXTS, indirect=True)
OF_RUNS = [name for name in COMMANDS if name not in ("train", "import", "gradcheck", "check")]


@pytest.fixture(params=USES)
def command(request):
    return request.param


@pytest.fixture
def use(command, used):
    return partial(used, command, "--device", "cpu")


@pytest.fixture
def answers(command, use):
    """What is printed of texts that have an answer each, None where it is an empty line."""

    def printed(*texts):
        each = ["\n" if text is None else use(text)[1] for text in texts]
        return USES[command].between.join(each)

    return printed


@pytest.fixture
def texts(command, files):
    """Two that it is given: texts, or paths."""
    names = USES[command].texts
    return names if command in OF_TEXTS else tuple(str(files[name]) for name in names)


@pytest.fixture
def run_copy(command, runs, tmp_path):
    return shutil.copytree(runs[command], tmp_path / "a copy")


@of_texts
def test_each_argument_and_each_line_of_standard_input_is_a_text(use, answers, texts):
    one, other = texts
    expected = (0, answers(one, other), "")
    assert use(one, other) == expected
    assert use(one, "--", other) == expected
    assert use(one, other, terminal=True) == expected  # where nothing is typed
    for lines in (f"{one}\n{other}\n", f"\ufeff{one}\r\n{other}"):
        assert use(stdin=lines.encode()) == expected
    assert use(stdin=b"") == (0, "", "")


@of_texts
def test_with_whole_all_of_it_is_one_text(use, texts):
    one, other = texts
    expected = use(f"{one} {other}")
    assert use("--whole", one, other) == expected
    assert use("--whole", stdin=f"{one} {other}".encode(), terminal=True) == expected
    for end in ("", "\n", "\r\n"):
        assert use("--whole", stdin=f"{one} {other}{end}".encode()) == expected
    of_lines = use(f"{one}\n{other}")
    for end in ("\n", "\r\n"):
        assert use("--whole", stdin=f"{one}{end}{other}{end}".encode()) == of_lines


@of_texts
def test_a_blank_line_is_answered_by_an_empty_one(command, use, answers, texts):
    one, other = texts
    blank = "" if command == "generate" else None  # which begins a new text
    assert use(stdin=f"{one}\n\n{other}\n".encode()) == (0, answers(one, blank, other), "")


@of_texts
@pytest.mark.parametrize("how", ["arguments", "standard input"])
def test_what_is_not_utf8_is_named_and_answered_by_an_empty_line(how, use, answers, texts):
    one, other = texts
    if how == "arguments":
        status, out, error = use(one, "l\udce4uft", other)
    else:
        status, out, error = use(stdin=f"{one}\nl".encode() + b"\xe4uft\n" + other.encode())
    assert (status, error.count("\n")) == (1, 1)
    assert out == answers(one, None, other)
    assert error.startswith("minitransformer: text 2: byte 0xe4 is not UTF-8")


@of_texts
@pytest.mark.parametrize("end", ["\n{}\n", ""], ids=["an empty line", "the end of input"])
@pytest.mark.parametrize("to_a_file", [False, True])
def test_at_a_terminal_a_prompt_takes_texts_until(
    end, to_a_file, command, use, answers, texts, monkeypatch
):
    one, other = texts
    monkeypatch.setattr("sys.stdout.isatty", lambda: not to_a_file)
    printed = [answers(one), f"{USES[command].between}{answers(other)}"]
    typed = f"{one}\n{other}\n{end.format(one)}".encode()
    status, out, error = use(stdin=typed, terminal=True)
    asked, empty = "Type a text and press Enter; an empty line or Ctrl-D ends.\n", "\n" * (not end)
    if to_a_file:  # to which no prompt belongs
        assert (status, out, error) == (0, "".join(printed), f"{asked}> > > {empty}")
    else:
        assert (status, out) == (0, "".join(f"> {text}" for text in [*printed, empty]))
        assert error == asked


@of_texts
def test_a_prompt_goes_on_after_bytes_that_are_not_utf8(use, texts):
    one, other = texts
    typed = f"{one}\nl".encode() + b"\xe4uft\n" + f"{other}\n\n".encode()
    status, _, error = use(stdin=typed, terminal=True)
    assert (status, error.count("> ")) == (1, 4)
    assert "minitransformer: text 2: byte 0xe4 is not UTF-8" in error


@of_texts
def test_of_a_text_beyond_the_context_it_is_said_what_is_left_out(command, use, texts):
    one, other = texts
    long, says = f"{one} {f'{other} ' * 2000}", USES[command].beyond
    status, out, error = use("--whole", long)
    assert (status, bool(out.strip())) == ((1, False) if command == "fill" else (0, True))
    assert error.count("\n") == bool(says)
    assert says in error


@of_texts
def test_what_the_vocabulary_has_not_is_named_and_stops_nothing(command, use, texts):
    status, out, error = use(texts[0], USES[command].strange)
    assert status == 0
    assert out.startswith(use(texts[0])[1])
    said = f"not in the model's vocabulary: {USES[command].named}\n"
    assert error == f"minitransformer: text 2: {said}"


def test_the_run_of_another_task_is_refused_by_naming_its_command(command, use, runs):
    for other in set(USES) - {command}:
        status, out, error = use("a ___", run=runs[other])
        assert (status, out) == (1, "")
        tries = " PICTURE" * (other == "classify")
        try_it = f"try it: minitransformer {other} {shlex.quote(str(runs[other]))}{tries}\n"
        assert f"was trained for {USES[other].uses.task}; {try_it}" in error
        with pytest.raises(RunError, match=f"not for '{USES[command].uses.task}'"):
            USES[command].uses.load(runs[other])


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_parameters_that_are_no_numbers_are_refused(number, use, run_copy):
    arrays, state = load_checkpoint(run_copy / "model.npz")
    next(iter(arrays.values())).flat[-1] = number
    save_checkpoint(run_copy / "model.npz", arrays, state)
    status, out, error = use("a ___", run=run_copy)
    assert (status, out) == (1, "")
    assert "a parameter of this model is NaN or infinite; its training has diverged" in error


SAYS = {  # of those that say something of one thing alone, the method, and that thing
    Filler: ("fill", "a ___"),
    Labeller: ("label", "a ___"),
    Classifier: ("classify", np.zeros((1, 16, 16, 3), np.uint8)),
}


@pytest.mark.parametrize("kind", SAYS)
def test_a_model_that_comes_to_give_nan_says_nothing(kind, runs):
    (command,) = (name for name, row in USES.items() if row.uses is kind)
    trained = kind.load(runs[command], "cpu")
    trained.model.flat.data[-1] = np.nan  # so that not all logits are NaN
    method, given = SAYS[kind]
    with pytest.raises(FloatingPointError, match="the model gives NaN"):
        getattr(trained, method)(given)


def test_of_an_unfinished_training_it_is_said_whose_parameters_answer(use, run_copy, texts):
    assert use(*texts, run=run_copy)[2] == ""
    (run_copy / "model.npz").unlink()
    newest = max((run_copy / "checkpoints").iterdir())
    status, out, error = use(*texts, run=run_copy)
    assert (status, bool(out)) == (0, True)
    said = f"this training is not finished; the parameters are those of {newest.stem}\n"
    assert error == f"minitransformer: {said}"


def test_a_damaged_file_that_it_keeps_is_named(command, use, run_copy):
    """As every file is that all runs have: see ``tests/runs/test_every_run_file.py``."""
    (name,) = (file.name for file in USES[command].uses.kept_files.values())
    content = (run_copy / name).read_bytes()
    (run_copy / name).write_bytes(content[: len(content) // 2])
    status, out, error = use("a ___", run=run_copy)
    assert (status, out, error.count("\n")) == (1, "", 1)
    assert error.startswith(f"minitransformer: {run_copy}")
    assert name in error


def test_a_reader_that_goes_away_ends_it_quietly(command, runs, texts):
    read, write = os.pipe()
    os.close(read)
    run = [sys.executable, "-m", "minitransformer", command, runs[command], "--device", "cpu"]
    done = subprocess.run([*run, texts[0]], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


# What other commands say of its run


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_run_that_there_is_not_is_said_to_be_none(name, capsys):
    more = ["a ___"] if name in USES or name in ("merge", "export") else []
    assert main([name, "no such run", *more]) == 1
    says = "minitransformer: no such run is no run folder: there is no such folder\n"
    assert capsys.readouterr() == ("", says)


@pytest.mark.parametrize("name", [*USES, "evaluate"])
def test_an_unknown_device_is_an_error_that_names_those_there_are(name, runs, capsys):
    run, *text = [runs[name], "a ___"] if name in USES else [runs["translate"]]
    assert main([name, str(run), "--device", "tpu", *text]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert "unknown device 'tpu'; choose 'auto', 'cpu', 'cuda' or 'cuda:N'" in error


WITH_SCORES = [command for command, row in USES.items() if row.scores]


@pytest.mark.parametrize("command", WITH_SCORES, indirect=True)
def test_evaluate_gives_the_scores_of_the_validation_that_chose_it(command, runs, capsys):
    run = runs[command]
    assert main(["evaluate", str(run)]) == 0
    shown = capsys.readouterr().out.split()
    chosen = load_checkpoint(run / "model.npz")[1]["origin"]
    entries = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (entry,) = (e for e in entries if e["kind"] == "validation" and f"epoch {e['epoch']}" == chosen)
    for name in USES[command].scores:
        assert f"{entry[name]:.4f}" in shown, name


@pytest.mark.parametrize("command", WITH_SCORES, indirect=True)
def test_evaluate_takes_nothing_for_it_that_is_for_others(command, runs, tmp_path, capsys):
    options = ["--output", tmp_path / "said.txt", "--alpha", 0, "--confusion", tmp_path / "c.png"]
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", str(runs[command]), *map(str, options)])
    error = capsys.readouterr().err
    assert f"was trained for {USES[command].uses.task}" in error
    assert ("is validated once more" in error) == (USES[command].uses.task not in OF_TASKS)
    assert f"leave out --alpha, --output{', --confusion' * (command in OF_TEXTS)}\n" in error


def test_info_tells_its_kind(command, runs, capsys):
    assert main(["info", str(runs[command])]) == 0
    kind = json.loads((runs[command] / "config.json").read_text())["model"]["kind"]
    assert f"kind: {kind}\n" in capsys.readouterr().out
