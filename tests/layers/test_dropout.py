import numpy as np
import pytest

from minitransformer.layers.dropout import dropout, dropout_backward

P = 0.3
ONES = np.ones((200, 500))


def test_about_the_asked_share_is_dropped_and_the_mean_is_kept():
    y, _ = dropout(ONES, P, np.random.default_rng(0))
    standard_error = np.sqrt(P * (1 - P) / ONES.size)
    assert abs((y == 0).mean() - P) < 4 * standard_error
    assert abs(y.mean() - 1) < 4 * standard_error / (1 - P)


def test_what_is_kept_is_scaled_by_one_over_the_probability_of_keeping_it():
    x = np.random.default_rng(1).standard_normal((50, 60))
    y, _ = dropout(x, P, np.random.default_rng(0))
    np.testing.assert_allclose(y[y != 0], x[y != 0] / 0.7, rtol=1e-15)


def test_backward_drops_and_scales_the_very_same_entries():
    y, cache = dropout(ONES, P, np.random.default_rng(0))
    np.testing.assert_array_equal(dropout_backward(ONES, cache), y)


def test_a_second_use_leaves_the_mask_of_the_first_alone():
    rng = np.random.default_rng(0)
    first, first_cache = dropout(ONES, P, rng)
    second, second_cache = dropout(ONES, P, rng)
    assert (first != second).any()
    np.testing.assert_array_equal(dropout_backward(ONES, first_cache), first)
    np.testing.assert_array_equal(dropout_backward(ONES, second_cache), second)


@pytest.mark.parametrize(("p", "rng"), [(P, None), (0.0, np.random.default_rng(0))])
def test_inference_and_a_probability_of_0_change_nothing(p, rng):
    y, cache = dropout(ONES, p, rng)
    assert y is ONES
    assert dropout_backward(ONES, cache) is ONES


def test_nothing_is_dropped_unless_asked_for():
    assert dropout(ONES, rng=np.random.default_rng(0))[0] is ONES


def test_the_same_state_gives_the_same_mask_in_either_precision():
    single, _ = dropout(ONES.astype(np.float32), P, np.random.default_rng(0))
    double, _ = dropout(ONES, P, np.random.default_rng(0))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single == 0, double == 0)


@pytest.mark.parametrize("p", [1, 1.5, -0.1, float("nan")])
@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)])
def test_a_probability_outside_0_to_1_is_refused_even_at_inference(p, rng):
    with pytest.raises(ValueError, match=rf"probability p={p} must lie in 0 <= p < 1"):
        dropout(ONES, p, rng)
