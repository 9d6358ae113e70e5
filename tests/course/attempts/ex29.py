import numpy as np
from exercise_files import functions_in, solution_of

from minitransformer.layers.convolution_2d import convolution_2d

of_blocks = functions_in(solution_of("ex29"))["without_groups"]
rms_backward = functions_in(solution_of("ex29"))["rms_pooling_backward"]

LAST = "rows + 2 * padding - kernel_size + 1"
TURNED = "weight[::-1, ::-1].swapaxes(2, 3)"
SIDES = "spread.shape[1:], dy.shape[1:3]"
MEAN = "(of_windows * of_windows).mean(axis=(2, 4))"


def by_marks(rows, kernel_size, stride, padding):
    seen = np.zeros(rows + 2 * padding, bool)
    for first in range(0, len(seen) - kernel_size + 1, stride):
        seen[first : first + kernel_size] = True
    return int((~seen[padding : padding + rows]).sum())


def left_over_alone(rows, kernel_size, stride, padding):
    return max(0, (rows + 2 * padding - kernel_size) % stride - padding)


def gaps_alone(rows, kernel_size, stride, padding):
    windows = (rows + 2 * padding - kernel_size) // stride + 1
    return (windows - 1) * max(0, stride - kernel_size)


def by_mask(weight, groups):
    c_in, c_out = weight.shape[2] * groups, weight.shape[3]
    of_one_group = np.arange(c_in)[:, None] * groups // c_in == np.arange(c_out) * groups // c_out
    return np.tile(weight, (1, 1, groups, 1)) * of_one_group


def interleaved(weight, groups):
    c_in, c_out = weight.shape[2] * groups, weight.shape[3]
    of_one_group = np.arange(c_in)[:, None] % groups == np.arange(c_out) % groups
    return np.tile(weight, (1, 1, groups, 1)) * of_one_group


def by_the_right_padding(dy, weight, shape, stride, padding):
    """A grid of dy first, then zeros around it as many as are missing."""
    grid = np.zeros((len(dy), *((n - 1) * stride + 1 for n in dy.shape[1:3]), dy.shape[-1]))
    grid[:, ::stride, ::stride] = dy
    front = len(weight) - 1 - padding
    behind = [n + len(weight) - 1 - front - m for n, m in zip(shape[1:3], grid.shape[1:3])]  # noqa: B905
    grid = np.pad(grid, ((0, 0), *((front, rest) for rest in behind), (0, 0)))
    return convolution_2d(grid, np.flip(weight, (0, 1)).transpose(0, 1, 3, 2))[0]


def with_what_is_left_over_in_front(dy, weight, shape, stride, padding):
    grid = np.zeros((len(dy), *((n - 1) * stride + 1 for n in dy.shape[1:3]), dy.shape[-1]))
    grid[:, ::stride, ::stride] = dy
    behind = len(weight) - 1 - padding
    sides = zip(shape[1:3], grid.shape[1:3], strict=True)
    front = [n + len(weight) - 1 - behind - m for n, m in sides]
    grid = np.pad(grid, ((0, 0), *((some, behind) for some in front), (0, 0)))
    return convolution_2d(grid, np.flip(weight, (0, 1)).swapaxes(2, 3))[0]


def without_what_is_left_over(dy, weight, shape, stride, padding):
    front = len(weight) - 1 - padding
    grid = np.zeros((len(dy), *((n - 1) * stride + 1 for n in dy.shape[1:3]), dy.shape[-1]))
    grid[:, ::stride, ::stride] = dy
    return convolution_2d(grid, np.flip(weight, (0, 1)).swapaxes(2, 3), None, 1, front)[0]


