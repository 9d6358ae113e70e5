"""Inputs on which a common mistake gives the right gradient are warned of, and no others."""

import numpy as np
import pytest
from battery.elementary import square, square_backward
from battery.linear import (
    embedding,
    embedding_backward,
    linear,
    linear_backward,
    quadratic,
    quadratic_backward,
)
from battery.losses import cross_entropy, cross_entropy_backward
from battery.recurrent import last_state, last_state_backward
from battery.table import slipped

from minitransformer.gradcheck import check_pair
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward

rng = np.random.default_rng(0)
X, GAMMA, BETA = rng.standard_normal((3, 4)), rng.uniform(0.5, 1.5, 4), rng.standard_normal(4)
U = rng.standard_normal((4, 4))


@pytest.mark.parametrize(("x", "gamma", "beta", "says"), [
    (X, np.ones(4), BETA, "gamma is 1 everywhere: a product with it that is missing or misplaced, "
     "as a gain may be, would not show; draw it, as with rng.uniform(0.5, 1.5, (4))"),
    (X, GAMMA, np.zeros(4), "beta is 0 everywhere: what is multiplied by it would not show; draw "
     "it, as with rng.standard_normal((4))"),
    (X, GAMMA, np.full(4, 0.3), "beta is 0.3 everywhere: which entry stands where"),
    (X[:1], GAMMA, BETA, "x is a batch of 1: a sum over the batch that is missing"),
])  # fmt: skip
def test_what_an_input_would_hide_is_said(x, gamma, beta, says):
    report = check_pair(layer_norm, layer_norm_backward, (x, gamma, beta))
    assert report.right
    (warning,) = report.warnings
    assert warning.startswith(says)
    assert f"  warning: {warning}" in str(report)


def test_an_identity_matrix_is_warned_of():
    report = check_pair(linear, linear_backward, (X, np.eye(4), BETA))
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


POSITIVE = np.abs(X) + 0.3
SYMMETRIC = X[:, :3] + X[:, :3].T
ABSOLUTE = lambda x: (2 * np.abs(x), x), lambda dy, x: 2 * dy * np.sign(x)
MASKED = lambda x, m: (np.where(m, 3 * x, 0.0), m), lambda dy, m: np.where(m, 3 * dy, 0.0)
HALF_SQUARED = (
    lambda x: (np.maximum(x, 0.2 * x) ** 2, x),
    lambda dy, x: 2 * dy * np.maximum(x, 0.2 * x),
)
EMBEDDING = embedding, embedding_backward
LINEAR = linear, linear_backward
FORM = quadratic, quadratic_backward
TWICE_A = quadratic, slipped(quadratic_backward, {"x @ a + x @ a.T": "2 * x @ a"})
TWO_ROWS = lambda x: (x[:2], x), lambda dy, x: np.vstack([dy, np.zeros((1, 3))])
MEAN = lambda x: ((x**2).mean(axis=0), x), lambda dy, x: 2 * x * dy / len(x)
CARRIED = last_state, last_state_backward
GRAM = lambda x: (x.T @ x, x), lambda dy, x: x @ (dy + dy.T)


@pytest.mark.parametrize(("pair", "inputs", "says"), [
    (ABSOLUTE, (POSITIVE,), "x is positive everywhere: what forward does on the other side"),
    (ABSOLUTE, (-POSITIVE,), "x is negative everywhere"),
    (MASKED, (X, X < 9), "m is True everywhere: a mask that is forgotten would not show"),
    (EMBEDDING, (X, np.array([2, 0])), "ids has no number twice: rows of dtable"),
    (HALF_SQUARED, (POSITIVE,), "x is positive everywhere"),
    (TWO_ROWS, (SYMMETRIC,), "x is symmetric: its transpose in its place"),
    (TWICE_A, (X[:, :3], SYMMETRIC), "a is symmetric: its transpose in its place"),
    (LINEAR, (X[:, :3], SYMMETRIC, BETA[:3]), "w is symmetric: its transpose in its place"),
    (MEAN, (X[:1],), "x has 1 entry on axis 0: a sum over it that is missing or is a mean"),
    ((lambda x: ((x * x).sum(), x), square_backward), (X[:1],), "x is a batch of 1: a sum over"),
    (CARRIED, (X[:, None], U), "x has 1 entry on axis 1: a sum over it that is missing or is a "
     "mean, or what is carried along it, would not show"),
])  # fmt: skip
def test_what_forward_would_show_on_other_inputs_is_said(pair, inputs, says):
    report = check_pair(*pair, inputs)
    assert says in " ".join(report.warnings)


@pytest.mark.parametrize(("pair", "inputs"), [
    (ABSOLUTE, (X,)),
    ((square, square_backward), (POSITIVE,)),
    ((lambda x: (np.log(x), x), lambda dy, x: dy / x), (POSITIVE,)),
    (MASKED, (X, X < 0)),
    (EMBEDDING, (X, np.array([2, 0, 2]))),
    ((cross_entropy, cross_entropy_backward), (X, np.array([2, 0, 1]))),
    (LINEAR, (X, U, BETA)),
    ((square, square_backward), (SYMMETRIC,)),
    (FORM, (X[:, :3], SYMMETRIC)),
    (GRAM, (X,)),
])  # fmt: skip
def test_inputs_that_hide_nothing_from_such_a_forward_are_not_warned_of(pair, inputs):
    assert check_pair(*pair, inputs).warnings == []
