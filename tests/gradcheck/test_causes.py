"""The cause that is named, for each mistake learners make, and look-alikes that must not get it.

A row is a forward, a backward with one slip, the inputs, the gradient looked at, what the diagnosis
says of it, and what it must not say.
"""

import numpy as np
import pytest

from minitransformer.gradcheck import check_pair

rng = np.random.default_rng(7)
X, Z = rng.standard_normal((2, 4, 6))
POSITIVE = np.abs(X) + 0.3
SEQUENCE = rng.standard_normal((3, 5, 4))
IMAGES = rng.standard_normal((2, 3, 4, 6))
ROWS = rng.standard_normal((8, 5))
GAIN, SHIFT = rng.uniform(0.5, 1.5, 5), rng.standard_normal(5)
LABELS = np.array([1, 4, 2, 0])
W, U, B = rng.standard_normal((4, 6)) / 2, rng.standard_normal((6, 6)) / 3, rng.standard_normal(6)
START = rng.standard_normal((3, 6)) / 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def of(function):
    """A forward whose cache is (x, y)."""
    return lambda x: (y := function(x), (x, y))


def slip(derivative):
    """A backward dy · derivative(x, y)."""
    return lambda dy, cache: dy * derivative(*cache)


def mean_square(x, z):
    return ((x - z) ** 2).mean(), (x, z)


def cross_entropy(x, labels):
    p = np.exp(x)
    p = p / p.sum(axis=-1, keepdims=True)
    return -np.log(p[np.arange(len(x)), labels]).mean(), (p, labels)


def softmax(x):
    p = np.exp(x)
    p = p / p.sum(axis=-1, keepdims=True)
    return p, p


