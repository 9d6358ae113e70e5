"""Every exercise: its solution passes, its untouched stub does not, and junk breaks nothing."""

import ast
import inspect
import re

import numpy as np
import pytest
from exercise_files import LESSONS, functions_in, solution_of, stub_of

from minitransformer import Transformer, TransformerConfig
from minitransformer.course.exercises import check_exercise, exercise_names, parts_of
from minitransformer.course.exercises.parts import RIGHT, TO_DO, WRONG, Answer, expect, judge
from minitransformer.course.own.package import CALLED_ALIKE
from minitransformer.data.text.vocabulary import BOS, EOS, PAD
from minitransformer.decoding import cross_attention
from minitransformer.gradcheck import CheckError
from minitransformer.layers.attention import split_heads
from minitransformer.layers.linear import linear

each_exercise = pytest.mark.parametrize("name", exercise_names())


@each_exercise
def test_the_solution_is_right_and_nothing_is_said_of_it(name):
    verdicts = check_exercise(name, functions_in(solution_of(name))).verdicts
    assert {(verdict.status, verdict.explanation) for verdict in verdicts} == {(RIGHT, "")}


@each_exercise
def test_the_untouched_stub_is_to_do(name):
    report = check_exercise(name, functions_in(stub_of(name)))
    assert {verdict.status for verdict in report.verdicts} == {TO_DO}


def test_every_stub_has_a_check_and_a_solution():
    for folder in ("exercises", "solutions"):
        assert [path.stem for path in sorted((LESSONS / folder).glob("*.py"))] == exercise_names()


@each_exercise
def test_the_stub_says_how_long_each_part_may_take(name):
    stub = functions_in(stub_of(name))
    for part in parts_of(name):
        assert part.minutes in (10, 25, 45, 90)
        assert stub[part.functions[0]].__doc__.startswith(f"{part.minutes} min")


@each_exercise
def test_what_a_stub_recommends_is_imported_in_its_file(name):
    recommended = re.findall(r"``(math|np)\.(\w+)``", stub_of(name).read_text(encoding="utf-8"))
    stub = functions_in(stub_of(name))
    assert [f"{m}.{f}" for m, f in recommended if not hasattr(stub.get(m), f)] == []


# The last arguments of the package's function, which that of ``own`` does without.
LEFT_OUT = {"convolution_2d": ["dilation", "groups"]}


@each_exercise
def test_stub_and_solution_take_the_same_arguments(name):
    """More may have a default; those of ``own`` have none more than the package's functions."""
    stub, solution = functions_in(stub_of(name)), functions_in(solution_of(name))
    for function in (function for part in parts_of(name) for function in part.functions):
        taken, of_solution, of_package = (
            list(inspect.signature(f).parameters.values())
            for f in (
                stub[function],
                solution[function],
                CALLED_ALIKE.get(function, stub[function]),
            )
        )
        if name == "own":
            left_out = LEFT_OUT.get(function, [])
            assert [p.name for p in of_package[len(taken) :]] == left_out
            assert taken == of_solution == of_package[: len(taken)]
        assert [p.name for p in of_solution][: len(taken)] == [p.name for p in taken]


