import tracemalloc

import numpy as np
import pytest

from minitransformer.layers.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
from minitransformer.layers.masks import causal_mask
from minitransformer.layers.restricted_attention import (
    RestrictedSelfAttention,
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


@causal_or_not
@pytest.mark.parametrize("window", [T, T + 1, 1000])
def test_a_window_as_long_as_the_sequence_is_multi_head_attention(window, causal):
    ours = RestrictedSelfAttention(D, H, window, RNG, causal=causal).to(dtype=np.float64)
    full = MultiHeadAttention(D, H, RNG).to(dtype=np.float64)
    for mine, theirs in zip(ours.parameters(), full.parameters(), strict=True):
        theirs.data = mine.data
    mask = PADDING_MASK & causal_mask(TOKENS) if causal else PADDING_MASK
    expected, full_cache = full.forward(QUERY, KEY, VALUE, mask)
    y, cache = ours.forward(QUERY, KEY, VALUE, PADDING_MASK)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-12)
    expected = full.backward(DY, full_cache)
    for dx, full_dx in zip(ours.backward(DY, cache), expected, strict=True):
        np.testing.assert_allclose(dx, full_dx, rtol=0, atol=1e-12)
    named = zip(ours.named_parameters(), full.named_parameters(), strict=True)
    for (path, mine), (full_path, theirs) in named:
        assert path == full_path
        np.testing.assert_allclose(mine.grad, theirs.grad, rtol=0, atol=1e-12)


@causal_or_not
@pytest.mark.parametrize("window", [1, 2, 5])
def test_an_output_depends_on_the_positions_of_its_window_and_on_no_other(window, causal):
    layer = RestrictedSelfAttention(D, H, window, RNG, causal=causal)
    _, cache = layer.forward(QUERY, QUERY, QUERY)
    depends = np.zeros((T, T), dtype=bool)
    for t in range(T):
        dy = np.zeros_like(DY)
        dy[:, t] = DY[:, t]
        depends[t] = sum(layer.backward(dy, cache)).any(axis=(0, 2))
    np.testing.assert_array_equal(depends, band(T, window, causal))


def test_a_causal_window_sees_no_future():
    layer = RestrictedSelfAttention(D, H, 2, RNG, causal=True)
    expected, _ = layer.forward(QUERY, QUERY, QUERY)
    other = QUERY.copy()
    other[:, 7:] = 1000
    y, _ = layer.forward(other, other, other)
    np.testing.assert_array_equal(y[:, :7], expected[:, :7])
    assert (y[:, 7:] != expected[:, 7:]).any(axis=-1).all()


@causal_or_not
@pytest.mark.parametrize("columns", [(0, 1), (0, 9), (4, 0)])
def test_padding_changes_nothing(columns, causal):
    """Neither outputs at tokens nor gradients, whatever stands at the padding."""
    arguments = H, 2, causal
    y, cache = restricted_attention(QUERY, KEY, VALUE, *arguments)
    gradients = restricted_attention_backward(DY, cache)
    columns = ((0, 0), columns, (0, 0))
    mask = np.pad(np.ones((B, T, 1), dtype=bool), columns)[..., 0]
    padded = (np.pad(x, columns, constant_values=10) for x in (QUERY, KEY, VALUE))
    padded_y, cache = restricted_attention(*padded, *arguments, mask[:, None, None, :])
    padded_gradients = restricted_attention_backward(np.pad(DY, columns), cache)
    for ours, expected in zip((padded_y, *padded_gradients), (y, *gradients), strict=True):
        np.testing.assert_allclose(ours[mask].reshape(expected.shape), expected, atol=1e-12)
    for dx in padded_gradients:
        assert not dx[~mask].any()


def test_a_query_that_sees_only_padding_receives_zeros_and_sends_no_gradient():
    y, cache = restricted_attention(QUERY, KEY, VALUE, H, 2, False, PADDING_MASK)
    dquery, dkey, dvalue = restricted_attention_backward(DY, cache)
    sees_something = (band(T, 2, False) & TOKENS[:, None, :]).any(axis=-1)
    np.testing.assert_array_equal(y.any(axis=-1), sees_something)
    assert not dquery[~sees_something].any()
    np.testing.assert_array_equal(dkey.any(axis=-1), TOKENS)
    np.testing.assert_array_equal(dvalue.any(axis=-1), TOKENS)


def test_dropout_of_the_weights_keeps_their_scale():
    """With all values 1 each output is the sum of its row of weights after dropout."""
    ones = np.ones((1, 4000, 2))
    y, _ = restricted_attention(0 * ones, 0 * ones, ones, 1, 3, p=0.5, rng=RNG)
    assert y.std() > 0
    assert abs(y.mean() - 1) < 4 * y.std() / np.sqrt(4000)


def peak_of_a_step(length, window):
    """The most memory that forward and backward of a sequence have at once, in bytes."""
    query, key, value, dy = np.zeros((4, 1, length, 8), np.float32)
    tracemalloc.start()
    _, cache = restricted_attention(query, key, value, 1, window)
    restricted_attention_backward(dy, cache)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_grows_as_the_length_does():
    peaks = [peak_of_a_step(length, 8) for length in (1024, 2048, 4096)]
    np.testing.assert_allclose(np.divide(peaks[1:], peaks[:-1]), 2, rtol=0.05)
    assert peaks[-1] < 4096 * 4096  # full attention has four times as many bytes of weights alone


def test_memory_grows_as_the_window_does():
    peaks = [peak_of_a_step(4096, window) for window in (64, 128, 256)]
    np.testing.assert_allclose(np.divide(peaks[1:], peaks[:-1]), 2, rtol=0.1)


def test_a_window_of_nothing_is_refused():
    with pytest.raises(ValueError, match="window=0 must be 1 or more"):
        RestrictedSelfAttention(D, H, 0, RNG)
    with pytest.raises(ValueError, match="window=0 must be 1 or more"):
        restricted_attention(QUERY, KEY, VALUE, H, 0)


def test_keys_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"of one shape; theirs are .* \(3, 12, 6\)"):
        restricted_attention(QUERY, KEY[:, 1:], VALUE[:, 1:], H, 2)


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        (PADDING_MASK * 1.0, TypeError, "mask must be boolean"),
        (causal_mask(TOKENS), ValueError, r"\(1, 1, 13, 13\) does not broadcast to .* 1, 1, 13\)"),
    ],
)
def test_a_mask_of_numbers_or_of_pairs_of_positions_is_refused(mask, error, words):
    with pytest.raises(error, match=words):
        RestrictedSelfAttention(D, H, 2, RNG).forward(QUERY, QUERY, QUERY, mask)
