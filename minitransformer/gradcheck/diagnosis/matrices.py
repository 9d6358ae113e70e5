"""The right gradient of other values: an input or dy transposed, reversed, or with another sign."""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    others,
    same,
    trial,
)


def right_for_another(evidence):
    """The gradient that another input would give if it were transposed, reversed, negative, ..."""
    # One slope is like another by chance, and each of a model's many parameters would be tried.
    for name, x in () if evidence.slopes else others(evidence).items():
        for value, words in _variants(x, evidence):
            if np.array_equal(value, x):
                continue
            other = trial(evidence, **{name: value})
            if other is not None and other.numeric.any() and same(other.numeric, evidence.analytic):
                return f"it is what it would be for {name} {words}"
    for axis in range(evidence.dy.ndim):
        if evidence.dy.ndim == evidence.numeric.ndim and evidence.dy.shape[axis] > 1:
            other = trial(evidence, dy=np.flip(evidence.dy, axis))
            if other is not None and same(np.flip(other.analytic, axis), evidence.numeric):
                return (
                    f"it runs along axis {axis} in the wrong order: it is right with dy and "
                    "gradient reversed"
                )
    for dy, words in _other_dys(evidence.dy):
        other = trial(evidence, dy=dy)
        if other is not None and other.numeric.any() and same(other.numeric, evidence.analytic):
            return f"it is what it would be for a dy that is {words}"
    return ""


def _variants(x, evidence):
    if x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
        yield x.swapaxes(-1, -2), "transposed"
    if x.ndim >= 2 and x.shape[0] == x.shape[1] != x.shape[-1]:
        yield x.swapaxes(0, 1), "with its first two axes exchanged"
    yield -x, "with another sign"
    yield np.zeros_like(x), "of zeros: what comes through it is left out"
    for axis in range(x.ndim):
        if 1 < x.shape[axis] <= 8:
            yield np.flip(x, axis), f"reversed along axis {axis}"
    if x.ndim > 2:
        yield np.flip(x, (-1, -2)), "reversed along its last two axes"
    if evidence.y.shape == x.shape:
        yield evidence.y, "replaced by y"


def _other_dys(dy):
    for axis in range(dy.ndim):
        if dy.shape[axis] > 1:
            yield np.flip(dy, axis), f"reversed along axis {axis}"
            mean = dy.mean(axis=axis, keepdims=True)
            yield np.broadcast_to(mean, dy.shape), f"averaged over axis {axis}, before the sum"
            yield np.broadcast_to(mean * dy.shape[axis], dy.shape), f"summed over axis {axis}"
            for by in (1, -1):
                moved = np.roll(dy, by, axis)
                moved[(slice(None),) * axis + (0 if by > 0 else -1,)] = 0
                yield moved, f"shifted by one step along axis {axis}"
    if dy.ndim >= 2 and dy.shape[-1] == dy.shape[-2]:
        yield dy.swapaxes(-1, -2), "transposed"
