"""Greedy and beam search against their definitions: their limits, and the attention they keep.

On models of other kinds they are tried in test_states.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from on_device import STAND_IN
from plain_search import (
    LIMITS,
    SENTENCES,
    SOURCE,
    as_of,
    assert_found,
    constant_model,
    log_p_of,
    plain_beam_search,
    plain_greedy,
    said,
    small_model,
)
from rounding import additions_of, assert_but_for_rounding
from strict_cupy import strict

from minitransformer.data.text.vocabulary import BOS, EOS, PAD, UNK
from minitransformer.decoding import (
    IncrementalDecoder,
    beam_search,
    cross_attention,
    greedy,
    length_penalty,
    translate_ids,
)
from minitransformer.decoding.hypothesis import Hypothesis, word_scores

both_searches = pytest.mark.parametrize("search", [greedy, beam_search])


def test_the_models_of_these_tests_end_at_many_lengths_or_not_at_all():
    found = [
        h
        for seed in range(4)
        for n in ("post", "pre")
        for h in greedy(small_model(n, seed), SOURCE)
    ]
    assert {h.finished for h in found} == {True, False}
    assert len({len(h.ids) for h in found if h.finished}) > 4


def test_logits_may_be_as_large_as_they_like():
    logits = np.random.default_rng(0).standard_normal((2, 9))
    near, far = (np.subtract(*word_scores(logits + shift, PAD)) for shift in (0.0, 1e4))
    np.testing.assert_allclose(far, near, rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_greedy_search_finds_what_recomputing_every_prefix_finds(seed, device):
    model = small_model(seed=seed, device=device)
    expected = [plain_greedy(model, *of_one) for of_one in zip(SENTENCES, LIMITS, strict=True)]
    assert_found(model, greedy(model, SOURCE), expected)


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_of_one_is_greedy_search(seed):
    model = small_model("post", seed)
    expected = [[h] for h in greedy(model, SOURCE)]
    assert beam_search(model, SOURCE, beam_size=1) == expected


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize(("beam_size", "n_best"), [(2, 1), (3, 3), (12, 5)])
def test_beam_search_finds_what_its_definition_says(alpha, beam_size, n_best, device):
    options = dict(beam_size=beam_size, alpha=alpha, n_best=n_best)
    model = small_model("post", seed=3, device=device)
    found = beam_search(model, SOURCE, **options)
    for hypotheses, source, limit in zip(found, SENTENCES, LIMITS, strict=True):
        expected = plain_beam_search(model, source, limit, **options)
        assert_found(model, hypotheses, expected)


@pytest.mark.parametrize(("alpha", "seed"), [(0.0, 0), (0.6, 1), (1.5, 0)])
def test_a_beam_wide_enough_finds_the_best_of_all_sequences(alpha, seed):
    model = small_model("post", seed, words=6, dtype=np.float64)  # UNK, EOS, 4 and 5
    limit, every = 4, 3**4 + 3**3  # so many extensions are there in the last step
    finished, unfinished = [], [()]
    for _ in range(limit):
        extended = [(*words, word) for words in unfinished for word in (UNK, EOS, 4, 5)]
        finished += [words for words in extended if words[-1] == EOS]
        unfinished = [words for words in extended if words[-1] != EOS]

    options = dict(beam_size=every, n_best=every, alpha=alpha, max_length=limit)
    for hypotheses, source in zip(beam_search(model, SOURCE, **options), SENTENCES, strict=True):
        expected = []
        for kind in (finished, unfinished):
            scored = [
                (words, log_p_of(model, source, words) / ((5 + len(words)) / 6) ** alpha)
                for words in kind
            ]
            expected += sorted(scored, key=lambda end: -end[1])
        assert_found(model, hypotheses, expected[:every])


@pytest.mark.parametrize(("alpha", "length"), [(0.0, 0), (0.6, 0), (3.0, LIMITS[0] - 1)])
def test_a_large_alpha_makes_long_translations_the_best(alpha, length):
    model = constant_model(four=0.55, eos=0.45)
    ((best,),) = beam_search(model, SOURCE[:1], beam_size=2, alpha=alpha)
    totals = [n * np.log(0.55) + np.log(0.45) for n in range(LIMITS[0])]
    scores = [totals[n] / ((6 + n) / 6) ** alpha for n in range(LIMITS[0])]
    assert scores[length] == max(scores)
    assert best.ids == [4] * length
    found = as_of(model, [best.score, best.log_probability], [scores[length], totals[length]])
    assert_but_for_rounding(*found, additions_of(model))


def test_the_length_penalty_is_that_of_equation_14():
    assert length_penalty(7, 0.6) == 2**0.6
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(25, 0) == 1


def test_with_alpha_1_the_score_is_a_mean_over_five_more_tokens_that_cost_nothing():
    def score(length, mean):
        return Hypothesis.of(np.full(length, UNK), length * mean, alpha=1.0).score

    for length in (1, 5, 95):
        assert score(length, -0.6) == pytest.approx(6 * -0.6 * length / (length + 5))
    assert score(95, -0.6) == pytest.approx(6 * -0.6, rel=0.06)  # long: nearly the mean
    assert score(5, -0.6) > score(10, -0.6)  # short: of equal means the shorter wins


def test_padding_and_the_start_symbol_are_never_said_and_the_unknown_word_is(device):
    model = constant_model(device, pad=0.4, bos=0.3, unk=0.2, four=0.07, eos=0.03)
    assert [h.ids for h in greedy(model, SOURCE, max_length=2)] == 3 * [[UNK, UNK]]
    for hypotheses in beam_search(model, SOURCE, beam_size=9, n_best=7, max_length=2):
        unfinished = [[UNK, UNK], [UNK, 4], [4, UNK], [4, 4]]  # two of the same probability
        assert sorted(h.ids for h in hypotheses) == sorted([[], [UNK], [4], *unfinished])


# Its limits


@pytest.mark.parametrize("beam_size", [1, 2])
@pytest.mark.parametrize(
    ("asked_for", "of_model", "limits"),
    [(None, 40, LIMITS), (None, 14, [14, 14, 12]), (7, 40, [7, 7, 7]), (1, 40, [1, 1, 1])],
)
def test_no_more_tokens_are_chosen_than_allowed(beam_size, asked_for, of_model, limits):
    model = constant_model(four=0.9, unk=0.06, pad=0.04)
    model.config = replace(model.config, max_length=of_model)
    best = translate_ids(model, SENTENCES, beam_size=beam_size, max_length=asked_for)
    for (hypothesis,), limit in zip(best, limits, strict=True):
        assert hypothesis.ids == [4] * limit
        assert not hypothesis.finished
        found = as_of(model, hypothesis.log_probability, limit * np.log(0.9))
        assert_but_for_rounding(*found, additions_of(model))


def test_the_end_symbol_may_be_the_last_token_allowed():
    model = constant_model(four=0.3, eos=0.7)
    for search in (greedy, beam_search):
        assert said(np.ravel(search(model, SOURCE[:1], max_length=1))[0]) == (EOS,)


def test_there_are_fewer_than_the_n_best_where_there_are_no_more_sequences():
    model = constant_model(four=0.5, eos=0.3, unk=0.2)
    ((*found,),) = beam_search(model, SOURCE[:1], beam_size=9, n_best=9, max_length=1)
    assert [said(h) for h in found] == [(EOS,), (4,), (UNK,)]


def test_what_is_finished_comes_before_what_is_not():
    model = constant_model(four=0.9, eos=0.1)
    ((first, second, third),) = beam_search(model, SOURCE[:1], beam_size=3, n_best=3, max_length=2)
    assert [first.finished, second.finished, third.finished] == [True, True, False]
    assert third.score > first.score > second.score


@pytest.fixture
def rows(monkeypatch):
    """How many sentences each step of a search decodes."""
    counted = []
    step = IncrementalDecoder.step

    def counting(decoder, ids):
        counted.append(len(ids))
        return step(decoder, ids)

    monkeypatch.setattr(IncrementalDecoder, "step", counting)
    return counted


@both_searches
def test_a_finished_sentence_leaves_the_batch(search, rows):
    search(constant_model(four=0.9), SOURCE)
    assert rows == [3] * 12 + [2] * 4 + [1] * 4


def test_a_search_ends_when_nothing_better_can_come(rows):
    model = constant_model(four=0.2, eos=0.8)
    # After one step log 0.8 = -0.22 is found, and out of reach of log 0.2 / (25 / 6)^0.6 = -0.68.
    beam_search(model, SOURCE, beam_size=2)
    assert rows == [3]
    rows.clear()
    # The second best has -1.67 after two steps, and 2 log 0.2 / (L / 6 + 5 / 6)^0.6 is -1.37, -1.52
    # and -1.72 for the three limits L.
    beam_search(model, SOURCE, beam_size=2, n_best=2)
    assert rows == [3, 3, 2]


@both_searches
def test_a_step_waits_for_the_device_once(search, rows):
    model = small_model(device=STAND_IN)
    with strict.record() as record:
        search(model, SOURCE)
    assert record.waits == len(rows) > 2


# Attention


def test_every_hypothesis_has_its_own_attention_without_padding(device):
    model = small_model("post", device=device)
    greedily = greedy(model, SOURCE, attention=True)
    found = beam_search(model, SOURCE, beam_size=3, n_best=3, attention=True)
    assert {h.finished for hypotheses in found for h in hypotheses} == {True, False}
    for first, hypotheses, source in zip(greedily, found, SENTENCES, strict=True):
        for hypothesis in (first, *hypotheses):
            target = [[BOS, *said(hypothesis)[:-1]]]
            expected = cross_attention(model, np.array([source]), np.array(target))[:, 0]
            assert hypothesis.attention.shape == (2, 2, len(said(hypothesis)), len(source))
            assert_but_for_rounding(hypothesis.attention, expected, additions_of(model))
            sums = hypothesis.attention.sum(axis=-1)
            assert_but_for_rounding(sums, np.ones_like(sums), len(source))


def test_attention_is_only_there_if_asked_for():
    model = small_model()
    assert greedy(model, SOURCE)[0].attention is None
    assert beam_search(model, SOURCE)[0][0].attention is None


# What is refused


@both_searches
def test_a_source_must_be_a_matrix(search):
    with pytest.raises(ValueError, match=r"source must be \(B, S\).* its shape is \(5,\)"):
        search(small_model(), SOURCE[0])


@both_searches
def test_a_model_of_nan_is_an_error_and_no_translation(search, device):
    model = small_model()
    model.decoder.norm.beta.data[0] = np.nan
    with pytest.raises(FloatingPointError, match="probabilities are NaN"):
        search(model.to(device), SOURCE)
