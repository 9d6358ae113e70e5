# %% [markdown]
# # 19 · Recurrence
#
# **You will** count words and see how far that goes; derive backpropagation through time, every step of it;
# measure how much of a gradient arrives from far away, and what gates do for it; and watch a translator fail on
# long sentences until it is given attention.
#
# | | |
# |---|---|
# | In the paper | sections 1 and 2, on what was there before; section 3.2.1, which compares the two attentions; Table 1 |
# | In the package | `minitransformer/models/n_gram.py`, `layers/recurrence.py`, `layers/elman.py`, `layers/gru.py`, `layers/lstm.py`, `layers/additive_attention.py`, `models/recurrent_translator.py` |
# | You need | the chain rule; matrix products; [lesson 08](08_attention.ipynb) for section 6 |
# | Time | an hour and a quarter to read, three for the exercises |

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
import math
import re
from itertools import islice

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, Translator, select_device
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.data.text.batches import Batch, encode_pairs, make_batches
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import BOS, EOS, Vocabulary
from minitransformer.decoding.greedy import greedy
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_pair
from minitransformer.layers.additive_attention import (
    additive_attention,
    additive_attention_backward,
)
from minitransformer.layers.elman import (
    Elman,
    elman,
    elman_backward,
    elman_cell,
    elman_cell_backward,
)
from minitransformer.layers.gru import GRU, gru_cell, gru_cell_backward
from minitransformer.layers.lstm import LSTM
from minitransformer.layers.recurrence import recurrence_backward
from minitransformer.models.n_gram import NGramModel
from minitransformer.models.recurrent_translator import (
    RecurrentTranslator,
    RecurrentTranslatorConfig,
)
from minitransformer.optim import clipping, schedule

use_style()
device = select_device("cpu")  # "cuda" runs the layer of section 2 and the translators on a GPU
rng = np.random.default_rng(19)

# %% [markdown]
# ## 1 · Counting words
#
# You have built the Transformer. This second part of the course is about what it replaced.
#
# A **language model** says how probable each next word is, given the words before. An early way is to count (Shannon
# 1948). An **n-gram** model of order $n$ looks at the $n - 1$ words before and asks the training text: what came
# after these, and how often? For the words $h$ and a next word $w$, with $c$ for a count,
#
# $$
# p(w \mid h) = \frac{c(h \, w)}{c(h)} .
# $$
#
# Most runs of words never occur in the training text, and would get the probability 0. So every count is lowered
# by a little, and what this frees goes to the model of order $n - 1$ (Kneser and Ney 1995; the formula stands in
# `minitransformer/models/n_gram.py`).
#
# We count the English side of the toy corpus, cut into subwords. The score is the **perplexity** on sentences
# that were not counted, the exponential of the mean of $-\ln p$. A model that always hesitates between $k$
# equally probable words has the perplexity $k$.

# %%
corpus = toy_corpus()
vocabulary = Vocabulary.train([text for pair in corpus["train"] for text in pair], 1000)
V = len(vocabulary)


def ids_of(split):
    return [[*ids, EOS] for ids in vocabulary.encode_all([english for _, english in corpus[split]])]


ORDERS = (1, 2, 3, 4, 5)
counted = {order: NGramModel(ids_of("train"), order, V, BOS) for order in ORDERS}
held_out = ids_of("validation")
perplexities = [math.exp(model.nll(held_out)) for model in counted.values()]
print(f"{len(corpus['train']):,} sentences counted, {V} subwords")
for order, perplexity in zip(ORDERS, perplexities, strict=True):
    print(f"order {order}: perplexity {perplexity:6.1f}")

# %% [markdown]
# One subword of context helps a lot, a second one a little. More do not help: longer runs are too rare.
#
# What does such a model miss? Take two sentences:
#
# > The **woman** whom the students are looking for **is** dancing.
# >
# > The **women** whom the students are looking for **are** dancing.
#
# The second word decides between *is* and *are*, seven words before. An order of 8 would see it, but would have to
# meet these very words in training. No order up to five sees it:

# %%
REST = "whom the students are looking for"
IS, ARE = (vocabulary.encode(f"the woman {verb}")[-1] for verb in ("is", "are"))
START = (BOS,) * max(ORDERS)


def prefers_are(model, text):
    """How much more probable than ``is`` the model finds ``are`` after a text."""
    context = (*START, *vocabulary.encode(text))[1 - model.order :] if model.order > 1 else ()
    return model.probability(ARE, context) / model.probability(IS, context)


print("p(are) / p(is)  after The woman …   after The women …")
for order, model in counted.items():
    one, many = (prefers_are(model, f"The {who} {REST}") for who in ("woman", "women"))
    print(f"   order {order} {one:17.2f} {many:19.2f}")
    assert one == many

# %% [markdown]
# The two columns are equal. How often does that hurt? We take sentences from the validation and test text where *is*
# or *are* comes after a clause with *who* or *whom*. Each model chooses one of the two, and we compare it with
# always saying *is*. On the left the perplexity of each order, on the right the share of right choices:

# %%
RELATIVE = re.compile(r"(.* (?:who|whom) .*) (is|are) (?:\w+|falling asleep)\.")
matches = [
    RELATIVE.fullmatch(english) for split in ("validation", "test") for _, english in corpus[split]
]
choices = [match.groups() for match in matches if match]
plural = np.array([verb == "are" for _, verb in choices])
always_is = 1 - plural.mean()
chosen_right = [
    np.mean(
        [(prefers_are(model, text) > 1) == p for (text, _), p in zip(choices, plural, strict=True)]
    )
    for model in counted.values()
]
print(f"{len(choices)} sentences; always *is*: {always_is:.0%} right")
for text, verb in choices[:3]:
    print(f"  {text} … {verb}")
