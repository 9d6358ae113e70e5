# %% [markdown]
# # 04 · Softmax, cross-entropy, label smoothing
#
# **You will** turn scores into probabilities without an overflow; derive the gradient $p - q$ in
# full, and see why it must not be computed by the chain rule step by step; and know what number the
# loss of a translator can reach, and which it cannot.
#
# | | |
# |---|---|
# | In the paper | section 3.4: "the usual learned linear transformation and softmax function"; section 5.4: label smoothing, $\epsilon_{ls} = 0.1$ (Szegedy et al. 2016) |
# | In the package | `minitransformer/layers/softmax.py`, `minitransformer/loss/cross_entropy.py` |
# | You need | exponential and logarithm; the chain rule for several variables |
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
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import cross_entropy, cross_entropy_backward, select_device
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLACK, BLUE, GREEN, VERMILION, shape_table, use_style
from minitransformer.course.stops import show, try_yours
from minitransformer.gradcheck import check_pair
from minitransformer.layers.softmax import softmax, softmax_backward

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(4)

# %% [markdown]
# ## 1 · Scores are not probabilities
#
# The last matrix product of a translator gives, for each position, one number for each of $V$ words:
# its **score**, or logit, $z_v$. Any number is possible. We want a probability for each
# word, $p_v \gt 0$ with $\sum_v p_v = 1$. The softmax makes one from the other:
#
# $$
# p_v = \frac{e^{z_v}}{\sum_u e^{z_u}} .
# $$
#
# Typed as it stands, it breaks:

# %%
with np.errstate(over="ignore", invalid="ignore"):
    for scores in ([1, 2, 3], [101, 102, 103]):
        z = np.array(scores, dtype=np.float32)
        typed = np.exp(z) / sum(np.exp(z))
        print(f"{scores!s:16} typed as it stands {typed}, the package {softmax(z)[0]}")

# %% [markdown]
# float32 ends at about $3.4 \cdot 10^{38} = e^{88.7}$, and infinity divided by infinity is NaN. But look at
# the right column: both rows of scores have the *same* probabilities. That is the way out.
#
# ## 2 · The softmax
#
# **Only differences count.** Divide two probabilities, and the sum drops out:
#
# $$
# \frac{p_u}{p_v} = e^{z_u - z_v} .
# $$
#
# So a constant $c$ added to all scores changes nothing:
#
# $$
# \frac{e^{z_v + c}}{\sum_u e^{z_u + c}} = \frac{e^c \, e^{z_v}}{e^c \sum_u e^{z_u}} = p_v .
# $$
#
# We choose $c = -\max_u z_u$. Then the largest exponent is 0, its exponential 1, and
# nothing overflows. The sum is at least 1, so nothing is divided by 0. A far smaller score gives
# $e^{-200}$, which float32 rounds to 0: an error of less than $10^{-45}$.
#
# **The logarithm is another matter.** A loss needs $\log p_v$, and $\log 0$ is $-\infty$. Take the logarithm on
# paper, before anything is rounded:
#
# $$
# \log p_v = z_v - \log \sum_u e^{z_u} = (z_v - m) - \log \sum_u e^{z_u - m}, \qquad m = \max_u z_u .
# $$
#
# Now the logarithm is taken of a sum between 1 and $V$, where it is harmless. Two words, the wrong one ahead by a
# margin, in float32:

# %%
print("margin     −log of the softmax     −log p on paper")
with np.errstate(divide="ignore"):
    for margin in (1, 10, 50, 100, 200):
        z = np.array([[0.0, float(margin)]], dtype=np.float32)
        naive = -np.log(softmax(z)[0][0, 0])
        (_, nll), _ = cross_entropy(z, np.array([0]), pad_id=-1)  # id 0 is no padding here
        print(f"{margin:6} {naive:20.6f} {nll:20.6f}")
assert np.isinf(naive)
assert nll == 200

