"""Plausible wrong answers to exercise 23 are told what is wrong with them."""

from collections import Counter

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of, verdicts

SOLUTION = functions_in(solution_of("ex23"))


def by_form(words, labels, test_words, test_labels, unknown=None):
    """The answer with another label for unknown words."""
    of_word = {}
    for word, label in zip(words, labels, strict=True):
        of_word.setdefault(word, Counter({unknown: 0}))[label] += 1
    said = [of_word.get(word, Counter([unknown])).most_common(1)[0][0] for word in test_words]
    return np.mean([a == b for a, b in zip(said, test_labels, strict=True)])


def of_known_words(words, labels, test_words, test_labels):
    known = [(w, x) for w, x in zip(test_words, test_labels, strict=True) if w in words]
    return by_form(words, labels, *zip(*known, strict=True))


def of_all_words(words, labels, test_words, test_labels):
    return test_labels.count(Counter(labels).most_common(1)[0][0]) / len(test_labels)


def counted_on_the_test(words, labels, test_words, test_labels):
    return by_form(test_words, test_labels, test_words, test_labels)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (by_form, "that training does not have, say"),
        (of_known_words, "that training does not have count, too"),
        (of_all_words, "its own most frequent label"),
        (counted_on_the_test, "count the labels of training"),
    ],
)
def test_a_wrong_count_of_labels_is_told_what_to_count(answer, says):
    assert says in only_wrong("ex23", "accuracy_by_form", accuracy_by_form=answer)


def without_cut(begins, text, draw, share):
    return SOLUTION["whole_words"](begins, np.ones_like(text), draw, share)


def once_chosen_all_chosen(begins, text, draw, share):
    return np.maximum.accumulate(begins & (draw < share), axis=1) & text


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda begins, text, draw, share: begins & (draw < share), "all pieces are chosen"),
        (lambda begins, text, draw, share: text & (draw < share), "number at their first piece"),
        (without_cut, "where there is no text"),
        (once_chosen_all_chosen, "ends where the next one begins"),
        (lambda *given: given[1] & ~SOLUTION["whole_words"](*given), "below the share"),
        (lambda *given: 1.0 * SOLUTION["whole_words"](*given), "a boolean array; it is float64"),
        (lambda *given: SOLUTION["whole_words"](*given)[0], "should have (4, 8)"),
        (lambda *given: None, "is its `return` missing"),
    ],
)
def test_a_wrong_choice_of_words_is_told_so(answer, says):
    assert says in only_wrong("ex23", "whole_words", whole_words=answer)


def test_a_choice_of_words_written_as_a_loop_passes():
    def looping(begins, text, draw, share):
        chosen = np.zeros(text.shape, bool)
        for b, t in np.argwhere(text):
            chosen[b, t] = draw[b, t] < share if begins[b, t] else chosen[b, t - 1]
        return chosen

    assert verdicts("ex23", whole_words=looping)["whole_words"].status == "right"


def read_at(place_of, ask_ends=False):
    """The answer that hides one piece in each row and reads what ``place_of`` says."""

    def score_by_blanks(log_probabilities, ids, mask):
        place = np.arange(len(ids)) if ask_ends else np.arange(1, len(ids) - 1)
        rows = np.where(np.arange(len(ids)) == place[:, None], mask, ids)
        return log_probabilities(rows)[np.arange(len(place)), place_of(place), ids[place]].sum()

    return score_by_blanks


def hiding(hide):
    """The answer that asks all at once, of the ids that ``hide`` makes."""

    def score_by_blanks(log_probabilities, ids, mask):
        place = np.arange(1, len(ids) - 1)
        return log_probabilities(hide(ids, mask)[None])[0, place, ids[place]].sum()

    return score_by_blanks


def all_hidden(ids, mask):
    return np.array([ids[0], *[mask] * (len(ids) - 2), ids[-1]])


def asked_in_all_rows(log_probabilities, ids, mask):
    place = np.arange(1, len(ids) - 1)
    rows = np.where(np.arange(len(ids)) == place[:, None], mask, ids)
    return log_probabilities(rows)[:, place, ids[place]].sum()


def asking_for_mask(log_probabilities, ids, mask):
    def of_mask(rows):
        found = log_probabilities(rows)
        return np.broadcast_to(found[..., [mask]], found.shape)

    return SOLUTION["score_by_blanks"](of_mask, ids, mask)


def one_after_the_other(log_probabilities, ids, mask):
    def one_row(rows):
        return np.concatenate([log_probabilities(row[None]) for row in rows])

    return SOLUTION["score_by_blanks"](one_row, ids, mask)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (hiding(lambda ids, mask: ids), "must be hidden"),
        (hiding(all_hidden), "one piece at a time"),
        (read_at(lambda place: place, ask_ends=True), "BOS and EOS are not asked for"),
        (read_at(lambda place: place - 1), "read at the same place"),
        (lambda f, ids, mask: SOLUTION["score_by_blanks"](f, ids, mask) / 4, "not the mean"),
        (lambda f, ids, mask: -SOLUTION["score_by_blanks"](f, ids, mask), "below 0"),
        (asked_in_all_rows, "at one place"),
        (asking_for_mask, "not for MASK"),
        (one_after_the_other, "was called 4 times"),
    ],
)
def test_a_wrong_score_of_a_sentence_is_told_why(answer, says):
    assert says in only_wrong("ex23", "score_by_blanks", score_by_blanks=answer)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda x, q, k, v: SOLUTION["first_row_attention"](x, q * 8**0.5, k, v), "by √D"),
        (lambda x, q, k, v: SOLUTION["first_row_attention"](x, q / 8**0.5, k, v), "by √D"),
        (lambda x, q, k, v: SOLUTION["first_row_attention"](x[:, ::-1], q, k, v), "position 0"),
    ],
)
def test_a_wrong_attention_of_the_first_row_is_told_so(answer, says):
    assert says in only_wrong("ex23", "first_row_attention", first_row_attention=answer)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda dx, *dw: (only_first(dx), *dw), "zero where it should not be"),
        (lambda dx, dq, dk, dv: (dx, dq, dk / 2, dv), "2 times too small"),
        (lambda dx, dq, dk, dv: (dx, dk, dq, dv), "dw_query"),
    ],
)
def test_a_wrong_gradient_of_the_first_row_is_diagnosed(change, says):
    def backward(dy, cache):
        return change(*SOLUTION["first_row_attention_backward"](dy, cache))

    said = only_wrong("ex23", "first_row_attention", first_row_attention_backward=backward)
    assert says in said


def only_first(dx):
    dx = dx.copy()
    dx[:, 1:] = 0
    return dx


def test_a_backward_without_the_path_through_the_query_is_diagnosed():
    def backward(dy, cache):
        dx, *others = SOLUTION["first_row_attention_backward"](dy, cache)
        x, w_query, *_ = cache
        dq = np.linalg.lstsq(x[:, 0].T, others[0], rcond=None)[0]  # dw_query = x₀ᵀ dq
        dx[:, 0] -= dq @ w_query.T
        return dx, *others

    said = only_wrong("ex23", "first_row_attention", first_row_attention_backward=backward)
    assert "dx: the path through `x[:, 0]`" in said
    assert "Only dx is wrong" in said
