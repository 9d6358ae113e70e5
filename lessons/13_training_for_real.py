# %% [markdown]
# # 13 · Training for real
#
# **You will** follow sentences from two text files to a trained translator: clean them, cut them into subwords, pack
# them into batches; take a step that is right on any number of workers; kill a training and resume it bit for bit;
# and read its curves.
#
# | | |
# |---|---|
# | In the paper | section 5.1, *Training Data and Batching*; 5.2 and 5.3 for steps and schedule |
# | In the package | `minitransformer/data/`, `training/`, `tasks/`, `runs/` |
# | You need | what a loss and a gradient are; nothing about the layers of the model |
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
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import select_device
from minitransformer.core.backend import CPU, to_host
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
from minitransformer.course.stops import show, try_yours
from minitransformer.data.files import DATA_VARIABLE
from minitransformer.data.text.batches import BatchReport, encode_pairs, make_batches
from minitransformer.data.text.corpus import clean_for_training, read_parallel
from minitransformer.data.text.multi30k import load_multi30k
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import PAD, Vocabulary
from minitransformer.inference.translator import Translator
from minitransformer.models.transformer import Transformer
from minitransformer.models.transformer_config import TransformerConfig
from minitransformer.optim.adam import adam_update
from minitransformer.optim.clipping import clip_scale, gradient_norm
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.job import Job
from minitransformer.training.loop import take_step, train
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import prepare
from minitransformer.training.step import step_seed
from minitransformer.training.trainer import Trainer

use_style()
device = select_device("cpu")  # "cuda" computes the step of section 4 on a GPU
rng = np.random.default_rng(13)
place = tempfile.TemporaryDirectory()  # for all files of this lesson; removed at its end
folder = Path(place.name)

# %% [markdown]
# ## 1 · Two files
#
# A parallel corpus is two text files. Line $n$ of one translates line $n$ of the other, and nothing but the count of
# lines says so. In this one an editor has left a form feed, an invisible character, in the second English line:

# %%
(folder / "de.txt").write_bytes(b"Ein Hund.\nZwei Katzen.\nDrei Kinder.\n")
(folder / "en.txt").write_bytes(b"A dog.\nTwo \x0ccats.\nThree children.\n")

german = (folder / "de.txt").read_text(encoding="utf-8").splitlines()
english = (folder / "en.txt").read_text(encoding="utf-8").splitlines()
for pair in zip(german, english, strict=False):
    print(pair)

# %% [markdown]
# No error, and from the second line on the model is taught nonsense: `splitlines` also breaks lines at form feeds, and
# `zip` stops with the shorter list. The loss would still fall: frequent words can be learned. The package ends lines at
# line feeds alone, and counts:

# %%
pairs = read_parallel(folder / "de.txt", folder / "en.txt")
assert [german for german, _ in pairs] == ["Ein Hund.", "Zwei Katzen.", "Drei Kinder."]
assert pairs[2][1] == "Three children."

(folder / "en.txt").write_text("A dog.\nThree children.\n", encoding="utf-8")
try:
    read_parallel(folder / "de.txt", folder / "en.txt")
except ValueError as error:
    print(str(error).replace(f"{folder}{os.sep}", ""))

# %% [markdown]
# **What is cleaned.** A pair with an empty side is dropped. A repeated pair stays: how often people say a thing is part
# of what there is to learn. Both are *counted*.

# %%
dirty = [*pairs, ("Ein Hund.", "A dog."), ("Vier Vögel.", "  ")]
_, report = clean_for_training(dirty)
print(report)
assert (report.empty, report.repeated) == (1, 1)

# %% [markdown]
# Only training pairs are cleaned. Whoever drops the hard lines of a test set has another test.
#
# The corpus is Multi30k, 29,000 captions in German and English (Elliott et al. 2016), if the environment variable
# `MINITRANSFORMER_DATA` names a folder that has it. Otherwise it is the package's toy corpus.

# %%
if os.environ.get(DATA_VARIABLE):
    corpus = {split: load_multi30k(split) for split in ("train", "validation")}
    print("Multi30k, from your folder")
else:
    corpus = toy_corpus()
    print(f"{DATA_VARIABLE} is not set: the toy corpus, in place of Multi30k")
