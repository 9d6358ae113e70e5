"""Exercise 30, depth: how each part is checked."""

import math

import numpy as np

from minitransformer.course.exercises.own.common import CANCELLED, FAR, FAR_OFF
from minitransformer.course.exercises.parts import Slip, expect, expect_pair, likely, normal, part
from minitransformer.gradcheck.pair import unheard

B, Y, X, C, G = 3, 2, 5, 6, 3  # two channels in a group
EPSILON = 1e-5


@part(10)
def check_share_of_paths(share_of_paths):
    hint = "n! / (k! (n − k)!) paths go through k of n blocks"
    for n, most in ((6, 2), (1, 0), (3, 3), (54, 20)):
        of_length = [math.comb(n, k) for k in range(n + 1)]
        expected = sum(of_length[: most + 1]) / 2**n
        mistakes = {
            "these are the paths through exactly so many blocks": of_length[most] / 2**n,
            "exactly so many blocks are allowed": sum(of_length[:most]) / 2**n,
            "a share is asked for, not how many": sum(of_length[: most + 1]),
            "a path goes through all blocks or some or none; there are 2ⁿ": (
                sum(of_length[: most + 1]) / (2**n - 1)
            ),
            "there are more paths of some lengths than of others": (most + 1) / (n + 1),
            "the path around all blocks is one, too": sum(of_length[1 : most + 1]) / 2**n,
            "these are the long ones": sum(of_length[most:]) / 2**n,
            "these are those that are longer": 1 - expected,
            "the share of all paths is 1, not 100": 100 * expected,
        }
        share_of_paths.expect((n, most), expected, hint, mistakes)


