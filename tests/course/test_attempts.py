"""Plausible wrong answers to the exercises are told what is wrong with them, right ones pass."""

import importlib

import pytest
from exercise_files import text_with, verdict_with

from minitransformer.course.exercises import exercise_names, parts_of
from minitransformer.course.exercises.parts import RIGHT, WRONG

ATTEMPTS = {name: importlib.import_module(f"attempts.{name}") for name in exercise_names()}


def rows(table):
    """Exercise, function and row of all answers in the tables of that name."""
    return [
        pytest.param(name, function, row, id=f"{name}-{function}-{i}")
        for name, answers in ATTEMPTS.items()
        for function, of_function in getattr(answers, table, {}).items()
        for i, row in enumerate(of_function)
    ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # nobody who overflows is stopped by one
@pytest.mark.parametrize(("name", "function", "row"), rows("WRONG"))
def test_a_wrong_answer_is_told_what_is_wrong_with_it(name, function, row, tmp_path):
    answer, *says = row
    verdict = verdict_with(name, function, answer, tmp_path)
    assert verdict.status == WRONG
    for text in says:
        assert text in verdict.explanation
    assert "not checked" not in verdict.explanation  # of what is no gradient


@pytest.mark.parametrize(("name", "function", "row"), rows("RIGHT"))
def test_what_is_written_otherwise_is_right(name, function, row, tmp_path):
    answer, *says = row
    verdict = verdict_with(name, function, answer, tmp_path)
    assert verdict.status == RIGHT
    assert bool(verdict.explanation) == bool(says)
    for text in says:
        assert text in verdict.explanation


@pytest.mark.parametrize(
    ("slip", "says"),
    [
        ({"dx / d": "dx"}, "stands 0 times"),
        ({"c": "d"}, "stands 6 times"),
        ({"dx / c": "dx / c"}, "changes nothing"),
    ],
)
def test_a_slip_in_what_does_not_stand_there_once_or_that_is_none_is_an_error(slip, says):
    with pytest.raises(ValueError, match=says):
        text_with("ex07", dx_when_scaled=slip)


@pytest.mark.parametrize("name", exercise_names())
def test_each_function_has_a_wrong_answer(name):
    assert ATTEMPTS[name].WRONG.keys() >= {f for part in parts_of(name) for f in part.functions}
