"""Other inputs that a pair should do with as well, made of those that it was given.

What a forward is defined on is not known: positive numbers, probabilities, ids below the size of a
vocabulary, sequences padded at their ends. So what is to be right for others, too, is moved rather
than changed, and by whole rows. What a forward may refuse comes with alternatives.
"""

from numbers import Number

import numpy as np

from minitransformer.core.backend import is_array
from minitransformer.gradcheck.pair import read_only

LESS = 0.9  # of a number: what is positive, or a probability, remains so


def of_other_values(inputs, rng):
    """A list of alternatives: inputs with which forward leaves other values and masks behind."""
    near = _each(inputs, lambda x: _near(x, rng))
    # Where entries near each other take the same branch, a mask or an index is another here.
    turned = _each(near, lambda x: x.reshape(-1)[::-1].reshape(x.shape))
    settings = [tuple(map(_another_setting, values)) for values in (turned, near, inputs)]
    return [*settings, turned, near]


def sizes_of(inputs):
    """The sizes of all axes, each once, that can be made smaller."""
    shapes = [x.shape for x in inputs if is_array(x)]
    return dict.fromkeys(size for shape in shapes for size in shape if size > 1)


def of_smaller_sizes(inputs, sizes):
    """A list of alternatives: inputs of which those sizes, as that of the batch, are 1 less."""
    return [
        _each(inputs, lambda x: _shorter(x, sizes, x.ndim)),
        _each(inputs, lambda x: _shorter(x, sizes, 1)),
    ]


def in_another_order(inputs, rng):
    """A list of alternatives: inputs for which a gradient that is right should be right, too."""
    moved = _each(inputs, lambda x: _moved(x, rng))
    less = (read_only(LESS * x) if _is_float(x) else x for x in inputs)
    return [moved, tuple(less)]


def _each(value, change):
    """``value`` with the arrays in it, in tuples, lists and dicts, made other ones."""
    if is_array(value):
        return read_only(change(np.asarray(value)))
    if type(value) in (tuple, list):
        return type(value)(_each(inner, change) for inner in value)
    if type(value) is dict:
        return {key: _each(inner, change) for key, inner in value.items()}
    return value


def _near(x, rng):
    """Floats near these, masks turned round, and some of the same ids."""
    if _is_float(x):
        return x * rng.uniform(0.9, 1.1, x.shape)
    if x.dtype.kind == "b":
        return ~x
    return rng.choice(x.reshape(-1), x.shape) if x.dtype.kind in "iu" and x.size else x


def _another_setting(value):
    """Another flag or number; so is an array of one integer, as of a seed."""
    if isinstance(value, bool):
        return not value
    if is_array(value) and value.dtype.kind in "iu" and value.size == 1:
        return read_only(value + 1)
    return value + 1 if isinstance(value, Number) else value


def _shorter(x, sizes, axes):
    """One entry less along each of the first ``axes`` axes that is of one of those sizes."""
    return x[tuple(slice(size - (size in sizes)) for size in x.shape[:axes])]


def _moved(x, rng):
    """Its rows moved on by one; its columns where rows are alike.

    What is sorted or symmetric may have to be so: it remains so.
    """
    if x.ndim == 1 and x.dtype.kind in "iu" and x.size and x[0] == 0 and (np.diff(x) >= 0).all():
        return np.sort(rng.choice(x, x.shape)) if (np.diff(x) == 0).any() else x
    if _is_float(x) and (x.size == 1 or _is_sorted(x) or (x.ndim == 2 and np.array_equal(x, x.T))):
        return LESS * x
    rolled = (np.roll(x, 1, axis) for axis in range(x.ndim))
    return next((other for other in rolled if not np.array_equal(other, x)), x)


def _is_sorted(x):
    steps = np.diff(x) if x.ndim == 1 else np.array([-1, 1])
    return (steps >= 0).all() or (steps <= 0).all()


def _is_float(x):
    return is_array(x) and x.dtype == np.float64
