"""Where a gradient is wrong: what is left to say when no cause explains it."""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import arrays, wrong_entries
from minitransformer.gradcheck.diagnosis.factors import off_by, ratio
from minitransformer.gradcheck.diagnosis.pointwise import threshold


def where(evidence):
    """``N of its N entries are wrong``, and on which slices or side of a threshold they are."""
    wrong = wrong_entries(evidence)
    text = f"{counted(wrong, evidence.slopes)} are wrong"
    if evidence.slopes or not wrong.ndim:
        return text
    if wrong.ndim > 1 and (places := slices(wrong)):
        factor = ratio(evidence.analytic[wrong], evidence.numeric[wrong], evidence.noise[wrong])
        there = f": there {off_by(factor)}" if factor and wrong.sum() > 2 else ""
        return f"{text}, {places}{_repeated(evidence, wrong) or there}"
    side = threshold(evidence.inputs[evidence.name], wrong, evidence.name)
    return f"{text}, all {side}" if side else text


def slices(wrong, whole=False):
    """``all of them at 0 to 3 on axis 1``, ``none of them at 0 on axis 0, the first``; or empty.

    Args:
        whole: whether all entries there have to be wrong.
    """
    for axis, size in enumerate(wrong.shape):
        rest = tuple(a for a in range(wrong.ndim) if a != axis)
        some = wrong.any(axis=rest)
        if whole and not np.array_equal(some, wrong.all(axis=rest)):
            continue
        spared = size > 2 and some.sum() == size - 1
        at = np.flatnonzero(some != spared)
        ends = {0: ", the first", size - 1: ", the last"}.get(at[0], "") if len(at) == 1 else ""
        together = 2 < len(at) < size and at[-1] - at[0] == len(at) - 1
        if len(at) and (spared or together or len(at) <= size // 2):
            listed = f"{at[0]} to {at[-1]}" if together else ", ".join(map(str, at))
            return f"{'none' if spared else 'all'} of them at {listed} on axis {axis}{ends}"
    return ""


def _repeated(evidence, wrong):
    """Whether the wrong rows are those of the token ids that occur more than once."""
    places = np.flatnonzero(wrong.any(axis=tuple(range(1, wrong.ndim))))
    for name, ids in arrays(evidence).items():
        if ids.dtype.kind in "iu":
            values, counts = np.unique(ids, return_counts=True)
            if np.array_equal(places, values[counts > 1]):
                return f", which occur more than once in {name}: are their gradients added up?"
    return ""


def counted(wrong, slopes):
    every = f"the slopes along {wrong.size} directions" if slopes else f"its {wrong.size} entries"
    return f"{np.count_nonzero(wrong)} of {every}"
