import numpy as np
import pytest
from strict_cupy import strict

from minitransformer import decoding
from minitransformer.backend import Device, to_host
from minitransformer.data.vocabulary import BOS, PAD
from minitransformer.decoding.attention import cross_attention
from minitransformer.gradcheck.cases import BATCH, SOURCE, TARGET, B, D, small_convolution_config
from minitransformer.models.convolutional_translator import (
    ConvolutionalTranslator,
    ConvolutionalTranslatorConfig,
    GatedConvolution,
)

CONFIG = small_convolution_config()
MODEL = ConvolutionalTranslator(CONFIG, seed=1, dtype=np.float64)


@pytest.mark.parametrize(
    "fields",
    [dict(), dict(kernel_width=5, tying="none"), dict(num_encoder_layers=1, num_decoder_layers=3)],
)
def test_its_size_is_known_without_building_it(fields):
    config = ConvolutionalTranslatorConfig(20, 20, 8, max_length=7, **fields)
    assert config.num_parameters() == ConvolutionalTranslator(config).num_parameters()


def test_what_is_said_later_does_not_change_what_was_said_before():
    expected, _ = MODEL.forward(SOURCE, TARGET)
    other = np.where(np.arange(TARGET.shape[1]) > 1, 10, TARGET)
    logits, _ = MODEL.forward(SOURCE, other)
    np.testing.assert_array_equal(logits[:, :2], expected[:, :2])
    assert (logits[:, 2:] != expected[:, 2:]).any(axis=(1, 2)).all()


def test_padding_changes_neither_logits_nor_gradients():
    def logits_and_gradient(source, target):
        MODEL.zero_grad()
        logits, cache = MODEL.forward(source, target)
        dlogits = np.zeros_like(logits)
        dlogits[:, : TARGET.shape[1]] = np.random.default_rng(0).standard_normal((B, 4, 11))
        MODEL.backward(dlogits, cache)
        return logits[:, : TARGET.shape[1]], MODEL.flat.grad.copy()

    wider = ((0, 0), (0, 3))
    expected = logits_and_gradient(SOURCE, TARGET)
    padded = logits_and_gradient(np.pad(SOURCE, wider), np.pad(TARGET, wider))
    for ours, theirs in zip(padded, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_every_layer_of_the_decoder_looks_at_the_words_of_the_source():
    weights = cross_attention(MODEL, SOURCE, TARGET)
    layers, length = CONFIG.num_decoder_layers, TARGET.shape[1]
    assert weights.shape == (layers, B, 1, length, SOURCE.shape[1])
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    assert not np.moveaxis(weights, -1, 2)[:, SOURCE == 0].any()


def test_a_gated_convolution_keeps_the_size_of_what_it_is_given():
    config = ConvolutionalTranslatorConfig(20, 20, 64, dropout=0.0)
    layer = GatedConvolution(config, np.random.default_rng(0), causal=False)
    h, _ = layer.forward(np.random.default_rng(1).standard_normal((8, 100, 64)))
    assert 0.7 < h.std() < 1.4


def test_it_gives_on_a_device_what_it_gives_on_numpy():
    device = Device("stand-in", strict)
    here = ConvolutionalTranslator(CONFIG, seed=2)
    there = ConvolutionalTranslator(CONFIG, seed=2, device=device)
    for model in (here, there):
        _, cache = model.loss(BATCH)
        model.loss_backward(1.0, cache)
    gradient = to_host(there.flat.grad)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, here.flat.grad, atol=1e-5 * abs(gradient).max())


def test_greedy_says_what_is_most_probable_after_all_that_was_said():
    for source, found in zip(SOURCE, decoding.greedy(MODEL, SOURCE), strict=True):
        said = [BOS]
        for token in found.ids:
            logits, _ = MODEL.forward(source[source > 0][None], np.array([said]))
            logits[..., [PAD, BOS]] = -np.inf
            assert logits[0, -1].argmax() == token
            said.append(token)


def test_a_few_steps_down_the_gradient_make_the_loss_smaller():
    model = ConvolutionalTranslator(CONFIG, seed=3, dtype=np.float64)
    losses = []
    for _ in range(10):
        model.zero_grad()
        (loss, _), cache = model.loss(BATCH)
        model.loss_backward(1.0, cache)
        model.flat.data -= 0.1 * model.flat.grad
        losses.append(loss)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize(("width", "words"), [(4, "3 or 5"), (2, "1 or 3")])
def test_a_kernel_without_a_middle_is_refused(width, words):
    with pytest.raises(ValueError, match=f"kernel_width={width} has no middle; choose {words}"):
        ConvolutionalTranslatorConfig(20, 20, D, kernel_width=width)
