"""A learner's greedy and beam search in the places of the package's.

The learner's ask a function for the probabilities of the next token, and know of no model. It is
asked for whole prefixes, of all sentences of a batch (greedy) or of the hypotheses of one (beam).
"""

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.core.twins import Twin
from minitransformer.data.text.vocabulary import BOS, EOS
from minitransformer.decoding.attention import with_attention
from minitransformer.decoding.hypothesis import Hypothesis, check_alpha, length_limits, word_scores
from minitransformer.gradcheck import CheckError


def greedy_twin(search):
    """The Twin of ``greedy`` that calls a learner's."""

    def stand_in(model, source, *, alpha=0.6, max_length=None, attention=False):
        check_alpha(alpha, model.config.max_length)
        limits = length_limits(model, source, max_length)
        if not len(source):
            return []
        log_probabilities = _next_of(model, source)
        start = np.full((len(source), 1), BOS)
        said = _ids("greedy", search(log_probabilities, start, int(limits.max())), ndim=2)
        if len(said) != len(source):
            raise CheckError(
                f"greedy must return ids (N, T) for N = {len(source)} sentences; the shape of what "
                f"it returned is {said.shape}"
            )
        gains = _gains(model, source, start, said)  # (N, T)
        found = []
        for tokens, gain, limit in zip(said, gains, limits, strict=True):
            length = min(int(limit), _length(tokens))
            found.append(Hypothesis.of(tokens[:length], gain[:length].sum(), alpha))
        if attention:
            found = [h for (h,) in with_attention(model, source, [[h] for h in found])]
        return found

    return Twin(stand_in)


def beam_search_twin(search):
    """The Twin of ``beam_search`` that calls a learner's, for one sentence after the other."""

    def stand_in(
        model, source, *, beam_size=4, alpha=0.6, n_best=1, max_length=None, attention=False
    ):
        check_alpha(alpha, model.config.max_length)
        limits = length_limits(model, source, max_length)
        start = np.full((1, 1), BOS)
        found = []
        for sentence, limit in zip(source, limits, strict=True):
            log_probabilities = _next_of(model, sentence[None])
            best = _pairs(search(log_probabilities, start, int(limit), beam_size, alpha))
            found.append([Hypothesis.of(*pair, alpha) for pair in best[:n_best]])
        return with_attention(model, source, found) if attention and len(source) else found

    return Twin(stand_in)


def _next_of(model, source):
    """What a search is given: from ids (N, t), begun by BOS, to log P (N, V) of what follows."""
    mask = model.source_mask(source)
    memory, _ = model.encode(source, mask)  # (N or 1, S, D)

    def log_probabilities(said):
        said = np.asarray(said)
        if said.ndim != 2 or not len(said) or len(said) % len(memory):
            raise CheckError(
                f"log_probabilities was given ids of shape {said.shape} for {len(memory)} "
                "sentences; give (N, t), all N together, those that have ended as well"
            )
        count = len(said) // len(memory)  # the hypotheses of one sentence, or 1
        y, _ = model.decode(said, *(x.repeat(count, axis=0) for x in (memory, mask)))
        logits, _ = model.output_projection.forward(y[:, -1])
        scores, log_total = word_scores(logits, model.config.pad_id)
        return to_host(scores - log_total)  # (N, V)

    return log_probabilities


def _gains(model, source, start, said):
    """log P (N, T) of each of the ids said, (N, T)."""
    logits, _ = model.forward(source, np.concatenate([start, said[:, :-1]], axis=1))  # (N, T, V)
    scores, log_total = word_scores(logits, model.config.pad_id)
    log_p = to_host(scores - log_total)
    return np.take_along_axis(log_p, said[:, :, None], axis=-1)[..., 0]


def _ids(name, ids, ndim):
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu" or ids.ndim != ndim or not ids.size:
        raise CheckError(
            f"{name} must return ids, an array of {ndim} axes with a token or more for each "
            f"sentence; it has {ids.dtype} of shape {ids.shape}"
        )
    return ids


def _pairs(best):
    """What a beam search returned, as pairs of an array and a number."""
    try:
        pairs = [(_ids("beam_search", ids, ndim=1), float(log_p)) for ids, log_p in best]
    except (TypeError, ValueError):
        pairs = []
    if not pairs:
        raise CheckError("beam_search must return a list of pairs (ids, log P), best first")
    return pairs


def _length(tokens):
    """How many of the tokens count: up to the first end symbol."""
    ends = np.flatnonzero(tokens == EOS)
    return int(ends[0]) + 1 if len(ends) else len(tokens)
