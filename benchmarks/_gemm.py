"""How fast matrices can be multiplied at all: the speed that a training step is held against."""

import time

SECONDS = 0.05  # of one measurement
MEASUREMENTS = 4


def best_rate(multiply, synchronize, flops):
    """The best GFLOP/s of several measurements of a function.

    Args:
        multiply: a function that does ``flops`` operations, or queues them.
        synchronize: a function that waits until they are done.
        flops: how many operations one call has.
    """
    multiply()
    synchronize()
    calls = 1
    seconds = _seconds(multiply, synchronize, calls)
    calls = max(1, round(SECONDS / seconds))
    best = min(_seconds(multiply, synchronize, calls) for _ in range(MEASUREMENTS))
    return calls * flops / best / 1e9


def _seconds(multiply, synchronize, calls):
    start = time.perf_counter()
    for _ in range(calls):
        multiply()
    synchronize()
    return time.perf_counter() - start
