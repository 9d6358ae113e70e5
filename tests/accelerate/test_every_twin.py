"""All twins, on NumPy and on CUDA, give what the references give and refuse what they refuse.

Where there is dropout, p is a multiple of 1/256, for which all scale alike, and the reference draws
what the twin draws, so that the masks are the same.
"""

from dataclasses import replace

import numpy as np
import pytest
from on_device import on
from pairs import D, F, P, V, normal, results_of, run_pair
from rounding import FEW, assert_but_for_rounding

from minitransformer import Transformer, accelerated
from minitransformer.accelerate import cpu
from minitransformer.accelerate.cuda import loss as cuda_loss
from minitransformer.cases import CASES
from minitransformer.cases.case import BATCH, LABELS, NOTHING_ALLOWED, SOURCE_MASK, TARGET_MASK
from minitransformer.cases.models import small_config
from minitransformer.core.backend import CPU, to_host
from minitransformer.core.twins import TwinCache
from minitransformer.layers.attention import (
    multi_head_attention,
    multi_head_attention_backward,
    multi_head_attention_weights,
)
from minitransformer.layers.batch_norm import (
    batch_norm,
    batch_norm_backward,
    running_norm,
    running_norm_backward,
)
from minitransformer.layers.convolution_2d import convolution_2d, convolution_2d_backward
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.feed_forward import feed_forward, feed_forward_backward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.pooling import max_pooling, max_pooling_backward
from minitransformer.layers.residual import residual, residual_backward
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.optim.adam import Adam, adam_update
from minitransformer.optim.clipping import clip_scale, gradient_norm

LAYERS = [case for case in CASES if not case.name.startswith("model,")]
RNG = object()  # stands for a generator of its home
BACKWARD = {
    layer_norm: layer_norm_backward,
    batch_norm: batch_norm_backward,
    running_norm: running_norm_backward,
    convolution_2d: convolution_2d_backward,
    max_pooling: max_pooling_backward,
    dropout: dropout_backward,
    residual: residual_backward,
    feed_forward: feed_forward_backward,
    multi_head_attention: multi_head_attention_backward,
    projected_loss: projected_loss_backward,
}


def feed_forward_inputs(*shape):
    return normal((*shape, D), (D, F), (F,), (F, D), (D,))


def attention_inputs(queries, keys=None):
    x, memory, *weights = normal((*queries, D), (*(keys or queries), D), *[(D, D)] * 4)
    weights = [w / np.sqrt(D) for w in weights]
    return (x, memory if keys else x, memory if keys else x, *weights, 2)


def swapped(x):
    """The same array, laid out otherwise in memory."""
    return x.swapaxes(0, 1).copy().swapaxes(0, 1) if np.ndim(x) > 1 else x


