# %% [markdown]
# # 09 · Many heads
#
# **You will** see what a single attention cannot do, and why several cost no more; take apart the one matrix
# product that computes them all; derive the backward; meet attention in its three uses; and train a small
# network and watch its heads share the work.
#
# | | |
# |---|---|
# | In the paper | section 3.2.2, Multi-Head Attention, and 3.2.3, its three uses; table 3, row A |
# | In the package | `minitransformer/layers/attention.py` |
# | You need | attention, $\text{softmax}(Q K^\top / \sqrt{d_k}) V$, and its backward ([lesson 08](08_attention.ipynb)) |
# | Time | an hour to read, three for the exercises |

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
from minitransformer.core.backend import to_host
from minitransformer.core.module import FlatParameters, Module, Parameter
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLACK, BLUE, GREEN, VERMILION, shape_table, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.data.text.batches import Batch
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.layers.attention import (
    MultiHeadAttention,
    multi_head_attention,
    multi_head_attention_backward,
    multi_head_attention_weights,
    split_heads,
)
from minitransformer.layers.embedding import Embedding, embedding_weight
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.masks import causal_mask
from minitransformer.layers.positional_encoding import PositionalEncoding
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.models.transformer import Transformer
from minitransformer.optim.adam import Adam

use_style()
device = select_device("cpu")  # "cuda" trains the networks on a GPU
rng = np.random.default_rng(9)

# %% [markdown]
# ## 1 · What one head cannot do
#
# An attention hands each query *one* average of the values. Suppose a position needs two things: the word
# before it and the word after it. One head can look at both, with weight ½ each, and gets half the sum of
# their values. A sum does not tell which was which.

# %%
before, after, here = rng.standard_normal((3, 4))
both = np.array([[0.5, 0.0, 0.5]])  # the weights of one query on three positions
print("a b c:", (both @ np.stack([before, here, after])).round(3))
print("c b a:", (both @ np.stack([after, here, before])).round(3))

# %% [markdown]
# "With a single attention head, averaging inhibits this", says the paper. Two heads with weights of their own
# look at one neighbour each, and write what they find into different features:
#
# $$
# \text{head}_h = \text{Attention}(X W_h^Q, \; M W_h^K, \; M W_h^V)
# \qquad
# Y = \text{Concat}(\text{head}_1, \dots, \text{head}_H) \, W^O .
# $$
#
# $X$ (T, D) has the positions that ask, $M$ (S, D) those that are asked. Each head projects both to a
# narrower space of its own, of $d_k = D / H$ features, K in the shapes, by three matrices (D, K).
#
# ## 2 · All heads in one matrix product
#
# Put the $H$ matrices $W_h^Q$ side by side. They make one matrix $W^Q$ (D, D), and
#
# $$
# X \left[ \, W_1^Q \; W_2^Q \; \cdots \; W_H^Q \, \right]
# = \left[ \, X W_1^Q \; X W_2^Q \; \cdots \; X W_H^Q \, \right] ,
# $$
#
# since a column of a product depends on that column of the right factor alone. So one product computes the
# queries of all heads: those of the first are in the first $d_k$ columns, those of the second in the next
# $d_k$, and so on. To take them apart, nothing has to be computed: `split_heads` reads the $D$ columns as $H$
# times $d_k$, and moves the axis of heads to the front, where attention treats it like a batch.
#
# The picture shows all of it for two heads. A box is a matrix, as high as it has rows and as wide as it has
# columns; white belongs to head 1, grey to head 2:

# %% tags=["hide-input"]
HIGH = {"T": 0.64, "S": 0.8}  # inches for T and S; a head is 0.5 wide, D = 2 heads
FACES, STYLES = ("white", "0.8"), ((BLUE, "-"), (VERMILION, (0, (4, 2))))  # of the two heads


def draw_box(axes, x, y, rows, faces, name, width=0.5):
    """A matrix with these rows, T or S, of one block of columns for each face, around (x, y)."""
    left, high = x - width * len(faces) / 2, HIGH[rows]
    for i, face in enumerate(faces):
        corner = left + i * width, y - high / 2
        axes.add_patch(plt.Rectangle(corner, width, high, fc=face, ec="0.35", lw=1))
    up = y if len(faces) == 1 else y + high / 2 + 0.15  # above the heads side by side
    axes.text(x, up, name, ha="center", va="center", fontsize=11)


