"""A learner's functions run in place of the package's: each of them, and nothing goes past it."""

import importlib.util
import inspect
import py_compile
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from exercise_files import written
from own_files import FUNCTIONS, PART_OF, RUNNING, SOLUTION, STUBS, solution_of_only, text_with
from rounding import additions_of, assert_but_for_rounding
from strict_cupy import strict
from training_in_miniature import MODELS, OF_TRANSLATORS, UNUSED, batch, tiny_model, train

from minitransformer.accelerate.cpu.layer_norm import layer_norm as layer_norm_twin
from minitransformer.core.backend import to_host
from minitransformer.core.errors import InputError
from minitransformer.core.twins import TwinCache, accelerated
from minitransformer.core.workers import Workers
from minitransformer.course.own import OwnFile, own, package
from minitransformer.course.own.training import checked
from minitransformer.decoding import beam_search, greedy, translate_ids
from minitransformer.gradcheck import CheckError
from minitransformer.layers.feed_forward import feed_forward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.relu import relu
from minitransformer.tasks.task import one_pass

X = np.linspace(-2, 3, 12).reshape(3, 4)
WEIGHTS = {"gamma": np.linspace(0.5, 2, 4), "beta": np.linspace(-1, 1, 4)}
FIRST = [name for name in FUNCTIONS if name in RUNNING]
EACH = [("transformer", norm, name) for norm in ("pre", "post") for name in FIRST]
EACH += [("language model", "pre", name) for name in FIRST if name not in OF_TRANSLATORS]


@pytest.mark.parametrize(("kind", "norm", "name"), EACH)
def test_each_function_alone_is_called_and_nothing_goes_past_it(tmp_path, kind, norm, name):
    """Even where twins are awake, some of which compute what is within a composite themselves."""
    with own(solution_of_only(tmp_path / "own.py", name)) as mine, accelerated():
        train(1, norm, kind)
    assert [part.functions[0] for part in mine.written] == [name]
    learned = {"sinusoidal_encoding"} if kind == "language model" else set()  # its positions are
    assert mine.used == set(FUNCTIONS[name]) - learned
    assert mine.others.isdisjoint(FUNCTIONS[name])


def test_the_text_of_what_stands_in_is_that_of_its_def_with_decorators(tmp_path):
    path = tmp_path / "own.py"
    relu, backward = (
        "@abs_too\ndef relu(x):  # ä\n    return x, x",
        "def relu_backward(dy, x): return dy",
    )
    softmax = "def softmax(x):\n    raise NotImplementedError"
    linear = "def linear(x, weight, bias=None):\n    return x, x"  # without its backward
    parts = ["abs_too = lambda f: f", "def relu(x): return 1, 1", relu, backward, softmax, linear]
    path.write_text("\n\n".join(parts), encoding="utf-8-sig")
    assert OwnFile(path).sources() == {"relu": relu, "relu_backward": backward}
    path.write_text("relu = abs\nrelu_backward = abs\n")
    assert OwnFile(path).sources() == {}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_whole_file_trains_as_the_package_does_to_the_last_bit(kind, norm):
    losses, grads, found = train(3, norm, kind)
    entered = set()
    with own(SOLUTION) as mine:
        sys.setprofile(lambda frame, event, _: entered.add(frame.f_code))  # Python's own word
        try:
            own_losses, own_grads, own_found = train(3, norm, kind)
        finally:
            sys.setprofile(None)
    assert own_losses == losses
    assert np.array_equal(own_grads, grads)
    assert own_found == found
    assert mine.used == RUNNING - UNUSED[kind]
    assert mine.others == set()
    bodies = {name: inspect.unwrap(package.FUNCTIONS[name]).__code__ for name in RUNNING}
    assert [name for name, code in bodies.items() if code in entered] == []


@pytest.mark.parametrize(("kind", "slip"), [
    ("transformer", dict(layer_norm_backward={" - through_mean - through_sigma": ""})),
    ("language model", dict(causal_mask={"<=": ">="})),
    ("language model", dict(embedding_backward={"* scale": "* 1"})),
    ("language model", dict(encoder_layer={"    attention_c": "    x *= 2\n    attention_c"})),
    ("language model", dict(positional_encoding={"x + table": "x - table"})),
    ("language model", dict(positional_encoding_backward={"return dy": "return 2 * dy"})),
])  # fmt: skip
def test_a_wrong_function_is_felt(tmp_path, kind, slip):
    _, [grad], _ = train(1, kind=kind)
    with own(written(tmp_path / "own.py", text_with(**slip))):
        _, [wrong], _ = train(1, kind=kind)
    assert abs(wrong - grad).max() > 1e-2 * abs(grad).max()


