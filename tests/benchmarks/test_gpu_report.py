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
import elsewhere
import gpu_report
import pytest
import report
from _gpu_page import page
from _part import ROOT, Part
from _private import without_private
from waiting import HANGS, until

STAND_IN = [ROOT / "tests/benchmarks/stand_in", ROOT / "tests/kit"]
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
    done = elsewhere.python("benchmarks/gpu_report.py", *options, path=[*paths, ROOT], cwd=ROOT)
    assert "Traceback" not in done.stderr, done.stderr
    made = json.loads((folder / "gpu-report.json").read_text(encoding="utf-8"))
    parts = by_name(made)
    assert {name for name, part in parts.items() if part["status"] == "done"} >= DONE, done.stdout
    return done.returncode, done.stdout, made


def by_name(made):
    return {part["name"]: part for part in made["parts"]}


# The whole


@pytest.mark.slow
def test_the_whole_runs_on_the_stand_in_without_pytorch_or_multi30k(missing, tmp_path):
    folder = tmp_path / "report"
    status, said, made = rehearse(folder, [*STAND_IN, missing("torch")])
    assert status == 1  # for want of Multi30k
    assert f"{folder}/gpu-report.json\n{folder}/gpu-report.md\n" in said
    assert "There will be no ratios to PyTorch: PyTorch does not import (no torch here)" in said
    assert "gpu_report.py --data-dir DIR" in said
    parts = by_name(made)
    assert "6 passed" in parts["tests"]["output"]
    assert parts["multi30k"]["problem"].startswith("DIR lacks train.de.gz")
    assert parts["base-tf32"]["status"] == "done"
    result = {name: part.get("result") for name, part in parts.items()}
    assert result["training"]["finished"]
    assert result["training"]["steps"] > 0
    assert result["training"]["recipe"]["data"]["corpus"] == "toy"
    assert result["tiny"]["settings"]["device"] == "cuda"
    assert result["tiny"]["theirs"]["name"] == "minitransformer, reference"
    assert result["scores"]["device"] == "cuda:0"
    assert "cuBLAS through CuPy" in result["decode"]["sides"]["ours"]["blas"]
    for search in result["decode"]["searches"].values():
        assert search["ratio"] == {}
        assert search["sentences_per_second"]["ours"] > 0
    text = page(made)
    assert "PyTorch's" not in text
    for part in made["parts"]:
        assert f"## {part['name']}: {part['title']}\n\n`{part['command']}`" in text
    assert f"ratio {result['tiny']['ratio']:.2f}, from" in text
    assert "stand-in, 8 GB, compute capability 9.0" in text
    assert "for CUDA 13.1, CUDA 12.9, CuPy 14.2.0" in text
    for file in (folder / "gpu-report.json", folder / "gpu-report.md"):
        text = file.read_text(encoding="utf-8")
        for private in (folder, folder.parent, ROOT, Path.home(), sys.prefix):
            assert f"{private}/" not in text
        assert "FOLDER/training" in text


@pytest.mark.slow
def test_with_pytorch_there_are_ratios(tmp_path):
    pytest.importorskip("torch")
    _, said, made = rehearse(tmp_path / "report", [], "--device", "cpu")
    parts = by_name(made)
    assert "base-tf32" not in parts
    assert "no ratios" not in said
    assert parts["tiny"]["result"]["theirs"]["name"].startswith("PyTorch")
    ratio = parts["decode"]["result"]["searches"]["beam"]["ratio"]["cache"]
    assert f"({ratio:.2f} times PyTorch's)" in page(made)


def test_all_parts_together_fit_into_20_minutes():
    options = SimpleNamespace(folder=Path("folder"), device="cuda", quick=False)
    first = Part("multi30k", "output", "", [], 60)
    parts = [first, *gpu_report.measurements(options, None)]
    found = dict(gpu={"name": "a GPU"}, without_torch=None)
    said = gpu_report.introduction(found, parts, options.folder)
    assert len(parts) == 8
    assert gpu_report.PREPARATION + sum(p.seconds + _part.GRACE for p in parts) <= 20 * 60
    assert "20 minutes at most" in said
    assert all(f"{part.seconds} s  {part.title}" in said for part in parts)


@pytest.mark.parametrize(("options", "status", "says"), [
    (["--folder", "new"], 1, "device 'cuda' is not usable: CuPy does not import (no cupy here"),
    (["--folder", "."], 2, "is there already"),
    (["--folder", "new", "--data-dir", "nope"], 2, "there is no folder nope"),
])  # fmt: skip
def test_what_is_missing_is_told_before_anything_begins(
    options, status, says, missing, tmp_path, monkeypatch, capfd
):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, [missing("cupy"), ROOT])))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=f"^{status}$"):
        gpu_report.main(options)
    assert says in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


# Parts that go wrong

SOON = 1  # a number of seconds, over as soon as the process has printed something


def python(name, program, seconds=HANGS, **fields):
    return Part(name, "output", f"a part {name}", ["-c", program], seconds, **fields)


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


