"""As job.py, where there are GPUs: the strict stand-in plays CuPy, and MPI plays NCCL.

    mpiexec -n 3 python gpu_job.py GPUS THREADS TROUBLE train RECIPE ...

GPUS says how many there are: ``2,1`` on one machine two and on another one, with as many processes
on each, and what processes are left over on the last; or ``own``, where each process sees one that
the others do not. TROUBLE may be one more with the rank that has it:

    no-nccl:1   it has no NCCL; ``*`` are all
    release:1   it has another release of NCCL
    same-gpu:1  its GPU is the first one's, under another address

No step that is not logged may wait for the device.
"""

import socket
import sys

import nccl_by_mpi
from job import job
from strict_cupy import as_cupy, strict

from minitransformer.parallel.processes import all_processes
from minitransformer.training import trainer

TROUBLES = {
    "no-nccl": {"available": False},
    "release": {"get_version": lambda: 22304},
    "same-gpu": {"gpu": lambda: ("node0", "0000:00:00.0")},
}
NOT_ENDED = 99  # the exit status where NCCL's communicator is left as it is


def gpu_job(gpus, threads, trouble, *arguments):
    install(gpus, all_processes().rank)
    kind, _, where = trouble.partition(":")
    if kind in TROUBLES:
        if where in ("*", str(all_processes().rank)):
            vars(nccl_by_mpi).update(TROUBLES[kind])
        trouble = "-"
    status = job(threads, trouble, *arguments)
    end = "aborted" if status else "destroyed"
    return status if all(c.ended == end for c in nccl_by_mpi.communicators) else NOT_ENDED


def install(gpus, rank):
    """Let this process find GPUs, as GPUS says."""
    if gpus == "own":
        machine, addresses = 0, [f"0000:0{rank}:00.0"]
    else:
        machines = [
            machine for machine, count in enumerate(gpus.split(",")) for _ in range(int(count))
        ]
        last = gpus.count(",")
        machine = machines[rank] if rank < len(machines) else last
        addresses = [f"0000:0{number}:00.0" for number in range(int(gpus.split(",")[machine]))]

    def count():
        if not addresses:
            raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
        return len(addresses)

    as_cupy(getDeviceCount=count, deviceGetPCIBusId=addresses.__getitem__)
    sys.modules["cupy.cuda.nccl"] = nccl_by_mpi
    socket.gethostname = lambda: f"node{machine}"
    take_step = trainer.Trainer.take_step

    def watched(self, *arguments):
        with strict.record() as record:
            take_step(self, *arguments)
        logged = self.step == 1 or self.step % self.config.log_every == 0
        assert logged or not record.waits, "the step waited for the device"

    trainer.Trainer.take_step = watched


if __name__ == "__main__":
    sys.exit(gpu_job(*sys.argv[1:]))
