"""Gated and residual units: several paths from x to y."""

import numpy as np

from battery.activations import sigma
from battery.norms import standardise, standardise_backward
from battery.softmaxes import softmax, softmax_backward
from battery.table import normal, right

PAIRS = []


def glu(x):
    """Half of the features gate the other half."""
    a, b = np.split(x, 2, axis=-1)
    gate = sigma(b)
    return a * gate, (a, gate)


def glu_backward(dy, cache):
    a, gate = cache
    da = dy * gate
    db = dy * a * gate * (1 - gate)
    return np.concatenate([da, db], axis=-1)


PAIRS += right("glu", glu, normal((3, 8))).with_slips(
    ({"[da, db]": "[db, da]"}, "halves exchanged",
     "its halves along axis 1 are right and in another order, (1, 0)"),
    ({"[da, db]": "[da, 0 * db]"}, "gate left out"),
    ({" * (1 - gate)": ""}, "term missing"),
    ({"dy * a *": "dy *"}, "gate left out"),
)


def swiglu(x, w, v):
    a, b = x @ w, x @ v
    s = sigma(a)
    return a * s * b, (x, w, v, a, b, s)


def swiglu_backward(dy, cache):
    x, w, v, a, b, s = cache
    da = dy * b * (s + a * s * (1 - s))
    db = dy * a * s
    return da @ w.T + db @ v.T, x.T @ da, x.T @ db


PAIRS += right("swiglu", swiglu, normal((3, 4), (4, 5), (4, 5))).with_slips(
    ({"da @ w.T + ": ""}, "path missing"),
    ({"dy * b *": "dy *"}, "gate left out"),
    ({"x.T @ da, x.T @ db": "x.T @ db, x.T @ da"}, "exchanged"),
    ({"dy * a * s\n": "dy * a\n"}, "term missing"),
)


def highway(x, w, u):
    """A gate between x and what a layer makes of it."""
    h, t = np.tanh(x @ w), sigma(x @ u)
    return t * h + (1 - t) * x, (x, w, u, h, t)


def highway_backward(dy, cache):
    x, w, u, h, t = cache
    dh = dy * t * (1 - h * h)
    dt = dy * (h - x) * t * (1 - t)
    dx = dy * (1 - t) + dh @ w.T + dt @ u.T
    return dx, x.T @ dh, x.T @ dt


PAIRS += right("highway", highway, normal((3, 4), (4, 4), (4, 4))).with_slips(
    ({"dy * (1 - t) + ": ""}, "path missing"),
    ({"dy * (h - x) *": "dy * h *"}, "term missing"),
    ({"h - x": "h + x"}, "sign of a term"),
)


def residual(x, w):
    return x + np.tanh(x @ w), (x, w)


def residual_backward(dy, cache):
    x, w = cache
    dz = dy * (1 - np.tanh(x @ w) ** 2)
    return dy + dz @ w.T, x.T @ dz


PAIRS += right("residual", residual, normal((3, 4), (4, 4))).with_slips(
    ({"dy + dz @ w.T": "dz @ w.T"}, "path missing",
     "dy itself is missing: the output also depends on this input directly,"),
    ({"dy + dz": "2 * dy + dz"}, "term twice"),
    ({"dy + dz": "dz + dz"}, "path missing"),
)


def pre_norm(x, w):
    h, h_cache = standardise(x)
    return x + h @ w, (h, h_cache, w)


def pre_norm_backward(dy, cache):
    h, h_cache, w = cache
    dh = dy @ w.T
    return dy + standardise_backward(dh, h_cache), h.T @ dy


PAIRS += right("residual around a norm", pre_norm, normal((4, 5), (5, 5))).with_slips(
    ({"dy + standardise": "standardise"}, "path missing"),
    ({"dy + standardise_backward(dh": "standardise_backward(dy + dh"}, "order wrong"),
    ({"standardise_backward(dh, h_cache)": "dh"}, "derivative left out"),
)


def mixture(x, g, w):
    """Three linear experts (3, D, F), weighted by a softmax of x @ g."""
    p, _ = softmax(x @ g)
    experts = np.einsum("bd,kdf->bkf", x, w)
    return np.einsum("bk,bkf->bf", p, experts), (x, g, w, p, experts)


def mixture_backward(dy, cache):
    x, g, w, p, experts = cache
    dp = np.einsum("bf,bkf->bk", dy, experts)
    dz = softmax_backward(dp, p)
    dexperts = p[:, :, None] * dy[:, None]
    dx = dz @ g.T + np.einsum("bkf,kdf->bd", dexperts, w)
    return dx, x.T @ dz, np.einsum("bd,bkf->kdf", x, dexperts)


PAIRS += right("mixture of experts", mixture, normal((4, 5), (5, 3), (3, 5, 2))).with_slips(
    ({"dz @ g.T + ": ""}, "path missing"),
    ({"p[:, :, None] * dy": "np.ones_like(p)[:, :, None] * dy"}, "gate left out"),
)
