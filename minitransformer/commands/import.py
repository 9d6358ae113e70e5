"""``minitransformer import``: a run folder made of the weights of others."""

from pathlib import Path

from minitransformer.core.terminal import note
from minitransformer.inference.trained_on_text import OF_TEXT
from minitransformer.models.registry import new_model
from minitransformer.runs.checkpoint.arrays import load_model_arrays, model_arrays
from minitransformer.runs.parameters import IMPORTED
from minitransformer.runs.paths import RUNS
from minitransformer.runs.run_folder import RunFolder
from minitransformer.runs.weights import llama2c
from minitransformer.training.recipe import Recipe


def add(parser):
    parser.description = (
        "Make a run folder of a language model that others have trained: a .bin file of llama2.c "
        "and the vocabulary that belongs to it. generate goes on with texts then."
    )
    parser.add_argument("model", type=Path, help="the file of the weights")
    parser.add_argument(
        "--vocabulary", type=Path, required=True, metavar="FILE", help="that of its vocabulary"
    )
    parser.add_argument(
        "--run-folder",
        type=Path,
        metavar="FOLDER",
        help="the run folder to make (default: runs/NAME of the file)",
    )
    parser.set_defaults(run=run, shared=False)


def run(options):
    """Write the run folder; returns the exit status."""
    config, arrays = llama2c.read_model(options.model)
    vocabulary = llama2c.read_vocabulary(options.vocabulary, config.vocabulary_size)
    model = new_model(config)
    load_model_arrays(model, {f"parameters/{name}": array for name, array in arrays.items()})
    folder = RunFolder(options.run_folder or RUNS / options.model.stem, OF_TEXT)
    folder.require_free()
    folder.create()
    folder.keep(vocabulary=vocabulary)
    choices = {"kind": config.kind, **{f.name: getattr(config, f.name) for f in config.choices()}}
    recipe = Recipe.from_dict({"data": {"corpus": "text"}, "model": choices})
    folder.save_config(config, recipe.as_dict(), begun_on="cpu")
    folder.bind(recipe.identity(), texts={})
    folder.save_model(model_arrays(model), IMPORTED)
    note(
        f"{config.num_parameters():,} parameters; let it speak: minitransformer generate "
        f'{folder.path} "Once upon a time" --temperature 0.8'
    )
    return 0