def of_windows_in_a_loop(x, kernel_size):
    k, (batch, rows, columns, channels) = kernel_size, x.shape
    y = np.empty((batch, rows // k, columns // k, channels))
    for u in range(rows // k):
        for v in range(columns // k):
            window = x[:, u * k : u * k + k, v * k : v * k + k]
            y[:, u, v] = np.sqrt(np.square(window).mean(axis=(1, 2)))
    return y, (x.reshape(batch, rows // k, k, columns // k, k, channels), y)


WRONG = r"""
rows_in_no_window
    left_over_alone || leave rows between them
    gaps_alone || the last window may end before
    + i - padding -> + i || padding is on both sides
    return rows - -> return rows + 2 * padding - || is itself no part of the picture
    $LAST -> rows + 2 * padding || the last window may end before
    $LAST -> rows - kernel_size + 1 || the padding moves the windows
    $LAST -> rows + padding - kernel_size + 1 || begins in the padding
    + 1, stride) -> , stride) || see every row
    range(kernel_size) -> range(1) || see every row
without_groups
    np.zeros -> np.ones || is 0 unless both are of one group
    lambda weight, groups: np.tile(weight, (1, 1, groups, 1)) || where they meet, there are zeros
    interleaved || not every G-th
    lambda weight, groups: np.roll(of_blocks(weight, groups), weight.shape[2], axis=2)
        || yours are crossed
    return full -> return full / num_groups || it is no mean
    weight[..., outs] -> weight[..., :e] || yours are those of the first
    return full -> return full.swapaxes(2, 3) || has the shape (3, 3, 6, 4)
    c * num_groups, c_out -> c, c_out || (3, 3, 2, 6)
dx_as_a_convolution
    $TURNED -> weight.swapaxes(2, 3) || by half a turn
    $TURNED -> weight[::-1].swapaxes(2, 3) || turned in its columns, too
    $TURNED -> weight[:, ::-1].swapaxes(2, 3) || turned in its rows, too
    $TURNED -> $TURNED.swapaxes(0, 1) || rows and columns of the kernel are exchanged
    $TURNED -> weight[::-1, ::-1] || raised ValueError
    $TURNED -> weight[::-1, ::-1].reshape(k, k, -1, weight.shape[2]) || a reshape mixes them
    without_what_is_left_over || has the shape
    front = k - 1 - padding -> front = padding || zeros between the entries of dy
    slice(front, end, stride) for end in last
        -> slice(n - 1 - stride * (m - 1), n, stride) for n, m in zip($SIDES)
        || belong behind dy, too
    with_what_is_left_over_in_front || at the lower and the right end, not in front
    front = k - 1 - padding -> front = k - 1 || k − 1 − p zeros
rms_pooling
    .mean(axis=(2, 4)) -> .sum(axis=(2, 4)) || not their sum
    np.sqrt($MEAN) -> $MEAN || the root is missing
    np.sqrt($MEAN) -> np.sqrt($MEAN * kernel_size) || k² entries, not k
    np.sqrt($MEAN) -> abs(of_windows).mean(axis=(2, 4)) || not the mean of the sizes
    $MEAN -> np.broadcast_to($MEAN.mean(axis=-1, keepdims=True), $MEAN.shape)
        || each channel for itself
    .reshape(batch, rows // k, k, columns // k, k, channels)
        -> .reshape(batch, k, rows // k, k, columns // k, channels).transpose(0, 2, 1, 4, 3, 5)
        || y = √(mean of x²)
rms_pooling_backward
    k * k * np.where -> k * np.where || 3 times too large
    k * k * np.where -> np.where || 9 times too large
    share[:, :, None, :, None] -> dy[:, :, None, :, None] || dx
    np.where(y > 0, y, 1) -> y || where a window is 0, so is dx
    np.where(y > 0, y, 1) -> (y + 1e-3) || dx
    np.where(y > 0, y, 1) -> 1 || divide by y
    np.where(y > 0, y, 1) -> np.where(y < 1e-6, np.inf, y) || and not where it is small
    np.where(y > 0, y, 1) -> np.maximum(y, 1e-3) || and not where it is small
"""
RIGHT = """
rows_in_no_window
    by_marks
without_groups
    by_mask
dx_as_a_convolution
    by_the_right_padding
rms_pooling
    of_windows_in_a_loop
rms_pooling_backward
    np.where(y > 0, y, 1) -> np.maximum(y, 1e-300)
"""
