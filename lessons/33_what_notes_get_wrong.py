# %% [markdown]
# # 33 · What notes get wrong
#
# **You will** judge twenty-three claims about the Transformer, of the kind that stands in notes, first by a guess and
# then by a measurement of a few lines; and keep count of which of them are right, which are wrong, and which are right
# for another reason than the one that is given.
#
# | | |
# |---|---|
# | In the paper | sections 3.1 to 3.4 and 5.3 to 6.1, each named where it decides a claim |
# | In the package | `minitransformer/layers/`, `minitransformer/optim/`, `minitransformer/loss/cross_entropy.py` |
# | You need | the Transformer as a whole, and Adam; what a claim rests on is derived in the lesson named there |
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
from collections import Counter
from itertools import product

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, Transformer, TransformerConfig, accelerated, select_device
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
from minitransformer.data.text.batches import make_batches
from minitransformer.layers.additive_attention import additive_attention
from minitransformer.layers.attention import (
    multi_head_attention,
    scaled_dot_product_attention,
    scaled_dot_product_attention_weights,
)
from minitransformer.layers.convolution import convolution
from minitransformer.layers.dropout import dropout
from minitransformer.layers.feed_forward import feed_forward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.masks import causal_mask
from minitransformer.layers.relu import relu
from minitransformer.layers.sigmoid import sigmoid
from minitransformer.layers.softmax import softmax, softmax_backward
from minitransformer.loss.cross_entropy import cross_entropy
from minitransformer.optim.adam import adam_update
from minitransformer.optim.adamw import adamw_update
from minitransformer.optim.schedule import noam
from minitransformer.optim.sgd import momentum_update

use_style()
device = select_device("cpu")  # "cuda" runs the two models of the lesson on a GPU
rng = np.random.default_rng(33)

# %% [markdown]
# ## 1 · Guess, then measure
#
# Why measure what one can read? Because a wrong model of attention runs, too. Here is one that is wrong in two places:
# the mask comes after the softmax, and there is no root. No error is raised, all shapes are right, and the numbers look
# as numbers do. (B sentences, H heads, T queries, S keys, here as many; K is $d_k$, the width of a head.)

# %%
T, K = 6, 8
q, k, v = rng.standard_normal((3, 1, 1, T, K))  # of one sentence and one head
causal = causal_mask(np.ones((1, T), dtype=int))
y, cache = scaled_dot_product_attention(q, k, v, causal)
a = scaled_dot_product_attention_weights(cache)
wrong = softmax(q @ k.swapaxes(-1, -2))[0] * causal @ v
print("right, third word:", y[0, 0, 2].round(2))
print("wrong, third word:", wrong[0, 0, 2].round(2))
assert wrong.shape == y.shape
shape_table(
    {"B": 1, "H": 1, "T": T, "K": K},
    q=(q, "B H T K", "queries; keys k and values v have the same shape"),
    causal=(causal, "1 1 T T", "True where a query, in its row, may see a key, in its column"),
    a=(a, "B H T T", "weights; a row sums to 1"),
    y=(y, "B H T K", "a weighted mean of values for each query"),
)

# %% [markdown]
# So a sentence about attention can be wrong, and nothing contradicts it. Some of those below are right. Each section
# begins with its claims and a cell for **your guesses**: put `RIGHT`, `WRONG` or `OTHER` in the place of `None`, and
# run it, before you read on. A claim is `OTHER` if what it says holds, and the reason it gives does not. One that needs
# an assumption which it does not name is `WRONG`. Section 7 compares. If you only read, guess on paper.

# %%
RIGHT, WRONG, OTHER = "right", "wrong", "right, for another reason"
guesses, findings = {}, {}

# %% [markdown]
# ## 2 · Masks and the softmax
#
# | | claim |
# |---|---|
# | 1 | The causal mask is strict: a word must not see itself, as it would then know what it is to say. |
# | 2 | Forbidden scores are set to −∞, or to 0, before the exponential or after it. It comes to the same. |
# | 3 | The sigmoid of each score could stand in the softmax's place. It is between 0 and 1, too. |
# | 4 | One divides by $\sqrt{d_k}$, as products of wide vectors become so large that they overflow. |
# | 5 | Once divided by $\sqrt{d_k}$, scores have variance 1. |

# %%
guesses |= {1: None, 2: None, 3: None, 4: None, 5: None}  # RIGHT, WRONG or OTHER

# %% [markdown]
# **Claim 1.** What is left for the first query under a strict mask? And which scores for the next word move, if a word
# that the decoder is shown is another one?

# %%
strict = causal & ~np.eye(T, dtype=bool)
for name, mask in (("with itself", causal), ("strict", strict)):
    y, cache = scaled_dot_product_attention(q, k, v, mask)
    sums = scaled_dot_product_attention_weights(cache).sum(axis=-1)[0, 0]
    print(f"{name:<12} sums of the weights {sums.round(2)}, first output {y[0, 0, 0, :3].round(2)}")
assert a[0, 0, 0, 0] == 1
assert not y[0, 0, 0].any()
assert np.isclose(sums[1:], 1).all()

model = Transformer(TransformerConfig.preset("toy", 20, dropout=0.0), seed=33, device=device)
source, shown = np.array([[5, 6, 7]]), np.array([[1, 8, 9, 10]])  # 1 begins; to say: 8, 9, 10, end
changed = np.where(shown == 9, 11, shown)
before, after = (to_host(model.forward(source, target)[0])[0] for target in (shown, changed))
moved = abs(after - before).max(axis=-1) > 1e-5
print("scores move at the positions that say 8, 9, 10, end:", moved)
assert moved.tolist() == [False, False, True, True]
findings[1] = "a causal mask is strict", WRONG

# %% [markdown]
# **Wrong.** The decoder is shown the sentence shifted by one (section 3.1), so at each position stands the word
# *before* the one that is to be said. The scores that decide on 9 do not know 9. A position sees those "up to and
# including" itself (section 3.2.3). What a strict mask forbids besides need not be forbidden, and the residual carries
# a word's own vector past any mask. But the first position has nothing left to see: its softmax is 0/0, which the
# package defines as 0. [Lesson 08](08_attention.ipynb), section 6
#
# **Claim 2.** Three places, two values; then a score of 800:


