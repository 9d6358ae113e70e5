"""Several processes, on one machine or many, over MPI (Message Passing Interface, 1994).

Waiting is polite: where there are more processes than cores, one that waits lets others run. Before
anything is sent all say which call they make, so that none waits for what the others never send.
"""

import io
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

import numpy as np

from minitransformer.core.backend import CPU, is_array, to_host
from minitransformer.core.blas_threads import limit_blas_threads
from minitransformer.core.interrupts import Interrupt, noted
from minitransformer.core.libraries import MissingLibraryError
from minitransformer.core.terminal import readable
from minitransformer.core.workers import Workers, available_cores, cores_of_affinity
from minitransformer.parallel import watcher
from minitransformer.parallel.alone import Alone, ProcessError
from minitransformer.parallel.gpus import own_device
from minitransformer.parallel.sums import MpiSums

SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")  # where MPICH and Open MPI say how many there are
PATIENCE = 2.0  # seconds in which all processes come to the same end, if they do
LAST_WAIT = 60.0  # seconds that one which was asked to stop waits for another; it may be saving
CALLS = ADDS, GATHERS, IS_TOLD = "adds up gradients", "gathers", "is told what the first one found"


def started():
    """The Mpi of all processes that were started with this one, or None where there is no other.

    Raises:
        MissingLibraryError: there is no mpi4py, or no MPI for it.
        ProcessError: MPI knows of fewer processes than were started.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # there is no mpi4py, or no MPI for it
        raise MissingLibraryError(
            f"processes need mpi4py and an MPI, which do not import ({error}); install both, "
            "python -m pip install mpi4py mpich, or start one process, without mpiexec"
        ) from error
    world = MPI.COMM_WORLD
    said = [int(os.environ[name]) for name in SIZES if name in os.environ]
    if said and said[0] != world.size:
        raise ProcessError(
            f"{said[0]} processes were started, and MPI knows of {world.size}: mpi4py uses another "
            f"MPI than mpiexec is of, {MPI.Get_library_version().splitlines()[0]}; start them with "
            "the mpiexec of that one"
        )
    return Mpi(MPI, world) if world.size > 1 else None


class Mpi(Alone):
    """All processes that were started together; the methods are those of Alone.

    All of them call the same methods in the same order.

    Args:
        MPI: the module of mpi4py.
        world: the communicator of the processes.
        threads: of each; by default its share of the cores of its machine.

    Attributes:
        seconds_waiting: for other processes, so far. A GPU's own waiting for others is not in it,
            as the host does not see that.
        bytes_sent: of gradients to other processes, so far; in MPI's order what it takes at least.
    """

    cores = threads = None  # numbers, as __init__ finds them out

    def __init__(self, MPI, world, threads=None):
        self._mpi, self._world = MPI, world
        self.rank, self.count = self._world.rank, self._world.size
        self.seconds_waiting, self.bytes_sent = 0.0, 0
        self._ends = self._world.Dup()  # where nothing can be under way when a process fails
        self._here = self._world.Split_type(MPI.COMM_TYPE_SHARED)  # those on this machine
        self._waits = False
        self._calls = np.empty((2, self.count), np.int8)  # what _meet sends and receives
        self._sums = MpiSums(MPI, world, self)  # until they are on GPUs
        mine = cores_of_affinity()
        cores = available_cores(mine.union(*self._here.allgather(mine)))
        self.threads = threads or max(1, min(len(mine), cores // self._here.size))
        self.cores = self._world.allreduce(0 if self._here.rank else cores)

    def device(self, name):
        return own_device(name, self)

    def connect(self, device):
        if device != CPU:
            from minitransformer.parallel.nccl import Nccl  # which is for GPUs alone

            self._sums = Nccl(device, self)

    # What is said and gathered

    def part(self, length):
        return slice(*self._bounds(length)[self.rank : self.rank + 2].tolist())

    def _bounds(self, length):
        """Where the parts of all processes begin, and where the last one ends: (P + 1,)."""
        return np.arange(self.count + 1) * length // self.count

    def first(self, function, *arguments):
        value = failure = None
        if self.rank == 0:
            try:
                value = function(*arguments)
            except BaseException as error:  # Ctrl-C, too: nobody is to wait for what never comes
                failure = error
        self._meet(IS_TOLD)
        value, problem = self._world.bcast((value, _told(failure)))
        if failure:
            raise failure
        if problem:
            raise ProcessError(f"rank 0: {problem}")
        return value

    def gathered(self, values):
        return [value for part in self._gather(values) for value in part]

    def _gather(self, value):
        self._meet(GATHERS)
        return self._world.allgather(value)

    def shared(self, workers):
        return SharedWorkers(workers.count, self)

    def require_same(self, **facts):
        for name, fact in facts.items():
            if is_array(fact):
                facts[name] = f"of checksum {zlib.crc32(to_host(fact)):08x}"
        (first_host, first), *others = self._gather((socket.gethostname(), facts))
        for rank, (host, theirs) in enumerate(others, start=1):
            for name in {**first, **theirs}:
                here, there = first.get(name, "not there"), theirs.get(name, "not there")
                if here != there:
                    raise ProcessError(
                        f"the processes differ: {name} is {there} in rank {rank} on {host}, and "
                        f"{here} in rank 0 on {first_host}; start all of them with the same"
                    )

    # The sum of gradients

    def add(self, total, gradients, shards, workers, ordered=True):
        self.bytes_sent += self._sums.add(total, gradients, shards, workers, ordered)

    def norm(self, total):
        return self._sums.norm(total)

    def _meet(self, call=ADDS):
        """Wait until all processes are here, ever less eagerly, so that they get the cores.

        Raises:
            ProcessError: one of them makes another call.
        """
        start = time.perf_counter()
        mine, theirs = self._calls
        mine.fill(CALLS.index(call))
        request = self._world.Iallgather(mine[:1], theirs)
        self._wait(request.Test, lambda waited: time.sleep(min(0.02, waited / 20)))
        self.seconds_waiting += time.perf_counter() - start
        if other := next((rank for rank in range(self.count) if theirs[rank] != theirs[0]), None):
            raise ProcessError(
                f"the processes have parted ways: rank {other} {CALLS[theirs[other]]}, where rank "
                f"0 {CALLS[theirs[0]]}; that is an error in this program, which should be reported"
            )

    def _wait(self, is_over, pause):
        """Call ``pause(waited)``, with the seconds so far, until ``is_over()``.

        Raises:
            Interrupt: this process was asked to stop, and the others do not come to that.
        """
        start, asked, self._waits = time.perf_counter(), math.inf, True
        while not is_over():
            now = time.perf_counter()
            if signals := noted():
                asked = min(asked, now)
            if now - asked > LAST_WAIT:
                raise Interrupt(signals[0])
            pause(now - start)
        self._waits = False

    # The end

    def run(self, main):
        """As that of Alone; the others than the first process print nothing.

        Where one alone fails it says so and ends all of them, and so does one that was asked to
        stop and waits in vain for the others. Where one is killed, mpiexec ends them, and on each
        machine the one is named that was the first to go.
        """
        limit_blas_threads(self.threads)  # or else each process would have some for all cores
        words = ""
        if self.rank:
            words = _LastWords()
            sys.stdout, sys.stderr = open(os.devnull, "w"), words  # noqa: SIM115  # to the end
        watched = self._watched()
        try:
            status = main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            sys.stderr.write(traceback.format_exc())
            status = 1
        sys.stdout.flush()
        try:
            status = self._agreed(status, words, watched)
        except KeyboardInterrupt:
            self._end_all(130, watched)
        if self._waits:  # interrupted amid what the others may wait for, too
            self._end_all(status, watched)
        self._sums.close(status)
        self._mpi.Finalize()
        os.write(watched, watcher.GOODBYE)
        return status

    def _agreed(self, status, words, watched):
        """The exit status of all processes, when all have come to their end."""
        arrival, start = self._ends.Ibarrier(), time.monotonic()
        while not arrival.Test():
            if status and time.monotonic() - start > PATIENCE:
                what = "waits for others in vain" if self._waits else "has failed"
                self._say(f"rank {self.rank} of {self.count} {what} and ends all. {words}")
                self._end_all(status, watched)
            time.sleep(0.001)
        statuses = self._ends.allgather(status)
        failed = next((rank for rank, status in enumerate(statuses) if status), None)
        if failed == self.rank != 0:
            self._say(f"rank {self.rank} of {self.count} has failed. {words}")
        return 0 if failed is None else statuses[failed]

    def _end_all(self, status, watched):
        os.write(watched, watcher.TOLD)
        time.sleep(0.2)  # mpiexec prints what was said, or loses it when it has to end all
        self._world.Abort(status)
        time.sleep(60)  # on a busy machine it returns before it is over, and all has been said

    def _watched(self):
        """Start the watcher of this machine; the pipe that this process has open for it."""
        if not hasattr(os, "mkfifo"):  # Windows, where nobody is named
            return os.open(os.devnull, os.O_WRONLY)
        name = f"rank {self.rank} of {self.count}, process {os.getpid()} on {socket.gethostname()}"
        names, folder = self._here.allgather(name), None
        if self._here.rank == 0:
            folder = tempfile.mkdtemp(prefix="minitransformer-")
            for number in range(len(names)):
                os.mkfifo(os.path.join(folder, str(number)))
            # -I and -S: it starts fast. A session of its own: a terminal's Ctrl-C is not for it.
            program = [sys.executable, "-I", "-S", watcher.__file__, folder, *names]
            pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._watcher = subprocess.Popen(program, **pipes, start_new_session=True)
            self._watcher.stdout.readline()  # it watches
        pipe = os.path.join(self._here.bcast(folder), str(self._here.rank))
        return os.open(pipe, os.O_RDWR)  # which does not wait for a reader

    def _say(self, text):
        text = readable(f"minitransformer: {text}".rstrip())
        print(text, file=sys.__stderr__, flush=True)


class SharedWorkers(Workers):
    """Workers whose calls all processes share; each of them gets all results.

    Args:
        count: how many parts the work is cut into.
        processes: an Mpi.
    """

    def __init__(self, count, processes):
        super().__init__(count, processes.threads)
        self._processes = processes

    def map(self, function, *arguments):
        """As that of Workers; raises what the first process raises that fails."""
        calls = list(zip(*arguments, strict=True))
        rank, count = self._processes.rank, self._processes.count
        results, failure = [], None
        try:
            results = super().map(lambda call: function(*call), calls[rank::count])
        except Exception as error:
            failure = error
        shares = self._processes._gather((results, _told(failure)))
        for other, (_, problem) in enumerate(shares):
            if problem:
                raise failure if other == rank else ProcessError(f"rank {other}: {problem}")
        found = [None] * len(calls)
        for other, (theirs, _) in enumerate(shares):
            found[other::count] = theirs
        return found


class _LastWords(io.TextIOBase):
    """Standard error of a process that is not to print: keeps the last text, in case it fails."""

    def __init__(self):
        self._text = ""

    def write(self, text):
        if text.strip():
            self._text = text.strip()
        return len(text)

    def __str__(self):
        return self._text


def _told(failure):
    """An exception in words, for the other processes; None of None."""
    return None if failure is None else str(failure) or type(failure).__name__
