# %% [markdown]
# # 31 · A picture is a sentence of patches
#
# **You will** cut pictures into squares and give them to the stack that translates; prove that it does not mind if all
# pictures are shuffled in the same way, and see that a convolution does; derive what is new in its backward; measure
# how much data it needs; and see what it looks at.
#
# | | |
# |---|---|
# | In the paper | not in it; it is section 3 put to pictures, by Dosovitskiy and others (2021) |
# | In the package | `minitransformer/layers/patches.py`, `minitransformer/layers/learned_positions.py`, `minitransformer/models/vision_transformer.py`, `minitransformer/models/stacks.py` |
# | You need | attention, as in [lesson 09](09_multi_head_attention.ipynb); the stack, as in [lesson 11](11_the_transformer.ipynb); convolution, as in [lesson 29](29_seeing.ipynb) |
# | Time | an hour to read, two for the exercises |

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

from minitransformer import accelerated, select_device
from minitransformer.cases.models import ModelLoss
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
from minitransformer.course.stops import try_yours
from minitransformer.data.images.batches import PictureBatch
from minitransformer.data.images.shapes import shapes_corpus
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.layers.convolution_2d import convolution_2d, convolution_2d_backward
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.patches import (
    PatchEmbedding,
    class_token,
    class_token_backward,
    patches,
    patches_backward,
)
from minitransformer.models.small_network import SmallNetwork, SmallNetworkConfig
from minitransformer.models.vision_transformer import VisionTransformer, VisionTransformerConfig
from minitransformer.optim import schedule
from minitransformer.optim.adamw import AdamW

use_style()
device = select_device("cpu")  # "cuda" trains the models of sections 1, 4 and 5 on a GPU
rng = np.random.default_rng(31)

# %% [markdown]
# ## 1 · Does a picture have to look like one?
#
# A translator reads a sentence: a row of words, each a vector of numbers. A picture is a table of pixels. Can the same
# stack read it? One pixel is too little for a word, and there are too many of them: attention compares every word with
# every other. So cut the picture into squares, **patches**, and call each one a word.
#
# Our pictures are four of the ten kinds of the corpus `shapes`: small, grey, each shape with its own place, size and
# turn, some with a stripe across or a speck beside. In the corpus a shape may be darker or brighter than what is behind
# it. To have a task that is learned in seconds we take that away: of each pixel we keep how far it is from the median
# of its picture. Then every shape is bright.

# %%
KINDS = "disc", "triangle", "cross", "bar"
corpus = shapes_corpus()


def four_kinds(*splits):
    """Pictures (B, 28, 28, 1), float32, and labels (B,) of the four kinds."""
    stored = np.concatenate([corpus[split].pictures for split in splits])
    labels = np.concatenate([corpus[split].labels for split in splits])
    wanted = [corpus["train"].classes.index(kind) for kind in KINDS]
    kept = np.isin(labels, wanted)
    far = np.abs(stored[kept] - np.median(stored[kept], axis=(1, 2, 3), keepdims=True))
    return (far / 40 - 0.5).astype(np.float32), np.searchsorted(wanted, labels[kept])


pictures, labels = four_kinds("train")
unseen, labels_of_unseen = four_kinds("validation", "test")
print(f"{len(pictures):,} pictures to train on, {len(unseen)} to ask for")

# %% [markdown]
# Now a strange question. Draw one order of the patches, at random, once, and put the patches of *all* pictures into
# this order. To us nothing is left of a cross. What is left to a network? Below, four pictures with their patches of 7
# × 7 pixels, and under each the same in the new order. Beneath them the first one as the Transformer gets it, a
# sentence of 16 words:

# %%
P = 7  # rows and columns of a patch
ORDER = np.random.default_rng(31).permutation(16)


def shuffled(pictures):
    """The same patches in another order, which is one for all pictures."""
    cut, cache = patches(pictures, P)  # (B, 16, 49)
    return patches_backward(cut[:, ORDER], cache)  # which puts patches where they are cut from


views = {"as they are": (pictures, unseen), "shuffled": (shuffled(pictures), shuffled(unseen))}

# %% tags=["hide-input"]
shown = [int(np.flatnonzero(labels == kind)[3]) for kind in range(4)]
figure = plt.figure(figsize=(9, 5.6))
above, below = figure.subfigures(2, 1, height_ratios=(4, 1))
panels = above.subplots(2, 4)
for row, (view, (of_view, _)) in zip(panels, views.items(), strict=True):
    for axes, kind, i in zip(row, KINDS, shown, strict=True):
        axes.imshow(of_view[i, :, :, 0], cmap="gray", vmin=-0.5, vmax=4)
        axes.set(title=f"{kind}, {view}", xticks=[], yticks=[])
        axes.grid(False)
        for edge in (6.5, 13.5, 20.5):
            axes.axhline(edge, color=VERMILION, lw=0.8)
            axes.axvline(edge, color=VERMILION, lw=0.8)
words, _ = patches(pictures[shown[:1]], P)
for number, axes in enumerate(below.subplots(1, 16)):
    axes.imshow(words[0, number].reshape(P, P), cmap="gray", vmin=-0.5, vmax=4)
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(number + 1, fontsize=9)
    axes.grid(False)
plt.show()

# %% [markdown]
# We train two networks on both views, with two seeds each. One is a small **Vision Transformer** of two layers, the
# other the package's small network of three convolutions. Steps, batches and order of the batches are the same.

# %%
SIZES = dict(height=28, width=28, channels=1, num_classes=len(KINDS))
STEPS, BATCH, SEEDS = 300, 32, (0, 1)
STACK = dict(patch_size=P, d_model=48, d_ff=96, num_layers=2, dropout=0.0)
NETWORKS = {  # with their learning rates
    "Transformer": (VisionTransformer, VisionTransformerConfig(**SIZES, **STACK), 5e-3),
    "convolutions": (SmallNetwork, SmallNetworkConfig(**SIZES, num_features=6, dropout=0.0), 1e-2),
}


