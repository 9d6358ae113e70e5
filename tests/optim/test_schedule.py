import math
from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer.optim.schedule import (
    PlateauSettings,
    cosine_decay,
    inverse_sqrt,
    linear_decay,
    noam,
    plateau,
    step_decay,
)
from minitransformer.training.config import TrainingConfig


@pytest.mark.parametrize(("step", "expected"), [
    (1, 1.7469e-7),  # 512^-0.5 · 4000^-1.5
    (1000, 1.7469e-4),
    (4000, 6.9877e-4),  # 1 / sqrt(512 · 4000), the peak
    (16000, 3.4939e-4),  # half of it at four times the step
    (100000, 1.3975e-4),
])  # fmt: skip
def test_noam_has_the_values_of_the_paper_for_the_base_model(step, expected):
    assert math.isclose(noam(step, 512, 4000), expected, rel_tol=1e-4)


@pytest.mark.parametrize("step", [1, 7, 100, 101, 5000])
def test_noam_is_the_inverse_square_root_with_a_peak_of_its_own(step):
    peak = 1 / math.sqrt(256 * 100)
    assert math.isclose(noam(step, 256, 100), inverse_sqrt(step, peak, 100), rel_tol=1e-14)


@pytest.mark.parametrize("schedule", [
    inverse_sqrt,
    lambda *a: linear_decay(*a, 1000),
    lambda *a: cosine_decay(*a, 1000),
    lambda *a: step_decay(*a, 1000),
    lambda *a: plateau(*a, 0),
])  # fmt: skip
def test_the_warm_up_is_a_straight_line_to_the_peak(schedule):
    for step in (1, 25, 50):
        assert math.isclose(schedule(step, 0.003, 50), 0.003 * step / 50, rel_tol=1e-14)
    assert schedule(50, 0.003, 50) == 0.003
    assert max(schedule(step, 0.003, 50) for step in range(1, 1000)) == 0.003


def test_linear_falls_in_a_straight_line_to_zero_at_the_last_step():
    assert math.isclose(linear_decay(150, 1.0, 100, 200), 0.5)
    assert math.isclose(linear_decay(175, 1.0, 100, 200), 0.25)
    assert linear_decay(200, 1.0, 100, 200) == 0
    assert linear_decay(199, 1.0, 100, 200) > 0
    assert linear_decay(205, 1.0, 100, 200) == 0  # an epoch may turn out longer than the first was


def test_cosine_falls_slowly_then_fast_then_slowly_to_zero_at_the_last_step():
    rates = [cosine_decay(100 + k, 1.0, 100, 500) for k in (0, 100, 200, 300, 400, 405)]
    half = math.sqrt(2) / 4  # of the cosine of an eighth of the circle
    np.testing.assert_allclose(rates, [1, 0.5 + half, 0.5, 0.5 - half, 0, 0], atol=1e-15)


def test_the_steps_down_are_after_half_and_after_three_quarters_of_all():
    rates = {step: step_decay(step, 1.0, 1, 64_000) for step in (32_000, 32_001, 48_000, 48_001)}
    assert rates == {32_000: 1.0, 32_001: 0.1, 48_000: 0.1, 48_001: 0.01}


@pytest.mark.parametrize("warmup_steps", [10, 11, 1000])
@pytest.mark.parametrize("decay", [linear_decay, cosine_decay])
def test_with_a_warm_up_as_long_as_the_training_a_decay_ends_at_zero_and_stays_below_the_peak(
    decay, warmup_steps
):
    rates = [decay(step, 1.0, warmup_steps, 10) for step in range(1, 11)]
    assert rates[-1] == 0
    assert all(0 < rate <= 1 for rate in rates[:-1])


def test_the_configuration_chooses_the_schedule():
    fields = dict(peak_learning_rate=0.002, warmup_steps=30)
    model = SimpleNamespace(d_model=128)
    for name, rate in {
        "noam": noam(301, 128, 30),
        "inverse-sqrt": inverse_sqrt(301, 0.002, 30),
        "linear": linear_decay(301, 0.002, 30, 400),
        "cosine": cosine_decay(301, 0.002, 30, 400),
        "step": step_decay(301, 0.002, 30, 400),
        "plateau": plateau(301, 0.002, 30, 2),
    }.items():
        assert TrainingConfig(schedule=name, **fields).learning_rate(301, 400, model, 2) == rate


def test_a_rate_waits_three_epochs_on_a_plateau_unless_told_otherwise():
    assert PlateauSettings().plateau_epochs == 3
