# %% [markdown]
# # 10 · Residual connections and depth
#
# **You will** see deep networks fail that shallow ones do not; derive what a sum, and a LayerNorm before
# or after it, does to the size of a gradient on its way down; measure each of these claims layer by
# layer; and find out why the paper's form needs a warm-up and the other hardly does.
#
# | | |
# |---|---|
# | In the paper | section 3.1: $\text{LayerNorm}(x + \text{Sublayer}(x))$; residual networks are He, Zhang, Ren and Sun, *Deep Residual Learning for Image Recognition* (2016) |
# | In the package | `minitransformer/layers/residual.py` |
# | You need | the chain rule; variances of sums and products of independent numbers |
# | Time | an hour to read, one for the exercises |

# %%
# Installs the package where it is missing: from the clone around this notebook, or by its name.
import importlib.util
import os
import subprocess
import sys

if importlib.util.find_spec("minitransformer") is None:
    source = ".." if os.path.exists("../setup.cfg") else "minitransformer"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", source], check=True)

# %%
import matplotlib.pyplot as plt
import numpy as np

from minitransformer import TransformerConfig, select_device
from minitransformer.backend import to_host
from minitransformer.data.batches import Batch
from minitransformer.exercises import check_exercise
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.gradcheck.cases import ResidualLinear
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.residual import ResidualConnection, residual, residual_backward
from minitransformer.lessons import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.models.transformer import Transformer
from minitransformer.module import FlatParameters, Module
from minitransformer.training.adam import Adam
from minitransformer.twins import accelerated

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(10)

# %% [markdown]
# ## 1 · Deeper should not be worse
#
# Add a layer to a network. The new network can do all that the old one could: let the new layer compute
# $f(x) = x$. (A ReLU does not forbid that: a large bias lifts all numbers over it, and a second one takes
# them down again.) So on the *training* data a deeper network should never end with a larger loss. Let us see.
#
# A block is a feed-forward network, two linear maps with a ReLU between them. A stack of $n$ blocks is
# wired in one of five ways:
#
# | | block |
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
# The task: from 32 random numbers compute three smooth functions of them, 128 examples, all seen in every
# step; 100 steps of Adam. Only the training loss counts here: this is about whether a network *can be
# trained*, not whether it generalises. Luck plays a part at this size, so each stack is trained from five
# random starts, drawn faintly; the line is their median:

# %%
WIDTH, STEPS, STARTS = 32, 100, 5
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
figure, axes = plt.subplots(figsize=(7, 4.6))
losses = {}  # the median for each depth
for wiring, (name, colour, dashes, marker) in WIRINGS.items():
    with accelerated():  # the faster twins of the layers: the same results sooner
        found = [[final_loss(wiring, n, seed=s) for s in range(STARTS)] for n in depths]
    axes.loglog(depths, found, marker, color=colour, ms=4, alpha=0.35)
    losses[wiring] = np.median(found, axis=1)
    axes.loglog(depths, losses[wiring], color=colour, ls=dashes, marker=marker, label=name)
axes.axhline(1, color=BLACK, ls=":", lw=1.2)
axes.text(2, 1.15, "no better than a constant", fontsize=9.5)
axes.set(xlabel="blocks", ylabel="training loss, relative to a constant")
axes.set_xticks(depths, depths)
axes.minorticks_off()
axes.legend()
plt.show()
for wiring in ("plain", "normed"):
    assert losses[wiring][-1] > 3 * min(losses[wiring])
assert np.all(np.diff(losses["pre"]) < 0)

