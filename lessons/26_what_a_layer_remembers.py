# %% [markdown]
# # 26 · What a layer remembers
#
# **You will** train a recurrent layer and attention to remember one symbol over a distance, and then many; find what
# decides whether the recurrent layer learns it; and see what attention could do, and does not learn.
#
# | | |
# |---|---|
# | In the paper | section 4: "the shorter these paths …, the easier it is to learn long-range dependencies" |
# | In the package | `minitransformer/layers/attention.py`, `layers/gru.py` |
# | You need | attention ([lesson 08](08_attention.ipynb)); gates ([lesson 19](19_recurrence.ipynb)) |
# | Time | half an hour to read, two and a half for the exercises |

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
import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, select_device
from minitransformer.core.module import FlatParameters, Module
from minitransformer.core.twins import accelerated
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.embedding import Embedding, embedding_weight
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.gru import GRU, gru_cell
from minitransformer.layers.linear import Linear
from minitransformer.layers.masks import causal_mask
from minitransformer.layers.positional_encoding import PositionalEncoding
from minitransformer.layers.residual import ResidualConnection
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.optim import clipping

use_style()
device = select_device("cpu")  # "cuda" is no gain here: the models are small
rng = np.random.default_rng(26)

# %% [markdown]
# ## 1 · Does a short path help to remember?
#
# From one word to another, attention takes one layer and a recurrent layer as many steps as lie between them
# ([lesson 21](21_why_self_attention.ipynb)). The paper says of such paths: the shorter, the easier to learn. It does
# not test this on its own. We do: *one symbol of a random sequence is marked; at the end, say which it was.*
#
# A model is an embedding, two layers with residual connections and LayerNorm, and a linear map. The recurrent layer is
# a GRU, whose gate $z$ says what share of each number is kept:

# %%
source_of(gru_cell)

# %% [markdown]
# Attention looks back only, and is given positions, since it does not know the order of words
# ([lesson 06](06_positions.ipynb)). The widths make both models equally large.


# %%
class Attention(MultiHeadAttention):
    def forward(self, x):
        return super().forward(x, x, x, causal_mask(x[:, :, 0]))

    def backward(self, dy, cache):
        return sum(super().backward(dy, cache))


class Recurrent(GRU):
    def forward(self, x):
        (y, _), cache = super().forward(x)
        return y, cache

    def backward(self, dy, cache):
        return super().backward((dy, None), cache)[0]


class SmallModel(Module):
    """Embedding, layers with residual connections, a linear map to the answers."""

    def __init__(self, layers, width, words, answers, rng, positions=True):
        self.embedding = Embedding(embedding_weight(words, width, rng))
        self.positions = PositionalEncoding(512, width) if positions else None
        self.layers = layers
        self.residuals = [ResidualConnection(width, norm="pre") for _ in layers]
        self.output = Linear(width, answers, rng)
        self.flat = FlatParameters(self)

    def forward(self, ids):
        x, embedding_cache = self.embedding.forward(ids)  # (B, T, D)
        if self.positions:
            x, _ = self.positions.forward(x)
        caches = []
        for layer, residual in zip(self.layers, self.residuals, strict=True):
            h, enter_cache = residual.enter(x)  # LayerNorm
            h, layer_cache = layer.forward(h)
            x, leave_cache = residual.leave(x, h)  # x + h
            caches.append((layer, residual, enter_cache, layer_cache, leave_cache))
        logits, output_cache = self.output.forward(x)  # (B, T, answers)
        return logits, (embedding_cache, caches, output_cache)

    def backward(self, dlogits, cache):
        embedding_cache, caches, output_cache = cache
        dx = self.output.backward(dlogits, output_cache)
        for layer, residual, enter_cache, layer_cache, leave_cache in reversed(caches):
            dx, dh = residual.leave_backward(dx, leave_cache)
            dx = dx + residual.enter_backward(layer.backward(dh, layer_cache), enter_cache)
        self.embedding.backward(dx, embedding_cache)


