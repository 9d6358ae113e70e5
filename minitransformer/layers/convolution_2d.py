"""Two-dimensional convolution over pictures, with stride, padding, dilation and groups.

    y_{u,v} = b + Σ_{i,j} x_{u s + i δ − p, v s + j δ − p} W_{i,j}          taps i, j = 0 … k − 1

Around the picture lie p rows and columns of zeros. Stride s leaves windows out, dilation δ spreads
the taps of each. So Y rows become Y' = ⌊(Y + 2 p − δ (k − 1) − 1) / s⌋ + 1; what is left over at
the lower and the right edge stands in no window. With G groups the channels are cut into G equal
parts, and each part of y sees its own part of x alone: AlexNet's two towers have G = 2 (Krizhevsky
et al. 2012, section 3.5), a depthwise convolution a group for each channel. LeCun et al. (1989)
convolved pictures.

Derivation. As over time (``convolution.py``), the k² positions in a window, side by side, are one
row c of a matrix, and y = c W + b is a linear map of it, where W has the k² matrices W_{i,j} one
above the other. ``linear.py`` has, of all N windows of all pictures,

    dW = cᵀ dy        dc = dy Wᵀ        db = column sums of dy

and each group its own. A position stands in several windows; its gradient is the sum over them:

    dx_{m,n} = Σ_{i,j} dc_{u,v,i,j} = Σ_{i,j} dy_{u,v} W_{i,j}ᵀ
                                    where u s + i δ − p = m and v s + j δ − p = n

With stride 1 that is again a convolution, of dy with the kernel turned by half a turn.

In the shapes below pictures are (B, Y, X, C), Y rows and X columns of C channels; k is the size of
a window, E the channels of y, N = B Y' X', c = C / G and e = E / G.
"""

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.core.twins import twinned
from minitransformer.layers.first_weights import first_weight


