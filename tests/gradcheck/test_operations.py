"""Slips inside a backward are shown at the operation of forward that they belong to."""

import numpy as np
import pytest
from battery.activations import GELU
from battery.elementary import POWER
from battery.linear import MLP
from battery.recurrent import RNN
from battery.table import slipped

from minitransformer.core.module import Module, Parameter
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.gradcheck.diagnosis import watched
from minitransformer.layers.linear import linear

rng = np.random.default_rng(3)
ROWS = rng.standard_normal((4, 5))
SEQUENCE = rng.standard_normal((3, 5, 4)) / 2
SQUARE, OTHER = rng.standard_normal((2, 4, 4)) / 2
BUFFER = np.empty((4, 4))
ANGLES = np.linspace(0.2, 2.0, 5)[:, None] * np.array([1.0, 0.3])


def columns(x, w):
    """Windows of 3 of x (B, T) as rows of a matrix, times w (3, F)."""
    steps = x.shape[1] - 2
    windows = np.empty((len(x), steps, 3))
    for t in range(steps):
        windows[:, t] = x[:, t : t + 3]
    return windows @ w, (x, w, windows)


def columns_backward(dy, cache):
    x, w, windows = cache
    dx, dwindows = np.zeros_like(x), dy @ w.T
    for t in range(dy.shape[1]):
        dx[:, t : t + 3] += dwindows[:, t]
    return dx, np.einsum("btk,btf->kf", windows, dy)


def rotated(x):
    """Pairs of entries of x (B, T, 4) turned by an angle each."""
    c, s = np.cos(ANGLES), np.sin(ANGLES)
    a, b = x[..., :2], x[..., 2:]
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1), (c, s)


def rotated_backward(dy, cache):
    c, s = cache
    da, db = dy[..., :2], dy[..., 2:]
    return np.concatenate([da * c + db * s, db * c - da * s], axis=-1)


def total(x):
    return x.sum(-1, keepdims=True)


def shares(x):
    return x / total(x) + x * x.mean(), x


def shares_backward(dy, x):
    t = total(x)
    dx = dy / t - total(dy * x) / t**2
    return dx + dy * x.mean() + (dy * x).mean()


def buffered(x, w):
    z = x @ w
    h = np.tanh(z + 1, out=BUFFER)
    return h * z, (x, w, z)


def buffered_backward(dy, cache):
    x, w, z = cache
    h = np.tanh(z + 1)
    dz = dy * h + dy * z * (1 - h * h)
    return dz @ w.T, x.T @ dz


def scaled(x, gain):
    return (x * gain) @ np.ones((4, 4)), (x, gain)


def scaled_backward(dy, cache):
    x, gain = cache
    d = dy @ np.ones((4, 4))
    return d * gain, (d * x).sum(axis=(0, 1))


def by_rows(x, u):
    """The state that a gated cell ends with, over the rows of x (T, H)."""
    h, tape = np.zeros(len(u)), []
    for row in x:
        z = 1 / (1 + np.exp(-row))
        n = np.tanh(row + h @ u)
        tape.append((h, z, n))
        h = z * h + (1 - z) * n
    return h, (tape, u)


def by_rows_backward(dh, cache):
    tape, u = cache
    dx, du = [], 0
    for h, z, n in reversed(tape):
        da = dh * (1 - z) * (1 - n * n)
        dz = dh * (h - n) * z * (1 - z)
        dx.insert(0, da + dz)
        du = du + np.outer(h, da)
        dh = dh * z + da @ u.T
    return np.array(dx), du


def gated(x, z):
    y = np.tanh(np.exp(x))
    return y * z + x, (x, y, z)


def gated_backward(dy, cache):
    x, y, z = cache
    return dy * z * (1 - y * y) * np.exp(x) + dy, dy * y


def weighted(x, alpha):
    """A mean of what was before and what comes, alpha one number."""
    y = [x[0]]
    for row in x[1:]:
        y.append((1 - alpha) * y[-1] + alpha * row)
    return np.array(y), (x, alpha, y)


def weighted_backward(dy, cache):
    x, alpha, y = cache
    dx, carry, dalpha = np.zeros_like(x), np.zeros_like(x[0]), 0.0
    for t in range(len(x) - 1, 0, -1):
        d = dy[t] + carry
        dalpha = dalpha + d @ (x[t] - y[t - 1])
        dx[t] = alpha * d
        carry = (1 - alpha) * d
    dx[0] = dy[0] + carry
    return dx, np.asarray(dalpha)


