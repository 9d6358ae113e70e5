"""Two steps of one process that take turns."""

from time import perf_counter


def alternate(first, second, blocks, block):
    """Seconds of each block of steps, as [(of first, of second)]; who begins changes.

    Args:
        first, second: the steps, called without arguments.
        blocks: how many turns each has, after one that warms up.
        block: steps that are taken in a row.
    """
    seconds = []
    for i in range(blocks + 1):
        order = (first, second) if i % 2 == 0 else (second, first)
        taken = [seconds_of(step, block) for step in order]
        seconds.append(tuple(taken if i % 2 == 0 else taken[::-1]))
    return seconds[1:]


def seconds_of(step, times=1):
    """How long so many steps take."""
    start = perf_counter()
    for _ in range(times):
        step()
    return perf_counter() - start
