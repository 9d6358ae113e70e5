"""Exercises of lesson 31, patches. Check yours:  minitransformer check ex31

Shapes: B batch, N patches, P rows and columns of a patch, C channels, D width.
"""

import numpy as np


def finest_patches(side, d_model, d_ff):
    """10 min. The smallest patches with which comparing pairs costs no more than all else.

    The stack reads the patches of a square picture and a class token. Count the multiplications of
    two numbers in one layer, forward. Those of the pairs are the scores and the weights times the
    values, of all heads together. All else are the four projections of attention and the two maps
    of the feed-forward network. Leave out norms, biases and the softmax.

    Args:
        side: rows of the picture, and columns.
        d_model, d_ff: D and F.

    Returns:
        P, the smallest whole number that divides the side and with which the pairs cost at most as
        much as all else; the side itself, if it has to be.

    Hint: a product of (m, n) and (n, p) takes m · n · p. With n tokens, which of the eight products
    have n twice, and what is left if you divide by n?
    """
    raise NotImplementedError


def masked_patches(x, hidden, token):
    """25 min, with its backward. Some patches are hidden: in their place stands one learned row.

        y_{b,n} = token    where hidden_{b,n}        y_{b,n} = x_{b,n}    elsewhere

    Args:
        x: embedded patches, (B, N, D).
        hidden: (B, N), boolean, True where the patch is hidden; no two pictures need hide as many.
        token: (D,).

    Returns:
        y (B, N, D) and the cache.
    """
    raise NotImplementedError


def masked_patches_backward(dy, cache):
    """Gradients dx (B, N, D) and dtoken (D,); ``hidden`` has none.

    Hint: which numbers of y would move if one number of a hidden patch moved? And which, if one
    number of the token did?
    """
    raise NotImplementedError


def weights_for_mirrored(weight, table, size, columns):
    """45 min. A trained Vision Transformer for mirrors, of which two arrays are changed.

    With what you return in their place, it says of each picture that is mirrored, left to right,
    what it said before of the picture itself.

    Args:
        weight: of the map of a patch, (P·P·C, D), its rows in the order of a patch's numbers.
        table: of the positions, (1 + N, D), the class token's first.
        size: P.
        columns: how many patches lie side by side.

    Returns:
        weight and table, in these shapes, as new arrays.

    Hint: reshape both, so that what is moved by a mirror has an axis of its own. Where is the
    upper left patch of the picture in the mirror, and where in it is its upper left pixel?
    """
    raise NotImplementedError


def larger_positions(table, old, new):
    """45 min. Positions for pictures of another size, made of those that were trained.

    Patches stay as large, so there are others than before. The picture is thought of as stretched:
    the grid of new patches covers the same rectangle as that of the old ones. So the middle of new
    row u, of all n', lies at

        r = (u + ½) n / n' − ½

    if n old rows have theirs at 0, 1, … n − 1; what lies beyond the first or the last of them is
    brought to it. Columns likewise. A new position is the mean of the four old ones around it,
    bilinear: with r = i + f, where i is whole and 0 ≤ f < 1, row i counts 1 − f and row i + 1
    counts f; the weights of row and column are multiplied. The class token's stays as it is.

    Args:
        table: (1 + rows · columns, D), the class token's first, then a row for each patch, from
            left to right and from top to bottom.
        old: (rows, columns), so many patches there were.
        new: (rows', columns').

    Returns:
        (1 + rows' · columns', D).

    Hint: rows and columns do not ask for each other. For one direction the weights are a matrix
    (n', n) that has at most two numbers in a row. What are its two products with a grid (rows,
    columns, D)?
    """
    raise NotImplementedError
