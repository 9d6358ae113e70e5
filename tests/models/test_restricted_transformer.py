from dataclasses import replace

import numpy as np
import pytest

from minitransformer.cases.case import BATCH
from minitransformer.cases.models import small_config
from minitransformer.cases.models import small_restricted_config as small
from minitransformer.models.restricted_transformer import RestrictedTransformer
from minitransformer.models.transformer import Transformer

LONG = np.arange(1, 9)[None, :]  # (1, 8)


def loss_and_gradient(model):
    model.zero_grad()
    (loss, _), cache = model.loss(BATCH, smoothing=0.1)
    model.loss_backward(1.0, cache)
    return loss, model.flat.grad


def test_a_window_as_long_as_the_sentences_makes_it_the_transformer():
    whole = Transformer(small_config("pre"), seed=1, dtype=np.float64)
    model = RestrictedTransformer(replace(small(), window=8), dtype=np.float64)
    assert list(model.flat.slices) == list(whole.flat.slices)
    model.flat.data[...] = whole.flat.data
    for ours, theirs in zip(loss_and_gradient(model), loss_and_gradient(whole), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("window", [1, 2])
def test_two_layers_of_an_encoder_see_two_windows_to_either_side(window):
    model = RestrictedTransformer(replace(small(), window=window), seed=1)
    assert len(model.encoder.layers) == 2
    mask = model.source_mask(LONG)
    expected, _ = model.encode(LONG, mask)
    for s in range(8):
        other = LONG.copy()
        other[0, s] = 9
        memory, _ = model.encode(other, mask)
        (changed,) = (memory != expected).any(axis=(0, 2)).nonzero()
        reach = 2 * window
        np.testing.assert_array_equal(changed, np.arange(max(0, s - reach), min(8, s + reach + 1)))
