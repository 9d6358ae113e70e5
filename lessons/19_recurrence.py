# %% [markdown]
# # 19 · Recurrence
#
# **You will** count words and see how far that goes; derive backpropagation through time, every step of it;
# measure how much of a gradient arrives from far away, and what gates do for it.
#
# | | |
# |---|---|
# | In the paper | sections 1 and 2, on what was there before; Table 1 |
# | In the package | `minitransformer/models/n_gram.py`, `layers/recurrence.py`, `layers/elman.py`, `layers/gru.py`, `layers/lstm.py` |
# | You need | the chain rule; matrix products |
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
import math
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import select_device
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
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import BOS, EOS, Vocabulary
from minitransformer.gradcheck import check_pair
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

use_style()
device = select_device("cpu")  # "cuda" runs the layer of section 2 on a GPU
rng = np.random.default_rng(19)

# %% [markdown]
# ## 1 · Counting words
#
# This second part of the course is about what the Transformer replaced. A **language model** says how probable each
# next word is, given the words before. An early way is to count (Shannon 1948). An **n-gram** model of order $n$
# looks at the $n - 1$ words before and asks the training text: what came after these, and how often? For the words
# $h$ and a next word $w$, with $c$ for a count,
#
# $$
# p(w \mid h) = \frac{c(h \, w)}{c(h)} .
# $$
#
# Most runs of words never occur in the training text, and would get the probability 0. So every count is lowered
# by a little, and what this frees goes to the model of order $n - 1$ (Kneser and Ney 1995; the formula stands in
# `minitransformer/models/n_gram.py`).
#
# We count the English side of the toy corpus, cut into subwords. The score is the **perplexity** on other
# sentences, the exponential of the mean of $-\ln p$. A model that always hesitates between $k$ equally probable
# words has the perplexity $k$.

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
# One subword of context helps a lot, a second one a little. More do not help: longer runs are too rare. What does
# such a model miss? Take two sentences:
#
# > The **woman** whom the students are looking for **is** dancing.
# >
# > The **women** whom the students are looking for **are** dancing.
#
# The second word decides between *is* and *are*, seven words before. An order of 8 would see it, but only after it
# has met these very words in training.

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
# The columns are equal: *woman* or *women* makes no difference. We need something that carries what it has read
# over any distance.
#
# ## 2 · A state
#
# A **recurrent** network reads one step at a time. It keeps a vector of $D$ numbers, its **state** $h$. At each step
# it makes the next one from the input $x_t$ and the last state (Elman 1990):
#
# $$
# h_t = \tanh(x_t W + h_{t-1} U + b), \qquad y_t = h_t .
# $$
#
# $W$, $U$ and $b$ are the same at all steps. So a sequence may have any length, and $h_t$ depends on all of
# $x_1 \dots x_t$. The output $y_t$ is the state; it has its own name because it goes elsewhere, to the next layer or
# to a loss. Vectors are rows.

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
# Three steps **unrolled in time**, values in blue, gradients in vermilion:

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
# Two blue arrows leave $h_t$, so two gradients come back to it. Now step by step.
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
# The second term comes from the **future**: all that the state does to later outputs. It is known once step $t + 1$
# is done, so the backward pass runs from the last step to the first. At $t = T$ the term is zero, or the gradient of
# the last state, if that is used. $h_0$ is no output, so $dh_0 = du_1 U^\top$.
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
# The loop over time is written once, for all cells. A **cell** is one step: it is given $a_t$ and $u_t$, and its
# backward returns the gradients of both. The loop adds what goes through $U$:

# %%
source_of(elman_cell, elman_cell_backward, recurrence_backward)

# %% [markdown]
# Three things differ from ours. Only what must happen step by step is in the loop: one product before it makes all
# $a_t$, and one each after it $dW$ and $dU$. A state may have more parts than $h$ (`dothers`), as we will see. And
# where a batch has **padding**, the state is carried on, $h_t = h_{t-1}$. There the whole $dh_t$ passes to $h_{t-1}$,
# and nothing to $x_t$ or to the weights.

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
# of a single step.

# %%
for mistake in ("no future", "cut off", "one step's dU"):
    report = check_pair(all_states, lambda dy, cache, m=mistake: through_time(dy, cache, m), inputs)
    assert not report.right
    print(f"{mistake}\n{report}\n")

# %% [markdown]
# With the first two every gradient is wrong, since all are made of $da_t$. Yet such a network can learn what is near.
# On very long texts people cut the gradient off on purpose, to save memory: *truncated* backpropagation through time.
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
# Now a real layer. Row $j$ of $\partial h_T / \partial h_{T-k}$ is the gradient of one number, $h_{T,j}$. So we take
# $D$ copies of the last $k$ steps. The backward gets row $j$ of the identity matrix as the gradient of copy $j$'s last
# state, and returns all rows at once:

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
# Inputs are a tenth of standard normal numbers. Points are medians of seven random layers and inputs, bands the whole
# range. The thin black lines are the bound $\lVert U \rVert^k$:

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
# In the code it is the end of the last line, `dh * z`:

# %%
source_of(gru_cell, gru_cell_backward)

# %% [markdown]
# PyTorch does the same; to six digits and more:

# %%
if find_spec("torch"):
    import torch

    ours, theirs = GRU(D_in, D, rng).to(dtype=np.float64), torch.nn.GRU(D_in, D, batch_first=True)
    theirs = theirs.double()
    for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
        its.data = torch.from_numpy(mine.data.T.copy())  # W, U and their biases
    x = torch.from_numpy(inputs[0]).requires_grad_()
    (y, _), cache = ours.forward(inputs[0])
    dx, _ = ours.backward((dy, None), cache)
    of_torch, _ = theirs(x)
    of_torch.backward(torch.from_numpy(dy))
    for name, mine, its in (("y", y, of_torch.detach()), ("dx", dx, x.grad)):
        print(f"{name:2} differs by at most {abs(mine - its.numpy()).max():.0e}")
        assert np.allclose(mine, its, atol=1e-6)

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
# The thin black lines are $\sigma(\beta)^k$ for β = 1 and 3, what the additive path carries alone:

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
# So gates do not save the gradient by themselves. They give the network a way to save it, which learning can open and
# close, number by number. Exploding gradients remain, and are clipped ([lesson 13](13_training_for_real.ipynb)).
#
# ## 5 · Exercises
#
# Fill in `answers/ex19.py`, your copy of [lessons/exercises/ex19.py](exercises/ex19.py), or copy its functions into
# cells here, and run the cell below or `minitransformer check ex19`. Solutions:
# [lessons/solutions/ex19.py](solutions/ex19.py).
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
# | traps | no gradient from the future; $dU$ of one step; half-open gates |
# | what remains | $T$ steps, one after another |
#
# **Your own Transformer.** No function for `own.py`. `minitransformer check own` says how far yours is.
#
# **Next:** two recurrent networks that translate, and the first attention, in
# [lesson 25](25_one_vector_or_attention.ipynb).
