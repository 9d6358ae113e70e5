"""A copy of a replica, and how a model goes to another process."""

import copy
import io
import pickle

import numpy as np
import pytest

from minitransformer import Transformer
from minitransformer.cases.case import BATCH, SOURCE, TARGET
from minitransformer.cases.models import small_config
from minitransformer.core.backend import Device


@pytest.fixture
def model():
    return Transformer(small_config("pre"), dtype=np.float64)


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
