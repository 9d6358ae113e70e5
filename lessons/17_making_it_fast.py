# %% [markdown]
# # 17 · Making it fast
#
# **You will** measure where a training step spends its time; derive the *roofline*, which says how fast a
# computation can be at all, and measure that of your machine; see why a faster layer is one that touches
# memory less often; and test fast code against readable code, with a mistake that only this test finds.
#
# | | |
# |---|---|
# | In the paper | section 5.2, hardware and schedule; Table 2, the cost of training |
# | In the package | `minitransformer/core/twins.py`, `minitransformer/accelerate/cpu`, `minitransformer/core/workers.py` |
# | You need | matrix products; what layers a Transformer has. The roofline is from Williams, Waterman and Patterson (2009) |
# | Time | an hour to read, two and a half for the exercises |

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
import cProfile
import itertools
import math
import pstats
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from threadpoolctl import threadpool_limits

import minitransformer
from minitransformer import CPU, Adam, Transformer, TransformerConfig, accelerated, select_device
from minitransformer.accelerate.cpu import layer_norm as fast
from minitransformer.core.twins import Twin, twinned
from minitransformer.core.workers import Workers
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.data.text.batches import Batch
from minitransformer.gradcheck import check_pair
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.linear import linear
from minitransformer.layers.softmax import softmax

use_style()
device = select_device("cpu")  # "cuda" measures the roofline of a GPU
rng = np.random.default_rng(17)

# %%
threadpool_limits(1, user_api="blas")  # one core for each product: times that can be repeated
# The time that this program has had the processor, where the system counts it finely enough: it
# stands still while other programs run.
EXACT = time.get_clock_info("process_time").resolution < 1e-6
PROCESSOR = time.process_time if EXACT else time.perf_counter


