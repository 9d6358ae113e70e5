"""What the CUDA twins alone promise, on a GPU or on the CPU in its place: shapes, launches, waits.

What all twins promise is in ``test_every_twin.py``.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from on_device import on
from pairs import run_pair
from rounding import assert_but_for_rounding
from strict_cupy import StrictArray, StrictCupy, strict

from minitransformer.accelerate.cuda import launches
from minitransformer.cases.case import BATCH
from minitransformer.cases.layers import LAYERS
from minitransformer.cases.losses import LOSSES
from minitransformer.cases.models import small_config
from minitransformer.core.backend import CPU, array_namespace, is_array, like, to_host
from minitransformer.core.counter_generator import CounterGenerator
from minitransformer.core.twins import TwinCache, accelerated
from minitransformer.layers.attention import (
    multi_head_attention,
    multi_head_attention_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.embedding import embedding, embedding_backward
from minitransformer.layers.feed_forward import feed_forward, feed_forward_backward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.residual import residual, residual_backward
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.models.transformer import Transformer
from minitransformer.optim.adam import Adam
from minitransformer.optim.clipping import clip_scale, gradient_norm


def compare(gpu, forward, backward, inputs):
    """Run a pair as twins on the GPU, and as references on the CPU, and compare all they return."""
    there = run_pair(gpu.device, forward, backward, inputs)
    here = run_pair(CPU, forward, backward, inputs, awake=False)
    for x, reference in zip(there, here, strict=True):
        assert_but_for_rounding(x, reference)


@pytest.fixture
def normal():
    """Draws an array of a shape, of other numbers each time."""
    rng = np.random.default_rng(0)
    return lambda *shape: rng.standard_normal(shape)


def generator_of(x):
    """A new generator on the device of x, the same for every device."""
    return CounterGenerator(5, array_namespace(x))


def off_by_one(x):
    """A copy of x that begins one entry later than arrays do: its fours are not aligned."""
    flat = array_namespace(x).empty(x.size + 1, x.dtype)
    flat[1:] = x.reshape(-1)
    return flat[1:].reshape(x.shape)


# --- Shapes: rows and widths around 4 entries a thread, 32 threads a warp, 256 a block


@pytest.mark.parametrize("width", [1, 2, 3, 5, 31, 33, 127, 129, 513, 1030])
@pytest.mark.parametrize("rows", [1, 7, 70])
def test_layer_norm_of_any_shape(gpu, rows, width, normal):
    inputs = normal(rows, width) + 3, normal(width), normal(width)
    # With a small epsilon, all but nothing would be left of the gradient of a row of two entries.
    compare(gpu, lambda *inputs: layer_norm(*inputs, 0.1), layer_norm_backward, inputs)


@pytest.mark.parametrize("d_ff", [1, 3, 6, 130, 515])
@pytest.mark.parametrize("shape", [(1, 1), (2, 5, 7), (3, 43, 4)])
def test_feed_forward_of_any_shape(gpu, shape, d_ff, normal):
    d_model = shape[-1]
    weights = normal(d_model, d_ff), normal(d_ff), normal(d_ff, d_model), normal(d_model)

    def forward(x, *weights):
        return feed_forward(x, *weights, 0.3, generator_of(x))

    compare(gpu, forward, feed_forward_backward, (normal(*shape), *weights))


@pytest.mark.parametrize("shape", [(1,), (5,), (1100,), (3, 1), (2, 3, 6), (70, 33), (5, 1030)])
def test_dropout_and_residual_of_any_shape(gpu, shape, normal):
    def residual_of(x, h):
        return residual(x, h, 0.4, generator_of(x))

    def dropout_of(x):
        return dropout(x, 0.4, generator_of(x))

    compare(gpu, residual_of, residual_backward, (normal(*shape), normal(*shape)))
    compare(gpu, dropout_of, dropout_backward, (normal(*shape),))


MASKS = {
    "none": lambda shape: None,
    "padding": lambda shape: np.arange(shape[-1]) < 1 + np.arange(shape[0])[:, None, None, None],
    "causal": lambda shape: np.tri(*shape[-2:], dtype=bool),
    "one for all": lambda shape: np.ones(1, bool),
    "of each head": lambda shape: np.random.default_rng(3).random(shape) < 0.5,
    "nothing": lambda shape: np.zeros((shape[0], 1, 1, 1), bool),
}


@pytest.mark.parametrize("p", [0.0, 0.3])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("t", "s"), [(1, 1), (2, 3), (5, 34), (3, 131)])
def test_attention_of_any_shape_and_mask(gpu, t, s, mask, p, normal):
    B, H, K = 3, 2, 5
    inputs = normal(B, H, t, K), normal(B, H, s, K), normal(B, H, s, K)

    def forward(query, key, value, mask):
        return scaled_dot_product_attention(query, key, value, mask, p, generator_of(query))

    inputs = (*inputs, MASKS[mask]((B, H, t, s)))
    compare(gpu, forward, scaled_dot_product_attention_backward, inputs)


def test_a_mask_may_be_any_view(gpu, normal):
    def forward(query, key, value, mask):
        return scaled_dot_product_attention(query, key, value, mask.T)

    mask = np.random.default_rng(3).random((5, 4, 1, 3)) < 0.5
    inputs = normal(3, 1, 4, 2), normal(3, 1, 5, 2), normal(3, 1, 5, 2), mask
    compare(gpu, forward, scaled_dot_product_attention_backward, inputs)


def test_heads_are_copied_once_for_all_six_products(shim, monkeypatch, normal):
    """CuPy's own products would copy ten operands that are transposed or not contiguous."""
    copied = []

    def ascontiguousarray(self, x):
        copied.append(x.shape) if not x._data.flags.c_contiguous else None
        return StrictArray(np.ascontiguousarray(x._data))

    monkeypatch.setattr(StrictCupy, "ascontiguousarray", ascontiguousarray)
    x, *weights = (shim.device.asarray(a) for a in on_cpu(normal(3, 5, 8), *4 * [normal(8, 8)]))
    with accelerated():
        y, cache = multi_head_attention(x, x, x, *weights, 2)
        multi_head_attention_backward(y, cache)
    assert copied == 4 * [(3, 2, 5, 4)]  # queries, keys, values; and the gradient of the output


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("num_tokens", [None, 40.0])
@pytest.mark.parametrize(("rows", "words"), [(1, 2), (6, 3), (20, 11), (9, 1023), (5, 2050)])
def test_the_loss_of_any_shape(gpu, rows, words, num_tokens, smoothing, normal):
    targets = np.random.default_rng(0).integers(0, words, (2, rows))  # 0 is padding
    settings = targets, smoothing, 0, num_tokens
    logits = 10 * normal(2, rows, words)
    compare(gpu, lambda z: cross_entropy(z, *settings), cross_entropy_backward, (logits,))

    def projected(x, w):
        return projected_loss(x, w, targets, smoothing, 0.0, 0, num_tokens)

    inputs = normal(2, rows, 5), normal(words, 5)
    compare(gpu, projected, projected_loss_backward, inputs)


