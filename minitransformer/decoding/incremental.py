"""The decoder one position at a time, over a cache of keys and values.

Position t looks at the keys and values of positions 0 … t and of the memory. Those do not change
when a token is added, so they are computed once and kept: a step costs one position instead of t.

The hypotheses of a sentence grow as a tree, for a beam drops some and continues others in several
ways. Each node of the tree has its own place in the cache and never moves; which nodes a hypothesis
may look at, its ancestors and itself, is a mask. So its W hypotheses are W queries to the nodes of
their sentence, as they are W queries to its memory, and choosing hypotheses copies no keys.
"""

from minitransformer.core.backend import CPU, array_namespace
from minitransformer.decoding.states import State

BLOCK = 16  # positions that the cache grows by
ENCODED_TOGETHER = 512  # tokens on a CPU; what layers make of more does not stay in its cache


class IncrementalDecoder(State):
    """The encoded source of N sentences and all that their hypotheses have said so far.

    Args:
        model: a Transformer.
        source: ids (N, S), padded with ``config.pad_id``; on the host or the model's device.

    Raises:
        ValueError, TypeError: as for :meth:`EncoderDecoder.forward`.
    """

    def __init__(self, model, source):
        mask = model.source_mask(source)  # (N, 1, 1, S)
        memory = _encode(model, source, mask)  # (N, S, D)
        layers = model.decoder.layers
        memories = [layer.cross_attention.keys_and_values(memory, memory) for layer in layers]
        ancestors = model.device.xp.zeros((len(source), 1, 0), dtype=bool)  # (N, W, nodes)
        super().__init__(model, (memories, mask), ancestors)
        self.nodes = [Growing() for _ in layers]

    def step(self, ids):
        """Logits (N, W, V) of what follows when each hypothesis is continued with one more token.

        Args:
            ids: (N, W) on the model's device, the start symbol at first.

        Raises:
            ValueError: as for :meth:`State.embed`.
        """
        xp = array_namespace(ids)
        width = ids.shape[1]
        own = xp.arange(width)[:, None] == xp.arange(width)  # each new node sees itself
        own = xp.broadcast_to(own, (len(ids), width, width))
        self.said = ancestors = xp.concatenate([self.said, own], axis=-1)

        model, (memories, mask) = self.model, self.source
        x = self.embed(ids, model.positional_encoding)  # (N, W, D)
        for layer, memory, nodes in zip(model.decoder.layers, memories, self.nodes, strict=True):
            x = layer.step(x, memory, nodes, ancestors[:, None], mask)
        if model.decoder.norm:
            x, _ = model.decoder.norm.forward(x)
        return self.logits(x)

    def keep(self, sentences):
        super().keep(sentences)
        for nodes in self.nodes:
            nodes.keep(sentences)


class Growing:
    """Keys and values of nodes, (N, H, nodes, K) each, in storage that grows by blocks.

    The first nodes can be forgotten; the next storage has no room for them.
    """

    def __init__(self):
        self.storage = None  # two of (N, H, capacity, K); the nodes are start … end − 1 of them
        self.start = self.end = 0

    def __len__(self):
        return self.end - self.start

    @property
    def arrays(self):
        return [x[:, :, self.start : self.end] for x in self.storage]

    def append(self, keys, values):
        """Add those of W nodes, (N, H, W, K), and return those of all."""
        width = keys.shape[2]
        if self.storage is None or self.end + width > self.storage[0].shape[2]:
            self._grow(width, (keys, values))
        for x, new in zip(self.storage, (keys, values), strict=True):
            x[:, :, self.end : self.end + width] = new
        self.end += width
        return self.arrays

    def _grow(self, width, like):
        """Make room for BLOCK times ``width`` more nodes, of the shapes of ``like``."""
        length = len(self)
        storage = []
        for x in like:
            batch, num_heads, _, head_width = x.shape
            shape = (batch, num_heads, length + BLOCK * width, head_width)
            storage.append(array_namespace(x).empty(shape, dtype=x.dtype))
        if length:
            for x, before in zip(storage, self.arrays, strict=True):
                x[:, :, :length] = before
        self.storage, self.start, self.end = storage, 0, length

    def forget(self, count):
        """Drop the first ``count`` nodes."""
        self.start += count

    def keep(self, sentences):
        if self.storage:
            self.storage = [x[sentences] for x in self.storage]


def _encode(model, source, mask):
    """The memory (N, S, D) of the source (N, S), worked out for some sentences at a time."""
    together = ENCODED_TOGETHER if model.device == CPU else source.size
    count = max(1, together // source.shape[1])
    parts = [slice(n, n + count) for n in range(0, len(source), count)]
    memories = [model.encode(source[part], mask[part])[0] for part in parts]
    return model.device.xp.concatenate(memories)