assert max(chosen_right) < always_is + 0.05

# %% tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6))
left.semilogy(ORDERS, perplexities, "o-", color=BLUE)
left.set(ylabel="perplexity, validation text", ylim=(8, 200))
left.set_yticks([10, 20, 50, 100, 200], labels=["10", "20", "50", "100", "200"])
left.minorticks_off()
right.plot(ORDERS, chosen_right, "o-", color=BLUE)
right.axhline(always_is, color=BLACK, lw=1, ls="-")
right.text(5, always_is + 0.015, "always $is$", ha="right")
right.text(1, 0.42, f"{len(choices)} sentences")
right.set(ylabel="$is$ or $are$: share of right choices", ylim=(0.4, 1.02))
for axes in (left, right):
    axes.set(xlabel="order $n$ (subwords, the next one included)")
    axes.set_xticks(ORDERS)
plt.show()

# %% [markdown]
# No order is better than always saying *is*. We need something that carries what it has read over any distance.
#
# ## 2 · A state
#
# A **recurrent** network reads a sequence one step at a time. It keeps a vector of $D$ numbers, its **state**
# $h$. At each step it makes the next state from the present input $x_t$ and the last state (Elman 1990):
#
# $$
# h_t = \tanh(x_t W + h_{t-1} U + b), \qquad y_t = h_t .
# $$
#
# $W$, $U$ and $b$ are the same at all steps. So a sequence may have any length, and $h_t$ depends on all of
# $x_1 \dots x_t$. The output $y_t$ is the state; it has a name of its own because it goes elsewhere, to the next
# layer or to a loss. Vectors are rows, as everywhere in the package.

# %%
B, T, D_in, D = 2, 6, 4, 3
x, h0 = device.asarray(rng.standard_normal((B, T, D_in))), device.asarray(np.zeros((B, D)))
W, U = device.asarray(rng.standard_normal((D_in, D))), device.asarray(rng.standard_normal((D, D)))
b = device.asarray(rng.standard_normal(D))
(y, last), _ = elman(x, h0, W, U, b)

shape_table(
    {"B": B, "T": T, "D_in": D_in, "D": D},
    x=(x, "B T D_in", "the input: B sequences of T steps"),
    h0=(h0, "B D", "the state before the first step, here zeros"),
    W=(W, "D_in D", "from the input"),
    U=(U, "D D", "from the state before"),
    b=(b, "D", "bias"),
    y=(y, "B T D", "all states"),
    last=(last, "B D", "the last state, y at t = T"),
)

# %% [markdown]
# ## 3 · Backpropagation through time
#
# We write $dx$ for $\partial L / \partial x$, the gradient of a loss $L$. Given $dy_t$ for every step, we want the
# gradients of the inputs, of $h_0$, and of $W$, $U$ and $b$. First cut a step into small nodes:
#
# $$
# a_t = x_t W + b, \qquad u_t = h_{t-1} U, \qquad z_t = a_t + u_t, \qquad h_t = \tanh z_t, \qquad y_t = h_t .
# $$
#
# Then draw the steps one after another, **unrolled in time**. Three of them, values in blue, gradients in
# vermilion:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(9.5, 3.6))
axes.set(xlim=(-1.6, 9.4), ylim=(-0.15, 4.0))
axes.axis("off")


def both_ways(start, end, value, gradient, upright):
    """A pair of arrows: the value goes from start to end, its gradient comes back."""
    aside = np.array([0.13, 0.0] if upright else [0.0, 0.13])
    for from_, to, colour, side, text in (
        (start, end, BLUE, -1, value),
        (end, start, VERMILION, 1, gradient),
    ):
        shift = side * aside * (1 if upright else -1)
        style = dict(arrowstyle="-|>", color=colour, lw=1.6, ls="-" if side < 0 else (0, (4, 2)))
        style |= dict(shrinkA=18, shrinkB=18)
        axes.annotate("", np.array(to) + shift, np.array(from_) + shift, arrowprops=style)
        middle = (np.array(start) + np.array(end)) / 2 + shift * (1.6 if upright else 2.2)
        aligned = dict(ha="right" if side < 0 else "left", va="center")
        if not upright:
            aligned = dict(ha="center", va="bottom" if side < 0 else "top")
        axes.text(*middle, text, color=colour, **aligned)


for step, t in enumerate(("t-1", "t", "t+1")):
    across = 1 + 3 * step
    both_ways((across, 0), (across, 2), f"$a_{{{t}}}$", f"$da_{{{t}}}$", upright=True)
    both_ways((across, 2), (across, 3.9), f"$y_{{{t}}}$", f"$dy_{{{t}}}$", upright=True)
    after = {"t-1": "t", "t": "t+1", "t+1": "t+2"}[t]
    if step < 2:
        uses = f"$u_{{{after}}} = h_{{{t}}} U$", f"$du_{{{after}}} U^\\top$"
        both_ways((across, 2), (across + 3, 2), *uses, upright=False)
    axes.plot(across, 2, "o", ms=34, mfc="white", mec=BLACK, mew=1.6, zorder=3)
    axes.text(across, 2, f"$h_{{{t}}}$", ha="center", va="center", fontsize=12, zorder=4)
    axes.text(across, 0.1, f"$x_{{{t}}}$", ha="center", va="center", fontsize=12)
for start, end in (((-1.4, 2), (1, 2)), ((7, 2), (9.4, 2))):
    both_ways(start, end, "", "", upright=False)
plt.show()

