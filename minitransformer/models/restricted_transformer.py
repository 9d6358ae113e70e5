"""The Transformer with restricted self-attention (section 4): each word sees its neighbours only.

The encoder's words see ``window`` positions to either side, the decoder's as many back; attention
to the source stays whole. N layers see N · window positions. All else is the Transformer.
"""

from dataclasses import dataclass
from typing import ClassVar

from minitransformer.layers.masks import padding_mask
from minitransformer.layers.restricted_attention import RestrictedSelfAttention
from minitransformer.models.transformer import Transformer
from minitransformer.models.transformer_config import TransformerConfig


@dataclass(frozen=True)
class RestrictedTransformerConfig(TransformerConfig):
    """The sizes and choices of a TransformerConfig, and the window.

    Attributes:
        window: r, how many positions a word sees to either side.
    """

    kind: ClassVar[str] = "restricted"
    paper_layers: ClassVar[None] = None  # a learner's layers know no window

    window: int = 4


class RestrictedTransformer(Transformer):
    """Built from a RestrictedTransformerConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = RestrictedTransformerConfig
    decoding: ClassVar[str] = "minitransformer.decoding.restricted:RestrictedDecoder"

    def build(self, config, rng):
        super().build(config, rng)
        for layers, causal in ((self.encoder.layers, False), (self.decoder.layers, True)):
            for layer in layers:
                layer.self_attention = RestrictedSelfAttention(
                    config.d_model,
                    config.num_heads,
                    config.window,
                    rng,
                    causal=causal,
                    p=config.attention_dropout,
                )

    def target_mask(self, target):
        return padding_mask(target, self.config.pad_id)  # (B, 1, 1, T): the window is causal
