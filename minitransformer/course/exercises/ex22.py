"""Exercise 22, a language model: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import array_of, expect, likely, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import returned
from minitransformer.layers.softmax import softmax

H, K = 2, 5
PIECES = (3, 1, 1, 4, 2)  # lengths, of 11 positions
TEXTS = np.array([[4, 7, 5, 4, 7, 7, 4], [9, 9, 9, 9, 8, 2, 9]])


@part(10)
def check_bits_per_character(bits_per_character):
    rng = np.random.default_rng(22)
    for pieces in (["the ", "dog", " is", " here", "."], list("dogs")):
        logs = -rng.uniform(0.1, 4, len(pieces))
        given = bits_per_character(logs, list(pieces))
        bits = -logs.sum() / np.log(2)
        expected = bits / len("".join(pieces))
        mistakes = {
            "these are nats: a bit is ln 2 of them": expected * np.log(2),
            "this is for each piece, and a piece may have many characters": bits / len(pieces),
            "logarithms of probabilities are negative, and what is spent is positive": -expected,
        }
        expect(f"bits_per_character for the pieces {pieces}", given, expected, mistakes=mistakes)


@part(25)
def check_temperature_of(temperature_of):
    rng = np.random.default_rng(23)
    for size, wanted in ((6, 1.5), (40, 12.0), (9, 8.9), (7, 2.0)):
        for scale in (1, 3000):
            logits = scale * rng.standard_normal(size)
            given = temperature_of.quietly(logits, wanted)
            tau, what = array_of(given, ()), f"for {size} logits of size {scale}"
            if tau is None or not 0 < tau < np.inf:
                is_ = returned(given) if tau is None or given is None else tau
                raise CheckError(f"the temperature {what} must be a positive number; it is {is_}")
            tau = float(tau)
            if abs(_entropy(logits, tau) - np.log(2) * np.log(wanted)) < 1e-4:
                hint = "that is the entropy in bits, and perplexity is e to the entropy in nats"
            elif abs(_entropy(logits, 1 / tau) - np.log(wanted)) < 1e-4:
                hint = "the logits are divided by τ, not multiplied"
            else:
                hint = "if τ is small, exp overflows, unless the largest logit is subtracted first"
            found = np.exp(_entropy(logits, tau))
            expect(f"at τ = {tau:.7g}, {what}, the perplexity", found, wanted, hint, tolerance=2e-5)


@part(25)
def check_induction_attention(induction_attention):
    given = induction_attention(TEXTS)
    wanted = np.zeros((*TEXTS.shape, TEXTS.shape[1]))
    for b, text in enumerate(TEXTS):
        for t, token in enumerate(text):
            after = [s + 1 for s in range(t) if text[s] == token]
            wanted[b, t, after] = 1 / max(1, len(after))
    weights = array_of(given, wanted.shape)
    if weights is None:
        expect("the array of weights", given, wanted)  # says why it is none
    ahead = ~np.tri(TEXTS.shape[1], dtype=bool)
    one = np.isclose(weights.max(axis=-1), 1)  # where one place has all of the weight
    hint = ""
    if np.isnan(weights).any():
        hint = "where nothing is found the weights are 0, not 0 / 0"
    elif weights[:, ahead].any():
        hint = "a position must not look ahead: what is after s counts only for s < t"
    elif likely(weights[..., :-1], {"earlier": wanted[..., 1:]}):
        hint = "look at what followed the earlier token, not at the token itself"
    elif ((weights > 0) == (wanted > 0)).all():
        hint = "the weights of a position sum to 1"
    elif (one == wanted.any(axis=-1)).all() and (wanted[weights > 0] > 0).all():
        hint = "all earlier places share the weight, not only one of them"
    for text, of_text, right in zip(TEXTS, weights, wanted, strict=True):
        expect(f"the weights for {text.tolist()}", of_text, right, hint)


@part(45)
def check_attention_step(attention_step):
    total = sum(PIECES)
    query, key, value = normal(24, *3 * [(H, total, K)])
    whole = _attend(query, key, value, np.tri(total, dtype=bool))
    hint = "if it is right for one piece and not for the next, was kept changed in between?"
    form, kept, start = "y and what to keep", None, 0
    for length in PIECES:
        stop = start + length
        piece = [array[:, start:stop] for array in (query, key, value)]
        # Somebody else goes on from the same place first.
        attention_step.y_and_cache(*(-array for array in piece), kept, form=form)
        y, kept = attention_step.y_and_cache(*piece, kept, form=form)
        seen = piece[0], key[:, :stop], value[:, :stop]
        own, as_if_first = np.tri(length, dtype=bool), np.tri(length, stop, dtype=bool)
        mistakes = {
            "the positions before this piece may be looked at, too": _attend(*piece, own),
            "within a piece no position may look at those after it": _attend(*seen, None),
            "the first new position is not position 0: its row of the mask comes later": _attend(
                *seen, as_if_first
            ),
        }
        what = f"y of positions {start} to {stop - 1}"
        expect(what, y, whole[:, start:stop], hint, mistakes)
        start = stop


def _attend(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(K)
    return softmax(scores, mask)[0] @ value


def _entropy(logits, temperature):
    with np.errstate(all="ignore"):  # whatever the temperature is
        p, _ = softmax(logits / temperature)
    return -(p * np.log(np.maximum(p, 1e-300))).sum()
