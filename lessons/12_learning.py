# %% [markdown]
# # 12 · Learning
#
# **You will** derive Adam with its bias correction, and find out what the correction really prevents; see why the
# learning rate first rises and then falls; learn a test that finds most mistakes in seconds; and take the paper's
# recipe apart.
#
# | | |
# |---|---|
# | In the paper | sections 5.3 and 5.4; Adam is Kingma and Ba, *Adam: A Method for Stochastic Optimization* (2015) |
# | In the package | `minitransformer/optim/adam.py`, `schedule.py`, `layers/dropout.py`, `loss/cross_entropy.py` |
# | You need | lessons [02](02_backpropagation.ipynb) and [04](04_softmax_cross_entropy.ipynb); mean and variance |
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

from minitransformer import TransformerConfig, select_device
from minitransformer.core.backend import to_host
from minitransformer.core.twins import accelerated
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLACK, BLUE, GREEN, shape_table, source_of, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.data.text.batches import Batch, make_batches
from minitransformer.gradcheck import check_pair
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.models.transformer import Transformer
from minitransformer.optim.adam import Adam, adam_update
from minitransformer.optim.schedule import inverse_sqrt, linear_decay, noam

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(12)

# %% [markdown]
# ## 1 · A gradient is not a step
#
# Gradient descent moves each parameter against its gradient: $\theta \leftarrow \theta - \eta \, g$. The learning rate
# $\eta$ is one number for all parameters. Here is a small Transformer, and a task that needs all of it: to spell random
# words backwards.

# %%
LETTERS, FIRST = 20, 4  # ids 0 to 3 are padding, unknown, begin and end


