"""Layers one position at a time against their forward on the whole: what they keep is enough."""

from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer.decoding.incremental import Growing
from minitransformer.layers.additive_attention import AdditiveAttention
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.convolution import Convolution1d
from minitransformer.layers.elman import Elman
from minitransformer.layers.gru import GRU
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.lstm import LSTM
from minitransformer.layers.masks import causal_mask
from minitransformer.layers.positional_encoding import PositionalEncoding
from minitransformer.layers.restricted_attention import RestrictedSelfAttention
from minitransformer.models.convolutional_translator import (
    ConvolutionalTranslatorConfig,
    GatedConvolution,
)
from minitransformer.models.stacks import DecoderLayer, EncoderLayer

B, T, S, D, H, WINDOW = 3, 7, 4, 6, 2, 2
RNG = np.random.default_rng(0)
X = RNG.standard_normal((B, T, D))
MEMORY = RNG.standard_normal((1, S, D)).repeat(B, axis=0)  # of whichever row
PARENTS = np.array([2, 2, 0])  # whose past the rows go on with, from position AT on
AT = 4
CAUSAL = causal_mask(np.zeros((B, T)))
NEAR = CAUSAL & ~np.tri(T, k=-WINDOW - 1, dtype=bool)


def of_rows(state, rows):
    if isinstance(state, tuple):
        return tuple(of_rows(part, rows) for part in state)
    if isinstance(state, Growing):
        state.keep(rows)
        return state
    return state[rows]


def attention(layer):
    def step(x, t, kept):
        mask = NEAR if isinstance(layer, RestrictedSelfAttention) else CAUSAL
        return layer.step(x[:, None], kept, mask[..., t : t + 1, : t + 1])[:, 0], kept

    mask = None if isinstance(layer, RestrictedSelfAttention) else CAUSAL
    return lambda x: layer.forward(x, x, x, mask)[0], step, Growing()


def encoder_layer(layer):
    def step(x, t, kept):
        return layer.step(x[:, None], kept)[:, 0], kept

    return lambda x: layer.forward(x, CAUSAL)[0], step, Growing()


def decoder_layer(layer):
    memory = layer.cross_attention.keys_and_values(MEMORY, MEMORY)

    def step(x, t, kept):
        return layer.step(x[:, None], memory, kept)[:, 0], kept

    return lambda x: layer.forward(x, MEMORY, CAUSAL)[0], step, Growing()


def additive(layer):
    keys = layer.keys(MEMORY)

    def step(x, t, state):
        return layer.attend(x[:, None], keys, MEMORY)[:, 0], state

    return lambda x: layer.forward(x, MEMORY, MEMORY)[0], step, ()


def convolution(layer, zeros_before):
    return (
        lambda x: layer.forward(x)[0],
        lambda x, t, before: layer.step(x, before),
        zeros_before(X[:, 0]),
    )


def gated(layer):
    return convolution(layer, layer.convolution.zeros_before)


def recurrent(layer, parts):
    def step(x, t, state):
        (y, *state), _ = layer.forward(x[:, None], *state)
        return y[:, 0], tuple(state)

    return lambda x: layer.forward(x)[0][0], step, parts * (np.zeros((B, D)),)


def positions(layer):
    def step(x, t, state):
        return layer.step(x[:, None], t)[:, 0], state

    return lambda x: layer.forward(x)[0], step, ()


def small_config(norm):
    dropouts = dict(dropout=0.1, attention_dropout=0.1, feed_forward_dropout=0.1, epsilon=1e-5)
    return SimpleNamespace(d_model=D, num_heads=H, d_ff=8, norm=norm, **dropouts)


PRE, POST = small_config("pre"), small_config("post")
GATED = ConvolutionalTranslatorConfig(9, 9, D, kernel_width=3)


STEPS = {
    "attention": (attention, lambda rng: MultiHeadAttention(D, H, rng)),
    "restricted attention": (
        attention,
        lambda rng: RestrictedSelfAttention(D, H, WINDOW, rng, causal=True),
    ),
    "encoder layer, post-norm": (encoder_layer, lambda rng: EncoderLayer(POST, rng)),
    "encoder layer, pre-norm": (encoder_layer, lambda rng: EncoderLayer(PRE, rng)),
    "decoder layer, post-norm": (decoder_layer, lambda rng: DecoderLayer(POST, rng)),
    "decoder layer, pre-norm": (decoder_layer, lambda rng: DecoderLayer(PRE, rng)),
    "additive attention": (additive, lambda rng: AdditiveAttention(D, D, 5, rng)),
    "convolution": (
        lambda layer: convolution(layer, layer.zeros_before),
        lambda rng: Convolution1d(D, 5, 3, rng, causal=True),
    ),
    "convolution, dilation": (
        lambda layer: convolution(layer, layer.zeros_before),
        lambda rng: Convolution1d(D, 5, 2, rng, dilation=2, causal=True),
    ),
    "gated convolution": (gated, lambda rng: GatedConvolution(GATED, rng, causal=True)),
    "Elman": (lambda layer: recurrent(layer, 1), lambda rng: Elman(D, D, rng)),
    "GRU": (lambda layer: recurrent(layer, 1), lambda rng: GRU(D, D, rng)),
    "LSTM": (lambda layer: recurrent(layer, 2), lambda rng: LSTM(D, D, rng)),
    "sinusoids": (positions, lambda rng: PositionalEncoding(T, D)),
    "learned positions": (positions, lambda rng: LearnedPositions(T, D, rng)),
}


@pytest.mark.parametrize("name", STEPS)
def test_position_by_position_is_forward_on_the_whole(name):
    """Where rows go on with what others have read, too: rows of the whole have changed as well."""
    parts, new = STEPS[name]
    forward, step, state = parts(new(np.random.default_rng(1)).to(dtype=np.float64))
    x = X.copy()
    x[:, :AT] = X[PARENTS, :AT]
    first, then = forward(X), forward(x)
    for t in range(T):
        if t == AT:
            state = of_rows(state, PARENTS)
        y, state = step(X[:, t], t, state)
        np.testing.assert_allclose(y, (first if t < AT else then)[:, t], rtol=1e-12, atol=1e-13)


def test_beyond_the_last_position_there_is_no_step():
    layer = LearnedPositions(T, D, RNG)
    with pytest.raises(ValueError, match="sequence of 8 tokens is longer than the 7"):
        layer.step(X[:, :2], T - 1)
