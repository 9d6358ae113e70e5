"""The sum of gradients between GPUs, one for each process, over NCCL, NVIDIA's library for that.

The sum in a fixed order has the three steps of :mod:`minitransformer.parallel.sums`, from GPU to
GPU; sends and receives of the first one make a group, in which all go on side by side.

No process waits here. Each call puts work on the queue of the GPU, CuPy's current stream, and
returns; what waits there until all processes have come to the same call is the GPU.
"""

from contextlib import contextmanager

from minitransformer.core.backend import nccl
from minitransformer.core.libraries import MissingLibraryError
from minitransformer.core.workers import Workers
from minitransformer.optim.clipping import gradient_norm
from minitransformer.parallel.alone import ProcessError, add_up


def nccl_version():
    """NCCL's, such as ``"2.25.1"``, or None where there is no NCCL."""
    if not (module := nccl()):
        return None
    version = module.get_version()  # 22501
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


class Nccl:
    """The GPUs of all processes; each process calls the same methods in the same order.

    Args:
        device: the GPU of this process.
        processes: an Mpi, over which they meet.

    Raises:
        MissingLibraryError: there is no NCCL.
        ProcessError: there is another one in another process, or another CuPy; or NCCL fails.
    """

    def __init__(self, device, processes):
        self._device, self._nccl = device, nccl()
        versions = {"CuPy": device.xp.__version__, "NCCL": nccl_version() or "not there"}
        processes.require_same(**versions)
        if not self._nccl:
            raise MissingLibraryError(
                "several GPUs need NCCL, which CuPy does not find; install it, python -m pip "
                "install nvidia-nccl-cu12 (of CUDA 13: nvidia-nccl-cu13), or start one process"
            )
        self._rank, self._count = processes.rank, processes.count
        self._rows = None  # what _add_in_order receives
        try:
            key = processes.first(self._nccl.get_unique_id)
            with device.as_current():
                self._gpus = self._nccl.NcclCommunicator(self._count, key, self._rank)
        except self._nccl.NcclError as error:
            raise ProcessError(
                f"NCCL does not bring the GPUs of all processes together, {error}; with "
                "NCCL_DEBUG=WARN in the environment it says why"
            ) from error

    def add(self, total, gradients, shards, workers, ordered):
        """As that of Alone, on the GPU; returns how many bytes this process sends, at least."""
        if ordered:
            return self._add_in_order(total, gradients, shards, workers)
        add_up(gradients, total, workers)
        here = total.data.ptr
        self._gpus.allReduce(here, here, total.size, *self._of(total, self._nccl.NCCL_SUM))
        return 2 * total.size * total.dtype.itemsize * (self._count - 1) // self._count

    def _add_in_order(self, total, gradients, shards, workers):
        # NCCL gathers parts of one length; what is left over is the last process's, too.
        each = len(total) // self._count
        ends = [*range(each, each * self._count, each), len(total)]
        parts = [slice(rank * each, end) for rank, end in enumerate(ends)]
        mine = total[parts[self._rank]]
        if self._rows is None:
            self._rows = [self._device.xp.empty(len(mine), total.dtype) for _ in range(shards)]
        shards_of = Workers(self._count).ranges(shards)  # as Mpi.part deals them out
        with self._group():
            for peer, part in enumerate(parts):  # this process itself is one of the peers
                for gradient in gradients:
                    sent = gradient[part]
                    self._gpus.send(sent.data.ptr, len(sent), *self._of(sent, peer))
                for row in self._rows[shards_of[peer]]:
                    self._gpus.recv(row.data.ptr, len(row), *self._of(row, peer))
        add_up(self._rows, mine, workers)
        rest = total[each * self._count :]
        with self._group():
            self._gpus.allGather(mine.data.ptr, total.data.ptr, each, *self._of(total))
            self._gpus.broadcast(
                rest.data.ptr, rest.data.ptr, len(rest), *self._of(rest, self._count - 1)
            )
        to_add, to_gather = len(total) - len(mine), len(mine) * (self._count - 1)
        return (len(gradients) * to_add + to_gather) * total.dtype.itemsize

    def norm(self, total):
        """As that of Alone.

        All compute it from the same numbers, and take the first one's: GPUs of two models may add
        in two orders. That is four bytes, and waits no longer than the sum just before did.
        """
        norm = gradient_norm(total)
        self._gpus.broadcast(norm.data.ptr, norm.data.ptr, 1, *self._of(norm, 0))
        return norm

    def close(self, status):
        """Leave the others: when all are done, or with an exit status at once."""
        if status:
            self._gpus.abort()  # something may be under way that never ends
        else:
            self._gpus.destroy()

    @contextmanager
    def _group(self):
        self._nccl.groupStart()
        yield
        self._nccl.groupEnd()

    def _of(self, x, *choice):
        """The last arguments of a call: the type of ``x``, the choice of the call, the stream."""
        kind = getattr(self._nccl, f"NCCL_{x.dtype.name.upper()}")  # NCCL_FLOAT32
        return kind, *choice, self._device.queue()
