import numpy as np
import pytest

from minitransformer.layers.embedding import Embedding, embedding_weight
from minitransformer.layers.learned_positions import LearnedPositions

D = 8
RNG = np.random.default_rng(0)


def test_the_first_rows_are_added_to_every_sentence():
    x = RNG.standard_normal((3, 5, D))
    layer = LearnedPositions(6, D, RNG)
    y, _ = layer.forward(x)
    for sentence in range(3):
        np.testing.assert_array_equal(y[sentence], x[sentence] + layer.table.data[:5])


def test_at_first_positions_are_as_large_as_words():
    words, _ = Embedding(embedding_weight(200, 64, RNG)).forward(np.arange(200))
    assert LearnedPositions(200, 64, RNG).table.data.std() == pytest.approx(words.std(), rel=0.03)


def test_a_row_gathers_the_gradients_of_its_position_and_one_beyond_the_sentences_none():
    layer = LearnedPositions(6, D, RNG).to(dtype=np.float64)
    dy = RNG.standard_normal((3, 5, D))
    _, cache = layer.forward(np.zeros((3, 5, D)))
    np.testing.assert_array_equal(layer.backward(dy, cache), dy)
    np.testing.assert_array_equal(layer.table.grad[:5], dy[0] + dy[1] + dy[2])
    assert not layer.table.grad[5:].any()


def test_a_sequence_may_be_as_long_as_the_table_and_no_longer():
    layer = LearnedPositions(6, D, RNG)
    assert layer.forward(np.zeros((1, 6, D)))[0].shape == (1, 6, D)
    with pytest.raises(ValueError, match=r"7 tokens is longer than the 6 .* larger max_length"):
        layer.forward(np.zeros((1, 7, D)))
