"""Convolutions of pictures, some at a time, whose windows stay in the cache.

    y_{u,v} = Σ_i z_{u s + i δ, v} W_i      z_{m,v} = the k positions of row m in window v's columns

where W_i (k C, E) has the taps of row i, one above the other. A row of z serves all windows it
stands in, whichever of their k rows it is, so that x is copied k times and not k² times; in return
there are k products to add up. Rows whose numbers leave the same rest by the stride lie together,
so that the rows which the windows meet with tap i are one matrix (Y' X', k C) of each picture.

With stride 1, dx is the convolution of dy with the kernel turned round, whose windows d of dy give
dW as well, when each tap is paired with the position it sees in place of the window it is in:

    dx_{m,n} = Σ_{i,j} d_{m,n,i,j} W_{k-1-i,k-1-j}ᵀ
    dW_{k-1-i,k-1-j} = Σ_{m,n} x_{m,n}ᵀ d_{m,n,i,j}

So nothing is scattered, and of both arrays only dy is copied. With larger strides windows of x are
made a second time, and dx is added up as in the reference.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from minitransformer.core.twins import Twin
from minitransformer.layers import convolution_2d as reference
from minitransformer.layers.convolution_2d import check_channels, window_places

BUFFER = 3 << 18  # bytes of windows at a time; with what they are multiplied with, the L2 cache
# Products of at most so many multiplications OpenBLAS makes with AVX-512 without packing anything,
# faster for the few channels of small pictures. Fewer rows than ROWS are no gain.
SMALL, ROWS = 10**6, 32


def convolution_2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """As the reference."""
    check_channels(x, weight, groups)
    kernel_size, c_out = len(weight), weight.shape[-1]
    places = window_places(x.shape, kernel_size, stride, padding, dilation)
    y_rows, y_columns = (len(range(place.start, place.stop, stride)) for place in places[0])
    y = np.empty((len(x), y_rows, y_columns, c_out), x.dtype)  # (B, Y', X', E)
    for of_x, of_y in _of_groups(x, y, groups):
        windows = Windows(x[..., of_x], kernel_size, stride, padding, dilation)
        kernel = _by_rows(weight[..., of_y])  # (k, k c, e)
        for part, taps in windows:
            _add_products(taps, kernel, y[part, ..., of_y])
    if bias is not None:
        y += bias
    return y, (x, weight, bias, stride, padding, dilation, groups)


def convolution_2d_backward(dy, cache):
    """As the reference."""
    x, weight, bias, stride, padding, dilation, groups = cache
    dbias = None if bias is None else dy.sum(axis=(0, 1, 2))  # (E,)
    around = (len(weight) - 1) * dilation - padding  # dy, for windows at all positions of x
    dx, dweight = np.empty(x.shape, dy.dtype), np.empty(weight.shape, dy.dtype)
    for of_x, of_y in _of_groups(x, dy, groups):
        arrays = dy[..., of_y], x[..., of_x], weight[..., of_y], dx[..., of_x]
        if stride == 1 and around >= 0:
            of_group = _by_convolution(*arrays, around, dilation)  # (k, k, c, e)
        else:
            of_group = _by_adding_up(*arrays, stride, padding, dilation)
        dweight[..., of_y] = of_group
    return dx, dweight, dbias


def _by_convolution(dy, x, weight, dx, around, dilation):
    """dweight of a group, with stride 1; writes its dx."""
    kernel_size, _, c, e = weight.shape
    dkernel = np.zeros((kernel_size, c, kernel_size * e), dy.dtype)  # (k, c, k e), turned round
    turned = _by_rows(weight[::-1, ::-1].swapaxes(2, 3))  # (k, k e, c)
    for part, taps in Windows(dy, kernel_size, 1, around, dilation):
        _add_products(taps, turned, dx[part])
        x_turned = x[part].reshape(len(taps[0]), -1, c).swapaxes(1, 2)  # (n, c, Y X)
        for dkernel_of_tap, seen in zip(dkernel, taps, strict=True):
            dkernel_of_tap += (x_turned @ seen).sum(axis=0)
    dkernel = dkernel.reshape(kernel_size, c, kernel_size, e).swapaxes(1, 2)  # (k, k, c, e)
    return dkernel[::-1, ::-1]  # (k, k, c, e)


def _by_adding_up(dy, x, weight, dx, stride, padding, dilation):
    """dweight of a group, with any stride; writes its dx."""
    kernel_size, _, c, e = weight.shape
    kernel = _by_rows(weight)  # (k, k c, e)
    dkernel = np.zeros(kernel.shape, dy.dtype)
    windows = Windows(x, kernel_size, stride, padding, dilation)
    places = window_places(x.shape, kernel_size, stride, padding, dilation)
    for part, taps in windows:
        dy_rows = dy[part].reshape(len(taps[0]), -1, e)  # (n, Y' X', e)
        dpadded = np.zeros(windows.padded[: len(taps[0])].shape, dy.dtype)
        for i, seen in enumerate(taps):
            dkernel[i] += (seen.swapaxes(1, 2) @ dy_rows).sum(axis=0)
            dseen = (dy_rows @ kernel[i].T).reshape(*dy[part].shape[:3], kernel_size, c)
            for j in range(kernel_size):
                dpadded[:, *places[i * kernel_size + j]] += dseen[:, :, :, j]
        dx[part] = dpadded[:, *windows.inner]
    return dkernel.reshape(weight.shape)


class Windows:
    """Some pictures at a time, and the windows of columns in each of their rows.

    Iterating gives (part, taps): which pictures, and for each of the k rows of windows the matrices
    (n, Y' X', k c), which the next ones overwrite.

    Args:
        x: (B, Y, X, c).
        kernel_size, stride, padding, dilation: as for ``convolution_2d``.
    """

    def __init__(self, x, kernel_size, stride, padding, dilation):
        batch, rows, columns, c = x.shape
        self.x, self.stride = x, stride
        self.starts = range(0, kernel_size * dilation, dilation)  # of the taps, in the first window
        self.y_rows, y_columns = (
            (size + 2 * padding - self.starts[-1] - 1) // stride + 1 for size in (rows, columns)
        )
        self.inner = slice(padding, padding + rows), slice(padding, padding + columns)
        rests = max(self.y_rows + self.starts[-1] // stride, -(-(rows + 2 * padding) // stride))
        self.y_size = self.y_rows * y_columns
        row_size = kernel_size * c * y_columns * x.itemsize
        at_a_time = max(1, min(batch, BUFFER // (row_size * rests * stride)))
        self.padded = np.zeros((at_a_time, rests * stride, columns + 2 * padding, c), x.dtype)
        picture, row, column, channel = self.padded.strides
        self.views = as_strided(
            self.padded,
            (at_a_time, stride, rests, y_columns, kernel_size, c),
            (picture, row, stride * row, stride * column, dilation * column, channel),
        )
        self.z = np.empty(self.views.shape, x.dtype)

    def __iter__(self):
        for start in range(0, len(self.x), len(self.z)):
            part = slice(start, start + len(self.z))
            n = len(self.x[part])
            self.padded[:n, *self.inner] = self.x[part]
            np.copyto(self.z[:n], self.views[:n])
            first = (divmod(start, self.stride)[::-1] for start in self.starts)
            yield (
                part,
                [
                    self.z[:n, rest, row : row + self.y_rows].reshape(n, self.y_size, -1)
                    for rest, row in first
                ],
            )


def _add_products(taps, kernel, y):
    """Write Σ_i taps_i kernel_i to y (n, Y', X', e).

    Args:
        taps: k of (n, Y' X', k c).
        kernel: (k, k c, e).
    """
    n, rows, _ = taps[0].shape
    blocks = 1
    if SMALL // kernel[0].size >= ROWS:
        least = -(-rows * kernel[0].size // SMALL)
        blocks = next(count for count in range(least, rows + 1) if rows % count == 0)
    y = y.reshape(n, blocks, -1, y.shape[-1])  # a view, as Y' and X' lie together in every group
    for i, (seen, kernel_of_tap) in enumerate(zip(taps, kernel, strict=True)):
        seen = seen.reshape(n, blocks, rows // blocks, -1)  # (n, blocks, rows of a block, k c)
        if i == 0:
            np.matmul(seen, kernel_of_tap, out=y)
        else:
            y += seen @ kernel_of_tap


def _by_rows(weight):
    """The taps of each row, one above the other: (k, k, c, e) as (k, k c, e), contiguous."""
    kernel_size, _, c, e = weight.shape
    return np.ascontiguousarray(weight).reshape(kernel_size, kernel_size * c, e)


def _of_groups(x, y, groups):
    """The channels of each group in x and in y, as slices."""
    c, e = x.shape[-1] // groups, y.shape[-1] // groups
    return [(slice(g * c, (g + 1) * c), slice(g * e, (g + 1) * e)) for g in range(groups)]


reference.convolution_2d.twins.setdefault("numpy", Twin(convolution_2d, convolution_2d_backward))
