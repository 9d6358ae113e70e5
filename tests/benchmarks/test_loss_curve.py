"""What the comparison of two trainings calls the same, on curves made up here."""

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
    """Runs like those of train(); PyTorch's are shifted, or fall ``stretch`` times as fast."""
    rng = np.random.default_rng(0)
    theirs = 4 + shift + 4 * np.exp(-stretch * np.arange(STEPS) / 100)
    runs = []
    for side, curve in (("ours", FALL), ("torch", theirs)):
        still = FALL if side == "ours" else theirs * (1 + rounding)
        runs.append(dict(side=side, dropout=False, seed=1, losses=still.tolist()))
        for seed in (1, 2):
            drawn = curve + noise * rng.standard_normal(STEPS)
            runs.append(dict(side=side, dropout=True, seed=seed, losses=drawn.tolist()))
    return runs


def with_dropout_only(**changes):
    """PyTorch's run without dropout is right, those with dropout are not."""
    right, wrong = made_up(), made_up(**changes)
    return [r if not r["dropout"] else w for r, w in zip(right, wrong, strict=True)]


def test_curves_that_differ_by_noise_agree():
    found = compare(made_up())
    assert found["agree"]
    assert found["noise"] == pytest.approx(0.02 / np.sqrt(WINDOW), rel=0.3)
    assert 0.5 < found["distance"] < 1.5  # 1 is what noise alone makes of it


@pytest.mark.parametrize("wrong", [dict(shift=0.02), dict(stretch=0.9), dict(stretch=1.1)], ids=str)
def test_curves_that_differ_by_more_than_noise_do_not(wrong):
    found = compare(with_dropout_only(**wrong))
    assert found["rounding"] < 1e-5
    assert found["distance"] > loss_curve.NOISE
    assert not found["agree"]


def test_first_steps_that_differ_by_more_than_rounding_do_not_agree():
    runs = made_up(rounding=2 * loss_curve.ROUNDING)
    assert not compare(runs)["agree"]
    runs = made_up()
    runs[0]["losses"][FIRST_STEPS] += 1  # later, rounding has grown: not compared one by one
    assert compare(runs)["agree"]


@pytest.mark.parametrize("dropout", [False, True])
def test_a_loss_that_is_no_number_does_not_agree(dropout):
    runs = made_up()
    next(run for run in runs if run["dropout"] == dropout)["losses"][5] = float("nan")
    assert not compare(runs)["agree"]


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
