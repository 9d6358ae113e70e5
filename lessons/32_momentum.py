# %% [markdown]
# # 32 · Momentum
#
# **You will** see gradient descent creep along a ravine and a rolling parameter run through it; derive what a velocity
# does to gradients that stay and to those that alternate, where Nesterov looks, and which rates converge; and see what
# dividing the rate by ten is good for.
#
# | | |
# |---|---|
# | In the paper | not in it; section 5.3 has Adam, whose first moment is a momentum |
# | In the package | `minitransformer/optim/sgd.py` |
# | You need | the chain rule; complex numbers, for section 4 |
# | Time | half an hour to read, ten minutes for the function, one and a quarter for the exercises |

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

from minitransformer import accelerated, select_device
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLACK, BLUE, GREEN, VERMILION, shape_table, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.data.images.batches import PictureBatch
from minitransformer.data.images.shapes import shapes_corpus
from minitransformer.models.small_network import SmallNetwork, SmallNetworkConfig
from minitransformer.optim.sgd import SGD, momentum_update

use_style()
device = select_device("cpu")  # "cuda" trains the network of section 5 on a GPU
rng = np.random.default_rng(32)

# %% [markdown]
# ## 1 · A ravine
#
# Gradient descent takes a step against the gradient $g$ of the loss: $\theta \leftarrow \theta - \eta g$, with θ for
# all parameters and η, the rate, for how far. The smallest landscape in which that is slow is a **ravine**: a loss that
# is steep in one direction and flat in the other, $L = \frac12 (a_1 \theta_1^2 + a_2 \theta_2^2)$ with curvatures
# $a_1 = 1$ and $a_2 = 30$. Its gradient is $(a_1 \theta_1, a_2 \theta_2)$. The steep direction limits the rate: with
# much more than 0.06 the steps across get longer and longer. The flat direction needs a larger one.
#
# Beside it, the same with a **momentum**, the same rate and as many steps:


# %%
CURVATURES = np.array([1.0, 30.0])


def path(rate, momentum, steps, nesterov=False, curvatures=CURVATURES, start=(8.0, 1.0)):
    """Where the parameters have been, (steps + 1, D)."""
    theta = np.array(start)
    places, velocity = [theta.copy()], np.zeros_like(theta)
    for _ in range(steps):
        momentum_update(theta, curvatures * theta, velocity, rate, momentum, nesterov)
        places.append(theta.copy())
    return np.array(places)


WAYS = {
    "gradient descent, η = 0.06": (path(0.06, 0.0, 40), VERMILION, "s--"),
    "momentum 0.6, η = 0.06": (path(0.06, 0.6, 40), BLUE, "o-"),
}
slow, fast = (np.linalg.norm(places[-1]) for places, *_ in WAYS.values())
assert slow > 100 * fast

# %% tags=["hide-input"]
figure, panels = plt.subplots(2, 1, figsize=(8, 4.4), sharex=True)
flat, steep = np.meshgrid(np.linspace(-3, 9, 200), np.linspace(-1.6, 1.6, 120))
height = 0.5 * (flat**2 + 30 * steep**2)
for axes, (name, (places, colour, style)) in zip(panels, WAYS.items(), strict=True):
    axes.contour(flat, steep, height, levels=[0.5, 2, 5, 10, 18, 28], colors="0.8", linewidths=0.8)
    axes.plot(*places.T, style, color=colour, ms=3.5, lw=1.2)
    axes.plot(0, 0, "x", color=BLACK)
    axes.set_title(f"{name}, 40 steps", loc="left")
    axes.set(ylabel=r"$\theta_2$, steep", xlim=(-3, 9), ylim=(-1.6, 1.6))
    axes.grid(False)
panels[-1].set_xlabel(r"$\theta_1$, flat")
plt.show()

