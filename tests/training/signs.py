"""An optimizer as a newcomer would add one: it goes by the sign of a mean of the gradients."""

from minitransformer.core.backend import array_namespace
from minitransformer.optim.optimizer import Optimizer


class SignDescent(Optimizer):
    names = ("mean",)
    settings = ("momentum",)

    def __init__(self, flat, *, momentum):
        super().__init__(flat)
        self.momentum = momentum

    def update(self, data, grad, mean, learning_rate, scale):
        mean *= self.momentum
        mean += (1 - self.momentum) * scale * grad
        data -= learning_rate * array_namespace(data).sign(mean)
