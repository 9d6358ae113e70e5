import math

import numpy as np
import pytest

from minitransformer.core.backend import to_host
from minitransformer.gradcheck import check_pair
from minitransformer.loss.consistency import consistency, consistency_backward

RNG = np.random.default_rng(0)
V = 7
P, Q = RNG.standard_normal((2, 2, 3, V))  # the logits of two passes, B = 2, T = 3
TARGETS = np.array([[4, 2, 6], [5, 0, 0]])  # four real ones
LOGITS = np.concatenate([P, Q])


def kl(p, q):
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


def test_the_loss_is_the_mean_over_real_tokens_of_both_divergences_halved():
    p, q = (np.exp(z) / np.exp(z).sum(-1, keepdims=True) for z in (P, Q))
    real = [(0, 0), (0, 1), (0, 2), (1, 0)]
    expected = sum((kl(p[i], q[i]) + kl(q[i], p[i])) / 2 for i in real) / 4
    loss, _ = consistency(LOGITS, TARGETS)
    assert math.isclose(loss, expected, rel_tol=1e-13)


@pytest.mark.parametrize("num_tokens", [None, 9])
def test_the_backward_is_the_derivative(num_tokens):
    def forward(logits):
        return consistency(logits, TARGETS, num_tokens=num_tokens)

    report = check_pair(forward, consistency_backward, LOGITS)
    assert report.right, report


def test_two_equal_passes_cost_nothing_and_have_no_gradient():
    loss, cache = consistency(np.concatenate([P, P]), TARGETS)
    assert loss == 0
    np.testing.assert_array_equal(consistency_backward(1.0, cache), 0)


def test_it_does_not_matter_which_pass_comes_first():
    loss, cache = consistency(LOGITS, TARGETS)
    exchanged, exchanged_cache = consistency(np.concatenate([Q, P]), TARGETS)
    assert math.isclose(exchanged, loss, rel_tol=1e-14)
    dp, dq = np.split(consistency_backward(1.0, cache), 2)
    np.testing.assert_allclose(
        consistency_backward(1.0, exchanged_cache), np.concatenate([dq, dp]), rtol=1e-12
    )


def test_logits_at_padding_change_nothing_and_get_no_gradient():
    other = LOGITS.copy()
    other[[1, 3], 1:] = 10 * RNG.standard_normal((2, 2, V))
    loss, cache = consistency(other, TARGETS)
    assert loss == consistency(LOGITS, TARGETS)[0]
    gradient = consistency_backward(1.0, cache)
    np.testing.assert_array_equal(gradient[[1, 3], 1:], 0)
    assert (gradient[[0, 2]] != 0).all()


def test_shards_that_divide_by_the_tokens_of_the_whole_add_up():
    whole, _ = consistency(LOGITS, TARGETS)
    parts = [
        consistency(np.stack([P[b], Q[b]]), TARGETS[b : b + 1], num_tokens=4)[0] for b in (0, 1)
    ]
    assert math.isclose(sum(parts), whole, rel_tol=1e-13)


def test_nothing_but_padding_costs_nothing():
    loss, cache = consistency(LOGITS, np.zeros((2, 3), int))
    assert loss == 0
    np.testing.assert_array_equal(consistency_backward(1.0, cache), 0)


def test_another_id_may_stand_for_padding():
    loss, _ = consistency(LOGITS, np.where(TARGETS == 0, 3, TARGETS), pad_id=3)
    assert loss == consistency(LOGITS, TARGETS)[0]


def test_large_logits_do_not_overflow():
    loss, cache = consistency(1e4 * LOGITS.astype(np.float32), TARGETS)
    assert np.isfinite(loss)
    assert np.isfinite(consistency_backward(1.0, cache)).all()


def test_single_precision_stays_single_precision_on_every_device(device):
    logits = device.asarray(LOGITS, np.float32)
    loss, cache = consistency(logits, TARGETS)
    gradient = consistency_backward(1.0, cache)
    assert loss.dtype == gradient.dtype == np.float32
    expected, expected_cache = consistency(LOGITS, TARGETS)
    assert math.isclose(float(loss), expected, rel_tol=1e-5)
    np.testing.assert_allclose(
        to_host(gradient), consistency_backward(1.0, expected_cache), atol=1e-6
    )
