"""What layers refuse, and in which words: a row is (error, words, call)."""

import re
from functools import partial

import numpy as np
import pytest

from minitransformer.core.errors import InputError
from minitransformer.layers.additive_attention import additive_attention
from minitransformer.layers.alibi import alibi_attention
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.batch_norm import BatchNorm, batch_norm
from minitransformer.layers.bidirectional import Bidirectional
from minitransformer.layers.convolution import Convolution1d
from minitransformer.layers.convolution_2d import Convolution2d, convolution_2d
from minitransformer.layers.dropout import dropout
from minitransformer.layers.elman import Elman
from minitransformer.layers.embedding import embedding
from minitransformer.layers.gated_linear_unit import gated_linear_unit
from minitransformer.layers.grouped_query_attention import GroupedQueryAttention
from minitransformer.layers.gru import GRU
from minitransformer.layers.layer_norm import layer_norm
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.linear import Linear, linear
from minitransformer.layers.linear_attention import linear_attention
from minitransformer.layers.local_response_norm import local_response_norm
from minitransformer.layers.low_rank import LowRankLinear
from minitransformer.layers.lstm import LSTM
from minitransformer.layers.mixture_of_experts import MixtureOfExperts
from minitransformer.layers.patches import ClassToken, patches
from minitransformer.layers.pooling import average_pooling, max_pooling
from minitransformer.layers.positional_encoding import PositionalEncoding, sinusoidal_encoding
from minitransformer.layers.residual import ResidualConnection
from minitransformer.layers.restricted_attention import (
    RestrictedSelfAttention,
    restricted_attention,
)
from minitransformer.layers.rms_norm import rms_norm
from minitransformer.layers.rotary import rotary, rotary_table
from minitransformer.layers.softmax import softmax
from minitransformer.layers.tiled_attention import tiled_attention

RNG = np.random.default_rng(0)
X, ROWS = np.zeros((2, 4, 6)), np.zeros((1, 2, 3))
HEADS = np.zeros((2, 3, 4, 2))
ATTENTION = MultiHeadAttention(6, 3, RNG)
RESTRICTED = RestrictedSelfAttention(6, 2, 2, RNG)
CONVOLUTION = Convolution1d(6, 5, 3, RNG)
PICTURES, KERNEL = np.zeros((2, 7, 5, 4)), np.zeros((3, 3, 4, 6))


def does_not_broadcast(mask, scores):
    return re.escape(f"a mask of shape {mask} does not broadcast to scores of shape {scores}")