# %%
def exponentials(z):
    return np.exp(z - z.max(axis=-1, keepdims=True))


def shares(e):
    return e / e.sum(axis=-1, keepdims=True)


def six_ways(z, allowed):
    e = exponentials(z)
    with np.errstate(invalid="ignore"):
        return {
            "−∞ for the score": shares(exponentials(np.where(allowed, z, -np.inf))),
            "0 for the score": shares(exponentials(np.where(allowed, z, 0))),
            "−∞ for the exponential": shares(np.where(allowed, e, -np.inf)),
            "0 for the exponential": shares(np.where(allowed, e, 0)),
            "−∞ for the weight": np.where(allowed, shares(e), -np.inf),
            "0 for the weight": np.where(allowed, shares(e), 0),
        }


scores, allowed = (q @ k.swapaxes(-1, -2) / np.sqrt(K))[0, 0], causal[0, 0]
proper = []
for name, weights in six_ways(scores, allowed).items():
    total, future = weights[0].sum(), weights[~allowed].max()
    proper += [name] if np.allclose(weights, a[0, 0]) else []
    print(f"{name:<24} first row sums to {total:4.2f}, largest on the future {future:4.2f}")
print("as they should be:", ", ".join(proper))
assert proper == ["−∞ for the score", "0 for the exponential"]

for key, kind, expected in ((0, "allowed", [1, 1]), (-1, "forbidden", [1, np.nan])):
    loud = scores.copy()
    loud[0, key] = 800.0
    far = [six_ways(loud, allowed)[name][0, 0] for name in proper]
    print(f"{kind} score of 800: {proper[0]} {far[0]:.0f}, {proper[1]} {far[1]:.0f}")
    assert np.array_equal(far, expected, equal_nan=True)
findings[2] = "−∞ or 0, before or after, is the same", WRONG

# %% [markdown]
# **Wrong.** Two of six are right. A score of 0 is a score like any other, and gets a weight. An exponential of −∞ makes
# the sum −∞: NaN for what is forbidden, 0 for the rest. A weight that is set to 0 is missing in its row, and one of −∞
# makes the output infinite, or NaN.
# The two that are right, −∞ *before* the exponential and 0 *between* it and the sum, are equal on paper alone. If the
# largest score is a forbidden one, far above, all others underflow when it is subtracted, and 0/0 is left. So −∞ goes
# in first, and the largest is looked for after that. [Lesson 08](08_attention.ipynb), section 6
#
# **Claim 3.** How much weight does a query spend in all, on 4 to 1024 random keys? And what do the other keys notice
# when one score grows by 3?

# %%
WEIGH = {
    "softmax": lambda z: softmax(z)[0],
    "sigmoid": lambda z: sigmoid(z)[0],
    "sigmoid of z − log S": lambda z: sigmoid(z - np.log(z.shape[-1]))[0],
}
lengths = 4 ** np.arange(1, 6)
drawn = {S: rng.standard_normal((2000, S)) for S in lengths}
spent = {name: [f(drawn[S]).sum(axis=-1).mean() for S in lengths] for name, f in WEIGH.items()}
louder = drawn[16] + 3 * (np.arange(16) == 0)
for name, weigh in WEIGH.items():
    noticed = (weigh(louder) - weigh(drawn[16]))[:, 1:].sum(axis=-1).mean()
    print(f"{name:<20} the 15 others' weights change by {noticed:.2f} together")
    assert (noticed == 0) == (name != "softmax")
assert np.allclose(spent["softmax"], 1)
assert np.allclose(spent["sigmoid"], lengths / 2, rtol=0.04)
assert 1.5 < max(spent["sigmoid of z − log S"]) < np.sqrt(np.e)
findings[3] = "a sigmoid in the softmax's place", WRONG

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.8))
for (name, sums), colour, style in zip(
    spent.items(), (BLUE, VERMILION, GREEN), ("o-", "s--", "^-."), strict=True
):
    axes.loglog(lengths, sums, style, color=colour, label=name)
axes.plot(lengths, lengths / 2, "-", color=BLACK, lw=0.9, label="S / 2")
axes.set(xlabel="keys, S", ylabel="sum of a query's weights, mean")
axes.set_xticks(lengths, labels=map(str, lengths))
axes.minorticks_off()
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# **Wrong** as it stands. Weights no longer sum to 1, so the output is no mean of the values. And keys no longer
# compete: what one gains none loses. The first can be mended: with $\log S$ taken from each score, the green line, the
# sum stays below $\sqrt e \approx 1.65$. Trained like that, it has matched the softmax (Ramapuram and others 2024).
#
# **Claim 4.** Products of random queries and keys. Do they overflow? How much weight has the key that the typical query
# (the median) likes best, with the root and without? And how large a gradient reaches that query?

# %%
KEYS, typical = 16, {}
for d_k in (64, 512):
    query, key = rng.standard_normal((1000, 1, d_k)), rng.standard_normal((1000, KEYS, d_k))
    dots, da = query @ key.swapaxes(-1, -2), rng.standard_normal((1000, 1, KEYS))
    print(f"d_k {d_k}: deviation of q·k {dots.std():4.1f}, largest {dots.max():5.1f}")
    for name, factor in (("with the root", 1 / np.sqrt(d_k)), ("without", 1.0)):
        weights, softmax_cache = softmax(factor * dots)
        dq = factor * softmax_backward(da, softmax_cache) @ key  # (1000, 1, d_k)
        weight, size = np.median(weights.max(axis=-1)), np.median(np.linalg.norm(dq, axis=-1))
        typical[d_k, name] = weight, size
        print(f"    {name:<13} largest weight {weight:.2f}, gradient at the query {size:.3f}")
