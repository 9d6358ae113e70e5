# %% [markdown]
# # 15 · Looking inside
#
# **You will** read the attention maps of a translator, find by experiment what they do not tell, and measure how
# important each head is, by taking it away and by a gradient whose formula you derive.
#
# | | |
# |---|---|
# | In the paper | figures 3 to 5. How important heads are: Michel, Levy and Neubig, *Are Sixteen Heads Really Better than One?* (2019) |
# | In the package | `minitransformer/layers/attention.py` |
# | You need | attention with many heads ([lesson 09](09_multi_head_attention.ipynb)); Taylor's formula |
# | Time | an hour to read, an hour and a half for the exercises |

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

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, Transformer, TransformerConfig, accelerated, select_device
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLACK, BLUE, GREEN, VERMILION, shape_table, use_style
from minitransformer.course.stops import show
from minitransformer.data.text.batches import encode_pairs, make_batches
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.toy.lexicon import VERBS
from minitransformer.data.text.vocabulary import EOS, Vocabulary
from minitransformer.decoding import translate_ids
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_pair
from minitransformer.layers.attention import multi_head_attention, multi_head_attention_backward
from minitransformer.optim.schedule import linear_decay

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(15)

# %% [markdown]
# ## 1 · A translator, and a question to it
#
# In *Heute kann die Frau einen Apfel kaufen* the verb stands last. In *Today, the woman can buy an apple* it stands
# before its object. Nobody gives a Transformer a rule for that. So where does it find the verb when it is to say
# *buy*? We train a Transformer on the toy corpus, on sentences of at most eight words. Each test sentence holds a
# combination of words that no training sentence has.
#
# All numbers are those of one model (seed 15). What the text says of them holds for seeds 16 and 17, too, unless it
# says *in this model*.

# %%
LONGEST, EPOCHS, PEAK, WARMUP, SEED = 8, 8, 6e-3, 100, 15
ONE = f"one model, seed {SEED}"  # said in each picture
corpus = {
    split: [(german, english) for german, english in pairs if len(german.split()) <= LONGEST]
    for split, pairs in toy_corpus().items()
}
vocabulary = Vocabulary.train([text for pair in corpus["train"] for text in pair], 1200)
V, D, H = len(vocabulary), 64, 4
K = D // H
config = TransformerConfig.preset("toy", V, d_model=D, d_ff=128, dropout=0.0)
model = Transformer(config, seed=SEED, device=device)  # 2 + 2 layers of 4 heads, pre-norm

encoded, _ = encode_pairs(vocabulary, corpus["train"], 64)
order = np.random.default_rng(SEED)
batches = [batch for _ in range(EPOCHS) for batch in make_batches(encoded, 1400, order)]
adam = Adam(model.flat)
with accelerated():
    for step, batch in enumerate(batches, 1):
        model.zero_grad()
        _, cache = model.loss(batch)
        model.loss_backward(1.0, cache)
        adam.step(linear_decay(step, PEAK, WARMUP, len(batches)))
print(
    f"{len(batches)} steps, {len(corpus['train']):,} pairs, {model.num_parameters():,} parameters"
)


# %%
def right_of(pairs):
    """Which of the pairs the model translates exactly, by greedy search."""
    sources = [[*vocabulary.encode(german), EOS] for german, _ in pairs]
    with accelerated():
        found = [h for (h,) in translate_ids(model, sources, beam_size=1, max_length=30)]
    texts = [vocabulary.decode(h.ids) for h in found]
    return np.array([text == english for text, (_, english) in zip(texts, pairs, strict=True)])


test = corpus["test"]
right = right_of(test)
print(f"{right.mean():.0%} of {len(test)} test sentences are translated exactly")
assert right.mean() > 0.85

# %% [markdown]
# ## 2 · Where it looks
#
# The forward of each attention returns a cache, and in it are the weights and values of its heads. The model has six
# attentions, two layers of each of three kinds:

# %%
LAYERS = [f"{kind} {layer}" for kind in ("encoder", "decoder", "cross") for layer in (1, 2)]


def attentions(model):
    """The six MultiHeadAttention modules by their names."""
    encoder, decoder = model.encoder.layers, model.decoder.layers
    modules = [layer.self_attention for layer in (*encoder, *decoder)]
    modules += [layer.cross_attention for layer in decoder]
    return dict(zip(LAYERS, modules, strict=True))


