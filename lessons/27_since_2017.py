# %% [markdown]
# # 27 · Since 2017
#
# **You will** take the blocks of the paper out of a language model, one after the other, and put those of today in
# their places; derive the backward of each; see by how little attention grows too large for memory, and what was done
# about it; and train both models side by side.
#
# | | |
# |---|---|
# | In the paper | not in it. It is about sections 3.2, 3.3, 3.5 and 5.3 |
# | In the package | `minitransformer/layers/`: `rms_norm.py`, `swiglu.py`, `rotary.py`, `grouped_query_attention.py` and others; [a guide](../docs/language_models.md) |
# | You need | linear maps and dropout, as in [lesson 02](02_backpropagation.ipynb); positions, [lesson 06](06_positions.ipynb); LayerNorm, [lesson 07](07_layer_norm.ipynb); attention, [lessons 08](08_attention.ipynb) and [09](09_multi_head_attention.ipynb); Adam, [lesson 12](12_learning.ipynb) |
# | Time | an hour and a half to read, two and a half for the functions, one and a half for the exercises |

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
import tracemalloc
from dataclasses import replace
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import accelerated, select_device
from minitransformer.cases.case import LABELS, TARGET
from minitransformer.cases.models import ModelLoss, small_language_model_config
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLUE, GREEN, PURPLE, VERMILION, shape_table, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.gradcheck import check_module, check_pair
from minitransformer.layers.attention import (
    multi_head_attention,
    multi_head_attention_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
from minitransformer.layers.grouped_query_attention import (
    grouped_query_attention,
    grouped_query_attention_backward,
    repeat_groups,
    repeat_groups_backward,
)
from minitransformer.layers.rms_norm import rms_norm, rms_norm_backward
from minitransformer.layers.rotary import rotary, rotary_backward, rotary_table, to_halves, turned
from minitransformer.layers.sigmoid import sigmoid
from minitransformer.layers.swiglu import swiglu, swiglu_backward
from minitransformer.layers.tiled_attention import tiled_attention, tiled_attention_backward
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import PRESETS, LanguageModelConfig
from minitransformer.optim import schedule
from minitransformer.optim.adam import adam_update
from minitransformer.optim.adamw import AdamW, adamw_update
from minitransformer.tasks.language_modelling import stream_of, windows

use_style()
device = select_device("cpu")  # "cuda" trains the models of sections 5 and 10 on a GPU
rng = np.random.default_rng(27)

# %% [markdown]
# ## 1 · What has been replaced
#
# Your Transformer is complete. The language models of today are built on the same plan: attention, a network at every
# position, residual connections, a norm, Adam. But each block has been exchanged for a close relative. Here are two
# models whose weights are published, GPT-2 (Radford and others 2019) and SmolLM2 (Allal and others 2025), as the
# package's configuration has them, GPT-2 on the left (`num_groups` 0: as many as heads):

# %%
presets = {name: LanguageModelConfig.preset(name) for name in PRESETS}
for field in ("norm", "normalisation", "positions", "activation", "num_groups", "bias"):
    print(f"{field:14}", *(f"{getattr(config, field)!s:>14}" for config in presets.values()))
counts = [config.num_parameters() for config in presets.values()]
print(f"{'parameters':14}", *(f"{count:14,}" for count in counts))
assert counts == [124_439_808, 134_515_008]

# %% [markdown]
# (`norm` is `pre` in both: it stands before each sublayer, [lesson 10](10_residual_connections.ipynb). The paper has it
# behind.) Why was each exchanged? Some are cheaper. Some help with texts longer than any in training. One is about a
# limit that a small model does not feel. To say the next token, a model keeps keys and values of all tokens so far, two
# vectors for each head of each layer ([lesson 14](14_decoding.ipynb)). For one text of 100,000 tokens, with 4 bytes a
# number:


# %%
def bytes_of_cache(config, tokens, groups):
    width = config.d_model // config.num_heads
    return tokens * 2 * config.num_layers * groups * width * 4


gpt2 = presets["gpt2-small"]
kept = bytes_of_cache(gpt2, 100_000, gpt2.num_heads)
print(f"gpt2-small: {kept / 1e9:.1f} GB, {kept / 4 / counts[0]:.0f} numbers for each parameter")
assert kept / 4 > 10 * counts[0]

# %% [markdown]
# What is remembered of one text is many times the model itself. Section 6 is about that. Something else is larger
# still: the *scores* of one head, 100,000 × 100,000, are 40 GB. Section 7 is about these.
#
# Which blocks help at a small size, and what each costs, `benchmarks/since_2017.py` has measured: a language model of
# characters, three layers, 96 wide, a context of 128, one epoch of Multi30k's English sentences, three seeds, one
# change a row. The unchanged model is a small GPT: its norm stands before each sublayer, and its positions are learned.
# The ReLU and the factor $\sqrt D$ at the embedding are the paper's; its norm and positions are rows two and four. NLL
# is in nats a character, lower is better. Time and memory of a step are relative to the unchanged model (its own 0.97
# shows how much of that is noise):
#
# | one change | parameters | NLL | change | time | memory |
# | --- | ---: | ---: | ---: | ---: | ---: |
# | unchanged | 354,912 | 1.602 ± 0.015 | +0.000 | 0.97 | 1.00 |
# | norm after the sum | 354,720 | 1.496 ± 0.012 | -0.106 | 1.01 | 0.99 |
# | RMSNorm | 354,240 | 1.611 ± 0.029 | +0.009 | 1.02 | 1.00 |
# | sinusoids | 342,624 | 1.414 ± 0.010 | -0.188 | 1.03 | 1.00 |
# | rotary positions | 342,624 | 1.175 ± 0.004 | -0.427 | 1.16 | 1.06 |
# | ALiBi | 342,624 | 1.277 ± 0.011 | -0.325 | 1.12 | 1.06 |
# | no positions | 342,624 | 1.911 ± 0.021 | +0.309 | 0.99 | 1.00 |
# | GELU | 354,912 | 1.573 ± 0.016 | -0.029 | 1.65 | 1.34 |
# | GELU by tanh | 354,912 | 1.573 ± 0.016 | -0.029 | 1.12 | 1.43 |
# | SiLU | 354,912 | 1.626 ± 0.014 | +0.023 | 1.05 | 1.17 |
# | SwiGLU | 353,472 | 1.510 ± 0.013 | -0.092 | 1.06 | 1.29 |
# | 2 groups of 2 heads | 327,264 | 1.643 ± 0.018 | +0.041 | 1.02 | 1.06 |
# | multi-query | 313,440 | 1.674 ± 0.049 | +0.072 | 1.00 | 1.06 |
# | a window of 16 | 354,912 | 1.428 ± 0.006 | -0.174 | 0.99 | 1.00 |
# | biases everywhere | 356,064 | 1.601 ± 0.014 | -0.001 | 1.12 | 1.06 |
# | no biases | 353,472 | 1.602 ± 0.016 | -0.000 | 1.01 | 1.04 |
# | own output projection | 362,976 | 1.576 ± 0.035 | -0.026 | 0.99 | 1.00 |
# | embedding not times √D | 354,912 | 1.409 ± 0.003 | -0.193 | 1.00 | 1.00 |
# | as SmolLM2 has it | 312,864 | 1.140 ± 0.006 | -0.462 | 1.14 | 1.35 |
#
# With a window a token sees the 16 before it; an output projection of its own is not the embedding, turned around. Each
# section below ends with what its rows say. What is *not* in them matters as much: a cache that is a half or a quarter
# is worth more to a model that answers a million people than 0.04 or 0.07 nats ([more, with longer
# contexts](../docs/language_models.md#the-blocks-that-came-since-2017)). Here we want to understand them.
#
# ## 2 · RMSNorm: a norm without a mean
#
# LayerNorm does two things to a row: it takes the mean off and divides by the standard deviation. Zhang and Sennrich
# (2019) left out the first, and the shift $\beta$, and their models trained as well:
#
# $$
# \rho = \sqrt{\tfrac1D \sum_i x_i^2 + \varepsilon}
# \qquad
# \hat x = x / \rho
# \qquad
# y = \gamma \circ \hat x .
# $$
#
# What does it still do? The length of each row becomes $\sqrt D$, so no row can shout. What does it not do? It does not
# hide a shift: LayerNorm gives the same for $x$ and $x + 1$, RMSNorm does not.
#
# ### The backward pass
#
# $\gamma$ first: $d\hat x = \gamma \circ dy$, and as $\gamma$ serves all rows, $d\gamma = \sum dy \circ \hat x$ over
# them. Now one row. $x_j$ moves $\hat x_j$ directly, and every $\hat x_i$ through $\rho$. With
# $\rho^2 = \tfrac1D \sum_i x_i^2 + \varepsilon$, the chain rule gives
# $2 \rho \, \partial\rho / \partial x_j = 2 x_j / D$:
#
# $$
# \frac{\partial \rho}{\partial x_j} = \frac{x_j}{D \rho} = \frac{\hat x_j}{D}
# \qquad
# \frac{\partial \hat x_i}{\partial x_j}
# = \frac{[i = j]}{\rho} - \frac{x_i}{\rho^2} \cdot \frac{\hat x_j}{D}
# = \frac1\rho \Bigl( [i = j] - \frac{\hat x_i \hat x_j}{D} \Bigr) .
# $$
#
# Sum over all $\hat x_i$ that $x_j$ moves:
#
# $$
# dx_j = \sum_i d\hat x_i \frac{\partial \hat x_i}{\partial x_j}
# = \frac1\rho \Bigl( d\hat x_j - \hat x_j \cdot \tfrac1D \sum_i d\hat x_i \, \hat x_i \Bigr) .
# $$
#
# That is LayerNorm's ([lesson 07](07_layer_norm.ipynb)) without the term for the mean. The bracket takes from $d\hat x$
# its part along $\hat x$: a row made longer gives the same $y$, so nothing can be won in that direction.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `rms_norm(x, gamma, epsilon=1e-5)` | (..., D), (D,) | y (..., D) and a cache |
# | `rms_norm_backward(dy, cache)` | (..., D) | dx (..., D), dgamma (D,) |

# %%
B, T, D = 2, 3, 6
x, dy = rng.standard_normal((2, B, T, D))
gamma = rng.uniform(0.5, 1.5, D)


def facts(rms_norm, rms_norm_backward):
    (y, cache), (twice, cache_of_twice) = rms_norm(x, gamma, 1e-12), rms_norm(2 * x, gamma, 1e-12)
    yield "a row made longer gives the same", np.allclose(twice, y)
    yield "a row that is shifted does not", not np.allclose(rms_norm(x + 1, gamma, 1e-12)[0], y)
    dx, dgamma = rms_norm_backward(dy, cache)
    yield "dx has nothing along its row", np.allclose((dx * x).sum(axis=-1), 0)
    of_twice, _ = rms_norm_backward(dy, cache_of_twice)
    yield "where rows are twice as long, dx is half", np.allclose(of_twice, dx / 2)
    yield "γ · dγ is the sum of y · dy", np.isclose((gamma * dgamma).sum(), (y * dy).sum())


try_yours("rms_norm", facts)

# %%
show("rms_norm")

# %%
report = check_pair(rms_norm, rms_norm_backward, (x, gamma))
print(report)
assert report.right

# %% [markdown]
# *In the table:* +0.009 nats, with a deviation of 0.029. The mean is not missed, and that is the point: one sum less.
#
# ## 3 · SwiGLU: a network with a gate
#
# The paper's network is $\max(0, x W_1) W_2$ (without its biases). A ReLU opens or shuts. Two changes have been made.
#
# **The corner was rounded.** The SiLU (Elfwing and others 2018; also called Swish) multiplies $x$ by a gate between 0
# and 1, its own sigmoid:
#
# $$
# \text{SiLU}(x) = x \, \sigma(x) \qquad \sigma(x) = \frac1{1 + e^{-x}} .
# $$
#
# For large $x$ it is $x$, for very negative $x$ it is 0. In between it is smooth, and a unit that is shut still has
# some slope to open again. (GPT-2 has a relative, the GELU $x \, \Phi(x)$, where $\Phi(x)$ is how likely a standard
# normal number is to be less than $x$: `layers/gelu.py`.) The slope of the sigmoid is
# $\sigma' = e^{-x} / (1 + e^{-x})^2 = \sigma (1 - \sigma)$, as $1 - \sigma = e^{-x} / (1 + e^{-x})$. So the product
# rule gives
#
# $$
# dx = dy \, \bigl( \sigma + x \, \sigma (1 - \sigma) \bigr) = dy \, \bigl( \sigma + y \, (1 - \sigma) \bigr) .
# $$
#
# **The gate was given a map of its own** (Shazeer 2020). One map of $x$ says what there is to be passed on, another one
# how much of it:
#
# $$
# g = \text{SiLU}(x W_{\text{gate}}) \qquad u = x W_{\text{up}} \qquad h = g \circ u \qquad y = h \, W_{\text{down}} .
# $$
#
# Three matrices where there were two: $F$ is taken to be two thirds of what it was, and they count the same.
#
# ### The backward pass
#
# Backwards, $dh = dy \, W_{\text{down}}^\top$. Each factor of a product receives the gradient times the other factor:
# $dg = dh \circ u$ and $du = dh \circ g$. Then $dg$ goes back through the SiLU, and both through their maps. $x$ went
# into two maps, so
#
# $$
# dx = d(x W_{\text{gate}}) \, W_{\text{gate}}^\top + du \, W_{\text{up}}^\top .
# $$
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `silu(x)` | any shape | y and a cache |
# | `silu_backward(dy, cache)` | | dx |
# | `swiglu(x, w_gate, w_up, w_down, p=0.0, rng=None)` | (..., D), two (D, F), (F, D) | y (..., D) and a cache |
# | `swiglu_backward(dy, cache)` | (..., D) | dx, dw_gate, dw_up, dw_down |
#
# What you decide: how to write $\sigma$ so that $x = -1000$ does not overflow. `swiglu` is made of your `linear`,
# `silu` and `dropout`; the dropout is of $h$.

# %%
points, F = np.array([-30.0, -2.0, -0.5, 0.5, 2.0, 30.0]), 16
w_gate, w_up = rng.standard_normal((2, D, F))
w_down = rng.standard_normal((F, D))


def facts(silu, silu_backward):
    (y, cache), (mirrored, cache_of_mirrored) = silu(points), silu(-points)
    yield "SiLU(x) − SiLU(−x) is x", np.allclose(y - mirrored, points)
    slope = silu_backward(np.ones(6), cache)
    of_mirrored = silu_backward(np.ones(6), cache_of_mirrored)
    yield "the slopes at x and at −x sum to 1", np.allclose(slope + of_mirrored, 1)
    yield "somewhere below 0 it falls", slope.min() < 0
    y, cache = silu(np.array([1000.0, -1000.0]))
    yield "at 1000 it is 1000, at −1000 it is 0", np.allclose(y, [1000, 0])
    yield "and the slopes are 1 and 0", np.allclose(silu_backward(np.ones(2), cache), [1, 0])


try_yours("silu", facts)


# %%
def facts(swiglu, swiglu_backward):
    y, cache = swiglu(x, w_gate, w_up, w_down)
    yield "twice w_up, twice y", np.allclose(swiglu(x, w_gate, 2 * w_up, w_down)[0], 2 * y)
    shut, _ = swiglu(x, 0 * w_gate, w_up, w_down)
    yield "a gate of zeros lets nothing through", not shut.any()
    dx, dw_gate, dw_up, dw_down = swiglu_backward(dy, cache)
    whole = (dy * y).sum()  # y is linear in w_up and in w_down, and not in w_gate
    yield "Σ dw_up · w_up is Σ dy · y", np.isclose((dw_up * w_up).sum(), whole)
    yield "and so is Σ dw_down · w_down", np.isclose((dw_down * w_down).sum(), whole)
    along_x, along_both = (dx * x).sum(), (dw_up * w_up).sum() + (dw_gate * w_gate).sum()
    yield "x in front of both maps is as good as both", np.isclose(along_x, along_both)


try_yours("swiglu", facts)

# %%
show("silu", sigmoid)

# %%
show("swiglu")

# %%
report = check_pair(swiglu, swiglu_backward, (x, w_gate, w_up, w_down))
print(report)
assert report.right

# %% [markdown]
# *In the table:* the SiLU alone is no better than the ReLU (+0.023), the GELU a little (−0.029). SwiGLU is, by 0.092,
# with no more parameters. So it is the gate that pays, not the round corner.
#
# ## 4 · Rotary positions
#
# The paper adds a vector to each embedding, for its place ([lesson 06](06_positions.ipynb)). What attention needs is
# mostly not the place but the *distance*: the word before, the verb some words back. In the score
# $(e_t + p_t) \cdot (e_s + p_s)$ the distance is hidden among other terms.
#
# Su and others (2021) asked for a score that depends on $q$, $k$ and $t - s$ alone. In the plane a rotation does it.
# Write $R_t$ for the rotation by the angle $t \omega$:
#
# $$
# R_t = \begin{pmatrix} \cos t\omega & -\sin t\omega \\ \sin t\omega & \cos t\omega \end{pmatrix}
# \qquad
# R_t^\top = R_{-t}
# \qquad
# R_t^\top R_s = R_{s - t} .
# $$
#
# The second holds as the transpose only exchanges the signs of the two sines, the third as angles add. Turn the query
# by its position and the key by its own:
#
# $$
# (R_t \, q) \cdot (R_s \, k) = q^\top R_t^\top R_s \, k = q^\top R_{s - t} \, k .
# $$
#
# **Only the distance is left.** Nothing is added to the embeddings. Values are not turned. A head has $K$ features, so
# $K / 2$ planes, and plane $i$ gets an angle of its own, $\omega_i = 10000^{-2i/K}$: the frequencies of the paper's
# table.
#
# ### The backward pass
#
# A rotation is a linear map, $y = R_t \, x$. So $dx = R_t^\top dy = R_{-t} \, dy$: **the gradient is turned back.**
# Nothing is trained here, so that is all.
#
# ### Two conventions
#
# Which features make a plane? The paper of rotary positions takes **neighbours**: (0, 1), (2, 3) and so on. Many
# published weights take **halves**: (0, K/2), (1, K/2 + 1) and so on. A score is a sum over all planes, and a sum does
# not ask for the order. So weights of one convention serve in the other, if the columns of $W^Q$ and $W^K$ that make
# the features are put into another order, in each head and in both matrices alike: from neighbours to halves first all
# even columns of a head, then all odd ones; and back, the other way. Whoever loads weights and forgets that sees
# nothing at position 0, where all angles are 0.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `rotary_table(length, head_width, base=10000.0)` | | (T, 2, K/2): cosines, sines |
# | `rotary(x, table, pairs="neighbours", start=0)` | (B, H, T, K) | y (B, H, T, K) and a cache |
# | `rotary_backward(dy, cache)` | (B, H, T, K) | dx (B, H, T, K) |
#
# `pairs` is `"neighbours"` or `"halves"`. `start` is the position of the first token, which is not 0 where keys are
# kept from earlier steps.

# %%
H, K, TURNS = 2, 8, 12
heads = rng.standard_normal((B, H, 1, K)).repeat(TURNS, axis=2)  # the same vector at all positions
others = rng.standard_normal((B, H, 1, K)).repeat(TURNS, axis=2)


def facts(rotary_table, rotary, rotary_backward):
    table = rotary_table(2 * TURNS, K)
    of_one_step = table[1, 0, [0, -1]], np.cos([1, 10000 ** (-6 / 8)])
    yield "in a step plane 0 turns by 1, the last by 10000^(−6/8)", np.allclose(*of_one_step)
    for pairs in ("neighbours", "halves"):
        (q, cache), (k, _) = rotary(heads, table, pairs), rotary(others, table, pairs)
        scores = q @ k.swapaxes(-1, -2)  # (B, H, T, T)
        one_on, before = scores[..., 1:, 1:], scores[..., :-1, :-1]
        yield f"{pairs}: one step on, the same scores", np.allclose(one_on, before)
        yield "position 0 is not turned", np.allclose(q[:, :, 0], heads[:, :, 0])
        yield "no vector is longer than before", np.allclose((q**2).sum(-1), (heads**2).sum(-1))
        later, cache_of_later = rotary(heads[:, :, :5], table, pairs, TURNS - 5)
        yield "it can begin anywhere", np.allclose(later, q[:, :, -5:])
        yield "backward turns back", np.allclose(rotary_backward(q, cache), heads)
        back = rotary_backward(later, cache_of_later)
        yield "from there, too", np.allclose(back, heads[:, :, :5])
    of_neighbours, _ = rotary(heads, table)
    yield "the two conventions differ", not np.allclose(of_neighbours, q)


try_yours("rotary", facts)

# %%
show("rotary", turned)

# %%
table = rotary_table(TURNS, K)
tokens = rng.standard_normal((B, H, TURNS, K))
for pairs in ("neighbours", "halves"):
    forward = lambda x, pairs=pairs: rotary(x, table, pairs)  # noqa: E731
    report = check_pair(forward, rotary_backward, (tokens,))
    print(f"{pairs:10} largest error of the gradient {report.max_error:.0e}")
    assert report.right

stream = rng.standard_normal((B, TURNS, H * K))
weights = rng.standard_normal((2, H * K, H * K))  # W^Q and W^K


def scores_by(pairs, weights):
    q, k = (rotary(split_heads(stream @ w, H), table, pairs)[0] for w in weights)
    return q @ k.swapaxes(-1, -2)  # (B, H, T, T)


neighbours, forgotten = (scores_by(pairs, weights) for pairs in ("neighbours", "halves"))
assert np.allclose(scores_by("halves", [to_halves(w, H) for w in weights]), neighbours)
assert np.allclose(forgotten[..., 0, 0], neighbours[..., 0, 0])  # nothing is seen at position 0
off = abs(forgotten - neighbours).max()
print(f"weights of one convention used in the other: a score is off by up to {off:.0f}")

# %% [markdown]
# *In the table:* −0.427 against learned positions, −0.239 against the paper's sinusoids. No other block gains as much.
#
# ## 5 · ALiBi, and texts longer than any in training
#
# Press, Smith and Lewis (2022) went further: no vector at all, no rotation. Each score loses a number that grows with
# the distance, with a slope for each head:
#
# $$
# A = \text{softmax} \Bigl( \frac{Q K^\top}{\sqrt{d_k}} - m_h \, \lvert t - s \rvert \Bigr)
# \qquad m_h = 2^{-8h/H}, \quad h = 1 \dots H .
# $$
#
# The bias is a constant. Added to the scores $Z$, it leaves $dZ$ as it is; it is felt in the weights $A$ alone. So
# **the backward pass is that of attention**, which finds $A$ in its cache. With $H = 4$ the slopes are 1/4 to 1/256.
#
# The first head sees a few tokens, the last one many. The authors wanted one thing: to train on short texts and read
# long ones. Does it? We train four small language models on the English side of the toy corpus, cut into subwords, in
# contexts of 16, and then ask for the validation text in contexts of 16, 32, 64 and 128. They differ in their positions
# alone. (Learned positions are not among them: they have no vector for the 17th token.)

# %%
corpus = toy_corpus()
english = {split: [target for _, target in corpus[split]] for split in ("train", "validation")}
vocabulary = Vocabulary.train(english["train"], 300)
streams = {split: stream_of(vocabulary, [(t,) for t in texts]) for split, texts in english.items()}
CONTEXT, ROWS, STEPS, SEEDS = 16, 16, 200, (1, 2)


def small_model(seed, **choices):
    sizes = dict(num_heads=4, d_ff=128, num_layers=2, dropout=0.0, max_length=CONTEXT)
    config = LanguageModelConfig(len(vocabulary), 48, **sizes | choices)
    return LanguageModel(config, seed=seed, device=device)


def learn(model, steps=STEPS, peak=1.2e-2, seed=27):
    """Train by AdamW on parts of the text."""
    draw, optimizer, text = np.random.default_rng(seed), AdamW(model.flat), streams["train"]
    with accelerated():  # the faster of the package's functions
        for step in range(1, steps + 1):
            model.zero_grad()
            starts = draw.integers(0, len(text) - CONTEXT - 1, ROWS)
            _, cache = model.loss(windows(text, starts, CONTEXT))
            model.loss_backward(1.0, cache)
            optimizer.step(schedule.linear_decay(step, peak, 30, steps))


def nll_in(model, length):
    """NLL (nats a piece) of the validation text, cut into contexts of that length."""
    longer = LanguageModel(replace(model.config, max_length=length), device=device)
    longer.flat.data[:] = model.flat.data
    text = streams["validation"]
    starts = np.arange(0, len(text) - length - 1, length)
    with accelerated():
        _, nll = longer.loss(windows(text, starts, length))[0]
    return float(to_host(nll))


LENGTHS = [CONTEXT * factor for factor in (1, 2, 4, 8)]
longer = {}
for kind in ("sinusoidal", "rotary", "none", "alibi"):
    models = [small_model(seed, positions=kind) for seed in SEEDS]
    for model in models:
        learn(model)
    longer[kind] = np.array([[nll_in(model, n) for n in LENGTHS] for model in models])
    print(f"{kind:11}", *(f"{nll:5.2f}" for nll in longer[kind].mean(axis=0)))
rise = {kind: of[:, -1] - of[:, 0] for kind, of in longer.items()}
assert rise["alibi"].max() < 0.15 < min(rise["rotary"].min(), rise["sinusoidal"].min())

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4))
LOOKS = (VERMILION, "s--"), (PURPLE, "^:"), (GREEN, "D-."), (BLUE, "o-")
for (kind, of), (colour, style) in zip(longer.items(), LOOKS, strict=True):
    lines = axes.plot(LENGTHS, of.T, style, color=colour, ms=5)
    lines[0].set_label(f"{kind}, {len(SEEDS)} seeds")
