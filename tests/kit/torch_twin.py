"""PyTorch's own modules with our weights in them: the other side of the cases, by their names.

Each function takes a dict ``t`` of tensors, inputs and weights together, under our names and in
our shapes, and returns what torch computes from them. What stands after ``of`` has a row in
``IN_TORCH`` and is compared. The first functions are the whole
correspondence: torch's weights are ours transposed, because it computes x Wᵀ + b, and its
``in_proj_weight`` is query, key and value stacked. Autograd differentiates through this renaming,
so the gradients come out under our names and in our shapes, each compared as it is.
"""

import math
from functools import partial

import torch
from parity_cases import LEARNING_RATE, SHRINKING, STEPS, draw, upstream
from torch import nn
from torch.nn import functional

from minitransformer.cases import pictures
from minitransformer.cases.case import D, F, H
from minitransformer.cases.layers import CARRIED, FROZEN, RUNNING
from minitransformer.cases.models import since_2017_config, small_language_model_config

BETAS, EPSILON = (0.9, 0.98), 1e-9
IN_TORCH = {}  # functions of t, by the name of the case

torch.set_num_threads(1)  # on arrays this small, threads only wait for one another


def of(case, **options):
    """Mark a function as torch's side of a case, given these options."""

    def noted(function):
        IN_TORCH[case] = partial(function, **options)
        return function

    return noted


def results(case):
    """What torch computes for a case in float64: y and the gradients, NumPy arrays by name."""
    t = {name: torch.tensor(array) for name, array in draw(case).items()}
    floats = {name: x.requires_grad_() for name, x in t.items() if x.is_floating_point()}
    y = IN_TORCH[case.name](t)
    gradients = {}
    if y.requires_grad:
        y.backward(torch.tensor(upstream(y.shape)))
        gradients = {f"d{name}": x.grad.numpy() for name, x in floats.items()}
    return {"y": y.detach().numpy(), **gradients}


# Our weights under torch's names.


def linear_weights(t):
    bias = {"bias": t["bias"]} if "bias" in t else {}
    return {"weight": t["weight"].T, **bias}


def layer_norm_weights(t):
    return {"weight": t["gamma"], "bias": t["beta"]}


def attention_weights(t):
    return {
        "in_proj_weight": torch.cat([t["w_query"].T, t["w_key"].T, t["w_value"].T]),
        "out_proj.weight": t["w_output"].T,
    }


def no_attention_biases(t):
    """Constant zeros: the paper's attention has no biases and torch's layers cannot go without.

    Their gradients are the only ones with nothing of ours to be compared with.
    """
    width = len(t["w_output"])
    return {
        "in_proj_bias": t["w_output"].new_zeros(3 * width),
        "out_proj.bias": t["w_output"].new_zeros(width),
    }


def cell_weights(t):
    """Where the two biases are only ever added up, ours is one, and torch's other is zeros."""
    b_input = t["b_input"] if "b_input" in t else t["bias"]
    return {
        "weight_ih": t["w_input"].T,
        "weight_hh": t["w_hidden"].T,
        "bias_ih": b_input,
        "bias_hh": t["b_hidden"] if "b_hidden" in t else torch.zeros_like(b_input),
    }


def feed_forward_weights(t, inner, outer):
    """``inner`` and ``outer`` are torch's names of the two maps."""
    return {
        f"{inner}.weight": t["w_1"].T,
        f"{inner}.bias": t["b_1"],
        f"{outer}.weight": t["w_2"].T,
        f"{outer}.bias": t["b_2"],
    }


def layer_weights(t, attentions):
    """Of an encoder's or a decoder's layer; ``attentions`` are torch's names by ours, in order."""
    weights = feed_forward_weights(part(t, "feed_forward"), "linear1", "linear2")
    for ours, theirs in attentions.items():
        attention = part(t, ours)
        weights |= put(theirs, attention_weights(attention) | no_attention_biases(attention))
    for i, ours in enumerate([*attentions, "feed_forward"], start=1):
        weights |= put(f"norm{i}", layer_norm_weights(part(t, f"{ours}_residual.norm")))
    return weights


OF_ENCODER = {"self_attention": "self_attn"}
OF_DECODER = OF_ENCODER | {"cross_attention": "multihead_attn"}


def stack_weights(t, attentions, num_layers, norm):
    weights = {}
    for i in range(num_layers):
        weights |= put(f"layers.{i}", layer_weights(part(t, f"layers.{i}"), attentions))
    if norm == "pre":
        weights |= put("norm", layer_norm_weights(part(t, "norm")))
    return weights


def part(t, path):
    """The tensors below ``path``, by the rest of their names."""
    return {n.removeprefix(f"{path}."): x for n, x in t.items() if n.startswith(f"{path}.")}


def put(path, weights):
    return {f"{path}.{name}": x for name, x in weights.items()}


def call(module, weights, *inputs, **options):
    """``module(*inputs, **options)`` with ``weights`` for all its parameters, all replaced."""
    return torch.func.functional_call(module, weights, inputs, options, strict=True)


