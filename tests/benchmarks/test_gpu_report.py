"""The report of a GPU, rehearsed without one: on the stand-in for CuPy and on the CPU."""

import getpass
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import _part
import gpu_report
import pytest
import report
from _gpu_page import page
from _part import ROOT, Part
from _private import without_private
from waiting import HANGS, until

TESTS = ROOT / "tests"
STAND_IN = [TESTS / "benchmarks/stand_in", TESTS / "kit"]
DONE = {"tests", "tiny", "base", "training", "scores", "decode"}


@pytest.fixture(scope="module")
def missing(tmp_path_factory):
    """A function from a library to a folder in which it is a module that cannot be imported."""

    def missing(library):
        folder = tmp_path_factory.mktemp(f"no_{library}")
        (folder / f"{library}.py").write_text(f"raise ImportError('no {library} here')\n")
        return folder

    return missing


def rehearse(folder, paths, *options):
    """The rehearsal in ``folder``, with an empty folder for Multi30k: status, output, report."""
    empty = folder.parent / "empty"
    empty.mkdir()
    options = ["--quick", "--folder", folder, "--data-dir", empty, *options]
    done = subprocess.run(
        [sys.executable, "benchmarks/gpu_report.py", *options],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [*paths, ROOT]))},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    made = json.loads((folder / "gpu-report.json").read_text(encoding="utf-8"))
    return done.returncode, done.stdout, made


def by_name(made):
    return {part["name"]: part for part in made["parts"]}


@pytest.fixture(scope="module")
def on_stand_in(tmp_path_factory, missing):
    """The whole rehearsal on the stand-in, without PyTorch: folder, status, output, report."""
    folder = tmp_path_factory.mktemp("stand-in") / "report"
    return folder, *rehearse(folder, [*STAND_IN, missing("torch")])


# The whole


@pytest.mark.slow
def test_the_whole_runs_on_the_stand_in(on_stand_in):
    folder, _, said, made = on_stand_in
    parts = by_name(made)
    assert {name for name, part in parts.items() if part["status"] == "done"} >= DONE, said
    assert parts["base-tf32"]["status"] == "done"
    assert parts["training"]["result"]["finished"]
    assert parts["training"]["result"]["steps"] > 0
    assert "6 passed" in parts["tests"]["output"]
    assert made["gpu"]["name"] == "stand-in"
    assert parts["tiny"]["result"]["settings"]["device"] == "cuda"
    assert parts["scores"]["result"]["device"] == "cuda:0"
    assert "cuBLAS through CuPy" in parts["decode"]["result"]["sides"]["ours"]["blas"]
    assert f"{folder}/gpu-report.json\n{folder}/gpu-report.md\n" in said


@pytest.mark.slow
def test_without_pytorch_there_are_speeds_and_no_ratios_to_it(on_stand_in):
    *_, said, made = on_stand_in
    assert "There will be no ratios to PyTorch: PyTorch does not import (no torch here)" in said
    parts = by_name(made)
    assert parts["tiny"]["result"]["theirs"]["name"] == "minitransformer, reference"
    for search in parts["decode"]["result"]["searches"].values():
        assert search["ratio"] == {}
        assert search["sentences_per_second"]["ours"] > 0
    assert "PyTorch's" not in page(made)


@pytest.mark.slow
def test_without_multi30k_the_toy_corpus_is_taken_and_a_folder_asked_for(on_stand_in):
    _, status, said, made = on_stand_in
    assert status == 1
    parts = by_name(made)
    assert parts["multi30k"]["problem"].startswith("DIR lacks train.de.gz")
    assert "gpu_report.py --data-dir DIR" in said
    assert parts["training"]["result"]["recipe"]["data"]["corpus"] == "toy"


@pytest.mark.slow
def test_nothing_in_the_files_says_where_they_were_made(on_stand_in):
    folder, *_ = on_stand_in
    for name in ("gpu-report.json", "gpu-report.md"):
        text = (folder / name).read_text(encoding="utf-8")
        for private in (folder, folder.parent, ROOT, Path.home(), sys.prefix):
            assert f"{private}/" not in text
        assert "FOLDER/training" in text


@pytest.mark.slow
def test_the_page_shows_each_part_with_its_command_and_its_figures(on_stand_in):
    *_, made = on_stand_in
    text, parts = page(made), by_name(made)
    for part in made["parts"]:
        assert f"## {part['name']}: {part['title']}\n\n`{part['command']}`" in text
    assert f"ratio {parts['tiny']['result']['ratio']:.2f}, from" in text
    assert f"{parts['tiny']['result']['ours']['tokens_per_second']:,.0f} target tokens/s" in text
    assert "stand-in, 8 GB, compute capability 9.0" in text
    assert "for CUDA 13.1, CUDA 12.9, CuPy 14.0.0" in text
    bleu = parts["scores"]["result"]["scores"]["chosen"]["bleu_cased_13a"]
    assert f"BLEU {bleu:.1f} on toy, test, greedy" in text


