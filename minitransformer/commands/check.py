"""``minitransformer check``: are the answers to the exercises right, and how far is one?"""

import contextlib
import json
import sys
from itertools import groupby
from pathlib import Path

from minitransformer.commands.apart import ApartError, OutOfTimeError, run_apart
from minitransformer.commands.gradcheck import NOT_CHECKED, RIGHT, WRONG
from minitransformer.core.libraries import MissingLibraryError
from minitransformer.course.answers import COPIES, ORIGINALS, find_answers
from minitransformer.course.exercises import (
    ExerciseReport,
    check_exercise,
    exercise_names,
    parts_of,
)
from minitransformer.course.exercises.parts import RIGHT as SOLVED
from minitransformer.course.exercises.parts import TO_DO, Verdict
from minitransformer.course.exercises.parts import WRONG as MISTAKEN
from minitransformer.course.own.check import check_own, following
from minitransformer.course.own.file import OwnFile
from minitransformer.course.time_limit import ENDLESS, timely
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.learner import did_you_mean, load_file

FOLDERS = *COPIES, *ORIGINALS  # where a file is looked for, in this order
# Seconds that the check of all files together may take, or of the one that hinders it: a part that
# never ends takes 60 of them.
LONGEST = 150
NOT_KNOWN = "not checked"
UNDONE = MISTAKEN, TO_DO


def add(parser):
    parser.description = (
        "Check your answer to an exercise of the lessons, or your own Transformer, or see how far "
        "you are."
    )
    parser.epilog = (
        "Exit status: 0 when every part is right, 1 when one is wrong or still to do, 2 when the "
        "file could not be checked. Without an exercise, 0 where every file could be."
    )
    parser.add_argument(
        "exercise",
        nargs="?",
        type=Path,
        help="such as ex07, 7, own, or the path of your file; without it, all are counted",
    )
    parser.add_argument(
        "function", nargs="?", help="the one to say the verdict on; without it, all of them"
    )
    parser.add_argument(
        "--file",
        type=Path,
        help=f"yours; without it, the first ex07.py in {', '.join(FOLDERS)} is read",
    )
    parser.add_argument(
        "--json", action="store_true", help="without an exercise: print JSON for programs"
    )
    parser.set_defaults(run=run, usage_error=parser.error)


def run(options):
    """Check the file of ``options.exercise``, or all; returns the exit status."""
    given = options.exercise or options.file
    if given is None:
        return _run_all(options)
    if options.json:
        options.usage_error("--json goes without an exercise")
    name = _full_name(given)
    try:
        parts, function = parts_of(name), options.function  # a wrong name before a missing file
        names = [name for part in parts for name in part.functions]
        if function and function not in names:
            raise CheckError(f"{name} has no function {function}{did_you_mean(function, names)}")
        path = options.file or (given if given.suffix else _find(f"{name}.py"))
        with contextlib.redirect_stdout(sys.stderr):  # whatever a learner's file prints
            report = _report(name, path)
    except (CheckError, MissingLibraryError) as error:
        print(f"minitransformer check: {error}", file=sys.stderr)
        return NOT_CHECKED
    _note_original(path)
    if function:
        (verdict,) = (v for v in report.verdicts if function in v.part.functions)
        print(verdict)
        return RIGHT if verdict.status == SOLVED else WRONG
    print(f"{name}, {path}", report, sep="\n")
    if name == "own":
        print(following(report, path))
    return RIGHT if report.right else WRONG


def _run_all(options):
    """Say of each lesson, and of all, how many parts are right, and what the others may take."""
    paths = {
        name: str(path) for name in exercise_names() if (path := find_answers(f"{name}.py"))
    }  # where none is there, all of it is to do
    found, errors = _checked_apart(paths), {}
    every = []  # lesson, name of the exercise and verdict of each part
    for name in exercise_names():
        parts = parts_of(name)
        verdicts = [Verdict(part, TO_DO) for part in parts]
        if isinstance(found.get(name), str):
            errors[name] = found[name]
            verdicts = [Verdict(part, NOT_KNOWN) for part in parts]
        elif name in found:
            verdicts = [Verdict(p, *said) for p, said in zip(parts, found[name], strict=True)]
        every += [(v.part.lesson or name.removeprefix("ex"), name, v) for v in verdicts]
    by_lesson = sorted(every, key=_lesson)
    if options.json:
        print(json.dumps(_as_dict(by_lesson, paths, errors), ensure_ascii=False, indent=1))
    else:
        print(f"{'lesson':<8}{'own.py':>10}{'exercises':>12}{'still to do':>14}")
        for lesson, of_lesson in groupby(by_lesson, key=_lesson):
            print(_row(lesson, list(of_lesson)))
        print(_row("all", every))
        if "own" not in errors:
            own = ExerciseReport([verdict for _, name, verdict in every if name == "own"])
            if "own" in paths:
                print(following(own, Path(paths["own"])))
                _note_original(Path(paths["own"]))
            else:
                print("next: cp -r lessons/exercises answers, in the folder of the project")
    for error in errors.values():
        print(f"minitransformer check: {error}", file=sys.stderr)
    return NOT_CHECKED if errors else RIGHT


