"""How the second part is checked, where it is for pictures: their windows, and batch norm."""

from functools import wraps

import numpy as np

from minitransformer.cases.case import B, D, T
from minitransformer.course.exercises.own.common import (
    CANCELLED,
    FAR,
    FAR_OFF,
    also_right,
    dx_of,
    expect_right,
    expect_y,
    float64_note,
    gradients_of,
    y_of,
)
from minitransformer.course.exercises.parts import Answer, expect, likely, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.layers.batch_norm import batch_norm, batch_norm_backward
from minitransformer.layers.convolution_2d import convolution_2d, windows_2d, windows_2d_backward
from minitransformer.layers.pooling import average_pooling, max_pooling, max_pooling_backward

PICTURES = 2, 5, 7, 4  # B, Y, X and C
E = 6  # channels of y
WINDOWS = "window (u, v) begins in row u s − p and column v s − p"
NORM = "y = γ (x − μ) / √(σ² + ε) + β, with the mean μ and the variance σ² of each feature"
Y_AND_STATISTICS = "(y, mean, variance), cache"


@part(45, "29")
def check_convolution_2d(forward, backward):
    x, weight, bias = normal(29, PICTURES, (3, 3, PICTURES[-1], E), (E,))
    two_by_two, one_by_one = weight[:2, :2], weight[:1, :1]
    for kernel, b, stride, padding in (
        (weight, None, 1, 0),
        (weight, bias, 1, 0),
        (weight, bias, 1, 1),
        (weight, bias, 2, 1),
        (weight, bias, 2, 0),
        (two_by_two, bias, 3, 1),
        (one_by_one, None, 2, 0),
    ):
        inputs = x, kernel, b, stride, padding
        what = f"y of windows of {len(kernel)} × {len(kernel)} with stride={stride}"
        what += f", padding={padding}" + " and no bias" * (b is None)
        expect_y(forward, inputs, _convolved(*inputs), what, WINDOWS, _wrong_maps(*inputs))
    places = "an entry of x stands in several windows: dx is the sum over them, each by its own W"
    hints = [
        f"{places}; what comes to the padding is cut off",
        "W serves all windows of all pictures: dweight is the sum over them",
        "b is added everywhere in all pictures: dbias is the sum over all windows",
    ]
    expect_right(forward, backward, (x, weight, bias, 2, 1), hints=hints)
    others = (x, weight, None, 1, 0), (x, two_by_two, bias, 3, 1), (x, one_by_one, bias, 2, 2)
    expect_right(forward, backward, *others, hints=hints, directions=3)
    y, cache = forward.y_and_cache(x, weight, None)
    *_, dbias = gradients_of(backward, np.ones(np.shape(y)), cache, ("dx", "dweight", "dbias"))
    if dbias is not None:
        raise CheckError(
            "convolution_2d_backward must return None for dbias where there is no bias"
        )
    return float64_note(forward, backward, (x, weight, bias, 2, 1))


def _convolved(*inputs):
    return convolution_2d(*inputs)[0]


def _wrong_maps(x, weight, bias, stride, padding):
    """What plausible mistakes make of a convolution, by what to say of them."""
    edge = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)), mode="edge")
    behind = np.pad(x, ((0, 0), (0, 2 * padding), (0, 2 * padding), (0, 0)))
    how = bias, stride, padding
    every = _convolved(x, weight, None, stride, padding)
    mistakes = {
        "W_{0,0} is of the upper left corner of a window: yours are turned by half a turn": (
            _convolved(x, weight[::-1, ::-1], *how)
        ),
        "in W_{i,j} i goes down and j to the right: yours are exchanged": (
            _convolved(x, weight.swapaxes(0, 1), *how)
        ),
        "outside of the picture there are zeros, not its edge again": (
            _convolved(edge, weight, bias, stride)
        ),
        "the padding is on all four sides: yours is below and at the right": (
            _convolved(behind, weight, bias, stride)
        ),
        "y has a sum over all places in the window: yours is their mean": (
            every / len(weight) ** 2 + (0 if bias is None else bias)
        ),
    }
    if bias is not None:
        mistakes |= {
            "the bias is to be added": every,
            "the bias is added once, and not at every place in the window": (
                every + bias * len(weight) ** 2
            ),
        }
    return mistakes


