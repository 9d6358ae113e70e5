"""Replicas of a model share its parameters and collect gradients of their own."""

import copy
import io
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from minitransformer import Adam, Transformer
from minitransformer.cases.case import SOURCE, TARGET
from minitransformer.cases.models import small_config
from minitransformer.core.backend import Device
from minitransformer.data.text.batches import make_batches
from minitransformer.runs.checkpoint.arrays import load_model_arrays, model_arrays

PAIRS = [([3 + i % 7] * (1 + i % 5), [4 + i % 6] * (1 + i % 3)) for i in range(11)]


@pytest.fixture
def model():
    return Transformer(small_config("pre"), dtype=np.float64)


def add_gradient(model, batch, num_tokens=None):
    losses, cache = model.loss(batch, smoothing=0.1, num_tokens=num_tokens)
    model.loss_backward(1.0, cache)
    return np.array(losses)


@pytest.mark.parametrize("tying", ["three-way", "none"])
def test_a_replica_has_the_parameters_of_the_model_and_not_a_copy(tying):
    model = Transformer(small_config("pre", tying))
    replica = model.replica()
    assert replica.flat.data is model.flat.data
    ours, own = dict(model.named_parameters()), dict(replica.named_parameters())
    assert ours.keys() == own.keys()
    for path, parameter in ours.items():
        assert own[path] is not parameter
        assert own[path].data.ctypes.data == parameter.data.ctypes.data
        assert own[path].data.shape == parameter.data.shape


def test_gradients_of_a_replica_are_its_own_and_views_of_its_flat_one(model):
    replica = model.replica()
    assert not np.shares_memory(replica.flat.grad, model.flat.grad)
    model.flat.grad[:] = 7
    assert not replica.flat.grad.any()
    (batch,) = make_batches(PAIRS, 1000)
    add_gradient(replica, batch)
    assert (model.flat.grad == 7).all()
    for parameter, piece in zip(replica.parameters(), replica.flat.slices.values(), strict=True):
        np.testing.assert_array_equal(parameter.grad.reshape(-1), replica.flat.grad[piece])


def test_what_changes_the_parameters_of_a_model_changes_those_of_its_replicas(model):
    replica = model.replica()
    stored = copy.deepcopy(model_arrays(model))
    address = model.flat.data.ctypes.data

    def same_logits():
        logits, _ = model.forward(SOURCE, TARGET)
        np.testing.assert_array_equal(replica.forward(SOURCE, TARGET)[0], logits)
        return logits

    first = same_logits()
    model.flat.grad[:] = 1
    Adam(model.flat).step(0.01)
    assert (same_logits() != first).any()
    load_model_arrays(model, stored)
    np.testing.assert_array_equal(same_logits(), first)
    assert replica.flat.data.ctypes.data == model.flat.data.ctypes.data == address


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_gradients_of_shards_add_up_to_that_of_the_batch(model, count):
    (batch,) = make_batches(PAIRS, 1000)
    replicas = [model.replica() for _ in range(count)]
    losses = add_gradient(model, batch)
    shard_losses = [
        add_gradient(replica, shard, batch.num_tokens)
        for replica, shard in zip(replicas, batch.split(count), strict=True)
        if shard.num_tokens
    ]
    total = sum(replica.flat.grad for replica in replicas)
    np.testing.assert_allclose(sum(shard_losses), losses, rtol=1e-12)
    np.testing.assert_allclose(
        total, model.flat.grad, rtol=0, atol=1e-12 * np.abs(model.flat.grad).max()
    )


def test_a_copy_of_a_replica_is_a_model_of_its_own(model):
    copied = copy.deepcopy(model.replica())
    copied.flat.data += 1
    assert not np.shares_memory(copied.flat.data, model.flat.data)
    logits, _ = model.forward(SOURCE, TARGET)
    assert (copied.forward(SOURCE, TARGET)[0] != logits).any()
    add_gradient(copied, make_batches([([4], [5])], 10)[0])
    assert copied.flat.grad.any()
    assert not model.flat.grad.any()


def test_in_another_process_the_device_is_there_before_any_array_comes(model):
    """Which CuPy puts on whatever device is the current one."""
    stored = []

    class Noting(pickle.Pickler):
        def reducer_override(self, thing):
            stored.append(type(thing))
            return NotImplemented

    Noting(io.BytesIO()).dump(model)
    assert stored.index(Device) < stored.index(np.ndarray)


def test_a_model_works_in_another_process(model):
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawned) as process:
        logits, _ = process.submit(model.forward, SOURCE, TARGET).result()
    np.testing.assert_array_equal(logits, model.forward(SOURCE, TARGET)[0])
