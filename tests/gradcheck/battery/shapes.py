"""Moving numbers about: sums, broadcasting, gathering, order."""

import numpy as np

from battery.table import apart, away, normal, right

PAIRS = []


def cumsum(x):
    return np.cumsum(x, axis=1), None


def cumsum_backward(dy, cache):
    return np.cumsum(dy[:, ::-1], axis=1)[:, ::-1]


PAIRS += right("cumulative sum", cumsum, normal((3, 5))).with_slips(
    ({"dy[:, ::-1], axis=1)[:, ::-1]": "dy, axis=1)"}, "time order", "in the wrong order"),
    ({", axis=1)[:, ::-1]": ", axis=1)"}, "time order"),
    ({"[:, ::-1]\n": "[:, ::-1] - dy\n"}, "shifted"),
    ({"np.cumsum(dy[:, ::-1], axis=1)[:, ::-1]": "dy"}, "derivative left out"),
)


def cumprod(x):
    y = np.cumprod(x, axis=0)
    return y, (x, y)


def cumprod_backward(dy, cache):
    x, y = cache
    return np.cumsum((dy * y)[::-1], axis=0)[::-1] / x


PAIRS += right("cumulative product", cumprod, away((4, 3))).with_slips(
    ({" / x": ""}, "inner derivative missing"),
    ({"np.cumsum((dy * y)[::-1], axis=0)[::-1]": "dy * y"}, "later steps forgotten"),
)


def shifted(x, b, s):
    """Rows moved by b and stretched by s, both broadcast."""
    return x * s + b, (x, s)


def shifted_backward(dy, cache):
    x, s = cache
    return dy * s, dy.sum((0, 1)), (dy * x).sum(-1, keepdims=True)


