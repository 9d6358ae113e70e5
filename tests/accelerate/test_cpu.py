"""The twins on NumPy give what the references give.

Where there is dropout, p is a multiple of 1/256, for which both scale alike, and the reference
draws the bytes of the twin (ByteGenerator), so that the masks are the same.
"""

import platform
import subprocess
import sys
import tracemalloc
from itertools import chain

import numpy as np
import pytest

from minitransformer import Transformer, accelerated
from minitransformer.accelerate import cpu
from minitransformer.cases import CASES
from minitransformer.cases.case import (
    BATCH,
    LABELS,
    NOTHING_ALLOWED,
    SOURCE_MASK,
    TARGET_MASK,
)
from minitransformer.cases.models import small_config
from minitransformer.core.memory import keep_freed_memory
from minitransformer.core.twins import TwinCache
from minitransformer.core.workers import Workers
from minitransformer.layers.attention import (
    multi_head_attention,
    multi_head_attention_backward,
    multi_head_attention_weights,
)
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.feed_forward import feed_forward, feed_forward_backward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.residual import residual, residual_backward
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.optim.adam import Adam, adam_update

D, F, V = 6, 7, 11
P = 64 / 256


class ByteGenerator:
    """A generator whose floats are its bytes / 256, and its integers those of a common one."""

    def __init__(self, seed=0):
        self.host = np.random.default_rng(seed)

    def integers(self, high, size, dtype):
        return self.host.integers(high, size=size, dtype=dtype)

    def random(self, shape, dtype):
        size = np.prod(shape)
        words = self.integers(2**64, -(-size // 8), np.uint64)
        return words.view(np.uint8)[:size].reshape(shape).astype(dtype) / 256


PAIRS = {
    "layer_norm": (layer_norm, layer_norm_backward),
    "dropout": (dropout, dropout_backward),
    "residual": (residual, residual_backward),
    "feed_forward": (feed_forward, feed_forward_backward),
    "multi_head_attention": (multi_head_attention, multi_head_attention_backward),
    "projected_loss": (projected_loss, projected_loss_backward),
}


def normal(*shapes):
    rng = np.random.default_rng(5)
    return tuple(rng.standard_normal(shape) for shape in shapes)


def feed_forward_inputs(*shape):
    return normal((*shape, D), (D, F), (F,), (F, D), (D,))


def attention_inputs(queries, keys=None):
    x, memory, *weights = normal((*queries, D), (*(keys or queries), D), *[(D, D)] * 4)
    weights = [w / np.sqrt(D) for w in weights]
    return (x, memory if keys else x, memory if keys else x, *weights, 2)


def swapped(x):
    """The same array, laid out otherwise in memory."""
    return x.swapaxes(0, 1).copy().swapaxes(0, 1)


X, E = normal((3, 4, D), (V, D))
BOTH = normal((6, 4, D))[0]
ROW = normal((D,), (D,))
ARGUMENTS = {
    "layer_norm": ("layer_norm", lambda: (X, *ROW)),
    "layer_norm, one row": ("layer_norm", lambda: (X[0, 0], *ROW)),
    "layer_norm, a constant row": ("layer_norm", lambda: (X * (np.arange(4) != 2)[:, None], *ROW)),
    "layer_norm, other epsilon": ("layer_norm", lambda: (X, *ROW, 0.5)),
    "layer_norm, other layout": ("layer_norm", lambda: (swapped(X), *ROW)),
    "dropout": ("dropout", lambda: (X, P, ByteGenerator())),
    "dropout, one entry": ("dropout", lambda: (X[:1, 0, 0], P, ByteGenerator(3))),
    "dropout, p=0": ("dropout", lambda: (X, 0.0, ByteGenerator())),
    "dropout, inference": ("dropout", lambda: (X, P, None)),
    "residual": ("residual", lambda: (X, X**2, P, ByteGenerator())),
    "residual, p=0": ("residual", lambda: (X, X**2, 0.0, ByteGenerator())),
    "residual, inference": ("residual", lambda: (X, X**2, P, None)),
    "feed_forward": ("feed_forward", lambda: feed_forward_inputs(3, 4)),
    "feed_forward, dropout": (
        "feed_forward",
        lambda: (*feed_forward_inputs(3, 4), P, ByteGenerator()),
    ),
    "feed_forward, one row": ("feed_forward", lambda: feed_forward_inputs()),
    "feed_forward, other layout": (
        "feed_forward",
        lambda: tuple(swapped(x) if x.ndim > 1 else x for x in feed_forward_inputs(3, 4)),
    ),
    "attention": ("multi_head_attention", lambda: attention_inputs((3, 4))),
    "attention, causal": (
        "multi_head_attention",
        lambda: (*attention_inputs((3, 4)), TARGET_MASK),
    ),
    "attention, dropout": (
        "multi_head_attention",
        lambda: (*attention_inputs((3, 4)), TARGET_MASK, P, ByteGenerator()),
    ),
    "attention, cross": (
        "multi_head_attention",
        lambda: (*attention_inputs((3, 4), (3, 5)), SOURCE_MASK, P, ByteGenerator()),
    ),
    "attention, nothing allowed": (
        "multi_head_attention",
        lambda: (*attention_inputs((3, 4), (3, 5)), NOTHING_ALLOWED, P, ByteGenerator()),
    ),
    "attention, mask of the whole batch": (
        "multi_head_attention",
        lambda: (*attention_inputs((3, 4)), np.tri(4, dtype=bool)),
    ),
    "attention, one token": ("multi_head_attention", lambda: attention_inputs((1, 1))),
    "attention, one query of many keys": (
        "multi_head_attention",
        lambda: attention_inputs((1, 1), (1, 5)),
    ),
    "attention, huge scores": (
        "multi_head_attention",
        lambda: tuple(1e3 * x if np.ndim(x) == 3 else x for x in attention_inputs((3, 4))),
    ),
    "attention, other layout": (
        "multi_head_attention",
        lambda: tuple(swapped(x) if np.ndim(x) else x for x in attention_inputs((3, 4))),
    ),
    "loss": ("projected_loss", lambda: (X, E, LABELS)),
    "loss, smoothing": ("projected_loss", lambda: (X, E, LABELS, 0.1)),
    "loss, part of a batch": ("projected_loss", lambda: (X, E, LABELS, 0.1, 0.0, 0, 100)),
    "loss, other padding": ("projected_loss", lambda: (X, E, LABELS, 0.1, 0.0, 4)),
    "loss, all padding": ("projected_loss", lambda: (X, E, 0 * LABELS, 0.1)),
    "loss, one row": ("projected_loss", lambda: (X[:1, :1], E, LABELS[:1, :1], 0.1)),
    "loss, huge logits": ("projected_loss", lambda: (1e4 * X, E, LABELS, 0.1)),
    "loss, other layout": ("projected_loss", lambda: (swapped(X), swapped(E), LABELS, 0.1)),
    "loss, two passes": ("projected_loss", lambda: (BOTH, E, LABELS, 0.1, 3.0)),
    "loss, two passes, part of a batch": (
        "projected_loss",
        lambda: (BOTH, E, LABELS, 0.0, 3.0, 0, 100),
    ),
    "loss, two passes, all padding": ("projected_loss", lambda: (BOTH, E, 0 * LABELS, 0.1, 3.0)),
}


def cast(arguments, dtype):
    """The arguments with floats of that type, read-only."""
    arguments = [
        x.astype(dtype, copy=True, order="K") if isinstance(x, np.ndarray) and x.dtype == float
        else x
        for x in arguments
    ]  # fmt: skip
    for x in arguments:
        if isinstance(x, np.ndarray):
            x.flags.writeable = False
    return arguments


@pytest.mark.parametrize(
    "case", [case for case, (pair, _) in ARGUMENTS.items() if pair == "multi_head_attention"]
)
def test_attention_weights_are_read_in_the_cache_of_a_twin(case):
    _, build = ARGUMENTS[case]
    found = []
    for awake in (True, False):
        with accelerated(awake):
            _, cache = multi_head_attention(*cast(build(), np.float64))
        found.append(multi_head_attention_weights(cache))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-15)


def outputs_and_gradients(case, dtype, awake):
    name, build = ARGUMENTS[case]
    forward, backward = PAIRS[name]
    arguments = cast(build(), dtype)
    with accelerated(awake):
        y, cache = forward(*arguments)
    assert isinstance(cache, TwinCache) == awake
    if name == "projected_loss":
        dy = dtype(0.7)
    else:
        dy = cast([np.random.default_rng(6).standard_normal(y.shape)], dtype)[0]
    gradients = backward(dy, cache)
    y, gradients = (x if isinstance(x, tuple) else (x,) for x in (y, gradients))
    return [*y, *gradients]


@pytest.fixture
def small_chunks(monkeypatch):
    """So few rows and parameters at a time that there are several chunks, of unequal sizes."""
    monkeypatch.setattr(cpu.projected_loss, "CHUNK", 5)
    monkeypatch.setattr(cpu.adam, "CHUNK", 4)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("case", ARGUMENTS)
def test_a_twin_gives_the_results_and_the_gradients_of_the_reference(case, dtype, tolerance):
    references = outputs_and_gradients(case, dtype, awake=False)
    twins = outputs_and_gradients(case, dtype, awake=True)
    for reference, twin in zip(references, twins, strict=True):
        assert twin.dtype == reference.dtype == dtype
        assert twin.shape == reference.shape
        size = np.abs(reference).max(initial=0)
        np.testing.assert_allclose(twin, reference, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_gradients_of_twins_are_right(case):
    with accelerated():
        report = case.check()
    assert report.right, f"{case.name}\n{report}"


def trained(awake, kappa, p=P):
    """Losses of three steps, and the parameters and moments after them."""
    config = small_config("pre")
    fields = dict(dropout=p, attention_dropout=p, feed_forward_dropout=p)
    model = Transformer(type(config)(**(vars(config) | fields)), seed=3, dtype=np.float64)
    adam = Adam(model.flat)
    losses = []
    for step in range(3):
        model.zero_grad()
        with accelerated(awake):
            (loss, nll), cache = model.loss(BATCH, ByteGenerator(step), smoothing=0.1, kappa=kappa)
            model.loss_backward(1.0, cache)
            adam.step(1e-2, 0.5)
        losses += [loss, nll]
    return np.array(losses), model.flat.data, *adam.vectors.values()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("p", [0.0, P])
@pytest.mark.parametrize("kappa", [0.0, 3.0])
def test_a_training_with_twins_goes_the_way_of_one_without(kappa, p):
    for reference, twin in zip(trained(False, kappa, p), trained(True, kappa, p), strict=True):
        np.testing.assert_allclose(twin, reference, rtol=1e-9, atol=1e-12)


# Dropout


class EveryByte:
    """A generator that draws each byte exactly once."""

    def integers(self, high, size, dtype):
        return np.arange(256, dtype=np.uint8).view(dtype)[:size]


@pytest.mark.parametrize(
    ("p", "dropped"), [(0.1, 26), (0.3, 77), (0.5, 128), (0.0019, 0), (0.0020, 1), (0.9999, 255)]
)
def test_an_entry_is_dropped_with_p_rounded_to_256ths_and_its_expected_value_is_kept(p, dropped):
    ones = np.ones((16, 16))
    with accelerated():
        y, cache = dropout(ones, p, EveryByte())
    assert (y == 0).sum() == dropped
    assert y.mean() == pytest.approx(1, rel=1e-15)
    np.testing.assert_array_equal(dropout_backward(ones, cache), y)


@pytest.mark.parametrize(("p", "really"), [(0.1, 26 / 256), (0.3, 77 / 256)])
def test_about_the_asked_share_is_dropped_of_every_column_and_row(p, really):
    ones = np.ones((1000, 999), np.float32)  # no multiple of the eight bytes drawn at once
    with accelerated():
        y, _ = dropout(ones, p, np.random.default_rng(0))
    for axis in (0, 1):
        standard_error = np.sqrt(really * (1 - really) / ones.shape[axis])
        share = (y == 0).mean(axis=axis)
        assert np.abs(share - really).max() < 5 * standard_error
        assert 0.9 < share.std() / standard_error < 1.1  # as many as independent draws vary


def test_each_use_draws_a_mask_of_its_own_and_the_same_state_the_same_again():
    ones = np.ones((20, 30))
    with accelerated():
        first, other, again = (
            [dropout(ones, P, rng)[0] for _ in range(2)]
            for rng in map(np.random.default_rng, (0, 1, 0))
        )
    assert (first[0] != first[1]).any()
    assert (first[0] != other[0]).any()
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("p", [1, -0.1, float("nan")])
@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)])
@pytest.mark.parametrize("function", [dropout, lambda x, p, rng: residual(x, x, p, rng)])
def test_a_probability_outside_0_to_1_is_refused(function, p, rng):
    with accelerated(), pytest.raises(ValueError, match=rf"probability p={p} must lie in"):
        function(X, p, rng)


