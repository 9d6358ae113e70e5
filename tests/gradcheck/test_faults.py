"""A backward whose gradients are right, once: it has to rely on its cache alone."""

import numpy as np
import pytest

from minitransformer.core.module import Module, Parameter
from minitransformer.gradcheck import check_module, check_pair

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


class Drawing(Module):
    """Noise of a seed that comes in with the inputs, and is drawn again in backward."""

    def __init__(self, reads_self):
        self.gain = Parameter(np.ones(4))
        self.seeds = []
        self.reads_self = reads_self

    def noise(self, seed, shape):
        return np.random.default_rng(np.ravel(seed)).uniform(0.5, 1.5, shape)

    def forward(self, x, seed):
        self.seeds.append(seed)
        return x * self.noise(seed, x.shape) * self.gain.data, (x, seed)

    def backward(self, dy, cache):
        x, seed = cache
        noise = self.noise(self.seeds[-1] if self.reads_self else seed, x.shape)
        self.gain.grad += (dy * x * noise).sum(0)
        return dy * noise * self.gain.data


@pytest.mark.parametrize("seed", [17, np.array(17), np.array([17])], ids=repr)
@pytest.mark.parametrize(("reads_self", "verdict"), [(False, "right"), (True, "wrong")])
def test_a_seed_that_is_kept_on_self_is_another_call_s(seed, reads_self, verdict):
    assert check_module(Drawing(reads_self), X, seed).verdict == verdict


@pytest.mark.parametrize(
    "changed",
    [
        lambda dy: 1e4 * np.tanh(dy / 1e4),
        lambda dy: 1e7 * np.tanh(dy / 1e7),
        lambda dy: np.where(np.abs(dy) > 1e-5, dy, 0),
        lambda dy: np.where(np.abs(dy) > 1e-8, dy, 0),
    ],
    ids=["squashed", "squashed where huge", "cut off", "cut off where tiny"],
)
def test_a_dy_that_is_changed_far_from_1_is_wrong(changed):
    assert check_pair(square, lambda dy, x: 2 * x * changed(dy), (X,)).verdict == "wrong"


def test_a_small_gradient_that_reads_elsewhere_is_wrong_beside_a_large_one():
    given = 1e5 * X
    report = check_pair(
        lambda x, z: (x * z, (x, z)),
        lambda dy, cache: (dy * cache[1], dy * given),
        (given, Z),
    )
    assert [tensor.verdict for tensor in report.tensors] == ["right", "wrong"]
    report = check_pair(
        lambda x, z: (x * z, (x, z)),
        lambda dy, cache: (dy * given, dy * cache[0]),
        (X, given),
    )
    assert [tensor.verdict for tensor in report.tensors] == ["wrong", "right"]


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


IDS, MASK = np.array([3, 0, 3, 1]), np.array([True, False, True])
NOTEBOOK = X, (X > 0).copy(), IDS
LAST = {}


def last(**values):
    """Leaves them where the next call of forward finds its own."""
    LAST.update(values)
    return LAST["kept"]


def rows(table, ids):
    return table[ids], (table.shape, last(kept=ids))


def rows_backward(dy, shape, ids):
    dtable = np.zeros(shape)
    np.add.at(dtable, ids, dy)
    return dtable


def masked_mean(x, mask):
    last(kept=mask, count=mask.sum())
    return (x * mask[:, None]).sum(0) / mask.sum(), mask


def masked_mean_backward(dy, mask, count):
    return mask[:, None] * dy / count


def total(x, scale):
    last(kept=scale, length=len(x))
    return x.sum(0) * (3 if scale is True else scale), (x.shape, scale)


@pytest.mark.parametrize(
    ("forward", "backward", "inputs"),
    [
        (rows, lambda dy, cache: rows_backward(dy, cache[0], LAST["kept"]), (X, IDS % 3)),
        (masked_mean, lambda dy, mask: masked_mean_backward(dy, LAST["kept"], 2), (X, MASK)),
        (masked_mean, lambda dy, mask: masked_mean_backward(dy, mask, LAST["count"]), (X, MASK)),
        (total, lambda dy, cache: np.tile(2 * dy, (LAST["length"], 1)), (X, 2)),
        (total, lambda dy, cache: np.broadcast_to(LAST["kept"] * dy, cache[0]), (X, 2)),
        (total, lambda dy, cache: np.broadcast_to(3 * LAST["kept"] * dy, cache[0]), (X, True)),
    ],
    ids=["ids", "mask", "count", "length", "number", "flag"],
)
def test_nor_may_it_read_what_is_no_float_of_the_last_call(forward, backward, inputs):
    (tensor,) = check_pair(forward, backward, inputs).tensors
    assert "backward must read its cache alone" in tensor.diagnosis


