# %% [markdown]
# # 29 · Seeing
#
# **You will** see why a linear map of pixels cannot tell a star from a disc; slide one small map over a picture, and
# derive its backward pass; throw most of a picture away by pooling; go through the choices that made AlexNet, one by
# one; and ask a network on which pixels its answer depends.
#
# | | |
# |---|---|
# | In the paper | not in it. Section 4 compares attention with convolution, over one axis |
# | In the package | `minitransformer/layers/convolution_2d.py`, `layers/pooling.py`, `models/alexnet.py`; [a guide](../docs/pictures.md) |
# | You need | the chain rule; matrix products; cross-entropy, as in [lesson 04](04_softmax_cross_entropy.ipynb) |
# | Time | an hour to read, one for the functions, two for the exercises |

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
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import accelerated, select_device
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLUE, VERMILION, shape_table, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.data.images.batches import picture_batches
from minitransformer.data.images.shapes import shapes_corpus
from minitransformer.data.images.statistics import PictureStatistics
from minitransformer.gradcheck import check_pair
from minitransformer.layers.convolution_2d import (
    convolution_2d,
    convolution_2d_backward,
    windows_2d,
    windows_2d_backward,
)
from minitransformer.layers.linear import Linear
from minitransformer.layers.local_response_norm import local_response_norm
from minitransformer.layers.pooling import max_pooling, max_pooling_backward
from minitransformer.models.alexnet import AlexNetConfig
from minitransformer.models.picture_classifier import PictureClassifier
from minitransformer.models.small_network import SmallNetwork, SmallNetworkConfig
from minitransformer.optim.schedule import linear_decay
from minitransformer.optim.sgd import SGD

use_style()
device = select_device("cpu")  # "cuda" trains the networks of section 1 on a GPU
rng = np.random.default_rng(29)

# %% [markdown]
# ## 1 · A star is a star wherever it is
#
# Here are ten kinds of shapes, three of each. Each has a place, a size, a turn and a brightness of its own; half of
# them are darker than what is behind them; a stripe may hide a part, and there is noise.

# %%
corpus = shapes_corpus()
train, test = corpus["train"][:4000], corpus["test"]
statistics = PictureStatistics.of(train)
print(f"{len(train):,} pictures to learn from, {train.pictures.shape[1:]}, {train.pictures.dtype}")

# %% tags=["hide-input"]
figure, panels = plt.subplots(3, 10, figsize=(10, 3.5))
for i, axes in enumerate(panels.flat):
    axes.imshow(test.pictures[i, :, :, 0], cmap="gray", vmin=0, vmax=255)
    axes.set(xticks=[], yticks=[])
    if i < 10:
        axes.set_title(test.classes[i], fontsize=9)
plt.show()

# %% [markdown]
# What tells a star from a disc? The simplest that we could learn is a linear map of all 784 pixels. To each kind it
# has one weight for every pixel, a template. Beside it we train a small network of convolutions. What these are,
# the next section says; here both get the same pictures, four times each, and the same optimizer (momentum, derived in
# [lesson 32](32_momentum.ipynb)), each with a rate of its own.


# %%
class Template(PictureClassifier):
    """Logits by one linear map of all pixels, (B, Y X C) to (B, num_classes)."""

    def build(self, config, rng):
        self.head = Linear(config.height * config.width * config.channels, config.num_classes, rng)

    def features(self, pictures, rng=None):
        return pictures.reshape(len(pictures), -1), pictures.shape

    def features_backward(self, dy, cache):
        return dy.reshape(cache)


def prepare(pictures, rng):
    return statistics.normalized(pictures)  # mean 0, deviation 1


