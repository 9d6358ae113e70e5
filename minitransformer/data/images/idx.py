"""The IDX format, in which MNIST was published: an array behind a header.

    two bytes of 0, the type of the entries, the number of axes
    the length of each axis, four bytes, the highest first
    the entries, the last axis running fastest

Types: 8 is a byte, the only one that pictures and labels have.
"""

import math

import numpy as np

from minitransformer.data.errors import CorpusError

BYTES = 8


def parse_idx(content, name):
    """The array, uint8, of a file's bytes; it cannot be written to.

    Args:
        name: of the file, for messages.

    Raises:
        CorpusError: they are not that of a whole file; says why.
    """

    def refuse(problem):
        raise CorpusError(f"{name} {problem}; fetch it again")

    if len(content) < 4 or content[:2] != b"\0\0":
        refuse("is no IDX file: it does not begin with two bytes of 0, a type and a number of axes")
    kind, axes = content[2], content[3]
    if kind != BYTES:
        refuse(f"has entries of type {kind}, and pictures and labels are bytes, type {BYTES}")
    start = 4 + 4 * axes
    if not axes or len(content) < start:
        refuse(f"ends within its header, which should have the lengths of {axes} axes")
    shape = tuple(np.frombuffer(content, ">u4", axes, offset=4).tolist())
    if not all(shape):
        refuse("has no entries")
    size, there = math.prod(shape), len(content) - start  # Python's numbers: none is too large
    if size != there:
        refuse(f"says that it has {' × '.join(map(str, shape))} bytes of entries, and has {there}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
