"""Beam search (section 6.1): the best few prefixes, all of one length, extended together.

    beam ← {the start symbol}    found ← {}
    until beam is empty or its prefixes are as long as allowed:
        best ← the k of {Y and w: Y in beam, w any word} of the highest P(Y, w | X)
        found ← found and those of best that end with the end symbol
        beam ← the others of best

The result is the best of found by score. All sentences X take a step together, and those that are
done leave.

A prefix can still become a translation of at most score

    log P(prefix) / penalty(longest allowed length),

for log P only falls from here and the penalty is largest there. A sentence is done as soon as no
prefix in its beam can reach those already found, so stopping early changes no result.
"""

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.errors import InputError, require_whole
from minitransformer.core.twins import twinned
from minitransformer.data.text.vocabulary import BOS, EOS
from minitransformer.decoding.attention import require_attention, with_attention
from minitransformer.decoding.hypothesis import (
    Hypothesis,
    check_alpha,
    fetch,
    length_limits,
    length_penalty,
    word_scores,
)
from minitransformer.decoding.states import decoder_for

# Where a translation ends in the tree of prefixes: after ``length`` tokens, at place ``slot`` of
# the beam. There is none where the score is -inf.
END = np.dtype(
    [
        ("score", float),
        ("log_probability", float),
        ("finished", bool),
        ("length", int),
        ("slot", int),
    ]
)


@twinned
def beam_search(
    model, source, *, beam_size=4, alpha=0.6, n_best=1, max_length=None, attention=False
):
    """The best translations of each sentence that a beam of ``beam_size`` finds.

    Args:
        model: an EncoderDecoder.
        source: ids (B, S) on the host, each row padded at its end with ``config.pad_id``.
        beam_size: k, the prefixes extended at a time. 1 is greedy search.
        alpha: α ≥ 0 of the score.
        n_best: how many to return for each sentence, at most k.
        max_length: most tokens of a translation, see :func:`length_limits`.
        attention: whether the hypotheses carry their attention weights.

    Returns:
        For each of B sentences its hypotheses, best first: the finished ones by score, then, if
        they are too few, those that ran into the maximum length. A list is shorter than ``n_best``
        only where there are no more sequences.

    Raises:
        ValueError, TypeError, FloatingPointError: as for :func:`greedy`, or an option is out of
            range.
    """
    require_whole("n_best", n_best)
    require_whole("beam_size", beam_size)
    if n_best > beam_size:
        raise InputError(
            f"n_best={n_best} and beam_size={beam_size} must obey 1 <= n_best <= beam_size"
        )
    check_alpha(alpha, model.config.max_length)
    limits = length_limits(model, source, max_length)
    if not len(source):
        return []
    if attention:
        require_attention(model, source)
    xp = model.device.xp
    tokens = np.zeros((limits.max(), len(source), beam_size), dtype=int)  # (T, B, k)
    parents = np.zeros_like(tokens)  # of each token, its prefix's slot one step before
    ends = np.zeros((len(source), n_best), dtype=END)
    ends["score"] = -np.inf
    rows = np.arange(len(source))  # (N,) the sentences that are not done

    decoder = decoder_for(model, source)
    token = model.device.asarray(np.full((len(source), 1), BOS))  # (N, W), W = 1 at first
    total = xp.zeros(token.shape)  # (N, W) log P of each prefix, -inf where there is none
    length = 0
    while len(rows):
        logits = decoder.step(token)
        scores, log_total = word_scores(logits, model.config.pad_id)  # (N, W, V), (N, W, 1)
        token, parent, total = _best_extensions(scores, log_total, total, beam_size)  # (N, new W)
        decoder.select(parent)
        chosen, came_from, log_probability = fetch(token, parent, total)
        tokens[length, rows, : chosen.shape[1]] = chosen
        parents[length, rows, : chosen.shape[1]] = came_from
        length += 1

        at_end, at_limit = chosen == EOS, length == limits[rows]
        ends[rows] = _best_ends(ends[rows], log_probability, at_end, at_limit, length, alpha)
        prospects = np.where(at_end, -np.inf, log_probability).max(axis=1)
        reachable = prospects / length_penalty(limits[rows], alpha)
        going = np.flatnonzero(~at_limit & (reachable > ends["score"][rows, -1]))
        total = xp.where(token == EOS, -xp.inf, total)
        if len(going) < len(rows):
            rows = rows[going]
            going = model.device.asarray(going)
            token, total = token[going], total[going]
            decoder.keep(going)

    found = _trace(ends, tokens, parents, alpha)
    return with_attention(model, source, found) if attention else found


def _best_extensions(scores, log_total, total, beam_size):
    """The ``beam_size`` best of all hypotheses one word longer, best first.

    Returns:
        their last tokens, the slots of their prefixes and their log-probabilities, each (N, new W).
        Writes over ``scores``.
    """
    xp = array_namespace(scores)
    batch, width, vocabulary_size = scores.shape
    count = min(beam_size, vocabulary_size)  # no more of one prefix can be among the best
    values, words = _best_words(scores, count)  # (N, W, count)
    candidates = (total[:, :, None] + (values - log_total)).reshape(batch, width * count)
    best = xp.argsort(-candidates, axis=-1)[:, :beam_size]  # (N, new W)
    token = xp.take_along_axis(words.reshape(batch, width * count), best, axis=1)
    return token, best // count, xp.take_along_axis(candidates, best, axis=1)


def _best_words(scores, count):
    """The ``count`` largest of the scores (N, W, V) and their words, best first: (N, W, count).

    For as few as a beam needs, taking the largest and striking it out is faster than sorting.
    """
    xp = array_namespace(scores)
    batch, width, _ = scores.shape
    everywhere = xp.arange(batch)[:, None], xp.arange(width)
    values, words = [], []
    for _ in range(count):
        word = scores.argmax(axis=-1)  # (N, W)
        values.append(scores[*everywhere, word])
        words.append(word)
        scores[*everywhere, word] = -xp.inf
    return xp.stack(values, axis=-1), xp.stack(words, axis=-1)


def _best_ends(ends, log_probability, at_end, at_limit, length, alpha):
    """The best of the ``ends`` (N, n_best) so far and those reached in this step, in order."""
    reached = np.zeros(at_end.shape, dtype=END)
    reached["log_probability"] = log_probability
    reached["finished"] = at_end & (log_probability > -np.inf)
    reached["length"] = length
    reached["slot"] = np.arange(at_end.shape[1])
    counts = at_end | at_limit[:, None]
    reached["score"] = np.where(counts, log_probability / length_penalty(length, alpha), -np.inf)

    ends = np.concatenate([ends, reached], axis=1)
    order = np.lexsort((-ends["score"], ~ends["finished"]), axis=1)  # finished first, then by score
    return np.take_along_axis(ends, order, axis=1)[:, : len(ends[0]) - at_end.shape[1]]


def _trace(ends, tokens, parents, alpha):
    """The hypotheses that end there, followed back from parent to parent, all at once."""
    sentence = np.arange(len(ends))[:, None]
    slot = ends["slot"]  # (B, n_best)
    said = np.zeros((*ends.shape, len(tokens)), dtype=int)  # (B, n_best, T)
    for t in reversed(range(len(tokens))):
        said[..., t] = tokens[t, sentence, slot]
        slot = np.where(t < ends["length"], parents[t, sentence, slot], slot)
    return [
        [
            Hypothesis.of(path[: end["length"]], end["log_probability"], alpha)
            for end, path in zip(ends_of_one, said_of_one, strict=True)
            if end["score"] > -np.inf
        ]
        for ends_of_one, said_of_one in zip(ends, said, strict=True)
    ]
