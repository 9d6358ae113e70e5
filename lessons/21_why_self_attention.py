# %% [markdown]
# # 21 · Why self-attention
#
# **You will** count and time the layers of table 1 of the paper; measure how many steps lie between two words
# in each; train four small models of equal size to remember; and find what self-attention is bad at.
#
# | | |
# |---|---|
# | In the paper | section 4, *Why Self-Attention*, and its table 1 |
# | In the package | `minitransformer/layers/`: `attention.py`, `elman.py`, `gru.py`, `convolution.py`, `restricted_attention.py` |
# | You need | matrix products; attention, as in [lesson 08](08_attention.ipynb) |
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
import time
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, select_device
from minitransformer.core.backend import to_host
from minitransformer.core.module import FlatParameters, Module
from minitransformer.core.workers import Workers
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    GREEN,
    PURPLE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.layers.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.convolution import Convolution1d, convolution, convolution_backward
from minitransformer.layers.elman import elman, elman_backward
from minitransformer.layers.embedding import Embedding, embedding_weight
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.gated_linear_unit import gated_linear_unit, gated_linear_unit_backward
from minitransformer.layers.gru import GRU
from minitransformer.layers.linear import Linear
from minitransformer.layers.masks import causal_mask
from minitransformer.layers.positional_encoding import PositionalEncoding
from minitransformer.layers.recurrence import recurrence
from minitransformer.layers.residual import ResidualConnection
from minitransformer.layers.restricted_attention import (
    RestrictedSelfAttention,
    restricted_attention,
    restricted_attention_backward,
)
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.optim import clipping

use_style()
device = select_device("cpu")  # "cuda" runs the layers of section 1 on a GPU
rng = np.random.default_rng(21)

# %% [markdown]
# ## 1 · Four layers, and a guess
#
# A word alone means little. Some layer has to bring the words of a sentence together. It is given $n$
# vectors of $d$ numbers, and returns as many, each of which knows of others. The paper compares four:
#
# - **Self-attention**: each position looks at all.
# - **A recurrent layer** goes from left to right. Each position hears from the one before it.
# - **A convolution**: each position sees the $k$ around it.
# - **Restricted self-attention**: each position looks at those up to $r$ away.
#
# Why did the Transformer take the first? Section 4 of the paper counts three things: operations, steps that
# have to wait for each other, and steps between two words. We measure all three, and then what they leave out.
#
# Here $k = 3$ and $r = 8$. As in the paper's count, attention has no projections: the input is query, key and
# value. The recurrent layer is the simplest, $h_t = \tanh(x_t W + h_{t-1} U + b)$.

# %%
WIDTH, WINDOW = 3, 8  # k and r


def attend(x):
    x = x[:, None]  # (1, 1, n, d): a single head
    y, cache = scaled_dot_product_attention(x, x, x)
    return y[:, 0], cache  # (1, n, d)


def attend_back(dy, cache):
    return sum(scaled_dot_product_attention_backward(dy[:, None], cache))[:, 0]


def recur(x, w_input, w_hidden, bias):
    first = 0 * x[:, 0]  # (1, d)
    (y, _), cache = elman(x, first, w_input, w_hidden, bias)
    return y, cache


def recur_back(dy, cache):
    return elman_backward((dy, None), cache)[0]


def convolve_back(dy, cache):
    return convolution_backward(dy, cache)[0]


def attend_near(x):
    return restricted_attention(x, x, x, 1, WINDOW)


def attend_near_back(dy, cache):
    return sum(restricted_attention_backward(dy, cache))


LAYERS = {  # forward, backward to the input alone, and the shapes of the weights
    "self-attention": (attend, attend_back, lambda d: []),
    "recurrent": (recur, recur_back, lambda d: [(d, d), (d, d), (d,)]),
    "convolution": (convolution, convolve_back, lambda d: [(WIDTH, d, d), (d,)]),
    "restricted": (attend_near, attend_near_back, lambda d: []),
}


def inputs(name, n, d, dtype=np.float32):
    """x (1, n, d), and weights that keep its size."""
    x = rng.standard_normal((1, n, d)) / 4
    weights = [rng.standard_normal(shape) / np.sqrt(d) for shape in LAYERS[name][2](d)]
    return [array.astype(dtype) for array in (x, *weights)]


# %%
n, d = 64, 256
outputs = {}
for name, (forward, _, _) in LAYERS.items():
    arrays = [device.asarray(array) for array in inputs(name, n, d)]
    outputs[name] = to_host(forward(*arrays)[0])

shape_table(
    {"n": n, "d": d},
    x=(to_host(arrays[0]), "1 n d", "a sentence of n positions, the same shape for all four"),
    attended=(outputs["self-attention"], "1 n d", "each row a weighted mean of all rows"),
    recurred=(outputs["recurrent"], "1 n d", "each row made of its input and the row before"),
    convolved=(outputs["convolution"], "1 n d", "each row made of k rows of the input"),
    near=(outputs["restricted"], "1 n d", "each row a weighted mean of at most 2 r + 1 rows"),
)

