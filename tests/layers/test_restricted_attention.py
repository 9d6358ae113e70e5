import numpy as np
import pytest
from memory import traced

from minitransformer.layers.attention import (
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
from minitransformer.layers.restricted_attention import (
    restricted_attention,
    restricted_attention_backward,
)

B, T, D, H = 3, 13, 6, 2
RNG = np.random.default_rng(0)
QUERY, KEY, VALUE = RNG.standard_normal((3, B, T, D))
DY = RNG.standard_normal((B, T, D))
TOKENS = np.arange(T) < np.array([13, 6, 0])[:, None]  # the last sentence is all padding
PADDING_MASK = TOKENS[:, None, None, :]
causal_or_not = pytest.mark.parametrize("causal", [False, True])


def band(length, window, causal):
    """Which keys are in the window of each query, (T, T)."""
    distance = np.arange(length)[None, :] - np.arange(length)[:, None]
    return (distance >= -window) & (distance <= (0 if causal else window))


@causal_or_not
@pytest.mark.parametrize("mask", [None, PADDING_MASK], ids=["no mask", "padding mask"])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 6, 7, 12, 13, 100])
def test_it_is_full_attention_with_the_weights_out_of_the_window_taken_away(window, mask, causal):
    y, cache = restricted_attention(QUERY, KEY, VALUE, H, window, causal, mask)
    gradients = restricted_attention_backward(DY, cache)

    allowed = band(T, window, causal) & (True if mask is None else mask)
    heads = (split_heads(x, H) for x in (QUERY, KEY, VALUE))
    expected, cache = scaled_dot_product_attention(*heads, allowed)
    expected_gradients = scaled_dot_product_attention_backward(split_heads(DY, H), cache)
    for ours, full in zip((y, *gradients), (expected, *expected_gradients), strict=True):
        np.testing.assert_allclose(ours, merge_heads(full), rtol=0, atol=1e-12)


def peak_of_a_step(length, window):
    """The most memory that forward and backward of a sequence have at once, in bytes."""
    query, key, value, dy = np.zeros((4, 1, length, 8), np.float32)
    with traced() as memory:
        _, cache = restricted_attention(query, key, value, 1, window)
        restricted_attention_backward(dy, cache)
    return memory.peak


def test_memory_grows_as_the_length_does():
    peaks = [peak_of_a_step(length, 8) for length in (1024, 2048, 4096)]
    np.testing.assert_allclose(np.divide(peaks[1:], peaks[:-1]), 2, rtol=0.05)
    assert peaks[-1] < 4096 * 4096  # full attention has four times as many bytes of weights alone


def test_memory_grows_as_the_window_does():
    peaks = [peak_of_a_step(4096, window) for window in (64, 128, 256)]
    np.testing.assert_allclose(np.divide(peaks[1:], peaks[:-1]), 2, rtol=0.1)
