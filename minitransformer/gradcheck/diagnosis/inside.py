"""Mistakes further inside, seen on inputs for which they do not matter."""

from itertools import combinations

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    arrays,
    others,
    right,
    same,
    trial,
    wrong_entries,
)
from minitransformer.gradcheck.diagnosis.steps import time_axis
from minitransformer.gradcheck.diagnosis.where import has_gates


def inner_derivative(evidence):
    """Right where all sums inside are 0: tanh′ is 1 there, and may be left out unseen."""
    more = {name: a for name, a in others(evidence).items() if a.any()}
    if evidence.y.ndim == 0 or has_gates(evidence):
        return ""
    given = {evidence.name: evidence.inputs[evidence.name], **more}
    if not any(a.ndim == 2 and len(a) != len(evidence.y) for a in given.values()):
        return ""  # no weights, so nothing inside is a sum
    flat = [name for name, a in more.items() if a.ndim == 1]
    deep = [name for name, a in more.items() if a.ndim > 1]
    for count in range(3):
        for chosen in combinations(deep, count):
            names = (evidence.name, *flat, *chosen)
            zeros = {name: np.zeros_like(np.asarray(evidence.inputs[name])) for name in names}
            other = trial(evidence, **zeros)
            if other is None or not (np.abs(other.numeric) > 10 * other.noise).any():
                continue
            listed = " and ".join(names)
            are = "are" if len(names) > 1 else "is"
            if right(other):
                return (
                    f"it is right where {listed} {are} 0: is an inner derivative missing or wrong "
                    "that is 1 there, such as tanh′ = 1 − h²?"
                )
            if same(other.analytic, 4 * other.numeric, 4 * other.noise):
                return (
                    f"it is 4 times too large where {listed} {are} 0: is an inner derivative "
                    "missing that is ¼ there, such as σ′ = h (1 − h)?"
                )
    return ""


def within_itself(evidence):
    """Right as soon as this input is zero at some step, or there is but one step or one row."""
    x = evidence.inputs[evidence.name]
    for name, value in arrays(evidence).items():
        if value.dtype != np.float64 or value.ndim < 2 + (name == evidence.name):
            continue
        for axis in range(value.ndim - 1):
            size = value.shape[axis]
            if not 2 <= size <= 8:
                continue
            for place in (0, size - 1):
                changed = value.copy()
                changed[(slice(None),) * axis + (place,)] = 0
                other = trial(evidence, **{name: changed})
                if other is not None and right(other):
                    which = "first" if place == 0 else "last"
                    return (
                        f"it is right where {name} is 0 at {place} on axis {axis}, the {which}: "
                        "that one is left out or wrong"
                    )
    return _short(evidence, x)


def _short(evidence, x):
    """Right for one sentence, or for one step."""
    given = arrays(evidence)
    wrong = None if evidence.slopes else wrong_entries(evidence)
    sizes = dict.fromkeys(n for a in given.values() if a.ndim > 1 for n in a.shape if n > 1)
    for size in sizes:
        for axis in range(3):
            cut = [
                name
                for name, a in given.items()
                if a.ndim > axis and a.shape[axis] == size and (a.ndim > 2 or axis == 0)
            ]
            if not cut or all(given[name].ndim < 2 for name in cut):
                continue
            place = 0
            if wrong is not None and evidence.name in cut:  # one that is wrong beside the others
                rest = tuple(a for a in range(wrong.ndim) if a != axis)
                place = int(wrong.sum(axis=rest).argmax())
            changed = {name: given[name].take([place], axis=axis) for name in cut}
            other = evidence.again({**evidence.inputs, **changed}, None)
            if other is not None and other.analytic.shape == other.numeric.shape and right(other):
                names = " and ".join(cut)
                if time_axis(evidence) == axis or _order_matters(evidence, axis):
                    return (
                        "it is right for one step: what is carried back from step to step, or the "
                        "sum over the steps, is missing or wrong"
                    )
                return (
                    f"it is right as soon as axis {axis} of {names} has one entry: the sum over "
                    "it, or what one entry gives to another, is missing or wrong"
                )
    return ""


def _order_matters(evidence, axis):
    """Whether y, which lacks the axis, changes when two of its entries are exchanged: steps do."""
    for name, x in arrays(evidence).items():
        if x.dtype == np.float64 and x.ndim == 3 and evidence.y.ndim == 2 and x.shape[axis] > 1:
            order = np.arange(x.shape[axis])
            order[[0, 1]] = 1, 0
            other = trial(evidence, **{name: x.take(order, axis=axis)})
            return other is not None and not same(other.y, evidence.y)
    return False