@part(25, "29")
def check_max_pooling(forward, backward):
    x = _all_different(PICTURES)
    for x_of, where, options in (
        (x, "", (2,)),
        (x, "", (3,)),
        (x, "", (3, 2)),
        (x, "", (2, 3)),
        (x - 10, " of negative pictures", (3, 2, 1)),
        (x - 10, " of negative pictures", (2, None, 1)),
        (1e36 * (x - 10), " of pictures far below 0", (3, 2, 1)),
    ):
        inputs = x_of, *options
        names = zip(("kernel_size", "stride", "padding"), options, strict=False)
        what = f"y{where} with " + ", ".join(f"{name}={value}" for name, value in names)
        hint = f"{WINDOWS}; without a stride s is k; outside of the picture is −∞"
        expect_y(forward, inputs, max_pooling(*inputs)[0], what, hint, _wrong_poolings(*inputs))
    hint = (
        "dy goes to the largest entry of a window and to no other; one that is the largest of "
        "several windows gets the sum of their dy"
    )
    cases = (x, 2), (x, 3, 2, 1), (x, 3, 1), (x, 2, 3)
    expect_right(forward, backward, *cases, hints=[hint])
    _expect_the_first(forward, backward)
    near, hint = 1 + 1e-9 * x, "the largest entry gets it, by however little it is larger"
    y, cache = max_pooling(near, 2)
    given = dx_of(forward, backward, (near, 2), np.ones(y.shape))
    expected = max_pooling_backward(np.ones(y.shape), cache)
    expect("dx of entries that differ by little", given, expected, hint)
    return float64_note(forward, backward, (x, 3, 2, 1))


def _all_different(shape):
    """Numbers from −1 to 1 of which no two are near one another, in any order."""
    numbers = np.linspace(-1, 1, int(np.prod(shape)))
    return np.random.default_rng(29).permutation(numbers).reshape(shape)


def _wrong_poolings(x, size, stride=None, padding=0):
    """What plausible mistakes make of pooling, by what to say of them."""
    zeros = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    right, _ = max_pooling(x, size, stride, padding)
    return {
        "it is the largest entry, not the mean": average_pooling(x, size, stride, padding)[0],
        "a window of negative entries has a negative one that is the largest": np.maximum(right, 0),
        "it is the largest entry, not the smallest": -max_pooling(-x, size, stride, padding)[0],
        "outside of the picture is −∞: 0 is larger than what is negative": (
            max_pooling(zeros, size, stride)[0]
        ),
        "each channel for itself: yours is the largest of all channels": (
            np.broadcast_to(right.max(axis=-1, keepdims=True), right.shape)
        ),
        "the largest, not that of the largest size: signs count": (
            max_pooling(np.abs(x), size, stride, padding)[0]
        ),
    }


def _expect_the_first(forward, backward):
    """Expect that of several that are the largest in a window the first gets all of dy."""
    rng = np.random.default_rng(30)
    x = np.maximum(rng.integers(-2, 3, (3, 6, 8, 2)), 0).astype(np.float64)
    for size, stride, padding in ((2, 2, 0), (3, 2, 1)):
        options = size, stride, padding
        dy = rng.standard_normal(max_pooling(x, *options)[0].shape)
        given = dx_of(forward, backward, (x, *options), dy)
        expected, mistakes = _of_the_first(x, dy, *options)
        what = "dx where several entries of a window are the largest"
        if padding:
            what += f", with padding={padding}"
        hint = "all of dy goes to the first of them, read row by row"
        expect(what, given, expected, hint, mistakes)


def _of_the_first(x, dy, size, stride, padding):
    """dx where several may be the largest, and what plausible mistakes make of it."""
    in_order = np.arange(size**2)
    seen, windows_cache = windows_2d(x, size, stride, padding, around=-np.inf)
    in_zeros, _ = windows_2d(x, size, stride, padding)  # (B, Y', X', k², C), as seen
    largest = seen == seen.max(axis=3, keepdims=True)

    def dx(part_of_each):
        return windows_2d_backward(dy[:, :, :, None] * part_of_each, windows_cache)

    def of_one(order, largest=largest):
        """That which comes first among the largest, where the places are taken in that order."""
        place = order[largest[:, :, :, order].argmax(axis=3)]  # (B, Y', X', C)
        return in_order[:, None] == place[:, :, :, None]

    of_columns = in_order.reshape(size, size).T.ravel()
    mistakes = {
        "one of them gets dy, the first, and not each": dx(largest),
        "dy is not shared: all of it goes to the first": (
            dx(largest / largest.sum(axis=3, keepdims=True))
        ),
        "the first of them gets dy, not the last": dx(of_one(in_order[::-1])),
        "the uppermost comes first, and then the leftmost; yours is the other way round": (
            dx(of_one(of_columns))
        ),
        "where the largest entry is 0, too, the first gets dy": dx(of_one(in_order) * (seen > 0)),
        "what lies outside is −∞, and gets nothing where 0 is the largest, either": (
            dx(of_one(in_order, in_zeros == in_zeros.max(axis=3, keepdims=True)))
        ),
    }
    return dx(of_one(in_order)), mistakes


