import numpy as np

from minitransformer.layers.mixture_of_experts import MixtureOfExperts

N, D, F, EXPERTS, CHOSEN = 40, 6, 5, 7, 3
RNG = np.random.default_rng(0)
X, DY = RNG.standard_normal((2, N, D))


def test_an_expert_that_nobody_chose_is_left_alone():
    layer = MixtureOfExperts(D, F, EXPERTS, 1, RNG).to(dtype=np.float64)
    layer.w_router.data = np.zeros((D, EXPERTS))
    layer.w_router.data[0, 4] = 1  # for x_0 > 0 the largest logit
    x = np.abs(X)
    (y, balance), cache = layer.forward(x)
    np.testing.assert_array_equal(y, layer.experts[4].forward(x)[0])
    layer.backward((DY, 1.0), cache)
    heard = [any(w.grad.any() for w in expert.parameters()) for expert in layer.experts]
    assert heard == [e == 4 for e in range(EXPERTS)]
    assert balance > 1


def test_a_weight_of_the_balance_in_float64_makes_no_gradient_of_float32_one():
    layer = MixtureOfExperts(D, F, EXPERTS, CHOSEN, RNG)
    _, cache = layer.forward(X.astype(np.float32))
    assert layer.backward((DY.astype(np.float32), np.float64(0.01)), cache).dtype == np.float32
