# %% [markdown]
# # 20 · Convolution
#
# **You will** derive the backward of a convolution over time, and see a mistake that no gradient check can
# find; measure how far a stack of convolutions sees, and how little of the gradient comes from the edge; and
# write down a self-attention layer that computes a given convolution.
#
# | | |
# |---|---|
# | In the paper | section 4, on convolutional layers, and their row of table 1 |
# | In the package | `minitransformer/layers/convolution.py`, `layers/gated_linear_unit.py`, `models/convolutional_translator.py` |
# | You need | the chain rule; matrix products; variance; for section 6, what attention is ([lesson 08](08_attention.ipynb)) |
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
import math
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, select_device
from minitransformer.core.backend import to_host
from minitransformer.core.module import FlatParameters, Module
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    GREEN,
    PURPLE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.layers.attention import multi_head_attention, multi_head_attention_weights
from minitransformer.layers.convolution import (
    Convolution1d,
    convolution,
    convolution_backward,
    windows,
    windows_backward,
)
from minitransformer.layers.elman import Elman
from minitransformer.layers.embedding import Embedding, embedding_weight
from minitransformer.layers.gated_linear_unit import (
    gated_linear_unit,
    gated_linear_unit_backward,
)
from minitransformer.layers.linear import Linear
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward

use_style()
device = select_device("cpu")  # "cuda" runs the layer of section 2 on a GPU
rng = np.random.default_rng(20)

# %% [markdown]
# ## 1 · All positions at once, and what it costs
#
# A recurrent layer reads a sentence word by word ([lesson 19](19_recurrence.ipynb)): each state waits for the one
# before. A **convolution** makes each output from a few neighbouring inputs. No output waits for another, and all
# are one large matrix product.
#
# The cost is the view. A language model reads *the keys to the old cabinet near the door* and has to go on with
# *are* or *is*. That depends on *keys*. We replace it by *key*. Which outputs of two layers with random weights move?

# %%
WIDTH = 64
recurrent = Elman(WIDTH, WIDTH, rng)
convolutional = Convolution1d(WIDTH, WIDTH, 3, rng, causal=True)
words = ["the", "keys", "to", "the", "old", "cabinet", "near", "the", "door"]
vectors = {word: rng.standard_normal(WIDTH) for word in sorted({*words, "key"})}
plural = np.stack([vectors[word] for word in words])[None]  # (1, T, D)
singular = np.stack([vectors["key" if word == "keys" else word] for word in words])[None]
moved_convolution = abs(convolutional.forward(plural)[0] - convolutional.forward(singular)[0])
moved_recurrent = abs(recurrent.forward(plural)[0][0] - recurrent.forward(singular)[0][0])
print("how far each output moves:     convolution  recurrent layer")
for t, word in enumerate(words):
    sizes = (moved[0, t].max() for moved in (moved_convolution, moved_recurrent))
    print(f"{word:>29}  " + "".join(f"{size:12.3f}" for size in sizes))
assert moved_convolution[0, 1:4].all()
assert not moved_convolution[0, 4:].any()  # exactly zero
assert moved_recurrent[0, -1].any()

# %% [markdown]
# Three outputs of the convolution move: those with *keys* among their inputs. The output at *door* is the same to
# the last bit, and no training can change that. The recurrent layer carries the difference to the end.
#
# ## 2 · The definition
#
# The output at position $t$ is made from $k$ inputs, its **window**, by $k$ matrices $W_0 \dots W_{k-1}$, the
# **taps** of the **kernel**. Neighbouring taps are $\delta$ positions apart, the **dilation**. A **causal** window
# ends at its own position and sees no future; a **centred** one has its position in the middle. In the
# pictures time runs to the right. The upper row shows which inputs make output $y_5$; the lower row, which
# outputs input $x_5$ has a part in.

