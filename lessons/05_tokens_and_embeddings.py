# %% [markdown]
# # 05 · Tokens and embeddings
#
# **You will** build a subword vocabulary from scratch and find that it is, piece by piece, that of the
# library; cut words at random, so that a model also sees their parts; and derive the gradient of a matrix that
# is used in three places at once.
#
# | | |
# |---|---|
# | In the paper | section 5.1: byte-pair encoding, one vocabulary for both languages; section 3.4: embeddings, tied with the output projection, times $\sqrt{d_{\text{model}}}$ |
# | In the package | `minitransformer/data/text/vocabulary.py`, `data/text/bpe_dropout.py`, `layers/embedding.py` |
# | You need | Python's dictionaries; the gradient of a matrix product ([lesson 02](02_backpropagation.ipynb)) |
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
import functools
import re
from collections import Counter, defaultdict
from importlib.util import find_spec
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import (
    Parameter,
    Transformer,
    TransformerConfig,
    cross_entropy,
    cross_entropy_backward,
    select_device,
)
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    shape_table,
    use_style,
)
from minitransformer.course.stops import show, try_yours
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import BLANK, BOS, EOS, PAD, UNK, Vocabulary
from minitransformer.gradcheck import check_pair
from minitransformer.layers.embedding import (
    OutputProjection,
    embedding,
    embedding_backward,
)

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(5)

# %% [markdown]
# ## 1 · What is a token?
#
# A model computes with rows of numbers, one for each token of a fixed vocabulary. The obvious tokens are words. We
# collect all words of the first 1000 sentence pairs of the toy corpus, and read on:

# %%
pairs = toy_corpus()["train"]
texts = [text for pair in pairs for text in pair]  # German and English
known = {word for text in texts[:2000] for word in re.findall(r"\w+", text)}
later = [re.findall(r"\w+", text) for text in texts[2000:]]
missing = {word for text in later for word in text} - known
with_a_gap = np.mean([not known.issuperset(text) for text in later])
print(f"{len(known)} words known; later {len(missing)} others")
print(f"sentences with at least one unknown word: {with_a_gap:.0%}")
print(sorted(missing, key=lambda word: (len(word), word))[-3:])

# %% [markdown]
# And this corpus is made from a small lexicon. German makes new words every day, by joining old ones. To the model,
# all that is not in the list is one and the same UNK, which it can neither read nor write.
#
# Characters are the other way out. There are far fewer of them than words, and a new text brings hardly any more.
# But sentences get long, and attention compares every token with every other:

# %%
num_words = np.mean([len(text.split()) for text in texts])
num_characters = np.mean([len(text) for text in texts])
print(f"{num_words:.1f} words a sentence, or {num_characters:.1f} characters")
print(f"pairs of tokens to compare: {(num_characters / num_words) ** 2:.0f} times as many")

# %% [markdown]
# **Subwords** are in between: frequent words whole, rare ones in pieces, single characters for what has
# never been seen. The paper uses byte-pair encoding, BPE (Sennrich, Haddow and Birch 2016), which decides by
# counting what a piece is.
#
# *Byte-level* BPE (Radford and others 2019, GPT-2) starts from the 256 *bytes* of UTF-8, so nothing is UNK. But a
# character that was never seen costs up to four tokens. The package starts from characters.
#
# ## 2 · Byte-pair encoding from scratch
#
# Start from single characters. Find the pair of neighbours that occurs most often in the whole text. Join it,
# everywhere: a new piece. Repeat until there are enough. Three things have to be settled.
#
# - **Words are cut first.** No piece reaches across a space, or "of the" would soon be one. The space itself
#   becomes a visible sign, `▁`, at the beginning of the word. So pieces can be
#   joined to the text again, and "▁in" at the start of a word is another piece than "in" within one.
# - **Letters and punctuation are kept apart**, or "Hund." would be a word of its own.
# - **Ties.** Of pairs that occur equally often, the shorter one is joined first, and then the first in the
#   alphabet. Any rule would do, if it is always the same.
#
# We count once how often each word occurs, and then work on distinct words:


# %%
def cut_into_words(text):
    """``"Der Hund."`` becomes ``["▁Der", "▁Hund", "."]``."""
    marked = "".join(BLANK + word for word in text.split())
    return re.findall(rf"{BLANK}?(?:\w+|[^\w{BLANK}]+)", marked)


