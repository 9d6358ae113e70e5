# %% [markdown]
# # 00 · Start here
#
# **You will** watch a model learn to translate German, in seconds and on your machine; type sentences for it and see
# where it looks; and know where to begin the course. It leaves you with a Transformer of your own: one file whose
# every function, forward and backward, you wrote and checked.
#
# | | |
# |---|---|
# | In the paper | all of *Attention Is All You Need* (Vaswani et al. 2017); [the map](../docs/code.md) says where what is |
# | In the package | `minitransformer/models/transformer.py`, `minitransformer/inference/translator.py` |
# | You need | Python and NumPy's arrays |
# | Time | half an hour to read and to play, twenty minutes for the exercises |

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
import re
import textwrap

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import (
    Adam,
    Transformer,
    TransformerConfig,
    Translator,
    accelerated,
    select_device,
)
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.data.text.batches import encode_pairs, make_batches
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.toy.lexicon import ANIMALS, DRINKS, FOOD, PEOPLE, VERBS
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.decoding import cross_attention
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.optim import schedule

use_style()
device = select_device("cpu")  # "cuda" trains the translator on a GPU
rng = np.random.default_rng(0)

# %% [markdown]
# ## 1 · It learns where to look
#
# *Heute kann die Frau einen Apfel kaufen.* Word by word: today can the woman an apple buy. In German *kaufen* stands at
# the end. Whoever translates has to look at the right word at the right time.
#
# Below, a model learns this from pairs of sentences, German and English. This sentence is not among them. (The code is
# folded away. If you run the lesson, run these cells too. The training takes some seconds.)

# %% tags=["hide-input"]
# The corpus, the model and its training, of which section 3 tells.
GERMAN, ENGLISH = "Heute kann die Frau einen Apfel kaufen.", "Today, the woman can buy an apple."
LONGEST, EPOCHS = 9, 6

corpus = toy_corpus()
pairs, test = (
    [(german, english) for german, english in corpus[split] if len(german.split()) <= LONGEST]
    for split in ("train", "test")
)
vocabulary = Vocabulary.train([text for pair in pairs for text in pair], 1200)
config = TransformerConfig.preset(
    "toy",
    len(vocabulary),
    d_model=64,
    num_heads=4,
    d_ff=256,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
    max_length=64,
)
model = Transformer(config, device=device)
translator = Translator(model, vocabulary, threads=1)


def batches_of(pairs, **random):
    return make_batches(encode_pairs(vocabulary, pairs, config.max_length)[0], 1400, **random)


def look():
    """What the model makes of our sentence, and where it looks for the right words, (T, S)."""
    said = translator.translate([GERMAN], beam_size=1)[0]
    (one,) = batches_of([(GERMAN, ENGLISH)])
    weights = cross_attention(model, one.source, one.target)[:, 0]  # (layers, heads, T, S)
    return said, weights[-1].mean(axis=0)


def train(model, epochs):
    """Train on the batches; the loss of each step, and a look after each epoch."""
    adam, total = Adam(model.flat), sum(map(len, epochs))
    curve, looks = [], [look()]
    for batches in epochs:
        for batch in batches:
            rate = schedule.linear_decay(len(curve) + 1, 4e-3, 100, total)
            with accelerated():
                model.zero_grad()
                (loss, _), cache = model.loss(batch)
                model.loss_backward(1.0, cache)
                adam.step(rate)
            curve.append(loss)
        looks.append(look())
    return [float(loss) for loss in curve], looks


epochs = [batches_of(pairs, rng=rng) for _ in range(EPOCHS)]
curve, looks = train(model, epochs)

# %% [markdown]
# Here is the model at four moments of its training. Above each map stands what it makes of the sentence by itself. The
# rows are the words of the right translation, in all four maps; the columns are the German words. The darker a cell,
# the more the model looks at this German word to choose this English one.

# %% tags=["hide-input"]
# What draws the maps, and the first picture.
NEVER_SEEN = "It has never seen: {}. It has no way of saying so, and writes something else."
TOO_LONG = f"This is longer than all that it learned from, at most {LONGEST} words."
seen_words = {word.lower() for german, _ in pairs for word in re.findall(r"\w+", german)}


