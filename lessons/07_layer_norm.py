# %% [markdown]
# # 07 · Layer normalisation
#
# **You will** derive the backward of LayerNorm twice, once node by node through its graph and once
# in closed form; see as a picture what that gradient means; and find out why a Transformer uses
# LayerNorm and not BatchNorm, on sequences of uneven length.
#
# | | |
# |---|---|
# | In the paper | section 3.1: $\text{LayerNorm}(x + \text{Sublayer}(x))$; the method is Ba, Kiros and Hinton, *Layer Normalization* (2016) |
# | In the package | `minitransformer/layers/layer_norm.py` |
# | You need | the chain rule; `sum` and `mean` along an axis of a NumPy array |
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

from minitransformer import select_device
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLACK, BLUE, GREEN, VERMILION, shape_table, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.layers.layer_norm import LayerNorm, layer_norm, layer_norm_backward

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(7)


# %% [markdown]
# ## 1 · What it does, and to what
#
# Every sublayer of a Transformer adds its output to its input. Sums grow: adding two independent
# numbers of variance 1 gives variance 2, and the next sublayer starts from that. Here are 12 such
# sums, with random linear maps for sublayers, which keep the variance:


# %%
def standard_deviation_after(num_sums, normalise):
    width = 256
    x = rng.standard_normal((64, width))
    for _ in range(num_sums):
        weight = rng.standard_normal((width, width)) / np.sqrt(width)
        x = x + x @ weight
        if normalise:
            x, _ = layer_norm(x, np.ones(width), np.zeros(width))
    return x.std()


print(
    f"without LayerNorm: {standard_deviation_after(12, normalise=False):5.1f}, "
    f"and √2 to the 12th is {2**6}"
)
print(f"with LayerNorm:    {standard_deviation_after(12, normalise=True):5.1f}")

# %% [markdown]
# LayerNorm brings each token back to a standard scale. It takes **one row** of $D$ numbers, the vector of one
# token, and looks at nothing else:
#
# $$
# \mu = \frac1D \sum_{i=1}^{D} x_i
# \qquad
# \sigma = \sqrt{\frac1D \sum_{i=1}^{D} (x_i - \mu)^2 + \varepsilon}
# \qquad
# \hat x_i = \frac{x_i - \mu}{\sigma}
# \qquad
# y_i = \gamma_i \, \hat x_i + \beta_i
# $$
#
# The gain $\gamma$ and the shift $\beta$ are learned, and shared by all rows. The small
# $\varepsilon$ makes a constant row give $\beta$ and not a division by zero.

# %%
B, T, D = 2, 5, 8
x = device.asarray(rng.standard_normal((B, T, D)) * 3 + 1)
gamma, beta = device.asarray(rng.uniform(0.5, 1.5, D)), device.asarray(rng.standard_normal(D))
y, (x_hat, sigma, _) = layer_norm(x, gamma, beta)

shape_table(
    {"B": B, "T": T, "D": D},
    x=(x, "B T D", "the input: B sentences of T tokens, each a row of D numbers"),
    gamma=(gamma, "D", "gain γ, a number for each feature, at first 1"),
    beta=(beta, "D", "shift β, at first 0"),
    sigma=(sigma, "B T 1", "σ, one number for each **row**"),
    x_hat=(x_hat, "B T D", "x̂, each row with mean 0 and variance 1"),
    y=(y, "B T D", "the output"),
)

# %%
assert abs(to_host(x_hat).mean(axis=-1)).max() < 1e-12
assert abs(to_host(x_hat).var(axis=-1) - 1).max() < 1e-4  # not exactly 1: that is ε

