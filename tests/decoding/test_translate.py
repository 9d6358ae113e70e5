"""Sentences of any length and number: batches of them, workers that share these, and odd input."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from plain_search import (
    SENTENCES,
    SOURCE,
    V,
    assert_found,
    constant_model,
    plain_beam_search,
    said,
    small_model,
)
from rounding import assert_but_for_rounding

from minitransformer.core.workers import Workers
from minitransformer.data.text.vocabulary import EOS, PAD, UNK
from minitransformer.decoding import beam_search, greedy, translate, translate_ids
from minitransformer.decoding.hypothesis import check_alpha


def random_sources(number):
    rng = np.random.default_rng(4)
    return [[*rng.integers(4, V, length), EOS] for length in rng.integers(0, 12, number)]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_many_sentences_are_translated_as_each_alone_and_in_their_order(beam_size):
    model = small_model(seed=3, dtype=np.float64)
    sources = random_sources(20)
    found = translate_ids(model, sources, beam_size=beam_size, n_best=beam_size, max_tokens=60)
    for hypotheses, source in zip(found, sources, strict=True):
        (alone,) = beam_search(model, np.array([source]), beam_size=beam_size, n_best=beam_size)
        assert_found(model, hypotheses, [(said(h), h.score) for h in alone])


@pytest.mark.parametrize("beam_size", [1, 3])
def test_batches_are_full_and_hold_sentences_of_like_length(beam_size, monkeypatch):
    shapes, padding = [], []

    def record(model, source, **options):
        shapes.append(source.shape)
        padding.append((source == PAD).sum())
        return [[None]] * len(source)

    monkeypatch.setattr(translate, "greedy" if beam_size == 1 else "beam_search", record)
    sources = [*random_sources(200), [4] * 200]
    translate_ids(small_model(), sources, beam_size=beam_size, max_tokens=120)
    assert shapes[0] == (1, 200)  # too long for any batch, so alone
    for batch, length in shapes[1:-1]:
        assert 120 - length * beam_size < batch * length * beam_size <= 120
    assert sum(padding) < 0.1 * sum(map(len, sources))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_workers_and_the_size_of_batches_change_no_translation(beam_size, monkeypatch):
    monkeypatch.setattr(translate, "SMALLEST_BATCH", 20)
    model = small_model(seed=3)
    sources = random_sources(40)

    def translated(**cut):
        return translate_ids(model, sources, beam_size=beam_size, n_best=beam_size, **cut)

    expected = [[(said(h), h.score) for h in best] for best in translated()]
    for cut in (dict(max_tokens=40), dict(workers=Workers(2)), dict(workers=Workers(3))):
        for hypotheses, expected_ones in zip(translated(**cut), expected, strict=True):
            assert_found(model, hypotheses, expected_ones)


@pytest.fixture
def batch_sizes(monkeypatch):
    """The padded tokens, times the beam, of the batches that sources are cut into."""

    def sizes_of(sources, beam_size, **options):
        sizes = []

        def record(model, source, **options):
            sizes.append(source.size * beam_size)
            return [[None]] * len(source)

        for search in ("greedy", "beam_search"):
            monkeypatch.setattr(translate, search, record)
        translate_ids(small_model(), sources, beam_size=beam_size, **options)
        return sizes

    return sizes_of


@pytest.mark.parametrize("beam_size", [1, 3])
def test_every_worker_has_two_batches_unless_they_would_be_tiny(batch_sizes, beam_size):
    sources = [[4] * 10] * 360
    for count, batches in ((2, 4), (4, 4 if beam_size == 1 else 8)):
        sizes = batch_sizes(sources, beam_size, workers=Workers(count))
        assert len(sizes) == batches
        assert len(set(sizes)) == 1
    sizes = batch_sizes(sources, beam_size, workers=Workers(100))
    assert len(sizes) == np.ceil(3600 * beam_size / translate.SMALLEST_BATCH)
    assert max(sizes) == translate.SMALLEST_BATCH
    assert max(batch_sizes(sources, beam_size, workers=Workers(2), max_tokens=300)) == 300


@pytest.mark.parametrize("max_tokens", [700, 10_000])
@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("count", [2, 3])
def test_all_workers_end_together(batch_sizes, count, beam_size, max_tokens, monkeypatch):
    monkeypatch.setattr(translate, "SMALLEST_BATCH", 10)
    sources = [[4] * (1 + n % 15) for n in range(600)]
    sizes = batch_sizes(sources, beam_size, max_tokens=max_tokens, workers=Workers(count))
    work = [0] * count
    for size in sizes:
        work[work.index(min(work))] += size  # whoever is done takes the next batch
    assert max(work) < 1.05 * sum(work) / count
    assert len(sizes) % count == 0
    assert max(sizes) <= max_tokens


@pytest.mark.parametrize("beam_size", [1, 3])
def test_padding_is_what_the_model_says_it_is(beam_size):
    """A model whose words have changed places, among them the padding, says the same in them."""
    model, other = (small_model(seed=4, dtype=np.float64) for _ in range(2))
    other.config = replace(model.config, pad_id=7)
    changed = np.arange(V)
    changed[[PAD, 7]] = 7, PAD
    for module in (other.source_embedding, other.target_embedding, other.output_projection):
        module.weight.data = module.weight.data[changed]
    sources = random_sources(30)
    in_others = [[changed[i] for i in ids] for ids in sources]
    options = dict(beam_size=beam_size, attention=True)
    expected = translate_ids(model, sources, **options)
    for (there,), (here,) in zip(translate_ids(other, in_others, **options), expected, strict=True):
        assert there.ids == [changed[i] for i in here.ids]
        assert_but_for_rounding(there.score, here.score)
        assert_but_for_rounding(there.attention, here.attention)


def test_the_options_reach_the_search():
    model = constant_model(four=0.9, eos=0.1)
    sources = [SENTENCES[0]]
    options = dict(alpha=1.0, max_length=3, attention=True)
    for beam_size in (1, 2):
        ((found, *_),) = translate_ids(model, sources, beam_size=beam_size, **options)
        (expected,) = beam_search(model, SOURCE[:1], beam_size=beam_size, **options)
        assert found == expected[0]
        assert np.array_equal(found.attention, expected[0].attention)


# Odd input


def test_no_sentences_are_translated_to_none():
    model = small_model()
    nothing = np.zeros((0, 5), dtype=int)
    assert translate_ids(model, []) == greedy(model, nothing) == beam_search(model, nothing) == []


def test_unknown_words_and_nothing_but_the_end_symbol_are_sources_like_any_other():
    model = small_model(dtype=np.float64)
    for source in ([UNK] * 4 + [EOS], [EOS]):
        for beam_size in (1, 3):
            ((found,),) = translate_ids(model, [source], beam_size=beam_size)
            expected = plain_beam_search(model, source, 2 * len(source) + 10, beam_size, 0.6, 1)
            assert_found(model, [found], expected)


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize(("sources", "error", "message"), [
    ([[4] * 41], ValueError, "a sequence of 41 tokens is longer than the 40 the model allows"),
    ([[4, EOS], []], ValueError, "sentence 1 of 2 has no tokens; even an empty one is given"),
    ([[], [4, EOS]], ValueError, "sentence 0 of 2 has no tokens"),
    ([[4.9, EOS]], TypeError, "token ids must be integers; their dtype is float64"),
    ([[4, V]], ValueError, "token ids run from 4 to 9, outside 0 <= id < 9"),
])  # fmt: skip
def test_a_source_that_cannot_be_translated_is_refused(sources, error, message, beam_size):
    with pytest.raises(error, match=message):
        translate_ids(small_model(), sources, beam_size=beam_size)


@pytest.mark.parametrize(("options", "message"), [
    (dict(beam_size=0), "beam_size=0 must be a whole number, 1 or more"),
    (dict(beam_size=2, n_best=3), "n_best=3 and beam_size=2 must obey 1 <= n_best"),
    (dict(beam_size=1, n_best=2), "n_best=2 and beam_size=1"),
    (dict(n_best=0), "n_best=0 must be a whole number, 1 or more"),
    (dict(alpha=-0.1), "alpha=-0.1 must be 0"),
    (dict(alpha=float("nan")), "alpha=nan must be 0"),
    (dict(alpha=-0.1, beam_size=1), "alpha=-0.1 must be 0"),
    (dict(beam_size=2.5), "beam_size=2.5 must be a whole number, 1 or more"),
    (dict(beam_size=4, n_best=1.5), "n_best=1.5 must be a whole number, 1 or more"),
    (dict(max_length=0), "max_length=0 must be a whole number, 1 or more"),
    (dict(max_length=0, beam_size=1), "max_length=0 must be a whole number, 1 or more"),
    (dict(max_length=2.5, beam_size=1), "max_length=2.5 must be a whole number, 1 or more"),
])  # fmt: skip
def test_an_option_out_of_range_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        translate_ids(small_model(), SENTENCES, **options)


def test_alpha_may_grow_until_the_penalty_of_the_longest_overflows():
    longest = small_model().config.max_length
    largest = math.log(sys.float_info.max) / math.log((5 + longest) / 6)
    check_alpha(0.999 * largest, longest)
    with pytest.raises(ValueError, match="larger than any number"):
        check_alpha(1.001 * largest, longest)
