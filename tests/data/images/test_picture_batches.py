"""Corpora of pictures are arrays that fit together, and an epoch is made of them batch by batch."""

import numpy as np
import pytest
from memory import takes_at_most

from minitransformer.data.errors import CorpusError
from minitransformer.data.images.batches import PictureBatch, picture_batches
from minitransformer.data.images.pictures import Pictures

N = 23
PICTURES = np.random.default_rng(0).integers(0, 256, (N, 4, 5, 3), np.uint8)
LABELS = np.arange(N) % 4
CLASSES = ("a", "b", "c", "d")


@pytest.fixture
def corpus():
    return Pictures(PICTURES, LABELS, CLASSES)


def floats(pictures, rng):
    return pictures.astype(np.float32)


def with_noise(pictures, rng):
    return pictures + rng.random(pictures.shape, np.float32)


def rows(batches):
    """The pictures of some batches, each by its bytes, with its label."""
    return [
        (picture.astype(np.uint8).tobytes(), int(label))
        for batch in batches
        for picture, label in zip(batch.pictures, batch.labels, strict=True)
    ]


@pytest.mark.parametrize(("pictures", "labels", "classes", "said"), [
    (PICTURES / 1, LABELS, CLASSES, r"of type float64 and shape \(23, 4, 5, 3\); they must"),
    (PICTURES[..., 0], LABELS, CLASSES, r"of type uint8 and shape \(23, 4, 5\); they must"),
    (PICTURES[..., :2], LABELS, CLASSES, "C = 1 or 3 channels"),
    (PICTURES, LABELS.astype(float), CLASSES, "labels of type float64"),
])  # fmt: skip
def test_arrays_that_do_not_fit_together_are_refused(pictures, labels, classes, said):
    with pytest.raises(CorpusError, match=said):
        Pictures(pictures, labels, classes)


@pytest.mark.parametrize("some", [slice(3, 9), np.array([5, 2, 2])])
def test_rows_of_a_corpus_are_a_corpus(corpus, some):
    assert len(corpus) == N
    part = corpus[some]
    np.testing.assert_array_equal(part.pictures, PICTURES[some])
    np.testing.assert_array_equal(part.labels, LABELS[some])
    assert part.classes == CLASSES


@pytest.mark.parametrize("size", [1, 5, 23, 99])
@pytest.mark.parametrize("seed", [None, (0, 1)])
def test_each_picture_is_in_one_batch_of_an_epoch_with_its_label(corpus, size, seed):
    batches = list(picture_batches(corpus, size, floats, seed))
    sizes = [size] * (N // size) + [N % size] * (N % size > 0)
    assert [batch.num_tokens for batch in batches] == sizes
    found, expected = rows(batches), rows([PictureBatch(PICTURES, LABELS)])
    assert sorted(found) == sorted(expected)
    assert (found == expected) == (seed is None)


def test_the_order_is_decided_by_the_seed_and_the_epoch(corpus):
    seeds = (0, 1), (0, 1), (0, 2), (1, 1)
    orders = [rows(picture_batches(corpus, 5, floats, seed)) for seed in seeds]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 3


def test_what_is_drawn_for_a_batch_does_not_depend_on_those_before(corpus):
    """So a training that goes on in the middle of an epoch meets the same pictures."""
    drawn = []

    def sometimes(pictures, rng):
        drawn.append(pictures)
        return floats(pictures, rng) if len(drawn) == 1 else with_noise(pictures, rng)

    always = list(picture_batches(corpus, 5, with_noise, (0, 1)))
    others = list(picture_batches(corpus, 5, sometimes, (0, 1)))
    assert (always[0].pictures != others[0].pictures).any()
    for one, other in zip(always[1:], others[1:], strict=True):
        np.testing.assert_array_equal(one.pictures, other.pictures)
    noise = {batch.pictures[0, 0, 0, 0] % 1 for batch in always}
    assert len(noise) == len(always)


def test_an_epoch_is_never_in_memory_twice():
    corpus = Pictures(np.zeros((1000, 32, 32, 3), np.uint8), np.zeros(1000, np.int64), ("black",))
    with takes_at_most(corpus.pictures.nbytes / 4):
        for batch in picture_batches(corpus, 10, floats, (0, 1)):
            assert batch.pictures.dtype == np.float32


@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_the_pictures_of_a_batch_are_dealt_out_to_shards(count):
    batch = PictureBatch(floats(PICTURES, None), LABELS)
    shards = batch.split(count)
    assert len(shards) == count
    assert sum(shard.num_tokens for shard in shards) == batch.num_tokens == N
    assert max(shard.num_tokens for shard in shards) - min(s.num_tokens for s in shards) <= 1
    assert sorted(rows(shards)) == sorted(rows([batch]))
