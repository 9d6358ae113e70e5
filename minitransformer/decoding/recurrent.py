"""The recurrent decoder one step at a time: all that was said is in the state of its GRU.

A step costs the same however much was said before. The W hypotheses of a sentence are W queries to
its encoder's states, whose keys are made once, and each has a state of its own: choosing hypotheses
copies states, K numbers each.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.decoding.states import State
from minitransformer.models.recurrent_translator import beside_each


class RecurrentDecoder(State):
    """As :class:`IncrementalDecoder`, of a RecurrentTranslator; kept is h (N, W, K)."""

    def __init__(self, model, source):
        mask = model.source_mask(source)  # (N, 1, 1, S)
        memory, _ = model.encode(source, mask)
        values, m = memory if model.attention else (None, memory)  # (N, S, 2K), (N, K or 2K)
        shared = (model.attention.keys(values), values, mask[:, 0]) if model.attention else (m,)
        first, _ = model.bridge.forward(m)  # (N, K)
        super().__init__(model, shared, first[:, None])

    def step(self, ids):
        """Logits (N, W, V) of what follows when each hypothesis goes on with one of ids (N, W)."""
        model = self.model
        x = self.embed(ids)  # (N, W, D)
        if not model.attention:
            x = beside_each(x, *self.source)  # (N, W, D + K)
        rows = x.reshape(-1, 1, x.shape[-1])  # (N W, 1, ...): each a sequence of one step
        before = self.said.reshape(len(rows), -1)  # (N W, K)
        (_, after), _ = model.decoder.forward(rows, before)
        self.said = s = after.reshape(self.said.shape)
        if model.attention:
            c = model.attention.attend(s, *self.source)  # (N, W, 2K)
            s = array_namespace(s).concatenate([s, c], axis=-1)  # (N, W, 3K)
        y, _ = model.combine.forward(s)  # (N, W, D)
        return self.logits(y)
