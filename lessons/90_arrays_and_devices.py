# %% [markdown]
# # 90 · Appendix: arrays on two machines
#
# **You will** write functions that run unchanged on a CPU and on a GPU; predict the dtype of a result, and
# whether an operation copies; find out when a GPU pays, by a formula and by a measurement on your own
# machine; and see why most of what makes GPU code slow is waiting.
#
# This is an appendix, for whoever uses a GPU. No lesson needs it.
#
# | | |
# |---|---|
# | In the paper | section 5.2, hardware: all of it trains on GPUs; section 3.2.2 is the matrix product used here |
# | In the package | `minitransformer/core/backend.py`, `minitransformer/layers/linear.py` |
# | You need | NumPy: shapes, slices, broadcasting. No GPU |
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
import math
import time
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from threadpoolctl import threadpool_limits

from minitransformer import CPU, DeviceError, select_device
from minitransformer.core.backend import Device, array_namespace, to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.exercises.far_machine import FarMachine
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
from minitransformer.gradcheck import check_pair
from minitransformer.layers.attention import (
    multi_head_attention,
    multi_head_attention_backward,
    split_heads,
)
from minitransformer.layers.layer_norm import layer_norm
from minitransformer.layers.linear import linear, linear_backward

use_style()
device = select_device("cpu")  # "cuda" runs the layers of this lesson on a GPU
rng = np.random.default_rng(90)

# %% [markdown]
# ## 1 · A function that works on one machine only
#
# A GPU is a second computer inside yours. It has many small cores, and its own memory, which your program
# cannot reach. CuPy is a library with NumPy's functions for arrays in that memory. Here is a softmax, as one
# writes it with NumPy:


# %%
def softmax_for_numpy(x):
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


scores = np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]])
print(softmax_for_numpy(scores).round(3))

# %% [markdown]
# Will it run on a GPU? To find out without one, we use a **far machine**: a small array library made for the
# exercises. NumPy computes its arrays, but they are no NumPy arrays. It refuses what CuPy refuses, and a
# little more, and counts what costs time on a GPU. It is no faster than NumPy.

# %%
far = FarMachine()
far_scores = far.asarray(scores)
try:
    softmax_for_numpy(far_scores)
except TypeError as error:
    print(type(error).__name__, "·", error)

# %% [markdown]
# `x.max()` and `-` went well: they are the array's own, and are computed where the array is. `np.exp` did
# not: NumPy cannot reach that memory. CuPy would have helped out: asked for `np.exp` of a CuPy array, NumPy
# hands the work over to CuPy (CuPy's user guide, "Interoperability"). But the help ends where NumPy makes an
# array of its own: `x + np.ones(3)` is an error on a GPU, as section 2 shows. So we do not rely on it, and
# the far machine refuses all of NumPy's functions.
#
# The cure is one line. Ask the array which library it belongs to, and use that:


# %%
def softmax_anywhere(x):
    xp = array_namespace(x)
    weights = xp.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


assert np.array_equal(softmax_anywhere(far_scores).get(), softmax_anywhere(scores))
source_of(array_namespace)

# %% [markdown]
# This is how one code serves two machines: NumPy and CuPy spell their functions alike, and `xp` is the one
# that the array comes from. No layer of the package contains an `if` about GPUs.
#
# ## 2 · Two memories and a bridge
#
# **The device is chosen once**, by the user, while the program runs. Without a GPU it is NumPy, and the user
# is told so:

# %%
try:
    gpu = select_device("cuda")
    print(f"a usable GPU: {gpu}. The measurements below show it beside the CPU.")
except DeviceError as error:
    gpu = None
    print("No usable GPU here. Everything in this lesson runs on NumPy. In the package's words:")
    print(error)

# %% [markdown]
# **Data moves only when it is told to.** Two functions of the package cross the bridge, the solid arrows in
# the picture:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(8.6, 2.4))
axes.set(xlim=(0, 10), ylim=(0.2, 2.8))
axes.axis("off")
for middle, colour, name, contents in (
    (1.6, BLUE, "host", "your Python program\nNumPy arrays\nfiles, text, batches, plots"),
    (8.4, VERMILION, "device", "a queue of orders\nCuPy arrays\nparameters, activations"),
):
    frame = dict(boxstyle="round,pad=1", fc="white", ec=colour, lw=1.8)
    style = dict(ha="center", va="center", linespacing=1.7)
    axes.text(middle, 1.5, f"{name}\n\n{contents}", bbox=frame, **style)
