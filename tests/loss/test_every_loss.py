"""What both losses of logits promise; a new one is a row."""

import math

import numpy as np
import pytest

from minitransformer import cross_entropy, cross_entropy_backward
from minitransformer.loss.consistency import consistency, consistency_backward

V = 7
LOGITS = np.random.default_rng(0).standard_normal((4, 3, V))  # of two passes, B = 2, T = 3
TARGETS = np.array([[4, 2, 6], [5, 0, 0]])  # four real ones
NOTHING = np.zeros((2, 3), int)


def smoothed(logits, targets, **options):
    """Of the first pass."""
    (loss, _), cache = cross_entropy(logits[: len(targets)], targets, 0.1, **options)
    return loss, cache


LOSSES = {
    "cross-entropy": (smoothed, cross_entropy_backward),
    "consistency": (consistency, consistency_backward),
}
every_loss = pytest.mark.parametrize(("forward", "backward"), LOSSES.values(), ids=LOSSES)


@every_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_batch_of_padding_has_loss_0_and_gradient_0(forward, backward, dtype):
    loss, cache = forward(LOGITS.astype(dtype), NOTHING)
    assert loss == 0
    np.testing.assert_array_equal(backward(1.0, cache), 0)


@every_loss
def test_any_id_can_stand_for_padding(forward, backward):
    targets = np.where(TARGETS == 0, 3, TARGETS)
    assert forward(LOGITS, targets, pad_id=3)[0] == forward(LOGITS, TARGETS)[0]


@every_loss
@pytest.mark.parametrize("num_tokens", [16, 1])
def test_num_tokens_replaces_the_count_of_this_batch(num_tokens, forward, backward):
    (loss, cache), (share, of_share) = (
        forward(LOGITS, TARGETS, **options) for options in ({}, dict(num_tokens=num_tokens))
    )
    part = 4 / num_tokens
    assert math.isclose(share, part * loss, rel_tol=1e-14)
    np.testing.assert_allclose(backward(1.0, of_share), part * backward(1.0, cache), rtol=1e-14)


@every_loss
def test_large_logits_do_not_overflow(forward, backward):
    loss, cache = forward(1e4 * LOGITS.astype(np.float32), TARGETS)
    assert np.isfinite(loss)
    assert np.isfinite(backward(1.0, cache)).all()


def test_two_equal_passes_are_consistent_at_no_cost_and_without_a_gradient():
    loss, cache = consistency(np.concatenate([LOGITS[:2], LOGITS[:2]]), TARGETS)
    assert loss == 0
    np.testing.assert_array_equal(consistency_backward(1.0, cache), 0)
