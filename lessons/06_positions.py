# %% [markdown]
# # 06 · Where am I?
#
# **You will** see that attention cannot tell *dog bites man* from *man bites dog*, and prove it; derive
# what sines and cosines are good for: a step along the sentence is a rotation; find out how alike two
# positions are, by a formula; and measure what positions are worth, and where they end.
#
# | | |
# |---|---|
# | In the paper | section 3.5, Positional Encoding; table 3, row E |
# | In the package | `minitransformer/layers/positional_encoding.py` |
# | You need | sine, cosine and their addition theorems; matrix products |
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
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLACK, BLUE, GREEN, VERMILION, shape_table, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.data.text.batches import Batch
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_pair
from minitransformer.layers.attention import scaled_dot_product_attention
from minitransformer.layers.embedding import embedding, embedding_weight
from minitransformer.layers.positional_encoding import (
    positional_encoding,
    positional_encoding_backward,
    sinusoidal_encoding,
)
from minitransformer.models.stacks import EncoderLayer
from minitransformer.models.transformer import Transformer
from minitransformer.optim.adam import Adam

use_style()
device = select_device("cpu")  # "cuda" runs the layer and trains the models on a GPU
rng = np.random.default_rng(6)

# %% [markdown]
# ## 1 · Order-blind
#
# A recurrent network reads word after word, and so knows their order. Attention lets every position look
# at all others at once. We take one encoder layer of this package (an attention, and a small
# network for each word) with random weights, and three word vectors without positions. We run
# *dog bites man* and *man bites dog*:

# %%
config = TransformerConfig(20, 20, d_model=16, num_heads=2, d_ff=32, max_length=20)
layer = EncoderLayer(config, np.random.default_rng(6)).to(dtype=np.float64)
dog, bites, man = rng.standard_normal((3, 16))
one_way, _ = layer.forward(np.stack([dog, bites, man])[None])  # (1, 3, D)
other_way, _ = layer.forward(np.stack([man, bites, dog])[None])

print("dog, where it bites:      ", one_way[0, 0, :4].round(6))
print("dog, where it is bitten:  ", other_way[0, 2, :4].round(6))
assert np.allclose(one_way[0, ::-1], other_way[0])

# %% [markdown]
# The dog gets the same vector in both sentences. No choice of weights helps, and no number of layers. To prove it
# we need one line about attention ([lesson 08](08_attention.ipynb) tells the rest). Let $X$ (T, D) hold the tokens
# of a sentence as rows. Three linear maps make a query, a key and a value of each row, the rows of
# $Q = X W^Q$, $K = X W^K$ and $V = X W^V$. Each query is compared with all keys. Its answer is an average of the
# values, and the weights are a softmax of the scores:
#
# $$
# Z = Q K^\top / \sqrt{d_k}
# \qquad
# A = \text{softmax}(Z) \text{, row by row}
# \qquad
# \text{Attention} = A V .
# $$
#
# Now let $P$ be a permutation matrix, so that $PX$ is the same rows in another order. Then the queries, keys
# and values are $PQ$, $PK$ and $PV$. The scores (their constant factor left out) and the weights:
#
# $$
# (PQ)(PK)^\top = P \, Q K^\top P^\top
# \qquad\Longrightarrow\qquad
# \text{softmax}\left( P Z P^\top \right) = P \, A \, P^\top ,
# $$
#
# because $P Z P^\top$ has the rows of $Z$ in another order, and in each row the same entries in another
# order. The sum that a softmax divides by does not depend on the order. A permutation is undone by its
# transpose, $P^\top P = I$, so
#
# $$
# (P A P^\top)(P V) = P \, A \, (P^\top P) \, V = P \, (A V) .
# $$
#
# **Attention of permuted tokens is the permuted attention.** The feed-forward network, LayerNorm and the
# residual sum act on each row alone, so the same holds for them, and for a whole stack of such
# layers. To an encoder without positions a sentence is a bag of words.
#
# **And a decoder?** Its mask lets position $t$ see only the tokens up to $t$, so it is not quite as blind.
# In one layer, position $t$ sees itself and the *bag* of those before it. But each of those has seen a bag of
# another size, and a second layer can tell them apart:

