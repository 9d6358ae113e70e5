"""The parts of an exercise, and the verdict on each.

A file ``exNN.py`` beside this one, and each in the folder ``own``, has a check for each part, under
the mark :func:`part`. It takes the learner's functions, each an :class:`Answer`, and returns
nothing, or a gradient check's Report, or a note on what is right all the same, or raises a
CheckError which says what is wrong. Learners' functions may do anything: an Answer calls them with
care, and :func:`expect` compares what they return. Most checks are a table for ``Answer.expect``,
or a pair and its y for :func:`expect_pair`; both take the values that plausible mistakes lead to,
and say of which one an answer comes.
"""

import dataclasses
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitransformer.course.time_limit import time_limit
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.pair import call, read_only, returned, unheard

RIGHT, WRONG, TO_DO = "right", "WRONG", "to do"
ROUNDED = 1e-6  # of the largest entry: what float32 may make of an answer


class Part(NamedTuple):
    """One task of an exercise.

    Attributes:
        functions: the names of the functions to write; the part is called by the first.
        minutes: how long it may take a student, 10, 25, 45 or 90.
        check: takes an Answer for each, see the head of this file.
        lesson: that has the derivation, ``"07"``, where it is not the exercise's own.
    """

    functions: tuple[str, ...]
    minutes: int
    check: Callable
    lesson: str = ""


def part(minutes, lesson=""):
    """Make a Part of the check below: its functions are called as the parameters of the check are.

    ``forward`` and ``backward`` stand for the pair that ``check_...`` has in its name.
    """

    def of_check(check):
        name = check.__name__.removeprefix("check_")
        pair = {"forward": name, "backward": f"{name}_backward"}
        functions = tuple(pair.get(p, p) for p in inspect.signature(check).parameters)
        return Part(functions, minutes, check, lesson)

    return of_check


class Verdict(NamedTuple):
    """What became of a part: RIGHT, maybe with a note, WRONG with what is wrong, or TO_DO."""

    part: Part
    status: str
    explanation: str = ""

    def __str__(self):
        line = f"  {self.status}  {self.part.functions[0]:<30} {self.part.minutes:>3} min"
        return "\n".join([line, textwrap.indent(self.explanation, " " * 9)]).rstrip()


class ExerciseReport(NamedTuple):
    """The verdicts on all parts of an exercise; ``print(report)`` shows them."""

    verdicts: list[Verdict]

    @property
    def right(self):
        """Whether every part is right."""
        return all(verdict.status == RIGHT for verdict in self.verdicts)

    def __str__(self):
        done = sum(verdict.status == RIGHT for verdict in self.verdicts)
        return "\n".join([*map(str, self.verdicts), f"{done} of {len(self.verdicts)} right"])


def exercise_names():
    """The names of all exercises, ``["ex03", "ex07", ..., "own"]``: ``own`` is made of them all."""
    files = pkgutil.iter_modules([str(Path(__file__).parent)])
    return [*sorted(file.name for file in files if file.name.startswith("ex")), "own"]


def parts_of(name):
    """The Parts of the exercise called ``name``.

    Raises:
        CheckError: there is no such exercise.
    """
    if name not in exercise_names():
        raise CheckError(
            f"there is no exercise {name!r}; choose one of {', '.join(exercise_names())}"
        )
    module = importlib.import_module(f"minitransformer.course.exercises.{name}")
    places = getattr(module, "PLACES", [module])
    parts = [p for place in places for p in vars(place).values() if isinstance(p, Part)]
    return sorted(parts, key=lambda part: part.lesson)


def check_exercise(name, functions):
    """Check a learner's functions for the exercise called ``name``.

    Args:
        functions: by their names, such as ``globals()`` or ``vars(module)``; whatever else is in
            there does not matter, and a part that is not there is still to do.

    Returns:
        ExerciseReport
    """
    return ExerciseReport([judge(part, functions) for part in parts_of(name)])