def weights_and_values(batch):
    """Of each attention, by its name: weights (B, H, T, S) and values (B, H, S, K), on the host."""
    # Two caches, of encode and decode: each has that of the embedding and (the layers', a norm's).
    _, ((_, (encoder, _)), (_, (decoder, _))) = model.features(batch.source, batch.target)
    kept = [of_layer[0] for of_layer in (*encoder, *decoder)]  # the self-attention comes first
    kept += [of_layer[1] for of_layer in decoder]
    found = {}
    # Of a sublayer: enter, the attention, leave. Of an attention, at the end: the heads', W^O's.
    modules = attentions(model).items()
    for (name, module), (_, cache, _) in zip(modules, kept, strict=True):
        *_, (_, _, values, *_), _ = cache
        found[name] = to_host(module.weights(cache)), to_host(values)
    return found


def batch_of(pair):
    return make_batches(encode_pairs(vocabulary, [pair], 64)[0], 10**6)[0]


def pieces_of(ids):
    return [piece.replace("▁", "") or "▁" for piece in vocabulary.pieces(ids[0].tolist())]


# %% [markdown]
# `doing` holds the test sentences that are translated right and end with an infinitive, each with the step in which
# the English verb is said.

# %%
INFINITIVE = {verb.lemma: verb.english.split()[0] for verb in VERBS}
doing = []
for i in np.flatnonzero(right):
    german, english = test[i]
    verb, one = INFINITIVE.get(german.rstrip(".").split()[-1]), batch_of(test[i])
    says, reads = pieces_of(one.labels), vocabulary.pieces(one.source[0].tolist())
    plain = "," not in german and "-" not in english  # one clause, no numbers
    if verb in says[:-3] and plain and reads[-3].startswith("▁"):
        doing.append((one, says.index(verb)))
batch, _ = max(doing, key=lambda found: found[0].source.size)
maps = weights_and_values(batch)
weights, values = maps["cross 2"]
S, T = batch.source.shape[1], batch.target.shape[1]

shape_table(
    {"B": 1, "S": S, "T": T, "H": H, "K": K},
    source=(batch.source, "B S", "German, with the end symbol"),
    labels=(batch.labels, "B T", "English: row t of the weights served to choose label t"),
    weights=(weights, "B H T S", "cross-attention of layer 2: α, each row sums to 1"),
    values=(values, "B H S K", "what is averaged with these weights"),
)

# %% [markdown]
# The maps of all 24 heads for the longest of these sentences, and one of them enlarged. The eight maps side by side
# have the same words at their edges. Each **row** of a map is one position that asks, and sums to 1. In the
# cross-attention it is named by the word *to be said next*.

# %% tags=["hide-input"]
german, so_far, to_say = (pieces_of(x) for x in (batch.source, batch.target, batch.labels))
rows_of_maps = (("encoder", german, german), ("decoder", so_far, so_far), ("cross", to_say, german))
tenths = plt.get_cmap(ATTENTION_COLOURS, 10)
figure, panels = plt.subplots(3, 8, figsize=(9.6, 5.2))
figure.suptitle(ONE, fontsize=9)
for row, (kind, down, across) in enumerate(rows_of_maps):
    for column in range(8):
        layer, head = divmod(column, H)
        axes = panels[row, column]
        of_head = maps[f"{kind} {layer + 1}"][0][0, head]
        image = axes.imshow(of_head, cmap=tenths, vmin=0, vmax=1, aspect="auto")
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

figure, axes = plt.subplots(figsize=(4.8, 3.8))
image = axes.imshow(maps["cross 2"][0][0, 2], cmap=tenths, vmin=0, vmax=1, aspect="auto")
axes.set_title(f"cross 2, head 3 of {ONE}", fontsize=9)
axes.set_xticks(range(S), german, rotation=90)
axes.set_yticks(range(T), to_say)
axes.set(xlabel="German", ylabel="English to say")
axes.grid(False)
figure.colorbar(image, label="attention weight")
plt.show()

# %% [markdown]
# The decoder's maps are empty above the diagonal: the causal mask hides what comes later. In most heads of the
# cross-attention, the path of dark cells is an alignment of the two sentences. It leaves the diagonal where their
# order differs: at *must*, and at *thank*, whose German verb stands at the end. How much weight lies on the German
# verb in the step that says the English one, over all such sentences?

