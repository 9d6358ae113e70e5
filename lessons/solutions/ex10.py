"""Solutions of lesson 10, residual connections."""

import numpy as np


def branch_scale(num_blocks, v, growth):
    """s f has the mean square s² v, so (1 + s² v)ⁿ = growth.

    For large n, growth^(1/n) ≈ 1 + ln(growth) / n, and s ≈ √(ln(growth) / (n v)): it falls with the
    root of the depth. Some initialisations divide the last weight of each branch by √n, which is
    this.
    """
    return np.sqrt((growth ** (1 / num_blocks) - 1) / v)


def gated_residual(x, h, alpha):
    return x + alpha * h, (h, alpha)


def gated_residual_backward(dz, cache):
    """α serves every entry, so its gradient is a sum over all.

    At α = 0, dh = 0: nothing inside the sublayer learns in the first step. α does, and from the
    second step on everything does.
    """
    h, alpha = cache
    return dz, alpha * dz, (dz * h).sum()


def reversible_block(x1, x2, f, g):
    y1 = x1 + f[0](x2)[0]
    y2 = x2 + g[0](y1)[0]
    return y1, y2


def reversible_block_backward(y1, y2, dy1, dy2, f, g):
    """The memory for activations is that of one block; the price is one more forward.

    In floating point x comes back with rounding errors, which grow with the depth; they must stay
    small against what float32 resolves anyway.
    """
    f_forward, f_backward = f
    g_forward, g_backward = g
    h, g_cache = g_forward(y1)
    x2 = y2 - h
    dy1 = dy1 + g_backward(dy2, g_cache)  # y1 is an output, and the input of g
    h, f_cache = f_forward(x2)
    x1 = y1 - h
    dx2 = dy2 + f_backward(dy1, f_cache)
    return x1, x2, dy1, dx2
