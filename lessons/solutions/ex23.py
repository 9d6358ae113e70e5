"""Solutions of lesson 23, an encoder."""

from collections import Counter, defaultdict

import numpy as np


def accuracy_by_form(words, labels, test_words, test_labels):
    """No context, so no word that is open can be right in more than its most frequent use."""
    of_word, of_all = defaultdict(Counter), Counter(labels)
    for word, label in zip(words, labels, strict=True):
        of_word[word][label] += 1
    said = [(of_word.get(word) or of_all).most_common(1)[0][0] for word in test_words]
    return np.mean([a == b for a, b in zip(said, test_labels, strict=True)])


def whole_words(begins, text, draw, share):
    """Each position takes over what was decided where its word begins.

    Behind the text a symbol would take over the decision on the last word, so it is cut off.
    """
    t = np.arange(begins.shape[1])
    first = np.maximum.accumulate(np.where(begins, t, 0), axis=1)  # (B, T)
    chosen = begins & (draw < share)
    return np.take_along_axis(chosen, first, axis=1) & text


def score_by_blanks(log_probabilities, ids, mask):
    """Row i hides piece i + 1, and its answer stands on a diagonal of the result.

    With all pieces hidden at once, each would be asked without the others. With none hidden, the
    model would copy.
    """
    place = np.arange(1, len(ids) - 1)  # without BOS and EOS
    row = np.arange(len(place))
    rows = np.tile(ids, (len(place), 1))  # (T - 2, T)
    rows[row, place] = mask
    return log_probabilities(rows)[row, place, ids[place]].sum()


def first_row_attention(x, w_query, w_key, w_value):
    """Scores are (B, T), where a whole attention has (B, T, T)."""
    q = x[:, 0] @ w_query  # (B, D)
    k, v = x @ w_key, x @ w_value  # (B, T, D)
    z = np.einsum("bd,btd->bt", q, k) / np.sqrt(x.shape[-1])
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    a = e / e.sum(axis=-1, keepdims=True)  # (B, T)
    return np.einsum("bt,btd->bd", a, v), (x, w_query, w_key, w_value, q, k, v, a)


def first_row_attention_backward(dy, cache):
    """Every position has a gradient, through its key and its value; x₀ a third one, by the query.

    So a label that is read at position 0 trains what all positions are, and a tagger of sentences
    can learn although all its other rows are thrown away.
    """
    x, w_query, w_key, w_value, q, k, v, a = cache
    da = np.einsum("bd,btd->bt", dy, v)
    dv = a[..., None] * dy[:, None]  # (B, T, D)
    dz = a * (da - (a * da).sum(axis=-1, keepdims=True)) / np.sqrt(x.shape[-1])
    dq = np.einsum("bt,btd->bd", dz, k)
    dk = dz[..., None] * q[:, None]  # (B, T, D)
    dx = dk @ w_key.T + dv @ w_value.T
    dx[:, 0] += dq @ w_query.T
    dw_key, dw_value = (np.einsum("bti,btj->ij", x, d) for d in (dk, dv))
    return dx, x[:, 0].T @ dq, dw_key, dw_value
