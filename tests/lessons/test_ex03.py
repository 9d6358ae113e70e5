"""Plausible wrong answers to exercise 03 are told what is wrong with them."""

import math

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex03"))
H = 1e-5


@pytest.mark.parametrize(
    "answer",
    [
        lambda u, f, f2: math.sqrt(u),
        lambda u, f, f2: math.sqrt(2 * u * f / f2),  # the two roundings taken for one
        lambda u, f, f2: (3 * u * f / f2) ** (1 / 3),  # the central difference's
    ],
)
def test_another_step_is_not_the_best(answer):
    assert "smallest?" in only_wrong("ex03", "best_forward_step", best_forward_step=answer)


def moved(x, index, by):
    x = x.copy()
    x[index] += by
    return x


def by_entries(quotient):
    def gradient(function, x, dy):
        return np.reshape([quotient(function, x, dy, i) for i in np.ndindex(x.shape)], x.shape)

    return gradient


@by_entries
def forward_differences(f, x, dy, i):
    return ((f(moved(x, i, H)) - f(x)) * dy).sum() / H


@by_entries
def not_halved(f, x, dy, i):
    return ((f(moved(x, i, H)) - f(moved(x, i, -H))) * dy).sum() / H


@by_entries
def sums_first(f, x, dy, i):
    return ((f(moved(x, i, H)) * dy).sum() - (f(moved(x, i, -H)) * dy).sum()) / (2 * H)


@by_entries
def without_dy(f, x, dy, i):
    return (f(moved(x, i, H)) - f(moved(x, i, -H))).sum() / (2 * H)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (forward_differences, "Σ sin"),
        (not_halved, "Σ sin"),
        (without_dy, "Σ sin"),
        (sums_first, "subtract the two outputs before you sum them"),
    ],
)
def test_a_gradient_by_other_differences_is_wrong(answer, says):
    assert says in only_wrong("ex03", "gradient_by_differences", gradient_by_differences=answer)


def test_writing_to_x_is_refused():
    def writes(function, x, dy):
        x[0] += H

    said = only_wrong("ex03", "gradient_by_differences", gradient_by_differences=writes)
    assert "read-only" in said


@pytest.mark.parametrize(
    "answer",
    [
        lambda f, x: (f(x + H) - f(x - H)) / (2 * H),
        lambda f, x: f(x + 1e-5j).imag / 1e-5,  # a complex step, and one too large
        lambda f, x: f(x + 1e-100j).real,
    ],
)
def test_a_derivative_with_fewer_digits_is_wrong(answer):
    assert "nothing is subtracted" in only_wrong("ex03", "complex_step", complex_step=answer)


def checker(upstream=None, tolerance=1e-7, compared=slice(None), step=1e-5, floor=0.0):
    """The solution's checker with a flaw."""

    def backward_is_right(forward, backward, inputs):
        y, cache = forward(*inputs)
        dy = upstream(y, inputs) if upstream else np.random.default_rng(0).standard_normal(y.shape)
        gradients = backward(dy, cache)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        for i in list(range(len(inputs)))[compared]:

            def output(value, i=i):
                return forward(*inputs[:i], value, *inputs[i + 1 :])[0]

            numeric = SOLUTION["gradient_by_differences"](output, inputs[i], dy, step)
            largest = max(abs(numeric).max(), floor)
            if abs(gradients[i] - numeric).max() > tolerance * largest:
                return False
        return True

    return backward_is_right


@pytest.mark.parametrize(
    ("flawed", "says"),
    [
        (lambda forward, backward, inputs: True, "accepts a softmax backward"),
        (lambda forward, backward, inputs: False, "rejects linear's backward"),
        (checker(lambda y, inputs: np.ones_like(y)), "is its gradient zero for your dy?"),
        (checker(lambda y, inputs: np.ones_like(y), floor=1.0), "what is your upstream gradient?"),
        (checker(lambda y, inputs: inputs[0]), "does dy differ from x?"),
        (checker(compared=slice(1)), "does dy differ from x?"),
        (checker(compared=slice(2)), "is every gradient compared?"),
        (checker(tolerance=1e-2), "what is your tolerance"),
        (checker(step=1e-13), "which is right"),
        (lambda forward, backward, inputs: None, "expected True or False"),
    ],
)
def test_a_checker_with_a_flaw_is_told_what_it_accepts_or_rejects(flawed, says):
    assert says in only_wrong("ex03", "backward_is_right", backward_is_right=flawed)


def test_a_checker_without_a_flaw_is_right():
    assert checker()  # the flaws above are what is rejected, not the way it is written
    with pytest.raises(AssertionError):
        only_wrong("ex03", "backward_is_right", backward_is_right=checker())
