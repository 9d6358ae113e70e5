"""Solutions of lesson 19, recurrence."""

import numpy as np


def reach(backward, cache, shape):
    """dy is 0 but at the last step; where dx is not 0, something has arrived.

    A backward that cuts the sequence into pieces has another reach at other steps: a dy at the
    first step of a piece goes nowhere. That is truncated backpropagation through time.
    """
    dy = np.zeros(shape)
    dy[:, -1] = 1
    dx = backward(dy, cache)[0]
    arrived = np.flatnonzero((dx != 0).any(axis=(0, 2)))  # steps, from 0
    return shape[1] - 1 - arrived.min()


def gated_norm(eigenvalues, z, k):
    """∂h_t/∂h_{t−1} = z I + (1 − z) Uᵀ has U's eigenvectors, with the eigenvalues z + (1 − z) λ.

    A gate near 1 brings them all near 1, those that vanish and those that explode. And the sign
    matters: with z = 1/2, λ = −1 becomes 0, a direction that is forgotten in one step.
    """
    return np.abs(z + (1 - z) * np.asarray(eigenvalues)).max() ** k


def _sigmoid(x):
    return (1 + np.tanh(x / 2)) / 2


def coupled_cell(a, c):
    a_f, a_g, a_o = np.split(a, 3, axis=1)  # (B, D) each
    f, g, o = _sigmoid(a_f), np.tanh(a_g), _sigmoid(a_o)
    shown = np.tanh(f * c + (1 - f) * g)
    return np.concatenate([o * shown, f * c + (1 - f) * g], axis=1), (c, f, g, o, shown)


def coupled_cell_backward(dstate, cache):
    """f stands in f c and in (1 − f) g, so df = dc_new (c − g).

    With it the memory is an average of all that it was given: it cannot grow, as an LSTM's can.
    """
    c, f, g, o, shown = cache
    dh, dc_new = np.split(dstate, 2, axis=1)
    dc_new = dc_new + dh * o * (1 - shown**2)
    da_f = dc_new * (c - g) * f * (1 - f)
    da_g = dc_new * (1 - f) * (1 - g**2)
    da_o = dh * shown * o * (1 - o)
    return np.concatenate([da_f, da_g, da_o], axis=1), dc_new * f


def one_gate(x, h0, w_input, w_hidden, bias, mask):
    h, states, steps = h0, [], []
    for t in range(x.shape[1]):
        a_f, a_n = np.split(x[:, t] @ w_input + h @ w_hidden + bias, 2, axis=1)
        f, n = _sigmoid(a_f), np.tanh(a_n)
        steps.append((h, f, n))
        h = np.where(mask[:, t, None], f * h + (1 - f) * n, h)
        states.append(h)
    y = np.stack(states, axis=1) * mask[:, :, None]  # (B, T, D)
    return y, (x, steps, w_input, w_hidden, mask)


def one_gate_backward(dy, cache):
    """From h_t to h_{t−1}: along f, through U_f, through U_n; and past padding as it is."""
    x, steps, w_input, w_hidden, mask = cache
    dx = np.zeros_like(x)
    dw_input, dw_hidden = np.zeros_like(w_input), np.zeros_like(w_hidden)
    dbias = np.zeros(w_hidden.shape[1])
    dh = np.zeros_like(steps[0][0])
    for t in reversed(range(x.shape[1])):
        h, f, n = steps[t]
        real = mask[:, t, None]
        dnew = np.where(real, dh + dy[:, t], 0)  # of h_t, where it is new
        da_f = dnew * (h - n) * f * (1 - f)
        da_n = dnew * (1 - f) * (1 - n**2)
        da = np.concatenate([da_f, da_n], axis=1)  # (B, 2D), 0 at padding
        dx[:, t] = da @ w_input.T
        dw_input += x[:, t].T @ da
        dw_hidden += h.T @ da
        dbias += da.sum(axis=0)
        dh = np.where(real, dnew * f + da @ w_hidden.T, dh)
    return dx, dh, dw_input, dw_hidden, dbias
