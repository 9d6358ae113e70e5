"""What the checker asks of the functions it is given, and how its report reads."""

import math
import re
import sys
import time

import numpy as np
import pytest
from battery.elementary import square, square_backward

from minitransformer.gradcheck import CheckError, check_module, check_pair
from minitransformer.gradcheck.numeric import numeric_gradient, refined_slope, rounding
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.relu import relu, relu_backward

X = np.random.default_rng(0).standard_normal((3, 4))


def test_an_entry_without_influence_has_exactly_no_numeric_gradient():
    gradient = numeric_gradient(lambda x: np.exp(x[1:] * 1e3 - 3e3), X, np.ones((2, 4)))
    assert not gradient[0].any()


@pytest.mark.parametrize(("function", "derivative", "x"), [
    (np.log, lambda x: 1 / x, 1e-3),  # the first steps reach below zero
    (np.sqrt, lambda x: 0.5 / np.sqrt(x), 1e-4),
    (lambda x: np.sin(1000 * x), lambda x: 1000 * np.cos(1000 * x), 0.7),
    (lambda x: 1 / x, lambda x: -1 / x**2, 2e-3),
    (np.square, lambda x: 2 * x, 1e6),
])  # fmt: skip
def test_a_refined_slope_is_exact_where_a_function_bends_sharply(function, derivative, x):
    def forward(x):
        with np.errstate(invalid="ignore"):
            y = function(x)
        if np.isnan(y).any():
            raise CheckError("outside")
        return y

    one = np.ones(1)
    found, error = refined_slope(forward, np.array([x]), one, one, size=x)
    assert found == pytest.approx(derivative(x), rel=1e-8)
    assert abs(found - derivative(x)) <= error <= 1e-8 * abs(derivative(x))


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_a_refined_slope_is_known_to_some_roundings_of_large_outputs(offset):
    """The more powers of h² are removed, the longer is a step that will do."""
    one = np.ones(1)
    found, error = refined_slope(lambda x: offset + np.sin(x), one / 2, one, one, size=0.5)
    assert abs(found - np.cos(0.5)) <= error < 200 * rounding(offset, 1)


@pytest.mark.parametrize("directions", [None, 2])
def test_a_pair_is_right_or_wrong_entry_by_entry_and_along_directions(directions):
    report = check_pair(square, square_backward, (X,), directions=directions)
    assert report  # so that ``assert check_pair(...)`` is a test
    assert report.right
    assert report.max_error < 1e-9
    assert str(report).startswith("  right  dx: relative error ")
    report = check_pair(square, lambda dy, x: 3 * x * dy, (X,), directions=directions)
    assert f"worst {'along direction' if directions else 'at index'} " in str(report)
    assert not report
    assert report.tensors[0].diagnosis == "it is 1.5 times too large"


def test_the_report_prints_the_worst_entry_with_both_numbers():
    def backward(dy, x):
        dx = 2 * x * dy
        dx[1, 2] = 7.0
        return dx

    report = check_pair(square, backward, (X,))
    assert report.tensors[0].index == (1, 2)
    printed = re.search(r"worst at index \(1, 2\): yours 7, numeric (\S+)$", str(report))
    assert float(printed[1]) == pytest.approx(report.tensors[0].numeric)
    assert "1 of its 12 entries are wrong, all of them at 1 on axis 0; what stands" in str(report)


@pytest.mark.parametrize("count", [5, X.size])  # no entries, even if there are as many
def test_directions_are_not_called_entries(count):
    for spoil, said in ((lambda dx: np.roll(dx, 1), "wrong"), (lambda dx: dx * np.nan, "NaN or")):
        report = check_pair(square, lambda dy, x: spoil(2 * x * dy), X, directions=count)  # noqa: B023
        assert f"of the slopes along {count} directions are {said}" in report.tensors[0].diagnosis


@pytest.mark.parametrize(("x", "name"), [
    (X, "3 is the batch size"),
    (np.random.default_rng(3).standard_normal((2, 5, 4)), "10 is N, the number of rows"),
])  # fmt: skip
def test_a_size_has_one_name(x, name):
    factor = math.prod(x.shape[:-1])
    report = check_pair(square, lambda dy, x: 2 * x * dy / math.prod(x.shape[:-1]), (x,))
    assert report.tensors[0].diagnosis == f"it is {factor} times too small: {name}"