RNN_PAIR = RNN.forward, RNN.backward, RNN.inputs(rng)
SMOOTH = GELU.forward, GELU.backward, GELU.inputs(rng)
COLUMNS = columns, columns_backward, (ROWS, rng.standard_normal((3, 2)))
ROTATED = rotated, rotated_backward, (SEQUENCE,)
SCALED = scaled, scaled_backward, (SEQUENCE, np.array([1e-3, 1.0, 30.0, 2e4]))
BY_ROWS = by_rows, by_rows_backward, (ROWS[:, :4], SQUARE)
GATED = gated, gated_backward, (ROWS, ROWS + 1)
RAISED = POWER.forward, POWER.backward, (np.array([[0.4, 1.2], [2.0, 2.5]]), np.array([3, 1.2]))
BUFFERED = buffered, buffered_backward, (OTHER, SQUARE)
SHARES = shares, shares_backward, (np.abs(ROWS) + 0.1,)
WEIGHTED = weighted, weighted_backward, (ROWS, np.asarray(0.3))
SLIPS = [  # the pair, {was: is}, what each wrong gradient is said to be, and what none is
    (COLUMNS, {"+= dwindows": "= dwindows"}, {"dx": "entries come more than once"}, "mask"),
    (ROTATED, {"da * c + db * s": "da * c - db * s"}, {"dx": "wrong sign"}, "one entry gives"),
    (RNN_PAIR, {"dh = dz @ u.T": "dh = dz @ u.T * (t != 2)"}, {}, "tanh′|derivative"),
    (SMOOTH, {"3 * 0.044715": "3 * 0.0447"}, {}, "Σ|is missing"),
    (GATED, {"dy * z * (1": "2 * dy * z * (1"}, {"dx": "`np.exp(x)`"}, "`y * z`"),  # the first
    (BUFFERED, {"(1 - h * h)": "(1 - np.tanh(z) ** 2)"}, {"dx": "is taken at `x @ w`"}, "mask"),
    (SHARES, {" - total(dy * x) / t**2": "", " + (dy * x).mean()": ""},
     {"dx": "are taken for constants"}, "in place of"),
    (RAISED, {"(p - 1)": "p"}, {"dx": "lacks the exponent lowered by 1"}, "mask"),
    (SCALED, {"d * gain": "d * gain[::-1]"}, {}, "another order|exchanged"),
    (BY_ROWS, {"dh * z + da": "da"}, {"dx": "what is carried from step to step"}, "derivative"),
    (BY_ROWS, {"(h - n) * z": "(n - h) * z"}, {"dx": "has the wrong sign"}, "is missing"),
    (BY_ROWS, {"dh * (1 - z) * (1": "dh * z * (1"}, {"dx": "in place of `1 - z`"}, "missing"),
    (WEIGHTED, {"(x[t] - y[t - 1])": "x[t]"}, {"dalpha": "`alpha` in `1 - alpha`"}, "times too"),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "changes", "says", "says_not"), SLIPS)
def test_a_slip_is_shown_where_it_is(pair, changes, says, says_not):
    forward, backward, inputs = pair
    assert check_pair(forward, backward, inputs).right
    report = check_pair(forward, slipped(backward, changes), inputs)
    said = {t.name: t.diagnosis for t in report.tensors if not t.right}
    assert said
    for name, words in says.items():
        assert words in said[name]
    for words in says_not.split("|"):
        assert not any(words in cause for cause in said.values())


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1e4])
def test_numbers_of_any_size_do_not_make_a_function_of_single_entries_mix_them(size):
    report = check_pair(
        lambda x: (np.tanh(x / size), x), lambda dy, x: dy / size, (size * (ROWS + 0.1),)
    )
    assert "several entries" not in report.tensors[0].diagnosis


def test_a_forward_of_too_many_entries_is_not_watched(monkeypatch):
    wrong = slipped(MLP.backward, {" * (1 - h * h)": ""})
    monkeypatch.setattr(watched, "MOST", 100)
    assert "np.tanh" not in str(check_pair(MLP.forward, wrong, MLP.inputs(rng)))


