"""Plausible wrong answers to exercise 10 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex10"))


@pytest.mark.parametrize(
    "answer",
    [
        lambda n, v, growth: np.sqrt(np.log(growth) / (n * v)),  # right only for many blocks
        lambda n, v, growth: (growth ** (1 / n) - 1) / v,  # s² taken for s
        lambda n, v, growth: np.sqrt((growth - 1) / (n * v)),  # the growth of pre-norm
    ],
)
def test_another_factor_does_not_grow_the_stream_as_asked(answer):
    assert "its square" in only_wrong("ex10", "branch_scale", branch_scale=answer)


@pytest.mark.parametrize(
    "answer",
    [
        lambda dz, cache: (dz, dz, (dz * cache[0]).sum()),
        lambda dz, cache: (cache[1] * dz, cache[1] * dz, (dz * cache[0]).sum()),
        lambda dz, cache: (dz, cache[1] * dz, (dz * cache[0]).mean()),
    ],
)
def test_a_gate_with_one_wrong_gradient_is_told_which(answer):
    said = only_wrong("ex10", "gated_residual", gated_residual_backward=answer)
    assert said.count("WRONG") == 1


def test_streams_that_correct_each_other_at_once_cannot_be_reversed():
    def at_once(x1, x2, f, g):
        return x1 + f[0](x2)[0], x2 + g[0](x1)[0]

    said = only_wrong("ex10", "reversible_block", reversible_block=at_once)
    assert "which f has corrected already" in said


def test_the_use_of_y1_as_an_input_must_not_be_forgotten():
    def forgets(y1, y2, dy1, dy2, f, g):
        x1, x2, _, _ = SOLUTION["reversible_block_backward"](y1, y2, dy1, dy2, f, g)
        return x1, x2, dy1, dy2 + f[1](dy1, f[0](x2)[1])

    said = only_wrong("ex10", "reversible_block", reversible_block_backward=forgets)
    assert "the input of g as well" in said


def test_the_whole_gradient_of_y1_must_go_through_f():
    def too_early(y1, y2, dy1, dy2, f, g):
        x1, x2, dx1, _ = SOLUTION["reversible_block_backward"](y1, y2, dy1, dy2, f, g)
        return x1, x2, dx1, dy2 + f[1](dy1, f[0](x2)[1])

    said = only_wrong("ex10", "reversible_block", reversible_block_backward=too_early)
    assert "the whole gradient of y1" in said


def test_the_inputs_must_come_back():
    def outputs_again(y1, y2, dy1, dy2, f, g):
        _, _, dx1, dx2 = SOLUTION["reversible_block_backward"](y1, y2, dy1, dy2, f, g)
        return y1, y2, dx1, dx2

    said = only_wrong("ex10", "reversible_block", reversible_block_backward=outputs_again)
    assert "x2, found again" in said
    assert "y1 is at hand" in said