# The loss


def test_rows_of_padding_are_not_even_looked_at():
    x = X.copy()
    x[LABELS == 0] = np.nan
    with accelerated():
        (loss, nll), cache = projected_loss(x, E, LABELS, 0.1)
    dx, dweight = projected_loss_backward(1.0, cache)
    assert np.isfinite([loss, nll]).all()
    assert np.isfinite(dweight).all()
    assert (dx[LABELS == 0] == 0).all()
    assert (dx[LABELS != 0] != 0).all()


@pytest.mark.parametrize("kappa", [0.0, 3.0])
def test_the_logits_of_all_rows_are_never_there_at_once(kappa, monkeypatch):
    monkeypatch.setattr(cpu.projected_loss, "CHUNK", 20)
    tokens, vocabulary_size = 400, 500
    x, weight = normal((2 if kappa else 1, tokens, 4), (vocabulary_size, 4))
    targets = np.arange(1, tokens + 1)[None]
    with accelerated():
        tracemalloc.start()
        projected_loss(x, weight, targets, 0.1, kappa)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < x.itemsize * tokens * vocabulary_size / 3


@pytest.mark.parametrize(
    "arguments",
    [
        (X[..., :5], E, LABELS),
        (X, E, LABELS[:2]),
        (BOTH, E, LABELS),
        (X, E, LABELS, 0.1, 3.0),
        (X, E, LABELS, 1.0),
        (X, E, LABELS, 0.1, 0.0, 0, 0),
        (X, E, LABELS + V),
        (X, E, LABELS - 6),
        (X, E, LABELS.astype(float)),
    ],
)
def test_the_loss_refuses_what_the_reference_refuses_in_the_same_words(arguments):
    raised = []
    for awake in (False, True):
        with accelerated(awake), pytest.raises((ValueError, TypeError)) as caught:
            projected_loss(*arguments)
        raised.append((caught.type, str(caught.value)))
    assert raised[0] == raised[1]


