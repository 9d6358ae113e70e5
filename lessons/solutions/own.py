"""A Transformer of one's own: every function of ``exercises/own.py``, with NumPy alone."""

import math

import numpy as np

PAD, BOS, EOS = 0, 2, 3


def linear(x, weight, bias=None):
    d_in, d_out = weight.shape
    y = x.reshape(-1, d_in) @ weight  # (rows, D_out)
    if bias is not None:
        y += bias
    return y.reshape(*x.shape[:-1], d_out), (x, weight, bias)  # (..., D_out)


def linear_backward(dy, cache):
    """W and b serve every row: their gradients are sums over the rows, which a product does."""
    x, weight, bias = cache
    d_in, d_out = weight.shape
    dy = dy.reshape(-1, d_out)  # (rows, D_out)
    dbias = None if bias is None else dy.sum(axis=0)  # (D_out,)
    dweight = x.reshape(-1, d_in).T @ dy  # (D_in, D_out)
    dx = (dy @ weight.T).reshape(x.shape)  # (..., D_in)
    return dx, dweight, dbias


def relu(x):
    return np.maximum(x, 0), x > 0


def relu_backward(dy, cache):
    alive = cache
    return dy * alive


def dropout(x, p=0.0, rng=None):
    if rng is None or p == 0:
        return x, None
    keep = rng.random(x.shape, dtype=np.float32) >= p
    scale = 1 / (1 - p)
    return x * keep * scale, (keep, scale)


def dropout_backward(dy, cache):
    if cache is None:
        return dy
    keep, scale = cache
    return dy * keep * scale


def feed_forward(x, w_1, b_1, w_2, b_2, p=0.0, rng=None):
    h, inner_cache = linear(x, w_1, b_1)  # (..., F)
    h, relu_cache = relu(h)
    h, dropout_cache = dropout(h, p, rng)
    y, outer_cache = linear(h, w_2, b_2)  # (..., D)
    return y, (inner_cache, relu_cache, dropout_cache, outer_cache)


def feed_forward_backward(dy, cache):
    inner_cache, relu_cache, dropout_cache, outer_cache = cache
    dh, dw_2, db_2 = linear_backward(dy, outer_cache)  # (..., F)
    dh = dropout_backward(dh, dropout_cache)
    dh = relu_backward(dh, relu_cache)
    dx, dw_1, db_1 = linear_backward(dh, inner_cache)  # (..., D)
    return dx, dw_1, db_1, dw_2, db_2


def softmax(x, mask=None):
    """Where nothing is allowed, the largest score is −∞ and the sum 0; 0 and 1 do no harm there."""
    if mask is not None:
        x = np.where(mask, x, -np.inf)
    peak = x.max(axis=-1, keepdims=True)  # (..., 1)
    weights = np.exp(x - np.where(peak == -np.inf, 0, peak))
    total = weights.sum(axis=-1, keepdims=True)  # (..., 1)
    weights = weights / np.where(total == 0, 1, total)
    return weights, weights


def softmax_backward(dweights, cache):
    weights = cache
    return weights * (dweights - (dweights * weights).sum(axis=-1, keepdims=True))


def cross_entropy(logits, targets, smoothing=0.0, pad_id=0, num_tokens=None):
    """−Σ q log p is a mixture too: 1 − ε of the right word's −log p, and ε of the mean over all."""
    z = logits.reshape(-1, logits.shape[-1])  # (rows, V)
    t = targets.reshape(-1)  # (rows,)
    z = z - z.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))  # (rows, V)
    real = t != pad_id  # (rows,)
    count = float(max(real.sum(), 1) if num_tokens is None else num_tokens)
    share = real.astype(z.dtype) / count  # (rows,) what each row makes up of the mean

    nll = -(log_p[np.arange(len(t)), t] * share).sum()
    uniform = -(log_p.mean(axis=-1) * share).sum()
    loss = (1 - smoothing) * nll + smoothing * uniform
    return (loss, nll), (log_p, t, share, smoothing, logits.shape)


