"""Moving numbers about: sums, broadcasting, gathering, order."""

import numpy as np

from battery.table import Right, apart, away, normal

PAIRS = []


def cumsum(x):
    return np.cumsum(x, axis=1), None


def cumsum_backward(dy, cache):
    return np.cumsum(dy[:, ::-1], axis=1)[:, ::-1]


PAIRS += Right("cumulative sum", cumsum, cumsum_backward, normal((3, 5))).with_slips(
    ({"dy[:, ::-1], axis=1)[:, ::-1]": "dy, axis=1)"}, "dx", "time order",
     "forwards, not backwards", "in the wrong order"),
    ({", axis=1)[:, ::-1]": ", axis=1)"}, "dx", "time order", "not turned round again"),
    ({"[:, ::-1]\n": "[:, ::-1] - dy\n"}, "dx", "shifted", "without the entry itself"),
    ({"np.cumsum(dy[:, ::-1], axis=1)[:, ::-1]": "dy"}, "dx", "derivative left out",
     "dy is handed on"),
)


def cumprod(x):
    y = np.cumprod(x, axis=0)
    return y, (x, y)


def cumprod_backward(dy, cache):
    x, y = cache
    return np.cumsum((dy * y)[::-1], axis=0)[::-1] / x


PAIRS += Right("cumulative product", cumprod, cumprod_backward, away((4, 3))).with_slips(
    ({" / x": ""}, "dx", "inner derivative missing", "not divided by x"),
    ({"np.cumsum((dy * y)[::-1], axis=0)[::-1]": "dy * y"}, "dx", "later steps forgotten",
     "only its own product"),
)


def shifted(x, b, s):
    """Rows moved by b and stretched by s, both broadcast."""
    return x * s + b, (x, s)


def shifted_backward(dy, cache):
    x, s = cache
    return dy * s, dy.sum((0, 1)), (dy * x).sum(-1, keepdims=True)


BROADCAST = Right("broadcasting", shifted, shifted_backward, normal((2, 3, 4), (4,), (2, 3, 1)))
SQUARE_BROADCAST = Right("broadcasting, 4 × 4", lambda x, b: (x + b, None),
                         lambda dy, cache: (dy, dy.sum(0)), normal((4, 4), (4,)))
PAIRS += BROADCAST.with_slips(
    ({"dy.sum((0, 1))": "dy.sum(0)"}, "db", "sum forgotten", "db is summed over one axis of two",
     "still has to be summed"),
    ({"dy.sum((0, 1))": "dy[:, 1:].sum((0, 1))"}, "db", "first step left out",
     "db without the first step", "the first index of axis 1 of dy is left out"),
    ({"(dy * x).sum(-1, keepdims=True)": "dy * x"}, "ds", "sum forgotten", "ds is not summed",
     "summed over axis 2 with keepdims=True"),
    ({"(dy * x).sum(-1, keepdims=True)": "(dy * x)[..., :1]"}, "ds", "sum forgotten",
     "ds of the first feature"),
    ({"(dy * x)": "dy"}, "ds", "factor x forgotten", "x is forgotten in ds"),
    ({"dy * s,": "dy,"}, "dx", "scale forgotten", "s is forgotten in dx",
     "dy is handed on as it is, the derivative is left out"),
    ({"dy * s,": "(dy * s).sum(0),"}, "dx", "sum over too much", "dx is summed over the batch",
     "it is the right one summed over the leading axes, (0,), which this input has"),
    ({"(dy * x).sum(-1,": "(dy * x).mean(-1,"}, "ds", "mean in place of sum", "ds is a mean"),
)
PAIRS += SQUARE_BROADCAST.with_slips(
    (lambda dy, cache: (dy, dy.sum(1)),  "db", "axis wrong",           "db over features"),
    (lambda dy, cache: (dy, dy.mean(0)), "db", "mean in place of sum", "db is a mean, of 4"),
)


def gather(x, index):
    """An entry of each row for each index."""
    return np.take_along_axis(x, index, 1), (x, index)


def gather_backward(dy, cache):
    x, index = cache
    dx = np.zeros_like(x)
    np.add.at(dx, (np.arange(len(x))[:, None], index), dy)
    return dx


GATHERED = normal((3, 5), beside=[np.array([[0, 4, 0], [2, 2, 2], [1, 3, 4]])])
PAIRS += Right("gathering", gather, gather_backward, GATHERED).with_slips(
    ({"np.add.at(dx, (": "dx[", "None], index), dy)": "None], index] = dy"}, "dx", "repeated index",
     "the last of repeated indices wins",
     "give to the same entry only one is left, as if overwritten"),
    ({"index), dy": "index[:, ::-1]), dy"}, "dx", "order wrong", "indices are turned round",
     "it is what it would be for a dy that is reversed along axis 1"),
)


def scatter(x, index):
    """Rows of x added up where the index says."""
    y = np.zeros((4, x.shape[1]), x.dtype)
    np.add.at(y, index, x)
    return y, index


def scatter_backward(dy, index):
    return dy[index]


SCATTER = Right("scattering", scatter, scatter_backward,
                lambda rng: (rng.standard_normal((6, 2)), np.array([3, 0, 3, 1, 0, 3])))
PAIRS += SCATTER.with_slips(
    ({"dy[index]": "dy[index] / np.bincount(index)[index][:, None]"}, "dx", "counts of rows",
     "divided by how many share a row"),
    ({"dy[index]": "dy[np.sort(index)]"}, "dx", "order wrong", "indices are sorted"),
)


