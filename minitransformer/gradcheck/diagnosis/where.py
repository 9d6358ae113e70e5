"""Where a gradient is wrong: what is left to say when no cause explains it."""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    arrays,
    wrong_entries,
)
from minitransformer.gradcheck.diagnosis.pointwise import threshold


def has_gates(evidence):
    """Whether weights hold the gates of a recurrent cell, beside or behind one another.

    The recurrent one is (H, 3 H) or (H, 4 H), or (3, H, H), and another input has its gates, too.
    """
    given = list(arrays(evidence).values())
    for u in given:
        beside = u.ndim == 2 and max(u.shape) in (3 * min(u.shape), 4 * min(u.shape))
        if beside and sum(max(u.shape) in x.shape for x in given) > 1:
            return True
        behind = u.ndim == 3 and len(u) in (3, 4) and u.shape[1] == u.shape[2]
        if behind and sum(len(x) == len(u) and x.ndim in (2, 3) for x in given) > 1:
            return True
    return False


def where(evidence):
    """``N of its N entries are wrong``, and their gate, tap, step, row or side of a threshold."""
    wrong = wrong_entries(evidence)
    text = f"{counted(wrong, evidence.slopes)} are wrong"
    if evidence.slopes or not wrong.ndim:
        return text
    if gate := _gate(evidence, wrong):
        return f"{text}, {gate}"
    for axis in range(wrong.ndim):
        rest = tuple(a for a in range(wrong.ndim) if a != axis)
        places = np.flatnonzero(wrong.any(axis=rest))
        size = wrong.shape[axis]
        listed = ", ".join(str(place) for place in places)
        if wrong.ndim > 1 and (len(places) <= size // 2):
            repeated = _repeated(evidence, axis, places)
            if wrong.ndim == 3 and axis == 0 and size in (3, 4) and has_gates(evidence):
                repeated = f", of the {size} gates"
            return f"{text}, all of them at {listed} on axis {axis}{repeated}"
        if wrong.ndim > 1 and len(places) == size - 1:
            spared = next(i for i in range(size) if i not in places)
            which = ", the last" if spared == size - 1 else ", the first" if spared == 0 else ""
            return f"{text}, none of them at {spared} on axis {axis}{which}"
    side = threshold(evidence.inputs[evidence.name], wrong)
    return f"{text}, all {side}" if side else text


def _repeated(evidence, axis, places):
    """Whether they are the token ids that occur more than once."""
    for name, ids in arrays(evidence).items():
        if axis == 0 and ids.dtype.kind in "iu":
            values, counts = np.unique(ids, return_counts=True)
            if set(places) <= set(values[counts > 1]) and len(places) == (counts > 1).sum():
                return f", which occur more than once in {name}: are their gradients added up?"
    return ""


def _gate(evidence, wrong):
    """Which of the gates that stand beside one another in a recurrent cell's weights."""
    if not evidence.y.ndim or evidence.y.shape[-1] < 2:
        return ""
    hidden = evidence.y.shape[-1]
    for axis in reversed(range(wrong.ndim)):
        for gates in (3, 4):
            if wrong.shape[axis] != gates * hidden:
                continue
            rest = tuple(a for a in range(wrong.ndim) if a != axis)
            columns = wrong.any(axis=rest) if rest else wrong
            bad = np.flatnonzero(columns.reshape(gates, hidden).any(axis=-1))
            if len(bad) == gates:
                return ""
            ordinals = " and ".join(("first", "second", "third", "fourth")[g] for g in bad)
            zero = not evidence.analytic.compress(
                np.repeat(np.isin(range(gates), bad), hidden), axis
            ).any()
            left = ", which are zero: is it left out?" if zero else ""
            return (
                f"all of them in the columns of the {ordinals} of {gates} gates, "
                f"{int(bad[0]) * hidden} to {(int(bad[-1]) + 1) * hidden - 1} on axis {axis}{left}"
            )
    return ""


def counted(wrong, slopes):
    of_all = (
        f"of the slopes along {wrong.size} directions" if slopes else f"of its {wrong.size} entries"
    )
    return f"{np.count_nonzero(wrong)} {of_all}"
