"""Exercise 06, positions: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Part, expect, y_and_cache
from minitransformer.gradcheck import check_pair
from minitransformer.gradcheck.pair import call

B, H, T, K, D, LONGEST = 2, 3, 5, 6, 8, 7


def check_pairs_that_turn(pairs_that_turn):
    for length, d_model in ((30, 512), (7, 64), (8, 64), (300, 512), (100_000, 64)):
        frequency = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
        expected = np.count_nonzero((length - 1) * frequency >= 2 * np.pi)
        count = call("pairs_that_turn", pairs_that_turn, length, d_model)
        hint = "T tokens are T − 1 steps, and a turn is 2π; count pairs, not features"
        expect(f"pairs_that_turn({length}, {d_model})", count, expected, hint=hint)


def check_learned_positions(forward, backward):
    rng = np.random.default_rng(6)
    x, table = rng.standard_normal((B, T, D)), rng.standard_normal((LONGEST, D))
    y, _ = y_and_cache("learned_positions", forward, x, table)
    expect("y", y, x + table[:T])
    return check_pair(forward, backward, (x, table), names=("x", "table"))


def check_rotary(forward, backward):
    x = np.random.default_rng(6).standard_normal((B, H, T, K))
    y, _ = y_and_cache("rotary", forward, x)
    angle = np.arange(T)[:, None] * 10000.0 ** (-np.arange(0, K, 2) / K)  # (T, K/2)
    points = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    expected = np.stack([points.real, points.imag], axis=-1).reshape(x.shape)
    hint = (
        "neighbouring features are a pair, 0 with 1, 2 with 3; the angle counts positions, from 0, "
        "along the axis before the last, and the turn is counter-clockwise"
    )
    expect("y", y, expected, hint=hint)
    return check_pair(forward, backward, (x,), names=("x",))


PARTS = [
    Part(("pairs_that_turn",), 10, check_pairs_that_turn),
    Part(("learned_positions", "learned_positions_backward"), 25, check_learned_positions),
    Part(("rotary", "rotary_backward"), 45, check_rotary),
]
