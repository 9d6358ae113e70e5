"""``minitransformer info``: what there is to compute with, and what a run is."""

import os
import platform
import socket
from pathlib import Path

import numpy as np

from minitransformer.commands.arguments import add_run_folder
from minitransformer.commands.hints import blas, hints
from minitransformer.core.backend import DeviceError
from minitransformer.core.workers import available_cores
from minitransformer.data.files import DATA_VARIABLE
from minitransformer.models.token_config import TokenConfig
from minitransformer.parallel.processes import all_processes
from minitransformer.runs.checkpoint.fields import number, require_fields
from minitransformer.runs.checkpoint.file import open_checkpoint
from minitransformer.runs.parameters import UNSCORED
from minitransformer.tasks.task import run_at, task_class
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.recipe import Recipe
from minitransformer.version import __version__


def add(parser):
    parser.description = (
        "Show versions, the device and what makes it slow, or what stands in a run folder."
    )
    add_run_folder(parser, nargs="?")
    parser.set_defaults(run=run, shared=True)


def run(options):
    """Print the information; returns the exit status."""
    processes = all_processes()
    if not options.run_folder:
        facts = _machine_facts(processes)  # the GPUs of all processes are in it
    if processes.rank:
        return 0
    if options.run_folder:
        facts = run_facts(run_at(options.run_folder))
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    for hint in [] if options.run_folder else hints():
        print(f"hint: {hint}")
    return 0


def _machine_facts(processes):
    return {
        "minitransformer": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "cores": available_cores(),
        "BLAS": _blas(),
        "GPU": _gpu(processes),
        "MPI": _mpi(processes),
        "device": _device(processes),
        DATA_VARIABLE: _data_folder(),
    }


def _blas():
    library = blas()
    if library is None:  # threadpoolctl does not know it; how NumPy was built is the next best
        built = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
        return f"{built.get('name', 'unknown')} {built.get('version', '')}".strip()
    kernels = f", kernels for {library['architecture']}" if "architecture" in library else ""
    threads = library["num_threads"]
    return (
        f"{library['internal_api']} {library['version']}{kernels}, "
        f"{threads} thread{'' if threads == 1 else 's'}"
    )


def _gpu(processes):
    """The GPU, or that of each process, and the libraries; NCCL matters to several alone."""
    try:
        device = processes.device("cuda")
    except DeviceError as error:
        return f"none; {error}"
    from minitransformer.parallel.nccl import nccl_version

    found = f"{device}, CuPy {device.xp.__version__}"
    if version := nccl_version():
        found += f", NCCL {version}"
    if processes.count > 1:
        theirs = processes.gathered([f"{processes.rank} has {device} of {socket.gethostname()}"])
        found += f"; rank {', '.join(theirs)}"
    return found


def _device(processes):
    try:
        return processes.device("auto")
    except DeviceError as error:
        return f"none; {error}"


def _mpi(processes):
    """That of mpi4py, and what mpiexec has started; without mpi4py what to do for several."""
    try:
        import mpi4py

        mpi4py.rc.initialize = processes.count > 1  # to look at it is not to start it
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        return f"none ({error}); for several processes: python -m pip install mpi4py mpich"
    found = " ".join(MPI.Get_library_version().splitlines()[0].rstrip("\0").split())
    found += f", mpi4py {mpi4py.__version__}"
    if processes.count > 1:
        found += f"; {processes.count} processes on {processes.cores} cores"
    return found


def _data_folder():
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return "not set; a corpus is downloaded when it is needed"
    return folder if Path(folder).is_dir() else f"{folder}, which is no folder"


def run_facts(run_folder):
    """What stands in a RunFolder, as a dict from names to what is printed of each.

    Raises:
        RunError, RecipeError, OSError: a file is damaged, missing, or of another run.
    """
    config, _ = run_folder.load_config()
    recipe = Recipe.of_run(run_folder)
    run_folder.bind(recipe.identity())
    score = task_class(config).score
    logged, best = 0, None
    for entry in run_folder.log:  # which may be long: none of them is kept
        logged = entry["step"]
        if entry["kind"] == "validation":
            require_fields(run_folder.log.path, entry, **{score.name: number})
            if best is None or score.better(entry[score.name], best[score.name]):
                best = entry
    _, newest = run_folder.load_newest_checkpoint() or (None, {"step": 0})
    pretrained = Pretrained.kept_in(run_folder)
    of_model = {
        "kind": config.kind,
        **({"began with": pretrained.origin} if pretrained else {}),
        "trains": config.trains(),
        **({"tokens at once": config.max_length} if isinstance(config, TokenConfig) else {}),
    }
    chosen = run_folder.load_chosen(open_checkpoint)
    if chosen and chosen[1]["origin"] in UNSCORED:
        return of_model | {"finished": UNSCORED[chosen[1]["origin"]]}
    facts = {
        "corpus": recipe.data.corpus,
        **of_model,
        "steps": max(newest["step"], logged),
        f"best validation {score.label}": (
            f"{score.shown(best[score.name])}, epoch {best['epoch']}" if best else "none"
        ),
    }
    if chosen is None:
        return facts | {"finished": f"no; go on: {run_folder.resume_command()}"}
    _, state = chosen
    name = f"validation_{score.name}"
    value = require_fields(run_folder.model, state, **{name: number})[name]
    chosen = f"{state['origin']}, validation {score.label} {score.shown(value)}"
    return facts | {"finished": f"yes; chosen: {chosen}"}