def random32(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


# %% [markdown]
# ## 1 · First find out where the time goes
#
# What is slow in a program? Most guesses are wrong. So a profiler watches a small Transformer train on random
# sentences. **All times in this notebook are those of the
# machine that it was built on.**

# %%
V, B, T, D = 2000, 16, 24, 128
config = TransformerConfig(
    source_vocabulary_size=V,
    target_vocabulary_size=V,
    d_model=D,
    num_heads=4,
    d_ff=4 * D,
    num_encoder_layers=2,
    num_decoder_layers=2,
    feed_forward_dropout=0.1,
    attention_dropout=0.1,
    norm="pre",
)
model = Transformer(config)
adam = Adam(model.flat)
source, target, labels = rng.integers(1, V, (3, B, T))


def train_step():
    model.zero_grad()
    _, cache = model.loss(Batch(source, target, labels), CPU.generator(1), smoothing=0.1)
    model.loss_backward(1.0, cache)
    adam.step(1e-4)


shape_table(
    {"B": B, "T": T, "V": V, "D": D},
    source=(source, "B T", "ids of the source sentences"),
    target=(target, "B T", "ids of the target sentences"),
    labels=(labels, "B T", "what the decoder has to say"),
    embedding=(model.output_projection.weight.data, "V D", "the largest parameter"),
)

# %% [markdown]
# A profiler notes for each function how long it runs, without the functions it calls. We give the time of
# NumPy's functions to the function of the package that called them. A layer of the package is a pair of
# functions in a file of its own, so the time of a file is the time of a kind of layer.

# %%
KINDS = {
    "linear maps, feed-forward": ("linear", "feed_forward", "relu"),
    "attention, softmax": ("attention", "softmax"),
    "projection and loss": ("cross_entropy", "projected_loss"),
    "dropout, residual": ("dropout", "residual"),
    "LayerNorm": ("layer_norm",),
    "embedding, positions": ("embedding", "positional_encoding", "token_ids"),
    "Adam": ("adam",),
}
PACKAGE = str(Path(minitransformer.__file__).parent)


def profiled(function):
    """Seconds of one call of ``function``, for each of KINDS and the rest."""
    profile = cProfile.Profile(PROCESSOR)
    profile.runcall(function)
    by_file = {}
    for (file, _, _), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():
        if file.startswith(PACKAGE):
            by_file[Path(file).stem] = by_file.get(Path(file).stem, 0) + own
        else:
            for (caller, *_), (_, _, _, with_callees) in callers.items():
                if caller.startswith(PACKAGE):
                    by_file[Path(caller).stem] = by_file.get(Path(caller).stem, 0) + with_callees
    seconds = {kind: sum(by_file.pop(f, 0) for f in files) for kind, files in KINDS.items()}
    return {**seconds, "the rest": sum(by_file.values())}


def time_by_kind(*functions, rounds=15):
    """For each function the best time of each kind, all of them by turns."""
    for function in functions:
        function()  # the first call is not typical
    results = [[profiled(function) for function in functions] for _ in range(rounds)]
    return [
        {kind: min(result[kind] for result in of_one) for kind in of_one[0]}
        for of_one in zip(*results, strict=True)
    ]


(times,) = time_by_kind(train_step)
assert min(times.values()) > 0  # the files of each kind were found
total = sum(times.values())
for kind, seconds in times.items():
    print(f"{kind:26} {1e3 * seconds:6.1f} ms  {seconds / total:4.0%}")

# %% [markdown]
# What can be gained is bounded. If a share $s$ of the time is made $k$ times as fast, the whole takes
# $1 - s + s / k$ of what it took, and is faster by the factor
#
# $$
# \frac{1}{1 - s + s / k} \lt \frac{1}{1 - s}
# $$
#
# (Amdahl 1967): even if $k$ is infinite, the rest remains. So we look at the largest rows first, and ask of
# each: *could* it be faster? For that we need a lower bound of its time.
#
# ## 2 · The roofline
#
# A computation does $W$ operations and moves $Q$ bytes between memory and processor. The processor can do $P$
# operations a second, the memory can move $\beta$ bytes. Both may work at once, but neither can be skipped:
#
# $$
# t \ge \frac{W}{P}, \qquad t \ge \frac{Q}{\beta} .
# $$
#
# Divide $W$ by the time to get the rate that is reached, and write $I = W / Q$ for the **arithmetic
# intensity**, the operations done with each byte:
#
# $$
# \frac{W}{t} \le P, \qquad \frac{W}{t} \le \beta \, \frac{W}{Q} = \beta I
# \qquad\Longrightarrow\qquad
# \frac{W}{t} \le \min(P, \ \beta I) .
# $$
#
# Plotted against $I$ this is a roof: a slope, then a flat part. The ridge between them is at $I = P / \beta$.
# Left of it memory is the bound, and less arithmetic does not help; right of it arithmetic is, and less
# traffic does not.
#
# **A sum of two arrays**, $a \leftarrow a + b$: an operation for each number; two are read, one is
# written, of 4 bytes. $I = 1/12$, whatever the size.
#
# **A linear map** of $r$ rows, $D$ wide on both sides: each of the $r D$ results is a sum of $D$ products,
# so $W = 2 r D^2$. X, W and Y cross once if all goes well: $Q = 4 (2 r D + D^2)$. So
#
# $$
# I = \frac{2 r D^2}{4 (2 r D + D^2)} = \frac{r D}{2 (2 r + D)} .
# $$
#
# For few rows, $r \ll D$, this is about $r / 2$. A single row has an intensity of 1/2: all of the weight is
# fetched for one use of it. This happens when a translation is written word by word, and makes a word so much
# slower than in training. For $r = D$ it is $D / 6$.
#
# **LayerNorm, softmax**: some operations for each number, which is read once and written once, 8
# bytes, if no more is moved than must be. We count 7 operations for LayerNorm (add, subtract, square, add,
# divide, times γ, plus β) and 5 for softmax (compare, subtract, exponential, add, divide), so $I = 7/8$ and
# $5/8$.
#
# ## 3 · Your machine's roof
#
# We measure $P$ by a large matrix product and $\beta$ by a sum of arrays too large for the cache. Then we
# place the layers under the roof, linear maps as circles, the others as squares. A linear map gets another
# weight at each call, which has to come from memory.


# %%
def seconds_of(function, tries=15, clock=PROCESSOR if device == CPU else time.perf_counter):
    """The best time of a call: other programs can make it slower, and never faster."""
    function()
    best = math.inf
    for _ in range(tries):
        device.synchronize()
        start = clock()
        function()
        device.synchronize()
        best = min(best, clock() - start)
    return best


def on_device(*shape):
    return device.asarray(random32(*shape))


def add_in_place(a, b):
    a += b


n = 2**24
large, other = on_device(n), on_device(n)
bandwidth = 12 * n / seconds_of(lambda: add_in_place(large, other), tries=30)  # β, bytes a second
square = on_device(512, 512)
rate = 2 * 512**3 / seconds_of(lambda: square @ square, tries=40)  # P, operations a second
print(f"P = {rate / 1e9:.0f} billion operations a second (float32)")
print(f"β = {bandwidth / 1e9:.1f} billion bytes a second")
print(f"the ridge is at {rate / bandwidth:.0f} operations a byte")

# %%
WIDTH = 1024
weights = itertools.cycle([on_device(WIDTH, WIDTH) for _ in range(16)])
points = {}  # name: intensity, operations a second
for rows in (1, 4, 16, 64, 256):
    x = on_device(rows, WIDTH)
    operations, traffic = 2 * rows * WIDTH**2, 4 * (2 * rows * WIDTH + WIDTH**2)
    t = seconds_of(lambda x=x: linear(x, next(weights)), tries=32)
    points[f"linear, {rows} row{'s' * (rows > 1)}"] = operations / traffic, operations / t

x, gamma, beta = (on_device(*shape) for shape in ((4096, WIDTH), (WIDTH,), (WIDTH,)))
points["sum"] = 1 / 12, bandwidth / 12
points["softmax"] = 5 / 8, 5 * x.size / seconds_of(lambda: softmax(x))
points["LayerNorm"] = 7 / 8, 7 * x.size / seconds_of(lambda: layer_norm(x, gamma, beta))

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4.6))
intensity = np.logspace(-1.5, 2.7, 200)
axes.loglog(intensity, np.minimum(rate, bandwidth * intensity), "-", color=BLACK, lw=1)
axes.text(0.16, bandwidth * 0.22, r"$\beta I$", ha="right")
axes.text(350, rate * 1.15, "$P$", ha="right")
for name, (across, up) in points.items():
    is_linear = name.startswith("linear")
    axes.plot(across, up, "o" if is_linear else "s", color=BLUE if is_linear else VERMILION)
    side = dict(xytext=(-8, -3), ha="right") if name == "softmax" else dict(xytext=(8, -3))
    axes.annotate(name, (across, up), textcoords="offset points", fontsize=9, **side)
