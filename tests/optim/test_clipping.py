import math

import numpy as np
import pytest
from rounding import assert_but_for_rounding

from minitransformer.core.backend import to_host
from minitransformer.optim.clipping import clip_scale, gradient_norm

GRAD = np.array([3, -4, 12], np.float32)  # of norm 13


def test_the_norm_is_that_of_the_whole_gradient(device):
    norm = gradient_norm(device.asarray(GRAD))
    assert norm.dtype == np.float32
    assert float(norm) == 13


@pytest.mark.parametrize("max_norm", [13.5, 1e9, math.inf])
def test_a_gradient_below_the_limit_is_left_as_it_is(device, max_norm):
    assert float(clip_scale(gradient_norm(device.asarray(GRAD)), max_norm)) == 1


def test_a_larger_one_is_scaled_to_the_limit(device):
    grad = device.asarray(GRAD)
    clipped = grad * clip_scale(gradient_norm(grad), 2.0)
    assert_but_for_rounding(clipped, GRAD * np.float32(2 / 13), additions=1)


def test_a_gradient_of_zero_stays_zero(device):
    grad = device.asarray(np.zeros(5, np.float32))
    np.testing.assert_array_equal(to_host(grad * clip_scale(gradient_norm(grad), 1.0)), np.zeros(5))


def test_a_nan_is_not_hidden():
    assert np.isnan(clip_scale(gradient_norm(np.array([1.0, np.nan])), 1.0))
