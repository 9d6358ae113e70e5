"""The right numbers in wrong places: transposed, reversed, moved, or zero where not due."""

from itertools import permutations

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import arrays, same, trial, wrong_entries
from minitransformer.gradcheck.diagnosis.pointwise import threshold
from minitransformer.gradcheck.diagnosis.where import has_gates


def another_gradient(evidence):
    """Two gradients returned in the wrong order; said only if the other one is wrong, too."""
    for name, numeric in () if evidence.slopes else evidence.numerics.items():
        if name == evidence.name or not same(evidence.analytic, numeric):
            continue
        theirs = evidence.analytics.get(name)
        if theirs is not None and same(theirs, evidence.numeric):
            return f"it is the gradient of {name}: were two gradients exchanged?"
        if theirs is not None and not same(theirs, numeric):
            return f"it is the gradient of {name}: are the gradients returned in another order?"
        return f"it is the gradient of {name}, not that of this input"
    return ""


def transposed(evidence):
    """A product with its factors in the wrong order, or axes put back wrongly."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if numeric.ndim < 2:
        return ""
    if same(analytic.swapaxes(-1, -2), numeric):
        return "it is the transpose of the right gradient"
    for order in [*permutations(range(numeric.ndim))][1:]:
        if same(analytic.transpose(order), numeric):
            return f"it is the right gradient with its axes in the order {order}"
    return ""


def reversed_or_moved(evidence):
    """A kernel not flipped, or flipped; an index that is off by one."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if evidence.slopes:
        return ""
    axes = range(numeric.ndim)
    pairs = [(a, b) for a in axes for b in range(a + 1, numeric.ndim)]
    for chosen in [*((a,) for a in axes), *pairs]:
        if numeric.ndim and same(np.flip(analytic, chosen), numeric):
            along = " and ".join(map(str, chosen))
            of = "axes" if len(chosen) > 1 else "axis"
            return f"it is the right gradient reversed along {of} {along}: is a kernel flipped?"
    for axis in axes:
        size = numeric.shape[axis]
        for by in [b for k in range(1, min(size, 4)) for b in (k, -k)]:
            kept = max(size - abs(by), 0)
            from_, to = (slice(abs(by), None), slice(0, kept))
            a, b = (from_, to) if by > 0 else (to, from_)
            index = (slice(None),) * axis
            seen = np.count_nonzero(numeric[(*index, b)])
            if kept < 2 or 2 * seen <= np.count_nonzero(numeric):  # more than is lost
                continue
            if same(analytic[(*index, a)], numeric[(*index, b)]):
                step = f"{abs(by)} too {'far' if by > 0 else 'early'}"
                return f"it is the right gradient shifted along axis {axis}, {step}"
    return ""


def leak(evidence):
    """Right where the output depends on the input, and not zero where it does not."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if evidence.slopes or numeric.ndim < 2:
        return ""
    idle = ~numeric.any(axis=-1)  # rows without influence; exact, as central differences cancel
    if not idle.any() or not same(analytic[~idle], numeric[~idle]):
        return ""
    if not _idle_for_any_x(evidence, numeric == 0):
        return ""
    row = tuple(int(i) for i in np.argwhere(idle & analytic.any(axis=-1))[0])
    return (
        "a gradient leaks into padding: it is right elsewhere, but not zero at positions on which "
        f"the output does not depend, such as {row}"
    )


def _idle_for_any_x(evidence, zeros):
    """Whether the zeros stay where they are for another x, as those of a mask do."""
    x = evidence.inputs[evidence.name]
    mixed = np.random.default_rng(1).permutation(x.ravel()).reshape(x.shape)
    for other in (trial(evidence, **{evidence.name: v}) for v in (-x, mixed)):
        if other is not None:
            return bool(np.array_equal(other.numeric == 0, zeros))
    return True


def other_zeros(evidence):
    """A mask of dropout drawn again, a condition or an index that is wrong, a mask forgotten."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if evidence.slopes:
        return ""
    alive = (analytic != 0) & (numeric != 0)
    only_analytic = (analytic != 0) & (numeric == 0)
    only_numeric = (analytic == 0) & (numeric != 0)
    if not alive.any() or not same(analytic[alive], numeric[alive], evidence.noise[alive]):
        return ""
    if not (only_analytic.any() or only_numeric.any()):
        return ""
    fixed = _idle_for_any_x(evidence, numeric == 0)
    if only_analytic.any() and only_numeric.any():
        zeros = "it is right wherever both are not zero, but others of its entries are zero"
        if fixed and evidence.y.shape == numeric.shape:
            masks = [x for x in arrays(evidence).values() if x.dtype.kind in "iub"]
            if any(mask.shape == numeric.shape for mask in masks):
                return f"{zeros}: is the mask another one than forward's?"
            return f"{zeros}: was the dropout mask drawn again in backward?"
        return f"{zeros}: is an index or a condition on x wrong?"
    zeros = "it is right wherever both are not zero, but " + (
        "not zero where it should be" if only_analytic.any() else "zero where it should not be"
    )
    parameter = evidence.y.shape != numeric.shape
    if where := whole_slices(wrong_entries(evidence), parameter):
        return f"{zeros}: {where}{_what_is_left_out(evidence, where)}"
    where = threshold(evidence.inputs[evidence.name], only_analytic | only_numeric)
    for name, ids in arrays(evidence).items():
        if ids.dtype.kind in "iu" and ids.shape == numeric.shape[:-1] and ids.size:
            one_hot = ids[..., None] == np.arange(numeric.shape[-1])
            if np.array_equal(one_hot, only_analytic | only_numeric):
                return f"{zeros}: at {name}, one entry of each row: is the label left out?"
    if only_numeric.any() and not where:
        place = tuple(int(i) for i in np.argwhere(only_numeric)[0])
        return f"{zeros}, such as at {place}: is a condition, an index or a mask wrong?"
    where = f", {where}" if where else ""
    return f"{zeros}: a mask is missing or misplaced{where}"


