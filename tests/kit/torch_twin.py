"""PyTorch's own modules with our weights in them: the other side of every parity case.

Each function takes a dict ``t`` of tensors, inputs and weights together, under our names and in
our shapes, and returns what torch computes from them. The first functions are the whole
correspondence: torch's weights are ours transposed, because it computes x Wᵀ + b, and its
``in_proj_weight`` is query, key and value stacked. Autograd differentiates through this renaming,
so the gradients come out under our names and in our shapes, each compared as it is.
"""

import math

import torch
from parity_cases import LEARNING_RATE, SMOOTHING, STEPS, UPSTREAM, D, F, H, K
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

BETAS, EPSILON = (0.9, 0.98), 1e-9

torch.set_num_threads(1)  # on arrays this small, threads only wait for one another


def results(run, arrays, dtype):
    """The outputs of ``run(t)`` and, given upstream gradients, that of every other float array.

    Args:
        run: returns a tensor, which is then called ``y``, or a dict of them.
        arrays: NumPy arrays; ``dy`` is the gradient of the output ``y``, as in ``UPSTREAM``.
        dtype: ``"float64"`` or ``"float32"``, for all floating arrays.

    Returns:
        dict of NumPy arrays, with ``dx`` for each ``x`` that has a gradient.
    """
    t = {name: torch.tensor(array) for name, array in arrays.items()}
    t = {name: x.to(getattr(torch, dtype)) if x.is_floating_point() else x for name, x in t.items()}
    upstream = {name[1:]: t.pop(name) for name in UPSTREAM if name in t}
    leaves = {name: x.requires_grad_() for name, x in t.items() if x.is_floating_point()}

    outputs = run(t)
    if not isinstance(outputs, dict):
        outputs = {"y": outputs}
    for name, gradient in upstream.items():
        outputs[name].backward(gradient)
    gradients = {f"d{name}": leaf.grad for name, leaf in leaves.items()} if upstream else {}
    return {name: x.detach().numpy() for name, x in (outputs | gradients).items()}


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


def recurrent_weights(t, suffix=""):
    """Where the two biases are only ever added up, ours is one, and torch's other is zeros."""
    b_input = t["b_input"] if "b_input" in t else t["bias"]
    return {
        f"weight_ih_l0{suffix}": t["w_input"].T,
        f"weight_hh_l0{suffix}": t["w_hidden"].T,
        f"bias_ih_l0{suffix}": b_input,
        f"bias_hh_l0{suffix}": t["b_hidden"] if "b_hidden" in t else torch.zeros_like(b_input),
    }


def feed_forward_weights(t, inner, outer):
    """``inner`` and ``outer`` are torch's names of the two maps."""
    return {
        f"{inner}.weight": t["w_1"].T,
        f"{inner}.bias": t["b_1"],
        f"{outer}.weight": t["w_2"].T,
        f"{outer}.bias": t["b_2"],
    }


def encoder_layer_weights(t):
    attention = part(t, "self_attention")
    return {
        **put("self_attn", attention_weights(attention) | no_attention_biases(attention)),
        **put("norm1", layer_norm_weights(part(t, "self_attention_residual.norm"))),
        **feed_forward_weights(part(t, "feed_forward"), "linear1", "linear2"),
        **put("norm2", layer_norm_weights(part(t, "feed_forward_residual.norm"))),
    }


def decoder_layer_weights(t):
    attention, cross = part(t, "self_attention"), part(t, "cross_attention")
    return {
        **put("self_attn", attention_weights(attention) | no_attention_biases(attention)),
        **put("norm1", layer_norm_weights(part(t, "self_attention_residual.norm"))),
        **put("multihead_attn", attention_weights(cross) | no_attention_biases(cross)),
        **put("norm2", layer_norm_weights(part(t, "cross_attention_residual.norm"))),
        **feed_forward_weights(part(t, "feed_forward"), "linear1", "linear2"),
        **put("norm3", layer_norm_weights(part(t, "feed_forward_residual.norm"))),
    }


