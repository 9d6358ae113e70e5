"""Recurrent layers are tried with all others; this is what they alone are asked."""

from functools import partial

import numpy as np
import pytest

from minitransformer.layers.bidirectional import Bidirectional
from minitransformer.layers.elman import Elman
from minitransformer.layers.gru import GRU
from minitransformer.layers.lstm import LSTM

KINDS = Elman, GRU, LSTM
MAKES = {
    **{kind.__name__: kind for kind in KINDS},
    **{f"{kind.__name__}, from the end": partial(kind, reverse=True) for kind in KINDS},
    **{f"{kind.__name__}, both ways": partial(Bidirectional, kind) for kind in KINDS},
}


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_no_gradient_of_an_output_is_as_one_of_zeros(make):
    rng = np.random.default_rng(0)
    layer = make(4, 3, rng).to(dtype=np.float64)
    outputs, cache = layer.forward(rng.standard_normal((3, 5, 4)))
    doutputs = [rng.standard_normal(y.shape) for y in outputs]

    def gradients(doutputs):
        layer.zero_grad()
        dinputs = layer.backward(doutputs, cache)
        dinputs = dinputs if isinstance(dinputs, tuple) else (dinputs,)
        return *dinputs, *(parameter.grad.copy() for parameter in layer.parameters())

    for i in range(len(outputs)):
        without = [None if j == i else d for j, d in enumerate(doutputs)]
        zeros = [0 * d if j == i else d for j, d in enumerate(doutputs)]
        for found, expected in zip(gradients(without), gradients(zeros), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_float32_stays_float32_without_a_gradient_of_the_last_state(make):
    layer = make(4, 3, np.random.default_rng(0))
    (y, *last), cache = layer.forward(np.ones((3, 5, 4), np.float32))
    dx = layer.backward((y, *(None for _ in last)), cache)
    assert (dx[0] if isinstance(dx, tuple) else dx).dtype == np.float32
