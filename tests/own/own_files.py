"""What these tests share: the learner's file, filled in, with a slip, or in part."""

import ast
from pathlib import Path

from minitransformer.course.exercises import check_exercise, parts_of
from minitransformer.course.exercises.parts import RIGHT, WRONG

LESSONS = Path(__file__).parents[2] / "lessons"
SOLUTION = LESSONS / "solutions/own.py"
STUBS = LESSONS / "exercises/own.py"
PARTS = parts_of("own")
FUNCTIONS = {part.functions[0]: part.functions for part in PARTS}
PART_OF = {function: part for part in PARTS for function in part.functions}
TEXT = SOLUTION.read_text(encoding="utf-8")
DEFINITIONS = {
    node.name: ast.get_source_segment(TEXT, node)
    for node in ast.parse(TEXT).body
    if isinstance(node, ast.FunctionDef)
}


def text_with(*changes):
    """The solution with some changes: (function, what is there, what instead)."""
    changed = dict(DEFINITIONS)
    for function, old, new in changes:
        assert changed[function].count(old) == 1
        changed[function] = changed[function].replace(old, new)
    text = TEXT
    for function, definition in DEFINITIONS.items():
        text = text.replace(definition, changed[function])
    return text


def functions_with(*changes):
    """The functions of such a file, by their names."""
    functions = {}
    exec(compile(text_with(*changes), "own.py", "exec"), functions)
    return functions


def written(path, text):
    """``path``, with the text written to it."""
    path.write_text(text, encoding="utf-8")
    return path


def solution_of_only(path, *names):
    """The solution of these parts alone, written to ``path``; the other functions are stubs."""
    kept = {function for name in names for function in FUNCTIONS[name]}
    tree = ast.parse(TEXT)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in PART_OF.keys() - kept:
            node.body = ast.parse("raise NotImplementedError").body
    return written(path, ast.unparse(tree))


def wrong_parts(functions):
    """The names of the parts that are wrong."""
    verdicts = check_exercise("own", functions).verdicts
    assert {verdict.status for verdict in verdicts} <= {RIGHT, WRONG}
    return {verdict.part.functions[0] for verdict in verdicts if verdict.status == WRONG}
