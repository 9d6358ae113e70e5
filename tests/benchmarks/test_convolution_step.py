import convolution
import pytest


@pytest.mark.slow
def test_both_sides_compute_the_same_and_take_turns(monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setattr(convolution, "POINTS", ((2, 7),))
    assert convolution.main(["--threads", "1", "--blocks", "2", "--block", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[4].split()[:3] == ["2", "7", "1"]
