"""Which operation of forward backward goes wrong at: one is changed until the gradient fits.

A backward with a slip is the right one of a forward that has other slopes at one place: of one that
holds ``h @ u`` fixed, where what is carried from step to step is forgotten; of one whose tanh has a
slope of 1, where its derivative is. Such forwards are tried along random directions, and one that
fits along all of them, and again on other inputs and with another dy, is what backward computes.
"""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import redrawn
from minitransformer.gradcheck.diagnosis.slips import FACTORS, slips
from minitransformer.gradcheck.diagnosis.watched import (
    OtherOperations,
    Watch,
    positions,
    watched,
    watching,
)
from minitransformer.gradcheck.pair import OutOfTime
from minitransformer.gradcheck.report import CheckError

STEP = 1e-7
FITS = 1e-4  # of what is wrong: what a slope may be off
NOISE = 10 * STEP  # of a slope: what it may be off besides, because the step is not 0
DIRECTIONS = 3
MOST = 200_000  # operations that are made for one pair to find a slip: two seconds


def at_an_operation(evidence):
    """A path through an operation missing or scaled, its derivative left out or another's.

    One cause for all that is wrong is looked for first, then one for this gradient.
    """
    if evidence.slopes:
        return ""
    for names in dict.fromkeys((_wrong_ones(evidence), (evidence.name,))):
        if names not in evidence.found:
            evidence.found[names] = _first_that_fits(evidence, names) if names else ""
        if cause := evidence.found[names]:
            return cause
    return ""


def _wrong_ones(evidence):
    """The names of all whose gradients are wrong; none if one cannot be compared."""
    names = []
    for name, right in evidence.numerics.items():
        given = _given(evidence, name)
        if given.shape != right.shape or not np.isfinite(given).all():
            return ()
        size = max(np.abs(given).max(), np.abs(right).max())
        if np.abs(given - right).max() > NOISE * size:
            names.append(name)
    return tuple(names)


def _given(evidence, name):
    given = evidence.analytics.get(name)
    return np.zeros(np.shape(evidence.inputs[name])) if given is None else given.astype(float)


def _first_that_fits(evidence, names):
    most = MOST / 2 if len(names) > 1 else MOST  # something is left for each of several
    try:
        here, others = _Slopes(evidence, names), None
        scaled = {}  # what fits with a factor, by whether that is a plain one
        for slip in slips(here.made, here.moving()):
            if not slip.scaled and True in scaled:
                return scaled[True]
            if evidence.found.get("made", 0) > most:
                break
            factor = here.factor(slip)
            if factor is None:
                continue
            if others is None:
                others = [_Slopes(other, names) for other in redrawn(evidence)]
            if not others or any(other.factor(slip, factor) is None for other in others):
                continue
            if not factor:
                return slip.said(factor)
            scaled.setdefault(factor in FACTORS, slip.said(factor))
        return scaled.get(True) or scaled.get(False, "")
    except (CheckError, OutOfTime, OtherOperations):
        return ""


class _Slopes:
    """The gradients on one set of inputs, along random directions: given, right, and with a slip.

    Attributes:
        made: the operations of forward.
    """

    def __init__(self, evidence, names):
        self._evidence = evidence
        rng = np.random.default_rng(5)
        self._directions = [
            {name: rng.standard_normal(np.shape(evidence.inputs[name])) for name in names}
            for _ in range(DIRECTIONS)
        ]
        self.made = []
        self._y = self._forward(None, {})
        self._right = [self._slope(lambda *_: None, i) for i in range(DIRECTIONS)]
        self._given = [
            sum((_given(evidence, name) * u).sum() for name, u in direction.items())
            for direction in self._directions
        ]

    def _forward(self, change, moved):
        inputs = {**self._evidence.inputs, **moved}
        inputs = {name: watched(x) for name, x in inputs.items()}
        with watching(Watch(inputs, self.made, change)):
            return self._evidence.forward(inputs)

    def _slope(self, change, i):
        """Of one step on one side, which is enough to know a slip by."""
        inputs, direction = self._evidence.inputs, self._directions[i]
        found = self._evidence.found
        found["made"] = found.get("made", 0) + len(self.made)
        y = self._forward(change, {name: inputs[name] + STEP * u for name, u in direction.items()})
        return float(((y - self._y) * self._evidence.dy).sum() / STEP)

    def moving(self):
        """By the number of an operation whose result moves, which of its operands do."""
        found = {}

        def look(number, operands, result):
            before = dict(positions(self.made[number].operands))
            moved = {
                p
                for p, a in positions(operands)
                if p in before and not np.array_equal(a, before[p])
            }
            moved = moved if isinstance(result, np.ndarray) else ()
            if moved and not np.array_equal(result, self.made[number].result):
                found[number] = moved

        self._slope(look, 0)
        return found

    def factor(self, slip, factor=None):
        """With which factor the slip explains the gradients, 0 for none; None if it does not.

        Args:
            factor: the only one it may be.
        """
        change, clear = slip.change(self.made), False
        if not slip.scaled:
            factor = 0
        for i, (given, right) in enumerate(zip(self._given, self._right, strict=True)):
            try:
                rest = self._slope(change, i)
            except CheckError:  # such slopes lead where forward is not defined
                return None
            noise = NOISE * (abs(right) + abs(given))
            nearest = min(abs(given - right), abs(right - rest) if slip.scaled else np.inf)
            clear = clear or nearest > 100 * noise
            if factor is None:
                if not clear:
                    return None
                factor = (given - rest) / (right - rest)
                factor = next((f for f in FACTORS if abs(factor - f) < 1e-3), factor)
            expected = rest + factor * (right - rest)
            if not abs(expected - given) <= FITS * abs(given - right) + noise:
                return None
        return factor if clear else None
