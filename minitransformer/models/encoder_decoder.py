"""What all models that translate share: an encoder, a decoder, and the loss of what it says.

    memory = encode(source)    y = decode(target, memory)    logits = y Eᵀ

``B`` batch, ``S`` source length, ``T`` target length, ``D`` d_model, ``V`` target vocabulary.
Wherever ``rng`` is None nothing is dropped out: that is inference.
"""

import numpy as np

from minitransformer.backend import array_namespace, is_array
from minitransformer.layers.embedding import Embedding, OutputProjection, embedding_weight
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.masks import padding_mask
from minitransformer.models.model import Model


class EncoderDecoder(Model):
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
        y, features_cache = self.features(source, target, rng)
        logits, projection_cache = self.output_projection.forward(y)
        return logits, (features_cache, projection_cache)

    def backward(self, dlogits, cache):
        """Add the gradient of the loss to that of every parameter. The ids have none."""
        features_cache, projection_cache = cache
        dy = self.output_projection.backward(dlogits, projection_cache)
        self.features_backward(dy, features_cache)

    def features(self, source, target, rng=None):
        """What the output projection is given, y (B, T, D); arguments as for :meth:`forward`."""
        source, target = _array(source), _array(target)
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

    def loss(self, batch, rng=None, *, smoothing=0.0, kappa=0.0, num_tokens=None):
        """The loss that training lowers, without keeping logits; see :func:`projected_loss`.

        Args:
            batch: a Batch, or whatever has ``source`` and ``target``, ids as for :meth:`forward`,
                and ``labels``, ids (B, T), what the decoder has to say at each position.
            rng: as for :meth:`forward`.
            smoothing, kappa, num_tokens: as for :func:`projected_loss`. With ``kappa`` the batch
                is run twice, for dropout to differ.

        Returns:
            (loss, nll), two scalars on the device, and the cache for :meth:`loss_backward`.
        """
        source, target = batch.source, batch.target
        if kappa:
            source, target = _twice(_array(source)), _twice(_array(target))  # (2 B, S), (2 B, T)
        y, features_cache = self.features(source, target, rng)
        weight = self.output_projection.weight
        losses, loss_cache = projected_loss(
            y, weight.data, batch.labels, smoothing, kappa, self.config.pad_id, num_tokens
        )
        return losses, (features_cache, loss_cache)

    def loss_backward(self, dloss, cache):
        """Add the gradient of the loss to that of every parameter; ``dloss`` is mostly 1."""
        features_cache, loss_cache = cache
        dy, dweight = projected_loss_backward(dloss, loss_cache)
        self.output_projection.weight.grad += dweight
        self.features_backward(dy, features_cache)

    def cross_attention(self, decode_cache):
        """Where ``decode`` looked in the source: weights (layers, B, H, T, S) from its cache.

        Raises:
            ValueError: nowhere, which is what a subclass that has attention replaces.
        """
        raise ValueError(f"a model of kind {self.config.kind!r} has no attention to look into")

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


def _array(ids):
    return ids if is_array(ids) else np.asarray(ids)


def _twice(ids):
    return array_namespace(ids).concatenate([ids, ids])
