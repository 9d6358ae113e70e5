"""Recurrent cells, one step and over time, with masks and from state to state.

x is (B, T, D), a state (B, H), and y the state after each step, (B, T, H).
"""

import numpy as np

from battery.activations import sigma
from battery.table import Right, normal, positive, slipped

PAIRS = []


def rnn(x, h, w, u, b):
    states = [h]
    for t in range(x.shape[1]):
        states.append(np.tanh(x[:, t] @ w + states[-1] @ u + b))
    return np.stack(states[1:], axis=1), (x, states, w, u)


def rnn_backward(dy, cache):
    x, states, w, u = cache
    dx, dw, du, db = np.zeros_like(x), np.zeros_like(w), np.zeros_like(u), np.zeros(len(u))
    dh = np.zeros_like(states[0])
    for t in reversed(range(x.shape[1])):
        dh = dh + dy[:, t]
        dz = dh * (1 - states[t + 1] ** 2)
        dx[:, t] = dz @ w.T
        dw += x[:, t].T @ dz
        du += states[t].T @ dz
        db += dz.sum(0)
        dh = dz @ u.T
    return dx, dh, dw, du, db


RNN = Right("rnn", rnn, rnn_backward, normal((2, 5, 3), (2, 4), (3, 4), (4, 4), (4,)))
SQUARE_RNN = Right("rnn, all sizes 4", rnn, rnn_backward,
                   normal((4, 4, 4), (4, 4), (4, 4), (4, 4), (4,)))
ALL = "dx dh dw du db"
PAIRS += RNN.with_slips(
    ({"dh = dz @ u.T": "dh = 0 * dh"}, ALL, "carry forgotten", "no gradient from step to step",
     "what is carried from step to step through `states[-1]` in `states[-1] @ u`"),
    ({"dh = dh + dy[:, t]": "dh = dy[:, t]"}, "dx dw du db dh", "carry forgotten",
     "dh is overwritten by dy"),
    ({"dh = dh + dy[:, t]": "dh = dh + dy[:, -1] * (t + 1 == x.shape[1])"}, ALL, "last step only",
     "dy of the last step only"),
    ({"reversed(range(x.shape[1]))": "reversed(range(1, x.shape[1]))"}, ALL, "first step left out",
     "the loop ends at step 1", "is missing at the first of 5 times"),
    ({"dw += x": "dw = x"}, "dw", "first step only", "dw is overwritten at each step",
     "or overwritten, = for +="),
    ({"du += states[t]": "du += states[t + 1]"}, "du", "shifted",
     "the state after the step, not before"),
    ({"states[t + 1] ** 2": "states[t] ** 2"}, ALL, "shifted", "tanh′ of the state before"),
    ({" ** 2": ""}, ALL, "power wrong", "1 − h for 1 − h²"),
    ({" * (1 - states[t + 1] ** 2)": ""}, ALL, "derivative left out", "tanh is passed over"),
    ({"return dx, dh,": "return dx, None,"}, "dh", "gradient left out", "the first state has none"),
    ({"reversed(range(x.shape[1]))": "range(x.shape[1])"}, ALL, "time order",
     "the loop runs forwards"),
    ({"db += dz.sum(0)": "db += dz[0]"}, "db", "one row only", "db of the first sentence only"),
)
PAIRS += SQUARE_RNN.with_slips(
    ({"dz @ u.T": "dz @ u"}, ALL, "transposed", "u is not transposed"),
    ({"states[t].T @ dz": "states[t].T @ dz / 4"}, "du", "factor of the batch",
     "du by the batch size"),
)


def last_state(x, u):
    """Only the state after the last step goes on."""
    h = np.zeros(x[:, 0].shape, x.dtype)
    states = [h]
    for t in range(x.shape[1]):
        states.append(np.tanh(x[:, t] + states[-1] @ u))
    return states[-1], (states, u)


def last_state_backward(dy, cache):
    states, u = cache
    dx, du = [], 0
    dh = dy
    for h, before in zip(reversed(states[1:]), reversed(states[:-1]), strict=True):
        dz = dh * (1 - h * h)
        dx.append(dz)
        du = du + before.T @ dz
        dh = dz @ u.T
    return np.stack(dx[::-1], axis=1), du


