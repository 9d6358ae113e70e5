# %% [markdown]
# # 18 · Your own Transformer
#
# **You will** put your functions in the places of the package's, step by step, until none but yours run; train
# on three wrong gradients, and see the loss fall with each of them; and train a translator in which every
# function, forward and backward, is yours.
#
# | | |
# |---|---|
# | In the paper | all of it |
# | In the package | `minitransformer/course/own/` |
# | You need | lessons [02](02_backpropagation.ipynb) to [14](14_decoding.ipynb); [the plan](README.md) has the way |
# | Time | three quarters of an hour to read; ten hours to write, most of them in those lessons |

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
import tempfile
import time
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import (
    Adam,
    Transformer,
    TransformerConfig,
    Translator,
    decoding,
    select_device,
)
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    ORANGE,
    PURPLE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.course.own import OwnFile, own
from minitransformer.course.own.check import check_own
from minitransformer.course.own.package import parts_of_the_transformer
from minitransformer.data.text.batches import encode_pairs, make_batches
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import CheckError
from minitransformer.optim import clipping, schedule

use_style()
device = select_device("cpu")  # "cuda" runs the model of section 6 on a GPU
rng = np.random.default_rng(18)

# %% [markdown]
# ## 1 · Whose Transformer is it?
#
# In the lessons you have followed every derivation. But the model that learned to translate was the
# package's. The best test of whether you can build one is to build one. It is a single file,
# [lessons/exercises/own.py](exercises/own.py), with a stub for each function that a Transformer is made of,
# and needs nothing but NumPy. Make your copy once, with those of all exercises:
#
# ```sh
# cp -r lessons/exercises answers
# minitransformer check own
# ```
#
# The second line says which functions in `answers/own.py` are right, what is probably wrong with the others,
# and what to do next. Run it after each function.
#
# This lesson runs on your file if its first part is right, a whole Transformer. Until then it runs on the solution,
# so you can read it before you write a line.


# %%
def complete_file():
    """answers/own.py, if it is there and its first part is right, and the solution otherwise."""
    for path in (Path("answers/own.py"), Path("../answers/own.py")):
        if path.is_file():
            try:
                report = check_own(OwnFile(path, PARTS))
            except CheckError as error:
                print(f"answers/own.py cannot be run: {error}")
                continue
            if report.right:
                print("This lesson runs on your file, answers/own.py.")
                return path
            print(f"answers/own.py: {str(report).splitlines()[-1]}.")
    print("This lesson runs on the solution, lessons/solutions/own.py.")
    return SOLUTION


folders = Path("solutions"), Path("lessons/solutions")  # as seen from lessons/, or from above it
SOLUTION = next((place / "own.py" for place in folders if (place / "own.py").is_file()), None)
assert SOLUTION, "open this lesson in the project's folder lessons/; it needs solutions/own.py"
PARTS = parts_of_the_transformer()
OWN = complete_file()
minutes = sum(part.minutes for part in PARTS)
print(f"{len(PARTS)} parts, most of them with a backward; about {minutes / 60:.0f} hours to write")

# %% [markdown]
# To train on, we take sentences of at most six words from the toy corpus, and models of one layer a side.

# %%
corpus = toy_corpus()
pairs, test = (
    [(german, english) for german, english in corpus[split] if len(german.split()) <= 6]
    for split in ("train", "test")
)
vocabulary = Vocabulary.train([text for pair in pairs for text in pair], 500)
V = len(vocabulary)
encoded, _ = encode_pairs(vocabulary, pairs, max_length=64)


def new_model(width, seed):
    config = TransformerConfig.preset(
        "toy",
        V,
        d_model=width,
        d_ff=4 * width,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=0.05,
        max_length=64,
    )
    return Transformer(config, seed)


def batches_of(seed, tokens=800):
    """Batches without end, the same for the same seed."""
    order = np.random.default_rng(seed)
    while True:
        yield from make_batches(encoded, tokens, order)


