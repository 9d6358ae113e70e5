"""What a backward may not do although its gradients are right: rely on more than dy and its cache.

A layer is used at several places of a model, and all their forwards run before their backwards.
What was left in a global or on ``self`` is by then another call's; a cache or a y that backward
wrote to is no longer there for who needs it next. And what is right for the inputs and the dy of
a check alone, such as what reads a notebook's arrays or clips dy, is wrong in every training.
"""

import contextlib

import numpy as np

from minitransformer.gradcheck.pair import arrays_in, read_only, unheard
from minitransformer.gradcheck.report import CheckError
from minitransformer.gradcheck.variations import (
    in_another_order,
    of_other_values,
    of_smaller_sizes,
    sizes_of,
)
from minitransformer.gradcheck.verdict import Probe

UNSTEADY = "backward is not deterministic: two calls with the same dy and cache differ"
CACHE_WRITTEN = (
    "it is right once, but backward writes to its cache, or empties it, so that a second call "
    "would find another; it must leave what forward handed out as it is"
)
Y_WRITTEN = (
    "it is right, but backward writes to the y that forward returned, which others may still use"
)
STATE_READ = (
    "it is another once forward has been called on other inputs: backward must read its cache "
    "alone, no global and nothing on self, and no later forward may write to that cache"
)
NOT_LINEAR = (
    "it is right for a dy of this size and sign, but not in proportion to dy: of a billion "
    "times less, or as many times more and of the other sign, it is another; is dy clipped, made "
    "positive, or part of a condition?"
)
RIGHT_HERE = (
    "it is right for these inputs, and wrong for others, such as their rows in another order: "
    "either these hide a mistake, or backward uses an array from outside, as of a notebook, where "
    "it must use its cache"
)
FACTORS = -(2.0**30), 2.0**-30  # of dy: powers of two, which add no rounding
PLAIN = 1e-3  # relative difference that is no rounding of any kind


def gradients_and_faults(pair, inputs, dy, result, rng):
    """What backward returns, and what is wrong with how it comes about, both by name of the input.

    Args:
        pair: a Pair.
        inputs: those it is checked on.
        dy: upstream gradient.
        result: what forward returned for the inputs, (y, cache).
        rng: generator to draw other inputs from.

    Returns:
        gradients, faults, elsewhere: None for a gradient that is None, words for a fault, and a
        function that says of a name whether its gradient is wrong for other inputs.
    """
    handed_out, cache = result
    held = list(arrays_in(result))
    before = [array.copy() for array in held]
    gradients = pair.backward(dy, cache)
    with unheard():
        written = [not _equal(*arrays) for arrays in zip(held, before, strict=True)]
        if any(written):
            at_y = held[written.index(True)] is handed_out
            words = Y_WRITTEN if at_y else CACHE_WRITTEN
            return gradients, dict.fromkeys(gradients, words), nowhere
        differing = _differing(gradients, pair, dy, cache)
        if differing:
            _, (_, another) = pair.forward(inputs)
            unsteady = _differing(gradients, pair, dy, another)
            words = UNSTEADY if unsteady else CACHE_WRITTEN
            return gradients, dict.fromkeys(differing, words), nowhere
        elsewhere = _wrong_elsewhere(pair, inputs, dy, rng)
        faults = {
            **dict.fromkeys(_not_in_proportion(gradients, pair, dy, cache), NOT_LINEAR),
            **dict.fromkeys(_of_the_last_call(gradients, pair, inputs, dy, cache, rng), STATE_READ),
        }
        return gradients, faults, elsewhere


def nowhere(name):
    """That a gradient is wrong for no other inputs, or not said to be."""
    return False


def _of_the_last_call(gradients, pair, inputs, dy, cache, rng):
    """The names of those that are others once forward has been called on other inputs."""
    others, _ = _first_defined(pair, of_other_values(inputs, rng)) or (inputs, None)
    shorter, sizes = others, sizes_of(inputs)
    if not _first_defined(pair, of_smaller_sizes(others, sizes)[:1]):
        for size in sizes:
            shorter, _ = _first_defined(pair, of_smaller_sizes(shorter, [size])) or (shorter, None)
    found = _differing(gradients, pair, dy, cache)
    if found:  # after other sizes all may fail
        _first_defined(pair, [others])
    return found and (_differing(gradients, pair, dy, cache) or found)


def _first_defined(pair, alternatives):
    """The first of the inputs that forward is defined on, and what it returned; None for none."""
    for inputs in alternatives:
        with contextlib.suppress(CheckError):
            return inputs, pair.forward(inputs)
    return None


def _not_in_proportion(gradients, pair, dy, cache):
    """The names of those that do not grow and turn with dy; all if backward fails."""
    found = []
    for factor in FACTORS:
        try:
            scaled = pair.backward(read_only(factor * dy), cache)
        except CheckError:
            return list(gradients)
        found += [
            name
            for name, gradient in gradients.items()
            if gradient is not None and _unlike(factor * gradient, scaled[name])
        ]
    return found


def _unlike(a, b):
    """Whether two arrays differ plainly; what is too large to be told is not."""
    if b is None or a.shape != b.shape:
        return True
    return bool(np.abs(a - b).max(initial=0) > PLAIN * np.abs(a).max(initial=0))


def _wrong_elsewhere(pair, inputs, dy, rng):
    """Whether a gradient, by its name, is wrong for other inputs, along a random direction."""
    found = _first_defined(pair, in_another_order(inputs, rng))
    if not found:
        return nowhere
    inputs, (y, (_, cache)) = found
    dy = dy if y.shape == dy.shape else read_only(rng.standard_normal(y.shape))
    try:
        gradients = pair.backward(dy, cache)
    except CheckError:
        return nowhere
    directions, slopes = {}, {}
    for i in pair.checked:
        gradient, x = gradients[pair.names[i]], inputs[i]
        if gradient is not None and gradient.shape == x.shape:
            direction = rng.standard_normal(x.shape)
            direction *= np.where(x, np.abs(x), 1)  # small ones are not moved far
            slope = float((gradient * direction).sum())
            size = max(1, abs(slope))  # so that none outweighs the others
            directions[i], slopes[i] = direction / size, slope / size

    def refuted(moving):
        def output(by):
            values = list(inputs)
            for i in moving:
                values[i] = read_only(inputs[i] + by[0] * directions[i])
            return pair.output_of(tuple(values), y.shape)

        together = np.array([sum(slopes[i] for i in moving)])
        return Probe(output, np.zeros(1), y, dy).refutes(together, PLAIN)

    if not refuted(slopes):
        return nowhere
    by_name = {pair.names[i]: [i] for i in slopes}
    return lambda name: name in by_name and refuted(by_name[name])


def _differing(gradients, pair, dy, cache):
    """The names of those that backward now returns otherwise; all if it fails."""
    try:
        now = pair.backward(dy, cache)
    except CheckError:
        return list(gradients)
    return [name for name, gradient in gradients.items() if not _equal(gradient, now[name])]


def _equal(a, b):
    """Whether two arrays, or None and None, hold the same, NaN being NaN."""
    if a is None or b is None:
        return a is b
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