def join_pair(pieces, pair):
    """The pieces of a word, with each occurrence of the pair made one."""
    joined = []
    for piece in pieces:
        if joined and (joined[-1], piece) == pair:
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def learn_merges(texts, num_merges):
    """The pairs to join, in their order, and how often each occurred when it was joined."""
    word_counts = Counter(word for text in texts for word in cut_into_words(text))
    pieces = {word: list(word) for word in word_counts}
    pair_counts, words_with = Counter(), defaultdict(set)

    def count(word, sign):
        for pair in pairwise(pieces[word]):
            pair_counts[pair] += sign * word_counts[word]
            words_with[pair].add(word)

    def rank(pair):
        union = "".join(pair)
        return -pair_counts[pair], len(union), union

    for word in word_counts:
        count(word, +1)
    merges = []
    for _ in range(num_merges):
        pair = min(pair_counts, key=rank)
        merges.append((pair, pair_counts[pair]))
        for word in list(words_with[pair]):  # only these change
            count(word, -1)
            pieces[word] = join_pair(pieces[word], pair)
            count(word, +1)
    return merges


# %% [markdown]
# After a merge, only the words that have the pair are counted again, which is fast. On the toy corpus, 24,000
# sentences:

# %%
merges = learn_merges(texts, 940)
print("the first:", *("".join(pair) for pair, _ in merges[:20]))
print("the last: ", *("".join(pair) for pair, _ in merges[-8:]))

# %% [markdown]
# First come endings and beginnings, of both languages mixed, then short words; at the end mostly whole words.
#
# ### To encode a word
#
# Begin with its characters, and always join the two neighbours whose union was learned **first**, until no
# neighbours make a piece. Below is that history for four words, to be read from the bottom to the top: at
# which merge did which pieces become one?

# %%
order = {"".join(pair): number for number, (pair, _) in enumerate(merges, start=1)}


def bpe_steps(word):
    """All stages of a word, from its characters to the pieces that remain."""
    pieces = list(word)
    stages = [pieces]
    while pieces_to_join := [pair for pair in pairwise(pieces) if "".join(pair) in order]:
        first = min(pieces_to_join, key=lambda pair: order["".join(pair)])
        pieces = join_pair(pieces, first)
        stages.append(pieces)
    return stages


for text in ("sleeping", "schlafen", "hungrigen", "einundzwanzig"):
    print(text, "→", *bpe_steps(BLANK + text)[-1])


# %% tags=["hide-input"]
def draw_merges(axes, word, left):
    """The tree of merges of a word, its characters from ``left`` on; returns where it ends."""
    heights = [0.6] * len(word)  # of what each piece has become, and its middle
    middles = [left + i for i in range(len(word))]
    labels = {}  # by the middle; one that the next merge would cover is left out
    for across, character in zip(middles, word, strict=True):
        axes.text(across, 0.42, character, ha="center", va="center", fontsize=11)
    style = dict(color=BLUE, lw=1.5, ls="-")
    for before, after in pairwise(bpe_steps(word)):
        for i, piece in enumerate(after):
            if piece != before[i]:
                height, middle = order[piece], (middles[i] + middles[i + 1]) / 2
                for side in (i, i + 1):
                    axes.plot([middles[side]] * 2, [heights[side], height], **style)
                    if height < 1.5 * heights[side]:
                        labels.pop(middles[side], None)
                axes.plot(middles[i : i + 2], [height] * 2, **style)
                labels[middle] = (height, piece)
                before = [*before[:i], piece, *before[i + 2 :]]
                heights[i : i + 2], middles[i : i + 2] = [height], [middle]
    style = dict(ha="center", va="bottom", fontsize=9, bbox=dict(fc="white", ec="none", pad=0.6))
    for across, (height, piece) in labels.items():
        axes.text(across, height * 1.1, piece, **style)
    return left + len(word)


figure, axes = plt.subplots(figsize=(10, 4.8))
left = 0
for text in ("sleeping", "schlafen", "hungrigen", "einundzwanzig"):
    left = draw_merges(axes, BLANK + text, left) + 1
axes.axhline(len(merges), color="0.5", ls=":", lw=1)
axes.text(left - 1.2, len(merges) * 1.1, "the last merge", ha="right", color="0.35", fontsize=9)
axes.set_yscale("log")
axes.set(ylim=(0.3, 1900), xlim=(-0.8, left - 0.8), ylabel="number of the merge")
axes.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
axes.set_xticks([])
axes.grid(axis="x", visible=False)
plt.show()

