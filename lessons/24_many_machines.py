# %% [markdown]
# # 24 · Many machines
#
# **You will** cut a batch among several processes and get the gradient of the whole; meet a layer that forbids it;
# derive all-reduce, the sum that everybody gets, and write it as a ring that counts its bytes; see why the order of a
# sum changes its last bits; and tell from two numbers of a network what several machines can gain.
#
# | | |
# |---|---|
# | In the paper | section 5.2: one machine with eight GPUs |
# | In the package | `minitransformer/training/step.py`; `minitransformer/parallel/`: `alone.py`, `mpi.py`, `sums.py` |
# | You need | the chain rule; mean and variance. Nothing here needs a second machine |
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

from minitransformer import Adam, Transformer, TransformerConfig, accelerated, select_device
from minitransformer.core.backend import to_host
from minitransformer.core.twins import Twin, standing_in
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.data.text.batches import Batch, encode_pairs, make_batches
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import PAD, Vocabulary
from minitransformer.layers.layer_norm import layer_norm
from minitransformer.layers.relu import relu
from minitransformer.layers.silu import silu, silu_backward
from minitransformer.parallel.alone import add_up
from minitransformer.parallel.sums import MpiSums
from minitransformer.training.step import step_seed

use_style()
device = select_device("cpu")  # "cuda" computes the gradients on a GPU
rng = np.random.default_rng(24)

# %% [markdown]
# ## 1 · The gradient of a batch is a sum
#
# A training takes a day, and there are four machines. What should each of them do, and what must they tell each other?
#
# A program that runs by itself, with memory of its own, is a **process**. It may run on the same machine as another
# one, or far away. Let each process have a copy of all parameters. Cut each batch into parts, the **shards**, and give
# each process one. Each process computes the gradient of its shard. Then all gradients are added, and every process
# makes the same update. This is called **data parallelism**.
#
# It works if the gradients of the shards add up to the gradient of the batch. Do they? Let $\ell_i$ be the loss of
# label $i$, and $N$ the number of labels in the batch, without padding. The loss of the batch is
#
# $$
# L = \frac1N \sum_{i=1}^{N} \ell_i .
# $$
#
# Each label is in exactly one of the shards $S_1, \dots, S_K$. So we may sort the terms by shard:
#
# $$
# L = \sum_{k=1}^{K} L_k, \qquad L_k = \frac1N \sum_{i \in S_k} \ell_i .
# $$
#
# The derivative of a sum is the sum of the derivatives. For all parameters $\theta$
#
# $$
# \boxed{ \; \frac{\partial L}{\partial \theta} = \sum_{k=1}^{K} \frac{\partial L_k}{\partial \theta} \; }
# $$
#
# Two things went into this. **Each shard divides by $N$, the labels of the whole batch.** And **$\ell_i$ depends on
# nothing outside its shard**: section 2 is about that.
#
# We take 24 pairs of the toy corpus, short ones first, and a small Transformer in float64. `split` is what the package
# cuts with. It deals the pairs out like cards, so that all shards have about the same work. `in_two` cuts between short
# and long pairs.

# %%
pairs = toy_corpus()["train"][:3000]
vocabulary = Vocabulary.train([text for pair in pairs for text in pair], 600)
encoded, _ = encode_pairs(vocabulary, pairs, 64)
config = TransformerConfig.preset(
    "toy",
    len(vocabulary),
    d_model=32,
    num_heads=4,
    d_ff=64,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0.0,
    max_length=64,
)
model = Transformer(config, seed=24, device=device, dtype=np.float64)
(whole,) = make_batches(encoded[:24], 10**6)  # in the order of their lengths


def gradient_of(model, shard, num_tokens):
    """The gradient of a shard whose loss is divided by ``num_tokens``, on the host: (n,)."""
    model.zero_grad()
    _, cache = model.loss(shard, num_tokens=num_tokens)
    model.loss_backward(1.0, cache)
    return to_host(model.flat.grad).copy()


def in_two(batch, place):
    rows = batch.source, batch.target, batch.labels
    return [Batch(*(x[part] for x in rows)) for part in (slice(place), slice(place, None))]


def labels_of(shard):
    return int((shard.labels != PAD).sum())


cuts = {f"dealt out to {K}": whole.split(K) for K in (2, 3, 8, 24)}
cuts |= {f"{k} short, {24 - k} long": in_two(whole, k) for k in (12, 20)}
N = labels_of(whole)
right = gradient_of(model, whole, N)  # (n,)

