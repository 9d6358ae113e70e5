"""Plausible wrong answers to exercise 21 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex21"))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda d, gates: gates * d, "attention has four projections"),
        (lambda d, gates: max(0, (gates / 2 - 2) * d), "each gate has two matrices"),
        (lambda d, gates: (gates - 2) * d, "crossing_length(64, 1) is -64 and should be 0"),
        (lambda d, gates: d, "count multiply-adds"),
    ],
)
def test_a_wrong_crossing_is_told_what_was_not_counted(answer, says):
    assert says in only_wrong("ex21", "crossing_length", crossing_length=answer)


def all_up_to_the_farthest(layers, n):
    return np.arange(n) <= sum((width - 1) * dilation for width, dilation in layers)


def of_the_widest_layer_alone(layers, n):
    return np.arange(n) <= max(((k - 1) * dilation for k, dilation in layers), default=0)


def a_width_too_far(layers, n):
    return SOLUTION["distances_seen"]([(k + 1, dilation) for k, dilation in layers], n)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (all_up_to_the_farthest, "distance 2 is not seen: a stack may have holes"),
        (of_the_widest_layer_alone, "add one of the distances of each layer"),
        (a_width_too_far, "for [(3, 1)] distance 3 is not seen: it is too far away"),
        (lambda layers, n: np.zeros(n, dtype=bool), "each layer sees its own position"),
        (lambda layers, n: SOLUTION["distances_seen"](layers, n) * 1.0, "it is float64"),
        (lambda layers, n: SOLUTION["distances_seen"](layers, n + 1), "should have (16,)"),
    ],
)
def test_a_wrong_view_is_told_a_distance_and_why(answer, says):
    assert says in only_wrong("ex21", "distances_seen", distances_seen=answer)


def recall_weights_with(change):
    def answer(keys, values, length):
        weights = SOLUTION["recall_weights"](keys, values, length)
        return change(*weights, keys * values)

    return answer


def question_matches_itself(w_query, w_key, w_value, pairs):
    w_key[pairs:] = np.eye(len(w_key) - pairs) * 2
    return w_query, w_key, w_value


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda q, k, v, _: (q / np.abs(q).max(), k, v), "the other words share the rest"),
        (lambda q, k, v, _: (q / np.sqrt(q.shape[1]), k, v), "the other words share the rest"),
        (question_matches_itself, "the question looks at itself"),
        (lambda q, k, v, _: (np.roll(q, 1, axis=1), k, v), "has the largest weight"),
        (lambda q, k, v, _: (q, k, 2 * v), "its row of w_value must be 1"),
        (lambda q, k, v, _: (q * 1e308, k * 1e308, v), "not finite"),
        (lambda q, k, v, _: (q, k), "w_query, w_key and w_value"),
        (lambda q, k, v, _: (q, k, k), "they have (30, 6), (30, 6), (30, 6)"),
    ],
)
def test_weights_that_do_not_recall_are_told_why(change, says):
    with np.errstate(all="ignore"):
        said = only_wrong("ex21", "recall_weights", recall_weights=recall_weights_with(change))
    assert says in said


def by_all_weights(query, key, value, weigh=np.tril, normalise=True):
    weights = weigh(SOLUTION["phi"](query) @ SOLUTION["phi"](key).swapaxes(-1, -2))
    total = weights.sum(axis=-1, keepdims=True) if normalise else 1
    return weights @ value / total, SOLUTION["linear_attention"](query, key, value)[1]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda q, k, v: by_all_weights(q, k, v, weigh=np.copy), "position t sees s ≤ t alone"),
        (lambda q, k, v: by_all_weights(q, k, v, normalise=False), "the sum of the weights"),
        (by_all_weights, "as much as T² numbers"),
    ],
)
def test_a_linear_attention_that_is_another_or_not_linear_is_told_so(answer, says):
    assert says in only_wrong("ex21", "linear_attention", linear_attention=answer)


def test_a_linear_attention_that_is_scaled_is_told_that_nothing_is():
    def answer(query, key, value):
        y, cache = SOLUTION["linear_attention"](query, key, value)
        return y / np.sqrt(query.shape[-1]), cache

    assert "there is no √K here" in only_wrong("ex21", "linear_attention", linear_attention=answer)


def test_a_backward_that_is_not_linear_is_told_so():
    def backward(dy, cache):
        np.ones((dy.shape[2], dy.shape[2]))
        return SOLUTION["linear_attention_backward"](dy, cache)

    said = only_wrong("ex21", "linear_attention", linear_attention_backward=backward)
    assert "linear_attention_backward holds" in said


def without_the_gradient_of_the_sum(dy, cache):
    query, key, value, pairs, sums, total, y = cache
    return SOLUTION["linear_attention_backward"](
        dy, (query, key, value, pairs, sums, total, np.zeros_like(y))
    )


def without_the_derivative_of_phi(dy, cache):
    dquery, dkey, dvalue = SOLUTION["linear_attention_backward"](dy, cache)
    return dquery / SOLUTION["dphi"](cache[0]), dkey, dvalue


def sums_from_the_beginning(dy, cache):
    """A backward whose running sums go the way of the forward's."""
    query, key, value, _, _, total, y = cache
    q, k = SOLUTION["phi"](query), SOLUTION["phi"](key)
    du, dtotal = dy / total, -(dy * y).sum(-1, keepdims=True) / total
    dpairs = np.cumsum(q[..., :, None] * du[..., None, :], axis=2)
    dsums = np.cumsum(q * dtotal, axis=2)
    dquery, _, _ = SOLUTION["linear_attention_backward"](dy, cache)
    dk = (dpairs @ value[..., None])[..., 0] + dsums
    return dquery, dk * SOLUTION["dphi"](key), (k[..., None, :] @ dpairs)[..., 0, :]


@pytest.mark.parametrize(
    ("backward", "wrong", "right"),
    [
        (without_the_gradient_of_the_sum, ("dquery", "dkey"), ("dvalue",)),
        (without_the_derivative_of_phi, ("dquery",), ("dkey", "dvalue")),
        (sums_from_the_beginning, ("dkey", "dvalue"), ("dquery",)),
    ],
)
def test_a_wrong_backward_of_linear_attention_is_told_which_gradients_are_wrong(
    backward, wrong, right
):
    said = only_wrong("ex21", "linear_attention", linear_attention_backward=backward)
    assert all(f"WRONG  {name}" in said for name in wrong)
    assert all(f"right  {name}" in said for name in right)


def test_a_backward_without_the_gradient_of_the_sum_is_diagnosed():
    said = only_wrong(
        "ex21",
        "linear_attention",
        linear_attention_backward=without_the_gradient_of_the_sum,
    )
    assert "`(q * sums).sum(axis=-1, keepdims=True)`" in said
    assert "is missing" in said
