"""Two recurrent layers over one sequence, one from each end (Schuster and Paliwal 1997).

    y_t = [→h_t ; ←h_t]

so that y_t knows what stands before t and what stands after it. Derivation: each half of dy is the
gradient of one direction, and as both read x, dx is the sum of the two.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module


class Bidirectional(Module):
    """Two layers of a kind, their states side by side, that of the layer from the start first.

    Args:
        kind: ``Elman``, ``GRU`` or ``LSTM``.
        d_in, d_hidden: widths D_in of the inputs and D of either layer's state.
        rng: NumPy generator for the weights.
    """

    def __init__(self, kind, d_in, d_hidden, rng):
        self.from_start = kind(d_in, d_hidden, rng)
        self.from_end = kind(d_in, d_hidden, rng, reverse=True)

    def forward(self, x, mask=None):
        """y (B, T, 2D), with each part of the last states (B, 2D), and the cache."""
        xp = array_namespace(x)
        outputs, start_cache = self.from_start.forward(x, mask=mask)
        others, end_cache = self.from_end.forward(x, mask=mask)
        both = zip(outputs, others, strict=True)
        return tuple(xp.concatenate(halves, axis=-1) for halves in both), (start_cache, end_cache)

    def backward(self, doutputs, cache):
        """Gradient dx from those of the outputs, any of them None for none."""
        start_cache, end_cache = cache
        halves = [(None, None) if d is None else _halves(d) for d in doutputs]
        doutputs, dothers = zip(*halves, strict=True)
        dx, *_ = self.from_start.backward(doutputs, start_cache)
        dx_from_end, *_ = self.from_end.backward(dothers, end_cache)
        return dx + dx_from_end


def _halves(x):
    middle = x.shape[-1] // 2
    return x[..., :middle], x[..., middle:]
