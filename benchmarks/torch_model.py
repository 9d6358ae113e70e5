"""The same Transformer as its users would write it in PyTorch: the yardstick, not a reference.

It is what a good PyTorch program looks like: ``scaled_dot_product_attention``, one projection for
query, key and value, no masks that are not needed. :func:`from_ours` gives it our weights, so that
both compute the same loss and the same gradients.
"""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.num_heads, self.p = config.num_heads, config.attention_dropout
        self.query_key_value = nn.Linear(config.d_model, 3 * config.d_model, bias=False)
        self.output = nn.Linear(config.d_model, config.d_model, bias=False)

    def forward(self, x, mask=None, is_causal=False):
        query, key, value = self.query_key_value(x).chunk(3, dim=-1)  # (B, T, D) each
        return self.output(attention(self, query, key, value, mask, is_causal))


class CrossAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.num_heads, self.p = config.num_heads, config.attention_dropout
        self.query = nn.Linear(config.d_model, config.d_model, bias=False)
        self.key_value = nn.Linear(config.d_model, 2 * config.d_model, bias=False)
        self.output = nn.Linear(config.d_model, config.d_model, bias=False)

    def forward(self, x, memory, mask):
        key, value = self.key_value(memory).chunk(2, dim=-1)  # (B, S, D) each
        return self.output(attention(self, self.query(x), key, value, mask))


def attention(module, query, key, value, mask=None, is_causal=False):
    """Multi-head attention of (B, T, D) over (B, S, D) in PyTorch's own function."""
    query, key, value = (split_heads(x, module.num_heads) for x in (query, key, value))
    p = module.p if module.training else 0.0
    heads = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=p, is_causal=is_causal
    )  # (B, H, T, K)
    return heads.transpose(1, 2).flatten(2)  # (B, T, D)


