"""Weights as llama.cpp keeps them, in GGUF: fields by name, then tensors in blocks of few bits.

    GGUF, a version, how many tensors and fields there are
    of each field     its name, its type, its value
    of each tensor    its name, its sizes, the innermost first, its type, and where it begins
    the tensors, each at a multiple of the alignment

The package ``gguf`` makes float32 of the blocks. Its reader believes every count in a file, and
would look for 2⁶⁰ strings in a short one; so what comes before the tensors is read here, where each
count is held against the bytes that there are.
"""

import math
import mmap
import struct
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from minitransformer.core.errors import InputError
from minitransformer.core.libraries import library
from minitransformer.core.regular_file import open_regular

MAGIC = b"GGUF"
VERSIONS = 2, 3
ALIGNMENT, ALIGNMENTS = "general.alignment", [2**i for i in range(3, 17)]
NUMBERS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}  # as struct has them
STRING, ARRAY = 8, 9
MOST_AXES = 4


class Tensor(NamedTuple):
    """Where a tensor is in a file: its sizes, outermost first, its type, first and last byte."""

    shape: tuple[int, ...]
    kind: object  # a GGMLQuantizationType
    start: int
    end: int


class GGUF:
    """A file that is open, and a context manager that closes it.

    Args:
        path: of the file.

    Attributes:
        fields: by name; numbers, truth values, strings, lists of these, arrays of numbers.
        tensors: a Tensor by name.

    Raises:
        InputError: it is no such file, or not all of it.
        OSError: it is no file to be read: see :func:`open_regular`.
        MissingLibraryError: there is no package gguf.
    """

    def __init__(self, path):
        self.path = path
        self._gguf = library("gguf", "a file of GGUF")
        with open_regular(path) as file:
            if not file.read(1):
                raise InputError(f"{path} is no file of GGUF: it is empty")
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self.fields, self.tensors = self._read()
        except ValueError as error:
            self._content.close()
            raise InputError(f"{path} is no file of GGUF, or not all of it: {error}") from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._content.close()

    def array(self, name):
        """A tensor as float32; it cannot be written to.

        Raises:
            InputError: blocks of its type are not read.
        """
        shape, kind, start, end = self.tensors[name]
        blocks = np.frombuffer(self._content[start:end], np.uint8)
        sizes = self._gguf.quant_shape_to_byte_shape(shape, kind)
        try:
            return self._gguf.dequantize(blocks.reshape(sizes), kind)
        except NotImplementedError as error:
            raise InputError(f"{self.path}: {name} is kept as {kind.name}: {error}") from error

    def _read(self):
        cursor = _Cursor(self._content)
        _require(cursor.taken(len(MAGIC)) == MAGIC, "it begins with other bytes")
        version = cursor.number("I")
        _require(version in VERSIONS, f"its version is {version}, and 2 and 3 are read")
        num_tensors, num_fields = cursor.number("Q"), cursor.number("Q")
        fields = _by_name(num_fields, cursor.field)
        described = _by_name(num_tensors, cursor.tensor)
        alignment = fields.get(ALIGNMENT, 32)
        whole = type(alignment) is int and alignment in ALIGNMENTS
        _require(whole, f"its alignment is {alignment!r}")
        first = -(-cursor.at // alignment) * alignment
        tensors = {name: self._placed(first, *what) for name, what in described.items()}
        places = sorted((tensor.start, tensor.end) for tensor in tensors.values())
        _require(all(a[1] <= b[0] for a, b in pairwise(places)), "two of its tensors overlap")
        return fields, tensors

    def _placed(self, first, shape, kind, offset):
        """The Tensor that is described so, within the file."""
        kind = self._gguf.GGMLQuantizationType(kind)  # of which there are not all numbers
        size = math.prod(self._gguf.quant_shape_to_byte_shape(shape, kind))
        start = first + offset
        there = len(self._content)
        _require(start + size <= there, f"it ends at {there:,}, and a tensor at {start + size:,}")
        return Tensor(shape, kind, start, start + size)


class _Cursor:
    """What is read of some bytes, one value after another; a ValueError where they end."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def taken(self, count):
        _require(count <= len(self.content) - self.at, "it ends before its tensors begin")
        self.at += count
        return self.content[self.at - count : self.at]

    def number(self, code):
        (found,) = struct.unpack(f"<{code}", self.taken(struct.calcsize(code)))
        return found

    def string(self):
        return self.taken(self.number("Q")).decode()

    def field(self):
        """(name, value)."""
        return self.string(), self.value(self.number("I"))

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, count = self.number("I"), self.number("Q")
            if kind == STRING:
                return [self.string() for _ in range(count)]
            code = NUMBERS.get(kind)
            _require(code, f"it has an array of the type {kind}")
            return np.frombuffer(self.taken(count * struct.calcsize(code)), f"<{_dtype(code)}")
        code = NUMBERS.get(kind)
        _require(code, f"it has a value of the type {kind}")
        return self.number(code)

    def tensor(self):
        """(name, (shape, type, where it begins))."""
        name, axes = self.string(), self.number("I")
        _require(0 < axes <= MOST_AXES, f"{name!r} has {axes} axes")
        shape = tuple(self.number("Q") for _ in range(axes))
        return name, (shape[::-1], self.number("I"), self.number("Q"))


def _by_name(count, read):
    """Values by their names, each once."""
    found = {}
    for _ in range(count):
        name, value = read()
        _require(name not in found, f"it has {name!r} twice")
        found[name] = value
    return found


def _dtype(code):
    kind = {"f": "f", "d": "f", "?": "?"}.get(code, "u" if code.isupper() else "i")
    return kind if kind == "?" else f"{kind}{struct.calcsize(code)}"


def _require(condition, message):
    if not condition:
        raise ValueError(message)
