"""Solutions of lesson 17, making it fast."""

import math

import numpy as np


def rows_to_be_busy(d_in, d_out, rate, bandwidth, itemsize):
    """2 r i o / P = s (r i + i o + r o) / β, and r collected:

        r (2 i o / P − s (i + o) / β) = s i o / β

    Where the bracket is not positive, each further row brings more bytes than work: the widths
    themselves are too small, and no batch is large enough.
    """
    gain = 2 * d_in * d_out / rate - itemsize * (d_in + d_out) / bandwidth
    return itemsize * d_in * d_out / bandwidth / gain if gain > 0 else math.inf


def relu_dropout(x, keep, scale):
    y = np.maximum(x, 0)
    y *= keep
    y *= scale
    return y, (y, scale)


def relu_dropout_backward(dy, cache):
    """Dead or dropped, the gradient is 0; where y > 0 the unit was alive and kept."""
    y, scale = cache
    dx = dy * (y > 0)
    dx *= scale
    return dx


def streamed_average(blocks):
    """The sums are of exp(score − peak). A higher peak makes all of them smaller by one factor.

    As long as everything is forbidden the peak is −∞, and 0 stands in for it: exp(−∞ − 0) is 0.
    """
    peak, total, weighted = -np.inf, 0.0, 0.0
    for scores, values in blocks:
        new_peak = max(peak, scores.max(initial=-np.inf))
        reference = new_peak if new_peak > -np.inf else 0.0
        shrink = np.exp(peak - reference)
        weights = np.exp(scores - reference)  # (n,)
        total = total * shrink + weights.sum()
        weighted = weighted * shrink + weights @ values  # (K,)
        peak = new_peak
    return weighted / total if total > 0 else weighted
