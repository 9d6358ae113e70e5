"""Does batch norm help because the inputs of a layer change less as the layers before it learn?

    python benchmarks/covariate_shift.py

So Ioffe and Szegedy (2015) explain it, and call the change internal covariate shift. Santurkar et
al. (2018) made the change larger on purpose, by noise behind each norm, and saw no harm. Here a
small network learns the shapes with batch norm; with batch norm and, behind each, a shift and a
scale of every channel that are drawn anew in every step, small or large ones; with layer norm of
the channels; and without any norm.

The shift is that of the second and third convolution's inputs: how far the mean of a channel moves
in a step, relative to its deviation, for the same pictures, in the median channel. It is shown for
the smallest of the rates, the same for all. The other figures are of the rate that is best for each
kind, by its errors on pictures that it does not learn from; the test's are others.
"""

import itertools
import statistics
import sys
from unittest.mock import patch

import _options
import _results
import numpy as np
from _machine import machine, numpy_blas
from _tables import markdown
from threadpoolctl import threadpool_limits

from minitransformer.commands.arguments import positive, whole
from minitransformer.core.module import Module
from minitransformer.core.twins import accelerated
from minitransformer.data.images.batches import picture_batches
from minitransformer.data.images.shapes import shapes_corpus
from minitransformer.data.images.statistics import PictureStatistics
from minitransformer.evaluation.tables import spread
from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.layers.pooling import max_pooling
from minitransformer.models.convolution_norm import NORMS
from minitransformer.models.small_network import SmallNetwork, SmallNetworkConfig
from minitransformer.optim.schedule import linear_decay
from minitransformer.optim.sgd import SGD

RATES = 0.01, 0.03, 0.1, 0.3
EPOCHS = 4
SIZE = 32  # pictures of a batch
LEARNED = 4000  # pictures
SEEN = 200  # pictures that tell how far inputs have moved
EVERY = 10  # steps, so far apart that is looked at


class ShiftedBatchNorm(BatchNorm):
    """A batch norm and, in training, a scale and a shift of each channel, drawn in each step."""

    deviation = 0.05  # of the shifts, and of the logarithms of the scales

    def forward(self, x, rng=None):
        y, cache = super().forward(x, rng)
        if rng is None:
            return y, (cache, 1.0)
        channels = y.shape[-1]
        scale = np.exp(rng.normal(0, self.deviation, channels)).astype(y.dtype)  # (C,)
        shift = rng.normal(0, self.deviation, channels).astype(y.dtype)  # (C,)
        return y * scale + shift, (cache, scale)

    def backward(self, dy, cache):
        cache, scale = cache
        return super().backward(dy * scale, cache)


class FarShiftedBatchNorm(ShiftedBatchNorm):
    """The same with ten times the noise."""

    deviation = 0.5


class NoNorm(Module):
    """What is given, where a norm would stand."""

    def __init__(self, channels):
        pass

    def forward(self, x, rng=None):
        return x, None

    def backward(self, dy, cache):
        return dy


KINDS = {
    "batch norm": BatchNorm,
    "batch norm, shifted on purpose": ShiftedBatchNorm,
    "batch norm, shifted far": FarShiftedBatchNorm,
    "layer norm": NORMS["layer-norm"],
    "no norm": NoNorm,
}


