# %% [markdown]
# # 21 · Why self-attention
#
# **You will** count and time the layers of table 1 of the paper; measure how many steps lie between two words in
# each; and find where self-attention loses.
#
# | | |
# |---|---|
# | In the paper | section 4, *Why Self-Attention*, and its table 1 |
# | In the package | `minitransformer/layers/`: `attention.py`, `elman.py`, `gru.py`, `convolution.py`, `restricted_attention.py` |
# | You need | matrix products; attention, as in [lesson 08](08_attention.ipynb) |
# | Time | three quarters of an hour to read, half an hour for the exercises |

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

from minitransformer import select_device
from minitransformer.core.backend import to_host
from minitransformer.core.blas_threads import ONE_BLAS_THREAD
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
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.convolution import convolution, convolution_backward
from minitransformer.layers.elman import elman, elman_backward
from minitransformer.layers.recurrence import recurrence
from minitransformer.layers.restricted_attention import (
    restricted_attention,
    restricted_attention_backward,
)

use_style()
device = select_device("cpu")  # "cuda" runs the layers of section 1 on a GPU
rng = np.random.default_rng(21)

# %% [markdown]
# ## 1 · Four layers, and a guess
#
# Some layer has to bring the words of a sentence together. It is given $n$ vectors of $d$ numbers, and returns as
# many, each of which knows of others. The paper compares four:
#
# - **Self-attention**: each position looks at all.
# - **A recurrent layer** goes from left to right. Each position hears from the one before it.
# - **A convolution**: each position sees the $k$ around it.
# - **Restricted self-attention**: each position looks at those up to $r$ away.
#
# Why did the Transformer take the first? The paper counts operations, steps that have to wait for each other, and
# steps between two words. We measure all three, and then what they leave out.
#
# Here $k = 3$ and $r = 8$. As in the paper's count, attention has no projections. The recurrent layer is the
# simplest, $h_t = \tanh(x_t W + h_{t-1} U + b)$.

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
# **Your guess.** For $n = 64$ and $d = 256$: which layer takes the fewest operations, and which the most? Which takes
# the least time? Write down both orders.
#
# Two positions meet in attention's `query @ key`, all pairs at once, in the convolution's `windows`, where $k$ rows lie
# side by side, and in the recurrent layer's loop over `steps`:

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
# The paper has the same without the constants. We check it with arrays that count: NumPy hands each operation on
# such an array to a method of its class.


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
# This favours attention: the four projections of attention in a Transformer, $n d^2$ each, are not counted. The first
# exercise puts them in.
#
# ### Seconds
#
# Now the time of forward and backward on one core, against $n$ and against $d$, the median of a few runs. If times
# grow as $n^p$, then their logarithm has the slope $p$. We fit $p$ to the largest four sizes, where the cost of calling
# a function counts least. The thin lines have the slopes 1 and 2.


# %%
EXACT = time.get_clock_info("process_time").resolution < 1e-6  # not so on Windows
clock = time.process_time if EXACT else time.perf_counter


