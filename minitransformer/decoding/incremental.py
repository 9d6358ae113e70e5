"""The decoder one position at a time, over a cache of keys and values.

Position t looks at the keys and values of positions 0 … t and of the memory. Those do not change
when a token is added, so they are computed once and kept: a step costs one position instead of t.

The hypotheses of a sentence grow as a tree, for a beam drops some and continues others in several
ways. Each node of the tree has its own place in the cache and never moves; which nodes a hypothesis
may look at, its ancestors and itself, is a mask. So its W hypotheses are W queries to the nodes of
their sentence, as they are W queries to its memory, and choosing hypotheses copies no keys.
"""

import math

from minitransformer.core.backend import CPU, array_namespace
from minitransformer.layers.attention import (
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from minitransformer.layers.linear import linear

BLOCK = 16  # positions that the cache grows by
ENCODED_TOGETHER = 512  # tokens on a CPU; what layers make of more does not stay in its cache


class IncrementalDecoder:
    """The encoded source of N sentences and all that their hypotheses have said so far.

    Args:
        model: a Transformer.
        source: ids (N, S), padded with ``config.pad_id``; on the host or the model's device.

    Raises:
        ValueError, TypeError: as for :meth:`EncoderDecoder.forward`.
    """

    def __init__(self, model, source):
        xp = model.device.xp
        self.model = model
        self.position = 0
        self.memory_mask = model.source_mask(source)  # (N, 1, 1, S)
        memory = _encode(model, source, self.memory_mask)  # (N, S, D)
        layers = model.decoder.layers
        self.memories = [keys_and_values(layer.cross_attention, memory, memory) for layer in layers]
        self.nodes = [(Growing(), Growing()) for _ in layers]
        self.output_weight = output_weight(model)  # (D, V)
        self.ancestors = xp.zeros((len(source), 1, 0), dtype=bool)  # (N, W, nodes)

    def step(self, ids):
        """Logits (N, W, V) of what follows when each hypothesis is continued with one more token.

        Args:
            ids: (N, W) on the model's device, the start symbol at first. They are not checked,
                which would wait for the device.

        Raises:
            ValueError: as for :func:`position_row`.
        """
        xp = array_namespace(ids)
        width = ids.shape[1]
        own = xp.arange(width)[:, None] == xp.arange(width)  # each new node sees itself
        own = xp.broadcast_to(own, (len(ids), width, width))
        self.ancestors = xp.concatenate([self.ancestors, own], axis=-1)

        weight = self.model.target_embedding.weight.data
        x = weight[ids] * math.sqrt(weight.shape[1])  # (N, W, D)
        x = x + position_row(self.model.positional_encoding.table, self.position)
        for layer, nodes, memory in zip(
            self.model.decoder.layers, self.nodes, self.memories, strict=True
        ):
            x = self._layer_step(layer, x, nodes, memory)
        if self.model.decoder.norm:
            x, _ = self.model.decoder.norm.forward(x)
        logits, _ = linear(x, self.output_weight)
        self.position += 1
        return logits

    def _layer_step(self, layer, x, nodes, memory):
        """:meth:`DecoderLayer.forward` with keys and values from the cache."""
        h, _ = layer.self_attention_residual.enter(x)
        for kept, new in zip(nodes, keys_and_values(layer.self_attention, h, h), strict=True):
            kept.append(new)
        keys, values = (kept.array for kept in nodes)  # (N, H, nodes, K)
        h = attend(layer.self_attention, h, keys, values, self.ancestors[:, None])
        x, _ = layer.self_attention_residual.leave(x, h)

        h, _ = layer.cross_attention_residual.enter(x)
        h = attend(layer.cross_attention, h, *memory, self.memory_mask)
        x, _ = layer.cross_attention_residual.leave(x, h)

        h, _ = layer.feed_forward_residual.enter(x)
        h, _ = layer.feed_forward.forward(h)
        x, _ = layer.feed_forward_residual.leave(x, h)
        return x

    def select(self, parents):
        """Make hypothesis w of sentence n the one that was ``parents[n, w]``, (N, new W)."""
        xp = array_namespace(parents)
        self.ancestors = xp.take_along_axis(self.ancestors, parents[:, :, None], axis=1)

    def keep(self, sentences):
        """Go on with some sentences only, given by their numbers 0 … N − 1 on the device."""
        self.memory_mask = self.memory_mask[sentences]
        self.memories = [(keys[sentences], values[sentences]) for keys, values in self.memories]
        self.ancestors = self.ancestors[sentences]
        for keys, values in self.nodes:
            keys.keep(sentences)
            values.keep(sentences)


class Growing:
    """An array (N, H, nodes, K) that nodes are appended to, in storage that grows by blocks.

    The first nodes can be forgotten; the next storage has no room for them.
    """

    def __init__(self):
        self.storage = None  # (N, H, capacity, K); the nodes are start … end − 1 of it
        self.start = self.end = 0

    @property
    def array(self):
        return self.storage[:, :, self.start : self.end]

    def append(self, x):
        """Add W nodes, (N, H, W, K)."""
        batch, num_heads, width, head_width = x.shape
        if self.storage is None or self.end + width > self.storage.shape[2]:
            length = self.end - self.start
            shape = (batch, num_heads, length + BLOCK * width, head_width)
            storage = array_namespace(x).empty(shape, dtype=x.dtype)
            if length:
                storage[:, :, :length] = self.array
            self.storage, self.start, self.end = storage, 0, length
        self.storage[:, :, self.end : self.end + width] = x
        self.end += width

    def forget(self, count):
        """Drop the first ``count`` nodes."""
        self.start += count

    def keep(self, sentences):
        self.storage = self.storage[sentences]


def _encode(model, source, mask):
    """The memory (N, S, D) of the source (N, S), worked out for some sentences at a time."""
    together = ENCODED_TOGETHER if model.device == CPU else source.size
    count = max(1, together // source.shape[1])
    parts = [slice(n, n + count) for n in range(0, len(source), count)]
    memories = [model.encode(source[part], mask[part])[0] for part in parts]
    return model.device.xp.concatenate(memories)


def output_weight(model):
    """The matrix (D, V) that makes logits, as a copy.

    A step has few rows, and for those the BLAS is slow at reading a matrix across its rows.
    """
    return model.output_projection.weight.data.T.copy()


def position_row(table, position):
    """The row of a table (max_length, D) that is added to the words at a position 0, 1, …

    Raises:
        ValueError: there is none.
    """
    if position >= len(table):
        raise ValueError(
            f"a sequence of {position + 1} tokens is longer than the {len(table)} the model "
            "allows; stop earlier or build the model with a larger max_length"
        )
    return table[position]  # (D,)


def keys_and_values(attention, key, value):
    """What (N, S, D) each offers to the queries of an attention: two arrays (N, H, S, K)."""
    key, _ = linear(key, attention.w_key.data)
    value, _ = linear(value, attention.w_value.data)
    return split_heads(key, attention.num_heads), split_heads(value, attention.num_heads)


def attend(attention, h, keys, values, mask):
    """:func:`multi_head_attention` of queries h (N, W, D) to keys and values made before."""
    query, _ = linear(h, attention.w_query.data)
    query = split_heads(query, attention.num_heads)  # (N, H, W, K)
    heads, _ = scaled_dot_product_attention(query, keys, values, mask)
    y, _ = linear(merge_heads(heads), attention.w_output.data)
    return y
