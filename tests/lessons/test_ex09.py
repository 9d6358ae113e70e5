"""Plausible wrong answers to exercise 09 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex09"))


@pytest.mark.parametrize(
    "answer",
    [
        lambda T, S, D, H: 4 * T * D**2 + 2 * T * S * D,  # right for T = S
        lambda T, S, D, H: 2 * (T + S) * D**2 + 2 * T * S * D * H,
        lambda T, S, D, H: 2 * (T + S) * D**2 + T * S * D,  # without the average
    ],
)
def test_a_wrong_count_of_multiplications_is_told_the_products(answer):
    said = only_wrong("ex09", "multiplications", multiplications=answer)
    assert "scores and average T · S · K a head" in said


def reordering(of_query, of_output):
    """An answer that applies two functions from (matrix, H, order) to a matrix."""

    def answer(w_query, w_key, w_value, w_output, num_heads, order):
        inputs = (of_query(w, num_heads, order) for w in (w_query, w_key, w_value))
        return *inputs, of_output(w_output, num_heads, order)

    return answer


def columns(w, num_heads, order):
    return w.reshape(len(w), num_heads, -1)[:, np.asarray(order)].reshape(w.shape)


def rows(w, num_heads, order):
    return columns(w.T, num_heads, order).T


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (reordering(columns, columns), "a head owns rows"),
        (reordering(rows, rows), "what was head order[h]"),
        (reordering(lambda w, *_: w, lambda w, *_: w), "what was head order[h]"),
        (lambda *arguments: SOLUTION["reordered_heads"](*arguments[:5], (1, 2, 0)), "order[h]"),
    ],
)
def test_a_wrong_reordering_of_heads_is_told_so(answer, says):
    assert says in only_wrong("ex09", "reordered_heads", reordered_heads=answer)


def test_gates_on_heads_that_are_not_merged_properly_are_told_so():
    def plain_reshape(heads, gates, w_output):
        gated = gates[:, None, None] * heads
        batch, num_heads, length, width = heads.shape
        return gated.reshape(batch, length, num_heads * width) @ w_output, ()

    said = only_wrong("ex09", "gated_heads", gated_heads=plain_reshape)
    assert "number h · K + k" in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda dheads, dgates, gates: (dheads / gates[:, None, None], dgates),
            "the factor `gates[:, None, None]`",
        ),
        (lambda dheads, dgates, gates: (dheads, dgates * gates), "dgates"),
        (lambda dheads, dgates, gates: (dheads, dgates / 2), "2 times too small"),
    ],
)
def test_a_wrong_gradient_of_gates_or_heads_is_diagnosed(change, says):
    def backward(dy, cache):
        dheads, dgates, dw_output = SOLUTION["gated_heads_backward"](dy, cache)
        return *change(dheads, dgates, cache[1]), dw_output

    assert says in only_wrong("ex09", "gated_heads", gated_heads_backward=backward)


def test_a_multi_query_attention_scaled_by_the_whole_width_is_told_so():
    def scaled(x, w_query, w_key, *others):
        return SOLUTION["multi_query_attention"](x, w_query, w_key / np.sqrt(3), *others)

    said = only_wrong("ex09", "multi_query_attention", multi_query_attention=scaled)
    assert "√ of K, not of D" in said


def test_a_multi_query_backward_that_takes_one_head_or_forgets_a_path_is_diagnosed():
    def mean_over_heads(dy, cache):
        dx, dw_query, dw_key, dw_value, dw_output = backward(dy, cache)
        return dx, dw_query, dw_key / 3, dw_value / 3, dw_output

    def only_queries(dy, cache):
        _, dw_query, *others = backward(dy, cache)
        x, w_query = cache[:2]
        return (
            np.linalg.lstsq(x.reshape(-1, x.shape[-1]).T, dw_query, rcond=None)[0].reshape(x.shape)
            @ w_query.T,
            dw_query,
            *others,
        )

    backward = SOLUTION["multi_query_attention_backward"]
    for answer, says in ((mean_over_heads, "3 times too small"), (only_queries, "dx")):
        said = only_wrong("ex09", "multi_query_attention", multi_query_attention_backward=answer)
        assert says in said
