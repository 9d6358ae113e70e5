"""How a cause is put to the test: the same pair on changed inputs, and what counts as equal."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from minitransformer.core.backend import is_array

SAME = 1e-5  # relative difference below which a mark fits: above numeric noise, below any mistake
NOISE = 1e-10  # of the largest entry, where it is not known entry by entry
TRIALS = 150  # of one diagnosis, at most
WORK = 6000  # calls of forward in the trials of one diagnosis, about
WORK_OF_ALL = 10_000_000  # entries that forward is handed in the trials of one pair, about
MOST_MOVES = 2_000_000  # entries of a Jacobian
IN_VAIN = 100  # sets of axes that can be no other size: of a model, thousands could be
FEW = 6  # trials that a diagnosis may make even so, to see whether a cause holds


def same(a, b, noise=None):
    """Whether two gradients agree in every entry, as far as central differences can tell.

    Args:
        noise: what they cannot resolve, entry by entry; by default a little of the largest entry.
    """
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    size = np.maximum(np.abs(a), np.abs(b))
    noise = NOISE * size.max(initial=0) if noise is None else noise
    return bool((np.abs(a - b) <= SAME * size + noise).all())


def name_of_output(evidence):
    """What to call y: that may be the name of an input."""
    return "the output" if "y" in evidence.inputs else "y"


def wrong_entries(evidence):
    """Where the gradient is wrong, as booleans."""
    a, b = evidence.analytic, evidence.numeric
    size = np.maximum(np.abs(a), np.abs(b))
    return np.abs(a - b) > SAME * size + evidence.noise


def with_bounded_trials(evidence):
    """The evidence with an ``again`` that gives up, and returns None, when it took long enough.

    The gradients of one pair share what all of them may take, but for a few trials each.
    """
    calls = 2 * evidence.numeric.size  # of forward, in each trial
    entries = sum(x.size for x in arrays(evidence).values())
    left, tried, found = min(TRIALS, 10 + WORK // calls), 0, evidence.found

    def again(inputs, dy=None):
        nonlocal left, tried
        if left <= 0 or (tried >= FEW and found.get("work", 0) > WORK_OF_ALL):
            return None
        other = evidence.again(inputs, dy)
        refused = other is None  # after one call of forward
        left, tried = left - (not refused), tried + 1
        found["work"] = found.get("work", 0) + entries * (1 if refused else calls + 2)
        return other

    return replace(evidence, again=again)


def trial(evidence, dy=None, **changed):
    """The evidence with another dy, or other values of some inputs; None where that fails."""
    if changed and dy is None:
        dy = evidence.dy
    found = evidence.again({**evidence.inputs, **changed}, dy)
    if found is None or found.analytic.shape != found.numeric.shape:
        return None
    finite = np.isfinite(found.analytic).all() and np.isfinite(found.numeric).all()
    return found if finite else None


def jacobian(evidence):
    """What y moves by with each entry of the input; None for too many.

    Its shape is ``(*numeric.shape, *y.shape)``. Times dy and summed over y's axes it is the right
    gradient for any dy.
    """
    found, size = evidence.found, evidence.numeric.size
    if "moves" not in found or found["moves"][0] != evidence.name:
        work = 2 * size * sum(x.size for x in arrays(evidence).values()) + found.get("work", 0)
        few = work <= WORK_OF_ALL and size * evidence.y.size <= MOST_MOVES
        found["moves"] = evidence.name, evidence.moves() if few else None  # of one input at a time
        found["work"] = work if few else found.get("work", 0)
    return found["moves"][1]


def redrawn(evidence, ids=False):
    """Yield the evidence twice on other inputs with another dy: what holds by chance fails there.

    The entries of each input change places, so that they stay as they may be; where forward is not
    defined then, they change a little.

    Args:
        ids: whether those of ids and masks change places, too, where forward is defined then.
    """
    rng = np.random.default_rng(11)

    def mixed(x):
        return x[rng.permutation(x.size)]

    ways = [
        *([(lambda x: True, mixed)] if ids else []),
        (_real, mixed),
        (_real, lambda x: x * rng.uniform(0.9, 1.1, x.shape)),
    ]
    for _ in range(2):
        dy = rng.standard_normal(evidence.dy.shape)
        for chosen, change in ways:
            given = arrays(evidence).items()
            changed = {n: change(x.ravel()).reshape(x.shape) for n, x in given if chosen(x)}
            other = trial(evidence, dy, **changed)
            if other is not None and other.y.shape == dy.shape:
                yield other
                break


def arrays(evidence):
    """The inputs that are arrays, by name."""
    return {name: np.asarray(x) for name, x in evidence.inputs.items() if is_array(x)}


def others(evidence):
    """The other inputs that are checked, by name: arrays of real numbers."""
    return {name: x for name, x in arrays(evidence).items() if name != evidence.name and _real(x)}


def _real(x):
    return x.dtype == np.float64


def resized(evidence, size, wanted):
    """Yield the evidence for each smallest set of axes of that size that can be resized alone.

    Args:
        size: of the axes, at least 2.
        wanted: axes, (input, axis), of which each set has to have one; None for any.
    """
    axes = [(n, i) for n, x in arrays(evidence).items() for i, s in enumerate(x.shape) if s == size]
    found, in_vain = [], 0
    for count in range(1, len(axes) + 1 if len(axes) <= 6 else 4):
        for chosen in combinations(axes, count):
            if any(set(smaller) <= set(chosen) for smaller in found):
                continue
            if wanted is not None and wanted.isdisjoint(chosen):
                continue
            if in_vain == IN_VAIN:
                return
            other = _with_axes(evidence, size, chosen)
            if other is None:
                in_vain += 1
            else:
                found.append(chosen)
                yield other


def _with_axes(evidence, size, chosen):
    for new in (size - 1, size + 1, size // 2, 2 * size):
        if new < 2:  # an axis of size 1 would be broadcast
            continue
        changed = {}
        for name, axis in chosen:
            x = changed.get(name, np.asarray(evidence.inputs[name]))
            places = np.arange(new) % size
            longer = x.take(places, axis=axis)
            if new > size and x.dtype.kind == "f":  # no two alike: they would share a maximum
                shape = [-1 if a == axis else 1 for a in range(x.ndim)]
                longer = longer * np.where(np.arange(new) < size, 1, 0.9).reshape(shape)
            changed[name] = longer
        found = evidence.again({**evidence.inputs, **changed}, None)
        if found is not None and found.analytic.shape == found.numeric.shape:
            return found
    return None
