"""The Transformer of "Attention Is All You Need" in one file that needs nothing but NumPy.

    python one_file.py

It makes up German sentences and their translations, learns from them for a minute, and translates
others that it has never seen. Left out are dropout and beam search; sections are the paper's.
Layers come in pairs: a forward returns y and a cache, or the input serves as one; the backward
below takes dy, the gradient of the loss with respect to y, and is the forward reversed. What is
learned lies in w by name, its gradients in g. B sentences of S source and T target tokens, width D,
H heads of K = D / H, F between the maps of the feed-forward network, V tokens in all.
"""

import math
import os
import random
from itertools import zip_longest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # on busy cores more threads wait for each other
import numpy as np

D, H, F, LAYERS = 64, 4, 256, 2
BATCH, STEPS, WARMUP, SMOOTHING = 64, 1200, 400, 0.1
PAD, BEGIN, END = range(3)  # the first ids; those after them are words

# Sentences. German puts the verb second, what belongs to it last, and after "weil" the verb, too.

NOUNS = """der hund hunde dog dogs, der vogel vögel bird birds, der koch köche cook cooks,
die katze katzen cat cats, die frau frauen woman women, die maus mäuse mouse mice,
das kind kinder child children, das pferd pferde horse horses, das schaf schafe sheep sheep"""
ADJECTIVES = "alt old, klein small, müd tired, jung young, laut loud, wild wild"
VERBS = """sieht sehen gesehen sees see seen, hört hören gehört hears hear heard,
sucht suchen gesucht seeks seek sought, malt malen gemalt paints paint painted"""
ADVERBS = "heute today, oft often, jetzt now, dort there"


def one_of(rng, table):
    return rng.choice(table.split(",")).split()


def noun_phrase(rng, accusative):
    """Words in German and in English, and whether they are of several."""
    article, one, several, *english = one_of(rng, NOUNS)
    plural = rng.random() < 0.3
    den = accusative and article == "der" and not plural
    german = ["die" if plural else "den" if den else article, several if plural else one]
    english = ["the", english[plural]]
    if rng.random() < 0.5:
        stem, adjective = one_of(rng, ADJECTIVES)
        german.insert(1, stem + ("en" if plural or den else "e"))
        english.insert(1, adjective)
    return german, english, plural


def sentence(rng, begins=("subject", "adverb")):
    """Words in German and in English; one sentence in three says why."""
    subject, who, plural = noun_phrase(rng, accusative=False)
    thing, whom, _ = noun_phrase(rng, accusative=True)
    sees, see, seen, *english = one_of(rng, VERBS)
    present = [[sees, see][plural]], [], [english[plural]]
    perfect = [["hat", "haben"][plural]], [seen], [["has", "have"][plural], english[2]]
    wish = [["will", "wollen"][plural]], [see], [["wants", "want"][plural], "to", english[1]]
    verb, rest, does = rng.choice([present, perfect, wish])
    begins = rng.choice(begins)
    if begins == "weil":
        return ["weil", *subject, *thing, *rest, *verb], ["because", *who, *does, *whom]
    german, english = [*subject, *verb, *thing, *rest], [*who, *does, *whom]
    if begins == "adverb":
        heute, today = one_of(rng, ADVERBS)
        german, english = [heute, *verb, *subject, *thing, *rest], [today, *english]
    why = sentence(rng, ["weil"]) if rng.random() < 1 / 3 else ([], [])
    return german + why[0], english + why[1]


def batch_of(pairs, ids):
    """Ids (B, S) of the German sides, and (B, T) of the English ones between BEGIN and END."""
    german = [[ids[word] for word in source] for source, _ in pairs]
    english = [[BEGIN, *(ids[word] for word in target), END] for _, target in pairs]
    return tuple(np.array(list(zip_longest(*rows, fillvalue=PAD))).T for rows in (german, english))


# Layers (section 3).


def linear(w, name, x):
    """x W; the cache is x."""
    return (x.reshape(-1, x.shape[-1]) @ w[name]).reshape(*x.shape[:-1], -1)


def linear_backward(w, g, name, dy, x):
    rows = dy.reshape(-1, dy.shape[-1])
    g[name] += x.reshape(len(rows), -1).T @ rows
    return (rows @ w[name].T).reshape(x.shape)


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))  # of 0 at most, so that none overflows
    return e / e.sum(-1, keepdims=True)


def add_and_norm(w, name, x, h):
    """Each row of x + h brought to mean 0 and variance 1, times a gain, plus a shift."""
    y = x + h
    centred = y - y.mean(-1, keepdims=True)
    sigma = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return centred / sigma * w[name + ".gain"] + w[name + ".shift"], (centred / sigma, sigma)


def add_and_norm_backward(w, g, name, dy, cache):
    """The gradient of x, and of h: without what shifts or scales a row, which leaves y as it is."""
    x_hat, sigma = cache
    g[name + ".shift"] += dy.sum((0, 1))
    g[name + ".gain"] += (dy * x_hat).sum((0, 1))
    dx_hat = dy * w[name + ".gain"]
    along = x_hat * (dx_hat * x_hat).mean(-1, keepdims=True)
    return (dx_hat - dx_hat.mean(-1, keepdims=True) - along) / sigma