def test_inputs_of_other_types_pass_through_unchecked():
    def scaled(x, ids, factor, name):
        assert (ids, factor, name) == ([1, 2], 3, "n")
        return x * factor, factor

    report = check_pair(scaled, lambda dy, factor: (dy * factor,), (X, [1, 2], 3, "n"))
    assert [tensor.name for tensor in report.tensors] == ["dx"]
    assert str(report).endswith("not checked, as no float64 array: ids, factor, name")


def test_an_input_between_checked_ones_may_have_none():
    report = check_pair(
        lambda x, ids, w: (x[ids] * w, (x, ids, w)),
        lambda dy, cache: (np.eye(3)[cache[1]].T @ (dy * cache[2]), None, dy * cache[0][cache[1]]),
        (X, np.array([0, 0, 2]), X + 1),
    )
    assert report.right
    assert [tensor.name for tensor in report.tensors] == ["dx", "dw"]


def test_none_is_right_for_an_input_that_has_no_influence():
    pair = (lambda x, w: (x * x, x), lambda dy, x: (2 * x * dy, None))
    report = check_pair(*pair, (X, X + 1))
    assert report.right
    assert report.tensors[1].vacuous
    assert "zero everywhere, other inputs would prove more" in str(report)
    assert "not checked" not in str(report)


def test_a_gradient_for_an_input_without_influence_is_wrong():
    pair = (lambda x, w: (x * x, x), lambda dy, x: (2 * x * dy, dy))
    report = check_pair(*pair, (X, X + 1))
    assert [tensor.right for tensor in report.tensors] == [True, False]
    assert report.max_error == report.tensors[1].error
    assert "should be zero everywhere" in report.tensors[1].diagnosis


def test_a_wrong_gradient_where_the_slope_is_nearly_flat_is_not_called_a_kink():
    x = X.copy()
    x[2, 1] = 1e-6

    def backward(dy, x):
        dx = 2 * x * dy
        dx[2, 1] = 9
        return dx

    report = check_pair(square, backward, (x,))
    assert report.tensors[0].index == (2, 1)
    assert "1 of its 12 entries are wrong" in report.tensors[0].diagnosis


def test_the_upstream_gradient_does_not_repeat_inputs_drawn_from_the_same_seed():
    """If dy were x, xᵀ dy would be symmetric and its transpose pass."""
    seen = []
    x = np.random.default_rng(5).standard_normal((3, 4))
    check_pair(square, lambda dy, x: seen.append(dy) or 2 * x * dy, (x,), seed=5)
    assert not np.isin(seen[0], x).any()


def test_the_same_seed_gives_the_same_report():
    first, again, other = (check_pair(square, square_backward, (X,), seed=s) for s in (3, 3, 4))
    assert first.tensors == again.tensors
    assert first.tensors != other.tensors


def writes_to_its_input(x):
    x += 1
    return x * x, x


def writes_to_its_upstream(dy, x):
    dy *= 2 * x
    return dy


class HasNoArray:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("no")


def nothing(*arguments):
    pass


def weight():
    return {}["w"]


NOISE = np.random.default_rng(0)
W = [X + 1, X]


