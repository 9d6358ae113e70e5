"""What the files of ``own.py``, the stubs and the solution, have in common with the package."""

import ast
import inspect

import pytest
from own_files import PART_OF, PARTS, SOLUTION, STUBS, functions_with

from minitransformer.course.own.package import CALLED_ALIKE
from minitransformer.data.text.vocabulary import BOS, EOS, PAD
from minitransformer.gradcheck.learner import load_file

MINE = functions_with()


def test_stub_and_solution_have_the_signatures_that_the_package_has():
    stub = vars(load_file(STUBS))
    for name in PART_OF:
        signature = inspect.signature(stub[name])
        assert inspect.signature(MINE[name]) == signature
        if name in CALLED_ALIKE:
            theirs = inspect.signature(CALLED_ALIKE[name]).parameters.values()
            assert list(signature.parameters.values()) == list(theirs)


@pytest.mark.parametrize("path", [STUBS, SOLUTION], ids=["stub", "solution"])
def test_the_file_needs_numpy_alone(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(isinstance(node, ast.Import) for node in imports)
    assert {alias.name for node in imports for alias in node.names} <= {"math", "numpy"}


def test_the_file_has_the_ids_of_the_vocabulary():
    for functions in (vars(load_file(STUBS)), MINE):
        assert (functions["PAD"], functions["BOS"], functions["EOS"]) == (PAD, BOS, EOS)


def test_the_stubs_stand_in_the_order_of_the_lessons_and_name_them():
    stub = vars(load_file(STUBS))
    lessons = [part.lesson for part in PARTS]
    assert lessons == sorted(lessons)
    assert list(dict.fromkeys(PART_OF[name] for name in stub if name in PART_OF)) == PARTS
    for part in PARTS:
        assert f"(lesson {part.lesson})" in stub[part.functions[0]].__doc__
