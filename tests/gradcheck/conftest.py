import pytest

from minitransformer.gradcheck import diagnosis


@pytest.fixture(autouse=True)
def _no_mark_may_fail(monkeypatch):
    """Elsewhere one that does is passed over, and nobody would hear of it."""
    monkeypatch.setattr(diagnosis, "TOLERATED", ())
