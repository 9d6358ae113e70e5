"""Attention: scaled, masked, additive, bilinear, local, linear, and with several heads."""

import math

import numpy as np

from battery.softmaxes import softmax, softmax_backward
from battery.table import normal, right

PAIRS = []


def attention(q, k, v):
    """q (B, T, K), k and v (B, S, K)."""
    p, _ = softmax(q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1]))
    return p @ v, (q, k, v, p)


def attention_backward(dy, cache):
    q, k, v, p = cache
    dv = p.swapaxes(1, 2) @ dy
    dp = dy @ v.swapaxes(1, 2)
    dz = softmax_backward(dp, p) / math.sqrt(q.shape[-1])
    return dz @ k, dz.swapaxes(1, 2) @ q, dv


PAIRS += right("attention", attention, normal((2, 3, 6), (2, 5, 6), (2, 5, 6))).with_slips(
    ({" / math.sqrt(q.shape[-1])": ""}, "factor of a root",
     "it is 2.44949 times too large: 2.44949 is √6, the root of the width d"),
    ({"softmax_backward(dp, p)": "dp"}, "derivative left out"),
    ({"softmax_backward(dp, p)": "p * dp"}, "sum term missing"),
    ({"p.swapaxes(1, 2) @ dy": "(q @ k.swapaxes(1, 2)).swapaxes(1, 2) @ dy"},
     "input before activation"),
    ({"dz.swapaxes(1, 2) @ q": "dz.swapaxes(1, 2) @ q / q.shape[1]"}, "factor of a size",
     "it is 3 times too small: 3 is the length"),
)
PAIRS += right("attention, all sizes 4", attention, normal(*[(4, 4, 4)] * 3)).with_slips(
    ({"p.swapaxes(1, 2) @ dy": "p @ dy"}, "transposed", "has to be transposed, or must not be"),
    ({"dz.swapaxes(1, 2) @ q": "dz @ q"}, "transposed"),
    ({"dz @ k,": "dz @ v,"}, "cache of the other"),
    ({" / math.sqrt(q.shape[-1])": ""}, "factor of a root"),
)
PAIRS += right("attention of width 16", attention, normal(*[(2, 4, 16)] * 3)).with_slips(
    ({"math.sqrt(q.shape[-1])": "q.shape[-1]"}, "factor of a root"),
    ({"softmax_backward(dp, p) /": "softmax_backward(dp, p) / len(p) /"}, "factor of the batch"),
)


def self_attention(x, w_q, w_k, w_v):
    """x is used three times; nobody sees the future."""
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    future = np.triu(np.ones((x.shape[1], x.shape[1]), bool), 1)
    p, _ = softmax(np.where(future, -1e30, q @ k.swapaxes(1, 2)))
    return p @ v, (x, w_q, w_k, w_v, (q, k, v, p))


def self_attention_backward(dy, cache):
    x, w_q, w_k, w_v, (q, k, v, p) = cache
    dv = p.swapaxes(1, 2) @ dy
    dz = softmax_backward(dy @ v.swapaxes(1, 2), p)
    dq, dk = dz @ k, dz.swapaxes(1, 2) @ q
    dx = dq @ w_q.T + dk @ w_k.T + dv @ w_v.T
    dw_q, dw_k, dw_v = (np.einsum("btd,btk->dk", x, d) for d in (dq, dk, dv))
    return dx, dw_q, dw_k, dw_v


SELF = right("causal self-attention", self_attention, normal((2, 4, 3), (3, 5), (3, 5), (3, 5)))
PAIRS += SELF.with_slips(
    ({" + dv @ w_v.T": ""}, "path missing"),
    ({"dq @ w_q.T + dk @ w_k.T + ": ""}, "path missing"),
    ({"v.swapaxes(1, 2), p)": "v.swapaxes(1, 2), softmax(q @ k.swapaxes(1, 2))[0])"},
     "mask missing"),
    ({"(dq, dk, dv)": "(dk, dq, dv)"}, "exchanged"),
    ({"dk @ w_k.T": "dk @ w_q.T"}, "cache of the other"),
)


def multi_head(x, w, w_o):
    """Two heads of width 3; w (D, 18) makes queries, keys and values."""
    q, k, v = (heads(part) for part in np.split(x @ w, 3, axis=-1))
    p, _ = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(3))
    h = merged(p @ v)
    return h @ w_o, (x, w, w_o, q, k, v, p, h)


def multi_head_backward(dy, cache):
    x, w, w_o, q, k, v, p, h = cache
    dh = heads(dy @ w_o.T)
    dv = p.swapaxes(-1, -2) @ dh
    dz = softmax_backward(dh @ v.swapaxes(-1, -2), p) / math.sqrt(3)
    dq, dk = dz @ k, dz.swapaxes(-1, -2) @ q
    dqkv = np.concatenate([merged(dq), merged(dk), merged(dv)], axis=-1)
    dw_o = np.einsum("btd,bte->de", h, dy)
    return dqkv @ w.T, np.einsum("btd,bte->de", x, dqkv), dw_o


def heads(x):
    batch, length, width = x.shape
    return x.reshape(batch, length, 2, width // 2).swapaxes(1, 2)


def merged(x):
    batch, _, length, _ = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, -1)


PAIRS += right("two heads", multi_head, normal((2, 4, 5), (5, 18), (6, 5))).with_slips(
    ({"math.sqrt(3)": "math.sqrt(6)"}, "factor in a part"),
    ({"merged(dv)]": "dv.reshape(2, 4, 6)]"}, "order wrong"),
    ({"merged(dq), merged(dk)": "merged(dk), merged(dq)"}, "halves exchanged"),
)