def _what_is_left_out(evidence, where):
    """A gate, a tap or a step, by the kind of input and the axis."""
    x = evidence.inputs[evidence.name]
    axis = int(where.split("axis ")[1][0])
    if evidence.y.ndim == 0 or len(x) != len(evidence.y):
        noun = "a gate or a tap" if x.ndim > 2 else "a gate" if has_gates(evidence) else ""
    elif x.ndim == 3 and axis == 1:
        noun = "that step" if where.count(",") < 2 else "all but one step"
        if where.endswith("all but the last"):
            return ": is only the last step gone through?"
    else:
        noun = "a gate" if x.shape[-1] == 2 * evidence.y.shape[-1] and axis == x.ndim - 1 else ""
    return f": is {noun} left out?" if noun else ""


def whole_slices(wrong, parameter=True):
    """``at 0 of 5 on axis 1, the first``, if just those whole slices are wrong; or empty."""
    for axis in range(wrong.ndim):
        size = wrong.shape[axis]
        rest = tuple(a for a in range(wrong.ndim) if a != axis)
        some = np.flatnonzero(wrong.any(axis=rest))
        every = np.flatnonzero(wrong.all(axis=rest))
        if (wrong.ndim > 1 or parameter) and len(some) < size and np.array_equal(some, every):
            listed = ", ".join(map(str, some))
            which = {(0,): ", the first", (size - 1,): ", the last"}.get(tuple(some), "")
            if len(some) == size - 1 and size > 2:
                spared = {size - 1: ", all but the last", 0: ", all but the first"}
                which = spared.get(sum(range(size)) - int(some.sum()), "")
            return f"at {listed} on axis {axis}{which}"
    return ""


def chosen_entry(evidence):
    """A maximum's gradient sent to a wrong place of its window, or to several."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if evidence.slopes or not numeric.ndim or not (numeric == 0).any():
        return ""
    if not _goes_whole_to_some(evidence) or _idle_for_any_x(evidence, numeric == 0):
        return ""
    for window, sums in _windows(numeric.shape, evidence.y.shape):
        if same(sums(analytic), sums(numeric)) and not same(analytic, numeric):
            spread = np.count_nonzero(analytic) > 1.5 * np.count_nonzero(numeric)
            ending = (
                "it is spread over them like that of a mean, and should go to the chosen one alone"
                if spread
                else "is the index of the maximum wrong?"
            )
            return f"its sums over {window} are right, but in the wrong entries: {ending}"
    values = [np.sort(g[g != 0]) for g in (analytic, numeric)]
    if same(*values):
        if any(name == "each window" for name, _ in _windows(numeric.shape, evidence.y.shape)):
            return "the right numbers stand in other windows: are they put back in another order?"
        return "the right numbers stand in wrong places: is the index of the maximum wrong?"
    extra = (numeric == 0) & (analytic != 0)
    if same(analytic[numeric != 0], numeric[numeric != 0]) and extra.any():
        return (
            "it is right where an entry is chosen, and not zero where others are: the condition "
            "that chooses one is missing"
        )
    return ""


def _goes_whole_to_some(evidence):
    """Whether the numeric gradient is made of entries of dy, as that of a maximum is."""
    dy = np.sort(evidence.dy.ravel())
    values = evidence.numeric[evidence.numeric != 0]
    if not len(values) or not evidence.dy.size < evidence.numeric.size:
        return False
    places = np.minimum(np.searchsorted(dy, values), len(dy) - 1)
    near = dy[np.stack([places, np.maximum(places - 1, 0)])]
    return bool((np.abs(near - values).min(axis=0) <= 1e-6 * np.abs(dy).max()).mean() > 0.5)


def _windows(shape, pooled):
    """Yield (name, sums): windows that tile x, and whole axes."""
    if len(shape) == len(pooled) and all(n % m == 0 for n, m in zip(shape, pooled, strict=True)):
        split = [v for n, m in zip(shape, pooled, strict=True) for v in (m, n // m)]
        inner = tuple(range(1, 2 * len(shape), 2))
        yield "each window", lambda g: g.reshape(split).sum(axis=inner)
    for axis in range(len(shape)):
        if shape[:axis] + shape[axis + 1 :] == tuple(n for n in pooled if n != 1) or (
            shape[:axis] + shape[axis + 1 :] == pooled
        ):
            yield f"axis {axis}", lambda g, a=axis: g.sum(axis=a)


def rearranged(evidence):
    """Every right number is there, in another order: a reshape where a transpose is needed."""
    analytic, numeric = evidence.analytic, evidence.numeric
    noise = 10 * evidence.noise.max(initial=0)
    if evidence.slopes or numeric.size < 4:
        return ""
    for axis, size in enumerate(numeric.shape):
        for count, name in ((2, "halves"), (3, "thirds"), (4, "quarters")):
            if size % count == 0:
                blocks = [np.split(g, count, axis) for g in (analytic, numeric)]
                for order in permutations(range(count)):
                    if all(same(blocks[0][i], blocks[1][j], noise) for i, j in enumerate(order)):
                        return (
                            f"its {name} along axis {axis} are right and in another order, "
                            f"{order}: are they exchanged?"
                        )
    if same(np.sort(analytic, axis=None), np.sort(numeric, axis=None), noise):
        return (
            "it holds the right numbers in another order: is an axis moved by reshape where it "
            "should be by transpose, or an index wrong?"
        )
    return ""
