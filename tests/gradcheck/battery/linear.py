"""Linear and bilinear maps, embeddings, and gates."""

import numpy as np

from battery.table import normal, right

PAIRS = []


def linear(x, w, b):
    return x @ w + b, (x, w)


def linear_backward(dy, cache):
    x, w = cache
    return dy @ w.T, x.T @ dy, dy.sum(0)


PAIRS += right("linear", linear, normal((3, 5), (5, 4), (4,))).with_slips(
    ({"dy.sum(0)": "dy[-1]"}, "one row only"),
    ({"dy.sum(0)": "dy.mean(0)"}, "mean in place of sum"),
    ({"x.T @ dy": "x.T @ dy / len(x)"}, "factor of the batch"),
    ({"x.T @ dy": "np.outer(x[0], dy[0])"}, "one row only"),
    ({"dy.sum(0)": "dy.sum()"}, "sum over too much"),
    ({"dy.sum(0)": "np.ones(4)"}, "dy forgotten",
     "dy is forgotten: it is the same for every dy, and has to be linear in"),
)
PAIRS += right("linear, all sizes 4", linear, normal((4, 4), (4, 4), (4,))).with_slips(
    ({"dy @ w.T": "dy @ w"}, "transposed"),
    ({"x.T @ dy": "x @ dy"}, "transposed"),
    ({"dy.sum(0)": "dy.mean(0)"}, "mean in place of sum"),
    ({"dy.sum(0)": "dy.sum(1)"}, "axis wrong"),
    ({"x.T @ dy": "x.T @ dy / len(x)"}, "factor of the batch"),
    ({"dy @ w.T, x.T @ dy": "x.T @ dy, dy @ w.T"}, "exchanged"),
    ({"dy @ w.T": "dy * w"}, "product wrong", "* where @ belongs"),
)


def sequence_linear(x, w):
    """One matrix for each position of (B, T, D)."""
    return x @ w, (x, w)


def sequence_linear_backward(dy, cache):
    x, w = cache
    return dy @ w.T, np.einsum("btd,btf->df", x, dy)


PAIRS += right("linear over a sequence", sequence_linear, normal((2, 3, 5), (5, 4))).with_slips(
    ({'"btd,btf->df", x, dy': '"bd,bf->df", x[:, -1], dy[:, -1]'}, "last step only"),
    ({'"btd,btf->df", x, dy)': '"btd,btf->df", x, dy) / (2 * 3)'}, "factor of a size"),
    ({'"btd,btf->df", x, dy': '"bd,bf->df", x.mean(1), dy.sum(1)'}, "sum of products"),
)


def bilinear(x, a, z):
    """x A z for each row of x and z."""
    return np.einsum("bi,ij,bj->b", x, a, z), (x, a, z)


def bilinear_backward(dy, cache):
    x, a, z = cache
    dx = dy[:, None] * (z @ a.T)
    da = np.einsum("b,bi,bj->ij", dy, x, z)
    return dx, da, dy[:, None] * (x @ a)


PAIRS += right("bilinear form", bilinear, normal((3, 4), (4, 4), (3, 4))).with_slips(
    ({"z @ a.T": "z @ a"}, "transposed"),
    ({"dy[:, None] * (z @ a.T)": "dy[:, None] * (x @ a)"}, "own factor"),
)


def quadratic(x, a):
    return ((x @ a) * x).sum(-1), (x, a)


def quadratic_backward(dy, cache):
    x, a = cache
    dx = dy[:, None] * (x @ a + x @ a.T)
    return dx, np.einsum("b,bi,bj->ij", dy, x, x)


PAIRS += right("quadratic form", quadratic, normal((4, 3), (3, 3))).with_slips(
    ({" + x @ a.T": ""}, "second use forgotten"),
    ({"x @ a + x @ a.T": "2 * x @ a"}, "second use forgotten"),
)


def perceptron(x, w1, b1, w2):
    h = np.tanh(x @ w1 + b1)
    return h @ w2, (x, w1, h, w2)