print(f"largest number even in float16: {np.finfo(np.float16).max}")
assert np.isfinite(softmax(1e4 * dots.astype(np.float32))[0]).all()
assert np.allclose(typical[64, "with the root"], typical[512, "with the root"], rtol=0.1)
assert typical[64, "without"][0] > 0.9
assert typical[64, "without"][1] > typical[64, "with the root"][1]
assert typical[512, "without"][1] < typical[512, "with the root"][1] / 10
findings[4] = "√d_k keeps products from overflowing", OTHER

# %% [markdown]
# **Right, for another reason.** The root is needed. But nothing is near an overflow, and a softmax subtracts the
# largest score before it exponentiates. $\sqrt{d_k}$ is the size of a typical product, its standard deviation. Without
# the root the typical query has all but chosen before anything is learned. What still reaches it depends on the width:
# for 64 even more than with the root, which divides the gradient, too; for 512 next to nothing (the paper, in section
# 3.2.1, speaks of large $d_k$). With the root the width no longer matters. [Lesson 08](08_attention.ipynb), section 5
#
# **Claim 5.** Variances *after* the division, of vectors that keep to footnote 4 of the paper, then of some that each
# break one of its assumptions:

# %%
d_k = 64
queries, keys, common = (rng.standard_normal((20_000, n)) for n in (d_k, d_k, 1))
PAIRS_OF = {
    "independent, mean 0, variance 1": (queries, keys),
    "a mean of 1 in all features": (queries + 1, keys + 1),
    "the key three times as long": (queries, 3 * keys),
    "features that are all alike": (np.tile(common, d_k), np.tile(keys[:, :1], d_k)),
    "the key is the query": (queries, queries),
}
variances = {}
for name, (query, key) in PAIRS_OF.items():
    scores = (query * key).sum(axis=-1) / np.sqrt(d_k)
    variances[name] = scores.var()
    print(f"{name:<32} variance {variances[name]:5.1f}, mean {scores.mean().round(1) + 0.0:.1f}")
assert np.allclose(list(variances.values()), [1, 3, 9, 64, 2], rtol=0.1)
findings[5] = "then scores have variance 1", WRONG

# %% [markdown]
# **Wrong** without its assumption: features that are independent, with mean 0 and variance 1. When training begins that
# is about so. What is learned may be anything: by the lengths of queries and keys a model says how sharply it looks.
#
# ## 3 · Widths and heads
#
# | | claim |
# |---|---|
# | 6 | In the paper's model *base*, $d_k$ is 512: each head compares vectors of 512 numbers. |
# | 7 | One dimension of an embedding stands for one property of the word. |
# | 8 | The value of a word says how similar it is to the query. |
# | 9 | Heads side by side, times $W^O$, is the same as a sum of what each head says for itself. |
# | 10 | Encoder and decoder meet in one latent space, so that attention between them can compare. |
# | 11 | Dot products are faster than additive attention, as their complexity is lower. |

# %%
guesses |= {6: None, 7: None, 8: None, 9: None, 10: None, 11: None}

# %% [markdown]
# **Claim 6.** How wide is a head of *base*? And how much of a word can its score depend on?

# %%
base = TransformerConfig.preset("base", 37_000)
width = base.d_model // base.num_heads
w_q, w_k = rng.standard_normal((2, base.d_model, base.d_model))
compares = w_q[:, :width] @ w_k[:, :width].T  # of head 0: x_t · compares · x_s is its score
rank = np.linalg.matrix_rank(compares)
print(f"d_model {base.d_model}, {base.num_heads} heads, d_k {width}, rank of what compares {rank}")
assert rank == width == 64
findings[6] = "d_k is 512", WRONG

# %% [markdown]
# **Wrong.** $d_k = d_{\text{model}} / h = 512 / 8 = 64$ (section 3.2.2). A head is *given* all 512 numbers of a word,
# and looks at 64 combinations of them: the matrix between two words has rank 64. The root in the score is 8, not 22.6.
# [Lesson 09](09_multi_head_attention.ipynb)
#
# **Claim 7.** Turn the space of the embeddings by any rotation, and all that reads it or writes to it along with it.
# Which layers notice?

# %%
D, H = 24, 3
x, memory = rng.standard_normal((2, 1, T, D))
w_q, w_k, w_v, w_o = rng.standard_normal((4, D, D)) / np.sqrt(D)
turn, _ = np.linalg.qr(rng.standard_normal((D, D)))
w_1, b_1, w_2, b_2 = (rng.standard_normal(shape) for shape in ((D, 40), 40, (40, D), D))
y, _ = multi_head_attention(x, x, x, w_q, w_k, w_v, w_o, H)
fed, _ = feed_forward(x, w_1, b_1, w_2, b_2)
turned = x @ turn
turned_y, _ = multi_head_attention(
    turned, turned, turned, turn.T @ w_q, turn.T @ w_k, turn.T @ w_v, w_o @ turn, H
)
turned_fed, _ = feed_forward(turned, turn.T @ w_1, b_1, w_2 @ turn, b_2 @ turn)
for name, off in (("attention", turned_y - y @ turn), ("feed-forward", turned_fed - fed @ turn)):
    print(f"{name}, any rotation: differs by {abs(off).max():.0e}")
    assert np.allclose(off, 0)

frame, _ = np.linalg.qr(np.column_stack([np.ones(D), rng.standard_normal((D, D - 1))]))
inner, _ = np.linalg.qr(rng.standard_normal((D - 1, D - 1)))
along, across = frame[:, :1], frame[:, 1:]  # (1, …, 1), and what is at right angles to it
about_ones = along @ along.T + across @ inner @ across.T
apart = {}
for name, rotation in (("any rotation", turn), ("one about (1, …, 1)", about_ones)):
    before, after = (layer_norm(rows, np.ones(D), np.zeros(D))[0] for rows in (x, x @ rotation))
    apart[name] = abs(after - before @ rotation).max()
    print(f"LayerNorm, {name}: differs by {apart[name]:.0e}")
assert apart["any rotation"] > 0.1 > 1e-9 > apart["one about (1, …, 1)"]
findings[7] = "one dimension, one property", WRONG