def fit(model, peak, epochs=4, size=32, seed=0):
    """Train a model with gradient descent and momentum, and return it."""
    sgd, masks = SGD(model.flat, momentum=0.9), device.generator(seed)
    steps = epochs * len(train) // size
    with accelerated():  # the faster of the package's functions
        for epoch in range(epochs):
            for batch in picture_batches(train, size, prepare, (seed, epoch)):
                model.zero_grad()
                _, cache = model.loss(batch, masks)
                model.loss_backward(1.0, cache)
                sgd.step(linear_decay(sgd.t + 1, peak, steps // 10, steps))
    return model


def share_right(model, some):
    """The share of pictures of which a model says the right kind."""
    logits, _ = model.logits(statistics.normalized(some.pictures))
    return np.mean(to_host(logits).argmax(axis=-1) == some.labels)


# %%
config = SmallNetworkConfig(28, 28, 1, 10, num_features=16, dropout=0.0)
template = fit(Template(config, device=device), peak=0.01)
network = fit(SmallNetwork(config, device=device), peak=0.1)
for name, model in (("a linear map", template), ("convolutions", network)):
    learned, new = share_right(model, train[:1000]), share_right(model, test)
    size = model.flat.data.size
    print(
        f"{name:13} {size:6,} parameters, right: {learned:.0%} of those learned, {new:.0%} of new"
    )
assert share_right(template, test) < 0.25 < 0.6 < share_right(network, test)

# %% [markdown]
# To guess is 10 %. The linear map is hardly better on new pictures: a star on the left and a star on the right share
# few bright pixels, and so does the same star as a negative. There is no template for a thing that may be anywhere.
#
# So we ask for a layer that does not know *where*. Two thoughts make it. **What a thing is can be seen from close
# by**: an edge, a corner, a tip are a few pixels wide. **It is the same everywhere**: who can tell an edge in one place
# can tell it in all.
#
# ## 2 · Convolution in two dimensions
#
# Cut a window of $k \times k$ pixels out of the picture and apply a linear map to it. Move the window by $s$ pixels,
# the **stride**, and apply *the same* map again. Around the picture lie $p$ rows and columns of zeros, the
# **padding**, so that windows at the edge are full.

# %% tags=["hide-input"]
Y, X, k, s, p = 5, 6, 3, 2, 1
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), width_ratios=(9, 4))
for row in range(-p, Y + p):
    for column in range(-p, X + p):
        outside = not (0 <= row < Y and 0 <= column < X)
        face = "0.93" if outside else "white"
        left.add_patch(plt.Rectangle((column, row), 1, 1, fc=face, ec="0.7", lw=0.8))
        if outside:
            left.text(column + 0.5, row + 0.5, "0", ha="center", va="center", color="0.5", size=9)
for (u, v), colour, dashes in (((0, 0), BLUE, "-"), ((1, 2), VERMILION, "--")):
    style = dict(fill=False, ec=colour, lw=2.6, ls=dashes, zorder=3)
    left.add_patch(plt.Rectangle((v * s - p, u * s - p), k, k, **style))
    right.add_patch(plt.Rectangle((v, u), 1, 1, **style))
    right.text(v + 0.5, u + 0.5, f"$y_{{{u},{v}}}$", ha="center", va="center")
for u in range(3):
    for v in range(3):
        right.add_patch(plt.Rectangle((v, u), 1, 1, fc="white", ec="0.7", lw=0.8, zorder=0))
left.set(xlim=(-p - 0.1, X + p + 0.1), ylim=(Y + p + 0.1, -p - 0.1), aspect="equal")
left.set_title(f"picture of {Y} × {X}, windows of {k} × {k}, stride {s}, padding {p}")
right.set(xlim=(-0.1, 3.1), ylim=(3.1, -0.1), aspect="equal", title="y, 3 × 3")
for axes in (left, right):
    axes.axis("off")
plt.show()

# %% [markdown]
# A pixel has $C$ numbers, its **channels**: one of grey, three of colours, any number inside of a network. The map
# takes the $k \cdot k$ pixels of a window to $E$ channels, so it consists of $k \cdot k$ matrices $W_{i,j}$, each
# $(C, E)$. In row $u$ and column $v$ of the answer,
#
# $$
# y_{u,v} = b + \sum_{i=0}^{k-1} \sum_{j=0}^{k-1} x_{u s + i - p,\; v s + j - p} \, W_{i,j} ,
# $$
#
# where $x$ is 0 outside of the picture, and $x_{m,n}$ and $y_{u,v}$ are rows of $C$ and of $E$ numbers. For one channel
# $W$ is a small picture itself, the **kernel**, and $y$ is large where the window looks like it. (As in
# [lesson 20](20_convolution.ipynb), mathematicians call this a correlation, and read the kernel from the other end.)
#
# **How large is y?** Windows begin in rows $0, s, 2s, \dots$ of the padded picture. The one in row $u s$ ends before
# row $u s + k$, which may be $Y + 2p$ at most: $u \le (Y + 2p - k) / s$. With $u = 0$ as the first,
#
# $$
# Y' = \left\lfloor \frac{Y + 2 p - k}{s} \right\rfloor + 1 .
# $$
#
# Rows that are left over at the lower end stand in no window.

# %%
B, C, E = 2, 3, 4
x = device.asarray(rng.standard_normal((B, Y, X, C)))
weight = device.asarray(rng.standard_normal((k, k, C, E)))
bias = device.asarray(rng.standard_normal(E))
y, _ = convolution_2d(x, weight, bias, stride=s, padding=p)

shape_table(
    {"B": B, "Y": Y, "X": X, "C": C, "k": k, "E": E, "Y'": 3, "X'": 3},
    x=(x, "B Y X C", "B pictures of Y rows and X columns, C channels"),
    weight=(weight, "k k C E", "the kernel, a matrix for each place in the window"),
    bias=(bias, "E", "b"),
    y=(y, "B Y' X' E", "the answer of each window"),
)

