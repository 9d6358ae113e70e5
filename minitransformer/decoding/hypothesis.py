"""What a search returns, how it is scored, how long it may get, and what it may say."""

import math
import sys
from dataclasses import dataclass, field

import numpy as np

from minitransformer.core.backend import array_namespace, to_host
from minitransformer.core.errors import DivergedError, InputError, require_whole
from minitransformer.data.text.vocabulary import BOS, EOS

DIVERGED = (
    "the model's probabilities are NaN; its weights may be damaged or its training have diverged, "
    "and minitransformer.debug(model) tells which layer is the first"
)


@dataclass(frozen=True)
class Hypothesis:
    """One translation Y of a source X.

    With |Y| the number of tokens chosen, the end symbol counted,

        score = log P(Y | X) / ((5 + |Y|) / 6)^α            (Wu et al. 2016, equation 14)

    in natural logarithms and without the coverage penalty of that equation.

    Attributes:
        ids: the tokens, without start and end symbol.
        score: what hypotheses are ranked by.
        log_probability: log P(Y | X), that of the end symbol included if it was chosen.
        finished: whether it was; False where the search ran into its maximum length before.
        attention: if asked for, cross-attention weights (layers, H, |Y|, S) on the host. Row t is
            where the model looked when it chose token t, the end symbol among them.
    """

    ids: list[int]
    score: float
    log_probability: float
    finished: bool
    attention: np.ndarray | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, tokens, log_probability, alpha):
        """From an array of the tokens chosen, the last of which may be the end symbol."""
        finished = bool(tokens[-1] == EOS)
        ids = (tokens[:-1] if finished else tokens).tolist()
        score = log_probability / length_penalty(len(tokens), alpha)
        return cls(ids, float(score), float(log_probability), finished)


def length_penalty(length, alpha):
    """((5 + |Y|) / 6)^α, which makes up for the logarithm that every further token costs.

    With α = 0 it is 1 and short translations win. With α = 1 the score is, but for the 6, the mean
    over the tokens and five more that cost nothing: for long translations nearly the mean per
    token, while of short ones with equal means the shorter still wins.
    """
    return ((5 + length) / 6) ** alpha


def check_alpha(alpha, longest):
    """Raise unless the length penalty with ``alpha`` is a number for all lengths allowed."""
    if not alpha >= 0:
        raise InputError(f"alpha={alpha} must be 0 (no length penalty) or more; 0.6 is usual")
    if not alpha * math.log(length_penalty(longest, 1)) < math.log(sys.float_info.max):
        raise InputError(
            f"alpha={alpha} makes the length penalty of {longest} tokens, the most that the model "
            "takes, larger than any number; 0.6 is usual"
        )


def length_limits(model, source, max_length=None):
    """The most tokens that may be chosen for each sentence, the end symbol counted: (B,).

    Twice the tokens of the source plus 10, or ``max_length`` if that is given, but never more than
    the model's ``config.max_length``.

    Args:
        source: ids (B, S) on the host, each row padded at its end with ``config.pad_id``.

    Raises:
        ValueError: the source is not (B, S), a row of it has no tokens, or max_length < 1.
    """
    if source.ndim != 2:
        raise ValueError(f"source must be (B, S), one row a sentence; its shape is {source.shape}")
    if max_length is not None:
        require_whole("max_length", max_length)
    lengths = (source != model.config.pad_id).sum(axis=1)  # (B,)
    check_lengths(lengths)
    limits = 2 * lengths + 10 if max_length is None else np.full(len(source), max_length)
    return np.minimum(limits, model.config.max_length)


def check_lengths(lengths):
    """Raise unless each sentence has tokens; ``lengths`` (B,) says how many."""
    if not lengths.all():
        raise ValueError(
            f"sentence {lengths.argmin()} of {len(lengths)} has no tokens; even an empty one is "
            f"given as its end symbol, id {EOS}"
        )


def word_scores(logits, pad_id):
    """What ranks the next tokens, and what makes log P of it: log P = scores − log_total.

    Which token is best shows without the subtraction, so only what was chosen needs it.

    Returns:
        scores (..., V), −∞ for padding and start symbol, which are never said; the others, the
        unknown word among them, keep what the model gives them. And log_total (..., 1). Writes over
        ``logits``.
    """
    xp = array_namespace(logits)
    logits -= logits.max(axis=-1, keepdims=True)
    log_total = xp.log(xp.exp(logits).sum(axis=-1, keepdims=True))  # (..., 1)
    for never in (pad_id, BOS):
        logits[..., never] = -xp.inf
    return logits, log_total


def fetch(*arrays):
    """The choices of one step, arrays of one shape, on the host in a single transfer.

    Raises:
        FloatingPointError: one of them has a NaN.
    """
    xp = array_namespace(arrays[0])
    host = to_host(xp.stack([array.astype(float) for array in arrays]))  # ids are exact in float64
    if np.isnan(host).any():
        raise DivergedError(DIVERGED)
    return host
