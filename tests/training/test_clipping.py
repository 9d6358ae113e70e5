import math

import numpy as np
import pytest

from minitransformer.backend import to_host
from minitransformer.training.clipping import clip_gradient

GRAD = np.array([3, -4, 12], np.float32)  # of norm 13


@pytest.mark.parametrize("max_norm", [13.5, 1e9, math.inf])
def test_a_gradient_below_the_limit_is_left_as_it_is(device, max_norm):
    grad = device.asarray(GRAD.copy())
    assert float(clip_gradient(grad, max_norm)) == 13
    np.testing.assert_array_equal(to_host(grad), GRAD)


def test_a_larger_one_is_scaled_in_place_to_the_limit(device):
    grad = device.asarray(GRAD.copy())
    same = grad
    assert float(clip_gradient(grad, 2.0)) == 13
    assert grad is same
    assert grad.dtype == np.float32
    np.testing.assert_allclose(to_host(grad), GRAD * 2 / 13, rtol=1e-6)


def test_a_gradient_of_zero_stays_zero(device):
    grad = device.asarray(np.zeros(5, np.float32))
    assert float(clip_gradient(grad, 1.0)) == 0
    np.testing.assert_array_equal(to_host(grad), np.zeros(5))


def test_a_nan_is_not_hidden():
    grad = np.array([1.0, np.nan])
    assert np.isnan(clip_gradient(grad, 1.0))
    assert np.isnan(grad).any()