# The layers. Our masks are True where something may be looked at.


def blocked(mask, queries):
    """A mask for all heads as torch's modules take one, (B H, T, S), True where it is forbidden."""
    batch, keys = mask.shape[0], mask.shape[-1]
    return ~mask.expand(batch, H, queries, keys).reshape(batch * H, queries, keys)


def in_window(length, window, causal=False):
    distance = torch.arange(length) - torch.arange(length)[:, None]
    return (distance >= -window) & (distance <= (0 if causal else window))


@of("linear")
@of("linear, no bias")
def linear(t):
    d_in, d_out = t["weight"].shape
    return call(nn.Linear(d_in, d_out, bias="bias" in t), linear_weights(t), t["x"])


@of("relu")
def relu(t):
    return functional.relu(t["x"])


@of("tanh")
def tanh(t):
    return torch.tanh(t["x"])


@of("sigmoid")
def sigmoid(t):
    return functional.sigmoid(t["x"])


@of("softmax")
@of("softmax, nothing allowed in some rows")
def softmax(t):
    """Torch has no such row: each of its weights is taken away."""
    mask = t.get("mask", torch.tensor(True))
    scores = t["x"].masked_fill(~mask, torch.finfo(t["x"].dtype).min)
    return functional.softmax(scores, dim=-1) * mask


@of("dropout")
def dropout_at_inference(t):
    return nn.Dropout(0.3).eval()(t["x"])


@of("layer_norm")
@of("layer_norm, pictures")
def layer_norm(t):
    return call(nn.LayerNorm(len(t["gamma"])), layer_norm_weights(t), t["x"])


@of("layer_norm, used twice")
def layer_norm_twice(t):
    norm = part(t, "norm")
    return layer_norm({**norm, "x": layer_norm({**norm, "x": t["x"]}) ** 2})


@of("batch_norm")
@of("batch_norm, pictures")
@of("batch_norm, running statistics", running=[torch.tensor(x) for x in RUNNING])
def batch_norm(t, running=None):
    x = t["x"].flatten(0, -2)  # torch's channels are axis 1
    statistics = running or (None, None)
    y = functional.batch_norm(x, *statistics, t["gamma"], t["beta"], training=not running)
    return y.view_as(t["x"])


@of("local_response_norm", size=3, alpha=0.3)
@of("local_response_norm, the paper's constants", size=5, alpha=1e-4)
@of("local_response_norm, more near than there are", size=9, alpha=0.3, beta=2.0, k=1.0)
def local_response_norm(t, size, alpha, beta=0.75, k=2.0):
    """Torch's alpha is divided by size."""
    x = t["x"].movedim(-1, 1)
    return functional.local_response_norm(x, size, alpha * size, beta, k).movedim(1, -1)


@of("residual, post-norm", norm="post")
@of("residual, pre-norm", norm="pre")
def residual_around_linear(t, norm):
    x = t["x"]
    layer_norm = nn.LayerNorm(D), layer_norm_weights(part(t, "residual.norm"))
    linear = nn.Linear(D, D), linear_weights(part(t, "linear"))
    if norm == "pre":
        return x + call(*linear, call(*layer_norm, x))
    return call(*layer_norm, x + call(*linear, x))


@of("embedding")
def embedding(t):
    weight = t["weight"]
    return call(nn.Embedding(*weight.shape), {"weight": weight}, t["ids"]) * math.sqrt(D)


@of("embedding, tied to the projection")
def tied_embedding(t):
    weight = t["embedding.weight"]
    return functional.linear(embedding({"weight": weight, "ids": t["ids"]}), weight)


@of("positional_encoding")
def positional_encoding(t):
    """Torch has none; this is the paper's formula written with its functions."""
    x = t["x"]
    position = torch.arange(x.shape[1], dtype=x.dtype)[:, None]
    width = x.shape[-1]
    rate = -math.log(10000.0) / width
    frequency = torch.exp(torch.arange(0, width, 2, dtype=x.dtype) * rate)
    table = torch.empty(x.shape[1:], dtype=x.dtype)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return x + table


@of("patches")
def patches(t, size=2):
    """Torch has a convolution whose windows do not overlap."""
    x, weight = t["x"], t["linear.weight"]
    kernels = weight.unflatten(0, (size, size, -1)).permute(3, 2, 0, 1)
    y = functional.conv2d(x.permute(0, 3, 1, 2), kernels, t["linear.bias"], stride=size)
    return y.flatten(2).transpose(1, 2)


@of("patches, class token")
def class_token(t):
    return torch.cat([t["token"].expand(len(t["x"]), 1, -1), t["x"]], dim=1)


@of("learned_positions")
def learned_positions(t):
    x, table = t["x"], t["table"]
    return x + call(nn.Embedding(*table.shape), {"weight": table}, torch.arange(x.shape[1]))


