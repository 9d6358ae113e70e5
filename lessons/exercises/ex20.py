"""Exercises of lesson 20, convolution. Check yours:  minitransformer check ex20

Shapes: B batch, T length, D and F widths of input and output, k taps. All windows are causal: tap j
of a window at t stands at t − (k − 1 − j) δ, and x is 0 before the sequence begins.
"""

import numpy as np


def receptive_field(layers):
    """10 min. How many positions of the input an output of a stack sees.

    Some layers have a stride r: they keep every r-th of their outputs and throw the others away. A
    position of the next layer then stands r positions apart from its neighbour, seen from below.

    Args:
        layers: for each layer, the first one first, (width, dilation, stride), three integers.

    Returns:
        the number of positions, an integer; 1 for no layers at all.

    Hint: how far apart, in positions of the input, are two neighbouring inputs of layer l?
    """
    raise NotImplementedError


def separable_convolution(x, depthwise, pointwise, bias):
    """45 min, with its backward. A causal convolution in two steps, with dilation 1.

        z_t = Σ_j x_{t − (k − 1 − j)} · w_j       each feature alone; · is entry by entry
        y_t = z_t P + b                           each position alone

    Instead of k D F weights it has k D + D F.

    Args:
        x: (B, T, D).
        depthwise: (k, D), the w_j, for the earliest position first.
        pointwise: (D, F), P.
        bias: (F,), b.

    Returns:
        y (B, T, F) and a tuple, the cache.
    """
    raise NotImplementedError


def separable_convolution_backward(dy, cache):
    """Gradients dx (B, T, D), ddepthwise (k, D), dpointwise (D, F), dbias (F,).

    Hint: undo the second step first. Then, for one feature, what does the boxed formula say?
    """
    raise NotImplementedError


def convolution_step(x, state, weight, bias, dilation):
    """45 min. One output of a causal convolution, for a decoder that writes word by word.

    The state is what has to be kept of all inputs so far, and no more: the last (k − 1) δ of them,
    the earliest first. At the start it is zeros. Step by step, the outputs are those of the
    convolution over the whole sequence.

    Args:
        x: (B, D), the input at this position.
        state: (B, (k − 1) δ, D), the inputs before it; do not write to it, a beam search still
            needs it.
        weight: (k, D, F), the tap for the earliest position first.
        bias: (F,).
        dilation: δ.

    Returns:
        y (B, F), and the state for the next step (B, (k − 1) δ, D).

    Hint: put x behind the state. Which of these positions are in the window?
    """
    raise NotImplementedError
