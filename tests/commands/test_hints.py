"""Each setting that holds a machine back is told with what to do, and no other."""

import os
import sys
from itertools import chain

import pytest
import threadpoolctl

from minitransformer import Device
from minitransformer.commands import hints
from minitransformer.commands.cli import main
from minitransformer.core.backend import DeviceError


@pytest.fixture
def machine(monkeypatch):
    """Makes up what the hints look at; nothing holds it back unless a test says so."""
    for name in (hints.FORCED, *chain(*hints.THREADS.values())):
        monkeypatch.delenv(name, raising=False)

    def no_gpu(name):
        raise DeviceError("CuPy does not import")

    def make(threads=4, cores=4, kernels="SkylakeX", fitting="SkylakeX", gpus=(), blas="openblas"):
        library = dict(user_api="blas", internal_api=blas, version="1")
        library |= dict(num_threads=threads, architecture=kernels)
        blas_info = [{"user_api": "openmp"}, library]
        monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: blas_info)
        monkeypatch.setattr(hints, "available_cores", lambda: cores)
        monkeypatch.setattr(hints, "_kernels_unless_forced", lambda: fitting)
        monkeypatch.setattr(hints, "_gpus_of_the_driver", lambda: list(gpus))
        monkeypatch.setattr(hints, "select_device", no_gpu)

    make()
    return make


def test_a_machine_that_nothing_holds_back_gets_no_hint(machine):
    assert hints.hints() == []


# Kernels of the BLAS


def test_a_blas_forced_to_older_kernels_is_told(machine, monkeypatch):
    machine(kernels="Haswell")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "haswell")
    assert hints.hints() == [
        "OPENBLAS_CORETYPE=haswell makes the BLAS use its kernels for Haswell, where it would "
        "choose those for SkylakeX; unset OPENBLAS_CORETYPE"
    ]


@pytest.mark.parametrize("fitting", ["SkylakeX", ""])
def test_kernels_that_would_be_chosen_anyway_or_cannot_be_known_are_fine(
    machine, monkeypatch, fitting
):
    machine(fitting=fitting)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "SkylakeX")
    assert hints.hints() == []


def test_a_new_process_is_asked_without_the_variable_and_with_all_others(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OTHER", "kept")
    print_both = "import os; print(os.environ.get('OPENBLAS_CORETYPE'), os.environ['OTHER'])"
    with monkeypatch.context() as patch:
        patch.setattr(hints, "PRINT_KERNELS", print_both)
        assert hints._kernels_unless_forced() == "None kept"
    assert os.environ["OPENBLAS_CORETYPE"] == "Haswell"


def test_this_blas_tells_the_kernels_it_chooses_whatever_is_forced(monkeypatch):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    chosen = hints._kernels_unless_forced()
    assert bool(chosen) == ("architecture" in (hints.blas() or {}))
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    assert hints._kernels_unless_forced() == chosen


# Threads


def test_more_threads_than_cores_are_told(machine):
    machine(threads=8, cores=2)
    assert hints.hints() == [
        "the BLAS runs 8 threads, but this process may use only 2 cores, where they hinder each "
        "other; set OPENBLAS_NUM_THREADS=2"
    ]


@pytest.mark.parametrize(
    ("blas", "name"),
    [
        ("openblas", "OPENBLAS_NUM_THREADS"),
        ("openblas", "OMP_NUM_THREADS"),
        ("mkl", "MKL_NUM_THREADS"),
        ("mkl", "OMP_NUM_THREADS"),
        ("blis", "BLIS_NUM_THREADS"),
        ("nvpl", "OMP_NUM_THREADS"),
    ],
)
def test_the_variable_that_asks_for_them_is_named(machine, monkeypatch, blas, name):
    machine(threads=8, cores=1, blas=blas)
    monkeypatch.setenv(name, "8")
    assert hints.hints() == [
        f"the BLAS runs 8 threads, as {name}=8 says, but this process may use only 1 core, where "
        f"they hinder each other; set {name}=1"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("MKL_NUM_THREADS", "8"), ("OMP_NUM_THREADS", "16")],
    ids=["read by another BLAS", "overruled"],
)
def test_a_variable_that_did_not_ask_for_them_is_not_blamed(machine, monkeypatch, name, value):
    machine(threads=8, cores=2)
    monkeypatch.setenv(name, value)
    assert hints.hints() == [
        "the BLAS runs 8 threads, but this process may use only 2 cores, where they hinder each "
        "other; set OPENBLAS_NUM_THREADS=2"
    ]


def test_a_variable_that_the_blas_does_not_follow_is_no_matter(machine, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    assert hints.hints() == []


def test_a_library_that_cannot_be_asked_gets_no_hint(machine, monkeypatch):
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [{"user_api": "openmp"}])
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert hints.hints() == []


# GPU


def test_a_gpu_that_is_there_and_cannot_be_used_is_told(machine):
    machine(gpus=["NVIDIA A", "NVIDIA B"])
    assert hints.hints() == ["NVIDIA A is there and cannot be used: CuPy does not import"]


def test_a_gpu_in_use_is_fine(machine, monkeypatch):
    machine(gpus=["NVIDIA A"])
    monkeypatch.setattr(hints, "select_device", lambda name: Device("cuda:0", None))
    assert hints.hints() == []


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Writes a program of this name that does what the test says, the only one on the path."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(code):
        path = tmp_path / "nvidia-smi"
        path.write_text(f"#!{sys.executable}\n{code}\n")
        path.chmod(0o755)

    return write


needs_scripts = pytest.mark.skipif(os.name == "nt", reason="a script is no program there")


@needs_scripts
def test_the_driver_is_asked_for_the_names_of_its_gpus(nvidia_smi):
    nvidia_smi(
        "import sys\n"
        "assert sys.argv[1:] == ['--query-gpu=name', '--format=csv,noheader']\n"
        "print('NVIDIA A\\nNVIDIA B')"
    )
    assert hints._gpus_of_the_driver() == ["NVIDIA A", "NVIDIA B"]


@needs_scripts
def test_a_driver_that_fails_has_no_gpus(nvidia_smi):
    nvidia_smi("print('NVIDIA-SMI has failed'); raise SystemExit(9)")
    assert hints._gpus_of_the_driver() == []


def test_without_a_driver_there_are_no_gpus(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hints._gpus_of_the_driver() == []


# All of them


def test_every_hint_is_a_line_of_info_but_not_of_a_run(machine, run_folder, capsys):
    machine(threads=8, cores=2, gpus=["NVIDIA A"])
    assert main(["info"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("hint: ")]
    assert lines == [f"hint: {hint}" for hint in hints.hints()]
    assert len(lines) == 2
    assert main(["info", str(run_folder)]) == 0
    assert "hint" not in capsys.readouterr().out