# %% tags=["hide-input"]
N, PLACE = 11, 5
KINDS = {
    "causal, δ = 1": [-2, -1, 0],
    "causal, δ = 2": [-4, -2, 0],
    "centred, δ = 1": [-1, 0, 1],
}
figure, panels = plt.subplots(2, 3, figsize=(10, 3.6), sharex=True, sharey=True)
for (title, offsets), column in zip(KINDS.items(), panels.T, strict=True):
    for axes, forward, colour in zip(column, (True, False), (BLUE, VERMILION), strict=True):
        for t, (tap, offset) in ((t, pair) for t in range(N) for pair in enumerate(offsets)):
            s = t + offset
            if 0 <= s < N:
                axes.plot([s, t], [0, 1], "-", color="0.88", lw=1, zorder=1)
            if (t if forward else s) == PLACE:
                arrow = dict(arrowstyle="-|>", color=colour, lw=1.8)
                axes.annotate("", (t, 1), (s, 0), arrowprops=arrow, zorder=2)
                place = (s, -0.5) if forward else (t, 1.5)
                axes.text(*place, f"$W_{tap}$", ha="center", va="center", fontsize=9)
        for height in (0, 1):
            axes.plot(range(N), [height] * N, "o", color="white", mec="0.5", ms=7, zorder=3)
        axes.plot(PLACE, 1 if forward else 0, "o", color=colour, ms=8, zorder=4)
        axes.set(xlim=(-0.6, N - 0.4), ylim=(-0.85, 1.85), xticks=range(0, N, 5))
        axes.set_yticks([0, 1], ["input", "output"])
        axes.grid(False)
    column[0].set_title(title)
    column[1].set_xlabel("position")
panels[0, 0].set_ylabel("what makes $y_5$")
panels[1, 0].set_ylabel("what $x_5$ makes")
plt.show()

# %% [markdown]
# As a formula, with $a$ the tap that stands at the position itself, $k - 1$ in a causal window and $(k - 1) /
# 2$ in a centred one:
#
# $$
# y_t = b + \sum_{j=0}^{k-1} x_{t + (j - a) \delta} \, W_j ,
# $$
#
# and $x$ is 0 outside of the sequence. The $x_t$ are rows of $D$ numbers, the $y_t$ rows of $F$. The same $k$
# matrices serve all positions: what is learned in one place is known in every other. (Mathematicians read the
# kernel from the other end, and call this a *correlation*.)
#
# To compute it, write the $k$ inputs of a window side by side, as one row $c_t$, and the $k$ matrices one
# above the other, as one matrix $W$ $(k D, F)$: then $y_t = c_t W + b$.

# %%
B, T, D, F, k = 2, 9, 3, 4, 3
x = device.asarray(rng.standard_normal((B, T, D)))
weight = device.asarray(rng.standard_normal((k, D, F)))
bias = device.asarray(rng.standard_normal(F))
seen, _ = windows(x, k, causal=True)
y, _ = convolution(x, weight, bias, causal=True)

shape_table(
    {"B": B, "T": T, "D": D, "F": F, "k": k, "kD": k * D},
    x=(x, "B T D", "the input: B sequences of T positions"),
    weight=(weight, "k D F", "the kernel, a matrix for each tap, the earliest position first"),
    bias=(bias, "F", "b"),
    seen=(seen, "B T kD", "the windows: k positions side by side, zeros where there is none"),
    y=(y, "B T F", "the output: as many positions as there were"),
)

# %%
inputs = tuple(to_host(array) for array in (x, weight, bias))
x, weight, bias = inputs
third = x[:, 1] @ weight[0] + x[:, 2] @ weight[1] + x[:, 3] @ weight[2] + bias
assert np.allclose(to_host(y)[:, 3], third)  # the formula for t = 3

# %% [markdown]
# ## 3 · The backward pass
#
# We write $dx$ for $\partial L / \partial x$, the gradient of a loss $L$. Given $dy$, we want $dW$, $db$ and
# $dx$. The lower row of the picture shows the result: $x_5$ has a part in three outputs, so its gradient comes
# from these three, each by the tap on its arrow. From left to right, the taps stand in the opposite order.
#
# **Step 1: the map of windows.** In $y_t = c_t W + b$, entry by entry $y_{tn} = \sum_m c_{tm} W_{mn} + b_n$, a
# weight serves all positions, a bias too, and $c_{tm}$ serves the outputs of its own position. A variable that
# serves many gets the sum over all it serves (in a batch $\sum_t$ runs over the positions of all sequences):
#
# $$
# dW_{mn} = \sum_t c_{tm} \, dy_{tn}
# \qquad
# db_n = \sum_t dy_{tn}
# \qquad
# dc_{tm} = \sum_n dy_{tn} \, W_{mn} .
# $$
#
# Take $c$ and $W$ apart into taps again. The part of $c_t$ that belongs to tap $j$ is $x_{t + (j - a)
# \delta}$, so
#
# $$
# dW_j = \sum_t x_{t + (j - a) \delta}^\top \, dy_t
# \qquad
# dc_{t,j} = dy_t \, W_j^\top .
# $$
#
# **Step 2: the windows.** $x_s$ stands in the windows of several positions, once for each tap. It is under tap
# $j$ where $t + (j - a) \delta = s$, that is at $t = s - (j - a) \delta$. It gets the sum:
#
# $$
# \boxed{ \;
# dx_s = \sum_{j=0}^{k-1} dc_{s - (j - a) \delta,\, j} = \sum_{j=0}^{k-1} dy_{s - (j - a) \delta} \, W_j^\top
# \; }
# $$
#
# with $dy = 0$ outside of the sequence. Compare it with the forward: the same taps, transposed, with a minus
# sign in front of the distance. **It is a convolution of $dy$ with the kernel turned round.** What looked back
# now looks ahead: the gradient of the past comes from the future.
#
# To turn *time* round does the same: run $dy$ from the end to the beginning through a causal convolution with the
# matrices $W_j^\top$, and read the result from the end.


