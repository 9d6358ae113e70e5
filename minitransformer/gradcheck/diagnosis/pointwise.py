"""A derivative of one entry at a time: tanh′, σ′, ReLU′ and their kin."""

import numpy as np

from minitransformer.gradcheck.diagnosis.derivatives import (
    FEWEST,
    UPSIDE_DOWN,
    known_functions,
    looked_up,
    named,
)
from minitransformer.gradcheck.diagnosis.experiments import (
    SAME,
    arrays,
    same,
    trial,
    wrong_entries,
)


def wrong_derivative(evidence, plainly=False):
    """tanh′, σ′ and the like with a term, a factor or a square missing, or taken at y for x.

    Args:
        plainly: whether to say what it is and should be even if that shows no slip.
    """
    x = evidence.inputs[evidence.name]
    if evidence.slopes or x.size < FEWEST:
        return ""
    elementwise = is_elementwise(evidence)
    if not elementwise and evidence.y.ndim:
        return ""
    known = known_functions(evidence)
    everywhere = np.ones(x.shape, bool)
    if cause := _two_slopes(evidence) or _in_a_range(evidence, known):
        return cause
    moved = _at_another_place(evidence) if elementwise else ""
    cause = named(evidence, known, everywhere, plainly)
    if moved and cause.endswith(UPSIDE_DOWN):
        return f"several causes fit: {moved}; or {cause}"
    if moved or cause or not plainly:
        return moved or cause
    is_now = looked_up(evidence.analytic, evidence.dy, known, everywhere)
    return f"it is dy times {is_now}, which is not the derivative" if is_now else ""


def another_derivative(evidence):
    """The derivative that is there, and the one that should be."""
    return wrong_derivative(evidence, plainly=True)


def only_the_diagonal(evidence):
    """An elementwise derivative, such as y (1 − y), of a function that mixes entries: softmax."""
    if evidence.slopes or evidence.y.shape != evidence.analytic.shape or evidence.y.size < FEWEST:
        return ""
    everywhere = np.ones(evidence.y.shape, bool)
    is_now = looked_up(evidence.analytic, evidence.dy, known_functions(evidence), everywhere)
    if not is_now or not _mixes_entries(evidence):
        return ""
    product = " (* where @ belongs?)" if is_now in evidence.inputs else ""
    return (
        f"it is dy times {is_now}, entry by entry, but each output depends on several entries of "
        f"this input: the sum over them is missing{product}"
    )


def is_elementwise(evidence):
    """Whether each output depends on its own entry of x alone: half of dy reaches half of dx."""
    x = evidence.inputs[evidence.name]
    if evidence.y.shape != x.shape or x.ndim == 0:
        return False
    half = np.random.default_rng(0).random(x.shape) < 0.5
    for places in (half, ~half):
        other = trial(evidence, dy=evidence.dy * places)
        if other is None or other.numeric[~places].any() or other.analytic[~places].any():
            return False
    return True


def _mixes_entries(evidence):
    """Whether half of dy reaches, well above all noise, the other half of dx."""
    half = np.random.default_rng(0).random(evidence.dy.shape) < 0.5
    other = trial(evidence, dy=evidence.dy * half)
    return other is not None and bool(
        np.abs(other.numeric[~half]).max(initial=0) > 1e-3 * np.abs(other.numeric).max()
    )


def _at_another_place(evidence):
    """f′(y) or f′(−x) for f′(x)."""
    for value, words in (
        (evidence.y, "the derivative is taken at y; it has to be taken at x"),
        (-evidence.inputs[evidence.name], "the derivative is taken at −x: a sign is wrong"),
    ):
        there = evidence.again({**evidence.inputs, evidence.name: value}, evidence.dy)
        if there is not None and there.numeric.any() and same(there.numeric, evidence.analytic):
            return words
    return ""