# %% [markdown]
# Values go up and to the right, gradients down and to the left. Two blue arrows leave $h_t$, so two gradients
# come back to it. Now step by step.
#
# **Step 1: the tanh.** $\tanh z = \sinh z / \cosh z$, and $\sinh' = \cosh$, $\cosh' = \sinh$. By the quotient
# rule
#
# $$
# \tanh' z = \frac{\cosh^2 z - \sinh^2 z}{\cosh^2 z} = 1 - \tanh^2 z ,
# \qquad \text{so} \qquad
# dz_t = dh_t \circ (1 - h_t^2) ,
# $$
#
# with $\circ$ for the product entry by entry. The state itself is all that has to be kept.
#
# **Step 2: the sum.** $z_t = a_t + u_t$, and both derivatives are 1:
#
# $$
# da_t = dz_t, \qquad du_t = dz_t .
# $$
#
# **Step 3: the state is used twice.** $h_t$ is the output $y_t$, and it makes $u_{t+1} = h_t U$. With indices,
# $u_{t+1,j} = \sum_i h_{t,i} U_{ij}$, and $\partial u_{t+1,j} / \partial h_{t,i} = U_{ij}$. A variable that is used in
# several places gets the sum of the gradients from all of them:
#
# $$
# dh_{t,i} = dy_{t,i} + \sum_j du_{t+1,j} \, U_{ij} ,
# \qquad \text{as rows} \qquad
# dh_t = dy_t + du_{t+1} U^\top .
# $$
#
# The second term comes from the **future**. It holds all that the state does to later outputs. We know it only
# after step $t + 1$ is done, so the backward pass runs from the last step to the first. At $t = T$ there is no
# next step. There the term is zero, or the gradient of the last state, if that is used. $h_0$ is no output, so
# $dh_0 = du_1 U^\top$.
#
# **Step 4: the input.** $x_t$ is used once, in $a_t = x_t W + b$. As in step 3, $dx_t = da_t W^\top$.
#
# **Step 5: the weights are used $T$ times.** $U_{ij}$ takes part in $u_{t,j}$ of every step $t$ and every sequence
# $n$ of the batch, each time multiplied by $h_{t-1,i}$. So its gradient is a sum over both:
#
# $$
# dU_{ij} = \sum_t \sum_n h_{t-1,ni} \, du_{t,nj} ,
# \qquad \text{or} \qquad
# dU = \sum_t h_{t-1}^\top \, du_t ,
# $$
#
# where $h_{t-1}$ and $du_t$ are now $(B, D)$, a row for each sequence. In the same way $dW = \sum_t x_t^\top da_t$,
# and $db = \sum_t \sum_n da_{t,n}$, the sum of all rows.
#
# All together, for $t = T, \dots, 1$, with $du_{T+1} = 0$:
#
# $$
# \boxed{ \;
# \begin{aligned}
# dh_t &= dy_t + du_{t+1} U^\top & da_t = du_t &= dh_t \circ (1 - h_t^2) & dx_t &= da_t W^\top \\
# dW &= \sum_t x_t^\top da_t & dU &= \sum_t h_{t-1}^\top \, du_t & db &= \sum_t \sum_n da_{t,n}
# \end{aligned}
# \; }
# $$
#
# This is the chain rule on the unrolled graph, called **backpropagation through time** (Werbos 1990). As code:


# %%
def all_states(x, h0, W, U, b):
    states = [h0]
    for t in range(x.shape[1]):
        states.append(np.tanh(x[:, t] @ W + states[-1] @ U + b))
    return np.stack(states[1:], axis=1), (x, states, W, U)  # (B, T, D)


def through_time(dy, cache, mistake=None):
    """The box; with a mistake, see below."""
    x, states, W, U = cache
    dx, dW, dU, db = np.zeros_like(x), np.zeros_like(W), np.zeros_like(U), np.zeros(len(U))
    from_future = np.zeros_like(states[0])  # du_{t+1} Uᵀ
    for t in reversed(range(x.shape[1])):
        dh = dy[:, t] + from_future
        da = dh * (1 - states[t + 1] ** 2)  # and du; states[0] is h_0
        dx[:, t] = da @ W.T
        dW += x[:, t].T @ da
        dU = (0 if mistake == "one step's dU" else dU) + states[t].T @ da
        db += da.sum(axis=0)
        from_future = da @ U.T
        if mistake == "no future" or (mistake == "cut off" and t == 3):
            from_future = np.zeros_like(from_future)
    return dx, from_future, dW, dU, db


inputs = [to_host(array) for array in (x, rng.standard_normal((B, D)), W, U, b)]
report = check_pair(all_states, through_time, inputs)
assert report.right
print(report)

# %% [markdown]
# ### The code of the package
#
# In the package the loop over time is written once, for all cells. A **cell** is one step. It is given $a_t$ and
# $u_t$, and its backward returns the gradients of both. The loop adds what goes through $U$:

# %%
source_of(elman_cell, elman_cell_backward, recurrence_backward)

# %% [markdown]
# Three things differ from ours. Only what must happen step by step is in the loop: one matrix product before it
# makes all $a_t$, and one product each after it makes $dW$ and $dU$. A state may have more parts than $h$
# (`dothers`), as we will see. And sequences of a batch differ in length, so there is **padding**. There the state
# is carried on unchanged, $h_t = h_{t-1}$, and at the end of the batch it is still that of the last token. So
# the whole $dh_t$ passes on to $h_{t-1}$, and nothing to $x_t$ or to the weights.

# %%
y, cache = all_states(*inputs)
dy = rng.standard_normal(y.shape)
(package_y, _), package_cache = elman(*inputs)
assert np.allclose(package_y, y)
pairs = zip(elman_backward((dy, None), package_cache), through_time(dy, cache), strict=True)
assert all(np.allclose(package, ours) for package, ours in pairs)

