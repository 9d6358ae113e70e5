# %% [markdown]
# # 23 · An encoder
#
# **You will** take the causal mask away from a language model; train it to fill blanks; read from its hidden states
# what nobody told it; and teach it the cases of German words from fifty sentences with labels.
#
# | | |
# |---|---|
# | In the paper | section 3.1, the encoder, alone |
# | In the package | `minitransformer/models/`: `masked_language_model.py` and `tagger.py`; their tasks in `tasks/` |
# | You need | [lesson 08](08_attention.ipynb), attention and its masks; [lesson 22](22_a_language_model.ipynb) |
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

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, accelerated, select_device
from minitransformer.cases.case import LABELS, TARGET
from minitransformer.cases.models import ModelLoss, small_language_model_config, small_tagger_config
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.data.text.batches import LabelledBatch, framed, group, pad
from minitransformer.data.text.labelled import first_pieces, surface
from minitransformer.data.text.toy import labelled_toy_corpus
from minitransformer.data.text.vocabulary import MASK, PAD, Vocabulary
from minitransformer.gradcheck import check_module
from minitransformer.inference.filler import Filler
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)
from minitransformer.models.tagger import Tagger, TaggerConfig
from minitransformer.optim import schedule
from minitransformer.tasks.masked_language_modelling import masked

use_style()
device = select_device("cpu")  # "cuda" trains on a GPU
rng = np.random.default_rng(23)

# %% [markdown]
# ## 1 · Both sides
#
# Which word is left out?
#
# > Die \_\_\_ liest ein Buch. (The \_\_\_ reads a book.)
#
# *Die* says that the noun is feminine, or a plural. *liest* says that it is one person, who can read. So what stands
# behind the blank helps, too. A language model has seen nothing but *Die*.
#
# Its mask is causal: position $t$ sees positions up to $t$. Take the mask away, and each position sees all others.
# **Without the causal mask the same stack is an encoder.** In the package that is the whole difference, one method:

# %%
source_of(LanguageModel.mask, MaskedLanguageModel.mask)

# %% [markdown]
# We build both from one seed: all parameters are the same. Then we change the last token. Which rows of the logits
# move?

# %%
B, T, D, V = 2, 6, 8, 11
ids = np.array([[2, 7, 5, 9, 6, 3], [2, 5, 8, 7, 10, 3]])  # (B, T)
other = ids.copy()
other[:, -1] = 8
sizes = dict(num_heads=2, d_ff=16, num_layers=2, max_length=T)
decoder = LanguageModel(LanguageModelConfig(V, D, **sizes), seed=23, device=device)
encoder = MaskedLanguageModel(MaskedLanguageModelConfig(V, D, **sizes), seed=23, device=device)
assert (to_host(decoder.flat.data) == to_host(encoder.flat.data)).all()


def moved(model):
    """For each position, whether its logits change when the last token does."""
    change = to_host(model.forward(ids)[0]) - to_host(model.forward(other)[0])
    return np.abs(change).max(axis=(0, 2)) > 1e-6  # (T,)


assert not moved(decoder)[:-1].any()
assert moved(encoder).all()
print("causal mask:   ", *("moves" if m else "-" for m in moved(decoder)))
print("no causal mask:", *("moves" if m else "-" for m in moved(encoder)))
y, _ = encoder.features(ids)
logits, _ = encoder.forward(ids)
shape_table(
    {"B": B, "T": T, "D": D, "V": V},
    ids=(ids, "B T", "what the model sees"),
    causal=(decoder.mask(device.asarray(ids)), "B 1 T T", "a row of its own for each query"),
    padding=(encoder.mask(device.asarray(ids)), "B 1 1 T", "one row for all: no padding"),
    y=(y, "B T D", "what the stack makes of each position: the hidden states"),
    logits=(logits, "B T V", "row t scores all tokens for position t itself"),
)

