"""Dropout (section 5.4): zero each entry with probability p, scale the rest by 1 / (1 − p).

The scale keeps the expected value, so at inference nothing is done at all. Derivation: once the
mask is drawn, y = x · m with m ∈ {0, 1 / (1 − p)} is linear, so dx = dy · m with the *same* m.
"""

import numpy as np

from minitransformer.core.twins import twinned


@twinned
def dropout(x, p=0.0, rng=None):
    """Entries of x zeroed at random and the others scaled up; x itself when nothing is to be done.

    Args:
        x: any shape.
        p: probability of zeroing an entry, 0 ≤ p < 1.
        rng: a generator on the device of x (:meth:`Device.generator`), or None at inference. The
            same generator state gives the same mask, whatever the dtype of x.

    Returns:
        y, of the shape of x or x itself, and the cache for the backward.

    Raises:
        ValueError: p is outside [0, 1).
    """
    check_probability(p)
    if rng is None or p == 0:
        return x, None
    keep = rng.random(x.shape, dtype=np.float32) >= p
    scale = 1 / (1 - float(p))  # a NumPy float64 would turn a float32 x into float64
    return x * keep * scale, (keep, scale)


@twinned
def dropout_backward(dy, cache):
    """Gradient dx, of the shape of dy."""
    if cache is None:
        return dy
    keep, scale = cache
    return dy * keep * scale


def check_probability(p):
    """Raise unless an entry may be dropped with probability p."""
    if not 0 <= p < 1:
        raise ValueError(f"dropout probability p={p} must lie in 0 <= p < 1")
