"""Threads that share the work: the shards of a training step, the batches of a translation.

NumPy lets go of Python's lock inside every operation, so threads that each run the model on a part
of the sentences, with a BLAS of one thread, keep all cores busy. It beats one model on a BLAS of
many threads, which share out each matrix product and wait for each other at its end.
"""

import os
from contextlib import nullcontext
from contextvars import copy_context
from itertools import pairwise
from pathlib import Path

from minitransformer.core.backend import CPU
from minitransformer.core.blas_threads import ONE_BLAS_THREAD

# In padded tokens. A shard costs something whatever its size; of a smaller one that is too much.
SMALLEST_SHARD = 250
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # what a container may use, in microseconds of each period


class Workers:
    """Threads that work on a fixed number of parts; a single one is the calling thread itself.

    Args:
        count: how many parts the work is cut into.
        threads: how many of them are worked on side by side; by default all.
    """

    def __init__(self, count, threads=None):
        self.count, self.threads = count, min(count, threads or count)
        self._pool = self._process = None  # the threads, and the process they live in

    def map(self, function, *arguments):
        """``function`` of each of the ``arguments``, side by side; the results in order.

        The threads see the context of the caller, such as whether twins are awake. All calls have
        ended when this returns or raises, so that no thread writes on behind the caller's back.

        Raises:
            Exception: what the first of the failed calls, in order, has raised.
        """
        if self.threads == 1:
            return [function(*values) for values in zip(*arguments, strict=True)]
        from concurrent import futures  # takes long to import, and most programs have no threads

        if self._process != os.getpid():  # threads do not go along into a process forked off
            self._pool, self._process = futures.ThreadPoolExecutor(self.threads), os.getpid()
        calls = [
            self._pool.submit(copy_context().run, function, *values)
            for values in zip(*arguments, strict=True)
        ]
        try:
            futures.wait(calls)
        except BaseException:  # Ctrl-C: what has not begun never does
            for call in calls:
                call.cancel()
            futures.wait(calls)
            raise
        return [call.result() for call in calls]

    def ranges(self, length):
        """``count`` slices of almost one length that cover ``length`` entries, in order."""
        bounds = [length * i // self.count for i in range(self.count + 1)]
        return [slice(*pair) for pair in pairwise(bounds)]

    def one_blas_thread(self):
        """A context for their work: while it has several parts, the BLAS has one thread.

        Workers keep the cores busy; threads of the BLAS within them would wait for each other.
        """
        return ONE_BLAS_THREAD if self.count > 1 else nullcontext()


ONE_WORKER = Workers(1)


def workers_for(device, shards, threads):
    """Workers for so many shards of batches, in so many threads; a single one on a GPU.

    Work for a GPU has one queue, and threads would only take turns to fill it.
    """
    return Workers(shards, threads) if device == CPU else Workers(1)


def cores_of_affinity():
    """The numbers of the cores that the system lets this process run on, as a set."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count()))


def available_cores(affinity=None):
    """How many cores this process may use: those of its affinity, or fewer by a quota of time.

    Args:
        affinity: the cores of several processes of this machine, which share them.
    """
    cores = len(affinity or cores_of_affinity())
    quota, period = QUOTA.read_text().split() if QUOTA.exists() else ("max", 1)
    return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))


def default_shards(batch_tokens, cores, smallest=SMALLEST_SHARD):
    """Into how many shards to cut batches for so many cores: one for each, if none is smaller."""
    return max(1, min(cores, batch_tokens // smallest))
