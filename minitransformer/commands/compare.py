"""``minitransformer compare``: runs side by side, what differs in them and what came of it."""

import json
import statistics
from itertools import chain
from pathlib import Path

from minitransformer.commands.arguments import (
    SEARCH,
    add_device,
    add_search,
    flags,
    new_file,
    note_own,
    picture_file,
    search_in_words,
    search_of,
)
from minitransformer.commands.texts import opened
from minitransformer.core.errors import InputError, require
from minitransformer.core.regular_file import errors_named
from minitransformer.core.terminal import note
from minitransformer.evaluation import plots
from minitransformer.evaluation.scores import paired_bootstrap, sacrebleu_metrics
from minitransformer.evaluation.tables import aligned, spread
from minitransformer.inference.translator import Translator
from minitransformer.parallel.processes import all_processes
from minitransformer.tasks.splits import load_split
from minitransformer.tasks.task import run_at, task_class
from minitransformer.training.comparison import CHANCE, ValidatedRun, grouped
from minitransformer.training.recipe import Recipe


def add(parser):
    parser.description = (
        "Show runs side by side, also while they train: the fields in which their recipes differ, "
        "the best scores, and the curves. Runs that differ in nothing but chance, the seed and the "
        "shards, are one group, of which mean and standard deviation are shown."
    )
    parser.add_argument(
        "run_folders", nargs="+", metavar="RUN", help="folder of a run, as train makes it"
    )
    parser.add_argument(
        "--split",
        help="translate it by each run, as --beam-size and --alpha say, and tell by a paired "
        "bootstrap how surely it differs from the first one's",
    )
    parser.add_argument("--data-dir", metavar="FOLDER", help="where a copy of the corpus is")
    add_search(parser)
    parser.add_argument(
        "--picture",
        type=picture_file,
        metavar="FILE",
        help="draw the curves over steps and over time, as .png, .pdf or .svg",
    )
    parser.add_argument(
        "--json", type=new_file, metavar="FILE", help="write all of it there, curves among it"
    )
    add_device(parser)
    parser.set_defaults(run=run, usage_error=parser.error, shared=True)


def run(options):
    """Print the comparison, and write what is asked for; returns the exit status."""
    given = [name for name in ("data_dir", *SEARCH) if getattr(options, name) is not None]
    given += ["device"] * (options.device != "auto")
    if given and not options.split:
        options.usage_error(f"{flags(given)}: that is for translations of a --split")
    paths = {}
    for path in options.run_folders:
        paths.setdefault(Path(path).resolve(), path)  # each once
    runs = _validated(map(run_at, paths.values()))
    task = _common_task(runs)
    pairs = _common_pairs(options, runs, task) if options.split else None
    groups = grouped(runs)
    reached = task.score.worst(run.best[task.score.name] for run in runs)
    print(f"{runs[0].config.task}, the best epoch of each run\n")
    print(aligned(_score_table(groups, task, reached)), end="\n\n")
    if len(runs) > 1:
        print(_what_differs(groups), end="\n\n")
    print(_members(groups))
    content = {"command": options.command, "score": task.score.name, "reached": reached}
    content["groups"] = [_as_dict(name, group) for name, group in groups.items()]
    if options.split:
        content["split"] = _bootstrapped(options, runs, pairs)
    if all_processes().rank:
        return 0
    if options.picture:
        with errors_named(options.picture):
            curves = {name: [run.validations for run in group] for name, group in groups.items()}
            plots.compared(curves, options.picture, task=task)
        note(f"curves drawn: {options.picture}")
    if options.json:
        with errors_named(options.json):
            options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


def _validated(folders):
    """The ValidatedRuns of RunFolders; says which have no validation, and are left out."""
    runs = []
    for folder in folders:
        run = ValidatedRun.read(folder)
        if run.validations:
            runs.append(run)
        else:
            note(f"{folder.path} has no validation, and is left out")
    require(runs, "there is nothing to compare: a run has its first validation after an epoch")
    return runs