def cross_entropy_backward(dloss, cache):
    log_p, t, share, smoothing, shape = cache
    dz = np.exp(log_p) - smoothing / shape[-1]  # (rows, V) p, and p − q a line below
    dz[np.arange(len(t)), t] -= 1 - smoothing
    dz *= (share * dloss)[:, None]
    return dz.reshape(shape)  # (..., V)


def embedding(ids, weight):
    scale = math.sqrt(weight.shape[1])
    return weight[ids] * scale, (ids, weight, scale)  # (..., D)


def embedding_backward(dx, cache):
    """``dweight[ids] += ...`` would keep one of several gradients of the same word."""
    ids, weight, scale = cache
    dweight = np.zeros_like(weight)  # (V, D)
    np.add.at(dweight, ids, dx * scale)
    return dweight


def sinusoidal_encoding(length, d_model):
    frequency = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)  # (D/2,)
    angle = np.arange(length)[:, None] * frequency  # (T, D/2)
    pairs = np.stack([np.sin(angle), np.cos(angle)], axis=-1)  # (T, D/2, 2)
    return pairs.reshape(length, d_model)  # (T, D)


def positional_encoding(x, table):
    return x + table[: x.shape[-2]], None


def positional_encoding_backward(dy, cache):
    return dy


def layer_norm(x, gamma, beta, epsilon=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)  # (..., 1)
    sigma = np.sqrt(variance + epsilon)  # (..., 1)
    x_hat = centred / sigma
    return gamma * x_hat + beta, (x_hat, sigma, gamma)


def layer_norm_backward(dy, cache):
    """dx̂ loses its components along 1 and x̂: shifting or rescaling a row changes nothing."""
    x_hat, sigma, gamma = cache
    rows = tuple(range(dy.ndim - 1))
    dbeta = dy.sum(axis=rows)  # (D,)
    dgamma = (dy * x_hat).sum(axis=rows)  # (D,)
    dx_hat = dy * gamma
    through_mean = dx_hat.mean(axis=-1, keepdims=True)  # (..., 1)
    through_sigma = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat - through_mean - through_sigma) / sigma
    return dx, dgamma, dbeta


def padding_mask(ids, pad_id=0):
    return (ids != pad_id)[:, None, None, :]  # (B, 1, 1, S)


def causal_mask(ids):
    position = np.arange(ids.shape[1])
    return (position[None, :] <= position[:, None])[None, None]  # (1, 1, T, T)


def scaled_dot_product_attention(query, key, value, mask=None, p=0.0, rng=None):
    scale = 1 / math.sqrt(query.shape[-1])
    scores = query @ key.swapaxes(-1, -2) * scale  # (B, H, T, S)
    weights, softmax_cache = softmax(scores, mask)
    weights, dropout_cache = dropout(weights, p, rng)
    y = weights @ value  # (B, H, T, K)
    return y, (query, key, value, scale, softmax_cache, dropout_cache, weights)


def scaled_dot_product_attention_backward(dy, cache):
    query, key, value, scale, softmax_cache, dropout_cache, weights = cache
    dvalue = weights.swapaxes(-1, -2) @ dy  # (B, H, S, K)
    dweights = dy @ value.swapaxes(-1, -2)  # (B, H, T, S)
    dweights = dropout_backward(dweights, dropout_cache)
    dscores = softmax_backward(dweights, softmax_cache) * scale
    dkey = dscores.swapaxes(-1, -2) @ query  # (B, H, S, K)
    dquery = dscores @ key  # (B, H, T, K)
    return dquery, dkey, dvalue


def split_heads(x, num_heads):
    batch, length, d_model = x.shape
    return x.reshape(batch, length, num_heads, d_model // num_heads).swapaxes(1, 2)


def merge_heads(x):
    batch, num_heads, length, head_width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, num_heads * head_width)


