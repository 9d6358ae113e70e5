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
    TARGET,
    D,
    V,
)
from minitransformer.cases.models import small_config
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


def loss_and_gradient(model, source, target, labels):
    model.zero_grad()
    logits, cache = model.forward(source, target)
    (loss, _), loss_cache = cross_entropy(logits, labels, 0.1)
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    return loss, model.flat.grad.copy()


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
def test_outputs_up_to_t_give_no_gradient_to_the_tokens_after_t(norm):
    model, target, t = build(norm, tying="none"), np.array([[1, 2, 3, 4, 5]]), 2
    logits, cache = model.forward(SOURCE[:1], target)
    dlogits = np.random.default_rng(3).standard_normal(logits.shape)
    dlogits[:, t + 1 :] = 0
    model.backward(dlogits, cache)
    of_tokens = model.target_embedding.weight.grad[target[0]]  # (T, D)
    np.testing.assert_array_equal(of_tokens.any(axis=1), [True] * 3 + [False] * 2)


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
