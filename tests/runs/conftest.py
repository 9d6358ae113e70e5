"""Runs of each kind, trained once a session, for tests that copy and harm them."""

import shutil
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_run import tiny_recipe, trained
from tiny_tasks import classification

from minitransformer.core.libraries import library
from minitransformer.tasks.task import run_at
from minitransformer.training.pretrained import Pretrained

KINDS = {
    "finished": "transformer",
    "unfinished": "transformer",
    "began": "tagger",
    "cut off": "tagger",
    "masked": "masked-language-model",
    "adapted": "adapters",
    "pictures": "small-network",
    "pictures cut off": "small-network",
}


BEGINS_WITH = {"tagger": "masked-language-model", "adapters": "language-model"}


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch):
    """A training draws nothing at its end, which takes longer than the training here."""
    nothing = SimpleNamespace(draw=lambda folder: folder.pictures)
    monkeypatch.setattr("minitransformer.commands.train.plot", nothing)


@pytest.fixture(scope="session")
def runs_of(tmp_path_factory):
    """Two whole runs of a kind: of the same sizes, on different texts, each beside its corpus.

    Taggers and adapters begin with one more.
    """

    @lru_cache
    def made(kind):
        folder = tmp_path_factory.mktemp(kind)
        for name, letter in (("one", "b"), ("other", "p")):
            recipe = recipe_of(kind, folder / name / "corpus")
            for path in (folder / name / "corpus").iterdir():
                _change(path, letter)
            pretrained = None
            if kind in BEGINS_WITH:
                trained(
                    recipe_of(BEGINS_WITH[kind], folder / name / "corpus"), folder / name / "first"
                )
                pretrained = Pretrained.of_run(folder / name / "first")
                recipe = pretrained.fitted(recipe, {})
            trained(recipe, folder / name / "run", pretrained)
        return folder / "one" / "run", folder / "other" / "run"

    return made


def _change(path, letter):
    """Another letter in place of each b; of pictures it is the name of a class."""
    if path.suffix == ".npz":
        arrays = dict(np.load(path))
        arrays["classes"][0] = letter
        np.savez(path, **arrays)
    else:
        path.write_text(path.read_text().replace("b", letter))


def recipe_of(kind, folder):
    """A tiny recipe; of a kind other than translators for the source side, labels its letters."""
    if kind == "small-network":
        return classification(folder)
    if kind == "transformer":
        return tiny_recipe(folder)
    options = dict(kind=kind, num_layers=1, subword_dropout=0.0, vocabulary_size=30)
    if kind == "adapters":
        options |= dict(kind="language-model", lora=2)
    if kind != "tagger":
        return tiny_recipe(folder, corpus="text", text=str(folder / "train.source"), **options)
    recipe = tiny_recipe(folder, corpus="labelled", labelled=str(folder / "labels"), **options)
    sentences = map(str.split, (folder / "train.source").read_text().splitlines())
    labels = ["".join(f"{word}\t{word[0]}\n" for word in words) for words in sentences]
    (folder / "labels").write_text("\n".join(labels))
    return recipe


@pytest.fixture(scope="session")
def picture(tmp_path_factory):
    path = tmp_path_factory.mktemp("picture") / "grey.png"
    library("PIL.Image", "a file").new("L", (20, 20), 99).save(path)
    return path


@pytest.fixture(scope="session")
def original(runs_of):
    """The folder of a translator's whole run, beside that of its corpus: not to be written to."""
    return runs_of("transformer")[0]


@pytest.fixture
def copied(runs_of, tmp_path):
    """Function from one of ``KINDS`` to a copy of such a run and its corpus, and to another run."""

    def copy(of):
        original, other = runs_of(KINDS[of])
        shutil.copytree(original.parent, tmp_path, dirs_exist_ok=True)
        run = run_at(tmp_path / "run")
        text = run.config.read_text().replace(str(original.parent), str(tmp_path))
        run.config.write_text(text)
        if of in ("unfinished", "cut off", "pictures cut off"):
            run.model.unlink()
        return run, other

    return copy


@pytest.fixture
def run(copied):
    """A copy of a translator's whole run."""
    return copied("finished")[0]


@pytest.fixture
def unfinished(run):
    run.model.unlink()
    return run
