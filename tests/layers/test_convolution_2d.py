"""What convolutions of pictures and pooling promise beside what every layer does."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitransformer.layers.convolution_2d import convolution_2d
from minitransformer.layers.pooling import average_pooling, max_pooling, max_pooling_backward

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 5, 7, 4))


def in_loops(x, weight, bias, stride, padding, dilation, groups):
    """The formula, a product of two numbers at a time."""
    kernel_size, _, c, c_out = weight.shape
    batch, height, columns, _ = x.shape
    span = (kernel_size - 1) * dilation + 1
    rows_of_y, columns_of_y = (
        math.floor((size + 2 * padding - span) / stride) + 1 for size in (height, columns)
    )
    y = np.empty((batch, rows_of_y, columns_of_y, c_out))
    for b, u, v, e in np.ndindex(y.shape):
        first = e // (c_out // groups) * c
        y[b, u, v, e] = bias[e]
        for i, j, channel in np.ndindex(kernel_size, kernel_size, c):
            row, column = u * stride + i * dilation - padding, v * stride + j * dilation - padding
            if 0 <= row < height and 0 <= column < columns:
                y[b, u, v, e] += x[b, row, column, first + channel] * weight[i, j, channel, e]
    return y


@given(
    sizes=st.tuples(st.integers(1, 2), st.integers(3, 6), st.integers(3, 6)),
    of_kernel=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2)),
    channels=st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 2)),
)
def test_a_convolution_is_the_sum_of_its_formula(sizes, of_kernel, channels):
    kernel_size, stride, padding, dilation = of_kernel
    groups, c, e = channels
    if (kernel_size - 1) * dilation + 1 > min(sizes[1:]) + 2 * padding:
        padding = dilation  # so that a window fits
    x = RNG.standard_normal((*sizes, groups * c))
    weight = RNG.standard_normal((kernel_size, kernel_size, c, groups * e))
    bias = RNG.standard_normal(groups * e)
    how = stride, padding, dilation, groups
    y, _ = convolution_2d(x, weight, bias, *how)
    np.testing.assert_allclose(y, in_loops(x, weight, bias, *how), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kernel_size", "stride"), [(2, None), (3, 2), (3, 1), (1, 2)])
def test_pooling_is_that_of_each_window_alone(kernel_size, stride):
    for pooling, alone in ((max_pooling, np.max), (average_pooling, np.mean)):
        y, _ = pooling(X, kernel_size, stride)
        step = stride or kernel_size
        for u, v in itertools.product(*map(range, y.shape[1:3])):
            window = X[:, u * step : u * step + kernel_size, v * step : v * step + kernel_size]
            np.testing.assert_allclose(y[:, u, v], alone(window, axis=(1, 2)), rtol=1e-13)


def test_of_several_largest_entries_the_first_in_reading_order_has_the_gradient():
    """Rows first, then columns, as PyTorch has it (which the parity test shows, too)."""
    x = np.array([[0, 7, 7, 1], [7, 7, 0, 7], [7, 0, 1, 1]], dtype=float)[None, :, :, None]
    y, cache = max_pooling(x, 2, 1)
    assert (y == 7).all()
    dx = max_pooling_backward(np.array([[1.0, 2, 4], [8, 16, 32]])[None, :, :, None], cache)
    expected = [[0, 1 + 2, 4, 0], [8, 16, 0, 32], [0, 0, 0, 0]]
    np.testing.assert_array_equal(dx[0, :, :, 0], expected)


def test_a_window_with_nan_has_nan_for_its_maximum():
    x = X.copy()
    x[0, 2, 3, 1] = np.nan
    y, _ = max_pooling(x, 2)
    np.testing.assert_array_equal(np.argwhere(np.isnan(y)), [[0, 1, 1, 1]])