for up, start, end, label, dash in (
    (2.2, 3.0, 7.0, "device.asarray(x)", "-"),
    (1.4, 3.0, 7.0, "names of operations", ":"),
    (0.6, 7.0, 3.0, "to_host(x): waits", "-"),
):
    arrow = dict(arrowstyle="-|>", color="0.25", lw=1.8, linestyle=dash)
    axes.annotate("", (end, up), (start, up), arrowprops=arrow)
    axes.text(5, up + 0.12, label, ha="center", fontsize=9.5)
plt.show()

# %% [markdown]
# The dotted arrow carries only orders, such as "multiply these two": they are small, and the program does not
# wait until they are carried out. Section 7 is about that.

# %%
B, T, D, F = 2, 5, 8, 16
x = device.asarray(rng.standard_normal((B, T, D)))
weight, bias = (device.asarray(rng.standard_normal(shape)) for shape in ((D, F), (F,)))
y, _ = linear(x, weight, bias)

shape_table(
    {"B": B, "T": T, "D": D, "F": F},
    x=(x, "B T D", "B sentences of T tokens, each a row of D numbers"),
    weight=(weight, "D F", "the weight of a linear map"),
    bias=(bias, "F", "its bias"),
    y=(y, "B T F", "x W + b, on the device of x"),
)

# %%
source_of(Device.asarray, to_host)

# %% [markdown]
# ### Why nothing moves by itself
#
# `far_array + numpy_array` could bring the second one over. CuPy refuses, and so does our far machine,
# because such a copy in a loop is a copy at every step that nobody sees:

# %%
for what, mixed in (
    ("far + here", lambda: far_scores + scores),
    ("here * far", lambda: scores * far_scores),
    ("np.asarray(far)", lambda: np.asarray(far_scores)),
):
    try:
        mixed()
    except TypeError as error:
        print(f"{what:16} {error}")

# %% [markdown]
# So crossings can be counted. Here is a whole multi-head attention of the package, forward and backward, on
# the far machine. Seven arrays go there at the start. How often does it cross in between, and does it compute
# the same?

# %%
far = FarMachine()
arrays = [rng.standard_normal((B, T, D)) for _ in range(3)]
arrays += [rng.standard_normal((D, D)) for _ in range(4)]
there = [far.asarray(array) for array in arrays]
far_y, far_cache = multi_head_attention(*there, num_heads=2)
far_gradients = multi_head_attention_backward(far_y, far_cache)
print(f"uploads: {far.uploads}, downloads and waits: {far.waits}")
assert (far.uploads, far.waits) == (7, 0)

here_y, here_cache = multi_head_attention(*arrays, num_heads=2)
here_gradients = multi_head_attention_backward(here_y, here_cache)
pairs = zip([here_y, *here_gradients], [far_y, *far_gradients], strict=True)
assert all(np.array_equal(near, away.get()) for near, away in pairs)

