"""What single layers give where a formula says little: at its limits, and for unusual inputs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_device import STAND_IN

from minitransformer.core.backend import to_host
from minitransformer.layers.alibi import Alibi, alibi_attention, alibi_bias, alibi_slopes
from minitransformer.layers.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from minitransformer.layers.batch_norm import batch_norm
from minitransformer.layers.embedding import embedding
from minitransformer.layers.gated_linear_unit import gated_linear_unit, gated_linear_unit_backward
from minitransformer.layers.gelu import erf, gelu, gelu_by_tanh, gelu_by_tanh_backward
from minitransformer.layers.layer_norm import LayerNorm, layer_norm
from minitransformer.layers.linear import Linear
from minitransformer.layers.linear_attention import linear_attention, linear_attention_backward
from minitransformer.layers.local_response_norm import local_response_norm
from minitransformer.layers.low_rank import LowRankLinear
from minitransformer.layers.patches import ClassToken, PatchEmbedding, patches, patches_backward
from minitransformer.layers.positional_encoding import PositionalEncoding, sinusoidal_encoding
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.residual import ResidualConnection
from minitransformer.layers.rms_norm import RMSNorm, rms_norm
from minitransformer.layers.rotary import Rotary, rotary_table
from minitransformer.layers.segment_attention import SegmentAttention, carried
from minitransformer.layers.sigmoid import sigmoid
from minitransformer.layers.silu import silu, silu_backward
from minitransformer.layers.softmax import softmax
from minitransformer.layers.token_ids import check_token_ids, ids_checked_before

RNG = np.random.default_rng(0)


def test_the_slope_of_a_relu_is_taken_to_be_zero_at_zero():
    _, cache = relu(np.array([-2.0, 0.0, 3.0]))
    np.testing.assert_array_equal(relu_backward(np.array([5.0, 5.0, 5.0]), cache), [0, 0, 5])


def test_no_number_is_too_large_for_a_sigmoid():
    y, _ = sigmoid(np.array([-1e30, -1e3, 0, 1e3, 1e30], dtype=np.float32))
    np.testing.assert_array_equal(y, [0, 0, 0.5, 1, 1])


def test_an_open_gate_lets_through_and_a_shut_one_does_not():
    x = np.array([[3.0, 3.0, 3.0, 1e4, 0.0, -1e4]])
    y, cache = gated_linear_unit(x)
    np.testing.assert_array_equal(y, [[3.0, 1.5, 0.0]])
    dx = gated_linear_unit_backward(np.ones_like(y), cache)
    np.testing.assert_array_equal(dx, [[1.0, 0.5, 0.0, 0.0, 0.75, 0.0]])


def test_a_silu_lets_through_what_is_large_and_is_least_at_minus_1_28():
    x = np.array([-1e30, -1e3, 0, 1e3, 1e30], dtype=np.float32)
    y, cache = silu(x)
    np.testing.assert_array_equal(y, [0, 0, 0, 1e3, np.float32(1e30)])
    np.testing.assert_array_equal(silu_backward(np.ones_like(x), cache), [0, 0, 0.5, 1, 1])
    x = np.linspace(-10, 10, 200_001)
    y, _ = silu(x)
    assert (x[y.argmin()], y.min()) == pytest.approx((-1.2785, -0.27846), abs=1e-4)


def test_the_error_function_is_right_to_some_1e_15_from_one_end_to_the_other():
    x = np.concatenate([np.linspace(-9, 9, 7201), [-1e30, -1e-10, 1e-300, 1e-10, 1e30]])
    expected = np.array([math.erf(a) for a in x])
    np.testing.assert_allclose(erf(x), expected, rtol=2e-15, atol=0)
    assert erf(x.astype(np.float32)).dtype == np.float32


def test_gelu_by_tanh_is_within_5e_4_of_the_exact_one_and_both_have_the_limits_of_a_relu():
    x = np.linspace(-9, 9, 7201)
    apart = np.abs(gelu(x)[0] - gelu_by_tanh(x)[0])
    assert 4e-4 < apart.max() < 5e-4
    for kind in (gelu, gelu_by_tanh):
        y, _ = kind(np.array([-1e4, -9, 0, 9, 1e4], dtype=np.float32))
        np.testing.assert_allclose(y, [0, 0, 0, 9, 1e4], atol=1e-12)


def test_the_slope_of_gelu_by_tanh_is_that_of_a_relu_even_where_x_squared_overflows():
    x = np.array([-1e30, 1e30], dtype=np.float32)
    with np.errstate(over="ignore"):
        _, cache = gelu_by_tanh(x)
    np.testing.assert_array_equal(gelu_by_tanh_backward(np.ones_like(x), cache), [0, 1])


def test_biases_fall_by_the_slope_of_a_head_a_position_also_after_others():
    slopes = alibi_slopes(8)
    np.testing.assert_array_equal(slopes, [2.0**-h for h in range(1, 9)])  # as in the paper
    bias = alibi_bias(slopes, 5, 5)
    np.testing.assert_array_equal(bias[1, 4], [-1, -0.75, -0.5, -0.25, 0])
    np.testing.assert_array_equal(bias, bias.swapaxes(1, 2))
    np.testing.assert_array_equal(alibi_bias(slopes, 2, 5), bias[:, 3:])  # in decoding
    assert alibi_bias(slopes.astype(np.float32), 5, 5).dtype == np.float32


@pytest.mark.parametrize(("made", "name", "constant"), [
    (lambda: Alibi(3), "slopes", alibi_slopes(3)),
    (lambda: PositionalEncoding(5, 6), "table", sinusoidal_encoding(5, 6)),
    (lambda: Rotary(5, 6), "table", rotary_table(5, 6)),
], ids=["ALiBi", "sinusoids", "rotary"])  # fmt: skip
def test_constants_keep_their_type_elsewhere_and_have_no_rounding_of_a_narrower_one(
    made, name, constant
):
    module = made().to(STAND_IN)
    np.testing.assert_array_equal(to_host(getattr(module, name)), constant.astype(np.float32))
    assert getattr(module, name).dtype == np.float32
    wide = to_host(getattr(module.to(dtype=np.float64), name))
    np.testing.assert_array_equal(wide, constant)
    assert not np.array_equal(wide, constant.astype(np.float32))


def test_attention_with_slopes_of_zero_is_attention_and_with_large_ones_sees_itself_only():
    query, key, value = RNG.standard_normal((3, 2, 3, 7, 4))
    flat, _ = alibi_attention(query, key, value, np.zeros(3))
    np.testing.assert_array_equal(flat, scaled_dot_product_attention(query, key, value)[0])
    steep, _ = alibi_attention(query, key, value, np.full(3, 1e3))
    np.testing.assert_array_equal(steep, value)


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_is_an_average_by_products_of_features(causal):
    """By the paper's formula, with all weights; the last sentence is all padding."""
    query, key, value = 3 * RNG.standard_normal((3, 3, 2, 13, 4))
    mask = (np.arange(13) < np.array([13, 6, 0])[:, None])[:, None, None]
    y, cache = linear_attention(query, key, value, causal, mask)
    of_query, of_key = (np.where(x > 0, x + 1, np.exp(x)) for x in (query, key))
    weights = of_query @ of_key.swapaxes(-1, -2) * mask * (np.tri(13) if causal else 1)
    weights[:2] /= weights[:2].sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(y, weights @ value, rtol=0, atol=1e-12)
    for gradient in linear_attention_backward(np.ones_like(y), cache):
        assert not gradient[2].any()


