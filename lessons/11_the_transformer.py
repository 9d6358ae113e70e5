# %% [markdown]
# # 11 · The Transformer, assembled
#
# **You will** put the layers together, run the whole model forward line by line and backward by the same
# lines in reverse; and count its parameters and operations, compare them with the paper's Table 3 and find out
# something about it.
#
# | | |
# |---|---|
# | In the paper | section 3 and figure 1; the sizes in Table 3, the training cost in Table 2 |
# | In the package | `minitransformer/models/transformer.py`, `minitransformer/models/stacks.py` |
# | You need | the chain rule; what attention ([lesson 08](08_attention.ipynb)), a feed-forward network ([02](02_backpropagation.ipynb)) and LayerNorm ([07](07_layer_norm.ipynb)) compute (you need not know why) |
# | Time | an hour to read, an hour and a half for the exercises |

# %% tags=["hide-input"]
# Installs the package, where it is missing, from the folder around this notebook.
import importlib.util
import os
import subprocess
import sys

if importlib.util.find_spec("minitransformer") is None:
    if not os.path.exists("../minitransformer"):
        raise ModuleNotFoundError("minitransformer is missing: %pip install FOLDER_OF_THE_PROJECT")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", ".."], check=True)

# %% tags=["hide-input"]
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import TransformerConfig, select_device
from minitransformer.cases.case import LABELS, SOURCE, TARGET
from minitransformer.cases.models import ModelLoss, small_config
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    GREEN,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.course.stops import show, try_yours
from minitransformer.data.text.batches import Batch
from minitransformer.gradcheck import check_module
from minitransformer.layers.masks import causal_mask, padding_mask
from minitransformer.models.stacks import Decoder
from minitransformer.models.transformer import Transformer

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(11)


# %% [markdown]
# ## 1 · Any wiring fits
#
# A Transformer translates with two stacks of $N$ layers. The **encoder** turns the source sentence into the
# *memory*, a row of $D$ numbers for each source token (a word or a piece of one). The **decoder** has the
# target sentence as far as it is known. In each of its layers *self-attention* looks at the decoder's own
# rows, and *cross-attention* at the memory. At its end stand the *logits*: at each position a score for each
# token that may come next.
#
# Nearly everything inside has one shape, a row of $D$ numbers for each token. That makes a Transformer easy
# to assemble, and easy to assemble wrongly: no error message guards the wiring. Here is a small model, and
# the same one with a slip: the line of the self-attention was copied for the cross-attention, which now looks
# at the decoder's own rows $h$ in place of the memory.


# %%
def small_model():
    """Three layers a side, every number of parameters small, float64 to compare exactly."""
    config = TransformerConfig(
        source_vocabulary_size=50,
        target_vocabulary_size=50,
        d_model=16,
        num_heads=4,
        d_ff=40,
        num_encoder_layers=3,
        num_decoder_layers=3,
        max_length=32,
    )
    return Transformer(config, seed=11, device=device, dtype=np.float64)


def deaf_to_the_source(model):
    for layer in model.decoder.layers:
        attend = layer.cross_attention.forward
        # Right would be attend(h, memory, memory, memory_mask):
        layer.cross_attention.forward = lambda h, *_, attend=attend: attend(
            h, h, h, causal_mask(h[..., 0])
        )
    return model


PAD = 0
source = np.array([[7, 21, 35, 4, 9, 3], [12, 8, 3, PAD, PAD, PAD]])  # (B, S)
target = np.array([[1, 30, 22, 41], [1, 17, 5, PAD]])  # (B, T), 1 begins a sentence
labels = np.array([[30, 22, 41, 2], [17, 5, 2, PAD]])  # (B, T), 2 ends it
other = source[:, ::-1] % 50 + 1  # another source of the same shape

for name, model in (("right", small_model()), ("wrong", deaf_to_the_source(small_model()))):
    before = to_host(model.forward(source, target)[0])
    after = to_host(model.forward(other, target)[0])
    print(
        f"{name}: logits {before.shape}; another source moves them by {abs(after - before).max():.3f}"
    )
assert not abs(after - before).any()

# %% [markdown]
# The wrong model runs, has logits of the right shape and a gradient, and even learns: which sentences of the
# target language are likely. It can never learn to translate. Its loss falls, and only somebody who knows how
# far it should fall will notice.
#
# ## 2 · The plan
#
# The picture has the encoder on the left and the decoder on the right, from bottom to top. The id of a token
# becomes its row of the embedding $E$, times $\sqrt D$, plus PE, the code of its position (lessons
# [05](05_tokens_and_embeddings.ipynb) and [06](06_positions.ipynb)). $B$ is the number of sentences in a
# batch, $S$ and $T$ are the lengths of source and target, $V$ is the size of the vocabulary, $H$ the number of
# heads, $F$ the inner width of a feed-forward network.
#
# Gradients go every way that values go, backwards. Values are added at a square, where the way past a
# sublayer comes back; gradients are added at a circle, where that way began. There is a circle at the memory,
# too: every decoder layer reads what the last encoder layer returns.

