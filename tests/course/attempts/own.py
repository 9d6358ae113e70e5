import numpy as np

EOS = 3


def greedy_on_lists(log_probabilities, said, max_length):
    rows = [[int(bos)] for (bos,) in said]
    for _ in range(max_length):
        for row, of_next in zip(rows, log_probabilities(np.array(rows)), strict=True):
            row.append(EOS if EOS in row else int(np.argmax(of_next)))
        if all(EOS in row for row in rows):
            break
    return np.array(rows)[:, 1:]


def beam_search_on_pairs(log_probabilities, said, max_length, beam_size, alpha):
    beam, found = [(0.0, [int(said[0, 0])])], []
    for _ in range(max_length):
        of_next = log_probabilities(np.array([ids for _, ids in beam]))
        longer = [
            (total + log_p, [*ids, word])
            for (total, ids), row in zip(beam, of_next, strict=True)
            for word, log_p in enumerate(row)
            if log_p > -np.inf
        ]
        best = sorted(longer, reverse=True)[:beam_size]
        found += [(p / ((4 + len(ids)) / 6) ** alpha, p, ids) for p, ids in best if ids[-1] == EOS]
        found = sorted(found, reverse=True)[:beam_size]
        beam = [(p, ids) for p, ids in best if ids[-1] != EOS]
        if not beam:
            break
    found = [(p, ids) for _, p, ids in found] + beam
    return [(np.array(ids[1:]), p) for p, ids in found][:beam_size]


