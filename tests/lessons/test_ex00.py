"""Plausible wrong answers to exercise 00 are told what is wrong with them."""

import pytest
from exercise_files import only_wrong


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda weights, pieces: [pieces[s] for s in weights[0].argmax(-1)], "first head"),
        (lambda weights, pieces: [pieces[s] for s in weights.max(0).argmax(-1)], "not the largest"),
        (lambda weights, pieces: [pieces[s] for s in weights.mean(0).argmax(0)], "last axis"),
        (lambda weights, pieces: [pieces[s] for s in weights.mean(1).argmax(-1)], "first axis"),
        (lambda weights, pieces: weights.mean(0).argmax(-1), "strings, not positions"),
        (lambda weights, pieces: [pieces[s] for s in weights.mean(0).argmin(-1)], "position 0"),
    ],
)
def test_who_looks_along_the_wrong_axis_is_told_so(answer, says):
    assert says in only_wrong("ex00", "most_attended", most_attended=answer)


def pairs_where(cross):
    return lambda alignment: sum(
        cross(alignment, t, u) for t in range(len(alignment)) for u in range(len(alignment))
    )


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (pairs_where(lambda a, t, u: t + 1 == u and a[t] > a[u]), "need not be neighbours"),
        (pairs_where(lambda a, t, u: t < u and a[t] >= a[u]), "same position do not cross"),
        (pairs_where(lambda a, t, u: (t - u) * (a[t] - a[u]) < 0), "each pair once"),
        (pairs_where(lambda a, t, u: t < u and a[t] < a[u]), "do not cross"),
        (pairs_where(lambda a, t, u: 17), "looks behind where u looks"),
    ],
)
def test_who_counts_other_pairs_is_told_which(answer, says):
    assert says in only_wrong("ex00", "crossings", crossings=answer)