# %% [markdown]
# **Your guess.** A sentence has $n = 64$ positions of $d = 256$ numbers. Which layer takes the fewest
# operations, and which the most? Which takes the least time? Write down both orders before you go on.
#
# The code says where two positions meet. In attention it is `query @ key`, all pairs at once. In a convolution,
# `windows` lays $k$ rows side by side. A recurrent layer has a loop over `steps`:

# %%
source_of(scaled_dot_product_attention, convolution, recurrence)

# %% [markdown]
# ## 2 · Table 1, measured
#
# ### Operations
#
# A product of matrices $(a, b)$ and $(b, c)$ takes $a \, b \, c$ multiplications, each with an addition. We
# count these pairs, the *multiply-adds*. All else is done once for each entry of an array, which is less.
#
# - **Self-attention.** $Q K^\top$ is $(n, d)$ by $(d, n)$, and $A V$ is $(n, n)$ by $(n, d)$: together $2 n^2 d$.
# - **Recurrent.** In every step $x_t W$ and $h_{t-1} U$, each $(1, d)$ by $(d, d)$: together $2 n d^2$.
# - **Convolution.** In every position $k$ rows side by side, $(1, k d)$, by $(k d, d)$: together $k n d^2$.
# - **Restricted.** The sequence is cut into blocks of $r$. The queries of a block look at it and its two
#   neighbours: $(r, d)$ by $(d, 3 r)$ and $(r, 3 r)$ by $(3 r, d)$, for $n / r$ blocks. Together $6 r n d$.
#
# The paper has the same without the constants. We check it with arrays that count. NumPy hands each operation on
# such an array to a method of its class: `@`, `+` or `exp` to `__array_ufunc__`, functions like `stack` to
# `__array_function__`.


# %%
def depth_of(value):
    """The longest chain of operations behind an array, or behind those in a list."""
    if isinstance(value, list | tuple):
        return max(map(depth_of, value), default=0)
    return getattr(value, "depth", 0)


class Counted(np.ndarray):
    """An array that counts products, and remembers how many operations stand behind it."""

    def __array_finalize__(self, source):  # a view or a part of source
        self.depth = depth_of(source)

    def __array_ufunc__(self, ufunc, method, *operands, out=(), **options):
        if out:
            options["out"] = tuple(np.asarray(x) for x in out)
        numbers = [np.asarray(x) for x in operands]
        result = np.asarray(getattr(ufunc, method)(*numbers, **options)).view(Counted)
        result.depth = 1 + depth_of(operands)
        Counted.chain = max(Counted.chain, result.depth)
        if ufunc is np.matmul:
            Counted.multiply_adds += result.size * operands[0].shape[-1]
        return result

    def __array_function__(self, function, types, arguments, options):
        result = super().__array_function__(function, types, arguments, options)
        if isinstance(result, np.ndarray):
            result = result.view(Counted)
            result.depth = max(result.depth, depth_of(arguments))
        return result


def counted(name, n, d):
    """Multiply-adds of a forward pass, and the longest chain of operations in it."""
    Counted.multiply_adds = Counted.chain = 0
    LAYERS[name][0](*(array.view(Counted) for array in inputs(name, n, d)))
    return Counted.multiply_adds, Counted.chain


# %%
FORMULAS = {
    "self-attention": ("2 n² d", lambda n, d: 2 * n**2 * d),
    "recurrent": ("2 n d²", lambda n, d: 2 * n * d**2),
    "convolution": ("k n d²", lambda n, d: WIDTH * n * d**2),
    "restricted": ("6 r n d", lambda n, d: 6 * WINDOW * n * d),
}
print(f"multiply-adds of a sentence, n = {n}, d = {d}")
for name, (formula, operations) in FORMULAS.items():
    print(f"{name:15} {formula:8} {counted(name, n, d)[0]:>11,}")
    for some_n, some_d in ((64, 256), (128, 32), (256, 16)):
        assert counted(name, some_n, some_d)[0] == operations(some_n, some_d)

# %% [markdown]
# The formulas are exact. Restricted attention takes the fewest, the convolution the most. Attention takes fewer
# than the recurrent layer if $2 n^2 d \lt 2 n d^2$, which is **$n \lt d$**. That is the case for most
# sentences: the paper's $d$ was 512.
#
# This comparison favours attention. The matrices of the recurrent layer and the convolution are counted; the four
# projections of attention in a Transformer, $n d^2$ each, are not. The first exercise puts them in.
#
# ### Seconds
#
# Now the time of forward and backward on one core, against $n$ and against $d$. Each point is the median of a
# few runs, by the clock of the process, which stands still while another program has the core. If times grow as
# $n^p$, then their logarithm has the slope $p$. We fit $p$ to the largest four sizes, where the cost of calling a
# function counts least. The thin lines have the slopes 1 and 2.


