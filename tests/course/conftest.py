"""What the tests of the course share."""

import shutil
from types import SimpleNamespace

import pytest

from minitransformer.course.exercises.parts import RIGHT, judge
from minitransformer.runs.run_folder import RunFolder

KNOWN = {}  # verdicts on right parts, by what was judged


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch):
    """A training draws nothing, which took half of its time here; that of a whole module draws."""
    nothing = SimpleNamespace(draw=lambda folder: folder.pictures[0].touch())
    monkeypatch.setattr("minitransformer.commands.train.plot", nothing)


@pytest.fixture(autouse=True)
def _judged_once(monkeypatch):
    """What is right in a file is so in the next of the same functions: half of the time here."""

    def judged(part, functions):
        key = part.functions, frozenset(map(_known_by, functions, functions.values()))
        verdict = KNOWN.get(key) or judge(part, functions)
        if verdict.status == RIGHT:
            KNOWN[key] = verdict
        return verdict

    monkeypatch.setattr("minitransformer.course.own.check.judge", judged)


def _known_by(name, value):
    """What two values of this name have alike that are the same: code, defaults, a constant."""
    code, defaults = (getattr(value, f"__{part}__", None) for part in ("code", "defaults"))
    return name, code, defaults, value if isinstance(value, int | float | str) else None


@pytest.fixture
def run(trained, tmp_path, monkeypatch):
    """The RunFolder of a copy of what the module has ``trained``, from within that folder."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return RunFolder("runs/own")