# %% [markdown]
# ## 2 · What to ask of it
#
# Training needs a question whose answer is in the text. A language model is asked for the next token. An encoder has
# seen that, and would learn to copy it, and nothing else. It has seen the token *at* position $t$, too.
#
# So we have to hide what we ask for. Put a special token MASK in its place, and ask which token stood there. This is
# a **masked language model**. **BERT** (Devlin, Chang, Lee and Toutanova 2019) is one, trained on books and Wikipedia.
#
# Not everything can be hidden, or nothing is left to tell the answer from. BERT chooses 15 % of the tokens. So it has a
# question at one position of seven, where a language model has one at each. (For models as large as BERT large 40 %
# does better than 15 %: Wettig, Gao, Zhong and Chen 2023.)
#
# BERT does not hide all that it has chosen. Of the chosen tokens
#
# - 80 % become MASK,
# - 10 % become any token, drawn at random,
# - 10 % stay what they are.
#
# The model is asked at all three kinds of places. Section 5 measures what this does. In the package the labels are the
# ids at the chosen places, and PAD everywhere else, where nothing is asked:

# %%
source_of(masked)

# %% [markdown]
# Our text is the German side of the toy corpus, its shorter sentences. They come with labels, the case of each word.
# We put the labels aside until section 6. The vocabulary has subwords as in lesson 05 (▁ begins a word), and a MASK.
# A subword is called a piece from here on.


# %%
def sentences_of(split):
    """(words, their cases) of the shorter sentences without a comma; signs are words, too."""
    rows = [(words.split(), cases.split()) for words, cases in labelled_toy[split]]
    return [(words, cases) for words, cases in rows if len(words) <= 9 and "," not in words]


def encoded(part):
    texts = [surface(words)[0] for words, _ in part]
    return [framed(ids, MOST) for ids in vocabulary.encode_all(texts)]


MOST = 24  # pieces of a sentence, with the symbols for its beginning and its end
labelled_toy = labelled_toy_corpus("case")
training = sentences_of("train")
held_out = sentences_of("validation") + sentences_of("test")
vocabulary = Vocabulary.train([surface(words)[0] for words, _ in training], 600, mask=True)
sentences, unseen = encoded(training), pad(encoded(held_out))
print(
    f"{len(training):,} sentences to train on, {len(held_out)} held out; {len(vocabulary)} pieces"
)

batch = masked(unseen[:3], len(vocabulary), rng)
for ids, labels in zip(batch.ids, batch.labels, strict=True):
    print("\nsees", *vocabulary.pieces(ids[ids != PAD]))
    print("asks", *(f"at {t}: {vocabulary.pieces([labels[t]])[0]}" for t in np.flatnonzero(labels)))

# %% [markdown]
# Are the shares right? In long rows of random ids we count what becomes of the chosen ones.

# %%
many = rng.integers(MASK + 1, len(vocabulary), (4, 50_000))  # (B, T)
batch = masked(many, len(vocabulary), rng)
chosen = batch.labels != PAD
hidden = (batch.ids == MASK)[chosen].mean()
kept = (batch.ids == many)[chosen].mean()
print(f"chosen {chosen.mean():.1%}; of these MASK {hidden:.1%}", end=", ")
print(f"another piece {1 - hidden - kept:.1%}, as it was {kept:.1%}")
assert np.allclose([chosen.mean(), hidden, kept], [0.15, 0.8, 0.1], atol=0.01)
assert (batch.ids == many)[~chosen].all()

# %% [markdown]
# ## 3 · A small one, trained
#
# The loss is the mean of $-\ln p$ over the places that are asked. First the proof that its gradients are right, for
# this model and for the tagger of section 7. `ModelLoss` is the model with its loss:


# %%
for kind, config in (
    (MaskedLanguageModel, small_language_model_config(kind=MaskedLanguageModelConfig)),
    (Tagger, small_tagger_config()),
):
    report = check_module(ModelLoss(kind(config)), TARGET, LABELS, directions=3, tolerance=1e-6)
    assert report.right
    print(f"{kind.__name__}: largest error of all gradients {report.max_error:.0e}")

# %% [markdown]
# Each step takes some sentences of about one length and chooses anew what to ask.

# %%
SIZES = dict(num_heads=4, d_ff=128, num_layers=2, dropout=0.0, max_length=MOST)
STEPS, SEED = 1000, 23


