"""What the blocks that came since 2017 are worth at this size: one change a row.

    python benchmarks/since_2017.py --data-dir DIR

Trains a language model of characters on the English side of Multi30k, and then with one of its
choices changed at a time; equal steps, three seeds each. Beside the loss stand parameters, and time
and memory of a step, which takes turns with that of the unchanged model.

Then the trained models are given longer contexts than they were trained on, by kind of positions;
and attention in tiles is measured beside full attention, forward and backward, as n grows.

What was trained is not trained again: neither a run that is there, nor one whose scores are in the
file.
"""

import statistics
import sys
from dataclasses import replace
from pathlib import Path

import _options
import _results
import numpy as np
from _growth import exponent, peak
from _machine import machine, numpy_blas
from _trained import require_settings, scored_before, settings_of, trained_by
from _turns import alternate, seconds_of

from minitransformer.commands.arguments import new_file, positive, whole
from minitransformer.core.blas_threads import ONE_BLAS_THREAD
from minitransformer.core.twins import accelerated
from minitransformer.layers.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.tiled_attention import tiled_attention, tiled_attention_backward
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.registry import config_of
from minitransformer.tasks.language_modelling import batches_of, load_texts, stream_of, windows
from minitransformer.training.recipe import Recipe

RECIPE = "gpt-toy"
COMMON = dict(corpus="multi30k", unit="characters", max_length=128, dropout=0.0)
COMMON |= dict(num_layers=3, d_model=96, d_ff=384)  # of which three seeds end in two hours
COMMON |= dict(batch_tokens=3072, epochs=1, shards=1)
BASE = "unchanged"  # GPT's norm and positions; the paper's ReLU and √D
ROWS = {
    BASE: {},
    "norm after the sum": {"norm": "post"},
    "RMSNorm": {"normalisation": "rms-norm"},
    "sinusoids": {"positions": "sinusoidal"},
    "rotary positions": {"positions": "rotary"},
    "ALiBi": {"positions": "alibi"},
    "no positions": {"positions": "none"},
    "GELU": {"activation": "gelu"},
    "GELU by tanh": {"activation": "gelu-by-tanh"},
    "SiLU": {"activation": "silu"},
    "SwiGLU": {"activation": "swiglu", "d_ff": 256},  # 2/3 of it
    "2 groups of 2 heads": {"num_groups": 2},
    "multi-query": {"num_groups": 1},
    "a window of 16": {"window": 16},
    "biases everywhere": {"bias": "all"},
    "no biases": {"bias": "none"},
    "own output projection": {"tying": "none"},
    "embedding not times √D": {"scaled_embedding": False},
    "as SmolLM2 has it": {
        "normalisation": "rms-norm",
        "positions": "rotary",
        "activation": "swiglu",
        "d_ff": 256,
        "num_groups": 2,
        "bias": "none",
        "scaled_embedding": False,
    },
}
LONGER = 1, 2, 4, 8  # times the context of training
TILE = 128
LENGTHS = tuple(2**i for i in range(8, 14))
RESULTS = Path(__file__).parent / "results"


def main(arguments=None):
    """Train, measure, and write the JSON file; returns the exit status."""
    options = _parsed(arguments)
    recipes = {name: recipe_of(name) for name in options.rows}
    settings = {name: settings_of(recipe) for name, recipe in recipes.items()}
    scored = {name: scored_before(options.json, settings[name]) for name in recipes}
    for seed in options.seeds:  # outermost, so that what was cut off has all rows of the first
        for name, recipe in recipes.items():
            if seed not in scored[name]:
                scored[name][seed] = _scores(_run(options, name, recipe, seed), settings[name])
    command = ["since_2017.py", *(sys.argv[1:] if arguments is None else arguments)]
    result = {"kind": "since_2017", **machine(command), "blas": numpy_blas()}
    with ONE_BLAS_THREAD, accelerated(True):
        # Those that nobody asks for stay.
        rows = {row["row"]: row for row in _results.rows_of(options.json)}
        rows |= {
            name: {"row": name, "settings": settings[name], **costs(scored, name, options)}
            | {"seeds": list(scored[name].values())}
            for name in recipes
        }
        result["rows"] = [rows[name] for name in ROWS if name in rows]
        result["tiles"] = tiles(options.lengths)
    print(table(result))
    _results.write(result, options.json)
    return 0


def recipe_of(row):
    """The Recipe of a row."""
    return Recipe.load(RECIPE).with_values(COMMON | ROWS[row])


def _run(options, name, recipe, seed):
    """The RunFolder of a training that is over."""
    given = ["--data-dir", options.data_dir] if options.data_dir else []
    folder = options.runs / f"{name.replace(' ', '-')}-{seed}"
    return trained_by(recipe, folder, *given, "--seed", seed)


def _scores(run, settings):
    """What a training came to, in the contexts of training and in longer ones."""
    recipe = Recipe.of_run(run)
    require_settings(run, recipe, settings)
    with ONE_BLAS_THREAD, accelerated(True):
        longer = contexts(run, *LONGER)
    config, _ = run.load_config()
    return {"seed": recipe.training.seed, "longer": longer, "config": config.as_dict()}


def costs(scored, name, options):
    """What a step of a row's model costs, beside one of the unchanged model in turns."""
    config, base = (config_of(next(iter(scored[row].values()))["config"]) for row in (name, BASE))
    ours, theirs = _step(config, options.rows_of_text), _step(base, options.rows_of_text)
    seconds = alternate(ours, theirs, options.blocks, options.block)
    return {
        "parameters": config.num_parameters(),
        "time": statistics.median(row / unchanged for row, unchanged in seconds),
        "memory": peak(ours) / peak(theirs),
    }


