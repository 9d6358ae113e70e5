"""Maximum pooling window position by window position, with no array of windows.

The maximum of y and each of the k² positions in turn; in the backward each position in turn takes
dy where it is as large as y, and leaves nothing for the later ones: the first has it all. NaN
equals nothing, so it is looked for where y has one.
"""

import numpy as np

from minitransformer.core.twins import Twin
from minitransformer.layers import pooling as reference
from minitransformer.layers.convolution_2d import window_places


def max_pooling(x, kernel_size, stride=None, padding=0):
    """As the reference."""
    reference.check_padding(kernel_size, padding)
    stride = kernel_size if stride is None else stride
    places = window_places(x.shape, kernel_size, stride, padding)
    around = (padding, padding)
    if padding:
        x = np.pad(x, ((0, 0), around, around, (0, 0)), constant_values=-np.inf)
    y = x[:, *places[0]].copy()  # (B, Y', X', C)
    for place in places[1:]:
        np.maximum(y, x[:, *place], out=y)
    return y, (x, y, places, padding)


def max_pooling_backward(dy, cache):
    """As the reference."""
    x, y, places, padding = cache
    dx, left = np.zeros_like(x), dy.copy()  # (B, Y + 2 p, X + 2 p, C) and (B, Y', X', C)
    has_nan = np.isnan(y).any()
    for place in places:
        is_largest = x[:, *place] == y  # (B, Y', X', C)
        if has_nan:
            is_largest |= np.isnan(x[:, *place])
        taken = left * is_largest
        dx[:, *place] += taken
        left -= taken
    inner = [slice(padding, size - padding) for size in x.shape[1:3]]
    return dx[:, *inner]  # (B, Y, X, C)


reference.max_pooling.twins.setdefault("numpy", Twin(max_pooling, max_pooling_backward))
