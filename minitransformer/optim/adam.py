"""Adam (Kingma and Ba 2015) with the constants of section 5.3.

    m = β₁ m + (1 − β₁) g        v = β₂ v + (1 − β₂) g²
    θ = θ − η · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)

The moments start at zero and so are too small at first; dividing by 1 − βᵗ undoes that. One t
counts the steps of the whole model.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import twinned
from minitransformer.optim.optimizer import Optimizer


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


class Adam(Optimizer):
    """Adam with the constants of section 5.3.

    Args:
        flat, settings: as for :class:`Optimizer`.
        beta_1, beta_2, epsilon: β₁, β₂ and ε.

    Attributes:
        vectors: ``"m"`` and ``"v"``, running means of gradient and squared gradient.
    """

    names = ("m", "v")

    def __init__(self, flat, *, beta_1=0.9, beta_2=0.98, epsilon=1e-9, **settings):
        super().__init__(flat, **settings)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def update(self, data, grad, m, v, learning_rate, scale):
        constants = self.t, self.beta_1, self.beta_2, self.epsilon
        adam_update(data, grad, m, v, learning_rate, *constants, scale)
