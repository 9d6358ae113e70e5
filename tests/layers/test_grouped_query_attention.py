import numpy as np
import pytest

from minitransformer.decoding.incremental import Growing
from minitransformer.layers.attention import MultiHeadAttention, multi_head_attention
from minitransformer.layers.grouped_query_attention import (
    GroupedQueryAttention,
    grouped_query_attention,
)

B, T, S, H, K = 2, 5, 6, 4, 3
D = H * K
RNG = np.random.default_rng(0)
QUERY = RNG.standard_normal((B, T, D))
KEY, VALUE = RNG.standard_normal((2, B, S, D))
each_grouping = pytest.mark.parametrize("groups", [1, 2, 4])


def test_a_group_for_each_head_is_multi_head_attention_with_the_same_arithmetic():
    weights = RNG.standard_normal((4, D, D))
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
        np.testing.assert_allclose(y[:, 0], whole[:, t], rtol=0, atol=1e-12)
    assert [x.shape for x in kept.arrays] == [(B, groups, T, K)] * 2
