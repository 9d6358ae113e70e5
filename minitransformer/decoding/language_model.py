"""A language model one token after another, over a cache of keys and values.

As in ``incremental.py``, what position t offers to later ones does not change when they are added,
so it is worked out once: a step costs, on average, a few positions instead of all.
"""

import numpy as np

from minitransformer.decoding.incremental import Growing
from minitransformer.decoding.states import output_weight
from minitransformer.decoding.whole import WholeTextDecoder
from minitransformer.layers.linear import linear


class LanguageModelDecoder(WholeTextDecoder):
    """As :class:`WholeTextDecoder`, with keys and values kept of what is seen."""

    def __init__(self, model):
        super().__init__(model)
        self.output_weight = output_weight(model)  # (D, V)

    def forget(self):
        super().forget()
        self.kept = [Growing() for _ in self.model.stack.layers]

    def read(self, ids):
        model, before = self.model, len(self.seen)
        self.seen = [*self.seen, *ids]
        position = np.arange(len(self.seen))
        behind = position[before:, None] - position  # (t, seen)
        mask = (behind >= 0) & (np.array(self.seen) != model.config.pad_id)
        if model.config.window:
            mask &= behind <= model.config.window
        mask = model.device.asarray(mask)

        x, _ = model.embedding.forward(np.array([ids]))  # (1, t, D)
        if model.positions:
            x = model.positions.step(x, before)
        for layer, kept in zip(model.stack.layers, self.kept, strict=True):
            x = layer.step(x, kept, mask)
        if model.stack.norm:
            x, _ = model.stack.norm.forward(x)
        logits, _ = linear(x[0, -1:], self.output_weight)
        return logits[0]
