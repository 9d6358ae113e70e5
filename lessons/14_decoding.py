# %% [markdown]
# # 14 · Decoding
#
# **You will** turn probabilities of the next word into sentences, greedily and with a beam, and see the beam
# as a tree; derive what the length penalty rewards and what a key/value cache saves; and build BLEU from
# scratch, equal to sacreBLEU's to the last digit.
#
# | | |
# |---|---|
# | In the paper | section 6.1: beam 4, length penalty $\alpha = 0.6$, scored by BLEU. The penalty is that of Wu et al., *Google's Neural Machine Translation System* (2016), BLEU is Papineni et al., *BLEU: a Method for Automatic Evaluation of Machine Translation* (2002) |
# | In the package | `minitransformer/decoding/`, `minitransformer/evaluation/scores.py` |
# | You need | probabilities and logarithms; what a decoder is given and what it returns |
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
import math
import re
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from threadpoolctl import threadpool_limits

from minitransformer import TransformerConfig, select_device
from minitransformer.core.backend import to_host
from minitransformer.core.memory import keep_freed_memory
from minitransformer.core.twins import accelerated
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import (
    BLACK,
    BLUE,
    GREEN,
    VERMILION,
    shape_table,
    source_of,
    use_style,
)
from minitransformer.course.stops import show, try_yours
from minitransformer.data.text.batches import encode_pairs, make_batches, pad
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import BOS, EOS, PAD, Vocabulary
from minitransformer.decoding import (
    IncrementalDecoder,
    greedy,
    length_penalty,
    translate_ids,
)
from minitransformer.evaluation.scores import score
from minitransformer.models.transformer import Transformer
from minitransformer.optim.adam import Adam

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(14)

# %% [markdown]
# ## 1 · The best next word is not the best sentence
#
# A trained model answers one question: given the source $X$ and the words so far, how probable is each next
# word? By the chain rule of probability, a whole translation $Y = (y_1, \dots, y_n)$, whose last word is the end
# symbol, then has the probability
#
# $$
# P(Y \mid X) = \prod_{t=1}^{n} P(y_t \mid y_1, \dots, y_{t-1}, X) .
# $$
#
# We would like the $Y$ where this is largest. The obvious way there is **greedy search**: take the most probable
# word, again and again. Here is a language of three words, in which every sentence has two:

# %%
FIRST = {"a": 0.5, "b": 0.4, "c": 0.1}
SECOND = {
    "a": {"a": 0.4, "b": 0.3, "c": 0.3},
    "b": {"a": 0.9, "b": 0.05, "c": 0.05},
    "c": {"a": 0.4, "b": 0.3, "c": 0.3},
}
sentences = {one + two: FIRST[one] * SECOND[one][two] for one in FIRST for two in SECOND[one]}
one = max(FIRST, key=FIRST.get)
taken = one + max(SECOND[one], key=SECOND[one].get)
likeliest = max(sentences, key=sentences.get)
print(f"greedy takes {taken!r}, of probability {sentences[taken]:.2f}")
print(f"the likeliest is {likeliest!r}, of probability {sentences[likeliest]:.2f}")
assert taken != likeliest

# %% [markdown]
# The best word now may lead to where nothing is good. Greedy search never learns what it missed. We cannot
# try everything either: $V$ words and length $n$ make $V^n$ sequences.
#
# ## 2 · A translator in a few seconds
#
# We need a model with doubts: a small one, trained for seconds on the short sentences of the toy corpus, German
# to English:

# %%
corpus = {
    split: [(german, english) for german, english in pairs if len(german.split()) <= 9]
    for split, pairs in toy_corpus().items()
}
vocabulary = Vocabulary.train([text for pair in corpus["train"] for text in pair], 500)
encoded, _ = encode_pairs(vocabulary, corpus["train"], 40)
V = len(vocabulary)
config = TransformerConfig(
    source_vocabulary_size=V,
    target_vocabulary_size=V,
    d_model=64,
    num_heads=4,
    d_ff=128,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0.0,
    norm="pre",
    max_length=64,
)
model = Transformer(config, seed=14, device=device)
adam, STEPS = Adam(model.flat), 300
batches = [batch for _ in range(4) for batch in make_batches(encoded, 1200, rng)][:STEPS]
with accelerated():
    for step, batch in enumerate(batches, 1):
        model.zero_grad()
        (loss, nll), cache = model.loss(batch, smoothing=0.1)
        model.loss_backward(1.0, cache)
        adam.step(6e-3 * min(step / 60, (STEPS - step) / (STEPS - 60)), 1.0)
