# %% [markdown]
# # 02 · Backpropagation by hand
#
# **You will** follow a gradient through a graph, one number at a time; derive the two rules that all
# of backpropagation is made of; apply them to matrices, by indices and by a method without indices;
# and find out why gradients are *added* to what is there, and never written over it.
#
# | | |
# |---|---|
# | In the paper | section 3.3: $\text{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2$; the method is Rumelhart, Hinton and Williams (1986) |
# | In the package | `minitransformer/layers/linear.py`, `minitransformer/layers/relu.py`, `minitransformer/layers/feed_forward.py`; `minitransformer/core/module.py` |
# | You need | derivatives of functions of one variable; the product of two matrices |
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
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Module, Transformer, TransformerConfig, select_device
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.course.stops import show, try_yours
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.layers.feed_forward import feed_forward, feed_forward_backward
from minitransformer.layers.linear import Linear, linear, linear_backward
from minitransformer.layers.relu import relu, relu_backward

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(2)

# %% [markdown]
# ## 1 · The price of a slope
#
# To train is to move each parameter a little in the direction that lowers the loss. For that we need the
# slope of the loss $L$ with respect to each of them. The obvious way to get a slope is to measure it:
# move one parameter, run the model again, see how far the loss moved. That takes one run for each
# parameter, or two to be accurate. For the smallest model of this package:

# %%
model = Transformer(TransformerConfig.preset("toy", vocabulary_size=1000))
print(f"{2 * model.num_parameters():,} runs of the model for one step of training")

# %% [markdown]
# Backpropagation gets *all* of these slopes from one run forward and one run backward. The run
# backward costs about as much as two forward (section 4), and the slopes are exact. How can that be?
#
# A word about letters. In this course $dx$ stands for the *gradient* $\partial L / \partial x$, an
# array of the shape of $x$. Small changes are written $\Delta x$. The two belong together: if $x$
# changes by $\Delta x$, the loss changes by about $dx \cdot \Delta x$.
#
# ## 2 · A graph of single numbers
#
# We begin with a network of one neuron. It has everything that the big ones have:
#
# $$
# z = w x + b, \qquad h = \max(0, z), \qquad r = v h, \qquad y = x + r, \qquad L = \tfrac12 (y - t)^2 .
# $$
#
# A linear map, a ReLU, a second linear map. Then the input is added, as in each sublayer of a Transformer.
# The loss wants $y$ to be $t$. With numbers:

# %%
x, w, b, v, t = 2.0, 1.5, -1.0, 0.5, 1.0

z = w * x + b
h = max(0.0, z)
r = v * h
y = x + r
L = (y - t) ** 2 / 2
print(f"z = {z}, h = {h}, r = {r}, y = {y}, L = {L}")

# %% [markdown]
# Each line of the program is a node of a graph, and each use of a value is an arrow. An arrow has a
# **local slope**: how many times faster its head moves than its tail, if only that tail moves. Local
# slopes are easy, because each line does one simple thing. From $z = w x + b$ we read off
# $\partial z / \partial x = w$, $\partial z / \partial w = x$ and $\partial z / \partial b = 1$. The
# rest of the network does not matter here.

# %%
SLOPES = {  # of each arrow, in the order of the program
    ("x", "z"): w,
    ("w", "z"): x,
    ("b", "z"): 1.0,
    ("z", "h"): 1.0 if z > 0 else 0.0,
    ("v", "r"): h,
    ("h", "r"): v,
    ("x", "y"): 1.0,
    ("r", "y"): 1.0,
    ("y", "L"): y - t,
}

# %% [markdown]
# Now we walk from $L$ against the arrows. Each node collects what comes back along the arrows that
# leave it: **the gradient at the head times the local slope**. This loop is backpropagation, all of it, and below it
# is the graph with its numbers:

# %%
gradient = dict.fromkeys("xwbzhvry", 0.0)
gradient["L"] = 1.0  # L moves exactly as fast as L
for (tail, head), slope in reversed(SLOPES.items()):
    gradient[tail] += slope * gradient[head]
print(gradient)

