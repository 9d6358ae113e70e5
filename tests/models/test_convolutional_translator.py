import numpy as np
import pytest

from minitransformer.models.convolutional_translator import (
    ConvolutionalTranslatorConfig,
    GatedConvolution,
)


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_a_gated_convolution_keeps_the_size_of_what_it_is_given(p):
    config = ConvolutionalTranslatorConfig(20, 20, 64, dropout=p)
    rng = np.random.default_rng(0)
    layer = GatedConvolution(config, rng, causal=False)
    h, _ = layer.forward(rng.standard_normal((8, 100, 64)), rng=rng)
    assert h.std() == pytest.approx(1, abs=0.1)
