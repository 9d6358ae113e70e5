"""Exercise 28, your own Llama: how each part is checked."""

import math

import numpy as np

from minitransformer.course.exercises.parts import array_of, expect, likely, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import unheard
from minitransformer.layers.rotary import rotary, rotary_table

T, D = 5, 24


@part(10)
def check_rank_that_fits(rank_that_fits):
    hint = "how many numbers have A and B together, how many has W, and how many are allowed?"
    for d_in, d_out, parts in (
        (576, 1536, 50),
        (576, 1536, 100),
        (1536, 576, 100),
        (576, 192, 25),
        (576, 192, 500),
        (576, 192, 4),
        (48, 48, 1),
        (200, 200, 4),
        (1000, 900, 3),  # whose rank, 157, no usual bound reaches
    ):
        of_a_rank = parts * (d_in + d_out)
        fits, expected = d_in * d_out / of_a_rank, d_in * d_out // of_a_rank
        mistakes = {
            "where no rank fits it is 0": max(1, expected),
            "B has r D_out numbers, too": d_out // parts,
            "A has r D_in numbers, too": d_in // parts,
            "a rank is a whole number": fits,
            "rounded up it has more numbers than are allowed": round(fits),
            "the next whole number has more numbers than are allowed": math.ceil(fits),
            "exactly so many are allowed": math.ceil(fits) - 1,
        }
        rank_that_fits.expect((d_in, d_out, parts), expected, hint, mistakes)


@part(25)
def check_numbers_of_block(numbers_of_block):
    rng = np.random.default_rng(28)
    hint = "take one byte by hand: which two q are in it, of which weights, and what is d q + m?"
    for scale, minimum in ((0.037, -0.29), (2e-6, -1e-5), (1.7, 3.1)):
        q = rng.integers(16, size=32)
        low, high = q[:16], q[16:]
        header = np.array([scale, minimum], "<f2")
        packed = low | high << 4
        block = np.concatenate([header.view(np.uint8), packed.astype(np.uint8)])
        d, m = header.astype(np.float64)
        swapped, swapped_m = header.view(">f2").astype(np.float64)
        pairs = np.stack([low, high], axis=1).reshape(-1)
        with unheard():
            products = header[0] * q.astype(np.float16)
            rounded = products + header[1]
        mistakes = {
            "byte j has weights j and j + 16, not 2j and 2j + 1": d * pairs + m,
            "the low four bits are those of weight j": d * np.roll(q, 16) + m,
            "m is missing: it is what a weight is where q is 0": d * q,
            "m is added, with its sign": d * q - m,
            "it is Q4_0 that takes 8 off and has no m": d * (q - 8),
            "q is 0 to 15 as it stands: it is Q4_0 that takes 8 off": d * (q - 8) + m,
            "it is Q4_0 that takes 8 off, and below 0 a uint8 goes round": d * ((q - 8) % 256) + m,
            "d comes first, then m": m * q + d,
            "the low byte of a float16 comes first": swapped * q + swapped_m,
            "the low four bits alone are the q of weight j": d * np.append(packed, high) + m,
            "the high four bits are a number from 0 to 15": d * np.append(low, high << 4) + m,
            "a float16 has too few bits for d q + m: make float32 of d and m first": rounded,
            "a float16 has too few bits for d q: make float32 of d first": products + m,
            "a float16 has too few bits for a weight: keep float32": (d * q + m).astype(np.float16),
        }
        what = f"numbers_of_block for d = {d:.4g} and m = {m:.4g}"
        expect(what, numbers_of_block.called("of 20 bytes")(block), d * q + m, hint, mistakes)