# %% [markdown]
# From some depth on, plain blocks are worse the more there are, with LayerNorm or without: on the data they
# are trained on. It is no overfitting, and it is no lack of capacity. The bare sum is no cure; it fails at
# depth in another way. The two that have both, the sum and LayerNorm, gain from depth: in the median
# post-norm does up to a point, and pre-norm to the end.
#
# That the training error rises with depth is what He et al. found with images and called *degradation*. Mind
# which of our stacks is like theirs. Their plain networks had batch norm, and they made sure that the
# gradients were of healthy size all the way down: nothing vanished there, it was the optimisation that failed.
# Nearest to that is our normed stack. The plain one has the same symptom, and a cause of its own that we
# find in section 5. The rest of this lesson is about why.
#
# ## 2 · The definition
#
# A residual connection adds to $x$ what a sublayer $f$ makes of it:
#
# $$
# z = x + \text{Dropout}(h), \qquad h = f(x) .
# $$
#
# The sublayer no longer has to produce the result, only a *correction* to it. With small weights the block
# is near the identity: the layer that a deeper network needs in order to be no worse is now the one it
# starts from.

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
# so $dh = dz$: **a sum hands its gradient to both terms unchanged.** (With dropout, $h$ was multiplied by a
# mask, and $dh$ is $dz$ times the same mask.) $x$ is used twice, by the sum and by the sublayer, and
# gradients of several uses add up. With $J$ the matrix of the derivatives of $f$:
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
# Multiply out, and each choice of $I$ or $J_k$ from each bracket is one *path* from top to bottom: one
# path around all sublayers, $n$ that pass through one, and so on, $2^n$ in all. A plain stack has one
# path, the one through all of them, $J_1^\top \cdots J_n^\top$.
#
# A wrong idea goes with this formula: "because of the $I$ the gradient cannot vanish." A sum can be zero
# though none of its terms is: if $f(x) = -x$ then $I + J = 0$. The identity does not force anything. What it
# does is statistical, and we work it out in section 5.
#
# ## 4 · The code of the package, and the proof

# %%
source_of(residual, residual_backward, ResidualConnection)

# %% [markdown]
# `enter` and `leave` are what stands before and after a sublayer. Whoever owns the sublayer adds the two
# gradients of $x$, as `Block.backward` above does.

# %%
sample = rng.standard_normal((3, 4, 6))  # the case of the package has width 6, and dropout
for norm in ("post", "pre"):
    report = check_module(ResidualLinear(rng, norm), sample)
    assert report.right
    print(f"{norm}-norm")
    print(report)


