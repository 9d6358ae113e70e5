"""An optimizer as a newcomer would add one: it goes by the sign of a mean of the gradients."""

from dataclasses import astuple, dataclass

from minitransformer.core.backend import array_namespace
from minitransformer.core.settings import Settings, share
from minitransformer.optim.optimizer import Optimizer


@dataclass(frozen=True)
class SignSettings(Settings):
    """What a recipe may say of SignDescent.

    Attributes:
        memory: the share of the mean that stays from step to step.
    """

    memory: float = share(0.9)


class SignDescent(Optimizer):
    Settings = SignSettings
    names = ("mean",)

    def update(self, data, grad, mean, learning_rate, scale):
        (memory,) = astuple(self.settings)
        mean *= memory
        mean += (1 - memory) * scale * grad
        data -= learning_rate * array_namespace(data).sign(mean)