# %% [markdown]
# The naive way ends in infinity where a loss is needed most: where the model is sure and wrong.
# A tempting repair, $\log(p + 10^{-9})$, cuts off the loss at $9 \log 10 = 20.7$, and the gradient too.
#
# ## 3 · The loss
#
# A translator is good if it gives a high probability to the words that people wrote. The probability of
# a whole text is a product over its words, each given what stands before it. Its logarithm is a sum.
# The mean of the terms, with a minus sign, is the **negative log-likelihood** of a word, the NLL:
#
# $$
# \text{NLL} = -\frac1N \sum_{n=1}^{N} \log p_{n, t_n}, \qquad t_n \text{ the word at position } n .
# $$
#
# Its unit is the *nat*. $e^{\text{NLL}}$ is the **perplexity**: a model that hesitates between $k$ equally
# likely words at each position has the perplexity $k$. So the first thing to look at in any training is this:
# a model that knows nothing yet, all scores equal, has a loss of $\log V$.

# %%
V = 8000
(_, nll), _ = cross_entropy(np.zeros((5, V)), rng.integers(1, V, 5))
print(f"NLL {nll:.4f}, log V {np.log(V):.4f}, perplexity {np.exp(nll):.0f}")
assert np.isclose(nll, np.log(V))

# %% [markdown]
# ### Targets with doubt
#
# The NLL is content only with $p_t = 1$, which no finite scores give. Label smoothing asks for less: the
# target is a distribution $q$ that keeps $1 - \varepsilon$ for the right word and spreads $\varepsilon$ evenly
# over all $V$:
#
# $$
# q_v = (1 - \varepsilon) \, [v = t] + \frac{\varepsilon}{V} .
# $$
#
# $[v = t]$ is 1 for the target and 0 for any other word. The loss against a distribution is the
# **cross-entropy**,
#
# $$
# H(q, p) = -\sum_v q_v \log p_v = (1 - \varepsilon) \, (-\log p_t) + \varepsilon \, \text{mean}_v(-\log p_v) ,
# $$
#
# which for $\varepsilon = 0$ is the NLL. Here are the arrays, for a batch with some padding, id 0:

# %%
B, T, V = 2, 4, 7
logits = device.asarray(rng.standard_normal((B, T, V)) * 2)
targets = device.asarray(np.array([[4, 2, 5, 3], [1, 3, 0, 0]]))
p, _ = softmax(logits)
(loss, nll), cache = cross_entropy(logits, targets, smoothing=0.1)
dlogits = cross_entropy_backward(1.0, cache)

shape_table(
    {"B": B, "T": T, "V": V},
    logits=(logits, "B T V", "z, a score for each word at each position"),
    p=(p, "B T V", "probabilities; each row sums to 1"),
    targets=(targets, "B T", "t, the id of the right word; 0 is padding"),
    loss=(loss, "", "smoothed cross-entropy, mean over the real tokens, nats"),
    nll=(nll, "", "the same with ε = 0, to be looked at"),
    dlogits=(dlogits, "B T V", "the gradient of the loss"),
)

# %% [markdown]
# ### Its floor
#
# How low can this loss get? Split off the part that has no $p$ in it:
#
# $$
# H(q, p) = \underbrace{-\sum_v q_v \log q_v}_{H(q), \text{ the entropy of } q} + \underbrace{\sum_v q_v \log \frac{q_v}{p_v}}_{KL(q \| p)} .
# $$
#
# The second part, the Kullback-Leibler divergence, is never negative. The logarithm lies below its tangent
# at 1, $\log s \le s - 1$, and touches it only at $s = 1$. So
#
# $$
# -KL(q \| p) = \sum_v q_v \log \frac{p_v}{q_v} \le \sum_v q_v \left( \frac{p_v}{q_v} - 1 \right) = \sum_v p_v - \sum_v q_v = 1 - 1 = 0 ,
# $$
#
# and it is 0 only for $p = q$. **The lowest possible loss is the entropy of the target**,
# and it is reached by saying exactly $q$. With $q_t = 1 - \varepsilon + \varepsilon / V$ once and
# $\varepsilon / V$ for the other $V - 1$ words:
#
# $$
# \boxed{ \; \text{floor} = -q_t \log q_t - (V - 1) \frac{\varepsilon}{V} \log \frac{\varepsilon}{V} \; }
# $$


# %%
def floor_of(vocabulary_size, smoothing):
    """The lowest value of the smoothed loss, the entropy of q, in nats."""
    rest = smoothing / vocabulary_size
    right = 1 - smoothing + rest
    return -right * np.log(right) - ((vocabulary_size - 1) * rest * np.log(rest) if rest else 0)