# %% tags=["hide-input"]
PLACES = {  # of each node: across, up
    "x": (0, 0),
    "w": (0.45, 1),
    "b": (1.55, 1),
    "z": (1.55, 0),
    "h": (3.1, 0),
    "v": (3.55, 1),
    "r": (4.65, 0),
    "y": (6.2, 0),
    "L": (7.75, 0),
}
VALUES = dict(x=x, w=w, b=b, z=z, h=h, v=v, r=r, y=y, L=L)

figure, axes = plt.subplots(figsize=(9.5, 3.5))
centred = dict(ha="center", va="center")
for (tail, head), slope in SLOPES.items():
    (x0, y0), (x1, y1) = PLACES[tail], PLACES[head]
    past = (tail, head) == ("x", "y")  # the arrow below all others
    bend = "arc3,rad=0.36" if past else "arc3"
    arrow = dict(arrowstyle="-|>", color="0.35", shrinkA=16, shrinkB=16, connectionstyle=bend)
    axes.annotate("", (x1, y1), (x0, y0), arrowprops=arrow)
    middle = (3.1, -0.88) if past else ((x0 + x1) / 2, (y0 + y1) / 2)
    gap = dict(fc="white", ec="none", pad=1.5)
    axes.text(*middle, f"×{slope:g}", color=BLUE, bbox=gap, **centred)
for name, (across, up) in PLACES.items():
    axes.plot(across, up, "o", ms=30, mfc="white", mec=BLACK, mew=1.3)
    axes.text(across, up + 0.07, name, fontsize=12.5, style="italic", **centred)
    axes.text(across, up - 0.1, f"{VALUES[name]:g}", fontsize=9.5, **centred)
    beside = up + 0.31 if up else up - 0.33
    text = f"d{name} = {gradient[name]:g}"
    axes.text(across, beside, text, color=VERMILION, weight="bold", **centred)
for up, text, colour in (
    (1.3, "in the circle: the value", BLACK),
    (1.1, "on the arrow: the local slope", BLUE),
    (0.9, "beside it: the gradient", VERMILION),
):
    axes.text(5.3, up, text, color=colour, fontsize=10)
axes.set(xlim=(-0.5, 8.2), ylim=(-1.1, 1.45))
axes.axis("off")
plt.show()

# %% [markdown]
# Take the orange number at the head of an arrow, multiply by the blue one on the arrow, and you have what
# comes back to its tail. Two arrows leave $x$, so two numbers come back and are added: 1.5 times $dz$,
# and 1 times $dy$. We never took the derivative of a long formula. Is the result right? Move each number a
# little and look:


# %%
def loss(x, w, b, v):
    return (x + v * max(0.0, w * x + b) - t) ** 2 / 2


start = dict(x=x, w=w, b=b, v=v)
for name, value in start.items():
    ahead, behind = ({**start, name: value + step} for step in (1e-5, -1e-5))
    measured = (loss(**ahead) - loss(**behind)) / 2e-5
    print(f"d{name}: measured {measured:.8f}, by backpropagation {gradient[name]}")
    assert abs(measured - gradient[name]) < 1e-8

# %% [markdown]
# ## 3 · The two rules, and why they hold
#
# If $f$ has the derivative $f'(x)$, it is nearly a straight line close to $x$. The remainder is small
# against the step:
#
# $$
# f(x + \Delta) = f(x) + f'(x) \, \Delta + o(\Delta), \qquad \frac{o(\Delta)}{\Delta} \to 0 \text{ for } \Delta \to 0 .
# $$
#
# **Rule 1: along a path, slopes multiply.** Let $x$ move $u$ and $u$ move $L$. A step $\Delta x$ moves
# $u$ by $\Delta u = u' \Delta x + o(\Delta x)$, and this moves $L$ by
#
# $$
# \Delta L = \frac{\partial L}{\partial u} \Delta u + o(\Delta u)
# = \frac{\partial L}{\partial u} \, u' \, \Delta x + o(\Delta x) .
# $$
#
# The remainder stays small, because $\Delta u$ is at most a constant times $\Delta x$. The factor in front of
# $\Delta x$ is the slope: $dx = du \cdot u'$.
#
# **Rule 2: where paths part, their gradients add.** Let $x$ move both $u$ and $s$, and both move $L$. A
# function of two variables has a derivative if it is near a plane:
#
# $$
# \Delta L = \frac{\partial L}{\partial u} \Delta u + \frac{\partial L}{\partial s} \Delta s + o(|\Delta u| + |\Delta s|) .
# $$
#
# Put $\Delta u = u' \Delta x + o(\Delta x)$ and $\Delta s = s' \Delta x + o(\Delta x)$ into it:
#
# $$
# \Delta L = \left( \frac{\partial L}{\partial u} u' + \frac{\partial L}{\partial s} s' \right) \Delta x + o(\Delta x)
# \qquad\Longrightarrow\qquad
# dx = du \cdot u' + ds \cdot s' .
# $$
#
# To first order, changes that arrive by two ways add up. This is why gradients accumulate: it is the `+=`
# in the loop above.
#
# ### All paths at once
#
# Apply both rules until nothing is left, and the gradient of $x$ is **a sum over all paths** from $x$ to
# $L$, each the product of the slopes along it:


# %%
def paths(start):
    """All ways from a node to L, each a list of nodes."""
    if start == "L":
        return [["L"]]
    return [[start, *rest] for tail, head in SLOPES if tail == start for rest in paths(head)]


total = 0.0
for path in paths("x"):
    product = np.prod([SLOPES[arrow] for arrow in pairwise(path)])
    total += product
    print(f"{' → '.join(path):24} {product}")
assert total == gradient["x"]

# %% [markdown]
# But do not compute it like this. Put several such blocks one behind the other. A path may go through each
# block or past it: 12 blocks make $2^{12} = 4096$ paths, and 30 blocks a billion. The arrows are few,
# five to a block, as in the picture.
#
# The loop of section 2 visits each *arrow* once. It adds up all that arrives at a node before it goes on
# from there, so one multiplication serves all paths along an arrow. That needs an order: a gradient must be
# complete before it is passed on. The reverse of the program's order will do, since whatever uses a value
# stands after it.
#
# ### Why backward?
#
# One could also multiply slopes in the order of the program. Let a chain of three layers lead from $n$
# numbers to $n$ to $n$ to one loss. A layer's slopes form a matrix $J$, the Jacobian, with
# $J_{ij} = \partial(\text{output } i) / \partial(\text{input } j)$, and rules 1 and 2 together say that
# matrices of slopes are multiplied. The product may be taken from either end:
#
# $$
# \underbrace{\big( \underbrace{J_3}_{1 \times n} \, \underbrace{J_2}_{n \times n} \big) \, J_1}_{\text{backward: } 2 n^2}
# \qquad\text{or}\qquad
# \underbrace{J_3 \, \big( \underbrace{J_2}_{n \times n} \, \underbrace{J_1}_{n \times n} \big)}_{\text{forward: } n^3 + n^2}
# \qquad\text{multiplications.}
# $$
#
# From the left there is always a single row, because **the loss is a single number**: that row is the
# gradient. For a function of one input and many outputs, forward would be better.
#
# ## 4 · The linear map
#
# Now rows of numbers. A linear layer maps $N$ rows, the tokens, by one matrix:
#
# $$
# y_{nj} = \sum_i x_{ni} W_{ij} + b_j
# \qquad\text{or}\qquad
# y = x W + \mathbf 1 b^\top ,
# $$
#
# with $\mathbf 1$ a column of $N$ ones, which gives every row the same $b$.

# %%
N, D, F = 4, 3, 5
x = device.asarray(rng.standard_normal((N, D)))
weight, bias = device.asarray(rng.standard_normal((D, F))), device.asarray(rng.standard_normal(F))
y, cache = linear(x, weight, bias)
dy = device.asarray(rng.standard_normal((N, F)))
dx, dweight, dbias = linear_backward(dy, cache)

shape_table(
    {"N": N, "D": D, "F": F},
    x=(x, "N D", "N rows of D features"),
    weight=(weight, "D F", "the matrix W, one for all rows"),
    bias=(bias, "F", "b, one for all rows"),
    y=(y, "N F", "N rows of F features"),
    dy=(dy, "N F", "∂L/∂y, which comes from the layers behind: it is given"),
    dx=(dx, "N D", "∂L/∂x, to be handed to the layer before"),
    dweight=(dweight, "D F", "∂L/∂W, to be used for the update"),
    dbias=(dbias, "F", "∂L/∂b, the same"),
)

