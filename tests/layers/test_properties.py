"""What must hold for any input: drawn by hypothesis, checked on whole models.

Where nothing but the values at forbidden positions changes, every sum has the same terms in the
same order and results are equal bit for bit. Where shapes or the order of rows change, they are
equal up to rounding in float64.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitransformer import Transformer, cross_entropy, cross_entropy_backward
from minitransformer.cases.case import (
    LABELS,
    SOURCE,
    SOURCE_MASK,
    TARGET,
    TARGET_MASK,
    D,
    S,
    T,
    V,
)
from minitransformer.cases.models import small_config
from minitransformer.layers import attention
from minitransformer.layers.softmax import softmax

assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12)
both_norms = pytest.mark.parametrize("norm", ["post", "pre"])
few = settings(max_examples=40)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def batches(draw):
    """Source (B, S), target (B, T) and labels (B, T); a source may have no token at all."""
    batch_size = draw(st.integers(1, 4))
    token = st.integers(1, V - 1)
    source = [draw(st.lists(token, max_size=5)) for _ in range(batch_size)]
    pairs = st.lists(st.tuples(token, token), min_size=1, max_size=5)
    target = [draw(pairs) for _ in range(batch_size)]
    length = max(map(len, target))
    return (
        padded(source, max(map(len, source)) or 1),
        padded([[given for given, _ in row] for row in target], length),
        padded([[label for _, label in row] for row in target], length),
    )


def padded(rows, length):
    return np.array([row + [0] * (length - len(row)) for row in rows])


def wider(ids, columns):
    return np.pad(ids, ((0, 0), (0, columns)))


def build(norm, tying="three-way"):
    """A float64 model moved away from its first weights, among which gains of 1 hide mistakes."""
    model = Transformer(small_config(norm, tying), seed=1, dtype=np.float64)
    model.flat.data += np.random.default_rng(2).uniform(-0.4, 0.4, model.flat.data.size)
    return model


MODELS = {norm: build(norm) for norm in ("post", "pre")}


def loss_and_gradient(model, source, target, labels, rng=None, num_tokens=None):
    model.zero_grad()
    logits, cache = model.forward(source, target, rng)
    (loss, _), loss_cache = cross_entropy(logits, labels, 0.1, num_tokens=num_tokens)
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    return loss, model.flat.grad.copy()


def frozen(x):
    """Make all arrays in x read-only, however deep in tuples and lists."""
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    elif isinstance(x, tuple | list):
        for item in x:
            frozen(item)
    return x


# Causality


@both_norms
@few
@given(batch=batches(), t=st.integers(0, 4), seed=seeds)
def test_tokens_after_t_do_not_change_outputs_up_to_t(norm, batch, t, seed):
    source, target, _ = batch
    other = target.copy()
    future = other[:, t + 1 :]
    future[...] = np.random.default_rng(seed).integers(0, V, future.shape)
    model = MODELS[norm]
    expected, _ = model.forward(source, target)
    logits, _ = model.forward(source, other)
    np.testing.assert_array_equal(logits[:, : t + 1], expected[:, : t + 1])


@both_norms
@pytest.mark.parametrize("t", range(T - 1))
def test_outputs_up_to_t_send_no_gradient_to_tokens_after_t(norm, t):
    rng = np.random.default_rng(3)
    x, dy = rng.standard_normal((2, 3, T, D))
    memory = rng.standard_normal((3, S, D))
    dy[:, t + 1 :] = 0
    decoder = MODELS[norm].decoder
    _, cache = decoder.forward(x, memory, TARGET_MASK, SOURCE_MASK)
    dx, _ = decoder.backward(dy, cache)
    assert not dx[:, t + 1 :].any()
    assert dx[:, : t + 1].any(axis=-1).all()


# Padding


@both_norms
@few
@given(batch=batches(), columns=st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_adding_padding_changes_neither_logits_nor_loss_nor_gradients(norm, batch, columns):
    source, target, labels = batch
    more = wider(source, columns[0]), wider(target, columns[1]), wider(labels, columns[1])
    model = MODELS[norm]
    logits, _ = model.forward(source, target)
    padded_logits, _ = model.forward(*more[:2])
    assert_close(padded_logits[:, : target.shape[1]], logits)
    loss, gradient = loss_and_gradient(model, *batch)
    padded_loss, padded_gradient = loss_and_gradient(model, *more)
    assert_close(padded_loss, loss)
    assert_close(padded_gradient, gradient)


@both_norms
@pytest.mark.parametrize("side", ["source_embedding", "target_embedding"])
@pytest.mark.parametrize("where", ["after the text", "before the text"])
def test_the_vector_that_stands_for_padding_changes_nothing_and_gets_no_gradient(norm, side, where):
    batch = [SOURCE, TARGET, LABELS]
    if where == "before the text":
        batch = [ids[:, ::-1] for ids in batch]
    model = build(norm, tying="none")
    expected = loss_and_gradient(model, *batch)
    padding = getattr(model, side).weight
    assert not padding.grad[0].any()
    assert padding.grad[1:].any()
    padding.data[0] = 1000 * np.random.default_rng(4).standard_normal(D)
    changed = loss_and_gradient(model, *batch)
    np.testing.assert_array_equal(changed[0], expected[0])
    np.testing.assert_array_equal(changed[1], expected[1])


@both_norms
def test_what_stands_in_source_padding_changes_no_real_position_of_the_memory(norm):
    x = np.random.default_rng(5).standard_normal((3, S, D))
    other = np.where(SOURCE[:, :, None] == 0, 1000 * x[::-1], x)
    encoder = MODELS[norm].encoder
    expected, _ = encoder.forward(x, SOURCE_MASK)
    memory, _ = encoder.forward(other, SOURCE_MASK)
    np.testing.assert_array_equal(memory[SOURCE != 0], expected[SOURCE != 0])


@both_norms
def test_padded_positions_of_the_memory_are_not_read_and_get_no_gradient(norm):
    rng = np.random.default_rng(6)
    x, dy = rng.standard_normal((2, 3, T, D))
    memory = rng.standard_normal((3, S, D))
    other = np.where(SOURCE[:, :, None] == 0, 1000 * memory[::-1], memory)
    decoder = MODELS[norm].decoder
    expected, cache = decoder.forward(x, memory, TARGET_MASK, SOURCE_MASK)
    y, _ = decoder.forward(x, other, TARGET_MASK, SOURCE_MASK)
    np.testing.assert_array_equal(y, expected)
    _, dmemory = decoder.backward(dy, cache)
    np.testing.assert_array_equal(dmemory.any(axis=-1), SOURCE != 0)


# The batch


@both_norms
@few
@given(batch=batches(), seed=seeds)
def test_permuting_the_batch_permutes_the_result(norm, batch, seed):
    order = np.random.default_rng(seed).permutation(len(batch[0]))
    source, target, labels = (ids[order] for ids in batch)
    model = MODELS[norm]
    expected, _ = model.forward(*batch[:2])
    logits, _ = model.forward(source, target)
    assert_close(logits, expected[order])
    loss, gradient = loss_and_gradient(model, *batch)
    permuted_loss, permuted_gradient = loss_and_gradient(model, source, target, labels)
    assert_close(permuted_loss, loss)
    assert_close(permuted_gradient, gradient)


@both_norms
@few
@given(batch=batches(), cut=st.integers(1, 3))
def test_shards_add_up_to_the_batch_when_told_how_many_tokens_it_has(norm, batch, cut):
    whole = loss_and_gradient(MODELS[norm], *batch)
    num_tokens = np.count_nonzero(batch[2])
    shards = [[ids[:cut] for ids in batch], [ids[cut:] for ids in batch]]
    parts = [
        loss_and_gradient(MODELS[norm], *shard, num_tokens=num_tokens)
        for shard in shards
        if len(shard[0])
    ]
    assert_close(sum(loss for loss, _ in parts), whole[0])
    assert_close(sum(gradient for _, gradient in parts), whole[1])


# Attention


@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5)),
    scale=st.sampled_from([0.0, 1.0, 1e4, 1e30]),
    seed=seeds,
)
def test_softmax_rows_sum_to_1_or_are_all_zero(shape, scale, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.4
    weights, _ = softmax(scale * rng.standard_normal(shape), mask)
    assert (weights >= 0).all()
    assert not weights[~mask].any()
    assert_close(weights.sum(axis=-1), mask.any(axis=-1))


@both_norms
@few
@given(batch=batches())
def test_every_attention_row_of_a_model_sums_to_1_or_is_all_zero(norm, batch):
    source, target, _ = batch
    rows = []

    def recorded(*args):
        weights, cache = softmax(*args)
        rows.append(weights.sum(axis=-1))  # (B, H, T)
        return weights, cache

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "softmax", recorded)
        MODELS[norm].forward(source, target)
    of_encoder, of_decoder, of_memory = rows[:2], rows[2::2], rows[3::2]
    has_source = np.broadcast_to(source.any(axis=1)[:, None, None], of_memory[0].shape)
    for sums in of_decoder:
        assert_close(sums, np.ones_like(sums))
    for sums in of_memory:
        assert_close(sums, has_source)
    for sums in of_encoder:
        assert_close(sums, np.broadcast_to(has_source[:, :, :1], sums.shape))


# Purity


@both_norms
def test_a_training_step_of_a_model_writes_to_gradients_alone(norm):
    model = build(norm)
    for parameter in model.parameters():
        frozen(parameter.data)
    ids = tuple(frozen(x.copy()) for x in (SOURCE, TARGET, LABELS))
    logits, cache = model.forward(*ids[:2], np.random.default_rng(9))
    (_, _), loss_cache = cross_entropy(frozen(logits), ids[2], 0.1)
    dlogits = frozen(cross_entropy_backward(1.0, frozen(loss_cache)))
    model.backward(dlogits, frozen(cache))
    assert model.flat.grad.any()


# Gradients


@both_norms
@few
@given(batch=batches(), seed=seeds)
def test_a_model_collects_the_gradients_of_two_losses(norm, batch, seed):
    model = MODELS[norm]
    logits, cache = model.forward(*batch[:2])
    dlogits_1, dlogits_2 = np.random.default_rng(seed).standard_normal((2, *logits.shape))
    model.zero_grad()
    model.backward(dlogits_1 + dlogits_2, cache)
    expected = model.flat.grad.copy()
    model.zero_grad()
    model.backward(dlogits_1, cache)
    model.backward(dlogits_2, cache)
    assert_close(model.flat.grad, expected)


@both_norms
def test_two_backward_calls_leave_exactly_twice_the_gradient(norm):
    model = build(norm, tying="none")
    logits, cache = model.forward(SOURCE, TARGET, np.random.default_rng(11))
    dlogits = np.random.default_rng(12).standard_normal(logits.shape)
    model.backward(dlogits, cache)
    once = model.flat.grad.copy()
    model.backward(dlogits, cache)
    assert once.any()
    np.testing.assert_array_equal(model.flat.grad, 2 * once)


# Dropout


@both_norms
@few
@given(batch=batches(), seed=seeds)
def test_the_same_generator_state_drops_the_same(norm, batch, seed):
    loss, gradient = loss_and_gradient(MODELS[norm], *batch, np.random.default_rng(seed))
    again = loss_and_gradient(MODELS[norm], *batch, np.random.default_rng(seed))
    np.testing.assert_array_equal(again[0], loss)
    np.testing.assert_array_equal(again[1], gradient)
    other_loss, _ = loss_and_gradient(MODELS[norm], *batch, np.random.default_rng(seed + 1))
    assert other_loss != loss
