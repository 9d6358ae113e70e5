"""The gated recurrent unit, GRU (Cho et al. 2014).

    r_t = σ(x_t W_r + b_r + h_{t−1} U_r + b′_r)              reset: what of the past to look at
    z_t = σ(x_t W_z + b_z + h_{t−1} U_z + b′_z)              update: what of the past to keep
    n_t = tanh(x_t W_n + b_n + r_t · (h_{t−1} U_n + b′_n))   the new candidate
    h_t = (1 − z_t) · n_t + z_t · h_{t−1}

Here the reset gate acts on the product h U_n, as in cuDNN and PyTorch; Cho et al. have it act
before, (r · h) U_n. So all three products with h are one GEMM, and b′_n is a bias that b_n cannot
stand for.

Derivation, for one step. In h = n + z · (h_{t−1} − n) each factor's gradient is dh times the other:

    dn = dh · (1 − z)        dz = dh · (h_{t−1} − n)        dh_{t−1} = dh · z

Before the tanh of n, with u_n = h_{t−1} U_n + b′_n, and before the two σ:

    da_n = dn · (1 − n²)     du_n = da_n · r                dr = da_n · u_n
    da_r = du_r = dr · r (1 − r)                            da_z = du_z = dz · z (1 − z)

and dh_{t−1} gets du Uᵀ in addition, in ``recurrence.py``. Where z is near 1, dh passes to the step
before multiplied by nearly 1: this is what carries a gradient over long distances.

The matrices stand side by side, W = [W_r W_z W_n] (D_in, 3D) and U = [U_r U_z U_n] (D, 3D).
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


def gru_cell(from_input, from_state, h):
    """The next state.

    Args:
        from_input: x W + b, (B, 3D).
        from_state: h U + b′, (B, 3D).
        h: the state before, (B, D).

    Returns:
        The state (h,) and the cache for the backward.
    """
    d = h.shape[1]
    gates, gates_cache = sigmoid(from_input[:, : 2 * d] + from_state[:, : 2 * d])  # (B, 2D)
    r, z = gates[:, :d], gates[:, d:]  # (B, D)
    u_n = from_state[:, 2 * d :]  # (B, D)
    n = array_namespace(h).tanh(from_input[:, 2 * d :] + r * u_n)
    h_minus_n = h - n
    return (n + z * h_minus_n,), (gates_cache, r, z, u_n, n, h_minus_n)


def gru_cell_backward(dstate, cache):
    """Gradients dfrom_input, dfrom_state (B, 3D) and dh (B, D), without that of from_state."""
    (dh,) = dstate
    gates_cache, r, z, u_n, n, h_minus_n = cache
    xp = array_namespace(dh)
    dz = dh * h_minus_n
    dn = dh - dh * z
    da_n = dn * (1 - n * n)
    dr = da_n * u_n
    dgates = sigmoid_backward(xp.concatenate([dr, dz], axis=1), gates_cache)  # (B, 2D)
    dfrom_input = xp.concatenate([dgates, da_n], axis=1)  # (B, 3D)
    dfrom_state = xp.concatenate([dgates, da_n * r], axis=1)  # (B, 3D)
    return dfrom_input, dfrom_state, dh * z


def gru(x, h0, w_input, w_hidden, b_input, b_hidden, mask=None, reverse=False):
    """The states of a GRU over a padded batch; a single step is T = 1.

    Args:
        x: (B, T, D_in).
        h0: the first state, (B, D).
        w_input: (D_in, 3D).
        w_hidden: (D, 3D).
        b_input, b_hidden: (3D,).
        mask, reverse: as for :func:`recurrence`.

    Returns:
        y (B, T, D), 0 at padding, with the last state h (B, D), and the cache for the backward.
    """
    from_input, input_cache = linear(x, w_input, b_input)  # (B, T, 3D)
    outputs, loop_cache = recurrence(gru_cell, from_input, (h0,), w_hidden, b_hidden, mask, reverse)
    return outputs, (input_cache, loop_cache)


def gru_backward(doutputs, cache):
    """Gradients of the first six arguments from (dy, dh), either of them None for none."""
    input_cache, loop_cache = cache
    dfrom_input, (dh0,), dw_hidden, db_hidden = recurrence_backward(
        gru_cell_backward, doutputs, loop_cache
    )
    dx, dw_input, db_input = linear_backward(dfrom_input, input_cache)
    return dx, dh0, dw_input, dw_hidden, db_input, db_hidden


class GRU(Module):
    """A GRU with its own weights.

    Args:
        d_in, d_hidden: widths D_in of the inputs and D of the state.
        rng: NumPy generator for the weights.
        reverse: whether it reads from the end.
    """

    def __init__(self, d_in, d_hidden, rng, *, reverse=False):
        self.w_input = Parameter(input_weight(d_in, d_hidden, 3, rng))
        self.w_hidden = Parameter(hidden_weight(d_hidden, 3, rng))
        self.b_input = Parameter(np.zeros(3 * d_hidden, dtype=np.float32))
        self.b_hidden = Parameter(np.zeros(3 * d_hidden, dtype=np.float32))
        self.reverse = reverse

    def forward(self, x, h=None, mask=None):
        """(y, h) and the cache; the first state is zeros unless it is given."""
        h = first_state(x, len(self.w_hidden.data)) if h is None else h
        w = (self.w_input.data, self.w_hidden.data, self.b_input.data, self.b_hidden.data)
        return gru(x, h, *w, mask, self.reverse)

    def backward(self, doutputs, cache):
        """Gradients dx and dh from (dy, dh), either of them None for none."""
        dx, dh, dw_input, dw_hidden, db_input, db_hidden = gru_backward(doutputs, cache)
        self.w_input.grad += dw_input
        self.w_hidden.grad += dw_hidden
        self.b_input.grad += db_input
        self.b_hidden.grad += db_hidden
        return dx, dh