# %% [markdown]
# **Wrong.** Attention and the feed-forward network read their input by matrices alone. Turn rows by $R$, matrices that
# read by $R^\top$ in front and those that write by $R$ behind: the model says the same, and no single dimension now
# holds what dimension 3 held. These layers give no axis a privilege; a property can be a *direction*. LayerNorm singles
# out $(1, \dots, 1)$, by its mean, and the axes, once its gains differ; the ReLU the axes of the *hidden* layer; Adam
# steps along the axes. [Lesson 05](05_tokens_and_embeddings.ipynb), [lesson 16](16_words_and_errors.ipynb)
#
# **Claim 8.** Give the words other values; then other keys:

# %%
for name, keys, values in (("other values", k, 5 * v + 1), ("other keys", k[:, :, ::-1], v)):
    there, cache = scaled_dot_product_attention(q, keys, values, causal)
    weights = scaled_dot_product_attention_weights(cache)
    print(f"{name}: weights move by {abs(weights - a).max():.2f}")
    assert np.array_equal(weights, a) == (name == "other values")
    assert np.allclose(there, 5 * (a @ v) + 1) == (name == "other values")
findings[8] = "the value says how similar", WRONG

# %% [markdown]
# **Wrong.** Similarity is the score, $q \cdot k / \sqrt{d_k}$, of query and *key*. The value is what is handed out, at
# that weight: five times the values and 1 more, five times the output and 1 more, and no weight moves.
#
# **Claim 9.** Each head with its own columns of $W^Q, W^K, W^V$ and its own *rows* of $W^O$:

