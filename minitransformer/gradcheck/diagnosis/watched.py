"""A forward under observation: each operation it makes on arrays is known, and can be changed.

Forward is called with arrays of a subclass of NumPy's, whose operations come by here, as do those
of all that is made of them. Each is known by its place in the source, so that what a loop does at
every step is one operation. A forward with one operation changed, while the values stay as they
are and only their slopes are others, has the gradient that a backward with a slip there returns.
"""

import ast
import contextlib
import linecache
import operator
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from minitransformer.core import twins
from minitransformer.gradcheck.pair import OURS, call

MOST = 20_000_000  # entries that are remembered of one call of forward
LONGEST_TEXT = 70
PASSED_BY = str(Path(np.__file__).parent), *OURS, twins.__file__  # their calls are no mistakes


@dataclass(frozen=True)
class Place:
    """Where in the source an operation is made.

    Attributes:
        name: of the operation, such as "matmul".
        calls: the functions called down to it, each as (code, position in its bytecode).
    """

    name: str
    calls: tuple

    def __str__(self):
        """The expression and its line, and those of the call it is made in."""
        texts = []
        for code, position in self.calls[:-3:-1]:
            line, text = _source(code, position)
            if text:
                text = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
                texts.append(f"`{text}` (line {line})")
        if not texts:
            code, position = self.calls[-1]
            texts = [f"`{self.name}` (line {_source(code, position)[0]})"]
        return " in ".join(texts)

    def expression(self):
        """The expression as a syntax tree; None where there is no source."""
        try:
            return ast.parse(_source(*self.calls[-1])[1], mode="eval").body
        except SyntaxError:
            return None


def _source(code, position):
    """The line of an instruction and the text it was made from, empty where that is not known."""
    line, end, start, stop = list(code.co_positions())[position // 2]
    if None in (line, end, start, stop):  # as under python -X no_debug_ranges
        return line or code.co_firstlineno, ""
    lines = [linecache.getline(code.co_filename, n) for n in range(line, end + 1)]
    lines[-1] = lines[-1].encode()[:stop].decode()
    lines[0] = lines[0].encode()[start:].decode()
    return line, " ".join(part.strip() for part in lines)


@dataclass(frozen=True)
class Made:
    """One operation as it was made: operands and result are copies.

    Attributes:
        place: where.
        function, options: what was called, and with which keywords.
        operands, result: of the call.
        made_by: by the position of an operand the number of the operation whose result it is.
        inputs: by the position of an operand that is a view of an input the numbers of the entries
            that it has.
        keys: by the position of an operand what tells it from others.
    """

    place: Place
    function: object
    options: dict
    operands: tuple
    result: object
    made_by: dict
    inputs: dict
    keys: dict

    def operand(self, position):
        return dict(positions(self.operands)).get(position)

    def again(self, operands, held):
        """The result for other operands, but for those at the positions in ``held``."""
        return replace(self, operands=operands).of({p: self.operand(p) for p in held})

    def of(self, instead):
        """The result for these operands, but for others by their positions."""
        operands = self.operands
        for position, value in instead.items():
            operands = put(operands, position, value)
        options = {key: value for key, value in self.options.items() if key != "out"}
        return self.function(*operands, **options)

    def part(self, position):
        """The text of an operand; empty where the source does not have it."""
        node = self.place.expression()
        parts = []
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute) and len(node.args) < len(self.operands)
            parts = [node.func.value, *node.args] if method else node.args
        try:
            for i in position:
                node = parts[i]
                parts = getattr(node, "elts", [])
            return f"`{ast.unparse(node)}`"
        except (IndexError, AttributeError):
            return ""


class OtherOperations(Exception):
    """Forward makes other operations than it did first."""


