"""Wrong backwards of layers that see windows, and of what stands beside them: all are rejected.

A mutant is as in ``test_mutants.py``.
"""

import numpy as np
import pytest
from test_mutants import Mutant, assert_rejected

from minitransformer.layers.attention import (
    merge_heads,
    scaled_dot_product_attention_backward,
    split_heads,
)
from minitransformer.layers.convolution import convolution, convolution_backward
from minitransformer.layers.gated_linear_unit import gated_linear_unit
from minitransformer.layers.learned_positions import (
    learned_positions,
    learned_positions_backward,
)
from minitransformer.layers.restricted_attention import (
    blocks,
    joined,
    restricted_attention,
    restricted_attention_backward,
)
from minitransformer.layers.sigmoid import sigmoid

B, T, D, V = 3, 10, 7, 11
rng = np.random.default_rng(0)
X = rng.standard_normal((B, T, D))
KERNEL, BIAS = rng.standard_normal((4, D, V)), rng.standard_normal(V)
CENTRED = (X, KERNEL[:3], BIAS)
CAUSAL = (X, KERNEL, BIAS)
TOKENS = np.arange(T) < np.array([10, 6, 3])[:, None]
QUERIES = tuple(rng.standard_normal((3, 1, 7, 2)))  # query, key and value
HALVES = X[..., :6]
TABLE = rng.standard_normal((V + 2, D))


def convolved(**options):
    return lambda x, weight, bias: convolution(x, weight, bias, **options)


def convolution_with(change):
    def backward(dy, cache):
        return change(dy, cache, *convolution_backward(dy, cache))

    return backward


def convolution_kernel_not_turned(**options):
    """dx as a convolution of dy that looks where forward looks."""

    def change(dy, cache, dx, dweight, dbias):
        _, weight_shape, _, (_, weight, _) = cache
        taps = weight.reshape(weight_shape).swapaxes(1, 2)
        return convolution(dy, taps, **options)[0], dweight, dbias

    return convolution_with(change)


def convolution_gathered(**changed):
    """Backward with other starts of the taps, or another padding, than forward."""

    def backward(dy, cache):
        mask, weight_shape, (starts, before, padded_shape), linear_cache = cache
        starts, before = changed.get("starts", starts), changed.get("before", before)
        windows_cache = starts, before, padded_shape
        return convolution_backward(dy, (mask, weight_shape, windows_cache, linear_cache))

    return backward


def convolution_windows_overwrite(dy, cache, dx, dweight, dbias):
    _, weight_shape, (starts, before, padded_shape), (_, weight, _) = cache
    dpadded, length = np.zeros(padded_shape), dy.shape[1]
    for tap, start in zip(weight.reshape(weight_shape), starts, strict=True):
        dpadded[:, start : start + length] = dy @ tap.T
    return dpadded[:, before : before + length], dweight, dbias


def gate_with(change):
    def backward(dy, cache):
        a, gate, _ = cache
        return np.concatenate(change(dy, a, gate), axis=-1)

    return backward


def restricted(window, causal=False):
    return lambda query, key, value: restricted_attention(query, key, value, 1, window, causal)


def restricted_as_if(window, causal=False):
    """The backward of another window."""

    def backward(dy, cache):
        _, other = restricted(window, causal)(*QUERIES)
        return restricted_attention_backward(dy, other)

    return backward


def restricted_with(change):
    def backward(dy, cache):
        return change(*restricted_attention_backward(dy, cache))

    return backward


def restricted_keys_of_their_own_block(dy, cache):
    """What the blocks beside it send to a key is not added."""
    num_heads, size, shape, _, attention_cache = cache
    dquery, _, _ = restricted_attention_backward(dy, cache)
    dheads = split_heads(blocks(dy, size).reshape(-1, size, shape[-1]), num_heads)
    _, dk, dv = scaled_dot_product_attention_backward(dheads, attention_cache)
    own = slice(size, 2 * size)
    return dquery, *(joined(merge_heads(dx)[:, own], shape) for dx in (dk, dv))


def positions_with(change):
    def backward(dy, cache):
        return dy, change(dy, learned_positions_backward(dy, cache)[1])

    return backward


