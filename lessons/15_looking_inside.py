# %% [markdown]
# # 15 · Looking inside
#
# **You will** read the attention maps of a translator and find out by experiment what they do not tell; measure the
# importance of each head, by taking it away and by a gradient whose formula you derive; see which words become
# neighbours, and why; and learn where the model fails, and whether it knows.
#
# | | |
# |---|---|
# | In the paper | figures 3 to 5: what some heads attend to. How important they are was measured later: Michel, Levy and Neubig, *Are Sixteen Heads Really Better than One?* (2019) |
# | In the package | `minitransformer/layers/attention.py`, whose cache holds all we need; `minitransformer/decoding/` |
# | You need | attention with many heads ([lesson 09](09_multi_head_attention.ipynb)); the cross-entropy |
# | Time | an hour and a half to read, and as long for the exercises |

# %%
# Installs the package where it is missing: from the clone around this notebook, or by its name.
import importlib.util
import os
import subprocess
import sys

if importlib.util.find_spec("minitransformer") is None:
    source = ".." if os.path.exists("../setup.cfg") else "minitransformer"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", source], check=True)

# %%
import re
from collections import Counter
from contextlib import contextmanager
from difflib import SequenceMatcher

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, Transformer, TransformerConfig, accelerated, select_device
from minitransformer.backend import to_host
from minitransformer.data.batches import encode_pairs, make_batches
from minitransformer.data.toy import toy_corpus
from minitransformer.data.toy.lexicon import BEINGS, DRINKS, PLACES, THINGS, VERBS
from minitransformer.data.vocabulary import EOS, PAD, Vocabulary
from minitransformer.decoding import translate_ids
from minitransformer.exercises import check_exercise
from minitransformer.gradcheck import check_pair
from minitransformer.layers.attention import multi_head_attention, multi_head_attention_backward
from minitransformer.lessons import BLACK, BLUE, GREEN, VERMILION, shape_table, source_of, use_style
from minitransformer.plots import ATTENTION_COLOURS

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(15)

# %% [markdown]
# ## 1 · A translator, and a question to it
#
# In *Heute kann die Frau einen Apfel kaufen* the verb *kaufen* stands last. In *Today, the woman can buy an apple* it
# stands before its object. Nobody writes down a rule for that when a Transformer is trained. So where is it? We train
# one on the embedded toy corpus, for a few seconds, on sentences of at most ten words. (The last section trains it
# again, with label smoothing, so it is a function.) Everything below is measured on this one model, from one seed:
# which head does what, and every digit, are its own.

# %%
LONGEST, STEPS, SEED = 10, 400, 15
ONE = f"one model, seed {SEED}"  # said in each picture
corpus = toy_corpus()
pairs = [(german, english) for german, english in corpus["train"] if len(german.split()) <= LONGEST]
vocabulary = Vocabulary.train([text for pair in pairs for text in pair], 1200)
encoded, _ = encode_pairs(vocabulary, pairs, 64)
V, D, H = len(vocabulary), 64, 4
K = D // H


def trained(smoothing=0.0, seed=SEED):
    config = TransformerConfig.preset("toy", V, d_model=D, d_ff=128, dropout=0.0)
    # 2 + 2 layers of 4 heads, pre-norm; one embedding table for German, English and the output
    model = Transformer(config, seed=seed, device=device)
    order = np.random.default_rng(seed)
    batches = [batch for _ in range(2) for batch in make_batches(encoded, 1200, order)][:STEPS]
    adam = Adam(model.flat)
    with accelerated():
        for step, batch in enumerate(batches, 1):
            model.zero_grad()
            _, cache = model.loss(batch, smoothing=smoothing)
            model.loss_backward(1.0, cache)
            adam.step(6e-3 * min(step / 60, (STEPS - step) / (STEPS - 60)), 1.0)
    return model


model = trained()
print(f"{len(pairs):,} pairs, {V} subwords, {model.num_parameters():,} parameters")


# %%
def translations(pairs):
    """The greedy translation of each pair's German, and its log P."""
    sources = [[*vocabulary.encode(german), EOS] for german, _ in pairs]
    with accelerated():
        found = [h for (h,) in translate_ids(model, sources, beam_size=1, max_length=30)]
    return [vocabulary.decode(h.ids) for h in found], np.array([h.log_probability for h in found])


test = corpus["test"]
said, log_p_said = translations(test)
right = np.array([ours == english for ours, (_, english) in zip(said, test, strict=True)])
for (german, english), ours in list(zip(test, said, strict=True))[:3]:
    print(f"{german}\n  should be  {english}\n  is         {ours}\n")
print(f"{right.mean():.0%} of {len(test)} test sentences are translated exactly")
assert 0.3 < right.mean() < 0.97

# %% [markdown]
# Each test sentence holds a combination of words that no training sentence has. So it is not memory alone.
#
# ## 2 · Where it looks
#
# What the backward needs is also what we want to see. The forward of each attention returns a cache, and in it are the
# weights and values of its heads. There are six attentions in the model, two layers of each of three kinds:

# %%
LAYERS = [f"{kind} {layer}" for kind in ("encoder", "decoder", "cross") for layer in (1, 2)]


def attentions(model):
    """The six MultiHeadAttention modules by their names."""
    encoder, decoder = model.encoder.layers, model.decoder.layers
    modules = [layer.self_attention for layer in (*encoder, *decoder)]
    modules += [layer.cross_attention for layer in decoder]
    return dict(zip(LAYERS, modules, strict=True))


def attention_caches(model, source, target):
    """What multi_head_attention kept in each of the six, by the same names."""
    _, ((_, (encoder, _)), (_, (decoder, _))) = model.features(source, target)
    kept = [of_layer[0] for of_layer in (*encoder, *decoder)]  # the self-attention comes first
    kept += [of_layer[1] for of_layer in decoder]
    return {name: cache for name, (_, cache, _) in zip(LAYERS, kept, strict=True)}