for vocabulary_size in (1000, 8000, 37000):
    print(f"V = {vocabulary_size:6,}, ε = 0.1: floor {floor_of(vocabulary_size, 0.1):.3f} nats")

q = np.full(V, 0.1 / V)
q[4] += 0.9
(least, _), _ = cross_entropy(np.log(q)[None], np.array([4]), smoothing=0.1)  # p = q
assert np.isclose(least, floor_of(V, 0.1))

# %% [markdown]
# The last line is the paper's vocabulary for English and German (section 5.1). A training loss that settles there
# belongs to a perfect model, not to a stuck one. This is why the package also reports the NLL: it has no such floor,
# and can be compared between different $\varepsilon$.
#
# ### The picture
#
# Let the model give the right word the probability $p_t$, its confidence, and share the rest evenly among
# the others. Then
#
# $$
# \text{loss}(p_t) = -q_t \log p_t - (1 - q_t) \log \frac{1 - p_t}{V - 1} .
# $$
#
# Here it is for three $\varepsilon$: on the left over the confidence, on the right over the **margin**, how far the
# right word's score is above the others.

# %%
V = 8000


def loss_at(confidence, smoothing):
    right = 1 - smoothing + smoothing / V
    return -right * np.log(confidence) - (1 - right) * np.log((1 - confidence) / (V - 1))


def best_margin(smoothing):
    """The margin of the right score at which p = q."""
    return np.log((1 - smoothing + smoothing / V) / (smoothing / V))


# %% tags=["hide-input"]
EPSILONS = ((0.0, BLUE, "-"), (0.1, VERMILION, "--"), (0.3, GREEN, "-."))
confidence = np.concatenate([np.logspace(-3, -0.4, 200), 1 - np.logspace(-0.22, -6, 300)])
margin = np.linspace(-2, 25, 300)  # of the right score over all others, which are equal
confidence_at = 1 / (1 + (V - 1) * np.exp(-margin))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 4.2), sharey=True)
for epsilon, colour, dash in EPSILONS:
    style = dict(color=colour, linestyle=dash)
    left.plot(confidence, loss_at(confidence, epsilon), label=f"ε = {epsilon:g}", **style)
    right.plot(margin, loss_at(confidence_at, epsilon), **style)
    if epsilon:
        best = 1 - epsilon + epsilon / V
        for axes, across in ((left, best), (right, best_margin(epsilon))):
            axes.plot(across, floor_of(V, epsilon), "D", color=colour, ms=7, mfc="white", mew=1.6)
        text = f"floor {floor_of(V, epsilon):.2f}"
        place = (best_margin(epsilon), floor_of(V, epsilon))
        right.annotate(text, place, (-16, -18), textcoords="offset points")
for axes in (left, right):
    axes.axhline(np.log(V), color=BLACK, lw=1, ls=":")
left.text(0.3, np.log(V) + 0.15, "log V: all words alike", fontsize=9.5)
left.set(xlabel="confidence, the probability of the right word", ylabel="loss (nats per token)")
right.set(xlabel="margin of the right word's score (nats)", ylim=(0, 10.5))
left.legend(loc=(0.32, 0.62))
plt.show()

# %% [markdown]
# On the left, all three curves fall steeply from the left edge, and differ at the right one. Without smoothing
# the loss goes on falling to 0. With it, the curve is lowest at the diamond, $p_t = q_t$, and *rises* behind it.
#
# A model sets scores, and so margins. Without smoothing, more margin is always better. With smoothing there
# is a best margin, where $e^{\text{margin}} = q_t / (\varepsilon / V)$.
#
# Is a model bad at its task if it may not be surer than 90 %? The order of its words need not change at all. The
# paper says: "This hurts perplexity, as the model learns to be more unsure, but improves accuracy and BLEU score"
# (section 5.4).
#
# ## 4 · The gradient
#
# ### Through the logarithm, in one go
#
# $\log p_v = z_v - \log \sum_w e^{z_w}$. Move one score $z_u$. The first term moves if $u = v$. The second is a
# logarithm of a sum in which one term moves:
#
# $$
# \frac{\partial}{\partial z_u} \log \sum_w e^{z_w} = \frac{1}{\sum_w e^{z_w}} \, e^{z_u} = p_u
# \qquad\Longrightarrow\qquad
# \frac{\partial \log p_v}{\partial z_u} = [u = v] - p_u .
# $$
#
# The second part does not depend on $v$: any score that rises pushes all log-probabilities down alike.
# Now the loss, $-\sum_v q_v \log p_v$:
#
# $$
# dz_u = -\sum_v q_v \big( [u = v] - p_u \big) = -q_u + p_u \sum_v q_v = p_u - q_u .
# $$
#
# $$
# \boxed{ \; dz = p - q \; }
# $$
#
# Of $q$ we needed only $\sum_v q_v = 1$. The gradient is what the model says minus what it should say, and it is
# zero exactly at the floor. Both sum to 1, so **the gradient of a row sums to 0**, as it must: a constant added to
# all scores changes nothing. An example: six words, "dog" is right, and the model prefers "cat".

