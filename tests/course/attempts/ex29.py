import numpy as np
from exercise_files import functions_in, solution_of

of_blocks = functions_in(solution_of("ex29"))["without_groups"]

LAST = "rows + 2 * padding - kernel_size + 1"
TURNED = "weight[::-1, ::-1].swapaxes(2, 3)"
SIDES = "spread.shape[1:], dy.shape[1:3]"
MEAN = "(of_windows * of_windows).mean(axis=(2, 4))"


def interleaved(weight, groups):
    c_in, c_out = weight.shape[2] * groups, weight.shape[3]
    of_one_group = np.arange(c_in)[:, None] % groups == np.arange(c_out) % groups
    return np.tile(weight, (1, 1, groups, 1)) * of_one_group


WRONG = r"""
rows_in_no_window
    lambda rows, k, s, p: max(0, (rows + 2 * p - k) % s - p) || leave rows between them
    + i - padding -> + i || padding is on both sides
    return rows - -> return rows + 2 * padding - || is itself no part of the picture
    $LAST -> rows + 2 * padding || the last window may end before
    $LAST -> rows - kernel_size + 1 || the padding moves the windows
    $LAST -> rows + padding - kernel_size + 1 || begins in the padding
    + 1, stride) -> , stride) || see every row
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
    (batch, rows + k - 1, columns + k - 1, -> (batch, *(stride * (size - 1) + 1 + 2 * front
        for size in dy.shape[1:3]), || has the shape
    front = k - 1 - padding -> front = padding || zeros between the entries of dy
    slice(front, end, stride) for end in last
        -> slice(n - 1 - stride * (m - 1), n, stride) for n, m in zip($SIDES)
        || belong behind dy, too
    slice(front, end, stride) for end in last -> slice(n - front - 1 - stride * (m - 1),
        n - front, stride) for n, m in zip($SIDES) || at the lower and the right end, not in front
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
    np.where(y > 0, y, 1) -> y || where a window is 0, so is dx
    np.where(y > 0, y, 1) -> (y + 1e-3) || dx
    np.where(y > 0, y, 1) -> 1 || divide by y
    np.where(y > 0, y, 1) -> np.where(y < 1e-6, np.inf, y) || and not where it is small
"""
