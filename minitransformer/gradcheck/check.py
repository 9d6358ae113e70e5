"""Compare backward functions with numeric gradients, tensor by tensor.

Everything runs in float64, from a seed, with a random upstream gradient: with one of all ones, a
backward that returns zeros passes for softmax and LayerNorm, whose outputs have constant sums.
"""

import copy
import inspect
import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from minitransformer.backend import array_namespace, is_array
from minitransformer.gradcheck.diagnosis import NONE_RETURNED, REPLACED, diagnose
from minitransformer.gradcheck.evidence import Evidence
from minitransformer.gradcheck.numeric import (
    STEP,
    numeric_gradient,
    one_entry,
    one_sided_slopes,
    refined_slope,
    slope,
    step_for,
)
from minitransformer.gradcheck.report import CheckError, Report, TensorReport
from minitransformer.module import Module

LONGEST = 300  # seconds that a check may be expected to take


def check_pair(forward, backward, inputs, *, names=None, tolerance=1e-7, directions=None, seed=0):
    """Check ``backward`` against central differences of ``forward``.

    Args:
        forward: ``forward(*inputs) -> (y, cache)``.
        backward: ``backward(dy, cache) -> gradients`` in the order of the inputs, None for an
            input that has none; trailing ones that have none may be left off. A single gradient
            need not be in a tuple.
        inputs: float64 arrays, which are checked; anything else passes through. They are handed
            over read-only, as is dy.
        names: of the inputs; by default those of the parameters of ``forward``.
        tolerance: largest relative error called right.
        directions: None compares every entry; a number k compares the slopes along k random
            directions of each tensor, which is enough for large ones.
        seed: of the upstream gradient and the directions, 0 or more.

    Returns:
        Report

    Raises:
        CheckError: forward or backward cannot be called as described, forward is not
            deterministic, its output is not finite, an input lies at a kink, or there is nothing
            to check.
    """
    start = time.perf_counter()
    # Not default_rng(seed): inputs are often drawn from it, and where dy equals x, xᵀ dy is
    # symmetric and a transposed weight gradient passes.
    rng = np.random.default_rng((seed, 2017))
    inputs = inputs if isinstance(inputs, tuple | list) else (inputs,)
    inputs = tuple(_read_only(x) if is_array(x) else x for x in inputs)
    names = names or _argument_names(forward, len(inputs))
    checked = _positions_to_check(inputs, names)
    y, cache = _call_forward(forward, inputs)
    seconds = time.perf_counter() - start
    if not np.array_equal(y, _call_forward(forward, inputs)[0]):
        raise CheckError(
            "forward is not deterministic: two calls with the same inputs differ; "
            "draw random numbers from a generator seeded inside forward"
        )
    _refuse_to_take_long(seconds, sum(directions or inputs[i].size for i in checked))
    dy = _read_only(rng.standard_normal(y.shape))
    gradients = _call_backward(backward, dy, cache, inputs, checked)

    probes = {}
    for i in checked:

        def output(value, i=i):
            return _call_forward(forward, (*inputs[:i], value, *inputs[i + 1 :]))[0]

        x = inputs[i]
        comparable = gradients[i] is None or gradients[i].shape == x.shape
        along = _unit_directions(rng, directions, x.shape) if directions and comparable else None
        probes[names[i]] = _Probe(output, x, y, dy, along)
    numeric = {name: probe.numeric() for name, probe in probes.items()}
    analytics = {names[i]: gradients[i] for i in checked}

    def evidence(name, given, dy=None, numerics=None, along=None):
        i = names.index(name)
        values = [_read_only(v) if is_array(v) else v for v in given.values()]
        y, cache = _call_forward(forward, tuple(values))
        if dy is None:
            dy = rng.standard_normal(y.shape)
        if dy.shape != y.shape:
            raise CheckError("shape")
        dy = _read_only(dy)
        found = _call_backward(backward, dy, cache, tuple(values), checked)
        x = values[i]

        def output(value):
            return _call_forward(forward, (*values[:i], value, *values[i + 1 :]))[0]

        probe = _Probe(output, x, y, dy, along if along and along[0].shape == x.shape else None)
        analytic = np.zeros_like(x) if found[i] is None else found[i]
        if analytic.shape == x.shape:
            analytic = probe.projected(analytic)
        numeric = probe.numeric()
        return Evidence(
            name,
            analytic,
            numeric,
            np.full_like(numeric, probe.resolution()),
            dict(given),
            y,
            dy,
            {names[j]: found[j] for j in checked},
            {name: numeric},
            probe.along is not None,
            lambda g, d=None: again(name, g, d, along),
        )

    def again(name, given, dy, along):
        try:
            with np.errstate(all="ignore"):
                return evidence(name, given, dy, along=along)
        except CheckError:
            return None

    given = dict(zip(names, inputs, strict=True))
    tensors = [
        _compare(
            names[i],
            gradients[i],
            probes[names[i]],
            numeric,
            tolerance,
            (
                given,
                analytics,
                lambda g, d=None, i=i: again(names[i], g, d, probes[names[i]].along),
            ),
        )
        for i in checked
    ]
    if all(tensor.vacuous for tensor in tensors):
        raise CheckError(
            "every gradient is zero, by backward and by central differences: such inputs cannot "
            "tell a right backward from a wrong one; choose others"
        )
    unchecked = [name for i, name in enumerate(names) if i not in checked]
    return Report(tensors, time.perf_counter() - start, unchecked)


