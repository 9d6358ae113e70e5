"""Decoding against its definition: every prefix recomputed, every sentence by itself."""

from dataclasses import replace

import numpy as np
import pytest
from rounding import additions_of, assert_but_for_rounding
from strict_cupy import strict

from minitransformer import CPU, Device, Transformer, TransformerConfig
from minitransformer.core.backend import to_host
from minitransformer.core.workers import Workers
from minitransformer.data.text.vocabulary import BOS, EOS, PAD, UNK
from minitransformer.decoding import (
    IncrementalDecoder,
    beam_search,
    cross_attention,
    greedy,
    incremental,
    length_penalty,
    translate,
    translate_ids,
)
from minitransformer.decoding.hypothesis import Hypothesis
from minitransformer.decoding.incremental import BLOCK, Growing
from minitransformer.layers import attention

V = 9
SENTENCES = [[7, 4, 8, 5, EOS], [6, 6, EOS], [EOS]]  # the last without any text
SOURCE = np.array([ids + [PAD] * (5 - len(ids)) for ids in SENTENCES])
LIMITS = [20, 16, 12]  # 2 S + 10

STAND_IN = Device("stand-in", strict)
both_norms = pytest.mark.parametrize("norm", ["post", "pre"])
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def small_model(norm="pre", seed=0, *, words=V, device=CPU, dtype=np.float32, max_length=40):
    """A model with a mind: its translations differ, and end at many lengths or not at all."""
    sizes = dict(d_model=8, num_heads=2, d_ff=12, num_encoder_layers=2, num_decoder_layers=2)
    config = TransformerConfig(V, words, norm=norm, tying="none", max_length=max_length, **sizes)
    model = Transformer(config, seed)
    rng = np.random.default_rng(seed)
    model.flat.data += 0.2 * rng.standard_normal(model.flat.data.size)
    model.output_projection.weight.data[EOS] *= 2
    model.to(device, dtype)
    # Sinusoids in so few columns are much alike, and the model would say one word for ever.
    table = model.positional_encoding.table
    table[:] = device.asarray(4 * rng.standard_normal(table.shape), dtype)
    return model


def constant_model(device=CPU, **probabilities):
    """A model that gives every word the same probability at all times."""
    p = [probabilities.get(word, 1e-9) for word in ("pad", "unk", "bos", "eos", "four")]
    model = small_model(words=len(p))
    model.decoder.norm.gamma.data[:] = 0
    model.decoder.norm.beta.data[:] = 1
    model.output_projection.weight.data[:] = np.log(p)[:, None] / model.config.d_model
    return model.to(device)


def log_p(model, source, prefixes):
    """log P of each word at each position (n, T, V) of n prefixes of one length, all recomputed."""
    target = np.array([(BOS, *words) for words in prefixes])
    logits = to_host(model.forward(np.array([source] * len(target)), target)[0])
    result = logits.astype(np.float64)
    result -= np.log(np.exp(result).sum(axis=-1, keepdims=True))
    result[..., [PAD, BOS]] = -np.inf
    return result


def log_p_of(model, source, words):
    return log_p(model, source, [words[:-1]])[0, range(len(words)), words].sum()


def said(hypothesis):
    return (*hypothesis.ids, EOS) if hypothesis.finished else tuple(hypothesis.ids)


def plain_greedy(model, source, limit):
    words = ()
    while len(words) < limit and EOS not in words:
        words = (*words, int(log_p(model, source, [words])[0, -1].argmax()))
    return words


def plain_beam_search(model, source, limit, beam_size, alpha, n_best):
    """[(words, score)] as beam.py describes it, to the last step and without any array."""
    beam, finished = [((), 0.0)], []  # words and their log P
    for _ in range(limit):
        if not beam:
            break
        gains = log_p(model, source, [words for words, _ in beam])[:, -1]
        extensions = [
            ((*words, word), total + gain)
            for (words, total), gains_of_one in zip(beam, gains, strict=True)
            for word, gain in enumerate(gains_of_one)
        ]
        best = sorted(extensions, key=lambda extension: -extension[1])[:beam_size]
        finished += [end for end in best if end[0][-1] == EOS]
        beam = [prefix for prefix in best if prefix[0][-1] != EOS]

    def ranked(ends):
        scored = [(words, total / ((5 + len(words)) / 6) ** alpha) for words, total in ends]
        return sorted(scored, key=lambda end: -end[1])

    return (ranked(finished) + ranked(beam))[:n_best]


