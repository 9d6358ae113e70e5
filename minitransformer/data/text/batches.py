"""Batches: pairs, or sentences, of similar length, padded to one shape.

A batch is limited by its tokens, padding included, and not by its number of pairs, so that every
step has about the same work to do (the paper's batches hold about 25,000 tokens a side, section
5.1). Pairs are sorted by length before they are cut into batches: in the order of the file, half of
all positions would be padding.
"""

from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np

from minitransformer.core.errors import InputError
from minitransformer.data.text.vocabulary import BOS, EOS, PAD

# Tokens. On Multi30k, of the pairs that shared a batch one in six shares the next epoch's too, at
# 4.9 % padding; with a noise of 1 it would be one in two at 2.6 %, with 8 one in eight at 5.9 %.
NOISE = 4


@dataclass(frozen=True, eq=False)
class Batch:
    """B pairs as arrays of ids, int32 on the host, padded with PAD at the right.

    Attributes:
        source: (B, S), pieces and EOS.
        target: (B, T), BOS and pieces: what the decoder sees.
        labels: (B, T), pieces and EOS: what it has to say.
        num_tokens: labels that are not padding; None where nobody has counted them.
        pad_id: PAD.
    """

    pad_id: ClassVar[int] = PAD

    source: np.ndarray
    target: np.ndarray
    labels: np.ndarray
    num_tokens: int | None = None

    @property
    def size(self):
        """Positions of source and target together, B (S + T)."""
        return self.source.size + self.target.size

    @property
    def padding(self):
        """How many of these positions are padding."""
        return int((self.source == PAD).sum() + (self.target == PAD).sum())

    def split(self, count):
        """The pairs dealt out to ``count`` shards, each padded only as far as it needs.

        One after the other, because neighbours in a batch are of one length, so that the shards
        have the same work to do. Where there are fewer pairs than shards the last ones are empty.
        """
        if count == 1:
            return [self]  # wherever its ids are
        return [_rows(self, slice(i, None, count)) for i in range(count)]


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """B rows of ids, int32, padded at the right, and what there is to say at each.

    Attributes:
        ids: (B, T), what the model sees.
        labels: (B, T), what it has to say; ``pad_id`` where there is nothing.
        num_tokens: labels that are not padding.
        pad_id: what they are padded with, -1 where nothing is padding.
    """

    ids: np.ndarray
    labels: np.ndarray
    num_tokens: int
    pad_id: int = PAD

    @classmethod
    def of(cls, ids, labels, pad_id=PAD):
        """With the labels counted."""
        return cls(ids, labels, int((labels != pad_id).sum()), pad_id)

    def split(self, count):
        """The rows dealt out to ``count`` shards; the last are empty if there are fewer rows."""
        if count == 1:
            return [self]  # wherever its ids are
        rows = [slice(i, None, count) for i in range(count)]
        return [LabelledBatch.of(self.ids[i], self.labels[i], self.pad_id) for i in rows]


@dataclass(frozen=True)
class EncodingReport:
    """What :func:`encode_pairs` did.

    Attributes:
        read: pairs before.
        too_long: pairs dropped because a side has more than ``max_length`` tokens.
        max_length: the limit, in tokens with EOS.
    """

    read: int
    too_long: int
    max_length: int

    def __str__(self):
        return (
            f"{self.read:,} pairs encoded, {self.too_long:,} dropped for a side of more than "
            f"{self.max_length:,} tokens, {self.read - self.too_long:,} kept"
        )


def encode_pairs(vocabulary, pairs, max_length, dropout=0.0, seed=None):
    """Training pairs of text as pairs of ids, without BOS and EOS.

    Args:
        vocabulary: a Vocabulary.
        pairs: (source text, target text).
        max_length: the longest sequence the model takes; pairs with a longer side, EOS included,
            are dropped, and those with far too many characters before they are cut into pieces.
        dropout, seed: BPE-dropout, as in :meth:`Vocabulary.encode_all`.

    Returns:
        ([(source ids, target ids)], EncodingReport)
    """
    if dropout and seed is not None:
        seed = np.random.default_rng(seed)  # one stream of numbers for both sides
    cut = [
        pair
        for pair in pairs
        if not any(vocabulary.surely_has_more(text, max_length - 1) for text in pair)
    ]
    source = vocabulary.encode_all([source for source, _ in cut], dropout, seed)
    target = vocabulary.encode_all([target for _, target in cut], dropout, seed)
    encoded = [
        pair for pair in zip(source, target, strict=True) if max(map(len, pair)) < max_length
    ]
    return encoded, EncodingReport(len(pairs), len(pairs) - len(encoded), max_length)


