"""Exercise 21, why self-attention: how each part is checked."""

from itertools import product

from minitransformer.course.exercises.parts import expect_boolean, part
from minitransformer.gradcheck import CheckError

STACKS = [
    [(3, 1)],
    [(2, 1), (2, 2), (2, 4)],
    [(2, 1), (3, 4)],
    [(3, 5), (4, 1), (2, 1)],
    [(2, 30)],
    [],
]


@part(10)
def check_crossing_length(crossing_length):
    hint = "count multiply-adds, 2 n² d for attention without projections"
    for d, gates in ((64, 3), (512, 4), (64, 1), (64, 2), (20, 7)):
        two_each = "each gate has two matrices, for the input and for the state"
        mistakes = {
            "attention has four projections, 4 n d², too": gates * d,
            two_each: max(0, (gates / 2 - 2) * d),
            "a length is not negative": (gates - 2) * d,
        }
        expected = max(0, (gates - 2) * d)
        crossing_length.expect((d, gates), expected, hint, mistakes)


@part(25)
def check_distances_seen(distances_seen):
    n = 16
    for layers in STACKS:
        seen = distances_seen(list(layers), n)
        expect_boolean("distances_seen must return", seen)
        if seen.shape != (n,):
            raise CheckError(f"it has the shape {seen.shape} and should have ({n},)")
        reached = {
            sum(tap * dilation for tap, (_, dilation) in zip(taps, layers, strict=True))
            for taps in product(*(range(width) for width, _ in layers))
        }
        for m in range(n):
            if seen[m] != (m in reached):
                raise CheckError(f"for {layers} distance {m} {_why(m, reached)}")


def _why(m, reached):
    if m not in reached:
        hole = m < max(reached)
        because = "a stack may have holes in its view" if hole else "it is too far away"
        return f"is not seen: {because}"
    if m == 0:
        return "is seen: each layer sees its own position"
    return "is seen: add one of the distances of each layer, 0 among them"
