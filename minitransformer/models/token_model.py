"""What all models share that say tokens: logits from features, and the loss of what to say.

    y = features(ids)        logits = y Eᵀ

``B`` batch, ``T`` length, ``D`` d_model, ``V`` vocabulary. Wherever ``rng`` is None nothing is
dropped out: that is inference.
"""

import numpy as np

from minitransformer.core.backend import array_namespace, is_array
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.token_ids import check_token_ids
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.models.model import Model


class TokenModel(Model):
    """A Model with an ``output_projection``. A subclass says what there is to project:

        inputs(batch) -> ids                what ``features`` takes of a batch, a tuple
        features(*ids, rng) -> y, cache     what the output projection is given, (B, T, D)
        features_backward(dy, cache)

    ``features_backward`` adds to the gradient of every parameter that ``features`` uses.
    """

    def logits(self, *ids, rng=None):
        """Logits (B, T, V), and the cache for :meth:`backward`."""
        y, features_cache = self.features(*ids, rng)
        logits, projection_cache = self.output_projection.forward(y)
        return logits, (features_cache, projection_cache)

    def backward(self, dlogits, cache):
        """Add the gradient of the loss to that of every parameter. The ids have none."""
        features_cache, projection_cache = cache
        dy = self.output_projection.backward(dlogits, projection_cache)
        self.features_backward(dy, features_cache)

    def _embed(self, embedding, ids, positions, rng):
        """What a stack is given, x (B, T, D), of ids (B, T); ``positions`` is None for none."""
        x, embedding_cache = embedding.forward(ids)  # (B, T, D)
        x, position_cache = positions.forward(x) if positions else (x, None)
        x, dropout_cache = dropout(x, self.config.dropout, rng)
        return x, (embedding_cache, position_cache, dropout_cache)

    def _embed_backward(self, embedding, dx, positions, cache):
        embedding_cache, position_cache, dropout_cache = cache
        dx = dropout_backward(dx, dropout_cache)
        dx = positions.backward(dx, position_cache) if positions else dx
        embedding.backward(dx, embedding_cache)

    def check(self, batch):
        check_token_ids(batch.ids, self.config.vocabulary_size)
        check_token_ids(batch.labels, len(self.output_projection.weight.data))

    def loss(self, batch, rng=None, *, smoothing=0.0, kappa=0.0, num_tokens=None):
        """The loss that training lowers; see :func:`projected_loss`, whose twins keep no logits.

        Args:
            batch: what ``inputs`` asks for, and ``labels``, ids (B, T), what there is to say at
                each position, ``config.pad_id`` where there is nothing.
            rng: generator on the model's device for dropout, or None at inference.
            smoothing, kappa, num_tokens: as for :func:`projected_loss`. With ``kappa`` the batch
                is run twice, for dropout to differ.

        Returns:
            (loss, nll), two scalars on the device, and the cache for :meth:`loss_backward`.
        """
        inputs = self.inputs(batch)
        if kappa:
            inputs = [_twice(ids) for ids in inputs]  # (2 B, ...)
        y, features_cache = self.features(*inputs, rng)
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


def as_ids(ids):
    """Ids as an array, wherever they are; lists become one on the host."""
    return ids if is_array(ids) else np.asarray(ids)


def _twice(ids):
    ids = as_ids(ids)
    return array_namespace(ids).concatenate([ids, ids])
