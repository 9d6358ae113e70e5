# %% [markdown]
# # 03 · Checking gradients
#
# **You will** measure derivatives by finite differences, derive how accurate they can be and why;
# check the backwards of this package with them; and learn, from backwards that are wrong on purpose,
# which mistakes a careless check lets through.
#
# | | |
# |---|---|
# | In the paper | nothing: its authors had automatic differentiation. Here every backward is by hand, so each has to be proven right |
# | In the package | `minitransformer/gradcheck/`, and the command `minitransformer gradcheck` |
# | You need | Taylor's formula; the pair `y, cache = f(x)`, `dx = f_backward(dy, cache)` |
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
import matplotlib.pyplot as plt
import numpy as np

from minitransformer import select_device
from minitransformer.cases import CASES
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
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.numeric import STEP, numeric_gradient, slope
from minitransformer.layers.embedding import embedding, embedding_backward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.softmax import softmax, softmax_backward

use_style()
device = select_device("cpu")  # "cuda" runs the backwards on a GPU; checks compare on the CPU
rng = np.random.default_rng(3)

# %% [markdown]
# ## 1 · What is to be proven
#
# A layer is a pair of functions. The forward computes $y = f(x)$. The backward is given
# $dy = \partial L / \partial y$, the gradient of some loss $L$ with respect to $y$, and claims to
# return $dx = \partial L / \partial x$. It has to work for every $L$, and it knows $L$ only by $dy$.
# So we may choose the loss ourselves, and the simplest that has a given $dy$ is linear in $y$:
#
# $$
# L(x) = \sum_i f(x)_i \, dy_i
# \qquad\Longrightarrow\qquad
# \frac{\partial L}{\partial y_i} = dy_i ,
# \qquad
# \frac{\partial L}{\partial x_j} = \sum_i dy_i \frac{\partial f(x)_i}{\partial x_j} .
# $$
#
# Every backward is such a sum, because the chain rule is. Now $L$ is a plain function from numbers to
# a number, and its derivative by $x_j$ can be *measured*: move $x_j$ a little and look how far $L$
# moves. If the two agree for random $x$ and random $dy$, the backward is right. The example is the
# softmax of [lesson 04](04_softmax_cross_entropy.ipynb), $y_i = e^{x_i} / \sum_j e^{x_j}$ in each row:

# %%
B, T = 3, 5
x = device.asarray(rng.standard_normal((B, T)))
dy = device.asarray(rng.standard_normal((B, T)))
y, cache = softmax(x)
dx = softmax_backward(dy, cache)

shape_table(
    {"B": B, "T": T},
    x=(x, "B T", "the input, moved entry by entry"),
    y=(y, "B T", "the output of the forward"),
    dy=(dy, "B T", "the upstream gradient, of the shape of y: chosen at random, then fixed"),
    dx=(dx, "B T", "what the backward claims, of the shape of x"),
)


# %%
def loss(x):
    return (softmax(x)[0] * to_host(dy)).sum()


moved = to_host(x).copy()
moved[0, 0] += 1e-5
print(f"measured  {(loss(moved) - loss(to_host(x))) / 1e-5:.10f}")
print(f"claimed   {to_host(dx)[0, 0]:.10f}")