def test_what_a_written_function_calls_may_be_a_stub(tmp_path):
    weights = [np.ones(shape) for shape in ((4, 6), 6, (6, 4), 4)]
    expected, _ = feed_forward(X, *weights)
    with own(solution_of_only(tmp_path / "own.py", "feed_forward")) as mine:
        y, _ = feed_forward(X, *weights)
    np.testing.assert_allclose(y, expected)
    assert mine.used == {"feed_forward"}
    assert mine.others == {"linear", "relu", "dropout"}


def test_twins_sleep_while_functions_of_a_learner_stand_in():
    assert layer_norm.twins["numpy"].forward is layer_norm_twin
    with accelerated():
        with own(STUBS) as mine:
            _, cache = layer_norm(X, **WEIGHTS)
        assert len(cache) == 3  # the reference's: x_hat, sigma, gamma
        assert not isinstance(cache, TwinCache)
        assert mine.others == {"layer_norm"}
        _, cache = layer_norm(X, **WEIGHTS)
    assert isinstance(cache, TwinCache)


def test_a_cache_of_a_learners_goes_to_the_learners_backward_afterwards():
    dy = np.random.default_rng(1).standard_normal(X.shape)
    _, cache = layer_norm(X, **WEIGHTS)
    expected = layer_norm_backward(dy, cache)
    with own(SOLUTION) as mine:
        _, cache = layer_norm(X, **WEIGHTS)
    mine.used.clear()
    for gradient, right in zip(layer_norm_backward(dy, cache), expected, strict=True):
        np.testing.assert_allclose(gradient, right)
    assert mine.used == {"layer_norm_backward"}


def test_they_stand_in_for_the_workers_of_their_thread_and_for_no_other_thread():
    seen = []
    with own(SOLUTION) as mine:
        other = threading.Thread(target=lambda: seen.append(relu(X)))
        other.start()
        other.join()
        assert (len(seen), mine.used) == (1, set())
        Workers(2).map(relu, [X, X])
        assert mine.used == {"relu"}
    relu(X)
    assert mine.others == set()


def test_two_files_at_once_do_not_mix(tmp_path):
    with own(SOLUTION) as mine:
        with own(solution_of_only(tmp_path / "own.py", "relu")) as inner:
            relu(X)
            layer_norm(X, **WEIGHTS)
        layer_norm(X, **WEIGHTS)
    assert (inner.used, inner.others) == ({"relu"}, {"layer_norm"})
    assert (mine.used, mine.others) == ({"layer_norm"}, set())


@pytest.mark.parametrize("options", [
    dict(beam_size=1),
    dict(beam_size=3, n_best=2),
    dict(beam_size=4, n_best=4, alpha=0.0),
    dict(beam_size=4, n_best=4, alpha=2.0),
    dict(beam_size=1, max_length=3),
])  # fmt: skip
def test_translations_are_those_of_the_package_with_any_batches(options):
    sources = [[5, 6, 7, 3], [8, 3], [9, 10, 11, 12, 13, 3], [4, 3]]
    model = tiny_model(seed=2)
    model.flat.data *= 2  # sure enough of itself to end some of its sentences
    expected = translate_ids(model, sources, **options)
    with own(SOLUTION):
        found = translate_ids(model, sources, **options, max_tokens=20, workers=Workers(2))
    for best, right in zip(found, expected, strict=True):
        assert [h.ids for h in best] == [h.ids for h in right]
        assert [h.finished for h in best] == [h.finished for h in right]
        scores = ([h.score for h in hypotheses] for hypotheses in (best, right))
        assert_but_for_rounding(*map(np.float32, scores), additions_of(model))
    assert {h.finished for best in expected for h in best} == {False, True}