# %% [markdown]
# ## 2 · A picture of it
#
# Subtracting the mean removes the part of $x$ along the vector $\mathbf 1 = (1, \dots, 1)$.
# Dividing by $\sigma$ then sets the length: $\sum_i \hat x_i^2 = D$ (up to $\varepsilon$). So
# whatever row comes in, $\hat x$ lies on a sphere of radius $\sqrt D$ in the space of the rows whose
# sum is 0. For $D = 3$ that space is a plane, the sphere is a circle, and we can look at it.
#
# Two things do not matter any more: a constant added to the row, and its scale,
#
# $$
# \hat x(x + a \mathbf 1) = \hat x(x), \qquad \hat x(c \, x) = \hat x(x) \quad (c \gt 0,\ \varepsilon = 0).
# $$
#
# In a direction in which the output does not change, no loss has a slope. These directions are $\mathbf 1$
# and $x$, and $\hat x$ is made of the two. So we know before any formula that **the gradient of a row is
# orthogonal to $\mathbf 1$ and to $\hat x$**: in the picture, it points along the circle, at a right angle
# to the ray. And a third thing: the same small move turns the ray of a point twice as far out by half
# the angle, so **the gradient is proportional to $1 / \sigma$**. Twelve rows on four rays, and their gradients:

# %%
PLANE = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])  # (2, 3), orthogonal to (1, 1, 1)
ANGLES, RADII = np.radians([35, 125, 180, 320]), np.array([0.8, 1.6, 3.2])
rays = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=-1)  # (4, 2)
points = (RADII[:, None, None] * rays).reshape(-1, 2) @ PLANE  # (12, 3)
x_hat_points, cache = layer_norm(points, np.ones(3), np.zeros(3))
gradients, _, _ = layer_norm_backward(np.tile([0.35, 0.15, -0.5], (12, 1)), cache)

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.2, 5.4))
turn = np.linspace(0, 2 * np.pi, 200)
axes.plot(np.sqrt(3) * np.cos(turn), np.sqrt(3) * np.sin(turn), "-", color="0.6", lw=1)
for ray in 3.2 * rays:
    axes.plot(*np.transpose([[0, 0], ray]), ":", color="0.5", lw=1)
for start, gradient in zip(points @ PLANE.T, gradients @ PLANE.T, strict=True):
    arrow = dict(arrowstyle="-|>", color=VERMILION, lw=1.8, shrinkA=0, shrinkB=0)
    axes.annotate("", start + gradient, start, arrowprops=arrow)
axes.plot(*(points @ PLANE.T).T, "o", color=BLUE, label="rows $x$, their means taken away")
axes.plot(
    *(x_hat_points @ PLANE.T).T, "s", color=BLACK, ms=5, label=r"$\hat{x}$ of the rows of a ray"
)
axes.plot([], [], "-", color=VERMILION, label="gradient $dx$, for the same $dy$ everywhere")
axes.set(aspect="equal", xlim=(-3.9, 3.9), ylim=(-2.6, 4.6))
axes.set(xlabel="first direction in the plane", ylabel="second direction in the plane")
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# The three rows of a ray have one $\hat x$. Every arrow stands at a right angle to its ray, and from
# one row to the next, twice as far out, it halves. Both derivations below must reproduce this.
#
# ## 3 · First derivation: backward through the graph
#
# We write $dx$ for $\partial L / \partial x$. Cut the formula into nodes so small that each has an
# obvious derivative. Values flow along the arrows, gradients against them:

# %% tags=["hide-input"]
NODES = {  # name, place, how many numbers it is for a row
    "x": (0, 1, "D"),
    "μ": (1, 0, "1"),
    "c": (2, 1, "D"),
    "v": (3, 0, "1"),
    "σ": (4, 0, "1"),
    "x̂": (5, 1, "D"),
    "y": (6, 1, "D"),
    "γ": (5.6, 0, "D"),
    "β": (6.4, 0, "D"),
}
EDGES = "x μ, x c, μ c, c v, v σ, c x̂, σ x̂, x̂ y, γ y, β y"

figure, axes = plt.subplots(figsize=(9, 2.7))
axes.set(xlim=(-0.4, 6.8), ylim=(-0.45, 1.45))
axes.axis("off")
for edge in EDGES.split(", "):
    start, end = (NODES[name][:2] for name in edge.split())
    arrow = dict(arrowstyle="-|>", color="0.35", shrinkA=15, shrinkB=15)
    axes.annotate("", end, start, arrowprops=arrow)
