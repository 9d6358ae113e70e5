"""A model as a newcomer would add one: it knows the words of a source, and not their order."""

from dataclasses import dataclass
from typing import ClassVar

from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.linear import Linear
from minitransformer.models.encoder_decoder import EncoderDecoder, tied_embeddings
from minitransformer.models.token_config import TranslatorConfig


@dataclass(frozen=True)
class BagOfWordsConfig(TranslatorConfig):
    """The sizes of a bag of words.

    Attributes:
        num_maps: linear maps, one after the other, in the decoder.
    """

    kind: ClassVar[str] = "bag-of-words"

    d_model: int = 12
    num_maps: int = 1

    def num_parameters(self):
        return self.num_embedded() + self.num_maps * (self.d_model**2 + self.d_model)


class BagOfWords(EncoderDecoder):
    """The memory is the mean of all words and the first of them, two arrays (B, D)."""

    Config: ClassVar[type] = BagOfWordsConfig

    def build(self, config, rng):
        self.source_embedding, self.target_embedding, projection = tied_embeddings(config, rng)
        self.maps = [Linear(config.d_model, config.d_model, rng) for _ in range(config.num_maps)]
        self.output_projection = projection

    def encode(self, source, source_mask, rng=None):
        x, embedding_cache = self.source_embedding.forward(source)  # (B, S, D)
        words = source_mask[:, 0, 0, :, None].astype(x.dtype)  # (B, S, 1)
        share = words / words.sum(axis=1, keepdims=True)
        mean = (x * share).sum(axis=1)  # (B, D)
        return (mean, x[:, 0]), (embedding_cache, share)

    def encode_backward(self, dmemory, cache):
        dmean, dfirst = dmemory
        embedding_cache, share = cache
        dx = dmean[:, None] * share  # (B, S, D)
        dx[:, 0] += dfirst
        self.source_embedding.backward(dx, embedding_cache)

    def decode(self, target, memory, source_mask, rng=None):
        mean, first = memory
        y, embedding_cache = self.target_embedding.forward(target)  # (B, T, D)
        y = y + (mean + first)[:, None]
        caches = []
        for linear in self.maps:
            y, cache = linear.forward(y)
            caches.append(cache)
        y, dropout_cache = dropout(y, self.config.dropout, rng)
        return y, (embedding_cache, caches, dropout_cache)

    def decode_backward(self, dy, cache):
        embedding_cache, caches, dropout_cache = cache
        dy = dropout_backward(dy, dropout_cache)
        for linear, linear_cache in zip(reversed(self.maps), reversed(caches), strict=True):
            dy = linear.backward(dy, linear_cache)
        dboth = dy.sum(axis=1)  # (B, D)
        self.target_embedding.backward(dy, embedding_cache)
        return dboth, dboth
