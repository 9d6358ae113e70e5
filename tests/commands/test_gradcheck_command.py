import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from waiting import HANGS

from minitransformer.cases import CASES
from minitransformer.commands import gradcheck
from minitransformer.commands.cli import main
from minitransformer.gradcheck import check_pair
from minitransformer.layers.layer_norm import layer_norm

PAIR = """
def double(x):
    return 2 * x, None
def double_backward(dy, cache):
    return {gradient}
def double_inputs(rng):
    return (rng.standard_normal((3, 4)),)
"""


@pytest.fixture
def pair(tmp_path):
    def write(gradient):
        (tmp_path / "mine.py").write_text(PAIR.format(gradient=gradient))
        return f"{tmp_path / 'mine.py'}:double"

    return write


def test_gradcheck_prints_a_row_for_each_case_of_the_table(monkeypatch, said):
    cases = CASES[::8]  # test_every_layer.py checks all of them
    monkeypatch.setattr(gradcheck, "CASES", cases)
    lines = said("gradcheck").out.splitlines()
    assert lines[0].split() == ["layer", "largest", "error", "tensors", "seconds"]
    for case, line in zip(cases, lines[1:-1], strict=True):
        assert re.fullmatch(re.escape(case.name) + r" +\d\.\de-\d\d +\d+ +\d+\.\d\d", line)
    assert re.fullmatch(rf"{len(cases)} right, 0 wrong, in \d+\.\d s", lines[-1])
    rows = said("gradcheck", "attention").out.splitlines()[1:-1]
    names = [case.name for case in cases if case.name.startswith("attention")]
    assert [row[: len(name)] for row, name in zip(rows, names, strict=True)] == names


@pytest.mark.parametrize(("gradient", "more", "status", "says"), [
    ("2 * dy", [], 0, ["right  dx: relative error", "1 right, 0 wrong"]),
    ("2 * dy / len(dy)", [], 1,
     ["WRONG  dx: it is 3 times too small: 3 is the batch size", "0 right, 1 wrong"]),
    ("3 * dy", ["--directions", "2"], 1, ["it is 1.5 times too large"]),  # short for a large one
])  # fmt: skip
def test_of_ones_own_pair_it_says_what_it_is(gradient, more, status, says, pair, capsys):
    assert main(["gradcheck", pair(gradient), *more]) == status
    out = capsys.readouterr().out
    assert all(words in out for words in says)


def test_what_cannot_be_checked_exits_with_2_and_says_why(pair, refused):
    error = refused("gradcheck", pair("dy[9]"), status=2)
    assert error.startswith("minitransformer gradcheck: backward raised IndexError")


@pytest.fixture
def as_json(capfd):
    """A function: the exit status of a check, and the JSON that it prints and nothing beside."""

    def checked(*arguments):
        status = main(["gradcheck", *arguments, "--json"])
        return status, json.loads(capfd.readouterr().out)

    return checked


def test_json_holds_what_the_table_shows(pair, as_json):
    status, result = as_json(pair("2 * dy / len(dy)"))
    assert status == 1
    assert result["right"] is False
    (check,) = result["checks"]
    (tensor,) = check["tensors"]
    assert check["max_relative_error"] == tensor["relative_error"] == pytest.approx(2 / 3)
    assert tensor["analytic"] == pytest.approx(tensor["numeric"] / 3)
    assert "batch size" in tensor["diagnosis"]
    assert len(tensor["worst_index"]) == 2
    (check,) = as_json(pair("2 * dy.T"))[1]["checks"]
    assert check["max_relative_error"] is None  # as it is infinite
    assert "transpose" in check["tensors"][0]["diagnosis"]


def case(name, factor):
    """One of ``double``, with this factor in its backward; None cannot be checked."""

    def check(seed):
        return check_pair(lambda x: (2 * x, None), lambda dy, cache: factor * dy, np.ones((2, 3)))

    return SimpleNamespace(name=name, check=check)