def draw_arrow(axes, start, end, colour=BLACK, style="-", label=""):
    props = dict(arrowstyle="-|>", color=colour, ls=style, lw=1.2, shrinkA=0, shrinkB=0)
    axes.annotate("", end, start, arrowprops=props)
    middle = np.add(start, end) / 2 + (0.25 * np.sign(start[1] - end[1]), 0.1)
    axes.text(*middle, label, ha="center")


figure, axes = plt.subplots(figsize=(10, 5.2))
draw_box(axes, 0.5, 4.1, "T", ["white"], "$X$", width=1)
draw_box(axes, 0.5, 1.8, "S", ["white"], "$M$", width=1)
for i, (name, y, source, rows) in enumerate(
    (("Q", 4.1, 4.1, "T"), ("K", 2.5, 1.8, "S"), ("V", 1.1, 1.8, "S"))
):
    draw_box(axes, 2.4, y, rows, FACES, f"${name}$")
    draw_arrow(axes, (1.0, source), (1.9, y), label=f"$W^{name}$")
    for h, (colour, style) in enumerate(STYLES):
        across, up = 4.7, 4.9 - 2.7 * h - 0.86 * i
        draw_box(axes, across, up, rows, [FACES[h]], f"${name.lower()}_{h + 1}$")
        axes.plot(2.15 + 0.5 * h, y, "o", color=colour, ms=4)
        draw_arrow(axes, (2.15 + 0.5 * h, y), (across - 0.25, up), colour, style)
for h, (face, (colour, style)) in enumerate(zip(FACES, STYLES, strict=True)):
    up = 4.9 - 2.7 * h
    draw_box(axes, 6.1, up - 0.43, "T", [face], f"$A_{h + 1}$", width=0.8)
    draw_box(axes, 7.4, up - 0.86, "T", [face], f"$y_{h + 1}$")
    for start, end in (
        ((4.95, up), (5.7, up - 0.33)),
        ((4.95, up - 0.86), (5.7, up - 0.53)),
        ((6.5, up - 0.53), (7.15, up - 0.76)),
        ((4.95, up - 1.72), (7.15, up - 1.0)),
        ((7.65, up - 0.86), (8.75 + 0.5 * h, 3.07 - 0.64 * h)),  # to its columns
    ):
        draw_arrow(axes, start, end, colour, style)
draw_box(axes, 9.0, 2.75, "T", FACES, "$C$")
draw_box(axes, 10.9, 2.75, "T", ["white"], "$Y$", width=1)
draw_arrow(axes, (9.5, 2.75), (10.4, 2.75), label="$W^O$")
for x, shape in (
    (0.5, "(B, T, D)\n(B, S, D)"),
    (2.4, "(B, T, D)\n(B, S, D)"),
    (4.7, "(B, H, T, K)\n(B, H, S, K)"),
    (6.1, "(B, H, T, S)"),
    (7.4, "(B, H, T, K)"),
    (9.0, "(B, T, D)"),
    (10.9, "(B, T, D)"),
):
    axes.text(x, -0.25, shape, ha="center", va="top", fontsize=9.5)
for x, step in (
    (1.45, "project"),
    (3.55, "split_heads"),
    (6.1, "attention"),
    (8.2, "merge_heads"),
    (9.95, "project"),
):
    axes.text(x, 5.6, step, ha="center", fontsize=10, style="italic")
for (colour, style), name in zip(STYLES, ("head 1, white", "head 2, grey"), strict=True):
    axes.plot([], [], color=colour, ls=style, label=name)
axes.legend(loc="lower right", bbox_to_anchor=(1, 0.1))
axes.set(xlim=(-0.1, 11.5), ylim=(-0.8, 5.9), aspect="equal")
axes.axis("off")
plt.show()

# %% [markdown]
# `split_heads` hands the left half of the columns of $Q$, $K$ and $V$ to head 1, the right half to head 2.
# Each head makes weights $A_h$ from its queries and keys, and with them an average $y_h$ of its values, the
# formula's $\text{head}_h$. No arrow leads from one head to the other. `merge_heads` puts the averages side
# by side again, as $C$, and $W^O$ makes the output of it. Now the same with numbers, and three heads:

# %%
B, T, S, H, K = 2, 4, 5, 3, 8
D = H * K
x = device.asarray(rng.standard_normal((B, T, D)))
memory = device.asarray(rng.standard_normal((B, S, D)))
w_query, w_key, w_value, w_output = (
    device.asarray(rng.standard_normal((D, D)) / np.sqrt(D)) for _ in range(4)
)
y, cache = multi_head_attention(x, memory, memory, w_query, w_key, w_value, w_output, H)
*_, (heads_q, heads_k, *_), _ = cache
weights = multi_head_attention_weights(cache)