LAST = Right("rnn, last state", last_state, last_state_backward, normal((3, 4, 2), (2, 2)))
PAIRS += LAST.with_slips(
    ({"dx[::-1]": "dx"}, "dx", "time order", "dx is not turned round"),
    ({"dh = dz @ u.T": "dh = dz"}, "dx du", "matrix forgotten", "u is forgotten on the way back"),
    ({"du = du + before": "du = before"}, "du", "first step only", "du is overwritten"),
    ({"dx.append(dz)": "dx.append(dz * (len(dx) == 0))"}, "dx", "last step only",
     "dx of the last step only"),
    ({"dh = dz @ u.T": "dh = dy"}, "dx du", "carry wrong", "each step starts from dy again"),
)


def masked_rnn(x, u, mask):
    """Where the mask (B, T) is False, at padding, the state stays as it is."""
    states, h = [], np.zeros(x[:, 0].shape, x.dtype)
    for t in range(x.shape[1]):
        new = np.tanh(x[:, t] + h @ u)
        states.append((h, new))
        h = np.where(mask[:, t, None], new, h)
    return h, (states, u, mask)


def masked_rnn_backward(dy, cache):
    states, u, mask = cache
    dx, du, dh = [], 0, dy
    for t, (h, new) in reversed(list(enumerate(states))):
        real = mask[:, t, None]
        dz = dh * real * (1 - new * new)
        dx.insert(0, dz)
        du = du + h.T @ dz
        dh = dz @ u.T + dh * ~real
    return np.stack(dx, axis=1), du


PADDED = normal((3, 4, 2), (2, 2), beside=[np.arange(4) < np.array([[4], [2], [3]])])
PAIRS += Right("rnn with padding", masked_rnn, masked_rnn_backward, PADDED).with_slips(
    ({"dh * real *": "dh *"}, "dx du", "mask missing",  "padding is taken for words"),
    ({" + dh * ~real": ""},   "dx du", "path missing",  "the state that stays has no gradient"),
    ({"~real": "real"},       "dx du", "mask inverted", "the mask is inverted in one place"),
)


def gru_cell(x, h, w, u):
    """Update gate z, reset gate r and candidate n; w (3, D, H), u (3, H, H)."""
    z = sigma(x @ w[0] + h @ u[0])
    r = sigma(x @ w[1] + h @ u[1])
    n = np.tanh(x @ w[2] + r * h @ u[2])
    return (1 - z) * n + z * h, (x, h, w, u, z, r, n)


def gru_cell_backward(dy, cache):
    x, h, w, u, z, r, n = cache
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (h - n) * z * (1 - z)
    drh = dn @ u[2].T
    dr = drh * h * r * (1 - r)
    dgates = dz, dr, dn
    dx = sum(d @ w[i].T for i, d in enumerate(dgates))
    dh = dy * z + dz @ u[0].T + dr @ u[1].T + drh * r
    dw = np.stack([x.T @ d for d in dgates])
    du = np.stack([h.T @ dz, h.T @ dr, (r * h).T @ dn])
    return dx, dh, dw, du


GRU = Right("gru cell", gru_cell, gru_cell_backward, normal((3, 5), (3, 4), (3, 5, 4), (3, 4, 4)))
PAIRS += GRU.with_slips(
    ({"dy * z + ": ""}, "dh", "path missing", "the path of z h is missing",
     "the path through `h` in `z * h`"),
    ({" + drh * r": ""}, "dh", "path missing", "the path through the candidate is missing"),
    ({" + dr @ u[1].T": ""}, "dh", "path missing", "the path through the reset gate is missing"),
    ({"(h - n)": "h"}, "dx dh dw du", "term missing", "−n is forgotten in dz"),
    ({"(h - n)": "(n - h)"}, "dx dh dw du", "sign in a gate", "n − h in the update gate"),
    ({"(r * h).T @ dn": "h.T @ dn"}, "du", "gate left out",
     "r is forgotten in du of the candidate"),
    ({"drh * r": "drh"}, "dh", "gate left out", "r is forgotten in dh"),
    ({"dgates = dz, dr, dn": "dgates = dr, dz, dn"}, "dx dw", "gates exchanged",
     "z and r are exchanged"),
    ({" * z * (1 - z)": ""}, "dx dh dw du", "gate derivative", "σ′ of the update gate is left out"),
    ({"(1 - n * n)": "(1 - n)"}, "dx dh dw du", "gate derivative", "1 − n for 1 − n²"),
    ({"dr = drh * h *": "dr = 0 * drh * h *"}, "dx dh dw du", "gate left out",
     "the reset gate has no gradient"),
)


