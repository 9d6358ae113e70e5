"""Plausible wrong answers to exercise 16 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex17"))


def test_rows_without_the_traffic_of_x_and_y_are_too_few():
    def weight_only(d_in, d_out, rate, bandwidth, itemsize):
        return itemsize * rate / (2 * bandwidth)

    said = only_wrong("ex17", "rows_to_be_busy", rows_to_be_busy=weight_only)
    assert "X, W and Y cross" in said


def test_negative_rows_are_told_to_be_infinite():
    def without_a_case(i, o, rate, bandwidth, size):
        return size * i * o / bandwidth / (2 * i * o / rate - size * (i + o) / bandwidth)

    said = only_wrong("ex17", "rows_to_be_busy", rows_to_be_busy=without_a_case)
    assert "should be inf" in said


def test_a_fused_pair_that_keeps_its_mask_is_told_not_to():
    def keeps_the_mask(x, keep, scale):
        y, _ = SOLUTION["relu_dropout"](x, keep, scale)
        return y, (y, scale, keep)

    said = only_wrong("ex17", "relu_dropout", relu_dropout=keeps_the_mask)
    assert "no x and no mask" in said


def test_a_fused_backward_without_the_scale_is_wrong():
    def unscaled(dy, cache):
        return dy * (cache[0] > 0)

    assert "dx" in only_wrong("ex17", "relu_dropout", relu_dropout_backward=unscaled)


def with_stale_sums(blocks):
    peak, total, weighted = -np.inf, 0.0, 0.0
    for scores, values in blocks:
        peak = max(peak, scores.max())
        weights = np.exp(scores - (peak if peak > -np.inf else 0.0))
        total, weighted = total + weights.sum(), weighted + weights @ values
    return weighted / total if total > 0 else weighted


def without_a_peak(blocks):
    with np.errstate(all="ignore"):
        pairs = [(np.exp(scores), values) for scores, values in blocks]
        return sum(w @ v for w, v in pairs) / sum(w.sum() for w, _ in pairs)


def without_a_forbidden_start(blocks):
    peak, total, weighted = -np.inf, 0.0, 0.0
    for scores, values in blocks:
        with np.errstate(all="ignore"):
            new = max(peak, scores.max())
            weights = np.exp(scores - new)
            total = total * np.exp(peak - new) + weights.sum()
            weighted = weighted * np.exp(peak - new) + weights @ values
        peak = new
    return weighted / total


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (with_stale_sums, "earlier sums brought to the new peak"),
        (without_a_peak, "rising scores is nan"),
        (without_a_forbidden_start, "a first block that is forbidden is nan"),
    ],
)
def test_a_stream_that_forgets_to_rescale_or_overflows_is_told_so(answer, says):
    assert says in only_wrong("ex17", "streamed_average", streamed_average=answer)
