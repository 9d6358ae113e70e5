"""The language model (Radford et al. 2018): half of the Transformer, which goes on with a text.

    x = E[ids] √D + P        y = the stack of x, each position seeing itself and those before it
    logits = y Eᵀ            row t scores the token that follows ids 0 … t

The stack is the encoder's: of a decoder's layer, the attention to a source is left out, and a
causal mask makes of the rest a decoder. Unless its configuration says otherwise, positions P are
learned, as in GPT, and the ReLU of the paper stands where GPT has a GELU.

``B`` batch, ``T`` length, ``D`` d_model, ``V`` vocabulary.
"""

from typing import ClassVar

from minitransformer.layers.embedding import Embedding, OutputProjection, embedding_weight
from minitransformer.layers.first_weights import NoDraws
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.masks import causal_mask, padding_mask, window_mask
from minitransformer.layers.positional_encoding import PositionalEncoding, check_length
from minitransformer.models.adapters import adapt
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.stacks import Encoder
from minitransformer.models.token_model import TokenModel, as_ids


class LanguageModel(TokenModel):
    """Built from a LanguageModelConfig; arguments as for :class:`Model`."""

    Config: ClassVar[type] = LanguageModelConfig
    decoding: ClassVar[str] = "minitransformer.decoding.language_model:LanguageModelDecoder"

    def build(self, config, rng):
        of_adapters = rng
        if config.lora:
            rng = NoDraws()  # what is adapted has been learned
        weight = embedding_weight(config.vocabulary_size, config.d_model, rng)
        self.embedding = Embedding(weight, scaled=config.scaled_embedding)
        self.positions = None  # those of rotary and alibi are the attentions'
        if config.positions == "learned":
            of_words = 1.0 if config.scaled_embedding else config.d_model**-0.5
            size = config.max_length, config.d_model
            self.positions = LearnedPositions(*size, rng, deviation=of_words)
        if config.positions == "sinusoidal":
            self.positions = PositionalEncoding(config.max_length, config.d_model)
        self.stack = Encoder(config, config.num_layers, rng)
        if config.tying == "none":
            weight = embedding_weight(config.vocabulary_size, config.d_model, rng)
        self.output_projection = OutputProjection(weight)
        if config.lora:
            adapt(self, config.lora, of_adapters)

    def forward(self, ids, rng=None):
        """Logits (B, T, V): row t scores the token that follows ``ids[:, :t + 1]``.

        Of a masked language model it scores the token at t.

        Args:
            ids: (B, T), on the host, where they are checked, or on the model's device.
            rng: generator on the model's device for dropout, or None at inference.

        Raises:
            ValueError, TypeError: ids out of range or no integers, not (B, T), or more than
                ``config.max_length`` of them.
        """
        return self.logits(ids, rng=rng)

    def inputs(self, batch):
        return (batch.ids,)

    def features(self, ids, rng=None):
        """What the output projection is given, y (B, T, D); arguments as for :meth:`forward`."""
        ids = as_ids(ids)
        if ids.ndim != 2 or not ids.size:
            raise ValueError(
                f"ids must be (B, T), with at least one token; their shape is {ids.shape}"
            )
        check_length(ids.shape[1], self.config.max_length)  # with positions that no table ends, too
        x, embed_cache = self._embed(self.embedding, ids, self.positions, rng)  # (B, T, D)
        y, stack_cache = self.stack.forward(x, self.mask(self.device.asarray(ids)), rng)
        return y, (embed_cache, stack_cache)

    def features_backward(self, dy, cache):
        """Add the gradient of the loss to every parameter that ``features`` uses."""
        embed_cache, stack_cache = cache
        dx = self.stack.backward(dy, stack_cache)
        self._embed_backward(self.embedding, dx, self.positions, embed_cache)

    def mask(self, ids):
        """What the positions of ids (B, T), on the device, may look at: (B, 1, T, T)."""
        mask = causal_mask(ids) & padding_mask(ids, self.config.pad_id)
        return mask & window_mask(ids, self.config.window) if self.config.window else mask
