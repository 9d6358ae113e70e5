"""A slip in a function of ``own.py`` is told what it is, and nothing else is blamed for it."""

import ast

import pytest
from own_files import (
    DEFINITIONS,
    PART_OF,
    PARTS,
    functions_with,
    text_with,
    written,
    wrong_parts,
)
from own_slips import SLIPS, WIDENINGS
from training_in_miniature import train

from minitransformer.course.exercises import check_exercise
from minitransformer.course.exercises.parts import RIGHT, WRONG
from minitransformer.course.own import own
from minitransformer.course.own.training import explained
from minitransformer.gradcheck import CheckError


def verdict_with(function, old, new):
    """The Verdict on the part of a function, with that slip in it."""
    part = PART_OF.get(function, PART_OF["beam_search"])  # whose helper it is
    changed = functions_with((function, old, new))
    alone = {name: changed[name] for name in part.functions}  # the others are to do
    (verdict,) = (v for v in check_exercise("own", alone).verdicts if v.part == part)
    return verdict


@pytest.mark.parametrize(("function", "old", "new", "says"), SLIPS)
def test_a_slip_is_told_what_it_is(function, old, new, says):
    verdict = verdict_with(function, old, new)
    assert verdict.status == WRONG
    assert says in verdict.explanation
    assert "not checked" not in verdict.explanation  # of what is no gradient


@pytest.mark.parametrize(("function", "old", "new"), WIDENINGS)
def test_a_right_function_that_makes_float64_of_float32_is_told(function, old, new):
    verdict = verdict_with(function, old, new)
    assert verdict.status == RIGHT
    assert f"{function} makes float64 of float32" in str(verdict)


def test_nothing_is_said_of_the_solution():
    assert not any(v.explanation for v in check_exercise("own", functions_with()).verdicts)


def test_there_is_a_slip_for_each_function():
    assert {function for function, *_ in SLIPS} >= PART_OF.keys()


def called_by(function):
    """The functions of the solution that a function calls by their names."""
    nodes = ast.walk(ast.parse(DEFINITIONS[function]))
    return {node.id for node in nodes if isinstance(node, ast.Name)} & DEFINITIONS.keys()


def needed_by(function):
    """A function, and all that it calls, directly or not."""
    needed, more = set(), {function}
    while more:
        needed |= more
        more = set().union(*map(called_by, more)) - needed
    return needed


@pytest.mark.parametrize("function", ["linear", "softmax", "layer_norm", "dropout", "split_heads"])
def test_a_slip_makes_no_part_wrong_but_those_that_call_it(function):
    slip = next((f, old, new) for f, old, new, _ in SLIPS if f == function)
    callers = {
        part.functions[0]
        for part in PARTS
        if any(function in needed_by(name) for name in part.functions)
    }
    assert PART_OF[function].functions[0] in wrong_parts(functions_with(slip)) <= callers


def test_slips_in_many_functions_at_once_make_no_other_part_wrong():
    nobody_calls = {
        function: part.functions[0]
        for function, part in PART_OF.items()
        if not any(function in called_by(other) for other in DEFINITIONS)
    }
    slips = {f: (f, old, new) for f, old, new, _ in reversed(SLIPS) if f in nobody_calls}
    assert len(slips) > 10
    assert wrong_parts(functions_with(*slips.values())) == {nobody_calls[f] for f in slips}


ONE_OF_EACH = {f: (f, old, new) for f, old, new, _ in SLIPS if f in PART_OF}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what is wrong may overflow
@pytest.mark.parametrize(("function", "old", "new"), ONE_OF_EACH.values())
def test_with_a_slip_a_training_goes_on_or_says_why_it_does_not(tmp_path, function, old, new):
    path = written(tmp_path / "own.py", text_with((function, old, new)))
    error = ""
    with own(path) as mine:
        mine.wrong = [PART_OF[function].functions[0]]
        try:
            with explained(mine):
                train(2)
        except CheckError as raised:
            error = str(raised)
    assert function in mine.used
    assert not error or f"on a wrong {mine.wrong[0]}:" in error
