"""Batches: every pair once, within the limit of tokens, little padding, repeatable."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitransformer.data.text.batches import (
    BatchReport,
    LabelledBatch,
    encode_pairs,
    framed,
    group,
    make_batches,
    pad,
)
from minitransformer.data.text.vocabulary import BOS, EOS, PAD, Vocabulary

PIECE = st.integers(EOS + 1, 40)
PAIRS = st.lists(st.tuples(st.lists(PIECE, max_size=9), st.lists(PIECE, max_size=9)), max_size=40)


def captions(count=3000, seed=0):
    """Pairs of ids with lengths like those of captions, and alike on both sides but not equal."""
    rng = np.random.default_rng(seed)
    source = np.clip(rng.lognormal(2.7, 0.35, count), 3, 60)
    target = np.clip(source * rng.normal(1, 0.2, count), 3, 60)
    ids = rng.integers(EOS + 1, 8000, (count, 2, 60))
    return [
        (row[0, : int(s)].tolist(), row[1, : int(t)].tolist())
        for row, s, t in zip(ids, source, target, strict=True)
    ]


def contents(batches):
    """The pairs in the batches, one after the other, as tuples."""
    return [
        (tuple(source[source > EOS].tolist()), tuple(labels[labels > EOS].tolist()))
        for batch in batches
        for source, labels in zip(batch.source, batch.labels, strict=True)
    ]


def arrays(batches):
    return [(b.source.tolist(), b.target.tolist(), b.labels.tolist()) for b in batches]


def longest(batch):
    return max(batch.source.shape[1], batch.target.shape[1])


def test_a_batch_looks_like_this():
    (batch,) = make_batches([([7, 8, 9], [5]), ([4], [6, 7])], max_tokens=14)
    # Both sides padded on the right; the target begins with BOS, source and labels end with EOS.
    assert batch.source.tolist() == [[4, EOS, PAD, PAD], [7, 8, 9, EOS]]
    assert batch.target.tolist() == [[BOS, 6, 7], [BOS, 5, PAD]]
    assert batch.labels.tolist() == [[6, 7, EOS], [5, EOS, PAD]]
    assert make_batches([], max_tokens=14) == []
    assert batch.num_tokens == 5
    assert batch.size == 14
    assert batch.padding == 3
    assert all(a.dtype == np.int32 for a in (batch.source, batch.target, batch.labels))


def test_an_empty_side_is_just_its_end():
    (batch,) = make_batches([([], [])], max_tokens=2)
    assert arrays([batch]) == [([[EOS]], [[BOS]], [[EOS]])]
    assert batch.num_tokens == 1


@given(PAIRS, st.integers(20, 90), st.sampled_from([None, 0, 1]))
def test_every_pair_is_in_exactly_one_batch_within_the_limit(pairs, max_tokens, seed):
    rng = None if seed is None else np.random.default_rng(seed)
    batches = make_batches(pairs, max_tokens, rng)
    assert Counter(contents(batches)) == Counter((tuple(s), tuple(t)) for s, t in pairs)
    for batch in batches:
        assert batch.size <= max_tokens
        assert batch.num_tokens == (batch.labels != PAD).sum()
        assert (batch.target[:, 0] == BOS).all()
        assert (batch.source[:, -1] != PAD).any()  # no wider than its longest pair
        assert (batch.labels[:, -1] != PAD).any()
        assert ((batch.labels == EOS).sum(axis=1) == 1).all()
        decoded = np.where(batch.labels == EOS, PAD, batch.labels)[:, :-1]
        np.testing.assert_array_equal(batch.target[:, 1:], decoded)


@given(PAIRS, st.integers(20, 90))
def test_a_batch_ends_only_where_the_next_pair_does_not_fit(pairs, max_tokens):
    batches = make_batches(pairs, max_tokens)
    for batch, after in pairwise(batches):
        S = max(batch.source.shape[1], (after.source[0] != PAD).sum())
        T = max(batch.target.shape[1], (after.target[0] != PAD).sum())
        assert (len(batch.source) + 1) * (S + T) > max_tokens


def test_captions_are_padded_less_than_a_tenth_and_batches_are_full():
    batches = make_batches(captions(), 4096, np.random.default_rng(0))
    report = BatchReport.of(batches)
    assert report.padding < 0.1
    assert report.batches <= 1.1 * report.tokens / 4096 + 1


def test_the_same_generator_makes_the_same_batches():
    first, again = (make_batches(captions(), 1024, np.random.default_rng(3)) for _ in range(2))
    assert arrays(first) == arrays(again)


def test_every_epoch_has_other_batches_in_another_order():
    rng = np.random.default_rng(0)
    first, second = (make_batches(captions(), 1024, rng) for _ in range(2))
    together = [{frozenset(contents([batch])) for batch in epoch} for epoch in (first, second)]
    assert len(together[0] & together[1]) < len(first) / 10
    lengths = [[longest(batch) for batch in epoch] for epoch in (first, second)]
    assert lengths[0] != lengths[1]
    assert all(length != sorted(length) for length in lengths)


def test_without_a_generator_batches_go_from_short_to_long():
    batches = make_batches(captions(), 1024)
    assert arrays(batches) == arrays(make_batches(captions(), 1024))
    lengths = [longest(batch) for batch in batches]
    assert lengths == sorted(lengths)


def test_the_pairs_are_left_as_they_were():
    pairs = captions(50)
    make_batches(pairs, 1024, np.random.default_rng(0))
    assert pairs == captions(50)


def test_a_pair_larger_than_a_batch_is_refused_with_what_to_change():
    pairs = [([5] * 9, [5] * 10), ([5], [5])]
    assert len(make_batches(pairs, max_tokens=21)) == 2
    with pytest.raises(
        ValueError, match=r"a pair has 21 tokens .*max_tokens=20; .* max_length to 10"
    ):
        make_batches(pairs, max_tokens=20)


def test_the_report_adds_the_batches_up():
    batches = make_batches([([7, 8, 9], [5]), ([4], [6, 7]), ([5] * 6, [5] * 6)], max_tokens=14)
    report = BatchReport.of(batches)
    assert (report.batches, report.pairs, report.tokens) == (2, 3, 25)
    assert report.padding == 3 / 28
    assert str(report) == "3 pairs in 2 batches, 25 tokens and 10.7% padding"
    assert BatchReport.of([]).padding == 0


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.train(["ab ab ba a b c d e"], 14)


def test_pairs_of_text_become_pairs_of_ids(vocabulary):
    encoded, _ = encode_pairs(vocabulary, [("a b", "ba"), ("", "c")], max_length=10)
    assert encoded == [
        (vocabulary.encode("a b"), vocabulary.encode("ba")),
        ([], vocabulary.encode("c")),
    ]


def test_pairs_with_a_side_longer_than_the_model_takes_are_dropped_and_counted(vocabulary):
    pairs = [("a", "b"), ("a " * 9, "b"), ("a " * 10, "b"), ("a", "b " * 9), ("a", "b " * 10)]
    lengths = [len(vocabulary.encode(text)) for text in ("a " * 9, "b " * 9)]
    assert lengths == [9, 9]
    encoded, report = encode_pairs(vocabulary, pairs, max_length=10)
    # 9 pieces and EOS just fit.
    assert [(len(source), len(target)) for source, target in encoded] == [(1, 1), (9, 1), (1, 9)]
    assert (report.read, report.too_long, report.max_length) == (5, 2, 10)
    assert str(report) == ("5 pairs encoded, 2 dropped for a side of more than 10 tokens, 3 kept")
    assert max(b.source.shape[1] for b in make_batches(encoded, 100)) == 10


def test_dropout_draws_other_numbers_for_each_side(vocabulary):
    pairs = [("ab ab", "ab ab")] * 50
    encoded, _ = encode_pairs(vocabulary, pairs, max_length=20, dropout=0.5, seed=0)
    assert any(source != target for source, target in encoded)
    again, _ = encode_pairs(vocabulary, pairs, max_length=20, dropout=0.5, seed=0)
    assert encoded == again


# Shards of a batch


@given(PAIRS.filter(bool), st.integers(1, 9))
def test_every_pair_is_in_exactly_one_shard_padded_no_further_than_it_needs(pairs, count):
    (batch,) = make_batches(pairs, 10_000)
    shards = batch.split(count)
    assert len(shards) == count
    assert Counter(contents(shards)) == Counter(contents([batch]))
    assert sum(shard.num_tokens for shard in shards) == batch.num_tokens
    for shard in shards:
        assert shard.num_tokens == (shard.labels != PAD).sum()
        assert shard.target.shape == shard.labels.shape
        if len(shard.source):
            assert (shard.source[:, -1] != PAD).any()
            assert (shard.labels[:, -1] != PAD).any()


def test_a_shard_looks_like_this():
    (batch,) = make_batches([([7, 8, 9], [5]), ([4], [6, 7]), ([4, 4], [5])], max_tokens=21)
    first, second = batch.split(2)
    # Dealt out in turn: the first and the third pair, the second one.
    assert first.source.tolist() == [[4, EOS, PAD, PAD], [7, 8, 9, EOS]]
    assert first.target.tolist() == [[BOS, 6, 7], [BOS, 5, PAD]]
    assert first.labels.tolist() == [[6, 7, EOS], [5, EOS, PAD]]
    assert arrays([second]) == [([[4, 4, EOS]], [[BOS, 5]], [[5, EOS]])]
    assert (first.num_tokens, second.num_tokens) == (5, 2)


def test_where_there_are_more_shards_than_pairs_the_last_ones_are_empty():
    (batch,) = make_batches([([7, 8], [5]), ([4], [6])], max_tokens=100)
    shards = batch.split(4)
    assert [len(shard.source) for shard in shards] == [1, 1, 0, 0]
    assert [shard.num_tokens for shard in shards] == [2, 2, 0, 0]
    assert shards[3].source.shape == shards[3].labels.shape == (0, 0)


def test_shards_of_a_batch_have_almost_the_same_work_to_do():
    for batch in make_batches(captions(), 4096):
        sizes = [shard.size for shard in batch.split(4)]
        assert max(sizes) < 1.2 * min(sizes)


# Sentences one by one


def test_a_sentence_stands_between_its_symbols():
    assert framed([7, 8], 4) == [BOS, 7, 8, EOS]
    assert framed([7, 8, 9], 4) == [BOS, 7, 8, EOS]
    assert framed([], 4) == [BOS, EOS]


def test_padding_stands_behind_a_sentence():
    rows = pad([[3], [4, 5, 6], []])
    assert rows.tolist() == [[3, PAD, PAD], [4, 5, 6], [PAD] * 3]
    assert rows.dtype == np.int32


LENGTHS = np.random.default_rng(0).integers(2, 20, 200)


@pytest.mark.parametrize("rng", [None, np.random.default_rng(1)])
def test_each_sentence_is_in_one_batch_that_is_no_larger_than_allowed(rng):
    batches = group(LENGTHS, 60, rng)
    assert sorted(i for batch in batches for i in batch) == list(range(200))
    assert max(len(batch) * LENGTHS[batch].max() for batch in batches) <= 60


def test_sentences_of_a_batch_are_of_one_length_or_nearly():
    batches = group(LENGTHS, 60, np.random.default_rng(1))
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in batches)
    assert padded < 1.03 * LENGTHS.sum()


def test_the_generator_says_who_meets_whom_and_when():
    once, again, other = (group(LENGTHS, 60, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert once == again
    assert {frozenset(batch) for batch in once} != {frozenset(batch) for batch in other}
    assert [LENGTHS[batch].max() for batch in once] != sorted(LENGTHS[b].max() for b in once)


def test_shards_of_labelled_rows_are_all_rows_and_the_last_may_be_empty():
    ids = np.arange(6).reshape(3, 2)
    batch = LabelledBatch.of(ids, np.where(ids > 3, ids, PAD))
    assert batch.num_tokens == 2
    shards = batch.split(4)
    assert [shard.ids.tolist() for shard in shards] == [[[0, 1]], [[2, 3]], [[4, 5]], []]
    assert [shard.num_tokens for shard in shards] == [0, 0, 2, 0]
    assert batch.split(1) == [batch]
