"""What all commands promise that give texts to a trained model, a line in a table for each."""

import io
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from minitransformer.commands.cli import main
from minitransformer.inference.filler import Filler
from minitransformer.inference.generator import TextGenerator
from minitransformer.inference.labeller import Labeller
from minitransformer.inference.translator import Translator
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint, save_checkpoint

# By command: the class, the recipe, what stands between two answers, two texts, words with a
# character that nobody knows, and what of them is named.
USES = {
    "translate": (Translator, None, "", "ein Hund läuft", "wir", "wir ☃ läuft", "'☃'"),
    "generate": (TextGenerator, "gpt", "", "a dog", "a", "a ☃", "'☃'"),
    "fill": (Filler, "bert", "\n", "a ___ runs.", "___ cat", "a☃ ___", "'a☃'"),
    "tag": (Labeller, "tagger", "\n", "a dog runs.", "a cat", "a dog☃☃ runs", "'☃'"),
}
SIZES = ["--d-model=8", "--num-heads=2", "--d-ff=8", "--num-layers=1", "--max-length=16"]
SIZES += ["--epochs=1", "--batch-tokens=128", "--vocabulary-size=34"]


@pytest.fixture(scope="session")
def runs(run_folder, tmp_path_factory):
    """A run for each command."""
    folder, found = tmp_path_factory.mktemp("runs"), {"translate": run_folder}
    text, labels = folder / "text", folder / "labels"
    text.write_text("a dog runs.\na cat sleeps.\ntwo dogs run.\n" * 12)
    labels.write_text("a\tD\ndog\tN\nruns\tV\n.\tS\n\na\tD\ncat\tN\nsleeps\tV\n.\tS\n\n" * 12)
    options = {
        "generate": ["--text", text, "--unit", "characters"],
        "fill": ["--text", text],
        "tag": ["--corpus", "labelled", "--labelled", labels],
    }
    for command, files in options.items():
        found[command] = folder / f"to {command}"
        files = [*map(str, files), "--run-folder", str(found[command])]
        assert main(["train", USES[command][1], *files, *SIZES]) == 0
    return found


@pytest.fixture(params=USES)
def command(request):
    return request.param


@pytest.fixture
def use(command, runs, monkeypatch, capsys):
    """Use its run with these arguments or standard input; status, output and errors."""

    def run(*arguments, stdin=b"", run=runs[command]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), "ascii"))
        capsys.readouterr()
        status = main([command, str(run), "--device", "cpu", *arguments])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def answers(command, use):
    """What is printed of texts that have an answer each, None where it is an empty line."""

    def printed(*texts):
        each = ["\n" if text is None else use(text)[1] for text in texts]
        return USES[command][2].join(each)

    return printed


@pytest.fixture
def texts(command):
    return USES[command][3:5]


@pytest.fixture
def run_copy(command, runs, tmp_path):
    return shutil.copytree(runs[command], tmp_path / "a copy")


def test_each_argument_and_each_line_of_standard_input_is_a_text(use, answers, texts):
    one, other = texts
    expected = (0, answers(one, other), "")
    assert use(one, other) == expected
    assert use(one, "--", other) == expected
    for lines in (f"{one}\n{other}\n", f"\ufeff{one}\r\n{other}"):
        assert use(stdin=lines.encode()) == expected
    assert use(stdin=b"") == (0, "", "")


def test_with_whole_all_of_it_is_one_text(use, texts):
    one, other = texts
    expected = use(f"{one} {other}")
    assert use("--whole", one, other) == expected
    for end in ("", "\n", "\r\n"):
        assert use("--whole", stdin=f"{one} {other}{end}".encode()) == expected
    of_lines = use(f"{one}\n{other}")
    for end in ("\n", "\r\n"):
        assert use("--whole", stdin=f"{one}{end}{other}{end}".encode()) == of_lines


def test_a_blank_line_is_answered_by_an_empty_one(command, use, answers, texts):
    one, other = texts
    blank = "" if command == "generate" else None  # which begins a new text
    assert use(stdin=f"{one}\n\n{other}\n".encode()) == (0, answers(one, blank, other), "")


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


def test_at_a_terminal_a_prompt_takes_texts_until_an_empty_one(command, runs, monkeypatch, capsys):
    one, other = USES[command][3:5]
    terminal = io.StringIO(f"{one}\n{other}\n\n{one}\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    assert main([command, str(runs[command])]) == 0
    captured = capsys.readouterr()
    assert captured.out.count("> ") == 3
    assert captured.err == "Type a text and press Enter; an empty line or Ctrl-D ends.\n"


def test_what_the_vocabulary_has_not_is_named_and_stops_nothing(command, use, texts):
    *_, strange, named = USES[command]
    status, out, error = use(texts[0], strange)
    assert status == 0
    assert out.startswith(use(texts[0])[1])
    assert error == f"minitransformer: text 2: not in the model's vocabulary: {named}\n"


def test_the_run_of_another_task_is_refused_by_naming_its_command(command, use, runs):
    for other in set(USES) - {command}:
        status, out, error = use("a ___", run=runs[other])
        assert (status, out) == (1, "")
        assert f"was trained for {USES[other][0].task}; try it: minitransformer {other} " in error
        with pytest.raises(RunError, match=f"not for '{USES[command][0].task}'"):
            USES[command][0].load(runs[other])


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_parameters_that_are_no_numbers_are_refused(number, use, run_copy):
    arrays, state = load_checkpoint(run_copy / "model.npz")
    next(iter(arrays.values())).flat[-1] = number
    save_checkpoint(run_copy / "model.npz", arrays, state)
    status, out, error = use("a ___", run=run_copy)
    assert (status, out) == (1, "")
    assert "a parameter of this model is NaN or infinite; its training has diverged" in error


@pytest.mark.parametrize("kind", [Filler, Labeller])
def test_a_model_that_comes_to_give_nan_says_nothing(kind, runs):
    (command,) = (name for name, row in USES.items() if row[0] is kind)
    trained = kind.load(runs[command], "cpu")
    trained.model.flat.data[:] = np.nan
    with pytest.raises(FloatingPointError, match="the model gives NaN"):
        (trained.fill if kind is Filler else trained.label)("a ___")


def test_of_an_unfinished_training_it_is_said_whose_parameters_answer(use, run_copy, texts):
    assert use(*texts, run=run_copy)[2] == ""
    (run_copy / "model.npz").unlink()
    newest = max((run_copy / "checkpoints").iterdir())
    status, out, error = use(*texts, run=run_copy)
    assert (status, bool(out)) == (0, True)
    said = f"this training is not finished; the parameters are those of {newest.stem}\n"
    assert error == f"minitransformer: {said}"


@pytest.mark.parametrize("name", ["vocabulary.model", "config.json", "model.npz"])
def test_a_damaged_file_is_named(name, use, run_copy):
    content = (run_copy / name).read_bytes()
    (run_copy / name).write_bytes(content[: len(content) // 2])
    status, out, error = use("a ___", run=run_copy)
    assert (status, out, error.count("\n")) == (1, "", 1)
    assert error.startswith(f"minitransformer: {run_copy}")
    assert name in error


def test_a_reader_that_goes_away_ends_it_quietly(command, runs):
    read, write = os.pipe()
    os.close(read)
    run = [sys.executable, "-m", "minitransformer", command, runs[command], "--device", "cpu"]
    done = subprocess.run([*run, USES[command][3]], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
