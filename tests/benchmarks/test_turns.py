import numpy as np
import pytest
from _turns import alternate, beside, require_same


def test_two_steps_take_turns_and_who_begins_changes():
    taken = []
    seconds = alternate(lambda: taken.append("a"), lambda: taken.append("b"), blocks=2, block=3)
    assert "".join(taken) == "aaabbb" + "bbbaaa" + "aaabbb"  # the first warms up
    assert len(seconds) == 2
    assert all(a > 0 and b > 0 for a, b in seconds)


def test_the_ratio_lies_between_those_of_the_blocks():
    times = beside(lambda: None, lambda: sum(range(1000)), blocks=4, block=5)
    assert min(times["ratio_of_blocks"]) <= times["ratio"] <= max(times["ratio_of_blocks"])
    assert times["ratio"] == times["torch_seconds"] / times["seconds"] > 1


def test_sides_that_differ_are_not_timed():
    x = np.ones(3)
    require_same("GRU", {"x": x, "bias": 2 * x}, {"x": x})  # which PyTorch has in another place
    with pytest.raises(SystemExit, match=r"GRU: the gradient of weight differs by 1\.0e-02"):
        require_same("GRU", {"x": x, "weight": 1.01 * x}, {"x": x, "weight": x})