def learn(model, batches, steps, peak):
    """Train by Adam on what the generator ``batches`` gives; returns the loss of each step."""
    optimizer, losses = Adam(model.flat), []
    with accelerated():  # the faster of the package's functions
        for step in range(1, steps + 1):
            model.zero_grad()
            (loss, _), cache = model.loss(next(batches))
            model.loss_backward(1.0, cache)
            # The rate rises to its peak in an eighth of the steps, and falls to 0.
            optimizer.step(schedule.linear_decay(step, peak, steps // 8, steps))
            losses.append(float(to_host(loss)))
    return np.array(losses)


def groups_of(rows, draw):
    """Without end: the numbers of some rows of about one length, 320 pieces or fewer."""
    while True:
        yield from group([len(row) for row in rows], 320, draw)


def as_in_bert(ids, batch):
    return batch.ids


def questions(draw, shown=as_in_bert):
    """Without end: batches with something left out; ``shown`` says what the model sees."""
    for members in groups_of(sentences, draw):
        ids = pad([sentences[i] for i in members])
        batch = masked(ids, len(vocabulary), draw)
        yield LabelledBatch.of(shown(ids, batch), batch.labels)


def new_model(seed=SEED):
    return MaskedLanguageModel(
        MaskedLanguageModelConfig(len(vocabulary), 64, **SIZES), seed=seed, device=device
    )


def pretrained(steps, shown=as_in_bert):
    model = new_model()
    losses = learn(model, questions(np.random.default_rng(SEED), shown), steps, 1e-2)
    return model, losses


reader, losses = pretrained(STEPS)
print(f"{reader.num_parameters():,} parameters; loss {losses[:20].mean():.2f} at first", end=", ")
print(f"{losses[-20:].mean():.2f} at the end")

# %% [markdown]
# How good is it? In each held-out sentence we hide one piece and ask for it. Two ways of counting stand beside the
# model: the most frequent piece of all, and the piece that stood most often between the same two neighbours in the
# training text.


# %%
def one_place(ids, draw):
    """In each row one place with a piece of text, as True."""
    score = np.where(ids > MASK, draw.random(ids.shape), 0)  # (B, T)
    return score == score.max(axis=1, keepdims=True)


def likeliest(model, ids):
    return to_host(model.forward(ids)[0]).argmax(axis=-1)  # (B, T)


place = one_place(unseen, rng)
blanked = np.where(place, MASK, unseen)
right = (likeliest(reader, blanked) == unseen)[place].mean()

everywhere, between = Counter(), {}
for row in sentences:
    for before, piece, after in zip(row, row[1:], row[2:], strict=False):
        everywhere[piece] += 1
        between.setdefault((before, after), Counter())[piece] += 1
((most_frequent, _),) = everywhere.most_common(1)
guesses = []
for b, t in np.argwhere(place):
    counts = between.get((unseen[b, t - 1], unseen[b, t + 1]), everywhere)
    guesses.append(counts.most_common(1)[0][0])
by_neighbours = (np.array(guesses) == unseen[place]).mean()
print(f"{len(unseen)} blanks; the right piece is said for")
print(f"  {(unseen[place] == most_frequent).mean():.0%}  by the most frequent piece")
print(f"  {by_neighbours:.0%}  by the two neighbours")
print(f"  {right:.0%}  by the model")
assert right > by_neighbours + 0.02 > (unseen[place] == most_frequent).mean()

# %% [markdown]
# Nobody could always be right: many blanks can be filled in more than one way. This training is the **pre-training**
# of what follows in sections 4, 6 and 7: one, seed 23.
#
# ## 4 · Filling blanks
#
# In the package `Filler` writes MASK where a text has `___`, and reads the softmax of the logits there. Three pairs of
# sentences, and the five likeliest pieces for each blank. (A woman reads a book; a dog, or dogs, do something in the
# garden; a cat sleeps, a dog sleeps.)

# %%
TEXTS = (
    "Die Frau liest ein ___.",
    "Die ___ liest ein Buch.",
    "Der Hund ___ im Garten.",
    "Die Hunde ___ im Garten.",
    "___ Katze schläft.",
    "___ Hund schläft.",
)
filler = Filler(reader, vocabulary)
for text in TEXTS:
    print(f"{text:26}", *(f"{piece} {p:.2f};" for piece, p in filler.fill(text).gaps[0]))


def probability(text, words):
    return sum(p for piece, p in filler.fill(text, top=600).gaps[0] if piece in words)


of_katze, of_hund = ("Die", "Eine", "Diese", "Meine"), ("Der", "Ein", "Dieser", "Mein")
for text, words in (("___ Katze schläft.", of_katze), ("___ Hund schläft.", of_hund)):
    print(f"{text} {probability(text, words):.0%} for {words}")
    assert probability(text, words) > 0.7

# %% [markdown]
# In the last pair all that helps stands *behind* the blank: *Katze* is feminine and takes *Die*, *Hund* is masculine
# and takes *Der*. A language model, which has read nothing yet, cannot know it.
#
# A masked language model is not made for writing. With two blanks it answers for each by itself, whatever it puts into
# the other one. And it gives no $p$ of a whole text: the chain rule of lesson 22 needs each token to be said from those
# before it. The third exercise has what is used instead.
#
# ## 5 · Why not always MASK?
#
# We train four models, each for a short time, with the same questions. They differ in what they see at the places that
# are asked:


# %%
def always_mask(ids, batch):
    return np.where(batch.labels != PAD, MASK, ids)


def no_other_piece(ids, batch):
    """MASK where BERT would put another piece; one in ten is still left as it is."""
    return np.where((batch.labels != PAD) & (batch.ids != ids), MASK, ids)


def nothing_hidden(ids, batch):
    return ids


SHORT = 240
WAYS = {
    "as in BERT": (as_in_bert, SHORT),
    "always MASK": (always_mask, SHORT),
    "no other piece": (no_other_piece, SHORT),
    "nothing hidden": (nothing_hidden, SHORT // 4),
}
by_way = {name: pretrained(steps, shown) for name, (shown, steps) in WAYS.items()}

# %% [markdown]
# We ask two things on held-out sentences. First, all pieces are visible: at how many places does the model say what
# stands there? Second, in each sentence one piece is exchanged for another one, drawn at random. Does the model say at
# this place what it sees, or what should stand there?

# %%
other = rng.integers(MASK + 1, len(vocabulary), unseen.shape)
exchanged = np.where(place, other, unseen)
found = {}
print(f"{'':16}  loss   visible: says it   exchanged: says it   says the right one")
for name, (model, losses) in by_way.items():
    says_it = (likeliest(model, unseen) == unseen)[unseen > MASK].mean()
    said = likeliest(model, exchanged)[place]
    found[name] = says_it, (said == exchanged[place]).mean(), (said == unseen[place]).mean()
    cells = "".join(f"{x:19.0%}" for x in found[name])
    print(f"{name:16} {losses[-20:].mean():5.2f}{cells}")
assert found["always MASK"][0] < 0.45 < 0.65 < found["as in BERT"][0]
assert found["as in BERT"][1] < 0.3 < 0.6 < found["no other piece"][1]
assert by_way["nothing hidden"][1][-20:].mean() < 0.3
assert found["nothing hidden"][1] > 0.9

# %% [markdown]
# One training for each way, seed 23.
#
# - **Nothing hidden.** The loss is almost nothing after a quarter of the steps. But the model only copies: shown a
#   wrong piece, it says the wrong piece.
# - **Always MASK.** The model was never asked at a place where it saw a piece. Shown a whole sentence, it says another
#   piece at most places. When we use its hidden states later, every piece is visible. This is what the two other kinds
#   of places are for (Devlin and others, section 3.1). If all parameters are trained further, as in section 7, it
#   does BERT hardly any harm (their appendix C.2).
# - **No other piece.** In training, a piece that it sees is always right. So it copies, wrong pieces too.
# - **As in BERT.** A visible piece is mostly right, and may be wrong. The model keeps most right pieces, and says few
#   of the wrong ones.
#
# ## 6 · What the hidden states know
#
# Filling blanks is only how BERT is trained. What is used later are its hidden states. What do they know of language?
# Take the **case** of a word, which English has only in *he* and *him*. German has it in the words before a noun:
#
# | | the dog | the woman | the child | the children |
# |---|---|---|---|---|
# | **nominative**: who does it | der Hund | die Frau | das Kind | die Kinder |
# | **accusative**: whom it is done to | den Hund | die Frau | das Kind | die Kinder |
# | **dative**: whom one helps or follows | dem Hund | der Frau | dem Kind | den Kindern |
#
# So *den Hund* tells its case, and *die Frau* does not. Only the context can:
#
# > Den Jungen ruft **die Frau**. (The woman is calling the boy.)
# >
# > Der Junge ruft **die Frau**. (The boy is calling the woman.)
#
# The words are the same, so their embeddings are, too. We take such word forms. Each stands fifty times or more in the
# training text, at least a quarter of the time in the nominative, and at least a quarter in the accusative.

# %%
CASES = ["-", "nominative", "accusative", "dative"]
counts = Counter(pair for words, cases in training for pair in zip(words, cases, strict=True))
OPEN = set()
for word, _ in counts:
    of_case = np.array([counts[word, case] for case in CASES])
    if of_case.sum() >= 50 and of_case[1:3].min() >= of_case.sum() / 4:
        OPEN.add(word)


def with_cases(part, wanted=None):
    """(ids, labels) of sentences: at the first piece of each wanted word 1 + the number of its case."""
    rows = []
    for words, cases in part:
        ids, places = first_pieces(vocabulary, *surface(words), MOST)
        labels = [PAD] * len(ids)
        for word, t, case in zip(words, places, cases, strict=True):
            if wanted is None or word in wanted:
                labels[t] = 1 + CASES.index(case)
        rows.append((ids, labels))
    return rows


def batch_of(rows):
    ids, labels = zip(*rows, strict=True)
    return LabelledBatch.of(pad(ids), pad(labels))


def with_open_words(part):
    return batch_of([row for row in with_cases(part, OPEN) if any(row[1])])


to_fit, to_try = with_open_words(training[:3500]), with_open_words(training[3500:] + held_out)
print(*sorted(OPEN))

# %% [markdown]
# A **linear probe** (Alain and Bengio 2017) reads the case from a hidden state: a vector of weights $w$, whose product
# with the state is above 0 for the accusative and below for the nominative. On one part of the sentences we take the
# $w$ that makes $\lVert Xw - y \rVert^2 + \lVert w \rVert^2$ least. The rows of $X$ are states, $y$ is 1 or −1, and
# the second term keeps $w$ small. The gradient is 0 where $(X^\top X + I)\,w = X^\top y$. We try $w$ on other
# sentences. (Pre-training has read most of them, without cases.) The model itself does not change.
#
# A probe may learn the answer by itself, from the word and its position. So we compare with the embeddings, before the
# first layer, and with the same model with random weights, of three seeds.


# %%
def states(model, ids):
    """x (B, T, D) before the first layer and behind each one."""
    x, _ = model.positions.forward(model.embedding.forward(ids)[0])
    found = [to_host(x)]
    for layer in model.stack.layers:
        x, _ = layer.forward(x, model.mask(device.asarray(ids)))
        found.append(to_host(x))
    return found


def examples(x, labels):
    """Rows with a 1 behind them, and +1 for the accusative, −1 for the nominative."""
    known = (labels == 2) | (labels == 3)  # one of the words may be a dative
    rows = x[known].astype(np.float64)  # (N, D)
    return np.c_[rows, np.ones(len(rows))], np.where(labels[known] == 3, 1.0, -1.0)


def probed(model):
    """The share of words whose case the probe reads rightly, behind each layer."""
    shares = []
    pairs = (states(model, batch.ids) for batch in (to_fit, to_try))
    for x, z in zip(*pairs, strict=True):
        x, y = examples(x, to_fit.labels)
        z, answers = examples(z, to_try.labels)
        w = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y)
        shares.append(((z @ w > 0) == (answers > 0)).mean())
    return shares


SEEDS = (1, 2, 3)
known_by = {"random weights": np.array([probed(new_model(seed)) for seed in SEEDS])}
known_by["pre-trained"] = np.array([probed(reader)])
_, answers = examples(to_try.ids[..., None], to_try.labels)
always = max((answers > 0).mean(), (answers < 0).mean())
print(f"{len(answers)} words; always the same case is right in {always:.0%}")
for name, shares in known_by.items():
    print(f"{name:15}", *(f"{'; '.join(f'{x:.0%}' for x in column):18}" for column in shares.T))
assert known_by["pre-trained"][0, 2] > known_by["random weights"].max() + 0.07

# %% [markdown]
# The shares, behind no layer, one and two. Thin lines are the three seeds of random weights.

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.5, 3.8))
axes.plot(known_by["pre-trained"][0], "o-", color=BLUE, label="pre-trained, seed 23")
for number, shares in enumerate(known_by["random weights"]):
    label = "" if number else "random weights, 3 seeds"
    axes.plot(shares, "s--", color=VERMILION, mfc="none", lw=1, label=label)