@of("attention")
@of("attention, padding mask")
@of("attention, nothing allowed in some rows")
@of("attention, dropout")
def scaled_dot_product_attention(t):
    return functional.scaled_dot_product_attention(
        t["query"], t["key"], t["value"], attn_mask=t.get("mask")
    )


@of("attention, multi-head cross, padding mask")
def multi_head_attention(t):
    query, key, value = t["query"], t["key"], t["value"]
    module = nn.MultiheadAttention(D, H, bias=False, batch_first=True)
    mask = blocked(t["mask"], query.shape[1])
    weights = attention_weights(t)
    return call(module, weights, query, key, value, attn_mask=mask, need_weights=False)[0]


@of("attention, multi-head self, causal and padding mask")
@of("restricted_attention, multi-head self, padding mask", window=2)
def self_attention(t, window=None):
    x, mask = t["x"], t["mask"]
    mask = mask if window is None else mask & in_window(x.shape[1], window)
    of_itself = {"query": x, "key": x, "value": x, "mask": mask}
    return multi_head_attention(of_itself | part(t, "attention"))


@of("restricted_attention", window=2)
@of("restricted_attention, nothing allowed in some rows", window=2)
@of("restricted_attention, causal, padding mask", window=2, causal=True)
@of("restricted_attention, one block", window=4)
@of("restricted_attention, dropout", window=2)
def restricted_attention(t, window, causal=False):
    """Torch has none: attention to all, with a mask; a query that sees nothing receives zeros."""
    shape = t["query"].shape
    split = (t[name].unflatten(-1, (H, -1)).transpose(1, 2) for name in ("query", "key", "value"))
    mask = in_window(shape[1], window, causal) & t.get("mask", torch.tensor(True))
    heads = functional.scaled_dot_product_attention(*split, attn_mask=mask)  # (B, H, T, K)
    return heads.transpose(1, 2).reshape(shape)


@of("additive_attention")
@of("additive_attention, nothing allowed in some rows")
def additive_attention(t):
    """Torch has none; this is the formula written with its functions, a query at a time."""
    mask = t.get("mask", torch.ones(len(t["key"]), 1, t["key"].shape[1], dtype=torch.bool))[:, 0]
    y = []
    for query in t["query"].unbind(1):
        of_query = (query @ t["of_query.weight"])[:, None]
        scores = torch.tanh(of_query + t["key"] @ t["of_key.weight"]) @ t["v"]
        weights = softmax({"x": scores, "mask": mask})
        y.append((weights[:, :, None] * t["value"]).sum(1))
    return torch.stack(y, 1)