def train(model, batch_of, steps, seed, peak=1e-2):
    """Adam on batches (ids (B, T), answers (B, A)): what to say at the last A positions."""
    draw, adam = np.random.default_rng(seed), Adam(model.flat)
    for step in range(steps):
        ids, answers = batch_of(draw)
        model.zero_grad()
        with accelerated():  # the same results sooner
            logits, cache = model.forward(ids)
            asked = np.s_[:, -answers.shape[1] :]
            _, loss_cache = cross_entropy(logits[asked], answers, pad_id=-1)
            dlogits = np.zeros_like(logits)
            dlogits[asked] = cross_entropy_backward(1.0, loss_cache)
            model.backward(dlogits, cache)
        scale = clipping.clip_scale(clipping.gradient_norm(model.flat.grad), 1.0)
        adam.step(peak * min(1, (step + 1) / 30, 2 * (steps - step) / steps), scale)
    return model


def share_right(model, ids, answers):
    """How often the most probable answer is right, at each of the last A positions, (A,)."""
    logits, _ = model.forward(ids)
    return (logits[:, -answers.shape[1] :].argmax(axis=-1) == answers).mean(axis=0)


# %% [markdown]
# ### One symbol, far away
#
# There are 8 symbols, so a guess is right once in 8. Each may be marked: that is another 8 words. One more word asks.
# Training has distances from 2 to 200, as many below 20 as above; or from 50 to 60 alone; or from 190 to 200 alone.
# The GRU gets 200 updates and attention 60, and all are asked at the largest distance of their training. Three seeds
# each:

# %%
SYMBOLS, ASK = 8, 16  # words 0 … 7, the same marked 8 … 15, the question
SEEDS = (0, 1, 2)


def recall_batch(draw, count, distance):
    before = draw.integers(9)
    ids = draw.integers(SYMBOLS, size=(count, before + distance + 1))
    answers = draw.integers(SYMBOLS, size=(count, 1))
    ids[:, before] = SYMBOLS + answers[:, 0]
    ids[:, -1] = ASK
    return ids, answers


def distances(first, last):
    """Batches whose distance is drawn evenly on a logarithmic scale."""
    ends = np.log([first, last + 1])
    return lambda draw: recall_batch(draw, 32, int(np.exp(draw.uniform(*ends))))


def new_model(name, width, words, seed):
    draw = np.random.default_rng(seed)
    kind, extra = (Attention, 1) if name == "attention" else (Recurrent, width)
    layers = [kind(width, extra, draw) for _ in range(2)]
    return SmallModel(layers, width, words, SYMBOLS, draw, positions=kind is Attention)


ids, answers = recall_batch(rng, 2, 10)
logits, _ = new_model("recurrent", 26, ASK + 1, seed=0).forward(ids)
shape_table(
    {"B": 2, "T": ids.shape[1], "answers": SYMBOLS},
    ids=(ids, "B T", "symbols, one of them marked, and the question"),
    logits=(logits, "B T answers", "of which the last position's count"),
)

# %%
TRAINED = [("recurrent", 26, 200, *ends) for ends in ((2, 200), (50, 60), (190, 200))]
recalled = {}
for name, width, updates, first, last in (*TRAINED, ("attention", 32, 60, 190, 200)):
    models = [
        train(new_model(name, width, ASK + 1, seed), distances(first, last), updates, seed)
        for seed in SEEDS
    ]
    shares = [share_right(model, *recall_batch(rng, 300, last))[0] for model in models]
    recalled[name, first] = shares
    print(f"{name:10} trained at {first:3} to {last:3}:", *(f"{s:5.0%}" for s in shares))

assert min(*recalled["recurrent", 2], *recalled["attention", 190]) > 0.9
assert max(recalled["recurrent", 190]) < 0.3 < np.median(recalled["recurrent", 50])

