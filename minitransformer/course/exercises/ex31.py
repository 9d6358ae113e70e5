"""Exercise 31, a picture is a sentence of patches: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Answer, Slip, expect, expect_pair, normal, part

B, N, D = 3, 5, 4


@part(10)
def check_finest_patches(finest_patches):
    hint = (
        "of the eight products two have n twice; n counts the class token, and P divides the side"
    )
    for side, d_model, d_ff in (
        (840, 110, 360),  # with so many divisors most mistakes have a result of their own
        (28, 8, 33),
        (28, 8, 34),  # 50 tokens, exactly so many as may be
        (224, 768, 3072),
        (224, 32, 128),
        (60, 20, 70),
        (97, 16, 64),
        (12, 128, 512),
    ):
        most = 2 * d_model + d_ff
        expected = _finest(side, lambda n, most=most: n <= most)
        mistakes = {
            "the class token is compared with all patches, too": _finest(
                side, lambda n, most=most: n - 1 <= most
            ),
            "exactly as much is allowed": _finest(side, lambda n, most=most: n < most),
            "there are two products with n twice: the scores, and the weights times the values": (
                _finest(side, lambda n, most=most: n <= 2 * most)
            ),
            "attention has four projections": _finest(
                side, lambda n, d=d_model, f=d_ff: n <= d / 2 + f
            ),
            "attention has four projections: queries, keys, values, and the output": _finest(
                side, lambda n, d=d_model, f=d_ff: n <= 1.5 * d + f
            ),
            "the feed-forward network has two maps": _finest(
                side, lambda n, d=d_model, f=d_ff: n <= 2 * d + f / 2
            ),
            "the feed-forward network is a part of all else": _finest(
                side, lambda n, d=d_model: n <= 2 * d
            ),
            "a picture has patches side by side and one below the other": _finest(
                side, lambda n, most=most: 1 + round((n - 1) ** 0.5) <= most
            ),
            "the side must be a multiple of P": _finest(side, lambda n, most=most: n <= most, 1),
            "this is the number of patches in a row; P is how many pixels each has": (
                side // expected
            ),
            "this is the number of patches; P is how many pixels one has in a row": (
                (side // expected) ** 2
            ),
        }
        finest_patches.expect((side, d_model, d_ff), expected, hint, mistakes)


@part(25)
def check_masked_patches(forward, backward):
    x, token, dy = normal(31, (B, N, D), (D,), (B, N, D))
    hidden = np.array([[1, 0, 0, 1, 1], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]], dtype=bool)
    there = hidden[..., None]
    mistakes = {
        "hidden is True where the token is to stand": np.where(there, x, token),
        "the token stands in the place of a patch, and is not added to it": x + there * token,
        "where a patch is hidden the token is to stand, not 0": np.where(there, 0, x),
    }
    of_token, of_all = dy[hidden].sum(axis=0), dy.sum(axis=(0, 1))
    slips = (
        Slip(
            "what is hidden has no effect on y, so its dx is 0",
            dy,
            (dy, None),
        ),
        Slip(
            "dx is dy where a patch is not hidden",
            dy,
            (np.where(there, dy, 0), None),
        ),
        Slip("the token stands where a patch is hidden, and nowhere else", dy, (None, of_all)),
        Slip("dtoken is a sum, not a mean", dy, (None, of_token / hidden.sum())),
        Slip("dtoken is a sum over the pictures, not a mean", dy, (None, of_token / B)),
        Slip(
            "the token stands where a patch is hidden, not where it is seen",
            dy,
            (None, of_all - of_token),
        ),
        Slip(
            "the token serves all hidden patches of all pictures",
            dy,
            (None, (dy * there)[0].sum(axis=0)),
        ),
    )
    expected = np.where(there, token, x)
    hint = "y is the token where hidden is True, and x elsewhere"
    hidden.flags.writeable = False
    of_these = Answer(forward.name, lambda x, token: forward.function(x, hidden, token))
    return expect_pair(of_these, backward, (x, token), expected, hint, mistakes, slips)


@part(45)
def check_weights_for_mirrored(weights_for_mirrored):
    for size, channels, rows, columns in ((3, 2, 2, 4), (4, 3, 3, 2), (2, 1, 2, 6)):
        _expect_mirrored(weights_for_mirrored, size, channels, rows, columns)


def _expect_mirrored(weights_for_mirrored, size, channels, rows, columns):
    weight, table = normal(32, (size * size * channels, D), (1 + rows * columns, D))
    given = weights_for_mirrored.several(2, "weight and table", weight, table, size, columns)
    kernel, grid = weight.reshape(size, size, channels, D), table[1:].reshape(rows, columns, D)
    how = f"for patches of {size} × {size}, {channels} channels, and {rows} rows of {columns}"
    hint = "a mirror changes neither rows nor channels; columns of pixels are turned round"
    mistakes = {
        "within a patch the pixels are mirrored, too: the weight has to change": weight,
        "left and right are exchanged, not top and bottom": kernel[::-1].reshape(weight.shape),
        "columns alone are turned round; rows stay, and so do channels": weight[::-1],
        "columns alone are turned round, and rows stay": kernel[::-1, ::-1].reshape(weight.shape),
        "the channels of a pixel stay in their order": (
            kernel[:, ::-1, ::-1].reshape(weight.shape)
        ),
        "the channels come last in a patch: (P, P, C)": (
            weight.reshape(channels, size, size, D)[:, :, ::-1].reshape(weight.shape)
        ),
        "these are the rows and columns of a patch exchanged": (
            kernel.swapaxes(0, 1).reshape(weight.shape)
        ),
    }
    expect(f"weight {how}", given[0], kernel[:, ::-1].reshape(weight.shape), hint, mistakes)

    def with_token(of_places):
        return np.concatenate([table[:1], of_places.reshape(-1, D)])

    hint = "the class token's position stays, and in each row of patches the others turn round"
    mistakes = {
        "the patches are mirrored, too: their positions have to change": table,
        "the class token is no place in the picture: its position stays the first": table[::-1],
        "each row of patches is turned round by itself; the rows stay": with_token(table[:0:-1]),
        "left and right are exchanged, not top and bottom": with_token(grid[::-1]),
        "there are so many columns of patches, not rows": with_token(
            table[1:].reshape(columns, rows, D)[:, ::-1]
        ),
    }
    expect(f"table {how}", given[1], with_token(grid[:, ::-1]), hint, mistakes)


@part(45)
def check_larger_positions(larger_positions):
    for seed, old, new in (
        (33, (2, 3), (2, 3)),
        (34, (2, 3), (4, 5)),
        (35, (4, 2), (3, 7)),
        (36, (3, 4), (6, 2)),
        (37, (1, 3), (2, 4)),
    ):
        (table,) = normal(seed, (1 + old[0] * old[1], D))
        grid = table[1:].reshape(*old, D)

        def positions(of_places, grid=grid, old=old, new=new, table=table):
            weights = [of_places(n, m) for n, m in zip(old, new, strict=True)]
            places = np.einsum("ui,vj,ijd->uvd", *weights, grid)
            return np.concatenate([table[:1], places.reshape(-1, D)])

        expected = positions(_stretch)
        turned = table[1:].reshape(*old[::-1], D)
        rows, columns = (_stretch(n, m) for n, m in zip(old, new, strict=True))
        by_columns = np.einsum("ui,vj,jid->uvd", rows, columns, turned).reshape(-1, D)
        columns_first = np.einsum("ui,vj,ijd->vud", rows, columns, grid).reshape(-1, D)
        mistakes = {
            "the middles of the outermost patches do not coincide: r = (u + ½) n / n' − ½": (
                positions(_of_corners)
            ),
            "the middle of row u is at u + ½, not at its upper edge": positions(_of_edges),
            "the last − ½ is missing": positions(_of_halves),
            "this is the nearest old position; take the mean of those around": positions(_nearest),
            "beyond the outermost rows nothing is drawn on: r is brought to the first or last": (
                positions(_drawn_on)
            ),
            "beyond the outermost rows the weights must sum to 1": positions(_faded),
            "the weights 1 − f and f are exchanged": positions(_exchanged),
            "patches are numbered from left to right, row by row": np.concatenate(
                [table[:1], by_columns]
            ),
            "the new patches are numbered from left to right, too, row by row": np.concatenate(
                [table[:1], columns_first]
            ),
            "row 0 of the table is the class token's; the grid begins at row 1": np.concatenate(
                [table[:1], positions(_stretch, grid=table[:-1].reshape(*old, D))[1:]]
            ),
            "the class token's position comes first, as in the table": np.concatenate(
                [expected[1:], table[:1]]
            ),
            "the class token's position stays as it is, not 0": np.concatenate(
                [0 * table[:1], expected[1:]]
            ),
        }
        what = f"larger_positions(table, {old}, {new})"
        hint = "each new position is a mean of at most four old ones, with weights that sum to 1"
        given = larger_positions.named(what)(table, old, new)
        expect(what, given, expected, hint, mistakes)


def _finest(side, allowed, step=None):
    """The smallest patches of which a number of tokens is allowed, that divide the side or not."""
    sizes = [size for size in range(1, side + 1) if step or side % size == 0]
    return next((size for size in sizes if allowed(1 + (side // size) ** 2)), side)


def _hats(middles, before):
    """Weights (n', n) of the rows around each middle."""
    return np.maximum(0, 1 - abs(middles[:, None] - np.arange(before)))


def _middles(before, after):
    return (np.arange(after) + 0.5) * before / after - 0.5


def _stretch(before, after):
    return _hats(np.clip(_middles(before, after), 0, before - 1), before)


def _of_corners(before, after):
    return _hats(np.linspace(0, before - 1, after), before)


def _of_edges(before, after):
    return _hats(np.clip(np.arange(after) * before / after, 0, before - 1), before)


def _of_halves(before, after):
    return _hats(np.clip(_middles(before, after) + 0.5, 0, before - 1), before)


def _nearest(before, after):
    middles = np.clip(_middles(before, after), 0, before - 1)
    return np.eye(before)[np.floor(middles + 0.5).astype(int)]


def _drawn_on(before, after):
    """The line through the two nearest rows, beyond them, too."""
    if before == 1:
        return np.ones((after, 1))
    middles = _middles(before, after)
    low = np.clip(np.floor(middles), 0, before - 2).astype(int)
    share = (middles - low)[:, None]
    return (1 - share) * np.eye(before)[low] + share * np.eye(before)[low + 1]


def _faded(before, after):
    return _hats(_middles(before, after), before)


def _exchanged(before, after):
    middles = np.clip(_middles(before, after), 0, before - 1)
    low = np.floor(middles).astype(int)
    share, high = (middles - low)[:, None], np.minimum(low + 1, before - 1)
    return share * np.eye(before)[low] + (1 - share) * np.eye(before)[high]
