# %% [markdown]
# # 08 · Scaled dot-product attention
#
# **You will** see attention as a lookup that can be differentiated; derive its backward in full and
# read off what the gradient says to each key and value; measure what goes wrong without the factor
# $1 / \sqrt{d_k}$; and build masks that let nothing through, also where nothing is allowed.
#
# | | |
# |---|---|
# | In the paper | section 3.2.1, equation 1, with its footnote 4; section 3.2.3 for the masks |
# | In the package | `minitransformer/layers/attention.py`, `minitransformer/layers/softmax.py`, `minitransformer/masks.py` |
# | You need | the chain rule; matrix products; mean and variance |
# | Time | an hour to read, two for the exercises |

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

from minitransformer import select_device
from minitransformer.backend import to_host
from minitransformer.exercises import check_exercise
from minitransformer.gradcheck import check_pair
from minitransformer.layers.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.softmax import softmax, softmax_backward
from minitransformer.lessons import (
    BLACK,
    BLUE,
    GREEN,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.masks import causal_mask, padding_mask
from minitransformer.plots import ATTENTION_COLOURS

use_style()
device = select_device("cpu")  # "cuda" runs the layer of section 2 on a GPU
rng = np.random.default_rng(8)

# %% [markdown]
# ## 1 · A lookup that can learn
#
# A Python dictionary answers a **query**: it finds the **key** that equals it and hands out the
# **value** filed there. Two things make it useless inside a network. A query that equals no key gets
# an error instead of an answer. And if we mend that by taking the *nearest* key, the answer is a
# staircase: move the query a little and the answer stays as it was, so its derivative is zero, or it
# jumps, and there is none. Nothing says in which direction a better query lies.
#
# Attention takes all values at once, each with a weight. The better its key matches the query, the
# larger the weight. Below, the keys are six directions in the plane, each with a number for its value.
# The query turns through a full circle. How well a key matches is $\beta$ times the cosine of the angle
# between the two; $\beta$ says how choosy the lookup is.

# %%
key_angles = np.radians([20, 70, 140, 190, 250, 320])
values = np.array([1.0, 4.0, 2.0, 5.0, 0.5, 3.0])
turn = np.radians(np.linspace(0, 360, 721))


def unit(angle):
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)  # (..., 2)


figure, axes = plt.subplots(figsize=(8, 4.2))
for beta, colour, dashes in ((1, GREEN, "-."), (5, BLUE, "-"), (25, VERMILION, "--")):
    query = np.sqrt(2) * beta * unit(turn)  # √2 cancels the 1/√d_k that the package puts in
    answers, _ = scaled_dot_product_attention(query, unit(key_angles), values[:, None])
    axes.plot(np.degrees(turn), answers, color=colour, ls=dashes, label=rf"soft, $\beta$ = {beta}")
nearest = values[(unit(turn) @ unit(key_angles).T).argmax(axis=-1)]
axes.plot(np.degrees(turn), nearest, color=BLACK, ls=":", lw=1.3, label="hard: the nearest key")
axes.plot(np.degrees(key_angles), values, "o", color=BLACK, ms=6, label="keys and their values")
axes.set(xlabel="direction of the query (degrees)", ylabel="answer", ylim=(0, 6.9))
axes.set_xticks(range(0, 361, 60))
axes.legend(loc="upper right", ncols=2)
plt.show()

# %% [markdown]
# With a large $\beta$ the soft lookup is nearly the dictionary, but its steps are slopes. With a small
# one it hands out something near the mean of all values, whatever it is asked. In between it has a
# slope almost everywhere, and a slope is what learning needs. Nobody sets $\beta$ by hand: it is the length
# of queries and keys, and those are learned.
#
# Note also what the curves never do: none leaves the range of the values. **Attention averages.** It
# can choose, mix and ignore; it cannot make anything larger than the largest value it is given.
#
# ## 2 · The definition
#
# Stack the queries of one sentence as rows of $Q$, the keys as rows of $K$, the values as rows of $V$.
# Here is all of attention for a sentence of four words that look at each other, with vectors of $d_k = 3$
# random numbers:

# %%
sentence = ["the", "dog", "is", "here"]
drawn = np.random.default_rng(3)
q, k, v = drawn.standard_normal((3, 4, 3)).round(1)  # (T, d_k), (S, d_k), (S, d_k): T = S here
y, drawn_cache = scaled_dot_product_attention(q, k, v)
a, z = drawn_cache[-1], q @ k.T / np.sqrt(3)
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
# *is*: its dot products with all four keys, over $\sqrt{d_k}$, are its scores; the softmax turns them into
# weights that sum to 1; and with these weights the rows of $V$ are averaged. Its two large weights are on *the*
# and *dog*, so its output is mostly their values. T, the number of queries, and S, that of keys, are the same here
# because both come from one sentence.
#
# These are three steps,
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
# The softmax runs along a row: each query spends a weight of exactly 1 on all keys together. The batch
# and the heads are leading axes that take no part: $B \cdot H$ small attentions side by side. The symbol
# $d_k$ of the paper is the width of a head, K in the shapes.

# %%
B, H, T, S, K = 2, 3, 4, 5, 8
query = device.asarray(rng.standard_normal((B, H, T, K)))
key, value = (device.asarray(rng.standard_normal((B, H, S, K))) for _ in range(2))
y, cache = scaled_dot_product_attention(query, key, value)
weights = cache[-1]

shape_table(
    {"B": B, "H": H, "T": T, "S": S, "K": K},
    query=(query, "B H T K", "what each of T positions asks for"),
    key=(key, "B H S K", "what each of S positions is filed under"),
    value=(value, "B H S K", "what each of S positions hands out"),
    weights=(weights, "B H T S", "how much each query takes of each value; rows sum to 1"),
    y=(y, "B H T K", "for each query its average of the values"),
)

# %% [markdown]
# T and S are independent: five keys may be asked four things. Three facts follow from the formula. The weights
# of a query sum to 1. The order of the keys does not matter, if their values move with them. And a vector
# added to all keys changes nothing:

# %%
q, k, v = (to_host(array) for array in (query, key, value))
y, a = to_host(y), to_host(weights)

assert np.allclose(a.sum(axis=-1), 1)
order = rng.permutation(S)
assert np.allclose(scaled_dot_product_attention(q, k[:, :, order], v[:, :, order])[0], y)
shift = rng.standard_normal(K)
assert np.allclose(scaled_dot_product_attention(q, k + shift, v)[0], y)

# %% [markdown]
# The second says that attention sees a *set* of keys, not a sequence; [lesson 06](06_positions.ipynb) is
# about what that costs and how it is mended. The third is less known. A vector $c$ added to all keys adds
# $q_t \cdot c / \sqrt{d_k}$ to *all* scores of query $t$, and
#
# $$
# \frac{e^{z_{ts} + b}}{\sum_u e^{z_{tu} + b}} = \frac{e^b \, e^{z_{ts}}}{e^b \sum_u e^{z_{tu}}} = a_{ts} .
# $$
#
# So a bias on the keys would be a parameter without any effect. The package, like the paper's formula,
# has no biases there. The same identity lets the softmax subtract the largest score of each row before
# it takes exponentials, which then cannot overflow.
#
# ## 3 · The backward
#
# Given $dY$, the gradient of a loss by the output, we want $dQ$, $dK$ and $dV$. First a picture of what
# will come out. A single query looks at six values, drawn as points in the plane; the size of a point
# is its weight. The output $y$ is their weighted mean. Suppose the loss would fall if $y$ moved along the
# arrow, which is $-dy$. What should happen to the scores?

