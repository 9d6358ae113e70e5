"""The processes of a training: this one alone, or all that ``mpiexec`` has started."""

import os
from functools import cache

from minitransformer.parallel.alone import ALONE

# What tells a process its number: mpiexec of MPICH and its kin, that of Open MPI, and srun.
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")


@cache
def all_processes():
    """Those that were started together with this one, by mpiexec or srun, or this one alone.

    Raises:
        MissingLibraryError: there are several, and there is no mpi4py.
        ProcessError: mpi4py knows of fewer processes than were started.
    """
    if not any(name in os.environ for name in RANKS):
        return ALONE
    from minitransformer.parallel.mpi import started  # which is for several alone

    return started() or ALONE