# %%
x, weight, bias = (to_host(array) for array in (x, weight, bias))
# Of the first window only four pixels are no padding.
upper_left = bias + sum(x[:, i, j] @ weight[i + 1, j + 1] for i in (0, 1) for j in (0, 1))
assert np.allclose(to_host(y)[:, 0, 0], upper_left)
everything = Y * X * C * 3 * 3 * E
print(f"{weight.size} weights; any linear map from x to y would have {everything:,}")

# %% [markdown]
# ### What a kernel can see
#
# Four kernels that nobody had to learn. The first is large where it is brighter above than below, the second where it
# is brighter to the left than to the right, the third where a pixel is brighter than those around it. The fourth is a
# mean:

# %%
down = np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 0.0], [-1.0, -2.0, -1.0]])
kernels = {
    "upper less lower": down,
    "left less right": down.T,
    "middle less around": (9.0 * (np.arange(9) == 4) - 1).reshape(3, 3),
    "mean": np.full((3, 3), 1 / 9),
}
a_star, a_ring = 9, 21  # their numbers in the test data
pictures = test.pictures[[a_star, a_ring]].astype(float)
bank = np.stack(list(kernels.values()), axis=-1)[:, :, None]  # (k, k, 1, E)
maps, _ = convolution_2d(pictures, bank, padding=1)
assert maps.shape == (2, 28, 28, len(kernels))

# %% tags=["hide-input"]
figure, panels = plt.subplots(2, 5, figsize=(10, 4.3))
for row, picture, of_picture in zip(panels, pictures, maps, strict=True):
    row[0].imshow(picture[:, :, 0], cmap="gray")
    for axes, name, one in zip(row[1:], kernels, np.moveaxis(of_picture, -1, 0), strict=True):
        signed = name != "mean"
        inner = one[1:-1, 1:-1]  # at the edge the zeros around are seen
        most = abs(inner).max()
        axes.imshow(
            inner,
            cmap="RdBu_r" if signed else "gray",
            vmin=-most if signed else None,
            vmax=most if signed else None,
        )
        axes.set_title(name, fontsize=9)
    row[0].set_title("picture", fontsize=9)
    for axes in row:
        axes.set(xticks=[], yticks=[])
plt.show()

# %% [markdown]
# Red is positive, blue negative, white 0. A convolution of some channels does that with a bank of kernels at once, and
# the next layer looks for patterns among their answers: where an edge meets another one there is a corner. In a
# network the kernels are learned.
#
# **A picture that is moved has an answer that is moved.** Nothing in the formula knows where it is, but for the edge:

# %%
wide = np.pad(pictures, ((0, 0), (4, 4), (4, 4), (0, 0)))
moved, _ = convolution_2d(np.roll(wide, (2, 3), axis=(1, 2)), bank)
stayed, _ = convolution_2d(wide, bank)
assert np.allclose(moved[:, 2:, 3:], stayed[:, :-2, :-3])

# %% [markdown]
# ## 3 · The backward pass
#
# We write $dx$ for $\partial L / \partial x$, the gradient of a loss $L$. Given $dy$, we want $dW$, $db$ and $dx$.
# First a picture. How many windows does a pixel stand in? As many outputs depend on it, and its gradient is a sum of so
# many terms:

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(10, 3.6))
for axes, (size, stride, padding) in zip(panels, ((3, 1, 0), (3, 2, 1), (2, 3, 0)), strict=True):
    seen, cache = windows_2d(np.zeros((1, 8, 8, 1)), size, stride, padding)
    counts = windows_2d_backward(np.ones(seen.shape), cache)[0, :, :, 0]
    axes.imshow(counts, cmap="cividis", vmin=0, vmax=9)
    for (row, column), count in np.ndenumerate(counts):
        ink = "black" if count > 4 else "white"
        axes.text(column, row, f"{count:.0f}", ha="center", va="center", color=ink)
    axes.set_title(f"k = {size}, stride {stride}, padding {padding}")
    axes.set(xlabel="column", ylabel="row")
    axes.grid(False)
plt.show()

