"""Exercises of lesson 24, many machines. Check yours:  minitransformer check ex24

P is the number of processes, n that of the numbers in a gradient.
"""

import numpy as np


def from_own_means(gradients, counts):
    """10 min. The gradient of a batch, from shards that have divided by their own labels.

    Args:
        gradients: list of arrays (n,), one of each shard: the gradient of the mean loss of its own
            labels; zeros where a shard has none.
        counts: list of whole numbers, how many labels each shard has.

    Returns:
        the gradient of the mean loss of all labels, (n,).

    Hint: how many times is each gradient what it should have been?
    """
    raise NotImplementedError


def shared_statistics(shards, all_reduce):
    """25 min. Mean and variance of each feature over the rows of all processes.

    This is what batch norm needs, if it is to be that of the whole batch. Each process knows its
    own rows, and of the others only what comes out of ``all_reduce``.

    Args:
        shards: list of P arrays (N_p, D), one of each process; they differ in rows.
        all_reduce: a function: of a list of P arrays of one shape, one from each process, it
            returns their sum, which every process gets. Call it at most twice, with arrays of at
            most D + 1 numbers. The number of rows of all processes has to come out of it, too.

    Returns:
        mean (D,), variance (D,): the mean of the squared distances from the mean.

    Hint: a mean of means is wrong here. What has to be known before the distances can be squared?
    """
    raise NotImplementedError


def ring_round(p, r, P):
    """25 min. The ring the other way round: what process p does in round r.

    The gradient is cut into P chunks. Each process sends one chunk in each round, to p - 1, and
    receives one, from p + 1. In the rounds 0 to P - 2, the reduce-scatter, it adds what it receives
    to its own chunk. Then **process p has chunk p** of the sum, which in the lesson it has not. In
    the rounds P - 1 to 2 P - 3, the all-gather, what it receives takes the place of its own chunk.

    Args:
        p, r: numbers of the process and of the round, from 0.
        P: how many processes there are, 2 or more.

    Returns:
        to, sends, source, receives: the process it sends to, the chunk it sends, the process it
        receives from, and the chunk it receives; four numbers from 0 to P - 1.

    Hint: begin at the end of the first half. What must process p have received in its last round?
    And the chunk that it sends in one round is the one that it received in the round before.
    """
    raise NotImplementedError


def halving_doubling(gradients, send):
    """45 min. All-reduce with the bytes of the ring in fewer rounds.

    In the first round process p and its partner, P / 2 away, exchange halves: one gives its first
    half away and adds up the second, the other one the reverse. In the second round the partner is
    P / 4 away, and each exchanges half of the half that it is left with; and so on, until each
    process has n / P numbers of the sum. Then the same way back, with pieces that double.

    Args:
        gradients: list of P arrays (n,), one of each process. P is a power of 2, 1 too, and n can
            be divided by it.
        send: a function: ``send(p, q, x)`` sends a 1-D array x from process p to q, and returns
            what q receives, a copy. Each process may send 2 log₂ P times, and 2 n (P - 1) / P
            numbers in all.

    Returns:
        list of P arrays (n,): the sum, as each process has it.

    Hint: ``p ^ distance`` is the partner for distances P / 2, …, 2, 1. In a list, let all send
    before anybody adds.
    """
    raise NotImplementedError