def multi_head_attention(
    query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None
):
    q, q_cache = linear(query, w_query)  # (B, T, D)
    k, k_cache = linear(key, w_key)  # (B, S, D)
    v, v_cache = linear(value, w_value)  # (B, S, D)
    q, k, v = (split_heads(x, num_heads) for x in (q, k, v))  # (B, H, T or S, K)
    heads, attention_cache = scaled_dot_product_attention(q, k, v, mask, p, rng)  # (B, H, T, K)
    y, output_cache = linear(merge_heads(heads), w_output)  # (B, T, D)
    return y, (num_heads, q_cache, k_cache, v_cache, attention_cache, output_cache)


def multi_head_attention_backward(dy, cache):
    """Splitting and merging only move numbers, so each is the backward of the other."""
    num_heads, q_cache, k_cache, v_cache, attention_cache, output_cache = cache
    dheads, dw_output, _ = linear_backward(dy, output_cache)  # (B, T, D)
    dheads = split_heads(dheads, num_heads)  # (B, H, T, K)
    dq, dk, dv = scaled_dot_product_attention_backward(dheads, attention_cache)
    dq, dk, dv = (merge_heads(dx) for dx in (dq, dk, dv))  # (B, T or S, D)
    dvalue, dw_value, _ = linear_backward(dv, v_cache)
    dkey, dw_key, _ = linear_backward(dk, k_cache)
    dquery, dw_query, _ = linear_backward(dq, q_cache)
    return dquery, dkey, dvalue, dw_query, dw_key, dw_value, dw_output


def residual(x, h, p=0.0, rng=None):
    h, cache = dropout(h, p, rng)
    return x + h, cache


def residual_backward(dz, cache):
    return dz, dropout_backward(dz, cache)


def enter(x, norm, pre_norm, epsilon):
    """What a sublayer is given: LayerNorm(x) in pre-norm, x itself in post-norm."""
    return layer_norm(x, *norm, epsilon) if pre_norm else (x, None)


def leave(x, h, norm, pre_norm, epsilon, p, rng):
    """What follows from x and from h, which the sublayer returned."""
    z, residual_cache = residual(x, h, p, rng)
    y, norm_cache = (z, None) if pre_norm else layer_norm(z, *norm, epsilon)
    return y, (residual_cache, norm_cache)


def leave_backward(dy, cache):
    """dx past the sublayer, dh into it, and (dgamma, dbeta), which is empty in pre-norm."""
    residual_cache, norm_cache = cache
    dz, *dnorm = [dy] if norm_cache is None else layer_norm_backward(dy, norm_cache)
    return *residual_backward(dz, residual_cache), tuple(dnorm)


def enter_backward(dx, dh, cache):
    """dx past and through the sublayer, and (dgamma, dbeta), which is empty in post-norm."""
    dh, *dnorm = [dh] if cache is None else layer_norm_backward(dh, cache)
    return dx + dh, tuple(dnorm)


def encoder_layer(
    x,
    attention,
    attention_norm,
    network,
    network_norm,
    num_heads,
    mask=None,
    pre_norm=False,
    epsilon=1e-5,
    p=0.0,
    attention_p=0.0,
    hidden_p=0.0,
    rng=None,
):
    h, enter_cache = enter(x, attention_norm, pre_norm, epsilon)
    h, attention_cache = multi_head_attention(
        h, h, h, *attention, num_heads, mask, attention_p, rng
    )
    x, leave_cache = leave(x, h, attention_norm, pre_norm, epsilon, p, rng)
    attention_caches = enter_cache, attention_cache, leave_cache

    h, enter_cache = enter(x, network_norm, pre_norm, epsilon)
    h, network_cache = feed_forward(h, *network, hidden_p, rng)
    y, leave_cache = leave(x, h, network_norm, pre_norm, epsilon, p, rng)
    return y, (attention_caches, (enter_cache, network_cache, leave_cache))


