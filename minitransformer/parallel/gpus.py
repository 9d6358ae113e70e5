"""The device of each of several processes: a GPU that no other one has, or the CPU.

Of the processes of a machine that see the same GPUs, the first takes the first, the second the
second. Where a batch system shows each of them another one, each takes the only one that it sees.
"""

import socket

from minitransformer.core.backend import CPU, DeviceError, select_device, visible_gpus


def own_device(name, processes):
    """The Device called ``name`` for this one of several processes; all of them call this.

    Args:
        name: the same in all: ``"cpu"``; ``"cuda"``, a GPU for each; or ``"auto"``, that where
            every process has a usable one, and otherwise the CPU.
        processes: an Mpi.

    Raises:
        ValueError: as for :func:`select_device`.
        DeviceError: in all processes: some share a machine with fewer GPUs; or ``"cuda"`` was
            asked for, and one process has none that is usable; or the name is that of a single GPU.
    """
    if name.startswith("cuda:"):
        raise DeviceError(
            f"device {name!r} is one GPU, and each of {processes.count} processes needs its own: "
            "give --device cuda; with CUDA_VISIBLE_DEVICES you choose which GPUs they see"
        )
    if name not in ("auto", "cuda"):
        return select_device(name)
    seen = processes.gathered([(socket.gethostname(), visible_gpus())])
    if name == "auto" and not all(gpus for _, gpus in seen):
        return CPU
    for host, gpus in seen:
        sharers, gpus_there = seen.count((host, gpus)), len(gpus)
        if 0 < gpus_there < sharers:
            raise DeviceError(
                f"{sharers} processes on {host} see {gpus_there} "
                f"GPU{'' if gpus_there == 1 else 's'}, and each needs its own: start no more than "
                f"{gpus_there} there, or give --device cpu"
            )
    index, device, problem = seen[: processes.rank].count(seen[processes.rank]), None, None
    try:
        device = select_device(f"cuda:{index}")
    except DeviceError as error:
        problem = str(error)
    problems = processes.gathered([problem])
    if not any(problems):
        return device
    if name == "auto":
        return CPU
    rank = next(rank for rank, problem in enumerate(problems) if problem)
    raise DeviceError(f"rank {rank} on {seen[rank][0]}: {problems[rank]}")
