# %% [markdown]
# # 22 · A language model
#
# **You will** take the source away from a Transformer and see what is left; train it to go on with a text; find the
# two heads by which it repeats what it has read only once, and switch them off; and draw from its probabilities in
# three ways.
#
# | | |
# |---|---|
# | In the paper | section 3.1, the decoder, without its middle sublayer |
# | In the package | `minitransformer/models/language_model.py`; `minitransformer/decoding/`: `sampling.py` and others |
# | You need | attention and its masks, as in [lesson 08](08_attention.ipynb); logarithms |
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
from collections import Counter
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, accelerated, select_device
from minitransformer.cases.case import LABELS, TARGET
from minitransformer.cases.models import ModelLoss, small_language_model_config
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLUE, VERMILION, shape_table, source_of, use_style
from minitransformer.course.stops import show
from minitransformer.data.text.batches import LabelledBatch
from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import BOS, EOS, PAD, Vocabulary
from minitransformer.decoding.language_model import LanguageModelDecoder
from minitransformer.decoding.sampling import sampling_probabilities
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_module
from minitransformer.inference.generator import TextGenerator
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.masks import padding_mask
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.n_gram import NGramModel
from minitransformer.optim import schedule
from minitransformer.tasks.language_modelling import stream_of, windows

use_style()
device = select_device("cpu")  # "cuda" trains and generates on a GPU
rng = np.random.default_rng(22)

# %% [markdown]
# ## 1 · Half a Transformer
#
# A translator gets a sentence and says it again in another language. What if it gets nothing? Then nobody tells it
# *what* to say. But it can learn what people say at all: after *the dog is*, the word *here* is more frequent than
# *were*. A **language model** gives a probability to every text of tokens $x_1 \dots x_n$. Apply
# $p(x_1, x_2) = p(x_1) \, p(x_2 \mid x_1)$ again and again:
#
# $$
# p(x_1, \dots, x_n) = \prod_{t=1}^{n} p(x_t \mid x_1, \dots, x_{t-1}) .
# $$
#
# So one question is enough: **given the tokens so far, how probable is each next one?** A model that answers it can
# also write. It draws a token, adds it to the text, and asks again.
#
# The decoder of a Transformer answers this question already. There is no source now, so its attention to the source is
# left out. What stays is self-attention and feed-forward. That is an **encoder's** layer, `encoder_layer` of
# [lesson 11](11_the_transformer.ipynb). The package's, once yours is right:

# %%
show("encoder_layer")

# %% [markdown]
# Only the mask differs. In an encoder a position may look at all others. Here it may look at itself and at those
# before it: the mask is causal. **A causal mask makes an encoder a decoder.** The package's `LanguageModel` has
# an embedding, learned positions, a stack of encoder layers, and the output projection:

# %%
source_of(LanguageModel.features, LanguageModel.mask)

# %% [markdown]
# Here is a small one with random weights. The **label** of a position is the token that follows: the ids moved by one.

# %%
B, T, D, V = 2, 5, 8, 11
text = np.array([[4, 7, 5, 9, 6, 10], [8, 4, 4, 7, 10, 5]])  # (B, T + 1)
ids, labels = text[:, :-1], text[:, 1:]
small = LanguageModel(
    LanguageModelConfig(V, D, num_heads=2, d_ff=16, num_layers=2, max_length=T), device=device
)
mask = small.mask(device.asarray(ids))
y, _ = small.features(ids)
logits, _ = small.forward(ids)

shape_table(
    {"B": B, "T": T, "D": D, "V": V},
    ids=(ids, "B T", "what the model sees"),
    labels=(labels, "B T", "what comes next, at each position"),
    mask=(mask, "B 1 T T", "True where the key is not later than the query"),
    y=(y, "B T D", "what the stack makes of each position"),
    logits=(logits, "B T V", "row t scores all tokens that may follow ids 0 … t"),
)

# %% [markdown]
# ### All questions at once
#
# A text of $T$ tokens asks $T$ questions: what follows the first token, the first two, and so on. With a causal mask,
# position $t$ of a layer depends on positions up to $t$ only. This holds layer after layer, so it holds for the logits.
# Row $t$ is the same whether the text goes on or not. One forward pass gives $T$ predictions:

# %%
logits = to_host(logits)
for t in range(1, T + 1):
    alone, _ = small.forward(ids[:, :t])
    assert np.allclose(to_host(alone)[:, -1], logits[:, t - 1], atol=1e-5)
print(f"{T} runs on the beginnings of the text give the {T} rows of one run.")

