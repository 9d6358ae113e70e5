import re

import numpy as np
import pytest

from minitransformer.layers.softmax import softmax, softmax_backward


def test_weights_are_the_shares_of_the_exponentials():
    weights, _ = softmax(np.log([[1.0, 2.0, 5.0]]))
    np.testing.assert_allclose(weights, [[1 / 8, 2 / 8, 5 / 8]], rtol=1e-15)


def test_large_scores_do_not_overflow():
    x = np.array([[1e4, 0.0, 1e4], [-1e4, -2e4, -1e4], [3e38, 1e38, 0.0]], dtype=np.float32)
    weights, _ = softmax(x)
    np.testing.assert_array_equal(weights, [[0.5, 0, 0.5], [0.5, 0, 0.5], [1, 0, 0]])


def test_a_forbidden_position_counts_as_if_it_were_not_there():
    x = np.random.default_rng(0).standard_normal((2, 5))
    x[:, 3] = 1e4  # the largest score by far, and forbidden
    mask = np.arange(5) != 3
    weights, _ = softmax(x, mask)
    expected, _ = softmax(x[:, mask])
    np.testing.assert_allclose(weights[:, mask], expected, rtol=1e-14)
    assert not weights[:, 3].any()


def test_a_row_with_nothing_allowed_is_zero_and_so_is_its_gradient():
    rng = np.random.default_rng(1)
    x, dweights = rng.standard_normal((2, 2, 3))
    weights, cache = softmax(x, np.array([[True, True, False], [False, False, False]]))
    dx = softmax_backward(dweights, cache)
    np.testing.assert_array_equal(weights[1], 0)
    np.testing.assert_array_equal(dx[1], 0)
    assert weights[0, :2].all()
    assert dx[0, :2].all()


def test_scores_of_minus_infinity_alone_give_zeros_as_a_mask_does():
    weights, _ = softmax(np.array([[-np.inf, -np.inf], [-np.inf, 7.0]]))
    np.testing.assert_array_equal(weights, [[0, 0], [0, 1]])


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_mask_that_is_not_boolean_is_refused(dtype):
    with pytest.raises(TypeError, match=rf"must be boolean, True where .* its dtype is {dtype}"):
        softmax(np.zeros((2, 3)), np.ones((2, 3), dtype=dtype))


@pytest.mark.parametrize("shape", [(2,), (3, 3), (2, 1, 3), (1, 1, 2, 3)])
def test_a_mask_that_does_not_fit_the_scores_is_refused(shape):
    words = f"a mask of shape {shape} does not broadcast to scores of shape (1, 2, 3)"
    with pytest.raises(ValueError, match=re.escape(words)):
        softmax(np.zeros((1, 2, 3)), np.ones(shape, dtype=bool))
