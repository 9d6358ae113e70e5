"""The right numbers in wrong places or another shape: transposed, not summed, moved, zero."""

from itertools import combinations, permutations

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import arrays, jacobian, same, trial
from minitransformer.gradcheck.diagnosis.where import slices


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


def wrong_shape(evidence):
    """A sum forgotten, or one too many; axes in another order; a reshape forgotten."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if analytic.shape == numeric.shape:
        return ""
    causes = [_other_axes(analytic, numeric)] if analytic.ndim == numeric.ndim else []
    over = [words for words, total in _sums(analytic) if same(total, numeric)]
    causes += [f"it still has to be summed over {words}" for words in over]
    if analytic.size == numeric.size and same(analytic.reshape(numeric.shape), numeric):
        causes.append("it holds the right numbers and only has to be reshaped")
    if analytic.size == 1 and same(numeric.sum(), analytic.sum()):
        fewer = "a sum has to run over fewer axes"
        causes.append(f"it is the sum of all {numeric.size} entries of the right one: {fewer}")
    over = [words for words, total in _sums(numeric) if same(total, analytic)]
    causes += [f"it is the right one summed over {words}, which this input has" for words in over]
    message = f"its shape is {analytic.shape} and should be {numeric.shape}"
    return ": ".join([message, *filter(None, causes)][:2])


def _sums(gradient):
    """Yield the sums over some of its axes, as (which, sum)."""
    for count in range(1, gradient.ndim + 1):
        for axes in combinations(range(gradient.ndim), count):
            which = f"axes {axes}" if count > 1 else f"axis {axes[0]}"
            leading = axes == tuple(range(count))
            yield f"the leading axes, {axes}" if leading else which, gradient.sum(axis=axes)
            yield f"{which} with keepdims=True", gradient.sum(axis=axes, keepdims=True)


def transposed(evidence):
    """A product with its factors in the wrong order, or axes put back wrongly."""
    return _other_axes(evidence.analytic, evidence.numeric)


def _other_axes(analytic, numeric):
    if numeric.ndim > 1 and same(analytic.swapaxes(-1, -2), numeric):
        return "it is the transpose of the right gradient"
    for order in [*permutations(range(numeric.ndim))][1:]:
        if same(analytic.transpose(order), numeric):
            return f"it is the right gradient with its axes in the order {order}"
    return ""


def _idle_for_any_x(evidence, zeros):
    """Whether the zeros stay where they are for another x, as those of a mask do."""
    x = evidence.inputs[evidence.name]
    mixed = np.random.default_rng(1).permutation(x.ravel()).reshape(x.shape)
    for other in (trial(evidence, **{evidence.name: v}) for v in (-x, mixed)):
        if other is not None:
            return bool(np.array_equal(other.numeric == 0, zeros))
    return True


def leak(evidence):
    """Right where the output depends on the input, and not zero where it does not."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if evidence.slopes or numeric.ndim < 2:
        return ""
    idle = ~numeric.any(axis=-1)  # rows without influence; exact, as central differences cancel
    heard = ~idle
    if not idle.any() or not same(analytic[heard], numeric[heard], evidence.noise[heard]):
        return ""
    if not _idle_for_any_x(evidence, numeric == 0):
        return ""
    row = tuple(int(i) for i in np.argwhere(idle & analytic.any(axis=-1))[0])
    return (
        "a gradient leaks into padding: it is right elsewhere, but not zero at positions on which "
        f"the output does not depend, such as {row}"
    )


