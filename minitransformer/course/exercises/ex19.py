"""Exercise 19, recurrence: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Slip, array_of, expect, expect_pair, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.layers.elman import elman, elman_backward
from minitransformer.layers.sigmoid import sigmoid

B, T, D_IN, D = 3, 10, 4, 5
MASK = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [1, 1, 0, 0]], dtype=bool)  # padding anywhere


@part(10)
def check_reach(reach):
    rng = np.random.default_rng(19)
    x, h0 = rng.standard_normal((B, T, D_IN)), np.zeros((B, D))
    w_input, w_hidden = rng.standard_normal((D_IN, D)), rng.standard_normal((D, D)) / 2
    _, cache = elman(x, h0, w_input, w_hidden, np.zeros(D))
    for name, piece, wanted in (
        ("that is not cut off", T, T - 1),
        ("cut into pieces of 4 of 10 steps, from the first", 4, 1),
        ("cut into pieces of 5 of 10 steps", 5, 4),
        ("that takes each step by itself", 1, 0),
    ):
        found = reach(_cut_into(piece), cache, (B, T, D))
        hint = "k counts steps back, and is 0 for the last step itself"
        if wanted < T - 1 and isinstance(found, int | np.integer) and found in (T - 1, T):
            hint = "dy must be 0 before the last step: with it each dx has its own step's share"
        expect(f"the reach of a backward {name}", found, wanted, hint)


def _cut_into(piece):
    """An Elman layer's backward that lets no gradient out of pieces of so many steps."""

    def backward(dy, cache):
        dx = 0
        for start in range(0, T, piece):
            part = np.zeros((B, T, D))
            part[:, start : start + piece] = dy[:, start : start + piece]
            dx_of_part, *others = elman_backward((part, None), cache)
            dx_of_part[:, :start] = 0
            dx = dx + dx_of_part
        return dx, *others

    return backward


@part(25)
def check_gated_norm(gated_norm):
    for eigenvalues, z, k in (
        ([0.5, -1.2, 0.3], 0.0, 3),
        ([0.5, -1.2, 0.3], 0.5, 2),
        ([-3.0, 0.1, -2.9], 0.25, 4),
        ([0.9, -0.95], 0.9, 50),
        ([1.5, -0.2], 0.75, 0),
    ):
        given = np.array(eigenvalues)
        values = z + (1 - z) * given
        mistakes = {
            "the sign of λ counts: add z before you take | |": (
                (z + (1 - z) * abs(given).max()) ** k
            ),
            "a negative eigenvalue may be the largest: take | | before the maximum": (
                values.max() ** k
            ),
            "z and (1 − z) λ add up; the gate's path is not the only one": z**k,
        }
        hint = "which eigenvalues has z I + (1 − z) U, and its k-th power?"
        gated_norm.expect((given, z, k), abs(values).max() ** k, hint, mistakes)


@part(45)
def check_coupled_cell(forward, backward):
    a, c, dstate = normal(19, (B, 3 * D), (B, D), (B, 2 * D))
    f, o = (sigmoid(x)[0] for x in (a[:, :D], a[:, 2 * D :]))
    c_new = f * c + (1 - f) * np.tanh(a[:, D : 2 * D])
    h = o * np.tanh(c_new)
    hint = "a is [a_f a_g a_o], and the input gate is 1 − f"
    state, swapped = (np.concatenate(pair, axis=1) for pair in ((h, c_new), (c_new, h)))
    mistakes = {"the state is [h c_new], with h first": swapped}
    through_h = dstate[:, :D] * o * (1 - np.tanh(c_new) ** 2)  # all that the slip has of dc_new
    slip = Slip(
        "the gradient that comes in for c_new, the second half of dstate, is left out: c_new goes "
        "on to the next step and makes h, so its gradient is the sum of both",
        dstate,
        (None, through_h * f),
    )
    return expect_pair(forward, backward, (a, c), state, hint, mistakes, slips=[slip])


@part(90)
def check_one_gate(forward, backward):
    shapes = (B, MASK.shape[1], D_IN), (B, D), (D_IN, 2 * D), (D, 2 * D), (2 * D,)
    inputs = *(x / 2 for x in normal(19, *shapes)), MASK
    y, _ = forward.y_and_cache(*inputs)
    given = array_of(y, (*MASK.shape, D))
    if given is not None and np.any(given[~MASK] != 0):
        raise CheckError("y is not 0 at padding, where mask is False")
    hint = "at padding the state stays what it was, for the next token to find"
    return expect_pair(forward, backward, inputs, _one_gate_states(*inputs), hint)


def _one_gate_states(x, h, w_input, w_hidden, bias, mask):
    """y of the layer."""
    states = []
    for t in range(mask.shape[1]):
        a = x[:, t] @ w_input + h @ w_hidden + bias
        f, _ = sigmoid(a[:, :D])
        h = np.where(mask[:, t, None], f * h + (1 - f) * np.tanh(a[:, D:]), h)
        states.append(h * mask[:, t, None])
    return np.stack(states, axis=1)
