# %% [markdown]
# # 08 · Scaled dot-product attention
#
# **You will** see attention as a lookup that can be differentiated; derive its backward pass in full, and read
# off what the gradient tells each key and value; measure what goes wrong without the factor $1 / \sqrt{d_k}$; and
# build masks that let nothing through, even where nothing is allowed.
#
# | | |
# |---|---|
# | In the paper | section 3.2.1, equation 1, with its footnote 4; section 3.2.3 for the masks |
# | In the package | `minitransformer/layers/attention.py`, `minitransformer/layers/softmax.py`, `minitransformer/layers/masks.py` |
# | You need | the chain rule; matrix products; mean and variance |
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
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import select_device
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLACK, BLUE, GREEN, VERMILION, shape_table, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_pair
from minitransformer.layers.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    scaled_dot_product_attention_weights,
)
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.masks import causal_mask, padding_mask
from minitransformer.layers.softmax import softmax, softmax_backward

use_style()
device = select_device("cpu")  # "cuda" runs the layer of section 2 on a GPU
rng = np.random.default_rng(8)

# %% [markdown]
# ## 1 · A lookup that can learn
#
# A Python dictionary answers a **query**: it finds the **key** that equals it and hands out the **value**
# filed there. Two things make it useless inside a network. A query that equals no key gets an error. And if
# we take the *nearest* key instead, the answer is a staircase: where it is flat its derivative is zero, where
# it jumps it has none. Nothing says in which direction a better query lies.
#
# Attention takes all values at once, each with a weight. The better its key matches the query, the larger the
# weight. Below, the keys are six directions in the plane, each with a number for its value, and the query
# turns through a full circle. The score of a key is $\beta$ times the cosine of its angle with the query. The
# **softmax** makes weights of the scores: it divides $e^{\text{score}}$ of each by their sum. The curves show
# the answers.

# %%
key_angles = np.radians([20, 70, 140, 190, 250, 320])
values = np.array([1.0, 4.0, 2.0, 5.0, 0.5, 3.0])
turn = np.radians(np.linspace(0, 360, 721))


def unit(angle):
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)  # (..., 2)


cosines = unit(turn) @ unit(key_angles).T  # (queries, keys)
nearest = values[cosines.argmax(axis=-1)]  # (queries,)
answers = {}
for beta in (1, 5, 25):
    weights, _ = softmax(beta * cosines)  # the second result is for the backward pass
    answers[beta] = weights @ values  # (queries,)
    assert values.min() < answers[beta].min() <= answers[beta].max() < values.max()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(8, 4.2))
for beta, colour, dashes in ((1, GREEN, "-."), (5, BLUE, "-"), (25, VERMILION, "--")):
    label = rf"soft, $\beta$ = {beta}"
    axes.plot(np.degrees(turn), answers[beta], color=colour, ls=dashes, label=label)
axes.plot(np.degrees(turn), nearest, color=BLACK, ls=":", lw=1.3, label="hard: the nearest key")
axes.plot(np.degrees(key_angles), values, "o", color=BLACK, ms=6, label="keys and their values")
axes.set(xlabel="direction of the query (degrees)", ylabel="answer", ylim=(0, 6.9))
axes.set_xticks(range(0, 361, 60))
axes.legend(loc="upper right", ncols=2)
plt.show()

# %% [markdown]
# With a large $\beta$ the soft lookup is nearly the dictionary. With a small one it always answers about the
# mean of all values. In between it has a slope almost everywhere, and learning needs a slope. Nobody sets
# $\beta$ by hand: scores will be dot products, the cosine times the lengths of query and key, and lengths are
# learned.
#
# No curve leaves the range of the values. **Attention averages.** It can choose, mix and ignore, and no more.
#
# ## 2 · The definition
#
# In a sentence each word has a query, what it looks for; a key, what it is found by; and a value, what it
# hands out. All three are vectors of $d_k$ numbers. [Lesson 09](09_multi_head_attention.ipynb) makes them;
# here they are given. Stack the queries as the T rows of $Q$, the keys as the S rows of $K$, the values as
# the S rows of $V$. Here are four words that look at each other, with $d_k = 3$ random numbers:

# %%
sentence = ["the", "dog", "is", "here"]
drawn = np.random.default_rng(3)
q, k, v = drawn.standard_normal((3, 4, 3)).round(1)  # (T, d_k) and two (S, d_k), T = S
z = q @ k.T / np.sqrt(3)  # (T, S)
y, cache = scaled_dot_product_attention(q, k, v)  # (T, d_k)
a = scaled_dot_product_attention_weights(cache)  # (T, S)

# %% tags=["hide-input"]
ROW = 2  # the query to follow


