"""What every whole model is: its configuration, its place, and all its numbers in one array."""

import copy
from typing import ClassVar

import numpy as np

from minitransformer.core.backend import CPU, select_device
from minitransformer.core.module import FlatParameters, Module
from minitransformer.layers.first_weights import NoDraws


class Model(Module):
    """A whole model. A subclass builds its layers in ``build`` and says what it learns from.

    For the layers, which it draws with ``rng`` and assigns in the order of their names:

        build(config, rng)

    For a training, two methods that mirror each other:

        loss(batch, rng=None, *, smoothing=0.0, kappa=0.0, num_tokens=None)
            -> (loss, nll), cache
        loss_backward(dloss, cache)

    ``loss`` is what training lowers and ``nll`` what it is about, the negative log-likelihood in
    nats: two scalars on the device. Both are sums over the batch, divided by
    ``num_tokens``, so that the losses and the gradients of the parts of a batch add up to those of
    the whole; without it, by what there is to say in this batch. ``smoothing`` is that of the
    labels, ``kappa`` the weight of the consistency of two passes. ``loss_backward`` adds to the
    gradient of every parameter. Before batches go to a GPU, ``check`` looks at them.

    One that chooses among answers has also, for its validation and its gradient check,

        inputs(batch) -> inputs                       a tuple
        logits(*inputs, rng=None) -> logits, cache
        backward(dlogits, cache)                      as ``loss_backward``

    Attributes:
        Config: the class of its configurations.
        config: what it was built from.
        device: the Device its arrays are on.
        flat: all parameters and all gradients, one array each (FlatParameters).

    Args:
        config: sizes and choices, a ModelConfig.
        seed: of the initial weights; the same seed gives the same weights on every device. None
            draws nothing: all are 0 until others are put in their place.
        device, dtype: a Device or its name, and the floating type; :meth:`to` changes both later.

    Raises:
        TypeError: the type is neither float32 nor float64.
    """

    Config: ClassVar[type]

    def __init__(self, config, seed=0, *, device=CPU, dtype=np.float32):
        self.config = config
        self.device = select_device(device)  # first, so that pickle finds it before any array
        self.build(config, NoDraws() if seed is None else np.random.default_rng(seed))
        self.flat = FlatParameters(self)
        if self.device != CPU or dtype != np.float32:  # it is built there, and in that type
            self.to(dtype=dtype)

    def to(self, device=None, dtype=None):
        """As :meth:`Module.to`. ``flat`` stays the same object, with new arrays in it.

        Raises:
            TypeError: the type is neither float32 nor float64. Adam's ε is 0 in float16.
        """
        if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
            raise TypeError(f"a model is of float32 or float64, not of {np.dtype(dtype)}")
        self.device = self.device if device is None else select_device(device)
        return super().to(self.device, dtype)

    def check(self, batch):
        """Raise a ValueError where ``batch``, on the host, is not for this model."""

    def replica(self):
        """A model of the same parameter array, with a gradient array and buffers of its own.

        Replicas run forward and backward side by side, each on its shard of a batch; the sum of
        their gradients is that of the batch. It is for training as long as neither is moved.
        """
        replica = copy.deepcopy(self)
        replica.flat.share_data(self.flat)
        replica.zero_grad()
        return replica
