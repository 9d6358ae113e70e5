"""Copies of arrays on any device."""

import numpy as np

from minitransformer.core.backend import is_array


def on(device, x, dtype=np.float32):
    """A copy of an array on ``device``, its floats in ``dtype``; anything else as it is.

    It is laid out in memory as x is, and NumPy's may not be written to.
    """
    if not is_array(x):
        return x
    x = x.astype(dtype if x.dtype.kind == "f" else x.dtype, order="K")
    x.flags.writeable = False
    return device.asarray(x)