# %% [markdown]
# Descent changes its side in every step and creeps along the bottom. Momentum turns more slowly, and runs. Networks
# have ravines of thousands of directions, so this is worth understanding to the end.
#
# ## 2 · A velocity
#
# Polyak (1964) lets the parameters roll. A *velocity* $u$ keeps a share μ of itself, the momentum, and takes the
# gradient up:
#
# $$
# u \leftarrow \mu u + g
# \qquad
# \theta \leftarrow \theta - \eta u .
# $$
#
# Write it out: $u_t = g_t + \mu g_{t-1} + \mu^2 g_{t-2} + \dots$ Two cases say what it does.
#
# - *A gradient that stays*, $g_t = g$: in the long run the sum is $g (1 + \mu + \mu^2 + \dots) = g / (1 - \mu)$. With
#   μ = 0.9 steps become ten times as long.
# - *A gradient that alternates*, $g_t = (-1)^t g$: in the long run it is
#   $(-1)^t g (1 - \mu + \mu^2 - \dots) = (-1)^t g / (1 + \mu)$. With μ = 0.9 steps become about half as long.
#
# So momentum tells the two directions of the ravine apart by what their gradients do.
#
# A share that is too large has a price, too: what was wrong goes on as long as what was right. Section 4 finds that no
# step multiplies the distance from the minimum by less than √μ in the long run: with μ = 0.9 half of it is left after
# 13 steps, and with 0.99 after 138.
#
# ### Two more terms
#
# **Weight decay** adds $\lambda \theta$ to the gradient before the velocity takes it up: that is the gradient of
# $\frac\lambda2 \lvert \theta \rvert^2$. (AdamW puts it elsewhere, [lesson 27](27_since_2017.ipynb).)
#
# **Nesterov** (1983) takes the gradient where the velocity is about to lead, at $\theta - \eta \mu u$. Call this point
# $\varphi$ and keep *it* in place of θ. With $u' = \mu u + g(\varphi)$ and $\theta' = \theta - \eta u'$ the next
# point ahead is
#
# $$
# \varphi' = \theta' - \eta \mu u'
# = \underbrace{\varphi + \eta \mu u}_{\theta} - \eta u' - \eta \mu u'
# = \varphi - \eta \bigl( u' - \mu u \bigr) - \eta \mu u'
# = \varphi - \eta \bigl( g + \mu u' \bigr) ,
# $$
#
# as $u' - \mu u = g$. No gradient is asked for elsewhere than at the parameters that are kept.

# %%
D = 4
data, grad, velocity = rng.standard_normal((3, D))
momentum_update(data, grad, velocity, learning_rate=0.1, momentum=0.9)
shape_table(
    {"D": D},
    data=(data, "D", "θ, all parameters of a model, changed in place"),
    grad=(grad, "D", "g, their gradient, left as it is"),
    velocity=(velocity, "D", "u, zeros at first, changed in place"),
)

# %% [markdown]
# ## 3 · Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `momentum_update(data, grad, velocity, learning_rate, momentum, nesterov=False, weight_decay=0.0, scale=1.0)` | three (D,), numbers | nothing: it writes to `data` and `velocity` |
#
# `scale` is a factor of the gradient alone, which clipping gives.


# %%
def facts(momentum_update):
    data, velocity, steady = np.zeros(3), np.zeros(3), np.array([1.0, -2.0, 0.5])
    for _ in range(300):
        before = data.copy()
        momentum_update(data, steady, velocity, 0.1, 0.9)
    yield "a gradient that stays: steps ten times as long", np.allclose(before - data, steady)
    yield "grad is as it was", np.array_equal(steady, [1.0, -2.0, 0.5])
    velocity = np.zeros(3)
    for t in range(301):
        momentum_update(data, (-1) ** t * steady, velocity, 0.1, 0.9)
    yield "one that alternates: a velocity of 1 / 1.9 of it", np.allclose(velocity, steady / 1.9)
    data, velocity = np.array([2.0, -1.0, 4.0]), np.zeros(3)
    momentum_update(data, steady, velocity, 0.1, 0.9, False, 0.5, 0.0)
    yield "decay is not scaled", np.allclose(data, [1.9, -0.95, 3.8])
    both = [np.zeros(3), np.zeros(3)]
    for ahead, data in zip((False, True), both, strict=True):
        momentum_update(data, steady, np.zeros(3), 0.1, 0.0, ahead)
    yield "without momentum there is nothing ahead", np.allclose(*both)
    data = np.zeros(3)
    momentum_update(data, steady, np.zeros(3), 0.1, 0.9, True)
    yield "Nesterov's first step is 1.9 times as long", np.allclose(data, -0.19 * steady)


