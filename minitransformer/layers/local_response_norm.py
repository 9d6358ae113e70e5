"""Local response normalisation across channels (Krizhevsky, Sutskever and Hinton 2012, 3.3).

    y_i = x_i / s_i^β        s_i = k + α Σ_{j near i} x_j²

where near means at most (n − 1) / 2 channels away, n in all but at the edges, at the same place of
the same picture. Channels that are strong together dampen one another.

Derivation. x_j moves y_j directly, and through its square every y_i that it is near to:

    ∂y_i/∂x_j = [i = j] s_i^−β − 2 α β x_i s_i^(−β − 1) x_j [j near i]

With x_i s_i^−β = y_i, and as i is near j where j is near i,

    dx_j = dy_j s_j^−β − 2 α β x_j Σ_{i near j} dy_i y_i / s_i

The same sum over near channels, once of x² and once of dy y / s. PyTorch's layer of this name has
the mean of the n squares for their sum: its α is n times this one.
"""

from minitransformer.core.backend import array_namespace


def local_response_norm(x, size=5, alpha=1e-4, beta=0.75, k=2.0):
    """Each channel divided by a power of the squares near it; the defaults are the paper's.

    Args:
        x: (..., C).
        size: n, how many channels are near to one, itself included.
        alpha, beta, k: numbers, as in the formula.

    Returns:
        y (..., C) and the cache for the backward.

    Raises:
        ValueError: size is even or less than 1, so that there is no channel in the middle.
    """
    if size < 1 or size % 2 == 0:
        raise ValueError(f"size={size} must be odd and 1 or more, with one channel in the middle")
    s = k + alpha * sum_of_near(x * x, size)
    power = s**-beta
    return x * power, (x, s, power, (size, alpha, beta))


def local_response_norm_backward(dy, cache):
    """Gradient dx (..., C)."""
    x, s, power, (size, alpha, beta) = cache
    through_s = sum_of_near(dy * x * power / s, size)
    return dy * power - 2 * alpha * beta * x * through_s


def sum_of_near(x, size):
    """Of each entry of the last axis the sum of ``size``, which it is the middle of, (..., C)."""
    xp = array_namespace(x)
    channels = x.shape[-1]
    edge = xp.zeros((*x.shape[:-1], size // 2), dtype=x.dtype)
    padded = xp.concatenate([edge, x, edge], axis=-1)
    return sum(padded[..., start : start + channels] for start in range(size))
