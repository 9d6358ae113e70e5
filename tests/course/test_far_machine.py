"""The machine far away of exercise 90."""

import math

import numpy as np
import pytest

from minitransformer.course.exercises.far_machine import FarMachine
from minitransformer.layers.attention import multi_head_attention, multi_head_attention_backward


def test_the_far_machine_refuses_what_comes_from_here():
    far = FarMachine()
    x, here = far.asarray([1.0, 2.0]), np.ones(2)
    assert far.asarray(x) is x
    assert far.asarray(x, np.float32).dtype == np.float32
    for mix in (
        lambda: x + here,
        lambda: here + x,
        lambda: here @ x,
        lambda: np.exp(x),
        lambda: np.asarray(x),
        lambda: far.where(x > 1, x, here),
        lambda: far.concatenate([x, here]),
    ):
        with pytest.raises(TypeError, match=r"far array|FarArray"):
            mix()


def test_the_far_machine_counts_what_crosses_and_what_waits():
    far = FarMachine()
    x = far.asarray([3.0, 4.0])
    norm = far.sqrt((x * x).sum())
    assert (far.uploads, far.waits) == (1, 0)
    assert math.sqrt(norm * norm) == 5
    assert bool(norm > 1)
    assert x[x > 3].get().tolist() == [4]
    assert (far.uploads, far.waits) == (1, 4)


def test_a_layer_gives_the_same_on_the_far_machine_bit_for_bit():
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape) for shape in [(2, 5, 8)] * 3 + [(8, 8)] * 4]
    far = FarMachine()
    there = [far.asarray(array) for array in arrays]
    y, cache = multi_head_attention(*arrays, 2)
    far_y, far_cache = multi_head_attention(*there, 2)
    gradients = multi_head_attention_backward(y, cache)
    far_gradients = multi_head_attention_backward(far_y, far_cache)
    assert far.waits == 0
    for near, away in zip([y, *gradients], [far_y, *far_gradients], strict=True):
        assert np.array_equal(near, away.get())
