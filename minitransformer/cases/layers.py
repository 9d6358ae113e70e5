"""Every layer, on inputs small enough to check each entry of."""

from functools import partial

import numpy as np

from minitransformer.cases.case import (
    LONG,
    LONG_MASK,
    LONG_TOKENS,
    NOTHING_ALLOWED,
    SOME_TOKENS,
    SOURCE,
    SOURCE_MASK,
    TARGET_MASK,
    B,
    Case,
    D,
    F,
    H,
    HostGenerator,
    K,
    S,
    T,
    V,
    module,
    pair,
)
from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module
from minitransformer.layers.additive_attention import AdditiveAttention
from minitransformer.layers.alibi import alibi_attention, alibi_attention_backward, alibi_slopes
from minitransformer.layers.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.batch_norm import BatchNorm, running_norm, running_norm_backward
from minitransformer.layers.bidirectional import Bidirectional
from minitransformer.layers.convolution import Convolution1d
from minitransformer.layers.convolution_2d import Convolution2d
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.elman import Elman
from minitransformer.layers.embedding import Embedding, OutputProjection, embedding_weight
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.gated_linear_unit import gated_linear_unit, gated_linear_unit_backward
from minitransformer.layers.gelu import gelu, gelu_backward, gelu_by_tanh, gelu_by_tanh_backward
from minitransformer.layers.grouped_query_attention import GroupedQueryAttention
from minitransformer.layers.gru import GRU
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.linear import Linear
from minitransformer.layers.linear_attention import linear_attention, linear_attention_backward
from minitransformer.layers.local_response_norm import (
    local_response_norm,
    local_response_norm_backward,
)
from minitransformer.layers.low_rank import (
    LowRankLinear,
    low_rank_linear,
    low_rank_linear_backward,
)
from minitransformer.layers.lstm import LSTM
from minitransformer.layers.mixture_of_experts import MixtureOfExperts
from minitransformer.layers.patches import ClassToken, PatchEmbedding
from minitransformer.layers.pooling import (
    average_pooling,
    average_pooling_backward,
    global_average_pooling,
    global_average_pooling_backward,
    max_pooling,
    max_pooling_backward,
)
from minitransformer.layers.positional_encoding import (
    positional_encoding,
    positional_encoding_backward,
    sinusoidal_encoding,
)
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.residual import ResidualConnection
from minitransformer.layers.restricted_attention import (
    RestrictedSelfAttention,
    restricted_attention,
    restricted_attention_backward,
)
from minitransformer.layers.rms_norm import RMSNorm
from minitransformer.layers.rotary import rotary, rotary_backward, rotary_table
from minitransformer.layers.segment_attention import SegmentAttention
from minitransformer.layers.sigmoid import sigmoid, sigmoid_backward
from minitransformer.layers.silu import silu, silu_backward
from minitransformer.layers.softmax import softmax, softmax_backward
from minitransformer.layers.swiglu import SwiGLU
from minitransformer.layers.tanh import tanh, tanh_backward
from minitransformer.layers.tiled_attention import tiled_attention, tiled_attention_backward
from minitransformer.layers.zero_padded_shortcut import (
    zero_padded_shortcut,
    zero_padded_shortcut_backward,
)


class ResidualLinear(Module):
    """A residual connection around the simplest sublayer there is."""

    def __init__(self, rng, norm):
        self.residual = ResidualConnection(D, norm=norm, p=0.3)
        self.linear = Linear(D, D, rng)

    def forward(self, x):
        h, enter_cache = self.residual.enter(x)
        h, linear_cache = self.linear.forward(h)
        y, leave_cache = self.residual.leave(x, h, HostGenerator(array_namespace(x)))
        return y, (enter_cache, linear_cache, leave_cache)

    def backward(self, dy, cache):
        enter_cache, linear_cache, leave_cache = cache
        dx, dh = self.residual.leave_backward(dy, leave_cache)
        dh = self.linear.backward(dh, linear_cache)
        return dx + self.residual.enter_backward(dh, enter_cache)