# %%
future = np.tril(np.ones((4, 4), dtype=bool))[None, None]  # True where attention is allowed
layers = [EncoderLayer(config, np.random.default_rng(n)).to(dtype=np.float64) for n in (1, 2)]
tokens = rng.standard_normal((1, 4, 16))
swapped = tokens[:, [1, 0, 2, 3]]  # the first two change places, the last two stay
for depth in (1, 2):
    ends = []
    for x in (tokens, swapped):
        for layer in layers[:depth]:
            x, _ = layer.forward(x, future)
        ends.append(x[0, -1])
    print(f"causal layers: {depth}; the last output moves by {abs(ends[1] - ends[0]).max():.1e}")

# %% [markdown]
# So a deep decoder can find out about order by itself. It is cheaper to tell it, and the encoder must be told in
# any case.
#
# ## 2 · What to tell
#
# We add to each token's vector another one that depends on the position $t$ alone. Which?
#
# - **The number $t$ itself**, in one feature. At $t = 500$ it is larger than everything else, and a sentence
#   longer than those in training brings numbers never seen.
# - **$t / T$**, always between 0 and 1. Then *the next word* is a different step in each sentence.
# - **The binary digits of $t$**: bounded, and different for each $t$. The last digit changes with each step, the one
#   before it with every second, and so on. But they jump: from 7 to 8 four digits change at once, from 8 to 9
#   one.
#
# The paper takes the last idea, with waves for digits. There are $D / 2$ frequencies, and for each a sine and a
# cosine, side by side:
#
# $$
# PE_{t, 2i} = \sin(\omega_i t)
# \qquad
# PE_{t, 2i + 1} = \cos(\omega_i t)
# \qquad
# \omega_i = 10000^{-2i / D} \qquad (i = 0, \dots, D/2 - 1) .
# $$
#
# The first pair turns by one radian a token, so its wave is $2 \pi$ tokens long. The last one is nearly
# $2 \pi \cdot 10000$ long. In between, each is longer than the one before by the same factor. Below the shapes is
# a picture:

# %%
B, T, D, V, MAX = 2, 6, 64, 20, 100
table = device.asarray(sinusoidal_encoding(MAX, D))
embeddings = device.asarray(embedding_weight(V, D, rng).data, np.float64)
ids = device.asarray(rng.integers(V, size=(B, T)))
x, _ = embedding(ids, embeddings)
y, _ = positional_encoding(x, table)
host_table = to_host(table)

shape_table(
    {"B": B, "T": T, "D": D, "MAX": MAX},
    table=(table, "MAX D", "PE: a row for each position, made once, never trained"),
    x=(x, "B T D", "embedded tokens"),
    y=(y, "B T D", "x plus the first T rows of the table, the same for each sentence"),
)

