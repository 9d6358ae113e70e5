"""Exercise 14, decoding: how each part is checked."""

import itertools

import numpy as np

from minitransformer.course.exercises.parts import expect, part
from minitransformer.evaluation.scores import score
from minitransformer.gradcheck import CheckError

HYPOTHESES = ["The old dog is sleeping.", "A cat ate the the fish!", "Seven horses", "xyzzyxyz"]
REFERENCES = [
    "The dog is sleeping now.",
    "A cat ate the fish.",
    "Seven small horses ran.",
    "Hello!",
]


@part(10)
def check_alpha_of_a_tie(alpha_of_a_tie):
    hint = "is it (5 + length) / 6, in both?"
    for pair in ((-3.0, 7, -3.6, 10), (-5.0, 12, -4.0, 8), (-2.0, 9, -3.0, 4)):
        log_p, length, other_log_p, other_length = pair
        expected = np.log(log_p / other_log_p) / np.log((5 + length) / (5 + other_length))
        alpha_of_a_tie.expect(pair, expected, hint)


@part(25)
def check_nucleus(nucleus):
    probabilities = np.array([0.03, 0.4, 0.07, 0.3, 0.2])
    for p, inside in ((0.35, [1]), (0.6, [1, 3]), (0.8, [1, 3, 4]), (1.0, range(5))):
        expected = np.zeros(5)
        expected[inside] = probabilities[inside] / probabilities[inside].sum()
        hint = "the word that makes the sum reach p is the last one kept; the kept ones sum to 1"
        nucleus.expect((probabilities, p), expected, hint)


@part(45)
def check_exact_search(exact_search):
    languages = [random_language(seed) for seed in range(6)] + [language_that_fools_a_beam()]
    for (asked, next_log_p), max_length in itertools.product(languages, (3, 5)):
        best, best_log_p, likelier = _by_trying_all(next_log_p, max_length)
        asked.clear()
        form = "the sequence and its log-probability"
        sequence, log_p = exact_search.several(2, form, next_log_p, max_length)
        if not isinstance(sequence, tuple | list | np.ndarray):
            raise CheckError(f"the sequence must be a tuple; it is {sequence!r}")
        expect("the log-probability", log_p, best_log_p, "there is a likelier sequence")
        if tuple(sequence) != best:
            raise CheckError(f"the sequence is {sequence} and should be {best}")
        if len(asked) > 10 * likelier + 10:
            raise CheckError(
                f"next_log_p was called {len(asked)} times; only {likelier} prefixes are more "
                "probable than the answer, and no other can lead to a better one"
            )


def random_language(seed):
    return language(2 * np.random.default_rng(seed).standard_normal((6, 6, 5)))


def language_that_fools_a_beam():
    """Of the first words the last but one in probability is the only one that leads anywhere."""
    logits = np.zeros((9, 9, 8))
    logits[8, 8, [0, 7]] = -3, -1
    logits[8, 7, 0] = 5
    return language(logits)


def language(logits):
    """A list of the prefixes asked for, and next_log_p, given the last two words of a prefix.

    Args:
        logits: (V + 1, V + 1, V), where V stands for a word before the first.
    """
    num_words, asked = logits.shape[-1], []

    def next_log_p(prefix):
        asked.append(prefix)
        one, two = (num_words, num_words, *prefix)[-2:]
        of_next = logits[one, two]
        return (of_next - np.log(np.exp(of_next).sum())).tolist()

    return asked, next_log_p


def _by_trying_all(next_log_p, max_length):
    """The best finished sequence, its log P, and how many prefixes are more probable."""
    prefixes, finished = {(): 0.0}, {}
    longest = prefixes
    for _ in range(max_length):
        longer = {
            (*prefix, word): log_p + more
            for prefix, log_p in longest.items()
            for word, more in enumerate(next_log_p(prefix))
        }
        finished |= {y: log_p for y, log_p in longer.items() if y[-1] == 0}
        longest = {y: log_p for y, log_p in longer.items() if y[-1] != 0}
        prefixes = prefixes | longest
    best = max(finished, key=finished.get)
    return best, finished[best], sum(log_p > finished[best] for log_p in prefixes.values())


@part(45)
def check_chrf(chrf):
    for count in range(1, len(HYPOTHESES) + 1):
        texts = HYPOTHESES[:count], REFERENCES[:count]
        given = chrf(*map(list, texts))
        hint = "counts are summed over the corpus first; then the means over n, then F"
        expect(f"chrf of {count} texts", given, score(*texts).chrf2, hint)
    texts = ["abcdefgh"], ["ijklmnop"]
    if chrf(*texts) != 0:
        raise CheckError("chrf must be 0 where nothing matches")
