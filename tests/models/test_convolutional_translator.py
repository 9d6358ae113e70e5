import numpy as np
import pytest

from minitransformer import decoding
from minitransformer.cases.case import (
    BATCH,
    SOURCE,
    TARGET,
    B,
    D,
)
from minitransformer.cases.models import small_convolution_config
from minitransformer.data.text.vocabulary import BOS, PAD
from minitransformer.decoding.attention import cross_attention
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


def test_every_layer_of_the_decoder_looks_at_the_words_of_the_source():
    weights = cross_attention(MODEL, SOURCE, TARGET)
    layers, length = CONFIG.num_decoder_layers, TARGET.shape[1]
    assert weights.shape == (layers, B, 1, length, SOURCE.shape[1])
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    assert not np.moveaxis(weights, -1, 2)[:, SOURCE == 0].any()


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_a_gated_convolution_keeps_the_size_of_what_it_is_given(p):
    config = ConvolutionalTranslatorConfig(20, 20, 64, dropout=p)
    rng = np.random.default_rng(0)
    layer = GatedConvolution(config, rng, causal=False)
    h, _ = layer.forward(rng.standard_normal((8, 100, 64)), rng=rng)
    assert h.std() == pytest.approx(1, abs=0.1)


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