def split_heads(x, num_heads):
    """(B, T, D) as (B, H, T, K), a view."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


class FeedForward(nn.Sequential):
    def __init__(self, config):
        super().__init__(
            nn.Linear(config.d_model, config.d_ff),
            nn.ReLU(),
            nn.Dropout(config.feed_forward_dropout),
            nn.Linear(config.d_ff, config.d_model),
        )


class Residual(nn.Module):
    """x + Dropout(f(LayerNorm(x))) in pre-norm, LayerNorm(x + Dropout(f(x))) in post-norm."""

    def __init__(self, config):
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model, eps=config.epsilon)
        self.dropout = nn.Dropout(config.dropout)
        self.pre_norm = config.norm == "pre"

    def forward(self, x, sublayer):
        if self.pre_norm:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention = SelfAttention(config)
        self.self_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x, mask, is_causal=False):
        x = self.self_attention_residual(x, lambda h: self.self_attention(h, mask, is_causal))
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention = SelfAttention(config)
        self.self_attention_residual = Residual(config)
        self.cross_attention = CrossAttention(config)
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x, memory, memory_mask):
        x = self.self_attention_residual(x, lambda h: self.self_attention(h, is_causal=True))
        x = self.cross_attention_residual(x, lambda h: self.cross_attention(h, memory, memory_mask))
        return self.feed_forward_residual(x, self.feed_forward)


class TorchTransformer(nn.Module):
    """The model of a TransformerConfig with three-way tying, or anything with its fields.

    It takes ids, int64 tensors (B, S) and (B, T), padded at the right with ``pad_id``.

    Args:
        config: the sizes and choices.
        dtype: of all parameters.
    """

    def __init__(self, config, dtype=torch.float32):
        super().__init__()
        if config.tying != "three-way":
            raise ValueError(f"tying={config.tying!r}; the benchmarks know 'three-way' only")
        self.config = config
        self.embedding = nn.Embedding(config.target_vocabulary_size, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        self.encoder_norm, self.decoder_norm = final_norm(config), final_norm(config)
        positions = sinusoidal_encoding(config.max_length, config.d_model)
        self.register_buffer("positions", positions, persistent=False)
        self.to(dtype)

    def forward(self, source, target):
        """Logits (B, T, V)."""
        mask = self.source_mask(source)
        return self.decode(target, self.encode(source, mask), mask)

    def source_mask(self, source):
        """(B, 1, 1, S), True where a query may look."""
        return (source != self.config.pad_id)[:, None, None, :]

    def encode(self, source, mask):
        """The memory (B, S, D)."""
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x)

    def decode(self, target, memory, memory_mask):
        """Logits (B, T, V). Padding stands at the right, where no real position looks."""
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory, memory_mask)
        return F.linear(self.decoder_norm(x), self.embedding.weight)

    def embed(self, ids):
        x = self.embedding(ids) * math.sqrt(self.config.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def loss(self, source, target, labels, smoothing):
        logits = self(source, target).flatten(0, 1)  # (B T, V)
        return F.cross_entropy(
            logits, labels.flatten(), ignore_index=self.config.pad_id, label_smoothing=smoothing
        )


def final_norm(config):
    if config.norm == "post":
        return nn.Identity()
    return nn.LayerNorm(config.d_model, eps=config.epsilon)


def sinusoidal_encoding(length, d_model):
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # (length, D)


def from_ours(arrays, config):
    """Our parameters, or their gradients, under the names and in the shapes of the model above.

    Args:
        arrays: NumPy arrays by the paths of ``Transformer.named_parameters``.
        config: the TransformerConfig of both models.

    Returns:
        NumPy arrays by the names of ``TorchTransformer.named_parameters``. ``nn.Linear`` computes
        x Wᵀ, so every weight is transposed.
    """

    def attention(path, name, *ours):
        return {f"{name}.weight": np.concatenate([arrays[f"{path}.w_{x}"].T for x in ours])}

    def norm(path, name):
        return {f"{name}.weight": arrays[f"{path}.gamma"], f"{name}.bias": arrays[f"{path}.beta"]}

    def feed_forward(path, name):
        maps = {f"{name}.0": ("w_1", "b_1"), f"{name}.3": ("w_2", "b_2")}
        named = {}
        for theirs, (weight, bias) in maps.items():
            named[f"{theirs}.weight"] = arrays[f"{path}.{weight}"].T
            named[f"{theirs}.bias"] = arrays[f"{path}.{bias}"]
        return named

    theirs = {"embedding.weight": arrays["source_embedding.weight"]}
    layers = [("encoder", i) for i in range(config.num_encoder_layers)]
    layers += [("decoder", i) for i in range(config.num_decoder_layers)]
    for stack, i in layers:
        path, name = f"{stack}.layers.{i}", f"{stack}.{i}"
        own, cross = "self_attention", "cross_attention"
        theirs |= attention(
            f"{path}.{own}", f"{name}.{own}.query_key_value", "query", "key", "value"
        )
        theirs |= attention(f"{path}.{own}", f"{name}.{own}.output", "output")
        theirs |= norm(f"{path}.{own}_residual.norm", f"{name}.{own}_residual.norm")
        if stack == "decoder":
            theirs |= attention(f"{path}.{cross}", f"{name}.{cross}.query", "query")
            theirs |= attention(f"{path}.{cross}", f"{name}.{cross}.key_value", "key", "value")
            theirs |= attention(f"{path}.{cross}", f"{name}.{cross}.output", "output")
            theirs |= norm(f"{path}.{cross}_residual.norm", f"{name}.{cross}_residual.norm")
        theirs |= feed_forward(f"{path}.feed_forward", f"{name}.feed_forward")
        theirs |= norm(f"{path}.feed_forward_residual.norm", f"{name}.feed_forward_residual.norm")
    if config.norm == "pre":
        theirs |= norm("encoder.norm", "encoder_norm") | norm("decoder.norm", "decoder_norm")
    return theirs


def load_ours(model, arrays):
    """Give a TorchTransformer copies of our parameters, a dict of NumPy arrays by path."""
    theirs = from_ours(arrays, model.config)
    model.load_state_dict({name: torch.tensor(x) for name, x in theirs.items()}, strict=True)
    return model
