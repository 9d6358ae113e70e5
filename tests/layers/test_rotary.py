import numpy as np
import pytest

from minitransformer.layers.attention import split_heads
from minitransformer.layers.linear import linear
from minitransformer.layers.rotary import (
    FIRST,
    PAIRS,
    Rotary,
    rotary,
    rotary_table,
    to_halves,
    to_neighbours,
)

B, H, T, K = 2, 3, 7, 8
D = H * K
RNG = np.random.default_rng(0)
QUERY, KEY = RNG.standard_normal((2, B, H, T, K))
X = RNG.standard_normal((B, T, D))
W_QUERY, W_KEY = RNG.standard_normal((2, D, D)) / D
TABLE = rotary_table(50, K)
each_convention = pytest.mark.parametrize("pairs", PAIRS)


def scores(query, key, pairs, start=0):
    (q, _), (k, _) = (rotary(x, TABLE, pairs, start) for x in (query, key))
    return q @ k.swapaxes(-1, -2)  # (B, H, T, T)


def scores_of_weights(w_query, w_key, pairs):
    return scores(*(split_heads(linear(X, w)[0], H) for w in (w_query, w_key)), pairs)


@each_convention
def test_the_first_token_is_not_turned_and_no_vector_changes_its_length(pairs):
    y, _ = rotary(QUERY, TABLE, pairs)
    np.testing.assert_array_equal(y[:, :, 0], QUERY[:, :, 0])
    np.testing.assert_allclose((y * y).sum(axis=-1), (QUERY * QUERY).sum(axis=-1), rtol=1e-13)


@each_convention
@pytest.mark.parametrize("start", [1, 17, 43])
def test_scores_depend_on_how_far_apart_tokens_are_and_on_no_position(pairs, start):
    np.testing.assert_allclose(
        scores(QUERY, KEY, pairs, start), scores(QUERY, KEY, pairs), rtol=0, atol=1e-12
    )


@each_convention
def test_tokens_after_others_are_turned_as_they_are_among_them(pairs):
    """As decoding with a cache needs it."""
    whole, _ = rotary(QUERY, TABLE, pairs)
    for t in range(T):
        y, _ = rotary(QUERY[:, :, t : t + 1], TABLE, pairs, start=t)
        np.testing.assert_array_equal(y, whole[:, :, t : t + 1])


def test_the_slowest_pair_turns_once_in_as_many_positions_as_the_base_says():
    """By the paper's formula, in the convention of neighbours: features 2i and 2i + 1."""
    x = np.zeros((1, 1, 5, K))
    x[..., 6] = 1
    y, _ = rotary(x, TABLE)
    angle = np.arange(5) * 10000 ** (-6 / 8)
    np.testing.assert_allclose(y[0, 0, :, 6], np.cos(angle), rtol=1e-15)
    np.testing.assert_allclose(y[0, 0, :, 7], np.sin(angle), rtol=1e-15)
    assert not y[..., :6].any()


def test_halves_pair_each_feature_with_the_one_half_a_head_on():
    x = np.zeros((1, 1, 5, K))
    x[..., 3] = 1
    y, _ = rotary(x, TABLE, "halves")
    assert np.flatnonzero(y[0, 0, 1]).tolist() == [3, 7]


def test_the_other_convention_shows_only_after_the_first_token():
    neighbours, halves = (scores_of_weights(W_QUERY, W_KEY, pairs) for pairs in PAIRS)
    wrong = np.abs(neighbours - halves) > 1e-3 * np.abs(neighbours).max()
    assert not wrong[:, :, 0, 0].any()
    assert not wrong[:, :, np.arange(T), np.arange(T)].any()  # no distance, nothing to see
    assert wrong[:, :, 1:, 0].any(axis=(0, 1)).all()


def test_a_permutation_of_columns_carries_weights_from_one_convention_to_the_other():
    expected = scores_of_weights(W_QUERY, W_KEY, "neighbours")
    permuted = to_halves(W_QUERY, H), to_halves(W_KEY, H)
    np.testing.assert_allclose(scores_of_weights(*permuted, "halves"), expected, rtol=0, atol=1e-13)
    for there, back in ((to_halves, to_neighbours), (to_neighbours, to_halves)):
        np.testing.assert_array_equal(back(there(W_QUERY, H), H), W_QUERY)
    assert not np.array_equal(to_halves(W_QUERY, H), to_neighbours(W_QUERY, H))


def test_columns_stay_in_their_head_with_fewer_heads_too():
    """W_k of grouped queries has as many columns as there are groups times K."""
    columns = np.arange(2 * K)[None]
    np.testing.assert_array_equal(
        to_halves(columns, 2)[0], [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_table_of_a_module_reaches_as_far_as_texts_do_and_no_further(dtype):
    layer = Rotary(5000, 4)
    layer.to(dtype=dtype)
    x = np.random.default_rng(2).standard_normal((1, 2, 3, 4)).astype(dtype)
    table = rotary_table(5000, 4).astype(dtype)
    for start in (0, FIRST - 2, 4997):
        y, cache = layer.forward(x, start)
        np.testing.assert_array_equal(y, rotary(x, table, "neighbours", start)[0])
        assert y.dtype == layer.table.dtype == dtype
        assert start or len(layer.table) == FIRST
        np.testing.assert_allclose(layer.backward(y, cache), x, atol=1e-5)
    assert len(layer.table) == 5000
    with pytest.raises(ValueError, match="5000"):
        layer.forward(x, 4998)
