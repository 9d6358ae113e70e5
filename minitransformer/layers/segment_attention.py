"""Self-attention that carries the segment before, as in Transformer-XL (Dai et al. 2019).

    c = (stop(m), x)        y = MultiHead(x, c, c), where position t sees all of m and x up to t

A long text is read a segment at a time. What a layer was given for the segment before, m (B, M, D),
stands in front of what it is given for this one, x (B, T, D), as further keys and values. So it
looks back beyond the segment, and n layers n segments far, as what m was made of had looked back
itself: a recurrence, from layer to layer in place of step to step. stop means that m is a constant
in the backward, which ends where the segment does; memory and time do not grow with the text.

Derivation. With dquery of x, and dkey and dvalue of c from ``attention.py``, x stands in three
places, of which two are the last T positions of c. What goes to the first M is dropped:

    dx = dquery + (dkey + dvalue) at the positions M … M + T − 1

Absolute positions would be the same in m and x. It takes relative ones: those of the paper, or of
``rotary.py`` or ``alibi.py``.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.layers.attention import (
    MultiHeadAttention,
    multi_head_attention,
    multi_head_attention_backward,
)


def segment_attention(
    x, memory, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None
):
    """Causal attention of a segment to itself and to all of what was carried.

    Args:
        x: (B, T, D).
        memory: (B, M, D), of :func:`carried`; of the first segment M is 0.
        w_query, w_key, w_value, w_output: (D, D).
        num_heads: H.
        mask: boolean, broadcasts to (B, H, T, M + T); False at padding.
        p, rng: dropout of the weights, as for :func:`dropout`.

    Returns:
        y (B, T, D) and the cache for the backward.
    """
    xp = array_namespace(x)
    length, before = x.shape[1], memory.shape[1]
    context = xp.concatenate([memory, x], axis=1)  # (B, M + T, D)
    seen = xp.arange(before + length) <= before + xp.arange(length)[:, None]  # (T, M + T)
    seen = seen if mask is None else seen & mask
    weights = w_query, w_key, w_value, w_output
    y, cache = multi_head_attention(x, context, context, *weights, num_heads, seen, p, rng)
    return y, (before, cache)


def segment_attention_backward(dy, cache):
    """Gradients dx (B, T, D) and those of the four weights; the memory has none."""
    before, cache = cache
    dquery, dkey, dvalue, *dweights = multi_head_attention_backward(dy, cache)
    dx = dquery + (dkey + dvalue)[:, before:]  # (B, T, D)
    return dx, *dweights


def carried(x, memory, length):
    """What the next segment is given as memory (B, M, D): the last ``length`` positions or all."""
    context = array_namespace(x).concatenate([memory, x], axis=1)
    return context[:, max(0, context.shape[1] - length) :]


class SegmentAttention(MultiHeadAttention):
    """Multi-head attention with the same four weights, whose memory is handed over by the caller.

    Each segment is given what :func:`carried` made of the one before.
    """

    def forward(self, x, memory, mask=None, rng=None):
        w = (self.w_query.data, self.w_key.data, self.w_value.data, self.w_output.data)
        return segment_attention(x, memory, *w, self.num_heads, mask, self.p, rng)

    def backward(self, dy, cache):
        """Gradient dx (B, T, D)."""
        dx, dw_query, dw_key, dw_value, dw_output = segment_attention_backward(dy, cache)
        self.w_query.grad += dw_query
        self.w_key.grad += dw_key
        self.w_value.grad += dw_value
        self.w_output.grad += dw_output
        return dx

    def weights(self, cache):
        """Where the queries looked, in the forward that gave the cache: (B, H, T, M + T)."""
        _, cache = cache
        return super().weights(cache)