def encoder_layer_backward(dy, cache):
    attention_caches, network_caches = cache

    enter_cache, network_cache, leave_cache = network_caches
    dx, dh, dnorm_left = leave_backward(dy, leave_cache)
    dh, *dnetwork = feed_forward_backward(dh, network_cache)
    dx, dnorm_entered = enter_backward(dx, dh, enter_cache)
    dnetwork_norm = dnorm_entered + dnorm_left

    enter_cache, attention_cache, leave_cache = attention_caches
    dx, dh, dnorm_left = leave_backward(dx, leave_cache)
    dquery, dkey, dvalue, *dattention = multi_head_attention_backward(dh, attention_cache)
    dx, dnorm_entered = enter_backward(dx, dquery + dkey + dvalue, enter_cache)
    dattention_norm = dnorm_entered + dnorm_left
    return dx, tuple(dattention), dattention_norm, tuple(dnetwork), dnetwork_norm


def decoder_layer(
    x,
    memory,
    self_attention,
    self_norm,
    cross_attention,
    cross_norm,
    network,
    network_norm,
    num_heads,
    mask=None,
    memory_mask=None,
    pre_norm=False,
    epsilon=1e-5,
    p=0.0,
    attention_p=0.0,
    hidden_p=0.0,
    rng=None,
):
    h, enter_cache = enter(x, self_norm, pre_norm, epsilon)
    h, self_cache = multi_head_attention(
        h, h, h, *self_attention, num_heads, mask, attention_p, rng
    )
    x, leave_cache = leave(x, h, self_norm, pre_norm, epsilon, p, rng)
    self_caches = enter_cache, self_cache, leave_cache

    h, enter_cache = enter(x, cross_norm, pre_norm, epsilon)
    h, cross_cache = multi_head_attention(
        h, memory, memory, *cross_attention, num_heads, memory_mask, attention_p, rng
    )
    x, leave_cache = leave(x, h, cross_norm, pre_norm, epsilon, p, rng)
    cross_caches = enter_cache, cross_cache, leave_cache

    h, enter_cache = enter(x, network_norm, pre_norm, epsilon)
    h, network_cache = feed_forward(h, *network, hidden_p, rng)
    y, leave_cache = leave(x, h, network_norm, pre_norm, epsilon, p, rng)
    return y, (self_caches, cross_caches, (enter_cache, network_cache, leave_cache))


def decoder_layer_backward(dy, cache):
    self_caches, cross_caches, network_caches = cache

    enter_cache, network_cache, leave_cache = network_caches
    dx, dh, dnorm_left = leave_backward(dy, leave_cache)
    dh, *dnetwork = feed_forward_backward(dh, network_cache)
    dx, dnorm_entered = enter_backward(dx, dh, enter_cache)
    dnetwork_norm = dnorm_entered + dnorm_left

    enter_cache, cross_cache, leave_cache = cross_caches
    dx, dh, dnorm_left = leave_backward(dx, leave_cache)
    dh, dkey, dvalue, *dcross = multi_head_attention_backward(dh, cross_cache)
    dmemory = dkey + dvalue
    dx, dnorm_entered = enter_backward(dx, dh, enter_cache)
    dcross_norm = dnorm_entered + dnorm_left

    enter_cache, self_cache, leave_cache = self_caches
    dx, dh, dnorm_left = leave_backward(dx, leave_cache)
    dquery, dkey, dvalue, *dself = multi_head_attention_backward(dh, self_cache)
    dx, dnorm_entered = enter_backward(dx, dquery + dkey + dvalue, enter_cache)
    dself_norm = dnorm_entered + dnorm_left

    dself, dcross, dnetwork = tuple(dself), tuple(dcross), tuple(dnetwork)
    return dx, dmemory, dself, dself_norm, dcross, dcross_norm, dnetwork, dnetwork_norm


def adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale=1.0):
    grad = grad * scale
    m *= beta_1
    m += (1 - beta_1) * grad
    v *= beta_2
    v += (1 - beta_2) * grad * grad
    m_hat = m / (1 - beta_1**t)
    v_hat = v / (1 - beta_2**t)
    data -= learning_rate * m_hat / (np.sqrt(v_hat) + epsilon)


def noam(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def linear_decay(step, peak, warmup_steps, total_steps):
    """A training that is all warm-up has no steps to fall in, and 0 / 0 none to say so."""
    falling = (total_steps - step) / max(1, total_steps - warmup_steps)
    return peak * max(0.0, min(step / warmup_steps, falling))


def gradient_norm(grad):
    return np.sqrt(grad @ grad)


def clip_scale(norm, max_norm):
    return 1.0 if norm <= max_norm else max_norm / norm


def greedy(log_probabilities, said, max_length):
    ended = np.zeros(len(said), dtype=bool)  # (N,)
    while said.shape[1] <= max_length and not ended.all():
        word = log_probabilities(said).argmax(axis=-1)  # (N,)
        said = np.concatenate([said, word[:, None]], axis=1)  # (N, t + 1)
        ended |= word == EOS
    return said[:, 1:]


def beam_search(log_probabilities, said, max_length, beam_size, alpha):
    """With a beam of one this is greedy search, and with one of all prefixes it finds the best."""

    def rank(hypotheses):
        """The (ids, log P), best first."""
        return sorted(hypotheses, key=lambda h: h[1] / ((5 + len(h[0])) / 6) ** alpha, reverse=True)

    total, found = np.zeros(1), []  # (n,) log P of each prefix in the beam
    while len(said) and said.shape[1] <= max_length:
        log_p = total[:, None] + log_probabilities(said)  # (n, V)
        best = np.argsort(-log_p, axis=None)[:beam_size]  # (k,) places in the n · V numbers
        best = best[log_p.ravel()[best] > -np.inf]
        prefix, word = np.divmod(best, log_p.shape[1])
        said = np.concatenate([said[prefix], word[:, None]], axis=1)  # (k, t + 1)
        total = log_p[prefix, word]
        ended = word == EOS
        found += _hypotheses(said[ended], total[ended])
        said, total = said[~ended], total[~ended]
    return (rank(found) + rank(_hypotheses(said, total)))[:beam_size]


def _hypotheses(said, total):
    """The prefixes (n, t) without the start symbol, each with its log P."""
    return [(ids[1:].tolist(), float(log_p)) for ids, log_p in zip(said, total, strict=True)]


def rms_norm(x, gamma, epsilon=1e-5):
    rho = np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon)  # (..., 1)
    x_hat = x / rho
    return gamma * x_hat, (x_hat, rho, gamma)


def rms_norm_backward(dy, cache):
    """Scaling a row changes nothing, so dx has no component along it; shifting one does."""
    x_hat, rho, gamma = cache
    rows = tuple(range(dy.ndim - 1))
    dx_hat = dy * gamma
    through_rho = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    return (dx_hat - through_rho) / rho, (dy * x_hat).sum(axis=rows)


def silu(x):
    gate = 0.5 * (1 + np.tanh(0.5 * x))
    y = x * gate
    return y, (gate, y)


def silu_backward(dy, cache):
    gate, y = cache
    return dy * (gate + y * (1 - gate))


def swiglu(x, w_gate, w_up, w_down, p=0.0, rng=None):
    gate, gate_cache = linear(x, w_gate)  # (..., F)
    gate, silu_cache = silu(gate)
    up, up_cache = linear(x, w_up)  # (..., F)
    h, dropout_cache = dropout(gate * up, p, rng)
    y, down_cache = linear(h, w_down)  # (..., D)
    return y, (gate, up, gate_cache, silu_cache, up_cache, dropout_cache, down_cache)


