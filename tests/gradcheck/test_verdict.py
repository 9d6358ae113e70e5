"""Every entry is judged against its own rounding noise: right, wrong, or told by nobody."""

import re

import numpy as np
import pytest
from battery.activations import relu, relu_backward
from battery.losses import mse, mse_backward

from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.numeric import refined_slope

SEEDS = range(5)
X = np.random.default_rng(0).standard_normal((3, 4))


def linear(x, w):
    return x @ w, (x, w)


def linear_backward(dy, cache):
    x, w = cache
    return dy @ w.T, x.T @ dy


def tanh_backward(dy, x):
    return dy * (1 - np.tanh(x) ** 2)


def squares(x):
    return (x * x).sum(), x


LARGE = {
    "tanh on 1e5":
        (lambda x: (1e5 + np.tanh(x), x), tanh_backward, lambda rng: (rng.normal(size=9),)),
    "tanh through 1e5":
        (lambda x: ((1e5 + np.tanh(x)) - 1e5, x), tanh_backward, lambda rng: (rng.normal(size=9),)),
    "targets around 1e5":
        (mse, mse_backward, lambda rng: (rng.normal(size=(4, 3)), 1e5 + rng.normal(size=(4, 3)))),
    "columns of 1 and 2e7":
        (linear, linear_backward,
         lambda rng: (rng.normal(size=(5, 2)) * [1, 2e7], rng.normal(size=(2, 3)))),
    "squares of house prices and of rooms":
        (squares, lambda dy, x: 2 * x * dy,
         lambda rng: (rng.uniform(1e5, 2e6, 40) * np.repeat([1, 1e-5], 20),)),
    "reciprocals":
        (lambda x: (1 / x, x), lambda dy, x: -dy / x**2,
         lambda rng: (np.array([1e-6, 1e-4, 0.5, 1, 2]) * rng.uniform(0.9, 1.1, 5),)),
    "logarithms of prices, weighed":
        (lambda x, w: (w * np.log(x), (x, w)), lambda dy, c: (dy * c[1] / c[0], dy * np.log(c[0])),
         lambda rng: (rng.uniform(1e8, 1e9, 6), rng.normal(size=6))),
    "logarithms near 0":
        (lambda x: (np.log(x), x), lambda dy, x: dy / x, lambda rng: (rng.uniform(1e-3, 1, 50),)),
    "roots near 0":
        (lambda x: (np.sqrt(x), x), lambda dy, x: dy / (2 * np.sqrt(x)),
         lambda rng: (rng.uniform(1e-3, 1, 50),)),
    "squares of millions":
        (lambda x: (np.square(1e6 * x), x), lambda dy, x: 2e12 * x * dy,
         lambda rng: (rng.uniform(1e-3, 1, 50),)),
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", LARGE)
def test_rounding_of_large_numbers_is_not_called_a_mistake(name, seed):
    forward, backward, inputs = LARGE[name]
    report = check_pair(forward, backward, inputs(np.random.default_rng(seed)), seed=seed)
    assert report.right, report


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", LARGE)
def test_nor_does_it_hide_one_or_its_cause(name, seed):
    forward, backward, inputs = LARGE[name]

    def tripled(dy, cache):
        gradients = backward(dy, cache)
        return tuple(3 * g for g in gradients) if isinstance(gradients, tuple) else 3 * gradients

    report = check_pair(forward, tripled, inputs(np.random.default_rng(seed)), seed=seed)
    assert {tensor.verdict for tensor in report.tensors} == {"wrong"}
    assert "it is 3 times too large" in str(report)


def test_a_small_entry_beside_a_large_one_is_judged_by_itself():
    x = np.array([1e-4, 0.5, 1, 2])
    report = check_pair(
        lambda x: (1 / x, x), lambda dy, x: -dy / x**2 * np.where(x > 1e-3, -3, 1), (x,)
    )
    (tensor,) = report.tensors
    assert tensor.verdict == "wrong"
    assert tensor.index != (0,)
    assert tensor.error == pytest.approx(4 / 3)
    assert tensor.analytic == pytest.approx(-3 * tensor.numeric)


def test_a_row_of_a_weight_may_not_be_zero_because_another_is_large():
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((5, 2)) * [1, 1e9], rng.standard_normal((2, 3))
    assert check_pair(linear, linear_backward, (x, w)).right
    report = check_pair(linear, lambda dy, c: (dy @ c[1].T, [[0], [1]] * (c[0].T @ dy)), (x, w))
    assert [tensor.verdict for tensor in report.tensors] == ["right", "wrong"]
    assert report.tensors[1].index[0] == 0


@pytest.mark.parametrize("seed", [149, 152])
def test_outputs_of_different_sizes_are_not_taken_for_a_kink(seed):
    """Of outputs about 1e7 the smallest changes first: in its last bits, little beside others."""
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((5, 2)) * [1, 2e7], rng.standard_normal((2, 3))
    report = check_pair(
        lambda x, w, b: (x @ w + b, (x, w)),
        lambda dy, cache: (*linear_backward(dy, cache), dy.sum(axis=0)),
        (x, w, rng.standard_normal(3)),
        seed=seed,
    )
    assert report.right


@pytest.mark.parametrize(("factor", "verdict"), [(1, "right"), (3, "wrong"), (0, "wrong")])
def test_a_gradient_that_is_small_but_real_is_compared_by_a_longer_step(factor, verdict):
    report = check_pair(
        lambda x: (1 + 1e-12 * x, None), lambda dy, cache: factor * 1e-12 * dy, (X,)
    )
    assert report.tensors[0].verdict == verdict


@pytest.mark.parametrize("factor", [1, 3])
def test_what_rounding_hides_cannot_be_told_and_what_to_change_is_said(factor):
    def backward(dy, x):
        return dy, factor * tanh_backward(dy, x)

    report = check_pair(lambda far, x: (far + np.tanh(x), x), backward, (1e15 + X, X))
    assert [tensor.verdict for tensor in report.tensors] == ["right", "cannot be told"]
    assert report.verdict == "cannot be told"
    assert not report.right
    assert "far has entries up to 1e+15: subtract their mean" in str(report)
    report = check_pair(lambda x: (1e15 + np.tanh(x), x), tanh_backward, (X,))
    assert "choose inputs with which forward computes with smaller numbers" in str(report)


def test_a_zero_that_is_but_the_rounding_of_backward_is_zero():
    """A shift of all scores leaves a softmax as it is; its gradient is what rounding leaves."""

    def forward(x, shift):
        e = np.exp(x + shift)
        y = e / e.sum(-1, keepdims=True)
        return y, y

    def backward(dy, y):
        dx = y * (dy - (dy * y).sum(-1, keepdims=True))
        return dx, dx.sum(-1, keepdims=True)

    report = check_pair(forward, backward, (X, X[:, :1] * 0.7))
    assert report.right
    assert [tensor.vacuous for tensor in report.tensors] == [False, True]


def test_a_kink_does_not_excuse_a_wrong_gradient_elsewhere():
    x = X.copy()
    x[2, 1] = 0
    report = check_pair(relu, lambda dy, x: dy * (x >= -1), (x,))
    assert report.tensors[0].verdict == "wrong"
    assert report.tensors[0].index != (2, 1)
    said = r"x has a kink at index \(2, 1\), value 0: its slope jumps"
    with pytest.raises(CheckError, match=said):
        check_pair(relu, lambda dy, x: dy * (x >= 0), (x,))


def test_nor_does_it_excuse_what_is_no_slope_of_its():
    x = X.copy()
    x[2, 1] = 0
    report = check_pair(relu, lambda dy, x: dy * np.where(x == 0, 3, x > 0), (x,))
    assert report.tensors[0].index == (2, 1)


def two_layers(x, w1, b1, w2):
    h = x @ w1 + b1
    a = np.maximum(h, 0)
    return a @ w2, (x, w1, w2, a)


def two_layers_backward(dy, cache):
    x, w1, w2, a = cache
    dh = dy @ w2.T * (a > 0)
    return dh @ w1.T, x.T @ dh, dh.sum(axis=0), a.T @ dy


def padded(seed):
    """Inputs of two layers with a row of zeros, which lies at the kink of every ReLU at once."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((4, 3))
    x[2] = 0
    return x, rng.standard_normal((3, 16)), np.zeros(16), rng.standard_normal((16, 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_where_many_kinks_lie_at_one_place_a_right_gradient_is_told_to_move(seed):
    """Of the choice of slope 0 for all that are at 0 the sum need not lie between the two sides."""
    with pytest.raises(CheckError, match="x has a kink at index"):
        check_pair(two_layers, two_layers_backward, padded(seed), seed=seed)
    x, w1, b1, w2 = padded(seed)
    with pytest.raises(CheckError, match="w1 has a kink at index"):
        check_pair(two_layers, two_layers_backward, (x, 0 * w1, b1, w2), seed=seed)


@pytest.mark.parametrize("factor", [1.0005, 3, -1])
def test_and_one_that_is_wrong_around_there_is_wrong(factor):
    def backward(dy, cache):
        dx, *others = two_layers_backward(dy, cache)
        dx[2] *= factor  # which is 0 at the kink
        return dx, *others

    assert check_pair(two_layers, backward, padded(0)).tensors[0].verdict == "wrong"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directions", [None, 3])
def test_a_relu_of_a_relu_is_told_to_move_along_directions_too(seed, directions):
    x = np.maximum(np.random.default_rng(seed).standard_normal((4, 6)), 0)
    with pytest.raises(CheckError, match=r"x has a kink (at index|along direction)"):
        check_pair(relu, relu_backward, (x,), seed=seed, directions=directions)
    for factor in (1.0005, 1.1):
        pair = relu, lambda dy, x, factor=factor: factor * dy * (x > 0)
        assert check_pair(*pair, (x,), seed=seed, directions=directions).verdict == "wrong"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_weak_kink_in_a_curve_is_one(seed):
    def backward(dy, x):
        return dy * (np.exp(x) + 1e-4 * (x > 0))

    pair = lambda x: (np.exp(x) + 1e-4 * np.maximum(x, 0), x), backward
    with pytest.raises(CheckError, match="x has a kink at index"):
        check_pair(*pair, np.zeros(3), seed=seed)
    assert not check_pair(pair[0], lambda dy, x: 1.0005 * backward(dy, x), np.zeros(3), seed=seed)


@pytest.mark.parametrize("seed", range(12))
def test_what_rounding_makes_of_a_slope_is_no_kink(seed):
    """Rounding inside of forward, which looks like a jump of the slope."""
    x = np.random.default_rng(seed).uniform(-2, 2, 1)
    report = check_pair(
        lambda x: ((1e5 + np.tanh(x)) - 1e5, x),
        lambda dy, x: 1.0005 * tanh_backward(dy, x),
        (x,),
        seed=seed,
    )
    assert report.verdict == "wrong"


def test_where_nothing_nearby_is_defined_a_slope_between_the_two_is_a_kinks():
    def sure(x):  # whose entries sum to 1, as probabilities do
        if abs(x.sum() - 1) > 1e-4:
            raise ValueError
        return np.maximum(x - 0.5, 0), x

    x = np.array([0.5, 0.3, 0.2])
    with pytest.raises(CheckError, match="x has a kink at index"):
        check_pair(sure, lambda dy, x: dy * (x > 0.5), (x,))
    assert not check_pair(sure, lambda dy, x: dy * np.where(x == 0.5, 3, x > 0.5), (x,))


def test_a_sharp_bend_is_no_kink_that_excuses():
    """Of the hyperbola √(x² + 1e-10) at 0, whose slope there is 0 and nearby almost ±1."""
    report = check_pair(
        lambda x: (np.sqrt(x * x + 1e-10), x),
        lambda dy, x: dy * (x / np.sqrt(x * x + 1e-10) + 0.1 * (x == 0)),
        (np.array([0.7, 0.0, -1.2]),),
    )
    assert report.tensors[0].index == (1,)


def test_nor_does_it_hide_the_cause_of_one():
    x = X.copy()
    x[2, 1] = 0
    report = check_pair(
        lambda x: (np.abs(x) * x + np.maximum(x, 0), x),
        lambda dy, x: dy * (2 * np.abs(x) + (x > 0)) * np.where(x == 0, 1, 3),
        (x,),
    )
    assert report.tensors[0].diagnosis.startswith("it is 3 times too large")


def test_nor_one_of_another_input():
    x = X.copy()
    x[2, 1] = 0
    report = check_pair(
        lambda x, w: (np.maximum(x, 0) + w * w, (x, w)),
        lambda dy, cache: (dy * (cache[0] >= 0), 3 * cache[1] * dy),
        (x, X),
    )
    assert [tensor.verdict for tensor in report.tensors] == ["cannot be told", "wrong"]
    assert "has a kink at index (2, 1)" in report.tensors[0].diagnosis


@pytest.mark.parametrize("near", [1e-3, 5e-6, 1e-8])
def test_a_kink_nearby_does_not_make_a_right_gradient_wrong(near):
    """Short steps change nothing on ReLU's flat side, and longer ones step over the kink."""
    x = np.array([near, -near, 1, -1])
    assert check_pair(relu, relu_backward, (x,)).right
    report = check_pair(relu, lambda dy, x: dy, (x,))
    assert report.verdict == "wrong"


def test_nor_does_a_maximum_that_is_nearly_reached_by_others():
    x = np.array([1, 1 - 1e-6, 0, -1])
    assert check_pair(lambda x: (x.max(), x), lambda dy, x: dy * (x == x.max()), (x,)).right


def test_where_forward_ends_to_be_defined_is_said_with_the_side():
    x = np.array([0.3, 0.0, 2.0])
    message = "x lies where forward stops being defined along index (1,): at x - 1e-05 forward"
    with pytest.raises(CheckError, match=re.escape(message)):
        check_pair(lambda x: (x * np.sqrt(x), x), lambda dy, x: 1.5 * np.sqrt(x) * dy, (x,))


def test_near_such_an_end_shorter_steps_are_taken():
    x = np.array([0.3, 3e-6, 2.0])
    assert check_pair(lambda x: (np.sqrt(x), x), lambda dy, x: dy / (2 * np.sqrt(x)), (x,)).right


def test_nor_does_such_an_end_excuse_a_wrong_gradient():
    x = np.array([0.3, 1e-7, 2.0])
    report = check_pair(lambda x: (np.log(x), x), lambda dy, x: 2 * dy / x, (x,))
    assert report.verdict == "wrong"


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_gradient_of_fewer_bits_than_its_input_is_wrong(dtype):
    report = check_pair(lambda x: (x * x, x), lambda dy, x: (2 * x * dy).astype(dtype), (X,))
    assert not report.right
    assert f"it is {dtype}, though all that went in is float64" in report.tensors[0].diagnosis


@pytest.mark.parametrize(("function", "x", "slope"), [
    (np.round, 0.2, 0),  # a longer step sees 1
    (lambda x: np.sin(16 * np.pi * x), 0.1, 16 * np.pi * np.cos(1.6 * np.pi)),  # steps of 1/8
    (lambda x: np.maximum(x, 0), -0.05, 0),
    (lambda x: (1e10 + np.tanh(x)) - 1e10, 0.3, 1 - np.tanh(0.3) ** 2),
    (lambda x: 1e15 + np.tanh(x), 0.3, 1 - np.tanh(0.3) ** 2),
    (np.tanh, 15.0, 1 / np.cosh(15.0) ** 2),
    (lambda x: np.sin(1e5 * x), 0.7, 1e5 * np.cos(7e4)),
    (lambda x: np.sin(1e6 * x), 0.7, 1e6 * np.cos(7e5)),
    (lambda x: np.maximum(x, 0), -5e-6, 0),
    (lambda x: 1e5 + np.maximum(x, 0), -5e-6, 0),
    (lambda x: 100 + np.logaddexp(0, 3000 * x) / 12, -0.0125, 250 * np.exp(-37.5)),
    (lambda x: 100 + np.logaddexp(0, 3000 * x) / 12, -0.02, 250 * np.exp(-60)),
    (lambda x: 3 + np.expm1(x), -36.0, np.exp(-36.0)),
    (lambda x: np.tanh(10 * x) + 1, -2.0, 10 / np.cosh(20) ** 2),
    (np.sin, 1e8, np.cos(1e8)),
    (lambda x: np.sin(1e5 * x), 640.0, 1e5 * np.cos(6.4e7)),
])  # fmt: skip
def test_a_slope_is_never_farther_off_than_its_bound(function, x, slope):
    found, error = refined_slope(function, np.array([x]), (0,), np.ones(1), x)
    assert abs(found - slope) <= error


def sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


SHARP = {
    "softplus": (lambda x: np.logaddexp(0, 3000 * x), lambda x: 3000 * sigmoid(3000 * x)),
    "sigmoid": (lambda x: sigmoid(300 * x), lambda x: 300 * sigmoid(300 * x) * sigmoid(-300 * x)),
    "bump": (lambda x: np.exp(-1e3 * x * x), lambda x: -2e3 * x * np.exp(-1e3 * x * x)),
    "hyperbola": (lambda x: np.sqrt(x * x + 1e-6), lambda x: x / np.sqrt(x * x + 1e-6)),
    "elu": (
        lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        lambda x: np.exp(np.minimum(x, 0)),
    ),
    "square of a ReLU": (lambda x: np.maximum(x, 0) ** 2, lambda x: 2 * np.maximum(x, 0)),
}


@pytest.mark.parametrize(
    "x",
    [X, X / 100, X / 1000, [-36, -30.5, 3, 0.7, 0.01]],
    ids=["ordinary", "small", "tiny", "far"],
)
@pytest.mark.parametrize("made", [np.asarray, np.mean], ids=["each", "mean"])
@pytest.mark.parametrize("name", SHARP)
def test_where_a_function_turns_sharply_right_is_right_and_wrong_is_wrong(name, made, x):
    function, derivative = SHARP[name]
    x = np.array(x, dtype=float)
    share = made(np.ones(x.shape)) / (x.size if made is np.mean else 1)

    def forward(x):
        return made(function(x)), x

    report = check_pair(forward, lambda dy, x: share * derivative(x) * dy, (x,))
    assert report.right, report
    report = check_pair(forward, lambda dy, x: 1.01 * share * derivative(x) * dy, (x,))
    assert report.verdict == "wrong"


def test_at_a_kink_of_the_slope_the_slope_is_known():
    function, derivative = SHARP["square of a ReLU"]
    for seed in SEEDS:
        x = np.array([[0.0, 1.2, -0.7], [0.0, 0.4, -2.0]])
        report = check_pair(
            lambda x: (function(x), x), lambda dy, x: derivative(x) * dy, (x,), seed=seed
        )
        assert report.right, report


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("scale", [5, 20, 40, 300])
@pytest.mark.parametrize("weights", [np.eye(4), np.arange(4.0)], ids=["each", "their mean"])
def test_an_influence_that_shows_far_away_alone_is_not_taken_for_none(weights, scale, seed):
    """A score of a tiny probability changes the others in bits that they do not have."""

    def backward(dy, y):
        dy = dy @ weights.T if weights.ndim == 2 else dy[:, None] * weights
        return y * (dy - (dy * y).sum(-1, keepdims=True))

    x = scale * np.random.default_rng(seed).standard_normal((2, 4))
    report = check_pair(lambda x: (softmax(x) @ weights, softmax(x)), backward, (x,), seed=seed)
    assert report.verdict != "wrong", report


@pytest.mark.parametrize("seed", SEEDS)
def test_at_a_kink_of_the_slope_the_slope_is_known_beside_large_outputs(seed):
    x = 5 * np.random.default_rng(seed).standard_normal((2, 4))
    x[0, 0] = x[1, 2] = 1
    for factor, right in ((2, True), (3, False)):
        report = check_pair(
            lambda x: ((np.maximum(0, 1 - x) ** 2).sum(-1), np.maximum(0, 1 - x)),
            lambda dy, margin, factor=factor: -factor * dy[:, None] * margin,
            (x,),
            seed=seed,
        )
        assert report.right == right, report


def test_nor_is_it_for_any_of_many_draws_of_rounding_inside_of_forward():
    """Rounding to multiples of 1.5e-11, which now and then repeats itself from step to step."""
    x = np.random.default_rng(1).standard_normal(1000)
    for value in x:
        found, error = refined_slope(
            lambda x: (1e5 + np.tanh(x)) - 1e5, np.array([value]), (0,), np.ones(1), value
        )
        assert abs(found - (1 - np.tanh(value) ** 2)) <= error < 1e-4
