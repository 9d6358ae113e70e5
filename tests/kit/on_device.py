"""The stand-in for a GPU, copies of arrays on any device, and the arrays that something holds."""

import numpy as np
from strict_cupy import strict

from minitransformer.core.backend import Device, is_array

STAND_IN = Device("stand-in", strict)


def on(device, x, dtype=np.float32):
    """A copy of an array on ``device``, its floats in ``dtype``; anything else as it is.

    It is laid out in memory as x is, and NumPy's may not be written to.
    """
    if not is_array(x):
        return x
    x = x.astype(dtype if x.dtype.kind == "f" else x.dtype, order="K")
    x.flags.writeable = False
    return device.asarray(x)


def arrays_of(value, kind):
    """All arrays of a kind in a value: in tuples, lists, dicts and objects of the package."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        return [x for item in value.values() for x in arrays_of(item, kind)]
    if isinstance(value, list | tuple):
        return [x for item in value for x in arrays_of(item, kind)]
    ours = type(value).__module__.startswith("minitransformer")
    return arrays_of(vars(value), kind) if ours else []