axes.set(xlabel="arithmetic intensity (operations a byte)", ylabel="operations a second")
axes.set(ylim=(None, rate * 2.2), xlim=(0.03, 900))
plt.show()

# %% [markdown]
# The linear maps climb as they get more rows. With a few rows they stay some way below the slope: the library
# for matrix products is made for large ones. With hundreds they are near the flat roof, and there is little
# left to improve. What *we* decide is the number of rows. So tokens of all sentences go into one product
# ([appendix 90](90_arrays_and_devices.ipynb)), and batches are as large as learning allows.
#
# Softmax and LayerNorm are left of the ridge, so memory bounds them. But they stay far below even that bound,
# by the vertical distance to the slope. Why?
#
# ## 4 · Memory traffic, counted
#
# We count for LayerNorm. Each NumPy operation reads its arrays from memory and writes its result there:
#
# | the reference | reads | writes |
# |---|---|---|
# | `x.mean()` | 1 | |
# | `x - mean` | 1 | 1 |
# | `centred * centred` | 1 | 1 |
# | `.mean()` | 1 | |
# | `centred / sigma` | 1 | 1 |
# | `gamma * x_hat` | 1 | 1 |
# | `+ beta` | 1 | 1 |
# | together | 7 | 5 |
#
# Twelve passes over an array of the size of x, where one read and one write would do: the traffic is six times
# the least.
#
# Does that explain the distance to the slope? Then the operations would be fast on rows that are in the
# cache. We time some of them there, for each number, and compare with the time that memory needs to read one
# number and write one:

# %%
ROWS, FEATURES = 8192, 512
x_large, y_large = random32(ROWS, FEATURES), np.empty((ROWS, FEATURES), np.float32)
few = x_large[:128].copy()
column, vector = few.std(axis=-1, keepdims=True), np.full(FEATURES, 1 / FEATURES, np.float32)
OPERATIONS = {
    "x.mean(axis=-1)": lambda: few.mean(axis=-1, keepdims=True),
    "x @ vector of 1 / D": lambda: few @ vector,
    "x - mean": lambda: few - column,
    "x * x": lambda: few * few,
    "x / sigma": lambda: few / column,
}
for name, operation in OPERATIONS.items():
    print(f"{name:20} {1e9 * seconds_of(operation, tries=400) / few.size:6.3f} ns a number")
print(f"{'memory, 8 bytes':20} {8e9 / bandwidth:6.3f} ns")

# %% [markdown]
# The first two lines compute the same means. NumPy adds a row up in pieces and then in pairs, which rounds
# less (its documentation calls it pairwise summation); a product with a constant vector leaves it to the
# library for matrix products. So both traffic and slow loops cost time. There are four ways to save it:
#
# **Another operation** for the same result, as here.
#
# **In place.** A result that overwrites an array of our own needs no new memory, and often the array is in
# the cache already.
#
# **Fused.** The whole formula in one loop, a row at a time. That needs a compiler, or a kernel on a GPU: it
# reads x once, keeps the row in registers, and writes y once. The package's code for CUDA is made of such
# kernels.
#
# **In blocks.** NumPy makes all its passes over a few rows, which stay in the cache, and then goes on to the
# next. How many rows? Let a call of all operations cost $t_0$, and a row $c$ when its block is in the cache.
# Then $r$ rows cost $t_0 + r c$, and a row
#
# $$
# \frac{t_0}{r} + c .
# $$
#
# This falls with $r$, as long as the block fits. Beyond, $c$ grows. So the time of a row should have a
# valley:

# %%
gain, shift = random32(FEATURES), random32(FEATURES)
block_sizes = 2 ** np.arange(2, 14)


def in_blocks(rows):
    for start in range(0, ROWS, rows):
        block = slice(start, start + rows)
        y_large[block] = layer_norm(x_large[block], gain, shift)[0]


per_row = [seconds_of(lambda rows=rows: in_blocks(rows), tries=7) / ROWS for rows in block_sizes]
lowest = np.argmin(per_row) + 1
left = np.array(per_row[:lowest])
t_0, c = np.polyfit(1 / block_sizes[:lowest], left, 1, w=1 / left)
best = block_sizes[lowest - 1]
print(
    f"best: {best} rows, {best * FEATURES * 4 / 1024:.0f} KiB; all at once takes {per_row[-1] / min(per_row):.1f} times as long"
)

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.8))
axes.semilogx(block_sizes, [1e6 * t for t in per_row], "o-", color=BLUE, label="measured")
line = 1e6 * (t_0 / block_sizes + c)
axes.semilogx(block_sizes, line, "-", color=BLACK, lw=1, label="$t_0 / r + c$, fitted on the left")
axes.set(xlabel="rows of a block, $r$", ylabel="time of a row (µs)", ylim=(0, None))
axes.legend()
plt.show()

# %% [markdown]
# The step up on the right has another cause: *new memory*. For an array of megabytes the C library asks the
# system, which clears and hands out page by page; when the array is dropped, they may go back. Small arrays use
# what the process has already. The system counts the pages:

# %%
if importlib.util.find_spec("resource"):  # not on Windows
    import resource

    for name, rows in (("all at once", ROWS), ("in the best blocks", best)):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        in_blocks(rows)
        pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        print(f"{name:18} {pages:5} pages")