@pytest.mark.parametrize("mask", [np.ones((4, 4)), np.ones((2, 1, 4, 4), bool)])
def test_attention_refuses_what_the_reference_refuses_in_the_same_words(mask):
    raised = []
    for awake in (False, True):
        with accelerated(awake), pytest.raises((ValueError, TypeError)) as caught:
            multi_head_attention(*attention_inputs((3, 4)), mask)
        raised.append((caught.type, str(caught.value)))
    assert raised[0] == raised[1]


def test_layer_norm_refuses_a_gain_of_another_width():
    with accelerated(), pytest.raises(ValueError, match="needs gamma and beta of shape"):
        layer_norm(X, ROW[0][:5], ROW[1])


# Adam


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-6)])
@pytest.mark.parametrize("size", [1, 4, 10])
def test_adam_goes_the_way_of_the_reference(dtype, tolerance, size):
    results = []
    for awake in (False, True):
        rng = np.random.default_rng(0)
        data = rng.standard_normal(size).astype(dtype)
        m, v = np.zeros_like(data), np.zeros_like(data)
        with accelerated(awake):
            for t in range(1, 4):
                grad = rng.standard_normal(size).astype(dtype)
                grad.flags.writeable = False
                adam_update(data, grad, m, v, 1e-2, t, 0.9, 0.98, 1e-2, np.asarray(dtype(0.3)))
        results.append((data, m, v))
    for reference, twin in zip(*results, strict=True):
        assert twin.dtype == dtype
        np.testing.assert_allclose(twin, reference, rtol=tolerance, atol=tolerance)