def swiglu_backward(dy, cache):
    gate, up, gate_cache, silu_cache, up_cache, dropout_cache, down_cache = cache
    dh, dw_down, _ = linear_backward(dy, down_cache)  # (..., F)
    dh = dropout_backward(dh, dropout_cache)
    dx_up, dw_up, _ = linear_backward(dh * gate, up_cache)  # (..., D)
    dgate = silu_backward(dh * up, silu_cache)
    dx_gate, dw_gate, _ = linear_backward(dgate, gate_cache)  # (..., D)
    return dx_gate + dx_up, dw_gate, dw_up, dw_down


def rotary_table(length, head_width, base=10000.0):
    frequency = base ** (-np.arange(0, head_width, 2) / head_width)  # (K/2,)
    angle = np.arange(length)[:, None] * frequency  # (T, K/2)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)  # (T, 2, K/2)


def rotary(x, table, pairs="neighbours", start=0):
    rows = table[start : start + x.shape[-2]]  # (T, 2, K/2)
    cos, sin = rows[:, 0], rows[:, 1]  # (T, K/2)
    return turned(x, cos, sin, pairs), (cos, sin, pairs)


def rotary_backward(dy, cache):
    """The transpose of a rotation turns back: by the opposite angle, whose sine alone differs."""
    cos, sin, pairs = cache
    return turned(dy, cos, -sin, pairs)


def turned(x, cos, sin, pairs):
    """Each pair of features turned by its angle."""
    half = x.shape[-1] // 2
    first, second = slice(0, half), slice(half, None)
    if pairs == "neighbours":
        first, second = slice(0, None, 2), slice(1, None, 2)
    a, b = x[..., first], x[..., second]  # (B, H, T, K/2)
    y = np.empty_like(x)
    y[..., first] = a * cos - b * sin
    y[..., second] = a * sin + b * cos
    return y