# %% [markdown]
# It does not cross in between. The layer was written for "an array", and a third library has arrays too.
#
# ## 3 · When does a GPU pay? The formula
#
# We need two facts about a processor. To start an operation costs a fixed time $t_0$, whatever its size. Then
# it does $P$ additions and multiplications each second. An operation with $W$ of them takes
#
# $$
# t = t_0 + \frac{W}{P} .
# $$
#
# A GPU has a larger $P$, and a larger $t_0$ too: CuPy's user guide ("Performance Best Practices") measures
# some 50 µs for the two calls of `cp.arange(1000).sum()`, and section 4 finds about one for a call of NumPy.
# Below some size the CPU wins. If the data has to cross first, by a link of $\beta$ bytes each second, the
# journey costs $\text{bytes} / \beta$. For large sizes, where $t_0$ no longer matters, it pays if
#
# $$
# \frac{W}{P_{\text{cpu}}} \gt \frac{\text{bytes}}{\beta} + \frac{W}{P_{\text{gpu}}} .
# $$
#
# Take two matrices of $n \times n$ float32 numbers, 4 bytes each. They go there, one result comes
# back: $3 \cdot 4 n^2 = 12 n^2$ bytes.
#
# **Added**, they take $W = n^2$ operations. Every term has the factor $n^2$; divide by it:
#
# $$
# \frac{1}{P_{\text{cpu}}} \gt \frac{12}{\beta} + \frac{1}{P_{\text{gpu}}} .
# $$
#
# No $n$ is left: it holds for all large sizes or for none. It cannot hold unless
# $\beta \gt 12 \, P_{\text{cpu}}$; section 4 measures how fast a link that is.
#
# **Multiplied**, each of the $n^2$ results is a sum of $n$ products: $n$ multiplications and $n$
# additions, $W = 2 n^3$. Divide by $2 n^2$:
#
# $$
# \frac{n}{P_{\text{cpu}}} \gt \frac{6}{\beta} + \frac{n}{P_{\text{gpu}}}
# \qquad\Longleftrightarrow\qquad
# n \gt \frac{6}{\beta \left( 1 / P_{\text{cpu}} - 1 / P_{\text{gpu}} \right)} .
# $$
#
# If the GPU multiplies faster at all, there is always a size from which it pays. What decides is how many
# operations are done with each byte, here $2 n^3 / 12 n^2 = n / 6$: the **arithmetic intensity**. Two rules
# follow for a Transformer. Its work must be in large matrix products. And what is computed between two of
# them must stay where they are, since it would not pay for a journey of its own.
#
# ## 4 · The measurement
#
# The function that measures takes three precautions. It calls often enough to be seen by a clock. It takes
# the best of several tries, because other programs can only make a computation slower. And before it looks at
# the clock it **waits for the device** (section 7). On the CPU we allow one core for a matrix product: with
# more of them the times would depend on what else the machine is doing.


# %%
def seconds_of(function, machine=CPU, tries=25):
    """How long one call takes on a machine, the best of some tries of at least 0.3 ms each."""
    function()  # the first call may compile, or ask for memory
    calls, best = 1, math.inf
    while tries:
        machine.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        machine.synchronize()
        elapsed = time.perf_counter() - start
        if elapsed < 3e-4 and calls < 4096:
            calls *= 2  # too short to trust; not a try
            continue
        best, tries = min(best, elapsed / calls), tries - 1
    return best


# %%
threadpool_limits(1, user_api="blas")
MACHINES = [CPU] if gpu is None else [CPU, gpu]
LENGTHS = 2 ** np.arange(2, 23, 2)  # of two vectors to add
WIDTHS = 2 ** np.arange(2, 10)  # of two square matrices to multiply


def random32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


added, multiplied, journey = {}, {}, []
for machine in MACHINES:
    added[machine], multiplied[machine] = [], []
    for n in LENGTHS:
        a, b = (machine.asarray(random32(n)) for _ in range(2))
        added[machine].append(seconds_of(lambda a=a, b=b: a + b, machine))
    for n in WIDTHS:
        a, b = (machine.asarray(random32(n, n)) for _ in range(2))
        multiplied[machine].append(seconds_of(lambda a=a, b=b: a @ b, machine))
if gpu:
    for n in WIDTHS:
        a, b = random32(n, n), random32(n, n)
        journey.append(seconds_of(lambda a=a, b=b: to_host(gpu.asarray(a) @ gpu.asarray(b)), gpu))

# %% [markdown]
# The thin lines are $t_0 + W / P$, fitted to the two ends alone: $t_0$ is the time of the smallest size, and
# $P$ comes from the largest. **All times in this notebook are those of the machine that it was built on.**
# Run it, and they are yours; with a GPU there are curves for it too.

# %%
NAMES = {CPU: "one CPU core", gpu: "GPU"}
EXPERIMENTS = {
    "adding two vectors": (LENGTHS, LENGTHS, added),
    "multiplying two square matrices": (WIDTHS, 2.0 * WIDTHS**3, multiplied),
}  # sizes, work, seconds


def start_and_rate(work, seconds):
    """t₀ and P."""
    return seconds[0], work[-1] / (seconds[-1] - seconds[0])


for title, (_, work, measured) in EXPERIMENTS.items():
    for machine, seconds in measured.items():
        start, rate = start_and_rate(work, seconds)
        print(
            f"{title}, {NAMES[machine]}: t₀ = {1e6 * start:.2f} µs, P = {rate / 1e9:.1f} billion "
            f"operations a second, as much overhead as work at W = {start * rate:,.0f}"
        )
