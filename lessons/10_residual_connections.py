# %% [markdown]
# # 10 · Residual connections and depth
#
# **You will** see deep networks fail where shallow ones do not. You will derive what a sum, and a LayerNorm
# before or after it, does to a gradient on its way down, and measure each claim layer by layer. And you will
# find out why the paper's form needs a warm-up and the other hardly does.
#
# | | |
# |---|---|
# | In the paper | section 3.1: $\text{LayerNorm}(x + \text{Sublayer}(x))$; residual networks are He, Zhang, Ren and Sun, *Deep Residual Learning for Image Recognition* (2016) |
# | In the package | `minitransformer/layers/residual.py` |
# | You need | the chain rule; variances of sums and products of independent numbers |
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
from minitransformer.cases.layers import ResidualLinear
from minitransformer.core.backend import to_host
from minitransformer.core.module import FlatParameters, Module
from minitransformer.core.twins import accelerated
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    shape_table,
    use_style,
)
from minitransformer.course.stops import show, try_yours
from minitransformer.data.text.batches import Batch
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.residual import ResidualConnection, residual, residual_backward
from minitransformer.models.transformer import Transformer
from minitransformer.optim.adam import Adam

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(10)

# %% [markdown]
# ## 1 · Deeper should not be worse
#
# Add a layer to a network. The new network can do all that the old one could: the new layer only has to
# compute $f(x) = x$. So on the *training* data a deeper network should never end with a larger loss. Let us see.
#
# A block is a feed-forward network: two linear maps with a ReLU between them. We wire a stack of $n$ blocks
# in five ways:
#
# | | |
# |---|---|
# | plain | $y = f(x)$ |
# | plain, normed | $y = \text{LayerNorm}(f(x))$ |
# | sum | $y = x + f(x)$ |
# | post-norm, the paper's | $y = \text{LayerNorm}(x + f(x))$ |
# | pre-norm | $y = x + f(\text{LayerNorm}(x))$, and one LayerNorm after the last block |


# %%
class Block(Module):
    def __init__(self, width, wiring, rng):
        self.wiring = wiring
        self.f = FeedForward(width, width, rng)
        if wiring == "normed":
            self.norm = LayerNorm(width)
        elif wiring in ("post", "pre"):
            self.residual = ResidualConnection(width, norm=wiring)

    def forward(self, x):
        if self.wiring == "plain":
            return self.f.forward(x)
        if self.wiring == "normed":
            h, f_cache = self.f.forward(x)
            y, norm_cache = self.norm.forward(h)
            return y, (f_cache, norm_cache)
        if self.wiring == "sum":
            h, f_cache = self.f.forward(x)
            z, sum_cache = residual(x, h)
            return z, (f_cache, sum_cache)
        h, enter_cache = self.residual.enter(x)
        h, f_cache = self.f.forward(h)
        y, leave_cache = self.residual.leave(x, h)
        return y, (enter_cache, f_cache, leave_cache)

    def backward(self, dy, cache):
        if self.wiring == "plain":
            return self.f.backward(dy, cache)
        if self.wiring == "normed":
            f_cache, norm_cache = cache
            return self.f.backward(self.norm.backward(dy, norm_cache), f_cache)
        if self.wiring == "sum":
            f_cache, sum_cache = cache
            dx, dh = residual_backward(dy, sum_cache)
            return dx + self.f.backward(dh, f_cache)
        enter_cache, f_cache, leave_cache = cache
        dx, dh = self.residual.leave_backward(dy, leave_cache)
        return dx + self.residual.enter_backward(self.f.backward(dh, f_cache), enter_cache)


class Stack(Module):
    """n blocks, one after the other; backward returns dx in front of each, for us to look at."""

    def __init__(self, width, depth, wiring, rng):
        self.blocks = [Block(width, wiring, rng) for _ in range(depth)]
        self.norm = LayerNorm(width) if wiring == "pre" else None

    def forward(self, x):
        caches = []
        for block in self.blocks:
            x, cache = block.forward(x)
            caches.append(cache)
        y, norm_cache = self.norm.forward(x) if self.norm else (x, None)
        return y, (caches, norm_cache)

    def backward(self, dy, cache):
        """Gradients dx in front of each block, from the first to the last, and after the last."""
        caches, norm_cache = cache
        gradients = [self.norm.backward(dy, norm_cache) if self.norm else dy]
        for block, block_cache in zip(reversed(self.blocks), reversed(caches), strict=True):
            gradients.append(block.backward(gradients[-1], block_cache))
        return gradients[::-1]