@pytest.mark.parametrize(("factors", "status"), [((3, None, 2), 1), ((None, 2), 2)])
def test_a_layer_that_cannot_be_checked_leaves_the_others_and_is_named(
    factors, status, monkeypatch, capfd, as_json
):
    cases = [case(f"layer {factor}", factor) for factor in factors]
    monkeypatch.setattr(gradcheck, "CASES", cases)
    assert main(["gradcheck"]) == status
    said = capfd.readouterr()
    rows = [line for line in said.out.splitlines() if line.startswith("layer ")]
    assert len(rows) == len(factors)  # the header, and all but one
    assert said.err.startswith("minitransformer gradcheck: layer None: backward raised TypeError")
    found, content = as_json()
    assert (found, content["right"]) == (status, False if status == 1 else None)
    assert {check["name"]: check["right"] for check in content["checks"]} == {
        f"layer {factor}": {2: True, 3: False}.get(factor) for factor in factors
    }
    monkeypatch.setattr(gradcheck, "CASES", [case("one", None), case("other", None)])
    assert main(["gradcheck"]) == 2
    assert "one: backward raised" in capfd.readouterr().err


def test_json_says_what_could_not_be_checked(as_json):
    said = {"right": None, "error": "there is no file nothing.py"}
    assert as_json("nothing.py:f") == (2, said)


def test_a_seed_gives_the_same_inputs_again_and_another_seed_gives_others(as_json):
    def checked(seed):
        _, result = as_json("linear", "--seed", seed)
        return [tensor["analytic"] for check in result["checks"] for tensor in check["tensors"]]

    assert checked("7") == checked("7") != checked("8")


HIDDEN = """
import numpy as np
import warnings
def far(x, far, ids):
    warnings.warn("far away")
    return far + np.tanh(x), x
def far_backward(dy, x):
    return dy * (1 - np.tanh(x) ** 2), dy
def far_inputs(rng):
    return rng.standard_normal((3, 4)), 1e15 + rng.standard_normal((3, 4)), 7
"""


@pytest.fixture
def hidden(tmp_path):
    (tmp_path / "hidden.py").write_text(HIDDEN)
    return f"{tmp_path / 'hidden.py'}:far"


def test_what_cannot_be_told_exits_with_2_and_says_what_to_change(hidden, capsys):
    assert main(["gradcheck", hidden]) == 2
    out = capsys.readouterr().out
    assert "cannot be told  dx: rounding hides 12 of 12" in out
    assert "far has entries up to 1e+15: subtract their mean" in out
    assert "0 right, 0 wrong, 1 that cannot be told, in" in out


def test_json_says_all_that_the_table_says(hidden, as_json):
    status, result = as_json(hidden)
    assert status == 2
    (check,) = result["checks"]
    assert result["right"] is check["right"] is None
    assert check["verdict"] == "cannot be told"
    assert check["unchecked"] == ["ids"]
    (warning,) = check["warnings"]
    assert re.fullmatch(r"UserWarning: far away \(hidden.py, line \d+\)", warning)
    names = "verdict", "right", "zero_everywhere"
    found = [[tensor[name] for name in names] for tensor in check["tensors"]]
    assert found == [["cannot be told", None, False], ["right", True, False]]
    assert "subtract their mean" in check["tensors"][0]["diagnosis"]


def test_what_is_wrong_is_wrong_beside_what_cannot_be_told(hidden, tmp_path, capsys):
    (tmp_path / "hidden.py").write_text(HIDDEN.replace(", dy\n", ", 2 * dy\n"))
    assert main(["gradcheck", hidden]) == 1
    assert "0 right, 1 wrong, in" in capsys.readouterr().out


@pytest.fixture
def in_this_process(monkeypatch):
    """Checks files here, where a clock may be stopped: another process would be waited for."""
    monkeypatch.setattr(gradcheck, "run_apart", lambda check, _, **options: check(**options))


@pytest.mark.usefixtures("clock", "in_this_process")
def test_a_check_may_take_so_many_seconds(pair, tmp_path, capsys):
    place = pair("2 * dy")
    path = tmp_path / "mine.py"
    slow = path.read_text().replace("    return 2 * x", "    time.sleep(0.05)\n    return 2 * x")
    path.write_text(f"import time\n{slow}")
    assert main(["gradcheck", place, "--timeout", "1"]) == 2
    assert "would take about 1 s, one of 0.05 s" in capsys.readouterr().err  # 24 of them
    assert main(["gradcheck", place, "--timeout", "60"]) == 0
    assert main(["gradcheck", place, "--timeout", str(10**30)]) == 0