@part(45)
def check_columns_for_neighbours(columns_for_neighbours):
    # With K = 4 both ways are the same.
    for name, heads, k in (("W_q", 4, 6), ("W_k", 2, 6), ("W_k", 2, 10)):
        weight, *texts = normal(28, (D, heads * k), (T, D), (T, D))
        order = _pairs_of_halves(heads, k)
        given = columns_for_neighbours(weight, heads)
        expected = weight[:, order]
        mistakes = {
            "this is the way back, from neighbours to halves": weight[:, np.argsort(order)],
            "each head has pairs of its own: the columns of a head stay with it": weight[
                :, _pairs_of_halves(1, heads * k)
            ],
            "these are the columns as they were": weight,
        }
        if name == "W_q":  # as many rows as columns
            rows = "the features of x W are the columns of W, not its rows"
            mistakes |= {
                rows: weight[order],
                "this is the transpose of what is asked for": expected.T,
            }
        columns = array_of(given, weight.shape)
        if columns is None:
            # Which says why it is none.
            expect(f"columns_for_neighbours({name}, {heads})", given, expected)
        hint = "go through one head by hand, then the next: which columns become its first pair?"
        expect(
            f"with {name} of {heads} heads in its new order a score",
            _scores(columns, heads, k, texts, "neighbours"),
            _scores(weight, heads, k, texts, "halves"),
            likely(columns, mistakes, hint),
        )
        hint = "the scores are right; but the columns are moved, and no number is changed"
        expect(f"columns_for_neighbours({name}, {heads})", columns, expected, hint)


@part(45)
def check_smaller_adapter(smaller_adapter):
    for seed, (d_in, r, d_out), rank in (
        (30, (9, 5, 7), 2),
        (31, (6, 4, 11), 1),
        (32, (9, 5, 7), 5),
    ):
        a, b = normal(seed, (d_in, r), (r, d_out))
        given = smaller_adapter.several(2, "A' and B'", a, b, rank)
        shapes = (d_in, rank), (rank, d_out)
        factors = [array_of(array, shape) for array, shape in zip(given, shapes, strict=True)]
        if any(array is None for array in factors):
            shown = " and ".join(str(getattr(x, "shape", type(x).__name__)) for x in given)
            raise CheckError(
                f"A' and B' of the rank {rank} must be arrays of the shapes {shapes[0]} and "
                f"{shapes[1]}; they have {shown}"
            )
        u, sizes, vt = np.linalg.svd(a @ b)
        least = (sizes[rank:r] ** 2).sum()
        with unheard():
            product = factors[0] @ factors[1]
            off = ((product - a @ b) ** 2).sum()
        if off <= least + 1e-9 * (sizes**2).sum():  # and not NaN
            continue
        last = np.s_[r - rank : r]
        mistakes = {
            "which columns of A stand first says nothing of what they do": a[:, :rank] @ b[:rank],
            "each factor has the singular values, so they count twice": (
                (u[:, :rank] * sizes[:rank] ** 2) @ vt[:rank]
            ),
            "the singular values are missing": u[:, :rank] @ vt[:rank],
            "√σ stands in one of the two alone": (u[:, :rank] * sizes[:rank] ** 0.5) @ vt[:rank],
            "keep the largest singular values, not the smallest": (u[:, last] * sizes[last])
            @ vt[last],
            "keep the largest singular values; the last of A B are 0": np.zeros((d_in, d_out)),
            "this is nearest to A alone, and B stretches what A leaves out": _nearest(a, rank) @ b,
            "this is nearest to B alone, and A stretches what B leaves out": a @ _nearest(b, rank),
        }
        if len(sizes) == d_out:
            hint = "svd returns Vᵀ: its first rows belong to the largest σ, not its first columns"
            mistakes[hint] = (u[:, :rank] * sizes[:rank]) @ vt[:, :rank].T
        hint = "the nearest keeps the largest singular values of A B, with their vectors"
        raise CheckError(
            f"from the rank {r} to {rank} the squared differences of A' B' and A B sum to "
            f"{off:.10g}, and {least:.10g} is possible; {likely(product, mistakes, hint)}"
        )


def _pairs_of_halves(heads, k):
    """Which column of the order of halves comes first, second, … in that of neighbours."""
    return np.arange(heads * k).reshape(heads, 2, -1).swapaxes(1, 2).reshape(-1)


def _scores(weight, heads, k, texts, pairs):
    """Scores (H, T, T) of one text's queries and the other's keys, both by this weight."""
    table = rotary_table(T, k)
    query, key = ((x @ weight).reshape(T, heads, k).swapaxes(0, 1) for x in texts)  # (H, T, K)
    query, key = (rotary(x, table, pairs)[0] for x in (query, key))
    return query @ key.swapaxes(-1, -2) / math.sqrt(k)


def _nearest(matrix, rank):
    """Of all matrices of this rank the nearest to a matrix."""
    u, sizes, vt = np.linalg.svd(matrix, full_matrices=False)
    return (u[:, :rank] * sizes[:rank]) @ vt[:rank]
