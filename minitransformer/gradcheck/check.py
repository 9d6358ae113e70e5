"""Compare backward functions with numeric gradients, tensor by tensor.

Everything runs in float64, from a seed, with a random upstream gradient: with one of all ones, a
backward that returns zeros passes for softmax and LayerNorm, whose outputs have constant sums.
"""

import time
from numbers import Integral

import numpy as np

from minitransformer.gradcheck.faults import gradients_and_faults
from minitransformer.gradcheck.inputs import warnings_about
from minitransformer.gradcheck.pair import (
    OutOfTime,
    Pair,
    argument_names,
    each_once,
    heard,
    positions_to_check,
    read_only,
    unheard,
)
from minitransformer.gradcheck.report import CheckError, Report
from minitransformer.gradcheck.trial import Trial, unit_directions

LONGEST = 300  # seconds that a check may take
WAYS_OUT = (
    "choose smaller inputs, or directions=3 to compare slopes along random directions only, or "
    "allow for more with timeout"
)


def check_pair(
    forward,
    backward,
    inputs,
    *,
    names=None,
    tolerance=1e-7,
    directions=None,
    seed=0,
    timeout=LONGEST,
):
    """Check ``backward`` against central differences of ``forward``.

    Args:
        forward: ``forward(*inputs) -> (y, cache)``.
        backward: ``backward(dy, cache) -> gradients`` in the order of the inputs, None for an
            input that has none; trailing ones that have none may be left off. A single gradient
            need not be in a tuple.
        inputs: float64 arrays, which are checked; integers, booleans and whatever else holds no
            floats pass through. They are handed over read-only, as is dy.
        names: of the inputs; by default those of the parameters of ``forward``.
        tolerance: largest relative error of an entry called right, beyond its rounding noise.
        directions: None compares every entry; a number k compares the slopes along k random
            directions of each tensor, which is enough for large ones.
        seed: of the upstream gradient and the directions, 0 or more.
        timeout: seconds that the check may take.

    Returns:
        Report

    Raises:
        CheckError: forward or backward cannot be called as described, forward is not
            deterministic, its output is not finite, an input lies at a kink, there is nothing to
            check, or it would take too long.
    """
    start = time.perf_counter()
    if not (directions is None or (isinstance(directions, Integral) and directions >= 1)):
        raise CheckError(
            f"directions={directions!r}; choose a whole number, 1 or more, or None for every entry"
        )
    if not (isinstance(seed, Integral) and seed >= 0):
        raise CheckError(f"seed={seed!r}; choose a whole number, 0 or more")
    for called, function in (("forward", forward), ("backward", backward)):
        if not callable(function):
            raise CheckError(f"{called} is {function!r}; hand over a function")
    inputs = inputs if isinstance(inputs, tuple | list) else (inputs,)
    inputs = tuple(map(read_only, inputs))
    names = each_once(names or argument_names(forward, len(inputs)))
    if len(names) != len(inputs):
        raise CheckError(f"there are {len(names)} names for {len(inputs)} inputs; give each a name")
    pair = Pair(forward, backward, names, positions_to_check(inputs, names), start + timeout)
    try:
        tensors, warned = _check(pair, inputs, tolerance, directions, seed, timeout)
    except OutOfTime:
        raise CheckError(f"this takes more than {timeout:g} s; {WAYS_OUT}") from None
    if all(tensor.vacuous for tensor in tensors):
        raise CheckError(
            "every gradient is zero, by backward and by central differences: such inputs cannot "
            "tell a right backward from a wrong one; choose others"
        )
    unchecked = [name for i, name in enumerate(names) if i not in pair.checked]
    return Report(tensors, time.perf_counter() - start, unchecked, warned)


def _check(pair, inputs, tolerance, directions, seed, timeout):
    """The TensorReports and the warnings."""
    # Not default_rng(seed): inputs are often drawn from it, and where dy equals x, xᵀ dy is
    # symmetric and a transposed weight gradient passes.
    rng = np.random.default_rng((seed, 2017))
    with heard() as warned:
        y, _ = pair.forward(inputs)
        start = time.perf_counter()  # the first call may load or compile something
        again, result = pair.forward(inputs)
        seconds = time.perf_counter() - start
        if not np.array_equal(y, again):
            raise CheckError(
                "forward is not deterministic: two calls with the same inputs differ; "
                "draw random numbers from a generator seeded inside forward"
            )
        dy = read_only(rng.standard_normal(y.shape))
        others = np.random.default_rng((seed, 1986))
        gradients, faults, elsewhere = gradients_and_faults(pair, inputs, dy, result, others)
    with unheard():
        evaluations = sum(directions or inputs[i].size for i in pair.checked)
        if (estimate := 2 * seconds * evaluations) > timeout:
            raise CheckError(
                f"this would take about {estimate:.0f} s, one of {seconds:.2g} s twice for each of "
                f"{evaluations:,} entries; {WAYS_OUT}"
            )
        along = unit_directions(pair, inputs, directions, rng)
        trial = Trial(pair, inputs, y, dy, gradients, along, faults, elsewhere)
        tensors = trial.compare(tolerance)
        return tensors, [*warned, *warnings_about(trial)]