# %% [markdown]
# ### The measure
#
# A text costs $-\ln p$, in **nats**. The loss is this cost for each of its $n$ tokens, the mean **negative
# log-likelihood**:
#
# $$
# \text{NLL} = -\frac{1}{n} \ln p(x_1, \dots, x_n) = -\frac{1}{n} \sum_{t} \ln p(x_t \mid x_1, \dots, x_{t-1}) .
# $$
#
# Two other forms of this number are easier to read:
#
# - **Perplexity** is $e^{\text{NLL}}$. A model that hesitates between $k$ equally probable tokens gives $1 / k$ to
#   each. Its NLL is $\ln k$, and its perplexity is $k$.
# - **Bits per character** are $-\log_2 p$ of the whole text, divided by its number of characters. As
#   $\log_2 p = \ln p / \ln 2$, this is NLL $/ \ln 2$ times the tokens for each character. A good code needs about
#   $-\log_2 p$ bits to store the text (Shannon 1948).
#
# A perplexity belongs to its tokens. A model of words has a larger one than a model of letters, and may still be the
# better model. Bits per character can be compared (the first exercise).


# %%
def log_probabilities(model, ids):
    """ln p of every token after every position, (B, T, V)."""
    logits = to_host(model.forward(ids)[0]).astype(np.float64)
    logits -= logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def costs(model, batch):
    """−ln p of each label, (B, T)."""
    log_p = log_probabilities(model, batch.ids)
    return -np.take_along_axis(log_p, batch.labels[..., None], axis=-1)[..., 0]


batch = LabelledBatch.of(ids, labels)
(loss, _), _ = small.loss(batch)
nll = costs(small, batch).mean()
assert np.isclose(float(to_host(loss)), nll, rtol=1e-5)
print(f"NLL {nll:.3f} nats, perplexity {np.exp(nll):.1f} of {V} tokens")
print(f"if each token is a character: {nll / np.log(2):.2f} bits per character")
of_all_labels = -log_probabilities(small, ids).mean()
derived = np.log(V) + logits.var(axis=-1).mean() / 2
print(
    f"over all labels: NLL {of_all_labels:.2f}; ln V + s² / 2 = {derived:.2f}; ln V = {np.log(V):.2f}"
)
assert abs(of_all_labels - derived) < 0.05

# %% [markdown]
# Why more than 11? This model has learned nothing, and does not say so: its logits are random numbers, of some variance
# $s^2$. For normal numbers of mean 0 the mean of $e^z$ is $e^{s^2 / 2}$. So $\ln \sum_i e^{z_i}$ is about
# $\ln V + s^2 / 2$, and the label's logit, which is to be subtracted, is 0 in the mean. The last LayerNorm gives $y$
# the squared length $D$, and the output's weights have about the variance $1 / D$: so $s^2$ is near 1. (These ten labels
# are luckier than the mean.)
#
# ### GPT
#
# **GPT** is such a model, trained on a large collection of books (*generative pre-training*: Radford, Narasimhan,
# Salimans and Sutskever 2018). GPT-2 (Radford and others 2019) and GPT-3 (Brown and others 2020) have read more. Like
# ours they have learned positions and, from GPT-2 on, LayerNorm before each sublayer. Unlike ours they have biases
# in attention and, for ReLU, a GELU, $x \, \Phi(x)$, which has a rounded corner ($\Phi(x)$ is the share of a standard
# normal distribution below $x$; Hendrycks and Gimpel 2016). They have 40,000 subwords and more, where ours has 400. The
# largest difference is the size: GPT has 12 layers, GPT-2 up to 48, GPT-3 96.
#
# ## 2 · A small one, trained
#
# First the proof that its gradients are right. `check_module` compares them with central differences. `ModelLoss` is
# the model with its loss:


# %%
def check(kind):
    model = ModelLoss(kind(small_language_model_config()))
    report = check_module(model, TARGET, LABELS, directions=3, tolerance=1e-6)
    assert report.right
    print(f"{kind.__name__}: largest error of all gradients {report.max_error:.0e}")


check(LanguageModel)

# %% [markdown]
# Our text is the English side of the toy corpus, cut into 400 subwords, or **pieces**, as in
# [lesson 05](05_tokens_and_embeddings.ipynb) (▁ begins a word). It is one long row of ids, with an end symbol between
# sentences. `windows` cuts parts out of it. We let each begin where a sentence begins:

# %%
corpus = toy_corpus()
english = {split: [target for _, target in corpus[split]] for split in ("train", "validation")}
vocabulary = Vocabulary.train(english["train"], 400)
stream = stream_of(vocabulary, [(text,) for text in english["train"]])
CONTEXT, ROWS, STEPS = 24, 16, 650
starts = np.flatnonzero(stream[: -CONTEXT - 1] == EOS)


def sentences(draw):
    return windows(stream, draw.choice(starts, ROWS), CONTEXT)


