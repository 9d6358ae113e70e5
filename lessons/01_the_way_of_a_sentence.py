# %% [markdown]
# # 01 · The way of a sentence
#
# **You will** follow a sentence through the whole model, array by array, and its gradients on the way back; learn the
# letters that all lessons use for shapes; and get a map, from the paper to the code to the lesson. At the end there is a
# glossary (English, 中文, Deutsch).
#
# | | |
# |---|---|
# | In the paper | section 3, figure 1; the map in section 5 says where the rest is |
# | In the package | `minitransformer/models/transformer.py`, `minitransformer/layers/masks.py` |
# | You need | NumPy's arrays, the product of two matrices |
# | Time | half an hour to read, an hour for the exercises |

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
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import minitransformer
from minitransformer import Adam, Transformer, TransformerConfig, accelerated, select_device
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import shape_table, source_of, use_style
from minitransformer.data.text.batches import encode_pairs, make_batches
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.decoding import cross_attention
from minitransformer.evaluation.plots import ATTENTION_COLOURS
from minitransformer.gradcheck import check_pair
from minitransformer.layers.attention import (
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_weights,
    split_heads,
)
from minitransformer.layers.feed_forward import feed_forward
from minitransformer.layers.linear import linear
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.softmax import softmax
from minitransformer.optim import schedule

use_style()
device = select_device("cpu")  # "cuda" runs the lesson on a GPU
rng = np.random.default_rng(1)

# %% [markdown]
# ## 1 · From sentences to arrays
#
# A sentence goes in, its translation comes out. Between them are arrays. Most mistakes in a model are mistakes of
# their **shape**, or of the order of their axes. So we stop at every stage and look at the shape of what is there.
#
# We need a small model, trained for three passes over short sentences of the package's toy corpus. Without training
# the shapes would be the same, but its answers would mean nothing.

# %%
D, H, F, N = 64, 4, 256, 2  # the width, the heads, the inner width, the layers of each stack
pairs = [pair for pair in toy_corpus()["train"] if len(pair[0].split()) <= 9]
vocabulary = Vocabulary.train([text for pair in pairs for text in pair], 1200)
V, K = len(vocabulary), D // H
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


def batches_of(pairs, **random):
    return make_batches(encode_pairs(vocabulary, pairs, config.max_length)[0], 1400, **random)


batches = [batch for _ in range(3) for batch in batches_of(pairs, rng=rng)]
adam = Adam(model.flat)
for step, batch in enumerate(batches, 1):
    with accelerated():
        model.zero_grad()
        (loss, _), cache = model.loss(batch)
        model.loss_backward(1.0, cache)
        adam.step(schedule.linear_decay(step, 4e-3, 100, len(batches)))
print(f"after {len(batches)} steps the loss is {float(loss):.2f}")

# %% [markdown]
# **Text to ids.** A text is cut into **subwords**, pieces of a vocabulary that was learned from the training text. `▁`
# marks the beginning of a word. Each piece has a number, its id. ([Lesson 05](05_tokens_and_embeddings.ipynb))

# %%
two = [
    ("Die Frau schläft.", "The woman is sleeping."),
    ("Heute kann die Frau einen Apfel kaufen.", "Today, the woman can buy an apple."),
]
ids = [vocabulary.encode(german) for german, _ in two]
for row in ids:
    print(" ".join(f"{p}={i}" for p, i in zip(vocabulary.pieces(row), row, strict=True)))
try:
    np.array(ids)
except ValueError as error:
    print(error)

# %% [markdown]
# Here is the first difficulty: two sentences of different lengths are no array.
#
# **Ids to a batch.** So the shorter one is filled up with **padding**, id 0. **Masks** take care that nobody looks at
# it. Of the English there are two arrays, one shifted by a place: the `target` is what the decoder sees, the `labels`
# are what it has to say. So in training all words of a sentence are predicted at once, each from the right words
# before it. ([Lesson 13](13_training_for_real.ipynb))

# %%
(batch,) = batches_of(two)
(B, S), T = batch.source.shape, batch.target.shape[1]
sizes = {"B": B, "S": S, "T": T, "D": D, "H": H, "K": K, "F": F, "V": V}
print(batch.source)
shape_table(
    sizes,
    source=(batch.source, "B S", "German ids, with the end symbol and padding"),
    target=(batch.target, "B T", "English ids behind the start symbol: what is already said"),
    labels=(batch.labels, "B T", "English ids and the end symbol: what is to be said"),
)

