"""Loss and gradient of the logits in one launch, the gradient in place of the logits.

The gradient of a loss is linear in ``dloss``: it is worked out in the forward, while the logits are
at hand, and the backward only scales it. Where no gradient is wanted, the references do less.
"""

import numpy as np

from minitransformer.accelerate.cuda.kernels import launch
from minitransformer.accelerate.cuda.launches import THREADS, matrix
from minitransformer.accelerate.cuda.matmul import matmul
from minitransformer.core.backend import array_namespace, is_array, like
from minitransformer.core.twins import Twin
from minitransformer.layers.linear import check_features
from minitransformer.loss import cross_entropy as reference_loss
from minitransformer.loss import projected_loss as reference_projected

ROWS = 4096  # of logits at a time, 131 MB at V = 8000: enough to keep any GPU busy


def cross_entropy(logits, targets, smoothing=0.0, pad_id=0, num_tokens=None):
    """As the reference."""
    targets = targets if is_array(targets) else np.asarray(targets)
    reference_loss.check_targets(targets, logits.shape, smoothing, num_tokens)
    z, xp = matrix(logits), array_namespace(logits)
    t, share = _rows_of(targets, logits, pad_id, num_tokens)
    gradient, losses = xp.empty(z.shape, z.dtype), xp.empty((2, len(z)), z.dtype)
    _loss_and_gradient(z, t, gradient, losses, smoothing, share, pad_id)
    sums = losses.sum(axis=1)
    return (sums[0], sums[1]), gradient.reshape(logits.shape)


def cross_entropy_backward(dloss, gradient):
    """As the reference."""
    return _scaled(gradient, dloss)


def projected_loss(x, weight, targets, smoothing=0.0, kappa=0.0, pad_id=0, num_tokens=None):
    """As the reference, with dx and dweight for ``dloss`` 1 as the cache."""
    targets = targets if is_array(targets) else np.asarray(targets)
    passes = 2 if kappa else 1
    check_features(x, weight.T)
    of_all_passes = array_namespace(targets).concatenate([targets] * passes)
    logits_shape = (*x.shape[:-1], len(weight))
    reference_loss.check_targets(of_all_passes, logits_shape, smoothing, num_tokens)
    xp = array_namespace(x)
    rows = matrix(x).reshape(passes, -1, x.shape[-1])  # (passes, N, D)
    t, share = _rows_of(targets, x, pad_id, num_tokens)
    weights = xp.broadcast_to(weight, (passes, *weight.shape))  # (passes, V, D)
    dx, dweight = xp.empty(rows.shape, x.dtype), None
    losses = xp.empty((2, len(t)), x.dtype)
    for start in range(0, len(t), ROWS // passes):
        part = slice(start, start + ROWS // passes)
        z = matmul(rows[:, part], weights.swapaxes(1, 2))  # (passes, n, V)
        if kappa:
            _two_losses_and_gradients(z, t[part], losses[:, part], smoothing, share, kappa, pad_id)
        else:
            _loss_and_gradient(z[0], t[part], z[0], losses[:, part], smoothing, share, pad_id)
        dx[:, part] = matmul(z, weights)  # (passes, n, D)
        x_part = rows[:, part].reshape(-1, x.shape[-1])  # (passes n, D)
        dweight_of_part = matmul(z.reshape(-1, len(weight)).T, x_part)  # (V, D)
        dweight = dweight_of_part if dweight is None else dweight + dweight_of_part
    if dweight is None:
        dweight = xp.zeros(weight.shape, x.dtype)
    sums = losses.sum(axis=1)
    return (sums[0], sums[1]), (dx.reshape(x.shape), dweight)


def projected_loss_backward(dloss, cache):
    """As the reference."""
    dx, dweight = cache
    return _scaled(dx, dloss), _scaled(dweight, dloss)


def _loss_and_gradient(z, targets, gradient, losses, smoothing, share, pad_id):
    arguments = z, targets, gradient, losses[0], losses[1], z.shape[1], smoothing, share, pad_id
    launch("cross_entropy", (len(z), 1), (THREADS, 1), *arguments)


def _two_losses_and_gradients(z, targets, losses, smoothing, share, kappa, pad_id):
    _, rows, width = z.shape
    settings = smoothing, share, kappa, pad_id
    arguments = z, targets, losses[0], losses[1], rows, width, *settings
    launch("cross_entropy_of_two", (rows, 1), (THREADS, 1), *arguments)


def _rows_of(targets, reference, pad_id, num_tokens):
    """Targets as the kernel reads them, and the part of the mean that each real one makes up."""
    if num_tokens is None:
        num_tokens = max(int((targets != pad_id).sum()), 1)
    xp = array_namespace(reference)
    t = xp.ascontiguousarray(like(targets, reference).reshape(-1), dtype=np.int32)  # (tokens,)
    return t, 1 / float(num_tokens)


def _scaled(x, factor):
    return x if isinstance(factor, int | float) and factor == 1 else x * factor


reference_loss.cross_entropy.twins.setdefault("cupy", Twin(cross_entropy, cross_entropy_backward))
reference_projected.projected_loss.twins.setdefault(
    "cupy", Twin(projected_loss, projected_loss_backward)
)
