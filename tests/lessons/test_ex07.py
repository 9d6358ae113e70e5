"""Plausible wrong answers to exercise 07 are told what is wrong with them."""

import numpy as np
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex07"))


def test_a_gradient_that_is_not_divided_or_multiplied_instead_is_wrong():
    for answer in (lambda dx, c: dx, lambda dx, c: dx * c, lambda dx, c: dx / c**2):
        assert "y is the same, and σ is not" in only_wrong(
            "ex07", "dx_when_scaled", dx_when_scaled=answer
        )


def test_a_lean_norm_that_keeps_x_hat_is_not_lean():
    def keeps_x_hat(x, gamma, beta):
        y, (_, sigma, _, _) = SOLUTION["lean_layer_norm"](x, gamma, beta)
        return y, ((y - beta) / gamma, sigma, gamma)

    said = only_wrong("ex07", "lean_layer_norm", lean_layer_norm=keeps_x_hat)
    assert "array of 120 numbers" in said


def test_a_lean_backward_that_takes_y_for_x_hat_is_wrong():
    def takes_y(dy, cache):
        y, sigma, gamma, _ = cache
        return SOLUTION["lean_layer_norm_backward"](dy, (gamma * y, sigma, gamma, 0))

    assert "dx" in only_wrong("ex07", "lean_layer_norm", lean_layer_norm_backward=takes_y)


def test_an_rms_norm_that_subtracts_the_mean_is_told_not_to():
    def subtracts(x, gamma):
        return SOLUTION["rms_norm"](x - x.mean(-1, keepdims=True), gamma)

    assert "subtracts no mean" in only_wrong("ex07", "rms_norm", rms_norm=subtracts)


def test_an_rms_norm_with_epsilon_outside_the_root_is_told_where_it_belongs():
    def outside(x, gamma):
        rms = np.sqrt((x**2).mean(-1, keepdims=True)) + 1e-5
        return x / rms * gamma, None

    said = only_wrong("ex07", "rms_norm", rms_norm=outside)
    assert "ε belongs inside the root" in said
    assert "mean" not in said


def test_an_rms_backward_without_its_mean_term_is_diagnosed():
    def without(dy, cache):
        x_hat, rms, gamma = cache
        return dy * gamma / rms, (dy * x_hat).sum((0, 1))

    said = only_wrong("ex07", "rms_norm", rms_norm_backward=without)
    assert "the path through `x**2` (line" in said
    assert "is missing" in said


def test_a_batch_norm_over_all_positions_is_told_which_rows_count():
    def over_all(x, gamma, beta, valid):
        y, cache = SOLUTION["masked_batch_norm"](x, gamma, beta, np.ones_like(valid))
        return y * valid[..., None], cache

    said = only_wrong("ex07", "masked_batch_norm", masked_batch_norm=over_all)
    assert "those of the valid rows alone" in said


def test_a_batch_norm_that_writes_beta_into_padding_is_told_so():
    def fills(x, gamma, beta, valid):
        y, cache = SOLUTION["masked_batch_norm"](x, gamma, beta, valid)
        return np.where(valid[..., None], y, beta), cache

    assert "padding" in only_wrong("ex07", "masked_batch_norm", masked_batch_norm=fills)


def test_a_batch_norm_whose_gradient_leaks_into_padding_is_diagnosed():
    def leaks(dy, cache):
        dx, dgamma, dbeta = SOLUTION["masked_batch_norm_backward"](dy, cache)
        return np.where(cache[3][..., None], dx, dy), dgamma, dbeta

    said = only_wrong("ex07", "masked_batch_norm", masked_batch_norm_backward=leaks)
    assert "leaks into padding" in said
