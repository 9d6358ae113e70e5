import numpy as np

OF_A_RANK = "(parts * (d_in + d_out))"
FITS = f"d_in * d_out // {OF_A_RANK}"
CEILING = f"-(-d_in * d_out // {OF_A_RANK})"
BOTH = "np.concatenate([low, high])"
SVD = "full_matrices=False)"


def loudest(a, b, rank):
    """The columns of A and rows of B whose products are largest."""
    keep = np.argsort(-np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=1))[:rank]
    return a[:, keep], b[keep]


def of_eig(a, b, rank):
    """By eigenvectors that are complex numbers without an imaginary part."""
    product = a @ b
    sizes, vectors = np.linalg.eig(product.T @ product + 0j)
    kept = vectors[:, np.argsort(-sizes.real)[:rank]]
    return product @ kept, kept.T


WRONG = r"""
rank_that_fits
    $OF_A_RANK -> (parts * d_in) || B has r D_out numbers
    $OF_A_RANK -> (parts * d_out) || A has r D_in numbers
    // -> / || a whole number
    $FITS -> complex($FITS, 1) || is complex; expected a number
    $FITS -> round(d_in * d_out / $OF_A_RANK) || rounded up
    $FITS -> $CEILING || the next whole number
    $FITS -> max(1, $FITS) || no rank fits
    $FITS -> $CEILING - 1 || exactly so many
    $OF_A_RANK -> (parts + d_in + d_out) || how many are allowed
    $FITS -> d_in // parts * d_out // (d_in + d_out) || rank_that_fits(576, 1536, 100)
    $FITS -> d_in * (d_out // parts) // (d_in + d_out) || rank_that_fits(1536, 576, 100)
    $FITS -> min(64, $FITS) || (1000, 900, 3)
    $FITS -> str($FITS) || is str; expected a number
numbers_of_block
    $BOTH -> np.stack([low, high], axis=1).reshape(-1) || not 2j and 2j + 1
    $BOTH -> np.concatenate([high, low]) || those of weight j
    + minimum -> || m is missing
    + minimum -> + abs(minimum) || with its sign
    $BOTH + minimum -> ($BOTH - 8.0) || has no m
    $BOTH -> ($BOTH - 8.0) || takes 8 off
    $BOTH -> ($BOTH - np.uint8(8)) || a uint8 goes round
    scale * $BOTH -> (scale * $BOTH.astype(np.float16)).astype(np.float16) || few bits for d q:
    scale * $BOTH + minimum -> (scale * $BOTH + minimum).astype(np.float16) || bits for a weight
    scale, minimum = -> minimum, scale = || d comes first
    "<f2" -> ">f2" || the low byte
    & 15 -> || the low four bits alone
    >> 4 -> & 0xF0 || a number from 0 to 15
    .astype(np.float32) -> || too few bits
    $BOTH -> $BOTH[::-1] || take one byte by hand
    $BOTH -> np.stack([low, high]) || has the shape (2, 16)
columns_for_neighbours
    num_heads, 2, -1 -> num_heads, -1, 2 || this is the way back
    num_heads, 2, -1 -> 1, 2, -1 || each head has pairs of its own
    .swapaxes(-1, -2) -> || as they were
    halves = weight -> weight = weight.T\n    halves = weight
        && .reshape(weight.shape) -> .reshape(weight.shape).T || not its rows
    halves.swapaxes -> halves[:, :, ::-1].swapaxes || its first pair
    halves.swapaxes -> halves[:, ::-1].swapaxes || its first pair
    num_heads, 2, -1 -> -1, 2, 3 || raised ValueError
    return -> return -1 * || the scores are right
    .reshape(weight.shape) -> .reshape(weight.shape).T || this is the transpose
    .reshape(weight.shape) -> || columns_for_neighbours(W_q, 4) has the shape (24, 4, 3, 2)
smaller_adapter
    lambda a, b, rank: (a[:, :rank], b[:rank]) || stand first
    np.sqrt(sizes[:rank]) -> sizes[:rank] || count twice
    np.sqrt(sizes[:rank]) -> np.ones(rank) || are missing
    * roots, -> , || in one of the two alone
    $SVD -> $SVD\n    u, sizes, vt = u[:, ::-1], sizes[::-1], vt[::-1] || the last of A B are 0
    $SVD -> $SVD\n    u, sizes, vt = (x[: len(b)][::-1] for x in (u.T, sizes, vt))\n    u = u.T
        || not the smallest
    vt[:rank] -> vt[:, :rank].T || svd returns Vᵀ
    svd(a @ b -> svd(a && vt[:rank] -> vt[:rank] @ b || nearest to A alone
    svd(a @ b -> svd(b && u[:, :rank] -> a @ u[:, :rank] || nearest to B alone
    loudest || keeps the largest singular values
    np.sqrt(sizes[:rank]) -> np.nan * sizes[:rank] || sum to nan
    roots[:, None] * vt[:rank] -> (roots[:, None] * vt[:rank]).T || they have (9, 2) and (7, 2)
    lambda a, b, rank: a @ b || must return A' and B'
"""
RIGHT = """
numbers_of_block
    $BOTH -> np.concatenate([low, high]).astype(np.float64)
smaller_adapter
    u[:, :rank] * roots, roots[:, None] * vt[:rank] -> u[:, :rank] * sizes[:rank], vt[:rank]
    of_eig
"""
