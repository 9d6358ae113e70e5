"""The stops of the lessons: a reader's functions are tried, and the package's shown after them."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from endless import ENDLESS, STOPPED
from own_files import TEXT, text_with

from minitransformer.course.answers import find_answers
from minitransformer.course.stops import show, try_yours
from minitransformer.course.time_limit import time_limit
from minitransformer.layers.sigmoid import sigmoid

X = np.array([-1.0, 2.0])
ADAM = {"learning_rate": 0.1, "t": 1, "beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}


def facts(relu, relu_backward):
    y, cache = relu(X)
    yield "what is negative becomes 0", np.array_equal(y, [0, 2])
    yield "no gradient passes there", np.array_equal(relu_backward(np.ones(2), cache), [0, 1])


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes the reader's file, in a folder where the lessons run."""
    monkeypatch.delenv("MINITRANSFORMER_OWN", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers").mkdir()
    return (tmp_path / "answers/own.py").write_text


RELU = "def relu(x):\n    return x * (x > 0), x\n"
BACKWARD = "def relu_backward(dy, cache):\n    return dy * (cache > 0)\n"
TO_WRITE = "def relu_backward(dy, cache):\n    raise NotImplementedError\n"
FIRST = "✓ what is negative becomes 0"


@pytest.mark.parametrize(("text", "lines"), [
    (RELU + BACKWARD, [FIRST, "✓ no gradient passes there"]),
    (RELU + BACKWARD.replace("dy *", "dy +"), [FIRST, "✗ no gradient passes there"]),
    (RELU + TO_WRITE, [FIRST, "✗ relu_backward is still to be written, in answers/own.py"]),
    ("", ["✗ relu is still to be written, in answers/own.py"]),
    (RELU + BACKWARD.replace("cache >", "cash >"),
     [FIRST, "✗ relu_backward raised NameError: name 'cash' is not defined (own.py, line 4)"]),
    (RELU.replace(", x\n", "\n"),
     ["✗ relu must return its result and the cache; it returned ndarray"]),
    (RELU.replace("return", "x[0] = 0; return"),
     ["✗ relu raised ValueError: assignment destination is read-only (own.py, line 2); it must "
      "not write to what it is given, nor to a view such as np.broadcast_to and np.diagonal "
      "return: copy first"]),
    ("while True",
     ["✗ importing answers/own.py raised SyntaxError: expected ':' (own.py, line 1)"]),
], ids=["right", "wrong", "half written", "not written", "raises", "returns no cache",
        "writes to its input", "no Python"])  # fmt: skip
def test_a_fact_is_a_line_and_what_keeps_it_from_being_tried_is_one(text, lines, own, capsys):
    own(text)
    try_yours("relu", facts)
    assert capsys.readouterr().out.splitlines() == lines


def test_a_reader_without_a_file_is_told_how_to_make_it(own, capsys):
    try_yours("relu", facts)
    told = "there is no file answers/own.py; `cp -r lessons/exercises answers` in the project's"
    assert capsys.readouterr().out.startswith(f"✗ {told}")
    assert told in repr(show("relu"))


def test_the_original_is_no_readers_file(own, tmp_path, capsys):
    (tmp_path / "lessons/exercises").mkdir(parents=True)
    (tmp_path / "lessons/exercises/own.py").write_text(RELU + TO_WRITE)
    try_yours("relu", facts)
    assert capsys.readouterr().out.startswith("✗ there is no file answers/own.py")


def test_a_folder_is_no_answer(tmp_path, monkeypatch):
    (tmp_path / "lessons/answers/ex07.py").mkdir(parents=True)
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers/ex07.py").touch()
    monkeypatch.chdir(tmp_path / "lessons")
    assert find_answers("ex07.py") == Path("../answers/ex07.py")


def test_what_does_not_fit_a_fact_is_said_and_stops_nothing(own, capsys):
    own("def relu(x):\n    return x, None\n")

    def facts(relu):
        ((first, second), _) = relu(np.ones(3))
        yield "its halves are equal", first == second

    try_yours("relu", facts)
    words = "ValueError: too many values to unpack (expected 2)"
    assert capsys.readouterr().out == f"✗ what is returned fits no fact about relu: {words}\n"


def test_a_loop_that_never_ends_is_stopped(own, capsys):
    own(f"def relu(x):\n    {ENDLESS}\n")
    try_yours("relu", facts)
    said = capsys.readouterr().out
    assert said.startswith("✗ relu")
    assert STOPPED in said


def test_what_catches_that_its_time_is_up_is_stopped_a_second_later():
    with time_limit():
        assert signal.getitimer(signal.ITIMER_REAL)[1] == 1


def test_another_error_that_comes_of_a_stop_is_no_error():
    with time_limit() as passed:
        try:
            exec(ENDLESS)
        except TimeoutError:
            raise SystemError from None
    assert passed == [STOPPED]


@pytest.mark.parametrize("error", [TimeoutError, SystemError])
def test_an_error_that_comes_of_no_stop_is_one(error):
    with pytest.raises(error), time_limit():
        raise error


def test_a_file_that_never_ends_is_stopped(own, capsys):
    own(ENDLESS)
    try_yours("relu", facts)
    assert STOPPED in capsys.readouterr().out
    assert STOPPED in repr(show("relu"))


def test_a_file_that_the_environment_names_and_is_not_there_is_named(own, monkeypatch, capsys):
    monkeypatch.setenv("MINITRANSFORMER_OWN", "elsewhere.py")
    try_yours("relu", facts)
    assert capsys.readouterr().out == "✗ there is no file elsewhere.py\n"


def test_what_the_reader_has_just_saved_is_tried(own, capsys):
    wrong = RELU.replace("x * (x > 0)", "x + np.ones(5)")
    now = time.time()
    for text, said in (
        ("import numpy as np\n" + wrong, "x is (2,)"),
        ("import numpy as np\n" + wrong.replace("(x)", "(z)").replace("x", "z"), "z is (2,)"),
        (RELU, "✓"),
    ):
        own(text)
        now += 1
        os.utime("answers/own.py", (now, now))
        try_yours("relu", facts)
        assert said in capsys.readouterr().out


def test_the_update_of_adam_may_write_and_options_have_names(own, capsys):
    own(TEXT)

    def facts(adam_update, dropout):
        data, m, v = np.zeros((3, 4))
        adam_update(data, np.ones(4), m, v, **ADAM)
        yield "the first step is η long", np.allclose(data, -0.1)
        yield "without rng nothing is dropped", np.array_equal(dropout(X, p=0.5, rng=None)[0], X)

    try_yours("adam_update", facts)
    assert capsys.readouterr().out.count("✓") == 2


def test_the_file_is_the_one_named_or_the_next_in_answers(own, tmp_path, monkeypatch, capsys):
    own(RELU + BACKWARD)
    (tmp_path / "lessons").mkdir()
    monkeypatch.chdir(tmp_path / "lessons")
    try_yours("relu", facts)
    assert "✗" not in capsys.readouterr().out
    (tmp_path / "other.py").write_text("")
    monkeypatch.setenv("MINITRANSFORMER_OWN", "../other.py")
    try_yours("relu", facts)
    assert capsys.readouterr().out == "✗ relu is still to be written, in ../other.py\n"


def test_the_package_is_shown_folded_once_the_readers_own_is_right(own):
    own(RELU + BACKWARD)
    shown = show("relu")
    assert repr(shown).startswith("@twinned\ndef relu(x):")
    assert "\n\n\n@twinned\ndef relu_backward(dy, cache):" in repr(shown)
    summary = "<details><summary>the package's <code>relu</code></summary>"
    assert shown._repr_markdown_() == f"{summary}\n\n```python\n{shown!r}\n```\n\n</details>"


@pytest.mark.parametrize(("text", "missing"), [
    ("", "relu is still to be written, in answers/own.py"),
    (RELU + TO_WRITE, "relu is still to be written, in answers/own.py"),
    (RELU + BACKWARD.replace(">", "<"), "`minitransformer check own relu` says what is wrong"),
], ids=["not written", "half written", "wrong"])  # fmt: skip
def test_otherwise_it_says_what_is_missing_and_how_to_see_it_all_the_same(text, missing, own):
    own(text)
    line = f"The package's is shown once yours is right: {missing}. To see it now: "
    assert repr(show("relu")) == show("relu")._repr_markdown_()
    assert repr(show("relu")) == line + '`show("relu", anyway=True)`'
    assert repr(show("relu", anyway=True)).startswith("@twinned\ndef relu(x):")


def test_a_part_is_right_whatever_is_wrong_in_those_it_calls(own):
    own(text_with(relu={"return": "return -"}))
    assert "says what is wrong" in repr(show("relu"))
    assert repr(show("feed_forward")).startswith("@twinned\ndef feed_forward(")


def test_what_a_part_calls_is_shown_behind_it_and_not_before_it_is_right(own):
    own(TEXT)
    shown = repr(show("silu", sigmoid))
    assert 0 < shown.index("def silu_backward(") < shown.index("def sigmoid(")
    own(text_with(silu={"y = x * gate": "y = gate"}))
    assert "def " not in repr(show("silu", sigmoid))


def test_a_part_that_no_file_has_is_refused_with_what_was_meant():
    with pytest.raises(ValueError, match=r"own\.py has no function 'layernorm'; did you mean"):
        show("layernorm")
