"""What the tests of several processes share: a small recipe, and a whole run by it."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from jobs import MPIEXEC, written
from tiny_run import trained
from waiting import HANGS

from minitransformer.training.recipe import Recipe


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    ours = [item for item in items if item.path.parent == here]
    ours = [item for item in ours if item.path.stem != "test_watcher"]
    if ours and (missing := what_is_missing()):
        for item in ours:
            item.add_marker(pytest.mark.skip(reason=missing))


@cache
def what_is_missing():
    """Why no two processes can be started here, whatever the package does; None if they can."""
    meet = "from mpi4py import MPI; assert MPI.COMM_WORLD.allreduce(1) == 2"
    if not MPIEXEC:
        return "no mpiexec: python -m pip install mpi4py mpich"
    command = [MPIEXEC, "-n", "2", sys.executable, "-c", meet]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    return f"MPI starts no two processes: {done.stderr[-200:]}" if done.returncode else None


@pytest.fixture(scope="session")
def recipe(tmp_path_factory):
    """A file with a recipe of four shards, small and with all that is random."""
    return written(tmp_path_factory.mktemp("recipe"))


@pytest.fixture(scope="session")
def whole(recipe, tmp_path_factory):
    """The folder of a run of one process that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    trained(Recipe.load(recipe), folder)
    return folder
