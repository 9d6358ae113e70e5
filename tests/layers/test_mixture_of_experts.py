import numpy as np
import pytest

from minitransformer.layers.mixture_of_experts import MixtureOfExperts, route

N, D, F, EXPERTS, CHOSEN = 40, 6, 5, 7, 3
RNG = np.random.default_rng(0)
X, DY = RNG.standard_normal((2, N, D))
LAYER = MixtureOfExperts(D, F, EXPERTS, CHOSEN, RNG).to(dtype=np.float64)


def test_each_token_hears_its_experts_only_each_as_much_as_the_router_says():
    """In plain Python, a token at a time."""
    (y, _), _ = LAYER.forward(X)
    for x, said in zip(X, y, strict=True):
        logits = x @ LAYER.w_router.data
        best = sorted(range(EXPERTS), key=lambda e: -logits[e])[:CHOSEN]
        odds = np.exp(logits[best])
        of_experts = [LAYER.experts[e].forward(x)[0] for e in best]
        np.testing.assert_allclose(said, odds @ of_experts / odds.sum(), rtol=1e-12)


def test_what_a_token_hears_does_not_depend_on_the_others():
    (y, _), _ = LAYER.forward(X)
    for n in range(N):
        (alone, _), _ = LAYER.forward(X[n : n + 1])
        np.testing.assert_allclose(alone[0], y[n], rtol=0, atol=1e-14)


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


@pytest.mark.parametrize("chosen", [1, 2, 4])
def test_the_balance_is_1_where_all_get_the_same_and_n_over_k_where_all_choose_the_same(chosen):
    even = np.eye(4).repeat(5, axis=0)  # five tokens that like each expert best
    (_, balance), _ = route(1e-9 * even, np.eye(4), 1)
    assert balance == pytest.approx(1, abs=1e-8)
    (_, balance), _ = route(np.full((20, 1), 50.0), np.array([[1.0, 0, 0, 0]]), chosen)
    assert balance == pytest.approx(4 / chosen)


def test_a_weight_of_the_balance_in_float64_makes_no_gradient_of_float32_one():
    layer = MixtureOfExperts(D, F, EXPERTS, CHOSEN, RNG)
    _, cache = layer.forward(X.astype(np.float32))
    assert layer.backward((DY.astype(np.float32), np.float64(0.01)), cache).dtype == np.float32


def test_steps_against_the_balance_even_out_the_choices():
    w_router = np.random.default_rng(1).standard_normal((D, EXPERTS))
    layer = MixtureOfExperts(D, F, EXPERTS, CHOSEN, RNG).to(dtype=np.float64)
    layer.w_router.data = w_router
    x = X + 1  # so that some experts are liked by most
    balances = []
    for _ in range(30):
        layer.zero_grad()
        (_, balance), cache = layer.forward(x)
        layer.backward((np.zeros_like(x), 1.0), cache)
        layer.w_router.data = layer.w_router.data - 0.3 * layer.w_router.grad
        balances.append(balance)
    assert balances[-1] - 1 < (balances[0] - 1) / 4