_, rate = start_and_rate(LENGTHS, added[CPU])
print(f"an addition cannot pay for its journey below β = 12 P = {12 * rate / 1e9:.0f} GB/s")

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(10, 4.3))
LOOKS = {CPU: (BLUE, "o"), gpu: (VERMILION, "s")}
for axes, (title, (sizes, work, measured)) in zip(panels, EXPERIMENTS.items(), strict=True):
    for machine, seconds in measured.items():
        colour, marker = LOOKS[machine]
        start, rate = start_and_rate(work, seconds)
        axes.loglog(sizes, seconds, marker, color=colour, label=f"{NAMES[machine]}, measured")
        axes.loglog(sizes, start + work / rate, "-", color=BLACK, lw=0.9, label="$t_0 + W / P$")
    axes.set(title=title, ylabel="time of one call (s)")
panels[0].set_xlabel("length of the vectors (numbers)")
panels[1].set_xlabel("width of the matrices (numbers)")
if journey:
    panels[1].loglog(WIDTHS, journey, "^", color=GREEN, label="GPU, there and back")
for axes in panels:
    axes.legend()
plt.show()

# %% [markdown]
# On any machine you can see three things:
#
# - **The flat part on the left.** Adding 4 numbers and adding some hundred take about the same time: it is
#   the time of the call. A program of many small operations runs at the speed of calls, not of arithmetic. On
#   a GPU, where a call hands an order to another computer, even more so.
# - **The slope on the right**, the rate. It differs much between the panels, though the same core does the
#   work. An addition reads two numbers and writes one for a single operation; it runs at the speed of
#   *memory*. A matrix product uses each number that it has read $n$ times.
# - **Where points and line part**, in the middle of the left panel: vectors that fit into the processor's
#   cache are added faster than memory could deliver them. $P$ is no constant of the machine. ([Lesson
#   17](17_making_it_fast.ipynb) is about its bounds.)
#
# The last line printed answers section 3. An addition reads 8 bytes and writes 4, so $12 P$ is what this core
# moves in and out of memory. A link to the GPU would have to be faster.
#
# ## 5 · One GEMM
#
# Since calls cost time and large products are fast, a layer should ask for *one large* product where it can.
# (A product of two matrices is called GEMM, after the library's routine.) A linear map of a batch multiplies
# each of $B \cdot T$ rows by the same $W$:
#
# $$
# y_{btj} = \sum_i x_{bti} W_{ij} .
# $$
#
# It does not matter which row is which $b$ and $t$. Number the rows $n = b\,T + t$, and it is $Y = X W$ with
# $X$ of shape $(B T, D)$. In memory x is that already: `reshape` changes the shape and moves nothing. The
# gradient gains even more. $W$ served all rows, so it gets the sum over all:
#
# $$
# dW_{ij} = \sum_b \sum_t x_{bti} \, dy_{btj} = \sum_{n} X_{ni} \, dY_{nj} = (X^\top dY)_{ij} :
# $$
#
# the double sum *is* the inner sum of one matrix product ([lesson 02](02_backpropagation.ipynb) derives
# it from the chain rule). This is the package's `linear`:

# %%
source_of(linear, linear_backward)

# %%
sizes = to_host(x), to_host(weight), to_host(bias)
report = check_pair(linear, linear_backward, sizes)
assert report.right
print(report)

# %% [markdown]
# ### What it is worth
#
# We time the same map, written in four ways, on one CPU core. The far machine counts the GEMMs of the first
# two:

# %%
batch, matrix = random32(32, 18, 256), random32(256, 1024)
WAYS = {
    "reshape, then @": lambda x, w: (x.reshape(-1, 256) @ w).reshape(32, 18, 1024),
    "x @ W": lambda x, w: x @ w,
    'einsum("btd,df->btf")': lambda x, w: np.einsum("btd,df->btf", x, w),
    "np.dot(x, W)": lambda x, w: np.dot(x, w),
}
results = [way(batch, matrix) for way in WAYS.values()]
assert all(np.allclose(results[0], result, rtol=1e-3, atol=1e-3) for result in results)

times = [
    seconds_of(lambda way=way: way(batch, matrix), tries=tries)
    for way, tries in zip(WAYS.values(), (25, 25, 5, 3), strict=True)
]
for name, seconds in zip(WAYS, times, strict=True):
    print(f"{name:22} {1e3 * seconds:8.1f} ms, × {seconds / times[0]:,.0f}")

far = FarMachine()
far_batch, far_matrix = far.asarray(batch), far.asarray(matrix)
for name in ("reshape, then @", "x @ W"):
    far.gemms = 0
    WAYS[name](far_batch, far_matrix)
    print(f"{name:22} asks for {far.gemms} GEMMs")

