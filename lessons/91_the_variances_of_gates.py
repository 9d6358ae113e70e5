# %% [markdown]
# # 91 · The variances of gates
#
# **You will** find out why a gated linear unit is linear on one side, and compute the variance with which the weights
# before a gate are drawn.
#
# | | |
# |---|---|
# | In the paper | not there |
# | In the package | `minitransformer/layers/gated_linear_unit.py`, `models/convolutional_translator.py` |
# | You need | convolution ([lesson 20](20_convolution.ipynb)); variance |
# | Time | half an hour to read, an hour for the exercises |

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
    PURPLE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.gradcheck import check_pair
from minitransformer.layers.convolution import convolution, convolution_backward
from minitransformer.layers.gated_linear_unit import (
    gated_linear_unit,
    gated_linear_unit_backward,
)
from minitransformer.layers.sigmoid import sigmoid, sigmoid_backward
from minitransformer.models.convolutional_translator import (
    ConvolutionalTranslatorConfig,
    GatedConvolution,
)

use_style()
device = select_device("cpu")  # "cuda" runs the unit of section 1 on a GPU
rng = np.random.default_rng(91)

# %% [markdown]
# ## 1 · Two gates
#
# A convolution is linear. Behind it stands something that is not: in the translator of Gehring and others (2017) a
# **gated linear unit**, GLU (Dauphin and others, 2017). The convolution makes $2 D$ features. One half, $a$, is the
# signal, the other half, $b$, says how much of it goes through:
#
# $$
# \text{GLU:} \quad y = a \, \sigma(b)
# \qquad\qquad
# \text{tanh gate:} \quad y = \tanh(a) \, \sigma(b) .
# $$
#
# The second is the older gate, of the LSTM and of WaveNet (van den Oord and others, 2016). In a product each
# factor gets $dy$ times the other one. With $\sigma' = \sigma (1 - \sigma)$ and $\tanh' = 1 - \tanh^2$:
#
# $$
# \begin{aligned}
# \text{GLU:} && da &= dy \, \sigma(b) & db &= dy \, a \, \sigma(b) (1 - \sigma(b)) \\
# \text{tanh gate:} && da &= dy \, (1 - \tanh^2 a) \, \sigma(b) & db &= dy \tanh(a) \, \sigma(b) (1 - \sigma(b))
# \end{aligned}
# $$
#
# Look at $da$. Where the gate is open, $\sigma(b) \approx 1$, the GLU hands the gradient on as it is. The
# tanh gate also multiplies by $1 - \tanh^2 a$, which is at most 1 and nearly 0 where $\lvert a \rvert$ is
# large: an open gate is not enough.

# %%
source_of(gated_linear_unit, gated_linear_unit_backward)


# %%
def tanh_gate(x):
    """tanh(a) · σ(b), with a and b the two halves of x (..., 2 D)."""
    a, b = np.split(x, 2, axis=-1)  # (..., D)
    tanh_a, (gate, gate_cache) = np.tanh(a), sigmoid(b)
    return tanh_a * gate, (tanh_a, gate, gate_cache)


def tanh_gate_backward(dy, cache):
    tanh_a, gate, gate_cache = cache
    da = dy * gate * (1 - tanh_a**2)
    db = sigmoid_backward(dy * tanh_a, gate_cache)
    return np.concatenate([da, db], axis=-1)  # (..., 2 D)


halves = rng.standard_normal((2, 5, 8))
for pair in ((gated_linear_unit, gated_linear_unit_backward), (tanh_gate, tanh_gate_backward)):
    assert check_pair(*pair, (halves,)).right

x = device.asarray(halves)
y, cache = gated_linear_unit(x)
shape_table(
    {"B": 2, "T": 5, "D": 4, "2D": 8},
    x=(x, "B T 2D", "a in front of b, as the convolution made them"),
    y=(y, "B T D", "a · σ(b)"),
)

# %% [markdown]
# PyTorch does the same; to six digits and more:

# %%
if find_spec("torch"):
    import torch

    theirs = torch.tensor(halves, requires_grad=True)
    their_y = torch.nn.functional.glu(theirs)
    their_y.backward(their_y.detach())
    dx = gated_linear_unit_backward(y, cache)
    for name, mine, its in (("y", y, their_y.detach()), ("dx", dx, theirs.grad)):
        print(f"{name:2} differs by at most {abs(to_host(mine) - its.numpy()).max():.0e}")
        assert np.allclose(to_host(mine), its, atol=1e-6)

