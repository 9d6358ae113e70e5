"""Plausible wrong answers to exercise 16 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of, verdicts

from minitransformer.course.exercises.parts import RIGHT

SOLUTION = functions_in(solution_of("ex16"))


def of_the_measured_share(right, n, z=2.0):
    r = right / n
    return r - z * np.sqrt(r * (1 - r) / n), r + z * np.sqrt(r * (1 - r) / n)


def within_0_and_1(right, n, z=2.0):
    """The standard error of r, cut off where there are no shares: zero right of nine is 0 % ± 0."""
    return np.clip(of_the_measured_share(right, n, z), 0, 1)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (of_the_measured_share, "standard error of the measured share r"),
        (within_0_and_1, "standard error of the measured share r"),
        (lambda *of: SOLUTION["plausible_shares"](*of)[::-1], "ends swapped"),
        (lambda *of: SOLUTION["plausible_shares"](*of[:2]), "(11, 30, 1.5)"),
        (lambda *of: sum(SOLUTION["plausible_shares"](*of)) / 2, "should have (2,)"),
    ],
)
def test_a_wrong_interval_is_told_so(answer, says):
    assert says in only_wrong("ex16", "plausible_shares", plausible_shares=answer)


def test_an_interval_found_on_a_fine_grid_is_right():
    def answer(right, n, z):
        p = np.linspace(0, 1, 2_000_001)
        inside = p[abs(right / n - p) <= z * np.sqrt(p * (1 - p) / n) + 1e-12]
        return inside[0], inside[-1]

    assert verdicts("ex16", plausible_shares=answer)["plausible_shares"].status == RIGHT


def without_subtraction(logits, labels):
    """best_temperature on a grid, by the formula as it stands in the paper."""
    taus = np.geomspace(0.02, 50, 50)
    losses = []
    for tau in taus:
        p = np.exp(logits / tau) / np.exp(logits / tau).sum(axis=-1, keepdims=True)
        losses.append(-np.log(p[np.arange(len(labels)), labels]).mean())
    return taus[np.argmin(losses)] if np.isfinite(losses).any() else np.nan


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda z, t: 1 / SOLUTION["best_temperature"](z, t), "and 1 divided by it would be right"),
        (lambda z, t: SOLUTION["best_temperature"](z, z.argmax(axis=-1)), "the loss least there"),
        (lambda z, t: 1.03 * SOLUTION["best_temperature"](z, t), "the loss least there"),
        (lambda z, t: np.nan, "subtract the row's largest"),
        (without_subtraction, "exp of a large number overflows"),
    ],
)
def test_a_wrong_temperature_is_told_so(answer, says):
    said = only_wrong("ex16", "best_temperature", best_temperature=answer)
    assert says in said