# %%
EXACT = time.get_clock_info("process_time").resolution < 1e-6  # not so on Windows
clock = time.process_time if EXACT else time.perf_counter


def seconds(run, repeats=3):
    """The median time of run() on one core, after one run that does not count."""
    run()
    times = []
    with Workers(1).one_blas_thread():
        for _ in range(repeats):
            start = clock()
            run()
            times.append(clock() - start)
    return np.median(times)


def both_ways(name, n, d):
    """A function that goes forward and backward through a layer."""
    forward, backward, _ = LAYERS[name]
    arrays = inputs(name, n, d)

    def run():
        y, cache = forward(*arrays)
        backward(y, cache)

    return run


def exponent(sizes, costs):
    """The p of cost ~ sizeᵖ, from the four largest sizes."""
    return np.polyfit(np.log(sizes[-4:]), np.log(costs[-4:]), 1)[0]


guess = {name: 1000 * seconds(both_ways(name, 64, 256), repeats=15) for name in LAYERS}
print("n = 64, d = 256:", *(f"{name} {ms:.2f} ms" for name, ms in guess.items()), sep="\n  ")

LENGTHS, WIDTHS = 2 ** np.arange(6, 13), 2 ** np.arange(5, 11)
against_n = {name: [seconds(both_ways(name, n, 64)) for n in LENGTHS] for name in LAYERS}
against_d = {name: [seconds(both_ways(name, 128, d)) for d in WIDTHS] for name in LAYERS}
assert guess["recurrent"] > 2 * guess["self-attention"]
assert against_n["self-attention"][-1] > 5 * against_n["restricted"][-1]  # n = 4096

# %% tags=["hide-input"]
LOOKS = {
    "self-attention": dict(color=BLUE, ls="-", marker="o"),
    "recurrent": dict(color=VERMILION, ls="--", marker="s", mfc="none"),
    "convolution": dict(color=GREEN, ls="-.", marker="^"),
    "restricted": dict(color=PURPLE, ls=":", marker="D"),
}
figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True)
for axes, sizes, times in zip(panels, (LENGTHS, WIDTHS), (against_n, against_d), strict=True):
    for name, look in LOOKS.items():
        axes.loglog(sizes, np.multiply(times[name], 1000), ms=5, label=name, **look)
last = np.array([512, 4096])
for p, start in ((1, 0.25), (2, 2.2)):
    panels[0].loglog(last, start * (last / 512.0) ** p, "-", color=BLACK, lw=0.8)
    panels[0].text(4300, start * 8.0**p, "$n^2$" if p == 2 else "$n$", va="center")
for axes, sizes in zip(panels, (LENGTHS, WIDTHS), strict=True):
    axes.set_xticks(sizes, sizes)
    axes.minorticks_off()
panels[0].set(title="d = 64", xlabel="length n (positions)", ylabel="forward and backward (ms)")
panels[1].set(title="n = 128", xlabel="width d (numbers of a vector)")
panels[1].legend()
plt.show()

# %% [markdown]
# Where sizes are large, most slopes come near those of the counts. But the order is another. At $n = d = 64$
# attention and recurrence take equally many operations, but the recurrent layer takes many times as long.
# Attention becomes the slower one only at a much larger $n$. There are two reasons, and neither is in the count:
#
# - **The loop.** The recurrent layer calls NumPy in each of $n$ steps, and each call costs microseconds before it
#   computes anything. A compiled loop would be faster.
# - **Small products.** Each step multiplies one row by a matrix: it reads $d^2$ numbers to do $d^2$ multiplications.
#   Attention's products use each number many times. A batch helps, as all its sentences take a step together.
#
# So seconds depend on a layer *and a machine*. A slope below that of the count: calls of functions still cost more
# than the products in them. A slope above it: the arrays no longer fit into the processor's fast memory.
#
# ### What has to wait
#
# A machine may do many operations at once, but not those that need each other's results. However large it is,
# its time is the longest chain of operations that wait for each other. Our arrays count it, too, as `depth`:

# %%
print(f"{'':15} {'n = 64':>7} {'n = 128':>8}  for each position")
chains = {}
for name in LAYERS:
    short, long = counted(name, 64, 16)[1], counted(name, 128, 16)[1]
    chains[name] = (long - short) / 64
    print(f"{name:15} {short:7} {long:8}  {chains[name]:.0f}")
assert chains == {"self-attention": 0, "recurrent": 3, "convolution": 0, "restricted": 0}

# %% [markdown]
# The recurrent layer has three for each position: a product, a sum, tanh. The others need the same few for any
# length. This is the paper's second column, $O(n)$ against $O(1)$. In training, where all words are known, a
# Transformer works on all positions at once.
#
# ### How far apart two words are
#
# A word at the beginning may matter at the end. Through how many layers, or steps of a recurrent layer, does it have
# to go? We stack a layer on itself and go back from the last position alone. How many layers must there be, before
# $dx_s$, the gradient of the input at position $s$, is not zero? For the recurrent layer we go back step by step.