def main(arguments=None):
    """Train, print a table and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    result = {"kind": "covariate_shift", **machine(["covariate_shift.py", *given])}
    result |= {"blas": numpy_blas(), "pictures": options.pictures, "rows": []}
    corpus = shapes_corpus()
    splits = corpus["train"][: options.pictures], corpus["validation"], corpus["test"]
    with threadpool_limits(1, user_api="blas"), accelerated(True):
        for kind, rate in itertools.product(KINDS, options.rates):
            seeds = [trained(kind, rate, seed, splits, options.epochs) for seed in options.seeds]
            result["rows"].append({"norm": kind, "rate": rate, "seeds": seeds})
    print(table(result))
    _results.write(result, options.json)
    return 0


def trained(kind, rate, seed, splits, epochs):
    """What comes of a training, a dict; one that explodes has no loss, and guesses."""
    learned, held_out, test = splits
    statistics_of = PictureStatistics.of(learned)
    with patch.dict(NORMS, {"batch-norm": KINDS[kind]}):
        config = SmallNetworkConfig(28, 28, 1, 10, num_features=16, dropout=0.0)
        model = SmallNetwork(config, seed=seed)
    sgd, shifts, losses, before = SGD(model.flat, momentum=0.9), [], [], None
    steps = epochs * -(-len(learned) // SIZE)
    asked = statistics_of.normalized(held_out.pictures[:SEEN])

    def prepare(pictures, rng):
        return statistics_of.normalized(pictures)

    epochs_of = (picture_batches(learned, SIZE, prepare, (seed, e)) for e in range(epochs))
    for step, batch in enumerate(itertools.chain.from_iterable(epochs_of), start=1):
        model.zero_grad()
        rng = np.random.default_rng((seed, step))
        with np.errstate(all="ignore"):
            (loss, _), cache = model.loss(batch, rng)
            model.loss_backward(1.0, cache)
        if not np.isfinite(loss):
            return {"loss": None, "shift": None, "held out": 0.1, "test": 0.1}
        losses.append(float(loss))
        if step % EVERY in (0, 1):  # before and after one step
            now = inputs_of(model, asked, rng)
            if before is not None and step % EVERY == 1:
                shifts.append(moved(before, now))
            before = now
        sgd.step(linear_decay(step, rate, max(1, steps // 10), steps))
    return {
        "loss": statistics.mean(losses[-max(1, steps // 5) :]),
        "shift": statistics.mean(shifts),
        "held out": share_right(model, held_out, statistics_of),
        "test": share_right(model, test, statistics_of),
    }


def inputs_of(model, pictures, rng):
    """Mean and deviation of each channel of what the second and third convolution are given.

    As in training, but that nothing is noted of it.
    """
    buffers = [(buffer, buffer.data.copy()) for _, buffer in model.named_buffers()]
    found, x = [], pictures
    for layer in model.convolutions[:-1]:
        x, _ = layer.forward(x, rng)
        x, _ = max_pooling(x, 2)
        found.append((x.mean(axis=(0, 1, 2)), x.std(axis=(0, 1, 2))))
    for buffer, data in buffers:
        buffer.data = data
    return found


def moved(before, now):
    """How far means have moved, in deviations, the median over channels of both layers."""
    moves = [
        np.abs(mean - old) / np.maximum(deviation, 1e-6)  # which is 0 where no ReLU is open
        for (old, deviation), (mean, _) in zip(before, now, strict=True)
    ]
    return float(np.median(np.concatenate(moves)))


def share_right(model, corpus, statistics_of):
    """The share of pictures of which the right class is said."""
    logits, _ = model.logits(statistics_of.normalized(corpus.pictures))
    return float((logits.argmax(axis=-1) == corpus.labels).mean())


def table(result):
    """What each norm does, as Markdown, mean ± deviation of the seeds."""
    header = "norm", "shift in a step", "best rate", "loss at the end", "right: test"
    lines = [header, ("---", *("---:",) * (len(header) - 1))]
    for kind in KINDS:
        rows = [row for row in result["rows"] if row["norm"] == kind]
        slowest = min(rows, key=lambda row: row["rate"])
        best = max(rows, key=lambda row: statistics.mean(s["held out"] for s in row["seeds"]))
        shift = _spread([seed["shift"] for seed in slowest["seeds"]], 4)
        loss = _spread([seed["loss"] for seed in best["seeds"]], 3)
        test = _spread([100 * seed["test"] for seed in best["seeds"]], 1) + " %"
        lines.append((kind, shift, f"{best['rate']:g}", loss, test))
    return markdown(lines)


def _spread(values, digits):
    return "exploded" if None in values else spread(values, digits)


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0], "--json")
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--seeds", type=whole, nargs="+", default=[1, 2, 3])
    parser.add_argument("--pictures", type=positive, default=LEARNED, help="to learn from")
    parser.add_argument("--epochs", type=positive, default=EPOCHS, help="times through all of them")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