def weights_and_values(cache):
    """Attention weights (B, H, T, S) and values (B, H, S, K) of a cache, on the host."""
    *_, attention_cache, _ = cache  # before that of the product with W^O, which is last
    return to_host(attention_cache[-1]), to_host(attention_cache[2])


def batch_of(pairs):
    return make_batches(encode_pairs(vocabulary, pairs, 64)[0], 10**6)[0]


def pieces_of(ids):
    return [piece.replace("▁", "") or "▁" for piece in vocabulary.pieces(ids[0].tolist())]


# %% [markdown]
# For the pictures, a test sentence whose verb is an infinitive at the end, as behind *kann* or *muss*, and which the
# model translates rightly. `doing` holds all such sentences as batches of one, with the step at which the verb is said.

# %%
INFINITIVE = {verb.lemma: verb.english.split()[0] for verb in VERBS}
doing = []
for i in np.flatnonzero(right):
    german, english = test[i]
    verb, one = INFINITIVE.get(german.rstrip(".").split()[-1]), batch_of([test[i]])
    says, reads = pieces_of(one.labels), vocabulary.pieces(one.source[0].tolist())
    plain = "," not in german and "-" not in english  # one clause, no numbers
    if verb in says[:-3] and plain and reads[-3].startswith("▁"):
        doing.append((one, says.index(verb)))
batch, _ = min(doing, key=lambda found: abs(found[0].source.size - 10))
caches = attention_caches(model, batch.source, batch.target)
weights, values = weights_and_values(caches["cross 2"])
S, T = batch.source.shape[1], batch.target.shape[1]

shape_table(
    {"B": 1, "S": S, "T": T, "H": H, "K": K},
    source=(batch.source, "B S", "German, with the end symbol"),
    labels=(batch.labels, "B T", "English: row t of the weights served to choose label t"),
    weights=(weights, "B H T S", "cross-attention of layer 2: α, each row sums to 1"),
    values=(values, "B H S K", "what is averaged with these weights"),
)

# %%
german, so_far, to_say = (pieces_of(x) for x in (batch.source, batch.target, batch.labels))
rows_of_maps = (("encoder", german, german), ("decoder", so_far, so_far), ("cross", to_say, german))
tenths = plt.get_cmap(ATTENTION_COLOURS, 10)
figure, panels = plt.subplots(3, 8, figsize=(9.6, 5.2))
figure.suptitle(ONE, fontsize=9)
for row, (kind, down, across) in enumerate(rows_of_maps):
    for column in range(8):
        layer, head = divmod(column, H)
        maps, _ = weights_and_values(caches[f"{kind} {layer + 1}"])
        axes = panels[row, column]
        image = axes.imshow(maps[0, head], cmap=tenths, vmin=0, vmax=1, aspect="auto")
        axes.set_title(f"{kind} {layer + 1}, head {head + 1}", fontsize=7)
        labels = (across, down) if column == 0 else ([], [])
        axes.set_xticks(range(len(across)), labels[0], rotation=90, fontsize=7)
        axes.set_yticks(range(len(down)), labels[1], fontsize=7)
        axes.tick_params(length=0)
        axes.grid(False)
for axes, label in zip(panels[:, 0], ("German", "English so far", "English to say"), strict=True):
    axes.set_ylabel(label)
figure.colorbar(image, ax=panels, shrink=0.5, label="attention weight")
plt.show()

# %% [markdown]
# How to read them. (The words stand at the first map of a row and hold for all eight.) A **row** belongs to one
# position that asks; its weights sum to 1 and say how its average is made up. A dark **column** is a place that many
# ask, whatever they look for, such as the end symbol in the first layer of the cross-attention. The decoder's own
# attention is a triangle, since it may not look ahead. In the cross-attention the row is named by the word that is *to
# be said next*: the path of dark cells is an alignment of the two sentences, and where the two languages differ in
# order it leaves the diagonal.
#
# One sentence proves nothing. Over all sentences of this kind: how much weight lies on the German verb, in the step that
# says the English one?

# %%
on_verb = []
for one, step in doing:
    kept = attention_caches(model, one.source, one.target)
    maps = [weights_and_values(kept[f"cross {layer}"])[0][0] for layer in (1, 2)]
    on_verb.append([layer[:, step, -3] for layer in maps])  # verb, full stop, end symbol
on_verb = np.mean(on_verb, axis=0)  # (layer, head)
print(f"mean weight on the German verb while the English one is chosen, {len(doing)} sentences")
for layer, heads in enumerate(on_verb, 1):
    print(f"  cross {layer}, heads 1 to {H}: {'  '.join(f'{a:.2f}' for a in heads)}")
print(f"  an even average: {np.mean([1 / one.source.size for one, _ in doing]):.2f}")
assert on_verb.max() > 0.5

# %% [markdown]
# So some heads look over all that lies between to the end of the German sentence when it is the verb's turn. Whose turn
# it is can only be in the query, which is made of the English said so far. That is where these heads *look*. Whether the
# translation rests on it, no weight can say: that takes an experiment.
#
# ## 3 · What a map does not tell
#
# It is tempting to read a weight as "so much did this word matter". There are three gaps between the two.
#
# **A weight is only half of a contribution.** A head averages values, $C_h = A_h V_h$ of shape (B, T, K), and the heads
# are brought together by $Y = \sum_h C_h W_h^O$, with $W_h^O$ the $K$ rows of $W^O$ that belong to head $h$. So what
# position $t$ receives is
#
# $$
# y_t = \sum_h \Big( \sum_s \alpha_{hts} \, v_{hs} \Big) W_h^O
# = \sum_s \underbrace{\sum_h \alpha_{hts} \, \big( v_{hs} W_h^O \big)}_{c_{ts}, \text{ what } s \text{ contributes to } t} .
# $$
#
# A large weight on a short vector $v_{hs} W_h^O$ brings little. Kobayashi, Kuribayashi, Yokoi and Inui (2020, *Attention
# is Not Only a Weight*) found that in BERT: large weights on separators and full stops, and very short vectors there.
#
# **A position is not its word.** The row $s$ of the memory has been through two encoder layers, and holds something of
# all words. Exercise `attention_rollout` follows the mixture down. And **what arrives need not matter.** After the
# attention come other layers, other heads and the residual path.
#
# What does matter can be measured: forbid the cross-attention to look at position $s$, in both layers and all heads, and
# see how much $\log P(Y \mid X)$ of the right translation falls. The mask is there already; it usually keeps padding out.