# %%
def causal_convolution(x, weight, bias):
    y, cache = convolution(x, weight, bias, causal=True)
    return y, (cache, weight)


def backward_in_turned_time(dy, cache):
    cache, weight = cache
    _, dweight, dbias = convolution_backward(dy, cache)
    dx, _ = convolution(dy[:, ::-1], weight.swapaxes(1, 2), causal=True)  # (B, T, D)
    return dx[:, ::-1], dweight, dbias


report = check_pair(causal_convolution, backward_in_turned_time, inputs)
assert report.right
print(report)

# %% [markdown]
# ## 4 · The code of the package, and two mistakes
#
# `linear_backward` is step 1. `windows_backward` is step 2: each tap's part of $dc$ is added where it was taken from.
# (A `mask` marks tokens; padding counts as zeros.)

# %%
source_of(convolution, convolution_backward, windows, windows_backward)

# %%
report = check_module(Convolution1d(D, F, k, rng, dilation=2, causal=True), x)
assert report.right
print(report)

# %% [markdown]
# PyTorch does the same, with the features before the positions; to six digits and more:

# %%
if find_spec("torch"):
    import torch

    arrays = (x.swapaxes(1, 2), weight.transpose(2, 1, 0), bias)  # (B, D, T), (F, D, k), (F,)
    of_x, of_weight, of_bias = (torch.from_numpy(a.copy()).requires_grad_() for a in arrays)
    padded = torch.nn.functional.pad(of_x, (k - 1, 0))  # causal
    of_torch = torch.nn.functional.conv1d(padded, of_weight, of_bias)  # (B, F, T)
    y, cache = convolution(x, weight, bias, causal=True)
    dx, dweight, _ = convolution_backward(y, cache)
    of_torch.backward(of_torch.detach())
    for name, ours, theirs in (
        ("y", y.swapaxes(1, 2), of_torch.detach()),
        ("dx", dx.swapaxes(1, 2), of_x.grad),
        ("dW", dweight.transpose(2, 1, 0), of_weight.grad),
    ):
        print(f"{name:2} differs by at most {abs(ours - theirs.numpy()).max():.0e}")
        assert np.allclose(ours, theirs, atol=1e-6)

# %% [markdown]
# ### The kernel not turned round
#
# The first mistake is to send $dy$ through the same convolution, with transposed matrices and nothing else:


# %%
def backward_not_turned(dy, cache):
    cache, weight = cache
    _, dweight, dbias = convolution_backward(dy, cache)
    dx, _ = convolution(dy, weight.swapaxes(1, 2), causal=True)
    return dx, dweight, dbias


report = check_pair(causal_convolution, backward_not_turned, inputs)
assert not report.right
print(report)


# %% [markdown]
# ### The window that sees the future
#
# The second is a causal window that ends one position too late:


# %%
def late_convolution(x, weight, bias):
    """The window of position t ends at t + 1."""
    longer = np.concatenate([x, np.zeros_like(x[:, :1])], axis=1)  # (B, T + 1, D)
    y, cache = convolution(longer, weight, bias, causal=True)
    return y[:, 1:], cache


def late_convolution_backward(dy, cache):
    dlonger = np.concatenate([np.zeros_like(dy[:, :1]), dy], axis=1)  # (B, T + 1, F)
    dx, dweight, dbias = convolution_backward(dlonger, cache)
    return dx[:, :-1], dweight, dbias


report = check_pair(late_convolution, late_convolution_backward, inputs)
assert report.right  # !
print(report)

