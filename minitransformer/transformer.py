"""The Transformer (section 3, figure 1): encoder, decoder, and the model around them.

``B`` batch, ``S`` source length, ``T`` target length, ``D`` d_model, ``V`` target vocabulary.
Wherever ``rng`` is None nothing is dropped out: that is inference.
"""

import numpy as np

from minitransformer.backend import CPU
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.embedding import Embedding, OutputProjection
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.positional_encoding import PositionalEncoding
from minitransformer.layers.residual import ResidualConnection
from minitransformer.masks import causal_mask, padding_mask
from minitransformer.module import FlatParameters, Module


class EncoderLayer(Module):
    """Self-attention, then the feed-forward network, each within a residual connection."""

    def __init__(self, config, rng):
        self.self_attention = _attention(config, rng)
        self.self_attention_residual = _residual(config)
        self.feed_forward = _feed_forward(config, rng)
        self.feed_forward_residual = _residual(config)

    def forward(self, x, mask=None, rng=None):
        """y (B, S, D) from x (B, S, D) and a mask that broadcasts to (B, H, S, S)."""
        h, enter_1 = self.self_attention_residual.enter(x)
        h, attention = self.self_attention.forward(h, h, h, mask, rng)
        x, leave_1 = self.self_attention_residual.leave(x, h, rng)

        h, enter_2 = self.feed_forward_residual.enter(x)
        h, feed_forward = self.feed_forward.forward(h, rng)
        y, leave_2 = self.feed_forward_residual.leave(x, h, rng)
        return y, (enter_1, attention, leave_1, enter_2, feed_forward, leave_2)

    def backward(self, dy, cache):
        """Gradient dx (B, S, D)."""
        enter_1, attention, leave_1, enter_2, feed_forward, leave_2 = cache
        dx, dh = self.feed_forward_residual.leave_backward(dy, leave_2)
        dh = self.feed_forward.backward(dh, feed_forward)
        dx = dx + self.feed_forward_residual.enter_backward(dh, enter_2)

        dx, dh = self.self_attention_residual.leave_backward(dx, leave_1)
        dquery, dkey, dvalue = self.self_attention.backward(dh, attention)
        dh = dquery + dkey + dvalue
        dx = dx + self.self_attention_residual.enter_backward(dh, enter_1)
        return dx


class DecoderLayer(Module):
    """Masked self-attention, cross-attention to the memory, then the feed-forward network."""

    def __init__(self, config, rng):
        c = config
        self.self_attention = MultiHeadAttention(c.d_model, c.num_heads, rng, p=c.attention_dropout)
        self.self_attention_residual = _residual(c)
        self.cross_attention = MultiHeadAttention(
            c.d_model, c.num_heads, rng, p=c.attention_dropout
        )
        self.cross_attention_residual = _residual(c)
        self.feed_forward = FeedForward(c.d_model, c.d_ff, rng, p=c.feed_forward_dropout)
        self.feed_forward_residual = _residual(c)

    def forward(self, x, memory, mask=None, memory_mask=None, rng=None):
        """y (B, T, D) from x (B, T, D) and the encoder's output, memory (B, S, D).

        The masks broadcast to (B, H, T, T) and (B, H, T, S).
        """
        h, enter_1 = self.self_attention_residual.enter(x)
        h, attention = self.self_attention.forward(h, h, h, mask, rng)
        x, leave_1 = self.self_attention_residual.leave(x, h, rng)

        h, enter_2 = self.cross_attention_residual.enter(x)
        h, cross = self.cross_attention.forward(h, memory, memory, memory_mask, rng)
        x, leave_2 = self.cross_attention_residual.leave(x, h, rng)

        h, enter_3 = self.feed_forward_residual.enter(x)
        h, feed_forward = self.feed_forward.forward(h, rng)
        y, leave_3 = self.feed_forward_residual.leave(x, h, rng)
        return y, (
            (enter_1, attention, leave_1),
            (enter_2, cross, leave_2),
            (enter_3, feed_forward, leave_3),
        )

    def backward(self, dy, cache):
        """Gradients dx (B, T, D) and dmemory (B, S, D)."""
        (
            (enter_1, attention, leave_1),
            (enter_2, cross, leave_2),
            (enter_3, feed_forward, leave_3),
        ) = cache
        dx, dh = self.feed_forward_residual.leave_backward(dy, leave_3)
        dh = self.feed_forward.backward(dh, feed_forward)
        dx = dx + self.feed_forward_residual.enter_backward(dh, enter_3)

        dx, dh = self.cross_attention_residual.leave_backward(dx, leave_2)
        dh, dkey, dvalue = self.cross_attention.backward(dh, cross)
        dmemory = dkey + dvalue
        dx = dx + self.cross_attention_residual.enter_backward(dh, enter_2)

        dx, dh = self.self_attention_residual.leave_backward(dx, leave_1)
        dquery, dkey, dvalue = self.self_attention.backward(dh, attention)
        dh = dquery + dkey + dvalue
        dx = dx + self.self_attention_residual.enter_backward(dh, enter_1)
        return dx, dmemory