def assert_found(model, hypotheses, expected):
    """That hypotheses say what [(words, score)] says."""
    assert [said(h) for h in hypotheses] == [words for words, _ in expected]
    scores = [h.score for h in hypotheses], [score for _, score in expected]
    assert_but_for_rounding(*as_of(model, *scores), additions_of(model))


def as_of(model, *numbers):
    """Numbers of Python in the type in which the model computed them."""
    return [np.array(each, model.flat.data.dtype) for each in numbers]


def test_the_models_of_these_tests_end_at_many_lengths_or_not_at_all():
    found = [
        h
        for seed in range(4)
        for n in ("post", "pre")
        for h in greedy(small_model(n, seed), SOURCE)
    ]
    assert {h.finished for h in found} == {True, False}
    assert len({len(h.ids) for h in found if h.finished}) > 4


# The cache


@both_norms
@both_types
def test_a_step_gives_what_decoding_the_whole_prefix_gives(norm, dtype, device):
    model = small_model(norm, device=device, dtype=dtype)
    target = np.random.default_rng(1).integers(1, V, (3, 2 * BLOCK + 2))
    expected = to_host(model.forward(SOURCE, target)[0])
    decoder = IncrementalDecoder(model, SOURCE)
    target = device.asarray(target)
    for t in range(target.shape[1]):
        logits = decoder.step(target[:, t : t + 1])
        assert logits.dtype == dtype
        assert_but_for_rounding(to_host(logits)[:, 0], expected[:, t], additions_of(model))


@both_norms
@both_types
def test_so_does_a_step_of_hypotheses_chosen_at_random(norm, dtype, device):
    model = small_model(norm, device=device, dtype=dtype)
    decoder = IncrementalDecoder(model, SOURCE)
    rng = np.random.default_rng(2)
    rows = np.arange(3)
    prefixes = np.zeros((3, 1, 0), dtype=int)
    for t, width in enumerate([3, 2, 4, 4, 1, 4] * 3):
        ids = rng.integers(1, V, prefixes.shape[:2])
        prefixes = np.concatenate([prefixes, ids[..., None]], axis=-1)
        logits = to_host(decoder.step(device.asarray(ids)))
        for w in range(prefixes.shape[1]):
            expected = to_host(model.forward(SOURCE[rows], prefixes[:, w])[0])[:, -1]
            assert_but_for_rounding(logits[:, w], expected, additions_of(model))

        parents = rng.integers(0, prefixes.shape[1], (len(rows), width))
        prefixes = np.take_along_axis(prefixes, parents[..., None], axis=1)
        decoder.select(device.asarray(parents))
        if t in (4, 9):
            kept = [2, 0] if t == 4 else [1]  # then sentence 2 comes first, and then it is gone
            rows, prefixes = rows[kept], prefixes[kept]
            decoder.keep(device.asarray(kept))


@pytest.mark.parametrize("together", [1, 5, 10, 14])
def test_sources_encoded_some_at_a_time_are_the_same_memory(together, monkeypatch):
    model = small_model(dtype=np.float64)
    start = np.full((3, 1), BOS)
    encode, lengths = Transformer.encode, []

    def counting(model, source, mask):
        lengths.append(len(source))
        return encode(model, source, mask)

    monkeypatch.setattr(Transformer, "encode", counting)
    expected = IncrementalDecoder(model, SOURCE).step(start)
    monkeypatch.setattr(incremental, "ENCODED_TOGETHER", together)
    found = IncrementalDecoder(model, SOURCE).step(start)
    assert_but_for_rounding(found, expected, additions_of(model))
    assert lengths == ([3, 2, 1] if together >= 10 else [3, 1, 1, 1])


def test_the_cache_moves_once_in_a_block_of_positions():
    growing = Growing()
    steps = np.random.default_rng(0).standard_normal((3 * BLOCK, 2, 3, 4, 5))  # W = 4
    storages = []
    for t, x in enumerate(steps):
        growing.append(x, -x)
        keys = np.concatenate(steps[: t + 1], axis=2)
        assert np.array_equal(growing.arrays, [keys, -keys])
        if not any(storage is growing.storage for storage in storages):
            storages.append(growing.storage)
    assert len(storages) == 3


# Searching


@both_norms
@pytest.mark.parametrize("seed", range(4))
def test_greedy_search_finds_what_recomputing_every_prefix_finds(norm, seed, device):
    model = small_model(norm, seed, device=device)
    found = greedy(model, SOURCE)
    expected = [plain_greedy(model, *of_one) for of_one in zip(SENTENCES, LIMITS, strict=True)]
    totals = [log_p_of(model, *of_one) for of_one in zip(SENTENCES, expected, strict=True)]
    penalties = [((5 + len(words)) / 6) ** 0.6 for words in expected]
    log_p_found = as_of(model, [h.log_probability for h in found], totals)
    assert_but_for_rounding(*log_p_found, additions_of(model))
    assert_found(model, found, list(zip(expected, np.divide(totals, penalties), strict=True)))