WIRINGS = {  # wiring: name, colour, dashes, marker
    "plain": ("plain", VERMILION, "--", "s"),
    "normed": ("plain, normed", PURPLE, ":", "v"),
    "sum": ("sum", ORANGE, (0, (5, 1, 1, 1, 1, 1)), "^"),
    "post": ("post-norm", GREEN, "-.", "D"),
    "pre": ("pre-norm", BLUE, "-", "o"),
}

# %% [markdown]
# The task is to compute three smooth functions of 32 random numbers. There are 128 examples, all seen in every
# step, and 70 steps of Adam. We ask whether a network *can be trained*, not whether it generalises: only the
# training loss counts. Each stack is trained from three random starts:

# %%
WIDTH, STEPS, STARTS = 32, 70, 3
inputs = rng.standard_normal((128, WIDTH)).astype(np.float32)
directions = rng.standard_normal((WIDTH, 3)) / np.sqrt(WIDTH)
wanted = np.sin(2 * inputs @ directions).astype(np.float32)  # (128, 3)
variance = wanted.var()


def final_loss(wiring, depth, learning_rate=1e-3, warmup=1, steps=STEPS, seed=0):
    """Mean squared error after training, relative to the variance of what is wanted."""
    stack = Stack(WIDTH, depth, wiring, np.random.default_rng(seed)).to(device)
    flat = FlatParameters(stack)
    adam = Adam(flat)
    x, goal = device.asarray(inputs), device.asarray(wanted)
    last = []
    for step in range(1, steps + 1):
        y, cache = stack.forward(x)
        error = y[:, :3] - goal  # the first three features are the answer
        dy = device.xp.zeros_like(y)
        dy[:, :3] = error * (2 / error.size)
        flat.grad.fill(0)
        stack.backward(dy, cache)
        adam.step(learning_rate * min(1, step / warmup))
        if step > steps - 5:
            last.append(float((error * error).mean()))
    return np.mean(last) / variance


depths = [2, 4, 8, 16, 32]
losses = {}  # (depth, start) for each wiring
with accelerated():  # the faster twins of the layers: the same results sooner
    for wiring in WIRINGS:
        found = [[final_loss(wiring, n, seed=s) for s in range(STARTS)] for n in depths]
        losses[wiring] = np.array(found)
for wiring in ("plain", "normed"):
    assert np.all(losses[wiring][-1] > 3 * losses[wiring].min(axis=0))  # from each start
assert losses["sum"][-1].min() > 1
assert np.all(np.diff(losses["post"][:4], axis=0) < 0)
assert np.all(np.diff(losses["pre"], axis=0) < 0)

# %% [markdown]
# Drawn is the final loss against the depth. The faint marks are the three starts, the lines their medians:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4.6))
for wiring, (name, colour, dashes, marker) in WIRINGS.items():
    axes.loglog(depths, losses[wiring], marker, color=colour, ms=4, alpha=0.35)
    median = np.median(losses[wiring], axis=1)
    axes.loglog(depths, median, color=colour, ls=dashes, marker=marker, label=name)
axes.axhline(1, color=BLACK, ls=":", lw=1.2)
axes.text(2, 1.15, "no better than a constant", fontsize=9.5)
axes.set(xlabel="blocks", ylabel="training loss, relative to a constant")
axes.set_xticks(depths, depths)
axes.minorticks_off()
axes.legend()
plt.show()

# %% [markdown]
# From some depth on, plain blocks get worse the more there are, with LayerNorm or without. It is no
# overfitting: these are the data they are trained on. The sum alone is no cure: with 32 blocks it ends above a
# constant. The two that have both, the sum and LayerNorm, gain from depth, from each of the three starts:
# post-norm up to 16 blocks, and pre-norm to the end.
#
# He et al. found the same with images, and called it *degradation*. Their gradients had a healthy size all the way
# down; the optimisation failed. Our normed stack is like theirs. The plain one has a cause of its own (section 5).
#
# ## 2 · The definition
#
# A residual connection adds to $x$ what a sublayer $f$ makes of it:
#
# $$
# z = x + \text{Dropout}(h), \qquad h = f(x) .
# $$
#
# The sublayer no longer produces the result, only a *correction* to it. With small weights the block is near
# the identity, the very layer that a deeper network needs in order to be no worse.

