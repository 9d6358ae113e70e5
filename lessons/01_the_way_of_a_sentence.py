# %% [markdown]
# # 01 · The way of a sentence
#
# **You will** follow a sentence through the whole model, array by array, and its gradients on the way back; and learn
# the letters that all lessons use for shapes.
#
# | | |
# |---|---|
# | In the paper | section 3, figure 1; [the map](../docs/code.md) says where the rest is |
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
import matplotlib.pyplot as plt
import numpy as np

from minitransformer import Adam, Transformer, TransformerConfig, accelerated, select_device
from minitransformer.core.backend import to_host
from minitransformer.course.exercises import check_exercise
from minitransformer.course.notebooks import BLUE, shape_table, source_of, use_style
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
from minitransformer.layers.relu import relu
from minitransformer.layers.sigmoid import sigmoid, sigmoid_backward
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
# This is the model, from bottom to top. Beside each arrow stands the shape of what it carries. The letters are sizes:
# $B$ sentences in a batch, $S$ German and $T$ English pieces in a sentence, $D$ numbers for each piece, $V$ pieces in
# the vocabulary, $N$ layers one above the other. ([The glossary](glossary.md) has all letters and words, in English,
# 中文 and Deutsch.) Sections 1 to 3 are a walk through the picture.

# %% tags=["hide-input"]
LEFT, RIGHT = 1.4, 6.4  # the middle of the encoder and of the decoder
INTO, LAYER, OUT = "white", "#dceaf5", "#f6e3d3"
ENCODER = (
    ("German ids", "(B, S)", INTO),
    ("embedding + position", "(B, S, D)", INTO),
    ("self-attention", "(B, S, D)", LAYER),
    ("feed-forward network", "memory (B, S, D)", LAYER),
)
DECODER = (
    ("English ids so far", "(B, T)", INTO),
    ("embedding + position", "(B, T, D)", INTO),
    ("masked self-attention", "(B, T, D)", LAYER),
    ("cross-attention", "(B, T, D)", LAYER),
    ("feed-forward network", "(B, T, D)", LAYER),
    ("linear map: logits", "(B, T, V)", OUT),
    ("softmax", "(B, T, V)", OUT),
    ("probabilities of the next piece", "", INTO),
)
figure, axes = plt.subplots(figsize=(8.5, 6.2))
arrow = dict(arrowstyle="-|>", color=BLUE, lw=1.5, shrinkA=0, shrinkB=0)
for x, boxes in ((LEFT, ENCODER), (RIGHT, DECODER)):
    for y, (name, shape, colour) in enumerate(boxes):
        box = dict(boxstyle="round,pad=0.35", fc=colour, ec="0.5" if y and shape else "white")
        axes.text(x, y, name, ha="center", va="center", bbox=box)
        if shape:
            axes.text(x + 0.1, y + 0.5, shape, va="center", fontsize=9)
            axes.annotate("", (x, y + 0.74), (x, y + 0.26), arrowprops=arrow)
    ends = [y for y, (*_, colour) in enumerate(boxes) if colour == LAYER]
    low, high = ends[0] - 0.38, ends[-1] + 0.38
    axes.add_patch(plt.Rectangle((x - 1.75, low), 3.5, high - low, fill=False, ls="--", ec="0.4"))
    axes.text(x + 1.85, low, "× N", va="bottom")
axes.plot([LEFT, LEFT, 4.4, 4.4], [3.74, 3.95, 3.95, 3], color=BLUE, lw=1.5)
axes.annotate("", (RIGHT - 1.1, 3), (4.4, 3), arrowprops=arrow)
axes.set(xlim=(-0.6, 9), ylim=(-0.4, 7.4))
axes.axis("off")
plt.show()

# %% [markdown]
# In each layer, what a box computes is added to what came in, and normalised; the picture leaves this out
# ([lesson 11](11_the_transformer.ipynb) draws it).
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
assert np.allclose(to_host(split_heads(merged, H)), to_host(averaged))
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
# belongs to. The sigmoid, a layer that this model has no use for, squeezes a number into 0 to 1. Its cache is its
# result, because its slope is $y (1 - y)$:

# %%
source_of(sigmoid, sigmoid_backward)

# %% [markdown]
# Whether a backward is right can be measured: move each input a little and see how far the output moves. The checker
# does it for every number, and notices a backward that forgets a factor. ([Lesson
# 03](03_gradient_checking.ipynb))

# %%
numbers = rng.standard_normal((3, 5))
report = check_pair(sigmoid, sigmoid_backward, (numbers,))
forgets = check_pair(sigmoid, lambda dy, y: dy * y, (numbers,))
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
# ## 5 · Exercises
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