# %% [markdown]
# On the left all pixels but those near the edge serve nine windows. With stride 2 they serve one, two or four, in a
# pattern of squares. On the right rows and columns 2 and 5 stand in no window: what they show has no effect, and their
# gradient is 0.
#
# **Step 1: the map of a window.** Write the $k^2$ pixels of window $(u, v)$ side by side, as one row $c_{u,v}$ of
# $k^2 C$ numbers, and the matrices $W_{i,j}$ one above the other in the same order. Then $y_{u,v} = c_{u,v} W + b$, and
# entry by entry, with $q$ for a number in that row, $y_{uve} = \sum_q c_{uvq} W_{qe} + b_e$. A weight serves all
# windows of all pictures, and so does a bias; $c_{uvq}$ serves the outputs of its own window. A variable that serves
# many gets the sum over all that it serves:
#
# $$
# dW_{qe} = \sum_{u,v} c_{uvq} \, dy_{uve}
# \qquad
# db_e = \sum_{u,v} dy_{uve}
# \qquad
# dc_{uvq} = \sum_e dy_{uve} \, W_{qe} .
# $$
#
# In a batch the sums over $u, v$ run over all pictures, too. Taken apart into the places in the window again, where
# $c_{u,v}$ has $x_{us+i-p,\,vs+j-p}$ at place $(i, j)$:
#
# $$
# dW_{i,j} = \sum_{u,v} x_{u s + i - p,\; v s + j - p}^\top \; dy_{u,v}
# \qquad
# dc_{u,v,i,j} = dy_{u,v} \, W_{i,j}^\top .
# $$
#
# **Step 2: the windows.** Pixel $(m, n)$ stands at place $(i, j)$ of window $(u, v)$ if $u s + i - p = m$ and
# $v s + j - p = n$. It gets the sum over all of these:
#
# $$
# \boxed{ \;
# dx_{m,n} = \sum_{i,j} \; dy_{u,v} \, W_{i,j}^\top
# \qquad \text{with} \qquad
# u = \frac{m + p - i}{s} , \quad v = \frac{n + p - j}{s}
# \; }
# $$
#
# A term is there where both are whole numbers, $0 \le u \lt Y'$ and $0 \le v \lt X'$. The sum also gives gradients to
# the zeros around the picture. Nobody asks for them.
#
# With $s = 1$ read it once more: from $m$ one goes back by $i$. So it is a convolution of $dy$ with the kernel turned
# by half a turn, and its matrices transposed. With $s = 2$ every second $i$ has no whole $u$, as if zeros stood
# between the entries of $dy$. An exercise makes that into a function.
#
# **It costs what the forward costs**, twice: once for $dW$ and once for $dx$, a product of the same sizes each.
#
# ## 4 · Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `convolution_2d(x, weight, bias=None, stride=1, padding=0)` | (B, Y, X, C), (k, k, C, E), (E,) or None | y (B, Y', X', E) and a cache |
# | `convolution_2d_backward(dy, cache)` | (B, Y', X', E) | dx, dweight, dbias (None without one) |
#
# What you decide: over what to loop. Windows and pictures are many, places in a window are nine.

# %%
DY = np.random.default_rng(0).standard_normal((B, 2, 2, E))


def facts(convolution_2d, convolution_2d_backward):
    passing = np.zeros((3, 3, C, C))
    passing[1, 1] = np.eye(C)
    yield "a 1 in the middle passes x on", np.allclose(convolution_2d(x, passing, None, 1, 1)[0], x)
    passing = np.roll(passing, (1, 1), axis=(0, 1))
    moved, _ = convolution_2d(x, passing, None, 1, 1)
    yield "one in the corner moves it", np.allclose(moved[:, :-1, :-1], x[:, 1:, 1:])
    (dense, cache), (apart, _) = convolution_2d(x, weight, bias), convolution_2d(x, weight, bias, 2)
    alone, _ = convolution_2d(x, weight)
    yield "a bias is added once", np.allclose(dense - alone, bias)
    *_, dbias = convolution_2d_backward(dense, cache)
    yield "and its gradient is the sum of dy", np.allclose(dbias, dense.sum(axis=(0, 1, 2)))
    yield "stride 2 is every other window", np.allclose(apart, dense[:, ::2, ::2])
    y, cache = convolution_2d(x, weight, None, 2)
    dx, dweight, _ = convolution_2d_backward(DY, cache)
    whole = (DY * y).sum()  # y is linear in x, and in the weight
    yield "Σ dx · x is Σ dy · y", np.isclose((dx * x).sum(), whole)
    yield "and so is Σ dW · W", np.isclose((dweight * weight).sum(), whole)
    yield "a column in no window has no gradient", dx[:, :, :5].any() and not dx[:, :, 5].any()
    y, cache = convolution_2d(x, weight, None, 1, 1)
    dx, _, _ = convolution_2d_backward(y, cache)
    yield "with padding, too, Σ dx · x is Σ dy · y", np.isclose((dx * x).sum(), (y * y).sum())


try_yours("convolution_2d", facts)

# %% [markdown]
# The package's, once yours is right, has two more options. With **dilation** the places in a window are apart. With
# **groups** the channels are cut into parts that see nothing of one another; section 6 has a use for that.

# %%
show("convolution_2d")


# %%
def with_stride(x, weight, bias):
    return convolution_2d(x, weight, bias, stride=2, padding=1)


inputs = x, weight, bias
report = check_pair(with_stride, convolution_2d_backward, inputs)
print(report)
assert report.right

# %% [markdown]
# PyTorch has the channels before the rows, and finds the same:

# %%
if find_spec("torch"):
    import torch

    of_x, of_weight = x.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1)  # (B, C, Y, X)
    theirs = [torch.from_numpy(a.copy()).requires_grad_() for a in (of_x, of_weight, bias)]
    of_torch = torch.nn.functional.conv2d(*theirs, stride=2, padding=1)
    y, cache = with_stride(*inputs)
    of_torch.backward(of_torch.detach())
    dx, dweight, dbias = convolution_2d_backward(y, cache)
    for name, ours, other in (
        ("y", y.transpose(0, 3, 1, 2), of_torch.detach()),
        ("dx", dx.transpose(0, 3, 1, 2), theirs[0].grad),
        ("dW", dweight.transpose(3, 2, 0, 1), theirs[1].grad),
        ("db", dbias, theirs[2].grad),
    ):
        print(f"{name:2} differs by at most {abs(ours - other.numpy()).max():.0e}")
        assert np.allclose(ours, other, atol=1e-6)

# %% [markdown]
# ### A mean in place of a sum
#
# A pixel stands in several windows. Somebody thinks that its gradient should be their mean, so that pixels in the
# middle do not count for more than those at the edge:

# %%
seen, windows_cache = windows_2d(x, 3, 2, 1)
times = windows_2d_backward(np.ones(seen.shape), windows_cache)  # (B, Y, X, C)


def of_the_mean(dy, cache):
    dx, dweight, dbias = convolution_2d_backward(dy, cache)
    return dx / times, dweight, dbias


report = check_pair(with_stride, of_the_mean, inputs)
print(report)
assert not report.right

# %% [markdown]
# The factor is another one at each pixel, 1, 2 or 4, so no learning rate makes up for it. (The report has a row for
# each pixel: its channels.)
#
# ## 5 · Pooling
#
# The answer of a convolution says *where* each pattern was, to the pixel. For the kind of the thing that is more than
# we want. **Max pooling** keeps of every window the largest entry, in each channel for itself: the pattern was
# somewhere here. With windows of $2 \times 2$ that stand 2 apart, three of four numbers are gone.
#
# $$
# y_{u,v} = \max_{i,j} \; x_{u s + i - p,\; v s + j - p}
# $$
#
# **Backwards**, $y_{u,v}$ *is* one of the entries, and moves as that one moves. All others could move a little and
# nothing would happen. So its derivative is 1 for the place of the largest and 0 for the rest. With $[\dots]$ for 1
# where the words in it are true, and 0 elsewhere,
#
# $$
# dx_{m,n} = \sum_{u,v} dy_{u,v} \, [\, (m, n) \text{ is the place of the largest in window } (u, v) \,] .
# $$
#
# The sum is needed where windows overlap. And if two entries are the largest? Then the maximum has a corner, as the
# ReLU has at 0: to one side the one entry decides, to the other side the other. A rule has to choose, and all of $dy$
# goes to **the first**, row by row. That is not rare. Behind a ReLU many windows are zeros.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `max_pooling(x, kernel_size, stride=None, padding=0)` | (B, Y, X, C) | y (B, Y', X', C) and a cache |
# | `max_pooling_backward(dy, cache)` | (B, Y', X', C) | dx (B, Y, X, C) |
#
# Without a stride it is $k$. What lies outside of the picture is never the largest, so it cannot be 0.

# %%
drawn = np.random.default_rng(1)
values = drawn.permutation(4 * 6 * 6 * C).reshape(4, 6, 6, C) - 200.0  # no two are equal
DPOOLED = drawn.standard_normal((4, 3, 3, C))


def facts(max_pooling, max_pooling_backward):
    y, cache = max_pooling(values, 2)
    yield "a number added to x is added to y", np.allclose(max_pooling(values + 7, 2)[0], y + 7)
    filled = y.repeat(2, axis=1).repeat(2, axis=2)
    yield "no entry is larger than the y of its window", (filled >= values).all()
    dx = max_pooling_backward(DPOOLED, cache)
    yield "nothing of dy is lost", np.allclose(dx.sum(axis=(1, 2)), DPOOLED.sum(axis=(1, 2)))
    yield "one of four has a gradient", (dx != 0).sum() == DPOOLED.size
    whole = (DPOOLED * y).sum()
    yield "and it is that which y has: Σ dx · x is Σ dy · y", np.isclose((dx * values).sum(), whole)
    _, cache = max_pooling(0 * values, 2)
    dx = max_pooling_backward(DPOOLED, cache)
    of_first = np.zeros((4, 6, 6, C))
    of_first[:, ::2, ::2] = DPOOLED
    yield "of four that are equal the first gets all", np.allclose(dx, of_first)
    y, cache = max_pooling(values, 3, 1)
    dx = max_pooling_backward(np.ones(y.shape), cache)
    yield "where windows overlap nothing is lost, either", np.isclose(dx.sum(), y.size)
    yield "outside nothing is the largest", (max_pooling(values - 500, 3, 1, 1)[0] < 0).all()
    y, cache = max_pooling(values, 3, 2, 1)
    dx = max_pooling_backward(y, cache)
    yield "of 6 rows windows 2 apart are 3 with padding", y.shape == (4, 3, 3, C)
    yield "and dx is that of the picture alone", dx.shape == values.shape