# %%
def log_p_of(logits, labels):
    """log P of each label, (B, T), from logits (B, T, V)."""
    z = to_host(logits).astype(float)
    z -= z.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    return np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]


def fall_without(one):
    """By how much log P of each label falls if no head may look at source position s: (T, S)."""
    S = one.source.shape[1]
    allowed = np.ones((S + 1, S), bool)
    allowed[np.arange(S), np.arange(S)] = False  # the last row forbids nothing
    ids = one.source, one.target, one.labels
    source, target, labels = (np.tile(x, (S + 1, 1)) for x in ids)
    memory, _ = model.encode(source, model.source_mask(source))
    y, _ = model.decode(target, memory, device.asarray(allowed[:, None, None, :]))
    log_p = log_p_of(model.output_projection.forward(y)[0], labels)  # (S + 1, T)
    return (log_p[-1] - log_p[:-1]).T


# %%
measured = []  # for each sentence shares of weight and of effect, (2, S)
for pair in test[:60]:
    one = batch_of([pair])
    kept = attention_caches(model, one.source, one.target)
    maps = [weights_and_values(kept[f"cross {layer}"])[0][0] for layer in (1, 2)]
    weight = np.sum(maps, axis=(0, 1, 2))  # over layers, heads and steps: (S,)
    effect = fall_without(one).sum(axis=0)
    measured.append(np.stack([x / x.sum() for x in (weight, effect)]))

figure, axes = plt.subplots(figsize=(5.2, 3.3))
figure.suptitle(ONE, fontsize=9)
words = np.concatenate([shares[:, :-2] for shares in measured], axis=1)
stops = np.concatenate([shares[:, -2:] for shares in measured], axis=1)
axes.plot(words[0], words[1], "o", color=BLUE, ms=3, alpha=0.5, label="words")
axes.plot(stops[0], stops[1], "s", color=VERMILION, ms=4, mfc="none", label="full stop, end")
axes.plot([0, 0.35], [0, 0.35], "-", color=BLACK, lw=1, label="as much effect as weight")
axes.set(xlabel="share of attention weight", ylabel="share of the effect")
axes.legend(fontsize=9)
plt.show()


# %%
def rank_correlation(a, b):
    """Spearman's: 1 where both order alike, about 0 if they have nothing to do with each other."""
    ranks = [np.argsort(np.argsort(np.ravel(x))) for x in (a, b)]
    return np.corrcoef(ranks)[0, 1]


agreement = np.mean([rank_correlation(*shares) for shares in measured])
of_weight, of_effect = stops.sum(axis=1) / len(measured)
print(f"rank correlation of weight and effect within a sentence: {agreement:.2f}")
print(f"full stop and end: {of_weight:.0%} of the weight and {of_effect:.1%} of the effect")
assert 0 < agreement < 0.8
assert of_weight > max(0.1, 2.5 * of_effect)

# %% [markdown]
# Weights are not meaningless: the order that they put the positions in has something to do with the effect. But they are
# no measure of it. (Where a point lies below 0, the right translation is more probable without the position.) The squares
# along 0 are the clearest case: the full stop and the end symbol draw a large part of all attention, and each can be taken
# away with hardly a trace. A row of weights must sum to 1, so a head that has nothing to find must look *somewhere*, and
# looks where it does no harm.
#
# Mind what the experiment does not say: two positions that tell the same both seem unimportant, since weight goes to the
# other; and it takes away what is read at $s$, not the word, of which the other rows of the memory still know.
#
# ## 4 · How important is a head?
#
# The model has 24 heads. A map says where each looks. Is it needed? Here are two ways to ask.
#
# ### Taking it away
#
# A head speaks through its $K$ rows of $W^O$. Give each head a gate $\xi_h$,
#
# $$
# Y = \sum_h \xi_h \, C_h \, W_h^O .
# $$
#
# All gates 1 is the model, and $\xi_h = 0$ takes the head away. No code has to change: multiply these rows of $W^O$ by
# the gate.


# %%
@contextmanager
def gates_at(model, gates):
    """Inside ``with``, the heads of the model are multiplied by gates, (6, H)."""
    modules = list(attentions(model).values())
    kept = [module.w_output.data for module in modules]
    for module, own, of_heads in zip(modules, kept, np.asarray(gates), strict=True):
        rows = np.repeat(of_heads, K)[:, None].astype(own.dtype)  # (D, 1)
        module.w_output.data = own * model.device.asarray(rows)
    try:
        yield
    finally:
        for module, own in zip(modules, kept, strict=True):
            module.w_output.data = own


def only(heads, value=0.0):
    """Gates (6, H) that are 1, and ``value`` for these heads, numbered 0 to 23."""
    gates = np.ones((len(LAYERS), H))
    gates.flat[np.asarray(heads, dtype=int)] = value
    return gates


def nll_of(batches):
    """−log P of the right token, the mean over all, in nats."""
    with accelerated():
        losses = [float(model.loss(b)[0][1]) for b in batches]
    return np.average(losses, weights=[b.num_tokens for b in batches])


