"""Solutions of lesson 31, a picture is a sentence of patches."""

import numpy as np


def finest_patches(side, d_model, d_ff):
    """With n tokens the pairs take 2 n² D, all else n (4 D² + 2 D F): so n may be 2 D + F.

    The number of heads does not matter: H heads of width D/H take as much as one of width D. For
    D = 768 and F = 3072, as in the smallest network of Dosovitskiy and others, 4608 tokens may be:
    pairs are not what their 197 tokens cost.
    """
    for size in range(1, side + 1):
        if side % size == 0 and 1 + (side // size) ** 2 <= 2 * d_model + d_ff:
            return size
    return side


def masked_patches(x, hidden, token):
    return np.where(hidden[..., None], token, x), hidden


def masked_patches_backward(dy, cache):
    """What is hidden moves nothing. The token stands in many places, so it gets a sum over them."""
    hidden = cache
    dx = np.where(hidden[..., None], 0.0, dy)
    return dx, dy[hidden].sum(axis=0)  # (B, N, D) and (D,)


def weights_for_mirrored(weight, table, size, columns):
    """A mirror turns the columns of patches round, and within each patch the columns of pixels.

    The class token is no place, and has no mirror image.
    """
    d_model = weight.shape[1]
    in_patch = weight.reshape(size, size, -1, d_model)  # (P, P, C, D)
    on_grid = table[1:].reshape(-1, columns, d_model)  # (rows, columns, D)
    turned = on_grid[:, ::-1].reshape(-1, d_model)
    return in_patch[:, ::-1].reshape(weight.shape), np.concatenate([table[:1], turned])


def larger_positions(table, old, new):
    """Dosovitskiy and others do it to go on with larger pictures (section 3.2)."""
    weights = []
    for before, after in zip(old, new, strict=True):
        middles = np.clip((np.arange(after) + 0.5) * before / after - 0.5, 0, before - 1)
        weights.append(np.maximum(0, 1 - abs(middles[:, None] - np.arange(before))))  # (n', n)
    grid = table[1:].reshape(*old, -1)  # (rows, columns, D)
    grid = np.einsum("ui,vj,ijd->uvd", *weights, grid)
    return np.concatenate([table[:1], grid.reshape(new[0] * new[1], -1)])
