"""Is one gradient right, wrong, or hidden by rounding? Every entry is judged by itself.

An entry is wrong where

    |analytic − numeric| > tolerance · max(|analytic|, |numeric|) + floor

with the values of that entry alone and its own floor: what its central difference cannot resolve.
A first look at all entries has one step and a floor from the sizes of the outputs. Only where that
is not enough, because the two differ or because the floor is not far below them, the slope is
refined, and its floor with it; nothing is called wrong before, but what is off by far from a slope
that stays with a longer step. Where the floor stays above the gradient a mistake as large as the
gradient would not be seen, and none is denied.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from minitransformer.gradcheck.numeric import (
    STEP,
    distance,
    moved,
    numeric_gradient,
    one_sided_slopes,
    refined_slope,
    rounding,
    slope_or_nan,
    step_for,
)
from minitransformer.gradcheck.report import RIGHT, UNTOLD, WRONG, CheckError

RESOLVED = 1e-3  # floor of an entry, relative to it, up to which the first look is enough
AFTER_A_WRONG_ONE = 25  # entries that are still refined, so that a diagnosis has good ones
PLAIN = 1e-2  # relative difference that no refinement takes away
LONGER = 10  # times as long a step, to see whether it does
STAYS = 1e-5  # relative difference of the two slopes, a hundred times the error of the first
ALIKE = 1e-5  # relative difference of slopes around a kink that are the same


@dataclass(frozen=True)
class Probe:
    """One input of a forward function, to be moved entry by entry or along directions.

    Attributes:
        output: from a value of the input to y.
        x, y, dy: the input, the output and the upstream gradient.
        along: unit directions like x, or None for entry by entry.
    """

    output: Callable
    x: np.ndarray
    y: np.ndarray
    dy: np.ndarray
    along: list[np.ndarray] | None = None

    def numeric(self):
        """The slopes, one step each; NaN where forward is not defined on both sides."""
        if self.along is None:
            return numeric_gradient(self.output, self.x, self.dy)
        step = step_for(self._size(()))
        slopes = [slope_or_nan(self.output, self.x, u, self.dy, step) for u in self.along]
        return np.array(slopes)

    def moves(self):
        """By how much y moves for each of ``numeric``, which is the sum of that times dy."""
        shape = self.x.shape if self.along is None else (len(self.along),)
        moves = np.empty((*shape, *self.y.shape))
        for index in np.ndindex(shape):
            direction, step = self._direction(index), step_for(self._size(index))
            ahead, behind = (moved(self.x, direction, by) for by in (step, -step))
            moves[index] = np.nan
            with contextlib.suppress(CheckError):
                width = distance(ahead, behind, direction)
                moves[index] = (self.output(ahead) - self.output(behind)) / width
        return moves

    def floor(self):
        """What ``numeric`` cannot resolve because outputs are rounded, like it."""
        sizes = np.abs(self.x) if self.along is None else np.full(len(self.along), self._size(()))
        return np.array(rounding(self.y, self.dy) / (STEP * np.maximum(1.0, sizes)))

    def projected(self, gradient):
        """An analytic gradient in the form that ``numeric`` returns."""
        if self.along is None:
            return gradient
        return np.array([(gradient * direction).sum() for direction in self.along])

    def refined(self, index, enough):
        """One entry of ``numeric``, as exactly as it can be had, and a bound for its error."""
        direction, size = self._direction(index), self._size(index)
        return refined_slope(self.output, self.x, direction, self.dy, size, enough)

    def refine(self, finding, index, enough):
        """Put the refined entry and its error into a finding, but where it is plainly wrong."""
        if not (finding.plainly_wrong()[index] and self._stays(index, finding.numeric[index])):
            finding.numeric[index], finding.floor[index] = self.refined(index, enough)

    def _stays(self, index, slope):
        """Whether it is the same with a longer step: no curve, no rounding inside forward."""
        direction, step = self._direction(index), LONGER * step_for(self._size(index))
        longer = slope_or_nan(self.output, self.x, direction, self.dy, step)
        return bool(slope and abs(longer - slope) <= STAYS * abs(slope))

    def refutes(self, gradient, tolerance):
        """Whether slopes along the directions contradict it, beyond all rounding and kinks."""
        finding = Finding(self.projected(gradient), self.numeric(), self.floor(), tolerance)
        for index in map(tuple, np.argwhere(finding.wrong())):
            self.refine(finding, index, tolerance / 10)
            if np.isfinite(finding.difference()[index]) and finding.wrong()[index]:
                return not self._between(index, finding.analytic[index], tolerance)
        return False

    def _between(self, index, value, tolerance):
        """Whether ``value`` lies between the slopes before and after x, or one of them is none."""
        direction, step = self._direction(index), step_for(self._size(index))
        try:
            slopes = self._one_sided(direction, step)
        except CheckError:
            return True
        margin = tolerance * np.abs(slopes).max()
        return min(slopes) - margin < value < max(slopes) + margin

    def _one_sided(self, direction, step):
        """The slopes just before and just after x."""
        return one_sided_slopes(self.output, self.x, self.y, direction, self.dy, step)

    def kink(self, name, index, value, slopes, nearby):
        """In words, if ``value`` is one of many slopes that x has at ``index``, as ReLU has at 0.

        Args:
            slopes: those of :meth:`jump`.
            nearby: as for :func:`judge`.
        """
        if not self._may_be(value, index, slopes, nearby()):
            return ""
        before, after = slopes
        at = f"along direction {index[0]}"
        if self.along is None:
            at = f"at index {index}, value {self.x[index]:.3g}"
        return (
            f"{name} has a kink {at}: its slope jumps from {before:.4g} to {after:.4g}, as that "
            "of a ReLU does at 0, and neither is wrong; move the inputs away from it"
        )

    def jump(self, index):
        """The slopes just before and just after x, where there is a kink between; else nothing.

        A kink's jump of the slope stays when the step shrinks; that of a curve shrinks along.
        """
        direction, step = self._direction(index), step_for(self._size(index))
        try:
            before, after = self._one_sided(direction, step)
            nearer = self._one_sided(direction, step / 8)
        except CheckError:  # an end of where forward is defined is nearer than that
            return ()
        jump, nearer_jump = after - before, nearer[1] - nearer[0]
        of_kink = (8 * nearer_jump - jump) / 7  # without what goes with the step
        plain = abs(of_kink) > 1e-7 * np.abs(nearer).max() + self._noise(index)
        return nearer if plain and abs(of_kink) > abs(nearer_jump) / 2 else ()

    def _may_be(self, value, index, slopes, nearby):
        """Whether a backward may give ``value`` between these slopes, and is right around there.

        Of one kink it lies between them, and the slopes around are like these two. Where an entry
        moves several ReLUs off 0 at once there are others, and that of 0 for all need not.
        """
        around = [probe.slope(index) for probe, _ in nearby]
        given = [gradient[index] for _, gradient in nearby]
        noise = self._noise(index)
        wrong = [
            not abs(a - b) <= ALIKE * max(abs(a), abs(b)) + noise
            for a, b in zip(given, around, strict=True)
        ]
        if wrong and sum(wrong) >= len(wrong) / 2:  # as some may lie at other kinks
            return False
        far = 1e-3 * (max(slopes) - min(slopes))
        several = any(min(abs(slope - s) for s in slopes) > far for slope in around)
        return several or value == 0 or self.is_between(value, index, slopes)

    def is_between(self, value, index, slopes):
        """Whether a value lies between two slopes, or is like one of them."""
        margin = ALIKE * np.abs(slopes).max() + self._noise(index)
        return min(slopes) - margin < value < max(slopes) + margin

    def slope(self, index):
        """One entry of ``numeric``."""
        step = step_for(self._size(index))
        return slope_or_nan(self.output, self.x, self._direction(index), self.dy, step)

    def _noise(self, index):
        """What rounding of the outputs may make of a one-sided slope, with the shorter step."""
        return 8 * rounding(self.y, self.dy) / step_for(self._size(index))

    def end(self, name, index):
        """In words, on which side of x at ``index`` forward is not defined any more."""
        step = step_for(self._size(index))
        for sign, by in (("-", -step), ("+", step)):
            try:
                self.output(moved(self.x, self._direction(index), by))
            except CheckError as error:
                along = f"index {index}" if self.along is None else f"direction {index[0]}"
                return (
                    f"{name} lies where forward stops being defined along {along}: at "
                    f"{name} {sign} {step:.0e} {error}; move the inputs away from there"
                )
        return f"{name} lies too near to where forward stops being defined, at index {index}"

    def _direction(self, index):
        return index if self.along is None else self.along[index[0]]

    def _size(self, index):
        return self.x[index] if self.along is None else np.sqrt((self.x * self.x).mean())


@dataclass
class Finding:
    """How an analytic gradient compares with its numeric counterpart.

    Attributes:
        analytic, numeric, floor: by entry, or by direction.
        tolerance: largest relative error of an entry called right.
        verdict: RIGHT, WRONG or UNTOLD.
        index: of the worst entry.
        vacuous: whether both are zero everywhere.
        untold: why it cannot be told, in words.
        at_edge: whether that is because of a kink, or an end of where forward is defined.
    """

    analytic: np.ndarray
    numeric: np.ndarray
    floor: np.ndarray
    tolerance: float
    verdict: str = RIGHT
    index: tuple = ()
    vacuous: bool = False
    untold: str = ""
    at_edge: bool = False

    def leave_out(self, index):
        """Let an entry count as equal."""
        self.numeric[index], self.floor[index] = self.analytic[index], np.inf

    def difference(self):
        """Of the two values of each entry; infinite where one is NaN."""
        difference = np.abs(self.analytic - self.numeric)
        return np.where(np.isnan(difference), np.inf, difference)

    def size(self):
        """The larger of the two values of each entry."""
        return np.maximum(np.abs(self.analytic), np.abs(self.numeric))

    def wrong(self):
        """Which entries differ by more than tolerance and floor allow."""
        return ~(self.difference() <= self.tolerance * self.size() + self.floor)

    def plainly_wrong(self):
        """Which differ so much that no other step can make them equal, where the slope stays."""
        return self.difference() > PLAIN * self.size() + self.floor / PLAIN

    def agrees(self, tolerance):
        """Whether all entries agree to within another tolerance."""
        return not replace(self, tolerance=tolerance).wrong().any()

    def error(self):
        """The relative error, as in a TensorReport."""
        difference, size = self.difference(), self.size()
        if self.verdict != WRONG:
            return float(difference.max() / size.max()) if size.any() else 0.0
        error = float(difference[self.index] / size[self.index])
        return np.inf if np.isnan(error) else error


def judge(name, probe, gradient, tolerance, is_rounding, advice, nearby):
    """Compare ``gradient``, of the shape of the input, with central differences.

    Args:
        name: of the input.
        probe: its Probe.
        gradient: what backward returned.
        tolerance: largest relative error of an entry called right.
        is_rounding: says, when it is called, whether the gradient is nothing but rounding.
        advice: says, when it is called, what to change where rounding hides the gradient.
        nearby: returns, when it is called, Probes of the input moved a little, each with the
            gradient there in the form of ``numeric``: what is at a kink here is not there.

    Returns:
        Finding
    """
    finding = Finding(probe.projected(gradient), probe.numeric(), probe.floor(), tolerance)
    if not np.isfinite(finding.analytic).all():
        finding.verdict = WRONG
        finding.index = _first(~np.isfinite(finding.analytic))
        return finding
    wrong, excuses = _settle(name, probe, finding, nearby)
    if wrong:
        finding.verdict = WRONG
        finding.index = max(wrong, key=lambda index: finding.difference()[index])
        return finding
    finding.index = _first(finding.difference() == finding.difference().max())
    idle = (finding.analytic == 0) & (finding.numeric == 0)
    seen = finding.size() > 2 * finding.floor
    hidden = ~seen & ~idle & (finding.floor > tolerance)  # of slopes of about 1, as dy is
    if not hidden.any() and not seen.any() and not idle.all() and not is_rounding():
        hidden = ~idle
    if excuses:
        finding.verdict, finding.untold, finding.at_edge = UNTOLD, excuses[0], True
    elif hidden.any():
        index = _first(hidden)
        finding.verdict = UNTOLD
        finding.untold = (
            f"rounding hides {np.count_nonzero(hidden)} of {hidden.size}, such as at {index}: "
            f"central differences resolve {finding.floor[index]:.1g} there, and yours is "
            f"{finding.analytic[index]:.1g}; {advice()}"
        )
    finding.vacuous = finding.verdict == RIGHT and not seen.any()
    return finding


def _settle(name, probe, finding, nearby):
    """Refine what the first look leaves open; returns the wrong indices and the excuses.

    An excuse says why an entry has no one slope; that entry then counts as equal. So do those that
    lie between the slopes of a kink, where others are wrong: what is wrong with these says more.
    """
    difference = finding.difference()
    open_ = finding.wrong() | ((finding.floor > RESOLVED * finding.size()) & (finding.size() > 0))
    indices = [tuple(map(int, index)) for index in np.argwhere(open_)]
    indices.sort(key=lambda index: -difference[index])
    wrong, at_kinks, excuses = [], [], []
    for count, index in enumerate(indices):
        if wrong and count >= AFTER_A_WRONG_ONE:
            break
        probe.refine(finding, index, finding.tolerance / 100)
        if not finding.wrong()[index]:
            continue
        defined = not np.isnan(finding.numeric[index])
        value = finding.analytic[index]
        if not defined:
            excuse = probe.end(name, index)
        elif slopes := probe.jump(index):
            excuse = probe.kink(name, index, value, slopes, nearby)
            if probe.is_between(value, index, slopes):
                at_kinks.append(index)
        else:
            excuse = ""
        if excuse:
            excuses.append(excuse)
            finding.leave_out(index)
        else:
            wrong.append(index)
    elsewhere = [index for index in wrong if index not in at_kinks]
    for index in at_kinks if elsewhere else ():
        finding.leave_out(index)
    return elsewhere or wrong, excuses


def _first(mask):
    """The first index at which ``mask`` holds."""
    return tuple(int(i) for i in np.unravel_index(np.argmax(mask), mask.shape))
