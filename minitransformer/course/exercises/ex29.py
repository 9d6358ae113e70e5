"""Exercise 29, seeing: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.own.common import dx_of
from minitransformer.course.exercises.parts import (
    Answer,
    Slip,
    expect,
    expect_pair,
    normal,
    part,
)
from minitransformer.layers.convolution_2d import (
    convolution_2d,
    convolution_2d_backward,
    windows_2d,
    windows_2d_backward,
)

B, Y, X, C, E = 2, 7, 6, 4, 6


@part(10)
def check_rows_in_no_window(rows_in_no_window):
    for (rows, size, stride, padding), hint in (
        ((5, 3, 1, 0), "windows side by side and overlapping see every row"),
        ((8, 3, 2, 0), "the last window may end before the picture does"),
        (
            (8, 2, 3, 0),
            "windows farther apart than they are large leave rows between them",
        ),
        ((9, 2, 3, 0), "rows between windows and rows behind the last one both count"),
        ((8, 3, 2, 1), "the padding moves the windows, and is itself no part of the picture"),
        ((7, 2, 4, 1), "a gap between windows; padding is on both sides"),
        ((9, 4, 9, 3), "of a window that begins in the padding a part is in the picture"),
        ((4, 4, 3, 0), "one window, and it sees all"),
    ):
        seen, cache = windows_2d(np.zeros((1, rows, rows, 1)), size, stride, padding)
        counts = windows_2d_backward(np.ones(seen.shape), cache)
        expected = int((counts.sum(axis=2) == 0).sum())
        rows_in_no_window.expect((rows, size, stride, padding), expected, hint)


@part(25)
def check_without_groups(without_groups):
    for groups, size in ((2, 3), (1, 3), (2, 1)):
        (weight,) = normal(29 + size, (size, size, C // groups, E))
        given = without_groups(weight, groups)
        expected = _blocks(weight, groups)
        mistakes = {}
        if groups > 1:
            every = np.tile(weight, (1, 1, groups, 1))
            interleaved = every * (np.arange(C)[:, None] % groups == np.arange(E) % groups)
            crossed = np.roll(expected, C // groups, axis=2)
            mistakes = {
                "channels of other groups have no part in y: where they meet, there are zeros": (
                    every
                ),
                "the first C / G channels are a group, not every G-th": interleaved,
                "each group of y is made from the same group of x: yours are crossed": crossed,
                "y is a sum, of which the other groups are no part; it is no mean": (
                    expected / groups
                ),
                "each group of y has kernels of its own: yours are those of the first": _blocks(
                    np.tile(weight[..., : E // groups], groups), groups
                ),
            }
        hint = "W of the channels c and e is 0 unless both are of one group"
        expect(f"without_groups(weight, {groups})", given, expected, hint, mistakes)


def _blocks(weight, groups):
    of_x = np.arange(C) * groups // C
    of_y = np.arange(E) * groups // E
    return np.tile(weight, (1, 1, groups, 1)) * (of_x[:, None] == of_y)


@part(45)
def check_dx_as_a_convolution(dx_as_a_convolution):
    for size, stride, padding in ((3, 1, 0), (3, 1, 1), (2, 1, 1), (3, 2, 1), (3, 2, 0), (2, 3, 0)):
        x, weight = normal(29, (B, Y, X, C), (size, size, C, E))
        y, cache = convolution_2d(x, weight, None, stride, padding)
        (dy,) = normal(30, y.shape)
        expected, _, _ = convolution_2d_backward(dy, cache)
        how = f"windows of {size} × {size}, stride {stride} and padding {padding}"
        called = Answer(f"dx_as_a_convolution for {how}", dx_as_a_convolution.function)
        given = called(dy, weight, x.shape, stride, padding)
        hint = "zeros between the entries of dy, k − 1 − p in front of it, and behind it the rest"
        mistakes = _wrong_dx(dy, weight, x.shape, stride, padding)
        expect(f"dx for {how}", given, expected, hint, mistakes)


def _wrong_dx(dy, weight, shape, stride, padding):
    """What plausible mistakes make of dx, by what to say of them."""
    front, size = len(weight) - 1 - padding, len(weight)

    def by(kernel, front=(front, front)):
        spread = np.zeros((B, *(side + size - 1 for side in shape[1:3]), E))
        places = (
            np.arange(n) * stride + first for n, first in zip(dy.shape[1:3], front, strict=True)
        )
        spread[:, *np.ix_(*places)] = dy
        return convolution_2d(spread, kernel)[0]

    turned = weight[::-1, ::-1].swapaxes(2, 3)
    mistakes = {
        "the kernel is to be turned by half a turn, in rows and in columns": by(turned[::-1, ::-1]),
        "the kernel is to be turned in its rows, too": by(turned[::-1]),
        "the kernel is to be turned in its columns, too": by(turned[:, ::-1]),
        "rows and columns of the kernel are exchanged": by(turned.swapaxes(0, 1)),
        "channels in and out are to be exchanged; a reshape mixes them": (
            by(weight[::-1, ::-1].reshape(turned.shape))
        ),
    }
    room = [
        side + size - 1 - ((n - 1) * stride + 1)
        for side, n in zip(shape[1:3], dy.shape[1:3], strict=True)
    ]  # zeros in front of dy and behind it
    behind = [zeros - front for zeros in room]
    if behind != [front, front]:
        mistakes["what windows leave over lies at the lower and the right end, not in front"] = by(
            turned, behind
        )
    if padding and min(room) >= size - 1:
        mistakes["in front of dy there are k − 1 − p zeros: p rows of the gradient fall away"] = by(
            turned, (size - 1, size - 1)
        )
    if room != [front, front]:
        mistakes["zeros belong behind dy, too"] = by(turned, room)
    return mistakes


@part(45)
def check_rms_pooling(forward, backward):
    (x,) = normal(31, (B, 6, 9, C))
    size = 3
    of_windows = x.reshape(B, 2, size, 3, size, C)
    squares = (of_windows**2).sum(axis=(2, 4))
    mistakes = {
        "it is the mean of the squares, not their sum": np.sqrt(squares),
        "the root is missing": squares / size**2,
        "a window has k² entries, not k": np.sqrt(squares / size),
        "it is the root of the mean of the squares, not the mean of the sizes": (
            abs(of_windows).mean(axis=(2, 4))
        ),
        "each channel for itself": np.broadcast_to(
            np.sqrt(squares.mean(axis=-1, keepdims=True)) / size, squares.shape
        ),
    }
    (dy,) = normal(32, squares.shape)
    of_root = x * (dy / size**2).repeat(size, axis=1).repeat(size, axis=2)
    slips = [Slip("the slope of a root is 1 / (2 y): divide by y", dy, (of_root,))]
    y, hint = np.sqrt(squares) / size, "y = √(mean of x²)"
    report = expect_pair(forward, backward, (x, size), y, hint, mistakes, slips)
    if not report.right:
        return report
    small, dx = (dx_of(forward, backward, (of, size), np.ones(y.shape)) for of in (1e-9 * x, x))
    hint = "only where a window is 0 has it no slope, and not where it is small"
    expect("dx of an x that is small, for a dy of 1,", small, dx, hint)
    zeros = np.zeros((1, 4, 4, 2))
    zeros[:, :2] = 1
    y, cache = forward.y_and_cache(zeros, 2)
    expect("y of ones above and zeros below", y, zeros[:, ::2, ::2], "√0 is 0")
    (dx,) = backward.gradients(np.ones(y.shape), cache)
    expect("dx of ones above and zeros below", dx, zeros / 4, "where a window is 0, so is dx")
    return report