print(f"{len(encoded):,} pairs, {model.num_parameters():,} parameters, loss {float(loss):.2f}")

# %%
test = corpus["test"][:150]
sources = [[*vocabulary.encode(german), EOS] for german, _ in test]
references = [english for _, english in test]


def row(ids):
    return np.array([ids])  # (1, S): a batch of one sentence


def text_of(hypothesis):
    return vocabulary.decode(hypothesis.ids)


for ids, (german, english) in list(zip(sources, test, strict=True))[:3]:
    (found,) = greedy(model, row(ids))
    print(f"{german}\n  should be  {english}\n  greedy     {text_of(found)}\n")

# %% [markdown]
# ### Sums of logarithms
#
# A product of many probabilities underflows: in float32, the type of the model, $0.5^{150}$ is zero. So we add
# $\log P$ instead, which has the same order. $-\log P$ is a *cost*: never negative, and every word adds to it.

# %%
print("0.5 to the 150th:", np.float32(0.5) ** np.float32(150), "  log:", 150 * np.log(0.5))

# %% [markdown]
# The simplest way to ask the model is to run the decoder over all of each prefix and keep the last row:


# %%
def next_log_p(source, said):
    """log P(w | said, X), (W, V), of W prefixes (W, T), which begin with BOS; X one for all or W."""
    logits, _ = model.forward(np.broadcast_to(source, (len(said), source.shape[1])), said)
    last = to_host(logits)[:, -1].astype(float)  # (W, V)
    last -= last.max(axis=-1, keepdims=True)
    log_p = last - np.log(np.exp(last).sum(axis=-1, keepdims=True))
    log_p[:, [PAD, BOS]] = -np.inf  # never said
    return log_p


ids = sources[0]
prefixes = np.array([(BOS, 5), (BOS, 6), (BOS, 7)])
shape_table(
    {"S": len(ids), "W": 3, "T": 2, "V": V},
    source=(np.array(ids), "S", "ids of one sentence, with the end symbol"),
    prefixes=(prefixes, "W T", "W beginnings of its translation, of one length"),
    log_p=(next_log_p(row(ids), prefixes), "W V", "what may follow each of them"),
)

# %% [markdown]
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `greedy(log_probabilities, said, max_length)` | a function of prefixes, as `next_log_p` for certain sources; the start symbols of $N$ sentences, $(N, 1)$ | ids $(N, T)$ without these |
#
# $T$ is the first length at which all rows have ended, or `max_length`; what follows an end does not matter:


# %%
def facts(greedy):
    ask, start = partial(next_log_p, pad(sources[:3])), np.full((3, 1), BOS)
    said = greedy(ask, start, 40)
    alone = [greedy(partial(next_log_p, row(x)), start[:1], 40)[0] for x in sources[:3]]
    yield "the first words are the likeliest", (said[:, 0] == ask(start).argmax(axis=-1)).all()
    yield "alone, a sentence stops at its end", all(list(x).index(EOS) == len(x) - 1 for x in alone)
    same = [(x == y[: len(x)]).all() for x, y in zip(alone, said, strict=True)]
    yield "among others it is the same", all(same) and said.shape[1] == max(map(len, alone))
    yield "max_length counts without the start symbol", greedy(ask, start, 3).shape == (3, 3)


try_yours("greedy", facts)

# %% [markdown]
# `minitransformer check own greedy` says the rest. The package's, once yours is right, takes the model and the
# sources, and asks a decoder that keeps what it has computed (section 5):

# %%
show("greedy")