# %%
points = np.array([[2.2, 1.5], [1.1, 2.4], [-0.6, 1.4], [-2.0, 0.8], [-0.9, -1.6], [1.9, -1.5]])
scores = np.array([0.3, 1.2, 0.5, 0.6, 1.0, -0.9])
a_row, softmax_cache = softmax(scores)
y_row = a_row @ points
dy_row = -np.array([1.2, 0.6])
dz_row = softmax_backward(points @ dy_row, softmax_cache)

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
# The numbers are $-dz$. The dotted line through $y$, at a right angle to the arrow, parts the values:
# those ahead of it should get more weight, those behind it less. A value gets a larger number the farther
# it is from the line *and* the larger its weight already is. We shall find exactly this.
#
# ### Step 1: the average
#
# $y_{ti} = \sum_s a_{ts} v_{si}$ has two factors. A weight $a_{ts}$ serves all features $i$ of one output; a
# value $v_{si}$ serves all queries $t$. A variable that serves many gets the sum over all it serves:
#
# $$
# da_{ts} = \sum_i dy_{ti} \frac{\partial y_{ti}}{\partial a_{ts}} = \sum_i dy_{ti} \, v_{si}
# \qquad
# dv_{si} = \sum_t dy_{ti} \frac{\partial y_{ti}}{\partial v_{si}} = \sum_t a_{ts} \, dy_{ti} .
# $$
#
# ### Step 2: the softmax
#
# One row, so we drop the $t$. Write $a_s = e_s / N$ with $e_s = e^{z_s}$ and $N = \sum_u e_u$. Then
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
# The sum is one number a row. The $S \times S$ matrix of derivatives never has to exist.
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
# A sum over the second index of the first factor and the first index of the second is a matrix product;
# where an index stands the other way round, a transpose. Read from $dY$ on:
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
# with $\circ$ for the product entry by entry.
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
# That is the picture: $dy \cdot (v_s - y)$ is the distance of a value from the dotted line, $a_s$ its
# weight. **A score rises if its value is better than the average that is handed out now.** Three
# consequences:
#
# - **The scores of a query compete.** $\sum_s dz_s = dy \cdot (\sum_s a_s v_s - y) = 0$: what some gain
#   others lose. Therefore $\sum_s dk_s = \sum_t (\sum_s dz_{ts}) \, q_t / \sqrt{d_k} = 0$, which is what
#   section 2 said of a bias on the keys.
# - **Who is not looked at does not learn.** Both $dz_s$ and this query's share of $dv_s$ have the factor $a_s$.
#   The best value of all gets no attention by this query if it has none.
# - **Who is looked at alone has no better score to learn.** If $a_s = 1$ then $y = v_s$, the bracket is zero, and
#   all other scores have the factor 0. The value still learns; a query that has made its choice is deaf. Section 5
#   is about this.

# %%
dy = rng.standard_normal(y.shape)
dq, dk, dv = scaled_dot_product_attention_backward(dy, scaled_dot_product_attention(q, k, v)[1])
from_the_picture = a * (dy @ v.swapaxes(-1, -2) - (dy * y).sum(axis=-1, keepdims=True))
assert np.allclose(dq, from_the_picture @ k / np.sqrt(K))
assert np.allclose(dz_row, a_row * ((points - y_row) @ dy_row))  # the numbers in the plot
print(
    f"entries of dk up to {abs(dk).max():.2f}; their sums over the keys: {abs(dk.sum(2)).max():.0e}"
)

# %% [markdown]
# ## 4 · The code of the package
#
# Compare with the box, from the bottom of the forward to its top. `dropout` does nothing here, its
# probability is 0; in training it may drop weights, between $A$ and $V$, and its backward stands in the
# mirrored place. (`@twinned` lets a faster body stand in when it is asked for; here nobody asks.)

# %%
source_of(scaled_dot_product_attention, scaled_dot_product_attention_backward)

# %%
source_of(softmax, softmax_backward)

# %%
report = check_pair(scaled_dot_product_attention, scaled_dot_product_attention_backward, (q, k, v))
assert report.right
print(report)

# %% [markdown]
# ### Two mistakes
#
# Neither raises an error, and both leave the gradient of the values right:


# %%
def wrong_backward(mistake):
    def backward(dy, cache):
        query, key, value, scale, a, *_ = cache
        dvalue = a.swapaxes(-1, -2) @ dy
        da = dy @ value.swapaxes(-1, -2)
        dz = softmax_backward(da, a)
        if mistake == "a (1 − a)":  # only the diagonal of the matrix of derivatives
            dz = a * (1 - a) * da
        if mistake != "no scale":
            dz = dz * scale
        return dz @ key, dz.swapaxes(-1, -2) @ query, dvalue

    return backward


for mistake in ("no scale", "a (1 − a)"):
    report = check_pair(scaled_dot_product_attention, wrong_backward(mistake), (q, k, v))
    assert not report.right
    print(f"{mistake}\n{report}\n")

# %% [markdown]
# $a (1 - a)$ is the derivative of a weight by *its own* score, and it is tempting because the sigmoid's
# derivative looks like it. But every score moves every weight: the row sum is missing.
#
# ## 5 · Why $\sqrt{d_k}$
#
# ### The variance of a dot product
#
# Let the features of queries and keys be independent, with mean 0 and variance 1. (So it is, about, at the start
# of training: LayerNorm gives features a mean square of 1, and weights of variance $1 / D$ keep it.) Then a product
# of two of them has
#
# $$
# \text{mean} = E[q_i k_i] = E[q_i] \, E[k_i] = 0 ,
# \qquad
# \text{variance} = E[q_i^2 k_i^2] - 0 = E[q_i^2] \, E[k_i^2] = 1 ,
# $$
#
# where independence allows the expectation of a product to be split. A dot product is a sum of $d_k$ such
# products, which are independent too, and the variances of independent numbers add up. So $q \cdot k$ has
# variance $d_k$ and standard deviation $\sqrt{d_k}$, and after division by $\sqrt{d_k}$ it is 1 for every
# width. This is footnote 4 of the paper.
#
# ### What large scores do
#
# Softmax does not care for a constant added to the scores, but very much for a factor. Put the scores of a query
# in order, $z_1 \ge z_2 \ge \dots$ The second weight is $e^{-(z_1 - z_2)}$ times the first. If the
# gap between them is $g$ when the scores have standard deviation 1, it is $g \sqrt{d_k}$ without the
# scaling, and
#
# $$
# a_2 / a_1 = e^{-g \sqrt{d_k}} .
# $$
#
# That is the saturation: the softmax becomes a hard choice, made at random, by weights that have not
# learned anything yet. How much gradient is left? The backward of a row multiplies by the matrix
# $J_{su} = a_s ([s = u] - a_u)$. As its size we take the root of the sum of its squares,
#
# $$
# \lVert J \rVert^2 = \sum_{s, u} a_s^2 \left( [s = u] - 2 [s = u] \, a_u + a_u^2 \right)
# = \sum_s a_s^2 - 2 \sum_s a_s^3 + \Bigl( \sum_s a_s^2 \Bigr)^2 .
# $$
#
# When nearly all the weight is on two keys, $a_1 = 1 - \epsilon$ and $a_2 = \epsilon$, then
# $J = \epsilon (1 - \epsilon) \begin{pmatrix} 1 & -1 \\ -1 & 1 \end{pmatrix}$, and so
#
# $$
# \lVert J \rVert = 2 \, \epsilon (1 - \epsilon) \approx 2 \, e^{-g \sqrt{d_k}} .
# $$
#
# All of it measured, on 4000 random queries with 16 random keys each:

# %%
widths = np.array([1, 4, 16, 64, 256, 1024])
KEYS, QUERIES = 16, 4000


def jacobian_size(a):
    """The root of the sum of squares of the softmax's matrix of derivatives, for each row."""
    squares = (a**2).sum(axis=-1)
    return np.sqrt(np.maximum(squares - 2 * (a**3).sum(axis=-1) + squares**2, 0))