# %% [markdown]
# A mistake that is easily made: to return what comes back through the sublayer, and to forget the gradient
# that goes past it:


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
# No shape is wrong. Of the $2^n$ paths of a stack, the one through all sublayers would be left.
#
# ## 5 · How large is the gradient?
#
# ### What a block does to a variance
#
# At the start of training all weights are random, and then sizes can be computed. $f$ is
# $\text{ReLU}(x W_1) W_2$, with $W_1$ of shape $(D, F)$ and $W_2$ of $(F, D)$. The package draws both with
# mean 0 and variance $2 / (D + F)$ (Glorot and Bengio 2010). Let the entries of $x$ have mean square $q$.
#
# - An entry of $x W_1$ is a sum of $D$ products of independent numbers with mean 0, so its variance is
#   $D q \cdot 2 / (D + F)$.
# - It is symmetric around 0, so ReLU keeps half of its mean square.
# - An entry of the result is a sum of $F$ such products: times $F \cdot 2 / (D + F)$.
#
# Together $f$ multiplies the mean square by
#
# $$
# v = \frac{2 D}{D + F} \cdot \frac12 \cdot \frac{2 F}{D + F} = \frac{2 D F}{(D + F)^2} .
# $$
#
# Backward the same happens in reverse: $W_2^\top$ sums over $D$ entries, the mask of ReLU lets half of
# them pass, $W_1^\top$ sums over $F$. The three factors are the same ones, so **a gradient is multiplied by
# the same** $v$. For $F = D$, as in our stacks, $v = \frac12$.
#
# ### Five wirings
#
# Let $q_k$ be the mean square of the stream after $k$ blocks, $q_0 = 1$, and $g_k$ that of the gradient there,
# relative to $dy$. $f$ has weights of its own in each block, with mean 0, so $x$ and $f(x)$ are uncorrelated and
# their mean squares add; likewise the two gradients.
#
# **Plain.** $g_{k-1} = v \, g_k$, so $g_0 = v^n$.
#
# **Plain, normed.** LayerNorm makes $q = 1$ again: it divides $f(x)$, of mean square $v$, by $\sqrt v$. Therefore its
# backward divides the gradient by the same number (it also removes 2 of $D$ directions, which we neglect). $f$
# multiplies $g$ by $v$. They cancel: $g_{k-1} = \frac vv \, g_k = g_k$.
#
# **Sum.** $g_{k-1} = (1 + v) \, g_k$, so $g_0 = (1 + v)^n$. The stream grows by the same factor.
#
# **Post-norm.** In the same way LayerNorm divides the sum, of mean square $1 + v$, by $\sqrt{1 + v}$, and so the
# gradient. The sum multiplies $g$ by $1 + v$. They cancel again:
#
# $$
# g_{k-1} = \frac{1 + v}{1 + v} \, g_k = g_k .
# $$
#
# **Pre-norm.** The stream is never scaled. $f$ sees $\text{LayerNorm}(x)$, of mean square 1, and adds $v$, whatever
# the stream is: $q_k = 1 + k v$. The gradient through block $k$ goes through $f$, times $v$, and through a
# LayerNorm that divided by $\sqrt{q_{k-1}}$:
#
# $$
# g_{k-1} = g_k \left( 1 + \frac{v}{q_{k-1}} \right) = g_k \, \frac{q_{k-1} + v}{q_{k-1}} = g_k \, \frac{q_k}{q_{k-1}} .
# $$
#
# So $g_k q_k$ is the same number for all $k$. After the last block stands a LayerNorm that divided by
# $\sqrt{q_n}$, so $g_n = 1 / q_n$, that number is 1, and
#
# $$
# g_k = \frac{1}{q_k} = \frac{1}{1 + k v} .
# $$
#
# A remarkable formula: **$n$ is not in it.** The gradient at a layer depends on how far it is from the *bottom*.
# You may stack as many layers on top as you like.
#
# ### Measured

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
figure, axes = plt.subplots(figsize=(8.2, 4.8))
for wiring, (name, colour, dashes, marker) in WIRINGS.items():
    measured = [size(gradient) / size(dy) for gradient in gradients_through(wiring, DEEP)]
    axes.semilogy(
        k, measured, color=colour, ls=dashes, marker=marker, ms=4, markevery=8, label=name
    )
    axes.semilogy(k, THEORY[wiring], "-", color=BLACK, lw=0.8)
    assert np.all(np.abs(np.log10(measured / THEORY[wiring])) < 1)
axes.plot([], [], "-", color=BLACK, lw=0.8, label="derived")
axes.set(
    xlabel="blocks below: 0 is the input, 64 the output",
    ylabel="norm of the gradient, relative to $dy$",
)
axes.legend()
plt.show()