def test_no_key_is_too_large_for_linear_attention():
    query, key = np.full((2, 1, 1, 3, 4), 1e4, dtype=np.float32) * [[[[1], [-1], [1]]]]
    y, _ = linear_attention(query, key, np.ones_like(key))
    np.testing.assert_array_equal(y[:, :, [0, 2]], 1)


def test_an_adapter_changes_nothing_at_first_and_then_what_it_is_merged_into():
    linear = Linear(12, 9, RNG)
    layer = LowRankLinear(linear, 3, RNG, alpha=6)
    x = RNG.standard_normal((4, 12))
    np.testing.assert_array_equal(layer.forward(x)[0], linear.forward(x)[0])
    layer.b.data = RNG.standard_normal((3, 9)).astype(np.float32)
    y, cache = layer.forward(x)
    assert np.abs(y - linear.forward(x)[0]).max() > 0.1
    linear.weight.data = layer.merged()
    np.testing.assert_allclose(linear.forward(x)[0], y, rtol=0, atol=1e-5)
    assert layer.scale == 2
    assert layer.num_parameters() == 3 * (12 + 9)
    frozen = layer.weight.data.copy()
    layer.backward(np.ones_like(y), cache)
    np.testing.assert_array_equal(layer.weight.data, frozen)


def test_segments_one_after_the_other_say_what_the_whole_text_does_if_all_is_carried():
    layer = SegmentAttention(6, 2, np.random.default_rng(1)).to(dtype=np.float64)
    whole = MultiHeadAttention(6, 2, np.random.default_rng(1)).to(dtype=np.float64)
    x = RNG.standard_normal((2, 11, 6))
    expected, _ = whole.forward(x, x, x, np.tri(11, dtype=bool))
    memory = x[:, :0]
    for start, stop in ((0, 4), (4, 8), (8, 11)):
        y, cache = layer.forward(x[:, start:stop], memory)
        np.testing.assert_allclose(y, expected[:, start:stop], rtol=0, atol=1e-13)
        assert layer.weights(cache).shape == (2, 2, stop - start, stop)
        memory = carried(x[:, start:stop], memory, 100)


