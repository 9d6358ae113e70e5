"""Pooling over windows, over time and over images."""

import numpy as np

from battery.softmaxes import softmax, softmax_backward
from battery.table import apart, normal, right

PAIRS = []


def global_max(x):
    """The largest over time of each feature: (B, T, D) to (B, D)."""
    return x.max(1), (x, x.argmax(1))


def global_max_backward(dy, cache):
    x, where = cache
    dx = np.zeros_like(x)
    np.put_along_axis(dx, where[:, None], dy[:, None], axis=1)
    return dx


PAIRS += right("maximum over time", global_max, apart((3, 5, 2))).with_slips(
    ({"where[:, None]": "(where[:, None] + 1) % 5"}, "index of the maximum"),
    ({"dx = np.zeros_like(x)": "return np.repeat(dy[:, None], 5, axis=1)"}, "condition wrong",
     "every entry gets it all"),
    ({"dx = np.zeros_like(x)": "return np.repeat(dy[:, None], 5, axis=1) / 5"},
     "derivative of another function",
     "every entry gets its share, and should go to the chosen one"),
)


def chosen(x):
    return x[np.arange(len(x)), x.argmax(1)], x


def chosen_backward(dy, x):
    dx = np.zeros_like(x)
    dx[np.arange(len(x)), x.argmax(1)] = dy
    return dx


PAIRS += right("maximum by its index", chosen, apart((4, 6))).with_slips(
    ({"dx = np.zeros_like(x)": "return np.repeat(dy[:, None] / 6, 6, axis=1)"}, "sum over too much",
     "are right, but in the wrong entries: they should go to the chosen one"),
    ({"argmax": "argmin"}, "index of the maximum",
     "the right numbers stand in wrong places: is the index of the maximum wrong?"),
)


def max_pool(x):
    """The larger of each two steps."""
    pairs = x.reshape(len(x), -1, 2, x.shape[-1])  # (B, T / 2, 2, D)
    return pairs.max(2), pairs == pairs.max(2, keepdims=True)


def max_pool_backward(dy, largest):
    dpairs = largest * dy[:, :, None]
    return dpairs.reshape(len(dy), -1, dy.shape[-1])


PAIRS += right("max-pooling", max_pool, apart((2, 6, 3))).with_slips(
    ({"largest *": "~largest *"}, "index of the maximum"),
    ({"largest *": "0.5 * largest *"}, "factor", "2 is the window, as this"),
)


def max_pool2d(x):
    """Windows of 2 × 2 of images (B, C, height, width)."""
    batch, channels, height, width = x.shape
    windows = x.reshape(batch, channels, height // 2, 2, width // 2, 2).swapaxes(3, 4)
    windows = windows.reshape(batch, channels, height // 2, width // 2, 4)
    return windows.max(-1), (windows.argmax(-1), x.shape)


def max_pool2d_backward(dy, cache):
    where, shape = cache
    dwindows = (np.arange(4) == where[..., None]) * dy[..., None]
    return dwindows.reshape(*dy.shape, 2, 2).swapaxes(3, 4).reshape(shape)


PAIRS += right("max-pooling of images", max_pool2d, apart((2, 3, 4, 6))).with_slips(
    ({".swapaxes(3, 4)": ""}, "order wrong"),
    ({"dwindows.reshape": "dwindows[..., [0, 2, 1, 3]].reshape"}, "index of the maximum",
     "is the index of the maximum wrong?"),
)


def average_pool(x):
    """The mean of each two steps."""
    return (x[:, ::2] + x[:, 1::2]) / 2, None


def average_pool_backward(dy, cache):
    return np.repeat(dy, 2, axis=1) / 2


PAIRS += right("average pooling, windows of 2", average_pool, normal((2, 4, 3))).with_slips(
    ({" / 2": ""}, "factor of a window", "several causes fit: 2 is the window"),
    ({" / 2": " / 4"}, "factor of a window"),
    ({"np.repeat(dy, 2, axis=1)": "np.tile(dy, (1, 2, 1))"}, "order wrong",
     "its quarters along axis 1 are right and in another order"),
)


def global_average(x):
    return x.mean((2, 3)), x.shape


def global_average_backward(dy, shape):
    return np.broadcast_to(dy[:, :, None, None], shape) / (shape[2] * shape[3])


PAIRS += right("global average", global_average, normal((2, 3, 4, 5))).with_slips(
    ({" / (shape[2] * shape[3])": ""}, "factor of a size",
     "it is 20 times too large: 20 is the size of axis 2 of x times the"),
    ({"shape[2] * shape[3]": "shape[2]"}, "factor of a size"),
)


def masked_mean(x, mask):
    """The mean over the real steps of each sentence."""
    count = mask.sum(1)[:, None]
    return (x * mask[..., None]).sum(1) / count, (mask, count)


def masked_mean_backward(dy, cache):
    mask, count = cache
    return mask[..., None] * (dy / count)[:, None]


REAL = normal((3, 4, 2), beside=[np.arange(4) < np.array([[4], [2], [3]])])
PAIRS += right("mean of real steps", masked_mean, REAL).with_slips(
    ({"mask[..., None] *": "np.ones_like(mask)[..., None] *"}, "mask missing",
     "a gradient leaks into padding: it is right elsewhere, but not zero at"),
    ({"dy / count": "dy / mask.shape[1]"}, "counts of rows",
     "each entry of axis 0 is off by a factor of its own"),
)


def attentive(x, q):
    """Steps weighted by a softmax of their product with q."""
    p, _ = softmax(x @ q)
    return np.einsum("bt,btd->bd", p, x), (x, q, p)


def attentive_backward(dy, cache):
    x, q, p = cache
    dp = np.einsum("bd,btd->bt", dy, x)
    dz = softmax_backward(dp, p)
    dx = p[..., None] * dy[:, None] + dz[..., None] * q
    return dx, np.einsum("bt,btd->d", dz, x)


PAIRS += right("attention pooling", attentive, normal((3, 4, 5), (5,))).with_slips(
    ({" + dz[..., None] * q": ""}, "second use forgotten"),
    ({"softmax_backward(dp, p)": "dp * p"}, "sum term missing", "are taken for constants"),
    ({'"bt,btd->d", dz, x': '"t,td->d", dz[-1], x[-1]'}, "one row only"),
)


def overlapping_pool(x):
    """The largest of 3 × 3, at every second place of pictures (B, height, width, C)."""
    height, width = (x.shape[1] - 1) // 2, (x.shape[2] - 1) // 2
    rows, columns = (np.arange(3)[:, None] + 2 * np.arange(n) for n in (height, width))
    windows = x[:, rows[:, None, :, None], columns[None, :, None, :]]  # (B, 3, 3, H, W, C)
    windows = windows.reshape(len(x), 9, height, width, -1)
    return windows.max(1), (windows.argmax(1), x.shape)


def overlapping_pool_backward(dy, cache):
    where, shape = cache
    dx = np.zeros(shape)
    height, width = dy.shape[1:3]
    for i in range(9):
        rows = slice(i // 3, i // 3 + 2 * height - 1, 2)
        columns = slice(i % 3, i % 3 + 2 * width - 1, 2)
        dx[:, rows, columns] += dy * (where == i)
    return dx


PAIRS += right("overlapping max-pooling", overlapping_pool, apart((2, 5, 7, 3))).with_slips(
    ({"+= dy * (where": "= dy * (where"}, "overwritten"),
    ({"where == i": "where == 8 - i"}, "index of the maximum"),
    ({"(where == i)": "1"}, "condition wrong"),
)
