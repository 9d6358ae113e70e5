"""The recurrent decoder one step at a time: all that was said is in the state of its GRU.

A step costs the same however much was said before. The W hypotheses of a sentence are W queries to
its encoder's states, whose keys are made once, and each has a state of its own: choosing hypotheses
copies states, K numbers each.
"""

import math

from minitransformer.core.backend import array_namespace
from minitransformer.decoding.incremental import output_weight
from minitransformer.layers.additive_attention import additive_attention
from minitransformer.layers.linear import linear
from minitransformer.models.recurrent_translator import beside_each


class RecurrentDecoder:
    """As :class:`IncrementalDecoder`, with the same methods, of a RecurrentTranslator."""

    def __init__(self, model, source):
        self.model = model
        mask = model.source_mask(source)  # (N, 1, 1, S)
        memory, _ = model.encode(source, mask)
        if model.attention:
            values, m = memory  # (N, S, 2K), (N, 2K)
            keys, _ = model.attention.of_key.forward(values)  # (N, S, D)
            self.source = keys, values, mask[:, 0]
        else:
            m = memory  # (N, K)
            self.source = (m,)
        first, _ = model.bridge.forward(m)  # (N, K)
        self.state = first[:, None]  # (N, W, K), W = 1 at first
        self.output_weight = output_weight(model)  # (D, V)

    def step(self, ids):
        """Logits (N, W, V) of what follows when each hypothesis goes on with one of ids (N, W)."""
        model = self.model
        weight = model.target_embedding.weight.data
        x = weight[ids] * math.sqrt(weight.shape[1])  # (N, W, D)
        if not model.attention:
            x = beside_each(x, *self.source)  # (N, W, D + K)
        rows = x.reshape(-1, 1, x.shape[-1])  # (N W, 1, ...): each a sequence of one step
        before = self.state.reshape(len(rows), -1)  # (N W, K)
        (_, after), _ = model.decoder.forward(rows, before)
        self.state = s = after.reshape(self.state.shape)
        if model.attention:
            query, _ = model.attention.of_query.forward(s)  # (N, W, D)
            keys, values, mask = self.source
            c, _ = additive_attention(query, keys, values, model.attention.v.data, mask)
            s = array_namespace(s).concatenate([s, c], axis=-1)  # (N, W, 3K)
        y, _ = model.combine.forward(s)  # (N, W, D)
        logits, _ = linear(y, self.output_weight)
        return logits

    def select(self, parents):
        """Make hypothesis w of sentence n the one that was ``parents[n, w]``, (N, new W)."""
        xp = array_namespace(parents)
        self.state = xp.take_along_axis(self.state, parents[:, :, None], axis=1)

    def keep(self, sentences):
        """Go on with some sentences only, given by their numbers 0 … N − 1 on the device."""
        self.state = self.state[sentences]
        self.source = tuple(x[sentences] for x in self.source)
