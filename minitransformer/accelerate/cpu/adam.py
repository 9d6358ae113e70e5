"""Adam in chunks that stay in the cache, with everything constant folded into four numbers.

    m ← β₁ m + (a g)           a = (1 − β₁) · scale
    v ← β₂ v + (b g)²          b = √(1 − β₂) · scale
    θ ← θ − c m / (√v + d)     d = ε √(1 − β₂ᵗ)        c = η √(1 − β₂ᵗ) / (1 − β₁ᵗ)

which is the same as with m̂ and v̂, multiplied through by √(1 − β₂ᵗ).
"""

import math

import numpy as np

from minitransformer.core.twins import Twin
from minitransformer.optim import adam as reference

CHUNK = 1 << 15  # entries; six arrays of them fit into the second-level cache


def adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale=1.0):
    """As the reference."""
    scale = float(scale)
    root = math.sqrt(1 - beta_2**t)
    a = (1 - beta_1) * scale
    b = math.sqrt(1 - beta_2) * scale
    c = learning_rate * root / (1 - beta_1**t)
    d = epsilon * root
    scratch = np.empty(min(CHUNK, len(data)), data.dtype)
    for start in range(0, len(data), CHUNK):
        part = slice(start, start + CHUNK)
        g, m_part, v_part = grad[part], m[part], v[part]
        s = scratch[: len(g)]
        m_part *= beta_1
        m_part += np.multiply(g, a, out=s)
        v_part *= beta_2
        np.multiply(g, b, out=s)
        v_part += np.square(s, out=s)
        np.sqrt(v_part, out=s)
        s += d
        np.divide(m_part, s, out=s)
        s *= c
        data[part] -= s


reference.adam_update.twins.setdefault("numpy", Twin(adam_update))
