"""A backward whose gradients are right, once: it has to rely on its cache alone."""

import numpy as np
import pytest
from battery.table import slipped

from minitransformer.core.module import Module, Parameter
from minitransformer.gradcheck import check_module, check_pair

X, Z = np.random.default_rng(0).standard_normal((2, 3, 4))
IDS, MASK = np.array([3, 0, 3, 1]), np.array([True, False, True])
STEPS = np.stack([X, Z])
NOTEBOOK = X, (X > 0).copy(), IDS
LAST = {}


def last(**values):
    """Leaves them where the next call of forward finds its own."""
    LAST.update(values)
    return LAST["kept"]


def square(x):
    return x * x, last(kept=x)


def square_backward(dy, x):
    return 2 * x * dy


def relu(x):
    """What it leaves is the same for all inputs near these."""
    return np.maximum(x, 0), last(kept=x > 0)


def stacked(x):
    """Forward pushes, backward pops: the last in is another call's."""
    LAST.setdefault("pushed", []).append(x)
    return x * x, None


BUFFER = np.empty_like(X)


def buffered_tanh(x):
    """Writes every y into the same array, which is its cache."""
    y = np.tanh(x, out=BUFFER)
    return y, y


def writes_to_its_cache(dy, cache):
    x, dx = cache
    dx[:] = 2 * x * dy
    return dx.copy()


def writes_to_y(dy, cache):
    (y,) = cache
    y *= dy
    return y.copy()


def exp(x):
    y = np.exp(x)
    return y, (y,)


def grows_with_each_call(dy, cache):
    cache.append(1)
    return dy * cache[0] * (len(cache) - 1)


NOISE = np.random.default_rng(0)
STATE_READ = "backward must read its cache alone, no global and nothing on self"
UNSTEADY = "backward is not deterministic"


@pytest.mark.parametrize(("forward", "backward", "says"), [
    (square, lambda dy, cache: 2 * LAST["kept"] * dy, STATE_READ),
    (relu, lambda dy, cache: LAST["kept"] * dy, STATE_READ),
    (stacked, lambda dy, cache: 2 * LAST["pushed"].pop() * dy, STATE_READ),
    (buffered_tanh, lambda dy, y: dy * (1 - y * y), STATE_READ),
    (lambda x: (x * x, [x, np.zeros_like(x)]), writes_to_its_cache, "backward writes to its cache"),
    (lambda x: (x * x, [x]), lambda dy, cache: 2 * cache.pop() * dy, "or empties it"),
    (lambda x: (x * x, [2 * x]), grows_with_each_call, "backward writes to its cache"),
    (exp, writes_to_y, "writes to the y that forward returned"),
    (square, lambda dy, x: 2 * x * dy + 1e-12 * NOISE.random(x.shape), UNSTEADY),
    (square, lambda dy, x: 2 * x * dy + NOISE.random(x.shape), UNSTEADY),  # and has no other cause
], ids=["left", "signs", "stack", "buffer", "writes", "pops", "grows", "y", "unsteady", "wrong"],
)  # fmt: skip
def test_a_gradient_that_is_right_once_is_wrong(forward, backward, says):
    report = check_pair(forward, backward, (X,))
    (tensor,) = report.tensors
    assert tensor.verdict == "wrong"
    assert says in tensor.diagnosis
    assert says in str(report)


def test_only_the_gradient_that_reads_elsewhere_is_wrong():
    held = {}

    def forward(x, z):
        held["x"] = x
        return x * z, z

    report = check_pair(forward, lambda dy, z: (dy * z, dy * held["x"]), (X, Z))
    assert [tensor.verdict for tensor in report.tensors] == ["right", "wrong"]


def test_a_wrong_value_is_told_before_how_it_came_about():
    report = check_pair(square, lambda dy, cache: 3 * dy * LAST["kept"], (X,))
    assert "times too large" in report.tensors[0].diagnosis


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


class Scale(Module):
    def __init__(self):
        self.x = Parameter(np.ones(4))  # named as the input is

    def forward(self, x):
        return x * self.x.data, [x]

    def backward(self, dy, cache):
        self.x.grad += (dy * cache[0]).sum(0)
        return dy * self.x.data


@pytest.mark.parametrize(("changes", "verdict", "says"), [
    ({}, "right", ""),  # it may read its parameters
    ({"return dy * self.x.data": "return [dy * self.x.data]"}, "right", ""),
    ({"return x *": "self.seen = x; return x *", "cache[0]": "self.seen"}, "wrong", STATE_READ),
    ({"cache[0]": "cache.pop()"}, "wrong", "or empties it"),
], ids=["right", "a list", "on self", "pops"])  # fmt: skip
def test_a_module_relies_on_its_cache_and_its_parameters_alone(changes, verdict, says):
    dx, dgain = check_module(slipped(Scale, changes)(), X).tensors
    assert (dx.name, dgain.name) == ("dx", "dx (2)")
    assert dgain.verdict == verdict
    assert says in dgain.diagnosis


def test_what_forward_leaves_or_writes_again_does_not_matter_to_a_backward_that_reads_its_cache():
    assert check_pair(square, square_backward, (X,)).right

    def forward(x):
        return np.tanh(x, out=BUFFER), x

    assert check_pair(forward, lambda dy, x: dy * (1 - np.tanh(x) ** 2), (X,)).right


def test_a_small_gradient_that_reads_elsewhere_is_wrong_beside_a_large_one():
    given = 1e5 * X

    def verdicts(backward, *inputs):
        report = check_pair(lambda x, z: (x * z, (x, z)), backward, inputs)
        return [tensor.verdict for tensor in report.tensors]

    assert verdicts(lambda dy, cache: (dy * cache[1], dy * given), given, Z) == ["right", "wrong"]
    assert verdicts(lambda dy, cache: (dy * given, dy * cache[0]), X, given) == ["wrong", "right"]


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