# %% tags=["hide-input"]
ALONG = dict(arrowstyle="-|>", color=BLUE, lw=1.5, shrinkA=0, shrinkB=0)
AGAINST = ALONG | dict(color=VERMILION, ls=(0, (4, 2)))


def draw_box(axes, x, y, name):
    box = dict(boxstyle="round,pad=0.35", fc="white", ec="0.5")
    axes.text(x, y, name, ha="center", va="center", fontsize=9.5, bbox=box, zorder=3)


def draw_way(axes, points, gradient=True):
    """Values along these points, from the first to the last; gradients beside it, the way back."""
    points = np.array(points)
    for corners, arrow in ((points - 0.04, ALONG), (points[::-1] + 0.04, AGAINST))[: 1 + gradient]:
        axes.plot(*corners[:-1].T, color=arrow["color"], lw=1.5, ls=arrow.get("ls", "-"))
        axes.annotate("", corners[-1], corners[-2], arrowprops=arrow)


def draw_plus(axes, x, y, outline, colour):
    axes.plot(x, y, outline, ms=15, mfc="white", mec=colour, zorder=3)
    axes.plot(x, y, "P", ms=7, color=colour, zorder=4)


def draw_text(axes, x, y, text, side):
    align = "left" if side > 0 else "right"
    axes.text(x + 0.17 * side, y, text, ha=align, va="center", fontsize=9.5)


def draw_sublayer(axes, x, y, name, inputs, side):
    """From the fork at (x, y) up to the LayerNorm; the way past the sublayer is on this side."""
    for low, high in ((0.2, 0.5), (0.9, 1.15), (1.55, 1.75)):
        draw_way(axes, [(x, y + low), (x, y + high)])
    near, far = x + 0.2 * side, x + 1.4 * side
    draw_way(axes, [(near, y), (far, y), (far, y + 1.35), (near, y + 1.35)])
    draw_box(axes, x, y + 0.7, name)
    draw_box(axes, x, y + 1.95, "LayerNorm")
    draw_plus(axes, x, y, "o", VERMILION)
    draw_plus(axes, x, y + 1.35, "s", BLUE)
    draw_text(axes, x, y + 0.34, inputs, -side)


# %% tags=["hide-input"]
SUBLAYER, DECODER = 2.6, 5.3  # the height of a sublayer, and where the decoder stands
SELF, CROSS, FEED_FORWARD = "self-attention", "cross-attention", "feed-forward"
ENCODER_PARTS = ((SELF, "q, k, v"), (FEED_FORWARD, ""))
DECODER_PARTS = (("masked " + SELF, "q, k, v"), (CROSS, "q"), (FEED_FORWARD, ""))

figure, axes = plt.subplots(figsize=(9, 8))
for x, y, side, name, ids_shape, shape, sublayers in (
    (0, -1.9, -1, "source ids", "(B, S)", "(B, S, D)", ENCODER_PARTS),
    (DECODER, 0, 1, "target ids", "(B, T)", "(B, T, D)", DECODER_PARTS),
):
    draw_box(axes, x, y, name)
    draw_way(axes, [(x, y + 0.22), (x, y + 0.83)], gradient=False)  # ids have none
    draw_text(axes, x, y + 0.5, ids_shape, -side)
    draw_box(axes, x, y + 1.05, "√D · E[ids] + PE")
    bottom, top = y + 1.75, y + 1.75 + SUBLAYER * len(sublayers)
    for i, (sublayer, inputs) in enumerate(sublayers):
        up = bottom + i * SUBLAYER
        draw_way(axes, [(x, up - 0.45), (x, up - 0.2)])  # from the box below to the fork
        draw_text(axes, x, up - 0.32, shape, -side)
        draw_sublayer(axes, x, up, sublayer, inputs, side)
    inner, outer = x + 1.6 * side, x + 1.75 * side  # the bracket
    ends = bottom - 0.3, top - 0.4
    axes.plot([inner, outer, outer, inner], np.repeat(ends, 2), "-", color=BLACK, lw=1.2)
    axes.text(outer + 0.25 * side, np.mean(ends), "× N", ha="center", va="center", fontsize=11)
draw_way(axes, [(DECODER, top - 0.45), (DECODER, top - 0.2)])
draw_text(axes, DECODER, top - 0.32, "(B, T, D)", -1)
draw_box(axes, DECODER, top + 0.03, "logits = y Eᵀ")
draw_way(axes, [(DECODER, top + 0.25), (DECODER, top + 0.65)])
draw_text(axes, DECODER, top + 0.45, "(B, T, V)", -1)
draw_box(axes, DECODER, top + 0.87, "loss")

