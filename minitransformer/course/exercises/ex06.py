"""Exercise 06, positions: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import expect_pair, normal, part

B, H, T, K, D, LONGEST = 2, 3, 5, 6, 8, 7


@part(10)
def check_pairs_that_turn(pairs_that_turn):
    hint = "T tokens are T − 1 steps, and a turn is 2π; count pairs, not features"
    for length, d_model in ((30, 512), (7, 64), (8, 64), (300, 512), (100_000, 64)):
        frequency = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
        expected = np.count_nonzero((length - 1) * frequency >= 2 * np.pi)
        pairs_that_turn.expect((length, d_model), expected, hint)


@part(25)
def check_learned_positions(forward, backward):
    x, table = inputs = normal(6, (B, T, D), (LONGEST, D))
    return expect_pair(forward, backward, inputs, x + table[:T])


@part(45)
def check_rotary(forward, backward):
    (x,) = normal(6, (B, H, T, K))
    angle = np.arange(T)[:, None] * 10000.0 ** (-np.arange(0, K, 2) / K)  # (T, K/2)
    points = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    expected = np.stack([points.real, points.imag], axis=-1).reshape(x.shape)
    hint = (
        "neighbouring features are a pair, 0 with 1, 2 with 3; the angle counts positions, from 0, "
        "along the axis before the last, and the turn is counter-clockwise"
    )
    return expect_pair(forward, backward, (x,), expected, hint)
