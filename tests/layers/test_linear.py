import math

import numpy as np
import pytest

from minitransformer.layers.linear import Linear, glorot_uniform, linear

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 4))


def test_every_row_is_mapped_by_the_same_weights():
    weight, bias = RNG.standard_normal((4, 5)), RNG.standard_normal(5)
    y, _ = linear(X, weight, bias)
    for b in range(2):
        for t in range(3):
            expected = sum(X[b, t, i] * weight[i] for i in range(4)) + bias
            np.testing.assert_allclose(y[b, t], expected, rtol=1e-12)


def test_without_a_bias_zero_stays_zero_and_no_parameter_is_kept_for_it():
    layer = Linear(4, 5, RNG, bias=False)
    y, _ = layer.forward(np.zeros((2, 4)))
    assert not y.any()
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


def test_a_new_bias_is_zero():
    bias = Linear(4, 5, RNG).bias.data
    assert bias.shape == (5,)
    assert bias.dtype == np.float32
    assert not bias.any()


def test_first_weights_are_uniform_within_the_limit_of_glorot():
    weight = glorot_uniform((300, 500), np.random.default_rng(1))
    limit = math.sqrt(6 / 800)
    assert weight.dtype == np.float32
    assert 0.999 * limit < np.abs(weight).max() <= limit
    assert abs(weight.var() * 3 / limit**2 - 1) < 0.01  # variance of the uniform: limit² / 3


def test_an_input_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"\(2, 5\) does not fit a weight of shape \(4, 3\)"):
        linear(np.ones((2, 5)), np.ones((4, 3)))