def make_batches(pairs, max_tokens, rng=None):
    """All pairs, each once, in batches of similar length.

    Args:
        pairs: (source ids, target ids) without BOS and EOS.
        max_tokens: the most positions a batch may have, of source and target together.
        rng: a NumPy generator: shuffles the batches, and which of the pairs of one length fall into
            one batch. Without it the batches go from short to long, the same every time.

    Raises:
        ValueError: a pair alone is larger than ``max_tokens``. With ``max_length`` at most half of
            it in :func:`encode_pairs`, none is.
    """
    source = _lengths([source for source, _ in pairs])
    target = _lengths([target for _, target in pairs])
    if len(pairs) and (largest := (source + target).max()) > max_tokens:
        raise InputError(
            f"a pair has {largest} tokens on its two sides together and a batch at most "
            f"max_tokens={max_tokens}; raise max_tokens, or lower max_length to {max_tokens // 2}"
        )
    # Neighbours in this order are alike on both sides. The noise lets pairs meet different ones in
    # every epoch: more of it costs padding, less of it makes the same batches again and again.
    noise = 0 if rng is None else NOISE * rng.random(len(pairs))
    order = np.lexsort((source - target + noise, np.maximum(source, target)))
    batches = [_batch([pairs[i] for i in cut]) for cut in _cuts(order, source, target, max_tokens)]
    if rng is not None:
        rng.shuffle(batches)
    return batches


def framed(ids, most):
    """BOS, ids of a sentence, EOS: of a long one only the beginning, so ``most`` (≥ 2) in all."""
    return [BOS, *ids[: most - 2], EOS]


def group(lengths, max_tokens, rng=None):
    """Which sentences share a batch: lists of their numbers, each once, with others as long.

    Args:
        lengths: of each sentence, in tokens; none longer than ``max_tokens``.
        max_tokens: the most positions a batch may have, padding included.
        rng: a NumPy generator: shuffles the batches, and which of the sentences of one length fall
            into one batch. Without it they go from short to long, the same every time.
    """
    lengths = np.asarray(lengths)
    order = np.lexsort(
        (np.zeros(len(lengths)) if rng is None else rng.random(len(lengths)), lengths)
    )
    batches = list(_cuts(order, lengths, np.zeros_like(lengths), max_tokens))
    if rng is not None:
        rng.shuffle(batches)
    return batches


def pad(sequences):
    """The sequences as the rows of an array (B, T), int32, padded with PAD at the right."""
    return _pad(sequences)[0][:, :-1]


def _rows(batch, rows):
    source, target, labels = (x[rows] for x in (batch.source, batch.target, batch.labels))
    S, T = (int((ids != PAD).sum(axis=1).max(initial=0)) for ids in (source, labels))
    return Batch(source[:, :S], target[:, :T], labels[:, :T], num_tokens=int((labels != PAD).sum()))


def _lengths(sequences):
    return np.fromiter(map(len, sequences), np.int64, len(sequences)) + 1  # EOS, or BOS


def _cuts(order, source, target, max_tokens):
    """Cut ``order`` into lists that fit into max_tokens when padded to their longest members."""
    cut, S, T = [], 0, 0
    for i, s, t in zip(order.tolist(), source[order].tolist(), target[order].tolist(), strict=True):
        S, T = max(S, s), max(T, t)
        if cut and (len(cut) + 1) * (S + T) > max_tokens:
            yield cut
            cut, S, T = [], s, t
        cut.append(i)
    if cut:
        yield cut


def _batch(pairs):
    source, source_lengths = _pad([source for source, _ in pairs])  # (B, S)
    labels, target_lengths = _pad([target for _, target in pairs])  # (B, T)
    target = np.empty_like(labels)
    target[:, 0] = BOS
    target[:, 1:] = labels[:, :-1]
    rows = np.arange(len(pairs))
    source[rows, source_lengths] = EOS
    labels[rows, target_lengths] = EOS
    return Batch(source, target, labels, num_tokens=int(target_lengths.sum()) + len(pairs))


def _pad(sequences):
    """The sequences as rows, with room for one more id in the longest; and their lengths."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))  # (B,)
    ids = np.full((len(sequences), lengths.max() + 1), PAD, np.int32)
    there = np.arange(ids.shape[1]) < lengths[:, None]  # (B, S)
    ids[there] = np.fromiter(chain.from_iterable(sequences), np.int32, lengths.sum())
    return ids, lengths


@dataclass(frozen=True)
class BatchReport:
    """How well batches are filled.

    Attributes:
        batches, pairs: how many.
        tokens: ids of source and target that are not padding.
        padding: the share of all positions that is padding, 0 to 1.
    """

    batches: int
    pairs: int
    tokens: int
    padding: float

    @classmethod
    def of(cls, batches):
        """The report on a list of batches."""
        size = sum(batch.size for batch in batches)
        padding = sum(batch.padding for batch in batches)
        return cls(
            batches=len(batches),
            pairs=sum(len(batch.source) for batch in batches),
            tokens=size - padding,
            padding=padding / size if size else 0.0,
        )

    def __str__(self):
        return (
            f"{self.pairs:,} pairs in {self.batches:,} batches, {self.tokens:,} tokens and "
            f"{self.padding:.1%} padding"
        )