def _attention(config, rng):
    return MultiHeadAttention(config.d_model, config.num_heads, rng, p=config.attention_dropout)


def _feed_forward(config, rng):
    return FeedForward(config.d_model, config.d_ff, rng, p=config.feed_forward_dropout)


def _residual(config):
    return ResidualConnection(
        config.d_model, norm=config.norm, p=config.dropout, epsilon=config.epsilon
    )


class Encoder(Module):
    """A stack of encoder layers; in pre-norm with a LayerNorm at its end."""

    def __init__(self, config, rng):
        self.layers = [EncoderLayer(config, rng) for _ in range(config.num_encoder_layers)]
        self.norm = _final_norm(config)

    def forward(self, x, mask=None, rng=None):
        """The memory (B, S, D) from embedded source tokens x (B, S, D)."""
        caches = []
        for layer in self.layers:
            x, cache = layer.forward(x, mask, rng)
            caches.append(cache)
        y, norm_cache = self.norm.forward(x) if self.norm else (x, None)
        return y, (caches, norm_cache)

    def backward(self, dy, cache):
        """Gradient dx (B, S, D)."""
        caches, norm_cache = cache
        dx = self.norm.backward(dy, norm_cache) if self.norm else dy
        for layer, layer_cache in zip(reversed(self.layers), reversed(caches), strict=True):
            dx = layer.backward(dx, layer_cache)
        return dx


class Decoder(Module):
    """A stack of decoder layers that all see the same memory; the end as in the encoder."""

    def __init__(self, config, rng):
        self.layers = [DecoderLayer(config, rng) for _ in range(config.num_decoder_layers)]
        self.norm = _final_norm(config)

    def forward(self, x, memory, mask=None, memory_mask=None, rng=None):
        """y (B, T, D) from embedded target tokens x (B, T, D) and memory (B, S, D)."""
        caches = []
        for layer in self.layers:
            x, cache = layer.forward(x, memory, mask, memory_mask, rng)
            caches.append(cache)
        y, norm_cache = self.norm.forward(x) if self.norm else (x, None)
        return y, (caches, norm_cache)

    def backward(self, dy, cache):
        """Gradients dx (B, T, D) and dmemory (B, S, D), the sum over the layers."""
        caches, norm_cache = cache
        dx = self.norm.backward(dy, norm_cache) if self.norm else dy
        dmemory = 0
        for layer, layer_cache in zip(reversed(self.layers), reversed(caches), strict=True):
            dx, dmemory_of_layer = layer.backward(dx, layer_cache)
            dmemory = dmemory + dmemory_of_layer
        return dx, dmemory


def _final_norm(config):
    return LayerNorm(config.d_model, epsilon=config.epsilon) if config.norm == "pre" else None