axes.axhline(always, color=BLACK, lw=0.8)
axes.text(2, always - 0.012, "always the same case", ha="right", va="top")
axes.set(xticks=range(3), xlabel="layers", ylabel="case read rightly (share)", ylim=(0.45, 1))
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# Before the first layer there are only the word and its position. Random layers mix in some of the context, and the
# probe can use that a little. Behind the trained layers most cases can be read by a single product. **Nobody has told
# the model of cases.** But whether *der* or *den* fits into a blank depends on who calls whom. So the case helps.
#
# A probe shows that something is *there*, not that the model uses it.
#
# ## 7 · Fine-tuning
#
# Now we want the cases of all words. The package's `Tagger` is the masked language model with another output
# projection: a row for each label, where the other has one for each piece.

# %%
source_of(Tagger.build)

# %% [markdown]
# All other parameters begin with what pre-training has found. Then *all* are trained on the labels. This is
# **fine-tuning**. A word has its label at its first piece: 1 no case, 2 nominative, 3 accusative, 4 dative. Everywhere
# else is PAD, 0, and nothing is asked: the loss and its gradient are as before.

# %%
tagger_config = TaggerConfig(len(vocabulary), 64, labels=" ".join(["none", *CASES[1:]]), **SIZES)
rows = with_cases(training)
batch, tagger = batch_of(rows[:4]), Tagger(tagger_config, device=device)
logits, _ = tagger.forward(batch.ids)
for ids, labels in zip(batch.ids[:1], batch.labels, strict=False):
    for piece, label in zip(vocabulary.pieces(ids), labels, strict=True):
        print(f"{piece:12} {label}")
