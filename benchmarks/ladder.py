"""The same translation by five architectures: what attention replaced, and what replaced it.

    python benchmarks/ladder.py --data-dir DIR

Trains their recipes one after the other: the same text, subwords, batches and number of updates,
and parameters within 10 %. A training that was cut off goes on where it was. Each is scored on the
test set once, and what multi30k.py writes of it goes to a JSON file of its own. Then the runs take
turns at training steps, on the same batches, and at translating the test set; that, beside the
scores, goes to ladder.json.
"""

import io
import json
import statistics
import sys
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import _options
import _results
import multi30k
from _machine import machine, note_on_kernels, numpy_blas
from _turns import seconds_of

from minitransformer.commands.arguments import positive, whole
from minitransformer.core.backend import CPU
from minitransformer.core.memory import keep_freed_memory
from minitransformer.inference.translator import Translator
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.splits import load_split
from minitransformer.training.job import Job
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import prepare

RECIPES = {
    "gru": "GRU, a fixed vector",
    "gru-attention": "GRU, additive attention",
    "convolution": "convolutions, attention",
    "restricted": "Transformer, windows",
    "multi30k-quick": "Transformer",
}
SPLIT = "test_2016_flickr"
STEPS = 5  # that a run takes in its turn


def main(arguments=None):
    """Train, score, time, and write the JSON files; returns the exit status."""
    options = _parsed(arguments)
    arguments = sys.argv[1:] if arguments is None else arguments
    options.results.mkdir(parents=True, exist_ok=True)
    for recipe in RECIPES:
        if not _result(options, recipe).exists():
            status = multi30k.main(
                [
                    *("--json", str(_result(options, recipe))),
                    *("--run-folder", str(_run(options, recipe))),
                    *("--split", "validation", "--split", SPLIT),
                    recipe,
                    *(["--data-dir", options.data_dir] if options.data_dir else []),
                    *("--seed", str(options.seed)),
                ]
            )
            if status:
                return status
    result = {"kind": "ladder", **machine(["ladder.py", *arguments]), "blas": numpy_blas()}
    result["rows"] = compare(options)
    print(table(result))
    _results.write(result, options.results / "ladder.json")
    return 0


def compare(options):
    """Scores of the runs, and their times in turn, as a list of dicts."""
    keep_freed_memory()  # as Trainer.train does
    with TemporaryDirectory() as folder:
        trainers = [_trainer(name, Path(folder), options) for name in RECIPES]
        jobs = [_steps(trainer) for trainer in trainers]
        in_turn(jobs, 1)  # to warm up
        step_seconds = in_turn(jobs, options.rounds)
        parameters = [trainer.model.num_parameters() for trainer in trainers]
    runs = [_run(options, recipe) for recipe in RECIPES]
    translators = [Translator.load(run, CPU) for run in runs]
    sources = [source for source, _ in load_split(Recipe.of_run(RunFolder(runs[0])).data, SPLIT)]
    decode_seconds = {}
    for search, how in multi30k.SEARCHES.items():
        jobs = [partial(translator.translate, sources, **how) for translator in translators]
        decode_seconds[search] = in_turn(jobs, options.decodings)
    rows = []
    for i, (recipe, name) in enumerate(RECIPES.items()):
        run = json.loads(_result(options, recipe).read_text(encoding="utf-8"))
        scores = run["splits"][SPLIT]
        rows.append(
            {
                "recipe": Path(recipe).stem,
                "name": name,
                "parameters": parameters[i],
                "epochs": run["epochs"],
                "bleu": {search: scores[search]["bleu_cased_13a"] for search in scores},
                "by_source_length": run["by_source_length"][SPLIT],
                "step_seconds": step_seconds[i] / STEPS,
                "decode_seconds": {search: times[i] for search, times in decode_seconds.items()},
            }
        )
    return rows


def in_turn(jobs, rounds):
    """The median seconds of each job, of so many rounds in which each has its turn."""
    times = [[seconds_of(job) for job in jobs] for _ in range(rounds)]
    return [statistics.median(of_job) for of_job in zip(*times, strict=True)]


def table(result):
    """A result as text."""
    rows = result["rows"]
    lines = [
        f"{result['cpu']}, {result['cores']} cores; {result['blas']}",
        f"{SPLIT}: BLEU, and seconds for a step of training and for translating all of it",
        "",
        f"{'':24} parameters  {'BLEU':^16}  {'seconds':^22}",
        f"{'':24} {'':10}  greedy  beam 5    step  greedy   beam 5",
    ]
    for row in rows:
        bleu, seconds = row["bleu"].values(), row["decode_seconds"].values()
        lines.append(
            f"{row['name']:24} {row['parameters']:10,}  "
            + "  ".join(f"{value:6.1f}" for value in bleu)
            + f"  {row['step_seconds']:6.2f}  "
            + "  ".join(f"{value:6.1f}" for value in seconds)
        )
    ranges = next(iter(rows[0]["by_source_length"].values()))
    lines += [
        "",
        "BLEU of the beam, by words of the source",
        f"{'':24} " + "".join(f"{part['words']:>12}" for part in ranges),
        f"{'sentences':24} " + "".join(f"{part['sentences']:12}" for part in ranges),
    ]
    for row in rows:
        *_, of_beam = row["by_source_length"].values()
        values = "".join(f"{part['bleu_cased_13a']:12.1f}" for part in of_beam)
        lines.append(f"{row['name']:24} {values}")
    return "\n".join([*lines, *note_on_kernels(result["environment"])])


def _trainer(name, folder, options):
    """A Trainer at the beginning of a training, in a folder of its own within ``folder``."""
    recipe = Recipe.load(name).with_value("data_dir", options.data_dir or "")
    recipe = recipe.with_value("seed", options.seed)
    return prepare(Job(recipe, folder / Path(name).stem, CPU, Progress(io.StringIO())))


def _steps(trainer):
    """A job: the next STEPS steps of the training."""
    steps = trainer.steps()

    def take_some():
        with trainer.workers.one_blas_thread():
            for _ in islice(steps, STEPS):
                pass

    return take_some


def _run(options, recipe):
    return options.runs / Path(recipe).stem


def _result(options, recipe):
    return options.results / f"{Path(recipe).stem}-seed{options.seed}.json"


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data-dir", help="folder with Multi30k; without it, a download")
    add("--seed", type=whole, default=1, help="of each training")
    add("--runs", type=Path, default=Path("runs/ladder"), help="where to train")
    add("--results", type=Path, help="where the JSON files go (default: where it trains)")
    add("--rounds", type=positive, default=8, help=f"in which each takes {STEPS} steps")
    add("--decodings", type=positive, default=3, help="translations of the test set by each search")
    options = parser.parse_args(arguments)
    options.results = options.results or options.runs
    return options


if __name__ == "__main__":
    _options.end(main)
