"""What the tests of the commands share: a run for each, trained to its end, and copies to harm."""

import io
import shutil
from contextlib import redirect_stderr

import pytest
from colours import COLOURS, coloured, pictures
from tiny_translator import status_of, train_once

from minitransformer.commands.cli import main
from minitransformer.core.libraries import library

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
TRAINED = ["--epochs=25", "--warmup-steps=10", "--peak-learning-rate=1e-2", "--dropout=0"]
TRAINED += ["--average=1"]
LAYER = ["--d-model=16", "--num-heads=2", "--d-ff=32", "--num-layers=1"]
SMALL = [*LAYER, "--batch-tokens=64", "--max-length=16"]
LARGER = ["--d-model=32", "--num-heads=2", "--d-ff=64", "--num-layers=2", "--batch-tokens=128"]
LARGER += ["--max-length=16"]
TAGGER = ["--corpus=labelled", "--vocabulary-size=32", *SMALL]
OF_COLOURS = ["--corpus=npz", "--batch-tokens=20", "--epochs=10"]
TRAININGS = {  # by the command that uses the run, and what is other about it: recipe, data, options
    "generate": ("gpt", "text", TEXT, ["--unit=characters", *SMALL]),
    "generate subwords": ("gpt", "text", TEXT, ["--unit=subwords", "--vocabulary-size=40", *SMALL]),
    "fill": ("bert", "text", TEXT, ["--vocabulary-size=64", *LARGER]),
    "tag": ("tagger", "labelled", WORDS, TAGGER),
    "tag sentences": ("tagger", "labelled", WHOLE, TAGGER),
    "classify": ("shapes", "pictures", pictures(), [*OF_COLOURS, "--num-features=4"]),
    "classify patches": ("vit", "pictures", pictures(), [*OF_COLOURS, *LAYER]),
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The folders of runs by the command that uses them, each trained when it is asked for.

    What it was trained on lies beside it, as ``data``.
    """

    class Runs(dict):
        def __missing__(self, name):
            folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
            run, (recipe, field, content, options) = folder / "a run", TRAININGS[name]
            content = content if isinstance(content, bytes) else content.encode()
            (folder / "data").write_bytes(content)
            files = [f"--{field}", str(folder / "data"), "--run-folder", str(run)]
            with redirect_stderr(io.StringIO()) as said:
                assert main(["train", recipe, *files, *TRAINED, *options]) == 0
            command, *_ = name.split()
            more = " PICTURE" if command == "classify" else ""
            assert f"try it: minitransformer {command} '{run}'{more}\n" in said.getvalue()
            self[name] = run
            return run

    return Runs(translate=train_once(tmp_path_factory))


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Files of pictures, by what is in them."""
    folder = tmp_path_factory.mktemp("pictures")
    paths = {name: folder / f"{name}.png" for name in COLOURS}
    for name, path in paths.items():
        library("PIL.Image", "a file").fromarray(coloured(name)).save(path)
    return paths


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
def refused(capsys):
    """A function: what a command that prints nothing and ends with ``status`` says of these."""

    def run(*arguments, status=1):
        capsys.readouterr()
        assert status_of([*map(str, arguments)]) == status
        out, error = capsys.readouterr()
        assert out == ""
        return error

    return run


@pytest.fixture
def run_copy(run_folder, tmp_path):
    return shutil.copytree(run_folder, tmp_path / "a copy")


@pytest.fixture
def unfinished(run_copy):
    (run_copy / "model.npz").unlink()
    return run_copy
