"""Linear and bilinear maps, embeddings, and gates."""

import numpy as np

from battery.table import Right, normal

PAIRS = []


def linear(x, w, b):
    return x @ w + b, (x, w)


def linear_backward(dy, cache):
    x, w = cache
    return dy @ w.T, x.T @ dy, dy.sum(0)


LINEAR = Right("linear", linear, linear_backward, normal((3, 5), (5, 4), (4,)))
SQUARE = Right("linear, all sizes 4", linear, linear_backward, normal((4, 4), (4, 4), (4,)))
PAIRS += LINEAR.with_slips(
    ({"dy.sum(0)": "dy[-1]"}, "db", "one row only", "db of the last row"),
    ({"dy.sum(0)": "dy.mean(0)"}, "db", "mean in place of sum", "db is a mean"),
    ({"x.T @ dy": "x.T @ dy / len(x)"}, "dw", "factor of the batch", "dw by the batch size"),
    ({"x.T @ dy": "np.outer(x[0], dy[0])"}, "dw", "one row only", "dw of the first row"),
    ({"dy.sum(0)": "dy.sum()"}, "db", "sum over too much", "db is summed to a number"),
    ({"dy.sum(0)": "np.ones(4)"}, "db", "dy forgotten", "db is 1",
     "dy is forgotten: it is the same for every dy, and has to be linear in"),
)
PAIRS += SQUARE.with_slips(
    ({"dy @ w.T": "dy @ w"}, "dx", "transposed", "w is not transposed"),
    ({"x.T @ dy": "x @ dy"}, "dw", "transposed", "x is not transposed"),
    ({"dy.sum(0)": "dy.sum(1)"}, "db", "axis wrong", "db is summed over features"),
    ({"x.T @ dy": "x.T @ dy / len(x)"}, "dw", "factor of the batch", "dw by the batch size"),
    ({"dy @ w.T, x.T @ dy": "x.T @ dy, dy @ w.T"}, "dx dw", "exchanged", "dx and dw are exchanged"),
    ({"dy @ w.T": "dy * w"}, "dx", "product wrong", "∗ for @", "* where @ belongs"),
)


def sequence_linear(x, w):
    """One matrix for each position of (B, T, D)."""
    return x @ w, (x, w)


def sequence_linear_backward(dy, cache):
    x, w = cache
    return dy @ w.T, np.einsum("btd,btf->df", x, dy)


SEQUENCE = Right("linear over a sequence", sequence_linear, sequence_linear_backward,
                 normal((2, 3, 5), (5, 4)))
PAIRS += SEQUENCE.with_slips(
    ({'"btd,btf->df", x, dy': '"bd,bf->df", x[:, -1], dy[:, -1]'}, "dw", "last step only",
     "dw of the last position only"),
    ({'"btd,btf->df", x, dy)': '"btd,btf->df", x, dy) / (2 * 3)'}, "dw", "factor of a size",
     "dw by the number of rows"),
    ({'"btd,btf->df", x, dy': '"bd,bf->df", x.mean(1), dy.sum(1)'}, "dw", "sum of products",
     "the product of sums over the length, for the sum of products"),
)


def bilinear(x, a, z):
    """x A z for each row of x and z."""
    return np.einsum("bi,ij,bj->b", x, a, z), (x, a, z)


def bilinear_backward(dy, cache):
    x, a, z = cache
    dx = dy[:, None] * (z @ a.T)
    da = np.einsum("b,bi,bj->ij", dy, x, z)
    return dx, da, dy[:, None] * (x @ a)


BILINEAR = Right("bilinear form", bilinear, bilinear_backward, normal((3, 4), (4, 4), (3, 4)))
PAIRS += BILINEAR.with_slips(
    ({"z @ a.T": "z @ a"}, "dx", "transposed", "A is not transposed"),
    ({"dy[:, None] * (z @ a.T)": "dy[:, None] * (x @ a)"}, "dx", "own factor",
     "dx is made as dz is"),
)


def quadratic(x, a):
    return ((x @ a) * x).sum(-1), (x, a)


def quadratic_backward(dy, cache):
    x, a = cache
    dx = dy[:, None] * (x @ a + x @ a.T)
    return dx, np.einsum("b,bi,bj->ij", dy, x, x)


PAIRS += Right("quadratic form", quadratic, quadratic_backward, normal((4, 3), (3, 3))).with_slips(
    ({" + x @ a.T": ""},               "dx", "second use forgotten", "x is used twice"),
    ({"x @ a + x @ a.T": "2 * x @ a"}, "dx", "second use forgotten", "A as if A = Aᵀ"),
)


