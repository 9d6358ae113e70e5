"""What is dropped, alone and within other layers, and what is left as it is."""

from functools import partial

import numpy as np
import pytest
from kinds import Recorder
from rounding import assert_but_for_rounding

from minitransformer.layers.alibi import Alibi
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.grouped_query_attention import GroupedQueryAttention
from minitransformer.layers.residual import ResidualConnection, residual
from minitransformer.layers.restricted_attention import RestrictedSelfAttention
from minitransformer.layers.segment_attention import SegmentAttention
from minitransformer.layers.swiglu import SwiGLU

P = 0.3
ONES = np.ones((200, 500))
RNG = np.random.default_rng(0)
X, H = RNG.standard_normal((2, 3, 4, 6))


@pytest.mark.parametrize(("p", "rng"), [(P, None), (0.0, np.random.default_rng(0))])
def test_inference_and_a_probability_of_0_change_nothing(p, rng):
    y, cache = dropout(ONES, p, rng)
    assert y is ONES
    assert dropout_backward(ONES, cache) is ONES


def test_nothing_is_dropped_unless_asked_for():
    assert dropout(ONES, rng=RNG)[0] is ONES
    np.testing.assert_array_equal(residual(X, H, rng=RNG)[0], X + H)
    np.testing.assert_array_equal(ResidualConnection(6, norm="pre").leave(X, H, RNG)[0], X + H)
    attention = MultiHeadAttention(6, 3, RNG)
    plain, _ = attention.forward(X, X, X)
    np.testing.assert_array_equal(attention.forward(X, X, X, rng=RNG)[0], plain)


def test_the_same_state_gives_the_same_mask_in_either_precision():
    single, _ = dropout(ONES.astype(np.float32), P, np.random.default_rng(0))
    double, _ = dropout(ONES, P, np.random.default_rng(0))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single == 0, double == 0)


# Within other layers

TEXT = RNG.standard_normal((2, 4, 6))  # (B, T, D)
SPLIT = RNG.standard_normal((2, 3, 4, 2))  # (B, H, T, K)
MEMORY = RNG.standard_normal((2, 5, 6))  # (B, M, D)
DROPS = {  # a forward in training, and the shape of what it drops entries of
    "attention": (partial(MultiHeadAttention(6, 3, RNG, p=P).forward, *[TEXT] * 3), (2, 3, 4, 4)),
    "alibi": (partial(Alibi(3).forward, *[SPLIT] * 3, p=P), (2, 3, 4, 4)),
    "feed-forward": (partial(FeedForward(6, 8, RNG, p=P).forward, TEXT), (2, 4, 8)),
    "grouped queries": (
        partial(GroupedQueryAttention(6, 3, 1, RNG, p=P).forward, *[TEXT] * 3), (2, 3, 4, 4),
    ),
    "restricted": (
        partial(RestrictedSelfAttention(6, 3, 1, RNG, p=P).forward, *[TEXT] * 3), (8, 3, 1, 3),
    ),
    "segments": (partial(SegmentAttention(6, 3, RNG, p=P).forward, TEXT, MEMORY), (2, 3, 4, 9)),
    "SwiGLU": (partial(SwiGLU(6, 8, RNG, p=P).forward, TEXT), (2, 4, 8)),
}  # fmt: skip


@pytest.mark.parametrize(("forward", "shape"), DROPS.values(), ids=DROPS)
def test_in_training_a_layer_drops_once_and_with_its_own_probability(forward, shape):
    """A recorder drops nothing, so all is scaled by 1 / (1 − p)."""
    recorder = Recorder()
    y, _ = forward(rng=recorder)
    assert recorder.shapes == [shape]
    assert_but_for_rounding(y, forward()[0] / (1 - P))


def test_a_residual_connection_drops_only_what_the_sublayer_returned():
    z, _ = residual(X, H, 0.5, np.random.default_rng(1))
    dropped = z == X
    assert 0 < dropped.mean() < 1
    np.testing.assert_allclose(z[~dropped], (X + 2 * H)[~dropped], rtol=1e-14)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_way_out_of_a_sublayer_drops_with_its_own_probability(norm):
    connection = ResidualConnection(6, norm=norm, p=0.5).to(dtype=np.float64)
    connection.norm.gamma.data[:] = RNG.uniform(0.5, 1.5, 6)
    y, _ = connection.leave(X, H, np.random.default_rng(1))
    z, _ = residual(X, H, 0.5, np.random.default_rng(1))
    np.testing.assert_array_equal(y, z if norm == "pre" else connection.norm.forward(z)[0])
