"""What the tests of several processes share: a small recipe, and a whole run by it."""

import importlib.util
from pathlib import Path

import pytest
from jobs import MPIEXEC, run, written


def pytest_collection_modifyitems(items):
    if MPIEXEC and importlib.util.find_spec("mpi4py"):
        return
    missing = pytest.mark.skip(reason="no mpi4py or no mpiexec: python -m pip install mpi4py mpich")
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.stem != "test_watcher":
            item.add_marker(missing)


@pytest.fixture(scope="session")
def recipe(tmp_path_factory):
    """A file with a recipe of four shards, small and with all that is random."""
    return written(tmp_path_factory.mktemp("recipe"))


@pytest.fixture(scope="session")
def whole(recipe, tmp_path_factory):
    """The folder of a run of one process that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    run(1, "train", recipe, "--run-folder", folder)
    return folder
