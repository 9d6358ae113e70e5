"""Solutions of lesson 27, since 2017."""

import math

import numpy as np


def longest_context(memory, num_layers, num_groups, head_width, bytes_per_number):
    """A key and a value, in each layer, for each group."""
    return memory // (2 * num_layers * num_groups * head_width * bytes_per_number)


def base_for(length, head_width):
    """The last pair is i = K/2 − 1: length · base^(−(K − 2)/K) = 2π, solved for the base."""
    return (length / (2 * math.pi)) ** (head_width / (head_width - 2))


def soft_cap(x, cap):
    y = cap * np.tanh(x / cap)
    return y, (y, cap)


def soft_cap_backward(dy, cache):
    """The c outside and the 1 / c inside cancel: the slope at 0 is 1."""
    y, cap = cache
    return dy * (1 - (y / cap) ** 2)


def merged_attention(y_1, log_total_1, y_2, log_total_2):
    """The softmax of the two L weighs the two y: attention is an average of averages.

    So keys may be shared among machines in any way, and what they say be merged in any order.
    """
    peak = np.maximum(log_total_1, log_total_2)  # (B, H, T, 1)
    peak = np.where(peak == -np.inf, 0, peak)
    total_1, total_2 = np.exp(log_total_1 - peak), np.exp(log_total_2 - peak)
    total = total_1 + total_2
    y = (total_1 * y_1 + total_2 * y_2) / np.where(total == 0, 1, total)  # (B, H, T, K)
    with np.errstate(divide="ignore"):
        return y, peak + np.log(total)