def draw_matrix(axes, left, top, numbers, colours=None):
    """Cells with their numbers; the matrix's upper left corner is (left, top)."""
    for (i, j), number in np.ndenumerate(numbers):
        face = plt.get_cmap(colours)(number) if colours else "white"
        axes.add_patch(plt.Rectangle((left + j, top + i), 1, 1, fc=face, ec="0.6", lw=0.8))
        ink = "white" if colours and number > 0.6 else BLACK
        text = f"{number:.2f}" if colours else f"{number + 0.0:.1f}".replace("-", "−")
        axes.text(left + j + 0.5, top + i + 0.5, text, ha="center", va="center", color=ink, size=9)


figure, axes = plt.subplots(figsize=(10, 5))
draw_matrix(axes, 0, 6, q)
draw_matrix(axes, 5, 1, k.T)
draw_matrix(axes, 5, 6, z.round(1))
draw_matrix(axes, 13, 6, a, ATTENTION_COLOURS)
draw_matrix(axes, 19, 0, v)
draw_matrix(axes, 19, 6, y.round(1))
for x, name in (
    (1.5, "queries $Q$\n$(T, d_k)$"),
    (7, r"scores $Z = Q K^\top / \sqrt{d_k}$" + "\n$(T, S)$"),
    (15, "weights $A$\n$(T, S)$, rows sum to 1"),
    (20.5, "output $Y = A V$\n$(T, d_k)$"),
):
    axes.text(x, 10.2, name, ha="center", va="top")
axes.text(9.3, 2.5, "keys $K^\\top$\n$(d_k, S)$", va="center")
axes.text(22.3, 2, "values $V$\n$(S, d_k)$", va="center")
for i, word in enumerate(sentence):
    for left, top in ((-0.2, 6), (18.8, 0)):  # queries and values: a row for each word
        axes.text(left, top + i + 0.5, word, ha="right", va="center")
    for left, top in ((5, 0.8), (13, 5.8)):  # keys and weights: a column for each word
        axes.text(left + i + 0.5, top, word, ha="center")
for left, width in ((0, 3), (5, 4), (13, 4), (19, 3)):
    axes.add_patch(plt.Rectangle((left, 6 + ROW), width, 1, fill=False, ec=BLACK, lw=2.2, zorder=3))
for start, end, step in (
    ((3.2, 8.5), (4.8, 8.5), ""),
    ((7, 4.2), (7, 5.8), ""),
    ((9.2, 8.5), (12.8, 8.5), "softmax\nof each row"),
    ((17.2, 8.5), (18.8, 8.5), ""),
    ((20.5, 4.2), (20.5, 5.8), ""),
):
    axes.annotate("", end, start, arrowprops=dict(arrowstyle="-|>", color=BLACK, lw=1.5))
    axes.text((start[0] + end[0]) / 2, 8.2, step, ha="center")
axes.set(xlim=(-1.5, 25.2), ylim=(12, -0.3), aspect="equal")
axes.axis("off")
plt.show()

# %% [markdown]
# Each score stands in the row of its query, below the column of its key. Follow the framed row, the query of
# *is*. Its dot products with all four keys, over $\sqrt{d_k}$, are its scores. The softmax turns them into
# weights that sum to 1, and with these weights the rows of $V$ are averaged. The two large weights are on
# *the* and *dog*, so the output is mostly their values.
#
# In three steps,
#
# $$
# Z = \frac{Q K^\top}{\sqrt{d_k}}
# \qquad
# A = \text{softmax}(Z)
# \qquad
# Y = A V ,
# $$
#
# scores, weights and output; written in one line it is equation 1 of the paper. With indices, for query
# $t$ and key $s$:
#
# $$
# z_{ts} = \frac{1}{\sqrt{d_k}} \sum_i q_{ti} \, k_{si}
# \qquad
# a_{ts} = \frac{e^{z_{ts}}}{\sum_u e^{z_{tu}}}
# \qquad
# y_{ti} = \sum_s a_{ts} \, v_{si} .
# $$
#
# The softmax runs along a row: each query spends a weight of exactly 1 on all keys together. In the package,
# the arrays have two more axes in front: B sentences, and H *heads*, which are attentions side by side, each
# with queries, keys and values of its own. The paper's $d_k$, the width of a head, is K in the shapes. A
# forward function also returns a `cache`, what its backward pass needs; in it is $A$.

# %%
B, H, T, S, K = 2, 3, 4, 5, 8
query = device.asarray(rng.standard_normal((B, H, T, K)))
key, value = (device.asarray(rng.standard_normal((B, H, S, K))) for _ in range(2))
y, cache = scaled_dot_product_attention(query, key, value)
weights = scaled_dot_product_attention_weights(cache)

shape_table(
    {"B": B, "H": H, "T": T, "S": S, "K": K},
    query=(query, "B H T K", "what each of T positions asks for"),
    key=(key, "B H S K", "what each of S positions is filed under"),
    value=(value, "B H S K", "what each of S positions hands out"),
    weights=(weights, "B H T S", "how much each query takes of each value; rows sum to 1"),
    y=(y, "B H T K", "for each query its average of the values"),
)