level = 1.75 + SUBLAYER + 0.7  # of the cross-attention; the memory forks there
draw_way(axes, [(0, level - 0.45), (0, level - 0.2)])
draw_plus(axes, 0, level, "o", VERMILION)
draw_way(axes, [(0.25, level), (DECODER - 0.75, level)])
middle = (0.25 + DECODER - 0.75) / 2
axes.text(middle, level + 0.13, "the sum of 2N gradients", ha="center", size=9.5)
axes.text(middle, level - 0.35, "memory (B, S, D): k, v of N layers", ha="center", size=9.5)
axes.plot([], [], "-", color=BLUE, lw=1.5, label="forward: values")
axes.plot([], [], "--", color=VERMILION, lw=1.5, label="backward: gradients")
axes.plot([], [], "s", ms=11, mfc="white", mec=BLUE, label="sum: values are added")
axes.plot([], [], "o", ms=11, mfc="white", mec=VERMILION, label="fork: gradients are added")
axes.legend(loc="upper left")
axes.axis("off")
plt.show()

# %% [markdown]
# A *residual connection* leads around each *sublayer*, attention or feed-forward, and a LayerNorm follows the
# sum: $\text{LayerNorm}(x + \text{Sublayer}(x))$, the paper's form. So $x$ is used twice, and forks at the
# circle. On the way back the gradient of the sum goes unchanged to both: to the sublayer, and past it. At the
# circle the two are added. (Self-attention uses its input three times, as q, k and v, so at its circle four
# gradients meet; section 4 has them all.) One matrix stands in the picture three times: $E$ of shape $(V, D)$
# embeds source and target and, transposed, makes the logits.
#
# The target is used twice, one place apart. The decoder sees `target`, which begins with a start symbol, and
# has to say `labels`, which ends with an end symbol. A causal mask keeps position $t$ from looking beyond
# $t$, so all positions are learned at once.
#
# ## 3 · Forward, line by line
#
# With the model's own layers, this is the whole forward. (Each layer also returns a cache for its backward,
# here `_`.)

# %%
model = small_model()
ids = device.asarray(target)
source_mask = padding_mask(device.asarray(source), PAD)
target_mask = causal_mask(ids) & padding_mask(ids, PAD)

x, _ = model.source_embedding.forward(source)  # a row of E for each id, times √D
x, _ = model.positional_encoding.forward(x)  # x + PE
embedded_source = x
for layer in model.encoder.layers:
    x, _ = layer.forward(x, source_mask)
memory = x

x, _ = model.target_embedding.forward(target)
x, _ = model.positional_encoding.forward(x)
embedded_target = x
for layer in model.decoder.layers:
    x, _ = layer.forward(x, memory, target_mask, source_mask)
y = x
logits, _ = model.output_projection.forward(y)  # y Eᵀ

assert np.array_equal(to_host(logits), to_host(model.forward(source, target)[0]))

B, S, T, D, V = *source.shape, target.shape[1], 16, 50
shape_table(
    {"B": B, "S": S, "T": T, "D": D, "V": V},
    source=(source, "B S", "ids of the source, filled up with padding"),
    source_mask=(source_mask, "B 1 1 S", "False at padding; broadcasts to scores (B, H, T, S)"),
    embedded_source=(embedded_source, "B S D", "√D · E[ids] + PE, the encoder's input"),
    memory=(memory, "B S D", "the encoder's output"),
    target=(target, "B T", "the start symbol and the target"),
    target_mask=(target_mask, "B 1 T T", "causal and not padding"),
    embedded_target=(embedded_target, "B T D", "the decoder's input"),
    y=(y, "B T D", "the decoder's output"),
    logits=(logits, "B T V", "a score for each word, at each position"),
    labels=(labels, "B T", "the target and the end symbol: what is to be said"),
)