# %%
B, T, D = 2, 5, 16
x = device.asarray(rng.standard_normal((B, T, D)))
h = device.asarray(rng.standard_normal((B, T, D)))
z, _ = residual(x, h)
post = ResidualConnection(D, norm="post").to(device, np.float64)
pre = ResidualConnection(D, norm="pre").to(device, np.float64)

shape_table(
    {"B": B, "T": T, "D": D},
    x=(x, "B T D", "the residual stream, before the sublayer"),
    h=(h, "B T D", "what the sublayer returns; it must have the shape of x"),
    z=(z, "B T D", "the sum"),
    entered_pre=(pre.enter(x)[0], "B T D", "pre-norm: the sublayer is given LayerNorm(x)"),
    left_pre=(pre.leave(x, h)[0], "B T D", "pre-norm: the stream is z"),
    entered_post=(post.enter(x)[0], "B T D", "post-norm: the sublayer is given x"),
    left_post=(post.leave(x, h)[0], "B T D", "post-norm: the stream is LayerNorm(z)"),
)

# %% [markdown]
# ## 3 · The derivation
#
# We write $dx$ for $\partial L / \partial x$. From $z_i = x_i + h_i$ follows $\partial z_i / \partial h_i = 1$,
# so $dh = dz$: **a sum hands its gradient to both terms unchanged.** (With dropout, $dh$ is $dz$ times the mask
# of $h$.) $x$ is used twice, by the sum and by the sublayer, and the gradients of its uses add up. With $J$ the
# matrix of the derivatives of $f$:
#
# $$
# dx = dz + J^\top dz = (I + J)^\top dz .
# $$
#
# For $n$ blocks, with $dx_k$ the gradient in front of block $k + 1$ and $J_k$ the derivatives of its $f$:
#
# $$
# dx_0 = (I + J_1)^\top (I + J_2)^\top \cdots (I + J_n)^\top dx_n
# = \Big( I + \sum_k J_k + \sum_{j \lt k} J_k J_j + \dots \Big)^\top dx_n .
# $$
#
# Multiply out. Each choice of $I$ or $J_k$ from each bracket is one *path* from top to bottom: one path around
# all sublayers, $n$ that pass through one, and so on, $2^n$ in all. A plain stack has only the path through all
# of them, $J_1^\top \cdots J_n^\top$.
#
# A wrong idea goes with this formula: "because of the $I$ the gradient cannot vanish." A sum can be zero
# though none of its terms is: if $f(x) = -x$ then $I + J = 0$ (section 5).
#
# ## 4 · Now write it, and the proof
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `residual(x, h, p=0.0, rng=None)` | two (..., $D$) | $z$ (..., $D$), `cache` |
# | `residual_backward(dz, cache)` | (..., $D$) | $dx, dh$ |


# %%
def facts(residual, residual_backward):
    x, h, dz = np.random.default_rng(10).standard_normal((3, 4, 5))
    z, cache = residual(x, h, 0.5, np.random.default_rng(10))
    dx, dh = residual_backward(dz, cache)
    dropped = np.isclose(z, x)
    yield "p = ½: z − x is 0 or 2 h", dropped.any() and np.allclose((z - x - 2 * h)[~dropped], 0)
    yield "dx is dz, whatever is dropped", np.array_equal(dx, dz)
    yield "dh is 0 or 2 dz at the same places", np.allclose(dh, 2 * dz * ~dropped)


