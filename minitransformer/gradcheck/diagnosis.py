"""What is wrong with a gradient, from the two arrays alone.

Each common mistake leaves a mark: a wrong mean a constant factor, a forgotten term a difference of
one shape in every row, a forgotten transpose the right numbers in the wrong places. ``diagnose``
looks for the marks in turn and names the first that explains *every* entry.
"""

import math
from dataclasses import dataclass

import numpy as np

from minitransformer.backend import is_array

REPLACED = "backward replaces what was in the gradient; it must add to it in place, with +="
NONE_RETURNED = "backward returned None for it, but the output depends on it"
AXIS_NAMES = {  # of the arrays that hold a batch, by their number of axes
    2: ["the batch size", "the width d"],
    3: ["the batch size", "the length", "the width d"],
    4: ["the batch size", "the number of heads", "the length", "the head width d_k"],
}
SAME = 1e-5  # relative difference below which a mark fits: above numeric noise, below any mistake


@dataclass(frozen=True)
class Sizes:
    """The numbers a gradient may wrongly be multiplied or divided by, and what they are called."""

    named: list[tuple[str, float]]

    @classmethod
    def of(cls, inputs):
        """From the inputs by name: token ids, arrays of three or more axes and the very first one
        hold a batch; the others are taken for parameters."""
        named = []
        for position, (name, x) in enumerate(inputs.items()):
            shape = x.shape if is_array(x) else ()
            if is_array(x) and x.dtype.kind in "iu" and len(shape) == 2:
                named += zip(AXIS_NAMES[3], shape, strict=False)
                named.append(("N, the number of positions", math.prod(shape)))
            elif len(shape) in AXIS_NAMES and (len(shape) > 2 or position == 0):
                named += zip(AXIS_NAMES[len(shape)], shape, strict=True)
                if len(shape) > 2:  # else it is the batch size
                    named.append(("N, the number of rows", math.prod(shape[:-1])))
            else:
                named += [(f"the size of axis {i} of {name}", n) for i, n in enumerate(shape)]
        roots = [(f"√{size}, the root of {name}", math.sqrt(size)) for name, size in named]
        return cls([*named, *roots])

    def called(self, value):
        """What ``value`` is, ``3 is the batch size``; empty if it is no known size."""
        names = [
            name
            for name, size in self.named
            if size != 1 and math.isclose(value, size, rel_tol=SAME)
        ]
        return f"{value:.6g} is {' or '.join(dict.fromkeys(names))}" if names else ""


def diagnose(evidence):
    """The likeliest cause for a gradient to be wrong, in words.

    Args:
        evidence: an Evidence.
    """
    name, analytic, numeric = evidence.name, evidence.analytic, evidence.numeric
    others = {other: array for other, array in evidence.numerics.items() if other != name}
    x, sizes = evidence.inputs[name], Sizes.of(evidence.inputs)
    arguments = analytic, numeric, x, evidence.y, evidence.dy, sizes, others, evidence.slopes
    marks = (mark for mark in _marks(*arguments) if mark)
    return next(marks, "") or _where(analytic, numeric, evidence.slopes)


def _marks(analytic, numeric, x, y, dy, sizes, others, slopes):
    """Yield what each mark says, empty if it does not fit; each may rely on those before it."""
    yield _wrong_shape(analytic, numeric)
    yield _not_finite(analytic, slopes)
    yield _imprecise(analytic, numeric)
    yield _zeros(analytic, numeric)
    yield _factor(analytic, numeric, sizes)
    yield _another(analytic, others)
    yield _transposed(analytic, numeric)
    yield _leak(analytic, numeric)
    yield _other_zeros(analytic, numeric)
    if not slopes:
        yield _missing_term(analytic, numeric, x, y)
        if y.shape == x.shape:
            yield _missing_path(analytic, numeric, dy)
            yield _weight_not_transposed(analytic, numeric, dy)
            yield _gain_missing(analytic, numeric, x, dy)
        yield _factor_by_axis(analytic, numeric)
        yield _gain_outside(analytic, numeric, x)


def _same(a, b):
    return a.shape == b.shape and np.abs(a - b).max() <= SAME * max(
        np.abs(a).max(), np.abs(b).max()
    )


def _wrong_shape(analytic, numeric):
    if analytic.shape == numeric.shape:
        return ""
    message = f"its shape is {analytic.shape} and should be {numeric.shape}"
    if analytic.ndim > numeric.ndim:
        axes = tuple(range(analytic.ndim - numeric.ndim))
        if _same(analytic.sum(axis=axes), numeric):
            return f"{message}: it still has to be summed over the leading axes, {axes}"
    if analytic.ndim >= 2 and _same(analytic.swapaxes(-1, -2), numeric):
        return f"{message}: it is the transpose of the right gradient"
    return message


