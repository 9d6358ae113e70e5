"""Pictures as sequences: patches, their embedding, and a class token (Dosovitskiy et al. 2021).

A picture (Y, X, C) is cut into N = Y/P · X/P squares of P × P places, from left to right and from
top to bottom, and the P·P·C numbers of each, in the order they had, become one row. A linear map
makes of it what a word's embedding is to a sentence (section 3.1, equation 1):

    x_n = patch_n W + b

Derivation. Cutting only moves numbers, each to one place, so its backward moves them back. The
linear map has its own (``linear.py``). A patch and a map of it are a convolution with windows of P
places that do not overlap, their stride being P, too.

The class token c is one trained row that is put before those of each picture, and out of which the
class is read in the end. It serves all pictures:  dc = Σ_pictures dy_0,  and dx are the rows after.
"""

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.layers.linear import Linear


def patches(x, size):
    """Pictures cut into squares.

    Args:
        x: (B, Y, X, C).
        size: P, which Y and X are multiples of.

    Returns:
        the patches (B, N, P·P·C) and the cache for the backward.

    Raises:
        ValueError: the pictures cannot be cut into whole patches.
    """
    batch, height, width, channels = x.shape
    if size < 1 or height % size or width % size:
        raise ValueError(
            f"pictures of {height} x {width} cannot be cut into patches of {size} x {size}; "
            "choose a size that divides both"
        )
    rows, columns = height // size, width // size
    apart = x.reshape(batch, rows, size, columns, size * channels)
    y = apart.swapaxes(2, 3).reshape(batch, rows * columns, size * size * channels)  # (B, N, P·P·C)
    return y, (apart.shape, x.shape)


def patches_backward(dy, cache):
    """Gradient dx (B, Y, X, C)."""
    (batch, rows, size, columns, row_of_patch), x_shape = cache
    dx = dy.reshape(batch, rows, columns, size, row_of_patch).swapaxes(2, 3)
    return dx.reshape(x_shape)  # (B, Y, X, C)


def class_token(x, token):
    """The token (D,) before the rows x (B, N, D) of each picture.

    Returns:
        y (B, N + 1, D) and the cache for the backward, which needs none.

    Raises:
        ValueError: the token is not as wide as x.
    """
    if x.shape[-1:] != token.shape:
        raise ValueError(f"a token of shape {token.shape} does not fit x of shape {x.shape}")
    xp = array_namespace(x)
    first = xp.broadcast_to(token, (len(x), 1, len(token)))  # (B, 1, D)
    return xp.concatenate([first, x], axis=1), None  # (B, N + 1, D)


def class_token_backward(dy, cache):
    """Gradients dx (B, N, D) and dtoken (D,)."""
    return dy[:, 1:], dy[:, 0].sum(axis=0)


class PatchEmbedding(Module):
    """A row of width D for each patch of a picture.

    Args:
        size: P, the patches' height and width.
        channels: C of the pictures.
        d_model: D.
        rng: NumPy generator for the weight.
    """

    def __init__(self, size, channels, d_model, rng):
        self.size = size
        self.linear = Linear(size * size * channels, d_model, rng)

    def forward(self, x):
        y, patches_cache = patches(x, self.size)  # (B, N, P·P·C)
        y, linear_cache = self.linear.forward(y)  # (B, N, D)
        return y, (patches_cache, linear_cache)

    def backward(self, dy, cache):
        patches_cache, linear_cache = cache
        return patches_backward(self.linear.backward(dy, linear_cache), patches_cache)


class ClassToken(Module):
    """Puts its own token, drawn with deviation 0.02, before each sequence."""

    def __init__(self, d_model, rng):
        self.token = Parameter(rng.normal(scale=0.02, size=d_model).astype(np.float32))

    def forward(self, x):
        return class_token(x, self.token.data)

    def backward(self, dy, cache):
        dx, dtoken = class_token_backward(dy, cache)
        self.token.grad += dtoken
        return dx