def draw(axes, weights, rows, columns, fontsize):
    image = axes.imshow(weights, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=fontsize, parse_math=False)
    axes.set_yticks(range(len(rows)), rows, fontsize=fontsize, parse_math=False)
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(False)
    axes.grid(which="minor", color="0.9", lw=0.5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    return image


def show(german):
    """Print the translation, and draw where the model looked for each piece of it."""
    if not german.strip():
        print("Write a German sentence between the quotation marks.")
        return
    words = re.findall(r"\w+", german)
    if unknown := [word for word in words if word.lower() not in seen_words]:
        print(NEVER_SEEN.format(", ".join(unknown)))
    if len(words) > LONGEST:
        print(TOO_LONG)
    found = translator.translations([german], beam_size=1, attention=True)[0][0]
    print(german, "→", found.text)
    rows, columns = (
        [piece.removeprefix("▁") for piece in pieces]
        for pieces in (found.pieces, found.source_pieces)
    )
    weights = found.attention[-1].mean(axis=0)  # (T, S)
    figure, axes = plt.subplots(figsize=(0.5 * len(columns) + 2.6, 0.4 * len(rows) + 1.8))
    image = draw(axes, weights, rows, columns, 11)
    for t, s in np.argwhere(weights >= 0.2):
        colour = "white" if weights[t, s] > 0.6 else BLACK
        axes.text(s, t, f"{weights[t, s]:.2f}", ha="center", va="center", color=colour, fontsize=8)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="looked at: German", ylabel="chosen: English, from top to bottom")
    figure.colorbar(image, label="attention weight", shrink=0.6)


def quoted(text):
    return textwrap.fill(f"“{text}”" if len(text) < 60 else f"“{text[:40]}…", 24)


(one,) = batches_of([(GERMAN, ENGLISH)])
rows, columns = (
    [piece.removeprefix("▁") for piece in vocabulary.pieces(ids[0].tolist())]
    for ids in (one.labels, one.source)
)
figure, panels = plt.subplots(1, 4, figsize=(10, 3.9), sharey=True, layout="compressed")
for axes, epoch in zip(panels, (0, 1, 2, EPOCHS), strict=True):
    said, weights = looks[epoch]
    image = draw(axes, weights, rows, columns, 9)
    when = ["before training", "after 1 epoch"][epoch] if epoch < 2 else f"after {epoch} epochs"
    axes.set_title(f"{when}:\n{quoted(said)}", fontsize=10, va="bottom", parse_math=False)
    frame = dict(fill=False, edgecolor=VERMILION, lw=2, clip_on=False, zorder=3)
    axes.add_patch(plt.Rectangle((-0.5, rows.index("buy") - 0.5), len(columns), 1, **frame))
panels[0].set_ylabel("English, to be chosen")
figure.supxlabel("German, to look at (one training, seed 0)", fontsize=10)
figure.colorbar(image, ax=panels, label="attention weight", shrink=0.6, pad=0.01)
plt.show()

# %% [markdown]
# An **epoch** is one pass over all pairs. Before training the model looks everywhere and repeats a random word, here
# a German one: both languages share a vocabulary. After one epoch it writes English, but only some words come from
# our sentence. At the end its translation is right. Follow the framed row, *buy*: its weight gathers in the column
# *kaufen*. Nobody told the model about verbs. It learned this from examples alone.
#
# ## 2 · Your sentence
#
# The model learned from a **toy corpus**, which a small program wrote with a small lexicon. We took its sentences of at
# most nine words. Here are people, animals, food, drinks, and what they do:

# %% tags=["hide-input"]
the = {"m": "der", "f": "die", "n": "das"}
for nouns in (PEOPLE, ANIMALS, FOOD, DRINKS):
    known = [f"{the[noun.gender]} {noun.singular} ({noun.english})" for noun in nouns]
    print(textwrap.fill(", ".join(known), 88, subsequent_indent="    "))
known = [f"{verb.third} ({verb.english})" for verb in VERBS if not verb.prefix]
print(textwrap.fill(", ".join(known), 88, subsequent_indent="    "))

# %% [markdown]
# In the notebook: write another sentence between the quotation marks and run the cell again (Shift and Enter). Fill in
# *Heute kann … einen … kaufen.*, say with *das Kind* and *Keks*. (*einen* is for words with *der*; those with *die*
# have *eine*, those with *das* have *ein*.)

# %%
german = "Heute kann die Frau einen Apfel kaufen."

show(german)

# %% [markdown]
# **How to read it.** The rows are now the model's own words. Start at the top and go down. Each row is one step of
# writing: the model chooses the word beside it. To do so it takes an average of what it knows of each German word, some
# with a large weight, some with a small one. The weights are its **attention**. Each row sums to 1; numbers below 0.2
# are left out. `</s>` is the end of the sentence.
#
# - *can* comes after *the woman*, and *kann* stands before *die Frau*. So the path jumps **back**.
# - *buy* comes before *an apple*, and *kaufen* stands after *Apfel*. So it jumps **ahead**, and then back again.
# - The comma has no German word to look at. Its row must sum to 1 all the same, so do not read much into its weights.
#   The full stop has one; *the* and *an* give it a quarter of their weight, by one of four heads (section 4).
#
# If you have no German, here are four sentences. Guess what comes out before you read on.
#
# - *Der Junge ruft die Frau.* and *Den Jungen ruft die Frau.* Only the endings say who calls whom.
# - *Der Esel schläft.* It means that the donkey is sleeping. But the corpus has no donkey.
# - *Die Katze trinkt kalte Milch.* German has one word for *is drinking*. Where does the model look for *is*?