# %% [markdown]
# Read from the right, the way the gradient travels. Through 64 plain blocks it loses ten orders of
# magnitude, and what reaches the bottom is useless; in the bare sum it grows by five or six. Both are straight
# lines on this scale: exponential in depth. The three with LayerNorm stay within one order. The black lines
# are the formulas, with nothing fitted. (One random stack of each kind: over 128 features and 64 rows chance
# averages out.)
#
# ### Is it only the size?
#
# Then LayerNorm alone would repair a plain network: with it the gradient has the right size at every depth.
# (So it has without, if $W_1$ is drawn with twice the variance, which makes $v = 1$ for $F = D$: He et al.,
# *Delving Deep into Rectifiers*, 2015.) But in section 1 the normed stack of 32 blocks hardly learned. That is the
# degradation of He et al.: sizes are right forward and backward, and still a deeper network is harder to train.
# They left open why.
#
# So look at the direction. In the expansion of section 3, one path goes around all sublayers and hands
# $dx_n$ down as it is. How much of the gradient at the bottom is that? The cosine of the angle between
# $dx_0$ and $dx_n$ tells. All other paths pass through random matrices and point anywhere, so only this path
# counts: $dx_0 \cdot dx_n = |dx_n|^2 / d$, where $d$ is what the LayerNorms along it divide by, all together.
# The cosine is this over $|dx_0| \, |dx_n|$, and so $|dx_n| / |dx_0|$ over $d$:
#
# - Plain, normed or not: there is no such path. The cosine is 0.
# - Sum: $d = 1$, and $|dx_n| / |dx_0| = (1 + v)^{-n/2}$. That is the cosine.
# - Post-norm: $d = \sqrt{1 + v}^{\,n}$, and $|dx_n| / |dx_0| = 1$. The cosine is $(1 + v)^{-n/2}$ again.
# - Pre-norm: nothing stands in the path, $d = 1$, and $|dx_n| / |dx_0| = \sqrt{g_n / g_0} = (1 + n v)^{-1/2}$.


# %%
def cosine(a, b):
    return (a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b)


deeper = np.array([1, 2, 4, 8, 16, 32, 64, 128])
figure, axes = plt.subplots(figsize=(7, 4.2))
shares = {}
for wiring, (name, colour, dashes, marker) in WIRINGS.items():
    shares[wiring] = []
    for depth in deeper:
        bottom, *_, top = gradients_through(wiring, depth)
        shares[wiring].append(cosine(bottom, top))
    axes.plot(deeper, shares[wiring], color=colour, ls=dashes, marker=marker, ms=5, label=name)
axes.plot(deeper, (1 + deeper * v) ** -0.5, "-", color=BLACK, lw=0.8, label="derived")
axes.plot(deeper, (1 + v) ** (-deeper / 2), "-", color=BLACK, lw=0.8)
axes.set_xscale("log", base=2)
axes.set_xticks(deeper, deeper)
axes.set(xlabel="blocks", ylabel="cosine of the gradients at bottom and top", ylim=(-0.1, 1))
axes.legend()
plt.show()
assert shares["pre"][-1] > 0.05 > max(abs(shares["post"][-1]), abs(shares["plain"][-1]))

# %% [markdown]
# **In post-norm the direct path is there on paper, and at depth it carries nothing.** After some twenty blocks a
# post-norm stack passes down a gradient of the right *size* and, like a plain one, no trace of its *direction*:
# what arrives has been through nearly all the matrices. (Its line and that of the bare sum are one.) In pre-norm
# the direct path fades only with the root of the depth: the lowest block of a hundred still hears directly what
# the loss wants.
#
# ## 6 · What a step does to the output
#
# Gradients say where to go; how far may one go? Let a step of training change every weight a little, by a
# random number of $\delta$ times its standard deviation. How far does the output move? (This question, and the
# answers, are from Liu et al., *Understanding the Difficulty of Training Transformers*, 2020.)
#
# $f$ has two matrices. To first order, changing each by $\delta$ adds to $f(x)$ two errors of mean square
# $\delta^2 v$ each. Let $e_k$ be the mean square of the error of the stream after $k$ blocks, relative to $q_k$.
# An error travels as $x$ does: around $f$, and through it.
#
# **Post-norm.** The old error is multiplied by $1 + v$, the new one added, and LayerNorm divides all by $1 + v$:
#
# $$
# e_k = e_{k-1} + \frac{2 \delta^2 v}{1 + v}
# \qquad\Longrightarrow\qquad
# e_n = n \, \frac{2 \delta^2 v}{1 + v} .
# $$
#
# **Pre-norm.** The absolute error $e_{k-1} q_{k-1}$ is multiplied by $1 + v / q_{k-1} = q_k / q_{k-1}$, which makes it
# $e_{k-1} q_k$, and $2 \delta^2 v$ is added. Divide by $q_k = 1 + k v$:
#
# $$
# e_k = e_{k-1} + \frac{2 \delta^2 v}{1 + k v}
# \qquad\Longrightarrow\qquad
# e_n = 2 \delta^2 \sum_{k=1}^{n} \frac{v}{1 + k v} \approx 2 \delta^2 \ln(1 + n v) .
# $$
#
# (The sum is the area of bars under the curve $1 / (1 + t)$ from 0 to $n v$.) **In post-norm the errors of all layers
# add up; in pre-norm each new layer matters less, because the stream it adds to is larger.** Linear in depth against
# logarithmic:


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


