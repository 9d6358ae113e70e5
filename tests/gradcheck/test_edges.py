"""Whatever a learner's pair does, it is told what of it could not be checked, and why."""

import re
import time
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from battery.elementary import square, square_backward
from battery.linear import embedding, embedding_backward

from minitransformer.core.module import FlatParameters, Module, Parameter
from minitransformer.gradcheck import CheckError, check_module, check_pair, diagnosis
from minitransformer.layers.layer_norm import LayerNorm

X = np.random.default_rng(0).standard_normal((3, 4))


class HasDtype:
    """As a tensor of another library has, which this one's names do not fit."""

    def __init__(self, dtype):
        self.dtype = dtype


def test_a_forgotten_return_of_backward_is_told_as_that():
    report = check_pair(lambda x, z: (x * z, (x, z)), lambda dy, cache: None, (X, X + 1))
    assert [tensor.verdict for tensor in report.tensors] == ["wrong", "wrong"]
    assert report.tensors[0].diagnosis.endswith("depends on it: is a `return` missing?")


@pytest.mark.parametrize("other", [
    HasDtype(np.dtype("f8")), HasDtype("f8"), [[1, 2], [3]], None,
    np.array([-9, 0, -2]), np.array([], dtype=int), np.array(3), np.bool_(True),
    np.array(["a", "b", "c"]), np.array([None, 1, "x"], dtype=object),
    np.array(["2017-06-12"], dtype="M8[D]"), np.zeros(3, dtype=[("a", int), ("b", float)]),
    np.ma.masked_array([1, 2, 3], [False, True, False]),
    (np.array([1, 0, 2]), {"mask": np.array([True, False, True]), "rate": 0.1}),
    np.random.default_rng(0), True, "relu", slice(1, 2), float("nan"),
], ids=lambda other: type(other).__name__)  # fmt: skip
@pytest.mark.parametrize("factor", [2, 3])
def test_other_inputs_pass_through_whatever_they_are(other, factor):
    report = check_pair(
        lambda x, other: (x * x, (x, other)),
        lambda dy, cache: (factor * cache[0] * dy, [[1], [2, 3]]),
        (X, other),
    )
    assert report.right == (factor == 2)
    assert report.unchecked == ["other"]


IDS = [-1, 0, -1], [[-3, 2], [2, -1]], [True, False, True], 2, -1, [], (slice(0, 2),)


@pytest.mark.parametrize("ids", IDS, ids=str)
def test_a_table_may_be_indexed_by_anything(ids):
    ids = np.array(ids, dtype=None if ids else int) if isinstance(ids, list | int) else ids
    if np.size(ids):
        assert check_pair(embedding, embedding_backward, (X, ids)).right
    report = check_pair(embedding, lambda dy, cache: embedding_backward(dy, cache) + 1, (X, ids))
    assert report.verdict == "wrong"


def test_what_a_mark_does_not_understand_is_wrong_without_a_cause(monkeypatch):
    def fails(evidence):
        raise IndexError

    monkeypatch.setattr(diagnosis, "MARKS", [fails])
    with pytest.raises(IndexError):  # as in all tests, which would not see it otherwise
        check_pair(square, lambda dy, x: 3 * x * dy, (X,))
    monkeypatch.setattr(diagnosis, "TOLERATED", Exception)
    report = check_pair(square, lambda dy, x: 3 * x * dy, (X,))
    assert report.tensors[0].diagnosis == "its values are wrong"


def test_what_has_no_value_where_dy_is_zero_is_not_called_a_term_without_dy():
    report = check_pair(square, lambda dy, x: 2 * x * dy / np.sqrt(np.abs(dy)), (X,))
    assert report.tensors[0].diagnosis.startswith("it is not linear in dy")


def test_where_y_has_another_shape_forward_is_not_defined():
    """A step that changes the sign of an entry changes how many are positive."""

    def backward(dy, x):
        dx = np.zeros_like(x)
        dx[x > 0] = 1e-12 * dy
        return dx

    x = np.array([0.2, -0.3, 0.5, -2])
    assert check_pair(lambda x: (1 + 1e-12 * x[x > 0], x), backward, (x,)).right