PICTURES = normal((3, 4, 5, D))[0]
FAR_AWAY = PICTURES + 100
KERNEL, TOWERS, DEPTHWISE, TAP, BIAS = normal(
    (3, 3, D, F), (3, 3, D // 2, 2 * F), (3, 3, 1, 2 * D), (1, 1, D, F), (F,)
)
TIES = np.round(PICTURES)
RUNNING = np.linspace(-1, 1, D), np.linspace(0.5, 2, D)
X, E = normal((3, 4, D), (V, D))
BOTH = normal((6, 4, D))[0]
ROW = normal((D,), (D,))
FAR = normal((7, 64), (64,), (64,))
SELF, CROSS = attention_inputs((3, 4)), attention_inputs((3, 4), (3, 5))
TWINS = {
    "layer_norm": (layer_norm, X, *ROW),
    "layer_norm, one row": (layer_norm, X[0, 0], *ROW),
    "layer_norm, a constant row": (layer_norm, X * (np.arange(4) != 2)[:, None], *ROW),
    "layer_norm, rows far from zero": (layer_norm, FAR[0] + 100, *FAR[1:]),
    "layer_norm, other epsilon": (layer_norm, X, *ROW, 0.5),
    "layer_norm, other layout": (layer_norm, swapped(X), *ROW),
    "batch_norm": (batch_norm, PICTURES, *ROW),
    "batch_norm, rows": (batch_norm, X[0], *ROW),
    "batch_norm, sentences": (batch_norm, X, *ROW),
    "batch_norm, a constant feature": (batch_norm, PICTURES * (np.arange(D) != 2), *ROW),
    "batch_norm, far from zero": (batch_norm, FAR_AWAY, *ROW),
    "batch_norm, other epsilon": (batch_norm, PICTURES, *ROW, 0.5),
    "batch_norm, other layout": (batch_norm, swapped(PICTURES), *ROW),
    "batch_norm, running": (running_norm, PICTURES, *ROW, *RUNNING),
    "batch_norm, running, rows": (running_norm, X[0], *ROW, *RUNNING),
    "batch_norm, running, far from zero": (
        running_norm,
        FAR_AWAY,
        *ROW,
        100 + RUNNING[0],
        RUNNING[1],
    ),
    "batch_norm, running, other epsilon": (running_norm, PICTURES, *ROW, *RUNNING, 0.5),
    "batch_norm, running, other layout": (running_norm, swapped(PICTURES), *ROW, *RUNNING),
    "convolution_2d": (convolution_2d, PICTURES, KERNEL, BIAS, 1, 1),
    "convolution_2d, no padding": (convolution_2d, PICTURES, KERNEL),
    "convolution_2d, more padding than it reaches": (convolution_2d, PICTURES, KERNEL, None, 1, 3),
    "convolution_2d, stride": (convolution_2d, PICTURES, KERNEL, BIAS, 2, 1),
    "convolution_2d, a stride above the width": (convolution_2d, PICTURES, KERNEL, BIAS, 4, 1),
    "convolution_2d, dilation": (convolution_2d, PICTURES, KERNEL, BIAS, 1, 1, 2),
    "convolution_2d, stride and dilation": (convolution_2d, PICTURES, KERNEL, BIAS, 2, 3, 2),
    "convolution_2d, groups": (convolution_2d, PICTURES, TOWERS, None, 1, 1, 1, 2),
    "convolution_2d, groups and stride": (convolution_2d, PICTURES, TOWERS, None, 2, 1, 1, 2),
    "convolution_2d, depthwise": (convolution_2d, PICTURES, DEPTHWISE, None, 1, 1, 1, D),
    "convolution_2d, width 1": (convolution_2d, PICTURES, TAP, BIAS),
    "convolution_2d, width 1, stride": (convolution_2d, PICTURES, TAP, None, 2),
    "convolution_2d, one picture": (convolution_2d, PICTURES[:1], KERNEL, BIAS, 1, 1),
    "convolution_2d, no pictures": (convolution_2d, PICTURES[:0], KERNEL, BIAS, 1, 1),
    "convolution_2d, other layout": (convolution_2d, *map(swapped, (PICTURES, KERNEL)), BIAS, 1, 1),
    "convolution_2d, other layout, stride": (
        convolution_2d,
        *map(swapped, (PICTURES, KERNEL)),
        None,
        2,
    ),
    "max_pooling": (max_pooling, PICTURES, 2),
    "max_pooling, ties": (max_pooling, TIES, 3, 1, 1),
    "max_pooling, a stride above the width": (max_pooling, PICTURES, 2, 3, 1),
    "max_pooling, all negative": (max_pooling, PICTURES - 100, 3, 2, 1),
    "max_pooling, minus infinity": (max_pooling, np.full((1, 4, 4, 2), -np.inf), 3, 2, 1),
    "max_pooling, other layout": (max_pooling, swapped(PICTURES), 3, 2, 1),
    "dropout": (dropout, X, P, RNG),
    "dropout, one entry": (dropout, X[:1, 0, 0], P, RNG),
    "dropout, p=0": (dropout, X, 0.0, RNG),
    "dropout, inference": (dropout, X, P, None),
    "residual": (residual, X, X**2, P, RNG),
    "residual, p=0": (residual, X, X**2, 0.0, RNG),
    "residual, inference": (residual, X, X**2, P, None),
    "feed_forward": (feed_forward, *feed_forward_inputs(3, 4)),
    "feed_forward, dropout": (feed_forward, *feed_forward_inputs(3, 4), P, RNG),
    "feed_forward, one row": (feed_forward, *feed_forward_inputs()),
    "feed_forward, nothing": (feed_forward, *feed_forward_inputs(0)),
    "feed_forward, other layout": (feed_forward, *map(swapped, feed_forward_inputs(3, 4))),
    "attention": (multi_head_attention, *SELF),
    "attention, causal": (multi_head_attention, *SELF, TARGET_MASK),
    "attention, dropout": (multi_head_attention, *SELF, TARGET_MASK, P, RNG),
    "attention, cross": (multi_head_attention, *CROSS, SOURCE_MASK, P, RNG),
    "attention, nothing allowed": (multi_head_attention, *CROSS, NOTHING_ALLOWED, P, RNG),
    "attention, mask of the whole batch": (multi_head_attention, *SELF, np.tri(4, dtype=bool)),
    "attention, one token": (multi_head_attention, *attention_inputs((1, 1))),
    "attention, one query of many keys": (multi_head_attention, *attention_inputs((1, 1), (1, 5))),
    "attention, huge scores": (
        multi_head_attention,
        *(1e3 * x if np.ndim(x) == 3 else x for x in SELF),
    ),
    "attention, other layout": (multi_head_attention, *map(swapped, SELF)),
    "loss": (projected_loss, X, E, LABELS),
    "loss, nothing": (projected_loss, X[:0], E, LABELS[:0]),
    "loss, smoothing": (projected_loss, X, E, LABELS, 0.1),
    "loss, part of a batch": (projected_loss, X, E, LABELS, 0.1, 0.0, 0, 100),
    "loss, other padding": (projected_loss, X, E, LABELS, 0.1, 0.0, 4),
    "loss, all padding": (projected_loss, X, E, 0 * LABELS, 0.1),
    "loss, one row": (projected_loss, X[:1, :1], E, LABELS[:1, :1], 0.1),
    "loss, huge logits": (projected_loss, 1e4 * X, E, LABELS, 0.1),
    "loss, other layout": (projected_loss, swapped(X), swapped(E), LABELS, 0.1),
    "loss, two passes": (projected_loss, BOTH, E, LABELS, 0.1, 3.0),
    "loss, two passes, part of a batch": (projected_loss, BOTH, E, LABELS, 0.0, 3.0, 0, 100),
    "loss, two passes, all padding": (projected_loss, BOTH, E, 0 * LABELS, 0.1, 3.0),
}
REFUSED = {
    "convolution_2d, another number of channels": (convolution_2d, PICTURES[..., 1:], KERNEL),
    "convolution_2d, groups": (convolution_2d, PICTURES, KERNEL, None, 1, 1, 1, 4),
    "convolution_2d, a window larger than a picture": (convolution_2d, PICTURES[:, :2], KERNEL),
    "convolution_2d, no stride": (convolution_2d, PICTURES, KERNEL, None, 0),
    "max_pooling, no stride": (max_pooling, PICTURES, 3, 0),
    "max_pooling, windows in the padding": (max_pooling, PICTURES, 3, 2, 2),
    "max_pooling, a window larger than a picture": (max_pooling, PICTURES, 6),
    "layer_norm, a gain of another width": (layer_norm, X, ROW[0][:5], ROW[1]),
    "batch_norm, a gain of another width": (batch_norm, X, ROW[0][:5], ROW[1]),
    "batch_norm, running, a gain of another width": (
        running_norm,
        X,
        ROW[0][:5],
        ROW[1],
        *RUNNING,
    ),
    "attention, a mask of numbers": (multi_head_attention, *SELF, np.ones((4, 4))),
    "attention, a mask of another batch": (
        multi_head_attention,
        *SELF,
        np.ones((2, 1, 4, 4), bool),
    ),
    **{f"dropout, p={p}": (dropout, X, p, RNG) for p in (1, -0.1, float("nan"))},
    **{f"dropout, p={p}, inference": (dropout, X, p, None) for p in (1, -0.1, float("nan"))},
    **{f"residual, p={p}": (residual, X, X, p, RNG) for p in (1, -0.1, float("nan"))},
    **{f"residual, p={p}, inference": (residual, X, X, p, None) for p in (1, -0.1, float("nan"))},
    "loss, another width": (projected_loss, X[..., :5], E, LABELS),
    "loss, labels of another batch": (projected_loss, X, E, LABELS[:2]),
    "loss, two passes for one": (projected_loss, BOTH, E, LABELS),
    "loss, one pass for two": (projected_loss, X, E, LABELS, 0.1, 3.0),
    "loss, all is smoothed": (projected_loss, X, E, LABELS, 1.0),
    "loss, no tokens": (projected_loss, X, E, LABELS, 0.1, 0.0, 0, 0),
    "loss, ids too large": (projected_loss, X, E, LABELS + V),
    "loss, ids below 0": (projected_loss, X, E, LABELS - 6),
    "loss, labels that are floats": (projected_loss, X, E, LABELS.astype(float)),
}
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float", "double"])


def call(row, home, dtype, awake):
    """What the function of a row returns, on the device of its twin, or of the reference."""
    function, *arguments = row
    device, generator = (home.device, home.generator) if awake else (CPU, home.same_generator)
    with accelerated(awake):
        return function(*(generator(3) if x is RNG else on(device, x, dtype) for x in arguments))


def has_twin(function, home):
    """Some have none on a GPU, where the reference runs."""
    return home.device == CPU or "cupy" in function.twins


def results(row, home, dtype, awake):
    """Outputs and gradients of a row."""
    y, cache = call(row, home, dtype, awake)
    assert isinstance(cache, TwinCache) == (awake and has_twin(row[0], home))
    return results_of(home.device if awake else CPU, dtype, BACKWARD[row[0]], y, cache)


def assert_same(twins, references, additions=FEW):
    for twin, reference in zip(twins, references, strict=True):
        assert_but_for_rounding(twin, reference, additions)


@pytest.fixture
def small_chunks(monkeypatch):
    """So few rows and parameters at a time that there are several chunks, of unequal sizes."""
    monkeypatch.setattr(cpu.projected_loss, "CHUNK", 5)
    monkeypatch.setattr(cuda_loss, "ROWS", 10)
    monkeypatch.setattr(cpu.adam, "CHUNK", 4)
    for name, few in (("BUFFER", 2 * 6 * 3 * 7 * 5 * 8), ("SMALL", 1000), ("ROWS", 1)):
        monkeypatch.setattr(cpu.convolution_2d, name, few)  # two pictures, and rows of one


@pytest.mark.usefixtures("small_chunks")
@both_types
@pytest.mark.parametrize("row", TWINS)
def test_a_twin_gives_the_results_and_the_gradients_of_the_reference(row, dtype, home):
    twins, references = (results(TWINS[row], home, dtype, awake) for awake in (True, False))
    assert {x.dtype for x in references} == {np.dtype(dtype)}
    # In double precision it shows that numbers far from zero cancel out; in single precision their
    # own rounding, 100 deviations away, outweighs that of the sums.
    few = 100 * FEW if row.startswith("batch_norm") and "far from zero" in row else FEW
    assert_same(twins, references, few if dtype == np.float32 else 10**4)


def results_of_a_case(case, device, dtype, awake):
    forward, backward, inputs, _ = case.build(np.random.default_rng(0))
    return run_pair(device, forward, backward, inputs, dtype, awake)


@both_types
@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_a_layer_made_of_twins_gives_what_it_gives_without(case, dtype, home):
    twins = results_of_a_case(case, home.device, dtype, awake=True)
    assert_same(twins, results_of_a_case(case, CPU, dtype, awake=False))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in LAYERS], ids=lambda case: case.name
)
@pytest.mark.parametrize("home", ["cpu"], indirect=True)
def test_a_model_made_of_twins_gives_what_it_gives_without(case, home):
    twins, references = (results_of_a_case(case, CPU, float, awake) for awake in (True, False))
    assert_same(twins, references, additions=10**6)  # of larger terms, which cancel out


