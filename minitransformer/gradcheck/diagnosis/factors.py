"""A constant factor, and the size it comes from: named only where it follows when that changes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    SAME,
    arrays,
    redrawn,
    resized,
    rows,
    same,
    trial,
)

AXIS_NAMES = {  # of the arrays that hold a batch, by their number of axes
    2: ["the batch size", "the width d"],
    3: ["the batch size", "the length", "the width d"],
    4: ["the batch size", "the number of heads", "the length", "the head width d_k"],
}


@dataclass(frozen=True)
class Size:
    """A number that a gradient may wrongly be multiplied or divided by.

    Attributes:
        name: what it is called.
        of: the number, from an Evidence.
        axes: those it is made of, as (input, axis), (input, None) for the input's value.
        likely: whether it is mentioned where it can be neither shown nor disproved.
    """

    name: str
    of: Callable
    axes: tuple
    likely: bool = True


def constant_factor(evidence):
    """A mean for a sum, a sum for a mean, a constant of the formula forgotten or used twice."""
    factor = factor_of(evidence)
    if factor is None:
        return ""
    times = max(abs(factor), 1 / abs(factor))
    chance = not math.isclose(times, round(times), rel_tol=SAME)
    if chance and not all(_near(factor_of(other), factor) for other in redrawn(evidence)):
        return ""
    if math.isclose(factor, -1, rel_tol=SAME):
        return "its sign is wrong"
    text = f"it is {times:.6g} times too {'large' if abs(factor) > 1 else 'small'}"
    text += " and of the wrong sign" if factor < 0 else ""
    return text + _explained(evidence, abs(factor))


def _near(other, factor):
    return other is not None and math.isclose(other, factor, rel_tol=SAME)


def factor_of(evidence):
    """The one factor between the two gradients, if there is one other than 0."""
    size = np.abs(evidence.numeric).max(initial=0)
    if not size:
        return None
    numeric = evidence.numeric / size  # whose square neither overflows nor vanishes
    factor = float((evidence.analytic / size * numeric).sum() / (numeric * numeric).sum())
    fits = factor and same(evidence.analytic / factor, evidence.numeric, evidence.noise)
    return factor if fits else None


def _explained(evidence, factor):
    times = max(factor, 1 / factor)
    candidates = [
        size for size in _sizes(evidence) if math.isclose(size.of(evidence), times, rel_tol=SAME)
    ]
    shown, disproved, constant = set(), set(), True
    for other in _trials(evidence, candidates):
        now = factor_of(other)
        if now is None:
            continue
        now = abs(now) if factor > 1 else 1 / abs(now)
        constant = constant and math.isclose(now, times, rel_tol=SAME)
        for i, size in enumerate(candidates):
            value = size.of(other)
            if not math.isclose(now, value, rel_tol=SAME):
                disproved.add(i)
            elif not math.isclose(value, times, rel_tol=SAME):
                shown.add(i)
    left = [size for i, size in enumerate(candidates) if i not in disproved]
    if sure := [
        candidates[i].name for i in sorted(shown - disproved)
    ]:  # they go together: one will do
        return f": {times:.6g} is {sure[0]}"
    if constant and any(size.likely for size in left):
        names = list(dict.fromkeys(size.name for size in left if size.likely))
        fits = [*(names if len(names) < 4 else ["one of several sizes"]), "a factor of the formula"]
        return f"; several causes fit: {times:.6g} is {' or '.join(fits)}"
    if math.isclose(times, 2, rel_tol=SAME) and constant:
        if factor < 1:
            return ": a factor of 2 is missing, as of a square or of a second use of this input"
        return ": a factor of ½ is missing, or one of 2 is too many"
    return ""


def _trials(evidence, candidates):
    """Yield evidence in which the sizes in question are others."""
    axes = {axis for size in candidates for axis in size.axes}
    for name in {name for name, axis in axes if axis is None}:
        x = evidence.inputs[name]
        other = trial(evidence, **{name: x + 1 if isinstance(x, int) else x * 1.25})
        if other is not None:
            yield other
    of_y = any(name == "y" for name, _ in axes)
    given = arrays(evidence)
    sizes = (
        {n for a in given.values() for n in a.shape}
        if of_y
        else {given[name].shape[axis] for name, axis in axes if axis is not None}
    )
    for size in sorted(sizes - {1}):
        for chosen, other in resized(evidence, size):
            if of_y or axes & set(chosen):
                yield other


def _sizes(evidence):
    """All sizes and what they are called, with their roots, halves, doubles and quotients."""
    plain = list(_plain_sizes(evidence))
    yield from plain
    for size in plain:
        value, of = size.of(evidence), size.of
        square = float(value).is_integer() and math.isqrt(int(value)) ** 2 == value
        root = f"the root of {size.name}" if square else f"√{value:.6g}, the root of {size.name}"
        yield Size(root, lambda e, of=of: math.sqrt(of(e)), size.axes, not square)
        if not size.axes or size.axes[0][1] is None:
            continue
        yield Size(f"twice {size.name}", lambda e, of=of: 2 * of(e), size.axes, False)
        half = f"half of {value:.6g}, {size.name}"
        yield Size(half, lambda e, of=of: of(e) / 2, size.axes, False)
        less = f"n / (n − 1) for n = {value:.6g}, {size.name}"
        if value > 2:
            yield Size(less, lambda e, of=of: of(e) / max(of(e) - 1, 0.5), size.axes, False)
        for other in plain:
            if len(size.axes) == len(other.axes) == 1 and size.axes[0][0] == other.axes[0][0]:
                quotient = f"{size.name} over {other.name}"
                yield Size(
                    quotient,
                    lambda e, a=of, b=other.of: a(e) / (b(e) or math.nan),  # of none of them
                    (*size.axes, *other.axes),
                    False,
                )


def _plain_sizes(evidence):
    given = arrays(evidence)
    for position, (name, x) in enumerate(given.items()):
        if x.ndim == 0 and x.dtype.kind == "f":
            yield Size(name, lambda e, n=name: abs(float(e.inputs[n])), ((name, None),))
            yield Size(f"1 / {name}", lambda e, n=name: _inverse(e.inputs[n]), ((name, None),))
        names = axis_names(evidence, name, position)
        for count in range(1, x.ndim + 1):
            for axes in combinations(range(x.ndim), count):
                called = _product_name(name, names, axes, x.ndim)
                if called:
                    yield Size(
                        called,
                        lambda e, n=name, a=axes: math.prod(np.shape(e.inputs[n])[i] for i in a),
                        tuple((name, axis) for axis in axes),
                    )
    for name, x in evidence.inputs.items():
        if isinstance(x, int | float) and not isinstance(x, bool) and x:
            yield Size(name, lambda e, n=name: abs(e.inputs[n]), ((name, None),))
            yield Size(f"1 / {name}", lambda e, n=name: _inverse(e.inputs[n]), ((name, None),))
    if evidence.numeric.ndim > 1 and not rows(evidence.numeric).any(axis=-1).all():
        yield Size(
            "N, the number of rows with a gradient",
            lambda e: np.count_nonzero(rows(e.numeric).any(axis=-1)),
            tuple((evidence.name, axis) for axis in range(evidence.numeric.ndim - 1)),
        )

    y = evidence.y
    for axis, n in enumerate(y.shape):  # where no axis of an input has that size
        if not any(n in np.shape(x) for x in given.values()):
            called = f"the size of axis {axis} of y"
            yield Size(called, lambda e, a=axis: e.y.shape[a], (("y", axis),))
    if y.ndim:
        for axis in range(y.ndim):
            called = f"the number of entries of y at one index of its axis {axis}"
            of = partial(_at_one_index, axis)
            yield Size(called, of, tuple(("y", a) for a in range(y.ndim)), False)
    x = evidence.inputs[evidence.name]
    if y.size > 1 and x.size % y.size == 0:
        window = "the window, as this input has so many entries for each of y"
        yield Size(window, lambda e: e.inputs[e.name].size / e.y.size, ())


def _at_one_index(axis, evidence):
    return evidence.y.size / evidence.y.shape[axis]


def _inverse(value):
    return 1 / abs(float(value)) if value else math.inf


def _product_name(name, names, axes, ndim):
    if len(axes) == 1:
        return names[axes[0]]
    if not names[0].startswith("the batch"):
        return ""
    if len(axes) == ndim:
        return f"the number of entries of {name}"
    if axes == tuple(range(ndim - 1)):
        return "N, the number of rows"
    return " times ".join(names[axis] for axis in axes)


def axis_names(evidence, name, position):
    """What the axes of an input are called: token ids, arrays of three or more axes and the very
    first one hold a batch; the others are taken for parameters."""
    x = np.asarray(evidence.inputs[name])
    plain = [f"the size of axis {i} of {name}" for i in range(x.ndim)]
    if x.dtype.kind in "iu" and x.ndim == 2:
        return AXIS_NAMES[3][:2]
    if x.ndim not in AXIS_NAMES or (x.ndim == 2 and position):
        return plain
    if like_attention(evidence, x) or x.ndim == 2:
        return AXIS_NAMES[x.ndim]
    if time_first(evidence, x):
        return ["the length", "the batch size", "the width d"]
    alike = [
        other
        for other in arrays(evidence).values()
        if other.ndim == x.ndim and other.dtype.kind == "f" and len(other) != len(x)
    ]
    if x.ndim == 4 or alike:  # images or sequences with their channels, and their kernels
        return [*(["the batch size"] if position == 0 else plain[:1]), *plain[1:]]
    return AXIS_NAMES[x.ndim]


def like_attention(evidence, x):
    """Whether x (B, H, T, K) holds heads: another input has the same first two and last axes, or
    one is called so."""
    if x.ndim != 4:
        return False
    heads = [
        name
        for name, other in arrays(evidence).items()
        if other.ndim == 4 and (other.shape[:2], other.shape[-1]) == (x.shape[:2], x.shape[-1])
    ]
    return len(heads) > 1 or any("head" in name or name in ("q", "query") for name in heads)


def time_first(evidence, x):
    """Whether x is (T, B, D): a state or an output has the batch as its first axis."""
    if x.ndim != 3 or x.shape[0] == x.shape[1]:
        return False
    return any(
        other.ndim == 2 and len(other) == x.shape[1]
        for name, other in {**arrays(evidence), "y": evidence.y}.items()
        if name == "y" or name.startswith(("h", "c", "s"))
    )
