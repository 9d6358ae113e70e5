"""Solutions of lesson 16, words and errors."""

import numpy as np


def plausible_shares(right, n, z=2.0):
    """(r − p)² = z² p (1 − p) / n is (1 + c) p² − (2 r + c) p + r² = 0 with c = z² / n.

    The middle is (r + c / 2) / (1 + c): as if z² more sentences had come out, half of them right.
    Four right of four say that p may be as low as n / (n + z²) = 1/2, and the ends never leave
    [0, 1].
    """
    r, c = right / n, z**2 / n
    middle = (r + c / 2) / (1 + c)
    half = np.sqrt(c * r * (1 - r) + c**2 / 4) / (1 + c)
    return middle - half, middle + half


def best_temperature(logits, labels):
    """∂/∂β log Σ_v exp(β z_v) = Σ_v p_v z_v, so the slope is mean(Σ_v p_v z_v − z_label).

    Differentiated once more, Σ_v p_v z_v gives the variance of z under p: never negative, so the
    loss is convex, its slope grows with β, and halving an interval finds the zero.
    """
    z = logits - logits.max(axis=-1, keepdims=True)  # (N, V), at most 0
    of_labels = z[np.arange(len(labels)), labels].mean()

    def slope(beta):
        p = np.exp(beta * z)
        p /= p.sum(axis=-1, keepdims=True)
        return (p * z).sum(axis=-1).mean() - of_labels

    low, high = 1 / 100, 100.0
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return 1 / np.sqrt(low * high)
