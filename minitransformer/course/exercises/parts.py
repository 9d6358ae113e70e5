"""The parts of an exercise, and the verdict on each.

A file ``exNN.py`` beside this one, and the folder ``own``, have a table ``PARTS``. The check of a
part takes the learner's functions and returns nothing, or a gradient check's Report, or a note on
what is right all the same, or raises a CheckError which says what is wrong. Learners' functions may
do anything, so a check calls them through :func:`minitransformer.gradcheck.pair.call` or hands them
to ``check_pair``, and compares what they return by :func:`expect`. Most checks are a table of calls
for :func:`expect_call`, or a pair and its y for :func:`expect_pair`; both take the values that
plausible mistakes lead to, and say of which one an answer comes.
"""

import dataclasses
import importlib
import pkgutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.pair import call, returned, unheard

RIGHT, WRONG, TO_DO = "right", "WRONG", "to do"


class Part(NamedTuple):
    """One task of an exercise.

    Attributes:
        functions: the names of the functions to write; the part is called by the first.
        minutes: how long it may take a student, 10, 25, 45 or 90.
        check: takes these functions, see the head of this file.
        lesson: that has the derivation, ``"07"``, where it is not the exercise's own.
    """

    functions: tuple[str, ...]
    minutes: int
    check: Callable
    lesson: str = ""


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
    return importlib.import_module(f"minitransformer.course.exercises.{name}").PARTS


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
    try:
        report = part.check(*(functions[name] for name in part.functions))
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


def expect(what, given, expected, tolerance=1e-9, hint="", mistakes=None):
    """Raise a CheckError unless ``given``, which a learner's function returned, is ``expected``.

    Args:
        what: names the value in the message, ``"best_step(1e-16, 1, 1)"``.
        tolerance: largest difference, relative to the largest expected entry.
        hint: added to the message, what to think of where it is none of the mistakes.
        mistakes: by the hint at each, the value that it leads to.
    """
    if given is None:
        raise CheckError(f"{what} is {returned(None)}")
    booleans = all(getattr(value, "dtype", "") == "bool" for value in (given, expected))
    expected = np.asarray(expected, dtype=np.float64)
    try:
        given = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise CheckError(
            f"{what} is {type(given).__name__}; expected {_described(expected)}"
        ) from None
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
        if array is not None and np.allclose(array, value, rtol=1e-9, atol=1e-12, equal_nan=True):
            return hint
    return otherwise


def expect_call(name, function, arguments, expected, tolerance=1e-9, hint="", mistakes=None):
    """Call a learner's function and :func:`expect` what it returns, ``"name(7, 0.5)"``.

    Args:
        arguments: numbers, texts and lists, which get a copy.
    """
    shown = ", ".join(f"{x:g}" if isinstance(x, float) else repr(x) for x in arguments)
    given = call(name, function, *(list(x) if isinstance(x, list) else x for x in arguments))
    expect(f"{name}({shown})", given, expected, tolerance, hint, mistakes)


def expect_pair(
    name, pair, inputs, expected, hint="", mistakes=None, *, names=None, dy=None, slips=None
):
    """Expect y of a learner's pair; returns the Report on its gradients.

    Args:
        name: of the forward.
        pair: forward and backward.
        inputs, names: as for ``check_pair``.
        expected, hint, mistakes: of y, as for :func:`expect`.
        slips: where a gradient is wrong, what plausible mistakes make of this ``dy``: by what to
            say, the name of an input and its gradient.
    """
    y, cache = y_and_cache(name, pair[0], *inputs)
    expect("y", y, expected, hint=hint, mistakes=mistakes)
    report = check_pair(*pair, inputs, names=names)
    if slips and not report.right:
        given = call(f"{name}_backward", pair[1], read_only(dy), cache)
        given = given if isinstance(given, tuple | list) else [given]
        for said, (of, wrong) in slips.items():
            if likely(dict(zip(names, given, strict=False)).get(of), {said: wrong}):
                raise CheckError(said)
    return report


def y_and_cache(name, forward, *inputs, form="its result and the cache", cache_type=object):
    """What a learner's forward returns for inputs that it must not write to.

    Args:
        name: of the forward.
        form: what it must return, in words.
        cache_type: tuple, where the check looks into the cache; it is otherwise the learner's own.

    Raises:
        CheckError: the forward fails, or returns something else.
    """
    inputs = (read_only(x) if isinstance(x, np.ndarray) else x for x in inputs)
    result = call(name, forward, *inputs)
    if not isinstance(result, tuple) or len(result) != 2:
        raise CheckError(f"{name} must return {form}; it returned {returned(result)}")
    if not isinstance(result[1], cache_type):
        raise CheckError(f"the cache of {name} must be a {cache_type.__name__}")
    return result


def quietly(name, function, *arguments):
    """As ``call``, and warnings are not heard: what comes of them is compared."""
    with unheard():
        return call(name, function, *arguments)


def several(name, result, count, form):
    """What a function of that name returned: so many values, which ``form`` names.

    Raises:
        CheckError: it is no tuple or list of so many.
    """
    if not isinstance(result, tuple | list) or len(result) != count:
        raise CheckError(f"{name} must return {form}; it returned {returned(result)}")
    return result


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
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return array if array.shape == shape else None


def read_only(array):
    """A copy that raises an error where a function writes to what it is given."""
    array = np.array(array)
    array.flags.writeable = False
    return array


def _described(array):
    return f"an array of shape {array.shape}" if array.ndim else "a number"