# %%
def layers_between(name, n, dilated=False):
    """For each distance 0 … n − 1: after how many layers dx there is not zero."""
    forward, backward, _ = LAYERS[name]
    x, *weights = inputs(name, n, 4, np.float64)
    caches, found = [], np.full(n, np.inf)
    while np.isinf(found).any():
        step = {"dilation": WIDTH ** len(caches)} if dilated else {}
        x, cache = forward(x, *weights, **step)
        caches.append(cache)
        dx = np.zeros_like(x)
        dx[:, -1] = 1.0
        for cache in reversed(caches):
            dx = backward(dx, cache)
        reached = (dx[0, ::-1] != 0).any(axis=-1)  # by distance from the last position
        found[reached] = np.minimum(found[reached], len(caches))
    return found


def steps_between(n):
    """The same for the steps of a recurrent layer."""
    x, *weights = inputs("recurrent", n, 4, np.float64)
    h, caches = np.zeros((1, 4)), []
    for t in range(n):
        (_, h), cache = elman(x[:, t : t + 1], h, *weights)  # a single step
        caches.append(cache)
    dh, found = np.ones((1, 4)), []
    for cache in reversed(caches):
        dx, dh, *_ = elman_backward((None, dh), cache)
        assert dx.any()
        found.append(len(found) + 1)
    return np.array(found)


N = 41
distances = np.arange(N)
paths = {name: layers_between(name, N) for name in LAYERS if name != "recurrent"}
paths["recurrent"] = steps_between(N)
paths["dilated"] = layers_between("convolution", N, dilated=True)

reach = WIDTH // 2  # of one convolution, to either side
assert (paths["self-attention"] == 1).all()
assert (paths["recurrent"] == distances + 1).all()
assert (paths["convolution"] == np.maximum(1, np.ceil(distances / reach))).all()
assert (paths["restricted"] == np.maximum(1, np.ceil(distances / WINDOW))).all()

# %% [markdown]
# The assertions say what was found. With $m$ for the distance: 1 layer of attention, $m + 1$ steps of recurrence,
# $2 m / (k - 1)$ layers of convolution, $m / r$ layers of restricted attention, rounded up. The fifth line is a
# stack of convolutions with holes, *dilated* by 1, 3, 9, 27: the three positions that one sees lie so far apart.
# Each layer makes the view three times as wide.

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4.2))
for name, look in LOOKS.items():
    axes.plot(distances, paths[name], ms=3.5, markevery=2, label=name, **look)
axes.plot(distances, paths["dilated"], "-", color="0.5", lw=2.5, label="convolution, dilated")
axes.set(xlabel="distance $m$ (positions)", ylabel="layers, or steps, between")
axes.legend()
plt.show()

# %% [markdown]
# ### The table
#
# The paper's table 1, with what we measured beside it. *In seconds*: the fitted exponents of $n$ and $d$. *Path*:
# from one end of 41 positions to the other.

# %%
PAPER = {  # operations, sequential operations, maximum path length
    "self-attention": ("n² d", "1", "1"),
    "recurrent": ("n d²", "n", "n"),
    "convolution": ("k n d²", "1", "n/k or log_k n"),
    "restricted": ("r n d", "1", "n/r"),
}
print(f"{'':15}| {'operations':32} | {'one after another':17} | path")
print(f"{'':15}| {'paper':7} {'counted':8} {'in seconds':15} | {'paper':6} {'counted':10} ", end="")
print(f"| {'paper':15} found")
for name, (operations, sequential, path) in PAPER.items():
    in_seconds = (
        f"n^{exponent(LENGTHS, against_n[name]):.1f} d^{exponent(WIDTHS, against_d[name]):.1f}"
    )
    waiting = f"{chains[name]:.0f} n + {counted(name, 64, 16)[1] - 64 * chains[name]:.0f}"
    found = f"{paths[name][-1]:.0f}" + (", 4 dilated" if name == "convolution" else "")
    print(f"{name:15}| {operations:7} {FORMULAS[name][0]:8} {in_seconds:15} ", end="")
    print(f"| {sequential:6} {waiting:10} | {path:15} {found}")
assert paths["dilated"][-1] == 4

# %% [markdown]
# ## 3 · Does a short path help to remember?
#
# "Learning long-range dependencies is a key challenge", says section 4; and the shorter the path, the easier it is.
# The paper does not test this on its own. We do: *one symbol of a random sequence is marked; at the end, say which
# it was.*
#
# Each model is an embedding, two layers of its kind with residual connections and LayerNorm, and a linear map.
# All layers look back only, as in a decoder. Attention now has its projections. Both kinds of attention are given
# positions, since they do not know the order of words ([lesson 06](06_positions.ipynb)). The recurrent layer is a
# GRU, which has gates to keep what it has heard. The convolution has gates, too, as in Gehring et al. (2017).


