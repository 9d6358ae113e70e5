"""Solutions of lesson 11, the Transformer assembled."""

from minitransformer.layers.attention import multi_head_attention, multi_head_attention_backward
from minitransformer.layers.feed_forward import feed_forward, feed_forward_backward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward


def crossover_length(d_model, d_ff):
    """4 T² D = 2 T (4 D² + 2 D F) gives T = 2 D + F, which is 6 D where F = 4 D.

    For base that is 3072 tokens, a dozen pages of text in one sentence: in translation the price of
    attention is that of its projections.
    """
    return 2 * d_model + d_ff


def parallel_layer(
    x, gamma, beta, w_query, w_key, w_value, w_output, w_1, b_1, w_2, b_2, num_heads
):
    n, norm_cache = layer_norm(x, gamma, beta)
    weights = w_query, w_key, w_value, w_output
    attended, attention_cache = multi_head_attention(n, n, n, *weights, num_heads)
    fed, feed_forward_cache = feed_forward(n, w_1, b_1, w_2, b_2)
    return x + attended + fed, (norm_cache, attention_cache, feed_forward_cache)


def parallel_layer_backward(dy, cache):
    """n is used four times, as query, key, value and by the feed-forward network; x is used twice.

    Both branches can run at the same time, since neither waits for the other.
    """
    norm_cache, attention_cache, feed_forward_cache = cache
    dn, *dfeed_forward = feed_forward_backward(dy, feed_forward_cache)
    dquery, dkey, dvalue, *dattention = multi_head_attention_backward(dy, attention_cache)
    dn = dn + dquery + dkey + dvalue
    dx, dgamma, dbeta = layer_norm_backward(dn, norm_cache)
    return dy + dx, dgamma, dbeta, *dattention, *dfeed_forward


def lean_stack(layers, x):
    entered = []
    for forward, _ in layers:
        entered.append(x)
        x, _ = forward(x)
    return x, tuple(entered)


def lean_stack_backward(layers, dy, cache):
    """One more forward: a training step is four forwards in place of three, a third more work.

    With dropout the second forward must draw the same masks, so each layer would have to keep the
    state of its generator. Keeping the input of every k-th layer only saves more memory; the
    work stays the same, since each layer is still run twice.
    """
    for (forward, backward), x in zip(reversed(layers), reversed(cache), strict=True):
        _, layer_cache = forward(x)
        dy = backward(dy, layer_cache)
    return dy
