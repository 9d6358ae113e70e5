"""What the tests of the course share."""

from types import SimpleNamespace

import pytest


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch):
    """A training draws nothing, which took half of its time here; that of a whole module draws."""
    nothing = SimpleNamespace(draw=lambda folder: folder.pictures[0].touch())
    monkeypatch.setattr("minitransformer.commands.train.plot", nothing)
