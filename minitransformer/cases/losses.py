"""The losses, on logits, or vectors, of a few sentences."""

from minitransformer.cases.case import LABELS, B, Case, D, T, V, pair
from minitransformer.loss.consistency import consistency, consistency_backward
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward


def _loss(smoothing):
    def forward(logits, targets):
        (loss, _), cache = cross_entropy(logits, targets, smoothing)
        return loss, cache

    return pair(forward, cross_entropy_backward, ("logits", "targets"), (B, T, V), LABELS)


def _projected_loss(kappa, *shape):
    def forward(x, weight, targets):
        (loss, _), cache = projected_loss(x, weight, targets, smoothing=0.1, kappa=kappa)
        return loss, cache

    names = ("x", "weight", "targets")
    return pair(forward, projected_loss_backward, names, shape, (V, D), LABELS)


LOSSES = [
    Case("loss", _loss(0.0)),
    Case("loss, label smoothing", _loss(0.1)),
    Case(
        "consistency",
        pair(consistency, consistency_backward, ("logits", "targets"), (2 * B, T, V), LABELS),
    ),
    Case("projected_loss", _projected_loss(0.0, B, T, D)),
    Case("projected_loss, two passes", _projected_loss(2.0, 2 * B, T, D)),
]
