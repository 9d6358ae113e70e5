import math
import warnings

import numpy as np
import pytest

from minitransformer.layers.gated_linear_unit import gated_linear_unit, gated_linear_unit_backward


def test_each_entry_is_that_of_the_formula():
    x = np.random.default_rng(0).standard_normal((2, 3, 8))
    y, _ = gated_linear_unit(x)
    for index in np.ndindex(y.shape):
        a, b = x[index], x[*index[:-1], index[-1] + 4]
        assert math.isclose(y[index], a / (1 + math.exp(-b)))


def test_an_open_gate_lets_through_and_a_shut_one_does_not():
    x = np.array([[3.0, 3.0, 3.0, 1e4, 0.0, -1e4]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of an exponential that overflows
        y, cache = gated_linear_unit(x)
    np.testing.assert_array_equal(y, [[3.0, 1.5, 0.0]])
    dx = gated_linear_unit_backward(np.ones_like(y), cache)
    np.testing.assert_array_equal(dx, [[1.0, 0.5, 0.0, 0.0, 0.75, 0.0]])


def test_an_odd_number_of_features_is_refused():
    with pytest.raises(ValueError, match=r"\(2, 5\) has no two halves; its last axis must be even"):
        gated_linear_unit(np.zeros((2, 5)))
