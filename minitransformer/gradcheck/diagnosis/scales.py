"""A factor of its own for each feature, row, head or gate."""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import SAME, others, same
from minitransformer.gradcheck.diagnosis.factors import like_attention
from minitransformer.gradcheck.diagnosis.where import has_gates


def factor_by_axis(evidence):
    """A gain, a row's scale or a gate that is missing or at the wrong place."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if evidence.slopes or numeric.ndim < 2:
        return ""
    last = numeric.ndim - 1
    parts = [((*range(last),), "feature"), ((last,), "row")]
    if numeric.ndim == 4:  # before the rows, whose factors are then alike
        heads = like_attention(evidence, evidence.inputs[evidence.name])
        parts.insert(0, ((0, 2, 3), "head" if heads else "channel"))
    if numeric.ndim == 3:
        parts[1:1] = [((0, 2), "entry of axis 1"), ((1, 2), "entry of axis 0")]
    for axes, part in parts:
        power = (numeric * numeric).sum(axis=axes, keepdims=True)
        overlap = (analytic * numeric).sum(axis=axes, keepdims=True)
        alive = (np.abs(numeric) > 10 * evidence.noise).sum(axis=axes)
        if alive.sum() < 2 * alive.size:  # one entry of each part has any factor
            continue
        if power.size < numeric.size and same(
            analytic, numeric * overlap / np.where(power == 0, 1, power), evidence.noise
        ):
            ratio = (overlap / np.where(power == 0, 1, power)).ravel()
            cause = _only_some(evidence, ratio, part) or _known_scale(evidence, ratio)
            return f"each {part} is off by a factor of its own" + (f": {cause}" if cause else "")
    return ""


def _only_some(evidence, ratio, part):
    """Which of the parts are wrong, and by which one factor, where the others are right."""
    off = np.flatnonzero(np.abs(ratio - 1) > SAME)
    factor = float(ratio[off[0]])
    if len(off) == ratio.size or not same(ratio[off], np.full(len(off), factor)):
        return ""
    listed = ", ".join(map(str, off))
    gates = " of the gates" if has_gates(evidence) else ""
    if abs(factor + 1) < SAME:
        return f"at {listed}{gates} the sign is wrong, the others are right"
    times = max(abs(factor), 1 / abs(factor)) if factor else np.inf
    size = f"{times:.6g} times too {'large' if abs(factor) > 1 else 'small'}"
    sign = " and of the wrong sign" if factor < 0 else ""
    return f"at {listed}{gates} it is {size}{sign}, the others are right"


def _known_scale(evidence, ratio):
    """Another input, or y, that each factor is a power of."""
    known = {name: x for name, x in others(evidence).items() if x.size == ratio.size}
    if evidence.y.size == ratio.size:
        known |= {"y": evidence.y, "exp(y)": np.exp(evidence.y)}
    if evidence.dy.size == ratio.size:
        moved = ratio * evidence.dy.ravel()
        if same(moved, np.full_like(moved, moved.mean())):
            return "dy is summed or averaged over them"
        if same(np.sort(moved), np.sort(evidence.dy, axis=None)):
            return "each has the dy of another one, they are in another order"
    for name, x in known.items():
        x = x.ravel()
        for power, words in ((1, name), (2, f"{name}²")):
            for sign, verdict in ((1, "too many"), (-1, "missing")):
                product = ratio / x ** (sign * power)
                if np.isfinite(product).all() and same(product, np.full_like(product, product[0])):
                    return f"the factor {words} is {verdict}"
    return ""