def one_way(t, x, mask, *state, reverse=False):
    """States (B, T, K) of torch's cell, and the last, which stays and is not said at padding."""
    hidden, gates = t["w_hidden"].shape
    cell = {1: nn.RNNCell, 3: nn.GRUCell, 4: nn.LSTMCell}[gates // hidden](x.shape[-1], hidden)
    parts = 2 if isinstance(cell, nn.LSTMCell) else 1
    state = state or parts * (x.new_zeros(len(x), hidden),)
    y = [None] * x.shape[1]
    for step in sorted(range(x.shape[1]), reverse=reverse):
        new = call(cell, cell_weights(t), x[:, step], state if parts == 2 else state[0])
        here = mask[:, step, None]
        both = zip(new if parts == 2 else (new,), state, strict=True)
        state = [torch.where(here, after, before) for after, before in both]
        y[step] = state[0] * here
    return torch.stack(y, 1), state


def both_ways(t, x, mask):
    y, state = one_way(part(t, "from_start"), x, mask)
    y_from_end, state_from_end = one_way(part(t, "from_end"), x, mask, reverse=True)
    both = zip(state, state_from_end, strict=True)
    return torch.cat([y, y_from_end], -1), [torch.cat(halves, -1) for halves in both]


@of("elman")
@of("elman, padding at both ends")
@of("gru")
@of("gru, padding at both ends")
@of("gru, from the end", reverse=True)
@of("lstm")
@of("lstm, padding at both ends")
@of("bidirectional gru, padding at both ends")
@of("bidirectional lstm, padding at both ends")
def recurrent(t, **direction):
    """All states, then the parts of the last one as further steps."""
    x, layer = t["x"], part(t, "layer")
    mask = t.get("mask", torch.ones(x.shape[:2], dtype=torch.bool))
    if part(layer, "from_start"):
        y, last = both_ways(layer, x, mask)
    else:
        first = (t[name] for name in ("h", "c") if name in t)
        y, last = one_way(layer, x, mask, *first, **direction)
    return torch.cat([y, *(state[:, None] for state in last)], dim=1)


@of("convolution")
@of("convolution, padding mask")
@of("convolution, causal", causal=True)
@of("convolution, causal, dilation, padding mask", causal=True, dilation=2)
@of("convolution, window longer than the sequence", dilation=3)
def convolution(t, dilation=1, causal=False):
    """Torch has (B, D, T) and kernels (D_out, D_in, k); what is to be causal is padded in front."""
    x = t["x"] * t["mask"][..., None] if "mask" in t else t["x"]
    width, d_in, d_out = t["weight"].shape
    span = (width - 1) * dilation
    before = span if causal else span // 2
    module = nn.Conv1d(d_in, d_out, width, dilation=dilation)
    weights = {"weight": t["weight"].permute(2, 1, 0), "bias": t["bias"]}
    x = functional.pad(x.transpose(1, 2), (before, span - before))
    return call(module, weights, x).transpose(1, 2)


@of("convolution_2d", padding=1)
@of("convolution_2d, no padding, no bias")
@of("convolution_2d, stride 2", stride=2, padding=1)
@of("convolution_2d, width 1, stride 2", stride=2)
@of("convolution_2d, width 2, stride 3", stride=3)
@of("convolution_2d, width 4, stride 2", stride=2, padding=2)
@of("convolution_2d, dilation 2", dilation=2, padding=1)
@of("convolution_2d, groups", groups=2, padding=1)
@of("convolution_2d, depthwise, stride 2", groups=4, stride=2, padding=1)
def convolution_2d(t, groups=1, **options):
    """Torch has (B, C, Y, X) and kernels (E, C / groups, k, k)."""
    width, _, c, c_out = t["weight"].shape
    options |= {"groups": groups, "bias": "bias" in t}
    module = nn.Conv2d(c * groups, c_out, width, **options)
    weights = t | {"weight": t["weight"].permute(3, 2, 0, 1)}
    del weights["x"]
    return call(module, weights, t["x"].permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


@of("pooling, maximum", layer=nn.MaxPool2d(2))
@of("pooling, maximum, overlapping, padding", layer=nn.MaxPool2d(3, 2, 1))
@of("pooling, average", layer=nn.AvgPool2d(2))
@of("pooling, average, overlapping, padding", layer=nn.AvgPool2d(3, 2, 1))
def pooling(t, layer):
    """Many of the numbers are equal, so that it shows which of them a maximum takes."""
    return layer(t["x"].permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


@of("pooling, global average")
def global_average_pooling(t):
    return nn.AdaptiveAvgPool2d(1)(t["x"].permute(0, 3, 1, 2))[..., 0, 0]


@of("zero_padded_shortcut")
def zero_padded_shortcut(t, stride=2, more=2):
    return functional.pad(t["x"][:, ::stride, ::stride], (0, more))


@of("gated_linear_unit")
def gated_linear_unit(t):
    return nn.GLU()(t["x"])


@of("feed_forward")
def feed_forward(t):
    network = nn.Sequential(nn.Linear(D, F), nn.ReLU(), nn.Linear(F, D))
    return call(network, feed_forward_weights(t, "0", "2"), t["x"])


@of("rms_norm")
def rms_norm(t):
    return functional.rms_norm(t["x"], t["gamma"].shape, t["gamma"], eps=1e-5)


@of("gelu", approximate="none")
@of("gelu, by tanh", approximate="tanh")
def gelu(t, approximate):
    return functional.gelu(t["x"], approximate=approximate)


@of("silu")
def silu(t):
    return functional.silu(t["x"])


@of("gated_feed_forward")
def gated_feed_forward(t):
    maps = {f"w_{name}": t[f"{name}.weight"] for name in ("gate", "up", "down")}
    return swiglu({"x": t["x"]} | maps)


@of("swiglu")
@of("swiglu, dropout")
def swiglu(t):
    """Torch has none: its SiLU between maps."""
    return (functional.silu(t["x"] @ t["w_gate"]) * (t["x"] @ t["w_up"])) @ t["w_down"]


def angles(t, start):
    """Torch has no rotary positions: (T, K/2) angles, for each convention in its usual form."""
    (*_, length, width), base = t["x"].shape, math.log(t.get("base", 1e4))
    frequency = torch.exp(torch.arange(0, width, 2, dtype=t["x"].dtype) * (-base / width))
    return torch.outer(torch.arange(start, start + length, dtype=t["x"].dtype), frequency)


@of("rotary, neighbours")
@of("rotary, neighbours, after others", start=7)
def rotary_neighbours(t, start=0):
    """A pair is a complex number, and a rotation a product."""
    angle = angles(t, start)
    pairs = torch.view_as_complex(t["x"].unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


@of("rotary, halves")
@of("rotary, halves, after others", start=7)
def rotary_halves(t, start=0):
    """The features, and those a quarter turn further, in proportions that the angle says."""
    x, angle = t["x"], angles(t, start).repeat(1, 2)
    first, second = x.chunk(2, -1)
    return x * angle.cos() + torch.cat([-second, first], -1) * angle.sin()


@of("alibi")
@of("alibi, nothing allowed in some rows")
@of("alibi, dropout")
def alibi(t):
    """Torch has none; this is the formula, where the last query stands at the last key."""
    query, key = t["query"], t["key"]
    (*_, queries, width), keys = query.shape, key.shape[2]
    heads = query.shape[1]
    slopes = 0.5 ** (8 * torch.arange(1, heads + 1, dtype=query.dtype) / heads)
    distance = (torch.arange(queries)[:, None] + keys - queries - torch.arange(keys)).abs()
    scores = query @ key.mT / math.sqrt(width) - slopes[:, None, None] * distance
    return softmax(t | {"x": scores}) @ t["value"]


@of("tiled_attention")
@of("tiled_attention, nothing allowed in some rows")
@of("tiled_attention, causal", causal=True)
@of("tiled_attention, causal, padding mask", causal=True)
@of("tiled_attention, one tile")
def tiled_attention(t, causal=False):
    """All at once; a query that sees nothing receives zeros."""
    queries, keys = t["query"].shape[2], t["key"].shape[2]
    mask = torch.ones(queries, keys, dtype=torch.bool)
    mask = (mask.tril() if causal else mask) & t.get("mask", torch.tensor(True))
    return scaled_dot_product_attention(t | {"mask": mask})


@of("linear_attention")
@of("linear_attention, nothing allowed in some rows")
@of("linear_attention, causal", causal=True)
@of("linear_attention, causal, padding mask", causal=True)
def linear_attention(t, causal=False):
    """Torch has none; this is the formula with all weights, (B, H, T, S)."""
    query, key = (functional.elu(t[name]) + 1 for name in ("query", "key"))
    weights = query @ key.mT * t.get("mask", torch.tensor(True))
    weights = weights.tril() if causal else weights
    total = weights.sum(-1, keepdim=True)
    return weights @ t["value"] / total.masked_fill(total == 0, 1)


@of("low_rank", scale=1.5)
@of("low_rank, no bias", bias=False)
def low_rank(t, scale=1.0, bias=True):
    """As it is once merged: one weight."""
    weight, shift = (torch.tensor(x) for x in FROZEN)
    return t["x"] @ (weight + scale * (t["a"] @ t["b"])) + (shift if bias else 0)


@of("mixture_of_experts", num_chosen=2)
@of("mixture_of_experts, all chosen", num_chosen=2)
def mixture_of_experts(t, num_chosen):
    """Torch has none: every expert is asked by every token, and most of it is thrown away."""
    t = part(t, "mixture") | {"x": t["x"]}
    p = functional.softmax(t["x"] @ t["w_router"], -1)
    chosen = torch.zeros_like(p).scatter(-1, p.topk(num_chosen).indices, 1.0)
    gates = p * chosen / (p * chosen).sum(-1, keepdim=True)
    said = [swiglu(part(t, f"experts.{e}") | {"x": t["x"]}) for e in range(p.shape[-1])]
    y = (gates[..., None] * torch.stack(said, -2)).sum(-2)
    balance = p.shape[-1] * (chosen.mean((0, 1)) / num_chosen * p.mean((0, 1))).sum()
    return torch.cat([y.flatten(), balance[None]])


@of("segment_attention", memory=torch.tensor(CARRIED))
@of("segment_attention, the first one, padding mask")
def segment_attention(t, memory=None):
    x = t["x"]
    context = x if memory is None else torch.cat([memory, x], 1)
    mask = torch.ones(x.shape[1], context.shape[1], dtype=torch.bool)
    mask = mask.tril(context.shape[1] - x.shape[1]) & t.get("mask", torch.tensor(True))
    mask = mask.expand(len(x), 1, -1, -1)
    return multi_head_attention(t | {"query": x, "key": context, "value": context, "mask": mask})


@of("grouped_query_attention, padding mask")
@of("grouped_query_attention, multi-query")
def grouped_query_attention(t, heads=4):
    def split(x, w):
        return (x @ w).unflatten(-1, (-1, len(w) // heads)).transpose(1, 2)

    q, k, v = (split(t[name], t[f"w_{name}"]) for name in ("query", "key", "value"))
    y = functional.scaled_dot_product_attention(q, k, v, t.get("mask"), enable_gqa=True)
    return y.transpose(1, 2).flatten(2) @ t["w_output"]


# The losses.


@of("loss")
@of("loss, label smoothing", smoothing=0.1)
def cross_entropy(t, smoothing=0.0):
    logits, targets = t["logits"].flatten(0, 1), t["targets"].flatten()
    return functional.cross_entropy(logits, targets, ignore_index=0, label_smoothing=smoothing)


@of("consistency")
def consistency(t):
    """Half of both divergences, a mean over real tokens."""
    p, q = functional.log_softmax(t["logits"], -1).chunk(2)
    apart = functional.kl_div(p, q, reduction="none", log_target=True)
    apart = apart + functional.kl_div(q, p, reduction="none", log_target=True)
    return apart[t["targets"] != 0].sum() / 2 / (t["targets"] != 0).sum()


@of("projected_loss")
def projected_loss(t):
    logits = functional.linear(t["x"], t["weight"])
    return cross_entropy({"logits": logits, "targets": t["targets"]}, 0.1)


@of("projected_loss, two passes")
def projected_loss_of_two_passes(t, kappa=2.0):
    both = {"logits": functional.linear(t["x"], t["weight"]), "targets": t["targets"]}
    twice = {"x": t["x"], "weight": t["weight"], "targets": t["targets"].repeat(2, 1)}
    return projected_loss(twice) + kappa * consistency(both)


# The layers and stacks of nn.Transformer, in training mode with dropout 0.


def new_layer(kind, norm):
    return kind(D, H, F, dropout=0.0, batch_first=True, norm_first=norm == "pre")


def new_stack(kind, layer, num_layers, norm, **options):
    final_norm = nn.LayerNorm(D) if norm == "pre" else None
    return kind(layer, num_layers, norm=final_norm, **options)


@of("encoder_layer, post-norm", norm="post")
@of("encoder_layer, pre-norm", norm="pre")
def encoder_layer(t, norm):
    layer = new_layer(nn.TransformerEncoderLayer, norm)
    mask = blocked(t["mask"], t["x"].shape[1])
    return call(layer, layer_weights(t, OF_ENCODER), t["x"], src_mask=mask)


@of("decoder_layer, post-norm", norm="post")
@of("decoder_layer, pre-norm", norm="pre")
def decoder_layer(t, norm):
    layer = new_layer(nn.TransformerDecoderLayer, norm)
    masks = decoder_masks(t["mask"], t["memory_mask"])
    return call(layer, layer_weights(t, OF_DECODER), t["x"], t["memory"], **masks)


def decoder_masks(mask, memory_mask):
    queries = mask.shape[-1]
    return dict(tgt_mask=blocked(mask, queries), memory_mask=blocked(memory_mask, queries))


def encoder(t, x, mask, norm):
    layer = new_layer(nn.TransformerEncoderLayer, norm)
    stack = new_stack(nn.TransformerEncoder, layer, 2, norm, enable_nested_tensor=False)
    weights = stack_weights(t, OF_ENCODER, 2, norm)
    return call(stack, weights, x, mask=blocked(mask, x.shape[1]))


def decoder(t, x, memory, mask, memory_mask, norm):
    layer = new_layer(nn.TransformerDecoderLayer, norm)
    stack = new_stack(nn.TransformerDecoder, layer, 2, norm)
    weights = stack_weights(t, OF_DECODER, 2, norm)
    return call(stack, weights, x, memory, **decoder_masks(mask, memory_mask))


# The loss of whole models. Which weights are tied shows in which there are: one tensor serves where
# ours is shared.


def loss_of_ids(model):
    """Of ids and labels, the loss that ``model(t, *ids)`` has with its logits."""

    def loss(t, **options):
        *ids, labels = (t[name] for name in sorted(t) if name.startswith("input_"))
        logits = model(part(t, "model"), *ids, **options)
        return cross_entropy({"logits": logits, "targets": labels}, smoothing=0.1)

    return loss


def tables(t):
    for_source = t["source_embedding.weight"]
    for_target = t.get("target_embedding.weight", for_source)
    return for_source, for_target, t.get("output_projection.weight", for_target)


def is_word(ids):
    return (ids != 0)[:, None, None]


def is_past(ids):
    return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()


@of("model, post-norm, three-way tying", norm="post")
@of("model, post-norm, two-way tying", norm="post")
@of("model, post-norm, none tying", norm="post")
@of("model, pre-norm, three-way tying", norm="pre")
@of("model, pre-norm, two-way tying", norm="pre")
@of("model, pre-norm, none tying", norm="pre")
@of("model, restricted", norm="pre", window=1)
@loss_of_ids
def transformer(t, source, target, norm, window=100):
    for_source, for_target, for_output = tables(t)
    source_mask, target_mask = is_word(source), is_word(target) & is_past(target)
    near = (in_window(ids.shape[1], window) for ids in (source, target))

    x = positional_encoding({"x": embedding({"weight": for_source, "ids": source})})
    memory = encoder(part(t, "encoder"), x, source_mask & next(near), norm)
    x = positional_encoding({"x": embedding({"weight": for_target, "ids": target})})
    masks = target_mask & next(near), source_mask
    return functional.linear(decoder(part(t, "decoder"), x, memory, *masks, norm), for_output)


@of("model, language model", causal=True)
@of("model, masked language model", causal=False)
@of("model, tagger", causal=False)
@loss_of_ids
def language_model(t, ids, causal):
    weight = t["embedding.weight"]
    x = embedding({"weight": weight, "ids": ids})
    x = learned_positions({"x": x, "table": t["positions.table"]})
    mask = is_word(ids) & is_past(ids) if causal else is_word(ids).expand(-1, -1, ids.shape[1], -1)
    y = encoder(part(t, "stack"), x, mask, "pre")
    return functional.linear(y, t.get("output_projection.weight", weight))  # of a tagger


@of("model, blocks since 2017", config=since_2017_config())
@loss_of_ids
def chosen_language_model(t, ids, config):
    """Of any choices, which torch has no layers for."""
    weight = t["embedding.weight"]
    x = weight[ids] * (math.sqrt(config.d_model) if config.scaled_embedding else 1)
    if config.positions == "learned":
        x = learned_positions({"x": x, "table": t["positions.table"]})
    if config.positions == "sinusoidal":
        x = positional_encoding({"x": x})
    mask = is_word(ids) & is_past(ids)
    if config.window:
        mask = mask & in_window(ids.shape[1], config.window)
    for i in range(config.num_layers):
        layer = part(t, f"stack.layers.{i}")
        for name, sublayer in (
            ("self_attention", partial(chosen_attention, mask=mask, config=config)),
            ("feed_forward", partial(chosen_feed_forward, config=config)),
        ):
            norm = partial(chosen_norm, part(layer, f"{name}_residual.norm"), config)
            around = part(layer, name)
            x = (
                x + sublayer(around, norm(x))
                if config.norm == "pre"
                else norm(x + sublayer(around, x))
            )
    x = chosen_norm(part(t, "stack.norm"), config, x) if config.norm == "pre" else x
    return functional.linear(x, t.get("output_projection.weight", weight))


def chosen_norm(t, config, x):
    return (layer_norm if config.normalisation == "layer-norm" else rms_norm)(t | {"x": x})


def chosen_attention(t, x, mask, config):
    def mapped(name):
        if f"w_{name}" in t:  # of the paper's attention
            return {"weight": t[f"w_{name}"].T}
        return linear_weights(part(t, name))

    def split(name):
        heads = functional.linear(x, **mapped(name)).unflatten(-1, (-1, width))
        return heads.transpose(1, 2)  # (B, H or G, T, K)

    width = config.d_model // config.num_heads
    q, k, v = map(split, ("query", "key", "value"))
    if config.positions == "rotary":
        turn = {"neighbours": rotary_neighbours, "halves": rotary_halves}[config.rotary_pairs]
        q, k = (turn({"x": x, "base": config.rotary_base}) for x in (q, k))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    if config.positions == "alibi":
        heads = alibi({"query": q, "key": k, "value": v, "mask": mask})
    else:
        heads = softmax({"x": q @ k.mT / math.sqrt(width), "mask": mask}) @ v
    return functional.linear(heads.transpose(1, 2).flatten(2), **mapped("output"))


@of("activated_feed_forward")
def activated_feed_forward(t):
    return chosen_feed_forward(t, t["x"], small_language_model_config(activation="gelu-by-tanh"))


def chosen_feed_forward(t, x, config):
    if config.activation == "swiglu":
        return swiglu(t | {"x": x})
    inner, outer = part(t, "inner"), part(t, "outer")
    if "w_1" in t:  # of the paper's network
        inner, outer = ({"weight": t[f"w_{i}"], "bias": t[f"b_{i}"]} for i in (1, 2))
    activation = {
        "relu": functional.relu,
        "gelu": functional.gelu,
        "gelu-by-tanh": partial(functional.gelu, approximate="tanh"),
        "silu": functional.silu,
    }[config.activation]
    h = activation(functional.linear(x, **linear_weights(inner)))
    return functional.linear(h, **linear_weights(outer))


@of("model, recurrent, additive attention")
@of("model, recurrent, fixed vector")
@loss_of_ids
def recurrent_translator(t, source, target):
    def tanh_linear(path, x):
        return torch.tanh(functional.linear(x, **linear_weights(part(t, f"{path}.linear"))))

    for_source, for_target, for_output = tables(t)
    attention, encoder = part(t, "attention"), part(t, "encoder")
    x = embedding({"weight": for_source, "ids": source})
    states, (m,) = (both_ways if attention else one_way)(encoder, x, source != 0)

    x = embedding({"weight": for_target, "ids": target})
    y = tanh_linear("bridge", m)
    if not attention:
        x = torch.cat([x, m[:, None].expand(-1, x.shape[1], -1)], -1)
    y, _ = one_way(part(t, "decoder"), x, torch.ones_like(target, dtype=torch.bool), y)
    if attention:
        asked = {"query": y, "key": states, "value": states, "mask": is_word(source)[:, 0]}
        y = torch.cat([y, additive_attention(asked | attention)], -1)
    return functional.linear(tanh_linear("combine", y), for_output)


# Models of pictures, in training, of any configuration: see tests/models/test_in_torch.py, too.


def loss_of_pictures(model):
    """The loss that ``model(t, pictures, config)`` has with its logits; every label counts."""

    def loss(t, config):
        logits = model(part(t, "model"), t["input_0"], config)
        return functional.cross_entropy(logits, t["input_1"], label_smoothing=0.1)

    return loss


def convolved(t, x, **options):
    """Padded by half the width, unless ``options`` say otherwise."""
    return convolution_2d(t | {"x": x}, **{"padding": len(t["weight"]) // 2} | options)


def normed(t, x):
    if "norm.gamma" in t:  # of the channels at each position
        return layer_norm(part(t, "norm") | {"x": x})
    return batch_norm(t | {"x": x})


def pooled(x, *sizes):
    return pooling({"x": x}, nn.MaxPool2d(*sizes))


def convolved_and_normed(t, x, **options):
    return normed(part(t, "norm"), convolved(part(t, "convolution"), x, **options))


def normed_and_convolved(t, x, **options):
    return convolved(part(t, "convolution"), torch.relu(normed(part(t, "norm"), x)), **options)


@of("model, small network", config=pictures.SMALL_NETWORK)
@loss_of_pictures
def small_network(t, x, config):
    for i in range(3):
        x = torch.relu(convolved_and_normed(part(t, f"convolutions.{i}"), x))
        x = pooled(x, 2)
    return linear(part(t, "head") | {"x": x.flatten(1)})


@of("model, alexnet", config=pictures.ALEXNET)
@loss_of_pictures
def alexnet(t, x, config):
    activate = {"relu": torch.relu, "tanh": torch.tanh}[config.activation]
    first = dict(stride=4, padding=0) if config.form == "large" else {}
    towers = dict(groups=config.towers)
    middle = {"third": [towers], "fourth": [{}]}.get(config.left_out, [{}, towers])
    for i, options in enumerate((first, towers, *middle, towers)):
        x = activate(convolved(part(t, f"convolutions.{i}.convolution"), x, **options))
        if i < 2 and config.response_norm:
            x = local_response_norm({"x": x}, size=5, alpha=1e-4)
        if i in (0, 1, 2 + len(middle)):
            x = pooled(x, *((3, 2) if config.overlapping else (2, 2)))
    x = x.flatten(1)
    for i in range(1 if config.left_out == "hidden" else 2):
        x = activate(linear(part(t, f"hidden.{i}.linear") | {"x": x}))
    return linear(part(t, "head") | {"x": x})


@of("model, residual network, plain", config=pictures.small_residual_config(shortcut="none"))
@of("model, residual network, shortcuts A", config=pictures.small_residual_config(shortcut="A"))
@of(
    "model, residual network, shortcuts C, pre-activation",
    config=pictures.small_residual_config(shortcut="C", pre_activation=True),
)
@loss_of_pictures
def residual_network(t, x, config):
    large = config.form == "large"
    x = torch.relu(convolved_and_normed(part(t, "first"), x, stride=2 if large else 1))
    x = pooled(x, 3, 2, 1) if large else x
    for stage, blocks in enumerate(config.stages()):
        for i in range(len(blocks)):
            stride = 2 if stage and not i else 1
            x = residual_block(part(t, f"stages.{stage}.{i}"), x, stride, config)
    x = torch.relu(normed(part(t, "norm"), x)) if config.pre_activation else x
    return linear(part(t, "head") | {"x": x.mean((1, 2))})


def residual_block(t, x, stride, config):
    strides = (1, stride, 1) if config.block == "bottleneck" else (stride, 1)
    step = normed_and_convolved if config.pre_activation else convolved_and_normed
    z = x
    for i, its_stride in enumerate(strides):
        z = torch.relu(z) if i and not config.pre_activation else z
        z = step(part(t, f"steps.{i}"), z, stride=its_stride)
    if of_shortcut := part(t, "shortcut"):
        z = z + step(of_shortcut, x, stride=stride)
    elif config.shortcut != "none":
        more = z.shape[-1] - x.shape[-1]
        z = z + functional.pad(x[:, ::stride, ::stride], (0, more))
    return z if config.pre_activation else torch.relu(z)


@of("model, vision transformer", config=pictures.VISION_TRANSFORMER)
@loss_of_pictures
def vision_transformer(t, x, config):
    size = config.patch_size
    x = patches(part(t, "embedding") | {"x": x}, size)
    x = class_token({"x": x, "token": t["class_token.token"]})
    x = learned_positions({"x": x, "table": t["positions.table"]})
    everywhere = torch.ones(len(x), 1, x.shape[1], x.shape[1], dtype=torch.bool)
    y = encoder(part(t, "stack"), x, everywhere, config.norm)
    return linear(part(t, "head") | {"x": y[:, 0]})


# Training.


def new_adam(weights):
    return torch.optim.Adam(weights, lr=LEARNING_RATE, betas=BETAS, eps=EPSILON)


@of("adam")
def adam(t):
    weight = t["weight"].detach()
    optimizer = new_adam([weight])
    for gradient in t["gradients"].detach() * torch.tensor(SHRINKING):
        weight.grad = gradient
        optimizer.step()
    return weight


@of("training, post-norm", norm="post")
@of("training, pre-norm", norm="pre")
def training(t, norm):
    optimizer = new_adam([x for x in t.values() if x.requires_grad])
    losses = []
    for step in range(STEPS):
        batches = (t[name][step % len(t[name])] for name in ("sources", "targets", "labels"))
        batch = {f"input_{i}": ids for i, ids in enumerate(batches)}
        loss = transformer(t | batch, norm=norm)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)