# %% [markdown]
# They agree, but only to five digits or so. Is that an error in the backward, or the limit of the
# measurement? Before we can judge a gradient we have to know our instrument.
#
# ## 2 · How well can a slope be measured?
#
# ### The step must be small: truncation
#
# Taylor's formula for a function of one variable:
#
# $$
# f(x \pm h) = f \pm h f' + \frac{h^2}{2} f'' \pm \frac{h^3}{6} f''' + \dots
# $$
#
# with $f$ and its derivatives at $x$ on the right. The obvious quotient uses one side:
#
# $$
# \frac{f(x + h) - f(x)}{h} = f' + \frac{h}{2} f'' + \dots
# \qquad\text{(forward difference)}
# $$
#
# If both sides are used, $f$ and the term with $f''$ cancel, and what remains is smaller by a factor
# of the order of $h$:
#
# $$
# \frac{f(x + h) - f(x - h)}{2 h} = f' + \frac{h^2}{6} f''' + \dots
# \qquad\text{(central difference)}
# $$
#
# ### The step must not be too small: rounding
#
# A computed $f$ is a rounded one: $f (1 + \delta)$ with $|\delta|$ up to about $u$, half the distance
# from 1 to the next number, $u = 2^{-53} \approx 1.1 \cdot 10^{-16}$ in float64 and
# $2^{-24} \approx 6 \cdot 10^{-8}$ in float32. The subtraction removes the digits that the two values
# share, and the division blows up what is left of their errors. For the central difference these are
# two errors of $u |f|$ divided by $2h$:
#
# $$
# \text{error}(h) \le
# \underbrace{\frac{h^2}{6} |f'''|}_{\text{truncation}} + \underbrace{\frac{u |f|}{h}}_{\text{rounding}} .
# $$
#
# ### The best step
#
# One term grows with $h$, the other falls. Their sum is least where its derivative by $h$ is zero:
#
# $$
# \frac{h}{3} |f'''| = \frac{u |f|}{h^2}
# \qquad\Longrightarrow\qquad
# h^* = \left( \frac{3 u |f|}{|f'''|} \right)^{1/3} .
# $$
#
# Multiply the left equation by $h^* / 2$: at the best step the truncation is *half* the rounding. So the
# error there is
#
# $$
# \text{error}(h^*) = \frac32 \cdot \frac{u |f|}{h^*} = \frac12 \left( 9 \, u^2 |f|^2 |f'''| \right)^{1/3} .
# $$
#
# Where $f$ and its derivatives are about 1, the best step is near $u^{1/3}$ and its error near
# $u^{2/3}$: **of sixteen digits a central difference gives ten or eleven, at a step near** $10^{-5}$.
# In float32, five at a step near $4 \cdot 10^{-3}$. The same for the forward difference is an
# exercise.
#
# ### Measured: the V
#
# $f(x) = \log(1 + e^x)$ is the loss of a classifier with two classes. With
# $p = 1 / (1 + e^{-x})$ its derivatives are $f' = p$, $f'' = p (1 - p)$ and
# $f''' = p (1 - p)(1 - 2 p)$. So each error can be measured, and drawn beside its formula:


# %%
def f(x):
    return np.log1p(np.exp(x))


AT = 1.0
p = 1 / (1 + np.exp(-AT))
f1, f2, f3 = p, p * (1 - p), p * (1 - p) * (1 - 2 * p)
steps = np.logspace(-15, 0, 181)


def error_of_central(h, dtype):
    """|central difference − f'| with all arithmetic in dtype; NaN where x + h and x − h are one."""
    ahead, behind = dtype(AT + h), dtype(AT - h)
    if ahead == behind:
        return np.nan
    return abs(float(f(ahead) - f(behind)) / float(ahead - behind) - f1)


def error_of_forward(h):
    ahead = AT + h
    return abs((f(ahead) - f(AT)) / (ahead - AT) - f1)


def bound_of_central(h, u):
    return h**2 * abs(f3) / 6 + u * f(AT) / h


def bound_of_forward(h, u):
    return h * f2 / 2 + 2 * u * f(AT) / h


SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # u of float32 and of float64
single = [error_of_central(h, np.float32) for h in steps]
forward = [error_of_forward(h) for h in steps]
double = [error_of_central(h, np.float64) for h in steps]

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(8.5, 5.2))
axes.loglog(steps, single, "^", color=VERMILION, ms=3.5, label="central difference, float32")
axes.loglog(steps, forward, "s", color=GREEN, ms=3.5, label="forward difference, float64")
axes.loglog(steps, double, "o", color=BLUE, ms=3.5, label="central difference, float64")
axes.loglog(steps, bound_of_central(steps, SINGLE), "-", color=BLACK, lw=1, label="formulas")
axes.loglog(steps, bound_of_forward(steps, DOUBLE), "-", color=BLACK, lw=1)
axes.loglog(steps, bound_of_central(steps, DOUBLE), "-", color=BLACK, lw=1)
for u in (SINGLE, DOUBLE):
    best = (3 * u * f(AT) / abs(f3)) ** (1 / 3)
    least = 1.5 * u * f(AT) / best
    axes.plot(best, least, "D", color=BLACK, ms=7, mfc="none")
    axes.annotate(f"$h^*$ = {best:.0e}", (best, least), (6, -16), textcoords="offset points")
axes.axvline(STEP, color="0.5", ls=":", lw=1.2)
axes.text(0.8 * STEP, 2.5e-14, "the package's step", ha="right", color="0.35")
axes.set(xlabel="step $h$", ylabel="error of the slope, absolute")
axes.set(xlim=(1e-15, 1), ylim=(1e-14, 20))
axes.legend(loc="lower left")
plt.show()