# %% [markdown]
# **The paper's claim holds: over the long path it is harder to learn.** The GRU learns at 50 to 60, more or less by
# seed. At 190 to 200 it guesses, and attention is always right. But a long path is no wall, as a view is: what a
# convolution does not see, no training brings back ([lesson 20](20_convolution.ipynb), section 7). The gates of a GRU
# hold a value for as long as they stay open for it. At the start they are half open, and next to no gradient arrives
# from 200 steps back ([lesson 19](19_recurrence.ipynb)). Where near cases teach them, the far ones follow: the first
# row.
#
# ## 2 · How much does it hold?
#
# What a recurrent layer knows of the past has to fit into one vector. Now each word is a **pair** of one of 16 keys
# and one of 8 values. All keys in a sequence are different. The question at the end names a key, and any may be asked
# for. The GRU gets one width and twice that, and one number of updates and two and a half times that:

# %%
KEYS, VALUES = 16, SYMBOLS


def pairs_batch(draw, count, pairs):
    """A word for each pair, key · VALUES + value, and the question, KEYS · VALUES + key."""
    keys = draw.permuted(np.tile(np.arange(KEYS), (count, 1)), axis=1)[:, :pairs]
    values = draw.integers(VALUES, size=(count, pairs))
    asked = draw.integers(pairs, size=(count, 1))
    question = KEYS * VALUES + np.take_along_axis(keys, asked, axis=1)
    ids = np.concatenate([keys * VALUES + values, question], axis=1)  # (B, pairs + 1)
    return ids, np.take_along_axis(values, asked, axis=1)


def mixed_pairs(draw):
    return pairs_batch(draw, 64, draw.integers(1, KEYS + 1))


PAIRS = [1, 2, 3, 4, 6, 8, 12, 16]
RUNS = [  # kind of layer, width, updates
    ("attention", 32, 200),
    *(("recurrent", width, updates) for updates in (200, 500) for width in (26, 52)),
]
held = {}
print("right at", *(f"{pairs:3} pairs" for pairs in (4, 8, 16)), "  mean of three seeds")
for name, width, updates in RUNS:
    models = [
        train(new_model(name, width, KEYS * (VALUES + 1), seed), mixed_pairs, updates, seed)
        for seed in SEEDS
    ]
    run = f"{name}, width {width}, {updates} updates"
    held[run] = np.array(
        [[share_right(model, *pairs_batch(rng, 400, p))[0] for p in PAIRS] for model in models]
    )  # (seeds, numbers of pairs)
    print("        ", *(f"{held[run][:, PAIRS.index(p)].mean():9.0%}" for p in (4, 8, 16)), run)
attention, small, wider, longer, both = (shares.mean(axis=0) for shares in held.values())
assert attention.min() > 0.9
for pairs in (4, 8):
    i = PAIRS.index(pairs)
    assert small[i] < min(wider[i], longer[i]) <= max(wider[i], longer[i]) < both[i]

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4))
looks = [(BLUE, "-o"), *((VERMILION, style) for style in ("--s", ":D", "-.^", "-v"))]
for (run, shares), (colour, style) in zip(held.items(), looks, strict=True):
    axes.plot(PAIRS, shares.T, style, color=colour, ms=5, lw=1.2, label=[run, "", ""])
