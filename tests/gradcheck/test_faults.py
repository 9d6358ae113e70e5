"""A backward whose gradients are right, once: it has to rely on its cache alone."""

import numpy as np
import pytest

from minitransformer.gradcheck import check_module, check_pair
from minitransformer.module import Module, Parameter

X, Z = np.random.default_rng(0).standard_normal((2, 3, 4))


def square(x):
    return x * x, x


class Remembering:
    def forward(self, x):
        self.x = x
        return x * x, None

    def backward(self, dy, cache):
        return 2 * self.x * dy


class RememberingSigns:
    """What it remembers is the same for all inputs near these."""

    def forward(self, x):
        self.positive = x > 0
        return np.where(self.positive, x, 0), None

    def backward(self, dy, cache):
        return dy * self.positive


class Stacking(Remembering):
    """Forward pushes, backward pops: the last in is another call's."""

    def __init__(self):
        self.pushed = []

    def forward(self, x):
        self.pushed.append(x)
        return x * x, None

    def backward(self, dy, cache):
        return 2 * self.pushed.pop() * dy


class Buffering:
    """Writes every y into the same array; its cache may be another one, or the same."""

    def __init__(self, cache):
        self.cache = cache
        self.y = np.empty_like(X)

    def forward(self, x):
        return np.tanh(x, out=self.y), x if self.cache == "x" else self.y

    def backward(self, dy, cache):
        y = np.tanh(cache) if self.cache == "x" else cache
        return dy * (1 - y * y)


def writes_to_its_cache(dy, slope):
    slope *= 2 * dy
    return slope.copy()


def empties_its_cache(dy, cache):
    return 2 * cache.pop() * dy


def writes_to_y(dy, y):
    y *= dy
    return y.copy()


class Unsteady:
    def __init__(self, size=1e-12):
        self.size = size
        self.rng = np.random.default_rng(0)

    def backward(self, dy, x):
        return 2 * x * dy + self.size * self.rng.random(x.shape)


def exp(x):
    y = np.exp(x)
    return y, (y,)


@pytest.mark.parametrize(
    ("forward", "backward", "says"),
    [
        (Remembering, "backward", "no global and nothing on self"),
        (RememberingSigns, "backward", "no global and nothing on self"),
        (Stacking, "backward", "no global and nothing on self"),
        (lambda: Buffering("y"), "backward", "no later forward may write to that cache"),
        (lambda x: (x * x, x.copy()), writes_to_its_cache, "backward writes to its cache"),
        (lambda x: (x * x, [x]), empties_its_cache, "or empties it"),
        (exp, lambda dy, cache: writes_to_y(dy, cache[0]), "writes to the y that forward returned"),
        (square, Unsteady().backward, "backward is not deterministic"),
    ],
    ids=["self", "signs", "stack", "buffer", "writes", "pops", "y", "unsteady"],
)
def test_a_gradient_that_is_right_once_is_wrong(forward, backward, says):
    if backward == "backward":
        layer = forward()
        forward, backward = layer.forward, layer.backward
    report = check_pair(forward, backward, (X,))
    (tensor,) = report.tensors
    assert tensor.verdict == "wrong"
    assert says in tensor.diagnosis
    assert says in str(report)


def test_what_differs_from_call_to_call_gets_no_other_cause_when_it_is_wrong_each_time():
    report = check_pair(square, Unsteady(size=1).backward, (X,))
    assert report.tensors[0].diagnosis.startswith("backward is not deterministic")


def test_only_the_gradient_that_reads_elsewhere_is_wrong():
    held = {}

    def forward(x, z):
        held["x"] = x
        return x * z, z

    report = check_pair(forward, lambda dy, z: (dy * z, dy * held["x"]), (X, Z))
    assert [tensor.verdict for tensor in report.tensors] == ["right", "wrong"]


def test_a_wrong_value_is_told_before_how_it_came_about():
    report = check_pair(Remembering().forward, lambda dy, cache: 3 * dy, (X,))
    assert "no global" not in report.tensors[0].diagnosis


def test_an_output_buffer_that_forward_uses_again_is_right():
    layer = Buffering("x")
    assert check_pair(layer.forward, layer.backward, (X,)).right


def test_a_module_may_read_its_parameters():
    class Scale(Module):
        def __init__(self):
            self.x = Parameter(np.ones(4))  # named as the input is

        def forward(self, x):
            return x * self.x.data, x

        def backward(self, dy, x):
            self.x.grad += (dy * x).sum(0)
            return [dy * self.x.data]

    report = check_module(Scale(), X)
    assert report.right, report
    assert [tensor.name for tensor in report.tensors] == ["dx", "dx (2)"]


def test_a_module_that_leaves_its_input_on_self_is_wrong():
    class Scale(Module):
        def __init__(self):
            self.gain = Parameter(np.ones(4))

        def forward(self, x):
            self.x = x
            return x * self.gain.data, None

        def backward(self, dy, cache):
            self.gain.grad += (dy * self.x).sum(0)
            return dy * self.gain.data

    report = check_module(Scale(), X)
    assert [tensor.verdict for tensor in report.tensors] == ["right", "wrong"]


def test_a_module_that_empties_its_cache_is_wrong():
    class Scale(Module):
        def __init__(self):
            self.gain = Parameter(np.ones(4))

        def forward(self, x):
            return x * self.gain.data, [x]

        def backward(self, dy, cache):
            self.gain.grad += (dy * cache.pop()).sum(0)
            return dy * self.gain.data

    report = check_module(Scale(), X)
    assert "or empties it" in report.tensors[1].diagnosis


def test_inputs_of_one_name_are_told_apart():
    pair = (lambda x, z: (x * z, (x, z))), (lambda dy, cache: (dy * cache[1], 2 * dy * cache[0]))
    report = check_pair(*pair, (X, Z), names=("x", "x"))
    assert [(tensor.name, tensor.right) for tensor in report.tensors] == [
        ("dx", True),
        ("dx (2)", False),
    ]
