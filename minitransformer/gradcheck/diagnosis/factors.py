"""A constant factor, or one of its own for each feature, row, head or gate.

A size that a factor comes from is named only where the factor follows when that changes.
"""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    SAME,
    arrays,
    name_of_output,
    others,
    redrawn,
    resized,
    same,
    trial,
)

SEQUENCE = ["the batch size", "the length", "the width d"]
STATES = "h", "h0", "c", "c0", "s", "s0", "state"  # names of what a recurrence begins with


def constant_factor(evidence):
    """A mean for a sum, a sum for a mean, a constant of the formula forgotten or used twice."""
    factor = factor_of(evidence)
    if factor is None:
        return ""
    times = max(abs(factor), 1 / abs(factor))
    chance = not math.isclose(times, round(times), rel_tol=SAME)
    if chance and not all(_near(factor_of(other), factor) for other in redrawn(evidence)):
        return ""
    return off_by(factor) + (_explained(evidence, abs(factor)) if factor != -1 else "")


def off_by(factor):
    """How far off a factor is, in words."""
    if factor == -1:
        return "its sign is wrong"
    return f"it is {times_too(factor)}"


def times_too(factor, digits=6):
    times = max(abs(factor), 1 / abs(factor)) if factor else math.inf
    sign = " and of the wrong sign" if factor < 0 else ""
    return f"{times:.{digits}g} times too {'large' if abs(factor) > 1 else 'small'}{sign}"


def _near(a, b):
    return a is not None and math.isclose(a, b, rel_tol=SAME)


def factor_of(evidence):
    """The one factor between the two gradients, if there is one other than 0."""
    return ratio(evidence.analytic, evidence.numeric, evidence.noise)


def ratio(a, b, noise=None):
    """The one factor between two arrays, −1 where it is nearly that; None if there is none."""
    size = np.abs(b).max(initial=0)
    if not size:
        return None
    plain = b / size  # whose square neither overflows nor vanishes
    factor = float((a / size * plain).sum() / (plain * plain).sum())
    if not factor or not same(a / factor, b, noise):
        return None
    return -1 if math.isclose(factor, -1, rel_tol=SAME) else factor


def _explained(evidence, factor):
    times = max(factor, 1 / factor)
    sizes = _sizes(evidence)
    fitting = [size for size, (value, *_) in sizes.items() if _near(value, times)]
    shown, disproved, constant = set(), set(), True
    for other in _trials(evidence, {axis for size in fitting for axis in sizes[size].axes}):
        now, others_ = factor_of(other), _sizes(other)
        if now is None:
            continue
        now = abs(now) if factor > 1 else 1 / abs(now)
        changed = not _near(now, times)
        constant = constant and not changed
        for size in (size for size in fitting if size in others_):
            follows = _near(now, others_[size].value)
            (shown if follows and changed else set() if follows else disproved).add(size)
    left = [size for size in fitting if size not in disproved]
    if sure := [size for size in left if size in shown]:  # they go together: one will do
        return f": {times:.6g} is {_in_words(sure[0][0], times)}"
    likely = dict.fromkeys(_in_words(name, times) for name, of in left if sizes[name, of].likely)
    if constant and likely:
        fits = " or ".join(likely if len(likely) < 4 else ["one of several sizes"])
        return f"; several causes fit: {times:.6g} is {fits} or a factor of the formula"
    if math.isclose(times, 2, rel_tol=SAME) and constant:
        if factor < 1:
            return ": a factor of 2 is missing, as of a square or of a second use of this input"
        return ": a factor of ½ is missing, or one of 2 is too many"
    return ""


def _in_words(name, times):
    """A size with the number that it comes from, where that is another."""
    if name.startswith("the root of") and not _near(times, round(times)):
        return f"√{times * times:.6g}, {name}"
    return name.replace("for n", f"for n = {times / (times - 1):.6g}") if "for n" in name else name


def _trials(evidence, axes):
    """Yield evidence in which sizes, (input, axis) or (input, None) for its value, are others."""
    for name in {name for name, axis in axes if axis is None}:
        x = evidence.inputs[name]
        other = trial(evidence, **{name: x + 1 if isinstance(x, int) else x * 1.25})
        if other is not None:
            yield other
    of_y = any(name == "y" for name, _ in axes)
    given = arrays(evidence).items()
    sizes = {(name, i): n for name, x in given for i, n in enumerate(x.shape) if n > 1}
    for size in sorted({n for axis, n in sizes.items() if of_y or axis in axes}):
        yield from resized(evidence, size, None if of_y else axes)


class Size(NamedTuple):
    """A number that a gradient may wrongly be multiplied or divided by.

    Attributes:
        value: the number.
        axes: those it is made of, as (input, axis), (input, None) for the input's value.
        likely: whether it is mentioned where it can be neither shown nor disproved.
    """

    value: float
    axes: tuple = ()
    likely: bool = True


def _sizes(evidence):
    """All sizes by what they are called and the input, with their roots, and n / (n − 1)."""
    plain = _plain_sizes(evidence)
    found = dict(plain)
    for (name, of), (n, axes, _) in plain.items():
        found[f"the root of {name}", of] = Size(math.sqrt(n), axes, not math.sqrt(n).is_integer())
        if axes and axes[0][1] is not None and n > 2:
            found[f"n / (n − 1) for n, {name}", of] = Size(n / (n - 1), axes, False)
    return found