NO_BOOLEAN = "must be boolean, True where .* its dtype is "
NAN = float("nan")
KINDS = Elman, GRU, LSTM
REFUSED = {
    "linear, another width": (ValueError, r"\(2, 5\) does not fit a weight of shape \(4, 3\)",
        lambda: linear(np.ones((2, 5)), np.ones((4, 3)))),
    "layer_norm, a gain of another width": (ValueError, r"of shape \(4,\); theirs are \(1,\)",
        lambda: layer_norm(np.ones((2, 4)), np.ones(1), np.zeros(4))),
    "linear, a start that has no name": (ValueError,
        "start='He'; choose 'he', 'glorot', 'fixed-0.01' or 'fixed-0.02'",
        lambda: Linear(4, 3, RNG, start="He")),
    "batch_norm, a gain of another width": (ValueError, r"of shape \(4,\); theirs are \(1,\)",
        lambda: batch_norm(np.ones((2, 4)), np.ones(1), np.zeros(4))),
    **{f"batch_norm, channels first, {what}": (ValueError, r"of shape \(4,\); theirs are \(3,\)",
        partial(BatchNorm(3).forward, np.ones((2, 3, 4, 4)), rng))
        for what, rng in (("in training", RNG), ("at inference", None))},
    **{f"local_response_norm, {size} near": (ValueError, f"size={size} must be odd and 1 or more",
        partial(local_response_norm, X, size)) for size in (4, 0, -1)},
    **{f"patches of {size}": (ValueError,
        f"pictures of 4 x 6 cannot be cut into patches of {size} x {size}; choose a size that",
        partial(patches, np.zeros((2, 4, 6, 1)), size)) for size in (0, -2, 3, 4, 12)},
    "patches, a token of another width": (ValueError,
        r"a token of shape \(5,\) does not fit x of shape \(2, 4, 6\)",
        lambda: ClassToken(5, RNG).forward(X)),
    "gated_linear_unit, an odd width": (ValueError,
        r"\(2, 5\) has no two halves; its last axis must be even",
        lambda: gated_linear_unit(np.zeros((2, 5)))),
    "rms_norm, a gain of another width": (ValueError, r"gamma of shape \(6,\).*its shape is \(1,\)",
        lambda: rms_norm(X, np.ones(1))),
    "residual, an unknown arrangement": (ValueError, "norm='Pre'; choose 'post' or 'pre'",
        lambda: ResidualConnection(4, norm="Pre")),
    **{f"dropout, p={p}, rng={rng}": (ValueError, f"probability p={p} must lie in 0 <= p < 1",
        partial(dropout, X, p, rng)) for p in (1, 1.5, -0.1, NAN) for rng in (RNG, None)},

    # Ids and positions.
    **{f"embedding, ids {said}": (ValueError, f"{said}, outside 0 <= id < 7, the size of the",
        partial(embedding, np.array(ids), np.zeros((7, 9))))
        for ids, said in (([[1, 7]], "from 1 to 7"), ([[-1, 3]], "from -1 to 3"),
                          ([[99, -99]], "from -99 to 99"))},
    **{f"embedding, ids of {dtype}": (TypeError, f"must be integers; their dtype is {dtype}",
        partial(embedding, np.ones((2, 3), dtype), np.zeros((7, 9))))
        for dtype in ("float64", "float32", "bool")},
    "sinusoids, an odd width": (ValueError, "d_model=7 must be even: each sine has a cosine",
        lambda: sinusoidal_encoding(5, 7)),
    "sinusoids, a longer sequence": (ValueError, "4 tokens is longer than the 3 .* max_length",
        lambda: PositionalEncoding(3, 6).forward(X)),
    "learned_positions, a longer sequence": (ValueError,
        "4 tokens is longer than the 3 .* larger max_length",
        lambda: LearnedPositions(3, 6, RNG).forward(X)),

    "rotary, an odd width": (ValueError, "head_width=7 must be even: .* turned in pairs",
        lambda: rotary_table(5, 7)),
    "rotary, a convention that has no name": (InputError,
        "pairs='half'; choose 'neighbours' or 'halves'",
        lambda: rotary(X, rotary_table(4, 6), "half")),
    "rotary, a longer sequence": (ValueError, "4 tokens is longer than the 3",
        lambda: rotary(X, rotary_table(3, 6))),
    "rotary, a longer sequence with those before": (ValueError, "6 tokens is longer than the 5",
        lambda: rotary(X, rotary_table(5, 6), start=2)),

    **{f"low_rank, a rank of {rank}": (ValueError,
        f"rank={rank} of a correction of 12 x 6 must lie in 1 <= rank <= 3",
        partial(LowRankLinear, Linear(12, 6, RNG), rank, RNG)) for rank in (0, 4, 6)},
    **{f"mixture_of_experts, {k} chosen": (ValueError,
        f"num_chosen={k} must lie in 1 <= num_chosen <= 3, the number of experts",
        partial(MixtureOfExperts, 6, 5, 3, k, RNG)) for k in (0, 4)},

    # Windows, heads and steps.
    "linear_attention, causal, fewer keys": (ValueError, "needs as many keys as .* 3 and 4",
        lambda: linear_attention(HEADS, HEADS[:, :, 1:], HEADS[:, :, 1:], causal=True)),
    "tiled_attention, tiles of nothing": (ValueError, "size=0 must be 1 or more",
        lambda: tiled_attention(HEADS, HEADS, HEADS, 0)),
    "tiled_attention, causal, fewer keys": (ValueError, "needs as many keys as .* 3 and 4",
        lambda: tiled_attention(HEADS, HEADS[:, :, 1:], HEADS[:, :, 1:], causal=True)),
    **{f"grouped_query_attention, {groups} groups": (ValueError,
        f"num_heads=6 is not divisible by num_groups={groups}; choose one of 1, 2, 3, 6",
        partial(GroupedQueryAttention, 12, 6, groups, RNG)) for groups in (0, 4, 12)},
    "grouped_query_attention, heads that do not divide the width": (ValueError,
        "d_model=12 is not divisible by num_heads=8",
        lambda: GroupedQueryAttention(12, 8, 2, RNG)),
    **{f"attention, {h} heads of {d}": (ValueError,
        f"d_model={d} is not divisible by num_heads={h}; choose {near}$",
        partial(MultiHeadAttention, d, h, RNG))
        for d, h, near in ((250, 8, "248 or 256"), (6, 4, "4 or 8"), (4, 6, "6"))},
    "attention, no heads": (ValueError, "num_heads=0 must be a whole number, 1 or more",
        lambda: MultiHeadAttention(6, 0, RNG)),
    "restricted_attention, a window of nothing": (ValueError, "window=0 must be 1 or more",
        lambda: restricted_attention(X, X, X, 2, 0)),
    "restricted_attention, a layer with a window of nothing": (ValueError,
        "window=0 must be 1 or more",
        lambda: RestrictedSelfAttention(6, 2, 0, RNG)),
    "restricted_attention, other keys": (ValueError, r"of one shape; theirs are .* \(2, 3, 6\)",
        lambda: restricted_attention(X, X[:, 1:], X[:, 1:], 2, 2)),
    "convolution, a window without a middle": (ValueError,
        "width=4 has no middle; choose 3 or 5, or causal=True",
        lambda: Convolution1d(6, 5, 4, RNG)),
    **{f"convolution, width={width}, dilation={dilation}": (ValueError,
        f"width={width} and dilation={dilation} must be 1 or",
        partial(Convolution1d, 6, 5, width, RNG, dilation=dilation, causal=True))
        for width, dilation in ((0, 1), (3, 0))},
    "convolution, another width, and not that of its windows": (ValueError,
        r"\(2, 4, 5\) does not fit a weight of shape \(3, 6, 5\): .* be 6$",
        lambda: CONVOLUTION.forward(X[..., 1:])),
    **{f"{name}, no steps": (ValueError,
        r"a batch of shape \(2, 0\) has no steps; give sequences",
        partial(layer.forward, X[:, :0]))
        for kind in KINDS for name, layer in (
            (kind.__name__, kind(6, 3, RNG)),
            (f"{kind.__name__}, from the end", kind(6, 3, RNG, reverse=True)),
            (f"{kind.__name__}, both ways", Bidirectional(kind, 6, 3, RNG)))},

    # Pictures.
    "convolution_2d, another number of channels": (ValueError,
        r"\(2, 7, 5, 3\) does not fit a weight of shape \(3, 3, 4, 6\) with groups=1: .* be 4$",
        lambda: convolution_2d(PICTURES[..., 1:], KERNEL)),
    "convolution_2d, a weight for one group": (ValueError, "with groups=2: its last axis must be 8",
        lambda: convolution_2d(PICTURES, KERNEL, groups=2)),
    "convolution_2d, a kernel that is no square": (ValueError,
        r"\(3, 2, 4, 6\) has no square windows: its first two axes must be equal",
        lambda: convolution_2d(PICTURES, KERNEL[:, 1:])),
    **{f"convolution_2d, groups={groups}": (ValueError,
        f"groups={groups} must divide the channels of input and output, 4 and 6",
        partial(Convolution2d, 4, 6, 3, RNG, groups=groups)) for groups in (0, 3, 4)},
    "convolution_2d, a way to start that is not known": (InputError, "start.*'best'.*he.*glorot",
        lambda: Convolution2d(4, 6, 3, RNG, start="best")),
    "convolution_2d, no axis for the batch": (ValueError,
        r"are \(batch, rows, columns, channels\); these are \(7, 5, 4\)",
        lambda: convolution_2d(PICTURES[0], KERNEL)),
    **{f"convolution_2d, {name}={value}": (ValueError,
        rf"{name}={value}.* must be .* or more", partial(convolution_2d, PICTURES, KERNEL,
        **{name: value})) for name, value in (("stride", 0), ("dilation", 0), ("padding", -1))},
    **{f"convolution_2d, a layer with {name}={value}": (ValueError,
        rf"{name}={value}.* must be .* or more", partial(Convolution2d, 4, 6, rng=RNG,
        **{"kernel_size": 3} | {name: value}))
        for name, value in (("kernel_size", 0), ("stride", 0), ("dilation", 0), ("padding", -1))},
    "convolution_2d, a window larger than the picture": (ValueError,
        "kernel_size=3 and dilation=4 covers 9 × 9 positions; .* 7 × 5 with padding=1 have 9 × 7$",
        lambda: convolution_2d(PICTURES, KERNEL, padding=1, dilation=4)),
    **{f"{pooling.__name__}, windows in the padding alone": (ValueError,
        "padding=2 must be at most half of kernel_size=3, 1",
        partial(pooling, PICTURES, 3, padding=2))
        for pooling in (max_pooling, average_pooling)},
    **{f"{pooling.__name__}, windows that do not move": (ValueError, "stride=0.* must be 1 or",
        partial(pooling, PICTURES, 3, stride=0))
        for pooling in (max_pooling, average_pooling)},
    "max_pooling, a window larger than the picture": (ValueError, "covers 6 × 6 .* have 7 × 5",
        lambda: max_pooling(PICTURES, 6)),

    # Masks.
    **{f"softmax, a mask of {dtype}": (TypeError, NO_BOOLEAN + dtype,
        partial(softmax, ROWS, np.ones(ROWS.shape, dtype))) for dtype in ("float32", "int64")},
    **{f"softmax, a mask of shape {shape}": (ValueError, does_not_broadcast(shape, (1, 2, 3)),
        partial(softmax, ROWS, np.ones(shape, bool)))
        for shape in ((2,), (3, 3), (2, 1, 3), (1, 1, 2, 3))},
    "attention, a mask of numbers": (TypeError, NO_BOOLEAN,
        lambda: ATTENTION.forward(X, X, X, np.ones((2, 1, 4, 4)))),
    "attention, a mask without an axis for heads": (ValueError,
        does_not_broadcast((2, 4, 4), (2, 3, 4, 4)),
        lambda: ATTENTION.forward(X, X, X, np.ones((2, 4, 4), bool))),
    "additive_attention, a mask of numbers": (TypeError, NO_BOOLEAN,
        lambda: additive_attention(X[..., 1:], X[..., 1:], X, np.zeros(5), np.ones((2, 4, 4)))),
    "restricted_attention, a mask of numbers": (TypeError, NO_BOOLEAN,
        lambda: RESTRICTED.forward(X, X, X, np.ones((2, 1, 1, 4)))),
    "restricted_attention, a mask of pairs of positions": (ValueError,
        r"\(1, 1, 4, 4\) does not broadcast to .* 1, 1, 4\)",
        lambda: RESTRICTED.forward(X, X, X, np.ones((1, 1, 4, 4), bool))),
    "tiled_attention, a mask of numbers": (TypeError, NO_BOOLEAN,
        lambda: tiled_attention(HEADS, HEADS, HEADS, mask=np.ones((2, 1, 1, 4)))),
    "tiled_attention, a mask of pairs of positions": (ValueError,
        r"\(1, 1, 4, 4\) does not broadcast to .* \(2, 1, 1, 4\)",
        lambda: tiled_attention(HEADS, HEADS, HEADS, mask=np.ones((1, 1, 4, 4), bool))),
    "linear_attention, a mask of numbers": (TypeError, NO_BOOLEAN,
        lambda: linear_attention(HEADS, HEADS, HEADS, mask=np.ones((2, 1, 1, 4)))),
    "alibi, a mask of numbers": (TypeError, NO_BOOLEAN,
        lambda: alibi_attention(HEADS, HEADS, HEADS, np.ones(3), np.ones((2, 1, 1, 4)))),
    "convolution, a mask of numbers": (TypeError, "mask must be boolean",
        lambda: CONVOLUTION.forward(X, np.ones((2, 4)))),
    "convolution, a mask for attention": (ValueError,
        r"mask has shape \(2, 1, 1, 4\); .* one of \(2, 4\)",
        lambda: CONVOLUTION.forward(X, np.ones((2, 1, 1, 4), bool))),
    "recurrence, a mask of numbers": (TypeError, "boolean, True at tokens; its dtype is float64",
        lambda: GRU(6, 3, RNG).forward(X, mask=np.ones((2, 4)))),
    **{f"recurrence, a mask of shape {shape}": (ValueError,
        rf"{re.escape(str(shape))}.*needs one of \(2, 4\)",
        partial(GRU(6, 3, RNG).forward, X, mask=np.ones(shape, bool)))
        for shape in ((2, 1, 4), (2, 3))},
}


@pytest.mark.parametrize("row", REFUSED)
def test_what_makes_no_sense_is_refused(row):
    error, words, call = REFUSED[row]
    with pytest.raises(error, match=words):
        call()
