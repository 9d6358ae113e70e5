"""A derivative of one entry at a time, tanh′, σ′, ReLU′ and their kin: which it is and should be.

The gradient of an elementwise function is dy f′(x), that of a loss over entries a constant times
some f′(x, target). Both are looked up among products of two of the functions that such derivatives
are made of; a fit in every entry is the proof.
"""

import contextlib
import math
import re
from functools import partial

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    NOISE,
    SAME,
    arrays,
    jacobian,
    name_of_output,
    same,
    trial,
    wrong_entries,
)
from minitransformer.gradcheck.diagnosis.factors import off_by, ratio

FEWEST = 6  # entries that a fit of one constant has to explain
ALL = "{}"  # what is said of all entries, not of some alone


def wrong_derivative(evidence):
    """The derivative that is there, and the one that should be, where both have a formula.

    Where it is right on one side of a threshold of x, as for a ReLU's kin, they are of the other.
    """
    if not _may_be_pointwise(evidence) or (evidence.y.ndim and not is_elementwise(evidence)):
        return ""
    places, said = _wrong_range(evidence)
    if said == ALL and (sides := _by_sides(evidence)):
        return sides
    here = evidence.analytic[places], evidence.numeric[places]
    if not here[0].any() or not here[1].any():
        kind = "zero and should not be" if here[1].any() else "not zero and should be"
        return said.format(f"it is {kind}") if said != ALL else ""
    if factor := ratio(*here, evidence.noise[places]):
        return said.format(off_by(factor))
    name, known = evidence.name, known_functions(evidence)
    is_now, should_be = (
        looked_up(gradient, evidence.dy, known, places)
        for gradient in (evidence.analytic, evidence.numeric)
    )
    if is_now == "1" and should_be in (f"(y/{name})", f"(1/{name}) y"):  # any factor of x is that
        return ""
    both = is_now and should_be
    relation = both and _relation(evidence, is_now, should_be, known, places)
    if not relation and said == ALL and (moved := _at_another_place(evidence)):
        return moved
    if not both:
        return ""
    relation = relation or _factor(evidence, is_now, should_be, known, places)
    return said.format(f"it is dy times {is_now}; it should be dy times {should_be}{relation}")


def _relation(evidence, is_now, should_be, known, places):
    """How the derivative that is there comes from the right one, in words."""
    name, last = evidence.name, should_be.split()[-1]
    inverted = should_be.removesuffix(last) + f"(1 − {last})"
    analytic, numeric = evidence.analytic[places], evidence.numeric[places]
    of_y = partial(re.sub, rf"(?<!\w){re.escape(name)}(?![a-z])", "y")
    square = np.broadcast_to(evidence.dy**2, places.shape)[places]
    for comes_so, words in (
        (is_now == "1", "dy is handed on as it is, the derivative is left out"),
        (is_now == should_be.replace("²", ""), "a square is missing"),
        (is_now.replace("<", ">") == should_be, "the condition is the wrong way round"),
        (is_now == inverted and len(np.unique(known.get(last))) == 2, f"{last} is inverted"),
        (of_y(is_now) == should_be, f"{name} in place of y"),
        (is_now == of_y(should_be), f"y in place of {name}"),
        (is_now.replace("+", "−") == should_be.replace("+", "−"), "a sign is wrong"),
        (
            ratio(analytic * numeric, square),
            "it is upside down, multiplied where it has to be divided",
        ),
    ):
        if comes_so:
            return f": {words}"
    return ""


def _factor(evidence, is_now, should_be, known, places):
    """The one factor that is missing, or too many, in words."""
    for numerator, denominator, verdict in (
        (evidence.numeric, evidence.analytic, "missing"),
        (evidence.analytic, evidence.numeric, "too many"),
    ):
        factor = looked_up(numerator, denominator, known, places, pairs=False)
        if factor and "/" not in factor:
            powers = factor == evidence.name and factor in is_now + should_be
            power = ", a power is wrong" if powers else ""
            return f": the factor {factor} is {verdict}{power}"
    return ""


def _by_sides(evidence):
    """A factor of its own on each side of 0, as where a ReLU's kin has its slopes exchanged."""
    x, words, product = evidence.inputs[evidence.name], [], 1.0
    for side, name in ((x > 0, "positive"), (x < 0, "negative")):
        factor = ratio(evidence.analytic[side], evidence.numeric[side], evidence.noise[side])
        if not factor or side.sum() < FEWEST / 2 or math.isclose(factor, 1, rel_tol=SAME):
            return ""
        words.append(f"where {evidence.name} is {name} {off_by(factor)}")
        product *= factor
    exchanged = ": the condition is the wrong way round" if abs(product - 1) < SAME else ""
    return ", ".join(words) + exchanged


