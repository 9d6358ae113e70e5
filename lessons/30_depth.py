# %% [markdown]
# # 30 · Depth
#
# **You will** see networks of more layers learn less, on the very pictures that they learn from; find that their
# gradients have not vanished, and what is wrong with them instead; derive batch normalisation forward and backward, and
# see what it does to a batch; and measure what a shortcut around two layers changes.
#
# | | |
# |---|---|
# | In the paper | not in it; its residual connections (section 3.1) come from here |
# | In the package | `minitransformer/layers/batch_norm.py`, `minitransformer/models/residual_blocks.py`, `minitransformer/models/residual_network.py` |
# | You need | the chain rule; mean and variance; convolution, as in [lesson 29](29_seeing.ipynb); LayerNorm, as in [lesson 07](07_layer_norm.ipynb) |
# | Time | an hour and a half to read, three quarters for the functions, two for the exercises |

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
import copy
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import accelerated, select_device
from minitransformer.core.backend import to_host
from minitransformer.core.module import FlatParameters, Module
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLACK, BLUE, VERMILION, shape_table, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.data.images.batches import PictureBatch
from minitransformer.data.images.shapes import shapes_corpus
from minitransformer.gradcheck import check_pair
from minitransformer.layers.batch_norm import batch_norm, batch_norm_backward, running_norm_backward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.relu import relu
from minitransformer.models.residual_blocks import Block, Identity
from minitransformer.models.residual_network import ResidualNetwork, ResidualNetworkConfig
from minitransformer.models.small_network import SmallNetwork, SmallNetworkConfig
from minitransformer.optim.sgd import SGD

use_style()
device = select_device("cpu")  # "cuda" trains the networks on a GPU
rng = np.random.default_rng(30)

# %% [markdown]
# ## 1 · Deeper should not be worse
#
# The first layers of a network that sees find edges, the next ones corners, later ones parts of things
# ([lesson 29](29_seeing.ipynb)). So more layers should see more. And they can do no harm: a deeper network could copy
# the shallower one, and let each layer that it has more pass on what it is given. The loss on the pictures that it
# learns from would be the same.
#
# Here are pictures of ten kinds, which the package draws. We make them small, 12 × 12, and take the brightness behind
# the thing off, so that a network of many layers takes milliseconds a step:

# %%
corpus = shapes_corpus()


def made_small(pictures):
    """Differences from what is behind, half as large, and the middle of that: (N, 12, 12, 1)."""
    contrast = abs(pictures - np.median(pictures, axis=(1, 2), keepdims=True))
    halved = contrast.reshape(-1, 14, 2, 14, 2, 1).mean(axis=(2, 4))
    return halved[:, 1:13, 1:13].astype(np.float32)


grey = made_small(corpus["train"].pictures[:2000])
many, many_labels = (grey - grey.mean(axis=0)) / grey.std(), corpus["train"].labels[:2000]
few, few_labels = many[:96], many_labels[:96]
unseen = (made_small(corpus["validation"].pictures[:500]) - grey.mean(axis=0)) / grey.std()
unseen_labels = corpus["validation"].labels[:500]

# %% tags=["hide-input"]
figure, panels = plt.subplots(2, 10, figsize=(9.5, 2.3))
for i, axes in enumerate(panels.T):
    for row, picture in zip(axes, (corpus["train"].pictures[i], grey[i]), strict=True):
        row.imshow(picture[..., 0], cmap="Greys_r")
        row.axis("off")
    axes[0].set_title(corpus["train"].classes[i], fontsize=9.5)
plt.show()

# %% [markdown]
# The network is that of He and others (2016): a convolution of 3 × 3, then three stages of blocks with two such
# convolutions each, the second and third stage with twice the channels at half the size; the mean over the picture; a
# linear map. With $n$ blocks a stage it has $6 n + 2$ layers. Behind every convolution stands a batch norm, which
# section 3 derives. **Plain** is a network in which a block is its two convolutions. **Residual** is one in which the
# block's input is added to what they give. Both have the same parameters, and at first the same values of them.
#
# They are to learn 96 pictures by heart, in 80 steps of 24 pictures. Here is the loss of 8 and of 32 layers, step by
# step:

# %%
PLAIN, RESIDUAL = "none", "A"  # how the package calls their shortcuts


def config_of(depth, shortcut):
    return ResidualNetworkConfig(12, 12, 1, 10, depth=depth, shortcut=shortcut, width_factor=0.5)


def network(depth, shortcut, seed=0):
    return ResidualNetwork(config_of(depth, shortcut), seed=seed, device=device)


def learn(model, pictures, labels, steps=80, rate=0.03, size=24, seed=0, divided_at=None):
    """Losses of so many steps; the rate rises for ten, and may be divided by ten later."""
    sgd, picks, losses = SGD(model.flat, momentum=0.9), np.random.default_rng(seed), []
    labels = device.asarray(labels)
    with accelerated():  # the faster twins of the layers: the same results sooner
        for step in range(1, steps + 1):
            some = picks.integers(len(pictures), size=size)
            batch = PictureBatch(pictures[some], labels[device.asarray(some)])
            model.flat.grad.fill(0)
            (loss, _), cache = model.loss(batch, device.generator(seed))
            model.loss_backward(1.0, cache)
            divisor = 10 if divided_at and step > divided_at else 1
            sgd.step(rate * min(1, step / 10) / divisor)
            losses.append(float(loss))
    return np.array(losses)


weights = [to_host(network(32, shortcut).flat.data) for shortcut in (PLAIN, RESIDUAL)]
assert np.array_equal(*weights)
trained, courses = {}, {}  # by depth, shortcut and seed
for depth in (8, 32):
    for shortcut in (PLAIN, RESIDUAL):
        key = depth, shortcut, 0
        trained[key] = network(*key)
        courses[key] = learn(trained[key], few, few_labels)