# %% tags=["hide-input"]
long_table = sinusoidal_encoding(100, 128)
figure, axes = plt.subplots(figsize=(8.5, 4.4))
image = axes.imshow(long_table, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
axes.set(title="sinusoidal encoding, $D$ = 128", ylabel="position $t$ (tokens)")
axes.set_xlabel("feature: sines at even numbers, cosines at odd ones")
axes.grid(False)
figure.colorbar(image, label="value")
plt.show()

# %% [markdown]
# Each row is a position, and no two are the same: the first pair alone tells them apart, since no
# whole number of radians is a whole number of turns. The fast features are at the left; in a number, the fast
# digit is at the right. In the right third hardly anything changes over 100 tokens: cosines stay near 1 and sines
# near 0.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `sinusoidal_encoding(length, d_model)` | two numbers, $T$ and $D$ | ($T$, $D$) |
# | `positional_encoding(x, table)` | ($B$, $T$, $D$), ($\ge T$, $D$) | $y$ ($B$, $T$, $D$), `cache` |
# | `positional_encoding_backward(dy, cache)` | ($B$, $T$, $D$) | $dx$ |
#
# The table is not trained, and has no gradient. Why the second and the third fact hold is said in sections 3 and 4:


# %%
def facts(sinusoidal_encoding, positional_encoding, positional_encoding_backward):
    table = sinusoidal_encoding(50, 8)
    yield "position 0 is 0, 1, 0, 1, …", np.array_equal(table[0], [0, 1] * 4)
    yield "every position has the length √(D/2) = 2", np.allclose((table**2).sum(axis=1), 4)
    yield "the last pair turns by 1/1000 at a time", np.isclose(table[1, 6], 0.001, rtol=1e-3)
    yield (
        "1 and 4 are as alike as 11 and 14",
        np.isclose(table[1] @ table[4], table[11] @ table[14]),
    )
    x = np.random.default_rng(6).standard_normal((2, 6, 8))
    y, cache = positional_encoding(x, table)
    yield "both sentences get the first rows", np.allclose(y - x, table[:6])
    yield "a change of x moves y as much", np.array_equal(positional_encoding_backward(x, cache), x)


try_yours("positional_encoding", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right:

# %%
show("positional_encoding")

# %% [markdown]
# ## 3 · Why a sine *and* a cosine: rotation
#
# Take one pair as a point in the plane, with the cosine to the right and the sine upwards. It lies on a
# circle, and with each token it moves on by the same angle $\omega_i$, like the hand of a clock. A position
# is $D / 2$ such clocks, each slower than the one before. Here are four of 32, at the first nine positions:

# %% tags=["hide-input"]
turn = np.linspace(0, 2 * np.pi, 200)
figure, panels = plt.subplots(1, 4, figsize=(10, 3.2))
for axes, pair in zip(panels, (0, 3, 6, 10), strict=True):
    sine, cosine = host_table[:9, 2 * pair], host_table[:9, 2 * pair + 1]
    axes.plot(np.cos(turn), np.sin(turn), "-", color="0.8", lw=1)
    axes.plot([0, cosine[8]], [0, sine[8]], "-", color=BLUE, lw=1.4)
    axes.plot(cosine, sine, "o", color=BLUE, ms=5)
    for t in range(9) if pair < 10 else (0, 8):
        axes.text(1.2 * cosine[t], 1.2 * sine[t], t, ha="center", va="center", fontsize=9)
    length = 2 * np.pi * 10000 ** (2 * pair / D)
    axes.set(aspect="equal", xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
    axes.set_title(f"pair {pair}: a turn in\n{length:.0f} tokens")
    axes.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1), xlabel="cosine")
panels[0].set_ylabel("sine")
plt.show()

# %% [markdown]
# What does a step of $k$ tokens do to a hand? By the addition theorems:
#
# $$
# \begin{aligned}
# \sin(\omega (t + k)) &= \sin(\omega t) \cos(\omega k) + \cos(\omega t) \sin(\omega k) \\
# \cos(\omega (t + k)) &= \cos(\omega t) \cos(\omega k) - \sin(\omega t) \sin(\omega k)
# \end{aligned}
# $$
#
# The right sides are linear in the pair at $t$, and their coefficients contain $k$ but not $t$. As a matrix:
#
# $$
# \begin{pmatrix} \sin(\omega (t + k)) \\ \cos(\omega (t + k)) \end{pmatrix}
# =
# \underbrace{\begin{pmatrix} \cos(\omega k) & \sin(\omega k) \\ -\sin(\omega k) & \cos(\omega k) \end{pmatrix}}_{R_{\omega k}}
# \begin{pmatrix} \sin(\omega t) \\ \cos(\omega t) \end{pmatrix} .
# $$
#
# It turns the hand by the angle $\omega k$. (In the usual matrix of a rotation the minus stands at the upper
# right; here it is at the lower left because the sine, the upward coordinate, comes first.) One matrix $R_k$ (D, D)
# with these $2 \times 2$ blocks on its diagonal turns all pairs: $PE_{t + k} = R_k \, PE_t$ **for every** $t$. This
# is what the paper means by "$PE_{pos + k}$ can be represented as a linear function of $PE_{pos}$": *three words
# back* is the same linear map everywhere in the sentence. And queries and keys are made by linear maps, $W^Q$ and
# $W^K$.
#
# Both of the pair are needed. The sine alone does not tell whether the wave is rising or falling. We let least
# squares look for the best matrix that moves positions on by $k = 3$, and look at the error that remains. The second
# table has sines only. The third has an easy mistake: $\omega$ is taken from the number of the *feature*, not of the
# pair, so that a sine and the cosine beside it have different frequencies. As a picture it looks much the same.

# %%
features = np.arange(D)
both = sinusoidal_encoding(400, 2 * D)  # sine and cosine of D frequencies, one for each feature
tables = {
    "the package": sinusoidal_encoding(400, D),
    "sines only": sinusoidal_encoding(400, D)[:, ::2],
    "a frequency for each feature": both[:, 2 * features + features % 2],
}
errors = {}
for name, candidate in tables.items():
    matrix, *_ = np.linalg.lstsq(candidate[:-3], candidate[3:], rcond=None)  # (D, D)
    errors[name] = abs(candidate[:-3] @ matrix - candidate[3:]).max()
    print(f"{name:<30} largest error of the best shift by 3: {errors[name]:.0e}")
assert errors["the package"] < 1e-9
assert min(errors["sines only"], errors["a frequency for each feature"]) > 1e-3

# %% [markdown]
# No gradient check finds that mistake: the backward has nothing to do with it.
#
# ### A head that looks one word back, built by hand
#
# Let the query of position $t$ be $R_{-1} PE_t = PE_{t-1}$, and the key of position $s$ be $PE_s$. The score is
# then the dot product of the positions $t - 1$ and $s$. All positions have the same length (section 4), so it is
# largest where the two are the same. A factor $c$ on the queries makes the head sharper. Here are two such heads, and
# one that looks three words ahead:


# %%
def rotation(k, d_model):
    """R_k (D, D): two by two blocks on the diagonal."""
    matrix = np.zeros((d_model, d_model))
    for i in range(d_model // 2):
        angle = k * 10000.0 ** (-2 * i / d_model)
        block = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return matrix


assert np.allclose(host_table[:-7] @ rotation(7, D).T, host_table[7:])  # rows times Rᵀ

keys = host_table[:12]
values = np.eye(12)  # so that the output is the weights
heads = {}
for step, sharpness in ((-1, 6), (-1, 60), (3, 60)):
    queries = sharpness * keys @ rotation(step, D).T
    heads[step, sharpness], _ = scaled_dot_product_attention(queries, keys, values)

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True)
for axes, ((step, sharpness), weights) in zip(panels, heads.items(), strict=True):
    image = axes.imshow(weights, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    axes.set(title=f"step {step:+d}, $c$ = {sharpness}".replace("-", "−"), xlabel="key (position)")
    axes.set(xticks=range(0, 12, 2), yticks=range(0, 12, 2))
    axes.grid(False)
panels[0].set_ylabel("query (position)")
figure.colorbar(image, ax=panels, shrink=0.8, label="attention weight")
plt.show()

# %% [markdown]
# One matrix serves every position. Where the position asked for does not exist, the head takes what is nearest.
# [Lesson 09](09_multi_head_attention.ipynb) trains heads that look one token back; nobody builds them.
#
# ## 4 · How alike are two positions?
#
# The score above was a dot product of positions. With $\cos(a - b) = \sin a \sin b + \cos a \cos b$,
#
# $$
# PE_t \cdot PE_{t + k}
# = \sum_{i} \left( \sin(\omega_i t) \sin(\omega_i (t + k)) + \cos(\omega_i t) \cos(\omega_i (t + k)) \right)
# = \sum_{i = 0}^{D/2 - 1} \cos(\omega_i k) .
# $$
#
# $t$ is gone. **The dot product depends on the distance alone**. It is the same for $k$ and $-k$: it tells how
# far, not on which side. (For the side a rotation is needed, as in the head above.) At $k = 0$ each cosine
# is 1, so **every position has the same length**, $\sqrt{D / 2}$.
#
# How does it fall with the distance? Divide by $D / 2$: a mean of cosines over frequencies that are evenly
# spaced on a logarithmic scale, $\omega = 10000^{-u}$ with $u$ from 0 to 1. For many features the mean is
# nearly an integral, and we substitute $v = k \cdot 10000^{-u}$, so $dv = -v \ln(10000) \, du$:
#
# $$
# \frac2D \sum_i \cos(\omega_i k) \approx \int_0^1 \cos\left( k \cdot 10000^{-u} \right) du
# = \frac{1}{\ln 10000} \int_{k / 10000}^{k} \frac{\cos v}{v} \, dv .
# $$
#
# Now let $k$ be neither tiny nor huge, $1 \ll k \ll 10000$. Beyond $v \approx 1$ the cosine changes its sign again
# and again, and those parts nearly cancel. Below, $\cos v \approx 1$, and $\int dv / v$ is a logarithm. So the
# integral is $\ln 10000 - \ln k$ and a constant. Taken up to $\infty$ instead of $k$, it is called the cosine integral,
# and its constant is known (Abramowitz and Stegun, *Handbook of Mathematical Functions*, 1964, section 5.2):
#
# $$
# \int_\delta^\infty \frac{\cos v}{v} \, dv = -\ln \delta - \gamma + O(\delta^2) ,
# \qquad
# \gamma = 0.5772\dots \quad \text{(Euler's constant)} .
# $$
#
# What we have added is the part from $k$ to $\infty$, and it is small. Integrated by parts,
#
# $$
# \int_k^\infty \frac{\cos v}{v} \, dv = -\frac{\sin k}{k} + \int_k^\infty \frac{\sin v}{v^2} \, dv ,
# $$
#
# and both terms are at most $1 / k$. So with $\delta = k / 10000$:
#
# $$
# \boxed{ \; \frac{PE_t \cdot PE_{t + k}}{D / 2} \approx 1 - \frac{\ln k + \gamma}{\ln 10000} \; }
# $$
#
# **It falls with the logarithm of the distance**, and $\ln 10 / \ln 10000 = 1/4$: each factor of ten in distance
# costs a quarter. The picture has all pairs of 80 positions at the left:

# %%
distances = np.arange(1, 5001)
WIDTH = 512  # the paper's
far_table = sinusoidal_encoding(5001, WIDTH)
likeness = far_table[1:] @ far_table[0] / (WIDTH / 2)
formula = 1 - (np.log(distances) + np.euler_gamma) / np.log(10000)

largest = abs(likeness - formula)[4:1000].max()
print(f"largest difference from the formula for k = 5 to 1000, D = 512: {largest:.3f}")
assert largest < 0.06

# %% tags=["hide-input"]
near = sinusoidal_encoding(80, WIDTH)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(4, 5))
image = left.imshow(near @ near.T / (WIDTH / 2), cmap="viridis", vmin=0.3, vmax=1)
left.set(title="$PE_t · PE_s$, in units of $D/2$", xlabel="$s$ (tokens)", ylabel="$t$ (tokens)")
left.grid(False)
figure.colorbar(image, ax=left, shrink=0.85)
right.semilogx(distances, likeness, "-", color=BLUE, label="dot product, $D$ = 512")
right.semilogx(
    distances, formula, "-", color=BLACK, lw=1, label=r"$1 - (\ln k + \gamma) / \ln 10000$"
)
right.set(xlabel="distance $k$ (tokens)", ylabel="in units of $D/2$")
right.legend(loc="lower left")
plt.show()

# %% [markdown]
# The likeness does not vanish with the distance: at $D = 512$, two positions a thousand tokens apart still share
# almost a fifth. The left picture is constant along each diagonal, and brightest in the middle. So a head whose
# $W^Q$ and $W^K$ do nothing with positions already prefers its neighbourhood.
#
# ## 5 · Added, not appended: who is louder?
#
# Word and position are *added*, in the same $D$ features. Does one drown the other? Here the factor
# $\sqrt D$ of the embedding matters (section 3.4 of the paper). This package draws the entries of the
# embedding matrix with variance $1 / D$, so that it can serve as the output projection as well: a row of
# it has length about 1. The position has length $\sqrt{D / 2}$, whatever is learned.

# %%
paper_width = embedding_weight(1000, 512, rng).data  # (V, D)
words, _ = embedding(np.arange(1000), paper_width)
print(f"a word, as it is stored       {np.linalg.norm(paper_width, axis=-1).mean():5.1f}")
print(f"a word, times √D              {np.linalg.norm(words, axis=-1).mean():5.1f}")
print(f"a position, √(D/2)            {np.linalg.norm(sinusoidal_encoding(50, 512)[7]):5.1f}")

# %% [markdown]
# With the factor, the word is $\sqrt 2$ times as long as the position. Without it, it would be a sixteenth of
# the position at $D = 512$. And can the two be told apart in the sum? In many dimensions two vectors that
# have nothing to do with each other are nearly orthogonal, with a cosine of about $1 / \sqrt D$. So a dot product
# with a position hardly depends on the word.
#
# ### The backward
#
# A sum with a constant: $dx = dy$. (The second exercise makes the table a parameter.)

# %%
report = check_pair(
    lambda x: positional_encoding(x, host_table), positional_encoding_backward, (to_host(x),)
)
assert report.right
print(report)

# %% [markdown]
# PyTorch has no such layer, but complex numbers, of which a position is $D / 2$: clock hands of length 1.

# %%
if find_spec("torch"):
    import torch

    frequency = 10000 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    angles = torch.arange(MAX)[:, None] * frequency
    hands = torch.polar(torch.ones_like(angles), angles)
    theirs = torch.stack([hands.imag, hands.real], dim=-1).flatten(1)
    print("largest difference of the tables:", abs(host_table - theirs.numpy()).max())
    assert np.allclose(host_table, theirs.numpy(), atol=1e-6)

# %% [markdown]
# ## 6 · What is it worth?
#
# Two small Transformers learn to say a sequence backwards: `7 4 9` becomes `9 4 7`. One has positions. From
# the other we take them away, by setting its table to zero. They train on sequences of 3 to 8 symbols out of ten,
# three times each, with other seeds. Then we count how many symbols are right, given those before, also in sequences
# longer than any in training.

# %%
LONGEST, SYMBOLS, BEGIN, END = 8, 10, 1, 2


def examples(count, length):
    """Ids of sequences and of the same backwards: source, target, labels, (count, length + 1)."""
    x = rng.integers(3, 3 + SYMBOLS, (count, length))
    begin, end = np.full((count, 1), BEGIN), np.full((count, 1), END)
    source = np.concatenate([x, end], axis=1)
    labels = np.concatenate([x[:, ::-1], end], axis=1)
    target = np.concatenate([begin, x[:, ::-1]], axis=1)
    return source, target, labels


def trained(with_positions, seed, steps=400, peak=8e-3):
    config = TransformerConfig(
        SYMBOLS + 3,
        SYMBOLS + 3,
        d_model=32,
        num_heads=2,
        d_ff=64,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=0.0,
        norm="pre",
        max_length=32,
    )
    model = Transformer(config, seed=seed, device=device)
    if not with_positions:
        model.positional_encoding.table.fill(0)
    adam = Adam(model.flat)
    for step in range(1, steps + 1):
        model.zero_grad()
        _, cache = model.loss(Batch(*examples(64, int(rng.integers(3, LONGEST + 1)))))
        model.loss_backward(1.0, cache)
        adam.step(peak * min(1, step / 50, 2 * (steps - step + 1) / steps))  # up, level, down to 0
    return model


def share_right(model, length):
    source, target, labels = examples(300, length)
    logits, _ = model.forward(source, target)
    said = to_host(logits).argmax(axis=-1)
    return (said == labels)[:, :-1].mean()  # without the end symbol


lengths = np.arange(3, 15)
right = {"with": [], "without": []}  # for each seed, the share at each length
for seed in (6, 7, 8):
    for name, shares in right.items():
        model = trained(name == "with", seed)
        shares.append([share_right(model, n) for n in lengths])
right = {name: np.array(shares) for name, shares in right.items()}  # (3, lengths)

# %% [markdown]
# How good can a model be that knows the bag of symbols, but not their order? It knows what it has said so
# far, so it knows which symbols are left, and how often each. The best it can do is to say the one of which
# most are left. No training beats that, and we can count it:


# %%
def share_right_from_a_bag(length):
    sequences = rng.integers(SYMBOLS, size=(2000, length))
    chances = [
        np.bincount(sequence[t:], minlength=SYMBOLS).max() / (length - t)
        for sequence in sequences
        for t in range(length)
    ]
    return np.mean(chances)


bag = np.array([share_right_from_a_bag(n) for n in lengths])
known, unknown = lengths <= LONGEST, lengths >= LONGEST + 3
assert (right["with"][:, known].mean(axis=1) > 0.9).all()
assert (right["without"] < bag + 0.05).all()
assert (right["with"][:, unknown] < right["without"][:, unknown]).all()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4.2))
axes.axvspan(LONGEST + 0.5, lengths[-1] + 0.5, color="0.93", lw=0)
axes.text(LONGEST + 0.7, 1.03, "longer than in training", fontsize=9.5)
axes.plot(lengths, right["with"].T, "o-", color=BLUE, label=["with positions", "", ""])
axes.plot(lengths, right["without"].T, "s--", color=VERMILION, label=["without", "", ""])
axes.plot(lengths, bag, "-", color=BLACK, lw=1, label="best possible for a bag of symbols")
axes.axhline(1 / SYMBOLS, color=GREEN, ls=":", label="a guess")
axes.set(xlabel="length of the sequence (tokens)", ylabel="symbols right, of all", ylim=(0, 1.1))
axes.legend(loc="lower left", bbox_to_anchor=(0, 0.1), title="three seeds each")
plt.show()