def _plain_sizes(evidence):
    given, y, numeric, found = arrays(evidence), evidence.y, evidence.numeric, {}
    for name, x in given.items():
        names = _axis_names(evidence, name)
        for axes in (axes for k in range(x.ndim) for axes in combinations(range(x.ndim), k + 1)):
            if called := _called(name, names, axes):
                size = math.prod(x.shape[axis] for axis in axes)
                found[called, name] = Size(size, tuple((name, axis) for axis in axes))
    for name, x in evidence.inputs.items():
        if isinstance(x, int | float | np.ndarray) and np.ndim(x) == 0 and x and x is not True:
            found[name, name] = Size(abs(float(x)), ((name, None),))
            found[f"1 / {name}", name] = Size(1 / abs(float(x)), ((name, None),))
    if numeric.ndim > 1 and not (live := numeric.any(axis=-1)).all():
        axes = tuple((evidence.name, axis) for axis in range(numeric.ndim - 1))
        found["N, the number of rows with a gradient", ""] = Size(np.count_nonzero(live), axes)
    for axis, n in enumerate(y.shape):  # where no axis of an input has that size
        if not any(n in x.shape for x in given.values()):
            found[f"the size of axis {axis} of y", ""] = Size(n, (("y", axis),))
    if y.size > 1:
        window = numeric.size // y.size if numeric.size % y.size == 0 else 0
        found["the window, as this input has so many entries for each of y", ""] = Size(window)
    return found


def _called(name, names, axes):
    """What the product of these sizes is called; empty for what holds no batch."""
    if len(axes) == 1:
        return names[axes[0]]
    if not names[0].startswith("the batch"):
        return ""
    if len(axes) == len(names):
        return f"the number of entries of {name}"
    rows_ = axes == tuple(range(len(names) - 1))
    return "N, the number of rows" if rows_ else " times ".join(names[axis] for axis in axes)


def _axis_names(evidence, name):
    """What the axes of an input are called.

    Token ids, arrays of three or more axes and the first one hold a batch; the others are taken for
    parameters.
    """
    given = arrays(evidence)
    x, first = given[name], name == next(iter(given))
    plain = [f"the size of axis {axis} of {name}" for axis in range(x.ndim)]
    if x.dtype.kind in "iu" and x.ndim == 2:
        return SEQUENCE[:2]
    if x.ndim < 2 or (x.ndim == 2 and not first) or x.ndim > 4:
        return plain
    if x.ndim == 2:
        return ["the batch size", "the width d"]
    floats = [o for o in given.values() if o.ndim == x.ndim and o.dtype.kind == "f"]
    heads = [o for o in floats if (o.shape[:2], o.shape[-1]) == (x.shape[:2], x.shape[-1])]
    if x.ndim == 4 and len(heads) > 1:
        return ["the batch size", "the number of heads", "the length", "the head width d_k"]
    if x.ndim == 4 or any(len(o) != len(x) for o in floats):  # images, or channels, and kernels
        return ["the batch size", *plain[1:]] if first else plain
    states = [o for n, o in given.items() if n in STATES] + [evidence.y]
    rows = [len(o) for o in states if o.ndim == 2]
    time_first = x.shape[0] != x.shape[1] and x.shape[1] in rows
    return [SEQUENCE[1], SEQUENCE[0], SEQUENCE[2]] if time_first else SEQUENCE


def factor_by_axis(evidence):
    """A gain, a row's scale or a gate that is missing or at the wrong place."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if evidence.slopes or numeric.ndim < 2:
        return ""
    every = tuple(range(numeric.ndim))
    between = {3: [(1,), (0,)], 4: [(1,)]}.get(numeric.ndim, [])
    for axes in [every[-1:], *between, every[:-1]]:
        over = tuple(axis for axis in every if axis not in axes)
        power = (numeric * numeric).sum(axis=over, keepdims=True)
        factor = (analytic * numeric).sum(axis=over, keepdims=True) / np.where(power, power, 1)
        alive = (np.abs(numeric) > 10 * evidence.noise).sum(axis=over)
        if alive.sum() < 2 * alive.size:  # one entry of each part has any factor
            continue
        if not same(analytic, numeric * factor, evidence.noise):
            continue
        off = factor[np.abs(factor - 1) > SAME]
        if same(off, np.full_like(off, off.mean())):  # by one factor, all or some of them
            return off_by(off.mean()) if len(off) == factor.size else ""
        part = "feature" if axes == every[-1:] else f"entry of axis {axes[0]}"
        part = "row" if axes == every[:-1] else part
        return f"each {part} is off by a factor of its own{_known_scale(evidence, factor.ravel())}"
    return ""


def _known_scale(evidence, factor):
    """Another input, or y, that each factor is a power of."""
    y = name_of_output(evidence)
    known = {**others(evidence), y: evidence.y, f"exp({y})": np.exp(evidence.y)}
    for name, x in known.items():
        for power, words in ((1, name), (2, f"{name}²")) if x.size == factor.size else ():
            for sign, verdict in ((1, "too many"), (-1, "missing")):
                product = factor / x.ravel() ** (sign * power)
                if np.isfinite(product).all() and same(product, np.full_like(product, product[0])):
                    return f": the factor {words} is {verdict}"
    return ""