try_yours("momentum_update", facts)

# %%
show("momentum_update")

# %% [markdown]
# Nesterov's as it was defined above, with a gradient ahead, against the package's, which keeps the point ahead:

# %%
theta, u = np.array([8.0, 1.0]), np.zeros(2)
ahead, velocity = theta.copy(), np.zeros(2)
for _ in range(50):
    u = 0.8 * u + CURVATURES * (theta - 0.02 * 0.8 * u)  # the gradient where u leads
    theta = theta - 0.02 * u
    momentum_update(ahead, CURVATURES * ahead, velocity, 0.02, 0.8, nesterov=True)
    assert np.allclose(ahead, theta - 0.02 * 0.8 * u)

# %% [markdown]
# PyTorch's, with decay, in fifty steps with random gradients:

# %%
if find_spec("torch"):
    import torch

    for nesterov in (False, True):
        data, velocity = rng.standard_normal(D), np.zeros(D)
        theirs = torch.tensor(data.copy(), requires_grad=True)
        options = dict(lr=0.1, momentum=0.9, nesterov=nesterov, weight_decay=0.01)
        sgd = torch.optim.SGD([theirs], **options)
        for grad in rng.standard_normal((50, D)):
            momentum_update(data, grad, velocity, 0.1, 0.9, nesterov, 0.01)
            theirs.grad = torch.tensor(grad)
            sgd.step()
        apart = abs(data - theirs.detach().numpy()).max()
        print(f"nesterov={nesterov}: they differ by {apart:.0e} at most")
        assert np.allclose(data, theirs.detach(), atol=1e-9)

# %% [markdown]
# ## 4 · Which rates converge?
#
# Each direction is for itself, so take one, with curvature $a$ and $g_t = a \theta_t$. **Without momentum**
# $\theta_{t+1} = (1 - \eta a) \, \theta_t$. It converges if $\lvert 1 - \eta a \rvert \lt 1$, that is for
# $0 \lt \eta a \lt 2$.
#
# **With momentum** $\eta u_{t-1} = \theta_{t-1} - \theta_t$ is the last step, so
#
# $$
# \theta_{t+1} = \theta_t - \eta (\mu u_{t-1} + a \theta_t)
# = (1 + \mu - \eta a) \, \theta_t - \mu \, \theta_{t-1} .
# $$
#
# Such a sequence is made of powers $r^t$. Put $\theta_t = r^t$ in and divide by $r^{t-1}$:
#
# $$
# p(r) = r^2 - (1 + \mu - \eta a) \, r + \mu = 0 .
# $$
#
# The two roots have the product μ, which is less than 1. It converges if both are inside the unit circle.
#
# - *If they are complex*, they are conjugate, and their product is $\lvert r \rvert^2 = \mu$. Both have the size
#   $\sqrt\mu \lt 1$, whatever $\eta$ and $a$ are.
# - *If they are real* they have the same sign, as $\mu \gt 0$. If one were 1 or larger, the other would be below 1, as
#   their product is. So 1 would lie between them or on one, and $p(1) \le 0$. But $p(1) = \eta a$. So for positive
#   $\eta a$ none is; and one of the two is $\sqrt\mu$ or more in size, as their product is $\mu$. In the same way none
#   is −1 or less exactly if $p(-1) = 2 (1 + \mu) - \eta a \gt 0$.
#
# Together: $0 \lt \eta a \lt 2 (1 + \mu)$, nearly twice as far as without. The roots are complex where
# $(1 + \mu - \eta a)^2 \lt 4 \mu$, that is between $(1 - \sqrt\mu)^2$ and $(1 + \sqrt\mu)^2$. There each step
# multiplies the distance by the same $\sqrt\mu$, in the flat direction as in the steep one. Theory and measurement, by
# the package's function:

# %%
MOMENTA = {0.0: (VERMILION, "s"), 0.5: (GREEN, "^"), 0.9: (BLUE, "o")}


def predicted(eta_a, mu):
    return max(abs(np.roots([1, -(1 + mu - eta_a), mu])))