def stack_weights(t, layer_weights, num_layers, norm):
    weights = {}
    for i in range(num_layers):
        weights |= put(f"layers.{i}", layer_weights(part(t, f"layers.{i}")))
    if norm == "pre":
        weights |= put("norm", layer_norm_weights(part(t, "norm")))
    return weights


def part(t, path):
    """The tensors below ``path``, by the rest of their names."""
    return {n.removeprefix(f"{path}."): x for n, x in t.items() if n.startswith(f"{path}.")}


def put(path, weights):
    return {f"{path}.{name}": x for name, x in weights.items()}


def call(module, weights, *inputs, **masks):
    """``module(*inputs, **masks)`` with ``weights`` for all its parameters, none left as it was."""
    return torch.func.functional_call(module, weights, inputs, masks, strict=True)


# Torch's masks are True where attention is forbidden, except in scaled_dot_product_attention.


def is_padding(ids):
    return ids == 0


def is_ahead(ids):
    length = ids.shape[1]
    return torch.ones(length, length, dtype=torch.bool).triu(1)


# The layers.


def linear(t):
    return call(nn.Linear(D, F, bias="bias" in t), linear_weights(t), t["x"])


def relu(t):
    return functional.relu(t["x"])


def softmax(t):
    x = t["x"].masked_fill(~t["mask"], -math.inf) if "mask" in t else t["x"]
    return functional.softmax(x, dim=-1)


def dropout_at_inference(t):
    return nn.Dropout(0.3).eval()(t["x"])


def layer_norm(t):
    return call(nn.LayerNorm(D), layer_norm_weights(t), t["x"])


def residual_around_linear(t, norm):
    x = t["x"]
    layer_norm = nn.LayerNorm(D), layer_norm_weights(part(t, "residual.norm"))
    linear = nn.Linear(D, D), linear_weights(part(t, "linear"))
    if norm == "pre":
        return x + call(*linear, call(*layer_norm, x))
    return call(*layer_norm, x + call(*linear, x))


def embedding(t):
    weight = t["weight"]
    return call(nn.Embedding(*weight.shape), {"weight": weight}, t["ids"]) * math.sqrt(D)


def tied_embedding(t):
    weight = t["embedding.weight"]
    return functional.linear(embedding({"weight": weight, "ids": t["ids"]}), weight)