axes.axvline(CONTEXT, color="black", lw=0.8, label="as in training")
axes.set_xscale("log")
axes.set_xticks(LENGTHS, labels=map(str, LENGTHS))
axes.minorticks_off()
axes.set(xlabel="context (pieces)", ylabel="NLL of the validation text (nats a piece)")
axes.legend()
plt.show()

# %% [markdown]
# A longer context holds more to go by, so the loss could fall. It rises, with sinusoids most. Rotary positions are
# relative, and rise too: at distances above 15 the planes stand at angles that no training has shown. That a formula is
# defined for all distances does not mean that a model has learned them. ALiBi stays nearly flat: what is far away
# counts for nothing, and more of nothing is nothing new. Without positions the loss rises, too.
#
# *In the table:* −0.325 against learned positions, less than rotary ones gain. But in contexts eight times as long as
# in training those models lose 1.471 with rotary positions, and with ALiBi they *gain* 0.020
# ([all kinds](../docs/language_models.md#the-blocks-that-came-since-2017)).
#
# ## 6 · Fewer keys: grouped queries
#
# Back to the cache. It has a key and a value for every head. Shazeer (2019) let all heads share one key and one value:
# **multi-query** attention. Ainslie and others (2023) took the middle: $H$ heads in $G$ groups, and each group has its
# own:
#
# $$
# \text{head}_i = \text{Attention}(Q W_i^Q, \; K W_g^K, \; V W_g^V) \qquad g = \lfloor i \, G / H \rfloor .
# $$
#
# $G = H$ is the paper's attention. The cache becomes $H / G$ times smaller, and so do $W^K$ and $W^V$, now $(D, G K)$.
#
# ### The backward pass
#
# It is the paper's attention whose keys are *repeated*: $\tilde k_i = k_{g(i)}$. A key of group $g$ serves all heads of
# its group, so its gradient is the sum of what they send:
#
# $$
# dk_g = \sum_{i \, : \, g(i) = g} d\tilde k_i
# \qquad
# dv_g = \sum_{i \, : \, g(i) = g} d\tilde v_i .
# $$
#
# All else is that of [lesson 09](09_multi_head_attention.ipynb). *Repeated* means that four heads look into 0 0 1 1 of
# the groups 0 and 1: *tiled* would be 0 1 0 1. Either can be trained; but weights that were trained one way are noise
# the other.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `grouped_query_attention(query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None)` | as `multi_head_attention`; `w_key`, `w_value` (D, G K) | y (B, T, D) and a cache |
# | `grouped_query_attention_backward(dy, cache)` | (B, T, D) | seven gradients, as there |
#
# $G$ is not given. It follows from the shapes.