def measured(eta_a, mu, steps=200):
    """The factor by which a step multiplies the distance, in the mean."""
    places = path(eta_a, mu, steps, curvatures=1.0, start=(1.0,))[:, 0]
    sizes = np.hypot(places[1:], places[:-1])
    return (sizes[-1] / sizes[steps // 2]) ** (1 / (steps - 1 - steps // 2))


tried = np.array([0.01, 0.05, 0.2, 0.5, 0.9, 1.4, 1.9, 2.2, 2.7, 3.2, 3.7, 3.9])
factors = {mu: np.array([measured(eta_a, mu) for eta_a in tried]) for mu in MOMENTA}
for mu, of_mu in factors.items():
    assert np.allclose(of_mu, [predicted(eta_a, mu) for eta_a in tried], atol=0.03)
    assert np.array_equal(of_mu < 1, tried < 2 * (1 + mu))

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4.2))
wide = np.linspace(0.001, 4, 800)
for mu, (colour, marker) in MOMENTA.items():
    axes.plot(wide, [predicted(eta_a, mu) for eta_a in wide], "-", color=BLACK, lw=0.9)
    axes.plot(tried, factors[mu], marker, color=colour, ms=5, label=f"μ = {mu:g}")
    axes.axvline(2 * (1 + mu), color=colour, ls=":", lw=1.2)
axes.axhline(1, color=BLACK, lw=0.6)
axes.set(xlabel=r"$\eta a$, the rate times the curvature", ylim=(0, 1.6))
axes.set(ylabel="factor of the distance, a step")
axes.legend(loc="upper left", title="line: derived")
plt.show()

# %% [markdown]
# Dotted lines are $2 (1 + \mu)$. (Where both roots are one, at an end of the level part, a factor that grows with the
# step comes to it, which changes nothing in the long run.) In a ravine whose curvatures have the ratio
# $\kappa = a_2 / a_1$ both must be on the curve at once. Without momentum the best is where the two sides of the V are
# level, $1 - \eta a_1 = \eta a_2 - 1$, with a factor of $(\kappa - 1) / (\kappa + 1)$: for $\kappa = 100$ a step takes
# off 2 %. With momentum the level part has room for both, and **$\kappa$ becomes its root**: a step can take off 18 %.
# An exercise asks for the rate and the momentum that do.
#
# ## 5 · The rate divided by ten
#
# He and others (2016) divide the rate by 10 twice, and their curves fall like stairs. With a large rate a network
# bounces between the walls of its ravines, and gets no lower than the noise of its batches lets it (an exercise works
# that out for one parameter). A smaller one gets lower, and takes longer. So begin with the large one. Here is a small
# network of three convolutions ([lesson 29](29_seeing.ipynb)) on small pictures, from three seeds: with a rate of 0.03,
# with 0.01, and with 0.03 that is divided by ten after 360 of 600 steps, or after 120:

# %%
corpus = shapes_corpus()
stored = corpus["train"].pictures[:2000]
contrast = abs(stored - np.median(stored, axis=(1, 2), keepdims=True))  # from what is behind
halved = contrast.reshape(-1, 14, 2, 14, 2, 1).mean(axis=(2, 4)).astype(np.float32)
pictures, labels = (halved - halved.mean(axis=0)) / halved.std(), corpus["train"].labels[:2000]
SEEDS, STEPS = (0, 1, 2), 600


def losses_of(seed, rate, divided_at):
    """Of each step, in batches of 16; the rate rises for ten steps."""
    config = SmallNetworkConfig(14, 14, 1, 10, num_features=8, dropout=0.0)
    model = SmallNetwork(config, seed=seed, device=device)
    sgd, picks, losses = SGD(model.flat, momentum=0.9), np.random.default_rng(seed), []
    with accelerated():  # the faster of the package's functions
        for step in range(1, STEPS + 1):
            some = picks.integers(len(pictures), size=16)
            model.zero_grad()
            batch = PictureBatch(pictures[some], labels[some])
            (loss, _), cache = model.loss(batch, device.generator(seed))
            model.loss_backward(1.0, cache)
            sgd.step(rate * min(1, step / 10) / (10 if step > divided_at else 1))
            losses.append(float(loss))
    return losses


