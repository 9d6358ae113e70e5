"""The pair under check, called with care: whatever it does wrong is said in words.

Inputs and dy are handed over read-only, results are looked at before they are used, y is copied,
because forward may write its next one into the same buffer, and whatever is raised becomes a
CheckError that says where.
"""

import contextlib
import dataclasses
import inspect
import linecache
import re
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from minitransformer.core.backend import is_array
from minitransformer.gradcheck.report import CheckError

# Folders whose code calls what is checked, or wraps it: no line of theirs is a learner's mistake.
OURS = tuple(str(Path(__file__).parents[1] / room) for room in ("gradcheck", "course/exercises"))

NOT_TO_BE_WRITTEN = (
    "; it must not write to what it is given, nor to a view such as np.broadcast_to and "
    "np.diagonal return: copy first"
)


class Pair:
    """Forward and backward, and what is asked of their results.

    Args:
        forward, backward: as for :func:`~minitransformer.gradcheck.check.check_pair`.
        names: of all inputs.
        checked: positions of the inputs whose gradients are checked.
        deadline: time, as ``time.perf_counter()`` has it, after which forward is not called again.
    """

    def __init__(self, forward, backward, names, checked, deadline):
        self._forward = forward
        self._backward = backward
        self.names = names
        self.checked = checked
        self.deadline = deadline

    def forward(self, inputs):
        """Call forward; returns y as a copy of its own, and what was returned, (y, cache)."""
        if time.perf_counter() > self.deadline:
            raise OutOfTime
        result = call("forward", self._forward, *inputs)
        if result is None:
            raise CheckError("forward returned None: is its `return` missing?")
        if not isinstance(result, tuple) or len(result) != 2:
            raise CheckError(f"forward must return (y, cache); it returned {described(result)}")
        y = _as_array(result[0], "forward", "y")
        if y.dtype != np.float64:
            raise CheckError(f"forward must return a float64 y for float64 inputs; it is {y.dtype}")
        if not np.isfinite(y).all():
            raise CheckError("forward returned NaN or infinity: there is no gradient there")
        return y, result

    def backward(self, dy, cache):
        """Call backward; returns the gradients of the checked inputs by name, None for none."""
        gradients = call("backward", self._backward, dy, cache)
        count = len(self.names)
        if isinstance(gradients, dict | Iterator):
            raise CheckError(
                f"backward returned a {type(gradients).__name__}; return the gradients as a tuple, "
                "in the order of the inputs"
            )
        if gradients is None:
            gradients = (None,) * count
        gradients = tuple(gradients) if isinstance(gradients, tuple | list) else (gradients,)
        if not self.checked[-1] < len(gradients) <= count:
            raise CheckError(
                f"backward returned {len(gradients)} gradients for {count} inputs; "
                "return one for each, in their order, and None for an input that has none"
            )
        return {
            self.names[i]: None
            if gradients[i] is None
            else _as_array(gradients[i], "backward", "a gradient")
            for i in self.checked
        }

    def output(self, inputs, position, shape):
        """A function from a value of the input at that position to y, the others as they are.

        Where y is not of that shape, forward is not defined.
        """
        before, after = inputs[:position], inputs[position + 1 :]
        return lambda value: self.output_of((*before, value, *after), shape)

    def output_of(self, inputs, shape):
        """The y of that shape."""
        y, _ = self.forward(inputs)
        if y.shape != shape:
            raise CheckError(f"forward returns a y of shape {y.shape}, and here one of {shape}")
        return y


class OutOfTime(Exception):
    """The check has taken as long as it may; no CheckError, which would say forward failed."""


def call(what, function, *arguments):
    """``function(*arguments)``, with anything it raises turned into a CheckError."""
    try:
        return function(*arguments)
    except (Exception, SystemExit, GeneratorExit) as error:  # it may fail in any way
        words = _words(error)
        written = "read-only" in words
        hint = NOT_TO_BE_WRITTEN if written else _shapes(error)
        raise CheckError(
            f"{what} raised {type(error).__name__}: {words}{_place(error)}{hint}"
        ) from error


@contextlib.contextmanager
def heard():
    """Within it warnings are not printed; yields a list that holds them in words at its end."""
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    for warning in caught:
        place = f"({Path(warning.filename).name}, line {warning.lineno})"
        said.append(f"{warning.category.__name__}: {warning.message} {place}")
    said[:] = dict.fromkeys(said)


@contextlib.contextmanager
def unheard():
    """Within it nobody hears of overflows and warnings: of places that a check alone goes to."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_only(value):
    """An array as a copy that cannot be written to; anything else as it is."""
    if not is_array(value):
        return value
    copy = np.array(value)
    copy.flags.writeable = False
    return copy


def argument_names(function, count):
    """The names of the first ``count`` arguments; ``input_1`` where the signature has too few."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some functions that are written in C
        parameters = ()
    names = [parameter.name for parameter in parameters if parameter.kind in kinds]
    names += [f"input_{i}" for i in range(len(names), count)]
    return names[:count]