# %% [markdown]
# Read it from the right. A large step is wrong by the curvature: the forward difference by a slope of
# one decade a decade, the central one by two. Left of its best step every curve rises again, by one decade
# a decade: rounding, $1/h$. There the points scatter below the lines, because errors of rounding are random and
# the lines stand for their worst case. The diamonds are the best steps that the formula predicts.
#
# Two lessons for a checker:
#
# - **float32 cannot check gradients.** Its best is five digits. Mistakes of $10^{-5}$ exist, such as a
#   constant with too few digits. This package's check refuses float32 and asks for float64.
# - **A smaller step is not a better one.** At $h = 10^{-12}$ a right gradient looks wrong in the fourth
#   digit.
#
# ## 3 · The gradient of an array
#
# For an array, one central difference for each entry: two forwards an entry. A backward gives all
# entries for about the work of two forwards. So nobody trains by differences, and checks use small
# arrays.

# %%
source_of(slope, numeric_gradient)

# %% [markdown]
# `moved` copies $x$ and adds $h$ to one entry, `step_for` gives $h$: $10^{-5}$, times the size of the entry if
# that is above 1. `slope_or_nan` is `slope`, but for an $f$ that is not defined on both sides, as $\sqrt x$ is not
# at 0. Two lines deserve a look.
#
# **The width is measured, not assumed.** $x + h$ is rounded as well, so the two points are not exactly
# $2h$ apart. `slope` divides by the distance they really have.
#
# **Subtract, then sum.** $L(x+h) - L(x-h)$ could be computed as a difference of two sums, or as a sum
# of differences. One entry of $x$ often touches only a few outputs. The others are the same on both
# sides and cancel *exactly* if they are subtracted one by one; summed first, each leaves its rounding
# in the total. The slope of one entry of a long ReLU layer, which touches one output of many:

# %%
print("  outputs    error, sums first    error, differences first")
for size in (10, 1000, 100_000):
    long_x, long_dy = rng.uniform(1, 2, size), rng.standard_normal(size)
    ahead, behind = long_x.copy(), long_x.copy()
    ahead[0] += STEP
    behind[0] -= STEP
    width = ahead[0] - behind[0]
    sums = ((relu(ahead)[0] * long_dy).sum() - (relu(behind)[0] * long_dy).sum()) / width
    differences = ((relu(ahead)[0] - relu(behind)[0]) * long_dy).sum() / width
    print(f"{size:9,} {abs(sums - long_dy[0]):20.1e} {abs(differences - long_dy[0]):24.1e}")

# %% [markdown]
# ### When are two gradients the same?
#
# An absolute difference says nothing: gradients may be of any size. The relative difference of each
# entry alone is no better, for an entry may be zero, or happen to be small, and then its noise is
# large against it. What is left is the largest difference over the largest entry:

# %%
host_x, host_dy, host_dx = to_host(x), to_host(dy), to_host(dx)
tall = host_x * 6  # sharper weights: gradients of very different sizes
numeric = numeric_gradient(lambda x: softmax(x)[0], tall, host_dy)
claimed = softmax_backward(host_dy, softmax(tall)[0])
difference = abs(claimed - numeric)
print(
    f"entries between                         {abs(claimed).min():.0e} and {abs(claimed).max():.0e}"
)
print(f"largest difference, entry by entry      {(difference / abs(claimed)).max():.0e}")
print(f"largest difference over largest entry   {difference.max() / abs(claimed).max():.0e}")
assert difference.max() < 1e-9 * abs(claimed).max()

# %% [markdown]
# That sums up how well two gradients agree, and the package prints it. But it would
# let a small entry beside a large one be anything. So each entry is judged by itself, with a floor: it is
# wrong if the difference exceeds a tolerance times that entry, plus the noise of its own
# measurement, about $u \sum \lvert f \, dy \rvert / h$. What is printed for a wrong gradient is the relative
# difference of its worst entry. Where a whole mistake could hide in the noise, the report says neither
# "right" nor "WRONG" but "cannot be told".
#
# The tolerance is $10^{-7}$. It stands in a wide gap. On one side, the right backwards:

# %%
largest = [case.check().max_error for case in CASES if not case.name.startswith("model")]
print(f"{len(largest)} cases of this package's layers: {min(largest):.0e} to {max(largest):.0e}")
assert max(largest) < 1e-8