class Transformer(Module):
    """The whole model: token ids in, logits of the next target token out.

    Attributes:
        config: the TransformerConfig it was built from.
        device: the Device its arrays are on.
        flat: all parameters and all gradients, one array each (FlatParameters).

    Args:
        config: sizes and choices.
        seed: of the initial weights; the same seed gives the same weights on every device.
        device, dtype: where and in which floating type; :meth:`to` changes both later.
    """

    def __init__(self, config, seed=0, *, device=CPU, dtype=np.float32):
        rng = np.random.default_rng(seed)
        source_size, target_size = config.source_vocabulary_size, config.target_vocabulary_size
        self.config = config
        self.source_embedding = Embedding(source_size, config.d_model, rng)
        self.target_embedding = Embedding(target_size, config.d_model, rng)
        if config.tying == "three-way":
            self.target_embedding.weight = self.source_embedding.weight
        self.positional_encoding = PositionalEncoding(config.max_length, config.d_model)
        self.encoder = Encoder(config, rng)
        self.decoder = Decoder(config, rng)
        tied = config.tying != "none"
        unembedding = self.target_embedding if tied else Embedding(target_size, config.d_model, rng)
        self.output_projection = OutputProjection(unembedding.weight)
        self.to(device, dtype)

    def to(self, device=None, dtype=None):
        super().to(device, dtype)
        self.device = device or self.device
        self.flat = FlatParameters(self)
        return self

    def forward(self, source, target, rng=None):
        """Logits (B, T, V): row t scores the token that follows ``target[:, :t + 1]``.

        Args:
            source: ids (B, S), padded with ``config.pad_id``; on any device.
            target: ids (B, T), what has been said so far, beginning with the start symbol.
            rng: generator on the model's device for dropout, or None at inference.

        Raises:
            ValueError, TypeError: ids out of range or no integers, shapes that do not match, or
                a sequence longer than ``config.max_length``.
        """
        source, target = self.device.asarray(source), self.device.asarray(target)
        if source.ndim != 2 or target.ndim != 2 or len(source) != len(target):
            raise ValueError(
                "source and target must be (B, S) and (B, T) with one batch size B; "
                f"their shapes are {source.shape} and {target.shape}"
            )
        source_mask = padding_mask(source, self.config.pad_id)  # (B, 1, 1, S)
        memory, encode_cache = self.encode(source, source_mask, rng)
        logits, decode_cache = self.decode(target, memory, source_mask, rng)
        return logits, (encode_cache, decode_cache)

    def backward(self, dlogits, cache):
        """Add the gradient of the loss to that of every parameter. The ids have none."""
        encode_cache, decode_cache = cache
        dmemory = self.decode_backward(dlogits, decode_cache)
        self.encode_backward(dmemory, encode_cache)

    def encode(self, source, source_mask, rng=None):
        """The memory (B, S, D) of source ids (B, S)."""
        x, embed_cache = self._embed(self.source_embedding, source, rng)
        memory, encoder_cache = self.encoder.forward(x, source_mask, rng)
        return memory, (embed_cache, encoder_cache)

    def encode_backward(self, dmemory, cache):
        embed_cache, encoder_cache = cache
        dx = self.encoder.backward(dmemory, encoder_cache)
        self._embed_backward(self.source_embedding, dx, embed_cache)

    def decode(self, target, memory, source_mask, rng=None):
        """Logits (B, T, V) of target ids (B, T), given the memory of the source."""
        target_mask = causal_mask(target) & padding_mask(target, self.config.pad_id)  # (B, 1, T, T)
        x, embed_cache = self._embed(self.target_embedding, target, rng)
        y, decoder_cache = self.decoder.forward(x, memory, target_mask, source_mask, rng)
        logits, projection_cache = self.output_projection.forward(y)
        return logits, (embed_cache, decoder_cache, projection_cache)

    def decode_backward(self, dlogits, cache):
        """Gradient dmemory (B, S, D)."""
        embed_cache, decoder_cache, projection_cache = cache
        dy = self.output_projection.backward(dlogits, projection_cache)
        dx, dmemory = self.decoder.backward(dy, decoder_cache)
        self._embed_backward(self.target_embedding, dx, embed_cache)
        return dmemory

    def _embed(self, embedding, ids, rng):
        x, embedding_cache = embedding.forward(ids)  # (B, T, D)
        x, position_cache = self.positional_encoding.forward(x)
        x, dropout_cache = dropout(x, self.config.dropout, rng)
        return x, (embedding_cache, position_cache, dropout_cache)

    def _embed_backward(self, embedding, dx, cache):
        embedding_cache, position_cache, dropout_cache = cache
        dx = dropout_backward(dx, dropout_cache)
        dx = self.positional_encoding.backward(dx, position_cache)
        embedding.backward(dx, embedding_cache)
