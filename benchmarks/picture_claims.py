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

A row is a recipe with a few fields changed, trained with each seed: the mean loss of its steps in
twenty parts of the training, and the errors of its best epoch, on at most 5,000 pictures that it
has learned from, on those held out, which chose the epoch, and on the test's. Of translators it is
the perplexity of a word, and BLEU. A training that explodes is a result, too. With --plot the
courses are drawn.

What was trained is not trained again: neither a run that is there, nor one whose scores are in the
file. Seconds are of the clock; other work on the machine counts, too.
"""

import io
import json
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import _options
import numpy as np
from _machine import cpu, machine, numpy_blas
from _tables import markdown
from _trained import require_settings, rows_of, scored_before, settings_of, trained_by

from minitransformer.core.libraries import library
from minitransformer.core.twins import accelerated
from minitransformer.evaluation.tables import spread
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.classification import Classification
from minitransformer.tasks.splits import load_split
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import validated

RESULTS = Path(__file__).parent / "results"
PARTS = 20  # of a training, whose losses are averaged
LEARNED = 5000  # pictures of the training data that are asked for, too
GAVE_UP = 1  # what a training ends with that explodes, or cannot be
MEASURES = {"wrong": (100, 2), "perplexity": (1, 2), "BLEU": (1, 1)}  # a factor, digits to show
TESTS = {"multi30k": "test_2016_flickr", "toy": "test"}  # pairs, by corpus
SHARES = 0.01, 0.03, 0.1, 0.3, 1.0


@dataclass(frozen=True)
class Claim:
    """Trainings that are compared.

    Attributes:
        recipe: of the package, where a row names no other.
        common: fields that are changed in all rows.
        rows: by name the fields that are changed in one, or (recipe, fields).
        looks: what else there is to say of a trained model and a batch, as a dict; or None.
    """

    recipe: str
    common: dict
    rows: dict
    looks: Callable | None = None

    def recipe_of(self, row):
        """The Recipe of a row."""
        changes = self.rows[row]
        name, changes = changes if isinstance(changes, tuple) else (self.recipe, changes)
        return Recipe.load(name).with_values({"shards": 1, **self.common, **changes})


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
    common = dict(width_factor=0.5, train_share=0.3, epochs=6, warmup_steps=100, schedule="step")
    return Claim("plain-20", common, rows, looks=blocks)


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
    return Claim("alexnet-small", dict(train_share=0.3, epochs=8, warmup_steps=100), rows)


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
    return Claim("cnn", common | dict(held_out=0.02), rows)


def of_pairs(steps=800, an_epoch=210):
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
    return Claim("multi30k-quick", common, rows)


def of_norms():
    rows = {
        f"{name}, batches of {size}": dict(
            normalisation=name, batch_tokens=size, peak_learning_rate=0.1 * size / 128
        )
        for size in (2, 8, 32, 128, 512)
        for name in ("batch-norm", "layer-norm")
    }
    return Claim("cnn", dict(num_features=16, train_share=0.1, epochs=8, warmup_steps=20), rows)


def of_optimizers():
    """Each with rates of its own, from too small ones to too large ones; AdamW alone decays."""
    sgd = dict(optimizer="sgd", nesterov=False, weight_decay=0.0)
    sweeps = {
        "SGD": (dict(sgd, momentum=0.0), (0.03, 0.1, 0.3, 1.0)),
        "momentum": (dict(sgd, momentum=0.9), (0.01, 0.03, 0.1, 0.3)),
        "Adam": (dict(optimizer="adam"), (3e-4, 1e-3, 3e-3, 1e-2)),
        "AdamW": (dict(optimizer="adamw", weight_decay=0.05), (3e-4, 1e-3, 3e-3, 1e-2)),
    }
    rows = {}
    for recipe in ("cnn", "vit"):
        for name, (chosen, rates) in sweeps.items():
            for rate in rates:
                fields = dict(chosen, peak_learning_rate=rate)
                rows[f"{recipe}, {name}, {rate:g}"] = recipe, fields
    common = dict(train_share=0.1, epochs=6, batch_tokens=64, warmup_steps=50)
    return Claim("cnn", common, rows)


def of_starts():
    rows = {
        f"{start}, biases {'1' if lifted else '0'}": dict(start=start, lifted=lifted)
        for start in ("fixed-0.01", "fixed-0.02", "he", "glorot")
        for lifted in (True, False)
    }
    return Claim("alexnet-small", dict(train_share=0.3, epochs=6, warmup_steps=100), rows)


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
    return Claim("cnn", dict(num_features=16, train_share=0.3, epochs=16, warmup_steps=100), rows)


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
    claim = CLAIMS[options.claim]()
    recipes = {row: claim.recipe_of(row) for row in options.rows or claim.rows}
    settings = {row: settings_of(recipe) for row, recipe in recipes.items()}
    scored = {row: scored_before(options.json, settings[row]) for row in recipes}
    command = ["picture_claims.py", *(sys.argv[1:] if arguments is None else arguments)]
    result = {"kind": "picture_claims", "claim": options.claim, **machine(command)}
    result |= {"blas": numpy_blas()}
    rows = {row["row"]: row for row in rows_of(options.json)}  # those that nobody asks for stay
    rows |= {
        row: {"row": row, "settings": settings[row], "seeds": list(scored[row].values())}
        for row in recipes
        if scored[row]
    }
    for seed in options.seeds:  # outermost, so that what was cut off has all rows of the first
        for row, recipe in recipes.items():
            if seed not in scored[row]:
                scored[row][seed] = _scores(options, row, recipe, seed, claim.looks)
            seeds = list(scored[row].values())
            rows[row] = {"row": row, "settings": settings[row], "seeds": seeds}
            result["rows"] = [rows[row] for row in claim.rows if row in rows]
            _write(options.json, result)
    print(table(result))
    if options.plot:
        plot(result).savefig(options.plot, dpi=120, metadata={"Software": None})
    return 0


def _write(path, result):
    """The JSON file, whole or as it was."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def _scores(options, row, recipe, seed, looks):
    """What comes of a training, which is made if it is not there, as a dict."""
    name = row.replace(",", "").replace("%", "").replace(" ", "-")
    given = ["--data-dir", options.data_dir] if options.data_dir else []
    folder = options.runs / options.claim / f"{name}-{seed}"
    try:
        run = trained_by(recipe, folder, *given, "--seed", seed)
    except SystemExit as stop:
        if stop.code != GAVE_UP or not any(RunFolder(folder).checkpoints.glob("*.npz")):
            raise
        return {"seed": seed, "exploded": True}
    require_settings(run, Recipe.of_run(run), settings_of(recipe))
    return _of_translator(run) if recipe.data.corpus in TESTS else _of_classifier(run, looks)


