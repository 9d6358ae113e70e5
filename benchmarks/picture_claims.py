"""What papers on pictures claim, measured on Fashion-MNIST at a size that two cores can train.

    python benchmarks/picture_claims.py depth --data-dir DIR

depth        plain and residual networks of 20 to 56 layers, half as wide, and the shortcuts
alexnet      AlexNet with one thing away at a time
data         convolutions and attention with a hundredth to all of the pictures, in as many steps
pairs        a Transformer and a GRU with attention, with 3 to 100 % of Multi30k's pairs, likewise
norms        batch norm and layer norm in the small network, by the size of a batch
optimizers   SGD, momentum, Adam and AdamW, each with its own sweep of rates
starts       AlexNet from the paper's deviation and from others, with its biases and without
schedules    when the rate falls to a tenth: never, too early, after half, slowly

Rows and seeds are as ``_claims.py`` says. Scored is the best epoch: its errors, on at most 5,000
pictures that it has learned from, on those held out, which chose the epoch, and on the test's. Of
translators it is the perplexity of a word, and BLEU. Seconds are of the clock; other work on the
machine counts, too.
"""

import io
import math
import sys
from functools import partial
from pathlib import Path

import _options
import numpy as np
from _claims import Claim, add_claim, by_share, measured, table, validations
from _machine import machine, numpy_blas

from minitransformer.commands.arguments import new_file
from minitransformer.core.twins import accelerated
from minitransformer.tasks.classification import Classification
from minitransformer.tasks.splits import load_split
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import validated

RESULTS = Path(__file__).parent / "results"
LEARNED = 5000  # pictures of the training data that are asked for, too
TESTS = {"multi30k": "test_2016_flickr", "toy": "test"}  # pairs, by corpus
SHARES = 0.01, 0.03, 0.1, 0.3, 1.0


def blocks(model, batch):
    """Of each block of a residual network how large F(x) is, and its gradient, in training."""
    rng = np.random.default_rng(0)
    model.zero_grad()
    _, cache = model.loss(batch, rng)
    model.loss_backward(1.0, cache)
    x, _ = model.first.forward(batch.pictures, rng)
    responses, gradients = [], []
    for block in (block for stage in model.stages for block in stage):
        z = x
        for convolution in block.steps:
            z, _ = convolution.forward(z, rng)
        responses.append(float(z.std()))
        weights = [convolution.convolution.weight for convolution in block.steps]
        gradients.append(float(np.sqrt(sum((w.grad**2).sum() for w in weights))))
        x, _ = block.forward(x, rng)
    return {"responses": responses, "gradients": gradients}


def of_classifier(run, looks=None):
    """Errors of its best epoch, and what ``looks`` sees in it, given the model and a batch."""
    recipe = Recipe.of_run(run)
    scores = {"held_out": [1 - entry["accuracy"] for entry in validations(run)]}
    with accelerated(True):
        tested, task, _ = validated(run, recipe, "cpu", split=_test_split(recipe))
        examples, _ = Classification.read(recipe, Progress(io.StringIO()))
        kept = {name: run.load_kept(name) for name in run.kept}
        asked = Classification(recipe, kept, examples, examples[:LEARNED], Progress(io.StringIO()))
        model, _ = run.load_trained("cpu")
        asked.workers = task.workers
        scores["wrong"] = {
            "learned": 1 - asked.validate(model)["accuracy"],
            "held out": min(scores["held_out"]),
            "test": 1 - tested["accuracy"],
        }
        if looks:
            scores |= looks(model, next(iter(task.batches(0))))
    return scores