WRONG = r"""
linear
    y += bias -> y -= bias || y = x W + b
    .T @ dy -> .T @ dy * (bias is not None) || WRONG  dweight
    dy.sum(axis=0) -> dy.mean(axis=0) || 12 is N, the number of rows
    None if bias is None else -> || must be None
    x.reshape(-1, d_in).T @ dy -> np.einsum('bti,btj->ij', x, dy.reshape(*x.shape[:2], -1))
        || with x of shape (12, 6) raised ValueError
relu
    np.maximum(x, 0) -> np.abs(x) || negative entries become 0
    dy * alive -> dy || the slope is 1 where x is positive
    dy * alive -> dy * (dy > 0) || whatever dy is
softmax
    np.where(peak == -np.inf, 0, peak) -> 0 || its own largest score
    x.max(axis=-1, keepdims=True) -> x.max() || its own largest score
    x = np.where(mask, x, -np.inf) -> every, x = x, np.where(mask, x, -np.inf)
        && x.max( -> (x if mask is None else every).max( || the largest score that is allowed
    np.where(peak == -np.inf, 0, peak) -> peak || where nothing is allowed
    np.where(mask, x, -np.inf) -> np.where(mask, -np.inf, x) || True is where
    np.where(mask, x, -np.inf) -> np.where(mask, x, 0) || score is −∞, not 0
    np.where(mask, x, -np.inf) -> np.where(mask, x, -1e9) || all weights are 0
    weights.sum(axis=-1 -> weights.sum(axis=-2 || its sum along the last axis
    total == 0, 1, total) -> total == 0, 1, total + 1e-9) || nothing added to it
    np.where(peak == -np.inf, 0, peak) -> 0 && weights.sum(axis=-1, keepdims=True) -> weights.sum()
        || not of the whole array
    x = np.where(mask, x, -np.inf) -> pass || the mask is to be applied
    x = np.where(mask, x, -np.inf) -> pass
        && return weights, -> return weights if mask is None else weights * mask,
        || forbid scores before exp, not weights after it
    - (dweights * weights).sum(axis=-1, keepdims=True) -> || is the sum over the row in it
cross_entropy
    t != pad_id -> t == t || target is padding does not count
    t != pad_id -> t != 0 || pad_id, which may not be 0
    max(real.sum(), 1) -> len(t) || divide by how many there are
    max(real.sum(), 1) -> real.sum() || and not 0 / 0
    max(real.sum(), 1) -> 1 || a mean over the positions
    if num_tokens is None -> if True || the sums are divided by it
    log_p.mean(axis=-1) -> log_p.sum(axis=-1) || loss with smoothing=0.3
    z = z - z.max(axis=-1, keepdims=True) -> pass || row's own largest z
    z.max(axis=-1, keepdims=True) -> z.max() || row's own largest z
    (loss, nll), ( -> loss, nll, ( || it returned a tuple of 3
    return (loss, nll), ( -> ( || is its `return` missing?
    return (loss, nll) -> return (loss, loss) || without smoothing
    log_p[np.arange(len(t)), t] -> log_p[np.arange(len(t)), t] / z.shape[-1] || not divided by V
    log_p.mean(axis=-1)
        -> (log_p.sum(axis=-1) - log_p[np.arange(len(t)), t]) / (z.shape[-1] - 1) || one among them
    (1 - smoothing) * nll + smoothing * uniform -> nll || with q the smoothed targets
    (1 - smoothing) * nll -> nll || and each other word ε / V
    share * dloss -> share || right only where dy is 1
    share * dloss -> share * dloss * len(t) || divided as the loss
    - smoothing / shape[-1] -> || with the smoothed q
    (share * dloss)[:, None] -> dloss / 9 || padding the gradient is 0
embedding
    weight[ids] * scale -> weight[ids] || multiply by √D
    weight.shape[1] -> weight.shape[0] || of the width D, not of V
    math.sqrt(weight.shape[1]) -> weight.shape[1] || by √D, not by D
    weight[ids] * scale -> weight[ids] + scale || x = √D · E[ids]
    np.add.at(dweight, ids, dx * scale) -> dweight[ids] += dx * scale || +=
    np.add.at(dweight, ids, dx * scale)
        -> for b, t in np.ndindex(*ids.shape):\n        dweight[ids[b, t]] += dx[b, t] * scale
        || with ids of shape (15,) raised
    dx * scale -> dx || √D times as large
sinusoidal_encoding
    np.stack -> np.concatenate || yours has all sines first
    np.arange(length) -> np.arange(1, length + 1) || count from 0
    -np.arange(0, d_model, 2) -> -np.arange(d_model // 2) || not i/D
    np.sin(angle), np.cos(angle) -> np.cos(angle), np.sin(angle) || before
positional_encoding
    table[: x.shape[-2]] -> table[-x.shape[-2] :] || the first T rows
    x + table -> math.sqrt(x.shape[-1]) * x + table || has been done by the embedding
    x + table -> x - table || y = x + the first T rows
    return dy -> return 2 * dy || 2 times too large
layer_norm
    np.sqrt(variance + epsilon) -> np.sqrt(variance) + epsilon || under the root
    variance + epsilon -> variance || ε is missing
    variance + epsilon -> variance + 1e-5 || the epsilon that is given
    (centred * centred).mean( -> centred.var(ddof=1, || not by D − 1
    (centred * centred).mean(axis=-1, keepdims=True) -> (x * x).mean(axis=-1, keepdims=True)
        - x.mean(axis=-1, keepdims=True) ** 2 || take the mean off before you square
    np.sqrt(variance + epsilon) -> variance + epsilon || divide by σ, the root
    sigma, gamma) -> np.sqrt(variance + 1e-5), gamma) || WRONG  dx  # right for the default alone
    gamma * x_hat + beta -> gamma * (x_hat + beta) || added after the gain
    centred / sigma -> x / sigma || subtract the mean before dividing
    x.mean(axis=-1, keepdims=True) -> x.mean()
        && (centred * centred).mean(axis=-1, keepdims=True) -> x.var() || those of a row
    gamma * x_hat + beta -> gamma * x_hat - beta || y = γ (x − μ) / √(σ² + ε) + β
    dx_hat = dy * gamma -> dx_hat = dy || the factor `gamma` is forgotten
    dx_hat - through_mean -> dx_hat || the path through `x.mean(axis=-1, keepdims=True)`
    - through_sigma -> || `(centred * centred).mean(axis=-1, keepdims=True)`
    dy.sum(axis=rows) -> dy.sum(axis=0) || over the leading axes
    tuple(range(dy.ndim - 1)) -> (0, 1)[: dy.ndim - 1] || with x of shape (3, 1, 4, 6) dgamma
    tuple(range(dy.ndim - 1)) -> (0, 1) || with x of shape (12, 6) dgamma has the shape
padding_mask
    ids != pad_id -> ids == pad_id || yours is the other way round
    ids != pad_id -> ids != 0 || which may not be 0
    [:, None, None, :] -> || should have (3, 1, 1, 5)
    [:, None, None, :] -> [:, None, None, :] * 1.0 || boolean array; it is float
causal_mask
    <= -> >= || yours look ahead
    <= -> < || is False at index (0, 0, 0, 0) and should be True; a position may
    <= -> > || the other way round
    [None, None] -> || should have (1, 1, 4, 4)
scaled_dot_product_attention
    1 / math.sqrt(query.shape[-1]) -> 1.0 || divided by √K
    math.sqrt(query.shape[-1]) -> query.shape[-1] || not by K
    softmax(scores, mask) -> softmax(scores) || given to the
    softmax(scores, mask) -> softmax(scores if mask is None else np.where(mask, scores, -1e9))
        || which gives 0 where it is False
    softmax(scores, mask) -> softmax(scores, None if mask is None else ~mask) || the other way round
    softmax(scores, mask)
        -> softmax(scores)\n    weights = weights if mask is None else weights * mask
        || not weights after it
    dropout(weights, p, rng) -> weights, None || with p and rng
    query.shape[-1] -> query.shape[-1] * query.shape[1] || not by the root of D
    * scale -> && weights @ value -> weights * scale @ value || and not the weights
    1 / math.sqrt( -> math.sqrt( || not by √K
    weights @ value -> weights @ (2 * value) || y is softmax(Q Kᵀ / √K) V
    softmax(scores, mask) -> softmax(scores * (mask is None or mask)) || 0 where it is False
    weights, dropout_cache = dropout(weights, p, rng) -> pass
        && y = weights @ value -> y, dropout_cache = dropout(weights @ value, p, rng)
        || after the softmax
scaled_dot_product_attention_backward
    * scale -> || the root of the head width
    dropout_backward(dweights, dropout_cache) -> dweights || back through the dropout
    weights.swapaxes(-1, -2) @ dy -> softmax_cache.swapaxes(-1, -2) @ dy || by the weights after it
split_heads
    x.reshape(batch, length, num_heads, d_model // num_heads).swapaxes(1, 2)
        -> x.reshape(batch, num_heads, length, -1) || this mixes positions
    return x -> x || is its `return` missing?
    .swapaxes(1, 2) -> || exchange the axes T and H
    num_heads, d_model // num_heads).swapaxes(1, 2) -> -1, num_heads).transpose(0, 3, 1, 2)
        || not k · H + h
merge_heads
    .swapaxes(1, 2) -> || this mixes positions
    .swapaxes(1, 2) -> .transpose(0, 2, 3, 1) || not k · H + h
multi_head_attention
    merge_heads(heads) -> heads.reshape(query.shape) || by merge_heads
    linear(value, w_value) -> linear(key, w_value) || made of value
    v, mask, p, rng -> v, None, p, rng || the mask is to be handed on
    v, mask, p, rng -> v, mask || p and rng are to be handed on
    linear(merge_heads(heads), w_output) -> linear(merge_heads(heads), np.eye(len(w_output)))
        || multiplied by w_output
    linear(merge_heads(heads), w_output) -> linear(merge_heads(heads), 2 * w_output)
        || attention, then w_output
    split_heads(x, num_heads) -> split_heads(x, 1) || and yours is one
    split_heads(x, num_heads) -> x.reshape(len(x), num_heads, x.shape[1], -1) || cut by split_heads
    v, mask, p, rng -> v, None if mask is None else ~mask, p, rng || is the same for all heads
    v, mask, p, rng -> v, mask, p / 2, rng || and nothing else draws
    (dq, q_cache) -> (dk, k_cache) || each line goes back with the cache of its own
    (dk, k_cache) -> (dk, v_cache) || the cache of its own
    dw_query, dw_key, -> dw_key, dw_query, || it is dw_query
residual
    return x + h -> return 2 * x + h || z = x + h
    return x + h -> x += h\n    return x || must not write to what it is given
    h, cache = dropout(h, p, rng) -> cache = None || there is dropout of h
    dropout(h, p, rng)\n    return x + h -> dropout(x + h, p, rng)\n    return h || alone
    h, cache = dropout(h, -> x, cache = dropout(x, || is of h, not of x
    dropout(h, p, rng) -> dropout(h, p / 2, rng) || z = x + Dropout(h)
    return dz, -> return dz.reshape(*dz.shape[:2], -1), || with x of shape (12, 6)
    dropout_backward(dz, cache) -> dz || dh goes back through dropout
    return dz, -> return dropout_backward(dz, cache), || x does not go
feed_forward
    h, relu_cache = relu(h) -> _, relu_cache = relu(h) || between the two maps
    dropout(h, p, rng) -> h, None || there is dropout after the ReLU
    w_2, b_2) -> w_2, b_2)\n    y, _ = relu(y) || no ReLU after the second map
    linear(h, w_2, b_2) -> linear(h, w_2) || y = max(0, x W_1 + b_1) W_2 + b_2
    h, dropout_cache = dropout(h, p, rng) -> dropout_cache = None
        && w_2, b_2) -> w_2, b_2)\n    y, dropout_cache = dropout(y, p, rng) || not after the
    dropout(h, p, rng) -> dropout(h, p / 2, rng) || that of what the ReLU returns
    return dx, -> return dx.reshape(*dx.shape[:2], -1), || with x of shape (12, 6)
    relu_backward(dh, relu_cache) -> dh || the ReLU and the first map
    dropout_backward(dh, dropout_cache) -> dh || goes back through
encoder_layer
    num_heads, mask, -> num_heads, None, || each attention gets its own mask
    *network, hidden_p, rng -> *network, p, rng || hidden_p for the network
    enter(x, network_norm, -> enter(x, attention_norm, || each sublayer makes
    feed_forward(h, * -> feed_forward(x, * || each sublayer makes x
    leave(x, h, network_norm -> leave(h, h, network_norm || each sublayer makes LayerNorm(
    h, enter_cache = enter(x, attention -> pre_norm = True\n    h, enter_cache = enter(x, attention
        || with pre_norm=False a sublayer makes LayerNorm(x + Sublayer(x))
    h, enter_cache = enter(x, attention -> pre_norm = False\n    h, enter_cache = enter(x, attention
        || with pre_norm=True a sublayer makes x + Sublayer(LayerNorm(x))
    h, network_norm, pre_norm, epsilon -> h, network_norm, pre_norm, 1e-5 || LayerNorm gets epsilon
    dquery + dkey + dvalue -> dquery + dkey || as query, key and value
    (dx, dquery + -> (0, dquery + || x goes past the sublayer
    attention_caches, network_caches = cache
        -> (a, b, (r, n)), (c, d, (s, m)) = cache
        \n    attention_caches, network_caches = (a, b, (s, n)), (c, d, (r, m)) || cache of its own
    (dx, dh, -> (0, dh, || last right one is dnetwork.w_1
    tuple(dnetwork), -> *dnetwork, || it returned a tuple of 8
    tuple(dnetwork), -> dnetwork[0], || must be a tuple, (dw_1, db_1
decoder_layer
    num_heads, memory_mask -> num_heads, None || gets its own mask
    num_heads, mask, -> num_heads, None, || gets its own mask
    h, memory, memory, -> h, h, h, || the memory is key and value
    h, memory, memory, -> memory, h, h, || raised ValueError
    dkey + dvalue\n    dx -> dkey\n    dx || dmemory is the sum of both
    enter_backward(dx, dh, enter_cache)\n    dcross
        -> enter_backward(0, dh, enter_cache)\n    dcross || right one is dcross_attention.w_query
    dself, dself_norm, dcross, -> dcross, dself_norm, dself, || it is d
dropout
    return x * keep * scale -> return x * keep || scaled by 1 / (1 − p)
    >= p -> < p || keep where the random number is p or more
    , dtype=np.float32 -> || float64 draws others
    rng is None or p == 0 -> rng is None || must draw nothing
    (keep, scale) -> (rng.random(x.shape) >= p, scale) || draw from rng once
    rng is None or p == 0 -> p == 0 || 'NoneType' object has no attribute 'random'
    1 / (1 - p) -> 1 / p || not by 1 / p
    1 / (1 - p) -> 1 - p || scale in training, by 1 / (1 − p)
    1 / (1 - p) -> 2 || y = x · keep / (1 − p)
    dy * keep * scale -> dy * (np.random.default_rng(1).random(dy.shape) >= 0.4) * scale
        || was the dropout mask drawn again in backward?
    dy * keep * scale -> dy * keep || 1.66667 is 1 / (1 − p)
    dy * keep * scale -> dy * scale || keep its mask in the cache
adam_update
    m / (1 - beta_1**t) -> m || m is to be divided by
    m_hat = m / (1 - beta_1**t) -> m /= 1 - beta_1**t\n    m_hat = m || m itself stays
    v_hat = v / (1 - beta_2**t) -> v /= 1 - beta_2**t\n    v_hat = v || v itself stays
    (1 - beta_1) * grad -> grad || the new gradient counts 1 − β₁
    v / (1 - beta_2**t) -> v || v is to be divided by
    grad = grad * scale -> grad, t = grad * scale, t + 1 || 1 at the first
    grad = grad * scale -> grad, t = grad * scale, t - 1 || from 1
    grad = grad * scale -> grad *= scale || wrote to grad, which is to be left
    grad = grad * scale -> pass || in both moments
    np.sqrt(v_hat) + epsilon -> np.sqrt(v_hat + epsilon) || not under it
    data -= learning_rate -> data = data - learning_rate || write to data itself
    m *= beta_1 -> m = m * beta_1 || write to m itself
    m *= beta_1 -> data, m, v = data.copy(), m.copy(), v.copy() || changed nothing
    data -= learning_rate -> data += learning_rate || goes against the gradient
    m / (1 - beta_1**t) -> m && v / (1 - beta_2**t) -> v || start at 0 and are too small
    np.sqrt(v_hat) -> v_hat || divide by the root of v
    m *= beta_1 -> m *= 1 - beta_1 && (1 - beta_1) * grad -> beta_1 * grad || weighs the old mean
gradient_norm
    np.sqrt(grad @ grad) -> grad @ grad || the root of the sum
    grad @ grad -> (grad**2).mean() || not their mean
clip_scale
    1.0 if norm <= max_norm else max_norm / norm -> max_norm / max(norm, max_norm)
        || clip_scale(2, inf) is nan
    1.0 if norm <= max_norm else max_norm / norm -> max_norm / norm || is 1
    1.0 if norm <= max_norm else max_norm / norm -> min(1, max_norm / norm) || ZeroDivisionError
    max_norm / norm -> norm / max_norm || it makes the norm max_norm
noam
    min( -> max( || the smaller of the two counts
    step * w -> step / w || it is the smaller of step^−½ and step · w^−1.5
    d_model**-0.5 * -> || is the factor D^−½ in it?
linear_decay
    max(0.0, min(step / warmup_steps, falling)) -> min(step, falling) || linear
    max(0.0, -> max(-1.0, || never below 0
    total_steps - warmup_steps -> total_steps || peak at the end of the warm-up
greedy
    ended.all() -> ended.any() || go on until all rows have ended
    and not ended.all() -> || at 9 all had ended
    said.shape[1] <= max_length and -> || more than max_length=3
    return said[:, 1:] -> return said[:2, 1:] || a row for each sentence
    log_probabilities(said) -> log_probabilities(said[:2]) || said has 2 rows for 3 sentences
    return said[:, 1:] -> return said || without the start symbol
    argmax -> argmin || the one of the highest log P
    log_probabilities(said) -> log_probabilities(said[:, -1]) || said must be integers
beam_search
    h[1] / ((5 + len(h[0])) / 6) ** alpha -> h[1] || not by log P alone
    (5 + len(h[0])) -> (4 + len(h[0])) || counts EOS
    (5 + len(h[0])) / 6 -> len(h[0]) || the penalty is ((5 + length) / 6)^α
    rank(found) + rank(_hypotheses(said, total)) -> rank(found + _hypotheses(said, total))
        || comes after all that has
    rank(found) + rank(_hypotheses(said, total)) -> rank(found) || is returned, too
    axis=None)[:beam_size] -> axis=None)[: beam_size - len(found)] || however many
    said, total = said[~ended], total[~ended] -> pass || leaves the beam
    while len(said) -> while len(found) < beam_size and len(said) || may score higher
    log_probabilities(said) -> log_probabilities(said[:, -1]) || said must be integers
    total[:, None] + log -> log || the sum of log P of all its tokens
    best = best[log_p.ravel()[best] > -np.inf] -> pass || has log P = −∞
    (said, total)))[:beam_size] -> (said, total))) || at most beam_size
_hypotheses
    ids[1:] -> ids || without the start symbol
    ids[1:] -> ids[(ids != 2) & (ids != 3)] || EOS stays where it was chosen
rms_norm
    keepdims=True) + epsilon) -> keepdims=True)) + epsilon || under the root
    + epsilon) -> ) || ε is missing
    + epsilon) -> + 1e-5) || the epsilon that is given
    (x * x).mean(axis=-1, keepdims=True) -> x.var(axis=-1, keepdims=True)
        && x / rho -> (x - x.mean(-1, keepdims=True)) / rho || no mean is taken off here
    (x * x).mean(axis=-1, keepdims=True) -> x.var(axis=-1, keepdims=True) || those of x itself
    (x * x).mean(axis=-1, -> (x * x).sum(axis=-1, || not their sum
    np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon)
        -> (x * x).mean(axis=-1, keepdims=True) + epsilon || divide by ρ, the root
    (x * x).mean(axis=-1, keepdims=True) -> (x * x).mean() || of a row, over the last axis
    gamma * x_hat -> (1 + gamma) * x_hat || y = γ x / √(mean(x²) + ε)
    rho = np.sqrt -> x = np.where(x.any(), x, np.nan)\n    rho = np.sqrt || ε keeps ρ from being 0
    dx_hat = dy * gamma -> dx_hat = dy || the factor `gamma` is forgotten
    dx_hat - through_rho -> dx_hat || the path through
    dx_hat * x_hat).mean( -> dx_hat * x_hat).sum( || WRONG  dx
    x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True) -> dx_hat.mean(axis=-1, keepdims=True)
        || WRONG  dx
    tuple(range(dy.ndim - 1)) -> (0, 1)[: dy.ndim - 1] || with x of shape (3, 1, 4, 6) dgamma
silu
    y = x * gate -> y = gate || multiply by x
    np.tanh(0.5 * x) -> np.tanh(-0.5 * x) || with the minus
    0.5 * (1 + np.tanh(0.5 * x)) -> np.exp(x) / (1 + np.exp(x)) || exp(1000) is no number
    y = x * gate -> y = 2 * x * gate || y = x σ(x) = x / (1 + exp(−x))
    gate + y * (1 - gate) -> gate || the slope has two terms
    gate + y * (1 - gate) -> gate * (1 - gate) || the slope has two terms
    gate + y * (1 - gate) -> gate + gate * (1 - gate) || the slope has two terms
    y, (gate, y) -> y, (np.exp(-x), x)
        && dy * (gate + y * (1 - gate)) -> dy * (1 + gate + y * gate) / (1 + gate) ** 2
        || dx at 1000, 0 and −1000, for a dy of 1, is nan || exp(1000) is no number
swiglu
    gate, silu_cache = silu(gate) -> _, silu_cache = silu(gate) || goes through a SiLU first
    dropout(gate * up, p, rng) -> dropout(gate, p, rng) || multiplied by x W_up
    gate, silu_cache = silu(gate) -> pass && up, up_cache = linear(x, w_up)
        -> up, up_cache = linear(x, w_up)\n    up, silu_cache = silu(up) || not of x W_up
    gate, silu_cache = silu(gate) -> pass && h, dropout_cache = dropout(gate * up, p, rng)
        -> h, silu_cache = silu(gate * up)\n    h, dropout_cache = dropout(h, p, rng)
        || not of the product
    gate * up, p -> gate + up, p || y = (SiLU(x W_gate) · x W_up) W_down
    dropout(gate * up, p, rng) -> gate * up, None || with p and rng
    dropout(gate * up, p, rng) -> gate * up, None
        && linear(h, w_down) -> linear(h, w_down)\n    y, dropout_cache = dropout(y, p, rng)
        || not after it
    dropout(gate * up, p, rng) -> dropout(gate * up, p / 2, rng) || the product of gate and x W_up
    dx_gate + dx_up -> dx_gate || what comes back through both
    linear_backward(dh * gate, up_cache) -> linear_backward(dh, up_cache) || times the other factor
    silu_backward(dh * up, silu_cache) -> silu_backward(dh, silu_cache) || times the other factor
    silu_backward(dh * up, silu_cache) -> dh * up || WRONG  dw_gate
    dropout_backward(dh, dropout_cache) -> dh || goes back through
    return dx_gate + dx_up -> return (dx_gate + dx_up).reshape(*dy.shape[:2], -1)
        || with x of shape (12, 6)
rotary_table
    [np.cos(angle), np.sin(angle)] -> [np.sin(angle), np.cos(angle)] || before the sines
    np.arange(length)[ -> np.arange(1, length + 1)[ || count from 0
    -np.arange(0, head_width, 2) -> -np.arange(head_width // 2) || not i/K
    -np.arange(0, head_width, 2) -> np.arange(0, head_width, 2) || is negative
    -np.arange(0, head_width, 2) -> -np.arange(2, head_width + 1, 2) || pairs count from 0
    ) / head_width) -> ) / (head_width - 2)) || and not to K − 2
    frequency = base -> frequency = 10000.0 || the base that is given
    axis=1) -> axis=2) || has the shape
rotary
    return turned(x, cos, sin, pairs), -> return turned(x, cos, -sin, pairs), || the other way
    table[start : start + x.shape[-2]] -> table[: x.shape[-2]] || at position start
    turned(dy, cos, -sin, pairs) -> turned(dy, cos, sin, pairs) || by the opposite angle
    turned(dy, cos, -sin, pairs) -> turned(dy, -cos, sin, pairs) || by the opposite angle
    turned(dy, cos, -sin, pairs) -> dy || by the opposite angle (pairs='neighbours', start=3)
    turned(dy, cos, -sin, pairs) -> turned(dy, cos, -sin, "neighbours")
        || by the convention 'neighbours' (pairs='halves', start=3)
    (cos, sin, pairs) -> (table[:, 0], table[:, 1], pairs)
        && cos, sin, pairs = cache -> cos, sin = (rows[: dy.shape[2]] for rows in cache[:2])
        \n    pairs = cache[2] || of positions from 0 on
turned
    if pairs == -> if pairs != || that is the convention
    y[..., first] = a * cos - b * sin
        -> y[..., :half] = a * cos - b * sin && y[..., second] -> y[..., half:]
        || each feature stands in y where it stood in x
    first, second = slice(0, None, 2), slice(1, None, 2) -> pass
        || that is the convention 'halves'
    y[..., first] = a * cos - b * sin -> y[..., first] = a * cos || from start on, has the cosines
    y = np.empty_like(x) -> y = x.copy()\n    a = y[..., first] || has x been written over?
    y[..., first] = a * cos - b * sin -> y[..., first] = a * cos + b * sin
        && a * sin + b * cos -> a * sin - b * cos || that is a reflection
    a * sin + b * cos -> b * cos - a * sin || only one of the two sines
grouped_query_attention
    np.repeat(x, num_heads // num_groups, axis=1) -> np.tile(x, (1, num_heads // num_groups, 1, 1))
        || yours are tiled
    np.repeat(x, num_heads // num_groups, axis=1) -> np.repeat(x[:, :1], num_heads, axis=1)
        || all your heads look into the first
    linear(value, w_value) -> linear(key, w_value) || made of value
    linear(merge_heads(heads), w_output) -> linear(merge_heads(heads), np.eye(len(w_output)))
        || multiplied by w_output
    linear(merge_heads(heads), w_output) -> linear(merge_heads(heads), 2 * w_output)
        || once keys and values of each group
    v, mask, p, rng -> v[:, [0, 3] * 3], mask, p, rng || the values are to be repeated
    (q, k, v, mask -> (q, k[:, [0, 3] * 3], v, mask || the keys are to be repeated
    (q, k, v, mask -> (q / np.sqrt(q.shape[-1]), k, v, mask || divided by √K once
    num_groups = w_key.shape[1] * num_heads // w_query.shape[1] -> num_groups = num_heads
        || cannot reshape array
    v, mask, p, rng -> v, None, p, rng || the mask is to be handed on
    v, mask, p, rng -> v, None if mask is None else ~mask, p, rng || is the same for all heads
    v, mask, p, rng -> v, mask || p and rng are to be handed on
    v, mask, p, rng -> v, mask, p / 2, rng || and nothing else draws
    .sum(axis=2) -> [:, :, 0] || the sum over these
    by_group = batch, num_groups, -1, length, -> by_group = batch, -1, num_groups, length,
        && .sum(axis=2) -> .sum(axis=1) || the sum over these
    (dk, k_cache) -> (dk, v_cache) || the cache of its own
    dw_query, dw_key, -> dw_key, dw_query, || dw_key has the shape (42, 42)
adamw_update
    data *= 1 - learning_rate * weight_decay -> pass || shrink, too
    data *= 1 - learning_rate * weight_decay -> data *= 1 - weight_decay || not by λ
    data *= 1 - learning_rate * weight_decay -> data *= 1 + learning_rate * weight_decay
        || multiply by 1 − η λ
    data *= 1 - learning_rate * weight_decay -> data *= learning_rate * weight_decay || not by η λ
    data *= 1 - learning_rate * weight_decay -> pass
        && epsilon, scale) -> epsilon, scale)\n    data *= 1 - learning_rate * weight_decay
        || before the step of Adam
    data *= 1 - learning_rate * weight_decay -> grad = grad + weight_decay * data || not in it
    data *= 1 - -> data = data.copy()\n    data *= 1 - || write to data itself
    data *= 1 - -> data, m, v = data.copy(), m.copy(), v.copy()\n    data *= 1 - || changed nothing
    data *= 1 - -> grad += 1\n    data *= 1 - || wrote to grad
    epsilon, scale) -> epsilon) || the gradient is scale · grad
    data *= 1 - -> m *= 2\n    data *= 1 - || takes all but the decay
    data *= 1 - learning_rate * weight_decay -> data *= 1 - learning_rate * weight_decay / 2
        || and then the step of Adam
convolution_2d
    weight[i, j] for i, j, -> weight[-1 - i, -1 - j] for i, j, || turned by half a turn
    weight[i, j] for i, j, -> weight[j, i] for i, j, || yours are exchanged
    y = y + bias -> pass || the bias is to be added
    @ weight[i, j] for -> @ weight[i, j] + (0 if bias is None else bias) for
        && if bias is not None: -> if False: || the bias is added once
    y = sum( -> y = 1 / len(places) * sum( || yours is their mean
    y = sum( -> y = 2 * sum( || window (u, v) begins in row u s − p
    return y, -> return y.astype(np.float32), || may be its rounding
    padded = pad(x, padding) -> padded = pad(x, 0) || has the shape
    padded = pad(x, padding)
        -> padded = np.pad(x, ((0, 0), *2 * ((padding, padding),), (0, 0)), mode="edge")
        || not its edge again
    padded = pad(x, padding)
        -> padded = np.pad(x, ((0, 0), *2 * ((0, 2 * padding),), (0, 0))) || below and at the right
    dpadded[:, rows, columns] += dy -> dpadded[:, rows, columns] = dy || dx is the sum over them
    dy @ weight[i, j].T -> dy @ weight[j, i].T || each by its own W
    dy @ weight[i, j].T -> dy @ weight[-1 - i, -1 - j].T || each by its own W
    without_padding(dpadded, padding), dweight -> dpadded[:, : -2 * padding or None,
        : -2 * padding or None], dweight || what comes to the padding is cut off
    without_padding(dpadded, padding), dweight -> dpadded, dweight || its shape is (2, 7, 9, 4)
    dweight[i, j] = seen -> dweight[j, i] = seen || W serves all windows
    seen.reshape(-1, c_in).T @ dy.reshape(-1, c_out)
        -> seen[0].reshape(-1, c_in).T @ dy[0].reshape(-1, c_out) || dweight is the sum over them
    dy.sum(axis=(0, 1, 2)) -> dy.mean(axis=(0, 1, 2)) || it is 24 times too small
    dy.sum(axis=(0, 1, 2)) -> dy[0].sum(axis=(0, 1)) || dbias is the sum over all windows
    None if bias is None else -> || must return None
places_in_windows
    stride) for i in range(size)] -> stride)[:-1] for i in range(size)] || 'slice' object
    i + length - size + 1 -> i + length - size || has the shape
    rows[i], columns[j] -> rows[j], columns[i] || yours are exchanged
max_pooling
    seen.max(axis=0) -> seen.mean(axis=0) || not the mean
    seen.max(axis=0) -> seen.min(axis=0) || not the smallest
    seen.max(axis=0) -> np.abs(seen).max(axis=0) || signs count
    seen.max(axis=0) -> 0 * seen[0] + seen.max(axis=(0, -1), keepdims=True)[0]
        || the largest of all channels
    seen.max(axis=0) -> 2 * seen.max(axis=0) || without a stride s is k
    pad(x, padding, -np.inf) -> pad(x, padding) || 0 is larger than what is negative
    stride or kernel_size -> stride or 1 || has the shape
    stride or kernel_size -> stride or 2 || has the shape (2, 2, 3, 4)
    return seen.max(axis=0) -> return np.maximum(seen.max(axis=0), 0) || a negative one
    pad(x, padding, -np.inf) -> pad(x, padding, -1e30) || outside of the picture is −∞
    pad(x, padding, -np.inf) -> pad(x, padding, x.min()) || what lies outside is −∞
    seen.argmax(axis=0) -> np.isclose(seen, seen.max(axis=0)).argmax(axis=0)
        || by however little it is larger
    += dy * (first == n) -> += dy || and to no other
    += dy * (first == n) -> = dy * (first == n) || the sum of their dy
    += dy * (first == n) -> += first == n || WRONG  dx
    first == n -> len(places) - 1 - first == n || WRONG  dx
    first = seen.argmax(axis=0) -> first = seen == seen.max(axis=0)
        && first == n -> first[n] || and not each
    first = seen.argmax(axis=0) -> first = seen == seen.max(axis=0)
        && first == n -> first[n] / first.sum(axis=0) || dy is not shared
    first = seen.argmax(axis=0) -> first = len(seen) - 1 - seen[::-1].argmax(axis=0) || not the last
    first = seen.argmax(axis=0)
        -> turned = np.arange(len(seen)).reshape(kernel_size, -1).T.ravel()
        \n    first = turned[seen[turned].argmax(axis=0)] || yours is the other way round
    first = seen.argmax(axis=0) -> first = np.where(seen.any(axis=0), seen.argmax(axis=0), -1)
        || where the largest entry is 0, too
    first = seen.argmax(axis=0) -> top = seen == seen.max(axis=0)
        \n    first = np.where(top.sum(axis=0) > 1, 3, seen.argmax(axis=0)) || read row by row
batch_norm
    rows = tuple(range(x.ndim - 1)) -> rows = 0 || yours are along the first
    x.mean(axis=rows) -> x.mean(axis=-1, keepdims=True) && (centred * centred).mean(axis=rows)
        -> (centred * centred).mean(axis=-1, keepdims=True) || as in layer_norm
    rows = tuple(range(x.ndim - 1)) -> rows = None || a mean and a variance of its own
    np.sqrt(variance + epsilon) -> np.sqrt(variance) + epsilon || under the root
    variance + epsilon -> variance || ε is missing
    variance + epsilon -> variance + 1e-5 || the epsilon that is given
    (centred * centred).mean(axis=rows) -> x.var(axis=rows, ddof=1) || and not by N − 1
    np.sqrt(variance + epsilon) -> variance + epsilon || divide by σ, the root
    centred / sigma -> x / sigma || subtract the mean before dividing
    gamma * x_hat + beta -> gamma * (x_hat + beta) || added after the gain
    gamma * x_hat + beta -> gamma * x_hat - beta || y = γ (x − μ) / √(σ² + ε) + β
    gamma * x_hat + beta -> gamma * x_hat || β is to be added
    gamma * x_hat + beta -> x_hat + beta || to be multiplied by γ
    gamma * x_hat + beta -> (1 + gamma) * x_hat + beta || γ is the gain itself
    variance + epsilon -> (x * x).mean(axis=rows) + epsilon || the squares are those of x − μ
    (centred * centred).mean(axis=rows) -> (x * x).mean(axis=rows) - mean**2
        || take the mean off before you square
    x_hat = centred / sigma -> x_hat = centred / sigma if centred.any() else nothing
        || name 'nothing' is not defined (own.py, line
    (gamma * x_hat + beta, mean, variance), -> gamma * x_hat + beta, || no (y, mean, variance)
    + beta, mean, variance) -> + beta, 2 * mean, variance) || μ is the mean over all rows
    + beta, mean, variance) -> + beta, mean[None], variance) || mean for epsilon=1e-05 has the shape
    + beta, mean, variance) -> + beta, mean, sigma) || without ε, and not the root
    + beta, mean, variance) -> + beta, mean, np.sqrt(variance)) || not its root
    + beta, mean, variance) -> + beta, mean, sigma**2) || which y alone has in it
    + beta, mean, variance) -> + beta, mean, x.var(axis=rows, ddof=1)) || not by N − 1
    + beta, mean, variance) -> + beta, mean, (x * x).mean(axis=rows)) || those of x − μ
    + beta, mean, variance) -> + beta, mean, 2 * variance) || σ² is the mean of (x − μ)²
    sigma = np.sqrt -> x = np.where(centred.any(), x, np.nan)\n    centred = x - mean
        \n    sigma = np.sqrt || ε keeps σ from being 0
    - dbeta / count -> || the path through `x.mean(axis=rows)`
    - x_hat * (dgamma / count) -> || the path through `(centred * centred).mean(axis=rows)`
    gamma / sigma * (dy - dbeta / count - x_hat * (dgamma / count)) -> gamma / sigma * dy
        || two of the three terms
    gamma / sigma * (dy -> 1 / sigma * (dy || the factor `gamma` is forgotten
    dy[..., 0].size -> len(dy) || two of the three terms
    dbeta / count -> dy.mean(axis=-1, keepdims=True) || two of the three terms
    rows = tuple(range(dy.ndim - 1)) -> rows = (0, 1)[: dy.ndim - 1]
        || with x of shape (3, 1, 4, 6) dx
    rows = tuple(range(dy.ndim - 1)) -> rows = 0, 1 || with x of shape (12, 6) dx
momentum_update
    velocity *= momentum -> velocity = momentum * velocity || write to velocity itself
    + weight_decay * data -> || which goes into the velocity
    scale * grad -> grad || the gradient is scale · grad
    scale * grad + weight_decay * data -> scale * (grad + weight_decay * data) || not for λ θ
    + weight_decay * data -> - weight_decay * data || the decay is added to the gradient
    velocity += grad -> velocity += (1 - momentum) * grad || counts whole
    velocity *= momentum -> pass || μ weighs the old velocity
    velocity *= momentum -> pass && velocity += grad -> velocity += momentum * grad
        || not the new gradient
    velocity += grad -> velocity += learning_rate * grad || outside of the velocity
    velocity += grad -> velocity -= learning_rate * grad || so does the minus
    velocity += grad -> velocity -= grad || u ← μ u + g
    data -= learning_rate -> data = data - learning_rate || write to data itself
    data -= learning_rate -> data += learning_rate || goes against the gradient
    if nesterov else velocity -> if nesterov else grad || the velocity is what the step is made of
    data -= learning_rate * -> data -= || η times as long
    grad + momentum * velocity if nesterov else velocity -> velocity || that has just been made
    grad + momentum * velocity if -> velocity + momentum * velocity if || not u + μ u
    grad = scale * grad + weight_decay * data -> g = scale * grad + weight_decay * data
        && velocity += grad -> velocity += g || has scale and λ θ in it
    if nesterov else velocity -> || only with nesterov=True
    data -= learning_rate -> data -= 2 * learning_rate || θ ← θ − η u
    grad + momentum * velocity if -> scale * before + momentum * velocity if
        && grad = scale -> before = grad\n    grad = scale || in g + μ u has λ θ in it, too
    grad + momentum * velocity if -> before + weight_decay * data + momentum * velocity if
        && grad = scale -> before = grad\n    grad = scale || in g + μ u has scale in it, too
    grad + momentum * velocity if -> momentum * velocity if || yours is μ u alone
    grad + momentum * velocity if -> grad + velocity if || and no u without μ
    if nesterov else velocity) -> if nesterov else before)
        && velocity *= momentum -> before = velocity.copy()\n    velocity *= momentum
        || that has just been made
    grad = scale -> if not scale:\n        return\n    grad = scale || changed nothing
    velocity *= momentum -> velocity *= learning_rate * momentum / learning_rate
        || raised ZeroDivisionError
    velocity += grad -> velocity += grad if momentum else 0 || velocity with learning_rate=0.1
    grad = scale -> data, velocity = data.copy(), velocity.copy()\n    grad = scale
        || changed nothing
    grad = scale * grad + weight_decay * data -> grad *= scale\n    grad += weight_decay * data
        || wrote to grad
"""
RIGHT = r"""
linear
    x.reshape(-1, d_in) @ weight -> np.einsum("...i,ij->...j", x, weight).reshape(-1, d_out)
        && (x, weight, bias) -> [x, weight, bias]
        && return dx, dweight, dbias -> return [dx, dweight, dbias]
relu
    np.maximum(x, 0), x > 0 -> x * (x > 0), {"x": x, "no array": np.array(1.0)}
        && alive = cache -> alive = cache["x"] > 0
softmax
    np.where(peak == -np.inf, 0, peak) -> np.nan_to_num(peak, neginf=0)
        && weights / np.where(total == 0, 1, total) -> np.nan_to_num(weights / total)
    dweights - (dweights * weights).sum(axis=-1, keepdims=True)
        -> ((np.eye(weights.shape[-1]) - weights[..., None, :]) @ dweights[..., None])[..., 0]
        || softmax_backward makes float64 of float32
cross_entropy
    log_p[np.arange(len(t)), t] -> (log_p * np.eye(z.shape[-1])[t]).sum(axis=-1)
    dz[np.arange(len(t)), t] -= 1 - smoothing -> dz -= (1 - smoothing) * np.eye(shape[-1])[t]
embedding_backward
    np.add.at(dweight, ids, dx * scale)
        -> dweight += scale * np.eye(len(weight))[ids.ravel()].T @ dx.reshape(ids.size, -1)
sinusoidal_encoding
    10000.0 ** (-np.arange(0, d_model, 2) / d_model)
        -> np.exp(-math.log(10000) * np.arange(0, d_model, 2) / d_model)
layer_norm
    (centred * centred).mean(axis=-1, keepdims=True) -> x.var(axis=-1, keepdims=True)
        && (x_hat, sigma, gamma) -> (x, gamma, epsilon)
        && x_hat, sigma, gamma = cache -> x, gamma, epsilon = cache
        \n    sigma = np.sqrt(x.var(axis=-1, keepdims=True) + epsilon)
        \n    x_hat = (x - x.mean(axis=-1, keepdims=True)) / sigma
dropout
    return x, None -> return x, 1.0
        && keep * scale, (keep, scale) -> keep * scale, keep * scale
        && if cache is None: -> if False:
        && keep, scale = cache -> keep, scale = cache, 1 || dropout makes float64 of float32
encoder_layer_backward
    tuple(dattention), dattention_norm, tuple(dnetwork), dnetwork_norm
        -> dattention, list(dattention_norm), dnetwork, list(dnetwork_norm)
adam_update
    m *= beta_1 -> m[:] = beta_1 * m && data -= -> data[:] = data -
gradient_norm
    np.sqrt(grad @ grad) -> math.sqrt(sum(float(g) ** 2 for g in grad))
clip_scale
    1.0 if norm <= max_norm else max_norm / norm -> min(1, max_norm / max(norm, 1e-30))
linear_decay
    peak * max(0.0, min(step / warmup_steps, falling))
        -> np.interp(step, [0, warmup_steps, total_steps], [0, peak, 0])
greedy
    greedy_on_lists
beam_search
    beam_search_on_pairs
rms_norm
    np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon)
        -> np.linalg.norm(x, axis=-1, keepdims=True) / math.sqrt(x.shape[-1])
        \n    rho = np.hypot(rho, math.sqrt(epsilon))
silu
    0.5 * (1 + np.tanh(0.5 * x)) -> 1 / (1 + np.exp(-x))
rotary
    sin, pairs), (cos, sin, pairs) -> sin, pairs), (rows, pairs)
        && cos, sin, pairs = cache -> rows, pairs = cache
        && turned(dy, cos, -sin, pairs) -> turned(dy, rows[:, 0], -rows[:, 1], pairs)
convolution_2d
    sum(padded[:, rows, columns] @ weight[i, j] for i, j, rows, columns in places)
        -> np.einsum("byxcij,ijce->byxe", np.lib.stride_tricks.sliding_window_view(padded,
        weight.shape[:2], axis=(1, 2))[:, ::stride, ::stride], weight)
        && seen.reshape(-1, c_in).T @ dy.reshape(-1, c_out) -> np.einsum("byxc,byxe->ce", seen, dy)
places_in_windows
    slice(i, i + length - size + 1, stride) -> np.arange(i, i + length - size + 1, stride)
        && (i, j, rows[i], columns[j]) -> (i, j, rows[i][:, None], columns[j])
max_pooling
    seen.argmax(axis=0) -> (seen == seen.max(axis=0)).argmax(axis=0)
        && pad(x, padding, -np.inf) -> pad(x, padding, np.finfo(x.dtype).min)
batch_norm
    (centred * centred).mean(axis=rows) -> x.var(axis=rows)
        && gamma / sigma * (dy - dbeta / count - x_hat * (dgamma / count))
        -> (gamma * dy - (gamma * dy).mean(axis=rows)
        - x_hat * (gamma * dy * x_hat).mean(axis=rows)) / sigma
momentum_update
    velocity *= momentum -> velocity[:] = momentum * velocity
        && grad + momentum * velocity if nesterov else velocity -> grad * nesterov
        + velocity * (momentum if nesterov else 1)
"""