class SelfAttention(Module):
    """Attention of a sequence to itself."""

    def __init__(self, attention):
        self.attention = attention

    def forward(self, x, mask=None):
        return self.attention.forward(x, x, x, mask)

    def backward(self, dy, cache):
        return sum(self.attention.backward(dy, cache))


CARRIED = np.sin(np.arange(B * S * D)).reshape(B, S, D)  # of a segment before


class AfterASegment(SegmentAttention):
    """Attention of a segment to itself and to a constant of M = S positions, or to none."""

    def forward(self, x, mask=None):
        memory = array_namespace(x).asarray(CARRIED, dtype=x.dtype)
        return super().forward(x, memory if mask is None else memory[:, :0], mask)


class InTraining(BatchNorm):
    """A batch norm that norms by its batch."""

    def forward(self, x):
        return super().forward(x, np.random.default_rng(0))


class SwiGLUInTraining(SwiGLU):
    """With a part of its inner features dropped."""

    def forward(self, x):
        return super().forward(x, HostGenerator(array_namespace(x)))


class UsedTwice(Module):
    """One layer at two places: both caches must survive and both gradients add up."""

    def __init__(self):
        self.norm = LayerNorm(D)

    def forward(self, x):
        h, first_cache = self.norm.forward(x)
        y, second_cache = self.norm.forward(h * h)
        return y, (h, first_cache, second_cache)

    def backward(self, dy, cache):
        h, first_cache, second_cache = cache
        dh = self.norm.backward(dy, second_cache) * 2 * h
        return self.norm.backward(dh, first_cache)


class StatesAndLast(Module):
    """A recurrent layer with all its outputs as one: the last state follows, step after step."""

    def __init__(self, layer):
        self.layer = layer

    def forward(self, x, h, c, mask):
        state = [s for s in (h, c) if s is not None]
        (y, *last), cache = self.layer.forward(x, *state, mask=mask)
        together = array_namespace(x).concatenate([y, *(s[:, None] for s in last)], axis=1)
        return together, (y.shape[1], cache)  # (B, T + 1 or T + 2, K or 2 K)

    def backward(self, dy, cache):
        length, cache = cache
        last = [dy[:, t] for t in range(length, dy.shape[1])]
        return self.layer.backward((dy[:, :length], *last), cache)


class WithItsBalance(Module):
    """What a mixture of experts says and its balance, as one output."""

    def __init__(self, mixture):
        self.mixture = mixture

    def forward(self, x):
        (y, balance), cache = self.mixture.forward(x)
        together = array_namespace(x).concatenate([y.reshape(-1), balance.reshape(1)])
        return together, (x.shape, cache)  # (B T D + 1,)

    def backward(self, dy, cache):
        shape, cache = cache
        return self.mixture.backward((dy[:-1].reshape(shape), dy[-1]), cache)


class TiedEmbedding(Module):
    """Embedding and output projection sharing one weight."""

    def __init__(self, rng):
        self.embedding = Embedding(embedding_weight(V, D, rng))
        self.projection = OutputProjection(self.embedding.weight)

    def forward(self, ids):
        x, embedding_cache = self.embedding.forward(ids)
        logits, projection_cache = self.projection.forward(x)
        return logits, (embedding_cache, projection_cache)

    def backward(self, dlogits, cache):
        embedding_cache, projection_cache = cache
        dx = self.projection.backward(dlogits, projection_cache)
        self.embedding.backward(dx, embedding_cache)


def _attention(mask=None, p=0.0):
    def forward(query, key, value, mask):
        generator = HostGenerator(array_namespace(query))
        return scaled_dot_product_attention(query, key, value, mask, p, generator)

    names = ("query", "key", "value", "mask")
    shapes = ((B, H, T, K), (B, H, S, K), (B, H, S, K))
    return pair(forward, scaled_dot_product_attention_backward, names, *shapes, mask)


