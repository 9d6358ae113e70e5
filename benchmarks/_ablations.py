"""The Transformer with something else in place of a part of it, or nothing: to be measured.

    d_k, d_v         widths of queries and keys, and of values, apart from D / H
    positions        learned ones, or none
    feed_forward     False: the layers only attend
    residual         False: y = Sublayer(LayerNorm(x)), or LayerNorm(Sublayer(x))
    layer_norm       False: nothing is normalised

Where its kind is :func:`known`, it trains and translates as any model of the package.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.module import Module, Parameter
from minitransformer.core.settings import not_negative, one_of
from minitransformer.layers.attention import MultiHeadAttention, multi_head_attention
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.linear import glorot_uniform
from minitransformer.layers.residual import ResidualConnection
from minitransformer.models.registry import KINDS
from minitransformer.models.transformer import Transformer
from minitransformer.models.transformer_config import TransformerConfig

SUBLAYERS = "self_attention", "cross_attention", "feed_forward"


@contextmanager
def known():
    """Inside, the registry of kinds knows this one."""
    KINDS[AblatedConfig.kind] = f"{__name__}:AblatedTransformer"
    try:
        yield
    finally:
        del KINDS[AblatedConfig.kind]


@dataclass(frozen=True)
class AblatedConfig(TransformerConfig):
    """The sizes and choices of a TransformerConfig, and what is other or missing.

    Attributes:
        d_k, d_v: widths of a head's queries and keys, and of its values; 0 is D / H.
        positions: ``"sinusoidal"``, ``"learned"`` or ``"none"``.
        feed_forward, residual, layer_norm: whether there are any.
    """

    kind: ClassVar[str] = "ablated"
    paper_layers: ClassVar[None] = None

    d_k: int = not_negative(0)
    d_v: int = not_negative(0)
    positions: str = one_of(("sinusoidal", "learned", "none"), "sinusoidal")
    feed_forward: bool = True
    residual: bool = True
    layer_norm: bool = True

    @property
    def head_widths(self):
        """(d_k, d_v)."""
        width = self.d_model // self.num_heads
        return self.d_k or width, self.d_v or width

    def parameters_of_blocks(self):
        _, feed_forward, norm = super().parameters_of_blocks()
        attention = 2 * self.d_model * self.num_heads * sum(self.head_widths)
        return attention, self.feed_forward * feed_forward, self.layer_norm * norm

    def num_parameters(self):
        count = super().num_parameters()
        if not self.feed_forward:  # nor is there the norm before or after it
            _, _, norm = self.parameters_of_blocks()
            count -= (self.num_encoder_layers + self.num_decoder_layers) * norm
        learned = self.positions == "learned"
        return count + learned * self.max_length * self.d_model


class AblatedTransformer(Transformer):
    """Built from an AblatedConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = AblatedConfig
    decoding: ClassVar[str] = Transformer.decoding

    def build(self, config, rng):
        super().build(config, rng)
        if config.positions == "learned":
            self.positional_encoding = LearnedPositions(config.max_length, config.d_model, rng)
        if config.positions == "none":
            self.positional_encoding = Nothing()
        for stack in (self.encoder, self.decoder):
            for layer in stack.layers:
                _ablate(layer, config, rng)
            if not config.layer_norm and stack.norm:
                stack.norm = Nothing()


def _ablate(layer, config, rng):
    """Replace what the configuration has otherwise in an EncoderLayer or DecoderLayer."""
    for name in [name for name in SUBLAYERS if hasattr(layer, name)]:
        connection = getattr(layer, f"{name}_residual")
        if name == "feed_forward":
            if not config.feed_forward:
                layer.feed_forward = Nothing()
                layer.feed_forward_residual = PassedBy()
                continue
        else:
            setattr(layer, name, SizedAttention(config, rng))
        if not config.residual:
            connection = Unconnected(config.d_model, norm=config.norm, p=config.dropout)
        if not config.layer_norm:
            connection.norm = Nothing()
        setattr(layer, f"{name}_residual", connection)


class SizedAttention(MultiHeadAttention):
    """Multi-head attention whose heads have widths of their own: W^Q and W^K are (D, H d_k), W^V
    is (D, H d_v), and W^O brings H d_v back to D.
    """

    def __init__(self, config, rng):
        width, (d_k, d_v) = config.d_model, config.head_widths
        self.num_heads, self.p = config.num_heads, config.attention_dropout
        self.w_query = Parameter(glorot_uniform((width, self.num_heads * d_k), rng))
        self.w_key = Parameter(glorot_uniform((width, self.num_heads * d_k), rng))
        self.w_value = Parameter(glorot_uniform((width, self.num_heads * d_v), rng))
        self.w_output = Parameter(glorot_uniform((self.num_heads * d_v, width), rng))

    def forward(self, query, key, value, mask=None, rng=None):
        w = (self.w_query.data, self.w_key.data, self.w_value.data, self.w_output.data)
        # The readable body takes any widths; the faster one of a CPU takes one alone.
        forward = multi_head_attention.__wrapped__
        return forward(query, key, value, *w, self.num_heads, mask, self.p, rng)


class Nothing(Module):
    """Where something stood: y = x."""

    def forward(self, x, rng=None):
        return x, None

    def backward(self, dy, cache=None):
        return dy

    def step(self, x, start):
        return x


class PassedBy(Module):
    """The two steps around a sublayer that is not there."""

    def enter(self, x):
        return x, None

    def leave(self, x, h, rng=None):
        return x, None

    def leave_backward(self, dy, cache):
        return dy, 0

    def enter_backward(self, dh, cache):
        return dh


class Unconnected(ResidualConnection):
    """The two steps around a sublayer of which alone goes on what it returned."""

    def leave(self, x, h, rng=None):
        z, dropout_cache = dropout(h, self.p, rng)
        y, norm_cache = (z, None) if self.pre_norm else self.norm.forward(z)
        return y, (dropout_cache, norm_cache)

    def leave_backward(self, dy, cache):
        dropout_cache, norm_cache = cache
        dz = dy if self.pre_norm else self.norm.backward(dy, norm_cache)
        return 0, dropout_backward(dz, dropout_cache)
