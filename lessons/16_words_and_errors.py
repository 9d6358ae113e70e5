# %% [markdown]
# # 16 · Words and errors
#
# **You will** see which words a translator treats as similar, and derive why; find where it fails; and learn what its
# probabilities are worth, and what label smoothing does to them.
#
# | | |
# |---|---|
# | In the paper | section 3.4: one table of embeddings; section 5.4: with label smoothing "the model learns to be more unsure" |
# | In the package | `minitransformer/layers/embedding.py`, `minitransformer/loss/projected_loss.py` |
# | You need | the cross-entropy and its gradient ([lesson 04](04_softmax_cross_entropy.ipynb)) |
# | Time | three quarters of an hour to read, an hour for the exercises |

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
from collections import Counter
from difflib import SequenceMatcher

import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, Transformer, TransformerConfig, accelerated, select_device
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
from minitransformer.data.text.batches import encode_pairs, make_batches
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.toy.lexicon import BEINGS, DRINKS, PLACES, THINGS, VERBS
from minitransformer.data.text.vocabulary import EOS, PAD, Vocabulary
from minitransformer.decoding import translate_ids
from minitransformer.gradcheck import check_pair
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.optim.schedule import linear_decay

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(16)

# %% [markdown]
# ## 1 · Which words are neighbours?
#
# Which words does a translator treat as similar, where does it fail, and does it notice? We train one on the toy
# corpus, on sentences of at most eight words. Section 4 trains it again with label smoothing.
#
# All numbers are those of one model (seed 15). What the text says of them holds for seeds 16 and 17, too.

# %%
LONGEST, EPOCHS, PEAK, WARMUP, SEED = 8, 8, 6e-3, 100, 15
corpus = toy_corpus()
pairs = [(german, english) for german, english in corpus["train"] if len(german.split()) <= LONGEST]
vocabulary = Vocabulary.train([text for pair in pairs for text in pair], 1200)
encoded, _ = encode_pairs(vocabulary, pairs, 64)
V, D = len(vocabulary), 64


def trained(smoothing=0.0, seed=SEED):
    config = TransformerConfig.preset("toy", V, d_model=D, d_ff=128, dropout=0.0)
    model = Transformer(config, seed=seed, device=device)  # 2 + 2 layers of 4 heads, pre-norm
    rng = np.random.default_rng(seed)
    order = [batch for _ in range(EPOCHS) for batch in make_batches(encoded, 1400, rng)]
    adam = Adam(model.flat)
    with accelerated():
        for step, batch in enumerate(order, 1):
            model.zero_grad()
            _, cache = model.loss(batch, smoothing=smoothing)
            model.loss_backward(1.0, cache)
            adam.step(linear_decay(step, PEAK, WARMUP, len(order)))
    return model


model = trained()
E = to_host(model.target_embedding.weight.data).astype(float)
assert model.output_projection.weight is model.source_embedding.weight  # one table for all three
print(f"{len(pairs):,} pairs, {model.num_parameters():,} parameters")
shape_table({"V": V, "D": D}, E=(E, "V D", "a row for each subword, German and English"))

# %% [markdown]
# The row of a word is all the model knows of it before it reads a sentence. Two rows are near if the cosine of their
# angle is large. Take the words that are one subword and occur in one language only:

# %%
words = [set(re.findall(r"\w+", " ".join(side))) for side in zip(*pairs, strict=True)]
GERMAN, ENGLISH = (
    {w: vocabulary.encode(w)[0] for w in sorted(own - other) if len(vocabulary.encode(w)) == 1}
    for own, other in (words, words[::-1])
)


def cosines_of(ids):
    """Of each two rows of the table, and -1 in place of 1 for a row with itself."""
    rows = E[list(ids)]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(np.eye(len(rows), dtype=bool), -1, rows @ rows.T)


both = {**GERMAN, **ENGLISH}
every, cosines = list(both), cosines_of(both.values())
for word in ("dog", "dogs", "slept", "buying", "sleep", "old", "because", "the"):
    of_word = cosines[every.index(word)]
    near = np.argsort(-of_word)[:5]
    print(f"{word:<8} {'  '.join(f'{every[i]} {of_word[i]:.2f}' for i in near)}")

# %% [markdown]
# Is it the role of a word that counts, or its meaning? The toy language has a lexicon, so it can be counted:

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
role_of = {word: role for role, members in ROLES.items() for word in members if word != "read"}
lemma_of = {n.english_plural: n.english for n in NOUNS}
lemma_of |= {form: v.english for v in VERBS for form in (v.english_ing, v.english_past)}
known = [word for word in ENGLISH if word in role_of]
cosines = cosines_of([ENGLISH[word] for word in known])
roles = np.array([role_of[word] for word in known])
meanings = np.array([lemma_of.get(word, word) for word in known])
same_role, same_meaning = (x[:, None] == x[None] for x in (roles, meanings))
others = cosines > -1
mean_of = {
    "of the same role, such as dogs and horses": cosines[same_role & others].mean(),
    "of the same meaning, such as dog and dogs": cosines[same_meaning & others].mean(),
    "of neither": cosines[~same_role & ~same_meaning].mean(),
}
for name, mean in mean_of.items():
    print(f"mean cosine of two words {name:<42} {mean:5.2f}")
