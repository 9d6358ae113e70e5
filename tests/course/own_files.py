"""What these tests share: the learner's file ``own.py``, with a slip, or in part."""

import ast
from functools import partial

import exercise_files
from exercise_files import solution_of, stub_of, written

from minitransformer.commands.cli import main
from minitransformer.course.exercises import check_exercise, parts_of
from minitransformer.course.exercises.parts import RIGHT, WRONG
from minitransformer.course.own.package import parts_of_the_transformer

SOLUTION, STUBS = solution_of("own"), stub_of("own")
PARTS = parts_of("own")
FUNCTIONS = {part.functions[0]: part.functions for part in PARTS}
PART_OF = {function: part for part in PARTS for function in part.functions}
# On which trainings run: the first part of the file, a whole Transformer.
RUNNING = {function for part in parts_of_the_transformer() for function in part.functions}
TEXT = SOLUTION.read_text(encoding="utf-8")
text_with = partial(exercise_files.text_with, "own")


def command(*arguments):
    """What a command ends with; arguments may be paths and numbers."""
    return main([*map(str, arguments)])


def losses(log):
    """The losses of a training, by step."""
    return {e["step"]: e["loss"] for e in log.entries() if e["kind"] == "train"}


def functions_with(**slips):
    """The functions of such a file, by their names."""
    functions = {}
    exec(compile(text_with(**slips), "own.py", "exec"), functions)
    return functions


def solution_of_only(path, *names, text=TEXT):
    """The solution, or its text with slips, of these parts alone, written to ``path``.

    The other functions are stubs. So they are not checked, and the package's run in their place.
    """
    kept = {function for name in names for function in FUNCTIONS[name]}
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in PART_OF.keys() - kept:
            node.body = ast.parse("raise NotImplementedError").body
    return written(path, ast.unparse(tree))


def wrong_parts(functions):
    """The names of the parts that are wrong."""
    verdicts = check_exercise("own", functions).verdicts
    assert {verdict.status for verdict in verdicts} <= {RIGHT, WRONG}
    return {verdict.part.functions[0] for verdict in verdicts if verdict.status == WRONG}