def _common_task(runs):
    first, *others = runs
    for run in others:
        if run.config.task != first.config.task:
            raise InputError(
                f"{first.folder.path} was trained for {first.config.task} and {run.folder.path} "
                f"for {run.config.task}, and their scores cannot be compared"
            )
    return task_class(first.config)


def _score_table(groups, task, reached):
    score = task.score
    heads = "runs", "parameters", "steps", score.label, "NLL", "minutes"
    cells = [["", *heads, f"minutes to {score.shown(reached)}"]]
    for name, group in groups.items():
        minutes = [run.validations[-1]["seconds"] / 60 for run in group]
        until = [run.seconds_to(reached, score) / 60 for run in group]
        cells.append([
            *(name, str(len(group)), f"{group[0].config.num_parameters():,}"),
            " / ".join(f"{n:,}" for n in dict.fromkeys(r.validations[-1]["step"] for r in group)),
            spread([run.best[score.name] for run in group], score.digits),
            spread([run.best["nll"] for run in group], 3),
            *(f"{statistics.mean(part):.1f}" for part in (minutes, until)),
        ])  # fmt: skip
    return cells


def _what_differs(groups):
    fields = {name: group[0].fields for name, group in groups.items()}
    names = dict.fromkeys(chain(*fields.values()))
    rows = [[name, *(str(of.get(name, "–")) for of in fields.values())] for name in names]
    rows = [row for row in rows if len({*row[1:]}) > 1]
    if not rows:
        return "they differ in nothing but chance: " + ", ".join(sorted(CHANCE))
    return aligned([["", *fields], *rows])


def _members(groups):
    lines = []
    for name, group in groups.items():
        for run in group:
            unfinished = ", not finished" if run.folder.is_unfinished() else ""
            lines.append(f"{name}: {run.folder.path}, seed {run.seed}{unfinished}")
    return "\n".join(lines)


def _as_dict(name, group):
    return {
        "name": name,
        "parameters": group[0].config.num_parameters(),
        "fields": group[0].fields,
        "runs": [
            {
                "run": str(run.folder.path),
                "seed": run.seed,
                "finished": not run.folder.is_unfinished(),
                "best": run.best,
                "validations": run.validations,
            }
            for run in group
        ],
    }


def _common_pairs(options, runs, task):
    """The pairs of the split, which have to be the same for all runs."""
    require(task.command == "translate", "--split is for runs that translate; leave it out")
    sacrebleu_metrics()  # before the work
    pairs = None
    for run in runs:
        recipe = Recipe.of_run(run.folder)
        if options.data_dir:
            recipe = recipe.with_value("data_dir", options.data_dir)
        of_run = load_split(recipe.data, options.split)
        pairs = pairs or of_run
        if of_run != pairs:
            raise InputError(
                f"{run.folder.path} and {runs[0].folder.path} have other sentences in "
                f"{options.split}, so that their translations cannot be compared"
            )
    return pairs


def _bootstrapped(options, runs, pairs):
    """What each run makes of the split, beside the first one; printed, and as a dict."""
    texts, origins, how = {}, {}, search_of(options)
    for run in runs:
        options.run_folder = str(run.folder.path)
        note_own(run.folder, "it translates with the package's")
        translator = opened(options, Translator, accelerate=True)
        origins[options.run_folder] = translator.origin
        texts[options.run_folder] = translator.translate([source for source, _ in pairs], **how)
    results, signature = paired_bootstrap(texts, [reference for _, reference in pairs])
    print(f"\n{options.split}, {search_in_words(**how)}; p is beside {runs[0].folder.path}\n")
    cells = [["", "BLEU", "95 %", "p"]]
    for name, r in results.items():
        p = "" if r.p is None else f"{r.p:.3f}"
        bounds = f"{r.low:.1f} to {r.high:.1f}"
        cells.append([f"{name}, {origins[name]}", f"{r.bleu:.1f}", bounds, p])
    print(aligned(cells))
    print(f"\n- BLEU: `{signature}`")
    scores = {name: vars(result) for name, result in results.items()}
    return {"name": options.split, **how, "signature": signature, "scores": scores}