try_yours("residual", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right:

# %%
show("residual")

# %% [markdown]
# Whoever owns the sublayer adds the two gradients of $x$, as `Block.backward` above does. `enter` and `leave`, which
# stand before and after it, place the LayerNorm.

# %%
sample = rng.standard_normal((3, 4, 6))  # the case of the package has width 6, and dropout
for norm in ("post", "pre"):
    report = check_module(ResidualLinear(rng, norm), sample)
    assert report.right
    print(f"{norm}-norm")
    print(report)

# %% [markdown]
# PyTorch agrees, to six digits and more:

# %%
if find_spec("torch"):
    import torch

    tensors = [torch.tensor(to_host(array), requires_grad=True) for array in (x, h)]
    theirs = torch.nn.functional.layer_norm(sum(tensors), (D,))
    theirs.backward(tensors[0])
    ours, cache = post.leave(x, h)
    ours = ours, *post.leave_backward(x, cache)
    theirs = theirs.detach(), *(tensor.grad for tensor in tensors)
    for name, mine, its in zip(("y", "dx", "dh"), ours, theirs, strict=True):
        print(f"{name:2} differs by at most {abs(to_host(mine) - its.numpy()).max():.0e}")
        assert np.allclose(to_host(mine), its, atol=1e-6)


# %% [markdown]
# An easy mistake: to return what comes back through the sublayer, and forget the gradient that goes past it.


# %%
def one_block(x):
    block = Block(6, "sum", np.random.default_rng(4)).to(dtype=np.float64)
    y, cache = block.forward(x)
    return y, (block, cache)


def past_it_forgotten(dy, cache):
    block, (f_cache, sum_cache) = cache
    _, dh = residual_backward(dy, sum_cache)
    return block.f.backward(dh, f_cache)


report = check_pair(one_block, past_it_forgotten, (sample,))
assert not report.right
print(report)

# %% [markdown]
# No shape is wrong. Of the $2^n$ paths of a stack, only the one through all sublayers is left.
#
# ## 5 · How large is the gradient?
#
# ### One block
#
# At the start all weights are random, so sizes can be computed. In $f(x) = \text{ReLU}(x W_1) W_2$ the shapes are
# $(D, F)$ and $(F, D)$. The package draws both with mean 0 and variance $2 / (D + F)$ (Glorot and Bengio 2010). Let
# $x$ have mean square $q$.
#
# - An entry of $x W_1$ sums $D$ products of independent numbers. Its variance is $D q \cdot 2 / (D + F)$.
# - It is symmetric around 0, so ReLU keeps half of its mean square.
# - An entry of the result sums $F$ such products: times $F \cdot 2 / (D + F)$.
#
# Together $f$ multiplies the mean square by
#
# $$
# v = \frac{2 D}{D + F} \cdot \frac12 \cdot \frac{2 F}{D + F} = \frac{2 D F}{(D + F)^2} .
# $$
#
# Backward, $W_2^\top$ sums over $D$, ReLU's mask passes half, and $W_1^\top$ sums over $F$: the same factors. So **a
# gradient is multiplied by the same** $v$. In our stacks $F = D$ and $v = \frac12$.
#
# ### Five wirings
#
# Let $q_k$ be the mean square of the stream after $k$ blocks, $q_0 = 1$, and $g_k$ that of the gradient there,
# relative to $dy$. Each block has weights of its own with mean 0. So $x$ and $f(x)$ are uncorrelated: their mean
# squares add, and so do the gradients'.
#
# **Plain.** $g_{k-1} = v \, g_k$, so $g_0 = v^n$.
#
# **Plain, normed.** LayerNorm divides $f(x)$, of mean square $v$, by $\sqrt v$, and its backward does the same to
# the gradient. (It also removes 2 of $D$ directions, which we neglect.) $f$ multiplies $g$ by $v$, and this
# divides it by $v$: $g_{k-1} = g_k$.
#
# **Sum.** $g_{k-1} = (1 + v) \, g_k$, so $g_0 = (1 + v)^n$. The stream grows likewise.
#
# **Post-norm.** The sum multiplies $g$ by $1 + v$. LayerNorm divides the gradient by $\sqrt{1 + v}$, and so $g$ by
# $1 + v$. They cancel again: $g_{k-1} = g_k$.
#
# **Pre-norm.** $f$ sees $\text{LayerNorm}(x)$, of mean square 1, and adds $v$. So $q_k = 1 + k v$. The gradient
# through block $k$ goes through $f$, times $v$, and through a LayerNorm that divided by $\sqrt{q_{k-1}}$:
#
# $$
# g_{k-1} = g_k \left( 1 + \frac{v}{q_{k-1}} \right) = g_k \, \frac{q_{k-1} + v}{q_{k-1}} = g_k \, \frac{q_k}{q_{k-1}} .
# $$
#
# So $g_k q_k$ is the same for all $k$. The LayerNorm after the last block makes it 1, since it divided by
# $\sqrt{q_n}$. So $g_k = 1 / (1 + k v)$.
#
# **$n$ is not in it.** The gradient at a layer depends only on its distance from the *bottom*.
#
# ### Measured
#
# The gradient in one random stack of each kind (128 features, 64 rows). The black lines are the formulas:

# %%
WIDTH_WIDE, ROWS, DEEP, v = 128, 64, 64, 1 / 2
x = device.asarray(rng.standard_normal((ROWS, WIDTH_WIDE)))
dy = device.asarray(rng.standard_normal((ROWS, WIDTH_WIDE)))


def size(array):
    return np.linalg.norm(to_host(array))


def new_stack(wiring, depth, seed=10):
    stack = Stack(WIDTH_WIDE, depth, wiring, np.random.default_rng(seed))
    return stack.to(device, np.float64)


def gradients_through(wiring, depth):
    """dx in front of each block and after the last, as arrays on the host."""
    stack = new_stack(wiring, depth)
    _, cache = stack.forward(x)
    return [to_host(gradient) for gradient in stack.backward(dy, cache)]


k = np.arange(DEEP + 1)
THEORY = {  # the norm, the root of g
    "plain": v ** ((DEEP - k) / 2),
    "normed": np.ones(DEEP + 1),
    "sum": (1 + v) ** ((DEEP - k) / 2),
    "post": np.ones(DEEP + 1),
    "pre": (1 + k * v) ** -0.5,
}
measured = {}
for wiring in WIRINGS:
    gradients = gradients_through(wiring, DEEP)
    measured[wiring] = np.array([size(gradient) for gradient in gradients]) / size(dy)
    assert np.all(np.abs(np.log10(measured[wiring] / THEORY[wiring])) < 1)

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(8.2, 4.8))
for wiring, (name, colour, dashes, marker) in WIRINGS.items():
    axes.semilogy(
        k, measured[wiring], color=colour, ls=dashes, marker=marker, ms=4, markevery=8, label=name
    )
    axes.semilogy(k, THEORY[wiring], "-", color=BLACK, lw=0.8)
