"""Nothing is skipped in silence: a run of tests says for want of what, and may require it."""

from pathlib import Path

import pytest
from elsewhere import python

TESTS = Path(__file__).parents[1]
SKIPPED = """
import pytest

@pytest.mark.gpu
def test_of_a_gpu():
    pytest.skip("device 'cuda' is not usable: CuPy does not import")

@pytest.mark.parametrize("seed", range(2))
def test_of_javascript(seed):
    pytest.skip("there is no node to run JavaScript with")

@pytest.mark.skipif(True, reason="Windows has other compilers")
def test_of_signals():
    pass

def test_of_nothing():
    pass
"""
WHOLE_FILE = "import pytest\npytest.importorskip('torch_of_nobody', reason='no PyTorch')\n"


@pytest.mark.parametrize(("required", "processes", "status", "says"), [
    ("mpi,chromium", 0, 0, "skipped for want of: node 2, gpu 1, other 1, torch 1\n"),
    ("mpi,node,torch", 1, 1, "and --require asks for node, torch\n"),
    ("node,tea", 0, 4, "argument --require: tea is none of gpu, mpi, torch, node, chromium, "),
])  # fmt: skip
def test_a_run_says_what_was_missing_and_fails_where_that_was_required(
    required, processes, status, says, tmp_path
):
    (tmp_path / "test_a.py").write_text(SKIPPED, encoding="utf-8")
    (tmp_path / "test_b.py").write_text(WHOLE_FILE, encoding="utf-8")
    pytest = "-m", "pytest", "-p", "conftest", "-n", processes, "-q"
    options = f"--rootdir={tmp_path}", f"--require={required}", tmp_path
    done = python(*pytest, *options, path=(TESTS, TESTS / "kit"), PYTEST_ADDOPTS="")
    assert done.returncode == status
    assert says in done.stdout + done.stderr
