"""Exercise 23, an encoder: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import expect, expect_boolean, expect_pair, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.layers.softmax import softmax

TRAINING = "die N die A die A der N der N der N dem D er N sie N"
TEST = "die A die A die N der N der A ihn A du N wir N"
PIECES = (" w##ww# ", " wwwww# ", " w#     ", " www#   ")  # w begins a word, # goes on with it
B, T, D = 3, 5, 8
V, MASK, SENTENCE = 9, 4, (2, 6, 5, 8, 5, 3)


@part(10)
def check_accuracy_by_form(accuracy_by_form):
    given = accuracy_by_form(*(words.split()[i::2] for words in (TRAINING, TEST) for i in (0, 1)))
    mistakes = {
        "say to each word its own most frequent label, not that of all words": 4 / 8,
        "to a word that training does not have, say the most frequent label of all": 3 / 8,
        "words that training does not have count, too": 3 / 5,
        "count the labels of training, not those that are to be said": 6 / 8,
    }
    expect("the share", given, 5 / 8, mistakes=mistakes)


@part(25)
def check_whole_words(whole_words):
    begins, text, draw, wanted = _words()
    given = whole_words(begins, text, draw, 0.4)
    expect_boolean("whole_words must return", given)
    chosen = begins & (draw < 0.4)
    if given.shape == wanted.shape and (given & ~text).any():
        expect("whole_words", given, wanted, "where there is no text nothing is chosen")
    mistakes = {
        "of a chosen word all pieces are chosen": chosen,
        "words are chosen, by the number at their first piece": text & (draw < 0.4),
        "a chosen word ends where the next one begins, chosen or not": (
            np.maximum.accumulate(chosen, axis=1) & text
        ),
        "chosen are the words whose number is below the share": text & ~wanted,
    }
    expect("whole_words", given, wanted, mistakes=mistakes)


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


@part(25)
def check_score_by_blanks(score_by_blanks):
    (weight,) = normal(23, (V, V))
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

    def scored(rows, row, words):
        return log_probabilities(rows)[row, inner, words].sum()

    ids = np.array(SENTENCE)
    inner = np.arange(1, len(SENTENCE) - 1)
    words, each = ids[inner], np.arange(len(inner))
    one_by_one = np.where(np.arange(len(ids)) == inner[:, None], MASK, ids)  # (T - 2, T)
    everything = np.where(np.isin(np.arange(len(ids)), inner), MASK, ids)[None]
    wanted = scored(one_by_one, each, words)
    hidden = "the piece that is asked for must be hidden, or the model has seen it"
    at_mask = "each row is asked at one place, that of its MASK"
    mistakes = {
        hidden: scored(ids[None], 0, words),
        "hide one piece at a time: all the others are seen": scored(everything, 0, words),
        "it is the sum, not the mean": wanted / len(inner),
        "ln p is below 0, and so is the score": -wanted,
        at_mask: scored(one_by_one, slice(None), words),
        "ask for the piece that was hidden, not for MASK": scored(one_by_one, each, MASK),
    }
    seen.clear()
    given = score_by_blanks(log_probabilities, ids, MASK)
    hint = "row i hides one piece, and the answer is read at the same place"
    if len(seen) == 1 and len(seen[0]) == len(ids):
        hint, mistakes = "BOS and EOS are not asked for", {}
    expect("the score", given, wanted, hint, mistakes)
    if len(seen) > 1:
        raise CheckError(f"the model was called {len(seen)} times; one batch will do")


@part(45)
def check_first_row_attention(forward, backward):
    x, *weights = normal(23, (B, T, D), *3 * [(D, D)])
    inputs = x, *(w / np.sqrt(D) for w in weights)
    q, k, v = (x @ w for w in inputs[1:])
    expected, undivided, by_width = (
        (softmax(q @ k.swapaxes(-1, -2) * scale)[0] @ v)[:, 0] for scale in (D**-0.5, 1.0, 1 / D)
    )  # (B, D) each
    mistakes = {
        "the scores are divided by √D": undivided,
        "the scores are divided by √D, not by D": by_width,
    }
    hint = "the query is that of position 0, and it looks at all positions"
    return expect_pair(forward, backward, inputs, expected, hint, mistakes)
