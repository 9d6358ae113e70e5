"""Exercises of lesson 27, since 2017. Check yours:  minitransformer check ex27

Shapes: B batch, H heads, T queries, K width of a head.
"""

import numpy as np


def longest_context(memory, num_layers, num_groups, head_width, bytes_per_number):
    """10 min. How many tokens a cache of keys and values can keep.

    Args:
        memory: bytes that there are.
        num_layers: of the model.
        num_groups: G, how many heads of keys and values a layer has.
        head_width: K.
        bytes_per_number: 4 for float32, 2 for bfloat16.

    Returns:
        the most tokens of one text that fit, an integer.

    Hint: what does a layer keep of one token?
    """
    raise NotImplementedError


def base_for(length, head_width):
    """10 min. The base of rotary positions at which the slowest pair turns once in a context.

    Args:
        length: tokens of the context, more than 2π.
        head_width: K, even, 4 or more.

    Returns:
        the base for which the last of the K/2 pairs has gone round once after ``length`` tokens.

    Hint: pair i turns by base^(−2i/K) a token. Which i is the last?
    """
    raise NotImplementedError


def soft_cap(x, cap):
    """25 min, with its backward. Scores that cannot grow beyond a limit (Gemma 2, 2024).

        y = c tanh(x / c)

    Args:
        x: any shape.
        cap: c, a positive number.

    Returns:
        y, of the shape of x, and the cache.

    Hint: for small x, y is x. What slope must it have there?
    """
    raise NotImplementedError


def soft_cap_backward(dy, cache):
    """Gradient dx, of the shape of dy.

    Hint: the slope of tanh is 1 − tanh².
    """
    raise NotImplementedError


def merged_attention(y_1, log_total_1, y_2, log_total_2):
    """45 min. The attention to two sets of keys, from those to either.

    The keys of a query lie on two machines. Each says what attention to its own keys gives, y, and
    the logarithm of its sum, L = ln Σ exp(z). From these alone make both for all keys together.

    Args:
        y_1, y_2: (B, H, T, K).
        log_total_1, log_total_2: (B, H, T, 1), as large as ±5000; −∞ where a query was allowed
            nothing, and y is 0 there.

    Returns:
        y (B, H, T, K) and log_total (B, H, T, 1): 0 and −∞ where both had nothing.

    Hint: o = ℓ y with ℓ = exp(L) is the unfinished sum of section 7. Sums can be added; and what
    may be subtracted from both L first?
    """
    raise NotImplementedError
