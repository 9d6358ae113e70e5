import math

import numpy as np
import pytest

from minitransformer import Adam, Module, Parameter
from minitransformer.core.module import FlatParameters

RNG = np.random.default_rng(0)


class ThreeParameters(Module):
    def __init__(self, dtype=np.float64):
        self.a = Parameter(RNG.standard_normal((2, 3)).astype(dtype))
        self.b = Parameter(RNG.standard_normal(4).astype(dtype))
        self.c = Parameter(RNG.standard_normal((1, 2)).astype(dtype))


@pytest.fixture
def flat():
    return FlatParameters(ThreeParameters())


def test_the_constants_are_those_of_section_5_3(flat):
    adam = Adam(flat)
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.9, 0.98, 1e-9)


def test_the_first_step_moves_every_parameter_by_the_learning_rate_against_its_gradient(flat):
    """Whatever the size of the gradient: at t = 1 the corrected m is g and the root of v is |g|."""
    before = flat.data.copy()
    flat.grad[:] = RNG.choice([-1, 1], 12) * 10.0 ** np.arange(-6, 6)
    Adam(flat, epsilon=1e-20).step(0.01)
    np.testing.assert_allclose(flat.data, before - 0.01 * np.sign(flat.grad), rtol=1e-12)


@pytest.mark.parametrize("betas", [{}, {"beta_1": 0.5, "beta_2": 0.7, "epsilon": 0.1}])
def test_many_steps_follow_the_recurrence_of_the_paper(flat, betas):
    beta_1, beta_2 = betas.get("beta_1", 0.9), betas.get("beta_2", 0.98)
    epsilon = betas.get("epsilon", 1e-9)
    gradients = RNG.standard_normal((6, 12))
    rates = [1e-3, 2e-3, 5e-3, 3e-3, 1e-2, 1e-3]

    expected = []
    for i, theta in enumerate(flat.data.tolist()):
        m = v = 0.0
        for t, (rate, g) in enumerate(zip(rates, gradients[:, i], strict=True), start=1):
            m = beta_1 * m + (1 - beta_1) * g
            v = beta_2 * v + (1 - beta_2) * g**2
            m_hat, v_hat = m / (1 - beta_1**t), v / (1 - beta_2**t)
            theta -= rate * m_hat / (math.sqrt(v_hat) + epsilon)
        expected.append(theta)

    adam = Adam(flat, **betas)
    for rate, flat.grad[:] in zip(rates, gradients, strict=True):
        adam.step(rate)
    np.testing.assert_allclose(flat.data, expected, rtol=1e-13)


def test_a_gradient_of_zero_moves_nothing(flat):
    before = flat.data.copy()
    Adam(flat).step(0.1)
    np.testing.assert_array_equal(flat.data, before)


def test_a_learning_rate_of_zero_moves_nothing_but_remembers_the_gradient(flat):
    before = flat.data.copy()
    flat.grad[:] = 2.0
    adam = Adam(flat)
    adam.step(0.0)
    np.testing.assert_array_equal(flat.data, before)
    np.testing.assert_allclose(adam.vectors["m"], 0.1 * 2)
    np.testing.assert_allclose(adam.vectors["v"], 0.02 * 4)


def test_repeated_steps_find_the_minimum_of_a_parabola(flat):
    goal = np.arange(12) / 4
    adam = Adam(flat)
    for _ in range(1000):
        flat.grad[:] = flat.data - goal
        adam.step(0.01)
    np.testing.assert_allclose(flat.data, goal, atol=1e-3)