nearest_alike = (roles[cosines.argmax(axis=1)] == roles).mean()
print(f"the nearest neighbour has the same role: {nearest_alike:.0%} of {len(known)} words,")
print(f"and would have by chance:                {same_role.mean():.0%}")
assert nearest_alike > 0.6 > 0.3 > same_role.mean()
assert min(list(mean_of.values())[:2]) > mean_of["of neither"] + 0.05

# %% [markdown]
# Both count. But many words share a role and few a meaning, so the nearest neighbour is mostly one of the same role.
#
# ## 2 · Why they are
#
# The table is also the output projection ([lesson 05](05_tokens_and_embeddings.ipynb)). Let $y_n$ be the decoder's
# state at position $n$ of $N$. The logits are $z_{nv} = y_n \cdot E_v$, with $p_n = \text{softmax}(z_n)$. The mean
# cross-entropy has the derivative $(p_{nv} - [\text{label}_n = v]) / N$ with respect to $z_{nv}$, so by this use
#
# $$
# dE_v = \frac1N \sum_n (p_{nv} - [\text{label}_n = v]) \, y_n .
# $$
#
# The package has it in two steps. Our formula against measured slopes:

# %%
source_of(projected_loss_backward)

# %%
y, table = rng.standard_normal((2, 4, 3)), rng.standard_normal((5, 3))  # (B, T, D), (V, D)
labels = rng.integers(1, 5, (2, 4))


def loss_of_table(table):
    (loss, _), _ = projected_loss(y, table, labels)
    return loss, table


def by_the_formula(dloss, table):
    states = y.reshape(-1, 3)  # (N, D)
    p = np.exp(states @ table.T)
    p /= p.sum(axis=1, keepdims=True)  # (N, V)
    surplus = p - (labels.reshape(-1, 1) == np.arange(5))
    return dloss * surplus.T @ states / len(states)  # (V, D)


report = check_pair(loss_of_table, by_the_formula, (table,))
assert report.right
print(report)

# %% [markdown]
# A step goes against the gradient: **the row moves towards the states in which the word is to be said, and away from
# states in which it is expected wrongly.** Words that are said in like states get like rows. And what a state knows
# best is which *kind* of word comes next.
#
# A German word is never a label. Its gradient by this use is $\frac1N \sum_n p_{nv} \, y_n$, a sum without a minus. It
# is pushed away from what all states have in common, whatever it means, and so German words become alike:

# %%
alike = {}
for name, side in (("German", GERMAN), ("English", ENGLISH)):
    cosines = cosines_of(side.values())
    alike[name] = cosines[cosines > -1].mean()
    print(f"mean cosine of two {name} words: {alike[name]:.2f}")
assert alike["German"] > alike["English"] + 0.1

# %% [markdown]
# ## 3 · Where it fails
#
# Split the score: sentences from training, new combinations of known words, and sentences longer than any in training;
# then by length. After ± stands twice the standard error $\sqrt{r (1 - r) / n}$ of a share $r$ of $n$:


# %%
def translations(pairs):
    """The greedy translation of each pair's German, and its log P."""
    sources = [[*vocabulary.encode(german), EOS] for german, _ in pairs]
    with accelerated():
        found = [h for (h,) in translate_ids(model, sources, beam_size=1, max_length=30)]
    return [vocabulary.decode(h.ids) for h in found], np.array([h.log_probability for h in found])


def right_of(texts, pairs):
    return np.array([text == english for text, (_, english) in zip(texts, pairs, strict=True)])


test = corpus["test"]
said, log_p_said = translations(test)
right = right_of(said, test)
lengths = np.array([len(german.split()) for german, _ in test])
short = lengths <= LONGEST
seen = [pairs[i] for i in rng.choice(len(pairs), 400, replace=False)]
right_seen = right_of(translations(seen)[0], seen)
groups = {"from training": right_seen, "new combinations": right[short], "longer": right[~short]}
for n in range(3, 15, 2):
    groups[f"  {n} and {n + 1} words"] = right[(lengths == n) | (lengths == n + 1)]
for name, these in groups.items():
    r, n = these.mean(), len(these)
    print(f"{name:<18} {r:4.0%} ± {2 * np.sqrt(r * (1 - r) / n):3.0%} of {n:3} right")
