import numpy as np

from minitransformer.layers.feed_forward import FeedForward

RNG = np.random.default_rng(0)


def test_every_position_passes_the_two_maps_of_equation_2():
    layer = FeedForward(4, 7, RNG).to(dtype=np.float64)
    for parameter in layer.parameters():
        parameter.data[...] = RNG.standard_normal(parameter.data.shape)
    x = RNG.standard_normal((2, 3, 4))
    y, _ = layer.forward(x)
    inner = np.maximum(0, x[1, 2] @ layer.w_1.data + layer.b_1.data)
    assert 0 < np.count_nonzero(inner) < 7
    np.testing.assert_allclose(y[1, 2], inner @ layer.w_2.data + layer.b_2.data, rtol=1e-12)


def test_new_biases_are_zero():
    layer = FeedForward(4, 7, RNG)
    assert not layer.b_1.data.any()
    assert not layer.b_2.data.any()
    assert {parameter.data.dtype for parameter in layer.parameters()} == {np.dtype(np.float32)}


def test_the_inner_activations_are_dropped_and_not_the_outputs():
    layer = FeedForward(4, 1, RNG, p=0.5)
    layer.b_1.data[:] = 100  # the one inner unit is alive at every position
    x = RNG.standard_normal((50, 4))
    y, _ = layer.forward(x, np.random.default_rng(1))
    alive = y.any(axis=-1)
    assert 0 < alive.mean() < 1
    np.testing.assert_allclose(y[alive], 2 * layer.forward(x)[0][alive], rtol=1e-5)
