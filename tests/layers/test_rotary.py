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
QUERY = RNG.standard_normal((B, H, T, K))
X = RNG.standard_normal((B, T, D))
W_QUERY, W_KEY = RNG.standard_normal((2, D, D)) / D
TABLE = rotary_table(50, K)
each_convention = pytest.mark.parametrize("pairs", PAIRS)


@each_convention
def test_tokens_after_others_are_turned_as_they_are_among_them(pairs):
    """As decoding with a cache needs it."""
    whole, _ = rotary(QUERY, TABLE, pairs)
    for t in range(T):
        y, _ = rotary(QUERY[:, :, t : t + 1], TABLE, pairs, start=t)
        np.testing.assert_array_equal(y, whole[:, :, t : t + 1])


def test_a_permutation_of_columns_carries_weights_from_one_convention_to_the_other():
    def scores(pairs, *weights):
        q, k = (rotary(split_heads(linear(X, w)[0], H), TABLE, pairs)[0] for w in weights)
        return q @ k.swapaxes(-1, -2)  # (B, H, T, T)

    expected = scores("neighbours", W_QUERY, W_KEY)
    found = scores("halves", to_halves(W_QUERY, H), to_halves(W_KEY, H))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
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