shape_table(
    {"B": B, "T": T, "S": S, "D": D, "H": H, "K": K},
    x=(x, "B T D", "the positions that ask"),
    memory=(memory, "B S D", "the positions that are asked, for keys and values"),
    w_query=(
        w_query,
        "D D",
        "the queries' matrices of all heads, side by side; so for keys, values",
    ),
    heads_q=(heads_q, "B H T K", "queries, head by head"),
    heads_k=(heads_k, "B H S K", "keys, head by head"),
    weights=(weights, "B H T S", "each head has weights of its own"),
    w_output=(w_output, "D D", "brings the heads together"),
    y=(y, "B T D", "the output"),
)

# %% [markdown]
# The concatenation with $W^O$ has a second reading. Cut $W^O$ into $H$ blocks of $d_k$ *rows*. Blocks side
# by side times blocks one below the other are the sum of the products:
#
# $$
# \left[ \, \text{head}_1 \; \cdots \; \text{head}_H \, \right]
# \begin{bmatrix} W_1^O \\ \vdots \\ W_H^O \end{bmatrix}
# = \sum_h \text{head}_h \, W_h^O .
# $$
#
# **Nothing is really concatenated: each head adds its part to the output.**
#
# Written out, a head is $A_h \, M \, W_h^V W_h^O$ with scores $X \, W_h^Q (W_h^K)^\top M^\top / \sqrt{d_k}$. The four
# matrices occur as two pairs only:
#
# - $W_h^Q (W_h^K)^\top$ (D, D) decides **where to look**,
# - $W_h^V W_h^O$ (D, D) decides **what to bring back**,
#
# and both go through a bottleneck of $d_k$ features: their rank is at most $d_k$.
#
# ### Do more heads cost more?
#
# Hardly. Each of the four matrices is (D, D) for every $H$. The scores take $T \cdot S$ dot products of width
# $d_k$ for each of $H$ heads, $T S d_k H = T S D$ multiplications whatever $H$ is. Only the number of weights
# $A$ grows, $H \cdot T \cdot S$, which the softmax computes and the backward keeps. The price of more heads
# is that each is narrower. The paper's table 3, row A, tries 1 to 32 heads at the same cost: one head is 0.9
# BLEU worse than the best, and too many are worse as well.
#
# ### A reshape that is not a split
#
# `x.reshape(B, H, T, K)` is shorter, has the right shape and raises no error. Below, each token's features
# have the token's number for value and colour. A head must have a row of each token:

# %%
numbered = np.repeat(np.arange(4.0), 12).reshape(1, 4, 12)  # (B, T, D): row t is full of t
shown = {
    "x, (T, D)": numbered[0],
    "split_heads(x), head by head": split_heads(numbered, 3)[0],
    "x.reshape(B, H, T, K), head by head": numbered.reshape(1, 3, 4, 4)[0],
}

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(10, 3.1), width_ratios=(12, 14, 14))
for axes, (title, array) in zip(panels, shown.items(), strict=True):
    heads = array if array.ndim == 3 else array[None]
    gap = np.full((4, 1), np.nan)
    row = np.concatenate([piece for head in heads for piece in (gap, head)][1:], axis=1)
    axes.imshow(row, cmap="cividis", vmin=0, vmax=3)
    for (t, i), token in np.ndenumerate(row):
        if token == token:  # not one of the gaps
            colour = "white" if token < 2 else "black"
            axes.text(i, t, int(token), ha="center", va="center", color=colour, fontsize=9)
    axes.set(title=title, xlabel="feature", xticks=[], yticks=range(4), ylabel="row")
    axes.grid(False)
plt.show()

# %% [markdown]
# With the plain reshape, the first head has token 0 in three of its rows, cut in pieces, then a piece of
# token 1, and nothing of tokens 2 and 3. What looks like attention between positions is attention between
# pieces of neighbours: the last token can never ask the first.
#
# Now write both:
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `split_heads(x, num_heads)` | (B, T, D) | (B, H, T, K) |
# | `merge_heads(x)` | (B, H, T, K) | (B, T, D) |


