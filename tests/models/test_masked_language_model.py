import numpy as np
import pytest
from strict_cupy import strict

from minitransformer.backend import Device, to_host
from minitransformer.data.batches import Labelled
from minitransformer.gradcheck.cases import LABELS, TARGET, V, small_language_model_config
from minitransformer.masks import causal_mask, padding_mask
from minitransformer.models.kinds import config_of, new_model
from minitransformer.models.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)

BATCH = Labelled.of(TARGET, np.where(np.arange(4) % 2, LABELS, 0))


def config_for(norm="pre"):
    return small_language_model_config(norm, MaskedLanguageModelConfig)


def model_of(seed=1, dtype=np.float64, **options):
    return MaskedLanguageModel(config_for(), seed, dtype=dtype, **options)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_its_size_is_known_without_building_it(norm):
    config = config_for(norm)
    assert config.num_parameters() == MaskedLanguageModel(config).num_parameters()


def test_it_is_known_by_its_kind():
    model = new_model(config_of(config_for().as_dict()))
    assert type(model) is MaskedLanguageModel
    assert model.config == config_for()


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


def test_its_loss_is_that_of_the_masked_positions_alone():
    model = model_of()
    logits, _ = model.forward(BATCH.ids)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    chosen = np.take_along_axis(log_p, BATCH.labels[..., None], axis=-1)[..., 0]
    (loss, nll), _ = model.loss(BATCH)
    assert loss == pytest.approx(nll)
    assert nll == pytest.approx(-chosen[BATCH.labels != 0].mean())


def test_shards_have_the_gradient_of_the_batch():
    model = model_of()
    _, cache = model.loss(BATCH, num_tokens=BATCH.num_tokens)
    model.loss_backward(1.0, cache)
    whole = model.flat.grad.copy()
    model.zero_grad()
    for shard in BATCH.split(2):
        replica = model.replica()
        _, cache = replica.loss(shard, num_tokens=BATCH.num_tokens)
        replica.loss_backward(1.0, cache)
        model.flat.grad += replica.flat.grad
    np.testing.assert_allclose(model.flat.grad, whole, rtol=1e-7, atol=1e-12)


def test_it_gives_on_a_device_what_it_gives_on_numpy():
    here = model_of(dtype=np.float32)
    there = model_of(dtype=np.float32, device=Device("stand-in", strict))
    for each in (here, there):
        _, cache = each.loss(BATCH)
        each.loss_backward(1.0, cache)
    gradient = to_host(there.flat.grad)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, here.flat.grad, atol=1e-5 * abs(gradient).max())


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="d_model=8 is not divisible by num_heads=3"):
        MaskedLanguageModelConfig(V, 8, num_heads=3)