# %%
class Attention(MultiHeadAttention):
    def forward(self, x):
        return super().forward(x, x, x, causal_mask(x[:, :, 0]))

    def backward(self, dy, cache):
        return sum(super().backward(dy, cache))


class Window(RestrictedSelfAttention):
    def forward(self, x):
        return super().forward(x, x, x)

    def backward(self, dy, cache):
        return sum(super().backward(dy, cache))


class Recurrent(GRU):
    def forward(self, x):
        (y, _), cache = super().forward(x)
        return y, cache

    def backward(self, dy, cache):
        return super().backward((dy, None), cache)[0]


class Gated(Convolution1d):
    def forward(self, x):
        x, cache = super().forward(x)  # (B, T, 2 D)
        y, gate_cache = gated_linear_unit(x)  # (B, T, D)
        return y, (cache, gate_cache)

    def backward(self, dy, cache):
        return super().backward(gated_linear_unit_backward(dy, cache[1]), cache[0])


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
# ### One token, at distance 2 to 200
#
# There are 8 symbols, so a guess is right once in 8. Each may be marked: that is another 8 words. One more word
# asks. Up to 8 symbols stand before the marked one. Distances in training are mixed from 2 to 200, from 2 to 20 as
# often as from 20 to 200. The widths are chosen so that all models have about equally many parameters. Updates and
# learning rate are the same for all.
#
# The theory says where two of them must fail. Two convolutions, now of width $k = 5$, see $2 (k - 1) = 8$ positions
# back. Two layers with a window of $r = 8$ see $2 r = 16$. What is further away does not exist for them.

# %%
SYMBOLS, ASK = 8, 16  # words 0 … 7, the same marked 8 … 15, the question
KERNEL = 5


def recall_batch(draw, count, distance, before):
    ids = draw.integers(SYMBOLS, size=(count, before + distance + 1))
    answers = draw.integers(SYMBOLS, size=(count, 1))
    ids[:, before] = SYMBOLS + answers[:, 0]
    ids[:, -1] = ASK
    return ids, answers


def mixed_distances(draw):
    distance = int(np.exp(draw.uniform(np.log(2), np.log(201))))
    return recall_batch(draw, 32, distance, draw.integers(9))


BUILD = {  # width, and a layer of that width
    "self-attention": (32, lambda d, rng: Attention(d, 2, rng)),
    "recurrent": (26, lambda d, rng: Recurrent(d, d, rng)),
    "convolution": (20, lambda d, rng: Gated(d, 2 * d, KERNEL, rng, causal=True)),
    "restricted": (32, lambda d, rng: Window(d, 2, WINDOW, rng, causal=True)),
}


def new_model(name, words, seed):
    draw = np.random.default_rng(seed)
    width, layer = BUILD[name]
    layers = [layer(width, draw) for _ in range(2)]
    return SmallModel(layers, width, words, SYMBOLS, draw, positions="attention" in name)


SEEDS = (0, 1)
DISTANCES = [2, 4, 6, 8, 9, 12, 16, 17, 24, 32, 50, 80, 120, 160, 200]
recalled, sizes = {}, {}
for name in BUILD:
    models = [train(new_model(name, ASK + 1, s), mixed_distances, 250, s) for s in SEEDS]
    sizes[name] = models[0].num_parameters()
    recalled[name] = np.array(
        [
            [share_right(model, *recall_batch(rng, 150, m, before=4))[0] for m in DISTANCES]
            for model in models
        ]
    )  # (seeds, distances)
    print(f"{name:15} {sizes[name]:5} parameters, at 200: {recalled[name][:, -1]}")
assert max(sizes.values()) < 1.1 * min(sizes.values())

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(8, 4.2))
for name, look in LOOKS.items():
    size = 8 if name == "recurrent" else 4.5  # around what it hides
    axes.plot(DISTANCES, recalled[name].T, ms=size, label=[name, ""], **look)
for view, what in ((2 * (KERNEL - 1), "$2 (k-1)$"), (2 * WINDOW, "$2 r$")):
    axes.axvline(view, ymax=0.9, color=BLACK, ls="-", lw=0.8)
    axes.text(view, 1.07, what, ha="center")
axes.axhline(1 / SYMBOLS, color=BLACK, ls="-", lw=0.8)
axes.text(2, 1 / SYMBOLS + 0.02, "a guess")
axes.set(xscale="log", xlabel="distance (tokens)", ylabel="right answers, of all", ylim=(0, 1.15))
axes.set_xticks([2, 4, 8, 16, 32, 64, 128, 200], [2, 4, 8, 16, 32, 64, 128, 200])
axes.minorticks_off()
axes.legend(title="two seeds each", loc="center right")
plt.show()

