"""Pooling: of each window of a picture its maximum or its mean, channel by channel.

    maximum    y = max_i x_i        average    y = (1/k²) Σ_i x_i        positions i = 1 … k²

Windows are those of a convolution (``convolution_2d.py``); with a size above the stride they
overlap, as AlexNet's of 3 by 2 do (Krizhevsky et al. 2012, section 3.4). Neither has a parameter.
Global average pooling has one window, the picture (Lin, Chen and Yan 2014, section 3.2).

Derivation. A maximum moves as the entry that it is, and with no other:

    dx_i = dy [i is the place of the maximum]        average:  dx_i = dy / k²

summed over the windows in which a position stands. Where several entries of a window are the
largest, the maximum has no derivative; the whole of dy goes to the first of them in reading order,
as in PyTorch.

Around the picture a maximum sees −∞, which is never the largest of finite entries, and an average
zeros, which count among the k².
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import twinned
from minitransformer.layers.convolution_2d import windows_2d, windows_2d_backward


@twinned
def max_pooling(x, kernel_size, stride=None, padding=0):
    """The largest entry of each window.

    Args:
        x: (B, Y, X, C), floating.
        kernel_size: k, how many rows and columns a window covers.
        stride: from one window to the next; None is their size, so that none overlap.
        padding: how many rows and columns of −∞ lie on each of the four sides.

    Returns:
        y (B, Y', X', C) and the cache for the backward.

    Raises:
        ValueError: as for :func:`check_padding` and :func:`windows_2d`.
    """
    check_padding(kernel_size, padding)
    stride = kernel_size if stride is None else stride
    seen, windows_cache = windows_2d(x, kernel_size, stride, padding, around=float("-inf"))
    place = seen.argmax(axis=3)  # (B, Y', X', C), the first of several
    return seen.max(axis=3), (place, kernel_size, windows_cache)


@twinned
def max_pooling_backward(dy, cache):
    """Gradient dx (B, Y, X, C)."""
    place, kernel_size, windows_cache = cache
    xp = array_namespace(dy)
    is_largest = xp.arange(kernel_size**2)[:, None] == place[:, :, :, None]  # (B, Y', X', k², C)
    return windows_2d_backward(dy[:, :, :, None] * is_largest, windows_cache)  # (B, Y, X, C)


def average_pooling(x, kernel_size, stride=None, padding=0):
    """The mean of each window, where what lies around the picture counts as zeros.

    Args, returns and errors: as for :func:`max_pooling`, but with padding of zeros.
    """
    check_padding(kernel_size, padding)
    stride = kernel_size if stride is None else stride
    seen, windows_cache = windows_2d(x, kernel_size, stride, padding)  # (B, Y', X', k², C)
    return seen.mean(axis=3), (seen.shape, windows_cache)  # (B, Y', X', C)


def average_pooling_backward(dy, cache):
    """Gradient dx (B, Y, X, C)."""
    seen_shape, windows_cache = cache
    dseen = array_namespace(dy).broadcast_to(dy[:, :, :, None] / seen_shape[3], seen_shape)
    return windows_2d_backward(dseen, windows_cache)  # (B, Y, X, C)


def global_average_pooling(x):
    """The mean over the picture: x (B, Y, X, C) gives y (B, C) and the cache for the backward."""
    return x.mean(axis=(1, 2)), x.shape  # (B, C)


def global_average_pooling_backward(dy, cache):
    """Gradient dx (B, Y, X, C)."""
    _, height, columns, _ = cache
    of_each = dy[:, None, None] / (height * columns)  # (B, 1, 1, C)
    return array_namespace(dy).broadcast_to(of_each, cache).copy()  # (B, Y, X, C), to write to


def check_padding(kernel_size, padding):
    """Raise where a window could lie in the padding alone.

    Raises:
        ValueError: padding is more than half of kernel_size.
    """
    if padding > kernel_size // 2:
        raise ValueError(
            f"padding={padding} must be at most half of kernel_size={kernel_size}, "
            f"{kernel_size // 2}: a window in the padding alone would pool nothing"
        )
