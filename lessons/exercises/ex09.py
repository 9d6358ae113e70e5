"""Exercises of lesson 09, many heads. Check yours:  minitransformer check ex09

Shapes: B batch, T length that asks, S length that is asked, D width, H heads, K = D / H width of a
head.
"""

import numpy as np


def multiplications(T, S, d_model, num_heads):
    """10 min. How many multiplications of two numbers one sentence costs, forward.

    Count the matrix products of multi_head_attention, for T queries and S keys and values: the four
    projections, the scores, and the weights times the values. Leave the softmax out.

    Args:
        T, S, d_model, num_heads: whole numbers.

    Returns:
        the number of multiplications.

    Hint: a product of (m, n) and (n, p) takes m · n · p.
    """
    raise NotImplementedError


def reordered_heads(w_query, w_key, w_value, w_output, num_heads, order):
    """25 min. The weights of the same function, with its heads in another order.

    Args:
        w_query, w_key, w_value, w_output: (D, D), as for multi_head_attention.
        num_heads: H.
        order: H whole numbers; at place h there shall be what was head order[h], from 0.

    Returns:
        the four matrices, each (D, D).

    Hint: a head owns columns of three matrices. And of the fourth?
    """
    raise NotImplementedError


def gated_heads(heads, gates, w_output):
    """45 min, with its backward. The last steps of the layer, with a factor for each head.

        Y = Concat(g_1 head_1, …, g_H head_H) W^O

    With all gates 1 it is the usual layer, and dgates says how the loss would change if a head
    spoke a little louder or softer: its importance, for all heads in one backward.

    Args:
        heads: (B, H, T, K), what attention returned.
        gates: (H,).
        w_output: (D, D).

    Returns:
        y (B, T, D) and a tuple, the cache.
    """
    raise NotImplementedError


def gated_heads_backward(dy, cache):
    """Gradients dheads (B, H, T, K), dgates (H,), dw_output (D, D).

    Hint: a gate serves every number of its head, in each sentence, position and feature.
    """
    raise NotImplementedError


def multi_query_attention(x, w_query, w_key, w_value, w_output, num_heads):
    """90 min, with its backward. Self-attention whose heads share keys and values (Shazeer 2019).

    Each head has queries of its own, as usual. There is one key and one value for each position, of
    the width of one head, and all heads look at these. No mask.

    Args:
        x: (B, T, D).
        w_query, w_output: (D, D).
        w_key, w_value: (D, K).
        num_heads: H.

    Returns:
        y (B, T, D) and a tuple, the cache.

    Hint: keys of shape (B, 1, T, K) fit queries of shape (B, H, T, K).
    """
    raise NotImplementedError


def multi_query_attention_backward(dy, cache):
    """Gradients dx (B, T, D), dw_query (D, D), dw_key and dw_value (D, K), dw_output (D, D).

    Hint: one key serves all heads. And x goes in at three places.
    """
    raise NotImplementedError
