"""Stochastic gradient descent with momentum (Polyak 1964; Nesterov 1983).

    g ← g + λ θ              weight decay, as a term of the gradient
    u ← μ u + g              the velocity
    θ ← θ − η u              or, as Nesterov looks ahead,   θ ← θ − η (g + μ u)

A gradient that stays the same makes steps 1 / (1 − μ) times as long in the end; what changes its
sign from step to step cancels. μ = 0 is gradient descent as it stands.

AlexNet's and ResNet's papers have the rate within the velocity, u ← μ u − η g: the same as long as
η stays, and otherwise as if u were rescaled with η.
"""

from minitransformer.optim.optimizer import Optimizer


def momentum_update(
    data, grad, velocity, learning_rate, momentum, nesterov=False, weight_decay=0.0, scale=1.0
):
    """One step, in place on parameters and velocity.

    Args:
        data, grad, velocity: 1-D arrays of one length: θ, g and u; grad is left alone.
        learning_rate: η.
        momentum: μ.
        nesterov: whether to look ahead.
        weight_decay: λ.
        scale: factor of the gradient, a number or a 0-d array on its device; clipping gives one.
    """
    grad = grad * scale + weight_decay * data
    velocity *= momentum
    velocity += grad
    data -= learning_rate * (grad + momentum * velocity if nesterov else velocity)


class SGD(Optimizer):
    """Gradient descent with momentum.

    Args:
        flat: as for :class:`Optimizer`.
        momentum, nesterov, weight_decay: as for :func:`momentum_update`.

    Attributes:
        vectors: ``"velocity"``.
    """

    names = ("velocity",)
    settings = ("momentum", "nesterov", "weight_decay")

    def __init__(self, flat, *, momentum=0.9, nesterov=False, weight_decay=0.0):
        super().__init__(flat)
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay

    def update(self, data, grad, velocity, learning_rate, scale):
        constants = self.momentum, self.nesterov, self.weight_decay
        momentum_update(data, grad, velocity, learning_rate, *constants, scale)
