"""Long short-term memory, LSTM (Hochreiter and Schmidhuber 1997; forget gate: Gers et al. 2000).

    i_t = σ(x_t W_i + h_{t−1} U_i + b_i)         input gate: what of the candidate to take in
    f_t = σ(x_t W_f + h_{t−1} U_f + b_f)         forget gate: what of the memory to keep
    g_t = tanh(x_t W_g + h_{t−1} U_g + b_g)      the candidate
    o_t = σ(x_t W_o + h_{t−1} U_o + b_o)         output gate: what of the memory to show
    c_t = f_t · c_{t−1} + i_t · g_t
    h_t = o_t · tanh(c_t)

Derivation, for one step. c_t is used twice, in h_t and as the memory of the next step, from where
dc has come:

    do = dh · tanh(c_t)      dc += dh · o (1 − tanh²(c_t))
    di = dc · g              df = dc · c_{t−1}
    dg = dc · i              dc_{t−1} = dc · f

and before σ and tanh, where the input's and the state's share are added, so that both get the same:

    di · i (1 − i)           df · f (1 − f)           dg · (1 − g²)          do · o (1 − o)

dh_{t−1} comes from the product with U alone, in ``recurrence.py``. Along c the gradient is
multiplied by f and by no matrix: where the gate is open, it arrives from far away as it set out.

The matrices stand side by side, in the order i, f, g, o: W (D_in, 4D), U (D, 4D), b (4D,).
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
from minitransformer.layers.sigmoid import sigmoid, sigmoid_backward


def lstm_cell(from_input, from_state, h, c):
    """The next state; of h only ``from_state`` counts.

    Args:
        from_input: x W + b, (B, 4D).
        from_state: h U, (B, 4D).
        h, c: the state before, (B, D) each.

    Returns:
        The state (h, c) and the cache for the backward.
    """
    xp = array_namespace(c)
    d = c.shape[1]
    z = from_input + from_state  # (B, 4D)
    i_and_f, i_and_f_cache = sigmoid(z[:, : 2 * d])  # (B, 2D)
    i, f = i_and_f[:, :d], i_and_f[:, d:]  # (B, D)
    g = xp.tanh(z[:, 2 * d : 3 * d])
    o, o_cache = sigmoid(z[:, 3 * d :])
    new_c = f * c + i * g
    shown = xp.tanh(new_c)
    return (o * shown, new_c), (c, i_and_f_cache, i, f, g, o_cache, o, shown)


def lstm_cell_backward(dstate, cache):
    """Gradients dfrom_input, dfrom_state (B, 4D), dh and dc (B, D); dh without from_state's."""
    dh, dc = dstate
    c, i_and_f_cache, i, f, g, o_cache, o, shown = cache
    xp = array_namespace(dh)
    do = dh * shown
    dc = dc + dh * o * (1 - shown * shown)
    di_and_df = xp.concatenate([dc * g, dc * c], axis=1)  # (B, 2D)
    dg = dc * i
    dz = xp.concatenate(
        [
            sigmoid_backward(di_and_df, i_and_f_cache),
            dg * (1 - g * g),
            sigmoid_backward(do, o_cache),
        ],
        axis=1,
    )  # (B, 4D)
    return dz, dz, xp.zeros_like(dh), dc * f


def lstm(x, h0, c0, w_input, w_hidden, bias, mask=None, reverse=False):
    """The states of an LSTM over a padded batch; a single step is T = 1.

    Args:
        x: (B, T, D_in).
        h0, c0: the first state, (B, D) each.
        w_input: (D_in, 4D).
        w_hidden: (D, 4D).
        bias: (4D,).
        mask, reverse: as for :func:`recurrence`.

    Returns:
        y (B, T, D), 0 at padding, with the last state, h and c (B, D); and the cache for the
        backward.
    """
    from_input, input_cache = linear(x, w_input, bias)  # (B, T, 4D)
    outputs, loop_cache = recurrence(lstm_cell, from_input, (h0, c0), w_hidden, None, mask, reverse)
    return outputs, (input_cache, loop_cache)


def lstm_backward(doutputs, cache):
    """Gradients of the first six arguments from (dy, dh, dc), any of them None for none."""
    input_cache, loop_cache = cache
    dfrom_input, (dh0, dc0), dw_hidden, _ = recurrence_backward(
        lstm_cell_backward, doutputs, loop_cache
    )
    dx, dw_input, dbias = linear_backward(dfrom_input, input_cache)
    return dx, dh0, dc0, dw_input, dw_hidden, dbias


class LSTM(Module):
    """An LSTM with its own weights, the forget gate open at first.

    Its bias is 1 and all others are 0, as Jozefowicz, Zaremba and Sutskever (2015) advise.

    Args:
        d_in, d_hidden: widths D_in of the inputs and D of the state.
        rng: NumPy generator for the weights.
        reverse: whether it reads from the end.
    """

    def __init__(self, d_in, d_hidden, rng, *, reverse=False):
        self.w_input = Parameter(input_weight(d_in, d_hidden, 4, rng))
        self.w_hidden = Parameter(hidden_weight(d_hidden, 4, rng))
        self.bias = Parameter(np.zeros(4 * d_hidden, dtype=np.float32))
        self.bias.data[d_hidden : 2 * d_hidden] = 1
        self.reverse = reverse

    def forward(self, x, h=None, c=None, mask=None):
        """(y, h, c) and the cache; the first state is zeros unless it is given."""
        h, c = (first_state(x, len(self.w_hidden.data)) if s is None else s for s in (h, c))
        w = (self.w_input.data, self.w_hidden.data, self.bias.data)
        return lstm(x, h, c, *w, mask, self.reverse)

    def backward(self, doutputs, cache):
        """Gradients dx, dh and dc from (dy, dh, dc), any of them None for none."""
        dx, dh, dc, dw_input, dw_hidden, dbias = lstm_backward(doutputs, cache)
        self.w_input.grad += dw_input
        self.w_hidden.grad += dw_hidden
        self.bias.grad += dbias
        return dx, dh, dc