# %% [markdown]
# The checker finds nothing, and it is right: this *is* the gradient of this function. **A gradient check asks
# whether backward fits forward, not whether forward is what you wanted.** A language model with this layer would
# see the word that it has to predict, and learn to copy it. It could write nothing, since then the next word is
# not there yet.
#
# So we need another test: $\partial y_t / \partial x_s$ must be zero for all $s \gt t$. Let $dy$ be random at
# position $t$ and zero elsewhere. Then $dx_s$ is zero where $x_s$ has no part in $y_t$:


# %%
def size_of_derivatives(forward, backward):
    """How large dx at s is for a random dy at t alone, (T, T) with t down and s across."""
    y, cache = forward(*inputs)
    sizes = np.zeros((T, T))
    for t in range(T):
        dy = np.zeros_like(y)
        dy[:, t] = rng.standard_normal((B, F))
        dx, *_ = backward(dy, cache)
        sizes[t] = np.linalg.norm(dx, axis=(0, 2))
    return sizes


derivatives = {
    "causal": size_of_derivatives(causal_convolution, backward_in_turned_time),
    "a window that ends too late": size_of_derivatives(late_convolution, late_convolution_backward),
}
for name, sizes in derivatives.items():
    print(f"{name:<28} looks into the future: {np.triu(sizes, 1).any()}")
assert not np.triu(derivatives["causal"], 1).any()
assert np.triu(derivatives["a window that ends too late"], 1).any()

# %% [markdown]
# ## 5 · How far a stack sees
#
# One layer sees $k$ positions, over a distance of $(k - 1) \delta$. A second layer sees $k$ outputs of the first,
# each with a window of its own. So each layer $l$ adds its $(k - 1) \delta_l$ to the view:
#
# $$
# \text{view after } L \text{ layers} = 1 + \sum_{l=1}^{L} (k - 1) \, \delta_l .
# $$
#
# With $\delta = 1$ everywhere that is $1 + L (k - 1)$: it grows linearly. With dilations $1, k, k^2, \dots$ it
# is $1 + (k - 1)(1 + k + \dots + k^{L-1}) = k^L$: it grows exponentially (van den Oord and others, 2016, with
# $k = 2$). Turned the other way, this is the **path length** of the paper's table 1: how many layers it takes
# until two positions at distance $d$ are connected at all,
#
# $$
# L_{\text{plain}} = \left\lceil \frac{d}{k - 1} \right\rceil
# \qquad
# L_{\text{dilated}} = \lceil \log_k (d + 1) \rceil ,
# $$
#
# and the second is the number of digits of $d$ in base $k$. [Lesson 21](21_why_self_attention.ipynb) measures both.
#
# ### Connected, but by how much?
#
# How much of the gradient comes from each distance? In a stack of random linear layers, $D$ features wide, this can
# be computed. Let the weights be independent, with mean 0 and variance $1 / (k D)$. Then each
# entry of $dy_t W_j^\top$ is a sum of $D$ independent terms with mean 0, so its mean square is $\lVert dy_t
# \rVert^2 / (k D)$; and it has $D$ entries. In the sum over $j$ the mixed terms have the mean 0, too:
#
# $$
# \mathbb E \lVert dx_s \rVert^2 = \sum_{j} \frac1k \, \mathbb E \lVert dy_{s - (j - a) \delta} \rVert^2 .
# $$
#
# So the squared gradient spreads like a random walk: at each layer it goes back by $0, \delta, \dots$ or $(k -
# 1) \delta$ positions, each with probability $1 / k$. After $L$ layers the distance is a sum of $L$ independent
# numbers. **Such a sum is near-Gaussian**, and variances of independent numbers add up. For $\delta = 1$ and $k
# = 3$ the numbers are 0, 1 or 2, with mean 1 and variance $(1 + 0 + 1) / 3$. So the distance has the mean $L$
# and the variance $\frac23 L$.
#
# Luo and others (2016) called this the **effective receptive field**: the view grows like $L$, the width of
# what comes through it like $\sqrt L$. With dilations $1, k, k^2, \dots$ each distance below $k^L$ is the sum of
# such steps in one way only: its $L$ digits in base $k$. So each has one path, and the same share $k^{-L}$.
#
# We measure two stacks with $k = 3$ and the same view of 27 positions, over 200 draws of the weights:


# %%
def gradients_through(dilations, length, seed, k=3, width=8):
    """The gradient of the input, (length, width), from dy at the last position.

    The layers are causal, with random weights of variance 1 / (k · width).
    """
    drawn = np.random.default_rng(seed)
    dx = np.zeros((1, length, width))
    dx[:, -1] = drawn.standard_normal(width)
    for dilation in dilations:
        weight = drawn.standard_normal((k, width, width)) / math.sqrt(k * width)
        _, cache = convolution(np.zeros_like(dx), weight, None, dilation, causal=True)
        dx, _, _ = convolution_backward(dx, cache)
    return dx[0]


# %%
shares = {}
for name, dilations in (("plain, 13 layers", [1] * 13), ("dilated, 3 layers", [1, 3, 9])):
    squares = np.stack(
        [(gradients_through(dilations, 27, seed) ** 2).sum(-1)[::-1] for seed in range(200)]
    )  # (seeds, distance)
    # The mean, as shares of all, and its standard error.
    total = squares.sum(axis=1).mean()
    shares[name] = squares.mean(axis=0) / total, squares.std(axis=0) / total / math.sqrt(200)

walk = np.ones(1)
for _ in range(13):
    walk = np.convolve(walk, np.ones(3) / 3)  # the distribution of the sum of 13 steps
expected_shares = {"plain, 13 layers": walk, "dilated, 3 layers": np.full(27, 1 / 27)}
edge = {name: share[-1] for name, (share, _) in shares.items()}
for name, share in edge.items():
    print(f"{name:<18} the last position in view has {share:.1e} of the squared gradient")
assert edge["plain, 13 layers"] < 1e-4 < edge["dilated, 3 layers"]

# %% [markdown]
# The share of each distance, with bars of two standard errors:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.9))
styles = zip(shares.items(), (BLUE, VERMILION), "os", strict=True)
for (name, (share, error)), colour, marker in styles:
    axes.errorbar(range(27), share, 2 * error, fmt=marker, ms=4, color=colour, lw=1, label=name)
    axes.plot(expected_shares[name], "-", color=BLACK, lw=1)
axes.plot([], [], "-", color=BLACK, lw=1, label="theory")
axes.set(xlabel="distance back (positions)", ylabel="share of the squared gradient")
axes.legend(loc="upper right", fontsize=9.5)
axes.set_ylim(0, 0.17)
plt.show()

# %% [markdown]
# The plain stack sees 27 positions, and nearly all of its squared gradient comes from about thirteen in the
# middle. In the dilated stack all positions have about the same share.
#
# This is before training, without gates and residual connections. Section 7 measures the shares with them, and what
# they do to learning.
#
# ## 6 · A convolution made of attention
#
# **A self-attention layer can be any convolution**, as closely as you like, with one head for each tap and well
# chosen positions (Cordonnier, Loukas and Jaggi, 2020). We write its weights down.
#
# Head $j$ has to look, from position $t$, at $u = t + (j - a) \delta$, and at nothing else. So its score for a key
# at position $s$ should be largest at $s = u$. Take
#
# $$
# -\beta (s - u)^2 = \beta \left( 2 s u - s^2 \right) - \beta u^2 .
# $$
#
# The last term is the same for all keys, and the softmax does not see what is added to a whole row. What is
# left is a dot product of a query that knows $u$ and a key that knows $s$:
#
# $$
# \text{query} = \beta \, (u, 1) = \beta \, (t + (j - a) \delta, \, 1)
# \qquad
# \text{key} = (2 s, \, - s^2) .
# $$
#
# Both are linear in the place of a token, its square, and 1. So we give each token these three features beside
# its $x$. The weight of the neighbour $s = u \pm 1$ is then $e^{-\beta}$ times that of $s = u$. $\beta$ is an
# inverse temperature: the larger, the sharper.
#
# The values are $x$ itself. The output matrix multiplies what head $j$ found by $W_j$, and adds up all heads.
# For the bias, one head carries the feature that is always 1.
#
# What if $u$ lies outside of the sequence? There the convolution sees zeros. We put an **empty token**, whose
# $x$ is 0, before the first place and one after the last. For every $u$ further out it is the nearest key, so
# it wins.