# %% [markdown]
# On the other side, wrong ones: the mistakes of section 5 leave more than $10^{-5}$.
#
# ## 4 · Use it
#
# `check_pair` draws a random $dy$, takes both gradients of each input and compares them:

# %%
report = check_pair(softmax, softmax_backward, (host_x,))
assert report.right
print(report)

# What the backward gave in section 1, on whichever device, against a measurement on the CPU:
measured = numeric_gradient(lambda x: softmax(x)[0], host_x, host_dy)
assert abs(host_dx - measured).max() < 1e-7 * abs(measured).max()

# %% [markdown]
# If they differ, it looks for a pattern in the difference. The softmax backward below is divided by the batch
# size, as if its loss were a mean: an easy slip, and no error message follows from it.

# %%
report = check_pair(softmax, lambda dy, cache: softmax_backward(dy, cache) / len(dy), (host_x,))
assert not report.right
print(report)

# %% [markdown]
# On the command line, `minitransformer gradcheck` checks every layer of the package and the whole
# model, and `minitransformer gradcheck my_file.py:my_norm` a pair of yours.
#
# ## 5 · What a careless check lets through
#
# A check is an experiment, and an experiment can be set up so that it cannot fail. Here are eight
# wrong backwards, each a slip that somebody has made or could. (Two layers belong to later lessons, too. LayerNorm
# is $y = \gamma \hat x + \beta$, where $\hat x$ is a row of $x$ brought to mean 0 and variance 1. An
# embedding gives each id its row of a table.)

# %%
D, N, V = 6, 5, 9  # all different, as a check should choose them
gate = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0])  # a mask of features, drawn once
GOLDEN = 1.618  # for 1.6180339…, a constant with too few digits


def softmax_zero(dy, weights):
    return np.zeros_like(dy)


def softmax_over_batch(dy, weights):
    return softmax_backward(dy, weights) / len(dy)


def norm_gamma_last(dy, cache):
    x_hat, sigma, gamma = cache
    dx, dgamma, dbeta = layer_norm_backward(dy, (x_hat, sigma, np.ones_like(gamma)))
    return gamma * dx, dgamma, dbeta


def linear_transposed(dy, cache):
    dx, dweight, dbias = linear_backward(dy, cache)
    return dx, dweight.T, dbias


def linear_mean_bias(dy, cache):
    dx, dweight, dbias = linear_backward(dy, cache)
    return dx, dweight, dbias / len(dy)


def relu_unmasked(dy, alive):
    return dy


def embedding_last_wins(dx, cache):
    ids, weight, _ = cache
    place, last = np.arange(len(ids)), np.zeros(len(weight), int)
    last[ids] = place  # of equal ids the last one wins, where they should be added
    return None, embedding_backward(dx * (last[ids] == place)[:, None], cache)


def golden(x):
    return (1 + 5**0.5) / 2 * x, None


def golden_rounded(dy, cache):
    return GOLDEN * dy


def draw(generator, rows=N, start=False, positive=False):
    """Inputs for all of them: rows of x, LayerNorm's γ and β, a linear map, token ids, a table."""
    x = generator.standard_normal((rows, D))
    return {
        "x": abs(x) if positive else x,
        "gamma": np.ones(D) if start else generator.uniform(0.5, 1.5, D),
        "beta": np.zeros(D) if start else generator.standard_normal(D),
        "weight": generator.standard_normal((D, D)),
        "ids": np.array([4, 7, 4, 2, 7])[:rows],
        "table": generator.standard_normal((V, D)),
    }


MUTANTS = {
    "softmax: zero": (softmax, softmax_zero, ["x"]),
    "softmax: divided by the batch size": (softmax, softmax_over_batch, ["x"]),
    "LayerNorm: γ after the means": (layer_norm, norm_gamma_last, ["x", "gamma", "beta"]),
    "linear: dW transposed": (linear, linear_transposed, ["x", "weight", "beta"]),
    "linear: mean for the bias": (linear, linear_mean_bias, ["x", "weight", "beta"]),
    "ReLU: mask forgotten": (relu, relu_unmasked, ["x"]),
    "embedding: last of equal ids wins": (embedding, embedding_last_wins, ["ids", "table"]),
    "constant with too few digits": (golden, golden_rounded, ["x"]),
}