for name, (across, up, numbers) in NODES.items():
    many = numbers == "D"
    axes.plot(
        across,
        up,
        "o" if many else "s",
        ms=26,
        mfc="white",
        mec=BLUE if many else VERMILION,
        mew=1.8,
    )
    axes.text(across, up, name, ha="center", va="center", fontsize=13)
axes.plot([], [], "o", mfc="white", mec=BLUE, mew=1.8, label="D numbers")
axes.plot([], [], "s", mfc="white", mec=VERMILION, mew=1.8, label="one number for each row")
axes.legend(loc="lower left", bbox_to_anchor=(-0.02, -0.08), fontsize=9.5)
plt.show()

# %% [markdown]
# | forward, downwards | backward, upwards: what the node passes on |
# |---|---|
# | $\mu = \frac1D \sum_i x_i$ | $dx_i \mathrel{+}= d\mu / D$ |
# | $c_i = x_i - \mu$ | $dx_i \mathrel{+}= dc_i, \qquad d\mu = -\sum_i dc_i$ |
# | $v = \frac1D \sum_i c_i^2$ | $dc_i \mathrel{+}= dv \cdot 2 c_i / D$ |
# | $\sigma = \sqrt{v + \varepsilon}$ | $dv = d\sigma / (2 \sigma)$ |
# | $\hat x_i = c_i / \sigma$ | $dc_i \mathrel{+}= d\hat x_i / \sigma, \qquad d\sigma = -\sum_i d\hat x_i \, c_i / \sigma^2$ |
# | $y_i = \gamma_i \hat x_i + \beta_i$ | $d\hat x_i = \gamma_i \, dy_i, \qquad d\gamma_i = \sum_{\text{rows}} dy_i \hat x_i, \qquad d\beta_i = \sum_{\text{rows}} dy_i$ |
#
# Two rules make the right column. *A variable used in several places gets the sum of the gradients
# from all of them*: two arrows leave $x$, to $\mu$ and $c$, and two leave $c$, to $v$ and $\hat x$, hence
# each $\mathrel{+}=$. *A variable that serves many gets the sum over all it serves*: $\mu$ and $\sigma$
# serve the $D$ numbers of their row: $\sum_i$ runs along the last axis. $\gamma$ and $\beta$ serve every row of the
# batch: $\sum_{\text{rows}}$ runs over all other axes, and leaves $D$ sums.
#
# Reading the right column from the bottom to the top is the backward.
#
# ## 4 · Second derivation: the closed form
#
# The graph gives a gradient, but it does not show what the gradient is like. So we start again: how
# much does one number $x_j$ move one number $\hat x_i$ of its row? With $c_i = x_i - \mu$, and
# $[i = j]$ for 1 where $i = j$ and 0 elsewhere:
#
# **The mean.** $\mu$ is an average of $D$ numbers, so
#
# $$
# \frac{\partial \mu}{\partial x_j} = \frac1D, \qquad \frac{\partial c_i}{\partial x_j} = [i = j] - \frac1D .
# $$
#
# **The standard deviation.** Differentiate $\sigma^2 = \frac1D \sum_i c_i^2 + \varepsilon$ on both
# sides:
#
# $$
# 2 \sigma \frac{\partial \sigma}{\partial x_j}
# = \frac2D \sum_i c_i \left( [i = j] - \frac1D \right)
# = \frac2D \left( c_j - \frac1D \sum_i c_i \right)
# = \frac2D \, c_j ,
# $$
#
# because deviations from the mean sum to zero: that $\sigma$ depends on $\mu$ makes no difference.
# Divide by $2\sigma$ and recognise $\hat x_j = c_j / \sigma$:
#
# $$
# \frac{\partial \sigma}{\partial x_j} = \frac{c_j}{D \sigma} = \frac{\hat x_j}{D} .
# $$
#
# **The quotient.** Now $\hat x_i = c_i / \sigma$:
#
# $$
# \frac{\partial \hat x_i}{\partial x_j}
# = \frac1\sigma \frac{\partial c_i}{\partial x_j} - \frac{c_i}{\sigma^2} \frac{\partial \sigma}{\partial x_j}
# = \frac1\sigma \left( [i = j] - \frac1D - \frac{\hat x_i \hat x_j}{D} \right) .
# $$
#
# As a matrix, with $I$ the identity and rows as column vectors:
#
# $$
# J = \frac{\partial \hat x}{\partial x} = \frac1\sigma \left( I - \frac{\mathbf 1 \mathbf 1^\top}{D} - \frac{\hat x \hat x^\top}{D} \right) .
# $$
#
# **The gradient.** $dx_j = \sum_i d\hat x_i \, \partial \hat x_i / \partial x_j$, and the two sums are
# $D$ times a mean:
#
# $$
# \boxed{ \; dx_j = \frac1\sigma \left( d\hat x_j - \text{mean}(d\hat x) - \hat x_j \, \text{mean}(d\hat x \, \hat x) \right), \qquad d\hat x = \gamma \, dy \; }
# $$
#
# The matrix was needed only to get here. The result costs two means of a row, $O(D)$ work, where a
# product with $J$ costs $O(D^2)$.
#
# ### What the closed form says
#
# $\mathbf 1$ and $\hat x$ are orthogonal, since $\sum_i \hat x_i = 0$, and with $\varepsilon = 0$ both
# have the squared length $D$. So $\mathbf 1 \mathbf 1^\top / D$ and $\hat x \hat x^\top / D$ project
# onto these two directions, and $\sigma J$ takes both away and leaves the other $D - 2$ alone: exactly
# the tangents of section 2, with the factor $1 / \sigma$. Then the eigenvalues of $\sigma J$ must
# be two zeros and $D - 2$ ones:

# %%
row_hat, row_sigma = to_host(x_hat)[0, 0], float(to_host(sigma)[0, 0, 0])
projection = np.eye(D) - np.ones((D, D)) / D - np.outer(row_hat, row_hat) / D  # σ J
print("eigenvalues of σ J:", np.linalg.eigvalsh(projection).round(5) + 0.0)

# %% [markdown]
# (The $\varepsilon$ leaves a trace: with it $\sum_i \hat x_i^2 = D (1 - \varepsilon / \sigma^2)$, so
# $\hat x^\top dx$ is not quite 0, but $\varepsilon \, \hat x^\top d\hat x / \sigma^3$.)
#
# ## 5 · Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `layer_norm(x, gamma, beta, epsilon=1e-5)` | (..., $D$), ($D$,), ($D$,) | $y$ (..., $D$), `cache` |
# | `layer_norm_backward(dy, cache)` | (..., $D$) | $dx$ (..., $D$), $d\gamma$, $d\beta$ ($D$,) |
#
# Either derivation will do; it decides what to keep in the cache:


# %%
inputs, dy = [to_host(array) for array in (x, gamma, beta)], rng.standard_normal((B, T, D))


def facts(layer_norm, layer_norm_backward):
    x, gamma, beta = inputs
    y, cache = layer_norm(x, gamma, beta)
    dx, _, _ = layer_norm_backward(dy, cache)
    plain = (y - beta) / gamma
    yield (
        "(y − β) / γ has mean 0 and spread 1 in each row",
        np.allclose([plain.mean(axis=-1), plain.std(axis=-1) - 1], 0, atol=1e-4),
    )
    along = [dx.sum(axis=-1), (dx * x).sum(axis=-1)]
    yield "dx is orthogonal to 1 and to x", np.allclose(along, 0, atol=1e-4)
    ahead, behind = (layer_norm(x + s * dy, gamma, beta)[0] for s in (1e-5, -1e-5))
    moved = ((ahead - behind) * dy).sum() / 2e-5
    yield "a small step moves L as dx says", np.isclose(moved, (dx * dy).sum(), rtol=1e-4)
    far, _ = layer_norm(10 * x + 3, gamma, beta)
    yield "10 x + 3 has the same y", np.allclose(far, y, atol=1e-4)