class Watch:
    """Remembers the operations of one call of forward, or changes some.

    Args:
        inputs: those that are watched, by name.
        made: the operations as they were made first; where it is empty, they are put into it.
        change: ``change(number, operands, result)``, the result of an operation instead,
            or None to leave it; not called where they are put into ``made``.
    """

    def __init__(self, inputs, made, change):
        self._inputs = [plain(x) for x in inputs.values() if isinstance(x, Watched)]
        self._made, self._change = made, change
        self._first, self._count = not made, 0
        self._results, self._alive, self._entries = {}, [], 0

    def result_of(self, name, function, operands, options):
        if self._first:
            return self._remembered(name, function, operands, options)
        before = tuple(map(_kept, operands)) if "out" in options else operands
        result = _called(function, operands, options)  # what fails, as at the end, is not counted
        number, self._count = self._count, self._count + 1
        if number >= len(self._made) or self._made[number].place.name != name:
            raise OtherOperations
        changed = self._change(number, before, result)
        if changed is None:
            return result
        if "out" in options:
            np.copyto(result, changed)
            return result
        return changed

    def _remembered(self, name, function, operands, options):
        before = tuple(map(_kept, operands))
        keys = {position: _key(array) for position, array in positions(operands)}
        parents = {p: self._results[key] for p, key in keys.items() if key in self._results}
        made_by = {position: number for position, (number, _) in parents.items()}
        keys |= parents  # an array may be written to, and is then another
        inputs = {
            position: _entries(array, x)
            for position, array in positions(operands)
            for x in self._inputs
            if np.may_share_memory(array, x)
        }
        result = _called(function, operands, options)
        kept = _kept(result)
        self._entries += sum(array.size for _, array in positions((*before, kept)))
        if self._entries > MOST:
            raise OtherOperations
        for part, array in positions((result,)):
            self._results[_key(array)] = len(self._made), part
            self._alive.append(array)  # so that no other gets its address
        made = Made(_place(name), function, options, before, kept, made_by, inputs, keys)
        self._made.append(made)
        return result


class Watched(np.ndarray):
    """An array whose operations are told to the watch that is on."""

    watch = None

    def __array_ufunc__(self, ufunc, method, *operands, out=(), **options):
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if out:
            options["out"] = out
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        result = _made(name, function, operands, options)
        return (out[0] if len(out) == 1 else out) if out else result

    def __array_function__(self, function, types, operands, options):
        return _made(function.__name__, function, operands, options)

    def __getitem__(self, index):
        return _made("getitem", operator.getitem, (self, index), {})


def _by_function(name):
    function = getattr(np, name)

    def call(self, *args, **options):
        """NumPy's function of that name."""
        return function(self, *args, **options)

    return call


for _name in ("sum", "mean", "std", "var", "max", "min", "prod", "cumsum", "dot", "clip"):
    setattr(Watched, _name, _by_function(_name))  # one operation, not those it is made of


def _made(name, function, operands, options):
    operands, options = plain(operands), plain(options)
    if Watched.watch is None:
        return watched(function(*operands, **options))
    return watched(Watched.watch.result_of(name, function, operands, options))


@contextlib.contextmanager
def watching(watch):
    """Within it all operations on watched arrays are told to ``watch``."""
    Watched.watch = watch
    try:
        yield watch
    finally:
        Watched.watch = None


def watched(value):
    """Float arrays and numbers as Watched, also in tuples and lists; anything else as it is."""
    if isinstance(value, tuple | list):
        return type(value)(map(watched, value))
    if isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f":
        return np.asarray(value).view(Watched)
    return value


def plain(value):
    """Watched arrays as plain ones, also in tuples, lists and dicts."""
    if isinstance(value, Watched):
        return value.view(np.ndarray)
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def positions(operands):
    """Yield (position, array) of the float arrays among operands and in their lists."""
    for i, operand in enumerate(operands):
        inside = [((i,), operand)]
        if isinstance(operand, tuple | list):
            inside = [((i, j), inner) for j, inner in enumerate(operand)]
        for position, array in inside:
            if isinstance(array, np.ndarray) and array.dtype.kind == "f":
                yield position, array


def put(operands, position, value):
    """The operands with another one at that position."""
    first, *rest = position
    operands = list(operands)
    if rest:
        value = put(operands[first], rest, value)
    operands[first] = value
    return operands


def _called(function, operands, options):
    """The result of an operation; a number as an array without axes, which has an address."""
    result = function(*operands, **options)
    return np.asarray(result) if isinstance(result, np.floating) else result


def _kept(value):
    if isinstance(value, tuple | list):
        return type(value)(map(_kept, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _entries(view, x):
    """The numbers of the entries of x, in the order of its memory, that a view of it has."""
    offset = (view.ctypes.data - x.ctypes.data) // x.itemsize
    numbers = np.arange(x.size)[offset:]
    return np.lib.stride_tricks.as_strided(numbers, view.shape, view.strides)


def _key(array):
    return array.ctypes.data, array.shape, array.strides


def _place(name):
    """The calls from forward down to here, but for those that are passed by."""
    calls, frame = [], sys._getframe(1)
    while frame is not None and frame.f_code is not call.__code__:
        if not frame.f_code.co_filename.startswith(PASSED_BY):
            calls.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return Place(name, tuple(reversed(calls)))