shape_table(
    {"B": 24, "S": whole.source.shape[1], "T": whole.labels.shape[1], "n": right.size},
    source=(whole.source, "B S", "the whole batch, padded to its longest pair"),
    labels=(whole.labels, "B T", f"{N} of them are not padding"),
    right=(right, "n", "the gradient of the batch, all parameters in one row"),
    part=(gradient_of(model, cuts["dealt out to 8"][0], N), "n", "that of a shard: as long"),
)

# %% [markdown]
# For each cut we add up the gradients. Beside it stands the classic mistake: each shard divides by its *own* labels,
# and the gradients are averaged.


# %%
def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


off = {}
print(f"{'':21} labels of the smallest  ÷ N,     ÷ own,")
print(f"{'':21} and largest shard       summed   averaged")
for name, shards in cuts.items():
    counts = [labels_of(shard) for shard in shards]
    summed = sum(gradient_of(model, shard, N) for shard in shards)
    averaged = np.mean([gradient_of(model, shard, None) for shard in shards], axis=0)
    off[name] = relative(summed, right), relative(averaged, right)
    a, b = off[name]
    print(f"{name:21} {min(counts):8}{max(counts):5}            {a:.0e}   {b:6.1%}")
assert max(summed for summed, _ in off.values()) < 1e-12
assert off["20 short, 4 long"][1] > 0.05

# %% [markdown]
# For every cut the sums are right to rounding, even for 24 shards of one pair each.
#
# The averages are wrong wherever shards differ in labels. Let shard $k$ have $N_k$ of them: then each weighs
# $1 / (K N_k)$ in place of $1 / N$. With two shards that are dealt out, the error is a few per cent, in every step. The
# cure costs nothing: each process has read the whole batch, so it knows $N$ before the step begins.
#
# ## 2 · What forbids it
#
# The sum over shards needs losses that do not look at other shards. Batch norm (Ioffe and Szegedy 2015) does look. It
# brings each *feature* to mean 0 and variance 1, over all rows of the batch. Layer norm has the same formula along the
# other axis, over the features of one row:


# %%
def over_the_batch(x):
    """Batch norm, without gain and shift: x (N, D), each column by its own mean and variance."""
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)


def over_each_row(x):
    """Layer norm, without gain and shift: x (N, D), each row by its own mean and variance."""
    return layer_norm(x, np.ones(x.shape[1]), np.zeros(x.shape[1]))[0]


rows = rng.normal(1, 2, (16, 8))  # (N, D)
assert np.allclose(over_the_batch(rows), over_each_row(rows.T).T)  # the other axis

print("the first number of the first row, normalised in a batch of 16 and in shards of")
print("               16        8        4        2")
for name, normalise in (("batch norm", over_the_batch), ("layer norm", over_each_row)):
    print(f"{name:12}", *(f"{normalise(rows[:m])[0, 0]:8.3f}" for m in (16, 8, 4, 2)))
assert not np.allclose(over_the_batch(rows[:8]), over_the_batch(rows)[:8], atol=0.01)
assert np.allclose(over_each_row(rows[:8]), over_each_row(rows)[:8], atol=1e-12)

# %% [markdown]
# With batch norm, what becomes of a row depends on the other rows of its shard. With two rows, each number can only
# become about 1 or −1: no gradient is left. So the shards compute another model, with another gradient.
#
# There are two ways out. The processes can add up what the statistics are made of, before they normalise (the second
# exercise). Or one accepts the other model and keeps the size of a shard fixed. Goyal and others (2017) took 32 images
# for each GPU, whatever the number of GPUs.
#
# A Transformer has layer norm. So for us the sum is exact. What else would break it?
#
# | what | why | what to do |
# |---|---|---|
# | batch norm | statistics of the batch | share the statistics |
# | a loss that compares examples with each other | the other examples of the batch are part of $\ell_i$ | send their features around first |
# | a division by the shard's own labels | shards have different weights | divide by $N$ |
# | clipping the gradient of each shard | the norm of a sum is not the sum of the norms | add first, then clip |
# | random numbers | see below | draw them by shard |
#
# **Dropout** is a case of its own. Its masks look at no other example, so the sum stays right. But who draws them? If
# all processes begin with the same seed, all shards get the same mask. If each adds its number to the seed, the masks
# depend on how many processes there are. Then no run can be repeated with another number of machines.
#
# The number of shards belongs to the run, that of processes to the machines. So the package makes a generator for each
# shard of each step:

# %%
source_of(step_seed)

# %% [markdown]
# ## 3 · All-reduce
#
# Now each of $P$ processes has a gradient of $n$ numbers, and each needs the sum of all. This is called
# **all-reduce**. We simulate it. A process is an entry in a list, and what goes from one to another goes through a
# network that counts:


