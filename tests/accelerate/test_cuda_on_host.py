"""What needs a GPU passes with real CuPy on GPUs that the host imitates, and notices mistakes.

It runs in processes of its own, as all other tests are not to see a GPU.
"""

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest
from elsewhere import python

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
CUPY = ROOT / "build/cupy"
VERSION = "14.2"  # others may call other functions
INSTALL = f"pip install --target {CUPY} --no-deps cupy-cuda12x=={VERSION}.0 cuda-pathfinder"


@pytest.fixture
def run_tests(tmp_path):
    """Runs tests with CuPy, after ``program`` has changed something; returns what they say."""
    if sys.platform != "linux" or not shutil.which("g++"):
        pytest.skip("it takes Linux and g++")
    if importlib.util.find_spec("cupy"):
        pytest.skip("another CuPy is installed, which disturbs the one in build/cupy")
    if not list(CUPY.glob(f"cupy_cuda12x-{VERSION}.*")):
        pytest.skip(f"CuPy {VERSION} is not in build/cupy; {INSTALL}")

    def run(*options, program=""):
        (tmp_path / "change.py").write_text(program)
        path = CUPY, TESTS / "kit", tmp_path
        plugins = "-p", "no:cacheprovider", "-p", "cuda_on_host", "-p", "change"
        command = "-m", "pytest", "-q", *plugins, "-m", "gpu", *options
        done = python(*command, path=path, cwd=ROOT)
        return done.stdout + done.stderr

    return run


def test_all_that_needs_a_gpu_passes(run_tests):
    said = run_tests("-rs")
    assert re.search(r"^\d{3,} passed(, \d+ skipped)?, \d+ deselected in", said, re.MULTILINE), said
    skipped = [line for line in said.splitlines() if line.startswith("SKIPPED")]
    assert all("torch" in line.lower() for line in skipped), said


KERNEL = """
from minitransformer.accelerate.cuda import kernels
right = kernels.source()
wrong = right.replace({!r}, {!r})
assert wrong != right
kernels.source = lambda: wrong
"""
WRONG_SIGN = KERNEL.format("* inverse) + b.value[i]", "* inverse) - b.value[i]")
SOME_DO_NOT_WAIT = KERNEL.format("__syncthreads();", "if (threadIdx.y) __syncthreads();")
ARRAY_OF_THE_HOST = """
import numpy as np
from minitransformer.layers import attention
attention.check_mask = lambda mask, shape: None
softmax = attention.softmax
attention.softmax = lambda x, mask=None: softmax(x, np.ones(x.shape, bool))
"""
ELSEWHERE = """
from minitransformer.core.backend import Device
from minitransformer.core import staging
uploaded = staging.uploaded
staging.uploaded = lambda batch, device: uploaded(batch, Device(device.name, device.xp, 0))
"""
LAYER_NORM = "accelerate/test_every_twin.py", "layer_made and cuda-layer_norm"
ATTENTION = "layers/test_every_layer.py", "numpy and cuda-attention"


@pytest.mark.parametrize(
    ("program", "where", "which", "says"),
    [
        (WRONG_SIGN, *LAYER_NORM, "Not equal to tolerance"),
        (SOME_DO_NOT_WAIT, *LAYER_NORM, "never reach"),
        (ARRAY_OF_THE_HOST, *ATTENTION, "numpy.ndarray"),
        (ELSEWHERE, "core/test_several_gpus.py", "numpy", "current device (1)"),
    ],
    ids=["a wrong sign", "a barrier that some do not reach", "an array of the host", "another GPU"],
)
def test_a_mistake_is_noticed(run_tests, program, where, which, says):
    said = run_tests(TESTS / where, "-k", which, program=program)
    assert re.search(r"^\d+ failed", said, re.MULTILINE), said
    assert says in said
    assert " error" not in said.splitlines()[-1]