axes.plot([], [], "-", color=BLACK, lw=0.8, label="derived")
axes.set(
    xlabel="blocks below: 0 is the input, 64 the output",
    ylabel="norm of the gradient, relative to $dy$",
    title="one random stack of each kind",
)
axes.legend()
plt.show()

# %% [markdown]
# Read from the right. Through 64 plain blocks the gradient loses ten orders of magnitude. In the bare sum it grows by
# five or six. With LayerNorm it stays within one.
#
# ### Is it only the size?
#
# Then LayerNorm alone would repair a plain network. But in section 1 the normed stack of 32 blocks hardly learned.
# All sizes are right, and still a deeper network is harder to train.
#
# So look at the direction. Of the paths of section 3, one goes around all sublayers and hands $dx_n$ down as it is.
# The others pass through random matrices and point anywhere. So $dx_0 \cdot dx_n = |dx_n|^2 / d$, where $d$ is what
# the LayerNorms on the direct path divide by. Their cosine is $|dx_n| / |dx_0|$ over $d$:
#
# - Sum: $d = 1$ and $|dx_n| / |dx_0| = (1 + v)^{-n/2}$. That is the cosine.
# - Post-norm: $d = (1 + v)^{n/2}$ and $|dx_n| / |dx_0| = 1$. The cosine is the same.
# - Pre-norm: $d = 1$, and the cosine is $\sqrt{g_n / g_0} = (1 + n v)^{-1/2}$.
# - Plain, normed or not: there is no such path. The cosine is 0.
#
# Measured, with the formulas in black:


# %%
def cosine(a, b):
    return (a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b)


deeper = np.array([1, 2, 4, 8, 16, 32, 64, 128])
shares = {wiring: [] for wiring in WIRINGS}
for wiring in WIRINGS:
    for depth in deeper:
        bottom, *_, top = gradients_through(wiring, depth)
        shares[wiring].append(cosine(bottom, top))
assert shares["pre"][-1] > 0.05 > max(abs(shares["post"][-1]), abs(shares["plain"][-1]))

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4.2))
for wiring, (name, colour, dashes, marker) in WIRINGS.items():
    axes.plot(deeper, shares[wiring], color=colour, ls=dashes, marker=marker, ms=5, label=name)
axes.plot(deeper, (1 + deeper * v) ** -0.5, "-", color=BLACK, lw=0.8, label="derived")
axes.plot(deeper, (1 + v) ** (-deeper / 2), "-", color=BLACK, lw=0.8)
axes.set_xscale("log", base=2)
axes.set_xticks(deeper, deeper)
axes.set(xlabel="blocks", ylabel="cosine of the gradients at bottom and top", ylim=(-0.1, 1))
axes.set_title("one random stack for each point")
axes.legend()
plt.show()

