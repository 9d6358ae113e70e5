"""Self-attention restricted to a window of r positions to either side (section 4).

    y_t = Σ_s A_ts v_s        A_ts = softmax over |t − s| ≤ r of q_t · k_s / √d_k

or over t − r ≤ s ≤ t where it is causal. For each query 3 r keys are computed (2 r where it is
causal), of which at most 2 r + 1 (r + 1) count: time and memory grow as n r, not as n². In return
it takes d / r layers until two words that stand d apart meet.

The sequence is cut into N blocks of C = r positions. Whatever the queries of a block may see lies
in the block itself and in the two beside it (in a causal window, in the one before). So each block
is a small attention of C queries to 3 C keys, whose corners a mask cuts off, and all blocks of all
sentences are one batch, with (B N, H, C, 3 C) weights. A block and those beside it are what a
convolution of width 3 (or 2) over blocks would see, and its windows gather the keys here. A
sequence of up to 3 r positions (or 2 r) is one block, which is no more work: n² weights, not 3 n r.

Derivation. Within a block the gradients are those of ``attention.py``. A key stands in the
neighbourhoods of three blocks (or two), so its gradient is the sum of what they send:

    dk_s = Σ_blocks that see s  Σ_t in the block  dZ_ts q_t / √d_k

and likewise dv_s, which is the backward of the gathering windows.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.layers.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    scaled_dot_product_attention_weights,
    split_heads,
)
from minitransformer.layers.convolution import windows, windows_backward
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.softmax import check_mask


def restricted_attention(
    query, key, value, num_heads, window, causal=False, mask=None, p=0.0, rng=None
):
    """Each query's average of the values near it, weighted by how well their keys match.

    Args:
        query, key, value: (B, T, D), the heads side by side.
        num_heads: H, a divisor of D.
        window: r, how far a query sees to either side; causal, only back.
        causal: whether what comes after a query is hidden from it.
        mask: boolean, broadcasts to (B, 1, 1, T); False at padding. A query that has only padding
            in its window receives zeros.
        p, rng: dropout of the weights, as for :func:`dropout`.

    Returns:
        y (B, T, D) and the cache for the backward.

    Raises:
        TypeError: the mask is not boolean.
        ValueError: the mask does not broadcast, query, key and value are not of one shape, or the
            window is less than 1.
    """
    _check_window(window)
    _check(query, key, value, mask)
    batch, length, d_model = shape = query.shape
    size, seen = window, 2 if causal else 3  # C, and how many blocks a query's block sees
    if length <= seen * window:
        size, seen = length, 1

    q = blocks(query, size)  # (B, N, C D)
    k, windows_cache = windows(blocks(key, size), seen, causal=causal)  # (B, N, 3 C D)
    v, _ = windows(blocks(value, size), seen, causal=causal)  # (B, N, 3 C D)
    real, _ = windows(blocks(_tokens(query, mask), size), seen, causal=causal)  # (B, N, 3 C)
    near = near_enough(array_namespace(query), size, seen, window, causal)  # (C, 3 C)
    allowed = near & real.reshape(-1, 1, 1, seen * size)  # (B N, 1, C, 3 C)

    block_shape = batch * q.shape[1], -1, d_model
    q, k, v = (split_heads(x.reshape(block_shape), num_heads) for x in (q, k, v))
    heads, attention_cache = scaled_dot_product_attention(q, k, v, allowed, p, rng)
    y = joined(merge_heads(heads), shape)  # (B N, C, D) to (B, T, D)
    return y, (num_heads, size, shape, windows_cache, attention_cache)


def restricted_attention_backward(dy, cache):
    """Gradients dquery, dkey and dvalue, each (B, T, D)."""
    num_heads, size, shape, windows_cache, attention_cache = cache
    batch, _, d_model = shape
    dheads = split_heads(blocks(dy, size).reshape(-1, size, d_model), num_heads)  # (B N, H, C, K)
    dq, dk, dv = scaled_dot_product_attention_backward(dheads, attention_cache)
    dq, dk, dv = (merge_heads(dx) for dx in (dq, dk, dv))  # (B N, C or 3 C, D)
    seen_shape = batch, len(dq) // batch, -1
    dk, dv = (windows_backward(dx.reshape(seen_shape), windows_cache) for dx in (dk, dv))
    return tuple(joined(dx, shape) for dx in (dq, dk, dv))


def blocks(x, size):
    """x (B, T, D) in blocks of C positions, (B, N, C D), the last filled up with zeros."""
    batch, length, d = x.shape
    missing = -length % size
    if missing:
        xp = array_namespace(x)
        x = xp.concatenate([x, xp.zeros((batch, missing, d), dtype=x.dtype)], axis=1)
    return x.reshape(batch, -1, size * d)


def joined(x, shape):
    """Blocks, in whatever shape, as the (B, T, D) that they were cut from."""
    batch, length, d = shape
    return x.reshape(batch, -1, d)[:, :length]  # (B, T, D)


def near_enough(xp, size, seen, window, causal):
    """Which of the 3 C keys that a block of C queries sees are in the window of each, (C, 3 C)."""
    position = xp.arange(size)  # from the beginning of the block on
    around = xp.arange(seen * size) - seen // 2 * size  # a block before, unless it is alone
    distance = around[None, :] - position[:, None]  # (C, 3 C)
    return (distance >= -window) & (distance <= (0 if causal else window))


def _tokens(x, mask):
    """Where x has tokens, (B, T, 1); beyond the ends of a sequence ``blocks`` adds none."""
    batch, length, _ = x.shape
    xp = array_namespace(x)
    if mask is None:
        return ~xp.zeros((batch, length, 1), dtype=bool)
    return xp.broadcast_to(mask, (batch, 1, 1, length)).reshape(batch, length, 1)


def _check_window(window):
    if window < 1:
        raise ValueError(f"window={window} must be 1 or more")


def _check(query, key, value, mask):
    if not query.shape == key.shape == value.shape:
        raise ValueError(
            "a window is one of positions of the same sequence: query, key and value must be of "
            f"one shape; theirs are {query.shape}, {key.shape} and {value.shape}"
        )
    if mask is not None:
        check_mask(mask, (query.shape[0], 1, 1, query.shape[1]))


class RestrictedSelfAttention(MultiHeadAttention):
    """Multi-head attention with the same four weights, in which a query sees its window only.

    So it is in ``step`` where ``kept`` forgets what no window reaches, or a mask hides it.

    Args:
        d_model, num_heads, rng, p: as for :class:`MultiHeadAttention`.
        window: r, how far a query sees to either side.
        causal: whether it sees only back; no causal mask is then to be given.

    Raises:
        ValueError: num_heads does not divide d_model, or the window is less than 1.
    """

    def __init__(self, d_model, num_heads, window, rng, *, causal=False, p=0.0):
        _check_window(window)
        super().__init__(d_model, num_heads, rng, p=p)
        self.window = window
        self.causal = causal

    def forward(self, query, key, value, mask=None, rng=None):
        inputs = zip((query, key, value), self._projections(), strict=True)
        (q, q_cache), (k, k_cache), (v, v_cache) = (linear(x, w.data) for x, w in inputs)
        settings = self.num_heads, self.window, self.causal, mask, self.p, rng
        heads, attention_cache = restricted_attention(q, k, v, *settings)  # (B, T, D)
        y, output_cache = linear(heads, self.w_output.data)  # (B, T, D)
        return y, ((q_cache, k_cache, v_cache), attention_cache, output_cache)

    def backward(self, dy, cache):
        """Gradients dquery, dkey and dvalue; self-attention adds them up."""
        caches, attention_cache, output_cache = cache
        dheads, dw_output, _ = linear_backward(dy, output_cache)  # (B, T, D)
        self.w_output.grad += dw_output
        dprojected = restricted_attention_backward(dheads, attention_cache)
        dinputs = []
        for w, dx, of_x in zip(self._projections(), dprojected, caches, strict=True):
            dinput, dw, _ = linear_backward(dx, of_x)
            w.grad += dw
            dinputs.append(dinput)
        return tuple(dinputs)

    def _projections(self):
        return self.w_query, self.w_key, self.w_value

    def weights(self, cache):
        """Where the queries looked, within their blocks: (B N, H, C, 3 C) or, of one, C."""
        *_, (*_, attention_cache), _ = cache
        return scaled_dot_product_attention_weights(attention_cache)
