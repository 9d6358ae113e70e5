"""Inputs that prove nothing: on which a common mistake gives the right gradient.

Where it depends on forward whether an input hides anything, forward is asked: a symmetric matrix
hides nothing from a function that takes a matrix and its transpose for the same.
"""

import numpy as np

from minitransformer.core.backend import is_array
from minitransformer.gradcheck.pair import OutOfTime, read_only
from minitransformer.gradcheck.report import CheckError

NEAR = 1e-3  # of 0, where a kink there is looked for


def warnings_about(trial):
    """What the inputs of a Trial would hide, a line for each."""
    inputs = trial.named()
    found = []
    for name, x in inputs.items():
        if is_array(x):
            kind = _hides if name in trial.gradients else _hides_as_constant
            found += [f"{name} {hidden}" for hidden in [kind(name, x, trial)] if hidden]
    first = next(iter(inputs))
    return [*found, *_axes_of_one(first, inputs[first], trial)]


def _hides(name, x, trial):
    """What a checked input hides."""
    shape = ", ".join(map(str, x.shape))
    hidden, draw = "", f"standard_normal(({shape}))"
    if x.ndim == 2 and len(x) > 1 and np.array_equal(x, np.eye(*x.shape)):
        hidden = "is the identity matrix: a product with it that is missing, or with its transpose,"
    elif x.size == 1:
        return ""
    elif (x == 1).all():
        hidden = (
            "is 1 everywhere: a product with it that is missing or misplaced, as a gain may be,"
        )
        draw = f"uniform(0.5, 1.5, ({shape}))"
    elif (x == x.flat[0]).all():
        value = float(x.flat[0])
        what = "what is multiplied by it" if value == 0 else "which entry stands where"
        hidden = f"is {value:g} everywhere: {what}"
    elif x.ndim == 2 and np.array_equal(x, x.T) and _told_from_its_transpose(name, x, trial):
        hidden = "is symmetric: its transpose in its place"
    elif ((x > 0).all() or (x < 0).all()) and _bends_at_0(name, x, trial):
        sign = "positive" if x.flat[0] > 0 else "negative"
        hidden = f"is {sign} everywhere: what forward does on the other side of 0"
    return hidden and f"{hidden} would not show; draw it, as with rng.{draw}"


def _hides_as_constant(name, x, trial):
    """What a mask or ids hide."""
    if x.dtype == bool and x.size > 1 and (x == x.flat[0]).all():
        return (
            f"is {x.flat[0]} everywhere: a mask that is forgotten would not show; let some of it "
            f"be {not x.flat[0]}"
        )
    if x.dtype.kind in "iu" and x.size > 1 and len(np.unique(x)) == x.size:
        for table, gradient in trial.gradients.items():
            if _is_indexed(gradient, x):
                return (
                    f"has no number twice: rows of d{table} that are overwritten where they have "
                    "to be added to would not show; let one come more than once"
                )
    return ""


def _is_indexed(gradient, ids):
    """Whether just the rows of those numbers, and not all, have a gradient."""
    if gradient is None or gradient.ndim < 2 or not 0 <= ids.min() <= ids.max() < len(gradient):
        return False
    rows = np.flatnonzero(gradient.reshape(len(gradient), -1).any(axis=-1))
    return len(rows) < len(gradient) and np.array_equal(rows, np.unique(ids))


def _told_from_its_transpose(name, x, trial):
    """Whether forward, or backward where forward does not, tells a matrix from its transpose.

    That of x a x has 2 a x for (a + aᵀ) x: right for a symmetric a alone.
    """
    other = x + 0.1 * np.triu(np.abs(x) + 1, 1)
    y, turned = (_called(trial, {name: value}) for value in (other, other.T))
    if y is None or turned is None:
        return False
    if not _near(y, turned):
        return not _near(y.T, turned)  # as entry by entry
    found = (_called(trial, {name: value}, backward=True) for value in (other, other.T))
    first, second = (gradients or {} for gradients in found)
    pairs = [(a, second.get(n)) for n, a in first.items() if n != name]
    return any(a is not None and b is not None and not _near(a, b) for a, b in pairs)


def _near(a, b):
    """Whether they are the same but for rounding."""
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-12)


def _bends_at_0(name, x, trial):
    """Whether forward has a kink or another curvature on each side where this input is 0.

    By the second differences over 0 and beside it: how fast they shrink with the step tells so.
    """
    direction = np.abs(x)
    kinks, jumps = [], []
    for step in (NEAR, NEAR / 8):
        ys = [_called(trial, {name: k * step * direction}) for k in (-2, -1, 0, 1, 2)]
        if any(y is None or y.shape != trial.y.shape for y in ys):
            return False
        before, over, after = (ys[i] - 2 * ys[i + 1] + ys[i + 2] for i in range(3))
        kinks.append(np.abs(over).max(initial=0))
        jumps.append(np.abs(after - before).max(initial=0))
    size = NEAR * np.abs(direction).max()
    if not np.isfinite([*kinks, *jumps]).all():
        return False
    kink = kinks[1] > kinks[0] / 16 > 1e-3 * size
    return bool(kink or jumps[1] > jumps[0] / 128 > 1e-3 * NEAR * size)


def _axes_of_one(name, x, trial):
    """Axes of the first input that could be longer, and hide what is summed or carried along."""
    for axis in range(x.ndim - 1) if is_array(x) and x.dtype.kind == "f" else ():
        if x.shape[axis] == 1 and _could_be_longer(axis, x, trial):
            hidden = f"has 1 entry on axis {axis}: a sum over it that is missing or is a mean, or "
            hidden += "what is carried along it,"
            if axis == 0 and trial.y.shape[:1] in ((), (1,)):
                hidden = "is a batch of 1: a sum over the batch that is missing or is a mean"
            yield f"{name} {hidden} would not show; take 2 or more"


def _could_be_longer(axis, x, trial):
    """Whether forward takes two entries on that axis, there alone or wherever there is one."""
    alike = {
        name: value.repeat(2, axis)
        for name, value in trial.named().items()
        if is_array(value) and value.ndim > axis and value.shape[axis] == 1
    }
    first = next(iter(trial.named()))
    return any(_called(trial, changed) is not None for changed in ({first: alike[first]}, alike))


def _called(trial, changed, backward=False):
    """y for other values of some inputs, or what backward returns; None where that fails."""
    inputs = {**trial.named(), **changed}
    try:
        y, (_, cache) = trial.pair.forward(tuple(map(read_only, inputs.values())))
        return trial.pair.backward(read_only(trial.dy), cache) if backward else y
    except (CheckError, OutOfTime):
        return None