try_yours("layer_norm", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right:

# %%
show("layer_norm")

# %% [markdown]
# It is the boxed formula, with a name for each term. The table of section 3, line by line, gives the same
# gradient. (The code is folded: write yours first.)


# %% tags=["hide-input"]
def backward_by_graph(dy, cache):
    """The gradients of layer_norm, node by node: each line undoes one line of the forward."""
    x_hat, sigma, gamma = cache
    c = x_hat * sigma
    D = dy.shape[-1]

    dx_hat = gamma * dy  # y = γ x̂ + β
    dgamma = (dy * x_hat).sum(axis=(0, 1))
    dbeta = dy.sum(axis=(0, 1))
    dc = dx_hat / sigma  # x̂ = c / σ
    dsigma = -(dx_hat * c).sum(axis=-1, keepdims=True) / sigma**2
    dv = dsigma / (2 * sigma)  # σ = √(v + ε)
    dc = dc + dv * 2 * c / D  # v = mean(c²)
    dmu = -dc.sum(axis=-1, keepdims=True)  # c = x − μ
    dx = dc + dmu / D  # and μ = mean(x)
    return dx, dgamma, dbeta


_, cache = layer_norm(*inputs)
closed, graph = layer_norm_backward(dy, cache), backward_by_graph(dy, cache)
for name, one, other in zip(("dx", "dγ", "dβ"), closed, graph, strict=True):
    print(f"{name}: closed form and graph differ by at most {abs(one - other).max():.0e}")
    assert np.allclose(one, other, rtol=1e-12, atol=1e-12)

# %% [markdown]
# Central differences agree to about ten digits ([lesson 03](03_gradient_checking.ipynb)). `check_module` first moves
# γ and β away from their initial 1 and 0:

# %%
report = check_module(LayerNorm(D), inputs[0])
assert report.right
print(report)

# %% [markdown]
# PyTorch agrees, to six digits and more:

# %%
if find_spec("torch"):
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in inputs]
    theirs = torch.nn.functional.layer_norm(tensors[0], (D,), *tensors[1:])
    theirs.backward(torch.tensor(dy))
    ours, cache = layer_norm(*inputs)
    ours = ours, *layer_norm_backward(dy, cache)
    theirs = theirs.detach(), *(tensor.grad for tensor in tensors)
    for name, mine, its in zip(("y", "dx", "dγ", "dβ"), ours, theirs, strict=True):
        print(f"{name:2} differs by at most {abs(mine - its.numpy()).max():.0e}")
        assert np.allclose(mine, its, rtol=1e-6)


# %% [markdown]
# ### The mistake that hides at the start of training
#
# $d\hat x = \gamma \, dy$ comes *before* the two means. Multiply by $\gamma$ at the end instead, and
# as long as $\gamma = 1$ nothing is wrong at all:


# %%
def gamma_at_the_end(dy, cache):
    x_hat, sigma, gamma = cache
    dx, dgamma, dbeta = layer_norm_backward(dy, (x_hat, sigma, np.ones(D)))
    return gamma * dx, dgamma, dbeta


print("γ = 1, as at the start of training")
print(check_pair(layer_norm, gamma_at_the_end, (inputs[0], np.ones(D), np.zeros(D))))
print("γ between 0.5 and 1.5")
report = check_pair(layer_norm, gamma_at_the_end, inputs)
assert not report.right
print(report)

# %% [markdown]
# A check at initial values passes, and the gradient grows wrong as γ learns. The two warnings of the first
# report say why its "right" is worth little: a γ of 1 hides where it is multiplied, and a β of 0 whatever
# is multiplied by it.
#
# ## 6 · Why not BatchNorm?
#
# BatchNorm (Ioffe and Szegedy 2015) came first, for networks that look at images. Its formula is
# the same; the mean and the variance go along the *other* axis. For each feature it takes them over
# all rows of the batch:


# %%
def normalise_features(x, valid=None, epsilon=1e-5):
    """Each feature brought to mean 0 and variance 1 over the rows of a batch, (B, T, D).

    With valid (B, T), over the real tokens only; padding is normalised with their statistics.
    """
    rows = x.reshape(-1, x.shape[-1]) if valid is None else x[valid]  # (N, D)
    return (x - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0) + epsilon)


def normalise_rows(x):
    """LayerNorm with γ = 1 and β = 0."""
    return layer_norm(x, np.ones(x.shape[-1]), np.zeros(x.shape[-1]))[0]


