"""One-dimensional convolution over time, causal or centred, with dilation (section 4).

    y_t = b + Σ_j x_{t + (j − a) δ} W_j           taps j = 0 … k − 1, dilation δ

A causal convolution has a = k − 1 and sees t − (k − 1) δ … t, no future; a centred one has
a = (k − 1) / 2 and sees as far to either side. Outside of the sequence and at padding x is 0. From
layer to layer the view grows by (k − 1) δ: L layers see 1 + Σ_layers (k − 1) δ positions.

Derivation. Let c_t be the k inputs that position t sees, side by side, and W the k matrices W_j one
above the other. Then y = c W + b is a linear map of windows, and ``linear.py`` has dW, db and

    dc = dy Wᵀ        that is  dc_{t,j} = dy_t W_jᵀ

x_s stands in the windows of all t = s − (j − a) δ, once for each tap, so its gradient is the sum

    dx_s = Σ_j dc_{s − (j − a) δ, j} = Σ_j dy_{s − (j − a) δ} W_jᵀ

which is a convolution of dy with the kernel turned round: what looked back in forward looks ahead
in backward. Every window is one row of one large matrix product; in return the cache holds x k
times. Waibel et al. (1989) convolved over time, van den Oord et al. (2016) with dilation.
"""

import math

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.layers.linear import glorot_uniform, linear, linear_backward
from minitransformer.layers.masks import check_token_mask


def convolution(x, weight, bias=None, dilation=1, causal=False, mask=None):
    """Each position's linear map of the k positions in its window.

    Args:
        x: (B, T, D_in).
        weight: (k, D_in, D_out), the tap for the earliest position first.
        bias: (D_out,) or None.
        dilation: δ, the distance between two taps, 1 for neighbours.
        causal: whether the window ends at its position; otherwise that is its middle.
        mask: boolean (B, T), True at tokens and False at padding, which then counts as zeros.

    Returns:
        y (B, T, D_out) and the cache for the backward.

    Raises:
        TypeError: the mask is not boolean.
        ValueError: x does not fit the weight, the mask does not fit x, or as for :func:`windows`.
    """
    width, d_in, d_out = weight.shape
    if x.shape[-1] != d_in:
        raise ValueError(
            f"x of shape {x.shape} does not fit a weight of shape {weight.shape}: "
            f"its last axis must be {d_in}"
        )
    check_token_mask(mask, x.shape[:2])
    x = x if mask is None else x * mask[..., None]
    seen, windows_cache = windows(x, width, dilation, causal)  # (B, T, k D_in)
    y, linear_cache = linear(seen, weight.reshape(width * d_in, d_out), bias)  # (B, T, D_out)
    return y, (mask, weight.shape, windows_cache, linear_cache)


def convolution_backward(dy, cache):
    """Gradients dx (B, T, D_in), dweight (k, D_in, D_out) and dbias (D_out,) or None."""
    mask, weight_shape, windows_cache, linear_cache = cache
    dseen, dweight, dbias = linear_backward(dy, linear_cache)  # (B, T, k D_in)
    dx = windows_backward(dseen, windows_cache)  # (B, T, D_in)
    dx = dx if mask is None else dx * mask[..., None]
    return dx, dweight.reshape(weight_shape), dbias


def windows(x, width, dilation=1, causal=False):
    """What each position sees: ``width`` positions of x (B, T, D) side by side, (B, T, k D).

    Returns:
        the windows and the cache for the backward.

    Raises:
        ValueError: the width of a centred window is even, so that it has no middle; or width or
            dilation is less than 1.
    """
    before, after = reach(width, dilation, causal)
    xp = array_namespace(x)
    batch, length, d = x.shape
    zeros = xp.zeros((batch, before + after, d), dtype=x.dtype)
    padded = xp.concatenate([zeros[:, :before], x, zeros[:, before:]], axis=1)
    starts = range(0, before + after + 1, dilation)  # where in padded each tap meets the first row
    seen = xp.concatenate([padded[:, start : start + length] for start in starts], axis=-1)
    return seen, (starts, before, padded.shape)  # (B, T, k D)


def windows_backward(dseen, cache):
    """Gradient dx (B, T, D): the sum over all windows in which a position stands."""
    starts, before, padded_shape = cache
    length, d = dseen.shape[1], padded_shape[-1]
    dpadded = array_namespace(dseen).zeros(padded_shape, dtype=dseen.dtype)
    for tap, start in enumerate(starts):
        dpadded[:, start : start + length] += dseen[..., tap * d : (tap + 1) * d]
    return dpadded[:, before : before + length]  # (B, T, D)


def reach(width, dilation=1, causal=False):
    """How many positions before and after its own a window covers.

    Raises:
        ValueError: as for :func:`windows`.
    """
    if width < 1 or dilation < 1:
        raise ValueError(f"width={width} and dilation={dilation} must be 1 or more")
    if causal:
        return (width - 1) * dilation, 0
    if width % 2 == 0:
        raise ValueError(
            f"a centred window of width={width} has no middle; "
            f"choose {width - 1} or {width + 1}, or causal=True"
        )
    return (width // 2) * dilation, (width // 2) * dilation


class Convolution1d(Module):
    """A convolution with its own weight and a bias of zeros.

    The weight is drawn by :func:`glorot_uniform`, divided by √k, as k taps add up.

    Args:
        d_in, d_out: widths of input and output.
        width: k, how many positions a window covers.
        rng: NumPy generator for the weight.
        dilation, causal: as for :func:`convolution`.

    Raises:
        ValueError: as for :func:`windows`.
    """

    def __init__(self, d_in, d_out, width, rng, *, dilation=1, causal=False):
        reach(width, dilation, causal)
        taps = np.stack([glorot_uniform((d_in, d_out), rng) for _ in range(width)])
        self.weight = Parameter(taps / math.sqrt(width))  # (k, D_in, D_out)
        self.bias = Parameter(np.zeros(d_out, dtype=np.float32))
        self.dilation = dilation
        self.causal = causal

    def forward(self, x, mask=None):
        w = (self.weight.data, self.bias.data)
        return convolution(x, *w, self.dilation, self.causal, mask)

    def backward(self, dy, cache):
        dx, dweight, dbias = convolution_backward(dy, cache)
        self.weight.grad += dweight
        self.bias.grad += dbias
        return dx

    def step(self, x, before):
        """:meth:`forward`, where it is causal, of one more position.

        Args:
            x: (..., D_in).
            before: the (k − 1) δ inputs before it, (..., (k − 1) δ, D_in).

        Returns:
            y (..., D_out), and the inputs before the next position, as many.
        """
        seen = array_namespace(x).concatenate([before, x[..., None, :]], axis=-2)
        taps = seen[..., :: self.dilation, :].reshape(*x.shape[:-1], -1)  # (..., k D_in)
        weight = self.weight.data
        y, _ = linear(taps, weight.reshape(-1, weight.shape[-1]), self.bias.data)  # (..., D_out)
        return y, seen[..., 1:, :]

    def zeros_before(self, x):
        """What stands before the first x (..., D_in) of a sequence, for :meth:`step`."""
        count, _ = reach(len(self.weight.data), self.dilation, causal=True)
        return array_namespace(x).zeros((*x.shape[:-1], count, x.shape[-1]), dtype=x.dtype)