held_out, _ = encode_pairs(vocabulary, corpus["validation"][:250], 64)
validation = make_batches(held_out, 4000)
start = nll_of(validation)
rise = np.zeros((len(LAYERS), H))
for head in range(rise.size):
    with gates_at(model, only([head])):
        rise.flat[head] = nll_of(validation) - start
print(
    f"loss {start:.3f} nats a token; it rises by {rise.min():.3f} to {rise.max():.3f} without a head"
)
assert rise.max() > 2 * np.median(rise)

# %% [markdown]
# That took one pass over the data for each head. It is exact, and in a model with hundreds of heads it is long.
#
# ### The gradient of a gate
#
# How does the loss answer to a *small* turn of $\xi_h$? One backward should tell it for all heads. With
# $dY = \partial L / \partial Y$ and $j$ for the features of $Y$,
#
# $$
# d\xi_h = \sum_{b, t, j} dY_{btj} \, \frac{\partial Y_{btj}}{\partial \xi_h}
# = \sum_{b, t, j} dY_{btj} \sum_k C_{h,btk} \, W^O_{h,kj} ,
# $$
#
# because $Y$ is linear in the gate, and the other heads do not contain it. These are four sums of one product of three
# factors, and we may carry them out in any order. Over $j$ first:
#
# $$
# d\xi_h = \sum_{b, t, k} C_{h,btk} \, \sum_j dY_{btj} W^O_{h,kj}
# = \sum_{b, t, k} C_{h,btk} \; dC_{h,btk} ,
# \qquad dC_h = dY \, (W_h^O)^\top .
# $$
#
# **The gradient of the gate is the inner product of the head's output with its gradient** (at $\xi = 1$, where $dC_h$
# is what the backward computes anyway; elsewhere that would be $\xi_h \, dY (W_h^O)^\top$). That is how Michel and
# others write it. Over $b$ and $t$ first:
#
# $$
# \boxed{ \; d\xi_h = \sum_{k, j} W^O_{h,kj} \sum_{b, t} C_{h,btk} \, dY_{btj}
# = \sum_{k, j} W^O_{h,kj} \; dW^O_{h,kj} \; }
# $$
#
# since $dW^O = C^\top dY$, again at $\xi = 1$. So **it is also the inner product of the head's rows of $W^O$ with their
# gradient**, and those two lie ready in every model after every backward. No hook is needed. The proof, for a single layer,
# through the pair of the package:

# %%
source_of(multi_head_attention_backward)


# %%
x, memory = rng.standard_normal((2, 3, 6)), rng.standard_normal((2, 4, 6))
*projections, w_output = rng.standard_normal((4, 6, 6)) / np.sqrt(6)


def gated_attention(gates):
    rows = np.repeat(gates, 2)[:, None] * w_output  # 3 heads of width 2
    return multi_head_attention(x, memory, memory, *projections, rows, len(gates))


def gated_attention_backward(dy, cache):
    *_, dscaled = multi_head_attention_backward(dy, cache)  # of Y = C (ξ W^O)
    return (w_output * dscaled).reshape(3, -1).sum(axis=1)


report = check_pair(gated_attention, gated_attention_backward, (rng.uniform(0.5, 1.5, 3),))
assert report.right
print(report)

# %% [markdown]
# And the mistake that suggests itself. The merged heads $C$ and $dY$ are both (B, T, D), so their inner product raises no
# error. But $dY$ is the gradient *behind* $W^O$, and $C$ stands before it; here $D = HK$ happens to be the same number:


# %%
def by_the_output(dy, cache):
    merged = cache[-1][0]  # C, (B, T, D), what is multiplied by W^O
    return (merged * dy).sum(axis=(0, 1)).reshape(3, -1).sum(axis=1)


report = check_pair(gated_attention, by_the_output, (rng.uniform(0.5, 1.5, 3),))
assert not report.right
print(report)

# %% [markdown]
# ### A slope of zero, and why it still tells something
#
# To first order, taking head $h$ away ($\xi_h$ from 1 to 0) changes the loss by $-d\xi_h$. There is a catch, and the
# boxed formula shows it. At the end of a training $dW^O$ of the loss is about zero: that is what the training was for.
# So **the slope of the mean loss is about zero for every head, needed or not.** Michel and others therefore take the
# absolute value for each sentence $X$ *before* the mean,
#
# $$
# I_h = \mathbb E_X \, \left\lvert \, \partial L(X) / \partial \xi_h \, \right\rvert .
# $$
#
# Why should that be better than the mean of the slopes? Because a probability sums to 1. Let
# $\ell(\xi) = -\log P_\xi(Y \mid X)$ be the loss of a sentence, a prime its derivative by one gate, and let $Y$ be drawn
# from the model itself. From $\sum_Y P_\xi(Y) = 1$ follow $\sum_Y P' = 0$ and $\sum_Y P'' = 0$. With $\ell' = -P'/P$ and
# $\ell'' = -P''/P + (P'/P)^2$,
#
# $$
# \mathbb E \, \ell' = -\sum_Y P \, \frac{P'}{P} = 0 ,
# \qquad
# \mathbb E \, \ell'' = -\sum_Y P'' + \sum_Y P \left( \frac{P'}{P} \right)^2 = \mathbb E \, (\ell')^2 .
# $$
#
# The slopes of single sentences cancel; their *squares* do not, and they **are the curvature**. Put into Taylor's
# formula:
#
# $$
# \mathbb E \left[ \ell(0) - \ell(1) \right] \approx -\mathbb E \, \ell' + \tfrac12 \mathbb E \, \ell''
# \approx \tfrac12 \, \mathbb E \, (\ell')^2 .
# $$
#
# This holds for translations drawn from the model, and about so for real ones if the model is a good one. The mean of
# $\lvert \ell' \rvert$ is no curvature, but it is large where the mean of the squares is, and orders the heads about
# alike. The slopes, sentence by sentence, and from them in nats a token, as the measured rise:


# %%
def slopes_of_gates(model):
    """dξ (6, H) from the gradients that lie in the model."""
    products = [a.w_output.data * a.w_output.grad for a in attentions(model).values()]
    return np.array([to_host(product).reshape(H, -1).sum(axis=1) for product in products])


slopes = []  # of the loss of each sentence, in nats a sentence: (N, 6, H)
for pair in held_out:
    (one,) = make_batches([pair], 10**6)
    model.zero_grad()
    with accelerated():
        _, cache = model.loss(one)
        model.loss_backward(float(one.num_tokens), cache)
    slopes.append(slopes_of_gates(model))
slopes = np.array(slopes)
length = sum(batch.num_tokens for batch in validation) / len(held_out)  # tokens a sentence
first_order = -slopes.mean(axis=0) / length
by_gradient = abs(slopes).mean(axis=0) / length
by_curvature = (slopes**2).mean(axis=0) / 2 / length

# %%
head, xi = int(rise.argmax()), np.linspace(0, 1.2, 13)
path = []
for value in xi:
    with gates_at(model, only([head], value)):
        path.append(nll_of(validation))
tangent = start + first_order.flat[head] * (1 - xi)
figure, (left, axes) = plt.subplots(1, 2, figsize=(8, 3.1))
figure.suptitle(ONE, fontsize=9)
left.plot(xi, path, "o-", color=BLUE, ms=4, label="measured")
left.plot(xi, tangent, ":", color=BLACK, lw=1.4, label="slope at 1")
parabola = tangent + by_curvature.flat[head] * (1 - xi) ** 2
left.plot(xi, parabola, "-", color=BLACK, lw=1, label="slope and curvature")
left.set(xlabel=r"gate $\xi$ of the head", ylabel="loss (nats a token)")
left.set_title(f"{LAYERS[head // H]}, head {head % H + 1}")
left.legend(fontsize=9)
for predicted, colour, marker, name in (
    (abs(first_order), "0.5", "x", "|mean of the slopes|"),
    (by_gradient, VERMILION, "s", "mean of |slope|, Michel et al."),
    (by_curvature, GREEN, "^", "½ mean of slope²"),
):
    style = dict(color=colour, marker=marker, mfc="none", ls="")
    axes.loglog(rise.ravel(), predicted.ravel(), ms=5, label=name, **style)
    agreement = rank_correlation(rise, predicted)
    print(f"rank correlation of the measured rise and {name:<30} {agreement:.2f}")
axes.plot([4e-3, 1], [4e-3, 1], "-", color=BLACK, lw=1, label="equal")
axes.set(xlabel="measured rise of the loss (nats a token)", ylabel="predicted (nats a token)")
axes.set(ylim=(1e-6, 1.5))
axes.legend(fontsize=8.5, loc="lower right")
plt.show()
assert rank_correlation(rise, by_gradient) > 0.6
assert abs(first_order).mean() < 0.3 * rise.mean()

# %% [markdown]
# The tangent is almost flat. The crosses, the slopes of the mean loss, are far too low, and tell less about the order
# than the other two. The curvature sees the rise coming; for the most important heads it falls far short, and for the
# least important it is too high, because from 1 to 0 is a long way for a Taylor series. But to rank heads only the
# *order* is needed, and absolute values or squares of the slopes give nearly the measured one, for one backward a
# sentence instead of one pass over the data for each head.
#
# ### The picture
#
# Both tables, in nats a token; each is coloured relative to its largest number, the darkest:

# %%
figure, panels = plt.subplots(1, 2, figsize=(8.2, 3.1))
figure.suptitle(ONE, fontsize=9)
for axes, values, name in (
    (panels[0], rise, "measured rise of the loss"),
    (panels[1], by_gradient, "by gradient, mean of |slope|"),
):
    image = axes.imshow(values / values.max(), cmap="Greys", vmin=0, vmax=1, aspect="auto")
    for (layer, head), value in np.ndenumerate(values):
        colour = "white" if value > 0.5 * values.max() else BLACK
        axes.text(head, layer, f"{value:.3f}", ha="center", va="center", color=colour, fontsize=9)
    axes.set_xticks(range(H), [f"head {head + 1}" for head in range(H)])
    axes.set_yticks(range(len(LAYERS)), LAYERS if axes is panels[0] else [])
    axes.set_title(name)
    axes.grid(False)
figure.colorbar(image, ax=panels, label="relative to the largest")
plt.show()

# %% [markdown]
# Do the two agree? Not by their shades: each table is coloured by a largest number of its own. What can be compared is
# the order of the heads, and for that there is one number, the rank correlation printed above: high, and below 1.
# Importance is uneven: a few heads carry much, many little. A look at section 2's maps would not have told which.
#
# ### Together they fall
#
# "Little" holds for one head at a time. A head may be dispensable because another does the same. The four heads of a
# layer, each alone and then all at once:

# %%
together = []
for layer in range(len(LAYERS)):
    with gates_at(model, only(layer * H + np.arange(H))):
        together.append(nll_of(validation) - start)
print("             sum of the four alone   all four together")
for name, alone, at_once in zip(LAYERS, rise.sum(axis=1), together, strict=True):
    print(f"{name:<12} {alone:18.2f} {at_once:19.2f}")
assert sum(together) > 1.2 * rise.sum()

# %% [markdown]
# Importance does not add up. That is the limit of *any* table with one number for each head.
#
# ### Pruning
#
# So let us remove heads one after the other and keep them removed: the least important first, by either table; in random
# order, three times; and the most important first. The tables are from validation sentences, and what follows is measured
# on test sentences.

# %%
pruned_on = test[:120]
pruned_batches = make_batches(encode_pairs(vocabulary, pruned_on, 64)[0], 4000)
COUNTS = np.array([24, 22, 20, 18, 16, 14, 12, 8, 4, 0])  # heads left


