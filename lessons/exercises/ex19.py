"""Exercises of lesson 19, recurrence. Check yours:  minitransformer check ex19

Shapes: B batch, T steps, D width of the state. σ is the logistic function, 1 / (1 + exp(−x)).
"""

import numpy as np


def reach(backward, cache, shape):
    """10 min. How many steps back a backward carries the gradient of the last step.

    A backward through time may be cut off, on purpose or by mistake. Find out, by calling it.

    Args:
        backward: ``backward(dy, cache)`` returns a tuple, whose first entry is dx (B, T, D_in).
        cache: what it needs; no step of the batch is padding.
        shape: that of dy, (B, T, D).

    Returns:
        the largest k for which dy of the last step T has an effect on dx of step T − k. It is 0 if
        only dx of step T itself gets anything, and T − 1 if nothing is cut off.

    Hint: which dy do you hand over? From one that is nowhere 0, each dx gets something by itself.
    """
    raise NotImplementedError


def gated_norm(eigenvalues, z, k):
    """25 min. ‖∂h_T/∂h_{T−k}‖ of a cell with a gate that does not move.

        h_t = z h_{t−1} + (1 − z) tanh(x_t W + h_{t−1} U)

    U is symmetric, so U = Q diag(λ) Qᵀ with an orthogonal Q. What is inside the tanh is near 0, so
    that its derivative is 1. The norm of a symmetric matrix is its largest |eigenvalue|.

    Args:
        eigenvalues: those of U, λ, (D,); they may be negative.
        z: a number between 0 and 1.
        k: number of steps, 0 or more.

    Returns:
        the norm, a number.

    Hint: what does the matrix ∂h_t/∂h_{t−1} do to an eigenvector of U?
    """
    raise NotImplementedError


def coupled_cell(a, c):
    """45 min, with its backward. A step of an LSTM that takes in as much as it forgets.

        f = σ(a_f)      g = tanh(a_g)      o = σ(a_o)
        c_new = f c + (1 − f) g            h = o tanh(c_new)

    Args:
        a: [a_f a_g a_o], side by side, (B, 3D).
        c: the memory before, (B, D).

    Returns:
        [h c_new], side by side, (B, 2D), and a tuple, the cache.
    """
    raise NotImplementedError


def coupled_cell_backward(dstate, cache):
    """Gradients da (B, 3D) and dc (B, D), from dstate (B, 2D).

    Hint: c_new is used twice. So is f.
    """
    raise NotImplementedError


def one_gate(x, h0, w_input, w_hidden, bias, mask):
    """90 min, with its backward. A whole recurrent layer, with one gate, over a padded batch.

        f_t = σ(x_t W_f + h_{t−1} U_f + b_f)
        n_t = tanh(x_t W_n + h_{t−1} U_n + b_n)
        h_t = f_t h_{t−1} + (1 − f_t) n_t     and y_t = h_t, at tokens
        h_t = h_{t−1}                         and y_t = 0,   at padding, which may be anywhere

    Args:
        x: (B, T, D_in).
        h0: the first state, (B, D).
        w_input: [W_f W_n], (D_in, 2D).
        w_hidden: [U_f U_n], (D, 2D).
        bias: [b_f b_n], (2D,).
        mask: boolean (B, T), True at tokens.

    Returns:
        y (B, T, D) and a tuple, the cache.
    """
    raise NotImplementedError


def one_gate_backward(dy, cache):
    """Gradients dx (B, T, D_in), dh0 (B, D), dw_input, dw_hidden, dbias; dy may be anything.

    Hint: write the backward of one step first. Three ways lead from h_t back to h_{t−1}, and at
    padding a fourth.
    """
    raise NotImplementedError
