"""The Vision Transformer (Dosovitskiy et al. 2021): a picture as a sentence of patches.

    x = [c; patch_1 W + b; …; patch_N W + b] + P        y = the stack of x
    logits = y_0 W_head + b_head

The stack is the encoder of ``stacks.py``, the very one that reads sentences. Patches are its words,
learned positions P say where each lies, and what the picture is of is read where the class token c
stands, which sees all of them. Of pictures it is told no more than that: convolutions begin with
knowing that neighbours belong together, and that a thing is the same wherever it is.

What differs from Dosovitskiy et al.: the ReLU of the paper stands where theirs has a GELU, the maps
of attention have no biases, and positions begin as large as those of sentences, with deviation 1
and not 0.02, so that they tell from the first step on where a patch lies. Theirs has
dropout behind every dense layer but those of queries, keys and values, so behind the first of a
feed-forward network, too: there ours has one only if ``feed_forward_dropout`` says so. And their
head has a hidden layer in pre-training, where ours is one linear map always.

``B`` batch, ``Y`` rows, ``X`` columns, ``C`` channels, ``N`` patches, ``D`` d_model, ``H`` heads.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from minitransformer.core.backend import array_namespace
from minitransformer.core.errors import InputError
from minitransformer.core.settings import one_of, positive, share
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.linear import Linear
from minitransformer.layers.patches import ClassToken, PatchEmbedding
from minitransformer.models.config import layers
from minitransformer.models.picture_classifier import PictureClassifier, PictureConfig
from minitransformer.models.stacks import Encoder
from minitransformer.models.transformer_config import NORMS, StackConfig

LARGEST_SAID = 1000  # of the sizes of a patch that an error names


@dataclass(frozen=True)
class VisionTransformerConfig(StackConfig, PictureConfig):
    """The sizes and choices that make a Vision Transformer.

    Attributes:
        patch_size: height and width of a patch, in pixels.
        d_model: width of the residual stream.
        num_layers: layers of the stack.

    The others are those of every StackConfig and PictureConfig.
    """

    kind: ClassVar[str] = "vision-transformer"
    begins_with: ClassVar[tuple] = (kind,)
    paper_layers: ClassVar[dict] = {}

    _: KW_ONLY
    patch_size: int = 4
    d_model: int = 96
    num_heads: int = 4
    d_ff: int = 192
    num_layers: int = layers(5)
    dropout: float = share(0.1)
    attention_dropout: float = share(0.0)
    feed_forward_dropout: float = share(0.0)
    norm: str = one_of(NORMS, "pre")
    epsilon: float = positive(1e-5)

    @property
    def num_patches(self):
        """N."""
        return (self.height // self.patch_size) * (self.width // self.patch_size)

    def num_parameters(self):
        d = self.d_model
        embedded = (self.patch_size**2 * self.channels + 1) * d
        positions = (1 + self.num_patches) * d
        stack = self.parameters_of_stack(self.num_layers, attentions=1)
        return embedded + d + positions + stack + (d + 1) * self.num_classes

    def __post_init__(self):
        super().__post_init__()
        sides = math.gcd(self.height, self.width)  # which a patch's must divide
        if sides % self.patch_size:
            fits = [p for p in range(1, 1 + min(sides, LARGEST_SAID)) if sides % p == 0]
            raise InputError(
                f"pictures of {self.height} × {self.width} cannot be cut into patches of "
                f"patch_size={self.patch_size}; choose one of {', '.join(map(str, fits))}"
            )


class VisionTransformer(PictureClassifier):
    """Built from a VisionTransformerConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = VisionTransformerConfig

    def build(self, config, rng):
        d = config.d_model
        self.embedding = PatchEmbedding(config.patch_size, config.channels, d, rng)
        self.class_token = ClassToken(d, rng)
        self.positions = LearnedPositions(1 + config.num_patches, d, rng)
        self.stack = Encoder(config, config.num_layers, rng)
        self.head = Linear(d, config.num_classes, rng)

    def features(self, pictures, rng=None):
        """What the stack makes of the class token, (B, D)."""
        x, embedding_cache = self.embedding.forward(pictures)  # (B, N, D)
        x, token_cache = self.class_token.forward(x)  # (B, 1 + N, D)
        x, positions_cache = self.positions.forward(x)
        x, dropout_cache = dropout(x, self.config.dropout, rng)
        y, stack_cache = self.stack.forward(x, None, rng)
        caches = embedding_cache, token_cache, positions_cache, dropout_cache, stack_cache
        return y[:, 0], (y.shape, caches)  # (B, D)

    def features_backward(self, dy, cache):
        y_shape, caches = cache
        embedding_cache, token_cache, positions_cache, dropout_cache, stack_cache = caches
        of_all = array_namespace(dy).zeros(y_shape, dtype=dy.dtype)  # (B, 1 + N, D)
        of_all[:, 0] = dy
        dx = self.stack.backward(of_all, stack_cache)
        dx = dropout_backward(dx, dropout_cache)
        dx = self.positions.backward(dx, positions_cache)
        dx = self.class_token.backward(dx, token_cache)  # (B, N, D)
        return self.embedding.backward(dx, embedding_cache)  # (B, Y, X, C)

    def attention(self, cache):
        """Where class token and patches looked, (layers, B, H, 1 + N, 1 + N).

        The class token comes first, and the patches follow from left to right and from top to
        bottom.

        Args:
            cache: that of :meth:`logits`.
        """
        (_, (*_, stack_cache)), _ = cache
        weights = self.stack.weights(stack_cache)
        return array_namespace(weights[0]).stack(weights)
