"""The convolutional translator (Gehring et al. 2017): convolutions where there was recurrence.

    h = GLU(Convolution(x))         in every layer; centred in the encoder, causal in the decoder
    x ← (x + h) √½                  of the encoder; z is its last x
    c = Attention(h + g, z, (z + e) √½)
    x ← (x + (h + c) √½) √½         of the decoder; y = x W + b of its last x

e and g are the embeddings of source and target with learned positions. Every layer of the decoder
looks into the source, with the word just said, g, beside what it has made of it, h. What it finds
are the words themselves, e, beside what the encoder made of them, z. √½ keeps the variance of a sum
of two, and stands here in place of a LayerNorm.

Among what differs from Gehring et al.: attention has the four matrices and the scale of the
Transformer's, with one head, and output and embedding share a matrix as ``tying`` says. There, c is
multiplied by m √(1/m), m the source length, as a mean of m words varies less than a word; gradients
of the encoder are divided by the number of attentions; and weights are normalised.

``B`` batch, ``S`` source length, ``T`` target length, ``D`` d_model.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.backend import array_namespace
from minitransformer.core.errors import require
from minitransformer.core.module import Module
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.convolution import Convolution1d
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.gated_linear_unit import gated_linear_unit, gated_linear_unit_backward
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.linear import Linear
from minitransformer.models.config import layers
from minitransformer.models.encoder_decoder import EncoderDecoder, tied_embeddings
from minitransformer.models.token_config import TranslatorConfig

ROOT_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class ConvolutionalTranslatorConfig(TranslatorConfig):
    """The sizes of a convolutional translator.

    Attributes:
        kernel_width: k, the positions that a convolution sees, an odd number.
        num_encoder_layers, num_decoder_layers: convolutions of each side. An encoder of L layers
            sees L (k − 1) / 2 words to either side, a decoder L (k − 1) back.

    The others are those of every TranslatorConfig; dropout is on embeddings and on what each
    convolution is given.
    """

    kind: ClassVar[str] = "convolution"

    kernel_width: int = 3
    num_encoder_layers: int = layers(6)
    num_decoder_layers: int = layers(6)

    def num_parameters(self):
        width = self.d_model
        convolution = self.kernel_width * width * 2 * width + 2 * width
        attention = 4 * width**2
        return (
            self.num_embedded()
            + 2 * self.max_length * width  # positions
            + self.num_encoder_layers * convolution
            + self.num_decoder_layers * (convolution + attention)
            + (width + 1) * width  # the last linear map
        )

    def __post_init__(self):
        super().__post_init__()
        k = self.kernel_width
        require(k % 2 == 1, f"kernel_width={k!r} has no middle; choose {k - 1} or {k + 1}")


class GatedConvolution(Module):
    """Dropout, a convolution from D features to 2 D, and the gated linear unit back to D."""

    def __init__(self, config, rng, *, causal):
        width = config.d_model
        self.convolution = Convolution1d(width, 2 * width, config.kernel_width, rng, causal=causal)
        # To variance 3 (1 − p) / (k D), for h to have the variance of x: dropout divides by 1 − p,
        # and E[σ(b)²] ≈ ⅓ for b of variance 3. (Their 4, section 3.5, is for half-open gates.)
        self.convolution.weight.data *= math.sqrt(4.5 * (1 - config.dropout))
        self.p = config.dropout

    def forward(self, x, mask=None, rng=None):
        """h (B, T, D) from x (B, T, D) and a mask (B, T), as for :func:`convolution`."""
        x, dropout_cache = dropout(x, self.p, rng)
        x, convolution_cache = self.convolution.forward(x, mask)  # (B, T, 2 D)
        h, gate_cache = gated_linear_unit(x)  # (B, T, D)
        return h, (dropout_cache, convolution_cache, gate_cache)

    def backward(self, dh, cache):
        """Gradient dx (B, T, D)."""
        dropout_cache, convolution_cache, gate_cache = cache
        dx = gated_linear_unit_backward(dh, gate_cache)  # (B, T, 2 D)
        dx = self.convolution.backward(dx, convolution_cache)  # (B, T, D)
        return dropout_backward(dx, dropout_cache)

    def step(self, x, before):
        """:meth:`forward` at inference; arguments as for :meth:`Convolution1d.step`."""
        x, before = self.convolution.step(x, before)  # (..., 2 D)
        h, _ = gated_linear_unit(x)  # (..., D)
        return h, before


class ConvolutionalTranslator(EncoderDecoder):
    """Built from a ConvolutionalTranslatorConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = ConvolutionalTranslatorConfig
    decoding: ClassVar[str] = "minitransformer.decoding.convolutional:ConvolutionalDecoder"

    def build(self, config, rng):
        self.source_embedding, self.target_embedding, projection = tied_embeddings(config, rng)
        self.source_positions = LearnedPositions(config.max_length, config.d_model, rng)
        self.target_positions = LearnedPositions(config.max_length, config.d_model, rng)
        self.encoder = [
            GatedConvolution(config, rng, causal=False) for _ in range(config.num_encoder_layers)
        ]
        decoder_layers = range(config.num_decoder_layers)
        self.decoder = [GatedConvolution(config, rng, causal=True) for _ in decoder_layers]
        self.attention = [MultiHeadAttention(config.d_model, 1, rng) for _ in decoder_layers]
        self.last = Linear(config.d_model, config.d_model, rng)
        self.output_projection = projection

    def encode(self, source, source_mask, rng=None):
        """The memory of source ids (B, S): what to look for, and what is found, each (B, S, D)."""
        e, embed_cache = self._embed(self.source_embedding, source, self.source_positions, rng)
        x, caches = e, []
        for layer in self.encoder:
            h, cache = layer.forward(x, source_mask[:, 0, 0], rng)
            x = (x + h) * ROOT_HALF
            caches.append(cache)
        return (x, (x + e) * ROOT_HALF), (embed_cache, caches)

    def encode_backward(self, dmemory, cache):
        embed_cache, caches = cache
        dkeys, dvalues = dmemory
        de = dvalues * ROOT_HALF
        dx = dkeys + de
        for layer, layer_cache in zip(reversed(self.encoder), reversed(caches), strict=True):
            dx = dx * ROOT_HALF
            dx = dx + layer.backward(dx, layer_cache)
        self._embed_backward(self.source_embedding, dx + de, self.source_positions, embed_cache)

    def decode(self, target, memory, source_mask, rng=None):
        """The decoder's output y (B, T, D) for target ids (B, T), given the source's memory."""
        keys, values = memory
        g, embed_cache = self._embed(self.target_embedding, target, self.target_positions, rng)
        x, caches = g, []
        for layer, attention in zip(self.decoder, self.attention, strict=True):
            h, layer_cache = layer.forward(x, None, rng)
            c, attention_cache = attention.forward(h + g, keys, values, source_mask)
            x = (x + (h + c) * ROOT_HALF) * ROOT_HALF
            caches.append((layer_cache, attention_cache))
        y, last_cache = self.last.forward(x)
        return y, (embed_cache, caches, last_cache)

    def decode_backward(self, dy, cache):
        """Gradients of the memory, two arrays (B, S, D)."""
        embed_cache, caches, last_cache = cache
        dx, dg, dkeys, dvalues = self.last.backward(dy, last_cache), 0, 0, 0
        layers = zip(self.decoder, self.attention, caches, strict=True)
        for layer, attention, (layer_cache, attention_cache) in reversed(list(layers)):
            dx = dx * ROOT_HALF
            dc = dx * ROOT_HALF  # and of h, as far as it is added to c
            dquery, dk, dv = attention.backward(dc, attention_cache)
            dx = dx + layer.backward(dc + dquery, layer_cache)
            dg, dkeys, dvalues = dg + dquery, dkeys + dk, dvalues + dv
        self._embed_backward(self.target_embedding, dx + dg, self.target_positions, embed_cache)
        return dkeys, dvalues

    def cross_attention(self, decode_cache):
        _, caches, _ = decode_cache
        pairs = zip(self.attention, caches, strict=True)
        weights = [attention.weights(cache) for attention, (_, cache) in pairs]  # (B, 1, T, S)
        return array_namespace(weights[0]).stack(weights)  # (layers, B, 1, T, S)
