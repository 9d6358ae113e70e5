"""Plausible wrong answers to exercise 08 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex08"))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda d_k: (1.0, np.sqrt(2)), "only then divided"),
        (lambda d_k: (0.0, 1.0), "the mean for d_k=1 is 0"),  # as for two different positions
        (lambda d_k: (np.sqrt(d_k), 2.0), "the root comes last"),
        (lambda d_k: np.sqrt(d_k), "two numbers"),
    ],
)
def test_a_wrong_moment_of_the_score_is_told_which(answer, says):
    assert says in only_wrong("ex08", "score_of_itself", score_of_itself=answer)


def parts_of_the_mask(segments):
    position = np.arange(segments.shape[1])
    same = segments[:, :, None] == segments[:, None, :]
    real = (segments != 0)[:, None, :]
    return same, real, position[None, :] <= position[:, None]


@pytest.mark.parametrize(
    ("combine", "says"),
    [
        (lambda same, real, causal: real & causal, "different sentences"),
        (lambda same, real, causal: same & real, "comes after it"),
        (lambda same, real, causal: same & causal, "padding looks at nothing"),
        (lambda same, real, causal: same & real & causal & ~np.eye(7, dtype=bool), "may look"),
        (lambda same, real, causal: ~(same & real & causal), "may look"),
    ],
)
def test_a_packed_mask_without_one_of_its_conditions_is_told_which(combine, says):
    def answer(segments):
        return combine(*parts_of_the_mask(segments))[:, None]

    assert says in only_wrong("ex08", "packed_mask", packed_mask=answer)


def test_a_packed_mask_of_ones_and_zeros_or_without_the_axis_of_heads_is_told_so():
    right = SOLUTION["packed_mask"]
    said = only_wrong("ex08", "packed_mask", packed_mask=lambda s: right(s).astype(float))
    assert "boolean array; it is float64" in said
    said = only_wrong("ex08", "packed_mask", packed_mask=lambda s: right(s)[:, 0])
    assert "should have (3, 1, 7, 7)" in said


def test_a_bias_that_is_scaled_with_the_scores_is_told_so():
    def scaled(query, key, value, bias):
        return SOLUTION["biased_attention"](query, key, value, bias / np.sqrt(query.shape[-1]))

    said = only_wrong("ex08", "biased_attention", biased_attention=scaled)
    assert "after the division" in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda dbias, batch: dbias / batch, "2 times too small: 2 is the batch size"),
        (lambda dbias, batch: np.stack([dbias, 0 * dbias]), "summed over the leading axes"),
    ],
)
def test_a_bias_gradient_not_summed_over_the_batch_is_diagnosed(change, says):
    def backward(dy, cache):
        *others, dbias = SOLUTION["biased_attention_backward"](dy, cache)
        return *others, change(dbias, len(dy))

    assert says in only_wrong("ex08", "biased_attention", biased_attention_backward=backward)


def test_a_lean_attention_that_keeps_the_weights_is_not_lean():
    def keeps(query, key, value):
        y, cache = SOLUTION["lean_attention"](query, key, value)
        return y, (*cache, query @ key.swapaxes(-1, -2))

    said = only_wrong("ex08", "lean_attention", lean_attention=keeps)
    assert "array of 378 numbers" in said


def test_a_lean_backward_that_forgets_the_scale_is_diagnosed():
    def unscaled(dy, cache):
        dquery, dkey, dvalue = SOLUTION["lean_attention_backward"](dy, cache)
        scale = np.sqrt(dy.shape[-1])
        return dquery * scale, dkey * scale, dvalue

    said = only_wrong("ex08", "lean_attention", lean_attention_backward=unscaled)
    assert "2.23607 is √5, the root of the head width d_k" in said


def plainly(scores):
    """The softmax, and log Σ exp, without subtracting the largest score."""
    log_sum = np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    return np.exp(scores - log_sum), log_sum


def test_an_attention_that_overflows_is_told_to_subtract_the_largest_score():
    def lean(query, key, value):
        weights, log_sum = plainly(query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]))
        y = weights @ value
        return y, (query, key, value, y, log_sum)

    def biased(query, key, value, bias):
        scale = 1 / np.sqrt(query.shape[-1])
        weights, _ = plainly(query @ key.swapaxes(-1, -2) * scale + bias)
        return weights @ value, (query, key, value, weights, scale)

    for name, answer in (("lean_attention", lean), ("biased_attention", biased)):
        said = only_wrong("ex08", name, **{name: answer})
        assert "y for scores of ±4000" in said
        assert "subtract the largest score of a row" in said


def test_a_lean_backward_that_overflows_is_told_so_too():
    def backward(dy, cache):
        query, key, value, y, _ = cache
        _, log_sum = plainly(query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]))
        return SOLUTION["lean_attention_backward"](dy, (query, key, value, y, log_sum))

    said = only_wrong("ex08", "lean_attention", lean_attention_backward=backward)
    assert "dquery for scores of ±4000" in said
