"""What all optimizers share: vectors laid out like the parameters, a count, and one update of all.

An optimizer is a function on 1-D arrays, in place, and a thin class that keeps its vectors. Which
there are, ``vectors`` tells; a checkpoint keeps them, and the count ``t``.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.parameter import FlatParameters
from minitransformer.core.settings import Settings
from minitransformer.core.workers import ONE_WORKER


class Optimizer:
    """Updates all parameters of a model at once, in place. A subclass names its vectors and says

        update(data, grad, *vectors, learning_rate, scale)

    which changes the first and its vectors, and may be given any range of them.

    Args:
        flat: the FlatParameters of the model, ``model.flat``. Move the model to its device first.
        settings: fields of its ``Settings``.

    Attributes:
        Settings: the dataclass of what a recipe may say of it, each field an option of ``train``.
        settings: one of them.
        names: of its vectors.
        vectors: by name, what is remembered of earlier gradients, 1-D like ``flat.data``; zeros at
            first.
        t: updates made so far.
    """

    Settings = Settings
    names: tuple[str, ...]

    def __init__(self, flat, **settings):
        if not isinstance(flat, FlatParameters):
            name = type(self).__name__
            raise TypeError(f"{name} updates FlatParameters, model.flat, and got {flat!r}")
        self.flat, self.settings = flat, self.Settings(**settings)
        self._data = flat.data
        xp = array_namespace(flat.data)
        self.vectors = {name: xp.zeros_like(flat.data) for name in self.names}
        self.t = 0

    def step(self, learning_rate, scale=1.0, workers=ONE_WORKER):
        """One update from ``flat.grad``, with the learning rate η of this step.

        Args:
            scale: factor of the gradient, a number or a 0-d array on its device; clipping gives
                one.
            workers: Workers that share the update, a range of the parameters each.

        Raises:
            RuntimeError: the model was moved after this optimizer was made.
        """
        if self.flat.data is not self._data:
            name = type(self).__name__
            raise RuntimeError(
                f"the model was moved after {name} was made; make {name} after moving"
            )
        self.t += 1
        arrays = self.flat.data, self.flat.grad, *self.vectors.values()

        def update(part):
            self.update(*(x[part] for x in arrays), float(learning_rate), scale)

        workers.map(update, workers.ranges(len(self._data)))