padded = np.concatenate([inputs[0], rng.standard_normal((B, 2, D_in))], axis=1)  # two steps more
tokens = np.arange(T + 2) < np.full((B, 1), T)  # (B, T + 2), False at the two
(_, last), padded_cache = elman(padded, *inputs[1:], mask=tokens)
assert np.allclose(last, y[:, -1])
dx, *_ = elman_backward((None, np.ones((B, D))), padded_cache)
assert not dx[:, T:].any()
assert dx[:, :T].all()
print("Padding changes no state, and gets no gradient.")

# %% [markdown]
# ### Three mistakes
#
# One forgets the future: $dh_t = dy_t$. One lets nothing pass from the fourth step to the third. One keeps $dU$
# of a single step. What the check says of them:

# %%
for mistake in ("no future", "cut off", "one step's dU"):
    report = check_pair(all_states, lambda dy, cache, m=mistake: through_time(dy, cache, m), inputs)
    assert not report.right
    print(f"{mistake}\n{report}\n")

# %% [markdown]
# With the first two every gradient is wrong, since all of them are made of $da_t$. Yet such a network can learn
# something: what is near. Sometimes people cut the gradient off on purpose, to save memory on very long texts, which
# is called *truncated* backpropagation through time. What has to be kept from before the cut is then not learned.
# But even where nothing is cut: **does a gradient arrive from far away?**
#
# ## 4 · How far a gradient goes
#
# One step backwards in time is $dh_{t-1} = \left( dh_t \circ (1 - h_t^2) \right) U^\top$. As a matrix of derivatives,
# $\partial h_{t,j} / \partial h_{t-1,i} = (1 - h_{t,j}^2) \, U_{ij}$, or
#
# $$
# J_t = \frac{\partial h_t}{\partial h_{t-1}} = \text{diag}(1 - h_t^2) \; U^\top ,
# \qquad
# \frac{\partial h_T}{\partial h_{T-k}} = J_T \, J_{T-1} \cdots J_{T-k+1} .
# $$
#
# It is a product of $k$ matrices. The norm $\lVert A \rVert$ is the most by which $A$ can lengthen a vector, its
# largest singular value. First, $A B v$ is at most $\lVert A \rVert$ times as long as $B v$, so
# $\lVert A B \rVert \le \lVert A \rVert \, \lVert B \rVert$. Second, $0 \lt 1 - h^2 \le 1$, so the diagonal matrix
# lengthens nothing. Third, $U^\top$ has the singular values of $U$. Hence
#
# $$
# \left\lVert \frac{\partial h_T}{\partial h_{T-k}} \right\rVert \le \lVert U \rVert^k .
# $$
#
# If $\lVert U \rVert \lt 1$ the gradient **vanishes**, exponentially in the distance. If $\lVert U \rVert \gt 1$ it may
# **explode**; it need not, for this is only a bound (Bengio, Simard and Frasconi 1994; Pascanu, Mikolov and Bengio
# 2013).
#
# **And the eigenvalues?** Where states stay near 0, all $J_t$ are nearly $U^\top$, and the product is its power. An
# eigenvector with the eigenvalue $\lambda$ becomes $\lambda^k$ times itself. So the norm of the power is at least
# $\rho^k$, where $\rho$ is the largest $\lvert \lambda \rvert$, the *spectral radius*. But $\rho$ decides for large
# $k$ only. Take
#
# $$
# U = \begin{pmatrix} \lambda & c \\ 0 & \lambda \end{pmatrix} ,
# \qquad
# U^k = \begin{pmatrix} \lambda^k & k \, c \, \lambda^{k-1} \\ 0 & \lambda^k \end{pmatrix} :
# $$
#
# multiply once more by $U$ and the corner becomes
# $\lambda^k c + k c \lambda^{k-1} \lambda = (k + 1) \, c \, \lambda^k$. It grows with $k$ before it falls:

# %%
block = np.array([[0.9, 2.0], [0.0, 0.9]])
for k in (1, 5, 10, 50, 100):
    norm = np.linalg.norm(np.linalg.matrix_power(block, k), 2)
    print(f"k = {k:3}: 0.9^k = {0.9**k:8.1e}   ‖U^k‖ = {norm:8.1e}")
assert norm < 0.01

# %% [markdown]
# Now a real layer. We want the whole matrix $\partial h_T / \partial h_{T-k}$. Its row $j$ is the gradient of one
# number, $h_{T,j}$. So we take $D$ copies of the last $k$ steps. The backward gets row $j$ of the identity matrix as
# the gradient of copy $j$'s last state, and returns all rows at once:

# %%
WIDTH, STEPS = 32, 100
DISTANCES = (1, 2, 4, 8, 16, 32, 64, 100)
DRAWS = 7


def norms_by_distance(layer, x):
    """‖∂s_T/∂s_{T−k}‖ for k in DISTANCES. s is the state: h, and for an LSTM h and c together."""
    parts = 2 if isinstance(layer, LSTM) else 1
    history = [[np.zeros((1, WIDTH))] * parts]
    for t in range(STEPS):
        (_, *state), _ = layer.forward(x[:, t : t + 1], *history[-1])
        history.append(state)
    norms, size = [], parts * WIDTH  # of the state
    for k in DISTANCES:
        start = [np.repeat(s, size, axis=0) for s in history[STEPS - k]]
        _, cache = layer.forward(np.repeat(x[:, STEPS - k :], size, axis=0), *start)
        of_last = np.eye(size).reshape(size, parts, WIDTH).swapaxes(0, 1)  # (parts, size, WIDTH)
        _, *of_start = layer.backward((None, *of_last), cache)
        norms.append(np.linalg.norm(np.concatenate(of_start, axis=1), 2))
    return norms