@both_norms
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_of_one_is_greedy_search(norm, seed):
    model = small_model(norm, seed)
    expected = [[h] for h in greedy(model, SOURCE)]
    assert beam_search(model, SOURCE, beam_size=1) == expected


@both_norms
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize(("beam_size", "n_best"), [(2, 1), (3, 3), (12, 5)])
def test_beam_search_finds_what_its_definition_says(norm, alpha, beam_size, n_best, device):
    options = dict(beam_size=beam_size, alpha=alpha, n_best=n_best)
    model = small_model(norm, seed=3, device=device)
    found = beam_search(model, SOURCE, **options)
    for hypotheses, source, limit in zip(found, SENTENCES, LIMITS, strict=True):
        expected = plain_beam_search(model, source, limit, **options)
        assert_found(model, hypotheses, expected)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("seed", range(2))
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


@pytest.mark.parametrize("search", [greedy, beam_search])
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


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_step_waits_for_the_device_once(search, rows):
    model = small_model(device=STAND_IN)
    with strict.record() as record:
        search(model, SOURCE)
    assert record.waits == len(rows) > 2


# Attention


@both_norms
def test_attention_is_that_of_the_step_that_chose_the_token(norm, monkeypatch):
    used = []
    attend = attention.scaled_dot_product_attention

    def watched(*args):
        y, cache = attend(*args)
        used.append(cache[-1][0, :, 0])  # (H, S)
        return y, cache

    step = IncrementalDecoder.step

    def watched_step(decoder, ids):
        with monkeypatch.context() as patch:
            patch.setattr(attention, "scaled_dot_product_attention", watched)
            return step(decoder, ids)

    monkeypatch.setattr(IncrementalDecoder, "step", watched_step)
    model = small_model(norm, seed=1)
    (hypothesis,) = greedy(model, SOURCE[:1], attention=True)
    length = len(said(hypothesis))
    assert length > 2
    in_cross_attention = np.stack(used[1::2]).reshape(length, 2, 2, 5)  # (T, layers, H, S)
    expected = in_cross_attention.transpose(1, 2, 0, 3)
    assert_but_for_rounding(hypothesis.attention, expected, additions_of(model))


def test_every_hypothesis_has_its_own_attention_without_padding(device):
    model = small_model("post", device=device)
    found = beam_search(model, SOURCE, beam_size=3, n_best=3, attention=True)
    assert {h.finished for hypotheses in found for h in hypotheses} == {True, False}
    for hypotheses, source in zip(found, SENTENCES, strict=True):
        for hypothesis in hypotheses:
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


# Any sentences


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
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_workers_and_the_size_of_batches_change_no_translation(norm, beam_size, monkeypatch):
    monkeypatch.setattr(translate, "SMALLEST_BATCH", 20)
    model = small_model(norm, seed=3)
    sources = random_sources(60)

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


def test_an_error_in_a_worker_reaches_the_caller():
    sources = [[4, EOS]] * 600 + [[4, V]]
    with pytest.raises(ValueError, match="outside 0 <= id < 9"):
        translate_ids(small_model(), sources, beam_size=1, workers=Workers(2))


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
@pytest.mark.parametrize(
    ("sources", "error", "message"),
    [
        ([[4] * 41], ValueError, "a sequence of 41 tokens is longer than the 40 the model allows"),
        ([[4, EOS], []], ValueError, "sentence 1 of 2 has no tokens; even an empty one is given"),
        ([[4, V]], ValueError, "token ids run from 4 to 9, outside 0 <= id < 9"),
    ],
)
def test_a_source_that_cannot_be_translated_is_refused(sources, error, message, beam_size):
    with pytest.raises(error, match=message):
        translate_ids(small_model(), sources, beam_size=beam_size)


@pytest.mark.parametrize(
    ("options", "message"),
    [
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
    ],
)
def test_an_option_out_of_range_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        translate_ids(small_model(), SENTENCES, **options)


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_source_must_be_a_matrix(search):
    with pytest.raises(ValueError, match=r"source must be \(B, S\).* its shape is \(5,\)"):
        search(small_model(), SOURCE[0])


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_model_of_nan_is_an_error_and_no_translation(search, device):
    model = small_model()
    model.decoder.norm.beta.data[0] = np.nan
    with pytest.raises(FloatingPointError, match="probabilities are NaN"):
        search(model.to(device), SOURCE)
