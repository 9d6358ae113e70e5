"""A slip in a function of ``own.py`` is blamed on that function alone; so it is in a training."""

import ast
from functools import wraps
from types import SimpleNamespace

import numpy as np
import pytest
from attempts import attempts
from exercise_files import definitions_in, written
from own_files import (
    PART_OF,
    PARTS,
    RUNNING,
    SOLUTION,
    functions_with,
    text_with,
    wrong_parts,
)
from training_in_miniature import train

from minitransformer.core.interrupts import Stopped
from minitransformer.course.exercises import check_exercise
from minitransformer.course.exercises.parts import RIGHT, WRONG, judge
from minitransformer.course.own import own
from minitransformer.course.own.training import explained
from minitransformer.gradcheck import CheckError

DEFINITIONS = definitions_in(SOLUTION)
SLIPS = {function: slip for function, slip, _ in reversed(attempts("WRONG", "own"))}  # the first


def test_of_a_gradient_that_is_right_nothing_is_hinted():
    no_dropout = {"dropout_backward(dweights, dropout_cache)": "dweights"}
    functions = functions_with(scaled_dot_product_attention_backward=no_dropout)
    said = judge(PART_OF["scaled_dot_product_attention"], functions).explanation
    assert "back through the dropout" in said.replace("\n", " ")
    assert "the values are multiplied" not in said


@pytest.mark.parametrize("slip", ["1 / sigma", "gamma"])
def test_where_all_terms_are_right_but_for_a_factor_they_are_not_explained(slip):
    functions = functions_with(batch_norm_backward={"gamma / sigma": slip})
    said = judge(PART_OF["batch_norm"], functions).explanation
    assert "factor" in said
    assert "two of the three terms" not in said.replace("\n", " ")


def test_weights_that_sum_to_0_are_wrong_and_nobody_is_warned_of_0_by_0():
    functions = functions_with(softmax={"x.max(axis=-1, keepdims=True)": "x.max()"})
    assert judge(PART_OF["softmax"], functions).status == WRONG


def test_where_the_text_of_a_file_is_gone_its_values_are_named():
    functions = functions_with(layer_norm_backward={"dx_hat - through_mean": "dx_hat"})
    said = str(check_exercise("own", functions))
    assert "the path through `mean`" in said


def test_what_is_written_otherwise_is_right_for_all_that_call_it():
    first = {function: answer for function, answer, _ in reversed(attempts("RIGHT", "own"))}
    slips = {function: answer for function, answer in first.items() if isinstance(answer, dict)}
    functions = functions_with(**slips) | {name: first[name] for name in first.keys() - slips}
    assert wrong_parts(functions) == set()


NOTED = "linear relu softmax cross_entropy embedding positional_encoding layer_norm dropout "
NOTED += "rms_norm silu swiglu rotary convolution_2d max_pooling batch_norm"


@pytest.mark.parametrize("function", [*NOTED.split(), "scaled_dot_product_attention"])
@pytest.mark.parametrize("which", ["", "_backward"])
def test_what_is_right_and_makes_float64_of_float32_is_told_so(function, which):
    functions = functions_with()
    right = functions[f"{function}{which}"]
    functions[f"{function}{which}"] = wraps(right)(lambda *inputs: widened(right(*inputs)))
    verdict = judge(PART_OF[function], functions)
    assert verdict.status == RIGHT
    assert verdict.explanation.startswith(f"{function}{which} makes float64 of float32, which")


def widened(value):
    if isinstance(value, tuple):
        return tuple(map(widened, value))
    return value.astype(np.float64) if getattr(value, "dtype", "") == np.float32 else value


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
    callers = {
        part.functions[0]
        for part in PARTS
        if any(function in needed_by(name) for name in part.functions)
    }
    wrong = wrong_parts(functions_with(**{function: SLIPS[function]}))
    assert PART_OF[function].functions[0] in wrong <= callers


def test_slips_in_many_functions_at_once_make_no_other_part_wrong():
    nobody_calls = {
        function: part.functions[0]
        for function, part in PART_OF.items()
        if not any(function in called_by(other) for other in DEFINITIONS)
    }
    assert len(nobody_calls) > 10
    slips = {function: SLIPS[function] for function in nobody_calls}
    assert wrong_parts(functions_with(**slips)) == set(nobody_calls.values())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what is wrong may overflow
@pytest.mark.parametrize("function", sorted(RUNNING))
def test_with_a_slip_a_training_goes_on_or_says_why_it_does_not(tmp_path, function):
    path = written(tmp_path / "own.py", text_with(**{function: SLIPS[function]}))
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


@pytest.mark.parametrize(("wrong", "error", "raised"), [
    ([], ValueError("shapes"), ValueError),
    (["attention"], ValueError("shapes"), CheckError),
    (["attention"], OSError("disk full"), OSError),  # the system's, whatever is wrong
    (["attention"], MemoryError("no memory"), MemoryError),
    (["attention"], Stopped(2), Stopped),  # the user's
])  # fmt: skip
def test_only_what_may_come_of_a_wrong_function_is_said_to(wrong, error, raised):
    with pytest.raises(raised, match=str(error)), explained(SimpleNamespace(wrong=wrong)):
        raise error
