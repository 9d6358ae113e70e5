"""Wrong backwards, each as plausible as a slip of the pen: all are rejected, most are named.

A mutant states its pair, its inputs, which gradients are wrong, and words that the diagnosis must
contain: that so many entries are wrong, where the checker claims no knowledge of the cause.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from minitransformer.cases.layers import TiedEmbedding
from minitransformer.core.module import FlatParameters, Module
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.layers.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
from minitransformer.layers.dropout import dropout
from minitransformer.layers.embedding import embedding, embedding_backward
from minitransformer.layers.layer_norm import LayerNorm, layer_norm, layer_norm_backward
from minitransformer.layers.linear import Linear, linear, linear_backward
from minitransformer.layers.relu import relu
from minitransformer.layers.residual import residual
from minitransformer.layers.softmax import softmax, softmax_backward
from minitransformer.loss.consistency import consistency, consistency_backward
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward

B, T, D, V = 3, 5, 7, 11  # all different, so that a factor has one explanation
H, K = 2, 13
rng = np.random.default_rng(0)
X = rng.standard_normal((B, T, D))
GAMMA, BETA = rng.uniform(0.5, 1.5, D), rng.standard_normal(D)
SQUARE = rng.standard_normal((D, D))
WEIGHT, BIAS = rng.standard_normal((D, V)), rng.standard_normal(V)
QUERY, KEY, VALUE = rng.standard_normal((3, B, H, T, K))
TABLE = rng.standard_normal((V, D))
IDS = np.array([[4, 7, 4, 9, 2], [4, 8, 7, 3, 3], [6, 1, 2, 5, 10]])  # 4, 7, 2 and 3 recur
LOGITS = rng.standard_normal((B, T, V))
TWO_PASSES = rng.standard_normal((2 * B, T, V))
LABELS = np.array([[4, 7, 4, 0, 0], [4, 8, 7, 3, 3], [6, 0, 0, 0, 0]])  # 0 is padding


@dataclass
class Mutant:
    name: str
    forward: object
    backward: object
    inputs: tuple
    wrong: set
    says: str

    def __str__(self):
        return self.name


def layer_norm_gamma_outside(dy, cache):
    x_hat, sigma, gamma = cache
    _, dgamma, dbeta = layer_norm_backward(dy, cache)
    mean, overlap = dy.mean(-1, keepdims=True), (dy * x_hat).mean(-1, keepdims=True)
    return gamma * (dy - mean - x_hat * overlap) / sigma, dgamma, dbeta


def layer_norm_without(*terms):
    def backward(dy, cache):
        x_hat, sigma, gamma = cache
        dx, dgamma, dbeta = layer_norm_backward(dy, cache)
        dx_hat = dy * gamma
        if "mean" in terms:
            dx = dx + dx_hat.mean(-1, keepdims=True) / sigma
        if "sigma" in terms:
            dx = dx + x_hat * (dx_hat * x_hat).mean(-1, keepdims=True) / sigma
        return dx, dgamma, dbeta

    return backward


def layer_norm_missing_gamma(dy, cache):
    _, dgamma, dbeta = layer_norm_backward(dy, cache)
    x_hat, sigma, gamma = cache
    dx, _, _ = layer_norm_backward(dy, (x_hat, sigma, np.ones_like(gamma)))
    return dx, dgamma, dbeta


def layer_norm_missing_sigma(dy, cache):
    dx, dgamma, dbeta = layer_norm_backward(dy, cache)
    return dx * cache[1], dgamma, dbeta


def layer_norm_dgamma_from_x(dy, cache):
    dx, _, dbeta = layer_norm_backward(dy, cache)
    return dx, (dy * cache[0] * cache[1]).sum((0, 1)), dbeta


def rms_norm(x):
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True))
    return x * scale, (x, scale)


def rms_norm_without_mean(dy, cache):
    _, scale = cache
    return dy * scale


def seeded_dropout(x):
    y, cache = dropout(x, 0.4, np.random.default_rng(1))
    return y, cache


def dropout_mask_drawn_again(dy, cache):
    y, _ = dropout(dy, 0.4, np.random.default_rng(2))
    return y


def dropout_without_scale(dy, cache):
    keep, _ = cache
    return dy * keep


class Dropout:
    """The trap of one object at several places: its last mask overwrites the first."""

    def __init__(self):
        self.rng = np.random.default_rng(3)

    def forward(self, x):
        y, self.cache = dropout(x, 0.4, self.rng)
        return y

    def backward(self, dy):
        keep, scale = self.cache
        return dy * keep * scale


def dropped_twice(x):
    layer = Dropout()
    h = layer.forward(x)
    return layer.forward(h + 1), layer


def dropped_twice_backward(dy, layer):
    return layer.backward(layer.backward(dy))


def linear_with(change):
    def backward(dy, cache):
        return change(dy, cache, *linear_backward(dy, cache))

    return backward


def attention_with(change):
    def backward(dy, cache):
        return change(dy, *scaled_dot_product_attention_backward(dy, cache))

    return backward


def attention_softmax_over_batch(dy, cache):
    """Query and key gradients too small by B, the value gradient right."""
    dquery, dkey, dvalue = scaled_dot_product_attention_backward(dy, cache)
    return dquery / len(dy), dkey / len(dy), dvalue


def embedding_last_one_wins(dx, cache):
    ids, weight, scale = cache
    dweight = np.zeros_like(weight)
    dweight[ids] = dx * scale
    return None, dweight


def mean_loss(logits, targets):
    (loss, _), cache = cross_entropy(logits, targets)
    return loss, cache


def loss_gradient_at_padding(dloss, cache):
    log_p, t, share, smoothing, shape = cache
    return cross_entropy_backward(dloss, (log_p, t, share * 0 + share.max(), smoothing, shape))


def two_passes_loss(x, weight, targets):
    (loss, _), cache = projected_loss(x, weight, targets, kappa=3.0)
    return loss, cache


FULL_LABELS = np.where(LABELS, LABELS, 1)
NORM = (layer_norm, (X, GAMMA, BETA))
MASK = np.array([True, True, True, False, False])

MUTANTS = [
    Mutant(
        "softmax: zero",
        softmax,
        lambda dy, cache: np.zeros_like(dy),
        (X,),
        {"dx"},
        "zero everywhere",
    ),
    Mutant(
        "softmax: no mean term",
        softmax,
        lambda dy, weights: weights * dy,
        (X,),
        {"dx"},
        "`weights.sum(axis=-1, keepdims=True)`",
    ),
    Mutant(
        "softmax: divided by the batch size",
        softmax,
        lambda dy, cache: softmax_backward(dy, cache) / len(dy),
        (X,),
        {"dx"},
        "3 times too small: 3 is the batch size",
    ),
    Mutant(
        "attention: softmax divided by the batch size",
        scaled_dot_product_attention,
        attention_softmax_over_batch,
        (QUERY, KEY, VALUE),
        {"dquery", "dkey"},
        "3 times too small: 3 is the batch size",
    ),
    Mutant(
        "attention: scores not scaled",
        scaled_dot_product_attention,
        attention_with(
            lambda dy, dq, dk, dv: (dq * dq.shape[-1] ** 0.5, dk * dq.shape[-1] ** 0.5, dv)
        ),
        (QUERY, KEY, VALUE),
        {"dquery", "dkey"},
        "3.60555 times too large: 3.60555 is √13, the root of the head width d_k",
    ),
    Mutant(
        "attention: key and value gradients swapped",
        scaled_dot_product_attention,
        attention_with(lambda dy, dq, dk, dv: (dq, dv, dk)),
        (QUERY, KEY, VALUE),
        {"dkey", "dvalue"},
        "were two gradients exchanged?",
    ),
    Mutant(
        "attention: divided by the length",
        scaled_dot_product_attention,
        attention_with(lambda dy, dq, dk, dv: (dq, dk, dv / dv.shape[2])),
        (QUERY, KEY, VALUE),
        {"dvalue"},
        "5 times too small: 5 is the length",
    ),
    Mutant(
        "attention: gradient reaches masked keys",
        lambda query, key, value: scaled_dot_product_attention(query, key, value, MASK),
        attention_with(
            lambda dy, dq, dk, dv: (dq, dk, dv + ~MASK[:, None] * dy.mean(axis=2, keepdims=True))
        ),
        (QUERY, KEY, VALUE),
        {"dvalue"},
        "leaks into padding",
    ),
    Mutant(
        "layer_norm: gamma outside",
        layer_norm,
        layer_norm_gamma_outside,
        NORM[1],
        {"dx"},
        "a gain such as gamma is multiplied after the mean terms",
    ),
    Mutant(
        "layer_norm: no mean(dx_hat)",
        layer_norm,
        layer_norm_without("mean"),
        NORM[1],
        {"dx"},
        "the path through `x.mean(axis=-1, keepdims=True)`",
    ),
    Mutant(
        "layer_norm: no x_hat mean(dx_hat x_hat)",
        layer_norm,
        layer_norm_without("sigma"),
        NORM[1],
        {"dx"},
        "the path through `(centred * centred).mean(axis=-1, keepdims=True)`",
    ),
    Mutant(
        "layer_norm: neither mean term",
        layer_norm,
        layer_norm_without("mean", "sigma"),
        NORM[1],
        {"dx"},
        "are taken for constants: the paths through them are missing",
    ),
    Mutant(
        "layer_norm: no gamma",
        layer_norm,
        layer_norm_missing_gamma,
        NORM[1],
        {"dx"},
        "the factor `gamma` is forgotten",
    ),
    Mutant(
        "layer_norm: no 1/sigma",
        layer_norm,
        layer_norm_missing_sigma,
        NORM[1],
        {"dx"},
        "each row is off by a factor of its own",
    ),
    Mutant(
        "layer_norm: dgamma",
        layer_norm,
        layer_norm_dgamma_from_x,
        NORM[1],
        {"dgamma"},
        "in place of `x_hat`",
    ),
    Mutant(
        "gain: not applied",
        lambda x, gamma: (x * gamma, (x, gamma)),
        lambda dy, cache: (dy, (dy * cache[0]).sum((0, 1))),
        (X, GAMMA),
        {"dx"},
        "it should be dy times gamma: dy is handed on as it is",
    ),
    Mutant(
        "gates of heads: not applied",
        lambda heads, gates: (gates[:, None, None] * heads, (heads, gates)),
        lambda dy, cache: (dy, (dy * cache[0]).sum((0, 2, 3))),
        (rng.standard_normal((2, 3, 4, 5)), rng.uniform(0.5, 1.5, 3)),
        {"dheads"},
        "the factor `gates[:, None, None]` is forgotten",
    ),
    Mutant(
        "dropout: mask drawn again",
        seeded_dropout,
        dropout_mask_drawn_again,
        (X,),
        {"dx"},
        "was the dropout mask drawn again",
    ),
    Mutant(
        "dropout: not scaled in backward",
        seeded_dropout,
        dropout_without_scale,
        (X,),
        {"dx"},
        "1.66667 times too small",
    ),
    Mutant(
        "dropout: last mask overwrites the first",
        dropped_twice,
        dropped_twice_backward,
        (X,),
        {"dx"},
        "the factor `keep` is forgotten",
    ),
    Mutant(
        "relu: mask forgotten",
        relu,
        lambda dy, cache: dy,
        (X,),
        {"dx"},
        "where x is negative it is not zero and should be",
    ),
    Mutant(
        "linear: weight gradient transposed",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (dx, dw.T, db)),
        (X, SQUARE, BETA),
        {"dweight"},
        "transpose of the right gradient",
    ),
    Mutant(
        "linear: weight gradient transposed, not square",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (dx, dw.T, db)),
        (X, WEIGHT, BIAS),
        {"dweight"},
        "(11, 7) and should be (7, 11): it is the transpose",
    ),
    Mutant(
        "linear: weight not transposed",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (dy @ cache[1], dw, db)),
        (X, SQUARE, BETA),
        {"dx"},
        "`weight` has to be transposed",
    ),
    Mutant(
        "linear: bias gradient a mean",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (dx, dw, db / (dy.size // dy.shape[-1]))),
        (X, WEIGHT, BIAS),
        {"dbias"},
        "15 times too small: 15 is N, the number of rows",
    ),
    Mutant(
        "linear: bias gradient not summed",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (dx, dw, dy)),
        (X, WEIGHT, BIAS),
        {"dbias"},
        "summed over the leading axes, (0, 1)",
    ),
    Mutant(
        "linear: sign",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (-dx, dw, db)),
        (X, WEIGHT, BIAS),
        {"dx"},
        "its sign is wrong",
    ),
    Mutant(
        "linear: sign and factor",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (-2 * dx, dw, db)),
        (X, WEIGHT, BIAS),
        {"dx"},
        "2 times too large and of the wrong sign",
    ),
    Mutant(
        "linear: no weight gradient",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (dx, None, db)),
        (X, WEIGHT, BIAS),
        {"dweight"},
        "backward returned None",
    ),
    Mutant(
        "linear: weight gradient of the last sentence only",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (dx, cache[0][-1].T @ dy[-1], db)),
        (X, WEIGHT, BIAS),
        {"dweight"},
        "it sums over the last index of axis 0 of dy only, and not over all 3",
    ),
    Mutant(
        "linear: NaN",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (dx, dw, np.where(db == db[3], np.nan, db))),
        (X, WEIGHT, BIAS),
        {"dbias"},
        "1 of its 11 entries are NaN",
    ),
    Mutant(
        "residual: no gradient past the sublayer",
        lambda x: residual(x, x * x),
        lambda dy, cache: dy * 2 * X,
        (X,),
        {"dx"},
        "dy itself is missing",
    ),
    Mutant(
        "embedding: last of repeated tokens wins",
        embedding,
        embedding_last_one_wins,
        (IDS, TABLE),
        {"dweight"},
        "entries come more than once",
    ),
    Mutant(
        "embedding: scale forgotten",
        embedding,
        lambda dx, cache: (None, embedding_backward(dx, (*cache[:2], 1))),
        (IDS, TABLE),
        {"dweight"},
        "2.64575 times too small: 2.64575 is √7, the root of the size of axis 1 of weight",
    ),
    Mutant(
        "loss: divided by N twice",
        mean_loss,
        lambda dloss, cache: cross_entropy_backward(dloss, cache) / cache[1].size,
        (LOGITS, FULL_LABELS),
        {"dlogits"},
        "15 times too small: 15 is N, the number of rows",
    ),
    Mutant(
        "loss: divided by N twice, with padding",
        mean_loss,
        lambda dloss, cache: cross_entropy_backward(dloss, cache) / (cache[1] > 0).sum(),
        (LOGITS, LABELS),
        {"dlogits"},
        "9 times too small: 9 is N, the number of rows with a gradient",
    ),
    Mutant(
        "rms_norm: no mean term",
        rms_norm,
        rms_norm_without_mean,
        (X,),
        {"dx"},
        "the path through `x * x`",
    ),
    Mutant(
        "linear: weight decay slipped in",
        linear,
        linear_with(lambda dy, cache, dx, dw, db: (dx, dw + 0.1 * cache[1], db)),
        (X, WEIGHT, BIAS),
        {"dweight"},
        "a term without dy is added to it: 0.1 times weight, as of weight decay",
    ),
    Mutant(
        "loss: gradient at padded positions",
        mean_loss,
        loss_gradient_at_padding,
        (LOGITS, LABELS),
        {"dlogits"},
        "leaks into padding",
    ),
    Mutant(
        "consistency: passes exchanged in backward",
        consistency,
        lambda dloss, cache: np.roll(consistency_backward(dloss, cache), B, axis=0),
        (TWO_PASSES, LABELS),
        {"dlogits"},
        "its halves along axis 0 are right and in another order",
    ),
    Mutant(
        "projected_loss: weight of the consistency forgotten in backward",
        two_passes_loss,
        lambda dloss, cache: projected_loss_backward(dloss, (*cache[:-1], 1.0)),
        (np.concatenate([X, X[::-1]]), TABLE, LABELS),
        {"dx", "dweight"},
        "the factor `kappa` is forgotten",
    ),
]


def assert_rejected(mutant):
    """Its wrong gradients are found, no other, and the diagnosis has its words."""
    report = check_pair(mutant.forward, mutant.backward, mutant.inputs)
    wrong = {tensor.name: tensor for tensor in report.tensors if not tensor.right}
    assert set(wrong) == mutant.wrong, report
    for tensor in wrong.values():
        assert tensor.error > 1e-2  # no mutant hides near the tolerance
        assert mutant.says in tensor.diagnosis
    assert ("Only" in str(report)) == (len(wrong) == 1 < len(report.tensors))


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_wrong_backward_is_rejected_and_its_cause_named(mutant):
    assert_rejected(mutant)


@pytest.mark.parametrize(
    ("forward", "backward"),
    [(softmax, softmax_backward), (layer_norm, layer_norm_backward)],
)
def test_a_zero_backward_would_pass_with_an_upstream_of_ones(forward, backward):
    """Why the upstream gradient is random."""
    inputs = (X,) if forward is softmax else (X, np.ones(D), np.zeros(D))
    _, cache = forward(*inputs)
    gradients = backward(np.ones_like(X), cache)
    assert np.abs(gradients if forward is softmax else gradients[0]).max() < 1e-12


class AssigningLinear(Linear):
    def backward(self, dy, cache):
        dx, self.weight.grad, self.bias.grad = linear_backward(dy, cache)
        return dx


class AssigningModel(AssigningLinear):
    """Its gradients are views, into which is copied what they are replaced by."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.flat = FlatParameters(self)


