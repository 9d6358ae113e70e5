"""Exercises of lesson 11, the Transformer assembled. Check yours:  minitransformer check ex11

Shapes: B batch, T length, D width, F inner width of the feed-forward network.
"""

import numpy as np

from minitransformer.layers.attention import multi_head_attention, multi_head_attention_backward
from minitransformer.layers.feed_forward import feed_forward, feed_forward_backward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward


def crossover_length(d_model, d_ff):
    """10 min. From which length on do the products Q Kᵀ and A V cost more than all linear maps?

    Count the operations of one encoder layer, forward, for a sentence of T tokens: those of Q Kᵀ
    and A V on one side, those of the four projections and the feed-forward network on the other.

    Args:
        d_model, d_ff: D and F.

    Returns:
        the length T at which the two are equal.

    Hint: both sides are in section 8 of the lesson; a factor T cancels.
    """
    raise NotImplementedError


def parallel_layer(
    x, gamma, beta, w_query, w_key, w_value, w_output, w_1, b_1, w_2, b_2, num_heads
):
    """45 min, with its backward. Attention and feed-forward side by side on one normalised input.

        n = LayerNorm(x)        y = x + MultiHead(n, n, n) + FFN(n)

    Args:
        x: (B, T, D).
        gamma, beta: (D,).
        w_query, w_key, w_value, w_output: (D, D).
        w_1, b_1, w_2, b_2: (D, F), (F,), (F, D), (D,).
        num_heads: H.

    Returns:
        y (B, T, D) and a tuple, the cache.
    """
    raise NotImplementedError


def parallel_layer_backward(dy, cache):
    """A gradient for each of the first eleven arguments, dx first, each of its array's shape.

    Hint: how often is n used? And x?
    """
    raise NotImplementedError


def lean_stack(layers, x):
    """45 min, with its backward. A stack of layers that keeps no layer's cache.

    Args:
        layers: a list of pairs (forward, backward), with forward(x) -> (y, cache) and
            backward(dy, cache) -> dx. They are deterministic.
        x: (B, T, D), what goes into the first.

    Returns:
        what comes out of the last, (B, T, D), and a tuple, the cache. It may hold one array of
        this shape for each layer, and nothing that a layer's forward returned as its cache.
    """
    raise NotImplementedError


def lean_stack_backward(layers, dy, cache):
    """Gradient dx (B, T, D). Each layer's forward may run once more.

    Hint: which layer do you need the cache of first?
    """
    raise NotImplementedError