PAIRS += right("broadcasting", shifted, normal((2, 3, 4), (4,), (2, 3, 1))).with_slips(
    ({"dy.sum((0, 1))": "dy.sum(0)"}, "sum forgotten", "still has to be summed"),
    ({"dy.sum((0, 1))": "dy[:, 1:].sum((0, 1))"}, "first step left out",
     "the first index of axis 1 of dy is left out"),
    ({"(dy * x).sum(-1, keepdims=True)": "dy * x"}, "sum forgotten",
     "summed over axis 2 with keepdims=True"),
    ({"(dy * x).sum(-1, keepdims=True)": "(dy * x)[..., :1]"}, "sum forgotten"),
    ({"(dy * x)": "dy"}, "factor x forgotten"),
    ({"dy * s,": "dy,"}, "scale forgotten", "dy is handed on as it is, the derivative is left out"),
    ({"dy * s,": "(dy * s).sum(0),"}, "sum over too much",
     "it is the right one summed over the leading axes, (0,), which this input has"),
    ({"(dy * x).sum(-1,": "(dy * x).mean(-1,"}, "mean in place of sum"),
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
PAIRS += right("gathering", gather, GATHERED).with_slips(
    ({"np.add.at(dx, (": "dx[", "None], index), dy)": "None], index] = dy"}, "repeated index",
     "give to the same entry only one is left, as if overwritten"),
    ({"index), dy": "index[:, ::-1]), dy"}, "order wrong",
     "it is what it would be for a dy that is reversed along axis 1"),
)


def scatter(x, index):
    """Rows of x added up where the index says."""
    y = np.zeros((4, x.shape[1]), x.dtype)
    np.add.at(y, index, x)
    return y, index


def scatter_backward(dy, index):
    return dy[index]


PAIRS += right("scattering", scatter,
               lambda rng: (rng.standard_normal((6, 2)), np.array([3, 0, 3, 1, 0, 3]))).with_slips(
    ({"dy[index]": "dy[index] / np.bincount(index)[index][:, None]"}, "counts of rows"),
    ({"dy[index]": "dy[np.sort(index)]"}, "order wrong"),
)


def join(x, z):
    return np.concatenate([x, z], axis=1), x.shape[1]


def join_backward(dy, width):
    return dy[:, :width], dy[:, width:]


PAIRS += right("concatenation", join, normal((3, 2), (3, 2))).with_slips(
    ({"dy[:, :width], dy[:, width:]": "dy[:, width:], dy[:, :width]"}, "exchanged"),
    ({"dy[:, :width], dy[:, width:]": "dy[:, ::2], dy[:, 1::2]"}, "order wrong",
     "all of them at 1 on axis 1, the last"),
)


def turned(x):
    """(B, T, D) to (B, D, T), as rows."""
    return x.swapaxes(1, 2).reshape(len(x), -1), x.shape


def turned_backward(dy, shape):
    batch, length, width = shape
    return dy.reshape(batch, width, length).swapaxes(1, 2)


PAIRS += right("transpose and reshape", turned, normal((2, 3, 4))).with_slips(
    ({"dy.reshape(batch, width, length).swapaxes(1, 2)": "dy.reshape(shape)"}, "order wrong"),
)


def variance(x):
    centred = x - x.mean(1, keepdims=True)
    return (centred**2).sum(1) / (x.shape[1] - 1), centred


def variance_backward(dy, centred):
    return 2 * centred / (centred.shape[1] - 1) * dy[:, None]


PAIRS += right("variance", variance, normal((4, 5))).with_slips(
    ({"(centred.shape[1] - 1)": "centred.shape[1]"}, "factor",
     "it is 1.25 times too small: 1.25 is n / (n − 1) for n = 5, the width d"),
)


def sort(x):
    return np.sort(x, axis=1), np.argsort(x, axis=1)


def sort_backward(dy, order):
    dx = np.empty_like(dy)
    np.put_along_axis(dx, order, dy, 1)
    return dx


PAIRS += right("sorting", sort, apart((3, 6))).with_slips(
    ({"np.put_along_axis(dx, order, dy, 1)": "dx = np.take_along_axis(dy, order, 1)"},
     "order wrong"),
    ({"return dx": "return dy"}, "derivative left out"),
)


def later(x):
    """Each step's difference to the step before."""
    return x[:, 1:] - x[:, :-1], x.shape


def later_backward(dy, shape):
    dx = np.zeros(shape)
    dx[:, 1:] += dy
    dx[:, :-1] -= dy
    return dx


PAIRS += right("differences of steps", later, normal((2, 5, 3))).with_slips(
    ({"-= dy": "-= 0"}, "second use forgotten"),
    ({"-= dy": "= -dy"}, "overwritten",
     "entries come more than once, and only one of them counts: is"),
    ({"-= dy": "+= dy"}, "sign of a term"),
)


def distances(x, z):
    """Squared distances of each row of x to each of z."""
    gap = x[:, None] - z
    return (gap * gap).sum(-1), gap


def distances_backward(dy, gap):
    dgap = 2 * gap * dy[..., None]
    return dgap.sum(1), -dgap.sum(0)


PAIRS += right("squared distances", distances, normal((2, 5), (3, 5))).with_slips(
    ({"2 * gap": "gap"}, "factor"),
    ({"dgap.sum(1),": "dgap.mean(1),"}, "mean in place of sum"),
    ({"dgap.sum(1),": "dgap[:, 0],"}, "sum forgotten"),
)


def larger(x, z):
    return np.maximum(x, z), x > z


def larger_backward(dy, first):
    return dy * first, dy * ~first


def larger_inputs(rng):
    x = rng.permuted(np.linspace(-2, 2, 12)).reshape(3, 4)
    return x, rng.permuted(x) + 0.1


PAIRS += right("the larger of two", larger, larger_inputs).with_slips(
    ({"dy * first, dy * ~first": "dy, dy"}, "condition wrong",
     "where z − x is negative it is not zero"),
)


def total(x):
    return x.sum(), x.shape


def total_backward(dy, shape):
    return np.full(shape, dy)


PAIRS += right("sum", total, normal((4, 4))).with_slips(
    ({"np.full(shape, dy)": "np.full(shape, dy) / 16"}, "factor of a size"),
    ({"np.full(shape, dy)": "dy"}, "shape wrong"),
)


def rotated(x):
    """Points in the plane, each turned by its place, as rotary positions are."""
    c, s = np.cos(np.arange(len(x))), np.sin(np.arange(len(x)))
    a, b = x.T
    return np.stack([a * c - b * s, a * s + b * c], -1), (c, s)


def rotated_backward(dy, cache):
    c, s = cache
    a, b = dy.T
    return np.stack([a * c + b * s, b * c - a * s], -1)


PAIRS += right("points turned", rotated, normal((4, 2))).with_slips(
    ({"a * c + b * s, b * c - a * s": "a * c - b * s, b * c + a * s"}, "sign"),
)
