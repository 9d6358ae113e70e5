"""Assigned where it should be added to: what is used more than once, and only one use is left."""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import arrays, right, same, trial
from minitransformer.gradcheck.diagnosis.upstream import alone


def overwritten(evidence):
    """Assigned where it should be added to: only what comes last to an entry is left.

    Seen with dy at one index of an axis alone: the last is right, and of the first all is right but
    what later ones replaced by zeros.
    """
    if evidence.slopes or _time_axis(evidence) is not None:
        return ""
    given = arrays(evidence).items()
    masks = {n: np.roll(x, 1, axis=0) for n, x in given if x.dtype == bool and x.ndim}
    moved = trial(evidence, **masks) if masks else evidence
    return _only_one_left(evidence) if moved is None or _only_one_left(moved) else ""


def _only_one_left(evidence):
    dy = evidence.dy
    for axis in range(dy.ndim):
        size = dy.shape[axis]
        if size < 3:
            continue
        for order in (range(size - 1, size - 4, -1), range(3)):
            parts = [trial(evidence, dy=alone(dy, axis, place)) for place in order]
            if None in parts or not right(parts[0]):
                continue
            later = np.zeros(evidence.numeric.shape, bool)
            lost = 0
            for part in parts:
                reached = np.abs(part.numeric) > 10 * part.noise
                left = part.numeric * ~later
                if not same(part.analytic, left, part.noise):
                    break
                lost += (reached & later).any()
                later |= reached
            else:
                if lost:
                    return (
                        f"of what several indices of axis {axis} of dy give to the same entry "
                        "only one is left, as if overwritten: it has to be added up, with +=, or "
                        "a path is missing"
                    )
    return ""


def _time_axis(evidence):
    """The axis of y along which a change of an input is felt later and not earlier, or None."""
    y = evidence.y
    for name, x in arrays(evidence).items():
        if x.dtype != np.float64 or x.ndim < 2 or y.ndim < 2:
            continue
        for axis in (1, 0):
            if axis >= min(x.ndim, y.ndim) or x.shape[axis] != y.shape[axis] or y.shape[axis] < 3:
                continue
            if x.ndim == 2 and axis == 1:
                continue
            early, late = (_changed(evidence, name, x, axis, place) for place in (0, -1))
            if early is None or late is None:
                continue
            if early[-1] and not late[:-1].any():
                return axis
    return None


def _changed(evidence, name, x, axis, place):
    """At which steps y changes when x does at one place."""
    moved = x.copy()
    moved[(slice(None),) * axis + (place,)] += 0.5
    other = trial(evidence, **{name: moved})
    if other is None or other.y.shape != evidence.y.shape:
        return None
    rest = tuple(a for a in range(evidence.y.ndim) if a != axis)
    return (other.y != evidence.y).any(axis=rest)
