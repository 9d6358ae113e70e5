"""Inputs on which a common mistake gives the right gradient are warned of, and no others."""

import numpy as np
import pytest

from minitransformer.gradcheck import check_pair
from minitransformer.gradcheck.cases import CASES
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.linear import linear, linear_backward

rng = np.random.default_rng(0)
X, GAMMA, BETA = rng.standard_normal((3, 4)), rng.uniform(0.5, 1.5, 4), rng.standard_normal(4)


@pytest.mark.parametrize(
    ("x", "gamma", "beta", "says"),
    [
        (X, np.ones(4), BETA, "gamma is 1 everywhere: a product with it that is missing"),
        (X, GAMMA, np.zeros(4), "beta is 0 everywhere: what is multiplied by it would not show"),
        (X, GAMMA, np.full(4, 0.3), "beta is 0.3 everywhere: which entry stands where"),
        (X[:1], GAMMA, BETA, "x is a batch of 1: a sum over the batch that is missing"),
    ],
)
def test_what_an_input_would_hide_is_said(x, gamma, beta, says):
    report = check_pair(layer_norm, layer_norm_backward, (x, gamma, beta))
    assert report.right
    (warning,) = report.warnings
    assert warning.startswith(says)
    assert f"  warning: {warning}" in str(report)


def test_an_identity_matrix_is_warned_of():
    report = check_pair(linear, linear_backward, (X, np.eye(4), BETA), names=("x", "w", "b"))
    (warning,) = report.warnings
    assert "w is the identity matrix: a product with it that is missing" in warning


@pytest.mark.parametrize(
    "inputs", [(X, np.float64(1)), (X[0], X[1]), (X, np.ones(1)), (X, np.array([[1.0]]))]
)
def test_a_number_that_is_1_and_a_vector_are_not(inputs):
    pair = (
        lambda x, s: (x * s, (x, s)),
        lambda dy, cache: (
            dy * cache[1],
            (dy * cache[0]).sum() * np.ones_like(cache[1]) if cache[1].size == 1 else dy * cache[0],
        ),
    )
    assert check_pair(*pair, inputs).warnings == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_case_of_ours_is_warned_of(case):
    assert case.check().warnings == []
