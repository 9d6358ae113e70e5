import numpy as np

from minitransformer.layers.sigmoid import sigmoid


def test_it_is_the_formula_and_no_number_is_too_large_for_it():
    x = np.linspace(-20, 20, 81)
    np.testing.assert_allclose(sigmoid(x)[0], 1 / (1 + np.exp(-x)), atol=1e-15)
    y, _ = sigmoid(np.array([-1e30, -1e3, 0, 1e3, 1e30], dtype=np.float32))
    np.testing.assert_array_equal(y, [0, 0, 0.5, 1, 1])
