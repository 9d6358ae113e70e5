"""The benchmarks are scripts, not a package: their tests find them where ``python`` would."""

import sys
from pathlib import Path

import pytest

from minitransformer.tasks.splits import ParallelData

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


def pytest_ignore_collect(collection_path, config):
    """PyTorch is not imported for files of which all tests are left out."""
    slow_with_torch = collection_path.name in ("test_decode.py", "test_torch_side.py")
    return True if slow_with_torch and config.option.markexpr == "not slow" else None


@pytest.fixture(scope="module")
def files_like_multi30k():
    """A corpus of files takes ``--data-dir``, as that of the real runs does, and needs it not."""
    needed, _ = ParallelData.corpora["files"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(ParallelData.corpora, "files", (needed, ("data_dir",)))
        yield