try_yours("max_pooling", facts)

# %%
show("max_pooling")


# %%
def overlapping(x):
    return max_pooling(x, 3, 2)


report = check_pair(overlapping, max_pooling_backward, (values / 100,))
print(report)
assert report.right

# %% [markdown]
# ### What is gained
#
# The small network of section 1 has three convolutions, each with a pooling of $2 \times 2$ behind it. Move its
# pictures by one pixel. By how much does each of its maps change, relative to its size?

# %%
x_test = statistics.normalized(test.pictures[:200])
aside = statistics.normalized(np.roll(test.pictures[:200], 1, axis=2))


def maps_of(pictures):
    """What the network has after each convolution and after each pooling, by name."""
    found, x = {"the picture": pictures}, device.asarray(pictures)
    for number, layer in enumerate(network.convolutions, start=1):
        found[f"convolution {number}"], _ = layer.forward(x)
        x, _ = max_pooling(found[f"convolution {number}"], 2)
        found[f"pooling {number}"] = x
    return {name: to_host(array) for name, array in found.items()}


before, after = maps_of(x_test), maps_of(aside)
changes = {
    name: np.linalg.norm(after[name] - before[name]) / np.linalg.norm(before[name])
    for name in before
}
for name, change in changes.items():
    print(f"{name:14} {before[name].shape[1:]!s:13} changes by {change:.2f} of its size")
for number in (1, 2):
    assert changes[f"pooling {number}"] < changes[f"convolution {number}"]
answers = [to_host(network.logits(x)[0]).argmax(axis=-1) for x in (x_test, aside)]
stayed = np.mean(answers[0] == answers[1])
print(f"{stayed:.0%} of the answers are what they were")
assert stayed > 0.6

# %% [markdown]
# A convolution makes more of a change: it looks for edges, and an edge one pixel further is another edge. Each pooling
# takes a part of the change away. It is no proof against all that moves, but most answers stay.
#
# Pooling also widens the view. An entry of the first convolution sees $3 \times 3$ pixels. Each layer adds $k - 1$
# times the product of the strides below it: $3 + 1 + 2 \cdot 2 + 1 \cdot 2 + 2 \cdot 4 = 18$ for the third convolution,
# with two poolings on the way. Without these it would be 7.
#
# ## 6 · AlexNet, one choice at a time
#
# In 2012 Krizhevsky, Sutskever and Hinton trained such a network on 1.2 million photographs of a thousand kinds. With
# five guesses a mean of several such networks missed the right kind for 15.3 % of the pictures, where the next best
# entry missed 26.2 % (their section 6; some of these had learned from more pictures). Five convolutions, three
# poolings, three linear maps. (The paper says that its pictures are 224 wide; with windows of 11 and a stride of 4 its
# numbers come out for 227.)

# %%
full = AlexNetConfig(227, 227, 3, 1000, form="large")
side, rows = 227, []
for number, sizes in enumerate(full.convolutions(), start=1):
    side = (side + 2 * sizes.padding - sizes.kernel_size) // sizes.stride + 1
    weights = sizes.kernel_size**2 * sizes.c_in // sizes.towers * sizes.c_out
    rows.append((f"convolution {number}", weights + sizes.c_out, weights * side**2))
    side = (side - 3) // 2 + 1 if sizes.pooled else side
widths = full.linear_maps()
for number, (d_in, d_out) in enumerate(pairwise(widths), start=1):
    rows.append((f"linear map {number}", (d_in + 1) * d_out, d_in * d_out))
parameters, products = (sum(column) for column in list(zip(*rows, strict=True))[1:])
for name, of_layer, of_picture in rows:
    print(f"{name:14}{of_layer:12,} parameters {of_picture / 1e6:7.1f} million products a picture")
print(f"{'all':14}{parameters:12,} parameters {products / 1e6:7.1f} million products a picture")
assert parameters == full.num_parameters() == 60_965_224
assert sum(row[1] for row in rows[5:]) > 0.95 * parameters
assert sum(row[2] for row in rows[:5]) > 0.9 * products

# %% [markdown]
# **Nearly all of the parameters are in the linear maps, and nearly all of the work is in the convolutions.** A kernel
# is used at every place; a weight of a linear map once a picture. Later networks took the mean over the picture in the
# place of the large maps ([lesson 30](30_depth.ipynb)).
#
# Its choices, in the order of their section 3. Each was a claim.
#
# **ReLU for tanh** (3.1). tanh lets through $1 - \tanh^2 x$ of a gradient, at most 1, and ever less for inputs that
# are large. A ReLU lets through all or nothing. How much is that on average, for inputs of deviation 1, 2, 4?