def learn(model, batch_of, steps, peak, seed=22):
    """Train by Adam on batches that batch_of(generator) gives; returns the loss of each step."""
    draw, optimizer, losses = np.random.default_rng(seed), Adam(model.flat), []
    with accelerated():  # the faster of the package's functions
        for step in range(1, steps + 1):
            model.zero_grad()
            (loss, _), cache = model.loss(batch_of(draw))
            model.loss_backward(1.0, cache)
            optimizer.step(schedule.linear_decay(step, peak, 60, steps))
            losses.append(float(to_host(loss)))
    return np.array(losses)


def small_model(kind=LanguageModel, seed=22):
    sizes = dict(num_heads=2, d_ff=128, num_layers=2, dropout=0.0, max_length=CONTEXT)
    return kind(LanguageModelConfig(len(vocabulary), 64, **sizes), seed=seed, device=device)


writers = {seed: small_model(seed=seed) for seed in (22, 1, 2)}
curves = {seed: learn(m, sentences, STEPS, 1.2e-2, seed) for seed, m in writers.items()}
writer, losses = writers[22], curves[22]
print(f"{len(stream):,} pieces; {writer.num_parameters():,} parameters")
print(*vocabulary.pieces(vocabulary.encode(english["train"][2])))

# %% [markdown]
# How good is it? We compare it with models that count. An n-gram model of order $n$ looks at the $n - 1$ tokens
# before, and takes what followed them in the training text ([lesson 19](19_recurrence.ipynb)). Some count characters
# and some the same pieces, all in the whole training text. All are asked for held-out sentences, with their ends.


# %%
def rows_of(texts):
    """A batch with one text in each row, from the end symbol before it to that after it."""
    rows = np.full((len(texts), CONTEXT + 1), PAD, np.int32)
    for row, ids in zip(rows, vocabulary.encode_all(texts), strict=True):
        row[: len(ids) + 2] = EOS, *ids, EOS
    labels = rows[:, 1:]
    ids = np.where(labels == PAD, PAD, rows[:, :-1])  # nothing is asked behind the last label
    return LabelledBatch.of(ids, labels)


held_out = [text for text in english["validation"] if len(vocabulary.encode(text)) < CONTEXT]
characters = sum(len(text) + 1 for text in held_out)  # with the ends
validation = rows_of(held_out)
asked = validation.labels != PAD  # (B, T)
bits = costs(writer, validation) / np.log(2)  # (B, T)
nats = np.array([costs(model, validation)[asked].sum() for model in writers.values()])
of_writers = nats / np.log(2) / characters


def by_counting(vocabulary, order):
    """Bits per character of an n-gram model."""
    counted, wanted = (
        [[*ids, EOS] for ids in vocabulary.encode_all(texts)]
        for texts in (english["train"], held_out)
    )
    nll = NGramModel(counted, order, len(vocabulary), BOS).nll(wanted)
    return nll / np.log(2) * sum(map(len, wanted)) / characters


letters = CharacterVocabulary.train(english["train"])
of_letters = {n: by_counting(letters, n) for n in (3, 5, 7)}
of_pieces = {n: by_counting(vocabulary, n) for n in (2, 3)}
print(f"{len(held_out)} sentences, {characters:,} characters; bits per character")
print("counted characters:", *(f"order {n}: {b:.2f};" for n, b in of_letters.items()))
print("counted pieces:    ", *(f"order {n}: {b:.2f};" for n, b in of_pieces.items()))
print("language models:   ", of_writers.round(2), "with the seeds", *writers)
print(f"perplexity of a piece, seed 22: {2 ** bits[asked].mean():.1f}")
assert of_writers.max() < 0.9 * min(*of_letters.values(), *of_pieces.values())

generator = TextGenerator(writer, vocabulary)
for seed in range(3):
    print("   ", generator.generate("", CONTEXT, seed=seed))

# %% [markdown]
# With each seed it needs fewer bits than any that count: they look at a few tokens before, and it looks at all.
# Sections 4 and 5 use seed 22. `minitransformer train gpt-toy` trains a larger one, of characters.
#
# ### A loss that is too good
#
# Forget the causal mask, and the answer is among what the model sees:


# %%
class Peeking(LanguageModel):
    """A language model that may look ahead."""

    def mask(self, ids):
        return padding_mask(ids, self.config.pad_id)


check(Peeking)
peeking = small_model(Peeking)
losses_of_peeking = learn(peeking, sentences, 200, 8e-3)
for model, of_steps in (writer, losses), (peeking, losses_of_peeking):
    said = TextGenerator(model, vocabulary).generate("The", 12, seed=1)
    last = of_steps[-20:].mean()
    print(f"{type(model).__name__:13} training loss {last:.2f}, and it writes {said!r}")
