"""The stops of the lessons, at which the reader writes a part of ``own.py``.

try_yours("layer_norm", facts)
show("layer_norm")

The facts are tried on the reader's file, and the package's source is shown where it is right. Each
call reads the file anew.
"""

import inspect
from functools import partial

from minitransformer.course.answers import COPIES, find_answers
from minitransformer.course.exercises import parts_of
from minitransformer.course.exercises.parts import RIGHT, TO_DO, WRONG, Answer
from minitransformer.course.notebooks import Shown, source_of
from minitransformer.course.own.check import check_part, not_there
from minitransformer.course.own.file import OwnFile
from minitransformer.course.own.package import FUNCTIONS
from minitransformer.course.time_limit import time_limit, timely
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.learner import did_you_mean


def try_yours(name, facts):
    """Print for each fact whether it holds for the reader's functions, whatever these may do.

    Args:
        name: of the part of ``own.py``.
        facts: a generator function whose parameters are functions of ``own.py``, by their names.
            It yields what should be so, in words, and whether it is.
    """
    names = list(inspect.signature(facts).parameters)
    try:
        with time_limit() as passed:
            file = _own_file()
            for words, holds in facts(*(partial(_asked, file, n) for n in names)):
                print("✓" if holds else "✗", words)
        if passed:
            print(f"✗ {name} takes {passed[0]}")
    except CheckError as error:
        print("✗", error)
    except Exception as error:  # of a fact, which what a function has returned does not fit
        said = f"{type(error).__name__}: {error}"
        print(f"✗ what is returned fits no fact about {', '.join(names)}: {said}")


def show(name, *helpers, anyway=False):
    """The package's source for a part of ``own.py``, folded, where the reader's own is right.

    Otherwise a line on what is missing.

    Args:
        name: of the part.
        helpers: functions of the package that those of the part call, to be shown behind them.
        anyway: show it in any case.
    """
    part = _part_with(name)
    missing = "" if anyway else _missing(part)
    if missing:
        line = (
            f"The package's is shown once yours is right: {missing}. "
            f'To see it now: `show("{name}", anyway=True)`'
        )
        return Shown(line, line)
    source = source_of(*(FUNCTIONS[function] for function in part.functions), *helpers)
    summary = f"<summary>the package's <code>{name}</code></summary>"
    return Shown(f"<details>{summary}\n\n{source.markdown}\n\n</details>", source.plain)


def _missing(part):
    """What there is to do until the reader's functions of a part are right; empty if they are."""
    name = part.functions[0]
    try:
        file = timely(_own_file)
    except CheckError as error:
        return str(error)
    return {
        RIGHT: "",
        TO_DO: _still_to_be_written(name, file),
        WRONG: f"`minitransformer check own {name}` says what is wrong",
    }[check_part(file, part).status]


def _own_file():
    path = find_answers("own.py", COPIES)
    if path is None:
        raise CheckError(
            "there is no file answers/own.py; `cp -r lessons/exercises answers` in the project's "
            "folder makes it"
        )
    return OwnFile(path)


def _part_with(name):
    for part in parts_of("own"):
        if name in part.functions:
            return part
    raise ValueError(f"own.py has no function {name!r}{did_you_mean(name, FUNCTIONS)}")


def _asked(file, name, *arguments, **options):
    """What a function of a reader's file returns, called as its check calls it."""
    function = file.there.get(name, not_there)
    answer = Answer(name, partial(function, **options))
    is_pair = f"{name}_backward" in FUNCTIONS
    try:
        if name.endswith("_update"):  # those that write to what they are given
            return answer.writing(*arguments)
        return answer.y_and_cache(*arguments) if is_pair else answer(*arguments)
    except CheckError as error:
        if isinstance(error.__cause__, NotImplementedError):
            raise CheckError(_still_to_be_written(name, file)) from error
        raise


def _still_to_be_written(name, file):
    return f"{name} is still to be written, in {file.path.as_posix()}"
