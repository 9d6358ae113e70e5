"""How greedy search and beam search are checked: on small languages made of random numbers."""

import numpy as np

from minitransformer.course.exercises.parts import expect, part
from minitransformer.data.text.vocabulary import BOS, EOS, PAD
from minitransformer.gradcheck import CheckError


class Language:
    """log P of the next word, from the two words before it: what a search is given.

    Args:
        seed: of its random numbers.
        num_sentences: N. Each has a language of its own; 1 serves any number of rows.
        max_length: what was said may be as long as that, the start symbol not counted.
        num_words: V.
        forbidden: words that are never said.
        ends: how much likelier than others the end is made, in nats.
    """

    def __init__(self, seed, num_sentences, max_length, num_words=8, forbidden=(), ends=0.0):
        rng = np.random.default_rng(seed)
        logits = 1.5 * rng.standard_normal((num_sentences, num_words, num_words, num_words))
        logits[..., EOS] += ends
        logits[..., [PAD, BOS, *forbidden]] = -np.inf
        self.log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        self.max_length = max_length

    def __call__(self, said):
        """log P (N, V) of what follows each of the rows of ids (N, t).

        Raises:
            ValueError, TypeError: said is no such array, or longer than allowed.
        """
        said = np.asarray(said)
        if said.ndim != 2 or said.dtype.kind not in "iu":
            raise TypeError(f"said must be integers (N, t); it is {said.dtype} {said.shape}")
        num_sentences = len(self.log_p)
        if num_sentences > 1 and len(said) != num_sentences:
            raise ValueError(f"said has {len(said)} rows for {num_sentences} sentences")
        if not said.shape[1] or (said[:, 0] != BOS).any():
            raise ValueError("each row of said must begin with the start symbol")
        if said.shape[1] > self.max_length:
            raise ValueError(
                f"a row of said has {said.shape[1] - 1} tokens after the start symbol; one more is "
                f"more than max_length={self.max_length}"
            )
        sentence = np.arange(len(said)) % num_sentences
        last = np.concatenate([said[:, :1], said], axis=1)[:, -2:]  # (N, 2)
        return self.log_p[sentence, last[:, 0], last[:, 1]]


@part(25, "14")
def check_greedy(greedy):
    for seed, max_length, ends in ((0, 12, 1.0), (1, 12, 1.0), (2, 3, -9.0)):
        language = Language(seed, 3, max_length, ends=ends)
        expected = _greedy(language, max_length)  # (N, T)
        given = greedy.quietly(language, np.full((3, 1), BOS), max_length)
        kind = getattr(given, "dtype", np.dtype(object)).kind
        if kind not in "iu" or given.ndim != 2 or len(given) != 3:
            raise CheckError("greedy must return an array of integers, a row for each sentence")
        _compare_rows(given.tolist(), expected.tolist())


def _greedy(language, max_length):
    said = np.full((len(language.log_p), 1), BOS)
    while said.shape[1] <= max_length and not (said == EOS).any(axis=1).all():
        said = np.column_stack([said, language(said).argmax(axis=1)])
    return said[:, 1:]


def _compare_rows(given, expected):
    """Raise unless the rows are right up to their ends, and as long as the longest needs."""
    for n, (row, right) in enumerate(zip(given, expected, strict=True)):
        length = right.index(EOS) + 1 if EOS in right else len(right)
        if row[:1] == [BOS]:
            raise CheckError("greedy must return the ids without the start symbol")
        if row[:length] == right[:length]:
            continue
        if row == right[: len(row)]:
            hint = "go on until all rows have ended, or are max_length long"
        else:
            hint = "the next token is the one of the highest log P, given all that its row has said"
        raise CheckError(f"row {n} is {row} and should begin with {right[:length]}; {hint}")
    if len(given[0]) > len(expected[0]):
        raise CheckError(
            f"the rows are {len(given[0])} tokens long; at {len(expected[0])} all had ended, or "
            "were as long as max_length allows"
        )


@part(45, "14")
def check_beam_search(beam_search):
    few = {"num_words": 6, "forbidden": (1, 5)}  # one word and the end: n ends after n words
    for seed, max_length, beam_size, alpha, options in (
        (0, 8, 1, 0.6, {}),
        (1, 8, 3, 0.0, {}),
        (2, 10, 4, 1.0, {"ends": -1.0}),
        (3, 10, 3, 0.6, {}),
        (4, 10, 4, 2.0, {"ends": 1.0}),
        (5, 4, 4, 0.6, {"ends": -2.0}),
        (6, 4, 9, 0.6, few),
    ):
        language = Language(seed, 1, max_length, **options)
        arguments = max_length, beam_size, alpha
        found = beam_search.quietly(language, np.full((1, 1), BOS), *arguments)
        what = f"with max_length={max_length}, beam_size={beam_size}, alpha={alpha:g}"
        _compare_found(_as_hypotheses(found), language, arguments, what)


