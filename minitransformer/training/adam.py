"""Adam (Kingma and Ba 2015) with the constants of section 5.3.

    m = β₁ m + (1 − β₁) g        v = β₂ v + (1 − β₂) g²
    θ = θ − η · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)

The moments start at zero and so are too small at first; dividing by 1 − βᵗ undoes that. One t
counts the steps of the whole model.
"""

from minitransformer.backend import array_namespace
from minitransformer.module import FlatParameters


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

    def step(self, learning_rate):
        """One update from ``flat.grad``, with the learning rate η of this step.

        Raises:
            RuntimeError: the model was moved after this optimizer was made.
        """
        if self.flat.data is not self._data:
            raise RuntimeError("the model was moved after Adam was made; make Adam after moving")
        learning_rate = float(learning_rate)
        xp = array_namespace(self.flat.data)
        grad = self.flat.grad
        self.t += 1
        self.m *= self.beta_1
        self.m += (1 - self.beta_1) * grad
        self.v *= self.beta_2
        self.v += (1 - self.beta_2) * grad * grad
        m_hat = self.m / (1 - self.beta_1**self.t)
        v_hat = self.v / (1 - self.beta_2**self.t)
        self.flat.data -= learning_rate * m_hat / (xp.sqrt(v_hat) + self.epsilon)
