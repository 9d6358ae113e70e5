"""Matrices that are transposed, reversed, or used at two places."""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    arrays,
    others,
    right,
    same,
    trial,
)


def product_transposed(evidence):
    """One of the factors of a matrix product is not transposed, or is and should not be.

    Both gradients are a matrix times the same known array; the two matrices are transposes.
    """
    if evidence.slopes or evidence.numeric.ndim < 2:
        return ""
    analytic, numeric = evidence.analytic, evidence.numeric
    for name, b in {"dy": evidence.dy, **others(evidence)}.items():
        if b.shape != numeric.shape or b.shape[-1] < b.shape[-2]:
            continue
        inverse = np.linalg.pinv(b)
        true, wrong = numeric @ inverse, analytic @ inverse
        exact = same(true @ b, numeric) and same(wrong @ b, analytic)
        if exact and same(wrong, true.swapaxes(-1, -2), 1e-6 * np.abs(true).max()):
            return f"what {name} is multiplied by from the left is transposed, or has to be"
    return ""


def symmetric(evidence):
    """Right as soon as a square matrix is symmetric: it and its transpose are mixed up."""
    for name, x in arrays(evidence).items():
        if x.dtype == np.float64 and x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
            other = trial(evidence, **{name: (x + x.swapaxes(-1, -2)) / 2})
            if other is not None and right(other):
                return (
                    f"it is right where {name} is symmetric: it and its transpose are mixed up, "
                    "or a second use, by the transpose, is missing"
                )
    return ""


def second_use(evidence):
    """An input that occurs at two places, and the gradient of one of them only.

    For y = x xᵀ: right with a symmetric dy but for a factor of 2.
    """
    dy = evidence.dy
    own = np.ndim(evidence.inputs[evidence.name])
    if dy.ndim >= 2 and dy.shape[-1] == dy.shape[-2]:
        other = trial(evidence, dy=dy + dy.swapaxes(-1, -2))
        if other is not None and other.numeric.any():
            if same(2 * other.analytic, other.numeric):
                return (
                    "it is that of one use of this input, its second use is forgotten: with a "
                    "symmetric dy it would be half of the right one"
                )
            if right(other) and own == 1:
                return "it is right for a symmetric dy only: is the sum over the wrong axis?"
            if right(other):
                return "it is right for a symmetric dy only: its second use takes dy transposed"
    x = evidence.inputs[evidence.name]
    if evidence.slopes:
        return ""
    shares = [
        _share(e, x) for e in (evidence, trial(evidence, dy=dy[..., ::-1] if dy.ndim else dy))
    ]
    for part, words in ((0.5, "one"), (1 / 3, "one"), (2 / 3, "two")):
        if dy.ndim and all(share is not None and abs(share - part) < 1e-6 for share in shares):
            uses, forgotten = (2, "second") if part == 0.5 else (3, "third")
            return (
                f"it is that of {words} of {uses} uses of this input: a {forgotten} use is "
                "forgotten"
            )
    return ""


def _share(evidence, x):
    """Σ analytic x over Σ numeric x; for a product of k uses of x, one of them gives 1/k."""
    if evidence is None:
        return None
    whole = (evidence.numeric * x).sum()
    return (evidence.analytic * x).sum() / whole if whole else None


def right_for_another(evidence):
    """The gradient that another input would give if it were transposed, reversed, negative, ..."""
    for name, x in others(evidence).items():
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