# %%
D, H, G, S, K = 24, 6, 2, 5, 4
queries, keys, values = (rng.standard_normal((B, n, D)) for n in (T, S, S))
w_q, w_o = rng.standard_normal((2, D, D))
w_k, w_v = rng.standard_normal((2, D, G * K))
dout = rng.standard_normal((B, T, D))
inputs = queries, keys, values, w_q, w_k, w_v, w_o


def for_each_head(weight):
    """w_key or w_value with the columns of a group once for each head that shares it, (D, D)."""
    return weight.reshape(D, G, 1, K).repeat(H // G, axis=2).reshape(D, D)


def facts(grouped_query_attention, grouped_query_attention_backward):
    y, cache = grouped_query_attention(*inputs, H)
    whole = queries, keys, values, w_q, for_each_head(w_k), for_each_head(w_v), w_o, H
    expected, of_heads = multi_head_attention(*whole)
    yield "it is attention with keys that are repeated", np.allclose(y, expected)
    ours, _ = grouped_query_attention(*whole)
    yield "with a group for each head, too", np.allclose(ours, expected)
    (*_, dw_k, dw_v, _) = grouped_query_attention_backward(dout, cache)
    (*_, dw_of_heads, _, _) = multi_head_attention_backward(dout, of_heads)
    of_first = dw_of_heads.reshape(D, H, K)[:, : H // G].sum(axis=1)
    yield "dw_key of a group is the sum over its heads", np.allclose(dw_k[:, :K], of_first)
    yield "Σ dw_value · w_value is Σ dy · y", np.isclose((dw_v * w_v).sum(), (dout * y).sum())


try_yours("grouped_query_attention", facts)

# %%
show("grouped_query_attention", repeat_groups, repeat_groups_backward)

# %%
report = check_pair(grouped_query_attention, grouped_query_attention_backward, (*inputs, H))
assert report.right
y, _ = grouped_query_attention(*inputs, H)
tiled = w_k.reshape(D, 1, G, K).repeat(H // G, axis=1).reshape(D, D)
other, _ = multi_head_attention(queries, keys, values, w_q, tiled, for_each_head(w_v), w_o, H)
print(f"with tiled keys y is another, by up to {abs(other - y).max():.1f}")
assert not np.allclose(other, y)
shape_table(
    {"B": B, "T": T, "S": S, "D": D, "2K": G * K},
    queries=(queries, "B T D", "H heads are made of them"),
    keys=(keys, "B S D", "and G heads of these"),
    w_k=(w_k, "D 2K", "G K columns: two groups here"),
)

# %% [markdown]
# PyTorch has an RMSNorm, and attention with `enable_gqa`, which repeats as we do:

# %%
if find_spec("torch"):
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in (x, gamma)]
    of_norm = torch.nn.functional.rms_norm(tensors[0], (x.shape[-1],), tensors[1], eps=1e-5)
    of_norm.backward(torch.tensor(dy))
    y, cache = rms_norm(x, gamma)
    mine = [y, *rms_norm_backward(dy, cache)]
    maps = zip(inputs[:3], inputs[3:6], (H, G, G), strict=True)
    q, k, v = (split_heads(array @ weight, heads) for array, weight, heads in maps)
    attend = torch.nn.functional.scaled_dot_product_attention
    theirs = of_norm.detach(), *(tensor.grad for tensor in tensors)
    theirs += (attend(*map(torch.tensor, (q, k, v)), enable_gqa=True),)
    mine.append(scaled_dot_product_attention(q, *(repeat_groups(a, H) for a in (k, v)))[0])
    names = "RMSNorm", "its dx", "its dγ", "grouped queries"
    for name, ours, its in zip(names, mine, theirs, strict=True):
        print(f"{name:15} differs by at most {abs(ours - its.numpy()).max():.0e}")
        assert np.allclose(ours, its, rtol=1e-6, atol=1e-12)

# %% [markdown]
# *In the table:* half the keys and values cost 0.041 nats, a quarter of them 0.072. What is saved does not show there:
# it is the cache.
#
# ## 7 · Attention in tiles
#
# The scores of $n$ tokens are $n^2$ numbers, and so are the weights, which the backward pass wants to see again. Dao
# and others (2022) showed that neither has to be in memory as a whole (*FlashAttention*). The scores are made for a
# tile of keys, used, and forgotten. What stands in the way is the softmax: its largest score and its sum are known only
# at the end. But both can be carried along (Milakov and Gimelshein 2018). After some tiles a query has $m$, the largest
# score so far, $\ell = \sum e^{z - m}$ and the unfinished $o = \sum e^{z - m} v$. With the next tile of scores $z$:
#
# $$
# m' = \max(m, \max z)
# \qquad
# \ell' = e^{m - m'} \ell + \sum e^{z - m'}
# \qquad
# o' = e^{m - m'} o + \sum e^{z - m'} v .
# $$
#
# The factor brings what was summed to the new maximum. At the end $y = o / \ell$. That is exact, not an approximation.
# Of the softmax one number for each query is kept, $L = m + \ln \ell$, so that $a_s = e^{z_s - L}$ can be made again at
# once.
#
# ### The backward pass
#
# It is that of [lesson 08](08_attention.ipynb), tile by tile, but for one thing:
# $dz_s = a_s (da_s - \sum_u a_u \, da_u)$ has a sum over *all* tiles. Put $da_u = dy \cdot v_u$ into it:
#
# $$
# \sum_u a_u \, da_u = \sum_u a_u \, (dy \cdot v_u) = dy \cdot \sum_u a_u v_u = dy \cdot y .
# $$
#
# The output is known before the backward begins, and so is the sum. The scores are worked out twice, and in return
# memory grows as $n$. We try both, and let Python count the most memory that was taken at a time. Forward and backward,
# one head of width 32, tiles of 64, for 128, 256, 512 and 1024 tokens:

# %%
WAYS = {
    "full": (scaled_dot_product_attention, scaled_dot_product_attention_backward),
    "tiles": (lambda *x: tiled_attention(*x, size=64), tiled_attention_backward),
}
memory, results = {name: [] for name in WAYS}, {}
for n in (128, 256, 512, 1024):
    q, k, v = np.random.default_rng(n).standard_normal((3, 1, 1, n, 32))
    for name, (forward, backward) in WAYS.items():
        tracemalloc.start()
        y, cache = forward(q, k, v)
        results[name] = y, *backward(y, cache)
        memory[name].append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
    for full, in_tiles in zip(*results.values(), strict=True):
        assert np.allclose(full, in_tiles, rtol=0, atol=1e-12)
for name, megabytes in memory.items():
    print(f"{name:6}", *(f"{of_n:6.1f} MB" for of_n in megabytes))
assert memory["full"][-1] > 3 * memory["full"][-2]  # as n²
assert memory["tiles"][-1] < 2.5 * memory["tiles"][-2]  # as n

# %% [markdown]
# The results agree to the last digits. From one column to the next $n$ doubles: full attention comes to take four times
# the memory, tiles twice at most. On a processor they take a fifth to a half longer up to 1024 tokens, and less at 8192
# ([measured](../docs/language_models.md#the-blocks-that-came-since-2017)). On a GPU, Dao and others found, they are
# faster, too, as fetching numbers from memory takes longer there than working them out again. The function is the same,
# so no row of the table is about it.
#
# ## 8 · AdamW: decay beside the gradient
#
# Weights that are kept small often do better on new data. The old way is a term $\tfrac\lambda2 \lvert \theta \rvert^2$
# in the loss, whose gradient is $\lambda \theta$. With plain gradient descent a step then shrinks all parameters by the
# same share, $\theta - \eta (g + \lambda \theta) = (1 - \eta \lambda) \, \theta - \eta g$. With Adam it does not: it
# divides the whole gradient, $\lambda \theta$ with it, by $\sqrt v$. Where gradients are large, the decay is divided by
# a large number. Loshchilov and Hutter (2019) put it beside the step:
#
# $$
# \theta \leftarrow (1 - \eta \lambda) \, \theta
# \qquad \text{then} \qquad
# \theta \leftarrow \theta - \eta \, \frac{\hat m}{\sqrt{\hat v} + \varepsilon} .
# $$
#
# ### Now write it
#
# `adamw_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, weight_decay, scale=1.0)` takes what
# `adam_update` takes, and λ. It returns nothing, and writes to `data`, `m` and `v`.

# %%
ADAM = dict(learning_rate=0.1, t=1, beta_1=0.9, beta_2=0.98, epsilon=1e-9)


def facts(adamw_update):
    start = np.array([2.0, -1.0, 0.5])
    data, m, v = start.copy(), np.zeros(3), np.zeros(3)
    adamw_update(data, np.zeros(3), m, v, **ADAM, weight_decay=0.5)
    yield "without a gradient θ shrinks by η λ", np.allclose(data / start, 0.95)
    yield "and the moments do not know", not m.any() and not v.any()
    data, m, v = start.copy(), np.zeros(3), np.zeros(3)
    adamw_update(data, np.ones(3), m, v, **ADAM, weight_decay=0.5, scale=0.5)
    yield "the first step is η long beside that", np.allclose(data, 0.95 * start - 0.1)
    yield "scale is for the gradient", np.allclose(m, 0.05)


try_yours("adamw_update", facts)

# %%
show("adamw_update")

# %% [markdown]
# Two parameters that have nothing to learn: their gradients are random, of mean 0, those of the second a hundred times
# as large. What becomes of them in 400 steps, by either way?

# %%
SIZE, DECAY = np.array([1.0, 100.0]), 0.5
ends = {}
for way in ("in the gradient", "beside it"):
    theta, m, v = np.ones((400, 2)), np.zeros((400, 2)), np.zeros((400, 2))  # 400 such pairs
    noise = np.random.default_rng(27)
    for t in range(1, 401):
        g = noise.standard_normal((400, 2)) * SIZE
        constants = 0.01, t, 0.9, 0.98, 1e-9
        if way == "beside it":
            adamw_update(theta, g, m, v, *constants, DECAY)
        else:
            adam_update(theta, g + DECAY * theta, m, v, *constants)
    ends[way] = theta.mean(axis=0)
    print(f"decay {way:15} means {ends[way][0]:.2f} and {ends[way][1]:.2f}")
assert abs(ends["beside it"] - (1 - 0.01 * DECAY) ** 400).max() < 0.05  # (1 − η λ)^400
assert ends["in the gradient"][1] > 0.8 > ends["in the gradient"][0] + 0.3

# %% [markdown]
# In the gradient, the decay hardly reaches the parameter whose gradients are large: it stays near 1, where it began.
# Beside it both shrink alike, and $\eta$ and $\lambda$ alone decide how far. (No row of the table is about it: all were
# trained by Adam without decay.)
#
# ## 9 · Three more, in short
#
# **Linear attention** (Katharopoulos and others 2020, `layers/linear_attention.py`) replaces $e^{q \cdot k}$ by a
# product, $\varphi(q) \cdot \varphi(k)$ with $\varphi \gt 0$. A product can be taken apart: with
# $M = \sum_s \varphi(k_s) \, v_s^\top$ and $n = \sum_s \varphi(k_s)$, made once,
# $y_t = \varphi(q_t)^\top M / (\varphi(q_t) \cdot n)$. Time grows as the length, the state $(M, n)$ has one size: a
# recurrent network, of which [lesson 26](26_what_a_layer_remembers.ipynb) tells. It is another function, not a faster
# way to the same one. Backward, with $N_t = \varphi(q_t) \cdot n$ below, the quotient rule and then the products give
#
# $$
# d\varphi(q_t) = \frac{M \, dy_t - n \, (dy_t \cdot y_t)}{N_t}
# \qquad
# dM = \sum_t \frac{\varphi(q_t) \, dy_t^\top}{N_t}
# \qquad
# dn = - \sum_t \frac{\varphi(q_t) \, (dy_t \cdot y_t)}{N_t}
# $$
#
# and from the sums back to each token, $d\varphi(k_s) = dM \, v_s + dn$ and $dv_s = dM^\top \varphi(k_s)$.
#
# **A mixture of experts** (Shazeer and others 2017, `layers/mixture_of_experts.py`) has several feed-forward networks,
# of which a router picks a few for each token, $y = \sum_e g_e E_e(x)$. The choice is a constant in the backward, as
# the mask of a ReLU is: $dg_e = dy \cdot E_e(x)$ and $dE_e = g_e \, dy$ for the chosen. A second loss keeps all of them
# busy.
#
# **Low-rank adapters** (Hu and others 2022, `layers/low_rank.py`) leave a trained $W$ as it is and learn its
# correction, a product of two thin matrices, $y = x W + s \, (x A) B$ with a chosen number $s$. So
# $dB = s \, (x A)^\top dy$ and $dA = s \, x^\top (dy \, B^\top)$, and $x$ went two ways:
# $dx = dy \, W^\top + s \, (dy \, B^\top) A^\top$. $B$ is zeros at first: the model begins as it was, and in the first
# step $dA$ is 0. [Lesson 28](28_your_own_llama.ipynb) uses them.
#
# ## 10 · Put together
#
# The package's language model takes all of these by its configuration, each whatever the others are. First the proof,
# on a small one with everything exchanged:

# %%
TODAY = dict(normalisation="rms-norm", positions="rotary", activation="swiglu", num_groups=2)
TODAY |= dict(bias="none", scaled_embedding=False)
small = replace(small_language_model_config(), d_model=8, num_heads=4, **TODAY)
report = check_module(ModelLoss(LanguageModel(small)), TARGET, LABELS, directions=3, tolerance=1e-6)
print(f"largest error of all gradients {report.max_error:.0e}")
assert report.right

# %% [markdown]
# Now the toy corpus, with the blocks of 2017 (sinusoids, LayerNorm, ReLU, a key for each head; but trained by AdamW,
# and with the norm before each sublayer, as all of these) and with those of today; and once more with the paper's
# factor $\sqrt D$ at the embedding, which most models have dropped. Two thirds of the inner width make up for the third
# matrix. Two seeds each, equal steps:

# %%
MORE, GATED = 300, TODAY | {"d_ff": 85}  # steps; 2/3 of the 128 that F is otherwise
made_of = {"2017": {"positions": "sinusoidal"}, "today": GATED}
made_of["today, times √D"], found = GATED | {"scaled_embedding": True}, {}
for name, chosen in made_of.items():
    models = [small_model(seed, **chosen) for seed in SEEDS]
    for model in models:
        learn(model, MORE)
    found[name] = [nll_in(model, CONTEXT) for model in models]
    config = models[0].config
    kept = bytes_of_cache(config, 1, config.num_key_groups)
    print(f"{name:16}{config.num_parameters():,} parameters, {kept} bytes of a token;", end=" ")
    print("NLL", *(f"{nll:.3f}" for nll in found[name]))
assert np.mean(found["today, times √D"]) < np.mean(found["today"]) - 0.02

# %% [markdown]
# With half the bytes kept of a token and a tenth fewer parameters, today's blocks are worse than those of 2017 without
# the factor $\sqrt D$, and better with it. In the table they win without it, on other data and in more steps. So a
# model is not the sum of its blocks: what one is worth depends on the others, on the size and on the number of steps.
# These are small models and few steps. To learn what *one* block is worth, change that one alone, with several seeds,
# as `benchmarks/since_2017.py` does; and then believe it for that size.
#
# ## 11 · Exercises
#
# Fill in `answers/ex27.py`, your copy of [lessons/exercises/ex27.py](exercises/ex27.py), and run
# `minitransformer check ex27`. Or copy functions from there into new cells here, fill them in, and run the cell below
# again. The solutions are in [lessons/solutions/ex27.py](solutions/ex27.py).
#
# 1. **`longest_context`** (10 min). How many tokens fit into the memory that you have?
# 2. **`base_for`** (10 min). A model shall read longer texts. At which base does the slowest plane go round once in
#    them?
# 3. **`soft_cap`** (25 min). Another way to keep scores from growing, with its backward: $c \tanh(x / c)$.
# 4. **`merged_attention`** (45 min). The keys lie on two machines. Put together what each says, as section 7 does.

# %%
print(check_exercise("ex27", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | RMSNorm | $\hat x = x / \rho$; $dx = (d\hat x - \hat x \, \text{mean}(d\hat x \circ \hat x)) / \rho$: LayerNorm's without a term |
# | SiLU | $y = x \sigma$; $dx = dy \, (\sigma + y (1 - \sigma))$ |
# | SwiGLU | $h = \text{SiLU}(x W_{\text{gate}}) \circ x W_{\text{up}}$; $dg = dh \circ u$, $du = dh \circ g$; $dx$ is a sum of two |
# | rotary | $(R_t q) \cdot (R_s k) = q^\top R_{s-t} k$; $dx = R_{-t} \, dy$; two orders of the columns |
# | ALiBi | scores lose $m_h \lvert t - s \rvert$; the backward is that of attention |
# | grouped queries | keys and values for $G$ groups: $dk_g$ is the sum over its heads; repeated, not tiled |
# | tiles | carry $m$, $\ell$, $o$; $\sum_u a_u \, da_u = dy \cdot y$; memory grows as $n$ |
# | AdamW | $\theta \leftarrow (1 - \eta \lambda) \theta$ beside the step, not in the gradient |
# | traps | a wrong order of pairs, which position 0 hides; 0 1 0 1 for 0 0 1 1; distances that no training has shown |
#
# **Your own Transformer.** It was complete without these: `rms_norm`, `silu`, `swiglu`, `rotary_table` and `rotary`,
# `grouped_query_attention`, with their backwards, and `adamw_update` are the second part of `own.py`.
# `minitransformer check own` checks them as the others. Trainings with `--own` are for the layers of the paper. But a
# model of others can speak on them: `minitransformer import smollm2` brings one of 135 million parameters
# ([how](../docs/language_models.md#real-weights)), and `minitransformer chat runs/smollm2 --own answers/own.py` says
# whose functions spoke.
#
# **Next:** [lesson 28](28_your_own_llama.ipynb): real weights on these layers.