# %% tags=["hide-input"]
NAMES = {PLAIN: ("plain", VERMILION), RESIDUAL: ("residual", BLUE)}
figure, axes = plt.subplots(figsize=(7, 4))
for (depth, shortcut, _), losses in courses.items():
    name, colour = NAMES[shortcut]
    smooth = np.convolve(losses, np.ones(8) / 8, mode="valid")  # means of eight steps
    style = dict(color=colour, ls="-" if depth == 32 else "--", lw=2.2 if depth == 32 else 1.3)
    axes.plot(np.arange(8, 81), smooth, **style, label=f"{name}, {depth} layers")
axes.axhline(np.log(10), color=BLACK, ls=":", lw=1)
axes.text(45, np.log(10) + 0.05, "ten classes, all alike", fontsize=9.5)
axes.set(xlabel="step", ylabel="loss (nats), mean of the last 8 steps", ylim=(0, 4))
axes.set_title("one training each, seed 0")
axes.legend(loc="upper right", ncols=2)
plt.show()

# %% [markdown]
# With 8 layers both learn. With 32 the plain one has hardly begun when the residual one is done. Now more depths, and
# three seeds each, which change the weights at the start and the order of the pictures:

# %%
DEPTHS, SEEDS = (8, 20, 32), (0, 1, 2)
for key in [(d, s, seed) for d in DEPTHS for s in (PLAIN, RESIDUAL) for seed in SEEDS]:
    if key not in courses:
        trained[key] = network(*key)
        courses[key] = learn(trained[key], few, few_labels, seed=key[2])
ends = {key: losses[-20:].mean() for key, losses in courses.items()}
for shortcut, (name, _) in NAMES.items():
    for depth in DEPTHS:
        said = " ".join(f"{ends[depth, shortcut, seed]:.2f}" for seed in SEEDS)
        print(f"{name:9} {depth:3} layers: loss of the last 20 steps {said}")


def worst_and_best(shortcut, depth):
    of_seeds = [ends[depth, shortcut, seed] for seed in SEEDS]
    return max(of_seeds), min(of_seeds)


for depth in (20, 32):
    assert worst_and_best(PLAIN, depth)[1] > 2 * worst_and_best(PLAIN, 8)[0]
    assert worst_and_best(PLAIN, depth)[1] > 1.5 * worst_and_best(RESIDUAL, depth)[0]

# %% [markdown]
# That is no overfitting, as it is measured on the pictures that they learn from. He and others saw it with 20 and 56
# layers on CIFAR-10 (their figure 1), and called it **degradation**. In 80 steps some of it may be slowness alone. On
# Fashion-MNIST, in 510 steps, plain networks of 20, 32, 44 and 56 layers have 14.9, 16.7, 22.9 and 24.8 % wrong of what
# they have learned from; with shortcuts 11.9, 11.5, 10.8 and 11.4 % (three seeds, one with 56 layers,
# [measured](../docs/picture_claims.md#depth)). Or is it the rate? We try the plain network of 32 layers with a third of
# it and three times as much:

# %%
for rate in (0.01, 0.1):
    losses = learn(network(32, PLAIN), few, few_labels, rate=rate)
    print(f"plain, 32 layers, rate {rate}: {losses[-20:].mean():.2f}")
    assert losses[-20:].mean() > 2 * worst_and_best(PLAIN, 8)[0]

# %% [markdown]
# ## 2 · The gradient is there, and does not hold
#
# A first guess is that no gradient comes through 32 layers. The guess can be tested. Here is the length of the
# gradient of each convolution's weights, at the start and after those 80 steps:


# %%
def convolutions_of(model):
    blocks = [block for stage in model.stages for block in stage]
    return [model.first, *(step for block in blocks for step in block.steps)]


def gradient_of(model, pictures=few, labels=few_labels):
    """Of all parameters, on the host, from the loss of these pictures; it stays in the model."""
    model.flat.grad.fill(0)
    batch = PictureBatch(pictures, device.asarray(labels))
    with accelerated():
        _, cache = model.loss(batch, device.generator(0))
        model.loss_backward(1.0, cache)
    return to_host(model.flat.grad).astype(np.float64)


def lengths(model):
    gradient_of(model)
    grads = [to_host(step.convolution.weight.grad) for step in convolutions_of(model)]
    return [np.linalg.norm(grad) for grad in grads]


at_start = {(s, seed): lengths(network(32, s, seed)) for s in NAMES for seed in SEEDS}
after = {(s, seed): lengths(trained[32, s, seed]) for s in NAMES for seed in SEEDS}
for seed in SEEDS:
    first, last = at_start[PLAIN, seed][:4], at_start[PLAIN, seed][-4:]
    assert np.mean(first) > np.mean(last)  # it grows on its way to the first layers
    assert min(after[PLAIN, seed]) > 1e-3 * max(after[PLAIN, seed])

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(9.5, 3.9), sharey=True)
for axes, of_all, title in zip(
    panels, (at_start, after), ("at the start", "after 80 steps"), strict=True
):
    for (shortcut, seed), norms in of_all.items():
        name, colour = NAMES[shortcut]
        style = dict(color=colour, ls="--" if shortcut == PLAIN else "-", lw=1.3)
        axes.semilogy(range(1, 32), norms, **style, label=None if seed else f"{name}, three seeds")
    axes.set(title=title, xlabel="convolution, from the picture to the end")
panels[0].set(ylabel="length of the gradient of its weights", ylim=(4e-3, 60))
panels[0].legend(loc="upper right")
plt.show()

# %% [markdown]
# Nothing vanishes. At the start the plain network's gradient even grows on its way to the first layers. Later it
# differs from layer to layer, and is lost in none. He and others, too, found healthy gradients with batch norm.
#
# But a gradient is more than its length. It says how the loss changes *here*. A step is only as good as the gradient
# still holds at its end. So take a step against the gradient, work the gradient out again, and compare the two
# directions by the cosine of their angle: 1 if it still holds, 0 if what was known is worth nothing any more. Steps are
# measured in parts of the length of all weights:

# %%
STEPS = np.array([3e-6, 3e-5, 3e-4, 3e-3])