def join(x, z):
    return np.concatenate([x, z], axis=1), x.shape[1]


def join_backward(dy, width):
    return dy[:, :width], dy[:, width:]


PAIRS += Right("concatenation", join, join_backward, normal((3, 2), (3, 2))).with_slips(
    ({"dy[:, :width], dy[:, width:]": "dy[:, width:], dy[:, :width]"}, "dx dz", "exchanged",
     "dx and dz are exchanged"),
    ({"dy[:, :width], dy[:, width:]": "dy[:, ::2], dy[:, 1::2]"}, "dx dz", "order wrong",
     "every second column", "all of them at 1 on axis 1, the last"),
)


def turned(x):
    """(B, T, D) to (B, D, T), as rows."""
    return x.swapaxes(1, 2).reshape(len(x), -1), x.shape


def turned_backward(dy, shape):
    batch, length, width = shape
    return dy.reshape(batch, width, length).swapaxes(1, 2)


TURNED = Right("transpose and reshape", turned, turned_backward, normal((2, 3, 4)))
PAIRS += TURNED.with_slips(
    ({"dy.reshape(batch, width, length).swapaxes(1, 2)": "dy.reshape(shape)"}, "dx", "order wrong",
     "reshape without the transpose"),
)


def variance(x):
    centred = x - x.mean(1, keepdims=True)
    return (centred**2).sum(1) / (x.shape[1] - 1), centred


def variance_backward(dy, centred):
    return 2 * centred / (centred.shape[1] - 1) * dy[:, None]


PAIRS += Right("variance", variance, variance_backward, normal((4, 5))).with_slips(
    ({"(centred.shape[1] - 1)": "centred.shape[1]"}, "dx", "factor", "N for N − 1",
     "it is 1.25 times too small: 1.25 is n / (n − 1) for n = 5, the width d"),
)


def sort(x):
    return np.sort(x, axis=1), np.argsort(x, axis=1)


def sort_backward(dy, order):
    dx = np.empty_like(dy)
    np.put_along_axis(dx, order, dy, 1)
    return dx


PAIRS += Right("sorting", sort, sort_backward, apart((3, 6))).with_slips(
    ({"np.put_along_axis(dx, order, dy, 1)": "dx = np.take_along_axis(dy, order, 1)"}, "dx",
     "order wrong", "sorted again, not back"),
    ({"return dx": "return dy"}, "dx", "derivative left out", "dy is handed on"),
)


def later(x):
    """Each step's difference to the step before."""
    return x[:, 1:] - x[:, :-1], x.shape


def later_backward(dy, shape):
    dx = np.zeros(shape)
    dx[:, 1:] += dy
    dx[:, :-1] -= dy
    return dx


PAIRS += Right("differences of steps", later, later_backward, normal((2, 5, 3))).with_slips(
    ({"-= dy": "-= 0"},  "dx", "second use forgotten", "the use as the step before"),
    ({"-= dy": "= -dy"}, "dx", "overwritten",          "= for += where uses overlap",
     "entries come more than once, and only one of them counts: is"),
    ({"-= dy": "+= dy"}, "dx", "sign of a term",       "added, not subtracted"),
)


def distances(x, z):
    """Squared distances of each row of x to each of z."""
    gap = x[:, None] - z
    return (gap * gap).sum(-1), gap


def distances_backward(dy, gap):
    dgap = 2 * gap * dy[..., None]
    return dgap.sum(1), -dgap.sum(0)


DISTANCES = Right("squared distances", distances, distances_backward, normal((2, 5), (3, 5)))
PAIRS += DISTANCES.with_slips(
    ({"2 * gap": "gap"}, "dx dz", "factor", "the 2, with a batch of 2"),
    ({"dgap.sum(1),": "dgap.mean(1),"}, "dx", "mean in place of sum", "a mean over z"),
    ({"dgap.sum(1),": "dgap[:, 0],"}, "dx", "sum forgotten", "only the first row of z"),
)


def larger(x, z):
    return np.maximum(x, z), x > z


def larger_backward(dy, first):
    return dy * first, dy * ~first


def larger_inputs(rng):
    x = rng.permuted(np.linspace(-2, 2, 12)).reshape(3, 4)
    return x, rng.permuted(x) + 0.1


PAIRS += Right("the larger of two", larger, larger_backward, larger_inputs).with_slips(
    ({"dy * first, dy * ~first": "dy * ~first, dy * first"}, "dx dz", "exchanged",
     "the smaller one gets dy"),
    ({"dy * first, dy * ~first": "dy, dy"}, "dx dz", "condition wrong", "both get dy",
     "where z − x is negative it is not zero"),
)


def total(x):
    return x.sum(), x.shape


def total_backward(dy, shape):
    return np.full(shape, dy)


PAIRS += Right("sum", total, total_backward, normal((4, 4))).with_slips(
    ({"np.full(shape, dy)": "np.full(shape, dy) / 16"}, "dx", "factor of a size", "that of a mean"),
    ({"np.full(shape, dy)": "dy"}, "dx", "shape wrong", "a number for an array"),
)


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
PAIRS += TURNED.with_slips(
    ({"a * c + b * s, b * c - a * s": "a * c - b * s, b * c + a * s"}, "dx", "sign",
     "turned the same way as forward"),
)