def test_the_line_and_the_expression_are_those_of_forward():
    wrong = slipped(MLP.backward, {" * (1 - h * h)": ""})
    report = check_pair(MLP.forward, wrong, MLP.inputs(rng))
    line = MLP.forward.__code__.co_firstlineno + 1
    assert f"`np.tanh(x @ w1 + b1)` (line {line})" in report.tensors[0].diagnosis


@pytest.mark.parametrize("bits", ["float16", "float32"])
@pytest.mark.parametrize("what", ["dz = (dy * (1 - y * y)).astype(bits)", "x = x.astype(bits)"])
def test_fewer_bits_inside_are_known_from_a_constant_that_is_not_exact(bits, what):
    def backward(dy, cache):
        x, w, y = cache
        dz = dy * (1 - y * y)
        if what.startswith("x"):
            x = x.astype(bits)
        else:
            dz = dz.astype(bits)
        return dz.astype(float) @ w.T, x.T.astype(float) @ dz

    def forward(x, w):
        y = np.tanh(x @ w)
        return y, (x, w, y)

    report = check_pair(forward, backward, (ROWS[:, :4], SQUARE), tolerance=1e-9)
    assert f"something is rounded to {bits} on the way" in report.tensors[1].diagnosis


@pytest.mark.parametrize(("third", "says"), [
    (0.333333, "a constant not exact"), (0.3333, "1.0001 times too small"),
])  # fmt: skip
def test_a_constant_that_is_not_exact_is_not_called_rounding(third, says):
    def forward(x):
        assert np.abs(x).max() < 1.0001 * np.abs(ROWS).max()  # no room to see what 16 bits do
        return x * x / 3, x

    report = check_pair(forward, lambda dy, x: dy * 2 * x * third, (ROWS,))
    assert says in report.tensors[0].diagnosis


class Dense(Module):
    """tanh(x w + b), by way of a function that has twins; its backward forgets the tanh."""

    def __init__(self):
        self.w, self.b = Parameter(SQUARE.copy()), Parameter(np.zeros(4))

    def forward(self, x):
        z, _ = linear(x, self.w.data, self.b.data)
        return np.tanh(z), x

    def backward(self, dy, x):
        self.w.grad += x.T @ dy
        self.b.grad += dy.sum(0)
        return dy @ self.w.data.T


class Plain(Dense):
    def forward(self, x):
        return np.tanh(x @ self.w.data + self.b.data), x


@pytest.mark.parametrize("layer", [Dense, Plain])
def test_a_slip_of_a_module_is_shown_in_its_own_lines(layer):
    """At its input and at its parameters; no call of the checker's own is shown."""
    report = check_module(layer(), OTHER)
    assert [tensor.name for tensor in report.tensors] == ["dx", "dw", "db"]
    for tensor in report.tensors:
        assert "the derivative of `np.tanh(" in tensor.diagnosis, tensor
        assert " in `" not in tensor.diagnosis


@pytest.mark.parametrize("ids", [np.zeros(0, int), np.full(4, -9)], ids=["none", "of no class"])
def test_a_cause_is_found_whatever_ids_are_given(ids):
    report = check_pair(lambda x, ids: (x * x, x), lambda dy, x: (dy * 2, None), (ROWS, ids))
    assert "the factor x is missing" in report.tensors[0].diagnosis


def test_braces_in_a_line_of_forward_are_said_as_they_stand():
    ab = "ab"

    def forward(x, w):
        return np.einsum(f"{ab},bc->ac", x, w) + np.tanh(x @ w), (x, w)

    def backward(dy, cache):
        x, w = cache
        dz = dy * (1 - np.tanh(x @ w) ** 2)
        return dz @ w.T, x.T @ (dy + dz)

    report = check_pair(forward, backward, (ROWS, ROWS.T), names=("x", "w"))
    assert 'the path through `x` in `np.einsum(f"{ab},bc->ac", x, w)`' in str(report)


@pytest.mark.parametrize("name", ["shift", "context", "p"])
def test_only_what_is_called_a_state_tells_which_axis_is_time(name):
    x, added = rng.standard_normal((4, 3, 5)), rng.standard_normal((3, 5))

    def backward(dy, cache):
        return dy, dy.mean(axis=0)

    report = check_pair(lambda x, p: (x + p, None), backward, (x, added), names=("x", name))
    assert "4 is the batch size" in str(report)
