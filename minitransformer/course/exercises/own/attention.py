"""How masks, attention and its heads are checked."""

import numpy as np

from minitransformer.cases.case import (
    NOTHING_ALLOWED,
    SOURCE,
    SOURCE_MASK,
    TARGET,
    B,
    D,
    H,
    K,
    S,
    T,
)
from minitransformer.course.exercises.own.common import (
    expect_gradients,
    expect_right,
    float64_note,
    generator,
    gradients_of,
    likely,
    quietly,
    y_of,
)
from minitransformer.course.exercises.parts import array_of, expect, read_only, y_and_cache
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.layers import attention as package
from minitransformer.layers import masks
from minitransformer.layers.softmax import softmax

P = 0.4
NAMES = ("query", "key", "value", "w_query", "w_key", "w_value", "w_output", "num_heads", "mask")
INVERTED = "True is where attention is allowed; yours is the other way round"


def check_padding_mask(padding_mask):
    for pad_id in (0, 7):
        mask = quietly("padding_mask", padding_mask, read_only(SOURCE), pad_id)
        expected = masks.padding_mask(SOURCE, pad_id)
        mistakes = {INVERTED: ~expected, "padding is pad_id, which may not be 0": SOURCE_MASK}
        _expect_mask(f"padding_mask with pad_id={pad_id}", mask, expected, mistakes)


def check_causal_mask(causal_mask):
    mask = quietly("causal_mask", causal_mask, read_only(TARGET))
    expected = masks.causal_mask(TARGET)
    itself = np.eye(T, dtype=bool)
    mistakes = {
        INVERTED: ~expected,
        "queries are the rows and keys the columns; yours look ahead": expected.swapaxes(-1, -2),
        "a position may look at itself, too": expected & ~itself,
        "yours look ahead only, and not at themselves": ~expected | itself,
    }
    _expect_mask("causal_mask", mask, expected, mistakes)


def _expect_mask(what, mask, expected, mistakes):
    kind = getattr(mask, "dtype", type(mask).__name__)
    if kind != "bool":
        raise CheckError(f"{what} must be a boolean array; it is {kind}")
    expect(what, mask, expected, hint=likely(mask, mistakes))


def check_split_heads(split_heads):
    x = np.random.default_rng(9).standard_normal((B, T, D))
    heads = quietly("split_heads", split_heads, read_only(x), H)
    mistakes = {
        "this mixes positions: cut D into (H, K) first, and then exchange T and H": (
            x.reshape(B, H, T, K)
        ),
        "feature k of head h is number h · K + k, not k · H + h": (
            x.reshape(B, T, K, H).transpose(0, 3, 1, 2)
        ),
    }
    expected = package.split_heads(x, H)
    if array_of(heads, (B, T, H, K)) is not None:
        raise CheckError("the result is (B, T, H, K): exchange the axes T and H")
    expect("what it returns", heads, expected, hint=likely(heads, mistakes))


def check_merge_heads(merge_heads):
    x = np.random.default_rng(9).standard_normal((B, H, T, K))
    merged = quietly("merge_heads", merge_heads, read_only(x))
    mistakes = {
        "this mixes positions: exchange the axes T and H first, and then make (H, K) one": (
            x.reshape(B, T, D)
        ),
        "feature k of head h is number h · K + k, not k · H + h": (
            x.transpose(0, 2, 3, 1).reshape(B, T, D)
        ),
    }
    expect("what it returns", merged, package.merge_heads(x), hint=likely(merged, mistakes))


def check_scaled_dot_product_attention(forward, backward):
    rng = np.random.default_rng(8)
    shapes = (B, H, T, K), (B, H, S, K), (B, H, S, K)
    query, key, value = inputs = tuple(rng.standard_normal(shape) for shape in shapes)
    name = "scaled_dot_product_attention"
    reference = package.scaled_dot_product_attention
    y = y_of(name, forward, *inputs)
    scores = query @ key.swapaxes(-1, -2)
    mistakes = {
        "the scores are divided by √K before the softmax": softmax(scores)[0] @ value,
        "divide by the root of K, not by K": softmax(scores / K)[0] @ value,
        "divide by √K, the width of a head, not by the root of D": (
            softmax(scores / np.sqrt(D))[0] @ value
        ),
        "divide the scores by √K, and not the weights": softmax(scores)[0] / np.sqrt(K) @ value,
        "multiply by 1 / √K, not by √K": softmax(scores * np.sqrt(K))[0] @ value,
    }
    hint = likely(y, mistakes, "y is softmax(Q Kᵀ / √K) V")
    expect("y", y, reference(*inputs)[0], hint=hint)
    for mask, what in ((SOURCE_MASK, "a mask"), (NOTHING_ALLOWED, "nothing allowed in some rows")):
        y = y_of(name, forward, *inputs, mask)
        forbidden_later = softmax(scores / np.sqrt(K))[0] * mask @ value
        mistakes = {
            "forbid scores, by giving the mask to the softmax, not weights after it": (
                forbidden_later
            ),
            INVERTED: reference(*inputs, ~mask)[0],
            "the mask is to be given to the softmax": reference(*inputs)[0],
        }
        hint = likely(y, mistakes, "the mask is for the softmax, which gives 0 where it is False")
        expect(f"y with {what}", y, reference(*inputs, mask)[0], hint=hint)
    y = y_of(name, forward, *inputs, SOURCE_MASK, P, generator())
    mistakes = {
        "there is dropout of the weights, with p and rng": reference(*inputs, SOURCE_MASK)[0]
    }
    expected, _ = reference(*inputs, SOURCE_MASK, P, generator())
    hint = likely(y, mistakes, "the dropout is of the weights, after the softmax")
    expect("y with dropout", y, expected, hint=hint)

    names = ("query", "key", "value", "mask")
    expect_right(
        check_pair(forward, backward, (*inputs, mask), names=names)
        for mask in (None, SOURCE_MASK, NOTHING_ALLOWED)
    )
    report = check_pair(
        lambda *inputs: forward(*inputs, P, generator()),
        backward,
        (*inputs, SOURCE_MASK),
        names=names,
    )
    hints = {
        "dquery": "without dropout it is right: the gradient of the weights goes back through the "
        "dropout, and then through the softmax",
        "dvalue": "without dropout it is right: the values are multiplied by the weights after it",
    }
    expect_right([report], hints)
    return float64_note(name, forward, backward, (*inputs, SOURCE_MASK))


