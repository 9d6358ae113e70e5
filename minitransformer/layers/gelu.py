"""Gaussian error linear unit, exact and by tanh (Hendrycks and Gimpel 2016).

    y = x Φ(x)        Φ(x) = (1 + erf(x / √2)) / 2

Φ(x) is how likely a normal number is to be less than x: a gate that opens softly, as that of
``silu.py`` does. Derivation. Φ' is the bell curve φ(x) = exp(−x² / 2) / √(2π), so

    dx = dy (Φ(x) + x φ(x))

GPT takes, which is cheaper than erf,

    y ≈ x (1 + tanh u) / 2        u = √(2/π) (x + 0.044715 x³)

whose distance from the exact y is below 5 · 10⁻⁴. With t = tanh u and t' = (1 − t²) u',

    dx = dy ((1 + t) / 2 + x t' / 2)        u' = √(2/π) (1 + 3 · 0.044715 x²)

NumPy has no erf. A wave that jumps between −1 and 1 at every multiple of L has the Fourier series
Σ 4/(πk) sin(kπx/L) over odd k. What a Gaussian blurs, it multiplies by its own transform, and the
blurred jump at 0 is erf:

    erf(x) = Σ_{k odd} 4/(πk) exp(−(kπ / 2L)²) sin(kπx / L)        far from the jumps at ±L

At L = 12 and |x| ≤ 6, whatever is left out is below 10⁻¹⁶: the jumps, the terms from k = 47 on, and
what erf still has to grow beyond 6. That is 23 sines, so exactness has its price.
"""

import math

from minitransformer.core.backend import array_namespace

L = 12.0
SINES = [  # (frequency, amplitude)
    (k * math.pi / L, 4 / (math.pi * k) * math.exp(-((k * math.pi / (2 * L)) ** 2)))
    for k in range(1, 47, 2)
]
ROOT_2_BY_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715


def erf(x):
    """The error function, entry by entry, to about 10⁻¹⁵ in float64."""
    xp = array_namespace(x)
    near = xp.clip(x, -L / 2, L / 2)
    series = sum(amplitude * xp.sin(frequency * near) for frequency, amplitude in SINES)
    return xp.where(x == near, series, near / (L / 2))  # beyond the ends −1 or 1


def gelu(x):
    """Each entry times the probability that a normal number is less.

    Args:
        x: any shape.

    Returns:
        y, of the shape of x, and the cache for the backward.
    """
    gate = 0.5 * (1 + erf(x * math.sqrt(0.5)))
    return x * gate, (x, gate)


def gelu_backward(dy, cache):
    """Gradient dx, of the shape of dy."""
    x, gate = cache
    density = array_namespace(dy).exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return dy * (gate + x * density)


def gelu_by_tanh(x):
    """:func:`gelu` as GPT has it: without erf, and a little off.

    Args:
        x: any shape.

    Returns:
        y, of the shape of x, and the cache for the backward.
    """
    t = array_namespace(x).tanh(ROOT_2_BY_PI * (x + CUBIC * x * x * x))
    return 0.5 * x * (1 + t), (x, t)


def gelu_by_tanh_backward(dy, cache):
    """Gradient dx, of the shape of dy."""
    x, t = cache
    near = array_namespace(dy).clip(x, -L, L)  # whose square is finite; beyond, 1 - t² is 0
    dt = (1 - t * t) * ROOT_2_BY_PI * (1 + 3 * CUBIC * near * near)
    return dy * 0.5 * (1 + t + x * dt)
