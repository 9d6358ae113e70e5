"""Exercises of lesson 30, depth. Check yours:  minitransformer check ex30

Shapes: B pictures of Y rows and X columns, C channels in, E channels out, k the size of a window.
"""

import math

import numpy as np


def share_of_paths(num_blocks, most):
    """10 min. How many of the ways through a residual network are short.

    A path goes through each of n blocks, or around it by the shortcut. All these paths are counted
    alike.

    Args:
        num_blocks: n.
        most: how many blocks a path may go through, exactly so many too.

    Returns:
        the share of the paths that go through no more, from 0 to 1.

    Hint: for one, two and three blocks write all paths down. Which numbers are these?
    """
    raise NotImplementedError


def deepest_within(num_weights, channels, width, num_classes):
    """25 min. The layers of the deepest residual network that has no more than so many weights.

    It is the small form of the lesson: a convolution of 3 × 3 from the picture's channels to
    ``width`` channels; three stages of n blocks, with ``width``, 2 ``width`` and 4 ``width``
    channels, each block two convolutions of 3 × 3, of which the first has the channels that the
    block is given; the mean over the picture; a linear map to the classes. Shortcuts are A. Counted
    are the entries of all kernels and of the linear map's matrix: norms and biases are left out.

    Args:
        num_weights: exactly so many are allowed.
        channels: of the picture.
        width: of the first stage.
        num_classes: what the linear map gives.

    Returns:
        6 n + 2 for the largest n that fits, or 0 where not even n = 1 does.

    Hint: how many weights does one more block in each stage have? And what is different in the
    first block of the second and the third stage?
    """
    raise NotImplementedError


def folded(weight, gamma, beta, mean, variance, epsilon=1e-5):
    """25 min. The convolution that does what a convolution and the norm behind it do.

    In use a batch norm takes off a mean and divides by a deviation that are constants, those of its
    running statistics. The convolution in front of it has no bias. The one that you return has
    one, and gives what both gave together:

        γ (conv(x, weight) − mean) / √(variance + ε) + β = conv(x, weight', bias')

    Args:
        weight: (k, k, C, E).
        gamma, beta, mean, variance: of the norm, (E,).
        epsilon: ε.

    Returns:
        weight' (k, k, C, E) and bias' (E,).

    Hint: a convolution is linear in its weight. Along which axis of the weight do the channels lie
    that the norm sees?
    """
    raise NotImplementedError


def group_norm(x, gamma, beta, groups):
    """45 min, with its backward. A norm that knows no batch (Wu and He 2018).

    The channels are cut into G equal groups, side by side. Each group of each picture is brought to
    mean 0 and variance 1 over all its places and all channels of the group:

        x̂ = (x − μ) / √(σ² + ε)        y = γ x̂ + β        ε = 1e-5

    with μ and σ² of one picture's group, and γ and β of each channel.

    Args:
        x: (B, Y, X, C).
        gamma, beta: (C,).
        groups: G, a divisor of C.

    Returns:
        y (B, Y, X, C) and a cache of your choice.

    Hint: ``reshape`` can make (B, Y, X, G, C/G) of x, and back.
    """
    raise NotImplementedError


def group_norm_backward(dy, cache):
    """Gradients dx (B, Y, X, C), dgamma (C,) and dbeta (C,).

    Hint: in batch norm γ is the same for all values that are normed together, and leaves the sums.
    Is it here?
    """
    raise NotImplementedError
