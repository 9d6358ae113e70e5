"""Exercise 08, scaled dot-product attention: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import (
    check_gradients,
    expect,
    expect_boolean,
    expect_pair,
    normal,
    part,
)
from minitransformer.gradcheck import CheckError
from minitransformer.layers.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.softmax import softmax

B, H, T, S, K = 2, 3, 7, 9, 5  # T · S is more than S · K: weights are larger than keys
SEGMENTS = np.array([[1, 1, 1, 2, 2, 3, 0], [4, 2, 2, 2, 2, 0, 0], [1, 1, 2, 2, 1, 1, 1]])


@part(10)
def check_score_of_itself(score_of_itself):
    of_squares = "of the sum of d_k squares, and only then divided by √d_k"
    of_variance = "the variance of a sum is the sum of the variances; the root comes last"
    for d_k in (1, 64, 100):
        form = "two numbers: mean, standard deviation"
        mean, deviation = score_of_itself.several(2, form, d_k)
        expect(f"the mean for d_k={d_k}", mean, np.sqrt(d_k), of_squares)
        expect(f"the standard deviation for d_k={d_k}", deviation, np.sqrt(2), of_variance)


@part(25)
def check_packed_mask(packed_mask):
    # In the last row sentence 1 goes on after sentence 2: what counts is the number, not the place.
    mask = packed_mask(SEGMENTS)
    expect_boolean("the mask must be", mask)
    shape = len(SEGMENTS), 1, SEGMENTS.shape[1], SEGMENTS.shape[1]
    if mask.shape != shape:
        raise CheckError(f"the mask has the shape {mask.shape} and should have {shape}")
    for (b, _, t, s), allowed in np.ndenumerate(mask):
        query, key = SEGMENTS[b, t], SEGMENTS[b, s]
        if 0 in (query, key):
            wanted, because = False, "padding looks at nothing and is not looked at"
        elif query != key:
            wanted, because = False, "they are in different sentences"
        else:
            wanted = s <= t
            because = "it is not after it, in the same sentence" if wanted else "it comes after it"
        if allowed != wanted:
            raise CheckError(
                f"in the row {SEGMENTS[b].tolist()} the query at {t} "
                f"{'may' if wanted else 'may not'} look at the key at {s}: {because}"
            )


@part(45)
def check_biased_attention(forward, backward):
    query, key, value = _inputs()
    (bias,) = normal(80, (H, T, S))
    weights, _ = softmax(query @ key.swapaxes(-1, -2) / np.sqrt(K) + bias)
    hint = "the bias is added after the division by √d_k"
    report = expect_pair(forward, backward, (query, key, value, bias), weights @ value, hint)
    if report.right:
        _check_large(forward, backward, np.zeros((H, T, S)))
    return report


@part(90)
def check_lean_attention(forward, backward):
    inputs = _inputs()
    y, cache = forward.y_and_cache(*inputs, cache_type=tuple)
    expect("y", y, scaled_dot_product_attention(*inputs)[0])
    largest = max((np.size(array) for array in cache), default=0)
    if largest > inputs[1].size:
        raise CheckError(
            f"the cache holds an array of {largest} numbers; the largest input has "
            f"{inputs[1].size}, and the {B * H * T * S} weights are to be computed again"
        )
    report = check_gradients(forward, backward, inputs)
    if report.right:
        _check_large(forward, backward)
    return report


def _check_large(forward, backward, *bias):
    """Scores near 4000 in some rows, near −4000 in others: a softmax sees no difference."""
    query, key, value = _inputs()
    query[..., 0] = np.resize([4000, -4000], T) * np.sqrt(K)
    key[..., 0] = 1
    expected, cache = scaled_dot_product_attention(query, key, value)
    dy = np.random.default_rng(81).standard_normal(expected.shape)
    gradients = scaled_dot_product_attention_backward(dy, cache)
    hint = "subtract the largest score of a row before exp, or exp overflows"
    with np.errstate(all="ignore"):
        y, cache = forward.y_and_cache(query, key, value, *bias)
        expect("y for scores of ±4000", y, expected, hint)
        given = backward(dy, cache)
    for what, array, wanted in zip(("dquery", "dkey", "dvalue"), given, gradients, strict=False):
        expect(f"{what} for scores of ±4000", array, wanted, hint)


def _inputs():
    return tuple(normal(8, (B, H, T, K), (B, H, S, K), (B, H, S, K)))
