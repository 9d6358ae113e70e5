"""Many processes that train one model: MPI between CPUs, NCCL between GPUs, sums in one order."""