def windows(x):
    b, c, h, w = x.shape
    x = x.reshape(b, c, h // 2, 2, w // 2, 2).swapaxes(3, 4)
    return x.reshape(b, c, h // 2, w // 2, 4)


def put_back(windows):
    b, c, h, w, _ = windows.shape
    return windows.reshape(b, c, h, w, 2, 2).swapaxes(3, 4).reshape(b, c, 2 * h, 2 * w)


def max_pool(x):
    return windows(x).max(axis=-1), windows(x)


def to_index(choose):
    return lambda dy, w: put_back(np.eye(4)[choose(w)] * dy[..., None])


def rnn(x, w, u, b, start):
    states = [start]
    for t in range(x.shape[1]):
        states.append(np.tanh(x[:, t] @ w + states[-1] @ u + b))
    return np.stack(states[1:], axis=1), (x, w, u, states)


def rnn_backward(count=lambda t, last: True, carried=1.0, tanh=lambda h: 1 - h * h):
    """That of ``rnn`` with some steps left out of the sums, or another error carried back."""

    def backward(dy, cache):
        x, w, u, states = cache
        dx, dw, du, db = np.zeros_like(x), np.zeros_like(w), np.zeros_like(u), np.zeros(len(u))
        dh = np.zeros_like(states[0])
        last = x.shape[1] - 1
        for t in range(last, -1, -1):
            dz = (dy[:, t] + dh) * tanh(states[t + 1])
            if count(t, last):
                dw, du = dw + x[:, t].T @ dz, du + states[t].T @ dz
                db = db + dz.sum(axis=0)
            dx[:, t] = dz @ w.T
            dh = dz @ u.T * carried
        return dx, dw, du, db, dh

    return backward


def two_layers(x, w, v):
    h = np.tanh(x @ w)
    return h @ v, (x, w, v, h)


def two_layers_backward(dy, cache):
    x, w, v, h = cache
    dh = dy @ v.T  # tanh′ is forgotten
    return dh @ w.T, x.T @ dh, h.T @ dy


def gates(x, w, u):
    """One step of a cell with three gates beside one another."""
    z = sigmoid(x @ w + u)
    a, b, c = np.split(z, 3, axis=-1)
    return a * b + c, (x, w, z)


def gates_backward(left_out):
    def backward(dy, cache):
        x, w, z = cache
        a, b, _ = np.split(z, 3, axis=-1)
        dz = np.concatenate([dy * b, dy * a, dy], axis=-1) * z * (1 - z)
        dz[:, left_out * 2 : left_out * 2 + 2] = 0
        return dz @ w.T, x.T @ dz, dz

    return backward


def convolution(x, w):
    taps, length = len(w), x.shape[1] - len(w) + 1
    return sum(x[:, k : k + length] @ w[k] for k in range(taps)), (x, w)


def convolution_backward(taps=lambda k, n: k, left_out=None):
    def backward(dy, cache):
        x, w = cache
        dx, dw, length = np.zeros_like(x), np.zeros_like(w), dy.shape[1]
        for k in range(len(w)):
            if k != left_out:
                dx[:, k : k + length] += dy @ w[taps(k, len(w))].T
                dw[k] = np.einsum("blc,blf->cf", x[:, k : k + length], dy)
        return dx, dw

    return backward


def batch_norm(x, gain, shift):
    x_hat = (x - x.mean(axis=0)) / x.std(axis=0)
    return x_hat * gain + shift, (x_hat, x.std(axis=0), gain)


def batch_norm_backward(dy, cache):
    x_hat, sigma, gain = cache
    dx_hat = dy * gain
    dx = (dx_hat - x_hat * (dx_hat * x_hat).mean(axis=0)) / sigma  # without the mean
    return dx, (dy * x_hat).sum(axis=0), dy.sum(axis=0)


def squared_gain(x, gain):
    x_hat = (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)
    return x_hat * gain**2, (x_hat, x.std(axis=-1, keepdims=True), gain)


def squared_gain_outside(dy, cache):
    x_hat, sigma, gain = cache
    overlap = (dy * x_hat).mean(axis=-1, keepdims=True)
    dx = gain**2 * (dy - dy.mean(axis=-1, keepdims=True) - x_hat * overlap) / sigma
    return dx, (dy * x_hat * 2 * gain).sum(axis=0)


def no_gain_at_all(x):
    x_hat = (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)
    return x_hat, (x_hat, x.std(axis=-1, keepdims=True), np.linspace(0.5, 1.5, x.shape[-1]))


def average_pool(x):
    return windows(x).mean(axis=-1), None


def gather(table, ids):
    return table[ids], (table, ids)


def assigned(dy, cache):
    table, ids = cache
    dtable = np.zeros_like(table)
    dtable[ids] = dy
    return dtable, None


SQUARE = of(np.square)
TANH, SIGMOID = of(np.tanh), of(sigmoid)
RNN = (SEQUENCE, W, U, B, START)
TWO = (rng.standard_normal((5, 3)), rng.standard_normal((3, 4)), rng.standard_normal((4, 2)))
CELL = (rng.standard_normal((4, 3)), rng.standard_normal((3, 6)), rng.standard_normal((4, 6)))
TAPS = (rng.standard_normal((2, 7, 3)), rng.standard_normal((3, 3, 4)))
BATCH_OF_2 = rng.standard_normal((2, 5))

CAUSES = [
    # dy
    ("dy forgotten", TANH, lambda dy, c: 1 - c[1] ** 2, (X,), "dx", "dy is forgotten", ""),
    (
        "dy in a loss",
        mean_square,
        lambda d, c: (2 * (c[0] - c[1]) / c[0].size, None),
        (X, Z),
        "dx",
        "dy is forgotten",
        "",
    ),
    ("dy twice", SQUARE, lambda dy, c: 2 * c[0] * dy * dy, (X,), "dx", "dy is used twice", ""),
    (
        "dy clipped",
        SQUARE,
        lambda dy, c: 2 * c[0] * np.clip(dy, -1, 1),
        (X,),
        "dx",
        "not linear in dy",
        "dy is forgotten",
    ),
    # Factors and sizes
    (
        "a 2 forgotten",
        SQUARE,
        slip(lambda x, y: x),
        (BATCH_OF_2,),
        "dx",
        "a factor of 2 is missing, as of a square",
        "batch",
    ),
    (
        "4, not the length",
        SQUARE,
        slip(lambda x, y: 8 * x),
        (SEQUENCE[:, :4],),
        "dx",
        "4 times too large",
        "length",
    ),
    (
        "a constant, not the root",
        SQUARE,
        slip(lambda x, y: 4 * x),
        (X,),
        "dx",
        "2 times too large",
        "root",
    ),
    (
        "the batch size",
        SQUARE,
        slip(lambda x, y: 2 * x / len(x)),
        (BATCH_OF_2,),
        "dx",
        "2 times too small: 2 is the batch size",
        "",
    ),
    (
        "N of a mean",
        mean_square,
        lambda d, c: (2 * d * (c[0] - c[1]), None),
        (X, Z),
        "dx",
        "24 times too large: 24 is the number of entries of x",
        "",
    ),
    (
        "the window",
        average_pool,
        lambda dy, c: put_back(np.repeat(dy[..., None], 4, axis=-1)),
        (IMAGES,),
        "dx",
        "several causes fit: 4 is the window",
        "size of axis",
    ),
    # Elementwise functions
    (
        "tanh′ without its square",
        TANH,
        slip(lambda x, y: 1 - y),
        (X,),
        "dx",
        "it is dy times (1 − y); it should be dy times (1 − y²)",
        "",
    ),
    ("tanh′ of x", TANH, slip(lambda x, y: 1 - x * x), (X,), "dx", "(1 − y²): x in place of y", ""),
    (
        "tanh′ at y",
        TANH,
        slip(lambda x, y: 1 - np.tanh(y) ** 2),
        (X,),
        "dx",
        "taken at y; it has to be taken at x",
        "",
    ),
    (
        "σ′ without 1 − y",
        SIGMOID,
        slip(lambda x, y: y),
        (X,),
        "dx",
        "dy times y (1 − y): the factor (1 − y) is missing",
        "at y",
    ),
    (
        "exp′ as x",
        of(np.exp),
        slip(lambda x, y: x),
        (X,),
        "dx",
        "it is dy times x; it should be dy times y",
        "at y",
    ),
    ("1/x upside down", of(np.log), slip(lambda x, y: x), (POSITIVE,), "dx", "upside down", ""),
    (
        "one slope of two",
        of(lambda x: np.where(x > 0, x, 0.1 * x)),
        slip(lambda x, y: 1),
        (X,),
        "dx",
        "where x is negative it is 10 times too large",
        "mask",
    ),
    (
        "ReLU the wrong way round",
        of(lambda x: x * (x > 0)),
        slip(lambda x, y: x < 0),
        (X,),
        "dx",
        "the condition is the wrong way round",
        "dropout",
    ),
    (
        "silu′ without a term",
        of(lambda x: x * sigmoid(x)),
        slip(lambda x, y: sigmoid(x)),
        (X,),
        "dx",
        "in `sigmoid(x)`",
        "",
    ),
    (
        "no one-hot",
        cross_entropy,
        lambda d, c: (d * c[0] / len(c[1]), None),
        (X, LABELS),
        "dx",
        "(softmax − one-hot(labels))",
        "",
    ),
    # Sums, order, uses
    (
        "last step of a sum",
        lambda x, b: (x + b, None),
        lambda dy, c: (dy, dy[:, -1].sum(axis=0)),
        (SEQUENCE, SHIFT[:4]),
        "db",
        "the last index of axis 1 of dy only",
        "",
    ),
    (
        "first step left out",
        lambda x, b: (x + b, None),
        lambda dy, c: (dy, dy[:, 1:].sum(axis=(0, 1))),
        (SEQUENCE, SHIFT[:4]),
        "db",
        "the first index of axis 1 of dy is left out",
        "",
    ),
    (
        "summed over one axis",
        lambda x, b: (x + b, None),
        lambda dy, c: (dy, dy.sum(axis=0)),
        (SEQUENCE, SHIFT[:4]),
        "db",
        "still has to be summed",
        "",
    ),
    (
        "a broadcast axis",
        lambda x, b: (x + b, None),
        lambda dy, c: (dy, dy),
        (SEQUENCE, SEQUENCE[:, :1]),
        "db",
        "summed over axis 1 with keepdims=True",
        "",
    ),
    (
        "one use of two",
        lambda x: (x @ x.T, x),
        lambda dy, x: dy @ x,
        (X,),
        "dx",
        "the path through `x.T` in `x @ x.T`",
        "times too",
    ),
    (
        "only a sum's wrong axis",
        lambda x: (x.cumsum(axis=1), None),
        lambda dy, c: dy.cumsum(axis=1),
        (X,),
        "dx",
        "in the wrong order",
        "",
    ),
    (
        "not exchanged",
        lambda x, z: (x * z, (x, z)),
        lambda dy, c: (dy * c[0], dy * c[0]),
        (X, Z),
        "dx",
        "it is the gradient of z",
        "exchanged",
    ),
    (
        "repeated ids",
        gather,
        assigned,
        (rng.standard_normal((6, 3)), np.array([1, 4, 1, 5])),
        "dtable",
        "entries come more than once, and only one of them counts",
        "",
    ),
    (
        "the mean of dy for each row's own",
        lambda x: (np.log(x).sum(axis=1, keepdims=True), x),
        lambda dy, x: dy.mean() / x,
        (POSITIVE,),
        "dx",
        "it is what it would be for a dy that is averaged over axis 0, before the sum",
        "",
    ),
    # Softmax and norms
    (
        "softmax over the batch",
        softmax,
        lambda dy, p: p * (dy - (dy * p).sum(axis=0)),
        (X,),
        "dx",
        "runs over axis 0; it has to run over axis 1",
        "",
    ),
    (
        "the diagonal alone",
        softmax,
        lambda dy, p: p * (1 - p) * dy,
        (X,),
        "dx",
        "is taken to be h (1 − h), where z goes in and h comes out",
        "",
    ),
    (
        "batch norm's mean",
        batch_norm,
        batch_norm_backward,
        (ROWS, GAIN, SHIFT),
        "dx",
        "the path through `x.mean(axis=0)`",
        "LayerNorm",
    ),
    (
        "a squared gain outside",
        squared_gain,
        squared_gain_outside,
        (ROWS, GAIN),
        "dx",
        "",
        "multiplied after the mean terms",
    ),
    (
        "no gain outside",
        no_gain_at_all,
        lambda dy, c: squared_gain_outside(dy, c)[0],
        (ROWS,),
        "dx",
        "",
        "gamma",
    ),
    (
        "not each head",
        lambda x, g: (x * g[:, None, None], (x, g)),
        lambda dy, c: (dy, (dy * c[0]).sum(axis=(0, 2, 3))),
        (IMAGES, GAIN[:3]),
        "dx",
        "the factor `g[:, None, None]` is forgotten",
        "head",
    ),
    # Inside
    (
        "tanh′ of a hidden layer",
        two_layers,
        two_layers_backward,
        TWO,
        "dw",
        "the derivative of `np.tanh(x @ w)`",
        "",
    ),
    # Time
    (
        "only the last step",
        rnn,
        rnn_backward(count=lambda t, last: t == last),
        RNN,
        "dw",
        "at the last of 5 times only: are the others left out",
        "mask",
    ),
    (
        "the first step",
        rnn,
        rnn_backward(count=lambda t, last: t > 0),
        RNN,
        "db",
        "is missing at the first of 5 times",
        "mask",
    ),
    (
        "nothing carried",
        rnn,
        rnn_backward(carried=0),
        RNN,
        "dx",
        "what is carried from step to step through `states[-1]` in `states[-1] @ u`",
        "mask",
    ),
    (
        "half carried",
        rnn,
        rnn_backward(carried=0.5),
        RNN,
        "dw",
        "what is carried from step to step through `states[-1]` in `states[-1] @ u` (line",
        "",
    ),
    ("a gate", gates, gates_backward(1), CELL, "dw", "the path through `b` in `a * b`", "dropout"),
    (
        "weights not transposed",
        lambda q, v: ((p := softmax(q @ q.swapaxes(1, 2))[0]) @ v, p),
        lambda dy, p: (None, p @ dy),
        (SEQUENCE, SEQUENCE[::-1] ** 2),
        "dv",
        "has to be transposed, or must not be",
        "is missing",
    ),
    # Taps and windows
    (
        "a small kernel turned round",
        lambda x, w: (x[:, :-2] * w[0] + x[:, 1:-1] * w[1] + x[:, 2:] * w[2], w),
        lambda dy, w: (sum(np.pad(dy * w[2 - i], ((0, 0), (i, 2 - i))) for i in range(3)), None),
        (X, GAIN[:3]),
        "dx",
        "",
        "gain",
    ),
    (
        "a ReLU passed over, where each bias is 1 or -1 and decides",
        lambda x, b: (np.maximum(0.1 * x @ U + b, 0), b),
        lambda dy, b: (0.1 * dy @ U.T, dy.sum(axis=0)),
        (X, np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])),
        "dx",
        "",
        "b is forgotten",
    ),
    (
        "a tap",
        convolution,
        convolution_backward(left_out=0),
        TAPS,
        "dx",
        "`x[:, k : k + length] @ w[k]`",
        "",
    ),
    (
        "a tap's own gradient",
        convolution,
        convolution_backward(left_out=2),
        TAPS,
        "dw",
        "is missing at the last of 3 times",
        "dropout",
    ),
    (
        "a kernel turned round",
        convolution,
        convolution_backward(taps=lambda k, n: n - 1 - k),
        TAPS,
        "dx",
        "for w reversed along axis 0",
        "",
    ),
    (
        "the index of a maximum",
        max_pool,
        to_index(lambda w: w.argmin(axis=-1)),
        (IMAGES,),
        "dx",
        "is the index of the maximum wrong?",
        "dropout",
    ),
    (
        "all of a window",
        max_pool,
        lambda dy, w: put_back(np.repeat(dy[..., None] / 4, 4, axis=-1)),
        (IMAGES,),
        "dx",
        "every entry gets its share, and should go to the chosen one",
        "mask",
    ),
]


