"""Exercise 02, backpropagation by hand: how each part is checked."""

import math

import numpy as np

from minitransformer.course.exercises.parts import Answer, Slip, expect, expect_pair, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.numeric import numeric_gradient
from minitransformer.gradcheck.pair import read_only

N, B, T, D, F = 5, 2, 3, 4, 6


@part(10)
def check_residual_chain_slope(residual_chain_slope):
    hint = "what a block returns is x plus something: its slope is 1 plus something"
    for slopes in ([0.5], [2.0, -0.25], np.random.default_rng(2).uniform(-0.3, 0.3, 60).tolist()):
        given = residual_chain_slope(list(slopes))
        what = f"residual_chain_slope({slopes if len(slopes) < 3 else '60 slopes'})"
        expect(what, given, math.prod(1 + slope for slope in slopes), hint)


@part(25)
def check_gram(forward, backward):
    (x,) = normal(2, (N, D))
    symmetric = x @ x.T
    hint = (
        "dx is right for a symmetric dy, and for no other: what does dy become when the second x "
        "is brought to stand where the first does?"
    )
    slip = Slip(hint, symmetric, (2 * symmetric @ x,))
    return expect_pair(forward, backward, (x,), symmetric, slips=[slip])


@part(45)
def check_two_layer_network(forward, backward):
    x, w_1, w_2, b_1, b_2 = normal(2, (B, T, D), (D, F), (F, D), F, D)
    expected = x + np.maximum(x @ w_1 + b_1, 0) @ w_2 + b_2
    hint = "is x added at the end, and b_1 before the maximum is taken?"
    return expect_pair(forward, backward, (x, w_1, b_1, w_2, b_2), expected, hint)


@part(45)
def check_gradients_of(gradients_of):
    x, w, dy = map(read_only, normal(2, (N, D), (D, D), (N, D)))
    z, h = x @ w, np.tanh(x @ w)
    chain = [("z", ("x", "w"), _product_backward, (x, w)), ("h", ("z",), _tanh_backward, h)]
    expected = {
        "w": numeric_gradient(lambda w: np.tanh(x @ w), w, dy),
        "x": numeric_gradient(lambda x: np.tanh(x @ w), x, dy),
        "h": dy,
    }
    _compare("a chain, h = tanh(x w)", gradients_of, chain, dy, expected)

    loop = [*chain, ("r", ("h", "w"), _product_backward, (h, w)), ("y", ("x", "r"), _sum, None)]
    expected = {
        "w": numeric_gradient(lambda w: x + np.tanh(x @ w) @ w, w, dy),
        "x": numeric_gradient(lambda x: x + np.tanh(x @ w) @ w, x, dy),
        "r": dy,
        "y": dy,
    }
    hint = "are the gradients of all uses added, and to an array that is nobody else's?"
    what = "y = x + tanh(x w) w, where x and w are used twice"
    _compare(what, gradients_of, loop, dy, expected, hint)

    square = [*chain, ("y", ("h", "h"), _times_backward, (h, h))]
    expected = {"h": 2 * h * dy, "w": x.T @ (2 * h * dy * (1 - h**2))}
    _compare("y = h · h, where h is both inputs of one call", gradients_of, square, dy, expected)

    idle = [*chain[:1], ("unused", ("z", "v"), _times_backward, (z, z)), *chain[1:]]
    what = "a tape with a call that the last output does not use"
    gradients = _compare(what, gradients_of, idle, dy, {})
    for name in ("unused", "v"):
        if name in gradients and np.any(gradients[name]):
            raise CheckError(f"the last output does not depend on {name!r}; it has no gradient")


def _compare(what, gradients_of, tape, dy, expected, hint=""):
    """Raise a CheckError unless the gradients by name are as expected; returns all of them."""
    gradients = Answer(f"gradients_of, given {what},", gradients_of.function)(tape, dy)
    if not isinstance(gradients, dict):
        raise CheckError(f"gradients_of returned {type(gradients).__name__}; expected a dictionary")
    for name, gradient in expected.items():
        if name not in gradients:
            raise CheckError(f"{what}: there is no gradient of {name!r}")
        expect(f"{what}: the gradient of {name!r}", gradients[name], gradient, hint, tolerance=1e-7)
    return gradients


def _product_backward(dy, cache):
    x, w = cache
    return dy @ w.T, x.T @ dy


def _tanh_backward(dy, h):
    return (dy * (1 - h**2),)


def _times_backward(dy, cache):
    a, b = cache
    return dy * b, dy * a


def _sum(dy, _):
    """The backward of a + b: one array for both, as that of a residual connection."""
    return dy, dy
