"""The simple recurrent layer (Elman 1990).

    h_t = tanh(x_t W + h_{t−1} U + b)

Derivation. With z the sum inside,

    dz = dh_t · (1 − h_t²)

and z is a sum, so what comes from the input and what comes from the state both get dz. The way
through time is in ``recurrence.py``. There dz is multiplied by Uᵀ at every step, and by a factor
1 − h² of at most 1: over long distances the gradient vanishes, or explodes where U stretches.
"""

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.recurrence import (
    first_state,
    hidden_weight,
    input_weight,
    recurrence,
    recurrence_backward,
)


def elman_cell(from_input, from_state, h):
    """The next state; of the one before, h, only ``from_state`` counts.

    Args:
        from_input: x W + b, (B, D).
        from_state: h U, (B, D).
        h: (B, D).

    Returns:
        The state (h,) and the cache for the backward.
    """
    h = array_namespace(h).tanh(from_input + from_state)
    return (h,), h


def elman_cell_backward(dstate, cache):
    """Gradients dfrom_input, dfrom_state and dh, (B, D) each; dh without that of from_state."""
    (dh,) = dstate
    h = cache
    dz = dh * (1 - h * h)
    return dz, dz, array_namespace(h).zeros_like(h)


def elman(x, h0, w_input, w_hidden, bias, mask=None, reverse=False):
    """The states of a simple recurrent network over a padded batch; a single step is T = 1.

    Args:
        x: (B, T, D_in).
        h0: the first state, (B, D).
        w_input: (D_in, D).
        w_hidden: (D, D).
        bias: (D,).
        mask, reverse: as for :func:`recurrence`.

    Returns:
        y (B, T, D), 0 at padding, with the last state h (B, D), and the cache for the backward.
    """
    from_input, input_cache = linear(x, w_input, bias)  # (B, T, D)
    outputs, loop_cache = recurrence(elman_cell, from_input, (h0,), w_hidden, None, mask, reverse)
    return outputs, (input_cache, loop_cache)


def elman_backward(doutputs, cache):
    """Gradients of the first five arguments from (dy, dh), either of them None for none."""
    input_cache, loop_cache = cache
    dfrom_input, (dh0,), dw_hidden, _ = recurrence_backward(
        elman_cell_backward, doutputs, loop_cache
    )
    dx, dw_input, dbias = linear_backward(dfrom_input, input_cache)
    return dx, dh0, dw_input, dw_hidden, dbias


class Elman(Module):
    """A simple recurrent layer with its own weights.

    Args:
        d_in, d_hidden: widths D_in of the inputs and D of the state.
        rng: NumPy generator for the weights.
        reverse: whether it reads from the end.
    """

    def __init__(self, d_in, d_hidden, rng, *, reverse=False):
        self.w_input = Parameter(input_weight(d_in, d_hidden, 1, rng))
        self.w_hidden = Parameter(hidden_weight(d_hidden, 1, rng))
        self.bias = Parameter(np.zeros(d_hidden, dtype=np.float32))
        self.reverse = reverse

    def forward(self, x, h=None, mask=None):
        """(y, h) and the cache; the first state is zeros unless it is given."""
        h = first_state(x, len(self.w_hidden.data)) if h is None else h
        w = (self.w_input.data, self.w_hidden.data, self.bias.data)
        return elman(x, h, *w, mask, self.reverse)

    def backward(self, doutputs, cache):
        """Gradients dx and dh from (dy, dh), either of them None for none."""
        dx, dh, dw_input, dw_hidden, dbias = elman_backward(doutputs, cache)
        self.w_input.grad += dw_input
        self.w_hidden.grad += dw_hidden
        self.bias.grad += dbias
        return dx, dh
