# %% [markdown]
# # 25 · One vector, or attention
#
# **You will** see what helps a translator that squeezes each sentence into one vector: a wider vector, longer
# training, or attention; derive additive attention, with which it began; and see where it looks.
#
# | | |
# |---|---|
# | In the paper | section 1, on what was there before; section 3.2.1, which compares the two attentions |
# | In the package | `minitransformer/models/recurrent_translator.py`, `layers/additive_attention.py` |
# | You need | recurrent networks ([lesson 19](19_recurrence.ipynb)); attention ([lesson 08](08_attention.ipynb)) |
# | Time | half an hour to read, one for the exercises |

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
from importlib.util import find_spec
from itertools import islice

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, Translator, select_device
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLUE,
    ORANGE,
    PURPLE,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.data.text.batches import Batch, encode_pairs, make_batches
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import BOS, EOS, Vocabulary
from minitransformer.decoding.greedy import greedy
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_pair
from minitransformer.layers.additive_attention import (
    additive_attention,
    additive_attention_backward,
)
from minitransformer.models.recurrent_translator import (
    RecurrentTranslator,
    RecurrentTranslatorConfig,
)
from minitransformer.optim import clipping, schedule

use_style()
device = select_device("cpu")  # "cuda" runs the translators on a GPU
rng = np.random.default_rng(25)

# %% [markdown]
# ## 1 · One vector for a sentence
#
# Two recurrent networks make a translator (Sutskever, Vinyals and Le 2014; Cho et al. 2014). The **encoder** reads the
# source. Its last state is handed to the **decoder**, which says the target. **All of the sentence must go into this
# one vector.** Bahdanau, Cho and Bengio (2015) keep *all* states of the encoder, and let the decoder look at them at
# every step, by attention.
#
# The package's `RecurrentTranslator` is both, with GRUs. With attention, two of them read the source, one from each
# end, so that a state knows what stands on both sides of its word.
#
# The task is to say a word of 2 to 14 random letters backwards. That is kind to the fixed vector, since the letter
# that was read last is said first. With and without attention there are about equally many parameters. What would
# help the fixed vector more: twice the numbers, or three times the updates? Three seeds each:

# %%
LETTERS, SEEDS = 12, (0, 1, 2)
FIRST = 4  # the id of the first letter; those below are BOS, EOS and padding
KINDS = {  # attention, numbers of the state, updates
    "with additive attention": ("additive", 48, 300),
    "a fixed vector": ("none", 58, 300),
    "twice as wide": ("none", 116, 300),
    "trained three times as long": ("none", 58, 900),
    "wider and longer": ("none", 116, 900),
}


def words_backwards(rng, num, lengths=(2, 14)):
    """A batch of words, and the same backwards."""
    length = rng.integers(lengths[0], lengths[1] + 1)
    words = rng.integers(FIRST, FIRST + LETTERS, (num, length)).astype(np.int32)
    start, end = (np.full((num, 1), symbol, np.int32) for symbol in (BOS, EOS))
    source, backwards = np.hstack([words, end]), words[:, ::-1]
    labels = np.hstack([backwards, end])
    return Batch(source, np.hstack([start, backwards]), labels, num_tokens=labels.size)


def trained(config, batches, updates, seed, peak):
    """A translator after so many updates."""
    model = RecurrentTranslator(config, seed).to(device)
    adam = Adam(model.flat)
    for step, batch in enumerate(islice(batches, updates), start=1):
        model.zero_grad()
        _, cache = model.loss(batch)
        model.loss_backward(1.0, cache)
        scale = clipping.clip_scale(clipping.gradient_norm(model.flat.grad), 1.0)
        adam.step(schedule.linear_decay(step, peak, 50, updates), scale)
    return model


def reverser(attention, d_hidden, updates, seed):
    config = RecurrentTranslatorConfig.of_vocabulary(
        FIRST + LETTERS,
        d_model=32,
        d_hidden=d_hidden,
        attention=attention,
        dropout=0.0,
        max_length=32,
    )
    drawn = np.random.default_rng(seed)
    batches = (words_backwards(drawn, 32) for _ in range(updates))
    return trained(config, batches, updates, seed, peak=1e-2)


reversers = {name: [reverser(*kind, seed) for seed in SEEDS] for name, kind in KINDS.items()}
sizes = {name: models[0].config.num_parameters() for name, models in reversers.items()}
assert 0.9 < sizes["a fixed vector"] / sizes["with additive attention"] < 1.1
assert sizes["twice as wide"] > 3 * sizes["a fixed vector"]

# %% [markdown]
# The share of 100 new words of each length that are all right, medians:

# %%
LENGTHS = range(2, 15, 2)


