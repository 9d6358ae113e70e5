"""Compare backward functions with numeric gradients, tensor by tensor.

Everything runs in float64, from a seed, with a random upstream gradient: with one of all ones, a
backward that returns zeros passes for softmax and LayerNorm, whose outputs have constant sums.
"""

import copy
import inspect
import math
import time
from dataclasses import dataclass

import numpy as np

from minitransformer.gradcheck.diagnosis import KINK, NONE_RETURNED, Sizes, diagnose
from minitransformer.gradcheck.numeric import directional_derivative, numeric_gradient
from minitransformer.gradcheck.report import CheckError, Report, TensorReport


def check_pair(
    forward, backward, inputs, *, names=None, tolerance=1e-7, directions=None, step=1e-5, seed=0
):
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
        step: h of the central differences.
        seed: of the upstream gradient and the directions.

    Returns:
        Report

    Raises:
        CheckError: forward or backward cannot be called as described, forward is not
            deterministic, its output is not finite, or there is nothing to check.
    """
    start = time.perf_counter()
    # Not default_rng(seed): inputs are often drawn from it, and where dy equals x, xᵀ dy is
    # symmetric and a transposed weight gradient passes.
    rng = np.random.default_rng((seed, 2017))
    inputs = tuple(_read_only(x) if isinstance(x, np.ndarray) else x for x in inputs)
    names = names or _argument_names(forward, len(inputs))
    checked = _positions_to_check(inputs, names)
    y, cache = _call_forward(forward, inputs)
    if not np.array_equal(y, _call_forward(forward, inputs)[0]):
        raise CheckError(
            "forward is not deterministic: two calls with the same inputs differ; "
            "draw random numbers from a generator seeded inside forward"
        )
    dy = _read_only(rng.standard_normal(y.shape))
    gradients = _call_backward(backward, dy, cache, inputs, checked)

    sizes = Sizes.of({names[i]: inputs[i].shape for i in checked})
    tensors = []
    for i in checked:

        def output(value, i=i):
            return _call_forward(forward, (*inputs[:i], value, *inputs[i + 1 :]))[0]

        along = _unit_directions(rng, directions, inputs[i].shape) if directions else None
        probe = _Probe(output, inputs[i], y, dy, step, along)
        tensors.append(_compare(gradient_name(names[i]), gradients[i], probe, tolerance, sizes))
    if all(tensor.vacuous for tensor in tensors):
        raise CheckError(
            "every gradient is zero, by backward and by central differences: such inputs cannot "
            "tell a right backward from a wrong one; choose others"
        )
    return Report(tensors, time.perf_counter() - start)


def check_module(module, *inputs, seed=0, **options):
    """Check a module's backward for its inputs and each of its parameters.

    The check is made on a float64 copy whose parameters are moved away from their initial values,
    because a gain of exactly 1 hides a misplaced gain. There is already something in the
    gradients when backward is called, and it must add to it.

    Args:
        module: any Module with ``forward(*inputs) -> (y, cache)`` and ``backward(dy, cache)``.
        inputs, seed, options: as for :func:`check_pair`.
    """
    module = moved_from_start(copy.deepcopy(module), np.random.default_rng(seed))
    forward, backward, inputs, names = module_pair(module, inputs)
    return check_pair(forward, backward, inputs, names=names, seed=seed, **options)


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
        before = [parameter.data + 1 for _, parameter in named]  # any values other than zero
        for (_, parameter), values in zip(named, before, strict=True):
            parameter.grad = values.copy()
        dinputs = module.backward(dy, cache)
        dinputs = dinputs if isinstance(dinputs, tuple) else (dinputs,)
        dinputs += (None,) * (len(inputs) - len(dinputs))
        return *dinputs, *(p.grad - values for (_, p), values in zip(named, before, strict=True))

    values = (*inputs, *(parameter.data for _, parameter in named))
    return forward, backward, values, (*input_names, *(path for path, _ in named))


def gradient_name(name):
    """``dx`` for the input or parameter ``x``, ``layers.0.x.grad`` for a path."""
    return f"{name}.grad" if "." in name else f"d{name}"


@dataclass(frozen=True)
class _Probe:
    """One input of a forward function, to be compared entry by entry or along directions."""

    output: object  # function: a value for the input -> y
    x: np.ndarray
    y: np.ndarray
    dy: np.ndarray
    step: float
    along: list[np.ndarray] | None

    def numeric(self):
        if self.along is None:
            return numeric_gradient(self.output, self.x, self.dy, self.step)
        slopes = (
            directional_derivative(self.output, self.x, direction, self.dy, self.step)
            for direction in self.along
        )
        return np.array(list(slopes))

    def projected(self, gradient):
        """An analytic gradient in the form that ``numeric`` returns."""
        if self.along is None:
            return gradient
        return np.array([(gradient * direction).sum() for direction in self.along])

    def resolution(self):
        """The size of gradient below which central differences see only rounding noise."""
        return np.finfo(np.float64).eps * float(np.abs(self.y * self.dy).sum()) / self.step

    def has_kink(self, index, scale):
        """Whether the slopes before and after entry ``index`` differ, compared with ``scale``."""
        if self.along is not None:
            return False
        step = np.zeros_like(self.x)
        step[index] = self.step
        before = ((self.y - self.output(self.x - step)) * self.dy).sum() / self.step
        after = ((self.output(self.x + step) - self.y) * self.dy).sum() / self.step
        return abs(after - before) > 1e-3 * scale  # a smooth slope changes by about the step


def _compare(name, gradient, probe, tolerance, sizes):
    given = np.zeros_like(probe.x) if gradient is None else gradient
    if given.shape != probe.x.shape:
        numeric = numeric_gradient(probe.output, probe.x, probe.dy, probe.step)
        cause = diagnose(given, numeric, probe.x, probe.y, sizes)
        return TensorReport(name, math.inf, False, None, None, None, cause)
    analytic, numeric = probe.projected(given), probe.numeric()
    difference = np.abs(analytic - numeric)
    largest = max(np.abs(analytic).max(), np.abs(numeric).max())
    vacuous = bool(largest <= probe.resolution())
    index = tuple(int(i) for i in np.unravel_index(np.argmax(difference), difference.shape))
    error = 0.0 if vacuous else float(difference[index] / largest)
    error = math.inf if math.isnan(error) else error
    right = error <= tolerance
    cause = ""
    if not right and gradient is None:
        cause = NONE_RETURNED
    elif not right:
        kink = probe.has_kink(index, np.abs(numeric).max())
        cause = KINK if kink else diagnose(analytic, numeric, probe.x, probe.y, sizes)
    values = float(analytic[index]), float(numeric[index])
    return TensorReport(name, error, right, index, *values, cause, vacuous)


def _unit_directions(rng, count, shape):
    directions = (rng.standard_normal(shape) for _ in range(count))
    return [direction / np.linalg.norm(direction) for direction in directions]


def _read_only(array):
    array = array.copy()
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
    result = _call("forward", forward, inputs)
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
    gradients = _call("backward", backward, (dy, cache))
    gradients = tuple(gradients) if isinstance(gradients, tuple | list) else (gradients,)
    if not checked[-1] < len(gradients) <= len(inputs):
        raise CheckError(
            f"backward returned {len(gradients)} gradients for {len(inputs)} inputs; "
            "return one for each, in their order, and None for an input that has none"
        )
    return [None if gradient is None else np.asarray(gradient) for gradient in gradients]


def _call(what, function, arguments):
    try:
        return function(*arguments)
    except Exception as error:  # a learner's function may fail in any way
        raise CheckError(f"{what} raised {type(error).__name__}: {error}") from error


def _described(value):
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