# %% [markdown]
# Every gradient has the shape of what it belongs to.
#
# ### By indices
#
# Rules 1 and 2 for arrays: an entry's gradient is the sum over all outputs that it moves,
# $\sum_{mj} dy_{mj} \, \partial y_{mj} / \partial(\text{entry})$. Write $[i = k]$ for 1 where $i = k$ and 0
# elsewhere. Such a bracket inside a sum picks one term out of it.
#
# **The input.** $x_{nk}$ stands only in row $n$ of $y$, with the factor $W_{kj}$:
#
# $$
# \frac{\partial y_{mj}}{\partial x_{nk}} = [m = n] \, W_{kj}
# \qquad\Longrightarrow\qquad
# dx_{nk} = \sum_{mj} dy_{mj} [m = n] W_{kj} = \sum_j dy_{nj} W_{kj} = (dy \, W^\top)_{nk} .
# $$
#
# **The weight.** $W_{ik}$ stands only in column $k$ of $y$, in *every* row, with the factor $x_{mi}$:
#
# $$
# \frac{\partial y_{mj}}{\partial W_{ik}} = [j = k] \, x_{mi}
# \qquad\Longrightarrow\qquad
# dW_{ik} = \sum_{mj} dy_{mj} [j = k] x_{mi} = \sum_m x_{mi} \, dy_{mk} = (x^\top dy)_{ik} .
# $$
#
# **The bias.** $b_k$ stands in column $k$, in every row, with the factor 1:
#
# $$
# \frac{\partial y_{mj}}{\partial b_k} = [j = k]
# \qquad\Longrightarrow\qquad
# db_k = \sum_{mj} dy_{mj} [j = k] = \sum_m dy_{mk} .
# $$
#
# $$
# \boxed{ \; dx = dy \, W^\top, \qquad dW = x^\top dy, \qquad db = \text{column sums of } dy \; }
# $$
#
# The sums over rows $m$ in $dW$ and $db$ are rule 2 once more: one $W$ serves all rows, and each row
# sends a gradient back. A *sum*, whatever the number of rows. (If the loss is a mean over tokens,
# the $1/N$ is already in $dy$.)
#
# This keeps the promise of section 1: forward is one product of $N \cdot D \cdot F$ multiplications,
# and backward is two of the same size.
#
# ### Without indices
#
# Gradients of longer formulas can be read off. Write $\langle A, B \rangle = \sum_{ij} A_{ij} B_{ij}$
# for two arrays of one shape. The gradient of $x$ is *the* array $dx$ for which
#
# $$
# \Delta L = \langle dx, \Delta x \rangle + o(|\Delta x|) \qquad \text{for every small } \Delta x .
# $$
#
# There is only one such array: a $\Delta x$ with a single entry picks out that entry of $dx$. One rule is
# needed, **how to move a matrix from one side to the other**:
#
# $$
# \langle A, B C \rangle = \langle B^\top A, \, C \rangle = \langle A \, C^\top, \, B \rangle ,
# $$
#
# since all three are the sum $\sum_{nij} A_{nj} B_{ni} C_{ij}$, once collected around $C_{ij}$, with
# $\sum_n B_{ni} A_{nj}$, and once around $B_{ni}$, with $\sum_j A_{nj} C_{ij}$. Now move all three inputs of the
# linear map a little and drop what is of second order, $\Delta x \, \Delta W$:
#
# $$
# \begin{aligned}
# \Delta L = \langle dy, \Delta y \rangle
# &= \langle dy, \; \Delta x \, W + x \, \Delta W + \mathbf 1 \, \Delta b^\top \rangle \\
# &= \langle dy \, W^\top, \Delta x \rangle + \langle x^\top dy, \Delta W \rangle + \langle \mathbf 1^\top dy, \Delta b^\top \rangle .
# \end{aligned}
# $$
#
# What stands beside each $\Delta$ is its gradient: three results from one line.
#
# ### What it is not
#
# It is **not the inverse**: $W^\top$ is not $W^{-1}$, and $W$ need not be square. $W_{kj}$ says how strongly
# input $k$ moves output $j$. Forward asks what reaches output $j$, and sums over $k$. Backward asks what input
# $k$ has moved, and sums over $j$.
#
# And it is **not a product with a Jacobian**, though it could be one. $y$ has $NF$ entries and $x$ has
# $ND$. The matrix of all slopes between them holds $N$ copies of $W^\top$, one for each row, and zeros
# elsewhere. $dy$ times it is $dx$; but so is $dy \, W^\top$, without the zeros and the copies. For the
# feed-forward layer of the paper and a batch of 4096 tokens:

# %%
tokens, d_model, d_ff = 4096, 512, 2048
print(f"the Jacobian of its first map: {tokens * d_ff * tokens * d_model:.1e} entries")
print(f"W, which says the same:        {d_model * d_ff:.1e}")

# %% [markdown]
# **A backward is the product of $dy$ with the Jacobian, worked out on paper so that the Jacobian is never
# built.**
#
# ## 5 · ReLU and dropout
#
# $y = \max(0, x)$, entry by entry. The slope is 1 where $x \gt 0$ and 0 where $x \lt 0$. Every entry moves its
# own output alone, so the Jacobian is diagonal, and
#
# $$
# dx = dy \cdot [x \gt 0] .
# $$
#
# ReLU is a gate. What it let through forward it lets through backward, unchanged; the rest is stopped. At
# $x = 0$ there is no slope, and we take 0.
#
# The gate depends on the sign of $x$, not on that of $dy$: gradients of both signs pass an open gate.
#
# **Dropout** is a gate that chance opens. In training $b$ is drawn anew for each entry, 0 with the probability
# $p$ and 1 otherwise, and with $1 / (1 - p)$ the mean stays ([lesson 12](12_learning.ipynb) says what it is for):
#
# $$
# y = x \cdot \frac{b}{1 - p} \qquad\Longrightarrow\qquad dx = dy \cdot \frac{b}{1 - p} \quad \text{with the same } b .
# $$
#
# ## 6 · Now write them
#
# `answers/own.py` (`cp -r lessons/exercises answers` makes it, once) has a stub for each function of a
# Transformer. Write the first three pairs there:
#
# | function | takes | returns |
# |---|---|---|
# | `linear(x, weight, bias=None)` | (..., $D$), ($D$, $F$), ($F$,) or None | $y$ (..., $F$), `cache` |
# | `linear_backward(dy, cache)` | (..., $F$) | $dx$, $dW$, $db$ (None without $b$) |
# | `relu(x)`, `dropout(x, p=0.0, rng=None)` | any shape | $y$ of that shape, `cache` |
# | `relu_backward(dy, cache)`, `dropout_backward(dy, cache)` | that shape | $dx$ |
#
# The stub says how $b$ is drawn; you decide what the cache holds. The cells try on yours what is true of any
# right one:


# %%
def facts(linear, linear_backward):
    rng = np.random.default_rng(2)
    x, weight, bias = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 5)), np.arange(5.0)
    y, cache = linear(x, weight, bias)
    yield "where x is 0, y is b", np.array_equal(linear(0 * x, weight, bias)[0], 0 * y + bias)
    dx, dweight, dbias = linear_backward(y, cache)
    twice, cache = linear(np.concatenate([x, x]), weight, bias)
    doubled = linear_backward(twice, cache)
    yield "a batch twice in a row doubles db", np.allclose(doubled[2], 2 * dbias)
    yield (
        "⟨dx, x⟩ and ⟨dW, W⟩ are both ⟨dy, y − b⟩",
        np.allclose([(dx * x).sum(), (dweight * weight).sum()], (y * (y - bias)).sum()),
    )


try_yours("linear", facts)


# %%
def facts(relu, relu_backward):
    x, dy = np.random.default_rng(2).standard_normal((2, 100))
    y, cache = relu(x)
    dx = relu_backward(dy, cache)
    yield "what x and −x leave is x again", np.allclose(y - relu(-x)[0], x)
    yield "gradients of both signs pass", (dx > 0).any() and (dx < 0).any()
    yield "⟨dx, x⟩ is ⟨dy, y⟩", np.isclose(dx @ x, dy @ y)


try_yours("relu", facts)