train_pairs, report = clean_for_training(corpus["train"])
print(report)
known = {german for german, _ in train_pairs}
seen = sum(german in known for german, _ in corpus["validation"])
print(f"{seen} of {len(corpus['validation']):,} validation sentences are in the training set too")

# %% [markdown]
# A sentence in both sets tests memory, not translation, so the last line belongs in every report.
#
# ## 2 · Subwords
#
# A vocabulary of whole words would have no end; single letters make sequences several times longer. Byte-pair
# encoding lies between. It starts from letters and keeps merging the most frequent pair of neighbours
# ([lesson 05](05_tokens_and_embeddings.ipynb)). Two rules:
#
# - **One vocabulary for both languages**, as in the paper: names and numbers have the same pieces on both sides.
# - **It is learned from the training split alone.** Pieces made for the test sentences are a leak.


# %%
texts = [text for pair in train_pairs for text in pair]  # of the training split alone
vocabulary = Vocabulary.train(texts, 1000)
print(" ".join(vocabulary.pieces(vocabulary.encode(texts[0]))), " (▁ begins a word)")
encoded, report = encode_pairs(vocabulary, train_pairs, max_length=64)
print(report)
for text in texts[:200]:  # what comes out is what went in, but for runs of blanks
    assert vocabulary.decode(vocabulary.encode(text)) == " ".join(text.split())

# %% [markdown]
# ## 3 · Batches
#
# A batch is a rectangle: $B$ sentences, each filled up with padding to the length of the longest. Padding changes no
# result, but it is computed. What does it cost? Let lengths be drawn at random with mean $\bar l$, and let $F(l)$ be
# the share of sentences with at most $l$ tokens. A batch takes $B \cdot M$ positions, with $M$ the longest of its
# lengths. Over many batches, the share of padding is
#
# $$
# \text{padding} = 1 - \frac{B \, \bar l}{B \; \mathbb E[M]} = 1 - \frac{\bar l}{\mathbb E[M]} .
# $$
#
# $M$ counts the integers $l = 0, 1, 2, \dots$ below it. Its mean is the sum of the probabilities of being above each:
#
# $$
# \mathbb E[M] = \sum_{l=0}^{\infty} P(M \gt l) = \sum_{l=0}^{\infty} \left( 1 - F(l)^B \right) ,
# $$
#
# because $M \le l$ means that all $B$ lengths are at most $l$, and they are independent. Below the greatest length
# $F(l) \lt 1$, so $F(l)^B$ falls to zero as $B$ grows: **the larger the batch, the more padding**, up to
# $1 - \bar l / l_{\text{max}}$.
#
# Measured:

# %%
lengths = np.array([len(source) + 1 for source, _ in encoded])  # (N,) with the end symbol
share = np.bincount(lengths).cumsum() / len(lengths)  # F(l) for l = 0, 1, …
sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def padding(lengths, size):
    """The share of padding where each ``size`` sentences in a row make a batch."""
    batches = lengths[: len(lengths) // size * size].reshape(-1, size)
    return 1 - batches.sum() / (batches.max(axis=1).sum() * size)


at_random = [padding(rng.permutation(lengths), size) for size in sizes]
by_length = [padding(np.sort(lengths), size) for size in sizes]
derived = [1 - lengths.mean() / (1 - share**size).sum() for size in sizes]
assert np.allclose(at_random, derived, atol=0.02)

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.5, 4))
axes.semilogx(sizes, at_random, "s", color=VERMILION, label="in random order")
axes.semilogx(sizes, derived, "-", color=BLACK, lw=1, label="the formula")
axes.semilogx(sizes, by_length, "o", color=BLUE, label="in order of length")
axes.set_xscale("log", base=2)
axes.set_xticks(sizes, sizes)
axes.set(xlabel="sentences in a batch, $B$", ylabel="share of padding", ylim=(-0.02, 0.6))
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# Neighbours by length need hardly any padding. But with a fixed number of *pairs* in a batch, work and memory would
# grow with the length. With a fixed number of *positions*, $B (S + T)$, all steps cost about the same, and average over
# about as many predictions. The paper takes about 25,000 tokens a side (section 5.1).
#
# Sentences should not come from short to long, so the *batches* are shuffled. And the same pairs should not always
# meet, so a little noise is added to the lengths before sorting. What this costs, in padding:


# %%
BATCH_TOKENS = 1400
for name, generator in (("sorted by length", None), ("sorted with noise, shuffled", rng)):
    report = BatchReport.of(make_batches(encoded, BATCH_TOKENS, generator))
    print(f"{name:28} {report}")
    assert report.padding < max(at_random) / 2

# %% [markdown]
# ## 4 · One step
#
# A batch has three arrays. The decoder sees the target from its begin symbol on, and has to say the same one place
# earlier, up to the end symbol:

# %%
tiny = make_batches(encode_pairs(vocabulary, pairs[:2], 64)[0], 1000)[0]
B, S = tiny.source.shape
T = tiny.target.shape[1]
for name in ("source", "target", "labels"):
    print(f"{name:7}", vocabulary.pieces(getattr(tiny, name)[0]))
assert np.array_equal(tiny.target[:, 1:][tiny.target[:, 1:] != PAD], tiny.labels[tiny.labels > 3])

shape_table(
    {"B": B, "S": S, "T": T},
    source=(tiny.source, "B S", "pieces and the end symbol"),
    target=(tiny.target, "B T", "the begin symbol and pieces: what the decoder sees"),
    labels=(tiny.labels, "B T", "pieces and the end symbol: what it has to say"),
)

# %% [markdown]
# ### The loss is a mean over tokens: of which tokens?
#
# Let $\ell_i$ be the loss of label $i$ and $N$ the number of labels that are not padding. The loss of the batch is
#
# $$
# L = \frac1N \sum_{i=1}^{N} \ell_i .
# $$
#
# Now the batch is cut into $K$ shards, one for each core, or one after the other if memory is short. Shard $k$ has
# $N_k$ labels. Suppose that each computes its own mean, and the gradients are averaged. What is minimised then is
#
# $$
# L' = \frac1K \sum_{k=1}^{K} \frac{1}{N_k} \sum_{i \in k} \ell_i .
# $$
#
# In $L$ a label weighs $1 / N$; in $L'$ it weighs $1 / (K N_k)$. That is $N / (K N_k)$ times as much: 1 if all
# shards are equal, and otherwise **the labels of a shard with few tokens weigh more**. The cure is to divide each
# shard by the count of the *whole*, known before the step begins, and to *sum*:
#
# $$
# L_k = \frac1N \sum_{i \in k} \ell_i
# \qquad\Longrightarrow\qquad
# L = \sum_k L_k ,
# \qquad
# \frac{\partial L}{\partial \theta} = \sum_k \frac{\partial L_k}{\partial \theta} .
# $$
#
# A widely used training library averaged the means until October 2024 (Hugging Face's blog, *Fixing Gradient
# Accumulation*, 2024). Measured in float64, with a shard of short sentences and one of long ones:

# %%
RECIPE = Recipe.from_dict(
    {
        "model": {
            "d_model": 64,
            "num_heads": 4,
            "d_ff": 256,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
            "dropout": 0.05,
            "max_length": 64,
            "norm": "pre",
        },
    }
)
config = TransformerConfig.of_vocabulary(len(vocabulary), **RECIPE.choices())
model = Transformer(config, seed=13, device=device, dtype=np.float64)
in_order = sorted(encoded, key=lambda pair: max(map(len, pair)))
short, long = in_order[:8], in_order[-8:]
whole = make_batches(short + long, 10**6)[0]
shards = [make_batches(part, 10**6)[0] for part in (short, long)]


def gradient(batches, num_tokens, dloss=1.0):
    """The gradients of the batches added up, on the host."""
    model.flat.grad.fill(0)
    for batch in batches:
        _, cache = model.loss(batch, num_tokens=num_tokens)
        model.loss_backward(dloss, cache)  # adds to what is there
    return to_host(model.flat.grad).copy()


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


right = gradient([whole], whole.num_tokens)
summed = gradient(shards, whole.num_tokens)
averaged = gradient(shards, None, dloss=1 / len(shards))
print("labels in the shards:       ", [shard.num_tokens for shard in shards])
for shard, name in zip(shards, ("short", "long"), strict=True):
    weight = whole.num_tokens / (len(shards) * shard.num_tokens)
    print(f"a label of the {name:5} shard would weigh {weight:.2f} times as much as it should")