# %%
def attention_for(kernel, bias, offsets, beta):
    """The four matrices of a multi-head attention, one head for each tap, that convolves."""
    taps, d_in, d_out = kernel.shape
    head_width = max(d_in + 1, -(-d_out // taps), -(-(d_in + 3) // taps))
    width = taps * head_width
    place, square, one = d_in, d_in + 1, d_in + 2  # where a token has them, behind its x
    w_query, w_key, w_value, w_output = np.zeros((4, width, width))
    for tap, offset in enumerate(offsets):
        first = tap * head_width  # the first feature of this head
        w_query[place, first] = 1  # u = t · 1 + 1 · offset
        w_query[one, first] = offset
        w_query[one, first + 1] = 1
        w_key[place, first] = 2
        w_key[square, first + 1] = -1
        w_value[:d_in, first : first + d_in] = np.eye(d_in)
        w_output[first : first + d_in, :d_out] = kernel[tap]
    w_value[one, d_in] = 1  # the first head also carries the one,
    w_output[d_in, :d_out] = bias  # and this makes the bias of it
    w_query *= beta * math.sqrt(head_width)  # attention divides scores by √d_k
    return w_query, w_key, w_value, w_output


def with_places(x, width):
    """x (B, n, D_in) between two empty tokens, with place, square and one: (B, n + 2, width)."""
    batch, n, d_in = x.shape
    places = np.arange(-1, n + 1)
    tokens = np.zeros((batch, n + 2, width))
    tokens[:, 1:-1, :d_in] = x
    tokens[..., d_in : d_in + 3] = np.stack([places, places**2, np.ones(n + 2)], axis=-1)
    return tokens


def convolve_by_attention(x, kernel, bias, offsets, beta):
    """y (B, n, D_out), and the attention weights (B, k, n + 2, n + 2)."""
    weights = attention_for(kernel, bias, offsets, beta)
    tokens = with_places(x, len(weights[0]))
    z, cache = multi_head_attention(tokens, tokens, tokens, *weights, len(kernel))
    return z[:, 1:-1, : kernel.shape[-1]], multi_head_attention_weights(cache)


# %% [markdown]
# A random convolution, $k = 3$, from 4 features to 5, over 12 positions, once causal with dilation 2 and
# once centred. The largest error over all outputs, for $\beta$ from 1 to 32:

# %%
x = rng.standard_normal((2, 12, 4))
kernel, bias = rng.standard_normal((3, 4, 5)), rng.standard_normal(5)
betas = np.array([1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32])
errors = {}
for name, dilation, causal in (("causal, δ = 2", 2, True), ("centred, δ = 1", 1, False)):
    offsets = [(tap - (2 if causal else 1)) * dilation for tap in range(3)]
    y, _ = convolution(x, kernel, bias, dilation, causal)
    found = (convolve_by_attention(x, kernel, bias, offsets, beta)[0] for beta in betas)
    errors[name] = np.array([abs(z - y).max() for z in found])
    at_20 = errors[name][betas == 20].item()
    print(f"{name:<15} error at β = 20: {at_20:.0e}")
    assert at_20 < 1e-6

_, attended = convolve_by_attention(x, kernel, bias, [-4, -2, 0], 20)

# %% [markdown]
# At $\beta = 20$ it is the convolution to better than $10^{-6}$, at the ends too. Below are the weights of the three
# heads of the causal one, and the errors. They fall as $e^{-\beta}$, the thin line:

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 4, figsize=(10, 3), width_ratios=[1, 1, 1, 1.3])
ticks = [0, 4, 8, 13], ["empty", "3", "7", "empty"]
for tap, axes in enumerate(panels[:3]):
    image = axes.imshow(attended[0, tap, 1:-1], cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    axes.set(title=f"head {tap}, for $W_{tap}$", xlabel="key")
    axes.set_xticks(*ticks, rotation=90, fontsize=9)
    axes.set_yticks([0, 11])
    axes.grid(False)
panels[0].set_ylabel("query")
figure.colorbar(image, ax=panels[:3], shrink=0.55, label="attention weight")
axes = panels[3]
for (name, found), colour, marker in zip(errors.items(), (BLUE, VERMILION), "os", strict=True):
    axes.semilogy(betas, found, marker, ms=5, mfc="none", color=colour, label=name)
axes.semilogy(betas, np.exp(-betas), "-", color=BLACK, lw=0.8, label=r"$e^{-\beta}$")
axes.set(xlabel=r"inverse temperature $\beta$", ylabel="largest error")
axes.legend(fontsize=9, loc="lower left")
plt.show()

# %% [markdown]
# Head 0 looks four back. Its first four queries find nothing there, and look at the empty token.
#
# So what a convolution can do, attention can do as well. And more: here queries and keys were made of places
# alone. With content in them, a head can look for *the last noun*, wherever it stands. A convolution cannot. The
# price is in the picture: $n^2$ scores for each head, of which $n$ are used.
#
# ## 7 · In view or not
#
# Last, a task that the view decides. Random tokens come in, eight different ones. At each position the model has
# to say **the token that stood ten positions before**. Guessing has the loss $\ln 8$. We train stacks of causal
# convolutions, $k = 3$, each with sums around it and a **gated linear unit** behind it: of its $2 D$ features one
# half is multiplied by the logistic function of the other ([appendix 91](91_the_variances_of_gates.ipynb)).


# %%
class CausalStack(Module):
    """Embedding, gated causal convolutions with sums around them, and logits."""

    def __init__(self, vocabulary, width, dilations, rng):
        self.embedding = Embedding(embedding_weight(vocabulary, width, rng))
        self.layers = [
            Convolution1d(width, 2 * width, 3, rng, dilation=dilation, causal=True)
            for dilation in dilations
        ]
        for layer in self.layers:
            layer.weight.data *= math.sqrt(4.5)  # to variance 3 / (k D), as in appendix 91
        self.output = Linear(width, vocabulary, rng)

    def forward(self, ids):
        x, embedding_cache = self.embedding.forward(ids)  # (B, T, D)
        caches = []
        for layer in self.layers:
            h, layer_cache = layer.forward(x)  # (B, T, 2 D)
            h, gate_cache = gated_linear_unit(h)  # (B, T, D)
            x = (x + h) * math.sqrt(0.5)
            caches.append((layer_cache, gate_cache))
        logits, output_cache = self.output.forward(x)  # (B, T, V)
        return logits, (embedding_cache, caches, output_cache)

    def backward(self, dlogits, cache):
        embedding_cache, caches, output_cache = cache
        dx = self.output.backward(dlogits, output_cache)
        layers = zip(self.layers, caches, strict=True)
        for layer, (layer_cache, gate_cache) in reversed(list(layers)):
            dx = dx * math.sqrt(0.5)
            dx = dx + layer.backward(gated_linear_unit_backward(dx, gate_cache), layer_cache)
        self.embedding.backward(dx, embedding_cache)
        return dx  # of the embedded tokens, (B, T, D)


BACK, TOKENS, STEPS = 10, 8, 300


def batch_of(drawn):
    """ids (B, T) from 1 to 8, and what to say: the id of BACK positions before, 0 for none yet."""
    ids = drawn.integers(1, TOKENS + 1, (16, 40))
    targets = np.zeros_like(ids)
    targets[:, BACK:] = ids[:, :-BACK]
    return ids, targets


def share_at_first(dilations, seed):
    """Of the squared gradient of what the last position says, that from BACK positions before."""
    drawn = np.random.default_rng(seed)
    model = CausalStack(TOKENS + 1, 32, dilations, drawn)
    logits, cache = model.forward(batch_of(drawn)[0])
    dlogits = np.zeros_like(logits)
    dlogits[:, -1] = drawn.standard_normal(dlogits[:, -1].shape)
    squares = (model.backward(dlogits, cache) ** 2).sum(axis=(0, 2))[::-1]  # by distance
    return squares[BACK] / squares.sum()


def train(dilations, seed):
    """The losses of a training."""
    drawn = np.random.default_rng(seed)
    model = CausalStack(TOKENS + 1, 32, dilations, drawn)
    flat = FlatParameters(model)
    adam, losses = Adam(flat), []
    for step in range(STEPS):
        ids, targets = batch_of(drawn)
        logits, cache = model.forward(ids)
        (loss, _), loss_cache = cross_entropy(logits, targets)
        flat.grad[:] = 0
        model.backward(cross_entropy_backward(1.0, loss_cache), cache)
        adam.step(3e-3 * min(1, (step + 1) / 20))
        losses.append(float(loss))
    return losses


STACKS = {
    "plain, 4 layers": [1] * 4,
    "plain, 5 layers": [1] * 5,
    "plain, 7 layers": [1] * 7,
    "dilated, 3 layers": [1, 3, 9],
}
trained = {
    name: np.array([train(dilations, seed) for seed in range(3)])
    for name, dilations in STACKS.items()
}
final = {name: losses[:, -20:].mean(axis=1) for name, losses in trained.items()}  # of each seed
for name, dilations in STACKS.items():
    view = 1 + 2 * sum(dilations)
    at_end = ", ".join(f"{loss:.3f}" for loss in final[name])
    print(f"{name:<18} sees {view:>2} positions; loss at the end, three seeds: {at_end}")
    shares = [share_at_first(dilations, seed) for seed in range(3)]
    print(" " * 19 + "share of the gradient at first:", *(f"{share:.1e}" for share in shares))

assert (final["plain, 4 layers"] > 0.97 * math.log(TOKENS)).all()  # 10 before is not in a view of 9
assert (final["dilated, 3 layers"] < 0.1).all()
assert (final["plain, 7 layers"] < final["plain, 4 layers"] / 2).all()
assert share_at_first([1] * 5, 0) < 1e-3 < share_at_first([1] * 7, 0) < 1e-2

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4))
styles = zip(trained.items(), (VERMILION, PURPLE, BLUE, GREEN), ("--", ":", "-", "-."), strict=True)
for (name, losses), colour, dashes in styles:
    smooth = np.array([np.convolve(row, np.ones(5) / 5, "valid") for row in losses])
    axes.plot(np.arange(3, STEPS - 1), smooth.T, ls=dashes, color=colour, lw=1.3)
    axes.plot([], [], ls=dashes, color=colour, label=f"{name}: sees {1 + 2 * sum(STACKS[name])}")
