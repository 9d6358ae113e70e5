import math
from functools import partial

import numpy as np

from minitransformer.gradcheck import check_pair
from minitransformer.loss.consistency import consistency, consistency_backward

RNG = np.random.default_rng(0)
V = 7
P, Q = RNG.standard_normal((2, 2, 3, V))  # the logits of two passes, B = 2, T = 3
TARGETS = np.array([[4, 2, 6], [5, 0, 0]])  # four real ones
LOGITS = np.concatenate([P, Q])


def test_the_backward_is_the_derivative_of_a_part_of_a_batch():
    report = check_pair(
        partial(consistency, targets=TARGETS, num_tokens=9), consistency_backward, LOGITS
    )
    assert report.right, report


def test_two_equal_passes_cost_nothing_and_have_no_gradient():
    loss, cache = consistency(np.concatenate([P, P]), TARGETS)
    assert loss == 0
    np.testing.assert_array_equal(consistency_backward(1.0, cache), 0)


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
