"""What a parameter or a half of an input multiplies: sums of dy times the wrong thing."""

from dataclasses import replace

import numpy as np

from minitransformer.gradcheck.diagnosis.derivatives import (
    FEWEST,
    known_functions,
    named,
    product_in_words,
)
from minitransformer.gradcheck.diagnosis.experiments import (
    SAME,
    others,
    trial,
    wrong_entries,
)


def wrong_derivative_of_parameter(evidence):
    """A parameter's gradient made with x for x̂, with y, without a condition, ...: a sum over what
    it was broadcast along of dy times something."""
    y, dy = evidence.y, evidence.dy
    own = np.asarray(evidence.inputs[evidence.name])
    if evidence.slopes or not 3 <= own.size < y.size or own.ndim > y.ndim:
        return ""
    axes = broadcast_axes(own.shape, y.shape)
    other_dy = trial(evidence, dy=np.flip(dy))
    if axes is None or other_dy is None:
        return ""
    for name, x in others(evidence).items():
        if x.shape != y.shape:
            continue
        whole = replace(evidence, name=name)
        known = known_functions(whole)
        for axis in {x.ndim - 1, 0}:
            centred = x - x.mean(axis=axis, keepdims=True)
            known["x̂" if axis else "x̂ over axis 0"] = centred / x.std(axis=axis, keepdims=True)
            known["(x − mean)" if axis else "(x − mean over axis 0)"] = centred
        if own.any():
            known[evidence.name] = np.broadcast_to(own, y.shape) * 1.0
        words = [
            _sum_lookup(known, axes, [(e.dy, g(e)) for e in (evidence, other_dy)])
            for g in (lambda e: e.analytic, lambda e: e.numeric)
        ]
        if all(words):
            text = f"it is the sum of dy times {words[0]}; it should be that of dy times {words[1]}"
            for whole, part, verdict in ((*words[::-1], "missing"), (*words, "too many")):
                if whole.startswith(f"{part} "):
                    return f"{text}: the factor {whole.removeprefix(part).strip()} is {verdict}"
            return text
        if words[0]:
            return (
                f"it is the sum of dy times {words[0]}, which is not the derivative: a factor is "
                "missing or wrong"
            )
    return ""


def broadcast_axes(small, large):
    """The axes along which an array was broadcast from one shape to the other, or None."""
    lead = len(large) - len(small)
    for axis, n in enumerate(small):
        if n not in (1, large[lead + axis]):
            return None
    grown = [lead + a for a, n in enumerate(small) if n == 1 and large[lead + a] > 1]
    return (*range(lead), *grown) or None


def _sum_lookup(known, axes, pairs):
    """The words for targets = constant · sum over axes of dy · product of two functions."""
    names = list(known)
    table = np.stack([known[name] for name in names])
    for i in range(len(names)):
        found = []
        for dy, target in pairs:
            sums = (table[i] * table * dy).sum(axis=tuple(a + 1 for a in axes))
            sums = sums.reshape(len(names), -1)
            wanted = target.ravel()
            c = sums @ wanted / (sums * sums).sum(axis=-1)
            error = np.abs(c[:, None] * sums - wanted).max(axis=-1)
            found.append((c, error <= SAME * np.abs(wanted).max()))
        (c, fits), (again, fits_again) = found
        for j in np.flatnonzero(fits & fits_again & (np.abs(c - again) <= 1e-4 * np.abs(c))):
            words = " ".join(n for n in dict.fromkeys((names[i], names[j])) if n != "1")
            if i == j and i:
                words = f"{words} squared"
            return product_in_words(c[j], words)
    return ""


def wrong_half(evidence):
    """A gated unit, y = a g(b) of the halves of x: which of the two is wrong, and how."""
    x, y, dy = evidence.inputs[evidence.name], evidence.y, evidence.dy
    if evidence.slopes or x.ndim != y.ndim or x.ndim == 0 or x.shape[-1] != 2 * y.shape[-1]:
        return ""
    if x.shape[:-1] != y.shape[:-1] or y.size < FEWEST:
        return ""
    wrong = np.split(wrong_entries(evidence), 2, axis=-1)
    halves = dict(zip(("first half", "second half"), np.split(x, 2, axis=-1), strict=True))
    causes = []
    for i, (half, a) in enumerate(halves.items()):
        if not wrong[i].any():
            continue
        b = next(value for name, value in halves.items() if name != half)
        gradients = [np.split(g, 2, axis=-1)[i] for g in (evidence.analytic, evidence.numeric)]
        inputs = {"x": a, "z": b}
        part = replace(
            evidence, name="x", analytic=gradients[0], numeric=gradients[1], inputs=inputs, dy=dy
        )
        known = known_functions(part)
        gate = 1 / (1 + np.exp(-b))
        known |= {"σ(z)": gate, "(1 − σ(z))": 1 - gate}
        cause = named(part, known, np.ones(a.shape, bool))
        if not cause:
            return ""
        causes.append(f"in the {half}, x, beside the other, z, {cause}")
    return "; ".join(causes)
