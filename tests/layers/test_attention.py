import math

import numpy as np
import pytest

from minitransformer.layers.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from minitransformer.layers.masks import causal_mask

B, H, T, S, K = 2, 3, 4, 5, 6
D = H * K
RNG = np.random.default_rng(0)
QUERY = RNG.standard_normal((B, H, T, K))
KEY, VALUE = RNG.standard_normal((2, B, H, S, K))


def test_equal_scores_average_the_values():
    y, _ = scaled_dot_product_attention(QUERY, np.zeros_like(KEY), VALUE)
    expected = np.broadcast_to(VALUE.mean(axis=2, keepdims=True), QUERY.shape)
    np.testing.assert_allclose(y, expected, rtol=1e-13)


def test_a_key_that_matches_far_better_than_the_others_picks_its_value():
    key = np.zeros((B, H, S, K))
    key[:, :, 3] = 1e3 * QUERY[:, :, 1]
    y, _ = scaled_dot_product_attention(QUERY, key, VALUE)
    np.testing.assert_allclose(y[:, :, 1], VALUE[:, :, 3], rtol=1e-13)


def test_scores_are_divided_by_the_root_of_the_head_width():
    query, key = np.full((1, 1, 1, 4), 1.0), np.zeros((1, 1, 2, 4))
    key[0, 0, 1] = math.log(9) / 2  # q·k = 4 log(9) / 2, over √4: log 9
    y, _ = scaled_dot_product_attention(query, key, np.array([[[[0.0], [1.0]]]]))
    assert math.isclose(y.item(), 9 / (1 + 9))


def test_a_query_that_is_allowed_nothing_receives_zeros():
    mask = np.ones((B, 1, T, S), dtype=bool)
    mask[1, 0, 2] = False
    y, _ = scaled_dot_product_attention(QUERY, KEY, VALUE, mask)
    np.testing.assert_array_equal(y.any(axis=(1, 3)), mask.any(axis=(1, 3)))


def test_dropout_of_the_weights_keeps_their_scale():
    """With all values 1 each output is the sum of its row of weights after dropout."""
    ones = np.ones((1, 1, 4000, K))
    y, _ = scaled_dot_product_attention(0 * ones, 0 * ones, ones, None, 0.5, RNG)
    assert y.std() > 0
    assert abs(y.mean() - 1) < 4 * y.std() / math.sqrt(4000)


def test_nothing_is_dropped_unless_asked_for():
    layer = MultiHeadAttention(D, H, RNG)
    x = RNG.standard_normal((B, T, D))
    plain, _ = layer.forward(x, x, x)
    y, _ = layer.forward(x, x, x, rng=RNG)
    np.testing.assert_array_equal(y, plain)


@pytest.mark.parametrize("mask", [None, causal_mask(np.zeros((B, T)))])
def test_multi_head_attention_is_equation_1_in_each_head_by_itself(mask):
    layer = MultiHeadAttention(D, H, RNG).to(dtype=np.float64)
    x = RNG.standard_normal((B, T, D))
    memory = RNG.standard_normal((B, T, D))
    other = RNG.standard_normal((B, T, D))
    heads = np.zeros((B, T, D))
    for b in range(B):
        for h in range(H):
            columns = slice(h * K, (h + 1) * K)
            q = x[b] @ layer.w_query.data[:, columns]
            k = memory[b] @ layer.w_key.data[:, columns]
            v = other[b] @ layer.w_value.data[:, columns]
            for t in range(T):
                seen = range(T) if mask is None else range(t + 1)
                scores = [math.exp(np.dot(q[t], k[s]) / math.sqrt(K)) for s in seen]
                heads[b, t, columns] = sum(
                    score / sum(scores) * v[s] for s, score in zip(seen, scores, strict=True)
                )
    y, _ = layer.forward(x, memory, other, mask)
    np.testing.assert_allclose(y, heads @ layer.w_output.data, rtol=1e-10, atol=1e-12)


def test_heads_are_neighbouring_columns_and_merge_back():
    x = RNG.standard_normal((B, T, D))
    heads = split_heads(x, H)
    for h in range(H):
        np.testing.assert_array_equal(heads[:, h], x[:, :, h * K : (h + 1) * K])
    np.testing.assert_array_equal(merge_heads(heads), x)
    assert merge_heads(heads).flags.c_contiguous


@pytest.mark.parametrize(("d_model", "num_heads"), [(250, 8), (6, 4), (4, 6)])
def test_a_width_that_heads_do_not_divide_is_refused(d_model, num_heads):
    words = f"d_model={d_model} is not divisible by num_heads={num_heads}"
    with pytest.raises(ValueError, match=words):
        MultiHeadAttention(d_model, num_heads, RNG)


def test_a_mask_of_numbers_is_refused():
    layer = MultiHeadAttention(D, H, RNG)
    x = np.zeros((B, T, D))
    with pytest.raises(TypeError, match="mask must be boolean"):
        layer.forward(x, x, x, np.ones((B, 1, T, T)))


def test_a_mask_without_an_axis_for_the_heads_is_refused():
    layer = MultiHeadAttention(D, H, RNG)
    x = np.zeros((B, T, D))
    with pytest.raises(ValueError, match=r"\(2, 4, 4\) does not broadcast to .* \(2, 3, 4, 4\)"):
        layer.forward(x, x, x, np.ones((B, T, T), dtype=bool))