assert losses_of_peeking[-20:].mean() < losses[-20:].mean() / 2

# %% [markdown]
# The gradient check finds nothing: this is the right gradient of the wrong question. The loss is far lower, and what
# the model writes is worth nothing: it has learned to copy its neighbour to the right, and there is none. So test the
# mask itself: change the last token, and no earlier row of the logits may move.
#
# ## 3 · Induction
#
# What can attention do that counting cannot? You meet a new name in a story. When its first half comes again, you know
# the second: you remember the place where you met it, and read on from there. This is called **induction** (Elhage and
# others 2021). No meaning is needed, so we study it on random letters.
#
# A text begins with three to six different letters. Then come pieces of this beginning, from random places, until the
# text is full. Within a piece the next letter can be known. Where a piece begins it cannot. We ask only for what can be
# known. The other labels are padding.

# %%
LETTERS, LENGTH, FEWEST, MOST = 9, 12, 3, 6


def some_letters(draw, count):
    """All letters in random order, (count, LETTERS), from 1: 0 is padding."""
    return 1 + draw.permuted(np.tile(np.arange(LETTERS), (count, 1)), axis=1)


def asking(text, known):
    """A batch that asks for those letters of the texts that are known."""
    labels = np.where(known[:, 1:], text[:, 1:], PAD)  # (B, LENGTH)
    return LabelledBatch.of(text[:, :-1], labels)


def pieces(draw, count=64):
    """Texts of a beginning and pieces of it; each beginning has FEWEST to MOST letters."""
    number = draw.integers(FEWEST, MOST + 1, count)
    place = np.full((count, LENGTH + 2), -1)  # in the beginning; column -1 is before t = 0
    known = np.zeros((count, LENGTH + 1), bool)
    for t in range(LENGTH + 1):
        following = place[:, t - 1] + 1
        ends = (following >= number) | (draw.random(count) < 0.15)
        known[:, t] = (t >= number) & ~ends
        jump = (t >= number) & ends
        place[:, t] = np.where(jump, draw.integers(number), following)
    text = np.take_along_axis(some_letters(draw, count), place[:, :-1], axis=1)
    return asking(text, known)


def spelled(ids):
    return "".join(" abcdefghi"[i] for i in ids)


batch = pieces(rng, 3)
for row in range(3):
    print(f"text {spelled(batch.ids[row])}\n asks {spelled(batch.labels[row])}")

# %% [markdown]
# At position $t$ a model has to find the earlier position $s$ with the same letter, and say what stands at $s + 1$.
#
# **One layer cannot look there.** The query at $t$ is made of its letter and its position. It can find $s$, where the
# letter is the same. From there it learns where $s$ is. To use that it would have to look a second time. The answer
# stands at $s + 1$. The key there is made of the answer and its position. Nothing in it says what stands before.
# (Sanford, Hsu and Telgarsky 2024 prove that one layer has to be far larger than two for this task.)
#
# **Two layers can** (Olsson and others 2022). A head of layer 1 looks one position back. So each position holds a note:
# *what stood before me*. A head of layer 2 looks for the place whose note is the present letter. That is $s + 1$, and
# its letter is the answer. The first is a **previous-token head**, the second an **induction head**.
#
# Does training find this? We train models of one and of two layers, three seeds each. A layer has two heads. Each batch
# is new, so the training loss is also the loss on texts never seen.

# %%
SEEDS, TRAINING = (1, 2, 3), 300


def reader(layers, seed):
    sizes = dict(num_heads=2, d_ff=96, num_layers=layers, dropout=0.0, max_length=LENGTH)
    return LanguageModel(LanguageModelConfig(LETTERS + 1, 48, **sizes), seed=seed, device=device)


readers = {layers: [reader(layers, seed) for seed in SEEDS] for layers in (1, 2)}
curves = {
    layers: [learn(m, pieces, TRAINING, 8e-3, seed) for seed, m in zip(SEEDS, of, strict=True)]
    for layers, of in readers.items()
}
for layers, of in curves.items():
    print(f"layers: {layers}, loss at the end:", *(f"{c[-20:].mean():.2f}" for c in of))
assert max(c[-20:].mean() for c in curves[2]) < 0.2
assert min(c[-20:].mean() for c in curves[1]) > 0.6

# %% [markdown]
# The losses of the three trainings, each a mean over 10 steps. The thin line is the loss of a guess among all letters.

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4))
for layers, colour, style in ((1, VERMILION, "--"), (2, BLUE, "-")):
    for number, curve in enumerate(curves[layers]):
        means = curve.reshape(-1, 10).mean(axis=1)
        label = "" if number else f"{('one layer', 'two layers')[layers - 1]}, 3 seeds"
        axes.plot(np.arange(5, TRAINING, 10), means, ls=style, color=colour, label=label)