# %% [markdown]
# ## 3 · Beam search
#
# A **beam** of size $k$ keeps the $k$ most probable prefixes of one length. Each step continues all of them
# by all words, $k V$ candidates, and keeps the best $k$ again. Those that end with the end symbol leave the
# beam and are put aside as found.
#
# ### When may it stop?
#
# Not when the first translation is found: a longer one may be better. We rank by the score of the next section,
# $\log P(Y) / p(\lvert Y \rvert)$ with a penalty $p$ that grows with the length. Let $Y$ continue a
# prefix $Z$, and let $n_{\max}$ be the longest length allowed. Then
#
# $$
# \frac{\log P(Y)}{p(\lvert Y \rvert)} \;\le\; \frac{\log P(Z)}{p(\lvert Y \rvert)}
# \;\le\; \frac{\log P(Z)}{p(n_{\max})} .
# $$
#
# The first step holds because every further word adds a logarithm that is not positive, the second because a
# negative number comes nearer to zero when it is divided by more. As soon as no prefix in the beam has
# $\log P(Z) / p(n_{\max})$ above the best score found, nothing better can follow, and stopping **changes no
# result**.
#
# On this sentence greedy search and a beam of 3 disagree:

# %%
by_greedy = [h for (h,) in translate_ids(model, sources, beam_size=1)]
by_beam = [h for (h,) in translate_ids(model, sources, beam_size=3)]
differ = [
    i
    for i in range(len(test))
    if by_greedy[i].ids != by_beam[i].ids and by_beam[i].finished and len(by_beam[i].ids) <= 12
]
right = [i for i in differ if text_of(by_beam[i]) == references[i]]
shown = (right or differ)[0]
for name, line in (
    ("source", test[shown][0]),
    ("reference", references[shown]),
    ("greedy", f"{text_of(by_greedy[shown])}   log P {by_greedy[shown].log_probability:.2f}"),
    ("beam 3", f"{text_of(by_beam[shown])}   log P {by_beam[shown].log_probability:.2f}"),
):
    print(f"{name:<10} {line}")

# %% [markdown]
# ### Now write it
#
# | in `answers/own.py` | takes | returns |
# |---|---|---|
# | `beam_search(log_probabilities, said, max_length, beam_size, alpha)` | as `greedy`, for one sentence, $(1, 1)$ | at most $k$ pairs (ids, $\log P$), best first |
#
# First come those that have ended, by $\log P / ((5 + n) / 6)^\alpha$, the score of section 4, and then what is left in
# the beam. Yours need not stop early.


# %%
def facts(beam_search):
    source, known = row(sources[shown]), by_greedy[shown]
    asked = partial(next_log_p, source), row([BOS]), 2 * source.size + 10
    ((ids, log_p),) = beam_search(*asked, 1, 0.6)
    yield "a beam of one is greedy search", ids == [*known.ids, EOS]
    yield "log P counts the end, too", np.isclose(log_p, known.log_probability, atol=1e-3)
    found = beam_search(*asked, 3, 4.0)
    ((theirs,),) = translate_ids(model, source, beam_size=3, alpha=4.0)
    yield "with α = 4 it finds what the package's finds", found[0][0] == [*theirs.ids, EOS]
    yield (
        "three come back, even cut off",
        len(found) == len(beam_search(*asked[:2], 3, 3, 0)) == 3,
    )


try_yours("beam_search", facts)

# %%
show("beam_search")

# %% [markdown]
# In the tree of this sentence each box is a token, with the $\log P$ of the prefix that ends there; square boxes
# are ends. Below the line is what was dropped, of which we show the best two. (The folded code has a beam search
# in it.)

# %% tags=["hide-input"]
best_path, greedy_path = ((BOS, *found[shown].ids, EOS) for found in (by_beam, by_greedy))
places, DROPPED = {(BOS,): (0.0, 0.0)}, "0.4"
figure, axes = plt.subplots(figsize=(10, 5))
beam = [(0.0, (BOS,))]
for length in range(1, len(best_path)):
    log_p = next_log_p(row(sources[shown]), np.array([path for _, path in beam]))  # (W, V)
    candidates = [
        (total + log_p[w, word], (*path, int(word)))
        for w, (total, path) in enumerate(beam)
        for word in np.argsort(-log_p[w])[:5]
    ]
    candidates.sort(reverse=True)
    beam = [(total, path) for total, path in candidates[:3] if path[-1] != EOS]
    for rank, (log_p, path) in enumerate(candidates[:5]):
        kept = rank < 3
        start, end = places[path[:-1]], (length, -rank)
        on_best, on_greedy = path == best_path[: len(path)], path == greedy_path[: len(path)]
        colour = BLUE if on_best else VERMILION if on_greedy else BLACK if kept else DROPPED
        dashes = "-" if on_best else "--" if on_greedy else "-" if kept else ":"
        axes.plot(*zip(start, end, strict=True), dashes, color=colour, lw=2.6 if on_best else 1.2)
        label = vocabulary.pieces(path[-1:])[0].replace("</s>", "END").replace("▁", "_")
        axes.text(
            *end,
            f"{label}\n{log_p:.1f}",
            ha="center",
            va="center",
            fontsize=8.5,
            color=colour,
            bbox=dict(
                boxstyle="square,pad=0.25" if path[-1] == EOS else "round,pad=0.25",
                fc="white",
                ec=colour,
                lw=1.6 if on_best else 0.8,
                ls="-" if kept else ":",
            ),
        )
        if kept and path[-1] != EOS:
            places[path] = end