# %%
WORDS = ["the", "a", "dog", "cat", "sleeps", "."]
scores = np.array([0.2, -0.4, 1.9, 2.4, -1.0, -2.0])
said, _ = softmax(scores)
wanted = np.full(6, 0.1 / 6)
wanted[2] += 0.9  # the right word is "dog"
_, row_cache = cross_entropy(scores[None], np.array([2]), smoothing=0.1)
pull = cross_entropy_backward(1.0, row_cache)[0]
assert np.allclose(pull, said - wanted)
print(f"the gradient of the row sums to {pull.sum():+.0e}")

# %% tags=["hide-input"]
figure, (above, below) = plt.subplots(2, 1, figsize=(7, 4.4), sharex=True, height_ratios=[1.2, 1])
place = np.arange(6)
for axes in (above, below):
    axes.set_axisbelow(True)
above.bar(place - 0.2, said, 0.38, color=BLUE, label="$p$, what the model says")
above.bar(
    place + 0.2, wanted, 0.38, color="white", edgecolor=BLACK, hatch="//", label="$q$, the target"
)
above.set(ylabel="probability", ylim=(0, 1))
above.legend(loc="upper right")
below.bar(place, -pull, 0.5, color=np.where(pull < 0, GREEN, VERMILION))
for across, height in zip(place, -pull, strict=True):
    aside = 3 if height >= 0 else -12
    below.annotate(
        f"{height:+.2f}",
        (across, height),
        (0, aside),
        textcoords="offset points",
        ha="center",
        fontsize=9,
    )
below.axhline(0, color=BLACK, lw=0.8)
below.set(ylabel="$q - p$, a step\nof the score", ylim=(-0.75, 0.85), xticks=place)
below.set_xticklabels(WORDS)
plt.show()

# %% [markdown]
# A step *against* the gradient, $q - p$, raises the right word by as much as all others lose together. Each of those
# moves by what it has too much or too little: "cat" falls the most, and ".", which has less than $\varepsilon / V$,
# even rises.
#
# ### Step by step, and why not
#
# The chain rule also gets there in two steps: first the loss by the probabilities, $dp_v = -q_v / p_v$, then
# through the softmax. From $\partial \log p_v / \partial z_u = [u = v] - p_u$ and
# $\partial p_v = p_v \, \partial \log p_v$:
#
# $$
# J_{vu} = \frac{\partial p_v}{\partial z_u} = p_v \big( [u = v] - p_u \big)
# \qquad\text{or}\qquad
# J = \text{diag}(p) - p \, p^\top ,
# $$
#
# $$
# dz_u = \sum_v dp_v \, p_v \big( [u = v] - p_u \big) = p_u \Big( dp_u - \sum_v dp_v \, p_v \Big) .
# $$
#
# Attention needs this, because it uses the weights and not their logarithm. Put $dp_v = -q_v / p_v$ into it:
# $dz_u = p_u \big( -q_u / p_u + \sum_v q_v \big) = p_u - q_u$. On paper that is the same. In float32, with a
# model that is sure and wrong, it is not:

# %%
print("margin   step by step    p − q")
with np.errstate(divide="ignore", invalid="ignore"):
    for margin_against in (10, 80, 120):
        z = np.array([[0.0, float(margin_against)]], dtype=np.float32)
        p_row, softmax_cache = softmax(z)
        dp = -np.array([[1, 0]], dtype=np.float32) / p_row
        step_by_step = softmax_backward(dp, softmax_cache)[0, 0]
        _, row_cache = cross_entropy(z, np.array([0]), pad_id=-1)
        fused = cross_entropy_backward(1.0, row_cache)[0, 0]
        print(f"{margin_against:6} {step_by_step:14.4f} {fused:8.4f}")
assert np.isnan(step_by_step)
assert fused == -1

# %% [markdown]
# $p$ is rounded to 0, $1 / p$ is infinite, and infinity times zero is NaN. After one such token in one batch,
# every parameter of the model is NaN. The factors $p$ and $1/p$ cancel on paper; they must not meet in the
# program. This is why softmax and loss are *one* function.
#
# **The Jacobian is never built**, neither here nor in attention. It has $V^2$ entries for each row:

# %%
tokens, V = 4096, 8000
print(
    f"Jacobians of a batch of {tokens} tokens, V = {V}: {tokens * V**2 * 4 / 1e12:.1f} TB in float32"
)
print(f"p − q of the same batch:                  {tokens * V * 4 / 1e9:.2f} GB")

# %% [markdown]
# ## 5 · The mean over real tokens
#
# A batch is padded, and what the model says at padding does not matter. The loss is the mean over the $N$
# targets that are not padding, so the gradient is
#
# $$
# dz = \frac{p - q}{N} \text{ at each of them, and } 0 \text{ at padding.}
# $$
#
# If we divide by *all* positions, more padding makes the loss look better:

# %%
host_logits, host_targets = to_host(logits), to_host(targets)
padded_logits = np.concatenate([host_logits, rng.standard_normal((2, 12, 7))], axis=1)
padded_targets = np.concatenate([host_targets, np.zeros((2, 12), int)], axis=1)
(same, _), padded_cache = cross_entropy(padded_logits, padded_targets, smoothing=0.1)
real = padded_targets != 0
print(f"loss without and with more padding: {float(loss):.6f}, {same:.6f}")
print(f"if all positions counted:           {same * real.sum() / real.size:.6f}")
assert np.isclose(float(loss), same)
assert not cross_entropy_backward(1.0, padded_cache)[~real].any()

# %% [markdown]
# If a batch is worked on in parts, all parts must use the same $N$: `num_tokens` of the function below is the count
# of the whole batch. Then losses and gradients of the parts add up. A mean of the parts' means would give a token
# of a short part more weight than one of a long part:

# %%
whole = float(loss)
parts = [cross_entropy(host_logits[i], host_targets[i], 0.1, num_tokens=6)[0][0] for i in (0, 1)]
means = [cross_entropy(host_logits[i], host_targets[i], 0.1)[0][0] for i in (0, 1)]
print(f"whole {whole:.6f}, sum of parts {sum(parts):.6f}, mean of means {np.mean(means):.6f}")
assert np.isclose(whole, sum(parts))

# %% [markdown]
# ## 6 · Now write them
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `softmax(x, mask=None)` | (..., $S$), booleans that broadcast to it | weights (..., $S$), `cache` |
# | `softmax_backward(dweights, cache)` | (..., $S$) | $dx$ (..., $S$) |
# | `cross_entropy(logits, targets, smoothing=0.0, pad_id=0, num_tokens=None)` | (..., $V$), (...) | (loss, NLL), `cache` |
# | `cross_entropy_backward(dloss, cache)` | a number | $dz$ (..., $V$) |
#
# In attention a mask says which positions are allowed ([lesson 08](08_attention.ipynb)). The sum runs over these; the
# others have the score $-\infty$, and so the weight $e^{-\infty} = 0$. Where nothing is allowed, all weights are 0, not
# NaN: think of $0 / 0$ and of $-\infty - (-\infty)$.


# %%
def facts(softmax, softmax_backward):
    z, dp = np.random.default_rng(4).standard_normal((2, 3, 6))
    p, cache = softmax(z)
    yield "scores of 9000 are no trouble", np.allclose(softmax(z + 9000)[0], p, rtol=1e-6)
    mask = np.array([[True] * 6, [True, False] * 3, [False] * 6])
    p, cache = softmax(z, mask)
    yield "what is left shares 1, nothing shares 0", np.allclose(p.sum(axis=-1), [1, 1, 0])
    dz = softmax_backward(dp, cache)
    yield "a row of gradients sums to 0", np.allclose(dz.sum(axis=-1), 0)