@pytest.mark.parametrize("row", CAUSES, ids=lambda row: row[0])
def test_a_slip_has_its_cause_named_and_no_other(row):
    _, forward, backward, inputs, name, says, says_not = row
    report = check_pair(forward, backward, inputs)
    (said,) = (t.diagnosis for t in report.tensors if t.name == name)
    assert said
    assert says in said
    assert not says_not or says_not not in said


def test_a_size_that_cannot_be_changed_is_one_of_several_causes():
    def only_for_4_rows(x):
        assert len(x) == 4
        return x * x, x

    report = check_pair(only_for_4_rows, lambda dy, x: x * dy / 2, (X,))
    assert "several causes fit: 4 is the batch size or" in report.tensors[0].diagnosis


def test_a_diagnosis_calls_forward_less_than_10000_times_a_gradient_though_it_tries_much():
    """A recurrent cell's, the slowest: every step of every call is a loop in Python."""
    calls = []

    def forward(*inputs):
        calls.append(1)
        return rnn(*inputs)

    report = check_pair(forward, rnn_backward(tanh=lambda h: 1 - h**3), RNN)
    assert not report.right
    assert len(calls) < 10_000 * len(report.tensors)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_a_factor_is_named_at_any_size(size):
    report = check_pair(
        lambda x: (size * np.tanh(x), x), lambda dy, x: 3 * size * dy * (1 - np.tanh(x) ** 2), (X,)
    )
    assert report.tensors[0].diagnosis == "it is 3 times too large"


def test_a_function_of_single_entries_is_known_as_one_next_to_its_kink():
    """Entries there have been refined, and the trials that tell it have not."""
    report = check_pair(
        lambda x: (np.maximum(x, 0), x), lambda dy, x: 2 * dy * (x > 0), (1e-6 * X,)
    )
    assert "each output depends on several entries" not in report.tensors[0].diagnosis
