"""What every model promises, those of tokens, and those that translate: rows of ``kit/kinds.py``.

One of anything but tokens and pictures is tried on a batch of its task.
"""

import copy
import io
import json
import pickle
import re
from dataclasses import fields, replace

import digits
import kinds
import numpy as np
import pytest
from on_device import STAND_IN, arrays_of
from rounding import assert_but_for_rounding
from tiny_run import tiny_trainer
from tiny_tasks import recipe_of_kind

from minitransformer import CPU, accelerated
from minitransformer.cases.case import V
from minitransformer.core.backend import Device
from minitransformer.core.errors import InputError
from minitransformer.decoding.attention import cross_attention
from minitransformer.layers.masks import causal_mask, padding_mask
from minitransformer.models.masked_language_model import MaskedLanguageModel
from minitransformer.models.registry import KINDS, config_of, new_model
from minitransformer.runs.checkpoint.arrays import load_model_arrays, model_arrays

OTHERS = {*KINDS, digits.DigitsConfig.kind} - {*kinds.OF_TOKENS, *kinds.OF_PICTURES}
SEEDS = range(5)  # of drawn batches
LENGTH = 8

of_tokens = pytest.mark.parametrize("row", kinds.ROWS, ids=str)
of_every_row = pytest.mark.parametrize("row", kinds.EVERY_ROW, ids=str)
of_translators = pytest.mark.parametrize("row", kinds.TRANSLATORS, ids=str)


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    kinds.known(monkeypatch)
    digits.known(monkeypatch)


@pytest.fixture(params=[*kinds.EVERY_ROW, *OTHERS], ids=str)
def made(request, tmp_path):
    """A model of each kind, and what it learns from."""
    if isinstance(request.param, kinds.Row):
        return request.param.model(), request.param.batch()
    recipe = recipe_of_kind(request.param, tmp_path / "data")
    trainer = tiny_trainer(recipe, tmp_path / "run")
    return trainer.model.to(dtype=np.float64), next(iter(trainer.task.batches(0)))


