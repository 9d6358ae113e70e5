"""Plausible wrong answers to exercise 11 are told what is wrong with them."""

import pytest
from exercise_files import functions_in, only_wrong, solution_of

from minitransformer.layers.attention import multi_head_attention
from minitransformer.layers.feed_forward import feed_forward
from minitransformer.layers.layer_norm import layer_norm

SOLUTION = functions_in(solution_of("ex11"))


@pytest.mark.parametrize(
    "answer",
    [
        lambda D, F: 6 * D,  # right only where F = 4 D
        lambda D, F: 4 * D + 2 * F,  # one of the two products forgotten
        lambda D, F: 2 * D,  # the feed-forward network forgotten
    ],
)
def test_another_length_is_not_where_they_cross(answer):
    assert "4 T² D" in only_wrong("ex11", "crossover_length", crossover_length=answer)


def test_a_layer_whose_feed_forward_sees_the_attention_is_not_parallel():
    def one_after_the_other(x, gamma, beta, *rest):
        *weights, num_heads = rest
        n, _ = layer_norm(x, gamma, beta)
        attended, _ = multi_head_attention(n, n, n, *weights[:4], num_heads)
        fed, _ = feed_forward(n + attended, *weights[4:])
        return x + attended + fed, ()

    said = only_wrong("ex11", "parallel_layer", parallel_layer=one_after_the_other)
    assert "neither gets the other's output" in said


def test_a_parallel_backward_that_forgets_the_sum_past_the_layer_is_wrong_in_dx_alone():
    def forgets(dy, cache):
        dx, *others = SOLUTION["parallel_layer_backward"](dy, cache)
        return dx - dy, *others

    said = only_wrong("ex11", "parallel_layer", parallel_layer_backward=forgets)
    assert said.count("WRONG") == 1
    assert "dx" in said


def keeps_caches(layers, x):
    caches = []
    for forward, _ in layers:
        x, cache = forward(x)
        caches.append(cache)
    return x, tuple(caches)


def keeps_everything(layers, x):
    y, entered = SOLUTION["lean_stack"](layers, x)
    return y, (*entered, y)


def starts_over(layers, dy, cache):
    """Keeps the first input alone, and runs up to each layer again."""
    for depth in reversed(range(len(layers))):
        x = cache[0]
        for forward, _ in layers[: depth + 1]:
            x, layer_cache = forward(x)
        dy = layers[depth][1](dy, layer_cache)
    return dy


def in_the_same_order(layers, dy, cache):
    for (forward, backward), x in zip(layers, cache, strict=True):
        dy = backward(dy, forward(x)[1])
    return dy


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"lean_stack": keeps_caches}, "holds a layer's cache"),
        ({"lean_stack": keeps_everything}, "holds 180 numbers"),
        ({"lean_stack_backward": starts_over}, "a layer's forward ran 4 times"),
        ({"lean_stack_backward": in_the_same_order}, "dx"),
    ],
)
def test_a_stack_that_is_not_lean_or_not_right_is_told_why(answer, says):
    assert says in only_wrong("ex11", "lean_stack", **answer)
