"""AdamW (Loshchilov and Hutter 2019): Adam, and a decay of the parameters beside it.

    θ ← (1 − η λ) θ − (the step of Adam)

The same decay as a term λ θ of the gradient would be divided by √v, too: parameters whose gradients
are large would then decay less than others.
"""

from minitransformer.optim.adam import Adam


class AdamW(Adam):
    """Adam with a decay of all parameters, gains and biases among them.

    Args:
        flat, options: as for :class:`Adam`.
        weight_decay: λ.
    """

    settings = ("weight_decay",)

    def __init__(self, flat, *, weight_decay=0.01, **options):
        super().__init__(flat, **options)
        self.weight_decay = weight_decay

    def update(self, data, grad, m, v, learning_rate, scale):
        data *= 1 - learning_rate * self.weight_decay
        super().update(data, grad, m, v, learning_rate, scale)
