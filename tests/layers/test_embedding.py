import numpy as np
import pytest

from minitransformer.layers.embedding import (
    Embedding,
    OutputProjection,
    check_token_ids,
    embedding,
    embedding_backward,
    embedding_weight,
)

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((7, 9))


def test_a_token_is_its_row_times_the_root_of_the_width():
    x, _ = embedding(np.array([[2, 6], [0, 2]]), WEIGHT)
    np.testing.assert_array_equal(x, 3 * np.stack([WEIGHT[[2, 6]], WEIGHT[[0, 2]]]))


def test_a_repeated_token_collects_the_gradient_of_each_of_its_places():
    ids = np.array([[2, 6, 2], [2, 0, 6]])
    dx = RNG.standard_normal((2, 3, 9))
    _, cache = embedding(ids, WEIGHT)
    dweight = embedding_backward(dx, cache)
    np.testing.assert_allclose(dweight[2], 3 * (dx[0, 0] + dx[0, 2] + dx[1, 0]), rtol=1e-14)
    np.testing.assert_allclose(dweight[6], 3 * (dx[0, 1] + dx[1, 2]), rtol=1e-14)
    np.testing.assert_allclose(dweight[0], 3 * dx[1, 1], rtol=1e-14)
    assert not dweight[[1, 3, 4, 5]].any()


def test_embedded_tokens_start_with_variance_1():
    layer = Embedding(embedding_weight(1000, 64, np.random.default_rng(1)))
    x, _ = layer.forward(np.arange(1000))
    assert layer.weight.data.dtype == np.float32
    assert abs(x.mean()) < 4 / np.sqrt(x.size)
    assert abs(x.var() - 1) < 4 * np.sqrt(2 / x.size)


def test_a_projection_scores_each_token_by_its_vector():
    table = Embedding(embedding_weight(7, 9, np.random.default_rng(2)))
    x = RNG.standard_normal((2, 3, 9))
    logits, _ = OutputProjection(table.weight).forward(x)
    assert logits.shape == (2, 3, 7)
    np.testing.assert_allclose(logits[1, 2, 4], np.dot(x[1, 2], table.weight.data[4]), rtol=1e-12)


@pytest.mark.parametrize(
    ("ids", "range_given"),
    [([[1, 7]], "from 1 to 7"), ([[-1, 3]], "from -1 to 3"), ([[99, -99]], "from -99 to 99")],
)
def test_ids_out_of_range_are_refused(ids, range_given):
    with pytest.raises(ValueError, match=rf"{range_given}, outside 0 <= id < 7, the size of the"):
        embedding(np.array(ids), WEIGHT)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bool"])
def test_ids_that_are_no_integers_are_refused(dtype):
    with pytest.raises(TypeError, match=f"token ids must be integers; their dtype is {dtype}"):
        embedding(np.ones((2, 3), dtype=dtype), WEIGHT)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_the_first_and_the_last_id_are_accepted_in_any_integer_type(dtype):
    x, _ = embedding(np.array([0, 6], dtype=dtype), WEIGHT)
    np.testing.assert_array_equal(x, 3 * WEIGHT[[0, 6]])


def test_no_ids_at_all_are_in_range():
    check_token_ids(np.empty((0, 4), dtype=np.int64), 7)
