"""All that a pair returns, for what one place gives to be compared with what another one gives."""

import numpy as np
from on_device import on

from minitransformer.core.twins import accelerated

D, F, V = 6, 7, 11
P = 64 / 256  # of dropout: a multiple of 1/256


def normal(*shapes):
    rng = np.random.default_rng(5)
    return tuple(rng.standard_normal(shape) for shape in shapes)


def results_of(device, dtype, backward, y, cache):
    """Outputs and gradients: of an upstream gradient drawn in the shape of y, or of losses 0.7."""
    outputs = y if isinstance(y, tuple) else (y,)
    dy = 0.7
    if np.ndim(outputs[0]) or outputs is not y:
        dy = np.asarray(np.random.default_rng(7).standard_normal(outputs[0].shape))
    gradients = backward(on(device, dy, dtype), cache)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    return [x for x in (*outputs, *gradients) if x is not None]


def run_pair(device, forward, backward, inputs, dtype=np.float32, awake=True):
    """What a pair returns for copies of ``inputs`` on ``device``, with twins awake or not."""
    with accelerated(awake):
        y, cache = forward(*(on(device, x, dtype) for x in inputs))
        return results_of(device, dtype, backward, y, cache)