# %% [markdown]
# The height of a piece is its number. The smaller pieces below it were more frequent, and so earlier. They stay in
# the vocabulary, though this word no longer needs them. A word whose tree has several tops is written in several
# tokens. Pieces such as "ing" and "en" come from counting: nobody told it about grammar.
#
# ## 3 · Against the library
#
# The package does not use the code above but sentencepiece, which is faster. Does it do the same? Its vocabulary
# has 1000 pieces here: four special ones, then those that were merged, then the single characters.

# %%
vocabulary = Vocabulary.train(texts, 1000)
pieces = vocabulary.pieces(range(1000))
print("special:   ", *pieces[:4])
merged = [piece for piece in pieces[4:] if len(piece) > 1]
ours = ["".join(pair) for pair, _ in merges[: len(merged)]]
print(f"merged:     {len(merged)}; ours the same, in the same order: {ours == merged}")
print("characters:", *pieces[4 + len(merged) :])
assert ours == merged

# %% [markdown]
# All of them, in the same order. Is text encoded alike, too? In all sentences:


# %%
@functools.cache
def pieces_of_word(word):
    return bpe_steps(word)[-1]


def pieces_of(text):
    return [piece for word in cut_into_words(text) for piece in pieces_of_word(word)]


differing = sum(
    pieces_of(text) != vocabulary.pieces(ids)
    for text, ids in zip(texts, vocabulary.encode_all(texts), strict=True)
)
print(f"{differing} of {len(texts):,} sentences differ")
assert differing == 0

# %% [markdown]
# **A wrong idea about encoding**: take the longest piece that fits, then the longest that fits the rest. That is
# another method, and a model trained on one must not be fed the other:

# %%
known_pieces = set(pieces)


def longest_first(word):
    found, start = [], 0
    while start < len(word):
        end = next(e for e in range(len(word), start, -1) if word[start:e] in known_pieces)
        found.append(word[start:end])
        start = end
    return found


words = {word for text in texts for word in cut_into_words(text)}
others = sorted(word for word in words if longest_first(word) != pieces_of_word(word))
print(f"{len(others)} of {len(words)} words are cut differently, such as")
for word in others[:3]:
    print(
        f"  BPE {' '.join(pieces_of_word(word)):24} longest first {' '.join(longest_first(word))}"
    )

# %% [markdown]
# **There and back.** Ids become the text again, with case and spaces. Words that were never seen come out in
# pieces. Only a character that the training text did not have is lost, as UNK:

# %%
for text in ("Mein Affe schläft.", "Ein Schlafaffe.", "Der Affe isst 🍌."):
    ids = vocabulary.encode(text)
    print(f"{text} → {' '.join(vocabulary.pieces(ids))} → {vocabulary.decode(ids)}")
assert vocabulary.decode(vocabulary.encode("Mein Affe schläft.")) == "Mein Affe schläft."
assert UNK in vocabulary.encode("🍌")

# %% [markdown]
# The vocabulary is learned from the *training* texts alone. One that has seen the test sentences has made pieces of
# their rare words, and so knows something about the test.
#
# ## 4 · How many pieces?
#
# Each merge shortens the text by one token for each time the pair occurred. So the counts that `learn_merges` kept
# give the length of the text after every merge (left; on the right are the counts):

# %%
tokens = sum(len(word) for text in texts for word in cut_into_words(text))
num_single = len(pieces) - 4 - len(merged)
occurrences = np.array([times for _, times in merges])
lengths = (tokens - np.concatenate([[0], np.cumsum(occurrences)])) / len(texts)
assert np.isclose(lengths[-1], np.mean([len(pieces_of(text)) for text in texts]))

limit = np.mean([len(cut_into_words(text)) for text in texts])  # whole words and punctuation
late = 1 - (lengths[500] - limit) / (lengths[0] - limit)
print(f"500 merges bring {late:.0%} of what whole words would")
print(f"merge 1 occurred {occurrences[0]:,} times, merge 940 {occurrences[-1]} times")