def seconds(run, repeats=3):
    """The median time of run() on one core, after one run that does not count."""
    times = []
    with ONE_BLAS_THREAD:
        run()
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
# Attention becomes the slower one only at a much larger $n$. Neither reason is in the count:
#
# - **The loop.** The recurrent layer calls NumPy in each of $n$ steps, which costs microseconds before anything is
#   computed. A compiled loop would be faster.
# - **Small products.** Each step reads $d^2$ numbers to do $d^2$ multiplications. Attention's products use each number
#   many times. A batch helps, as all its sentences take a step together.
#
# So seconds depend on a layer *and a machine*. Where a slope is below that of the count, calls of functions still cost
# most; where it is above, the arrays no longer fit into the processor's fast memory.
#
# ### What has to wait
#
# However large a machine is, what needs a result has to wait for it. Our arrays count the longest such chain as
# `depth`:

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
# length. This is the paper's second column, $O(n)$ against $O(1)$.
#
# ### How far apart two words are
#
# A word at the beginning may matter at the end. Through how many layers, or steps of a recurrent layer, does it have
# to go? We stack a layer on itself and go back from the last position alone. How many layers must there be, before
# $dx_s$, the gradient of the input at position $s$, is not zero?


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
# stack of convolutions *dilated* by 1, 3, 9, 27: each makes the view three times as wide.

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
# ## 3 · Where attention loses
#
# Attention's operations grow with the square of $n$, as section 2 counted. So does its memory: the backward pass needs
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
# For some hundred words, a step of attention costs little more than calls of functions. Then it grows with their
# number. The recurrent step stays where it is.
#
# What of remembering? [Lesson 26](26_what_a_layer_remembers.ipynb) trains small models for it:
#
# - **Distance.** A GRU that is shown only cases 200 steps away does not learn to recall a token, and attention does. If
#   near ones are among them, the GRU learns all.
# - **Many tokens.** Attention learns to hold more of them than a GRU that is trained two and a half times as
#   long.
# - **Running state**, such as whether the ones of a string so far are odd. A GRU learns the rule and keeps to it on
#   longer strings. Attention could compute it, and learns only short strings.
#
# ## 4 · What each is good for
#
# With $L$ for the number of layers; what lesson 26 did not measure follows from what a layer sees:
#
# | | self-attention | recurrent | convolution | restricted |
# |---|---|---|---|---|
# | operations | $2 n^2 d$: fewest of the first three while $n \lt d$ | $2 n d^2$ | $k n d^2$ | $6 r n d$ |
# | in training | all positions at once | one after another | at once | at once |
# | one token, far away | yes | if near ones teach it | up to $L (k - 1) / 2$, causal $L (k - 1)$ | up to $L r$ |
# | many tokens, by content | yes | as its state and its training allow | within its view | within its view |
# | running state, longer strings | not learned | learned | no: a fixed view | no: a fixed view |
# | the next word costs | $2 n d$, growing | $2 d^2$ | $k d^2$ | $2 r d$ |
# | good for | sentences | streams without end | what is local | long texts |
#
# In training a translator $n$ is smaller than $d$, all words are known, and any may matter to any: each argument is
# for self-attention. Where one of them falls away, another layer may be better. Today's models mix them: windows
# in most layers and full attention in some (Gemma 3, 2025), or layers with a state that can be trained in parallel
# (Mamba: Gu and Dao 2023).

# %% [markdown]
# ## The same on Multi30k
#
# The package has five translators of equal size. Each was trained once on Multi30k, German to English, for ten epochs
# of the same batches (`python benchmarks/ladder.py`; details are in `benchmarks/results/README.md`). BLEU on test_2016,
# and seconds on two CPU cores, of a step of training and of translating the 1,000 test sentences:
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
# - **Attention to the source is worth most.** It takes the GRU from 25 to 39. With a fixed vector long sentences have
#   8 points less than short ones, with attention 2 to 4; but convolutions with attention fall by 7, from 40.7 to 33.8.
# - **Then all are close.** A sentence has a dozen words: neither $n^2$ operations nor a path of $n$ steps matter there.
#   And ten epochs are few. The GRU was best after nine of them, and the Transformer was still getting better: with 36,
#   by the recipe `multi30k-cpu`, it has 41.5.
# - **Windows cost nothing here.** Three layers that see four words to either side see twelve.
#
# It is one seed each and 1,000 sentences, so a difference of one point says little.

# %% [markdown]
# ## 5 · Exercises
#
# Fill in `answers/ex21.py`, your copy of [lessons/exercises/ex21.py](exercises/ex21.py), or copy its functions into
# cells here, and run the cell below or `minitransformer check ex21`. Solutions:
# [lessons/solutions/ex21.py](solutions/ex21.py).
#
# 1. **`crossing_length`** (10 min). Attention with its four projections, against recurrent layers with gates. From
#    which $n$ on does attention take more multiply-adds?
# 2. **`distances_seen`** (25 min). Stacks of layers with different widths and dilations. Which distances does the
#    last position see? Not always all up to the farthest.

# %%
print(check_exercise("ex21", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | operations | attention $2 n^2 d$, recurrent $2 n d^2$, more if $n \lt d$, convolution $k n d^2$, restricted $6 r n d$ |
# | wait for each other | $O(n)$ operations in a recurrent layer, $O(1)$ in the others |
# | path over distance $m$ | 1; $m + 1$ steps; $2 m / (k - 1)$ layers, dilated about $\log_k m$; $m / r$ layers |
# | seconds | follow the counts only where sizes are large; small ones time function calls |
# | the next word | attention keeps everything, and pays $2 n d$ for it; a recurrent layer $2 d^2$ |
#
# **Your own Transformer.** No function for `own.py`; but now you know why it has no loop over positions.
# `minitransformer check own` says how far yours is.
#
# **Next:** what such layers remember, in [lesson 26](26_what_a_layer_remembers.ipynb).
