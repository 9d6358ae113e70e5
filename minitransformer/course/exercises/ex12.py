"""Exercise 12, learning: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Answer, expect, expect_pair, normal, part
from minitransformer.gradcheck.pair import read_only
from minitransformer.optim.adam import adam_update

BETA_1, BETA_2, EPSILON = 0.9, 0.98, 1e-9
B, T, D = 5, 3, 4
P = 6


@part(10)
def check_warmup_for_peak(warmup_for_peak):
    hint = "the peak is in step w, and is 1 / √(D w)"
    for d_model, peak in ((512, 7e-4), (32, 7e-3)):
        warmup_for_peak.expect((d_model, peak), 1 / (d_model * peak**2), hint)


@part(25)
def check_decayed_adam_update(decayed_adam_update):
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
        decayed_adam_update.writing(data, read_only(grad), m, v, rate, t, 0.05)
        in_place = "it is changed in place, and by the gradient alone"
        expect(f"m after step {t}", m, mine[1], in_place)
        expect(f"v after step {t}", v, mine[2], in_place)
        shrinks = "it shrinks by η λ times what it was before the step"
        expect(f"θ after step {t}", data, mine[0], shrinks)


@part(25)
def check_drop_path(forward, backward):
    (h,) = normal(12, (B, T, D))
    u = np.array([0.9, 0.1, 0.35, 0.2, 0.7])
    expected = h * (u >= 0.3)[:, None, None] / 0.7
    of_h = Answer(forward.name, lambda h: forward.function(h, 0.3, u))
    return expect_pair(of_h, backward, (h,), expected, "is the mean over many draws h?")


@part(45)
def check_factored_second_moment(factored_second_moment):
    rng = np.random.default_rng(12)
    before, grad = rng.uniform(0.5, 2.0, (4, 7)), rng.standard_normal((4, 7))
    moments = before.mean(axis=1), before.mean(axis=0)
    form = "rows, columns and v"
    rows, columns, v = factored_second_moment.several(3, form, *moments, grad, 0.9)
    mean = 0.9 * before + 0.1 * grad**2
    expect("rows", rows, mean.mean(axis=1), "the mean of g² along a row has R entries")
    expect("columns", columns, mean.mean(axis=0))
    expected = np.outer(mean.mean(axis=1), mean.mean(axis=0)) / mean.mean()
    expect("v", v, expected, "its row means must be rows, its column means columns")