# %%
def facts(split_heads, merge_heads):
    heads, features = split_heads(numbered, 3), np.arange(12.0)[None, None]
    yield "row t of a head is of token t", (heads == np.arange(4)[:, None]).all()
    one = split_heads(features, 3)
    yield "head 2 has the features 4 to 7", (one[0, 1] // 4 == 1).all()
    yield "merged, they are what they were", np.array_equal(merge_heads(one), features)


try_yours("split_heads", facts)  # and merge_heads

# %%
show("split_heads")

# %%
show("merge_heads")

# %% [markdown]
# ## 3 · The backward
#
# From the output back to the input there are four kinds of steps.
#
# **The output projection** is a linear map of the merged heads $C$ (T, D), $Y = C W^O$. So $dW^O = C^\top dY$ and
# $dC = dY (W^O)^\top$.
#
# **Merging** puts numbers in other places and computes nothing. As a matrix it is a permutation $P$, and the
# backward of $y = P x$ is $dx = P^\top dy$, the inverse permutation. *The backward of merging is splitting*,
# and that of splitting is merging.
#
# **Attention** of each head gives $dQ_h, dK_h, dV_h$ by lesson 08, all heads at once. Merged again, they are
# $dQ$ (T, D), $dK$ and $dV$ (S, D).
#
# **The three projections** are linear maps, $Q = X W^Q$ and $K = M W^K$ and $V = M W^V$:
#
# $$
# dW^Q = X^\top dQ \qquad dW^K = M^\top dK \qquad dW^V = M^\top dV
# $$
#
# $$
# dX = dQ \, (W^Q)^\top
# \qquad
# dM = \underbrace{dK \, (W^K)^\top}_{\text{as keys}} + \underbrace{dV \, (W^V)^\top}_{\text{as values}} .
# $$
#
# The memory is used twice, so it gets two gradients, and they add up. In self-attention $M$ *is* $X$, and all three
# add up. The layer returns them one by one, because it does not know whether its inputs were the same array.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `multi_head_attention(query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None)` | (B, T, D), two (B, S, D), four (D, D) | $Y$ (B, T, D), `cache` |
# | `multi_head_attention_backward(dy, cache)` | (B, T, D) | the gradients of the first seven |

# %%
X, M, WQ, WK, WV, WO = (to_host(a) for a in (x, memory, w_query, w_key, w_value, w_output))
inputs = X, M, M + 1, WQ, WK, WV, WO  # other values than keys, to see each
dy = rng.standard_normal((B, T, D))


def facts(multi_head_attention, multi_head_attention_backward):
    y, cache = multi_head_attention(*inputs, H)
    gradients = multi_head_attention_backward(dy, cache)
    along = [(gradient * array).sum() for gradient, array in zip(gradients, inputs, strict=True)]
    yield "⟨dX, X⟩ is ⟨dW^Q, W^Q⟩; so for keys, values", np.allclose(along[:3], along[3:6])
    yield "⟨dW^O, W^O⟩ is ⟨dY, Y⟩", np.isclose(along[6], (dy * y).sum())
    seen = np.arange(S) < 3
    few, _ = multi_head_attention(X, M[:, :3], M[:, :3] + 1, WQ, WK, WV, WO, H)
    masked, _ = multi_head_attention(*inputs, H, seen)
    yield "masked positions might as well be missing", np.allclose(masked, few)
    first = np.arange(D) < K  # the features of the first head
    nothing, _ = multi_head_attention(X, M, M, WQ, WK, WV * first, WO * ~first[:, None], H)
    yield "a head meets its own rows of W^O alone", not nothing.any()


try_yours("multi_head_attention", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right:

# %%
show("multi_head_attention")

# %%
layer = MultiHeadAttention(D, H, np.random.default_rng(9))
report = check_module(layer, X, M, M + 0.5, directions=6)  # three different inputs, to see each
assert report.right
print(report)

# %% [markdown]
# PyTorch agrees, to six digits and more:

# %%
if find_spec("torch"):
    import torch

    theirs = torch.nn.MultiheadAttention(D, H, bias=False, batch_first=True, dtype=torch.float64)
    theirs.in_proj_weight.data = torch.tensor(np.concatenate([WQ, WK, WV], axis=1).T)
    theirs.out_proj.weight.data = torch.tensor(WO.T)
    tensors = [torch.tensor(array, requires_grad=True) for array in inputs[:3]]
    their_y, _ = theirs(*tensors)
    their_y.backward(torch.tensor(dy))
    y, cache = multi_head_attention(*inputs, H)
    ours = y, *multi_head_attention_backward(dy, cache)[:3]
    theirs = their_y.detach(), *(tensor.grad for tensor in tensors)
    for name, mine, its in zip(("Y", "dX", "dM, keys", "dM, values"), ours, theirs, strict=True):
        print(f"{name:10} differs by at most {abs(mine - its.numpy()).max():.0e}")
        assert np.allclose(mine, its, rtol=1e-6)


# %% [markdown]
# The gradients of the heads do not mix: block $h$ of the columns of $dW^Q$ is $X^\top dQ_h$. What heads share
# is $dY$: each learns what the *sum* still lacks. Section 5 shows what comes of that.
#
# ### The forgotten sum
#
# In self-attention one array goes in at three places. If one is forgotten, no shape tells; the gradient check
# does:


# %%
def self_attention(x):
    return multi_head_attention(x, x, x, WQ, WK, WV, WO, H)


def without_the_values(dy, cache):
    dquery, dkey, _, *_ = multi_head_attention_backward(dy, cache)
    return dquery + dkey


report = check_pair(self_attention, without_the_values, (X,))
assert not report.right
print(report)

# %% [markdown]
# ## 4 · One layer, three uses
#
# | | asks | is asked | mask | scores |
# |---|---|---|---|---|
# | **self-attention** of the encoder | source | the same | padding | (B, H, S, S) |
# | **masked self-attention** of the decoder | target so far | the same | causal and padding | (B, H, T, T) |
# | **cross-attention** of the decoder | target so far | the encoder's output | padding of the source | (B, H, T, S) |
#
# One class serves all three; only its inputs differ. To see them side by side we train a tiny Transformer,
# one layer a side and two heads, to say a sequence backwards:

# %%
SYMBOLS, BEGIN, END = "abcdefghij", 1, 2


def backwards(count, length):
    """Source, target and labels as ids, (count, length + 1): a sequence, and the same from its end."""
    letters = rng.integers(3, 3 + len(SYMBOLS), (count, length))
    begin, end = np.full((count, 1), BEGIN), np.full((count, 1), END)
    back = letters[:, ::-1]
    return [np.concatenate(pair, axis=1) for pair in ((letters, end), (begin, back), (back, end))]


config = TransformerConfig(
    13,
    13,
    d_model=32,
    num_heads=2,
    d_ff=64,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0.0,
    norm="pre",
    max_length=16,
)
model = Transformer(config, seed=9, device=device)
adam = Adam(model.flat)
STEPS = 400
for step in range(1, STEPS + 1):
    model.zero_grad()
    (_, nll), loss_cache = model.loss(Batch(*backwards(64, int(rng.integers(3, 9)))))
    model.loss_backward(1.0, loss_cache)
    adam.step(8e-3 * min(1, step / 50, 2 * (STEPS - step + 1) / STEPS))  # up, level, down to 0

source, target, labels = backwards(300, 7)
logits, _ = model.forward(source, target)
right = (to_host(logits).argmax(axis=-1) == labels).mean()
print(f"symbols right: {right:.0%}")
assert right > 0.8


# %% [markdown]
# Here are all its attention weights for one sequence, a column for each use and a row for each head:


# %%
def weights_in(attention, *inputs):
    """Weights (H, T, S) of a MultiHeadAttention for the first example of a batch."""
    _, cache = attention.forward(*inputs)
    return to_host(attention.weights(cache))[0]


source, target, _ = backwards(1, 7)
embed, place = model.source_embedding, model.positional_encoding
encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]
s = place.forward(embed.forward(source)[0])[0]
t = place.forward(model.target_embedding.forward(target)[0])[0]
# What stands before and after each attention, enter and leave, is the subject of lesson 10.
source_h, target_h = (
    encoder.self_attention_residual.enter(s)[0],
    decoder.self_attention_residual.enter(t)[0],
)
target_mask = causal_mask(device.asarray(target))
memory, _ = model.encode(source, model.source_mask(source))
h, _ = decoder.self_attention.forward(target_h, target_h, target_h, target_mask)
t = decoder.self_attention_residual.leave(t, h)[0]
cross_h = decoder.cross_attention_residual.enter(t)[0]

maps = {
    "self-attention": weights_in(encoder.self_attention, source_h, source_h, source_h),
    "masked": weights_in(decoder.self_attention, target_h, target_h, target_h, target_mask),
    "cross-attention": weights_in(decoder.cross_attention, cross_h, memory, memory),
}

# %% tags=["hide-input"]
names = ["pad", "⟨s⟩", "⟨/s⟩", *SYMBOLS]
source_names, target_names = ([names[i] for i in ids[0]] for ids in (source, target))
figure, panels = plt.subplots(2, 3, figsize=(9.5, 6.3))
figure.suptitle("one training, seed 9", fontsize=10)
for column, (title, heads) in enumerate(maps.items()):
    across = target_names if title == "masked" else source_names
    down = source_names if title == "self-attention" else target_names
    for number, (axes, head) in enumerate(zip(panels[:, column], heads, strict=True), 1):
        image = axes.imshow(head, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
        axes.set_title(f"{title}, head {number}")
        axes.set_xticks(range(len(across)), across)
        axes.set_yticks(range(len(down)), down)
        axes.grid(False)
for axes, name in zip(panels[1], ("source", "target so far", "source"), strict=True):
    axes.set_xlabel(f"key: {name}")
for row in panels:
    for axes, name in zip(row, ("source", "target so far", "target so far"), strict=True):
        axes.set_ylabel(f"query: {name}")
figure.colorbar(image, ax=panels, shrink=0.6, label="attention weight")
plt.show()

# %% [markdown]
# In cross-attention the task can be seen: the decoder says the sequence from its end, and looks at the source
# from the end to the beginning. The masked attention is a triangle, white above the diagonal. In the encoder
# it is less clear who does what, and section 5 will show that a map does not say enough.
#
# ## 5 · What heads specialise in
#
# Do heads share a task in which several things must be looked up at once? In a sequence of ten symbols, at
# each position, the network has to answer three questions: which symbol is **before** me, which is **after**
# me, and which is the **first** of all? The network is one attention layer: embeddings, positions, heads, and
# a linear map to the three answers. We train it with 1, 2, 4 and 8 heads, and count the right answers.


# %%
class ThreeQuestions(Module):
    """One layer of attention that answers three questions at each position."""

    NUM_SYMBOLS, LENGTH, WIDTH = 8, 10, 32

    def __init__(self, num_heads, rng):
        self.embedding = Embedding(embedding_weight(self.NUM_SYMBOLS, self.WIDTH, rng))
        self.positional_encoding = PositionalEncoding(self.LENGTH, self.WIDTH)
        self.attention = MultiHeadAttention(self.WIDTH, num_heads, rng)
        answers = rng.standard_normal((self.WIDTH, 3 * (self.NUM_SYMBOLS + 1))) / np.sqrt(
            self.WIDTH
        )
        self.answers = Parameter(answers.astype(np.float32))

    def forward(self, ids):
        """Logits (B, T, 3, NUM_SYMBOLS + 1) from ids (B, T); answer 0 stands for none."""
        x, embedding_cache = self.embedding.forward(ids)
        x, position_cache = self.positional_encoding.forward(x)
        y, attention_cache = self.attention.forward(x, x, x)
        logits, answers_cache = linear(y, self.answers.data)
        logits = logits.reshape(*ids.shape, 3, self.NUM_SYMBOLS + 1)
        return logits, (embedding_cache, position_cache, attention_cache, answers_cache)

    def backward(self, dlogits, cache):
        embedding_cache, position_cache, attention_cache, answers_cache = cache
        flat = dlogits.reshape(*dlogits.shape[:2], -1)
        dy, danswers, _ = linear_backward(flat, answers_cache)
        self.answers.grad += danswers
        dx = sum(self.attention.backward(dy, attention_cache))  # self-attention: all three
        dx = self.positional_encoding.backward(dx, position_cache)
        self.embedding.backward(dx, embedding_cache)


QUESTIONS = ["before", "after", "first"]


def asked(count):
    """Ids (count, T) and the right answers (count, T, 3): symbols from 1, and 0 where there is none."""
    ids = rng.integers(ThreeQuestions.NUM_SYMBOLS, size=(count, ThreeQuestions.LENGTH))
    none = np.zeros((count, 1), dtype=ids.dtype)
    before = np.concatenate([none, ids[:, :-1] + 1], axis=1)
    after = np.concatenate([ids[:, 1:] + 1, none], axis=1)
    return ids, np.stack([before, after, np.broadcast_to(ids[:, :1] + 1, ids.shape)], axis=-1)


def trained(num_heads, seed, steps=400):
    net = ThreeQuestions(num_heads, np.random.default_rng(seed)).to(device)
    flat = FlatParameters(net)
    adam = Adam(flat)
    for step in range(1, steps + 1):
        ids, answers = asked(64)
        logits, cache = net.forward(ids)
        _, loss_cache = cross_entropy(logits, answers)  # answer 0 counts as padding
        flat.grad.fill(0)
        net.backward(cross_entropy_backward(1.0, loss_cache), cache)
        adam.step(1e-2 * min(1, step / 50, 2 * (steps - step + 1) / steps))
    return net


def share_right(net, count=500):
    """For each question the share of answers that are right, (3,)."""
    ids, answers = asked(count)
    logits, _ = net.forward(ids)
    right = to_host(logits).argmax(axis=-1) == answers
    return np.array([right[..., i][answers[..., i] > 0].mean() for i in range(3)])


head_counts, SEEDS = [1, 2, 4, 8], (9, 1, 2)
nets = {(seed, n): trained(n, seed) for seed in SEEDS for n in head_counts}
scores = np.array([[share_right(nets[seed, n]) for n in head_counts] for seed in SEEDS])

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.9))
for i, (question, colour, style) in enumerate(
    zip(QUESTIONS, (BLUE, VERMILION, GREEN), ("o-", "s--", "^-."), strict=True)
):
    lines = axes.plot(head_counts, scores[..., i].T, style, color=colour, lw=1.2, ms=5)
    lines[0].set_label(f"the symbol {question}, {len(SEEDS)} seeds")
