"""Exercise 12, learning: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import (
    Part,
    expect,
    expect_call,
    expect_pair,
    normal,
    read_only,
    several,
)
from minitransformer.gradcheck.pair import call
from minitransformer.optim.adam import adam_update

BETA_1, BETA_2, EPSILON = 0.9, 0.98, 1e-9
B, T, D = 5, 3, 4
P = 6


def check_warmup_for_peak(warmup_for_peak):
    hint = "the peak is in step w, and is 1 / √(D w)"
    for d_model, peak in ((512, 7e-4), (32, 7e-3)):
        expected = 1 / (d_model * peak**2)
        expect_call("warmup_for_peak", warmup_for_peak, (d_model, peak), expected, hint=hint)


def check_decayed_adam_update(update):
    rng = np.random.default_rng(12)
    mine = [rng.standard_normal(P), np.zeros(P), np.zeros(P)]  # θ, m, v
    theirs = [array.copy() for array in mine]
    for t in (1, 2, 3):
        grad, rate = rng.standard_normal(P), 0.1 / t
        data, m, v = mine
        before = data.copy()
        adam_update(data, grad, m, v, rate, t, BETA_1, BETA_2, EPSILON)
        data -= rate * 0.05 * before
        data, m, v = theirs
        call("decayed_adam_update", update, data, read_only(grad), m, v, rate, t, 0.05)
        in_place = "it is changed in place, and by the gradient alone"
        expect(f"m after step {t}", m, mine[1], hint=in_place)
        expect(f"v after step {t}", v, mine[2], hint=in_place)
        shrinks = "it shrinks by η λ times what it was before the step"
        expect(f"θ after step {t}", data, mine[0], hint=shrinks)


def check_drop_path(forward, backward):
    (h,) = normal(12, (B, T, D))
    u = np.array([0.9, 0.1, 0.35, 0.2, 0.7])
    expected = h * (u >= 0.3)[:, None, None] / 0.7
    pair, hint = (lambda h: forward(h, 0.3, u), backward), "is the mean over many draws h?"
    return expect_pair("drop_path", pair, (h,), expected, hint, names=("h",))


def check_factored_second_moment(factored):
    rng = np.random.default_rng(12)
    before, grad = rng.uniform(0.5, 2.0, (4, 7)), rng.standard_normal((4, 7))
    moments = before.mean(axis=1), before.mean(axis=0)
    result = call("factored_second_moment", factored, *map(read_only, (*moments, grad)), 0.9)
    rows, columns, v = several("factored_second_moment", result, 3, "rows, columns and v")
    mean = 0.9 * before + 0.1 * grad**2
    expect("rows", rows, mean.mean(axis=1), hint="the mean of g² along a row has R entries")
    expect("columns", columns, mean.mean(axis=0))
    expected = np.outer(mean.mean(axis=1), mean.mean(axis=0)) / mean.mean()
    expect("v", v, expected, hint="its row means must be rows, its column means columns")


PARTS = [
    Part(("warmup_for_peak",), 10, check_warmup_for_peak),
    Part(("decayed_adam_update",), 25, check_decayed_adam_update),
    Part(("drop_path", "drop_path_backward"), 25, check_drop_path),
    Part(("factored_second_moment",), 45, check_factored_second_moment),
]