def accuracy(model, pictures, labels):
    """The share of pictures whose likeliest class is the right one."""
    with accelerated():  # the faster of the package's functions
        said = [to_host(model.logits(some)[0]) for some in np.array_split(pictures, 4)]
    return float((np.concatenate(said).argmax(axis=-1) == labels).mean())


def learn(model, pictures, labels, peak, seed, steps=STEPS, asked=None):
    """Train by AdamW; returns the accuracy every 50 steps on the unseen that are ``asked`` for."""
    draw, optimizer = np.random.default_rng(seed), AdamW(model.flat, weight_decay=0.05)
    course, waiting = [], np.zeros(0, int)
    for step in range(1, steps + 1):
        if len(waiting) < BATCH:  # all pictures once more, in a new order
            waiting = np.concatenate([waiting, draw.permutation(len(pictures))])
        some, waiting = waiting[:BATCH], waiting[BATCH:]
        model.zero_grad()
        with accelerated():
            _, cache = model.loss(PictureBatch(pictures[some], labels[some]), draw)
            model.loss_backward(1.0, cache)
            optimizer.step(schedule.linear_decay(step, peak, steps // 10, steps))
        if asked is not None and step % 50 == 0:
            course.append(accuracy(model, asked, labels_of_unseen))
    return course


courses = {}
for name, (network, config, peak) in NETWORKS.items():
    print(f"{name}: {config.num_parameters():,} parameters")
    for view, (seen, asked) in views.items():
        courses[name, view] = of_seeds = []
        for seed in SEEDS:
            model = network(config, seed=seed, device=device)
            of_seeds.append(learn(model, seen, labels, peak, seed, asked=asked))
        print(f"    {view:11}", *(f"{100 * course[-1]:.1f} %" for course in of_seeds))

final = {key: np.mean([course[-1] for course in of]) for key, of in courses.items()}
lost = {name: final[name, "as they are"] - final[name, "shuffled"] for name in NETWORKS}
assert lost["convolutions"] > max(0.08, abs(lost["Transformer"]) + 0.04)

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4))
LOOKS = {"Transformer": (BLUE, "o"), "convolutions": (VERMILION, "s")}
for (name, view), of_seeds in courses.items():
    colour, marker = LOOKS[name]
    plain = view == "as they are"
    style = dict(color=colour, mfc=colour if plain else "white", ms=5)
    asked_at, shares = np.arange(50, STEPS + 1, 50), 100 * np.transpose(of_seeds)
    lines = axes.plot(asked_at, shares, marker + ("-" if plain else "--"), **style)
    lines[0].set_label(f"{name}, {view}")
axes.axhline(25, color=BLACK, lw=0.8, ls=":")
axes.text(52, 26, "guessing", fontsize=9.5)
axes.set(xlabel="step", ylabel="unseen pictures classified correctly (%)", ylim=(20, 100))
axes.legend(title="two seeds each", loc="upper left", bbox_to_anchor=(1, 0.8))
plt.show()

# %% [markdown]
# The convolutions learn faster, and they lose much when the pictures are shuffled: they end where the Transformer does,
# which was never better. What is left to them are the pieces within a patch. **The Transformer does not care.** Its
# curves differ from view to view no more than from seed to seed. Section 3 proves that it cannot care: the order of the
# patches is nothing that it knows, only something that it may learn. So how is it built, what does it cost to know
# nothing beforehand, and what does it look at in the end?
#
# ## 2 · The definition
#
# A picture $x$ has Y rows and X columns of C channels. It is cut into $N = Y/P \cdot X/P$ squares of $P \times P$
# pixels, from left to right and from top to bottom. The $P^2 C$ numbers of a square, read in the same way, are the row
# $p_n$. With $Z$ for the rows that the stack is given (not for scores, as in lesson 08)
#
# $$
# x_n = p_n W + b
# \qquad
# Z = \begin{pmatrix} c \\ x_1 \\ \vdots \\ x_N \end{pmatrix} +
# \begin{pmatrix} t_0 \\ t_1 \\ \vdots \\ t_N \end{pmatrix}
# \qquad
# \text{logits} = \text{stack}(Z)_0 \; W_{\text{head}} + b_{\text{head}} .
# $$
#
# - **$W$**, $(P^2 C, D)$, does for a patch what the embedding does for a word.
# - **$c$**, $(D)$, is the **class token**, one row that is learned and put before the patches of every picture. It is
#   no part of a picture. It looks at all patches, and what the stack makes of it says what the picture is of. (In
#   [lesson 23](23_an_encoder.ipynb) the first token of a text had the same task.)
# - **$t_n$** are learned positions, the rows of a table $\mathcal T$, one for each place. Without them the patches
#   would be a heap.
# - **stack** is `Encoder` of `models/stacks.py`, in pre-norm: layer by layer
#   $Z \leftarrow Z + \text{Attention}(\text{LayerNorm}(Z))$, then $Z \leftarrow Z + \text{FFN}(\text{LayerNorm}(Z))$,
#   and a last LayerNorm. There is no mask. **It is the very stack that reads the source sentence of a translation.**
#
# Nearly everything was in the course before:
#
# | part | in the code | lesson |
# |---|---|---|
# | cutting, and putting back | `patches` | here |
# | the map of a patch | `linear` | [02](02_backpropagation.ipynb); as a convolution [29](29_seeing.ipynb) |
# | the class token | `class_token` | here |
# | positions that are learned | `learned_positions` | [06](06_positions.ipynb) |
# | LayerNorm | `layer_norm` | [07](07_layer_norm.ipynb) |
# | attention, of many heads | `multi_head_attention` | [08](08_attention.ipynb), [09](09_multi_head_attention.ipynb) |
# | the network at every place | `feed_forward` | [02](02_backpropagation.ipynb) |
# | sums around both, pre-norm | `residual` | [10](10_residual_connections.ipynb) |
# | layers one upon the other | `Encoder` | [11](11_the_transformer.ipynb) |
# | the loss | `cross_entropy` | [04](04_softmax_cross_entropy.ipynb) |
#
# What is new fits on half a screen. Cutting is a reshape to five axes and an exchange of two of them:

# %%
source_of(patches, patches_backward, class_token, class_token_backward)

# %%
source_of(VisionTransformer.features)

# %%
B, Y, X, C, D, E = 2, 28, 28, 1, 48, len(KINDS)
N, numbers = (Y // P) * (X // P), P * P * C
model = VisionTransformer(NETWORKS["Transformer"][1], seed=31, device=device)
x = device.asarray(pictures[:B])
cut, _ = patches(x, P)
embedded, _ = model.embedding.forward(x)
with_token, _ = model.class_token.forward(embedded)
placed, _ = model.positions.forward(with_token)
y, _ = model.stack.forward(placed)
logits, _ = model.logits(x)

shape_table(
    {"B": B, "Y": Y, "X": X, "C": C, "N": N, "P·P·C": numbers, "1+N": 1 + N, "D": D, "E": E},
    x=(x, "B Y X C", "pictures"),
    cut=(cut, "B N P·P·C", "the patches of each, one after the other"),
    embedded=(embedded, "B N D", "a vector for each patch"),
    with_token=(with_token, "B 1+N D", "the class token before them"),
    placed=(placed, "B 1+N D", "with positions: what the stack is given"),
    y=(y, "B 1+N D", "what it makes of them; row 0 goes on"),
    logits=(logits, "B E", "a score for each kind"),
)

# %% [markdown]
# ### A patch and its map are a convolution
#
# A convolution with windows of $k = P$ and stride $P$ has the output, with $u$ and $v$ for the row and the column of a
# window and $i$, $j$ for a place in it,
#
# $$
# y_{u,v} = b + \sum_{i,j} x_{u P + i, \; v P + j} \; W_{i,j} .
# $$
#
# The stride is as large as the window, so no pixel is in two windows and none is left out: the windows *are* the
# patches. Pixel $(i, j)$ of patch $(u, v)$, with its C channels, has the places $(i P + j) \, C$ to
# $(i P + j) \, C + C - 1$ in $p_n$, and patch $(u, v)$ has the number $n = u \, X/P + v$, from 0. So the sum is
# $p_n W$, if the $P^2$ matrices $W_{i,j}$, (C, D) each, stand one above the other in this order. An array
# $(P, P, C, D)$ has them in memory just so. A reshape is all that lies between, in both directions:

# %%
colours, width = rng.standard_normal((2, 6, 9, 3)), 5  # two pictures of 6 × 9 with three channels
weight, bias = rng.standard_normal((27, width)), rng.standard_normal(width)
(cut, patches_cache), kernel = patches(colours, 3), weight.reshape(3, 3, 3, width)
by_linear, linear_cache = linear(cut, weight, bias)  # (B, N, D)
by_convolution, cache = convolution_2d(colours, kernel, bias, stride=3)  # (B, 2, 3, D)
assert np.allclose(by_convolution.reshape(by_linear.shape), by_linear)

dy = rng.standard_normal(by_linear.shape)
dcut, *of_linear = linear_backward(dy, linear_cache)
ours = patches_backward(dcut, patches_cache), *of_linear
theirs = convolution_2d_backward(dy.reshape(by_convolution.shape), cache)
for name, mine, its in zip(("dx", "dW", "db"), ours, theirs, strict=True):
    assert np.allclose(mine, its.reshape(mine.shape))
    print(f"{name} differs by at most {abs(mine - its.reshape(mine.shape)).max():.0e}")

# %% [markdown]
# PyTorch's convolution agrees. Its weight is $(D, C, P, P)$, and its channels come before the rows:

# %%
if find_spec("torch"):
    import torch

    turned = colours.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1), bias
    tensors = [torch.tensor(array.copy(), requires_grad=True) for array in turned]
    found = torch.nn.functional.conv2d(*tensors, stride=3)  # (B, D, 2, 3)
    found.backward(torch.tensor(dy.reshape(by_convolution.shape).transpose(0, 3, 1, 2)))
    its = (found.detach(), *(tensor.grad for tensor in tensors))
    mine = by_convolution, ours[0], ours[1].reshape(kernel.shape), ours[2]
    orders = (0, 2, 3, 1), (0, 2, 3, 1), (2, 3, 1, 0), (0,)  # of its axes, to ours
    for name, a, b, order in zip(("y", "dx", "dW", "db"), mine, its, orders, strict=True):
        assert np.allclose(a, b.numpy().transpose(order), rtol=1e-6)
        print(f"{name:2} agrees to six digits")

# %% [markdown]
# ### How many parameters
#
# Count by the formulas. The map of a patch has $(P^2 C + 1) D$, the token $D$, the positions $(1 + N) D$. In a layer
# attention has four matrices of $D^2$ and no biases, the network, F wide within, $2 D F + F + D$, and two LayerNorms
# $4 D$. The last norm has $2 D$, the head $(D + 1) E$ for E classes:


# %%
def parameters(config):
    D, F, E = config.d_model, config.d_ff, config.num_classes
    before = (config.patch_size**2 * config.channels + 1) * D + D + (1 + config.num_patches) * D
    layer = 4 * D**2 + (2 * D * F + F + D) + 4 * D
    return before + config.num_layers * layer + 2 * D + (D + 1) * E


config = model.config
recipe = VisionTransformerConfig(28, 28, 1, 10)  # as in the recipe `vit`
print(f"here {parameters(config):,}, in the recipe `vit` {parameters(recipe):,}")
assert parameters(config) == model.num_parameters()
assert parameters(recipe) == recipe.num_parameters()