def gru(x, h, w, u):
    caches, states = [], []
    for t in range(x.shape[1]):
        h, cache = gru_cell(x[:, t], h, w, u)
        caches.append(cache)
        states.append(h)
    return np.stack(states, axis=1), caches


def gru_backward(dy, caches):
    dx, dw, du = [], 0, 0
    dh = 0 * dy[:, 0]
    for t in reversed(range(len(caches))):
        dx_t, dh, dw_t, du_t = gru_cell_backward(dy[:, t] + dh, caches[t])
        dx.insert(0, dx_t)
        dw, du = dw + dw_t, du + du_t
    return np.stack(dx, axis=1), dh, dw, du


GRU_TIME = Right("gru", gru, gru_backward, normal((2, 4, 3), (2, 2), (3, 3, 2), (3, 2, 2)))
PAIRS += GRU_TIME.with_slips(
    ({"dy[:, t] + dh,": "dy[:, t],"}, "dx dh dw du", "carry forgotten", "dh is not carried back"),
    ({"dy[:, t] + dh,": "dh + (t == len(caches) - 1) * dy[:, t],"}, "dx dh dw du", "last step only",
     "dy of the last step only"),
    ({"dw, du = dw + dw_t, du + du_t": "dw, du = dw_t, du_t"}, "dw du", "first step only",
     "dw and du are overwritten"),
    ({"dw, du = dw + dw_t, du + du_t": "dw, du = (dw + dw_t, du + du_t) if t else (dw, du)"},
     "dw du", "first step left out", "dw and du without the first step"),
    ({"caches[t]": "caches[-1]"}, "dx dh dw du", "stale cache", "the last step's cache for all"),
)


def lstm_cell(x, h, c, w, u, b):
    """Gates i, f, o and candidate g side by side in w (D, 4H), u (H, 4H), b (4H,)."""
    i, f, o, g = np.split(x @ w + h @ u + b, 4, axis=-1)
    i, f, o, g = sigma(i), sigma(f), sigma(o), np.tanh(g)
    new_c = f * c + i * g
    return o * np.tanh(new_c), new_c, (x, h, c, w, u, i, f, o, g, new_c)


def lstm_cell_backward(dh, dc, cache):
    x, h, c, w, u, i, f, o, g, new_c = cache
    tanh_c = np.tanh(new_c)
    dc = dc + dh * o * (1 - tanh_c**2)
    do = dh * tanh_c * o * (1 - o)
    di = dc * g * i * (1 - i)
    df = dc * c * f * (1 - f)
    dg = dc * i * (1 - g * g)
    dz = np.concatenate([di, df, do, dg], axis=-1)
    return dz @ w.T, dz @ u.T, dc * f, x.T @ dz, h.T @ dz, dz.sum(0)


def lstm_step(x, h, c, w, u, b):
    """One step; y is both new states side by side."""
    h, c, cache = lstm_cell(x, h, c, w, u, b)
    return np.concatenate([h, c], axis=-1), cache


def lstm_step_backward(dy, cache):
    dh, dc = np.split(dy, 2, axis=-1)
    return lstm_cell_backward(dh, dc, cache)


def lstm_with(changes):
    """The cell's backward with a slip, as a backward of one step."""
    cell_backward = slipped_cell(changes)
    return lambda dy, cache: cell_backward(*np.split(dy, 2, axis=-1), cache)


def slipped_cell(changes):
    return slipped(lstm_cell_backward, changes)


