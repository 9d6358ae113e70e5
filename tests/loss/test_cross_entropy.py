import math
import re

import numpy as np
import pytest

from minitransformer import cross_entropy, cross_entropy_backward

V = 7
RNG = np.random.default_rng(0)
LOGITS = RNG.standard_normal((2, 3, V))
TARGETS = np.array([[4, 2, 6], [5, 0, 0]])  # four real ones
SMOOTHING = 0.1


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("height", [0.0, -5.0, 1e4])
def test_equal_logits_cost_log_v_whatever_the_smoothing(smoothing, height):
    (loss, nll), _ = cross_entropy(np.full((2, 3, V), height), TARGETS, smoothing)
    assert math.isclose(loss, math.log(V), rel_tol=1e-14)
    assert math.isclose(nll, math.log(V), rel_tol=1e-14)


def test_the_nll_beside_a_smoothed_loss_is_the_loss_without_smoothing():
    (plain, _), _ = cross_entropy(LOGITS, TARGETS)
    (loss, nll), _ = cross_entropy(LOGITS, TARGETS, SMOOTHING)
    assert nll == plain
    assert loss != nll


def test_the_floor_of_the_smoothed_loss_is_the_entropy_of_the_smoothed_targets():
    q = np.full(V, SMOOTHING / V)
    q[3] += 1 - SMOOTHING
    entropy = -(q * np.log(q)).sum()
    (loss, _), cache = cross_entropy(np.log(q)[None], np.array([3]), SMOOTHING)
    assert math.isclose(loss, entropy, rel_tol=1e-14)
    np.testing.assert_allclose(cross_entropy_backward(1.0, cache), 0, atol=1e-16)


def test_certainty_costs_nothing_without_smoothing_and_does_not_overflow():
    logits = np.zeros((1, V), dtype=np.float32)
    logits[0, 3] = 1e5
    (loss, _), _ = cross_entropy(logits, np.array([3]))
    assert loss == 0
    (loss, _), _ = cross_entropy(logits, np.array([2]))
    assert loss == 1e5


def test_a_vocabulary_of_one_word_can_be_smoothed():
    (loss, nll), cache = cross_entropy(np.array([[2.5]]), np.array([0]), SMOOTHING, pad_id=-1)
    assert loss == nll == 0
    np.testing.assert_allclose(cross_entropy_backward(1.0, cache), 0, atol=1e-16)


def test_any_id_can_stand_for_padding():
    targets = np.where(TARGETS == 0, 1, TARGETS)
    assert cross_entropy(LOGITS, targets, pad_id=1)[0] == cross_entropy(LOGITS, TARGETS)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_batch_of_padding_has_loss_0_and_gradient_0(dtype):
    targets = np.zeros((2, 3), dtype=np.int64)
    (loss, nll), cache = cross_entropy(LOGITS.astype(dtype), targets, SMOOTHING)
    assert loss == 0
    assert nll == 0
    np.testing.assert_array_equal(cross_entropy_backward(1.0, cache), np.zeros((2, 3, V)))


def test_num_tokens_replaces_the_count_of_this_batch():
    (loss, nll), cache = cross_entropy(LOGITS, TARGETS, SMOOTHING)
    (share, nll_share), share_cache = cross_entropy(LOGITS, TARGETS, SMOOTHING, num_tokens=16)
    assert math.isclose(share, loss / 4, rel_tol=1e-14)
    assert math.isclose(nll_share, nll / 4, rel_tol=1e-14)
    np.testing.assert_allclose(
        cross_entropy_backward(1.0, share_cache), cross_entropy_backward(1.0, cache) / 4, rtol=1e-14
    )


@pytest.mark.parametrize("shape", [(2,), (3, 2), (2, 3, V), (6,)])
def test_targets_of_another_shape_are_refused(shape):
    words = f"targets of shape {shape} do not match logits of shape (2, 3, 7); expected (2, 3)"
    with pytest.raises(ValueError, match=re.escape(words)):
        cross_entropy(LOGITS, np.ones(shape, dtype=np.int64))


@pytest.mark.parametrize("wrong", [-1, -100, V])
def test_targets_that_are_no_words_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{wrong}.*outside 0 <= id < 7"):
        cross_entropy(LOGITS, np.where(TARGETS == 6, wrong, TARGETS))


def test_targets_that_are_no_integers_are_refused():
    with pytest.raises(TypeError, match="token ids must be integers; their dtype is float64"):
        cross_entropy(LOGITS, TARGETS.astype(np.float64))


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, 1.5, float("nan")])
def test_smoothing_out_of_range_is_refused(smoothing):
    with pytest.raises(ValueError, match=f"smoothing={smoothing} must lie in 0 <= smoothing < 1"):
        cross_entropy(LOGITS, TARGETS, smoothing)


@pytest.mark.parametrize("num_tokens", [0, -1, float("nan")])
def test_a_number_of_tokens_that_is_none_is_refused(num_tokens):
    with pytest.raises(ValueError, match=r"num_tokens=.* must be > 0"):
        cross_entropy(np.zeros((1, 2, 3)), np.array([[1, 2]]), num_tokens=num_tokens)
