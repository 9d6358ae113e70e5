"""Exercise 26, what a layer remembers: how each part is checked."""

import tracemalloc

import numpy as np

from minitransformer.course.exercises.parts import Slip, array_of, expect_pair, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.layers.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_weights,
)

B, H, T, K = 2, 3, 7, 5
LONG = 600  # positions at which an array of their square cannot hide
KEYS, VALUES = 6, 4


@part(45)
def check_recall_weights(recall_weights):
    words = KEYS * VALUES + KEYS
    rng = np.random.default_rng(21)
    for length in (30, 2, 1000):
        form = "w_query, w_key and w_value"
        given = recall_weights.several(3, form, KEYS, VALUES, length)
        width = getattr(given[0], "shape", (0, 0))[-1]
        shapes = (words, width), (words, width), (words, VALUES)
        weights = [array_of(array, shape) for array, shape in zip(given, shapes, strict=True)]
        if any(w is None for w in weights):
            shown = ", ".join(str(getattr(w, "shape", type(w).__name__)) for w in given)
            raise CheckError(
                f"for {KEYS} keys and {VALUES} values the matrices must be arrays of the shapes "
                f"({words}, K), ({words}, K) and ({words}, {VALUES}); they have {shown}"
            )
        for _ in range(20):
            _check_recall(*weights, *_sequence(length, rng), length)


def _sequence(length, rng):
    """Words, where the pair asked for stands among them, and its value."""
    key, value = rng.integers(KEYS), rng.integers(VALUES)
    others = np.delete(np.arange(KEYS), key)
    pairs = rng.choice(others, length - 1) * VALUES + rng.integers(VALUES, size=length - 1)
    place = rng.integers(length - 1)
    pairs[place] = key * VALUES + value
    return np.append(pairs, KEYS * VALUES + key), place, value


def _check_recall(w_query, w_key, w_value, words, place, value, length):
    """Raise a CheckError unless the last of the words is answered by its value."""
    inputs = w_query[words[-1:]], w_key[words], w_value[words]  # of the last query alone
    y, cache = scaled_dot_product_attention(*(x[None, None] for x in inputs))
    weights, answer = scaled_dot_product_attention_weights(cache)[0, 0, 0], y[0, 0, 0]
    expected = np.eye(VALUES)[value]
    if np.abs(answer - expected).max() <= 1e-3:  # and not NaN
        return
    largest = weights.argmax()
    if not np.isfinite(answer).all():
        hint = "the scores are not finite"
    elif largest == length - 1:
        hint = "the question looks at itself: it needs a smaller score than the pair"
    elif largest != place:
        hint = "another word than the pair that is asked for has the largest weight"
    elif weights[place] < 1 - 1e-3:
        hint = (
            "the other words share the rest: how large must a score be against so many, after "
            "the division by √K?"
        )
    else:
        hint = "the right word is found; its row of w_value must be 1 at its value, 0 elsewhere"
    raise CheckError(
        f"among {length} words the one asked for has the weight {weights[place]:.4f}, and the "
        f"answer is {answer.round(4).tolist()}, not {expected.tolist()}; {hint}"
    )


@part(90)
def check_linear_attention(forward, backward):
    query, key, value = inputs = _inputs(T)
    q, k = (np.where(x > 0, x + 1, np.exp(x)) for x in (query, key))
    every = q @ k.swapaxes(-1, -2)  # (B, H, T, T), all T² weights
    causal = np.tril(every)
    expected = causal @ value / causal.sum(axis=-1, keepdims=True)
    mistakes = {
        "position t sees s ≤ t alone": every @ value / every.sum(axis=-1, keepdims=True),
        "the sum of the weights is missing below": causal @ value,
        "there is no √K here": expected / np.sqrt(K),
    }
    (dy,) = normal(26, value.shape)
    du = dy / causal.sum(axis=-1, keepdims=True)
    slip = Slip(
        "k_s and v_s serve every t ≥ s: the running sums of the backward begin at the end, at T",
        dy,
        (None, None, np.triu(every).swapaxes(-1, -2) @ du),
    )
    report = expect_pair(forward, backward, inputs, expected, "", mistakes, slips=[slip])
    if report.right:
        _check_memory(forward, backward)
    return report


def _check_memory(forward, backward):
    """Raise a CheckError if forward or backward needs an array of T² numbers."""
    inputs = tuple(x[:1, :1] for x in _inputs(LONG))
    limit = LONG**2 * 4  # half of such an array
    tracemalloc.start()
    try:
        y, cache = forward.y_and_cache(*inputs)
        peaks = {forward.name: tracemalloc.get_traced_memory()[1]}
        tracemalloc.reset_peak()
        backward(y, cache)
        peaks[backward.name] = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    for name, peak in peaks.items():
        if peak > limit:
            raise CheckError(
                f"{name} holds {peak // 1000} kB for one sequence of {LONG} positions: as much as "
                f"T² numbers; a running sum of (K, K) numbers is enough"
            )


def _inputs(length):
    return tuple(normal(21, *3 * [(B, H, length, K)]))
