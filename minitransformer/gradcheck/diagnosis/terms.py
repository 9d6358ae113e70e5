"""Terms that a normalisation's or a softmax's gradient needs."""

from itertools import combinations

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import others, rows, same
from minitransformer.gradcheck.diagnosis.pointwise import is_elementwise


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
    x = evidence.inputs[evidence.name]
    if evidence.slopes or x.ndim == 0:
        return ""
    for axes in _normalised_axes(x.ndim):
        if cause := _term_along(axes, evidence, x):
            return cause
    return ""


def _normalised_axes(ndim):
    """The axes that means may run over: the last first, then any other one, then several."""
    single = [(ndim - 1,), *((a,) for a in range(ndim - 1))]
    return [*single, *(c for k in range(2, ndim + 1) for c in combinations(range(ndim), k))]


def _term_along(axes, evidence, x):
    difference, numeric, x = (
        _as_rows(a, axes) for a in (evidence.analytic - evidence.numeric, evidence.numeric, x)
    )
    if x.shape[-1] < 4 or (len(x) < 2 and x.shape[-1] < 8):
        return ""  # in short rows anything is a multiple of a few vectors
    where = "in each row" if axes == (evidence.numeric.ndim - 1,) else f"along {_listed(axes)}"
    ones, centred = np.ones_like(x), x - x.mean(axis=-1, keepdims=True)
    norm = "LayerNorm" if axes == (evidence.numeric.ndim - 1,) else "batch norm"
    candidates = [
        ((ones,), f"a constant {where}, such as mean(dx̂) in {norm}"),
        ((x,), f"a multiple of x {where}, such as x mean(dy x) in RMSNorm"),
        ((centred,), f"a multiple of x̂ {where}, such as x̂ mean(dx̂ x̂) in {norm}"),
    ]
    if evidence.y.shape == evidence.numeric.shape:
        y = _as_rows(evidence.y, axes)
        candidates.append(((y,), f"a multiple of y {where}, such as y Σ(dy y) in softmax"))
        p = np.exp(y - y.max(axis=-1, keepdims=True))
        words = f"a multiple of exp(y) {where}, such as softmax Σ dy in log-softmax"
        candidates.append(((p,), words))
    if x.shape[-1] > 4 and orthogonal_to_mean_and_x(numeric, centred):
        both = f"both mean(dx̂) and x̂ mean(dx̂ x̂), as in {norm}"
        candidates.append(((ones, centred), both))
    for vectors, term in candidates:
        if _each_row_is_made_of(vectors, difference):
            are, have = ("is", "has") if len(vectors) == 1 else ("are", "have")
            return f"{term}, {are} missing or {have} a wrong factor"
    return ""


def _listed(axes):
    return f"axis {axes[0]}" if len(axes) == 1 else "axes " + ", ".join(map(str, axes))


def _as_rows(array, axes):
    kept = [a for a in range(array.ndim) if a not in axes]
    size = int(np.prod([array.shape[a] for a in axes]))
    return array.transpose([*kept, *axes]).reshape(-1, size)


def _each_row_is_made_of(vectors, wanted):
    """Whether each of the rows (N, D) is a weighted sum of the vectors' rows at its place."""
    basis = np.stack(vectors, axis=-1)  # (N, D, k)
    fit = basis @ (np.linalg.pinv(basis) @ wanted[..., None])  # (N, D, 1)
    return same(fit[..., 0], wanted, SAME_FIT * np.abs(wanted).max())


SAME_FIT = 1e-5  # of the largest entry: a fit has the error of all entries of its row


def orthogonal_to_mean_and_x(gradient, centred):
    """Whether each row sums to 0, with and without the factor x − μ, as LayerNorm's dx does.

    Only about so: LayerNorm's ε makes x̂ a little shorter than √D.
    """
    sums = np.concatenate([gradient.sum(axis=-1), (gradient * centred).sum(axis=-1)])
    return np.abs(sums).max() <= 1e-3 * np.abs(gradient).max()


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
    """A gain multiplied after LayerNorm's two mean terms were taken away, not before.

    Those terms leave a gradient whose rows are orthogonal to 1 and to x̂. The gain destroys that;
    there is then one vector whose product with each row restores it, the inverse of the gain r:
    Σ_j a_j r_j = 0 and Σ_j a_j (x_j − μ) r_j = 0 in every row. An input has to be that gain.
    """
    x = evidence.inputs[evidence.name]
    if evidence.slopes or x.ndim < 2:
        return ""
    analytic, numeric = rows(evidence.analytic), rows(evidence.numeric)
    centred = rows(x - x.mean(axis=-1, keepdims=True))
    constraints = np.concatenate([analytic, analytic * centred])  # (2 rows, D)
    if len(constraints) < x.shape[-1] or not orthogonal_to_mean_and_x(numeric, centred):
        return ""
    _, singular_values, directions = np.linalg.svd(constraints)
    if singular_values[-1] > 1e-3 * singular_values[0]:
        return ""
    for name, gain in others(evidence).items():
        if gain.size == x.shape[-1]:
            product = directions[-1] * gain.ravel()
            if np.abs(product - product.mean()).max() < 1e-2 * np.abs(product).max():
                return (
                    f"a gain such as {name} is multiplied after the mean terms; it has to come "
                    "before them"
                )
    return ""
