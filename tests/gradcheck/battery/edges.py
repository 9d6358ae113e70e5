"""Numbers as people have them: large and small ones side by side; buffers, states and float32."""

import numpy as np

from battery.activations import TANH
from battery.elementary import LOG, PRODUCT, RECIPROCAL, product, product_backward
from battery.linear import LINEAR, linear, linear_backward
from battery.losses import mse, mse_backward
from battery.norms import standardise, standardise_backward
from battery.softmaxes import log_softmax, log_softmax_backward
from battery.table import Right, Wrong, normal

PAIRS = []


def uniform(low, high, *shapes):
    return lambda rng: tuple(rng.uniform(low, high, shape) for shape in shapes)


def offset_tanh(x):
    return 1e5 + np.tanh(x), x


def offset_tanh_backward(dy, x):
    return dy * (1 - np.tanh(x) ** 2)


OFFSET = Right("tanh far above zero", offset_tanh, offset_tanh_backward, normal((3, 4)))
PAIRS += [
    OFFSET,
    Wrong(OFFSET, {"dy * (": "2 * dy * ("}, "dx", "factor", "twice too large"),
    Wrong(OFFSET, {"dy * (": "("}, "dx", "dy forgotten", "dy is forgotten"),
    Wrong(OFFSET, {" ** 2": ""}, "dx", "power wrong", "1 − tanh for 1 − tanh²"),
    Wrong(OFFSET, {"dy * (1 - np.tanh(x) ** 2)": "0 * dy"}, "dx", "zero", "zeros"),
]


def far_offset(x):
    return 1e15 + np.tanh(x), x


FAR = Right("tanh lost in 1e15", far_offset, offset_tanh_backward, normal((3, 4)), "cannot be told")
PAIRS += [FAR]


def far_targets(rng):
    return rng.standard_normal((3, 5)), 1e5 + rng.standard_normal((3, 5))


FAR_MSE = Right("mean square error, targets around 1e5", mse, mse_backward, far_targets)
PAIRS += [
    FAR_MSE,
    Wrong(FAR_MSE, {"2 * error": "error"}, "dx dtarget", "factor", "the 2 is forgotten"),
    Wrong(FAR_MSE, {"dx, -dx": "-dx, dx"}, "dx dtarget", "sign", "both signs are wrong"),
    Wrong(FAR_MSE, {" / error.size": ""}, "dx dtarget", "factor of a size",
          "not divided by the size"),
]


def squares(x):
    return (x * x).sum(), x


def squares_backward(dy, x):
    return 2 * x * dy


PRICES = Right("squares of house prices", squares, squares_backward, uniform(1e5, 2e6, 7))
PAIRS += [
    PRICES,
    Wrong(PRICES, {"2 * x": "x"}, "dx", "factor", "the 2 is forgotten"),
    Wrong(PRICES, {"2 * x * dy": "np.full(7, 2 * dy)"}, "dx", "factor x forgotten",
          "x is forgotten"),
]


def columns(large):
    """x (5, 2) with a column of ordinary size and one of that size."""

    def inputs(rng):
        x = rng.standard_normal((5, 2)) * [1, large]
        return x, rng.standard_normal((2, 3)), rng.standard_normal(3)

    return inputs


COLUMNS = Right("linear, columns of 1 and 2e7", linear, linear_backward, columns(2e7))
TALL = Right("linear, columns of 1 and 1e9", linear, linear_backward, columns(1e9),
             "cannot be told")
PAIRS += [
    COLUMNS,
    TALL,
    Wrong(COLUMNS, {"x.T @ dy": "[[2], [1]] * (x.T @ dy)"}, "dw", "some rows",
          "the small feature's row doubled"),
    Wrong(TALL, {"x.T @ dy": "[[0], [1]] * (x.T @ dy)"}, "dw", "zero in places",
          "the small feature's row is zero"),
    Wrong(COLUMNS, {"dy.sum(0)": "dy.mean(0)"}, "db", "mean in place of sum",
          "db beside large numbers"),
]


def added(x, z):
    return x + 1e-6 * np.tanh(z), z


def added_backward(dy, z):
    return dy, 1e-6 * dy * (1 - np.tanh(z) ** 2)


SMALL = Right("a millionth beside the whole", added, added_backward, normal((2, 4), (2, 4)))
PAIRS += [
    SMALL,
    Wrong(SMALL, {"dy, 1e-6 * dy": "dy, 2e-6 * dy"}, "dz", "factor", "twice too large"),
    Wrong(SMALL, {"dy, 1e-6 * dy": "dy, 0 * dy"}, "dz", "zero", "zeros"),
    Wrong(SMALL, {"dy, 1e-6": "dy, -1e-6"}, "dz", "sign", "the sign is wrong"),
]


def spread(rng):
    return (np.array([1e-4, 0.5, 1, 2]) * rng.uniform(0.9, 1.1, 4),)