def perceptron(x, w1, b1, w2):
    h = np.tanh(x @ w1 + b1)
    return h @ w2, (x, w1, h, w2)


def perceptron_backward(dy, cache):
    x, w1, h, w2 = cache
    dh = dy @ w2.T
    dz = dh * (1 - h * h)
    return dz @ w1.T, x.T @ dz, dz.sum(0), h.T @ dy


MLP = Right("two layers", perceptron, perceptron_backward, normal((3, 5), (5, 4), (4,), (4, 2)))
PAIRS += MLP.with_slips(
    ({"dh * (1 - h * h)": "dh"}, "dx dw1 db1", "derivative left out", "tanh is passed over",
     "the derivative of `np.tanh(x @ w1 + b1)`"),
    ({"h.T @ dy": "np.arctanh(h).T @ dy"}, "dw2", "input before activation", "z for h in dw2",
     "in place of `h`"),
    ({"1 - h * h": "1 - h"}, "dx dw1 db1", "power wrong", "1 − h for 1 − h²"),
    ({"1 - h * h": "1 - np.tanh(h) ** 2"}, "dx dw1 db1", "derivative at y", "tanh′ is taken at h",
     "is taken at `np.tanh(x @ w1 + b1)`"),
    ({"x.T @ dz": "x.T @ dh"}, "dw1", "derivative left out", "dw1 is made with dh",
     "the derivative of `np.tanh(x @ w1 + b1)`"),
)


def embedding(table, ids):
    return table[ids], (table, ids)


def embedding_backward(dy, cache):
    table, ids = cache
    dtable = np.zeros_like(table)
    np.add.at(dtable, ids, dy)
    return dtable


TABLE = normal((7, 4), beside=[np.array([[1, 3, 1], [6, 0, 3]])])
PAIRS += Right("embedding", embedding, embedding_backward, TABLE).with_slips(
    ({"np.add.at(dtable, ids, dy)": "dtable[ids] = dy"}, "dtable", "repeated index",
     "the last of repeated ids wins", "entries come more than once, and only one of them counts"),
    ({"np.add.at(dtable, ids, dy)": "dtable[ids] += dy"}, "dtable", "repeated index",
     "+= adds repeated ids once"),
    ({"return dtable": "dtable[[1, 3]] *= [2, 3, 4, 5]; return dtable"}, "dtable",
     "repeated index", "other factors where ids come twice", "which occur more than once in ids"),
    ({"ids, dy)": "ids + 1 - 7 * (ids == 6), dy)"}, "dtable", "order wrong",
     "every id is one too large", "it is the right gradient shifted along axis 0, 1 too far"),
    ({"np.add.at(dtable, ids, dy)": "np.add.at(dtable, ids[:, -1], dy[:, -1])"}, "dtable",
     "last step only", "the last position only", "the last index of axis 1 of dy only"),
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


PAIRS += Right("tied embedding", tied, tied_backward, TABLE).with_slips(
    ({"np.add.at(dtable, ids, dmean[:, None])": "pass"}, "dtable", "second use forgotten",
     "only the output's use is there", "through `table[ids]`"),
    ({"dy.T @ mean": "0 * table"}, "dtable", "second use forgotten", "only the input's use",
     "the path through `table.T`"),
    ({" / ids.shape[1]": ""}, "dtable", "term wrong", "the mean's 1/T is forgotten"),
)


def squared_matrix(w):
    return w @ w, w


def squared_matrix_backward(dy, w):
    return dy @ w.T + w.T @ dy


SQUARED = Right("matrix times itself", squared_matrix, squared_matrix_backward, normal((4, 4)))
PAIRS += SQUARED.with_slips(
    ({" + w.T @ dy": ""}, "dw", "second use forgotten", "the right factor is forgotten",
     "the path through `w` in `w @ w`"),
    ({"dy @ w.T + w.T @ dy": "2 * dy @ w.T"}, "dw", "second use forgotten",
     "one use counts for both"),
)


def low_rank(x, u, v):
    return x @ u @ v, (x, u, v)


def low_rank_backward(dy, cache):
    x, u, v = cache
    dxu = dy @ v.T
    return dxu @ u.T, x.T @ dxu, (x @ u).T @ dy


PAIRS += Right("low rank", low_rank, low_rank_backward, normal((4, 5), (5, 2), (2, 3))).with_slips(
    ({"x.T @ dxu": "(dxu.T @ x).reshape(5, 2)"}, "du", "transposed", "reshaped, not transposed",
     "the right numbers in another order: is an axis moved"),
)