# %% tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.9))
sizes = num_single + np.arange(len(lengths))
left.plot(sizes, lengths, color=BLUE)
left.axhline(limit, color=BLACK, lw=1, ls=":")
left.text(1000, limit - 1.7, "whole words and punctuation", ha="right", fontsize=9)
left.plot(sizes[0], lengths[0], "o", color=VERMILION)
left.annotate("characters", (sizes[0], lengths[0]), (8, -4), textcoords="offset points")
left.set(xlabel="pieces in the vocabulary", ylabel="tokens per sentence", ylim=(0, None))
numbers = np.arange(1, len(merges) + 1)
right.loglog(numbers, occurrences, color=BLUE)
right.axvspan(500, len(merges), color=ORANGE, alpha=0.25, lw=0)
right.text(480, 5000, "the later\nhalf", fontsize=9, ha="right")
right.set(xlabel="number of the merge", ylabel="occurrences when it was merged")
plt.show()

# %% [markdown]
# The first merges bring most. The later ones bring little, and each adds a row to the embedding matrix with few
# examples to learn it from. With too few merges, sequences are long, and attention is slow. The paper takes about
# 37,000 pieces for 4.5 million sentence pairs (section 5.1); this package 8000 for the 29,000 of Multi30k and
# 1000 for the toy corpus.
#
# ## 5 · BPE-dropout: the same word in other pieces
#
# A word that is always one token tells the model nothing about its parts. If "▁hungrigen" is one id, it has
# no more to do with "▁hungrige" than any two ids have. BPE-dropout (Provilkov, Emelianenko and
# Voita 2020) cuts words differently each time they are seen: **at every step, each possible merge is forbidden with
# probability $p$**, drawn anew. Of those allowed, the one learned first is made; if all are forbidden, the word stays
# as it is. With $p = 0$ it is BPE. The most frequent ways to cut one word:

# %%
draws = [vocabulary.encode_all(["hungrigen"], dropout=0.1, seed=seed)[0] for seed in range(2000)]
ways = Counter(" ".join(vocabulary.pieces(ids)) for ids in draws)
print(f"{len(ways)} ways to write it")

# %% tags=["hide-input"]
shown = ways.most_common(7)
figure, axes = plt.subplots(figsize=(7, 3.4))
names, times = zip(*shown, strict=True)
axes.set_axisbelow(True)
axes.barh(range(len(shown)), np.array(times) / len(draws), color=BLUE)
axes.set_yticks(range(len(shown)), names)
axes.invert_yaxis()
axes.set(xlabel="how often, of 2000 draws with p = 0.1")
axes.grid(axis="y", visible=False)
plt.show()

# %% [markdown]
# Mostly the word is cut as before, and at times the model meets its parts, which other words have too. BPE-dropout is
# for training only.
#
# ## 6 · From ids to rows: the embedding
#
# Ids are names, not quantities: 711 is not more than 325. The embedding gives each id a row of $D$ learned
# numbers:
#
# $$
# x_n = \sqrt{D} \; E_{t_n}, \qquad E \text{ of shape } (V, D), \quad t_n \text{ the id at position } n .
# $$

# %%
B, T, V, D = 2, 4, 10, 6
ids = device.asarray(np.array([[7, 2, 7, 3], [2, 9, 7, 0]]))
weight = device.asarray(rng.standard_normal((V, D)) / np.sqrt(D))
x, cache = embedding(ids, weight)
dx = device.asarray(rng.standard_normal((B, T, D)))
dweight = embedding_backward(dx, cache)

shape_table(
    {"B": B, "T": T, "V": V, "D": D},
    ids=(ids, "B T", "t, integers from 0 to V − 1"),
    weight=(weight, "V D", "E, a row for each piece of the vocabulary"),
    x=(x, "B T D", "what the model computes with"),
    dx=(dx, "B T D", "the gradient that comes back"),
    dweight=(dweight, "V D", "the gradient of E: a row that no id asks for has 0"),
)

# %% [markdown]
# **Its gradient.** Write the lookup as a product, with a row of zeros and a single 1 for each position:
#
# $$
# x_{nd} = \sqrt{D} \sum_v [t_n = v] \, E_{vd} .
# $$
#
# $E_{vd}$ moves $x_{nd}$ for every $n$ at which $v$ stands, with the slope $\sqrt D$. Slopes of several uses add up:
#
# $$
# \boxed{ \; dE_v = \sqrt{D} \sum_{n : \, t_n = v} dx_n \; }
# $$
#
# **Row $v$ gets the sum over all places where $v$ stands.** The ids have no gradient: there is no word
# between 7 and 8. The product with zeros and ones is only for the derivation: for a batch of 4096 tokens and 8000
# pieces it has 33 million numbers, to pick 4096 rows.
#
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `embedding(ids, weight)` | integers (...), ($V$, $D$) | $x$ (..., $D$), `cache` |
# | `embedding_backward(dx, cache)` | (..., $D$) | $dE$ ($V$, $D$) alone |


