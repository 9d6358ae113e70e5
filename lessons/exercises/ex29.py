"""Exercises of lesson 29, seeing. Check yours:  minitransformer check ex29

Shapes: B pictures, Y rows, X columns, C channels, E channels of y, k the size of a window.
"""

import numpy as np

from minitransformer.layers.convolution_2d import convolution_2d


def rows_in_no_window(rows, kernel_size, stride, padding):
    """10 min. How many rows of a picture no window of a convolution sees.

    Args:
        rows: Y, of the picture, without the padding.
        kernel_size, stride, padding: of the windows; padding is less than kernel_size.

    Returns:
        a whole number.

    Hint: windows may be too far apart, and the last one may end too early. Draw eight rows and
    windows of 2 that stand 3 apart.
    """
    raise NotImplementedError


def without_groups(weight, num_groups):
    """25 min. The weight of a convolution without groups that does the same.

    With G groups the first C / G channels of x make the first E / G of y, the next the next, and so
    on. ``convolution_2d(x, without_groups(weight, G))`` must be what
    ``convolution_2d(x, weight, groups=G)`` is.

    Args:
        weight: (k, k, C / G, E).
        num_groups: G.

    Returns:
        (k, k, C, E).

    Hint: which channels of x has channel e of y nothing to do with? How many numbers of the result
    are zeros?
    """
    raise NotImplementedError


def dx_as_a_convolution(dy, weight, shape, stride, padding):
    """45 min. The gradient of a convolution's input, as one convolution of stride 1.

    It must be the dx of ``convolution_2d_backward``. Make an array of dy and zeros, and a kernel of
    the weight; call ``convolution_2d`` once, without a stride. (PyTorch calls that a transposed
    convolution. Networks that make pictures larger have it in their forward.)

    Args:
        dy: (B, Y', X', E).
        weight: (k, k, C, E).
        shape: that of x, (B, Y, X, C).
        stride: s, of the convolution whose gradient it is.
        padding: p, of it, at most k − 1.

    Returns:
        dx, of that shape.

    Hint: with stride 2 there was every second answer of stride 1. What is the gradient of the
    others? Begin with a stride of 1 and no padding: what must stand around dy? And windows may
    leave rows over at the lower end, which need a gradient, too.
    """
    raise NotImplementedError


def rms_pooling(x, kernel_size):
    """45 min, with its backward. Of each window the root of the mean of the squares.

        y = √(mean of x² over the window)

    in each channel for itself, with windows side by side. It lies between the mean and the maximum
    of the sizes |x|.

    Args:
        x: (B, Y, X, C), floating.
        kernel_size: k, a divisor of Y and of X.

    Returns:
        y (B, Y / k, X / k, C) and the cache.

    Hint: a reshape gives every window axes of its own.
    """
    raise NotImplementedError


def rms_pooling_backward(dy, cache):
    """Gradient dx (B, Y, X, C); 0 in a window where all of x is 0.

    Hint: write y² = mean(x²) and take the derivative of both sides. What does one divide by?
    """
    raise NotImplementedError