axes.axhline(1 / 8, color=BLACK, ls=":", lw=1)
axes.text(6.4, 0.145, "a guess", fontsize=9.5)
axes.set(xlabel="number of heads, all together 32 wide", ylabel="answers right, of all")
axes.set(xticks=head_counts, ylim=(0, 1.06))
axes.legend(loc="lower right", bbox_to_anchor=(1, 0.2))
plt.show()

# %%
sizes = {net.num_parameters() for net in nets.values()}
assert len(sizes) == 1  # all networks have the same number of parameters
assert (scores[:, 0].mean(axis=-1) < 0.8).all()  # (seed, number of heads, question)
assert scores[:, 2:].min() > 0.95

# %% [markdown]
# All networks have the same number of parameters, and the three seeds agree. One head has to answer three
# questions from one average. It is better than a guess, since what has the largest weight is heard best; but
# what helps one answer disturbs the others. From four heads on, nearly all answers are right.
#
# ### Look at them
#
# The weights of the four heads of one network, that of seed 9, averaged over 500 sequences:

# %%
net = nets[9, 4]
ids, _ = asked(500)
_, (_, _, attention_cache, _) = net.forward(ids)
head_weights = to_host(net.attention.weights(attention_cache))  # (500, H, T, T)
mean_weights = head_weights.mean(axis=0)

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 4, figsize=(10, 3.4), sharey=True)
figure.suptitle("one training, seed 9", fontsize=10)
for number, (axes, head) in enumerate(zip(panels, mean_weights, strict=True), 1):
    image = axes.imshow(head, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    axes.set(title=f"head {number}", xlabel="key (position)")
    axes.set(xticks=range(0, 10, 3), yticks=range(0, 10, 3))
    axes.grid(False)
panels[0].set_ylabel("query (position)")
figure.colorbar(image, ax=panels, shrink=0.8, label="mean attention weight")
plt.show()

# %% [markdown]
# The heads have shared the work. A column in a map: this head looks at the first symbol from everywhere. A
# line below the diagonal looks a step back, a line above it a step ahead. There are four heads for three
# questions, and the fourth map is less clear.
#
# Who does what is an accident of the initial weights. The formula does not tell heads apart: if two change
# places, in all four matrices, the layer is the same function, because it is a sum. With another seed the
# roles fall to other heads. Where does each head look most?

# %%
rows = np.arange(2, ThreeQuestions.LENGTH - 1)  # neither first nor last nor second
for seed in SEEDS:
    _, (_, _, attention_cache, _) = nets[seed, 4].forward(ids)
    mean = to_host(net.attention.weights(attention_cache)).mean(axis=0)
    on = [mean[:, rows, rows - 1], mean[:, rows, rows + 1], mean[:, rows, 0]]
    most = np.stack(on).mean(axis=-1)  # (question, head)
    print(f"seed {seed}:", ", ".join(QUESTIONS[i] for i in most.argmax(axis=0)))

# %% [markdown]
# ### Remove them
#
# A map shows where a head *looks*. To see whether anything depends on it, take it away. Since the output is a
# sum over heads, this is easy: set the $d_k$ rows of $W^O$ that belong to the head to zero. Then we count the
# right answers that are lost, for each head and question:

# %%
width = ThreeQuestions.WIDTH // 4
kept = net.attention.w_output.data.copy()
drops = []
for h in range(4):
    # Zero on the rows of this head, one elsewhere:
    keep = np.ones((ThreeQuestions.WIDTH, 1), dtype=np.float32)
    keep[h * width : (h + 1) * width] = 0
    net.attention.w_output.data = kept * device.asarray(keep)
    drops.append(scores[0, 2] - share_right(net))
net.attention.w_output.data = kept
drops = np.array(drops)  # (head, question)

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.4, 3.6))
image = axes.imshow(drops, cmap="Greys", vmin=0, vmax=1, aspect="auto")
axes.set_title("one training, seed 9", fontsize=10)
for (h, i), drop in np.ndenumerate(drops):
    axes.text(
        i, h, f"{drop:.2f}", ha="center", va="center", color="white" if drop > 0.5 else "black"
    )