def each_once(names):
    """The names, those that come again told apart: ``x``, ``x (2)``."""
    names = list(names)
    counts = [names[: i + 1].count(name) for i, name in enumerate(names)]
    return [f"{name} ({n})" if n > 1 else name for name, n in zip(names, counts, strict=True)]


def positions_to_check(inputs, names):
    """Where the float64 arrays are.

    Raises:
        CheckError: there is none; or one is empty, not finite, of another floating type, or inside
            of a list.
    """
    positions = []
    for i, (x, name) in enumerate(zip(inputs, names, strict=True)):
        if not is_array(x):
            _refuse_arrays_inside(x, name)
        elif x.dtype == np.float64 and x.size == 0:
            raise CheckError(f"{name} has no entries, its shape is {x.shape}")
        elif x.dtype == np.float64 and not np.isfinite(x).all():
            raise CheckError(
                f"{name} holds NaN or infinity, where there is no gradient; a mask can be booleans"
            )
        elif x.dtype == np.float64:
            positions.append(i)
        elif x.dtype.kind == "f":
            raise CheckError(
                f"{name} is {x.dtype}; central differences need float64: .astype(np.float64)"
            )
    if not positions:
        given = ", ".join(
            f"{name} is {x.dtype if is_array(x) else f'a {type(x).__name__}'}"
            for name, x in zip(names, inputs, strict=True)
        )
        raise CheckError(
            f"no input is a float64 array: there is nothing to check ({given}); make one of them, "
            "np.array(..., dtype=np.float64)"
        )
    return positions


def _refuse_arrays_inside(x, name):
    inside = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    if any(is_array(value) and value.dtype.kind == "f" for value in inside):
        raise CheckError(
            f"{name} is a {type(x).__name__} that holds arrays, whose gradients would go "
            "unchecked; make each of them an input of its own"
        )


def arrays_in(value):
    """Yield the arrays in tuples, lists, dicts and dataclasses, however deep."""
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        yield from arrays_in(value.ravel().tolist())
    elif isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        yield from arrays_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from arrays_in(inner)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from arrays_in([getattr(value, f.name, None) for f in dataclasses.fields(value)])


def _as_array(value, who, what):
    """A copy of ``value`` as an array of real numbers."""
    try:
        array = np.array(value)
        if array.dtype.kind in "fiub":
            return array
        if array.dtype.kind == "c":
            problem = "it is complex"
        elif value is None:  # which would become NaN
            problem = "is something missing?"
        else:
            return array.astype(np.float64)
    except Exception as error:  # whatever an object's own conversion may raise
        problem = error
    raise CheckError(
        f"{who} returned {described(value)} where {what}, an array of real numbers, should be: "
        f"{problem}"
    )


def _words(error):
    """What the error says; nothing where saying it fails."""
    try:
        return str(error)
    except Exception:  # of a class of the learner's
        return ""


def _place(error):
    """Where in the called file the error arose, `` (my_file.py, line 12)``."""
    frame, number = _frame(error)
    return f" ({Path(frame.f_code.co_filename).name}, line {number})" if frame else ""


def _shapes(error):
    """The shapes of the arrays in that line, ``; there x is (3, 4, 6)``, where they do not fit."""
    frame, number = _frame(error)
    if frame is None or not isinstance(error, ValueError):
        return ""
    line = linecache.getline(frame.f_code.co_filename, number)
    found = {name: frame.f_locals.get(name) for name in re.findall(r"\w+", line)}
    shapes = {name: x.shape for name, x in found.items() if isinstance(x, np.ndarray)}
    said = [f"{name} is {shape}" for name, shape in shapes.items()]
    text = f"; there {', '.join(said)}" if said else ""
    for name in re.findall(r"(\w+)\.T\b", line):
        if len(shapes.get(name, ())) > 2:
            return f"{text}; {name}.T reverses all axes, swapaxes(-1, -2) exchanges the last two"
    return text


def _frame(error):
    """The innermost frame in the called file, and the line it was at; None and 0 for none."""
    frames = list(traceback.walk_tb(error.__traceback__))
    files = [frame.f_code.co_filename for frame, _ in frames]
    called = next((file for file in files if not file.startswith((*OURS, "<frozen"))), None)
    found = [at for at, file in zip(frames, files, strict=True) if file == called]
    return found[-1] if found else (None, 0)


def returned(value):
    """As :func:`described`, and what is likely where a function returned nothing."""
    return "None: is its `return` missing?" if value is None else described(value)


def described(value):
    """What a function returned, in words."""
    if value is None:
        return "None"
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
