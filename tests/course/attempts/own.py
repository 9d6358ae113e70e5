"""Attempts at the exercise of all lessons."""

WRONG = {
    "linear": [
        ({"y += bias": "y -= bias"}, "y = x W + b"),
    ],
    "linear_backward": [
        ({"dy.sum(axis=0)": "dy[0]"}, "dbias"),
        ({"dy.sum(axis=0)": "dy.mean(axis=0)"}, "12 is N, the number of rows"),
        ({"None if bias is None else ": ""}, "must be None"),
        ({"x.reshape(-1, d_in).T @ dy":
          "np.einsum('bti,btj->ij', x, dy.reshape(*x.shape[:2], -1))"},
         "with x of shape (12, 6) raised ValueError"),
        ({"dy @ weight.T": "2 * dy @ weight.T"}, "2 times too large"),
    ],
    "relu": [
        ({"np.maximum(x, 0)": "np.abs(x)"}, "negative entries become 0"),
    ],
    "relu_backward": [
        ({"dy * alive": "dy"}, "the slope is 1 where x is positive"),
        ({"dy * alive": "dy * (dy > 0)"}, "whatever dy is"),
    ],
    "softmax": [
        ({"np.where(peak == -np.inf, 0, peak)": "0"}, "its own largest score"),
        ({"x.max(axis=-1, keepdims=True)": "x.max()"}, "its own largest score"),
        ({"x = np.where(mask, x, -np.inf)": "every, x = x, np.where(mask, x, -np.inf)",
          "x.max(": "(x if mask is None else every).max("},
         "the largest score that is allowed"),
        ({"np.where(peak == -np.inf, 0, peak)": "peak"}, "where nothing is allowed"),
        ({"np.where(mask, x, -np.inf)": "np.where(mask, -np.inf, x)"}, "True is where"),
        ({"np.where(mask, x, -np.inf)": "np.where(mask, x, 0)"}, "score is −∞, not 0"),
        ({"np.where(mask, x, -np.inf)": "np.where(mask, x, -1e9)"}, "all weights are 0"),
        ({"weights.sum(axis=-1": "weights.sum(axis=-2"}, "its sum along the last axis"),
        ({"total == 0, 1, total)": "total == 0, 1, total + 1e-9)"}, "nothing added to it"),
    ],
    "softmax_backward": [
        ({" - (dweights * weights).sum(axis=-1, keepdims=True)": ""},
         "is the sum over the row in it"),
    ],
    "cross_entropy": [
        ({"t != pad_id": "t == t"}, "target is padding does not count"),
        ({"t != pad_id": "t != 0"}, "pad_id, which may not be 0"),
        ({"max(real.sum(), 1)": "len(t)"}, "divide by how many there are"),
        ({"max(real.sum(), 1)": "real.sum()"}, "and not 0 / 0"),
        ({"max(real.sum(), 1)": "1"}, "a mean over the positions"),
        ({"if num_tokens is None": "if True"}, "the sums are divided by it"),
        ({"log_p.mean(axis=-1)": "log_p.sum(axis=-1)"}, "loss with smoothing=0.3"),
        ({"z = z - z.max(axis=-1, keepdims=True)": "pass"}, "row's own largest z"),
        ({"z.max(axis=-1, keepdims=True)": "z.max()"}, "row's own largest z"),
        ({"(loss, nll), (": "loss, nll, ("}, "it returned a tuple of 3"),
        ({"return (loss, nll), ": ""}, "is its `return` missing?"),
        ({"return (loss, nll)": "return (loss, loss)"}, "without smoothing"),
        ({"smoothing) * nll + smoothing": "smoothing) * nll + 0"}, "loss"),
    ],
    "cross_entropy_backward": [
        ({"share * dloss": "share"}, "right only where dy is 1"),
        ({"share * dloss": "share * dloss * len(t)"}, "divided as the loss"),
        ({" - smoothing / shape[-1]": ""}, "with the smoothed q"),
        ({"(share * dloss)[:, None]": "dloss / 9"}, "padding the gradient is 0"),
    ],
    "embedding": [
        ({"weight[ids] * scale": "weight[ids]"}, "multiply by √D"),
        ({"weight.shape[1]": "weight.shape[0]"}, "of the width D, not of V"),
    ],
    "embedding_backward": [
        ({"np.add.at(dweight, ids, dx * scale)": "dweight[ids] += dx * scale"}, "+="),
        ({"np.add.at(dweight, ids, dx * scale)":
          "for b, t in np.ndindex(*ids.shape):\n        dweight[ids[b, t]] += dx[b, t] * scale"},
         "with ids of shape (15,) raised"),
        ({"dx * scale": "dx"}, "√D times as large"),
    ],
    "sinusoidal_encoding": [
        ({"np.stack": "np.concatenate"}, "yours has all sines first"),
        ({"np.arange(length)": "np.arange(1, length + 1)"}, "count from 0"),
        ({"-np.arange(0, d_model, 2)": "-np.arange(d_model // 2)"}, "not i/D"),
        ({"np.sin(angle), np.cos(angle)": "np.cos(angle), np.sin(angle)"}, "before"),
    ],
    "positional_encoding": [
        ({"table[: x.shape[-2]]": "table[-x.shape[-2] :]"}, "the first T rows"),
    ],
    "positional_encoding_backward": [
        ({"return dy": "return 2 * dy"}, "2 times too large"),
    ],
    "layer_norm": [
        ({"np.sqrt(variance + epsilon)": "np.sqrt(variance) + epsilon"}, "under the root"),
        ({"variance + epsilon": "variance"}, "ε is missing"),
        ({"variance + epsilon": "variance + 1e-5"}, "the epsilon that is given"),
        ({"(centred * centred).mean(": "centred.var(ddof=1, "}, "not by D − 1"),
        ({"np.sqrt(variance + epsilon)": "variance + epsilon"}, "divide by σ, the root"),
        ({"gamma * x_hat + beta": "gamma * (x_hat + beta)"}, "added after the gain"),
    ],
    "layer_norm_backward": [
        ({"dx_hat = dy * gamma": "dx_hat = dy"}, "the factor `gamma` is forgotten"),
        ({"dx_hat - through_mean": "dx_hat"}, "the path through `x.mean(axis=-1, keepdims=True)`"),
        ({" - through_sigma": ""}, "`(centred * centred).mean(axis=-1, keepdims=True)`"),
        ({"dy.sum(axis=rows)": "dy.sum(axis=0)"}, "over the leading axes"),
        ({"tuple(range(dy.ndim - 1))": "(0, 1)"}, "with x of shape (12, 6) dgamma has the shape"),
    ],
    "padding_mask": [
        ({"ids != pad_id": "ids == pad_id"}, "yours is the other way round"),
        ({"ids != pad_id": "ids != 0"}, "which may not be 0"),
        ({"[:, None, None, :]": ""}, "should have (3, 1, 1, 5)"),
        ({"[:, None, None, :]": "[:, None, None, :] * 1.0"}, "boolean array; it is float"),
    ],
    "causal_mask": [
        ({"<=": ">="}, "yours look ahead"),
        ({"<=": "<"}, "is False at index (0, 0, 0, 0) and should be True; a position may"),
        ({"<=": ">"}, "the other way round"),
        ({"[None, None]": ""}, "should have (1, 1, 4, 4)"),
    ],
    "scaled_dot_product_attention": [
        ({"1 / math.sqrt(query.shape[-1])": "1.0"}, "divided by √K"),
        ({"math.sqrt(query.shape[-1])": "query.shape[-1]"}, "not by K"),
        ({"softmax(scores, mask)": "softmax(scores)"}, "given to the"),
        ({"softmax(scores, mask)": "softmax(scores, None if mask is None else ~mask)"},
         "yours is the other way round"),
        ({"softmax(scores, mask)\n":
          "softmax(scores)\n    weights = weights if mask is None else weights * mask\n"},
         "not weights after it"),
        ({"dropout(weights, p, rng)": "weights, None"}, "with p and rng"),
    ],
    "scaled_dot_product_attention_backward": [
        ({" * scale": ""}, "the root of the head width"),
        ({"dropout_backward(dweights, dropout_cache)": "dweights"}, "back through the dropout"),
        ({"weights.swapaxes(-1, -2) @ dy": "softmax_cache.swapaxes(-1, -2) @ dy"},
         "multiplied by the weights after it"),
        ({"@ query": "@ (2 * query)"}, "WRONG  dkey: it is 2"),
    ],
    "split_heads": [
        ({"x.reshape(batch, length, num_heads, d_model // num_heads).swapaxes(1, 2)":
          "x.reshape(batch, num_heads, length, -1)"}, "this mixes positions"),
        ({"return x": "x"}, "is its `return` missing?"),
        ({".swapaxes(1, 2)": ""}, "exchange the axes T and H"),
        ({"num_heads, d_model // num_heads).swapaxes(1, 2)":
          "-1, num_heads).transpose(0, 3, 1, 2)"}, "not k · H + h"),
    ],
    "merge_heads": [
        ({".swapaxes(1, 2)": ""}, "this mixes positions"),
        ({".swapaxes(1, 2)": ".transpose(0, 2, 3, 1)"}, "not k · H + h"),
    ],
    "multi_head_attention": [
        ({"merge_heads(heads)": "heads.reshape(query.shape)"}, "by merge_heads"),
        ({"linear(value, w_value)": "linear(key, w_value)"}, "made of value"),
        ({"v, mask, p, rng": "v, None, p, rng"}, "the mask is to be handed on"),
        ({"v, mask, p, rng": "v, mask"}, "p and rng are to be handed on"),
    ],
    "multi_head_attention_backward": [
        ({"(dk, k_cache)": "(dk, v_cache)"}, "the cache of its own"),
        ({"dw_query, dw_key,": "dw_key, dw_query,"}, "it is dw_query"),
    ],
    "residual": [
        ({"return x + h": "return 2 * x + h"}, "z = x + h"),
        ({"return x + h": "x += h\n    return x"}, "must not write to its inputs"),
        ({"h, cache = dropout(h, p, rng)": "cache = None"}, "there is dropout of h"),
        ({"dropout(h, p, rng)\n    return x + h": "dropout(x + h, p, rng)\n    return h"}, "alone"),
    ],
    "residual_backward": [
        ({"dropout_backward(dz, cache)": "dz"}, "dh goes back through dropout"),
        ({"return dz,": "return dropout_backward(dz, cache),"}, "x does not go"),
        ({"return dz,": "return 0 * dz,"}, "dx: it is zero everywhere"),
    ],
    "feed_forward": [
        ({"h, relu_cache = relu(h)": "_, relu_cache = relu(h)"}, "between the two maps"),
        ({"dropout(h, p, rng)": "h, None"}, "there is dropout after the ReLU"),
    ],
    "feed_forward_backward": [
        ({"relu_backward(dh, relu_cache)": "dh"}, "the ReLU and the first map"),
        ({"dropout_backward(dh, dropout_cache)": "dh"}, "goes back through"),
    ],
    "encoder_layer": [
        ({"num_heads, mask,": "num_heads, None,"}, "each attention gets its own mask"),
        ({"*network, hidden_p, rng": "*network, p, rng"}, "hidden_p for the network"),
        ({"enter(x, network_norm,": "enter(x, attention_norm,"}, "each sublayer makes"),
        ({"feed_forward(h, *": "feed_forward(x, *"}, "each sublayer makes"),
    ],
    "encoder_layer_backward": [
        ({"dquery + dkey + dvalue": "dquery + dkey"}, "as query, key and value"),
        ({"(dx, dquery +": "(0, dquery +"}, "x goes past the sublayer"),
        ({"attention_caches, network_caches = cache":
          "(a, b, (r, n)), (c, d, (s, m)) = cache\n"
          "    attention_caches, network_caches = (a, b, (s, n)), (c, d, (r, m))"},
         "goes back with the cache of its own"),
        ({"(dx, dh,": "(0, dh,"}, "last right one is dnetwork.w_1"),
        ({"tuple(dnetwork), ": "*dnetwork, "}, "it returned a tuple of 8"),
        ({"tuple(dnetwork), ": "dnetwork[0], "}, "must be a tuple, (dw_1, db_1"),
    ],
    "decoder_layer": [
        ({"num_heads, memory_mask": "num_heads, None"}, "gets its own mask"),
        ({"num_heads, mask,": "num_heads, None,"}, "gets its own mask"),
        ({"h, memory, memory,": "h, h, h,"}, "the memory is key and value"),
        ({"h, memory, memory,": "memory, h, h,"}, "raised ValueError"),
    ],
    "decoder_layer_backward": [
        ({"dkey + dvalue\n    dx": "dkey\n    dx"}, "dmemory is the sum of both"),
        ({"enter_backward(dx, dh, enter_cache)\n    dcross":
          "enter_backward(0, dh, enter_cache)\n    dcross"},
         "last right one is dcross_attention.w_query"),
        ({"dself, dself_norm, dcross,": "dcross, dself_norm, dself,"}, "it is d"),
    ],
    "dropout": [
        ({"return x * keep * scale": "return x * keep"}, "scaled by 1 / (1 − p)"),
        ({">= p": "< p"}, "keep where the random number is p or more"),
        ({", dtype=np.float32": ""}, "float64 draws others"),
        ({"rng is None or p == 0": "rng is None"}, "must draw nothing"),
        ({"(keep, scale)": "(rng.random(x.shape) >= p, scale)"}, "draw from rng once"),
        ({"rng is None or p == 0": "p == 0"}, "'NoneType' object has no attribute 'random'"),
    ],
    "dropout_backward": [
        ({"dy * keep * scale": "dy * (np.random.default_rng(1).random(dy.shape) >= 0.4) * scale"},
         "was the dropout mask drawn again in backward?"),
        ({"dy * keep * scale": "dy * keep"}, "1.66667 is 1 / (1 − p)"),
        ({"dy * keep * scale": "dy * scale"}, "keep its mask in the cache"),
    ],
    "adam_update": [
        ({"m / (1 - beta_1**t)": "m"}, "m is to be divided by"),
        ({"m_hat = m / (1 - beta_1**t)": "m /= 1 - beta_1**t\n    m_hat = m"}, "m itself stays"),
        ({"v_hat = v / (1 - beta_2**t)": "v /= 1 - beta_2**t\n    v_hat = v"}, "v itself stays"),
        ({"(1 - beta_1) * grad": "grad"}, "the new gradient counts 1 − β₁"),
        ({"v / (1 - beta_2**t)": "v"}, "v is to be divided by"),
        ({"grad = grad * scale": "grad, t = grad * scale, t + 1"}, "1 at the first"),
        ({"grad = grad * scale": "grad, t = grad * scale, t - 1"}, "from 1"),
        ({"grad = grad * scale": "grad *= scale"}, "wrote to grad, which is to be left"),
        ({"grad = grad * scale": "pass"}, "in both moments"),
        ({"np.sqrt(v_hat) + epsilon": "np.sqrt(v_hat + epsilon)"}, "not under it"),
        ({"data -= learning_rate": "data = data - learning_rate"}, "write to data itself"),
        ({"m *= beta_1": "m = m * beta_1"}, "write to m itself"),
        ({"m *= beta_1": "data, m, v = data.copy(), m.copy(), v.copy()"}, "changed nothing"),
        ({"data -= learning_rate": "data += learning_rate"}, "goes against the gradient"),
    ],
    "gradient_norm": [
        ({"np.sqrt(grad @ grad)": "grad @ grad"}, "the root of the sum"),
    ],
    "clip_scale": [
        ({"1.0 if norm <= max_norm else max_norm / norm": "max_norm / norm"}, "is 1"),
        ({"1.0 if norm <= max_norm else max_norm / norm": "min(1, max_norm / norm)"},
         "clip_scale(0, 2) raised ZeroDivisionError"),
        ({"max_norm / norm": "norm / max_norm"}, "it makes the norm max_norm"),
    ],
    "noam": [
        ({"min(": "max("}, "the smaller of the two counts"),
        ({"step * w": "step / w"}, "it is the smaller of step^−½ and step · w^−1.5"),
        ({"-1.5": "-0.5"}, "it is the smaller of step^−½ and step · w^−1.5"),
    ],
    "linear_decay": [
        ({"max(0.0, min(step / warmup_steps, falling))": "min(step, falling)"}, "linear"),
        ({"max(0.0, ": "max(-1.0, "}, "never below 0"),
        ({"total_steps - warmup_steps": "total_steps"}, "peak at the end of the warm-up"),
    ],
    "greedy": [
        ({"ended.all()": "ended.any()"}, "go on until all rows have ended"),
        ({" and not ended.all()": ""}, "at 9 all had ended"),
        ({"said.shape[1] <= max_length and ": ""}, "more than max_length=3"),
        ({"return said[:, 1:]": "return said"}, "without the start symbol"),
        ({"argmax": "argmin"}, "the one of the highest log P"),
        ({"log_probabilities(said)": "log_probabilities(said[:, -1])"}, "said must be integers"),
    ],
    "beam_search": [
        ({"h[1] / ((5 + len(h[0])) / 6) ** alpha": "h[1]"}, "not by log P alone"),
        ({"(5 + len(h[0]))": "(4 + len(h[0]))"}, "counts EOS"),
        ({"(5 + len(h[0])) / 6": "len(h[0])"}, "the penalty is ((5 + length) / 6)^α"),
        ({"rank(found) + rank(_hypotheses(said, total))": "rank(found + _hypotheses(said, total))"},
         "comes after all that has"),
        ({"rank(found) + rank(_hypotheses(said, total))": "rank(found)"}, "is returned, too"),
        ({"axis=None)[:beam_size]": "axis=None)[: beam_size - len(found)]"}, "however many"),
        ({"said, total = said[~ended], total[~ended]": "pass"}, "leaves the beam"),
        ({"while len(said)": "while len(found) < beam_size and len(said)"}, "may score higher"),
        ({"log_probabilities(said)": "log_probabilities(said[:, -1])"}, "said must be integers"),
        ({"total[:, None] + log": "log"}, "the sum of log P of all its tokens"),
        ({"best = best[log_p.ravel()[best] > -np.inf]": "pass"}, "has log P = −∞"),
        ({"(said, total)))[:beam_size]": "(said, total)))"}, "at most beam_size"),
    ],
    "_hypotheses": [
        ({"ids[1:]": "ids"}, "without the start symbol"),
        ({"ids[1:]": "ids[(ids != 2) & (ids != 3)]"}, "EOS stays where it was chosen"),
    ],
}
RIGHT = {
    "linear": [
        ({", d_out), (x,": ", d_out) * np.float64(1), (x,"}, "linear makes float64 of float32"),
    ],
    "linear_backward": [
        ({"x.reshape(-1, d_in).T @ dy": "x.reshape(-1, d_in).T @ dy.astype(float)"},
         "linear_backward makes float64 of float32"),
    ],
    "relu": [
        ({"np.maximum(x, 0)": "np.where(x > 0, x, np.zeros(x.shape))"},
         "relu makes float64 of float32"),
    ],
    "softmax": [
        ({"np.where(total == 0, 1, total)": "np.where(total == 0, np.ones(1), total)"},
         "softmax makes float64 of float32"),
    ],
    "cross_entropy": [
        ({"real.astype(z.dtype) / count": "real / count"},
         "cross_entropy makes float64 of float32"),
    ],
    "cross_entropy_backward": [
        ({"np.exp(log_p) -": "np.exp(log_p) * np.float64(1) -"},
         "cross_entropy_backward makes float64 of float32"),
    ],
    "embedding": [
        ({"math.sqrt(weight.shape[1])": "np.sqrt(weight.shape[1])"},
         "embedding makes float64 of float32"),
    ],
    "embedding_backward": [
        ({"np.zeros_like(weight)": "np.zeros(weight.shape)"},
         "embedding_backward makes float64 of float32"),
    ],
    "positional_encoding": [
        ({"x + table[": "x + np.float64(1) * table["},
         "positional_encoding makes float64 of float32"),
    ],
    "layer_norm": [
        ({"centred / sigma": "centred / sigma.astype(float)"},
         "layer_norm makes float64 of float32"),
    ],
    "scaled_dot_product_attention": [
        ({"1 / math.sqrt(": "1 / np.sqrt("},
         "scaled_dot_product_attention makes float64 of float32"),
    ],
    "dropout": [({"1 / (1 - p)": "1 / np.float64(1 - p)"}, "dropout makes float64 of float32")],
}