assert right_seen.mean() > right[short].mean() > 0.8
assert groups["  7 and 8 words"].mean() > groups["  9 and 10 words"].mean() + 0.2

# %% [markdown]
# Look at the ± before you call one kind harder than another. (Near 0 and 1 it is too narrow: exercise
# `plausible_shares`.) There are two walls. New combinations cost something, and lengths that it has never seen cost
# much more.
#
# Align each wrong translation with its reference, and count the words that were left out or replaced:


# %%
def errors(chosen):
    """Words left out or replaced in the test sentences ``chosen``: shares by role, and what for."""
    all_words, left_out, replaced, swapped = Counter(), Counter(), Counter(), Counter()
    for i in np.flatnonzero(chosen):
        wanted, given = (re.findall(r"[\w-]+", text) for text in (test[i][1], said[i]))
        named = [role_of.get(w.lower(), "number" if "-" in w else "other") for w in wanted]
        all_words.update(named)
        for what, a, b, c, d in SequenceMatcher(None, wanted, given, autojunk=False).get_opcodes():
            if what in ("delete", "replace"):
                (left_out if what == "delete" else replaced).update(named[a:b])
                swapped[" ".join(wanted[a:b]), " ".join(given[c:d]) or "nothing"] += 1
    return {
        role: (left_out[role] / n, replaced[role] / n) for role, n in all_words.items()
    }, swapped


shares = {}
for name, chosen in ((f"at most {LONGEST} words", short), ("longer", ~short)):
    shares[name], swapped = errors(chosen)
    common = ",  ".join(f"{a} → {b} ({n})" for (a, b), n in swapped.most_common(3))
    print(f"{name}, most often: {common}")
    for role, (out, other) in sorted(shares[name].items(), key=lambda item: -sum(item[1])):
        print(f"  {role:<11} {out:5.1%} left out, {other:5.1%} replaced")
    replaced = {role: other for role, (_, other) in shares[name].items()}
    assert "number" in sorted(replaced, key=replaced.get)[-2:]
known_length, longer = shares.values()
assert np.mean([longer[role][0] > known_length[role][0] + 0.02 for role in longer]) > 0.8

# %% [markdown]
# Where the length is known, the errors are single words: *an* for *a*, which is chosen before the word that it depends
# on; and numbers of two parts. In longer sentences much is *left out*, words of nearly every kind, up to whole clauses.
# These are the errors that the model was surest of:

# %%
probability = np.exp(log_p_said)
for i in [i for i in np.argsort(-probability) if not right[i]][:4]:
    print(f"{test[i][0]}  P = {probability[i]:.2f}")
    print(f"  should be  {test[i][1]}\n  is         {said[i]}")
for name, these in ((f"at most {LONGEST} words", short), ("longer", ~short)):
    pairs_of = probability[these & right][:, None] > probability[these & ~right][None]
    print(
        f"{name}: a right translation has a higher P than a wrong one in {pairs_of.mean():.0%}",
        end="",
    )
    print(" of all such pairs")
    assert pairs_of.mean() > 0.75

# %% [markdown]
# ## 4 · Does it know?
#
# The model knows a little: right translations are mostly more probable than wrong ones.
#
# But do the numbers mean what they say? Of all words with the probability 0.7, seven out of ten should be right. Then
# the model is **calibrated**. Put the words into bins by their confidence, $c = \max_v p_v$. The mean gap between
# confidence and share of right words, with $n_b$ of $N$ words in bin $b$, is the **expected calibration error**:
#
# $$
# \text{ECE} = \sum_b \frac{n_b}{N} \, \lvert \text{accuracy}_b - \text{confidence}_b \rvert .
# $$
#
# **What does label smoothing do to it?** Let the next word be $v$ with probability $\pi_v$, given all that came before.
# The target $(1 - \varepsilon) [v = \text{label}] + \varepsilon / V$ is on average
# $q_v = (1 - \varepsilon) \pi_v + \varepsilon / V$. The loss is linear in the target, so its mean is the
# cross-entropy of $p$ against $q$, which is least at $p = q$ ([lesson 04](04_softmax_cross_entropy.ipynb)). The best model under smoothing says
#
# $$
# p_v = (1 - \varepsilon) \, \pi_v + \frac{\varepsilon}{V} ,
# $$
#
# and not $\pi_v$: **its loss asks it to be less sure than it could be**, with $\varepsilon = 0.1$ never
# surer than about 0.9. The same model, trained with smoothing:

# %%
EPSILON = 0.1
models = {"no smoothing": model, f"smoothing {EPSILON}": trained(smoothing=EPSILON)}