# %%
on_verb = []
for one, step in doing:
    maps = weights_and_values(one)
    on_verb.append([maps[f"cross {n}"][0][0, :, step, -3] for n in (1, 2)])  # verb, full stop, end
on_verb = np.mean(on_verb, axis=0)  # (layer, head)
print(f"mean weight on the German verb while the English one is chosen, {len(doing)} sentences")
for layer, heads in enumerate(on_verb, 1):
    print(f"  cross {layer}, heads 1 to {H}: {'  '.join(f'{a:.2f}' for a in heads)}")
print(f"  if all positions got the same: {np.mean([1 / one.source.size for one, _ in doing]):.2f}")
print(f"{(on_verb > 0.5).sum()} of {on_verb.size} heads give the verb more than half")
assert (on_verb > 0.5).mean() > 0.5

# %% [markdown]
# When it is the verb's turn, most heads look mostly at the German verb. That is where they *look*. Whether the
# translation needs it takes an experiment.
#
# ## 3 · What a map does not tell
#
# **A weight is only half of a contribution.** A head averages values, $C_h = A_h V_h$ of shape (B, T, K). With $W_h^O$
# for the $K$ rows of $W^O$ that belong to head $h$, position $t$ receives
#
# $$
# y_t = \sum_h \Big( \sum_s \alpha_{hts} \, v_{hs} \Big) W_h^O
# = \sum_s \underbrace{\sum_h \alpha_{hts} \, \big( v_{hs} W_h^O \big)}_{\text{what } s \text{ contributes}} .
# $$
#
# A large weight on a short vector $v_{hs} W_h^O$ brings little. **A position is not its word**: row $s$ of the memory
# has been through the encoder, and holds something of all words. And **what arrives need not matter**: other heads and
# layers come after.
#
# What does matter can be measured. Forbid the cross-attention to look at position $s$, by its mask. How much does
# $\log P(Y \mid X)$ of the right translation fall?


# %%
def log_p_of(logits, labels):
    """log P of each label, (B, T), from logits (B, T, V)."""
    z = to_host(logits).astype(float)
    z -= z.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    return np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]


def fall_without(one):
    """By how much log P of each label falls if no head may look at source position s: (S, T)."""
    S = one.source.shape[1]
    allowed = np.ones((S + 1, S), bool)
    allowed[np.arange(S), np.arange(S)] = False  # the last row forbids nothing
    ids = one.source, one.target, one.labels
    source, target, labels = (np.tile(x, (S + 1, 1)) for x in ids)
    memory, _ = model.encode(source, model.source_mask(source))
    y, _ = model.decode(target, memory, device.asarray(allowed[:, None, None, :]))
    log_p = log_p_of(model.output_projection.forward(y)[0], labels)  # (S + 1, T)
    return log_p[-1] - log_p[:-1]


def rank_correlation(a, b):
    """Spearman's: 1 where both order alike, about 0 if they have nothing to do with each other."""
    ranks = [np.argsort(np.argsort(np.ravel(x))) for x in (a, b)]
    return np.corrcoef(ranks)[0, 1]


measured = []  # for each sentence shares of weight and of effect, (2, S)
for i in np.flatnonzero(right)[:100]:
    one = batch_of(test[i])
    maps = weights_and_values(one)
    weight = sum(maps[f"cross {n}"][0].sum(axis=(0, 1, 2)) for n in (1, 2))  # (S,)
    measured.append(np.stack([x / x.sum() for x in (weight, fall_without(one).sum(axis=1))]))
agreement = np.mean([rank_correlation(*shares) for shares in measured])
words = np.concatenate([shares[:, :-2] for shares in measured], axis=1)
stops = np.concatenate([shares[:, -2:] for shares in measured], axis=1)
of_weight, of_effect = stops.sum(axis=1) / len(measured)
even = np.mean([2 / shares.shape[1] for shares in measured])
of_step = [fall_without(one)[:, step] for one, step in doing]  # (S,) each
of_verb = np.mean([fall[-3] for fall in of_step])
of_another = np.mean([fall[:-3].mean() for fall in of_step])
print(f"log P of the English verb falls by {of_verb:.2f} without the German verb,")
print(f"and by {abs(of_another):.2f} without another word")
print(f"rank correlation of weight and effect within a sentence: {agreement:.2f}")
print(f"full stop and end: {of_weight:.0%} of the weight and {of_effect:.1%} of the effect;")
print(f"if all positions got the same weight: {even:.0%}")
assert of_verb > 2 > 0.1 > abs(of_another)
assert np.mean([fall.argmax() == len(fall) - 3 for fall in of_step]) > 0.9
assert 0 < agreement < 0.8
assert abs(of_weight - even) < 0.1
assert of_effect < 0.05

