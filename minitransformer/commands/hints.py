"""Settings of this machine that make everything slower than it could be, in a sentence each."""

import os
import shutil
import subprocess
import sys

import numpy as np  # noqa: F401  # loads the BLAS that threadpool_info is to find

from minitransformer.core.backend import DeviceError, select_device
from minitransformer.core.libraries import library_if_there
from minitransformer.core.workers import available_cores

FORCED = "OPENBLAS_CORETYPE"
THREADS = {  # the variables that a BLAS reads, the stronger one first
    "openblas": ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"),
    "blis": ("BLIS_NUM_THREADS", "OMP_NUM_THREADS"),
    "mkl": ("MKL_NUM_THREADS", "OMP_NUM_THREADS"),
}
PRINT_KERNELS = """
import numpy
from threadpoolctl import threadpool_info
print(next((x["architecture"] for x in threadpool_info() if x["user_api"] == "blas"), ""))
"""


def blas():
    """What threadpoolctl knows of the library that multiplies NumPy's matrices, a dict, or None."""
    threadpoolctl = library_if_there("threadpoolctl")
    libraries = threadpoolctl.threadpool_info() if threadpoolctl else []
    return next((library for library in libraries if library["user_api"] == "blas"), None)


def hints():
    """What holds this machine back, as a list of sentences with what to do; mostly empty."""
    found = _older_kernels(), _too_many_threads(), _idle_gpu()
    return [hint for hint in found if hint]


def _older_kernels():
    library = blas()
    if not os.environ.get(FORCED) or not library:
        return ""
    forced, fitting = library.get("architecture"), _kernels_unless_forced()
    if not fitting or fitting == forced:
        return ""
    return (
        f"{FORCED}={os.environ[FORCED]} makes the BLAS use its kernels for {forced}, where it "
        f"would choose those for {fitting}; unset {FORCED}"
    )


def _kernels_unless_forced():
    """What the BLAS of a new process uses that is left to choose; empty if it does not say."""
    environment = {name: value for name, value in os.environ.items() if name != FORCED}
    command = [sys.executable, "-c", PRINT_KERNELS]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    return result.stdout.strip()


def _too_many_threads():
    library, cores = blas(), available_cores()
    threads = library["num_threads"] if library else 0
    if threads <= cores:
        return ""
    names = THREADS.get(library["internal_api"], ("OMP_NUM_THREADS",))
    name = next((name for name in names if os.environ.get(name) == str(threads)), None)
    given = f", as {name}={threads} says" if name else ""
    return (
        f"the BLAS runs {threads} threads{given}, but this process may use only {cores} "
        f"core{'s' if cores > 1 else ''}, where they hinder each other; "
        f"set {name or names[0]}={cores}"
    )


def _idle_gpu():
    try:
        select_device("cuda")
    except DeviceError as error:
        gpus = _gpus_of_the_driver()
        return f"{gpus[0]} is there and cannot be used: {error}" if gpus else ""
    return ""


def _gpus_of_the_driver():
    """The names of the GPUs that NVIDIA's driver knows of; none without a driver."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    if not shutil.which(command[0]):
        return []
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stdout.splitlines() if result.returncode == 0 else []
