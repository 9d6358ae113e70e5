"""Losses: a number, or one for each row."""

import numpy as np

from battery.activations import sigma
from battery.norms import unit_rows, unit_rows_backward
from battery.softmaxes import log_softmax, softmax
from battery.table import away, normal, right

PAIRS = []


def mse(x, target):
    error = x - target
    return (error * error).mean(), error


def mse_backward(dy, error):
    dx = 2 * error / error.size * dy
    return dx, -dx


PAIRS += right("mean square error", mse, normal((3, 5), (3, 5))).with_slips(
    ({" * dy": ""}, "dy forgotten", "dy is forgotten"),
    ({" / error.size": ""}, "factor of a size",
     "15 times too large: 15 is the number of entries of x"),
    ({"error.size": "len(error)"}, "factor of a size"),
    ({"dx, -dx": "dx, None"}, "gradient left out"),
)
PAIRS += right("mean square error, 2 × 4", mse, normal((2, 4), (2, 4))).with_slips(
    ({"2 * error": "error"}, "factor"),
)


def cross_entropy(logits, labels):
    """The mean over the batch of − log p of the label."""
    log_p, _ = log_softmax(logits)
    return -log_p[np.arange(len(labels)), labels].mean(), (log_p, labels)


def cross_entropy_backward(dy, cache):
    log_p, labels = cache
    dlogits = np.exp(log_p)
    dlogits[np.arange(len(labels)), labels] -= 1
    return dlogits / len(labels) * dy


def labelled(shape):
    return lambda rng: (rng.standard_normal(shape), rng.integers(shape[-1], size=shape[:-1]))


PAIRS += right("cross-entropy", cross_entropy, labelled((3, 5))).with_slips(
    ({" / len(labels)": ""}, "factor of the batch"),
    ({"-= 1": "-= 0"}, "label left out", "(softmax − one-hot(labels))"),
    ({"-= 1": "+= 1"}, "sign of a term",
     "the term −0.66667 one-hot(labels), times dy, is missing or has a"),
    ({"np.exp(log_p)": "0 * log_p"}, "term missing",
     "it should be dy times 0.33333 (softmax − one-hot(labels))"),
    ({"np.exp(log_p)": "log_p.copy()"}, "term wrong"),
    ({"dlogits[np.arange(len(labels)), labels] -= 1": "dlogits[:, labels] -= 1"}, "index wrong"),
)
PAIRS += right("cross-entropy, 4 × 4", cross_entropy, labelled((4, 4))).with_slips(
    ({" / len(labels)": ""}, "factor of the batch"),
)


def smoothed(logits, labels):
    """Cross-entropy with a tenth of the label's share spread over all classes."""
    log_p, _ = log_softmax(logits)
    share = 0.9 * np.eye(logits.shape[-1])[labels] + 0.1 / logits.shape[-1]
    return -(share * log_p).sum(-1), (log_p, share)


def smoothed_backward(dy, cache):
    log_p, share = cache
    return (np.exp(log_p) - share) * dy[:, None]


PAIRS += right("cross-entropy with smoothing", smoothed, labelled((4, 6))).with_slips(
    ({"- share": "- (share > 0.5)"}, "smoothing forgotten"),
    ({"- share": "- (share - 0.1 / 6)"}, "smoothing forgotten"),
    ({"[:, None]": ".sum()"}, "sum over too much",
     "it is what it would be for a dy that is summed over axis 0"),
)


def padded(logits, labels):
    """The mean cross-entropy of the labels that are not 0, which is padding."""
    log_p, _ = log_softmax(logits)
    real = labels != 0
    picked = np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    return -(picked * real).sum() / real.sum(), (log_p, labels, real)


def padded_backward(dy, cache):
    log_p, labels, real = cache
    dlogits = np.exp(log_p) - np.eye(log_p.shape[-1])[labels]
    return dlogits * real[..., None] / real.sum() * dy


PADDED = normal((2, 4, 5), beside=[np.array([[3, 1, 4, 0], [2, 0, 0, 0]])])
PAIRS += right("cross-entropy with padding", padded, PADDED).with_slips(
    ({" * real[..., None]": ""}, "mask missing"),
    ({"real.sum()": "real.size"}, "factor of a size"),
    ({"real[..., None]": "~real[..., None]"}, "mask inverted"),
)


def binary(x, target):
    """Binary cross-entropy of logits."""
    return (np.logaddexp(0, x) - target * x).mean(), (x, target)


def binary_backward(dy, cache):
    x, target = cache
    s = sigma(x)
    return (s - target) / x.size * dy, -x / x.size * dy


PAIRS += right("binary cross-entropy", binary,
               lambda rng: (rng.standard_normal((3, 4)), rng.uniform(0, 1, (3, 4)))).with_slips(
    ({"(s - target)": "(s - target) * s * (1 - s)"}, "differentiated twice",
     "the factor σ(x) (1 − σ(x)) is too many"),
    ({"s - target": "x - target"}, "derivative at x",
     "it should be dy times 0.083333 (σ(x) − target)"),
    ({"-x / x.size": "-s / x.size"}, "derivative at y"),
)


def hinge(x, labels):
    """Multi-class hinge: how far other scores come within 1 of the label's."""
    rows = np.arange(len(labels))
    margin = x - x[rows, labels][:, None] + 1
    margin[rows, labels] = 0
    return np.maximum(margin, 0).sum(), (margin > 0, rows, labels)