# %%
for german in ("Der Junge ruft die Frau.", "Den Jungen ruft die Frau.", "Der Esel schläft."):
    print(german, "→", *translator.translate([german], beam_size=1))
assert "esel" not in seen_words
print("The pieces of Esel:", *vocabulary.pieces(vocabulary.encode("Esel")))
show("Die Katze trinkt kalte Milch.")

# %% [markdown]
# *is* and *drinking* both look at *trinkt*. *kalte* has two columns, because the model reads and writes **pieces**:
# whole words, or parts of words. (▁ begins a word.) So it gets *Esel*, which it does not know, in parts. It has never
# learned to write “I do not know this word”, and writes something else.
#
# The explorer is a page with a translator like this one in it:
# [watch it look](../README.md#look-inside "#view=attention&attention=cross&layer=2"), for a sentence of yours.
#
# ## 3 · How it learned
#
# Three of the pairs that it read, and how large it is:

# %%
assert GERMAN not in {german for german, _ in pairs}  # it is not learned by heart
for german, english in pairs[:3]:
    print(f"{german}\n  → {english}")
print(f"{len(pairs):,} pairs, {model.num_parameters():,} parameters")

# %% [markdown]
# A **parameter** is a number that training changes. At first all are random. This is the whole training:

# %%
source_of(train)

# %% [markdown]
# Each step gets a **batch** of pairs. The work is done in four lines, those below `accelerated()`, which chooses the
# faster of the package's functions:
#
# 1. `zero_grad` clears what the last step left behind.
# 2. `model.loss` is the **forward pass**. How improbable were the right words to the model? That is the **loss**: the
#    mean of $-\ln p$, where $p$ is the probability that the model gave to the right word.
# 3. `loss_backward` is the **backward pass**. It finds for each parameter in which direction the loss falls.
# 4. `adam.step` moves all parameters a little in that direction. Adam is the **optimizer**.
#
# Nothing is differentiated automatically. Every backward pass is a function that you can read, and in this course you
# write your own. What the model made of our sentence after each epoch:

# %%
for epoch, (said, _) in enumerate(looks):
    print(f"epoch {epoch}:", said if len(said) < 60 else said[:60] + "…")
uniform = np.log(len(vocabulary))  # the loss where all words are equally probable
assert 0 < curve[0] - uniform < 1
assert np.mean(curve[len(epochs[0]) + len(epochs[1]) :]) < uniform / 10
assert looks[0][1].max() < 0.5  # it looks everywhere

# %% [markdown]
# First it learns which words follow each other. The content comes later, and *an* in place of *a* comes last. (Your
# processor may round differently. Then a word or two come out in another epoch.) And this is the loss of each step,
# with a dotted line at the end of each epoch. It starts a little above that of guessing, and most is won in two epochs:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3))
axes.plot(curve, color=BLUE, lw=1.0)
axes.axhline(uniform, color=BLACK, lw=0.8)
axes.text(len(curve), uniform + 0.1, "all words equally probable", ha="right", va="bottom")
for epoch in range(1, EPOCHS + 1):
    axes.axvline(sum(map(len, epochs[:epoch])), color="0.5", ls=":", lw=1)
axes.set(xlim=(-5, len(curve) + 5), ylim=(0, 8.5), xlabel="step (one batch each)")
axes.set(ylabel=r"loss, mean of $-\ln p$", title="one training, seed 0")
plt.show()

# %% [markdown]
# ## 4 · How good it is, and where it looks
#
# One sentence proves little. The corpus has test sentences, with combinations of words that no training sentence has.

# %%
said = translator.translate([german for german, _ in test], beam_size=1)
wrong = [i for i, (_, english) in enumerate(test) if said[i] != english]
print(
    f"{1 - len(wrong) / len(test):.0%} of {len(test)} test sentences are exactly right; not these:"
)
for i in wrong[:2]:
    print(f"  {test[i][0]}\n    should be  {test[i][1]}\n    is         {said[i]}")
assert 0 < len(wrong) < len(test) / 4

# %% [markdown]
# One picture does not prove much either. So we count. We take the test sentences without a comma that end with a verb
# which comes earlier in English. Where does the model look, on average, to choose this verb?

