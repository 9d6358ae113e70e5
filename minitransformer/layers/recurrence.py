"""A cell taken through time, step after step: what all recurrent layers have in common.

    a_t = x_t W + b                       from the input, for all t at once
    u_t = h_{t−1} U + b′                  from the state, one step at a time
    s_t = cell(a_t, u_t, s_{t−1})         where there is a token
    s_t = s_{t−1}                         where there is padding

The state s begins with h, which the layer shows, y_t = h_t; an LSTM has a second part, which it
keeps to itself. As padding leaves the state alone, the last state is that of the last token, and
padding before the first token changes nothing either. y is 0 at padding.

Derivation (backpropagation through time; Werbos 1990). s_t is used twice: h_t in y_t, s_t in the
next step. So its gradient is a sum, and the steps are taken from the last to the first:

    dh_t += dy_t
    da_t, du_t, ds_{t−1} = cell_backward(ds_t)
    dh_{t−1} += du_t Uᵀ

At padding the whole ds_t goes to s_{t−1}, and da_t = du_t = 0. U and b′ serve every step:

    dU = Σ_t h_{t−1}ᵀ du_t        db′ = Σ_t column sums of du_t

W and U may hold several matrices side by side, one for each of a cell's G gates. So a step has one
small GEMM each way. The large ones, all a_t before the loop, dW and dU after it, are one GEMM each.
"""

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.layers.linear import glorot_uniform, linear
from minitransformer.layers.masks import check_token_mask


def recurrence(cell, from_input, state, w_hidden, b_hidden, mask, reverse):
    """All states of a cell over a padded batch.

    Args:
        cell: ``cell(a, u, *state) -> (state, cache)``, with a and u (B, G·D).
        from_input: the a of all steps, (B, T, G·D), T at least 1.
        state: the first state, a tuple of arrays (B, D), h the first of them.
        w_hidden: U, (D, G·D).
        b_hidden: b′, (G·D,) or None.
        mask: boolean, (B, T), True at tokens; None where all are.
        reverse: whether to begin at the end, t = T − 1.

    Returns:
        y (B, T, D) and the parts of the last state, (B, D) each, as one tuple; and the cache.

    Raises:
        TypeError, ValueError: the mask is not boolean, or not (B, T); or T is 0.
    """
    check_token_mask(mask, from_input.shape[:2])
    xp = array_namespace(from_input)
    length = from_input.shape[1]
    if not length:
        raise ValueError(
            f"a batch of shape {from_input.shape[:2]} has no steps; give sequences of at least one"
        )
    steps = range(length)[::-1] if reverse else range(length)
    h_before, h_after, cell_caches = ([None] * length for _ in range(3))
    for t in steps:
        h_before[t] = state[0]
        from_state, _ = linear(state[0], w_hidden, b_hidden)  # (B, G·D)
        new_state, cell_caches[t] = cell(from_input[:, t], from_state, *state)
        state = _where_real(mask, t, new_state, state)
        h_after[t] = state[0]
    y = xp.stack(h_after, axis=1)  # (B, T, D)
    if mask is not None:
        y = xp.where(mask[:, :, None], y, 0)
    return (y, *state), (steps, h_before, cell_caches, w_hidden, b_hidden, mask)


def recurrence_backward(cell_backward, doutputs, cache):
    """Gradients dfrom_input (B, T, G·D), a tuple for the first state, dw_hidden and db_hidden.

    Args:
        cell_backward: ``cell_backward(dstate, cache) -> (da, du, *dstate)``.
        doutputs: dy (B, T, D) and those of the last state's parts, (B, D) each; None for an
            output that nothing was made of.
        cache: of :func:`recurrence`.
    """
    steps, h_before, cell_caches, w_hidden, b_hidden, mask = cache
    xp = array_namespace(w_hidden)
    dy, *dstate = doutputs
    dstate = tuple(xp.zeros_like(h_before[0]) if ds is None else ds for ds in dstate)
    if dy is not None and mask is not None:
        dy = xp.where(mask[:, :, None], dy, 0)
    w_hidden_t = xp.ascontiguousarray(w_hidden.T)  # (G·D, D): faster in a product, T times
    dfrom_input, dfrom_state = ([None] * len(steps) for _ in range(2))
    for t in reversed(steps):
        if dy is not None:
            dstate = (dstate[0] + dy[:, t], *dstate[1:])
        dnew_state = _where_real(mask, t, dstate, (0,) * len(dstate))
        dfrom_input[t], dfrom_state[t], dh, *dothers = cell_backward(dnew_state, cell_caches[t])
        dh = dh + dfrom_state[t] @ w_hidden_t  # (B, D)
        dstate = _where_real(mask, t, (dh, *dothers), dstate)
    h_before = xp.stack(h_before)  # (T, B, D)
    dfrom_state = xp.stack(dfrom_state)  # (T, B, G·D)
    db_hidden = None if b_hidden is None else dfrom_state.sum(axis=(0, 1))  # (G·D,)
    rows = dfrom_state.reshape(-1, dfrom_state.shape[-1])  # (T·B, G·D)
    dw_hidden = h_before.reshape(-1, len(w_hidden)).T @ rows  # (D, G·D)
    return xp.stack(dfrom_input, axis=1), dstate, dw_hidden, db_hidden


def _where_real(mask, t, at_tokens, at_padding):
    """Each of two tuples' arrays from the one or from the other, as the mask says for step t."""
    if mask is None:
        return at_tokens
    real = mask[:, t, None]  # (B, 1)
    xp = array_namespace(mask)
    return tuple(xp.where(real, x, y) for x, y in zip(at_tokens, at_padding, strict=True))


def first_state(x, d_hidden):
    """Zeros (B, D) for a batch x (B, T, D_in)."""
    return array_namespace(x).zeros((len(x), d_hidden), dtype=x.dtype)


def input_weight(d_in, d_hidden, gates, rng):
    """W (D_in, G·D): a matrix for each gate, drawn by :func:`glorot_uniform`."""
    return np.concatenate([glorot_uniform((d_in, d_hidden), rng) for _ in range(gates)], axis=1)


def hidden_weight(d_hidden, gates, rng):
    """U (D, G·D): for each gate a random orthogonal matrix, which keeps the length of the state.

    After Saxe, McClelland and Ganguli (2014): Q of the QR decomposition of normal draws, its
    columns turned so that R has a positive diagonal, which makes all directions equally likely.
    """
    drawn = []
    for _ in range(gates):
        q, r = np.linalg.qr(rng.standard_normal((d_hidden, d_hidden)))
        drawn.append(q * np.sign(np.diag(r)))
    return np.concatenate(drawn, axis=1).astype(np.float32)