def share_right(model, length):
    batch = words_backwards(np.random.default_rng(1000 + length), 100, (length, length))
    said = greedy(model, batch.source, max_length=32)
    rows = zip(said, batch.labels.tolist(), strict=True)
    return np.mean([hypothesis.ids == label[:-1] for hypothesis, label in rows])


right_at = {
    name: np.array([[share_right(model, length) for length in LENGTHS] for model in models])
    for name, models in reversers.items()
}  # (seeds, lengths) each
print("letters                    ", *(f"{length:4}" for length in LENGTHS))
for name, shares in right_at.items():
    print(f"{name:27}", *(f"{share:4.0%}" for share in np.median(shares, axis=0)))
overall = {name: shares.mean() for name, shares in right_at.items()}
assert (right_at["a fixed vector"][:, 0] > 0.9).all()  # it has learned the task
assert (right_at["a fixed vector"][:, -3:] < 0.1).all()
assert overall["a fixed vector"] < overall["twice as wide"]
assert overall["a fixed vector"] + 0.1 < overall["trained three times as long"]
assert (right_at["with additive attention"][:, :5] > 0.6).all()
assert (right_at["with additive attention"][:, -1] > 0.15).all()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7.5, 4.2))
for (name, shares), colour, style in zip(
    right_at.items(),
    (PURPLE, ORANGE, ORANGE, BLUE, BLUE),
    ("o-", "s--", "D:", "^--", "v:"),
    strict=True,
):
    axes.plot(LENGTHS, shares.T, style, color=colour, lw=1.2, ms=5, label=[name, "", ""])
axes.set(
    xlabel="length of the word (letters)", ylabel="share of words all right", ylim=(-0.03, 1.05)
)
axes.set_xticks(LENGTHS)
axes.legend(title="three seeds each", loc="lower left")
plt.show()

# %% [markdown]
# With the fixed vector short words are right, and no long ones. Twice the numbers help a little; three times the
# updates move the fall by two letters; both do a little more.
#
# So it is not room alone that is missing. 58 numbers could *hold* a word: 14 letters of 12 kinds are
# $14 \log_2 12 \approx 50$ bits. But to learn to pack them, and to take them out again, takes long. Attention does
# without it. Bahdanau et al. saw the same on real sentences (their Figure 2): with a fixed vector quality falls with
# the length, with attention, trained on long sentences, hardly.
#
# ## 2 · Additive attention
#
# At target step $t$ the decoder's state is the **query** $q_t$. The encoder's states $h_s$ are **keys** and
# **values**. A small network with one hidden layer of $F$ units scores how well a query and a key match:
#
# $$
# e_{ts} = v^\top \tanh(q_t W + h_s U) ,
# \qquad
# A = \text{softmax}(e) ,
# \qquad
# c_t = \sum_s a_{ts} h_s ,
# $$
#
# with parameters $W$, $U$ and $v$ $(F)$ of its own; $a_{ts}$ is an entry of $A$. The decoder makes its next word
# from $c_t$ and its own state. The gradient of a target word goes straight to the states that it looked at,
# whatever the distance.
#
# **The backward pass.** The softmax and the average are those of [lesson 08](08_attention.ipynb), so $de_{ts}$ is
# known. Let $\eta_{ts} = \tanh(q_t W + h_s U)$, $F$ numbers for each pair. Then $e_{ts} = \sum_f v_f \eta_{tsf}$.
# All pairs share $v$, so it gets a sum, and each $\eta_{ts}$ gets $de_{ts}$ times $v$:
#
# $$
# dv = \sum_{ts} de_{ts} \, \eta_{ts} , \qquad d\eta_{ts} = de_{ts} \, v .
# $$
#
# Through the tanh, whose derivative is $1 - \tanh^2$, the sum inside gets $de_{ts} \, v \circ (1 - \eta_{ts}^2)$. In it $q_t W$
# serves all $s$, and $h_s U$ serves all $t$:
#
# $$
# d(q_t W) = \sum_s de_{ts} \, v \circ (1 - \eta_{ts}^2) ,
# \qquad
# d(h_s U) = \sum_t de_{ts} \, v \circ (1 - \eta_{ts}^2) .
# $$
#
# In the package `query` and `key` come already multiplied by $W$ and $U$:

# %%
source_of(additive_attention, additive_attention_backward)

# %%
attention_inputs = [rng.standard_normal(shape) for shape in ((2, 3, 5), (2, 4, 5), (2, 4, 6), (5,))]
context, _ = additive_attention(*attention_inputs)
shape_table(
    {"B": 2, "T": 3, "S": 4, "F": 5, "D": 6},
    query=(attention_inputs[0], "B T F", "q W, of the decoder's states"),
    key=(attention_inputs[1], "B S F", "h U, of the encoder's states"),
    value=(attention_inputs[2], "B S D", "h, the encoder's states"),
    v=(attention_inputs[3], "F", "what makes a score of F units"),
    context=(context, "B T D", "for each step a mean of the encoder's states"),
)
report = check_pair(additive_attention, additive_attention_backward, attention_inputs)
assert report.right
print(report)