figure, axes = plt.subplots(figsize=(7, 4))
for wiring in ("post", "pre"):
    name, colour, dashes, marker = WIRINGS[wiring]
    squares = [[output_moves(wiring, depth, seed) ** 2 for seed in range(4)] for depth in deeper]
    moves = 100 * np.sqrt(np.mean(squares, axis=1))  # over four random stacks
    axes.plot(deeper, moves, color=colour, ls=dashes, marker=marker, label=name)
axes.plot(deeper, np.sqrt(deeper * 2 * v / (1 + v)), "-", color=BLACK, lw=0.8, label="derived")
sums = [sum(v / (1 + j * v) for j in range(1, depth + 1)) for depth in deeper]
axes.plot(deeper, np.sqrt(2 * np.array(sums)), "-", color=BLACK, lw=0.8)
axes.set(xlabel="blocks", ylabel="output moves by (%), weights by 1 %")
axes.legend()
plt.show()


def likeness(rows):
    """The mean cosine of the angle between two different rows of (..., N, D)."""
    rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    n = rows.shape[-2]
    return (((rows @ rows.swapaxes(-1, -2)).sum(axis=(-1, -2)) - n) / (n * (n - 1))).mean()


for wiring in ("post", "pre"):
    rows = to_host(new_stack(wiring, 128).forward(x)[0])
    print(f"{wiring}-norm: after 128 blocks the mean cosine of two rows is {likeness(rows):.2f}")

# %% [markdown]
# A root, and the root of a logarithm. At depth post-norm leaves its line a little. There the 64 rows have become
# nearly alike, as the last lines show, so their mean is hardly a mean any more: one row's luck is the luck of all.
#
# ### So post-norm must begin with small steps
#
# Adam moves every weight by about the learning rate in each step, whatever the size of the gradient
# ([lesson 12](12_learning.ipynb)). The same learning rate therefore moves the output of a deep post-norm
# network much further. Two things should follow: at small learning rates it is ahead, and large ones throw it
# off, unless they are reached slowly, by a *warm-up*. Our task again, with 16 blocks and 60 steps, the learning
# rate constant or growing over the first 30 of them, from five random starts:

# %%
rates = [3e-4, 1e-3, 3e-3, 1e-2]
figure, panels = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True)
results = {}
for axes, warmup, title in zip(panels, (1, 30), ("no warm-up", "warm-up of 30 steps"), strict=True):
    for wiring in ("post", "pre"):
        name, colour, dashes, marker = WIRINGS[wiring]
        with accelerated():
            found = [
                [final_loss(wiring, 16, rate, warmup, 60, s) for s in range(STARTS)]
                for rate in rates
            ]
        results[wiring, warmup] = np.array(found)  # (rate, start)
        axes.loglog(rates, found, marker, color=colour, ms=4, alpha=0.35)
        median = np.median(found, axis=1)
        axes.loglog(rates, median, color=colour, ls=dashes, marker=marker, label=name)
    axes.axhline(1, color=BLACK, ls=":", lw=1.2)
    axes.set(xlabel="learning rate, at its largest", title=title)
panels[0].set_ylabel("training loss, relative to a constant")
panels[1].legend(loc="lower left")
plt.show()
assert np.median(results["post", 1][0]) < np.median(results["pre", 1][0])  # the smallest rate
assert results["post", 1][3].min() > 0.9 > results["pre", 1][3].max()  # the largest, thrown off
assert results["post", 30][3].max() < 0.9  # and not with a warm-up

