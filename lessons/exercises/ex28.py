"""Exercises of lesson 28, your own Llama. Check yours:  minitransformer check ex28

Shapes: D_in and D_out of a map, r the rank of an adapter, H heads, K width of a head.
"""

import numpy as np


def rank_that_fits(d_in, d_out, parts):
    """10 min. The largest rank that an adapter may have, if it may have so many numbers.

    Args:
        d_in, d_out: of the map x W that is adapted.
        parts: A and B together may have one of so many parts of the numbers of W, a hundredth
            with 100; exactly so many are allowed.

    Returns:
        the rank, a whole number; 0 where none fits.

    Hint: what are the shapes of A and B?
    """
    raise NotImplementedError


def numbers_of_block(block):
    """25 min. The 32 weights that llama.cpp keeps in 20 bytes, in its form Q4_1.

    The first two bytes are d, the next two are m, each a float16 with its low byte first. Each of
    the 16 bytes that follow holds two whole numbers q from 0 to 15: byte j has that of weight j in
    its low four bits, and that of weight j + 16 in its high four bits. The weight is d q + m.

    Args:
        block: (20,), uint8.

    Returns:
        the weights (32,), float32.

    Hint: ``view`` of an array takes its bytes as numbers of another kind. And how many bits does
    a float16 have for the digits of d q?
    """
    raise NotImplementedError


def columns_for_neighbours(weight, num_heads):
    """45 min. W_q or W_k of the convention "halves", its columns as "neighbours" needs them.

    Of x W each head has K features, side by side. Rotary positions turn them in pairs: pair i is
    the features i and i + K/2 in "halves", 2i and 2i + 1 in "neighbours", and it turns by the same
    angle in both. With W_q and W_k in the new order, each in the way that you write here, all
    scores in "neighbours" must be what they were in "halves".

    Args:
        weight: (D, H K), as ``halves`` needs it.
        num_heads: H.

    Returns:
        (D, H K), the same columns in the other order.

    Hint: number the columns of one head with K = 6. Which of them come first, second, third? And
    is that the order in which features of "halves" stand in "neighbours", or the way back?
    """
    raise NotImplementedError


def smaller_adapter(a, b, rank):
    """45 min. An adapter of a smaller rank that says almost the same.

    Of all pairs A' and B' of this rank, one whose product is nearest to A B: the sum of the squared
    differences of all D_in D_out numbers is as small as it can be. Which numbers are in A' and
    which in B' does not matter, only their product.

    Args:
        a, b: (D_in, r) and (r, D_out).
        rank: of the new one, from 1 to r.

    Returns:
        A' (D_in, rank) and B' (rank, D_out).

    Hint: Eckart and Young (1936) say which matrix of a given rank is nearest to another: look at
    the singular value decomposition of A B, ``np.linalg.svd``. It has three factors, and an
    adapter has two: where does the one in the middle go?
    """
    raise NotImplementedError
