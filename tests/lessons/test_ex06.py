"""Plausible wrong answers to exercise 06 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex06"))


@pytest.mark.parametrize(
    "answer",
    [
        lambda length, d_model: 2 * SOLUTION["pairs_that_turn"](length, d_model),  # features
        lambda length, d_model: SOLUTION["pairs_that_turn"](length + 1, d_model),  # steps
        lambda length, d_model: d_model // 2,
        lambda length, d_model: int(
            (length * 10000.0 ** (-np.arange(d_model // 2) / d_model) >= 2 * np.pi).sum()
        ),  # i for 2i
    ],
)
def test_a_wrong_count_of_turning_pairs_is_told_what_to_count(answer):
    said = only_wrong("ex06", "pairs_that_turn", pairs_that_turn=answer)
    assert "T − 1 steps" in said


def learned_backward(change):
    def backward(dy, cache):
        dx, dtable = SOLUTION["learned_positions_backward"](dy, cache)
        return dx, change(dy, dtable)

    return backward


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda dy, dtable: dtable / len(dy), "2 times too small: 2 is the batch size"),
        (lambda dy, dtable: dtable[:5], r"shape is (5, 8) and should be (7, 8)"),
        (lambda dy, dtable: None, "returned None"),
    ],
)
def test_a_wrong_gradient_of_the_table_is_diagnosed(change, says):
    wrong = learned_backward(change)
    assert says in only_wrong("ex06", "learned_positions", learned_positions_backward=wrong)


def test_positions_from_the_end_of_the_table_are_wrong():
    def last_rows(x, table):
        return SOLUTION["learned_positions"](x, table[-x.shape[1] :])

    assert "y is" in only_wrong("ex06", "learned_positions", learned_positions=last_rows)


def halves(x):
    """The pairs (i, i + K/2), as some other codes have them."""
    order = np.arange(x.shape[-1]).reshape(2, -1).T.ravel()
    y = np.empty_like(x)
    y[..., order] = SOLUTION["rotary"](x[..., order])[0]
    return y, ()


@pytest.mark.parametrize(
    "answer",
    [
        halves,
        lambda x: (SOLUTION["rotary_backward"](x, ()), ()),  # clockwise
        lambda x: (SOLUTION["rotary"](x.swapaxes(1, 2))[0].swapaxes(1, 2), ()),  # by head
    ],
)
def test_a_rotation_of_other_pairs_or_the_other_way_is_told_so(answer):
    assert "neighbouring features are a pair" in only_wrong("ex06", "rotary", rotary=answer)


def test_a_rotary_backward_that_turns_on_instead_of_back_is_wrong():
    def turns_on(dy, cache):
        return SOLUTION["rotary"](dy)[0]

    assert "dx" in only_wrong("ex06", "rotary", rotary_backward=turns_on)
