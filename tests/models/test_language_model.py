import numpy as np
import pytest

from minitransformer.cases.case import TARGET, V
from minitransformer.cases.models import small_language_model_config
from minitransformer.models.language_model import LanguageModel, LanguageModelConfig

CONFIG = small_language_model_config()


def model_of():
    return LanguageModel(CONFIG, seed=1, dtype=np.float64)


def test_it_sees_no_token_that_comes_later():
    model = model_of()
    before, _ = model.forward(TARGET)
    changed = TARGET.copy()
    changed[:, 2] = 10
    after, _ = model.forward(changed)
    np.testing.assert_array_equal(after[:, :2], before[:, :2])
    assert (after[:, 2:] != before[:, 2:]).any(axis=(1, 2)).all()


def test_the_first_token_matters_to_the_last():
    model = model_of()
    before, _ = model.forward([[1, 5, 9, 3]])
    after, _ = model.forward([[2, 5, 9, 3]])
    assert (before[0, -1] != after[0, -1]).any()


@pytest.mark.parametrize("ids", [[1, 2], [[]]])
def test_what_is_no_batch_of_ids_is_refused(ids):
    with pytest.raises(ValueError, match=r"ids must be \(B, T\), with at least one token"):
        model_of().forward(ids)


def test_a_text_longer_than_the_context_is_refused():
    with pytest.raises(ValueError, match="max_length"):
        model_of().forward(np.ones((1, CONFIG.max_length + 1), int))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (dict(num_heads=3), "d_model=8 is not divisible by num_heads=3; choose 6 or 9"),
        (dict(norm="none"), "norm='none'; choose 'post' or 'pre'"),
        (dict(epsilon=0), "epsilon=0 must be > 0"),
        (dict(num_layers=0), "num_layers=0 must be > 0"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(field, message):
    with pytest.raises(ValueError, match=message):
        LanguageModelConfig(V, **{"d_model": 8, "num_heads": 2, **field})
