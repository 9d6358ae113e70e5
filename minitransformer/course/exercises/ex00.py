"""Exercise 00, start here: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import expect, part
from minitransformer.gradcheck import CheckError

PIECES = ["▁Heute", "▁kann", "▁die", "▁Frau", "▁einen", "▁Apfel", "▁kaufen", ".", "</s>"]
ALIGNMENTS = {
    "word by word": [0, 1, 2, 3],
    "two that look at the same": [0, 0, 1],
    "two neighbours exchanged": [1, 0, 2],
    "the last comes first": [3, 0, 1, 2],
    "all the other way round": [4, 3, 2, 1, 0],
    "that of the lesson": [0, 2, 3, 1, 6, 4, 5],
}


@part(10)
def check_most_attended(most_attended):
    rng = np.random.default_rng(0)
    H, T, S = 4, 7, len(PIECES)  # T < S: the largest of the wrong axis is a piece, too
    weights = rng.exponential(size=(H, T, S)) ** 2
    weights /= weights.sum(axis=-1, keepdims=True)
    given = most_attended(weights, list(PIECES))
    if not isinstance(given, list | tuple | np.ndarray) or not np.iterable(given):
        raise CheckError(
            f"most_attended must return a list of T strings, not {type(given).__name__}"
        )
    if len(given) != T:
        axes = {
            H: "; the heads are the first axis, average over them",
            S: "; each target position is a row, look along the last axis",
        }
        raise CheckError(
            f"most_attended returned {len(given)} pieces for T = {T} positions"
            + axes.get(len(given), "")
        )
    if not all(isinstance(piece, str) for piece in given):
        raise CheckError(
            "most_attended must return pieces of source_pieces, strings, not positions"
        )

    def pieces_of(weights):
        return [PIECES[s] for s in weights.argmax(axis=-1)]

    mistakes = {
        "; these are those of the first head, take the mean over the heads": weights[0],
        "; take the mean over the heads, not the largest": weights.max(axis=0),
    }
    hint = next((hint for hint, x in mistakes.items() if pieces_of(x) == list(given)), "")
    for t, (piece, right) in enumerate(zip(given, pieces_of(weights.mean(axis=0)), strict=True)):
        if piece != right:
            raise CheckError(
                f"most_attended says {piece!r} for target position {t}, and it is {right!r}{hint}"
            )


@part(10)
def check_crossings(crossings):
    for what, alignment in ALIGNMENTS.items():
        given = crossings(list(alignment))
        pairs = [(t, u) for u in range(len(alignment)) for t in range(u)]
        expected = sum(alignment[t] > alignment[u] for t, u in pairs)
        mistakes = {
            "count each pair once": 2 * expected,
            "these are the pairs that do not cross": len(pairs) - expected,
            "two that look at the same position do not cross": sum(
                alignment[t] >= alignment[u] for t, u in pairs
            ),
            "the two need not be neighbours": sum(
                alignment[t] > alignment[u] for t, u in pairs if u == t + 1
            ),
        }
        hint = "t comes before u, and looks behind where u looks"
        what = f"crossings({alignment}), {what},"
        expect(what, given, expected, hint, mistakes)