def test_what_is_carried_is_the_last_positions_also_of_segments_before():
    x = np.arange(9.0).reshape(1, 9, 1)
    memory = carried(x[:, :4], x[:, :0], 3)
    np.testing.assert_array_equal(memory, x[:, 1:4])
    np.testing.assert_array_equal(carried(x[:, 4:6], memory, 3), x[:, 3:6])
    np.testing.assert_array_equal(carried(x[:, 4:6], memory, 9), x[:, 1:6])
    assert carried(x, memory, 0).shape == (1, 0, 1)


def test_large_scores_do_not_overflow_in_a_softmax():
    x = np.array([[1e4, 0.0, 1e4], [-1e4, -2e4, -1e4], [3e38, 1e38, 0.0]], dtype=np.float32)
    weights, _ = softmax(x)
    np.testing.assert_array_equal(weights, [[0.5, 0, 0.5], [0.5, 0, 0.5], [1, 0, 0]])


def test_scores_of_minus_infinity_alone_give_zeros_as_a_mask_does():
    weights, _ = softmax(np.array([[-np.inf, -np.inf], [-np.inf, 7.0]]))
    np.testing.assert_array_equal(weights, [[0, 0], [0, 1]])


def test_a_forbidden_score_counts_as_if_it_were_not_there_however_large():
    x = np.array([[1.0, 1e4, 2.0]])
    weights, _ = softmax(x, np.array([True, False, True]))
    np.testing.assert_allclose(weights[:, [0, 2]], softmax(x[:, [0, 2]])[0], rtol=1e-14)


