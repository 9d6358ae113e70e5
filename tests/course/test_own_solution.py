"""The solution of ``own.py`` is right, and computes what the package does."""

import ast
import dataclasses
import inspect

import numpy as np
import pytest
from own_files import PART_OF, PARTS, SOLUTION, STUBS, functions_with

from minitransformer.cases.case import (
    LABELS,
    NOTHING_ALLOWED,
    SOURCE,
    SOURCE_MASK,
    TARGET_MASK,
    B,
    D,
    F,
    H,
    K,
    S,
    T,
    V,
)
from minitransformer.cases.models import small_config
from minitransformer.course.own.package import CALLED_ALIKE
from minitransformer.data.text.vocabulary import BOS, EOS, PAD
from minitransformer.gradcheck.learner import load_file
from minitransformer.models.stacks import DecoderLayer, EncoderLayer

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


def drawn(*shapes):
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


def rng():
    return np.random.default_rng(1)


HEADS = drawn((B, H, T, K), (B, H, S, K), (B, H, S, K))
LINEAR_MAPS = drawn((D, F), (F,), (F, D), (D,))
PAIRS = {
    "linear": drawn((B, T, D), (D, F), (F,)),
    "relu": drawn((B, T, D)),
    "softmax": (*drawn((B, H, T, S)), NOTHING_ALLOWED),
    "cross_entropy": (*drawn((B, T, V)), LABELS, 0.1, 0, 20),
    "embedding": (SOURCE, *drawn((V, D))),
    "positional_encoding": drawn((B, T, D), (T + 2, D)),
    "layer_norm": drawn((B, T, D), (D,), (D,)),
    "scaled_dot_product_attention": (*HEADS, SOURCE_MASK, 0.3),
    "multi_head_attention": (*drawn(*[(B, S, D)] * 3, *[(D, D)] * 4), H, SOURCE_MASK, 0.3),
    "residual": (*drawn((B, T, D), (B, T, D)), 0.3),
    "feed_forward": (*drawn((B, T, D)), *LINEAR_MAPS, 0.3),
    "dropout": (*drawn((B, T, D)), 0.3),
}


def y_and_gradients(functions, name):
    """All numbers that come out of a pair for float32 inputs."""
    draws = "rng" in inspect.signature(CALLED_ALIKE[name]).parameters
    y, cache = functions[name](*PAIRS[name], *([rng()] if draws else []))
    dy = np.float32(0.5) if name == "cross_entropy" else drawn(y.shape)[0]
    return [*in_tuple(y), *in_tuple(functions[f"{name}_backward"](dy, cache))]


def in_tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("name", PAIRS)
def test_the_solution_computes_the_same_bits_as_the_package_in_float32(name):
    mine, theirs = (y_and_gradients(functions, name) for functions in (MINE, CALLED_ALIKE))
    for array, expected in zip(mine, theirs, strict=True):
        assert array.dtype == expected.dtype == np.float32
        assert np.array_equal(array, expected)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    ("name", "module", "inputs", "given_masks"),
    [
        ("encoder_layer", EncoderLayer, drawn((B, S, D)), (SOURCE_MASK,)),
        ("decoder_layer", DecoderLayer, drawn((B, T, D), (B, S, D)), (TARGET_MASK, SOURCE_MASK)),
    ],
    ids=["encoder", "decoder"],
)
def test_a_layer_of_the_solution_computes_the_same_bits_as_the_module(
    name, module, inputs, given_masks, norm
):
    config = dataclasses.replace(small_config(norm), dropout=0.3, attention_dropout=0.1)
    layer = module(config, rng())
    y, cache = layer.forward(*inputs, *given_masks, rng())
    (dy,) = drawn(y.shape)
    of_inputs = in_tuple(layer.backward(dy, cache))
    parameters = [parameter for _, parameter in layer.named_parameters()]

    weights = iter(parameter.data for parameter in parameters)
    sizes = [4, 2] * (len(parameters) // 6)  # a sublayer and its LayerNorm, again and again
    groups = [tuple(next(weights) for _ in range(size)) for size in sizes]
    options = norm == "pre", config.epsilon, 0.3, 0.1, config.feed_forward_dropout
    mine, cache = MINE[name](*inputs, *groups, H, *given_masks, *options, rng())
    gradients = MINE[f"{name}_backward"](dy, cache)
    mine = [mine, *gradients[: len(inputs)], *sum(gradients[len(inputs) :], ())]
    theirs = [y, *of_inputs, *(parameter.grad for parameter in parameters)]
    for array, expected in zip(mine, theirs, strict=True):
        assert array.dtype == np.float32
        assert np.array_equal(array, expected)