def _not_finite(analytic, slopes):
    wrong = ~np.isfinite(analytic)
    return f"{_counted(wrong, slopes)} are NaN or infinite" if wrong.any() else ""


def _counted(wrong, slopes):
    of_all = (
        f"of the slopes along {wrong.size} directions" if slopes else f"of its {wrong.size} entries"
    )
    return f"{np.count_nonzero(wrong)} {of_all}"


def _imprecise(analytic, numeric):
    if not _same(analytic, numeric):
        return ""
    error = np.abs(analytic - numeric).max() / np.abs(numeric).max()
    return (
        f"it agrees to {error:.0e} only: is something rounded to float32 on the way, or a constant "
        "not exact?"
    )


def _zeros(analytic, numeric):
    if not analytic.any():
        return "it is zero everywhere"
    if not numeric.any():
        return "it should be zero everywhere: the output does not depend on this input"
    return ""


def _factor(analytic, numeric, sizes):
    factor = float((analytic * numeric).sum() / (numeric * numeric).sum())
    if factor == 0 or not _same(analytic / factor, numeric):
        return ""
    if math.isclose(factor, -1, rel_tol=SAME):
        return "its sign is wrong"
    sign = " and of the wrong sign" if factor < 0 else ""
    factor = abs(factor)
    large = factor > 1
    times = factor if large else 1 / factor
    if numeric.ndim > 1:
        alive = _rows(numeric).any(axis=-1)
        if not alive.all():
            rows = "N, the number of rows with a gradient", np.count_nonzero(alive)
            sizes = Sizes([*sizes.named, rows])
    known = sizes.called(times)
    explanation = f": {known}" if known else ""
    return f"it is {times:.6g} times too {'large' if large else 'small'}{sign}{explanation}"


def _another(analytic, others):
    for name, gradient in others.items():
        if _same(analytic, gradient):
            return f"it is the gradient of {name}: were two gradients exchanged?"
    return ""


def _transposed(analytic, numeric):
    if numeric.ndim >= 2 and _same(analytic.swapaxes(-1, -2), numeric):
        return "it is the transpose of the right gradient"
    return ""


def _leak(analytic, numeric):
    """Right where the output depends on the input, and not zero where it does not."""
    if numeric.ndim < 2:
        return ""
    idle = ~numeric.any(axis=-1)  # rows without influence; exact, as central differences cancel
    if not idle.any() or not _same(analytic[~idle], numeric[~idle]):
        return ""
    row = tuple(int(i) for i in np.argwhere(idle & analytic.any(axis=-1))[0])
    return (
        "a gradient leaks into padding: it is right elsewhere, but not zero at positions on which "
        f"the output does not depend, such as {row}"
    )


def _other_zeros(analytic, numeric):
    alive = (analytic != 0) & (numeric != 0)
    only_analytic = (analytic != 0) & (numeric == 0)
    only_numeric = (analytic == 0) & (numeric != 0)
    if not alive.any() or not _same(analytic[alive], numeric[alive]):
        return ""
    if only_analytic.any() and only_numeric.any():
        return (
            "it is right wherever both are not zero, but others of its entries are zero: "
            "was the dropout mask drawn again in backward?"
        )
    kind = "not zero where it should be" if only_analytic.any() else "zero where it should not be"
    return f"it is right wherever both are not zero, but {kind}: a mask is missing or misplaced"


def _missing_term(analytic, numeric, x, y):
    """A difference that in every row is a multiple of one vector known from theory."""
    if x.ndim == 0 or x.shape[-1] < 4:  # in short rows anything is a multiple of a few vectors
        return ""
    difference = _rows(analytic - numeric)  # (rows, D)
    ones, centred = np.ones_like(x), x - x.mean(axis=-1, keepdims=True)
    candidates = [
        ((ones,), "a constant in each row, such as mean(dx̂) in LayerNorm"),
        ((x,), "a multiple of x in each row, such as x mean(dy x) in RMSNorm"),
        ((centred,), "a multiple of x̂ in each row, such as x̂ mean(dx̂ x̂) in LayerNorm"),
    ]
    if y.shape == x.shape:
        candidates.append(((y,), "a multiple of y in each row, such as y Σ(dy y) in softmax"))
    if _orthogonal_to_mean_and_x(numeric, centred):
        candidates.append(((ones, centred), "both mean(dx̂) and x̂ mean(dx̂ x̂), as in LayerNorm"))
    for vectors, term in candidates:
        if _each_row_is_made_of(vectors, difference):
            return f"{term}, is missing or has a wrong factor"
    return ""


def _each_row_is_made_of(vectors, rows):
    """Whether each of the rows (N, D) is a weighted sum of the vectors' rows at its place."""
    basis = np.stack([_rows(v) for v in vectors], axis=-1)  # (N, D, k)
    fit = basis @ (np.linalg.pinv(basis) @ rows[..., None])  # (N, D, 1)
    return _same(fit[..., 0], rows)


