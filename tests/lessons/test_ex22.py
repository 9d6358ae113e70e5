"""Plausible wrong answers to exercise 22 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of, verdicts

SOLUTION = functions_in(solution_of("ex22"))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda logs, pieces: -sum(logs) / len("".join(pieces)), "a bit is ln 2"),
        (lambda logs, pieces: -np.mean(logs) / np.log(2), "for each piece"),
        (lambda logs, pieces: np.sum(np.log2(np.exp(logs))) / len("".join(pieces)), "positive"),
    ],
)
def test_bits_of_another_kind_are_told_which(answer, says):
    assert says in only_wrong("ex22", "bits_per_character", bits_per_character=answer)


def temperature_by(entropy):
    """The answer that halves an interval for ln τ, with another entropy."""

    def temperature_of(logits, perplexity):
        low, high = np.log(1e-6), np.log(1e6)
        for _ in range(80):
            middle = (low + high) / 2
            below = entropy(logits, np.exp(middle)) < np.log(perplexity)
            low, high = (middle, high) if below else (low, middle)
        return np.exp(low)

    return temperature_of


def entropy(logits, tau):
    z = (logits - logits.max()) / tau
    p = np.exp(z) / np.exp(z).sum()
    return -(p * np.log(np.maximum(p, 1e-300))).sum()


def overflowing(logits, tau):
    e = np.exp(logits / tau)
    p = e / e.sum()
    return -(p * np.log(p)).sum()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (temperature_by(lambda z, tau: entropy(z, tau) / np.log(2)), "in bits"),
        (lambda z, k: 1 / SOLUTION["temperature_of"](z, k), "divided by τ"),
        (temperature_by(overflowing), "the largest logit is subtracted first"),
        (lambda z, k: 0.0, "must be a positive number; it is 0.0"),
        (lambda z, k: None, "is its `return` missing"),
    ],
)
def test_a_wrong_temperature_is_told_why(answer, says):
    assert says in only_wrong("ex22", "temperature_of", temperature_of=answer)


def pairs(ids, k=-1):
    return (ids[:, :, None] == ids[:, None, :]) & np.tri(ids.shape[1], k=k, dtype=bool)


def shifted(pairs):
    weights = np.zeros(pairs.shape)
    weights[:, :, 1:] = pairs[:, :, :-1]
    return weights


def shared(weights):
    return weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1)


def latest(weights):
    """All the weight on the last of the places."""
    index = np.arange(weights.shape[-1])
    last = np.where(weights > 0, index, -1).max(axis=-1, keepdims=True)
    return 1.0 * (index == last)


def undefined(weights):
    with np.errstate(invalid="ignore"):
        return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda ids: shared(1.0 * pairs(ids)), "not at the token itself"),
        (lambda ids: shared(shifted(pairs(ids, k=0))), "must not look ahead"),
        (lambda ids: shifted(pairs(ids)), "sum to 1"),
        (lambda ids: undefined(shifted(pairs(ids))), "not 0 / 0"),
        (lambda ids: latest(shifted(pairs(ids))), "share the weight"),
        (lambda ids: shared(shifted(pairs(ids)))[0], "should have (2, 7, 7)"),
    ],
)
def test_an_induction_head_that_looks_elsewhere_is_told_so(answer, says):
    assert says in only_wrong("ex22", "induction_attention", induction_attention=answer)


def step_with(mask_of):
    """The answer with another mask, made from the numbers of new and of all positions."""

    def attention_step(query, key, value, kept):
        if kept is not None:
            key = np.concatenate([kept[0], key], axis=1)
            value = np.concatenate([kept[1], value], axis=1)
        z = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
        z = np.where(mask_of(query.shape[1], key.shape[1]), z, -np.inf)
        e = np.exp(z - z.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ value, (key, value)

    return attention_step


def forgetful(query, key, value, kept):
    y, _ = SOLUTION["attention_step"](query, key, value, None)
    return y, ()


def changing(query, key, value, kept):
    """One list for all who go on from it."""
    kept = [] if kept is None else kept
    kept.append((key, value))
    before = [np.concatenate(arrays, axis=1) for arrays in zip(*kept[:-1], strict=True)]
    y, _ = SOLUTION["attention_step"](query, key, value, before or None)
    return y, kept


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (forgetful, "may be looked at, too"),
        (step_with(lambda new, total: np.ones((new, total), bool)), "those after it"),
        (step_with(lambda new, total: np.tri(new, total, dtype=bool)), "not position 0"),
        (changing, "was kept changed"),
        (lambda query, key, value, kept: value, "must return y and what to keep"),
    ],
)
def test_a_step_of_attention_with_a_mistake_is_told_which(answer, says):
    assert says in only_wrong("ex22", "attention_step", attention_step=answer)


def test_a_right_step_with_a_whole_mask_cut_to_its_last_rows_passes():
    steps = step_with(lambda new, total: np.tri(total, dtype=bool)[total - new :])
    assert verdicts("ex22", attention_step=steps)["attention_step"].status == "right"