# %% [markdown]
# And here is a checker with the bad habits built in, each to be switched on alone. The picture has a row for
# each wrong backward and a column for each check:

# %%
CHECKS = {  # what each does otherwise than the full check
    "full\ncheck": {},
    "dy all\nones": {"upstream": "ones"},
    "dy equal\nto x": {"upstream": "x"},
    "γ = 1,\nβ = 0": {"start": True},
    "a single\nrow": {"rows": 1},
    "x all\npositive": {"positive": True},
    "three\nentries": {"entries": 3},
    "tolerance\n1 %": {"tolerance": 1e-2},
}


def largest_error(forward, backward, names, upstream="random", entries=None, **drawn):
    """The relative error of the worst gradient, as a check with these habits sees it."""
    generator = np.random.default_rng(11)
    values = draw(generator, **drawn)
    inputs = [values[name] for name in names]
    y, cache = forward(*inputs)
    choices = {
        "random": generator.standard_normal(y.shape),
        "ones": np.ones_like(y),
        "x": values["x"],
    }
    dy = choices[upstream]
    gradients = backward(dy, cache)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    errors = []
    for i, gradient in enumerate(gradients):
        if gradient is None:
            continue

        def output(value, i=i):
            return forward(*inputs[:i], value, *inputs[i + 1 :])[0]

        numeric = numeric_gradient(output, inputs[i], dy)
        difference = abs(gradient - numeric).ravel()
        if entries:
            difference = generator.choice(difference, entries, replace=False)
        # Central differences do not resolve less than 1e-10: a gradient of zeros is no error then.
        errors.append(difference.max() / max(abs(numeric).max(), abs(gradient).max(), 1e-3))
    return max(errors)


errors = np.zeros((len(MUTANTS), len(CHECKS)))
missed = np.zeros_like(errors, dtype=bool)
for i, mutant in enumerate(MUTANTS.values()):
    for j, habits in enumerate(CHECKS.values()):
        habits = dict(habits)
        tolerance = habits.pop("tolerance", 1e-7)
        errors[i, j] = largest_error(*mutant, **habits)
        missed[i, j] = errors[i, j] <= tolerance

assert not missed[:, 0].any()  # the full check misses none
assert missed[:, 1:].any(axis=0).all()  # each bad habit misses at least one

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(9.5, 4.9))
size = np.log10(np.maximum(errors, 1e-13))
image = axes.imshow(size, cmap="cividis", vmin=-13, vmax=0, aspect="auto")
for (i, j), error in np.ndenumerate(errors):
    text = f"{error:.1f}" if error > 0.095 else f"{error:.0e}"
    style = dict(color="white" if error < 1e-5 else BLACK, ha="center", va="center", fontsize=8.5)
    if missed[i, j]:
        axes.text(j, i, f"MISSED\n{text}", weight="bold", **style)
    else:
        axes.text(j, i, text, **style)
axes.set_xticks(range(len(CHECKS)), CHECKS, fontsize=9)
axes.set_yticks(range(len(MUTANTS)), MUTANTS, fontsize=9)
axes.xaxis.tick_top()
axes.grid(False)
bar = figure.colorbar(image, label="relative error that the check sees", pad=0.02)
bar.set_ticks([-12, -9, -6, -3, 0])
bar.set_ticklabels([r"$10^{-12}$", r"$10^{-9}$", r"$10^{-6}$", r"$10^{-3}$", "1"])
plt.show()

# %% [markdown]
# Only the full check misses none. Column by column:
#
# - **$dy$ all ones.** The loss is then the sum of all outputs. The weights of a softmax sum to 1
#   whatever its input: $L$ is constant, the right gradient *is* zero, and a backward that returns zeros
#   is a perfect one. The same holds for LayerNorm with $\gamma = 1$, since $\hat x$ sums to 0.
# - **$dy$ equal to $x$.** Whoever draws both from a generator with the same seed gets this. For
#   $y = x W$ the weight gradient is $x^\top dy = x^\top x$, and a symmetric matrix is its own transpose.
# - **Initial values.** A gain of 1 may stand anywhere, and a bias of 0 may be forgotten.
# - **A single row.** Dividing by 1 is no mistake, and nothing occurs twice.
# - **One branch only.** All $x$ positive: ReLU is the identity.
# - **A few entries.** Sometimes they are the right ones. It is luck; section 7 says how much is needed.
# - **A generous tolerance.** The constant has three digits right after the point. A check that allows
#   one per cent cannot tell. Choose the tolerance by what the *instrument* can do (section 2), not by
#   what seems a small error.
#
# ## 6 · What no gradient check can see
#
# **A wrong forward.** The check proves that the backward belongs to the forward. If both are wrong in
# the same way they fit each other. This LayerNorm divides by $D - 1$ in its variance, as statisticians
# do and LayerNorm's authors (Ba, Kiros and Hinton 2016) do not:

# %%
FACTOR = np.sqrt((D - 1) / D)  # what D − 1 in place of D does to 1/σ, for ε = 0


def other_norm(x):
    y, cache = layer_norm(x, np.ones(D), np.zeros(D), epsilon=0.0)
    return FACTOR * y, cache


def other_norm_backward(dy, cache):
    return layer_norm_backward(FACTOR * dy, cache)[0]


rows = rng.standard_normal((N, D))
report = check_pair(other_norm, other_norm_backward, (rows,))
assert report.right
print(report)
right_output = layer_norm(rows, np.ones(D), np.zeros(D))[0]
print(f"and yet its output is wrong by up to {abs(other_norm(rows)[0] - right_output).max():.2f}")

# %% [markdown]
# A forward needs tests of its own: against values worked out by hand, or against another
# implementation. This package compares each with PyTorch.
#
# **A place without a derivative.** ReLU has a kink at 0. A central difference that straddles it
# measures a mean of the two slopes, and neither of them is wrong. The package recognises a kink and
# says so: keep inputs away from it. **A random forward** has no derivative at all
# unless its random numbers are the same at each call. **A saturated input**, one at which everything is
# flat, compares zero with zero. The answer to these is not "right" or "wrong" but a `CheckError`:


# %%
def noise(x):
    return x * (rng.random(x.shape) > 0.5), None


for name, forward, backward, value in (
    ("kink", relu, relu_backward, np.array([1.0, 0.0, -1.0])),
    ("random", noise, lambda dy, cache: dy, np.ones(3)),
    ("saturated", softmax, softmax_backward, np.array([[2000.0, 0.0, -2000.0]])),
):
    try:
        check_pair(forward, backward, (value,))
    except CheckError as error:
        print(f"{name}: {error}\n")
    else:
        raise AssertionError(f"{name}: nothing was said")

# %% [markdown]
# ## 7 · Large arrays: directions
#
# An embedding table for 8000 subwords, each a row of 256 numbers, has two million entries. Two forwards
# for each would take too long. One way out is to measure some entries and trust the rest. The other
# is to move *all* entries at once, along a random direction $r$ of length 1, and to compare one slope:
#
# $$
# \frac{d}{dt} L(x + t \, r) \Big|_{t=0} = \sum_j \frac{\partial L}{\partial x_j} \, r_j
# \qquad\text{against}\qquad
# \sum_j dx_j \, r_j .
# $$
#
# If $dx$ is wrong by $e$, the slope is wrong by $\sum_j e_j r_j$. For a random $r$ of length 1 in $n$
# dimensions the mean of $r_j r_k$ is $1/n$ for $j = k$ (the $n$ squares are alike and sum to 1) and 0 otherwise
# (either sign is as likely), so the mean square of this
# error is $|e|^2 / n$, and that of the slope itself is $|dx|^2 / n$. The $n$ cancels: **relative to the
# slope, a direction sees a mistake as large as it is relative to the gradient**, wherever it sits. It
# would be missed only if $r$ happened to be orthogonal to $e$.
#
# A sample of $k$ entries out of $n$, of which $w$ are wrong, misses the mistake with probability
# about $(1 - w/n)^k$. We measure both ways, with one repeated word in a table of 400:

# %%
table = rng.standard_normal((400, D))
ids = np.append(rng.choice(400, 40, replace=False), 0)
ids[-1] = ids[0]  # one word occurs twice
y, cache = embedding(ids, table)
dy_table = rng.standard_normal(y.shape)
right, wrong = embedding_backward(dy_table, cache), embedding_last_wins(dy_table, cache)[1]
is_wrong = ~np.isclose(right, wrong).ravel()
fraction = is_wrong.mean()

