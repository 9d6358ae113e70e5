"""Stochastic gradient descent with momentum (Polyak 1964; Nesterov 1983).

    g ← g + λ θ              weight decay, as a term of the gradient
    u ← μ u + g              the velocity
    θ ← θ − η u              or, as Nesterov looks ahead,   θ ← θ − η (g + μ u)

A gradient that stays the same makes steps 1 / (1 − μ) times as long in the end; what changes its
sign from step to step cancels. μ = 0 is gradient descent as it stands.

AlexNet's and ResNet's papers have the rate within the velocity, u ← μ u − η g: the same as long as
η stays, and otherwise as if u were rescaled with η.
"""

from dataclasses import astuple, dataclass

from minitransformer.core.errors import require
from minitransformer.core.settings import Settings, not_negative, share
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


@dataclass(frozen=True)
class SGDSettings(Settings):
    """What a recipe may say of SGD.

    Attributes:
        momentum: the share of the velocity that stays from step to step.
        nesterov: whether to look ahead.
        weight_decay: the share of the parameters that is added to their gradient.
    """

    momentum: float = share(0.0)
    nesterov: bool = False
    weight_decay: float = not_negative(0.0)

    def require_sense(self):
        require(
            self.momentum or not self.nesterov,
            "nesterov=True does nothing without momentum; give one, such as 0.9",
        )


class SGD(Optimizer):
    """Gradient descent with momentum; arguments as for :class:`Optimizer`.

    Attributes:
        vectors: ``"velocity"``.
    """

    Settings = SGDSettings
    names = ("velocity",)

    def update(self, data, grad, velocity, learning_rate, scale):
        momentum_update(data, grad, velocity, learning_rate, *astuple(self.settings), scale)
