"""Plausible wrong answers to the exercises are told what is wrong with them, right ones pass."""

import re

import pytest
from attempts import attempts
from exercise_files import functions_in, solution_of, text_with, verdict_with
from made import MadeWrong

from minitransformer.course.exercises import exercise_names, parts_of
from minitransformer.course.exercises.parts import RIGHT, WRONG, judge

OTHERWISE = {  # backwards whose check compares gradients before the gradient checker does
    *("reversible_block_backward", "lean_stack_backward", "project_heads_backward"),
    *("embedding_backward", "cross_entropy_backward", "dropout_backward"),
    *("multi_head_attention_backward", "encoder_layer_backward", "decoder_layer_backward"),
    "grouped_query_attention_backward",
}
PAIRS = {
    part.functions[-1]: (name, part)
    for name in exercise_names()
    for part in parts_of(name)
    if part.functions[-1].endswith("_backward") and part.functions[-1] not in OTHERWISE
}


def each(table):
    """A test for each row of all tables of that name."""
    rows = [
        pytest.param(name, *row, id=f"{name}-{row[0]}-{i}")
        for name in exercise_names()
        for i, row in enumerate(attempts(table, name))
    ]
    return pytest.mark.parametrize(("name", "function", "answer", "says"), rows)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # nobody who overflows is stopped by one
@each("WRONG")
def test_a_wrong_answer_is_told_what_is_wrong_with_it(name, function, answer, says, tmp_path):
    verdict = verdict_with(name, function, answer, tmp_path)
    assert verdict.status == WRONG
    for text in says:
        assert text in verdict.explanation
    assert "not checked" not in verdict.explanation  # of what is no gradient
    assert " in `forward" not in verdict.explanation  # which is a line of the check


@each("RIGHT")
def test_what_is_written_otherwise_is_right(name, function, answer, says, tmp_path):
    verdict = verdict_with(name, function, answer, tmp_path)
    assert verdict.status == RIGHT
    assert bool(verdict.explanation) == bool(says)
    for text in says:
        assert text in verdict.explanation


@pytest.mark.parametrize("backward", PAIRS)
def test_of_a_slip_in_each_gradient_each_is_told(backward):
    name, part = PAIRS[backward]
    functions = functions_in(solution_of(name))
    made = MadeWrong(functions[backward], first=len(backward))
    verdict = judge(part, functions | {backward: made})
    assert verdict.status == WRONG
    assert len(re.findall(r"^WRONG  d\w+: ", verdict.explanation, re.M)) == len(made.kinds)


@pytest.mark.parametrize(("slip", "says"), [
    ({"dx / d": "dx"}, "stands 0 times"),
    ({"c": "d"}, "stands 6 times"),
    ({"dx / c": "dx / c"}, "changes nothing"),
])  # fmt: skip
def test_a_slip_in_what_does_not_stand_there_once_or_that_is_none_is_an_error(slip, says):
    with pytest.raises(ValueError, match=says):
        text_with("ex07", dx_when_scaled=slip)


@pytest.mark.parametrize("name", exercise_names())
def test_each_function_has_a_wrong_answer(name):
    attempted = {function for function, _, _ in attempts("WRONG", name)} | PAIRS.keys()
    assert attempted >= {function for part in parts_of(name) for function in part.functions}