# %% [markdown]
# **In post-norm the direct path is there on paper, and at depth it carries nothing.** After some twenty blocks the
# gradient has the right *size*, and no trace of its *direction*. In pre-norm the lowest block of a hundred still hears
# what the loss wants.
#
# ## 6 · What a step does to the output
#
# Change every weight by a random number, of $\delta$ times the weights' standard deviation. How far does the output
# move? (From Liu et al., *Understanding the Difficulty of Training Transformers*,
# 2020.)
#
# $f$ has two matrices. To first order each change adds to $f(x)$ an error of mean square $\delta^2 v$. Let $e_k$ be
# the mean square of the stream's error after $k$ blocks, relative to $q_k$. An error travels as $x$ does,
# around $f$ and through it.
#
# **Post-norm.** The old error is multiplied by $1 + v$, the new one is added, and LayerNorm divides by $1 + v$:
#
# $$
# e_k = e_{k-1} + \frac{2 \delta^2 v}{1 + v}
# \qquad\Longrightarrow\qquad
# e_n = n \, \frac{2 \delta^2 v}{1 + v} .
# $$
#
# **Pre-norm.** The absolute error $e_{k-1} q_{k-1}$ is multiplied by $1 + v / q_{k-1} = q_k / q_{k-1}$, and
# $2 \delta^2 v$ is added. Divide by $q_k = 1 + k v$:
#
# $$
# e_k = e_{k-1} + \frac{2 \delta^2 v}{1 + k v}
# \qquad\Longrightarrow\qquad
# e_n = 2 \delta^2 \sum_{k=1}^{n} \frac{v}{1 + k v} \approx 2 \delta^2 \ln(1 + n v) .
# $$
#
# (The sum is the area of bars under the curve $1 / (1 + t)$ from 0 to $n v$.) **In post-norm the errors of all layers
# add up. In pre-norm each new layer matters less, because the stream it adds to is larger.** Measured, in three random
# stacks for each point:


# %%
def output_moves(wiring, depth, seed, delta=0.01):
    """How far the output moves when every weight does by delta, both relative to their sizes."""
    stack = new_stack(wiring, depth, seed)
    before = to_host(stack.forward(x)[0])
    generator = np.random.default_rng(100 + seed)
    for block in stack.blocks:
        for weight in (block.f.w_1, block.f.w_2):
            host = to_host(weight.data)
            noise = delta * host.std() * generator.standard_normal(host.shape)
            weight.data = weight.data + device.asarray(noise)
    return size(to_host(stack.forward(x)[0]) - before) / size(before)


moves = {}  # %, for each depth
for wiring in ("post", "pre"):
    squares = [[output_moves(wiring, depth, seed) ** 2 for seed in range(3)] for depth in deeper]
    moves[wiring] = 100 * np.sqrt(np.mean(squares, axis=1))


def likeness(rows):
    """The mean cosine of the angle between two different rows of (..., N, D)."""
    rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    n = rows.shape[-2]
    return (((rows @ rows.swapaxes(-1, -2)).sum(axis=(-1, -2)) - n) / (n * (n - 1))).mean()


for wiring in ("post", "pre"):
    rows = to_host(new_stack(wiring, 128).forward(x)[0])
    print(f"{wiring}-norm: after 128 blocks the mean cosine of two rows is {likeness(rows):.2f}")

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4))
for wiring in ("post", "pre"):
    name, colour, dashes, marker = WIRINGS[wiring]
    axes.plot(deeper, moves[wiring], color=colour, ls=dashes, marker=marker, label=name)
axes.plot(deeper, np.sqrt(deeper * 2 * v / (1 + v)), "-", color=BLACK, lw=0.8, label="derived")
sums = [sum(v / (1 + j * v) for j in range(1, depth + 1)) for depth in deeper]
axes.plot(deeper, np.sqrt(2 * np.array(sums)), "-", color=BLACK, lw=0.8)
axes.set(xlabel="blocks", ylabel="output moves by (%), weights by 1 %")
axes.legend()
plt.show()