# %% [markdown]
# That is the model: a loop over layers, twice. The decoder's layer in the paper's order, *post-norm*, with a name
# for each line of the picture (the encoder's is the same without its middle):
#
# $$
# \begin{aligned}
# x_1 &= \text{LayerNorm}(x + \text{Attention}(x, x, x)) \\
# x_2 &= \text{LayerNorm}(x_1 + \text{Attention}(x_1, m, m)) \\
# y &= \text{LayerNorm}(x_2 + \text{FFN}(x_2))
# \end{aligned}
# $$
#
# with $m$ for the memory. In *pre-norm* the LayerNorm stands before the sublayer, $x_1 = x + \text{Attention}(n, n, n)$
# with $n = \text{LayerNorm}(x)$, and the memory goes in as it is.
#
# ## 4 · Backward, the same lines in reverse
#
# ### Why in reverse
#
# We write $dx$ for $\partial L / \partial x$. Let the model be a chain, $z_1 = f_1(z_0)$,
# $z_2 = f_2(z_1)$, …, $L = f_n(z_{n-1})$, and $J_k$ the matrix of the derivatives of $z_k$ with respect to
# $z_{k-1}$.
# The chain rule says that the entry $j$ of $z_{k-1}$ moves $L$ by way of all entries $i$ of $z_k$:
#
# $$
# \frac{\partial L}{\partial z_{k-1, j}}
# = \sum_i \frac{\partial L}{\partial z_{k, i}} \, \frac{\partial z_{k, i}}{\partial z_{k-1, j}}
# \qquad\text{or}\qquad
# dz_{k-1} = J_k^\top \, dz_k .
# $$
#
# So $dz_{k-1}$ needs $dz_k$, and the last line of the forward is the first of the backward. Each backward
# function of this package *is* the product with its $J_k^\top$, and never writes $J_k$ down. Together they
# compute
#
# $$
# dz_0 = J_1^\top \left( J_2^\top \left( \cdots \left( J_n^\top \cdot 1 \right) \right) \right) .
# $$
#
# The brackets matter. From the right, each step is a matrix times a *vector*, because the loss is one number.
# From the left, matrices would be multiplied by matrices, more work by a factor of the size of $z$.
#
# ### Where the chain forks
#
# A Transformer is a chain with forks: values that are used more than once. If $x$ is used in $k$ places, give
# each use a name, $L = M(x_1, \dots, x_k)$ with all $x_i = x$. By the chain rule, since
# $\partial x_i / \partial x = 1$,
#
# $$
# dx = \sum_{i=1}^{k} \frac{\partial M}{\partial x_i} \frac{\partial x_i}{\partial x} = \sum_{i=1}^{k} dx_i .
# $$
#
# **Used $k$ times, summed $k$ times.** These are all forks:
#
# | what | is used | so its gradient |
# |---|---|---|
# | $x$ before a sublayer | by the sublayer (in pre-norm by its LayerNorm), and by the sum after it | has two terms |
# | $x$ in self-attention, in pre-norm $n$ | as query, key and value | $dx = dq + dk + dv$, or $dn$ |
# | $x_1$ in cross-attention | as query | $dq$ alone |
# | the memory | as key and value in each of $N$ decoder layers | is a sum of $2N$ terms |
# | $E$ | for source, target and logits | is a sum of three terms ([lesson 05](05_tokens_and_embeddings.ipynb)) |
# | each weight | at every token of the batch | is a sum over tokens, within its own backward |
#
# In pre-norm $dn$ goes back through the LayerNorm before it meets, at $x$, the gradient that went past. Ids have no
# gradient, and the backward ends at $E$.
#
# ## 5 · Now write them
#
# In `answers/own.py` layers are functions: parameters come in as tuples, and their gradients go out as tuples.
#
# | function | takes first | returns |
# |---|---|---|
# | `encoder_layer` | `x, attention, attention_norm, network, network_norm, num_heads` | $y$ (B, S, D), `cache` |
# | `encoder_layer_backward` | `dy, cache` | $dx$, and a tuple for each of the four |
# | `decoder_layer` | `x, memory`, six tuples, `num_heads` | $y$ (B, T, D), `cache` |
# | `decoder_layer_backward` | `dy, cache` | $dx$, $dm$, and a tuple for each of the six |
#
# An attention is (`w_query`, `w_key`, `w_value`, `w_output`), a norm (`gamma`, `beta`), a network (`w_1`, `b_1`, `w_2`,
# `b_2`). The stubs have the options: masks, `pre_norm`, dropout. Find the forks before you write a backward.


# %%
def groups(layer, *sublayers):
    """The parameters of each sublayer and of the norm around it, a tuple each."""
    modules = [getattr(layer, name) for s in sublayers for name in (s, f"{s}_residual")]
    return [tuple(to_host(p.data) for p in module.parameters()) for module in modules]


of_encoder = groups(model.encoder.layers[0], "self_attention", "feed_forward")
of_decoder = groups(model.decoder.layers[0], "self_attention", "cross_attention", "feed_forward")
x, m = to_host(embedded_target), to_host(memory)
dy, step = rng.standard_normal((2, B, T, D))


def facts(encoder_layer, encoder_layer_backward):
    y, cache = encoder_layer(x, *of_encoder, 4)
    dx, *_ = encoder_layer_backward(dy, cache)
    yield (
        "post-norm: rows of mean 0 and spread 1",
        np.allclose([y.mean(axis=-1), y.std(axis=-1) - 1], 0, atol=1e-3),
    )
    seen = np.arange(T) < 3
    theirs, _ = model.encoder.layers[0].forward(device.asarray(x), device.asarray(seen))
    same = np.allclose(encoder_layer(x, *of_encoder, 4, seen)[0], to_host(theirs))
    yield "the model's first layer, with a mask, says the same", same
    ahead, behind = (encoder_layer(x + s * step, *of_encoder, 4)[0] for s in (1e-5, -1e-5))
    yield (
        "a small step moves L as dx says",
        np.isclose(((ahead - behind) * dy).sum() / 2e-5, (dx * step).sum(), rtol=1e-4),
    )
    silent = [tuple(0 * array for array in of) for of in of_encoder]
    yield (
        "pre-norm, all weights 0: y is x",
        np.array_equal(encoder_layer(x, *silent, 4, pre_norm=True)[0], x),
    )


try_yours("encoder_layer", facts)


