"""Exercise 03, checking gradients: how each part is checked."""

import math

import numpy as np

from minitransformer.course.exercises.parts import expect, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import read_only
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.softmax import softmax, softmax_backward

B, D = 5, 4


@part(10)
def check_best_forward_step(best_forward_step):
    for u, f, f2 in ((2.0**-53, 1.3, 0.2), (2.0**-24, 0.5, 3.0)):
        expected, hint = 2 * math.sqrt(u * f / f2), "where is h/2 f'' + 2 u f/h smallest?"
        best_forward_step.expect((u, f, f2), expected, hint)


@part(25)
def check_gradient_by_differences(gradient_by_differences):
    x, dy = map(read_only, normal(3, (3, 4), (3, 4)))

    def beside_something_large(x):
        return np.concatenate([np.sin(x).ravel(), [1e7]])

    beside = "a function with a large output that does not depend on x"
    subtract = "subtract the two outputs before you sum them"
    for what, function, upstream, tolerance, hint in (
        ("Σ sin(x) · dy", np.sin, dy, 1e-8, ""),
        (beside, beside_something_large, np.append(dy, 1.0), 1e-6, subtract),
    ):
        given = gradient_by_differences(function, x, upstream)
        expect(f"the gradient of {what}", given, np.cos(x) * dy, hint, tolerance=tolerance)


@part(25)
def check_complex_step(complex_step):
    def f(x):
        return np.exp(x) / (1 + x**2)

    hint = "nothing is subtracted, so h may be as small as 1e-100"
    for x in (0.3, 1.7):
        slope = complex_step(f, x)
        expected = math.exp(x) * (1 - x) ** 2 / (1 + x**2) ** 2
        expect(f"the slope of exp(x) / (1 + x²) at {x}", slope, expected, hint, tolerance=1e-14)


@part(45)
def check_backward_is_right(backward_is_right):
    (x, weight, bias), gamma = normal(3, (B, D), (D, D), D), np.linspace(0.5, 1.5, D)
    to_norm, to_linear, to_one = (x, gamma, bias), (x, weight, bias), (x,)

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

    def zeros(dy, cache):
        return np.zeros_like(dy)

    def divided(dy, cache):
        return softmax_backward(dy, cache) / B

    right = {
        "linear's backward, which is right": (linear, linear_backward, to_linear),
        "LayerNorm's backward, which is right": (layer_norm, layer_norm_backward, to_norm),
        "softmax's backward, which is right: is its gradient zero for your dy?": (
            (softmax, softmax_backward, to_one)
        ),
        "ReLU's backward, which is right": (relu, relu_backward, to_one),
    }
    wrong = {
        "a softmax backward that returns zeros: what is your upstream gradient?": (
            (softmax, zeros, to_one)
        ),
        "a softmax backward divided by the batch size": (softmax, divided, to_one),
        "LayerNorm without mean(dx̂)": (layer_norm, no_mean_term, to_norm),
        "a linear backward with a transposed weight gradient: does dy differ from x?": (
            (linear, transposed, to_linear)
        ),
        "a linear backward with a mean in place of the sum for the bias: is every gradient "
        "compared?": (linear, mean_bias, to_linear),
        "a ReLU backward with one entry wrong by a thousandth: what is your tolerance, and is "
        "every entry compared?": (relu, one_entry_off, to_one),
    }
    for name, (forward, backward, inputs) in (right | wrong).items():
        inputs = tuple(map(read_only, inputs))
        answer = backward_is_right(forward, backward, inputs)
        if not isinstance(answer, bool | np.bool_):
            raise CheckError(
                f"backward_is_right returned {type(answer).__name__}; expected True or False"
            )
        if answer != (name in right):
            raise CheckError(f"it {'rejects' if name in right else 'accepts'} {name}")