@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5)),
    scale=st.sampled_from([0.0, 1.0, 1e4, 1e30]),
    seed=st.integers(0, 2**32 - 1),
)
def test_rows_of_a_softmax_sum_to_1_or_are_all_zero(shape, scale, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.4
    weights, _ = softmax(scale * rng.standard_normal(shape), mask)
    assert (weights >= 0).all()
    assert not weights[~mask].any()
    np.testing.assert_allclose(weights.sum(axis=-1), mask.any(axis=-1), rtol=1e-9)


def test_a_constant_row_is_normalised_to_beta():
    gamma, beta = RNG.uniform(0.5, 1.5, (2, 6))
    y, _ = layer_norm(np.full((2, 6), 3.0), gamma, beta)
    np.testing.assert_array_equal(y, [beta, beta])


def test_a_feature_that_is_constant_in_a_batch_is_normalised_to_beta():
    gamma, beta = RNG.uniform(0.5, 1.5, (2, 6))
    (y, mean, variance), _ = batch_norm(np.full((5, 6), 3.0), gamma, beta)
    np.testing.assert_array_equal(y, np.tile(beta, (5, 1)))
    np.testing.assert_array_equal([mean, variance], [[3] * 6, [0] * 6])


def test_a_layer_norm_norms_the_channels_of_each_place_or_pictures_as_rows_whole():
    pictures = RNG.standard_normal((2, 3, 4, 5))
    each, _ = layer_norm(pictures, np.ones(5), np.zeros(5))
    np.testing.assert_allclose(each.mean(axis=-1), 0, atol=1e-15)
    whole, _ = layer_norm(pictures.reshape(2, -1), np.ones(60), np.zeros(60))
    np.testing.assert_allclose(whole.mean(axis=-1), 0, atol=1e-15)
    assert np.abs(whole.reshape(pictures.shape).mean(axis=-1)).max() > 0.1


def test_a_response_is_dampened_by_the_two_channels_on_either_side_as_in_the_paper():
    """By the paper's formula and constants, in plain Python."""
    x = 100 * RNG.standard_normal(9)
    near = [x[max(0, i - 2) : min(8, i + 2) + 1] for i in range(9)]
    expected = [a / (2 + 1e-4 * sum(b * b for b in those)) ** 0.75
                for a, those in zip(x, near, strict=True)]  # fmt: skip
    np.testing.assert_allclose(local_response_norm(x)[0], expected, rtol=1e-14)


def test_a_channel_alone_is_dampened_by_itself_alone():
    x = RNG.standard_normal((4, 1))
    y, _ = local_response_norm(x, alpha=1.0, beta=0.5, k=1.0)
    np.testing.assert_allclose(y, x / np.sqrt(1 + x * x), rtol=1e-15)


def test_patches_go_from_left_to_right_and_down_and_keep_the_order_within():
    picture = np.arange(32).reshape(1, 4, 4, 2)  # 2 channels: each place has 2 neighbours in order
    y, cache = patches(picture, 2)
    expected = [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
    np.testing.assert_array_equal(y[0, :2], expected)
    np.testing.assert_array_equal(y[0, 2:], np.add(expected, 16))
    np.testing.assert_array_equal(patches_backward(y, cache), picture)


@pytest.mark.parametrize("size", [1, 6])
def test_a_patch_may_be_one_place_or_the_whole_picture(size):
    pictures = RNG.standard_normal((2, 6, 6, 3)).astype(np.float32)
    layer = PatchEmbedding(size, 3, 4, RNG)
    y, _ = layer.forward(pictures)
    flat = pictures.reshape(2, -1, size * size * 3)
    np.testing.assert_array_equal(y, layer.linear.forward(flat)[0])


def test_the_class_token_is_the_same_before_each_sequence_also_one_of_nothing():
    layer = ClassToken(4, RNG)
    y, _ = layer.forward(np.zeros((3, 0, 4), np.float32))
    np.testing.assert_array_equal(y, np.tile(layer.token.data, (3, 1, 1)))


def test_epsilon_is_added_to_the_variance():
    row = np.array([-2.0, 2.0])  # variance 4
    y, _ = LayerNorm(2, epsilon=12.0).to(dtype=np.float64).forward(row)
    np.testing.assert_allclose(y, row / 4, rtol=1e-15)  # √(4 + 12)


def test_the_usual_epsilon_is_a_hundred_thousandth():
    row = np.array([-1.0, 1.0]) * np.sqrt(3e-5)  # variance 3e-5
    for y, _ in (
        layer_norm(row, np.ones(2), np.zeros(2)),
        LayerNorm(2).to(dtype=np.float64).forward(row),
    ):
        np.testing.assert_allclose(y, [-np.sqrt(0.75), np.sqrt(0.75)], rtol=1e-14)


def test_of_rows_with_mean_0_the_norms_with_and_without_a_mean_make_the_same():
    x = RNG.standard_normal((4, 6))
    x -= x.mean(axis=-1, keepdims=True)
    gamma = RNG.standard_normal(6)
    with_mean, _ = layer_norm(x, gamma, np.zeros(6))
    np.testing.assert_allclose(rms_norm(x, gamma)[0], with_mean, rtol=0, atol=1e-14)
    shifted, _ = rms_norm(x + 1, gamma)
    assert np.abs(shifted - with_mean).max() > 0.1


def test_a_row_of_zeros_stays_zero_without_a_mean_and_epsilon_is_that_of_layer_norm():
    np.testing.assert_array_equal(rms_norm(np.zeros((2, 6)), np.ones(6))[0], np.zeros((2, 6)))
    row = np.array([-1.0, 1.0]) * np.sqrt(3e-5)  # mean square 3e-5
    for y, _ in (rms_norm(row, np.ones(2)), RMSNorm(2).to(dtype=np.float64).forward(row)):
        np.testing.assert_allclose(y, [-np.sqrt(0.75), np.sqrt(0.75)], rtol=1e-14)


def test_epsilon_of_a_residual_connection_reaches_its_norm():
    assert ResidualConnection(6, epsilon=0.25).norm.epsilon == 0.25
    assert ResidualConnection(6).norm.epsilon == 1e-5


@pytest.mark.parametrize("k", [1, 5, 17])
def test_a_shift_by_k_is_one_rotation_of_each_pair_of_sinusoids_whatever_the_position(k):
    table = sinusoidal_encoding(50, 8)
    for i in range(4):
        angle = k / 10000 ** (2 * i / 8)
        rotation = np.array(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        )
        pair = table[:, 2 * i : 2 * i + 2]
        np.testing.assert_allclose(pair[k:], pair[:-k] @ rotation.T, atol=1e-13)


def test_merged_heads_lie_in_memory_as_they_did():
    x = RNG.standard_normal((2, 4, 18))
    assert merge_heads(split_heads(x, 3)).flags.c_contiguous
    np.testing.assert_array_equal(merge_heads(split_heads(x, 3)), x)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_the_first_and_the_last_id_are_accepted_in_any_integer_type(dtype):
    weight = RNG.standard_normal((7, 9))
    x, _ = embedding(np.array([0, 6], dtype=dtype), weight)
    np.testing.assert_array_equal(x, 3 * weight[[0, 6]])


def test_no_ids_at_all_are_in_range():
    check_token_ids(np.empty((0, 4), dtype=np.int64), 7)


def test_ids_checked_before_are_looked_at_on_the_host_and_left_alone_on_a_device():
    ids = np.array([0, 7])
    with ids_checked_before():
        check_token_ids(STAND_IN.asarray(ids), 7)
        with pytest.raises(ValueError, match="token ids run from 0 to 7"):
            check_token_ids(ids, 7)
    with pytest.raises(ValueError, match="token ids run from 0 to 7"):
        check_token_ids(STAND_IN.asarray(ids), 7)
