import convolution
import numpy as np
import pytest


@pytest.mark.slow
def test_both_sides_compute_the_same_and_take_turns(monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setattr(convolution, "POINTS", ((2, 7),))
    assert convolution.main(["--threads", "1", "--blocks", "2", "--block", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[4].split()[:3] == ["2", "7", "1"]


def test_sides_that_differ_are_not_timed():
    x = np.ones(3)
    with pytest.raises(SystemExit, match=r"gradient of weight differs by 1\.0e-02"):
        convolution.check((x, 1.01 * x, x), (x, x, x))