# %% [markdown]
# T and S are independent. Three facts follow from the formula. The weights of a query sum to 1. The order of
# the keys does not matter, if their values move along. And a vector added to all keys changes nothing.
# (Section 4 tries them.)
#
# By the second, attention sees a *set* of keys, not a sequence; [lesson 06](06_positions.ipynb) mends that.
# The third is less known. A vector $c$ added to all keys adds $q_t \cdot c / \sqrt{d_k}$ to *all* scores of
# query $t$, and
#
# $$
# \frac{e^{z_{ts} + b}}{\sum_u e^{z_{tu} + b}} = \frac{e^b \, e^{z_{ts}}}{e^b \sum_u e^{z_{tu}}} = a_{ts} .
# $$
#
# So a bias on the keys would be a parameter without effect. The package, like the paper's formula, has none.
#
# The explorer has all these arrays of a trained translator, and the gradient of each: open
# [a cross-attention](../README.md#look-inside "#box=decoder.0.cross&step=3").
#
# ## 3 · The backward pass
#
# We write $dx$ for $\partial L / \partial x$, the gradient of a loss $L$. Given $dY$, we want $dQ$, $dK$ and
# $dV$. First a picture of the result. One query looks at six values, drawn as points in the plane, larger for
# a larger weight. The output $y$ is their weighted mean. Suppose the loss falls if $y$ moves along the arrow,
# $-dy$. What should happen to the scores?

# %%
points = np.array([[2.2, 1.5], [1.1, 2.4], [-0.6, 1.4], [-2.0, 0.8], [-0.9, -1.6], [1.9, -1.5]])
scores = np.array([0.3, 1.2, 0.5, 0.6, 1.0, -0.9])
a_row, softmax_cache = softmax(scores)
y_row = a_row @ points
dy_row = -np.array([1.2, 0.6])
dz_row = softmax_backward(points @ dy_row, softmax_cache)

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 5))
across = np.array([-dy_row[1], dy_row[0]])
axes.plot(*np.transpose([y_row - 4 * across, y_row + 4 * across]), ":", color="0.45", lw=1.2)
for point, weight, dz in zip(points, a_row, dz_row, strict=True):
    axes.plot(*np.transpose([y_row, point]), "-", color="0.85", lw=1, zorder=0)
    up = dz < 0
    axes.plot(*point, "^" if up else "v", color=BLUE if up else VERMILION, ms=8 + 40 * weight)
    axes.annotate(f"{-dz:+.2f}".replace("-", "−"), point, (14, 8), textcoords="offset points")
arrow = dict(arrowstyle="-|>", color=BLACK, lw=1.8, shrinkA=0, shrinkB=0)
axes.annotate("", y_row - dy_row, y_row, arrowprops=arrow)
axes.plot(*y_row, "s", color=BLACK, ms=8)
axes.annotate("$y$", y_row, (-14, -14), textcoords="offset points")
axes.annotate("$-dy$", y_row - 0.6 * dy_row, (0, -14), textcoords="offset points")
axes.plot([], [], "^", color=BLUE, ms=9, label="score should rise")
axes.plot([], [], "v", color=VERMILION, ms=9, label="score should fall")
axes.set(aspect="equal", xlim=(-3, 3.6), ylim=(-2.4, 3.1))
axes.set(xlabel="first feature of the value", ylabel="second feature of the value")
axes.legend(loc="lower left")
plt.show()

