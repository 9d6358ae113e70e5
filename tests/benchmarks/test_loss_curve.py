"""What the comparison of two trainings calls the same, on curves made up here."""

import math
from types import SimpleNamespace

import loss_curve
import numpy as np
import pytest
from _courses import steps_of
from loss_curve import FIRST_STEPS, WINDOW, compare
from tiny_workload import tiny_workload

STEPS = 20 * WINDOW
FALL = 4 + 4 * np.exp(-np.arange(STEPS) / 100)


def made_up(shift=0.0, stretch=1.0, rounding=1e-6, noise=0.02):
    """Runs like those of train(); PyTorch's, of those with dropout, are shifted or stretched."""
    rng = np.random.default_rng(0)
    theirs = 4 + shift + 4 * np.exp(-stretch * np.arange(STEPS) / 100)
    runs = []
    for side, curve in (("ours", FALL), ("torch", theirs)):
        still = FALL if side == "ours" else FALL * (1 + rounding)
        runs.append(dict(side=side, dropout=False, seed=1, losses=still.tolist()))
        for seed in (1, 2):
            drawn = curve + noise * rng.standard_normal(STEPS)
            runs.append(dict(side=side, dropout=True, seed=seed, losses=drawn.tolist()))
    return runs


def wrong_at(step, off, dropout=False):
    """Runs of which one loss, of a run with dropout or of one without, is off."""
    runs = made_up()
    next(run for run in runs if run["dropout"] == dropout)["losses"][step] += off
    return runs


@pytest.mark.parametrize(("runs", "agree"), [
    (made_up(), True),
    (made_up(shift=0.02), False), *((made_up(stretch=times), False) for times in (0.9, 1.1)),
    (made_up(rounding=2 * loss_curve.ROUNDING), False),
    (wrong_at(FIRST_STEPS - 1, 1.0), False),
    (wrong_at(FIRST_STEPS, 1.0), True),  # where rounding has grown: not compared one by one
    *((wrong_at(5, math.nan, dropout), False) for dropout in (False, True)),
], ids=range(9))  # fmt: skip
def test_curves_agree_that_differ_by_rounding_at_first_and_then_by_noise(runs, agree):
    assert compare(runs)["agree"] == agree


def test_the_distance_is_in_units_of_the_noise():
    found = compare(made_up())
    assert found["noise"] == pytest.approx(0.02 / np.sqrt(WINDOW), rel=0.3)
    assert 0.5 < found["distance"] < 1.5  # 1 is what noise alone makes of it


@pytest.mark.parametrize(
    ("shift", "status", "words"), [(0.0, 0, "fall alike"), (1.0, 1, "DO NOT FALL ALIKE")]
)
def test_the_verdict_is_printed_drawn_and_the_exit_status(
    shift, status, words, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(loss_curve, "require_torch", lambda: None)
    monkeypatch.setattr(loss_curve, "train", lambda *_: made_up(shift=shift))
    monkeypatch.setattr(loss_curve._courses, "make_workload", lambda *_, **__: tiny_workload())
    plot = tmp_path / "curves.png"
    assert loss_curve.main(["--steps", str(STEPS), "--plot", str(plot)]) == status
    assert words in capsys.readouterr().out
    assert plot.stat().st_size > 5000


def test_batches_come_again_where_they_are_fewer_than_steps():
    assert steps_of(SimpleNamespace(batches=["a", "b", "c"]), 7) == [0, 1, 2, 0, 1, 2, 0]
