"""The Transformer (section 3, figure 1): encoder, decoder, and the model around them.

``B`` batch, ``S`` source length, ``T`` target length, ``D`` d_model, ``V`` target vocabulary.
Wherever ``rng`` is None nothing is dropped out: that is inference.
"""

import copy

import numpy as np

from minitransformer.backend import CPU, array_namespace, is_array, select_device
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.embedding import Embedding, OutputProjection, embedding_weight
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.positional_encoding import PositionalEncoding
from minitransformer.layers.residual import ResidualConnection
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.masks import causal_mask, padding_mask
from minitransformer.module import FlatParameters, Module
from minitransformer.twins import twinned


class EncoderLayer(Module):
    """Self-attention, then the feed-forward network, each within a residual connection."""

    def __init__(self, config, rng):
        self.self_attention = _attention(config, rng)
        self.self_attention_residual = _residual(config)
        self.feed_forward = _feed_forward(config, rng)
        self.feed_forward_residual = _residual(config)

    @twinned
    def forward(self, x, mask=None, rng=None):
        """y (B, S, D) from x (B, S, D) and a mask that broadcasts to (B, H, S, S)."""
        h, enter_cache = self.self_attention_residual.enter(x)
        h, attention_cache = self.self_attention.forward(h, h, h, mask, rng)
        x, leave_cache = self.self_attention_residual.leave(x, h, rng)
        attention_caches = enter_cache, attention_cache, leave_cache

        h, enter_cache = self.feed_forward_residual.enter(x)
        h, feed_forward_cache = self.feed_forward.forward(h, rng)
        y, leave_cache = self.feed_forward_residual.leave(x, h, rng)
        feed_forward_caches = enter_cache, feed_forward_cache, leave_cache
        return y, (attention_caches, feed_forward_caches)

    @twinned
    def backward(self, dy, cache):
        """Gradient dx (B, S, D)."""
        attention_caches, feed_forward_caches = cache

        enter_cache, feed_forward_cache, leave_cache = feed_forward_caches
        dx, dh = self.feed_forward_residual.leave_backward(dy, leave_cache)
        dh = self.feed_forward.backward(dh, feed_forward_cache)
        dx = dx + self.feed_forward_residual.enter_backward(dh, enter_cache)

        enter_cache, attention_cache, leave_cache = attention_caches
        dx, dh = self.self_attention_residual.leave_backward(dx, leave_cache)
        dquery, dkey, dvalue = self.self_attention.backward(dh, attention_cache)
        dh = dquery + dkey + dvalue
        dx = dx + self.self_attention_residual.enter_backward(dh, enter_cache)
        return dx


