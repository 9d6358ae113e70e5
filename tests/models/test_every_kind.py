"""What every model promises, those of tokens, and those that translate; a kind new in the table is
tried. What is no model of tokens learns from a batch of its task, as small as that is tested with.
"""

import copy
import json
import pickle
import re
from dataclasses import fields

import digits
import numpy as np
import pytest
from bag_of_words import BagOfWordsConfig
from strict_cupy import strict
from tiny_run import recipe_of_task, tiny_trainer

from minitransformer import accelerated
from minitransformer.cases.case import (
    LABELS,
    SOURCE,
    TARGET,
    B,
    V,
)
from minitransformer.core.backend import Device, to_host
from minitransformer.core.errors import InputError
from minitransformer.data.text.batches import Batch, LabelledBatch
from minitransformer.data.text.vocabulary import BOS
from minitransformer.decoding.attention import cross_attention
from minitransformer.decoding.states import decoder_for
from minitransformer.decoding.whole import WholeDecoder
from minitransformer.models.registry import KINDS, config_class, config_of, new_model
from minitransformer.models.token_config import TokenConfig

BAG = "bag_of_words:BagOfWords"
TOKENS = [kind for kind in KINDS if issubclass(config_class(kind), TokenConfig)]
TRANSLATORS = [
    *((kind, {}) for kind in TOKENS if config_class(kind).task == "translation"),
    ("recurrent", dict(attention="none")),
    (BagOfWordsConfig.kind, {}),
]
OF_TOKENS = [
    *TRANSLATORS,
    *((kind, {}) for kind in TOKENS if config_class(kind).task != "translation"),
    ("language-model", dict(norm="post")),
]
EVERY = [
    *OF_TOKENS,
    *((kind, {}) for kind in [*KINDS, digits.DigitsConfig.kind] if kind not in TOKENS),
]
of_tokens = pytest.mark.parametrize("made", OF_TOKENS, ids=str, indirect=True)
of_translators = pytest.mark.parametrize("made", TRANSLATORS, ids=str, indirect=True)
NARROW = dict(
    d_model=16,
    max_length=8,
    d_hidden=16,
    d_ff=32,
    dropout=0.0,
    window=1,  # so that a sentence is more than one block
    labels=" ".join(map(str, range(1, LABELS.max() + 1))),
)
PAIRS = Batch(SOURCE, TARGET, LABELS, int((LABELS != 0).sum()))
EVERY_SECOND = np.where(np.arange(4) % 2, LABELS, 0)  # what is to be said of rows, (B, T)


@pytest.fixture(params=EVERY, ids=str)
def made(request, monkeypatch, tmp_path):
    """The configuration of each kind, as by default but narrow, and what a model learns from."""
    monkeypatch.setitem(KINDS, BagOfWordsConfig.kind, BAG)
    digits.known(monkeypatch)
    (kind, chosen), rows = request.param, LabelledBatch.of(TARGET, EVERY_SECOND)
    of_kind = config_class(kind)
    if not issubclass(of_kind, TokenConfig):
        recipe = recipe_of_task(of_kind.task, tmp_path / "data").with_value("kind", kind)
        trainer = tiny_trainer(recipe, tmp_path / "run")
        return trainer.model.config, next(iter(trainer.task.batches(0)))
    has = {f.name for f in fields(of_kind)}
    narrow = {name: value for name, value in NARROW.items() if name in has}
    config = of_kind.of_vocabulary(V, **narrow, **chosen)
    return config, PAIRS if config.task == "translation" else rows


@pytest.fixture
def model(made):
    return new_model(made[0], seed=1, dtype=np.float64)


@pytest.fixture
def batch(made):
    return made[1]


def test_its_kind_names_its_configuration_and_its_model(model):
    kept = json.loads(json.dumps(model.config.as_dict()))
    assert config_of(kept) == model.config
    assert type(model.config).__name__ == f"{type(model).__name__}Config"


def test_its_size_is_known_without_building_it(model):
    assert model.config.num_parameters() == model.num_parameters()


@of_tokens
def test_its_loss_is_that_of_its_logits_where_there_is_something_to_say(model, batch):
    logits, _ = model.logits(*model.inputs(batch))
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    chosen = np.take_along_axis(log_p, batch.labels[..., None], axis=-1)[..., 0]
    (loss, nll), _ = model.loss(batch)
    assert loss == pytest.approx(nll)
    assert nll == pytest.approx(-chosen[batch.labels != 0].mean())


