"""Stacks of layers (section 3.1, figure 1): the encoder's and the decoder's.

A model that only goes on with a text is an encoder with a causal mask; one that fills gaps is an
encoder. Those may choose other blocks than the paper's, see ``language_model_config.py``.

``B`` batch, ``S`` source length, ``T`` target length, ``D`` d_model.
"""

from minitransformer.core.module import Module
from minitransformer.core.twins import reads_weights, twinned
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.residual import ResidualConnection
from minitransformer.layers.swiglu import SwiGLU
from minitransformer.models.sublayers import (
    NORMALISATIONS,
    ActivatedFeedForward,
    GatedFeedForward,
    SelfAttention,
)


class EncoderLayer(Module):
    """Self-attention, then the feed-forward network, each within a residual connection."""

    def __init__(self, config, rng):
        self.self_attention = _self_attention(config, rng)
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

    def step(self, x, kept, mask=None):
        """:meth:`forward` at inference; arguments as for :meth:`MultiHeadAttention.step`."""
        h, _ = self.self_attention_residual.enter(x)
        h = self.self_attention.step(h, kept, mask)
        x, _ = self.self_attention_residual.leave(x, h)

        h, _ = self.feed_forward_residual.enter(x)
        h, _ = self.feed_forward.forward(h)
        y, _ = self.feed_forward_residual.leave(x, h)
        return y

    @reads_weights
    def weights(self, cache):
        """Where each position looked, in the forward that gave the cache."""
        (_, attention_cache, _), _ = cache
        return self.self_attention.weights(attention_cache)  # (B, H, S, S)


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

    def step(self, x, memory, kept, mask=None, memory_mask=None):
        """:meth:`forward` at inference of positions x (B, T, D) that follow others.

        Args:
            x, kept, mask: as for :meth:`MultiHeadAttention.step`.
            memory: the keys and values that cross-attention made of it, (B, H, S, K) each.
            memory_mask: broadcasts to (B, H, T, S).
        """
        h, _ = self.self_attention_residual.enter(x)
        h = self.self_attention.step(h, kept, mask)
        x, _ = self.self_attention_residual.leave(x, h)

        h, _ = self.cross_attention_residual.enter(x)
        h = self.cross_attention.attend(h, *memory, memory_mask)
        x, _ = self.cross_attention_residual.leave(x, h)

        h, _ = self.feed_forward_residual.enter(x)
        h, _ = self.feed_forward.forward(h)
        y, _ = self.feed_forward_residual.leave(x, h)
        return y

    @reads_weights
    def weights(self, cache):
        """Where the targets looked in the source, in the forward that gave the cache."""
        _, (_, cross_cache, _), _ = cache
        return self.cross_attention.weights(cross_cache)  # (B, H, T, S)


def _self_attention(config, rng):
    return _attention(config, rng) if config.paper_attention else SelfAttention(config, rng)


def _attention(config, rng):
    return MultiHeadAttention(config.d_model, config.num_heads, rng, p=config.attention_dropout)


def _feed_forward(config, rng):
    sizes, p = (config.d_model, config.d_ff, rng), config.feed_forward_dropout
    if config.activation == "swiglu":
        return GatedFeedForward(config, rng) if config.adapted else SwiGLU(*sizes, p=p)
    if config.paper_feed_forward:
        return FeedForward(*sizes, p=p)
    return ActivatedFeedForward(config, rng)


def _residual(config):
    return ResidualConnection(
        config.d_model,
        norm=config.norm,
        p=config.dropout,
        epsilon=config.epsilon,
        normalisation=NORMALISATIONS[config.normalisation],
    )


class Encoder(Module):
    """A stack of encoder layers; in pre-norm with a LayerNorm at its end."""

    def __init__(self, config, num_layers, rng):
        self.layers = [EncoderLayer(config, rng) for _ in range(num_layers)]
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

    def weights(self, cache):
        """Of each layer where the positions looked, a list of (B, H, S, S)."""
        caches, _ = cache
        return [
            layer.weights(of_layer) for layer, of_layer in zip(self.layers, caches, strict=True)
        ]


class Decoder(Module):
    """A stack of decoder layers that all see the same memory; the end as in the encoder."""

    def __init__(self, config, num_layers, rng):
        self.layers = [DecoderLayer(config, rng) for _ in range(num_layers)]
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
    if config.norm == "post":
        return None
    return NORMALISATIONS[config.normalisation](config.d_model, epsilon=config.epsilon)
