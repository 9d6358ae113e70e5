"""Each setting that holds a machine back is told with what to do, and no other."""

import os
import re
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
    """Makes up what the hints look at; nothing holds it back but what a test says."""
    for name in (hints.FORCED, *chain(*hints.THREADS.values())):
        monkeypatch.delenv(name, raising=False)

    def make(
        *, threads=4, cores=4, kernels="SkylakeX", fitting="SkylakeX", blas="openblas",
        gpus=(), device=None,
    ):  # fmt: skip
        def select_device(name):
            if not device:
                raise DeviceError("CuPy does not import")
            return device

        library = dict(user_api="blas", internal_api=blas, version="1")
        library |= dict(num_threads=threads, architecture=kernels)
        libraries = [{"user_api": "openmp"}, library][: 2 if blas else 1]
        monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: libraries)
        monkeypatch.setattr(hints, "available_cores", lambda: cores)
        monkeypatch.setattr(hints, "_kernels_unless_forced", lambda: fitting)
        monkeypatch.setattr(hints, "_gpus_of_the_driver", lambda: list(gpus))
        monkeypatch.setattr(hints, "select_device", select_device)

    return make


FORCED, THREADS = "OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS"
HINTS = [  # the machine, environment variables, and what each hint has in it, in this order
    ({}, {}, []),
    # Kernels of the BLAS
    (dict(kernels="Haswell"), {FORCED: "haswell"},
     [f"{FORCED}=haswell .*Haswell, .*SkylakeX; unset {FORCED}$"]),
    (dict(fitting="SkylakeX"), {FORCED: "SkylakeX"}, []),  # which would be chosen anyway
    (dict(fitting=""), {FORCED: "SkylakeX"}, []),  # which nobody can know
    (dict(blas=None), {FORCED: "Haswell"}, []),  # which cannot be asked
    # More threads than cores; the variable that asked for them, if one did that this BLAS reads
    (dict(threads=8, cores=2), {}, [f"8 threads, but .* 2 cores, .*; set {THREADS}=2$"]),
    *((dict(threads=8, cores=1, blas=blas), {name: "8"}, [f"{name}=8 .* 1 core, .* {name}=1$"])
      for blas, read in [("openblas", "OPENBLAS OMP"), ("mkl", "MKL OMP"), ("blis", "BLIS"),
                         ("nvpl", "OMP")]
      for name in (f"{variable}_NUM_THREADS" for variable in read.split())),
    (dict(threads=8, cores=2), {"MKL_NUM_THREADS": "8"}, [f"8 threads, but .* {THREADS}=2$"]),
    (dict(threads=8, cores=2), {"OMP_NUM_THREADS": "16"}, [f"8 threads, but .* {THREADS}=2$"]),
    ({}, {"OMP_NUM_THREADS": "64"}, []),  # which the BLAS does not follow
    # A GPU
    (dict(gpus=["NVIDIA A", "NVIDIA B"]), {},
     ["^NVIDIA A is there and cannot be used: CuPy does not import$"]),
    (dict(gpus=["NVIDIA A"], device=Device("cuda:0", None)), {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("held_back", "variables", "says"), HINTS)
def test_what_holds_a_machine_back_is_told(held_back, variables, says, machine, monkeypatch):
    machine(**held_back)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    hints_given = hints.hints()
    assert len(hints_given) == len(says)
    for hint, pattern in zip(hints_given, says, strict=True):
        assert re.search(pattern, hint), hint


# What is looked at


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


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Writes a program of this name that does what the test says, the only one on the path."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(code):
        path = tmp_path / "nvidia-smi"
        path.write_text(f"#!{sys.executable}\n{code}\n")
        path.chmod(0o755)

    return write


@pytest.mark.skipif(os.name == "nt", reason="a script is no program there")
def test_the_driver_is_asked_for_the_names_of_its_gpus_where_it_is_there_and_works(nvidia_smi):
    assert hints._gpus_of_the_driver() == []
    nvidia_smi("print('NVIDIA-SMI has failed'); raise SystemExit(9)")
    assert hints._gpus_of_the_driver() == []
    nvidia_smi(
        "import sys\n"
        "assert sys.argv[1:] == ['--query-gpu=name', '--format=csv,noheader']\n"
        "print('NVIDIA A\\nNVIDIA B')"
    )
    assert hints._gpus_of_the_driver() == ["NVIDIA A", "NVIDIA B"]


# All of them


def test_every_hint_is_a_line_of_info_but_not_of_a_run(machine, run_folder, capsys):
    machine(threads=8, cores=2, gpus=["NVIDIA A"])
    assert main(["info"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("hint: ")]
    assert lines == [f"hint: {hint}" for hint in hints.hints()]
    assert len(lines) == 2
    assert main(["info", str(run_folder)]) == 0
    assert "hint" not in capsys.readouterr().out