# %%
def facts(dropout, dropout_backward):
    ones = np.ones(100_000)
    y, cache = dropout(ones, 0.2, np.random.default_rng(2))
    yield "without rng, nothing changes", np.array_equal(dropout(ones, 0.2, None)[0], ones)
    yield (
        "a fifth is dropped, the mean stays",
        abs((y == 0).mean() - 0.2) + abs(y.mean() - 1) < 0.02,
    )
    yield "gradients of 1 become y", np.allclose(dropout_backward(ones, cache), y)


try_yours("dropout", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right (`@twinned` lets a faster body stand in where one
# is asked for):

# %%
show("linear")

# %%
show("relu")

# %%
show("dropout")

# %% [markdown]
# ### Pairs compose
#
# The feed-forward network of the paper is a linear map, a ReLU, a dropout and a linear map. Its backward calls
# theirs in reverse:
#
# | function | takes | returns |
# |---|---|---|
# | `feed_forward(x, w_1, b_1, w_2, b_2, p=0.0, rng=None)` | (..., $D$), ($D$, $F$), ($F$,), ($F$, $D$), ($D$,) | $y$ (..., $D$), `cache` |
# | `feed_forward_backward(dy, cache)` | (..., $D$) | $dx, dW_1, db_1, dW_2, db_2$ |


# %%
def facts(feed_forward, feed_forward_backward):
    x, w_1, w_2 = np.random.default_rng(2).standard_normal((3, 4, 4))
    y, _ = feed_forward(x, w_1, 0, w_2, 1.0)
    yield (
        "without b_1, 3 x gives 3 times y − b_2",
        np.allclose(feed_forward(3 * x, w_1, 0, w_2, 1.0)[0] - 1, 3 * (y - 1)),
    )
    far_below = np.full(4, -100.0)
    y, cache = feed_forward(x, w_1, far_below, w_2, np.ones(4))
    dx, dw_1, _, dw_2, db_2 = feed_forward_backward(x, cache)
    yield "with every gate closed, y is b_2", np.array_equal(y, np.ones((4, 4)))
    yield "and only b_2 has a gradient", db_2.any() and not (dx.any() or dw_1.any() or dw_2.any())


try_yours("feed_forward", facts)

# %%
show("feed_forward")

# %% [markdown]
# The proof, for each and for the chain, is a comparison with measured slopes, as in section 2.
# [Lesson 03](03_gradient_checking.ipynb) shows how to do that well.

# %%
B, T, D, F = 2, 3, 4, 6
network = (
    rng.standard_normal((B, T, D)),
    rng.standard_normal((D, F)),
    rng.standard_normal(F),
    rng.standard_normal((F, D)),
    rng.standard_normal(D),
)
for forward, backward, values in (
    (linear, linear_backward, [to_host(array) for array in (x, weight, bias)]),
    (relu, relu_backward, (network[0],)),
    (feed_forward, feed_forward_backward, network),
):
    report = check_pair(forward, backward, values)
    assert report.right
    print(f"{forward.__name__}\n{report}")

# %% [markdown]
# PyTorch agrees, to six digits and more:

# %%
if find_spec("torch"):
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in network]
    x, w_1, b_1, w_2, b_2 = tensors
    theirs = torch.relu(x @ w_1 + b_1) @ w_2 + b_2
    theirs.backward(torch.ones_like(theirs))
    ours, cache = feed_forward(*network)
    gradients = feed_forward_backward(np.ones_like(ours), cache)
    names = "y", "dx", "dW_1", "db_1", "dW_2", "db_2"
    theirs = theirs.detach(), *(tensor.grad for tensor in tensors)
    for name, mine, its in zip(names, (ours, *gradients), theirs, strict=True):
        print(f"{name:4} differs by at most {abs(mine - its.numpy()).max():.0e}")
        assert np.allclose(mine, its, rtol=1e-6)


# %% [markdown]
# ### Three slips
#
# Each of these runs without an error message. The first forgets a transpose, which the shapes allow
# because $W$ happens to be square. The second takes a mean for the bias. The third goes through
# the feed-forward network in the right order and forgets the gate.


# %%
def without_transpose(dy, cache):
    x, weight, bias = cache
    return linear_backward(dy, (x, weight.T, bias))  # which transposes it once more


def mean_for_the_bias(dy, cache):
    dx, dweight, dbias = linear_backward(dy, cache)
    return dx, dweight, dbias / len(dy)


def without_the_gate(dy, cache):
    inner_cache, gate, *others = cache
    return feed_forward_backward(dy, (inner_cache, np.ones_like(gate), *others))


square = (rng.standard_normal((7, 5)), rng.standard_normal((5, 5)), rng.standard_normal(5))
for forward, backward, values in (
    (linear, without_transpose, square),
    (linear, mean_for_the_bias, square),
    (feed_forward, without_the_gate, network),
):
    report = check_pair(forward, backward, values)
    assert not report.right
    print(f"{backward.__name__}\n{report}\n")

# %% [markdown]
# In the third report the gradients of $W_2$ and $b_2$ are right: on the way back they come before the gate.
# All that come after it are wrong. **The first wrong gradient on the way back tells where to look.**
#
# ## 7 · Accumulate
#
# A module of this package owns parameters and *adds* to their gradients. The line to look at is
# `self.weight.grad += dweight`:

# %%
source_of(Linear.backward, Module.zero_grad)

# %% [markdown]
# The reason is rule 2. Here one `Linear` is used twice in a row. Each use has its own cache, and each call of
# `backward` adds the gradient of one use:


# %%
class Twice(Module):
    """One and the same linear map, applied two times."""

    def __init__(self, layer):
        self.layer = layer

    def forward(self, x):
        h, first = self.layer.forward(x)
        y, second = self.layer.forward(h)
        return y, (first, second)

    def backward(self, dy, cache):
        first, second = cache
        dh = self.layer.backward(dy, second)
        return self.layer.backward(dh, first)


class Overwriting(Linear):
    """A Linear with = where there should be +=, by mistake."""

    def backward(self, dy, cache):
        dx, self.weight.grad, self.bias.grad = linear_backward(dy, cache)
        return dx


rows = rng.standard_normal((7, 5))
for layer, right in ((Linear(5, 5, rng), True), (Overwriting(5, 5, rng), False)):
    report = check_module(Twice(layer), rows)
    assert report.right == right
    print(f"{type(layer).__name__}, used twice\n{report}\n")

# %% [markdown]
# With `=` only the last call's gradient is left, that of the *first* use. Training would go on, in a
# somewhat wrong direction.
#
# With `+=` somebody has to clear the gradients before each step: `model.zero_grad()`. In return, a batch may
# be cut up. $dW = x^\top dy$ is a sum over rows, and rows may be summed in any portions: on two threads, or one
# after the other if the batch does not fit in memory.

# %%
layer = Linear(5, 3, rng)
dy_rows = rng.standard_normal((7, 3)).astype(np.float32)
rows = rows.astype(np.float32)


def gradient_from(*portions):
    """The weight's gradient after a backward for each of these slices of the batch."""
    layer.zero_grad()
    for portion in portions:
        _, cache = layer.forward(rows[portion])
        layer.backward(dy_rows[portion], cache)
    return layer.weight.grad.copy()


at_once = gradient_from(slice(0, 7))
in_portions = gradient_from(slice(0, 2), slice(2, 3), slice(3, 7))
print(f"largest difference {abs(at_once - in_portions).max():.1e}")
assert np.allclose(at_once, in_portions, rtol=1e-5, atol=1e-6)

# %% [markdown]
# If the loss is a mean over tokens, it must be the mean over the *whole* batch, however that is cut.
#
# ## 8 · A network learns
#
# Training needs nothing more. A network of one input, 24 hidden numbers and one output is to become the
# function $\sin$. We use the pairs of this lesson, plain steps against the gradient, and the loss
# $L = \frac1{2N} \sum_n (y_n - t_n)^2$, whose gradient is $dy_n = (y_n - t_n) / N$. The picture shows
# four moments of one training, with seed 2:

# %%
N, F = 200, 24
place = np.linspace(-np.pi, np.pi, N)[:, None]  # (N, 1)
goal = np.sin(place)
x, t = device.asarray(place), device.asarray(goal)
weights = [
    device.asarray(array)
    for array in (
        np.tile([1.0, -1.0], F // 2)[None],  # (1, F)
        np.linspace(-np.pi, np.pi, F, endpoint=False),  # (F,) so that the kinks lie everywhere
        rng.uniform(-0.1, 0.1, (F, 1)),
        np.zeros(1),
    )
]

curves, kinks, losses = {}, {}, []
for step in range(3001):
    y, cache = feed_forward(x, *weights)
    error = y - t
    losses.append((error * error).sum() / (2 * N))
    if step in (0, 30, 300, 3000):
        curves[step] = to_host(y)
        w_1, b_1 = to_host(weights[0])[0], to_host(weights[1])
        kinks[step] = -b_1 / w_1  # where the input of a ReLU is 0
    _, *slopes = feed_forward_backward(error / N, cache)
    weights = [weight - 0.01 * slope for weight, slope in zip(weights, slopes, strict=True)]
assert float(losses[-1]) < 0.002 < float(losses[0])

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 4, figsize=(10, 3.3), sharey=True)
for axes, (step, curve) in zip(panels, curves.items(), strict=True):
    axes.plot(place, goal, "-", color=BLACK, lw=1, label="$\\sin$")
    axes.plot(place, curve, "--", color=BLUE, label="network")
    inside = kinks[step][abs(kinks[step]) < np.pi]
    height = np.full(len(inside), -2.3)
    axes.plot(inside, height, "|", color=VERMILION, ms=9, mew=1.3, label="kinks of the ReLUs")
    axes.set_title(f"step {step}, loss {float(losses[step]):.4f}")
    axes.set(xlabel="$x$", ylim=(-2.5, 1.5))
panels[0].set_ylabel("$y$ (one training, seed 2)")
handles, labels = panels[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=3)
plt.show()

# %% [markdown]
# The curve is made of straight pieces. At each orange mark the input of one ReLU crosses 0, and its gate
# opens or closes. The marks move, since $dW_1$ and $db_1$ come back through the open gates: a hidden number
# learns only where its gate is open.
#
# ## 9 · Exercises
#
# Fill in `answers/ex02.py`, your copy of [lessons/exercises/ex02.py](exercises/ex02.py), and run
# `minitransformer check ex02`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex02.py](solutions/ex02.py).
#
# 1. **`residual_chain_slope`** (10 min). Sixty blocks $x + s x$ one behind the other, and $2^{60}$ paths.
#    What is the sum over all of them?
# 2. **`gram`** (25 min). $y = x x^\top$ uses one array in two places. First guess whether its gradient is
#    symmetric in the two. Then move matrices across $\langle \cdot, \cdot \rangle$.
# 3. **`two_layer_network`** (45 min). The feed-forward network with its input added at the end, and its
#    backward in plain NumPy, without the pairs of the package.
# 4. **`gradients_of`** (45 min). The loop of section 2 for arrays: backpropagation through any program
#    that wrote down what it did. It is known as automatic differentiation in reverse mode.

# %%
print(check_exercise("ex02", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | notation | $dx = \partial L / \partial x$, of the shape of $x$; it predicts $\Delta L \approx \langle dx, \Delta x \rangle$ |
# | rule 1 | along a path slopes multiply: $dx = du \cdot \partial u / \partial x$ |
# | rule 2 | where paths part, gradients add: `+=`, for uses, rows and batches alike |
# | order | the program's, reversed; then each gradient is complete before it is passed on |
# | move a matrix | $\langle A, B C \rangle = \langle B^\top A, C \rangle = \langle A C^\top, B \rangle$ |
# | linear | $dx = dy \, W^\top, \quad dW = x^\top dy, \quad db = \sum_{\text{rows}} dy$ |
# | ReLU | $dx = dy \cdot [x \gt 0]$ |
# | dropout | $dx = dy \cdot b / (1 - p)$, the same $b$ |
# | cost | backward about two forwards, for all gradients; no Jacobian is ever built |
# | traps | a transpose that square shapes hide; a mean where a sum belongs; `=` for `+=`; no `zero_grad` |
#
# **Your own Transformer.** `linear`, `relu`, `dropout` and `feed_forward`, with their backwards:
# `minitransformer check own`.
#
# **Next:** central differences, which every report here relied on, and what they can miss, in
# [lesson 03](03_gradient_checking.ipynb).
