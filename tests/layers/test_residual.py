import numpy as np
import pytest

from minitransformer.layers.residual import ResidualConnection, residual

RNG = np.random.default_rng(0)
X, H = RNG.standard_normal((2, 3, 4, 6))


def connection(norm):
    made = ResidualConnection(6, norm=norm, p=0.5).to(dtype=np.float64)
    made.norm.gamma.data[:] = RNG.uniform(0.5, 1.5, 6)
    return made


def test_only_what_the_sublayer_returned_is_dropped():
    z, _ = residual(X, H, 0.5, np.random.default_rng(1))
    dropped = z == X
    assert 0 < dropped.mean() < 1
    np.testing.assert_allclose(z[~dropped], (X + 2 * H)[~dropped], rtol=1e-14)


def test_post_norm_normalises_the_sum():
    post = connection("post")
    entered, _ = post.enter(X)
    y, _ = post.leave(X, H)
    assert entered is X
    np.testing.assert_array_equal(y, post.norm.forward(X + H)[0])


def test_pre_norm_normalises_what_the_sublayer_is_given_and_leaves_the_sum_alone():
    pre = connection("pre")
    entered, _ = pre.enter(X)
    y, _ = pre.leave(X, H)
    np.testing.assert_array_equal(entered, pre.norm.forward(X)[0])
    np.testing.assert_array_equal(y, X + H)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_way_out_drops_with_its_own_probability(norm):
    same = connection(norm)
    y, _ = same.leave(X, H, np.random.default_rng(1))
    z, _ = residual(X, H, 0.5, np.random.default_rng(1))
    np.testing.assert_array_equal(y, z if norm == "pre" else same.norm.forward(z)[0])


def test_nothing_is_dropped_unless_asked_for():
    rng = np.random.default_rng(1)
    np.testing.assert_array_equal(residual(X, H, rng=rng)[0], X + H)
    np.testing.assert_array_equal(ResidualConnection(6, norm="pre").leave(X, H, rng)[0], X + H)


def test_epsilon_reaches_the_norm():
    assert ResidualConnection(6, epsilon=0.25).norm.epsilon == 0.25
    assert ResidualConnection(6).norm.epsilon == 1e-5


def test_an_unknown_arrangement_is_refused():
    with pytest.raises(ValueError, match="norm='Pre'; choose 'post' or 'pre'"):
        ResidualConnection(4, norm="Pre")
