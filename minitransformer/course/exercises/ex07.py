"""Exercise 07, layer normalisation: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import check_gradients, expect, expect_pair, part
from minitransformer.gradcheck import CheckError
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward

B, T, D = 3, 5, 8
EPSILON = 1e-5
LENGTHS = np.array([5, 3, 2])
VALID = np.arange(T) < LENGTHS[:, None]  # (B, T), False at padding


@part(10)
def check_dx_when_scaled(dx_when_scaled):
    rng = np.random.default_rng(7)
    x, dy = rng.standard_normal((2, B, T, D))
    gamma, beta = rng.uniform(0.5, 1.5, D), np.zeros(D)

    def dx_at(x):
        return layer_norm_backward(dy, layer_norm(x, gamma, beta, epsilon=0.0)[1])[0]

    for c in (4.0, 0.25):
        dx = dx_when_scaled(dx_at(x), c)
        expect(f"dx_when_scaled(dx, {c:g})", dx, dx_at(c * x), "y is the same, and σ is not")


@part(25)
def check_lean_layer_norm(forward, backward):
    inputs = _inputs()
    y, cache = forward.y_and_cache(*inputs, cache_type=tuple)
    expect("y", y, layer_norm(*inputs, EPSILON)[0])
    kept = [np.asarray(array) for array in cache if not np.array_equal(array, y)]
    largest = max((array.size for array in kept), default=0)
    if largest > B * T:
        raise CheckError(
            f"besides y the cache may hold σ, γ and β, and nothing of the size of x; it holds an "
            f"array of {largest} numbers"
        )
    return check_gradients(forward, backward, inputs)


@part(45)
def check_rms_norm(forward, backward):
    rng = np.random.default_rng(7)
    x, gamma = rng.standard_normal((B, T, D)) + 1, rng.uniform(0.5, 1.5, D)
    mean_square = (x**2).mean(axis=-1, keepdims=True)
    expected = x / np.sqrt(mean_square + EPSILON) * gamma
    mistakes = {
        "ε belongs inside the root": x / (np.sqrt(mean_square) + EPSILON) * gamma,
        "RMSNorm subtracts no mean": layer_norm(x, gamma, np.zeros(D), EPSILON)[0],
    }
    return expect_pair(forward, backward, (x, gamma), expected, mistakes=mistakes)


@part(90)
def check_masked_batch_norm(forward, backward):
    x, gamma, beta = inputs = _inputs()
    y, _ = forward.y_and_cache(*inputs, VALID)
    if np.shape(y) == x.shape and np.any(np.asarray(y)[~VALID] != 0):
        raise CheckError("y is not zero at padding, where valid is False")
    rows = x[VALID]  # (N, D)
    expected = np.zeros_like(x)
    expected[VALID] = gamma * (rows - rows.mean(0)) / np.sqrt(rows.var(0) + EPSILON) + beta
    hint = "are the mean and the variance those of the valid rows alone?"
    return expect_pair(forward, backward, (*inputs, VALID), expected, hint)


def _inputs():
    rng = np.random.default_rng(7)
    return rng.standard_normal((B, T, D)), rng.uniform(0.5, 1.5, D), rng.standard_normal(D)