@part(25)
def check_deepest_within(deepest_within):
    cases = [
        (_weights(n, *sizes) + more, *sizes)
        for n, sizes, more in (
            (3, (3, 16, 10), 1000),
            (5, (1, 8, 7), 0),
            (5, (1, 8, 7), 3),
            (4, (2, 6, 5), 20),
            (1, (3, 5, 10), 0),
            (1, (3, 5, 10), -1),
            (6, (3, 16, 10), 10_000),
            (4, (40, 16, 10), -4000),
            (5, (3, 16, 300), -10_000),
            (5, (3, 16, 300), -16_000),
            (18, (3, 16, 100), 80_000),
            (4, (3, 16, 10), 12 * 16**2),  # room for a shortcut B, and for no more
            (4, (3, 16, 10), 9 * 16**2),
        )
    ]
    right = [_deepest(_weights, *case) for case in cases]
    counted_otherwise = {
        "exactly so many weights are allowed": lambda *a: _weights(*a) + 1,
        "biases are left out": lambda *a: _weights(*a) + a[3],
        "shortcuts A have no weights": lambda *a: _weights(*a) + 10 * a[2] ** 2,
        "the first block of the second and third stage has a kernel of fewer channels in": (
            lambda *a: _weights(*a) + 90 * a[2] ** 2
        ),
        "the second kernel of a stage's first block has as many channels in as out": (
            lambda *a: _weights(*a) - 90 * a[2] ** 2
        ),
        "a block has two convolutions": lambda n, *a: _weights(n / 2, *a),
        "there are n blocks in each of the stages, not in all together": (
            lambda n, *a: _weights(n / 3, *a)
        ),
        "the first convolution has weights, too": lambda *a: _weights(*a) - 9 * a[1] * a[2],
        "the linear map has a matrix, too": lambda *a: _weights(*a) - 4 * a[2] * a[3],
        "the linear map is given 4 width features": lambda *a: _weights(*a) - 3 * a[2] * a[3],
        "a kernel has 9 places": lambda n, c, w, e: c * w + (42 * n - 10) * w**2 + 4 * w * e,
        "the third stage has twice the channels of the second": lambda n, c, w, e: (
            9 * c * w + (252 * n - 45) * w**2 + 3 * w * e
        ),
    }
    mistakes = {
        "6 n + 2 is asked for, not n": [depth and (depth - 2) // 6 for depth in right],
        "the first convolution and the linear map are two layers more": [
            depth and depth - 2 for depth in right
        ],
        "where not even n = 1 fits it is 0": [depth or 2 for depth in right],
    }
    for what, count in counted_otherwise.items():
        mistakes[what] = [_deepest(count, *case) for case in cases]
    given = [deepest_within(*case) for case in cases]
    hint = (
        "count the network of n = 1 by hand, kernel by kernel, and what one more block in each "
        "stage adds"
    )
    for what, values in mistakes.items():  # of whole numbers, one alone says little
        if all(likely(one, {what: value}) for one, value in zip(given, values, strict=True)):
            hint = what
    for case, one, expected in zip(cases, given, right, strict=True):
        expect(f"deepest_within{case}", one, expected, hint)


def _deepest(count, num_weights, *sizes):
    """The depth, for a count of the weights that a network with n blocks in each stage has."""
    fitting = [n for n in range(1, 1000) if count(n, *sizes) <= num_weights]
    return 6 * fitting[-1] + 2 if fitting else 0


def _weights(n, channels, width, classes):
    """Entries of all kernels and of the matrix of a network with n blocks in each stage."""
    blocks = 378 * n - 90  # a kernel of w to 2 w for one of 2 w to 2 w, and so in the third stage
    return 9 * channels * width + blocks * width**2 + 4 * width * classes


@part(25)
def check_folded(folded):
    k, c, e = 3, 2, 5
    weight, gamma, beta, mean = normal(30, (k, k, c, e), (e,), (e,), (e,))
    rng = np.random.default_rng(31)
    for variance, epsilon in ((rng.uniform(0.2, 3, e), 1e-5), (rng.uniform(0.2, 3, e), 0.3)):
        given = folded.several(2, "weight' and bias'", weight, gamma, beta, mean, variance, epsilon)
        sigma = np.sqrt(variance + epsilon)
        scale = gamma / sigma
        scaled = (
            "what the norm does to y it does to each channel of y, the last axis of the weight: "
            "weight γ / √(variance + ε)"
        )
        mistakes = {
            "divide by the deviation, √(variance + ε), not by the variance": (
                weight * gamma / (variance + epsilon)
            ),
            "ε is added to the variance, under the root": weight
            * gamma
            / (variance**0.5 + epsilon),
            "ε is missing": weight * gamma / np.sqrt(variance),
            "use the epsilon that is given": weight * gamma / np.sqrt(variance + 1e-5),
            "γ is missing": weight / sigma,
            "the deviation is missing": weight * gamma,
            "divide by the deviation, and do not multiply": weight * gamma * sigma,
            "the mean is taken off y, and goes into the bias": (weight - mean) * scale,
            "the shift goes into the bias alone": weight * scale + beta,
            "this is the weight as it was": weight,
        }
        expect(f"weight' for epsilon={epsilon:g}", given[0], weight * scale, scaled, mistakes)
        mistakes = {
            "β is missing": -mean * scale,
            "what is taken off is the mean as the norm scales it": beta - mean,
            "the mean is divided by the deviation, too": beta - mean * gamma,
            "the mean is multiplied by γ, too": beta - mean / sigma,
            "the mean is taken off, not added": beta + mean * scale,
            "β is added after the gain, which does not scale it": (beta - mean) * scale,
            "the mean is missing": beta,
            "the convolution had no mean of the weight in it: the mean is that of y": (
                beta - weight.mean(axis=(0, 1, 2)) * scale
            ),
        }
        hint = "where conv(x, weight) is 0 the norm gives β − γ mean / √(variance + ε)"
        expect(f"bias' for epsilon={epsilon:g}", given[1], beta - mean * scale, hint, mistakes)


@part(45)
def check_group_norm(forward, backward):
    x, gamma, beta, dy = normal(32, (B, Y, X, C), (C,), (C,), (B, Y, X, C))
    x = x * np.arange(1, C + 1) + np.arange(C)
    with unheard():
        expected, *_ = _normed(x, gamma, beta)
        mistakes = {
            "these are statistics of the batch: each picture has its own": _normed(
                x, gamma, beta, (0, 1, 2, 4)
            )[0],
            "the statistics are over all places of the picture, too": _normed(x, gamma, beta, (4,))[
                0
            ],
            "each group has statistics of its own: yours are of all channels, as in layer norm": (
                _normed(x, gamma, beta, (1, 2, 3, 4))[0]
            ),
            "the channels of a group are normed together: yours are each for itself": _normed(
                x, gamma, beta, (1, 2)
            )[0],
            "a group is channels side by side: 0 and 1, not 0 and 3": _strided(x, gamma, beta),
            "there are G groups, not groups of G": _normed(x, gamma, beta, groups=C // G)[0],
            "γ and β are those of a channel, and stand behind the norm": _normed(x, 1, 0)[0],
            "β is to be added": _normed(x, gamma, 0)[0],
            "x̂ is to be multiplied by γ": _normed(x, 1, beta)[0],
            "each channel of a group has a γ of its own": _normed(
                x, gamma.reshape(G, -1)[:, :1].repeat(C // G, axis=1).ravel(), beta
            )[0],
            "ε is added to the variance, under the root": _normed(x, gamma, beta, outside=True)[0],
            "divide by N, the count of what is normed together, not by N − 1": _normed(
                x, gamma, beta, ddof=1
            )[0],
        }
    _, x_hat, sigma = _normed(x, gamma, beta)
    mistakes["divide by σ, the root"] = gamma * x_hat / sigma + beta
    count = Y * X * C // G
    of_channels = (
        gamma / sigma * (dy - (dy.sum((0, 1, 2)) + x_hat * (dy * x_hat).sum((0, 1, 2))) / count)
    )
    summed = {axes: _dx(dy, x_hat, sigma, gamma, axes) for axes in ((1, 2, 4), (0, 1, 2, 4), (4,))}
    outside = _dx(dy, x_hat, sigma, 1.0) * gamma
    constant = dy * gamma / sigma
    slips = [
        Slip("dx is divided by σ, too", dy, (_dx(dy, x_hat, sigma, gamma) * sigma, None, None)),
        Slip(
            "dγ / N and dβ / N are the means of a batch norm: here they are those of dx̂ and dx̂ x̂ "
            "over a group of a picture",
            dy,
            (of_channels, None, None),
        ),
        Slip("the statistics depend on x, too: dx has two terms more", dy, (constant, None, None)),
        Slip(
            "γ differs within a group: it belongs inside the means, as in layer norm",
            dy,
            (outside, None, None),
        ),
        Slip(
            "the means in dx are those of a group of one picture, not of the batch",
            dy,
            (summed[0, 1, 2, 4], None, None),
        ),
        Slip(
            "the means in dx are over all places of the picture, too",
            dy,
            (summed[(4,)], None, None),
        ),
    ]
    hint = (
        "y = γ (x − μ) / √(σ² + ε) + β, where each group of each picture has a mean and a variance "
        "of its own, over all its places; ε is 1e-5"
    )
    inputs = x, gamma, beta, G
    report = expect_pair(forward, backward, inputs, expected, hint, mistakes, slips=slips)
    if report.right:
        y, _ = forward.y_and_cache(x + FAR, gamma, beta, G)
        expect(FAR_OFF, y, _normed(x + FAR, gamma, beta)[0], CANCELLED)
    return report


def _normed(x, gamma, beta, axes=(1, 2, 4), groups=G, outside=False, ddof=0):
    """y, x̂ and σ, both of x's shape, with statistics along these axes of (B, Y, X, G, C/G)."""
    apart = x.reshape(*x.shape[:3], groups, -1)
    variance = apart.var(axis=axes, keepdims=True, ddof=ddof)
    sigma = np.sqrt(variance) + EPSILON if outside else np.sqrt(variance + EPSILON)
    x_hat = ((apart - apart.mean(axis=axes, keepdims=True)) / sigma).reshape(x.shape)
    return gamma * x_hat + beta, x_hat, np.broadcast_to(sigma, apart.shape).reshape(x.shape)


def _strided(x, gamma, beta):
    """With groups of channels that lie G apart."""
    order = np.arange(C).reshape(-1, G).T.reshape(-1)
    _, x_hat, _ = _normed(x[..., order], 1, 0)
    return gamma * x_hat[..., np.argsort(order)] + beta


def _dx(dy, x_hat, sigma, gamma, axes=(1, 2, 4)):
    """dx with means along these axes of (B, Y, X, G, C/G)."""

    def mean(array):
        apart = array.reshape(*array.shape[:3], G, -1)
        return np.broadcast_to(apart.mean(axis=axes, keepdims=True), apart.shape).reshape(
            x_hat.shape
        )

    dx_hat = dy * gamma
    return (dx_hat - mean(dx_hat) - x_hat * mean(dx_hat * x_hat)) / sigma