LOG_PRICES = Right("logarithm of house prices, weighed", lambda x, w: (w * np.log(x), (x, w)),
                   lambda dy, cache: (dy * cache[1] / cache[0], dy * np.log(cache[0])),
                   lambda rng: (rng.uniform(1e8, 1e9, 6), rng.standard_normal(6)))
PAIRS += [
    Right("reciprocal near zero", RECIPROCAL.forward, RECIPROCAL.backward, spread),
    Wrong(RECIPROCAL, lambda dy, y: -dy * y * y * np.where(y > 100, 1, -3), "dx", "some entries",
          "−3 times, except where the gradient is largest", inputs=spread),
    Wrong(RECIPROCAL, lambda dy, y: -dy * y * y * (y > 100), "dx", "zero in places",
          "zero, except where the gradient is largest", inputs=spread),
    LOG_PRICES,
    Wrong(LOG_PRICES, lambda dy, cache: (0 * dy, dy * np.log(cache[0])), "dx", "zero",
          "zeros, where the gradient is small"),
    Wrong(LOG_PRICES, lambda dy, cache: (3 * dy * cache[1] / cache[0], dy * np.log(cache[0])), "dx",
          "factor", "3 times a small gradient"),
    Right("logarithm of small numbers", LOG.forward, LOG.backward, uniform(1e-4, 1, (3, 5))),
    Right("standardised years", standardise, standardise_backward, uniform(1950, 2025, (3, 5))),
    Right("log softmax of large scores", log_softmax, log_softmax_backward,
          uniform(-60, 60, (3, 5))),
    Right("names twice", product, product_backward, normal((3, 2), (3, 2)), names=("x", "x")),
    Right("a list for a tuple", product, lambda dy, cache: list(product_backward(dy, cache)),
          normal((3, 2), (3, 2))),
]


class Buffered:
    """Tanh into the same output buffer at every call."""

    def __init__(self):
        self.buffers = {}

    def forward(self, x):
        y = self.buffers.setdefault(x.shape, np.empty(x.shape))
        return np.tanh(x, out=y), x

    def backward(self, dy, x):
        return dy * (1 - np.tanh(x) ** 2)


BUFFERED = Buffered()
PAIRS += [Right("an output buffer used again", BUFFERED.forward, BUFFERED.backward, normal((3, 4)))]


class Remembering:
    """A layer as in many courses: forward leaves on self, or in a global, what backward reads."""

    def forward(self, x):
        self.x = x
        return x * x, x

    def backward(self, dy, x):
        return 2 * self.x * dy


REMEMBERING = Remembering()
REMEMBERS = Right("forward leaves x on self, backward reads its cache", REMEMBERING.forward,
                  squares_backward, normal((3, 5)))
LATEST = {}


def global_square(x):
    LATEST["x"] = x
    return x * x, x


def global_square_backward(dy, x):
    return 2 * LATEST["x"] * dy


def square(x):
    return x * x, 2 * x


def square_backward(dy, slope):
    return dy * slope


def writes_to_cache(dy, slope):
    slope *= dy
    return slope


def exp(x):
    y = np.exp(x)
    return y, y


def exp_backward(dy, y):
    return dy * y


def writes_to_y(dy, y):
    y *= dy
    return y


def clears_its_cache(dy, slope):
    dx = dy * slope
    slope.fill(0)
    return dx


def empties_its_cache(dy, cache):
    return dy * cache.pop()


def counts_its_calls(dy, cache):
    cache.append(1)
    return dy * cache[0] * (len(cache) - 1)


def masked(x, mask):
    LATEST["mask"] = mask
    return x * mask, mask


def masked_backward(dy, mask):
    return dy * mask


def ones_and_zeros(rng):
    return rng.standard_normal((3, 5)), rng.permutation(15).reshape(3, 5) < 8


GIVEN = np.random.default_rng(1).standard_normal((3, 5))
MASKED = Right("a mask", masked, masked_backward, ones_and_zeros)
MEMORY = Right("square, its slope kept", square, square_backward, normal((3, 5)))
EXP = Right("exp, y kept", exp, exp_backward, normal((2, 6)))
HELD = Right("square, its slope in a list", lambda x: (x * x, [2 * x]),
             lambda dy, cache: dy * cache[0], normal((5, 2)))
PAIRS += [
    REMEMBERS,
    MEMORY,
    EXP,
    HELD,
    Wrong(REMEMBERS, REMEMBERING.backward, "dx", "state", "backward reads self"),
    Wrong(MEMORY, global_square_backward, "dx", "state", "backward reads a global",
          forward=global_square),
    MASKED,
    Wrong(MASKED, {"dy * mask": 'dy * LATEST["mask"]'}, "dx", "state", "a global mask is read"),
    Wrong(MEMORY, {"slope\n": "2 * GIVEN\n"}, "dx", "state of a notebook",
          "backward reads the array that the check was given", inputs=lambda rng: (GIVEN,)),
    Wrong(MEMORY, {"dy * slope": "np.clip(dy, -5, 5) * slope"}, "dx", "clipped", "dy is clipped"),
    Wrong(MEMORY, writes_to_cache, "dx", "overwrites", "backward writes to its cache"),
    Wrong(MEMORY, clears_its_cache, "dx", "overwrites", "backward clears its cache"),
    Wrong(EXP, writes_to_y, "dx", "overwrites", "backward writes to the y that forward returned"),
    Wrong(HELD, empties_its_cache, "dx", "overwrites", "backward empties the list of its cache"),
    Wrong(HELD, counts_its_calls, "dx", "overwrites", "backward grows with each call"),
]