def _as_hypotheses(found):
    """What a learner returned as a list of (ids, log P), ids a list of int.

    Raises:
        CheckError: it is nothing like that.
    """
    try:
        return [([int(w) for w in np.asarray(ids)], float(p)) for ids, p in found]
    except (TypeError, ValueError):
        raise CheckError("beam_search must return a list of (ids, log P), best first") from None


def _compare_found(found, language, arguments, what):
    expected = search(language, *arguments)
    ids, expected_ids = ([ids for ids, _ in hypotheses] for hypotheses in (found, expected))
    if ids != expected_ids:
        hint = _named_mistake(ids, expected_ids, language, arguments)
        raise CheckError(f"{what} the ids are {ids} and should be {expected_ids}; {hint}")
    hint = "it is the sum of log P of all its tokens, EOS among them, and not divided by anything"
    for (of_one, log_p), (_, wanted) in zip(found, expected, strict=True):
        expect(f"{what} log P of {of_one}", log_p, wanted, hint)


def _named_mistake(ids, expected, language, arguments):
    """A hint at the mistake by which these ids would be found."""
    if ids == [[word for word in of_one if word != EOS] for of_one in expected]:
        return "EOS stays where it was chosen"
    if any(PAD in of_one for of_one in ids):
        return "what has log P = −∞ is not returned, even where there is nothing else"
    if any(of_one[:1] == [BOS] for of_one in ids):
        return "they come without the start symbol"
    if any(EOS in of_one[:-1] for of_one in ids):
        return "what ends with EOS is found, and leaves the beam"
    _, beam_size, _ = arguments
    if len(ids) > beam_size:
        return "at most beam_size of them are asked for"
    for mistake, hint in MISTAKES.items():
        if [found for found, _ in search(language, *arguments, mistake)] == ids:
            return hint
    return "take the k best of all extensions; those that end are found, the others go on"


MISTAKES = {
    "no penalty": "they are ranked by log P / ((5 + length) / 6)^α, not by log P alone",
    "a length without EOS": "the length that they are ranked by counts EOS",
    "a plain length": "the penalty is ((5 + length) / 6)^α",
    "all ranked together": "what has not ended comes after all that has, whatever its score",
    "no unfinished": "what is left in the beam is returned, too, after what was found",
    "a shrinking beam": (
        "each time the k best of all extensions are taken, however many were found by then"
    ),
    "an early end": (
        "go on until the beam is empty or as long as allowed: longer ones may score higher"
    ),
}


def search(language, max_length, beam_size, alpha, mistake=""):
    """The beam search that is asked for, word by word, or one with one of the MISTAKES.

    Args:
        language: as ``log_probabilities`` of the learner's search.

    Returns:
        a list of (ids, log P).
    """
    beam, found = [([], 0.0)], []
    for _ in range(max_length):
        if mistake == "an early end" and len(found) >= beam_size:
            break
        longer = []
        for ids, log_p in beam:
            of_next = language(np.array([[BOS, *ids]]))[0]
            said = np.flatnonzero(of_next > -np.inf).tolist()
            longer += [([*ids, word], log_p + of_next[word]) for word in said]
        width = beam_size - (len(found) if mistake == "a shrinking beam" else 0)
        best = sorted(longer, key=lambda hypothesis: -hypothesis[1])[: max(width, 0)]
        found += [hypothesis for hypothesis in best if hypothesis[0][-1] == EOS]
        beam = [hypothesis for hypothesis in best if hypothesis[0][-1] != EOS]

    def rank(hypothesis):
        ids, log_p = hypothesis
        right = ((5 + len(ids)) / 6) ** alpha
        penalty = {
            "no penalty": 1.0,
            "a length without EOS": ((4 + len(ids)) / 6) ** alpha,
            "a plain length": len(ids) ** alpha,
        }.get(mistake, right)
        return (mistake != "all ranked together" and ids[-1] != EOS, -log_p / penalty)

    all_found = found + (beam if mistake != "no unfinished" else [])
    return sorted(all_found, key=rank)[:beam_size]
