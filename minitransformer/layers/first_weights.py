"""What weights begin with: named choices, each a way to draw them.

A weight sums ``fan_in`` inputs into each output, and each input reaches ``fan_out`` outputs: the
two widths of a linear map; of a convolution k·k·C and k·k·E. If weights are independent of the
inputs, with mean 0 and variance v, then

    Var(y) = fan_in · v · mean(x²)        Var(dx) = fan_out · v · mean(dy²)

Glorot and Bengio (2010) would keep both and take the middle, v = 2 / (fan_in + fan_out). He et al.
(2015) note that a ReLU halves mean(x²) on the way, and keep the forward, v = 2 / fan_in. Earlier
and later papers fix one deviation for all sizes, which layers of normalisation can afford.
"""

import math
from functools import partial

import numpy as np

from minitransformer.core.errors import require_one_of


def he(shape, fan_in, fan_out, rng):
    """Normal with variance 2 / fan_in: He et al. (2015), equation 10."""
    return fixed(shape, fan_in, fan_out, rng, math.sqrt(2 / fan_in))


def glorot(shape, fan_in, fan_out, rng):
    """Uniform in ±√(6 / (fan_in + fan_out)): Glorot and Bengio (2010), equation 16."""
    limit = math.sqrt(6 / (fan_in + fan_out))
    return rng.uniform(-limit, limit, shape).astype(np.float32, copy=False)


def fixed(shape, fan_in, fan_out, rng, deviation):
    """Normal with this standard deviation, whatever the sizes."""
    return rng.normal(scale=deviation, size=shape).astype(np.float32, copy=False)


STARTS = {  # functions (shape, fan_in, fan_out, rng) by name; each returns a float32 array
    "he": he,
    "glorot": glorot,
    "fixed-0.01": partial(fixed, deviation=0.01),  # AlexNet (2012), section 5
    "fixed-0.02": partial(fixed, deviation=0.02),  # GPT (2018), section 4.1
}


class NoDraws:
    """In place of a generator: all that it draws is 0 and takes no memory, until it is copied."""

    def uniform(self, low=0.0, high=1.0, size=None):
        return np.broadcast_to(np.float32(0), size)

    def normal(self, loc=0.0, scale=1.0, size=None):
        return np.broadcast_to(np.float32(0), size)

    def standard_normal(self, size=None):
        return np.broadcast_to(np.float32(0), size)


def first_weight(start, shape, fan_in, fan_out, rng):
    """A new weight, drawn by the one of STARTS that is called ``start``.

    Raises:
        ValueError: there is none of that name.
    """
    require_one_of(STARTS, "start", start)
    return STARTS[start](shape, fan_in, fan_out, rng)
