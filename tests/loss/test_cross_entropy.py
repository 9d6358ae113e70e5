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


@pytest.mark.parametrize("smoothing", [0.0, SMOOTHING])
def test_a_word_that_is_forbidden_and_infinite_logits_of_padding_cost_nothing(smoothing):
    """Without smoothing, which asks for every word a little."""
    forbidden = LOGITS.copy()
    forbidden[1, 1] = -np.inf, 3e38, *[-np.inf] * 5  # of padding
    if not smoothing:
        forbidden[0, :, 3] = -np.inf
    finite = np.where(forbidden == -np.inf, -1e5, forbidden)
    finite[1, 1] = 0
    losses, cache = cross_entropy(forbidden, TARGETS, smoothing)
    expected, _ = cross_entropy(finite, TARGETS, smoothing)
    assert losses == expected
    assert np.isfinite(cross_entropy_backward(1.0, cache)).all()


def test_a_vocabulary_of_one_word_can_be_smoothed():
    (loss, nll), cache = cross_entropy(np.array([[2.5]]), np.array([0]), SMOOTHING, pad_id=-1)
    assert loss == nll == 0
    np.testing.assert_allclose(cross_entropy_backward(1.0, cache), 0, atol=1e-16)


REFUSED = {
    **{f"targets of shape {shape}": (ValueError,
        f"targets of shape {shape} do not match logits of shape (2, 3, 7); expected (2, 3)",
        dict(targets=np.ones(shape, int))) for shape in ((2,), (3, 2), (2, 3, V), (6,))},
    **{f"a target {wrong}": (ValueError, f"from {said}, outside 0 <= id < 7",
        dict(targets=np.where(TARGETS == 0, wrong, 0)))
        for wrong, said in ((-1, "-1 to 0"), (-100, "-100 to 0"), (V, "0 to 7"))},
    "targets that are no integers": (TypeError,
        "token ids must be integers; their dtype is float64", dict(targets=TARGETS + 0.0)),
    **{f"smoothing={e}": (ValueError, f"smoothing={e} must lie in 0 <= smoothing < 1",
        dict(smoothing=e)) for e in (-0.1, 1.0, 1.5, math.nan)},
    **{f"num_tokens={n}": (ValueError, f"num_tokens={n} must be > 0", dict(num_tokens=n))
        for n in (0, -1, math.nan)},
}  # fmt: skip


@pytest.mark.parametrize("row", REFUSED)
def test_what_makes_no_sense_is_refused(row):
    error, words, options = REFUSED[row]
    with pytest.raises(error, match=re.escape(words)):
        cross_entropy(LOGITS, **dict(targets=TARGETS) | options)
