"""Numbers as people have them, far from 0; sums of rows, paddings and choices of a forward."""

import numpy as np

from battery.norms import standardise
from battery.softmaxes import log_softmax
from battery.table import normal, right

PAIRS = []


def uniform(low, high, *shapes):
    return lambda rng: tuple(rng.uniform(low, high, shape) for shape in shapes)


PAIRS += [
    right("standardised years", standardise, uniform(1950, 2025, (3, 5))),
    right("log softmax of large scores", log_softmax, uniform(-60, 60, (3, 5))),
]


def offset_tanh(x):
    return 1e5 + np.tanh(x), x


def offset_tanh_backward(dy, x):
    return dy * (1 - np.tanh(x) ** 2)


PAIRS += right("tanh far above zero", offset_tanh, normal((3, 4))).with_slips(
    ({"dy * (": "2 * dy * ("}, "factor", "2 times too large"),
    ({"dy * (": "("}, "dy forgotten"),
    ({" ** 2": ""}, "power wrong"),
    ({"dy * (1 - np.tanh(x) ** 2)": "0 * dy"}, "zero"),
)


def log_rows(x):
    return np.log(x).sum(1), x


def log_rows_backward(dy, x):
    return dy[:, None] / x


PAIRS += right("sums of logarithms", log_rows, uniform(1, 3, (4, 6))).with_slips(
    ({"dy[:, None] / x": "np.vstack([dy[:-1, None] / x[:-1], 0 * x[:1]])"}, "zero in places",
     "zero where it should not be, all of them at 3 on axis 0, the last"),
    ({"dy[:, None]": "np.roll(dy, 1)[:, None]"}, "order wrong",
     "it is what it would be for a dy that is moved round by one along axis"),
    ({"dy[:, None]": "dy.mean()"}, "sum over too much"),
    ({"dy[:, None] / x": "dy / x.T"}, "shape wrong", "it is the transpose of the right gradient"),
)


def log_columns(x):
    return np.log(x).sum(1, keepdims=True), x


def log_columns_backward(dy, x):
    return dy / x


PAIRS += right("sums of logarithms, axis kept", log_columns, uniform(1, 3, (4, 6))).with_slips(
    ({"dy / x": "dy.mean() / x"}, "sum over too much", "averaged over axis 0, before the sum"),
)


def largest_logs(x):
    """The logarithms of the four largest of a row, and 0 for the others, which are padding."""
    chosen = x >= np.sort(x, axis=-1)[:, -4:-3]
    return np.where(chosen, np.log(x), 0), (x, chosen)


def largest_logs_backward(dy, cache):
    x, chosen = cache
    return dy * chosen / x


PAIRS += right("logarithms of the four largest", largest_logs, uniform(1, 3, (1, 9))).with_slips(
    ({"* chosen": "* np.roll(chosen, 1)"}, "condition wrong",
     "is an index or a condition on x wrong?"),
)


def spread(x, ids):
    """x (N,) into the columns (N, 5) that ids say."""
    one_hot = np.eye(5)[ids]
    return x[:, None] * one_hot, one_hot


def spread_backward(dy, one_hot):
    return (dy * one_hot).sum(1)


PAIRS += right("one-hot, times a number", spread,
               lambda rng: (rng.standard_normal(4), np.array([2, 0, 2, 4]))).with_slips(
    ({".sum(1)": ".mean(1)"}, "factor of axis 1 of y", "5 is the size of axis 1 of y"),
)