def pruned(order):
    """Loss and share of exact translations, (len(COUNTS), 2), with the first of order removed."""
    rows = []
    for left in COUNTS:
        with gates_at(model, only(order[: 24 - left])):
            found, _ = translations(pruned_on)
            exactly = np.mean([a == b for a, (_, b) in zip(found, pruned_on, strict=True)])
            rows.append((nll_of(pruned_batches), exactly))
    return np.array(rows)


by_rise = np.argsort(rise.ravel())
orders = [
    (by_rise, "o-", BLUE, "least first, measured"),
    (np.argsort(by_gradient.ravel()), "s--", GREEN, "least first, by gradient"),
    (by_rise[::-1], "^-.", VERMILION, "most important first"),
    *((rng.permutation(24), ":", "0.45", name) for name in ("in random order", "", "")),
]
curves = [pruned(order) for order, *_ in orders]
figure, panels = plt.subplots(1, 2, figsize=(8, 3))
figure.suptitle(ONE, fontsize=9)
for i, axes in enumerate(panels):
    for curve, (_, style, colour, name) in zip(curves, orders, strict=True):
        axes.plot(COUNTS, curve[:, i], style, color=colour, ms=4, label=name)
    axes.set(xlabel="heads left", xlim=(24.5, -0.5))
panels[0].set(ylabel="loss (nats a token)")
panels[1].set(ylabel="translated exactly, share", ylim=(-0.02, 1))
panels[1].legend(fontsize=9)
plt.show()
at_16 = np.array([curve[list(COUNTS).index(16), 0] for curve in curves])
assert max(at_16[:2]) < at_16[3:].mean() < at_16[2]

# %% [markdown]
# The order makes all the difference. Of the least important heads several can go before many sentences change; of the
# most important ones, a few are enough to ruin the translation. But nothing here is free: this model has few heads and
# was trained for seconds, and has little to spare. Michel and others could remove up to 20 % of the heads of a large
# translator, and 40 % of BERT's, without noticeable harm.
#
# ## 5 · Which words are neighbours?
#
# The row of a word in the embedding table is all the model knows of it before it reads a sentence. Two rows are near if
# the cosine of their angle is large. Take the words that are one subword each, and look at a few English ones:

# %%
counted = [set(re.findall(r"\w+", " ".join(side))) for side in zip(*pairs, strict=True)]
pieces = [{w: vocabulary.encode(w) for w in sorted(words)} for words in counted]
ids_of = [{w: ids[0] for w, ids in side.items() if len(ids) == 1} for side in pieces]
shared = set(ids_of[0].values()) & set(ids_of[1].values())
GERMAN, ENGLISH = ({w: i for w, i in side.items() if i not in shared} for side in ids_of)


def unit_rows(weight, ids):
    """Rows of an embedding table, brought to length 1: their products are cosines."""
    rows = to_host(weight.data)[list(ids)].astype(float)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


both = {**GERMAN, **ENGLISH}  # no word has its row in both
table = unit_rows(model.target_embedding.weight, both.values())
every = list(both)
for word in ("dog", "dogs", "slept", "buying", "sleep", "old", "because", "the"):
    cosines = table @ table[every.index(word)]
    near = np.argsort(-cosines)[1:6]
    print(f"{word:<8} {'  '.join(f'{every[i]} {cosines[i]:.2f}' for i in near)}")

# %% [markdown]
# Many a plural stands by plurals, a past form by past forms, an article by articles. Is that so in general, and is it the
# role of a word or its meaning? The toy language has a lexicon, so it can be counted:

# %%
NOUNS = BEINGS + THINGS + DRINKS + PLACES
ROLES = {
    "noun": {noun.english for noun in NOUNS},
    "plural": {noun.english_plural for noun in NOUNS},
    "infinitive": {verb.english for verb in VERBS},
    "-ing form": {verb.english_ing for verb in VERBS},
    "past form": {verb.english_past for verb in VERBS},
    "adjective": {adjective.english for noun in NOUNS for adjective in noun.adjectives},
}
role_of = {word: role for role, words in ROLES.items() for word in words if word != "read"}
known = [word for word in ENGLISH if word in role_of]
lemma_of = {n.english_plural: n.english for n in NOUNS}
lemma_of |= {form: v.english for v in VERBS for form in (v.english_ing, v.english_past)}
rows = unit_rows(model.target_embedding.weight, [ENGLISH[word] for word in known])
roles = np.array([role_of[word] for word in known])
meanings = np.array([lemma_of.get(word, word) for word in known])
same_role, same_meaning = (x[:, None] == x[None] for x in (roles, meanings))
itself = np.eye(len(known), dtype=bool)
cosines = np.where(itself, -1, rows @ rows.T)
for name, these in (
    ("of the same role, such as dogs and horses", same_role & ~itself),
    ("of the same meaning, such as dog and dogs", same_meaning & ~itself),
    ("of neither", ~same_role & ~same_meaning),
):
    print(f"mean cosine of two words {name:<42} {cosines[these].mean():5.2f}")
nearest_alike = (roles[cosines.argmax(axis=1)] == roles).mean()
print(f"the nearest neighbour has the same role: {nearest_alike:.0%} of {len(known)} words,")
print(f"and would have by chance:                {same_role.mean():.0%}")
assert nearest_alike > 0.6 > 0.3 > same_role.mean()
assert cosines[same_meaning & ~itself].mean() > cosines[~same_role & ~same_meaning].mean() + 0.05

