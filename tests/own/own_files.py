"""What these tests share: files of a learner's, made of the solution."""

import ast
from pathlib import Path

from minitransformer.exercises import parts_of

SOLUTION = Path(__file__).parents[2] / "lessons/solutions/own.py"
STUBS = Path(__file__).parents[2] / "lessons/exercises/own.py"
PARTS = {part.functions[0]: part.functions for part in parts_of("own")}


def solution_with(path, old="", new=""):
    """The solution, written to ``path``, with a text that occurs in it once replaced."""
    text = SOLUTION.read_text(encoding="utf-8")
    assert not old or text.count(old) == 1
    path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
    return path


def solution_of_only(path, *names):
    """The solution of these parts alone, written to ``path``; the other functions are stubs."""
    kept = {function for name in names for function in PARTS[name]}
    every = {function for functions in PARTS.values() for function in functions}
    tree = ast.parse(SOLUTION.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in every - kept:
            node.body = ast.parse("raise NotImplementedError").body
    path.write_text(ast.unparse(tree), encoding="utf-8")
    return path