def measure(make, input_size):
    """Norms (DRAWS, distances) of layers that ``make(rng)`` draws, on random sequences."""
    found = []
    for seed in range(DRAWS):
        drawn = np.random.default_rng(seed)
        layer = make(drawn).to(dtype=np.float64)
        x = input_size * drawn.standard_normal((1, STEPS, WIDTH))
        found.append(norms_by_distance(layer, x))
    return np.array(found)


def elman_of(gain):
    """An Elman layer whose U is the gain times an orthogonal matrix: all singular values equal."""

    def make(rng):
        layer = Elman(WIDTH, WIDTH, rng)
        layer.w_hidden.data *= gain
        return layer

    return make


GAINS = (0.7, 1.0, 1.5)
of_gain = {gain: measure(elman_of(gain), input_size=0.1) for gain in GAINS}
for gain, norms in of_gain.items():
    assert (norms <= gain ** np.array(DISTANCES) * (1 + 1e-4)).all()  # U is rounded to float32

# %% [markdown]
# The inputs are a tenth of standard normal numbers. Points are medians of seven random layers and inputs, bands run
# from the smallest to the largest. The thin black lines are the bound $\lVert U \rVert^k$:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4.2))
along = np.linspace(1, STEPS, 100)


def draw_norms(axes, norms, colour, style, label):
    axes.semilogy(DISTANCES, np.median(norms, axis=0), style, color=colour, ms=5, label=label)
    axes.fill_between(
        DISTANCES, norms.min(axis=0), norms.max(axis=0), color=colour, alpha=0.2, lw=0
    )


for gain, style in zip(reversed(GAINS), ("o-", "^--", "s:"), strict=True):
    draw_norms(axes, of_gain[gain], VERMILION, style, rf"measured, $\|U\|$ = {gain}")
    axes.semilogy(along, gain**along, "-", color=BLACK, lw=0.8)
axes.text(52, 1e11, r"$\|U\|^k$", fontsize=12)
axes.set(xlabel="distance $k$ (steps)", ylabel=r"$\|\partial h_T / \partial h_{T-k}\|$")
axes.set(ylim=(1e-18, 1e19))
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# With 0.7 the gradient follows the bound down. With 1.5 it explodes, but less than it may: as the state grows,
# $1 - h^2$ falls. With 1 it keeps its length at first, and then fades as well, since $1 - h^2$ is a little below 1.
#
# ### Gates: an additive path
#
# What if the old state were *added*, and not sent through a matrix and a tanh? The **LSTM** (Hochreiter and
# Schmidhuber 1997; its gate $f$ by Gers, Schmidhuber and Cummins 2000) has a second state $c$, its memory. With
# the logistic function $\sigma(x) = 1 / (1 + e^{-x})$, which lies between 0 and 1,
#
# $$
# \begin{aligned}
# i_t, f_t, o_t &= \sigma(\dots) & g_t &= \tanh(\dots) \\
# c_t &= f_t \circ c_{t-1} + i_t \circ g_t & h_t &= o_t \circ \tanh(c_t) .
# \end{aligned}
# $$
#
# Each $(\dots)$ is $x_t W + h_{t-1} U + b$ with matrices of its own. The *forget gate* $f$ says for each number what
# share of it is kept. The **GRU** (Cho et al. 2014, with $r_t \circ h_{t-1}$ before the product) does the same with
# one state. One gate $z$, not the $z$ of section 3, is for keeping and taking in:
#
# $$
# \begin{aligned}
# r_t, z_t &= \sigma(\dots) & n_t &= \tanh(x_t W_n + b_n + r_t \circ (h_{t-1} U_n + b'_n)) \\
# & & h_t &= z_t \circ h_{t-1} + (1 - z_t) \circ n_t .
# \end{aligned}
# $$
#
# Differentiate the last line. $h_{t-1}$ stands in it by itself, and once more inside of $r_t$, $z_t$ and $n_t$:
#
# $$
# \frac{\partial h_t}{\partial h_{t-1}} = \text{diag}(z_t) + \dots ,
# \qquad
# \frac{\partial c_t}{\partial c_{t-1}} = \text{diag}(f_t) + \dots .
# $$
#
# The dots are the terms through the gates and $n_t$, each with a $U^\top$. (In the LSTM they lead from $c_{t-1}$
# through $h_{t-1}$.) But the first term has no matrix and no tanh. Over $k$ steps it gives
# $\text{diag}(z_T \circ z_{T-1} \circ \cdots)$: each number of the state has a path of its own through time. Let a
# gate have the bias $\beta$ and little else inside. Then this path carries about $\sigma(\beta)^k$. After how many
# steps is half lost?

# %%
for beta in (0, 1, 3, 5):
    gate = 1 / (1 + math.exp(-beta))
    print(
        f"β = {beta}: gate {gate:.3f}, half is lost after {math.log(0.5) / math.log(gate):5.1f} steps"
    )

# %% [markdown]
# In the code it is the end of the last line, `dh * z`. The loop adds the paths through $U$:

# %%
source_of(gru_cell, gru_cell_backward)


# %% [markdown]
# Now the three cells, on inputs of full size, standard normal. The package builds a GRU with $\beta = 0$, and an
# LSTM with $\beta = 1$ (Jozefowicz, Zaremba and Sutskever 2015). We also open the gates further, to $\beta = 3$.