# %%
total = 0
for h in range(H):
    own = slice(h * D // H, (h + 1) * D // H)
    parts = (x @ w[:, own] for w in (w_q, w_k, w_v))
    head, _ = scaled_dot_product_attention(*(part[:, None] for part in parts))
    total = total + head[:, 0] @ w_o[own]
print(f"sum of {H} heads: differs by {abs(total - y).max():.0e}")
assert np.allclose(total, y)
findings[9] = "side by side, times W^O, is a sum", RIGHT

# %% [markdown]
# **Right.** Blocks side by side, times blocks one above the other, is the sum of the products. So "concatenate, then
# multiply" (section 3.2.2) and "each head adds its part to the stream" are one formula, read in two ways.
# [Lesson 09](09_multi_head_attention.ipynb)
#
# **Claim 10.** Send the encoder's output through any map that can be undone, even to another width, and let the
# cross-attention's $W^K$ and $W^V$ undo it:

# %%
y, _ = multi_head_attention(x, memory, memory, w_q, w_k, w_v, w_o, H)
bend = rng.standard_normal((D, 40))
back = np.linalg.pinv(bend)  # bend @ back is the identity
elsewhere = memory @ bend  # (1, T, 40)
same, _ = multi_head_attention(x, elsewhere, elsewhere, w_q, back @ w_k, back @ w_v, w_o, H)
print(f"rows of {D}, then {elsewhere.shape[-1]} numbers: differs by {abs(same - y).max():.0e}")
assert np.allclose(same, y)
findings[10] = "one latent space for both", WRONG

# %% [markdown]
# **Wrong.** Cross-attention is the only door between the two (section 3.2.3), and has matrices of its own for what
# comes through it. Whatever space the encoder writes in, they can translate, and no other term ties the two. The $d_k$
# dimensions of a head, where queries and keys are compared, *are* one space for both; but these matrices lead into it,
# and the two need not meet before. They also share the table of embeddings, at their *inputs* (section 3.4).
#
# **Claim 11.** A query meets a key in $d$ products and sums, or (with as many hidden features) in $d$ sums, tanh,
# products and sums. Counted by the sizes of arrays, for a length and a width, twice the length, and twice the width:

# %%
print("   S    d   operations: q·k   additive   numbers kept: q·k   additive")
for S, d in ((20, 64), (40, 64), (20, 128)):
    query, key = rng.standard_normal((2, 1, S, d))
    _, (hidden, *_) = additive_attention(query, key, key, np.ones(d))  # (1, S, S, d), kept
    _, cache = scaled_dot_product_attention(query[None], key[None], key[None])
    kept = scaled_dot_product_attention_weights(cache).size
    print(f"{S:4} {d:4} {2 * kept * d:17,} {4 * hidden.size:10,} {kept:19,} {hidden.size:10,}")
    assert hidden.size == d * kept == S**2 * d
findings[11] = "dot products: lower complexity", OTHER

# %% [markdown]
# **Right, for another reason.** That dot products are faster is the paper's word (section 3.2.1: "in practice"), and it
# adds that the two are "similar in theoretical complexity": both grow with $S^2 d$. One is a single matrix product,
# which processors are built for. The other has $S^2 d$ hidden numbers to be written, read and kept, where the product
# leaves $S^2$. [Lesson 25](25_one_vector_or_attention.ipynb)
#
# ## 4 · What a layer is
#
# | | claim |
# |---|---|
# | 12 | The feed-forward network is two convolutions of width 1. |
# | 13 | Layer normalisation takes its mean and variance over the whole sentence. |
# | 14 | $\text{LayerNorm}(x + f(x))$ and $x + f(\text{LayerNorm}(x))$ are two ways to write one thing. |

# %%
guesses |= {12: None, 13: None, 14: None}

# %% [markdown]
# **Claim 12.** The package's convolution knows nothing of feed-forward networks. Can it be one?

# %%
source_of(convolution)

# %%
hidden, _ = relu(convolution(x, w_1[None], b_1)[0])  # a kernel (1, D, 40): one tap
convolved, _ = convolution(hidden, w_2[None], b_2)
print(f"they differ by {abs(convolved - fed).max():.0e}")
assert np.allclose(convolved, fed)
findings[12] = "feed-forward is convolution of width 1", RIGHT

# %% [markdown]
# **Right**, and section 3.3 says it. A window of one position is that position, and a convolution is a linear map of
# windows. [Lesson 20](20_convolution.ipynb)
#
# **Claim 13.** If it did, the gradient would tell. A loss on one position: does it depend on inputs after it? First the
# package's `layer_norm` is given the sentence as it is, (1, T, D), then as one row of T·D numbers:


# %%
def share_of_future(shape):
    """Largest gradient at an input after the loss's position, relative to the largest of all."""
    _, cache = layer_norm(x.reshape(shape), np.ones(shape[-1]), np.zeros(shape[-1]))
    sizes = np.zeros((T, T))  # of a loss on each output (row), at each input (column)
    for t in range(T):
        dy = np.zeros((T, D))
        dy[t] = np.arange(D)  # not all alike: a mean that is subtracted lets no constant through
        dx, _, _ = layer_norm_backward(dy.reshape(shape), cache)
        sizes[t] = np.linalg.norm(dx.reshape(T, D), axis=-1)
    return np.triu(sizes, 1).max() / sizes.max()


by_word, by_sentence = share_of_future((1, T, D)), share_of_future((1, 1, T * D))
print(f"largest gradient at a future input: {by_word:.2f}, over the sentence {by_sentence:.2f}")
assert by_word == 0
assert by_sentence > 0.1
findings[13] = "LayerNorm is over the sentence", WRONG

# %% [markdown]
# **Wrong.** Mean and variance are those of *one word's* $D$ features. Over the sentence each output would depend on
# each input, on the words that are still to be said as well, and no mask in attention could help. (In a picture nothing
# is still to be said, so there one may take the whole sample.) [Lesson 07](07_layer_norm.ipynb)
#
# **Claim 14.** Twelve blocks $f$, each a random matrix that keeps the variance; then blocks that do nothing, $f = 0$:


# %%
def plain_norm(rows):
    return layer_norm(rows, np.ones(rows.shape[-1]), np.zeros(rows.shape[-1]))[0]


def through(norm, scale, blocks=12):
    maps = np.random.default_rng(14).standard_normal((blocks, 256, 256)) * scale / np.sqrt(256)
    start = stream = np.random.default_rng(15).standard_normal((64, 256)) * 2
    for f in maps:
        if norm == "post":
            stream = plain_norm(stream + stream @ f)
        else:
            stream = stream + plain_norm(stream) @ f
    return start, stream


for norm, deviation in (("post", 1.0), ("pre", np.sqrt(4 + 12))):
    start, stream = through(norm, 1.0)
    same = np.allclose(*through(norm, 0.0))
    print(f"{norm}-norm: deviation {stream.std():.2f}; with f = 0 what went in comes out: {same}")
    assert abs(stream.std() / deviation - 1) < 0.05
    assert same == (norm == "pre")
findings[14] = "norm before or after is one thing", WRONG

# %% [markdown]
# **Wrong.** After the sum, LayerNorm sets the stream back to variance 1 in each block. Before the sublayer it leaves
# the stream alone: the identity is kept, and each block adds its variance (the stream began with 4, and twelve blocks
# added 1 each). One LayerNorm more is needed at the end. Deep stacks train differently
# ([lesson 10](10_residual_connections.ipynb)). **The authors' code has both**: tensor2tensor's `transformer_base_v1`
# has LayerNorm after the sum, as sections 3.1 and 5.4, and its settings since `_v2` have it *before* the sublayer.
# `transformer_base` follows the later ones. So look which one a note follows.
#
# ## 5 · Training
#
# | | claim |
# |---|---|
# | 15 | Dropout with $p = 0.1$ adds noise of about ±10 %. |
# | 16 | Dropout is L2 regularisation in another form. |
# | 17 | A model that has learned everything has a loss near 0 and a perplexity near 1, with label smoothing, too. |
# | 18 | The rate is set by $d_{\text{model}}^{-0.5}$ and the step, so there is nothing to tune. |
# | 19 | Adam adapts the rate to the gradient: where gradients are large, steps are. |
# | 20 | Weight decay is L2 regularisation in another form. |

# %%
guesses |= {15: None, 16: None, 17: None, 18: None, 19: None, 20: None}

# %% [markdown]
# **Claim 15.** A million ones go through the package's dropout:

# %%
kept, _ = dropout(np.ones(1_000_000), 0.1, rng)
print(f"values {np.unique(kept).round(3)}, mean {kept.mean():.3f}, deviation {kept.std():.3f}")
assert np.isclose(kept.max(), 1 / 0.9)
assert abs(kept.std() - np.sqrt(0.1 / 0.9)) < 0.002
findings[15] = "dropout is noise of ±10 %", WRONG

# %% [markdown]
# **Wrong.** An entry is lost, or multiplied by $1 / (1 - p) = 1.11$; nothing else. The mean stays. The variance is
# $x^2 p / (1 - p)$, so the deviation is a *third* of the entry at $p = 0.1$, and all of it at $p = 0.5$.
# [Lesson 12](12_learning.ipynb), section 5
#
# **Claim 16.** A linear model $x \cdot w$ with five features, of which the last is three times as large. The mean of
# its squared error over all $2^5$ masks, each with its probability, is exact:

# %%
rows = rng.standard_normal((30, 5)) * [1, 1, 1, 1, 3]
targets, w = rng.standard_normal(30), rng.standard_normal(5)
p, expected = 0.2, 0.0
for keep in product((0, 1), repeat=5):
    probability = np.prod(np.where(keep, 1 - p, p))
    expected += probability * ((rows * keep / (1 - p) @ w - targets) ** 2).mean()
plain = ((rows @ w - targets) ** 2).mean()
strengths = p / (1 - p) * (rows**2).mean(axis=0)  # of w_j²
ridge = strengths @ w**2
print(f"error {plain:.3f}, under dropout {expected:.3f}, error and ridge {plain + ridge:.3f}")
print("strength of the ridge on each weight:", strengths.round(2))
assert np.isclose(expected, plain + ridge)
assert strengths[4] > 4 * strengths[:4].max()
findings[16] = "dropout is L2", WRONG

# %% [markdown]
# **Wrong**, and near the truth. In a *linear* model, in the mean over masks, dropout adds
#
# $$
# \frac{p}{1 - p} \sum_j w_j^2 \; \overline{x_j^2} ,
# $$
#
# the variance of claim 15, summed. That is a ridge *weighted by the features*: large ones are held back more, and what
# is punished is $w_j x_j$, whatever the units of $x_j$. L2 holds all weights alike. Behind a ReLU or a softmax the sum
# is no longer exact. (Wager, Wang and Liang 2013, *Dropout Training as Adaptive Regularization*.) An exercise finds the
# weights that it leads to.
#
# **Claim 17.** The paper's ε of 0.1 and some 37,000 tokens. The loss is least where the model says the target, $p = q$.
# There are two conventions for $q$: ε is shared by *all* tokens (Szegedy and others 2016, and this package), or by all
# *but* the right one (tensor2tensor):

# %%
V, epsilon = 37_000, 0.1
for name, true, each in (
    ("by all others", 1 - epsilon, epsilon / (V - 1)),
    ("shared by all", 1 - epsilon + epsilon / V, epsilon / V),
):
    q = np.where(np.arange(V) == 7, true, each)
    floor, others = -(q * np.log(q)).sum(), -(V - 1) * each * np.log(each)
    print(f"{name}: q of the right one {true:.7f}, perplexity {1 / true:.4f}", end=", ")
    print(f"loss {floor:.3f}, of which for the others {others:.2f}")
    assert abs(floor - 1.377) < 0.001
    assert others > 0.9 * floor
(loss, nll), _ = cross_entropy(np.log(q)[None], np.array([7]), epsilon)
assert np.isclose(loss, floor)
assert np.isclose(np.exp(nll), 1 / q[7])
findings[17] = "then loss 0 and perplexity 1", WRONG

# %% [markdown]
# **Wrong** of the loss: it cannot fall below the entropy of its target, 1.38 here, most of which is paid for tokens
# that are wrong. (tensor2tensor subtracts this entropy, and *its* loss does go to 0: an assumption not named.) The
# perplexity is then $1 / (1 - \varepsilon + \varepsilon / V) = 1.11$: near 1, and the price which section 5.4 names.
# The two conventions differ by $\varepsilon / V$, too little to see with 37,000 tokens (with $V = 2$ it is half of ε).
# [Lesson 04](04_softmax_cross_entropy.ipynb)
#
# **Claim 18.** What rate does the formula give? And does that rate suit? A small model learns 24 words by heart,
# spelled backwards, with the formula's rate and with multiples of it:

# %%
for d_model, warmup in ((512, 4000), (512, 400), (32, 4000), (32, 20)):
    peak = noam(warmup, d_model, warmup)
    print(f"width {d_model:3}, warm-up {warmup:4}: largest rate {peak:.4f}")

letters = np.random.default_rng(18)
words = letters.integers(4, 24, (24, 6)).tolist()
batch = make_batches([(word, word[::-1]) for word in words], max_tokens=10**6)[0]
WARMUP, STEPS, FACTORS = 20, 80, (0.03, 0.1, 0.3, 1, 3, 10)


def loss_at_the_end(factor, seed):
    sizes = dict(d_model=32, num_heads=4, d_ff=64, num_encoder_layers=1, num_decoder_layers=1)
    config = TransformerConfig.preset("toy", 24, dropout=0.0, norm="post", **sizes)
    model = Transformer(config, seed=seed, device=device)
    adam = Adam(model.flat)
    for step in range(1, STEPS + 1):
        model.zero_grad()
        (loss, _), cache = model.loss(batch)
        model.loss_backward(1.0, cache)
        adam.step(factor * noam(step, 32, WARMUP))
    return float(loss)


with accelerated():  # the same results sooner
    ends = np.array([[loss_at_the_end(factor, seed) for factor in FACTORS] for seed in (0, 1)])
best = FACTORS[ends.mean(axis=0).argmin()]
print(f"the lowest loss is that with {best} times the formula's rate")
assert best < 1
assert ends[:, 2].max() < ends[:, 3].min() < 1 < ends[:, [0, 4, 5]].min()
findings[18] = "nothing to tune in the rate", WRONG

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.8))
for seed, colour, style in ((0, BLUE, "o-"), (1, VERMILION, "s--")):
    axes.loglog(FACTORS, ends[seed], style, color=colour, lw=1.2, label=f"seed {seed}")