# %% [markdown]
# A root, and the root of a logarithm. At depth post-norm leaves its line: its 64 rows have become nearly alike, so
# one row's luck is the luck of all.
#
# ### Hence the warm-up
#
# Adam moves every weight by about the learning rate, whatever the size of the gradient
# ([lesson 12](12_learning.ipynb)). So the same rate moves the output of a deep post-norm network further. Small rates
# should suit it better, and large ones throw it off, unless a *warm-up* leads up to them slowly. Our task with 16
# blocks, 50 steps and three starts, the rate constant or growing over the first 25 steps:

# %%
rates = [1e-4, 1e-3, 1e-2]
results = {}  # (rate, start) for each wiring and warm-up
with accelerated():
    for wiring in ("post", "pre"):
        for warmup in (1, 25):
            results[wiring, warmup] = np.array(
                [
                    [final_loss(wiring, 16, rate, warmup, 50, s) for s in range(STARTS)]
                    for rate in rates
                ]
            )
assert np.all(results["post", 1][0] < results["pre", 1][0])  # the smallest rate, each start
assert results["post", 1][-1].min() > 0.9 > results["pre", 1][-1].max()  # the largest, thrown off
assert results["post", 25][-1].max() < 0.9  # and not with a warm-up

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True)
for axes, warmup, title in zip(panels, (1, 25), ("no warm-up", "warm-up of 25 steps"), strict=True):
    for wiring in ("post", "pre"):
        name, colour, dashes, marker = WIRINGS[wiring]
        axes.loglog(rates, results[wiring, warmup], marker, color=colour, ms=4, alpha=0.35)
        median = np.median(results[wiring, warmup], axis=1)
        axes.loglog(rates, median, color=colour, ls=dashes, marker=marker, label=name)
    axes.axhline(1, color=BLACK, ls=":", lw=1.2)
    axes.set(xlabel="learning rate, at its largest", title=title)
panels[0].set_ylabel("training loss, relative to a constant")
panels[1].legend(loc="lower left")
plt.show()

# %% [markdown]
# At the smallest rate post-norm is ahead from each start. At the largest, without a warm-up, all three of its runs are
# thrown back to a constant, where pre-norm still learns. With the warm-up it learns there too.
#
# The paper trains post-norm with 4,000 steps of warm-up. Xiong et al. (*On Layer Normalization in the Transformer
# Architecture*, 2020) leave it out, and the model ends far behind. But Liu et al. find that post-norm may end better
# where it can be trained.
#
# ## 7 · In the real model
#
# Now the Transformer, 12 layers a side, with the gradient of a loss. Drawn is its norm over all parameters of a
# layer, in one random model of each kind:


# %%
def deep_transformer(norm):
    sizes = dict(d_model=64, d_ff=128, num_encoder_layers=12, num_decoder_layers=12)
    config = TransformerConfig.preset("toy", 60, norm=norm, tying="none", **sizes)
    return Transformer(config, seed=10, device=device, dtype=np.float64)


def gradients_by_layer(norm):
    model = deep_transformer(norm)
    generator = np.random.default_rng(10)
    source, target, labels = generator.integers(3, 60, (3, 8, 12))
    _, cache = model.loss(Batch(source, target, labels))
    model.loss_backward(1.0, cache)
    return [
        [np.sqrt(sum(size(p.grad) ** 2 for p in layer.parameters())) for layer in stack.layers]
        for stack in (model.encoder, model.decoder)
    ]


by_layer = {norm: gradients_by_layer(norm) for norm in ("post", "pre")}

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.3), sharey=True)
for axes, side, title in zip(panels, (0, 1), ("encoder", "decoder"), strict=True):
    for norm in ("post", "pre"):
        name, colour, dashes, marker = WIRINGS[norm]
        axes.semilogy(
            range(1, 13), by_layer[norm][side], color=colour, ls=dashes, marker=marker, label=name
        )
    axes.set(xlabel="layer, from the bottom", title=title)
    axes.set_xticks(range(1, 13))
panels[0].set_ylabel("norm of the gradient of its parameters")
panels[0].legend()
figure.suptitle("one random model of each kind, seed 10")
plt.show()