print(f"divided by N and summed:     off by {relative(summed, right):.0e}")
print(f"means, averaged:             off by {relative(averaged, right):.0%}")
assert relative(summed, right) < 1e-12
assert relative(averaged, right) > 0.05

# %% [markdown]
# ### Clipping
#
# Once in a while a batch has a gradient many times the usual. Pascanu, Mikolov and Bengio (2013) shorten it to a
# length $c$ and leave its direction. With $\lVert g \rVert$ the norm over *all* parameters:
#
# $$
# g \leftarrow g \cdot \min \left( 1, \frac{c}{\lVert g \rVert} \right) = g \cdot \frac{c}{\max(\lVert g \rVert, c)} .
# $$
#
# The second form never divides by zero, and does not wait for a GPU to say how long $g$ is.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `gradient_norm(grad)` | all gradients in one array, $(P,)$ | $\lVert g \rVert$, a number |
# | `clip_scale(norm, max_norm)` | $\lVert g \rVert$ and $c$, numbers; $c$ may be infinite | the factor of $g$, a number |
#
# Four facts, which this cell tries on yours:

# %%
g = rng.standard_normal(1000) * 3


def facts(gradient_norm, clip_scale):
    norm = gradient_norm(g)
    clipped = g * clip_scale(norm, 2.0)
    yield "a gradient that is too long gets the norm c", np.isclose(np.linalg.norm(clipped), 2)
    yield "a short one is left alone", clip_scale(gradient_norm(g * 1e-3), 2.0) == 1
    yield "so is one of zeros", clip_scale(gradient_norm(g * 0), 2.0) == 1
    yield "without a limit nothing is clipped", clip_scale(norm, np.inf) == 1


try_yours("clip_scale", facts)

# %% [markdown]
# `minitransformer check own clip_scale` says the rest. The package's, once yours is right:

# %%
show("clip_scale")

# %% [markdown]
# PyTorch does the same. (It adds $10^{-6}$ to the norm.)

# %%
if importlib.util.find_spec("torch"):
    import torch

    theirs = torch.tensor(g, requires_grad=True)
    theirs.grad = torch.tensor(g)
    norm = torch.nn.utils.clip_grad_norm_(theirs, 2.0)
    print(f"norm: PyTorch {norm:.6f}, ours {gradient_norm(g):.6f}")
    assert np.allclose(theirs.grad, g * clip_scale(gradient_norm(g), 2.0), rtol=1e-6)

# %% [markdown]
# **What is it good for?** To prevent a giant step, it is said. How long can a step become? One gradient $G$, however
# large, adds $(1 - \beta_1) \, G$ to Adam's running mean $m$ and $(1 - \beta_2) \, G^2$ to that of the squares, $v$.
# After $k$ more steps $\beta_1^k$ and $\beta_2^k$ of these are left. So its part of that step is at most
#
# $$
# \eta \, \frac{(1 - \beta_1) \, \beta_1^k \, \lvert G \rvert}{\sqrt{(1 - \beta_2) \, \beta_2^k \, G^2}}
# = \eta \, \frac{1 - \beta_1}{\sqrt{1 - \beta_2}} \left( \frac{\beta_1}{\sqrt{\beta_2}} \right)^{k} ,
# $$
#
# and in all, by the geometric series, $\eta \, (1 - \beta_1) / \sqrt{1 - \beta_2}$ divided by
# $1 - \beta_1 / \sqrt{\beta_2}$. Beside the paper's $\beta_2 = 0.98$ we take the usual 0.999:

# %%
for beta_2 in (0.98, 0.999):
    data, m, v = np.zeros((3, 1))
    path = [0.0]
    for k in range(400):  # a late step, so that the corrections of the bias are 1
        adam_update(data, np.full(1, 1e6 * (k == 0)), m, v, 1.0, 10**6, 0.9, beta_2, 1e-9)
        path.append(-data[0])
    bound = 0.1 / np.sqrt(1 - beta_2)
    in_all = bound / (1 - 0.9 / np.sqrt(beta_2))
    print(f"β₂ = {beta_2}: {path[1]:.2f} η at once, {path[-1]:.1f} η in all")
    assert np.allclose([path[1], path[-1]], [bound, in_all], rtol=1e-3)

