"""The decoder on all that has been said, again at every step: slow, and nothing but the model.

:class:`IncrementalDecoder` computes a position once, and for that takes layers apart. Here every
step is the model's ``decode`` as in training: it serves any architecture, and whoever stands in for
a layer is called.
"""

from minitransformer.core.backend import array_namespace


class WholeDecoder:
    """As :class:`IncrementalDecoder`, with the same methods, of any EncoderDecoder."""

    def __init__(self, model, source):
        self.model = model
        self.memory_mask = model.source_mask(source)  # (N, 1, 1, S)
        self.memory, _ = model.encode(source, self.memory_mask)  # arrays (N, ...)
        self.said = None  # (N, W, t)

    def step(self, ids):
        """Logits (N, W, V) of what follows when each hypothesis goes on with one of ids (N, W)."""
        xp = array_namespace(ids)
        last = ids[:, :, None]
        self.said = last if self.said is None else xp.concatenate([self.said, last], axis=-1)
        batch, width, length = self.said.shape
        said = self.said.reshape(batch * width, length)
        memory, mask = _each((self.memory, self.memory_mask), lambda x: x.repeat(width, axis=0))
        y, _ = self.model.decode(said, memory, mask)  # (N W, t, D)
        logits, _ = self.model.output_projection.forward(y[:, -1])
        return logits.reshape(batch, width, -1)

    def select(self, parents):
        """Make hypothesis w of sentence n the one that was ``parents[n, w]``, (N, new W)."""
        xp = array_namespace(parents)
        self.said = xp.take_along_axis(self.said, parents[:, :, None], axis=1)

    def keep(self, sentences):
        """Go on with some sentences only, given by their numbers 0 … N − 1 on the device."""
        kept = self.memory, self.memory_mask, self.said
        self.memory, self.memory_mask, self.said = _each(kept, lambda x: x[sentences])


def _each(memory, change):
    """``change(x)`` for each array x of a memory, however deep in tuples."""
    if isinstance(memory, tuple):
        return tuple(_each(part, change) for part in memory)
    return change(memory)