axes.axhline(np.log(LETTERS), color="black", lw=0.8)
axes.text(TRAINING, np.log(LETTERS) + 0.05, f"ln {LETTERS}", ha="right")
axes.set(xlabel="step", ylabel="loss (nats)", ylim=(-0.05, 2.6), xlim=(0, TRAINING))
axes.legend(loc="lower left")
plt.show()

# %% [markdown]
# For almost a hundred steps all go much the same way. Then the models of two layers find something: their loss falls to
# almost nothing. With two seeds that takes some forty steps, with the third more than a hundred, without a jump. (In
# larger language models Olsson and others saw it come suddenly, early in training.) Those of one layer stay far above.
# But at the end they are better than a guess. What do they know? Here is the loss by the place in the text where the
# answer stands, over many texts:


# %%
def by_place(model, batch):
    """The mean loss where the answer is the second, third, … letter of the text, (MOST - 1,)."""
    places = (batch.ids[:, None, :] == batch.labels[..., None]).argmax(axis=-1)  # (B, T)
    nats, known = costs(model, batch), batch.labels != PAD
    return np.array([nats[known & (places == place)].mean() for place in range(1, MOST)])


many = pieces(rng, 1000)
print("place of the answer:", *(f"{place:6}" for place in range(2, MOST + 1)))
for layers, of in readers.items():
    for seed, model in zip(SEEDS, of, strict=True):
        found = by_place(model, many)
        print(f"layers: {layers}, seed {seed}:  ", *(f"{x:6.2f}" for x in found))
        assert (found.max() < 0.2) if layers == 2 else (found[1:3].max() < 0.7 < 1.7 < found.max())

# %% [markdown]
# Where the answer is the third or the fourth letter, one layer mostly knows it; elsewhere it is often no better than a
# guess. How, without a note? With seed 2 it is plain. Where does each head look from the positions that are asked?


# %%
def attention_of(model, ids):
    """The weights of all heads, (layers, B, H, T, T)."""
    _, (_, (layers, _)) = model.features(ids)
    pairs = zip(model.stack.layers, layers, strict=True)
    weights = [layer.self_attention.weights(cache) for layer, ((_, cache, _), _) in pairs]
    return np.stack([to_host(of_layer) for of_layer in weights])


(weights,) = attention_of(readers[1][1], many.ids)  # one layer, seed 2: (B, H, T, T)
asks = many.labels != PAD
earlier = np.tril(np.ones((LENGTH, LENGTH), bool), -1)
alike = (many.ids[:, :, None] == many.ids[:, None, :]) & earlier  # (B, T, T)
for head in range(2):
    of_head = weights[:, head]
    to_same = (of_head * alike).sum(axis=-1)[asks].mean()
    to_places = of_head[..., 2:4].sum(axis=-1)[asks].mean()
    print(f"head {head + 1}: {to_same:.2f} to the same letter, {to_places:.2f} to letters 3 and 4")

# %% [markdown]
# One head looks for the same letter and learns its place. The other one mostly looks at the third and fourth letter.
# The feed-forward network puts the two together: *mine is the second letter, so the third follows*. That is a table of
# places, not a rule, and two heads have room for few places.
#
# ### Is it the rule, or the distance?
#
# Here is an easier training: a random beginning, repeated as a whole. The distance to the earlier letter is then the
# same everywhere in a text, three to six. A model can learn these distances. To tell that from the rule, we test with
# beginnings of 7 to 9 letters, which no training has. We ask for the second round.


# %%
def repeated(draw, count=64, shortest=FEWEST, longest=MOST):
    """Texts whose beginning is repeated as a whole."""
    period = draw.integers(shortest, longest + 1, (count, 1))
    t = np.arange(LENGTH + 1)
    text = np.take_along_axis(some_letters(draw, count), t % period, axis=1)
    return asking(text, (t > period) & (t < 2 * period))


def loss_of(model, batch):
    return float(to_host(model.loss(batch)[0][0]))


shortcut = reader(2, seed=1)
learn(shortcut, repeated, 200, 8e-3, seed=1)
PERIODS = range(FEWEST, LETTERS + 1)
tests = [repeated(rng, 200, period, period) for period in PERIODS]
by_period = {  # (models, periods)
    name: np.array([[loss_of(model, test) for test in tests] for model in models])
    for name, models in (
        ("one layer, pieces", readers[1]),
        ("two layers, pieces", readers[2]),
        ("two layers, whole repetitions", [shortcut]),
    )
}
KNOWN = MOST - FEWEST + 1  # lengths that training has
for name, losses_of in by_period.items():
    means = [f"{x:.2f}" for x in losses_of.mean(axis=0)]
    print(f"{name:30} 3 to 6:", *means[:KNOWN], " 7 to 9:", *means[KNOWN:])