axes.set_xticks(range(3), QUESTIONS)
axes.set_xlabel("question: which symbol is …")
axes.set_yticks(range(4), [f"without head {h}" for h in range(1, 5)])
axes.grid(False)
figure.colorbar(image, label="loss of right answers")
plt.show()

# %%
w_v, w_o = to_host(net.attention.w_value.data), to_host(net.attention.w_output.data)
for h in range(4):
    block = slice(h * width, (h + 1) * width)
    what = np.linalg.norm(w_v[:, block] @ w_o[block])
    print(f"head {h + 1}: size of what it brings back, |W_V W_O| = {what:.1f}")
assert (drops.max(axis=0) > 0.3).all()  # each question has a head that it depends on

# %% [markdown]
# Now the roles are plain. In this run each question depends on one head, and that head serves this question
# alone: without it most of its answers are lost, and hardly any of the others.
#
# Now head 4. By its map it is a second head for the symbol before: it looks there more than after or at the
# first. Yet hardly anything depends on it. **Where a head looks is not what it does.** The map shows
# $W_h^Q (W_h^K)^\top$ at work. What is brought back goes through $W_h^V W_h^O$, the smallest of the four
# here, and another head brings the same already. (And if two heads can stand in for each other, removing
# either costs nothing, though both together would be missed.)
#
# Trained translators are like that. The paper finds that "individual attention heads clearly learn to perform
# different tasks" and shows some in its last figures, one that ties a pronoun to what it stands for. And most
# heads of a trained translator can be removed one at a time with hardly a loss (Michel, Levy and Neubig, *Are
# Sixteen Heads Really Better than One?*, 2019). Try it in the explorer, where you can
# [switch heads off](../README.md#look-inside "#example=4&view=attention&attention=cross&step=3").
#
# ## 6 · Exercises
#
# Fill in `answers/ex09.py`, your copy of [lessons/exercises/ex09.py](exercises/ex09.py), and run
# `minitransformer check ex09`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex09.py](solutions/ex09.py).
#
# 1. **`multiplications`** (10 min). Count the work of the layer. From which length on do the scores cost more
#    (with the averages that follow them) than the four projections? Guess first, for $D = 512$ and $S = T$.
# 2. **`reordered_heads`** (25 min). Let the heads change places without changing the function. Which axis of which
#    matrix?
# 3. **`gated_heads`** (45 min). A factor for each head, in front of $W^O$. Its gradient at 1 tells how
#    important the head is, for all heads in one backward, without removing any.
# 4. **`multi_query_attention`** (90 min). All heads keep their queries and share one set of keys and values: what
#    a decoder has to store shrinks by $H$. Derive what changes in the backward.

