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
    P,
    expect_gradients,
    expect_right,
    expect_y,
    float64_note,
    generator,
    gradients_of,
    with_dropout,
)
from minitransformer.course.exercises.parts import (
    array_of,
    check_gradients,
    expect,
    expect_boolean,
    normal,
    part,
)
from minitransformer.gradcheck import CheckError
from minitransformer.layers import attention as package
from minitransformer.layers import masks
from minitransformer.layers.softmax import softmax

INVERTED = "True is where attention is allowed; yours is the other way round"


@part(10, "08")
def check_padding_mask(padding_mask):
    for pad_id in (0, 7):
        mask = padding_mask.quietly(SOURCE, pad_id)
        expected = masks.padding_mask(SOURCE, pad_id)
        mistakes = {INVERTED: ~expected, "padding is pad_id, which may not be 0": SOURCE_MASK}
        expect_boolean(f"padding_mask with pad_id={pad_id} must be", mask)
        expect(f"padding_mask with pad_id={pad_id}", mask, expected, mistakes=mistakes)


@part(10, "08")
def check_causal_mask(causal_mask):
    mask = causal_mask.quietly(TARGET)
    expected = masks.causal_mask(TARGET)
    itself = np.eye(T, dtype=bool)
    mistakes = {
        INVERTED: ~expected,
        "queries are the rows and keys the columns; yours look ahead": expected.swapaxes(-1, -2),
        "a position may look at itself, too": expected & ~itself,
    }
    expect_boolean("causal_mask must be", mask)
    expect("causal_mask", mask, expected, mistakes=mistakes)


@part(10, "09")
def check_split_heads(split_heads):
    (x,) = normal(9, (B, T, D))
    heads = split_heads.quietly(x, H)
    if array_of(heads, (B, T, H, K)) is not None:
        raise CheckError("the result is (B, T, H, K): exchange the axes T and H")
    mixed = "this mixes positions: cut D into (H, K) first, and then exchange T and H"
    mistakes = {mixed: x.reshape(B, H, T, K), FEATURE: x.reshape(B, T, K, H).transpose(0, 3, 1, 2)}
    expect("what it returns", heads, package.split_heads(x, H), mistakes=mistakes)


@part(10, "09")
def check_merge_heads(merge_heads):
    (x,) = normal(9, (B, H, T, K))
    merged = merge_heads.quietly(x)
    mixed = "this mixes positions: exchange the axes T and H first, and then make (H, K) one"
    by_feature = x.transpose(0, 2, 3, 1).reshape(B, T, D)
    mistakes = {mixed: x.reshape(B, T, D), FEATURE: by_feature}
    expect("what it returns", merged, package.merge_heads(x), mistakes=mistakes)


@part(45, "08")
def check_scaled_dot_product_attention(forward, backward):
    query, key, value = inputs = tuple(normal(8, (B, H, T, K), (B, H, S, K), (B, H, S, K)))
    scores = query @ key.swapaxes(-1, -2)

    def reference(*options):
        return package.scaled_dot_product_attention(*inputs, *options)[0]

    mistakes = {
        "the scores are divided by √K before the softmax": softmax(scores)[0] @ value,
        "divide by the root of K, not by K": softmax(scores / K)[0] @ value,
        "divide by √K, the width of a head, not by the root of D": (
            softmax(scores / np.sqrt(D))[0] @ value
        ),
        "divide the scores by √K, and not the weights": softmax(scores)[0] / np.sqrt(K) @ value,
        "multiply by 1 / √K, not by √K": softmax(scores * np.sqrt(K))[0] @ value,
    }
    expect_y(forward, inputs, reference(), "y", "y is softmax(Q Kᵀ / √K) V", mistakes)
    hint = "the mask is for the softmax, which gives 0 where it is False"
    forbid = "forbid scores, by giving the mask to the softmax, not weights after it"
    for mask, what in ((SOURCE_MASK, "a mask"), (NOTHING_ALLOWED, "nothing allowed in some rows")):
        mistakes = {
            forbid: softmax(scores / np.sqrt(K))[0] * mask @ value,
            INVERTED: reference(~mask),
            "the mask is to be given to the softmax": reference(),
        }
        what = f"y with {what}"
        expect_y(forward, (*inputs, mask), reference(mask), what, hint, mistakes)
    mistakes = {"there is dropout of the weights, with p and rng": reference(SOURCE_MASK)}
    expected, masked = reference(SOURCE_MASK, P, generator()), (*inputs, SOURCE_MASK)
    hint = "the dropout is of the weights, after the softmax"
    expect_y(with_dropout(forward), masked, expected, "y with dropout", hint, mistakes)

    cases = ((*inputs, mask) for mask in (None, SOURCE_MASK, NOTHING_ALLOWED))
    expect_right(forward, backward, *cases)
    hints = (
        "without dropout it is right: the gradient of the weights goes back through the "
        "dropout, and then through the softmax",
        "",
        "without dropout it is right: the values are multiplied by the weights after it",
    )
    expect_right(with_dropout(forward), backward, masked, hints=hints)
    return float64_note(forward, backward, masked)


