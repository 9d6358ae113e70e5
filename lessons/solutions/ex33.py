"""Solutions of lesson 33, what notes get wrong."""

from collections import Counter

import numpy as np


def kind_of_mask(attend):
    """One question is enough: with all scores alike, the first answer is a mean of what is seen.

    Of values 1 and 3, the first query gets 1 of the first alone, nothing, half of 1, or the mean.
    A test by keys would take "late" for "none": there the future's scores stand in the sum.
    """
    nothing, value = np.zeros((2, 1)), np.array([[1.0], [3.0]])
    answers = {1.0: "causal", 0.0: "strict", 0.5: "late", 2.0: "none"}
    return answers[round(float(attend(nothing, nothing, value)[0, 0]), 3)]


def smoothed_perplexity(pi, epsilon, by_all):
    """The mean target is p = (1 − ε) π + ε / V, or (1 − ε) π + ε (1 − π) / (V − 1).

    For a word that is sure both give about 1 / (1 − ε). For four words alike among 37,000 the
    perplexity is 4.44 and not 4: smoothing costs a factor of about 1 / (1 − ε) there as well.
    """
    others = pi.size - 1
    p = (1 - epsilon) * pi + epsilon * (1 / pi.size if by_all else (1 - pi) / others)
    said = pi > 0
    return np.exp(-(pi[said] * np.log(p[said])).sum())


def weights_under_dropout(x, y, p):
    """(XᵀX + p / (1 − p) · its diagonal) w = Xᵀ y: a ridge in units of each feature.

    Measure a feature in other units, x_j / 10, and w_j is ten times as large: the predictions stay.
    Under L2 they would not.
    """
    gram = x.T @ x  # (D, D)
    ridge = p / (1 - p) * np.diag(np.diag(gram))
    return np.linalg.solve(gram + ridge, x.T @ y)


def clipped_precision(hypothesis, references, n):
    """The most of each n-gram, over references; then the smaller count."""
    said, *wanted = (
        Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        for words in (hypothesis, *references)
    )
    most = Counter()
    for counts in wanted:
        most |= counts
    return (said & most).total() / max(said.total(), 1)
