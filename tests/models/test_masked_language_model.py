import numpy as np
import pytest

from minitransformer.cases.case import TARGET, V
from minitransformer.cases.models import small_language_model_config
from minitransformer.layers.masks import causal_mask, padding_mask
from minitransformer.models.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)

CONFIG = small_language_model_config(kind=MaskedLanguageModelConfig)


def model_of():
    return MaskedLanguageModel(CONFIG, seed=1, dtype=np.float64)


def each_position_sees_all(model):
    """Each row of logits changes with each of the ids, which stand alone in their batch."""
    ids = np.array([[5, 6, 7, 8]])
    before, _ = model.forward(ids)
    changed = []
    for t in range(4):
        other = ids.copy()
        other[0, t] = 10
        changed.append((model.forward(other)[0] != before).any(axis=-1))
    return bool(np.all(changed))


def padding_changes_nothing(model):
    alone, _ = model.forward(TARGET[1:, :2])
    padded, _ = model.forward(np.pad(TARGET[1:, :2], ((0, 0), (0, 2))))
    return np.allclose(padded[:, :2], alone, rtol=1e-12, atol=0)


def test_each_position_sees_all_words_on_both_sides_and_no_padding():
    assert each_position_sees_all(model_of())
    assert padding_changes_nothing(model_of())


@pytest.mark.parametrize(
    ("mask", "sees_all", "no_padding"),
    [
        (lambda self, ids: causal_mask(ids) & padding_mask(ids), False, True),
        (lambda self, ids: causal_mask(ids)[..., ::-1, ::-1] & padding_mask(ids), False, True),
        (lambda self, ids: None, True, False),
        (lambda self, ids: ~np.eye(ids.shape[1], dtype=bool)[None, None], True, False),
    ],
    ids=["causal", "backwards", "none", "padding forgotten"],
)
def test_a_wrong_mask_is_told(mask, sees_all, no_padding, monkeypatch):
    monkeypatch.setattr(MaskedLanguageModel, "mask", mask)
    assert each_position_sees_all(model_of()) == sees_all
    assert padding_changes_nothing(model_of()) == no_padding


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="d_model=8 is not divisible by num_heads=3"):
        MaskedLanguageModelConfig(V, 8, num_heads=3)
