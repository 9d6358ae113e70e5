"""Many sentences of any length: sorted by length, cut into batches, put back in order."""

from bisect import bisect_left

import numpy as np

from minitransformer.core.errors import require_whole
from minitransformer.core.workers import ONE_WORKER
from minitransformer.decoding.beam import beam_search
from minitransformer.decoding.greedy import greedy
from minitransformer.decoding.hypothesis import check_lengths

# Each of several workers has at least so many batches, which do not all take the same time; but no
# batch is made smaller than so many padded tokens for that, as a step has its fixed costs.
BATCHES_OF_A_WORKER = 2
SMALLEST_BATCH = 750


def translate_ids(
    model,
    sources,
    *,
    beam_size=4,
    alpha=0.6,
    n_best=1,
    max_length=None,
    attention=False,
    max_tokens=6000,
    workers=ONE_WORKER,
):
    """The best translations of each source, in the order of the sources.

    How they are cut into batches, and so ``max_tokens`` and ``workers``, changes no more than the
    rounding of the scores.

    Args:
        model: an EncoderDecoder.
        sources: lists of ids, each with its end symbol and without padding.
        beam_size, alpha, n_best, max_length, attention: as for :func:`beam_search`; with a beam of
            1 the search is :func:`greedy`.
        max_tokens: most padded source tokens in a batch, times ``beam_size``. A longer source is a
            batch of its own.
        workers: Workers that share the batches.

    Returns:
        For each source a list of hypotheses, best first.

    Raises:
        ValueError, TypeError, FloatingPointError: as for :func:`beam_search`.
    """
    require_whole("beam_size", beam_size)
    check_lengths(np.array([len(ids) for ids in sources]))
    pad_id = model.config.pad_id
    options = dict(alpha=alpha, max_length=max_length, attention=attention)

    def search(batch):
        longest = len(sources[batch[0]])
        source = np.array([[*sources[i]] + [pad_id] * (longest - len(sources[i])) for i in batch])
        with model.device.as_current():  # in whatever thread this is
            if beam_size == n_best == 1:
                return [[h] for h in greedy(model, source, **options)]
            return beam_search(model, source, beam_size=beam_size, n_best=n_best, **options)

    smallest, largest = (size // beam_size for size in (SMALLEST_BATCH, max_tokens))
    if workers.count > 1:
        largest = _even_size(sources, smallest, largest, workers.count)
    batches = _batches(sources, largest)
    found = [None] * len(sources)
    for batch, hypotheses in zip(batches, workers.map(search, batches), strict=True):
        for i, best in zip(batch, hypotheses, strict=True):
            found[i] = best
    return found


def _even_size(sources, smallest, largest, num_workers):
    """The padded tokens of a batch with which all workers have as many batches, where that can be.

    Their batches are as few as ``largest`` allows, but BATCHES_OF_A_WORKER unless those would be
    smaller than ``smallest``; and of one size, the smallest that makes no more of them.
    """
    sizes = range(min(smallest, largest), largest)
    most, fewest = (len(_batches(sources, size)) for size in (sizes.start, largest))
    rounds = max(-(-fewest // num_workers), min(BATCHES_OF_A_WORKER, most // num_workers))
    return sizes.start + bisect_left(
        sizes, True, key=lambda size: len(_batches(sources, size)) <= rounds * num_workers
    )


def _batches(sources, max_tokens):
    """Lists of the numbers of sources of like length; the longest come first, in all of them."""
    longest_first = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    batches = []
    while longest_first:
        count = max(1, max_tokens // len(sources[longest_first[0]]))
        batches.append(longest_first[:count])
        longest_first = longest_first[count:]
    return batches