trials, counts = 1000, np.unique(np.geomspace(1, 1000, 25).astype(int))
sampled = np.array(
    [
        [not is_wrong[rng.choice(is_wrong.size, k, replace=False)].any() for k in counts]
        for _ in range(trials)
    ]
)
errors_along = []
for _ in range(200):
    r = rng.standard_normal(table.shape)
    r /= np.linalg.norm(r)
    measured = slope(lambda v: embedding(ids, v)[0], table, r, dy_table, STEP)
    errors_along.append(
        abs(measured - (wrong * r).sum()) / np.linalg.norm(right) * np.sqrt(right.size)
    )

missed_along = np.mean(np.array(errors_along) <= 1e-7)
assert min(errors_along) > 1e-6  # no direction out of 200 comes near to missing it

# %% tags=["hide-input"]
figure, (left, axes) = plt.subplots(1, 2, figsize=(9.5, 3.9), width_ratios=[1.15, 1])
left.semilogx(2 * counts, sampled.mean(axis=0), "o", color=BLUE, label="sampled entries")
left.semilogx(2 * counts, (1 - fraction) ** counts, "-", color=BLACK, lw=1, label=r"$(1 - w/n)^k$")
left.axhline(missed_along, color=VERMILION, ls="--", label="random directions")
left.set(
    xlabel="calls of forward, 2k", ylabel="probability to miss the mistake", ylim=(-0.04, 1.04)
)
left.set_title(f"{is_wrong.sum()} of {is_wrong.size:,} entries wrong")
left.legend(loc="center left")
axes.hist(np.log10(errors_along), bins=25, color=VERMILION, alpha=0.85)
axes.axvline(
    np.log10(np.linalg.norm(wrong - right) / np.linalg.norm(right)),
    color=BLACK,
    lw=1.2,
    label="|e| / |dx|",
)
axes.axvline(-7, color=BLACK, ls=":", label="tolerance")
axes.set(
    xlabel="error of a slope, relative to a typical slope",
    ylabel="directions, of 200",
    title="what each direction sees",
)
axes.set_xticks([-7, -5, -3, -1], [r"$10^{-7}$", r"$10^{-5}$", r"$10^{-3}$", r"$10^{-1}$"])
axes.legend(loc=(0.1, 0.75))
plt.show()

# %% [markdown]
# One direction, two calls of forward, finds what a thousand sampled entries may miss. It cannot say
# *where* the mistake is. So use every entry for small inputs, and `check_pair(..., directions=3)` for large
# ones. Three cost little and leave little to luck.
#
# ## 8 · Exercises
#
# Fill in `answers/ex03.py`, your copy of [lessons/exercises/ex03.py](exercises/ex03.py), and run
# `minitransformer check ex03`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex03.py](solutions/ex03.py).
#
# 1. **`best_forward_step`** (10 min). Section 2 for the forward difference. Compare your step with the
#    bottom of the green V.
# 2. **`gradient_by_differences`** (25 min). The gradient of an array, entry by entry. One of the
#    functions it is tried on has a very large output that does not matter. Make it not matter.
# 3. **`complex_step`** (25 min). There is a way to differentiate without subtracting, and so without a
#    V: one evaluation at a complex number gives all sixteen digits. Find it. Why can it not check ReLU?
# 4. **`backward_is_right`** (45 min). Your own checker. It is shown right backwards and wrong ones, and
#    has to tell them apart.

# %%
print(check_exercise("ex03", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | loss for a check | $L(x) = \sum f(x) \, dy$ with a random $dy$: not ones, not $x$ |
# | central difference | $\sum_i (f(x + h e_j) - f(x - h e_j))_i \, dy_i \, / \, 2h$: subtract first, then sum ($e_j$: 1 at entry $j$, else 0) |
# | its error | $h^2 \lvert f''' \rvert / 6 + u \lvert f \rvert / h$, least at $h^* = (3 u \lvert f \rvert / \lvert f''' \rvert)^{1/3} \approx 10^{-5}$ |
# | it leaves | ten digits in float64, five in float32 |
# | compare | entry by entry: a difference of at most $10^{-7}$ of it, plus the noise of its measurement |
# | inputs | all sizes different, more than one row, repeated ids, both branches, parameters away from their start, no kink |
# | large arrays | slopes along a few random directions |
# | not proven | that the forward is the right function |
#
# **Your own Transformer.** Nothing new to write: what this lesson did, `minitransformer check own` does
# with each pair of `answers/own.py`, and tests its forward, too.
#
# **Next:** the function with which this lesson began, and the loss that follows it:
# [lesson 04](04_softmax_cross_entropy.ipynb).