# %% [markdown]
# So training asks the C library to keep its memory for the next array: `keep_freed_memory`, in
# `minitransformer/core/memory.py`.
#
# ## 5 · Twins: fast code beside readable code
#
# Fast code is harder to read, and this package is there to be read. So each function keeps its readable body,
# the **reference**, and may have a **twin**: the same arguments, the same results, fewer passes. This is
# LayerNorm's. Products with constant vectors take the means, and its own arrays are overwritten:

# %%
source_of(fast.layer_norm, fast.layer_norm_backward)

# %% [markdown]
# Twins are used inside `with accelerated():` and nowhere else. How can a function take the place of one that
# many modules import? What they import as `layer_norm` asks at each call who is to do the work:

# %%
source_of(twinned)

# %% [markdown]
# A cache travels with the backward that can read it. `_own` is the file of a learner whose functions stand in
# ([lesson 18](18_your_own_transformer.ipynb)), if any; `twin_of` looks a function up in it. Then all twins sleep: one
# of a whole layer would pass over the functions within it. Do twins give the same, and how much faster are they?

# %%
dy_large = random32(ROWS, FEATURES)


def both_ways(awake):
    with accelerated(awake):
        y, cache = layer_norm(x_large, gain, shift)
        return y, *layer_norm_backward(dy_large, cache)


for name, one, two in zip(("y", "dx", "dγ", "dβ"), both_ways(False), both_ways(True), strict=True):
    difference = abs(one - two).max() / abs(one).max()
    print(f"{name:3} differs by {difference:.1e}, relative to its largest entry")
    assert difference < 1e-4
ratio = seconds_of(lambda: both_ways(False)) / seconds_of(lambda: both_ways(True))
print(f"forward and backward: the reference takes {ratio:.2f} times as long")

# %% [markdown]
# Not bit for bit: sums in another order round differently. A float32 has 24 bits, so its last one is about
# $10^{-7}$ of the number; dγ and dβ, sums over 8192 rows, differ by some tens of that. The whole training step,
# with references and with twins:


# %%
def accelerated_step():
    with accelerated():
        train_step()


reference_times, twin_times = time_by_kind(train_step, accelerated_step)
before, after = (1e3 * sum(times.values()) for times in (reference_times, twin_times))
print(f"whole step: references {before:.0f} ms, twins {after:.0f} ms")

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(8, 4))
place = np.arange(len(twin_times))
for offset, times, colour, hatch, name in (
    (-0.2, reference_times, ORANGE, "", "references"),
    (0.2, twin_times, GREEN, "//", "twins"),
):
    milliseconds = [1e3 * seconds for seconds in times.values()]
    axes.barh(place + offset, milliseconds, 0.38, color=colour, hatch=hatch, ec="white", label=name)
axes.set_yticks(place, twin_times)
axes.invert_yaxis()
axes.set_axisbelow(True)
axes.set(xlabel="time in a training step (ms)")
axes.legend()
plt.show()

# %% [markdown]
# Some time has only moved: the twins of feed-forward, attention and projection do their own dropout and matrix
# products. So compare the sums. The matrix products remain, as Amdahl said.
#
# ### Why the gradient check is not enough
#
# Here is a twin with an easy mistake: somebody forgot ε, because "it is tiny". First the gradient check, then the
# comparison of twin and reference:


# %%
def forgets_epsilon(x, gamma, beta, epsilon=1e-5):
    return fast.layer_norm(x, gamma, beta, epsilon=0.0)


right_twin = layer_norm.twins["numpy"]
layer_norm.twins["numpy"] = Twin(forgets_epsilon, fast.layer_norm_backward)
inputs = [rng.standard_normal(shape) for shape in ((2, 3, 8), (8,), (8,))]
asleep = check_pair(layer_norm, layer_norm_backward, inputs)
awake = check_pair(forgets_epsilon, fast.layer_norm_backward, inputs)
print(f"gradient check of the layer, twins asleep: {'right' if asleep.right else 'WRONG'}")
print(f"gradient check of the wrong twin itself:   {'right' if awake.right else 'WRONG'}")
assert asleep.right
assert awake.right