batch = next(batches_of(seed=0))
print(f"{len(pairs):,} pairs to learn from, {V} subwords, {batch.size} of them in the first batch")

# %% [markdown]
# ## 2 · One function stands in
#
# Something runs before everything is written: for what is still a stub, the package's function runs. Here is
# a file in which only `layer_norm` and its backward are written:

# %%
folder = tempfile.TemporaryDirectory()  # for the files of this lesson; removed at its end


def written(name, text):
    path = Path(folder.name, name)
    path.write_text(text, encoding="utf-8")
    return path


def file_with(parts, name):
    """The whole file with stubs behind it, in which only these parts are left: the last one counts."""
    stubs = [
        f"def {function}(*args, **kwargs):\n    raise NotImplementedError\n"
        for part in PARTS
        if part not in parts
        for function in part.functions
    ]
    return written(name, "\n\n".join([OWN.read_text(encoding="utf-8"), *stubs]))


def loss_and_gradient(path=None):
    """Of a new model on the first batch, with the functions in a file, or only the package's."""
    with own(path) if path else nullcontext() as mine:
        model = new_model(width=32, seed=0)
        (loss, _), cache = model.loss(batch)
        model.loss_backward(1.0, cache)
    return float(loss), model.flat.grad, mine


norm_alone = [part for part in PARTS if part.functions[0] == "layer_norm"]
loss, gradient, mine = loss_and_gradient(file_with(norm_alone, "norm_alone.py"))
print("yours:        ", ", ".join(sorted(mine.used)))
print("the package's:", ", ".join(sorted(mine.others)))
package_loss, package_gradient, _ = loss_and_gradient()
difference = abs(gradient - package_gradient).max() / abs(package_gradient).max()
print(f"loss {loss:.6f}, and {package_loss:.6f} without you; gradients differ by {difference:.0e}")
assert mine.used == {"layer_norm", "layer_norm_backward"}
assert abs(loss / package_loss - 1) < 1e-6
assert difference < 1e-4  # float32 has seven digits, and sums lose some

# %% [markdown]
# Inside `with own(path) as mine:`, yours are called wherever the package would call its own, and `mine.used`
# and `mine.others` note what has run. Functions of yours call each other by their names, as ever; if your
# `multi_head_attention` calls a `linear` that is still a stub, it gets the package's. A cache goes to the
# backward that can read it, so your forward may put into it whatever you like.
# ([Lesson 17](17_making_it_fast.ipynb) shows how a function can take another's place.)

# %%
source_of(own)

# %% [markdown]
# ## 3 · The way: seven steps
#
# Any order will do. This is that of the lessons; each step needs those above it. A step is two evenings: one to
# read its lessons, two hours at most, and one to write. The times are for writing alone.
#
# | step | lessons | write | what you can see then |
# |---|---|---|---|
# | 1 | [02](02_backpropagation.ipynb) | **`linear`** (25 min). **`relu`** (10 min). **`dropout`** (25 min). **`feed_forward`** (25 min). | every product with a weight matrix is yours |
# | 2 | [04](04_softmax_cross_entropy.ipynb), [05](05_tokens_and_embeddings.ipynb) | **`softmax`** (25 min). **`cross_entropy`** (45 min). **`embedding`** (25 min). | the loss, and the gradient with which every backward begins |
# | 3 | [06](06_positions.ipynb), [07](07_layer_norm.ipynb) | **`positional_encoding`** (25 min). **`layer_norm`** (45 min). | what a token is to a layer: its vector, its place, its scale |
# | 4 | [08](08_attention.ipynb), [09](09_multi_head_attention.ipynb) | **`padding_mask`** (10 min). **`causal_mask`** (10 min). **`scaled_dot_product_attention`** (45 min). **`split_heads`** (10 min). **`merge_heads`** (10 min). **`multi_head_attention`** (45 min). | attention, and every map of where it looks |
# | 5 | [10](10_residual_connections.ipynb), [11](11_the_transformer.ipynb) | **`residual`** (10 min). **`encoder_layer`** (45 min). **`decoder_layer`** (45 min). | the model, all of its layers |
# | 6 | [12](12_learning.ipynb), [13](13_training_for_real.ipynb) | **`adam_update`** (25 min). **`noam`** (10 min). **`clip_scale`** (10 min). | the whole training step |
# | 7 | [14](14_decoding.ipynb) | **`greedy`** (25 min). **`beam_search`** (45 min). | every word that it says |
#
# After each step two commands:
#
# ```sh
# minitransformer check own
# minitransformer train toy --own answers/own.py
# ```
#
# The second trains a translator in which yours run, as far as you have written them. It checks them first,
# and refuses wrong ones. Each training has a folder of its own, `runs/own`, then `runs/own-2`; `--epochs 1`
# makes it short. If yours are right, the first losses are the package's, to rounding, from the first step to
# the last. This is the best proof that a function fits into its place. We make it here, with seven files, one
# for each step, and for each an update of the parameters and two short translations:


# %%
def update_and_translate():
    model = new_model(width=32, seed=0)
    adam = Adam(model.flat)
    (loss, _), cache = model.loss(batch, np.random.default_rng(1), smoothing=0.1)
    model.loss_backward(1.0, cache)
    scale = clipping.clip_scale(clipping.gradient_norm(model.flat.grad), 1.0)
    adam.step(min(schedule.noam(1, 32, 100), schedule.linear_decay(1, 1e-3, 100, 200)), scale)
    decoding.greedy(model, batch.source[:1], max_length=4)
    decoding.beam_search(model, batch.source[:1], max_length=4)
    return float(loss)


WAY = (("02",), ("04", "05"), ("06", "07"), ("08", "09"), ("10", "11"), ("12", "13"), ("14",))
expected, so_far = update_and_translate(), []
print(f"the package: loss {expected:.6f}")
for step, lessons in enumerate(WAY, start=1):
    new = [part for part in PARTS if part.lesson in lessons]
    so_far += new
    with own(file_with(so_far, f"step_{step}.py")) as mine:
        loss = update_and_translate()
    minutes = sum(part.minutes for part in new)
    print(f"step {step}: loss {loss:.6f}, {len(so_far):2} of {len(PARTS)} parts yours,", end=" ")
    print(f"{len(mine.others):2} functions of the package's run; {minutes:3} min to write")
    assert abs(loss / expected - 1) < 1e-6
assert not mine.others
count = sum(len(part.functions) for part in PARTS)
assert len(mine.used) == count or OWN != SOLUTION  # yours may do without some of them

# %% [markdown]
# After the fifth step the package still does the update and the search. After the seventh it only
# builds the model, cuts the batches, and calls you.
#
# ### What a layer looks like without objects
#
# The package's layers own their parameters. Yours are given them: a function, its arguments, its results. In
# the largest, those of the fifth step, parameters come in groups, and their gradients are returned in the
# same groups.

# %%
B, S, D, F, H = 2, 5, 8, 16, 2
functions = OwnFile(OWN).functions
x, dy = rng.standard_normal((2, B, S, D))
attention = tuple(rng.standard_normal((4, D, D)) / np.sqrt(D))
norm = np.ones(D), np.zeros(D)
network = rng.standard_normal((D, F)), np.zeros(F), rng.standard_normal((F, D)), np.zeros(D)

y, cache = functions["encoder_layer"](x, attention, norm, network, norm, H)
gradients = functions["encoder_layer_backward"](dy, cache)
dx, dattention, dattention_norm, dnetwork, dnetwork_norm = gradients

shape_table(
    {"B": B, "S": S, "D": D, "F": F},
    x=(x, "B S D", "a batch of sentences"),
    attention=(attention[0], "D D", "the first of four: queries, keys, values, output"),
    norm=(norm[0], "D", "gain, the first of two; the other is the shift"),
    network=(network[0], "D F", "the first of four: W₁, b₁, W₂, b₂"),
    y=(y, "B S D", "what the layer makes of x"),
    dx=(dx, "B S D", "its gradient, from dy"),
    dattention=(dattention[0], "D D", "the first of four again"),
    dnetwork=(dnetwork[0], "D F", "likewise"),
)