shape_table(
    {"B": 4, "T": batch.ids.shape[1], "C": 5, "D": 64},
    ids=(batch.ids, "B T", "whole sentences; nothing is hidden"),
    labels=(batch.labels, "B T", "at first pieces 1 to 4, elsewhere 0"),
    logits=(logits, "B T C", "row t scores the labels for the word at t"),
    head=(tagger.output_projection.weight.data, "C D", "all that is new"),
)

# %% [markdown]
# How much is pre-training worth when labels are few? We take 50 labelled sentences, about 1 %, and train taggers begun
# at random and taggers begun with our model: the same steps, three seeds each. A seed draws the 50, too.

# %%
LABELLED, TUNING = 50, 60
test = batch_of(with_cases(held_out))


def tuned(seed, beginning=None):
    """A tagger trained on a few labelled sentences."""
    draw = np.random.default_rng(seed)
    few = [rows[i] for i in draw.choice(len(rows), LABELLED, replace=False)]
    tagger = Tagger(tagger_config, seed=seed, device=device)
    if beginning is not None:
        learned = dict(beginning.named_parameters())
        for name, parameter in tagger.named_parameters():
            if name != "output_projection.weight":
                parameter.data[...] = learned[name].data
    groups = groups_of([ids for ids, _ in few], draw)
    batches = (batch_of([few[i] for i in members]) for members in groups)
    learn(tagger, batches, TUNING, 3e-3)
    return tagger