@pytest.mark.parametrize("path", [stub_of("own"), solution_of("own")], ids=["stub", "solution"])
def test_own_needs_numpy_alone_and_has_the_ids_of_the_vocabulary(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(isinstance(node, ast.Import) for node in imports)
    assert {alias.name for node in imports for alias in node.names} <= {"math", "numpy"}
    functions = functions_in(path)
    assert (functions["PAD"], functions["BOS"], functions["EOS"]) == (PAD, BOS, EOS)


def test_the_stubs_of_own_stand_in_the_order_of_the_lessons_and_name_them():
    stub, parts = functions_in(stub_of("own")), parts_of("own")
    part_of = {function: part for part in parts for function in part.functions}
    assert sorted(parts, key=lambda part: part.lesson) == parts
    assert list(dict.fromkeys(part_of[name] for name in stub if name in part_of)) == parts
    for part in parts:
        assert f"(lesson {part.lesson})" in stub[part.functions[0]].__doc__


def breaks(*arguments):
    raise RuntimeError("on purpose")  # NotImplementedError is one


JUNK = {
    "raises": breaks,
    "None": lambda *_: None,
    "text": lambda *_: "text",
    "ragged": lambda *_: [[1.0], [1.0, 2.0]],
    "a number": lambda *_: 17.5,
    "an array": lambda *_: np.ones((2, 3, 1)),
    "nothing in an array": lambda *_: np.zeros(0),
    "a pair": lambda *_: (np.ones((3, 5, 8)), (np.ones(3),)),
    "NaN": lambda *_: (np.full((3, 5, 8), np.nan), ()),
    "ends the program": lambda *_: exit(),
}


@each_exercise
@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_whatever_an_answer_returns_it_is_wrong_and_breaks_nothing(name, junk):
    """Nor does a backward of a right forward."""
    functions = {function: junk for part in parts_of(name) for function in part.functions}
    backwards = {f: junk for f in functions if f.endswith("_backward")}
    for part in parts_of(name):
        verdict = judge(part, functions)
        assert verdict.status == WRONG
        assert verdict.explanation
        if part.functions[-1] in backwards:
            assert judge(part, functions_in(solution_of(name)) | backwards).status == WRONG


@each_exercise
def test_a_half_written_answer_is_to_do(name):
    solution = functions_in(solution_of(name))
    for part in parts_of(name):
        for missing in part.functions:
            functions = {key: solution[key] for key in part.functions if key != missing}
            status = {
                v.part.functions[0]: v.status for v in check_exercise(name, functions).verdicts
            }
            assert status[part.functions[0]] == TO_DO


@pytest.mark.parametrize(("given", "expected", "says"), [
    (1.0, [1.0, 2.0], r"v has the shape \(\) and should have \(2,\)"),
    ([1.0, 3.0], [1.0, 2.0], r"v is 3 at index \(1,\) and should be 2; why"),
    ([1.0, np.nan], [1.0, 2.0], r"v is nan at index \(1,\)"),
    (np.array([True, False]), np.array([True, True]), r"v is False at .* should be True; why"),
    ([1.0, 5.0], [1.0, -0.0], r"v is 5 at index \(1,\) and should be 0; why"),
    (2.0, 1.0, "v is 2 and should be 1; why"),
    (None, [1.0], "v is None: is its `return` missing?"),
    ("no", 1.0, "v is str; expected a number"),
    ("no", [1.0], r"v is str; expected an array of shape \(1,\)"),
])  # fmt: skip
def test_what_is_not_as_expected_is_said(given, expected, says):
    with pytest.raises(CheckError, match=says):
        expect("v", given, expected, hint="why")


def test_what_is_as_expected_within_the_tolerance_passes():
    expect("v", [1.0, 2.0 + 1e-10], [1.0, 2.0])
    with pytest.raises(CheckError):
        expect("v", [1.0, 2.0 + 3e-9], [1.0, 2.0])


@pytest.mark.parametrize(("forward", "says"), [
    (lambda x: x, "f must return its result and the cache; it returned ndarray"),
    (lambda x: (x, x, x), "f must return its result and the cache; it returned a tuple of 3"),
    (lambda x: [x, x], "f must return its result and the cache; it returned list"),
    (lambda x: None, "f must return .* None: is its `return` missing?"),
    (lambda x: (x, x), "the cache of f must be a tuple"),
    (lambda x: (x.sort(), ()), "read-only"),
])  # fmt: skip
def test_a_forward_that_returns_something_else_or_writes_to_its_inputs_is_told(forward, says):
    with pytest.raises(CheckError, match=says):
        Answer("f", forward).y_and_cache(np.arange(3.0), cache_type=tuple)


def test_an_answer_that_fails_is_named_with_what_it_was_given():
    with pytest.raises(CheckError, match=r"f\(0, \[1.0, 2.0\]\) raised ZeroDivisionError"):
        Answer("f", lambda x, _: 1 / x).expect((0, np.array([1.0, 2.0])), 1)


def test_a_cache_is_the_learners_own_unless_the_check_looks_into_it():
    x = np.arange(3.0)
    y, cache = Answer("f", lambda x: (2 * x, x)).y_and_cache(x)
    assert (y == 2 * x).all()
    assert (cache == x).all()


def test_the_answers_of_exercise_01_are_what_a_model_has():
    solution = functions_in(solution_of("ex01"))
    B, S, T, D, H, F, V, N = 2, 5, 4, 12, 3, 20, 17, 2
    model = Transformer(
        TransformerConfig.preset(
            "toy", V, d_model=D, num_heads=H, d_ff=F, num_encoder_layers=N, num_decoder_layers=N
        )
    )
    assert solution["count_parameters"](V, D, F, N) == model.num_parameters()

    source, target = np.ones((B, S), int), np.ones((B, T), int)
    logits, _ = model.forward(source, target)
    _, ((_, (encoder, _)), (_, (decoder, _))) = model.features(source, target)
    memory, _ = model.encode(source, model.source_mask(source))
    weights = {
        "encoder_weights": encoder[0][0][1][4][-1],
        "decoder_weights": decoder[0][0][1][4][-1],
        "cross_weights": cross_attention(model, source, target)[0],
    }
    cross, network = model.decoder.layers[0].cross_attention, model.encoder.layers[0].feed_forward
    arrays = weights | {
        "memory": memory,
        "inside": linear(memory, network.w_1.data)[0],
        "cross_keys": split_heads(linear(memory, cross.w_key.data)[0], H),
        "logits": logits,
    }
    shapes = {name: array.shape for name, array in arrays.items()}
    assert solution["shapes_in_the_model"](B, S, T, D, H, F, V) == shapes
