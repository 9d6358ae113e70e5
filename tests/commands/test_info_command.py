import json
import platform
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import threadpoolctl
from memory import traced
from threadpoolctl import threadpool_limits

import minitransformer
from minitransformer.commands import hints
from minitransformer.commands.info import run_facts
from minitransformer.core.backend import CPU, Device, DeviceError
from minitransformer.core.workers import available_cores
from minitransformer.inference.translator import Translator
from minitransformer.parallel import alone
from minitransformer.runs.run_folder import RunFolder


@pytest.fixture
def facts(said):
    """A function: what ``info`` shows of a run, or of this machine, by name."""

    def shown(*run):
        return dict(line.split(": ", 1) for line in said("info", *run).out.splitlines())

    return shown


def test_versions_cores_and_the_library_that_multiplies_matrices_are_shown(facts):
    shown = facts()
    assert shown["minitransformer"] == minitransformer.__version__
    assert shown["Python"] == platform.python_version()
    assert shown["NumPy"] == np.__version__
    assert shown["cores"] == str(available_cores())
    library = hints.blas()
    name, kernels = f"{library['internal_api']} {library['version']}", library["architecture"]
    with threadpool_limits(1, user_api="blas"):
        assert facts()["BLAS"] == f"{name}, kernels for {kernels}, 1 thread"


def test_of_a_library_that_cannot_be_asked_it_is_told_how_numpy_was_built(monkeypatch, facts):
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [])
    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    assert facts()["BLAS"] == f"{built['name']} {built['version']}"


def test_a_gpu_is_shown_with_the_version_of_cupy_or_what_is_missing(monkeypatch, without, facts):
    without("cupy")  # and with that NCCL
    cuda = Device("cuda:0", SimpleNamespace(__version__="14.1"))
    monkeypatch.setattr(alone, "select_device", lambda name: cuda)
    shown = facts()
    assert (shown["GPU"], shown["device"]) == ("cuda:0, CuPy 14.1", "cuda:0")

    def no_gpu(name):
        if name == "cuda":
            raise DeviceError(f"device {name!r} is not usable: install CuPy")
        return CPU

    monkeypatch.setattr(alone, "select_device", no_gpu)
    shown, missing = facts(), "none; device 'cuda' is not usable: install CuPy"
    assert (shown["GPU"], shown["device"]) == (missing, "cpu")


def test_the_data_folder_is_shown(monkeypatch, tmp_path, facts):
    name = "MINITRANSFORMER_DATA"
    monkeypatch.delenv(name, raising=False)
    assert facts()[name] == "not set; a corpus is downloaded when it is needed"
    for folder, shown in ((tmp_path, str(tmp_path)), ("no/such", "no/such, which is no folder")):
        monkeypatch.setenv(name, str(folder))
        assert facts()[name] == shown


def test_a_finished_run_is_shown_with_what_was_chosen(run_folder, facts):
    translator = Translator.load(run_folder)
    shown = facts(run_folder)
    best = shown.pop("best validation BLEU")
    assert best.startswith("100.0, epoch ")
    assert shown == {
        "corpus": "files",
        "kind": "transformer",
        "trains": f"{translator.model.num_parameters():,} parameters",
        "tokens at once": "40",
        "steps": "126",
        "finished": f"yes; chosen: {translator.origin}, validation BLEU 100.0",
    }


def test_the_best_validation_is_the_highest_not_the_last(run_copy, facts):
    lines = [
        {"kind": "validation", "step": step, "epoch": epoch, "bleu": bleu}
        for step, epoch, bleu in [(9, 1, 20.0), (18, 2, 30.04), (27, 3, 10.0)]
    ]
    log = [{"kind": "train", "step": 1}, *lines]
    (run_copy / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    assert facts(run_copy)["best validation BLEU"] == "30.0, epoch 2"


def test_a_run_that_has_only_begun_is_shown_with_how_to_go_on(unfinished, facts):
    (unfinished / "metrics.jsonl").unlink()
    saved = max(path.stem for path in (unfinished / "checkpoints").iterdir())  # not logged
    assert facts(unfinished)["steps"] == str(int(saved.removeprefix("step-")))
    shutil.rmtree(unfinished / "checkpoints")
    shown = facts(unfinished)
    assert shown["steps"] == "0"
    assert shown["best validation BLEU"] == "none"
    assert shown["finished"] == f"no; go on: minitransformer train --resume '{unfinished}'"
    entries = ({"kind": "train", "step": step} for step in (1, 7))  # none saved yet
    RunFolder(unfinished).log.write(entries)
    assert facts(unfinished)["steps"] == "7"


def test_a_long_log_takes_no_more_memory_than_a_short_one(run_copy):
    run = RunFolder(run_copy)
    first, *_, last = run.log.entries()
    most = []
    for length in (1000, 5000):
        run.log.write([first, *[first | {"step": 2}] * length, last])
        with traced() as memory:
            run_facts(run)
        most.append(memory.peak)
    assert most[1] < 1.05 * most[0]
    assert most[1] < run.log.path.stat().st_size