def right_share(tagger, batch):
    """The share of labels that are said rightly; 0, no label, is never said."""
    said = to_host(tagger.forward(batch.ids)[0])[..., 1:].argmax(axis=-1) + 1
    return (said == batch.labels)[batch.labels != PAD].mean()


tuned_from = {"at random": None, "pre-trained": reader}
taggers = {name: [tuned(seed, model) for seed in SEEDS] for name, model in tuned_from.items()}
accuracy = {
    name: [right_share(tagger, test) for tagger in of_name] for name, of_name in taggers.items()
}
frequent = max((test.labels == label).sum() for label in range(1, 5)) / test.num_tokens
print(f"the most frequent label for all words: {frequent:.0%}")
for name, shares in accuracy.items():
    print(f"begun {name:12}", *(f"{share:.1%}" for share in shares))
assert min(accuracy["pre-trained"]) > max(accuracy["at random"]) + 0.04

# %% [markdown]
# Many of these words tell their case by themselves. Here are the same taggers on the word forms of section 6, which
# leave it open:

# %%
open_test = with_open_words(held_out)
one_label = max(np.bincount(open_test.labels.ravel())[1:]) / open_test.num_tokens
of_open = {
    name: [right_share(tagger, open_test) for tagger in of_name]
    for name, of_name in taggers.items()
}
print(f"{open_test.num_tokens} words, the most frequent label for all: {one_label:.0%}")
for name, shares in of_open.items():
    print(f"begun {name:12}", *(f"{share:.1%}" for share in shares))
