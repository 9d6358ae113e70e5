"""Functions of ``own.py`` that are right and not written as in the solution."""

OTHERWISE = """
def linear(x, weight, bias=None):
    y = np.einsum("...i,ij->...j", x, weight)
    return y + (0 if bias is None else bias), [x, weight, bias]


def linear_backward(dy, cache):
    x, weight, bias = cache
    rows = tuple(range(x.ndim - 1))
    dbias = bias if bias is None else dy.sum(axis=rows)
    return [dy @ weight.T, np.tensordot(x, dy, (rows, rows)), dbias]


def relu(x):
    return x * (x > 0), {"x": x}


def relu_backward(dy, cache):
    return np.where(cache["x"] > 0, dy, 0)


def softmax(x, mask=None):
    allowed = np.ones(x.shape) if mask is None else np.broadcast_to(mask, x.shape) * 1.0
    e = np.exp(np.where(allowed, x - np.where(allowed, x, -1e300).max(-1, keepdims=True), 0))
    w = np.nan_to_num(e * allowed / (e * allowed).sum(-1, keepdims=True))
    return w, w


def softmax_backward(dw, w):
    jacobian = w[..., :, None] * (np.eye(w.shape[-1]) - w[..., None, :])
    return (jacobian @ dw[..., None])[..., 0]


def cross_entropy(logits, targets, smoothing=0.0, pad_id=0, num_tokens=None):
    z = logits - logits.max(-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(-1, keepdims=True))
    one_hot = np.eye(z.shape[-1])[targets]
    real = (targets != pad_id)[..., None] / (num_tokens or max(1, (targets != pad_id).sum()))
    q = (1 - smoothing) * one_hot + smoothing / z.shape[-1]
    return (-(real * q * log_p).sum(), -(real * one_hot * log_p).sum()), (log_p, q, real)


def cross_entropy_backward(dloss, cache):
    log_p, q, real = cache
    return dloss * real * (np.exp(log_p) - q)


def embedding_backward(dx, cache):
    ids, weight, scale = cache
    one_hot = np.eye(len(weight))[ids.ravel()]
    return scale * one_hot.T @ dx.reshape(-1, dx.shape[-1])


def sinusoidal_encoding(length, d_model):
    table = np.zeros((length, d_model))
    for i in range(0, d_model, 2):
        angle = np.arange(length) / 10000 ** (i / d_model)
        table[:, i], table[:, i + 1] = np.sin(angle), np.cos(angle)
    return table


def layer_norm(x, gamma, beta, epsilon=1e-5):
    x_hat = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    return gamma * x_hat + beta, (x, gamma, epsilon)


def layer_norm_backward(dy, cache):
    x, gamma, epsilon = cache
    centred, n = x - x.mean(-1, keepdims=True), x.shape[-1]
    sigma = np.sqrt(x.var(-1, keepdims=True) + epsilon)
    dsigma = -(dy * gamma * centred).sum(-1, keepdims=True) / sigma**2
    dcentred = dy * gamma / sigma + dsigma * centred / (n * sigma)
    dgamma = (dy * centred / sigma).reshape(-1, n).sum(0)
    return dcentred - dcentred.mean(-1, keepdims=True), dgamma, dy.reshape(-1, n).sum(0)


def causal_mask(ids):
    return np.tril(np.ones((1, 1, ids.shape[1], ids.shape[1]), dtype=bool))


def split_heads(x, num_heads):
    return np.stack(np.split(x, num_heads, axis=-1), axis=1)


def merge_heads(x):
    return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=-1)


def dropout(x, p=0.0, rng=None):
    factor = np.ones(x.shape)
    if rng is not None and p > 0:
        factor = (rng.random(x.shape, dtype=np.float32) >= p) / (1 - p)
    return x * factor, factor


def dropout_backward(dy, factor):
    return dy * factor


def encoder_layer_backward(dy, cache):
    return [list(d) if isinstance(d, tuple) else d for d in first_encoder_layer_backward(dy, cache)]


def adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale=1.0):
    m[:] = beta_1 * m + (1 - beta_1) * grad * scale
    v[:] = beta_2 * v + (1 - beta_2) * (grad * scale) ** 2
    root = np.sqrt(v / (1 - beta_2**t))
    np.subtract(data, learning_rate / (1 - beta_1**t) * m / (root + epsilon), out=data)


def gradient_norm(grad):
    return math.sqrt(sum(float(g) ** 2 for g in grad))


def clip_scale(norm, max_norm):
    return min(1, max_norm / max(norm, 1e-30))


def linear_decay(step, peak, warmup_steps, total_steps):
    return np.interp(step, [0, warmup_steps, total_steps], [0, peak, 0])


def greedy(log_probabilities, said, max_length):
    rows = [[int(bos)] for (bos,) in said]
    for _ in range(max_length):
        for row, of_next in zip(rows, log_probabilities(np.array(rows))):
            row.append(EOS if EOS in row else int(np.argmax(of_next)))
        if all(EOS in row for row in rows):
            break
    return np.array(rows)[:, 1:]


def beam_search(log_probabilities, said, max_length, beam_size, alpha):
    penalty = lambda length: ((5 + length) / 6) ** alpha
    beam, found = [(0.0, [int(said[0, 0])])], []
    for length in range(1, max_length + 1):
        of_next = log_probabilities(np.array([ids for _, ids in beam]))
        longer = [
            (total + log_p, [*ids, word])
            for (total, ids), row in zip(beam, of_next)
            for word, log_p in enumerate(row)
            if log_p > -np.inf
        ]
        best = sorted(longer, reverse=True)[:beam_size]
        found += [(p / penalty(length), p, ids) for p, ids in best if ids[-1] == EOS]
        found = sorted(found, reverse=True)[:beam_size]
        beam = [(p, ids) for p, ids in best if ids[-1] != EOS]
        if not beam or len(found) == beam_size and beam[0][0] / penalty(max_length) < found[-1][0]:
            return [(np.array(ids[1:]), p) for _, p, ids in found]
    return [(ids[1:], p) for _, p, ids in found] + [(ids[1:], p) for p, ids in beam][
        : beam_size - len(found)
    ]
"""