@pytest.mark.parametrize("num_tokens", [None, 40.0])
@pytest.mark.parametrize(("rows", "words"), [(1, 2), (6, 3), (9, 1023), (5, 2050)])
def test_the_loss_of_two_passes_of_any_shape(gpu, rows, words, num_tokens, normal):
    targets = np.random.default_rng(0).integers(0, words, (2, rows))  # 0 is padding

    def forward(x, w):
        return projected_loss(x, w, targets, 0.1, 0.7, 0, num_tokens)

    compare(gpu, forward, projected_loss_backward, (normal(4, rows, 5), normal(words, 5)))


def test_the_loss_is_right_for_logits_whose_exponential_overflows(gpu, normal):
    z = 1000 * normal(4, 300)
    compare(gpu, lambda z: cross_entropy(z, np.arange(1, 5)), cross_entropy_backward, (z,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_right_where_a_word_is_forbidden(gpu, normal, smoothing):
    z = normal(4, 300)
    z[:, 7] = -np.inf
    settings = np.arange(1, 5), smoothing
    compare(gpu, lambda z: cross_entropy(z, *settings), cross_entropy_backward, (z,))


def test_the_gradient_of_a_scaled_loss_is_scaled(gpu, normal):
    x, weight, targets = normal(2, 3, 4), normal(7, 4), np.array([[3, 4, 0], [6, 1, 2]])
    for scale in (0.5, gpu.device.asarray(np.float32(0.5))):
        with accelerated():
            args = (on(gpu.device, a, np.float32) for a in (x, weight))
            _, cache = projected_loss(*args, targets)
            there = projected_loss_backward(scale, cache)
        here = projected_loss_backward(0.5, projected_loss(*on_cpu(x, weight), targets)[1])
        for a, b in zip(there, here, strict=True):
            assert_but_for_rounding(a, b)


def on_cpu(*arrays):
    return [x.astype(np.float32) for x in arrays]


@pytest.mark.parametrize("width", [1, 6, 131])
@pytest.mark.parametrize("positions", [1, 5, 100])
def test_the_gradient_of_an_embedding_counts_every_use(gpu, positions, width, normal):
    ids = np.random.default_rng(0).integers(0, 9, (positions, 2)) ** 2  # 0 to 64, some often
    compare(gpu, lambda weight: embedding(ids, weight), embedding_backward, (normal(65, width),))


def test_arrays_that_begin_anywhere_and_are_not_contiguous_are_read_right(gpu, normal):
    x, gamma, beta = on_cpu(normal(9, 8), normal(8), normal(8))
    dy = on_cpu(normal(8, 9))[0].T
    y, cache = layer_norm(x, gamma, beta)
    reference = y, *layer_norm_backward(dy, cache)
    with accelerated():
        inputs = (off_by_one(gpu.device.asarray(a)) for a in (x, gamma, beta))
        y, cache = layer_norm(*inputs)
        results = y, *layer_norm_backward(gpu.device.asarray(dy.T.copy()).T, cache)
    for result, expected in zip(results, reference, strict=True):
        assert_but_for_rounding(result, expected)


def test_ids_may_be_a_view_with_gaps_as_the_shifted_halves_of_a_text_are(gpu, normal):
    text = np.array([[1, 3], [2, 0], [4, 1]], dtype=np.int32)

    def embedded(weight):
        return embedding(like(text, weight)[:, :-1], weight)

    def loss(logits):
        return cross_entropy(logits, like(text, logits)[:, 1:], pad_id=0)

    compare(gpu, embedded, embedding_backward, (normal(5, 6),))
    compare(gpu, loss, cross_entropy_backward, (normal(3, 1, 5),))


def test_more_rows_than_a_grid_holds_are_worked_on_one_after_another(gpu, monkeypatch, normal):
    monkeypatch.setattr(launches, "MAX_GRID_Y", 2)
    x = normal(700, 7)
    compare(gpu, lambda x: dropout(x, 0.4, generator_of(x)), dropout_backward, (x,))


@pytest.mark.parametrize("layout", [launches.elementwise, launches.summing, launches.rowwise])
@pytest.mark.parametrize("rows", [1, 70_000, 10**9])
@pytest.mark.parametrize("width", [1, 512, 10**6])
def test_no_launch_asks_for_more_than_a_gpu_has(layout, rows, width):
    (columns, grid_rows), (x, y) = layout(rows, width)
    assert 1 <= columns < 2**31
    assert 1 <= grid_rows <= 65535
    assert x * y == launches.THREADS


def test_column_sums_take_two_launches_at_most(shim):
    for rows, expected in ((1, 1), (256, 1), (257, 2), (30_000, 2)):
        shim.machine.launched.clear()
        x = on(shim.device, np.ones((rows, 5)), np.float32)
        assert np.array_equal(to_host(launches.column_sums(x)), np.full(5, rows, np.float32))
        assert shim.machine.launched == ["column_sums"] * expected


# --- Order of additions


def test_the_order_in_which_blocks_run_changes_no_bit(shim):
    def results():
        results = []
        for case in [*LAYERS, *LOSSES]:
            forward, backward, inputs, _ = case.build(np.random.default_rng(0))
            results += run_pair(shim.device, forward, backward, inputs)
        return [to_host(x) for x in results]

    forwards = results()
    shim.machine.backwards = True
    backwards = results()
    for x, y in zip(forwards, backwards, strict=True):
        assert np.array_equal(x, y)


def test_two_runs_have_the_same_bits(gpu, normal):
    """On a GPU blocks run in another order each time."""
    ids = np.random.default_rng(0).integers(0, 3, 300)
    dx = gpu.device.asarray(normal(300, 33).astype(np.float32))
    with accelerated():

        def gradient():
            weight = gpu.device.asarray(np.ones((3, 33), np.float32))
            _, cache = embedding(ids, weight)
            return to_host(embedding_backward(dx, cache))

        assert np.array_equal(gradient(), gradient())


# --- Dropout


def test_dropout_keeps_no_mask(gpu):
    with accelerated():
        x = gpu.device.asarray(np.ones((64, 64), np.float32))
        _, cache = dropout(x, 0.1, gpu.generator(0))
    assert isinstance(cache, TwinCache)
    assert not any(is_array(value) for value in cache.cache)


def test_where_nothing_is_dropped_nothing_is_done(gpu):
    x = gpu.device.asarray(np.ones((3, 4), np.float32))
    with accelerated():
        for p, rng in ((0.0, gpu.generator(0)), (0.5, None)):
            y, cache = dropout(x, p, rng)
            assert y is x
            assert dropout_backward(x, cache) is x


def test_a_generator_whose_bits_no_kernel_can_draw_is_refused(gpu):
    x = gpu.device.asarray(np.ones((3, 4), np.float32))
    with accelerated(), pytest.raises(TypeError, match="CounterGenerator"):
        dropout(x, 0.1, np.random.default_rng(0))


# --- Whole training steps


def training_step(model, batch, rng, adam):
    """One step as the trainer takes it; returns loss, NLL and the norm of the gradient."""
    model.flat.grad.fill(0)
    num_tokens = int((batch.labels != 0).sum())
    losses, cache = model.loss(batch, rng, smoothing=0.1, num_tokens=num_tokens)
    model.loss_backward(1.0, cache)
    norm = gradient_norm(model.flat.grad)
    adam.step(0.01, clip_scale(norm, 0.5))
    return (*losses, norm)


def test_a_training_step_waits_for_nothing_and_makes_no_float64(shim):
    model = Transformer(small_config(), device=shim.device)
    adam, rng = Adam(model.flat), shim.generator(0)
    with accelerated(), strict.record() as record:
        training_step(model, BATCH, rng, adam)
    assert record.waits == 0
    assert record.uploads == 5  # ids: two for the embeddings, two for the masks, the labels
    assert np.dtype(np.float64) not in record.dtypes


def test_how_many_kernels_a_training_step_takes(shim):
    """Few launches are what makes a step of a small model fast on a GPU."""
    config = replace(small_config("pre"), num_encoder_layers=3, num_decoder_layers=3)
    model = Transformer(config, device=shim.device)
    adam, rng = Adam(model.flat), shim.generator(0)
    with accelerated():
        training_step(model, BATCH, rng, adam)
    attentions, feed_forwards, norms, embeddings = 9, 6, 17, 2
    assert Counter(shim.machine.launched) == {
        "dropout": 2 * embeddings + attentions + feed_forwards,  # those of residuals, backward
        "residual": attentions + feed_forwards,
        "layer_norm": norms,
        "layer_norm_backward": norms,
        "layer_norm_sums": norms,
        "column_sums": norms + 2 * feed_forwards,
        "bias_relu_dropout": feed_forwards,
        "relu_dropout_backward": feed_forwards,
        "softmax": attentions,
        "softmax_backward": attentions,
        "cross_entropy": 1,
        "embedding_gradient": embeddings,
        "adam": 1,
    }