# %% [markdown]
# Each point is a position of a sentence: its share of all cross-attention weight, and of all that log P loses.

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.3))
figure.suptitle(ONE, fontsize=9)
axes.plot(words[0], words[1], "o", color=BLUE, ms=3, alpha=0.5, label="words")
axes.plot(stops[0], stops[1], "s", color=VERMILION, ms=4, mfc="none", label="full stop, end")
axes.plot([0, 0.35], [0, 0.35], "-", color=BLACK, lw=1, label="as much effect as weight")
axes.set(xlabel="share of attention weight", ylabel="share of the effect")
axes.legend(fontsize=9)
plt.show()

# %% [markdown]
# So the verb is found where it stands: no other word can stand in for it. The order of the weights has something to do
# with the effect, but they are no measure of it. Look at the squares. The full stop and the end symbol draw about their
# even share of all attention, and can be taken away with hardly a trace. In this model cross 1, head 3 looks mostly
# at them (see its map), and is hardly needed, as section 4 will show. A row of weights must sum to 1, so a head that has
# nothing to find must look *somewhere*.
#
# ## 4 · How important is a head?
#
# ### Taking it away
#
# A head speaks through its $K$ rows of $W^O$. Give each head a gate $\xi_h$,
#
# $$
# Y = \sum_h \xi_h \, C_h \, W_h^O .
# $$
#
# All gates 1 is the model, and $\xi_h = 0$ takes the head away: multiply these rows of $W^O$ by the gate.


# %%
@contextmanager
def gates_at(model, gates):
    """Inside ``with``, the heads of the model are multiplied by gates, (6, H)."""
    modules = list(attentions(model).values())
    kept = [module.w_output.data.copy() for module in modules]
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


held_out, _ = encode_pairs(vocabulary, corpus["validation"], 64)
validation = make_batches(held_out, 4000)
start = nll_of(validation)
rise = np.zeros((len(LAYERS), H))
for head in range(rise.size):
    with gates_at(model, only([head])):
        rise.flat[head] = nll_of(validation) - start
print(f"loss {start:.3f} nats a token, of {len(held_out)} validation sentences")
print(f"without a head it rises by {rise.min():.3f} to {rise.max():.3f}")
assert rise.max() > 2 * np.median(rise)

# %% [markdown]
# That took one pass over the data for each head.
#
# ### The gradient of a gate
#
# How does the loss answer to a *small* turn of $\xi_h$? One backward tells it for all heads. With
# $dY = \partial L / \partial Y$ and $j$ for the features of $Y$,
#
# $$
# d\xi_h = \sum_{b, t, j} dY_{btj} \, \frac{\partial Y_{btj}}{\partial \xi_h}
# = \sum_{b, t, j} dY_{btj} \sum_k C_{h,btk} \, W^O_{h,kj} ,
# $$
#
# because $Y$ is linear in the gate, and the other heads do not contain it. Carry out the sums over $b$ and $t$ first:
#
# $$
# \boxed{ \; d\xi_h = \sum_{k, j} W^O_{h,kj} \sum_{b, t} C_{h,btk} \, dY_{btj}
# = \sum_{k, j} W^O_{h,kj} \; dW^O_{h,kj} \; }
# $$
#
# since $dW^O = C^\top dY$ where all gates are 1. **The gradient of a gate is the inner product of the head's rows of
# $W^O$ with their gradient**, and those two lie ready after every backward. The proof, for a single layer, is with
# other gates than 1. There the formula is the same, with the gradient of the scaled rows $\xi_h W_h^O$ for $dW_h^O$:

# %%
show("multi_head_attention")


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
# The likeliest mistake: $C$ and $dY$ are both (B, T, D), so their inner product raises no error. But $W^O$ lies between
# them:


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
# To first order, taking head $h$ away changes the loss by $-d\xi_h$. The boxed formula shows a catch. A training ends
# where $dW^O$, averaged over the data, is about zero. So **the slope of the mean loss is about zero for every head,
# needed or not.** Michel and others take the absolute value for each sentence $X$ *before* the mean,
#
# $$
# I_h = \mathbb E_X \, \left\lvert \, \partial L(X) / \partial \xi_h \, \right\rvert .
# $$
#
# Why is that better? Let $\ell(\xi) = -\log P_\xi(Y \mid X)$ be the loss of a sentence. A prime is the derivative with
# respect to one gate, taken at $\xi = 1$. To take the head away is a step of $-1$, so Taylor's formula says
# $\ell(0) - \ell(1) \approx -\ell' + \tfrac12 \ell''$. Now the mean over translations $Y$ that the model itself draws,
# $\mathbb E f = \sum_Y P f$. A probability sums to 1 at every $\xi$, so $\sum_Y P' = 0$ and $\sum_Y P'' = 0$. With
# $\ell' = -P'/P$ and $\ell'' = -P''/P + (P'/P)^2$,
#
# $$
# \mathbb E \, \ell' = -\sum_Y P \, \frac{P'}{P} = 0 ,
# \qquad
# \mathbb E \, \ell'' = -\sum_Y P'' + \sum_Y P \left( \frac{P'}{P} \right)^2 = \mathbb E \, (\ell')^2 .
# $$
#
# The slopes of single sentences cancel. Their *squares* **are the curvature**. Put into Taylor's formula:
#
# $$
# \mathbb E \left[ \ell(0) - \ell(1) \right] \approx -\mathbb E \, \ell' + \tfrac12 \mathbb E \, \ell''
# = \tfrac12 \, \mathbb E \, (\ell')^2 .
# $$
#
# For real translations it holds about, if the model is a good one. The mean of $\lvert \ell' \rvert$ is large where
# that of the squares is. Now the slopes, sentence by sentence:


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
predictions = {
    "|mean of the slopes|": abs(slopes.mean(axis=0)) / length,
    "mean of |slope|, Michel et al.": abs(slopes).mean(axis=0) / length,
    "½ mean of slope²": (slopes**2).mean(axis=0) / 2 / length,
}
by_mean, by_absolute, by_curvature = predictions.values()
for name, predicted in predictions.items():
    agreement = rank_correlation(rise, predicted)
    print(f"rank correlation of the measured rise and {name:<30} {agreement:.2f}")
assert rank_correlation(rise, by_absolute) > max(0.5, rank_correlation(rise, by_mean) + 0.1)
assert by_mean.mean() < 0.3 * rise.mean()

# %%
head, xi = int(rise.argmax()), np.linspace(0, 1.2, 13)
path = []
for value in xi:
    with gates_at(model, only([head], value)):
        path.append(nll_of(validation))
tangent = start - slopes.mean(axis=0).flat[head] / length * (1 - xi)
parabola = tangent + by_curvature.flat[head] * (1 - xi) ** 2
assert tangent[0] - start < 0.2 * rise.max()
assert parabola[0] - start < 0.8 * rise.max()

# %% [markdown]
# Left: the loss while the gate of the most important head is turned. Right: all 24 heads, measured and predicted. (The
# line *equal* is not for the squares: a mean of $\lvert \ell' \rvert$ does not predict the size of the rise.)

# %% tags=["hide-input"]
figure, (left, axes) = plt.subplots(1, 2, figsize=(8, 3.1))
figure.suptitle(ONE, fontsize=9)
left.plot(xi, path, "o-", color=BLUE, ms=4, label="measured")
left.plot(xi, tangent, ":", color=BLACK, lw=1.4, label="slope at 1")
left.plot(xi, parabola, "-", color=BLACK, lw=1, label="slope and curvature")
left.set(xlabel=r"gate $\xi$ of the head", ylabel="loss (nats a token)")
left.set_title(f"{LAYERS[head // H]}, head {head % H + 1}")
left.legend(fontsize=9)
styles = (("0.5", "x"), (VERMILION, "s"), (GREEN, "^"))
for (name, predicted), (colour, marker) in zip(predictions.items(), styles, strict=True):
    style = dict(color=colour, marker=marker, mfc="none", ls="")
    axes.loglog(rise.ravel(), predicted.ravel(), ms=5, label=name, **style)
axes.plot([6e-4, 0.3], [6e-4, 0.3], "-", color=BLACK, lw=1, label="equal")
axes.set(xlabel="measured rise of the loss (nats a token)", ylabel="predicted (nats a token)")
axes.set(ylim=(5e-6, 0.5))
axes.legend(fontsize=8.5, loc="lower right")
plt.show()