def check_module(module, *inputs, seed=0, **options):
    """Check a module's backward for its inputs and each of its parameters.

    The check is made on a float64 copy whose parameters are moved away from their initial values,
    because a gain of exactly 1 hides a misplaced gain. Backward must add to the gradients, in
    place.

    Args:
        module: any Module with ``forward(*inputs) -> (y, cache)`` and ``backward(dy, cache)``.
        inputs, seed, options: as for :func:`check_pair`.
    """
    if not isinstance(module, Module):
        raise CheckError(f"expected a Module, an instance of one, and got {module!r}")
    module = moved_from_start(copy.deepcopy(module), np.random.default_rng(seed))
    forward, backward, values, names = module_pair(module, inputs)
    report = check_pair(forward, backward, values, names=names, seed=seed, **options)
    replaced = {gradient_name(path) for path in _replaced_gradients(module, inputs)}
    return replace(
        report,
        tensors=[
            replace(tensor, right=False, diagnosis=REPLACED) if tensor.name in replaced else tensor
            for tensor in report.tensors
        ],
    )


def _replaced_gradients(module, inputs):
    """The paths of the parameters whose gradient backward replaces, where it should add."""
    named = list(module.named_parameters())
    y, cache = module.forward(*inputs)
    results = []
    for start in (0.0, 1.0):
        given = [np.full_like(parameter.data, start) for _, parameter in named]
        for (_, parameter), grad in zip(named, given, strict=True):
            parameter.grad = grad
        module.backward(np.ones_like(y), cache)
        kept = [p.grad is grad for (_, p), grad in zip(named, given, strict=True)]
        results.append((kept, [p.grad - start for _, p in named]))
    (_, alone), (kept, added) = results
    return [
        path
        for (path, _), same, a, b in zip(named, kept, alone, added, strict=True)
        if not (same and np.allclose(a, b, rtol=1e-9, atol=1e-9))
    ]


def moved_from_start(module, rng):
    """The module itself, in float64 and each parameter changed by up to 0.4 either way."""
    module.to(dtype=np.float64)
    for parameter in module.parameters():
        parameter.data = parameter.data + rng.uniform(-0.4, 0.4, parameter.data.shape)
    return module


def module_pair(module, inputs):
    """A module as a pair of pure functions of its inputs and of its parameters.

    Calling the pair replaces the parameters' arrays: hand over a module that is not used otherwise.

    Args:
        module: its parameters' present values become the last inputs of the pair.
        inputs: the first ones, those of ``module.forward``.

    Returns:
        forward, backward, inputs, names: what :func:`check_pair` takes.
    """
    named = list(module.named_parameters())
    input_names = _argument_names(module.forward, len(inputs))

    def forward(*values):
        for (_, parameter), value in zip(named, values[len(inputs) :], strict=True):
            parameter.data = value
        return module.forward(*values[: len(inputs)])

    def backward(dy, cache):
        for _, parameter in named:
            parameter.grad = array_namespace(parameter.data).zeros_like(parameter.data)
        dinputs = module.backward(dy, cache)
        dinputs = dinputs if isinstance(dinputs, tuple) else (dinputs,)
        dinputs += (None,) * (len(inputs) - len(dinputs))
        return *dinputs, *(parameter.grad for _, parameter in named)

    values = (*inputs, *(parameter.data for _, parameter in named))
    return forward, backward, values, (*input_names, *(path for path, _ in named))


