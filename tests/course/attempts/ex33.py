from collections import Counter

import numpy as np

ROUND = "round(float(attend(nothing, nothing, value)[0, 0]), 3)"
MEAN = "(1 / pi.size if by_all else (1 - pi) / others)"
RIDGE = "p / (1 - p) * np.diag(np.diag(gram))"


def by_the_future_alone(attend):
    """Whether a later value reaches the first query."""
    zeros = np.zeros((2, 1))
    moved = attend(zeros, zeros, np.array([[0.0], [1.0]]))[0, 0] != 0
    return "none" if moved else "causal"


def by_sums_alone(attend):
    first, last = attend(np.zeros((2, 1)), np.zeros((2, 1)), np.ones((2, 1)))[:, 0]
    return "strict" if first == 0 else "late" if first < last else "causal"


def by_keys(attend):
    """A later key moves the first answer: no mask, or one that comes too late."""
    query, value = np.ones((2, 1)), np.array([[1.0], [3.0]])
    one, other = (attend(query, np.array([[0.0], [k]]), value)[0, 0] for k in (0.0, 2.0))
    return "none" if one != other else "strict" if one == 0 else "causal"


def by_several_questions(attend):
    rng = np.random.default_rng(0)
    query, key = rng.standard_normal((2, 5, 3))
    sums = attend(query, key, np.ones((5, 3)))[:, 0]
    last = np.zeros((5, 3))
    last[-1] = 1
    if attend(query, key, last)[0, 0] > 0:
        return "none"
    return "causal" if np.allclose(sums, 1) else "strict" if sums[0] == 0 else "late"


def of_the_target(pi, epsilon, by_all):
    others = pi.size - 1
    p = (1 - epsilon) * pi + epsilon * (1 / pi.size if by_all else (1 - pi) / others)
    p = p[p > 0]
    return np.exp(-(p * np.log(p)).sum())


def by_what_is_said(pi, epsilon, by_all):
    """The mean of all targets, one after the other."""
    target = np.eye(pi.size) * (1 - epsilon)
    if by_all:
        target += epsilon / pi.size
    else:
        target += (1 - np.eye(pi.size)) * epsilon / (pi.size - 1)
    p = pi @ target
    return np.prod([p_v**-share for p_v, share in zip(p, pi, strict=True) if share])


def by_descent(x, y, p):
    w = np.zeros(x.shape[1])
    square = x.T @ x + p / (1 - p) * np.diag((x**2).sum(axis=0))
    for _ in range(60_000):
        w -= (square @ w - x.T @ y) / np.linalg.norm(square)
    return w


def as_more_examples(x, y, p):
    """The ridge as D more examples of the answer 0."""
    more = np.sqrt(p / (1 - p)) * np.diag(np.linalg.norm(x, axis=0))
    rows, answers = np.concatenate([x, more]), np.concatenate([y, np.zeros(x.shape[1])])
    return np.linalg.lstsq(rows, answers, rcond=None)[0]


def grams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def of_the_best_reference(hypothesis, references, n):
    said = grams(hypothesis, n)
    return max((said & grams(r, n)).total() for r in references) / max(said.total(), 1)


def by_lists(hypothesis, references, n):
    said = list(zip(*(hypothesis[i:] for i in range(n)), strict=False))
    hits = 0
    for gram in set(said):
        most = max(grams(reference, n)[gram] for reference in references)
        hits += min(said.count(gram), most)
    return hits / len(said) if said else 0


WRONG = """
kind_of_mask
    by_the_future_alone || of the mask 'strict' it says 'causal' || sees nothing
    by_sums_alone || of the mask 'none' it says 'causal' || sees later values
    by_keys || of the mask 'late' it says 'none' || they stand in the sum
    0.5: "late" -> 0.25: "late" || KeyError
    0.0: "strict", 0.5: "late" -> 0.5: "strict", 0.0: "late" || of the mask 'strict'
    answers[$ROUND] -> $ROUND || must return one of causal, strict, late, none
smoothed_perplexity
    return np.exp(-(pi[said] * np.log(p[said])).sum()) -> return -(pi[said] * np.log(p[said])).sum()
        || e to the mean
    np.log(p[said]) -> np.log(pi[said]) || the best without smoothing
    of_the_target || judged by what is said
    $MEAN -> (1 / pi.size if not by_all else (1 - pi) / others) || shared by all others
    $MEAN -> (1 / pi.size) || that is where ε is shared by all
    $MEAN -> (1 / pi.size if by_all else 1 / others) || only where it was not said
    np.exp( -> np.exp2( || e, not 2
    said = pi > 0 -> said = pi >= 0 || never said
weights_under_dropout
    gram + ridge -> gram || that is without dropout
    np.diag(np.diag(gram)) -> np.eye(len(gram)) || that is L2
    $RIDGE -> p * np.diag(np.diag(gram)) || divided by 1 − p
    $RIDGE -> p * (1 - p) * np.diag(np.diag(gram)) || not p (1 − p)
    $RIDGE -> p / (1 - p) * np.diag(np.diag(gram)) / len(x) || sums or means, of both
    $RIDGE -> p / (1 - p) * gram || not to products of two
    x.T @ y) -> x.T @ y) / (1 - p) || where what is kept is not divided
    $RIDGE -> (1 - p) * np.diag(np.diag(gram)) || where the ridge is diagonal
clipped_precision
    said & most -> Counter({g: c for g, c in said.items() if g in most}) || that is unclipped
    most |= counts -> most += counts || not in all together
    of_the_best_reference || a best reference of its own
    (said & most).total() -> len(said & most) || that the reference has twice counts twice
    (said & most).total() / max(said.total(), 1) -> len(said & most) / max(len(said), 1)
        || over the different n-grams
    most = Counter() -> most = wanted[0] && most |= counts -> most &= counts || in one reference
    max(said.total(), 1) -> said.total() || ZeroDivisionError
    len(words) - n + 1 -> len(words) - n || m − n + 1
"""
RIGHT = """
kind_of_mask
    by_several_questions
smoothed_perplexity
    by_what_is_said
weights_under_dropout
    by_descent
    as_more_examples
clipped_precision
    by_lists
"""
