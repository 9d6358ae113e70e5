"""The sum of gradients between CPUs, over MPI.

The sum in a fixed order is a reduce-scatter and an all-gather. Of a gradient of n numbers, each of
P processes adds up n / P:

    1. each process sends to each other one, of the gradient of each of its shards, the part that
       the other one adds up                                              n (P − 1) / P a shard
    2. each process adds up the parts of all shards, in the order of the shards
    3. each process sends its part of the sum to all others               n (P − 1) / P

which is what is sent, in numbers, by each process. With one shard a process that is no more than
any all-reduce sends; with several, 1. sends each of them. The faster order adds up the shards of a
process first, and leaves the rest to MPI.
"""

import os
import time
from functools import partial

import numpy as np

from minitransformer.optim.clipping import gradient_norm
from minitransformer.parallel.alone import add_up

let_others_run = getattr(os, "sched_yield", lambda: time.sleep(0))  # which Windows lacks


class MpiSums:
    """What the processes of an Mpi add; each calls the same methods in the same order.

    Args:
        MPI, world: as for Mpi.
        processes: the Mpi.
    """

    def __init__(self, MPI, world, processes):
        self._mpi, self._world, self._processes = MPI, world, processes
        self._rows = None  # what _add_in_order receives

    def add(self, total, gradients, shards, workers, ordered):
        """As that of Alone; returns how many bytes this process sends, at least."""
        if ordered:
            return self._add_in_order(total, gradients, shards, workers)
        add_up(gradients, total, workers)
        self._processes._meet()
        self._complete([self._world.Iallreduce(self._mpi.IN_PLACE, total)])
        return 2 * total.nbytes * (self._world.size - 1) // self._world.size

    def _add_in_order(self, total, gradients, shards, workers):
        bounds = self._processes._bounds(len(total))
        starts, lengths = bounds[:-1], np.diff(bounds)
        mine = self._processes.part(len(total))
        length = mine.stop - mine.start
        if self._rows is None:
            self._rows = np.empty((shards, length), total.dtype)
        first_shards = self._processes._bounds(shards)
        self._processes._meet()
        requests = []
        for i in range(-(-shards // self._world.size)):  # of the shards of each, the next one
            sends = i < len(gradients)
            there = first_shards[:-1] + i < first_shards[1:]
            requests.append(
                self._world.Ialltoallv(
                    [gradients[i] if sends else total, (lengths * sends, starts)],
                    [self._rows, (length * there, (first_shards[:-1] + i) * there * length)],
                )
            )
        self._complete(requests)
        add_up(self._rows, total[mine], workers)
        self._processes._meet()
        self._complete([self._world.Iallgatherv(self._mpi.IN_PLACE, [total, (lengths, starts)])])
        to_add, to_gather = len(total) - length, length * (self._world.size - 1)
        return (len(gradients) * to_add + to_gather) * total.itemsize

    def _complete(self, requests):
        """Wait until what was begun is done, to which all processes have to contribute."""
        are_over = partial(self._mpi.Request.Testall, requests)
        self._processes._wait(are_over, lambda waited: let_others_run())

    def norm(self, total):
        """As that of Alone."""
        return self._processes.first(gradient_norm, total)

    def close(self, status):
        """Nothing is open."""