# %% [markdown]
# ## 2 · How to draw the weights
#
# A gate makes numbers smaller, and the weights have to make up for it. Let $x$ have mean 0 and variance $v$, and
# the weights of a kernel of width $k$ be independent, with mean 0 and variance $g / (k D)$. Then each number of $a$
# and $b$ is a sum of $k D$ products, of weights of its own. Its mean is 0 and its variance $k D \cdot v \cdot g / (k D)
# = g v$. For a large $k D$ all are nearly Gaussian and independent of each other, and
#
# $$
# \text{Var}[y] = \mathbb E[a^2] \; \mathbb E[\sigma(b)^2] = g v \; \mathbb E[\sigma(b)^2] .
# $$
#
# To keep $v = 1$ we need $g \, \mathbb E[\sigma(b)^2] = 1$ for a $b$ of variance $g$. A half-open gate, $b = 0$,
# has $\sigma^2 = \frac14$ and would want $g = 4$, which is what Gehring and others take. But where $b$ has the
# variance 4, $\sigma^2$ grows more at open gates than it falls at shut ones. We compute the mean. (`hermegauss`
# gives points and weights of an integral over a Gaussian.)

# %%
points, probabilities = np.polynomial.hermite_e.hermegauss(60)
probabilities = probabilities / probabilities.sum()


def mean_square_gate(variance):
    """E[σ(b)²] for a Gaussian b with mean 0."""
    gate, _ = sigmoid(math.sqrt(variance) * points)
    return (gate**2 * probabilities).sum()


for g in (1, 2, 3, 4):
    squared = mean_square_gate(g)
    print(f"g = {g}: E[σ(b)²] = {squared:.3f}, so the variance is multiplied by {g * squared:.2f}")
assert abs(3 * mean_square_gate(3) - 1) < 0.01

# %% [markdown]
# $g = 3$ is right to one per cent. Dropout keeps a number with probability $1 - p$ and divides it by $1 - p$. So
# it multiplies the variance by $(1 - p) / (1 - p)^2 = 1 / (1 - p)$. Hence the variance $3 (1 - p) / (k D)$ of
# the package:

# %%
source_of(GatedConvolution)

# %% [markdown]
# Ten such layers with $p = 0.2$; the same where dropout was forgotten in the draw; and ten without dropout
# whose weights are left as a `Convolution1d` has them, $g = \frac23$.

# %%
LAYERS, SEEDS, FEATURES = 10, 8, 128


def variances(p, change, seed):
    """Of h after 0 to LAYERS gated convolutions, whose weights are multiplied by ``change``."""
    drawn = np.random.default_rng(seed)
    config = ConvolutionalTranslatorConfig(8, 8, FEATURES, dropout=p)
    h = drawn.standard_normal((2, 60, FEATURES))
    found = [h.var()]
    for _ in range(LAYERS):
        layer = GatedConvolution(config, drawn, causal=False)
        layer.convolution.weight.data *= change
        h, _ = layer.forward(h, rng=drawn)
        found.append(h.var())
    return found


P = 0.2
DRAWS = {  # p, the factor of the weights, and g with dropout's share in it
    "the package's": (P, 1.0, 3),
    "dropout forgotten": (P, 1 / math.sqrt(1 - P), 3 / (1 - P)),
    "as without a gate": (0.0, 1 / math.sqrt(4.5), 3 / 4.5),
}
measured = {
    name: np.array([variances(p, change, seed) for seed in range(SEEDS)])
    for name, (p, change, _) in DRAWS.items()
}


def expected_variances(g):
    found = [1.0]
    for _ in range(LAYERS):
        found.append(g * found[-1] * mean_square_gate(g * found[-1]))
    return found


for name, found in measured.items():
    print(f"{name:<28} variance after ten layers: {np.median(found[:, -1]):.1e}")
assert 0.4 < np.median(measured["the package's"][:, -1]) < 2.5
assert np.median(measured["as without a gate"][:, -1]) < 1e-5

# %% [markdown]
# ## 3 · Gradients through ten gates
#
# Now back, through ten layers of either kind:


# %%
def gradient_norms(gate, gate_backward, g, seed, k=3):
    """|dx| after going back through 0 to LAYERS layers, relative to |dy| at the top."""
    drawn = np.random.default_rng(seed)
    x, caches = drawn.standard_normal((2, 60, FEATURES)), []
    for _ in range(LAYERS):
        weight = drawn.standard_normal((k, FEATURES, 2 * FEATURES)) * math.sqrt(g / (k * FEATURES))
        x, convolution_cache = convolution(x, weight)
        x, gate_cache = gate(x)
        caches.append((convolution_cache, gate_cache))
    dx = drawn.standard_normal(x.shape)
    norms = [np.linalg.norm(dx)]
    for convolution_cache, gate_cache in reversed(caches):
        dx, _, _ = convolution_backward(gate_backward(dx, gate_cache), convolution_cache)
        norms.append(np.linalg.norm(dx))
    return np.array(norms) / norms[0]


GATES = {
    "GLU, g = 3": (gated_linear_unit, gated_linear_unit_backward, 3),
    "tanh gate, g = 3": (tanh_gate, tanh_gate_backward, 3),
    "tanh gate, g = 6": (tanh_gate, tanh_gate_backward, 6),
}
norms = {
    name: np.array([gradient_norms(*gate, seed) for seed in range(SEEDS)])
    for name, gate in GATES.items()
}
for name, found in norms.items():
    print(f"{name:<17} gradient after ten layers: {np.median(found[:, -1]):.2f}")
assert (norms["tanh gate, g = 3"][:, -1] < 0.5).all()
assert (norms["GLU, g = 3"][:, -1] > 1).all()

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(10, 4.2))
levels = range(LAYERS + 1)
axes = panels[0]
for (name, found), colour, marker in zip(
    measured.items(), (BLUE, PURPLE, VERMILION), "o^v", strict=True
):
    axes.semilogy(levels, found.T, marker, ms=3.5, color=colour, alpha=0.5, label=[name, *[""] * 7])
    axes.semilogy(levels, expected_variances(DRAWS[name][2]), "-", color=BLACK, lw=1)
axes.semilogy([], [], "-", color=BLACK, lw=1, label="theory")
axes.set(xlabel="layers", ylabel="variance of $h$", title="forward", ylim=(3e-9, 1e5))
axes.legend(loc="lower left", fontsize=9)
axes = panels[1]
styles = zip(norms.items(), (BLUE, VERMILION, PURPLE), ("o-", "v--", "^:"), strict=True)
for (name, found), colour, style in styles:
    axes.semilogy(levels, found.T, style, ms=3.5, lw=0.6, color=colour, label=[name, *[""] * 7])
axes.set(xlabel="layers gone back through", ylabel="$|dx|$, relative to the top", title="backward")
axes.legend(loc="lower left", fontsize=9)
plt.show()

# %% [markdown]
# Each marker is one of eight draws. Forward, the package's draw keeps the variance near 1. With dropout
# forgotten it explodes, and without a gate in mind next to nothing arrives.
#
# Backward, with $g = 3$ for both, the tanh gate has lost most of the gradient after ten layers. That of the GLU
# grows. With larger weights, $g = 6$, the tanh gate holds its gradient, too, but for the lowest layers, at the right:
# there $a$ still has the variance 6, and $1 - \tanh^2 a$ is often nearly 0.
#
# In a very deep stack no draw would do, as the variance 1 is not stable: where $b$ is larger the gates are wider
# open, and the variance grows more. So the translator adds, $x \leftarrow (x + h) \sqrt{\frac12}$. The weights of $h$
# have mean 0, so $\mathbb E[x h] = 0$ at the start and the variances add up, to 2. Times $\sqrt{\frac12}$ that is 1.
#
# ## 4 · Exercises
#
# Fill in `answers/ex91.py`, your copy of [lessons/exercises/ex91.py](exercises/ex91.py), or copy its functions into
# cells here, and run the cell below or `minitransformer check ex91`. Solutions:
# [lessons/solutions/ex91.py](solutions/ex91.py).
#
# 1. **`gain_of_gate`** (25 min). The $g$ that keeps the variance behind any gate, not σ alone.
# 2. **`highway_gate`** (25 min). A gate that chooses between something new and what was there before.

# %%
print(check_exercise("ex91", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | gate | $y = a \, \sigma(b)$, $da = dy \, \sigma(b)$, $db = dy \, a \, \sigma (1 - \sigma)$ |
# | weights | variance $3 (1 - p) / (k D)$, as $\mathbb E[\sigma(b)^2] \approx \frac13$ |
#
# **Your own Transformer.** It has no gates: `minitransformer check own` asks for nothing new here.
#
# **Next:** back to [lesson 20](20_convolution.ipynb), whose section 7 trains such gates.
