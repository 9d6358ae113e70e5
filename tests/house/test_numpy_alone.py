"""With no library but NumPy the mathematics works, and what needs another one says which."""

import json
from pathlib import Path

import pytest
from elsewhere import python
from test_readme import README, comparable, program_and_output
from tiny_translator import train_once

from minitransformer.commands.cli import main
from minitransformer.course.exercises import exercise_names

# What a part of an exercise needs beside NumPy, because it is about text.
OTHER_LIBRARY = {"ex14": "sacrebleu"}
SOLUTIONS = Path(__file__).parents[2] / "lessons/solutions"

ALONE = """
import sys

class NumPyAlone:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] not in {"numpy", "minitransformer", *sys.stdlib_module_names}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NumPyAlone)
"""

IMPORT_ALL = """
import importlib, pkgutil, minitransformer
for module in pkgutil.walk_packages(minitransformer.__path__, "minitransformer."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""

CHECK_ALL = """
import json
from minitransformer.commands.cli import main
print(json.dumps({path: main(["check", path]) for path in sys.argv[1:]}))
"""

COMMAND_LINE = """
from minitransformer.commands.cli import main
sys.exit(main())
"""

TRAIN = """
import numpy as np
from minitransformer import Transformer, TransformerConfig
from minitransformer.data.text.batches import make_batches
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.config import TrainingConfig
from minitransformer.training.progress import Progress
from minitransformer.training.trainer import Trainer
from minitransformer.tasks.translation import Translation

class Given(Translation):
    def __init__(self, batches):
        self.batches = lambda epoch: batches
        self.left_out = lambda epoch: 0
        self.validate = lambda model: {"bleu": 1.0}

rng = np.random.default_rng(0)
pairs = [(ids, ids) for ids in (rng.integers(4, 20, 6).tolist() for _ in range(20))]
model = Transformer(TransformerConfig.preset("toy", 20, d_model=8, num_heads=2, d_ff=16))
run = RunFolder(sys.argv[1])
run.create()
config = TrainingConfig(epochs=2, batch_tokens=100, log_every=1, shards=2)
task = Given(make_batches(pairs, config.batch_tokens))
trainer = Trainer(model, config, run, task, Progress())
trainer.train()
"""


def alone(program, *arguments, **variables):
    """What ``program`` writes to standard output and error where there is NumPy alone."""
    program = ALONE + program
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OMP_NUM_THREADS", raising=False)
        done = python("-W", "error", "-c", program, *arguments, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_every_module_imports():
    alone(IMPORT_ALL)


def test_the_example_of_the_readme_builds_trains_and_checks_a_model():
    program, expected = program_and_output(README, "import numpy as np")
    output, _ = alone(program)
    assert comparable(output) == comparable(expected)


def test_all_exercises_are_checked_but_those_about_text():
    paths = {name: str(SOLUTIONS / f"{name}.py") for name in exercise_names()}
    output, errors = alone(CHECK_ALL, *paths.values())
    status = json.loads(output.splitlines()[-1])
    assert {name for name, path in paths.items() if status[path] != 0} == OTHER_LIBRARY.keys()
    assert [line.partition(", ")[0] for line in errors.splitlines()] == [
        f"minitransformer check: a score needs {library}" for library in OTHER_LIBRARY.values()
    ]
    assert all(status[paths[name]] == 2 for name in OTHER_LIBRARY)


@pytest.mark.parametrize(("variables", "warned"), [({}, 1), ({"OMP_NUM_THREADS": "1"}, 0)])
def test_several_workers_train_on_arrays_and_what_makes_them_slow_is_said_once(
    variables, warned, tmp_path
):
    show_all = "import warnings\nwarnings.simplefilter('always')\n"
    again = "with trainer.workers.one_blas_thread(): pass\n"
    _, errors = alone(show_all + TRAIN + again, tmp_path, **variables)
    assert (tmp_path / "model.npz").exists()
    assert errors.count("UserWarning: without threadpoolctl") == warned
    assert "\nstep 1 of " in f"\n{errors}"
    assert errors.splitlines()[-1] == "chosen by validation BLEU, 1.0: epoch 1"


def test_the_command_line_shows_its_version_its_help_and_the_machine():
    assert alone(COMMAND_LINE, "--version")[0].startswith("minitransformer ")
    assert "train a model" in alone(COMMAND_LINE, "--help")[0]
    assert "\nBLAS: " in alone(COMMAND_LINE, "info")[0]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    return train_once(tmp_path_factory)


@pytest.mark.parametrize(("arguments", "purpose", "library"), [
    (["train", "toy", "--dry-run"], "a score", "sacrebleu"),
    (["translate", "run", "Hund"], "text", "sentencepiece"),
    (["plot", "run"], "a picture", "matplotlib"),
    (["train", "multi30k-cpu", "--dry-run"], "the download of Multi30k", "pooch"),
])  # fmt: skip
def test_a_library_that_a_command_needs_is_named_with_how_to_install_it(
    arguments, purpose, library, without, run_folder, monkeypatch, capsys
):
    without(library)
    monkeypatch.chdir(run_folder.parent)
    monkeypatch.delenv("MINITRANSFORMER_DATA", raising=False)
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"minitransformer: {purpose} needs {library}, which cannot be ")
    assert captured.err.endswith(f"; install it: python -m pip install {library}\n")
    assert captured.err.count("\n") == 1