def of_heads(x):
    """The mean over time (B, T, 4) of what can have no other width."""
    assert x.shape[-1] == 4
    return x.mean(1), last(kept=x.shape, length=x.shape[1])


def total(x, scale):
    last(kept=scale, length=len(x))
    return x.sum(0) * (3 if scale is True else scale), (x.shape, scale)


@pytest.mark.parametrize(("forward", "backward", "inputs"), [
    (rows, lambda dy, cache: rows_backward(dy, cache[0], LAST["kept"]), (X, IDS % 3)),
    (masked_mean, lambda dy, mask: masked_mean_backward(dy, LAST["kept"], 2), (X, MASK)),
    (masked_mean, lambda dy, mask: masked_mean_backward(dy, mask, LAST["count"]), (X, MASK)),
    (of_heads, lambda dy, shape: np.broadcast_to(dy[:, None] / LAST["length"], shape), (STEPS,)),
    (total, lambda dy, cache: np.tile(2 * dy, (LAST["length"], 1)), (X, 2)),
    (total, lambda dy, cache: np.broadcast_to(LAST["kept"] * dy, cache[0]), (X, 2)),
    (total, lambda dy, cache: np.broadcast_to(3 * LAST["kept"] * dy, cache[0]), (X, True)),
    (lambda x, ids, flag: (x[ids], (last(kept=flag), x.shape, ids)[1:]),
     lambda dy, cache: LAST["kept"] * rows_backward(dy, *cache), (X, np.full(3, 2), True)),
], ids=["ids", "mask", "count", "steps", "length", "number", "flag", "beside ids"])  # fmt: skip
def test_nor_may_it_read_what_is_no_float_of_the_last_call(forward, backward, inputs):
    (tensor,) = check_pair(forward, backward, inputs).tensors
    assert STATE_READ in tensor.diagnosis


UPWARDS = np.arange(1.0, 5)


@pytest.mark.parametrize(("forward", "backward", "inputs"), [
    (square, lambda dy, x: 2 * NOTEBOOK[0] * dy, (X,)),
    (relu, lambda dy, alive: dy * NOTEBOOK[1], (X,)),
    (rows, lambda dy, cache: rows_backward(dy, cache[0], NOTEBOOK[2]), (np.vstack([X, X]), IDS)),
    (lambda x: (x * np.tanh(x), x), lambda dy, x: dy * (np.tanh(X) + X / np.cosh(X) ** 2), (X,)),
    (lambda x: (np.exp(x), x), lambda dy, x: dy * np.exp(0.7), (np.array(0.7),)),
    (lambda x: (np.log(x), x), lambda dy, x: dy / UPWARDS, (UPWARDS,)),
], ids=["x", "its signs", "ids", "all of it", "one number", "sorted"])  # fmt: skip
def test_what_is_right_for_the_inputs_of_the_check_alone_is_wrong(forward, backward, inputs):
    (tensor,) = check_pair(forward, backward, inputs).tensors
    assert tensor.diagnosis.startswith("it is right for these inputs, and wrong for others")


@pytest.mark.parametrize("backward", [
    lambda dy, x: 2 * x * np.clip(dy, -5, 5),
    lambda dy, x: 2 * x * dy / max(1, np.linalg.norm(dy) / 100),
    lambda dy, x: 2 * x * np.where(np.abs(dy) < 1e-3, 0, dy),
    lambda dy, x: 2 * x * np.where(np.abs(dy) < 1e-8, 0, dy),
    lambda dy, x: 2 * x * 1e4 * np.tanh(dy / 1e4),
    lambda dy, x: 2 * x * 1e7 * np.tanh(dy / 1e7),
    lambda dy, x: 2 * x * dy if np.abs(dy).max() < 100 else [][0],
    lambda dy, x: 2 * x * dy if np.abs(dy).max() < 100 else None,
], ids=["clip", "norm", "cut off", "tiny", "squashed", "huge", "raises", "None"])  # fmt: skip
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


def cross_entropy_backward(dy, cache):
    y, p = cache
    return dy * (y - p), -dy * np.log(y)


def segments(x, starts):
    return np.add.reduceat(x, starts), (len(x), starts)


def segments_backward(dy, cache):
    size, starts = cache
    return dy[np.searchsorted(starts, np.arange(size), "right") - 1]


def inverse(a):
    y = np.linalg.inv(a)
    return y, y


def only_here(x):
    if not np.array_equal(x, X):
        assert np.abs(x - X).max() < 0.1
    return x * x, x


@pytest.mark.parametrize(("forward", "backward", "inputs"), [
    (log_mean, lambda dy, x: dy / x / x.size, (np.array([0.2, 3, 0.4]),)),
    (cross_entropy, cross_entropy_backward, (X, np.random.default_rng(1).dirichlet(np.ones(4), 3))),
    (lambda x: (np.maximum.accumulate(x), x), lambda dy, x: dy, (UPWARDS,)),
    (lambda x: (np.minimum.accumulate(x), x), lambda dy, x: dy, (UPWARDS[::-1],)),
    (segments, segments_backward, (X.reshape(-1), np.array([0, 3, 4, 9]))),
    (inverse, lambda dy, y: -y @ dy @ y, (X[:, :3] @ X[:, :3].T,)),
    (only_here, square_backward, (X,)),
    (relu, lambda dy, alive: dy * alive, (np.round(X) + 0.5,)),
], ids=["log", "distribution", "up", "down", "segments", "symmetric", "nowhere else", "no kink"],
)  # fmt: skip
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