def of_translator(run):
    """How well its best epoch translates the test's pairs.

    What a token is differs with the pairs that the vocabulary has learned from, so perplexity is
    that of a word, and an end counts as one.
    """
    recipe = Recipe.of_run(run)
    pairs = load_split(recipe.data, TESTS[recipe.data.corpus])
    with accelerated(True):
        tested, task, _ = validated(run, recipe, "cpu", others=pairs)
    tokens = sum(batch.num_tokens for batch in task.validation_batches)
    words = sum(len(target.split()) + 1 for _, target in pairs)
    perplexity = math.exp(tested["nll"] * tokens / words)
    return {
        "held_out": [entry["bleu"] for entry in validations(run)],
        "perplexity": {"test": perplexity},
        "BLEU": {"test": tested["bleu"]},
    }


def _test_split(recipe):
    return Classification.splits.get(recipe.data.corpus, "validation")


def of_depth():
    depths = 20, 32, 44, 56
    kinds = (("plain", "none"), ("residual", "A"))
    rows = {
        f"{name}, {depth} layers": dict(depth=depth, shortcut=shortcut)
        for depth in depths
        for name, shortcut in kinds
    }
    rows |= {f"shortcuts {s}, 56 layers": dict(depth=56, shortcut=s) for s in ("B", "C")}
    rows |= {
        f"plain, 56 layers, rate {rate}": dict(depth=56, shortcut="none", peak_learning_rate=rate)
        for rate in (0.02, 0.06)
    }
    common = dict(width_factor=0.5, train_share=0.2, epochs=6, warmup_steps=100, schedule="step")
    return Claim("plain-20", common, rows, partial(of_classifier, looks=blocks))


def of_alexnet():
    """So short a training has no time to overfit: what hinders that can show its price alone."""
    rows = {
        "as it is": {},
        "tanh for ReLU": dict(activation="tanh", start="glorot"),
        "pooling that does not overlap": dict(overlapping=False),
        "no response norm": dict(response_norm=False),
        "no dropout": dict(dropout=0.0),
        "no crops and mirrors": dict(crop_padding=0, mirror=False),
        "no momentum, ten times the rate": dict(momentum=0.0, peak_learning_rate=0.3),
        "no weight decay": dict(weight_decay=0.0),
        "one tower": dict(towers=1),
        "without the third convolution": dict(left_out="third"),
        "without the fourth convolution": dict(left_out="fourth"),
        "without a hidden linear map": dict(left_out="hidden"),
    }
    common = dict(train_share=0.3, epochs=8, warmup_steps=100)
    return Claim("alexnet-small", common, rows, of_classifier, aim=0.2)


