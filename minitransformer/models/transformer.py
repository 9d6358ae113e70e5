"""The Transformer (figure 1): embeddings with positions, a stack of layers on each side.

``B`` batch, ``S`` source length, ``T`` target length, ``D`` d_model.
"""

from typing import ClassVar

from minitransformer.core.backend import array_namespace
from minitransformer.layers.masks import causal_mask, padding_mask
from minitransformer.layers.positional_encoding import PositionalEncoding
from minitransformer.models.encoder_decoder import EncoderDecoder, tied_embeddings
from minitransformer.models.stacks import Decoder, Encoder
from minitransformer.models.transformer_config import TransformerConfig


class Transformer(EncoderDecoder):
    """The model of the paper, built from a TransformerConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = TransformerConfig
    decoding: ClassVar[str] = "minitransformer.decoding.incremental:IncrementalDecoder"

    def build(self, config, rng):
        self.source_embedding, self.target_embedding, projection = tied_embeddings(config, rng)
        self.positional_encoding = PositionalEncoding(config.max_length, config.d_model)
        self.encoder = Encoder(config, config.num_encoder_layers, rng)
        self.decoder = Decoder(config, config.num_decoder_layers, rng)
        self.output_projection = projection

    def encode(self, source, source_mask, rng=None):
        """The memory (B, S, D) of source ids (B, S)."""
        x, embed_cache = self._embed(self.source_embedding, source, self.positional_encoding, rng)
        memory, encoder_cache = self.encoder.forward(x, source_mask, rng)
        return memory, (embed_cache, encoder_cache)

    def encode_backward(self, dmemory, cache):
        embed_cache, encoder_cache = cache
        dx = self.encoder.backward(dmemory, encoder_cache)
        self._embed_backward(self.source_embedding, dx, self.positional_encoding, embed_cache)

    def decode(self, target, memory, source_mask, rng=None):
        """The decoder's output y (B, T, D) for target ids (B, T), given the source's memory."""
        target_mask = self.target_mask(self.device.asarray(target))
        x, embed_cache = self._embed(self.target_embedding, target, self.positional_encoding, rng)
        y, decoder_cache = self.decoder.forward(x, memory, target_mask, source_mask, rng)
        return y, (embed_cache, decoder_cache)

    def decode_backward(self, dy, cache):
        """Gradient dmemory (B, S, D)."""
        embed_cache, decoder_cache = cache
        dx, dmemory = self.decoder.backward(dy, decoder_cache)
        self._embed_backward(self.target_embedding, dx, self.positional_encoding, embed_cache)
        return dmemory

    def target_mask(self, target):
        """What the decoder's self-attention may look at in target ids (B, T) on the device."""
        return causal_mask(target) & padding_mask(target, self.config.pad_id)  # (B, 1, T, T)

    def cross_attention(self, decode_cache):
        _, (layer_caches, _) = decode_cache
        pairs = zip(self.decoder.layers, layer_caches, strict=True)
        weights = [layer.weights(cache) for layer, cache in pairs]  # (B, H, T, S)
        return array_namespace(weights[0]).stack(weights)  # (layers, B, H, T, S)