flat = inputs[0] * 1e-3  # rows of a small spread
one, _ = layer_norm(flat, *inputs[1:])
with accelerated():
    two, _ = layer_norm(flat, *inputs[1:])
layer_norm.twins["numpy"] = right_twin
print(f"twin against reference: {abs(one - two).max() / abs(one).max():.0%} off")
assert not np.allclose(one, two, rtol=1e-2)

# %% [markdown]
# The first check never meets the twin. The second passes too: the twin has the *correct gradient of another
# function*. A gradient check compares a backward with its own forward; it cannot know which forward was meant.
# **The reference is what was meant.** So every twin of the package has two tests, against central differences
# and against its reference, on inputs where a difference would show.
#
# ## 6 · Shards on threads
#
# A CPU also has several cores. A library for matrix products can share out each product among them, and at
# its end all wait for the last. It is better to share out the *batch*: each thread runs forward and backward
# on its part, and they meet once a step. This gives the same gradient, under one condition. Let $\ell_n$ be
# the loss of token $n$, of $N$ in the batch, and let the tokens be dealt into shards $S_1, S_2, \dots$:
#
# $$
# L = \frac1N \sum_{n=1}^{N} \ell_n = \sum_k \underbrace{\frac1N \sum_{n \in S_k} \ell_n}_{L_k}
# \qquad\Longrightarrow\qquad
# \frac{\partial L}{\partial \theta} = \sum_k \frac{\partial L_k}{\partial \theta} .
# $$
#
# Each shard divides by the tokens of the *whole batch*, not by its own: a mean of the shards' means is
# another number if they differ in tokens. A replica shares the parameters and has gradients of its own, so no
# thread waits for another.

# %%
shards = [slice(0, 6), slice(6, 16)]  # uneven on purpose
double = Transformer(config, dtype=np.float64)
replicas = [double.replica() for _ in shards]


def gradient_of(replica, rows, num_tokens):
    replica.zero_grad()
    _, cache = replica.loss(Batch(source[rows], target[rows], labels[rows]), num_tokens=num_tokens)
    replica.loss_backward(1.0, cache)
    return replica.flat.grad.copy()


whole = gradient_of(double, slice(None), B * T)
parts = Workers(2).map(gradient_of, replicas, shards, [B * T] * 2)
own_means = [gradient_of(r, rows, None) for r, rows in zip(replicas, shards, strict=True)]
scale = abs(whole).max()
print(
    f"sum of the shards, each over all N tokens: off by {abs(sum(parts) - whole).max() / scale:.0e}"
)
print(
    f"mean of the shards' own means:             off by {abs(sum(own_means) / 2 - whole).max() / scale:.0e}"
)
assert np.allclose(sum(parts), whole, rtol=1e-9, atol=1e-12 * scale)
assert not np.allclose(sum(own_means) / 2, whole, rtol=1e-3)

# %% [markdown]
# What two threads gain depends on how many cores are free. When this page was built:

# %%
halves, twice = [slice(0, 8), slice(8, 16)], Workers(2)
fast_replicas = [model.replica() for _ in halves]
wall = time.perf_counter  # two threads use the processor twice as fast as time passes


def one_after_the_other():
    for replica, half in zip(fast_replicas, halves, strict=True):
        gradient_of(replica, half, B * T)


def side_by_side():
    twice.map(gradient_of, fast_replicas, halves, [B * T] * 2)


alone, together = (seconds_of(f, clock=wall) for f in (one_after_the_other, side_by_side))
print(f"two shards one after the other take {alone / together:.2f} times as long as side by side")

