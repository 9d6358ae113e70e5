"""Trainings that are compared: a row is a recipe with a few fields changed, trained with each seed.

What is kept of each: the mean loss of its steps in twenty parts of the training, the scores of what
is held out after each epoch, and what the claim's ``scores`` say of its best epoch. A training that
explodes is a result, too. What was trained is not trained again: neither a run that is there, nor
one whose scores are in the file.
"""

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import _results
import numpy as np
from _machine import cpu
from _tables import markdown
from _trained import require_settings, scored_before, settings_of, trained_by

from minitransformer.commands.arguments import picture_file, whole
from minitransformer.core.libraries import library
from minitransformer.evaluation.tables import spread
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.recipe import Recipe

PARTS = 20  # of a training, whose losses are averaged
GAVE_UP = 1  # what a training ends with that explodes, or cannot be
MEASURES = {"wrong": (100, 2), "perplexity": (1, 2), "BLEU": (1, 1)}  # a factor, digits to show
LABELS = {"wrong": "% wrong", "BLEU": "BLEU"}


@dataclass(frozen=True)
class Claim:
    """Trainings that are compared.

    Attributes:
        recipe: of the package, where a row names no other.
        common: fields that are changed in all rows.
        rows: by name the fields that are changed in one, or (recipe, fields).
        scores: what is said of a RunFolder whose training is over, beside what is said of each: a
            dict with ``held_out``, a list, and of MEASURES those that are shown, dicts of numbers.
        plot: draws the result; None for :func:`courses`.
        aim: of what is held out, the share that is wrong, or BLEU; the table says after how many
            steps it was reached, to an epoch, and after how many minutes.
    """

    recipe: str
    common: dict
    rows: dict
    scores: Callable
    plot: Callable | None = None
    aim: float | None = None

    def recipe_of(self, row):
        """The Recipe of a row."""
        changes = self.rows[row]
        name, changes = changes if isinstance(changes, tuple) else (self.recipe, changes)
        return Recipe.load(name).with_values({"shards": 1, **self.common, **changes})


def add_claim(parser, runs):
    """The options of :func:`measured`; ``runs`` is the folder where it trains."""
    parser.add_argument("--data-dir", help="folder with the data; without it, a download")
    parser.add_argument("--runs", type=Path, default=Path("runs") / runs, help="where to train")
    parser.add_argument("--rows", nargs="+", help="some of the rows, by name")
    parser.add_argument("--seeds", type=whole, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "--plot", type=picture_file, metavar="FILE", help="draw the result, as .png"
    )


def measured(claim, options, folder, about):
    """Train and score what is asked for; returns the result, written and, if asked for, drawn.

    Args:
        claim: a Claim.
        options: of :func:`add_claim`, and ``json``, the file of the result.
        folder: for its runs.
        about: what stands in the result before its rows.
    """
    if unknown := set(options.rows or ()) - claim.rows.keys():
        raise SystemExit(
            f"there is no row {', '.join(unknown)}; the rows are {', '.join(claim.rows)}"
        )
    recipes = {row: claim.recipe_of(row) for row in options.rows or claim.rows}
    settings = {row: settings_of(recipe) for row, recipe in recipes.items()}
    scored = {row: scored_before(options.json, settings[row]) for row in recipes}
    result = {**about, "aim": claim.aim, "rows": []}
    # Those that nobody asks for stay.
    rows = {row["row"]: row for row in _results.rows_of(options.json)}
    rows |= {
        row: {"row": row, "settings": settings[row], "seeds": list(scored[row].values())}
        for row in recipes
        if scored[row]
    }
    for seed in options.seeds:  # outermost, so that what was cut off has all rows of the first
        for row, recipe in recipes.items():
            if seed not in scored[row]:
                scored[row][seed] = _scores(claim, options, folder, row, recipe, seed)
            seeds = list(scored[row].values())
            rows[row] = {"row": row, "settings": settings[row], "seeds": seeds}
            result["rows"] = [rows[row] for row in claim.rows if row in rows]
            _results.write(result, options.json)
    if options.plot:
        figure = (claim.plot or courses)(result)
        figure.savefig(options.plot, dpi=120, metadata={"Software": None})
    return result


def _scores(claim, options, folder, row, recipe, seed):
    """What comes of a training, which is made if it is not there, as a dict."""
    given = ["--data-dir", options.data_dir] if options.data_dir else []
    folder = folder / f"{named(row)}-{seed}"
    try:
        run = trained_by(recipe, folder, *given, "--seed", seed)
    except SystemExit as stop:
        if stop.code != GAVE_UP or not any(RunFolder(folder).checkpoints.glob("*.npz")):
            raise
        return {"seed": seed, "exploded": True}
    require_settings(run, Recipe.of_run(run), settings_of(recipe))
    return _of_training(run) | claim.scores(run)


def named(row):
    """A row as the name of a folder."""
    return re.sub(r"[^\w.-]+", "-", row).strip("-")


def _of_training(run):
    log = run.log.entries()
    losses = np.array([entry["nll"] for entry in log if entry["kind"] == "train"])
    return {
        "seed": Recipe.of_run(run).training.seed,
        "parameters": run.load_config()[0].num_parameters(),
        "steps": log[-1]["step"],
        "seconds": log[-1]["seconds"],
        "cpu": cpu(),
        "course": [float(part.mean()) for part in np.array_split(losses, PARTS) if part.size],
    }