@pytest.mark.slow
def test_with_pytorch_there_are_ratios(tmp_path):
    pytest.importorskip("torch")
    _, said, made = rehearse(tmp_path / "report", [], "--device", "cpu")
    parts = by_name(made)
    assert {name for name, part in parts.items() if part["status"] == "done"} >= DONE, said
    assert "base-tf32" not in parts
    assert "no ratios" not in said
    assert parts["tiny"]["result"]["theirs"]["name"].startswith("PyTorch")
    ratio = parts["decode"]["result"]["searches"]["beam"]["ratio"]["cache"]
    assert f"({ratio:.2f} times PyTorch's)" in page(made)


def test_all_parts_together_fit_into_20_minutes():
    class Options:
        folder, device, quick = Path("folder"), "cuda", False

    first = Part("multi30k", "output", "", [], 60)
    found = dict(gpu={"name": "a GPU"}, without_torch=None)
    parts = [first, *gpu_report.measurements(Options, None)]
    said = gpu_report.introduction(found, parts, Options.folder)
    assert len(parts) == 8
    assert gpu_report.PREPARATION + sum(p.seconds + _part.GRACE for p in parts) <= 20 * 60
    assert "20 minutes at most" in said
    assert all(f"{part.seconds} s  {part.title}" in said for part in parts)


def test_without_a_gpu_nothing_begins(monkeypatch, missing, tmp_path, capfd):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, [missing("cupy"), ROOT])))
    with pytest.raises(SystemExit, match="1"):
        gpu_report.main(["--folder", str(tmp_path / "report")])
    said = capfd.readouterr().err
    assert said.startswith("device 'cuda' is not usable: CuPy does not import (no cupy here)")
    assert not (tmp_path / "report").exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        gpu_report.main(["--folder", str(tmp_path)])
    assert "is there already" in capsys.readouterr().err