# %% [markdown]
# ## 7 · Fewer bits
#
# A number of half the bytes halves the traffic, and GPUs have units that multiply short numbers at a higher $P$.
# What does it cost? Round a matrix to $b$ significant bits, $\tilde a = a (1 + \epsilon)$, with errors
# $\epsilon$ that are as good as random, of root mean square $\delta$. Then
#
# $$
# \tilde y = \sum_{k=1}^{K} a_k (1 + \epsilon_k) \, b_k (1 + \epsilon'_k)
# \approx y + \sum_{k=1}^{K} a_k b_k (\epsilon_k + \epsilon'_k) ,
# $$
#
# without the products of two errors. For independent entries with mean 0 and variance 1, $y$ has the variance
# $K$. $\epsilon_k + \epsilon'_k$ has the variance $2 \delta^2$, so the error has the variance $2 \delta^2 K$.
# The relative error is the root of their ratio, $\sqrt 2 \, \delta$: **it does not grow with the length of
# the sum**, if the sum itself is kept in more bits. So units for short numbers add up in float32. We round by
# hand, and add up in float64:


# %%
def rounded(x, bits):
    """x with ``bits`` significant bits."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.round(fraction * 2.0**bits) / 2.0**bits, exponent)


FORMATS = {"bfloat16": 8, "float16, TF32": 11, "float32": 24}
print(f"{'format':15} {'bits':>4}   {'K = 16':>8} {'K = 1024':>9}   √2 δ")
for name, bits in FORMATS.items():
    errors = []
    for K in (16, 1024):
        a, b = rng.standard_normal((128, K)), rng.standard_normal((K, 128))
        y = a @ b
        errors.append(np.linalg.norm(rounded(a, bits) @ rounded(b, bits) - y) / np.linalg.norm(y))
    delta = np.linalg.norm(rounded(a, bits) - a) / np.linalg.norm(a)
    print(f"{name:15} {bits:4}   {errors[0]:8.1e} {errors[1]:9.1e}   {math.sqrt(2) * delta:.1e}")
    assert abs(errors[1] / (math.sqrt(2) * delta) - 1) < 0.1

# %% [markdown]
# The bits are those of the formats' definitions, the leading one included. Both columns agree with the formula. Training tolerates such errors in its products (Micikevicius and others, *Mixed Precision
# Training*, 2018), but not in the parameters. Each step adds a little to them, which a short number would
# round away:

# %%
parameter, small_step = 1.0, 1e-3
print("1 + 0.001 with  8 bits:", rounded(parameter + small_step, 8))
print("1 + 0.001 with 24 bits:", rounded(parameter + small_step, 24))
assert rounded(parameter + small_step, 8) == 1

# %% [markdown]
# ## 8 · Exercises
#
# Fill in `answers/ex17.py`, your copy of [lessons/exercises/ex17.py](exercises/ex17.py)
# (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex17
# ```
#
# or copy the functions into new cells and run the cell below again. Solutions:
# [lessons/solutions/ex17.py](solutions/ex17.py).
#
# 1. **`rows_to_be_busy`** (25 min). How many tokens does a linear map need before memory is no longer
#    its bound? For some widths the answer may surprise you.
# 2. **`relu_dropout`** (45 min). Two layers in one, that keep neither of their masks. It is what the
#    feed-forward's twin does.
# 3. **`streamed_average`** (90 min). Softmax seems to need all scores before it can weigh the first. It does
#    not, and the kernels that fuse attention rest on it.

# %%
print(check_exercise("ex17", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | first | measure; a share $s$ made infinitely fast gives $1 / (1 - s)$ |
# | roofline | $W / t \le \min(P, \beta I), \quad I = W / Q$, ridge at $I = P / \beta$ |
# | intensity | sum 1/12; linear map $r D / (2 (2 r + D))$; LayerNorm and softmax about 1 |
# | memory-bound layers | another operation; in place; fused; in blocks that fit the cache, $t_0 / r + c$ |
# | twins | the reference says what is meant; test a twin against it *and* by central differences |
# | shards | sum of gradients, each loss divided by the tokens of the whole batch |
# | precision | relative error of a product $\sqrt 2 \, \delta$, if sums are kept long |
#
# **Your own Transformer.** Nothing new to write, and no twin stands in for a function of yours. Make
# one in `answers/own.py` faster if you like: `minitransformer check own` says whether it is still
# right.
#
# **Next:** all of it in one file, and that file trains the translator:
# [lesson 18](18_your_own_transformer.ipynb).