def still_holds(model):
    """Cosines of the gradient with that at the end of each step against it."""
    here, data = gradient_of(model), to_host(model.flat.data).copy()
    cosines = []
    for part in STEPS:
        moved = data - part * np.linalg.norm(data) / np.linalg.norm(here) * here
        model.flat.data[:] = device.asarray(moved.astype(np.float32))
        there = gradient_of(model)
        cosines.append(here @ there / np.linalg.norm(here) / np.linalg.norm(there))
    return cosines


holds = {
    (depth, shortcut): np.array([still_holds(network(depth, shortcut, seed)) for seed in SEEDS])
    for depth in (8, 32)
    for shortcut in NAMES
}  # (seeds, steps) each
assert holds[32, PLAIN][:, 0].min() > 0.8
assert abs(holds[32, PLAIN][:, 2]).max() < 0.4
assert min(holds[key][:, 2].min() for key in holds if key != (32, PLAIN)) > 0.85

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.9))
for (depth, shortcut), cosines in holds.items():
    name, colour = NAMES[shortcut]
    style = dict(color=colour, ls="-" if depth == 32 else "--", marker="o" if depth == 32 else "s")
    axes.semilogx(100 * STEPS, cosines.mean(axis=0), **style, label=f"{name}, {depth} layers")
    axes.semilogx(100 * STEPS, cosines.T, style["marker"], color=colour, ms=3, alpha=0.4)
axes.axhline(0, color=BLACK, lw=0.8)
axes.set(xlabel="length of the step (% of that of the weights)", ylim=(-0.35, 1.05))
axes.set(ylabel="cosine of the gradients before and after")
axes.set_xticks(100 * STEPS, labels=[f"{100 * part:g}" for part in STEPS])
axes.minorticks_off()
axes.legend(loc="center left")
plt.show()

# %% [markdown]
# Lines are means of three seeds at the start, points the seeds. In the plain network of 32 layers the gradient has
# turned to a right angle after a step of 0.03 %. In the other three it still holds there, and for steps that are ten
# times as long it mostly does. **The gradient of a deep plain network has a good length, but it holds only for steps
# a hundredth as long.** (Balduzzi and others 2017 looked at the same from another side, as the pictures change:
# they call such gradients shattered. That this goes together with degradation is no proof that it is the cause. He and
# others left the cause open.)
#
# So two things are to be told apart. Lengths are what batch norm keeps in order, and that is the next two sections.
# What a shortcut does comes in section 5.
#
# ## 3 · Batch normalisation
#
# What would happen without? Take the norms out of the plain network, and multiply the weights of its convolutions by
# ½, 1 and 2. They begin as He and others (2015) want it, so that with a factor of 1 each layer should keep the size of
# what it is given. How large is what the last of the 31 convolutions gives?


# %%
def size_at_the_end(factor, normed):
    """The standard deviation of what the last convolution, and its norm, gives."""
    model, x = network(32, PLAIN), device.asarray(few)
    for step in convolutions_of(model):
        step.convolution.weight.data[:] = factor * step.convolution.weight.data
        step.norm = step.norm if normed else Identity()
        step.activated = False
        given, _ = step.forward(x, device.generator(0))
        x, _ = relu(given)
    return to_host(given).std()


sizes = {(f, n): size_at_the_end(f, n) for f in (0.5, 1.0, 2.0) for n in (False, True)}
for (factor, normed), size in sizes.items():
    print(f"weights × {factor:<4g} {'batch norm' if normed else 'no norm':11} {size:.1e}")
assert sizes[0.5, False] < 1e-6 < 1e6 < sizes[2.0, False]
assert all(abs(sizes[factor, True] - 1) < 0.02 for factor in (0.5, 1.0, 2.0))

# %% [markdown]
# A factor for each layer is a factor to the power of 31 for all. Even that of 1 has lost some, to the zeros around
# these small pictures and to chance. And learning changes each factor, so that each layer has to follow what those
# before it do. Ioffe and Szegedy (2015) put the size in order behind each layer, by what can be seen of it in the
# batch.
#
# ### The definition
#
# Take one feature. In a batch it has $N$ values $x_1 \dots x_N$: one from each row of (B, C), and in pictures
# (B, Y, X, C) one from *each place of each picture*, as a convolution has the same weights at all places. Then
#
# $$
# \mu = \frac1N \sum_n x_n
# \qquad
# \sigma = \sqrt{\frac1N \sum_n (x_n - \mu)^2 + \varepsilon}
# \qquad
# \hat x_n = \frac{x_n - \mu}{\sigma}
# \qquad
# y_n = \gamma \, \hat x_n + \beta ,
# $$
#
# with a small ε for features that are the same everywhere, and a gain γ and a shift β for each feature, learned as
# weights are, ones and zeros at first. LayerNorm ([lesson 07](07_layer_norm.ipynb)) has the same formula along the
# other axis.

# %%
B, Y, X, C = 3, 4, 5, 2
x = device.asarray(rng.normal(1.0, [2.0, 0.5], (B, Y, X, C)))
gamma, beta = (device.asarray(values) for values in ([1.5, 0.7], [0.2, -0.3]))
(y, mean, variance), cache = batch_norm(x, gamma, beta)
shape_table(
    {"B": B, "Y": Y, "X": X, "C": C},
    x=(x, "B Y X C", "N = B Y X values of each channel"),
    mean=(mean, "C", "of each channel over the batch and all places"),
    variance=(variance, "C", "the mean square around it"),
    gamma=(gamma, "C", "the gain; β is as large"),
    y=(y, "B Y X C", "each channel at one scale"),
)

# %% [markdown]
# A feature that is shifted, or made $k \gt 0$ times as large, gives the same $y$, up to ε. So a bias in front of a
# batch norm has no effect, and the convolutions here have none. The scale of their weights has no effect either.
#
# ### A picture of the backward pass
#
# Given $dy$ we want $dx$, the gradient of the loss. Here is one feature with 16 values. Each point is one of them: how
# large it is, and its $dy$. The line is the straight line that lies closest to the points, by the sum of squares:

# %%
column, dcolumn = rng.standard_normal((2, 16, 1))
dcolumn = dcolumn + 0.8 * column + 0.5
one, nothing = np.ones(1), np.zeros(1)
(_, middle, spread), cache_of_column = batch_norm(column, one, nothing, 1e-12)
dx_of_column, _, _ = batch_norm_backward(dcolumn, cache_of_column)
slope, height = np.polyfit(column[:, 0], dcolumn[:, 0], 1)
line = slope * column + height
assert np.allclose(dx_of_column * np.sqrt(spread), dcolumn - line)

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4))
ends_of_line = np.array([column.min() - 0.2, column.max() + 0.2])
axes.plot(ends_of_line, slope * ends_of_line + height, "-", color=BLACK, lw=1, label="closest line")
for at, given, on_line in zip(column[:, 0], dcolumn[:, 0], line[:, 0], strict=True):
    axes.plot([at, at], [on_line, given], "-", color=VERMILION, lw=2)
axes.plot(
    [], [], "-", color=VERMILION, lw=2, label=r"what is left: $\sigma \, dx$, for $\gamma = 1$"
)
axes.plot(column, dcolumn, "o", color=BLUE, label="$dy$ of a value")
axes.set(xlabel="the value $x$", ylabel="its gradient")
axes.legend()
plt.show()

# %% [markdown]
# **The gradient that comes through is what a straight line does not explain.** The assertion says it, and the
# derivation will. Its height at the mean is what a shift of the whole feature could gain, and its slope what a scale
# could. The norm undoes both, so nothing can be gained by either.
#
# ### Derivation
#
# *The parameters.* γ and β of a feature serve all $N$ values, so their gradients are sums over all:
#
# $$
# d\gamma = \sum_n dy_n \, \hat x_n
# \qquad
# d\beta = \sum_n dy_n .
# $$
#
# *The mean.* Each $x_n$ is a part of it: $\partial \mu / \partial x_n = 1/N$.
#
# *The deviation.* From $\sigma^2 = \frac1N \sum_m (x_m - \mu)^2 + \varepsilon$, by the chain rule, with
# $[m = n]$ for 1 if $m = n$ and 0 if not,
#
# $$
# 2 \sigma \frac{\partial \sigma}{\partial x_n}
# = \frac1N \sum_m 2 (x_m - \mu) \Bigl( [m = n] - \frac1N \Bigr)
# = \frac2N (x_n - \mu) - \frac{2}{N^2} \sum_m (x_m - \mu) .
# $$
#
# The last sum is 0, as deviations from a mean add up to 0. So
# $\partial \sigma / \partial x_n = (x_n - \mu) / (N \sigma) = \hat x_n / N$: what lies above the mean widens, what lies
# below narrows when it grows.
#
# *The normalised value.* $\hat x_m = (x_m - \mu) / \sigma$ by the quotient rule:
#
# $$
# \frac{\partial \hat x_m}{\partial x_n}
# = \frac{[m = n] - \frac1N}{\sigma} - \frac{x_m - \mu}{\sigma^2} \cdot \frac{\hat x_n}{N}
# = \frac1\sigma \Bigl( [m = n] - \frac1N - \frac{\hat x_m \hat x_n}{N} \Bigr) .
# $$
#
# *All together.* $x_n$ moves every $\hat x_m$ of its feature, and $d\hat x_m = \gamma \, dy_m$. The sum over $m$ has
# three terms, one for each of those in the bracket:
#
# $$
# dx_n = \sum_m \gamma \, dy_m \frac{\partial \hat x_m}{\partial x_n}
# = \frac{\gamma}{\sigma} \Bigl( dy_n - \frac1N \sum_m dy_m - \hat x_n \frac1N \sum_m dy_m \hat x_m \Bigr) .
# $$
#
# γ could leave the sums since it is the same for the whole feature. (In LayerNorm it differs within a row and cannot.)
# And the two sums are known already:
#
# $$
# \boxed{ \; dx_n = \frac{\gamma}{\sigma} \Bigl( dy_n - \frac{d\beta}{N} - \hat x_n \frac{d\gamma}{N} \Bigr) \; }
# $$
#
# ### What the formula says
#
# Let $\varepsilon = 0$, and take the $N$ values as vectors. Then $\mathbf 1 \cdot \mathbf 1 = N$,
# $\hat x \cdot \hat x = N$, as the mean square of $\hat x$ is 1, and $\mathbf 1 \cdot \hat x = 0$. The part of $dy$
# along $\mathbf 1$ is $\mathbf 1 (\mathbf 1 \cdot dy) / N$, and that along $\hat x$ is $\hat x (\hat x \cdot dy) / N$.
# These are the two terms. So $dx$ is what is left of $dy$ **orthogonal to $\mathbf 1$ and to $\hat x$**, times
# $\gamma / \sigma$. That is the remainder of the picture, as the closest line is the part in the plane of $\mathbf 1$
# and $\hat x$.
#
# - $\sum_n dx_n = 0$: the gradient of a bias in front of the norm, which has no effect.
# - $dx$ has the factor $1 / \sigma$: from weights twice as large come gradients half as large.
# - **With two values nothing is left.** Two dimensions less two are none. Then $\hat x$ is 1 and −1, whatever $x$ is.
#   A batch of two *pictures* has $2 Y X$ values a channel, and is not so poor.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `batch_norm(x, gamma, beta, epsilon=1e-5)` | (..., C), two (C,) | `(y, mean, variance), cache`: y (..., C), two (C,) |
# | `batch_norm_backward(dy, cache)` | (..., C) | dx (..., C), dgamma, dbeta (C,) |
#
# The variance that is returned is the mean square around the mean, without ε. You decide over which axes the means go,
# so that (B, C), (B, Y, X, C) and any other number of axes work, what $N$ is then, and what to keep.

