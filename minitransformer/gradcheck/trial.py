"""A pair on one set of inputs: its gradients judged one by one, and the evidence on wrong ones."""

import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from minitransformer.core.backend import is_array
from minitransformer.gradcheck.diagnosis import NONE_RETURNED, diagnose
from minitransformer.gradcheck.evidence import Evidence
from minitransformer.gradcheck.faults import RIGHT_HERE, UNSTEADY, nowhere
from minitransformer.gradcheck.pair import OutOfTime, Pair, read_only, unheard
from minitransformer.gradcheck.report import RIGHT, WRONG, CheckError, TensorReport
from minitransformer.gradcheck.verdict import Finding, Probe, judge

FEWER_BITS = (
    "it is {0}, though all that went in is float64: is something rounded to {0} on the way?"
)
A_LITTLE = 1 / 32  # of its size, by which an entry is moved off a kink
WAYS = 5  # in which they are moved, and back: so that they show some of its slopes
LARGE = 100  # size of an entry above which an input is named as the likely source of rounding


@dataclass(frozen=True)
class Trial:
    """What a pair returned for one set of inputs.

    Attributes:
        pair: a Pair.
        inputs: all of its inputs, read-only.
        y, dy: the output and its upstream gradient.
        gradients: what backward returned, by name, None for None.
        along: unit directions by name; empty where every entry is compared.
        faults: what is wrong with how a gradient came about, in words, by name.
        wrong_elsewhere: says of a name whether its gradient is wrong for other inputs; asked only
            of those that are right here.
        found: as in an Evidence.
    """

    pair: Pair
    inputs: tuple
    y: np.ndarray
    dy: np.ndarray
    gradients: dict[str, np.ndarray | None]
    along: dict[str, list[np.ndarray]]
    faults: dict[str, str] = field(default_factory=dict)
    wrong_elsewhere: Callable = nowhere
    found: dict = field(default_factory=dict)

    def named(self):
        """The inputs by name."""
        return dict(zip(self.pair.names, self.inputs, strict=True))

    def compare(self, tolerance):
        """A TensorReport for each gradient.

        Raises:
            CheckError: an input lies at a kink or at an end, and nothing else is wrong.
        """
        findings = {}
        for name in self.gradients:
            given, probe = self._given(name), self._probe(name)
            if given.shape == probe.x.shape:
                asked = (
                    partial(self._is_rounding, name),
                    self._advice,
                    functools.cache(partial(self._nearby, name)),
                )
                findings[name] = judge(name, probe, given, tolerance, *asked)
            elif not self.along:
                findings[name] = Finding(given, probe.numeric(), probe.floor(), tolerance)
        tensors = [self._report(name, findings) for name in self.gradients]
        edges = [finding.untold for finding in findings.values() if finding.at_edge]
        if edges and not any(tensor.verdict == WRONG for tensor in tensors):
            raise CheckError(edges[0])
        return tensors

    def _report(self, name, findings):
        given, finding, called = self.gradients[name], findings.get(name), gradient_name(name)
        right_shape = self.named()[name].shape
        if given is not None and given.shape != right_shape:
            cause = f"its shape is {given.shape} and should be {right_shape}"
            if finding:
                cause = diagnose(self._evidence(name, findings))
            return TensorReport(called, WRONG, math.inf, None, None, None, cause)
        verdict, cause, error = finding.verdict, finding.untold, finding.error()
        if verdict == WRONG:
            cause = self._cause(name, findings)
        elif fault := self.faults.get(name) or self._wrong_elsewhere(name, finding):
            return TensorReport(called, WRONG, error, None, None, None, fault)
        elif _in_fewer_bits(given):
            verdict, cause = WRONG, FEWER_BITS.format(given.dtype)
        values = (float(array[finding.index]) for array in (finding.analytic, finding.numeric))
        vacuous = finding.vacuous and verdict == RIGHT
        slopes = bool(self.along)
        return TensorReport(called, verdict, error, finding.index, *values, cause, vacuous, slopes)

    def _wrong_elsewhere(self, name, finding):
        """What is wrong with a gradient that is right here, in words, or nothing."""
        at_edge = finding.at_edge  # as other inputs may well be, too
        return RIGHT_HERE if not at_edge and self.wrong_elsewhere(name) else ""

    def _cause(self, name, findings):
        given = self.gradients[name]
        if given is None and all(gradient is None for gradient in self.gradients.values()):
            return f"{NONE_RETURNED}: is a `return` missing?"
        if given is None:
            return f"{NONE_RETURNED}; if {name} is a constant, hand it over as integers or booleans"
        if self.faults.get(name) == UNSTEADY:  # no experiment would mean anything
            return UNSTEADY
        if _in_fewer_bits(given) and findings[name].agrees(100 * np.finfo(given.dtype).eps):
            return FEWER_BITS.format(given.dtype)
        return diagnose(self._evidence(name, findings))

    def _probe(self, name):
        position = self.pair.names.index(name)
        output = self.pair.output(self.inputs, position, self.y.shape)
        return Probe(output, self.inputs[position], self.y, self.dy, self.along.get(name))

    def _given(self, name):
        """What backward returned, as float64; zeros for None."""
        gradient = self.gradients[name]
        if gradient is None:
            return np.zeros_like(self.named()[name])
        return gradient.astype(np.float64)

    def _is_rounding(self, name):
        """Whether a gradient is zero but for backward's own rounding.

        Backward is linear in dy: of a sum it returns the sum, and rounding alone does not.
        """
        first = self._given(name)
        other = np.random.default_rng(0).standard_normal(self.dy.shape)
        second, both = (self._gradient_for(name, dy) for dy in (other, self.dy + other))
        size = max(np.abs(first).max(), np.abs(second).max())
        return size == 0 or np.abs(both - first - second).max() > 1e-3 * size

    def _gradient_for(self, name, dy):
        _, (_, cache) = self.pair.forward(self.inputs)
        gradient = self.pair.backward(read_only(dy), cache)[name]
        return np.zeros_like(self.named()[name]) if gradient is None else gradient

    def _nearby(self, name):
        """Probes of an input that is moved a little, each way, and the gradients there."""
        x, rng, found = self.named()[name], np.random.default_rng(2017), []
        sizes = np.where(x, np.abs(x), np.sqrt((x * x).mean()) or 1)
        for _ in range(WAYS):
            by = A_LITTLE * sizes * rng.uniform(-1, 1, x.shape)
            for moved in (x + by, x - by):
                inputs = tuple((self.named() | {name: read_only(moved)}).values())
                with contextlib.suppress(CheckError):  # where forward is not defined
                    y, (_, kept) = self.pair.forward(inputs)
                    other = replace(
                        self, inputs=inputs, y=y, gradients=self.pair.backward(self.dy, kept)
                    )
                    probe = other._probe(name)
                    found.append((probe, probe.projected(other._given(name))))
        return found

    def _advice(self):
        """What to change where rounding hides a gradient."""
        sizes = {
            name: float(np.abs(x).max())
            for name, x in self.named().items()
            if is_array(x) and x.dtype.kind in "fiu" and x.size
        }
        largest = max(sizes, key=sizes.get)
        if sizes[largest] > LARGE:
            return (
                f"{largest} has entries up to {sizes[largest]:.2g}: subtract their mean, or scale "
                "them to about 1"
            )
        return "choose inputs with which forward computes with smaller numbers"

    def _evidence(self, name, findings):
        finding = findings[name]
        return Evidence(
            name,
            finding.analytic,
            finding.numeric,
            finding.floor,
            self.named(),
            self.y,
            self.dy,
            self.gradients,
            {other: finding.numeric for other, finding in findings.items()},
            bool(self.along),
            self.found,
            self._forward,
            partial(self._backward, name),
            self._probe(name).moves,
            partial(self._again, name),
        )

    def _forward(self, inputs):
        return self.pair.forward(tuple(inputs[name] for name in self.pair.names))[0]

    def _backward(self, name, dy):
        try:
            with unheard():
                given = self._gradient_for(name, dy).astype(np.float64)
        except (CheckError, OutOfTime):
            return None
        usable = given.shape == self.named()[name].shape and np.isfinite(given).all()
        return self._probe(name).projected(given) if usable else None

    def _again(self, name, inputs, dy=None):
        """The Evidence on the same gradient for other inputs; None where forward or backward fails.

        Args:
            inputs: all of them, by name.
            dy: by default another draw, as y may have another shape.
        """
        inputs = tuple(read_only(inputs[name]) for name in self.pair.names)
        rng = np.random.default_rng(2017)
        try:
            with unheard():
                y, (_, cache) = self.pair.forward(inputs)
                dy = read_only(rng.standard_normal(y.shape) if dy is None else dy)
                gradients = self.pair.backward(dy, cache)
                along = self.along
                if _shapes(inputs) != _shapes(self.inputs):
                    count = len(self.along.get(name, ()))
                    along = unit_directions(self.pair, inputs, count, rng)
                other = Trial(self.pair, inputs, y, dy, gradients, along)
                return other._look_at(name)
        except (CheckError, OutOfTime):
            return None

    def _look_at(self, name):
        probe, given = self._probe(name), self._given(name)
        if given.shape == probe.x.shape:
            given = probe.projected(given)
        numeric = probe.numeric()
        if np.isnan(numeric).any():
            return None
        return self._evidence(name, {name: Finding(given, numeric, probe.floor(), 0)})


def _shapes(inputs):
    return [getattr(x, "shape", None) for x in inputs]


def unit_directions(pair, inputs, count, rng):
    """``count`` random directions of length 1 for each checked input, by name."""
    along = {}
    for i in pair.checked if count else ():
        directions = (rng.standard_normal(inputs[i].shape) for _ in range(count))
        along[pair.names[i]] = [u / np.linalg.norm(u) for u in directions]
    return along


def gradient_name(name):
    """``dx`` for the input or parameter ``x``, ``layers.0.x.grad`` for a path."""
    return f"{name}.grad" if "." in name else f"d{name}"


def _in_fewer_bits(gradient):
    return gradient is not None and gradient.dtype.kind == "f" and gradient.dtype != np.float64