# %%
near, far = np.array(DISTANCES) <= 4, np.array(DISTANCES) > 2 * WINDOW
assert (recalled["self-attention"] > 0.9).all()
assert (recalled["recurrent"] > 0.9).all()
assert (recalled["convolution"][:, near] > 0.8).all()
assert (recalled["restricted"][:, near] > 0.8).all()
assert (recalled["convolution"][:, far] < 0.35).all()
assert (recalled["restricted"][:, far] < 0.35).all()

# %% [markdown]
# The views are hard walls: beyond the vertical lines the answers are guesses. Before its wall a layer is not always
# right. One reason may be that more than half of its training asked what it cannot see. More layers would move the
# walls, and dilation would move them far.
#
# Attention and recurrence lie on each other, at the top. The recurrent path is 200 times as long, and that did not
# matter here. **A long path is not a wall.** The gates of a GRU can hold a value for as long as they stay shut. One
# marked symbol is the easiest case: the gates open for a marked word, and for no other. (The simple layer of
# section 1 has no gates. [Lesson 19](19_recurrence.ipynb) shows how its gradient vanishes.)
#
# ### How much does it hold?
#
# What a recurrent layer knows of the past has to fit into one vector. So let it remember more. Now each word is a
# **pair** of one of 16 keys and one of 8 values. All keys in a sequence are different. The question at the end
# names a key. Any may be asked for, so the more pairs there are, the more must be held. There are at most 16, so
# distance is no problem. Widths are as before.

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
held = {}
for name in ("self-attention", "recurrent"):
    models = [train(new_model(name, KEYS * VALUES + KEYS, s), mixed_pairs, 500, s) for s in SEEDS]
    held[name] = np.array(
        [[share_right(model, *pairs_batch(rng, 400, p))[0] for p in PAIRS] for model in models]
    )  # (seeds, numbers of pairs)
assert (held["self-attention"] > 0.9).all()
assert (held["recurrent"][:, -1] < 0.6).all()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.8))
for name in held:
    axes.plot(PAIRS, held[name].T, ms=5, label=[name, ""], **LOOKS[name])
axes.axhline(1 / VALUES, color=BLACK, ls="-", lw=0.8)
axes.text(1, 1 / VALUES + 0.02, "a guess")
axes.set(xlabel="pairs to remember", ylabel="right answers, of all", ylim=(0, 1.08))
axes.legend(title="two seeds each", loc="upper right", bbox_to_anchor=(1, 0.9))
plt.show()

# %% [markdown]
# Here they part. Attention keeps every word, and finds the right one by its key, as a dictionary does. The GRU must
# write all it hears into the same 26 numbers of a layer. A larger state can hold more. The first neural
# translators squeezed a whole sentence into one vector. That is why attention was invented (Bahdanau, Cho and
# Bengio 2015).
#
# ## 4 · Where attention loses
#
# ### Long sequences, and one word at a time
#
# Attention's time grows with the square of $n$, as section 2 showed. So does its memory: the backward pass needs
# the $n^2$ weights. The left picture shows the most that forward and backward hold at a time. The thin line is the
# memory of the weights alone.
#
# The right one is about **decoding**, where the words come one by one. Attention keeps the keys and values of all
# $n$ words so far, $2 n d$ numbers, and compares the new one with each: $2 n d$ multiply-adds. A recurrent layer
# keeps $d$ numbers and takes one more step, $2 d^2$ multiply-adds, however many words there were.


