"""The sizes and choices that make a Transformer, and the presets of them, Table 3 among these."""

import math
from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.errors import require, require_one_of
from minitransformer.core.settings import one_of, positive, share
from minitransformer.models.config import ModelConfig, layers
from minitransformer.models.token_config import TranslatorConfig

PRESETS = {
    "toy": dict(
        d_model=128, num_heads=4, d_ff=512, num_encoder_layers=2, num_decoder_layers=2, norm="pre"
    ),
    "tiny": dict(
        d_model=256,
        num_heads=4,
        d_ff=1024,
        num_encoder_layers=3,
        num_decoder_layers=3,
        attention_dropout=0.1,
        feed_forward_dropout=0.1,
        norm="pre",
    ),
    "base": dict(),
    "big": dict(d_model=1024, num_heads=16, d_ff=4096, dropout=0.3),
}
NORMS = "post", "pre"


class StackConfig(ModelConfig):
    """What configurations of stacks of the paper's layers share, each of which has these fields.

    Attributes:
        num_heads: attention heads, each d_model / num_heads wide.
        d_ff: inner width of the feed-forward networks.
        dropout: P_drop on embeddings and on what each sublayer returns (section 5.4).
        attention_dropout: on attention weights; the paper has none.
        feed_forward_dropout: after the ReLU; the paper has none.
        norm: ``"post"``, LayerNorm after the sum as in the paper, or ``"pre"``, before the
            sublayer, with one more LayerNorm at the end of each stack.
        epsilon: added to the variance in LayerNorm.
        multiple: of what d_model has to be.
        normalisation, activation, paper_attention, paper_feed_forward: the paper's blocks, where
            a configuration has nothing else to choose.
    """

    multiple: ClassVar[int] = 1
    normalisation: ClassVar[str] = "layer-norm"
    activation: ClassVar[str] = "relu"
    paper_attention: ClassVar[bool] = True
    paper_feed_forward: ClassVar[bool] = True

    def parameters_of_stack(self, num_layers, attentions):
        """How many numbers so many layers train, with one attention each or two."""
        attention, feed_forward, norm = self.parameters_of_blocks()
        layer = attentions * attention + feed_forward + (attentions + 1) * norm
        return num_layers * layer + (norm if self.norm == "pre" else 0)

    def parameters_of_blocks(self):
        """Of an attention, a feed-forward network and a normalisation."""
        width, inner = self.d_model, self.d_ff
        return 4 * width**2, 2 * width * inner + inner + width, 2 * width

    def __post_init__(self):
        super().__post_init__()
        d_model, step = self.d_model, math.lcm(self.multiple, self.num_heads)
        below = d_model - d_model % step
        near = " or ".join(str(d) for d in (below, below + step) if d)
        require(
            d_model % self.num_heads == 0,
            f"d_model={d_model} is not divisible by num_heads={self.num_heads}; choose {near}",
        )
        require(
            d_model % self.multiple == 0,
            f"d_model={d_model} is odd, and positions need a sine and a cosine for each pair; "
            f"choose {near}",
        )


@dataclass(frozen=True)
class TransformerConfig(StackConfig, TranslatorConfig):
    """The sizes and choices that make a Transformer; the defaults are the paper's base model.

    Attributes:
        d_model: width of the residual stream, even.
        num_encoder_layers, num_decoder_layers: layers of each stack, N in the paper.

    The others are those of every StackConfig and TranslatorConfig.
    """

    kind: ClassVar[str] = "transformer"
    paper_layers: ClassVar[dict] = {}
    multiple: ClassVar[int] = 2  # a sine and a cosine

    num_heads: int = 8
    d_ff: int = 2048
    num_encoder_layers: int = layers(6)
    num_decoder_layers: int = layers(6)
    attention_dropout: float = share(0.0)
    feed_forward_dropout: float = share(0.0)
    norm: str = one_of(NORMS, "post")
    epsilon: float = positive(1e-5)

    @classmethod
    def preset(cls, name, vocabulary_size, **overrides):
        """``"toy"``, ``"tiny"``, ``"base"`` or ``"big"`` with a vocabulary shared by both sides.

        ``base`` and ``big`` are the rows of Table 3. With 37,000 shared tokens, ``base`` has,
        for D = 512 and F = 2048:

            attention         4 D²                 = 1,048,576
            feed-forward      2 D F + F + D        = 2,099,712
            LayerNorm         2 D                  =     1,024
            encoder layer     1 attention + 1 feed-forward + 2 LayerNorms = 3,150,336
            decoder layer     2 attention + 1 feed-forward + 3 LayerNorms = 4,199,936
            6 + 6 layers      44,101,632
            shared embedding  37,000 D             = 18,944,000
            together          63,045,632

        Table 3 says 65 million, and not how it counts.

        Args:
            overrides: any fields, to replace those of the preset.
        """
        require_one_of(PRESETS, "preset", name)
        sizes = dict(source_vocabulary_size=vocabulary_size, target_vocabulary_size=vocabulary_size)
        return cls(**(sizes | PRESETS[name] | overrides))

    def num_parameters(self):
        return (
            self.parameters_of_stack(self.num_encoder_layers, attentions=1)
            + self.parameters_of_stack(self.num_decoder_layers, attentions=2)
            + self.num_embedded()
        )
