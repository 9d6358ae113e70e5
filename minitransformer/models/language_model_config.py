"""The sizes and choices that make a language model, the paper's and those that came since 2017.

Each choice is open whatever the others are. The defaults are a decoder of the paper's layers with
learned positions, as GPT began; the presets are models whose weights are published.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from minitransformer.core.errors import require, require_one_of
from minitransformer.core.settings import id_or_none, not_negative, one_of, positive, share
from minitransformer.layers.rotary import PAIRS
from minitransformer.models.config import layers
from minitransformer.models.sublayers import ACTIVATIONS, NORMALISATIONS
from minitransformer.models.token_config import TokenConfig, length
from minitransformer.models.transformer_config import NORMS, StackConfig

POSITIONS = "learned", "sinusoidal", "rotary", "alibi", "none"
BIASES = "feed-forward", "all", "none"
TYING = "two-way", "none"

PRESETS = {
    "gpt2-small": dict(  # Radford et al. 2019; 124,439,808 parameters
        vocabulary_size=50257,
        d_model=768,
        num_heads=12,
        d_ff=3072,
        num_layers=12,
        max_length=1024,
        activation="gelu-by-tanh",
        bias="all",
        scaled_embedding=False,
    ),
    "smollm2-135m": dict(  # Allal et al. 2025; 134,515,008 parameters
        vocabulary_size=49152,
        d_model=576,
        num_heads=9,
        num_groups=3,
        d_ff=1536,
        num_layers=30,
        max_length=8192,
        normalisation="rms-norm",
        positions="rotary",
        rotary_pairs="halves",
        rotary_base=100000.0,
        activation="swiglu",
        bias="none",
        dropout=0.0,
        scaled_embedding=False,
    ),
}


@dataclass(frozen=True)
class LanguageModelConfig(StackConfig, TokenConfig):
    """The sizes and choices that make a language model.

    Attributes:
        vocabulary_size: number of token ids.
        d_model: width of the residual stream.
        num_layers: layers of the stack.
        max_length: the context, the most tokens that are seen at once.
        pad_id: the id that stands for no token; -1 where each stands for one.
        normalisation: ``"layer-norm"``, or ``"rms-norm"``, which takes no mean off.
        positions: ``"learned"`` or ``"sinusoidal"`` vectors that are added to the embeddings;
            ``"rotary"``, queries and keys turned by an angle; ``"alibi"``, scores that fall with
            the distance; or ``"none"``.
        rotary_pairs: which features are turned together, ``"neighbours"`` or ``"halves"``.
        rotary_base: of which the wavelengths of rotary positions are powers; 10000 in its paper.
        activation: of the feed-forward networks, ``"relu"``, ``"gelu"``, ``"gelu-by-tanh"``,
            ``"silu"``, or ``"swiglu"``, a SiLU as a gate, which has a third matrix.
        num_groups: G, how many heads of keys and values the num_heads heads share; 0 is one each.
        window: how many positions before it a word sees, and in both directions where it sees both;
            0 is all of them.
        bias: which linear maps have one: ``"feed-forward"``, as in the paper, ``"all"``, or
            ``"none"``. SwiGLU's have none.
        tying: ``"two-way"``, one matrix for embedding and output projection, or ``"none"``.
        scaled_embedding: whether the embedding is multiplied by √D, as in the paper.
        lora: the rank of adapters, which alone are trained then; 0 is none, and all is trained.

    The others are those of every StackConfig.
    """

    kind: ClassVar[str] = "language-model"
    task: ClassVar[str] = "language modelling"
    paper_layers: ClassVar[dict] = dict(
        normalisation=("layer-norm",),
        positions=("learned", "sinusoidal", "none"),
        activation=("relu",),
        num_groups=(0,),
        bias=("feed-forward",),
        scaled_embedding=(True,),
        lora=(0,),
    )
    begins_with: ClassVar[tuple] = (kind,)
    own_head: ClassVar[tuple] = ()  # the vocabulary comes along

    vocabulary_size: int
    d_model: int = 128
    _: KW_ONLY
    num_heads: int = 4
    d_ff: int = 512
    num_layers: int = layers(4)
    dropout: float = share(0.1)
    attention_dropout: float = share(0.0)
    feed_forward_dropout: float = share(0.0)
    norm: str = one_of(NORMS, "pre")
    max_length: int = length(64)
    epsilon: float = positive(1e-5)
    pad_id: int = id_or_none(0)
    normalisation: str = one_of(tuple(NORMALISATIONS), "layer-norm")
    positions: str = one_of(POSITIONS, "learned")
    rotary_pairs: str = one_of(tuple(PAIRS), "neighbours")
    rotary_base: float = positive(10000.0)
    activation: str = one_of((*ACTIVATIONS, "swiglu"), "relu")
    num_groups: int = not_negative(0)
    window: int = not_negative(0)
    bias: str = one_of(BIASES, "feed-forward")
    tying: str = one_of(TYING, "two-way")
    scaled_embedding: bool = True
    lora: int = not_negative(0)

    @classmethod
    def preset(cls, name, **overrides):
        """``"gpt2-small"`` or ``"smollm2-135m"``.

        Args:
            overrides: any fields, to replace those of the preset.

        Raises:
            ValueError: there is no such preset.
        """
        require_one_of(PRESETS, "preset", name)
        return cls(**PRESETS[name] | overrides)

    @property
    def num_key_groups(self):
        """G, of which there is always one or more."""
        return self.num_groups or self.num_heads

    @property
    def paper_attention(self):
        """Whether attention is as in section 3.2."""
        relative = self.positions in ("rotary", "alibi")
        shared = self.num_key_groups < self.num_heads
        return not (relative or shared or self.bias == "all" or self.lora)

    @property
    def paper_feed_forward(self):
        """Whether feed-forward networks are as in section 3.3."""
        return self.activation == "relu" and self.bias != "none" and not self.lora

    def trains(self):
        return super().trains() + (f" of adapters of rank {self.lora}" if self.adapted else "")

    @property
    def adapted(self):
        return self.lora > 0

    def without_adapters(self):
        return replace(self, lora=0)

    def parameters_of_blocks(self):
        width, inner, biases = self.d_model, self.d_ff, self.bias == "all"
        keys = width // self.num_heads * self.num_key_groups  # G K
        attention = 2 * width * (width + keys) + biases * 2 * (width + keys)
        feed_forward = 2 * width * inner + (self.bias != "none") * (inner + width)
        if self.activation == "swiglu":
            feed_forward = 3 * width * inner
        norm = width if self.normalisation == "rms-norm" else 2 * width
        return attention, feed_forward, norm

    def num_parameters(self):
        if self.lora:
            widths = sum(map(sum, self._maps()))  # of inputs and outputs
            return self.lora * self.num_layers * widths
        matrices = 2 if self.tying == "none" else 1
        rows = matrices * self.vocabulary_size
        rows += self.max_length if self.positions == "learned" else 0
        return rows * self.d_model + self.parameters_of_stack(self.num_layers, attentions=1)

    def _maps(self):
        """(D_in, D_out) of each linear map of a layer."""
        width, inner = self.d_model, self.d_ff
        keys = width // self.num_heads * self.num_key_groups  # G K
        inward = 2 if self.activation == "swiglu" else 1
        of_attention = (width, width), (width, keys), (width, keys), (width, width)
        return *of_attention, *[(width, inner)] * inward, (inner, width)

    def __post_init__(self):
        super().__post_init__()
        heads, groups, width = self.num_heads, self.num_groups, self.d_model // self.num_heads
        shared_by = [g for g in range(1, heads + 1) if heads % g == 0]
        require(
            groups == 0 or heads % groups == 0,
            f"num_heads={heads} is not divisible by num_groups={groups}; choose one of "
            f"{', '.join(map(str, shared_by))}",
        )
        require(
            self.positions != "rotary" or width % 2 == 0,
            f"d_model={self.d_model} with num_heads={heads} makes heads {width} wide, and rotary "
            "positions turn features in pairs; choose an even width of heads",
        )
        require(
            self.positions != "sinusoidal" or self.d_model % 2 == 0,
            f"d_model={self.d_model} is odd, and sinusoidal positions need a sine and a cosine for "
            "each pair",
        )
        most = min((a * b - 1) // (a + b) for a, b in self._maps())
        require(
            self.lora <= most,
            f"lora={self.lora} must be {most} at most: with more, an adapter of the narrowest map "
            "has as many numbers as the map",
        )