# %% [markdown]
# A steady gradient makes steps of $\eta$. With 0.999 one bad batch makes one three times as long, and carries as far as
# 32 of them: this clipping does prevent. With 0.98 the harm is another one. For about $1 / (1 - \beta_1) = 10$ steps
# the model follows *one batch's* direction. And $v$ has grown by $0.02 \, G^2$, and loses only a fiftieth a step: until
# it has faded, all steps are too short. Take 1000 parameters with a steady gradient of norm 1, and in step 200 one of
# norm 100 in a random direction. Drawn is how far each step goes down the steady gradient:

# %%
P, SPIKE = 1000, 200
steady = np.full(P, P**-0.5)  # norm 1
spike = rng.standard_normal(P)
spike *= 100 / np.linalg.norm(spike)


def progress_along_the_steady_gradient(limit):
    """How far each step goes down the steady gradient, relative to an undisturbed one."""
    data, m, v = np.zeros((3, P))
    travelled = [0.0]
    for t in range(1, 601):
        grad = spike if t == SPIKE else steady
        grad = grad * clip_scale(np.linalg.norm(grad), limit)
        adam_update(data, grad, m, v, 1.0, t, 0.9, 0.98, 1e-9)
        travelled.append(-data @ steady)
    return np.diff(travelled) / np.sqrt(P)


free, limited = (progress_along_the_steady_gradient(limit) for limit in (np.inf, 1.0))
lost = [(1 - x[SPIKE - 1 :]).sum() for x in (limited, free)]
print(f"lost to one bad batch: {lost[0]:.1f} full steps clipped, {lost[1]:.0f} not clipped")
assert lost[0] < 0.1 * lost[1]

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.7))
t = np.arange(1, 601) - SPIKE
axes.plot(t, limited, color=BLUE, ls="-", label="clipped to norm 1")
axes.plot(t, free, color=VERMILION, ls="--", label="not clipped")
axes.set(xlabel="steps since the one bad batch", xlim=(-30, 400), ylim=(0, 1.1))
axes.set_ylabel("progress of a step (of a full one)")
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# A parameter's part of the spike is typically 100 times its steady gradient, and $v$ grows by a factor of about
# $0.02 \cdot 100^2 = 200$. That fades as $0.98^k$, in $\ln 200 / 0.02 = 265$ steps.
#
# ### The loop of the package
#
# Everything so far, on one core. (`kappa`, a further term of the loss, is 0 here.)

# %%
source_of(train, take_step)

# %% [markdown]
# The `Trainer` takes the same steps. On several cores `split` deals the pairs out to the workers. Each runs forward and
# backward on a *replica* that shares the parameters and has its own gradient. The gradients are added, and the norm is
# taken of the *sum*. What else the trainer does, around the steps, the next two sections show.
#
# ## 5 · The run folder
#
# A training is a folder, with all that is needed to use the model, to go on with it or to repeat it. We train a small
# model on 4000 toy pairs:

# %%
toy = toy_corpus()
trained_on = CPU  # or device, for a model large enough to keep a GPU busy; this one is not


def write_corpus(name, pairs):
    """Two text files, one for each language; returns their paths."""
    paths = []
    for language, lines in zip(("de", "en"), zip(*pairs, strict=True), strict=True):
        path = folder / f"{name}.{language}"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        paths.append(str(path))
    return paths


def recipe_for(train, validation, **changes):
    """RECIPE for a corpus of so many toy pairs."""
    sections = RECIPE.as_dict()
    names = [
        f"{split}_{side}" for split in ("train", "validation") for side in ("source", "target")
    ]
    paths = write_corpus(f"train-{train}", toy["train"][:train])
    paths += write_corpus(f"validation-{validation}", toy["validation"][:validation])
    sections["data"] |= dict(zip(names, paths, strict=True)) | {"corpus": "files"}
    recipe = Recipe.from_dict(sections)
    for name, value in changes.items():
        recipe = recipe.with_value(name, value)
    return recipe


recipe = recipe_for(
    train=4000,
    validation=100,
    vocabulary_size=800,
    max_tokens=64,
    batch_tokens=BATCH_TOKENS,
    epochs=6,
    peak_learning_rate=6e-3,
    warmup_steps=60,
    log_every=5,
    shards=1,
)
run = RunFolder(folder / "first")
trainer = prepare(Job(recipe, run.path, trained_on, Progress(sys.stdout)))
trainer.train()