def perceptron_backward(dy, cache):
    x, w1, h, w2 = cache
    dh = dy @ w2.T
    dz = dh * (1 - h * h)
    return dz @ w1.T, x.T @ dz, dz.sum(0), h.T @ dy


MLP = right("two layers", perceptron, normal((3, 5), (5, 4), (4,), (4, 2)))
PAIRS += MLP.with_slips(
    ({"dh * (1 - h * h)": "dh"}, "derivative left out", "the derivative of `np.tanh(x @ w1 + b1)`"),
    ({"h.T @ dy": "np.arctanh(h).T @ dy"}, "input before activation", "in place of `h`"),
    ({"1 - h * h": "1 - h"}, "power wrong"),
    ({"1 - h * h": "1 - np.tanh(h) ** 2"}, "derivative at y", "is taken at `np.tanh(x @ w1 + b1)`"),
    ({"x.T @ dz": "x.T @ dh"}, "derivative left out", "the derivative of `np.tanh(x @ w1 + b1)`"),
)


def embedding(table, ids):
    return table[ids], (table, ids)


def embedding_backward(dy, cache):
    table, ids = cache
    dtable = np.zeros_like(table)
    np.add.at(dtable, ids, dy)
    return dtable


TABLE = normal((7, 4), beside=[np.array([[1, 3, 1], [6, 0, 3]])])
PAIRS += right("embedding", embedding, TABLE).with_slips(
    ({"np.add.at(dtable, ids, dy)": "dtable[ids] = dy"}, "repeated index",
     "entries come more than once, and only one of them counts"),
    ({"return dtable": "dtable[[1, 3]] *= [2, 3, 4, 5]; return dtable"}, "repeated index",
     "which occur more than once in ids"),
    ({"ids, dy)": "ids + 1 - 7 * (ids == 6), dy)"}, "order wrong",
     "it is the right gradient shifted along axis 0, 1 too far"),
    ({"np.add.at(dtable, ids, dy)": "np.add.at(dtable, ids[:, -1], dy[:, -1])"}, "last step only",
     "the last index of axis 1 of dy only"),
)


def tied(table, ids):
    """The scores of all words for the mean of some: the table is used twice."""
    mean = table[ids].mean(1)
    return mean @ table.T, (table, ids, mean)


def tied_backward(dy, cache):
    table, ids, mean = cache
    dtable = dy.T @ mean
    dmean = dy @ table / ids.shape[1]
    np.add.at(dtable, ids, dmean[:, None])
    return dtable


PAIRS += right("tied embedding", tied, TABLE).with_slips(
    ({"np.add.at(dtable, ids, dmean[:, None])": "pass"}, "second use forgotten",
     "through `table[ids]`"),
    ({"dy.T @ mean": "0 * table"}, "second use forgotten", "the path through `table.T`"),
    ({" / ids.shape[1]": ""}, "term wrong"),
)


def squared_matrix(w):
    return w @ w, w


def squared_matrix_backward(dy, w):
    return dy @ w.T + w.T @ dy


PAIRS += right("matrix times itself", squared_matrix, normal((4, 4))).with_slips(
    ({" + w.T @ dy": ""}, "second use forgotten", "the path through `w` in `w @ w`"),
    ({"dy @ w.T + w.T @ dy": "2 * dy @ w.T"}, "second use forgotten"),
)


def low_rank(x, u, v):
    return x @ u @ v, (x, u, v)


def low_rank_backward(dy, cache):
    x, u, v = cache
    dxu = dy @ v.T
    return dxu @ u.T, x.T @ dxu, (x @ u).T @ dy


PAIRS += right("low rank", low_rank, normal((4, 5), (5, 2), (2, 3))).with_slips(
    ({"x.T @ dxu": "(dxu.T @ x).reshape(5, 2)"}, "transposed",
     "the right numbers in another order: is an axis moved"),
)