try_yours("softmax", facts)


# %%
def facts(cross_entropy, cross_entropy_backward):
    z, t = np.full((3, 7), 9000.0), np.array([1, 2, 0])  # 0: padding
    (loss, nll), cache = cross_entropy(z, t, 0.1)
    dz = cross_entropy_backward(1.0, cache)
    yield "all scores alike: loss and NLL are log V", np.allclose([loss, nll], np.log(7))
    yield "padding has no gradient", not dz[2].any()
    yield (
        "the right words are pulled by (q − p) / 2",
        np.allclose(dz[[0, 1], [1, 2]], (1 / 7 - q.max()) / 2),
    )
    yield "2 dloss is twice the gradient", np.allclose(cross_entropy_backward(2.0, cache), 2 * dz)
    (least, nll), _ = cross_entropy(np.log(q)[None], np.array([4]), 0.1)
    yield "where p = q, the loss is the floor", np.isclose(least, floor_of(7, 0.1))
    yield "the NLL is less", 0.08 < nll < 0.1


try_yours("cross_entropy", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right:

# %%
show("softmax")

# %%
show("cross_entropy")

# %% [markdown]
# The proof: measured slopes must agree with both backwards, with smoothing and padding:


# %%
def smoothed(logits, targets):
    (loss, _), cache = cross_entropy(logits, targets, smoothing=0.1)
    return loss, cache


for report in (
    check_pair(softmax, softmax_backward, (host_logits,)),
    check_pair(smoothed, cross_entropy_backward, (host_logits, host_targets)),
):
    assert report.right
    print(report)

# %% [markdown]
# PyTorch agrees, to six digits and more:

# %%
if find_spec("torch"):
    import torch

    z = torch.tensor(host_logits, requires_grad=True)
    theirs = torch.nn.functional.cross_entropy(
        z.flatten(0, 1), torch.tensor(host_targets.ravel()), ignore_index=0, label_smoothing=0.1
    )
    theirs.backward()
    for name, mine, its in (("loss", loss, theirs.detach()), ("dz", dlogits, z.grad)):
        print(f"{name:4} differs by at most {abs(to_host(mine) - its.numpy()).max():.0e}")
        assert np.allclose(to_host(mine), its, atol=1e-6)

# %% [markdown]
# ### Three slips
#
# A gradient for the sum where the loss is a mean; the smoothing forgotten on the way back; and a gradient at
# padding that is not zero:


# %%
def of_the_sum(dloss, cache):
    return cross_entropy_backward(dloss, cache) * (cache[2] > 0).sum()  # the 6 real tokens


def without_smoothing(dloss, cache):
    log_p, t, share, _, shape = cache
    return cross_entropy_backward(dloss, (log_p, t, share, 0.0, shape))


def with_padding(dloss, cache):
    log_p, t, _, smoothing, shape = cache
    return cross_entropy_backward(dloss, (log_p, t, np.full(len(t), 1 / 6), smoothing, shape))


for backward in (of_the_sum, without_smoothing, with_padding):
    report = check_pair(smoothed, backward, (host_logits, host_targets))
    assert not report.right
    print(f"{backward.__name__}\n{report}")

# %% [markdown]
# The first is hard to notice. Adam does not care about the size of gradients. But clipping does, and is wrong by a
# factor, another one in each batch.
#
# ## 7 · What smoothing does to training
#
# Take one row of scores, one right word, and steps of size 1 against the gradient. How does the margin
# grow? Without smoothing the gradient of the right score is $p_t - 1$, which gets small but never zero.
# When $p_t$ is nearly 1, $1 - p_t \approx (V - 1) e^{-m}$ for a margin $m$. A step adds $1 - p_t$ to the right
# score and takes $(1 - p_t) / (V - 1)$ from each other one, so the margin grows by
#
# $$
# \frac{dm}{d\,\text{step}} \approx (1 - p_t) \Big( 1 + \frac{1}{V - 1} \Big) \approx V e^{-m}
# \qquad\Longrightarrow\qquad
# e^{m} \approx V \cdot \text{steps}, \qquad m \approx \log V + \log(\text{steps}) .
# $$
#
# (Write the first as $e^m \, dm = V \, d\,\text{step}$ and integrate both sides.) Now the steps themselves, for three
# $\varepsilon$:

# %%
V, STEPS = 100, 100_000
curves = {}
for epsilon in (0.0, 0.1, 0.3):
    # All wrong words are alike, so two numbers describe the row: the right score and the others'.
    right_score, other_score, right_q = 0.0, 0.0, 1 - epsilon + epsilon / V
    margins = np.empty(STEPS)
    for step in range(STEPS):
        right_p = 1 / (1 + (V - 1) * np.exp(other_score - right_score))
        right_score += right_q - right_p
        other_score -= (right_q - right_p) / (V - 1)  # a row's gradient sums to 0
        margins[step] = right_score - other_score
    curves[epsilon] = margins

assert np.allclose([curves[0.1][-1], curves[0.3][-1]], [best_margin(0.1), best_margin(0.3)])

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4))
steps = np.arange(1, STEPS + 1)
shown = np.unique(np.geomspace(1, STEPS, 200).astype(int)) - 1
for epsilon, colour, dash in EPSILONS:
    axes.semilogx(
        steps[shown], curves[epsilon][shown], color=colour, linestyle=dash, label=f"ε = {epsilon:g}"
    )
    if epsilon:
        best = best_margin(epsilon)
        axes.axhline(best, color=BLACK, lw=0.9)
        axes.text(STEPS, best + 0.2, f"best margin for ε = {epsilon:g}", ha="right", fontsize=9)
