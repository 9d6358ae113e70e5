"""The sublayers of a language model as its configuration chooses them, of what came since 2017.

    self-attention    with rotary positions or ALiBi, with groups of heads, with biases
    feed-forward      FFN(x) = f(x W_1 + b_1) W_2 + b_2, f a GELU or a SiLU; SwiGLU of three maps

They stand where ``MultiHeadAttention`` and ``FeedForward`` stand in the paper's layers, and each is
a chain of pairs of ``layers/``, so its backward is the chain reversed.

``B`` batch, ``T`` length, ``D`` d_model, ``H`` heads, ``G`` groups, ``K`` head width.
"""

from minitransformer.core.module import Module
from minitransformer.core.twins import reads_weights, twinned
from minitransformer.layers.alibi import Alibi
from minitransformer.layers.attention import (
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    scaled_dot_product_attention_weights,
    split_heads,
)
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.gelu import gelu, gelu_backward, gelu_by_tanh, gelu_by_tanh_backward
from minitransformer.layers.grouped_query_attention import repeat_groups, repeat_groups_backward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.linear import Linear
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.rms_norm import RMSNorm
from minitransformer.layers.rotary import Rotary
from minitransformer.layers.silu import silu, silu_backward

NORMALISATIONS = {"layer-norm": LayerNorm, "rms-norm": RMSNorm}
ACTIVATIONS = {
    "relu": (relu, relu_backward),
    "gelu": (gelu, gelu_backward),
    "gelu-by-tanh": (gelu_by_tanh, gelu_by_tanh_backward),
    "silu": (silu, silu_backward),
}