# %% [markdown]
# The last two do not use the library for matrix products: NumPy's `einsum` runs a loop of its own, and
# `np.dot` of an array with three axes takes one dot product after the other. They give the right numbers, so
# only a clock tells. `x @ W` is 32 small GEMMs, one for each sentence, and each goes through all of $W$ for
# 18 rows. How much that costs depends on the library. One GEMM is right on both machines.
#
# ## 6 · What is a copy?
#
# An array is a block of memory and a rule how to read it: the shape, and for each axis the **stride**, how
# many bytes further the next entry is. Entry $(i, j, k)$ stands at the byte
#
# $$
# \text{start} + i \, s_0 + j \, s_1 + k \, s_2 .
# $$
#
# A slice, a transpose, a `swapaxes` change only the rule. They make **views**: new arrays on the same memory,
# at no cost. So does splitting attention's heads: the $D$ numbers of a token are read as $H$ times $K$, and
# the axes are put in another order. In the pictures, colour and number are the place in memory:

# %%
tokens, heads, head_width = 3, 2, 4
x_places = np.arange(tokens * heads * head_width).reshape(1, tokens, heads * head_width)
in_heads = split_heads(x_places, heads)  # (1, H, T, K)
wrong = x_places.reshape(1, heads, tokens, head_width)  # the same shape by reshape alone

# %% tags=["hide-input"]
of_tokens = [f"token {t}" for t in range(tokens)]
of_heads = [f"head {h}, token {t}" for h, t in np.ndindex(heads, tokens)]
figure, panels = plt.subplots(1, 3, figsize=(10, 3.3), width_ratios=[8, 5.2, 5.2])
for axes, places, rows, title in (
    (panels[0], x_places, of_tokens, "x (T, D): a row for each token"),
    (panels[1], in_heads, of_heads, "split_heads(x)"),
    (panels[2], wrong, of_heads, "only reshaped: wrong"),
):
    places = places.reshape(len(rows), -1)
    axes.imshow(places, cmap="cividis", vmin=0, vmax=30)
    for (row, column), place in np.ndenumerate(places):
        colour = "white" if place < 15 else "black"
        axes.text(column, row, place, ha="center", va="center", color=colour)
    axes.set(title=title, xticks=[])
    axes.set_yticks(range(len(rows)), rows)
    axes.grid(False)
for axes in panels[1:]:
    axes.axhline(tokens - 0.5, color="white", lw=4)
plt.show()

