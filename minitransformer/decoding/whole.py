"""The decoder on all that has been said, again at every step: slow, and nothing but the model.

:class:`IncrementalDecoder` computes a position once, and for that takes layers apart. Here every
step is :meth:`Transformer.decode` as in training, so that whoever stands in for a layer is called.
"""

from minitransformer.backend import array_namespace
from minitransformer.decoding.incremental import IncrementalDecoder
from minitransformer.twins import stands_in


def decoder_for(model, source):
    """What a search asks for the next token: the cache, unless somebody stands in for the layers.

    Args:
        model: a Transformer.
        source: ids (N, S), padded with ``config.pad_id``; on the host or the model's device.

    Raises:
        ValueError, TypeError: as for :meth:`Transformer.forward`.
    """
    return IncrementalDecoder(model, source) if stands_in() is None else WholeDecoder(model, source)


class WholeDecoder:
    """As :class:`IncrementalDecoder`, with the same methods, and without its cache."""

    def __init__(self, model, source):
        self.model = model
        self.memory_mask = model.source_mask(source)  # (N, 1, 1, S)
        self.memory, _ = model.encode(source, self.memory_mask)  # (N, S, D)
        self.said = None  # (N, W, t)

    def step(self, ids):
        """Logits (N, W, V) of what follows when each hypothesis goes on with one of ids (N, W)."""
        xp = array_namespace(ids)
        last = ids[:, :, None]
        self.said = last if self.said is None else xp.concatenate([self.said, last], axis=-1)
        batch, width, length = self.said.shape
        said = self.said.reshape(batch * width, length)
        memory, mask = (x.repeat(width, axis=0) for x in (self.memory, self.memory_mask))
        y, _ = self.model.decode(said, memory, mask)  # (N W, t, D)
        logits, _ = self.model.output_projection.forward(y[:, -1])
        return logits.reshape(batch, width, -1)

    def select(self, parents):
        """Make hypothesis w of sentence n the one that was ``parents[n, w]``, (N, new W)."""
        xp = array_namespace(parents)
        self.said = xp.take_along_axis(self.said, parents[:, :, None], axis=1)

    def keep(self, sentences):
        """Go on with some sentences only, given by their numbers 0 … N − 1 on the device."""
        self.memory, self.memory_mask = self.memory[sentences], self.memory_mask[sentences]
        self.said = self.said[sentences]