def words_backwards(count, seed):
    """A Batch of (word, the word reversed)."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(4, 9, count)
    words = [generator.integers(FIRST, FIRST + LETTERS, length) for length in lengths]
    pairs = [(word.tolist(), word[::-1].tolist()) for word in words]
    return make_batches(pairs, max_tokens=10**6)[0]


def new_model(layers=3, norm="post", dropout=0.1, seed=12):
    config = TransformerConfig(
        source_vocabulary_size=FIRST + LETTERS,
        target_vocabulary_size=FIRST + LETTERS,
        d_model=32,
        num_heads=4,
        d_ff=64,
        num_encoder_layers=layers,
        num_decoder_layers=layers,
        dropout=dropout,
        norm=norm,
        max_length=16,
    )
    return Transformer(config, seed=seed, device=device)


train, validation = words_backwards(200, seed=1), words_backwards(200, seed=2)
batch = train.source, train.target, train.labels
model = new_model()
(loss, nll), cache = model.loss(Batch(*batch))
model.loss_backward(1.0, cache)
sizes = {
    name: float(np.sqrt((to_host(parameter.grad) ** 2).mean()))
    for name, parameter in model.named_parameters()
}
for name in (min(sizes, key=sizes.get), max(sizes, key=sizes.get)):
    print(f"gradient, root mean square: {sizes[name]:.0e}  {name}")

# %% [markdown]
# A learning rate that suits one of them hardly moves the other, or throws it off. The gradient has a unit: loss per
# unit of the parameter. A step must have that of the parameter. One $\eta$ for all cannot change one unit into the
# other. Adam can.
#
# ## 2 · Adam, derived
#
# **Two running means.** Let $g_t$ be the gradient of one parameter in step $t$. It is noisy, since each step
# sees another batch. We keep a mean of the recent ones, and one of their squares, both starting at zero:
#
# $$
# m_t = \beta_1 m_{t-1} + (1 - \beta_1) \, g_t ,
# \qquad
# v_t = \beta_2 v_{t-1} + (1 - \beta_2) \, g_t^2 .
# $$
#
# Insert the first formula into itself, again and again down to $m_0 = 0$:
#
# $$
# m_t = (1 - \beta_1) \sum_{i=1}^{t} \beta_1^{\,t-i} \, g_i .
# $$
#
# In this weighted sum a gradient counts $\beta_1$ times as much one step later. The paper's
# $\beta_1 = 0.9$ and $\beta_2 = 0.98$ forget with time constants of $1 / (1 - \beta)$: 10 and 50 steps.
#
# **The weights do not sum to one.** By the geometric series,
#
# $$
# (1 - \beta_1) \sum_{i=1}^{t} \beta_1^{\,t-i} = (1 - \beta_1) \, \frac{1 - \beta_1^{\,t}}{1 - \beta_1} = 1 - \beta_1^{\,t} .
# $$
#
# If the gradients have the mean $\bar g$, then $m_t$ has the mean $(1 - \beta_1^{\,t}) \, \bar g$: too small, in step 1
# by a factor of 10, because the mean began at zero. The same holds for $v_t$. The cure is to divide by what
# the weights sum to:
#
# $$
# \hat m_t = \frac{m_t}{1 - \beta_1^{\,t}} ,
# \qquad
# \hat v_t = \frac{v_t}{1 - \beta_2^{\,t}} .
# $$
#
# **The step** is the mean in units of the root mean square:
#
# $$
# \boxed{ \; \theta_t = \theta_{t-1} - \eta \, \frac{\hat m_t}{\sqrt{\hat v_t} + \varepsilon} \; }
# $$
#
# $\varepsilon = 10^{-9}$ only prevents a division by zero, where a parameter never had a gradient.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale=1.0)` | four arrays, below; $t$ from 1; the gradient is `scale * grad` | nothing: it writes to `data`, `m` and `v` |

# %%
data, grad, m, v = np.zeros((4, 6))

shape_table(
    {"P": 6},
    data=(data, "P", "θ, all parameters of the model in one array"),
    grad=(grad, "P", "g, their gradients"),
    m=(m, "P", "the running mean of g"),
    v=(v, "P", "the running mean of g²"),
)

# %% [markdown]
# In the first step $\hat m = g$ and $\hat v = g^2$, and so it stays while the gradient is steady. So **every parameter
# moves by exactly** $\eta$, whatever the size of its gradient. This cell tries that on yours, and two other facts:


# %%
def steps_of(update, gradients, scale=1.0):
    """Steps in units of η, for gradients (steps, parameters)."""
    data, m, v = np.zeros((3, gradients.shape[1]))
    path = [data.copy()]
    for t, grad in enumerate(gradients, 1):
        update(data, grad, m, v, 1.0, t, 0.9, 0.98, 1e-9, scale)
        path.append(data.copy())
    return np.diff(path, axis=0)


noise = rng.standard_normal((600, 500))


def facts(adam_update):
    grad = np.array([-0.001, 0.01, -0.1, 1, 10, -100])
    steps = steps_of(adam_update, np.tile(grad, (20, 1)))
    yield "the first step is η for each parameter", np.allclose(steps[0], -np.sign(grad), atol=1e-5)
    yield "as long as the gradient stays, so are all others", np.allclose(steps, steps[0])
    few = noise[:20].copy()
    same = np.allclose(steps_of(adam_update, few), steps_of(adam_update, 1000 * few))
    yield "1000 times the gradients, the same steps", same
    still = not steps_of(adam_update, few, 0.0).any()
    yield "with the scale 0 nothing moves, and grad stays", still and (few == noise[:20]).all()


try_yours("adam_update", facts)

# %% [markdown]
# `minitransformer check own adam_update` says the rest. The package's, once yours is right:

# %%
show("adam_update")

# %% [markdown]
# PyTorch does the same; to six digits and more, after 600 steps:

# %%
if importlib.util.find_spec("torch"):
    import torch

    theirs = torch.zeros(500, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([theirs], 1.0, (0.9, 0.98), 1e-9)
    for g in noise:
        theirs.grad = torch.tensor(g)
        optimizer.step()
    ours = steps_of(adam_update, noise).sum(axis=0)
    print("PyTorch", theirs[:4].tolist(), "\nours   ", ours[:4].tolist())
    assert np.allclose(theirs.detach(), ours, rtol=0, atol=1e-6)

# %% [markdown]
# ### What follows from the formula
#
# - **Units.** Multiply the loss by 1000: $\hat m$ and $\sqrt{\hat v}$ both grow by 1000, and the step is the same.
# - **Pure noise**, of mean 0 and variance $s^2$, gives short ones. For large $t$ the variance of $m$ is, with
#   independent $g_i$,
#
# $$
# (1 - \beta_1)^2 \sum_{i} \beta_1^{\,2(t-i)} s^2 = \frac{(1 - \beta_1)^2}{1 - \beta_1^2} \, s^2 = \frac{1 - \beta_1}{1 + \beta_1} \, s^2 ,
# $$
#
# and $\hat v$ is near $s^2$, so the root mean square of the step is about
# $\eta \sqrt{(1 - \beta_1) / (1 + \beta_1)} = 0.23 \, \eta$. Adam slows down by itself where the gradients disagree:

# %%
derived = np.sqrt(0.1 / 1.9)
for scale in (1, 1000):
    typical = np.sqrt((steps_of(adam_update, scale * noise)[300:] ** 2).mean())
    print(f"noise of size {scale:4}: {typical:.3f} η, derived {derived:.3f} η")
    assert abs(typical / derived - 1) < 0.1

# %% [markdown]
# ### What the correction prevents
#
# The usual explanation is that without it the first steps would be too *small*, as $m$ begins at zero. But $v$ begins
# at zero too. It stands in the denominator and fills up more slowly, so the steps are soon too *long*. Without the
# corrections, a steady gradient gives steps of
#
# $$
# \eta \, \frac{1 - \beta_1^{\,t}}{\sqrt{1 - \beta_2^{\,t}}} ,
# $$
#
# drawn here for two $\beta_2$:

# %% tags=["hide-input"]
t = np.arange(1, 5001)
figure, axes = plt.subplots(figsize=(7, 3.9))
for beta_2 in (0.98, 0.999):
    ratio = (1 - 0.9**t) / np.sqrt(1 - beta_2**t)
    top = ratio.argmax()
    most = f"at most {ratio[top]:.1f} η, in step {t[top]}"
    axes.semilogx(t, ratio, label=rf"$\beta_2 = {beta_2}$: {most}")
axes.axhline(1, color=BLACK, ls=":", lw=1.2)
axes.text(1500, 0.9, "corrected", va="top", fontsize=9.5)
axes.set(xlabel="step $t$", ylabel="length of an uncorrected step (η)", ylim=(0, 7.5))
axes.legend()
plt.show()

# %% [markdown]
# With the usual $\beta_2 = 0.999$ they are several times too long for the first hundred steps, where a model can least
# afford it. With the paper's 0.98 the excess is small and short.
#
# ## 3 · Warm-up: how far does the first step carry?
#
# The first step of Adam moves every parameter by $\eta$, to the side where the loss falls. To first order the loss
# falls by $\sum_i \eta \, |g_i|$. But *every* parameter moves, also those with tiny gradients, and they all pull at the
# same output. How far is "to first order" right? And how long do steps stay that long? Drawn on the left is the fall of
# the loss in a first step of size $\eta$, in three models, and on the right the typical step during one training:

# %%
etas = np.logspace(-5, -1.5, 15)
falls, first_order = [], []  # for each model
for seed in range(3):
    model = new_model(seed=seed)
    (start, _), cache = model.loss(Batch(*batch))
    model.loss_backward(1.0, cache)
    data, grad = to_host(model.flat.data).copy(), to_host(model.flat.grad)
    falls.append([])
    for eta in etas:
        moved = data - eta.astype(np.float32) * np.sign(grad)  # the first step of Adam
        model.flat.data[:] = device.asarray(moved)
        falls[-1].append(float(start) - float(model.loss(Batch(*batch))[0][0]))
    first_order.append(etas * abs(grad).sum())
    assert falls[-1][-1] < max(falls[-1])

model, masks, picks = new_model(), device.generator(12), np.random.default_rng(12)
adam, lengths = Adam(model.flat), []
for step in range(1, 81):
    rows = picks.choice(len(train.source), 40, replace=False)
    source, target, labels = train.source[rows], train.target[rows], train.labels[rows]
    before = to_host(model.flat.data).copy()
    model.flat.grad.fill(0)
    _, cache = model.loss(Batch(source, target, labels), masks, smoothing=0.1)
    model.loss_backward(1.0, cache)
    eta = 7e-3 * min(1, step / 80)
    adam.step(eta)
    moves = (to_host(model.flat.data) - before) / eta
    lengths.append(np.sqrt((moves[moves != 0] ** 2).mean()))  # 0: words that do not occur
print(f"typical step: {lengths[0]:.2f} η in step 1, {lengths[-1]:.2f} η in step 80")
assert lengths[-1] < lengths[0] / 2

# %% tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 4))
measured, line = (["measured, 3 models", "", ""], ["first order", "", ""])
left.semilogx(etas, np.transpose(falls), "o-", color=BLUE, ms=4, lw=1.2, label=measured)
left.semilogx(etas, np.transpose(first_order), "-", color=BLACK, lw=0.9, label=line)
left.axhline(0, color="0.5", lw=0.8)
left.set(
    xlabel=r"$\eta$ of the first step", ylabel="fall of the loss (nats a token)", ylim=(-0.25, 0.6)
)
left.legend(loc="upper left")
right.plot(range(1, 81), lengths, color=GREEN)
right.axhline(np.sqrt(0.1 / 1.9), color=BLACK, lw=0.9)
right.text(79, np.sqrt(0.1 / 1.9) - 0.02, "pure noise", ha="right", va="top", fontsize=9.5)
right.set(xlabel="step", ylabel=r"typical step ($\eta$)", ylim=(0, 1.05))
right.set_title("one training, seed 12")
plt.show()

# %% [markdown]
# Up to some $10^{-4}$ the line holds. Then the movements of many parameters add up to more than was meant. The best
# first step is one to a few thousandths; beyond a hundredth it may leave the model worse than it was. And only the very
# first steps are full ones. After some twenty the typical step is a quarter of $\eta$ or less, about that of pure noise.
# So a learning rate that is right later is too large at first. A warm-up keeps it small until the gradients have become
# a mixture.
#
# ## 4 · Decay: why it must fall again
#
# Near a minimum gradients are small and noise remains. Take the simplest case, one parameter with the loss
# $\frac{a}{2} \theta^2$ and plain gradient descent, where each gradient $a \theta$ comes with independent noise
# $s \, \xi_t$, with $\xi_t$ of mean 0 and variance 1:
#
# $$
# \theta_{t+1} = \theta_t - \eta \, (a \theta_t + s \, \xi_t) = (1 - \eta a) \, \theta_t - \eta s \, \xi_t .
# $$
#
# For $\lvert 1 - \eta a \rvert \lt 1$ the mean of $\theta$ falls to zero by this factor a step, and the variance goes
# to a value $\sigma^2$ that no longer changes (the two terms are independent, so their variances add up):
#
# $$
# \sigma^2 = (1 - \eta a)^2 \sigma^2 + \eta^2 s^2
# \qquad\Longrightarrow\qquad
# \sigma^2 \, (2 \eta a - \eta^2 a^2) = \eta^2 s^2
# \qquad\Longrightarrow\qquad
# \frac{a}{2} \sigma^2 = \frac{\eta \, s^2}{2 \, (2 - \eta a)} \approx \frac{\eta \, s^2}{4} .
# $$
#
# **The loss stops at a floor in proportion to the learning rate.** A large $\eta$ gets down quickly and stays high, a
# small one gets low and takes long. A falling one does both:

# %%
RUNS, STEPS, A, S = 2000, 1000, 0.1, 1.0
RATES = {
    r"falling as $1 / \sqrt{t}$": lambda t: t**-0.5,
    "constant, large": lambda t: 1.0,
    "constant, small": lambda t: 0.03,
}
curves = {}
for name, rate in RATES.items():
    theta = np.full(RUNS, 10.0)
    curve = []
    for step in range(1, STEPS + 1):
        theta -= rate(step) * (A * theta + S * rng.standard_normal(RUNS))
        curve.append(A / 2 * (theta**2).mean())
    curves[name] = curve
floor = 1.0 / (2 * (2 - 0.1))
assert abs(curves["constant, large"][-1] / floor - 1) < 0.1

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4))
for name, rate in RATES.items():
    axes.loglog(range(1, STEPS + 1), curves[name], label=name)
    eta = rate(STEPS)
    floor = eta * S**2 / (2 * (2 - eta * A))
    axes.plot([STEPS, 1.5 * STEPS], [floor, floor], "-", color=BLACK, lw=1)
axes.plot([], [], "-", color=BLACK, lw=1, label="derived floor of the last η")
axes.set(xlabel="step", ylabel="loss, mean of 2000 runs")
axes.legend(loc="lower left")
plt.show()

# %% [markdown]
# ### The paper's schedule
#
# $$
# \eta(t) = D^{-1/2} \cdot \min \left( t^{-1/2}, \; t \cdot w^{-3/2} \right)
# $$
#
# with $w$ the steps of warm-up. The first term falls and the second rises; they are equal where $t^{3/2} = w^{3/2}$,
# at $t = w$, and there
#
# $$
# \eta_{\max} = \frac{1}{\sqrt{D \, w}} .
# $$
#
# So **warm-up and peak are tied together**: whoever halves $w$ raises the peak by $\sqrt 2$, and whoever makes the
# model wider lowers it.
#
# A training whose length $n$ is known can end at zero, in a straight line from a peak of one's own choice:
# $\eta(t) = \eta_{\max} \cdot \min (t / w, \; (n - t) / (n - w))$, and never below 0.
#
# ### Now write them
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `noam(step, d_model, warmup_steps)` | $t$ from 1, $D$, $w$ | $\eta$ |
# | `linear_decay(step, peak, warmup_steps, total_steps)` | $t$, $\eta_{\max}$, $w$, $n$ | $\eta$ |


# %%
def facts(noam, linear_decay):
    rates = [noam(t, 64, 10) for t in range(1, 101)]
    peaks = np.isclose([rates[9], max(rates)], 640**-0.5).all()
    yield "noam peaks at step w, with 1 / √(D w)", peaks
    yield "in step 4 w it has fallen to half of that", np.isclose(rates[39], rates[9] / 2)
    rates = [linear_decay(t, 0.2, 10, 100) for t in range(1, 101)]
    yield "linear_decay peaks at step w", np.isclose(rates[9], 0.2) and max(rates) == rates[9]
    yield "halfway to its end it has fallen to half", np.isclose(rates[54], 0.1)
    yield "behind its end it is 0", linear_decay(110, 0.2, 10, 100) == 0


try_yours("noam", facts)

# %%
show("noam")

# %% [markdown]
# The package also has the paper's shape with any peak. All three:

# %%
source_of(inverse_sqrt)

# %%
steps = np.arange(1, 20_001)
assert np.isclose(max(noam(t, 512, 4000) for t in steps), 1 / np.sqrt(512 * 4000))

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4))
for name, curve in (
    ("noam, D = 512, w = 4000: base", [noam(t, 512, 4000) for t in steps]),
    ("inverse-sqrt, w = 1000", [inverse_sqrt(t, 7e-4, 1000) for t in steps]),
    ("linear, w = 1000", [linear_decay(t, 7e-4, 1000, 20_000) for t in steps]),
):
    axes.plot(steps / 1000, 1e3 * np.array(curve), label=name)
axes.set(xlabel="step (thousands)", ylabel=r"learning rate ($10^{-3}$)", ylim=(0, 0.75))
axes.legend()
plt.show()

# %% [markdown]
# ## 5 · Dropout
#
# In training each entry of what a sublayer returns is set to zero with probability $p$, and the others are divided by
# $1 - p$: $y = x \, b / (1 - p)$, with $b = 1$ with probability $1 - p$, else 0. Why the division? Because
#
# $$
# \text{E}[y] = x \, \frac{1 - p}{1 - p} = x ,
# \qquad
# \text{Var}[y] = x^2 \, \frac{p (1 - p)}{(1 - p)^2} = x^2 \, \frac{p}{1 - p} .
# $$
#
# The mean is right, so in use, without dropout, nothing needs to be done. What is added is noise in proportion to the
# signal: no unit can rely on another one. Once drawn, the mask is a constant, so $dx = dy \, b / (1 - p)$ **with the
# same** $b$.
#
# You wrote `dropout` in [lesson 02](02_backpropagation.ipynb). Four facts about yours:


# %%
def facts(dropout, dropout_backward):
    x = np.full(100_000, 3.0)
    y, cache = dropout(x, 0.1, np.random.default_rng(12))
    yield "the mean stays", abs(y.mean() - 3) < 0.02
    yield "the variance is x² p / (1 − p)", abs(y.var() - 9 * 0.1 / 0.9) < 0.02
    yield "for dy = x the gradient is y", np.allclose(dropout_backward(x, cache), y)
    yield "without rng, y is x", np.array_equal(dropout(x, 0.1)[0], x)


try_yours("dropout", facts)

# %% [markdown]
# A mistake that people make: the mask is drawn again.


# %%
def drop(x):
    return dropout(x, 0.3, np.random.default_rng(5))


def mask_drawn_again(dy, cache):
    _, another = dropout(dy, 0.3, np.random.default_rng(6))
    return dropout_backward(dy, another)


sample = rng.standard_normal((4, 6))
report = check_pair(drop, dropout_backward, (sample,))
assert report.right
print(report)
report = check_pair(drop, mask_drawn_again, (sample,))
assert not report.right
print(report)

# %% [markdown]
# ## 6 · Label smoothing
#
# [Lesson 04](04_softmax_cross_entropy.ipynb) smoothed the target $q$: $\varepsilon / V$ for each of the $V$ words and
# $1 - \varepsilon$ more for the right one, with $\varepsilon = 0.1$ in the paper. The gradient $dz = p - q$ vanishes
# where $p = q$, and there the logit of the right word lies above each of the others by
#
# $$
# \Delta = \ln \frac{q_{\text{right}}}{q_{\text{other}}} = \ln \frac{1 - \varepsilon + \varepsilon / V}{\varepsilon / V} .
# $$
#
# That is *finite*. Without smoothing $p = 1$ needs $\Delta = \infty$: the weights would be driven to grow for ever. The
# price is that the loss falls only to the entropy of $q$, not to 0, and that the perplexity gets worse (the paper's
# section 5.4).

# %%
SMOOTHING, V = 0.1, FIRST + LETTERS
right, other = 1 - SMOOTHING + SMOOTHING / V, SMOOTHING / V
gap = np.log(right / other)
floor = -(right * np.log(right) + (V - 1) * other * np.log(other))
print(f"V = {V}: gap {gap:.2f}, the loss's floor {floor:.3f}")

# %% [markdown]
# ## 7 · The test that finds most mistakes
#
# **Let the model learn one small batch by heart.** Dropout off, a dozen examples, the same ones in each step. A model
# with enough parameters must get all of them right, and we know what it has to reach: the floor and the gap from above.
# It takes seconds, so it comes before every long training. If it fails, something is broken. Here is the loss in a right
# training and in three with a mistake:


# %%
def learn_by_heart(mistake="", steps=150):
    """The loss in each step, and the logits at the end."""
    few = words_backwards(12, seed=3)
    source, target, labels = few.source, few.target, few.labels
    if mistake == "labels not shifted":
        target = labels  # the decoder is shown what it has to say
    if mistake == "source not heard":
        source = np.full_like(source, FIRST)  # as good as no source at all
    model = new_model(layers=1, norm="pre", dropout=0.0)
    adam = Adam(model.flat)
    losses = []
    for _ in range(steps):
        if mistake != "gradient not cleared":
            model.flat.grad.fill(0)
        (loss, _), cache = model.loss(Batch(source, target, labels), smoothing=SMOOTHING)
        losses.append(float(loss))
        model.loss_backward(1.0, cache)
        if mistake == "encoder gets no gradient":
            for parameter in model.encoder.parameters():
                parameter.grad.fill(0)
        adam.step(5e-3)
    return losses, to_host(model.forward(source, target)[0]), labels


by_heart = {}
for mistake in ("", "source not heard", "gradient not cleared", "labels not shifted"):
    by_heart[mistake], logits, labels = learn_by_heart(mistake)
    if not mistake:
        real = labels != 0
        chosen = np.take_along_axis(logits, labels[..., None], -1)[..., 0]
        others = (logits.sum(-1) - chosen) / (V - 1)
        measured_gap = (chosen - others)[real].mean()
        all_right = (logits.argmax(-1) == labels)[real].all()
print(f"loss {by_heart[''][-1]:.3f}, floor {floor:.3f};  gap {measured_gap:.2f}, derived {gap:.2f}")
assert all_right
assert abs(by_heart[""][-1] - floor) < 0.03
assert min(by_heart[m][-1] for m in ("source not heard", "gradient not cleared")) > floor + 0.2

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4.3))
for mistake, losses in by_heart.items():
    axes.plot(losses, label=mistake or "right")
axes.axhline(floor, color=BLACK, lw=0.9)
axes.text(100, floor - 0.05, "derived floor", va="top", fontsize=9.5)
axes.set(xlabel="step", ylabel="smoothed loss (nats a token)", ylim=(0.3, 4))
axes.set_title("one training each, seed 12")
axes.legend()
plt.show()

# %% [markdown]
# The right model goes to the derived floor. The mistakes show in three ways:
#
# - **It never gets there.** Without the source the decoder cannot know with which letter to begin. With gradients that
#   are added up over all steps the loss wanders about.
# - **It gets there too fast.** Whoever is shown the labels needs no learning.
# - **It gets there, and is wrong all the same.** If the encoder gets no gradient, the rest of the model learns a dozen
#   words by heart without it:

# %%
losses, _, _ = learn_by_heart("encoder gets no gradient")
print(f"encoder gets no gradient: loss {losses[-1]:.3f}, floor {floor:.3f}")
assert losses[-1] < floor + 0.05

# %% [markdown]
# So this test is no proof. Check the gradients ([lesson 03](03_gradient_checking.ipynb)), learn one batch by heart, and
# only then train.
#
# ## 8 · The recipe, taken apart
#
# Now the real task: to learn from 200 words how to spell *any* word backwards, with three post-norm layers a side. The
# full recipe is Adam, a warm-up and a fall with the root of the step, dropout and label smoothing of 0.1 each. Then
# each is left out. Drawn is the NLL of 200 other words, in one training of each kind. Guessing a letter would cost
# $\ln 21 = 3.04$ nats.

# %%
PEAK, WARMUP, STEPS, EVERY = 7e-3, 80, 210, 30


def validation_curve(optimizer="adam", warmup=True, dropout=0.1, smoothing=0.1):
    """NLL of other words, every EVERY steps (nats a token)."""
    model = new_model(dropout=dropout)
    adam = Adam(model.flat)
    picks, masks = np.random.default_rng(12), device.generator(12)
    curve = []
    for step in range(1, STEPS + 1):
        rows = picks.choice(len(train.source), 40, replace=False)
        source, target, labels = train.source[rows], train.target[rows], train.labels[rows]
        model.flat.grad.fill(0)
        _, cache = model.loss(Batch(source, target, labels), masks, smoothing=smoothing)
        model.loss_backward(1.0, cache)
        fall = inverse_sqrt(max(step, WARMUP), 1.0, WARMUP)  # the same with and without a warm-up
        rate = fall * (min(1, step / WARMUP) if warmup else 1)
        if optimizer == "adam":
            adam.step(PEAK * rate)
        else:
            model.flat.data -= model.flat.grad * (0.5 * rate)
        if step % EVERY == 0:
            (_, nll), _ = model.loss(validation)
            curve.append(float(nll))
    return curve


RECIPES = {
    "the full recipe": {},
    "no label smoothing": dict(smoothing=0.0),
    "no dropout": dict(dropout=0.0),
    "neither of the two": dict(dropout=0.0, smoothing=0.0),
    "no warm-up": dict(warmup=False),
    "gradient descent, not Adam": dict(optimizer="sgd"),
}
with accelerated():  # the same results sooner
    curves = {name: validation_curve(**change) for name, change in RECIPES.items()}
ends = {name: curve[-1] for name, curve in curves.items()}
for name, nll in ends.items():
    print(f"{nll:.2f}  {name}")
assert min(ends, key=ends.get) in ("the full recipe", "no label smoothing")
assert max(ends["no warm-up"], ends["neither of the two"]) > ends["the full recipe"] + 0.3
assert ends["gradient descent, not Adam"] > ends["the full recipe"] + 0.3

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(8, 4.8))
at = range(EVERY, STEPS + 1, EVERY)
for (name, curve), marker in zip(curves.items(), "osv^Dx", strict=True):
    axes.plot(at, curve, marker=marker, ms=5, label=name)
axes.set(
    xlabel="step", ylabel="NLL of other words (nats a token)", title="one training each, seed 12"
)
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %% [markdown]
# - **Warm-up and Adam**: without one of them the model has learned little more than half as much. Without the warm-up
#   the first steps throw the network off, and two hundred more do not mend it.
# - **Dropout and smoothing** do not help the learning: at first the curves without them are *below* the full recipe.
#   They pay when the 200 words begin to be learned by heart. With neither, the NLL of other words turns and rises.
# - **Smoothing alone** makes little difference as long as there is dropout. To leave an ingredient out shows what it
#   adds *to the others*, not what it is worth by itself.
#
# This is one seed; run it with others before you believe a small difference. Gradient descent had one learning rate,
# not the best of many.
#
# ## 9 · Exercises
#
# Fill in `answers/ex12.py`, your copy of [lessons/exercises/ex12.py](exercises/ex12.py), and run
# `minitransformer check ex12`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex12.py](solutions/ex12.py).
#
# 1. **`warmup_for_peak`** (10 min). The recipe above peaks at 0.007 with 80 steps of warm-up. Which warm-up would the
#    paper's formula need for that peak, at a width of 32? And base for twice its peak?
# 2. **`decayed_adam_update`** (25 min). Weights that are pulled towards zero generalise better, it is said. Adding
#    $\lambda \theta$ to the gradient is one way. Through Adam it goes wrong: work out why, and do it the other way.
# 3. **`drop_path`** (25 min). Dropout of whole sublayers, sentence by sentence, with its backward.
# 4. **`factored_second_moment`** (45 min). Adam keeps two numbers for each parameter. For a matrix, $v$ can be kept as
#    a row and a column. When is that exact?

# %%
print(check_exercise("ex12", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | Adam | $m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad \theta \leftarrow \theta - \eta \, \hat m / (\sqrt{\hat v} + \varepsilon)$ |
# | bias correction | $\hat m = m / (1 - \beta_1^{\,t})$, $\hat v = v / (1 - \beta_2^{\,t})$; without it early steps are soon too *long* |
# | step size | first step: $\eta$ for every parameter; noise: $0.23 \, \eta$; the same for 1000 times the loss |
# | warm-up | because early steps are full ones, of all parameters at once |
# | decay | because noise leaves a floor, in proportion to $\eta$ |
# | noam | peak $1 / \sqrt{D w}$ at step $w$ |
# | dropout | $y = x \, b / (1 - p)$, the same $b$ backward, nothing in use |
# | smoothing | gap $\ln \frac{1 - \varepsilon + \varepsilon / V}{\varepsilon / V}$; the loss ends at the entropy of $q$ |
# | first test | one batch by heart: down to the derived floor, not faster than possible |
#
# **Your own Transformer.** Now it has `adam_update`, `noam` and `linear_decay`, too: `minitransformer check own`.
#
# **Next:** real text, real lengths, a run that can be resumed: [lesson 13](13_training_for_real.ipynb).
