"""Recurrent cells, one step and over time, with masks and from state to state.

x is (B, T, D), a state (B, H), and y the state after each step, (B, T, H).
"""

import numpy as np

from battery.activations import sigma
from battery.table import normal, positive, right

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


RNN = right("rnn", rnn, normal((2, 5, 3), (2, 4), (3, 4), (4, 4), (4,)))
PAIRS += RNN.with_slips(
    ({"dh = dz @ u.T": "dh = 0 * dh"}, "carry forgotten",
     "what is carried from step to step through `states[-1]` in `states[-1] @ u`"),
    ({"dh = dh + dy[:, t]": "dh = dy[:, t]"}, "carry forgotten"),
    ({"dh = dh + dy[:, t]": "dh = dh + dy[:, -1] * (t + 1 == x.shape[1])"}, "last step only"),
    ({"reversed(range(x.shape[1]))": "reversed(range(1, x.shape[1]))"}, "first step left out",
     "is missing at the first of 5 times"),
    ({"dw += x": "dw = x"}, "first step only", "or overwritten, = for +="),
    ({"du += states[t]": "du += states[t + 1]"}, "shifted"),
    ({"states[t + 1] ** 2": "states[t] ** 2"}, "shifted"),
    ({" ** 2": ""}, "power wrong"),
    ({" * (1 - states[t + 1] ** 2)": ""}, "derivative left out"),
    ({"return dx, dh,": "return dx, None,"}, "gradient left out"),
    ({"reversed(range(x.shape[1]))": "range(x.shape[1])"}, "time order"),
)
PAIRS += right("rnn, all sizes 4", rnn, normal((4, 4, 4), (4, 4), (4, 4), (4, 4), (4,))).with_slips(
    ({"dz @ u.T": "dz @ u"}, "transposed"),
    ({"states[t].T @ dz": "states[t].T @ dz / 4"}, "factor of the batch"),
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


PAIRS += right("rnn, last state", last_state, normal((3, 4, 2), (2, 2))).with_slips(
    ({"dx[::-1]": "dx"}, "time order"),
    ({"dh = dz @ u.T": "dh = dz"}, "matrix forgotten"),
    ({"du = du + before": "du = before"}, "first step only"),
    ({"dx.append(dz)": "dx.append(dz * (len(dx) == 0))"}, "last step only"),
    ({"dh = dz @ u.T": "dh = dy"}, "carry wrong"),
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
PAIRS += right("rnn with padding", masked_rnn, PADDED).with_slips(
    ({"dh * real *": "dh *"}, "mask missing"),
    ({" + dh * ~real": ""}, "path missing"),
    ({"~real": "real"}, "mask inverted"),
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


PAIRS += right("gru cell", gru_cell, normal((3, 5), (3, 4), (3, 5, 4), (3, 4, 4))).with_slips(
    ({"dy * z + ": ""}, "path missing", "the path through `h` in `z * h`"),
    ({" + dr @ u[1].T": ""}, "path missing"),
    ({"(h - n)": "h"}, "term missing"),
    ({"(h - n)": "(n - h)"}, "sign in a gate"),
    ({"(r * h).T @ dn": "h.T @ dn"}, "gate left out"),
    ({"drh * r": "drh"}, "gate left out"),
    ({"dgates = dz, dr, dn": "dgates = dr, dz, dn"}, "gates exchanged"),
    ({" * z * (1 - z)": ""}, "gate derivative"),
    ({"(1 - n * n)": "(1 - n)"}, "gate derivative"),
    ({"dr = drh * h *": "dr = 0 * drh * h *"}, "gate left out"),
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


PAIRS += right("gru", gru, normal((2, 4, 3), (2, 2), (3, 3, 2), (3, 2, 2))).with_slips(
    ({"dy[:, t] + dh,": "dy[:, t],"}, "carry forgotten"),
    ({"dw, du = dw + dw_t, du + du_t": "dw, du = dw_t, du_t"}, "first step only",
     "of its uses, step by step, only the first is there: is it overwritten"),
    ({"dw, du = dw + dw_t, du + du_t": "dw, du = (dw + dw_t, du + du_t) if t else (dw, du)"},
     "first step left out"),
    ({"caches[t]": "caches[-1]"}, "stale cache"),
)


def lstm_cell(x, h, c, w, u, b):
    """Gates i, f, o and candidate g side by side in w (D, 4H), u (H, 4H), b (4H,); y is (h, c)."""
    i, f, o, g = np.split(x @ w + h @ u + b, 4, axis=-1)
    i, f, o, g = sigma(i), sigma(f), sigma(o), np.tanh(g)
    new_c = f * c + i * g
    y = np.concatenate([o * np.tanh(new_c), new_c], axis=-1)
    return y, (x, h, c, w, u, i, f, o, g, new_c)


def lstm_cell_backward(dy, cache):
    dh, dc = np.split(dy, 2, axis=-1)
    x, h, c, w, u, i, f, o, g, new_c = cache
    tanh_c = np.tanh(new_c)
    dc = dc + dh * o * (1 - tanh_c**2)
    do = dh * tanh_c * o * (1 - o)
    di = dc * g * i * (1 - i)
    df = dc * c * f * (1 - f)
    dg = dc * i * (1 - g * g)
    dz = np.concatenate([di, df, do, dg], axis=-1)
    return dz @ w.T, dz @ u.T, dc * f, x.T @ dz, h.T @ dz, dz.sum(0)


CELL = right("lstm cell", lstm_cell, normal((3, 5), (3, 2), (3, 2), (5, 8), (2, 8), (8,)))
PAIRS += CELL.with_slips(
    ({"dc = dc + dh": "dc = dh"}, "carry forgotten"),
    ({" + dh * o * (1 - tanh_c**2)": ""}, "path missing"),
    ({"tanh_c**2": "new_c**2"}, "derivative at x"),
    ({"dc * f,": "dc,"}, "gate left out"),
    ({"dh * tanh_c * o": "dh * new_c * o"}, "gate derivative"),
    ({"df = dc * c *": "df = dc * new_c *"}, "gate derivative"),
    ({"[di, df, do, dg]": "[df, di, do, dg]"}, "gates exchanged"),
    ({"(1 - g * g)": "g * (1 - g)"}, "gate derivative"),
    ({"* o * (1 - o)": "* (1 - o)"}, "gate derivative"),
)


def lstm(x, h, c, w, u, b):
    caches, states = [], []
    for t in range(x.shape[1]):
        y, cache = lstm_cell(x[:, t], h, c, w, u, b)
        h, c = np.split(y, 2, axis=-1)
        caches.append(cache)
        states.append(h)
    return np.stack(states, axis=1), caches


def lstm_backward(dy, caches):
    dx, dw, du, db = [], 0, 0, 0
    dh = dc = 0 * dy[:, 0]
    for t in reversed(range(len(caches))):
        step = np.concatenate([dy[:, t] + dh, dc], axis=-1)
        dx_t, dh, dc, dw_t, du_t, db_t = lstm_cell_backward(step, caches[t])
        dx.insert(0, dx_t)
        dw, du, db = dw + dw_t, du + du_t, db + db_t
    return np.stack(dx, axis=1), dh, dc, dw, du, db


PAIRS += right("lstm", lstm, normal((2, 4, 3), (2, 2), (2, 2), (3, 8), (2, 8), (8,))).with_slips(
    ({"dy[:, t] + dh, dc]": "dy[:, t] + dh, 0 * dc]"}, "carry forgotten"),
    ({"dy[:, t] + dh,": "dy[:, t],"}, "carry forgotten"),
    ({"dh, dc, dw, du, db\n": "dc, dh, dw, du, db\n"}, "exchanged"),
    ({"range(len(caches))": "[3]", "np.stack(dx,": "np.stack([0 * dx[0]] * 3 + dx,"},
     "last step only"),
    ({"db + db_t\n": "db_t\n"}, "first step only"),
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


PAIRS += right("linear recurrence", decay, positive((2, 5, 3), (3,))).with_slips(
    ({"a * ds": "ds"}, "factor between steps",
     "what is carried from step to step through `s` in `a * s` (line"),
    ({"(dx * before)": "(dy * before)"}, "carry forgotten"),
    ({"reversed(range(dy.shape[1]))": "range(dy.shape[1])"}, "time order"),
    ({".sum((0, 1))": "[:, -1].sum(0)"}, "last step only",
     "at the last of 4 times only: are the others left out"),
)