@part(45, "09")
def check_multi_head_attention(forward, backward):
    query, key, value, weights = normal(9, (B, T, D), (B, S, D), (B, S, D), (4, D, D))
    inputs = query, key, value
    whole = *inputs, *weights, H

    def reference(*arguments):
        return package.multi_head_attention(*arguments)[0]

    expected = reference(*whole)
    mistakes = {
        "the values are made of value": reference(query, key, key, *weights, H),
        "the heads are merged and multiplied by w_output": (
            reference(*inputs, *weights[:3], np.eye(D), H)
        ),
        "there are num_heads heads, and yours is one": reference(*inputs, *weights, 1),
    }
    mistakes |= _mixed_up(inputs, weights)
    hint = "the heads of query, key and value, attention, then w_output"
    expect_y(forward, whole, expected, "y", hint, mistakes)
    masked = *whole, SOURCE_MASK
    mistakes = {"the mask is to be handed on": expected}
    expected, hint = reference(*masked), "the mask is the same for all heads"
    expect_y(forward, masked, expected, "y with a mask", hint, mistakes)
    mistakes = {"p and rng are to be handed on": expected}
    expected = reference(*masked, P, generator())
    hint = "the dropout is that of the attention, and nothing else draws"
    forward = with_dropout(forward)
    expect_y(forward, masked, expected, "y with dropout", hint, mistakes)
    pair = package.multi_head_attention, package.multi_head_attention_backward
    check_gradients_of_heads(forward, backward, masked, pair, {})
    return check_gradients(forward, backward, masked, directions=3)  # each has been compared


def check_gradients_of_heads(forward, backward, arguments, pair, hints):
    """Compare the gradients of attention in heads in the order in which a backward meets them.

    Args:
        arguments: for the forward, up to the mask.
        pair: the package's.
        hints: by the name of a gradient, where there is one.
    """
    given_y, cache = forward.y_and_cache(*arguments)
    dy = np.random.default_rng(90).standard_normal(given_y.shape)
    order = "dw_output", "dw_value", "dvalue", "dw_key", "dkey", "dw_query", "dquery"
    names = "dquery", "dkey", "dvalue", "dw_query", "dw_key", "dw_value", "dw_output"
    given = gradients_of(backward, dy, cache, names)
    package_forward, package_backward = pair
    _, cache = package_forward(*arguments, P, generator())
    expected = package_backward(dy, cache)
    given, expected = (dict(zip(names, x, strict=True)) for x in (given, expected))
    hint = (
        "split_heads and merge_heads are each the backward of the other, and each line goes back "
        "with the cache of its own"
    )
    expect_gradients("", given, {name: expected[name] for name in order}, hints, hint)


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


FEATURE = "feature k of head h is number h · K + k, not k · H + h"