@part(45, "30")
def check_batch_norm(forward, backward):
    rng = np.random.default_rng(30)
    x = rng.uniform(1, 3, D) * rng.standard_normal((B, T, D)) + rng.standard_normal(D)
    gamma, beta = rng.uniform(0.5, 1.5, D), rng.uniform(-0.5, 0.5, D)
    for epsilon in (1e-5, 0.5):
        inputs = x, gamma, beta, epsilon
        given = y_of(forward, *inputs, form=Y_AND_STATISTICS)
        if not isinstance(given, tuple | list) or len(given) != 3:
            raise CheckError(
                f"batch_norm must return {Y_AND_STATISTICS}; it returned no (y, mean, variance)"
            )
        expected, _ = batch_norm(*inputs)
        wrong = _wrong_norms(*inputs), {}, _wrong_variances(x, epsilon)
        hints = NORM, "μ is the mean over all rows", "σ² is the mean of (x − μ)² over all rows"
        names = "y", "mean", "variance"
        for name, *compared in zip(names, given, expected, hints, wrong, strict=True):
            expect(f"{name} for epsilon={epsilon:g}", *compared)

    @wraps(forward.function)
    def y_alone(*inputs):
        (y, _, _), cache = forward.function(*inputs)
        return y, cache

    alone = Answer(forward.name, y_alone)
    far = x + FAR, gamma, beta
    (y, _, _), _ = batch_norm(*far)
    expect_y(alone, far, y, FAR_OFF, CANCELLED)
    constant, hint = np.ones((4, D)), "ε keeps σ from being 0 where all of a column are equal"
    expect_y(alone, (constant, gamma, beta), [beta] * 4, "y of columns of ones", hint)
    (dy,) = normal(31, x.shape)
    hint = (
        "x moves all rows of its column, through μ and through σ: two of the three terms have a "
        "mean over all rows in them"
    )
    dx = dx_of(alone, backward, (x, gamma, beta), dy)
    expected, *_ = batch_norm_backward(dy, batch_norm(x, gamma, beta)[1])
    for factor in (1 / gamma, np.sqrt(x.var(axis=(0, 1)) + 1e-5)):
        hint = likely(dx, {"": factor * expected}, hint)  # the terms are right, a factor is not
    cases = ((x, gamma, beta, epsilon) for epsilon in (1e-5, 0.5))
    expect_right(alone, backward, *cases, hints=[hint])
    return also_right(alone, backward, (x, gamma, beta), (B, T))


def _wrong_norms(x, gamma, beta, epsilon):
    """What plausible mistakes make of y, by what to say of them."""
    rows = 0, 1
    centred = x - x.mean(axis=rows)
    variance = x.var(axis=rows)
    sigma = np.sqrt(variance + epsilon)

    def normed(axes):
        mean, variance = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
        return gamma * (x - mean) / np.sqrt(variance + epsilon) + beta

    return {
        "the means are those of a feature, over all rows: yours are those of a row, as in "
        "layer_norm": normed(-1),
        "the means are over all rows, along all axes but the last: yours are along the first": (
            normed(0)
        ),
        "each feature has a mean and a variance of its own": normed((0, 1, 2)),
        "ε is added to the variance, under the root": (
            gamma * centred / (np.sqrt(variance) + epsilon) + beta
        ),
        "ε is missing: it is added to the variance": gamma * centred / np.sqrt(variance) + beta,
        "the variance of a batch is divided by N, the number of its rows, and not by N − 1": (
            gamma * centred / np.sqrt(x.var(axis=rows, ddof=1) + epsilon) + beta
        ),
        "divide by σ, the root": gamma * centred / (variance + epsilon) + beta,
        "subtract the mean before dividing by σ": gamma * x / sigma + beta,
        "the squares are those of x − μ": gamma * centred / np.sqrt((x * x).mean(rows) + epsilon)
        + beta,
        "β is to be added": gamma * centred / sigma,
        "x̂ is to be multiplied by γ": centred / sigma + beta,
        "γ is the gain itself, not what is added to one of 1": (1 + gamma) * centred / sigma + beta,
        "β is added after the gain, which does not scale it": gamma * (centred / sigma + beta),
        "use the epsilon that is given": gamma * centred / np.sqrt(variance + 1e-5) + beta,
    }


def _wrong_variances(x, epsilon):
    variance = x.var(axis=(0, 1))
    return {
        "return σ² without ε, which y alone has in it": variance + epsilon,
        "return the variance σ², not its root": np.sqrt(variance),
        "return the variance σ², without ε, and not the root that y is divided by": (
            np.sqrt(variance + epsilon)
        ),
        "divide by N, the number of rows, not by N − 1": x.var(axis=(0, 1), ddof=1),
        "the squares are those of x − μ": (x * x).mean(axis=(0, 1)),
    }
