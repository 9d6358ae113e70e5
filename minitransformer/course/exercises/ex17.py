"""Exercise 17, making it fast: how each part is checked."""

import math

import numpy as np

from minitransformer.course.exercises.parts import check_gradients, expect, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import read_only
from minitransformer.layers.softmax import softmax

B, T, F, K = 3, 5, 8, 4


@part(25)
def check_rows_to_be_busy(rows_to_be_busy):
    hint = "X, W and Y cross, each once; W does not grow with the rows"
    for given in ((256, 1024, 4e11, 2e10, 4), (512, 768, 1e13, 1e12, 2)):
        i, o, rate, bandwidth, itemsize = given
        rows = itemsize * i * o / (2 * i * o * bandwidth / rate - itemsize * (i + o))
        rows_to_be_busy.expect(given, rows, hint)
    given = (4, 1024, 4e11, 2e10, 4)
    if rows_to_be_busy(*given) != math.inf:
        raise CheckError(
            f"rows_to_be_busy{given} should be inf: a further row takes longer to move than to "
            "compute, however many there are"
        )


@part(45)
def check_relu_dropout(forward, backward):
    rng = np.random.default_rng(16)
    x, keep, scale = rng.standard_normal((B, T, F)), rng.random((B, T, F)) >= 0.3, 1 / 0.7
    y, cache = forward.y_and_cache(x, keep, scale, cache_type=tuple)
    expect("y", y, np.maximum(x, 0) * keep * scale)
    kept = [np.asarray(array) for array in cache]
    if any(array.size > 1 and not np.array_equal(array, y) for array in kept):
        raise CheckError("of the arrays the cache may hold y alone, no x and no mask")
    return check_gradients(forward, backward, (x, keep, scale))


@part(90)
def check_streamed_average(streamed_average):
    rng = np.random.default_rng(16)
    sizes = (3, 1, 5, 2)
    scores = [rng.standard_normal(n) for n in sizes]
    forbidden = [np.full(n, -np.inf) for n in sizes]
    hint = "are the earlier sums brought to the new peak?"
    for name, blocks in {
        "small scores": scores,
        "rising scores": [block + 400 * i for i, block in enumerate(scores)],
        "falling scores": [block - 400 * i for i, block in enumerate(scores)],
        "scores of 1000": [block + 1000 for block in scores],
        "a first block that is forbidden": [forbidden[0], *scores[1:]],
        "a block in the middle that is forbidden": [*scores[:2], forbidden[2], scores[3]],
        "nothing allowed": forbidden,
    }.items():
        values = [rng.standard_normal((n, K)) for n in sizes]
        pairs = list(zip(map(read_only, blocks), map(read_only, values), strict=True))
        average = streamed_average.quietly(iter(pairs))
        weights, _ = softmax(np.concatenate(blocks))  # all zeros where nothing is allowed
        expected = weights @ np.concatenate(values)
        expect(f"the average for {name}", average, expected, hint)