def judge(part, functions):
    """The Verdict on the functions for a part, which are looked up by their names."""
    if any(name not in functions for name in part.functions):
        return Verdict(part, TO_DO)
    with time_limit() as passed:
        verdict = _judged(part, functions)
    if passed:
        return Verdict(part, WRONG, f"it takes {passed[0]}")
    return verdict


def _judged(part, functions):
    try:
        report = part.check(*(Answer(name, functions[name]) for name in part.functions))
    except CheckError as error:
        if isinstance(error.__cause__, NotImplementedError):
            return Verdict(part, TO_DO)
        return Verdict(part, WRONG, str(error))
    if isinstance(report, str):
        return Verdict(part, RIGHT, report)
    if report is None or report.right:
        return Verdict(part, RIGHT)
    return Verdict(part, WRONG, in_words(report))


def in_words(report):
    """What a gradient check's Report says; what it leaves unchecked the check has chosen."""
    return textwrap.dedent(str(dataclasses.replace(report, unchecked=[])))


def expect(what, given, expected, hint="", mistakes=None, tolerance=1e-9):
    """Raise a CheckError unless ``given``, which a learner's function returned, is ``expected``.

    Args:
        what: names the value in the message, ``"best_step(1e-16, 1, 1)"``.
        hint: added to the message, what to think of where it is none of the mistakes.
        mistakes: by the hint at each, the value that it leads to.
        tolerance: largest difference, relative to the largest expected entry.
    """
    if given is None:
        raise CheckError(f"{what} is {returned(None)}")
    booleans = all(getattr(value, "dtype", "") == "bool" for value in (given, expected))
    rounded = getattr(given, "dtype", "") == "float32"
    expected = np.asarray(expected, dtype=np.float64)
    try:
        given = _numbers(given)
    except (TypeError, ValueError):
        kind = getattr(given, "dtype", type(given).__name__)
        raise CheckError(f"{what} is {kind}; expected {_described(expected)}") from None
    if given.shape != expected.shape:
        raise CheckError(f"{what} has the shape {given.shape} and should have {expected.shape}")
    difference = np.abs(given - expected)
    if not np.all(difference <= tolerance * np.abs(expected).max()):  # NaN is not <=
        index = tuple(int(i) for i in np.unravel_index(np.argmax(difference), expected.shape))
        where = f" at index {index}" if index else ""
        is_, should_be = (
            str(bool(value)) if booleans else f"{value + 0.0:.9g}"  # and not -0
            for value in (given[index], expected[index])
        )
        if rounded and np.all(difference <= ROUNDED * np.abs(expected).max()):
            hint = "it is float32, and this may be its rounding: keep the dtype of what is given"
        hint = likely(given, mistakes or {}, hint)
        raise CheckError(
            f"{what} is {is_}{where} and should be {should_be}" + (f"; {hint}" if hint else "")
        )


def likely(given, mistakes, otherwise=""):
    """The hint at the mistake that ``given`` comes of.

    Args:
        given: what a learner's function returned.
        mistakes: by hint, the value that the mistake leads to.
        otherwise: the hint where it is none of them.
    """
    for hint, value in mistakes.items():
        array = array_of(given, np.shape(value))
        if array is not None and np.allclose(array, value, rtol=1e-9, atol=1e-12):
            return hint
    return otherwise