# %% [markdown]
# The numbers are $-dz$, how each score should move. The dotted line through $y$, at a right angle to the
# arrow, parts the values: those ahead of it should get more weight, those behind it less. The number grows
# with the distance from the line *and* with the weight.
#
# ### Step 1: the average
#
# In $y_{ti} = \sum_s a_{ts} v_{si}$ a weight $a_{ts}$ serves all features $i$ of one output, and a value
# $v_{si}$ serves all queries $t$. By the chain rule, a variable that serves many gets the sum over all it
# serves:
#
# $$
# da_{ts} = \sum_i dy_{ti} \frac{\partial y_{ti}}{\partial a_{ts}} = \sum_i dy_{ti} \, v_{si}
# \qquad
# dv_{si} = \sum_t dy_{ti} \frac{\partial y_{ti}}{\partial v_{si}} = \sum_t a_{ts} \, dy_{ti} .
# $$
#
# ### Step 2: the softmax
#
# We look at one row, and drop the $t$. Write $a_s = e_s / N$ with $e_s = e^{z_s}$ and $N = \sum_u e_u$. Then
# $\partial e_s / \partial z_u = [s = u] \, e_s$, where $[s = u]$ is 1 if $s = u$ and 0 if not, and
# $\partial N / \partial z_u = e_u$. The quotient rule:
#
# $$
# \frac{\partial a_s}{\partial z_u}
# = \frac{[s = u] \, e_s}{N} - \frac{e_s \, e_u}{N^2}
# = a_s \left( [s = u] - a_u \right) .
# $$
#
# A score $z_u$ moves every weight of its row, so its gradient is a sum over all of them:
#
# $$
# dz_u = \sum_s da_s \, a_s \left( [s = u] - a_u \right)
# = a_u \Bigl( da_u - \sum_s a_s \, da_s \Bigr) .
# $$
#
# The sum is one number for each row. The $S \times S$ matrix of derivatives is never needed.
#
# ### Step 3: the scores
#
# $z_{ts} = \sum_i q_{ti} k_{si} / \sqrt{d_k}$. A query feature serves all keys, a key feature all queries:
#
# $$
# dq_{ti} = \frac{1}{\sqrt{d_k}} \sum_s dz_{ts} \, k_{si}
# \qquad
# dk_{si} = \frac{1}{\sqrt{d_k}} \sum_t dz_{ts} \, q_{ti} .
# $$
#
# ### All together
#
# A sum over the second index of one factor and the first index of the next is a matrix product. Where an
# index stands the other way round, there is a transpose:
#
# $$
# \boxed{ \;
# \begin{aligned}
# dA &= dY \, V^\top & dV &= A^\top dY \\
# dZ &= A \circ \left( dA - \text{rowsum}(A \circ dA) \right) & & \\
# dQ &= dZ \, K / \sqrt{d_k} & dK &= dZ^\top Q / \sqrt{d_k}
# \end{aligned}
# \; }
# $$
#
# with $\circ$ for the product entry by entry. In training dropout ([lesson 02](02_backpropagation.ipynb)) may stand
# between $A$ and $V$, and multiply each weight by $m$, 0 or $1 / (1 - p)$. Then $Y = (m \circ A) V$, so
# $dV = (m \circ A)^\top dY$ and $dA = m \circ (dY \, V^\top)$. The line of $dZ$ stays, with $A$ as it came.
#
# ### What the gradient says
#
# Put $da_s = dy \cdot v_s$ into the row sum, and take the sum inside:
#
# $$
# \sum_s a_s \, da_s = \sum_s a_s \; dy \cdot v_s = dy \cdot \sum_s a_s v_s = dy \cdot y ,
# $$
#
# so that
#
# $$
# dz_s = a_s \; dy \cdot (v_s - y) .
# $$
#
# That is the picture: up to the length of $dy$, $dy \cdot (v_s - y)$ is the distance of a value from the
# dotted line, and $a_s$ is its weight. Gradient descent moves a score along $-dz_s$. **So a score rises if
# its value is better than the present average.** Three consequences:
#
# - **The scores of a query compete.** $\sum_s dz_s = dy \cdot (\sum_s a_s v_s - y) = 0$: what some gain,
#   others lose. Therefore $\sum_s dk_s = \sum_t (\sum_s dz_{ts}) \, q_t / \sqrt{d_k} = 0$, the gradient of a
#   bias on all keys, which has no effect (section 2).
# - **What is not looked at does not learn.** Both $dz_s$ and this query's share of $dv_s$ have the factor
#   $a_s$. Even the best value gets no attention from a query that gives it none now.
# - **A query that has chosen is deaf.** If $a_s = 1$ then $y = v_s$, the bracket is zero, and all other
#   scores have the factor 0. Only the value still learns. Section 5 is about this.

# ## 4 · Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `scaled_dot_product_attention(query, key, value, mask=None, p=0.0, rng=None)` | (B, H, T, K), two (B, H, S, K) | $Y$ (B, H, T, K), `cache` |
# | `scaled_dot_product_attention_backward(dy, cache)` | (B, H, T, K) | $dQ, dK, dV$ |
#
# It is made of your `softmax`, which takes the mask (section 6), and your `dropout`.

# %%
q, k, v = (to_host(array) for array in (query, key, value))
y, dy = to_host(y), rng.standard_normal(y.shape)


def facts(scaled_dot_product_attention, scaled_dot_product_attention_backward):
    attend = scaled_dot_product_attention
    ours, cache = attend(q, k, v)
    yield "of values 1 the answer is 1", np.allclose(attend(q, k, 0 * v + 1)[0], 1)
    yield (
        "the order of the keys does not matter",
        np.allclose(attend(q, k[:, :, ::-1], v[:, :, ::-1])[0], ours),
    )
    yield "nor does a vector added to all", np.allclose(attend(q, k + np.arange(K), v)[0], ours)
    seen = np.arange(S) == 0
    yield "who sees one key answers its value", np.allclose(attend(q, k, v, seen)[0], v[:, :, :1])
    yield "who sees none answers 0", not attend(q, k, v, seen & False)[0].any()
    dq, dk, dv = scaled_dot_product_attention_backward(dy, cache)
    yield "⟨dV, V⟩ is ⟨dY, Y⟩", np.isclose((dv * v).sum(), (dy * ours).sum())
    yield "⟨dQ, Q⟩ is ⟨dK, K⟩", np.isclose((dq * q).sum(), (dk * k).sum())
    ahead, behind = (attend((1 + s) * q, k, v)[0] for s in (1e-5, -1e-5))
    moved = ((ahead - behind) * dy).sum() / 2e-5
    yield "longer queries move L as dQ says", np.isclose(moved, (dq * q).sum(), rtol=1e-4)
    yield "the dK of a head sum to 0", np.allclose(dk.sum(axis=2), 0)