# %% [markdown]
# **Ids to rows of numbers.** Each id picks its row of $D$ numbers from a table, the **embedding**. To it a row is
# added that depends on the position alone, the **positional encoding**. Without it the model could not know the order
# of the words. ([Lesson 06](06_positions.ipynb))

# %%
x, _ = model.source_embedding.forward(batch.source)
x, _ = model.positional_encoding.forward(x)
shape_table(
    sizes,
    embedding=(model.source_embedding.weight.data, "V D", "a row for every piece"),
    x=(x, "B S D", "what, and where: the input of the encoder"),
)

# %% [markdown]
# ## 2 · Through the encoder
#
# **The German words look at each other.** Each position makes three vectors: a **query**, what it looks for; a
# **key**, by which it is found; a **value**, what it hands out. This is done $H$ times side by side, in narrow
# **heads** of $K = D / H$ numbers. Every query is compared with every key. How well they match gives the weights, and
# with them the values are averaged. ([Lesson 08](08_attention.ipynb), [09](09_multi_head_attention.ipynb))

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
weights = scaled_dot_product_attention_weights(cache)
shape_table(
    sizes,
    normalised=(normalised, "B S D", "x after LayerNorm"),
    query=(query, "B H S K", "each head has queries of its own"),
    key=(key, "B H S K", "and keys"),
    value=(value, "B H S K", "and values"),
    source_mask=(source_mask, "B 1 1 S", "False at padding"),
    weights=(weights, "B H S S", "who looks at whom; each row sums to 1"),
    averaged=(averaged, "B H S K", "averages of values"),
)

# %% [markdown]
# Now the heads are brought together. $H K = D$, so it is tempting to ask for the shape `(B, S, D)` at once. NumPy
# obeys. The shape is right, and the numbers are in the wrong places. First the axes have to be exchanged:

# %%
merged = merge_heads(averaged)
slip = averaged.reshape(B, S, D)
print("the same shape:", merged.shape == slip.shape)
print("the same numbers:", np.allclose(to_host(merged), to_host(slip)))
assert np.allclose(to_host(merged), to_host(averaged.swapaxes(1, 2).reshape(B, S, D)))
assert not np.allclose(to_host(merged), to_host(slip))

# %% [markdown]
# **Each word by itself.** The second half of a layer is the **feed-forward network**, two matrix products with a ReLU
# between them. Around both halves there is a **residual connection**: what they compute is *added* to what came in. So
# the shape never changes, and layers can be stacked. **LayerNorm** keeps the sums in bounds. After $N$ layers the
# output is called the **memory**. (Lessons [02](02_backpropagation.ipynb), [07](07_layer_norm.ipynb),
# [10](10_residual_connections.ipynb))

# %%
w_1, b_1, w_2, b_2 = (p.data for _, p in encoder_layer.feed_forward.named_parameters())
attended, _ = linear(merged, module.w_output.data)
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
# ## 3 · Through the decoder, to words
#
# **English looks at English, then at German.** A layer of the decoder has three parts. In **masked self-attention**
# each English position looks at itself and at earlier ones. The **causal mask** hides later ones, which are to be
# predicted. In **cross-attention** queries come from the English side, keys and values from the memory. Then comes a
# feed-forward network. ([Lesson 11](11_the_transformer.ipynb))

# %%
y, _ = model.decode(batch.target, memory, source_mask)
cross = cross_attention(model, batch.source, batch.target)[0]  # of the first layer
shape_table(
    sizes,
    cross=(cross, "B H T S", "where each English position looks in the German sentence"),
    y=(y, "B T D", "the output of the decoder"),
)

# %% [markdown]
# **Rows of numbers to words.** One more matrix product gives every word of the vocabulary a score, its **logit**. The
# matrix is the table of the embeddings again. The **softmax** turns scores into probabilities. ([Lesson
# 04](04_softmax_cross_entropy.ipynb))

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
# That is all a Transformer ever says: how probable each next word is. To write a sentence one takes a word, appends it
# to the target, and asks again. ([Lesson 14](14_decoding.ipynb))
#
# The whole way in one picture, for the second sentence: each strip is one of the arrays above, a row for each position.
# Attention weights are one map for each head. Many cells of `inside` are white: the ReLU made them 0.

