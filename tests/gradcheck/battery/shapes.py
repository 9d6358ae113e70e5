"""Moving numbers about: sums, broadcasting, gathering, order."""

import numpy as np

from battery.table import Right, Wrong, apart, away, normal

PAIRS = []


def cumsum(x):
    return np.cumsum(x, axis=1), None


def cumsum_backward(dy, cache):
    return np.cumsum(dy[:, ::-1], axis=1)[:, ::-1]


CUMSUM = Right("cumulative sum", cumsum, cumsum_backward, normal((3, 5)))
PAIRS += [
    CUMSUM,
    Wrong(CUMSUM, {"dy[:, ::-1], axis=1)[:, ::-1]": "dy, axis=1)"}, "dx", "time order",
          "forwards, not backwards"),
    Wrong(CUMSUM, {", axis=1)[:, ::-1]": ", axis=1)"}, "dx", "time order",
          "not turned round again"),
    Wrong(CUMSUM, {"[:, ::-1]\n": "[:, ::-1] - dy\n"}, "dx", "shifted", "without the entry itself"),
    Wrong(CUMSUM, {"np.cumsum(dy[:, ::-1], axis=1)[:, ::-1]": "dy"}, "dx", "derivative left out",
          "dy is handed on"),
]


def cumprod(x):
    y = np.cumprod(x, axis=0)
    return y, (x, y)


def cumprod_backward(dy, cache):
    x, y = cache
    return np.cumsum((dy * y)[::-1], axis=0)[::-1] / x


CUMPROD = Right("cumulative product", cumprod, cumprod_backward, away((4, 3)))
PAIRS += [
    CUMPROD,
    Wrong(CUMPROD, {" / x": ""}, "dx", "inner derivative missing", "not divided by x"),
    Wrong(CUMPROD, {"np.cumsum((dy * y)[::-1], axis=0)[::-1]": "dy * y"}, "dx",
          "later steps forgotten", "only its own product"),
]


def shifted(x, b, s):
    """Rows moved by b and stretched by s, both broadcast."""
    return x * s + b, (x, s)


def shifted_backward(dy, cache):
    x, s = cache
    return dy * s, dy.sum((0, 1)), (dy * x).sum(-1, keepdims=True)


BROADCAST = Right("broadcasting", shifted, shifted_backward, normal((2, 3, 4), (4,), (2, 3, 1)))
SQUARE_BROADCAST = Right("broadcasting, 4 × 4", lambda x, b: (x + b, None),
                         lambda dy, cache: (dy, dy.sum(0)), normal((4, 4), (4,)))
PAIRS += [
    BROADCAST,
    SQUARE_BROADCAST,
    Wrong(BROADCAST, {"dy.sum((0, 1))": "dy.sum(0)"}, "db", "sum forgotten",
          "db is summed over one axis of two"),
    Wrong(BROADCAST, {"dy.sum((0, 1))": "dy[:, 1:].sum((0, 1))"}, "db", "first step left out",
          "db without the first step"),
    Wrong(BROADCAST, {"(dy * x).sum(-1, keepdims=True)": "dy * x"}, "ds", "sum forgotten",
          "ds is not summed"),
    Wrong(BROADCAST, {"(dy * x).sum(-1, keepdims=True)": "(dy * x)[..., :1]"}, "ds",
          "sum forgotten", "ds of the first feature"),
    Wrong(BROADCAST, {"(dy * x)": "dy"}, "ds", "factor x forgotten", "x is forgotten in ds"),
    Wrong(BROADCAST, {"dy * s,": "dy,"}, "dx", "scale forgotten", "s is forgotten in dx"),
    Wrong(BROADCAST, {"(dy * x).sum(-1,": "(dy * x).mean(-1,"}, "ds", "mean in place of sum",
          "ds is a mean"),
    Wrong(SQUARE_BROADCAST, lambda dy, cache: (dy, dy.sum(1)), "db", "axis wrong",
          "db over features"),
    Wrong(SQUARE_BROADCAST, lambda dy, cache: (dy, dy.mean(0)), "db", "mean in place of sum",
          "db is a mean, of 4"),
]