def other_zeros(evidence):
    """A mask of dropout drawn again, a condition or an index that is wrong, a mask forgotten."""
    analytic, numeric = evidence.analytic, evidence.numeric
    now, due = analytic != 0, numeric != 0
    alive, wrong = now & due, now != due
    if evidence.slopes or not alive.any() or not wrong.any():
        return ""
    if not same(analytic[alive], numeric[alive], evidence.noise[alive]):
        return ""
    right = "it is right wherever both are not zero, but"
    if (now & ~due).any() and (due & ~now).any():
        right = f"{right} others of its entries are zero"
        if evidence.y.shape != numeric.shape or not _idle_for_any_x(evidence, ~due):
            return f"{right}: is an index or a condition on x wrong?"
        masks = [x for x in arrays(evidence).values() if x.dtype.kind in "iub"]
        if any(mask.shape == numeric.shape for mask in masks):
            return f"{right}: is the mask another one than forward's?"
        return f"{right}: was the dropout mask drawn again in backward?"
    places = slices(wrong, whole=True)
    if (due & ~now).any():
        place = places or f"such as at {tuple(np.argwhere(wrong)[0].tolist())}"
        asked = "" if places else ": is a condition, an index or a mask wrong?"
        return f"{right} zero where it should not be, {place}{asked}"
    places = f", {places}" if places else ""
    return f"{right} not zero where it should be{places}: a mask is missing or misplaced"


def rearranged(evidence):
    """Every right number is there, in another place: an axis reversed, halves exchanged, ..."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if evidence.slopes or not numeric.ndim:
        return ""
    if shifted := _shifted(analytic, numeric):
        return shifted
    for other, words in _rearranged(numeric):
        if same(analytic, other):
            return words
    noise = 10 * evidence.noise.max()  # which is infinite where there is a kink
    in_order = np.sort(analytic, None), np.sort(numeric, None)
    if numeric.size > 3 and noise < np.inf and same(*in_order, noise):
        return (
            "it holds the right numbers in another order: is an axis moved by reshape where it "
            "should be by transpose, or an index wrong?"
        )
    return ""


def chosen_entry(evidence):
    """A maximum's gradient sent to a wrong place, or to several."""
    analytic, numeric = evidence.analytic, evidence.numeric
    moves = None if evidence.slopes else jacobian(evidence)
    if moves is None or not np.abs(moves * (moves - 1)).max() < 1e-6:
        return ""  # y does not consist of entries of x
    if _idle_for_any_x(evidence, numeric == 0):
        return ""
    if same(np.sort(analytic, None), np.sort(numeric, None)):
        return (
            "the right numbers stand in wrong places: is the index of the maximum wrong? Or are "
            "windows put back in another order?"
        )
    for axis in range(numeric.ndim):
        if same(analytic.sum(axis), numeric.sum(axis)):
            return (
                f"its sums over axis {axis} are right, but in the wrong entries: they should go to "
                "the chosen one alone"
            )
    return ""


def _rearranged(gradient):
    """Yield the gradient with its parts in other places, and what is said of it."""
    axes = range(gradient.ndim)
    for chosen in [*combinations(axes, 1), *combinations(axes, 2)]:
        of = "axes" if len(chosen) > 1 else "axis"
        along = f"{of} {' and '.join(map(str, chosen))}"
        words = f"it is the right gradient reversed along {along}: is a kernel flipped?"
        yield np.flip(gradient, chosen), words
    for axis in axes:
        for count, name in ((2, "halves"), (3, "thirds"), (4, "quarters")):
            blocks = np.array_split(gradient, count, axis)
            orders = [*permutations(range(count))][1:] if gradient.shape[axis] % count == 0 else ()
            for order in orders:
                yield (
                    np.concatenate([blocks[i] for i in order], axis),
                    f"its {name} along axis {axis} are right and in another order, {order}: are "
                    "they exchanged?",
                )


def _shifted(analytic, numeric):
    """An index that is off by one, or by a few."""
    for axis, size in enumerate(numeric.shape):
        for by in [b for k in range(1, min(size - 1, 4)) for b in (k, -k)]:
            from_, to = slice(abs(by), None), slice(0, size - abs(by))
            a, b = (from_, to) if by > 0 else (to, from_)
            now, due = analytic.take(range(size)[a], axis), numeric.take(range(size)[b], axis)
            kept = 2 * np.count_nonzero(due) > np.count_nonzero(numeric)  # more than is lost
            if kept and same(now, due):
                step = f"{abs(by)} too {'far' if by > 0 else 'early'}"
                return f"it is the right gradient shifted along axis {axis}, {step}"
    return ""