assert by_period["two layers, pieces"].max() < 0.5
learned = by_period["two layers, whole repetitions"]
assert learned[:, :KNOWN].max() < 0.6
assert learned[:, KNOWN:].min() > np.log(LETTERS)

# %% [markdown]
# The model trained on whole repetitions (one, seed 1) has a low loss on beginnings of three to six letters. On longer
# ones it is worse than a guess: what it has learned holds only for the distances of its training. Pieces come from any
# distance, so there only the rule helps. The models of two layers apply it to lengths that they have never seen. (One
# layer does best with three letters: there it is asked at the fourth and fifth position alone, and from there its heads
# look at the second and third letter.) The loss on texts as in training does not tell them apart.
#
# ### The two heads
#
# The weights of all heads are in the cache of each layer. We look at texts with beginnings of 7 to 9 letters. In layer
# 1, at positions 3 to 5: how much attention goes to the position itself, and one and two back? In layer 2, where the
# answer can be known: the same letter stands at $s$; how much goes to $s$, $s + 1$, $s + 2$?


# %%
long = repeated(rng, 300, MOST + 1, LETTERS)
text_of, asking_at = np.nonzero(long.labels)
period = (long.labels != PAD).argmax(axis=1)  # the first position that asks stands a round later
same = asking_at - period[text_of]  # s


def shares(model):
    """Of each head: attention to 0, 1, 2 back in layer 1, and to s, s + 1, s + 2 in layer 2, (H, 3)."""
    first, second = attention_of(model, long.ids)  # (B, H, T, T)
    query = np.arange(3, MOST)
    back = [first[:, :, query, query - k].mean(axis=(0, 2)) for k in range(3)]
    ahead = [second[text_of, :, asking_at, same + k].mean(axis=0) for k in range(3)]
    return np.stack(back, axis=1), np.stack(ahead, axis=1)


shares_of = [shares(model) for model in readers[2]]
print("                layer 1: 0, 1, 2 back   layer 2: s … s + 2")
for seed, (back, ahead) in zip(SEEDS, shares_of, strict=True):
    for head in range(2):
        print(f"seed {seed}, head {head + 1}", *(f"{x:5.2f}" for x in (*back[head], *ahead[head])))
    assert back[:, 1].max() > 0.7
    assert ahead[:, 1].min() > 0.7

back, ahead = shares_of[0]
example = int(np.flatnonzero(period == MOST + 1)[0])
maps = attention_of(readers[2][0], long.ids[[example]])[:, 0]  # (layers, H, T, T)
drawn = maps[0, back[:, 1].argmax()], maps[1, ahead[:, 1].argmax()]