def gradient_name(name):
    """``dx`` for the input or parameter ``x``, ``layers.0.x.grad`` for a path."""
    return f"{name}.grad" if "." in name else f"d{name}"


@dataclass(frozen=True)
class _Probe:
    """One input of a forward function, to be moved entry by entry or along directions."""

    output: Callable  # from a value of the input to y
    x: np.ndarray
    y: np.ndarray
    dy: np.ndarray
    along: list[np.ndarray] | None

    def numeric(self):
        if self.along is None:
            return numeric_gradient(self.output, self.x, self.dy)
        size = np.sqrt((self.x * self.x).mean())
        slopes = (slope(self.output, self.x, u, self.dy, step_for(size)) for u in self.along)
        return np.array(list(slopes))

    def projected(self, gradient):
        """An analytic gradient in the form that ``numeric`` returns."""
        if self.along is None:
            return gradient
        return np.array([(gradient * direction).sum() for direction in self.along])

    def refined(self, index):
        """One entry of ``numeric``, as exactly as it can be had."""
        entry_by_entry = self.along is None
        direction = one_entry(self.x, index) if entry_by_entry else self.along[index[0]]
        size = self.x[index] if entry_by_entry else 1.0
        return refined_slope(self.output, self.x, direction, self.dy, size)

    def resolution(self):
        """The size of gradient below which central differences see only rounding noise."""
        return np.finfo(np.float64).eps * float(np.abs(self.y * self.dy).sum()) / STEP

    def raise_at_kink(self, name, index, value, scale):
        """Raise if ``value`` is one of many slopes that x has at ``index``, as ReLU has at 0.

        A kink's jump of the slope stays when the step shrinks; that of a curve shrinks along.
        """
        if self.along is not None:
            return
        direction = one_entry(self.x, index)
        step = step_for(self.x[index])
        arguments = self.output, self.x, direction, self.dy
        before, after = one_sided_slopes(*arguments, step)
        nearer_before, nearer_after = one_sided_slopes(*arguments, step / 8)
        jump, nearer_jump = abs(after - before), abs(nearer_after - nearer_before)
        lowest, highest = sorted((before, after))
        margin = 1e-3 * scale
        if jump > margin and nearer_jump > jump / 2 and lowest - margin < value < highest + margin:
            raise CheckError(
                f"{name} has a kink at index {index}, value {self.x[index]:.3g}: its slope jumps "
                f"from {before:.4g} to {after:.4g}, as that of a ReLU does at 0, and neither is "
                "wrong; move the inputs away from it"
            )


def _compare(name, gradient, probe, numeric_gradients, tolerance, sizes):
    numeric = numeric_gradients[name]
    inputs, analytics, again = sizes

    def said(analytic):
        return diagnose(
            Evidence(
                name,
                analytic,
                numeric,
                np.full_like(numeric, probe.resolution()),
                inputs,
                probe.y,
                probe.dy,
                analytics,
                numeric_gradients,
                probe.along is not None,
                again,
            )
        )

    given = np.zeros_like(probe.x) if gradient is None else gradient
    if given.shape != probe.x.shape:
        cause = said(given)
        return TensorReport(gradient_name(name), math.inf, False, None, None, None, cause)

    analytic = probe.projected(given)
    index, error, largest = _worst(analytic, numeric)
    vacuous = bool(largest <= probe.resolution())
    error = 0.0 if vacuous else error
    refined = set()
    while not error <= tolerance and index not in refined:
        numeric[index] = probe.refined(index)
        refined.add(index)
        index, error, largest = _worst(analytic, numeric)
    right = error <= tolerance
    cause = ""
    if not right and gradient is None:
        cause = NONE_RETURNED
    elif not right:
        probe.raise_at_kink(name, index, analytic[index], np.abs(numeric).max())
        cause = said(analytic)
    values = float(analytic[index]), float(numeric[index])
    return TensorReport(gradient_name(name), error, right, index, *values, cause, vacuous)