# %% [markdown]
# Nothing in it grows with the size of a picture, except for one row of the positions for each patch. What the layers
# *do* grows faster: each of them compares $(1 + N)^2$ pairs. Patches of half the size are four times as many, and make
# nearly sixteen times as many pairs (exercise 1).
#
# ## 3 · The backward pass
#
# The stack has its backward from [lesson 11](11_the_transformer.ipynb), the linear map from
# [lesson 02](02_backpropagation.ipynb). Four steps are new. We go through them in the order of the backward.
#
# **Row 0 alone is read.** $\text{logits} = y_0 W_{\text{head}} + b_{\text{head}}$, so of the last output only row 0 has
# an effect on the loss by itself: $dy_0 = d\text{logits} \, W_{\text{head}}^\top$, and $dy_n = 0$ for all $n \ge 1$.
# That does not mean that patches do not learn. In the attention below row 0 has taken from all of them, and there its
# gradient is passed on.
#
# **Positions.** $z_n = x_n + t_n$ for every picture of the batch. A sum hands its gradient to both terms, so
# $dx_n = dz_n$. And $t_n$ serves row $n$ of all B pictures. What serves many gets the sum over all that it serves:
#
# $$
# dt_n = \sum_{b = 1}^{B} dz_{b,n} .
# $$
#
# **The class token.** Row 0 of every picture is $c$, so $\partial z_{b,0} / \partial c$ is the unit matrix for each
# $b$, and in the same way
#
# $$
# dc = \sum_{b = 1}^{B} dz_{b,0} ,
# $$
#
# while rows 1 to N go on to the patches as they are. So $dc = dt_0$. The token and its position are always together:
# only their sum can matter, and one of the two would do. (They begin at different values, and the token has the name
# that people use.)
#
# **Patches.** Cutting moves every pixel to one place, and no two to the same: if $\pi$ says which place of the picture
# stands at place $k$ of the patches, then $p_k = x_{\pi(k)}$. Pixel $m$ has an effect through that one place only, so
#
# $$
# dx_m = \sum_k dp_k \frac{\partial p_k}{\partial x_m} = \sum_k dp_k \, [\pi(k) = m] = dp_{\pi^{-1}(m)} .
# $$
#
# As a matrix $p = \Pi x$ and $dx = \Pi^\top dp = \Pi^{-1} dp$: **the backward of a permutation is its inverse.** It
# puts the gradients back to where the pixels came from, and that is why we could use it in section 1 to put *patches*
# back. `x` is data, and nobody trains it; the gradient of the picture says which pixels matter
# ([lesson 29](29_seeing.ipynb)).
#
# ### Proof
#
# Each pair by itself, then the embedding as a module, then the whole model with its loss:

# %%
token = rng.standard_normal(width)
rows = rng.standard_normal((2, 6, width))  # two pictures of six patches
for name, report in (
    ("patches", check_pair(patches, patches_backward, (colours, 3))),
    ("class token", check_pair(class_token, class_token_backward, (rows, token))),
    ("positions", check_module(LearnedPositions(7, width, rng), rows)),
    ("patch embedding", check_module(PatchEmbedding(3, 3, width, rng), colours)),
):
    print(f"{name:15} largest error {report.max_error:.0e}")
    assert report.right

small = dict(patch_size=3, d_model=8, num_heads=2, d_ff=12, num_layers=1)
tiny = VisionTransformerConfig(6, 9, 3, 4, **small)
whole = ModelLoss(VisionTransformer(tiny, seed=1))
report = check_module(whole, colours, np.array([3, 1]), directions=3, tolerance=1e-6)
print(f"the whole model largest error {report.max_error:.0e}, {len(report.tensors)} gradients")
assert report.right

# %% [markdown]
# ### A mistake that the check does not find
#
# Here a patch is read by columns, from top to bottom, where rows were meant. The backward undoes what the forward does:


# %%
def patches_by_columns(x, size):
    cut, cache = patches(x.swapaxes(1, 2), size)
    rows, columns = (side // size for side in x.shape[1:3])
    return cut.reshape(len(x), columns, rows, -1).swapaxes(1, 2).reshape(cut.shape), cache


def patches_by_columns_backward(dy, cache):
    of_batch, columns, _, rows, _ = cache[0]
    dy = dy.reshape(of_batch, rows, columns, -1).swapaxes(1, 2).reshape(dy.shape)
    return patches_backward(dy, cache).swapaxes(1, 2)


report = check_pair(patches_by_columns, patches_by_columns_backward, (colours, 3))
wrong, right = patches_by_columns(colours, 3)[0], patches(colours, 3)[0]
print(f"the gradient is right: {report.right}; the patches are: {np.array_equal(wrong, right)}")
assert report.right
assert not np.array_equal(wrong, right)

# %% [markdown]
# **A gradient check compares a backward with its own forward.** If that computes something else than was meant, the
# gradient of something else is right. Such a mistake is found by what it promises, as that of
# [lesson 20](20_convolution.ipynb): a picture in which one pixel is bright must have one number that is not 0, at the
# place that the formula says; or by a second way to the same result, such as the convolution above.
#
# Does it harm? In a training from scratch not at all: the rows of $W$ come in another order, and all are drawn alike.
# It does harm when you load the weights of somebody else. Every row of $W$ meets the wrong pixel, and no error
# is raised.

# %%
one_bright = np.zeros((1, 6, 9, 3))
one_bright[0, 4, 8, 2] = 1  # patch row 1 and column 2, in it row 1 and column 2, channel 2
for cutting in (patches, patches_by_columns):
    cut, _ = cutting(one_bright, 3)
    print(f"{cutting.__name__:18} patch and number: {np.argwhere(cut[0]).tolist()}")
assert np.argwhere(patches(one_bright, 3)[0][0]).tolist() == [[1 * 3 + 2, (1 * 3 + 2) * 3 + 2]]

# %% [markdown]
# ### Why the Transformer does not care
#
# Let $\Pi$ be the matrix that puts the rows $1 \dots N$ of $Z$ into a new order and leaves row 0, the class token,
# where it is. Every row of $\Pi$ and every column has one 1, so $\Pi^\top \Pi$ is the unit matrix. Each part of the
# stack, given $\Pi Z$, returns what it returns for $Z$ with its rows in the new order:
#
# - LayerNorm, the feed-forward network and all linear maps work on each row by itself.
# - In attention $Q$, $K$ and $V$ become $\Pi Q$, $\Pi K$, $\Pi V$. The scores become
#   $\Pi Q \, (\Pi K)^\top = \Pi \, (Q K^\top) \, \Pi^\top$: the same numbers, rows and columns moved. The softmax of a
#   row does not ask for the order of its numbers, so the weights are $\Pi A \Pi^\top$. And
#   $\Pi A \Pi^\top \, \Pi V = \Pi \, A V$.
# - A sum $Z + h$ of two that are moved alike is moved alike.
#
# So $\text{stack}(\Pi Z) = \Pi \, \text{stack}(Z)$, and row 0 of both is the same. Without positions nothing in the
# logits would depend on the order of the patches. With them, $Z$ is a sum, and $\Pi Z$ means that the patches *and* the
# positions are moved. Write $L(\theta, \mathcal T)$ for the loss on the pictures as they are, with the table
# $\mathcal T$ and all else in $\theta$, and $\tilde L$ for that on shuffled ones:
#
# $$
# \tilde L(\theta, \Pi \mathcal T) = L(\theta, \mathcal T) .
# $$
#
# For every network there is one that says of the shuffled pictures what this one says of the others. Does training find
# it as easily? Take the derivatives of both sides. By $\theta$ they are the same. By $\mathcal T$ the chain rule gives
# $\Pi^\top d\tilde{\mathcal T} = d\mathcal T$, so $d\tilde{\mathcal T} = \Pi \, d\mathcal T$: the gradient of the table
# is moved as the table is. AdamW works on each number by itself, so after its step the two tables are again the same
# but for $\Pi$, and so on to the end. **A training on shuffled pictures that begins with $\Pi \mathcal T$ is, step by
# step, the training on the others that begins with $\mathcal T$.** And a table whose rows were drawn independently,
# from one distribution, is as likely as the same rows in another order. Shuffling has the effect of another seed, and
# no other.
#
# A check on one batch. We set the table to 0 at first: then it is the same in every order.

# %%
asked = PictureBatch(pictures[:16].astype(np.float64), labels[:16])
found = {}
for view, seen in (("as they are", asked.pictures), ("shuffled", shuffled(asked.pictures))):
    model = VisionTransformer(config, seed=31, dtype=np.float64)
    model.positions.table.data[:] = 0
    (loss, _), cache = model.loss(PictureBatch(seen, asked.labels))
    model.loss_backward(1.0, cache)
    found[view] = float(loss), model.embedding.linear.weight.grad, model.positions.table.grad
(loss, dweight, dtable), (of_shuffled, its_dweight, its_dtable) = found.values()
print(
    f"loss {loss:.6f} and {of_shuffled:.6f}; dW differs by {abs(dweight - its_dweight).max():.0e}"
)
print(
    f"the rows of dT in the new order differ by {abs(dtable[1:][ORDER] - its_dtable[1:]).max():.0e}"
)
assert np.isclose(loss, of_shuffled, rtol=1e-9)
assert np.allclose(dweight, its_dweight)
assert np.allclose(dtable[1:][ORDER], its_dtable[1:])
assert not np.allclose(dtable, its_dtable)

# %% [markdown]
# For a convolution there is no such thing. Its windows look at pixels that lie side by side, and the weights of a
# window are the same everywhere. Shuffled, a window at the edge of a patch sees two pieces that have nothing to do with
# each other, and no choice of its weights brings them back together. Within a patch all is as before.
#
# ## 4 · How much data it needs
#
# Before it sees a picture a convolution has two things: **neighbours belong together**, and **a thing is the same
# wherever it is**. A Vision Transformer has a little of the second, as one $W$ serves all patches: a thing that is
# moved by a whole patch makes the same rows at other places. Moved by one pixel, it changes all numbers of its patches.
# Of the first it has nothing: which of the 16 places lie side by side, and even which numbers within a patch, it has to
# find out from examples.
#
# Learning needs data. We give both networks the first 100, 400 and 1600 pictures. The number of *steps* stays the same,
# so with fewer pictures each of them comes more often. All 4000 we have trained on already.

# %%
COUNTS = (100, 400, 1600, len(pictures))
by_count = {}
for name, (network, config, peak) in NETWORKS.items():
    by_count[name] = np.zeros((len(SEEDS), len(COUNTS)))
    by_count[name][:, -1] = [course[-1] for course in courses[name, "as they are"]]
    for i, count in enumerate(COUNTS[:-1]):
        for row, seed in enumerate(SEEDS):
            model = network(config, seed=seed, device=device)
            learn(model, pictures[:count], labels[:count], peak, seed)
            by_count[name][row, i] = accuracy(model, unseen, labels_of_unseen)
        if i == 0:
            learned = accuracy(model, pictures[:count], labels[:count])
            print(f"{name}: {learned:.0%} of the {count} pictures that it has seen are right")
            assert learned > 0.95
    print("    of unseen ones:", *(f"{100 * share:.1f} %" for share in by_count[name].mean(axis=0)))
assert (by_count["convolutions"].mean(axis=0) > by_count["Transformer"].mean(axis=0) + 0.07).all()
assert by_count["Transformer"][:, -1].min() > by_count["Transformer"][:, 0].max() + 0.1
with_a_tenth, with_all = by_count["convolutions"][:, 1].mean(), by_count["Transformer"][:, 3].mean()
assert with_a_tenth > with_all - 0.02
sizes = [config.num_parameters() for _, config, _ in NETWORKS.values()]
assert sizes[0] > 15 * sizes[1]

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4))
for name, of_seeds in by_count.items():
    colour, marker = LOOKS[name]
    axes.plot(COUNTS, 100 * of_seeds.T, marker, color=colour, ms=5)
    dashes = "-" if name == "Transformer" else "--"
    axes.plot(COUNTS, 100 * of_seeds.mean(axis=0), dashes, color=colour, label=name)