def confidences(model, chosen):
    """Of each word of the test sentences ``chosen``: the largest p, and whether it is right."""
    chosen_pairs, _ = encode_pairs(vocabulary, [test[i] for i in np.flatnonzero(chosen)], 64)
    confidence, hit = [], []
    for batch in make_batches(chosen_pairs, 4000):
        z = to_host(model.forward(batch.source, batch.target)[0]).astype(float)  # (B, T, V)
        best = z.argmax(axis=-1)
        z -= z.max(axis=-1, keepdims=True)  # so that the largest is 0, and its exponential 1
        real = batch.labels != PAD
        confidence.append(1 / np.exp(z).sum(axis=-1)[real])
        hit.append((best == batch.labels)[real])
    return np.concatenate(confidence), np.concatenate(hit)


def in_bins(confidence, hit):
    """Of each of ten bins that is not empty: number of words, mean confidence, share right."""
    number = np.minimum((confidence * 10).astype(int), 9)  # of the bin
    bins = [number == b for b in np.unique(number)]
    return np.array([(x.sum(), confidence[x].mean(), hit[x].mean()) for x in bins]).T


found = {}
for length, chosen in ((f"at most {LONGEST} words", short), ("longer", ~short)):
    for name, of in models.items():
        confidence, hit = confidences(of, chosen)
        n, sure, accuracy = found[length, name] = in_bins(confidence, hit)
        ece = (n / n.sum() * abs(accuracy - sure)).sum()
        print(f"{length:<15} {name:<13} words right {hit.mean():.1%},", end=" ")
        print(f"mean confidence {confidence.mean():.1%}, ECE {ece:.3f}")
        if name == "no smoothing":
            assert (ece > 0.03) == (length == "longer")
            assert length != "longer" or hit.mean() < confidence.mean() - 0.03
        else:
            assert ece > 0.08
            assert hit.mean() > confidence.mean() + 0.05

# %% [markdown]
# Each point is a bin of at least 30 words. The dotted line is what the best model under smoothing would show.

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True)
figure.suptitle(f"one model each, seed {SEED}", fontsize=9)
marks = dict(zip(models, ((BLUE, "o-"), (VERMILION, "s--")), strict=True))
for axes, length in zip(panels, (f"at most {LONGEST} words", "longer"), strict=True):
    axes.plot([0, 1], [0, 1], "-", color=BLACK, lw=1, label="calibrated")
    best = np.array([0, 1 - EPSILON]) + EPSILON / V  # where 0 and where 1 of the words are right
    axes.plot(best, [0, 1], ":", color=BLACK, lw=1.4, label="best under smoothing")
    for name, (colour, style) in marks.items():
        n, sure, accuracy = found[length, name]
        axes.plot(sure[n >= 30], accuracy[n >= 30], style, color=colour, label=name)
    axes.set(xlabel="mean confidence of the bin", title=f"sentences: {length}", ylim=(0, 1.03))
panels[0].set_ylabel("words right, share")
panels[1].legend(loc="lower right", fontsize=9)
plt.show()

# %% [markdown]
# On lengths that it knows, the model without smoothing is nearly always sure, and right to be. On longer sentences it
# is **too sure**: nearly all points lie below the line. (So are large models: Guo, Pleiss, Sun and Weinberger 2017, *On
# Calibration of Modern Neural Networks*.) With smoothing a few more words are right, and it doubts too much on both
# kinds. Exercise `best_temperature` corrects both, each with one number.
#
# ## 5 · Exercises
#
# Fill in `answers/ex16.py`, your copy of [lessons/exercises/ex16.py](exercises/ex16.py)
# (`cp -r lessons/exercises answers` makes all copies, once), and run
#
# ```sh
# minitransformer check ex16
# ```
#
# or copy the functions into new cells and run the cell below again. Solutions:
# [lessons/solutions/ex16.py](solutions/ex16.py).
#
# 1. **`plausible_shares`** (25 min). Four of four are right: 100 % ± 0 %? An error bar that is honest near 0 and 1.
# 2. **`best_temperature`** (45 min). Make a model calibrated with a single number, without touching any of its answers.

# %%
print(check_exercise("ex16", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | neighbours | words said in like states: mostly of one role |
# | why | $dE_v = \frac1N \sum_n (p_{nv} - [\text{label}_n = v]) \, y_n$ |
# | calibration | $\text{ECE} = \sum_b \frac{n_b}{N} \lvert \text{accuracy}_b - \text{confidence}_b \rvert$ |
# | smoothing | best $p_v = (1 - \varepsilon) \pi_v + \varepsilon / V$ |
# | trap | calibrated on what is like the training says nothing of what is not |
#
# **Your own Transformer.** Nothing new to write. When `minitransformer check own` finds all right,
# `minitransformer translate runs/own --own answers/own.py` shows you errors of your own.
#
# **Next:** claims about all this that circulate, and which of them hold: [lesson 33](33_what_notes_get_wrong.ipynb).
