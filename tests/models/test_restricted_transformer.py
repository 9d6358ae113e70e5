from dataclasses import replace

import numpy as np
import pytest

from minitransformer.cases.models import small_restricted_config as small
from minitransformer.models.restricted_transformer import RestrictedTransformer

LONG = np.arange(1, 9)[None, :]  # (1, 8)


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