# %%
class Network:
    """Hands arrays from process to process, and counts their bytes."""

    def __init__(self, processes):
        self.sent = np.zeros((processes, processes), np.int64)  # from, to

    def send(self, p, q, x):
        """What process q receives when p sends x."""
        self.sent[p, q] += x.nbytes
        return x.copy()


def all_to_one(gradients, network):
    """All send to process 0, which adds, and sends the sum back; a list of P sums."""
    total = gradients[0].copy()
    for p in range(1, len(gradients)):
        total += network.send(p, 0, gradients[p])
    return [total, *(network.send(0, p, total) for p in range(1, len(gradients)))]


P = 8
gradients = [gradient_of(model, shard, N) for shard in whole.split(P)]
n = gradients[0].size
network = Network(P)
sums = all_to_one(gradients, network)
assert all(relative(total, right) < 1e-12 for total in sums)
assert network.sent[0].sum() == network.sent[:, 0].sum() == (P - 1) * n * 8  # 8 bytes each
print("MB sent by each process:    ", *(network.sent.sum(axis=1) / 1e6).round(2))
print("MB received by each process:", *(network.sent.sum(axis=0) / 1e6).round(2))

# %% [markdown]
# The sum is right, but process 0 is a bottleneck: $(P - 1)\, n$ numbers arrive there, and as many leave.
#
# ### How little can be sent?
#
# Look at one entry of the gradient. Each process has a number for it, and each message carries one number for it. Let
# the messages arrive one by one, until a first process knows the sum. By then each of the $P - 1$ others must have sent
# a message that has arrived, or its number would be missing. After that each of the $P - 1$ others must still receive
# one, for it does not know the sum yet. So an entry costs at least $2 (P - 1)$ messages, and all $n$ entries cost
# $2 (P - 1)\, n$ numbers. If the $P$ processes share this evenly, each sends
#
# $$
# \boxed{ \; 2\, n \, \frac{P - 1}{P} \; }
# $$
#
# numbers: less than $2n$, however many processes there are. All-to-one sends no more in all, but everything goes
# through one process.
#
# ### The ring
#
# Cut the gradient into $P$ **chunks** of $n / P$ numbers, and let all processes send at the same time. Process $p$
# always sends to $p + 1$, and the last one to the first: a ring. All numbers of processes and chunks are meant modulo
# $P$. There are two halves.
#
# 1. **Reduce-scatter.** In round $r = 0, 1, \dots, P - 2$ process $p$ sends chunk $p - r$. The receiver adds it to its
#    own, and sends that on in the next round.
# 2. **All-gather.** Now each process has one chunk that is complete. It sends it on, the receiver overwrites its own
#    chunk with it, and sends that on in the next round.
#
# Which chunk is complete after the first half? In its last round, $r = P - 2$, process $p$ receives what $p - 1$ sends:
# chunk $p - 1 - (P - 2) = p + 1 - P$, and that is chunk $p + 1$. It has come from process $p + 1$ through all others.
# So in round $r$ of the second half process $p$ sends chunk $p + 1 - r$.


# %%
def reduce_round(held, r, network):
    """One round of reduce-scatter; held[p][c] is chunk c of process p."""
    P = len(held)
    for p in range(P):  # one by one: in no round does a process send what arrives in it
        q, c = (p + 1) % P, (p - r) % P
        held[q][c] += network.send(p, q, held[p][c])


def gather_round(held, r, network):
    """One round of the all-gather."""
    P = len(held)
    for p in range(P):
        q, c = (p + 1) % P, (p + 1 - r) % P
        held[q][c][:] = network.send(p, q, held[p][c])


def around_the_ring(gradients, network, second_half=gather_round):
    """The sum of the gradients, for each process."""
    P = len(gradients)
    held = [np.array_split(gradient.copy(), P) for gradient in gradients]
    for a_round in (reduce_round, second_half):
        for r in range(P - 1):
            a_round(held, r, network)
    return [np.concatenate(chunks) for chunks in held]