try_yours("scaled_dot_product_attention", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right:

# %%
show("scaled_dot_product_attention")

# %% [markdown]
# `check_pair` compares it with the quotients of small differences ([lesson 03](03_gradient_checking.ipynb)):

# %%
report = check_pair(scaled_dot_product_attention, scaled_dot_product_attention_backward, (q, k, v))
assert report.right
print(report)

# %% [markdown]
# PyTorch agrees, to six digits and more:

# %%
if find_spec("torch"):
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in (q, k, v)]
    theirs = torch.nn.functional.scaled_dot_product_attention(*tensors)
    theirs = theirs.detach(), *torch.autograd.grad(theirs, tensors, torch.tensor(dy))
    ours, cache = scaled_dot_product_attention(q, k, v)
    ours = ours, *scaled_dot_product_attention_backward(dy, cache)
    for name, mine, its in zip(("Y", "dQ", "dK", "dV"), ours, theirs, strict=True):
        print(f"{name:2} differs by at most {abs(mine - its.numpy()).max():.0e}")
        assert np.allclose(mine, its, rtol=1e-6)

# %% [markdown]
# ### Two mistakes
#
# One forgets the factor $1 / \sqrt{d_k}$. One keeps only $a_s (1 - a_s)$, the diagonal of the softmax's matrix of
# derivatives. Neither raises an error, and the gradient of the values is right:


# %%
def without_the_scale(dy, cache):
    query, key, value, _, *others = cache
    return scaled_dot_product_attention_backward(dy, (query, key, value, 1.0, *others))


def with_the_diagonal_alone(dy, cache):
    of_attention = "minitransformer.layers.attention.softmax_backward"
    with patch(of_attention, lambda da, a: a * (1 - a) * da):
        return scaled_dot_product_attention_backward(dy, cache)


for backward in (without_the_scale, with_the_diagonal_alone):
    report = check_pair(scaled_dot_product_attention, backward, (q, k, v))
    assert not report.right
    print(f"{backward.__name__}\n{report}\n")

# %% [markdown]
# $a (1 - a)$ is the derivative of a weight by *its own* score. But every score moves every weight.
#
# ## 5 · Why $\sqrt{d_k}$
#
# ### The variance of a dot product
#
# Let the features of queries and keys be independent, with mean 0 and variance 1. (This is about true at
# the start of training. They are made from $D$ features, to which LayerNorm, [lesson 07](07_layer_norm.ipynb),
# gives a mean square of 1. The weights that make them have variance $1 / D$, and so keep it.) Then a product of
# two of them has
#
# $$
# \text{mean} = E[q_i k_i] = E[q_i] \, E[k_i] = 0 ,
# \qquad
# \text{variance} = E[q_i^2 k_i^2] - 0 = E[q_i^2] \, E[k_i^2] = 1 ,
# $$
#
# since independence splits the expectation of a product. A dot product is a sum of $d_k$ such products, also
# independent, so their variances add up. Hence $q \cdot k$ has variance $d_k$ and standard deviation
# $\sqrt{d_k}$; divided by $\sqrt{d_k}$ it is 1 for every width. This is footnote 4 of the paper.
#
# ### What large scores do
#
# The softmax ignores a constant added to all scores, but not a factor. Put the scores of a query in order,
# $z_1 \ge z_2 \ge \dots$ The second weight is $e^{-(z_1 - z_2)}$ times the first. If their gap is $g$ with
# the scaling, it is $g \sqrt{d_k}$ without, and
#
# $$
# a_2 / a_1 = e^{-g \sqrt{d_k}} .
# $$
#
# This is saturation: a hard choice, made by weights that have learned nothing yet. How much gradient is left?
# The backward pass of a row multiplies by the matrix $J_{su} = a_s ([s = u] - a_u)$. As its size
# $\lVert J \rVert$ we take the root of the sum of its squares.
#
# If nearly all the weight is on two keys, $a_1 = 1 - \epsilon$ and $a_2 = \epsilon \approx a_2 / a_1$, then
# $J = \epsilon (1 - \epsilon) \begin{pmatrix} 1 & -1 \\ -1 & 1 \end{pmatrix}$, and so
#
# $$
# \lVert J \rVert = 2 \, \epsilon (1 - \epsilon) \approx 2 \, e^{-g \sqrt{d_k}} .
# $$
#
# We measure both on 4000 random queries with 16 random keys each: on the left the largest weight, on the
# right $\lVert J \rVert$, with the root and without it.

# %%
widths = np.array([1, 4, 16, 64, 256, 1024])
KEYS, QUERIES = 16, 4000