def check_multi_head_attention(forward, backward):
    rng = np.random.default_rng(9)
    shapes = (B, T, D), (B, S, D), (B, S, D)
    inputs = tuple(rng.standard_normal(shape) for shape in shapes)
    weights = tuple(rng.standard_normal((4, D, D)))
    name = "multi_head_attention"
    reference = package.multi_head_attention
    y = y_of(name, forward, *inputs, *weights, H)
    query, key, _ = inputs
    mistakes = {
        "the values are made of value": reference(query, key, key, *weights, H)[0],
        "the heads are merged and multiplied by w_output": (
            reference(*inputs, *weights[:3], np.eye(D), H)[0]
        ),
        "there are num_heads heads, and yours is one": reference(*inputs, *weights, 1)[0],
    }
    mistakes |= _mixed_up(inputs, weights)
    hint = likely(y, mistakes, "the heads of query, key and value, attention, then w_output")
    expect("y", y, reference(*inputs, *weights, H)[0], hint=hint)
    y = y_of(name, forward, *inputs, *weights, H, SOURCE_MASK)
    expected, _ = reference(*inputs, *weights, H, SOURCE_MASK)
    mistakes = {"the mask is to be handed on": reference(*inputs, *weights, H)[0]}
    hint = likely(y, mistakes, "the mask is the same for all heads")
    expect("y with a mask", y, expected, hint=hint)
    y = y_of(name, forward, *inputs, *weights, H, SOURCE_MASK, P, generator())
    mistakes = {"p and rng are to be handed on": expected}
    expected, _ = reference(*inputs, *weights, H, SOURCE_MASK, P, generator())
    hint = likely(y, mistakes, "the dropout is that of the attention, and nothing else draws")
    expect("y with dropout", y, expected, hint=hint)

    arguments = *inputs, *weights, H, SOURCE_MASK
    _check_gradients_of_heads(forward, backward, arguments)
    return check_pair(
        lambda *inputs: forward(*inputs, P, generator()),
        backward,
        arguments,
        names=NAMES,
        directions=3,  # each entry has been compared
    )


def _check_gradients_of_heads(forward, backward, arguments):
    """Compare the gradients of multi-head attention in the order in which a backward meets them."""
    given_y, cache = y_and_cache("multi_head_attention", forward, *arguments, P, generator())
    dy = np.random.default_rng(90).standard_normal(given_y.shape)
    names = [f"d{name}" for name in NAMES[:7]]
    given = gradients_of("multi_head_attention_backward", backward, dy, cache, names)
    _, cache = package.multi_head_attention(*arguments, P, generator())
    expected = package.multi_head_attention_backward(dy, cache)
    given, expected = (dict(zip(names, x, strict=True)) for x in (given, expected))
    order = "dw_output", "dw_value", "dvalue", "dw_key", "dkey", "dw_query", "dquery"
    hint = (
        "split_heads and merge_heads are each the backward of the other, and each line goes back "
        "with the cache of its own"
    )
    expect_gradients("", given, {name: expected[name] for name in order}, {}, hint)


def _mixed_up(inputs, weights):
    """What comes of heads that are cut or merged by a reshape alone, by what to say of it."""
    q, k, v = (x @ w for x, w in zip(inputs, weights, strict=False))
    attend = package.scaled_dot_product_attention
    heads, _ = attend(*(package.split_heads(x, H) for x in (q, k, v)))
    cut, _ = attend(*(x.reshape(B, H, -1, K) for x in (q, k, v)))
    return {
        "the heads are merged by merge_heads, not by a reshape alone": (
            heads.reshape(B, T, D) @ weights[3]
        ),
        "the heads are cut by split_heads, not by a reshape alone": (
            package.merge_heads(cut) @ weights[3]
        ),
    }