# %%
def facts(decoder_layer, decoder_layer_backward):
    mask = np.tril(np.ones((T, T), dtype=bool))
    y, cache = decoder_layer(x, m, *of_decoder, 4, mask)
    _, dm, *_ = decoder_layer_backward(dy, cache)
    later = decoder_layer(x + step * (np.arange(T) == T - 1)[:, None], m, *of_decoder, 4, mask)[0]
    yield "a last word moves no other", np.allclose(later[:, :-1], y[:, :-1])
    seen = np.arange(S) < 3
    theirs, _ = model.decoder.layers[0].forward(*map(device.asarray, (x, m, mask, seen)))
    same = np.allclose(decoder_layer(x, m, *of_decoder, 4, mask, seen)[0], to_host(theirs))
    yield "the model's first layer, with masks, says the same", same
    move = m[:, ::-1] * 1e-5
    ahead, behind = (decoder_layer(x, m + s * move, *of_decoder, 4, mask)[0] for s in (1, -1))
    yield (
        "a small step of the memory moves L as dm says",
        np.isclose(((ahead - behind) * dy).sum() / 2, (dm * move).sum(), rtol=1e-4),
    )


try_yours("decoder_layer", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right. There `enter` and `leave` place the LayerNorm
# before the sublayer or after the sum, and apply dropout:

# %%
show("encoder_layer")

# %%
show("decoder_layer")

# %% [markdown]
# The backward has the forward's lines from the last to the first, and a sum wherever the forward uses something
# twice. The explorer draws
# [how much flows along each way](../README.md#look-inside "#example=4&view=gradients&step=3"). PyTorch agrees on
# an encoder layer, to six digits and more:

# %%
if find_spec("torch"):
    import torch

    theirs = torch.nn.TransformerEncoderLayer(D, 4, 40, dropout=0, batch_first=True).double()
    (w_q, w_k, w_v, w_o), _, (w_1, b_1, w_2, b_2), _ = of_encoder
    theirs.self_attn.in_proj_weight.data = torch.tensor(np.concatenate([w_q, w_k, w_v], axis=1).T)
    theirs.self_attn.out_proj.weight.data = torch.tensor(w_o.T)
    theirs.linear1.weight.data, theirs.linear1.bias.data = torch.tensor(w_1.T), torch.tensor(b_1)
    theirs.linear2.weight.data, theirs.linear2.bias.data = torch.tensor(w_2.T), torch.tensor(b_2)
    tensor = torch.tensor(x, requires_grad=True)
    their_y = theirs(tensor)
    their_y.backward(torch.tensor(dy))
    layer = model.encoder.layers[0]
    y, cache = layer.forward(device.asarray(x))
    dx = layer.backward(device.asarray(dy), cache)
    for name, mine, its in (("y", y, their_y.detach()), ("dx", dx, tensor.grad)):
        print(f"{name:2} differs by at most {abs(to_host(mine) - its.numpy()).max():.0e}")
        assert np.allclose(to_host(mine), its, atol=1e-6)

# %% [markdown]
# The decoder is a loop. Its backward is the loop in reverse, and adds up what the layers send to the memory.
# (`self.norm` is a last LayerNorm, which only pre-norm needs.)

# %%
source_of(Decoder.forward, Decoder.backward)

# %% [markdown]
# Section 3 has the model's forward line by line; in the package `features` goes as far as `y`. These are the
# backward of the whole, and `encode` with its own (`decode` is like it):

# %%
source_of(
    Transformer.backward,
    Transformer.features_backward,
    Transformer.encode,
    Transformer.encode_backward,
)

# %% [markdown]
# ## 6 · Proof
#
# We check every parameter of a small model, with dropout and label smoothing, against central differences:
# move it a little up and down, and see how the loss moves ([lesson 03](03_gradient_checking.ipynb)).
# `ModelLoss` is the model with its loss.
#
# This proves that the backward belongs to the forward, and not that the forward is wired rightly: the wrong
# model of section 1, with a backward to match, would pass. For the wiring there are other tests: section 1's,
# who influences whom; section 3's lines beside the plan; and in the package a comparison with PyTorch's own
# layers (`tests/layers/test_every_layer.py`).
#
# The embedding, where three gradients meet, comes first:


# %%
def wrong_ones(report):
    wrong = [tensor for tensor in report.tensors if not tensor.right]
    return f"{len(wrong)} of {len(report.tensors)} gradients wrong"


config = small_config(norm="post", tying="three-way")  # one E for source, target and logits
report = check_module(
    ModelLoss(Transformer(config)), SOURCE, TARGET, LABELS, directions=3, tolerance=1e-6
)
assert report.right
print(report.tensors[0])
print("…")
print(wrong_ones(report))


# %% [markdown]
# Now a likely mistake: in the loop over the decoder's layers, `dmemory` is replaced where it should be added
# to. Of the $N$ layers only the first, which the loop meets last, is heard.


# %%
class ForgetfulDecoder(Decoder):
    def backward(self, dy, cache):
        caches, _ = cache
        dx = dy
        for layer, layer_cache in zip(reversed(self.layers), reversed(caches), strict=True):
            dx, dmemory = layer.backward(dx, layer_cache)  # replaces what it should add to
        return dx, dmemory


flawed = Transformer(config)
flawed.decoder.__class__ = ForgetfulDecoder  # the same weights and forward, another backward
report = check_module(ModelLoss(flawed), SOURCE, TARGET, LABELS, directions=3, tolerance=1e-6)
assert not report.right
print(wrong_ones(report))
for tensor in report.tensors:
    assert tensor.right == ("decoder" in tensor.name)
print("right: all of the decoder's; wrong: all of the encoder's, and the shared embedding")

# %% [markdown]
# How wrong is the encoder's gradient, in the model with three layers from section 1?


# %%
def encoder_gradient(model):
    model.zero_grad()
    _, cache = model.loss(Batch(source, target, labels))
    model.loss_backward(1.0, cache)
    return np.concatenate([to_host(p.grad).ravel() for p in model.encoder.parameters()])


flawed = small_model()
flawed.decoder.__class__ = ForgetfulDecoder
right, wrong = encoder_gradient(small_model()), encoder_gradient(flawed)
cosine = right @ wrong / np.linalg.norm(right) / np.linalg.norm(wrong)
print(
    f"length {np.linalg.norm(wrong) / np.linalg.norm(right):.2f} of the right one, cosine of the angle {cosine:.2f}"
)
assert cosine > 0

# %% [markdown]
# Here it still points downhill: the loss may fall, and hide the mistake. The pattern of the check tells where
# to look: on the way back from the loss, all before the mistake is right, all behind it is wrong. **Look for
# the wrong gradient that is nearest to the loss** (a shared weight counts at its farthest use).
#
# ## 7 · Counting parameters
#
# With $D$ the width, $F$ the inner width of the feed-forward network and $H$ heads of widths $d_k$ and
# $d_v$:
#
# | part | parameters | base: $D = 512$, $F = 2048$, $H d_k = H d_v = D$ |
# |---|---|---|
# | attention: $W^Q, W^K$ of $(D, H d_k)$, $W^V, W^O$ of $H d_v D$ | $2 D H (d_k + d_v)$ | $4 D^2 = 1{,}048{,}576$ |
# | feed-forward: $W_1, b_1, W_2, b_2$ | $2 D F + F + D$ | $2{,}099{,}712$ |
# | LayerNorm: γ, β | $2 D$ | $1{,}024$ |
# | encoder layer | 1 attention, 1 feed-forward, 2 LayerNorms | $3{,}150{,}336$ |
# | decoder layer | 2 attentions, 1 feed-forward, 3 LayerNorms | $4{,}199{,}936$ |
# | embedding, shared | $V D$ | $18{,}944{,}000$ for $V = 37{,}000$ |
#
# Attention, many believe, makes up most of a Transformer. With $F = 4 D$ a feed-forward network has $8 D^2$
# weights and attention $4 D^2$: two thirds of an encoder layer are feed-forward, and half of a decoder layer.
# And the number of *heads* changes nothing: more heads are narrower ones.


# %%
def parameter_counts(D, F, N, V, heads_width=None):
    """Parameters by part; heads_width is (H · d_k, H · d_v), D each unless told."""
    keys, values = heads_width or (D, D)
    attention, feed_forward, norm = 2 * D * (keys + values), 2 * D * F + F + D, 2 * D
    return {
        "embedding": V * D,
        "self-attention": 2 * N * attention,  # N in the encoder, N in the decoder
        "cross-attention": N * attention,
        "feed-forward": 2 * N * feed_forward,
        "LayerNorm": 5 * N * norm,
    }


for preset, vocabulary in (("tiny", 500), ("base", 37_000)):
    config = TransformerConfig.preset(preset, vocabulary, norm="post")
    c = (config.d_model, config.d_ff, config.num_encoder_layers, vocabulary)
    counted = sum(parameter_counts(*c).values())
    built = Transformer(config).num_parameters()
    print(f"{preset}: {counted:,} by the formulas, {built:,} in the model")
    assert counted == built

# %% [markdown]
# ### What Table 3 counts
#
# The paper prints 65 million for its model *base* and 213 for *big*; source and target share about 37,000
# tokens (section 5.1). Our counts with 37,000:

# %%
base = sum(parameter_counts(512, 2048, 6, 37_000).values())
big = sum(parameter_counts(1024, 4096, 6, 37_000).values())
biases = 3 * 6 * 4 * 512  # if each of the 18 attentions of base had four biases
print(f"base {base / 1e6:.2f} million, printed 65")
print(f"big  {big / 1e6:.2f} million, printed 213")
print(f"biases in the attention of base would add {biases / 1e6:.2f} million")
print(f"three embeddings in place of a shared one, {2 * 37_000 * 512 / 1e6:.0f} million")

# %% [markdown]
# Two million too few for base, one too many for big. Our attention has no biases, because the formulas of
# section 3.2.2 have none; four for each attention would hardly be seen. Three embeddings in place of one
# would be far off. Another vocabulary could explain it. And each row of Table 3 that prints a number of
# parameters is a measurement of $V$: subtract all layers, and what is left is $V D$, to within half a million,
# because the printed number is rounded. The rows (B) vary $d_k$, the rows (C) $N$, $D$ and $F$. A bar holds the
# vocabularies with which the number of parameters would be rounded to the printed one:

# %%
ROWS = {  # Table 3: the printed number of parameters in millions, D, F, N, (H d_k, H d_v)
    "base": (65, 512, 2048, 6),
    "(B) $d_k$ = 16": (58, 512, 2048, 6, (8 * 16, 512)),
    "(B) $d_k$ = 32": (60, 512, 2048, 6, (8 * 32, 512)),
    "(C) N = 2": (36, 512, 2048, 2),
    "(C) N = 4": (50, 512, 2048, 4),
    "(C) N = 8": (80, 512, 2048, 8),
    "(C) D = 256": (28, 256, 2048, 6),
    "(C) D = 1024": (168, 1024, 2048, 6),
    "(C) F = 1024": (53, 512, 1024, 6),
    "(C) F = 4096": (90, 512, 4096, 6),
    "big": (213, 1024, 4096, 6),
}
implied = {}
for name, (printed, D, F, N, *width) in ROWS.items():
    layers = sum(parameter_counts(D, F, N, 0, *width).values())
    implied[name] = [(printed * 1e6 + half - layers) / D for half in (-5e5, 5e5)]
low = max(least for name, (least, _) in implied.items() if name != "big")
high = min(most for name, (_, most) in implied.items() if name != "big")
print(f"all rows but big agree on a vocabulary between {low:,.0f} and {high:,.0f}")
assert low < high
assert implied["big"][1] < low

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4.2))
axes.axvspan(low / 1e3, high / 1e3, color=GREEN, alpha=0.35, lw=0, label="fits all rows but big")
axes.axvline(37, color=BLACK, ls=":", label="37,000, section 5.1")
for row, (name, (least, most)) in enumerate(implied.items()):
    colour = VERMILION if name == "big" else BLUE
    axes.plot([least / 1e3, most / 1e3], [row, row], "|-", color=colour, ms=9, lw=2)