assert np.mean(of_open["pre-trained"]) > np.mean(of_open["at random"]) + 0.08
assert np.mean(of_open["at random"]) < one_label + 0.04

# %% [markdown]
# Here only the context tells. Begun at random, the taggers are about as good as one label for all.
#
# ### A label for a sentence
#
# BERT begins each text with a token CLS and reads the label of the whole text there. The package reads it at BOS, which
# every sentence has anyway. Its query looks at all positions, and that is how the sentence gets into its hidden state.
# The gradient goes the same way back, to all positions (the fourth exercise). With a causal mask BOS sees only itself.
# GPT reads the label at the end instead (Radford and others 2018).
#
# ### The same, larger
#
# `benchmarks/fine_tuning.py` does this with the whole toy corpus. It pre-trains once. Then it trains taggers (case) and
# classifiers (tense, a label for each sentence). For each share of the labels there are three seeds with and without
# pre-training, with the same labelled sentences, steps and learning rate. These are the shares of test labels that are
# right, in per cent. *Without a model* is the first exercise; for tense it says one label for all.

# %%
# Of benchmarks/results/fine_tuning.json, which a test compares with these lines.
RECORDED = {  # (label, share of the labels): without a model, from scratch, pre-trained
    ("tense", 0.01): ((46.30, 46.30, 46.30), (73.60, 68.60, 73.00), (98.50, 98.20, 95.10)),
    ("tense", 0.1): ((46.30, 46.30, 46.30), (96.60, 96.80, 96.30), (100.00, 99.90, 100.00)),
    ("tense", 1.0): ((46.30, 46.30, 46.30), (99.90, 99.80, 99.40), (100.00, 100.00, 100.00)),
    ("case", 0.01): ((89.57, 88.54, 89.60), (86.71, 87.66, 88.64), (95.49, 95.77, 95.92)),
    ("case", 0.1): ((92.81, 92.62, 92.70), (96.25, 96.44, 96.99), (99.19, 99.18, 99.53)),
    ("case", 1.0): ((92.83, 92.83, 92.83), (99.26, 99.08, 99.11), (99.93, 99.94, 99.92)),
}
print("                without a model        from scratch           pre-trained")
for (label, share), sides in RECORDED.items():
    cells = (f"{np.mean(side):5.1f} ({min(side):.1f} to {max(side):.1f})" for side in sides)
    print(f"{label:6} {share:5.0%}  ", *(f"{cell:22}" for cell in cells))
gains = {
    label: [np.subtract(*map(np.mean, RECORDED[label, x][:0:-1])) for x in (0.01, 0.1, 1.0)]
    for label in ("tense", "case")
}
for label, (few, some, every) in gains.items():
    print(f"{label}: pre-training gains {few:.1f}, {some:.1f} and {every:.1f} points")
    assert few > 4 > some > every
    assert every < 1
    assert all(min(RECORDED[label, x][2]) > max(RECORDED[label, x][1]) for x in (0.01, 0.1))
without, scratch, _ = map(np.mean, RECORDED["case", 0.01])
assert scratch < without

# %% [markdown]
# The same as curves, one for each seed. (With 1 % there are 20 epochs, with 10 % five, with all labels one.)

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(10, 4))
looks = {
    "without a model": dict(color=BLACK, ls=":", marker="", lw=1.2),
    "from scratch": dict(color=VERMILION, ls="--", marker="s", mfc="none"),
    "pre-trained": dict(color=BLUE, ls="-", marker="o"),
}
for axes, label in zip(panels, gains, strict=True):
    of_label = [RECORDED[label, share] for share in (0.01, 0.1, 1.0)]
    for side, (name, look) in enumerate(looks.items()):
        curves = np.array([row[side] for row in of_label])  # (shares, seeds)
        axes.plot([1, 10, 100], curves, ms=5, label=[name, "", ""], **look)
    axes.set(xscale="log", xlabel="labelled sentences (% of 12,000)", title=label)
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.minorticks_off()
panels[0].set_ylabel("test labels that are right (%)")
panels[1].legend(loc="lower right", title="three seeds each", title_fontsize=9)
plt.show()