late = steps[shown] > 30
axes.semilogx(steps[shown][late], np.log(V * steps[shown][late]), "-", color=BLACK, lw=0.9)
axes.text(2e4, 15.4, "log V + log(steps)", ha="right", fontsize=9)
axes.set(xlabel="steps", ylabel="margin of the right score (nats)")
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# Without smoothing (blue) the margin follows the formula and never stops growing. With it, each row of scores
# comes to rest.
#
# ## 8 · Exercises
#
# Fill in `answers/ex04.py`, your copy of [lessons/exercises/ex04.py](exercises/ex04.py), and run
# `minitransformer check ex04`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex04.py](solutions/ex04.py).
#
# 1. **`perplexity_at_the_floor`** (10 min). A model has reached the floor of its smoothed loss. What
#    perplexity does it report, and what happens to that number if it becomes surer?
# 2. **`log_softmax`** (25 min). The logarithm of the softmax as a layer, with a backward for any $dy$, and without
#    an overflow anywhere.
# 3. **`log_sum_exp_in_chunks`** (25 min). The scores come in portions, each is seen once, and nobody knows the
#    maximum beforehand. Fast attention on GPUs rests on this trick.
# 4. **`distillation`** (45 min). A small model learns from a large one: the target is itself a softmax. The gradient
#    for the small model you can guess; the one for the large model you will have to derive.

# %%
print(check_exercise("ex04", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | softmax | $p_v = e^{z_v - m} / \sum_u e^{z_u - m}$ with $m = \max z$; only differences of scores count |
# | its backward | $dz = p \, \big( dp - \sum_v dp_v \, p_v \big)$, no Jacobian |
# | log-probability | $\log p_v = (z_v - m) - \log \sum_u e^{z_u - m}$, never $\log$ of a rounded $p$ |
# | target | $q_v = (1 - \varepsilon) [v = t] + \varepsilon / V$ |
# | loss | $-\sum_v q_v \log p_v = H(q) + KL(q \Vert p) \ge H(q)$, mean over the $N$ real tokens |
# | gradient | $dz = (p - q) / N$ at real tokens, 0 at padding; a row sums to 0 |
# | numbers to know | $\log V$ before training; the floor $H(q)$; perplexity $e^{\text{NLL}}$ |
# | traps | $\log(\text{softmax})$ in two steps; means over padding; means of means; a floor taken for a failure |
#
# **Your own Transformer.** `softmax` and `cross_entropy`, with their backwards: `minitransformer check own`.
#
# **Next:** where the $V$ words come from, and how an id becomes a row of numbers:
# [lesson 05](05_tokens_and_embeddings.ipynb).