# %%
print(check_exercise("ex09", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | forward | $Y = \sum_h \text{softmax}\left( X W_h^Q (M W_h^K)^\top / \sqrt{d_k} \right) M W_h^V W_h^O$ |
# | in one product | $W^Q = [W_1^Q \cdots W_H^Q]$: head $h$, counted from 0, has the columns $h d_k$ to $(h+1) d_k - 1$; of $W^O$ the rows |
# | shapes | (B, T, D) → `split_heads` → (B, H, T, K) → `merge_heads` → (B, T, D) |
# | backward | splitting and merging are each other's; $dW^Q = X^\top dQ$; $dM$ is a sum of two, in self-attention $dx$ of three |
# | cost | $4 D^2$ parameters and $T S D$ multiplications for the scores, whatever $H$ is |
# | uses | self ($M = X$), masked self (causal), cross ($M$ is the encoder's output) |
# | heads | nobody assigns roles; a map shows where a head looks, removing it shows whether it matters |
# | traps | `reshape(B, H, T, K)` without the swap; a forgotten path in self-attention |
#
# **Your own Transformer.** `split_heads`, `merge_heads`, and `multi_head_attention` with its backward:
# `minitransformer check own`.
#
# **Next:** [lesson 10](10_residual_connections.ipynb) is about what stands around each attention, the sum and
# the normalisation.
