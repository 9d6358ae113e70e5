import numpy as np
import pytest

from minitransformer.training.config import TrainingConfig


@pytest.mark.parametrize("name", [
    "epochs", "batch_tokens", "accumulate", "warmup_steps", "log_every", "save_every", "average",
    "peak_learning_rate",
])  # fmt: skip
def test_what_must_be_positive_is(name):
    for value in (0, -1):
        with pytest.raises(ValueError, match=f"{name}={value!r} must be > 0"):
            TrainingConfig(**{name: value})


@pytest.mark.parametrize("name", ["consistency", "clip_norm", "patience", "seed"])
def test_what_may_be_zero_is_not_negative(name):
    assert getattr(TrainingConfig(**{name: 0}), name) == 0
    with pytest.raises(ValueError, match=f"{name}=-1 must be >= 0"):
        TrainingConfig(**{name: -1})


@pytest.mark.parametrize("name", ["label_smoothing", "subword_dropout"])
def test_probabilities_are_below_one(name):
    assert getattr(TrainingConfig(**{name: 0.99}), name) == 0.99
    for value in (-0.1, 1, float("nan")):
        with pytest.raises(ValueError, match=rf"{name}={value!r} must lie in 0 <= {name} < 1"):
            TrainingConfig(**{name: value})


def test_there_are_no_more_shards_than_any_machine_has_cores():
    assert TrainingConfig(shards=1024).shards == 1024
    with pytest.raises(ValueError, match="shards=1025 must be 1024 at most"):
        TrainingConfig(shards=1025)


@pytest.mark.parametrize("name", ["peak_learning_rate", "consistency"])
def test_rates_and_weights_are_finite(name):
    with pytest.raises(ValueError, match=f"{name}=inf must be finite"):
        TrainingConfig(**{name: float("inf")})
    with pytest.raises(ValueError, match=f"{name}=nan must be >"):
        TrainingConfig(**{name: float("nan")})


@pytest.mark.parametrize(("name", "value", "kind"), [
    ("epochs", 2.5, "a whole number"),
    ("seed", float("nan"), "a whole number"),
    ("patience", True, "a whole number"),
    ("batch_tokens", "9", "a whole number"),
    ("clip_norm", "1", "a number"),
    ("label_smoothing", False, "a number"),
    ("accelerate", 1, "True or False"),
    ("options", None, "a dict"),
])  # fmt: skip
def test_a_value_of_another_type_is_refused(name, value, kind):
    with pytest.raises(ValueError, match=f"^{name}={value!r} must be {kind}$"):
        TrainingConfig(**{name: value})


def test_a_number_may_be_any_that_is_one():
    assert TrainingConfig(epochs=np.int64(3), clip_norm=2).epochs == 3