def attention(w, name, x, memory, mask):
    """softmax(Q Kᵀ / √K) V in H heads; x asks, memory answers where the mask is True."""
    query = split_heads(linear(w, name + ".query", x))  # (B, H, T, K)
    key = split_heads(linear(w, name + ".key", memory))  # (B, H, S, K)
    value = split_heads(linear(w, name + ".value", memory))
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(D // H)  # (B, H, T, S)
    weights = softmax(np.where(mask, scores, -np.inf))
    heads = merge_heads(weights @ value)  # (B, T, D)
    y, norm_cache = add_and_norm(w, name, x, linear(w, name + ".output", heads))
    return y, (x, memory, query, key, value, weights, heads, norm_cache)


def attention_backward(w, g, name, dy, cache):
    """Gradients dx and dmemory."""
    x, memory, query, key, value, weights, heads, norm_cache = cache
    dy = add_and_norm_backward(w, g, name, dy, norm_cache)
    dheads = split_heads(linear_backward(w, g, name + ".output", dy, heads))
    dvalue = weights.swapaxes(-1, -2) @ dheads
    dweights = dheads @ value.swapaxes(-1, -2)
    dscores = weights * (dweights - (dweights * weights).sum(-1, keepdims=True)) / math.sqrt(D // H)
    dkey = dscores.swapaxes(-1, -2) @ query
    dquery = dscores @ key
    dmemory = linear_backward(w, g, name + ".value", merge_heads(dvalue), memory)
    dmemory += linear_backward(w, g, name + ".key", merge_heads(dkey), memory)
    return dy + linear_backward(w, g, name + ".query", merge_heads(dquery), x), dmemory


def split_heads(x):
    return x.reshape(*x.shape[:2], H, D // H).swapaxes(1, 2)  # (B, T, D) to (B, H, T, K)


def merge_heads(x):
    return x.swapaxes(1, 2).reshape(len(x), -1, D)  # and back


def feed_forward(w, name, x):
    """max(0, x W₁ + b₁) W₂ + b₂ at each position, then add & norm."""
    h = np.maximum(0, linear(w, name + ".w_1", x) + w[name + ".b_1"])  # (B, T, F)
    y, norm_cache = add_and_norm(w, name, x, linear(w, name + ".w_2", h) + w[name + ".b_2"])
    return y, (x, h, norm_cache)


def feed_forward_backward(w, g, name, dy, cache):
    x, h, norm_cache = cache
    dy = add_and_norm_backward(w, g, name, dy, norm_cache)
    g[name + ".b_2"] += dy.sum((0, 1))
    dh = linear_backward(w, g, name + ".w_2", dy, h) * (h > 0)
    g[name + ".b_1"] += dh.sum((0, 1))
    return dy + linear_backward(w, g, name + ".w_1", dh, x)


def embed(w, ids):
    """√D times the row of each token, plus sines and cosines of its position."""
    angles = np.arange(ids.shape[1])[:, None] / 10000 ** (np.arange(0, D, 2) / D)  # (T, D / 2)
    waves = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(-1, D)
    return w["embedding"][ids] * math.sqrt(D) + waves.astype(w["embedding"].dtype)


def embed_backward(g, dx, ids):
    np.add.at(g["embedding"], ids, dx * math.sqrt(D))  # a token may stand at several places


# The model (figure 1). One matrix embeds both languages and tells what follows (section 3.4).

ATTENTION = dict(query=(D, D), key=(D, D), value=(D, D), output=(D, D), gain=(D,), shift=(D,))
NETWORK = dict(w_1=(D, F), b_1=(F,), w_2=(F, D), b_2=(D,), gain=(D,), shift=(D,))
SUBLAYERS = {"encoder.self": ATTENTION, "encoder.network": NETWORK}
SUBLAYERS |= {"decoder.self": ATTENTION, "decoder.cross": ATTENTION, "decoder.network": NETWORK}


def new_weights(rng, num_tokens):
    """Matrices as Glorot and Bengio draw them; gains of 1, biases and shifts of 0."""
    shapes = {"embedding": (num_tokens, D)}
    for sublayer, arrays in SUBLAYERS.items():
        for layer in range(LAYERS):
            shapes |= {f"{sublayer}.{layer}.{of}": shape for of, shape in arrays.items()}
    w = {name: np.full(shape, name.endswith("gain"), "f") for name, shape in shapes.items()}
    for matrix in (array for array in w.values() if array.ndim == 2):
        matrix[:] = rng.uniform(-1, 1, matrix.shape) * math.sqrt(6 / sum(matrix.shape))
    return w


def encode(w, source):
    """The memory (B, S, D) of source ids (B, S), and where it is real."""
    x, caches = embed(w, source), []
    real = (source != PAD)[:, None, None, :]  # (B, 1, 1, S), for all heads and queries
    for layer in range(LAYERS):
        x, self_cache = attention(w, f"encoder.self.{layer}", x, x, real)
        x, network_cache = feed_forward(w, f"encoder.network.{layer}", x)
        caches.append((layer, self_cache, network_cache))
    return x, real, (source, caches)


def encode_backward(w, g, dx, cache):
    source, caches = cache
    for layer, self_cache, network_cache in reversed(caches):
        dx = feed_forward_backward(w, g, f"encoder.network.{layer}", dx, network_cache)
        dx = sum(attention_backward(w, g, f"encoder.self.{layer}", dx, self_cache))
    embed_backward(g, dx, source)


def decode(w, target, memory, real):
    """Logits (B, T, V) of the token after each of the target's, ids (B, T)."""
    x, caches = embed(w, target), []
    until_itself = np.tri(target.shape[1], dtype=bool)  # (T, T): no position sees a later one
    for layer in range(LAYERS):
        x, self_cache = attention(w, f"decoder.self.{layer}", x, x, until_itself)
        x, cross_cache = attention(w, f"decoder.cross.{layer}", x, memory, real)
        x, network_cache = feed_forward(w, f"decoder.network.{layer}", x)
        caches.append((layer, self_cache, cross_cache, network_cache))
    return x @ w["embedding"].T, (target, x, caches)


def decode_backward(w, g, dlogits, cache):
    """Gradient dmemory: a sum, for each layer has asked it."""
    target, x, caches = cache
    g["embedding"] += dlogits.reshape(-1, dlogits.shape[-1]).T @ x.reshape(-1, D)
    dx, dmemory = dlogits @ w["embedding"], 0
    for layer, self_cache, cross_cache, network_cache in reversed(caches):
        dx = feed_forward_backward(w, g, f"decoder.network.{layer}", dx, network_cache)
        dx, dm = attention_backward(w, g, f"decoder.cross.{layer}", dx, cross_cache)
        dx = sum(attention_backward(w, g, f"decoder.self.{layer}", dx, self_cache))
        dmemory = dmemory + dm
    embed_backward(g, dx, target)
    return dmemory


# Learning (section 5) and search.


def loss_and_gradients(w, source, target):
    """The mean cross-entropy of the real tokens, to answers smoothed by SMOOTHING; and g."""
    g = {name: np.zeros_like(array) for name, array in w.items()}
    memory, real, encode_cache = encode(w, source)
    logits, decode_cache = decode(w, target[:, :-1], memory, real)  # END is never read
    p, answers = softmax(logits), target[:, 1:]  # (B, T, V), (B, T)
    q = (1 - SMOOTHING) * np.eye(p.shape[-1], dtype=p.dtype)[answers] + SMOOTHING / p.shape[-1]
    share = (answers != PAD)[..., None] / (answers != PAD).sum(dtype=p.dtype)
    dmemory = decode_backward(w, g, share * (p - q), decode_cache)
    encode_backward(w, g, dmemory, encode_cache)
    return -(share * q * np.log(p)).sum(), g


def train(w, pairs, ids, rng):
    """Adam (section 5.3), whose rate rises for WARMUP steps and then falls with their root."""
    m, v = ({name: np.zeros_like(array) for name, array in w.items()} for _ in range(2))
    for step in range(1, STEPS + 1):
        loss, g = loss_and_gradients(w, *batch_of(rng.sample(pairs, BATCH), ids))
        rate = D**-0.5 * min(step**-0.5, step * WARMUP**-1.5)
        for name in w:
            m[name] += (1 - 0.9) * (g[name] - m[name])
            v[name] += (1 - 0.98) * (g[name] ** 2 - v[name])
            m_hat, v_hat = m[name] / (1 - 0.9**step), v[name] / (1 - 0.98**step)
            w[name] -= rate * m_hat / (np.sqrt(v_hat) + 1e-9)
        if step % 100 == 0:
            print(f"step {step}: loss {loss:.3f}", flush=True)


def translate(w, sources, ids):
    """Lists of words: after each token the most probable one, until END."""
    source, target = batch_of([(source, []) for source in sources], ids)
    target, (memory, real, _) = target[:, :1], encode(w, source)
    while target.shape[1] < 40 and not (target == END).any(1).all():
        logits, _ = decode(w, target, memory, real)
        target = np.hstack([target, logits[:, -1:].argmax(-1)])
    tokens = list(ids)
    rows = [[tokens[i] for i in row[1:]] + ["<end>"] for row in target]
    return [row[: row.index("<end>")] for row in rows]


if __name__ == "__main__":
    rng = random.Random(0)
    test = [sentence(rng) for _ in range(500)]
    pairs = [pair for pair in (sentence(rng) for _ in range(50_000)) if pair not in test]
    words = sorted({word for pair in pairs for side in pair for word in side})  # of both languages
    ids = {token: i for i, token in enumerate(["<pad>", "<begin>", "<end>", *words])}
    w = new_weights(np.random.default_rng(0), len(ids))
    train(w, pairs, ids, rng)
    said = translate(w, [source for source, _ in test], ids)
    for (source, _), english in zip(test[:5], said[:5], strict=True):
        print(" ".join(source), "->", " ".join(english))
    right = np.mean([english == target for english, (_, target) in zip(said, test, strict=True)])
    print(f"{right:.1%} of {len(test)} unseen sentences are translated exactly")