LSTM_SHAPES = (3, 5), (3, 2), (3, 2), (5, 8), (2, 8), (8,)
GATES = "dx dh dw du db"
PAIRS += Right("lstm cell", lstm_step, lstm_step_backward, normal(*LSTM_SHAPES)).with_slips(
    (lstm_with({"dc = dc + dh": "dc = dh"}), "dc " + GATES, "carry forgotten",
     "dc from above is forgotten"),
    (lstm_with({" + dh * o * (1 - tanh_c**2)": ""}), "dc " + GATES, "path missing",
     "h's path to c is missing"),
    (lstm_with({"tanh_c**2": "new_c**2"}), "dc " + GATES, "derivative at x",
     "1 − c² for 1 − tanh² c"),
    (lstm_with({"dc * f,": "dc,"}), "dc", "gate left out", "the forget gate is left out of dc"),
    (lstm_with({"dh * tanh_c * o": "dh * new_c * o"}), GATES, "gate derivative",
     "c for tanh c in the output gate"),
    (lstm_with({"df = dc * c *": "df = dc * new_c *"}), GATES, "gate derivative",
     "the new c for the old in the forget gate"),
    (lstm_with({"[di, df, do, dg]": "[df, di, do, dg]"}), GATES, "gates exchanged",
     "i and f are exchanged"),
    (lstm_with({"(1 - g * g)": "g * (1 - g)"}), GATES, "gate derivative",
     "σ′ for the candidate's tanh′"),
    (lstm_with({"df = dc * c * f * (1 - f)": "df = 0 * dc"}), GATES, "gate left out",
     "the forget gate has no gradient"),
    (lstm_with({"* o * (1 - o)": "* (1 - o)"}), GATES, "gate derivative", "o (1 − o) without o"),
)


def lstm(x, h, c, w, u, b):
    caches, states = [], []
    for t in range(x.shape[1]):
        h, c, cache = lstm_cell(x[:, t], h, c, w, u, b)
        caches.append(cache)
        states.append(h)
    return np.stack(states, axis=1), caches


def lstm_backward(dy, caches):
    dx, dw, du, db = [], 0, 0, 0
    dh = dc = 0 * dy[:, 0]
    for t in reversed(range(len(caches))):
        dx_t, dh, dc, dw_t, du_t, db_t = lstm_cell_backward(dy[:, t] + dh, dc, caches[t])
        dx.insert(0, dx_t)
        dw, du, db = dw + dw_t, du + du_t, db + db_t
    return np.stack(dx, axis=1), dh, dc, dw, du, db


LSTM = Right("lstm", lstm, lstm_backward, normal((2, 4, 3), (2, 2), (2, 2), (3, 8), (2, 8), (8,)))
STATES = "dx dh dc dw du db"
PAIRS += LSTM.with_slips(
    ({"dy[:, t] + dh, dc,": "dy[:, t] + dh, 0 * dc,"}, STATES, "carry forgotten",
     "dc is not carried back"),
    ({"dy[:, t] + dh,": "dy[:, t],"}, STATES, "carry forgotten", "dh is not carried back"),
    ({"dh, dc, dw, du, db\n": "dc, dh, dw, du, db\n"}, "dh dc", "exchanged",
     "dh and dc are exchanged"),
    ({"range(len(caches))": "[3]", "np.stack(dx,": "np.stack([0 * dx[0]] * 3 + dx,"}, STATES,
     "last step only", "only the last step is gone back"),
    ({"db + db_t\n": "db_t\n"}, "db", "first step only", "db is overwritten"),
)


def decay(x, a):
    """s_t = a s_{t−1} + x_t, with a decay for each feature."""
    states, s = [], 0 * x[:, 0]
    for t in range(x.shape[1]):
        states.append(s)
        s = a * s + x[:, t]
    return np.stack([*states[1:], s], axis=1), (a, np.stack(states, axis=1))


def decay_backward(dy, cache):
    a, before = cache
    ds, dx = 0 * dy[:, 0], np.empty_like(dy)
    for t in reversed(range(dy.shape[1])):
        dx[:, t] = ds = dy[:, t] + a * ds
    return dx, (dx * before).sum((0, 1))


PAIRS += Right("linear recurrence", decay, decay_backward, positive((2, 5, 3), (3,))).with_slips(
    ({"a * ds": "ds"}, "dx da", "factor between steps", "a is forgotten on the way back",
     "what is carried from step to step through `s` in `a * s` (line"),
    ({"(dx * before)": "(dy * before)"}, "da", "carry forgotten", "dy for ds in da"),
    ({"reversed(range(dy.shape[1]))": "range(dy.shape[1])"}, "dx da", "time order",
     "the loop runs forwards"),
    ({".sum((0, 1))": "[:, -1].sum(0)"}, "da", "last step only", "da of the last step only",
     "at the last of 4 times only: are the others left out"),
)