axes.axhline(1 / VALUES, color=BLACK, lw=0.8)
axes.text(1, 1 / VALUES + 0.02, "a guess")
axes.set(xlabel="pairs to remember", ylabel="right answers, of all", ylim=(0, 1.08))
axes.legend(title="three seeds each", loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
plt.show()

# %% [markdown]
# Attention keeps every word, and finds the right one by its key, as a dictionary does. The GRU must write all it hears
# into the same 26 numbers of a layer. A larger state holds more *after as many updates*; but so does the same state
# after more of them, and both together help most. So this is what is learned in a given time, not what 26 numbers could
# hold at most. Packing is slow to learn, and attention does not need it. ([Lesson
# 25](25_one_vector_or_attention.ipynb) finds the same in a translator.)
#
# ## 3 · Running state
#
# A bit string comes in. At each bit, say whether the number of ones so far is odd. One bit of memory is enough: turn
# it over at each 1. A recurrent layer can do exactly this. Attention takes means of what it sees. In a mean of $n$
# bits, one bit moves the result by $1 / n$, and yet must turn the answer over: for long enough strings, attention with
# bounded weights cannot be sure (Hahn 2020).
#
# Training is on strings of 2 to 20 bits, the test on 60. The GRU has one layer; attention has two, a feed-forward
# network after each, and twice the updates.

# %%
LONGEST, TESTED = 20, 60


def parity_batch(draw, count, length):
    bits = draw.integers(2, size=(count, length))
    return bits, bits.cumsum(axis=1) % 2


def mixed_lengths(draw):
    return parity_batch(draw, 64, draw.integers(2, LONGEST + 1))


def parity_model(name, seed, width=24):
    draw = np.random.default_rng(seed)
    if name == "recurrent":
        layers = [Recurrent(width, width, draw)]
    else:
        pairs = [(Attention(width, 2, draw), FeedForward(width, 2 * width, draw)) for _ in "12"]
        layers = [layer for pair in pairs for layer in pair]
    return SmallModel(layers, width, 2, 2, draw, positions=name == "attention")


parity = {}
for name, updates in (("recurrent", 200), ("attention", 400)):
    models = [train(parity_model(name, s), mixed_lengths, updates, s) for s in SEEDS]
    test = parity_batch(rng, 500, TESTED)
    parity[name] = np.array([share_right(model, *test) for model in models])  # (seeds, TESTED)
    print(f"{name:10} {models[0].num_parameters():5} parameters, {updates} updates")

assert (parity["recurrent"] > 0.99).all()
assert (parity["attention"][:, :5] > 0.9).all()
assert (parity["attention"][:, 15:].mean(axis=1) < 0.6).all()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(8, 4))
axes.axvspan(LONGEST + 0.5, TESTED + 0.5, color="0.94", lw=0)
axes.text(LONGEST + 1, 1.03, "longer than in training", fontsize=9.5)
for (name, shares), colour, dashes in zip(parity.items(), (VERMILION, BLUE), "-:", strict=True):
    axes.plot(np.arange(1, TESTED + 1), shares.T, dashes, color=colour, label=[name, "", ""])
axes.plot([0, TESTED + 1], [0.5, 0.5], color="0.4", ls="-", lw=0.8)
axes.text(TESTED + 1.5, 0.5, "a guess", va="center")
axes.set(xlabel="bits so far", ylabel="right answers, of all", xlim=(0, 68), ylim=(0.35, 1.1))
axes.legend(title="three seeds each", loc="center right")
plt.show()

# %% [markdown]
# The GRU has found the rule, and goes on to 60 bits. Attention learns short strings. Beyond fifteen bits it guesses,
# though training had twenty.
#
# Can it not? It takes a fixed number of steps, however long the string is. Yet **Transformers of fixed depth that
# compute parity exist** (Chiang and Cholak 2022): with weights written by hand they are right for any length, and
# with LayerNorm as sure as one likes. **What fails is learning it.** From random weights, training found something
# else, which holds for short strings.
#
# ## 4 · Exercises
#
# Fill in `answers/ex26.py`, your copy of [lessons/exercises/ex26.py](exercises/ex26.py), or copy its functions into
# cells here, and run the cell below or `minitransformer check ex26`. Solutions:
# [lessons/solutions/ex26.py](solutions/ex26.py).
#
# 1. **`recall_weights`** (45 min). What section 2 trained, written by hand: matrices with which a layer of attention
#    finds a value by its key, in a thousand words.
# 2. **`linear_attention`** (90 min). Attention without the softmax, in $O(n d^2)$: a recurrent layer in disguise
#    (Katharopoulos and others 2020). Its backward has the same running sums, the other way round.

# %%
print(check_exercise("ex26", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | a long path | no wall, but hard to learn: a GRU fails where all that it is shown is far away, attention does not |
# | a state | holds more if it is larger, or trained longer; attention keeps everything |
# | running state | recurrence learns the rule; attention could compute it, and learns short strings |
#
# **Your own Transformer.** No function for `own.py`. `minitransformer check own` says how far yours is.
#
# **Next:** half a Transformer, which goes on with a text, in [lesson 22](22_a_language_model.ipynb).