MUTANTS = [
    Mutant(
        "convolution: kernel not turned round",
        convolved(),
        convolution_kernel_not_turned(),
        CENTRED,
        {"dx"},
        "for weight reversed along axis 0",
    ),
    Mutant(
        "convolution: backward is causal, too",
        convolved(causal=True),
        convolution_kernel_not_turned(causal=True),
        CAUSAL,
        {"dx"},
        "it runs along axis 1 in the wrong order",
    ),
    Mutant(
        "convolution: weight gradient shifted by a tap",
        convolved(causal=True),
        convolution_with(lambda dy, cache, dx, dw, db: (dx, np.roll(dw, 1, axis=0), db)),
        CAUSAL,
        {"dweight"},
        "it is the right gradient shifted along axis 0, 1 too far",
    ),
    Mutant(
        "convolution: padding cut off at the wrong end",
        convolved(causal=True),
        convolution_gathered(before=0),
        CAUSAL,
        {"dx"},
        "it is the right gradient shifted along axis 1, 3 too far",
    ),
    Mutant(
        "convolution: dilation forgotten in backward",
        convolved(causal=True, dilation=2),
        convolution_gathered(starts=range(4)),
        CAUSAL,
        {"dx"},
        "entries are wrong",
    ),
    Mutant(
        "convolution: = for += where windows overlap",
        convolved(),
        convolution_with(convolution_windows_overwrite),
        CENTRED,
        {"dx"},
        "only one is left, as if overwritten",
    ),
    Mutant(
        "convolution: gradient reaches padding",
        convolved(mask=TOKENS),
        lambda dy, cache: convolution_backward(dy, (None, *cache[1:])),
        CENTRED,
        {"dx"},
        "leaks into padding",
    ),
    Mutant(
        "sigmoid: σ for the derivative of σ",
        sigmoid,
        lambda dy, y: dy * y,
        (X,),
        {"dx"},
        "the factor (1 − y) is missing",
    ),
    Mutant(
        "sigmoid: derivative of tanh",
        sigmoid,
        lambda dy, y: dy * (1 - y * y),
        (X,),
        {"dx"},
        "it is dy times (1 − y²); it should be dy times y (1 − y)",
    ),
    Mutant(
        "sigmoid: derivative at y, not at x",
        sigmoid,
        lambda dy, y: dy * sigmoid(y)[0] * (1 - sigmoid(y)[0]),
        (X,),
        {"dx"},
        "the derivative is taken at y; it has to be taken at x",
    ),
    Mutant(
        "gated_linear_unit: σ for the derivative of σ",
        gated_linear_unit,
        gate_with(lambda dy, a, gate: (dy * gate, dy * a * gate)),
        (HALVES,),
        {"dx"},
        "in `sigmoid(b)`",
    ),
    Mutant(
        "gated_linear_unit: halves exchanged",
        gated_linear_unit,
        gate_with(lambda dy, a, gate: (dy * a * gate * (1 - gate), dy * gate)),
        (HALVES,),
        {"dx"},
        "its halves along axis 2 are right and in another order",
    ),
    Mutant(
        "gated_linear_unit: gate without what it gates",
        gated_linear_unit,
        gate_with(lambda dy, a, gate: (dy * gate, dy * gate * (1 - gate))),
        (HALVES,),
        {"dx"},
        "the factor `a` is forgotten",
    ),
    Mutant(
        "gated_linear_unit: gradient of the gated half not gated",
        gated_linear_unit,
        gate_with(lambda dy, a, gate: (dy, dy * a * gate * (1 - gate))),
        (HALVES,),
        {"dx"},
        "the factor `gate` is forgotten",
    ),
    Mutant(
        "restricted_attention: gradients of keys not summed over blocks",
        restricted(2),
        restricted_keys_of_their_own_block,
        QUERIES,
        {"dkey", "dvalue"},
        "entries are wrong",
    ),
    Mutant(
        "restricted_attention: window off by one",
        restricted(2),
        restricted_as_if(1),
        QUERIES,
        {"dquery", "dkey", "dvalue"},
        "entries are wrong",
    ),
    Mutant(
        "restricted_attention: backward looks ahead",
        restricted(2, causal=True),
        restricted_as_if(2),
        QUERIES,
        {"dquery", "dkey", "dvalue"},
        "entries are wrong",
    ),
    Mutant(
        "restricted_attention: gradients of keys one block too far",
        restricted(2),
        restricted_with(lambda dq, dk, dv: (dq, np.roll(dk, 2, axis=1), dv)),
        QUERIES,
        {"dkey"},
        "it is the right gradient shifted along axis 1, 2 too far",
    ),
    Mutant(
        "restricted_attention: last block filled up at the wrong side",
        restricted(2),
        restricted_with(lambda dq, dk, dv: (np.roll(dq, 1, axis=1), dk, dv)),
        QUERIES,
        {"dquery"},
        "it is the right gradient shifted along axis 1, 1 too far",
    ),
    Mutant(
        "learned_positions: table's gradient a mean over sentences",
        learned_positions,
        positions_with(lambda dy, dtable: dtable / len(dy)),
        (X, TABLE),
        {"dtable"},
        "3 times too small: 3 is the batch size",
    ),
    Mutant(
        "learned_positions: last sentence only",
        learned_positions,
        positions_with(lambda dy, dtable: np.concatenate([dy[-1], dtable[T:]])),
        (X, TABLE),
        {"dtable"},
        "it sums over the last index of axis 0 of dy only, and not over all 3",
    ),
    Mutant(
        "learned_positions: the last rows of the table for the first",
        learned_positions,
        positions_with(lambda dy, dtable: np.roll(dtable, len(TABLE) - T, axis=0)),
        (X, TABLE),
        {"dtable"},
        "it is the right gradient shifted along axis 0, 3 too far",
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_wrong_backward_is_rejected_and_its_cause_named(mutant):
    assert_rejected(mutant)