# %%
x_here, gamma_here, beta_here = (to_host(array) for array in (x, gamma, beta))
dy = rng.standard_normal((B, Y, X, C))


def facts(batch_norm, batch_norm_backward):
    inputs = gamma_here, beta_here, 1e-12
    (y, mean, variance), cache = batch_norm(x_here, *inputs)
    (same, of_larger, square), cache_of_larger = batch_norm(3 * x_here + 5, *inputs)
    yield "features made larger and shifted give the same", np.allclose(same, y)
    yield "their means follow", np.allclose(of_larger, 3 * mean + 5)
    yield "their variances are 9 times as large", np.allclose(square, 9 * variance)
    (_, _, of_two), _ = batch_norm(np.array([[3.0], [-3.0]]), np.ones(1), np.zeros(1))
    yield "the variance of 3 and −3 is 9", np.allclose(of_two, 9)
    (in_rows, _, _), _ = batch_norm(x_here.reshape(-1, C), *inputs)
    yield "the places of pictures are rows", np.allclose(in_rows.reshape(y.shape), y)
    (flat, _, _), _ = batch_norm(np.ones((4, C)), gamma_here, beta_here)
    yield "a feature that is the same everywhere gives β", np.allclose(flat, beta_here)
    dx, dgamma, dbeta = batch_norm_backward(dy, cache)
    places = 0, 1, 2
    yield "nothing is left of dx along 1", np.allclose(dx.sum(axis=places), 0)
    yield "nor along x", np.allclose((dx * x_here).sum(axis=places), 0)
    yield (
        "γ dγ + β dβ is Σ dy y",
        np.allclose(gamma_here * dgamma + beta_here * dbeta, (dy * y).sum(axis=places)),
    )
    _, cache_of_twice = batch_norm(x_here, 2 * gamma_here, beta_here, 1e-12)
    of_twice, _, _ = batch_norm_backward(dy, cache_of_twice)
    yield "twice γ gives twice dx", np.allclose(of_twice, 2 * dx)
    of_larger, _, _ = batch_norm_backward(dy, cache_of_larger)
    yield "where x is 3 times as large, dx is a third", np.allclose(3 * of_larger, dx)
    _, cache_of_two = batch_norm(x_here[:2, 0, 0], *inputs)
    yield (
        "of two rows nothing is left",
        np.allclose(batch_norm_backward(dy[:2, 0, 0], cache_of_two)[0], 0),
    )


