"""Train a translator, score it on the test set once, and keep the result as one JSON file.

    python benchmarks/multi30k.py --json FILE multi30k-cpu [--data-dir DIR] [--seed N] [...]

What comes after the options of this script is for ``minitransformer train``. A run that was cut off
goes on where it was, and one that is done is only scored; a file beside the folder of a run has the
command that began it, and no other is taken. What is chosen, in the training and after it, is
chosen by the validation set; the test set is looked at once.
"""

import argparse
import math
import shlex
from pathlib import Path

import _machine
import _options
import _results

from minitransformer.commands.arguments import new_file
from minitransformer.commands.cli import main as minitransformer
from minitransformer.evaluation.scores import score, table
from minitransformer.inference.translator import Translator
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.splits import load_split
from minitransformer.tasks.text import PATHS
from minitransformer.training.recipe import Recipe

SEARCHES = {"greedy": {"beam_size": 1}, "beam 5, alpha 1": {"beam_size": 5, "alpha": 1.0}}
LENGTHS = (8, 11, 14)  # words; quarters, roughly, of the German test sentences end with them


def main(arguments=None):
    """Train, score and write; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        usage="%(prog)s --json FILE [options] RECIPE [options of minitransformer train]",
    )
    parser.add_argument("--json", type=new_file, required=True, metavar="FILE", help="the result")
    parser.add_argument(
        "--run-folder", default="runs/multi30k", help="where to train (default: %(default)s)"
    )
    parser.add_argument(
        "--split",
        action="append",
        help="to score; may be given again (default: validation and test_2016_flickr)",
    )
    options, train = parser.parse_known_args(arguments)
    if options.json.exists():
        parser.error(f"{options.json} is there already, and a run is scored once")

    run = RunFolder(options.run_folder)
    begun = run.config.exists()
    # Beside the run: a new one begins in no folder that has something in it.
    command, of_run = shlex.join(train), Path(f"{run.path}.command.txt")
    if begun and not (of_run.exists() and of_run.read_text(encoding="utf-8") == command):
        parser.error(f"{run.path} holds a run of another command; choose another --run-folder")
    of_run.parent.mkdir(parents=True, exist_ok=True)
    of_run.write_text(command, encoding="utf-8")
    how = ["--resume", options.run_folder] if begun else [*train, "--run-folder", run.path]
    status = minitransformer(["train", *map(str, how)])
    if status:
        return status
    splits = options.split or ["validation", "test_2016_flickr"]
    result = scored(run, splits, ["train", *train])
    _results.write(result, options.json)
    return 0


def scored(run, splits, command):
    """Scores of the finished run in a RunFolder, and how it was made, as a dict."""
    _, recipe = run.load_config()
    validations = [entry for entry in run.log.entries() if entry["kind"] == "validation"]
    translator = Translator.load(run.path)
    scores, by_length = {}, {}
    for split in splits:
        pairs = load_split(Recipe.from_dict(recipe).data, split)
        sources, references = [source for source, _ in pairs], [target for _, target in pairs]
        found = {name: translator.translate(sources, **how) for name, how in SEARCHES.items()}
        scores[split] = {name: score(texts, references) for name, texts in found.items()}
        by_length[split] = {name: by_source_length(pairs, texts) for name, texts in found.items()}
        print(f"{split}\n{table(scores[split])}\n")
    for name in PATHS:
        recipe["data"].pop(name, None)  # folders of this machine, as far as its release had them
    return {
        "command": "minitransformer " + shlex.join(_machine.without_folders(command)),
        "commit": _machine.commit(),
        "seed": recipe["training"]["seed"],
        "hardware": {
            "cpu": _machine.cpu(),
            "cores": _machine.cores(),
            "blas": _machine.numpy_blas(),
            "device": str(translator.model.device),
        },
        "versions": _machine.versions(),
        "environment": _machine.environment(),
        "wall_seconds": validations[-1]["seconds"],
        "epochs": validations[-1]["epoch"],
        "steps": validations[-1]["step"],
        "chosen": translator.origin,
        "recipe": recipe,
        "splits": {
            split: {name: values.as_dict() for name, values in searches.items()}
            for split, searches in scores.items()
        },
        "by_source_length": by_length,
    }


def by_source_length(pairs, hypotheses):
    """BLEU of short and of long sentences, as a list of dicts, one for each range of LENGTHS.

    Args:
        pairs: of a source and its reference.
        hypotheses: translations of the sources.
    """
    rows = []
    for low, high in zip((0, *LENGTHS), (*LENGTHS, math.inf), strict=True):
        of_these = [
            (hypothesis, reference)
            for (source, reference), hypothesis in zip(pairs, hypotheses, strict=True)
            if low < len(source.split()) <= high
        ]
        if of_these:
            words = f"{low + 1} or more" if high == math.inf else f"{low + 1} to {high}"
            bleu = score(*zip(*of_these, strict=True)).bleu_cased_13a
            rows.append({"words": words, "sentences": len(of_these), "bleu_cased_13a": bleu})
    return rows


if __name__ == "__main__":
    _options.end(main)
