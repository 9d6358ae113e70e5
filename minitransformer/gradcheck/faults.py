"""What a backward may not do although its gradients are right: rely on anything but its cache.

A layer is used at several places of a model, and all their forwards run before their backwards.
What was left in a global or on ``self`` is by then another call's; a cache or a y that backward
wrote to is no longer there for who needs it next.
"""

import contextlib

import numpy as np

from minitransformer.gradcheck.pair import arrays_in, read_only, unheard
from minitransformer.gradcheck.report import CheckError

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


def gradients_and_faults(pair, inputs, dy, result, rng):
    """What backward returns, and what is wrong with how it comes about, both by name of the input.

    Args:
        pair: a Pair.
        inputs: those it is checked on.
        dy: upstream gradient.
        result: what forward returned for the inputs, (y, cache).
        rng: generator to draw other inputs from.

    Returns:
        gradients, faults: None for a gradient that is None, words for a fault.
    """
    handed_out, cache = result
    held = list(arrays_in(result))
    before = [array.copy() for array in held]
    gradients = pair.backward(dy, cache)
    with unheard():
        written = [not _equal(*arrays) for arrays in zip(held, before, strict=True)]
        if any(written):
            at_y = held[written.index(True)] is handed_out
            return gradients, dict.fromkeys(gradients, Y_WRITTEN if at_y else CACHE_WRITTEN)
        differing = _differing(gradients, pair, dy, cache)
        if differing:
            _, (_, another) = pair.forward(inputs)
            unsteady = _differing(gradients, pair, dy, another)
            return gradients, dict.fromkeys(differing, UNSTEADY if unsteady else CACHE_WRITTEN)
        for others in (_near, _reversed):
            with contextlib.suppress(CheckError):  # it may not be defined on these
                pair.forward(_changed(others, pair, inputs, rng))
        return gradients, dict.fromkeys(_differing(gradients, pair, dy, cache), STATE_READ)


def _changed(change, pair, inputs, rng):
    """The inputs, with those that are checked made other ones by ``change``."""
    return tuple(
        read_only(change(x, rng)) if i in pair.checked else x for i, x in enumerate(inputs)
    )


def _near(x, rng):
    return x * rng.uniform(0.9, 1.1, x.shape)


def _reversed(x, rng):
    """Where entries near each other take the same branch, a mask or an index is another here."""
    return x.reshape(-1)[::-1].reshape(x.shape)


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