@twinned
def convolution_2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Each window's linear map of the k × k positions that it covers.

    Args:
        x: (B, Y, X, C).
        weight: (k, k, C / G, E), the tap of the upper left corner first.
        bias: (E,) or None.
        stride: s, how far it is from one window to the next, down and to the right.
        padding: p, how many rows and columns of zeros lie on each of the four sides.
        dilation: δ, the distance between two taps, 1 for neighbours.
        groups: G, a divisor of C and E.

    Returns:
        y (B, Y', X', E) and the cache for the backward, in which x is held k² times.

    Raises:
        ValueError: x does not fit the weight, or as for :func:`check_groups` and
            :func:`windows_2d`.
    """
    check_channels(x, weight, groups)
    seen, windows_cache = windows_2d(x, len(weight), stride, padding, dilation)
    kernels = apart(weight, groups)  # (G, k² c, e)
    rows = apart(seen, groups).reshape(groups, -1, kernels.shape[1])  # (G, N, k² c)
    y = together(rows @ kernels, (*seen.shape[:3], weight.shape[-1]))  # (B, Y', X', E)
    y = y if bias is None else y + bias
    return y, (bias, weight.shape, seen.shape, windows_cache, kernels, rows)


@twinned
def convolution_2d_backward(dy, cache):
    """Gradients dx (B, Y, X, C), dweight (k, k, C / G, E) and dbias (E,) or None."""
    bias, weight_shape, seen_shape, windows_cache, kernels, rows = cache
    groups, c = len(kernels), weight_shape[2]
    dbias = None if bias is None else dy.sum(axis=(0, 1, 2))  # (E,)
    dy = apart(dy, groups)  # (G, N, e)
    dkernels = rows.swapaxes(1, 2) @ dy  # (G, k² c, e)
    drows = dy @ kernels.swapaxes(1, 2)  # (G, N, k² c)
    dseen = together(drows.reshape(groups, -1, c), seen_shape)  # (B, Y', X', k², C)
    dx = windows_2d_backward(dseen, windows_cache)  # (B, Y, X, C)
    return dx, together(dkernels, weight_shape), dbias


def apart(x, groups):
    """The channels of each group for themselves: (..., G c) as (G, n, c)."""
    return x.reshape(-1, groups, x.shape[-1] // groups).swapaxes(0, 1)


def together(x, shape):
    """The inverse of :func:`apart`: (G, n, c) as ``shape``, (..., G c)."""
    return x.swapaxes(0, 1).reshape(shape)


def windows_2d(x, kernel_size, stride=1, padding=0, dilation=1, around=0.0):
    """The k² positions that each window covers, row by row from its upper left corner.

    Args:
        x: (B, Y, X, C).
        kernel_size, stride, padding, dilation: as for :func:`convolution_2d`.
        around: what stands in the padding.

    Returns:
        the windows (B, Y', X', k², C) and the cache for the backward.

    Raises:
        ValueError: as for :func:`window_places`.
    """
    places = window_places(x.shape, kernel_size, stride, padding, dilation)
    batch, height, columns, channels = x.shape
    inner = slice(padding, padding + height), slice(padding, padding + columns)
    xp = array_namespace(x)
    padded_shape = batch, height + 2 * padding, columns + 2 * padding, channels
    padded = xp.full(padded_shape, around, dtype=x.dtype)
    padded[:, *inner] = x  # (B, Y + 2 p, X + 2 p, C)
    seen = xp.stack([padded[:, rows, columns] for rows, columns in places], axis=3)
    return seen, (places, inner, padded_shape)  # (B, Y', X', k², C)


def windows_2d_backward(dseen, cache):
    """Gradient dx (B, Y, X, C): the sum over all windows in which a position stands."""
    places, inner, padded_shape = cache
    dpadded = array_namespace(dseen).zeros(padded_shape, dtype=dseen.dtype)
    for tap, (rows, columns) in enumerate(places):
        dpadded[:, rows, columns] += dseen[..., tap, :]  # (B, Y', X', C)
    return dpadded[:, *inner]  # (B, Y, X, C)


def window_places(shape, kernel_size, stride=1, padding=0, dilation=1):
    """Where in the padded pictures each of the k² taps stands: (rows, columns), two slices.

    Raises:
        ValueError: pictures have not four axes; a window does not fit into the padded picture; or
            as for :func:`check_windows`.
    """
    if len(shape) != 4:
        raise ValueError(f"pictures are (batch, rows, columns, channels); these are {shape}")
    check_windows(kernel_size, stride, padding, dilation)
    span = (kernel_size - 1) * dilation + 1
    padded = [size + 2 * padding for size in shape[1:3]]
    if min(padded) < span:
        raise ValueError(
            f"a window of kernel_size={kernel_size} and dilation={dilation} covers {span} × {span} "
            f"positions; pictures of {shape[1]} × {shape[2]} with padding={padding} have "
            f"{padded[0]} × {padded[1]}"
        )
    rows, columns = (
        [slice(tap, tap + size - span + 1, stride) for tap in range(0, span, dilation)]
        for size in padded
    )
    return [(row, column) for row in rows for column in columns]


def check_windows(kernel_size, stride, padding, dilation):
    """Raise unless there can be such windows.

    Raises:
        ValueError: kernel_size, stride or dilation is less than 1, or padding than 0.
    """
    if min(kernel_size, stride, dilation) < 1 or padding < 0:
        raise ValueError(
            f"kernel_size={kernel_size}, stride={stride} and dilation={dilation} must be 1 or "
            f"more, and padding={padding} must be 0 or more"
        )


def check_channels(x, weight, groups):
    """Raise unless each group has its channels in x and in the weight, whose windows are square."""
    if weight.shape[0] != weight.shape[1]:
        raise ValueError(
            f"a weight of shape {weight.shape} has no square windows: "
            "its first two axes must be equal"
        )
    c_in = weight.shape[2] * groups
    check_groups(c_in, weight.shape[3], groups)
    if x.shape[-1] != c_in:
        raise ValueError(
            f"x of shape {x.shape} does not fit a weight of shape {weight.shape} with "
            f"groups={groups}: its last axis must be {c_in}"
        )


def check_groups(c_in, c_out, groups):
    """Raise unless the groups divide both numbers of channels.

    Raises:
        ValueError: they do not.
    """
    if groups < 1 or c_in % groups or c_out % groups:
        raise ValueError(
            f"groups={groups} must divide the channels of input and output, {c_in} and {c_out}"
        )


class Convolution2d(Module):
    """A convolution with its own weight, drawn as ``start`` says, and a bias of zeros.

    Args:
        c_in, c_out: C and E, channels of input and output.
        kernel_size: k, how many rows and columns a window covers.
        rng: NumPy generator for the weight.
        stride, padding, dilation, groups: as for :func:`convolution_2d`.
        bias: whether there is one.
        start: a name in ``STARTS`` of ``first_weights.py``.

    Raises:
        ValueError: as for :func:`check_windows`, :func:`check_groups` and :func:`first_weight`.
    """

    def __init__(
        self,
        c_in,
        c_out,
        kernel_size,
        rng,
        *,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        start="he",
    ):
        check_windows(kernel_size, stride, padding, dilation)
        check_groups(c_in, c_out, groups)
        fan_in, fan_out = kernel_size**2 * c_in // groups, kernel_size**2 * c_out // groups
        shape = kernel_size, kernel_size, c_in // groups, c_out  # (k, k, C / G, E)
        self.weight = Parameter(first_weight(start, shape, fan_in, fan_out, rng))
        self.bias = Parameter(np.zeros(c_out, dtype=np.float32)) if bias else None
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups

    def forward(self, x):
        bias = None if self.bias is None else self.bias.data
        how = self.stride, self.padding, self.dilation, self.groups
        return convolution_2d(x, self.weight.data, bias, *how)

    def backward(self, dy, cache):
        dx, dweight, dbias = convolution_2d_backward(dy, cache)
        self.weight.grad += dweight
        if self.bias is not None:
            self.bias.grad += dbias
        return dx