def random_scores(d_k):
    """Dot products (QUERIES, KEYS) of random queries with random keys."""
    keys = rng.standard_normal((QUERIES // 50, d_k, KEYS))  # 80 sets of keys, 50 queries for each
    queries = rng.standard_normal((QUERIES // 50, 50, d_k))
    return (queries @ keys).reshape(QUERIES, KEYS)


dots = {d_k: random_scores(d_k) for d_k in widths}
plain = {d_k: softmax(dots[d_k])[0] for d_k in widths}
scaled = {d_k: softmax(dots[d_k] / np.sqrt(d_k))[0] for d_k in widths}
ordered = np.sort(rng.standard_normal((100_000, KEYS)), axis=-1)
gap = np.median(ordered[:, -1] - ordered[:, -2])  # g of 16 standard normal numbers
wide = np.linspace(1, 1024, 300)

print("d_k                    ", *(f"{d_k:5}" for d_k in widths))
print("standard deviation, q·k", *(f"{z.std():5.1f}" for z in dots.values()))

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
right.set(title="what is left of a gradient", ylabel=r"$\|J\|$", ylim=(1e-7, 6))
right.set(xscale="log", yscale="log")
for axes in (left, right):
    axes.set_xlabel("$d_k$, width of a head (features)")
    axes.set_xticks(widths, labels=map(str, widths))
    axes.minorticks_off()
left.legend(loc="upper left")
plt.show()

# %% [markdown]
# Points and lines are medians over the queries, the bands hold the middle half of them. Without the
# scaling, the largest weight goes to 1 and, from $d_k = 64$ on, where two keys have nearly all the weight, the
# gradient of the typical query falls as the formula says. With it, hardly anything depends on the width.
#
# The *typical* query: that word matters, for not all gradients vanish. Here is that of the query itself, $dq$,
# which has the keys as a factor too, and those are longer in a wider head:

# %%
d_k = 1024
keys, targets = (rng.standard_normal((400, KEYS, width)) for width in (d_k, 64))
queries, upstream = (rng.standard_normal((400, 1, width)) for width in (d_k, 64))
for name, factor in (("scaled", 1.0), ("unscaled", np.sqrt(d_k))):  # cancels the 1/√d_k
    _, factor_cache = scaled_dot_product_attention(queries * factor, keys, targets)
    dqueries, _, _ = scaled_dot_product_attention_backward(upstream, factor_cache)
    size = np.linalg.norm(dqueries * factor, axis=-1)
    print(f"{name:<9} |dq|: median {np.median(size):.1e}, mean {size.mean():4.1f}")
assert np.median(size) < 0.01 < size.mean()

# %% [markdown]
# A few queries, whose two best keys happen to be about equal, get a large gradient, and all others hardly any.
# Every step follows the few who are undecided, and says nothing to the many who are decided and wrong.
#
# ### Does it hinder learning?
#
# We let attention learn a lookup. Each example has 16 random keys with values. The question is one of
# the keys, but turned by a rotation that is the same for all examples; a linear map $W$ in front of the
# query has to learn to turn it back. $d_k$ is 64, and $W$ starts at random. The loss is the squared error
# of the value, whose variance is 1, so answering always 0 has a loss of 1. Plain gradient descent, 120
# steps, over a wide range of learning rates, from three seeds:

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
        asked = keys[:, :4] @ rotation  # (EXAMPLES, 4, D_K): each example asks for four of them
        queries, linear_cache = linear(asked, weight)
        found, cache = scaled_dot_product_attention(queries * factor, keys, values)
        error = found - values[:, :4]
        losses.append((error**2).mean())
        dqueries, _, _ = scaled_dot_product_attention_backward(2 * error / error.size, cache)
        _, dweight, _ = linear_backward(dqueries * factor, linear_cache)
        weight = weight - learning_rate * dweight
    return np.mean(losses[-20:])


figure, axes = plt.subplots(figsize=(7, 4))
curves = {}
for name, factor, colour, style in (
    ("$q · k$", np.sqrt(D_K), VERMILION, "s--"),
    (r"$q · k\,/\sqrt{d_k}$", 1.0, BLUE, "o-"),
):
    curves[name] = np.array(
        [[learn_lookup(rate, factor, seed) for rate in learning_rates] for seed in SEEDS]
    )
    lines = axes.loglog(learning_rates, curves[name].T, style, color=colour, lw=1.2, ms=4)
    lines[0].set_label(f"{name}, {len(SEEDS)} seeds")
axes.axhline(1, color=BLACK, ls=":", lw=1)
axes.text(learning_rates[0], 1.12, "always 0", fontsize=9.5)
axes.set(xlabel="learning rate", ylabel="squared error, steps 101 to 120", ylim=(None, 3))
axes.legend(loc="lower left")
plt.show()
for name, of_seeds in zip(("without", "with"), curves.values(), strict=True):
    for seed, curve in zip(SEEDS, of_seeds, strict=True):
        working = learning_rates[curve < 0.01]
        print(
            f"{name:<8} seed {seed:<3} best error {curve.min():.0e}; below 0.01 for learning rates over "
            f"a factor of {working.max() / working.min():,.0f}"
        )

# %% [markdown]
# Both can learn it, from each seed. Without the scaling, the learning rate has to be right within a factor of a hundred or
# less; with it within a factor of a thousand or more, and the best error is smaller. A Transformer has many attentions, and
# all of them share one learning rate.
#
# **Is it not a mere matter of initial weights?** It is: smaller ones could do without the root, and learning may
# undo it at any time by longer queries. The factor sets where heads *start* from: soft, with a gradient for
# everybody, at every width.
#
# ## 6 · Masks
#
# Not every query may see every key. Padding is nobody's business, and in the decoder no position may
# see those after it (section 3.2.3 of the paper: they are set to $-\infty$). The package's masks are
# boolean, **True where attention is allowed**, and are combined by `&`:

# %%
source_of(padding_mask, causal_mask)

# %% [markdown]
# A forbidden score is replaced by $-\infty$, whose exponential is exactly 0, *before* the softmax divides
# by the sum. Here are the weights of one and the same sentence under four masks. It is padded on the left, to
# show the hardest case. A cross marks a weight of exactly zero.

# %%
words = ["pad", "pad", "the", "dog", "is", "here"]
ids = np.array([[0, 0, 5, 6, 7, 8]])  # 0 is the id of padding
masks = {
    "no mask": None,
    "padding": padding_mask(ids),
    "causal": causal_mask(ids),
    "both": padding_mask(ids) & causal_mask(ids),
}
x = rng.standard_normal((1, 1, 6, 16))  # queries, keys and values of six positions
other = rng.standard_normal((1, 1, 6, 16))

figure, panels = plt.subplots(1, 4, figsize=(10, 3.3), sharey=True)
for axes, (title, mask) in zip(panels, masks.items(), strict=True):
    _, mask_cache = scaled_dot_product_attention(x, other, other, mask)
    shown = mask_cache[-1][0, 0]
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
# A row that may see fewer keys spends its 1 on those. And under both masks the first two queries may see
# nothing at all. What should *they* get?
#
# ### The fully masked row
#
# The formula has no answer: $e^{-\infty} / \sum e^{-\infty}$ is $0 / 0$. Written down as it stands it gives
# NaN. One such row, at a position of padding that nobody will ever look at, is enough to destroy
# everything, because the backward *sums* over queries:


# %%
def naive_softmax(z, mask):
    """As in the formula, with −∞ and no further thought."""
    z = np.where(mask, z, -np.inf)
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


both = masks["both"]
z = x @ other.swapaxes(-1, -2) / 4
with np.errstate(invalid="ignore"):  # −∞ − (−∞)
    naive = naive_softmax(z, both)
naive_dz = softmax_backward(rng.standard_normal(z.shape), naive)
naive_dk = naive_dz.swapaxes(-1, -2) @ x
print(f"rows of NaN in the weights: {np.isnan(naive[0, 0]).any(-1).sum()} of 6")
print(f"rows of NaN in dK:          {np.isnan(naive_dk[0, 0]).any(-1).sum()} of 6")

# %% [markdown]
# A common way round is a large negative number instead of $-\infty$, say $-10^9$. Then there is no NaN,
# and instead an answer that is wrong in silence: if *all* scores are $-10^9$ they are all alike, and the
# row is the mean of everything it must not see, the future included:

# %%
a_large, _ = softmax(np.where(both, z, -1e9))
print("first row with -1e9:     ", a_large[0, 0, 0].round(3))
y_ours, ours_cache = scaled_dot_product_attention(x, other, other, both)
print("first row of the package:", ours_cache[-1][0, 0, 0])

# %% [markdown]
# The package **defines** it: who may see nothing gets nothing, weights 0 and output 0. The gradient
# follows from $dz = a \, (\dots)$: it is 0 as well. Look again at the softmax above: one `where` for the
# peak, one for the sum.

# %%
inputs = rng.standard_normal((3, 2, 1, 6, 4))  # two sequences, both with this mask
report = check_pair(
    scaled_dot_product_attention, scaled_dot_product_attention_backward, (*inputs, both)
)
assert report.right
print(report)
assert not y_ours[0, 0, :2].any()

# %% [markdown]
# ### Masking in the wrong place
#
# Two ways to apply a causal mask that look as good. The test of a mask is not its picture but its
# promise: **change the last key, and see whether the first query's answer moves.**


# %%
def masked_too_late(z, mask):
    return softmax(z)[0] * mask  # the sum it was divided by has the future in it


def masked_by_zero(z, mask):
    return softmax(np.where(mask, z, 0))[0]  # e⁰ is 1, not 0


def masked_before(z, mask):
    return softmax(z, mask)[0]


causal = causal_mask(ids)
changed = other.copy()
changed[..., -1, :] += 3 * x[..., 0, :]  # a future key that the first query would like to see
for weigh in (masked_too_late, masked_by_zero, masked_before):
    before, after = (
        weigh(x @ keys.swapaxes(-1, -2) / 4, causal) @ keys for keys in (other, changed)
    )
    print(
        f"{weigh.__name__:<16} first answer moves by {abs(after - before)[0, 0, 0].max():.3f}"
        f", sum of its weights {weigh(z, causal)[0, 0, 0].sum():.2f}"
    )
assert np.array_equal(before[0, 0, 0], after[0, 0, 0])  # masked before the softmax

# %% [markdown]
# ## 7 · Exercises
#
# Fill in `answers/ex08.py`, your copy of [lessons/exercises/ex08.py](exercises/ex08.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex08
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The
# solutions are in [lessons/solutions/ex08.py](solutions/ex08.py).
#
# 1. **`score_of_itself`** (5 min). Somebody saves a matrix and uses one for queries and keys:
#    $q_t = k_t$. What is then the score of a position with itself, in the mean, and its standard deviation?
#    Where will every position look at the start of training?
# 2. **`packed_mask`** (15 min). Instead of padding, short sentences can share a row, one after another. The
#    mask has to keep them apart.
# 3. **`biased_attention`** (30 min). A learned number for each pair of positions, added to the score: one
#    way to tell attention about distances. Its backward is one line, and one sum that is easy to forget.
# 4. **`lean_attention`** (60 min). The weights are the only array here that grows with $T \cdot S$. Show
#    that the backward can do without keeping them. *FlashAttention* (Dao and others, 2022) stands on this.

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
# | why $\sqrt{d_k}$ | $q \cdot k$ has variance $d_k$; saturated, the typical query has no gradient, a few have a large one |
# | masks | True where allowed; $-\infty$ before the softmax; a row with nothing allowed is 0, not NaN |
# | traps | the factor $1 / \sqrt{d_k}$ in the backward too; the row sum; a mask after the softmax |
#
# **Your own Transformer.** In `answers/own.py`, your copy of
# [lessons/exercises/own.py](exercises/own.py), you can now write `padding_mask`, `causal_mask`, and
# `scaled_dot_product_attention` with its backward; `minitransformer check own` says whether they are
# right.
#
# **Next:** [lesson 09](09_multi_head_attention.ipynb) makes queries, keys and values, and many heads at
# once.
