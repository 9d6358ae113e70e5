"""What a training step costs on many processes, as a model.

A step of P processes is

    forward and backward    each process on its share of the batch, all at once
    reduction               the gradients of all are added up, and all get the sum
    update                  clipping and Adam, of all parameters, in each process

one after the other. What is sent for the reduction takes, over a link,

    seconds = messages · latency + bytes / bandwidth

(Hockney, 1994), whose two numbers are fitted to measurements. Messages and bytes are those that one
process sends, of a gradient of ``size`` bytes:

    sums                            messages          bytes
    in any order                    2 (P − 1)         2 size (P − 1) / P
    in the order of the shards      (s + 1)(P − 1)    (s + 1) size (P − 1) / P

The first is a ring's reduce-scatter and all-gather, than which nothing sends fewer bytes (Patarasu
and Yuan, 2009). The second is that of :mod:`minitransformer.parallel.mpi`, of s shards a process.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

BACKWARD = 2 / 3  # of the operations of forward and backward


class Traffic(NamedTuple):
    """What one process sends: how many messages, and how many bytes in all."""

    messages: float
    bytes: float


@dataclass(frozen=True)
class Link:
    """Between a process and the others.

    Attributes:
        latency: seconds that each message takes, however small.
        bandwidth: bytes a second that a process sends, while it receives as many.
    """

    latency: float
    bandwidth: float

    def seconds(self, traffic):
        return traffic.messages * self.latency + traffic.bytes / self.bandwidth

    def behind(self, other):
        """The Link of what takes the other one first and then this one, nothing at a time."""
        bandwidth = 1 / (1 / self.bandwidth + 1 / other.bandwidth)
        return Link(self.latency + other.latency, bandwidth)


def traffic(processes, size, shards=1, ordered=True):
    """The Traffic of a sum of gradients of ``size`` bytes, of so many shards a process."""
    rounds, others = shards + 1 if ordered else 2, processes - 1
    return Traffic(rounds * others, rounds * size * others / processes)


def fit(points):
    """The Link that fits best to measured points, (Traffic, seconds) each.

    Least squares of errors that are shares of the seconds measured, so that small messages count
    as large ones do.

    Raises:
        ValueError: the points do not tell latency from bandwidth, or the best of either is no
            positive number: the model is not theirs.
    """
    sent, seconds = (np.array(column, float) for column in zip(*points, strict=True))
    terms = sent / seconds[:, None]
    scales = np.linalg.norm(terms, axis=0)  # messages are few, bytes are many
    solution, _, rank, _ = np.linalg.lstsq(terms / scales, np.ones(len(seconds)), rcond=1e-9)
    latency, per_byte = solution / scales
    if rank < 2:
        raise ValueError("all points have as many bytes a message: measure several sizes")
    if min(latency, per_byte) <= 0:
        raise ValueError(
            f"the best fit takes {latency:.2g} s a message and {per_byte:.2g} s a byte; both "
            "should be positive: measure smaller and larger sizes, on a quiet machine"
        )
    return Link(float(latency), float(1 / per_byte))


def errors(link, points):
    """By what share the model is above, or below, each measured point; a list."""
    return [link.seconds(sent) / seconds - 1 for sent, seconds in points]


@dataclass(frozen=True)
class Step:
    """The seconds of a step, by what is done in them."""

    compute: float
    reduction: float
    update: float

    @property
    def seconds(self):
        return self.compute + self.reduction + self.update

    def overlap_saves_at_most(self):
        """What the reduction takes, or all of the backward pass where that is shorter."""
        return min(self.reduction, BACKWARD * self.compute)


def weak_efficiency(alone, step):
    """The speed of many processes over that of as many single ones, each with the same batch.

    Args:
        alone: Step of one process.
        step: Step of many, each of which has the batch that ``alone`` has.
    """
    return alone.seconds / step.seconds


def strong_efficiency(alone, step, processes):
    """The same where one batch is cut up: how much of ``processes`` times the speed is there."""
    return alone.seconds / (processes * step.seconds)
