"""Greedy search: the most probable next token, again and again.

    Y ← the start symbol
    until Y ends with the end symbol or is as long as allowed:
        Y ← Y and the w of the highest P(w | Y, X)

All sentences X take a step together, and those that are at their end leave.
"""

import numpy as np

from minitransformer.core.twins import twinned
from minitransformer.data.text.vocabulary import BOS, EOS
from minitransformer.decoding.attention import require_attention, with_attention
from minitransformer.decoding.hypothesis import (
    Hypothesis,
    check_alpha,
    fetch,
    length_limits,
    word_scores,
)
from minitransformer.decoding.states import decoder_for


@twinned
def greedy(model, source, *, alpha=0.6, max_length=None, attention=False):
    """The translation of each sentence that takes the most probable token at every step.

    Args:
        model: an EncoderDecoder.
        source: ids (B, S) on the host, each row padded at its end with ``config.pad_id``.
        alpha: α ≥ 0 of the score; it does not change what is found.
        max_length: most tokens of a translation, see :func:`length_limits`.
        attention: whether the hypotheses carry their attention weights.

    Returns:
        B hypotheses.

    Raises:
        ValueError, TypeError: a source has no tokens, ids out of range or no integers, or is longer
            than the model's ``config.max_length``; or ``alpha`` < 0 or so large that a length
            penalty is not finite, or ``max_length`` < 1; or the model has no attention to carry.
        FloatingPointError: the model gives NaN.
    """
    check_alpha(alpha, model.config.max_length)
    limits = length_limits(model, source, max_length)
    if not len(source):
        return []
    if attention:
        require_attention(model, source)
    xp = model.device.xp
    said = np.full((len(source), limits.max()), EOS)  # (B, T)
    lengths = np.zeros(len(source), dtype=int)
    log_probabilities = np.zeros(len(source))
    rows = np.arange(len(source))  # (N,) the sentences that are not at their end

    decoder = decoder_for(model, source)
    token = model.device.asarray(np.full(len(source), BOS))  # (N,)
    while len(rows):
        logits = decoder.step(token[:, None])[:, 0]
        scores, log_total = word_scores(logits, model.config.pad_id)  # (N, V), (N, 1)
        token = scores.argmax(axis=-1)  # (N,)
        score = xp.take_along_axis(scores, token[:, None], axis=-1)  # (N, 1)
        chosen, gain = fetch(token, (score - log_total)[:, 0])
        said[rows, lengths[rows]] = chosen
        lengths[rows] += 1
        log_probabilities[rows] += gain

        going = np.flatnonzero((chosen != EOS) & (lengths[rows] < limits[rows]))
        if len(going) < len(rows):
            rows = rows[going]
            going = model.device.asarray(going)
            token = token[going]
            decoder.keep(going)

    found = [
        Hypothesis.of(tokens[:length], log_probability, alpha)
        for tokens, length, log_probability in zip(said, lengths, log_probabilities, strict=True)
    ]
    if attention:
        found = [h for (h,) in with_attention(model, source, [[h] for h in found])]
    return found