# %%
def facts(embedding, embedding_backward):
    ids, weight = (
        np.array([[7, 2, 7], [3, 7, 0]]),
        np.random.default_rng(5).standard_normal((10, 6)),
    )
    x, cache = embedding(ids, weight)
    dweight = embedding_backward(np.ones(x.shape), cache)
    yield "equal ids give equal rows", np.array_equal(x[0, 0], x[1, 1])
    yield (
        "x is √6 times as long as its rows of E",
        np.isclose(np.linalg.norm(x[0, 1]), np.sqrt(6) * np.linalg.norm(weight[2])),
    )
    yield (
        "id 7, there three times, gets three times as much",
        np.allclose(dweight[7], 3 * dweight[2]),
    )
    yield "⟨dE, E⟩ is ⟨dx, x⟩", np.isclose((dweight * weight).sum(), x.sum())


try_yours("embedding", facts)

# %% [markdown]
# The package's, once `minitransformer check own` finds yours right:

# %%
show("embedding")

# %%
host = [to_host(array) for array in (ids, weight, dx, dweight)]


def with_ids(dx, cache):
    """The backward as check_pair wants it: a gradient for each input, None for the ids."""
    return None, embedding_backward(dx, cache)


report = check_pair(embedding, with_ids, (host[0], host[1]))
assert report.right
print(report)

# %% [markdown]
# PyTorch agrees, to six digits and more:

# %%
if find_spec("torch"):
    import torch

    E = torch.tensor(host[1], requires_grad=True)
    theirs = np.sqrt(6) * torch.nn.functional.embedding(torch.tensor(host[0]), E)
    theirs.backward(torch.tensor(host[2]))
    for name, mine, its in (("x", to_host(x), theirs.detach()), ("dE", host[3], E.grad)):
        print(f"{name:2} differs by at most {abs(mine - its.numpy()).max():.0e}")
        assert np.allclose(mine, its, rtol=1e-6)


# %% [markdown]
# A slip: in NumPy, `dweight[ids] += dx` reads the rows, adds, and writes them back; of equal ids the last one
# wins. Id 7 stands three times in our batch:


# %%
def last_one_wins(dx, cache):
    ids, weight, _ = cache
    place, last = np.arange(ids.size).reshape(ids.shape), np.zeros(len(weight), int)
    last[ids] = place  # what was written last, for each id
    return None, embedding_backward(dx * (last[ids] == place)[..., None], cache)


report = check_pair(embedding, last_one_wins, (host[0], host[1]))
assert not report.right
print(report)

# %% [markdown]
# In a real batch "." occurs in nearly every sentence, and would learn from only one.
#
# ### Why √D
#
# The same matrix also makes the scores at the other end (next section): $z_v = \sum_d y_d E_{vd}$, for an output
# $y$ of the decoder whose entries have variance 1, as after a LayerNorm. If the entries of $E$ are independent, with
# mean 0 and variance $s^2$, the terms of the sum are independent too, and variances add:
#
# $$
# \text{var}(z_v) = \sum_{d=1}^{D} y_d^2 \, s^2 \approx D s^2 .
# $$
#
# Scores should start with a spread near 1, so that no word is favoured much: $s^2 = 1 / D$. But then the entries of
# $E$ have the size $1 / \sqrt D$, far less than the sines of the positional encoding that is added to the input.
# The factor $\sqrt D$ gives the input variance $D \cdot \frac1D = 1$. One matrix, two scales:

# %%
D, V = 512, 2000
print("spread of E         of the input x    of the scores    loss at the start, log V = 7.6")
y = rng.standard_normal((200, D))
for s in (1 / np.sqrt(D), 1.0):
    E = rng.standard_normal((V, D)) * s
    x, _ = embedding(rng.integers(0, V, 200), E)
    scores, _ = OutputProjection(Parameter(E)).forward(y)
    (start, _), _ = cross_entropy(scores, rng.integers(1, V, 200))
    print(f"{s:11.3f} {x.std():20.2f} {scores.std():16.2f} {start:17.1f}")