# %% [markdown]
# - **With few labels** pre-training gains most. From scratch, a tagger of cases is no better with 1 % than the count by
#   word forms.
# - **With all labels** it gains less than a point: the labelled sentences alone teach nearly all. And pre-training is
#   not free: it has read the corpus 24 times before the one epoch of the tagger.
#
# The pre-training is one, so the spread is that of fine-tuning. And the grammar of the toy corpus is small: these
# numbers do not tell what the gain is on other text.
#
# ## 8 · BERT, and what is left out
#
# | | BERT | ours |
# |---|---|---|
# | stack, positions | an encoder, learned positions | the same |
# | LayerNorm | after each sum | before each sublayer |
# | before the logits | one more linear map, GELU and LayerNorm, in its code | nothing |
# | feed-forward | GELU (Hendrycks and Gimpel 2016) | ReLU |
# | biases | in all linear maps | in the feed-forward networks |
# | a second task | does the second of two sentences follow the first? | none |
# | segment embeddings | a vector for each of the two sentences | none: there is one sentence |
# | tokens | 30,000 subwords | 600 in this lesson |
# | training text | 3,300 million words | 37,000 words, with signs |
#
# Liu and others (2019) train BERT without its second task, and it does as well or better. BERT's sizes, in our
# configuration, with the 30,522 subwords of its code:

# %%
for name, width, heads, layers, printed in (
    ("base", 768, 12, 12, 110),
    ("large", 1024, 16, 24, 340),
):
    sizes = dict(num_heads=heads, d_ff=4 * width, num_layers=layers, max_length=512)
    millions = MaskedLanguageModelConfig(30_522, width, **sizes).num_parameters() / 1e6
    print(f"BERT {name:5} {layers} layers: {millions:.0f} million parameters, printed {printed}")
    assert abs(millions / printed - 1) < 0.03
words = sum(len(words) for words, _ in training)
assert round(words, -3) == 37_000

# %% [markdown]
# A larger one, from all sentences of the toy corpus:
#
# ```sh
# minitransformer train bert-toy
# minitransformer fill runs/bert-toy "Die Frau liest ein ___."
# minitransformer train tagger --from runs/bert-toy --labelled-share 0.1 --epochs 5
# minitransformer tag runs/tagger "Den Jungen ruft die Frau."
# ```
#
# ## 9 · Exercises
#
# Fill in `answers/ex23.py`, your copy of [lessons/exercises/ex23.py](exercises/ex23.py), which has
# signatures, shapes and hints (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex23
# ```
#
# Or copy the functions from there into new cells here, fill them in, and run the cell below again. The
# solutions are in [lessons/solutions/ex23.py](solutions/ex23.py).
#
# 1. **`accuracy_by_form`** (10 min). What labels are worth without a model. Compare every tagger with it.
# 2. **`whole_words`** (25 min). Leave out whole words, not pieces. Who sees the beginning of a word can often guess the
#    rest.
# 3. **`score_by_blanks`** (25 min). A score for a whole sentence, from a model that has no $p$ of a text (Salazar and
#    others 2020).
# 4. **`first_row_attention`** (45 min). The last layer when only BOS is read: the attention of one row, and its
#    backward. Where does the gradient go?

# %%
print(check_exercise("ex23", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | an encoder | the same stack without the causal mask: each position sees all |
# | the question | which piece stood here? Asked at 15 % of the pieces |
# | MASK, another, the same | 80 %, 10 %, 10 %: a visible piece is worth keeping, and may be wrong |
# | loss | cross-entropy where a label is; PAD everywhere else |
# | not made for | writing a text, or giving the $p$ of one |
# | hidden states | a linear probe reads the case from them; compare with random weights |
# | fine-tuning | a new output projection, all other parameters from pre-training; then all are trained |
# | labels | of a word at its first piece, of a sentence at BOS |
# | worth | most with few labels, little with many |
# | trap | a low loss where the answer can be seen says nothing |
#
# **Your own Transformer.** `own.py` has all that such a model needs; its mask is `padding_mask`.
# `minitransformer check own` tells whether yours is right.
#
# **Next:** what has taken the places of these blocks since, in [lesson 27](27_since_2017.ipynb). Or labels of your own:
# write a file with a word, a tab and its label on each line, and an empty line behind each sentence.
# `minitransformer train tagger --corpus labelled --labelled FILE` learns them.
