"""The shortcut A of residual networks (He et al. 2016, section 3.3): no weights, and zeros.

    y[b, i, j, c] = x[b, s i, s j, c]    for c < C        y[b, i, j, c] = 0    for C ≤ c < E

It brings x to the size of what it is added to, where a block has a stride s or E channels in place
of C. Derivation. Each y is one x or none: what is left out of x has gradient 0, and the zeros hand
theirs to nobody.

``B`` batch, ``Y`` rows, ``X`` columns; Y' and X' are those of y.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module


def zero_padded_shortcut(x, c_out, stride=1):
    """x at one of ``stride`` positions each way, and zeros in channels that it has not.

    Args:
        x: (B, Y, X, C).
        c_out: E, at least C.
        stride: s, from one position that is taken to the next.

    Returns:
        y (B, Y', X', E) and the cache for the backward.
    """
    taken = x[:, ::stride, ::stride]  # (B, Y', X', C)
    y = array_namespace(x).zeros((*taken.shape[:3], c_out), dtype=x.dtype)
    y[..., : x.shape[-1]] = taken
    return y, (x.shape, stride)


def zero_padded_shortcut_backward(dy, cache):
    """Gradient dx (B, Y, X, C)."""
    x_shape, stride = cache
    dx = array_namespace(dy).zeros(x_shape, dtype=dy.dtype)
    dx[:, ::stride, ::stride] = dy[..., : x_shape[-1]]
    return dx


class ZeroPaddedShortcut(Module):
    """The shortcut A of a block with this stride and so many channels."""

    def __init__(self, c_out, stride):
        self.c_out = c_out
        self.stride = stride

    def forward(self, x, rng=None):
        return zero_padded_shortcut(x, self.c_out, self.stride)

    def backward(self, dy, cache):
        return zero_padded_shortcut_backward(dy, cache)