def test_a_wrong_shape_is_told_at_once_along_directions():
    x = np.random.default_rng(0).standard_normal((40, 50))
    calls = []

    def forward(x):
        calls.append(1)
        return x * x, x

    report = check_pair(forward, lambda dy, x: (2 * x * dy).T, (x,), directions=2)
    assert report.tensors[0].diagnosis == "its shape is (50, 40) and should be (40, 50)"
    assert len(calls) < 10


@dataclass(slots=True)
class Kept:
    x: np.ndarray


@pytest.mark.parametrize("keep", [Kept, lambda x: np.array([x, None], dtype=object)])
def test_a_cache_may_keep_arrays_in_whatever_holds_some(keep):
    def backward(dy, cache):
        x = cache.x if isinstance(cache, Kept) else cache[0]
        dx = 2 * x * dy
        x[...] = 0
        return dx

    (tensor,) = check_pair(lambda x: (x * x, keep(x.copy())), backward, (X,)).tensors
    assert "backward writes to its cache" in tensor.diagnosis


@pytest.mark.usefixtures("clock")
def test_what_a_first_call_takes_longer_does_not_count():
    waited = []

    def forward(x):
        if not waited:
            waited.append(time.sleep(0.9))
        return x * x, x

    time.sleep(5)
    report = check_pair(forward, square_backward, (X,), timeout=1)
    assert report.right
    assert report.seconds == pytest.approx(0.9)


def test_a_check_ends_when_its_time_is_up(clock):
    """Not foreseen: forward is fast until it is moved."""

    def forward(x):
        if (x != X).any():
            time.sleep(0.02)
        return x * x, x

    with pytest.raises(CheckError, match=r"takes more than 0.1 s; choose smaller inputs, or dir"):
        check_pair(forward, square_backward, (X,), timeout=0.1)
    assert clock() < 0.2


def test_warnings_are_reported_with_their_line():
    def forward(x):
        warnings.warn("take care", stacklevel=1)
        return np.where(x > 9, np.log(0 * x), x * x), x

    report = check_pair(forward, square_backward, (X,))
    assert report.right
    first, second = report.warnings
    assert re.fullmatch(r"UserWarning: take care \(test_edges.py, line \d+\)", first)
    assert re.fullmatch(r"RuntimeWarning: divide by zero .* \(test_edges.py, line \d+\)", second)
    assert f"warning: {first}" in str(report)


def test_those_of_places_that_only_a_check_goes_to_are_not():
    x = np.array([3e-6, 0.5])  # the first look reaches below zero
    report = check_pair(lambda x: (np.sqrt(x), x), lambda dy, x: dy / (2 * np.sqrt(x)), (x,))
    assert report.right
    assert report.warnings == []


class Scale(Module):
    """Its backward adds whatever the function ``gradient`` makes."""

    def __init__(self, gradient):
        self.gain = Parameter(np.ones(4))
        self.gradient = gradient

    def forward(self, x):
        return x * self.gain.data, x

    def backward(self, dy, x):
        self.gain.grad = self.gradient(self.gain.grad, dy * x)
        return dy * self.gain.data


REPLACES = "backward replaces what was in the gradient"


@pytest.mark.parametrize(("gradient", "cause"), [
    (lambda grad, dgain: np.add(grad, dgain.mean(0), out=grad), "it is 3 times too small"),
    (lambda grad, dgain: dgain.sum(0), REPLACES),
    (lambda grad, dgain: grad + dgain.sum(0), REPLACES),  # not in place
    (lambda grad, dgain: np.add(0, dgain.sum(0), out=grad), REPLACES),
    (lambda grad, dgain: dgain, REPLACES),
    (lambda grad, dgain: dgain.sum(0).tolist(), REPLACES),
    (lambda grad, dgain: None, REPLACES),
    (lambda grad, dgain: 4 * dgain.sum(0), REPLACES),  # whatever size 4 was tried for
], ids=["mean", "assigned", "anew", "written to", "another shape", "list", "None", "4 times"],
)  # fmt: skip
def test_whatever_a_module_makes_of_a_gradient_is_wrong_in_words(gradient, cause):
    dx, dgain = check_module(Scale(gradient), X).tensors
    assert dx.right
    assert dgain.diagnosis.startswith(cause)