axes.set_yticks(range(len(ROWS)), ROWS)
axes.invert_yaxis()
axes.set(xlabel="vocabulary that the printed number implies (thousand tokens)", xlim=(34.5, 47.5))
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# Ten rows, in which $D$, $F$, $N$ and the width of the keys change, agree on one vocabulary, somewhere in the
# printed range. So the paper counts layers as we do: a wrong term in $D^2$, $D F$ or $N$ would pull the bars
# apart. (Biases are too small for that.) Big stands apart, at about 36,000: it cannot have been counted with
# that vocabulary. The paper explains neither.
#
# ## 8 · Counting operations
#
# A product of $(m, k)$ by $(k, n)$ has $m n$ results, each a sum of $k$ products: $2 m k n$ operations, a
# multiplication and an addition each. For a sentence pair with $S$ and $T$ tokens, forward:
#
# | part | encoder layer | decoder layer |
# |---|---|---|
# | projections of self-attention | $2 S \cdot 4 D^2$ | $2 T \cdot 4 D^2$ |
# | $Q K^\top$ and $A V$ of self-attention | $2 \cdot 2 S^2 D$ | $2 \cdot 2 T^2 D$ |
# | projections of cross-attention | | $2 T \cdot 2 D^2 + 2 S \cdot 2 D^2$ |
# | $Q K^\top$ and $A V$ of cross-attention | | $2 \cdot 2 T S D$ |
# | feed-forward | $2 S \cdot 2 D F$ | $2 T \cdot 2 D F$ |
#
# and $2 T D V$ once for the logits. The number of heads does not matter: $H$ products of width $D / H$. The
# causal mask saves nothing: what it hides is computed first.
#
# **Backward is twice the forward.** From $y = x W$ follow two products, $dx = dy \, W^\top$ and
# $dW = x^\top dy$, each of the size of the forward's; from $A V$, $dA = dy \, V^\top$ and $dV = A^\top dy$,
# and likewise from $Q K^\top$. So a training step costs three forwards.
#
# Such formulas are easily wrong by a factor of two. So we count, with an array that notes each matrix
# product.


