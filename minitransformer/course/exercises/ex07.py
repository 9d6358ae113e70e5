"""Exercise 07, layer normalisation: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Part, expect, expect_pair, read_only, y_and_cache
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.pair import call
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward

B, T, D = 3, 5, 8
EPSILON = 1e-5
LENGTHS = np.array([5, 3, 2])
VALID = np.arange(T) < LENGTHS[:, None]  # (B, T), False at padding


def check_dx_when_scaled(dx_when_scaled):
    rng = np.random.default_rng(7)
    x, dy = rng.standard_normal((2, B, T, D))
    gamma, beta = rng.uniform(0.5, 1.5, D), np.zeros(D)

    def dx_at(x):
        return layer_norm_backward(dy, layer_norm(x, gamma, beta, epsilon=0.0)[1])[0]

    for c in (4.0, 0.25):
        dx = call("dx_when_scaled", dx_when_scaled, read_only(dx_at(x)), c)
        expect(f"dx_when_scaled(dx, {c:g})", dx, dx_at(c * x), hint="y is the same, and σ is not")


def check_lean_layer_norm(forward, backward):
    inputs = _inputs()
    y, cache = y_and_cache("lean_layer_norm", forward, *inputs, cache_type=tuple)
    expect("y", y, layer_norm(*inputs, EPSILON)[0])
    kept = [np.asarray(array) for array in cache if not np.array_equal(array, y)]
    largest = max((array.size for array in kept), default=0)
    if largest > B * T:
        raise CheckError(
            f"besides y the cache may hold σ, γ and β, and nothing of the size of x; it holds an "
            f"array of {largest} numbers"
        )
    return check_pair(forward, backward, inputs, names=("x", "gamma", "beta"))


def check_rms_norm(forward, backward):
    rng = np.random.default_rng(7)
    x, gamma = rng.standard_normal((B, T, D)) + 1, rng.uniform(0.5, 1.5, D)
    mean_square = (x**2).mean(axis=-1, keepdims=True)
    expected = x / np.sqrt(mean_square + EPSILON) * gamma
    mistakes = {
        "ε belongs inside the root": x / (np.sqrt(mean_square) + EPSILON) * gamma,
        "RMSNorm subtracts no mean": layer_norm(x, gamma, np.zeros(D), EPSILON)[0],
    }
    pair, names = (forward, backward), ("x", "gamma")
    return expect_pair("rms_norm", pair, (x, gamma), expected, mistakes=mistakes, names=names)


def check_masked_batch_norm(forward, backward):
    x, gamma, beta = inputs = _inputs()
    y, _ = y_and_cache("masked_batch_norm", forward, *inputs, VALID)
    if np.shape(y) == x.shape and np.any(np.asarray(y)[~VALID] != 0):
        raise CheckError("y is not zero at padding, where valid is False")
    rows = x[VALID]  # (N, D)
    expected = np.zeros_like(x)
    expected[VALID] = gamma * (rows - rows.mean(0)) / np.sqrt(rows.var(0) + EPSILON) + beta
    hint = "are the mean and the variance those of the valid rows alone?"
    pair, names = (forward, backward), ("x", "gamma", "beta", "valid")
    return expect_pair("masked_batch_norm", pair, (*inputs, VALID), expected, hint, names=names)


def _inputs():
    rng = np.random.default_rng(7)
    return rng.standard_normal((B, T, D)), rng.uniform(0.5, 1.5, D), rng.standard_normal(D)


PARTS = [
    Part(("dx_when_scaled",), 10, check_dx_when_scaled),
    Part(("lean_layer_norm", "lean_layer_norm_backward"), 25, check_lean_layer_norm),
    Part(("rms_norm", "rms_norm_backward"), 45, check_rms_norm),
    Part(("masked_batch_norm", "masked_batch_norm_backward"), 90, check_masked_batch_norm),
]