def validations(run):
    """The entries of its log that are validations."""
    return [entry for entry in run.log.entries() if entry["kind"] == "validation"]


def table(result):
    """The rows as a Markdown table: errors in per cent, mean ± deviation of the seeds.

    Of those that exploded it says how many they are.
    """
    first = next(chain.from_iterable(map(_whole, result["rows"])), {})
    columns = [(of, what) for of in MEASURES if of in first for what in first[of]]
    names = [f"{of}: {what}" for of, what in columns]
    header = "row", "parameters", "steps", "loss at half", "loss at the end", *names
    aim = result.get("aim")
    if aim:
        what = f"{aim} BLEU" if "BLEU" in first else f"{aim:.0%} wrong"
        header = *header, f"steps to {what}", f"minutes to {what}"
    header = *header, "minutes", "seeds"
    lines = [header, ("---", *("---:",) * (len(header) - 1))]
    for row in result["rows"]:
        seeds = _whole(row)
        lost = len(row["seeds"]) - len(seeds)
        if not seeds:
            lines.append((row["row"], *("",) * (len(header) - 3), "exploded", lost))
            continue
        losses = [[seed["course"][i] for seed in seeds] for i in (len(seeds[0]["course"]) // 2, -1)]
        minutes = statistics.mean(seed["seconds"] for seed in seeds) / 60
        lines.append((
            *(row["row"], f"{seeds[0]['parameters']:,}", f"{seeds[0]['steps']:,}"),
            *(spread(values, 3) for values in losses),
            *(_measured(seeds, *which) for which in columns),
            *(_until(seeds, aim) if aim else ()),
            *(f"{minutes:.1f}", f"{len(seeds)}, {lost} exploded" if lost else len(seeds)),
        ))  # fmt: skip
    return markdown(lines)


def _measured(seeds, of, what):
    factor, digits = MEASURES[of]
    return spread([factor * seed[of][what] for seed in seeds], digits)


def _until(seeds, aim):
    """Mean steps and minutes until a seed reaches the aim, to an epoch; – where one never does."""
    parts = []
    for seed in seeds:
        held_out = np.array(seed["held_out"])
        reached = held_out >= aim if "BLEU" in seed else held_out < aim + 1e-9  # as 1 - 0.85 is
        if not reached.any():
            return "–", "–"
        parts.append((1 + reached.argmax()) / len(held_out))
    steps = (part * seed["steps"] for part, seed in zip(parts, seeds, strict=True))
    minutes = (part * seed["seconds"] / 60 for part, seed in zip(parts, seeds, strict=True))
    return f"{statistics.mean(steps):,.0f}", f"{statistics.mean(minutes):.1f}"


def courses(result):
    """A figure of the loss of training, and of the score of what is held out, ± their deviation."""
    figure = _figure(11)
    losses, scores = figure.subplots(1, 2)
    for i, row in enumerate(result["rows"]):
        seeds = _whole(row)
        dashes = ("-", "--", ":", "-.")[i // 10 % 4]  # there are ten colours
        label = row["row"] if seeds else f"{row['row']}, exploded"
        for axes, name in ((losses, "course"), (scores, "held_out")):
            values = np.array([seed[name] for seed in seeds]) if seeds else np.zeros((1, 0))
            mean, part = values.mean(axis=0), np.linspace(0, 1, 1 + values.shape[1])[1:]
            (line,) = axes.plot(part, mean, dashes, label=label)
            if len(values) > 1:
                band = mean + np.outer((-1, 1), values.std(axis=0, ddof=1))
                axes.fill_between(part, *band, color=line.get_color(), alpha=0.2)
    losses.set(xlabel="part of the training", ylabel="loss of the steps", yscale="log")
    of_pictures = any("wrong" in seed for row in result["rows"] for seed in row["seeds"])
    what = "share that is wrong" if of_pictures else "BLEU"
    scores.set(xlabel="part of the training", ylabel=f"held out: {what}")
    scores.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def by_share(result):
    """A figure of the scores on the test set over the share of the data, ± their deviation.

    Args:
        result: its rows are called ``"model, 30%"``.
    """
    figure = _figure(6)
    axes = figure.subplots()
    of, models = "wrong", {}
    for row in result["rows"]:
        if seeds := _whole(row):
            of = "BLEU" if "BLEU" in seeds[0] else "wrong"
            model, share = row["row"].rsplit(", ", 1)
            scores = [MEASURES[of][0] * seed[of]["test"] for seed in seeds]
            deviation = statistics.stdev(scores) if len(scores) > 1 else 0
            point = float(share.rstrip("%")), statistics.mean(scores), deviation
            models.setdefault(model, []).append(point)
    for model, points in models.items():
        axes.errorbar(*zip(*points, strict=True), label=model, marker="o", capsize=3)
    ticks = sorted({share for points in models.values() for share, *_ in points})
    axes.set(xscale="log", xlabel="% of the training data", ylabel=f"test: {LABELS[of]}")
    axes.set_xticks(ticks, map("{:g}".format, ticks))
    axes.legend()
    return figure


def _whole(row):
    """The seeds of a row that did not explode."""
    return [seed for seed in row["seeds"] if "exploded" not in seed]


def _figure(width):
    kind = library("matplotlib.figure", "a plot").Figure
    return kind(figsize=(width, 4.5), layout="constrained")