# %%
class Counted(np.ndarray):
    """A NumPy array that adds up the operations of all matrix products with it."""

    operations = 0

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        inputs, out = ([np.asarray(x) for x in arrays] for arrays in (inputs, out))
        if out:
            kwargs["out"] = tuple(out)
        result = getattr(ufunc, method)(*inputs, **kwargs)
        if ufunc is np.matmul:
            Counted.operations += 2 * result.size * inputs[0].shape[-1]
        return result.view(Counted) if isinstance(result, np.ndarray) else result


def operations_forward(c, S, T):
    """Operations of matrix products by part, for one sentence pair, forward."""
    N, D, F, V = c.num_encoder_layers, c.d_model, c.d_ff, c.target_vocabulary_size
    return {
        "logits": 2 * T * D * V,
        "projections": N * (2 * (S + T) * 4 * D**2 + 2 * (S + T) * 2 * D**2),
        "attention products": N * 4 * D * (S**2 + T**2 + S * T),
        "feed-forward": N * 2 * (S + T) * 2 * D * F,
    }


config = TransformerConfig.preset("toy", 300)
counting = Transformer(config)  # on the CPU: it is NumPy's products that we count
for parameter in counting.parameters():
    parameter.hold(parameter.data.view(Counted))
pairs, S, T = 4, 13, 9
some = rng.integers(3, 300, (pairs, S)), *rng.integers(3, 300, (2, pairs, T))