# %%
RATES = {
    "0.03": (0.03, STEPS),
    "0.01": (0.01, STEPS),
    "0.03, a tenth after 360 steps": (0.03, 360),
    "0.03, a tenth after 120 steps": (0.03, 120),
}
courses = {name: np.array([losses_of(s, *how) for s in SEEDS]) for name, how in RATES.items()}
ends = {name: losses[:, -100:].mean(axis=1) for name, losses in courses.items()}
for name, of_seeds in ends.items():
    print(f"{name:30} loss of the last 100 steps", *(f"{end:.2f}" for end in of_seeds))
kept, small, late, early = (of_seeds.mean() for of_seeds in ends.values())
assert late < min(kept, small) < early
for name, at in (("0.03, a tenth after 360 steps", 360), ("0.03, a tenth after 120 steps", 120)):
    ahead = courses["0.03"] - courses[name]  # of the rate that stays, the same until then
    soon, later = ahead[:, at + 10 : at + 60].mean(), ahead[:, at + 140 : at + 240].mean()
    print(f"{name}: {soon:+.2f} ahead after 10 to 60 more, {later:+.2f} after 140 to 240")
    assert soon > 0.02

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4))
LOOKS = ((VERMILION, "--"), (GREEN, "-."), (BLUE, "-"), (BLACK, ":"))
for (name, losses), (colour, dashes) in zip(courses.items(), LOOKS, strict=True):
    smooth = np.convolve(losses.mean(axis=0), np.ones(25) / 25, mode="valid")
    axes.plot(np.arange(25, STEPS + 1), smooth, color=colour, ls=dashes, label=name)
for at in (120, 360):
    axes.axvline(at, color=BLACK, lw=0.6)
axes.set(xlabel="step", ylabel="loss (nats), mean of 25 steps, 3 seeds")
axes.legend(title="rate")
plt.show()

# %% [markdown]
# The rate that was divided late ends lowest. Right after the division the early one was ahead of the rate that stays,
# too, and a hundred steps later it was behind, and crept: **that the loss falls faster at first says nothing of whether
# it was time.** Over ten epochs of 30 % of Fashion-MNIST half a cosine to 0 has 10.7 % wrong, a tenth after half of the
# steps and a hundredth after three quarters 11.3 %, the rate that stays 12.4 %
# ([measured](../docs/picture_claims.md#when-the-rate-falls), three seeds).
#
# ## 6 · Exercises
#
# Fill in `answers/ex32.py`, your copy of [lessons/exercises/ex32.py](exercises/ex32.py), and run
# `minitransformer check ex32`. Or copy functions from there into new cells here, fill them in, and run the cell below
# again. The solutions are in [lessons/solutions/ex32.py](solutions/ex32.py).
#
# 1. **`steps_until`** (10 min). A gradient comes once, and then no more. How long does the velocity remember it?
# 2. **`wandering`** (25 min). How far from the minimum does one parameter walk whose gradients are noisy? Then you know
#    what a tenth of the rate gains.
# 3. **`best_for_a_ravine`** (45 min). The rate and the momentum that are best together.

# %%
print(check_exercise("ex32", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | momentum | $u \leftarrow \mu u + g, \ \theta \leftarrow \theta - \eta u$ |
# | what it does | a gradient that stays makes steps $1 / (1 - \mu)$ as long, one that alternates $1 / (1 + \mu)$ |
# | decay | $g \leftarrow g + \lambda \theta$, before all else |
# | Nesterov | $\theta \leftarrow \theta - \eta (g + \mu u)$: the parameters are the point ahead |
# | convergence | $0 \lt \eta a \lt 2 (1 + \mu)$; with complex roots a step multiplies the distance by $\sqrt\mu$, in all directions |
# | a ravine | of $\kappa$ with momentum is like one of $\sqrt\kappa$ without |
# | traps | decay is not scaled; with $\mu = 0.9$ steps get ten times as long; that the loss falls faster at a smaller rate is no proof that it was time |
#
# **Your own Transformer.** `momentum_update`, in the last part of `own.py`; `minitransformer check own` says whether it
# is right.
#
# **Next:** [lesson 31](31_patches.ipynb): a picture cut into patches, which the Transformer reads as a sentence.