def of_data(steps=1840, pictures=58_800, batch=64):
    """Each with nearly as many steps, so that what differs is how often each picture comes.

    A hundredth comes 184 times. So few are held out, as they are asked for as often. The rates are
    those of the recipes, for their batches.
    """
    rates = {"cnn": 0.05, "resnet-20": 0.1, "vit": 1.5e-3}
    rows = {}
    for recipe, rate in rates.items():
        for share in SHARES:
            an_epoch = -(-round(share * pictures) // batch)
            epochs = dict(train_share=share, epochs=max(1, round(steps / an_epoch)))
            rows[f"{recipe}, {share:.0%}"] = recipe, dict(peak_learning_rate=rate, **epochs)
    common = dict(batch_tokens=batch, crop_padding=1, label_smoothing=0.1, warmup_steps=150)
    return Claim("cnn", common | dict(held_out=0.02), rows, of_classifier, by_share, aim=0.15)


def of_pairs(steps=600, an_epoch=210):
    """Translators of about as many parameters, each with as many steps of 2048 tokens."""
    transformer = dict(d_model=128, d_ff=512, num_encoder_layers=2, num_decoder_layers=2)
    recipes = {
        "Transformer": ("multi30k-quick", transformer),
        "GRU": ("gru-attention", dict(d_model=128, d_hidden=216)),
    }
    rows = {}
    for name, (recipe, sizes) in recipes.items():
        for share in SHARES[1:]:
            epochs = max(1, round(steps / (share * an_epoch)))
            rows[f"{name}, {share:.0%}"] = recipe, dict(train_share=share, epochs=epochs, **sizes)
    common = dict(vocabulary_size=4000, batch_tokens=2048, warmup_steps=100, average=1)
    return Claim("multi30k-quick", common, rows, of_translator, by_share, aim=15)


def of_norms():
    rows = {
        f"{name}, batches of {size}": dict(
            normalisation=name, batch_tokens=size, peak_learning_rate=0.1 * size / 128
        )
        for size in (2, 8, 32, 128, 512)
        for name in ("batch-norm", "layer-norm")
    }
    common = dict(num_features=16, train_share=0.1, epochs=8, warmup_steps=20)
    return Claim("cnn", common, rows, of_classifier)


def of_optimizers():
    """Each with rates of its own, from too small ones to too large ones; AdamW alone decays."""
    sgd = dict(optimizer="sgd", nesterov=False, weight_decay=0.0)
    sweeps = {
        "SGD": (dict(sgd, momentum=0.0), (0.03, 0.1, 0.3, 1.0, 3.0)),
        "momentum": (dict(sgd, momentum=0.9), (0.01, 0.03, 0.1, 0.3)),
        "Adam": (dict(optimizer="adam"), (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)),
        "AdamW": (dict(optimizer="adamw", weight_decay=0.05), (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)),
    }
    rows = {}
    for recipe in ("cnn", "vit"):
        for name, (chosen, rates) in sweeps.items():
            for rate in rates:
                fields = dict(chosen, peak_learning_rate=rate)
                rows[f"{recipe}, {name}, {rate:g}"] = recipe, fields
    common = dict(train_share=0.1, epochs=4, batch_tokens=64, warmup_steps=40)
    return Claim("cnn", common, rows, of_classifier)


def of_starts():
    rows = {
        f"{start}, biases {'1' if lifted else '0'}": dict(start=start, lifted=lifted)
        for start in ("fixed-0.01", "fixed-0.02", "he", "glorot")
        for lifted in (True, False)
    }
    common = dict(train_share=0.3, epochs=4, warmup_steps=100)
    return Claim("alexnet-small", common, rows, of_classifier)


def of_schedules():
    plateaus = {
        "after one epoch that is not better": dict(plateau_epochs=1),
        "after three": dict(plateau_epochs=3),
        "never": dict(plateau_epochs=100),
    }
    rows = {f"a tenth {when}": dict(schedule="plateau", **how) for when, how in plateaus.items()}
    rows |= {
        "a tenth after half, a hundredth after three quarters": dict(schedule="step"),
        "linearly to 0": dict(schedule="linear"),
        "half a cosine to 0": dict(schedule="cosine"),
    }
    common = dict(num_features=16, train_share=0.3, epochs=10, warmup_steps=100)
    return Claim("cnn", common, rows, of_classifier)


CLAIMS = {
    "depth": of_depth,
    "alexnet": of_alexnet,
    "data": of_data,
    "pairs": of_pairs,
    "norms": of_norms,
    "optimizers": of_optimizers,
    "starts": of_starts,
    "schedules": of_schedules,
}


def main(arguments=None):
    """Train, score, and write the JSON file; returns the exit status."""
    options = _parsed(arguments)
    command = ["picture_claims.py", *(sys.argv[1:] if arguments is None else arguments)]
    about = {"kind": "picture_claims", "claim": options.claim, **machine(command)}
    about["blas"] = numpy_blas()
    claim, folder = CLAIMS[options.claim](), options.runs / options.claim
    print(table(measured(claim, options, folder, about)))
    return 0


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0])
    parser.add_argument("claim", choices=CLAIMS)
    add_claim(parser, "picture-claims")
    parser.add_argument("--json", type=new_file, metavar="FILE", help="the result")
    options = parser.parse_args(arguments)
    options.json = options.json or RESULTS / f"picture-claims-{options.claim}.json"
    return options


if __name__ == "__main__":
    _options.end(main)