# %%
for path in sorted(run.path.rglob("*")):
    if path.is_file():
        print(f"{path.stat().st_size:9,} bytes  {path.relative_to(run.path).as_posix()}")

# %% [markdown]
# `model.npz` has the parameters that scored best in validation. A checkpoint is about three times as large, for Adam's
# $m$ and $v$ are as large as the parameters. Every file is written under another name and renamed when it is whole. So
# whenever a process is killed, there is the old file or the new one. The log only ever grows:

# %%
log = run.log.entries()
for entry in (log[0], next(entry for entry in log if entry["kind"] == "validation")):
    print({name: round(x, 4) if isinstance(x, float) else x for name, x in entry.items()})
guess = np.log(800)
print(f"a model that guesses has the NLL log V = {guess:.2f} nats a token")
assert abs(log[0]["nll"] / guess - 1) < 0.3

# %% [markdown]
# The first loss is a test of its own. A new model knows nothing, so it should cost about $\log V$. If it costs much
# more, the initial weights are too large. If less, the model sees what it should predict.
#
# ## 6 · Killed, and resumed
#
# Machines are switched off. To go on *as if nothing had happened*, every number that the rest of the training depends
# on must be in the checkpoint:
#
# | what | how much | where it is kept |
# |---|---|---|
# | parameters θ | $P$ numbers | `parameters/…` |
# | Adam's $m$ and $v$ | $2P$ numbers | `m/…`, `v/…` |
# | place in the data | two counters | `epoch`, `position` |
# | place in the schedule, and Adam's $t$ | one counter | `step` |
# | best score so far | two numbers | `best` |
# | random numbers: order of batches, dropout | **nothing** | made anew from seed and counters |
#
# The last row is a decision. No random generator outlives a step: that of dropout is made from (seed, step, worker),
# that of the batches from (seed, epoch). So step 1000 draws the same numbers, whatever came before it in this process.

# %%
source_of(step_seed, Trainer.save, Trainer.resume)

# %% [markdown]
# Now the power fails in step 28 of a small training, which saves every ten steps and at the end of each epoch. Another
# trainer, with no memory of the first, resumes. So does a third, which is denied the moments, as if only the parameters
# had been saved:


# %%
class PowerFailure(Exception):
    """The end of a process, from outside."""


class FailingProgress(Progress):
    """Says nothing, and fails in a given step."""

    def __init__(self, fails_in=None):
        super().__init__(sys.stdout)
        self.fails_in = fails_in

    def stepped(self, entry, total_steps):
        if entry["step"] == self.fails_in:
            raise PowerFailure

    def say(self, text):
        pass  # nothing to see here


small = recipe_for(
    train=600,
    validation=10,
    vocabulary_size=300,
    max_tokens=64,
    batch_tokens=BATCH_TOKENS,
    epochs=3,
    peak_learning_rate=6e-3,
    warmup_steps=10,
    log_every=1,
    save_every=10,
    shards=1,
)


def new_trainer(name, fails_in=None):
    return prepare(Job(small, folder / name, trained_on, FailingProgress(fails_in)))


new_trainer("uninterrupted").train()
for name in ("resumed", "without moments"):
    with suppress(PowerFailure):
        new_trainer(name, fails_in=28).train()
    trainer = new_trainer(name)
    assert trainer.resume()
    resumed_from = trainer.step
    print(f"{name}: killed in step 28, resumed from step {resumed_from}")
    if name == "without moments":  # as if the checkpoint held the parameters alone
        for vector in trainer.optimizer.vectors.values():
            vector.fill(0)
        trainer.optimizer.t = 0
    trainer.train()

runs = {name: RunFolder(folder / name) for name in ("uninterrupted", "resumed", "without moments")}
state = {name: run.load_newest_checkpoint()[0] for name, run in runs.items()}  # θ, m and v
for name in ("resumed", "without moments"):
    last = state[name], state["uninterrupted"]
    same = sum(np.array_equal(last[0][key], array) for key, array in last[1].items())
    print(f"{name}: {same} of {len(last[1])} arrays are the same at the end, bit for bit")
    assert (same == len(last[1])) == (name == "resumed")