# %%
assert np.shares_memory(x_places, in_heads)
print("strides of x, in numbers:            ", [s // 8 for s in x_places.strides])
print("strides of split_heads(x), in numbers:", [s // 8 for s in in_heads.strides])

# %% [markdown]
# In the middle, head 0 has the left half of every token: places 0–3, 8–11, 16–19. On the right, a `reshape`
# to the same shape has cut the memory into pieces in its own order: "head 0" has both halves of token 0 and
# one of token 1. There is no error, and a gradient check passes: it is the correct gradient of the wrong
# function. **`reshape` never reorders; only `swapaxes` does.**
#
# ### When does reshape have to copy?
#
# On the way back, attention's `merge_heads` swaps the axes and joins two of them. Joined, they need *one* stride.
# Let axes of sizes $m$ and $n$ have strides $s$ and $s'$. The joined axis has the index $q = i\,n + j$, and
# one stride means that its entries stand at $q\,s'' = i\,n\,s'' + j\,s''$. They are at $i\,s + j\,s'$.
# Both agree for all $i$ and $j$ only if
#
# $$
# s'' = s' \quad (\text{take } i = 0, j = 1)
# \qquad\text{and}\qquad s = n \, s'' = n \, s' \quad (\text{take } i = 1, j = 0) .
# $$
#
# So two neighbouring axes can be joined if a step along the outer one is a whole row of the inner one.
# Otherwise `reshape` copies, silently:

# %%
H, K = 2, D // 2
q = rng.standard_normal((B, T, D))
split = split_heads(q, H)  # (B, H, T, K)
there_and_back = split.swapaxes(1, 2)  # (B, T, H, K), strides as if nothing had happened
from_product = (split @ rng.standard_normal((K, K))).swapaxes(1, 2)  # (B, T, H, K)
for name, back in (
    ("split, swapped back", there_and_back),
    ("a product, swapped back", from_product),
):
    outer, inner = (stride // 8 for stride in back.strides[-2:])
    merged = back.reshape(B, T, D)
    shared = np.shares_memory(back, merged)
    print(f"{name:24} strides of H and K {outer:2} and {inner}, K = {K}; copied: {not shared}")
    assert shared == (outer == K * inner)

# %% [markdown]
# Attention ends with a matrix product, which lies in the order of its own axes. So `merge_heads` has to copy,
# once for each layer.
#
# ### What views are dangerous for
#
# To write to a view is to write to its original. A function that does `y = x.reshape(…)` and then `y += bias`
# has changed its caller's x:

# %%
given = np.zeros((2, 3, 4))
y = given.reshape(-1, 4)
y += np.ones(4)
print("the caller's array of zeros now sums to", given.sum())
assert given.sum() == given.size

# %% [markdown]
# The `y += bias` in `linear` above is right: there y is the new result of a product. In the package **a
# function never writes to what it is given**, and all checks hand arrays over read-only, so that a breach is
# an error.
#
# ## 7 · Waiting
#
# An order to a GPU returns at once. The work goes into a queue, and your program goes on. So this clock
# measures nothing:
#
# ```python
# start = time.perf_counter()
# y = x @ w                                  # only puts an order into the queue
# print(time.perf_counter() - start)
# ```
#
# That is why `seconds_of` calls `synchronize`. On NumPy it does nothing.
#
# It is good to be ahead of the device: while it computes one step, the program can prepare the next. How much
# is gained? Let the host need the time $h$ to prepare a step and the device $d$ to compute it.
#
# *Waiting at each step*, they take turns: $N$ steps take $N (h + d)$.
#
# *Without waiting*, order $i$ is given at the time $i\,h$. The device begins it then, or when it has finished
# the one before, if that is later. So it finishes at $f_i = \max(i h,\ f_{i-1}) + d$, with $f_0 = 0$. Unroll
# this: $f_N = \max(N h + d,\ f_{N-1} + d)$, in there $f_{N-1} = \max((N-1) h + d,\ f_{N-2} + d)$, and so on.
# The result follows the host's clock up to some order $k$, and the device from there on:
#
# $$
# f_N = \max_{1 \le k \le N} \big( k \, h + (N - k + 1) \, d \big) .
# $$
#
# The expression is linear in $k$, so it is largest at one of the ends, $k = 1$ if $d \gt h$ and
# $k = N$ if not: $h + N d$ or $N h + d$. In one formula,
#
# $$
# f_N = h + d + (N - 1) \max(h, d) .
# $$
#
# The sum of the two has become the larger of the two. To see it, we need no GPU: a thread that carries out
# orders is a queue with one worker. Host and device only *sleep* in this experiment, for times chosen by us,
# so that it looks alike on every machine. The queue and the clock are real. In the picture each bar is a time
# in which one of them is busy:

# %%
STEPS, HOST, DEVICE = 8, 0.03, 0.045  # seconds


def timeline(wait_each_step):
    """Intervals (start, length) in which host and device are busy, and the time of the whole."""
    host, far_off = [], []
    begin = time.perf_counter()

    def work(seconds, log):
        start = time.perf_counter() - begin
        time.sleep(seconds)
        log.append((start, time.perf_counter() - begin - start))

    with ThreadPoolExecutor(1) as queue:
        for _ in range(STEPS):
            work(HOST, host)
            order = queue.submit(work, DEVICE, far_off)
            if wait_each_step:
                order.result()
    return host, far_off, time.perf_counter() - begin


predicted = {True: STEPS * (HOST + DEVICE), False: HOST + DEVICE + (STEPS - 1) * max(HOST, DEVICE)}
measured = {}
for waits in (True, False):
    *busy, total = timeline(waits)
    measured[waits] = busy
    print(f"waits at each step: {waits!s:5}  {total:.3f} s, formula {predicted[waits]:.3f} s")

# %% tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(8.5, 3.8), sharex=True)
for axes, (waits, (host, far_off)) in zip(panels, measured.items(), strict=True):
    axes.broken_barh(host, (1.1, 0.7), color=BLUE, ec="white")
    axes.broken_barh(far_off, (0.1, 0.7), color=VERMILION, ec="white", hatch="//")
    axes.axvline(predicted[waits], color=BLACK, lw=1)
    axes.text(predicted[waits], 1.95, "formula ", ha="right", fontsize=9)
    axes.set_yticks([0.45, 1.45], ["device", "host"])
    axes.set(title="waits at each step" if waits else "waits once, at the end", ylim=(0, 2.4))
    axes.grid(False)
panels[1].set_xlabel("time (s)")
plt.show()

# %% [markdown]
# ### What waits, and does not look like it
#
# Whatever needs a *value* in Python has to wait for it. The far machine counts:

# %%
SUSPECTS = {
    "float(loss)": lambda x: float(x.sum()),
    "if norm > 1:": lambda x: 1 if x.sum() > 1 else 0,
    "print(x.tolist())": lambda x: x.tolist(),
    "max(x.sum(), 1.0)": lambda x: max(x.sum(), 1.0),
    "x[x > 0]": lambda x: x[x > 0],
    "x.shape, x.dtype": lambda x: (x.shape, x.dtype),
    "x.sum()": lambda x: x.sum(),
    "xp.where(x > 0, x, 0)": lambda x: array_namespace(x).where(x > 0, x, 0),
    "xp.maximum(x.sum(), 1.0)": lambda x: array_namespace(x).maximum(x.sum(), 1.0),
}
far = FarMachine()
suspect = far.asarray(random32(4, 4))
for name, function in SUSPECTS.items():
    far.waits = 0
    function(suspect)
    print(f"{name:26}", "waits" if far.waits else "does not wait")

# %% [markdown]
# Python's `max` compares, and a comparison wants a truth value; the library's `maximum` is an order like any
# other. `x[x > 0]` is easily missed: the length of the result depends on the values, and Python must know its
# shape. A sum stays on the device as an array of no axes. The package's training loop keeps the loss there,
# and reads it only in the steps that it logs.
#
# ## 8 · dtypes: one number that makes everything slow
#
# Training uses float32: half the memory of float64, and faster arithmetic. Gradient checks use float64
# ([lesson 03](03_gradient_checking.ipynb) shows why). The code is the same, and takes the dtype that it is
# given. It must not change it by accident, and one wrong scalar is enough. Both of these are √64, which is 8:

# %%
x32 = random32(4, 64)
print("x * math.sqrt(64):", (x32 * math.sqrt(64)).dtype)
print("x * np.sqrt(64):  ", (x32 * np.sqrt(64)).dtype)

# %% [markdown]
# The rule of NumPy 2 (its enhancement proposal 50, "NEP 50") has two parts. CuPy follows it from its version
# 14 on (CuPy's upgrade guide, "NumPy 2 related changes").
#
# - A **Python number** is weak. It takes the array's dtype, if it is of no higher kind: boolean, integer,
#   float.
# - **Everything else is strong**, scalars of NumPy too. `np.sqrt(64)` is an `np.float64`, and of two strong
#   types the result is the smallest with room for both, or float64 where none has.
#
# The *value* does not matter: that 8 is exact in float32 does not help. Here is the whole table, computed by
# NumPy. Where an array does not keep its dtype, it is orange:

# %%
ARRAYS = ["bool", "int32", "int64", "float16", "float32", "float64"]
OTHERS = {"True": True, "2": 2, "2.0": 2.0, **{name: np.dtype(name) for name in ARRAYS}}
result = [[np.result_type(np.dtype(a), b) for b in OTHERS.values()] for a in ARRAYS]
changed = [[t != a for t in row] for a, row in zip(ARRAYS, result, strict=True)]

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(9, 3.7))
axes.imshow(changed, cmap=ListedColormap(["#e8f1f7", ORANGE]), aspect="auto")
for (row, column), differs in np.ndenumerate(np.array(changed)):
    weight_of_text = "bold" if differs else "normal"
    axes.text(column, row, result[row][column], ha="center", va="center", weight=weight_of_text)
axes.axvline(2.5, color=BLACK, lw=1)
axes.set_xticks(range(len(OTHERS)), OTHERS)
axes.set_yticks(range(len(ARRAYS)), ARRAYS)
axes.text(1, 6.35, "Python numbers", ha="center", va="center")
axes.text(5.5, 6.35, "dtype of another array, or of a scalar of NumPy", ha="center", va="center")
axes.set(ylabel="dtype of the array")
axes.grid(False)
plt.show()

# %% [markdown]
# Read the row of float32: Python numbers, booleans and float16 leave it as it is. **int32 and int64 make it
# float64**, because float32 has only 24 bits for a number's digits. So `x / lengths`, with integer lengths,
# is a trap as much as `np.sqrt`. And after one float64 all that follows is float64:

# %%
gain, shift, projection = np.ones(256, np.float32), np.zeros(256, np.float32), random32(256, 256)
rows, narrow, wide = random32(256, 256), math.sqrt(64), np.sqrt(64)


def two_layers(scale):
    x, _ = layer_norm(rows * scale, gain, shift)
    return linear(x, projection)[0]


for scale, dtype in ((narrow, np.float32), (wide, np.float64)):
    y = two_layers(scale)
    print(f"scale is a {type(scale).__name__:7}: result {y.dtype}, {y.nbytes / 2**10:.0f} KiB")
    assert y.dtype == dtype
ratio = seconds_of(lambda: two_layers(wide)) / seconds_of(lambda: two_layers(narrow))
print(f"time with the wide scalar: {ratio:.1f} times")

# %% [markdown]
# The numbers are right, even more exact, so nobody notices. The package computes such scalars by `math`, and
# a test asserts that a float32 model stays float32 from end to end.
#
# ## 9 · What else differs
#
# On a GPU none of these raises an error. The first three are from the page "Differences between CuPy and
# NumPy" of CuPy's documentation:
#
# | | NumPy | CuPy | what the package does |
# |---|---|---|---|
# | index out of range | `IndexError` | wraps around silently | checks token ids before they are used |
# | sum of all entries | a scalar | an array of no axes | treats it as an array |
# | one index assigned to twice | the last value stays | any of the values | `scatter_add` ([lesson 05](05_tokens_and_embeddings.ipynb)), or no double index |
# | order of additions in `scatter_add` | fixed | as the threads happen to run | says that last bits may differ |
# | random numbers | NumPy's generator | another generator | takes a generator from `device.generator(seed)` |
#
# So a run with a seed can be repeated on one kind of machine, and gives other numbers on the other.
#
# ## 10 · Exercises
#
# Fill in `answers/ex90.py`, your copy of [lessons/exercises/ex90.py](exercises/ex90.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex90
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The
# solutions are in [lessons/solutions/ex90.py](solutions/ex90.py).
#
# 1. **`break_even`** (10 min). Section 3 sent two matrices away for one product. What if they stay
#    there for a hundred? Say what the result means for a training step.
# 2. **`merges_without_copy`** (25 min). Turn the condition of section 6 into a function. It has
#    exceptions that the derivation passed over: which steps did it take that not every array has?
# 3. **`clip_without_waiting`** (45 min). Clipping a gradient asks whether it is too long. Ask
#    without waiting for the answer, for both machines and both dtypes.
# 4. **`project_heads`** (45 min). A sum over heads of a product for each head, in one GEMM, with its
#    backward in two. You will find out why the paper *concatenates* its heads.

# %%
print(check_exercise("ex90", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | one code | `xp = array_namespace(x)`, then `xp.exp(x)`; never `np.` on an array you were given |
# | crossing | `device.asarray(x)` to go there, `to_host(x)` to come back |
# | time of an operation | $t = t_0 + W / P$; a journey adds $\text{bytes} / \beta$ |
# | when it pays | products: $n \gt 6 / (\beta (1 / P_{\text{cpu}} - 1 / P_{\text{gpu}}))$; sums: only if $\beta \gt 12 P_{\text{cpu}}$ |
# | one GEMM | $Y = X W, \quad dW = X^\top dY$ with $X$ of shape $(B T, D)$ |
# | joined without a copy | if outer stride = inner size · inner stride |
# | trap | `reshape` where `swapaxes` is meant: right shape, wrong numbers |
# | who waits | `float`, `if`, `max`, `print`, `x[x > 0]`; also a clock that is to be right |
# | overlap | $h + d + (N - 1) \max(h, d)$ in place of $N (h + d)$ |
# | dtypes | Python numbers are weak; `np.sqrt(64)` and integers make float32 into float64 |
#
# **Your own Transformer.** Nothing to write here. A function of `answers/own.py` that calls NumPy computes on
# the CPU alone, one that asks `array_namespace` on both machines; `minitransformer check own` accepts either.
#
# **Next:** back to the course. [Lesson 17](17_making_it_fast.ipynb) continues this: where the time of a
# training step goes, and how to save it.
