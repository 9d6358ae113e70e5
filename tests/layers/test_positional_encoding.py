import math

import numpy as np
import pytest

from minitransformer.layers.positional_encoding import (
    PositionalEncoding,
    positional_encoding,
    sinusoidal_encoding,
)

D = 8


def test_each_entry_is_the_sine_or_cosine_of_the_formula():
    table = sinusoidal_encoding(50, D)
    for t in range(50):
        for i in range(D // 2):
            angle = t / 10000 ** (2 * i / D)
            assert math.isclose(table[t, 2 * i], math.sin(angle), abs_tol=1e-14)
            assert math.isclose(table[t, 2 * i + 1], math.cos(angle), abs_tol=1e-14)


@pytest.mark.parametrize("k", [1, 5, 17])
def test_a_shift_by_k_is_one_rotation_of_each_pair_whatever_the_position(k):
    table = sinusoidal_encoding(50, D)
    for i in range(D // 2):
        angle = k / 10000 ** (2 * i / D)
        rotation = np.array(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        )
        pair = table[:, 2 * i : 2 * i + 2]
        np.testing.assert_allclose(pair[k:], pair[:-k] @ rotation.T, atol=1e-13)


def test_the_first_rows_are_added_to_every_sentence():
    x = np.random.default_rng(0).standard_normal((3, 5, D))
    y, _ = positional_encoding(x, sinusoidal_encoding(6, D))
    for sentence in range(3):
        np.testing.assert_array_equal(y[sentence], x[sentence] + sinusoidal_encoding(5, D))


def test_a_sequence_may_be_as_long_as_the_table_and_no_longer():
    layer = PositionalEncoding(6, D)
    assert layer.forward(np.zeros((1, 6, D)))[0].shape == (1, 6, D)
    with pytest.raises(ValueError, match=r"7 tokens is longer than the 6 .* larger max_length"):
        layer.forward(np.zeros((1, 7, D)))


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="d_model=7 must be even: each sine has a cosine"):
        sinusoidal_encoding(5, 7)
