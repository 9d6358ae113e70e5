"""Plausible wrong answers to exercise 01 are told what is wrong with them."""

import math

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of, verdicts

from minitransformer.core.backend import array_namespace
from minitransformer.course.exercises.far_machine import FarMachine
from minitransformer.course.exercises.parts import RIGHT
from minitransformer.layers.attention import multi_head_attention, multi_head_attention_backward

SOLUTION = functions_in(solution_of("ex90"))


def test_a_break_even_that_counts_one_matrix_of_three_is_wrong():
    def one_matrix(cpu, gpu, link, products):
        return SOLUTION["break_even"](cpu, gpu, link, products) / 3

    assert "three matrices" in only_wrong("ex90", "break_even", break_even=one_matrix)


def test_a_merge_rule_that_knows_no_axes_of_one_is_wrong():
    def strict(shape, strides, axis):
        return strides[axis] == shape[axis + 1] * strides[axis + 1]

    said = only_wrong("ex90", "merges_without_copy", merges_without_copy=strict)
    assert "is False and should be True" in said


def test_a_merge_rule_that_only_wants_falling_strides_is_wrong():
    def falling(shape, strides, axis):
        return 1 in shape[axis : axis + 2] or strides[axis] >= strides[axis + 1]

    said = only_wrong("ex90", "merges_without_copy", merges_without_copy=falling)
    assert "is True and should be False" in said


def with_an_if(gradient, limit):
    norm = float(array_namespace(gradient).sqrt((gradient * gradient).sum()))
    return gradient * (float(limit) / norm) if norm > limit else gradient


def with_a_division_by_zero(gradient, limit):
    xp = array_namespace(gradient)
    norm = xp.sqrt((gradient * gradient).sum())
    return gradient * xp.minimum(1.0, float(limit) / norm)


def with_a_float64_limit(gradient, limit):
    xp = array_namespace(gradient)
    return gradient * (limit / xp.maximum(xp.sqrt((gradient * gradient).sum()), limit))


def on_numpy_only(gradient, limit):
    return gradient * (float(limit) / np.maximum(np.sqrt((gradient * gradient).sum()), limit))


def in_place(gradient, limit):
    gradient *= 0.5
    return gradient


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (with_an_if, "it waits 1 times"),
        (with_a_division_by_zero, "divide by zero"),
        (with_a_float64_limit, "float64 scalar among the factors"),
        (on_numpy_only, "FarArray"),
        (in_place, "read-only"),
        (lambda gradient, limit: gradient, "should be"),
    ],
)
def test_a_clip_that_waits_divides_by_zero_widens_or_writes_is_told_so(answer, says):
    assert says in only_wrong("ex90", "clip_without_waiting", clip_without_waiting=answer)


def test_heads_projected_by_a_batched_product_are_too_many_gemms():
    def batched(heads, w_output):
        _, cache = SOLUTION["project_heads"](heads, w_output)
        return (heads @ w_output).sum(axis=1), cache

    assert "makes 7 GEMMs" in only_wrong("ex90", "project_heads", project_heads=batched)


def test_heads_joined_without_a_swap_are_told_that_they_are_mixed_up():
    def mixed(heads, w_output):
        batch, num_heads, length, head_width = heads.shape
        swapped = heads.reshape(batch, length, num_heads, head_width).swapaxes(1, 2)
        return SOLUTION["project_heads"](swapped, w_output)

    assert "head h belongs to" in only_wrong("ex90", "project_heads", project_heads=mixed)


def test_a_backward_that_swaps_no_axes_back_is_wrong():
    def unswapped(dy, cache):
        dheads, dw_output = SOLUTION["project_heads_backward"](dy, cache)
        return dheads.swapaxes(1, 2).reshape(dheads.shape), dw_output

    said = only_wrong("ex90", "project_heads", project_heads_backward=unswapped)
    assert "dheads" in said


def test_a_tensordot_is_one_gemm_too():
    def by_tensordot(heads, w_output):
        batch, num_heads, length, head_width = heads.shape
        rows = heads.swapaxes(1, 2).reshape(batch * length, -1)
        weight = w_output.reshape(num_heads * head_width, -1)
        y = array_namespace(heads).tensordot(heads, w_output, ((1, 3), (0, 1)))
        return y, (rows, weight, heads.shape)

    assert verdicts("ex90", project_heads=by_tensordot)["project_heads"].status == RIGHT


def test_the_far_machine_refuses_what_comes_from_here():
    far = FarMachine()
    x, here = far.asarray([1.0, 2.0]), np.ones(2)
    for mix in (
        lambda: x + here,
        lambda: here + x,
        lambda: here @ x,
        lambda: np.exp(x),
        lambda: np.asarray(x),
        lambda: far.where(x > 1, x, here),
        lambda: far.concatenate([x, here]),
    ):
        with pytest.raises(TypeError, match=r"far array|FarArray"):
            mix()


def test_the_far_machine_counts_what_crosses_and_what_waits():
    far = FarMachine()
    x = far.asarray([3.0, 4.0])
    norm = far.sqrt((x * x).sum())
    assert (far.uploads, far.waits) == (1, 0)
    assert math.sqrt(norm * norm) == 5
    assert bool(norm > 1)
    assert x[x > 3].get().tolist() == [4]
    assert (far.uploads, far.waits) == (1, 4)


def test_a_layer_gives_the_same_on_the_far_machine_bit_for_bit():
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape) for shape in [(2, 5, 8)] * 3 + [(8, 8)] * 4]
    far = FarMachine()
    there = [far.asarray(array) for array in arrays]
    y, cache = multi_head_attention(*arrays, 2)
    far_y, far_cache = multi_head_attention(*there, 2)
    gradients = multi_head_attention_backward(y, cache)
    far_gradients = multi_head_attention_backward(far_y, far_cache)
    assert far.waits == 0
    for near, away in zip([y, *gradients], [far_y, *far_gradients], strict=True):
        assert np.array_equal(near, away.get())
