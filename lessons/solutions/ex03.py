"""Solutions of lesson 03, checking gradients."""

import math

import numpy as np


def best_forward_step(unit_roundoff, value, second_derivative):
    """f'' / 2 − 2 u f / h² = 0. For float64 about 1e-8, and the error there is about 1e-8, too."""
    return 2 * math.sqrt(unit_roundoff * value / second_derivative)


def gradient_by_differences(function, x, dy, h=1e-5):
    gradient = np.empty_like(x)
    for index in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[index] += h
        behind[index] -= h
        gradient[index] = ((function(ahead) - function(behind)) * dy).sum() / (2 * h)
    return gradient


def complex_step(f, x):
    """The imaginary part is h f' − h³ f''' / 6 + …: at h = 1e-100 the second term is nothing.

    No two close numbers are subtracted, so no digits are lost: there is no V. The price is a
    function that takes complex numbers, which rules out abs, max and comparisons.
    """
    h = 1e-100
    return f(x + 1j * h).imag / h


def backward_is_right(forward, backward, inputs):
    y, cache = forward(*inputs)
    dy = np.random.default_rng(0).standard_normal(y.shape)  # not ones, not x, not the cache
    gradients = backward(dy, cache)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    for i, (x, gradient) in enumerate(zip(inputs, gradients, strict=True)):

        def output(value, i=i):
            return forward(*inputs[:i], value, *inputs[i + 1 :])[0]

        numeric = gradient_by_differences(output, x, dy)
        if gradient.shape != numeric.shape:
            return False
        if abs(gradient - numeric).max() > 1e-7 * abs(numeric).max():
            return False
    return True