axes.axvline(1, color=BLACK, lw=0.9)
axes.text(1.06, 0.012, "the formula", fontsize=9.5)
axes.set(xlabel="rate, relative to the formula", ylabel=f"loss in step {STEPS} (nats a token)")
axes.set_xticks(FACTORS, labels=map(str, FACTORS))
axes.minorticks_off()
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# **Wrong.** Section 5.3's formula has a second number that is chosen, the warm-up $w$: its largest rate is
# $1 / \sqrt{d_{\text{model}} \, w}$. And a factor of 1 in front is a choice as well. Here a third of the formula's rate
# is better, and three times as much spoils the training. The authors' tensor2tensor has a factor of 2 and a warm-up of
# 8,000 in a later version of its settings, `_v3`. [Lesson 12](12_learning.ipynb), section 4
#
# **Claim 19.** Adam moves a parameter by $\eta \, \hat m / (\sqrt{\hat v} + \epsilon)$: η is the rate, $\hat m$ a
# running mean of its gradients, $\hat v$ one of their squares. Six parameters, with gradients that are small or large,
# steady or of changing sign, or 1 for forty steps and then of another size. Their moves in the 50th step, in units of
# η; then with all gradients a thousand times as large:


# %%
def moves(gradients):
    """The last step of Adam, in units of η, for gradients (steps, parameters)."""
    data, m, v = np.zeros((3, gradients.shape[1]))
    for t, grad in enumerate(gradients, 1):
        before = data.copy()
        adam_update(data, grad, m, v, 1.0, t, 0.9, 0.98, 1e-9)
    return data - before


steady, signs, later = np.ones(50), (-1.0) ** np.arange(50), np.arange(50) >= 40
gradients = [0.001 * steady, 1000 * steady, 0.001 * signs, 1000 * signs]
gradients = np.stack([*gradients, np.where(later, 0.1, 1), np.where(later, 10, 1)], axis=1)
moved = moves(gradients)
print("steady 0.001, steady 1000, changing 0.001, changing 1000:", moved[:4].round(3))
print("1 and then 0.1, 1 and then 10:", moved[4:].round(3))
assert np.allclose(moves(1000 * gradients), moved, atol=1e-5)
assert np.allclose(abs(moved[:4]), [1, 1, 0.1 / 1.9, 0.1 / 1.9], atol=0.005)
assert abs(moved[4]) < 0.6 < 1.2 < abs(moved[5])
findings[19] = "Adam: large gradients, large steps", WRONG