def _two_slopes(evidence):
    """A constant slope on each side of 0, as for ReLU and its kin, and which they should be."""
    x, words = evidence.inputs[evidence.name], []
    sides = (("positive", x > 0), ("negative", x < 0))
    for _, side in sides:
        if side.sum() < 3:
            return ""
    slopes = []
    for _, side in sides:
        dy = np.broadcast_to(evidence.dy, x.shape)[side]
        for gradient in (evidence.analytic[side], evidence.numeric[side]):
            c = (gradient * dy).sum() / (dy * dy).sum()
            if not same(gradient, c * dy, evidence.noise[side]):
                return ""
            slopes.append(float(c) if abs(c) > 1e-9 else 0.0)
    for (name, _), now, should_be in zip(sides, slopes[::2], slopes[1::2], strict=True):
        if abs(now - should_be) > SAME:
            where = f"where {evidence.name} is {name}"
            words.append(f"{where} it is {now:.5g} dy and should be {should_be:.5g} dy")
    crossed = np.allclose(slopes[::2], slopes[:0:-2], atol=1e-5) and len(words) == 2
    return ", ".join(words) + (": the condition is the wrong way round" if crossed else "")


def _in_a_range(evidence, known):
    """Right on one side of a threshold of x, as for a ReLU's kin, and wrong on the other."""
    wrong = wrong_entries(evidence)
    where = _range_of(evidence, wrong)
    if not where or not _also_elsewhere(evidence, where):
        return ""
    here = evidence.analytic[wrong], evidence.numeric[wrong]
    if not here[0].any() or not here[1].any():
        kind = "zero and should not be" if here[1].any() else "not zero and should be"
        return f"{where} it is {kind}; elsewhere it is right"
    factor = float((here[0] * here[1]).sum() / (here[1] * here[1]).sum())
    if factor and same(here[0] / factor, here[1]):
        times = max(abs(factor), 1 / abs(factor))
        if abs(factor + 1) < 1e-5:
            return f"{where} its sign is wrong; elsewhere it is right"
        large = "large" if abs(factor) > 1 else "small"
        sign = " and of the wrong sign" if factor < 0 else ""
        return f"{where} it is {times:.6g} times too {large}{sign}; elsewhere it is right"
    cause = named(evidence, known, wrong)
    return f"{where} {cause}; elsewhere it is right" if cause else ""


def _range_of(evidence, places):
    """The threshold of x, or of its difference from another input, that those places lie behind."""
    x = evidence.inputs[evidence.name]
    if where := threshold(x, places):
        return where.replace("x", evidence.name)
    for name, other in arrays(evidence).items():
        if name == evidence.name or other.shape != x.shape or other.dtype.kind != "f":
            continue
        if where := threshold(x - other, places):
            return where.replace("x", f"{evidence.name} − {name}")
    return ""


def _also_elsewhere(evidence, where):
    """Whether entries of another x are wrong on that same side: no chance of these few."""
    if "about" not in where:
        return True
    x = evidence.inputs[evidence.name]
    mixed = np.random.default_rng(1).permutation(x.ravel()).reshape(x.shape)
    other = trial(evidence, **{evidence.name: mixed})
    if other is None:
        return False
    return _range_of(other, wrong_entries(other)).split("about")[0] == where.split("about")[0]


def threshold(x, places):
    """The words for ``places`` as those where x lies on one side of a threshold, or empty."""
    inside, outside = x[places], x[~places]
    if min(inside.size, outside.size) < 3:
        return ""
    for a, b, name in ((inside, outside, "x"), (np.abs(inside), np.abs(outside), "|x|")):
        for low, high, negative, side in (
            (a, b, "negative", "below"),
            (b, a, "positive", "above"),
        ):
            if low.max() < high.min():
                if low.max() <= 0 <= high.min() and name == "x":
                    return f"where x is {negative}"
                return f"where {name} is {side} about {(low.max() + high.min()) / 2:.3g}"
    return ""