# %% [markdown]
# A model that knows nothing has the loss $\log V$. Scores of spread 1 add about half a nat: for normal scores the
# mean of $e^z$ is $e^{1/2}$, and $\log \sum_v e^{z_v}$ about $\log V + \frac12$. Scores of spread $\sqrt D$ make the
# untrained model very sure of random words, and its loss is ten times as high.
#
# ## 7 · One matrix in three places
#
# The paper uses the same $E$ for the source, for the target, and for the output projection $z = y E^\top$ (Press and
# Wolf 2017). Source and target can share it, since they share a vocabulary. And the output? Row $v$ says what piece
# $v$ means when it is read; $z_v = y \cdot E_v$ asks how well the decoder's output fits that meaning. It also saves
# parameters:

# %%
for tying in ("none", "two-way", "three-way"):
    config = TransformerConfig.preset("toy", vocabulary_size=1000, tying=tying)
    print(f"{tying:10} {Transformer(config).num_parameters():>10,} parameters")

# %% [markdown]
# **Three uses, three gradients.** By the sum rule the gradient of $E$ is the sum of
#
# $$
# \begin{aligned}
# \text{source:} \quad & dE_v = \sqrt D \sum_{n : \, s_n = v} dx^{\text{source}}_n \\
# \text{target:} \quad & dE_v = \sqrt D \sum_{n : \, t_n = v} dx^{\text{target}}_n \\
# \text{projection:} \quad & dE_v = \sum_n dz_{nv} \, y_n , \qquad dE = dz^\top y .
# \end{aligned}
# $$
#
# The third follows from $z_{nv} = \sum_d y_{nd} E_{vd}$: $E_{vd}$ moves $z_{nv}$ for every $n$, with the slope
# $y_{nd}$. And $dz = (p - q) / N$ for the cross-entropy ([lesson 04](04_softmax_cross_entropy.ipynb)): what the
# model says minus what it should say.
#
# The first two reach only the rows of pieces that occur in the batch. The third reaches **every** row,
# because every piece has some probability: each position pulls the row of the right piece towards its $y$ and pushes
# all others away. On a batch of the toy corpus, before any training:


# %%
def padded(rows):
    table = np.full((len(rows), max(map(len, rows))), PAD)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table


batch = pairs[:32]
german = [vocabulary.encode(german) for german, _ in batch]
english = [vocabulary.encode(english) for _, english in batch]
source = padded([[*row, EOS] for row in german])  # (B, S)
target = padded([[BOS, *row] for row in english])  # (B, T)
labels = padded([[*row, EOS] for row in english])  # (B, T)

config = TransformerConfig.preset("toy", vocabulary_size=1000)
model = Transformer(config, device=device)
shared = model.output_projection.weight
assert shared is model.source_embedding.weight is model.target_embedding.weight

logits, ((encode_cache, decode_cache), projection_cache) = model.forward(source, target)
_, loss_cache = cross_entropy(logits, labels, smoothing=0.1)
dlogits = cross_entropy_backward(1.0, loss_cache)

after = [to_host(shared.grad).copy()]
dy = model.output_projection.backward(dlogits, projection_cache)
after.append(to_host(shared.grad).copy())
dmemory = model.decode_backward(dy, decode_cache)
after.append(to_host(shared.grad).copy())
model.encode_backward(dmemory, encode_cache)
after.append(to_host(shared.grad).copy())
of_use = dict(zip(("projection", "target", "source"), np.diff(after, axis=0), strict=True))

# %% [markdown]
# This is `model.backward` in slow motion: three calls, and each *adds* its part to one `shared.grad`. The differences
# are the three gradients. As a check, the same weights in a model with three separate matrices. The picture has one
# dot for each row that gets a gradient:

# %%
untied = Transformer(
    TransformerConfig.preset("toy", vocabulary_size=1000, tying="none"), device=device
)
tied_parameters = dict(model.named_parameters())
for name, parameter in untied.named_parameters():
    parameter.data[...] = tied_parameters.get(name, shared).data
logits, cache = untied.forward(source, target)
_, loss_cache = cross_entropy(logits, labels, smoothing=0.1)
untied.backward(cross_entropy_backward(1.0, loss_cache), cache)