# %% [markdown]
# One text with a beginning of seven letters, and the clearest head of each layer, training with seed 1. The circles are
# where an ideal head would look. In layer 2 only rows that can know the answer have one.

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(9.4, 4.6))
targets = (
    [(t, t - 1) for t in range(1, MOST)],
    [(t, t - MOST) for t in range(MOST + 1, LENGTH)],
)
titles = "seed 1, layer 1: one position back", "layer 2: what followed the same letter"
for axes, weights, circles, title in zip(panels, drawn, targets, titles, strict=True):
    image = axes.imshow(weights, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    for query, key in circles:
        axes.plot(key, query, "o", mfc="none", mec=VERMILION, ms=9, mew=1)
    axes.set_xticks(range(LENGTH), spelled(long.ids[example]))
    axes.set_yticks(range(LENGTH), spelled(long.ids[example]))
    axes.set(title=title, xlabel="key")
    axes.grid(False)
panels[0].set_ylabel("query")
figure.colorbar(image, ax=panels, shrink=0.8, label="attention weight")
plt.show()

# %% [markdown]
# There they are. The head of layer 1 looks one back at the first places, where training had its beginnings. Later
# places need no note. The head of layer 2 has its diagonal one place after the earlier occurrence. With all seeds
# *both* heads of layer 2 do this. In layer 1 it is both with seed 1, mostly one with seed 3, and one with seed 2:
# there the other looks at its own position only.
#
# ### Switched off
#
# Attention shows where a head looks, not that it matters. So we switch heads off, one and then both of a layer: the
# rows of $W^O$ that read them become zeros. The loss on the same texts:


# %%
def loss_without(model, off):
    """The loss while the heads in off, such as "1.1 2.1" (layer.head), say nothing."""
    kept = model.flat.data.copy()
    for name in off.split():
        layer, head = (int(number) - 1 for number in name.split("."))
        w_output = model.stack.layers[layer].self_attention.w_output.data  # (D, D)
        width = len(w_output) // 2
        w_output[head * width : (head + 1) * width] = 0
    loss = loss_of(model, long)
    model.flat.data[:] = kept
    return loss


OFF = "", "1.1", "1.2", "1.1 1.2", "2.1", "2.2", "2.1 2.2"
print(f"off: {'none':>10}", *(f"{off:>8}" for off in OFF[1:]))
for seed, model in zip(SEEDS, readers[2], strict=True):
    without = {off: loss_without(model, off) for off in OFF}
    print(f"seed {seed}:", *(f"{loss:8.2f}" for loss in without.values()))
    assert min(without["1.1 1.2"], without["2.1 2.2"]) > np.log(LETTERS)
    assert max(without["1.1"], without["1.2"]) > without[""] + 0.4
    assert max(without["2.1"], without["2.2"]) < without["2.1 2.2"] / 2
print(f"a guess among all letters: {np.log(LETTERS):.2f}")

# %% [markdown]
# Without both heads of a layer each model is worse than a guess: it is still sure of itself, and now wrong. With seeds
# 1 and 2, either head of layer 2 can be spared: the other does the same work. So a small effect of *one* head does not
# show that its work is not needed. And a map does not tell what matters. With seed 2, head 1.2 carries the notes; but
# without 1.1, which looks only at itself, the loss is about 1, almost half of a guess.
#
# ## 4 · Drawing the next token
#
# Back to sentences. Always taking the most probable next piece gives the same sentence each time. To **sample** is to
# draw by the probabilities. There are three ways to change them first. With $z$ for the logits:
#
# - **Temperature** $\tau$: $p_i = e^{z_i / \tau} / \sum_j e^{z_j / \tau}$. The ratio of two tokens is
#   $p_i / p_j = e^{(z_i - z_j) / \tau}$, the ratio at $\tau = 1$ to the power $1 / \tau$. Below 1 the probable gain,
#   above 1 the others.
# - **Top-k**: only the $k$ most probable tokens stay (Fan, Lewis and Dauphin 2018).
# - **Top-p**: sort the tokens by their probability, and keep the fewest whose sum reaches $p$ (Holtzman and others
#   2020). Where the model is sure, this is one token. Where it is not, there are many.
#
# After a cut, what is left is divided by its sum:

# %%
source_of(sampling_probabilities)

# %% [markdown]
# Two beginnings: after the first the model is nearly sure of the next piece, after the second it is not. Here are the
# five most probable pieces and their probabilities:

# %%
WAYS = {
    "as they are": {},
    "temperature 0.5": dict(temperature=0.5),
    "temperature 1.5": dict(temperature=1.5),
    "top-k, k = 3": dict(top_k=3),
    "top-p, p = 0.8": dict(top_p=0.8),
}
for beginning in ("The man is ninety-one years", "The"):
    logits = to_host(LanguageModelDecoder(writer).step([EOS, *vocabulary.encode(beginning)]))
    shown = np.argsort(-logits, kind="stable")[:5]
    print(f"after {beginning!r}: ", *vocabulary.pieces(shown))
    for name, options in WAYS.items():
        p = sampling_probabilities(logits, **options)
        print(
            f"    {name:16}", *(f"{x:.2f}" for x in p[shown]), f"  {(p > 0).sum():3} can be drawn"
        )

# %% [markdown]
# Where the model is sure, little changes. Where it is not, top-k cuts after the third piece, whether the fourth is good
# or not. Top-p keeps as many as are needed.
#
# What is gained and what is lost? We write 30 sentences in each way and look at pairs of neighbouring words. **Sound**:
# the share of pairs that the corpus has. **Different**: how many different pairs there are, of all written.

# %%
known_pairs = {pair for text in english["train"] for pair in pairwise(text.split())}


def sound_and_different(**options):
    written = [generator.generate("", CONTEXT, seed=seed, **options) for seed in range(30)]
    pairs = [pair for text in written for pair in pairwise(text.split())]
    sound = np.mean([pair in known_pairs for pair in pairs])
    different = len(set(pairs)) / len(pairs)
    print(f"{options!s:22} {sound:5.2f} {different:10.2f}   {written[0]}")
    return sound, different


print(f"{'':22} sound  different   the first of them")
by_temperature = [sound_and_different(temperature=t) for t in (0.3, 1.0, 1.5)]
for options in (dict(top_p=0.5), dict(top_p=0.8), dict(top_k=2), dict(top_k=4)):
    sound_and_different(**options)
assert by_temperature[0][0] > by_temperature[-1][0]
assert by_temperature[0][1] < by_temperature[-1][1]

# %% [markdown]
# What is gained in soundness is lost in variety. Each line rests on some 200 pairs,
# so differences of a few hundredths say nothing.
#
# ## 5 · What perplexity does not tell
#
# In section 3 a low loss did not tell the rule from a shortcut. Here are two more questions that one mean does not
# answer. *Where* is the model unsure? And does it know grammar? For that we take held-out sentences with one *is* or
# *are*, and put in the other one. Is the right sentence more probable?

# %%
SWAP = {"is": "are", "are": "is"}
dearest = np.sort(bits[asked])[::-1]
of_fourth = dearest[: len(dearest) // 4].sum() / dearest.sum()
print(f"a quarter of the pieces cost {of_fourth:.0%} of the bits")
assert of_fourth > 0.5
often = [i for i, count in Counter(validation.labels[asked]).items() if count >= 30]
by_piece = sorted((bits[asked & (validation.labels == i)].mean(), i) for i in often)
for name, part in ("cheapest", by_piece[:8]), ("dearest", by_piece[-8:]):
    print(f"{name}:", *(f"{vocabulary.pieces([i])[0]} {cost:.1f};" for cost, i in part))

right = [text for text in held_out if sum(word in SWAP for word in text.split()) == 1]
wrong = [" ".join(SWAP.get(word, word) for word in text.split()) for text in right]
pairs = list(zip(right, wrong, strict=True))
nats = []
for texts in zip(*pairs, strict=True):
    batch = rows_of(texts)
    nats.append((costs(writer, batch) * (batch.labels != PAD)).sum(axis=1))
better = np.mean(nats[0] < nats[1])
print(f"{len(pairs)} pairs, such as {pairs[0]}: right in {better:.0%}; a guess is right in 50%")
assert better > 0.8

# %% [markdown]
# A quarter of the pieces cost half of the bits: what is talked about has to be guessed. Endings, *asleep* after *fell*
# and the end after a full stop cost nearly nothing. And of two sentences it nearly always prefers the right one. The
# perplexity tells neither. So ask a model what you want to know of it, with a test for that one ability. And none of
# this says whether a sentence is *true*. The model is asked what people write.
#
# ## 6 · What a step costs
#
# To say the next token, must the model read the whole text again? What position $t$ hands to later ones are its keys
# and values, in each layer. They depend on positions up to $t$ only, and do not change when the text goes on. So they
# are kept, and a step is one position, whose query looks at all keys kept so far:

# %%
source_of(MultiHeadAttention.step)

# %% [markdown]
# A text of $n$ tokens takes $n$ positions with the cache and $n (n + 1) / 2$ without ([lesson 14](14_decoding.ipynb)
# shows that nothing else changes, and times it). The cache takes memory: two
# vectors of $D$ numbers for each layer and token. And the context ends. When `max_length` tokens are full, the package
# forgets the older half and reads the newer one again: learned positions count from the first token that is seen.
#
# ## 7 · Exercises
#
# Fill in `answers/ex22.py`, your copy of [lessons/exercises/ex22.py](exercises/ex22.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex22
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The
# solutions are in [lessons/solutions/ex22.py](solutions/ex22.py).
#
# 1. **`bits_per_character`** (10 min). Two models cut the same text into different pieces. Make their scores
#    comparable.
# 2. **`temperature_of`** (25 min). One temperature is too cold at one place and too hot at another. Find the one at
#    which the model hesitates between as many tokens as you want.
# 3. **`induction_attention`** (25 min). What the induction head of section 3 does, as a matrix of weights made from
#    the ids.
# 4. **`attention_step`** (45 min). The cache of section 6, for pieces of any length. The mask is where it goes wrong.

# %%
print(check_exercise("ex22", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | the question | $p(x_1, \dots, x_n) = \prod_t p(x_t \mid x_1, \dots, x_{t-1})$ |
# | the model | a decoder without attention to a source: an encoder with a causal mask |
# | training | labels are the ids moved by one; one forward pass gives $T$ predictions |
# | measures | perplexity $e^{\text{NLL}}$, for a token; bits per character NLL $/ \ln 2 \times$ tokens per character |
# | a loss too good | no causal mask: the gradient check passes, and the text is worth nothing |
# | induction | layer 1 notes what stood before; layer 2 looks for the note that is my letter |
# | to prove it | lengths that training did not have; heads switched off, one and then both |
# | sampling | $z / \tau$; the $k$ best; the fewest that have $p$: soundness against variety |
# | cache | keys and values do not change: $n$ positions instead of $n (n + 1) / 2$ |
#
# **Your own Transformer.** `own.py` has all that such a model needs. `minitransformer check own` tells whether yours is
# right.
#
# **Next:** the other half: the same stack without its causal mask, which fills blanks and learns from few labels, in
# [lesson 23](23_an_encoder.ipynb). Or a text of your own: `minitransformer train gpt --text FILE` learns it character
# by character, and `minitransformer generate runs/gpt` goes on with it.
