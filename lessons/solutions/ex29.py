"""Solutions of lesson 29, seeing."""

import numpy as np

from minitransformer.layers.convolution_2d import convolution_2d


def rows_in_no_window(rows, kernel_size, stride, padding):
    """Between two windows there are rows where the stride is larger than they are.

    A list of what is seen needs no case for what lies in the padding. One for the gaps and one for
    the end would: a gap may begin in the padding.
    """
    first_of_each = range(0, rows + 2 * padding - kernel_size + 1, stride)
    seen = {first + i - padding for first in first_of_each for i in range(kernel_size)}
    return rows - len(seen & set(range(rows)))


def without_groups(weight, num_groups):
    """Blocks along the diagonal, and zeros: of G² blocks G are not 0.

    So a convolution in groups has 1/G of the weights and of the work. With a group for each channel
    (C = G) it is a depthwise one: all that mixes channels is gone.
    """
    k, _, c, c_out = weight.shape
    e = c_out // num_groups
    full = np.zeros((k, k, c * num_groups, c_out), weight.dtype)
    for group in range(num_groups):
        outs = slice(group * e, (group + 1) * e)
        full[:, :, group * c : (group + 1) * c, outs] = weight[..., outs]
    return full


def dx_as_a_convolution(dy, weight, shape, stride, padding):
    """Entry m of dx has dy of row u at place m + p − u s of the kernel, which is turned.

    Where stride 1 would have had an answer and stride s has none, dy is 0. k − 1 zeros in front let
    the last row of the kernel reach the first of dy, and the p rows of the padding, whose gradient
    nobody wants, are left away. Behind dy there are as many zeros as the shape of x asks for.
    """
    k, (batch, rows, columns, _) = len(weight), shape
    front = k - 1 - padding
    spread = np.zeros((batch, rows + k - 1, columns + k - 1, dy.shape[-1]), dy.dtype)
    last = (front + stride * (size - 1) + 1 for size in dy.shape[1:3])
    spread[:, *(slice(front, end, stride) for end in last)] = dy
    turned = weight[::-1, ::-1].swapaxes(2, 3)  # (k, k, E, C)
    dx, _ = convolution_2d(spread, turned)
    return dx


def rms_pooling(x, kernel_size):
    """Unlike the maximum it hears every entry, and the loud ones most."""
    batch, rows, columns, channels = x.shape
    k = kernel_size
    of_windows = x.reshape(batch, rows // k, k, columns // k, k, channels)
    y = np.sqrt((of_windows * of_windows).mean(axis=(2, 4)))  # (B, Y/k, X/k, C)
    return y, (of_windows, y)


def rms_pooling_backward(dy, cache):
    """2 y ∂y/∂x_i = 2 x_i / k², so each entry gets dy in proportion to itself.

    Where a window is 0 the root has a corner, as a length has at 0; x / y is 0 / 0 there. A divisor
    of 1 in its place leaves 0.
    """
    of_windows, y = cache
    batch, rows, k, columns, _, channels = of_windows.shape
    share = dy / (k * k * np.where(y > 0, y, 1))  # (B, Y/k, X/k, C)
    dx = of_windows * share[:, :, None, :, None]
    return dx.reshape(batch, rows * k, columns * k, channels)
