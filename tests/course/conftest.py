"""What the tests of the course share."""

import shutil
from types import SimpleNamespace

import pytest

from minitransformer.runs.run_folder import RunFolder


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch):
    """A training draws nothing, which took half of its time here; that of a whole module draws."""
    nothing = SimpleNamespace(draw=lambda folder: folder.pictures[0].touch())
    monkeypatch.setattr("minitransformer.commands.train.plot", nothing)


@pytest.fixture
def run(trained, tmp_path, monkeypatch):
    """The RunFolder of a copy of what the module has ``trained``, from within that folder."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return RunFolder("runs/own")
