"""Inputs that prove nothing: on which a common mistake gives the right gradient."""

import numpy as np

from minitransformer.backend import is_array


def warnings_about(inputs, y, checked):
    """What inputs would hide, a line for each.

    Args:
        inputs: all of a pair's, by name.
        y: the output.
        checked: the names of those whose gradients are checked.
    """
    hiding = ((name, _hides(name, inputs[name])) for name in checked)
    found = [f"{name} {hidden}" for name, hidden in hiding if hidden]
    first = next(iter(inputs.items()))
    return [*found, *_batch_of_one(*first, y)]


def _hides(name, x):
    shape = ", ".join(map(str, x.shape))
    if x.ndim == 2 and len(x) > 1 and np.array_equal(x, np.eye(*x.shape)):
        return (
            "is the identity matrix: a product with it that is missing, or with its transpose, "
            f"would not show; draw it, as with rng.standard_normal(({shape}))"
        )
    if x.size == 1 or (x != x.flat[0]).any():
        return ""
    value = float(x.flat[0])
    if value == 1:
        return (
            "is 1 everywhere: a product with it that is missing or misplaced, as a gain may be, "
            f"would not show; draw it, as with rng.uniform(0.5, 1.5, ({shape}))"
        )
    hidden = "what is multiplied by it" if value == 0 else "which entry stands where"
    return (
        f"is {value:g} everywhere: {hidden} would not show; draw it, as with "
        f"rng.standard_normal(({shape}))"
    )


def _batch_of_one(name, x, y):
    if is_array(x) and x.ndim > 1 and len(x) == 1 and y.shape[:1] in ((), (1,)):
        yield (
            f"{name} is a batch of 1: a sum over the batch that is missing or is a mean would not "
            "show; take 2 or more"
        )
