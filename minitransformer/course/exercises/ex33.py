"""Exercise 33, what notes get wrong: how each part is checked."""

from collections import Counter

import numpy as np

from minitransformer.course.exercises.parts import expect, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import returned
from minitransformer.layers.softmax import softmax

KINDS = {  # what tells it from the others
    "causal": "the first query sees its own value, with the weight 1, and no other",
    "strict": "the first query sees nothing, not even itself, and gets zeros",
    "late": (
        "no later value reaches the first query, but later keys do: they stand in the sum, so its "
        "weights sum to less than 1"
    ),
    "none": "weights sum to 1 as under a causal mask, but the first query sees later values",
}


@part(25)
def check_kind_of_mask(kind_of_mask):
    for kind, because in KINDS.items():
        given = kind_of_mask(_attention(kind))
        if not isinstance(given, str) or given not in KINDS:
            raise CheckError(
                f"kind_of_mask must return one of {', '.join(KINDS)}; it returned {returned(given)}"
            )
        if given != kind:
            raise CheckError(f"of the mask {kind!r} it says {given!r}: {because}")


def _attention(kind):
    def attend(query, key, value):
        length = len(query)
        allowed = np.tri(length, k=-1 if kind == "strict" else 0, dtype=bool)
        scores = query @ key.T / np.sqrt(query.shape[-1])
        weights, _ = softmax(scores, allowed if kind in ("causal", "strict") else None)
        return (weights * allowed if kind == "late" else weights) @ value

    return attend


@part(25)
def check_smoothed_perplexity(smoothed_perplexity):
    for pi in ([0.5, 0.3, 0.2], [0.0, 1.0, 0.0, 0.0], [0.7, 0.0, 0.3, 0.0, 0.0]):
        pi, V = np.array(pi), len(pi)
        said = pi > 0

        def cross_entropy(q, p, said=said):
            return -(q[said] * np.log(p[said])).sum()

        for epsilon in (0.1, 0.3, 0.0):
            all_share = (1 - epsilon) * pi + epsilon / V
            others_share = (1 - epsilon) * pi + epsilon * (1 - pi) / (V - 1)
            for by_all, p, other in (
                (True, all_share, others_share),
                (False, others_share, all_share),
            ):
                nll = cross_entropy(pi, p)
                positive = p > 0
                mistakes = {
                    "e to the mean of −log p is asked for": nll,
                    "that is the best without smoothing: the model says its target, not π": (
                        np.exp(cross_entropy(pi, pi))
                    ),
                    "the model is judged by what is said, π, and not by its target": (
                        np.exp(cross_entropy(p, p, positive))
                    ),
                    f"that is where ε is shared by {'all others' if by_all else 'all'}": (
                        np.exp(cross_entropy(pi, other))
                    ),
                    "each of the others gets ε / (V − 1) only where it was not said": (
                        np.exp(cross_entropy(pi, (1 - epsilon) * pi + epsilon / (V - 1)))
                    ),
                    "e, not 2, to the mean of the natural logarithm": 2**nll,
                }
                what = f"smoothed_perplexity({pi.tolist()}, {epsilon:g}, {by_all})"
                hint = "a word with π = 0 is never said, and 0 · log 0 counts as 0"
                given = smoothed_perplexity.quietly(pi, epsilon, by_all)
                expect(what, given, np.exp(nll), hint, mistakes)


@part(45)
def check_weights_under_dropout(weights_under_dropout):
    for n, d, p in ((12, 4, 0.3), (9, 3, 0.5), (8, 5, 0.0)):
        x, y = normal(33, (n, d), n)
        x = x * np.geomspace(0.5, 4, d)  # features of different sizes
        gram, both = x.T @ x, x.T @ y
        ratio, of_each, one = p / (1 - p), np.diag(np.diag(gram)), np.eye(d)
        right = np.linalg.solve(gram + ratio * of_each, both)
        mistakes = {
            "that is without dropout": np.linalg.solve(gram, both),
            "that is L2: the ridge of a feature is as strong as the feature is large": (
                np.linalg.solve(gram + ratio * one, both)
            ),
            "what is kept is divided by 1 − p, so a feature's variance has p / (1 − p)": (
                np.linalg.solve(gram + p * of_each, both)
            ),
            "p / (1 − p) times the feature's square, not p (1 − p)": (
                np.linalg.solve(gram + p * (1 - p) * of_each, both)
            ),
            "the error is a mean over N examples, and so is the ridge: sums or means, of both": (
                np.linalg.solve(gram + ratio * of_each / n, both)
            ),
            "that is where what is kept is not divided by 1 − p": right / (1 - p),
            "the variance adds to each feature's own square, not to products of two": (
                np.linalg.solve(gram / (1 - p), both)
            ),
        }
        hint = "(XᵀX + ridge) w = Xᵀ y, where the ridge is diagonal"
        what = f"w for N={n}, D={d}, p={p:g}"
        expect(what, weights_under_dropout(x, y, p), right, hint, mistakes)


@part(25)
def check_clipped_precision(clipped_precision):
    for said, wanted, n in (
        (f"{'the ' * 6}cat cat dog bird", ["the cat the cat dog", "the the the cat dog"], 1),
        ("the the the the", ["the dog sees the cat", "the cat"], 1),
        ("a b a b a b", ["a b c a b", "b a b a"], 2),
        ("a b c d", ["a b x c d", "b c"], 3),
        ("a b", ["a b"], 3),
    ):
        ours, *theirs = (_grams(text.split(), n) for text in (said, *wanted))
        total = max(ours.total(), 1)
        hits = sum(min(c, max(their[g] for their in theirs)) for g, c in ours.items())
        known = set().union(*theirs)
        mistakes = {
            "that is unclipped": sum(c for g, c in ours.items() if g in known) / total,
            "an n-gram may count as often as in one reference, not in all together": (
                (ours & sum(theirs, Counter())).total() / total
            ),
            "each n-gram has a best reference of its own": (
                max((ours & their).total() for their in theirs) / total
            ),
            "an n-gram that the reference has twice counts twice": (
                len(known & ours.keys()) / total
            ),
            "over the different n-grams; each counts as often as it was said": (
                len(known & ours.keys()) / max(len(ours), 1)
            ),
            "it is enough to be in one reference": (
                sum(min(c, min(their[g] for their in theirs)) for g, c in ours.items()) / total
            ),
        }
        arguments = said.split(), [text.split() for text in wanted], n
        hint = "the n-grams of m words are m − n + 1; none are 0"
        clipped_precision.expect(arguments, hits / total, hint, mistakes)


def _grams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