# %%
normal = rng.standard_normal(100_000)
for deviation in (1, 2, 4):
    tanh, relu = (1 - np.tanh(deviation * normal) ** 2).mean(), (normal > 0).mean()
    print(f"deviation {deviation}: tanh lets {tanh:.2f} through, ReLU {relu:.2f}")

# %% [markdown]
# The ReLU's share does not depend on the size of its inputs. So weights may grow, and layers behind one another should
# not starve one another. That is the argument; the measurement is below.
#
# **Two towers** (3.2). The network did not fit on one GPU, so in three of the convolutions the channels are cut into
# two halves, a GPU each, that see nothing of one another. That is `groups=2`. Each kernel has half as many weights:

# %%
of_two = rng.standard_normal((3, 3, C, 2 * E))  # 2 C channels in two groups, 2 E channels out
twice = rng.standard_normal((B, Y, X, 2 * C))
y, _ = convolution_2d(twice, of_two, groups=2)
halves = [
    convolution_2d(twice[..., part * C : (part + 1) * C], of_two[..., part * E : (part + 1) * E])[0]
    for part in (0, 1)
]
assert np.allclose(y, np.concatenate(halves, axis=-1))  # two networks, side by side
one = AlexNetConfig(227, 227, 3, 1000, form="large", towers=1)
print(f"with one tower {one.num_parameters() - parameters:,} parameters more")

# %% [markdown]
# **Response norm** (3.3). Channel $c$ is divided by a power of the squares of the five channels from $c - 2$ to
# $c + 2$, itself among them, at the same place:
#
# $$
# y_c = \frac{x_c}{t_c^{0.75}}
# \qquad
# t_c = 2 + 10^{-4} \sum_{\lvert d - c \rvert \le 2} x_d^2 .
# $$
#
# A channel that is loud dampens those beside it. How loud must it be?

# %%
for size in (1, 10, 100, 1000):
    y, _ = local_response_norm(np.full(11, float(size)))
    print(f"all channels {size:4}: the middle one is divided by {size / y[5]:6.2f}")

# %% [markdown]
# For numbers about 1 it is a division by a constant, $2^{0.75}$. It does something where answers are in the hundreds.
# With pictures of deviation 1 it does next to nothing. Simonyan and Zisserman (2015, section 2.1) found that it did not
# help, and left it out.
#
# **Pooling windows that overlap** (3.4): 3 wide and 2 apart. **Augmentation** (4.1): from a picture of $256 \times 256$
# a part of $224 \times 224$, from anywhere, and its mirror image (the paper counts $32 \cdot 32 \cdot 2 = 2048$ of each
# picture), and other colours. **Dropout** (4.2), of half of the units in both hidden maps ([lesson
# 02](02_backpropagation.ipynb)). **Momentum and weight decay** (5), for which see [lesson 32](32_momentum.ipynb).
#
# What is each worth? `benchmarks/picture_claims.py alexnet` takes them away one at a time, from a small form for
# pictures of 32 × 32, a quarter as wide, which learns from 30 % of Fashion-MNIST, eight epochs. Wrong on the test set,
# in per cent:
#
# | one thing away | wrong | | wrong |
# |---|---:|---|---:|
# | as it is | 14.1 | no dropout | 12.6 |
# | tanh for ReLU | 12.2 | no crops and mirrors | 12.0 |
# | pooling that does not overlap | 14.3 | no weight decay | 14.2 |
# | no response norm | 14.9 | without the third convolution | 15.1 |
# | one tower | 14.0 | without the fourth | 13.9 |
#
# Means of three seeds, which differ by a few tenths. Response norm helps, be it by its division by a constant, and so
# does the third convolution. tanh learned *faster* here, and dropout, or crops and mirrors, which keep a long training
# from overfitting, cost more than a per cent in a short one. A claim of a paper holds for its network, its data and its
# training ([all rows, and what came of each claim](../docs/picture_claims.md#alexnet-one-thing-away-at-a-time)).
#
# ## 7 · On which pixels does the answer depend?
#
# The backward pass goes on to the picture. Set the gradient of one kind's logit to 1, and that of the others to 0: then
# $dx$ says how that logit moves with each pixel (Simonyan, Vedaldi and Zisserman 2014). Below are pictures of the test
# that the network gets right, and $\lvert dx \rvert$.

