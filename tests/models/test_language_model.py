import numpy as np
import pytest
from strict_cupy import strict

from minitransformer.backend import Device, to_host
from minitransformer.data.batches import Labelled
from minitransformer.gradcheck.cases import LABELS, TARGET, V, small_language_model_config
from minitransformer.models.language_model import LanguageModel, LanguageModelConfig

CONFIG = small_language_model_config()
BATCH = Labelled.of(TARGET, LABELS)


def model_of(seed=1, dtype=np.float64, **options):
    return LanguageModel(CONFIG, seed, dtype=dtype, **options)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_its_size_is_known_without_building_it(norm):
    config = small_language_model_config(norm)
    assert config.num_parameters() == LanguageModel(config).num_parameters()


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


def test_padding_behind_a_text_changes_nothing():
    model = model_of()
    alone, _ = model.forward(TARGET[1:, :2])
    padded, _ = model.forward(np.pad(TARGET[1:, :2], ((0, 0), (0, 2))))
    np.testing.assert_allclose(padded[:, :2], alone, rtol=1e-12)


def test_shards_have_the_gradient_of_the_batch():
    model = model_of()
    _, cache = model.loss(BATCH, num_tokens=BATCH.num_tokens)
    model.loss_backward(1.0, cache)
    whole = model.flat.grad.copy()
    model.zero_grad()
    for rows in (slice(0, 1), slice(1, 3)):
        shard = Labelled.of(TARGET[rows], LABELS[rows])
        replica = model.replica()
        _, cache = replica.loss(shard, num_tokens=BATCH.num_tokens)
        replica.loss_backward(1.0, cache)
        model.flat.grad += replica.flat.grad
    np.testing.assert_allclose(model.flat.grad, whole, rtol=1e-7, atol=1e-12)


def test_its_loss_is_that_of_its_logits():
    model = model_of()
    logits, _ = model.forward(TARGET)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    chosen = np.take_along_axis(log_p, LABELS[..., None], axis=-1)[..., 0]
    (loss, nll), _ = model.loss(BATCH)
    assert loss == pytest.approx(nll)
    assert nll == pytest.approx(-chosen[LABELS != 0].mean())


def test_it_gives_on_a_device_what_it_gives_on_numpy():
    here = model_of(dtype=np.float32)
    there = model_of(dtype=np.float32, device=Device("stand-in", strict))
    for each in (here, there):
        _, cache = each.loss(BATCH)
        each.loss_backward(1.0, cache)
    gradient = to_host(there.flat.grad)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, here.flat.grad, atol=1e-5 * abs(gradient).max())


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
        (dict(num_layers=0), "num_layers=0 must be a whole number"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(field, message):
    with pytest.raises(ValueError, match=message):
        LanguageModelConfig(V, **{"d_model": 8, "num_heads": 2, **field})
