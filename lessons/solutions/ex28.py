"""Solutions of lesson 28, your own Llama."""

import numpy as np


def rank_that_fits(d_in, d_out, parts):
    """A has r D_in numbers and B has r D_out. In whole numbers nothing is rounded.

    Of a square map of width D it is D/2 over the parts: with all the numbers of W the rank is half
    the width and no more. A hundredth of 576 x 576 leaves a rank of 2.
    """
    return d_in * d_out // (parts * (d_in + d_out))


def numbers_of_block(block):
    """20 bytes for 32 weights are 5 bits for each: four for q, and one for its share of d and m.

    d and m become float32 first. A float16 has 11 bits for its digits, and d q may need 15.
    """
    scale, minimum = block[:4].view("<f2").astype(np.float32)
    low, high = block[4:] & 15, block[4:] >> 4  # (16,) each
    return scale * np.concatenate([low, high]) + minimum  # (32,)


def columns_for_neighbours(weight, num_heads):
    """A head's columns are a table of two rows, the halves; read by columns they are the pairs.

    For K = 6 the new order is 0 3 1 4 2 5. The way back is 0 2 4 1 3 5: a table of three rows.
    Where K is 4 both are 0 2 1 3, so heads that small do not tell one from the other.
    """
    halves = weight.reshape(len(weight), num_heads, 2, -1)  # (D, H, 2, K/2)
    return halves.swapaxes(-1, -2).reshape(weight.shape)  # (D, H K)


def smaller_adapter(a, b, rank):
    """What is lost is the sum of the squares of the singular values that are left out.

    Their roots go into both, so that neither A' nor B' is much larger than the other. A B is as
    large as W, and its decomposition takes time. With A = Q R and Bᵀ = P S, where Q and P have
    orthonormal columns, that of R Sᵀ, which is (r, r), is enough: A B = Q (R Sᵀ) Pᵀ.
    """
    u, sizes, vt = np.linalg.svd(a @ b, full_matrices=False)
    roots = np.sqrt(sizes[:rank])  # (rank,)
    return u[:, :rank] * roots, roots[:, None] * vt[:rank]