# %%
known = [i for i in range(200) if share_right(network, test[i : i + 1])][:150]
some = test[np.array(known)]
x_known = statistics.normalized(some.pictures)
logits, cache = network.logits(x_known)
chosen = np.eye(10, dtype=np.float32)[some.labels]  # (B, 10)
gradient = abs(to_host(network.backward(device.asarray(chosen), cache)))[..., 0]  # (B, Y, X)
contrast = abs(some.pictures[..., 0] - np.median(some.pictures[..., 0], axis=(1, 2), keepdims=True))
of_shape = contrast > contrast.max(axis=(1, 2), keepdims=True) / 2  # (B, Y, X)
print(f"a shape has {of_shape.mean():.0%} of the pixels", end=" ")
print(f"and {gradient[of_shape].sum() / gradient.sum():.0%} of |dx|")
assert gradient[of_shape].mean() > 1.3 * gradient.mean()

# %% tags=["hide-input"]
figure, panels = plt.subplots(2, 8, figsize=(10, 2.9))
shown = [int(np.flatnonzero(some.labels == kind)[0]) for kind in (0, 1, 3, 5, 6, 7, 8, 9)]
for i, (upper, lower) in zip(shown, panels.T, strict=True):
    upper.imshow(some.pictures[i, :, :, 0], cmap="gray", vmin=0, vmax=255)
    upper.set_title(some.classes[some.labels[i]], fontsize=9)
    lower.imshow(gradient[i], cmap="Greys", vmin=0)
    for axes in (upper, lower):
        axes.set(xticks=[], yticks=[])
panels[0, 0].set_ylabel("picture")
panels[1, 0].set_ylabel("|dx|")
plt.show()

# %% [markdown]
# Dark is a large gradient, and the shape has more than its share of it. Does the answer depend on these pixels? A
# picture of gradients can look convincing and mean little. So test it: put the mean picture in the place of the 60
# pixels with the largest $\lvert dx \rvert$, of those with the smallest, or of 60 drawn at random.


# %%
def still_right(hidden):
    """The share that is right with these pixels hidden, (B, 60) places."""
    x = x_known.reshape(len(x_known), -1).copy()
    np.put_along_axis(x, hidden, 0, axis=1)
    logits, _ = network.logits(x.reshape(x_known.shape))
    return np.mean(to_host(logits).argmax(axis=-1) == some.labels)


order = gradient.reshape(len(gradient), -1).argsort(axis=1)
by_chance = np.stack([rng.permutation(784)[:60] for _ in known])
remaining = {
    "60 by chance": still_right(by_chance),
    "those with the smallest |dx|": still_right(order[:, :60]),
    "those with the largest |dx|": still_right(order[:, -60:]),
}
for name, share in remaining.items():
    print(f"{name:29} hidden: {share:.0%} still right")
assert remaining["those with the largest |dx|"] < remaining["60 by chance"] - 0.1

# %% [markdown]
# The pixels with large gradients matter more than others. And they are not all that matters: with them hidden the
# network is still right for many pictures. A gradient says what a *small* change does, not what would be if a pixel
# were gone.
#
# ## 8 · Exercises
#
# Fill in `answers/ex29.py`, your copy of [lessons/exercises/ex29.py](exercises/ex29.py), and run
# `minitransformer check ex29`. Or copy functions from there into new cells here, fill them in, and run the cell below
# again. The solutions are in [lessons/solutions/ex29.py](solutions/ex29.py).
#
# 1. **`rows_in_no_window`** (10 min). What section 3 showed in a picture, as a number.
# 2. **`without_groups`** (25 min). Two towers are one network with many zeros. You need this to load the weights of
#    a network with groups into a library that has none.
# 3. **`dx_as_a_convolution`** (45 min). The backward pass of section 3 as a forward pass. Networks that draw pictures
#    are made of it.
# 4. **`rms_pooling`** (45 min). Between the mean and the maximum of the sizes, with a backward that is neither.

# %%
print(check_exercise("ex29", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | convolution | $y_{u,v} = b + \sum_{i,j} x_{us+i-p,\,vs+j-p} \, W_{i,j}$ |
# | sizes | $Y' = \lfloor (Y + 2p - k) / s \rfloor + 1$; the weight is (k, k, C, E) |
# | $dW_{i,j}$, $db$ | $\sum_{u,v} x_{us+i-p,\,vs+j-p}^\top \, dy_{u,v}$ and $\sum_{u,v} dy_{u,v}$, over all pictures |
# | $dx_{m,n}$ | $\sum_{i,j} dy_{u,v} \, W_{i,j}^\top$ over all windows in which it stands; with stride 1 a convolution with the kernel turned |
# | max pooling | $dy$ goes to the largest entry of a window; of several, to the first |
# | moved pictures | have moved answers; pooling makes less of where |
# | AlexNet | parameters in the linear maps, work in the convolutions |
# | traps | zeros around a maximum; a mean where windows overlap; rows in no window |
#
# **Your own Transformer.** `convolution_2d` and `max_pooling`, in the last part of `own.py`;
# `minitransformer check own` says whether they are right.
#
# **Next:** why more layers made networks worse, and what was done about it: [lesson 30](30_depth.ipynb).
