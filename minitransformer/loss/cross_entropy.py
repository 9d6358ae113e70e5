"""Label-smoothed cross-entropy, averaged over the tokens that are not padding (section 5.4).

With logits z of one position, p = softmax(z), target t, smoothing ε and V words, the target
distribution is q_v = (1 − ε) [v = t] + ε / V, and

    loss = −Σ_v q_v log p_v = (1 − ε) · (−log p_t) + ε · mean_v(−log p_v)

Derivation. log p_v = z_v − log Σ_u exp z_u, and Σ_v q_v = 1, so ∂loss/∂z_v = p_v − q_v. Averaged
over N real tokens, dz = (p − q) / N at each of them and 0 at padding.

The loss does not fall to 0: its floor is the entropy of q. The NLL, the mean of −log p_t, has no
such floor and is reported beside it.
"""

import numpy as np

from minitransformer.core.backend import array_namespace, is_array, like
from minitransformer.core.twins import twinned
from minitransformer.layers.token_ids import check_token_ids

NO_PADDING = -1  # as ``pad_id``: every target counts, as where they are classes and 0 is one


@twinned
def cross_entropy(logits, targets, smoothing=0.0, pad_id=0, num_tokens=None):
    """The mean loss and the mean negative log-likelihood of the real targets.

    Args:
        logits: (..., V); −∞ for a forbidden word. With smoothing, which asks for every word a
            little, the loss is then ∞.
        targets: integers (...), the ids to predict; ``pad_id`` where there is none, NO_PADDING
            where there is always one. On the host or where the logits are.
        smoothing: ε, 0 ≤ ε < 1.
        num_tokens: N to divide by; by default the real targets in this batch. A shard of a larger
            batch passes the count of the whole, so that the shards' losses and gradients add up.

    Returns:
        (loss, nll), two scalars on the device, in nats a token; and the cache for the backward. A
        batch of nothing but padding has loss, NLL and gradient 0.

    Raises:
        ValueError: shapes do not match, a target is no word, or ε is out of range.
        TypeError: targets are not integers.
    """
    xp = array_namespace(logits)
    vocabulary_size = logits.shape[-1]
    targets = targets if is_array(targets) else np.asarray(targets)
    check_targets(targets, logits.shape, smoothing, num_tokens)

    smoothing = float(smoothing)  # a NumPy float64 would turn float32 logits into float64
    z = logits.reshape(-1, vocabulary_size)  # (tokens, V)
    t = like(targets, logits).reshape(-1)  # (tokens,)
    z = z - z.max(axis=-1, keepdims=True)
    log_p = z - xp.log(xp.exp(z).sum(axis=-1, keepdims=True))  # (tokens, V)
    real = t != pad_id  # (tokens,)
    count = xp.maximum(real.sum(), 1).astype(z.dtype) if num_tokens is None else float(num_tokens)
    share = real.astype(z.dtype) / count  # (tokens,) the part of the mean that each row makes up

    log_p_t = xp.where(real, log_p[xp.arange(len(t)), t], 0)  # (tokens,) at padding it may be −∞
    nll = -(log_p_t * share).sum()
    loss = (1 - smoothing) * nll
    if smoothing:  # or else 0 times the −∞ of a word that is forbidden
        of_all = xp.where(real, log_p.mean(axis=-1), 0)  # (tokens,)
        loss = loss - smoothing * (of_all * share).sum()
    return (loss, nll), (log_p, t, share, smoothing, logits.shape)


@twinned
def cross_entropy_backward(dloss, cache):
    """Gradient dlogits (..., V) of the loss; ``dloss`` is 1 unless the loss is itself scaled."""
    log_p, t, share, smoothing, shape = cache
    xp = array_namespace(log_p)
    dz = xp.exp(log_p)  # (tokens, V) p, and p - q two lines below
    dz -= smoothing / dz.shape[-1]
    dz[xp.arange(len(t)), t] -= 1 - smoothing
    dz *= (share * dloss)[:, None]
    return dz.reshape(shape)


def check_targets(targets, shape, smoothing, num_tokens):
    """Raise unless these are targets for logits of that shape, as :func:`cross_entropy` does."""
    *expected, vocabulary_size = shape
    if targets.shape != tuple(expected):
        raise ValueError(
            f"targets of shape {targets.shape} do not match logits of shape {shape}; "
            f"expected {tuple(expected)}"
        )
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing={smoothing} must lie in 0 <= smoothing < 1")
    if num_tokens is not None and not num_tokens > 0:
        raise ValueError(f"num_tokens={num_tokens} must be > 0")
    check_token_ids(targets, vocabulary_size)
