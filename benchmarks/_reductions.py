"""Gradients added up by several processes, alone: how long it takes over sizes, and what fits.

What is timed is ``add`` of the processes, which a Trainer calls in each step.
"""

import statistics
from time import perf_counter

import numpy as np
from _cost import Link, errors, fit, traffic

from minitransformer.core.workers import ONE_WORKER
from minitransformer.parallel.processes import all_processes

SIZES = tuple(1000 * 4**i for i in range(10))  # bytes of a gradient: 1 kB to 262 MB
BYTES, TIMES = 5e7, 100  # how much a turn adds up, in bytes, and how often at most


def first_of_all(count, threads):
    """An Mpi of the first ``count`` of all processes, which call this together; None elsewhere."""
    from mpi4py import MPI

    from minitransformer.parallel.mpi import Mpi

    has_part = all_processes().rank < count
    world = MPI.COMM_WORLD.Split(has_part)
    return Mpi(MPI, world, threads) if has_part else None


def teams(count):
    """(processes, shards of each, ordered) of all that is timed with so many processes."""
    if count < 2:
        return []
    more = [(count, 1, True), (count, 1, False)] if count > 2 else []
    return [(2, 1, True), (2, 1, False), (2, 2, True), *more]


def measure(sizes, rounds):
    """Time all teams and sizes, one after the other; in the first process a list of dicts.

    Args:
        sizes: bytes of a gradient.
        rounds: turns of each, after one that warms up; the median counts.
    """
    everyone = all_processes()
    rows = []
    for count, shards, ordered in teams(everyone.count):
        for size in sizes:
            everyone.gathered([])  # all are here, and those without a turn wait for the next
            seconds = _turns(count, shards, ordered, size, rounds)
            team = {"processes": count, "shards": shards, "ordered_sums": ordered}
            rows.append({**team, "bytes": size, "seconds": seconds})
    return rows


def _turns(count, shards, ordered, size, rounds):
    """Seconds of one sum; None in a process that has no part in it."""
    processes = first_of_all(count, 1)  # a new one, for it keeps what one size receives
    if processes is None:
        return None
    gradients = [np.full(size // 4, 0, np.float32) for _ in range(shards)]
    times = max(1, min(TIMES, int(BYTES / size)))
    turns = []
    for _ in range(1 + rounds):
        processes.gathered([])
        start = perf_counter()
        for _ in range(times):
            processes.add(gradients[0], gradients, count * shards, ONE_WORKER, ordered)
        turns.append((perf_counter() - start) / times)
    return statistics.median(turns[1:])


def fitted(rows):
    """The Link of two processes with a shard each, by whether the sums are ordered, as a dict.

    Fitted to every other size that was measured.

    Raises:
        ValueError: the model does not fit.
    """
    return {ordered: fit(points(_of_team(rows, (2, 1, ordered)))[::2]) for ordered in (True, False)}


def largest(rows):
    """The same Links, with the bandwidth of the largest sum: for gradients about as large."""
    links = {}
    for ordered, link in fitted(rows).items():
        sent, seconds = max(points(_of_team(rows, (2, 1, ordered))))
        links[ordered] = Link(link.latency, sent.bytes / seconds)
    return links


def _of_team(rows, team):
    keys = "processes", "shards", "ordered_sums"
    return [row for row in rows if tuple(row[key] for key in keys) == team]


def points(rows):
    """(Traffic, seconds) of each."""
    keys = "processes", "bytes", "shards", "ordered_sums"
    return [(traffic(*(row[key] for key in keys)), row["seconds"]) for row in rows]


def table(rows, links):
    """All sums as text, each beside what the model says of it.

    Args:
        links: of each order of sums, as fitted.
    """
    count = max(row["processes"] for row in rows)
    columns = [_of_team(rows, team) for team in teams(count)]
    off = [errors(links[c[0]["ordered_sums"]], points(c)) for c in columns]
    lines = ["", "the sum alone, ms, and how far the model is above or below"]
    lines.append(
        _line("processes x shards", (f"{c[0]['processes']} x {c[0]['shards']}" for c in columns))
    )
    lines.append(_line("        kB    sums", (order(c[0]) for c in columns)))
    for i, row in enumerate(columns[0]):
        head = f"{row['bytes'] / 1000:10,.0f}{'' if i % 2 else ' fitted'}"
        cells = (
            f"{1000 * c[i]['seconds']:.2f} {e[i]:+5.0%}" for c, e in zip(columns, off, strict=True)
        )
        lines.append(_line(head, cells))
    for ordered, link in links.items():
        lines.append(
            f"{order({'ordered_sums': ordered}):7s}: {1e6 * link.latency:.0f} µs a message, "
            f"{link.bandwidth / 1e9:.2f} GB/s"
        )
    return "\n".join(lines)


def order(row):
    """In which order the sums are, in a word."""
    return "ordered" if row["ordered_sums"] else "MPI's"


def _line(head, cells):
    return f"{head:18s}" + "".join(f"{cell:>16s}" for cell in cells)
