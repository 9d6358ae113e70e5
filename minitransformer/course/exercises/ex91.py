"""Exercise 91, the variances of gates: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Slip, expect, expect_pair, normal, part
from minitransformer.layers.sigmoid import sigmoid

B, T, D = 2, 9, 4
GATES = {  # each with its g
    "that is always open": (np.ones_like, 1.0),
    "that is always half open": (lambda b: np.full_like(b, 0.5), 4.0),
    "σ(b)": (lambda b: sigmoid(b)[0], 2.98161683),
    "σ(b + 1)": (lambda b: sigmoid(b + 1)[0], 1.95006054),
}


@part(25)
def check_gain_of_gate(gain_of_gate):
    hint = "y has the variance g E[gate(b)²], where b has the variance g"
    points, weights = np.polynomial.hermite_e.hermegauss(100)
    for name, (gate, expected) in GATES.items():
        mistakes = {
            "b has the variance g as well, not 1": weights.sum() / (gate(points) ** 2 @ weights),
            "b varies: E[gate(b)²] is neither gate(0)² nor E[gate(b)]²": 1
            / gate(np.zeros(1))[0] ** 2,
        }
        what = f"gain_of_gate of a gate {name}"
        expect(what, gain_of_gate(gate), expected, hint, mistakes, tolerance=1e-6)


@part(25)
def check_highway_gate(forward, backward):
    x, h, dy = normal(20, (B, T, D), (B, T, 2 * D), (B, T, D))
    a, b = h[..., :D], h[..., D:]
    gate, _ = sigmoid(b)
    mistakes = {
        "an open gate, σ(b) near 1, lets the new through and not x": gate * x + (1 - gate) * a,
        "a is the first half of h and b the second": sigmoid(a)[0] * (b - x) + x,
        "as the gate opens for a it shuts for x: 1 − σ(b)": gate * a + x,
    }
    without_x = np.concatenate([dy * gate, dy * a * gate * (1 - gate)], axis=-1)
    hint = "dh: b stands in 1 − σ(b) as well, and what that brings, with x, is left out"
    expected, slip = gate * a + (1 - gate) * x, Slip(hint, dy, (None, without_x))
    return expect_pair(forward, backward, (x, h), expected, mistakes=mistakes, slips=[slip])