# %%
def gru_of(beta):
    def make(rng):
        layer = GRU(WIDTH, WIDTH, rng)
        layer.b_input.data[WIDTH : 2 * WIDTH] = beta  # of z; the order is r, z, n
        return layer

    return make


def lstm_of(beta):
    def make(rng):
        layer = LSTM(WIDTH, WIDTH, rng)
        layer.bias.data[WIDTH : 2 * WIDTH] = beta  # of f; the order is i, f, g, o
        return layer

    return make


of_cell = {
    "Elman, ‖U‖ = 1": measure(elman_of(1.0), input_size=1.0),
    "GRU, β = 0": measure(gru_of(0.0), input_size=1.0),
    "GRU, β = 3": measure(gru_of(3.0), input_size=1.0),
    "LSTM, β = 1": measure(lstm_of(1.0), input_size=1.0),
    "LSTM, β = 3": measure(lstm_of(3.0), input_size=1.0),
}
for name, norms in of_cell.items():
    print(f"{name:15} after 64 steps, median of {DRAWS}: {np.median(norms[:, -2]):.0e}")
after_64 = {name: norms[:, -2] for name, norms in of_cell.items()}
assert after_64["Elman, ‖U‖ = 1"].max() < 1e-6
assert after_64["GRU, β = 0"].max() < 1e-6
assert after_64["GRU, β = 3"].min() > 1e-3
assert after_64["LSTM, β = 3"].min() > 0.1

# %% [markdown]
# Points and bands as before. The thin black lines are $\sigma(\beta)^k$, what the additive path carries alone, for
# β = 1 and β = 3:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4.6))
for (name, norms), colour, style in zip(
    of_cell.items(),
    (VERMILION, GREEN, GREEN, BLUE, BLUE),
    ("^--", "s:", "s-.", "o:", "o-"),
    strict=True,
):
    draw_norms(axes, norms, colour, style, name)
for beta in (1, 3):
    gate = 1 / (1 + math.exp(-beta))
    axes.semilogy(along, gate**along, "-", color=BLACK, lw=0.8)
    text = rf"$\sigma({beta})^k$"
    axes.annotate(text, (80, gate**80), (-4, -5), textcoords="offset points", ha="right", va="top")
axes.set(xlabel="distance $k$ (steps)", ylim=(1e-20, 1e3))
axes.set_ylabel(r"$\|\partial s_T / \partial s_{T-k}\|$, $s$ the state")
axes.legend(loc="lower left")
plt.show()

# %% [markdown]
# - **A gate alone does not help.** At $\beta = 0$ it is half open, and halves the direct path at every step. The
#   GRU's gradient vanishes about as fast as Elman's.
# - **An open gate does.** At $\beta = 3$ the GRU keeps about a hundredth over a hundred steps, and the LSTM does
#   not lose at all.
# - **Measured values lie above the black lines.** The paths through $U$ add their share, with the LSTM at
#   $\beta = 3$ even more than the gate takes.
#
# So gates do not save the gradient by themselves. They give the network a way to save it. This can be open at the
# start, and learning can close it, number by number, where something should be forgotten. Exploding gradients
# remain, and are clipped: one that is longer than 1 is scaled to the length 1
# ([lesson 13](13_training_for_real.ipynb)).
#
# ## 5 · One vector for a sentence
#
# Two recurrent networks make a translator (Sutskever, Vinyals and Le 2014; Cho et al. 2014). One reads the
# source, the **encoder**. Its last state is handed to the other, the **decoder**, which says the target. **All of
# the sentence must go into this one vector**, whose size does not grow with the sentence. Bahdanau, Cho and Bengio
# (2015) keep *all* states of the encoder, and let the decoder look at them at every step, by attention. Section 6
# derives it. First, what it does.
#
# The package's `RecurrentTranslator` is both, with GRUs: `attention="none"` or `"additive"`. With attention, two
# GRUs read the source, one from each end, so that a state knows what stands on both sides of its word.
#
# The task is to say a word of 2 to 20 random letters backwards. That is kind to the fixed vector, since the letter
# that was read last is said first. Both kinds get the same batches, as many updates and about as many parameters,
# with three seeds each:

# %%
LETTERS, UPDATES, SEEDS = 12, 400, (0, 1, 2)
FIRST = 4  # the id of the first letter; those below are BOS, EOS and padding
HIDDEN = {"none": 58, "additive": 48}


def words_backwards(rng, num, lengths=(2, 20)):
    """A batch of words of one length, and the same backwards."""
    length = rng.integers(lengths[0], lengths[1] + 1)
    words = rng.integers(FIRST, FIRST + LETTERS, (num, length)).astype(np.int32)
    start, end = (np.full((num, 1), symbol, np.int32) for symbol in (BOS, EOS))
    source, backwards = np.hstack([words, end]), words[:, ::-1]
    labels = np.hstack([backwards, end])
    return Batch(source, np.hstack([start, backwards]), labels, num_tokens=labels.size)


def trained(config, batches, updates, seed, peak):
    """A translator after so many updates, with the package's loss, clipping and Adam."""
    model = RecurrentTranslator(config, seed).to(device)
    adam = Adam(model.flat)
    for step, batch in enumerate(islice(batches, updates), start=1):
        model.zero_grad()
        _, cache = model.loss(batch)
        model.loss_backward(1.0, cache)
        scale = clipping.clip_scale(clipping.gradient_norm(model.flat.grad), 1.0)
        adam.step(schedule.linear_decay(step, peak, 50, updates), scale)
    return model