@pytest.mark.parametrize(("factor", "shown"), [(1, False), (4, True)])
def test_of_a_replaced_gradient_values_are_shown_where_they_are_wrong_too(factor, shown):
    report = check_module(Scale(lambda grad, dgain: factor * dgain.sum(0)), X)
    assert ("relative error" in str(report.tensors[1])) == shown


def test_nan_in_a_gradient_is_not_called_replaced():
    gradient = Scale(lambda grad, dgain: np.add(grad, np.nan * dgain.sum(0), out=grad))
    _, dgain = check_module(gradient, X).tensors
    assert "NaN" in dgain.diagnosis


class Named(Module):
    """Whose parameter has the name of the input."""

    def __init__(self):
        self.x = Parameter(np.ones(4))

    def forward(self, x):
        return x * self.x.data, x

    def backward(self, dy, x):
        self.x.grad = (dy * x).sum(0)
        return dy * self.x.data


def test_what_is_replaced_is_that_of_the_parameter_and_not_of_an_input_of_its_name():
    dx, other = check_module(Named(), X).tensors
    assert dx.right
    assert other.diagnosis.startswith(REPLACES)


def test_warnings_of_a_module_stay_within_its_check():
    """Also where they are errors, as in these tests."""

    class Warns(Scale):
        def forward(self, x):
            warnings.warn("loud", stacklevel=1)
            return super().forward(x)

    report = check_module(Warns(lambda grad, dgain: np.add(grad, dgain.sum(0), out=grad)), X)
    assert report.right
    assert any("loud" in warning for warning in report.warnings)


class Table(Module):
    """Which is of parameters alone."""

    def __init__(self, sign):
        self.sign, self.table = sign, Parameter(np.full(3, 0.1 * sign, np.float32))

    def forward(self):
        return np.log(self.sign * self.table.data), None

    def backward(self, dy, cache):
        self.table.grad += dy / self.table.data


@pytest.mark.parametrize("sign", [1, -1])
def test_a_module_without_inputs_is_checked_and_what_is_of_one_sign_stays_so(sign):
    assert check_module(Table(sign)).right


def test_so_is_what_a_model_copies_into_a_gradient_that_is_a_view():
    model = Scale(lambda grad, dgain: dgain.sum(0))
    model.flat = FlatParameters(model)
    assert check_module(model, X).tensors[1].diagnosis.startswith(REPLACES)


def test_a_module_that_fails_later_is_wrong_if_it_was_so_before_and_cannot_be_checked_else():
    def fails_late(factor):
        def gradient(grad, dgain):
            if (dgain == X).all():  # where dy is 1, which it is where gradients are to be added to
                raise KeyError("late")
            grad += factor * dgain.sum(0)
            return grad

        return Scale(gradient)

    assert check_module(fails_late(2), X).verdict == "wrong"
    with pytest.raises(CheckError, match="backward raised KeyError: 'late'"):
        check_module(fails_late(1), X)


def test_what_a_module_lacks_is_said():
    with pytest.raises(CheckError, match="LayerNorm has no method backward"):
        check_module(type("LayerNorm", (LayerNorm,), {"backward": None})(4), X)


def test_the_line_in_which_a_module_fails_is_its_own():
    with pytest.raises(CheckError, match=r"backward raised KeyError: 'gain' \(test_edges.py, line"):
        check_module(Scale(lambda grad, dgain: {}["gain"]), X)


def test_none_for_an_input_that_matters_says_how_to_hand_over_a_constant():
    x, mask = np.array([0.3, -0.7, 1.2]), np.array([1.0, 0.0, 1.0])
    report = check_pair(lambda x, m: (x * m, m), lambda dy, m: (dy * m, None), (x, mask))
    (_, dm) = report.tensors
    assert "if m is a constant, hand it over as integers or booleans" in dm.diagnosis


@pytest.mark.parametrize(("options", "message"), [
    *((dict(directions=k), f"directions={k!r}; choose a whole number, 1 or more")
      for k in (0, -1, 2.0, "3")),
    *((dict(seed=seed), f"seed={seed!r}; choose a whole number, 0 or more")
      for seed in (-1, 0.5, None)),
    (dict(names=("x", "z")), "there are 2 names for 1 inputs; give each a name"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(CheckError, match=message):
        check_pair(square, square_backward, X, **options)