def in_float32(backward):
    """The backward's gradients computed, and returned, in float32."""

    def rounded(dy, cache):
        gradients = backward(dy, cache)
        many = isinstance(gradients, tuple)
        return tuple(g.astype("f4") for g in gradients) if many else gradients.astype("f4")

    return rounded


PAIRS += [
    Wrong(MEMORY, in_float32(square_backward), "dx", "float32", "returned in float32"),
    Wrong(LINEAR, in_float32(linear_backward), "dx dw db", "float32", "all three in float32"),
    Wrong(PRODUCT, {"dy * x": "(dy * x).astype(np.float32)"}, "dz", "float32", "dz in float32"),
    Wrong(TANH, {"y * y": "y.astype(np.float32).astype(float) ** 2"}, "dx", "float32",
          "y is rounded, which shows in 1 − y²", inputs=uniform(0, 4, (3, 4))),
]


def half_kinked(rng):
    x = rng.choice([-1.0, 1.0], (3, 4)) * rng.uniform(0.1, 2, (3, 4))
    x[1, 2] = 0
    return (x,)


KINKED = Right("relu with a kink", lambda x: (np.maximum(x, 0), x), lambda dy, x: dy * (x > 0),
               half_kinked)
PAIRS += [
    Wrong(KINKED, lambda dy, x: 3 * dy * (x > 0), "dx", "factor",
          "3 times, with one x at the kink"),
    Wrong(KINKED, lambda dy, x: dy * (x >= -1), "dx", "condition wrong",
          "an x at the kink, wrong ones elsewhere"),
]


def log_rows(x):
    return np.log(x).sum(1), x


def log_rows_backward(dy, x):
    return dy[:, None] / x


ROWS = Right("sums of logarithms", log_rows, log_rows_backward, uniform(1, 3, (4, 6)))
PAIRS += [
    ROWS,
    Wrong(ROWS, {"dy[:, None] / x": "np.vstack([dy[:-1, None] / x[:-1], 0 * x[:1]])"}, "dx",
          "zero in places", "the last row is left out"),
    Wrong(ROWS, {"dy[:, None]": "np.roll(dy, 1)[:, None]"}, "dx", "order wrong",
          "each row gets its neighbour's dy"),
    Wrong(ROWS, {"dy[:, None]": "dy.mean()"}, "dx", "sum over too much",
          "every row gets the mean of dy"),
    Wrong(ROWS, {"dy[:, None] / x": "dy / x.T"}, "dx", "shape wrong", "transposed"),
]


def log_columns(x):
    return np.log(x).sum(1, keepdims=True), x


def log_columns_backward(dy, x):
    return dy / x


COLUMNS = Right("sums of logarithms, axis kept", log_columns, log_columns_backward,
                uniform(1, 3, (4, 6)))
PAIRS += [
    COLUMNS,
    Wrong(COLUMNS, {"dy / x": "dy.mean() / x"}, "dx", "sum over too much",
          "every row gets the mean of dy"),
]


def largest_logs(x):
    """The logarithms of the four largest of a row, and 0 for the others, which are padding."""
    chosen = x >= np.sort(x, axis=-1)[:, -4:-3]
    return np.where(chosen, np.log(x), 0), (x, chosen)


def largest_logs_backward(dy, cache):
    x, chosen = cache
    return dy * chosen / x


LARGEST = Right("logarithms of the four largest", largest_logs, largest_logs_backward,
                uniform(1, 3, (1, 9)))
PAIRS += [
    LARGEST,
    Wrong(LARGEST, {"* chosen": "* np.roll(chosen, 1)"}, "dx", "condition wrong",
          "another entry's condition"),
]


def spread(x, ids):
    """x (N,) into the columns (N, 5) that ids say."""
    one_hot = np.eye(5)[ids]
    return x[:, None] * one_hot, one_hot


def spread_backward(dy, one_hot):
    return (dy * one_hot).sum(1)


SPREAD = Right("one-hot, times a number", spread, spread_backward,
               lambda rng: (rng.standard_normal(4), np.array([2, 0, 2, 4])))
PAIRS += [
    SPREAD,
    Wrong(SPREAD, {".sum(1)": ".mean(1)"}, "dx", "factor of axis 1 of y", "a mean over classes"),
]
