"""Inputs on which a common mistake gives the right gradient are warned of, and no others."""

import numpy as np
import pytest

from minitransformer.gradcheck import check_pair
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


def doubled(x):
    return 2 * np.abs(x), x


def masked(x, mask):
    return np.where(mask, 3 * x, 0.0), mask


def gather(table, ids):
    return table[ids] ** 2, (table, ids)


def gather_backward(dy, cache):
    table, ids = cache
    dtable = np.zeros_like(table)
    np.add.at(dtable, ids, 2 * table[ids] * dy)
    return dtable


def scores(x, labels):
    return x[np.arange(len(x)), labels] ** 2, (x, labels)


def scores_backward(dy, cache):
    x, labels = cache
    dx = np.zeros_like(x)
    rows = np.arange(len(x))
    dx[rows, labels] = 2 * x[rows, labels] * dy
    return dx


def product(x, w):
    return x @ w, (x, w)


def product_backward(dy, cache):
    x, w = cache
    return dy @ w.T, x.T @ dy


def mean_of_rows(x):
    return (x**2).mean(axis=0), x


def carried(x, u):
    """h_t = x_t + h_{t−1} u over (B, T, D)."""
    states = [x[:, 0]]
    for t in range(1, x.shape[1]):
        states.append(x[:, t] + states[-1] @ u)
    return np.stack(states, axis=1), (states, u)


def carried_backward(dy, cache):
    states, u = cache
    dx, du, dh = np.zeros_like(dy), np.zeros_like(u), np.zeros_like(states[0])
    for t in reversed(range(dy.shape[1])):
        dx[:, t] = dh = dy[:, t] + dh
        if t:
            du += states[t - 1].T @ dh
        dh = dh @ u.T
    return dx, du


POSITIVE = np.abs(X) + 0.3
SYMMETRIC = X[:, :3] + X[:, :3].T
ABSOLUTE = doubled, lambda dy, x: 2 * dy * np.sign(x)
MASKED = masked, lambda dy, mask: np.where(mask, 3 * dy, 0.0)
GATHER = gather, gather_backward
PRODUCT = product, product_backward
HALF_SQUARED = (
    lambda x: (np.maximum(x, 0.2 * x) ** 2, x),
    lambda dy, x: 2 * dy * np.maximum(x, 0.2 * x),
)
FORM = (
    (lambda x, a: (x @ a @ x, (x, a))),
    (lambda dy, c: (dy * (c[1] + c[1].T) @ c[0], dy * np.outer(c[0], c[0]))),
)
TWO_ROWS = lambda x: (x[:2], x), lambda dy, x: np.vstack([dy, np.zeros((1, 3))])
TWICE_A = FORM[0], lambda dy, c: (2 * dy * c[1] @ c[0], dy * np.outer(c[0], c[0]))
SQUARES = lambda x: (x**2, x), lambda dy, x: 2 * x * dy
MEAN = mean_of_rows, lambda dy, x: 2 * x * dy / len(x)


@pytest.mark.parametrize(
    ("pair", "inputs", "says"),
    [
        (ABSOLUTE, (POSITIVE,), "x is positive everywhere: what forward does on the other side"),
        (ABSOLUTE, (-POSITIVE,), "x is negative everywhere"),
        (MASKED, (X, X < 9), "mask is True everywhere: a mask that is forgotten would not show"),
        (GATHER, (X, np.array([2, 0])), "ids has no number twice: rows of dtable"),
        (HALF_SQUARED, (POSITIVE,), "x is positive everywhere"),
        (TWO_ROWS, (SYMMETRIC,), "x is symmetric: its transpose in its place"),
        (TWICE_A, (X[0, :3], SYMMETRIC), "a is symmetric: its transpose in its place"),
        (PRODUCT, (X[:, :3], SYMMETRIC), "w is symmetric: its transpose in its place"),
        (MEAN, (X[:1],), "x has 1 entry on axis 0: a sum over it that is missing or is a mean"),
        (
            (carried, carried_backward),
            (X[:, None], rng.standard_normal((4, 4))),
            "x has 1 entry on axis 1: a sum over it",
        ),
    ],
)
def test_what_forward_would_show_on_other_inputs_is_said(pair, inputs, says):
    report = check_pair(*pair, inputs)
    assert says in " ".join(report.warnings)


@pytest.mark.parametrize(
    ("pair", "inputs"),
    [
        (ABSOLUTE, (X,)),
        (SQUARES, (POSITIVE,)),
        ((lambda x: (np.log(x), x), lambda dy, x: dy / x), (POSITIVE,)),
        (MASKED, (X, X < 0)),
        (GATHER, (X, np.array([2, 0, 2]))),
        ((scores, scores_backward), (X, np.array([2, 0, 1]))),
        (PRODUCT, (X, rng.standard_normal((4, 4)))),
        (SQUARES, (SYMMETRIC,)),
        (FORM, (X[0, :3], SYMMETRIC)),
        (((lambda x: (x.T @ x, x)), lambda dy, x: x @ (dy + dy.T)), (X,)),
    ],
)
def test_inputs_that_hide_nothing_from_such_a_forward_are_not_warned_of(pair, inputs):
    assert check_pair(*pair, inputs).warnings == []
