import pytest

from minitransformer.training.config import TrainingConfig


@pytest.mark.parametrize(
    "name",
    [
        "epochs",
        "batch_tokens",
        "accumulate",
        "warmup_steps",
        "log_every",
        "save_every",
        "average",
        "peak_learning_rate",
    ],
)
def test_what_must_be_positive_is(name):
    for value in (0, -1, float("nan")):
        with pytest.raises(ValueError, match=f"{name}={value!r} must be > 0"):
            TrainingConfig(**{name: value})


@pytest.mark.parametrize("name", ["consistency", "clip_norm", "patience", "seed"])
def test_what_may_be_zero_is_not_negative(name):
    assert getattr(TrainingConfig(**{name: 0}), name) == 0
    for value in (-1, float("nan")):
        with pytest.raises(ValueError, match=f"{name}={value!r} must be >= 0"):
            TrainingConfig(**{name: value})


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
