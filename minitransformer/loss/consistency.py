"""Consistency of two passes with different dropout (R-Drop, Liang et al. 2021).

The same batch is run twice; dropout makes the two predictions p and q differ, and the loss asks
them to agree:

    loss = ½ (KL(p ‖ q) + KL(q ‖ p)) = ½ Σ_v (p_v − q_v) a_v        with a = log p − log q

averaged over the real tokens. Derivation. KL(p ‖ q) = Σ p a depends on the logits z of p as

    ∂KL(p ‖ q)/∂z_v = p_v (a_v − Σ_u p_u a_u)        ∂KL(q ‖ p)/∂z_v = p_v − q_v

because Σ p_u ∂log p_u/∂z_v = 0 and −Σ q_u log p_u is a cross-entropy. Exchanging p and q turns a
into −a and gives the gradient for the other logits.
"""

from minitransformer.core.backend import array_namespace, like


def consistency(logits, targets, pad_id=0, num_tokens=None):
    """How far two predictions for the same targets lie apart, in nats a token.

    Args:
        logits: (2 B, T, V), the two passes one after the other.
        targets: (B, T) integers; ``pad_id`` where there is none.
        num_tokens: real targets to divide by; by default those of this batch.

    Returns:
        The loss, a scalar on the device, and the cache for the backward.
    """
    xp = array_namespace(logits)
    log_both = _log_softmax(logits, xp).reshape(2, -1, logits.shape[-1])
    log_p, log_q = log_both[0], log_both[1]  # (N, V)
    real = like(targets, logits).reshape(-1) != pad_id  # (N,)
    dtype = logits.dtype
    count = xp.maximum(real.sum(), 1).astype(dtype) if num_tokens is None else float(num_tokens)
    share = (real.astype(dtype) / count)[:, None]  # (N, 1)
    p, q = xp.exp(log_p), xp.exp(log_q)
    a = log_p - log_q
    loss = ((p - q) * a * share).sum() / 2
    return loss, (p, q, a, share, logits.shape)


def consistency_backward(dloss, cache):
    """Gradient dlogits (2 B, T, V)."""
    p, q, a, share, shape = cache
    xp = array_namespace(p)
    dz_p = p * (a - (p * a).sum(axis=-1, keepdims=True)) + p - q
    dz_q = q * ((q * a).sum(axis=-1, keepdims=True) - a) + q - p
    return (xp.stack([dz_p, dz_q]) * (share * (dloss / 2))).reshape(shape)


def _log_softmax(z, xp):
    z = z - z.max(axis=-1, keepdims=True)
    return z - xp.log(xp.exp(z).sum(axis=-1, keepdims=True))
