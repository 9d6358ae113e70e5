from functools import partial

import numpy as np
import pytest
from memory import traced
from rounding import assert_but_for_rounding

from minitransformer.layers.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.linear_attention import linear_attention
from minitransformer.layers.tiled_attention import tiled_attention, tiled_attention_backward

B, H, T, S, K = 3, 2, 13, 17, 4
RNG = np.random.default_rng(0)
QUERY, DY = RNG.standard_normal((2, B, H, T, K))
KEY, VALUE = RNG.standard_normal((2, B, H, S, K))
TOKENS = np.arange(S) < np.array([17, 6, 0])[:, None]  # the last sentence is all padding
PADDING_MASK = TOKENS[:, None, None, :]
each_mask = pytest.mark.parametrize("mask", [None, PADDING_MASK], ids=["no mask", "padding mask"])
each_size = pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 12, 13, 16, 17, 100])


def assert_as_in_full(query, key, value, dy, size, causal, mask):
    y, cache = tiled_attention(query, key, value, size, causal, mask)
    gradients = tiled_attention_backward(dy, cache)
    if causal:
        mask = np.tri(query.shape[2], dtype=bool) & (True if mask is None else mask)
    expected, cache = scaled_dot_product_attention(query, key, value, mask)
    expected_gradients = scaled_dot_product_attention_backward(dy, cache)
    for ours, full in zip((y, *gradients), (expected, *expected_gradients), strict=True):
        np.testing.assert_allclose(ours, full, rtol=0, atol=1e-12)


@each_mask
@each_size
def test_it_is_full_attention_whatever_the_size_of_tiles(size, mask):
    assert_as_in_full(QUERY, KEY, VALUE, DY, size, False, mask)


@each_mask
@each_size
def test_it_is_full_attention_where_what_comes_after_is_hidden(size, mask):
    mask = None if mask is None else mask[..., :T]
    assert_as_in_full(QUERY, KEY[:, :, :T], VALUE[:, :, :T], DY, size, True, mask)


@pytest.mark.parametrize(
    "attention", [partial(tiled_attention, size=5), linear_attention], ids=["tiled", "linear"]
)
@pytest.mark.parametrize(
    "mask",
    [TOKENS[1], TOKENS[1][None, None, None], np.ones((1, 1, 1, 1), bool)],
    ids=["(S,)", "(1, 1, 1, S)", "(1, 1, 1, 1)"],
)
def test_a_mask_for_all_sentences_is_one_for_each(attention, mask):
    whole = np.broadcast_to(mask, (B, 1, 1, S))
    y, expected = (attention(QUERY, KEY, VALUE, mask=m)[0] for m in (mask, whole))
    assert_but_for_rounding(y, expected)


@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
def test_no_order_of_scores_overflows_or_is_forgotten(order):
    """Scores from −2048 to 2048, in steps before which all that was summed up vanishes."""
    key = np.linspace(-1, 1, S)[::order, None] * np.ones((B, H, S, K))
    query = np.full((B, H, T, K), 1024.0)
    assert_as_in_full(query, key, VALUE, DY, 3, False, None)
    assert_as_in_full(query, key - 3, VALUE, DY, 3, False, None)  # and all are far below zero


def peak_of_a_step(length, size=64):
    """The most memory that forward and backward of a sequence have at once, in bytes."""
    query, key, value, dy = np.zeros((4, 1, 1, length, 8), np.float32)
    with traced() as memory:
        _, cache = tiled_attention(query, key, value, size, causal=True)
        tiled_attention_backward(dy, cache)
    return memory.peak


def test_memory_grows_as_the_length_does():
    first, *peaks = np.array([peak_of_a_step(length) for length in (1024, 2048, 4096)])
    tile = 64 * 64 * 4
    assert first < 1024 * 8 * 4 * 8 + 8 * tile  # what is returned and kept, and a few tiles
    np.testing.assert_allclose(np.diff([first, *peaks]) / [1024, 2048], 8 * 4 * 4.2, rtol=0.2)
    assert peaks[-1] < 4096 * 4096 * 4 / 50  # of the weights alone that full attention has


def test_scores_of_tiles_after_the_last_query_are_not_made(monkeypatch):
    made = []
    monkeypatch.setattr(
        "minitransformer.layers.tiled_attention._scores",
        lambda q, key, rows, columns, *_: made.append((rows.start, columns.start)) or q @ key[
            :, :, columns].swapaxes(-1, -2),
    )  # fmt: skip
    y, cache = tiled_attention(QUERY, KEY[:, :, :T], VALUE[:, :, :T], 5, causal=True)
    assert made == [(0, 0), (5, 0), (5, 5), (10, 0), (10, 5), (10, 10)]
    tiled_attention_backward(y, cache)
    assert sorted(made[6:]) == made[:6]