# %% [markdown]
# Without positions the model becomes as good as a bag allows, and no better. With them it gets nearly all symbols
# right, up to the longest sequence of its training. A few tokens beyond, it is worse than the model without positions.
#
# The paper hopes that sinusoids "may allow the model to extrapolate to sequence lengths longer than the ones
# encountered during training". The *table* has a row for every length. But the weights were trained on the first
# rows, and nothing made them right for the others. The paper found learned positions to be
# as good (table 3, row E), and those have no further rows at all. If long sequences matter, train on long sequences.
#
# ## 7 · Exercises
#
# Fill in `answers/ex06.py`, your copy of [lessons/exercises/ex06.py](exercises/ex06.py), and run
# `minitransformer check ex06`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex06.py](solutions/ex06.py).
#
# 1. **`pairs_that_turn`** (10 min). How many of the clocks go round at least once within a sentence? For
#    $D = 512$ and 30 tokens, guess first.
# 2. **`learned_positions`** (25 min). The table as a parameter, as in row E of table 3. Which rows get a
#    gradient, and from how many sentences?
# 3. **`rotary`** (45 min). Do not add the position: *turn* queries and keys by it. Their dot product then
#    knows the distance by itself, whatever the words are (Su and others, *RoFormer*, 2021).

# %%
print(check_exercise("ex06", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | why | attention of permuted tokens is the permuted attention: without positions, a bag of words |
# | encoding | $PE_{t, 2i} = \sin(\omega_i t), \quad PE_{t, 2i+1} = \cos(\omega_i t), \quad \omega_i = 10000^{-2i/D}$ |
# | forward, backward | $y = \sqrt D \, E_{\text{id}} + PE_t, \quad dx = dy$; the table has no gradient |
# | shapes | table (max_length, D), added to (B, T, D) |
# | a step is a rotation | $PE_{t+k} = R_k \, PE_t$, for every $t$: "$k$ words back" is one linear map |
# | likeness | $PE_t \cdot PE_{t+k} = \sum_i \cos(\omega_i k) \approx \frac D2 \left( 1 - \frac{\ln k + \gamma}{\ln 10000} \right)$: a quarter for each factor of ten |
# | traps | one frequency for each *pair*, not each feature; the factor $\sqrt D$; longer than trained is not learned |
#
# **Your own Transformer.** `sinusoidal_encoding`, and `positional_encoding` with its backward:
# `minitransformer check own`.
#
# **Next:** every layer adds to its rows, and they must keep their size: [lesson 07](07_layer_norm.ipynb).
