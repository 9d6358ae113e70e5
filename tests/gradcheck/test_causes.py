"""The cause that is named, for each mistake learners make, and look-alikes that must not get it."""

import numpy as np
import pytest
from battery import WRONG
from battery.elementary import square
from battery.recurrent import RNN
from battery.softmaxes import softmax, softmax_backward
from battery.table import slipped
from battery.verdicts import verdict

from minitransformer.gradcheck import check_pair

rng = np.random.default_rng(7)
X = rng.standard_normal((4, 6))
ROWS = rng.standard_normal((8, 5))
GAIN = rng.uniform(0.5, 1.5, 5)
U = rng.standard_normal((6, 6)) / 3
ALL = np.arange(5)
TINY = np.array([1e-7, 1, 1, 1, 1, 1])


@pytest.mark.parametrize("pair", [pair for pair in WRONG if pair.says], ids=str)
def test_a_slip_has_its_cause_named_and_no_other(pair):
    found = verdict(pair)
    assert pair.says in str(found)
    assert found.judged(pair.tag) != "wrongly named"


@pytest.mark.parametrize("factor", [1.01, 1.5])
def test_where_all_have_one_factor_none_is_said_to_have_its_own(factor):
    (tensor,) = check_pair(
        lambda x: (np.sin(1e6 * x), x),
        lambda dy, x: factor * 1e6 * dy * np.cos(1e6 * x),
        (1e-6 * X,),
    ).tensors
    assert "a factor of its own" not in tensor.diagnosis


@pytest.mark.parametrize(("forward", "backward", "says"), [
    (lambda logits: (np.tanh(logits), np.tanh(logits)), lambda dy, y: dy * (1 - np.tanh(y) ** 2),
     "the derivative is taken at y; it has to be taken at logits"),
    (lambda y: (np.tanh(y), y), lambda dy, y: dy * (1 - y * y),
     "dy times (1 − the output²)"),
    (lambda exact: (np.tanh(exact), exact),
     lambda dy, x: dy * (1 - np.tanh(x) ** 2) * np.where(x > 0, np.exp(x), 1), "exact is positive"),
], ids=["another name", "an input y", "x in the name"])  # fmt: skip
def test_a_cause_calls_the_inputs_by_their_names(forward, backward, says):
    (tensor,) = check_pair(forward, backward, (X,)).tensors
    assert says in tensor.diagnosis


def normed(x, gain):
    x_hat = (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)
    return x_hat * gain, (x_hat, x.std(axis=-1, keepdims=True), gain)


def gain_outside(dy, cache):
    x_hat, sigma, gain = cache
    overlap = (dy * x_hat).mean(axis=-1, keepdims=True)
    dx = gain * (dy - dy.mean(axis=-1, keepdims=True) - x_hat * overlap) / sigma
    return dx, (dy * x_hat).sum(axis=0)


def squared_gain(x, gain):
    y, cache = normed(x, gain**2)
    return y, (cache, gain)


def squared_gain_outside(dy, cache):
    dx, dsquare = gain_outside(dy, cache[0])
    return dx, dsquare * 2 * cache[1]


def ascending(x):
    assert (np.diff(x) > 0).all()
    return (x * x).sum(), x


def no_gain(x):
    x_hat, (_, sigma, _) = normed(x, 1)
    return x_hat, (x_hat, sigma, np.linspace(0.5, 1.5, x.shape[-1]))


@pytest.mark.parametrize(("forward", "backward", "inputs", "says_not"), [
    (squared_gain, squared_gain_outside, (ROWS, GAIN), "multiplied after the mean terms"),
    (no_gain, lambda dy, cache: gain_outside(dy, cache)[0], (ROWS,), "gamma"),
    (lambda x, b: (np.maximum(0.1 * x @ U + b, 0), b),
     lambda dy, b: (0.1 * dy @ U.T, dy.sum(axis=0)),
     (X, np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])), "b is forgotten"),
    (lambda x: ((x * x).sum(), x), lambda dy, x: 2 * x * dy * x[0],
     (np.array([1.2094, 0.4]),), "1.2094 times"),
    (ascending, lambda dy, x: 2 * x * dy * x[0], (np.array([1.2094, 1.4]),), "1.2094 times"),
    (square, lambda dy, x: x * dy * len(x) ** 2, (X[:2],), "a factor of ½ is missing"),
    (square, lambda dy, x: 2 * x * dy * (1 + (x == x.max())), (X[0],), "above"),
    (square, lambda dy, x: 2 * (x * dy)[:, [0, 1, 2, 4, 3]], (ROWS,), "quarters"),
    (lambda x: ((x * TINY) @ (U + U.T), x),
     lambda dy, x: dy @ (U + U.T) * TINY * (1 + (TINY < 1)), (X,), "comes twice"),
    (lambda x, z: (x * x + z, (x, z)),
     lambda dy, inputs: (2 * inputs[0] * dy + 0.1 * inputs[1], dy), (X, U[:4]), "weight decay"),
    (lambda x: (x[ALL, ALL], x), lambda dy, x: np.diag(dy * GAIN), (ROWS[:5],), "each feature"),
    (softmax, lambda dy, y: y * (dy - (dy * y).sum() / 2), (ROWS[0],), "a multiple of y"),
    (lambda x: (np.tanh(x @ U),) * 2, softmax_backward, (X,), "the sum Σ(dy y)"),
    (lambda x: (x * (x[:, :1] > 0), x), lambda dy, x: dy, (ROWS,), "padding"),
], ids=["a squared gain outside", "a gain that forward has not", "a ReLU that the bias decides",
        "an entry of x", "an entry of x, in order", "half the square of the batch size",
        "the largest x", "parts of two sizes", "too small to be told", "another input added",
        "one entry a row", "one short row", "a softmax for tanh", "dead rows"])  # fmt: skip
def test_what_looks_alike_gets_no_such_cause(forward, backward, inputs, says_not):
    tensor = check_pair(forward, backward, inputs).tensors[0]
    assert tensor.diagnosis
    assert says_not not in tensor.diagnosis


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
        return RNN.forward(*inputs)

    backward = slipped(RNN.backward, {"** 2": "** 3"})
    report = check_pair(forward, backward, RNN.inputs(rng))
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
