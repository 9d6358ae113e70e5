import itertools
import time

import numpy as np
import pytest
from _turns import alternate, beside, require_same


def test_two_steps_take_turns_and_who_begins_changes():
    taken = []
    seconds = alternate(lambda: taken.append("a"), lambda: taken.append("b"), blocks=2, block=3)
    assert "".join(taken) == "aaabbb" + "bbbaaa" + "aaabbb"  # the first warms up
    assert len(seconds) == 2
    assert all(a > 0 and b > 0 for a, b in seconds)


def test_the_ratio_is_that_of_all_blocks_and_lies_between_theirs(clock, monkeypatch):
    monkeypatch.setattr("_turns.perf_counter", clock)
    takes = itertools.count(2)  # the first block warms up, the others have steps of 4 to 7 seconds
    times = beside(lambda: time.sleep(1), lambda: time.sleep(next(takes)), blocks=2, block=2)
    assert times["ratio_of_blocks"] == [4.5, 6.5]
    assert times["ratio"] == times["torch_seconds"] / times["seconds"] == 5.5


def test_sides_that_differ_are_not_timed():
    x = np.ones(3)
    require_same("GRU", {"x": x, "bias": 2 * x}, {"x": x})  # which PyTorch has in another place
    with pytest.raises(SystemExit, match=r"GRU: the gradient of weight differs by 1\.0e-02"):
        require_same("GRU", {"x": x, "weight": 1.01 * x}, {"x": x, "weight": x})