# %% [markdown]
# Both count. But there are many words of the same role and one or two of the same meaning, so the nearest neighbour is
# mostly one of the same role.
#
# ### Why
#
# In this model the table is also the output projection (three-way tying, [lesson 05](05_tokens_and_embeddings.ipynb)).
# For the decoder's state $y_n$ at position $n$ the logits are $z_{nv} = y_n \cdot E_v$, and by that use the gradient of a
# row is
#
# $$
# dE_v = \sum_n (p_{nv} - [\text{label}_n = v]) \, y_n .
# $$
#
# A step goes against it: **the row moves towards the states in which the word is to be said, and away from states in
# which it is expected wrongly.** Words that are said in like states get like rows, and what a state knows best is which
# *kind* of word comes next.
#
# A German word is never a label. Its gradient by this use is $\sum_n p_{nv} \, y_n$, a sum without a minus, so it is
# pushed away from *every* state, that is, from what all states have in common: their mean. All German words get the same
# push, which has nothing to do with what they mean, and it makes them alike. (Before you ask a tied table for German
# neighbours, take away the mean of the German rows.)

# %%
alike = []
for side in (table[: len(GERMAN)], table[len(GERMAN) :]):
    alike.append((side @ side.T)[~np.eye(len(side), dtype=bool)].mean())
print(f"mean cosine of two German words: {alike[0]:.2f}, of two English words: {alike[1]:.2f}")
assert alike[0] > alike[1] + 0.1

# %% [markdown]
# ## 6 · Where it fails
#
# A single number, "so many per cent right", hides what is wrong. Split it. First by what the model cannot have learned by
# heart: sentences from training, new combinations of known words, and sentences longer than any in training. Then by
# length. Behind ± stands twice the standard error $\sqrt{r (1 - r) / n}$ of a share $r$ of $n$ (too narrow near 0 and 1):

# %%
lengths = np.array([len(german.split()) for german, _ in test])
short = lengths <= LONGEST
seen = [pairs[i] for i in rng.choice(len(pairs), 400, replace=False)]
right_seen = np.array([a == b for a, (_, b) in zip(translations(seen)[0], seen, strict=True)])
groups = {"from training": right_seen, "new combinations": right[short], "longer": right[~short]}
for n in range(3, 15, 2):
    groups[f"  {n} and {n + 1} words"] = right[(lengths == n) | (lengths == n + 1)]
for name, these in groups.items():
    r, n = these.mean(), len(these)
    print(f"{name:<18} {r:4.0%} ± {2 * np.sqrt(r * (1 - r) / n):3.0%} of {n:3} right")
assert right_seen.mean() > right[short].mean() > right[~short].mean() + 0.1
assert right[lengths > LONGEST].mean() < right[(lengths > 8) & short].mean() - 0.1

# %% [markdown]
# Look at the ± before you call one kind harder than another. Two walls show. New combinations cost something: the model has
# the grammar, but not all of it. Lengths that it has never seen cost much more. Longer sentences are harder in any case, as
# there are more words to get wrong; but up to ten words the share falls slowly, and behind them at once.
#
# What do the errors look like? Align each wrong translation with its reference, and count the words that were left out or
# replaced:

# %%
all_words, left_out, replaced, swapped = Counter(), Counter(), Counter(), Counter()
for ours, (_, english) in zip(said, test, strict=True):
    wanted, given = (re.findall(r"[\w-]+", text) for text in (english, ours))
    named = [role_of.get(w.lower(), "number" if "-" in w else "other") for w in wanted]
    all_words.update(named)
    for what, a, b, c, d in SequenceMatcher(None, wanted, given, autojunk=False).get_opcodes():
        if what in ("delete", "replace"):
            (left_out if what == "delete" else replaced).update(named[a:b])
            swapped[" ".join(wanted[a:b]), " ".join(given[c:d]) or "nothing"] += 1
print("most often:", ",  ".join(f"{a} → {b} ({n})" for (a, b), n in swapped.most_common(6)))
rates = {name: np.array([left_out[name], replaced[name]]) / n for name, n in all_words.items()}
for name, (out, other) in sorted(rates.items(), key=lambda item: -sum(item[1])):
    print(f"  {name:<11} {out:5.1%} left out, {other:5.1%} replaced, of {all_words[name]}")
assert rates["adjective"][0] > 1.3 * rates["other"][0]

# %% [markdown]
# Numbers of two parts are replaced most. Adjectives are left out more than most other words: a sentence can do without
# them and is still a good sentence. These are the errors that the model was surest of:

# %%
probability = np.exp(log_p_said)
sure = [i for i in np.argsort(-probability) if not right[i]]
for i in sure[:4]:
    print(f"{test[i][0]}  P = {probability[i]:.2f}")
    print(f"  should be  {test[i][1]}\n  is         {said[i]}")
higher = (probability[right][:, None] > probability[~right][None]).mean()
print(f"a right translation has a higher P than a wrong one in {higher:.0%} of all such pairs")
assert higher > 0.65

# %% [markdown]
# ### Does it know?
#
# None of these is nonsense; a reader without the German would not notice. The model does, a little: on the average
# wrong translations are less probable (in part because long ones are, and are wrong more often). A stricter question is
# whether the numbers mean what they say. Of all words (subwords, to be exact, each chosen behind the right beginning)
# that the model gives the probability 0.7, seven out of ten should be right. Then it is called **calibrated**. Put the
# words into bins by their confidence, $c = \max_v p_v$, and compare the mean confidence of bin $b$ with the share of
# right words in it. The mean gap, each bin weighted by its number of words, is the **expected calibration error**:
#
# $$
# \text{ECE} = \sum_b \frac{n_b}{N} \, \lvert \text{accuracy}_b - \text{confidence}_b \rvert .
# $$
#
# **What does label smoothing do to it?** Suppose that, given all that came before, the next word is $v$ with
# probability $\pi_v$. The smoothed loss has the target $(1 - \varepsilon) [v = \text{label}] + \varepsilon / V$; on
# average over the labels that is $q_v = (1 - \varepsilon) \pi_v + \varepsilon / V$. As the loss is linear in the
# target, its mean is the cross-entropy of $p$ against this $q$, which is least at $p = q$ ([lesson
# 04](04_softmax_cross_entropy.ipynb)). So the best model under smoothing says
#
# $$
# p_v = (1 - \varepsilon) \, \pi_v + \frac{\varepsilon}{V} ,
# $$
#
# and not $\pi_v$: **it is to be less sure than it could be, by order of its loss.** With $\varepsilon = 0.1$ the best
# model is never surer than about 0.9. The same model, trained with smoothing:

# %%
EPSILON = 0.1
smoothed = trained(smoothing=EPSILON)
test_pairs, _ = encode_pairs(vocabulary, [test[i] for i in np.flatnonzero(short)], 64)
test_batches = make_batches(test_pairs, 4000)


def confidences(model):
    """Of each word of the test sentences: the largest probability, and whether that word is right."""
    confidence, hit = [], []
    for batch in test_batches:
        logits = to_host(model.forward(batch.source, batch.target)[0]).astype(float)
        best = logits.argmax(axis=-1)
        real = batch.labels != PAD
        confidence.append(np.exp(log_p_of(logits, best))[real])
        hit.append((best == batch.labels)[real])
    return np.concatenate(confidence), np.concatenate(hit)


figure, axes = plt.subplots(figsize=(5.2, 3.7))
figure.suptitle(f"one model each, seed {SEED}", fontsize=9)
ece = {}
for of, name, colour, style in (
    (model, "no smoothing", BLUE, "o-"),
    (smoothed, f"smoothing {EPSILON}", VERMILION, "s--"),
):
    confidence, hit = confidences(of)
    number = np.minimum((confidence * 10).astype(int), 9)  # of the bin
    bins = [number == b for b in np.unique(number)]
    n, sure, accuracy = np.array([(x.sum(), confidence[x].mean(), hit[x].mean()) for x in bins]).T
    ece[name] = (n / n.sum() * abs(accuracy - sure)).sum()
    big = n >= 30  # a share of fewer words is mostly chance
    axes.plot(sure[big], accuracy[big], style, color=colour, label=f"{name}: ECE {ece[name]:.3f}")
    print(f"{name:<14} words right {hit.mean():.1%}, mean confidence {confidence.mean():.1%}")
axes.plot([0, 1], [0, 1], "-", color=BLACK, lw=1, label="calibrated")
best = np.array([0, 1 - EPSILON]) + EPSILON / V  # where 0 and where 1 of the words are right
axes.plot(best, [0, 1], ":", color=BLACK, lw=1.4, label="best under smoothing")
axes.set(xlabel="mean confidence of the bin", ylabel="words right, share", ylim=(0, 1.03))
axes.legend(loc="lower right", fontsize=9)
plt.show()
assert ece["smoothing 0.1"] > max(0.06, 2 * ece["no smoothing"])

# %% [markdown]
# Without smoothing the mean gap is a few per cent, on sentences that the model has never seen. That is small because
# most words lie in the last bin, which is near the line; it does not make the model calibrated. Where it is less sure,
# its points lie above the line: more words are right than it says. With smoothing it gets about as many words right and doubts far more than it should, even more than the dotted line, which
# a model reaches only when it is trained to the end. Whoever reads $p$ as a probability, to warn of a bad translation,
# say, has to undo that: exercise `best_temperature`. Large models trained long without smoothing tend to the other side
# and are too sure (Guo, Pleiss, Sun and Weinberger 2017, *On Calibration of Modern Neural Networks*).
#
# ## 7 · Exercises
#
# Fill in `answers/ex15.py`, your copy of [lessons/exercises/ex15.py](exercises/ex15.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex15
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The solutions are in
# [lessons/solutions/ex15.py](solutions/ex15.py).
#
# 1. **`attention_entropy`** (5 min). One number for how widely each query looks. Its exponential is a number of positions.
# 2. **`stand_ins`** (15 min). Which two heads can stand in for each other? Alone neither is missed; together they are. Then
#    try it on four heads of this model, with `nll_of(validation)` inside `gates_at`.
# 3. **`attention_rollout`** (30 min). A position is not its word: follow the attention through all layers of the encoder,
#    down to the words.
# 4. **`best_temperature`** (30 min). Make a model calibrated with a single number, and without touching any of its answers.

# %%
print(check_exercise("ex15", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | a head's contribution | $c_{ts} = \sum_h \alpha_{hts} \, v_{hs} W_h^O$; a weight is only half of it |
# | a map shows | where a head looks; not what it brings, and not whether anything needs it |
# | take a head away | its $K$ rows of $W^O$ times 0 |
# | gate gradient | $d\xi_h = \langle C_h, dC_h \rangle = \langle W_h^O, dW_h^O \rangle$ |
# | importance | mean over sentences of $\lvert d\xi_h \rvert$; the mean of $d\xi_h$ is about 0 after training |
# | why | $\mathbb E \, \ell'' = \mathbb E \, (\ell')^2$, so removing costs about $\tfrac12 \mathbb E \, (d\xi_h)^2$, if it is little |
# | trap | $C$ times $dY$: the shapes fit, and $W^O$ lies between them |
# | trap | importance measured one by one does not add up |
# | neighbours | words used alike; in a tied table also words that are never said |
# | calibration | $\text{ECE} = \sum_b \frac{n_b}{N} \lvert \text{accuracy}_b - \text{confidence}_b \rvert$; smoothing caps $p$ at $1 - \varepsilon + \varepsilon / V$ |
#
# **Your own Transformer.** Nothing new to write: once `minitransformer check own` finds all right and you have
# trained on it, `minitransformer translate runs/own --own answers/own.py --attention map.png` draws where your
# model looks.
#
# **Next:** what the time of a training goes into, and how to save it: [lesson 17](17_making_it_fast.ipynb).