def _at_another_place(evidence):
    """f′(y) or f′(−x) for f′(x)."""
    name, y = evidence.name, name_of_output(evidence)
    for value, words in (
        (evidence.y, f"the derivative is taken at {y}; it has to be taken at {name}"),
        (-evidence.inputs[name], f"the derivative is taken at −{name}: a sign is wrong"),
    ):
        there = evidence.again({**evidence.inputs, name: value}, evidence.dy)
        if there and there.numeric.any() and same(there.numeric, evidence.analytic):
            return words
    return ""


def part_of_a_derivative(evidence):
    """Of a loss a factor or a term missing or too many, or what it is; of others a sum missing."""
    if not _may_be_pointwise(evidence):
        return ""
    dy, analytic, numeric = evidence.dy, evidence.analytic, evidence.numeric
    known, everywhere = known_functions(evidence), np.ones(numeric.shape, bool)
    if evidence.y.ndim:
        is_now = (
            is_elementwise(evidence) is False
            and dy.shape == analytic.shape
            and looked_up(analytic, dy, known, everywhere)
        )
        return is_now and (
            f"it is dy times {is_now}, entry by entry, but each output depends on several entries "
            "of this input: the sum over them is missing"
        )
    places, said = _wrong_range(evidence)
    if factor := ratio(analytic[places], numeric[places], evidence.noise[places]):
        return said.format(off_by(factor))
    for target, by, words in (
        (numeric, analytic, "the factor {} is missing"),
        (analytic, numeric, "the factor {} is too many"),
        (numeric - analytic, dy, "the term {}, times dy, is missing or has a wrong factor or sign"),
        (analytic, dy, "it is dy times {}, which is not the derivative"),
    ):
        if found := looked_up(target, by, known, places):
            return said.format(words.format(found))
    return ""


def _may_be_pointwise(evidence):
    return not evidence.slopes and evidence.inputs[evidence.name].size >= FEWEST


def _wrong_range(evidence):
    """The entries that are wrong, where they lie on one side of a threshold of x and some more are
    right, and what is said of them; else all."""
    wrong = wrong_entries(evidence)
    where = _range_of(evidence, wrong) if wrong.mean() <= 4 / 5 else ""
    if "about" in where:  # it has to be that side for another x, too: no chance of these few
        x = evidence.inputs[evidence.name]
        mixed = np.random.default_rng(1).permutation(x.ravel()).reshape(x.shape)
        other = trial(evidence, **{evidence.name: mixed})
        there = _range_of(other, wrong_entries(other)) if other else ""
        where = where if there.split("about")[0] == where.split("about")[0] else ""
    if where:
        return wrong, f"{where} {{}}; elsewhere it is right"
    return np.ones(wrong.shape, bool), ALL


def known_functions(evidence):
    """What derivatives are made of, by name, simplest first."""
    n, x, y = evidence.name, evidence.inputs[evidence.name], evidence.y
    like_x, given = y.shape == x.shape, arrays(evidence)
    arguments = {n: x} | ({name_of_output(evidence): y} if like_x else {})
    others = {}
    for name, other in given.items():
        if name != n and other.dtype.kind in "fiub" and 0 < other.ndim <= x.ndim:
            with contextlib.suppress(ValueError):  # which cannot be broadcast
                others[name] = np.broadcast_to(other, x.shape).astype(float)
    arguments |= others
    found = {"1": np.ones_like(x)}
    for name, a in arguments.items():
        found |= {name: a, f"(1 − {name})": 1 - a, f"(1 + {name})": 1 + a, f"{name}²": a * a}
        found |= {f"(1 − {name}²)": 1 - a * a, f"(1 + {name}²)": 1 + a * a}
        found |= {f"(1/{name})": 1 / a, f"1/(1 − {name})": 1 / (1 - a)}
    for name, a in arguments.items():
        found |= {f"({name} > 0)": (a > 0) * 1.0, f"({name} < 0)": (a < 0) * 1.0}
        found |= {f"sign({name})": np.sign(a)}
    s = 1 / (1 + np.exp(-x))
    found |= {f"σ({n})": s, f"(1 − σ({n}))": 1 - s, f"tanh({n})": np.tanh(x)}
    found |= {f"(1 − tanh²({n}))": 1 - np.tanh(x) ** 2}
    found |= {f"exp({n})": np.exp(x), f"exp(−{n})": np.exp(-x), f"sin({n})": np.sin(x)}
    found |= {f"cos({n})": np.cos(x), f"log|{n}|": np.log(np.abs(x))}
    if like_x:
        found |= {"exp(y)": np.exp(y), f"(y/{n})": y / x, f"(1 − y/{n})": 1 - y / x}
        found |= {"(1 − exp(y))": 1 - np.exp(y)}
    p = np.exp(x - x.max(axis=-1, keepdims=True))
    found["softmax"] = p = p / p.sum(axis=-1, keepdims=True)
    found |= {"(1 − softmax)": 1 - p, "log softmax": np.log(p)}
    for name, ids in given.items():
        fits = ids.dtype.kind in "iu" and ids.shape == x.shape[:-1]
        if fits and ((ids >= 0) & (ids < x.shape[-1])).all():
            one_hot = np.eye(x.shape[-1])[ids]
            found |= {f"one-hot({name})": one_hot, f"(softmax − one-hot({name}))": p - one_hot}
    for name, a in others.items():
        found |= {f"({n} − {name})": x - a, f"sign({n} − {name})": np.sign(x - a)}
        found |= {f"(σ({n}) − {name})": s - a, f"(softmax − {name})": p - a}
        found |= {f"(y − {name})": y - a} if like_x else {}
    return {name: f for name, f in found.items() if np.isfinite(f).all() and f.any()}