def _factor_by_axis(analytic, numeric):
    if numeric.ndim < 2:
        return ""
    causes = [
        (tuple(range(numeric.ndim - 1)), "feature", "a gain such as gamma"),
        ((-1,), "row", "a row's scale such as 1/σ"),
    ]
    if numeric.ndim == 4:  # (B, H, T, K); before the rows, whose factors are then alike
        causes.insert(0, ((0, 2, 3), "head", "a gate of the heads"))
    for axes, part, misplaced in causes:
        power = (numeric * numeric).sum(axis=axes, keepdims=True)
        overlap = (analytic * numeric).sum(axis=axes, keepdims=True)
        if math.prod(power.shape) < numeric.size and _same(
            analytic, numeric * overlap / np.where(power == 0, 1, power)
        ):
            return f"each {part} is off by a factor of its own: is {misplaced} misplaced?"
    return ""


def _gain_outside(analytic, numeric, x):
    """A gain multiplied after LayerNorm's two mean terms were taken away, not before.

    Those terms leave a gradient whose rows are orthogonal to 1 and to x̂. The gain destroys that;
    there is then one vector whose product with each row restores it, the inverse of the gain r:
    Σ_j a_j r_j = 0 and Σ_j a_j (x_j − μ) r_j = 0 in every row.
    """
    if numeric.ndim < 2:
        return ""
    centred = x - x.mean(axis=-1, keepdims=True)
    constraints = np.concatenate([_rows(analytic), _rows(analytic * centred)])  # (2 rows, D)
    if len(constraints) < x.shape[-1] or not _orthogonal_to_mean_and_x(numeric, centred):
        return ""
    singular_values = np.linalg.svd(constraints, compute_uv=False)
    if singular_values[-1] > 1e-3 * singular_values[0]:
        return ""
    return "a gain such as gamma is multiplied after the mean terms; it has to come before them"


def _missing_path(analytic, numeric, dy):
    """y = x + sublayer(x) sends dy straight to x, whatever the sublayer is."""
    if not _same(numeric - analytic, dy):
        return ""
    return (
        "dy itself is missing: the output also depends on this input directly, as past a residual "
        "connection"
    )


def _weight_not_transposed(analytic, numeric, dy):
    """Both are linear maps of the rows of dy, y = x W gives dy Wᵀ, and one is dy W.

    There have to be more rows than columns: fewer fit any map.
    """
    if numeric.ndim < 2 or len(_rows(dy)) <= dy.shape[-1]:
        return ""
    from_dy = np.linalg.pinv(_rows(dy))  # (D, N)
    wrong, right = from_dy @ _rows(analytic), from_dy @ _rows(numeric)  # (D, D)
    fits = _same(_rows(dy) @ wrong, _rows(analytic)) and _same(_rows(dy) @ right, _rows(numeric))
    if not fits or not _same(wrong, right.T):
        return ""
    return "dy is multiplied by the weight as it is; it has to be by its transpose"


def _gain_missing(analytic, numeric, x, dy):
    """LayerNorm's dx with a gain of 1: in each row made of dy, a constant and a multiple of x̂."""
    if numeric.ndim < 2 or x.shape[-1] < 5:  # in shorter rows anything is made of three vectors
        return ""
    centred = x - x.mean(axis=-1, keepdims=True)
    vectors = dy, np.ones_like(x), centred
    if not _orthogonal_to_mean_and_x(numeric, centred):
        return ""
    if not _each_row_is_made_of(vectors, _rows(analytic)):
        return ""
    return "it is that of a gain of 1: dy has to be multiplied by the gain, such as gamma, first"


def _orthogonal_to_mean_and_x(gradient, centred):
    """Whether each row sums to 0, with and without the factor x − μ, as LayerNorm's dx does.

    Only about so: LayerNorm's ε makes x̂ a little shorter than √D.
    """
    sums = np.concatenate([_rows(gradient).sum(axis=-1), _rows(gradient * centred).sum(axis=-1)])
    return np.abs(sums).max() <= 1e-3 * np.abs(gradient).max()


def _rows(array):
    return array.reshape(-1, array.shape[-1])


def _where(analytic, numeric, slopes):
    wrong = np.abs(analytic - numeric) > SAME * max(np.abs(analytic).max(), np.abs(numeric).max())
    text = f"{_counted(wrong, slopes)} are wrong"
    for axis in range(wrong.ndim):
        others = tuple(a for a in range(wrong.ndim) if a != axis)
        places = np.flatnonzero(wrong.any(axis=others))
        if wrong.ndim > 1 and len(places) <= wrong.shape[axis] // 2:
            listed = ", ".join(str(place) for place in places)
            return f"{text}, all of them at {listed} on axis {axis}"
    return text
