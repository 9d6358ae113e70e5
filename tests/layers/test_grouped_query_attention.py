import numpy as np
import pytest

from minitransformer.decoding.incremental import Growing
from minitransformer.layers.attention import (
    MultiHeadAttention,
    multi_head_attention,
    multi_head_attention_backward,
)
from minitransformer.layers.grouped_query_attention import (
    GroupedQueryAttention,
    grouped_query_attention,
    grouped_query_attention_backward,
)

B, T, S, H, K = 2, 5, 6, 4, 3
D = H * K
RNG = np.random.default_rng(0)
QUERY, DY = RNG.standard_normal((2, B, T, D))
KEY, VALUE = RNG.standard_normal((2, B, S, D))
W_QUERY, W_OUTPUT = RNG.standard_normal((2, D, D))
each_grouping = pytest.mark.parametrize("groups", [1, 2, 4])
assert_close = np.testing.assert_allclose


def of_groups(groups):
    return np.random.default_rng(groups).standard_normal((2, D, groups * K))


def for_each_head(weight, groups, how):
    """Columns of W_k or W_v (D, G K) for every head, (D, D), its groups repeated or tiled."""
    order = {"repeated": np.arange(H) // (H // groups), "tiled": np.arange(H) % groups}[how]
    return weight.reshape(D, groups, K)[:, order].reshape(D, D)


def multi_head(groups, how):
    weights = (for_each_head(w, groups, how) for w in of_groups(groups))
    return multi_head_attention(QUERY, KEY, VALUE, W_QUERY, *weights, W_OUTPUT, H)


@each_grouping
def test_it_is_multi_head_attention_with_keys_and_values_repeated(groups):
    weights = W_QUERY, *of_groups(groups), W_OUTPUT
    y, cache = grouped_query_attention(QUERY, KEY, VALUE, *weights, H)
    expected, expected_cache = multi_head(groups, "repeated")
    assert_close(y, expected, rtol=0, atol=1e-11)
    gradients = grouped_query_attention_backward(DY, cache)
    expected = list(multi_head_attention_backward(DY, expected_cache))
    for i in (4, 5):  # of W_k and W_v
        of_heads = expected[i].reshape(D, groups, H // groups, K)
        expected[i] = of_heads.sum(axis=2).reshape(D, groups * K)
    for ours, of_all in zip(gradients, expected, strict=True):
        assert_close(ours, of_all, rtol=0, atol=1e-11)


def test_it_is_not_that_with_keys_and_values_tiled():
    y, _ = grouped_query_attention(QUERY, KEY, VALUE, W_QUERY, *of_groups(2), W_OUTPUT, H)
    assert np.abs(y - multi_head(2, "tiled")[0]).max() > 0.1


def test_a_group_for_each_head_is_multi_head_attention_with_the_same_arithmetic():
    weights = W_QUERY, *of_groups(H), W_OUTPUT
    y, _ = grouped_query_attention(QUERY, KEY, VALUE, *weights, H)
    expected, _ = multi_head_attention(QUERY, KEY, VALUE, *weights, H)
    np.testing.assert_array_equal(y, expected)


@each_grouping
def test_weights_and_kept_keys_shrink_with_the_groups(groups):
    layer = GroupedQueryAttention(D, H, groups, RNG)
    assert layer.num_parameters() == 2 * D * D + 2 * D * groups * K
    keys, values = layer.keys_and_values(KEY, VALUE)
    assert keys.shape == values.shape == (B, groups, S, K)
    names = [name for name, _ in layer.named_parameters()]
    assert names == [name for name, _ in MultiHeadAttention(D, H, RNG).named_parameters()]


@each_grouping
def test_step_by_step_with_kept_keys_it_gives_what_it_gives_at_once(groups):
    layer = GroupedQueryAttention(D, H, groups, RNG).to(dtype=np.float64)
    whole, _ = layer.forward(QUERY, QUERY, QUERY, np.tri(T, dtype=bool))
    kept = Growing()
    for t in range(T):
        y = layer.step(QUERY[:, t : t + 1], kept)
        assert_close(y[:, 0], whole[:, t], rtol=0, atol=1e-12)
    assert [x.shape for x in kept.arrays] == [(B, groups, T, K)] * 2
