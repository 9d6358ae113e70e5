"""What the tests of exercises share: where files are, the learner's with a slip, and verdicts."""

import ast
from functools import cache
from pathlib import Path

from minitransformer.course.exercises import parts_of
from minitransformer.course.exercises.parts import judge
from minitransformer.gradcheck.learner import load_file

LESSONS = Path(__file__).parents[2] / "lessons"


def stub_of(name):
    return LESSONS / "exercises" / f"{name}.py"


def solution_of(name):
    return LESSONS / "solutions" / f"{name}.py"


@cache
def functions_in(path):
    """The functions of a file that stays as it is, and whatever else it has, by their names."""
    return vars(load_file(path))


@cache
def definitions_in(path):
    """The text of each function of a file, by its name."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return {node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in functions}


def text_with(name, **slips):
    """The solution of an exercise with slips in some functions: {what it says: what instead}.

    What a function does not say is looked for in its backward.

    Raises:
        ValueError: what is to be changed does not stand there once, or nothing changes.
    """
    text, now = solution_of(name).read_text(encoding="utf-8"), {**definitions_in(solution_of(name))}
    for function, slip in slips.items():
        for was, becomes in slip.items():
            pair = [f for f in (function, f"{function}_backward") if f in now]
            place = next((f for f in pair if was in now[f]), function)
            if now[place].count(was) != 1:
                raise ValueError(f"{was!r} stands {now[place].count(was)} times in\n{now[place]}")
            if was == becomes:
                raise ValueError(f"{slip} changes nothing")
            changed = now[place].replace(was, becomes)
            text, now[place] = text.replace(now[place], changed), changed
    return text


def written(path, text):
    """``path``, with the text written to it."""
    path.write_text(text, encoding="utf-8")
    return path


def part_with(name, function):
    """The Part of an exercise with that function, or the first that calls it."""
    of_part = {f: part for part in parts_of(name) for f in part.functions}
    texts = definitions_in(solution_of(name))
    caller = next(f for f in (function, *of_part) if f in of_part and f"{function}(" in texts[f])
    return of_part[caller]


def verdict_with(name, function, answer, folder):
    """The Verdict on the part that has the function, with that answer to it.

    Args:
        answer: a slip in the solution, as for ``text_with``, or another function.
        folder: where to write a file.
    """
    part = part_with(name, function)
    if isinstance(answer, dict):
        text = text_with(name, **{function: answer})
        return judge(part, functions_in(written(folder / f"{name}.py", text)))
    return judge(part, functions_in(solution_of(name)) | {function: answer})