def gather(x, index):
    """An entry of each row for each index."""
    return np.take_along_axis(x, index, 1), (x, index)


def gather_backward(dy, cache):
    x, index = cache
    dx = np.zeros_like(x)
    np.add.at(dx, (np.arange(len(x))[:, None], index), dy)
    return dx


def gather_inputs(rng):
    return rng.standard_normal((3, 5)), np.array([[0, 4, 0], [2, 2, 2], [1, 3, 4]])


GATHER = Right("gathering", gather, gather_backward, gather_inputs)
PAIRS += [
    GATHER,
    Wrong(GATHER,
          {"np.add.at(dx, (": "dx[", "None], index), dy)": "None], index] = dy"},
          "dx", "repeated index", "the last of repeated indices wins"),
    Wrong(GATHER, {"index), dy": "index[:, ::-1]), dy"}, "dx", "order wrong",
          "indices are turned round"),
]


def scatter(x, index):
    """Rows of x added up where the index says."""
    y = np.zeros((4, x.shape[1]), x.dtype)
    np.add.at(y, index, x)
    return y, index


def scatter_backward(dy, index):
    return dy[index]


SCATTER = Right("scattering", scatter, scatter_backward,
                lambda rng: (rng.standard_normal((6, 2)), np.array([3, 0, 3, 1, 0, 3])))
PAIRS += [
    SCATTER,
    Wrong(SCATTER, {"dy[index]": "dy[index] / np.bincount(index)[index][:, None]"}, "dx",
          "counts of rows", "divided by how many share a row"),
    Wrong(SCATTER, {"dy[index]": "dy[np.sort(index)]"}, "dx", "order wrong", "indices are sorted"),
]


def join(x, z):
    return np.concatenate([x, z], axis=1), x.shape[1]


def join_backward(dy, width):
    return dy[:, :width], dy[:, width:]


JOIN = Right("concatenation", join, join_backward, normal((3, 2), (3, 2)))
PAIRS += [
    JOIN,
    Wrong(JOIN, {"dy[:, :width], dy[:, width:]": "dy[:, width:], dy[:, :width]"}, "dx dz",
          "exchanged", "dx and dz are exchanged"),
    Wrong(JOIN, {"dy[:, :width], dy[:, width:]": "dy[:, ::2], dy[:, 1::2]"}, "dx dz", "order wrong",
          "every second column"),
]


def turned(x):
    """(B, T, D) to (B, D, T), as rows."""
    return x.swapaxes(1, 2).reshape(len(x), -1), x.shape


def turned_backward(dy, shape):
    batch, length, width = shape
    return dy.reshape(batch, width, length).swapaxes(1, 2)


TURNED = Right("transpose and reshape", turned, turned_backward, normal((2, 3, 4)))
PAIRS += [
    TURNED,
    Wrong(TURNED, {"dy.reshape(batch, width, length).swapaxes(1, 2)": "dy.reshape(shape)"}, "dx",
          "order wrong", "reshape without the transpose"),
]


def variance(x):
    centred = x - x.mean(1, keepdims=True)
    return (centred**2).sum(1) / (x.shape[1] - 1), centred


def variance_backward(dy, centred):
    return 2 * centred / (centred.shape[1] - 1) * dy[:, None]


VARIANCE = Right("variance", variance, variance_backward, normal((4, 5)))
PAIRS += [
    VARIANCE,
    Wrong(VARIANCE, {"(centred.shape[1] - 1)": "centred.shape[1]"}, "dx", "factor", "N for N − 1"),
]


def sort(x):
    return np.sort(x, axis=1), np.argsort(x, axis=1)


def sort_backward(dy, order):
    dx = np.empty_like(dy)
    np.put_along_axis(dx, order, dy, 1)
    return dx


