"""Projection, loss and gradient a few hundred rows at a time: the (tokens, V) logits never exist.

The gradient of a loss is linear in ``dloss``, so all of it can be worked out in the forward, while
the logits of a chunk are at hand; the backward only scales it. (Where no gradient is wanted, as in
an evaluation, call ``cross_entropy``, which works none out.) Rows of padding are left out.

With e = exp(z − max z) and s = Σ_v e_v, so that p = e / s, the gradient at one of N real tokens is

    dz = (e − (1 − ε) s [v = t]) / (s N) − ε / (V N)

Neither the division nor the smoothing needs a pass over the V numbers of a row. 1 / (s N) may as
well scale the rows of width D that follow, and the last term, the same for all v, is of rank one:

    dx = (e′ E) / (s N) − ε / N · mean row of E             with e′ = e − (1 − ε) s [v = t]
    dE = e′ᵀ (x / (s N)) − ε / (V N) · sum of the rows of x

Between the three matrix products only max, subtract, exp and sum are left.
"""

import math

import numpy as np

from minitransformer.core.twins import Twin
from minitransformer.layers.linear import check_features
from minitransformer.loss import projected_loss as reference
from minitransformer.loss.cross_entropy import check_targets

# Rows of logits at a time, 16 MB at V = 8000: the matrix products are as fast as with all rows, and
# the allocator still hands out the same memory again and again (see ``core/memory.py``).
CHUNK = 512


def projected_loss(x, weight, targets, smoothing=0.0, kappa=0.0, pad_id=0, num_tokens=None):
    """As the reference, with dx and dweight for ``dloss`` 1 as the cache."""
    targets = np.asarray(targets)
    vocabulary_size, d_model = weight.shape
    passes = 2 if kappa else 1
    check_features(x, weight.T)
    logits_shape = (*x.shape[:-1], vocabulary_size)
    check_targets(np.concatenate([targets] * passes), logits_shape, smoothing, num_tokens)
    smoothing, kappa = float(smoothing), float(kappa)
    x_rows = x.reshape(passes, -1, d_model)  # (passes, B T, D)
    targets = targets.reshape(-1)  # (B T,)
    real = np.flatnonzero(targets != pad_id)
    share = 1 / (passes * float(num_tokens or max(len(real), 1)))  # of a row in the mean
    mean_row = weight.mean(axis=0)  # (D,)

    dx, dweight = np.zeros(x.shape, x.dtype), np.zeros(weight.shape, weight.dtype)
    dx_rows = dx.reshape(x_rows.shape)
    nll = uniform = disagreement = x.dtype.type(0)
    for rows in np.array_split(real, math.ceil(passes * len(real) / CHUNK)) if len(real) else ():
        x_chunk = x_rows[:, rows].reshape(-1, d_model)  # (passes n, D)
        z = x_chunk @ weight.T  # (passes n, V)
        target_entries = np.arange(len(z)), np.tile(targets[rows], passes)
        z_target = z[target_entries]  # (passes n,)
        if kappa:
            dz, total, log_total, distance = _two_passes(z, kappa)
            disagreement += distance * 2 * share
        else:
            dz, total, log_total = _one_pass(z)
        nll += (log_total - z_target).sum() * share
        uniform += (log_total - x_chunk @ mean_row).sum() * share

        dz[target_entries] -= (1 - smoothing) * total
        factor = (share / total)[:, None]  # (passes n, 1)
        dx_chunk = dz @ weight  # (passes n, D)
        dx_chunk *= factor
        dx_chunk -= smoothing * share * mean_row
        dx_rows[:, rows] = dx_chunk.reshape(passes, -1, d_model)
        dweight += dz.T @ (x_chunk * factor)  # (V, D)
        dweight -= smoothing * share / vocabulary_size * x_chunk.sum(axis=0)
    loss = (1 - smoothing) * nll + smoothing * uniform + kappa * disagreement
    return (loss, nll), (dx, dweight)


def projected_loss_backward(dloss, cache):
    """As the reference."""
    dx, dweight = cache
    return (dx, dweight) if dloss == 1 else (dx * dloss, dweight * dloss)


def _one_pass(z):
    """e in place of z (n, V); s and the logarithm of Σ exp z, both (n,)."""
    peak = z.max(axis=-1)  # (n,)
    z -= peak[:, None]
    e = np.exp(z, out=z)
    total = e @ np.ones(e.shape[1], e.dtype)  # (n,) twice as fast as e.sum(axis=-1)
    return e, total, np.log(total) + peak


def _two_passes(z, kappa):
    """The same for the rows of both passes, z (2 n, V), with the gradient of their consistency.

    With p and q the predictions of the two passes, a = log p − log q, P = Σ p a and Q = Σ q a, the
    distance is ½ (P − Q), and weighed against a cross-entropy of 2 N rows (``consistency.py``)

        2 N dz_p = p (1 + κ (1 + a − P)) − κ q             2 N dz_q = q (1 + κ (1 − a + Q)) − κ p

    without the term at the target. Here p and q are needed as such: s is 1.
    """
    n = len(z) // 2
    a = z[:n] - z[n:]  # (n, V)
    e, total, log_total = _one_pass(z)
    e /= total[:, None]
    p, q = e[:n], e[n:]
    a -= (log_total[:n] - log_total[n:])[:, None]
    P, Q = np.vecdot(p, a), np.vecdot(q, a)  # (n,)
    a *= kappa
    dz = np.empty_like(z)
    np.add(a, (1 + kappa - kappa * P)[:, None], out=dz[:n])
    np.subtract((1 + kappa + kappa * Q)[:, None], a, out=dz[n:])
    dz *= e
    e *= kappa
    dz[:n] -= q
    dz[n:] -= p
    return dz, np.ones_like(total), log_total, (P - Q).sum() / 2


reference.projected_loss.twins.setdefault("numpy", Twin(projected_loss, projected_loss_backward))
