"""Plausible wrong answers to exercise 12 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex12"))


@pytest.mark.parametrize(
    "answer",
    [
        lambda d_model, peak: 1 / (d_model**0.5 * peak),
        lambda d_model, peak: peak**-2,  # the width forgotten
        lambda d_model, peak: (d_model**0.5 * peak) ** (-2 / 3),
    ],
)
def test_another_warmup_does_not_peak_there(answer):
    assert "is in step w" in only_wrong("ex12", "warmup_for_peak", warmup_for_peak=answer)


def adam(**changes):
    """The solution's update with the gradient or the parameters changed before it."""

    def update(data, grad, m, v, learning_rate, t, decay):
        if "in the gradient" in changes:
            grad, decay = grad + decay * data, 0.0
        if "after the step" in changes:
            SOLUTION["decayed_adam_update"](data, grad, m, v, learning_rate, t, 0.0)
            data *= 1 - learning_rate * decay
            return
        if "without the learning rate" in changes:
            decay = decay / learning_rate
        if "without correction" in changes:
            t = 10**6
        SOLUTION["decayed_adam_update"](data, grad, m, v, learning_rate, t, decay)

    return update


@pytest.mark.parametrize(
    ("flaw", "says"),
    [
        ("in the gradient", "by the gradient alone"),
        ("after the step", "what it was before the step"),
        ("without the learning rate", "what it was before the step"),
        ("without correction", "what it was before the step"),
    ],
)
def test_a_decay_in_another_place_is_told_so(flaw, says):
    answer = adam(**{flaw: True})
    assert says in only_wrong("ex12", "decayed_adam_update", decayed_adam_update=answer)


def test_moments_that_are_not_changed_in_place_are_told_so():
    def copies(data, grad, m, v, *rest):
        SOLUTION["decayed_adam_update"](data, grad, m.copy(), v.copy(), *rest)

    said = only_wrong("ex12", "decayed_adam_update", decayed_adam_update=copies)
    assert "m after step 1" in said
    assert "changed in place" in said


def test_paths_that_are_not_scaled_or_dropped_where_they_should_stay_are_wrong():
    def not_scaled(h, p, u):
        return h * (u >= p)[:, None, None], ()

    def the_others(h, p, u):
        return h * (u < p)[:, None, None] / (1 - p), ()

    for answer in (not_scaled, the_others):
        assert "mean over many draws" in only_wrong("ex12", "drop_path", drop_path=answer)


def test_a_backward_that_forgets_what_was_dropped_is_diagnosed():
    said = only_wrong("ex12", "drop_path", drop_path_backward=lambda dy, cache: dy / 0.7)
    assert "dh" in said


def without_the_mean(rows, columns, grad, beta):
    rows, columns, _ = SOLUTION["factored_second_moment"](rows, columns, grad, beta)
    return rows, columns, np.outer(rows, columns)


def from_the_old_ones(rows, columns, grad, beta):
    v = np.outer(rows, columns) / rows.mean()
    return *SOLUTION["factored_second_moment"](rows, columns, grad, beta)[:2], v


def squares_of_means(rows, columns, grad, beta):
    squared = np.outer(grad.mean(axis=1), np.ones(grad.shape[1]))
    return SOLUTION["factored_second_moment"](rows, columns, squared, beta)


def axes_swapped(rows, columns, grad, beta):
    rows, columns, v = SOLUTION["factored_second_moment"](rows, columns, grad, beta)
    return columns, rows, v


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (without_the_mean, "its row means must be rows"),
        (from_the_old_ones, "its row means must be rows"),
        (squares_of_means, "rows is"),
        (axes_swapped, "rows has the shape"),
    ],
)
def test_another_second_moment_is_wrong(answer, says):
    said = only_wrong("ex12", "factored_second_moment", factored_second_moment=answer)
    assert says in said
