"""Claims about every recurrent layer: simple recurrence, GRU and LSTM, and both directions."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitransformer.layers.bidirectional import Bidirectional
from minitransformer.layers.elman import Elman
from minitransformer.layers.gru import GRU
from minitransformer.layers.lstm import LSTM
from minitransformer.layers.recurrence import hidden_weight

B, T, D, K = 3, 5, 4, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((B, T, D))
assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12)


def make(kind, **options):
    layer = kind(D, K, np.random.default_rng(1), **options).to(dtype=np.float64)
    for parameter in layer.parameters():
        parameter.data += np.random.default_rng(2).uniform(-0.5, 0.5, parameter.data.shape)
    return layer


LAYERS = {
    **{kind.__name__: make(kind) for kind in (Elman, GRU, LSTM)},
    **{f"{kind.__name__}, from the end": make(kind, reverse=True) for kind in (Elman, GRU, LSTM)},
    **{
        f"{kind.__name__}, both ways": make(partial(Bidirectional, kind))
        for kind in (Elman, GRU, LSTM)
    },
}
every_layer = pytest.mark.parametrize("name", LAYERS)
every_cell = pytest.mark.parametrize("name", ["Elman", "GRU", "LSTM"])
few = settings(max_examples=15)


def first_states(layer, batch):
    """Random ones for each part of the state; none for both directions, which begin at zero."""
    if isinstance(layer, Bidirectional):
        return []
    parts = 2 if isinstance(layer, LSTM) else 1
    return list(np.random.default_rng(3).standard_normal((parts, batch, K)))


def upstream(outputs):
    return [np.random.default_rng(4).standard_normal(y.shape) for y in outputs]


def gradients(layer, doutputs, cache):
    """Those of the inputs, as a list, and those of the parameters."""
    layer.zero_grad()
    dinputs = layer.backward(doutputs, cache)
    dinputs = list(dinputs) if isinstance(dinputs, tuple) else [dinputs]
    return dinputs, [parameter.grad.copy() for parameter in layer.parameters()]


def expect_equal(found, expected, same=assert_close):
    for x, y in zip(found, expected, strict=True):
        same(x, y)


# The formulas, a number at a time


def sigma(x):
    return 1 / (1 + math.exp(-x))


def elman_by_hand(a, u, state):
    return [[math.tanh(a[j] + u[j]) for j in range(K)]]


def gru_by_hand(a, u, state):
    h = state[0]
    r = [sigma(a[j] + u[j]) for j in range(K)]
    z = [sigma(a[K + j] + u[K + j]) for j in range(K)]
    n = [math.tanh(a[2 * K + j] + r[j] * u[2 * K + j]) for j in range(K)]
    return [[(1 - z[j]) * n[j] + z[j] * h[j] for j in range(K)]]


def lstm_by_hand(a, u, state):
    i, f, o = ([sigma(a[g * K + j] + u[g * K + j]) for j in range(K)] for g in (0, 1, 3))
    g = [math.tanh(a[2 * K + j] + u[2 * K + j]) for j in range(K)]
    c = [f[j] * state[1][j] + i[j] * g[j] for j in range(K)]
    return [[o[j] * math.tanh(c[j]) for j in range(K)], c]


@pytest.mark.parametrize(
    ("name", "cell"), [("Elman", elman_by_hand), ("GRU", gru_by_hand), ("LSTM", lstm_by_hand)]
)
def test_each_step_is_the_formula(name, cell):
    layer = LAYERS[name]
    first = first_states(layer, B)
    (y, *last), _ = layer.forward(X, *first)
    w, u, b, *b_hidden = (parameter.data for parameter in layer.parameters())
    for row in range(B):
        state = [part[row] for part in first]
        for t in range(T):
            state = cell(X[row, t] @ w + b, state[0] @ u + sum(b_hidden), state)
            assert_close(y[row, t], state[0])
        expect_equal([part[row] for part in last], state)


# Time


@every_cell
def test_step_by_step_is_as_all_at_once(name):
    layer = LAYERS[name]
    state = first_states(layer, B)
    (y, *last), _ = layer.forward(X, *state)
    for t in range(T):
        (y_t, *state), _ = layer.forward(X[:, t : t + 1], *state)
        assert_close(y_t[:, 0], y[:, t])
    expect_equal(state, last)


@every_cell
def test_from_the_end_is_from_the_start_of_the_text_turned_round(name):
    ahead, back = LAYERS[name], LAYERS[f"{name}, from the end"]
    state = first_states(ahead, B)
    (y, *last), cache = back.forward(X, *state)
    (turned, *last_turned), cache_turned = ahead.forward(X[:, ::-1], *state)
    expect_equal((y, *last), (turned[:, ::-1], *last_turned))
    dy, *dlast = upstream((y, *last))
    (dx, *dstate), dw = gradients(back, (dy, *dlast), cache)
    (dx_turned, *dstate_turned), dw_turned = gradients(ahead, (dy[:, ::-1], *dlast), cache_turned)
    expect_equal((dx, *dstate, *dw), (dx_turned[:, ::-1], *dstate_turned, *dw_turned))


@pytest.mark.parametrize("t", range(T))
def test_each_direction_sees_its_side_alone(t):
    other = X.copy()
    other[:, t] += 1
    (y, _), _ = LAYERS["GRU, both ways"].forward(X)
    (changed, _), _ = LAYERS["GRU, both ways"].forward(other)
    differs = (y != changed).any(axis=(0, 2))
    assert differs.all()  # together they see everything
    from_start, from_end = ((y != changed)[..., half] for half in (slice(K), slice(K, None)))
    np.testing.assert_array_equal(from_start.any(axis=(0, 2)), np.arange(T) >= t)
    np.testing.assert_array_equal(from_end.any(axis=(0, 2)), np.arange(T) <= t)


# Padding


@every_layer
@few
@given(
    length=st.integers(1, 4),
    before=st.integers(0, 3),
    after=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_padding_at_either_end_changes_nothing(name, length, before, after, seed):
    layer = LAYERS[name]
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, before + length + after, D))
    text = slice(before, before + length)
    mask = np.zeros(x.shape[:2], dtype=bool)
    mask[:, text] = True
    first = first_states(layer, 2)
    (y, *last), cache = layer.forward(x, *first, mask=mask)
    (short, *short_last), short_cache = layer.forward(x[:, text], *first)
    expect_equal((y[:, text], *last), (short, *short_last))
    assert not y[~mask].any()
    dy, *dlast = upstream((y, *last))
    (dx, *dfirst), dw = gradients(layer, (dy, *dlast), cache)
    (short_dx, *short_dfirst), short_dw = gradients(layer, (dy[:, text], *dlast), short_cache)
    expect_equal((dx[:, text], *dfirst, *dw), (short_dx, *short_dfirst, *short_dw))
    assert not dx[~mask].any()


@every_layer
def test_what_stands_at_padding_is_not_read(name):
    layer = LAYERS[name]
    mask = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=bool)
    other = np.where(mask[:, :, None], X, 1000 * X[::-1])
    outputs, cache = layer.forward(X, *first_states(layer, B), mask=mask)
    changed, changed_cache = layer.forward(other, *first_states(layer, B), mask=mask)
    expect_equal(changed, outputs, np.testing.assert_array_equal)
    dinputs, _ = gradients(layer, upstream(outputs), cache)
    changed_dinputs, _ = gradients(layer, upstream(outputs), changed_cache)
    expect_equal(changed_dinputs, dinputs, np.testing.assert_array_equal)


@every_layer
def test_a_row_that_is_all_padding_keeps_its_first_state(name):
    layer = LAYERS[name]
    mask = np.ones((B, T), dtype=bool)
    mask[1] = False
    first = first_states(layer, B)
    (y, *last), cache = layer.forward(X, *first, mask=mask)
    assert not y[1].any()
    dlast = upstream(last)
    (dx, *dfirst), _ = gradients(layer, (np.ones_like(y), *dlast), cache)
    assert not dx[1].any()
    assert dx[0].any()
    for begun, ended in zip(first or np.zeros((2, B, 2 * K)), last, strict=False):
        np.testing.assert_array_equal(ended[1], begun[1])
    for begun, ended in zip(dfirst, dlast, strict=False):
        np.testing.assert_array_equal(begun[1], ended[1])


@every_layer
def test_no_gradient_of_an_output_is_as_one_of_zeros(name):
    layer = LAYERS[name]
    outputs, cache = layer.forward(X)
    doutputs = upstream(outputs)
    for i in range(len(outputs)):
        without = [None if j == i else d for j, d in enumerate(doutputs)]
        zeros = [0 * d if j == i else d for j, d in enumerate(doutputs)]
        found, expected = (gradients(layer, d, cache) for d in (without, zeros))
        expect_equal((*found[0], *found[1]), (*expected[0], *expected[1]))


@pytest.mark.parametrize(
    ("mask", "error", "says"),
    [
        (np.ones((B, T)), TypeError, "boolean, True at tokens; its dtype is float64"),
        (np.ones((B, 1, T), dtype=bool), ValueError, r"shape \(3, 1, 5\).*needs one of \(3, 5\)"),
        (np.ones((B, T - 1), dtype=bool), ValueError, r"shape \(3, 4\).*needs one of \(3, 5\)"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask, error, says):
    with pytest.raises(error, match=says):
        LAYERS["GRU"].forward(X, mask=mask)


# First weights


def test_what_comes_from_the_state_keeps_its_length_in_every_gate():
    weight = hidden_weight(32, 3, np.random.default_rng(5))
    assert weight.dtype == np.float32
    for gate in np.split(weight.astype(np.float64), 3, axis=1):
        np.testing.assert_allclose(gate.T @ gate, np.eye(32), atol=1e-6)


def test_the_forget_gate_of_an_lstm_is_open_at_first():
    bias = LSTM(D, K, np.random.default_rng(6)).bias.data
    np.testing.assert_array_equal(bias.reshape(4, K).T, np.tile([0, 1, 0, 0], (K, 1)))


@every_layer
def test_a_batch_without_steps_is_refused_with_its_shape(name):
    with pytest.raises(ValueError, match=r"a batch of shape \(3, 0\) has no steps; give sequences"):
        LAYERS[name].forward(X[:, :0])