# %% [markdown]
# ## 4 · Three wrong gradients
#
# Suppose that you skip the check. You write everything, you train, the loss falls. Is it right?
#
# Here are three slips that people make. Each is in a backward alone: the model still computes what it should.
# (They are added to the solution, below the right function: the last one counts.)

# %%
SLIPS = {
    "LayerNorm without its two means": (
        "layer_norm",
        """
def layer_norm_backward(dy, cache):  # as if μ and σ were constants
    x_hat, sigma, gamma = cache
    rows = tuple(range(dy.ndim - 1))
    return gamma * dy / sigma, (dy * x_hat).sum(axis=rows), dy.sum(axis=rows)
""",
    ),
    "softmax without its row sum": (
        "softmax",
        """
def softmax_backward(dweights, weights):  # as if every weight depended on its own score alone
    return weights * dweights
""",
    ),
    "dbias as a mean": (
        "linear",
        """
the_right_one = linear_backward


def linear_backward(dy, cache):  # the mean over the rows, not their sum
    dx, dweight, dbias = the_right_one(dy, cache)
    return dx, dweight, None if dbias is None else dbias / dy[..., 0].size
""",
    ),
}
files = {"right": SOLUTION}
for slip, (name, code) in SLIPS.items():
    solution = SOLUTION.read_text(encoding="utf-8")
    files[slip] = written(f"wrong_{name}.py", f"{solution}\n\n{code}")

# %% [markdown]
# This is what `minitransformer check own` says of each file, without the functions that are right:

# %%
for slip, (name, _) in SLIPS.items():
    wrong = [v for v in check_own(OwnFile(files[slip], PARTS)).verdicts if v.status != "right"]
    print(f"{slip}\n", *wrong, sep="\n", end="\n\n")
    assert name in [verdict.part.functions[0] for verdict in wrong]

# %% [markdown]
# Now we train on them. The training loop is the package's, without what is not needed here:


# %%
def train(path, width, steps, seed, peak, tokens=800):
    """NLL of each step (nats a token), the model, and the OwnFile or None for the package alone."""
    with own(path) if path else nullcontext() as mine:
        model = new_model(width, seed)
        adam = Adam(model.flat)
        curve = []
        for step, batch in enumerate(islice(batches_of(seed, tokens), steps), start=1):
            model.zero_grad()
            masks = np.random.default_rng((seed, step))
            (_, nll), cache = model.loss(batch, masks, smoothing=0.1)
            model.loss_backward(1.0, cache)
            scale = clipping.clip_scale(clipping.gradient_norm(model.flat.grad), 1.0)
            adam.step(schedule.linear_decay(step, peak, 40, steps), scale)
            curve.append(float(nll))
    return curve, model, mine


STEPS, SEEDS = 160, (0, 1, 2)
curves = {
    name: np.array([train(path, 32, STEPS, seed, peak=1e-2)[0] for seed in SEEDS])
    for name, path in files.items()
}  # (seeds, STEPS) each
ends = {name: runs[:, -20:].mean(axis=1) for name, runs in curves.items()}  # (seeds,) each
begins = {name: runs[:, :20].mean(axis=1) for name, runs in curves.items()}
print("NLL (nats a token), mean of 20 steps, of each seed")
print(f"{'':33}{'the first 20':^18}   {'the last 20':^18}")
for name in curves:
    first, last = ("  ".join(f"{nll:.2f}" for nll in of[name]) for of in (begins, ends))
    print(f"{name:33}{first:^18}   {last:^18}")

# %% [markdown]
# Here are the curves. Every kind of line is drawn three times, for three seeds: other parameters to begin with, other
# batches, other dropout.

