import math

import numpy as np
import pytest

from minitransformer.layers.additive_attention import (
    AdditiveAttention,
    additive_attention,
    additive_attention_backward,
)

B, T, S, D, A = 2, 3, 4, 5, 6
RNG = np.random.default_rng(0)
QUERY, KEY = RNG.standard_normal((B, T, A)), RNG.standard_normal((B, S, A))
VALUE, V = RNG.standard_normal((B, S, D)), RNG.standard_normal(A)


def test_it_is_bahdanaus_formula():
    layer = AdditiveAttention(3, 7, A, RNG).to(dtype=np.float64)
    query, key = RNG.standard_normal((B, T, 3)), RNG.standard_normal((B, S, 7))
    y, _ = layer.forward(query, key, VALUE)
    w, u, v = (parameter.data for parameter in layer.parameters())
    for b in range(B):
        for t in range(T):
            scores = [math.exp(v @ np.tanh(query[b, t] @ w + key[b, s] @ u)) for s in range(S)]
            expected = sum(scores[s] / sum(scores) * VALUE[b, s] for s in range(S))
            np.testing.assert_allclose(y[b, t], expected, rtol=1e-12)


def test_a_query_at_a_time_is_as_all_at_once():
    y, _ = additive_attention(QUERY, KEY, VALUE, V)
    for t in range(T):
        alone, _ = additive_attention(QUERY[:, t : t + 1], KEY, VALUE, V)
        np.testing.assert_allclose(alone[:, 0], y[:, t], rtol=1e-12)


def test_padded_keys_and_values_are_not_read_and_get_no_gradient():
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 1]], dtype=bool)
    key, value = (np.where(mask[..., None], x, 1000 * x[::-1]) for x in (KEY, VALUE))
    y, cache = additive_attention(QUERY, KEY, VALUE, V, mask[:, None])
    other, _ = additive_attention(QUERY, key, value, V, mask[:, None])
    np.testing.assert_array_equal(other, y)
    _, dkey, dvalue, _ = additive_attention_backward(np.ones_like(y), cache)
    for gradient in (dkey, dvalue):
        np.testing.assert_array_equal(gradient.any(axis=-1), mask)


def test_a_query_that_is_allowed_nothing_receives_zeros_and_has_no_gradient():
    mask = np.ones((B, T, S), dtype=bool)
    mask[1, 2] = False
    y, cache = additive_attention(QUERY, KEY, VALUE, V, mask)
    dquery, *_ = additive_attention_backward(np.ones_like(y), cache)
    for x in (y, dquery):
        np.testing.assert_array_equal(x.any(axis=-1), mask.any(axis=-1))


def test_a_mask_of_numbers_is_refused():
    with pytest.raises(TypeError, match="mask must be boolean"):
        additive_attention(QUERY, KEY, VALUE, V, np.ones((B, T, S)))
