"""Exercise 22, a language model: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Part, array_of, expect, read_only, y_and_cache
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import call, returned
from minitransformer.layers.attention import scaled_dot_product_attention
from minitransformer.layers.masks import causal_mask
from minitransformer.layers.softmax import softmax

H, K = 2, 5
PIECES = (3, 1, 1, 4, 2)  # lengths, of 11 positions
TEXTS = np.array([[4, 7, 5, 4, 7, 7, 4], [9, 9, 9, 9, 8, 2, 9]])


def check_bits_per_character(bits_per_character):
    rng = np.random.default_rng(22)
    for pieces in (["the ", "dog", " is", " here", "."], list("dogs")):
        logs = -rng.uniform(0.1, 4, len(pieces))
        given = call("bits_per_character", bits_per_character, read_only(logs), list(pieces))
        length = len("".join(pieces))
        bits = -logs.sum() / np.log(2)
        hint = ""
        if _close(given, -logs.sum() / length):
            hint = "these are nats: a bit is ln 2 of them"
        elif _close(given, bits / len(pieces)):
            hint = "this is for each piece, and a piece may have many characters"
        elif _close(given, -bits / length):
            hint = "logarithms of probabilities are negative, and what is spent is positive"
        expect(f"bits_per_character for the pieces {pieces}", given, bits / length, hint=hint)


def check_temperature_of(temperature_of):
    rng = np.random.default_rng(23)
    for size, wanted in ((6, 1.5), (40, 12.0), (9, 8.9), (7, 2.0)):
        for scale in (1, 3000):
            logits = scale * rng.standard_normal(size)
            with np.errstate(all="ignore"):
                tau = call("temperature_of", temperature_of, read_only(logits), wanted)
            what = f"the temperature for {size} logits of size {scale}"
            given, tau = tau, array_of(tau, ())
            if tau is None or not 0 < tau < np.inf:
                is_ = returned(given) if tau is None or given is None else tau
                raise CheckError(f"{what} must be a positive number; it is {is_}")
            tau = float(tau)
            if abs(_entropy(logits, tau) - np.log(2) * np.log(wanted)) < 1e-4:
                hint = "that is the entropy in bits, and perplexity is e to the entropy in nats"
            elif abs(_entropy(logits, 1 / tau) - np.log(wanted)) < 1e-4:
                hint = "the logits are divided by τ, not multiplied"
            else:
                hint = "if τ is small, exp overflows, unless the largest logit is subtracted first"
            what = f"at τ = {tau:.7g}, for {size} logits of size {scale}, the perplexity"
            expect(what, np.exp(_entropy(logits, tau)), wanted, tolerance=2e-5, hint=hint)


def check_induction_attention(induction_attention):
    weights = call("induction_attention", induction_attention, read_only(TEXTS))
    wanted = np.zeros((*TEXTS.shape, TEXTS.shape[1]))
    for b, text in enumerate(TEXTS):
        for t, token in enumerate(text):
            after = [s + 1 for s in range(t) if text[s] == token]
            wanted[b, t, after] = 1 / max(1, len(after))
    given, weights = weights, array_of(weights, wanted.shape)
    if weights is None:
        expect("the array of weights", given, wanted)  # says why it is none
    ahead = ~np.tri(TEXTS.shape[1], dtype=bool)
    hint = ""
    if np.isnan(weights).any():
        hint = "where nothing is found the weights are 0, not 0 / 0"
    elif weights[:, ahead].any():
        hint = "a position must not look ahead: what is after s counts only for s < t"
    elif _close(weights[..., :-1], wanted[..., 1:]):
        hint = "look at what followed the earlier token, not at the token itself"
    elif _close((weights > 0), (wanted > 0)):
        hint = "the weights of a position sum to 1"
    elif _last_only(weights, wanted):
        hint = "all earlier places share the weight, not only one of them"
    for b, text in enumerate(TEXTS):
        expect(f"the weights for {text.tolist()}", weights[b], wanted[b], hint=hint)


def _last_only(weights, wanted):
    one = np.isclose(weights.max(axis=-1), 1)
    return bool((one == wanted.any(axis=-1)).all() and (wanted[weights > 0] > 0).all())


def check_attention_step(attention_step):
    rng = np.random.default_rng(24)
    total = sum(PIECES)
    query, key, value = rng.standard_normal((3, H, total, K))
    mask = causal_mask(np.zeros((1, total), np.int32))[0]
    whole, _ = scaled_dot_product_attention(query[None], key[None], value[None], mask)
    kept, start = None, 0
    for length in PIECES:
        part = slice(start, start + length)
        piece = (query[:, part], key[:, part], value[:, part])
        # Somebody else goes on from the same place first.
        _step(attention_step, *(-array for array in piece), kept)
        y, kept = _step(attention_step, *piece, kept)
        what = f"y of positions {start} to {start + length - 1}"
        expect(what, y, whole[0, :, part], hint=_why(y, piece, whole, key, value, part))
        start += length


def _step(attention_step, query, key, value, kept):
    form = "y and what to keep"
    return y_and_cache("attention_step", attention_step, query, key, value, kept, form=form)


def _why(y, piece, whole, key, value, part):
    """What the likeliest mistake is, if y is wrong."""
    query, new_key, new_value = piece
    length = query.shape[1]
    alone = np.tri(length, dtype=bool)
    own, _ = _attend(query, new_key, new_value, alone)
    seen, _ = _attend(query, key[:, : part.stop], value[:, : part.stop], None)
    top = np.tri(length, part.stop, dtype=bool)  # the mask as if the piece were the text's start
    wrong_rows, _ = _attend(query, key[:, : part.stop], value[:, : part.stop], top)
    if _close(y, own):
        return "the positions before this piece may be looked at, too"
    if _close(y, seen):
        return "within a piece no position may look at those after it"
    if _close(y, wrong_rows):
        return "the first new position is not position 0: its row of the mask comes later"
    return "if it is right for one piece and not for the next, was kept changed in between?"


def _attend(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(K)
    weights, _ = softmax(scores, mask)
    return weights @ value, weights


def _entropy(logits, temperature):
    with np.errstate(all="ignore"):  # whatever the temperature is
        p, _ = softmax(logits / temperature)
    return -(p * np.log(np.maximum(p, 1e-300))).sum()


def _close(given, wanted):
    given = array_of(given, np.shape(wanted))
    return given is not None and np.allclose(given, wanted)


PARTS = [
    Part(("bits_per_character",), 10, check_bits_per_character),
    Part(("temperature_of",), 25, check_temperature_of),
    Part(("induction_attention",), 25, check_induction_attention),
    Part(("attention_step",), 45, check_attention_step),
]
