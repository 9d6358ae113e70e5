"""Mistakes about dy: a backward is linear in it, so it is tried with others."""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    arrays,
    jacobian,
    name_of_output,
    others,
    same,
    trial,
)
from minitransformer.gradcheck.diagnosis.where import where


def not_linear(evidence):
    """dy forgotten, used twice, made positive, or clipped; or something added without it."""
    once, other = evidence.analytic, evidence.backward(-2 * evidence.dy)
    if other is None or same(other, -2 * once):
        return ""
    if same(other, once):
        ones = trial(evidence, dy=np.ones_like(evidence.dy))
        if ones is not None and same(ones.analytic, ones.numeric, ones.noise):
            return "dy is forgotten: it is right only where dy is 1; it has to be multiplied by dy"
        return "dy is forgotten: it is the same for every dy, and has to be linear in dy"
    if same(other, 4 * once):
        return "dy is used twice: it is 4 times as large for 2 dy"
    if same(other, 2 * once):
        return "the sign of dy is lost: it is the same for −dy"
    if same(other, -once / 2):
        return "it is divided by dy; it has to be multiplied by it"
    return _added(evidence) or (
        "it is not linear in dy, as the sum over the outputs must be: is dy clipped, squared, or "
        "part of a condition?"
    )


def _added(evidence):
    """A term without dy, as of weight decay."""
    added = evidence.backward(np.zeros_like(evidence.dy))
    if added is None or not added.any():
        return ""
    if not same(evidence.analytic - added, evidence.numeric, evidence.noise):
        rest = added == 0
        if rest.any() and same(evidence.analytic[rest], evidence.numeric[rest]):
            return f"{where(evidence)}; what stands there does not change with dy"
        return "a part of it does not change with dy: dy is forgotten in one of its terms"
    for name, x in {**arrays(evidence), name_of_output(evidence): evidence.y}.items():
        if x.shape == added.shape and x.any():
            factor = float((added * x).sum() / (x * x).sum())
            if same(added, factor * x):
                decay = ", as of weight decay" if name == evidence.name else ""
                return f"a term without dy is added to it: {factor:.6g} times {name}{decay}"
    if not evidence.slopes and not evidence.numeric[added != 0].any():
        return "a term without dy leaks to where it should be zero: a mask is missing or misplaced"
    return "a term without dy is added to it; without that it is right"


def of_another_dy(evidence):
    """What it would be for a part of dy alone, or for dy in another order, averaged, ..."""
    moves = jacobian(evidence) if evidence.dy.ndim else None
    for dy, words in _other_dys(evidence.dy) if moves is not None else ():
        other = np.tensordot(moves, dy, dy.ndim)
        if other.any() and same(evidence.analytic, other, evidence.noise):
            return words
    return ""


def _other_dys(dy):
    """Yield what a backward may make of dy, and what is said of it."""
    sizes = [(axis, size) for axis, size in enumerate(dy.shape) if size > 1]
    for axis, size in sizes:
        for part, which in (
            (slice(0, 1), "the first index of"),
            (slice(-1, None), "the last index of"),
            *([(slice(None, None, 2), "every second index of")] if size > 2 else []),
            *([(slice(None, None, 3), "every third index of")] if size > 3 else []),
        ):
            alone = np.zeros_like(dy)
            alone[_at(axis, part)] = dy[_at(axis, part)]
            yield alone, f"it sums over {which} axis {axis} of dy only, and not over all {size}"
            yield dy - alone, f"{which} axis {axis} of dy is left out"
    for axis, size in sizes:
        mean = np.broadcast_to(dy.mean(axis=axis, keepdims=True), dy.shape)
        for other, which in (
            (np.flip(dy, axis), f"reversed along axis {axis}"),
            *((np.roll(dy, by, axis), f"moved round by one along axis {axis}") for by in (1, -1)),
            (mean, f"averaged over axis {axis}, before the sum"),
            (size * mean, f"summed over axis {axis}"),
        ):
            yield other, f"it is what it would be for a dy that is {which}"
    if dy.ndim >= 2 and dy.shape[-1] == dy.shape[-2]:
        yield dy.swapaxes(-1, -2), "it is what it would be for a dy that is transposed"


def _at(axis, index):
    return (*[slice(None)] * axis, index)


def overwritten(evidence):
    """Assigned where it should be added to: of what reaches an entry only the last, or the first,
    index of an axis of dy is left."""
    moves = jacobian(evidence) if evidence.dy.ndim else None
    for axis, size in enumerate(evidence.dy.shape if moves is not None else ()):
        parts = np.moveaxis(moves * evidence.dy, evidence.numeric.ndim + axis, 0)
        parts = parts.reshape(size, *evidence.numeric.shape, -1).sum(-1)
        reached = np.abs(parts) > 10 * evidence.noise
        for order in (slice(None), slice(None, None, -1)):
            chosen = np.take_along_axis(parts[order], reached[order].argmax(0)[None], 0)[0]
            if (reached.sum(0) > 1).any() and same(evidence.analytic, chosen, evidence.noise):
                return (
                    f"of what several indices of axis {axis} of dy give to the same entry only one "
                    "is left, as if overwritten: it has to be added up, with +=, or a path is "
                    "missing"
                )
    return ""


def right_for_another(evidence):
    """What it would be if another input were transposed, reversed, ..., or from end to start."""
    # One slope is like another by chance, and each of a model's many parameters would be tried.
    for name, x in () if evidence.slopes else others(evidence).items():
        for turned, words in _turned(x):
            other = trial(evidence, **{name: turned})
            if other is not None and other.numeric.any() and same(other.numeric, evidence.analytic):
                return f"it is what it would be for {name} {words}"
    for axis, size in enumerate(evidence.dy.shape):
        # Two entries reversed are a rotation turned the other way, too.
        if evidence.dy.ndim == evidence.numeric.ndim and size > 2:
            other = trial(evidence, dy=np.flip(evidence.dy, axis))
            if other is not None and same(np.flip(other.analytic, axis), evidence.numeric):
                return (
                    f"it runs along axis {axis} in the wrong order: it is right with dy and "
                    "gradient reversed"
                )
    return ""


def _turned(x):
    """Yield an array as it may be taken by mistake, and how that is."""
    if x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
        yield x.swapaxes(-1, -2), "transposed"
    if x.ndim > 2 and x.shape[0] == x.shape[1]:
        yield x.swapaxes(0, 1), "with its first two axes exchanged"
    for axis, size in enumerate(x.shape):
        if 1 < size <= 8:
            yield np.flip(x, axis), f"reversed along axis {axis}"
    if x.ndim > 2:
        yield np.flip(x, (-1, -2)), "reversed along its last two axes"