# %% [markdown]
# Sentences differ in length, so a batch of them is filled up with padding. Let a fraction $f$ of the
# positions hold real tokens, and let a feature have mean $m$ and standard deviation $s$ over those.
# If padding is zeros and the statistics are taken over everything, then
#
# $$
# \text{mean} = f m ,
# \qquad
# \text{variance} = \underbrace{f (s^2 + m^2)}_{\text{mean of the squares}} - (f m)^2 = f s^2 + f (1 - f) \, m^2 .
# $$
#
# Both depend on $f$: on how long the longest sentence of the batch happens to be, which says nothing
# about the others. To measure it, one and the same sentence of six tokens is put into batches with
# six more of its length and a single long one. All tokens come from one distribution with
# $m = s = 1$, so the right answers are 1 and 1.

# %%
WIDTH, SHORT, SENTENCES = 64, 6, 8
the_sentence = rng.normal(1, 1, (SHORT, WIDTH))
longest = np.arange(6, 61, 3)


def batch_with_one_long(longest):
    """The sentence, six more as short and a long one: x (8, longest, WIDTH), valid (8, longest)."""
    lengths = np.array([SHORT] * (SENTENCES - 1) + [longest])
    valid = np.arange(longest) < lengths[:, None]
    x = rng.normal(1, 1, (SENTENCES, longest, WIDTH)) * valid[..., None]
    x[0, :SHORT] = the_sentence
    return x, valid


batches = [[batch_with_one_long(length) for _ in range(10)] for length in longest]
f = (7 * SHORT + longest) / (SENTENCES * longest)  # the fraction of real tokens, for each length
over_all, over_real, of_token = {}, {}, {}
for statistic in (np.mean, np.std):
    over_all[statistic] = [[statistic(x, axis=(0, 1)) for x, _ in batch] for batch in batches]
    over_real[statistic] = [[statistic(x[v], axis=0) for x, v in batch] for batch in batches]
    of_token[statistic] = [statistic(batch[0][0][0, :SHORT], axis=-1) for batch in batches]


# %% tags=["hide-input"]
def quartiles(values):
    return np.percentile(np.reshape(values, (len(longest), -1)), [25, 50, 75], axis=1)


figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.4))
for axes, statistic, predicted, formula in (
    (panels[0], np.mean, f, "$f m$"),
    (panels[1], np.std, np.sqrt(f + f * (1 - f)), r"$\sqrt{f s^2 + f (1 - f) m^2}$"),
):
    for values, colour, style, name in (
        (over_all[statistic], VERMILION, "--", "BatchNorm, over all positions"),
        (over_real[statistic], GREEN, "-.", "BatchNorm, over real tokens"),
    ):
        low, middle, high = quartiles(values)
        axes.plot(longest, middle, color=colour, linestyle=style, label=name)
        axes.fill_between(longest, low, high, color=colour, alpha=0.2, lw=0)
    axes.plot(longest, predicted, ":", color=BLACK, label="the formula for all positions")
    tokens = of_token[statistic]  # (lengths, SHORT)
    axes.plot(longest, tokens, "-", color=BLUE, lw=1, label=["LayerNorm, each token", *[""] * 5])
    axes.annotate(formula, (longest[5], predicted[5]), (8, 10), textcoords="offset points")
    axes.set(xlabel="longest sentence of the batch (tokens)", ylim=(0, 1.3))
panels[0].set_title("mean that is taken away")
panels[1].set_title("standard deviation that is divided by")
panels[1].legend(loc="lower left")
plt.show()

# %% [markdown]
# The bands hold the middle half of the features. LayerNorm's statistics of the sentence are horizontal lines, one
# for each of its six tokens: they depend on the token alone. BatchNorm's over all positions follow the formula
# down to wrong values. Over real tokens they are right on average, and narrow down as the batch has more of them.
# But they are still the batch's, and so different each time.
#
# So masking the padding mends the bias, and not the principle. Which token's output depends on
# which token's input? We move each row of a batch a little and look which outputs follow:

# %%
lengths = np.array([6, 4])
valid = np.arange(6) < lengths[:, None]  # (2, 6)
batch = rng.normal(1, 1, (2, 6, WIDTH)) * valid[..., None]
nudge = 1e-3 * rng.standard_normal(WIDTH)