@pytest.fixture
def make(monkeypatch, tmp_path):
    """A function that makes the report of some parts: status and report."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    there_is = dict(gpu={"name": "a CPU", "count": 0}, without_torch="no torch")
    monkeypatch.setattr(gpu_report, "what_there_is", lambda device: there_is)
    (tmp_path / "empty").mkdir()

    def make(*parts):
        monkeypatch.setattr(gpu_report, "measurements", lambda *_, **__: parts)
        options = ["--quick", "--folder", tmp_path / "report", "--data-dir", tmp_path / "empty"]
        status = gpu_report.main([str(option) for option in options])
        return status, json.loads((tmp_path / "report/gpu-report.json").read_text("utf-8"))

    return make


@pytest.mark.usefixtures("soon")
def test_what_fails_or_hangs_or_leaves_a_broken_result_is_reported_and_the_rest_runs(
    make, tmp_path, capsys
):
    def broken(kind, text):
        file = tmp_path / f"{kind}.json"
        program = f"from pathlib import Path; Path({str(file)!r}).write_text({text!r})"
        return python(kind, program, read=lambda: gpu_report.result_in(file, kind))

    status, made = make(
        python("failing", "print('first'); raise SystemExit('no such kernel')"),
        python("hanging", "print('begun'); import time; time.sleep(600)", SOON),
        broken("train_step", '{"ours": {"tokens'),
        broken("decode", '{"searches": {"greedy": {}}}'),
        python("sound", "print('all is well')"),
    )
    assert status == 1
    says = {
        "failing": ("failed", "no such kernel", "first\nno such kernel"),
        "hanging": ("stopped", "not done after 1 seconds", "begun"),
        "train_step": ("failed", "its result cannot be read: JSONDecodeError", ""),
        "decode": ("failed", "its result cannot be read: KeyError", ""),
        "sound": ("done", "", "all is well"),
    }
    parts, text = by_name(made), page(made)
    for name, (ending, problem, output) in says.items():
        assert parts[name]["status"] == ending
        assert parts[name].get("problem", "").startswith(problem)
        assert output in parts[name]["output"]
        assert not problem or f"{ending.upper()}: {problem}" in text
    assert parts["hanging"]["seconds"] > 0
    assert "all is well" in text
    assert "all is well" in capsys.readouterr().out


def test_ctrl_c_keeps_what_was_done(make):
    def interrupted():
        raise KeyboardInterrupt

    last = python("interrupted", "pass", read=interrupted), python("never", "pass")
    status, made = make(python("sound", "pass"), *last)
    assert status == 130
    assert list(by_name(made)) == ["multi30k", "sound"]


IGNORES_CTRL_C = """
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid)
time.sleep(600)
"""
SAVES = """
import sys, time
try:
    print("begun")
    time.sleep(600)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.usefixtures("soon")
def test_what_ignores_ctrl_c_is_killed_with_all_that_it_has_started(monkeypatch, tmp_path):
    monkeypatch.setattr(_part, "GRACE", 0.2)
    outcome = _part.run(python("deaf", IGNORES_CTRL_C, SOON, may_be_cut=True), tmp_path, {})
    assert outcome["status"] == "stopped"
    ps = ["ps", "-o", "stat=", "-p", str(int(outcome["output"]))]

    def is_gone():  # or a zombie
        said = subprocess.run(ps, capture_output=True, text=True, check=False).stdout
        return said.strip()[:1] in ("", "Z")

    until(is_gone)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("program", "seconds", "may_be_cut", "expected"), [
    (SAVES, SOON, True, {"status": "cut", "result": 7}),
    (SAVES, SOON, False, {"status": "stopped"}),
    ("raise SystemExit(130)", HANGS, True, {"status": "failed"}),
], ids=["cut", "not to be cut", "before its time"])  # fmt: skip
def test_what_saves_when_its_time_is_over_has_a_result(
    program, seconds, may_be_cut, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(_part, "GRACE", HANGS)
    part = python("saves", program, seconds, may_be_cut=may_be_cut, read=lambda: 7)
    assert expected.items() <= _part.run(part, tmp_path, {}).items()


# The page


def test_the_page_is_made_again_from_the_json_alone_and_may_stand_among_the_results(
    make, tmp_path, capsys
):
    _, made = make(python("sound", "print('all is well')"), python("failing", "1 / 0"))
    copy = tmp_path / "copy.json"
    copy.write_text(json.dumps(made), encoding="utf-8")
    assert gpu_report.main(["--page", str(copy)]) == 0
    assert capsys.readouterr().out.endswith(f"{tmp_path / 'copy.md'}\n")
    again = (tmp_path / "copy.md").read_text(encoding="utf-8")
    assert again == (tmp_path / "report/gpu-report.md").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in again
    assert gpu_report.table(made) in report.page(tmp_path)
    assert "its figures mean nothing" in again  # which is a rehearsal
    assert "its figures mean nothing" not in page(made | {"quick": False})
    made["parts"][-1]["seconds"] += 100
    assert page(made) != again


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
    project = "/home/ada/project/a /home/adam"
    assert without_private(project, {"/home/ada/project": "."}) == "./a /home/adam"
    monkeypatch.setattr(Path, "home", lambda: Path("/"))  # which changes no path
    assert without_private("a/b 1 / 2", {}) == "a/b 1 / 2"


def test_a_machine_may_be_called_as_a_part_is(make, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "output")
    _, made = make(python("sound", "print('output of output')"))
    assert by_name(made)["sound"]["output"] == "MACHINE of MACHINE\n"
