# %% [markdown]
# # 00 · Start here
#
# **You will** leave this course with a Transformer of your own: one file whose every function, forward and
# backward, you wrote and checked yourself, and which trains a translator. Here you train the package's, watch
# its first words turn into sentences, and read its attention, where the German verb stands last and the English
# one does not; follow a sentence through the model, shape by shape; and find your way through the paper, the
# code and the lessons, in three languages.
#
# | | |
# |---|---|
# | In the paper | all of *Attention Is All You Need* (Vaswani et al. 2017): the map in section 5 says what is where |
# | In the package | `minitransformer/models/transformer.py`, `minitransformer/translator.py` |
# | You need | Python and NumPy's arrays |
# | Time | three quarters of an hour to read, the same for the exercises |

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
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import minitransformer
from minitransformer import (
    Adam,
    Transformer,
    TransformerConfig,
    Translator,
    accelerated,
    select_device,
)
from minitransformer.backend import to_host
from minitransformer.data.batches import encode_pairs, make_batches
from minitransformer.data.toy import toy_corpus
from minitransformer.data.toy.lexicon import VERBS
from minitransformer.data.vocabulary import Vocabulary
from minitransformer.decoding import cross_attention
from minitransformer.exercises import check_exercise, exercise_names, parts_of
from minitransformer.gradcheck import check_pair
from minitransformer.layers.attention import (
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from minitransformer.layers.feed_forward import feed_forward
from minitransformer.layers.linear import linear
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.softmax import softmax
from minitransformer.lessons import BLACK, BLUE, VERMILION, shape_table, source_of, use_style
from minitransformer.plots import ATTENTION_COLOURS
from minitransformer.training import schedule

use_style()
device = select_device("cpu")  # "cuda" trains the translator on a GPU
rng = np.random.default_rng(0)

# %% [markdown]
# ## 1 · A translator
#
# Three German sentences. They are short, and still a dictionary does not translate them:
#
# - *Die Frau schläft.* Each word has its place. But *schläft* is two words in English, *is sleeping*.
# - *Heute kann die Frau einen Apfel kaufen.* Word by word: today can the woman an apple buy. The verb *kaufen* stands
#   at the end.
# - *Den Jungen ruft die Frau.* The boy comes first, and it is not he who calls: *den Jungen* is the object. In German
#   the ending of a word says who does it to whom, in English the order does.
#
# A Transformer learns this from examples. The package brings a **toy corpus** along, German sentences with their
# translations, written by a small program with a small lexicon. To be done in seconds, we take those of at most nine
# words, and a model that is small even for a toy.

# %%
EXAMPLES = {
    "Die Frau schläft.": "The woman is sleeping.",
    "Heute kann die Frau einen Apfel kaufen.": "Today, the woman can buy an apple.",
    "Den Jungen ruft die Frau.": "The woman is calling the boy.",
}
corpus = toy_corpus()
pairs, test = (
    [(german, english) for german, english in corpus[split] if len(german.split()) <= 9]
    for split in ("train", "test")
)
assert not {german for german, _ in pairs} & {*EXAMPLES}  # none of the three is learned by heart
for german, english in pairs[:4]:
    print(german, "→", english)

# %%
D, H, F, N = 64, 4, 256, 2  # the width, the heads, the inner width, the layers of each stack
vocabulary = Vocabulary.train([text for pair in pairs for text in pair], 1200)
V = len(vocabulary)
config = TransformerConfig.preset(
    "toy",
    V,
    d_model=D,
    num_heads=H,
    d_ff=F,
    num_encoder_layers=N,
    num_decoder_layers=N,
    dropout=0.0,
    max_length=64,
)
model = Transformer(config, device=device)
translator = Translator(model, vocabulary, threads=1)
print(f"{len(pairs):,} pairs to learn from, {V:,} subwords, {model.num_parameters():,} parameters")

# %% [markdown]
# The parameters are random numbers at first. Training changes them, step by step. In each step the model is given a
# **batch** of sentence pairs. The **loss** says how improbable the right words were to it; the **backward pass** finds, for
# each parameter, in which direction the loss falls; and the **optimizer**, Adam, moves all of them a little that way. These
# are the four lines in the inner loop. One pass over all pairs is an **epoch**. After each epoch we ask for the three
# translations, and keep the attention to the second sentence for later.

# %%
EPOCHS, PEAK, WARMUP = 6, 4e-3, 100
encoded, _ = encode_pairs(vocabulary, pairs, config.max_length)
epochs = [make_batches(encoded, 1400, rng) for _ in range(EPOCHS)]
total = sum(map(len, epochs))
looked_at = list(EXAMPLES.items())[1]
watched = make_batches(encode_pairs(vocabulary, [looked_at], 64)[0], 1400)[0]

adam = Adam(model.flat)
curve, said, maps = [], [], []


def look():
    said.append(translator.translate([*EXAMPLES], beam_size=1))
    maps.append(cross_attention(model, watched.source, watched.target))


look()
for batches in epochs:
    for batch in batches:
        rate = schedule.linear_decay(len(curve) + 1, PEAK, WARMUP, total)
        with accelerated():
            model.zero_grad()
            (loss, nll), cache = model.loss(batch)
            model.loss_backward(1.0, cache)
            adam.step(rate)
        curve.append(nll)
    look()
curve = [float(nll) for nll in curve]

for i, german in enumerate(EXAMPLES):
    print(german)
    for epoch, texts in enumerate(said):
        text = texts[i] if len(texts[i]) < 60 else texts[i][:60] + "…"
        print(f"  epoch {epoch}: {text}")

# %% [markdown]
# Look at the order in which it learns. Before training it repeats one random word until it is stopped. After the first
# epoch it writes something like English, and only a word here and there comes from the German: which words often follow
# which is learned sooner than where to look. Then the content comes in, and late what hangs on the word that follows, *a*
# or *an*. (Other processors round sums otherwise, so that in your run a word or two may come out in another epoch.)
#
# How good is it? The test sentences hold combinations of words that no training sentence holds.

# %%
german_test = [german for german, _ in test]
ours = translator.translate(german_test, beam_size=1)
right = [text == english for text, (_, english) in zip(ours, test, strict=True)]
print(f"{np.mean(right):.0%} of {len(test)} test sentences are translated exactly; not these:")
wrong = [i for i in range(len(test)) if not right[i]]
for i in wrong[:3]:
    print(f"{test[i][0]}\n  should be  {test[i][1]}\n  is         {ours[i]}")
assert 0.5 < np.mean(right) < 1
assert not any("Esel" in german for german, _ in pairs)
print("And with a word that it has never seen, a donkey:")
print("  Der Esel schläft. →", *translator.translate(["Der Esel schläft."], beam_size=1))

# %% [markdown]
# This is the price of a few seconds: short sentences, few words, a narrow model, and some errors. The last one is worth a thought. A
# model can only say what it has learned to say; it has no way of saying that it does not know a word, and writes something else, fluently.
# With more time,
#
# ```sh
# minitransformer train toy
# minitransformer translate runs/toy "Während das Kind schläft, isst mein hungriger Affe den teuren Keks."
# ```
#
# trains a model twice as wide on the whole toy corpus, with its longer sentences, for more epochs. That takes about a
# minute on two CPU cores. And [lesson 13](13_training_for_real.ipynb) trains on sentences that people wrote.
#
# ## 2 · Where it looks
#
# To choose the next English word, the model takes a weighted average over the German sentence: of every position some,
# of the important ones much. The weights are its **attention**, and they are computed anew for every word. There are several
# **heads** side by side in each of the two layers, and each has weights of its own. We want one to look at, and let a count over test sentences choose it, so
# that nobody picks the nicest: the head that looks most at a verb at the end, when it is the verb's turn. We take off what it spends on
# the full stop and the end symbol while words are chosen, because that is where heads rest that have nothing to look for.

# %%
ENGLISH = {verb.lemma: "▁" + verb.english.split()[0] for verb in VERBS}  # kaufen: ▁buy


def verb_last(pair):
    """Row of the English verb, and column of the German one if that is an infinitive at the end."""
    german, english = (vocabulary.pieces(vocabulary.encode(text)) for text in pair)
    verb = ENGLISH.get(german[-2].removeprefix("▁"))  # before the full stop
    if verb in english and english.index(verb) < len(german) - 2 and "▁," not in german:
        return english.index(verb), len(german) - 2
    return None  # another kind of sentence, or one whose verbs have the same place


places = {pair: verb_last(pair) for pair in test if verb_last(pair)}
on_verb, on_same_place, resting = np.zeros((3, len(places), N, H))
for i, (pair, (row, column)) in enumerate(places.items()):
    one = make_batches(encode_pairs(vocabulary, [pair], 64)[0], 1400)[0]
    weights = cross_attention(model, one.source, one.target)[:, 0]  # (N, H, T, S)
    on_verb[i] = weights[:, :, row, column]
    on_same_place[i] = weights[:, :, row, row]
    words = [piece.startswith("▁") for piece in vocabulary.pieces(one.labels[0].tolist())]
    resting[i] = weights[:, :, words, -2:].sum(axis=-1).mean(axis=-1)
on_verb, on_same_place, resting = (w.mean(axis=0) for w in (on_verb, on_same_place, resting))
layer, head = np.unravel_index((on_verb - resting).argmax(), (N, H))
print(f"{len(places)} test sentences end with a verb that comes earlier in English.")
print(f"While it is chosen, layer {layer + 1}, head {head + 1} puts on average")
print(f"  {on_verb[layer, head]:.2f} of its weight on the German verb at the end,")
print(f"  {on_same_place[layer, head]:.2f} on the German word with the same number.")
assert on_verb[layer, head] > 0.7 > 0.2 > on_same_place[layer, head]

# %%
best = translator.translations([looked_at[0]], beam_size=1, attention=True)[0][0]
attention = best.attention[layer, head]  # (T, S)
columns = [piece.removeprefix("▁") for piece in best.source_pieces]
rows = [piece.removeprefix("▁") for piece in best.pieces]
assert np.allclose(attention.sum(axis=1), 1, atol=1e-4)

figure, axes = plt.subplots(figsize=(7.4, 6.2))
image = axes.imshow(attention, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
axes.plot([-0.5, len(columns) - 0.5], [-0.5, len(columns) - 0.5], ":", color=BLACK, lw=1)
axes.text(len(columns) - 0.3, len(columns) - 0.5, "word by word would run\nalong the dotted line")
for t, s in np.argwhere(attention >= 0.2):
    colour = "white" if attention[t, s] > 0.6 else BLACK
    axes.text(s, t, f"{attention[t, s]:.2f}", ha="center", va="center", color=colour, fontsize=9)
if "buy" in rows and "kaufen" in columns:
    t, s = rows.index("buy"), columns.index("kaufen")
    box = dict(fill=False, edgecolor=VERMILION, lw=2.5, zorder=3)
    axes.add_patch(plt.Rectangle((-0.5, t - 0.5), len(columns), 1, **box))
    axes.annotate(
        "this row: where it looked\nto choose “buy”",
        (len(columns) - 0.5, t),
        (len(columns) - 0.2, t - 3.2),
        color=VERMILION,
        arrowprops=dict(arrowstyle="-|>", color=VERMILION, lw=1.6),
        annotation_clip=False,
    )
axes.set_xticks(range(len(columns)), columns, rotation=45, ha="left", fontsize=11)
axes.xaxis.tick_top()
axes.xaxis.set_label_position("top")
axes.set_yticks(range(len(rows)), rows, fontsize=11)
axes.set(xlabel="looked at: German", ylabel="chosen: English, from top to bottom")
axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
axes.grid(False)
axes.grid(which="minor", color="0.9", lw=0.6)
axes.tick_params(which="both", length=0)
axes.spines[:].set_visible(False)
figure.colorbar(image, label="attention weight (each row sums to 1)", shrink=0.6, location="bottom")
plt.show()

# %% [markdown]
# **How to read it.** Each **row** is one step of writing: the word beside it is the one chosen in this step. The row's
# cells say how the attention was divided among the German words, the **columns**. They sum to 1; white is nothing.
# `</s>` is the end of the sentence, a word like any other to the model.
#
# Begin at the top, and move down with the English:
#
# - Word by word, all dark cells would lie on the dotted line. *Today*, *the* and *woman* do.
# - *can* is chosen after *woman*, and *kann* stands before *die Frau*. In a German statement the verb is second, whatever comes
#   first. So here the path jumps **back**.
# - *buy* is chosen before *an apple*, and *kaufen* stands after *Apfel*, at the end. So the path jumps **ahead**, over the
#   object: that is the marked row. In the next row it jumps back, and *an apple* goes side by side with *einen Apfel*.
# - The English comma has no German word, for here German does without. Its weight has to go somewhere, as every row sums to 1. What
#   such a row shows means little. The last two rows, the full stop and the end, are as well placed anywhere.
#
# Nobody told the model about verbs; not a line of it mentions them. Where do these jumps come from, then? From lowering the loss
# alone. Here is the same head on the same sentence, while it learned.

# %%
shown = [0, 1, 2, EPOCHS]
figure = plt.figure(figsize=(10, 6.2))
grid = figure.add_gridspec(2, len(shown), height_ratios=(1, 1.5))
axes = figure.add_subplot(grid[0, :])
axes.plot(curve, color=BLUE, lw=1.0)
axes.axhline(np.log(V), color=BLACK, lw=0.8)
axes.text(total, np.log(V) + 0.1, "ln V: all words equally probable", ha="right", va="bottom")
axes.text(total, 5.6, "dotted: when the maps below were made", ha="right", va="bottom")
for epoch in shown:
    axes.axvline(sum(map(len, epochs[:epoch])), color="0.5", ls=":", lw=1)
axes.set(xlim=(-5, total + 5), ylim=(0, 8.5), xlabel="step (one batch each)")
axes.set_title("one training, seed 0")
axes.set_ylabel("NLL (nats per token)")
labels = [piece.removeprefix("▁") for piece in vocabulary.pieces(watched.labels[0].tolist())]
panels = [figure.add_subplot(grid[1, i]) for i in range(len(shown))]
for axes, epoch in zip(panels, shown, strict=True):
    weights = maps[epoch][layer, 0, head]
    image = axes.imshow(weights, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    axes.set_title(["at first", "after 1 epoch"][epoch] if epoch < 2 else f"after {epoch} epochs")
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8)
    axes.set_yticks(range(len(labels)), labels if epoch == 0 else [], fontsize=8)
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set(visible=True, color="0.7")
panels[0].set_ylabel("English, to be chosen")
figure.colorbar(image, ax=panels, label="attention weight", shrink=0.8, pad=0.01)
plt.show()
assert abs(curve[0] - np.log(V)) < 1.0
assert maps[0][layer, 0, head].max() < 0.6

# %% [markdown]
# The curve is the NLL, the negative logarithm of the probability of the right word. It begins near $\ln V$, where every one of
# the $V$ subwords is equally probable, since small random parameters prefer no word by much. At first the head looks everywhere. The alignment comes
# while the loss falls, because a model that looks at *kaufen* before it says *buy* is less often wrong.
#
# Three warnings, before you show such a picture to somebody. It is one training, from one seed: another seed may give this work to
# another head, and learn it in another epoch. The other heads look elsewhere, and some of them at nothing that we
# could name. And a weight says where a head looked, not whether that mattered. [Lesson 15](15_looking_inside.ipynb) measures
# the difference.
#
# ## 3 · A sentence goes through the model
#
# Now once through all of it, slowly. We take a batch of two sentences, a short one and a longer one, and stop at
# every stage to look at the **shape** of what is there. If you remember one thing of this lesson, let it be the
# shapes: most mistakes in a model are mistakes of shape, or of the order of axes. The letters are the same in all lessons and
# in the code; each line of the package that changes a shape ends in a comment such as `# (B, H, T, S)`.
#
# **Text to ids.** A text is cut into **subwords**, pieces of a vocabulary that was learned from the training text. Frequent
# words are one piece, rare ones are several. `▁` marks the beginning of a word. Each piece has a number, its id. ([Lesson
# 05](05_tokens_and_embeddings.ipynb))

# %%
two = list(EXAMPLES.items())[:2]
for german, _ in two:
    ids = vocabulary.encode(german)
    print(" ".join(f"{p}={i}" for p, i in zip(vocabulary.pieces(ids), ids, strict=True)))

# %% [markdown]
# **Ids to a batch.** $B$ sentences make one array. The shorter ones are filled up with **padding**, id 0; masks take care
# that nobody looks at it. Of the English there are two arrays, one shifted by a place. The `target` begins with a start symbol and is
# what the decoder sees; the `labels` end with an end symbol and are what it has to say. So in training all words of a sentence are
# predicted at once, each from the right words before it. ([Lesson 13](13_training_for_real.ipynb))

# %%
batch = make_batches(encode_pairs(vocabulary, two, 64)[0], 1400)[0]
(B, S), T, K = batch.source.shape, batch.target.shape[1], D // H
sizes = {"B": B, "S": S, "T": T, "D": D, "H": H, "K": K, "F": F, "V": V}
print(batch.source)
shape_table(
    sizes,
    source=(batch.source, "B S", "German ids, with the end symbol and padding"),
    target=(batch.target, "B T", "English ids behind the start symbol: what is already said"),
    labels=(batch.labels, "B T", "English ids and the end symbol: what is to be said"),
)

# %% [markdown]
# **Ids to rows of numbers.** Each id picks its row of $D$ numbers from a table, the **embedding**. To it a row is added that depends
# on the position alone, the **positional encoding**. Without it the model could not know the order of the words. ([Lesson
# 06](06_positions.ipynb))

# %%
x, _ = model.source_embedding.forward(batch.source)
x, _ = model.positional_encoding.forward(x)
shape_table(
    sizes,
    embedding=(model.source_embedding.weight.data, "V D", "a row for every piece"),
    x=(x, "B S D", "what, and where: the input of the encoder"),
)

# %% [markdown]
# **Encoder: the German words look at each other.** Each position makes three vectors: a **query**, what it looks for; a **key**, by
# which it is found; a **value**, what it hands out. This is done $H$ times side by side, in narrow **heads** of $K = D / H$ numbers. The
# match of every query with every key gives the weights. With them the values are averaged. ([Lesson 08](08_attention.ipynb),
# [09](09_multi_head_attention.ipynb))

# %%
encoder_layer = model.encoder.layers[0]
source_mask = model.source_mask(batch.source)
normalised, _ = encoder_layer.self_attention_residual.enter(x)  # LayerNorm
module = encoder_layer.self_attention
query, key, value = (
    split_heads(linear(normalised, w.data)[0], H)
    for w in (module.w_query, module.w_key, module.w_value)
)
averaged, cache = scaled_dot_product_attention(query, key, value, source_mask)
shape_table(
    sizes,
    normalised=(normalised, "B S D", "x after LayerNorm"),
    query=(query, "B H S K", "each head has queries of its own"),
    key=(key, "B H S K", "and keys"),
    value=(value, "B H S K", "and values"),
    source_mask=(source_mask, "B 1 1 S", "False at padding"),
    weights=(cache[-1], "B H S S", "who looks at whom; each row sums to 1"),
    averaged=(averaged, "B H S K", "averages of values; merged they are (B, S, D) again"),
)

# %% [markdown]
# **Encoder: each word by itself.** The second half of a layer is the **feed-forward network**, two matrix products with a
# ReLU between them. It widens each row to $F$ numbers and brings it back to $D$. Around both halves there is a **residual
# connection**: what they compute is *added* to what came in, so that the shape never changes and layers can be stacked. **LayerNorm**
# keeps the sums in bounds. After $N$ layers the encoder is done. Its output is called the **memory**. (Lessons
# [02](02_backpropagation.ipynb), [07](07_layer_norm.ipynb), [10](10_residual_connections.ipynb))

# %%
w_1, b_1, w_2, b_2 = (p.data for _, p in encoder_layer.feed_forward.named_parameters())
attended, _ = linear(merge_heads(averaged), module.w_output.data)  # the heads brought together
halfway, _ = encoder_layer.self_attention_residual.leave(x, attended)  # x + attended
normalised, _ = encoder_layer.feed_forward_residual.enter(halfway)  # LayerNorm
inside, _ = relu(linear(normalised, w_1, b_1)[0])
outside, _ = feed_forward(normalised, w_1, b_1, w_2, b_2)
first_layer, _ = encoder_layer.forward(x, source_mask)
assert np.allclose(to_host(halfway + outside), to_host(first_layer), atol=1e-4)
memory, _ = model.encode(batch.source, source_mask)
shape_table(
    sizes,
    attended=(attended, "B S D", "what the attention found, all heads; added to x"),
    inside=(inside, "B S F", "wide, within the feed-forward network"),
    outside=(outside, "B S D", "and narrow again, to be added to its input"),
    memory=(memory, "B S D", "the output of the encoder: each German word in its context"),
)

# %% [markdown]
# **Decoder: English looks at English, then at German.** A layer of the decoder has three parts. In **masked self-attention** each
# English position looks at itself and at earlier ones; later ones are hidden by the **causal mask**, for they are what is to be
# predicted. In **cross-attention** the queries come from the English side, keys and values from the memory. Its weights
# are the picture of section 2. Then comes a feed-forward network, as before. ([Lesson 11](11_the_transformer.ipynb))

# %%
y, _ = model.decode(batch.target, memory, source_mask)
cross = cross_attention(model, batch.source, batch.target)[0]  # of the first layer
shape_table(
    sizes,
    cross=(cross, "B H T S", "where each English position looks in the German sentence"),
    y=(y, "B T D", "the output of the decoder"),
)

# %% [markdown]
# **Rows of numbers to words.** One more matrix product gives every word of the vocabulary a score, its **logit**; the table is that of the
# embeddings again. The **softmax** turns scores into probabilities. ([Lesson 04](04_softmax_cross_entropy.ipynb)) That is all a
# Transformer ever says: how probable each next word is. To write a sentence one takes a word, appends it to the target, and asks again.
# ([Lesson 14](14_decoding.ipynb))

# %%
logits, _ = model.output_projection.forward(y)
p, _ = softmax(logits)
last = to_host(p)[1, 5]  # of the second sentence, after the start symbol and five pieces
before = " ".join(vocabulary.pieces(batch.target[1, 1:6].tolist())).replace("▁", "")
for i in np.argsort(-last)[:3]:
    piece = vocabulary.pieces([int(i)])[0].removeprefix("▁")
    print(f"P({piece} | {before}) = {last[i]:.3f}")
assert np.allclose(to_host(p).sum(axis=-1), 1, atol=1e-4)

shape_table(
    sizes,
    logits=(logits, "B T V", "a score for each word at each position"),
    p=(p, "B T V", "probabilities of the next word; each row sums to 1"),
)

# %% [markdown]
# ## 4 · And back again
#
# Training needs the slope of the loss with respect to each parameter. A library with automatic differentiation finds them
# out of sight. Here every layer is a **pair of functions**, and you can read both. The forward returns its result and a **cache**,
# what the backward will need. The backward is given `dy`, the gradient of the loss with respect to `y`, and returns `dx`, that with
# respect to `x`. A gradient has the shape of what it belongs to, always. The shortest pair of the package:

# %%
source_of(relu, relu_backward)

# %% [markdown]
# Whether a backward is right can be measured: move each input a little and see how far the output moves. The checker does it for
# every number, and it notices a backward that forgets where the input was negative. ([Lesson 03](03_gradient_checking.ipynb))

# %%
numbers = rng.standard_normal((3, 5))
print(check_pair(relu, relu_backward, (numbers,)))
forgets = check_pair(relu, lambda dy, cache: dy, (numbers,))
print(forgets)
assert check_pair(relu, relu_backward, (numbers,)).right
assert not forgets.right

# %% [markdown]
# The backward of the model is that of its layers, last one first. It ends at the parameters: afterwards each has a gradient.

# %%
model.zero_grad()
(loss, nll), cache = model.loss(batch)
model.loss_backward(1.0, cache)
embedding, w_query = model.source_embedding.weight, module.w_query
shape_table(
    sizes,
    loss=(loss, "", "one number, the mean over all tokens"),
    embedding=(embedding.data, "V D", "a parameter"),
    dembedding=(embedding.grad, "V D", "its gradient"),
    w_query=(w_query.data, "D D", "the queries' parameter of the first layer"),
    dw_query=(w_query.grad, "D D", "its gradient"),
)

# %% [markdown]
# ## 5 · The map
#
# From the paper to the code to the lesson. The paper is at
# [arxiv.org/abs/1706.03762](https://arxiv.org/abs/1706.03762); read it beside the course.
#
# | in the paper | what | in the package | lesson |
# |---|---|---|---|
# | 3, figure 1 | the whole model | `minitransformer/models/transformer.py` | [11](11_the_transformer.ipynb) |
# | 3.1 | stacks of layers, residual connections | `minitransformer/models/stacks.py`, `minitransformer/layers/residual.py` | [10](10_residual_connections.ipynb), [11](11_the_transformer.ipynb) |
# | 3.1 | layer normalisation | `minitransformer/layers/layer_norm.py` | [07](07_layer_norm.ipynb) |
# | 3.2.1, equation 1 | scaled dot-product attention | `minitransformer/layers/attention.py`, `minitransformer/layers/softmax.py` | [08](08_attention.ipynb) |
# | 3.2.2 | multi-head attention | `minitransformer/layers/attention.py`, `minitransformer/layers/linear.py` | [09](09_multi_head_attention.ipynb) |
# | 3.2.3 | its three uses, masks | `minitransformer/models/stacks.py`, `minitransformer/masks.py` | [08](08_attention.ipynb), [09](09_multi_head_attention.ipynb) |
# | 3.3, equation 2 | feed-forward network | `minitransformer/layers/feed_forward.py`, `minitransformer/layers/relu.py`, `minitransformer/layers/linear.py` | [02](02_backpropagation.ipynb) |
# | 3.4 | embeddings, tied weights | `minitransformer/layers/embedding.py` | [05](05_tokens_and_embeddings.ipynb) |
# | 3.4 | softmax over the vocabulary | `minitransformer/layers/softmax.py`, `minitransformer/loss/cross_entropy.py`, `minitransformer/loss/projected_loss.py` | [04](04_softmax_cross_entropy.ipynb) |
# | 3.5 | positional encoding | `minitransformer/layers/positional_encoding.py` | [06](06_positions.ipynb) |
# | 4, table 1 | operations of attention | `minitransformer/layers/attention.py` | [09](09_multi_head_attention.ipynb), [11](11_the_transformer.ipynb) |
# | 5.1 | data, subwords, batches | `minitransformer/data/vocabulary.py`, `minitransformer/data/batches.py` | [05](05_tokens_and_embeddings.ipynb), [13](13_training_for_real.ipynb) |
# | 5.2 | hardware | `minitransformer/backend.py`, `minitransformer/accelerate/`, `minitransformer/twins.py`, `minitransformer/workers.py` | [90](90_arrays_and_devices.ipynb), [17](17_making_it_fast.ipynb) |
# | 5.3, equation 3 | Adam, the learning rate | `minitransformer/training/adam.py`, `minitransformer/training/schedule.py` | [12](12_learning.ipynb) |
# | 5.4 | dropout | `minitransformer/layers/dropout.py` | [12](12_learning.ipynb) |
# | 5.4 | label smoothing | `minitransformer/loss/cross_entropy.py` | [04](04_softmax_cross_entropy.ipynb), [12](12_learning.ipynb) |
# | 6.1 | beam search, BLEU, averaged checkpoints | `minitransformer/decoding/`, `minitransformer/evaluation.py`, `minitransformer/training/trainer.py` | [14](14_decoding.ipynb), [13](13_training_for_real.ipynb) |
# | 6.2, table 3 | sizes of models | `minitransformer/models/transformer_config.py` | [11](11_the_transformer.ipynb) |
# | figures 3 to 5 | what heads look at | `minitransformer/plots.py` | [15](15_looking_inside.ipynb) |
# | not in it | backpropagation by hand | `minitransformer/module.py` | [02](02_backpropagation.ipynb) |
# | not in it | checking gradients | `minitransformer/gradcheck/` | [03](03_gradient_checking.ipynb) |
# | not in it | a run that can be resumed | `minitransformer/run_folder.py`, `minitransformer/checkpoint/` | [13](13_training_for_real.ipynb) |
# | not in it | your functions in place of the package's | `minitransformer/own/` | [18](18_your_own_transformer.ipynb) |
#
# A map is worth something if it is right. Every file on it has to exist, every layer has to be on it; and where the lessons lie
# beside this one, the same for them.

# %%
package = Path(minitransformer.__file__).parent
here = Path("00_start_here.py")
if here.is_file():
    lines = here.read_text(encoding="utf-8").splitlines()
    the_map = [line for line in lines if line.startswith("# |") and "`minitransformer/" in line]
    on_map = set(re.findall(r"`minitransformer/(\S+?)`", "\n".join(the_map)))
    missing = [name for name in on_map if not (package / name).exists()]
    layers = {f"layers/{path.name}" for path in (package / "layers").glob("[!_]*.py")}
    linked = set(re.findall(r"\((\d\d_\w+)\.ipynb\)", "\n".join(the_map)))
    lessons = {path.stem for path in Path().glob("[0-9][0-9]_*.py")} - {here.stem}
    print(f"{len(on_map)} places in the package; missing: {missing or 'none'}")
    print(f"{len(layers)} layers; not on the map: {sorted(layers - on_map) or 'none'}")
    print(f"{len(lessons)} lessons; not on the map: {sorted(lessons - linked) or 'none'}")
    assert not missing
    assert layers <= on_map
    assert lessons == linked
else:
    print("The other lessons are not here; the map is checked where they are.")

# %% [markdown]
# ## 6 · Symbols and words
#
# The same letter means the same thing in all lessons, unless a lesson says otherwise. In code, letters are names: γ is `gamma`,
# $dx$ is `dx`. In German and in Chinese many people say the English word; the words here are those that texts in these languages
# use or give beside it.
#
# ### Sizes
#
# | symbol | English | 中文 | Deutsch | note |
# |---|---|---|---|---|
# | $B$ | batch size | 批大小 | Batchgröße | sentences in a batch |
# | $S$ | source length | 源序列长度 | Länge der Quellsequenz | tokens, padding included |
# | $T$ | target length | 目标序列长度 | Länge der Zielsequenz | the length, where there is only one sequence |
# | $D$, $d_{\text{model}}$ | model width | 模型维度 | Modellbreite | numbers for each token |
# | $H$, $h$ | number of heads | 注意力头数 | Anzahl der Köpfe | the paper's $h$; an index $h$ is one of them |
# | $K$, $d_k$, $d_v$ | head width | 每个头的维度 | Breite eines Kopfes | $D / H$ |
# | $F$, $d_{ff}$ | inner width of the feed-forward network | 前馈层维度 | innere Breite des Feedforward-Netzes | |
# | $V$ | vocabulary size | 词表大小 | Größe des Vokabulars | subwords |
# | $N$ | number of layers; in sums, number of rows or tokens | 层数 | Anzahl der Schichten | the paper's $N$ is 6 |
# | $W$ | beam width | 束宽 | Strahlbreite (Beam-Breite) | with indices, a weight |
#
# ### Quantities
#
# | symbol | English | 中文 | Deutsch | note |
# |---|---|---|---|---|
# | $x$, $y$ | input, output of a layer | 输入、输出 | Eingabe, Ausgabe | |
# | $L$ | loss | 损失 | Verlust | what training lowers, one number |
# | $dx$ | gradient of the loss with respect to $x$ | 损失对 $x$ 的梯度 | Gradient des Verlusts nach $x$ | $\partial L / \partial x$, of the shape of $x$ |
# | $dy$ | upstream gradient | 上游梯度 | eingehender Gradient (Upstream-Gradient) | what a backward is given |
# | $\Delta x$ | small change of $x$ | $x$ 的微小变化 | kleine Änderung von $x$ | not a gradient |
# | $J$ | Jacobian matrix | 雅可比矩阵 | Jacobi-Matrix | all partial derivatives |
# | $h$ | step of a finite difference; or a hidden state | 步长;隐藏状态 | Schrittweite; verborgener Zustand | `h` in code: a value on its way |
# | $W$, $b$ | weight matrix, bias | 权重矩阵、偏置 | Gewichtsmatrix, Bias | $y = x W + b$ |
# | $E$ | embedding matrix | 嵌入矩阵 | Einbettungsmatrix | $(V, D)$ |
# | $PE$ | positional encoding | 位置编码 | Positionskodierung | |
# | $Q$, $K$, $V$ | queries, keys, values | 查询、键、值 | Anfragen, Schlüssel, Werte | in formulas of attention; elsewhere $K$ and $V$ are sizes |
# | $Z$, $z$ | scores, logits | 分数、logits(未归一化分数) | Scores, Logits | what a softmax is given |
# | $A$, $\alpha_{ts}$, $a_{ts}$ | attention weights | 注意力权重 | Aufmerksamkeitsgewichte | rows sum to 1 |
# | $M$ | memory; or a mask | 编码器输出;掩码 | Ausgabe des Encoders; Maske | |
# | $p$ | probability | 概率 | Wahrscheinlichkeit | of words; also that of dropout, $P_{\text{drop}}$ |
# | $q$ | target distribution | 目标分布 | Zielverteilung | after label smoothing |
# | $P(Y \mid X)$ | probability of a translation | 译文的条件概率 | Wahrscheinlichkeit einer Übersetzung | $Y$ the translation, $X$ the source |
# | $\omega$ | angular frequency of a position's wave | 角频率 | Kreisfrequenz | in positional encodings |
# | $\mu$, $\sigma$ | mean, standard deviation | 均值、标准差 | Mittelwert, Standardabweichung | |
# | $\hat x$ | normalised $x$ | 归一化后的 $x$ | normalisiertes $x$ | mean 0, variance 1 |
# | $\gamma$, $\beta$ | gain, shift of LayerNorm | 缩放参数、平移参数 | Skalierung, Verschiebung | |
# | $\varepsilon$, $\epsilon$ | small constant; or label smoothing $\epsilon_{ls}$ | 小常数;标签平滑系数 | kleine Konstante; Stärke der Glättung | the lesson says which |
# | $\theta$, $g$ | parameters, their gradient | 参数、梯度 | Parameter, Gradient | |
# | $\eta$ | learning rate | 学习率 | Lernrate | |
# | $m$, $v$ | first and second moment | 一阶矩、二阶矩 | erstes und zweites Moment | running means of $g$ and $g^2$ |
# | $\beta_1$, $\beta_2$ | decay rates of Adam | 矩估计的衰减率 | Abklingraten von Adam | |
# | $\xi$ | gate, a factor on a number or a head | 门控系数 | Gate, Torfaktor | 0 removes it; dropout draws such factors |
# | $\alpha$ | exponent of the length penalty | 长度惩罚指数 | Exponent der Längenstrafe | in decoding |
# | $\tau$ | temperature | 温度 | Temperatur | what logits are divided by before the softmax |
# | $\kappa$ | weight of the consistency loss | 一致性损失的权重 | Gewicht des Konsistenzverlusts | R-Drop, `kappa` |
# | $u$ | unit roundoff | 单位舍入误差 | Rundungseinheit (Maschinengenauigkeit) | half the distance from 1 to the next number |
# | $\circ$ | product entry by entry | 逐元素乘积 | elementweises Produkt | NumPy's `*` |
# | $\langle a, b \rangle$ | inner product | 内积 | Skalarprodukt | the sum of $a \circ b$ |
# | $[i = j]$ | 1 where $i = j$, else 0 | 艾弗森括号(指示函数) | Iverson-Klammer (Indikatorfunktion) | |
# | $\mathbf 1$ | vector of ones | 全 1 向量 | Einsvektor | $\mathbf 1^\top x$ is a sum |
#
# ### Words
#
# | English | 中文 | Deutsch | what it is |
# |---|---|---|---|
# | attention | 注意力 | Aufmerksamkeit (Attention) | a weighted average, the weights found by comparing |
# | self-, cross-attention | 自注意力、交叉注意力 | Selbst-, Kreuzaufmerksamkeit | queries from the same sequence as the keys, or from the other |
# | multi-head attention | 多头注意力 | Mehrkopf-Aufmerksamkeit | several attentions side by side |
# | head | 注意力头 | Kopf (Attention-Kopf) | one of them, on its own $K$ numbers |
# | encoder, decoder | 编码器、解码器 | Encoder, Decoder | reads the source; writes the target |
# | layer, sublayer | 层、子层 | Schicht, Teilschicht | a sublayer is one attention or one feed-forward network |
# | feed-forward network | 前馈网络 | Feedforward-Netz | $\max(0, x W_1 + b_1) W_2 + b_2$ |
# | residual connection | 残差连接 | Residualverbindung | $x + \text{Sublayer}(x)$ |
# | pre-norm, post-norm | 前置归一化、后置归一化 | Pre-Norm, Post-Norm | LayerNorm before the sublayer, or after the sum |
# | layer normalisation | 层归一化 | Schichtnormalisierung | each row to mean 0, variance 1 |
# | embedding | 嵌入 | Einbettung | the row of numbers of a token |
# | tied weights | 权重共享 | gekoppelte Gewichte | one matrix in several places |
# | token, subword | 词元、子词 | Token, Teilwort | a piece of text with an id |
# | byte-pair encoding | 字节对编码 | Byte-Paar-Kodierung | builds a vocabulary by merging pairs |
# | padding, `pad` | 填充 | Auffüllung (Padding) | ids that stand for nothing, `PAD` = 0 |
# | start, end symbol | 起始符、结束符 | Start-, Endsymbol | `BOS` and `EOS`, here `<s>` and `</s>` |
# | mask, causal mask | 掩码、因果掩码 | Maske, kausale Maske | True where one may look |
# | softmax | softmax 函数(归一化指数函数) | Softmax | scores to probabilities |
# | cross-entropy, NLL | 交叉熵、负对数似然 | Kreuzentropie, negative Log-Likelihood | mean of $-\ln p$ of the right words, in nats |
# | label smoothing | 标签平滑 | Label-Glättung | the right word gets $1 - \epsilon_{ls}$ of the target, and all $V$ words share the rest |
# | forward, backward pass | 前向传播、反向传播 | Vorwärts-, Rückwärtsdurchlauf | values, then gradients |
# | chain rule | 链式法则 | Kettenregel | why the backward goes layer by layer |
# | cache | 缓存 | Zwischenspeicher (Cache) | what a forward keeps for its backward |
# | gradient check | 梯度检验 | Gradientenprüfung | against finite differences, 有限差分, finite Differenzen |
# | batch, step, epoch | 批次、步、轮次 | Batch, Schritt, Epoche | an epoch is a pass over all pairs |
# | optimizer, warm-up | 优化器、预热 | Optimierer, Aufwärmphase | Adam; the learning rate rises at first |
# | dropout | 随机失活(dropout) | Dropout | numbers set to 0 at random, in training |
# | overfitting | 过拟合 | Überanpassung | learned by heart |
# | ablation | 消融实验 | Ablationsstudie | take one thing away and measure |
# | pruning | 剪枝 | Pruning (Stutzen) | remove parts for good |
# | calibration | 校准 | Kalibrierung | words said with probability 0.7 are right seven times out of ten |
# | checkpoint | 检查点 | Checkpoint (Speicherstand) | from which a training can go on |
# | greedy, beam search | 贪心搜索、束搜索 | gierige Suche, Strahlsuche | the best next word; the best few beginnings |
# | key/value cache | 键值缓存 | Schlüssel-Wert-Cache | keys and values of what was already said |
# | reference, hypothesis | 参考译文、候选译文 | Referenz, Hypothese | a person's translation, and the model's |
# | BLEU | BLEU 值 | BLEU-Wert | shared runs of words with the reference, 0 to 100 |
# | matrix product (GEMM) | 通用矩阵乘法 | Matrixprodukt (GEMM) | where most of the time goes |
# | memory-bound | 访存受限 | speicherlimitiert | waits for memory, not for arithmetic |
# | kernel, fused | 核函数、算子融合 | Kernel, verschmolzen | one program on the GPU; several in one |
#
# ## 7 · How to use the course
#
# **Your own Transformer** begins as [lessons/exercises/own.py](exercises/own.py), a stub, with shapes and a hint, for each
# function that one is made of. Copy it and all exercises once, `cp -r lessons/exercises answers`; the copy is yours, and Git
# leaves it alone. A lesson ends with those functions of `answers/own.py` that you can then write. Whenever you like,
#
# ```sh
# minitransformer check own
# minitransformer train toy --own answers/own.py
# ```
#
# The first says which of them are right, what is probably wrong with the others, and where to go on. The second trains the
# translator on them, with the package's in place of those that you have not written yet.
# [Lesson 18](18_your_own_transformer.ipynb) is the way through the file.
#
# **Every lesson stands alone.** It starts from a question, derives one thing in full, shows the code of the package, proves it,
# and ends with exercises and a card. Choose a route:
#
# | you want | lessons |
# |---|---|
# | a Transformer of your own | 02 to 14, an evening each, with the functions of `own.py`; then 17 |
# | the whole model in a weekend | Saturday 02, 03, 04, 05, 06, 07; Sunday 08, 09, 10, 11, 12, 15. An hour each to read, and the shortest exercise of each |
# | everything | 01 to 17, in this order, an evening each |
# | only attention | 08, 09, then 15 |
# | only gradients by hand | 02, 03, then 04 and 07 |
# | to train on text of your own | 05, 12, 13, 14 |
# | only speed | 01, 16 |
#
# **Exercises** go further. Those of lesson 7 are in `answers/ex07.py`: stubs that say what to write, and how long it may take. Fill
# in what you like and run `minitransformer check ex07`. Each part is *right*, *to do*, or *WRONG* with what is wrong about it; where
# it is a gradient, by which factor, and what that factor may come from. `minitransformer check` alone lists all of them. The
# solutions say more than the code: look at them afterwards.

# %%
minutes = [part.minutes for name in exercise_names() for part in parts_of(name)]
print(f"{len(minutes)} exercises, {sum(minutes) / 60:.0f} hours if you do them all")
for length in sorted(set(minutes)):
    print(f"  {minutes.count(length):2} of {length} minutes")

# %% [markdown]
# **On a GPU.** Change one line, near the top of a lesson: `device = select_device("cuda")`. CuPy has to be there, and the driver;
# `minitransformer info` says what was found. This lesson gives the same, up to rounding. It may well be slower: the model is too
# small to keep a GPU busy. [Lesson 90](90_arrays_and_devices.ipynb) explains when a GPU pays.
#
# **If you are stuck.** `help(f)` shows what a function takes, with shapes, and what errors mean; `minitransformer --help` lists the
# commands. An error of the package says what was given, what was expected and what to do; if one leaves you helpless, or a lesson has
# lost you, that is a mistake of ours: open an issue at the project's page, with the output of `minitransformer info`.
# `CONTRIBUTING.md` says how to change something yourself. A better word for the glossary is welcome too.
#
# ## 8 · Exercises
#
# Fill in `answers/ex00.py`, your copy of [lessons/exercises/ex00.py](exercises/ex00.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex00
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The
# solutions are in [lessons/solutions/ex00.py](solutions/ex00.py). These four are short. When they are right your tools work,
# and you know the letters.
#
# 1. **`most_attended`** (5 min). Which German word did each English word look at most, over all heads? You have an array
#    and must know which axis is which.
# 2. **`crossings`** (5 min). A number for how far a translation is from word by word. What is it for the picture of section 2?
#    Count there first, by eye, in the rows of its seven words, without the comma, the full stop and the end.
# 3. **`shapes_in_the_model`** (15 min). From the sizes alone: the shapes of seven arrays on the way through the model.
#    Close section 3 before you begin.
# 4. **`count_parameters`** (15 min). How many numbers does training change? `print(model.summary())` shows where they are; write
#    the formula. It has to hold for every model of this kind, and gives what `model.num_parameters()` counts.

# %%
print(check_exercise("ex00", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | the model | the probability of each next word, given the source and the words so far |
# | shapes | ids $(B, S)$, rows $(B, S, D)$, attention weights $(B, H, T, S)$, logits $(B, T, V)$ |
# | a layer | `y, cache = f(x)` and `dx = f_backward(dy, cache)`; $dx$ has the shape of $x$ |
# | a step | `zero_grad`, loss, backward, Adam |
# | an attention map | a row is a word being chosen, a column a word looked at; each row sums to 1 |
# | off the diagonal | where the two languages differ in order: the German verb |
# | trap | a weight is where a head looked, not why the model said it |
# | an exercise | fill in `answers/exNN.py`, your copy, then `minitransformer check exNN` |
#
# **Your own Transformer.** Nothing to write yet: `minitransformer check own` lists what there is to write in
# `answers/own.py`, in the order of the lessons, and names the lesson of the next.
#
# **Next:** what all of this is computed on, in [lesson 90](90_arrays_and_devices.ipynb); or straight to how
# gradients are found, in [lesson 02](02_backpropagation.ipynb).
