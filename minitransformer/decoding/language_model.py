"""A language model one token after another, over a cache of keys and values.

As in ``incremental.py``, what position t offers to later ones does not change when they are added,
so it is worked out once. A model sees ``max_length`` tokens. When they are full, the older half is
forgotten and the newer half is read once more, as positions are numbered from the first token that
is seen: so a step costs, on average, a few positions instead of all.

While somebody stands in for layers, nothing is kept, so that whole layers are called.
"""

import math

import numpy as np

from minitransformer.core.twins import stands_in
from minitransformer.decoding.incremental import Growing, attend, keys_and_values, output_weight
from minitransformer.layers.linear import linear


def text_decoder_for(model):
    """The decoder of a text at its beginning; arguments as for :class:`LanguageModelDecoder`."""
    return (LanguageModelDecoder if stands_in() is None else WholeTextDecoder)(model)


class LanguageModelDecoder:
    """One text, and what follows it.

    Args:
        model: a LanguageModel.

    Attributes:
        seen: the ids that the next token depends on, ``config.max_length`` at most.
    """

    def __init__(self, model):
        self.model = model
        self._forget()
        self.output_weight = output_weight(model)  # (D, V)

    def step(self, ids):
        """Logits (V,) of what follows when the text goes on with these ids, a list, one or more."""
        longest = self.model.config.max_length
        if len(self.seen) + len(ids) <= longest:
            return self._read(ids)
        said = [*self.seen, *ids]
        self._forget()
        if len(ids) > 1:  # as much as there is room for
            return self._read(said[-longest:])
        return self._read(said[-(longest // 2 + 1) :])

    def _forget(self):
        self.seen = []
        self.kept = [(Growing(), Growing()) for _ in self.model.stack.layers]

    def _read(self, ids):
        model, before = self.model, len(self.seen)
        self.seen = [*self.seen, *ids]
        xp = model.device.xp
        position = before + xp.arange(len(ids))
        mask = xp.arange(len(self.seen)) <= position[:, None]  # (t, seen)

        weight = model.embedding.weight.data
        x = weight[model.device.asarray(np.array(ids))] * math.sqrt(weight.shape[1])  # (t, D)
        x = (x + model.positions.table.data[before : len(self.seen)])[None]  # (1, t, D)
        for layer, kept in zip(model.stack.layers, self.kept, strict=True):
            x = self._layer_step(layer, x, kept, mask)
        if model.stack.norm:
            x, _ = model.stack.norm.forward(x)
        logits, _ = linear(x[0, -1:], self.output_weight)
        return logits[0]

    def _layer_step(self, layer, x, kept, mask):
        """:meth:`EncoderLayer.forward` with keys and values from the cache."""
        h, _ = layer.self_attention_residual.enter(x)
        for old, new in zip(kept, keys_and_values(layer.self_attention, h, h), strict=True):
            old.append(new)
        keys, values = (old.array for old in kept)  # (1, H, seen, K)
        h = attend(layer.self_attention, h, keys, values, mask)
        x, _ = layer.self_attention_residual.leave(x, h)

        h, _ = layer.feed_forward_residual.enter(x)
        h, _ = layer.feed_forward.forward(h)
        x, _ = layer.feed_forward_residual.leave(x, h)
        return x


class WholeTextDecoder(LanguageModelDecoder):
    """As :class:`LanguageModelDecoder`, with all that is seen read anew: nothing but the model."""

    def _read(self, ids):
        self.seen = [*self.seen, *ids]
        logits, _ = self.model.forward(np.array([self.seen]))  # (1, seen, V)
        return logits[0, -1]
