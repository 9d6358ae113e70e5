"""Batch norm in place of layer norm in a translator, by the size of a batch.

    python benchmarks/norms.py

A small Transformer learns toy pairs of at most eight words, and is asked for others as short, and
for longer ones. Every norm of it is a layer norm, as in the paper, or a batch norm of each feature
over all tokens of a batch, padding among them. Both see the same sentences in the same order, with
a rate that grows with the root of the batch; so a row compares the two, and rows are not compared.

A trained batch norm norms by what it noted in training, as a translator has to, which is given one
sentence at a time. What it would say if it normed by the tokens that it is asked for, 64 sentences
at once, stands beside it.
"""

import copy
import sys
from itertools import islice
from unittest.mock import patch

import _options
import _results
import numpy as np
from _machine import machine, numpy_blas
from _tables import markdown
from threadpoolctl import threadpool_limits

from minitransformer import Adam, Transformer, TransformerConfig
from minitransformer.commands.arguments import positive, whole
from minitransformer.data.text.batches import encode_pairs, make_batches
from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.evaluation.tables import spread
from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.models.sublayers import NORMALISATIONS
from minitransformer.optim.clipping import clip_scale, gradient_norm
from minitransformer.optim.schedule import linear_decay

SIZES = 2, 8, 32, 128, 256  # sentences of a batch
NORMS = "layer norm", "batch norm"
SHORT, LONG = range(9), range(10, 99)  # words of a source sentence
PEAK = 4e-3  # with batches of 32
EPOCHS = 4
ASKED = 64  # sentences at once
WIDE = dict(d_model=64, num_heads=4, d_ff=128, num_encoder_layers=2, num_decoder_layers=2)


class TokenBatchNorm(BatchNorm):
    """A BatchNorm where a layer norm stands, which is told nothing of training."""

    by_batch = None  # a generator in training, or where the batch at hand is to decide

    def __init__(self, d_model, *, epsilon=1e-5):
        super().__init__(d_model, epsilon=epsilon)

    def forward(self, x):
        return super().forward(x, self.by_batch)


def main(arguments=None):
    """Train, print a table and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    result = {"kind": "norms", **machine(["norms.py", *given]), "blas": numpy_blas()}
    pairs = of_lengths(options.sentences)
    if max(options.sizes) > len(pairs["train"]):
        most = len(pairs["train"])
        raise SystemExit(f"--sizes {max(options.sizes)}: choose {most} or less, all there are")
    result |= {"sentences": len(pairs["train"]), "epochs": options.epochs, "rows": []}
    with threadpool_limits(1, user_api="blas"):
        for size in options.sizes:
            row = {"sentences": size, "norms": {name: [] for name in NORMS}}
            for name in NORMS:
                row["norms"][name] = [
                    trained(name, pairs, size, seed, options.epochs) for seed in options.seeds
                ]
            result["rows"].append(row)
    print(table(result))
    _results.write(result, options.json)
    return 0


def of_lengths(most):
    """Pairs of ids: ``most`` short ones to train on, short and long ones to ask for."""
    corpus = toy_corpus()
    vocabulary = Vocabulary.train([text for pair in corpus["train"] for text in pair], 500)

    def encoded(split, words):
        chosen = [pair for pair in corpus[split] if len(pair[0].split()) in words]
        return encode_pairs(vocabulary, chosen, max_length=64)[0]

    return {
        "train": encoded("train", SHORT)[:most],
        "short": encoded("test", SHORT),
        "long": encoded("test", LONG),
        "vocabulary": len(vocabulary),
    }


def trained(name, pairs, size, seed, epochs):
    """NLL in nats a token of a model with these norms: of short and long pairs."""
    norms = dict.fromkeys(NORMALISATIONS, TokenBatchNorm) if name == "batch norm" else {}
    with patch.dict(NORMALISATIONS, norms):
        config = TransformerConfig(*2 * [pairs["vocabulary"]], dropout=0.1, norm="pre", **WIDE)
        model = Transformer(config, seed=seed)
    learn(model, pairs["train"], size, seed, epochs)
    nll = {words: asked(model, pairs[words]) for words in ("short", "long")}
    if name == "batch norm":
        nll |= {f"{words}, by the batch": asked(model, pairs[words], True) for words in nll}
    return nll


def learn(model, pairs, size, seed, epochs):
    """Adam, over all pairs ``epochs`` times, with a rate that rises and falls."""
    adam, steps = Adam(model.flat), epochs * (len(pairs) // size)
    peak = PEAK * (size / 32) ** 0.5
    for step, some in enumerate(islice(batches_of(pairs, size, seed), steps), start=1):
        model.zero_grad()
        TokenBatchNorm.by_batch = masks = np.random.default_rng((seed, step))
        _, cache = model.loss(some, masks, smoothing=0.1)
        model.loss_backward(1.0, cache)
        TokenBatchNorm.by_batch = None
        scale = clip_scale(gradient_norm(model.flat.grad), 1.0)
        adam.step(linear_decay(step, peak, max(1, steps // 10), steps), scale)


def batches_of(pairs, size, seed):
    """Batches of ``size`` pairs without an end, in a new order each time through."""
    order = np.random.default_rng(seed)
    while True:
        order.shuffle(pairs := list(pairs))
        for start in range(0, len(pairs) - size + 1, size):
            yield batch(pairs[start : start + size])


def batch(pairs):
    """All of them in one."""
    (one,) = make_batches(pairs, max_tokens=10**9)
    return one


def asked(model, pairs, by_batch=False):
    """NLL in nats a token, by what was noted or by the batches that are asked for."""
    model = copy.deepcopy(model)  # which notes what it norms by
    total, tokens = 0.0, 0
    TokenBatchNorm.by_batch = np.random.default_rng(0) if by_batch else None
    for start in range(0, len(pairs), ASKED):
        some = batch(pairs[start : start + ASKED])
        (_, nll), _ = model.loss(some)
        total, tokens = total + float(nll) * some.num_tokens, tokens + some.num_tokens
    TokenBatchNorm.by_batch = None
    return total / tokens


def table(result):
    """NLL of each size and norm as Markdown, mean ± deviation of the seeds."""
    columns = [("layer norm", "short"), ("batch norm", "short")]
    columns += [("layer norm", "long"), ("batch norm", "long")]
    columns += [("batch norm", f"{words}, by the batch") for words in ("short", "long")]
    header = "sentences", *(f"{name}: {words}" for name, words in columns)
    lines = [header, ("---:",) * len(header)]
    for row in result["rows"]:
        cells = [spread([seed[words] for seed in row["norms"][name]], 3) for name, words in columns]
        lines.append((row["sentences"], *cells))
    return markdown(lines)


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0], "--json")
    parser.add_argument(
        "--sizes", type=positive, nargs="+", default=SIZES, help="sentences of a batch"
    )
    parser.add_argument("--seeds", type=whole, nargs="+", default=[1, 2, 3])
    parser.add_argument("--sentences", type=positive, default=7000, help="to train on, at most")
    parser.add_argument("--epochs", type=positive, default=EPOCHS, help="times through all of them")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