class DecoderLayer(Module):
    """Masked self-attention, cross-attention to the memory, then the feed-forward network."""

    def __init__(self, config, rng):
        self.self_attention = _attention(config, rng)
        self.self_attention_residual = _residual(config)
        self.cross_attention = _attention(config, rng)
        self.cross_attention_residual = _residual(config)
        self.feed_forward = _feed_forward(config, rng)
        self.feed_forward_residual = _residual(config)

    @twinned
    def forward(self, x, memory, mask=None, memory_mask=None, rng=None):
        """y (B, T, D) from x (B, T, D) and the encoder's output, memory (B, S, D).

        The masks broadcast to (B, H, T, T) and (B, H, T, S).
        """
        h, enter_cache = self.self_attention_residual.enter(x)
        h, attention_cache = self.self_attention.forward(h, h, h, mask, rng)
        x, leave_cache = self.self_attention_residual.leave(x, h, rng)
        attention_caches = enter_cache, attention_cache, leave_cache

        h, enter_cache = self.cross_attention_residual.enter(x)
        h, cross_cache = self.cross_attention.forward(h, memory, memory, memory_mask, rng)
        x, leave_cache = self.cross_attention_residual.leave(x, h, rng)
        cross_caches = enter_cache, cross_cache, leave_cache

        h, enter_cache = self.feed_forward_residual.enter(x)
        h, feed_forward_cache = self.feed_forward.forward(h, rng)
        y, leave_cache = self.feed_forward_residual.leave(x, h, rng)
        feed_forward_caches = enter_cache, feed_forward_cache, leave_cache
        return y, (attention_caches, cross_caches, feed_forward_caches)

    @twinned
    def backward(self, dy, cache):
        """Gradients dx (B, T, D) and dmemory (B, S, D)."""
        attention_caches, cross_caches, feed_forward_caches = cache

        enter_cache, feed_forward_cache, leave_cache = feed_forward_caches
        dx, dh = self.feed_forward_residual.leave_backward(dy, leave_cache)
        dh = self.feed_forward.backward(dh, feed_forward_cache)
        dx = dx + self.feed_forward_residual.enter_backward(dh, enter_cache)

        enter_cache, cross_cache, leave_cache = cross_caches
        dx, dh = self.cross_attention_residual.leave_backward(dx, leave_cache)
        dh, dkey, dvalue = self.cross_attention.backward(dh, cross_cache)
        dmemory = dkey + dvalue
        dx = dx + self.cross_attention_residual.enter_backward(dh, enter_cache)

        enter_cache, attention_cache, leave_cache = attention_caches
        dx, dh = self.self_attention_residual.leave_backward(dx, leave_cache)
        dquery, dkey, dvalue = self.self_attention.backward(dh, attention_cache)
        dh = dquery + dkey + dvalue
        dx = dx + self.self_attention_residual.enter_backward(dh, enter_cache)
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
        device, dtype: a Device or its name, and the floating type; :meth:`to` changes both later.
    """

    def __init__(self, config, seed=0, *, device=CPU, dtype=np.float32):
        rng = np.random.default_rng(seed)
        source_size, target_size = config.source_vocabulary_size, config.target_vocabulary_size
        self.config = config
        source = embedding_weight(source_size, config.d_model, rng)
        same = config.tying == "three-way"
        target = source if same else embedding_weight(target_size, config.d_model, rng)
        tied = config.tying != "none"
        output = target if tied else embedding_weight(target_size, config.d_model, rng)
        self.source_embedding = Embedding(source)
        self.target_embedding = Embedding(target)
        self.positional_encoding = PositionalEncoding(config.max_length, config.d_model)
        self.encoder = Encoder(config, rng)
        self.decoder = Decoder(config, rng)
        self.output_projection = OutputProjection(output)
        self.flat = FlatParameters(self)
        self.to(device, dtype)

    def to(self, device=None, dtype=None):
        """As :meth:`Module.to`. ``flat`` stays the same object, with new arrays in it."""
        self.device = self.device if device is None else select_device(device)
        return super().to(self.device, dtype)

    def replica(self):
        """A model of the same parameter array, with a gradient array of its own.

        Replicas run forward and backward side by side, each on its shard of a batch; the sum of
        their gradients is that of the batch. It is for training as long as neither is moved.
        """
        replica = copy.deepcopy(self)
        replica.flat.share_data(self.flat)
        replica.zero_grad()
        return replica

    def __deepcopy__(self, memo):
        # Copied one by one, views are no longer views of one array: gather them anew.
        copied = memo[id(self)] = object.__new__(type(self))
        for name, value in self.__getstate__().items():
            if name != "flat":
                setattr(copied, name, copy.deepcopy(value, memo))
        copied.flat = FlatParameters(copied)
        return copied

    def forward(self, source, target, rng=None):
        """Logits (B, T, V): row t scores the token that follows ``target[:, :t + 1]``.

        Args:
            source: ids (B, S), padded with ``config.pad_id``; on the host or the model's device.
            target: ids (B, T), what has been said so far, beginning with the start symbol. Ids on
                the host are checked there; for those on a GPU the check waits for it.
            rng: generator on the model's device for dropout, or None at inference.

        Raises:
            ValueError, TypeError: ids out of range or no integers, shapes that do not match, or
                a sequence longer than ``config.max_length``.
        """
        y, features_cache = self.features(source, target, rng)
        logits, projection_cache = self.output_projection.forward(y)
        return logits, (features_cache, projection_cache)

    def backward(self, dlogits, cache):
        """Add the gradient of the loss to that of every parameter. The ids have none."""
        features_cache, projection_cache = cache
        dy = self.output_projection.backward(dlogits, projection_cache)
        self.features_backward(dy, features_cache)

    def features(self, source, target, rng=None):
        """What the output projection is given, y (B, T, D); arguments as for :meth:`forward`."""
        source, target = (x if is_array(x) else np.asarray(x) for x in (source, target))
        matching = source.ndim == target.ndim == 2 and len(source) == len(target)
        if not matching or not source.size or not target.size:
            raise ValueError(
                "source and target must be (B, S) and (B, T), with one batch size B and at least "
                f"one token each; their shapes are {source.shape} and {target.shape}"
            )
        source_mask = self.source_mask(source)
        memory, encode_cache = self.encode(source, source_mask, rng)
        y, decode_cache = self.decode(target, memory, source_mask, rng)
        return y, (encode_cache, decode_cache)

    def features_backward(self, dy, cache):
        """Add the gradient of the loss to every parameter that ``features`` uses."""
        encode_cache, decode_cache = cache
        dmemory = self.decode_backward(dy, decode_cache)
        self.encode_backward(dmemory, encode_cache)

    def loss(self, source, target, labels, rng=None, *, smoothing=0.0, kappa=0.0, num_tokens=None):
        """The loss that training lowers, without keeping logits; see :func:`projected_loss`.

        Args:
            source, target, rng: as for :meth:`forward`.
            labels: ids (B, T), what the decoder has to say at each position.
            smoothing, kappa, num_tokens: as for :func:`projected_loss`. With ``kappa`` the batch
                is run twice, for dropout to differ.

        Returns:
            (loss, nll), two scalars on the device, and the cache for :meth:`loss_backward`.
        """
        if kappa:
            source, target = (x if is_array(x) else np.asarray(x) for x in (source, target))
            source, target = (
                array_namespace(ids).concatenate([ids, ids]) for ids in (source, target)
            )
        y, features_cache = self.features(source, target, rng)
        weight = self.output_projection.weight
        losses, loss_cache = projected_loss(
            y, weight.data, labels, smoothing, kappa, self.config.pad_id, num_tokens
        )
        return losses, (features_cache, loss_cache)

    def loss_backward(self, dloss, cache):
        """Add the gradient of the loss to that of every parameter; ``dloss`` is mostly 1."""
        features_cache, loss_cache = cache
        dy, dweight = projected_loss_backward(dloss, loss_cache)
        self.output_projection.weight.grad += dweight
        self.features_backward(dy, features_cache)

    def source_mask(self, source):
        """The padding mask (B, 1, 1, S) of source ids (B, S), on the model's device."""
        return padding_mask(self.device.asarray(source), self.config.pad_id)

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
        """The decoder's output y (B, T, D) for target ids (B, T), given the source's memory."""
        here = self.device.asarray(target)
        target_mask = causal_mask(here) & padding_mask(here, self.config.pad_id)  # (B, 1, T, T)
        x, embed_cache = self._embed(self.target_embedding, target, rng)
        y, decoder_cache = self.decoder.forward(x, memory, target_mask, source_mask, rng)
        return y, (embed_cache, decoder_cache)

    def decode_backward(self, dy, cache):
        """Gradient dmemory (B, S, D)."""
        embed_cache, decoder_cache = cache
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
