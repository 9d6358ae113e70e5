"""What the tests of the commands share: a run for each, trained to its end, and copies to harm."""

import io
import shutil
from contextlib import redirect_stderr

import pytest
from tiny_translator import train_once

from minitransformer.commands.cli import main

TEXT = "".join(
    f"{who} {does} in the {where}.\n"
    for _ in range(12)
    for who, does in (("a dog", "runs"), ("a cat", "sleeps"), ("two dogs", "run"))
    for where in ("park", "house")
)
PARTS = {"the": "D", "a": "D", "dog": "N", "cat": "N", "runs": "V", "sleeps": "V", ".": "S"}
SENTENCES = [
    f"{d} {n} {v} ." for d in ("the", "a") for n in ("dog", "cat") for v in ("runs", "sleeps")
]
WORDS = "".join(
    "".join(f"{word}\t{PARTS[word]}\n" for word in sentence.split()) + "\n"
    for sentence in SENTENCES * 4
)
WHOLE = "".join(f"{'fast' if 'runs' in s else 'slow'}\t{s}\n" for s in SENTENCES * 4)
SMALL = ["--d-model=16", "--num-heads=2", "--d-ff=32", "--num-layers=1", "--batch-tokens=64"]
LARGER = ["--d-model=32", "--num-heads=2", "--d-ff=64", "--num-layers=2", "--batch-tokens=128"]
SIZES = ["--max-length=16", "--epochs=25", "--warmup-steps=10", "--peak-learning-rate=1e-2"]
SIZES += ["--dropout=0", "--average=1"]
TRAININGS = {  # by the command that uses the run, and what is other about it: recipe, text, options
    "generate": ("gpt", TEXT, ["--unit=characters", *SMALL]),
    "generate subwords": ("gpt", TEXT, ["--unit=subwords", "--vocabulary-size=40", *SMALL]),
    "fill": ("bert", TEXT, ["--vocabulary-size=64", *LARGER]),
    "tag": ("tagger", WORDS, ["--corpus=labelled", "--vocabulary-size=32", *SMALL]),
    "tag sentences": ("tagger", WHOLE, ["--corpus=labelled", "--vocabulary-size=32", *SMALL]),
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The folders of runs by the command that uses them, each trained when it is asked for.

    What it was trained on lies beside it, as ``text``.
    """

    class Runs(dict):
        def __missing__(self, name):
            folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
            run, (recipe, content, options) = folder / "a run", TRAININGS[name]
            (folder / "text").write_text(content, encoding="utf-8")
            of_text = "--labelled" if recipe == "tagger" else "--text"
            files = [of_text, str(folder / "text"), "--run-folder", str(run)]
            with redirect_stderr(io.StringIO()) as said:
                assert main(["train", recipe, *files, *options, *SIZES]) == 0
            command, *_ = name.split()
            assert f"try it: minitransformer {command} '{run}'" in said.getvalue()
            self[name] = run
            return run

    return Runs(translate=train_once(tmp_path_factory))


@pytest.fixture
def run_folder(runs):
    return runs["translate"]


@pytest.fixture
def used(runs, monkeypatch, capsys):
    """A function: status, output and errors of a command that gives these texts to its run.

    Standard input is of bytes, typed at a terminal or not.
    """

    def use(command, *arguments, stdin=b"", terminal=False, run=None):
        lines = io.TextIOWrapper(io.BytesIO(stdin), "utf-8" if terminal else "ascii")
        monkeypatch.setattr(lines, "isatty", lambda: terminal)
        monkeypatch.setattr("sys.stdin", lines)
        capsys.readouterr()
        status = main([command, str(run or runs[command]), *map(str, arguments)])
        return status, *capsys.readouterr()

    return use


@pytest.fixture
def said(capsys):
    """A function: what a command that ends with 0 prints for these arguments, and says beside."""

    def run(*arguments):
        capsys.readouterr()
        assert main([*map(str, arguments)]) == 0
        return capsys.readouterr()

    return run


@pytest.fixture
def run_copy(run_folder, tmp_path):
    return shutil.copytree(run_folder, tmp_path / "a copy")


@pytest.fixture
def unfinished(run_copy):
    (run_copy / "model.npz").unlink()
    return run_copy