def jacobian_size(a):
    """‖J‖ for each row of weights, without 1 − a, which rounds to 0 where a is nearly 1."""
    others = 1 - np.eye(KEYS)  # a @ others is 1 − a, as the sum of the other weights
    diagonal = ((a * (a @ others)) ** 2).sum(axis=-1)  # s = u: a_s² (1 − a_s)²
    return np.sqrt(diagonal + (a**2 * (a**2 @ others)).sum(axis=-1))  # s ≠ u: a_s² a_u²


def random_scores(d_k):
    """Dot products (QUERIES, KEYS) of random queries with random keys."""
    keys = rng.standard_normal((QUERIES // 50, d_k, KEYS))  # a set of keys for 50 queries
    queries = rng.standard_normal((QUERIES // 50, 50, d_k))
    return (queries @ keys).reshape(QUERIES, KEYS)


dots = {d_k: random_scores(d_k) for d_k in widths}
plain = {d_k: softmax(dots[d_k])[0] for d_k in widths}
scaled = {d_k: softmax(dots[d_k] / np.sqrt(d_k))[0] for d_k in widths}
ordered = np.sort(rng.standard_normal((100_000, KEYS)), axis=-1)
gap = np.median(ordered[:, -1] - ordered[:, -2])  # g of 16 standard normal scores

left_over = jacobian_size(plain[1024])  # ‖J‖ of each query; the typical one has hardly any
assert np.median(left_over) < 1e-4 < 1e-2 < left_over.mean()
print("d_k                    ", *(f"{d_k:5}" for d_k in widths))
print("standard deviation, q·k", *(f"{z.std():5.1f}" for z in dots.values()))
print(f"median of the gap g: {gap:.2f}")

# %% tags=["hide-input"]
wide = np.linspace(1, 1024, 300)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4))
for name, weights_of, colour, marker in (
    ("$q · k$", plain, VERMILION, "s--"),
    (r"$q · k\,/\sqrt{d_k}$", scaled, BLUE, "o-"),
):
    shares = np.array([np.percentile(a.max(-1), [25, 50, 75]) for a in weights_of.values()])
    sizes = np.array([np.percentile(jacobian_size(a), [25, 50, 75]) for a in weights_of.values()])
    for axes, (low, middle, high) in ((left, shares.T), (right, sizes.T)):
        axes.plot(widths, middle, marker, color=colour, label=name)
        axes.fill_between(widths, low, high, color=colour, alpha=0.18, lw=0)
left.axhline(1 / KEYS, color=BLACK, ls=":", lw=1)
left.text(1, 1 / KEYS + 0.015, "all keys alike", fontsize=9.5)
left.set(title="largest weight of a query", ylabel="weight", ylim=(0, 1.05), xscale="log")
right.plot(wide, 2 * np.exp(-gap * np.sqrt(wide)), "-", color=BLACK, lw=1)
right.text(5, 1.1, r"$2\,e^{-g\sqrt{d_k}}$")
right.set(title="what is left of a gradient", ylabel=r"$\|J\|$", ylim=(1e-11, 6))
right.set(xscale="log", yscale="log")
for axes in (left, right):
    axes.set_xlabel("$d_k$, width of a head (features)")
    axes.set_xticks(widths, labels=map(str, widths))
    axes.minorticks_off()
left.legend(loc="upper left")
plt.show()

# %% [markdown]
# Points are medians over the queries, bands hold the middle half, the thin line is the formula with the
# median $g$. Without the scaling, the largest weight goes to 1. From $d_k = 64$ on, where two keys have nearly
# all the weight, the gradient of the typical query falls as the formula says. With the scaling, the width
# hardly matters.
#
# We say *typical*: where the two best keys are about equal by chance, $\epsilon (1 - \epsilon)$ is large. The many
# queries that are decided and wrong learn nothing.
#
# ### Does it hinder learning?
#
# We let attention learn a lookup. Each example has 16 random keys with values. The query is one of the keys,
# turned by a rotation that is the same for all examples. A linear map $W$ in front of it has to learn to turn
# it back. $d_k$ is 64, and $W$ starts at random. The loss is the squared error of the value. Values have
# variance 1, so the answer 0 has a loss of 1. We take 120 steps of plain gradient descent, over a wide range of
# learning rates, from three seeds. (The loss is a mean over 1024 numbers; for their sum the rates would be 1024
# times smaller.)

# %%
D_K, EXAMPLES, STEPS = 64, 32, 120
SEEDS = (8, 9, 10)
learning_rates = np.logspace(-1.5, 5, 14)


def learn_lookup(learning_rate, factor, seed):
    """Mean loss over the last 20 steps; factor multiplies the scaled scores."""
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.standard_normal((D_K, D_K)))
    weight = rng.standard_normal((D_K, D_K)) / np.sqrt(D_K)
    losses = []
    for _ in range(STEPS):
        keys = rng.standard_normal((EXAMPLES, KEYS, D_K))
        values = rng.standard_normal((EXAMPLES, KEYS, 8))
        asked = keys[:, :4] @ rotation  # (EXAMPLES, 4, D_K): four queries for each example
        queries, linear_cache = linear(asked, weight)
        found, cache = scaled_dot_product_attention(queries * factor, keys, values)
        error = found - values[:, :4]
        losses.append((error**2).mean())
        dqueries, _, _ = scaled_dot_product_attention_backward(2 * error / error.size, cache)
        _, dweight, _ = linear_backward(dqueries * factor, linear_cache)
        weight = weight - learning_rate * dweight
    return np.mean(losses[-20:])


curves = {
    name: np.array(
        [[learn_lookup(rate, factor, seed) for rate in learning_rates] for seed in SEEDS]
    )
    for name, factor in (("without", np.sqrt(D_K)), ("with", 1.0))
}  # (seeds, learning rates) each
working = {name: (of_seeds < 0.01).sum(axis=1) for name, of_seeds in curves.items()}
assert 0 < working["without"].min() <= working["without"].max() < working["with"].min()
assert curves["without"].min(axis=1).min() > curves["with"].min(axis=1).max()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4))
for name, colour, style in (("without", VERMILION, "s--"), ("with", BLUE, "o-")):
    lines = axes.loglog(learning_rates, curves[name].T, style, color=colour, lw=1.2, ms=4)
    lines[0].set_label(f"{name} the factor, {len(SEEDS)} seeds")
