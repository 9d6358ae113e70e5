"""Feed-forward network with a gate, SwiGLU (Shazeer 2020).

    SwiGLU(x) = (SiLU(x W_gate) · x W_up) W_down

In place of ``feed_forward.py``, whose ReLU only opens and shuts: each inner feature is a product of
two maps of x, of which the first goes through a SiLU. There are no biases. With three matrices in
place of two, F is taken to be 2/3 of what it would be, 8/3 D for 4 D, and they count the same.

Derivation. With g = SiLU(x W_gate), u = x W_up and h = g · u, a chain of pairs around one product,
each of whose factors receives dh times the other one:

    dh = dy W_downᵀ        dg = dh u        du = dh g

x goes two ways, so its gradient is a sum: dx = d(x W_gate) W_gateᵀ + du W_upᵀ. Dropout of h is not
in the paper.
"""

from minitransformer.core.module import Module, Parameter
from minitransformer.core.twins import twinned
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.linear import glorot_uniform, linear, linear_backward
from minitransformer.layers.silu import silu, silu_backward


@twinned
def swiglu(x, w_gate, w_up, w_down, p=0.0, rng=None):
    """The same gated network at every position.

    Args:
        x: (..., D).
        w_gate, w_up: (D, F).
        w_down: (F, D).
        p, rng: dropout before the last map, as for :func:`dropout`.

    Returns:
        y (..., D) and the cache for the backward.
    """
    gate, gate_cache = linear(x, w_gate)  # (..., F)
    gate, silu_cache = silu(gate)
    up, up_cache = linear(x, w_up)  # (..., F)
    h, dropout_cache = dropout(gate * up, p, rng)
    y, down_cache = linear(h, w_down)  # (..., D)
    return y, (gate, up, gate_cache, silu_cache, up_cache, dropout_cache, down_cache)


@twinned
def swiglu_backward(dy, cache):
    """Gradients of the first four arguments, each of its argument's shape."""
    gate, up, gate_cache, silu_cache, up_cache, dropout_cache, down_cache = cache
    dh, dw_down, _ = linear_backward(dy, down_cache)  # (..., F)
    dh = dropout_backward(dh, dropout_cache)
    dx_up, dw_up, _ = linear_backward(dh * gate, up_cache)  # (..., D)
    dgate = silu_backward(dh * up, silu_cache)
    dx_gate, dw_gate, _ = linear_backward(dgate, gate_cache)  # (..., D)
    return dx_gate + dx_up, dw_gate, dw_up, dw_down


class SwiGLU(Module):
    """The gated network with its own weights.

    Args:
        d_model: width D of inputs and outputs.
        d_ff: width F between the maps.
        rng: NumPy generator for the weights.
        p: dropout probability before the last map.
    """

    def __init__(self, d_model, d_ff, rng, *, p=0.0):
        self.w_gate = Parameter(glorot_uniform((d_model, d_ff), rng))
        self.w_up = Parameter(glorot_uniform((d_model, d_ff), rng))
        self.w_down = Parameter(glorot_uniform((d_ff, d_model), rng))
        self.p = p

    def forward(self, x, rng=None):
        return swiglu(x, self.w_gate.data, self.w_up.data, self.w_down.data, self.p, rng)

    def backward(self, dy, cache):
        dx, dw_gate, dw_up, dw_down = swiglu_backward(dy, cache)
        self.w_gate.grad += dw_gate
        self.w_up.grad += dw_up
        self.w_down.grad += dw_down
        return dx