SORT = Right("sorting", sort, sort_backward, apart((3, 6)))
PAIRS += [
    SORT,
    Wrong(SORT, {"np.put_along_axis(dx, order, dy, 1)": "dx = np.take_along_axis(dy, order, 1)"},
          "dx", "order wrong", "sorted again, not back"),
    Wrong(SORT, {"return dx": "return dy"}, "dx",
          "derivative left out", "dy is handed on"),
]


def later(x):
    """Each step's difference to the step before."""
    return x[:, 1:] - x[:, :-1], x.shape


def later_backward(dy, shape):
    dx = np.zeros(shape)
    dx[:, 1:] += dy
    dx[:, :-1] -= dy
    return dx


LATER = Right("differences of steps", later, later_backward, normal((2, 5, 3)))
PAIRS += [
    LATER,
    Wrong(LATER, {"-= dy": "-= 0"}, "dx", "second use forgotten",
          "the use as the step before"),
    Wrong(LATER, {"-= dy": "= -dy"}, "dx", "overwritten", "= for += where uses overlap"),
    Wrong(LATER, {"-= dy": "+= dy"}, "dx", "sign of a term", "added, not subtracted"),
]


def distances(x, z):
    """Squared distances of each row of x to each of z."""
    gap = x[:, None] - z
    return (gap * gap).sum(-1), gap


def distances_backward(dy, gap):
    dgap = 2 * gap * dy[..., None]
    return dgap.sum(1), -dgap.sum(0)


DISTANCES = Right("squared distances", distances, distances_backward, normal((2, 5), (3, 5)))
PAIRS += [
    DISTANCES,
    Wrong(DISTANCES, {"2 * gap": "gap"}, "dx dz", "factor", "the 2, with a batch of 2"),
    Wrong(DISTANCES, {"dgap.sum(1),": "dgap.mean(1),"}, "dx", "mean in place of sum",
          "a mean over z"),
    Wrong(DISTANCES, {"dgap.sum(1),": "dgap[:, 0],"}, "dx", "sum forgotten",
          "only the first row of z"),
]


def larger(x, z):
    return np.maximum(x, z), x > z


def larger_backward(dy, first):
    return dy * first, dy * ~first


def larger_inputs(rng):
    x = rng.permuted(np.linspace(-2, 2, 12)).reshape(3, 4)
    return x, rng.permuted(x) + 0.1


LARGER = Right("the larger of two", larger, larger_backward, larger_inputs)
PAIRS += [
    LARGER,
    Wrong(LARGER, {"dy * first, dy * ~first": "dy * ~first, dy * first"}, "dx dz", "exchanged",
          "the smaller one gets dy"),
    Wrong(LARGER, {"dy * first, dy * ~first": "dy, dy"}, "dx dz", "condition wrong", "both get dy"),
]


def total(x):
    return x.sum(), x.shape


def total_backward(dy, shape):
    return np.full(shape, dy)


TOTAL = Right("sum", total, total_backward, normal((4, 4)))
PAIRS += [
    TOTAL,
    Wrong(TOTAL, {"np.full(shape, dy)": "np.full(shape, dy) / 16"}, "dx", "factor of a size",
          "that of a mean"),
    Wrong(TOTAL, {"np.full(shape, dy)": "dy"}, "dx", "shape wrong", "a number for an array"),
]


def turned(x):
    """Points in the plane, each turned by its place, as rotary positions are."""
    c, s = np.cos(np.arange(len(x))), np.sin(np.arange(len(x)))
    a, b = x.T
    return np.stack([a * c - b * s, a * s + b * c], -1), (c, s)


def turned_backward(dy, cache):
    c, s = cache
    a, b = dy.T
    return np.stack([a * c + b * s, b * c - a * s], -1)


TURNED = Right("points turned", turned, turned_backward, normal((4, 2)))
PAIRS += [
    TURNED,
    Wrong(TURNED, {"a * c + b * s, b * c - a * s": "a * c - b * s, b * c + a * s"}, "dx",
          "sign", "turned the same way as forward"),
]
