"""What new layers begin with: scales that keep the size of what passes, biases of zero, float32."""

import math

import numpy as np
import pytest

from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.layers.convolution import Convolution1d
from minitransformer.layers.convolution_2d import Convolution2d
from minitransformer.layers.embedding import Embedding, embedding_weight
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.first_weights import STARTS, first_weight
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.linear import Linear
from minitransformer.layers.lstm import LSTM
from minitransformer.layers.patches import ClassToken
from minitransformer.layers.recurrence import hidden_weight
from minitransformer.layers.rms_norm import RMSNorm
from minitransformer.layers.swiglu import SwiGLU

RNG = np.random.default_rng(0)


def test_glorot_counts_what_one_group_of_channels_is_given_and_gives():
    weight = Convolution2d(40, 120, 3, RNG, groups=4, start="glorot").weight.data
    limit = math.sqrt(6 / (9 * 10 + 9 * 30))
    assert 0.99 * limit < abs(weight).max() <= limit


VARIANCES = {"he": 2 / 480, "glorot": 2 / 1280, "fixed-0.01": 1e-4, "fixed-0.02": 4e-4}


@pytest.mark.parametrize("start", STARTS)
def test_each_way_to_draw_first_weights_has_the_variance_it_promises(start):
    weight = first_weight(start, (4, 4, 30, 50), 480, 800, np.random.default_rng(1))
    assert (weight.shape, weight.dtype) == ((4, 4, 30, 50), np.float32)
    assert abs(weight.mean()) < 4 * weight.std() / math.sqrt(weight.size)
    assert weight.var() == pytest.approx(VARIANCES[start], rel=0.03)
    within = {"glorot": 1 / math.sqrt(3)}.get(start, 0.6827)  # of one deviation, if normal
    assert (np.abs(weight) < weight.std()).mean() == pytest.approx(within, abs=0.01)


def test_a_new_class_token_is_small():
    assert ClassToken(1000, RNG).token.data.std() == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("norm", [LayerNorm(6), BatchNorm(6)])
def test_new_biases_are_zero_and_a_new_norm_only_normalises(norm):
    feed_forward = FeedForward(4, 7, RNG)
    biases = Linear(4, 5, RNG).bias, feed_forward.b_1, feed_forward.b_2, norm.beta
    for bias in biases:
        np.testing.assert_array_equal(bias.data, 0)
    np.testing.assert_array_equal(norm.gamma.data, 1)
    assert [bias.data.shape for bias in biases] == [(5,), (7,), (4,), (6,)]
    parameters = [*biases, norm.gamma, *feed_forward.parameters()]
    assert {parameter.data.dtype for parameter in parameters} == {np.dtype(np.float32)}


def test_embedded_tokens_start_with_variance_1():
    layer = Embedding(embedding_weight(1000, 64, np.random.default_rng(1)))
    x, _ = layer.forward(np.arange(1000))
    assert layer.weight.data.dtype == np.float32
    assert abs(x.mean()) < 4 / np.sqrt(x.size)
    assert abs(x.var() - 1) < 4 * np.sqrt(2 / x.size)


def test_a_new_norm_without_a_mean_only_normalises_and_a_new_gated_network_keeps_float32():
    np.testing.assert_array_equal(RMSNorm(6).gamma.data, np.ones(6, np.float32))
    network = SwiGLU(6, 16, RNG)
    assert network.num_parameters() == 3 * 6 * 16 == FeedForward(6, 24, RNG).num_parameters() - 30
    assert {w.data.dtype for w in network.parameters()} == {np.dtype(np.float32)}


def test_at_first_positions_are_as_large_as_words():
    words, _ = Embedding(embedding_weight(200, 64, RNG)).forward(np.arange(200))
    assert LearnedPositions(200, 64, RNG).table.data.std() == pytest.approx(words.std(), rel=0.03)


def test_outputs_of_a_new_convolution_have_the_variance_of_its_inputs():
    layer = Convolution1d(64, 64, 5, np.random.default_rng(1))
    y, _ = layer.forward(np.random.default_rng(2).standard_normal((4, 200, 64)))
    assert 0.9 < y[:, 5:-5].var() < 1.1


def test_what_comes_from_the_state_keeps_its_length_in_every_gate():
    weight = hidden_weight(32, 3, np.random.default_rng(5))
    assert weight.dtype == np.float32
    for gate in np.split(weight.astype(np.float64), 3, axis=1):
        np.testing.assert_allclose(gate.T @ gate, np.eye(32), atol=1e-6)


def test_what_comes_from_the_state_may_turn_it_in_any_direction():
    first = [hidden_weight(3, 1, np.random.default_rng(seed))[0, 0] for seed in range(40)]
    assert 10 < sum(entry > 0 for entry in first) < 30


def test_what_comes_from_the_input_has_the_variance_of_glorot_in_every_gate():
    weight = LSTM(200, 100, np.random.default_rng(7)).w_input.data
    limit = math.sqrt(6 / (200 + 100))
    for gate in np.split(weight, 4, axis=1):
        assert 0.99 * limit < np.abs(gate).max() <= limit
        assert gate.std() == pytest.approx(limit / math.sqrt(3), rel=0.02)


def test_the_forget_gate_of_an_lstm_is_open_at_first():
    bias = LSTM(4, 3, np.random.default_rng(6)).bias.data
    np.testing.assert_array_equal(bias.reshape(4, 3).T, np.tile([0, 1, 0, 0], (3, 1)))