def _alibi(mask=None, p=0.0):
    def forward(query, key, value, mask):
        xp = array_namespace(query)
        slopes = xp.asarray(alibi_slopes(H), dtype=query.dtype)
        return alibi_attention(query, key, value, slopes, mask, p, HostGenerator(xp))

    shapes = ((B, H, T, K), (B, H, S, K), (B, H, S, K))
    return pair(forward, alibi_attention_backward, ("query", "key", "value", "mask"), *shapes, mask)


def _linear_attention(queries, keys, causal=False, mask=None):
    def forward(query, key, value, mask):
        return linear_attention(query, key, value, causal, mask)

    names = ("query", "key", "value", "mask")
    shapes = ((B, H, queries, K), (B, H, keys, K), (B, H, keys, K))
    return pair(forward, linear_attention_backward, names, *shapes, mask)


FROZEN = np.linspace(-1, 1, D * F).reshape(D, F), np.linspace(-1, 1, F)  # weight and bias


def _low_rank(rank, scale=1.0, bias=True):
    def forward(x, a, b):
        weight, shift = (array_namespace(x).asarray(of, dtype=x.dtype) for of in FROZEN)
        return low_rank_linear(x, weight, shift if bias else None, a, b, scale)

    return pair(forward, low_rank_linear_backward, ("x", "a", "b"), (B, T, D), (D, rank), (rank, F))


def _mixture(num_experts, num_chosen):
    return module(
        lambda rng: WithItsBalance(MixtureOfExperts(D, F, num_experts, num_chosen, rng)),
        (B, T, D),
    )


def _tiled(queries, keys, size, causal=False, mask=None):
    def forward(query, key, value, mask):
        return tiled_attention(query, key, value, size, causal, mask)

    shapes = ((B, H, queries, K), (B, H, keys, K), (B, H, keys, K))
    return pair(forward, tiled_attention_backward, ("query", "key", "value", "mask"), *shapes, mask)


def _relu(rng):
    x = rng.standard_normal((B, T, D))
    return relu, relu_backward, (x + 0.1 * np.sign(x),), ("x",)  # none within 0.1 of the kink


def _dropout(x):
    return dropout(x, 0.3, HostGenerator(array_namespace(x)))


def _positions(x):
    table = array_namespace(x).asarray(sinusoidal_encoding(8, D), dtype=x.dtype)
    return positional_encoding(x, table)


def _rotary(pairs, start=0):
    def forward(x):
        table = array_namespace(x).asarray(rotary_table(T + start, D), dtype=x.dtype)
        return rotary(x, table, pairs, start)

    return pair(forward, rotary_backward, ("x",), (B, H, T, D))


def _grouped(heads, groups, *inputs):
    return module(lambda rng: GroupedQueryAttention(WIDE, heads, groups, rng), *inputs)


def _recurrent(kind, *state, mask=SOME_TOKENS, **options):
    state = (*state, None, None)[:2]
    return module(lambda rng: StatesAndLast(kind(D, K, rng, **options)), (B, T, D), *state, mask)


def _additive(mask=None):
    return module(
        lambda rng: AdditiveAttention(D, F, K, rng), (B, T, D), (B, S, F), (B, S, H), mask
    )


def _convolution(width=3, mask=None, **options):
    return module(lambda rng: Convolution1d(D, F, width, rng, **options), (B, LONG, D), mask)


def _restricted(window, causal=False, mask=LONG_MASK, p=0.0):
    def forward(query, key, value, mask):
        generator = HostGenerator(array_namespace(query))
        return restricted_attention(query, key, value, H, window, causal, mask, p, generator)

    names = ("query", "key", "value", "mask")
    return pair(forward, restricted_attention_backward, names, *3 * ((B, LONG, D),), mask)