losses = {
    name: {entry["step"]: entry["loss"] for entry in run.log.entries() if entry["kind"] == "train"}
    for name, run in runs.items()
}
assert losses["resumed"] == losses["uninterrupted"]

# %% [markdown]
# The loss of each step, around the failure, in the three trainings:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4))
for name, colour, dashes, style in (
    ("without moments", VERMILION, "--", {}),
    ("resumed", BLUE, "none", {"marker": "o", "ms": 5, "mfc": "none"}),
    ("uninterrupted", BLACK, "-", {"lw": 1}),
):
    first_shown = 12 if name == "uninterrupted" else resumed_from + 1
    steps = [step for step in losses[name] if first_shown <= step <= 45]
    values = [losses[name][step] for step in steps]
    axes.plot(steps, values, color=colour, ls=dashes, label=name, **style)
axes.axvline(resumed_from + 0.5, color="0.5", ls=":", lw=1.2)
axes.text(resumed_from, axes.get_ylim()[0] + 0.1, "checkpoint", ha="right", color="0.35")
axes.set(xlabel="step", ylabel="loss (nats a token)")
axes.legend()
plt.show()

# %% [markdown]
# Every circle lies on the line. Without the moments the training goes on too, and no error tells of it. But Adam begins
# anew, at a high learning rate and without warm-up, and the curve leaves the line. Above or below is luck.
#
# "Bit for bit" holds on one kind of machine, with one number of shards: sums depend on their order.
#
# ## 7 · Curves
#
# The **NLL**, in nats a token, says how well the model predicts the next token *given the right ones before it*. It is
# cheap and smooth. **BLEU**, from 0 to 100, compares whole translations with the reference. That is what people want,
# but dear and coarse. Drawn are both against time, in one training:

# %%
validations = [entry for entry in log if entry["kind"] == "validation"]
training = [entry for entry in log if entry["kind"] == "train"]
nll = [entry["nll"] for entry in validations]
bleu = [entry["bleu"] for entry in validations]
known_steps = [0] + [entry["step"] for entry in validations]
known_seconds = [0.0] + [entry["seconds"] for entry in validations]
seconds = np.interp([entry["step"] for entry in training], known_steps, known_seconds)

# %% tags=["hide-input"]
figure, (upper, lower) = plt.subplots(2, 1, figsize=(7.5, 5.6), sharex=True, height_ratios=(3, 2))
upper.set_title(f"one training, seed {recipe.training.seed}")
for name, colour, dashes, label in (
    ("loss", GREEN, ":", "training, smoothed loss"),
    ("nll", BLUE, "-", "training, NLL"),
):
    upper.plot(seconds, [entry[name] for entry in training], dashes, color=colour, label=label)
when = known_seconds[1:]
upper.plot(when, nll, "o--", color=VERMILION, label="validation, NLL")
upper.axhline(guess, color=BLACK, lw=0.8)
upper.text(when[-1], guess - 0.08, "guessing, log V", ha="right", va="top", fontsize=9.5)
upper.set(ylabel="nats a token", ylim=(0, guess * 1.08))
upper.legend(loc="upper right", bbox_to_anchor=(1, 0.85))
lower.plot(when, bleu, "o--", color=VERMILION)
for entry in validations:
    place_of_text = entry["seconds"], entry["bleu"] - 14
    lower.text(*place_of_text, f"epoch {entry['epoch']}", ha="center", fontsize=9)
lower.set(xlabel="time since the beginning (seconds)", ylabel="validation BLEU", ylim=(-18, 100))
lower.set_xlim(0, when[-1] * 1.06)
plt.show()

# %% [markdown]
# How to read them:
#
# - **Compare NLL with NLL.** The loss that is trained has smoothed labels. No model gets below the entropy of such a
#   label: the next cell computes that floor, and [lesson 04](04_softmax_cross_entropy.ipynb) derives it.
# - **BLEU comes late.** A sentence is right only if nearly all its tokens are.
# - **Training against validation.** A gap that opens late is overfitting, if validation NLL *rises*.
# - **Choose by what you want.** The run keeps the parameters of the best validation BLEU. The test set has no say.