def influence(normalise):
    """How far row i of the output moves when row j of the input does, relative to the nudge."""
    before = normalise(batch)
    moved = []
    for place in np.ndindex(valid.shape):
        other = batch.copy()
        other[place] += nudge
        moved.append(np.linalg.norm(normalise(other) - before, axis=-1).ravel())  # (rows,)
    return np.transpose(moved) / np.linalg.norm(nudge)


influences = {
    "LayerNorm": influence(normalise_rows),
    "BatchNorm, over all positions": influence(normalise_features),
    "BatchNorm, over real tokens": influence(lambda x: normalise_features(x, valid)),
}

# %% tags=["hide-input"]
names = [f"{'ab'[i]}{t + 1}" if valid[i, t] else "pad" for i, t in np.ndindex(valid.shape)]
figure, panels = plt.subplots(1, 3, figsize=(10, 3.9), sharey=True)
for axes, (title, influence_of) in zip(panels, influences.items(), strict=True):
    with np.errstate(divide="ignore"):
        shown = np.log10(influence_of)  # −∞, drawn white, where there is none at all
    image = axes.imshow(shown, cmap="viridis_r", vmin=-2, vmax=0)
    axes.set(title=title, xlabel="input that is moved")
    axes.set_xticks(range(12), names, rotation=90, fontsize=8.5)
    axes.set_yticks(range(12), names, fontsize=8.5)
    axes.grid(False)
    axes.axhline(5.5, color=BLACK, lw=0.8)
    axes.axvline(5.5, color=BLACK, lw=0.8)
panels[0].set_ylabel("output that follows")
bar = figure.colorbar(image, ax=panels, shrink=0.8, label="size of its movement", extend="max")
bar.set_ticks([-2, -1, 0], labels=["0.01", "0.1", "1"])
plt.show()

# %% [markdown]
# Sentence *a* has six tokens, sentence *b* four and two of padding. LayerNorm's matrix is diagonal;
# where it is white the influence is exactly zero. With BatchNorm every token moves every other. That
# has three consequences, and each would be enough:
#
# - **The future reaches the past.** The decoder may not see the word that it is to predict, and its
#   attention is masked to that end. BatchNorm lets a3 through to a1 all the same.
# - **Strangers reach each other.** The translation of a sentence would depend on which others are
#   translated at the same time.
# - **A token alone is nothing.** The decoder writes one word at a time. One row has no spread: its
#   mean is itself, and every row becomes the same, $\beta$.

# %%
first, second = rng.standard_normal(
    (2, 1, 1, WIDTH)
)  # two different tokens, each a batch of its own
assert not normalise_features(first).any()
assert not normalise_features(second).any()  # both are all zeros: BatchNorm cannot tell them apart
assert not np.allclose(normalise_rows(first), normalise_rows(second))

future = batch.copy()
future[0, -1] += 1  # another last word in sentence a
changed = [
    abs(normalise(future) - normalise(batch))[0, 0].max()
    for normalise in (normalise_features, normalise_rows)
]
print("A new last word changes the first token's vector")
print(f"  under BatchNorm by {changed[0]:.3f}, under LayerNorm by {changed[1]:.3f}")
assert changed[1] == 0

# %% [markdown]
# After training, BatchNorm uses averages kept from training in place of the batch's statistics. Then it is a
# fixed affine map, and the three consequences are gone. But it is not the function that was trained. LayerNorm is
# the same in both.
#
# ## 7 · Two numerical details
#
# **Centre first, then square.** There is a formula for the variance that reads $x$ only once,
# $\text{mean}(x^2) - \mu^2$. It subtracts two large numbers to get a small one. In float32, with
# about seven digits, it fails as soon as the mean is large against the spread. The errors, measured:

# %%
row = rng.standard_normal(512)
row = (row - row.mean()) / row.std()  # variance 1
offsets = np.logspace(0, 4, 60)
one_pass, two_pass = [], []
for offset in offsets:
    shifted = (row + offset).astype(np.float32)
    truth = shifted.astype(np.float64).var()
    one_pass.append(abs((shifted**2).mean() - shifted.mean() ** 2 - truth) / truth)
    two_pass.append(abs(((shifted - shifted.mean()) ** 2).mean() - truth) / truth)

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.5, 3.6))
axes.loglog(offsets, np.maximum(one_pass, 1e-9), "o", ms=4, label=r"mean$(x^2) - \mu^2$")
axes.loglog(offsets, np.maximum(two_pass, 1e-9), "s", ms=4, label=r"mean$((x - \mu)^2)$, ours")
axes.loglog(
    offsets, offsets**2 * 2.0**-24, "-", color=BLACK, lw=1, label=r"$2^{-24} \mu^2 / \sigma^2$"
)
axes.set(
    xlabel=r"mean of the row, in units of its spread, $\mu / \sigma$",
    ylabel="relative error of the variance",
)
axes.legend()
plt.show()

# %% [markdown]
# The error of the short formula grows with the square of the mean: rounding leaves $2^{-24}$ of $\mu^2$, half
# the distance between neighbouring float32 numbers, and that is then compared with $\sigma^2$. At a mean of
# some thousand spreads nothing is left of the variance. (The few points far below the line are luck: roundings
# that cancel.) The package's two passes stay accurate.
#
# **What ε does.** It matters only where the variance is not large against it: at $10^{-5}$, for rows
# whose spread is below about 0.01. A constant row, as padding may be, has variance 0 and yields
# $\hat x = 0$ and $y = \beta$; its gradient is finite, though multiplied by
# $1 / \sigma = 1 / \sqrt{\varepsilon}$:

# %%
constant = np.full((1, D), 3.0)
y, cache = layer_norm(constant, inputs[1], inputs[2])
dx, _, _ = layer_norm_backward(np.ones((1, D)), cache)
assert np.array_equal(y[0], inputs[2])
assert np.isfinite(dx).all()
print(f"1/σ of a constant row: {1 / cache[1].item():.0f}")

# %% [markdown]
# ## 8 · Exercises
#
# Fill in `answers/ex07.py`, your copy of [lessons/exercises/ex07.py](exercises/ex07.py), and run
# `minitransformer check ex07`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex07.py](solutions/ex07.py).
#
# 1. **`dx_when_scaled`** (10 min). A row and twice that row give the same $y$. Do they get the same
#    gradient? You have seen the answer as a picture. What does it mean for the step size of a layer
#    whose weights grow?
# 2. **`lean_layer_norm`** (25 min). The next layer keeps $y$ for its own backward. Show that
#    LayerNorm need not keep $\hat x$ beside it, and find the price.
# 3. **`rms_norm`** (45 min). RMSNorm does not subtract the mean. Derive its backward, by whichever of
#    the two ways you like better.
# 4. **`masked_batch_norm`** (90 min). BatchNorm over real tokens, with its backward. First guess,
#    from section 4, which formula you will end with.

# %%
print(check_exercise("ex07", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | forward | $\hat x = (x - \mu) / \sigma, \quad y = \gamma \hat x + \beta$, over the $D$ numbers of one row |
# | backward | $dx = \frac1\sigma \left( d\hat x - \text{mean}(d\hat x) - \hat x \, \text{mean}(d\hat x \, \hat x) \right), \quad d\hat x = \gamma \, dy$ |
# | parameters | $d\gamma = \sum_{\text{rows}} dy \, \hat x, \quad d\beta = \sum_{\text{rows}} dy$ |
# | picture | $dx$ is orthogonal to $\mathbf 1$ and to $\hat x$, and proportional to $1 / \sigma$ |
# | keep | $\hat x$ or $y$; σ; γ |
# | trap | γ belongs inside the means; a check with γ = 1 does not see it |
# | why not BatchNorm | it lets padding, neighbours and the future into each token |
#
# **Your own Transformer.** `layer_norm`, with its backward: `minitransformer check own`.
#
# **Next:** attention, by which a position learns of the others, in [lesson 08](08_attention.ipynb). Where
# LayerNorm stands around it, before or after the sum, is the subject of
# [lesson 10](10_residual_connections.ipynb).
