"""What every script that measures promises, on a tiny workload: a row of ``WORKLOADS`` each.

``processes.py`` is tried by tests/parallel/, ``gpu_report.py`` beside this.
"""

import json
import re
from importlib import import_module
from pathlib import Path

import _options
import _results
import pytest
import report
from _process import SideError
from elsewhere import python
from tiny_workload import WORKLOADS

from minitransformer.core.errors import InputError

BESIDE_PYTORCH = {"convolution", "decode", "language_model", "loss_curve", "pictures", "recurrent"}
BESIDE_PYTORCH |= {"speaking"}
SLOW = BESIDE_PYTORCH | {
    "adapters",
    "fashion_mnist",
    "fine_tuning",
    "ladder",
    "norms",
    "picture_claims",
    "precision",
    "profile_step",
    "since_2017",
    "table_3",
    "train_step",
}


@pytest.fixture(params=[pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in WORKLOADS])
def script(request):
    if request.param in BESIDE_PYTORCH:
        pytest.importorskip("torch")
    if request.param == "speaking":
        pytest.importorskip("transformers", reason="transformers is not installed")
    return request.param


def test_every_kind_of_result_is_tried():
    assert report.BENCHMARKS.keys() - {"processes", "gpu_report"} == WORKLOADS.keys()


def test_what_is_printed_is_what_is_written_and_what_the_results_page_shows(script, ran):
    of = ran(script)
    assert (of.status, of.result["kind"]) == (0, script)
    assert of.printed.endswith(f"{of.table}\n")
    assert f"```\n{of.table}\n```\n" in of.page


def test_the_command_is_told_without_a_folder_of_this_machine(script, ran):
    of = ran(script)
    assert re.search(rf"python benchmarks/{script}\.py .*--", of.result["command"])
    text = (of.folder / f"{script}.json").read_text(encoding="utf-8")
    assert not [place for place in (of.folder, Path.home(), Path.cwd()) if f"{place}/" in text]


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", sorted(BESIDE_PYTORCH - {"loss_curve", "speaking"}), indirect=True
)
def test_without_pytorch_it_says_what_to_install(script, monkeypatch):
    monkeypatch.setattr("_process.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"pip install torch=="):
        import_module(script).main([])


@pytest.mark.parametrize(("error", "says"), [
    (InputError("no such thing"), "no such thing"),
    (FileNotFoundError(2, "not there", "a.npz"), "a.npz: not there"),
    (SideError("no GPU"), "no GPU"),
])  # fmt: skip
def test_what_a_user_can_mend_is_said_in_a_line(error, says, monkeypatch, capsys):
    def fails():
        raise error

    monkeypatch.setattr("sys.argv", ["benchmarks/norms.py"])
    with pytest.raises(SystemExit, match="1"):
        _options.end(fails)
    assert capsys.readouterr().err == f"norms.py: {says}\n"
    monkeypatch.setenv("MINITRANSFORMER_TRACEBACK", "1")
    with pytest.raises(SystemExit, match="1"):
        _options.end(fails)
    assert "in fails" in capsys.readouterr().err


def test_each_script_ends_so():
    texts = [path.read_text("utf-8") for path in Path(report.__file__).parent.glob("[a-z]*.py")]
    ends = [text.split("__main__")[1] for text in texts if "__main__" in text]
    assert all("    _options.end(" in end for end in ends)
    assert len(ends) > len(WORKLOADS)


def test_a_script_ends_with_the_status_that_its_processes_agree_on():
    with pytest.raises(SystemExit, match="7"):
        _options.end(lambda: 3, lambda main: main() + 4)


WRITING = sorted(WORKLOADS.keys() - {"ladder"})
NOWHERE = "cannot be written: there is no folder nowhere"
REFUSED = [
    *((f"{script} --json nowhere/found.json", NOWHERE) for script in ["multi30k", *WRITING]),
    ("loss_curve --plot nowhere/found.png", NOWHERE),
    ("table_3 --plot nowhere/found.png", NOWHERE),
    ("scaling --rounds 0", "'0' is no whole number, 1 or more"),
    ("train_step --batch-tokens 0", "'0' is no whole number, 1 or more"),
    ("recurrent --threads 0", "'0' is no whole number, 1 or more"),
    ("norms --seeds -1", "'-1' is no whole number, 0 or more"),
    ("train_step --precision tf32", "tf32 is a precision of GPUs; choose float32 on a CPU"),
    ("language_model --steps 50", "--steps: 50 is no multiple of 50 above it"),
    ("restricted --heads 3", "--heads: 3 is no divisor of the width, 128"),
]


@pytest.mark.parametrize(("command", "says"), REFUSED, ids=[command for command, _ in REFUSED])
def test_what_cannot_be_done_is_told_before_anything_is(command, says, capsys):
    script, *arguments = command.split()
    with pytest.raises(SystemExit, match="2"):
        import_module(script).main(arguments)
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("modules", ["_process, _torch_side", "decode"])
def test_the_process_of_pytorchs_side_holds_nothing_of_our_package(modules):
    """Whose memory is measured beside ours."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    program = f"import sys, {modules}; print([m for m in sys.modules if 'minitransformer.' in m])"
    assert python("-c", program, path=[Path(report.__file__).parent]).stdout == "[]\n"


def test_rows_that_are_there_already_keep_the_command_that_brought_them(tmp_path):
    file = tmp_path / "found.json"
    for command, rows in (("first", [1]), ("second", [1]), ("third", [1, 2])):
        _results.write({"command": command, "rows": rows}, file)
        assert json.loads(file.read_text())["command"] == command.replace("second", "first")
    _results.write({"command": "fourth", "seconds": 1}, file)
    assert json.loads(file.read_text()) == {"command": "fourth", "seconds": 1}
    _results.write({"command": "fifth", "rows": []}, None)  # nothing is asked for