WIDE = 2 * D  # of 4 heads, so that 2 groups of them differ from a tiling
PICTURES = B, F, S, T  # rows and columns of which most strides leave something over
ALL_DIFFERENT = np.random.default_rng(0).permutation(B * F * S * T).reshape(PICTURES) / 100


def _zero_padded():
    def forward(x):
        return zero_padded_shortcut(x, D + 2, 2)

    return pair(forward, zero_padded_shortcut_backward, ("x",), (2, 6, 5, D))


def _convolution_2d(width=3, c_out=D, **options):
    return module(lambda rng: Convolution2d(T, c_out, width, rng, **options), PICTURES)


def _max_pooling(*how):
    return pair(lambda x: max_pooling(x, *how), max_pooling_backward, ("x",), ALL_DIFFERENT)


def _average_pooling(*how):
    return pair(lambda x: average_pooling(x, *how), average_pooling_backward, ("x",), PICTURES)


RUNNING = np.linspace(-1, 1, T), np.linspace(0.5, 3, T)  # mean and variance of each channel


def _running_norm(x, gamma, beta):
    xp = array_namespace(x)
    return running_norm(x, gamma, beta, *(xp.asarray(of, dtype=x.dtype) for of in RUNNING))


def _local_response_norm(*shape, **options):
    forward = partial(local_response_norm, **options)
    return pair(forward, local_response_norm_backward, ("x",), shape)


