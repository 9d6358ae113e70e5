"""Solutions of lesson 20, convolution."""

import numpy as np


def receptive_field(layers):
    """A layer adds (k − 1) δ of *its* positions; each is as many of the input as the strides before
    it multiply to. Its own stride matters only to the layers above.

    So strides alone make the view grow exponentially too, but leave fewer outputs. Dilations keep
    an output for every position.
    """
    seen, apart = 1, 1
    for width, dilation, stride in layers:
        seen += (width - 1) * dilation * apart
        apart *= stride
    return seen


def separable_convolution(x, depthwise, pointwise, bias):
    k, length = len(depthwise), x.shape[1]
    padded = np.pad(x, ((0, 0), (k - 1, 0), (0, 0)))  # (B, k − 1 + T, D)
    z = sum(padded[:, tap : tap + length] * depthwise[tap] for tap in range(k))  # (B, T, D)
    return z @ pointwise + bias, (padded, z, depthwise, pointwise)


def separable_convolution_backward(dy, cache):
    """The taps are diagonal matrices W_j: W_jᵀ is W_j, and dW_j keeps only its diagonal."""
    padded, z, depthwise, pointwise = cache
    k, length, d = len(depthwise), dy.shape[1], z.shape[-1]
    dpointwise = z.reshape(-1, d).T @ dy.reshape(-1, dy.shape[-1])  # (D, F)
    dz = dy @ pointwise.T  # (B, T, D)
    dpadded, ddepthwise = np.zeros_like(padded), np.zeros_like(depthwise)
    for tap in range(k):
        window = slice(tap, tap + length)
        ddepthwise[tap] = (padded[:, window] * dz).sum(axis=(0, 1))
        dpadded[:, window] += dz * depthwise[tap]
    return dpadded[:, k - 1 :], ddepthwise, dpointwise, dy.sum(axis=(0, 1))


def convolution_step(x, state, weight, bias, dilation):
    """The state never grows. That of attention, all keys and values so far, does."""
    inputs = np.concatenate([state, x[:, None]], axis=1)  # (B, (k − 1) δ + 1, D)
    taps = inputs[:, ::dilation]  # (B, k, D)
    y = np.einsum("bkd,kdf->bf", taps, weight) + bias
    return y, inputs[:, 1:]