axes.axhline(math.log(TOKENS), color=BLACK, lw=1)
axes.annotate("ln 8, guessing", (228, math.log(TOKENS)), (0, 6), textcoords="offset points")
axes.set(
    xlabel="step", ylabel="loss (nats per token), mean of 5 steps", ylim=(0, 3), xlim=(0, STEPS)
)
axes.legend(title="three trainings each", loc="upper right", bbox_to_anchor=(1, 0.68))
plt.show()

# %% [markdown]
# Ten before is the eleventh position of a view. Four layers see nine, and never do better than guessing. A view of
# eleven holds the token at its very edge. There it *can* be learned, but for long the loss does not move: with gates
# and sums, too, nearly no gradient comes from there at first. With two more layers its share is more than twenty times
# as large, and the wait about a third as long. The dilated stack has the largest share, and learns first.
#
# Here we knew how far back the answer stands. In sentences nobody knows it beforehand. So the convolutional
# translator, too, has attention from its decoder to its encoder, and the Transformer has attention alone.
#
# ## 8 · Exercises
#
# Fill in `answers/ex20.py`, your copy of [lessons/exercises/ex20.py](exercises/ex20.py), or copy its functions into
# cells here, and run the cell below or `minitransformer check ex20`. Solutions:
# [lessons/solutions/ex20.py](solutions/ex20.py).
#
# 1. **`receptive_field`** (10 min). Some layers keep only every second or third output, as in networks for images.
#    How far does such a stack see?
# 2. **`separable_convolution`** (45 min). First each feature alone through time, then all features of a position
#    together: little more than a $k$-th of the weights and of the work, where there are many features. Derive the
#    backward.
# 3. **`convolution_step`** (45 min). When a decoder writes, words come one by one. What has to be kept for a step to
#    cost one window only?

