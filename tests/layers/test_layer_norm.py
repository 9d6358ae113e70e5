import numpy as np
import pytest

from minitransformer.layers.layer_norm import LayerNorm, layer_norm

RNG = np.random.default_rng(0)
X = RNG.normal(5, 3, (4, 7, 6))
GAMMA, BETA = RNG.uniform(0.5, 1.5, (2, 6))


def test_rows_have_mean_beta_and_standard_deviation_gamma():
    y, _ = layer_norm(X, np.full(6, 2.5), np.full(6, -4.0), epsilon=1e-14)
    np.testing.assert_allclose(y.mean(axis=-1), -4, rtol=1e-13)
    np.testing.assert_allclose(y.std(axis=-1), 2.5, rtol=1e-13)


def test_gamma_and_beta_act_on_each_feature_after_the_normalisation():
    x_hat, _ = layer_norm(X, np.ones(6), np.zeros(6))
    y, _ = layer_norm(X, GAMMA, BETA)
    for i in range(6):
        np.testing.assert_allclose(y[..., i], x_hat[..., i] * GAMMA[i] + BETA[i], rtol=1e-14)


def test_each_row_is_normalised_by_itself():
    together, _ = layer_norm(X, GAMMA, BETA)
    alone, _ = layer_norm(X[2, 3], GAMMA, BETA)
    np.testing.assert_allclose(together[2, 3], alone, rtol=1e-14)


def test_a_constant_row_gives_beta():
    y, _ = layer_norm(np.full((2, 6), 3.0), GAMMA, BETA)
    np.testing.assert_array_equal(y, [BETA, BETA])


def test_epsilon_is_added_to_the_variance():
    row = np.array([-2.0, 2.0])  # variance 4
    y, _ = LayerNorm(2, epsilon=12.0).to(dtype=np.float64).forward(row)
    np.testing.assert_allclose(y, row / 4, rtol=1e-15)  # √(4 + 12)


def test_the_usual_epsilon_is_a_hundred_thousandth():
    row = np.array([-1.0, 1.0]) * np.sqrt(3e-5)  # variance 3e-5
    for y, _ in (
        layer_norm(row, np.ones(2), np.zeros(2)),
        LayerNorm(2).to(dtype=np.float64).forward(row),
    ):
        np.testing.assert_allclose(y, [-np.sqrt(0.75), np.sqrt(0.75)], rtol=1e-14)


def test_a_new_layer_only_normalises():
    layer = LayerNorm(6)
    np.testing.assert_array_equal(layer.gamma.data, 1)
    np.testing.assert_array_equal(layer.beta.data, 0)
    assert layer.gamma.data.dtype == layer.beta.data.dtype == np.float32


def test_a_gain_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"of shape \(4,\); theirs are \(1,\)"):
        layer_norm(np.ones((2, 4)), np.ones(1), np.zeros(4))
