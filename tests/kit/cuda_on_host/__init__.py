"""Real CuPy on a machine without a GPU: two GPUs imitated by the host.

Import this before CuPy; or run pytest with it, from the project's folder:

    pip install --target build/cupy --no-deps cupy-cuda12x==14.2.0 cuda-pathfinder
    PYTHONPATH=build/cupy:tests/kit python -m pytest -p cuda_on_host -m gpu

Real is all that CuPy is: its arrays and which ones it refuses (of NumPy, of another GPU), indexing,
promotion of types, broadcasting, its pool of memory, the sources of its kernels and of ours, how it
launches them, and that nothing comes back to the host unless it is asked for.

Not real is what NVIDIA's libraries and chips do, in the files named after CuPy's modules:

    runtime   memory is the host's, and work is done when it is asked for: streams keep their order
              and never overlap, and no time is worth measuring
    nvrtc     g++ compiles the sources, with headers of our own
    driver    the threads of a kernel take turns on one of the host, so that atomics leave nothing
              to chance
    cublas    products are NumPy's, and so is their rounding: TF32 and its like do not round
    thrust    sorting is NumPy's

A function of CUDA that is missing here answers that there is no driver; one of cuBLAS ends the
process and names itself.
"""

import ctypes
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cuda_on_host import cublas, driver, nvrtc, runtime, thrust
from cuda_on_host.cython import replace


def install():
    """Replace what CuPy calls of CUDA, before CuPy is imported."""
    os.environ["CUPY_ACCELERATORS"] = ""  # CUB brings kernels that NVIDIA has compiled
    os.environ["CUPY_CACHE_IN_MEMORY"] = "1"  # what g++ makes is of no use to a GPU
    _pretend_to_have_cublas()
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY)  # a function is looked for when it is called
    try:
        replace("cupy_backends.cuda.api.runtime", runtime)
        replace("cupy_backends.cuda.api.driver", driver)
        replace("cupy_backends.cuda.libs.nvrtc", nvrtc)
        replace("cupy_backends.cuda.libs.cublas", cublas)
    finally:
        sys.setdlopenflags(flags)
    pathfinder = importlib.import_module("cuda.pathfinder")
    pathfinder.find_nvidia_header_directory = lambda library: str(nvrtc.HEADERS)
    replace("cupy.cuda.thrust", thrust)


def _pretend_to_have_cublas():
    """Load an empty library of its name, without which CuPy's module does not load."""
    with tempfile.TemporaryDirectory() as folder:
        library, versions = Path(folder, "libcublas.so.12"), Path(folder, "versions")
        versions.write_text("libcublas.so.12 {};")
        options = [f"-Wl,-soname,{library.name}", f"-Wl,--version-script={versions}"]
        command = ["g++", "-shared", *options, "-x", "c", os.devnull, "-o", library]
        subprocess.run(command, check=True)
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)


install()