class Answer:
    """A learner's function, which is called with care: what it raises becomes a CheckError.

    It cannot write to the arrays that it is given.

    Attributes:
        name: that it should have.
        function: as the learner wrote it.
    """

    def __init__(self, name, function):
        self.name, self.function = name, function

    def __call__(self, *arguments):
        arguments = (read_only(x) if isinstance(x, np.ndarray) else x for x in arguments)
        return call(self.name, self.function, *arguments)

    def quietly(self, *arguments):
        """As a call, and warnings are not heard: what comes of them is compared."""
        with unheard():
            return self(*arguments)

    def writing(self, *arguments):
        """As a call, and it may write to the arrays."""
        return call(self.name, self.function, *arguments)

    def called(self, what):
        """The same, under a longer name: ``"name with float32"``."""
        return self.named(f"{self.name} {what}")

    def named(self, name):
        """The same, under another name: ``"name(7, 0.5)"``."""
        return Answer(name, self.function)

    def several(self, count, form, *arguments):
        """So many values, which ``form`` names; a CheckError if it returns something else."""
        result = self(*arguments)
        if not isinstance(result, tuple | list) or len(result) != count:
            raise CheckError(f"{self.name} must return {form}; it returned {returned(result)}")
        return result

    def y_and_cache(self, *inputs, form="its result and the cache", cache_type=object):
        """What a forward returns.

        Args:
            form: what it must return, in words.
            cache_type: tuple, where the check looks into the cache; else it is the learner's own.

        Raises:
            CheckError: it fails, or returns something else.
        """
        result = self(*inputs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise CheckError(f"{self.name} must return {form}; it returned {returned(result)}")
        if not isinstance(result[1], cache_type):
            raise CheckError(f"the cache of {self.name} must be a {cache_type.__name__}")
        return result

    def gradients(self, dy, cache):
        """What a backward returns; in a tuple, where it is only one."""
        given = self(dy, cache)
        return given if isinstance(given, tuple | list) else (given,)

    def expect(self, arguments, expected, hint="", mistakes=None):
        """Call it and :func:`expect` what it returns, ``"name(7, 0.5, [1, 2])"``."""
        what = f"{self.name}({', '.join(map(_shown, arguments))})"
        expect(what, self.named(what)(*arguments), expected, hint, mistakes)


class Slip(NamedTuple):
    """A plausible mistake in a backward.

    Attributes:
        hint: what to say of it.
        dy: an upstream gradient.
        gradients: what the mistake makes of it, in the order of the inputs; None for a right one.
    """

    hint: str
    dy: np.ndarray
    gradients: tuple


def expect_pair(forward, backward, inputs, expected, hint="", mistakes=None, slips=()):
    """Expect y of a pair, see :func:`expect`; returns the Report on its gradients.

    Args:
        inputs: as for ``check_pair``.
        slips: told apart where a gradient is wrong, the first that fits.
    """
    y, cache = forward.y_and_cache(*inputs)
    expect("y", y, expected, hint, mistakes)
    report = check_gradients(forward, backward, inputs)
    for slip in () if report.right else slips:
        both = zip(backward.gradients(slip.dy, cache), slip.gradients, strict=False)
        if any(wrong is not None and likely(given, {slip.hint: wrong}) for given, wrong in both):
            raise CheckError(slip.hint)
    return report


def check_gradients(forward, backward, inputs, **options):
    """The Report of ``check_pair`` on two Answers."""
    return check_pair(forward.function, backward.function, inputs, **options)


def expect_boolean(what, array):
    """Raise a CheckError unless it is a boolean array; ``what`` is ``"the mask must be"``."""
    kind = getattr(array, "dtype", None)
    if kind != "bool":
        raise CheckError(f"{what} a boolean array; it is {kind or returned(array)}")


def normal(seed, *shapes):
    """Normal random numbers from a seed: an array of each shape, drawn one after the other."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def array_of(given, shape):
    """What a learner's function returned, as an array; None if it is not one of that shape."""
    try:
        array = _numbers(given)
    except (TypeError, ValueError):
        return None
    return array if array.shape == shape else None


def _numbers(given):
    """As an array of float64; a TypeError or ValueError where these are no real numbers."""
    array = np.asarray(given)
    kind = array.dtype.kind
    if kind in "SU" or (kind == "c" and array.imag.any()):
        raise TypeError(array.dtype)
    return np.asarray(array.real if kind == "c" else array, dtype=np.float64)


def _shown(argument):
    if isinstance(argument, float):
        return f"{argument:g}"
    return repr(argument.tolist() if isinstance(argument, np.ndarray) else argument)


def _described(array):
    return f"an array of shape {array.shape}" if array.ndim else "a number"
