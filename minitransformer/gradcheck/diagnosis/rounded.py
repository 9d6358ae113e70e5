"""Right but for its last digits: computed in fewer bits on the way, or with a constant cut short.

Where all numbers move by less than the spacing of those few bits, the error of what is rounded is
quite another; that of a constant that is not exact is the same.
"""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import arrays, same, trial

SPACINGS = {"float32": 2.0**-23, "float16": 2.0**-10}
FAR = 4, 0.01  # spacings that the gradient is off by at most, and at least


def imprecise(evidence):
    """float16 or float32 inside, where experiments show it; else a constant that is not exact."""
    size = np.abs(evidence.numeric).max(initial=0)
    if not size or not np.isfinite(evidence.analytic).all():
        return ""
    off = np.abs(evidence.analytic - evidence.numeric)
    error, everywhere = off.max() / size, bool((off < np.abs(evidence.numeric) / 4).all())
    for name, spacing in SPACINGS.items():
        near = everywhere and FAR[1] * spacing < error < FAR[0] * spacing
        if near and _erratic(evidence, 0.7 * spacing):
            return f"it agrees to {error:.0e} only: something is rounded to {name} on the way"
    if not same(evidence.analytic, evidence.numeric, evidence.noise):
        return ""
    return f"it agrees to {error:.0e} only: is a constant not exact?"


def _erratic(evidence, by):
    """Whether the error is another one where the inputs and dy are larger by so little."""
    floats = {name: x for name, x in arrays(evidence).items() if x.dtype == np.float64}
    moved = {name: x * (1 + by) for name, x in floats.items()}
    other = trial(evidence, dy=evidence.dy * (1 + by), **moved)
    if other is None:
        return False
    first, second = (e.analytic - e.numeric for e in (evidence, other))
    return bool(np.linalg.norm(second - first) > np.linalg.norm(first) / 4)