class SelfAttention(Module):
    """Attention of a text to itself; arguments and results as of MultiHeadAttention's methods.

    Args:
        config: a LanguageModelConfig.
        rng: NumPy generator for the weights.
    """

    def __init__(self, config, rng):
        width, bias = config.d_model, config.bias == "all"
        head_width = width // config.num_heads
        self.num_heads, self.num_groups = config.num_heads, config.num_key_groups
        self.query = Linear(width, width, rng, bias=bias)
        self.key = Linear(width, self.num_groups * head_width, rng, bias=bias)
        self.value = Linear(width, self.num_groups * head_width, rng, bias=bias)
        self.output = Linear(width, width, rng, bias=bias)
        self.rotary = self.alibi = None
        if config.positions == "rotary":
            how = dict(pairs=config.rotary_pairs, base=config.rotary_base)
            self.rotary = Rotary(config.max_length, head_width, **how)
        if config.positions == "alibi":
            self.alibi = Alibi(self.num_heads)
        self.p = config.attention_dropout

    @twinned
    def forward(self, query, key, value, mask=None, rng=None):
        q, q_cache = self.query.forward(query)  # (B, T, D)
        k, k_cache = self.key.forward(key)  # (B, T, G K)
        v, v_cache = self.value.forward(value)  # (B, T, G K)
        q = split_heads(q, self.num_heads)  # (B, H, T, K)
        k, v = (split_heads(x, self.num_groups) for x in (k, v))  # (B, G, T, K)
        q, q_turned = self._turn(q)
        k, k_turned = self._turn(k)
        k, v = (repeat_groups(x, self.num_heads) for x in (k, v))  # (B, H, T, K)
        heads, attention_cache = self._attention(q, k, v, mask, self.p, rng)
        y, output_cache = self.output.forward(merge_heads(heads))  # (B, T, D)
        return y, (q_cache, k_cache, v_cache, q_turned, k_turned, attention_cache, output_cache)

    @twinned
    def backward(self, dy, cache):
        q_cache, k_cache, v_cache, q_turned, k_turned, attention_cache, output_cache = cache
        dheads = self.output.backward(dy, output_cache)  # (B, T, D)
        dheads = split_heads(dheads, self.num_heads)  # (B, H, T, K)
        dq, dk, dv = self._attention_backward(dheads, attention_cache)
        dk, dv = (repeat_groups_backward(dx, self.num_groups) for dx in (dk, dv))  # (B, G, T, K)
        dk = self._turn_backward(dk, k_turned)
        dq = self._turn_backward(dq, q_turned)
        dq, dk, dv = (merge_heads(dx) for dx in (dq, dk, dv))  # (B, T, D) and (B, T, G K)
        dvalue = self.value.backward(dv, v_cache)
        dkey = self.key.backward(dk, k_cache)
        dquery = self.query.backward(dq, q_cache)
        return dquery, dkey, dvalue

    def step(self, x, kept, mask=None):
        q, _ = self.query.forward(x)
        k, _ = self.key.forward(x)
        v, _ = self.value.forward(x)
        q = split_heads(q, self.num_heads)  # (B, H, T, K)
        k, v = (split_heads(x, self.num_groups) for x in (k, v))  # (B, G, T, K)
        q, _ = self._turn(q, len(kept))
        k, _ = self._turn(k, len(kept))
        k, v = kept.append(k, v)  # (B, G, S, K)
        k, v = (repeat_groups(x, self.num_heads) for x in (k, v))  # (B, H, S, K)
        heads, _ = self._attention(q, k, v, mask)
        y, _ = self.output.forward(merge_heads(heads))  # (B, T, D)
        return y

    @reads_weights
    def weights(self, cache):
        *_, attention_cache, _ = cache
        return scaled_dot_product_attention_weights(attention_cache)

    def turned(self, x):
        """x (B, T, H K) or (B, T, G K) with each head turned by its position, and the cache."""
        if not self.rotary:
            return x, None
        heads = split_heads(x, x.shape[-1] // self.rotary.head_width)
        heads, cache = self._turn(heads)
        return merge_heads(heads), cache

    def turned_backward(self, dy, cache):
        """Gradient of x, of the shape of dy."""
        if not self.rotary:
            return dy
        heads = split_heads(dy, dy.shape[-1] // self.rotary.head_width)
        return merge_heads(self._turn_backward(heads, cache))

    def _turn(self, x, start=0):
        return self.rotary.forward(x, start) if self.rotary else (x, None)

    def _turn_backward(self, dy, cache):
        return self.rotary.backward(dy, cache) if self.rotary else dy

    def _attention(self, query, key, value, *how):
        attend = self.alibi.forward if self.alibi else scaled_dot_product_attention
        return attend(query, key, value, *how)

    def _attention_backward(self, dy, cache):
        back = self.alibi.backward if self.alibi else scaled_dot_product_attention_backward
        return back(dy, cache)


class ActivatedFeedForward(Module):
    """The feed-forward network with another activation, or without biases.

    Args:
        config: a LanguageModelConfig.
        rng: NumPy generator for the weights.
    """

    def __init__(self, config, rng):
        bias = config.bias != "none"
        self.inner = Linear(config.d_model, config.d_ff, rng, bias=bias)
        self.outer = Linear(config.d_ff, config.d_model, rng, bias=bias)
        self.activation, self.activation_backward = ACTIVATIONS[config.activation]
        self.p = config.feed_forward_dropout

    def forward(self, x, rng=None):
        """y (B, T, D) from x (B, T, D)."""
        h, inner_cache = self.inner.forward(x)  # (B, T, F)
        h, activation_cache = self.activation(h)
        h, dropout_cache = dropout(h, self.p, rng)
        y, outer_cache = self.outer.forward(h)  # (B, T, D)
        return y, (inner_cache, activation_cache, dropout_cache, outer_cache)

    def backward(self, dy, cache):
        """Gradient dx (B, T, D)."""
        inner_cache, activation_cache, dropout_cache, outer_cache = cache
        dh = self.outer.backward(dy, outer_cache)  # (B, T, F)
        dh = dropout_backward(dh, dropout_cache)
        dh = self.activation_backward(dh, activation_cache)
        return self.inner.backward(dh, inner_cache)  # (B, T, D)


class GatedFeedForward(Module):
    """:class:`SwiGLU` of three linear maps with a name each, which may have adapters.

    Args:
        config: a LanguageModelConfig.
        rng: NumPy generator for the weights.
    """

    def __init__(self, config, rng):
        self.gate = Linear(config.d_model, config.d_ff, rng, bias=False)
        self.up = Linear(config.d_model, config.d_ff, rng, bias=False)
        self.down = Linear(config.d_ff, config.d_model, rng, bias=False)
        self.p = config.feed_forward_dropout

    def forward(self, x, rng=None):
        """y (B, T, D) from x (B, T, D)."""
        gate, gate_cache = self.gate.forward(x)  # (B, T, F)
        gate, silu_cache = silu(gate)
        up, up_cache = self.up.forward(x)  # (B, T, F)
        h, dropout_cache = dropout(gate * up, self.p, rng)
        y, down_cache = self.down.forward(h)  # (B, T, D)
        return y, (gate, up, gate_cache, silu_cache, up_cache, dropout_cache, down_cache)

    def backward(self, dy, cache):
        """Gradient dx (B, T, D)."""
        gate, up, gate_cache, silu_cache, up_cache, dropout_cache, down_cache = cache
        dh = self.down.backward(dy, down_cache)  # (B, T, F)
        dh = dropout_backward(dh, dropout_cache)
        dx_up = self.up.backward(dh * gate, up_cache)  # (B, T, D)
        dgate = silu_backward(dh * up, silu_cache)
        dx_gate = self.gate.backward(dgate, gate_cache)  # (B, T, D)
        return dx_gate + dx_up