axes.text(0, 0, "start", ha="center", va="center", fontsize=8, bbox=dict(fc="white", ec=BLACK))
axes.axhline(-2.5, color="0.6", lw=0.8)
for colour, dashes, width, label in (
    (BLUE, "-", 2.6, "what beam search returns"),
    (VERMILION, "--", 1.2, "what greedy search took, where it is another way"),
    (BLACK, "-", 1.2, "kept in the beam"),
    (DROPPED, ":", 1.2, "dropped"),
):
    axes.plot([], [], dashes, color=colour, lw=width, label=label)
axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=4, fontsize=9)
axes.set(
    xlabel="tokens chosen (_ marks where a word begins)", ylabel="rank of the prefix in its step"
)
axes.set(yticks=range(-4, 1), yticklabels=[5, 4, 3, 2, 1], ylim=(-4.5, 0.6))
axes.set_xticks(range(len(best_path)))
axes.grid(visible=False)
plt.show()

# %% [markdown]
# The winner was not first in every step: it waited in the beam until its rivals had become more expensive.
#
# A beam is no guarantee. The best sentence may begin with a prefix that is dropped early, and a wider beam
# can even be worse: more rivals drive out another prefix. How often do the two differ on the test sentences?

# %%
gain = np.array(
    [b.log_probability - g.log_probability for g, b in zip(by_greedy, by_beam, strict=True)]
)
higher, lower = (gain > 1e-3).sum(), (gain < -1e-3).sum()
print(f"log P of beam 3 is higher than greedy's in {higher} of {len(gain)}, lower in {lower}")
assert (gain > 1e-3).any()

# %% [markdown]
# Where it is lower, the beam dropped greedy's way, or it preferred another by the score, which is next.
#
# ## 4 · Long sentences are at a disadvantage
#
# Every further token costs. Ranked by $\log P$ alone, of two equally careful translations the shorter wins,
# and the wider the beam, the more short ones are found. For large models this is extreme. Stahlberg and Byrne
# (2019, *On NMT Search Errors and Model Errors*) searched exactly: for more than half of their sentences the
# most probable translation was the *empty* one. So Wu et al. divide:
#
# $$
# \text{score}(Y) = \frac{\log P(Y \mid X)}{p(n)}, \qquad p(n) = \left( \frac{5 + n}{6} \right)^{\alpha},
# \qquad n = \lvert Y \rvert .
# $$

# %%
source_of(length_penalty)

# %% [markdown]
# ### What may a further token cost?
#
# Let a translation of $n$ tokens have the cost $C = -\log P$, so that its score is $-C / p(n)$. One more
# token of cost $\delta$ makes it better if
#
# $$
# \frac{C + \delta}{(6 + n)^{\alpha}} \lt \frac{C}{(5 + n)^{\alpha}}
# \qquad\Longleftrightarrow\qquad
# \delta \lt C \left[ \left( \frac{6 + n}{5 + n} \right)^{\alpha} - 1 \right]
# $$
#
# (the factor $6^\alpha$ is on both sides). With $\frac{6+n}{5+n} = 1 + \frac{1}{5+n}$ and
# $(1 + u)^\alpha \approx 1 + \alpha u$ for small $u$, and with the mean cost so far, $\bar c = C / n$:
#
# $$
# \boxed{ \; \frac{\delta}{\bar c} \;\lt\; n \left[ \left( 1 + \frac{1}{5 + n} \right)^{\alpha} - 1 \right]
# \;\approx\; \alpha \, \frac{n}{n + 5} \; }
# $$
#
# So **for long sentences α is what a further token may cost, as a fraction of the mean**. At $\alpha = 0$
# none is worth anything. With $\alpha \le 1$ the bound stays below 1: a further token at the mean cost never
# pays.
#
# Is $\alpha = 1$ the mean cost of a token, then? The score is $-6 \, C / (n + 5)$. But for the $-6$ it is the
# mean over the $n$ tokens *and five more that cost nothing*, or the true mean times $n / (n + 5)$. For $n = 95$
# that factor is 0.95. For $n = 5$ it is a half: among short translations of equal means the shorter still wins.
# The bound for three α, and the approximation:

# %%
print("tokens so far:    5              20              95")
for alpha in (0.3, 0.6, 1.0):
    exact = {n: n * (((6 + n) / (5 + n)) ** alpha - 1) for n in (5, 20, 95)}
    print(f"α = {alpha}:  ", *(f"{x:6.2f} ≈ {alpha * n / (n + 5):.2f}" for n, x in exact.items()))
    assert max(exact.values()) < 1

# %% [markdown]
# ### Measured
#
# The test sentences with a beam of 4 and other exponents. The length is that of all translations, in words:

# %%
alphas = [0.0, 0.6, 1.0, 2.0]
words = sum(len(reference.split()) for reference in references)
found_at = {}
for alpha in alphas:
    found = translate_ids(model, sources, beam_size=4, alpha=alpha)
    found_at[alpha] = [text_of(hypotheses[0]) for hypotheses in found]
    ratio = sum(len(text.split()) for text in found_at[alpha]) / words
    bleu = score(found_at[alpha], references).bleu_cased_13a
    print(f"α = {alpha}: length {ratio:.3f} of the references', BLEU {bleu:.1f}")

# %% [markdown]
# The length grows with α. Above 1 a further token may cost more than the mean, and saying something twice can
# pay. Which α is best depends on the model, and is found on validation data.
#
# ## 5 · The key/value cache
#
# `next_log_p` runs the decoder over the whole prefix for each new token. Most of it was computed before.
# **Claim:** what layer $l$ computes at position $i$ depends on the tokens $y_1, \dots, y_i$ only. **Proof**,
# by induction over the layers: the embedding at $i$ is that of $y_i$ and its position. If it holds below
# layer $l$, then the self-attention at $i$, masked, sees positions $1 \dots i$, each of which depends on
# tokens up to its own; cross-attention adds the source; LayerNorm, the feed-forward network and the residual
# sum work on position $i$ alone. $\square$
#
# So a new token changes no key and no value of the positions before it. Keep them, and compute one position a
# step. Queries need no cache: an old query is never used again. The encoder has no such mask, so there the
# claim is false; but it runs only once.
#
# **What it saves.** To say $n$ tokens, recomputing passes $1 + 2 + \dots + n = n (n + 1) / 2$ positions
# through the linear maps, and the cache $n$: a factor of $(n + 1) / 2$. For the scores of attention, step $t$
# has $t^2$ products of query and key when recomputed, and $t$ with the cache; summed,
#
# $$
# \sum_{t=1}^{n} t^2 = \frac{n (n + 1)(2 n + 1)}{6}
# \qquad\text{against}\qquad
# \sum_{t=1}^{n} t = \frac{n (n + 1)}{2} ,
# $$
#
# a factor of $(2 n + 1) / 3$. It costs memory: $2 D$ numbers for each layer and token.
#
# The package does this in `IncrementalDecoder`, for $W$ hypotheses (prefixes in the beam) of each of $N$
# sentences. The hypotheses of a sentence share most of their past. So it keeps *one* entry for each node of
# the tree above, and a mask of ancestors, `said`, says which nodes a hypothesis may look at. When the beam
# chooses, `select` reorders rows of that mask, and no key moves:

# %%
source_of(IncrementalDecoder.step, IncrementalDecoder.select)

# %% [markdown]
# To see that this changes nothing, we compare two hypotheses, both continued from the second of them, with
# the plain decoder. Then we make the classical mistake: choose words, and not reorder the past:


# %%
def largest_difference(select):
    """Between logits of the cache and of plain runs, after both hypotheses came from the second."""
    first, second, third = rng.integers(EOS + 1, V, (3, 2))
    decoder = IncrementalDecoder(model, row(ids))
    decoder.step(device.asarray(row([BOS])))
    decoder.select(device.asarray(row([0, 0])))
    decoder.step(device.asarray(row(first)))
    if select:
        decoder.select(device.asarray(row([1, 1])))
    decoder.step(device.asarray(row(second)))
    logits = to_host(decoder.step(device.asarray(row(third))))[0]  # (2, V)
    prefixes = [(BOS, first[1], second[w], third[w]) for w in range(2)]
    expected, _ = model.forward(np.tile(ids, (2, 1)), np.array(prefixes))
    return abs(logits - to_host(expected)[:, -1]).max()


reordered, forgotten = largest_difference(select=True), largest_difference(select=False)
print(f"largest difference of a logit: {reordered:.1e}; past not reordered: {forgotten:.1e}")
assert reordered < 1e-3 < forgotten

# %% [markdown]
# The mistake raises no error: the words are fluent, and their probabilities wrong.
#
# How long does a step take at length $t$? The best of twelve, for 8 sentences at once, on one core:

# %%
lengths, B = [1, 2, 4, 8, 16, 32, 64, 128, 256], 8
untrained = Transformer(replace(config, max_length=256), seed=0, device=device)
source = rng.integers(EOS + 1, V, (B, 10))
target = rng.integers(EOS + 1, V, (B, 256))


def seconds(f, *arguments):
    start = time.perf_counter()
    f(*arguments)
    device.synchronize()
    return time.perf_counter() - start


keep_freed_memory()  # as training does: new memory would be slower than what we want to see
recomputed, cached = np.full((2, 12, len(lengths)), np.inf)
with threadpool_limits(1, user_api="blas"):
    for trial in range(12):
        decoder = IncrementalDecoder(untrained, source)
        for t in range(1, 257):
            took = seconds(decoder.step, device.asarray(target[:, t - 1 : t]))
            if t in lengths:
                at = trial, lengths.index(t)
                cached[at] = took
                recomputed[at] = seconds(untrained.forward, source, target[:, :t])
assert recomputed[:, -1].min() > 2 * cached[:, -1].min()

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.8))
axes.loglog(lengths, 1e3 * recomputed.min(axis=0), "s--", color=VERMILION, label="recomputing")
axes.loglog(lengths, 1e3 * cached.min(axis=0), "o-", color=BLUE, label="with the cache")
start = 1e3 * recomputed[:, lengths.index(32)].min()
axes.loglog([32, 256], [start, 8 * start], "-", color=BLACK, lw=0.9, label="proportional to $t$")
axes.set(xlabel="length of the prefix $t$ (tokens)", ylabel="one step (ms)")
axes.set_xticks(lengths, lengths)
axes.minorticks_off()
axes.legend()
plt.show()

# %% [markdown]
# For short prefixes the time is that of the call alone. For long ones the recomputed step grows in proportion
# to $t$, and then faster: the scores of attention grow as $t^2$. The cached step hardly grows.
#
# ## 6 · BLEU from scratch
#
# Which translation is better? BLEU counts what each shares with a reference, in four decisions:
#
# 1. **n-grams**: runs of $n = 1 \dots 4$ words. Single words show whether the right words are there, longer
#    runs whether they are in order.
# 2. **Clipped**: a match counts at most as often as it is in the reference, or "the the the" would be
#    perfect. With counts $h_g$ and $r_g$ of the n-gram $g$ in hypothesis and reference, and sums over **all
#    sentences of the corpus**,
#
# $$
# p_n = \frac{\sum_g \min(h_g, r_g)}{\sum_g h_g} .
# $$
#
# 3. **A geometric mean.** $p_n$ falls about exponentially with $n$. $p_1$ would outweigh the others in an
#    arithmetic mean; in $\frac14 \sum_n \log p_n$ a relative change of each counts the same.
# 4. **Brevity.** Precision does not see what is missing: "The" alone is perfectly precise. With $c$ words in
#    all hypotheses and $r$ in all references,
#
# $$
# \boxed{ \; \text{BLEU} = 100 \cdot b \cdot \exp\left( \frac14 \sum_{n=1}^{4} \log p_n \right), \qquad
# b = \min\left(1,\; e^{1 - r / c}\right) \; }
# $$
#
# A text that is too long needs no penalty: its extra n-grams lower the precisions.
#
# A convention says what a word is, and scores of different conventions cannot be compared (Post 2018, *A Call
# for Clarity in Reporting BLEU Scores*). sacreBLEU's "13a" cuts off punctuation; a full stop or comma between
# digits stays. There is another for $p_n = 0$, whose logarithm is infinite: the first such precision is set
# to half a match, the next to a quarter, and so on ("exp" smoothing).


