"""Plausible wrong answers to exercise 02 are told what is wrong with them."""

import math

import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex02"))


@pytest.mark.parametrize("answer", [math.prod, sum, lambda slopes: 1 + sum(slopes)])
def test_a_chain_whose_blocks_have_no_way_past_them_is_told_so(answer):
    said = only_wrong("ex02", "residual_chain_slope", residual_chain_slope=answer)
    assert "1 plus something" in said


def test_a_gram_backward_that_forgets_a_use_of_x_is_wrong():
    assert "WRONG  dx" in only_wrong("ex02", "gram", gram_backward=lambda dy, x: dy @ x)


@pytest.mark.parametrize("answer", [lambda dy, x: 2 * dy @ x, lambda dy, x: 2 * dy.T @ x])
def test_a_gram_backward_that_takes_dy_for_symmetric_is_told_so(answer):
    assert "symmetric dy" in only_wrong("ex02", "gram", gram_backward=answer)


def wrong_network(**changes):
    """The solution's backward with some of its results replaced."""
    names = ["dx", "dw_1", "db_1", "dw_2", "db_2"]

    def backward(dy, cache):
        right = dict(zip(names, SOLUTION["two_layer_network_backward"](dy, cache), strict=True))
        return tuple({**right, **{k: f(right[k], dy) for k, f in changes.items()}}.values())

    return backward


@pytest.mark.parametrize(
    ("backward", "says"),
    [
        (wrong_network(dx=lambda dx, dy: dx - dy), "dy itself is missing"),
        (wrong_network(db_2=lambda db, dy: db / 6), "6 times too small"),
        (wrong_network(dw_2=lambda dw, dy: dw.T), "should be (6, 4)"),
        (wrong_network(db_1=lambda db, dy: 0 * db), "zero everywhere"),
    ],
)
def test_a_network_backward_with_a_slip_is_diagnosed(backward, says):
    said = only_wrong("ex02", "two_layer_network", two_layer_network_backward=backward)
    assert says in said


def test_a_network_without_its_input_at_the_end_is_told_so():
    def without_x(x, *weights):
        y, cache = SOLUTION["two_layer_network"](x, *weights)
        return y - x, cache

    said = only_wrong("ex02", "two_layer_network", two_layer_network=without_x)
    assert "is x added at the end" in said


def overwrites(tape, dy):
    gradients = {tape[-1][0]: dy}
    for output, inputs, backward, cache in reversed(tape):
        if output in gradients:
            gradients.update(zip(inputs, backward(gradients[output], cache), strict=True))
    return gradients


def adds_in_place(tape, dy):
    gradients = {tape[-1][0]: dy.copy()}
    for output, inputs, backward, cache in reversed(tape):
        if output in gradients:
            for name, gradient in zip(inputs, backward(gradients[output], cache), strict=True):
                if name in gradients:
                    gradients[name] += gradient
                else:
                    gradients[name] = gradient
    return gradients


def goes_forward(tape, dy):
    gradients = {tape[-1][0]: dy}
    for output, inputs, backward, cache in tape:
        if output in gradients:
            gradients.update(zip(inputs, backward(gradients[output], cache), strict=True))
    return gradients


def forgets_what_is_idle(tape, dy):
    gradients = {tape[-1][0]: dy}
    for output, inputs, backward, cache in reversed(tape):
        for name, gradient in zip(inputs, backward(gradients[output], cache), strict=True):
            gradients[name] = gradients.get(name, 0) + gradient
    return gradients


def starts_anew_for_what_is_idle(tape, dy):
    gradients = {tape[-1][0]: dy}
    for output, inputs, backward, cache in reversed(tape):
        for name, gradient in zip(inputs, backward(gradients.get(output, dy), cache), strict=True):
            gradients[name] = gradients.get(name, 0) + gradient
    return gradients


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (overwrites, "are the gradients of all uses added"),
        (adds_in_place, "an array that is nobody else's"),
        (goes_forward, "there is no gradient of 'w'"),
        (forgets_what_is_idle, "KeyError"),
        (starts_anew_for_what_is_idle, "does not depend on"),
    ],
)
def test_a_backpropagation_with_a_flaw_is_told_on_which_program_it_fails(answer, says):
    assert says in only_wrong("ex02", "gradients_of", gradients_of=answer)