network = Network(P)
sums = around_the_ring(gradients, network)
assert all(relative(total, right) < 1e-12 for total in sums)
assert (network.sent.sum(axis=1) == 2 * n * (P - 1) // P * 8).all()  # the least there is
assert (np.count_nonzero(network.sent, axis=1) == 1).all()  # to one neighbour
print("MB sent by each process:", *(network.sent.sum(axis=1) / 1e6).round(2))

# %% [markdown]
# Who holds what after each round? We take four processes, and the numbers 1, 10, 100 and 1000 in place of their
# gradients. The digits of a sum then show who is in it, and a 2 would show somebody who is in it twice. In the picture
# a row is a process, a column a chunk, and in each field stand the processes whose numbers are in it. A frame is around
# what has just arrived.

# %%
held = [np.array_split(np.full(4, 10**p), 4) for p in range(4)]
history = [np.reshape(held, (4, 4))]
for a_round in (reduce_round, gather_round):
    for r in range(3):
        a_round(held, r, Network(4))
        history.append(np.reshape(held, (4, 4)))
assert (history[-1] == 1111).all()

# %% tags=["hide-input"]
figure, panels = plt.subplots(2, 4, figsize=(10, 5.2))
places = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]
for step, (place, now) in enumerate(zip(places, history, strict=True)):
    axes = panels[place]
    members = [[[p for p in range(4) if x // 10**p % 10] for x in row] for row in now]
    shares = np.array([[len(who) for who in row] for row in members])
    axes.imshow(shares, cmap="Greys", vmin=0, vmax=5)
    for (p, c), share in np.ndenumerate(shares):
        ink = "white" if share > 3 else BLACK
        text = " ".join(map(str, members[p][c])) if share < 4 else "all"
        axes.text(c, p, text, ha="center", va="center", color=ink, fontsize=9)
        if step and now[p, c] != history[step - 1][p, c]:
            frame = dict(fill=False, edgecolor=VERMILION, lw=2.2, zorder=3)
            axes.add_patch(plt.Rectangle((c - 0.47, p - 0.47), 0.94, 0.94, **frame))
    half = "reduce-scatter" if step < 4 else "all-gather"
    axes.set_title(f"{half}, round {(step - 1) % 3}" if step else "at first", fontsize=10)
    axes.set_xticks(range(4))
    axes.set_yticks(range(4))
    axes.grid(False)
for axes in (panels[0, 0], panels[1, 1]):
    axes.set_ylabel("process")
for axes in panels[1, 1:]:
    axes.set_xlabel("chunk")
panels[1, 0].axis("off")
plt.show()

# %% [markdown]
# In each round every row has one frame: all four processes receive at the same time, and none is a bottleneck.
#
# ### A mistake that hides
#
# Suppose the second half begins with chunk $p$, and not with $p + 1$:


# %%
def one_chunk_off(held, r, network):
    P = len(held)
    for p in range(P):
        q, c = (p + 1) % P, (p - r) % P
        held[q][c][:] = network.send(p, q, held[p][c])


wrong = around_the_ring(gradients, Network(P), one_chunk_off)
print("all processes have the same result:", all((x == wrong[0]).all() for x in wrong))
print("it is the sum:                     ", relative(wrong[0], right) < 1e-12)
own = [np.array_split(gradient, P)[p] for p, gradient in enumerate(gradients)]
assert (wrong[0] == np.concatenate(own)).all()

# %% [markdown]
# All processes agree, so comparing their parameters finds nothing. But chunk $p$ of the result is that of process $p$
# alone: each parameter learns from one shard only. Training goes on, as section 4 shows: Adam hardly minds a gradient
# that is too small. **Compare with the sum that one process gets.**
#
# ### How long it takes
#
# A message of $m$ bytes takes about $\alpha + m / \beta$ seconds. $\alpha$ is the **latency**, the time until the first
# byte arrives. $\beta$ is the **bandwidth**, in bytes a second. Let the gradient have $b$ bytes.
#
# - **All to one**: process 0 has $2 (P - 1)$ messages, one after the other: $2 (P - 1) (\alpha + b / \beta)$.
# - **A tree**: half of the processes send to the other half, who add. Then half of these send, and so on. That makes
#   $\log_2 P$ rounds, and as many to send the sum back: $2 \log_2 P \, (\alpha + b / \beta)$.
# - **The ring**: $2 (P - 1)$ rounds with a chunk each: $2 (P - 1) \left( \alpha + \frac{b}{P \beta} \right)$.
#
# For a large gradient $b / \beta$ decides, and the ring wins: its factor $2 (P - 1) / P$ is below 2. For a small one
# $\alpha$ decides, and the tree wins: of the three it has the fewest rounds. Equate the two, and collect $b$:
#
# $$
# \frac{b}{\beta} \left( \log_2 P - \frac{P - 1}{P} \right) = \alpha \, (P - 1 - \log_2 P),
# \qquad
# b^\ast = \alpha \beta \; \frac{P - 1 - \log_2 P}{\log_2 P - (P - 1) / P} .
# $$
#
# With $\alpha$ = 50 µs and $\beta$ = 1.25 GB/s (10 Gbit/s; both are assumed, look up yours), for 64 processes:

# %%
ALPHA, BETA, MANY = 50e-6, 1.25e9, 64


def times(b, P):
    log = np.log2(P)
    return {
        "all to one": 2 * (P - 1) * (ALPHA + b / BETA),
        "tree": 2 * log * (ALPHA + b / BETA),
        "ring": 2 * (P - 1) * (ALPHA + b / (P * BETA)),
    }


crossing = ALPHA * BETA * (MANY - 1 - 6) / (6 - (MANY - 1) / MANY)
assert np.isclose(times(crossing, MANY)["tree"], times(crossing, MANY)["ring"])
print(f"tree and ring are equal at {crossing / 1e6:.2f} MB")
for name, b in (("a loss, 4 bytes", 4), ("a gradient of 30 MB", 30e6)):
    found = ", ".join(f"{way} {1000 * s:.4g}" for way, s in times(b, MANY).items())
    print(f"{name}, milliseconds: {found}")

# %% [markdown]
# So a library does well to choose by size. The last exercise has the tree's few rounds, and sends as little as the ring.
#
# ## 4 · The order of a sum
#
# The sums were right *to rounding*. In floating point a sum depends on its order:

# %%
a, b, c = np.float32([1e8, -1e8, 1])
print("(a + b) + c =", (a + b) + c, "    a + (b + c) =", a + (b + c))
assert (a + b) + c == 1
assert a + (b + c) == 0  # -1e8 + 1 is -1e8: float32 has about 7 digits

# %% [markdown]
# In the ring chunk $c$ starts at process $c$, so each chunk is added in another order. And a process with several
# shards adds those first. So the number of processes decides the last bits. Here are 8 shards in float32, on 1, 2, 4
# and 8 processes. We compare with ((g₀ + g₁) + g₂) + …, the order of the shards:


# %%
def shared_out(gradients, P):
    """The gradients of the shards of each process: P lists."""
    own = len(gradients) // P
    return [gradients[p * own : (p + 1) * own] for p in range(P)]


def in_a_row(gradients):
    """((g₀ + g₁) + g₂) + …"""
    total = gradients[0].copy()
    for gradient in gradients[1:]:
        total += gradient
    return total


gradients = [gradient.astype(np.float32) for gradient in gradients]
in_order = in_a_row(gradients)
print("entries with other bits than in the order of the shards:")
for P in (1, 2, 4, 8):
    first = [in_a_row(own) for own in shared_out(gradients, P)]
    total = around_the_ring(first, Network(P))[0]
    print(f"P = {P}: {(total != in_order).mean():4.0%}", end="   ")
    print(f"off by {relative(total, in_order):.0e}")
    assert relative(total, in_order) < 1e-6
    assert P == 1 or (total != in_order).mean() > 0.1

# %% [markdown]
# The differences are as small as rounding is. Do they matter? We train twice, from the same seed and with the same
# batches. Only the order differs in which the gradients of four shards are added: once from the first to the last, once
# in reverse. The curves show how far apart the parameters are, for three seeds. The same again with another activation,
# the smooth $\text{SiLU}(x) = x / (1 + e^{-x})$ in place of ReLU:


# %%
def trained(seed, add, own=None, steps=300):
    """The parameters after each 10th step, and the mean loss of the last 20 steps."""
    draw = np.random.default_rng(seed)
    model = Transformer(config, seed=seed, device=device)
    adam, curve, path, batches = Adam(model.flat), np.zeros(steps), [], []
    for step in range(steps):
        batches = batches or make_batches(encoded, 600, draw)
        batch = batches.pop()
        shards = [shard for shard in batch.split(4) if shard.num_tokens]
        with standing_in(own) if own else accelerated():  # the faster of the package's functions
            parts = []
            for shard in shards:
                model.zero_grad()
                (loss, _), cache = model.loss(shard, num_tokens=batch.num_tokens)
                model.loss_backward(1.0, cache)
                parts.append(to_host(model.flat.grad).copy())
                curve[step] += float(to_host(loss))
            model.flat.grad[...] = device.asarray(add(parts))
            adam.step(min(1, (step + 1) / 50) * 1e-2)
        if step % 10 == 9:
            path.append(to_host(model.flat.data).copy())
    return path, curve[-20:].mean()


def in_reverse(gradients):
    return in_a_row(gradients[::-1])


class SiluForRelu:
    """Stands in for ReLU alone."""

    def twin_of(self, function):
        return Twin(silu, silu_backward) if function is relu else None


SEEDS = (1, 2, 3)
apart, losses = {}, []
for name, own in (("ReLU", None), ("SiLU", SiluForRelu())):
    for seed in SEEDS:
        (path, loss), (other, other_loss) = (
            trained(seed, add, own) for add in (in_a_row, in_reverse)
        )
        distances = [relative(x, y) for x, y in zip(path, other, strict=True)]
        print(f"{name}, seed {seed}: loss {loss:.4f} and {other_loss:.4f}", end="; ")
        print(f"parameters {distances[0]:.0e} apart after 10 steps, {distances[-1]:.0e} after 300")
        apart[name, seed] = distances
        losses.append(loss)
for seed in SEEDS:
    assert apart["ReLU", seed][-1] > 100 * apart["SiLU", seed][-1] > 0

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.5, 3.6))
for (name, seed), distances in apart.items():
    colour, style = (BLUE, "-") if name == "ReLU" else (VERMILION, "--")
    label = f"{name}, 3 seeds" if seed == 1 else ""
    axes.semilogy(range(10, 301, 10), distances, style, color=colour, label=label)
axes.axhline(2.0**-24, color=BLACK, lw=0.8)
axes.text(300, 2.0**-24 * 0.8, "rounding of one number, float32", ha="right", va="top")
axes.set(xlabel="step", ylabel="distance of the parameters,\nrelative to their size")
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# With ReLU the distance grows slowly at first. Then it jumps by orders of magnitude, and the losses differ in a digit
# that is printed. With SiLU it does not: the same rounding, and no jump. So it is the corner of ReLU that makes a tiny
# difference large: an input near 0 is on in one training and off in the other, and the gradient is another one.
#
# Neither training is better. But suppose that the order depends on the machines. Then a run that goes on with more of
# them becomes another run. Nobody can say whether a loss has changed because the code has. And a bug that shows after
# 10,000 steps on 8 machines cannot be looked for on one.
#
# And the ring of section 3 that is one chunk off? We train with it, too:


# %%
def with_one_chunk_off(gradients):
    return around_the_ring(gradients, Network(len(gradients)), one_chunk_off)[0]


print(f"loss of a guess: {np.log(len(vocabulary)):.2f}")
for seed, right_loss in zip(SEEDS, losses[:3], strict=True):
    _, loss = trained(seed, with_one_chunk_off)
    print(f"seed {seed}: loss {loss:.2f}, with the right sum {right_loss:.2f}")
    assert right_loss < loss < np.log(len(vocabulary)) / 2

# %% [markdown]
# The loss falls, only less far. Without the right one beside it, who would look for a mistake?
#
# ### To the last bit
#
# **Each entry must be added in one order, whoever adds it.** We take that of the shards, for they belong to the run. So
# a process must not add up its own shards first. Instead each process adds one chunk for all:
#
# 1. Each process sends to process $q$ chunk $q$ of *each* of its shards.
# 2. Process $q$ adds what it has, in the order of the shards.
# 3. Process $q$ sends its chunk of the sum to all others.


# %%
def order_of_the_shards(gradients, P, network):
    """The sum for each of P processes; ((g₀ + g₁) + g₂) + … in every entry."""
    of_process = [
        [np.array_split(gradient, P) for gradient in own] for own in shared_out(gradients, P)
    ]  # [process][shard][chunk]
    sums = []
    for q in range(P):
        received = []
        for p, own in enumerate(of_process):
            received += [shard[q] if p == q else network.send(p, q, shard[q]) for shard in own]
        sums.append(in_a_row(received))
    return [
        np.concatenate([x if p == q else network.send(p, q, x) for p, x in enumerate(sums)])
        for q in range(P)
    ]


print("P × shards   KB sent by each process   by the ring")
for P in (1, 2, 4, 8):
    network, s = Network(P), 8 // P
    sums = order_of_the_shards(gradients, P, network)
    assert all((total == in_order).all() for total in sums)  # to the last bit
    assert (network.sent.sum(axis=1) == (s + 1) * n * (P - 1) // P * 4).all()
    sent, ring = network.sent[0].sum(), 2 * n * (P - 1) // P * 4
    print(f"{P} × {s} {sent / 1000:20.0f} {ring / 1000:22.0f}")

# %% [markdown]
# All have the same bits. What does it cost? In step 1 a process sends $P - 1$ of the $P$ chunks of each of its $s$
# shards, in step 3 its chunk of the sum to $P - 1$ others. Together these are
#
# $$
# (s + 1) \, n \, \frac{P - 1}{P}
# $$
#
# numbers. **With one shard for each process that is what the ring sends.** The package takes these three steps. MPI
# (Message Passing Interface) carries its messages: `Ialltoallv` is step 1, for all processes at once, `add_up` is step
# 2, and `Iallgatherv` step 3. The `I` means that the call only begins it; `_complete` waits for the end, and `_meet`
# until all processes are there.

# %%
source_of(MpiSums._add_in_order, add_up)

# %% [markdown]
# The norm of the gradient, by which it is clipped, has to be the same everywhere, too: one process computes it for all.
#
# ## 5 · What it gains
#
# `benchmarks/processes.py` measures training steps on one machine with two cores. The model is `tiny`, with batches of
# 4096 tokens of Multi30k in four shards. The order of sums is ours, that of the shards, or one that MPI chooses. All
# rows take turns. Each is compared with the first row, one process with two threads, in every turn; the table has
# medians.

# %%
# Of benchmarks/results/processes.json, which a test compares with these lines.
PARAMETERS, SHARDS = 7_569_408, 4
RECORDED = (  # processes, threads of each, order of sums, seconds a step, times as fast, bytes sent
    (1, 2, "", 0.676, 1.00, 0),
    (2, 1, "ours", 0.691, 0.95, 45_416_448),
    (2, 1, "MPI's", 0.672, 1.01, 30_277_632),
    (4, 1, "ours", 0.732, 0.91, 45_416_448),
    (4, 1, "MPI's", 0.707, 0.96, 45_416_448),
)
print("processes × threads   order of sums    a step   times as fast   each process sends")
for P, threads, order, seconds, as_fast, sent in RECORDED:
    what = f"{P:9} × {threads}           {order:10} {1000 * seconds:9.0f} ms {as_fast:12.2f}"
    print(f"{what} {sent / 1e6:15.0f} MB")
    s = SHARDS // P if order == "ours" else 1
    if P > 1:
        assert sent == (s + 1) * PARAMETERS * (P - 1) // P * 4  # the formula of section 4

# %% [markdown]
# **On one machine processes gain nothing.** Two threads kept both cores busy already, and a second process brings no
# core of its own. It loses little, too: within one machine bytes are only copied in memory. Four processes take turns
# on the two cores, and that costs more.
#
# What would several such machines gain? This was not measured. What follows is a **prediction**. Suppose that the work
# of a step is shared out evenly, and that the ring's formula holds for the $b$ bytes of the gradient. A step then takes
#
# $$
# t(P) = \frac{t(1)}{P} + 2 (P - 1) \left( \alpha + \frac{b}{P \beta} \right) .
# $$
#
# Without $\alpha$ this is a mean of $t(1)$ and $2 b / \beta$, with the weights $1 / P$ and $1 - 1 / P$. More machines
# move it from the first to the second. So if $2 b / \beta$ is smaller, the speed-up $t(1) / t(P)$ grows with $P$, and
# stays below $t(1) \, \beta / 2 b$. And $\alpha$ lowers it. For some networks:

# %%
ONE, GRADIENT = RECORDED[0][3], 4 * PARAMETERS  # seconds, bytes
COUNTS = 2 ** np.arange(7)


def predicted(P, beta, seconds=ONE):
    return seconds / (seconds / P + 2 * (P - 1) * (ALPHA + GRADIENT / (P * beta)))


print("machines  ", *(f"{P:6}" for P in COUNTS), "   always below")
for gigabits in (1, 10, 100):
    beta = gigabits * 1e9 / 8
    limit = ONE * beta / (2 * GRADIENT)
    faster = predicted(COUNTS, beta)
    print(f"{gigabits:3} Gbit/s", *(f"{x:6.2f}" for x in faster), f"{limit:12.2f}")
    assert (faster < limit).all()
four_times = predicted(COUNTS, 1.25e9, seconds=4 * ONE)
print(" 10, 4 × B", *(f"{x:6.2f}" for x in four_times), "  batches four times as large")

# %% [markdown]
# At 1 Gbit/s, an ordinary network cable, it is hardly worth while: from four machines on, sending alone takes most of
# the time that one machine needs for a step. At 100 Gbit/s eight machines are more than seven times as fast. Each
# further machine adds less: a small shard is soon computed, and the bytes and the latency remain.
#
# What helps, beside a faster network? **A larger batch**: the gradient has as many bytes, so there is more to compute
# for each byte. But an epoch has fewer updates. Goyal and others (2017) trained a network for images with batches of
# 8192, on 256 GPUs: with $k$ times the batch they took $k$ times the learning rate, after a warm-up, and lost no
# accuracy up to there. (That is for SGD with momentum; with Adam, one has to try.) **Sending while computing**:
# backward finishes the last layers first, and their gradients can be on their way meanwhile. The package sends one
# array, at the end. **Fewer bytes**: gradients in 16 bits are half as many, and their sum is less exact.
#
# ### What else can be shared out
#
# So far each process has the whole model. There are four other cuts. What does each send?
#
# - **Accumulation** cuts in time. A process takes several shards one after the other, adds their gradients, and then
#   all-reduces once: still $2 n (P - 1) / P$ numbers, but for a batch several times as large. It needs memory for one
#   shard. The package does so where MPI chooses the order; in ours each shard's gradient is sent.
# - **Sharding the optimizer** (ZeRO: Rajbhandari and others 2020). After the ring's first half each process has the
#   whole sum of one chunk. It updates the parameters of this chunk alone, and the second half sends *parameters*
#   around, not gradients: as many numbers, $2 n (P - 1) / P$. Each process keeps only $n / P$ of Adam's $m$ and $v$.
# - **Tensor parallelism** (Megatron-LM: Shoeybi and others 2019) cuts matrices. A process has some columns of $W_1$ and
#   the same rows of $W_2$, or some heads and their rows of $W^O$. What it computes is a summand of the layer's output,
#   as the cell below asserts. So each sublayer ends with an all-reduce of $B \, T \, D$ numbers, and its backward with
#   another. Nobody can go on before: this is for fast lines within one machine.
# - **Pipeline parallelism** (GPipe: Huang and others 2019) cuts between layers. Each process has some layers, and sends
#   $B \, T \, D$ numbers to the next one, and as many back as gradients: little. But the last waits for the first. With
#   the batch in $M$ parts, which follow each other through $P$ processes, a pass takes $M + P - 1$ rounds, and each
#   process works in $M$ of them.

# %%
x, w_1, w_2 = (rng.standard_normal(shape) for shape in ((5, 8), (8, 32), (32, 8)))
parts = [slice(p, p + 8) for p in range(0, 32, 8)]  # four processes
summands = [relu(x @ w_1[:, part])[0] @ w_2[part] for part in parts]
assert np.allclose(sum(summands), relu(x @ w_1)[0] @ w_2)

# %% [markdown]
# `docs/processes.md` tells how to start several processes. On one and on two, `minitransformer train toy --shards 2`
# writes the same losses, to the last digit, into `metrics.jsonl`.
#
# ## 6 · Exercises
#
# Fill in `answers/ex24.py`, your copy of [lessons/exercises/ex24.py](exercises/ex24.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex24
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The
# solutions are in [lessons/solutions/ex24.py](solutions/ex24.py).
#
# 1. **`from_own_means`** (10 min). Every process has divided by its own labels. Mend it without a second backward.
# 2. **`shared_statistics`** (25 min). Batch norm's mean and variance over all processes, in two all-reduces.
# 3. **`ring_round`** (25 min). The ring the other way round. Where each pair of neighbours has a line that carries both
#    directions at once, two opposite rings with half the gradient each take about half the time.
# 4. **`halving_doubling`** (45 min). All-reduce with as few bytes as the ring, and as few rounds as a tree. Put the
#    formula for its time beside the other three. Does it ever lose?

# %%
print(check_exercise("ex24", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | data parallelism | all parameters in each process, a shard of the batch for each, one sum of gradients a step |
# | the sum | $\partial L / \partial \theta = \sum_k \partial L_k / \partial \theta$, each shard divided by the labels of the *whole* batch |
# | it needs | losses that look at no other shard: layer norm, yes; batch norm, no |
# | random numbers | by seed, step and shard, not by process |
# | least to send | $2 n (P - 1) / P$ numbers a process |
# | ring | reduce-scatter, all-gather; $2 (P - 1) \left( \alpha + b / P \beta \right)$ |
# | small arrays | a tree, $2 \log_2 P \, (\alpha + b / \beta)$ |
# | same bits | add in the order of the shards; $(s + 1) \, n (P - 1) / P$ |
# | gain | grows with the work for each byte sent; on one machine there is none |
# | trap | processes that agree may agree on a wrong sum: compare with one process |
#
# **To read on.** The ring, and the proof that nothing sends less: Patarasuk and Yuan, *Bandwidth optimal all-reduce
# algorithms for clusters of workstations* (2009). The ring for gradients: Gibiansky, *Bringing HPC techniques to deep
# learning* (Baidu, 2017), and Sergeev and Del Balso, *Horovod* (2018). Large batches: Goyal and others, *Accurate,
# large minibatch SGD* (2017). Batch norm: Ioffe and Szegedy, *Batch normalization* (2015).
#
# **Your own Transformer.** Nothing new to write. But now you know what the argument `num_tokens` of your
# `cross_entropy` is for. `minitransformer check own` says whether that is right.
#
# **Next:** a second machine. [The plan](README.md) lists all lessons.
