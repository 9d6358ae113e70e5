"""Replicas of a model, and copies of them; models in other processes."""

import copy
import io
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from minitransformer import Adam, Transformer
from minitransformer.cases.case import BATCH, SOURCE, TARGET
from minitransformer.cases.models import small_config
from minitransformer.core.backend import Device
from minitransformer.runs.checkpoint.arrays import load_model_arrays, model_arrays


@pytest.fixture
def model():
    return Transformer(small_config("pre"), dtype=np.float64)


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


def test_a_copy_of_a_replica_is_a_model_of_its_own(model):
    copied = copy.deepcopy(model.replica())
    copied.flat.data += 1
    assert not np.shares_memory(copied.flat.data, model.flat.data)
    logits, _ = model.forward(SOURCE, TARGET)
    assert (copied.forward(SOURCE, TARGET)[0] != logits).any()
    _, cache = copied.loss(BATCH)
    copied.loss_backward(1.0, cache)
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
