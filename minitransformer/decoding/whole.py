"""Decoders that read all that has been said again at every step: slow, and nothing but the model.

:class:`IncrementalDecoder` computes a position once, and for that takes layers apart. Here every
step is the model as in training: it serves any architecture, and whoever stands in for a layer is
called.
"""

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.decoding.states import State, each


class WholeDecoder(State):
    """The encoded source of N sentences and the ids of all that their hypotheses have said.

    Args:
        model: an EncoderDecoder.
        source: ids (N, S), padded with ``config.pad_id``; on the host or the model's device.
    """

    def __init__(self, model, source):
        mask = model.source_mask(source)  # (N, 1, 1, S)
        memory, _ = model.encode(source, mask)  # arrays (N, ...)
        nothing = model.device.xp.zeros((len(source), 1, 0), dtype=int)  # (N, W, t)
        super().__init__(model, (memory, mask), nothing)

    def step(self, ids):
        """Logits (N, W, V) of what follows when each hypothesis goes on with one of ids (N, W)."""
        self.said = array_namespace(ids).concatenate([self.said, ids[:, :, None]], axis=-1)
        batch, width, length = self.said.shape
        memory, mask = each(self.source, lambda x: x.repeat(width, axis=0))
        said = self.said.reshape(batch * width, length)
        y, _ = self.model.decode(said, memory, mask)  # (N W, t, D)
        logits, _ = self.model.output_projection.forward(y[:, -1])
        return logits.reshape(batch, width, -1)


class WholeTextDecoder:
    """One text, and what follows it.

    A model sees ``max_length`` tokens. When they are full, the older half is forgotten and the
    newer half is read once more, as positions are numbered from the first token that is seen.

    Args:
        model: a LanguageModel.

    Attributes:
        seen: the ids that the next token depends on, ``config.max_length`` at most.
    """

    def __init__(self, model):
        self.model = model
        self.forget()

    def step(self, ids):
        """Logits (V,) of what follows when the text goes on with these ids, a list, one or more."""
        longest = self.model.config.max_length
        if len(self.seen) + len(ids) <= longest:
            return self.read(ids)
        said = [*self.seen, *ids]
        self.forget()
        if len(ids) > 1:  # as much as there is room for
            return self.read(said[-longest:])
        return self.read(said[-(longest // 2 + 1) :])

    def forget(self):
        """Begin anew, with nothing seen."""
        self.seen = []

    def read(self, ids):
        """:meth:`step` where there is room for the ids."""
        self.seen = [*self.seen, *ids]
        logits, _ = self.model.forward(np.array([self.seen]))  # (1, seen, V)
        return logits[0, -1]
