"""Which way of the gradient is missing: past a sublayer, or through another input."""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    SAME,
    arrays,
    others,
    right,
    rows,
    same,
    trial,
)
from minitransformer.gradcheck.diagnosis.pointwise import is_elementwise


def missing_residual(evidence):
    """y = x + sublayer(x) sends dy straight to x, whatever the sublayer is."""
    if evidence.slopes or evidence.dy.shape != evidence.numeric.shape:
        return ""
    one = ", or a 1 is left out of the derivative" if is_elementwise(evidence) else ""
    if same(evidence.numeric - evidence.analytic, evidence.dy):
        return (
            "dy itself is missing: the output also depends on this input directly, as past a "
            "residual connection" + one
        )
    if same(evidence.analytic - evidence.numeric, evidence.dy):
        return "dy itself is added to it, as for a residual connection that is not there"
    return ""


def only_dy(evidence):
    """All that lies between the output and this input is passed over."""
    if evidence.slopes or not same(evidence.analytic, evidence.dy):
        return ""
    return (
        "it is dy itself, handed on as it came: the derivative of what lies between is missing, or "
        "the path through what lies beside a residual connection"
    )


def past_another(evidence):
    """What reaches this input past another one is missing: all that is left where that is 0."""
    missing = evidence.numeric - evidence.analytic
    for name, x in others(evidence).items():
        if x.any():
            other = trial(evidence, **{name: np.zeros_like(x)})
            if other is not None and other.numeric.any() and same(other.numeric, missing):
                return f"the path past {name} is missing: it is what is left where {name} is 0"
    return ""


def straight_path(evidence):
    """A part that goes entry by entry from dy to this input, around what mixes the entries."""
    if evidence.slopes or evidence.dy.shape != evidence.numeric.shape:
        return ""
    half = np.random.default_rng(0).random(evidence.dy.shape) < 0.5
    other = trial(evidence, dy=evidence.dy * half)
    if other is None or not half.any() or half.all():
        return ""
    missing = evidence.numeric - evidence.analytic
    noise = 10 * (evidence.noise + other.noise) + SAME * np.abs(evidence.numeric).max()
    mixed = (np.abs(other.numeric[~half]) > noise[~half]).any()
    if mixed and (np.abs(other.numeric - other.analytic - missing * half) <= noise).all():
        return (
            "what is wrong goes straight from dy to this input, entry by entry: a path around the "
            "rest is missing or has a wrong factor"
        )
    return ""


def through_another(evidence):
    """Right as soon as another input is zero: what reaches this one through it is wrong."""
    causes = []
    for name, x in others(evidence).items():
        if not x.any():
            continue
        other = trial(evidence, **{name: np.zeros_like(x)})
        if other is not None and right(other):
            causes.append(f"where {name} is 0")
        elif x.ndim and (part := _part_that_matters(evidence, name, x)):
            causes.append(f"where {part} is 0")
    if causes:
        return f"it is right {' or '.join(causes)}: the mistake lies in what is computed with it"
    for name, x in others(evidence).items():
        if x.shape in ((), evidence.y.shape[-1:]):  # as a gain is
            other = trial(evidence, **{name: np.ones_like(x)})
            if other is not None and right(other):
                return (
                    f"it is right where {name} is 1: a gain or a scale such as {name} is "
                    "misplaced, forgotten somewhere, divided by, or used twice"
                )
    return ""


def _part_that_matters(evidence, name, x):
    """A gate's columns or a kernel's tap that makes it wrong, by setting one after another to 0."""
    for axis, blocks in _blocks(x, evidence.y):
        size = x.shape[axis] // blocks
        for block in range(blocks):
            changed = x.copy()
            changed[(slice(None),) * axis + (slice(block * size, (block + 1) * size),)] = 0
            other = trial(evidence, **{name: changed})
            if other is not None and right(other):
                if size == 1:
                    return f"index {block} on axis {axis} of {name}, a tap or a gate,"
                ordinal = ("first", "second", "third", "fourth")[block]
                return f"the {ordinal} of the {blocks} gates in {name}"
    return ""


def _blocks(x, y):
    """Yield (axis, number of blocks): gates beside one another, taps of a kernel."""
    if x.ndim > 1 and x.ndim == y.ndim and len(x) == len(y):
        return  # it holds a batch
    if y.ndim:
        for axis in range(x.ndim):
            for gates in (3, 4) if x.ndim < 3 else ():
                if x.shape[axis] == gates * y.shape[-1] and y.shape[-1] > 1:
                    yield axis, gates
    for axis in range(x.ndim):
        if x.ndim >= 3 and 2 <= x.shape[axis] <= 5:
            yield axis, x.shape[axis]


def through_a_weight(evidence):
    """What is wrong in each row of dx is made of the columns of one weight, x w."""
    x = evidence.inputs[evidence.name]
    if evidence.slopes or x.ndim < 2:
        return ""
    for name, w in others(evidence).items():
        if w.ndim != 2 or x.shape[-1] not in w.shape or len(set(w.shape)) == 1:
            continue
        axis = 1 - w.shape.index(x.shape[-1])
        found = evidence
        if w.shape[axis] >= x.shape[-1]:
            cut = {
                n: a.take([0], axis=i)
                for n, a in arrays(evidence).items()
                for i, size in enumerate(a.shape)
                if size == w.shape[axis]
            }
            found = evidence.again({**evidence.inputs, **cut}, None)
        if found is None or found.analytic.shape != found.numeric.shape:
            continue
        weight = np.asarray(found.inputs[name])
        weight = weight if axis else weight.T  # (D, F)
        if weight.shape[0] != found.numeric.shape[-1]:
            continue
        onto = weight @ np.linalg.pinv(weight)
        wrong, numeric = rows(found.analytic - found.numeric), rows(found.numeric)
        if same(wrong @ onto, wrong) and wrong.any() and not same(numeric @ onto, numeric):
            return f"the path through {name} is missing or wrong: what is wrong is made of {name}"
    return ""
