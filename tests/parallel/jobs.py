"""Starts the command line as several processes, and reads what comes of it."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tiny_run import record, tiny_recipe
from waiting import HANGS, until

from minitransformer.runs.run_folder import RunFolder

JOB = Path(__file__).with_name("job.py")
GPU_JOB = Path(__file__).with_name("gpu_job.py")
# That of the package mpich or openmpi stands beside Python.
MPIEXEC = shutil.which(
    "mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
)


def written(folder, **changes):
    """A file in ``folder`` with the recipe of tiny_recipe, with four shards."""
    return saved(tiny_recipe(folder / "corpus", **{"shards": 4} | changes), folder)


def saved(recipe, folder):
    """A file in ``folder`` with the recipe."""
    path = folder / "tiny.toml"
    path.write_text(recipe.as_toml())
    return path


def words(processes, arguments, threads=1, trouble="-", gpus=None):
    """Words of a command that starts so many processes with the same arguments.

    ``gpus`` are those of gpu_job.py, or None.
    """
    mpiexec = [MPIEXEC, "-n", str(processes)] if processes > 1 else []
    job = [GPU_JOB, gpus] if gpus else [JOB]
    return list(map(str, [*mpiexec, sys.executable, *job, threads, trouble, *arguments]))


def environment():
    """One for the processes: of tests and of the package, and no thread of the BLAS too many."""
    path = [str(Path(__file__).parents[1] / "kit"), str(Path(__file__).parents[2])]
    return os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path)}


def finished(command, **options):
    """The CompletedProcess of a command, its output as text."""
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=HANGS, **options
    )


def run(processes, *arguments, status=0, threads=1, trouble="-", gpus=None, **options):
    """What so many processes of the command line print: (standard output, standard error)."""
    done = finished(words(processes, arguments, threads, trouble, gpus), **options)
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


def loaded(folder):
    """Log entries and parameters of a run, in bytes, and where they are from."""
    entries, _ = record(folder)
    arrays, state = RunFolder(folder).load_chosen()
    return entries, {name: array.tobytes() for name, array in arrays.items()}, state


def interrupted(processes, *arguments, entries, trouble="slow:0", gpus=None):
    """Press Ctrl-C when the log of the run folder, the last argument, has so many entries.

    Returns:
        what was printed to standard error.
    """
    log = RunFolder(arguments[-1]).log
    command = words(processes, arguments, trouble=trouble, gpus=gpus)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment(), stdout=pipe, stderr=pipe, text=True) as job:
        until(lambda: len(log.entries()) >= entries or job.poll() is not None)
        assert job.poll() is None, job.stderr.read()
        job.send_signal(signal.SIGINT)
        said = job.communicate(timeout=HANGS)[1]
    assert job.returncode == 130, said
    return said