axes.axhline(1, color=BLACK, ls=":", lw=1)
axes.text(10, 1.12, "always 0", fontsize=9.5)
axes.set(xlabel="learning rate", ylabel="squared error, steps 101 to 120", ylim=(None, 3))
axes.legend(loc="lower left")
plt.show()

# %% [markdown]
# Both learn it, from each seed. But the learning rates that bring the error below 0.01 are fewer without the
# scaling, and the best error is larger. A Transformer has many attentions, and they share one learning rate.
#
# ## 6 · Masks
#
# Not every query may see every key. Short sentences of a batch are filled up with *padding*, which nobody
# should look at. And the decoder writes from left to right, so no position may see those after it: a *causal*
# mask (section 3.2.3). Masks are boolean, **True where attention is allowed**, and are combined by `&`. Write
# them so that they broadcast to (B, H, T, S):
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `padding_mask(ids, pad_id=0)` | (B, S) | (B, 1, 1, S) |
# | `causal_mask(ids)` | (B, T) | (1, 1, T, T), a query in each row |


# %%
def facts(padding_mask, causal_mask):
    ids = np.array([[5, 6, 7, 0], [8, 0, 0, 0]])
    of_padding, causal = padding_mask(ids), causal_mask(ids)
    yield "three and one are no padding", of_padding.sum(axis=-1).ravel().tolist() == [3, 1]
    yield "query t sees t + 1 keys", causal.sum(axis=-1).ravel().tolist() == [1, 2, 3, 4]
    yield "both together are (2, 1, 4, 4)", (of_padding & causal).shape == (2, 1, 4, 4)


try_yours("padding_mask", facts)  # and causal_mask

# %%
show("padding_mask")

# %%
show("causal_mask")

# %% [markdown]
# A forbidden score is replaced by $-\infty$, whose exponential is exactly 0, *before* the softmax divides by
# the sum. Here are the weights of one sentence under four masks. It is padded on the left, the hardest case:
# there the causal mask leaves the first positions nothing but padding. A cross marks a weight of exactly zero.

