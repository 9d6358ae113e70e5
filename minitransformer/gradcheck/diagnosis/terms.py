"""Terms that a normalisation's or a softmax's gradient needs."""

import math
from itertools import combinations

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import others, same, trial
from minitransformer.gradcheck.diagnosis.pointwise import is_elementwise

SAME_FIT = 1e-5  # of the largest entry: a fit has the error of all entries of its row


def missing_residual(evidence):
    """y = x + sublayer(x) sends dy straight to x, whatever the sublayer is."""
    if evidence.slopes or evidence.dy.shape != evidence.numeric.shape:
        return ""
    if same(evidence.numeric - evidence.analytic, evidence.dy):
        one = ", or a 1 is left out of the derivative" if is_elementwise(evidence) else ""
        return (
            "dy itself is missing: the output also depends on this input directly, as past a "
            "residual connection" + one
        )
    return ""


def missing_term(evidence):
    """A difference that in every row is a multiple of one vector known from theory."""
    x, y, numeric = evidence.inputs[evidence.name], evidence.y, evidence.numeric
    for axes in () if evidence.slopes else _normalised_axes(x.ndim):
        size = math.prod(x.shape[axis] for axis in axes)
        if size < 4 or (size < 8 and size == x.size):
            continue  # in short rows anything is a multiple of a few vectors
        last = axes == (x.ndim - 1,)
        where = "in each row" if last else f"along {_listed(axes)}"
        norm = "LayerNorm" if last else "batch norm"
        ones, centred = np.ones_like(x), x - x.mean(axis=axes, keepdims=True)
        free = np.abs(numeric.sum(axis=axes)).max() < 1e-3 * np.abs(numeric).max()  # of its mean
        both = [ones, centred] if size > 4 and free else []
        terms = {
            f"a constant {where}, such as mean(dx̂) in {norm}": [ones],
            f"a multiple of {evidence.name} {where}, such as x mean(dy x) in RMSNorm": [x],
            f"a multiple of x̂ {where}, such as x̂ mean(dx̂ x̂) in {norm}": [centred],
            f"a multiple of y {where}, such as y Σ(dy y) in softmax": [y][: y.shape == x.shape],
            f"both mean(dx̂) and x̂ mean(dx̂ x̂), as in {norm}": both,
        }
        for term, vectors in terms.items():
            if vectors and _is_made_of(vectors, evidence.analytic - numeric, axes, size):
                is_ = "is missing or has" if len(vectors) == 1 else "are missing or have"
                return f"{term}, {is_} a wrong factor"
    return ""


def _normalised_axes(ndim):
    """The axes that means may run over: the last first, then any other one, then several."""
    single = [(axis,) for axis in [*range(ndim)[-1:], *range(ndim - 1)]]
    return [*single, *(c for k in range(2, ndim + 1) for c in combinations(range(ndim), k))]


def _listed(axes):
    return f"axis {axes[0]}" if len(axes) == 1 else "axes " + ", ".join(map(str, axes))


def _is_made_of(vectors, wanted, axes, size):
    """Whether it is a sum of the vectors, with weights that are the same along the axes."""
    *vectors, wanted = (
        np.moveaxis(a, axes, range(-len(axes), 0)).reshape(-1, size) for a in (*vectors, wanted)
    )
    basis = np.stack(vectors, axis=-1)  # (N, D, k)
    fit = basis @ (np.linalg.pinv(basis) @ wanted[..., None])  # (N, D, 1)
    return same(fit[..., 0], wanted, SAME_FIT * np.abs(wanted).max())


def sum_over_wrong_axis(evidence):
    """Softmax's Σ(dy y) taken over another axis than the softmax's."""
    y, dy = evidence.y, evidence.dy
    if evidence.slopes or y.shape != evidence.numeric.shape or y.ndim < 2:
        return ""

    def axes_of(gradient):
        for axes in _normalised_axes(y.ndim):
            if same(gradient, y * (dy - (dy * y).sum(axis=axes, keepdims=True)), evidence.noise):
                return axes
        return None

    now, should_be = axes_of(evidence.analytic), axes_of(evidence.numeric)
    if now is None or should_be is None:
        return ""
    return f"the sum Σ(dy y) runs over {_listed(now)}; it has to run over {_listed(should_be)}"


def gain_outside(evidence):
    """A gain multiplied after LayerNorm's two mean terms were taken away, not before."""
    for name, gain in () if evidence.slopes else others(evidence).items():
        if gain.shape == evidence.numeric.shape[-1:]:
            plain = trial(evidence, **{name: np.ones_like(gain)})
            if plain is None or not same(evidence.analytic, gain * plain.numeric, evidence.noise):
                continue
            if np.abs(plain.numeric.sum(-1)).max() < 1e-3 * np.abs(plain.numeric).max():
                return (
                    f"a gain such as {name} is multiplied after the mean terms; it has to come "
                    "before them"
                )
    return ""