@of_tokens
def test_padding_changes_neither_logits_nor_gradients(model, batch):
    def logits_and_gradient(*ids):
        model.zero_grad()
        logits, cache = model.logits(*ids)
        dlogits = np.zeros_like(logits)
        dlogits[:, :4] = np.random.default_rng(0).standard_normal((B, 4, logits.shape[-1]))
        model.backward(dlogits, cache)
        return logits[:, :4], model.flat.grad.copy()

    ids = model.inputs(batch)
    expected = logits_and_gradient(*ids)
    padded = logits_and_gradient(*(np.pad(x, ((0, 0), (0, 3))) for x in ids))
    for ours, theirs in zip(padded, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@of_translators
def test_no_position_sees_what_is_said_after_it(model):
    before, _ = model.forward(SOURCE, TARGET)
    changed = TARGET.copy()
    changed[:, 2] = 10
    after, _ = model.forward(SOURCE, changed)
    np.testing.assert_array_equal(after[:, :2], before[:, :2])
    assert (after[:, 2:] != before[:, 2:]).any(axis=(1, 2)).all()


@of_translators
def test_it_looks_at_the_source(model):
    other = np.where(SOURCE == 7, 10, SOURCE)
    assert (model.forward(other, TARGET)[0] != model.forward(SOURCE, TARGET)[0]).any()


@of_translators
@pytest.mark.parametrize("awake", [False, True])
def test_where_it_looked_is_read_in_the_caches_of_references_and_twins(model, awake):
    with accelerated(awake):
        _, (_, cache) = model.features(SOURCE, TARGET)
    try:
        expected = cross_attention(model, SOURCE, TARGET)
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            model.cross_attention(cache)
        return
    weights = model.cross_attention(cache)  # (layers, B, H, T, S)
    np.testing.assert_allclose(weights, expected, atol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    assert not (weights * (SOURCE == 0)[:, None, None]).any()


def test_its_gradient_is_the_slope_of_its_loss(model, batch):
    """In a direction in which no parameter stands still."""
    direction = np.random.default_rng(2).choice([-1.0, 1.0], model.flat.data.size)
    start, step = model.flat.data.copy(), 1e-8  # of each parameter; there are many
    losses = []
    for sign in (1, -1):
        model.flat.data[:] = start + sign * step * direction
        losses.append(model.loss(batch, smoothing=0.1)[0][0])
    model.flat.data[:] = start
    _, cache = model.loss(batch, smoothing=0.1)
    model.loss_backward(1.0, cache)
    slope = (losses[0] - losses[1]) / (2 * step)
    assert model.flat.grad @ direction == pytest.approx(slope, rel=1e-6)


def test_shards_have_the_gradient_of_the_batch(model, batch):
    num_tokens = batch.num_tokens
    _, cache = model.loss(batch, num_tokens=num_tokens)
    model.loss_backward(1.0, cache)
    whole = model.flat.grad.copy()
    model.zero_grad()
    for shard in batch.split(2):
        replica = model.replica()
        _, cache = replica.loss(shard, num_tokens=num_tokens)
        replica.loss_backward(1.0, cache)
        model.flat.grad += replica.flat.grad
    np.testing.assert_allclose(model.flat.grad, whole, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_is_the_same_model_with_a_flat_storage_of_its_own(model, batch, copied):
    model.flat.grad[:] = 7
    other = copied(model)
    assert (other.config, other.device) == (model.config, model.device)
    assert other.flat.slices == model.flat.slices
    for name in ("data", "grad"):
        there = getattr(other.flat, name)
        np.testing.assert_array_equal(there, getattr(model.flat, name))
        assert not np.shares_memory(there, getattr(model.flat, name))
        for parameter, piece in zip(other.parameters(), other.flat.slices.values(), strict=True):
            assert parameter.flat is other.flat
            assert np.shares_memory(getattr(parameter, name), there[piece])
    assert other.loss(batch)[0] == model.loss(batch)[0]
    other.flat.data += 1
    assert other.loss(batch)[0] != model.loss(batch)[0]


def test_it_gives_on_a_device_what_it_gives_on_numpy(model, batch):
    here = new_model(model.config, seed=2)
    there = new_model(model.config, seed=2, device=Device("stand-in", strict))
    for each in (here, there):
        _, cache = each.loss(batch)
        each.loss_backward(1.0, cache)
    gradient = to_host(there.flat.grad)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, here.flat.grad, atol=1e-5 * abs(gradient).max())


@of_translators
def test_a_search_steps_through_what_the_decoder_says(model):
    """Hypotheses change places, and one of three sentences leaves."""
    logits = []
    for decoder in (decoder_for(model, SOURCE), WholeDecoder(model, SOURCE)):
        steps = [decoder.step(np.full((B, 1), BOS))]  # (3, 1, V)
        decoder.select(np.zeros((B, 2), dtype=int))
        steps.append(decoder.step(np.array([[4, 5], [6, 7], [8, 9]])))  # (3, 2, V)
        decoder.select(np.array([[1, 0], [0, 0], [1, 1]]))
        decoder.keep(np.array([0, 2]))
        steps.append(decoder.step(np.array([[3, 4], [5, 3]])))  # (2, 2, V)
        logits.append(steps)
    for step, expected in zip(*logits, strict=True):
        np.testing.assert_allclose(step, expected, rtol=1e-9, atol=1e-12)