def test_the_packages_searches_run_on_a_learners_layers(tmp_path):
    """They take layers apart otherwise, for their cache of keys and values."""
    model, source = tiny_model(), batch().source[:3]
    expected = greedy(model, source), beam_search(model, source)
    with own(solution_of_only(tmp_path / "own.py", "decoder_layer")) as mine:
        found = greedy(model, source), beam_search(model, source)
    assert "decoder_layer" in mine.used
    assert [h.ids for h in found[0]] == [h.ids for h in expected[0]]
    assert [[h.ids for h in best] for best in found[1]] == [[h.ids for h in b] for b in expected[1]]


@pytest.mark.parametrize("asked", ["said[:, -1]", "said[:0]", "said[:1]"])
def test_a_search_that_asks_for_other_rows_than_there_are_is_told(asked, tmp_path):
    slip = {"log_probabilities(said)": f"log_probabilities({asked})"}
    with (
        own(written(tmp_path / "own.py", text_with(greedy=slip))),
        pytest.raises(CheckError, match=r"was given ids of shape .* for 2 sentences"),
    ):
        greedy(tiny_model(), batch().source[:2])


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_length_penalty_that_makes_no_sense_is_refused(search):
    with own(SOLUTION), pytest.raises(ValueError, match="alpha"):
        search(tiny_model(), batch().source[:2], alpha=np.nan)


def test_attention_can_be_looked_at():
    model, source = tiny_model(), batch().source[:2]
    expected = greedy(model, source, attention=True)
    with own(SOLUTION):
        found = [*greedy(model, source, attention=True), beam_search(model, source, attention=True)]
        assert greedy(model, source[:0]) == beam_search(model, source[:0]) == []
        assert beam_search(model, source)[0][0].attention is None
    for hypothesis, right in zip(found[:2], expected, strict=True):
        assert_but_for_rounding(hypothesis.attention, right.attention, additions_of(model))
    assert found[2][0][0].attention is not None


@pytest.mark.parametrize("name", ["decoder_layer", "multi_head_attention"])
def test_where_a_learners_function_looked_is_not_guessed_from_its_cache(name, tmp_path):
    model, data = tiny_model(), batch()
    with own(solution_of_only(tmp_path / "own.py", name)):
        _, (_, cache) = model.features(data.source, data.target)
    with pytest.raises(InputError, match="look with the package's: cross_attention"):
        model.cross_attention(cache)


NUMPY_ALONE = """
import numpy as np
def relu(x):
    return np.maximum(x, 0), x > 0
def relu_backward(dy, cache):
    return dy * cache
"""
ANY_LIBRARY = NUMPY_ALONE.replace("np.maximum", "array_namespace(x).maximum").replace(
    "import numpy as np", "from minitransformer.core.backend import array_namespace"
)
WITH_HELPERS = NUMPY_ALONE.replace("np.maximum(x, 0)", "positive(x)")
WITH_HELPERS += "def positive(x):\n    return np.maximum(x, 0)\nnot_a_function = relu\n"
HANDS_OVER = NUMPY_ALONE.replace("np.maximum(x, 0), x > 0", "np.relu(x)")
HANDS_OVER = HANDS_OVER.replace("numpy", "minitransformer.layers.relu")
IMPORTED = "from minitransformer.layers.relu import relu, relu_backward\n"
UNTWINNED = "relu, relu_backward = relu.__wrapped__, relu_backward.__wrapped__\n"
STUB_TEXT = STUBS.read_text(encoding="utf-8")


@pytest.mark.parametrize(("text", "whose"), [
    (WITH_HELPERS, (["relu"], {"relu"}, set())),
    (HANDS_OVER, (["relu"], {"relu"}, {"relu"})),
    (IMPORTED, ([], set(), {"relu"})),
    (IMPORTED + UNTWINNED, ([], set(), {"relu"})),
    (NUMPY_ALONE.partition("def relu_backward")[0], ([], set(), {"relu"})),  # half a pair
    (STUB_TEXT + NUMPY_ALONE, (["relu"], {"relu"}, set())),  # of two the last counts
    (NUMPY_ALONE + STUB_TEXT, ([], set(), {"relu"})),
])  # fmt: skip
def test_what_is_written_there_and_of_no_other_place_is_ones_own(tmp_path, text, whose):
    """What stands in, what of it has run, and what of the package's has."""
    with own(written(tmp_path / "own.py", text)) as mine:
        np.testing.assert_array_equal(relu(X)[0], np.maximum(X, 0))
    assert ([part.functions[0] for part in mine.written], mine.used, mine.others) == whose


