"""What the checker asks of the functions it is given, and how its report reads."""

import re

import numpy as np
import pytest

from minitransformer.gradcheck import CheckError, check_module, check_pair
from minitransformer.gradcheck.numeric import directional_derivative, numeric_gradient
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.relu import relu, relu_backward

X = np.random.default_rng(0).standard_normal((3, 4))


def square(x):
    return x * x, x


def square_backward(dy, x):
    return 2 * x * dy


def test_numeric_gradient_of_a_known_function():
    dy = np.random.default_rng(1).standard_normal(X.shape)
    assert numeric_gradient(np.sin, X, dy) == pytest.approx(np.cos(X) * dy, abs=1e-9)


def test_an_entry_without_influence_has_exactly_no_numeric_gradient():
    gradient = numeric_gradient(lambda x: np.exp(x[1:] * 1e3 - 3e3), X, np.ones((2, 4)))
    assert not gradient[0].any()


def test_directional_derivative_is_gradient_times_direction():
    dy, direction = np.random.default_rng(1).standard_normal((2, *X.shape))
    expected = (np.cos(X) * dy * direction).sum()
    assert directional_derivative(np.sin, X, direction, dy) == pytest.approx(expected, abs=1e-9)


def test_a_right_pair_is_right_entry_by_entry_and_along_directions():
    for directions in (None, 2):
        report = check_pair(square, square_backward, (X,), directions=directions)
        assert report.right
        assert report.max_error < 1e-9
        assert str(report).startswith("  right  dx: relative error ")


def test_a_wrong_pair_is_wrong_along_directions_too():
    report = check_pair(square, lambda dy, x: 3 * x * dy, (X,), directions=2)
    assert not report.right
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
    assert "1 of its 12 entries are wrong, all of them at 1 on axis 0" in str(report)


def test_inputs_of_other_types_pass_through_unchecked():
    def scaled(x, ids, factor, name):
        assert (ids, factor, name) == ([1, 2], 3, "n")
        return x * factor, factor

    report = check_pair(scaled, lambda dy, factor: (dy * factor,), (X, [1, 2], 3, "n"))
    assert [tensor.name for tensor in report.tensors] == ["dx"]


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


def test_a_gradient_for_an_input_without_influence_is_wrong():
    pair = (lambda x, w: (x * x, x), lambda dy, x: (2 * x * dy, dy))
    report = check_pair(*pair, (X, X + 1))
    assert [tensor.right for tensor in report.tensors] == [True, False]
    assert "should be zero everywhere" in report.tensors[1].diagnosis


def test_a_kink_is_called_a_kink_and_not_a_wrong_gradient():
    x = X.copy()
    x[2, 1] = 0
    report = check_pair(relu, relu_backward, (x,))
    assert not report.right
    assert report.tensors[0].index == (2, 1)
    assert "slope changes at this very point" in report.tensors[0].diagnosis


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


def test_a_gradient_in_single_precision_is_told_so():
    report = check_pair(square, lambda dy, x: (2 * x * dy).astype(np.float32), (X,), tolerance=1e-9)
    assert "it is right but float32" in report.tensors[0].diagnosis


def test_missing_rows_are_located():
    def backward(dy, x):
        dx = 2 * x * dy
        dx[1] = 0
        return dx

    report = check_pair(square, backward, (X,))
    assert "zero where it should not be" in report.tensors[0].diagnosis


def test_a_scalar_output_can_be_checked():
    pair = (lambda x: ((x * x).sum(), x), lambda dy, x: 2 * x * dy)
    assert check_pair(*pair, (X,)).right


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


class Unsteady:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def forward(self, x):
        return x * self.rng.random(x.shape), x


@pytest.mark.parametrize(
    ("forward", "backward", "inputs", "message"),
    [
        (lambda x: x * x, square_backward, (X,), "forward must return (y, cache); it returned nd"),
        (lambda x: (x, x, x), square_backward, (X,), "it returned a tuple of 3"),
        (lambda x: (x.astype(np.float32), x), square_backward, (X,), "must return a float64 y"),
        (lambda x: (x + np.inf, x), square_backward, (X,), "forward returned NaN or infinity"),
        (square, lambda dy, x: dy[9], (X,), "backward raised IndexError: index 9"),
        (square, lambda dy, x: (dy, dy), (X,), "backward returned 2 gradients for 1 inputs"),
        (lambda x, w: (x * w, x), square_backward, (X, X), "returned 1 gradients for 2 inputs"),
        (square, square_backward, ([1.0, 2.0],), "no input is a float64 array"),
        (square, square_backward, (X.astype(np.float32),), "x is float32; central differences"),
        (Unsteady().forward, square_backward, (X,), "forward is not deterministic"),
        (writes_to_its_input, square_backward, (X,), "read-only"),
        (square, writes_to_its_upstream, (X,), "read-only"),
        (relu, relu_backward, (-np.abs(X) - 1,), "every gradient is zero"),
    ],
)
def test_what_cannot_be_checked_says_why(forward, backward, inputs, message):
    with pytest.raises(CheckError, match=re.escape(message)):
        check_pair(forward, backward, inputs)


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