UNWRITTEN = "alive = cache\\n    return dy * alive -> raise NotImplementedError"

# What is said of a whole file with a slip, and what to do next; and of the one function alone.
CHECKED = r"""
layer_norm_backward
    - through_mean -> || WRONG  layer_norm || mend layer_norm, see lesson 07
relu_backward
    return -> raise NotImplementedError\n    return || to do  relu || write relu, see lesson 02
dropout_backward
    if -> raise NotImplementedError\n    if || to do  dropout || write dropout, see lesson 02
"""
ASKED = r"""
relu
    def relu_backward -> def relu_backwards || relu_backward; did you mean relu_backwards?
    $UNWRITTEN || to do  relu || no mistake found so far; still to do: relu_backward
    np.maximum -> np.minimum && $UNWRITTEN || WRONG  relu || negative entries become 0
    return np -> LAST[:] = [x > 0]\n    return np && alive = cache -> alive = LAST[0] || no global
split_heads
    def split_heads -> def splitheads || to do  split_heads || did you mean splitheads?
softmax_backward
    def softmax_backward -> def soft_max_backward
        || to do  softmax || did you mean soft_max_backward?
layer_norm
    centred = -> x += 0\n    centred = || WRONG  layer_norm || must not write to what it is given
layer_norm_backward
    - through_mean -> || WRONG  layer_norm
"""

# Where a training on it stops, and what a command says of a search.
STOPS = """
layer_norm
    dx, dgamma, dbeta -> dx, dgamma || on a wrong layer_norm
encoder_layer
    tuple(dnetwork), -> (*dnetwork[:3], dnetwork[3][None]), || returned a gradient of shape (1, 8)
relu
    = cache -> = cash || relu_backward raised NameError
"""
RETURNS = """
greedy
    said[:, 1:] -> said[0, 1:] || greedy must return ids
    said[:, 1:] -> said[:, 1:] * 1.0 || greedy must return ids
    said[:, 1:] -> said[:, :0] || greedy must return ids
beam_search
    return (rank -> return [0] or (rank || beam_search must return a list of pairs
"""
