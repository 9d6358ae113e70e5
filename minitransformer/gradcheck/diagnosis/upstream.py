"""Mistakes about dy: a backward is linear in it, so it is tried with others."""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import arrays, right, same, trial
from minitransformer.gradcheck.diagnosis.where import where


def not_linear(evidence):
    """dy forgotten, used twice, made positive, or clipped; or something added without it."""
    once, other = evidence.analytic, trial(evidence, dy=-2 * evidence.dy)
    if other is None or same(other.analytic, -2 * once):
        return ""
    if same(other.analytic, once):
        ones = trial(evidence, dy=np.ones_like(evidence.dy))
        if ones is not None and right(ones):
            return "dy is forgotten: it is right only where dy is 1; it has to be multiplied by dy"
        return "dy is forgotten: it is the same for every dy, and has to be linear in dy"
    if same(other.analytic, 4 * once):
        return "dy is used twice: it is 4 times as large for 2 dy"
    if same(other.analytic, 2 * once):
        return "the sign of dy is lost: it is the same for −dy"
    if same(other.analytic, -once / 2):
        return "it is divided by dy; it has to be multiplied by it"
    return _added(evidence) or (
        "it is not linear in dy, as the sum over the outputs must be: is dy clipped, squared, or "
        "part of a condition?"
    )


def _added(evidence):
    """A term without dy, as of weight decay."""
    none = trial(evidence, dy=np.zeros_like(evidence.dy))
    if none is None or not none.analytic.any():
        return ""
    added = none.analytic
    if not same(evidence.analytic - added, evidence.numeric, evidence.noise):
        if not added.all() and not evidence.slopes and same(*_without(evidence, added != 0)):
            return f"{where(evidence)}; what stands there does not change with dy"
        return "a part of it does not change with dy: dy is forgotten in one of its terms"
    for name, x in {**arrays(evidence), "y": evidence.y}.items():
        if x.shape == added.shape and x.any():
            factor = float((added * x).sum() / (x * x).sum())
            if same(added, factor * x):
                decay = ", as of weight decay" if name == evidence.name else ""
                return f"a term without dy is added to it: {factor:.6g} times {name}{decay}"
    if not evidence.slopes and not evidence.numeric[added != 0].any():
        return "a term without dy leaks to where it should be zero: a mask is missing or misplaced"
    return "a term without dy is added to it; without that it is right"


def _without(evidence, places):
    return evidence.analytic[~places], evidence.numeric[~places]


def only_some_of_dy(evidence):
    """Only the first or the last step, sentence, ... of dy used, or all but that one."""
    for axis, size in enumerate(evidence.dy.shape):
        if size < 2:
            continue
        for place, which in ((0, "first"), (size - 1, "last")):
            part = trial(evidence, dy=alone(evidence.dy, axis, place))
            if part is None or not part.numeric.any():
                continue
            only = same(evidence.analytic, part.numeric, evidence.noise)
            if only and _with_other_masks(evidence, axis, place):
                return (
                    f"it sums over the {which} index of axis {axis} of dy only, {place}, and not "
                    f"over all {size}"
                )
            without = same(evidence.analytic, evidence.numeric - part.numeric, evidence.noise)
            if without and _with_other_masks(evidence, axis, place, True):
                return f"index {place} of axis {axis} of dy, the {which}, is left out"
    return ""


def _with_other_masks(evidence, axis, place, without=False):
    """Whether that is so, too, where masks and ids, which may have the same effect, are moved."""
    given = arrays(evidence).items()
    moved = {n: np.roll(x, 1, axis=0) for n, x in given if x.dtype.kind in "iub" and x.ndim}
    if not moved:
        return True
    whole = trial(evidence, **moved)
    part = trial(evidence, dy=alone(evidence.dy, axis, place), **moved)
    if whole is None or part is None:
        return True
    wanted = whole.numeric - part.numeric if without else part.numeric
    return same(whole.analytic, wanted, whole.noise)


def alone(dy, axis, place):
    """dy at one index of an axis, and zero elsewhere."""
    chosen = np.zeros_like(dy)
    index = (slice(None),) * axis + (place,)
    chosen[index] = dy[index]
    return chosen