def _checked_apart(paths):
    """What :func:`verdicts_on` says, in a process that a file may end, or never leave."""
    try:
        return run_apart(verdicts_on, LONGEST, paths=paths)
    except ApartError as error:
        if len(paths) > 1:  # which of them is it?
            return {n: v for name in paths for n, v in _checked_apart({name: paths[name]}).items()}
        ((name, path),) = paths.items()
        if isinstance(error, OutOfTimeError):
            error = f"it takes more than {LONGEST} s{error}: {ENDLESS}"
        return {name: f"{path}: {error}"}


def verdicts_on(paths):
    """By the name of an exercise status and explanation of each part, or what is wrong with a file.

    Args:
        paths: of the files, by the names of their exercises.
    """
    said = {}
    for name, path in paths.items():
        try:
            verdicts = _report(name, Path(path)).verdicts
            said[name] = [(verdict.status, verdict.explanation) for verdict in verdicts]
        except (CheckError, MissingLibraryError) as error:
            said[name] = str(error)
    return said


def _lesson(entry):
    return entry[0]


def _row(lesson, entries):
    """A line of the table, of one lesson or of ``"all"``: how much is right, left, and wrong."""
    counts = []
    for of_own in (True, False):
        verdicts = [v for _, name, v in entries if (name == "own") == of_own]
        unknown = any(verdict.status == NOT_KNOWN for verdict in verdicts)
        right = "?" if unknown else sum(verdict.status == SOLVED for verdict in verdicts)
        counts.append(f"{right} of {len(verdicts)}" if verdicts else "–")
    minutes = sum(v.part.minutes for *_, v in entries if v.status in UNDONE)
    wrong = [v.part.functions[0] for *_, v in entries if v.status == MISTAKEN]
    if lesson == "all":
        left, wrong = f"{minutes / 60:.0f} h", [str(len(wrong))] if wrong else []
    else:
        left = f"{minutes} min"
    named = f"  WRONG {', '.join(wrong)}" if wrong else ""
    return f"{lesson:<8}{counts[0]:>10}{counts[1]:>12}{left:>14}{named}"


def _as_dict(entries, paths, errors):
    """The same for programs.

    ``counts`` of each status, ``minutes_left``, ``errors`` by exercise, and ``parts``: of each its
    ``lesson``, ``exercise``, ``file``, ``part``, ``minutes``, ``status`` and ``explanation``.
    """
    parts = [
        {
            "lesson": lesson,
            "exercise": name,
            "file": paths.get(name),
            "part": verdict.part.functions[0],
            "minutes": verdict.part.minutes,
            "status": verdict.status,
            "explanation": verdict.explanation,
        }
        for lesson, name, verdict in entries
    ]
    counts = {
        status: sum(part["status"] == status for part in parts)
        for status in (SOLVED, *UNDONE, NOT_KNOWN)
    }
    left = sum(part["minutes"] for part in parts if part["status"] in UNDONE)
    return {"counts": counts, "minutes_left": left, "errors": errors, "parts": parts}


def _report(name, path):
    """The ExerciseReport on the file of an exercise.

    Raises:
        CheckError, MissingLibraryError: it cannot be checked.
    """
    if name == "own":
        return check_own(timely(OwnFile, path), say=print)
    functions = vars(timely(load_file, path))
    names = [name for part in parts_of(name) for name in part.functions]
    if functions.keys().isdisjoint(names):
        raise CheckError(f"{path} has no function of {name}, such as {names[0]}")
    return check_exercise(name, functions)


def _note_original(path):
    if path.parts[:2] == ("lessons", "exercises"):
        print(
            f"{path} is the original; your copy: cp -r lessons/exercises answers", file=sys.stderr
        )


def _full_name(path):
    """``ex07`` for 7, 07, ex7 and the path of its file as well."""
    name = path.stem
    number = name.removeprefix("ex")
    return f"ex{int(number):02}" if number.isdecimal() else name


def _find(file_name):
    path = find_answers(file_name)
    if path is None:
        paths = ", ".join(str(Path(folder) / file_name) for folder in FOLDERS)
        raise CheckError(
            f"there is no {paths} here; change to the folder of the project, or say where yours "
            "is: --file PATH"
        )
    return path
