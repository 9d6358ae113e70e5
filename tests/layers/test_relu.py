import numpy as np

from minitransformer.layers.relu import relu, relu_backward


def test_negative_entries_become_zero_and_the_others_stay():
    y, _ = relu(np.array([-2.0, -0.0, 0.0, 3.0]))
    np.testing.assert_array_equal(y, [0, 0, 0, 3])


def test_the_slope_is_taken_to_be_zero_at_zero():
    _, cache = relu(np.array([-2.0, 0.0, 3.0]))
    np.testing.assert_array_equal(relu_backward(np.array([5.0, 5.0, 5.0]), cache), [0, 0, 5])
