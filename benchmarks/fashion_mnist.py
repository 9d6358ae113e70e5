"""How well the models of pictures say what is on those of Fashion-MNIST.

    python benchmarks/fashion_mnist.py --data-dir DIR

Trains recipes, three seeds each. A seed draws the parameters, the order of batches, and what
becomes of each picture in them; which tenth of the training pictures is held out is the same for
all. The best epoch is chosen by what is held out, and asked once for the 10,000 pictures to test
with, which decide nothing: as they are, and as the mean of ten parts of each.

A training that was cut off goes on where it was, and one that is over is not made again; nor is one
of the same recipe whose scores are in the file, to which those of other seeds and recipes are
added. Seconds are of the clock, of whatever else the machine did.
"""

import statistics
import sys
from pathlib import Path

import _options
import _results
from _machine import cpu, machine, numpy_blas
from _trained import require_settings, scored_before, settings_of, trained

from minitransformer.commands.arguments import new_file, whole
from minitransformer.core.twins import accelerated
from minitransformer.evaluation.tables import spread
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import validated

RECIPES = "cnn", "resnet-20", "vit"
RESULTS = Path(__file__).parent / "results"


def main(arguments=None):
    """Train, score, and write the JSON file; returns the exit status."""
    options = _parsed(arguments)
    settings = {recipe: settings_of(Recipe.load(recipe)) for recipe in options.recipes}
    scored = {recipe: scored_before(options.json, settings[recipe]) for recipe in settings}
    for seed in options.seeds:  # outermost, so that what was cut off has all rows of the first
        for recipe in options.recipes:
            if seed not in scored[recipe]:
                run = _run(options, recipe, seed)
                scored[recipe][seed] = _scores(run, settings[recipe])
    command = ["fashion_mnist.py", *(sys.argv[1:] if arguments is None else arguments)]
    result = {"kind": "fashion_mnist", **machine(command), "blas": numpy_blas()}
    rows = {row["recipe"]: row for row in _results.rows_of(options.json)}  # of other recipes, too
    rows |= {Path(name).stem: _row(name, settings[name], scored[name]) for name in settings}
    result["rows"] = list(rows.values())
    print(table(result))
    _results.write(result, options.json)
    return 0


def _run(options, recipe, seed):
    """The RunFolder of a training that is over."""
    given = ["--data-dir", options.data_dir] if options.data_dir else []
    if options.shards:
        given += ["--shards", options.shards]
    name = Path(recipe).stem  # of a recipe that is a file
    return trained(options.runs / f"{name}-{seed}", recipe, *given, "--seed", seed)


def _row(recipe, settings, scored):
    """What the trainings of a recipe came to, as a dict; ``scored`` are their scores by seed."""
    first, *_ = scored.values()
    return {
        "recipe": Path(recipe).stem,
        "parameters": first["parameters"],
        **{name: settings["training"][name] for name in ("epochs", "batch_tokens")},
        "settings": settings,
        "seeds": [scored[seed] for seed in sorted(scored)],
    }


def _scores(run, settings):
    """How long a training took, which epoch was chosen, and the scores of it."""
    recipe = Recipe.of_run(run)
    require_settings(run, recipe, settings)
    scores = {
        "seed": recipe.training.seed,
        "parameters": run.load_config()[0].num_parameters(),
        "seconds": run.log.entries()[-1]["seconds"],
        "shards": recipe.training.shards,
        "cpu": cpu(),
    }
    with accelerated(True):
        for name, split, how in (
            ("validation", "validation", {}),
            ("test", "test", {}),
            ("ten_crops", "test", {"ten_crops": True}),
        ):
            scores[name], _, scores["chosen"] = validated(run, recipe, "cpu", split=split, **how)
    return scores


def table(result):
    """The rows as a Markdown table: accuracies on the test set in per cent, mean ± deviation."""
    lines = [
        "| recipe | parameters | epochs | test accuracy | ten crops | top 5 | minutes | seeds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["rows"]:
        seeds = row["seeds"]
        cells = [f"{row['parameters']:,}", row["epochs"]]
        for split, score in (("test", "accuracy"), ("ten_crops", "accuracy"), ("test", "top_5")):
            cells.append(spread([100 * of_seed[split][score] for of_seed in seeds], 2))
        cells += [f"{statistics.mean(s['seconds'] for s in seeds) / 60:.0f}", len(seeds)]
        lines.append(f"| {' | '.join(map(str, [row['recipe'], *cells]))} |")
    return "\n".join(lines)


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="folder with Fashion-MNIST; without it, a download")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/fashion-mnist"), help="where to train"
    )
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES))
    parser.add_argument("--seeds", type=whole, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "--shards", type=whole, default=0, help="of each batch; 0 is one for each core"
    )
    parser.add_argument(
        "--json", type=new_file, default=RESULTS / "fashion_mnist.json", help="the result"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