def looked_up(target, dy, known, places, pairs=True):
    """The words for ``target`` = constant · dy · product of two known functions, or empty."""
    wanted = target[places]
    if not wanted.any() or wanted.size < FEWEST:
        return ""
    names = list(known)
    table = np.stack([known[name][places] for name in names])  # (K, N)
    factors = [(i, j) for i in range(len(names) if pairs else 1) for j in range(i, len(names))]
    factors.sort(key=lambda pair: (pair[0] > 0, pair[1]))  # single functions first
    left, right_ = (np.array(side) for side in zip(*factors, strict=True))
    products = table[left] * table[right_] * np.broadcast_to(dy, target.shape)[places]  # (P, N)
    power = (products * products).sum(axis=-1)
    with np.errstate(all="ignore"):
        c = products @ wanted / power
        error = np.abs(c[:, None] * products - wanted)
    allowed = SAME * np.abs(wanted) + NOISE * np.abs(wanted).max()
    close = np.flatnonzero((error <= allowed).all(axis=-1))
    if not close.size:
        return ""
    best = min(close, key=lambda k: (factors[k][0] > 0, k > 0 and not _simple(c[k]), k))
    i, j = factors[best]
    words = " ".join(dict.fromkeys(n for n in (names[i], names[j]) if n != "1"))
    if i == j and names[i] != "1":
        words = f"{names[i]} squared"
    return _in_words(c[best], words)


def _simple(c):
    return any(abs(abs(c) * k - round(abs(c) * k)) < 1e-6 * k for k in (1, 2, 3)) and abs(c) > 0.3


def _in_words(c, words):
    sign, size = ("−" if c < 0 else ""), abs(c)
    if abs(size - 1) < 1e-5:
        return f"{sign}{words or 1}"
    return f"{sign}{size:.5g}{' ' if words else ''}{words}"


def is_elementwise(evidence):
    """Whether each output depends on its own entry of x alone; None if unknown."""
    x = evidence.inputs[evidence.name]
    if evidence.y.shape != x.shape or x.ndim == 0:
        return False
    moves = jacobian(evidence)
    if moves is None:
        return None
    moves = moves.reshape(x.size, x.size)
    return not (moves - np.diag(np.diag(moves))).any()  # exact, as central differences cancel


def _range_of(evidence, places):
    """The threshold of x, or of its difference from another input, that those places lie behind."""
    x = evidence.inputs[evidence.name]
    if where := threshold(x, places, evidence.name):
        return where
    for name, other in arrays(evidence).items():
        if name == evidence.name or other.shape != x.shape or other.dtype.kind != "f":
            continue
        if where := threshold(x - other, places, f"{evidence.name} − {name}"):
            return where
    return ""


def threshold(x, places, name):
    """The words for ``places`` as those where x lies on one side of a threshold, or empty.

    Args:
        name: of x.
    """
    inside, outside = x[places], x[~places]
    if min(inside.size, outside.size) < 3:
        return ""
    sizes = np.abs(inside), np.abs(outside), f"|{name}|"
    for a, b, called in ((inside, outside, name), sizes):
        for low, high, negative, side in ((a, b, "negative", "below"), (b, a, "positive", "above")):
            if low.max() < high.min():
                if low.max() <= 0 <= high.min() and called == name:
                    return f"where {name} is {negative}"
                return f"where {called} is {side} about {(low.max() + high.min()) / 2:.3g}"
    return ""