# %% tags=["hide-input"]
strips = {
    "x\n(S, D)": x,
    "query\n(H, S, K)": query,
    "weights\n(H, S, S)": weights,
    "inside\n(S, F)": inside,
    "memory\n(S, D)": memory,
    "cross\n(H, T, S)": cross,
    "y\n(T, D)": y,
    "logits\n(T, V)": logits,
}
SHOWN = 290  # columns
figure, panels = plt.subplots(len(strips), 1, figsize=(9, 7.5), sharex=True)
for axes, (name, array) in zip(panels, strips.items(), strict=True):
    strip = to_host(array)[1, ..., :SHOWN]
    is_weights = name.startswith(("weights", "cross"))
    style = dict(cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    if not is_weights:
        strip = strip / np.abs(strip).max()
        style = dict(cmap="RdBu_r", vmin=-1, vmax=1)
    left = 0
    for part in strip if strip.ndim == 3 else [strip]:  # heads side by side
        rows, columns = part.shape
        where = (left, left + columns, rows, 0)
        image = axes.imshow(part, extent=where, aspect="auto", interpolation="none", **style)
        frame = dict(fill=False, edgecolor="0.4", lw=0.8, zorder=3, clip_on=False)
        axes.add_patch(plt.Rectangle((left, 0), columns, rows, **frame))
        left += columns + 3
    axes.set(xlim=(-1, SHOWN), ylim=(rows, 0), yticks=[])
    axes.tick_params(length=0)
    axes.set_ylabel(name, rotation=0, ha="right", va="center")
    axes.grid(False)
    axes.spines[:].set_visible(False)
    if is_weights:
        attention_image = image
panels[-1].text(SHOWN - 2, 1, f"… and on, to {V:,}", ha="right", va="top", backgroundcolor="white")
panels[-1].set_xlabel("numbers in a row")
bar = dict(location="right", aspect=25, pad=0.02)
figure.colorbar(image, ax=panels[4:], label="number, relative to the strip's largest", **bar)
figure.colorbar(attention_image, ax=panels[:4], label="attention weight", **bar)
plt.show()

# %% [markdown]
# ## 4 · And back again
#
# Training needs the slope of the loss with respect to each parameter. Here every layer is a **pair of functions**. The
# forward returns its result and a **cache**, what the backward will need. The backward is given `dy`, the gradient of
# the loss with respect to `y`, and returns `dx`, that with respect to `x`. A gradient always has the shape of what it
# belongs to. The shortest pair of the package:

# %%
source_of(relu, relu_backward)

# %% [markdown]
# Whether a backward is right can be measured: move each input a little and see how far the output moves. The checker
# does it for every number, and notices a backward that forgets where the input was negative. ([Lesson
# 03](03_gradient_checking.ipynb))

# %%
numbers = rng.standard_normal((3, 5))
report = check_pair(relu, relu_backward, (numbers,))
forgets = check_pair(relu, lambda dy, cache: dy, (numbers,))
print(report)
print(forgets)
assert report.right
assert not forgets.right

# %% [markdown]
# The backward of the model is that of its layers, last one first. It ends at the parameters: afterwards each has a
# gradient.

# %%
model.zero_grad()
(loss, _), cache = model.loss(batch)
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
# Read [the paper](https://arxiv.org/abs/1706.03762) beside the course.
#
# | in the paper | what | in the package | lesson |
# |---|---|---|---|
# | abstract, 1 | a translator that is built on attention | `minitransformer/inference/translator.py` | [00](00_start_here.ipynb) |
# | 3, figure 1 | the whole model | `minitransformer/models/transformer.py` | [11](11_the_transformer.ipynb) |
# | 3.1 | stacks of layers, residual connections | `minitransformer/models/stacks.py`, `minitransformer/layers/residual.py` | [10](10_residual_connections.ipynb), [11](11_the_transformer.ipynb) |
# | 3.1 | layer normalisation | `minitransformer/layers/layer_norm.py` | [07](07_layer_norm.ipynb) |
# | 3.2.1, equation 1 | scaled dot-product attention | `minitransformer/layers/attention.py`, `minitransformer/layers/softmax.py` | [08](08_attention.ipynb) |
# | 3.2.2 | multi-head attention | `minitransformer/layers/attention.py`, `minitransformer/layers/linear.py` | [09](09_multi_head_attention.ipynb) |
# | 3.2.3 | its three uses, masks | `minitransformer/models/stacks.py`, `minitransformer/layers/masks.py` | [08](08_attention.ipynb), [09](09_multi_head_attention.ipynb) |
# | 3.3, equation 2 | feed-forward network | `minitransformer/layers/feed_forward.py`, `minitransformer/layers/relu.py`, `minitransformer/layers/linear.py` | [02](02_backpropagation.ipynb) |
# | 3.4 | embeddings, tied weights | `minitransformer/layers/embedding.py`, `minitransformer/layers/token_ids.py` | [05](05_tokens_and_embeddings.ipynb) |
# | 3.4 | softmax over the vocabulary | `minitransformer/layers/softmax.py`, `minitransformer/loss/cross_entropy.py`, `minitransformer/loss/projected_loss.py` | [04](04_softmax_cross_entropy.ipynb) |
# | 3.5 | positional encoding | `minitransformer/layers/positional_encoding.py` | [06](06_positions.ipynb) |
# | 4, table 1 | why self-attention, and what it replaced | `minitransformer/layers/`: files without a row of their own | [19](19_recurrence.ipynb), [20](20_convolution.ipynb), [21](21_why_self_attention.ipynb) |
# | 5.1 | data, subwords, batches | `minitransformer/data/text/vocabulary.py`, `minitransformer/data/text/batches.py` | [05](05_tokens_and_embeddings.ipynb), [13](13_training_for_real.ipynb) |
# | 5.2 | hardware | `minitransformer/core/backend.py`, `minitransformer/accelerate/`, `minitransformer/core/twins.py`, `minitransformer/core/workers.py` | [90](90_arrays_and_devices.ipynb), [17](17_making_it_fast.ipynb) |
# | 5.3, equation 3 | Adam, the learning rate | `minitransformer/optim/adam.py`, `minitransformer/optim/schedule.py` | [12](12_learning.ipynb) |
# | 5.4 | dropout | `minitransformer/layers/dropout.py` | [12](12_learning.ipynb) |
# | 5.4 | label smoothing | `minitransformer/loss/cross_entropy.py` | [04](04_softmax_cross_entropy.ipynb), [12](12_learning.ipynb) |
# | 6.1 | beam search, BLEU, averaged checkpoints | `minitransformer/decoding/`, `minitransformer/evaluation/scores.py`, `minitransformer/training/choice.py` | [14](14_decoding.ipynb), [13](13_training_for_real.ipynb) |
# | 6.2, table 3 | sizes of models | `minitransformer/models/transformer_config.py` | [11](11_the_transformer.ipynb) |
# | figures 3 to 5 | what heads look at | `minitransformer/evaluation/plots.py` | [15](15_looking_inside.ipynb) |
# | not in it | neighbours among words, errors, calibration | `minitransformer/evaluation/scores.py` | [16](16_words_and_errors.ipynb) |
# | not in it | a decoder alone: a language model, and drawing from it | `minitransformer/models/language_model.py`, `minitransformer/decoding/language_model.py`, `minitransformer/decoding/sampling.py` | [22](22_a_language_model.ipynb) |
# | not in it | an encoder alone: blanks filled, words labelled | `minitransformer/models/masked_language_model.py`, `minitransformer/models/tagger.py`, `minitransformer/tasks/masked_language_modelling.py`, `minitransformer/tasks/tagging.py`, `minitransformer/inference/filler.py`, `minitransformer/inference/labeller.py` | [23](23_an_encoder.ipynb) |
# | not in it | a training in many processes | `minitransformer/parallel/alone.py`, `minitransformer/parallel/mpi.py` | [24](24_many_machines.ipynb) |
# | not in it | backpropagation by hand | `minitransformer/core/module.py` | [02](02_backpropagation.ipynb) |
# | not in it | checking gradients | `minitransformer/gradcheck/` | [03](03_gradient_checking.ipynb) |
# | not in it | a run that can be resumed | `minitransformer/runs/run_folder.py`, `minitransformer/runs/checkpoint/` | [13](13_training_for_real.ipynb) |
# | not in it | your functions in place of the package's | `minitransformer/course/own/` | [18](18_your_own_transformer.ipynb) |
#
# A map has to be right, so we check it. Every file and every lesson on it exists, and no lesson is missing. Every layer
# that the model of the paper is made of has a row. All others stand together in the row of table 1.

# %%
package = Path(minitransformer.__file__).parent
here = Path("01_the_way_of_a_sentence.py")


def imported(name, found=()):
    """The files of the package that a file imports, and those that these import."""
    text = (package / name).read_text(encoding="utf-8")
    for module in re.findall(r"^from minitransformer\.([\w.]+) import", text, re.MULTILINE):
        other = module.replace(".", "/") + ".py"
        if other not in found and (package / other).is_file():
            found = imported(other, (*found, other))
    return found


if here.is_file():
    lines = here.read_text(encoding="utf-8").splitlines()
    the_map = [line for line in lines if line.startswith("# |") and "`minitransformer/" in line]
    on_map = set(re.findall(r"`minitransformer/(\S+?)`", "\n".join(the_map)))
    missing = [name for name in on_map if not (package / name).exists()]
    used = {name for name in imported("models/transformer.py") if name.startswith("layers/")}
    others = {f"layers/{path.name}" for path in (package / "layers").glob("[!_]*.py")} - used
    linked = set(re.findall(r"\((\d\d_\w+)\.ipynb\)", "\n".join(the_map)))
    lessons = {path.stem for path in Path().glob("[0-9][0-9]_*.py")} - {here.stem}
    print(f"{len(on_map)} places in the package; missing: {missing or 'none'}")
    print(f"{len(used)} layers of the model; not on the map: {sorted(used - on_map) or 'none'}")
    print(f"{len(others - on_map)} other layers, in the row of table 1")
    print(f"{len(lessons)} lessons; not on the map: {sorted(lessons - linked) or 'none'}")
    assert not missing
    assert "layers/attention.py" in used
    assert used <= on_map
    assert lessons == linked, lessons ^ linked
else:
    print("The other lessons are not here; the map is checked where they are.")

# %% [markdown]
# ## 6 · Exercises
#
# Fill in `answers/ex01.py`, your copy of [lessons/exercises/ex01.py](exercises/ex01.py), and run
# `minitransformer check ex01`. Or copy the functions into new cells here, fill them in, and run the cell below again.
# The solutions are in [lessons/solutions/ex01.py](solutions/ex01.py).
#
# 1. **`shapes_in_the_model`** (25 min). From the sizes alone: the shapes of seven arrays on the way through the model.
#    Close sections 2 and 3 before you begin.
# 2. **`count_parameters`** (25 min). How many numbers does training change? `print(model.summary())` shows where they
#    are. Write the formula, for every model of this kind.

# %%
print(check_exercise("ex01", globals()))

# %% [markdown]
# ## On one card
#
# | | |
# |---|---|
# | the model | the probability of each next word, given the source and the words so far |
# | shapes | ids $(B, S)$, rows $(B, S, D)$, heads $(B, H, S, K)$, inside $(B, S, F)$, logits $(B, T, V)$ |
# | attention weights | (batch, heads, who looks, who is looked at): $(B, H, T, S)$ in cross-attention |
# | a layer | `y, cache = f(x)` and `dx = f_backward(dy, cache)`; $dx$ has the shape of $x$ |
# | trap | a right shape is not enough: exchange the axes before you merge heads |
# | trap | padding is data to NumPy; only a mask hides it |
#
# **Your own Transformer.** Nothing to write yet; `minitransformer check own` lists what there will be.
#
# **Next:** how gradients are found, in [lesson 02](02_backpropagation.ipynb).
#
# ## Symbols and words
#
# The same letter means the same thing in all lessons, unless a lesson says otherwise. In code, letters are names: γ is
# `gamma`, $dx$ is `dx`. Many people say the English word in German and Chinese too; these are the words that texts in
# these languages use or give beside it.
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
# | $\mu$, $\sigma$ | mean, standard deviation | 均值、标准差 | Mittelwert, Standardabweichung | |
# | $\hat x$ | normalised $x$ | 归一化后的 $x$ | normalisiertes $x$ | mean 0, variance 1 |
# | $\gamma$, $\beta$ | gain, shift of LayerNorm | 缩放参数、平移参数 | Skalierung, Verschiebung | |
# | $\varepsilon$, $\epsilon$ | small constant; or label smoothing $\epsilon_{ls}$ | 小常数;标签平滑系数 | kleine Konstante; Stärke der Glättung | the lesson says which |
# | $\theta$, $g$ | parameters, their gradient | 参数、梯度 | Parameter, Gradient | |
# | $\eta$ | learning rate | 学习率 | Lernrate | |
# | $m$, $v$ | first and second moment | 一阶矩、二阶矩 | erstes und zweites Moment | running means of $g$ and $g^2$ |
# | $\beta_1$, $\beta_2$ | decay rates of Adam | 矩估计的衰减率 | Abklingraten von Adam | |
# | $\alpha$ | exponent of the length penalty | 长度惩罚指数 | Exponent der Längenstrafe | in decoding |
# | $\tau$ | temperature | 温度 | Temperatur | what logits are divided by before the softmax |
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