def test_without_a_seed_nothing_is_drawn_and_what_is_put_in_its_place_counts(made):
    model, batch = made
    other = new_model(model.config, seed=None, dtype=np.float64)
    for (name, parameter), drawn in zip(other.named_parameters(), model.parameters(), strict=True):
        assert parameter.data.shape == drawn.data.shape
        assert len(np.unique(parameter.data)) <= 2, name  # 0, and 1 where a gate is open
    load_model_arrays(other, model_arrays(model))
    for mine, theirs in zip(*(losses_and_gradient(m, batch) for m in (other, model)), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def losses_and_gradient(model, batch, **options):
    model.zero_grad()
    losses, cache = model.loss(batch, **options)
    model.loss_backward(1.0, cache)
    return np.array(losses), model.flat.grad.copy()


# Its configuration


def test_its_kind_names_its_configuration_and_its_model(made):
    model, _ = made
    kept = json.loads(json.dumps(model.config.as_dict()))
    assert config_of(kept) == model.config
    assert type(model.config).__name__ == f"{type(model).__name__}Config"


def test_a_run_that_says_no_kind_has_the_model_of_the_first_release():
    sizes = {"source_vocabulary_size": 9, "target_vocabulary_size": 9}
    assert config_of(sizes).kind == "transformer"


def test_its_size_is_known_without_building_it(made):
    model, _ = made
    size = model.config.num_parameters()
    assert size == model.num_parameters() == model.flat.data.size
    assert isinstance(size, int)  # or else commands show it with a decimal point


# What it sees


def sees(model):
    """Which positions see which tokens of a text, (T, T), found by changing each token."""
    rng = np.random.default_rng(0)
    ids = rng.integers(1, V - 1, (2, LENGTH))
    source = [rng.integers(1, V, (2, 5))] * (model.config.task == "translation")
    before, _ = model.logits(*source, ids)
    changes = np.empty((LENGTH, LENGTH), bool)
    for s in range(LENGTH):
        other = ids.copy()
        other[:, s] = V - 1
        changes[:, s] = (model.logits(*source, other)[0] != before).any(axis=(0, 2))
    return changes


BOTH_WAYS = ("masked language modelling", "tagging")


def may_see(config):
    behind = np.subtract.outer(np.arange(LENGTH), np.arange(LENGTH))
    near = abs(behind) <= kinds.PROMISES[config.kind].back(config)
    return near if config.task in BOTH_WAYS else near & (behind >= 0)


@of_tokens
def test_each_position_sees_the_tokens_that_it_may_see_and_no_other(row):
    np.testing.assert_array_equal(sees(row.model()), may_see(row.config()))


@of_translators
def test_each_word_of_the_source_changes_all_that_is_said(row):
    model, batch = row.model(), row.batch()
    before, _ = model.forward(batch.source, batch.target)
    for s in range(batch.source.shape[1]):
        real = batch.source[:, s] > 0
        other = batch.source.copy()
        other[real, s] = 1 + other[real, s] % (V - 1)
        changed = (model.forward(other, batch.target)[0] != before).any(axis=-1)
        np.testing.assert_array_equal(changed, np.broadcast_to(real[:, None], changed.shape))


def wider(batch, columns):
    names = [f.name for f in fields(batch) if f.type is np.ndarray]
    pads = {name: np.pad(getattr(batch, name), ((0, 0), (0, columns))) for name in names}
    return replace(batch, **pads)


@of_tokens
def test_padding_changes_neither_logits_nor_loss_nor_gradients(row):
    model = row.model()
    for seed in SEEDS:
        batch = row.batch(seed)
        found = []
        for each in (batch, wider(batch, columns=3)):
            logits, _ = model.logits(*model.inputs(each))
            found.append((logits[:, : batch.labels.shape[1]], *losses_and_gradient(model, each)))
        for expected, padded in zip(*found, strict=True):
            np.testing.assert_allclose(padded, expected, rtol=1e-9, atol=1e-11)


@of_tokens
@pytest.mark.parametrize("pad_id", [0, 3])
def test_the_vector_of_the_id_that_stands_for_padding_is_nothing_to_the_model(row, pad_id):
    """Where the vector is no row of the output projection, too."""
    model = replace(row, chosen=row.chosen | dict(pad_id=pad_id)).model()
    batch = row.batch()
    names = [f.name for f in fields(batch) if f.type is np.ndarray]
    batch = replace(batch, **{n: with_padding(getattr(batch, n), pad_id) for n in names})
    expected = losses_and_gradient(model, batch)
    said = model.output_projection.weight
    for path, weight in model.named_parameters():
        if path.endswith("embedding.weight") and weight is not said:
            assert weight.grad.any()
            assert not weight.grad[pad_id].any()
            weight.data[pad_id] += 1000
    for found, before in zip(losses_and_gradient(model, batch), expected, strict=True):
        np.testing.assert_array_equal(found, before)


def with_padding(ids, pad_id):
    """The same text, in which another id stands for padding."""
    return np.where(ids == 0, pad_id, np.where(ids == pad_id, 1, ids))


MASKED = [row for row in kinds.ROWS if row.kind not in ("convolution", "recurrent", kinds.BAG)]


@pytest.mark.parametrize("row", MASKED, ids=str)
@pytest.mark.parametrize("pad_id", [0, 3])
def test_padding_before_the_text_is_as_unseen_as_behind_it(row, pad_id):
    model = replace(row, chosen=row.chosen | dict(pad_id=pad_id)).model()
    ids = [with_padding(x, pad_id)[:, ::-1] for x in model.inputs(row.batch())]
    expected, _ = model.logits(*ids)
    for path, weight in model.named_parameters():
        if path.endswith("embedding.weight"):
            weight.data[pad_id] += 1
    logits, _ = model.logits(*ids)
    found, before = (np.delete(x[ids[-1] != pad_id], pad_id, axis=-1) for x in (logits, expected))
    np.testing.assert_array_equal(found, before)  # of all that is said but padding


SIGHT = test_each_position_sees_the_tokens_that_it_may_see_and_no_other
PADDING = test_padding_changes_neither_logits_nor_loss_nor_gradients


@pytest.mark.parametrize(("mask", "told_by"), [
    (lambda self, ids: causal_mask(ids) & padding_mask(ids), SIGHT),
    (lambda self, ids: causal_mask(ids)[..., ::-1, ::-1] & padding_mask(ids), SIGHT),
    (lambda self, ids: None, PADDING),
    (lambda self, ids: ~np.eye(ids.shape[1], dtype=bool)[None, None], PADDING),
], ids=["causal", "backwards", "none", "padding forgotten"])  # fmt: skip
def test_a_wrong_mask_is_told(mask, told_by, monkeypatch):
    monkeypatch.setattr(MaskedLanguageModel, "mask", mask)
    row = kinds.Row("masked-language-model")
    with pytest.raises(AssertionError):
        told_by(row)


@of_translators
@pytest.mark.parametrize("awake", [False, True])
def test_where_it_looked_is_read_in_the_caches_of_references_and_twins(row, awake):
    model, batch = row.model(), row.batch()
    ids = batch.source, batch.target
    with accelerated(awake):
        _, (_, cache) = model.features(*ids)
    try:
        expected = cross_attention(model, *ids)
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            model.cross_attention(cache)
        return
    weights = model.cross_attention(cache)  # (layers, B, H, T, S)
    np.testing.assert_allclose(weights, expected, atol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    layers, heads = (getattr(model.config, n, 1) for n in ("num_decoder_layers", "num_heads"))
    looked = (layers, len(batch.target), heads, batch.target.shape[1], batch.source.shape[1])
    words = np.broadcast_to((batch.source > 0)[:, None, None], looked)
    np.testing.assert_array_equal(weights > 0, words)


# What it learns


@of_tokens
def test_its_loss_is_that_of_its_logits_where_there_is_something_to_say(row):
    for seed in SEEDS:
        model, batch = row.model(), row.batch(seed)
        logits, _ = model.logits(*model.inputs(batch))
        log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        chosen = np.take_along_axis(log_p, batch.labels[..., None], axis=-1)[..., 0]
        (loss, nll), _ = model.loss(batch)
        assert loss == pytest.approx(nll)
        assert nll == pytest.approx(-chosen[batch.labels != 0].mean())


def test_its_gradient_is_the_slope_of_its_loss_and_is_added_to_what_was_there(made):
    model, batch = made
    step = 1e-8  # of each parameter; there are many
    slope, found = kinds.slope_and_gradient(model, batch, step, smoothing=0.1)
    assert found == pytest.approx(slope, rel=1e-6)
    gradient = model.flat.grad.copy()
    model.loss_backward(1.0, model.loss(batch, smoothing=0.1)[1])
    np.testing.assert_allclose(model.flat.grad, 2 * gradient, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_losses_and_gradients_of_shards_on_replicas_add_up_to_those_of_the_batch(made, count):
    """Of more shards than rows some are empty."""
    model, batch = made
    expected = losses_and_gradient(model, batch, smoothing=0.1)
    model.zero_grad()
    parts = [
        losses_and_gradient(model.replica(), shard, smoothing=0.1, num_tokens=batch.num_tokens)
        for shard in batch.split(count)
        if shard.num_tokens
    ]
    assert not model.flat.grad.any()
    for sums, whole in zip(map(sum, zip(*parts, strict=True)), expected, strict=True):
        np.testing.assert_allclose(sums, whole, rtol=1e-9, atol=1e-12 * abs(whole).max())


def rates(row, rate):
    """All rates of dropout that it has, set to one."""
    return {f.name: rate for f in fields(row.config()) if f.name.endswith("dropout")}


@of_every_row
def test_dropout_is_there_in_training_alone_and_scales_nothing_at_inference(row):
    never = new_model(row.config(**rates(row, 0.0)))
    dropping = new_model(row.config(**rates(row, 0.5)))
    dropping.flat.data[:] = never.flat.data
    inputs = never.inputs(row.batch())
    expected, _ = never.logits(*inputs)
    np.testing.assert_array_equal(dropping.logits(*inputs)[0], expected)
    in_training = [
        copy.deepcopy(model).logits(*inputs, rng=np.random.default_rng(0))[0]
        for model in (never, dropping)
    ]
    if not list(never.named_buffers()):  # running statistics are for inference
        np.testing.assert_array_equal(in_training[0], expected)
    assert (in_training[0] != in_training[1]).any() == bool(rates(row, 0.5))


@of_every_row
def test_dropout_acts_as_often_as_the_kind_says(row):
    one = {name: rate for name, rate in rates(row, 0.5).items() if name == "dropout"}
    model, rng = new_model(row.config(**one)), kinds.Recorder()
    model.logits(*model.inputs(row.batch()), rng=rng)
    assert len(rng.shapes) == kinds.PROMISES[row.kind].drops(model.config)


# Its numbers


@of_every_row
def test_a_seed_gives_all_weights_but_gains_and_biases_and_no_two_alike(row):
    weights, same, others = (new_model(row.config(), seed).flat for seed in (5, 5, 6))
    np.testing.assert_array_equal(same.data, weights.data)
    drawn = others.data[others.data != weights.data]
    matrices = (p for p in new_model(row.config()).parameters() if p.data.ndim > 1)
    assert len(drawn) >= sum(p.data.size for p in matrices)
    assert set(weights.data[others.data == weights.data]) <= {0, 1}
    assert len(np.unique(drawn)) > 0.99 * len(drawn)


@of_every_row
@pytest.mark.parametrize("dtype", [np.float16, int])
def test_a_type_that_cannot_train_is_refused(row, dtype):
    with pytest.raises(TypeError, match=f"of float32 or float64, not of {np.dtype(dtype)}"):
        new_model(row.config(), device="cpu", dtype=dtype)


@of_every_row
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_computes_in_its_own_type_throughout(row, dtype):
    model, batch = new_model(row.config(), device="cpu").to("cpu", dtype), row.batch()
    losses, cache = model.loss(batch, np.random.default_rng(0), smoothing=0.1)
    model.loss_backward(1.0, cache)
    arrays = [*losses, model.flat.data, model.flat.grad, *arrays_of(cache, np.ndarray | np.generic)]
    assert {x.dtype for x in arrays if x.dtype.kind == "f"} == {np.dtype(dtype)}
    assert model.device is CPU


def test_moved_to_another_type_it_is_the_same_model(made):
    model, batch = made
    model.to(dtype=np.float32)
    expected = np.array(model.loss(batch)[0])
    losses = np.array(model.to(dtype=np.float64).loss(batch)[0])
    assert_but_for_rounding(losses.astype(np.float32), expected)
    np.testing.assert_array_equal(model.to(dtype=np.float32).loss(batch)[0], expected)


def replica(model):
    return model.replica()


def pickled(model):
    return pickle.loads(pickle.dumps(model))


def copy_of_replica(model):
    return copy.deepcopy(model.replica())


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled, replica, copy_of_replica])
def test_a_copy_is_the_same_model_whose_arrays_are_its_own_but_the_parameters_of_a_replica(
    made, copied
):
    model, batch = made
    model.flat.grad[:] = 7
    other = copied(model)
    assert (other.config, other.device) == (model.config, model.device)
    assert other.flat.slices == model.flat.slices
    np.testing.assert_array_equal(other.flat.grad, 0 if "replica" in copied.__name__ else 7)
    for name in ("data", "grad"):
        here, there = getattr(model.flat, name), getattr(other.flat, name)
        assert np.shares_memory(there, here) == (copied is replica and name == "data")
        for flat, array, of in ((model.flat, here, model), (other.flat, there, other)):
            for parameter, piece in zip(of.parameters(), flat.slices.values(), strict=True):
                assert parameter.flat is flat
                assert np.shares_memory(getattr(parameter, name), array[piece])
                np.testing.assert_array_equal(getattr(parameter, name).reshape(-1), array[piece])
    assert other.loss(batch)[0] == model.loss(batch)[0]
    other.flat.data += 1
    assert (other.loss(batch)[0] != model.loss(batch)[0]) == (copied is not replica)


def test_where_it_goes_its_device_is_there_before_any_array_comes():
    """Which CuPy puts on whatever device is the current one."""
    stored = []

    class Noting(pickle.Pickler):
        def reducer_override(self, thing):
            stored.append(type(thing))
            return NotImplemented

    Noting(io.BytesIO()).dump(kinds.Row("transformer").model())
    assert stored.index(Device) < stored.index(np.ndarray)


def test_it_gives_on_a_device_what_it_gives_on_numpy(made):
    model, batch = made
    here = new_model(model.config, seed=2)
    there = new_model(model.config, seed=2, device=STAND_IN)
    for each in (here, there):
        _, cache = each.loss(batch)
        each.loss_backward(1.0, cache)
    assert here.flat.grad.dtype == np.float32
    assert_but_for_rounding(there.flat.grad, here.flat.grad)


# What it refuses


@of_tokens
@pytest.mark.parametrize("wrong", ["one too many", -1, 2.0, True])
def test_ids_that_are_no_tokens_of_their_side_are_refused(row, wrong):
    model, batch = row.model(), row.batch()
    for side, name in enumerate(model.config.vocabularies):
        size = getattr(model.config, name)
        given = size if wrong == "one too many" else wrong
        ids = list(model.inputs(batch))
        ids[side] = ids[side].astype(np.result_type(type(given)))
        ids[side][0, 0] = given
        if type(given) is int:
            words, error = (
                rf"{given}.*, outside 0 <= id < {size}, .* another vocabulary",
                ValueError,
            )
        else:
            words, error = f"ids must be integers; their dtype is {ids[side].dtype}", TypeError
        with pytest.raises(error, match=words):
            model.logits(*ids)
        ids[side] = np.where(model.inputs(batch)[side] > 0, size - 1, 0)
        model.logits(*ids)


@of_tokens
def test_a_batch_with_ids_that_are_no_tokens_is_found_before_it_goes_to_a_device(row):
    model, batch = row.model(), row.batch()
    said = len(model.output_projection.weight.data)
    sizes = dict(labels=said, target=said, ids=V)
    sizes["source"] = getattr(model.config, "source_vocabulary_size", V)
    for name in (f.name for f in fields(batch) if f.type is np.ndarray):
        ids = getattr(batch, name).copy()
        ids[0, 0] = sizes[name] - 1
        model.check(replace(batch, **{name: ids}))
        ids[0, 0] += 1
        with pytest.raises(ValueError, match=f"outside 0 <= id < {sizes[name]}"):
            model.check(replace(batch, **{name: ids}))


@of_tokens
def test_a_sequence_may_be_as_long_as_the_config_says_and_no_longer(row):
    model, batch, most = row.model(), row.batch(), row.config().max_length
    if kinds.PROMISES[row.kind].any_length:
        return
    for side in range(len(model.inputs(batch))):
        ids = [np.ones((1, 2), int) for _ in model.inputs(batch)]
        ids[side] = np.ones((1, most), int)
        assert model.logits(*ids)[0].shape[1] == ids[-1].shape[1]
        ids[side] = np.ones((1, most + 1), int)
        words = f"{most + 1} tokens is longer than the {most} .* larger max_length"
        with pytest.raises(ValueError, match=words):
            model.logits(*ids)


def not_one_batch(*ids):
    """What is no batch, or of several arrays no batches of one size."""
    first, *rest = ids
    yield (first[0], *rest)
    yield (first[None], *rest)
    yield (first[:, :0], *rest)
    yield tuple(x[:0] for x in ids)
    if rest:
        yield first[:1], *rest
        yield first, rest[0][:1]
        yield first, rest[0][0]
        yield first, rest[0][:, :0]


@of_tokens
def test_what_is_no_batch_of_ids_is_refused_with_its_shape(row):
    model = row.model()
    for ids in not_one_batch(*model.inputs(row.batch())):
        shapes = " and ".join(str(x.shape) for x in ids)
        with pytest.raises(ValueError, match=r"\(B, T\), .*; their shapes? (is|are) ") as refused:
            model.logits(*ids)
        assert str(refused.value).endswith(shapes)