LAYERS = [
    Case("linear", module(lambda rng: Linear(D, F, rng), (B, T, D))),
    Case("linear, no bias", module(lambda rng: Linear(D, F, rng, bias=False), (B, T, D))),
    Case("relu", _relu),
    Case("softmax", pair(softmax, softmax_backward, ("x",), (B, H, T, S))),
    Case(
        "softmax, nothing allowed in some rows",
        pair(softmax, softmax_backward, ("x", "mask"), (B, H, T, S), NOTHING_ALLOWED),
    ),
    Case("dropout", pair(_dropout, dropout_backward, ("x",), (B, T, D))),
    Case("layer_norm", module(lambda rng: LayerNorm(D), (B, T, D))),
    Case("layer_norm, pictures", module(lambda rng: LayerNorm(F), (B, K, S, F))),
    Case("layer_norm, used twice", module(lambda rng: UsedTwice(), (B, T, D))),
    Case("batch_norm", module(lambda rng: InTraining(D), (LONG, D))),
    Case("batch_norm, pictures", module(lambda rng: InTraining(T), PICTURES)),
    Case(
        "batch_norm, running statistics",
        pair(_running_norm, running_norm_backward, ("x", "gamma", "beta"), PICTURES, *2 * ((T,),)),
    ),
    Case("local_response_norm", _local_response_norm(B, T, F, size=3, alpha=0.3)),
    Case("local_response_norm, the paper's constants", _local_response_norm(B, S, F)),
    Case(
        "local_response_norm, more near than there are",
        _local_response_norm(*PICTURES, size=9, alpha=0.3, beta=2.0, k=1.0),
    ),
    Case("residual, post-norm", module(lambda rng: ResidualLinear(rng, "post"), (B, T, D))),
    Case("residual, pre-norm", module(lambda rng: ResidualLinear(rng, "pre"), (B, T, D))),
    Case("embedding", module(lambda rng: Embedding(embedding_weight(V, D, rng)), SOURCE)),
    Case("embedding, tied to the projection", module(TiedEmbedding, SOURCE)),
    Case("positional_encoding", pair(_positions, positional_encoding_backward, ("x",), (B, T, D))),
    Case("attention", _attention()),
    Case("attention, padding mask", _attention(SOURCE_MASK)),
    Case("attention, nothing allowed in some rows", _attention(NOTHING_ALLOWED)),
    Case("attention, dropout", _attention(SOURCE_MASK, p=0.3)),
    Case(
        "attention, multi-head self, causal and padding mask",
        module(lambda rng: SelfAttention(MultiHeadAttention(D, H, rng)), (B, T, D), TARGET_MASK),
    ),
    Case(
        "attention, multi-head cross, padding mask",
        module(
            lambda rng: MultiHeadAttention(D, H, rng), (B, T, D), *2 * ((B, S, D),), SOURCE_MASK
        ),
    ),
    Case("sigmoid", pair(sigmoid, sigmoid_backward, ("x",), (B, T, D))),
    Case("tanh", pair(tanh, tanh_backward, ("x",), (B, T, D))),
    Case("elman", _recurrent(Elman, (B, K), mask=None)),
    Case("elman, padding at both ends", _recurrent(Elman, (B, K))),
    Case("gru", _recurrent(GRU, (B, K), mask=None)),
    Case("gru, padding at both ends", _recurrent(GRU, (B, K))),
    Case("gru, from the end", _recurrent(GRU, (B, K), mask=None, reverse=True)),
    Case("lstm", _recurrent(LSTM, (B, K), (B, K), mask=None)),
    Case("lstm, padding at both ends", _recurrent(LSTM, (B, K), (B, K))),
    Case("bidirectional gru, padding at both ends", _recurrent(partial(Bidirectional, GRU))),
    Case("bidirectional lstm, padding at both ends", _recurrent(partial(Bidirectional, LSTM))),
    Case("additive_attention", _additive()),
    Case("additive_attention, nothing allowed in some rows", _additive(NOTHING_ALLOWED[:, 0])),
    Case("restricted_attention", _restricted(2, mask=None)),
    Case("restricted_attention, nothing allowed in some rows", _restricted(2)),
    Case("restricted_attention, causal, padding mask", _restricted(2, causal=True)),
    Case("restricted_attention, one block", _restricted(4)),
    Case("restricted_attention, dropout", _restricted(2, p=0.3)),
    Case(
        "restricted_attention, multi-head self, padding mask",
        module(
            lambda rng: SelfAttention(RestrictedSelfAttention(D, H, 2, rng)),
            (B, LONG, D),
            LONG_MASK,
        ),
    ),
    Case("convolution", _convolution()),
    Case("convolution, padding mask", _convolution(mask=LONG_TOKENS)),
    Case("convolution, causal", _convolution(width=4, causal=True)),
    Case(
        "convolution, causal, dilation, padding mask",
        _convolution(dilation=2, causal=True, mask=LONG_TOKENS),
    ),
    Case("convolution, window longer than the sequence", _convolution(width=5, dilation=3)),
    Case("zero_padded_shortcut", _zero_padded()),
    Case("convolution_2d", _convolution_2d(padding=1)),
    Case("convolution_2d, no padding, no bias", _convolution_2d(bias=False)),
    Case("convolution_2d, stride 2", _convolution_2d(stride=2, padding=1)),
    Case("convolution_2d, width 1, stride 2", _convolution_2d(width=1, stride=2, bias=False)),
    Case("convolution_2d, width 2, stride 3", _convolution_2d(width=2, stride=3)),
    Case("convolution_2d, width 4, stride 2", _convolution_2d(width=4, stride=2, padding=2)),
    Case("convolution_2d, dilation 2", _convolution_2d(dilation=2, padding=1)),
    Case("convolution_2d, groups", _convolution_2d(groups=2, padding=1)),
    Case(
        "convolution_2d, depthwise, stride 2",
        _convolution_2d(c_out=2 * T, groups=T, stride=2, padding=1),
    ),
    Case("pooling, maximum", _max_pooling(2)),
    Case("pooling, maximum, overlapping, padding", _max_pooling(3, 2, 1)),
    Case("pooling, average", _average_pooling(2)),
    Case("pooling, average, overlapping, padding", _average_pooling(3, 2, 1)),
    Case(
        "pooling, global average",
        pair(global_average_pooling, global_average_pooling_backward, ("x",), PICTURES),
    ),
    Case(
        "gated_linear_unit",
        pair(gated_linear_unit, gated_linear_unit_backward, ("x",), (B, T, 2 * D)),
    ),
    Case("patches", module(lambda rng: PatchEmbedding(2, K, F, rng), (B, T, D, K))),
    Case("patches, class token", module(lambda rng: ClassToken(D, rng), (B, T, D))),
    Case("learned_positions", module(lambda rng: LearnedPositions(8, D, rng), (B, T, D))),
    Case("feed_forward", module(lambda rng: FeedForward(D, F, rng), (B, T, D))),
    Case("rms_norm", module(lambda rng: RMSNorm(D), (B, T, D))),
    Case("gelu", pair(gelu, gelu_backward, ("x",), (B, T, D))),
    Case("gelu, by tanh", pair(gelu_by_tanh, gelu_by_tanh_backward, ("x",), (B, T, D))),
    Case("silu", pair(silu, silu_backward, ("x",), (B, T, D))),
    Case("swiglu", module(lambda rng: SwiGLU(D, F, rng), (B, T, D))),
    Case("swiglu, dropout", module(lambda rng: SwiGLUInTraining(D, F, rng, p=0.3), (B, T, D))),
    Case("rotary, neighbours", _rotary("neighbours")),
    Case("rotary, halves", _rotary("halves")),
    Case("rotary, neighbours, after others", _rotary("neighbours", start=7)),
    Case("rotary, halves, after others", _rotary("halves", start=7)),
    Case("alibi", _alibi()),
    Case("alibi, nothing allowed in some rows", _alibi(NOTHING_ALLOWED)),
    Case("alibi, dropout", _alibi(SOURCE_MASK, p=0.3)),
    Case("tiled_attention", _tiled(T, S, size=3)),
    Case("tiled_attention, nothing allowed in some rows", _tiled(T, S, 2, mask=NOTHING_ALLOWED)),
    Case("tiled_attention, causal", _tiled(LONG, LONG, 4, causal=True)),
    Case(
        "tiled_attention, causal, padding mask",
        _tiled(LONG, LONG, size=2, causal=True, mask=LONG_MASK),
    ),
    Case("tiled_attention, one tile", _tiled(T, S, size=128, mask=SOURCE_MASK)),
    Case("linear_attention", _linear_attention(T, S)),
    Case(
        "linear_attention, nothing allowed in some rows",
        _linear_attention(T, S, mask=NOTHING_ALLOWED),
    ),
    Case("linear_attention, causal", _linear_attention(LONG, LONG, causal=True)),
    Case(
        "linear_attention, causal, padding mask",
        _linear_attention(LONG, LONG, causal=True, mask=LONG_MASK),
    ),
    Case("low_rank", _low_rank(rank=2, scale=1.5)),
    Case("low_rank, no bias", _low_rank(rank=3, bias=False)),
    Case(
        "low_rank, around a linear layer",
        module(lambda rng: LowRankLinear(Linear(D, F, rng), 2, rng, alpha=3), (B, T, D)),
    ),
    Case("mixture_of_experts", _mixture(num_experts=5, num_chosen=2)),
    Case("mixture_of_experts, all chosen", _mixture(num_experts=2, num_chosen=2)),
    Case("segment_attention", module(lambda rng: AfterASegment(D, H, rng), (B, T, D))),
    Case(
        "segment_attention, the first one, padding mask",
        module(lambda rng: AfterASegment(D, H, rng), (B, LONG, D), LONG_MASK),
    ),
    Case(
        "grouped_query_attention, padding mask",
        _grouped(4, 2, (B, T, WIDE), *2 * ((B, S, WIDE),), SOURCE_MASK),
    ),
    Case(
        "grouped_query_attention, multi-query",
        _grouped(4, 1, (B, T, WIDE), *2 * ((B, S, WIDE),)),
    ),
]