# %%
english_of = {verb.lemma: "▁" + verb.english.split()[0] for verb in VERBS}  # kaufen: ▁buy
on_verb, on_same_place = [], []
for pair in test:
    german, english = (vocabulary.pieces(vocabulary.encode(text)) for text in pair)
    last = len(german) - 2  # before the full stop
    verb = english_of.get(german[last].removeprefix("▁"))
    if verb in english and english.index(verb) < last and "▁," not in german:
        (one,) = batches_of([pair])
        weights = cross_attention(model, one.source, one.target)[-1, 0].mean(axis=0)
        row = weights[english.index(verb)]  # (S,)
        on_verb.append(row[last])
        on_same_place.append(row[english.index(verb)])
print(f"{len(on_verb)} sentences; to choose the English verb, the average weight is")
print(f"  {np.mean(on_verb):.2f} on the German verb, at the end")
print(f"  {np.mean(on_same_place):.2f} on the German word at the English verb's position")
assert np.mean(on_verb) > 0.6 > 0.2 > np.mean(on_same_place)

# %% [markdown]
# The model does not go by position: it finds the verb.
#
# The pictures are averages. The model has two layers, and each looks four times side by side, with four **heads**. A
# translation comes with all of their weights. We drew the mean over the heads of the last layer:

# %%
found = translator.translations([GERMAN], beam_size=1, attention=True)[0][0]
attention = found.attention
t, s = found.pieces.index("▁the"), found.source_pieces.index(".")
print("“the” at the full stop, head by head:", *attention[-1, :, t, s].round(2))
shape_table(
    {"layers": 2, "H": 4, "T": len(found.pieces), "S": len(found.source_pieces)},
    attention=(attention, "layers H T S", "T English pieces look at S German ones"),
    last=(attention[-1], "H T S", "those of the last layer"),
    drawn=(attention[-1].mean(axis=0), "T S", "the mean over its heads: the picture"),
)

# %% [markdown]
# Three warnings, before you show such a picture to somebody:
#
# - **It is one training**, from one seed. Another one has other weights, and other mistakes.
# - **It is a mean.** Single heads look elsewhere. What *the* gives to the full stop comes from one of the four.
# - **A weight says where the model looked**, not whether that mattered. [Lesson 15](15_looking_inside.ipynb) measures
#   the difference.
#
# ## 5 · How to use the course
#
# [**The plan**](README.md) comes first: a drawing of the model with every function that you will write at its place;
# ways through the course for an evening, a weekend, a month or a semester; and what each lesson asks of your time.
# You can also start with any lesson; it says what it needs.
#
# **Your own Transformer** is a file with a stub for each function, [own.py](exercises/own.py). Copy it and all
# exercises once, in the folder of the project: `cp -r lessons/exercises answers`. A lesson ends with the functions
# that you can then write. Whenever you like,
#
# ```sh
# minitransformer check own
# minitransformer train toy --own answers/own.py
# ```
#
# The first says which are right, what is probably wrong with the others, and what is next. The second trains a larger
# translator than this one, with your functions and, where some are missing, ours. It takes minutes.
# `minitransformer check` says how far you are.
#
# **Exercises** go further. `minitransformer check ex07` says of each in `answers/ex07.py`: *right*, *to do*, or
# *WRONG* and why. You need not do them all.
#
# **If you are stuck.** `help(f)` says what a function takes and returns. If an error message does not help you, or a
# lesson has lost you, that is our mistake: open an issue, with the output of `minitransformer info`.
#
# ## 6 · Exercises
#
# Fill in `answers/ex00.py`, your copy of [lessons/exercises/ex00.py](exercises/ex00.py), and run
# `minitransformer check ex00`. Or copy the functions into new cells here, fill them in, and run the cell below again.
# The solutions are in [lessons/solutions/ex00.py](solutions/ex00.py).
#
# 1. **`most_attended`** (10 min). Which German word did each English word look at most? Which axis is which?
# 2. **`crossings`** (10 min). How far a translation is from word by word. Two English words cross if the German words
#    they looked at stand in the other order. How many pairs cross in the first picture of section 2? Count by eye
#    first, in the rows of its seven words, without the comma, the full stop and the end.

# %%
print(check_exercise("ex00", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | an attention map | a row is a word being chosen, a column a word looked at; each row sums to 1 |
# | off the diagonal | where the two languages differ in order: the German verb |
# | weights | $(\text{layers}, H, T, S)$: heads, English pieces, German pieces |
# | a step | `zero_grad`, forward pass, backward pass, Adam |
# | trap | a weight is where the model looked, not why it said it |
# | trap | a word that it has never seen is translated too, and wrongly |
#
# **Your own Transformer.** Nothing to write yet; `minitransformer check own` lists what there will be.
#
# **Next:** what is between the German words and the English ones, array by array, in [lesson
# 01](01_the_way_of_a_sentence.ipynb).
