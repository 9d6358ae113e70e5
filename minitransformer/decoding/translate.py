"""Many sentences of any length: sorted by length, cut into batches, put back in order."""

import numpy as np

from minitransformer.data.vocabulary import PAD
from minitransformer.decoding.beam import beam_search
from minitransformer.decoding.greedy import greedy


def translate_ids(
    model,
    sources,
    *,
    beam_size=4,
    alpha=0.6,
    n_best=1,
    max_length=None,
    attention=False,
    max_tokens=4096,
):
    """The best translations of each source, in the order of the sources.

    Args:
        model: a Transformer.
        sources: lists of ids, each with its end symbol and without padding.
        beam_size, alpha, n_best, max_length, attention: as for :func:`beam_search`; with a beam of
            1 the search is :func:`greedy`.
        max_tokens: most padded source tokens in a batch, times ``beam_size``. A longer source is a
            batch of its own.

    Returns:
        For each source a list of hypotheses, best first.

    Raises:
        ValueError, TypeError, FloatingPointError: as for :func:`beam_search`.
    """
    options = dict(alpha=alpha, max_length=max_length, attention=attention)
    found = [None] * len(sources)
    longest_first = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    while longest_first:
        longest = len(sources[longest_first[0]])
        count = max(1, max_tokens // max(1, longest * beam_size))
        batch, longest_first = longest_first[:count], longest_first[count:]
        source = np.full((len(batch), longest), PAD)
        for row, i in zip(source, batch, strict=True):
            row[: len(sources[i])] = sources[i]
        if beam_size == n_best == 1:
            hypotheses = [[h] for h in greedy(model, source, **options)]
        else:
            hypotheses = beam_search(model, source, beam_size=beam_size, n_best=n_best, **options)
        for i, best in zip(batch, hypotheses, strict=True):
            found[i] = best
    return found