# %%
words = ["pad", "pad", "the", "dog", "is", "here"]
ids = np.array([[0, 0, 5, 6, 7, 8]])  # 0 is the id of padding
masks = {
    "no mask": None,
    "padding": padding_mask(ids),
    "causal": causal_mask(ids),
    "both": padding_mask(ids) & causal_mask(ids),
}
x = rng.standard_normal((1, 1, 6, 16))  # the queries of six positions
other = rng.standard_normal((1, 1, 6, 16))  # their keys, which are their values too
masked = {
    title: scaled_dot_product_attention(x, other, other, mask)[1][-1][0, 0]
    for title, mask in masks.items()
}  # weights (6, 6) each

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 4, figsize=(10, 3.3), sharey=True)
for axes, (title, shown) in zip(panels, masked.items(), strict=True):
    image = axes.imshow(shown, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    axes.plot(*np.argwhere(shown == 0).T[::-1], "x", color="0.6", ms=5)
    axes.set(title=title, xlabel="key")
    axes.set_xticks(range(6), words, rotation=90, fontsize=9)
    axes.set_yticks(range(6), words, fontsize=9)
    axes.grid(False)
panels[0].set_ylabel("query")
figure.colorbar(image, ax=panels, shrink=0.75, label="attention weight")
plt.show()

# %% [markdown]
# Each query spends its 1 on the keys that it may see. In the panel *both* the first two queries may see
# nothing at all. What should *they* get?
#
# ### The fully masked row
#
# The formula has no answer: $e^{-\infty} / \sum e^{-\infty}$ is $0 / 0$, NaN in NumPy. One such row, at a
# position of padding that nobody looks at, destroys everything, because the backward pass *sums* over
# queries:

# %%
_, (*start, a, dropped, _) = scaled_dot_product_attention(x, other, other, masks["both"])
zero, seen = np.exp(-np.inf), masks["both"].any(axis=-1, keepdims=True)
with np.errstate(invalid="ignore"):
    naive = np.where(seen, a, zero / zero)  # what the formula has where nothing is allowed
naive_cache = (*start, naive, dropped, naive)
_, naive_dk, _ = scaled_dot_product_attention_backward(rng.standard_normal(x.shape), naive_cache)
print(f"rows of NaN in the weights: {np.isnan(naive[0, 0]).any(-1).sum()} of 6")
print(f"rows of NaN in dK:          {np.isnan(naive_dk[0, 0]).any(-1).sum()} of 6")
assert np.allclose(softmax(np.full(6, -1e9))[0], 1 / 6)  # see below
assert not masked["both"][:2].any()

# %% [markdown]
# A common way around is a large negative number, say $-10^9$, in place of $-\infty$. Then there is no NaN, but
# a silent mistake. If *all* scores are $-10^9$ they are equal, and the output is the mean of all that it must
# not see, the future too.
#
# The package **defines** it: a query that may see nothing gets nothing, weights 0 and output 0. Since
# $dz = a \, (\dots)$, its gradient is 0 as well.
#
# ### Masking in the wrong place
#
# Here a causal mask comes after the softmax. The test of a mask is its promise: **change the last key,
# and see whether the first query's answer moves.**


# %%
def masked_too_late(keys):
    _, cache = scaled_dot_product_attention(x, keys, keys)
    return scaled_dot_product_attention_weights(cache) * masks["causal"]  # the future was summed


def masked_before(keys):
    _, cache = scaled_dot_product_attention(x, keys, keys, masks["causal"])
    return scaled_dot_product_attention_weights(cache)


changed = other.copy()
changed[..., -1, :] += 3 * x[..., 0, :]  # a future key that the first query would like
for weigh in (masked_too_late, masked_before):
    before, after = (weigh(keys) @ keys for keys in (other, changed))
    moved = abs(after - before)[0, 0, 0].max()
    total = weigh(other)[0, 0, 0].sum()
    print(f"{weigh.__name__:<16} first answer moves by {moved:.3f}, sum of its weights {total:.2f}")
assert np.array_equal(before[0, 0, 0], after[0, 0, 0])  # masked before the softmax

# %% [markdown]
# ## 7 · Exercises
#
# Fill in `answers/ex08.py`, your copy of [lessons/exercises/ex08.py](exercises/ex08.py), and run
# `minitransformer check ex08`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex08.py](solutions/ex08.py).
#
# 1. **`score_of_itself`** (10 min). To save parameters, one matrix makes both queries and keys:
#    $q_t = k_t$. What is then the score of a position with itself, in the mean, and its standard deviation?
#    Where will every position look at the start of training?
# 2. **`packed_mask`** (25 min). Instead of padding, short sentences can share a row, one after another. The
#    mask has to keep them apart.
# 3. **`biased_attention`** (45 min). A learned number for each pair of positions, added to the score: one
#    way to tell attention about distances. Its backward pass is one line, and one sum that is easy to forget.
# 4. **`lean_attention`** (90 min). Of what the cache keeps, only the weights grow with $T \cdot S$. Show
#    that the backward pass can do without them. *FlashAttention* (Dao and others, 2022) stands on this.

# %%
print(check_exercise("ex08", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | forward | $Z = Q K^\top / \sqrt{d_k}, \quad A = \text{softmax}(Z), \quad Y = A V$ |
# | backward | $dA = dY V^\top, \quad dV = A^\top dY$ |
# | | $dZ = A \circ (dA - \text{rowsum}(A \circ dA))$ |
# | | $dQ = dZ K / \sqrt{d_k}, \quad dK = dZ^\top Q / \sqrt{d_k}$ |
# | what it says | $dz_s = a_s \, dy \cdot (v_s - y)$: a score rises if its value is better than the average |
# | shapes | $Q, Y$ (B, H, T, K), $K, V$ (B, H, S, K), $Z, A$ (B, H, T, S) |
# | why $\sqrt{d_k}$ | $q \cdot k$ has variance $d_k$; saturated, the typical query has no gradient |
# | masks | True where allowed; $-\infty$ before the softmax; a row with nothing allowed is 0, not NaN |
# | traps | the factor $1 / \sqrt{d_k}$ in the backward pass too; $a_s (1 - a_s)$ alone; a mask after the softmax |
#
# **Your own Transformer.** `padding_mask`, `causal_mask`, and `scaled_dot_product_attention` with its backward:
# `minitransformer check own`.
#
# **Next:** [lesson 09](09_multi_head_attention.ipynb) makes queries, keys and values, and many heads at
# once.