try_yours("batch_norm", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right:

# %%
show("batch_norm")

# %% [markdown]
# ### Proof, and a mistake
#
# `check_pair` compares it with the quotients of small differences ([lesson 03](03_gradient_checking.ipynb)). It wants a
# forward that returns $y$ alone:


# %%
def y_alone(x, gamma, beta):
    (y, _, _), cache = batch_norm(x, gamma, beta)
    return y, cache


report = check_pair(y_alone, batch_norm_backward, (x_here, gamma_here, beta_here))
print(report)
assert report.right

# %% [markdown]
# A mistake that is easily made takes μ and σ for constants in the backward pass. They look like constants where the
# norm is applied. Then each value is for itself, and the two sums are missing. The package has that backward, for
# statistics that *are* constants (section 4). Here it is the wrong one:

# %%
report = check_pair(y_alone, running_norm_backward, (x_here, gamma_here, beta_here))
print(report)
assert not report.right
_, cache = y_alone(x_here, gamma_here, beta_here)
right, wrong = (back(dy, cache)[0] for back in (batch_norm_backward, running_norm_backward))
gains = [abs(dx.sum(axis=(0, 1, 2))).max() for dx in (right, wrong)]
print(f"\ngradient of a bias in front: right {gains[0]:.0e}, with the mistake {gains[1]:.1f}")
assert gains[0] < 1e-12 < 0.1 < gains[1]

# %% [markdown]
# dγ and dβ are right, only dx is not. What does it do in a training? A bias in front of the norm gets a gradient,
# moves, and the loss stays what it was, as the norm takes the bias off again. So it moves on, without an end. Ioffe and
# Szegedy tell of this in their section 2.
#
# PyTorch keeps channels first, so they are moved for it:

# %%
if find_spec("torch"):
    import torch

    arrays = np.moveaxis(x_here, -1, 1), gamma_here, beta_here
    tensors = [torch.tensor(array.copy(), requires_grad=True) for array in arrays]
    theirs = torch.nn.functional.batch_norm(tensors[0], None, None, *tensors[1:], training=True)
    theirs.backward(torch.tensor(np.moveaxis(dy, -1, 1).copy()))
    theirs = theirs.detach(), *(tensor.grad for tensor in tensors)
    y, cache = y_alone(x_here, gamma_here, beta_here)
    ours = y, *batch_norm_backward(dy, cache)
    for name, mine, its in zip(("y", "dx", "dγ", "dβ"), ours, theirs, strict=True):
        its = np.moveaxis(its.numpy(), 1, -1) if its.ndim == 4 else its.numpy()
        print(f"{name:2} differs by at most {abs(mine - its).max():.0e}")
        assert np.allclose(mine, its, rtol=1e-6, atol=1e-12)

# %% [markdown]
# ## 4 · What it does to a batch
#
# ### Mean 0 and deviation 1, and the form stays
#
# One often reads that it makes a normal distribution of a feature, $N(0, 1)$. The formula says something else:
# $\hat x$ is a shift and a scale of $x$. The form stays. Here are the values of all pixels, most of which are the dark
# behind the thing, before and after. The *skewness* is the mean of $\hat x^3$, 0 for a normal distribution:

# %%
pixels = grey.reshape(-1, 1).astype(np.float64)
(normed, _, _), _ = batch_norm(pixels, np.ones(1), np.zeros(1))


def skewness(values):
    return (((values - values.mean()) / values.std()) ** 3).mean()


for values in (pixels, normed):
    moments = values.mean() + 0, values.std(), skewness(values)
    print("mean {:.2f}, deviation {:.2f}, skewness {:.2f}".format(*moments))
assert np.isclose(skewness(pixels), skewness(normed))
assert skewness(normed) > 0.5

# %% [markdown]
# ### Each picture has a part in the others
#
# μ and σ are those of the batch. So what a network says of a picture depends on which others come with it, and the
# gradient of one picture's loss reaches the pixels of the others. We train the package's `SmallNetwork` of three
# convolutions, with batch norm, and with LayerNorm of the channels at each place, which knows no batch. Then one
# picture's logits alone get a gradient, in a batch of 8:


# %%
def small_network(norm="batch-norm", seed=0):
    config = SmallNetworkConfig(12, 12, 1, 10, num_features=8, dropout=0.0, normalisation=norm)
    return SmallNetwork(config, seed=seed, device=device)


of_norms = {}
for norm in ("batch-norm", "layer-norm"):
    of_norms[norm] = small_network(norm)
    learn(of_norms[norm], many, many_labels, steps=300, rate=0.1, size=16, divided_at=200)
in_use = copy.deepcopy(of_norms["batch-norm"])  # batches that are asked for later are not in it

reached = {}
for norm, model in of_norms.items():
    logits, cache = model.logits(unseen[:8], device.generator(0))
    dlogits = 0 * logits
    dlogits[0] = device.asarray(rng.standard_normal(10))
    model.flat.grad.fill(0)
    dpictures = to_host(model.backward(dlogits, cache))
    reached[norm] = np.sqrt((dpictures.astype(np.float64) ** 2).sum(axis=(1, 2, 3)))
    parts = reached[norm] / reached[norm][0]
    print(f"{norm:10} gradient at each picture, that of its own 1:", *(f"{p:.2f}" for p in parts))
assert reached["batch-norm"][1:].min() > 0.001 * reached["batch-norm"][0]
assert not reached["layer-norm"][1:].any()

# %% [markdown]
# How much do the companions matter? We ask for the logits of a picture twelve times, each time in a batch with others,
# and take the deviation of the answers, relative to how far the answers for different pictures are apart:

# %%
COMPANIES, picks, moved = (2, 4, 8, 16, 32, 64), np.random.default_rng(0), {}
for norm, model in of_norms.items():
    apart = to_host(model.logits(unseen)[0]).std(axis=0).mean()
    for size in COMPANIES:
        batches = [
            [i, *picks.choice(range(12, 500), size - 1)] for i in range(12) for _ in range(12)
        ]
        with accelerated():
            answers = [model.logits(unseen[some], device.generator(0))[0][0] for some in batches]
        answers = np.array([to_host(answer) for answer in answers]).reshape(12, 12, 10)
        moved[norm, size] = answers.std(axis=1).mean() / apart
    print(f"{norm:10} in batches of 2 to 64:", *(f"{moved[norm, size]:.2f}" for size in COMPANIES))
    assert norm == "batch-norm" or max(moved[norm, size] for size in COMPANIES) < 1e-4
assert moved["batch-norm", 64] < 0.7 * moved["batch-norm", 8]  # 1 / √8 is 0.35

# %% [markdown]
# From some size on it falls: the statistics are means over $B$ pictures, and the error of such a mean falls as
# $1 / \sqrt B$. In a training that is a noise. Where an answer is wanted it is a fault. LayerNorm
# has none of it.
#
# ### In a text it sees the future
#
# In a Transformer a row is a token, and batch norm would take its means over all tokens of all texts: what is said at
# one word would hang on later ones. A layer norm over a whole sentence at once would do the same. The paper's norms
# each token by itself. Let $dy$ be random at token 2 of 5 in the first of two texts, and 0 elsewhere. Then $dx$ is not
# 0 where something of $x$ has a part in that $y$:

# %%
texts, dtoken = rng.standard_normal((2, 5, 4)), np.zeros((2, 5, 4))
dtoken[0, 1] = rng.standard_normal(4)


def tokens_reached(forward, backward, shape, width):
    """Where dx is not 0, of each token of both texts, for a norm of arrays of another shape."""
    _, cache = forward(texts.reshape(shape), np.ones(width), np.zeros(width))
    dx, _, _ = backward(dtoken.reshape(shape), cache)
    return abs(dx.reshape(texts.shape)).max(axis=-1) > 1e-9


reaches = {
    "batch norm": tokens_reached(y_alone, batch_norm_backward, (2, 5, 4), 4),
    "layer norm of sentences": tokens_reached(layer_norm, layer_norm_backward, (2, 20), 20),
    "layer norm of tokens": tokens_reached(layer_norm, layer_norm_backward, (2, 5, 4), 4),
}
for name, (first, second) in reaches.items():
    shown = ("".join("x" if there else "." for there in text) for text in (first, second))
    print(f"{name:24}", *shown)
assert reaches["batch norm"].all()
assert reaches["layer norm of sentences"][0].all()
assert reaches["layer norm of tokens"].sum() == 1

# %% [markdown]
# A language model with either of the first two could read the next word off the mean, and in use that word is not
# there. `benchmarks/norms.py` puts batch norm into a translator all the same: it learns, with batches of up to 128
# short sentences 0.03 to 0.11 nats a token behind layer norm
# ([measured](../docs/picture_claims.md#batch-norm-in-a-translator), three seeds).
#
# ### Running statistics
#
# So when a network is used it norms by constants. `BatchNorm` keeps *running* means and variances,
# $s \leftarrow 0.9 \, s + 0.1 \, s_{\text{batch}}$ after each batch, and norms by these when it is called without a
# generator. (The variance that goes in is the sum of squared deviations over $N - 1$, not $N$.) In this use μ and σ are
# constants, and $dx = \gamma / \sigma \, dy$. What if one norms by the batch all the same?


# %%
def share_right(pictures, labels, batches=None):
    """How many it gets right: by running statistics, or by those of each batch of a size."""
    size, said = batches or len(labels), []
    for i in range(0, len(labels), size):
        rng = device.generator(0) if batches else None
        logits, _ = in_use.logits(pictures[i : i + size], rng)
        said.append(to_host(logits))
    return float((np.concatenate(said).argmax(axis=-1) == labels).mean())


notes = {"running statistics": share_right(unseen, unseen_labels)}
notes["a batch of 100"] = share_right(unseen, unseen_labels, 100)
notes["batches of 2"] = share_right(unseen, unseen_labels, 2)
notes["each picture alone"] = share_right(unseen, unseen_labels, 1)
by_class = np.argsort(unseen_labels, kind="stable")
notes["batches of 50, of one class"] = share_right(unseen[by_class], unseen_labels[by_class], 50)
for step in in_use.convolutions:  # as at the beginning: nothing was ever noted
    step.norm.mean.data[:], step.norm.variance.data[:] = 0, 1
notes["running statistics never noted"] = share_right(unseen, unseen_labels)
for name, share in notes.items():
    print(f"{name:32} {100 * share:.0f} % right")
assert min(notes["running statistics"], notes["a batch of 100"]) > 0.1 + notes["each picture alone"]
assert notes["running statistics"] > 0.1 + notes["running statistics never noted"]
assert notes["a batch of 100"] > 0.1 + notes["batches of 50, of one class"]

# %% [markdown]
# (Pictures that it has not seen; a guess has 10 %.) A batch that is like those of the training does as well as the
# running statistics. A single picture does not, nor does a batch of one class only: there the norm takes off what is
# common to all of it, and that is the class. Such a batch is easy to make by mistake, from files in folders by class.
#
# The two ways to norm are two functions, and the second was never trained. Where weights change fast, the running
# statistics lag behind.
#
# **Small batches.** It is said that batch norm fails in them. Such a claim has to be read with its $N$. Two pictures of
# 12 × 12 are 288 values a channel in the first layer, and that is no bad mean. Where each picture has *one* row, as
# behind the last pooling, two are nothing (section 3). On Fashion-MNIST, batches of 2 do as well as those of 128: 14.0
# and 14.3 % are wrong ([measured](../docs/picture_claims.md#batch-norm-and-layer-norm-by-the-size-of-a-batch), three
# seeds; layer norm has 14.3 and 15.6 %). Large networks, of which each machine holds two pictures, do suffer: Wu and He
# (2018) measured it, and norm groups of channels within a picture. An exercise has that.
#
# ## 5 · Residual blocks
#
# A block with a shortcut gives
#
# $$
# z = x + F(x) \qquad y = \text{ReLU}(z) ,
# $$
#
# where $F$ is convolution, norm, ReLU, convolution, norm. He and others reason from section 1: if the best that more
# layers can do is to pass on what they get, let that be what they do from the start, and let them learn what is to be
# *added*.
#
# ### The backward pass
#
# $x$ is used twice. The sum hands $dz$ to both terms, and the gradients of the two uses add up:
#
# $$
# dz = dy \circ [z \gt 0]
# \qquad
# dx = dz + F'(x)^\top dz = \bigl( I + F'(x) \bigr)^\top dz .
# $$
#
# $F'(x)$ is the matrix of the derivatives of $F$, and $\circ$ the product entry by entry. Leave the ReLUs out, and take
# three blocks. The gradient of a plain network is one product,
#
# $$
# dx_0 = F_1'^\top F_2'^\top F_3'^\top \, dx_3 ,
# $$
#
# and that of a residual one is a product of brackets, which is a sum over all ways to go through or around:
#
# $$
# dx_0 = (I + F_1')^\top (I + F_2')^\top (I + F_3')^\top \, dx_3
# = \bigl( I + F_1' + F_2' + F_3' + F_2' F_1' + F_3' F_1' + F_3' F_2' + F_3' F_2' F_1' \bigr)^\top dx_3 .
# $$
#
# Of $n$ blocks there are $2^n$ paths, most of them through about half of the blocks.
# [Lesson 10](10_residual_connections.ipynb) has what follows for sizes, in a Transformer; here we ask what follows for
# learning.
#
# ### F = 0 is easy, and to pass on is not
#
# With γ = 0 in the last norm of each block, $F$ is exactly 0, and as $x$ comes from a ReLU, $\text{ReLU}(x) = x$: the
# block is not there. Many start so (Goyal and others 2017).

# %%
net = network(32, RESIDUAL)
for block in net.stages[0]:  # the stage in which nothing changes its size
    block.steps[-1].norm.gamma.data[:] = 0
first, _ = net.first.forward(device.asarray(few), device.generator(0))
passed = first
for block in net.stages[0]:
    passed, _ = block.forward(passed, device.generator(0))
assert np.array_equal(to_host(passed), to_host(first))

# %% [markdown]
# A plain block can pass on, too: a kernel with a 1 in the middle and zeros around copies a channel, and γ and β of the
# norm undo what the norm does. But all of these numbers have to be found. We let 1, 2 and 4 blocks learn to give back
# what they are given, random pictures of 8 channels, from random weights, in 100 steps. The error is relative to the
# variance of the pictures: an answer that is always the mean has 1.


# %%
class Stack(Module):
    def __init__(self, count, shortcut, rng):
        config = config_of(8, shortcut)
        self.blocks = [Block(config, 8, 8, 8, 1, rng) for _ in range(count)]


def error_of_copies(count, shortcut, seed):
    picks = np.random.default_rng(seed)
    stack = Stack(count, shortcut, picks).to(device)
    flat = FlatParameters(stack)
    sgd, errors = SGD(flat, momentum=0.9), []
    for _ in range(100):
        x = np.maximum(picks.standard_normal((8, 6, 6, 8)), 0).astype(np.float32)
        variance, x, caches = x.var(), device.asarray(x), []
        y = x
        for block in stack.blocks:
            y, cache = block.forward(y, device.generator(0))
            caches.append(cache)
        errors.append(float(((y - x) ** 2).mean()) / variance)
        dy = (y - x) * (2 / y.size)
        flat.grad.fill(0)
        for block, cache in zip(stack.blocks[::-1], caches[::-1], strict=True):
            dy = block.backward(dy, cache)
        sgd.step(0.1)
    return np.mean(errors[-10:])


with accelerated():
    copies = {
        (shortcut, count): [error_of_copies(count, shortcut, seed) for seed in SEEDS]
        for shortcut in NAMES
        for count in (1, 2, 4)
    }
for (shortcut, count), errors in copies.items():
    said = " ".join(f"{error:.2f}" for error in errors)
    print(f"{NAMES[shortcut][0]:9} {count} blocks: error {said}")
for count in (1, 2, 4):
    assert max(copies[RESIDUAL, count]) < 0.6 * min(copies[PLAIN, count])
assert min(copies[PLAIN, 4]) > 0.8

# %% [markdown]
# One plain block, two layers, halves the error, and four learn nothing. The residual ones only have to unlearn what
# random weights add.
#
# ### Where the sizes do not fit
#
# In front of the second and third stage the picture gets half as large and has twice the channels, so $x$ cannot be
# added to $F(x)$. Three shortcuts have names in the paper (section 4.1): **A** takes every second place and fills up
# with channels of zeros; **B** has a convolution of 1 × 1 and a norm there; **C** has them at all blocks. What do they
# cost? In the paper's networks for CIFAR-10, 32 × 32 in three colours:

# %%
print("layers " + "".join(f"{s:>12}" for s in "ABC"))
for depth in (20, 32, 44, 56, 110):
    counts = {
        s: ResidualNetworkConfig(32, 32, 3, 10, depth=depth, shortcut=s).num_parameters()
        for s in "ABC"
    }
    print(f"{depth:6} " + "".join(f"{count:12,}" for count in counts.values()))
    # Two maps of 1 × 1, of 16 to 32 channels and of 32 to 64, and γ and β of their norms.
    assert counts["B"] - counts["A"] == 16 * 32 + 32 * 64 + 2 * (32 + 64)

# %% [markdown]
# A costs nothing, and B next to it. The paper finds B a little better than A, C a little better than B, and that this
# is not what the cure of degradation hangs on. In short trainings on Fashion-MNIST it is the other way round: with 56
# layers A has 12.7 % wrong, B 14.0 %, and C 21.3 % (one seed). Our networks have A.
#
# ### How much does a block add?
#
# If blocks start from passing on, each should add less, the more there are. The paper's figure 7 shows
# the deviations of the layers' responses. Here is the deviation of $F(x)$ relative to that of $x$ that it is added to,
# in the residual networks of section 1, after their training, the mean of three seeds:


# %%
def shares_added(model):
    """The deviation of F(x) over that of what it is added to, for each block."""
    x, _ = model.first.forward(device.asarray(few), device.generator(0))
    shares = []
    for block in (block for stage in model.stages for block in stage):
        past, _ = block.shortcut.forward(x, device.generator(0))
        z = x
        for step in block.steps:
            z, _ = step.forward(z, device.generator(0))
        shares.append(to_host(z).std() / to_host(past).std())
        x, _ = block.forward(x, device.generator(0))
    return np.array(shares)


added = {d: np.array([shares_added(trained[d, RESIDUAL, s]) for s in SEEDS]) for d in DEPTHS}
for depth, of_seeds in added.items():
    print(f"{depth:2} layers: F(x) / x by block", *(f"{a:.1f}" for a in of_seeds.mean(axis=0)))
assert added[8].mean() > added[20].mean() > added[32].mean()

# %% [markdown]
# The more blocks there are, the smaller a part each adds: what comes from a norm has a deviation of about 1, and the
# sum that it is added to has grown.
#
# That is also a way to read section 2. The gradient of a residual network is a sum, and some of its terms go through
# few layers, as in a shallow network, whose gradient holds. The one product of a plain network turns with each of its
# factors.
#
# ## 6 · Exercises
#
# Fill in `answers/ex30.py`, your copy of [lessons/exercises/ex30.py](exercises/ex30.py), and run
# `minitransformer check ex30`. Or copy functions from there into new cells here, fill them in, and run the cell below
# again. The solutions are in [lessons/solutions/ex30.py](solutions/ex30.py).
#
# 1. **`share_of_paths`** (10 min). Which share of the paths through a residual network is short?
# 2. **`deepest_within`** (25 min). How many layers can a residual network have with so many weights?
# 3. **`folded`** (25 min). A trained batch norm is a fixed shift and scale. Let the convolution in front of it do both,
#    and the norm costs nothing any more.
# 4. **`group_norm`** (45 min). Statistics of groups of channels within a picture, which know no batch. Which of the
#    steps of section 3 no longer holds?

# %%
print(check_exercise("ex30", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | degradation | plain networks of more layers are worse on what they learn from; their gradients do not vanish, they stop holding |
# | batch norm | $\hat x = (x - \mu) / \sigma$ over the $N$ values of a feature, $y = \gamma \hat x + \beta$ |
# | backward | $dx = \frac\gamma\sigma \left( dy - \frac{d\beta}{N} - \hat x \frac{d\gamma}{N} \right), \quad d\gamma = \sum dy \, \hat x, \quad d\beta = \sum dy$ |
# | picture | $dx$ is what a straight line through $(x, dy)$ leaves, times $\gamma / \sigma$; orthogonal to $\mathbf 1$ and $\hat x$ |
# | in use | running statistics, constants: $dx = \gamma / \sigma \, dy$ |
# | residual block | $z = x + F(x), \quad dx = dz + F'^\top dz$; $F = 0$ is easy |
# | traps | μ and σ as constants in backward; two rows; batches of one class; statistics of a batch where an answer is wanted; $N - 1$ for the running variance, $N$ for σ |
#
# **Your own Transformer.** `batch_norm`, in the last part of `own.py`; `minitransformer check own` says whether it is
# right.
#
# **Next:** what trained all these networks: gradient descent with momentum, in [lesson 32](32_momentum.ipynb).