# What stands in place of the gradient, and what is then said. What ends the process, or never ends,
# is tried in a process of its own, as every file is; the others in this one, which is faster.
LOOP = r"takes more than 2 s \(mine.py, line 6\): is there"
TO_THE_PROCESS = {
    "[time.sleep(0.1) for _ in iter(int, 1)]": LOOP,
    "time.sleep(1e6)": LOOP,
    "[softmax(dy) for _ in iter(int, 1)]": LOOP,
    "sum(iter(int, 1))": LOOP,
    "os._exit(0)": "its process ended with exit status 0 before the check was over",
    "os.kill(os.getpid(), signal.SIGSEGV)": r"ended by SIGSEGV .* \(mine.py, line 6\)",
    "os.kill(os.getpid(), signal.SIGKILL)": "ended by SIGKILL",
    "thrown(KeyboardInterrupt)": r"KeyboardInterrupt \(mine.py, line 14\)",
}
TO_THE_CHECK = {
    "sys.exit(0)": r"backward raised SystemExit: 0 \(mine.py, line 6\)",
    "double_backward(dy, cache)": "backward raised RecursionError",
    "thrown(GeneratorExit)": "backward raised GeneratorExit",
    "thrown(MemoryError)": "backward raised MemoryError",
    "thrown(Unspeakable)": "backward raised Unspeakable",
    "{'dx': dy}": "backward returned a dict; return the gradients as a tuple",
    "(yield dy)": "backward returned a generator; return the gradients as a tuple",
}
HEAD = "\nimport signal, sys, time, os; from minitransformer.layers.softmax import softmax\n"
THROWN = """
class Unspeakable(Exception):
    def __str__(self):
        raise ValueError
def thrown(error):
    raise error
"""


@pytest.fixture
def hostile_file(pair, tmp_path):
    """Writes a file with that gradient and these lines at its head, and says where its pair is."""

    def write(gradient, *lines):
        place = pair(gradient)
        path = tmp_path / "mine.py"
        text = path.read_text().lstrip()
        path.write_text("; ".join(lines) + HEAD + text + THROWN)
        return place

    return write


@pytest.fixture
def hostile(hostile_file, as_json):
    """The exit status for such a file, and what is said of it."""

    def answer(*written, flags=("--timeout", "2")):
        return as_json(hostile_file(*written), *flags)

    return answer


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
@pytest.mark.parametrize(("gradient", "says"), (TO_THE_PROCESS | TO_THE_CHECK).items())
def test_whatever_a_file_does_it_is_said(gradient, says, hostile, request):
    if gradient in TO_THE_CHECK:
        request.getfixturevalue("in_this_process")
    status, said = hostile(gradient)
    assert (status, said["right"]) == (2, None)
    assert re.search(says, said["error"])


IMPORTED = "import atexit, os, subprocess, sys, threading, time"


@pytest.mark.parametrize("line", ["time.sleep(1e6)", "os._exit(0)", "raise KeyboardInterrupt"])
def test_so_it_is_while_the_file_is_imported(hostile, line):
    status, said = hostile("2 * dy", IMPORTED, line)
    assert (status, said["right"]) == (2, None)


@pytest.mark.parametrize("line", [
    "print('hello')", "os.write(1, b'{}')", "os.close(1)", "sys.stdout.close()",
    "atexit.register(os._exit, 1)",
    "subprocess.run([sys.executable, '-c', 'print([])'])",
    "threading.Thread(target=threading.Event().wait).start()",
])  # fmt: skip
def test_nothing_that_a_file_does_beside_spoils_the_json(hostile, line):
    status, said = hostile("2 * dy", IMPORTED, line, flags=())
    assert (status, said["right"]) == (0, True), said


def test_what_a_file_has_started_ends_with_the_check(hostile_file):
    """Its reader would wait for ever: what was started holds standard error open."""
    line = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1e6)'])"
    place = hostile_file("2 * dy", IMPORTED, line)
    command = [sys.executable, "-m", "minitransformer", "gradcheck", place]
    assert subprocess.run(command, capture_output=True, timeout=HANGS).returncode == 0


@pytest.mark.parametrize(("flags", "status"), [([], 0), (["--accelerate"], 1)])
def test_the_twins_can_be_checked_in_place_of_the_references(monkeypatch, capsys, flags, status):
    twin = layer_norm.twins["numpy"]

    def wrong(dy, cache):
        return tuple(2 * gradient for gradient in twin.backward(dy, cache))

    monkeypatch.setitem(layer_norm.twins, "numpy", twin._replace(backward=wrong))
    assert main(["gradcheck", "layer_norm", *flags]) == status
