"""``minitransformer check``: is the answer to an exercise of the lessons right?"""

import contextlib
import sys
from pathlib import Path

from minitransformer.commands.gradcheck import NOT_CHECKED, RIGHT, WRONG
from minitransformer.core.libraries import MissingLibraryError
from minitransformer.course.exercises import check_exercise, exercise_names, parts_of
from minitransformer.course.exercises.parts import RIGHT as SOLVED
from minitransformer.course.own.check import check_own, following
from minitransformer.course.own.file import OwnFile
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.learner import did_you_mean, load_file

# Where a file is looked for, in this order: your copies come first, from within a folder as well.
FOLDERS = "answers", "../answers", "lessons/exercises", "exercises", "."


def add(parser):
    parser.description = (
        "Check your answer to an exercise of the lessons, or your own Transformer, or list the "
        "exercises."
    )
    parser.epilog = (
        "Exit status: 0 when every part is right, 1 when one is wrong or still to do, 2 when the "
        "file could not be checked."
    )
    parser.add_argument(
        "exercise",
        nargs="?",
        type=Path,
        help="such as ex07, 7, own, or the path of your file; without it, they are listed",
    )
    parser.add_argument(
        "function", nargs="?", help="the one to say the verdict on; without it, all of them"
    )
    parser.add_argument(
        "--file",
        type=Path,
        help=f"yours; without it, the first ex07.py in {', '.join(FOLDERS)} is read",
    )
    parser.set_defaults(run=run)


def run(options):
    """Check the file of ``options.exercise``; returns the exit status."""
    given = options.exercise or options.file
    if given is None:
        for name in exercise_names():
            for part in parts_of(name):
                print(f"{name:<4}  {part.functions[0]:<30} {part.minutes:>3} min")
        return RIGHT
    name = _full_name(given)
    try:
        parts, function = parts_of(name), options.function  # a wrong name before a missing file
        names = [name for part in parts for name in part.functions]
        if function and function not in names:
            raise CheckError(f"{name} has no function {function}{did_you_mean(function, names)}")
        path = options.file or (given if given.suffix else _find(f"{name}.py"))
        with contextlib.redirect_stdout(sys.stderr):  # whatever a learner's file prints
            if name == "own":
                report = check_own(OwnFile(path), say=print)
            else:
                functions = vars(load_file(path))
                if functions.keys().isdisjoint(names):
                    raise CheckError(f"{path} has no function of {name}, such as {names[0]}")
                report = check_exercise(name, functions)
    except (CheckError, MissingLibraryError) as error:
        print(f"minitransformer check: {error}", file=sys.stderr)
        return NOT_CHECKED
    if path.parts[:2] == ("lessons", "exercises"):
        print(
            f"{path} is the original; your copy: cp -r lessons/exercises answers", file=sys.stderr
        )
    if function:
        (verdict,) = (v for v in report.verdicts if function in v.part.functions)
        print(verdict)
        return RIGHT if verdict.status == SOLVED else WRONG
    print(f"{name}, {path}", report, sep="\n")
    if name == "own":
        print(following(report, path))
    return RIGHT if report.right else WRONG


def _full_name(path):
    """``ex07`` for 7, 07, ex7 and the path of its file as well."""
    name = path.stem
    number = name.removeprefix("ex")
    return f"ex{int(number):02}" if number.isdecimal() else name


def _find(file_name):
    paths = [Path(folder) / file_name for folder in FOLDERS]
    for path in paths:
        if path.is_file():
            return path
    raise CheckError(
        f"there is no {', '.join(map(str, paths))} here; change to the folder of the "
        "project, or say where yours is: --file PATH"
    )