def _step(config, rows):
    """A function that runs forward and backward of a new model on so many texts."""
    model, rng = LanguageModel(config), np.random.default_rng(0)
    ids = rng.integers(1, config.vocabulary_size, config.max_length * rows + 1)
    batch = windows(ids, np.arange(0, len(ids) - 1, config.max_length), config.max_length)

    def run():
        model.zero_grad()
        _, cache = model.loss(batch)
        model.loss_backward(1.0, cache)

    return run


def contexts(run, *times):
    """NLL of the text to validate with, in contexts so many times as long as in training.

    None where positions are learned, and there are no more than in training.
    """
    recipe = Recipe.of_run(run)
    _, validation = load_texts(recipe.data)
    stream = stream_of(run.load_kept("vocabulary"), validation)
    trained_model, _ = run.load_trained("cpu")
    config, found = trained_model.config, []
    for factor in times:
        length = factor * config.max_length
        if factor > 1 and config.positions == "learned":
            found.append(None)
            continue
        model = LanguageModel(replace(config, max_length=length))
        model.flat.data[:] = trained_model.flat.data
        parts = batches_of(stream, np.arange(0, len(stream) - 1, length), length, rows=8)
        said = [(float(model.loss(part)[0][1]), part.num_tokens) for part in parts]
        found.append(sum(nll * n for nll, n in said) / sum(n for _, n in said))
    return found


def tiles(lengths):
    """Seconds and memory, forward and backward, of full attention and of attention in tiles."""
    ways = {
        "full": (scaled_dot_product_attention, scaled_dot_product_attention_backward),
        "tiles": (lambda *x: tiled_attention(*x, size=TILE), tiled_attention_backward),
    }
    found = {name: {"seconds": [], "memory": []} for name in ways}
    for n in lengths:
        rng = np.random.default_rng(n)
        x = [rng.standard_normal((1, 1, n, 64)).astype(np.float32) for _ in range(3)]
        for name, (forward, backward) in ways.items():

            def run(forward=forward, backward=backward, x=x):
                y, cache = forward(*x)
                backward(y, cache)

            found[name]["memory"].append(peak(run))
            found[name]["seconds"].append(min(seconds_of(run) for _ in range(3)))
    for costs in found.values():
        costs["exponents"] = {what: exponent(lengths[-3:], c[-3:]) for what, c in costs.items()}
    return {"n": list(lengths), **found}


def table(result):
    """The rows, the contexts and the tiles as Markdown tables."""
    rows, tiled = result["rows"], result["tiles"]
    nll_of = {row["row"]: [scores["longer"][0] for scores in row["seeds"]] for row in rows}
    base = statistics.mean(nll_of[rows[0]["row"]])
    changes, contexts_of = [], []
    for row in rows:
        seeds = nll_of[row["row"]]
        mean = statistics.mean(seeds)
        spread = f" ± {statistics.stdev(seeds):.3f}" if len(seeds) > 1 else ""
        costs = f"{row['time']:.2f}", f"{row['memory']:.2f}"
        nll = f"{mean:.3f}{spread}", f"{mean - base:+.3f}"
        changes.append([row["row"], f"{row['parameters']:,}", *nll, *costs])
        longer = zip(*(scores["longer"] for scores in row["seeds"]), strict=True)
        means = ["–" if None in of_all else f"{statistics.mean(of_all):.3f}" for of_all in longer]
        contexts_of.append([row["row"], *means])
    names = [(way, what) for what in ("seconds", "memory") for way in ("full", "tiles")]
    costs = [
        [n, *(f"{tiled[w][what][i]:.3g}" for w, what in names)] for i, n in enumerate(tiled["n"])
    ]
    costs.append(
        ["grows as n to the", *(f"{tiled[w]['exponents'][what]:.2f}" for w, what in names)]
    )
    return "\n\n".join(
        (
            _lines(("one change", "parameters", "NLL", "change", "time", "memory"), changes),
            _lines(
                ("NLL in a context", *(f"{factor} × as long" for factor in LONGER)), contexts_of
            ),
            _lines(("n", "full, s", "tiles, s", "full, bytes", "tiles, bytes"), costs),
        )
    )


def _lines(header, rows):
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (header, rule, *rows))


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="folder with Multi30k; without it, a download")
    parser.add_argument("--runs", type=Path, default=Path("runs/since-2017"), help="where to train")
    parser.add_argument(
        "--rows", nargs="+", default=ROWS, choices=ROWS, metavar="ROW", help="beside the unchanged"
    )
    parser.add_argument("--seeds", type=whole, nargs="+", default=[1, 2, 3], help="a training each")
    parser.add_argument(
        "--blocks", type=positive, default=9, help="turns of each step that is timed"
    )
    parser.add_argument("--block", type=positive, default=5, help="steps in a row")
    parser.add_argument("--rows-of-text", type=positive, default=6, help="texts of a timed step")
    parser.add_argument(
        "--lengths", type=positive, nargs="+", default=list(LENGTHS), help="n of tiles"
    )
    parser.add_argument(
        "--json", type=new_file, default=RESULTS / "since_2017.json", help="the result"
    )
    options = parser.parse_args(arguments)
    options.rows = dict.fromkeys([BASE, *options.rows])
    return options


if __name__ == "__main__":
    _options.end(main)
