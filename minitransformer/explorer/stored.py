"""How the parameters of a model stand in its page: as they were trained, or in 8 bits.

A page of float32 takes 16/3 bytes a parameter, as base64 writes three bytes as four characters. So
a model for which that is too much is rounded: BLOCK numbers that follow one another in an array
share a scale s, and each is the whole number from −127 to 127 next to x / s. None is then off by
more than half of s.

A scale is the largest absolute value of its block over 127, rounded up to a bfloat16, the upper
half of a float32. So few bits times 8 are within a float32: a page and the copy of a model have the
same numbers.
"""

import base64
import copy

import numpy as np

from minitransformer.core.backend import to_host

LARGEST_FLOAT32 = 12_000_000  # characters of float32 in a page; with more they are rounded
BLOCK = 64  # numbers with a scale
HALF = 16  # bits of a float32 that a bfloat16 has not


def bits_of(config):
    """How many bits a number has in the page of such a model, 32 or 8, scales aside."""
    return 32 if stored_size(config, 32) <= LARGEST_FLOAT32 else 8


def stored_size(config, bits):
    """About how many characters the parameters take; an array fills its last block."""
    scales = 16 / BLOCK if bits == 8 else 0
    return int(config.num_parameters() * (bits + scales) / 8 * 4 / 3)


def as_stored(model, bits):
    """The model with the numbers that a page has: itself, or a copy of it that is rounded."""
    if bits == 32:
        return model
    model = copy.deepcopy(model)
    for parameter in model.parameters():
        scales, whole = in_8_bits(parameter.data)
        numbers = (scales[:, np.newaxis] * whole).reshape(-1)[: parameter.data.size]
        parameter.data[...] = numbers.reshape(parameter.data.shape)
    return model


def in_8_bits(numbers):
    """Scales (N,), float32, and whole numbers (N, BLOCK), int8, of an array; 0 fills the last."""
    flat = to_host(numbers).reshape(-1).astype(np.float32)
    blocks = np.pad(flat, (0, -flat.size % BLOCK)).reshape(-1, BLOCK)
    exact = np.abs(blocks).max(axis=1) / np.float32(127)
    bits = exact.view(np.uint32) + np.uint32((1 << HALF) - 1)  # up, as none is negative
    scales = (bits >> HALF << HALF).view(np.float32)
    divisors = np.where(scales > 0, scales, 1)[:, np.newaxis]  # a block may be all zeros
    return scales, np.rint(blocks / divisors).astype(np.int8)


def numbers_in_page(model, bits):
    """The numbers of all parameters, one after the other, in base64.

    They are float32, little-endian; in 8 bits, the scales of all blocks, bfloat16, and then the
    whole numbers.
    """
    if bits == 32:
        parts = [to_host(model.flat.data).astype("<f4")]
    else:
        scales, whole = zip(*(in_8_bits(p.data) for p in model.parameters()), strict=True)
        upper = np.concatenate(scales).view(np.uint32) >> HALF
        parts = [upper.astype("<u2"), *whole]
    return base64.b64encode(b"".join(part.tobytes() for part in parts)).decode()
