"""Exercise 23, an encoder: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Part, array_of, expect, read_only, y_and_cache
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.pair import call, returned
from minitransformer.layers.softmax import softmax

TRAINING = "die N die A die A der N der N der N dem D er N sie N"
TEST = "die A die A die N der N der A ihn A du N wir N"
PIECES = (" w##ww# ", " wwwww# ", " w#     ", " www#   ")  # w begins a word, # goes on with it
B, T, D = 3, 5, 8
V, MASK, SENTENCE = 9, 4, (2, 6, 5, 8, 5, 3)


def check_accuracy_by_form(accuracy_by_form):
    (words, labels), (test_words, test_labels) = (
        (list(pairs.split()[::2]), list(pairs.split()[1::2])) for pairs in (TRAINING, TEST)
    )
    given = call("accuracy_by_form", accuracy_by_form, words, labels, test_words, test_labels)
    mistakes = {
        "say to each word its own most frequent label, not that of all words": 4 / 8,
        "to a word that training does not have, say the most frequent label of all": 3 / 8,
        "words that training does not have count, too": 3 / 5,
        "count the labels of training, not those that are to be said": 6 / 8,
    }
    number = array_of(given, ())
    hints = (hint for hint, wrong in mistakes.items() if number is not None and number == wrong)
    expect("the share", given, 5 / 8, hint=next(hints, ""))


def check_whole_words(whole_words):
    begins, text, draw, wanted = _words()
    given = call("whole_words", whole_words, *map(read_only, (begins, text, draw)), 0.4)
    kind = getattr(given, "dtype", type(given).__name__)
    if kind != "bool":
        is_ = returned(None) if given is None else kind
        raise CheckError(f"whole_words must return a boolean array; it is {is_}")
    hint = ""
    if given.shape == wanted.shape:
        if (given & ~text).any():
            hint = "where there is no text nothing is chosen"
        elif (given == (begins & (draw < 0.4))).all():
            hint = "of a chosen word all pieces are chosen"
        elif (given == (text & (draw < 0.4))).all():
            hint = "words are chosen, by the number at their first piece"
        elif (given == (np.maximum.accumulate(begins & (draw < 0.4), axis=1) & text)).all():
            hint = "a chosen word ends where the next one begins, chosen or not"
        elif (given == (text & ~wanted)).all():
            hint = "chosen are the words whose number is below the share"
    expect("whole_words", given, wanted, hint=hint)


def _words():
    """begins, text, draw of some rows, and which pieces are chosen at a share of 0.4."""
    rng = np.random.default_rng(23)
    shape = (len(PIECES), len(PIECES[0]))
    begins, text, wanted = (np.zeros(shape, bool) for _ in range(3))
    draw = rng.random(shape)
    for b, row in enumerate(PIECES):
        for t, sign in enumerate(row):
            begins[b, t], text[b, t] = sign == "w", sign != " "
            if sign == "w":
                wanted[b, t] = draw[b, t] < 0.4
            elif sign == "#":
                wanted[b, t] = wanted[b, t - 1]
    return begins, text, draw, wanted


def check_score_by_blanks(score_by_blanks):
    rng = np.random.default_rng(23)
    weight = rng.standard_normal((V, V))
    seen = []

    def log_probabilities(ids):
        """A small model: what it says of a place depends on all ids and on the place."""
        rows = np.asarray(ids)
        if rows.ndim != 2 or rows.shape[1] != len(SENTENCE):
            raise ValueError(f"ids must be (N, {len(SENTENCE)}); their shape is {rows.shape}")
        seen.append(rows.copy())
        x = weight[rows] + np.arange(rows.shape[1])[:, None] * weight[0]  # (N, T, V)
        z = np.tanh(x + x.mean(axis=1, keepdims=True)) * 3
        return np.log(softmax(z)[0])

    def scored(rows, row):
        return log_probabilities(rows)[row, inner, ids[inner]].sum()

    ids = np.array(SENTENCE)
    inner = np.arange(1, len(SENTENCE) - 1)
    one_by_one = np.where(np.arange(len(ids)) == inner[:, None], MASK, ids)  # (T - 2, T)
    wanted = scored(one_by_one, np.arange(len(inner)))
    everything = np.where(np.isin(np.arange(len(ids)), inner), MASK, ids)[None]
    mistakes = {
        "the piece that is asked for must be hidden, or the model has seen it": scored(
            ids[None], 0
        ),
        "hide one piece at a time: all the others are seen": scored(everything, 0),
        "it is the sum, not the mean": wanted / len(inner),
        "ln p is below 0, and so is the score": -wanted,
        "each row is asked at one place, that of its MASK": scored(one_by_one, slice(None)),
        "ask for the piece that was hidden, not for MASK": log_probabilities(one_by_one)[
            np.arange(len(inner)), inner, MASK
        ].sum(),
    }
    seen.clear()
    given = call("score_by_blanks", score_by_blanks, log_probabilities, read_only(ids), MASK)
    if len(seen) == 1 and len(seen[0]) == len(ids):
        hint = "BOS and EOS are not asked for"
    else:
        close = (h for h, x in mistakes.items() if _close(given, x))
        hint = next(close, "row i hides one piece, and the answer is read at the same place")
    expect("the score", given, wanted, hint=hint)
    if len(seen) > 1:
        raise CheckError(f"the model was called {len(seen)} times; one batch will do")


def check_first_row_attention(forward, backward):
    rng = np.random.default_rng(23)
    x = rng.standard_normal((B, T, D))
    weights = rng.standard_normal((3, D, D)) / np.sqrt(D)
    y, _ = y_and_cache("first_row_attention", forward, x, *weights)
    w_query, w_key, w_value = weights
    q, k, v = x @ w_query, x @ w_key, x @ w_value
    whole = {
        scale: softmax(q @ k.swapaxes(-1, -2) * scale)[0] @ v for scale in (D**-0.5, 1.0, 1 / D)
    }  # (B, T, D) each
    hint = "the query is that of position 0, and it looks at all positions"
    if _close(y, whole[1.0][:, 0]) or _close(y, whole[1 / D][:, 0]):
        hint = "the scores are divided by √D"
    elif _close(y, whole[D**-0.5]):
        hint = "only row 0 is needed"
    expect("y", y, whole[D**-0.5][:, 0], hint=hint)
    names = ("x", "w_query", "w_key", "w_value")
    return check_pair(forward, backward, (x, *weights), names=names)


def _close(given, wanted):
    given = array_of(given, np.shape(wanted))
    return given is not None and np.allclose(given, wanted)


PARTS = [
    Part(("accuracy_by_form",), 10, check_accuracy_by_form),
    Part(("whole_words",), 25, check_whole_words),
    Part(("score_by_blanks",), 25, check_score_by_blanks),
    Part(("first_row_attention", "first_row_attention_backward"), 45, check_first_row_attention),
]