# %%
def words_of(text):
    """Words and signs, like sacreBLEU's 13a for everyday text."""
    text = re.sub(r"([!-&(-+/:-@\[-`{-~])", r" \1 ", text)  # all but ' , - .
    text = re.sub(r"(?<!\d)([.,])|([.,])(?!\d)", r" \1\2 ", text)
    return re.sub(r"(?<=\d)(-)", r" \1 ", text).split()


def statistics(hypothesis, reference):
    """Matches for n = 1 … 4, n-grams for n = 1 … 4, and both lengths: (10,). They add up."""
    said, wanted = words_of(hypothesis), words_of(reference)
    matches, totals = [], []
    for n in range(1, 5):
        ours, theirs = (
            Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
            for text in (said, wanted)
        )
        matches.append((ours & theirs).total())  # & takes the smaller count: clipped
        totals.append(ours.total())
    return np.array([*matches, *totals, len(said), len(wanted)])


def bleu_of(summed):
    matches, totals, (c, r) = summed[:4].astype(float), summed[4:8], summed[8:]
    if not matches.any() or not totals.all():
        return 0.0
    none = matches == 0
    matches[none] = 0.5 ** np.arange(1, none.sum() + 1)
    return 100 * min(1.0, math.exp(1 - r / c)) * math.exp(np.log(matches / totals).mean())


def bleu_from_scratch(hypotheses, references):
    return bleu_of(np.sum([*map(statistics, hypotheses, references)], axis=0))


greedy_texts, beam_texts = [text_of(h) for h in by_greedy], found_at[0.6]
for name, texts in (("greedy", greedy_texts), ("beam 4", beam_texts)):
    ours, theirs = bleu_from_scratch(texts, references), score(texts, references)
    print(f"{name}: ours {ours:.10f}, sacreBLEU {theirs.bleu_cased_13a:.10f}")
    summed = np.sum([*map(statistics, texts, references)], axis=0)
    print("   precisions for n = 1 … 4:", np.round(summed[:4] / summed[4:8], 2))
    assert abs(ours - theirs.bleu_cased_13a) < 1e-9
print(theirs.signatures["bleu_cased_13a"])

# %% [markdown]
# They also agree on small corpora, with punctuation and numbers:

# %%
awkward = ["He paid $3,000.50 (or so).", 'Is it "red"? Yes: 7-8 dogs.', "It's a well-known dog!"]
changed = ["He paid $3,000 (or so) .", 'It is "red"; yes, 7-8 cats.', "This is no dog!"]
for start in range(3):
    for end in range(start + 1, 4):
        pair = changed[start:end], awkward[start:end]
        assert abs(bleu_from_scratch(*pair) - score(*pair).bleu_cased_13a) < 1e-9
print("equal on all 6 small corpora")

# %% [markdown]
# ### What it sees
#
# We damage each reference by one word, and score the result:

# %%
DAMAGES = {  # of words w, with k in their middle
    "nothing": lambda w, k: w,
    "one word more at the end": lambda w, k: [*w, "now"],
    "a word inside replaced": lambda w, k: [*w[:k], "something", *w[k + 1 :]],
    "a word inside left out": lambda w, k: [*w[:k], *w[k + 1 :]],
    "two neighbours swapped": lambda w, k: [*w[: k - 1], w[k], w[k - 1], *w[k + 1 :]],
}
bleu_after = {}
for how, damage in DAMAGES.items():
    texts = [" ".join(damage(w, len(w) // 2)) for w in map(str.split, references)]
    bleu_after[how] = bleu_from_scratch(texts, references)
    print(f"{how:25} {bleu_after[how]:5.1f}")
assert min(bleu_after, key=bleu_after.get) == "two neighbours swapped"
assert bleu_after["one word more at the end"] > bleu_after["a word inside replaced"]

# %% [markdown]
# BLEU knows nothing of meaning. One word inside a sentence belongs to up to ten n-grams (one of length 1, two
# of length 2, three, four), one at its end to four. A swap keeps every single word, and costs the most.
#
# ### Is the beam really better?
#
# Another test set would give other scores. We have only this one, so we draw from it: as many sentences as
# there are, *with* replacement, a thousand times (the bootstrap; Koehn 2004, *Statistical Significance Tests
# for Machine Translation Evaluation*). The statistics add up, so one product of matrices makes all samples.
# Both systems are scored on the same draws: **paired**, for a hard sentence is hard for both. The difference:

# %%
draws = rng.multinomial(len(test), np.full(len(test), 1 / len(test)), size=1000)  # (1000, B)
sampled = []
for texts in (greedy_texts, beam_texts):
    table = np.array([*map(statistics, texts, references)])  # (B, 10)
    sampled.append(np.array([bleu_of(summed) for summed in draws @ table]))
difference = sampled[1] - sampled[0]

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6.5, 3.4))
axes.hist(difference, bins=30, color=GREEN, alpha=0.8)
axes.axvline(0, color=BLACK, lw=1)
axes.set(xlabel="BLEU of beam 4 minus BLEU of greedy, same draw", ylabel="draws, of 1000")
plt.show()

# %%
for name, values in (("greedy", sampled[0]), ("beam 4", sampled[1]), ("difference", difference)):
    low, high = np.percentile(values, [2.5, 97.5])
    print(f"{name:<11} {values.mean():5.1f}, 95 % between {low:5.1f} and {high:5.1f}")
print(f"the beam is better in {(difference > 0).mean():.1%} of the draws")
assert difference.std() < sampled[0].std()

# %% [markdown]
# Each score is uncertain by several points. The difference is known better, because a draw that is easy is easy
# for both. If 0 lies within its 95 %, do not claim that one is better. Here it lies at their very edge: on these
# sentences the beam is better, but barely surely.
#
# ## 7 · Exercises
#
# Fill in `answers/ex14.py`, your copy of [lessons/exercises/ex14.py](exercises/ex14.py), and run
# `minitransformer check ex14`. Or copy functions from there into new cells here, fill them in, and run the cell
# below again. The solutions are in [lessons/solutions/ex14.py](solutions/ex14.py).
#
# 1. **`alpha_of_a_tie`** (10 min). Two translations, a short one of higher probability and a long one. At which
#    α does the winner change?
# 2. **`nucleus`** (25 min). A story is not a translation: the most probable text is dull. Sampling from
#    the nucleus draws a word at random, but never from the long tail. Cut the tail off.
# 3. **`exact_search`** (45 min). Costs only grow. That is enough to find the best sequence of all *for
#    certain*, without trying them all.
# 4. **`chrf`** (45 min). BLEU gives nothing for "dogs" in place of "dog". Build chrF2, which counts characters,
#    equal to sacreBLEU's.

# %%
print(check_exercise("ex14", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | probability of a translation | $\log P(Y \mid X) = \sum_t \log P(y_t \mid y_{\lt t}, X)$, the end symbol included |
# | greedy | the best word of each step; not the best sentence |
# | beam | the $k$ best prefixes of one length; those that end leave it |
# | stop | when no $\log P(Z) / p(n_{\max})$ in the beam is above the best score found |
# | score | $\log P / ((5 + n) / 6)^\alpha$; a further token may cost about $\alpha n / (n + 5)$ of the mean |
# | key/value cache | one position a step in place of $t$; right because of the causal mask |
# | trap | choosing hypotheses without reordering their past: no error, wrong probabilities |
# | BLEU | brevity times the geometric mean of four clipped precisions, summed over the corpus first |
# | compare systems | same test set, same signature, paired bootstrap |
#
# **Your own Transformer.** Now it has `greedy` and `beam_search`: `minitransformer check own`.
#
# **Next:** [lesson 15](15_looking_inside.ipynb) looks inside a trained model.