@pytest.mark.parametrize(("forward", "backward", "inputs", "message"), [
    (3, square_backward, X, "forward is 3; hand over a function"),
    (nothing, square_backward, X, "forward returned None: is its `return` missing?"),
    (lambda x: x * x, square_backward, X, "forward must return (y, cache); it returned ndarray"),
    (lambda x: (x, x, x), square_backward, X, "it returned a tuple of 3"),
    (lambda x: (None, x), square_backward, X, "forward returned None where y, an array"),
    (lambda x: ([[1.0, 2.0], [3.0]], x), square_backward, X,
     "forward returned list where y, an array of real numbers, should be"),
    (lambda x: (1j * x, x), square_backward, X, "should be: it is complex"),
    (lambda x: (x.astype(np.float32), x), square_backward, X, "must return a float64 y"),
    (lambda x: (x + np.inf, x), square_backward, X, "forward returned NaN or infinity"),
    (lambda x: (x * NOISE.random(x.shape), x), square_backward, X, "forward is not deterministic"),
    (writes_to_its_input, square_backward, X, "it must not write to what it is given"),
    (lambda x: (np.square(x, out=x if (x != X).any() else None), X.copy()), square_backward, X,
     "it must not write to what it is given"),
    (square, writes_to_its_upstream, X, "it must not write to what it is given"),
    (square, lambda dy, x: dy[9], X, "backward raised IndexError: index 9"),
    (square, lambda dy, x: dy * weight(), X, "raised KeyError: 'w' (test_check.py, line "
     f"{weight.__code__.co_firstlineno + 1})"),
    (square, lambda dy, x: (_ for _ in x).throw(GeneratorExit), X, "raised GeneratorExit"),
    (square, lambda dy, x: sys.exit(0), X, "backward raised SystemExit"),
    (square, lambda dy, x: (dy, dy), X, "backward returned 2 gradients for 1 inputs"),
    (lambda x, w: (x * w, x), square_backward, (X, X), "returned 1 gradients for 2 inputs"),
    (square, lambda dy, x: ((dy, dy[0]),), X, "backward returned a tuple of 2 where a gradient"),
    (square, lambda dy, x: "dx", X, "backward returned str where a gradient, an array"),
    (square, lambda dy, x: 2 * x * dy + 1j, X, "should be: it is complex"),
    (square, lambda dy, x: HasNoArray(), X,
     "backward returned HasNoArray where a gradient, an array of real numbers, should be: no"),
    (square, lambda dy, x: {"x": dy}, X,
     "backward returned a dict; return the gradients as a tuple, in the order of the inputs"),
    (square, lambda dy, x: (dy for _ in "x"), X,
     "backward returned a generator; return the gradients as a tuple, in the order of"),
    (relu, relu_backward, -np.abs(X) - 1, "every gradient is zero"),
    (square, square_backward, ([1.0, 2.0],),
     "no input is a float64 array: there is nothing to check (x is a list); make one of them"),
    (square, square_backward, np.arange(3), "(x is int64)"),
    (lambda x, m: (x + m, x), lambda dy, x: (dy, dy), (X, np.where(X > 0, 0, -np.inf)),
     "m holds NaN or infinity, where there is no gradient; a mask can be booleans"),
    (lambda x: (x.sum(0), x), lambda dy, x: np.broadcast_to(dy, X.shape).__imul__(2), X,
     "nor to a view such as np.broadcast_to and np.diagonal return"),
    (square, square_backward, np.zeros((0, 3)), "x has no entries, its shape is (0, 3)"),
    (square, square_backward, X.astype(np.float32), "x is float32; central differences"),
    (lambda x, w: (x * w[0] + w[1], w), lambda dy, w: (dy * w[0], w), (X, W),
     "w is a list that holds arrays, whose gradients would go unchecked; make each of them an "
     "input of its own"),
])  # fmt: skip
def test_what_cannot_be_checked_says_why(forward, backward, inputs, message):
    with pytest.raises(CheckError, match=re.escape(message)):
        check_pair(forward, backward, inputs)


def test_inputs_and_outputs_may_be_single_numbers_gradients_in_a_list_or_alone():
    pair = (lambda x: ((x * x).sum(), x)), lambda dy, x: [2 * x * dy]
    assert check_pair(*pair, (X,)).right
    assert check_pair(*pair, X).right
    assert check_pair(square, square_backward, (np.float64(3),)).right
    assert not check_pair(square, lambda dy, x: 5 * x * dy, (np.array(3.0),)).right


def test_a_module_is_checked_away_from_its_initial_values_and_left_alone():
    norm = LayerNorm(4)
    report = check_module(norm, X)
    assert report.right
    assert [tensor.name for tensor in report.tensors] == ["dx", "dgamma", "dbeta"]
    assert norm.gamma.data.dtype == np.float32
    assert (norm.gamma.data == 1).all()
    assert not norm.gamma.grad.any()


def test_inputs_without_a_name_in_the_signature_are_numbered():
    report = check_pair(lambda *xs: (xs[0] * xs[0], xs[0]), square_backward, (X,))
    assert report.tensors[0].name == "dinput_0"


@pytest.mark.usefixtures("clock")
def test_a_check_that_would_take_too_long_is_refused_with_a_way_out():
    def slow(x):
        time.sleep(0.01)
        return x * x, x

    x = np.random.default_rng(0).standard_normal((300, 100))
    with pytest.raises(CheckError, match=r"would take about \d+ s.* or directions=3"):
        check_pair(slow, square_backward, x)
    assert check_pair(slow, square_backward, x, directions=3).right


def test_only_modules_are_checked_as_modules():
    with pytest.raises(CheckError, match="expected a Module"):
        check_module(LayerNorm, X)