# %% [markdown]
# **Wrong.** The size of *all* gradients of a parameter cancels: it stands in numerator and denominator. Against its own
# recent ones a size counts, for a while. And Adam adapts to how much they agree: where they do, it moves by η; where
# they change sign, by little. It does not adapt η: the schedule does. [Lesson 12](12_learning.ipynb), section 2
#
# **Claim 20.** One step each for parameters θ, with decay of strength λ: as a term λθ of the gradient (L2), or as a
# factor $1 - \eta \lambda$ of θ beside the step. First for gradient descent, then for Adam:

# %%
theta, g, rate, decay = np.array([1.0, 1.0, -2.0]), np.array([0.01, 100.0, 0.01]), 0.1, 0.5
after = {}
for name, gradient, factor in (("L2", g + decay * theta, 1), ("decay", g, 1 - rate * decay)):
    after["descent", name] = theta * factor
    momentum_update(after["descent", name], gradient, np.zeros(3), rate, 0.0)
    after["Adam", name] = theta * factor
    adam_update(after["Adam", name], gradient, *np.zeros((2, 3)), rate, 1, 0.9, 0.98, 1e-9)
for (optimizer, name), data in after.items():
    print(f"{optimizer:<8} {name:<6} {data.round(3)}")
assert np.allclose(after["descent", "L2"], after["descent", "decay"])
assert np.allclose(after["Adam", "L2"], theta - rate * np.sign(g + decay * theta))
of_package = theta.copy()
adamw_update(of_package, g, *np.zeros((2, 3)), rate, 1, 0.9, 0.98, 1e-9, decay)
assert np.allclose(of_package, after["Adam", "decay"])
findings[20] = "weight decay is L2", WRONG

# %% [markdown]
# **Wrong**, except for plain gradient descent, where the two are one. Adam divides λθ by $\sqrt{\hat v}$, as it does
# the gradient it was added to. In the first step every weight moves by η, and λθ can do no more than turn the sign, as
# for the third. AdamW takes the decay past the fraction (Loshchilov and Hutter 2019). The paper's recipe has neither.
# [Lesson 27](27_since_2017.ipynb), section 8
#
# ## 6 · Scores
#
# | | claim |
# |---|---|
# | 21 | On a GPU, a Transformer trains faster than a recurrent network, because its layers have less to compute. |
# | 22 | If BLEU did not clip its counts, *the the the the the* could have the unigram precision of the best translation. |
# | 23 | Whether the full stop counts as a word makes no difference that one would see in BLEU. |

# %%
guesses |= {21: None, 22: None, 23: None}

# %% [markdown]
# **Claim 21.** Parameters of a layer, its multiply-adds for a sentence of $n$ words, forward, and how many of its steps
# have to wait for each other:

# %%
n, d = 25, 512
layers = {  # parameters, each used for every word; what else grows with n²; steps that wait
    "GRU": (3 * 2 * d**2, 0, n),  # two gates and a candidate, of input and state
    "attention, four projections": (4 * d**2, 2 * n**2 * d, 1),
    "and its feed-forward network": (8 * d**2, 0, 1),
}
for name, (weights, more, waits) in layers.items():
    print(f"{name:<29} {weights / 1e6:.1f} million parameters", end=", ")
    print(f"{(n * weights + more) / 1e6:4.1f} million operations, one after another: {waits}")
gru, attention, network = (n * weights + more for weights, more, _ in layers.values())
ratio = (attention + network) / gru
print(f"a Transformer's layer, twice the parameters: {ratio:.2f} times the work of a GRU's")
assert attention < gru
assert abs(ratio - 2) < 0.05
findings[21] = "faster, as there is less to compute", OTHER

# %% [markdown]
# **Right, for another reason.** This one holds for attention alone: it has less to compute where $n \lt d$, as the
# paper (section 4, table 1) and [lesson 21](21_why_self_attention.ipynb) say. With its feed-forward network the layer
# has twice the work of a GRU's, and twice the parameters: at equal parameters there is about as much to compute. But a
# GRU has $n$ steps that wait for each other, and in a Transformer's layer no word waits for the one before: that fills
# a processor which does thousands of things at once. Without one the gain is gone, and "faster" needs a unit:
#
# | on two CPU cores | a step of training | ten epochs of the same batches: BLEU, greedy |
# |---|---|---|
# | GRU with additive attention, 7.4 million | 0.59 s | 39.4 |
# | Transformer, 7.6 million | 0.62 s | 38.1 |
#
# (Multi30k, one seed each: `python benchmarks/ladder.py`, in `benchmarks/results/ladder.json` and lesson 21.) Per step
# they are alike, so per epoch too, and *to a score* the recurrent one is not behind after ten epochs. (With 36 the
# Transformer has 41.5.) The paper counts operations up to a score (table 2, English to German): $3.3 \cdot 10^{18}$ for
# *base*, fewer than the $2.3 \cdot 10^{19}$ of GNMT + RL, which is recurrent. All are honest, if one says which.
#
# **Claim 22.** A precision: n-grams of the translation that are in the reference, over all n-grams of the translation.
# Clipped, each counts at most as often as it stands in the reference:


# %%
def grams(text, n):
    words = text.split()
    return Counter(zip(*(words[i:] for i in range(n)), strict=False))


def precision(said, wanted, n, clipped=True):
    ours, theirs = grams(said, n), grams(wanted, n)
    hits = ours & theirs if clipped else Counter({g: c for g, c in ours.items() if g in theirs})
    return hits.total() / ours.total()


REFERENCE = "the dog sees the cat"
print(f"precisions for n = 1, 2, with the reference: {REFERENCE}")
for said in ("the the the the the", "the dog the dog the", "the cat sees the dog"):
    loose, tight = (
        [precision(said, REFERENCE, n, clipped) for n in (1, 2)] for clipped in (False, True)
    )
    print(f"{said:<21} unclipped {loose}, clipped {tight}")
