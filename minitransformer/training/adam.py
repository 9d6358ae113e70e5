"""Adam (Kingma and Ba 2015) with the constants of section 5.3.

    m = β₁ m + (1 − β₁) g        v = β₂ v + (1 − β₂) g²
    θ = θ − η · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)

The moments start at zero and so are too small at first; dividing by 1 − βᵗ undoes that. One t
counts the steps of the whole model.
"""

from minitransformer.backend import array_namespace
from minitransformer.module import FlatParameters
from minitransformer.twins import twinned
from minitransformer.workers import ONE_WORKER


@twinned
def adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale=1.0):
    """One step of Adam, in place on parameters and moments.

    Args:
        data, grad, m, v: 1-D arrays of one length: θ, g and the two moments; grad is left alone.
        learning_rate: η.
        t: number of this step, from 1.
        beta_1, beta_2, epsilon: β₁, β₂ and ε.
        scale: factor of the gradient, a number or a 0-d array on its device; clipping gives one.
    """
    xp = array_namespace(data)
    grad = grad * scale
    m *= beta_1
    m += (1 - beta_1) * grad
    v *= beta_2
    v += (1 - beta_2) * grad * grad
    m_hat = m / (1 - beta_1**t)
    v_hat = v / (1 - beta_2**t)
    data -= learning_rate * m_hat / (xp.sqrt(v_hat) + epsilon)


class Adam:
    """Updates all parameters of a model at once, in place.

    Args:
        flat: the FlatParameters of the model, ``model.flat``. Move the model to its device first.
        beta_1, beta_2, epsilon: β₁, β₂ and ε.

    Attributes:
        m, v: running means of gradient and squared gradient, 1-D like ``flat.data``.
        t: updates made so far.
    """

    def __init__(self, flat, *, beta_1=0.9, beta_2=0.98, epsilon=1e-9):
        if not isinstance(flat, FlatParameters):
            raise TypeError(f"Adam updates FlatParameters, model.flat, and got {flat!r}")
        self.flat = flat
        self._data = flat.data
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        xp = array_namespace(flat.data)
        self.m = xp.zeros_like(flat.data)
        self.v = xp.zeros_like(flat.data)
        self.t = 0

    def step(self, learning_rate, scale=1.0, workers=ONE_WORKER):
        """One update from ``flat.grad``, with the learning rate η of this step.

        Args:
            scale: factor of the gradient, as for :func:`adam_update`.
            workers: Workers that share the update, a range of the parameters each.

        Raises:
            RuntimeError: the model was moved after this optimizer was made.
        """
        if self.flat.data is not self._data:
            raise RuntimeError("the model was moved after Adam was made; make Adam after moving")
        self.t += 1
        constants = self.t, self.beta_1, self.beta_2, self.epsilon

        def update(part):
            arrays = (x[part] for x in (self.flat.data, self.flat.grad, self.m, self.v))
            adam_update(*arrays, float(learning_rate), *constants, scale)

        workers.map(update, workers.ranges(len(self._data)))
