"""Exercise 03, checking gradients: how each part is checked."""

import math

import numpy as np

from minitransformer.course.exercises.parts import Part, expect, read_only
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import call
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.softmax import softmax, softmax_backward

B, D = 5, 4


def check_best_forward_step(best_forward_step):
    for u, f, f2 in ((2.0**-53, 1.3, 0.2), (2.0**-24, 0.5, 3.0)):
        step = call("best_forward_step", best_forward_step, u, f, f2)
        what = f"best_forward_step({u:.3g}, {f:g}, {f2:g})"
        expect(what, step, 2 * math.sqrt(u * f / f2), hint="where is h/2 f'' + 2 u f/h smallest?")


def check_gradient_by_differences(gradient_by_differences):
    rng = np.random.default_rng(3)
    x, dy = read_only(rng.standard_normal((3, 4))), read_only(rng.standard_normal((3, 4)))

    def gradient(function, dy):
        return call("gradient_by_differences", gradient_by_differences, function, x, dy)

    expect("the gradient of Σ sin(x) · dy", gradient(np.sin, dy), np.cos(x) * dy, 1e-8)

    def beside_something_large(x):
        return np.concatenate([np.sin(x).ravel(), [1e7]])

    expect(
        "the gradient of a function with a large output that does not depend on x",
        gradient(beside_something_large, np.append(dy, 1.0)),
        np.cos(x) * dy,
        1e-6,
        hint="subtract the two outputs before you sum them",
    )


def check_complex_step(complex_step):
    def f(x):
        return np.exp(x) / (1 + x**2)

    for x in (0.3, 1.7):
        slope = call("complex_step", complex_step, f, x)
        expect(
            f"the slope of exp(x) / (1 + x²) at {x}",
            slope,
            math.exp(x) * (1 - x) ** 2 / (1 + x**2) ** 2,
            1e-14,
            hint="nothing is subtracted, so h may be as small as 1e-100",
        )


def check_backward_is_right(backward_is_right):
    for name, forward, backward, make_inputs, right in _judged():
        inputs = tuple(map(read_only, make_inputs(np.random.default_rng(3))))
        answer = call("backward_is_right", backward_is_right, forward, backward, inputs)
        if not isinstance(answer, bool | np.bool_):
            raise CheckError(
                f"backward_is_right returned {type(answer).__name__}; expected True or False"
            )
        if answer != right:
            raise CheckError(f"it {'rejects' if right else 'accepts'} {name}")


def _judged():
    """Name, forward, backward, inputs and whether it is right, of backwards to be judged."""

    def norm_inputs(rng):
        return rng.standard_normal((B, D)), rng.uniform(0.5, 1.5, D), rng.standard_normal(D)

    def linear_inputs(rng):
        return rng.standard_normal((B, D)), rng.standard_normal((D, D)), rng.standard_normal(D)

    def one(rng):
        return (rng.standard_normal((B, D)),)

    def no_mean_term(dy, cache):
        _, sigma, gamma = cache
        dx, dgamma, dbeta = layer_norm_backward(dy, cache)
        return dx + (gamma * dy).mean(-1, keepdims=True) / sigma, dgamma, dbeta

    def transposed(dy, cache):
        dx, dweight, dbias = linear_backward(dy, cache)
        return dx, dweight.T, dbias

    def mean_bias(dy, cache):
        dx, dweight, dbias = linear_backward(dy, cache)
        return dx, dweight, dbias / B

    def one_entry_off(dy, cache):
        dx = relu_backward(dy, cache).copy()
        dx[np.unravel_index(np.argmax(abs(dx)), dx.shape)] *= 1.001
        return dx

    return [
        ("linear's backward, which is right", linear, linear_backward, linear_inputs, True),
        (
            "LayerNorm's backward, which is right",
            layer_norm,
            layer_norm_backward,
            norm_inputs,
            True,
        ),
        (
            "softmax's backward, which is right: is its gradient zero for your dy?",
            softmax,
            softmax_backward,
            one,
            True,
        ),
        ("ReLU's backward, which is right", relu, relu_backward, one, True),
        (
            "a softmax backward that returns zeros: what is your upstream gradient?",
            softmax,
            lambda dy, cache: np.zeros_like(dy),
            one,
            False,
        ),
        (
            "a softmax backward divided by the batch size",
            softmax,
            lambda dy, cache: softmax_backward(dy, cache) / B,
            one,
            False,
        ),
        ("LayerNorm without mean(dx̂)", layer_norm, no_mean_term, norm_inputs, False),
        (
            "a linear backward with a transposed weight gradient: does dy differ from x?",
            linear,
            transposed,
            linear_inputs,
            False,
        ),
        (
            "a linear backward with a mean in place of the sum for the bias: is every gradient "
            "compared?",
            linear,
            mean_bias,
            linear_inputs,
            False,
        ),
        (
            "a ReLU backward with one entry wrong by a thousandth: what is your tolerance, and is "
            "every entry compared?",
            relu,
            one_entry_off,
            one,
            False,
        ),
    ]


PARTS = [
    Part(("best_forward_step",), 10, check_best_forward_step),
    Part(("gradient_by_differences",), 25, check_gradient_by_differences),
    Part(("complex_step",), 25, check_complex_step),
    Part(("backward_is_right",), 45, check_backward_is_right),
]