assert precision("the the the the the", REFERENCE, 1, clipped=False) == 1
assert precision("the the the the the", REFERENCE, 1) == 2 / 5
findings[22] = "unclipped, the the the is precise", RIGHT

# %% [markdown]
# **Right**: precision does not ask what is missing, and the length is right, so the brevity penalty does not mind. BLEU
# as a whole would be 0, as *the the* stands nowhere. But a right n-gram that is repeated passes, and clipping halves
# its precision for $n = 2$, in the second line. No clipping helps against the third, wrong as it is: all its words are
# right. BLEU clips for every $n$, before counts are summed over the corpus. [Lesson 14](14_decoding.ipynb), section 6
#
# **Claim 23.** One word of seven is wrong. BLEU by hand, without the full stop and with it:

# %%
CASES = {
    "one wrong word, no full stop": ("a man in a hat is running", "a man in a hat is sleeping"),
    "one wrong word, full stop": ("a man in a hat is running .", "a man in a hat is sleeping ."),
    "full stop on the last word": ("a man in a hat is running.", "a man in a hat is sleeping."),
    "all right, no full stop": ("a man in a hat is sleeping", "a man in a hat is sleeping ."),
}
bleu = {}
for name, (said, wanted) in CASES.items():
    p = [precision(said, wanted, n) for n in (1, 2, 3, 4)]
    brevity = min(1, np.exp(1 - len(wanted.split()) / len(said.split())))
    bleu[name] = 100 * brevity * np.exp(np.log(p).mean())
    print(f"{name:<29} precisions {np.round(p, 2)}, BLEU {bleu[name]:.1f}")
without, counted, attached, missing = bleu.values()
assert without == attached
assert abs(counted - without) > 3
assert missing < 90
findings[23] = "the full stop makes no difference", WRONG

# %% [markdown]
# **Wrong.** As a word of its own the mark is in up to four n-grams of a short sentence. Here these are mostly *wrong*,
# as it stands beside the wrong word; elsewhere they would be right. Left on its word it changes nothing, and where it
# is forgotten a translation with all its words loses more than ten points. A corpus sums such counts, and its BLEU can
# differ by less: Post (2018) found up to 1.8 between conventions in use. So a score is worth little without the one
# that made it. His sacreBLEU prints it as a signature, and this course reports BLEU cased and with marks.
#
# ### What the paper says twice
#
# Some notes disagree because their source does. In the version on arXiv:
#
# - **41.8 or 41.0.** Abstract and table 2 give the big model 41.8 BLEU for English to French; the text of section 6.1
#   says 41.0. (The abstract in the conference's proceedings has 41.0.) Quote the table, and say which version.
# - **Norm after or before** is no contradiction, but a later version of the code (claim 14).
# - **65 and 213 million parameters.** With one vocabulary for both no count gives both:
#   [lesson 11](11_the_transformer.ipynb), section 7.
#
# ## 7 · Your guesses against the findings

# %%
print(f"{'claim':<43} {'your guess':<26} finding")
for number, (claim, finding) in findings.items():
    mark = {None: " ", finding: "✓"}.get(guesses[number], "✗")
    print(f"{number:2} {claim:<40} {mark} {guesses[number] or '–':<24} {finding}")
made = [number for number, guess in guesses.items() if guess]
hits = sum(guesses[number] == findings[number][1] for number in made)
print(f"{hits} of {len(made)} guesses agree; {len(findings) - len(made)} claims without a guess")
assert guesses.keys() == findings.keys()

# %% [markdown]
# **Often a claim is wrong by what it leaves out**: an assumption (3, 5, 16, 20), a place (2, 13), a unit (21). And
# **most can be tried in a few lines**: change what should not matter, and see whether it does.
#
# ## 8 · Exercises
#
# Fill in `answers/ex33.py`, your copy of [lessons/exercises/ex33.py](exercises/ex33.py), and run
# `minitransformer check ex33`. Or copy functions from there into new cells here, fill them in, and run the cell below
# again. The solutions are in [lessons/solutions/ex33.py](solutions/ex33.py).
#
# 1. **`kind_of_mask`** (25 min). You are given an attention and may ask it anything, but cannot look inside. Is its
#    mask causal, strict, put in too late, or not there?
# 2. **`smoothed_perplexity`** (25 min). Claim 17 knows the right word for sure. What perplexity has the model with the
#    least loss where the next word is really in doubt, with either convention?
# 3. **`weights_under_dropout`** (45 min). The ridge of claim 16, solved: where does a linear model end that learns
#    under dropout?
# 4. **`clipped_precision`** (25 min). A sentence has many good translations. Clip by several references, without
#    counting any word twice.

# %%
print(check_exercise("ex33", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | causal mask | up to and including itself; −∞ for the score, before the exponential |
# | $\sqrt{d_k}$ | the deviation of $q \cdot k$, if features are independent with variance 1; with it no width has chosen at the start |
# | widths | $d_k = d_{\text{model}} / h$; no axis is privileged by attention; gains and Adam favour axes |
# | heads | each adds $\text{head}_h W_h^O$ to the stream; cross-attention's matrices translate between two spaces |
# | layers | feed-forward = convolution of width 1; LayerNorm over the features of one word |
# | dropout | factor 0 or $1 / (1 - p)$, deviation $\sqrt{p / (1 - p)}$; in a linear model a ridge $\frac{p}{1 - p} w_j^2 \overline{x_j^2}$ |
# | smoothing | loss $\ge H(q)$; where it is least, perplexity about $1 / (1 - \varepsilon)$ |
# | Adam | blind to the scale of all gradients; L2 is not decay |
# | scores | faster per what? BLEU by which convention? |
# | trap | a wrong attention raises no error |
#
# **Your own Transformer.** Nothing new to write. `minitransformer check own` says how far yours is.
#
# **Next:** [lesson 17](17_making_it_fast.ipynb), on speed. This lesson may be read anywhere after 16.