# %% [markdown]
# PyTorch agrees, to six digits and more:

# %%
if find_spec("torch"):
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in attention_inputs]
    query, key, value, v = tensors
    theirs = torch.softmax(torch.tanh(query[:, :, None] + key[:, None]) @ v, dim=-1) @ value
    theirs.sum().backward()
    y, cache = additive_attention(*attention_inputs)
    ours = y, *additive_attention_backward(np.ones_like(y), cache)
    theirs = theirs.detach(), *(tensor.grad for tensor in tensors)
    for name, mine, its in zip(("c", "dqW", "dhU", "dh", "dv"), ours, theirs, strict=True):
        print(f"{name:3} differs by at most {abs(mine - its.numpy()).max():.0e}")
        assert np.allclose(mine, its, atol=1e-6)

# %% [markdown]
# ### Where it looks
#
# We train a translator from German to English on the toy corpus, in 300 updates:

# %%
corpus = toy_corpus()
vocabulary = Vocabulary.train([text for pair in corpus["train"] for text in pair], 1000)
encoded, _ = encode_pairs(vocabulary, corpus["train"], max_length=64)


def toy_batches(seed):
    order = np.random.default_rng(seed)
    while True:
        yield from make_batches(encoded, 1500, order)


config = RecurrentTranslatorConfig.of_vocabulary(
    len(vocabulary), d_model=64, d_hidden=64, attention="additive", dropout=0.0, max_length=64
)
translator = Translator(
    trained(config, toy_batches(25), 300, seed=25, peak=1e-2), vocabulary, threads=1
)
SHOWN = "Das Mädchen will heute diesen kleinen Hund begrüßen."
assert SHOWN not in {german for german, _ in corpus["train"]}
(translation, *_), *_ = translator.translations([SHOWN], beam_size=1, attention=True)
print(f"{SHOWN}\n  → {translation.text}")


def readable(pieces):
    return ["end" if piece == "</s>" else piece.replace("▁", " ") for piece in pieces]


# %% [markdown]
# One training, seed 25:

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.5, 4.6))
image = axes.imshow(translation.attention[0, 0], cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
columns, rows = readable(translation.source_pieces), readable(translation.pieces)
axes.set_xticks(range(len(columns)), columns, rotation=90)
axes.set_yticks(range(len(rows)), rows)
axes.set(xlabel="looked at: source", ylabel="said: target, from top to bottom")
axes.grid(False)
figure.colorbar(image, label="attention weight", shrink=0.8)
plt.show()

# %% [markdown]
# The German order is turned into the English one: for *greet* it looks at the verb at the end, and for *today* back
# at *heute*.
#
# ### From here to the Transformer
#
# | | additive attention | lesson 08 |
# |---|---|---|
# | score | $v^\top \tanh(q_t W + h_s U)$ | $q_t \cdot k_s / \sqrt{d_k}$ |
# | work for the scores | $T S F$ tanh, and the products with $v$ | one matrix product |
# | kept for the backward pass | $T S F$ numbers | $T S$ numbers |
# | who asks whom | the decoder's state asks the encoder's states | the same, and within a sentence each position asks all |
#
# The paper takes the product because it is faster and needs less memory (section 3.2.1). The larger step is the last
# row. If a decoder finds by attention what it needs in the source, why should a sentence need a recurrence to find
# what it needs in itself? There state $t$ still waits for state $t - 1$.
#
# ## 3 · Exercises
#
# Fill in `answers/ex25.py`, your copy of [lessons/exercises/ex25.py](exercises/ex25.py), or copy its functions into
# cells here, and run the cell below or `minitransformer check ex25`. Solutions:
# [lessons/solutions/ex25.py](solutions/ex25.py).
#
# 1. **`letters_that_fit`** (10 min). How long a word could a state hold, whatever learning makes of it?
# 2. **`bilinear_attention`** (45 min). The score between the two of this lesson and lesson 08, $q_t W h_s$ (Luong, Pham
#    and Manning 2015), over a padded batch, with its backward.

# %%
print(check_exercise("ex25", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | fixed vector | one state for a whole sentence; long ones fail first |
# | what helps | a wider vector, longer training; attention more than both |
# | additive attention | $e_{ts} = v^\top \tanh(q_t W + h_s U)$; softmax and mean as in lesson 08 |
# | its backward | $d(q_t W) = \sum_s de_{ts} \, v \circ (1 - \eta_{ts}^2)$; over $t$ for $h_s U$ |
# | what remains | $T$ steps, one after another |
#
# **Your own Transformer.** No function for `own.py`. `minitransformer check own` says how far yours is.
#
# **Next:** no loop over time: convolution, in [lesson 20](20_convolution.ipynb).
