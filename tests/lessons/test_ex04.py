"""Plausible wrong answers to exercise 04 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex04"))


def entropy_of_target(vocabulary_size, smoothing):
    q = np.full(vocabulary_size, smoothing / vocabulary_size)
    q[0] += 1 - smoothing
    return np.exp(-(q * np.log(np.maximum(q, 1e-300))).sum())


@pytest.mark.parametrize(
    "answer",
    [entropy_of_target, lambda V, epsilon: 1 / (1 - epsilon), lambda V, epsilon: 1.0],
)
def test_another_perplexity_is_told_which_word_counts(answer):
    said = only_wrong("ex04", "perplexity_at_the_floor", perplexity_at_the_floor=answer)
    assert "counts the right word only" in said


@pytest.mark.parametrize(
    "answer",
    [
        lambda dy, y: dy - np.exp(y) * dy,
        lambda dy, y: np.exp(y) * (dy - (dy * np.exp(y)).sum(-1, keepdims=True)),  # softmax's
    ],
)
def test_a_log_softmax_backward_for_another_dy_is_wrong(answer):
    assert "WRONG  dz" in only_wrong("ex04", "log_softmax", log_softmax_backward=answer)


def test_a_log_softmax_backward_for_a_target_in_place_of_dy_is_told_so():
    said = only_wrong("ex04", "log_softmax", log_softmax_backward=lambda dy, y: dy - np.exp(y))
    assert "sums to 1" in said


def plain_log_softmax(z):
    y = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    return y, y


def log_of_softmax(z):
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    y = np.log(p / p.sum(axis=-1, keepdims=True))
    return y, y


@pytest.mark.parametrize("answer", [plain_log_softmax, log_of_softmax])
def test_a_log_softmax_that_overflows_is_told_to_subtract_the_largest_score(answer):
    said = only_wrong("ex04", "log_softmax", log_softmax=answer)
    assert "±9000" in said
    assert "take no log of a probability" in said


def running(rescale, skip=True):
    """The solution with another factor for the sum so far."""

    def log_sum_exp_in_chunks(chunks):
        peak, total = -np.inf, 0.0
        for z in chunks:
            higher = max(peak, z.max())
            if skip and higher == -np.inf:
                continue
            total = total * rescale(peak, higher) + np.exp(z - higher).sum()
            peak = higher
        return peak + np.log(total)

    return log_sum_exp_in_chunks


def peak_of_each_chunk(chunks):
    total = 0.0
    for z in chunks:
        peak = z.max()
        total += np.exp(z - peak).sum()
    return peak + np.log(total)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda chunks: np.log(sum(np.exp(z).sum() for z in chunks)), "up to 9000"),
        (running(lambda peak, higher: 1.0), "a larger score makes the sum so far smaller"),
        (running(lambda peak, higher: np.exp(higher - peak)), "of small scores"),
        (running(lambda peak, higher: np.exp(peak - higher), skip=False), "−∞ − (−∞) is NaN"),
        (peak_of_each_chunk, "of small scores"),
        (lambda chunks: sum(np.exp(z).sum() for z in chunks), "of small scores"),
    ],
)
def test_a_sum_in_chunks_with_a_flaw_is_told_where_it_fails(answer, says):
    said = only_wrong("ex04", "log_sum_exp_in_chunks", log_sum_exp_in_chunks=answer)
    assert says in said


def test_going_through_the_chunks_twice_is_wrong():
    def twice(chunks):
        peak = max(z.max() for z in chunks)
        return peak + np.log(sum(np.exp(z - peak).sum() for z in chunks))

    assert only_wrong("ex04", "log_sum_exp_in_chunks", log_sum_exp_in_chunks=twice)


def backward_of(dz=lambda dz: dz, du=lambda du: du):
    def backward(dloss, cache):
        right = SOLUTION["distillation_backward"](dloss, cache)
        return dz(right[0]), du(right[1])

    return backward


@pytest.mark.parametrize(
    ("backward", "says"),
    [
        (backward_of(dz=lambda dz: dz * 2.5), "WRONG  dz: it is 2.5 times too large"),
        (backward_of(dz=lambda dz: dz * len(dz)), "3 is the batch size"),
        (backward_of(du=lambda du: 0 * du), "WRONG  du: it is zero everywhere"),
        (lambda dloss, c: (SOLUTION["distillation_backward"](dloss, c)[0], None), "None"),
    ],
)
def test_a_distillation_backward_with_a_slip_is_diagnosed(backward, says):
    assert says in only_wrong("ex04", "distillation", distillation_backward=backward)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda z, u, t: SOLUTION["distillation"](z, u * t, t), "τ = 2.5"),
        (lambda z, u, t: SOLUTION["distillation"](u, z, t), "τ = 1"),
    ],
)
def test_another_distillation_is_told_so(changed, says):
    assert says in only_wrong("ex04", "distillation", distillation=changed)


def test_a_distillation_by_the_log_of_a_probability_overflows():
    def by_probabilities(z, u, temperature):
        p, q = (np.exp(SOLUTION["log_softmax"](x / temperature)[0]) for x in (z, u))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p = np.log(p)
            return -(q * log_p).sum() / len(z), (log_p, q, temperature)

    assert "±9000" in only_wrong("ex04", "distillation", distillation=by_probabilities)