# %% [markdown]
# At the smallest rates post-norm is a little ahead, though the runs overlap. At the largest, without a warm-up,
# all five of its runs are thrown back to a constant, where pre-norm still learns. With the warm-up it learns there
# too. (At small rates a warm-up only costs: half of the 60 steps are made with less.)
#
# The paper trains post-norm with 4,000 steps of warm-up. That is no ornament: Xiong et al. (*On Layer Normalization
# in the Transformer Architecture*, 2020) leave it out, and the model ends far behind.
#
# Does that make post-norm the worse choice? The paper's results are with post-norm, and Liu et al. find that where
# it can be trained it may end better. Pre-norm has a price of its own: at the top of a deep stack each layer adds
# $v$ to a stream of $1 + k v$, so the last layers change little. It is the choice of whoever wants to train
# without care.
#
# ## 7 · In the real model
#
# Our blocks have no attention, and their gradient was random. The Transformer, 12 layers a side, with the gradient
# of a loss; the norm of the gradient of all parameters of a layer, in one random model of each kind:


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


figure, panels = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True)
by_layer = {norm: gradients_by_layer(norm) for norm in ("post", "pre")}
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
plt.show()

# %% [markdown]
# Pre-norm falls slowly towards the top, as $1 / \sqrt{1 + k v}$ does, on both sides. Post-norm is even in the
# encoder, as derived. But in the decoder it loses a constant factor a layer, a straight line. What did our
# derivation leave out?
#
# It took for granted that what a sublayer adds forward it also adds backward: $v$ and $v$. **Cross-attention does
# not.** The stream $x$ enters it as the query alone, and decides only about the *weights* of an average of values.
# But we have just seen what becomes of rows in a deep post-norm stack: they grow alike. If all rows of the memory
# are alike, so are their values, and their average is the same with any weights: the derivative by $x$ is nearly
# zero. The average itself is not; let its mean square be $c$. LayerNorm then divides by $\sqrt{1 + c}$, backward
# too, and no sum multiplies back:
#
# $$
# |dx_{k-1}| \approx \frac{1}{\sqrt{1 + c}} \, |dx_k| \qquad\text{in each decoder layer.}
# $$
#
# All of this can be measured by itself, from an encoder's memory and queries of any kind:

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
# So in the paper's form the lower layers of a deep decoder start with a small remainder of the gradient. Adam, which
# divides by the size of the gradient ([lesson 12](12_learning.ipynb)), makes up for much of that.
#
# ## 8 · Exercises
#
# Fill in `answers/ex10.py`, your copy of [lessons/exercises/ex10.py](exercises/ex10.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex10
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The
# solutions are in [lessons/solutions/ex10.py](solutions/ex10.py).
#
# 1. **`branch_scale`** (5 min). Normalisation is not the only cure for the bare sum. How small must a factor
#    before each branch be, for the stream not to explode? Guess how it goes with the depth before you compute.
# 2. **`gated_residual`** (15 min). $x + \alpha f(x)$ with a learned number $\alpha$ that starts at 0: the block
#    starts as the identity exactly. Derive the gradients. Who learns in the very first step, and who does not?
# 3. **`reversible_block`** (30 min). Two streams that take turns in correcting each other can be computed
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
# | LayerNorm without the sum | the gradient has the right size, none of its direction; deep stacks hardly learn |
# | $v$ of a feed-forward network | $2 D F / (D + F)^2$ with Glorot's weights |
# | trap | the gradient past the sublayer, forgotten: every shape is right |
#
# **Your own Transformer.** In `answers/own.py`, your copy of
# [lessons/exercises/own.py](exercises/own.py), you can now write `residual`, with its backward;
# `minitransformer check own` says whether it is right.
#
# **Next:** all layers put together make the model of [lesson 11](11_the_transformer.ipynb).