_, cache = counting.loss(Batch(*some))
forward, Counted.operations = Counted.operations, 0
counting.loss_backward(1.0, cache)
backward = Counted.operations
print(
    f"forward  {forward:,} counted, {pairs * sum(operations_forward(config, S, T).values()):,} by the formulas"
)
print(f"backward {backward:,} counted, {backward / forward:.6f} times the forward")
assert forward == pairs * sum(operations_forward(config, S, T).values())
assert backward == 2 * forward

# %% [markdown]
# They agree to the last operation. So we may use the formulas on what we cannot run here, the paper's
# trainings. Table 2 gives their cost as $3.3 \cdot 10^{18}$ and $2.3 \cdot 10^{19}$ operations. That is no
# count, but (section 6.1) the training time, 12 hours for base and 84 for big, times 8 GPUs (NVIDIA P100),
# times the $9.5 \cdot 10^{12}$ operations a second that, by their assumption, each sustains. To count we need
# steps and tokens: 100,000 and 300,000 steps (section 5.2) with about 25,000 source and 25,000 target tokens
# each (section 5.1), in sentences of, say, 25.

# %%
LENGTH = 25
for name, steps, hours, table_2 in (("base", 100_000, 12, 3.3e18), ("big", 300_000, 84, 2.3e19)):
    config = TransformerConfig.preset(name, 37_000)
    step = 3 * sum(operations_forward(config, LENGTH, LENGTH).values()) * 25_000 / LENGTH
    upper = hours * 3600 * 8 * 9.5e12
    print(
        f"{name:<5} {upper:.1e} by time and devices (Table 2: {table_2:.1e}), "
        f"{steps * step:.1e} counted, {steps * step / upper:.0%}"
    )

# %% [markdown]
# If a P100 does sustain that rate, less than half of the time went into matrix products. The rest the count
# leaves out: softmax, LayerNorm, dropout, Adam, memory traffic, communication, padding. The big model, with
# larger matrices, comes nearer. [Lesson 17](17_making_it_fast.ipynb) is about this gap.
#
# ## 9 · Two operations for each weight and token
#
# A token meets each weight of a matrix once, in one multiplication and one addition. So a forward costs **two
# operations for each weight and token**, and a training step six. (The encoder's weights meet the source tokens, and so
# do $W^K$ and $W^V$ of the cross-attentions; the decoder's others meet the target tokens. $E$ meets the target tokens,
# in the logits; as an embedding it is only looked up.) The products of attention are the exception. They have no
# weights, and grow with the square of the length:

# %%
config = TransformerConfig.preset("base", 37_000)
for length in (25, 250, 2500):
    for_each = sum(operations_forward(config, length, length).values()) / (length * base)
    print(f"sentences of {length:4}: {for_each:.2f} operations for each weight and token")
    assert length > 25 or abs(for_each - 2) < 0.1

# %% [markdown]
# ## 10 · Exercises
#
# Fill in `answers/ex11.py`, your copy of [lessons/exercises/ex11.py](exercises/ex11.py), and run
# `minitransformer check ex11`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex11.py](solutions/ex11.py).
#
# 1. **`crossover_length`** (10 min). "Attention is quadratic" frightens many. From which length on does
#    it cost more than the linear maps of an encoder layer? Guess for base before you compute it.
# 2. **`parallel_layer`** (45 min). Some models run attention and feed-forward side by side on one
#    normalised input. Write its backward: find all the forks.
# 3. **`lean_stack`** (45 min). The caches of a deep stack fill the memory. Keep only what goes *into*
#    each layer, and make the caches anew when the backward needs them. What does it cost?

# %%
print(check_exercise("ex11", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | forward | $x = \sqrt D \, E[\text{ids}] + PE$; $N$ encoder layers give the memory; $N$ decoder layers read it; logits $= y E^\top$ |
# | backward | the forward's lines from last to first: $dz_{k-1} = J_k^\top dz_k$ |
# | forks | used $k$ times, summed $k$ times: $x$ around a sublayer; query, key, value; the memory, $2N$ times; $E$, three times |
# | shapes | ids $(B, T)$; everything between is $(B, T, D)$; masks $(B, 1, 1, S)$ and $(B, 1, T, T)$; logits $(B, T, V)$ |
# | parameters | attention $4 D^2$, feed-forward $2 D F + F + D$, LayerNorm $2 D$, embedding $V D$ |
# | operations | $2 m k n$ a product; backward is twice the forward; two forward for each weight and token |
# | trap | any wiring has the right shapes; a check of the gradients finds a wrong backward, and who influences whom a wrong forward |
#
# **Your own Transformer.** `encoder_layer` and `decoder_layer`, with their backwards: `minitransformer check own`.
#
# **Next:** the model is complete, and has learned nothing yet. [Lesson 12](12_learning.ipynb) is about how it
# learns.