def test_functions_that_ask_an_array_for_its_library_run_on_any_device(tmp_path, device):
    with own(written(tmp_path / "own.py", ANY_LIBRARY)) as mine:
        y, _ = relu(device.asarray(X))
    np.testing.assert_array_equal(to_host(y), np.maximum(X, 0))
    assert mine.used == {"relu"}


def test_functions_on_numpy_alone_say_on_a_device_where_they_fail(tmp_path):
    says = r"^relu raised TypeError.*own\.py, line 4.*--device cpu"
    with own(written(tmp_path / "own.py", NUMPY_ALONE)), pytest.raises(CheckError, match=says):
        relu(strict.asarray(X))


def test_an_error_names_the_innermost_function(tmp_path):
    broken = written(tmp_path / "own.py", text_with(relu_backward={"dy * alive": "dy * alife"}))
    with own(broken), pytest.raises(CheckError, match=r"^relu_backward raised NameError") as raised:
        train(1)
    assert "GPU" not in str(raised.value)


@pytest.mark.parametrize(("text", "says"), [
    ("def relu(x:\n", r"raised SyntaxError.*line 1"),
    ("import nothing_of_this_name\n", "raised ModuleNotFoundError"),
    ("1 / 0\n", "raised ZeroDivisionError"),
    ("raise SystemExit\n", "raised SystemExit"),
])  # fmt: skip
def test_a_file_that_cannot_be_run_is_said_to_be(tmp_path, text, says):
    with pytest.raises(CheckError, match=says), own(written(tmp_path / "own.py", text)):
        pass


def test_a_helper_that_is_called_like_a_backward_is_none(tmp_path):
    path = solution_of_only(tmp_path / "own.py", "split_heads")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n\ndef split_heads_backward(dy, cache):\n    return dy\n")
    with own(path) as mine:
        train(1)
    assert mine.used == {"split_heads"}


def test_names_of_arguments_are_the_learners_own(tmp_path):
    slip = {"num_tokens=": "n=", "if num_tokens": "if n", "else num_tokens": "else n"}
    renamed = text_with(cross_entropy=slip)
    with own(written(tmp_path / "own.py", renamed)) as mine:
        one_pass(tiny_model(), [batch()])
    assert "cross_entropy" in mine.used


def test_bytecode_beside_the_file_never_runs(tmp_path):
    path = written(tmp_path / "own.py", "raise SystemExit\n")
    planted = Path(importlib.util.cache_from_source(path))
    planted.parent.mkdir()
    py_compile.compile(
        path, planted, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    with own(written(path, NUMPY_ALONE)) as mine:
        relu(X)
    assert mine.used == {"relu"}


def test_the_functions_of_the_package_are_those_of_the_parts():
    assert package.FUNCTIONS.keys() == PART_OF.keys()


def test_those_that_models_run_on_are_those_that_something_may_stand_in_for():
    """Of the second part a module, for one of its functions, and no optimizer."""
    functions = package.FUNCTIONS | package.STANDS_FOR
    twinned = {name for name, function in functions.items() if hasattr(function, "twins")}
    others = {"adamw_update", "momentum_update", "grouped_query_attention_backward"}
    assert twinned == RUNNING | (package.SECOND.keys() - others)


def test_what_came_since_is_no_part_of_a_training_right_or_wrong(tmp_path):
    wrong = written(tmp_path / "own.py", text_with(rms_norm={"+ epsilon": "- epsilon"}))
    said = []
    assert checked(wrong, anyway=False, say=said.append).wrong == []
    assert not any("rms_norm" in line for line in said)
    with own(wrong) as mine:
        train(1)
    assert {part.functions[0] for part in mine.written} == set(FIRST)


def test_what_is_imported_of_what_came_since_is_not_ones_own(tmp_path):
    text = "from minitransformer.layers.silu import silu, silu_backward\n"
    assert OwnFile(written(tmp_path / "own.py", text)).there == {}


def test_a_file_may_be_edited_and_taken_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = written(tmp_path / "own.py", NUMPY_ALONE)
    with own(path) as first:
        relu(X)
    with own(written(path, NUMPY_ALONE.replace("maximum", "minimum"))) as second:
        np.testing.assert_array_equal(relu(X)[0], np.minimum(X, 0))
    assert first.fingerprint != second.fingerprint
    assert "learner_own" in sys.modules