def hinge_backward(dy, cache):
    within, rows, labels = cache
    dx = within * dy
    dx[rows, labels] -= dx.sum(-1)
    return dx


def hinge_inputs(rng):
    grid = rng.permuted(np.tile(np.arange(5) * 0.4, (3, 1)), axis=1)
    return grid + rng.uniform(0, 0.05, (3, 5)), grid.argmax(1)  # two of four come within 1


PAIRS += right("hinge", hinge, hinge_inputs).with_slips(
    ({"-= dx.sum(-1)": "-= 0"}, "label left out"),
    ({"-= dx.sum(-1)": "= -dy"}, "label left out",
     "all of them at 1, 2 on axis 1: there it is 2 times too"),
    ({"within * dy": "np.ones_like(within) * dy"}, "condition wrong"),
)


def huber(x, target):
    error = x - target
    small = np.abs(error) < 1
    return np.where(small, error**2 / 2, np.abs(error) - 0.5).sum(-1), (error, small)


def huber_backward(dy, cache):
    error, small = cache
    dx = np.where(small, error, np.sign(error)) * dy[:, None]
    return dx, -dx


def huber_inputs(rng):
    error = rng.choice([-1, 1], (4, 6)) * rng.choice([0.5, 1.5], (4, 6))
    target = rng.standard_normal((4, 6))
    return target + error + rng.uniform(-0.3, 0.3, (4, 6)), target


PAIRS += right("Huber", huber, huber_inputs).with_slips(
    ({"np.sign(error))": "error)"}, "condition wrong"),
    ({"small, error,": "small, 2 * error,"}, "factor in a branch"),
    ({"np.sign(error))": "1.0)"}, "condition wrong"),
    ({"where(small,": "where(~small,"}, "condition wrong"),
)


def kl(x, z):
    """KL(p ‖ q) of p = softmax(x), q = softmax(z)."""
    (log_p, _), (log_q, _) = log_softmax(x), log_softmax(z)
    divergence = (np.exp(log_p) * (log_p - log_q)).sum(-1)
    return divergence, (log_p, log_q, divergence)


def kl_backward(dy, cache):
    log_p, log_q, divergence = cache
    p, q = np.exp(log_p), np.exp(log_q)
    dx = p * (log_p - log_q - divergence[:, None])
    return dx * dy[:, None], (q - p) * dy[:, None]


PAIRS += right("KL divergence", kl, normal((3, 5), (3, 5))).with_slips(
    ({" - divergence[:, None]": ""}, "sum term missing"),
    ({"(q - p)": "(-p / q)"}, "derivative left out"),
    ({"p * (log_p": "(log_p"}, "factor y forgotten"),
)


def contrastive(x, z):
    """InfoNCE: row i of x should be nearest to row i of z."""
    (u, u_cache), (v, v_cache) = unit_rows(x), unit_rows(z)
    p, _ = softmax(u @ v.T / 0.5)
    return -np.log(np.diag(p)).mean(), (u, v, u_cache, v_cache, p)


def contrastive_backward(dy, cache):
    u, v, u_cache, v_cache, p = cache
    dscores = (p - np.eye(len(p))) / len(p) / 0.5 * dy
    return unit_rows_backward(dscores @ v, u_cache), unit_rows_backward(dscores.T @ u, v_cache)


PAIRS += right("contrastive", contrastive, normal((4, 3), (4, 3))).with_slips(
    ({"dscores.T": "dscores"}, "transposed"),
    ({" / len(p)": ""}, "factor of the batch"),
    ({"unit_rows_backward(dscores @ v, u_cache)": "dscores @ v"}, "derivative left out"),
    ({"p - np.eye(len(p))": "p"}, "label left out"),
)


def triplet(x, near, far):
    """Squared distance to near minus that to far, plus 50, where that is positive, as it is."""
    a, b = x - near, x - far
    return np.maximum((a * a).sum(-1) - (b * b).sum(-1) + 50, 0), (a, b)


def triplet_backward(dy, cache):
    a, b = cache
    dy = dy[:, None]
    return 2 * (a - b) * dy, -2 * a * dy, 2 * b * dy


PAIRS += right("triplet", triplet, away((2, 3), (2, 3), (2, 3))).with_slips(
    ({"return 2 * (a - b) * dy, ": "return ", "2 * b * dy": "2 * b * dy, 2 * (a - b) * dy"},
     "order wrong", "are the gradients returned in another"),
)


def gaussian(mean, log_variance, target):
    """Minus the log likelihood, up to a constant."""
    error = mean - target
    precision = np.exp(-log_variance)
    return (error**2 * precision + log_variance).sum() / 2, (error, precision)


def gaussian_backward(dy, cache):
    error, precision = cache
    dmean = error * precision * dy
    return dmean, (1 - error**2 * precision) / 2 * dy, -dmean


PAIRS += right("Gaussian likelihood", gaussian, normal((5,), (5,), (5,))).with_slips(
    ({"(1 - error": "(-error"}, "term missing"),
    ({"(1 - error": "(1 + error"}, "sign of a term"),
    ({"error * precision * dy": "error * dy"}, "gain missing"),
)