# %%
print(check_exercise("ex20", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | forward | $y_t = b + \sum_j x_{t + (j - a) \delta} W_j$; $a = k - 1$ causal, $(k - 1) / 2$ centred; 0 outside |
# | backward | $dx_s = \sum_j dy_{s - (j - a) \delta} W_j^\top$: the kernel turned round |
# | parameters | $dW_j = \sum_t x_{t + (j - a) \delta}^\top dy_t, \quad db = \sum_t dy_t$ |
# | shapes | $x$ (B, T, D), $W$ (k, D, F), windows (B, T, k D), $y$ (B, T, F) |
# | view | $1 + (k - 1) \sum_l \delta_l$: $1 + L (k - 1)$ plain, $k^L$ with dilations $1, k, k^2, \dots$ |
# | what comes through | plain: near-Gaussian, width $\propto \sqrt L$; dilated: all alike |
# | trap | a window that sees the future passes the gradient check; test $\partial y_t / \partial x_s = 0$ for $s \gt t$ |
# | and attention | one head for each tap and sharp scores $-\beta (s - u)^2$ make a convolution, at $O(n^2)$ |
#
# **Your own Transformer.** It has no convolutions: `minitransformer check own` asks for nothing new here.
#
# **Next:** the three kinds of layers side by side, in [lesson 21](21_why_self_attention.ipynb).