# %% [markdown]
# Pre-norm falls slowly towards the top, as $1 / \sqrt{1 + k v}$ does, on both sides. Post-norm is even in the
# encoder, as derived. But in the decoder it loses a constant factor a layer, a straight line. Our derivation
# took for granted that what a sublayer adds forward it also adds backward: $v$ and $v$. **Cross-attention does
# not.** The stream $x$ enters it as the query alone, and decides only about the *weights* of an average of values.
# Rows in a deep post-norm stack grow alike. If all rows of the memory are alike, so are their
# values, and their average is the same with any weights: the derivative by $x$ is nearly zero. The average itself is
# not; let its mean square be $c$. LayerNorm then divides by $\sqrt{1 + c}$, backward too, and no sum multiplies back:
#
# $$
# |dx_{k-1}| \approx \frac{1}{\sqrt{1 + c}} \, |dx_k| \qquad\text{in each decoder layer.}
# $$
#
# Measured, with an encoder's memory and queries of any kind:

# %%
model = deep_transformer("post")
ids = np.random.default_rng(10).integers(3, 60, (8, 12))
memory, _ = model.encode(ids, model.source_mask(ids))
queries, dy_cross = (device.asarray(rng.standard_normal((8, 12, 64))) for _ in range(2))
forward, backward = [], []  # mean squares, for each layer
for layer in model.decoder.layers:
    y, cache = layer.cross_attention.forward(queries, memory, memory)
    dqueries, _, _ = layer.cross_attention.backward(dy_cross, cache)
    forward.append((to_host(y) ** 2).mean())
    backward.append((to_host(dqueries) ** 2).mean())
c = np.mean(forward)
print(f"mean cosine of two rows of a sentence's memory: {likeness(to_host(memory)):.3f}")
print(f"mean square that cross-attention adds: forward {c:.2f}, backward {np.mean(backward):.0e}")
first, *_, last = by_layer["post"][1]
measured = (first / last) ** (1 / 11)
print(f"so each layer should multiply by {1 / np.sqrt(1 + c):.2f}; measured: {measured:.2f}")
assert np.mean(backward) < 1e-3 * c
assert abs(measured * np.sqrt(1 + c) - 1) < 0.15

# %% [markdown]
# So in the paper's form the lower layers of a deep decoder start with a small part of the gradient. Adam makes up
# for much of that ([lesson 12](12_learning.ipynb)).
#
# ## 8 · Exercises
#
# Fill in `answers/ex10.py`, your copy of [lessons/exercises/ex10.py](exercises/ex10.py), and run
# `minitransformer check ex10`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex10.py](solutions/ex10.py).
#
# 1. **`branch_scale`** (10 min). Normalisation is not the only cure for the bare sum. How small must a factor
#    before each branch be, for the stream not to explode? Guess how it goes with the depth before you compute.
# 2. **`gated_residual`** (25 min). $x + \alpha f(x)$ with a learned number $\alpha$ that starts at 0: the block
#    starts as the identity exactly. Derive the gradients. Who learns in the very first step, and who does not?
# 3. **`reversible_block`** (45 min). Two streams that take turns in correcting each other can be computed
#    backwards. Such a stack needs to keep no activations at all, however deep.

# %%
print(check_exercise("ex10", globals()))

# %% [markdown]
# ## On one card
#
# With $v$ the mean square of a branch for an input of mean square 1; $k$ blocks below, $n$ in all:
#
# | | post-norm, the paper's | pre-norm |
# |---|---|---|
# | forward | $y = \text{LayerNorm}(x + f(x))$ | $y = x + f(\text{LayerNorm}(x))$, a LayerNorm at the end |
# | mean square of the stream | $1$ | $1 + k v$ |
# | that of the gradient there | $1$ | $1 / (1 + k v)$ |
# | share of the direct path | $(1 + v)^{-n/2}$ | $(1 + n v)^{-1/2}$ |
# | output moved by a step | $\propto \sqrt n$ | $\propto \sqrt{\ln (1 + n v)}$ |
# | so | needs a warm-up | trains without |
#
# | | |
# |---|---|
# | backward of the sum | $dx = dz, \quad dh = dz$; then add what comes back through $f$ |
# | without LayerNorm | plain $v^{n/2}$ vanishes, sum $(1 + v)^{n/2}$ explodes |
# | LayerNorm without the sum | the gradient's size is right, its direction is lost |
# | $v$ of a feed-forward network | $2 D F / (D + F)^2$ with Glorot's weights |
# | trap | the gradient past the sublayer, forgotten: every shape is right |
#
# **Your own Transformer.** `residual`, with its backward: `minitransformer check own`.
#
# **Next:** all layers put together make the model of [lesson 11](11_the_transformer.ipynb).