# %%
epsilon, V = 0.1, 800
right_piece, other = 1 - epsilon + epsilon / V, epsilon / V  # the smoothed label
floor = -right_piece * np.log(right_piece) - (V - 1) * other * np.log(other)
print(f"floor of the smoothed loss: {floor:.2f} nats a token")
print(f"last training entry:        loss {training[-1]['loss']:.2f}, NLL {training[-1]['nll']:.2f}")
print(f"last validation:            NLL {nll[-1]:.2f}, perplexity e^NLL = {np.exp(nll[-1]):.2f}")
assert min(entry["loss"] for entry in training) > floor

# %% [markdown]
# What do the numbers mean? At such a BLEU about half of the sentences are still wrong somewhere:

# %%
translator = Translator.load(run.path, device="cpu")
german, english = zip(*toy["validation"][100:200], strict=True)
translations = translator.translate(german)
equal = sum(a == b for a, b in zip(translations, english, strict=True))
print(f"{equal} of {len(english)} sentences are equal to the reference\n")
for source, reference, translation in list(zip(german, english, translations, strict=True))[5:10]:
    print(source)
    print("   ", translation, "✓" if translation == reference else f"   should be: {reference}")
place.cleanup()

# %% [markdown]
# ## 8 · The same, for real
#
# All of this lesson is one command. `multi30k-cpu` takes about an hour on two CPU cores, `multi30k` is
# meant for a GPU, and `base` is the model of the paper:
#
# ```sh
# minitransformer train toy                                # a minute
# minitransformer train multi30k-cpu                       # downloads Multi30k and checks its checksums
# minitransformer train --resume runs/multi30k-cpu         # after Ctrl-C, or a power cut
# minitransformer plot runs/multi30k-cpu                   # the curves, also while it trains
# minitransformer evaluate runs/multi30k-cpu               # test scores, with sacreBLEU's signature
# ```
#
# Look at four things first: the report of the cleaning; a few pairs side by side; the first loss, near $\log V$; and
# whether the model can learn a single batch by heart ([lesson 12](12_learning.ipynb)).
#
# ## 9 · Exercises
#
# Fill in `answers/ex13.py`, your copy of [lessons/exercises/ex13.py](exercises/ex13.py), and run
# `minitransformer check ex13`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex13.py](solutions/ex13.py).
#
# 1. **`joined_perplexity`** (10 min). A validation set was scored in parts, and only their perplexities were written
#    down, with their counts of tokens. What is the perplexity of the whole?
# 2. **`epoch_order`** (25 min). An order of the pairs that a resumed run can repeat without going through the epochs
#    before. Why is seed + epoch a bad seed?
# 3. **`clip_to_norm`** (45 min). The clipping of one gradient, with a backward. Guess first what remains of the part of
#    $dy$ that points along $g$.
# 4. **`fewest_positions`** (90 min). `make_batches` cuts greedily. What is the least that any cut into $K$ batches
#    could take? Then find out how far a greedy cut of some random lengths is from it.

# %%
print(check_exercise("ex13", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | data | line $n$ translates line $n$: count both; clean training only; no sentence in two sets |
# | vocabulary | learned from the training split alone; one for both languages |
# | padding | random order: $1 - \bar l / \mathbb E[M]$ with $\mathbb E[M] = \sum_l (1 - F(l)^B)$; in order of length nearly none |
# | batch | limited by positions, $B (S + T)$; batches shuffled, lengths with some noise |
# | loss | each shard divides by $N$ of the *whole* step; then sums are right, $\sum_k \partial L_k / \partial \theta = \partial L / \partial \theta$ |
# | clipping | $g \cdot c / \max(\lVert g \rVert, c)$, with the norm of the summed gradient; it protects $v$ and the direction, and with $\beta_2 = 0.999$ the length of the step |
# | resume | θ, $m$, $v$, $t$, counters; random numbers from (seed, step) and (seed, epoch) |
# | first loss | about $\log V$ |
# | curves | NLL against NLL; BLEU comes late; choose by validation, report the test once |
#
# **Your own Transformer.** Now it has `gradient_norm` and `clip_scale`: `minitransformer check own`. A training runs on
# your file, whatever is still missing: `minitransformer train toy --own answers/own.py`.
#
# **Next:** how the translations are searched for, and what BLEU counts, in
# [lesson 14](14_decoding.ipynb).
