import numpy as np
import pytest

from minitransformer.training.config import TrainingConfig

POSITIVE = ["epochs", "batch_tokens", "accumulate", "warmup_steps", "log_every", "save_every"]
POSITIVE += ["average", "peak_learning_rate"]
MAY_BE_ZERO = ["consistency", "clip_norm", "patience", "seed"]
SHARES = ["label_smoothing", "subword_dropout"]
NAN, INF = float("nan"), float("inf")
REFUSED = [
    *((name, value, "> 0") for name in POSITIVE for value in (0, -1)),
    *((name, -1, ">= 0") for name in MAY_BE_ZERO),
    *((name, value, "lie in 0 <= .* < 1") for name in SHARES for value in (-0.1, 1, NAN)),
    *((name, value, must) for name in ("peak_learning_rate", "consistency")
      for value, must in ((INF, "finite"), (NAN, ">"))),
    ("shards", 1025, "1024 at most"),  # more than any machine has cores
    *((name, value, "a whole number$") for name, value in (
        ("epochs", 2.5), ("seed", NAN), ("patience", True), ("batch_tokens", "9"),
    )),
    ("clip_norm", "1", "a number$"), ("label_smoothing", False, "a number$"),
    ("accelerate", 1, "True or False$"), ("options", None, "a dict$"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "must"), REFUSED)
def test_a_field_that_makes_no_sense_is_refused_by_its_name(name, value, must):
    with pytest.raises(ValueError, match=f"^{name}={value!r} must (be )?{must}"):
        TrainingConfig(**{name: value})


@pytest.mark.parametrize(("name", "value"), [
    *((name, 0) for name in MAY_BE_ZERO), *((name, 0.99) for name in SHARES), ("shards", 1024),
    ("epochs", np.int64(3)), ("clip_norm", 2),
])  # fmt: skip
def test_what_makes_sense_is_taken(name, value):
    assert getattr(TrainingConfig(**{name: value}), name) == value