def _of_training(run, score):
    """What is said of every training; ``score`` makes a number of a validation."""
    log = run.log.entries()
    losses = np.array([entry["nll"] for entry in log if entry["kind"] == "train"])
    return {
        "seed": Recipe.of_run(run).training.seed,
        "parameters": run.load_config()[0].num_parameters(),
        "steps": log[-1]["step"],
        "seconds": log[-1]["seconds"],
        "cpu": cpu(),
        "course": [float(part.mean()) for part in np.array_split(losses, PARTS) if part.size],
        "held_out": [score(entry) for entry in log if entry["kind"] == "validation"],
    }


def _of_classifier(run, looks):
    """Errors of its best epoch, and what ``looks`` sees in it."""
    recipe, scores = Recipe.of_run(run), _of_training(run, lambda entry: 1 - entry["accuracy"])
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


def _of_translator(run):
    """How well its best epoch translates the test's pairs.

    What a token is differs with the pairs that the vocabulary has learned from, so perplexity is
    that of a word, and an end counts as one.
    """
    recipe, scores = Recipe.of_run(run), _of_training(run, lambda entry: entry["bleu"])
    pairs = load_split(recipe.data, TESTS[recipe.data.corpus])
    with accelerated(True):
        tested, task, _ = validated(run, recipe, "cpu", others=pairs)
    tokens = sum(batch.num_tokens for batch in task.validation_batches)
    words = sum(len(target.split()) + 1 for _, target in pairs)
    perplexity = math.exp(tested["nll"] * tokens / words)
    return {**scores, "perplexity": {"test": perplexity}, "BLEU": {"test": tested["bleu"]}}


def _test_split(recipe):
    return Classification.splits.get(recipe.data.corpus, "validation")


def table(result):
    """The rows as a Markdown table: errors in per cent, mean ± deviation of the seeds."""
    whole = [row for row in result["rows"] if not any("exploded" in s for s in row["seeds"])]
    first = whole[0]["seeds"][0] if whole else {}
    measured = [(of, what) for of in MEASURES if of in first for what in first[of]]
    names = [f"{of}: {what}" for of, what in measured]
    header = "row", "parameters", "steps", "loss at half", "loss at the end", *names
    header = *header, "minutes", "seeds"
    lines = [header, ("---", *("---:",) * (len(header) - 1))]
    for row in result["rows"]:
        seeds = row["seeds"]
        if row not in whole:
            lines.append((row["row"], *("",) * (len(header) - 3), "exploded", len(seeds)))
            continue
        losses = [[seed["course"][i] for seed in seeds] for i in (len(seeds[0]["course"]) // 2, -1)]
        minutes = statistics.mean(seed["seconds"] for seed in seeds) / 60
        lines.append((
            *(row["row"], f"{seeds[0]['parameters']:,}", f"{seeds[0]['steps']:,}"),
            *(spread(values, 3) for values in losses),
            *(_measured(seeds, *which) for which in measured),
            *(f"{minutes:.1f}", len(seeds)),
        ))  # fmt: skip
    return markdown(lines)


def _measured(seeds, of, what):
    factor, digits = MEASURES[of]
    return spread([factor * seed[of][what] for seed in seeds], digits)


def plot(result):
    """A figure of the courses: the loss of training, and the score of what is held out."""
    figure = library("matplotlib.figure", "a plot").Figure(figsize=(11, 4.5), layout="constrained")
    losses, scores = figure.subplots(1, 2)
    for row in result["rows"]:
        seeds = [seed for seed in row["seeds"] if "exploded" not in seed]
        label = row["row"] if seeds else f"{row['row']}, exploded"
        for axes, name in ((losses, "course"), (scores, "held_out")):
            mean = np.mean([seed[name] for seed in seeds], axis=0) if seeds else np.zeros(0)
            axes.plot(np.arange(1, 1 + len(mean)) / len(mean), mean, label=label)
    losses.set(xlabel="part of the training", ylabel="loss of the steps", yscale="log")
    of_pictures = any("wrong" in seed for row in result["rows"] for seed in row["seeds"])
    what = "share that is wrong" if of_pictures else "BLEU"
    scores.set(xlabel="part of the training", ylabel=f"held out: {what}")
    scores.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0])
    parser.add_argument("claim", choices=CLAIMS)
    parser.add_argument("--data-dir", help="folder with the data; without it, a download")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/picture-claims"), help="where to train"
    )
    parser.add_argument("--rows", nargs="+", help="some of the rows, by name")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--json", type=Path, metavar="FILE", help="the result")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the courses, as .png")
    options = parser.parse_args(arguments)
    options.json = options.json or RESULTS / f"picture-claims-{options.claim}.json"
    return options


if __name__ == "__main__":
    sys.exit(main())
