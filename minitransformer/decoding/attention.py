"""Where the decoder looks in the source: cross-attention weights, for those who ask."""

from dataclasses import replace

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.core.twins import standing_in
from minitransformer.data.text.vocabulary import BOS, EOS


def cross_attention(model, source, target):
    """Cross-attention weights (layers, B, H, T, S), on the host, of one forward pass.

    Args:
        model: an EncoderDecoder.
        source, target: ids as for :meth:`EncoderDecoder.forward`. Row t of the weights is where the
            model looks to choose the token that follows ``target[:, :t + 1]``.

    The references compute them from the model's parameters, whoever stands in for them.

    Raises:
        ValueError: the model has no attention.
    """
    with standing_in(None):  # the caches of the references are the ones to look into
        _, (_, decode_cache) = model.features(source, target)
    return to_host(model.cross_attention(decode_cache))


def require_attention(model, source):
    """Look into the model for the first word of one sentence, so that no search is made in vain.

    Raises:
        ValueError: as for :func:`cross_attention`.
    """
    cross_attention(model, source[:1], np.array([[BOS]]))


def with_attention(model, source, found):
    """The hypotheses found for each row of ``source`` (B, S), now with their attention.

    One more pass over what was found, all positions at once: keeping the weights of everything that
    was ever in a beam would burden every search.
    """
    pairs = [(ids, h) for ids, hypotheses in zip(source, found, strict=True) for h in hypotheses]
    pad_id = model.config.pad_id
    said = [h.ids + [EOS] * h.finished for _, h in pairs]
    target = np.full((len(said), max(map(len, said))), pad_id)
    target[:, 0] = BOS
    for row, tokens in zip(target, said, strict=True):
        row[1 : len(tokens)] = tokens[:-1]
    weights = cross_attention(model, np.array([ids for ids, _ in pairs]), target)
    attended = (
        replace(h, attention=weights[:, i, :, : len(said[i]), : (ids != pad_id).sum()].copy())
        for i, (ids, h) in enumerate(pairs)
    )
    return [[next(attended) for _ in hypotheses] for hypotheses in found]
