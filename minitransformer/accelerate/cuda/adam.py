"""Adam in one launch over the flat arrays, clipping included: 28 bytes a parameter."""

from minitransformer.accelerate.cuda.kernels import launch
from minitransformer.accelerate.cuda.launches import THREADS
from minitransformer.core.backend import is_array
from minitransformer.core.twins import Twin
from minitransformer.optim import adam as reference


def adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale=1.0):
    """As the reference."""
    rate, correction = learning_rate / (1 - beta_1**t), 1 / (1 - beta_2**t)
    decays = beta_1, 1 - beta_1, beta_2, 1 - beta_2
    scales = (1.0, scale) if is_array(scale) else (scale, None)
    arguments = data, grad, m, v, len(data), rate, correction, *decays, epsilon, *scales
    launch("adam", (-(-len(data) // (4 * THREADS)), 1), (THREADS, 1), *arguments)


reference.adam_update.twins.setdefault("cupy", Twin(adam_update))
