"""Sampling: the next token drawn by its probability, which may be sharpened and cut off first.

    p = softmax(logits / τ)    temperature τ: below 1 the probable tokens gain, above 1 the others
    top-k                      only the k most probable ones (Fan, Lewis and Dauphin 2018)
    top-p                      of these, only the fewest that have p together (Holtzman et al. 2020)

With τ → 0 only the most probable token is left.
"""

import numpy as np

from minitransformer.core.errors import DivergedError, require, require_whole
from minitransformer.data.text.vocabulary import NEVER
from minitransformer.decoding.hypothesis import DIVERGED


def sample(logits, rng, *, temperature=1.0, top_k=0, top_p=1.0, never=NEVER):
    """One token.

    Args:
        logits: (V,) on the host.
        rng: a NumPy generator.
        temperature, top_k, top_p, never: as for :func:`sampling_probabilities`.

    Raises:
        ValueError, FloatingPointError: as for :func:`sampling_probabilities`.
    """
    p = sampling_probabilities(logits, temperature, top_k, top_p, never)
    return int(rng.choice(len(p), p=p))


def sampling_probabilities(logits, temperature=1.0, top_k=0, top_p=1.0, never=NEVER):
    """What each token is drawn with: (V,), float64.

    Args:
        logits: (V,) on the host.
        temperature: τ ≥ 0; with 0 the most probable token has 1.
        top_k: k, how many tokens are left; 0 is all of them. Of tokens with equal logits those of
            the smaller id come first.
        top_p: 0 < p ≤ 1.
        never: ids that are not drawn: padding, start and unknown.

    Raises:
        ValueError: one of them is out of range.
        FloatingPointError: the logits have a NaN or are infinite.
    """
    check_sampling(temperature, top_k, top_p)
    if not np.isfinite(logits).all():
        raise DivergedError(DIVERGED)
    logits = logits.astype(np.float64)
    logits[list(never)] = -np.inf
    order = np.argsort(-logits, kind="stable")
    best = logits[order] - logits[order[0]]  # (V,), from 0 downwards
    with np.errstate(over="ignore"):  # to −∞, whose exp is 0
        p = np.exp(best / temperature) if temperature else 1.0 * (np.arange(len(best)) == 0)
    p[top_k or len(p) :] = 0
    p = p / p.sum()
    p[p.cumsum() - p >= top_p] = 0  # those before it have top_p together
    found = np.empty_like(p)
    found[order] = p / p.sum()
    return found


def check_sampling(temperature, top_k, top_p):
    """Raise a ValueError unless these make sense; says what to choose."""
    in_range = 0 <= temperature < np.inf
    require(in_range, f"temperature={temperature} must be a number, 0 or more")
    require_whole("top_k", top_k, least=0)
    require(0 < top_p <= 1, f"top_p={top_p} must lie in 0 < top_p <= 1")