separate = {
    "projection": to_host(untied.output_projection.weight.grad),
    "target": to_host(untied.target_embedding.weight.grad),
    "source": to_host(untied.source_embedding.weight.grad),
}
for use, gradient in separate.items():
    rows = np.count_nonzero(gradient.any(axis=1))
    print(f"{use:10} rows with a gradient {rows:4}, norm {np.linalg.norm(gradient):.3f}")
    assert np.allclose(gradient, of_use[use], atol=1e-6)
    assert use == "projection" or not gradient[PAD].any()  # padding is read nowhere
assert np.allclose(sum(separate.values()), to_host(shared.grad), atol=1e-6)

is_label = np.isin(np.arange(1000), labels[labels != PAD])
in_projection = np.linalg.norm(separate["projection"], axis=1)
print(
    f"projection: rows that were a label {np.median(in_projection[is_label]):.1e} (median), "
    f"others {np.median(in_projection[~is_label]):.1e}"
)

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(10, 3.7), sharey=True)
for axes, use, colour, marker in zip(
    panels, separate, (BLUE, VERMILION, GREEN), ("o", "^", "s"), strict=True
):
    norm = np.linalg.norm(separate[use], axis=1)
    reached = norm > 0
    groups = [("", reached)]
    if use == "projection":
        groups = [("a label in this batch", is_label), ("never a label here", ~is_label)]
    for (name, rows), face in zip(groups, (colour, "none"), strict=False):
        style = dict(color=colour, mfc=face, ms=3.5, mew=0.7, ls="none", label=name)
        axes.semilogy(np.flatnonzero(rows), norm[rows], marker, **style)
    axes.set_title(f"{use}: {reached.sum()} of 1000 rows")
    axes.set(xlabel="id of the piece", xlim=(-20, 1020))
panels[0].set(ylabel="length of the row's gradient", ylim=(5e-5, 4))
panels[0].legend(loc="upper center", fontsize=9, markerscale=1.3, borderpad=0.1)
plt.show()

# %% [markdown]
# Target and source reach only the rows that this batch reads, English pieces and German ones; a piece of both
# languages gets both. The projection reaches all. It pulls at the rows that are labels (filled) several times harder
# than it pushes the others (hollow), but it pushes those in every step. So even a row that is hardly ever read is
# moved, by its third use.
#
# Forget one of the three, or write `=` in place of `+=`, and training goes on, with a wrong gradient. This is why a
# shared matrix is *one* `Parameter` in this package, and why `backward` always adds.
#
# ## 8 · Exercises
#
# Fill in `answers/ex05.py`, your copy of [lessons/exercises/ex05.py](exercises/ex05.py), and run
# `minitransformer check ex05`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex05.py](solutions/ex05.py).
#
# 1. **`scatter_by_product`** (10 min). The embedding's gradient as one matrix product, without a loop and without
#    `np.add.at`.
# 2. **`tied_bigram`** (25 min). The smallest language model there is, one matrix at both ends. Its gradient has two
#    parts.
# 3. **`fewest_pieces`** (45 min). BPE is greedy: it joins what is frequent, not what makes words short. How short could
#    they be?
# 4. **`segmentation_probabilities`** (45 min). The bars of section 5 were drawn. Compute them.

# %%
print(check_exercise("ex05", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | learn BPE | join the most frequent pair of neighbours, everywhere; repeat; never across a space |
# | encode | join the neighbours whose union was learned first; not the longest piece that fits |
# | BPE-dropout | each possible merge is forbidden with probability $p$, anew at each step; in training only |
# | embedding | $x_n = \sqrt D \, E_{t_n}, \quad dE_v = \sqrt D \sum_{n : t_n = v} dx_n$ |
# | projection | $z = y E^\top, \quad dy = dz \, E, \quad dE = dz^\top y$ |
# | tied | one $E$, and the sum of three gradients |
# | at the start | $E$ with variance $1/D$: input and scores with variance 1, loss near $\log V$ |
# | traps | `dweight[ids] +=` counts equal ids once; a vocabulary that has seen the test; `=` for `+=` |
#
# **Your own Transformer.** `embedding`, with its backward: `minitransformer check own`.
#
# **Next:** a row says which word it is, but not where it stands: [lesson 06](06_positions.ipynb).
