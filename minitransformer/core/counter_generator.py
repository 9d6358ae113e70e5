"""Random numbers from a counter: any of them can be drawn again, at any time, without a state.

Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011)
turns a counter and a key into four words of random bits by ten rounds of

    c_0, c_1, c_2, c_3  ←  hi(M₂ c_2) ⊕ c_1 ⊕ k_0,  lo(M₂ c_2),  hi(M₀ c_0) ⊕ c_3 ⊕ k_1,  lo(M₀ c_0)

where hi and lo are the halves of a product of 64 bits, and the key grows by a constant each round.
A dropout mask made of these needs no memory: a kernel that knows the key, the number of the draw
and the place of an entry works its bits out where it needs them, forward and backward.

Like all references this is written to be read; the kernels (``accelerate/cuda``) draw the same.
"""

import math

import numpy as np

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
WORD = 2**32


def philox(counter, key):
    """Four words of 32 random bits.

    Args:
        counter: four words, numbers or uint64 arrays of one shape, each below 2³².
        key: two words, numbers below 2³².

    Returns:
        four arrays or numbers like those of the counter.
    """
    (c_0, c_1, c_2, c_3), (k_0, k_1) = counter, key
    for _ in range(ROUNDS):
        product_0, product_2 = MULTIPLIERS[0] * c_0, MULTIPLIERS[1] * c_2
        c_0, c_1 = (product_2 >> 32) ^ c_1 ^ k_0, product_2 & (WORD - 1)
        c_2, c_3 = (product_0 >> 32) ^ c_3 ^ k_1, product_0 & (WORD - 1)
        k_0, k_1 = (k_0 + KEY_STEPS[0]) % WORD, (k_1 + KEY_STEPS[1]) % WORD
    return c_0, c_1, c_2, c_3


class CounterGenerator:
    """The generator of a GPU: its state is two numbers on the host, which nothing waits for.

    Args:
        seed: whatever ``numpy.random.SeedSequence`` takes.
        xp: the array namespace to make numbers in.

    Attributes:
        key: 64 bits, from the seed.
        draws: how many arrays have been drawn.
    """

    def __init__(self, seed, xp=np):
        self.key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        self.draws = 0
        self._xp = xp

    def next_draw(self):
        """The number of a draw of its own, for a kernel that makes the bits itself."""
        self.draws += 1
        return self.draws - 1

    def random(self, shape, dtype=np.float32):
        """Numbers 0 ≤ u < 1 of 24 random bits each.

        Every row begins a new block of four words: entry j of row i is word j mod 4 of the block
        with the counter (i ⌈width / 4⌉ + ⌊j / 4⌋, draw), two words each, the lower one first.
        """
        *rows, width = (shape,) if isinstance(shape, int) else shape
        rows, blocks = math.prod(rows), -(-width // 4)
        block = self._xp.arange(rows * blocks).astype(np.uint64)
        counter = (block & (WORD - 1), block >> 32, *_words(self.next_draw()))
        words = self._xp.stack(philox(counter, _words(self.key)), axis=-1)
        words = words.reshape(rows, 4 * blocks)[:, :width].reshape(shape)
        return (words >> 8).astype(dtype) * 2.0**-24


def _words(number):
    return number % WORD, number // WORD
