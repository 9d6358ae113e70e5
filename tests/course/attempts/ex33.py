import numpy as np

ROUND = "round(float(attend(nothing, nothing, value)[0, 0]), 3)"
MEAN = "(1 / pi.size if by_all else (1 - pi) / others)"
RIDGE = "p / (1 - p) * np.diag(np.diag(gram))"


def by_several_questions(attend):
    rng = np.random.default_rng(0)
    query, key = rng.standard_normal((2, 5, 3))
    sums = attend(query, key, np.ones((5, 3)))[:, 0]
    last = np.zeros((5, 3))
    last[-1] = 1
    if attend(query, key, last)[0, 0] > 0:
        return "none"
    return "causal" if np.allclose(sums, 1) else "strict" if sums[0] == 0 else "late"


WRONG = """
kind_of_mask
    0.0: "strict" -> 0.0: "causal" || of the mask 'strict' it says 'causal' || sees nothing
    2.0: "none" -> 2.0: "causal" || of the mask 'none' it says 'causal' || sees later values
    0.5: "late" -> 0.5: "none" || of the mask 'late' it says 'none' || they stand in the sum
    0.5: "late" -> 0.25: "late" || KeyError
    0.0: "strict", 0.5: "late" -> 0.5: "strict", 0.0: "late" || of the mask 'strict'
    answers[$ROUND] -> $ROUND || must return one of causal, strict, late, none
smoothed_perplexity
    return np.exp(-(pi[said] * np.log(p[said])).sum()) -> return -(pi[said] * np.log(p[said])).sum()
        || e to the mean
    np.log(p[said]) -> np.log(pi[said]) || the best without smoothing
    said = pi > 0 -> said = p > 0 && (pi[said] * -> (p[said] * || judged by what is said
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
    (said & most).total() -> max((said & one).total() for one in wanted)
        || a best reference of its own
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
"""