axes.axhline(25, color=BLACK, lw=0.8, ls=":")
axes.text(100, 26, "guessing", fontsize=9.5)
axes.set_xscale("log")
axes.set_xticks(COUNTS, labels=[f"{count:,}" for count in COUNTS])
axes.minorticks_off()
axes.set(
    xlabel="pictures to train on", ylabel="unseen pictures classified correctly (%)", ylim=(20, 100)
)
axes.legend(title=f"mean of {len(SEEDS)} seeds, {STEPS} steps each")
plt.show()

# %% [markdown]
# Both learn a hundred pictures by heart. What they make of it for others differs: in these 300 steps the convolutions
# get no fewer right with a tenth of the pictures than the Transformer does with all. The Transformer is not too small
# for the task: it has more than fifteen times as many parameters. It has to learn what the convolutions were given, and
# for that 300 steps are few: the next section trains one for 600.
#
# The figure is about *this* size, these steps and these shapes, which are the same wherever they are: a task that suits
# a convolution well. Dosovitskiy and others (2021) found the same order when they trained on the 1.3 million pictures
# of ImageNet, and the opposite one with 300 million: what is built in helps those who have seen little, and limits
# those who have seen enough. Two seeds and 300 steps are no measurement of that. On Fashion-MNIST, with 1,840 steps
# each, the Transformer is behind with a hundredth of the pictures and with all, by 4 or 5 %: there, from a tenth on, it
# is not pictures that it lacks ([measured](../docs/picture_claims.md#few-pictures-convolutions-and-attention), one
# seed; three of the Transformer and the small network from a tenth on).
#
# ## 5 · What it looks at
#
# For this we train one more, with finer patches of 4 × 4 pixels: a grid of 7 × 7, so that there is something to see.
# Its positions begin close to 0, with a deviation of 0.02, as is common for such tables. (The package begins with 1,
# like a sentence's. Then what is learned would be hidden among what was drawn.) One training, seed 0:

# %%
FINE, SIDE = 4, 7  # pixels of a patch, patches of a picture
config = VisionTransformerConfig(**SIZES, **STACK | dict(patch_size=FINE))
model = VisionTransformer(config, seed=0, device=device)
model.positions.table.data[:] *= 0.02
looked, kinds = unseen[:200], labels_of_unseen[:200]


def attention_of(model, pictures):
    """Weights (layers, B, H, 1 + N, 1 + N) on the host, the class token first."""
    _, cache = model.logits(pictures)
    return to_host(model.attention(cache))


before = attention_of(model, looked), to_host(model.positions.table.data).copy()
learn(model, pictures, labels, 4e-3, seed=0, steps=600)
after = attention_of(model, looked), to_host(model.positions.table.data)
reached = accuracy(model, unseen, labels_of_unseen)
print(f"{reached:.1%} of the unseen pictures are classified correctly")
assert reached > 0.5

# %% [markdown]
# ### From a layer to all of them
#
# The weights of the class token in a layer say which *rows* it takes from. But above the first layer row $n$ is no
# longer patch $n$: it has taken from others. Abnar and Zuidema (2020) follow the way back, and call it **attention
# rollout**. (Exercise 3 of [lesson 15](15_looking_inside.ipynb) did it for a sentence.)
#
# Take the mean $A$ of the weights over the heads. A layer returns $Z + \text{Attention}(Z)$, of which we know two ways:
# by the residual connection a row stays itself, by attention it takes from others with the weights of $A$. Let both
# count alike. (This is an assumption: norms, values and the feed-forward network are left out.) Then row $t$ after the
# layer is made of the rows $s$ before it in the shares
#
# $$
# R_{ts} = \tfrac12 \left( A_{ts} + [t = s] \right) ,
# \qquad
# \sum_s R_{ts} = \tfrac12 (1 + 1) = 1 .
# $$
#
# If after the first layer row $s$ is made of the patches $u$ in shares $R^{(1)}_{su}$, and after the second row $t$ of
# the rows $s$ in shares $R^{(2)}_{ts}$, then row $t$ holds $\sum_s R^{(2)}_{ts} R^{(1)}_{su}$ of patch $u$. That is a
# matrix product, the later layer on the left:
#
# $$
# R = R^{(L)} \cdots R^{(2)} R^{(1)} .
# $$
#
# Its rows sum to 1 again. Row 0 without its first number says how much of each patch has come to the class token.


# %%
def rollout(weights):
    """From (layers, B, H, 1 + N, 1 + N) how much of each patch comes to the class token, (B, N)."""
    shares = np.eye(weights.shape[-1])
    for layer in weights.mean(axis=2):  # (B, 1 + N, 1 + N), the lowest first
        shares = (layer + np.eye(weights.shape[-1])) / 2 @ shares
    assert np.allclose(shares.sum(axis=-1), 1, atol=1e-5)
    return shares[:, 0, 1:]


on_shape = patches(looked, FINE)[0].mean(axis=-1) > 0  # (B, N): little background in the patch
print(f"{on_shape.mean():.0%} of the patches lie on a shape; the share of them in")
in_rollout = {}
for name, (weights, _) in (("before training", before), ("after", after)):
    of_token = weights[:, :, :, 0, 1:]  # (layers, B, H, N)
    share = (of_token * on_shape[:, None]).sum(-1) / of_token.sum(-1)  # (layers, B, H)
    flow = rollout(weights)
    in_rollout[name] = ((flow * on_shape).sum(axis=-1) / flow.sum(axis=-1)).mean()
    for layer, heads in enumerate(share.mean(axis=1)):
        print(f"    {name:16} layer {layer + 1}, heads:", *(f"{head:4.0%}" for head in heads))
    print(f"    {name:16} rollout:       {in_rollout[name]:4.0%}")
assert in_rollout["after"] > in_rollout["before training"] + 0.05

# %% [markdown]
# Below, three pictures; the weights of the class token, for each head of both layers; and the rollout. Each map is
# scaled to its own largest weight:

# %% tags=["hide-input"]
examples = [int(np.flatnonzero(kinds == kind)[1]) for kind in (0, 1, 2)]
figure, panels = plt.subplots(3, 10, figsize=(10, 3.6))
for row, i in zip(panels, examples, strict=True):
    row[0].imshow(looked[i, :, :, 0], cmap="gray", vmin=-0.5, vmax=4)
    maps = [weights[i, head, 0, 1:] for weights in after[0] for head in range(4)]
    maps.append(rollout(after[0][:, [i]])[0])
    for axes, of_patches in zip(row[1:], maps, strict=True):
        seen = of_patches.reshape(SIDE, SIDE)
        image = axes.imshow(seen / seen.max(), cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    for axes in row:
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
titles = ["picture", *(f"layer {layer}\nhead {head}" for layer in (1, 2) for head in range(1, 5))]
for axes, title in zip(panels[0], [*titles, "rollout"], strict=True):
    axes.set_title(title, fontsize=9)
figure.colorbar(image, ax=panels, shrink=0.8, label="weight, relative to the largest")
plt.show()

# %% [markdown]
# Heads of the second layer look at the shape, though nobody told the network where it is: the labels are all that it
# was given. Not all of that is learned. One of them did so before the training, by chance: a bright patch makes another
# row than a dark one, and random weights prefer the one or the other. The training is what the others have gained, and
# the rollout: about half of it is now on the quarter of the patches that lie on a shape. Some heads of the first layer
# look at what is *not* shape.
#
# Is what is looked at also what is needed? A map alone does not tell ([lesson 15](15_looking_inside.ipynb)). So hide
# it. Of the patches on a shape we cover one half with background: those with most of the rollout, or those with least,
# or a half by chance.


# %%
def accuracy_without(score):
    """The accuracy where of the bright patches the half with the highest scores is covered."""
    ranks = np.argsort(np.argsort(-np.where(bright, score, -np.inf), axis=-1), axis=-1)
    cut, cache = patches(unseen, FINE)
    cut = np.where((ranks < bright.sum(axis=-1, keepdims=True) // 2)[..., None], -0.5, cut)
    return accuracy(model, patches_backward(cut.astype(np.float32), cache), labels_of_unseen)


bright = patches(unseen, FINE)[0].mean(axis=-1) > 0
flow = rollout(attention_of(model, unseen))  # (B, N)
by_chance = np.random.default_rng(31).random(flow.shape)
hidden = {
    name: accuracy_without(score)
    for name, score in (("most", flow), ("by chance", by_chance), ("least", -flow))
}
print(f"nothing covered     {reached:.1%}")
for name, share in hidden.items():
    print(f"the half {name:10} {share:.1%}")
assert hidden["most"] < hidden["least"] - 0.08

# %% [markdown]
# Without the half that it looks at most, little more than guessing is left (a quarter). Without the other half it loses
# less. Here the map tells something. Covering is rough, too: it makes pictures that no training has shown.
#
# ### How far a head looks
#
# A window of a convolution looks at its neighbours. How far does a head look? Dosovitskiy and others (their figure 7)
# take, for each head, the mean distance between the place of a query and those of its keys, weighted by the attention:
#
# $$
# d_h = \frac1N \sum_t \sum_s a^{(h)}_{ts} \, \lVert r_t - r_s \rVert ,
# $$
#
# where $r_n$ is the place of patch $n$ in pixels, and the class token is left out of rows and columns (the weights of a
# row are divided by their sum again). A head that looks everywhere alike has the mean of all distances.

# %%
grid = FINE * np.stack(np.divmod(np.arange(SIDE**2), SIDE), axis=-1)  # (N, 2), pixels
distances = np.sqrt(((grid[:, None] - grid) ** 2).sum(axis=-1))  # (N, N)


def how_far(weights):
    """The mean distance of each head, in pixels, (layers, H)."""
    among = weights[..., 1:, 1:] / weights[..., 1:, 1:].sum(axis=-1, keepdims=True)
    return (among * distances).sum(axis=-1).mean(axis=(1, 3))


far = {"before training": how_far(before[0]), "after": how_far(after[0])}
everywhere = distances.mean()
for name, of_heads in far.items():
    print(f"{name:16}", *(f"{d:5.1f}" for d in of_heads.ravel()), "pixels")
print(f"alike everywhere {everywhere:5.1f}")
assert far["after"].min() > everywhere / 2


# %% [markdown]
# ### Does it know where places lie?
#
# Nobody told the network that patch 8 lies below patch 1. What can it know? Two positions that serve alike should have
# vectors that are alike. We take the mean of all $t_n$ off and compare the cosine of every two:


# %%
def similarity(places):
    """The cosines of all positions with each other, (N, N)."""
    places = places[1:] - places[1:].mean(axis=0)  # without the class token's
    directions = places / np.linalg.norm(places, axis=-1, keepdims=True)
    return directions @ directions.T


alike = similarity(after[1])
apart = distances / FINE  # in patches
side_by_side, farther = alike[apart == 1].mean(), alike[apart > 4].mean()
at_start = similarity(before[1])
print(f"side by side {side_by_side:+.2f}, more than four patches apart {farther:+.2f}")
print(f"at the start {at_start[apart == 1].mean():+.2f} and {at_start[apart > 4].mean():+.2f}")
assert side_by_side > farther + 0.08

# %% tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
looks = ("before training", at_start, GREEN, "^--"), ("after", alike, BLUE, "o-")
for name, table, colour, style in looks:
    means = [table[np.ceil(apart) == distance].mean() for distance in range(1, 9)]
    left.plot(range(1, 9), means, style, color=colour, ms=4, lw=1, label=name)
left.axhline(0, color=BLACK, lw=0.8)
left.set(
    xlabel="distance of two patches, rounded up (patches)", ylabel="mean cosine of their positions"
)
left.set_title("which positions are alike")
left.legend()
tiles = np.full((SIDE * (SIDE + 1) - 1, SIDE * (SIDE + 1) - 1), np.nan)
for n, row in enumerate(alike):
    u, v = (SIDE + 1) * np.array(divmod(n, SIDE))
    tiles[u : u + SIDE, v : v + SIDE] = row.reshape(SIDE, SIDE)
image = right.imshow(tiles, cmap="RdBu_r", vmin=-1, vmax=1)
right.set_xticks(np.arange(3, 56, 8), labels=range(1, 8))
right.set_yticks(np.arange(3, 56, 8), labels=range(1, 8))
right.set(xlabel="column of the patch", ylabel="row of the patch", title="each with all others")
right.grid(False)
figure.colorbar(image, ax=right, shrink=0.8, label="cosine")
plt.show()

# %% [markdown]
# What is visible at this size, and what is not? (One training, seed 0.)
#
# - **Positions: a little.** At the start no two are alike. After 600 steps neighbours are: around the dark red square
#   of a tile on the right, which is the patch itself, the next ones are mostly red. Those three patches away are a
#   little opposite. Farther away the curve has no clear rule: at the border most patches show background, which serves
#   alike wherever it is. Rows and columns as clear as in figure 7 of Dosovitskiy and others are not to be seen.
# - **Local heads: not visible.** In their figure some heads of the lowest layers look at near patches and others far,
#   and all heads of high layers far. Ours look about as far as one that looks everywhere alike, before the training and
#   after it. Theirs have many more layers and saw millions of pictures.
# - **The class token finds the shape: visible**, and tested above.
#
# ## 6 · Exercises
#
# Fill in `answers/ex31.py`, your copy of [lessons/exercises/ex31.py](exercises/ex31.py), and run
# `minitransformer check ex31`. Or copy functions from there into new cells here, fill them in, and run the cell below
# again. The solutions are in [lessons/solutions/ex31.py](solutions/ex31.py).
#
# 1. **`finest_patches`** (10 min). Finer patches show more and cost more. How fine can they be before the comparing of
#    pairs costs more than everything else in a layer?
# 2. **`masked_patches`** (25 min). A picture with holes: a Transformer can learn from pictures that have no labels, if
#    it has to say what was hidden (section 4.6 of Dosovitskiy and others; He and others 2022). What a hole is filled
#    with is learned. Forward and backward.
# 3. **`weights_for_mirrored`** (45 min). Change two arrays of a trained model, so that it says of mirrored pictures
#    what it said of the others. Two things move in a mirror.
# 4. **`larger_positions`** (45 min). A trained model is to see larger pictures, or pictures of another shape. Its
#    patches stay as large, so there are more of them, and for most there is no position. Make them out of those that it
#    has.

# %%
print(check_exercise("ex31", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | a picture | $N = Y/P \cdot X/P$ patches of $P^2 C$ numbers: a sentence of N words |
# | forward | $Z = [c; \, p_1 W + b; \dots; \, p_N W + b] + \mathcal T$, the stack in pre-norm, a head on row 0 |
# | patch and map | a convolution whose stride is its kernel size |
# | backward | $dx = \Pi^{-1} dp$; $dc = \sum_b dz_{b,0}$; $dt_n = \sum_b dz_{b,n}$; of the last output only row 0 has a gradient |
# | order of patches | $\text{stack}(\Pi Z) = \Pi \, \text{stack}(Z)$: shuffling has the effect of another seed |
# | data | a convolution knows that neighbours belong together, and that a thing is the same everywhere; attention has to learn it |
# | rollout | $R = R^{(L)} \cdots R^{(1)}$ with $R^{(l)} = (A^{(l)} + I) / 2$ |
# | traps | rows and columns of a patch exchanged: the gradient check finds nothing; positions that begin too large to see |
#
# **Your own Transformer.** Nothing new to write: your `linear`, `layer_norm`, `multi_head_attention`, `feed_forward`
# and `residual` are a Vision Transformer already, with a reshape before them. Here your file says what a picture is of.
# The weights are the package's, the functions yours, `encoder_layer` in pre-norm among them:

# %%
trained = VisionTransformer(config)  # on the host, whatever the device
trained.flat.data[:] = to_host(model.flat.data)
one = unseen[:1]


def arrays_of(layer):
    """The weights of a layer, as encoder_layer of own.py takes them."""
    attention, network = layer.self_attention, layer.feed_forward
    maps = attention.w_query, attention.w_key, attention.w_value, attention.w_output
    groups = [maps, (network.w_1, network.b_1, network.w_2, network.b_2)]
    for residual in (layer.self_attention_residual, layer.feed_forward_residual):
        groups.append((residual.norm.gamma, residual.norm.beta))
    of_maps, of_network, first_norm, second_norm = (tuple(w.data for w in g) for g in groups)
    return of_maps, first_norm, of_network, second_norm


def facts(linear, encoder_layer, layer_norm):
    cut, _ = patches(one, FINE)
    of_patches = trained.embedding.linear
    x, _ = linear(cut, of_patches.weight.data, of_patches.bias.data)  # (1, N, D)
    first = trained.class_token.token.data[None, None]  # (1, 1, D)
    x = np.concatenate([first, x], axis=1) + trained.positions.table.data
    for layer in trained.stack.layers:
        x, _ = encoder_layer(x, *arrays_of(layer), config.num_heads, pre_norm=True)
    norm, head = trained.stack.norm, trained.head
    x, _ = layer_norm(x, norm.gamma.data, norm.beta.data)
    logits, _ = linear(x[:, 0], head.weight.data, head.bias.data)
    theirs, _ = trained.logits(one)
    yield "of one picture it says what the package says", np.allclose(logits, theirs, atol=1e-4)
    yield f"a {KINDS[theirs.argmax()]}, as the model has it", logits.argmax() == theirs.argmax()


try_yours("encoder_layer", facts)

# %% [markdown]
# `minitransformer check own` says which of them are still to be written.
#
# **Next:** what more than one machine is good for: [lesson 24](24_many_machines.ipynb). [The plan](README.md) has the
# other ways. To train a larger one, `minitransformer train vit` on Fashion-MNIST, or `minitransformer train shapes` for
# the small network of convolutions on all ten shapes; then `minitransformer classify RUN PICTURE --looked-at FILE`
# shows what of a picture it looked at.
