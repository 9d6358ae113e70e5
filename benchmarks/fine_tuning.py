"""What pre-training is worth: taggers that begin with it, beside taggers that begin at random.

    python benchmarks/fine_tuning.py

Pre-trains `bert-toy` on the German side of the toy corpus, once: the spread below is that of the
fine-tuning alone. Then trains the recipes `tagger` (the case of each word) and `classifier` (the
tense of each sentence) on a hundredth, a tenth and all of the labels, three seeds each, with and
without `--from`. A seed draws the order of batches, the output projection, which sentences have
labels and, without `--from`, all other parameters.

What is the same on both sides: the labelled sentences, the sizes of the model, the batches, the
number of steps at each share of the labels, and the learning rate; of 1e-3 and 3e-3 its peak is the
better one for either side, by the validation of the first seed at a hundredth of the cases. What is
not: the vocabulary, of as many pieces from the same text, in which pre-training has a mask; and
what is measured, that pre-training has read all training sentences, without labels, in epochs of
its own. The best epoch is chosen by validation, and scored on the test split, which decides
nothing.

Beside them stands what needs no model: of words, the label that each word form has most often among
the labelled ones, and for others, as for sentences, the label that is the most frequent of all.

A training that was cut off goes on where it was, and one that is over is not made again.
"""

import io
import statistics
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import _options
import _results
from _machine import machine, numpy_blas
from _trained import trained

from minitransformer.commands.arguments import new_file, whole
from minitransformer.data.text.toy import labelled_toy_corpus
from minitransformer.tasks.tagging import Tagging
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe

RECIPES = {"tagger": "case", "classifier": "tense"}
EPOCHS = {0.01: 20, 0.1: 5, 1.0: 1}  # by the share of the labels
BATCH_TOKENS = 768  # so that a hundredth is more than one batch
RATE = 3e-3
SIDES = ("scratch", "pretrained")
RESULTS = Path(__file__).parent / "results"


def main(arguments=None):
    """Train, score, and write the JSON file; returns the exit status."""
    options = _parsed(arguments)
    trained(options.runs / "bert-toy", "bert-toy")
    rows = [(recipe, share) for share in options.shares for recipe in RECIPES]
    for seed in options.seeds:  # outermost, so that what was cut off has all rows of the first
        for recipe, share in rows:
            for side in SIDES:
                _tagger(options, recipe, share, side, seed)
    command = ["fine_tuning.py", *(sys.argv[1:] if arguments is None else arguments)]
    result = {"kind": "fine_tuning", **machine(command), "blas": numpy_blas()}
    result["rows"] = [_row(options, *row) for row in sorted(rows)]
    print(table(result))
    _results.write(result, options.json)
    return 0


def _tagger(options, recipe, share, side, seed):
    """The RunFolder of a tagger that is trained."""
    fields = dict(labelled_share=share, epochs=EPOCHS[share], seed=seed, log_every=100)
    fields |= dict(batch_tokens=BATCH_TOKENS, peak_learning_rate=RATE, warmup_steps=20)
    given = [f"--{field.replace('_', '-')}={value}" for field, value in fields.items()]
    if side == "pretrained":
        given += ["--from", options.runs / "bert-toy"]
    return trained(options.runs / f"{recipe}-{share:g}-{side}-seed{seed}", recipe, *given)


def _row(options, recipe, share):
    """What both sides reach with a share of the labels, by seed, as a dict."""
    row = {"recipe": recipe, "labels": RECIPES[recipe], "share": share, "epochs": EPOCHS[share]}
    for side in SIDES:
        runs = [_tagger(options, recipe, share, side, seed) for seed in options.seeds]
        row[side] = [test_scores(run) for run in runs]
    return {**row, "without_a_model": [without_a_model(run) for run in runs]}


def test_scores(run):
    """Accuracy and macro-F1 of a run on the test split."""
    recipe = Recipe.of_run(run)
    run.bind(recipe.identity())
    model, _ = run.load_trained("cpu")
    corpus = _corpus(recipe.data.labels)
    kept = {name: run.load_kept(name) for name in run.kept}
    task = Tagging(recipe, kept, corpus["train"], corpus["test"], Progress(io.StringIO()))
    scores = task.validate(model)
    return {name: scores[name] for name in ("accuracy", "macro_f1")}


def without_a_model(run):
    """The accuracy on the test split of the most frequent label of each word, or of all."""
    recipe = Recipe.of_run(run)
    examples, _ = Tagging.read(recipe, Progress(io.StringIO()))
    counts, of_word = Counter(), {}
    for word, label in _labels(examples):
        counts[label] += 1
        of_word.setdefault(word, Counter())[label] += 1
    test = list(_labels(_corpus(recipe.data.labels)["test"]))
    right = sum(of_word.get(word, counts).most_common(1)[0][0] == label for word, label in test)
    return right / len(test)


@cache
def _corpus(kind):
    return labelled_toy_corpus(kind)  # which takes seconds


def _labels(examples):
    """(word, label) of all that have a label; a sentence counts as a word."""
    for text, labels in examples:
        labels = labels.split()
        yield from zip(text.split() if len(labels) > 1 else [text], labels, strict=False)


def table(result):
    """The rows as a Markdown table: means over the seeds, and how far they lie apart."""
    lines = [
        "| label | share | epochs | without a model | at random | pre-trained | F1 at random "
        "| F1 pre-trained |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["rows"]:
        cells = [_spread(row["without_a_model"])]
        cells += [
            _spread([scores[score] for scores in row[side]])
            for score in ("accuracy", "macro_f1")
            for side in ("scratch", "pretrained")
        ]
        lines.append(
            f"| {row['labels']} | {row['share']:.0%} | {row['epochs']} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def _spread(values):
    """The mean in per cent, and the smallest and the largest value."""
    mean, *ends = (100 * x for x in (statistics.mean(values), min(values), max(values)))
    return f"{mean:.1f} ({ends[0]:.1f} to {ends[1]:.1f})"


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0])
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/fine-tuning"), help="where to train"
    )
    parser.add_argument(
        "--shares",
        type=float,
        nargs="+",
        default=list(EPOCHS),
        choices=EPOCHS,
        help="of the labels",
    )
    parser.add_argument("--seeds", type=whole, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "--json", type=new_file, default=RESULTS / "fine_tuning.json", help="the result"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