def test_a_folder_of_data_that_is_not_there_is_told_before_anything_begins(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        gpu_report.main(["--data-dir", str(tmp_path / "nope"), "--folder", str(tmp_path / "new")])
    assert f"there is no folder {tmp_path / 'nope'}" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


# Parts that go wrong


def python(name, program, seconds=HANGS, **fields):
    return Part(name, "output", f"a part {name}", ["-c", program], seconds, **fields)


SOON = 1  # a number of seconds, over as soon as the process has printed something


@pytest.fixture
def soon(monkeypatch):
    """Each process has its first words said when the SOON that it has are over."""

    class Process(subprocess.Popen):
        def __init__(self, *arguments, stdout, **options):
            self.printed = Path(stdout.name)
            super().__init__(*arguments, stdout=stdout, **options)

        def wait(self, timeout=None):
            if timeout == SOON:
                until(lambda: self.printed.stat().st_size)
                timeout = 0
            return super().wait(timeout)

    ours = SimpleNamespace(**vars(subprocess) | {"Popen": Process})
    monkeypatch.setattr(_part, "subprocess", ours)


def broken(kind, file, text):
    """A part that says it is done and whose result is ``text``."""
    program = f"from pathlib import Path; Path({str(file)!r}).write_text({text!r})"
    return python(kind, program, read=lambda: gpu_report.result_in(file, kind))


@pytest.fixture
def make(monkeypatch, tmp_path):
    """A function that makes the report of some parts: status and report."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(
        gpu_report, "what_there_is", lambda device: dict(gpu=CPU, without_torch="no torch")
    )
    (tmp_path / "empty").mkdir()

    def make(*parts):
        monkeypatch.setattr(gpu_report, "measurements", lambda *_, **__: parts)
        options = ["--quick", "--folder", tmp_path / "report", "--data-dir", tmp_path / "empty"]
        status = gpu_report.main([str(option) for option in options])
        return status, json.loads((tmp_path / "report/gpu-report.json").read_text("utf-8"))

    return make


CPU = {"name": "a CPU", "count": 0}


@pytest.mark.usefixtures("soon")
def test_what_fails_or_hangs_or_leaves_a_broken_result_is_reported_and_the_rest_runs(
    make, tmp_path, capsys
):
    status, made = make(
        python("failing", "print('first'); raise SystemExit('no such kernel')"),
        python("hanging", "print('begun'); import time; time.sleep(600)", SOON),
        broken("train_step", tmp_path / "cut_off.json", '{"ours": {"tokens'),
        broken("decode", tmp_path / "other.json", '{"searches": {"greedy": {}}}'),
        python("sound", "print('all is well')"),
    )
    assert status == 1
    parts = by_name(made)
    assert parts["failing"]["status"] == "failed"
    assert parts["failing"]["problem"] == "no such kernel"
    assert "first\nno such kernel" in parts["failing"]["output"]
    assert parts["hanging"]["status"] == "stopped"
    assert parts["hanging"]["problem"] == "not done after 1 seconds"
    assert "begun" in parts["hanging"]["output"]
    assert parts["hanging"]["seconds"] > 0
    for kind, error in (("train_step", "JSONDecodeError"), ("decode", "KeyError")):
        assert parts[kind]["status"] == "failed"
        assert parts[kind]["problem"].startswith(f"its result cannot be read: {error}")
    assert parts["sound"]["status"] == "done"
    text = page(made)
    assert "FAILED: no such kernel" in text
    assert "STOPPED: not done after 1 seconds" in text
    assert "all is well" in text
    assert "all is well" in capsys.readouterr().out


def test_ctrl_c_keeps_what_was_done(make):
    def interrupted():
        raise KeyboardInterrupt

    status, made = make(
        python("sound", "pass"),
        python("interrupted", "pass", read=interrupted),
        python("never", "pass"),
    )
    assert status == 130
    assert list(by_name(made)) == ["multi30k", "sound"]


IGNORES_CTRL_C = """
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid)
time.sleep(600)
"""


@pytest.mark.usefixtures("soon")
def test_what_ignores_ctrl_c_is_killed_with_all_that_it_has_started(monkeypatch, tmp_path):
    monkeypatch.setattr(_part, "GRACE", 0.2)
    part = python("deaf", IGNORES_CTRL_C, SOON, may_be_cut=True)
    outcome = _part.run(part, tmp_path, {})
    assert outcome["status"] == "stopped"
    child = int(outcome["output"])
    until(lambda: not running(child))


def running(pid):
    """Whether a process is there and no zombie."""
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return said.stdout.strip()[:1] not in ("", "Z")


SAVES = """
import sys, time
try:
    print("begun")
    time.sleep(600)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("may_be_cut", "expected"),
    [(True, {"status": "cut", "result": 7}), (False, {"status": "stopped"})],
)
def test_what_saves_when_its_time_is_over_has_a_result(may_be_cut, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(_part, "GRACE", HANGS)
    part = python("saves", SAVES, SOON, may_be_cut=may_be_cut, read=lambda: 7)
    outcome = _part.run(part, tmp_path, {})
    assert expected.items() <= outcome.items()


def test_a_training_that_fails_before_its_time_is_over_has_failed(tmp_path):
    part = python("lost", "raise SystemExit(130)", may_be_cut=True, read=lambda: 7)
    assert _part.run(part, tmp_path, {})["status"] == "failed"


# The page


def test_the_page_is_made_again_from_the_json_alone(make, tmp_path, capsys):
    _, made = make(python("sound", "print('all is well')"), python("failing", "1 / 0"))
    copy = tmp_path / "copy.json"
    copy.write_text(json.dumps(made), encoding="utf-8")
    assert gpu_report.main(["--page", str(copy)]) == 0
    assert capsys.readouterr().out.endswith(f"{tmp_path / 'copy.md'}\n")
    again = (tmp_path / "copy.md").read_text(encoding="utf-8")
    assert again == (tmp_path / "report/gpu-report.md").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in again
    made["parts"][-1]["seconds"] += 100
    assert page(made) != again


def test_a_report_may_stand_among_the_results(make, tmp_path):
    _, made = make(python("sound", "print('all is well')"))
    (tmp_path / "of a GPU.json").write_text(json.dumps(made), encoding="utf-8")
    assert gpu_report.table(made) in report.page(tmp_path)


def test_a_rehearsal_says_that_it_is_one(make):
    _, made = make()
    assert "its figures mean nothing" in page(made)
    assert "its figures mean nothing" not in page(made | {"quick": False})


# Privacy


def test_names_of_user_machine_and_folders_are_replaced(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    monkeypatch.setattr(platform, "node", lambda: "engine.example.org")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    value = {"ada": ["/home/ada/x /scratch/ada/y", 3, None], "m": "adagio on engine: /data/m30k/z"}
    assert without_private(value, {"/data/m30k": "DIR", "/home/ada/project": "."}) == {
        "ada": ["~/x /scratch/USER/y", 3, None],
        "m": "adagio on MACHINE: DIR/z",
    }
    assert without_private("/home/ada/project/a /home/adam", {"/home/ada/project": "."}) == (
        "./a /home/adam"
    )


def test_a_machine_may_be_called_as_a_part_is(make, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "output")
    _, made = make(python("sound", "print('output of output')"))
    assert by_name(made)["sound"]["output"] == "MACHINE of MACHINE\n"


def test_a_home_that_is_the_root_of_all_paths_changes_no_path(monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    assert without_private("a/b 1 / 2", {}) == "a/b 1 / 2"