# %% tags=["hide-input"]
LOOKS = {
    "softmax without its row sum": dict(color=PURPLE, ls=":"),
    "LayerNorm without its two means": dict(color=VERMILION, ls="--"),
    "right": dict(color=BLUE, ls="-"),
    "dbias as a mean": dict(color=ORANGE, ls="none", marker="o", ms=6, mfc="none"),
}
figure, axes = plt.subplots(figsize=(8.5, 4.6))
for name, look in LOOKS.items():
    for i, run in enumerate(curves[name]):
        smooth = run.reshape(-1, 10).mean(axis=1)
        axes.plot(np.arange(5, STEPS, 10), smooth, **look, label=None if i else name)
axes.axhline(np.log(V), color=BLACK, lw=0.8)
axes.text(STEPS, np.log(V), "ln V: all subwords equally probable", ha="right", va="bottom")
axes.set(xlabel="step", ylabel="NLL, mean of 10 steps (nats a token)", ylim=(0, None))
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %% [markdown]
# What can they tell?
#
# - **Every loss falls**, with each wrong gradient and each seed, by more than a nat in the first sixty steps. In
#   the first thirty nothing tells them apart.
# - **Without the two means** the loss goes on falling, and lags behind. If you have only this line, you see a
#   model that learns a little slowly, and blame the learning rate.
# - **Without the row sum** it soon stops falling, and rises again.
# - **With the wrong bias** the circles lie on the lines. No curve will tell you.

# %%
for slip in SLIPS:
    fallen = begins[slip] - curves[slip][:, 40:60].mean(axis=1)
    assert (fallen > 1).all()
assert (ends["LayerNorm without its two means"] > ends["right"] + 0.2).all()
assert (ends["softmax without its row sum"] > ends["right"] + 1).all()
assert abs(ends["dbias as a mean"] / ends["right"] - 1).max() < 0.02

# %% [markdown]
# ### Why does it fall at all?
#
# A small step along $-w$, for any $w$, changes the loss by
#
# $$
# L(\theta - \eta \, w) - L(\theta) \approx -\eta \; w \cdot g
# $$
#
# with $g$ the right gradient. **So the loss falls if** $w \cdot g \gt 0$: half of all directions will do. A
# slip in one backward leaves most of $g$ as it is, and stays in that half. Here is the cosine of the angle
# between $w$ and $g$, in the first step:

# %%
_, g, _ = loss_and_gradient(SOLUTION)
for slip in SLIPS:
    _, w, _ = loss_and_gradient(files[slip])
    cosine = w @ g / (np.linalg.norm(w) * np.linalg.norm(g))
    print(f"{cosine:.2f}  {slip}")
    assert cosine > 0.5

# %% [markdown]
# Later, a training ends where *its* gradient is zero on average, and a wrong one is zero somewhere else. And
# the third slip? Its $w$ has nearly the right direction, and Adam takes back the rest. It divides every
# gradient by its own size: with $c \, g$ in place of $g$, $\hat m$ becomes $c \, \hat m$ and $\hat v$ becomes
# $c^2 \hat v$, and the step stays the same, up to its ε:
#
# $$
# \eta \, \frac{c \, \hat m}{\sqrt{c^2 \, \hat v}} = \eta \, \frac{\hat m}{\sqrt{\hat v}} .
# $$
#
# The factor is the number of rows, which differs only a little from batch to batch. So the mistake stays
# hidden until somebody uses another optimiser. **A falling loss says that a gradient is not upside down. A
# gradient check says that it is right.**
#
# On the command line, `--anyway` trains on wrong functions, to see for yourself:
#
# ```sh
# minitransformer train toy --own answers/own.py --anyway
# ```
#
# ## 5 · The whole run
#
# Now all of them at once, with a wider model and more steps. Then the same with the package's readable
# functions, from the same seed. We measure the time of both:

# %%
WIDTH, LONG = 64, 400
runs = {}
for name, path in (("yours", OWN), ("the package's", None)):
    start = time.perf_counter()
    runs[name] = train(path, WIDTH, LONG, seed=0, peak=8e-3, tokens=1000)
    milliseconds = 1000 * (time.perf_counter() - start) / LONG
    print(f"{name:14} {milliseconds:5.1f} ms a step, NLL of the last {runs[name][0][-1]:.3f}")
my_curve, my_model, mine = runs["yours"]
package_curve, _, _ = runs["the package's"]
apart = abs(np.array(my_curve) / np.array(package_curve) - 1)
print(f"the first 20 losses differ by {apart[:20].max():.0e} of their size at most")
assert apart[:20].max() < 1e-6 or OWN != SOLUTION

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 4))
at = np.arange(1, LONG + 1)
axes.plot(at, my_curve, color=BLUE, lw=4, alpha=0.5, label="yours")
axes.plot(at, package_curve, color=BLACK, lw=0.8, ls="-", label="the package's, the same seed")
axes.set(xlabel="step", ylabel="NLL (nats a token)", ylim=(0, None))
axes.legend()
plt.show()

# %% [markdown]
# The two curves lie one on the other. Functions that add in the same order agree bit for bit. Another order
# rounds differently: then the first losses agree to five or six digits, and after some hundred steps the
# curves may part with nothing wrong. The times are about the same, as the work is the same.
#
# ### It speaks
#
# Your search finds what it says, a word at a time, each from the whole sentence so far. (The package's search
# keeps the keys and values of what has been said, [lesson 14](14_decoding.ipynb). Yours does not, and takes
# longer.)

# %%
SHOWN = (
    "Dieses Kind soll meine Mädchen begrüßen.",
    "Diesen Hunden folgt diese Künstlerin.",
    "Mein kleiner Affe ist alt.",
)
sources, references = (list(texts) for texts in zip(*test, strict=True))
assert not {*SHOWN} & {german for german, _ in pairs}  # none is learned by heart
with own(OWN) as speaking:
    translator = Translator(my_model, vocabulary, threads=1)
    said = translator.translate(sources, beam_size=1)  # greedy
    found = [best for best, *_ in translator.translations([*SHOWN], attention=True)]
right = np.mean([text == english for text, english in zip(said, references, strict=True)])
print(f"{right:.0%} of {len(sources)} test sentences are translated exactly, by greedy search.")
print("By beam search:")
for german, translation in zip(SHOWN, found, strict=True):
    print(f"{german}\n  → {translation.text}")
used, others = mine.used | speaking.used, mine.others | speaking.others
print(f"ran: {len(used)} functions of yours, {len(others)} of the package's")
assert not others
assert right > 0.3

# %% [markdown]
# For the first sentence, the picture shows where each chosen token looks:

# %% tags=["hide-input"]
best = found[0]
weights = best.attention[0].mean(axis=0)  # (T, S), of the only layer the mean of its heads
columns, rows = (
    [piece.replace("▁", " ") for piece in pieces] for pieces in (best.source_pieces, best.pieces)
)
figure, axes = plt.subplots(figsize=(6.4, 4.6))
image = axes.imshow(weights, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
axes.set_xticks(range(len(columns)), columns, rotation=60, ha="left")
axes.xaxis.tick_top()
axes.xaxis.set_label_position("top")
axes.set_yticks(range(len(rows)), rows)
axes.set(xlabel="looked at: German", ylabel="chosen: English, from top to bottom")
axes.grid(False)
figure.colorbar(image, label="attention weight, mean of 4 heads", shrink=0.8)
plt.show()

# %% [markdown]
# These are the weights of your model, computed from its parameters by the package's functions. For *greet* it
# looks ahead, over the object, at the pieces of *begrüßen*, the verb at the end; then back, at *meine
# Mädchen*. And it says *girl*, not *girls*: *Mädchen* is both, and only *meine* tells which. (Rounding
# matters where a model has not quite learned: on your machine, or with your functions, words and weights may
# differ.)
#
# This was a run of seconds: short sentences, one layer a side, and many wrong answers. The recipe `toy` is
# the whole: all of the toy corpus, two layers a side, twice the width, twelve times through. It takes
# minutes:
#
# ```sh
# minitransformer train toy --own answers/own.py
# minitransformer translate runs/own --own answers/own.py \
#     "Während das Kind schläft, isst mein hungriger Affe den teuren Keks."
# ```
#
# At its end it writes a **certificate** into the run's folder, `certificate.md`: which functions are yours
# and which of the package's ran, how far the first losses are from the package's, how many test sentences are
# exactly right, and the fingerprint of your file. A copy of the file stays with the run; it runs only where
# `--own` names it.
#
# ## 6 · What you have now
#
# **An ordinary model.** Your functions trained parameters, and these work for the package's functions as
# well, with its fast twins, on any device:

# %%
translator = Translator(my_model.to(device), vocabulary, threads=1)
packages = translator.translate(sources, beam_size=1)
same = np.mean([a == b for a, b in zip(said, packages, strict=True)])
print(f"the package's functions say the same in {same:.0%} of {len(sources)} sentences")
assert same > 0.9

# %% [markdown]
# **A place for experiments.** Change one function, train, compare: RMSNorm in place of LayerNorm, another
# activation, another schedule. `check own` calls it wrong, since it is another function; `--anyway` trains
# it.
#
# It is not fast: no twin of [lesson 17](17_making_it_fast.ipynb) helps your functions. And functions that say
# `np.exp` run on the CPU alone. For a GPU they ask their arrays which library they belong to,
# `xp = array_namespace(x)`, as the package does ([appendix 90](90_arrays_and_devices.ipynb)).
#
# ## 7 · Exercises
#
# There is one: [lessons/exercises/own.py](exercises/own.py), in the order of section 3. Each stub
# has the formula, the shapes and a hint; the lessons have the derivations. When `minitransformer check own`
# calls a function right, compare it with the one in [lessons/solutions/own.py](solutions/own.py), and keep
# yours.
#
# Then your Transformer is complete. The file has a second part. First, what language models have taken in the places of
# its blocks since: **`rms_norm`** (25 min). **`silu`** (10 min). **`swiglu`** (25 min). **`rotary`** (45 min).
# **`grouped_query_attention`** (45 min). **`adamw_update`** (10 min). They belong to
# [lesson 27](27_since_2017.ipynb). Then what networks of pictures are made of: **`convolution_2d`** (45 min).
# **`max_pooling`** (25 min). **`batch_norm`** (45 min). **`momentum_update`** (10 min). They belong to lessons
# [29](29_seeing.ipynb), [30](30_depth.ipynb) and [32](32_momentum.ipynb). All are checked as the others are. No training
# runs on them, as `--own` is for the layers of the paper.
#
# You can also write functions in new cells here, and run the cell below again: it checks those that it finds
# in the notebook.

# %%
folder.cleanup()
print(check_exercise("own", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | the file | `answers/own.py`, a copy of `lessons/exercises/own.py`; NumPy and nothing else |
# | after each function | `minitransformer check own` |
# | after each step | `minitransformer train toy --own answers/own.py` |
# | in Python | `with own("answers/own.py") as mine:`; then `mine.used`, `mine.others` |
# | a stub | is the package's, also for those of yours that call it |
# | the loss falls | if $w \cdot g \gt 0$; it proves no more than that |
# | Adam | hides a factor: $c \, g$ and $g$ make the same step |
# | the same seed | gives the same losses as the package's, to rounding |
#
# **Your own Transformer.** When `minitransformer check own` says that it is complete, open this lesson again: it
# will run on yours.
#
# **Next:** what attention replaced, and what each way is good for, measured:
# [lesson 19](19_recurrence.ipynb) begins with recurrence. Or a translator of text of your own:
# `minitransformer train` takes files with a sentence a line, as [lesson 13](13_training_for_real.ipynb) does,
# and `--own` with it.