def additive(q, k, v, a):
    """Bahdanau's: scores a · tanh(q_t + k_s)."""
    h = np.tanh(q[:, :, None] + k[:, None])  # (B, T, S, K)
    p, _ = softmax(h @ a)
    return p @ v, (v, a, h, p)


def additive_backward(dy, cache):
    v, a, h, p = cache
    dv = p.swapaxes(1, 2) @ dy
    dz = softmax_backward(dy @ v.swapaxes(1, 2), p)
    da = np.einsum("bts,btsk->k", dz, h)
    dh = dz[..., None] * a * (1 - h * h)
    return dh.sum(2), dh.sum(1), dv, da


ADDITIVE = right("additive attention", additive, normal((2, 3, 5), (2, 4, 5), (2, 4, 6), (5,)))
SQUARE_ADDITIVE = right("additive attention, 4 × 4", additive,
                        normal((2, 4, 4), (2, 4, 4), (2, 4, 4), (4,)))
PAIRS += ADDITIVE.with_slips(
    ({"dh.sum(2), dh.sum(1)": "dh.mean(2), dh.sum(1)"}, "mean in place of sum"),
    ({"(1 - h * h)": "(1 - h)"}, "power wrong"),
    ({" * (1 - h * h)": ""}, "derivative left out"),
    ({" * a *": " *"}, "gain missing"),
    ({"dh.sum(2)": "dh[:, :, 0]"}, "sum forgotten"),
)
PAIRS += SQUARE_ADDITIVE.with_slips(
    ({"dh.sum(2), dh.sum(1)": "dh.sum(1), dh.sum(2)"}, "exchanged"),
)


def general(q, k, w):
    """Weights alone, of scores q W k."""
    p, _ = softmax(np.einsum("bti,ij,bsj->bts", q, w, k))
    return p, (q, k, w, p)


def general_backward(dp, cache):
    q, k, w, p = cache
    dz = softmax_backward(dp, p)
    dw = np.einsum("bti,bts,bsj->ij", q, dz, k)
    return dz @ k @ w.T, dz.swapaxes(1, 2) @ q @ w, dw


PAIRS += right("bilinear scores", general, normal((2, 3, 4), (2, 5, 4), (4, 4))).with_slips(
    ({"k @ w.T": "k @ w"}, "transposed"),
    ({"q @ w,": "q @ w.T,"}, "transposed"),
)


def local(q, k, v):
    """Each position sees itself and one neighbour on either side."""
    length = q.shape[1]
    near = np.abs(np.arange(length)[:, None] - np.arange(length)) <= 1
    p, _ = softmax(np.where(near, q @ k.swapaxes(1, 2), -1e30))
    return p @ v, (q, k, v, p, near)


def local_backward(dy, cache):
    q, k, v, p, _ = cache
    dz = softmax_backward(dy @ v.swapaxes(1, 2), p)
    return dz @ k, dz.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dy


PAIRS += right("local attention", local, normal((2, 5, 3), (2, 5, 3), (2, 5, 3))).with_slips(
    ({"p.swapaxes(1, 2) @ dy": "(p + 0.1 * ~cache[-1]).swapaxes(1, 2) @ dy"}, "mask missing"),
    ({"dz = softmax": "dz = np.tri(5) * softmax"}, "mask too strict"),
)


def linear_attention(q, k, v):
    """No softmax: q (kᵀ v), with q and k made positive by exp."""
    q, k = np.exp(q), np.exp(k)
    total = k.sum(1)[:, None]  # (B, 1, K)
    norm = (q * total).sum(-1, keepdims=True)
    y = q @ (k.swapaxes(1, 2) @ v) / norm
    return y, (q, k, v, y, total, norm)


def linear_attention_backward(dy, cache):
    q, k, v, y, total, norm = cache
    dtop = dy / norm
    dnorm = -(dtop * y).sum(-1, keepdims=True)
    dq = dtop @ v.swapaxes(1, 2) @ k + dnorm * total
    dk = v @ dtop.swapaxes(1, 2) @ q + (dnorm * q).sum(1)[:, None]
    return dq * q, dk * k, k @ (q.swapaxes(1, 2) @ dtop)


LINEAR = right("linear attention", linear_attention, normal((2, 3, 4), (2, 5, 4), (2, 5, 6)))
PAIRS += LINEAR.with_slips(
    ({" + dnorm * total": ""}, "statistics as constants"),
    ({"dq * q, dk * k": "dq, dk * k"}, "derivative left out"),
    ({"dnorm = -(": "dnorm = ("}, "sign of a term"),
)


def relative(q, k, bias):
    """Scores with a bias for each distance; weights alone."""
    length = q.shape[1]
    distance = np.arange(length)[:, None] - np.arange(length) + length - 1
    p, _ = softmax(q @ k.swapaxes(1, 2) + bias[distance])
    return p, (q, k, bias, distance, p)


def relative_backward(dp, cache):
    q, k, bias, distance, p = cache
    dz = softmax_backward(dp, p)
    dbias = np.zeros_like(bias)
    np.add.at(dbias, distance, dz.sum(0))
    return dz @ k, dz.swapaxes(1, 2) @ q, dbias


PAIRS += right("relative bias", relative, normal((2, 4, 3), (2, 4, 3), (7,))).with_slips(
    ({"np.add.at(dbias, distance, dz.sum(0))": "dbias[distance] += dz.sum(0)"}, "repeated index"),
    ({"dbias, distance,": "dbias, distance.T,"}, "time order"),
    ({"dz.sum(0)": "dz[0]"}, "one row only"),
)