# %%
def most_memory(run):
    """The most bytes held at a time during run()."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def attention_step(n, d=64):
    q, k, v = (rng.standard_normal((1, 1, rows, d), np.float32) for rows in (1, n, n))
    return lambda: scaled_dot_product_attention(q, k, v)


def recurrent_step(d=64):
    x, *weights = inputs("recurrent", 1, d)
    return lambda: recur(x, *weights)


LONG = 2 ** np.arange(8, 13)
memory = {name: [most_memory(both_ways(name, n, 64)) for n in LONG] for name in LAYERS}
PAST = 2 ** np.arange(6, 17, 2)
step_of_attention = [seconds(attention_step(n), 15) for n in PAST]
step_of_recurrence = seconds(recurrent_step(), 50)

for name in LAYERS:
    print(f"{name:15} memory at n = {LONG[-1]}: {memory[name][-1] / 2**20:4.0f} MiB,", end=" ")
    print(f"as n^{exponent(LONG, memory[name]):.1f}")
assert memory["self-attention"][-1] > 10 * memory["restricted"][-1]

# %% tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for name, look in LOOKS.items():
    left.loglog(LONG, np.divide(memory[name], 2**20), ms=5, label=name, **look)
left.loglog(LONG, LONG**2 * 4 / 2**20, "-", color=BLACK, lw=0.8, label="$n^2$ weights, float32")
left.set(xlabel="length n (positions)", ylabel="memory, forward and backward (MiB)")
left.set_xticks(LONG, LONG)
left.minorticks_off()
left.legend()
right.loglog(
    PAST, np.multiply(step_of_attention, 1e6), label="self-attention", **LOOKS["self-attention"]
)
look = LOOKS["recurrent"] | dict(marker="none")
right.axhline(1e6 * step_of_recurrence, label="recurrent", **look)
right.set(xlabel="words so far", ylabel="one step (µs)", ylim=(1, None))
right.set_xticks(PAST, PAST)
right.minorticks_off()
right.legend()
plt.show()

# %% [markdown]
# For some hundred words, a step of attention costs little more than the calls of its functions. Then it grows
# with their number. The recurrent step stays where it is.
#
# ### Running state
#
# A bit string comes in. At each bit, say whether the number of ones so far is odd. One bit of memory is enough: turn
# it over at each 1. A recurrent layer can do exactly this. Attention has no memory to turn over: it takes means of
# what it sees. In a mean of $n$ bits, one bit moves the result by $1 / n$, and yet must turn the answer over. Hahn
# (2020) makes a proof of that thought: for long enough strings, attention with bounded weights cannot be sure.
#
# Training is on strings of 2 to 20 bits, the test on 60. The recurrent model is one GRU layer. Attention is given
# more: two layers, a feed-forward network after each, more than twice the parameters, three times the updates. It
# is tried with positions and without.

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
        layers = [
            layer
            for _ in range(2)
            for layer in (Attention(width, 2, draw), FeedForward(width, 2 * width, draw))
        ]
    return SmallModel(layers, width, 2, 2, draw, positions=name == "attention with positions")


STEPS = {"recurrent": 300, "attention with positions": 900, "attention, no positions": 900}
parity = {}
for name, steps in STEPS.items():
    models = [train(parity_model(name, s), mixed_lengths, steps, s) for s in SEEDS]
    test = parity_batch(rng, 500, TESTED)
    parity[name] = np.array([share_right(model, *test) for model in models])  # (seeds, TESTED)
    print(f"{name:24} {models[0].num_parameters():5} parameters, {steps} updates")

assert (parity["recurrent"] > 0.99).all()
for name in ("attention with positions", "attention, no positions"):
    assert (parity[name][:, LONGEST:].mean(axis=1) < 0.6).all()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(8, 4))
looks = {
    "recurrent": dict(color=VERMILION, ls="--"),
    "attention with positions": dict(color=BLUE, ls="-"),
    "attention, no positions": dict(color=BLACK, ls=":"),
}
bits_read = np.arange(1, TESTED + 1)
axes.axvspan(LONGEST + 0.5, TESTED + 0.5, color="0.94", lw=0)
axes.text(LONGEST + 1, 1.03, "longer than in training", fontsize=9.5)
for name, look in looks.items():
    axes.plot(bits_read, parity[name].T, label=[name, ""], **look)
axes.plot([0, TESTED + 1], [0.5, 0.5], color="0.4", ls="-", lw=0.8)
axes.text(TESTED + 1.5, 0.5, "a guess", va="center")
axes.set(xlabel="bits so far", ylabel="right answers, of all", xlim=(0, 68), ylim=(0.35, 1.1))
axes.legend(title="two seeds each", loc="center right")
plt.show()

# %% [markdown]
# The GRU has found the rule, and goes on to 60 bits as if nothing had happened. Attention with positions learns
# strings of up to about ten bits. Beyond the lengths of its training it guesses. Without positions it learns less.
#
# This is no proof: with more layers and updates attention may get further. But it finds hard what one recurrent
# layer learns with ease. The reason is its short path: it has **a fixed number of steps**, however long the string
# is. A recurrent layer has $n$ of them.
#
# ## 5 · What each is good for
#
# With $L$ for the number of layers:
#
# | | self-attention | recurrent | convolution | restricted |
# |---|---|---|---|---|
# | operations | $2 n^2 d$: fewest of the first three while $n \lt d$ | $2 n d^2$ | $k n d^2$ | $6 r n d$ |
# | in training | all positions at once | one after another | at once | at once |
# | one token, far away | yes | yes, with gates | up to $L (k - 1)$ | up to $L r$ |
# | many tokens, by content | yes | as its state allows | within its view | within its view |
# | running state, longer strings | no | yes | no: a fixed view | no: a fixed view |
# | the next word costs | $2 n d$, growing | $2 d^2$ | $k d^2$ | $2 r d$ |
# | good for | sentences | streams without end | what is local | long texts |
#
# *Many tokens* and *running state* were measured for the first two. For the others they follow from what a layer
# sees.
#
# In training a translator $n$ is smaller than $d$, all words are known, and any may matter to any. There, each
# argument is for self-attention. Where one of them falls away, another layer may be the better one.
#
# Today's models mix them, too: windows in most layers and full attention in some (Gemma 3, 2025), or layers with a
# state that can be trained in parallel (Mamba: Gu and Dao 2023). The last exercise has such a state.

# %% [markdown]
# ## The same on Multi30k
#
# The package has five translators of equal size: a GRU that puts the source into one vector, a GRU with additive
# attention, convolutions with attention, a Transformer with windows, and the Transformer. Each was trained once on
# Multi30k, German to English, for ten epochs of the same batches (`python benchmarks/ladder.py`; details are in
# `benchmarks/results/README.md`). BLEU on test_2016, and seconds on two CPU cores, of a step
# of training and of translating the 1,000 test sentences:
#
# | architecture | recipe | parameters | greedy | beam of 5 | a step | 1,000 sentences, greedily |
# |---|---|---|---|---|---|---|
# | GRU, a fixed vector | `gru` | 7.3 million | 25.1 | 27.2 | 0.54 s | 1.9 s |
# | GRU, additive attention | `gru-attention` | 7.4 million | 39.4 | 40.5 | 0.59 s | 2.3 s |
# | convolutions, attention | `convolution` | 7.6 million | 38.3 | 39.7 | 0.58 s | 2.3 s |
# | Transformer, windows | `restricted` | 7.6 million | 38.5 | 39.8 | 0.63 s | 2.0 s |
# | Transformer | `multi30k-quick` | 7.6 million | 38.1 | 39.6 | 0.62 s | 2.0 s |
#
# And by the length of the source, greedily:
#
# | words of the source | 1 to 8 | 9 to 11 | 12 to 14 | 15 or more |
# |---|---|---|---|---|
# | GRU, a fixed vector | 28.1 | 27.0 | 25.0 | 20.2 |
# | GRU, additive attention | 39.9 | 40.2 | 39.5 | 37.5 |
# | convolutions, attention | 40.7 | 40.3 | 38.1 | 33.8 |
# | Transformer, windows | 38.7 | 39.9 | 38.3 | 36.5 |
# | Transformer | 39.3 | 39.6 | 37.8 | 35.5 |
#
# Three things can be read from them.
#
# - **Attention to the source is worth most.** It takes the GRU from 25 to 39. With a fixed vector long sentences
#   are much worse than short ones; with attention, only a little.
# - **Then all are close.** The GRU with attention is even above the Transformer. A sentence has a dozen words: neither
#   $n^2$ operations nor a path of $n$ steps matter there. And ten epochs are few. The GRU was best after nine of
#   them, and the Transformer was still getting better: with 36, by the recipe `multi30k-cpu`, it has 41.5.
# - **Windows cost nothing here.** Three layers that see four words to either side see twelve.
#
# It is one seed each and 1,000 sentences, so a difference of one point says little.

# %% [markdown]
# ## 6 · Exercises
#
# Fill in `answers/ex21.py`, your copy of [lessons/exercises/ex21.py](exercises/ex21.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex21
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The
# solutions are in [lessons/solutions/ex21.py](solutions/ex21.py).
#
# 1. **`crossing_length`** (10 min). Attention with its four projections, against recurrent layers with gates. From
#    which $n$ on does attention take more multiply-adds? First guess it for the simple layer.
# 2. **`distances_seen`** (25 min). Stacks of layers with different widths and dilations. Which distances does the
#    last position see? Not always all up to the farthest.
# 3. **`recall_weights`** (45 min). What section 3 trained, written by hand: matrices with which one layer of
#    attention finds a value by its key, in a sequence of any length up to a thousand.
# 4. **`linear_attention`** (90 min). Attention without the softmax, in $O(n d^2)$: a recurrent layer in disguise
#    (Katharopoulos and others 2020). Its backward has the same running sums, the other way round.

# %%
print(check_exercise("ex21", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | operations | attention $2 n^2 d$, recurrent $2 n d^2$, convolution $k n d^2$, restricted $6 r n d$ |
# | they cross | attention takes fewer than recurrence while $n \lt d$ |
# | wait for each other | $O(n)$ operations in a recurrent layer, $O(1)$ in the others |
# | path over distance $m$ | 1; $m + 1$ steps; $2 m / (k - 1)$ layers, dilated about $\log_k m$; $m / r$ layers |
# | seconds | follow the counts only where sizes are large; small ones time function calls |
# | a wall | the view of $L$ layers, $L (k - 1)$ or $L r$ back; a long path is none, if gates keep what passes |
# | a state | holds what fits into it; attention holds everything, and pays $2 n d$ for each new word |
# | running state | recurrence finds the rule; attention learns the lengths it has seen |
#
# **Your own Transformer.** Nothing to write: you have measured why `own.py` has `scaled_dot_product_attention` in its
# middle, and no loop over positions. `minitransformer check own` says how far yours is.
#
# **Next:** half a Transformer, which goes on with a text, in [lesson 22](22_a_language_model.ipynb).
