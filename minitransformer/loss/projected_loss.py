"""The loss straight from what the decoder returns: projection to logits and cross-entropy in one.

    logits = x Eᵀ        loss = cross_entropy(logits, targets) + κ · consistency(logits, targets)

The logits are by far the largest array of a training step, V numbers a token, and nothing needs
them but the loss and its gradient. Taken together, the two can be worked out for some rows at a
time, which is what a faster twin does. Derivation: that of ``layers/linear.py`` after those of
``cross_entropy.py`` and ``consistency.py``.
"""

import numpy as np

from minitransformer.core.backend import array_namespace, is_array
from minitransformer.core.twins import twinned
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.loss.consistency import consistency, consistency_backward
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward


@twinned
def projected_loss(x, weight, targets, smoothing=0.0, kappa=0.0, pad_id=0, num_tokens=None):
    """Loss and negative log-likelihood of targets, from the decoder's output.

    Args:
        x: (B, T, D); with ``kappa`` (2 B, T, D), two passes one after the other.
        weight: of the output projection, (V, D).
        targets: ids (B, T) to predict; ``pad_id`` where there is none. On the host or where x is.
        smoothing: ε of the cross-entropy.
        kappa: κ, the weight of the consistency of the two passes; 0 means there is one pass.
        num_tokens: real targets to divide by; by default those of this batch, counted once.

    Returns:
        (loss, nll), two scalars on the device, in nats a token; the cross-entropy is the mean of
        both passes. And the cache for the backward.

    Raises:
        ValueError, TypeError: as for :func:`cross_entropy`.
    """
    logits, projection_cache = linear(x, weight.T)  # (passes B, T, V)
    if not kappa:
        losses, loss_cache = cross_entropy(logits, targets, smoothing, pad_id, num_tokens)
        return losses, (projection_cache, loss_cache, None, kappa)
    targets = targets if is_array(targets) else np.asarray(targets)
    both = array_namespace(targets).concatenate([targets, targets])  # (2 B, T)
    num_tokens_of_both = None if num_tokens is None else 2 * num_tokens
    (loss, nll), loss_cache = cross_entropy(logits, both, smoothing, pad_id, num_tokens_of_both)
    disagreement, consistency_cache = consistency(logits, targets, pad_id, num_tokens)
    loss = loss + kappa * disagreement
    return (loss, nll), (projection_cache, loss_cache, consistency_cache, kappa)


@twinned
def projected_loss_backward(dloss, cache):
    """Gradients dx, of the shape of x, and dweight (V, D); ``dloss`` is 1 unless it is scaled."""
    projection_cache, loss_cache, consistency_cache, kappa = cache
    dlogits = cross_entropy_backward(dloss, loss_cache)  # (passes B, T, V)
    if kappa:
        dlogits = dlogits + consistency_backward(kappa * dloss, consistency_cache)
    dx, dweight_transposed, _ = linear_backward(dlogits, projection_cache)
    return dx, dweight_transposed.T
