"""What all models that translate share: an encoder, a decoder, and the loss of what it says.

    memory = encode(source)    y = decode(target, memory)    logits = y Eᵀ

``B`` batch, ``S`` source length, ``T`` target length, ``D`` d_model, ``V`` target vocabulary.
Wherever ``rng`` is None nothing is dropped out: that is inference.
"""

from minitransformer.core.errors import InputError
from minitransformer.layers.embedding import Embedding, OutputProjection, embedding_weight
from minitransformer.layers.masks import padding_mask
from minitransformer.layers.token_ids import check_token_ids
from minitransformer.models.token_model import TokenModel, as_ids


class EncoderDecoder(TokenModel):
    """Token ids in, logits of the next target token out. An architecture is these four methods:

        encode(source, source_mask, rng=None) -> memory, cache
        encode_backward(dmemory, cache)
        decode(target, memory, source_mask, rng=None) -> y, cache
        decode_backward(dy, cache) -> dmemory

    ``source`` (B, S) and ``target`` (B, T) are ids, on the host or the model's device, and y is
    (B, T, D). The memory is whatever the decoder wants to know of the source: an array, or a tuple
    of arrays, whose first axis is B. Row t of y depends on ``target[:, :t + 1]`` alone, and padding
    at the end of a source changes nothing.

    ``build`` assigns an ``output_projection``, see :func:`tied_embeddings`.
    """

    def forward(self, source, target, rng=None):
        """Logits (B, T, V): row t scores the token that follows ``target[:, :t + 1]``.

        Args:
            source: ids (B, S), padded with ``config.pad_id``; on the host or the model's device.
            target: ids (B, T), what has been said so far, beginning with the start symbol. Ids on
                the host are checked there; for those on a GPU the check waits for it.
            rng: generator on the model's device for dropout, or None at inference.

        Raises:
            ValueError, TypeError: ids out of range or no integers, shapes that do not match, or,
                where positions are numbered, a sequence longer than ``config.max_length``.
        """
        return self.logits(source, target, rng=rng)

    def features(self, source, target, rng=None):
        """What the output projection is given, y (B, T, D); arguments as for :meth:`forward`."""
        source, target = as_ids(source), as_ids(target)
        matching = source.ndim == target.ndim == 2 and len(source) == len(target)
        if not matching or not source.size or not target.size:
            raise ValueError(
                "source and target must be (B, S) and (B, T), with one batch size B and at least "
                f"one token each; their shapes are {source.shape} and {target.shape}"
            )
        source_mask = self.source_mask(source)
        memory, encode_cache = self.encode(source, source_mask, rng)
        y, decode_cache = self.decode(target, memory, source_mask, rng)
        return y, (encode_cache, decode_cache)

    def features_backward(self, dy, cache):
        """Add the gradient of the loss to every parameter that ``features`` uses."""
        encode_cache, decode_cache = cache
        dmemory = self.decode_backward(dy, decode_cache)
        self.encode_backward(dmemory, encode_cache)

    def inputs(self, batch):
        return batch.source, batch.target

    def check(self, batch):
        check_token_ids(batch.source, self.config.source_vocabulary_size)
        for ids in (batch.target, batch.labels):
            check_token_ids(ids, self.config.target_vocabulary_size)

    def cross_attention(self, decode_cache):
        """Where ``decode`` looked in the source: weights (layers, B, H, T, S) from its cache.

        Raises:
            ValueError: nowhere, which is what a subclass that has attention replaces.
        """
        raise InputError(f"a model of kind {self.config.kind!r} has no attention to look into")

    def source_mask(self, source):
        """The padding mask (B, 1, 1, S) of source ids (B, S), on the model's device."""
        return padding_mask(self.device.asarray(source), self.config.pad_id)


def tied_embeddings(config, rng):
    """New embeddings of source and target, and the projection to logits, as ``config.tying`` says.

    ``"three-way"`` is one matrix for all of them (section 3.4), ``"two-way"`` one for target and
    projection, ``"none"`` three.
    """
    sizes = config.source_vocabulary_size, config.target_vocabulary_size
    source = embedding_weight(sizes[0], config.d_model, rng)
    same = config.tying == "three-way"
    target = source if same else embedding_weight(sizes[1], config.d_model, rng)
    tied = config.tying != "none"
    output = target if tied else embedding_weight(sizes[1], config.d_model, rng)
    return Embedding(source), Embedding(target), OutputProjection(output)
