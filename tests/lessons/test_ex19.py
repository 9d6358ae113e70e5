"""Plausible wrong answers to exercise 19 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex19"))


def test_a_reach_found_with_a_gradient_at_every_step_is_told_where_it_must_be_0():
    def everywhere(backward, cache, shape):
        dx = backward(np.ones(shape), cache)[0]
        return shape[1] - 1 - np.flatnonzero((dx != 0).any(axis=(0, 2))).min()

    assert "dy must be 0 before the last step" in only_wrong("ex19", "reach", reach=everywhere)


def test_a_reach_that_counts_the_last_step_too_is_told_from_where_to_count():
    said = only_wrong("ex19", "reach", reach=lambda *args: SOLUTION["reach"](*args) + 1)
    assert "is 0 for the last step itself" in said


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda values, z, k: (z + (1 - z) * abs(values).max()) ** k, "the sign of λ counts"),
        (lambda values, z, k: (z + (1 - z) * values).max() ** k, "take | | before the maximum"),
        (lambda values, z, k: z**k, "the gate's path is not the only one"),
        (lambda values, z, k: abs(z + (1 - z) * values).max(), "its k-th power"),
        (lambda values, z, k: abs(values).max() ** k, "z I + (1 − z) U"),
    ],
)
def test_a_wrong_norm_is_told_which_part_of_the_eigenvalue_is_missing(answer, says):
    assert says in only_wrong("ex19", "gated_norm", gated_norm=answer)


def test_a_memory_that_is_shown_first_is_told_the_order():
    def turned(a, c):
        state, cache = SOLUTION["coupled_cell"](a, c)
        return np.roll(state, c.shape[1], axis=1), cache

    assert "with h first" in only_wrong("ex19", "coupled_cell", coupled_cell=turned)


def test_an_lstm_that_takes_in_everything_is_told_what_its_input_gate_is():
    def takes_all(a, c):
        a_f, a_g, a_o = np.split(a, 3, axis=1)
        c_new = c / (1 + np.exp(-a_f)) + np.tanh(a_g)
        return np.concatenate([np.tanh(c_new) / (1 + np.exp(-a_o)), c_new], axis=1), ()

    said = only_wrong("ex19", "coupled_cell", coupled_cell=takes_all)
    assert "the input gate is 1 − f" in said


def test_a_coupled_backward_that_forgets_that_f_stands_twice_is_wrong_in_a_alone():
    def as_in_an_lstm(dstate, cache):  # df = dc_new c
        c, f, g, *others = cache
        da, dc = SOLUTION["coupled_cell_backward"](dstate, cache)
        da_f, *_ = np.split(
            SOLUTION["coupled_cell_backward"](dstate, (c, f, 0 * g, *others))[0], 3, 1
        )
        return np.concatenate([da_f, da[:, c.shape[1] :]], axis=1), dc

    said = only_wrong("ex19", "coupled_cell", coupled_cell_backward=as_in_an_lstm)
    assert "WRONG  da" in said
    assert "right  dc" in said


def test_a_coupled_backward_without_the_way_through_h_is_wrong_in_the_memory_too():
    def not_through_h(dstate, cache):
        *others, shown = cache
        return SOLUTION["coupled_cell_backward"](dstate, (*others, np.ones_like(shown)))

    said = only_wrong("ex19", "coupled_cell", coupled_cell_backward=not_through_h)
    assert "WRONG  dc" in said


def one_gate_with(was, becomes):
    """The solution's pair with some of its code written otherwise."""
    source = solution_of("ex19").read_text(encoding="utf-8")
    assert source.count(was) == 1
    functions = {}
    exec(source.replace(was, becomes), functions)
    return {name: functions[name] for name in ("one_gate", "one_gate_backward")}


CARRIED = "h = np.where(mask[:, t, None], f * h + (1 - f) * n, h)"
LAST = "dh = np.where(real, dnew * f + da @ w_hidden.T, dh)"


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        (CARRIED, "h = f * h + (1 - f) * n", "at padding the state stays what it was"),
        (CARRIED, CARRIED.replace("n, h)", "n, 0)"), "at padding the state stays what it was"),
        (" * mask[:, :, None]  # (B, T, D)", "", "y is not 0 at padding"),
        (LAST, LAST.replace(", dh)", ", 0)"), "WRONG  dh0"),
        (LAST, LAST.replace("dnew * f + ", ""), "WRONG  dh0"),
        (LAST, LAST.replace(" + da @ w_hidden.T", ""), "what is carried from step to step through"),
        ("dh + dy[:, t], 0)", "dy[:, t], 0)", "step to step"),
        ("dw_hidden += h.T @ da", "dw_hidden = h.T @ da", "Only dw_hidden is wrong"),
    ],
)
def test_a_layer_with_a_slip_in_time_or_at_padding_is_told_so(was, becomes, says):
    assert says in only_wrong("ex19", "one_gate", **one_gate_with(was, becomes))