def positional_encoding(t):
    """Torch has none; this is the paper's formula written with its functions."""
    x = t["x"]
    position = torch.arange(x.shape[1], dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(0, D, 2, dtype=torch.float64) * (-math.log(10000.0) / D))
    table = torch.empty(x.shape[1:], dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return x + table.to(x.dtype)


def scaled_dot_product_attention(t):
    return functional.scaled_dot_product_attention(
        t["query"], t["key"], t["value"], attn_mask=t.get("mask")
    )


def self_attention(t):
    x, target = t["x"], t["target"]
    return call(
        nn.MultiheadAttention(D, H, bias=False, batch_first=True),
        attention_weights(part(t, "attention")),
        *(x, x, x),
        key_padding_mask=is_padding(target),
        attn_mask=is_ahead(target),
        need_weights=False,
    )[0]


def cross_attention(t):
    return call(
        nn.MultiheadAttention(D, H, bias=False, batch_first=True),
        attention_weights(t),
        *(t["query"], t["key"], t["value"]),
        key_padding_mask=is_padding(t["source"]),
        need_weights=False,
    )[0]


def recurrent(t, directions):
    """All states of a padded batch, then the parts of the last one as further steps."""
    layer = part(t, "layer")
    if directions == 1:
        weights = recurrent_weights(layer)
    else:
        weights = recurrent_weights(part(layer, "from_start"))
        weights |= recurrent_weights(part(layer, "from_end"), "_reverse")
    gates = len(weights["weight_hh_l0"]) // K
    kind = {1: nn.RNN, 3: nn.GRU, 4: nn.LSTM}[gates]
    first = tuple(t[name][None] for name in ("h", "c") if name in t)  # (1, B, K) each
    first = (first if gates == 4 else first[0],) if first else ()
    packed = pack_padded_sequence(t["x"], (t["source"] != 0).sum(1), batch_first=True)
    module = kind(D, K, batch_first=True, bidirectional=directions == 2)
    y, last = call(module, weights, packed, *first)
    y, _ = pad_packed_sequence(y, batch_first=True, total_length=t["x"].shape[1])
    last = last if gates == 4 else (last,)
    return torch.cat([y, *(torch.cat(list(s), -1)[:, None] for s in last)], dim=1)


def additive_attention(t):
    """Torch has none; this is the formula written with its functions, a query at a time."""
    y = []
    for query in t["query"].unbind(1):
        of_query = (query @ t["of_query.weight"])[:, None]
        scores = torch.tanh(of_query + t["key"] @ t["of_key.weight"]) @ t["v"]
        weights = functional.softmax(scores.masked_fill(is_padding(t["source"]), -math.inf), -1)
        y.append((weights[:, :, None] * t["value"]).sum(1))
    return torch.stack(y, 1)


def is_out_of_sight(length, window, causal):
    distance = torch.arange(length) - torch.arange(length)[:, None]
    return (distance < -window) | (distance > (0 if causal else window))


def restricted_attention(t, window, causal):
    """Torch has none: attention to all, with a mask; a query that sees nothing receives zeros."""
    shape = t["query"].shape
    split = (t[name].unflatten(-1, (H, -1)).transpose(1, 2) for name in ("query", "key", "value"))
    mask = ~is_out_of_sight(shape[1], window, causal)
    mask = mask & t["mask"] if "mask" in t else mask
    heads = functional.scaled_dot_product_attention(*split, attn_mask=mask)  # (B, H, T, K)
    return heads.transpose(1, 2).reshape(shape)


def restricted_self_attention(t, window):
    x = t["x"]
    return call(
        nn.MultiheadAttention(D, H, bias=False, batch_first=True),
        attention_weights(part(t, "attention")),
        *(x, x, x),
        attn_mask=is_out_of_sight(x.shape[1], window, causal=False),
        need_weights=False,
    )[0]


def convolution(t, dilation=1, causal=False):
    """Torch has (B, D, T) and kernels (D_out, D_in, k); what is to be causal is padded in front."""
    x = t["x"] * t["tokens"][..., None] if "tokens" in t else t["x"]
    width, d_in, d_out = t["weight"].shape
    span = (width - 1) * dilation
    before = span if causal else span // 2
    module = nn.Conv1d(d_in, d_out, width, dilation=dilation)
    weights = {"weight": t["weight"].permute(2, 1, 0), "bias": t["bias"]}
    x = functional.pad(x.transpose(1, 2), (before, span - before))
    return call(module, weights, x).transpose(1, 2)


def gated_linear_unit(t):
    return nn.GLU()(t["x"])


def learned_positions(t):
    x, table = t["x"], t["table"]
    return x + call(nn.Embedding(*table.shape), {"weight": table}, torch.arange(x.shape[1]))


def feed_forward(t):
    network = nn.Sequential(nn.Linear(D, F), nn.ReLU(), nn.Linear(F, D))
    return call(network, feed_forward_weights(t, "0", "2"), t["x"])


def cross_entropy(t, smoothing):
    logits, labels = t["logits"].flatten(0, 1), t["labels"].flatten()
    return {
        "loss": functional.cross_entropy(logits, labels, ignore_index=0, label_smoothing=smoothing),
        "nll": functional.cross_entropy(logits, labels, ignore_index=0),
    }


# The layers and stacks of nn.Transformer, in training mode with dropout 0.


def new_layer(kind, norm):
    return kind(D, H, F, dropout=0.0, batch_first=True, norm_first=norm == "pre")


def new_stack(kind, layer, num_layers, norm, **options):
    final_norm = nn.LayerNorm(D) if norm == "pre" else None
    return kind(layer, num_layers, norm=final_norm, **options)


def encoder_layer(t, norm):
    layer = new_layer(nn.TransformerEncoderLayer, norm)
    weights = encoder_layer_weights(t)
    return call(layer, weights, t["x"], src_key_padding_mask=is_padding(t["source"]))


def decoder_layer(t, norm):
    layer = new_layer(nn.TransformerDecoderLayer, norm)
    return call(layer, decoder_layer_weights(t), t["x"], t["memory"], **decoder_masks(t))


def encoder(t, norm):
    layer = new_layer(nn.TransformerEncoderLayer, norm)
    stack = new_stack(nn.TransformerEncoder, layer, 2, norm, enable_nested_tensor=False)
    weights = stack_weights(t, encoder_layer_weights, 2, norm)
    return call(stack, weights, t["x"], src_key_padding_mask=is_padding(t["source"]))


def decoder(t, norm):
    layer = new_layer(nn.TransformerDecoderLayer, norm)
    stack = new_stack(nn.TransformerDecoder, layer, 2, norm)
    weights = stack_weights(t, decoder_layer_weights, 2, norm)
    return call(stack, weights, t["x"], t["memory"], **decoder_masks(t))


def decoder_masks(t):
    return dict(
        tgt_mask=is_ahead(t["target"]),
        tgt_key_padding_mask=is_padding(t["target"]),
        memory_key_padding_mask=is_padding(t["source"]),
    )


def model(t, norm):
    """Which weights are tied shows in which there are: one tensor serves where ours is shared."""
    for_source = t["source_embedding.weight"]
    for_target = t.get("target_embedding.weight", for_source)
    for_output = t.get("output_projection.weight", for_target)

    x = positional_encoding({"x": embedding({"weight": for_source, "ids": t["source"]})})
    memory = encoder({**part(t, "encoder"), "x": x, "source": t["source"]}, norm)
    x = positional_encoding({"x": embedding({"weight": for_target, "ids": t["target"]})})
    ids = {"source": t["source"], "target": t["target"]}
    y = decoder({**part(t, "decoder"), "x": x, "memory": memory, **ids}, norm)
    logits = functional.linear(y, for_output)
    return {
        "logits": logits,
        **cross_entropy({"logits": logits, "labels": t["labels"]}, SMOOTHING),
    }


def language_model(t, norm, causal=True):
    weight, ids = t["embedding.weight"], t["ids"]
    x = embedding({"weight": weight, "ids": ids})
    x = learned_positions({"x": x, "table": t["positions.table"]})
    layer = new_layer(nn.TransformerEncoderLayer, norm)
    stack = new_stack(nn.TransformerEncoder, layer, 2, norm, enable_nested_tensor=False)
    weights = stack_weights(part(t, "stack"), encoder_layer_weights, 2, norm)
    masks = dict(mask=is_ahead(ids) if causal else None, src_key_padding_mask=is_padding(ids))
    head = t.get("output_projection.weight", weight)  # tied, or of a tagger
    logits = functional.linear(call(stack, weights, x, **masks), head)
    return {
        "logits": logits,
        **cross_entropy({"logits": logits, "labels": t["labels"]}, SMOOTHING),
    }


# Training.


def new_adam(weights):
    return torch.optim.Adam(weights, lr=LEARNING_RATE, betas=BETAS, eps=EPSILON)


def adam(t):
    weight = t["weight"]
    optimizer = new_adam([weight])
    for gradient in t["gradients"].detach():
        weight.grad = gradient
        optimizer.step()
    return weight


def training(t, norm):
    ids = ("source", "target", "labels")
    optimizer = new_adam([x for name, x in t.items() if name not in ids])
    losses = []
    for step in range(STEPS):
        batch = step % len(t["source"])
        loss = model(t | {name: t[name][batch] for name in ids}, norm)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses)}