def grouped_query_attention(
    query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None
):
    num_groups = w_key.shape[1] * num_heads // w_query.shape[1]
    q, q_cache = linear(query, w_query)  # (B, T, D)
    k, k_cache = linear(key, w_key)  # (B, S, G K)
    v, v_cache = linear(value, w_value)  # (B, S, G K)
    q, k, v = split_heads(q, num_heads), split_heads(k, num_groups), split_heads(v, num_groups)
    k, v = (np.repeat(x, num_heads // num_groups, axis=1) for x in (k, v))  # (B, H, S, K)
    heads, attention_cache = scaled_dot_product_attention(q, k, v, mask, p, rng)  # (B, H, T, K)
    y, output_cache = linear(merge_heads(heads), w_output)  # (B, T, D)
    return y, (num_heads, num_groups, q_cache, k_cache, v_cache, attention_cache, output_cache)


def grouped_query_attention_backward(dy, cache):
    """Keys and values of a group are used by H/G heads: their gradients are sums over these."""
    num_heads, num_groups, q_cache, k_cache, v_cache, attention_cache, output_cache = cache
    dheads, dw_output, _ = linear_backward(dy, output_cache)  # (B, T, D)
    dheads = split_heads(dheads, num_heads)  # (B, H, T, K)
    dq, dk, dv = scaled_dot_product_attention_backward(dheads, attention_cache)
    batch, _, length, head_width = dk.shape
    by_group = batch, num_groups, -1, length, head_width
    dk, dv = (dx.reshape(by_group).sum(axis=2) for dx in (dk, dv))  # (B, G, S, K)
    dq, dk, dv = (merge_heads(dx) for dx in (dq, dk, dv))  # (B, T, D) and (B, S, G K)
    dvalue, dw_value, _ = linear_backward(dv, v_cache)
    dkey, dw_key, _ = linear_backward(dk, k_cache)
    dquery, dw_query, _ = linear_backward(dq, q_cache)
    return dquery, dkey, dvalue, dw_query, dw_key, dw_value, dw_output


def adamw_update(
    data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, weight_decay, scale=1.0
):
    data *= 1 - learning_rate * weight_decay
    adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale)


def convolution_2d(x, weight, bias=None, stride=1, padding=0):
    """A linear map for each place in the windows, of the entries that stand there; then the sum."""
    padded = pad(x, padding)
    places = places_in_windows(padded.shape, len(weight), stride)
    y = sum(padded[:, rows, columns] @ weight[i, j] for i, j, rows, columns in places)
    if bias is not None:
        y = y + bias  # (B, Y', X', E)
    return y, (padded, padding, places, weight, bias)


def convolution_2d_backward(dy, cache):
    """As in ``linear_backward``; what stands in several windows gets the sum over them."""
    padded, padding, places, weight, bias = cache
    c_in, c_out = weight.shape[2:]
    dbias = None if bias is None else dy.sum(axis=(0, 1, 2))  # (E,)
    dpadded, dweight = np.zeros_like(padded), np.zeros_like(weight)
    for i, j, rows, columns in places:
        seen = padded[:, rows, columns]  # (B, Y', X', C)
        dweight[i, j] = seen.reshape(-1, c_in).T @ dy.reshape(-1, c_out)  # (C, E)
        dpadded[:, rows, columns] += dy @ weight[i, j].T
    return without_padding(dpadded, padding), dweight, dbias


def pad(x, padding, value=0.0):
    """So many rows and columns of a value around pictures."""
    both = padding, padding
    return np.pad(x, ((0, 0), both, both, (0, 0)), constant_values=value)


def without_padding(x, padding):
    _, height, width, _ = x.shape
    return x[:, padding : height - padding, padding : width - padding]


def places_in_windows(shape, size, stride):
    """For each place in a window (i, j, rows, columns): where it stands, of all windows."""
    rows, columns = (
        [slice(i, i + length - size + 1, stride) for i in range(size)] for length in shape[1:3]
    )
    return [(i, j, rows[i], columns[j]) for i in range(size) for j in range(size)]


def max_pooling(x, kernel_size, stride=None, padding=0):
    padded = pad(x, padding, -np.inf)
    places = places_in_windows(padded.shape, kernel_size, stride or kernel_size)
    seen = np.stack([padded[:, rows, columns] for _, _, rows, columns in places])
    first = seen.argmax(axis=0)  # (B, Y', X', C), of (k², B, Y', X', C)
    return seen.max(axis=0), (first, places, padded.shape, padding)


def max_pooling_backward(dy, cache):
    """Of several that are the largest ``argmax`` says the first."""
    first, places, padded_shape, padding = cache
    dpadded = np.zeros(padded_shape, dy.dtype)
    for n, (_, _, rows, columns) in enumerate(places):
        dpadded[:, rows, columns] += dy * (first == n)
    return without_padding(dpadded, padding)


def batch_norm(x, gamma, beta, epsilon=1e-5):
    rows = tuple(range(x.ndim - 1))
    mean = x.mean(axis=rows)  # (C,)
    centred = x - mean
    variance = (centred * centred).mean(axis=rows)  # (C,)
    sigma = np.sqrt(variance + epsilon)
    x_hat = centred / sigma
    return (gamma * x_hat + beta, mean, variance), (x_hat, sigma, gamma)


def batch_norm_backward(dy, cache):
    """γ, the same in a whole column, leaves the means over it: of dy and of dy x̂."""
    x_hat, sigma, gamma = cache
    rows = tuple(range(dy.ndim - 1))
    count = dy[..., 0].size
    dbeta = dy.sum(axis=rows)  # (C,)
    dgamma = (dy * x_hat).sum(axis=rows)  # (C,)
    dx = gamma / sigma * (dy - dbeta / count - x_hat * (dgamma / count))
    return dx, dgamma, dbeta


def momentum_update(
    data, grad, velocity, learning_rate, momentum, nesterov=False, weight_decay=0.0, scale=1.0
):
    grad = scale * grad + weight_decay * data
    velocity *= momentum
    velocity += grad
    data -= learning_rate * (grad + momentum * velocity if nesterov else velocity)
