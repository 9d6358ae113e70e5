"""Adds up gradients over NCCL as MPI plays it, and compares with sums in order of one process.

    mpiexec -n 3 python nccl_sums.py

Each process has a GPU, whose norms are wrong but for the first one's, as if it were of another
model. The first process prints that all was compared.
"""

import itertools
import sys

import numpy as np
from gpu_job import install
from rounding import assert_but_for_rounding
from strict_cupy import strict

from minitransformer.core.backend import to_host
from minitransformer.core.workers import ONE_WORKER
from minitransformer.optim.clipping import gradient_norm
from minitransformer.parallel import nccl
from minitransformer.parallel.alone import ALONE
from minitransformer.parallel.processes import all_processes

LENGTHS = 3, 100  # which three processes share evenly, and not


def gradients(length, shards, seed):
    return list(np.random.default_rng(seed).standard_normal((shards, length), np.float32))


def in_order(rows):
    total = np.empty_like(rows[0])
    ALONE.add(total, rows, len(rows), ONE_WORKER)
    return total


def compare(processes, device, length, shards):
    """A step of ordered sums and one of others, with different numbers."""
    processes._sums._rows = None  # of as many shards and numbers
    for seed, ordered in ((0, True), (1, True), (2, False)):
        rows = gradients(length, shards, seed)
        mine = [device.asarray(row) for row in rows[processes.part(shards)]]
        total = mine[0] if mine else strict.empty(length, np.float32)
        before = processes.bytes_sent
        processes.add(total, mine, shards, ONE_WORKER, ordered)
        found = to_host(total)
        if ordered:
            assert found.tobytes() == in_order(rows).tobytes()
        else:
            assert_but_for_rounding(found, in_order(rows), additions=shards)
        own = len(mine) if ordered else 1
        theory = (own + 1) * found.nbytes * (1 - 1 / processes.count)
        parts = (1 + own) * found.itemsize * processes.count  # one may have some numbers more
        assert abs(processes.bytes_sent - before - theory) <= parts
        norm = to_host(processes.norm(total))
        assert np.isclose(norm, np.linalg.norm(found))
        assert len(set(processes.gathered([(found.tobytes(), norm.tobytes())]))) == 1


def main():
    processes = all_processes()
    install("own", processes.rank)
    device = processes.device("cuda")
    processes.connect(device)
    nccl.gradient_norm = lambda total: gradient_norm(total) * (1 + processes.rank)
    with device.as_current():
        for length, shards in itertools.product(LENGTHS, (1, 2, 3, 5)):
            compare(processes, device, length, shards)
    print("compared")
    return 0


if __name__ == "__main__":
    sys.exit(all_processes().run(main))