@pytest.mark.parametrize(
    ("forward", "backward", "inputs"),
    [
        (square, lambda dy, x: 2 * NOTEBOOK[0] * dy, (X,)),
        (lambda x: (np.maximum(x, 0), x), lambda dy, x: dy * NOTEBOOK[1], (X,)),
        (
            rows,
            lambda dy, cache: rows_backward(dy, cache[0], NOTEBOOK[2]),
            (np.vstack([X, X]), IDS),
        ),
        (
            lambda x: (x * np.tanh(x), x),
            lambda dy, x: dy * (np.tanh(X) + X / np.cosh(X) ** 2),
            (X,),
        ),
        (lambda x: (np.exp(x), x), lambda dy, x: dy * np.exp(0.7), (np.array(0.7),)),
        (lambda x: (np.log(x), x), lambda dy, x: dy / np.arange(1.0, 5), (np.arange(1.0, 5),)),
    ],
    ids=["x", "its signs", "ids", "all of it", "one number", "sorted"],
)
def test_what_is_right_for_the_inputs_of_the_check_alone_is_wrong(forward, backward, inputs):
    (tensor,) = check_pair(forward, backward, inputs).tensors
    assert tensor.diagnosis.startswith("it is right for these inputs, and wrong for others")


@pytest.mark.parametrize(
    "backward",
    [
        lambda dy, x: 2 * x * np.clip(dy, -5, 5),
        lambda dy, x: 2 * x * dy / max(1, np.linalg.norm(dy) / 100),
        lambda dy, x: 2 * x * np.where(np.abs(dy) < 1e-3, 0, dy),
        lambda dy, x: 2 * x * dy if np.abs(dy).max() < 100 else [][0],
    ],
    ids=["clip", "norm", "threshold", "raises"],
)
def test_what_is_right_for_the_dy_of_the_check_alone_is_wrong(backward):
    (tensor,) = check_pair(square, backward, (X,)).tensors
    assert "not in proportion to dy" in tensor.diagnosis


def test_the_sign_of_dy_is_lost_where_the_loss_is_one_number():
    def backward(dy, x):
        return 2 * x * np.abs(dy)

    reports = [check_pair(lambda x: ((x * x).sum(), x), backward, (X,), seed=s) for s in range(5)]
    said = {tensor.diagnosis.partition(":")[0] for report in reports for tensor in report.tensors}
    assert said == {
        "it is right for a dy of this size and sign, but not in proportion to dy",
        "the sign of dy is lost",
    }


def log_mean(x):
    return np.log(x).mean(), x


def cross_entropy(x, p):
    """Whose gradient is y − p where each p is a distribution."""
    y = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    return -(p * np.log(y)).sum(), (y, p)


def interpolated(at, knots, values):
    return np.interp(at, knots, values), (at, knots, values)


def interpolated_backward(dy, cache):
    at, knots, values = cache
    i = np.searchsorted(knots, at) - 1
    width, rise = np.diff(knots)[i], np.diff(values)[i]
    share = (at - knots[i]) / width
    dat = dy * rise / width
    dknots, dvalues = np.zeros_like(knots), np.zeros_like(values)
    np.add.at(dknots, i, -dat * (1 - share))
    np.add.at(dknots, i + 1, -dat * share)
    np.add.at(dvalues, i, dy * (1 - share))
    np.add.at(dvalues, i + 1, dy * share)
    return dat, dknots, dvalues


def segments(x, starts):
    return np.add.reduceat(x, starts), (len(x), starts)


def segments_backward(dy, cache):
    size, starts = cache
    return np.repeat(dy, np.diff([*starts, size]))


def inverse(a):
    y = np.linalg.inv(a)
    return y, y


def only_here(x):
    if not np.array_equal(x, X):
        assert np.abs(x - X).max() < 0.1
    return x * x, x


@pytest.mark.parametrize(
    ("forward", "backward", "inputs"),
    [
        (log_mean, lambda dy, x: dy / x / x.size, (np.array([0.2, 3, 0.4]),)),
        (
            cross_entropy,
            lambda dy, cache: (dy * (cache[0] - cache[1]), -dy * np.log(cache[0])),
            (X, np.random.default_rng(1).dirichlet(np.ones(4), 3)),
        ),
        (
            interpolated,
            interpolated_backward,
            (np.array([0.3, 1.7, 2.2]), np.array([0, 1, 2.1, 3]), np.array([1, 4, 2, 0.5])),
        ),
        (segments, segments_backward, (X.reshape(-1), np.array([0, 3, 4, 9]))),
        (inverse, lambda dy, y: -y @ dy @ y, (X[:, :3] @ X[:, :3].T,)),
        (only_here, lambda dy, x: 2 * x * dy, (X,)),
        (lambda x: (np.maximum(x, 0), x), lambda dy, x: dy * (x > 0), (np.round(X) + 0.5,)),
    ],
    ids=["log", "distribution", "sorted", "segments", "symmetric", "nowhere else", "near no kink"],
)
def test_what_is_right_where_forward_is_meant_to_be_is_right(forward, backward, inputs):
    report = check_pair(forward, backward, inputs)
    assert report.right, report


def test_dropout_that_draws_from_a_generator_of_its_own_is_right():
    def mask():
        return np.random.default_rng(7).random(X.shape) < 0.8

    assert check_pair(lambda x: (x * mask(), None), lambda dy, cache: dy * mask(), (X,)).right


def test_inputs_of_one_name_are_told_apart():
    pair = (lambda x, z: (x * z, (x, z))), (lambda dy, cache: (dy * cache[1], 2 * dy * cache[0]))
    report = check_pair(*pair, (X, Z), names=("x", "x"))
    assert [(tensor.name, tensor.right) for tensor in report.tensors] == [
        ("dx", True),
        ("dx (2)", False),
    ]
