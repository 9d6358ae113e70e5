"""The sizes and choices that make a Transformer, and the presets of them, Table 3 among these."""

import math
from dataclasses import dataclass
from numbers import Integral, Real

COUNTS = (
    "source_vocabulary_size",
    "target_vocabulary_size",
    "d_model",
    "num_heads",
    "d_ff",
    "num_encoder_layers",
    "num_decoder_layers",
    "max_length",
)
TOO_MANY = 2**31  # of anything that is counted
# More is no model that anybody trains, and a machine would be busy for hours with building it.
MOST = {"num_encoder_layers": 1000, "num_decoder_layers": 1000, "max_length": 2**20}
PROBABILITIES = ("dropout", "attention_dropout", "feed_forward_dropout")

PRESETS = {
    "toy": dict(
        d_model=128,
        num_heads=4,
        d_ff=512,
        num_encoder_layers=2,
        num_decoder_layers=2,
        norm="pre",
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


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes and choices that make a Transformer; the defaults are the paper's base model.

    Attributes:
        source_vocabulary_size, target_vocabulary_size: number of token ids on each side.
        d_model: width of the residual stream, even.
        num_heads: attention heads, each d_model / num_heads wide.
        d_ff: inner width of the feed-forward networks.
        num_encoder_layers, num_decoder_layers: layers of each stack, N in the paper.
        dropout: P_drop on embeddings and on what each sublayer returns (section 5.4).
        attention_dropout: on attention weights; the paper has none.
        feed_forward_dropout: after the ReLU; the paper has none.
        norm: ``"post"``, LayerNorm after the sum as in the paper, or ``"pre"``, before the
            sublayer, with one more LayerNorm at the end of each stack.
        tying: ``"three-way"``, one matrix for both embeddings and the output projection
            (section 3.4); ``"two-way"``, target embedding and projection; or ``"none"``.
        max_length: longest sequence of either side, in tokens.
        pad_id: the id that stands for no token.
        epsilon: added to the variance in LayerNorm.

    Raises:
        ValueError: a field makes no sense; says what to choose.
    """

    source_vocabulary_size: int
    target_vocabulary_size: int
    d_model: int = 512
    num_heads: int = 8
    d_ff: int = 2048
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    dropout: float = 0.1
    attention_dropout: float = 0.0
    feed_forward_dropout: float = 0.0
    norm: str = "post"
    tying: str = "three-way"
    max_length: int = 512
    pad_id: int = 0
    epsilon: float = 1e-5

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
        if name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}; choose one of {', '.join(PRESETS)}")
        sizes = dict(source_vocabulary_size=vocabulary_size, target_vocabulary_size=vocabulary_size)
        return cls(**(sizes | PRESETS[name] | overrides))

    def num_parameters(self):
        """How many numbers such a model trains, known without building it."""
        width, inner = self.d_model, self.d_ff
        attention = 4 * width**2
        feed_forward = 2 * width * inner + inner + width
        layer_norm = 2 * width
        encoder_layer = attention + feed_forward + 2 * layer_norm
        decoder_layer = 2 * attention + feed_forward + 3 * layer_norm
        source, target = self.source_vocabulary_size, self.target_vocabulary_size
        embedded = {"three-way": source, "two-way": source + target, "none": source + 2 * target}
        return (
            self.num_encoder_layers * encoder_layer
            + self.num_decoder_layers * decoder_layer
            + (2 * layer_norm if self.norm == "pre" else 0)
            + embedded[self.tying] * width
        )

    def __post_init__(self):
        for name in COUNTS:
            value = getattr(self, name)
            valid = isinstance(value, Integral) and not isinstance(value, bool)
            valid = valid and 0 < value < TOO_MANY
            _require(valid, f"{name}={value!r} must be a whole number, 1 or more, below {TOO_MANY}")
        for name, most in MOST.items():
            value = getattr(self, name)
            _require(value <= most, f"{name}={value!r} must be {most} at most")
        for name in PROBABILITIES:
            value = getattr(self, name)
            valid = isinstance(value, Real) and not isinstance(value, bool) and 0 <= value < 1
            _require(valid, f"{name}={value!r} must lie in 0 <= {name} < 1")
        step = math.lcm(2, self.num_heads)
        below = self.d_model - self.d_model % step
        choices = " or ".join(str(d) for d in (below, below + step) if d)
        _require(
            self.d_model % self.num_heads == 0,
            f"d_model={self.d_model} is not divisible by num_heads={self.num_heads}; "
            f"choose {choices}",
        )
        _require(
            self.d_model % 2 == 0,
            f"d_model={self.d_model} is odd, and positions need a sine and a cosine for each pair; "
            f"choose {choices}",
        )
        _require(self.norm in ("post", "pre"), f"norm={self.norm!r}; choose 'post' or 'pre'")
        _require(
            self.tying in ("three-way", "two-way", "none"),
            f"tying={self.tying!r}; choose 'three-way', 'two-way' or 'none'",
        )
        _require(
            self.tying != "three-way" or self.source_vocabulary_size == self.target_vocabulary_size,
            "three-way tying needs one vocabulary for both sides, and "
            f"source_vocabulary_size={self.source_vocabulary_size} is not "
            f"target_vocabulary_size={self.target_vocabulary_size}; "
            "share the vocabulary or choose tying='two-way'",
        )
        smaller = min(self.source_vocabulary_size, self.target_vocabulary_size)
        _require(
            isinstance(self.pad_id, Integral) and 0 <= self.pad_id < smaller,
            f"pad_id={self.pad_id!r} is no token id; choose 0 <= pad_id < {smaller}",
        )
        valid = isinstance(self.epsilon, Real) and 0 < self.epsilon < math.inf
        _require(valid, f"epsilon={self.epsilon!r} must be > 0 and finite; 1e-5 is usual")


def _require(condition, message):
    if not condition:
        raise ValueError(message)
