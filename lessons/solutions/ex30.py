"""Solutions of lesson 30, depth."""

import math

import numpy as np


def share_of_paths(num_blocks, most):
    """Through k of n blocks there are as many paths as ways to choose k of n.

    So the length of a path is a binomial number with the mean n / 2 and the deviation √n / 2. Of
    the 2⁵⁴ paths through the 54 blocks of a network of 110 layers 95 in 100 go through 20 to 34.
    """
    return sum(math.comb(num_blocks, k) for k in range(most + 1)) / 2**num_blocks


def deepest_within(num_weights, channels, width, num_classes):
    """A block of stage 1 has 2 · 9 w² weights, one of stage 2 four times and of 3 sixteen times.

    So one more block in each stage adds 18 w² (1 + 4 + 16) = 378 w². The first block of stage 2 has
    one kernel of w to 2 w channels, 18 w² and not 36 w², that of stage 3 one of 72 w² and not
    144 w²: 90 w² less in all. Three quarters of the weights are in the last stage, whose pictures
    are the smallest.
    """
    of_blocks = num_weights - 9 * channels * width - 4 * width * num_classes + 90 * width**2
    n = of_blocks // (378 * width**2)
    return 6 * n + 2 if n > 0 else 0


def folded(weight, gamma, beta, mean, variance, epsilon=1e-5):
    """The last axis of the weight is that of the channels which the norm sees, so γ / σ fits.

    What is left of a trained network has no norm any more, half as many layers to call, and the
    same answers. In a training this does not work: there the statistics depend on the weight.
    """
    scale = gamma / np.sqrt(variance + epsilon)  # (E,)
    return weight * scale, beta - mean * scale


def group_norm(x, gamma, beta, groups):
    """Its means are those of LayerNorm with all places of a group as one row."""
    apart = x.reshape(*x.shape[:3], groups, -1)  # (B, Y, X, G, C/G)
    centred = apart - apart.mean(axis=(1, 2, 4), keepdims=True)
    variance = (centred * centred).mean(axis=(1, 2, 4), keepdims=True)  # (B, 1, 1, G, 1)
    sigma = np.sqrt(variance + 1e-5)
    x_hat = centred / sigma
    return gamma * x_hat.reshape(x.shape) + beta, (x_hat, sigma, gamma)


def group_norm_backward(dy, cache):
    """γ differs within a group, so it stays inside the means, as in LayerNorm.

    dγ and dβ are sums over all pictures and places, as γ serves them all; the means are those of
    one picture's group. In batch norm the two are the same sums, and here they are not.
    """
    x_hat, sigma, gamma = cache
    dbeta = dy.sum(axis=(0, 1, 2))  # (C,)
    dgamma = (dy * x_hat.reshape(dy.shape)).sum(axis=(0, 1, 2))  # (C,)
    dx_hat = (dy * gamma).reshape(x_hat.shape)  # (B, Y, X, G, C/G)
    through_mean = dx_hat.mean(axis=(1, 2, 4), keepdims=True)
    through_sigma = x_hat * (dx_hat * x_hat).mean(axis=(1, 2, 4), keepdims=True)
    dx = (dx_hat - through_mean - through_sigma) / sigma
    return dx.reshape(dy.shape), dgamma, dbeta
