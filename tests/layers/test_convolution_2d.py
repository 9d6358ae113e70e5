"""What convolutions of pictures and pooling promise beside what every layer does."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitransformer.layers.convolution_2d import (
    Convolution2d,
    convolution_2d,
    convolution_2d_backward,
)
from minitransformer.layers.linear import linear
from minitransformer.layers.pooling import (
    average_pooling,
    global_average_pooling,
    max_pooling,
    max_pooling_backward,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 5, 7, 4))
EVERY_WINDOW = [(2, None), (3, 2), (3, 1), (1, 2)]


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


def test_a_convolution_of_single_positions_is_a_linear_map_of_each():
    weight, bias = RNG.standard_normal((1, 1, 4, 6)), RNG.standard_normal(6)
    y, _ = convolution_2d(X, weight, bias)
    np.testing.assert_allclose(y, linear(X, weight[0, 0], bias)[0], rtol=1e-13)


def test_a_window_as_large_as_the_picture_is_a_linear_map_of_all_of_it():
    weight = RNG.standard_normal((5, 5, 4, 6))
    y, _ = convolution_2d(X[:, :, :5], weight)
    of_all, _ = linear(X[:, :, :5].reshape(2, -1), weight.reshape(-1, 6))
    np.testing.assert_allclose(y[:, 0, 0], of_all, rtol=1e-12, atol=1e-12)


def test_a_depthwise_convolution_is_a_convolution_of_each_channel_alone():
    weight = RNG.standard_normal((3, 3, 1, 4))
    y, _ = convolution_2d(X, weight, groups=4, padding=1)
    for c in range(4):
        alone, _ = convolution_2d(X[..., c : c + 1], weight[..., c : c + 1], padding=1)
        np.testing.assert_allclose(y[..., c : c + 1], alone, rtol=1e-12, atol=1e-12)


def test_of_two_towers_neither_sees_the_channels_of_the_other():
    layer = Convolution2d(4, 6, 3, RNG, groups=2).to(dtype=np.float64)
    y, _ = layer.forward(X)
    other = X.copy()
    other[..., 2:] += 1
    of_other, _ = layer.forward(other)
    np.testing.assert_array_equal(of_other[..., :3], y[..., :3])
    assert (of_other[..., 3:] != y[..., 3:]).all()


def test_the_gradient_of_a_picture_is_a_convolution_with_the_kernel_turned_round():
    weight, dy = RNG.standard_normal((3, 3, 4, 6)), RNG.standard_normal((2, 5, 7, 6))
    _, cache = convolution_2d(X, weight, padding=1)
    dx, _, _ = convolution_2d_backward(dy, cache)
    turned, _ = convolution_2d(dy, weight[::-1, ::-1].swapaxes(2, 3), padding=1)
    np.testing.assert_allclose(dx, turned, rtol=1e-12, atol=1e-12)


def test_what_is_left_over_at_the_edge_has_no_gradient():
    _, cache = convolution_2d(X, RNG.standard_normal((2, 2, 4, 6)), stride=3)
    dx, _, _ = convolution_2d_backward(RNG.standard_normal((2, 2, 2, 6)), cache)
    seen = np.zeros((5, 7), bool)
    seen[np.ix_([0, 1, 3, 4], [0, 1, 3, 4])] = True
    np.testing.assert_array_equal((dx != 0).all(axis=(0, 3)), seen)
    np.testing.assert_array_equal((dx != 0).any(axis=(0, 3)), seen)


@pytest.mark.parametrize("groups", [1, 4])
def test_at_first_the_relu_behind_a_convolution_keeps_the_size_of_what_passes(groups):
    layer = Convolution2d(32, 64, 3, np.random.default_rng(1), groups=groups, padding=1)
    y, _ = layer.forward(np.random.default_rng(2).standard_normal((4, 30, 30, 32)))
    assert 0.9 < (np.maximum(y, 0)[:, 1:-1, 1:-1] ** 2).mean() < 1.1
    np.testing.assert_array_equal(layer.bias.data, 0)


# Pooling


def test_of_several_largest_entries_the_first_in_reading_order_has_the_gradient():
    """Rows first, then columns, as PyTorch has it (which the parity test shows, too)."""
    x = np.array([[0, 7, 7, 1], [7, 7, 0, 7], [7, 0, 1, 1]], dtype=float)[None, :, :, None]
    y, cache = max_pooling(x, 2, 1)
    assert (y == 7).all()
    dx = max_pooling_backward(np.array([[1.0, 2, 4], [8, 16, 32]])[None, :, :, None], cache)
    expected = [[0, 1 + 2, 4, 0], [8, 16, 0, 32], [0, 0, 0, 0]]
    np.testing.assert_array_equal(dx[0, :, :, 0], expected)


def test_padding_is_never_the_largest_entry_and_counts_as_zeros_in_a_mean():
    x = -1 - RNG.random((2, 4, 4, 3))
    assert (max_pooling(x, 3, 2, 1)[0] < 0).all()
    y, _ = average_pooling(np.ones((1, 3, 3, 1)), 3, 1, 1)
    np.testing.assert_allclose(9 * y[0, :, :, 0], [[4, 6, 4], [6, 9, 6], [4, 6, 4]])


def test_a_window_with_nan_has_nan_for_its_maximum():
    x = X.copy()
    x[0, 2, 3, 1] = np.nan
    y, _ = max_pooling(x, 2)
    np.testing.assert_array_equal(np.argwhere(np.isnan(y)), [[0, 1, 1, 1]])


@pytest.mark.parametrize(("kernel_size", "stride"), EVERY_WINDOW)
def test_pooling_is_that_of_each_window_alone(kernel_size, stride):
    for pooling, alone in ((max_pooling, np.max), (average_pooling, np.mean)):
        y, _ = pooling(X, kernel_size, stride)
        step = stride or kernel_size
        for u, v in itertools.product(*map(range, y.shape[1:3])):
            window = X[:, u * step : u * step + kernel_size, v * step : v * step + kernel_size]
            np.testing.assert_allclose(y[:, u, v], alone(window, axis=(1, 2)), rtol=1e-13)


def test_the_global_average_is_that_of_one_window():
    square = X[:, :, :5]
    y, _ = average_pooling(square, 5)
    np.testing.assert_allclose(global_average_pooling(square)[0], y[:, 0, 0], rtol=1e-13)