# Threads


def test_twins_in_many_threads_give_the_bits_that_they_give_one_after_the_other():
    """So no scratch memory is shared between them."""

    def work(worker):
        x, memory, *weights = normal((8, 60, D), (8, 60, D), *[(D, D)] * 4)
        rng = np.random.default_rng(worker)
        x = x + worker
        data, grad, m, v = np.abs(np.resize(x, (4, 10**5)))
        results = [data, m, v]
        for _ in range(20):
            h, cache = multi_head_attention(x, memory, memory, *weights, 2, None, 0.3, rng)
            results += [h, *multi_head_attention_backward(h, cache)]
            h, cache = layer_norm(h, *ROW)
            results += [h, *layer_norm_backward(x, cache)]
            h, cache = residual(x, h, 0.3, rng)
            results += [h, *residual_backward(x, cache)]
            h, cache = feed_forward(h, *feed_forward_inputs()[1:], 0.3, rng)
            results += [h, *feed_forward_backward(x, cache)]
            losses, cache = projected_loss(h, E, np.arange(480).reshape(8, 60) % V, 0.1)
            results += [*losses, *projected_loss_backward(1.0, cache)]
            adam_update(data, grad, m, v, 1e-2, 3, 0.9, 0.98, 1e-9)
        return results

    with accelerated():
        together = Workers(4).map(work, range(4))
        alone = [work(worker) for worker in range(4)]
    for x, y in zip(chain(*together), chain(*alone), strict=True):
        np.testing.assert_array_equal(x, y)


# Memory

FAULTS = """
import resource
import threading

import numpy as np

from minitransformer.core.memory import keep_freed_memory


def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        [np.ones(20 << 20, np.uint8) for _ in range(5)]  # more than a thread gets at a time
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def in_thread():
    result = []
    thread = threading.Thread(target=lambda: result.extend([faults(), faults()]))
    thread.start()
    thread.join()
    return result[1]


before = faults(), in_thread()
assert keep_freed_memory()
faults()
print(*before, faults(), in_thread())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an affair of glibc")
def test_dropped_arrays_leave_their_memory_for_the_next_ones():
    run = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    *before, after, after_in_thread = map(int, run.stdout.split())
    assert min(before) > 1000
    assert after < 20
    assert after_in_thread < 20


def test_without_glibc_memory_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not keep_freed_memory()
