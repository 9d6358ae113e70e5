"""Exercises of lesson 91, the variances of gates. Check yours:  minitransformer check ex91

σ is the logistic function, 1 / (1 + exp(−x)).
"""

import numpy as np


def gain_of_gate(gate):
    """25 min. The g that keeps the variance of numbers which go through layers with a gate.

        y = a · gate(b)

    a and b are independent Gaussians with mean 0 and variance g.

    Args:
        gate: a function of an array, entry by entry, which grows from 0 to 1.

    Returns:
        the g for which y has the variance 1, a number, right to six digits.

    Hint: g E[gate(b)²] grows with g here. Where is it surely below 1, and where above?
    """
    raise NotImplementedError


def highway_gate(x, h):
    """25 min, with its backward. A gate between x and something new (Srivastava et al. 2015).

        y = σ(b) a + (1 − σ(b)) x             a, b = the two halves of h

    An open gate lets the new through, a shut one hands x on as it is.

    Args:
        x: (B, T, D).
        h: (B, T, 2 D), a in front of b.

    Returns:
        y (B, T, D) and a tuple, the cache.
    """
    raise NotImplementedError


def highway_gate_backward(dy, cache):
    """Gradients dx (B, T, D) and dh (B, T, 2 D).

    Hint: b stands in two places.
    """
    raise NotImplementedError
