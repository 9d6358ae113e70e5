"""The convolutional decoder one position at a time: a layer sees k positions, so it keeps k − 1.

Keys and values of the source are made once for each layer's attention. Of what was said, a
hypothesis keeps the last (k − 1) δ inputs of each convolution, δ its dilation, and at first the
zeros that stand before a sequence. So a step costs the same however much was said. Choosing
hypotheses copies those few inputs.
"""

import math

from minitransformer.core.backend import array_namespace
from minitransformer.decoding.incremental import (
    attend,
    keys_and_values,
    output_weight,
    position_row,
)
from minitransformer.layers.convolution import reach
from minitransformer.layers.gated_linear_unit import gated_linear_unit
from minitransformer.layers.linear import linear
from minitransformer.models.convolutional_translator import ROOT_HALF


class ConvolutionalDecoder:
    """As :class:`IncrementalDecoder`, with the same methods, of a ConvolutionalTranslator."""

    def __init__(self, model, source):
        self.model = model
        self.position = 0
        self.memory_mask = model.source_mask(source)  # (N, 1, 1, S)
        (keys, values), _ = model.encode(source, self.memory_mask)  # (N, S, D) each
        self.memories = [keys_and_values(attention, keys, values) for attention in model.attention]
        self.before = [_nothing(layer.convolution, keys) for layer in model.decoder]
        self.output_weight = output_weight(model)  # (D, V)

    def step(self, ids):
        """Logits (N, W, V) of what follows when each hypothesis goes on with one of ids (N, W).

        Raises:
            ValueError: as for :func:`position_row`.
        """
        model = self.model
        weight = model.target_embedding.weight.data
        g = weight[ids] * math.sqrt(weight.shape[1])  # (N, W, D)
        g = g + position_row(model.target_positions.table.data, self.position)
        x = g
        for i, (layer, attention) in enumerate(zip(model.decoder, model.attention, strict=True)):
            h, self.before[i] = _layer_step(layer, x, self.before[i])
            c = attend(attention, h + g, *self.memories[i], self.memory_mask)
            x = (x + (h + c) * ROOT_HALF) * ROOT_HALF
        y, _ = model.last.forward(x)
        logits, _ = linear(y, self.output_weight)
        self.position += 1
        return logits

    def select(self, parents):
        """Make hypothesis w of sentence n the one that was ``parents[n, w]``, (N, new W)."""
        xp = array_namespace(parents)
        sentences = xp.arange(len(parents))[:, None]  # (N, 1)
        self.before = [inputs[sentences, parents] for inputs in self.before]

    def keep(self, sentences):
        """Go on with some sentences only, given by their numbers 0 … N − 1 on the device."""
        self.memory_mask = self.memory_mask[sentences]
        self.memories = [(keys[sentences], values[sentences]) for keys, values in self.memories]
        self.before = [inputs[sentences] for inputs in self.before]


def _nothing(convolution, memory):
    """What a convolution sees before a sequence: zeros (N, 1, (k − 1) δ, D)."""
    batch, _, width = memory.shape
    count, _ = reach(len(convolution.weight.data), convolution.dilation, causal=True)
    return array_namespace(memory).zeros((batch, 1, count, width), dtype=memory.dtype)


def _layer_step(layer, x, before):
    """:meth:`GatedConvolution.forward` of x (N, W, D) behind the inputs (N, W, (k − 1) δ, D).

    Returns:
        h (N, W, D), and the inputs before the next position, as many as these.
    """
    seen = array_namespace(x).concatenate([before, x[:, :, None]], axis=2)
    convolution = layer.convolution
    taps = seen[:, :, :: convolution.dilation].reshape(*x.shape[:2], -1)  # (N, W, k D)
    weight = convolution.weight.data
    weight = weight.reshape(-1, weight.shape[-1])  # (k D, 2 D)
    h, _ = linear(taps, weight, convolution.bias.data)  # (N, W, 2 D)
    h, _ = gated_linear_unit(h)  # (N, W, D)
    return h, seen[:, :, 1:]
