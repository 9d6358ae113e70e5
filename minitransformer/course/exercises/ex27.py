"""Exercise 27, since 2017: how each part is checked."""

import math

import numpy as np

from minitransformer.course.exercises.own.common import dx_of, expect_y
from minitransformer.course.exercises.parts import Slip, expect, expect_pair, normal, part
from minitransformer.gradcheck.pair import unheard

B, H, T, S, K = 2, 3, 4, 7, 5


@part(10)
def check_longest_context(longest_context):
    for memory, layers, groups, width, size in (
        (2**30, 12, 6, 64, 4),
        (10**6, 3, 1, 8, 2),
        (1000, 30, 3, 64, 4),
        (960, 5, 2, 8, 2),  # three tokens fill it
    ):
        numbers = layers * groups * width
        expected = memory // (2 * numbers * size)
        mistakes = {
            "a token has a key and a value": memory // (numbers * size),
            "the memory is in bytes, and a number has some of them": memory // (2 * numbers),
            "each layer has keys and values of its own": memory // (2 * groups * width * size),
            "each group has keys and values of its own": memory // (2 * layers * width * size),
            "a token that fits in part does not fit": memory / (2 * numbers * size),
            "the last token may fill the memory": -(-memory // (2 * numbers * size)) - 1,
        }
        longest_context.expect((memory, layers, groups, width, size), expected, mistakes=mistakes)


@part(10)
def check_base_for(base_for):
    for length, width in ((8192, 64), (100, 4), (20, 6)):
        turns = length / (2 * math.pi)
        expected = turns ** (width / (width - 2))
        mistakes = {
            "the last of K/2 pairs is number K/2 − 1": turns,
            "a turn is 2π": length ** (width / (width - 2)),
            "the exponent is −2i/K, not −i/K": turns ** (2 * width / (width - 2)),
        }
        hint = "length · base^(−2i/K) = 2π for the last pair i, solved for the base"
        base_for.expect((length, width), expected, hint, mistakes)


@part(25)
def check_soft_cap(forward, backward):
    x, dy = normal(27, (B, T, K), (B, T, K))
    x, cap = 4 * x, 3.0
    y = cap * np.tanh(x / cap)
    mistakes = {
        "multiply by c again: y is x where x is small": y / cap,
        "x is divided by c first": cap * np.tanh(x),
        "tanh bends, np.clip breaks": np.clip(x, -cap, cap),
    }
    slope = 1 - (y / cap) ** 2
    slips = [
        Slip("the c outside and the 1 / c inside cancel", dy, (dy * slope / cap,)),
        Slip("the c outside and the 1 / c inside cancel", dy, (dy * slope * cap,)),
        Slip("the slope is 1 − tanh², with tanh = y / c", dy, (dy * (1 - y**2),)),
    ]
    report = expect_pair(forward, backward, (x, cap), y, "y = c tanh(x / c)", mistakes, slips)
    if report.right:
        far = np.array([1e5, 0.0, -1e5])
        hint = "exp(1e5) is no number; in np.tanh nothing overflows"
        expect_y(forward, (far, cap), [cap, 0, -cap], "y of 1e5, 0 and −1e5", hint)
        dx = dx_of(forward, backward, (far, cap), np.ones(3))
        expect("dx there, for a dy of 1,", dx, [0, 1, 0], hint)
    return report


@part(45)
def check_merged_attention(merged_attention):
    query, key, value = normal(28, (B, H, T, K), (B, H, S, K), (B, H, S, K))
    allowed = np.ones((B, H, T, S), dtype=bool)
    allowed[0, 0, :2, 3:] = allowed[0, 0, 1:3, :3] = False  # nothing on one side, on both, on one
    for size, what in ((1, ""), (2000, ", with large scores")):
        scores = np.where(allowed, size * (query @ key.swapaxes(-1, -2)), -np.inf)
        whole = _attend(scores, value)
        first, second = (
            _attend(scores[..., :3], value[:, :, :3]),
            _attend(scores[..., 3:], value[:, :, 3:]),
        )
        with unheard():
            y, log_total = merged_attention.several(2, "y and log_total", *first, *second)
        empty = whole[1] == -np.inf
        hint = "weigh each y by exp(L), and divide by the sum of both; −∞ − (−∞) is NaN"
        mistakes = {
            "the two y do not count alike: each has its own sum": (first[0] + second[0]) / 2,
            "divide by the sum of the two exp(L)": _unfinished(first, second),
        }
        expect(f"y{what}", y, whole[0], hint, mistakes)
        hint = "L = ln(exp(L₁) + exp(L₂)), and −∞ where both are"
        mistakes = {
            "sums are added, not their logarithms": first[1] + second[1],
            "that is the larger one: take the logarithm of the sum": np.maximum(
                first[1], second[1]
            ),
        }
        finite = [np.where(empty, 0, array) for array in (log_total, whole[1])]
        mistakes = {say: np.where(empty, 0, array) for say, array in mistakes.items()}
        expect(f"log_total{what}", *finite, hint, mistakes)
        what = f"log_total{what}, where nothing is allowed"
        expect(f"whether it is −∞: {what}", np.asarray(log_total) == -np.inf, empty, hint)


def _attend(scores, value):
    """y and L of the softmax of scores, by its definition: 0 and −∞ where nothing is allowed."""
    peak = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(peak == -np.inf, 0, peak))
    total = weights.sum(axis=-1, keepdims=True)
    y = weights @ value / np.where(total == 0, 1, total)
    with np.errstate(divide="ignore"):
        return y, np.where(peak == -np.inf, 0, peak) + np.log(total)


def _unfinished(first, second):
    """What is had without the last division, with the larger L taken off first."""
    peak = np.maximum(first[1], second[1])
    peak = np.where(peak == -np.inf, 0, peak)
    return np.exp(first[1] - peak) * first[0] + np.exp(second[1] - peak) * second[0]