def reverser(attention, seed, d_hidden=None):
    config = RecurrentTranslatorConfig.of_vocabulary(
        FIRST + LETTERS,
        d_model=32,
        d_hidden=d_hidden or HIDDEN[attention],
        attention=attention,
        dropout=0.0,
        max_length=32,
    )
    drawn = np.random.default_rng(seed)
    batches = (words_backwards(drawn, 48) for _ in range(UPDATES))
    return trained(config, batches, UPDATES, seed, peak=1e-2)


reversers = {name: [reverser(name, seed) for seed in SEEDS] for name in HIDDEN}
sizes = {name: models[0].config.num_parameters() for name, models in reversers.items()}
print(sizes)
assert 0.9 < sizes["none"] / sizes["additive"] < 1.1

# %% [markdown]
# Is the vector merely too small? We train one more model, with twice the state and more than three times the
# parameters. The test is 100 new words of each length. A word counts if all its letters are right:

# %%
reversers["none, wide"] = [reverser("none", seed=0, d_hidden=2 * HIDDEN["none"])]
assert reversers["none, wide"][0].config.num_parameters() > 3 * sizes["none"]
LENGTHS = range(2, 21, 2)


def share_right(model, length):
    batch = words_backwards(np.random.default_rng(1000 + length), 100, (length, length))
    said = greedy(model, batch.source, max_length=32)
    rows = zip(said, batch.labels.tolist(), strict=True)
    return np.mean([hypothesis.ids == label[:-1] for hypothesis, label in rows])


right_at = {
    name: np.array([[share_right(model, length) for length in LENGTHS] for model in models])
    for name, models in reversers.items()
}  # (seeds, lengths) each
print("letters          ", *(f"{length:4}" for length in LENGTHS))
for name, shares in right_at.items():
    print(f"{name:10} median ", *(f"{share:4.0%}" for share in np.median(shares, axis=0)))
assert (right_at["none"][:, 0] > 0.9).all()  # it has learned the task
assert (right_at["none"][:, -3:] < 0.1).all()
assert (right_at["additive"][:, :6] > 0.75).all()
assert (right_at["additive"][:, -1] > 0.4).all()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4.2))
for name, colour, style, label in (
    ("additive", PURPLE, "o-", "with additive attention"),
    ("none", ORANGE, "s--", "a fixed vector"),
    ("none, wide", ORANGE, "^:", "a fixed vector, twice as wide, one seed"),
):
    lines = axes.plot(LENGTHS, right_at[name].T, style, color=colour, lw=1.2, ms=5)
    lines[0].set_label(label + (f", {len(SEEDS)} seeds" if len(lines) > 1 else ""))
axes.set(
    xlabel="length of the word (letters)", ylabel="share of words all right", ylim=(-0.03, 1.05)
)
axes.set_xticks(LENGTHS)
axes.legend(loc="center right", bbox_to_anchor=(1, 0.62))
plt.show()

# %% [markdown]
# With the fixed vector short words are right, and no long ones. With attention most words of 20 letters are right,
# with each seed. Twice the state moves the fall by a letter or so.
#
# A vector of 58 numbers could *hold* a word: 20 letters of 12 kinds are $20 \log_2 12 \approx 72$ bits. But to learn
# to pack them and to take them out again is hard. Bahdanau et al. saw the same on real sentences (their Figure 2):
# with a fixed vector quality falls with the length, with attention, trained on long sentences, hardly.
#
# ## 6 · Additive attention
#
# At target step $t$ the decoder's state is the **query** $q_t$. The encoder's states $h_s$ are **keys** and
# **values** at once. A small network with one hidden layer of $F$ units scores how well a query and a key match:
#
# $$
# e_{ts} = v^\top \tanh(q_t W + h_s U) ,
# \qquad
# A = \text{softmax}(e) ,
# \qquad
# c_t = \sum_s a_{ts} h_s ,
# $$
#
# with parameters $W$, $U$ and $v$ $(F)$ of its own; $a_{ts}$ is an entry of $A$. The decoder makes its next word
# from $c_t$ and its own state. The gradient of a target word goes straight to the states that it looked at,
# whatever the distance.
#
# **The backward pass.** The softmax and the average are those of [lesson 08](08_attention.ipynb), so $de_{ts}$ is
# known. Only the score is new. Let $\eta_{ts} = \tanh(q_t W + h_s U)$, $F$ numbers for each pair. Then
# $e_{ts} = \sum_f v_f \eta_{tsf}$. All pairs share $v$, so it gets a sum, and each $\eta_{ts}$ gets $de_{ts}$ times
# $v$:
#
# $$
# dv = \sum_{ts} de_{ts} \, \eta_{ts} , \qquad d\eta_{ts} = de_{ts} \, v .
# $$
#
# Through the tanh, by step 1 of section 3, the sum inside gets $de_{ts} \, v \circ (1 - \eta_{ts}^2)$. In it $q_t W$
# serves all $s$, and $h_s U$ serves all $t$:
#
# $$
# d(q_t W) = \sum_s de_{ts} \, v \circ (1 - \eta_{ts}^2) ,
# \qquad
# d(h_s U) = \sum_t de_{ts} \, v \circ (1 - \eta_{ts}^2) .
# $$
#
# In the package `query` and `key` come already multiplied by $W$ and $U$:

# %%
source_of(additive_attention, additive_attention_backward)

# %%
attention_inputs = [rng.standard_normal(shape) for shape in ((2, 3, 5), (2, 4, 5), (2, 4, 6), (5,))]
report = check_pair(additive_attention, additive_attention_backward, attention_inputs)
assert report.right
print(report)

# %% [markdown]
# ### Where it looks
#
# For letters said backwards, it should look at the letters backwards. To see another order, we train a translator
# from German to English on the toy corpus, in 300 updates:

# %%
encoded, _ = encode_pairs(vocabulary, corpus["train"], max_length=64)


def toy_batches(seed):
    order = np.random.default_rng(seed)
    while True:
        yield from make_batches(encoded, 1500, order)


config = RecurrentTranslatorConfig.of_vocabulary(
    V, d_model=64, d_hidden=64, attention="additive", dropout=0.0, max_length=64
)
translator = Translator(
    trained(config, toy_batches(19), 300, seed=19, peak=1e-2), vocabulary, threads=1
)
SHOWN = "Das Mädchen will heute diesen kleinen Hund begrüßen."
assert SHOWN not in {german for german, _ in corpus["train"]}
(translation, *_), *_ = translator.translations([SHOWN], beam_size=1, attention=True)
print(f"{SHOWN}\n  → {translation.text}")


def readable(pieces):
    return ["end" if piece == "</s>" else piece.replace("▁", " ") for piece in pieces]


word = words_backwards(np.random.default_rng(5), 1, (12, 12))
said = greedy(reversers["additive"][0], word.source, max_length=32, attention=True)[0]
maps = (
    (
        ["abcdefghijkl"[i - FIRST] for i in word.source[0, :-1]] + ["end"],
        ["abcdefghijkl"[i - FIRST] for i in said.ids] + ["end"],
        said.attention[0, 0],
    ),
    (
        readable(translation.source_pieces),
        readable(translation.pieces),
        translation.attention[0, 0],
    ),
)  # source, target, weights (T, S)

# %% [markdown]
# Each row is a step of the decoder, each column a source position. One training each, seeds 0 and 19:

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(10, 4.6))
for axes, (columns, rows, weights), title in zip(
    panels, maps, ("a word backwards", "German to English"), strict=True
):
    image = axes.imshow(weights, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    axes.set_xticks(range(len(columns)), columns, rotation=90 if len(columns[0]) > 1 else 0)
    axes.set_yticks(range(len(rows)), rows)
    axes.set(title=title, xlabel="looked at: source", ylabel="said: target, from top to bottom")
    axes.grid(False)
figure.colorbar(image, ax=panels, label="attention weight", shrink=0.8)
plt.show()

# %% [markdown]
# On the left a diagonal, from right to left. On the right the German order is turned into the English one: for
# *greet* it looks at the verb at the end, and for *today* back at *heute*. Nobody told it which word belongs to
# which. (On your machine words and weights may differ, by rounding.)
#
# ### From here to the Transformer
#
# | | additive attention | lesson 08 |
# |---|---|---|
# | score | $v^\top \tanh(q_t W + h_s U)$ | $q_t \cdot k_s / \sqrt{d_k}$ |
# | weights and output | softmax, weighted mean | the same |
# | work for the scores | $T S F$ tanh, and the products with $v$ | one matrix product |
# | kept for the backward pass | $T S F$ numbers | $T S$ numbers |
# | who asks whom | the decoder's state asks the encoder's states | the same, and within a sentence each position asks all |
#
# The paper's section 3.2.1 compares the two scores, and takes the product because it is faster and needs less
# memory. The larger step is the last row. If a decoder can find by attention what it needs in the source, why
# should a sentence need a recurrence to find what it needs in itself?
#
# For there is still a loop over time, forward and backward: state $t$ has to wait for state $t - 1$. The paper's
# introduction names this as the limit of recurrent models. The next lessons do without the loop.
#
# ## 7 · Exercises
#
# Fill in `answers/ex19.py`, your copy of [lessons/exercises/ex19.py](exercises/ex19.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex19
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The
# solutions are in [lessons/solutions/ex19.py](solutions/ex19.py).
#
# 1. **`reach`** (10 min). You are handed a backward through time and do not see its code. How many steps back does
#    it carry a gradient?
# 2. **`gated_norm`** (25 min). A gate that does not move, and a $U$ whose eigenvalues you know: what is
#    $\lVert \partial h_T / \partial h_{T-k} \rVert$? What does the gate do with an eigenvalue of 1.5, of 0.5, of −1?
# 3. **`coupled_cell`** (45 min). An LSTM that takes in as much as it forgets, $i = 1 - f$, with its backward. Can its
#    memory still grow beyond 1?
# 4. **`one_gate`** (90 min). A whole layer with one gate, over a padded batch, forward and backward through time.

# %%
print(check_exercise("ex19", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | n-gram | the share of each continuation of $n - 1$ words; blind to all before them |
# | a state | $h_t = \tanh(x_t W + h_{t-1} U + b)$, the same weights at each step |
# | through time | $dh_t = dy_t + du_{t+1} U^\top, \quad du_t = dh_t \circ (1 - h_t^2)$, from the last step to the first |
# | weights | $dU = \sum_t h_{t-1}^\top du_t$, over all steps |
# | padding | the state is carried, and so is its gradient |
# | distance | $\lVert \partial h_T / \partial h_{T-k} \rVert \le \lVert U \rVert^k$, the largest singular value of $U$ |
# | gates | $\partial h_t / \partial h_{t-1} = \text{diag}(z_t) + \dots$; they help if they are open |
# | fixed vector | one state for a whole sentence; fails on long ones first |
# | additive attention | $e_{ts} = v^\top \tanh(q_t W + h_s U)$; softmax and mean as in lesson 08 |
# | traps | no gradient from the future; $dU$ of one step; half-open gates |
# | what remains | $T$ steps, one after another |
#
# **Your own Transformer.** This lesson adds no function to `own.py`; it shows what your attention is for.
# `minitransformer check own` says how far yours is.
#
# **Next:** the words before without a loop over time: convolution, in [lesson 20](20_convolution.ipynb).