def _worst(analytic, numeric):
    """Where two gradients differ most, by how much of the largest entry, and that entry."""
    difference = np.abs(analytic - numeric)
    largest = max(np.abs(analytic).max(), np.abs(numeric).max())
    index = tuple(int(i) for i in np.unravel_index(np.argmax(difference), difference.shape))
    error = float(difference[index] / largest) if largest else 0.0
    return index, math.inf if math.isnan(error) else error, largest


def _refuse_to_take_long(seconds, evaluations):
    estimate = 2 * seconds * evaluations
    if estimate > LONGEST:
        raise CheckError(
            f"this would take about {estimate:.0f} s, one of {seconds:.2g} s twice for each of "
            f"{evaluations:,} entries; choose smaller inputs, or directions=3 to compare slopes "
            "along random directions only"
        )


def _unit_directions(rng, count, shape):
    directions = (rng.standard_normal(shape) for _ in range(count))
    return [direction / np.linalg.norm(direction) for direction in directions]


def _read_only(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def _argument_names(function, count):
    """The names of the first ``count`` arguments; ``input 1`` where the signature has too few."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind in kinds]
    names += [f"input_{i}" for i in range(len(names), count)]
    return names[:count]


def _positions_to_check(inputs, names):
    positions = []
    for i, x in enumerate(inputs):
        dtype = getattr(x, "dtype", None)
        if dtype == np.float64 and x.size == 0:
            raise CheckError(f"{names[i]} has no entries, its shape is {x.shape}")
        if dtype == np.float64:
            positions.append(i)
        elif dtype is not None and dtype.kind == "f":
            raise CheckError(
                f"{names[i]} is {dtype}; central differences need float64: .astype(np.float64)"
            )
    if not positions:
        raise CheckError("no input is a float64 array: there is nothing to check")
    return positions


def _call_forward(forward, inputs):
    result = call("forward", forward, *inputs)
    if not isinstance(result, tuple) or len(result) != 2:
        raise CheckError(f"forward must return (y, cache); it returned {_described(result)}")
    y, cache = result
    y = np.asarray(y)
    if y.dtype != np.float64:
        raise CheckError(f"forward must return a float64 y for float64 inputs; it is {y.dtype}")
    if not np.isfinite(y).all():
        raise CheckError("forward returned NaN or infinity: there is no gradient to compare with")
    return y, cache


def _call_backward(backward, dy, cache, inputs, checked):
    gradients = call("backward", backward, dy, cache)
    gradients = tuple(gradients) if isinstance(gradients, tuple | list) else (gradients,)
    if not checked[-1] < len(gradients) <= len(inputs):
        raise CheckError(
            f"backward returned {len(gradients)} gradients for {len(inputs)} inputs; "
            "return one for each, in their order, and None for an input that has none"
        )
    return [None if gradient is None else _as_array(gradient) for gradient in gradients]


def _as_array(gradient):
    try:
        array = np.asarray(gradient)
        if array.dtype.kind != "c":
            return array.astype(np.float64, copy=False)
        problem = "it is complex"
    except (TypeError, ValueError) as error:
        problem = error
    raise CheckError(
        f"backward returned {_described(gradient)} where a gradient, an array of real numbers, "
        f"should be: {problem}"
    )


def call(what, function, *arguments):
    """``function(*arguments)``, with anything it raises turned into a CheckError."""
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:  # a learner's function may fail in any way
        hint = "; a pair must not write to its inputs or to dy" if "read-only" in str(error) else ""
        raise CheckError(
            f"{what} raised {type(error).__name__}: {error}{_place(error)}{hint}"
        ) from error


def _place(error):
    """Where in the called file the error arose, `` (my_file.py, line 12)``."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is the call above
    frames = [frame for frame in frames if not frame.filename.startswith("<frozen")]  # the import
    frames = [frame for frame in frames if frame.filename == frames[0].filename]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _described(value):
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