class RebindingNorm(LayerNorm):
    """Adds, but not in place: where there is no flat storage, the gradient is a new array."""

    def backward(self, dy, cache):
        dx, dgamma, dbeta = layer_norm_backward(dy, cache)
        self.gamma.grad = self.gamma.grad + dgamma
        self.beta.grad += dbeta
        return dx


class SwappedNorm(LayerNorm):
    def backward(self, dy, cache):
        dx, dgamma, dbeta = layer_norm_backward(dy, cache)
        self.gamma.grad += dbeta
        self.beta.grad += dgamma
        return dx


class GammaOutsideNorm(LayerNorm):
    def backward(self, dy, cache):
        dx, dgamma, dbeta = layer_norm_gamma_outside(dy, cache)
        self.gamma.grad += dgamma
        self.beta.grad += dbeta
        return dx


class ForgottenTie(TiedEmbedding):
    def backward(self, dlogits, cache):
        embedding_cache, projection_cache = cache
        dx, _, _ = linear_backward(dlogits, projection_cache)
        self.embedding.backward(dx, embedding_cache)


class WronglyMergedHeads(Module):
    """Heads merged without moving their axis back: the right numbers in the wrong columns."""

    def __init__(self):
        self.attention = MultiHeadAttention(6, 2, np.random.default_rng(0))

    def forward(self, x):
        return split_heads(x, 2), None

    def backward(self, dy, cache):
        return dy.reshape(merge_heads(dy).shape)


@pytest.mark.parametrize(
    ("module", "given", "wrong"),
    [
        (AssigningLinear(D, V, np.random.default_rng(0)), X, {"dweight", "dbias"}),
        (AssigningModel(D, V, np.random.default_rng(0)), X, {"dweight", "dbias"}),
        (RebindingNorm(D), X, {"dgamma"}),
        (SwappedNorm(D), X, {"dgamma", "dbeta"}),
        (GammaOutsideNorm(D), X, {"dx"}),
        (ForgottenTie(np.random.default_rng(0)), IDS, {"embedding.weight.grad"}),
        (WronglyMergedHeads(), np.random.default_rng(0).standard_normal((B, T, 6)), {"dx"}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Module) else "",
)
def test_a_wrong_module_is_rejected(module, given, wrong):
    report = check_module(module, given)
    assert {tensor.name for tensor in report.tensors if not tensor.right} == wrong, report
    for tensor in report.tensors:
        assert ("replaces" in tensor.diagnosis) == (
            isinstance(module, AssigningLinear | RebindingNorm) and not tensor.right
        )
