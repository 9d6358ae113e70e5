"""AdamW (Loshchilov and Hutter 2019): Adam, and a decay of the parameters beside it.

    θ ← (1 − η λ) θ − (the step of Adam)

The same decay as a term λ θ of the gradient would be divided by √v, too: parameters whose gradients
are large would then decay less than others.
"""

from dataclasses import dataclass

from minitransformer.core.settings import Settings, positive
from minitransformer.optim.adam import Adam, adam_update


def adamw_update(
    data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, weight_decay, scale=1.0
):
    """One step of AdamW, in place on parameters and moments.

    Args:
        weight_decay: λ.

    The others are those of :func:`adam_update`.
    """
    data *= 1 - learning_rate * weight_decay
    adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale)


@dataclass(frozen=True)
class AdamWSettings(Settings):
    """What a recipe may say of AdamW.

    Attributes:
        weight_decay: by which share of the learning rate parameters shrink in a step.
    """

    weight_decay: float = positive(0.01)


class AdamW(Adam):
    """Adam with a decay of all parameters, gains and biases among them; arguments as for Adam."""

    Settings = AdamWSettings

    def update(self, data, grad, m, v, learning_rate, scale):
        constants = self.t, self.beta_1, self.beta_2, self.epsilon, self.settings.weight_decay
        adamw_update(data, grad, m, v, learning_rate, *constants, scale)