# %% [markdown]
# The tangent is almost flat. The curvature sees the rise coming, and falls far short: from 1 to 0 is a long way for a
# Taylor series. But to rank heads only the *order* is needed. The slope of the mean loss (crosses) says little about
# it, the mean of the absolute slopes much, though the squares lie almost level. (In this model the triangles,
# $\tfrac12 \, (\ell')^2$, order the heads even a little better; with seeds 16 and 17 the squares do.)
#
# The measured rise of each head:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(5.2, 3.1))
figure.suptitle(ONE, fontsize=9)
image = axes.imshow(rise, cmap="Greys", vmin=0, aspect="auto")
for (layer, head), value in np.ndenumerate(rise):
    colour = "white" if value > 0.5 * rise.max() else BLACK
    axes.text(head, layer, f"{value:.3f}", ha="center", va="center", color=colour, fontsize=9)
axes.set_xticks(range(H), [f"head {head + 1}" for head in range(H)])
axes.set_yticks(range(len(LAYERS)), LAYERS)
axes.grid(False)
figure.colorbar(image, ax=axes, label="rise of the loss (nats a token)")
plt.show()

# %% [markdown]
# A few heads carry much, many little. Would the maps have told? Compare the heads of the cross-attention by their
# weight on the verb:

# %%
cross = rise[-2:]  # (layer, head), as on_verb
print(f"rank correlation of weight and rise: {rank_correlation(on_verb, cross):.2f}")
looks, matters = (np.unravel_index(x.argmax(), cross.shape) for x in (on_verb, cross))
for name, place in (("looks most at the verb", looks), ("is needed most", matters)):
    print(f"cross {place[0] + 1}, head {place[1] + 1} {name}:", end=" ")
    print(f"weight {on_verb[place]:.2f}, rise {cross[place]:.3f}")
assert rank_correlation(on_verb, cross) < 0.9

# %% [markdown]
# The weight says something, and not all: in this model the two heads that look least are needed least, but the head
# that looks most is not the one that is needed most.
#
# ### Together they fall
#
# A head may be dispensable because another does the same. The four heads of a layer, one by one and all at once:

# %%
together = []
for layer in range(len(LAYERS)):
    with gates_at(model, only(layer * H + np.arange(H))):
        together.append(nll_of(validation) - start)
print("             sum of the four alone   all four together")
for name, alone, at_once in zip(LAYERS, rise.sum(axis=1), together, strict=True):
    print(f"{name:<12} {alone:18.2f} {at_once:19.2f}")
assert sum(together) > 2 * rise.sum()
assert (together > rise.sum(axis=1)).all()

# %% [markdown]
# Importance does not add up: all four cost more than the sum, in some layers many times more. That is the limit of
# *any* table with one number for each head. In the explorer you can
# [take heads away](../README.md#look-inside "#example=4&view=attention&attention=encoder&layer=2") one by one.
#
# ## 5 · Exercises
#
# Fill in `answers/ex15.py`, your copy of [lessons/exercises/ex15.py](exercises/ex15.py), and run
# `minitransformer check ex15`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex15.py](solutions/ex15.py).
#
# 1. **`attention_entropy`** (10 min). One number for how widely each query looks. Its exponential is a number of
#    positions.
# 2. **`stand_ins`** (25 min). Which two heads can stand in for each other? Then try it on four heads of this model,
#    with `nll_of(validation)` inside `gates_at`.
# 3. **`attention_rollout`** (45 min). A position is not its word: follow the attention down through the encoder.

# %%
print(check_exercise("ex15", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | a map shows | where a head looks; not whether anything needs it |
# | gradient of a gate | $d\xi_h = \langle W_h^O, dW_h^O \rangle$ |
# | importance | mean of $\lvert d\xi_h \rvert$ over sentences, because $\mathbb E \, \ell'' = \mathbb E \, (\ell')^2$ |
# | trap | measured one by one it does not add up |
#
# **Your own Transformer.** Nothing new to write. When `minitransformer check own` finds all right,
# `minitransformer translate runs/own --own answers/own.py --attention map.png` draws where it looks.
#
# **Next:** which words it treats as similar, where it fails, and whether it knows:
# [lesson 16](16_words_and_errors.ipynb).