@pytest.mark.parametrize("row", [row for row in TWINS if row.startswith("attention")])
def test_attention_weights_are_read_in_the_cache_of_a_twin(row, home):
    caches = (call(TWINS[row], home, np.float64, awake)[1] for awake in (True, False))
    twin, reference = map(multi_head_attention_weights, caches)
    assert_same([twin], [reference])


@pytest.mark.parametrize("row", REFUSED)
def test_a_twin_refuses_what_the_reference_refuses_in_the_same_words(row, home):
    raised = []
    for awake in (False, True):
        with pytest.raises((ValueError, TypeError)) as caught:
            call(REFUSED[row], home, np.float64, awake)
        raised.append((caught.type, str(caught.value)))
    assert raised[0] == raised[1]


@pytest.mark.usefixtures("small_chunks")
@both_types
@pytest.mark.parametrize("size", [1, 4, 10, 1024, 1025, 4097])
@pytest.mark.parametrize("factor", ["a number", "on the device"])
def test_adam_goes_the_way_of_the_reference(size, factor, dtype, home):
    found = []
    for awake, device in ((True, home.device), (False, CPU)):
        rng = np.random.default_rng(0)
        data = device.asarray(rng.standard_normal(size).astype(dtype))
        m, v = (device.asarray(np.zeros(size, dtype)) for _ in range(2))
        scale = 0.3 if factor == "a number" else device.asarray(np.asarray(0.3, dtype))
        with accelerated(awake):
            for t in (1, 2, 50):
                grad = on(device, rng.standard_normal(size), dtype)
                adam_update(data, grad, m, v, 1e-2, t, 0.9, 0.98, 1e-9, scale)
        found.append((data, m, v))
    assert_same(*found)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("p", [0.0, P])
@pytest.mark.parametrize("kappa", [0.0, 3.0])
def test_a_training_with_twins_goes_the_way_of_one_without(kappa, p, norm, home):
    """Three steps: losses, norms, the parameters after them, and the moments."""
    fields = dict(dropout=p, attention_dropout=p, feed_forward_dropout=p)
    config = replace(small_config(norm), **fields)
    ways = []
    for awake, device in ((True, home.device), (False, CPU)):
        model = Transformer(config, seed=3, device=device, dtype=np.float64)
        adam = Adam(model.flat)
        rng = home.generator(0) if awake else home.same_generator(0)
        way = []
        for _ in range(3):
            model.zero_grad()
            with accelerated(awake):
                losses, cache = model.loss(BATCH, rng, smoothing=0.1, kappa=kappa)
                model.loss_backward(1.0, cache)
                norm_of_all = gradient_norm(model.flat.grad)
                adam.step(1e-2, clip_scale(norm_of_all, 0.5))
            way += [*losses, norm_of_all]
        ways.append([*way, model.flat.data, *adam.vectors.values()])
    for twin, reference in zip(*ways, strict=True):
        np.testing.assert_allclose(to_host(twin), reference, rtol=1e-9, atol=1e-12)
